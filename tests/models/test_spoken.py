"""Calls and thoughts in a model's text: what the person sees, in whatever pieces it comes."""

from __future__ import annotations

import random

import pytest

from navigator_kernel.adapters.models.calls import Spoken
from navigator_kernel.tools.built_in import specs
from tables import table

TOOLS = specs("en")
FENCE = "```"
READ = '{"name": "read", "arguments": {"file_path": "a"}}'
CALLED = (("read", '{"file_path": "a"}'),)
# An answer, the text for the person, the calls; without the last two the answer stays as it is
ANSWERS: tuple[tuple[str, ...] | tuple[str, str, tuple[tuple[str, str], ...]], ...] = table(__file__, "ANSWERS")


@pytest.mark.requirement("JIT-5", "JIT-7")
@pytest.mark.parametrize("answer", ANSWERS, ids=range(len(ANSWERS)))
def test_the_streamed_text_is_the_final_one_in_whatever_pieces_it_comes(answer: tuple[str, ...]) -> None:
    text, wanted, calls = answer if len(answer) == 3 else (answer[0], answer[0], ())
    for seed in range(40):
        chance, told, at = random.Random(seed), list[str](), 0
        spoken = Spoken(TOOLS, told.append)
        while at < len(text):
            size = chance.choice([1, 1, 2, 3, 7, 50]) if seed else len(text)
            spoken(text[at : at + size])
            at += size
        final, found = spoken.end()
        assert (final, "".join(told)) == (wanted, wanted)
        assert tuple((call.name, call.arguments) for call in found) == calls


@pytest.mark.parametrize(
    ("answer", "text", "calls"),
    [
        ("The person wants a sum.\n\nIt is 4.\n</think>\n\nFour.", "Four.", ()),
        ("A sum, so I answer.</think>\nFour.", "Four.", ()),
        ("I read it first.\n</think>\n\n" + READ, "", CALLED),
        (f"I read it.\n</thinking>\nNow.\n<tool_call>{READ}</tool_call>", "Now.", CALLED),
        ("Nothing but thoughts.\n</think>", "", ()),
    ],
)
def test_thoughts_of_which_only_the_end_is_marked_are_not_the_answer(
    answer: str, text: str, calls: tuple[tuple[str, str], ...]
) -> None:
    for size in (1, 3, len(answer)):
        spoken = Spoken(TOOLS)
        for at in range(0, len(answer), size):
            spoken(answer[at : at + size])
        final, found = spoken.end()
        assert (final, tuple((call.name, call.arguments) for call in found)) == (text, calls)


@pytest.mark.parametrize(
    "answer",
    ["The tag `</think>`\nends it.", "End it with </think> and go on.\n", f"{FENCE}html\n<p></think>\n{FENCE}\nSo."],
)
def test_an_answer_about_the_end_of_thoughts_stays(answer: str) -> None:
    spoken = Spoken(TOOLS)
    spoken(answer)
    assert spoken.end()[0] == answer


def test_without_tools_nothing_is_a_call() -> None:
    spoken = Spoken(())
    spoken(READ)
    assert spoken.end() == (READ, ())


def test_each_call_has_an_id_of_its_own() -> None:
    spoken = Spoken(TOOLS)
    spoken(f"<tool_call>{READ}</tool_call>" * 2)
    assert len({call.id for call in spoken.end()[1]}) == 2

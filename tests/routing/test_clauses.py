"""Several skills in one message: by name in a list, or because each clause clearly belongs to another skill."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navigator_kernel.language.clauses import LIMIT, MOST, asked_for, clauses, parts, remark, without_refused
from navigator_kernel.turn.packets import plan
from navigator_kernel.turn.understand import understand_locally
from navigator_kernel.values.context import TurnContext
from navigator_kernel.values.plan import DispatchPlan
from navigator_kernel.values.request import Session, Sticky
from navigator_kernel.values.route import NeedClarification, Skills, Unknown
from routing.place import Routing, routing_at, write_skills
from tables import cases

if TYPE_CHECKING:
    from pathlib import Path

    from navigator_kernel.adapters.index.use_encoder import UseEncoder

ORDER = TurnContext(run="r1", timeout=60.0, language="en", format="detail")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, encoder: UseEncoder) -> Routing:
    root = tmp_path_factory.mktemp("clauses")
    write_skills(
        root,
        {
            "boat-painter": ("paints watercolours of boats", "examples: [paint a boat, 画一条船]\n"),
            "song-writer": ("writes songs for a choir", "examples: [write a song, 写一首歌]\n"),
            "tea-brewer": ("brews a pot of tea", "examples: [brew some green tea, 泡一壶茶]\n"),
            "bread-baker": ("bakes bread with butter", "examples: [bake a loaf of bread, 烤一个面包]\n"),
            "test": "runs what can be run",
        },
    )
    for name in ("a.md", "b.md"):
        (root / name).write_text("words\n")
    return routing_at(root, encoder)


def names(place: Routing, text: str) -> tuple[str, ...]:
    """The skills to which a message goes."""
    result = place.decide(text).result
    return result.names if isinstance(result, Skills) else ()


# Names in a list


@pytest.mark.requirement("RTE-18", "RTE-7", "LIF-9")
@cases("text, expected")
def test_skills_that_a_list_names_are_taken_in_its_order(place: Routing, text: str, expected: tuple[str, ...]) -> None:
    decision = place.decide(text)
    assert decision.result == Skills(names=expected, arguments=("README.md",))
    assert (decision.tier, decision.confidence, decision.entity) == ("exact", 1.0, expected[0])
    assert decision.phase_one() == {"skills": list(expected), "direct": False}


@pytest.mark.requirement("COV-5", "COV-6")
@cases("text, first")
def test_one_name_or_more_than_three_or_things_of_their_own_are_as_before(
    place: Routing, text: str, first: str
) -> None:
    assert names(place, text) == (first,)


@pytest.mark.requirement("LIF-9", "LIF-7")
@pytest.mark.parametrize("text", ["uninstall song-writer and boat-painter", "disable song-writer, boat-painter"])
def test_skills_that_are_to_go_are_not_run_for_being_in_a_list(place: Routing, text: str) -> None:
    assert names(place, text) == ()


# Clauses


@pytest.mark.requirement("RTE-18", "RTE-7", "COV-1")
@cases("text, expected")
def test_clauses_that_are_each_another_skills_go_to_all_of_them_in_their_order(
    place: Routing, text: str, expected: tuple[str, ...]
) -> None:
    intent, decision = place.intent(text), place.decide(text)
    assert decision.result == Skills(names=expected)
    assert (decision.tier, decision.reason, decision.candidates) == ("retrieval", "clauses", ())
    assert 0 < decision.confidence < 1
    assert intent.retrieval is not None and intent.retrieval.candidates


@pytest.mark.requirement("RTE-18")
@cases("text, expected")
def test_two_wishes_for_shipped_skills_are_both_met(crowd: Routing, text: str, expected: tuple[str, ...]) -> None:
    assert names(crowd, text) == expected


@pytest.mark.requirement("WFL-2", "COV-6", "RTE-3")
@cases("text")
def test_an_and_within_one_wish_selects_one_skill(crowd: Routing, text: str) -> None:
    assert len(names(crowd, text)) <= 1


@pytest.mark.requirement("RTE-21", "RTE-13")
@cases("text")
def test_a_clause_that_is_unsure_unwanted_or_quoted_leaves_the_message_whole(place: Routing, text: str) -> None:
    assert len(names(place, text)) <= 1


@pytest.mark.requirement("WFL-1", "WFL-7")
@cases("text")
def test_clauses_in_an_order_are_left_to_the_workflow(place: Routing, text: str) -> None:
    assert clauses(text) == ()
    assert len(names(place, text)) <= 1


@pytest.mark.requirement("WFL-4")
@pytest.mark.parametrize("text", ["paint a boat and write a song", "use boat-painter and song-writer"])
def test_a_step_of_a_workflow_stays_one_skills(place: Routing, text: str) -> None:
    intent = understand_locally(place.request(text), Session(id=""), place.router)
    assert not isinstance(intent.action, Skills) or len(intent.action.names) == 1


def test_files_of_their_own_leave_the_message_whole(place: Routing) -> None:
    assert len(names(place, "paint a boat for @a.md and write a song from @b.md")) <= 1
    assert names(place, "paint a boat and write a song from @a.md") == ("boat-painter", "song-writer")


# Consequences


@pytest.mark.requirement("SEN-7", "STK-1")
def test_two_clear_requests_are_not_a_follow_up(place: Routing) -> None:
    session = Session(id="s", turn=1, sticky=Sticky(agent="skills", target="tea-brewer"))
    decision = place.decide("also paint a boat and write a song", session)
    assert decision.result == Skills(names=("boat-painter", "song-writer"))


@pytest.mark.requirement("RTE-18", "PKT-1")
@pytest.mark.parametrize(
    "text", ["use boat-painter and song-writer on @a.md", "paint a boat and write a song from @a.md"]
)
def test_each_skill_gets_an_order_of_its_own_in_the_same_turn(place: Routing, text: str) -> None:
    made = plan(place.decide(text), place.request(text), place.catalogue, ORDER)
    assert isinstance(made, DispatchPlan)
    targets = [[packet.task_spec.target for packet in step.packets] for step in made.steps]
    assert targets == [["skill:boat-painter"], ["skill:song-writer"]]
    assert [step.packets[0].context.step for step in made.steps] == [0, 1]


@pytest.mark.requirement("PKT-10", "SEN-2")
def test_a_missing_param_of_one_skill_is_asked_for_before_any_skill_runs(tmp_path: Path) -> None:
    needs = 'required_params: [{name: text, validation: not_empty, prompt: "which text"}]\n'
    write_skills(tmp_path, {"song-writer": "writes songs", "line-counter": ("counts lines", needs)})
    place = routing_at(tmp_path)
    text = "use song-writer and line-counter"
    made = plan(place.decide(text), place.request(text), place.catalogue, ORDER)
    assert isinstance(made, NeedClarification)
    assert made.missing == ("text",)


@pytest.mark.requirement("COV-2")
def test_an_unknown_name_among_several_skills_is_reported_with_a_suggestion(place: Routing) -> None:
    from msgspec.structs import replace

    from navigator_kernel.turn.understand import decide

    intent, request = place.intent("use boat-painter and song-writer"), place.request("use boat-painter")
    gone = replace(intent, action=Skills(names=("boat-painter", "song-writr")))
    result = decide(gone, request, place.catalogue).result
    assert isinstance(result, Unknown)
    assert (result.name, result.suggestions[0]) == ("song-writr", "song-writer")


# Any text

JOINED = st.lists(
    st.sampled_from(
        ["paint a boat", "write a song", "brew some green tea", "画一条船", "写一首歌", "song-writer", "use boat-painter",
         " and ", ", ", "; ", " also ", "，并且", "和", "、", " plus ", " / ", ". ", ": ", '"', "`", "'", "\n", "和平", "@a.md"]
    ),
    max_size=16,
).map("".join)  # fmt: skip


@given(text=JOINED | st.text(max_size=200))
def test_any_text_makes_at_most_three_clauses_that_are_in_it(text: str) -> None:
    found = clauses(text)
    assert len(found) in {0, *range(2, MOST + 1)}
    assert all(clause.text in text and clause.text.strip() for clause in found)
    assert all(part.strip() for part in parts(text) if text.strip())


@pytest.mark.wide
@pytest.mark.requirement("RTE-18", "RTE-7")
@given(text=JOINED)
def test_no_text_takes_a_skill_twice_or_more_than_three(place: Routing, text: str) -> None:
    found = names(place, text)
    assert len(found) <= MOST and len(set(found)) == len(found)


@pytest.mark.parametrize(
    "piece",
    ["and ", "a and b, ", "并且", "和", "also ", "x", "'", '"', "`", "```", ": ", ", ", "\n", " ", ".", "a: ", "http", "(，也"],
)  # fmt: skip
def test_the_time_grows_no_faster_than_the_text(piece: str) -> None:
    def seconds(size: int) -> float:
        text = (piece * size)[:size]
        began = time.process_time()
        for _ in range(3):
            clauses(text)
            parts(text)
        return time.process_time() - began

    assert min(seconds(LIMIT) for _ in range(3)) < 20 * min(seconds(LIMIT // 4) for _ in range(3)) / 2 + 0.05


def test_a_text_over_the_limit_is_not_split_into_clauses() -> None:
    text = f"write a song and paint a boat {'x' * LIMIT}"
    assert clauses(text) == ()
    assert parts(text) == (text,)


# What a long message excludes


@pytest.mark.requirement("RTE-21")
@cases("text, gone, left")
def test_what_a_long_message_excludes_is_not_searched_for(
    text: str, gone: tuple[str, ...], left: tuple[str, ...]
) -> None:
    found = asked_for(text)
    assert [one for one in gone if one in found] == []
    assert [one for one in left if one not in found] == []


@cases("text, wish")
def test_code_and_data_after_a_colon_are_not_searched_for(text: str, wish: str) -> None:
    assert asked_for(text) == wish


@cases("text")
def test_words_after_a_colon_are_searched_for(text: str) -> None:
    assert asked_for(text) == text


def test_a_short_message_and_one_that_only_excludes_are_searched_as_they_are() -> None:
    short, only = "do not merge it", "I do not want it, never did, no way, not now, " * 20
    assert asked_for(short) == short
    assert asked_for(only) == only


@pytest.mark.requirement("RTE-1")  # the issue on the first ten skills
@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("no pdf, fill budget.xlsx", "fill budget.xlsx"),
        ("fill budget.xlsx, no pdf please", "fill budget.xlsx"),
        ("not a pdf: fill budget.xlsx", "fill budget.xlsx"),
        ("I don't need a pdf, fill budget.xlsx", "fill budget.xlsx"),
        ("the pdf is done already, now fill budget.xlsx", "now fill budget.xlsx"),
        ("I already have the PDF. Fill budget.xlsx.", "Fill budget.xlsx"),
        ("no Kubernetes and no docker, just draw the parts", "just draw the parts"),
        ("不是 PDF，是 预算.xlsx 要填", "是 预算.xlsx 要填"),
        ("简历不用改，把照片弄清晰就行", "把照片弄清晰就行"),
        ("do not check docs, count the words", "count the words"),
        # The rest refers to it, or says too little, or the clause is no such one
        ("the draft is done, please check it carefully", None),
        ("the build is done, what failed", None),
        ("no tests exist for cart.py, write some", None),
        ("文档写好了，检查一下里面的链接", None),
        ("no, count the words", None),
        ("look at it.", None),
    ],
)
def test_what_is_done_or_not_meant_says_nothing_about_the_skill(text: str, rest: str | None) -> None:
    assert without_refused(text) == (rest or text)


@pytest.mark.requirement("X-45")
@cases("text, kind")
def test_a_remark_has_no_form_of_a_request(text: str, kind: str) -> None:
    assert remark(text) == kind

"""Any input to `ask` and `chat` ends with its exit code and its words; nothing else is done or shown."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest

from hostile_input.inputs import CALLS, CASES, CONTROLS, UNANSWERED, Case
from hostile_input.planted import PASSWD, SECRET, Ground
from navigator_kernel.cli.main import run

ENOUGH = 40  # cases
RAW = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e0fff]"
)
BETWEEN = "stop"  # ends what the previous message began

pytestmark = [pytest.mark.timeout(300), pytest.mark.sample(1)]


class Done(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    return Ground(tmp_path_factory.mktemp("hostile_input"))


@pytest.fixture
def start(ground: Ground, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """`start("ask", "hello", typed="")`: runs a command line in this process, which must do no harm with any input."""
    monkeypatch.chdir(ground.project)
    monkeypatch.setenv("TOKEN", SECRET)
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME"):  # shared: filling new ones takes a tenth of the time
        monkeypatch.setenv(name, str(ground.outside / name))

    def go(*words: str, typed: str = "") -> Done:
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        capfd.readouterr()
        done = Done(run(list(words)), *capfd.readouterr())
        harmless(ground, done)
        return done

    return go


def harmless(ground: Ground, done: Done) -> None:
    told = done.out + done.err
    assert "Traceback (most recent" not in told and '"internal"' not in told
    for held in (told, ground.written().decode("utf-8", "replace")):
        assert SECRET not in held and PASSWD not in held
    assert ground.canaries == []


def text_of(case: Case, ground: Ground) -> str:
    return case.text.replace("{outside}", str(ground.outside))


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= ENOUGH
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.wide
@pytest.mark.requirement("PRE-8", "SAF-1")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_hostile_message_makes_one_json_document_with_its_own_words(case: Case, ground: Ground, start: Run) -> None:
    done = start("ask", "--json", "--", *text_of(case, ground).split(" "))
    document = json.loads(done.out)
    assert (done.code, document["exit_code"], done.err) == (case.code, case.code, "")
    assert is_said(case, document["report"]["summary"])
    if " @" in f" {case.text}" and case.code == 3:
        assert document["report"]["data"]["hint"]
    if case.kept:
        words = ("ask", "--show-prompt", "--json", "--", *text_of(case, ground).split(" "))
        prompt = json.loads(start(*words).out)["report"]["raw"]
        assert [kept for kept in case.kept if kept not in prompt] == []


@pytest.mark.requirement("SAF-1")
@pytest.mark.parametrize("case", [*CONTROLS, *CALLS], ids=lambda case: case.name)
def test_a_hostile_message_steers_no_terminal(case: Case, start: Run) -> None:
    done = start("ask", "--", case.text)
    assert (done.code, is_said(case, done.out)) == (case.code, True), done.out[:500]
    assert RAW.search(done.out + done.err) is None


# A line that names only files is answered in the language of the conversation
IN_CHINESE = {
    "outside the project": "在项目之外", "a file of secrets": "是机密文件", "no file is called": "没有名为",
    "not a regular file": "不是普通文件", "needs a model": "需要模型",
}  # fmt: skip


def is_said(case: Case, text: str) -> bool:
    """Whether the text has the case's words; if nothing answers, an offered skill counts too."""
    return any(said in text for said in (case.said, IN_CHINESE.get(case.said, case.said))) or (
        case.said in {UNANSWERED, "没有配置"} and any(word in text for word in ("none of them", "都不用"))
    )


@pytest.fixture(scope="module")
def replies() -> dict[str, Any]:
    """The replies by case name, filled by the first test that needs them, because only then is there a home."""
    return {}


@pytest.fixture
def conversation(replies: dict[str, Any], ground: Ground, start: Run) -> dict[str, Any]:
    if not replies:
        names, typed = lines(CASES, ground)
        told = json.loads(start("chat", "--json", typed=typed).out)["replies"]
        replies |= dict(zip(names, told, strict=False))
        assert len(told) == len(names)
    return replies


def lines(cases: Sequence[Case], ground: Ground) -> tuple[list[str], str]:
    """The name of each message, and the typed text; a message that asks or follows up is ended before the next one."""
    said: list[tuple[str, str]] = []
    for case in cases:
        text = text_of(case, ground)
        said.append((case.name, f'"""\n{text}\n"""' if "\n" in text or text.endswith("\\") else text))
        said += [(f"behind {case.name}", BETWEEN)] if case.code in {0, 9} else []
    return [name for name, _ in said], "".join(f"{text}\n" for _, text in said)


@pytest.mark.wide
@pytest.mark.requirement("PRE-8", "SAF-1")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_hostile_line_ends_in_its_own_words_and_not_the_conversation(
    case: Case, conversation: dict[str, Any]
) -> None:
    report = conversation[case.name]["report"]
    assert is_said(case, report["summary"])
    assert report["data"].get("exit_code", 0) == (case.code if case.code in {3, 4} else 0)


@pytest.mark.wide
def test_a_conversation_of_hostile_lines_steers_no_terminal(ground: Ground, start: Run) -> None:
    _, typed = lines([case for case in CASES if len(case.text) < 1000], ground)
    done = start("chat", typed=typed)
    assert RAW.search(done.out + done.err) is None

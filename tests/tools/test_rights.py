"""Rights of a session, and those given beforehand: what each of them allows, and what none of them does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from navigator_kernel.errors import ConsentNeeded, UsageProblem
from navigator_kernel.values.job import is_permanent
from navigator_kernel.values.rights import by_option, by_settings, right_of, words_in
from tables import cases, table
from tools.bench_of_tools import Toolbox, toolbox

pytestmark = [pytest.mark.requirement("JIT-12"), pytest.mark.sample(4)]

Call = tuple[str, dict[str, Any]]


@pytest.fixture
def box(tmp_path: Path) -> Toolbox:
    return toolbox(tmp_path.resolve(), named=("notes.txt",))


def asks(box: Toolbox, number: int, tool: str, arguments: dict[str, Any]) -> ConsentNeeded | None:
    """Makes the call; the question if the person is asked. Any other failure fails the test."""
    given = {name: str(value).replace("ROOT", str(box.root)) if name != "packages" else value for name, value in arguments.items()}  # fmt: skip
    try:
        answer = box.call(tool, number, **given)
    except ConsentNeeded as asked:
        return asked
    assert not answer.failed, answer.text
    return None


NINE: list[Call] = list(table(__file__, "NINE"))


def test_nine_ordinary_calls_ask_two_questions_if_each_is_answered_for_the_session(box: Toolbox) -> None:
    questions: list[str] = []
    for number, (tool, arguments) in enumerate(NINE):
        box.call("write", 100 + number, file_path="job.py", content=f"print({number})\n")  # other bytes each time
        while (asked := asks(box, number, tool, arguments)) is not None:
            questions.append(asked.message)
            box.yes(asked, session=True)
            if wider := asked.data.get("wider"):
                box.kernel.consents.allow(box.work.run, str(wider))
    assert [text.partition(":")[0] for text in questions] == ["run painter", "let the skill painter change SUMMARY.md"]
    assert (box.root / "docs/page.md").read_text() == "# A page\n"


# What each right allows, of these calls
CALLS: dict[str, Call] = {
    "command": ("run", {"command": "echo hello"}),
    "line": ("run", {"command": "cd . && cat *.txt | head -1; true"}),
    "script": ("run", {"command": "python3 scripts/hello.py a"}),
    "other script": ("run", {"command": "bash scripts/make.sh"}),
    "packages": ("run", {"command": "python3 -c 1", "packages": ["cowsay==6.1"]}),
    "read": ("read", {"file_path": "ROOT/other.txt"}),
    "read docs": ("read", {"file_path": "ROOT/docs/page.md"}),
    "list docs": ("list", {"path": "ROOT/docs"}),
    "list": ("list", {"path": "ROOT"}),
    "edit docs": ("write", {"file_path": "ROOT/docs/new.md", "content": "x\n"}),
    "edit": ("write", {"file_path": "ROOT/new.md", "content": "x\n"}),
    "edit alone": ("write", {"file_path": "ROOT/docs/Makefile", "content": "all:\n\ttrue\n"}),
    "edit program": ("write", {"file_path": "ROOT/docs/run.sh", "content": "#!/bin/sh\n"}),
}
RUNS = {"command", "line", "script", "other script"}
DOCS = {"read docs", "list docs", "edit docs"}
ALLOWS: dict[str, set[str]] = {
    "run": RUNS,
    "scripts": {"script", "other script"},
    "read": {"read", "read docs", "list docs", "list"},
    "edit:docs/": DOCS,
    "edit:./": {*DOCS, "read", "list", "edit"},
    "edit:doc/": set(),
}
GIVEN: dict[str, Callable[[Toolbox, str], str]] = {
    "for the session": lambda box, word: f"right:{word}@painter@{box.work.digest}",
    "by --allow": lambda _box, word: by_option(word),
    "in the settings": lambda _box, word: by_settings(word, "painter"),
}


@pytest.mark.parametrize("way", GIVEN)
@pytest.mark.parametrize("word", ALLOWS)
def test_a_right_allows_its_own_kind_of_work_and_no_other(box: Toolbox, word: str, way: str) -> None:
    (box.workspace).mkdir(parents=True)
    (box.workspace / "a.txt").write_text("x\n")
    box.kernel.consents.allow(box.work.run, GIVEN[way](box, word))
    allowed = {name for at, (name, call) in enumerate(CALLS.items()) if asks(box, at, *call) is None}
    assert allowed == ALLOWS[word]


def test_a_yes_for_once_gives_no_right(box: Toolbox) -> None:
    for number, name in enumerate(("command", "script", "edit docs")):
        asked = asks(box, number, *CALLS[name])
        assert asked is not None
        box.yes(asked)
        assert asks(box, number, *CALLS[name]) is None
    for number, (tool, arguments) in enumerate(CALLS.values(), 100):
        given = {**arguments, "content": "other\n"} if tool == "write" else arguments
        assert asks(box, number, tool, given) is not None


def test_a_right_ends_with_the_bytes_of_the_skill_and_belongs_to_no_other_skill(box: Toolbox) -> None:
    asked = asks(box, 1, *CALLS["command"])
    assert asked is not None
    box.yes(asked, session=True)
    right = right_of(str(asked.data["subject"]))
    assert right is not None and (right.word, right.skill, right.digest) == ("run", "painter", box.work.digest)
    (Path(box.work.folder) / "scripts/hello.py").write_text("print('other bytes')\n")
    changed = box.kernel.catalogue.create_executor("skill:painter").digest
    assert changed != box.work.digest
    box.work = replace(box.work, digest=changed)
    assert asks(box, 2, *CALLS["command"]) is not None


def test_packages_are_a_right_of_their_own_for_the_same_set(box: Toolbox, monkeypatch: pytest.MonkeyPatch) -> None:
    box.kernel.consents.allow(box.work.run, by_option("run"))
    first = asks(box, 1, "run", {"command": "python3 a.py", "packages": ["b==2", "a==1"]})
    assert first is not None and "use packages in an environment of its own (" in first.message
    right = right_of(str(first.data["subject"]))
    assert right is not None and (right.word, right.by_option) == ("packages:a==1,b==2", "")
    same = asks(box, 2, "run", {"command": "echo other", "packages": ["a==1", "b==2"]})
    other = asks(box, 3, "run", {"command": "echo other", "packages": ["a==1", "b==3"]})
    assert same is not None and other is not None
    assert same.data["subject"] == first.data["subject"] != other.data["subject"]


def test_settings_allow_a_skill_that_the_person_accepts_and_the_record_says_so(tmp_path: Path) -> None:
    box = toolbox(tmp_path.resolve(), allow={"painter": ("run",), "sailor": ("edit:./",)})
    assert asks(box, 1, *CALLS["command"]) is None and asks(box, 2, *CALLS["edit"]) is not None
    entries: Any = box.kernel.audit
    by = [one.to_dict()["by"] for one in entries.entries() if one.to_dict()["event"] == "authorised"]
    assert by == ["your settings: [allow.painter] run"]


def test_settings_allow_nothing_to_a_skill_that_nobody_accepts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    box = toolbox(tmp_path.resolve(), allow={"painter": ("run",)})
    monkeypatch.setattr("navigator_kernel.skills.catalog.executor.SkillExecutor.standing", "unknown")
    assert asks(box, 1, *CALLS["command"]) is not None


@pytest.mark.parametrize(
    ("named", "words"),
    [
        (["run", "scripts", "read"], ("run", "scripts", "read")),
        (["edit:docs/", "edit:docs", "edit:./docs//", " edit:docs/a b "], ("edit:docs/", "edit:docs/a b/")),
        (["edit:.", "edit:./", "edit:**"], ("edit:./",)),
        (["edit:docs/**"], ("edit:docs/",)),
    ],
)
def test_words_of_rights_are_compared_in_one_form(named: list[str], words: tuple[str, ...]) -> None:
    assert words_in(named) == words


@pytest.mark.parametrize(
    "word",
    ["", "Run", "runs", "edit", "edit:", "edit:/etc", "edit:../x", "edit:a/../../x", "network", "fetch:a.org",
     "packages:a", "*", "edit:*", "edit:docs/*.md", "edit:docs**", "edit:/**", "edit:a\x1bb", 3],
)  # fmt: skip
def test_a_word_that_allows_nothing_is_an_error_that_names_the_known_ones(word: object) -> None:
    with pytest.raises(UsageProblem) as problem:
        words_in([word])
    assert problem.value.hint == "one of: run, scripts, read, edit:FOLDER/"


@cases("subject, is_for_ever")
def test_only_scripts_with_their_bytes_can_be_allowed_for_ever(subject: str, is_for_ever: bool) -> None:
    assert is_permanent(subject) is is_for_ever

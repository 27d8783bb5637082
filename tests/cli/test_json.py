"""`--json` prints one document and nothing else, for every command, whatever happens."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest

from cli import prepared
from cli.output_schemas import differences, schemas
from cli.support import Place, below, place_in, type_a
from navigator_kernel.cli.registry import EVERYDAY, navigator
from skill_repositories import skill_text
from tables import table

pytestmark = pytest.mark.sample(2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The words after a command, and the preparation before it."""

    words: Sequence[str] = ()
    before: prepared.Before = lambda place: None
    stdin: str = ""
    code: int = 0


# They need a broker: tests/dispatch runs them
WITH_BROKER = frozenset({"cluster doctor", "cluster drain", "cluster status", "worker"})


def leaves() -> Iterator[tuple[str, click.Command]]:
    """Yields every command that is not a group, by its words."""
    context = click.Context(navigator)
    for name in navigator.list_commands(context):
        if name in EVERYDAY:
            continue
        command = navigator.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            inner = click.Context(command, parent=context)
            found = ((word, command.get_command(inner, word)) for word in command.list_commands(inner))
            yield from ((f"{name} {word}", held) for word, held in found if held is not None)
        else:
            yield name, command


def case(before: str = "", **given: Any) -> Case:
    """A case of the table: `before` is a function of `prepared`, with its argument if it takes one."""
    name, _, argument = before.partition(" ")
    if not name:
        return Case(**given)
    made = getattr(prepared, name)
    return Case(before=made(argument) if argument else made, **given)


CASES = {name: case(**given) for name, given in table(__file__, "CASES").items()}
FAILING = [(command, case(**given)) for command, given in table(__file__, "FAILING")]
NEEDY = [
    name for name, command in leaves() if any(isinstance(p, click.Argument) and p.required for p in command.params)
]


@pytest.fixture
def here(tmp_path: Path) -> Place:
    """A project with its own skill and one that can be installed."""
    place = place_in(tmp_path)
    place.write({"source/alpha/SKILL.md": skill_text("alpha")})
    place.write(below(".claude/skills/tool", type_a("tool", "print('ran')\n")))
    return place


def took(place: Place, name: str, case: Case, *more: str) -> Any:
    """Runs a command that must end as its case says; returns its document."""
    case.before(place)
    done = place.run(*name.split(), *case.words, *more, "--json", stdin=case.stdin)
    assert done.code == case.code, (done.code, done.out, done.err)
    assert done.document.get("exit_code", 0) == done.code
    return done.document


def test_every_command_has_a_case() -> None:
    assert sorted(CASES) == sorted({name for name, _ in leaves()} - WITH_BROKER)


def test_every_command_takes_json() -> None:
    lacking = [name for name, command in leaves() if not any("--json" in param.opts for param in command.params)]
    assert lacking == []


def test_every_command_says_in_a_sentence_what_it_is_for() -> None:
    assert [name for name, command in leaves() if not inspect.cleandoc(command.help or "")] == []


@pytest.mark.parametrize("name", CASES)
def test_a_success_is_one_document_as_its_schema_says(here: Place, name: str) -> None:
    document = took(here, name, CASES[name])
    assert "error" not in document
    assert differences(name, document) == []


def test_every_schema_is_of_a_command() -> None:
    assert sorted(schemas()) == sorted({name for name, _ in leaves()} - WITH_BROKER)


@pytest.mark.parametrize(("name", "case"), FAILING, ids=[f"{n}-{' '.join(c.words)}-{c.code}" for n, c in FAILING])
def test_a_failure_is_one_document(here: Place, name: str, case: Case) -> None:
    took(here, name, case)


@pytest.mark.parametrize("name", CASES)
def test_an_unknown_option_is_one_document(here: Place, name: str) -> None:
    told = took(here, name, Case(words=["--nonsense"], code=2))["error"]
    assert (told["code"], "--nonsense" in told["msg"], told["hint"]) == ("usage", True, f"navigator {name} --help")


@pytest.mark.parametrize("name", NEEDY)
def test_a_missing_argument_is_one_document(here: Place, name: str) -> None:
    assert "Missing argument" in took(here, name, Case(code=2))["error"]["msg"]


@pytest.mark.parametrize(
    "words", [["nonsense"], ["--nonsense"], [], ["skill"], ["skill", "nonsense"], ["--language", "klingon", "ask", "x"]]
)
def test_an_invalid_command_line_gives_one_json_document(here: Place, words: list[str]) -> None:
    done = here.run(*words, "--json")
    assert (done.code, done.document["exit_code"], done.err) == (2, 2, "")


def test_a_folder_that_is_not_there_is_one_document(here: Place) -> None:
    done = here.run("--root", "/nowhere/at/all", "skill", "list", "--json")
    assert (done.code, done.document["error"]["code"]) == (4, "not_found")


def test_an_error_names_its_type_code_hint_and_exit_code(here: Place) -> None:
    told = here.json("skill", "uninstall", "nothing")["error"]
    assert set(told) >= {"type", "code", "msg", "hint", "exit_code"}
    assert told["hint"]


def test_json_after_two_dashes_is_a_word_of_the_message(here: Place) -> None:
    done = here.run("ask", "--", "hello", "--json")
    assert done.code == 9
    assert done.out.startswith("⏸️")


def test_a_message_in_broken_utf8_is_one_document(here: Place) -> None:
    done = here.run("ask", "-", "--json", stdin=b"hello \xff\xfe \xed\xa0\x80")
    assert done.document["exit_code"] == done.code == 9

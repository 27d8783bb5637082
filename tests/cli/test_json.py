"""`--json` prints one document and nothing else, for every command, whatever happens."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest

from cli.output_schemas import differences, schemas
from cli.prepared import (
    Before,
    added_to_host,
    broken,
    broken_state,
    changed,
    come_and_gone,
    damaged,
    foreign_lock,
    install,
    mcp_server,
    model_server,
    no_trust,
    once,
    other_project,
    policy_file,
    profile,
    results,
    run_that,
    talk,
)
from cli.support import Place, below, place_in, type_a
from navigator_kernel.cli.registry import EVERYDAY, navigator
from skill_repositories import skill_text

pytestmark = pytest.mark.sample(2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The words after a command, and the preparation before it."""

    words: Sequence[str] = ()
    before: Before = lambda place: None
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


CASES: Mapping[str, Case] = {
    "acp": Case(words=["--check"]),
    "agent list": Case(),
    "ask": Case(words=["word count of this: hello world"]),
    "chat": Case(stdin="word count of this: hello world\n"),
    "cluster init": Case(words=["made", "--owner", "desk", "--worker", "far=skills"]),
    "completion": Case(words=["bash"]),
    "config get": Case(words=["language"]),
    "config list": Case(),
    "config path": Case(),
    "config set": Case(words=["language", "zh"]),
    "config unset": Case(words=["language"]),
    "diff": Case(before=changed),
    "docs": Case(words=["settings"]),
    "doctor": Case(),
    "eval": Case(words=["csv-report"]),
    "files": Case(before=results),
    "gc": Case(),
    "host install": Case(words=["claude-code"]),
    "host list": Case(),
    "host uninstall": Case(words=["claude-code"], before=added_to_host),
    "init": Case(),
    "mcp add": Case(words=["time"]),
    "mcp approve": Case(words=["there"], before=mcp_server),
    "mcp call": Case(words=["there", "echo", "words=hi", "--yes"], before=mcp_server),
    "mcp import": Case(words=["--dry-run"]),
    "mcp list": Case(before=mcp_server),
    "mcp read": Case(words=["there", "--yes"], before=mcp_server),
    "mcp remove": Case(words=["there"], before=mcp_server),
    "mcp serve": Case(words=["--check"]),
    "mcp test": Case(words=["there", "--yes"], before=mcp_server),
    "mcp tools": Case(words=["there", "--yes"], before=mcp_server),
    "model key": Case(words=["openai", "--remove"]),
    "model list": Case(),
    "model test": Case(words=["there:well"], before=model_server),
    "model use": Case(words=["openai:gpt-5-mini"]),
    "plugin distrust": Case(words=["source"]),
    "plugin list": Case(),
    "plugin trust": Case(words=["source"]),
    "policy explain": Case(words=["word-count"]),
    "policy show": Case(before=policy_file),
    "profile list": Case(before=profile),
    "profile remove": Case(words=["small"], before=profile),
    "profile save": Case(words=["small", "word-count", "gone"]),
    "profile show": Case(words=["small"], before=profile),
    "profile use": Case(words=["small"], before=profile),
    "project adopt": Case(words=["../other", "--yes"], before=other_project),
    "project distrust": Case(),
    "project forget": Case(words=["../other", "--yes"], before=other_project),
    "project list": Case(before=other_project),
    "project show": Case(),
    "project trust": Case(),
    "route": Case(words=["review this code"]),
    "serve": Case(words=["--list-tokens"]),
    "session delete": Case(words=["talk"], before=talk),
    "session export": Case(words=["talk"], before=talk),
    "session list": Case(before=talk),
    "session resume": Case(words=["talk"], before=talk, stdin="word count of this: hello world\n"),
    "session revoke": Case(words=["talk"], before=talk),
    "session show": Case(words=["talk"], before=talk),
    "skill cache": Case(),
    "skill convert": Case(words=["source/alpha/SKILL.md"]),
    "skill disable": Case(words=["tool"]),
    "skill doctor": Case(),
    "skill export": Case(words=["tool", "out"]),
    "skill formats": Case(),
    "skill import-lock": Case(before=foreign_lock),
    "skill new": Case(words=["new-one"]),
    "skill mapping": Case(words=["pdf"]),
    "skill optimize": Case(words=["csv-report"]),
    "skill outdated": Case(before=install),
    "skill record": Case(words=["tool"]),
    "skill repair": Case(before=install),
    "skill rollback": Case(before=come_and_gone),
    "skill update": Case(before=install),
    "skill scan": Case(words=["./source"]),
    "skill validate": Case(words=["source/alpha"]),
    "skill distrust": Case(words=["tool"]),
    "skill enable": Case(words=["tool"]),
    "skill info": Case(words=["tool"]),
    "skill install": Case(words=["./source/alpha"]),
    "skill learn": Case(words=["alpha", "--show"], before=install),
    "skill list": Case(),
    "skill search": Case(words=["tool"]),
    "skill trust": Case(words=["tool"]),
    "skill uninstall": Case(words=["alpha"], before=install),
    "skill usage": Case(before=once),
    "skill verify": Case(before=install),
    "undo": Case(before=changed),
    "usage": Case(),
    "why": Case(before=once),
    "log": Case(before=once),
    "workflow abort": Case(words=["run-1"], before=run_that("stopped")),
    "workflow approve": Case(words=["run-1"], before=run_that("proposed")),
    "workflow list": Case(before=run_that("done")),
    "workflow resume": Case(words=["run-1"], before=run_that("stopped")),
    "workflow run": Case(words=["say", "--yes"], before=run_that("done")),
    "workflow show": Case(words=["run-1"], before=run_that("done")),
}
TOML, DATABASE = broken("navigator.toml"), broken(".claude/skills/skills.db")
SWITCHES, RECEIPT = broken_state("disabled.json"), broken(".claude/skills/.navigator/alpha.json")
FAILING: Sequence[tuple[str, Case]] = [
    ("agent list", Case(words=["more"], code=2)),
    ("ask", Case(words=["hi"], before=TOML, code=6)),
    ("ask", Case(words=["hi"], before=SWITCHES, code=6)),
    ("ask", Case(words=["/nothing-like-it x"], code=4)),
    ("ask", Case(words=["hello there"], code=9)),
    ("ask", Case(code=2)),
    ("chat", Case(stdin="hi\n", before=TOML, code=6)),
    ("chat", Case(stdin="hi\n", before=SWITCHES, code=6)),
    ("chat", Case(stdin="/nothing-like-it x\n", code=4)),
    ("completion", Case(words=["powershell"], code=2)),
    ("config get", Case(words=["colour"], code=2)),
    ("config get", Case(words=["language"], before=TOML, code=6)),
    ("config list", Case(before=TOML, code=6)),
    ("config set", Case(words=["language", "klingon"], code=2)),
    ("config set", Case(words=["language", "zh"], before=TOML, code=6)),
    ("config unset", Case(words=["language"], before=TOML, code=6)),
    ("diff", Case(words=["nothing"], code=4)),
    ("diff", Case(before=damaged, code=6)),
    ("doctor", Case(before=TOML, code=1)),
    ("doctor", Case(before=DATABASE, code=1)),
    ("doctor", Case(before=no_trust, code=1)),
    ("eval", Case(words=["nothing"], code=4)),
    ("eval", Case(words=["--min-recall", "2"], code=2)),
    ("files", Case(words=["absent"], code=4)),
    ("gc", Case(words=["--days", "many"], code=2)),
    ("init", Case(words=["surplus"], code=2)),
    ("plugin distrust", Case(words=["nowhere"], code=4)),
    ("plugin distrust", Case(words=["source"], before=no_trust, code=6)),
    ("plugin list", Case(before=TOML, code=6)),
    ("plugin trust", Case(words=["nowhere"], code=4)),
    ("project adopt", Case(words=["../other"], before=other_project, code=9)),
    ("project forget", Case(words=["nowhere"], code=4)),
    ("project trust", Case(words=["nowhere"], code=4)),
    ("plugin trust", Case(words=["source"], before=no_trust, code=6)),
    ("host install", Case(words=["generic"], before=broken(".mcp.json"), code=6)),
    ("host install", Case(words=["nothing"], code=2)),
    ("mcp add", Case(words=["x"], code=2)),
    ("mcp add", Case(words=["x__y", "true"], code=2)),
    ("mcp add", Case(words=["there", "true"], before=mcp_server, code=2)),
    ("mcp add", Case(words=["x", "--env", "T=ghp_abcdefghijklmnopqrstuvwxyz0123456789", "true"], code=3)),
    ("mcp add", Case(words=["x", "--project", "true"], before=broken(".mcp.json"), code=6)),
    ("mcp approve", Case(words=["nothing"], code=4)),
    ("mcp approve", Case(words=["there", "nothing"], before=mcp_server, code=4)),
    ("mcp call", Case(words=["there", "echo"], before=mcp_server, code=9)),
    ("mcp call", Case(words=["there", "ech", "--yes"], before=mcp_server, code=4)),
    ("mcp call", Case(words=["there", "echo", "words"], before=mcp_server, code=2)),
    ("mcp call", Case(words=["there", "echo", "--args", "[]"], before=mcp_server, code=2)),
    ("mcp import", Case(words=["nowhere"], code=2)),
    ("mcp import", Case(words=["--server", "nothing"], code=4)),
    ("mcp read", Case(words=["there", "no uri", "--yes"], before=mcp_server, code=2)),
    ("mcp read", Case(words=["there", "note://two", "--yes"], before=mcp_server, code=4)),
    ("mcp remove", Case(words=["nothing"], code=4)),
    ("mcp test", Case(words=["there"], before=mcp_server, code=9)),
    ("mcp tools", Case(words=["nothing"], code=4)),
    ("mcp serve", Case(code=2)),  # stdout carries the protocol, except over HTTP
    ("route", Case(words=["hi"], before=TOML, code=6)),
    ("route", Case(words=["hi"], before=SWITCHES, code=6)),
    ("route", Case(words=[" "], code=2)),
    ("session delete", Case(words=["nothing"], code=4)),
    ("session export", Case(words=["nothing"], code=4)),
    ("session export", Case(words=["talk", "source/alpha/SKILL.md"], before=talk, code=3)),
    ("session list", Case(before=broken_state("sessions.sqlite"), code=6)),
    ("session resume", Case(words=["nothing"], code=4)),
    ("session revoke", Case(words=["nothing"], code=4)),
    ("session show", Case(words=["nothing"], code=4)),
    ("session show", Case(words=["talk", "--last", "0"], code=2)),
    ("skill disable", Case(words=["nothing"], code=4)),
    ("skill disable", Case(words=["tool"], before=SWITCHES, code=6)),
    ("skill distrust", Case(words=["tool"], before=no_trust, code=6)),
    ("skill enable", Case(words=["nothing"], code=4)),
    ("skill info", Case(words=["file:///nowhere/at/all"], code=7)),
    ("skill info", Case(words=["tool"], before=SWITCHES, code=6)),
    ("skill install", Case(words=["file:///nowhere/at/all"], code=7)),
    ("skill install", Case(words=["ext::sh -c x"], code=3)),
    ("skill install", Case(words=["./source/alpha"], before=DATABASE, code=6)),
    ("skill list", Case(before=SWITCHES, code=6)),
    ("skill convert", Case(words=["nowhere"], code=4)),
    ("skill export", Case(words=["nothing", "out"], code=4)),
    ("skill import-lock", Case(code=4)),
    ("skill install", Case(words=["--frozen"], code=4)),
    ("skill install", Case(code=2)),
    ("skill new", Case(words=["tool"], code=3)),
    ("skill new", Case(words=["Not A Name"], code=2)),
    ("skill new", Case(words=["../x"], code=2)),
    ("skill outdated", Case(words=["nothing"], code=4)),
    ("skill repair", Case(before=RECEIPT, code=6)),
    ("skill rollback", Case(code=4)),
    ("skill update", Case(words=["nothing"], code=4)),
    ("skill scan", Case(words=["nowhere"], code=4)),
    ("skill validate", Case(words=["nowhere"], code=4)),
    ("skill search", Case(words=["tool", "--remote"], code=2)),
    ("skill search", Case(words=["tool", "--limit", "0"], code=2)),
    ("skill trust", Case(words=["nothing"], code=4)),
    ("skill trust", Case(words=["tool"], before=no_trust, code=6)),
    ("skill uninstall", Case(words=["nothing"], code=4)),
    ("skill verify", Case(words=["nothing"], code=4)),
    ("skill verify", Case(before=RECEIPT, code=6)),
    ("undo", Case(code=4)),
    ("undo", Case(words=["../nothing"], code=3)),
    ("undo", Case(before=damaged, code=6)),
    ("why", Case(code=4)),
    ("why", Case(words=["20200101-000000000-000000"], code=4)),
    ("workflow abort", Case(words=["run-1"], before=run_that("done"), code=3)),
    ("workflow approve", Case(words=["run-1"], before=run_that("aborted"), code=3)),
    ("workflow list", Case(before=broken_state("workflows.sqlite"), code=6)),
    ("workflow list", Case(before=broken("mybox/workflows/say.md"), code=1)),
    ("workflow resume", Case(words=["run-1"], before=run_that("proposed"), code=3)),
    ("workflow resume", Case(words=["nothing"], code=4)),
    ("workflow run", Case(words=["nothing"], code=4)),
    ("workflow run", Case(words=["say", "surplus"], before=run_that("done"), code=2)),
    ("workflow show", Case(words=["nothing"], code=4)),
]
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

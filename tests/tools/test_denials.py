"""Every word of `[policy] deny` against every tool: what happens is what `navigator policy explain` says."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from navigator_kernel.config.settings import DENIABLE, Policy
from navigator_kernel.errors import ConsentNeeded
from navigator_kernel.sandbox.guard import GIVEN, OF_RUN, Standing, explained
from navigator_kernel.tools.guarded import GuardedTools
from navigator_kernel.values.chat import ToolCall
from navigator_kernel.values.rights import by_option
from specialist.at_work import Table
from tools.bench_of_tools import Toolbox, toolbox
from tools.test_desk import Served, Tool, known

pytestmark = [pytest.mark.requirement("JIT-5", "SAF-1"), pytest.mark.sample(6)]

PROJECT = "use files of the project"
# What a call does: its tool, its arguments, and the decisions of `policy explain` that it depends on
ACTS: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "read": ("read", {"file_path": "ROOT/other.txt"}, (PROJECT,)),
    "read what the person named": ("read", {"file_path": "ROOT/notes.txt"}, (PROJECT,)),
    "read its own file": ("read", {"file_path": "references/colors.md"}, ()),
    "list": ("list", {"path": "ROOT/docs"}, (PROJECT,)),
    "glob": ("glob", {"pattern": "*", "path": "ROOT"}, (PROJECT,)),
    "grep": ("grep", {"pattern": "x", "path": "ROOT"}, (PROJECT,)),
    "write": ("write", {"file_path": "ROOT/new.md", "content": "x\n"}, (PROJECT,)),
    "write in the workspace": ("write", {"file_path": "new.md", "content": "x\n"}, ()),
    "edit": ("edit", {"file_path": "ROOT/other.txt", "old_string": "not", "new_string": "now"}, (PROJECT,)),
    "edit what the person named": (
        "edit",
        {"file_path": "notes.txt", "old_string": "one", "new_string": "1"},
        (PROJECT,),
    ),
    "command": ("run", {"command": "python3 -c 1"}, (OF_RUN[False],)),
    "line": ("run", {"command": "true | cat"}, (OF_RUN[False],)),
    "argv": ("run", {"argv": ["bash", "-c", "true"]}, (OF_RUN[False],)),
    "script": ("run", {"command": "python3 scripts/hello.py"}, (OF_RUN[True],)),
    "script in a line": ("run", {"command": "python3 scripts/hello.py | cat"}, (OF_RUN[False], OF_RUN[True])),
    "script with an option": ("run", {"command": "python3 -u scripts/hello.py"}, (OF_RUN[False], OF_RUN[True])),
    "script in quotes": ("run", {"command": "bash -c 'python3 scripts/hello.py'"}, (OF_RUN[False], OF_RUN[True])),
    "script as input": ("run", {"command": "cat scripts/hello.py | python3"}, (OF_RUN[False], OF_RUN[True])),
    "script as a module": ("run", {"command": "python3 -m scripts.hello && true"}, (OF_RUN[False], OF_RUN[True])),
    "script after cd": ("run", {"command": "cd scripts && python3 hello.py"}, (OF_RUN[False], OF_RUN[True])),
    "unclear line": ("run", {"command": "for x in 1; do echo $x; done"}, (OF_RUN[False], OF_RUN[True])),
    "look at a script": ("run", {"command": "cat scripts/hello.py | head -3"}, (OF_RUN[False],)),
    "packages": ("run", {"command": "python3 -c 1", "packages": ["a"]}, (OF_RUN[False], GIVEN["packages"])),
    "fetch": ("fetch", {"url": "https://example.org/"}, ()),
    "plugin": ("boat_add", {}, ()),
    "server": ("notes__add", {}, ()),
}
WORDS = (*DENIABLE, "tool:run", "tool:*", "tool:notes__*", "tool:b*", "tool:read")


def guarded(box: Toolbox, policy: Policy) -> GuardedTools:
    of_server = replace(known(Served("notes__add")), by_server=True)
    tools = {"boat_add": known(Tool("boat_add")), "notes__add": of_server}
    return GuardedTools(
        tools=lambda: tools,
        always=Table(),
        built_in=box.tools,
        consents=box.kernel.consents,
        audit=box.kernel.audit,
        policy=policy,
    )


def is_denied(box: Toolbox, policy: Policy, act: str) -> bool:
    """Whether the call is refused although the person allowed everything that can be allowed."""
    tool, arguments, _ = ACTS[act]
    for word in ("run", "scripts", "read", "edit:./"):
        box.kernel.consents.allow(box.work.run, by_option(word))
    given = json.loads(json.dumps(arguments).replace("ROOT", str(box.root)))
    made = ToolCall(id=f"call-{act}", name=tool, arguments=json.dumps(given))
    work = replace(box.work, tools=("boat_add", "notes__add"), allowed=("*",))
    try:
        answer = asyncio.run(guarded(box, policy).call(work, made, given))
    except ConsentNeeded:
        return False
    is_refused = "[policy" in answer.text or "there is no tool called" in answer.text
    assert is_refused or not answer.failed, answer.text
    return is_refused


def is_explained_as_denied(box: Toolbox, policy: Policy, act: str) -> bool:
    tool, _, depends = ACTS[act]
    executor: Any = box.kernel.catalogue.create_executor("skill:painter")
    skill = replace(executor.skill, tools=("boat_add", "notes__add"), allowed_tools=("*",))
    executor = replace(executor, skill=skill)
    standing = Standing(shipped=False, trusted=True, granted=True, rung="bubblewrap")
    decisions = {one.what: one for one in explained(executor, standing, policy, tool)}
    denied = [what for what in (f"call {tool}", *depends) if decisions[what].verdict == "deny"]
    assert all("your settings: [policy" in decisions[what].rule for what in denied)
    return bool(denied)


@pytest.mark.parametrize("where", ["everywhere", "for this skill"])
@pytest.mark.parametrize("word", WORDS)
def test_each_word_denies_what_policy_explain_says(tmp_path: Path, word: str, where: str) -> None:
    denied = frozenset({word})
    policy = Policy(denied) if where == "everywhere" else Policy(skills={"painter": denied})
    policy = policy._replace(fetch=("example.org",))
    box = toolbox(tmp_path.resolve(), named=("notes.txt",), hosts=policy.fetch, policy=policy)
    found = {act: (is_denied(box, policy, act), is_explained_as_denied(box, policy, act)) for act in ACTS}
    assert {act: real for act, (real, _) in found.items()} == {act: told for act, (_, told) in found.items()}


FILES = {act for act, (_, _, depends) in ACTS.items() if PROJECT in depends}
WITH_SCRIPTS = {act for act, (_, _, depends) in ACTS.items() if depends == (OF_RUN[False], OF_RUN[True])}
COMMANDS = {"command", "line", "argv", "packages", "look at a script", *WITH_SCRIPTS}
DENIES: dict[str, set[str]] = {
    "shell": COMMANDS,
    "script": {"script", *WITH_SCRIPTS},
    "skills": {"script", *WITH_SCRIPTS},
    "project": FILES,
    "packages": {"packages"},
    "network": {"fetch"},
    "mcp": {"server"},
    "tools": set(ACTS),
    "tool:run": {*COMMANDS, "script"},
}


@pytest.mark.parametrize("word", DENIES)
def test_each_word_denies_its_own_kind_of_work(tmp_path: Path, word: str) -> None:
    policy = Policy(frozenset({word}), fetch=("example.org",))
    box = toolbox(tmp_path.resolve(), named=("notes.txt",), hosts=policy.fetch, policy=policy)
    assert {act for act in ACTS if is_denied(box, policy, act)} == DENIES[word]


def test_without_shell_and_script_there_is_no_run(tmp_path: Path) -> None:
    policy = Policy(frozenset({"shell", "script"}))
    box = toolbox(tmp_path.resolve(), policy=policy)
    assert "run" not in [spec.name for spec in guarded(box, policy).offered(box.work)]


def test_a_denial_of_one_skill_denies_nothing_to_another(tmp_path: Path) -> None:
    policy = Policy(skills={"sailor": frozenset(DENIABLE)})
    box = toolbox(tmp_path.resolve(), policy=policy)
    assert not any(is_denied(box, policy, act) for act in ("read", "command", "script", "plugin", "server"))


def test_a_denied_project_is_not_shown_to_a_command_either(tmp_path: Path) -> None:
    box = toolbox(tmp_path.resolve(), named=("notes.txt",), policy=Policy(frozenset({"project"})))
    box.kernel.consents.allow(box.work.run, by_option("run"))
    assert "exit code 1" in box.call("run", command=f"cat {box.root}/notes.txt").text

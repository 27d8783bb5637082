"""Everything that the pages for people and host agents name exists; missing things are reported."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from docs.page_claims import TOP, problems
from navigator_kernel.bootstrap.places import find_root
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.config.settings import load_settings
from navigator_kernel.language.wording import sentences
from tables import cases

COMMANDS = sorted(TOP.glob(".claude/commands/*.md"))
PAGES = sorted(
    [
        *(TOP / name for name in ("CLAUDE.md", "README.md", "README.zh-CN.md")),
        *(TOP / "docs" / name for name in ("commands.md", "filesystem.md", "skills-mapping.md")),
        *(path for folder in ("guides", "concepts", "reference") for path in TOP.glob(f"docs/{folder}/*.md")),
        *(path for folder in ("commands", "agents") for path in TOP.glob(f".claude/{folder}/*.md")),
    ]
)

HOST_PAGES = [page for page in PAGES if ".claude" in page.parts or page.name == "CLAUDE.md"]


@pytest.mark.requirement("SAF-4", "SAF-6")
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(TOP).as_posix())
def test_every_command_flag_file_and_chore_that_a_page_names_is_there(page: Path) -> None:
    assert problems(page.read_text("utf-8")) == []


@pytest.mark.requirement("SAF-6")
@pytest.mark.parametrize("page", HOST_PAGES, ids=lambda path: path.relative_to(TOP).as_posix())
def test_a_page_for_host_agents_calls_only_what_the_registry_lists(page: Path) -> None:
    registry = (TOP / "docs" / "commands.md").read_text("utf-8")
    calls = re.findall(r"python bin/(\w+\.py)((?:\s+[a-z]+(?![\w-]))*)", page.read_text("utf-8"))
    named = [" ".join([f"python bin/{script}", *words.split()]) for script, words in calls]
    assert [
        call for call in named if f"| `{call.replace('python bin/navigator.py ', 'navigator ')}" not in registry
    ] == []


@cases("text, expected", lists=True)
def test_a_missing_script_command_flag_file_or_chore_is_reported(text: str, expected: list[str]) -> None:
    assert problems(text) == expected


@cases("text")
def test_existing_commands_flags_files_and_chores_are_not_reported(text: str) -> None:
    assert problems(text) == []


@pytest.mark.requirement("SAF-4")
def test_the_protocol_is_short_and_names_what_the_document_asks_for() -> None:
    text = (TOP / "CLAUDE.md").read_text("utf-8")
    assert len(text.splitlines()) <= 80
    words = """skill_manager.py list|docs/skills-mapping.md|docs/commands.md|docs/filesystem.md|worker_agent.md|
        skills_agent.md|mcp_agent.md|task_spec|params|constraints|return_spec|success|partial|pending|error|timeout|
        停止|切换任务|我来处理|At most three steps|mybox/workflows/|global pip|Two failures in a row|only below `mybox/`|
        [Logic Trace]|[Action Vector]|[State Update]"""
    assert [word for word in re.split(r"\|\s*", words) if word not in text] == []


# Slash commands


@pytest.mark.parametrize("page", COMMANDS, ids=lambda path: path.stem)
def test_a_slash_command_says_what_it_does_takes_and_may_call(page: Path) -> None:
    _, head, body = page.read_text("utf-8").split("---\n", 2)
    keys = yaml.safe_load(head)
    assert all(isinstance(value, str) and value for value in keys.values())
    assert {"description", "allowed-tools"} <= set(keys) <= {"description", "allowed-tools", "argument-hint"}
    assert ("$ARGUMENTS" in body) == ("argument-hint" in keys)


@pytest.mark.parametrize("page", COMMANDS, ids=lambda path: path.stem)
def test_a_slash_command_may_run_every_command_in_its_text_except_trust(page: Path) -> None:
    _, head, body = page.read_text("utf-8").split("---\n", 2)
    granted = tuple(grant.removesuffix(":*") for grant in re.findall(r"Bash\(([^)]*)\)", head))
    told = [" ".join(call.split()) for call in re.findall(r"`(python bin/[^`]*)`", body)]
    asked_of_the_person = "skill_manager.py trust"
    assert told
    assert [call for call in told if not call.startswith(granted) and asked_of_the_person not in call] == []


def test_slash_commands_are_read_by_the_kernel_without_a_remark_and_shadow_nothing() -> None:
    catalogue = Project(TOP, agents=False).catalogue
    names = {held.name for held in catalogue.list_resources() if held.type == "command" and held.level == "project"}
    assert names == {page.stem for page in COMMANDS}
    assert all(name.startswith("nav-") and f"/{name}" not in sentences()["chat.help"][0] for name in names)
    assert [note for note in catalogue.diagnostics() if "/.claude/commands/" in note.path] == []
    assert [name for name in names if catalogue.find(name) is not None] == []


@pytest.mark.parametrize("page", COMMANDS, ids=lambda path: path.stem)
def test_a_slash_command_is_never_offered_for_a_message(page: Path) -> None:
    said = yaml.safe_load(page.read_text("utf-8").split("---\n")[1])["description"]
    router = Project(find_root(TOP), load_settings(TOP), agents=False).router
    for text in (said, page.stem):
        assert not [held.name for held in router.retrieve(text, k=100).candidates if held.name.startswith("nav-")]
        assert router.recognise(text) is None


# bin/navigator.py


def start(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, str(TOP / "bin" / "navigator.py"), *words]
    env = {**os.environ, "PYTHONPATH": str(TOP / "kernel"), **more}
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60)


def test_the_script_of_the_whole_command_line_has_every_command() -> None:
    done = start("--help")
    assert done.returncode == 0
    assert all(f"\n  {name} " in done.stdout for name in ("ask", "route", "session", "skill", "why"))


@pytest.mark.requirement("SAF-1")
def test_the_script_of_the_whole_command_line_does_nothing_inside_a_run() -> None:
    done = start("--version", NAVIGATOR_PROCESS="x")
    assert (done.returncode, done.stdout) == (1, "")
    assert "not from inside a run" in done.stderr

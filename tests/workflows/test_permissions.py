"""Which steps may be repeated, and which consents a plan's yes covers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dispatch.orders import order
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.config.settings import load_settings
from navigator_kernel.turn.workflow_run import grants, installed, is_by_name, is_idempotent, order_problem
from navigator_kernel.values.workflow import Sandboxed, WorkflowPlan, WorkflowStep
from skill_repositories import skill_text
from tables import cases

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def kernel(tmp_path: Path) -> Project:
    runs = "command: python run.py\n"
    for name, head in {"prompt": "", "runs": runs, "again": f"{runs}idempotent: true\n"}.items():
        folder = tmp_path / ".claude/skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(skill_text(name, "does a thing", head))
        (folder / "run.py").write_text("")
    return Project(tmp_path, load_settings(tmp_path))


@pytest.mark.parametrize(("name", "may"), [("prompt", True), ("runs", False), ("again", True), ("missing", False)])
def test_a_skill_is_repeated_where_it_says_so_or_only_gives_its_text(kernel: Project, name: str, may: bool) -> None:
    assert is_idempotent(order("skills", f"skill:{name}"), kernel) is may


@pytest.mark.parametrize(("operation", "may"), [("list", True), ("read", True), ("call", False)])
def test_listing_and_reading_a_server_may_be_repeated_but_not_a_call(
    kernel: Project, operation: str, may: bool
) -> None:
    assert is_idempotent(order("mcp", "server:x", operation=operation), kernel) is may


@pytest.mark.parametrize(
    ("operation", "may"),
    [("skill.install", True), ("skill.list", True), ("skill.uninstall", False), ("script.run", False), ("skill", True)],
)
def test_worker_skill_commands_may_be_repeated_but_not_an_uninstall_or_a_script(
    kernel: Project, operation: str, may: bool
) -> None:
    assert is_idempotent(order("worker", "x", operation=operation), kernel) is may


def test_a_yes_by_name_becomes_one_to_bytes_only_with_the_install(kernel: Project) -> None:
    subject = kernel.catalogue.create_executor("skill:runs").consent
    granted = ("type_a:runs", "type_a:missing", "type_a:again@sha256:0", "skill.install x")
    assert installed(order("worker", "x", operation="skill.install"), granted, kernel) == (subject,)
    assert installed(order("worker", "x", operation="skill.update"), granted, kernel) == ()
    assert [is_by_name(one) for one in granted] == [True, True, False, False]


@cases("word, problem")
def test_a_file_that_a_step_may_not_read_is_named_with_the_reason(tmp_path: Path, word: str, problem: str) -> None:
    root, outside = tmp_path / "project", tmp_path / "outside.csv"
    own = root / "mybox/workspace/run-1"
    for path in (root / "data/in.csv", root / "data/secret/key", root / "other.csv", own / "out.csv", outside):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (root / "link").symlink_to(outside)
    sandbox = Sandboxed(read=("data",), forbidden=("data/secret",))
    expected = problem.format(outside=outside)
    assert order_problem(order(file=word), sandbox, (root, own)) == expected
    assert order_problem(order(optional={"arguments": [word]}), sandbox, (root, own)) == expected


def test_a_yes_to_a_plan_covers_installed_skills_and_skills_that_the_plan_installs(kernel: Project) -> None:
    def step(agent: str, skill: str, text: str) -> WorkflowStep:
        return WorkflowStep(text=text, skill=skill, agent=agent, input=text)

    steps = (
        step("skills", "coming", "/coming"),  # not installed at this step, so the plan cannot cover it
        step("worker", "", "install coming from acme/skills"),
        step("skills", "coming", "/coming"),
        step("skills", "ghost", "/ghost"),
        step("skills", "runs", "/runs"),
        step("skills", "runs", "/runs again"),
        step("mcp", "files", "mcp list files"),
    )
    here = kernel.catalogue.create_executor("skill:runs").consent
    found = grants(WorkflowPlan(name="x", description="", steps=steps), kernel)
    assert found == ("skill.install acme/skills coming", "type_a:coming", here)
    assert grants(WorkflowPlan(name="x", description="", steps=steps[:1]), kernel) == ()

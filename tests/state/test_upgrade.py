"""A project and a home of an earlier version are migrated once, with a line that says so, and without their grants."""

from __future__ import annotations

import json
import os
import shutil
import time
from typing import TYPE_CHECKING

import pytest

from cli.support import Place
from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.stores.journal import SqliteJournal
from navigator_kernel.adapters.stores.sessions import SqliteSessions
from navigator_kernel.bootstrap.places import OLD_STATE, has_old_state, open_consents, project_state
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.bootstrap.projects import _MOVED, upgrade
from navigator_kernel.config.settings import user_state
from navigator_kernel.values.packet import Context, Packet, Params, TaskSpec
from navigator_kernel.values.request import PendingApproval, Said, Session
from navigator_kernel.values.workflow import RunState, WorkflowPlan, WorkflowStep
from skill_repositories import skill_text

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.requirement("X-43")
PACKET = Packet(
    agent="worker",
    task_spec=TaskSpec(intent="!id", operation="shell", target="id"),
    params=Params(required={"command": "id"}),
    context=Context(run="r", step=0, idempotency_key="k"),
)


def make_old_state(root: Path) -> None:
    """Writes the state that an earlier version left in a project in which everything had been granted."""
    old = root / "mybox" / "state"
    writer, clock = FolderWriter([root]), SystemClock()
    approval = PendingApproval(packets=(PACKET,), subject="*", asked_at=clock.now())
    session = Session(id="work", turn=3, approval=approval, grants=("*", "shell:id@sha256:0"), retry=(PACKET,))
    said = [Said(role="user", text="hello", run="r", ts=clock.now())]
    SqliteSessions(old / "sessions.sqlite", writer, clock).save(session, said)
    plan = WorkflowPlan(
        name="plan", description="two steps", steps=(WorkflowStep(text="a", input="/a", skill="a", agent="skills"),)
    )
    journal = SqliteJournal(old / "workflows.sqlite", writer, clock)
    states: dict[str, RunState] = {"running": "running", "ended": "done"}
    for token, state in states.items():
        journal.propose(token, "work", plan, ["*"])
        journal.mark(token, state, ["*"])
    lessons = {"v": 1, "skills": {"pdf": [{"text": "merge these", "at": clock.now()}]}}
    (old / "lessons.json").write_text(json.dumps(lessons))
    (old / "audit.jsonl").write_text("{}\n")
    (root / "mybox" / "logs" / "tapes").mkdir(parents=True)
    (root / "mybox" / "logs" / "tapes" / "r.json").write_text("{}")
    (root / "mybox" / "cache" / "repos" / "x").mkdir(parents=True)


def make_old_home() -> None:
    entries = {
        "type_a:a@https://h/a.git#1:a@sha256:1": {"note": "installed by command", "ts": "2026-01-01"},
        "type_a:b@sha256:2": {"note": "navigator skill trust b", "ts": "2026-01-01"},
    }
    user_state().mkdir(parents=True)
    (user_state() / "trust.json").write_text(json.dumps({"v": 1, "trusted": entries}))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_old_home()
    folder = tmp_path / "project"
    make_old_state(folder)
    return folder


def test_the_names_that_are_looked_for_are_those_that_are_moved() -> None:
    assert set(OLD_STATE) == set(_MOVED)


def test_an_upgrade_keeps_history_lessons_and_the_audit_log(root: Path) -> None:
    upgrade(root)
    assert [one.text for one in Project(root, agents=False).sessions.history("work")] == ["hello"]
    assert Project(root, agents=False).lessons.of("pdf") == ("merge these",)
    assert (project_state(root).folder / "audit-before.jsonl").read_text() == "{}\n"


def test_a_session_brings_no_grant_no_waiting_approval_and_nothing_to_try_again(root: Path) -> None:
    upgrade(root)
    session = Project(root, agents=False).sessions.load("work")
    assert (session.turn, session.grants, session.approval, session.retry) == (3, (), None, ())


def test_a_run_asks_for_its_plan_again_and_one_that_has_ended_stays_so(root: Path) -> None:
    upgrade(root)
    runs = {run.token: (run.state, run.granted) for run in Project(root, agents=False).journal.listed()}
    assert runs == {"running": ("proposed", ()), "ended": ("done", ())}


def test_trust_that_installing_gave_ends_and_trust_that_the_person_gave_stays(root: Path) -> None:
    said = upgrade(root)
    assert open_consents().subjects() == ("type_a:b@sha256:2",)
    assert "approvals that installing gave were dropped (1)" in said[-1]


def test_trust_of_an_earlier_version_does_not_come_back_with_the_next_approval(root: Path) -> None:
    upgrade(root)
    open_consents().trust("type_a:c@sha256:3", note="navigator skill trust c")
    assert open_consents().subjects() == ("type_a:b@sha256:2", "type_a:c@sha256:3")


def test_it_says_what_it_moved_and_is_not_done_twice(root: Path) -> None:
    first = upgrade(root)
    assert "sessions.sqlite" in first[0] and "asked for again" in first[1]
    assert not has_old_state(root) and upgrade(root) == []
    assert not (root / "mybox" / "cache" / "repos").exists()


def test_a_second_project_of_the_home_is_moved_when_it_is_entered(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    make_old_state(other)
    assert upgrade(root) and upgrade(other)


def test_old_state_in_a_clone_is_not_moved_to_a_new_home(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    make_old_state(clone)
    assert upgrade(clone) == []
    assert Project(clone, agents=False).sessions.listed() == []


def test_old_state_in_a_clone_is_not_moved_to_a_home_used_only_by_this_version(tmp_path: Path) -> None:
    here = Place(root=tmp_path / "mine")
    here.write({".claude/skills/word/SKILL.md": skill_text("word")})
    assert here.run("ask", "--show-prompt", "/word hello").code == 0
    assert (user_state() / "cache").is_dir()
    clone = tmp_path / "clone"
    make_old_state(clone)
    assert upgrade(clone) == []
    assert Project(clone, agents=False).sessions.listed() == []


def test_a_note_that_cannot_be_read_allows_nothing(root: Path) -> None:
    (user_state() / "home.json").write_text("{ broken")
    assert upgrade(root) == []


def test_old_state_in_a_clone_is_not_moved_after_the_upgrade(root: Path, tmp_path: Path) -> None:
    upgrade(root)
    clone = tmp_path / "clone"
    make_old_state(clone)
    os.utime(clone / "mybox" / "state" / "sessions.sqlite", (0, 0))  # a time that an archive can set
    assert upgrade(clone) == []
    assert Project(clone, agents=False).sessions.listed() == []


def test_a_file_that_is_not_a_database_stays_where_it_is(tmp_path: Path) -> None:
    make_old_home()
    old = tmp_path / "p" / "mybox" / "state"
    old.mkdir(parents=True)
    (old / "sessions.sqlite").write_bytes(b"not a database, and long enough to be looked at" * 40)
    (old / "usage.json").write_text('{"v": 1, "uses": {"pdf": 2}}')
    said = upgrade(tmp_path / "p")
    assert "usage.json" in said[0] and "sessions.sqlite" not in said[0]
    assert (old / "sessions.sqlite").exists()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    make_old_home()
    secret = tmp_path / "secret"
    secret.write_text("{}")
    old = tmp_path / "p" / "mybox" / "state"
    old.mkdir(parents=True)
    (old / "lessons.json").symlink_to(secret)
    assert upgrade(tmp_path / "p") == [] and secret.exists()


def test_an_upgrade_that_was_killed_before_it_removed_the_old_files_is_finished(root: Path) -> None:
    before = root.parent / "before"
    shutil.copytree(root / "mybox" / "state", before)
    upgrade(root)
    for path in before.iterdir():
        shutil.move(path, root / "mybox" / "state" / path.name)
    (user_state() / "home.json").write_text(json.dumps({"v": 2, "upgraded_at": time.time_ns()}))
    upgrade(root)
    assert not has_old_state(root)
    assert [one["id"] for one in Project(root, agents=False).sessions.listed()] == ["work"]
    assert Project(root, agents=False).sessions.load("work").grants == ()

"""A clone may name things, but nothing that it brings allows or proves anything (X-43)."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from cli.support import Place, below, type_a
from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.sources.repo_cache import RepoCache
from navigator_kernel.adapters.stores.journal import SqliteJournal
from navigator_kernel.adapters.stores.sessions import SqliteSessions
from navigator_kernel.bootstrap.places import open_consents
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.values.request import Session
from navigator_kernel.values.workflow import WorkflowPlan, WorkflowStep
from skill_repositories import commit, git, make_repo, skill_text

pytestmark = [pytest.mark.requirement("X-43", "SAF-1"), pytest.mark.sample(1)]

CANARY = "import pathlib\npathlib.Path('canary').write_text('ran')\nprint('ran')\n"
TOOL = below(".claude/skills/tool", type_a("tool", CANARY))


@pytest.fixture
def victim(tmp_path: Path) -> Place:
    """The clone of a person who never used navigator; the test fills it."""
    root = tmp_path / "clone"
    (root / ".git").mkdir(parents=True)
    place = Place(root=root)
    place.write(TOOL)
    return place


def ran(place: Place) -> bool:
    return any(place.root.rglob("canary"))


@pytest.mark.wide
@pytest.mark.parametrize("message", ["/tool x", "!touch canary", "run tool"])
def test_a_session_that_grants_everything_grants_nothing(victim: Place, message: str) -> None:
    store = SqliteSessions(
        victim.root / "mybox" / "state" / "sessions.sqlite", FolderWriter([victim.root]), SystemClock()
    )
    store.save(Session(id="work", turn=1, grants=("*",)))
    assert victim.run("ask", "--session", "work", message).code != 0
    assert not ran(victim)


def test_a_session_of_a_clone_is_not_there(victim: Place) -> None:
    store = SqliteSessions(
        victim.root / "mybox" / "state" / "sessions.sqlite", FolderWriter([victim.root]), SystemClock()
    )
    store.save(Session(id="work", turn=1, grants=("*",)))
    assert victim.json("session", "list")["sessions"] == []


@pytest.mark.parametrize("words", [("resume",), ("resume", "--yes"), ("approve",)], ids=" ".join)
def test_a_run_that_a_clone_contains_cannot_be_continued(victim: Place, words: tuple[str, ...]) -> None:
    step = WorkflowStep(text="a step", input="/tool x", skill="tool", agent="skills")
    plan = WorkflowPlan(name="plan", description="a plan", steps=(step,))
    journal = SqliteJournal(
        victim.root / "mybox" / "state" / "workflows.sqlite", FolderWriter([victim.root]), SystemClock()
    )
    journal.propose("20260101-000000000-000000", "work", plan, ["*"])
    journal.mark("20260101-000000000-000000", "running", ["*"])
    command, *more = words
    assert victim.run("workflow", command, "20260101-000000000-000000", *more).code == 4
    assert not ran(victim)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """An official repository with a harmless `tool`."""
    return make_repo(tmp_path, below("tool", type_a("tool", "print('ran')\n")), name="official")


def install_as_another_person(place: Place, tmp_path: Path, source: Path, *more: str) -> None:
    """Installs the skill as the author of the clone did, in the author's own home."""
    home = {"HOME": str(tmp_path / "author"), "XDG_STATE_HOME": "", "XDG_CACHE_HOME": "", "XDG_CONFIG_HOME": ""}
    (tmp_path / "author").mkdir(exist_ok=True)
    done = place.run("skill", "install", f"file://{source}", "--skill", "tool", *more, env=home)
    assert done.code == 0, done.err


@pytest.fixture
def cloned(tmp_path: Path, source: Path) -> Place:
    """A clone with a skill that its author installed: folder, receipt, lock and database."""
    place = Place(root=tmp_path / "clone")
    (place.root / ".git").mkdir(parents=True)
    install_as_another_person(place, tmp_path, source)
    return place


def trusted() -> tuple[str, ...]:
    return open_consents().subjects()


@pytest.mark.wide
def test_a_skill_that_its_author_installed_is_asked_about(cloned: Place) -> None:
    assert cloned.run("ask", "/tool x").code == 9


@pytest.mark.wide
@pytest.mark.parametrize("words", [("install", "--frozen"), ("update",), ("rollback",), ("verify",)], ids=" ".join)
def test_no_command_on_what_a_clone_locks_makes_trust(cloned: Place, source: Path, words: tuple[str, ...]) -> None:
    commit(source, below("tool", type_a("tool", CANARY)))
    if words == ("install", "--frozen"):
        shutil.rmtree(cloned.root / ".claude" / "skills")
    cloned.run("skill", *words)
    assert trusted() == ()
    assert cloned.run("ask", "/tool x").code == 9


@pytest.mark.wide
def test_an_update_of_an_installed_skill_keeps_the_persons_consent(tmp_path: Path, source: Path) -> None:
    place = Place(root=tmp_path / "own")
    (place.root / ".git").mkdir(parents=True)
    place.said("skill", "install", f"file://{source}", "--skill", "tool")
    commit(source, below("tool", type_a("tool", "print('newer')\n")))
    place.said("skill", "update")
    assert "newer" in place.said("ask", "/tool x")


TOOL_AT_TOP = below("tool", type_a("tool", CANARY))


def lie(place: Place, tmp_path: Path) -> None:
    """Installs the tool of an evil repository, with a receipt that names an official one."""
    evil = make_repo(tmp_path, TOOL_AT_TOP, name="evil")
    shutil.rmtree(place.root / ".claude")
    install_as_another_person(place, tmp_path, evil)
    receipt = place.root / ".claude" / "skills" / ".navigator" / "tool.json"
    body: dict[str, Any] = json.loads(receipt.read_text())
    body["source"] = "https://github.com/anthropics/skills.git"
    receipt.write_text(json.dumps(body))


@pytest.mark.wide
def test_an_official_origin_that_a_receipt_claims_is_not_shown_as_its_source(victim: Place, tmp_path: Path) -> None:
    lie(victim, tmp_path)
    rows = {one["name"]: one for one in victim.json("skill", "list")["skills"]}
    assert "anthropics" not in rows["tool"]["source"]
    asked = victim.run("ask", "/tool x")
    assert asked.code == 9 and "anthropics" not in asked.out + asked.err


@pytest.mark.wide
def test_trust_in_a_skill_whose_receipt_lies_is_bound_to_its_bytes_and_not_to_the_claim(
    victim: Place, tmp_path: Path
) -> None:
    lie(victim, tmp_path)
    victim.said("skill", "trust", "tool")
    assert trusted() and not any("anthropics" in subject for subject in trusted())


@pytest.mark.wide
@pytest.mark.parametrize("more", [("--offline",), ("--offline", "--ref", "{commit}")], ids=["offline", "commit"])
def test_a_cache_that_a_clone_brings_is_not_taken_for_the_repository(
    victim: Place, tmp_path: Path, source: Path, more: tuple[str, ...]
) -> None:
    """The author's cache under the official URL, moved to where an earlier version of navigator looked for it."""
    official = "https://github.com/anthropics/skills.git"
    (tmp_path / "project" / ".git").mkdir(parents=True)
    install_as_another_person(Place(root=tmp_path / "project"), tmp_path, source)
    brought = victim.root / "mybox" / "cache" / "repos"
    shutil.copytree(tmp_path / "author" / ".cache" / "navigator" / "repos", brought)
    (held,) = [path for path in brought.iterdir() if path.is_dir()]
    (note,) = brought.glob("*.json")
    name = RepoCache(brought).path(official).name
    body = json.loads(note.read_text())
    note.unlink()
    (brought / f"{name}.json").write_text(json.dumps({**body, "url": official}))
    held.rename(brought / name)
    words = [word.format(commit=git(source, "rev-parse", "HEAD").strip()) for word in more]
    done = victim.run("skill", "install", "anthropics/skills", "--skill", "tool", "--as", "mine", *words)
    assert done.code == 7, done.out
    assert not (victim.root / ".claude" / "skills" / "mine").exists()


MAPPING = "| name | description | upstream_repo | subpath |\n|---|---|---|---|\n| `pdf` | x | {repo} | pdf |\n"


@pytest.mark.parametrize("region", ["", "<!-- observed: begin -->\n"], ids=["by hand", "observed"])
def test_a_bare_name_is_not_sent_where_the_page_of_a_clone_says(victim: Place, tmp_path: Path, region: str) -> None:
    evil = make_repo(tmp_path, {"pdf/SKILL.md": skill_text("pdf")}, name="evil")
    end = "<!-- observed: end -->\n" if region else ""
    victim.write({"docs/skills-mapping.md": f"{region}{MAPPING.format(repo=f'file://{evil}')}{end}"})
    nowhere = {"https_proxy": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9"}
    done = victim.run("skill", "install", "pdf", env=nowhere)
    assert done.code == 7 and not (victim.root / ".claude" / "skills" / "pdf").exists()
    assert "evil" not in done.out


def test_a_name_that_only_the_page_of_a_clone_knows_is_refused_with_the_command_that_would_do_it(
    victim: Place, tmp_path: Path
) -> None:
    evil = make_repo(tmp_path, {"odd/SKILL.md": skill_text("odd-skill")}, name="evil")
    victim.write({"docs/skills-mapping.md": MAPPING.format(repo=f"file://{evil}").replace("`pdf`", "`odd-skill`")})
    done = victim.run("skill", "install", "odd-skill")
    assert done.code == 4 and f"navigator skill install file://{evil} --skill odd-skill" in done.err


def test_the_examples_of_a_clone_are_not_read(victim: Place) -> None:
    example = {"v": 1, "skills": {"tool": [{"text": "say hello to everybody", "at": "2026-01-01T00:00:00.000Z"}]}}
    victim.write(
        {
            "mybox/state/lessons.json": json.dumps(example),
            "mybox/state/usage.json": json.dumps({"v": 1, "uses": {"tool": 99}}),
            "mybox/state/disabled.json": json.dumps({"v": 1, "disabled": ["word-count"]}),
        }
    )
    assert Project(victim.root, agents=False).lessons.all() == {}
    assert any(one["name"] == "word-count" and one["enabled"] for one in victim.json("skill", "list")["skills"])


def test_the_record_of_a_clone_is_not_shown(victim: Place) -> None:
    line = json.dumps({"v": 1, "ts": "2026-01-01T00:00:00.000Z", "event": "trusted", "subject": "x", "prev": ""})
    victim.write({"mybox/state/audit.jsonl": f"{line}\n"})
    assert "trusted" not in victim.run("log").out
    assert os.path.lexists(victim.root / "mybox" / "state" / "audit.jsonl")

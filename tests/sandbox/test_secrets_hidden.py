"""A file that somebody else named is refused wherever `@` would refuse it, whichever way it is requested."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from cli.support import Place, below, place_in, type_a
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.processes.process import ProcessRunner
from navigator_kernel.errors import Refused
from navigator_kernel.sandbox import confinement, contain
from navigator_kernel.sandbox.backends import SandboxBackend, rungs
from navigator_kernel.sandbox.confinement import secret_paths
from navigator_kernel.sandbox.contain import ContainedRunner
from navigator_kernel.values.job import Job
from person_state import accept
from skill_repositories import git
from tables import table

pytestmark = pytest.mark.requirement("SAF-1", "X-18")

SECRET = "hunter2hunter2"
HIDDEN = table(__file__, "HIDDEN")
SHOWN = ("README.md", "a/.env.example", "deep/er/id_ed25519.pub", "a/config", ".gitignore", "credentials/a.py")
READS = """import json, os, sys
found = {}
for path in sys.argv[2:]:
    try:
        found[path] = open(os.path.join(sys.argv[1], path)).read()
    except OSError as error:
        found[path] = type(error).__name__
print(json.dumps(found))
"""
RUNGS = [pytest.param(rung, id=rung.name) for rung in rungs()]


@pytest.fixture
def here(tmp_path: Path) -> Place:
    place = place_in(tmp_path)
    place.write(dict.fromkeys(HIDDEN, SECRET) | dict.fromkeys(SHOWN, "shown"))
    return place


def read_by(rung: SandboxBackend, root: Path, kept: Path, *paths: str, whole: bool = True) -> dict[str, str]:
    """What a process under `rung` that may read the project gets for each of `paths`."""
    cwd = root / "mybox" / "workspace" / "r"
    cwd.mkdir(parents=True, exist_ok=True)
    code = root.parent / "reads.py"
    code.write_text(READS)
    argv = (sys.executable, str(code), str(root), *paths)
    reads = (root, code) if whole else (code,)
    job = Job(actor="type_a", subject="x", digest="", run="r", argv=argv, cwd=cwd, timeout=30.0, reads=reads)
    runner = ContainedRunner(ProcessRunner(), kept / "sandbox.json", lambda: FolderWriter([kept]))
    done = asyncio.run(runner.run(job))
    assert done.exit_code == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("rung", RUNGS)
def test_a_process_that_reads_the_project_cannot_read_secret_files(
    here: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rung: SandboxBackend
) -> None:
    monkeypatch.setattr(contain, "rungs", lambda: (rung,))
    (here.root / "link.txt").symlink_to(".env")
    found = read_by(rung, here.root, tmp_path / "kept", *HIDDEN, *SHOWN, "link.txt")
    assert [path for path in (*HIDDEN, "link.txt") if SECRET in found[path]] == []
    assert [found[path] for path in SHOWN] == ["shown"] * len(SHOWN)


@pytest.mark.wide
@pytest.mark.parametrize("rung", RUNGS)
def test_settings_of_git_are_read_unless_they_hold_a_password(
    here: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rung: SandboxBackend
) -> None:
    monkeypatch.setattr(contain, "rungs", lambda: (rung,))
    git(here.root, "init", "--quiet")
    git(here.root, "remote", "add", "origin", "ssh://git@host.example/a.git")
    assert "host.example" in read_by(rung, here.root, tmp_path / "kept", ".git/config")[".git/config"]
    git(here.root, "remote", "set-url", "origin", f"https://me:{SECRET}@host.example/a.git")
    assert SECRET not in read_by(rung, here.root, tmp_path / "kept", ".git/config")[".git/config"]
    assert read_by(rung, here.root, tmp_path / "kept", ".git/HEAD")[".git/HEAD"].startswith("ref:")


def test_a_skill_that_reads_the_project_and_a_command_get_no_secret(here: Place) -> None:
    reads = "import os\nroot = os.environ.get('R') or os.getcwd().split('/mybox/')[0]\n"
    reads += "for name in ('.env', 'server.key', 'README.md'):\n"
    reads += "    try: print(open(os.path.join(root, name)).read())\n    except OSError as error: print(error)\n"
    here.write(below(".claude/skills/looker", type_a("looker", reads, extra="reads: project\n")))
    done = here.run("ask", "/looker", "--yes", "--format", "raw")
    assert (done.code, "shown" in done.out, SECRET in done.out) == (0, True, False)
    shell = here.run("ask", f"!cat {here.root}/README.md {here.root}/.env", "--yes", "--format", "raw")
    assert SECRET not in shell.out + shell.err


def test_folders_that_the_search_does_not_reach_are_hidden(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confinement, "ENTRIES", 3)
    found = secret_paths(here.root, [here.root / "mybox"])
    assert {here.root / "a", here.root / "deep"} <= set(found)


def test_a_project_with_too_many_secrets_is_not_shown(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confinement, "HIDDEN", 3)
    with pytest.raises(Refused):
        secret_paths(here.root, [here.root / "mybox"])


@pytest.mark.parametrize("name", ["credentials.json", "rows.json", "mybox/logs/rows.json", "deep/rows.json"])
def test_a_file_that_a_parameter_names_is_refused_as_by_at(here: Place, name: str) -> None:
    here.write({"mybox/logs/rows.json": f'[{{"a": "{SECRET}"}}]', ".ssh/rows.json": f'[{{"a": "{SECRET}"}}]'})
    (here.root / "rows.json").symlink_to("credentials.json")
    (here.root / "deep" / "rows.json").symlink_to("../.ssh/rows.json")
    for asked in (f"/json-table {name}", f"/json-table @{name}", f"/json-table data={name}"):
        done = here.run("ask", asked, "--yes")
        assert SECRET not in done.out + done.err, asked
    assert here.run("ask", f"/json-table {name}", "--yes").code == 3


@pytest.mark.parametrize("target", ["../../../.env", "/etc/hostname", "../../../README.md"])
def test_a_skill_whose_text_is_a_link_out_of_its_folder_is_not_read(here: Place, target: str) -> None:
    head = "---\nname: linked\ndescription: does a thing\n---\n"
    here.write({".claude/skills/linked/other.md": "x"})
    for path in (".env", "README.md"):
        (here.root / path).write_text(f"{head}{SECRET}\n")
    (here.root / ".claude/skills/linked/SKILL.md").symlink_to(target)
    for words in (
        ("skill", "info", "linked"),
        ("skill", "list"),
        ("ask", "/linked"),
        ("skill", "export", "linked", "out"),
    ):
        done = here.run(*words)
        assert SECRET not in done.out + done.err, words
    assert here.run("skill", "info", "linked").code != 0
    assert not (here.root / "out").exists()


@pytest.mark.parametrize("folder", [".claude/skills", ".claude/commands"])
def test_a_single_file_that_is_a_link_to_secrets_is_not_read(here: Place, tmp_path: Path, folder: str) -> None:
    outside = tmp_path / "private.md"
    outside.write_text(f"---\nname: linked\ndescription: does a thing\n---\n{SECRET}\n")
    (here.root / folder).mkdir(parents=True, exist_ok=True)
    (here.root / folder / "linked.md").symlink_to(outside)
    done = here.run("ask", "/linked")
    assert SECRET not in done.out + done.err


def test_a_file_of_secrets_in_a_skill_is_neither_exported_nor_served(here: Place) -> None:
    text = "---\nname: keyed\ndescription: does a thing\n---\n# keyed\n\nDo it.\n"
    here.write(below(".claude/skills/keyed", {"SKILL.md": text, ".env": SECRET, "data.txt": "shown"}))
    accept(here.root, "keyed")
    done = here.run("skill", "export", "keyed", "out")
    assert (done.code, [path for path in here.root.glob("out/**/*") if path.name == ".env"]) == (3, [])
    from navigator_kernel.bootstrap.project import Project
    from navigator_kernel.errors import NotFound
    from navigator_kernel.mcp_server.skill_resources import SkillResources

    shelf = SkillResources(Project(here.root, agents=False).catalogue)
    uris = [one["uri"] for one in shelf.entry("skill://keyed/SKILL.md")["resources"]]
    assert (any(".env" in uri for uri in uris), "skill://keyed/data.txt" in uris) == (False, True)
    with pytest.raises(NotFound):
        shelf.read("skill://keyed/.env")

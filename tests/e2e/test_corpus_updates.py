"""Skills of the repositories that people use are updated: a planted growth is asked about, a harmless edit is not."""

from __future__ import annotations

import itertools
import re
import subprocess
from pathlib import Path

import pytest

from e2e.test_corpus_install import CORPUS, REPOSITORIES
from lifecycle.test_planted_growth import EDITS, PLANTED, actions, grow
from navigator_kernel.bootstrap.scanning.scanners import Scanners
from skill_repositories import commit, make_repo
from skills.conftest import make_project

MOST = 30  # skills of a repository
HARMLESS = 50  # edits of a repository
NAMES = [name for name, _ in REPOSITORIES]
PLAIN = re.compile(rb"---\n(?!(?:.*\n)*?(?:allowed-tools|hooks|command|network|[\w-]+-overrides):)(?:.*\n)+?---\n")


def some_skills(bundle: Path, work: Path) -> dict[str, str]:
    """The files of up to MOST skills whose manifests say nothing yet about what they may do, each in a folder of its
    own name."""
    bare = work / "bare.git"
    subprocess.run(["git", "clone", "--quiet", "--bare", str(bundle), str(bare)], check=True)
    listing = subprocess.run(
        ["git", "-C", str(bare), "grep", "-l", "^name:", "HEAD", "--", "*/SKILL.md"],
        check=True,
        capture_output=True,
        text=True,
    )
    folders = {Path(line.partition(":")[2]).parent.name: line for line in listing.stdout.splitlines()}
    files = {}
    for name, place in sorted(folders.items()):
        data = subprocess.run(["git", "-C", str(bare), "show", place], check=True, capture_output=True).stdout
        named = re.search(rf"(?m)^name: *{re.escape(name)} *$".encode(), data)
        if PLAIN.match(data) and named and not is_split_by_edits(data.decode()):
            files[f"{name}/SKILL.md"] = data.decode()
        if len(files) == MOST:
            break
    return files


def is_split_by_edits(text: str) -> bool:
    """Whether a fence would be cut by the edits: it is not closed, has others in it, or has headings."""
    parts = re.split(r"(?ms)^ *(?:```|~~~)", text)
    return len(parts) % 2 == 0 or "````" in text or any("\n## " in part for part in parts[1::2])


@pytest.mark.ci
@pytest.mark.requirement("LIF-5")
@pytest.mark.parametrize("name", NAMES)
def test_every_growth_of_a_changed_copy_is_asked_about_and_no_harmless_edit(
    tmp_path: Path, home: Path, name: str
) -> None:
    bundle = CORPUS / f"{name}.bundle"
    if not bundle.is_file():
        pytest.skip(f"the corpus has no {bundle.name}")
    up = make_repo(tmp_path, some_skills(bundle, tmp_path), name="up")
    scanner = Scanners()
    project = make_project(tmp_path / "project", home, scan=scanner)
    try:
        installed = [one["name"] for one in project.run("install", source=f"file://{up}", all=True)["skills"]]
        assert len(installed) >= len(PLANTED)
        edits = itertools.islice(itertools.cycle(EDITS.items()), HARMLESS)
        asked, edited = dict[str, str](), 0
        while batch := list(zip(installed, edits, strict=False)):
            changed = {}
            for skill, (_, edit) in batch:
                before = (up / skill / "SKILL.md").read_bytes().decode()
                head, body = re.split(r"(?<=\n---\n)", before.replace("\r\n", "\n"), maxsplit=1)
                changed[f"{skill}/SKILL.md"] = head + edit(body) + "\n"
            commit(up, changed)
            done = actions(project.run("update"))
            asked |= {skill: kind for skill, (kind, _) in batch if done[skill] not in {"updated", "kept"}}
            edited += len(batch)
        assert (edited, asked) == (HARMLESS, {})
        grown = dict(zip(installed, PLANTED, strict=False))
        grow(up, {skill: PLANTED[kind] for skill, kind in grown.items()})
        done = actions(project.run("update"))
        assert {kind for skill, kind in grown.items() if done[skill] != "pending"} == set()
        assert len(grown) == len(PLANTED) == 12
    finally:
        scanner.close()

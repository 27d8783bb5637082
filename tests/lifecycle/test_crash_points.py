"""A killed command, or one whose disk fails, leaves all as it was or all done (X-38; issue 4, item 5)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cli.support import LIMIT, MODULE, Place, environment, place_in
from lifecycle.harness import FAULTS, Case, case_of, complaints, hit, need_strace, points_of, staged
from navigator_kernel.skills.install.apply import INTENT
from skill_repositories import commit, git, make_repo, skill_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SAMPLE = 5  # points of each case that `make test` tries
FILES = {
    "skills/alpha/SKILL.md": skill_text("alpha", "first of two"),
    "skills/alpha/run.py": "print(1)\n",
    "skills/beta/SKILL.md": skill_text("beta", "second of two"),
    "skills/beta/deep/er/data.txt": "data\n",
}
CLOSER = "skill install {} --skill gamma --offline"


@pytest.fixture
def ground(tmp_path: Path) -> tuple[Place, Path, Path]:
    """A project with one skill, and two repositories: the skill's own, and one with two other skills."""
    need_strace()
    place = place_in(tmp_path)
    first = make_repo(tmp_path, {"gamma/SKILL.md": skill_text("gamma", "stays")}, name="first", partial=False)
    second = make_repo(tmp_path, FILES, name="second", partial=False)
    place.said("skill", "install", f"file://{first}")
    return place, first, second


Ground = tuple[Place, Path, Path]


def first_case(ground: Ground) -> Case:
    place, first, _ = ground
    for name in (".claude", "docs", "skills.lock.json"):
        path = place.root / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    words = ["skill", "install", f"file://{first}"]
    return case_of("first", place, words, [*words, "--offline"])


def install_case(ground: Ground) -> Case:
    place, first, second = ground
    return case_of("install", place, ["skill", "install", f"file://{second}", "--all"], closer(first))


def update_case(ground: Ground) -> Case:
    """One skill was changed, one has moved; the changed one was also edited here."""
    place, first, second = ground
    place.said("skill", "install", f"file://{second}", "--all")
    (place.root / ".claude/skills/alpha/run.py").write_text("print('mine')\n")
    git(second, "mv", "skills/beta", "skills/elsewhere")
    commit(second, {"skills/alpha/SKILL.md": skill_text("alpha", "newer"), "skills/alpha/new.py": "print(2)\n"})
    return case_of("update", place, ["skill", "update", "--force"], closer(first))


def uninstall_case(ground: Ground) -> Case:
    place, first, second = ground
    place.said("skill", "install", f"file://{second}", "--all")
    return case_of("uninstall", place, ["skill", "uninstall", "alpha", "beta"], closer(first))


def link_case(ground: Ground) -> Case:
    """An installed skill gets its link, another one comes with its own."""
    place, first, second = ground
    place.said("skill", "install", f"file://{second}", "--skill", "alpha")
    words = ["skill", "install", f"file://{second}", "--all", "--target", "agents", "--link"]
    return case_of("link", place, words, closer(first))


def unlink_case(ground: Ground) -> Case:
    place, first, second = ground
    place.said("skill", "install", f"file://{second}", "--all", "--target", "agents", "--link")
    return case_of("unlink", place, ["skill", "uninstall", "alpha", "beta"], closer(first))


def agents_case(ground: Ground) -> Case:
    """A copy in .agents/skills, beside one of the same name in .claude/skills."""
    place, _, second = ground
    place.said("skill", "install", f"file://{second}", "--skill", "alpha")
    words = ["skill", "install", f"file://{second}", "--all", "--target", "agents"]
    return case_of("agents", place, words, [*words, "--offline"])


def repair_case(ground: Ground) -> Case:
    place, _, second = ground
    place.said("skill", "install", f"file://{second}", "--all")
    (place.root / ".claude/skills/skills.db").write_bytes(b"\0" * 40)
    (place.root / "skills.lock.json").unlink()
    return case_of("repair", place, ["skill", "repair"], ["skill", "repair"])


def rollback_case(ground: Ground) -> Case:
    place, first, second = ground
    place.said("skill", "install", f"file://{second}", "--skill", "alpha")
    place.said("skill", "uninstall", "alpha")
    place.said("skill", "install", f"file://{second}", "--skill", "beta")
    stamps = sorted(path.stem for path in (place.root / ".claude/skills/.navigator/locks").iterdir())
    return case_of("rollback", place, ["skill", "rollback", "--to", stamps[1]], closer(first))


CASES: Mapping[str, Callable[[Ground], Case]] = {
    "first": first_case,
    "install": install_case,
    "update": update_case,
    "uninstall": uninstall_case,
    "repair": repair_case,
    "rollback": rollback_case,
    "link": link_case,
    "unlink": unlink_case,
    "agents": agents_case,
}


def closer(repo: Path) -> list[str]:
    return CLOSER.format(f"file://{repo}").split()


#
@pytest.mark.ci
@pytest.mark.parametrize("name", ["install", "update", "uninstall", "repair", "link"])
def test_hit_at_any_of_a_few_calls_a_command_leaves_all_as_it_was_or_all_done(
    ground: Ground, tmp_path: Path, name: str
) -> None:
    case = CASES[name](ground)
    points = points_of(case, tmp_path)
    made = [(point, fault) for fault in FAULTS for point in points]
    step = len(made) // SAMPLE - 1
    wrong = [text for point, fault in made[step // 2 :: step] for text in complaints(case, point, fault, tmp_path)]
    assert not wrong, "\n".join(wrong)


#
@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", CASES)
def test_hit_at_any_call_a_command_leaves_all_as_it_was_or_all_done(
    ground: Ground, tmp_path: Path, name: str, fault: str
) -> None:
    case = CASES[name](ground)
    points = points_of(case, tmp_path)
    print(f"{name}, {fault}: {len(points)} calls")
    wrong = [text for point in points for text in complaints(case, point, fault, tmp_path)]
    assert not wrong, f"{len(wrong)} of {len(points)}\n" + "\n".join(wrong)


@pytest.mark.wide
def test_the_calls_that_can_be_hit_are_those_of_the_whole_change(ground: Ground, tmp_path: Path) -> None:
    """The harness sees the first and the last step of an install, and hits the step that it names."""
    case = install_case(ground)
    told = [point.what for point in points_of(case, tmp_path)]
    inner = "/.claude/skills/.navigator"
    intent = next(at for at, what in enumerate(told) if what.startswith("rename") and what.endswith(INTENT))
    moved = told.index(f"rename {inner}/*/new/alpha /.claude/skills/alpha")
    ended = told.index(f"unlink {inner}/{INTENT}")
    assert intent < moved < ended
    point = points_of(case, tmp_path)[moved]
    place, done = hit(case, point, "kill", tmp_path)
    assert done.code != 0
    assert not (place.root / ".claude/skills/alpha").exists()
    assert any(name.endswith(INTENT) for name in staged(place.root))


@pytest.mark.wide
def test_a_git_under_a_tracer_is_not_taken_for_one_that_hangs(ground: Ground) -> None:
    """A tracer learns that a process ended before the parent can reap it."""
    place, first, _ = ground
    traced = ["strace", "-f", "--seccomp-bpf", "-o", os.devnull, "-e", "trace=execve", *MODULE]
    words = [*traced, "skill", "info", f"file://{first}", "--json"]
    done = subprocess.run(words, cwd=place.root, env=environment({}), capture_output=True, timeout=LIMIT)
    assert (done.returncode, json.loads(done.stdout)["count"]) == (0, 1), done.stderr

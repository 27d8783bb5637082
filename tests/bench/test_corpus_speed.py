"""What the everyday commands cost with the public repositories of the corpus, beside the npm package `skills`.

The aims are those of issue 26, for a machine with nothing else to do; what is checked is the share of the peer's time,
and of bare Python where the peer has no such command.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.races import Cost, Race, Runner, Stopwatch, navigator, told
from scanning.real_corpus import bundles
from tables import cases

pytestmark = [pytest.mark.bench, pytest.mark.timeout(3_600)]

SMALL, LARGE, SEVERAL = "anthropics+skills", "sickn33+antigravity-awesome-skills", "ComposioHQ+awesome-claude-skills"
AIMS = {SMALL: 1.5, LARGE: 4.0}  # seconds for all skills of a repository
SHARE = 2  # times the time of the peer, which does not scan, hash or wait for the disk
ROUNDS = 3
Source = Callable[[str], str]


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    """The address of a repository of the corpus."""
    folder, found = tmp_path_factory.mktemp("corpus"), {one.stem: one for one in bundles()}

    def of(name: str) -> str:
        if name not in found:
            pytest.skip("the corpus is not here: set NAVIGATOR_CORPUS")
        bare = folder / f"{name}.git"
        if not bare.exists():
            subprocess.run(["git", "clone", "-q", "--bare", str(found[name]), str(bare)], check=True)
            for key in ("allowFilter", "allowAnySHA1InWant"):
                subprocess.run(["git", "-C", str(bare), "config", f"uploadpack.{key}", "true"], check=True)
        return f"file://{bare}"

    return of


def aimed(what: str, cost: Cost, aim: float, bare: Cost, capsys: pytest.CaptureFixture[str]) -> None:
    met = "met" if cost.wall - bare.wall <= aim else "missed"
    told(f"{what}: {cost}, beyond bare python {cost.wall - bare.wall:.2f} s (aim {aim} s: {met})", bare, capsys)


@pytest.mark.parametrize("name", [one.stem for one in bundles()] or [SMALL])
def test_all_skills_of_a_repository_are_scanned_and_installed_in_twice_the_peers_time(
    name: str, source: Source, race: Runner, capsys: pytest.CaptureFixture[str]
) -> None:
    url = source(name)
    done: Race = race(f"all of {name}", navigator("install", url, "--all"), lambda peer: peer.every(url))
    if name in AIMS:
        aimed(f"all of {name}", done.ours, AIMS[name], done.bare, capsys)
    assert len(list((done.ours.project / ".claude" / "skills").glob("*/SKILL.md"))) >= 10
    if done.theirs is not None:
        assert done.ours.wall <= SHARE * done.theirs.wall


@pytest.fixture(scope="module")
def seed(source: Source, tmp_path_factory: pytest.TempPathFactory) -> Cost:
    """A project with one skill, and then all of two repositories; its cache has the three."""
    from bench.races import environment

    watch = Stopwatch(tmp_path_factory.mktemp("seed"), environment(tmp_path_factory))
    first = watch.run(navigator("install", source(SMALL), "--skill", "algorithmic-art"))
    second = watch.run(navigator("install", source(SEVERAL), "--all"), first.project, cache=first.cache)
    return watch.run(navigator("install", source(LARGE), "--all", "-q"), second.project, cache=second.cache)


@cases("what, words, aim")
def test_a_command_among_all_skills(
    what: str,
    words: tuple[str, ...],
    aim: float,
    seed: Cost,
    watch: Stopwatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bare, ours = watch.medians(
        [sys.executable, "-c", "pass"], navigator(*words), seed=seed.project, cache=seed.cache, rounds=ROUNDS
    )
    aimed(f"{what}, among {count(seed.project):,} skills", ours, aim, bare, capsys)
    assert ours.cpu > bare.cpu


PYTHON = [sys.executable, "-m", "navigator_kernel.cli.main"]
ROUTE, INDEX = [*PYTHON, "route", "merge these pdf files"], [*PYTHON, "route", "--index"]


def test_a_first_route_and_the_next_search(seed: Cost, watch: Stopwatch, capsys: pytest.CaptureFixture[str]) -> None:
    """As it is right after an install by a script: nothing was made in the background."""
    search = navigator("search", "excel")
    bare, first = watch.medians(
        [sys.executable, "-c", "pass"], ROUTE, seed=seed.project, cache=seed.cache, rounds=ROUNDS
    )
    aimed(f"first route among {count(seed.project):,} skills, which makes the index", first, 1.5, bare, capsys)
    again = _middle([watch.run(search, here=first.project) for _ in range(ROUNDS)])
    aimed(f"search after it among {count(seed.project):,} skills", again, 0.2, bare, capsys)
    assert again.cpu < first.cpu and "found" in again.said


def test_a_first_route_once_the_index_was_made_in_the_background(
    seed: Cost, watch: Stopwatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As it is for a person at a terminal who waits a few seconds after an install; what goes on meanwhile is told."""
    bare, index = watch.medians(
        [sys.executable, "-c", "pass"], INDEX, seed=seed.project, cache=seed.cache, rounds=ROUNDS
    )
    told(f"index of {count(seed.project):,} skills, in the background: {index}", bare, capsys)
    made = [watch.run(INDEX, seed.project) for _ in range(ROUNDS)]
    first = _middle([watch.run(ROUTE, here=one.project) for one in made])
    aimed(f"first route among {count(seed.project):,} skills after that", first, 1.5, bare, capsys)
    assert first.cpu < index.cpu


def _middle(runs: list[Cost]) -> Cost:
    return sorted(runs, key=lambda cost: cost.wall)[len(runs) // 2]


def count(project: Path) -> int:
    return len(list((project / ".claude" / "skills").glob("*/SKILL.md")))

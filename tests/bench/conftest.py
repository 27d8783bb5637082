"""A project with as many skills as a benchmark wants."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.peers import Absent, Peer, current
from bench.races import Command, Race, Stopwatch, environment, told

TOPICS = ("invoice", "calendar", "weather", "photo", "backup", "kernel module", "recipe", "garden", "tax", "music")


@pytest.fixture
def many_skills(tmp_path: Path) -> Callable[[int], Path]:
    def make(count: int) -> Path:
        project = tmp_path / "project"
        for number in range(count):
            topic = TOPICS[number % len(TOPICS)]
            folder = project / ".claude" / "skills" / f"{topic.replace(' ', '-')}-{number}"
            folder.mkdir(parents=True)
            head = f"---\nname: {folder.name}\ndescription: Handles {topic} work of kind {number}\n---\n"
            text = f"{head}\n# {topic}\n\nDo it.\n"
            (folder / "SKILL.md").write_text(text)
        (project / "mybox").mkdir(parents=True, exist_ok=True)
        return project

    return make


@pytest.fixture
def watch(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Stopwatch:
    return Stopwatch(tmp_path, environment(tmp_path_factory))


@pytest.fixture(scope="session")
def peer() -> Peer | Absent:
    try:
        return current()
    except Absent as reason:
        return reason


@pytest.fixture
def race(
    watch: Stopwatch, peer: Peer | Absent, capsys: pytest.CaptureFixture[str]
) -> Callable[[str, Command, Callable[[Peer], Command]], Race]:
    def run(what: str, ours: Command, theirs: Callable[[Peer], Command]) -> Race:
        bare = [sys.executable, "-c", "pass"]
        found = watch.medians(bare, ours, *([theirs(peer)] if isinstance(peer, Peer) else []))
        done = Race(ours=found[1], theirs=found[2] if len(found) > 2 else None, bare=found[0])
        beside = f"no peer: {peer}"
        if done.theirs is not None:
            times = f"{done.theirs.cpu / done.ours.cpu:.1f} x CPU, {done.theirs.wall / done.ours.wall:.1f} x wall"
            beside = f"{peer}: {done.theirs} = {times}"
        told(f"{what}: {done.ours}; {beside}", done.bare, capsys)
        return done

    return run

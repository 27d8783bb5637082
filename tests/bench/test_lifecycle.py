"""What getting skills costs in CPU time, wall time and bytes, side by side with the npm package `skills`.

Every figure is the median of ROUNDS runs of a whole process with all its children, in a project that holds nothing yet.
Ours and the peer's runs take turns, over one repository, so that both meet the same machine.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count as numbers
from pathlib import Path
from statistics import median
from tempfile import TemporaryFile

import pytest

import navigator_kernel
from bench.peers import QUIET, Absent, Peer, current
from skill_repositories import GitCount

pytestmark = [pytest.mark.bench, pytest.mark.timeout(3_600)]

ROUNDS = 5
SHARE = 1 / 8  # of the peer's time, for one skill and for a list of them
BYTES_SHARE = 0.02  # of a full clone of depth 1
SYLLABLES = "ka re mi to lun ser va chi po den gra fi os tal bu".split()
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Repository:
    """Serves `file://` fetches; `skills` by name is each one's manifest."""

    path: Path
    commit: str
    skills: dict[str, bytes] = field(repr=False)

    @property
    def url(self) -> str:
        return f"file://{self.path}"


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of one run, its children's included, and where it ran."""

    cpu: float
    wall: float
    project: Path
    said: str = field(default="", repr=False)

    def __str__(self) -> str:
        return f"{self.cpu * 1000:.0f} ms CPU, {self.wall * 1000:.0f} ms wall"


Command = Sequence[str]


class Stopwatch:
    """Runs commands, each in a new project, and measures them. `seed` is a project to copy, instead of an empty one."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self._folder, self._env, self._number = folder, env, numbers()

    def run(self, words: Command, seed: Path | None = None) -> Cost:
        project = self._folder / f"project-{next(self._number)}"
        if seed is None:
            project.mkdir()
        else:
            shutil.copytree(seed, project, symlinks=True)
        with TemporaryFile() as output:
            began = time.perf_counter()
            child = subprocess.Popen(
                words, cwd=project, env=self._env, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
            _, status, usage = os.wait4(child.pid, 0)
            wall = time.perf_counter() - began
            child.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            said = output.read().decode(errors="replace")
        assert child.returncode == 0, said[-2_000:]
        return Cost(cpu=usage.ru_utime + usage.ru_stime, wall=wall, project=project, said=said)

    def medians(self, *commands: Command, seed: Path | None = None) -> list[Cost]:
        """Of each command, measured in turns after a round that does not count; with the last run's project."""
        rounds = [[self.run(words, seed) for words in commands] for _ in range(ROUNDS + 1)][1:]
        return [_median(runs) for runs in zip(*rounds, strict=True)]


def _median(runs: Sequence[Cost]) -> Cost:
    last = runs[-1]
    cpu, wall = median(run.cpu for run in runs), median(run.wall for run in runs)
    return Cost(cpu=cpu, wall=wall, project=last.project, said=last.said)


@pytest.fixture
def watch(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Stopwatch:
    return Stopwatch(tmp_path, environment(tmp_path_factory))


def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Both compile once and keep it, as they do at home; ours beside the other temporary files."""
    compiled = tmp_path_factory.getbasetemp() / "compiled"
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    kernel = str(Path(navigator_kernel.__file__).parents[1])
    return {**kept, **QUIET, "PYTHONPYCACHEPREFIX": str(compiled), "PYTHONPATH": kernel}


@pytest.fixture(scope="session")
def peer() -> Peer | Absent:
    try:
        return current()
    except Absent as reason:
        return reason


@pytest.fixture(scope="session")
def of_18(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return make(tmp_path_factory.mktemp("of-18") / "skills", count=18, size=38_000)


@pytest.fixture(scope="session")
def of_559(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return make(tmp_path_factory.mktemp("of-559") / "skills", count=559, size=38_000)


@pytest.fixture(scope="session")
def of_3000(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return make(tmp_path_factory.mktemp("of-3000") / "skills", count=3_000, size=7_000)


@pytest.fixture(scope="session")
def without_partial(of_559: Repository, tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """The repository of 559 skills on a server that can only send whole commits."""
    path = tmp_path_factory.mktemp("whole") / "skills"
    shutil.copytree(of_559.path, path)
    for key in ("allowFilter", "allowAnySHA1InWant"):
        git(path, "config", f"uploadpack.{key}", "false")
    return Repository(path, of_559.commit, of_559.skills)


def make(path: Path, *, count: int, size: int) -> Repository:
    """Skills of four files each, one of them of `size` bytes that cannot be compressed."""
    chance = random.Random(count)
    words = ["".join(chance.choices(SYLLABLES, k=chance.randint(2, 4))) for _ in range(400)]
    path.mkdir(parents=True)
    git(path, "init", "--quiet", "--bare", "--initial-branch=main")
    for key in ("allowFilter", "allowAnySHA1InWant"):
        git(path, "config", f"uploadpack.{key}", "true")
    lines = [b"commit refs/heads/main\ncommitter Bench <bench@example.invalid> 1700000000 +0000\ndata 5\nbench\n"]
    skills: dict[str, bytes] = {}
    for number in range(count):
        name = f"skill-{number:04}"
        text = " ".join(chance.choices(words, k=110))
        head = f"---\nname: {name}\ndescription: Does {chance.choice(words)} of kind {number}\nlicense: MIT\n---\n"
        skills[name] = f"{head}\n# {name}\n\n{text}\n".encode()
        notes = " ".join(chance.choices(words, k=150)).encode()
        files = {
            "SKILL.md": skills[name],
            "scripts/run.py": f'print("{name}")\n'.encode(),
            "references/notes.md": notes,
            "assets/data.bin": chance.randbytes(size),
        }
        for inner, data in files.items():
            lines.append(
                b"M 100644 inline skills/%b/%b\ndata %d\n%b\n" % (name.encode(), inner.encode(), len(data), data)
            )
    git(path, "fast-import", "--quiet", stdin=b"".join(lines))
    return Repository(path, git(path, "rev-parse", "main").strip(), skills)


def git(path: Path, *words: str, stdin: bytes = b"") -> str:
    return subprocess.run(
        ["git", "-C", str(path), *words], input=stdin, capture_output=True, check=True
    ).stdout.decode()


def navigator(*words: str) -> list[str]:
    """As the README has it; with `-m` the project's folder would be on Python's path, a new one in each run."""
    return [sys.executable, str(Path(navigator_kernel.__file__).parents[2] / "bin" / "skill_manager.py"), *words]


def fetched(folder: Path) -> int:
    """Bytes of the packs below `folder`."""
    return sum(path.stat().st_size for path in folder.rglob("*.pack"))


def whole(repository: Repository, folder: Path) -> int:
    """Bytes that a full clone of depth 1 fetches."""
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", repository.url, str(folder / "clone")], check=True)
    return fetched(folder / "clone" / ".git")


def has(project: Path, repository: Repository, name: str) -> bool:
    """Whether the skill lies in `project` as it does in `repository`."""
    folder = project / ".claude" / "skills" / name
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    wanted = {"SKILL.md", "scripts/run.py", "references/notes.md", "assets/data.bin"}
    return names >= wanted and (folder / "SKILL.md").read_bytes() == repository.skills[name]


@dataclass(frozen=True, slots=True)
class Race:
    """Ours and, where it can be had, the peer's."""

    ours: Cost
    theirs: Cost | None
    bare: Cost


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


def told(text: str, bare: Cost, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\n{text}; bare python {bare}, load {os.getloadavg()[0]:.1f}")


def told_bytes(what: str, ours: int, full: int, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\n{what}: {ours / 1000:,.0f} kB fetched of {full / MIB:.1f} MiB in a full clone = {ours / full:.2%}")


def within(done: Race, share: float) -> None:
    """Skips, everything else being well, where there was nothing to compare with."""
    if done.theirs is None:
        pytest.skip("the npm package `skills` cannot be had; our own figures are printed")
    shares = {"CPU": done.ours.cpu / done.theirs.cpu, "wall": done.ours.wall / done.theirs.wall}
    assert {name: round(part, 3) for name, part in shares.items() if part > share} == {}, "of the peer's time"


Runner = Callable[[str, Command, Callable[[Peer], Command]], Race]


def test_one_skill_of_559_costs_an_eighth_of_the_peers_time_and_a_fiftieth_of_a_clones_bytes(
    of_559: Repository, race: Runner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "skill-0300"
    ours = navigator("install", of_559.url, "--skill", name)
    done = race("one skill of 559", ours, lambda peer: peer.one(of_559.url, name))
    full, here = whole(of_559, tmp_path), fetched(done.ours.project)
    told_bytes("one skill of 559", here, full, capsys)
    assert has(done.ours.project, of_559, name)
    assert done.theirs is None or has(done.theirs.project, of_559, name)
    assert full > 20 * MIB
    assert 0 < here <= full * BYTES_SHARE
    within(done, SHARE)


def test_a_list_of_559_skills_costs_an_eighth_of_the_peers_time_and_a_fiftieth_of_a_clones_bytes(
    of_559: Repository, race: Runner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = race("list of 559 skills", navigator("info", of_559.url), lambda peer: peer.listing(of_559.url))
    full, here = whole(of_559, tmp_path), fetched(done.ours.project)
    told_bytes("list of 559 skills", here, full, capsys)
    for run in (done.ours, done.theirs):
        assert run is None or [name for name in of_559.skills if name not in run.said] == []
    assert 0 < here <= full * BYTES_SHARE
    within(done, SHARE)


def test_all_of_18_skills_come_no_slower_than_with_the_peer(of_18: Repository, race: Runner) -> None:
    done = race("all of 18 skills", navigator("install", of_18.url, "--all"), lambda peer: peer.every(of_18.url))
    for run in (done.ours, done.theirs):
        assert run is None or [name for name in of_18.skills if not has(run.project, of_18, name)] == []
    within(done, 1)


def test_3000_skills_are_listed_and_one_of_them_installed(
    of_3000: Repository, race: Runner, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    name = "skill-1500"
    listed = race("list of 3,000 skills", navigator("info", of_3000.url), lambda peer: peer.listing(of_3000.url))
    ours = navigator("install", of_3000.url, "--skill", name)
    done = race("one skill of 3,000", ours, lambda peer: peer.one(of_3000.url, name))
    full = whole(of_3000, tmp_path)
    told_bytes("list of 3,000 skills", fetched(listed.ours.project), full, capsys)
    told_bytes("one skill of 3,000", fetched(done.ours.project), full, capsys)
    assert [name for name in of_3000.skills if name not in listed.ours.said] == []
    assert has(done.ours.project, of_3000, name)


@pytest.mark.parametrize("verb", ["install", "info"])
def test_a_known_commit_in_a_warm_cache_needs_no_network_process(
    verb: str,
    of_559: Repository,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = navigator(
        verb, of_559.url, "--ref", of_559.commit, *(["--skill", "skill-0300"] if verb == "install" else [])
    )
    seed = tmp_path / "seed"
    with monkeypatch.context() as counting:
        count = GitCount(tmp_path, counting)
        watch = Stopwatch(tmp_path, environment(tmp_path_factory))
        filled = watch.run(words)
        assert "fetch" in count.network()
        shutil.copytree(filled.project / "mybox" / "cache", seed / "mybox" / "cache", symlinks=True)
        again = watch.run(words, seed)
        assert count.network() == []
        assert verb == "info" or has(again.project, of_559, "skill-0300")
    watch = Stopwatch(tmp_path_factory.mktemp("uncounted"), environment(tmp_path_factory))
    bare, warm = watch.medians([sys.executable, "-c", "pass"], words, seed=seed)
    told(f"`{verb}` at a known commit, warm cache, no network process: {warm}", bare, capsys)


def test_a_server_without_partial_clones_still_serves_one_skill(
    without_partial: Repository, race: Runner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "skill-0300"
    ours = navigator("install", without_partial.url, "--skill", name)
    done = race("one skill of 559, no partial clones", ours, lambda peer: peer.one(without_partial.url, name))
    full = whole(without_partial, tmp_path)
    told_bytes("one skill of 559, no partial clones", fetched(done.ours.project), full, capsys)
    assert has(done.ours.project, without_partial, name)

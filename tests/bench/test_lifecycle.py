"""What getting skills costs in CPU time, wall time and bytes, side by side with the npm package `skills`.

Every figure is the median of ROUNDS runs of a whole process with all its children, in a project that holds nothing yet.
Ours and the peer's runs take turns, over one repository, so that both meet the same machine.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bench.races import Runner, Stopwatch, environment, navigator, told, within
from skill_repositories import GitCount

pytestmark = [pytest.mark.bench, pytest.mark.timeout(3_600)]

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


def told_bytes(what: str, ours: int, full: int, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\n{what}: {ours / 1000:,.0f} kB fetched of {full / MIB:.1f} MiB in a full clone = {ours / full:.2%}")


def test_one_skill_of_559_costs_an_eighth_of_the_peers_time_and_a_fiftieth_of_a_clones_bytes(
    of_559: Repository, race: Runner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "skill-0300"
    ours = navigator("install", of_559.url, "--skill", name)
    done = race("one skill of 559", ours, lambda peer: peer.one(of_559.url, name))
    full, here = whole(of_559, tmp_path), fetched(done.ours.cache)
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
    full, here = whole(of_559, tmp_path), fetched(done.ours.cache)
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
    told_bytes("list of 3,000 skills", fetched(listed.ours.cache), full, capsys)
    told_bytes("one skill of 3,000", fetched(done.ours.cache), full, capsys)
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
    with monkeypatch.context() as counting:
        count = GitCount(tmp_path, counting)
        watch = Stopwatch(tmp_path, environment(tmp_path_factory))
        filled = watch.run(words)
        assert "fetch" in count.network()
        again = watch.run(words, cache=filled.cache)
        assert count.network() == []
        assert verb == "info" or has(again.project, of_559, "skill-0300")
    watch = Stopwatch(tmp_path_factory.mktemp("uncounted"), environment(tmp_path_factory))
    bare, warm = watch.medians([sys.executable, "-c", "pass"], words, cache=filled.cache)
    told(f"`{verb}` at a known commit, warm cache, no network process: {warm}", bare, capsys)


def test_a_server_without_partial_clones_still_serves_one_skill(
    without_partial: Repository, race: Runner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "skill-0300"
    ours = navigator("install", without_partial.url, "--skill", name)
    done = race("one skill of 559, no partial clones", ours, lambda peer: peer.one(without_partial.url, name))
    full = whole(without_partial, tmp_path)
    told_bytes("one skill of 559, no partial clones", fetched(done.ours.cache), full, capsys)
    assert has(done.ours.project, without_partial, name)

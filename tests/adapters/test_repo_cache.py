"""Fetched data is kept, is reused, and can be trusted again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from navigator_kernel.adapters.files.database import file_lock
from navigator_kernel.adapters.sources.git import GitSource
from navigator_kernel.adapters.sources.repo_cache import CONFIG, RepoCache
from navigator_kernel.errors import Busy, FetchFailed, Refused
from skill_repositories import GitCount, commit, git, make_repo, skill_text
from tables import cases

pytestmark = pytest.mark.sample(1)

FILES = {f"s{number}/SKILL.md": skill_text(f"s{number}") for number in range(20)} | {"s1/big.txt": "x" * 100_000}
LIMITS = {"each": 1_000_000, "total": 10_000_000}
WANTED = ("s3/SKILL.md",)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    made = make_repo(tmp_path, FILES)
    git(made, "tag", "-a", "-m", "one", "v1")
    git(made, "branch", "feature/x")
    return made


@pytest.fixture
def cache(tmp_path: Path) -> RepoCache:
    return RepoCache(tmp_path / "mybox" / "cache" / "repos")


@pytest.fixture
def count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitCount:
    return GitCount(tmp_path, monkeypatch)


def read(source: GitSource, *paths: str) -> Mapping[str, bytes]:
    """The contents of `paths` at the open commit."""
    oids = {entry.path: entry.oid for entry in source.entries}
    held = source.contents([oids[path] for path in paths], **LIMITS)
    return {path: held[oids[path]] for path in paths}


def fetched(repo: Path, cache: RepoCache | None, ref: str = "", *paths: str, offline: bool = False) -> str:
    """Fetches `ref` and checks the contents of `paths`; returns the commit."""
    with GitSource(f"file://{repo}", ref, cache=cache, offline=offline) as source:
        for path, data in read(source, *(paths or WANTED)).items():
            assert data == git(repo, "show", f"{source.commit}:{path}").encode()
        return source.commit


def packs(cache: RepoCache, repo: Path) -> list[Path]:
    return sorted((cache.path(f"file://{repo}") / ".git" / "objects" / "pack").glob("*.pack"))


@pytest.mark.parametrize("kept", [True, False])
def test_one_skill_of_many_takes_one_fetch_and_one_batch_of_blobs(
    repo: Path, cache: RepoCache, count: GitCount, kept: bool
) -> None:
    fetched(repo, cache if kept else None)
    runs = count.runs()
    assert [verb for verb in runs if verb in {"fetch", "ls-remote", "clone"}] == ["fetch", "fetch"]
    assert "checkout" not in runs


def test_one_skill_of_many_brings_a_small_part_of_the_bytes(repo: Path, cache: RepoCache) -> None:
    noise = {f"data/{number}.bin": os.urandom(10_000) for number in range(100)}
    commit(repo, noise)
    fetched(repo, cache)
    assert sum(pack.stat().st_size for pack in packs(cache, repo)) < 0.05 * sum(map(len, noise.values()))


@pytest.mark.parametrize("partial", [True, False])
def test_a_known_commit_needs_no_network(tmp_path: Path, cache: RepoCache, count: GitCount, partial: bool) -> None:
    repo = make_repo(tmp_path, FILES, partial=partial)
    made = fetched(repo, cache)
    assert count.network()
    repo.rename(tmp_path / "gone")
    with GitSource(f"file://{repo}", made, cache=cache) as source:
        assert len(source.entries) == len(FILES) + 20
        assert read(source, *WANTED)[WANTED[0]] == FILES[WANTED[0]].encode()
    assert count.network() == []


def test_a_known_page_of_a_commit_needs_no_network(repo: Path, cache: RepoCache, count: GitCount) -> None:
    made = fetched(repo, cache)
    count.runs()
    with GitSource(f"file://{repo}", page=f"{made}/s3", cache=cache) as source:
        assert read(source, *WANTED)
    assert count.network() == []


def test_a_branch_is_fetched_again_and_only_new_objects_come(repo: Path, cache: RepoCache, count: GitCount) -> None:
    commit(repo, {"more": "so that there is a past"})
    old = fetched(repo, cache)
    new = commit(repo, {"s3/SKILL.md": "new words"})
    count.runs()
    assert fetched(repo, cache) == new != old
    assert [verb for verb in count.runs() if verb == "fetch"] == ["fetch", "fetch"]
    sizes = [len(git(pack.parent, "show-index", stdin=pack.with_suffix(".idx").read_bytes()).splitlines())
             for pack in packs(cache, repo)]  # fmt: skip
    assert max(sizes) == 22, "the first commit, its top, and twenty folders"
    assert sum(sizes) < 22 + 10, "the second commit, its two new trees, and one blob each"


@pytest.mark.parametrize("ref", ["", "main", "v1", "feature/x", "refs/heads/main"])
def test_offline_a_ref_is_what_was_last_seen(repo: Path, cache: RepoCache, count: GitCount, ref: str) -> None:
    seen = fetched(repo, cache, ref)
    commit(repo, {"s3/SKILL.md": "new words"})
    git(repo, "branch", "--force", "feature/x")
    count.runs()
    assert fetched(repo, cache, ref, offline=True) == seen
    assert fetched(repo, cache, seen[:9], offline=True) == seen
    assert fetched(repo, cache, seen, offline=True) == seen
    assert count.network() == []


def test_offline_a_page_is_divided_by_the_refs_that_were_seen(repo: Path, cache: RepoCache) -> None:
    url = f"file://{repo}"
    with GitSource(url, page="feature/x/s3", cache=cache) as source:
        read(source, *WANTED)
    with GitSource(url, page="feature/x/s3", cache=cache, offline=True) as source:
        assert (source.ref, source.subpath) == ("feature/x", "s3")


@pytest.mark.parametrize("ref", ["feature/x", "v1", "0123456", "f" * 40])
def test_offline_what_was_never_seen_is_an_error_with_a_way_out(repo: Path, cache: RepoCache, ref: str) -> None:
    for kept in (cache, None):
        with pytest.raises(FetchFailed) as caught, GitSource(f"file://{repo}", ref, cache=kept, offline=True):
            pass
        assert caught.value.exit_code == 7
        assert caught.value.hint
    fetched(repo, cache, "main")
    with pytest.raises(FetchFailed) as caught, GitSource(f"file://{repo}", ref, cache=cache, offline=True):
        pass
    assert caught.value.hint


def test_offline_a_file_that_was_never_fetched_is_an_error_with_a_way_out(repo: Path, cache: RepoCache) -> None:
    fetched(repo, cache)
    with pytest.raises(FetchFailed, match="1 of its files") as caught:
        fetched(repo, cache, "", "s4/SKILL.md", offline=True)
    assert "--offline" in caught.value.hint
    assert fetched(repo, cache, offline=True)


def flipped(pack: Path) -> int:
    data = bytearray(pack.read_bytes())
    data[len(data) // 2] ^= 0x40
    return written(pack, bytes(data))


def written(path: Path, data: bytes) -> int:
    path.chmod(0o644)
    return path.write_bytes(data)


def removed(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink()


Damage = Callable[[Path], object]
PACK = ".git/objects/pack"
DAMAGES: dict[str, Damage] = {
    "packs cut": lambda top: [written(pack, pack.read_bytes()[:-30]) for pack in top.glob(f"{PACK}/*.pack")],
    "packs zeroed": lambda top: [written(pack, bytes(pack.stat().st_size)) for pack in top.glob(f"{PACK}/*.pack")],
    "packs emptied": lambda top: [written(pack, b"") for pack in top.glob(f"{PACK}/*.pack")],
    "bits flipped": lambda top: [flipped(pack) for pack in top.glob(f"{PACK}/*.pack")],
    "bits flipped in the index": lambda top: [flipped(index) for index in top.glob(f"{PACK}/*.idx")],
    "indexes gone": lambda top: removed(top.glob(f"{PACK}/*.idx")),
    "no objects": lambda top: (top / ".git" / "objects").rename(top / ".git" / "refs" / "objects"),
    "no head": lambda top: (top / ".git" / "HEAD").unlink(),
    "a false head": lambda top: (top / ".git" / "HEAD").write_text("ref: ../../x"),
    "shallow zeroed": lambda top: (top / ".git" / "shallow").write_bytes(bytes(41)),
    "no config": lambda top: (top / ".git" / "config").unlink(),
    "git is a file": lambda top: (
        (top / ".git").rename(top / "moved"), (top / ".git").write_text(f"gitdir: {top}/moved\n")),
    "a lock": lambda top: (top / ".git" / "shallow.lock").write_bytes(b""),
    "a part of a pack": lambda top: (top / PACK / "tmp_pack_abcdef").write_bytes(b"PACK"),
    "a note in pieces": lambda top: top.with_suffix(".json").write_bytes(b'{"url": '),
    "a note of another shape": lambda top: top.with_suffix(".json").write_text('{"refs": {"main": 3}, "url": []}'),
    "a note of another repository": lambda top: top.with_suffix(".json").write_text('{"url": "https://x/y"}'),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_repository_is_fetched_again(repo: Path, cache: RepoCache, damage: Damage) -> None:
    made = commit(repo, {"more": "so that there is a past"})
    for ref in (made, ""):
        fetched(repo, cache, made)
        damage(cache.path(f"file://{repo}"))
        assert fetched(repo, cache, ref, *WANTED, "s4/SKILL.md") == made


def test_bytes_that_are_not_what_their_id_says_are_never_handed_out(repo: Path, cache: RepoCache) -> None:
    made = fetched(repo, cache)
    top = cache.path(f"file://{repo}")
    right, wrong = (git(repo, "rev-parse", f"{made}:{path}").strip() for path in ("s3", "s4"))
    for pack in packs(cache, repo):  # each index now gives the place of s3's tree for s4's tree
        index = pack.with_suffix(".idx")
        written(index, index.read_bytes().replace(bytes.fromhex(wrong), bytes(20)).replace(
            bytes.fromhex(right), bytes.fromhex(wrong)))  # fmt: skip
    assert fetched(repo, cache, made) == made
    assert (top / ".git").is_dir()


@cases("lines")
@pytest.mark.parametrize("place", ["config", "commondir"])
def test_no_setting_that_is_in_the_cache_is_read(
    repo: Path, cache: RepoCache, tmp_path: Path, lines: str, place: str
) -> None:
    made = fetched(repo, cache)
    inner = cache.path(f"file://{repo}") / ".git"
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("reference-transaction", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/canary\n")
        (hooks / name).chmod(0o755)
    lines = lines.replace("CANARY", str(tmp_path / "canary")).replace("HOOKS", str(hooks))
    if place == "config":
        (inner / "config").write_text(lines)
    else:
        (inner / "common").mkdir()
        (inner / "common" / "config").write_text(lines)
        (inner / "commondir").write_text("common\n")
    assert fetched(repo, cache, "", "s5/SKILL.md") == made
    assert not (tmp_path / "canary").exists()
    assert (inner / "config").read_bytes() == CONFIG
    assert not (inner / "commondir").exists()


@pytest.mark.parametrize("name", ["objects/info/alternates", "info/attributes", "hooks/post-checkout", "info/grafts",
                                  "refs/replace/x", "config.worktree"])  # fmt: skip
def test_foreign_git_files_in_a_cached_repository_are_removed(repo: Path, cache: RepoCache, name: str) -> None:
    fetched(repo, cache)
    odd = cache.path(f"file://{repo}") / ".git" / name
    odd.parent.mkdir(parents=True, exist_ok=True)
    odd.write_text(f"{repo}/.git/objects\n")
    assert fetched(repo, cache)
    assert not odd.exists()


def test_links_in_the_cache_are_not_followed(repo: Path, cache: RepoCache, tmp_path: Path) -> None:
    fetched(repo, cache)
    top, outside = cache.path(f"file://{repo}"), tmp_path / "outside"
    top.rename(outside)
    top.symlink_to(outside)
    before = sorted(outside.rglob("*"))
    assert fetched(repo, cache, "", "s7/SKILL.md")
    assert not top.is_symlink()
    assert sorted(outside.rglob("*")) == before


def test_a_project_that_contains_the_cache_is_never_taken_for_it(repo: Path, cache: RepoCache, tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    before = sorted((tmp_path / ".git").rglob("*"))
    fetched(repo, cache)
    (cache.path(f"file://{repo}") / ".git" / "HEAD").write_text("nothing")
    fetched(repo, cache)
    assert sorted((tmp_path / ".git").rglob("*")) == before


def test_only_its_owner_may_enter_the_cache(repo: Path, cache: RepoCache) -> None:
    folder = cache.path("x").parent
    folder.mkdir(parents=True, mode=0o755)
    fetched(repo, cache)
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_server_that_stops_sending_single_files_sends_the_whole_commit(repo: Path, cache: RepoCache) -> None:
    made = fetched(repo, cache)
    git(repo, "config", "uploadpack.allowFilter", "false")
    git(repo, "config", "protocol.version", "0")
    git(repo, "config", "uploadpack.allowAnySHA1InWant", "false")
    newer = commit(repo, {"s9/SKILL.md": "new words"})
    assert fetched(repo, cache, "", "s4/SKILL.md", "s9/SKILL.md") == newer != made


IN_A_PROCESS = """
import sys
from pathlib import Path
from navigator_kernel.adapters.sources.git import GitSource
from navigator_kernel.adapters.sources.repo_cache import RepoCache
url, folder, path = sys.argv[1:]
with GitSource(url, cache=RepoCache(Path(folder))) as source:
    (oid,) = (entry.oid for entry in source.entries if entry.path == path)
    source.contents([oid], each=1000, total=1000)
    print(source.commit)
"""


@pytest.mark.wide
def test_many_processes_at_once_share_one_repository(repo: Path, cache: RepoCache) -> None:
    paths = [f"s{number}/SKILL.md" for number in range(8)]
    argv = [sys.executable, "-c", IN_A_PROCESS, f"file://{repo}", str(cache.path("x").parent)]
    running = [subprocess.Popen([*argv, path], stdout=subprocess.PIPE, text=True) for path in paths]
    said = {process.communicate()[0].strip() for process in running}
    assert said == {git(repo, "rev-parse", "HEAD").strip()}
    assert fetched(repo, cache, "", *paths, offline=True)


def test_a_repository_in_use_by_another_is_waited_for_and_then_named(repo: Path, cache: RepoCache) -> None:
    fetched(repo, cache)
    held, waiting = (
        file_lock(cache.path(f"file://{repo}").with_suffix(".lock")),
        cache.held(f"file://{repo}", timeout=0.1),
    )
    with held, pytest.raises(Busy, match=str(os.getpid())), waiting:
        pass


@pytest.mark.parametrize("what", ["a file", "a link"])
def test_a_cache_that_cannot_be_written_is_done_without(repo: Path, tmp_path: Path, what: str) -> None:
    folder = tmp_path / "kept"
    if what == "a file":
        folder.write_text("")
    else:
        folder.symlink_to(tmp_path / "elsewhere")
    assert fetched(repo, RepoCache(folder))
    assert not (tmp_path / "elsewhere").exists()
    with pytest.raises(Exception, match="kept"):
        fetched(repo, RepoCache(folder), offline=True)


def test_the_cache_lists_the_url_refs_last_use_and_size_of_each_repository(
    repo: Path, cache: RepoCache, tmp_path: Path
) -> None:
    assert cache.listed() == ()
    made = fetched(repo, cache, "v1")
    other = make_repo(tmp_path, FILES, name="other")
    fetched(other, cache)
    one, two = cache.listed()
    assert [one["url"], two["url"]] == [f"file://{other}", f"file://{repo}"]
    assert two["refs"]["v1"]["commit"] == made
    assert two["used_at"] >= two["refs"]["v1"]["at"]
    assert two["bytes"] > sum(pack.stat().st_size for pack in packs(cache, repo)) > 0
    note = json.loads(cache.path(f"file://{repo}").with_suffix(".json").read_bytes())
    assert set(note) == {"url", "used_at", "refs"}


class LaterClock:
    """A clock that stands far in the future."""

    def now(self) -> str:
        return "2999-01-11T00:00:00.000Z"

    def monotonic(self) -> float:
        return 0.0


def test_the_cache_is_cleared_completely_or_by_age(repo: Path, cache: RepoCache, tmp_path: Path) -> None:
    fetched(repo, cache)
    later = RepoCache(cache.path("x").parent, clock=LaterClock())
    fetched(make_repo(tmp_path, FILES, name="other"), later)
    assert cache.clear(older_than_days=1) == 0
    assert later.clear(older_than_days=1) == 1
    assert [row["url"] for row in cache.listed()] == [f"file://{tmp_path}/other"]
    assert cache.clear() == 1
    assert cache.listed() == ()
    assert cache.clear() == 0
    assert fetched(repo, cache)


def test_size_limits_apply_to_cached_files(repo: Path, cache: RepoCache) -> None:
    fetched(repo, cache, "", "s1/big.txt")
    with GitSource(f"file://{repo}", cache=cache) as source, pytest.raises(Refused, match="over 1000 bytes"):
        source.contents([e.oid for e in source.entries if e.path == "s1/big.txt"], each=1000, total=10_000)

"""A repository that sends data without end is stopped at a stated size, and leaves nothing behind."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from navigator_kernel.adapters.sources import git_process
from navigator_kernel.adapters.sources.git import GitSource
from navigator_kernel.adapters.sources.git_process import RECEIVED_LIMIT
from navigator_kernel.adapters.sources.repo_cache import RepoCache
from navigator_kernel.errors import Refused
from skill_repositories import make_repo

pytestmark = [pytest.mark.requirement("SAF-2", "X-18"), pytest.mark.sample(1)]

MIB = 1024 * 1024
EACH = {"each": 64 * MIB, "total": 64 * MIB}


def large(tmp_path: Path, *, partial: bool) -> Path:
    """A repository with 6 blobs of one mebibyte each, which cannot be packed smaller."""
    files: dict[str, str | bytes] = {f"b/{number}.bin": os.urandom(MIB) for number in range(6)}
    return make_repo(tmp_path, {**files, "a/SKILL.md": "text"}, partial=partial)


def bytes_below(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def read_all(repo: Path, cache: Path, most: int) -> int:
    with GitSource(f"file://{repo}", cache=RepoCache(cache), most=most) as source:
        oids = [entry.oid for entry in source.entries if entry.kind == "blob"]
        return len(source.contents(oids, **EACH))


@pytest.mark.parametrize("partial", [True, False], ids=["partial clone", "everything at once"])
def test_a_fetch_over_the_limit_is_refused_and_leaves_nothing(tmp_path: Path, partial: bool) -> None:
    repo, cache = large(tmp_path, partial=partial), tmp_path / "cache"
    with pytest.raises(Refused) as refused:
        read_all(repo, cache, 2 * MIB)
    assert (refused.value.exit_code, refused.value.data["reason"]) == (3, "too-large")
    assert "2 MiB" in refused.value.message and refused.value.hint
    assert bytes_below(cache) < 100_000


@pytest.mark.wide
@pytest.mark.parametrize("partial", [True, False])
def test_a_fetch_below_the_limit_is_read(tmp_path: Path, partial: bool) -> None:
    assert read_all(large(tmp_path, partial=partial), tmp_path / "cache", 8 * MIB) == 7


def test_a_server_that_sends_on_is_killed_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A git whose fetch writes an endless pack, as `index-pack` does, and has a child process."""
    repo = make_repo(tmp_path, {"a/SKILL.md": "text"})
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    note = tmp_path / "pid"
    fake.write_text(
        '#!/bin/sh\ncase " $* " in *" fetch "*) ;; *) exec /usr/bin/env -i PATH=/usr/bin:/bin git "$@";; esac\n'
        f'echo $$ > {note}; mkdir -p "$GIT_DIR/objects/pack"; sleep 60 &\n'
        'cat /dev/zero > "$GIT_DIR/objects/pack/tmp_pack_x"\n'
    )
    fake.chmod(0o755)
    monkeypatch.setattr(git_process, "_program", lambda name, _path: str(fake) if name == "git" else f"/usr/bin/{name}")
    begin = time.monotonic()
    with pytest.raises(Refused):
        read_all(repo, tmp_path / "cache", 8 * MIB)
    assert time.monotonic() - begin < 30
    group = note.read_text().strip()
    deadline = time.monotonic() + 20
    while (alive := _living(group)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert alive == []
    assert bytes_below(tmp_path / "cache") < 100_000


@pytest.mark.wide
def test_a_fetch_that_fails_leaves_no_half_of_a_pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo, cache = large(tmp_path, partial=True), tmp_path / "cache"
    read_all(repo, cache, RECEIVED_LIMIT)
    begin = git_process.GitProcess.fetch

    def broken(self: git_process.GitProcess, *words: str, **given: object) -> None:
        (self.folder / ".git" / "objects" / "pack" / "tmp_pack_half").write_bytes(bytes(MIB))
        begin(self, *words[:-1], "no-such-ref", **given)  # type: ignore[arg-type]  # the arguments of the call

    monkeypatch.setattr(git_process.GitProcess, "fetch", broken)
    with pytest.raises(Exception, match="failed"), GitSource(f"file://{repo}", "other", cache=RepoCache(cache)):
        pass
    assert list(cache.rglob("tmp_pack*")) == []


def _living(group: str) -> list[Path]:
    return [stat for stat in Path("/proc").glob("[0-9]*/stat") if _group_of(stat) == group]


def _group_of(stat: Path) -> str:
    try:
        state, _, group = stat.read_text().rpartition(")")[2].split()[:3]
    except OSError:
        return ""
    return group if state != "Z" else ""

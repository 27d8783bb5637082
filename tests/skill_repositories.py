"""Makes real git repositories that hold skills."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path


def skill_text(name: str, description: str = "does a thing", extra: str = "") -> str:
    return f"---\nname: {name}\ndescription: {description}\n{extra}---\n# {name}\n\nDo it.\n"


def make_repo(tmp_path: Path, files: Mapping[str, str | bytes], *, name: str = "repo", partial: bool = True) -> Path:
    """A repository with `files` in one commit, which serves partial fetches or (`partial=False`) does not."""
    repo = tmp_path / name
    repo.mkdir(parents=True)
    git(repo, "init", "--quiet")
    git(repo, "config", "uploadpack.allowFilter", str(partial).lower())
    git(repo, "config", "uploadpack.allowAnySHA1InWant", str(partial).lower())
    commit(repo, files)
    return repo


def commit(repo: Path, files: Mapping[str, str | bytes]) -> str:
    """The id of a new commit that adds or changes `files`."""
    for path, content in files.items():
        target = repo / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--message", "a change")
    return git(repo, "rev-parse", "HEAD").strip()


def git(repo: Path, *words: str, stdin: bytes = b"") -> str:
    done = subprocess.run(["git", "-C", str(repo), *words], input=stdin, capture_output=True, check=True)
    return done.stdout.decode()


def add_raw(repo: Path, entries: Mapping[str, tuple[str, bytes]]) -> None:
    """A commit with tree entries of any mode, content by path: what no work tree would hold."""
    for path, (mode, data) in entries.items():
        oid = "1" * 40 if mode == "160000" else git(repo, "hash-object", "-w", "--stdin", stdin=data).strip()
        git(repo, "update-index", "--add", "--cacheinfo", f"{mode},{oid},{path}")
    git(repo, "commit", "--quiet", "--message", "raw entries")


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below `folder`: its time of change and its bytes; the lock between processes left out."""
    return {
        path.relative_to(folder).as_posix(): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "lock"
    }

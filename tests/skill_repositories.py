"""Makes real git repositories that hold skills."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

# The configuration that `git init` would write, without `git maintenance` after commits
CONFIG = """\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
[uploadpack]
\tallowFilter = {partial}
\tallowAnySHA1InWant = {partial}
[maintenance]
\tauto = false
"""
NETWORK = {"fetch", "ls-remote", "clone", "fetch-pack", "remote-https", "remote-http", "upload-pack"}


def skill_text(name: str, description: str = "does a thing", extra: str = "") -> str:
    return f"---\nname: {name}\ndescription: {description}\n{extra}---\n# {name}\n\nDo it.\n"


def make_repo(tmp_path: Path, files: Mapping[str, str | bytes], *, name: str = "repo", partial: bool = True) -> Path:
    """Makes a repository with `files` in one commit; it serves partial fetches if `partial` is true."""
    repo = tmp_path / name
    for folder in ("objects", "refs"):
        (repo / ".git" / folder).mkdir(parents=True)
    (repo / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (repo / ".git" / "config").write_text(CONFIG.format(partial=str(partial).lower()))
    commit(repo, files)
    return repo


def commit(repo: Path, files: Mapping[str, str | bytes]) -> str:
    """Adds or changes `files` in a new commit, and returns its id."""
    for path, content in files.items():
        target = repo / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
    git(repo, "add", "--all")
    who = ("-c", "user.name=Test", "-c", "user.email=test@example.invalid")
    git(repo, *who, "commit", "--quiet", "--message", "a change")
    return git(repo, "rev-parse", "HEAD").strip()


def git(repo: Path, *words: str, stdin: bytes = b"") -> str:
    done = subprocess.run(["git", "-C", str(repo), *words], input=stdin, capture_output=True, check=True)
    return done.stdout.decode()


def add_raw(repo: Path, entries: Mapping[str, tuple[str, bytes]]) -> None:
    """Commits tree entries of any mode, content by path, including entries that no work tree would hold."""
    for path, (mode, data) in entries.items():
        oid = "1" * 40 if mode == "160000" else git(repo, "hash-object", "-w", "--stdin", stdin=data).strip()
        git(repo, "update-index", "--add", "--cacheinfo", f"{mode},{oid},{path}")
    git(repo, "commit", "--quiet", "--message", "raw entries")


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """The modification time and bytes of every file below `folder`, except the process lock and `mybox/cache`."""
    return {
        path.relative_to(folder).as_posix(): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "lock" and "cache" not in path.parts
    }


class GitCount:
    """Puts a wrapper before the real git that records every process that git starts, its own children included."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._trace, folder = tmp_path / "git-trace", tmp_path / "counting"
        folder.mkdir()
        shim = folder / "git"
        real = shutil.which("git")
        shim.write_text(f'#!/bin/sh\nexport GIT_TRACE2_EVENT="{self._trace}"\nexec {real} "$@"\n')
        shim.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    def runs(self) -> list[str]:
        """The verb of each git process since the last call."""
        lines = self._trace.read_text().splitlines() if self._trace.exists() else []
        self._trace.write_text("")
        events = [json.loads(line) for line in lines]
        return [_verb(event["argv"]) for event in events if event["event"] == "start"]

    def network(self) -> list[str]:
        """The verbs of processes that may have contacted a server, or were one."""
        return [verb for verb in self.runs() if verb in NETWORK]


def _verb(argv: list[str]) -> str:
    name = Path(argv[0]).name
    if name != "git":
        return name.removeprefix("git-")
    words = iter(argv[1:])
    for word in words:
        if word == "-c":
            next(words)
        elif not word.startswith("-"):
            return word
    return ""

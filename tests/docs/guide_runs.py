"""Runs the fences of a guide from top to bottom, in one shell and its own project, as a reader would type them.

`console` contains commands after `$ ` and lines that they print, in that order; `…` matches anything, and a comment
`# exit 9` states an exit code other than 0. `text` is the output of the last command. `bash` is a script. A fence with
`title="<path>"` is a file of the project, and Python without a title is a program.
"""

from __future__ import annotations

import os
import re
import secrets
import select
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

LIMIT = 60  # seconds that one command may take

FENCE = re.compile(r"^(`{3,})([^\n`]*)\n(.*?)^\1$", re.DOTALL | re.MULTILINE)
_EXIT = re.compile(r"\s#\s*exit (\d+)\s*$")
_NAVIGATOR = 'exec "{python}" -m navigator_kernel.cli.main "$@"'
# Supports only `pip install <folder>`, into the test's own folder and without downloads
_PIP = 'shift; exec "{python}" -m pip install -qq --no-deps --no-build-isolation --no-index --target "{site}" "$@"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    language: str
    title: str
    body: str


def fences(guide: str) -> Iterator[Fence]:
    for _, info, body in FENCE.findall(guide):
        yield Fence(language=info.strip().partition(" ")[0], title=title_of(info), body=body)


def title_of(info: str) -> str:
    return info.strip().partition(" ")[2].strip().removeprefix("title=").strip('"')


@dataclass(slots=True, kw_only=True)
class Project:
    """An empty folder, and a PATH on which `navigator`, `python` and `pip` are the tested ones."""

    root: Path
    env: dict[str, str]
    printed: str = field(default="")
    _shell: subprocess.Popen[bytes] | None = None

    def follow(self, guide: str) -> int:
        """Runs all fences in one shell, returns their number; AssertionError if one does not do what the guide says."""
        found = list(fences(guide))
        words = ["/bin/bash", "--noprofile", "--norc"]
        self._shell = subprocess.Popen(
            words, cwd=self.root, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        try:
            for fence in found:
                self._one(fence)
        finally:
            self._shell.kill()
            self._shell.communicate()
        return len(found)

    def _one(self, fence: Fence) -> None:
        if fence.title:
            self.write(fence.title, fence.body)
            return
        match fence.language:
            case "session":
                return  # tests/e2e/test_first_session.py types it
            case "console":
                self._console(fence.body)
            case "text":
                self._shown(fence.body.splitlines(), "a text fence")
            case "bash" | "sh":
                self._run(f"set -e\n{fence.body}\nset +e", 0)
            case "python":
                self._run(f"python -c {shlex.quote(fence.body)}", 0)
            case other:
                raise AssertionError(f"a fence of {other!r} is not run: give it a title, or make it console or text")

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def _console(self, body: str) -> None:
        command, *others = re.split(r"^\$ ", body, flags=re.MULTILINE)
        assert not command.strip(), f"a console fence begins with a command, not {command!r}"
        for block in others:
            line, _, expected = block.partition("\n")
            hit = _EXIT.search(line)
            self._run(line, int(hit.group(1)) if hit else 0)
            self._shown(expected.splitlines(), line)

    def _run(self, words: str, expected: int) -> None:
        """Types `words` into the shell, which ends if a line of a script fails."""
        shell, mark = self._shell, secrets.token_hex(8)
        assert shell is not None and shell.stdin is not None and shell.stdout is not None
        typed = self.root.parent / "typed.sh"
        typed.write_text(words, encoding="utf-8")
        shell.stdin.write(f". {shlex.quote(str(typed))} </dev/null; echo {mark} $?\n".encode())
        shell.stdin.flush()
        printed, end = b"", time.monotonic() + LIMIT
        while (hit := re.search(rb"%b (\d+)\n\Z" % mark.encode(), printed)) is None:
            left = end - time.monotonic()
            assert left > 0 and select.select([shell.stdout], [], [], left)[0], f"{words}\ntook over {LIMIT} s"
            chunk = os.read(shell.stdout.fileno(), 65_536)
            printed += chunk
            if not chunk:
                break
        code = int(hit[1]) if hit else shell.wait()
        self.printed = printed.decode("utf-8", "replace").removesuffix(hit[0].decode() if hit else "")
        assert code == expected, f"{words}\nended with {code}\n{self.printed}"

    def _shown(self, lines: list[str], command: str) -> None:
        """Checks that each line appears in the output, in order."""
        patterns = [re.escape(line.strip()).replace("…", ".*") for line in lines if line.strip()]
        at = 0
        for pattern in patterns:
            hit = re.compile(pattern).search(self.printed, at)
            assert hit, f"{command}\ndid not print {pattern!r} but\n{self.printed}"
            at = hit.end()


def project_in(folder: Path) -> Project:
    shims, site, root = folder / "bin", folder / "site", folder / "project"
    for path in (shims, site, root):
        path.mkdir()
    broker = f'exec "{Path(sys.executable).parent}/nats-server" "$@"'
    programs = (("navigator", _NAVIGATOR), ("python", 'exec "{python}" "$@"'), ("pip", _PIP), ("nats-server", broker))
    for name, line in programs:
        (shims / name).write_text(f"#!/bin/sh\n{line.format(python=sys.executable, site=site)}\n")
        (shims / name).chmod(0o755)
    kernel = Path(__file__).resolve().parents[2] / "kernel"
    paths = [str(site), str(kernel), *filter(None, [os.environ.get("PYTHONPATH")])]
    tested = Path(sys.executable).parent  # its `python3` has the packages, as in an active environment
    own = {"PATH": f"{shims}:{tested}:{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(paths), "PYTHONUTF8": "1"}
    return Project(root=root, env={**os.environ, **own})

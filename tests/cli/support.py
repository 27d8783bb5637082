"""Runs the command line as a person does: in its own process, in its own folder."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.forked import run_command

SOURCE = Path(__file__).parents[2]
MODULE = (sys.executable, "-m", "navigator_kernel.cli.main")
SKILL_MANAGER = (sys.executable, str(SOURCE / "bin" / "skill_manager.py"))
START = f"import sys; sys.path.insert(0, {str(SOURCE / 'kernel')!r})\n"
CONSOLE = (sys.executable, "-I", "-c", f"{START}from navigator_kernel.cli.main import main; main()")
LIMIT = 60  # seconds that one command may take here


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The JSON document on stdout, which must hold nothing else."""
        value, end = json.JSONDecoder().raw_decode(self.out)
        assert self.out[end:] == "\n", f"more than one document: {self.out!r}"
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A person's project: the folder in which commands run."""

    root: Path
    program: Sequence[str] = MODULE

    def run(
        self, *words: str, stdin: str | bytes = "", env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> Done:
        """Runs `navigator <words>`; a traceback on either stream fails any test."""
        given = stdin if isinstance(stdin, bytes) else stdin.encode()
        folder, held = cwd or self.root, environment(env)
        if self.program in {MODULE, SKILL_MANAGER}:
            script = "" if self.program == MODULE else self.program[1]
            done = run_command(
                words, cwd=folder, env=held, stdin=given, timeout=LIMIT, start=environment(), script=script
            )
        else:
            argv = [*self.program, *words]
            done = subprocess.run(argv, cwd=folder, env=held, input=given, capture_output=True, timeout=LIMIT)
        out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
        assert "Traceback (most recent" not in out + err, out + err
        return Done(code=done.returncode, out=out, err=err)

    def on_terminal(self, *words: str, env: Mapping[str, str] | None = None, keys: str = "") -> str:
        """Runs `navigator <words>` on its own terminal; returns both streams as they come. `keys` are typed ahead."""
        master, slave = pty.openpty()
        argv = [*self.program, *words]
        process = subprocess.Popen(
            argv, cwd=self.root, env=environment(env), stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)
        os.write(master, keys.encode())
        seen = b""
        with os.fdopen(master, "rb", buffering=0) as screen, suppress(OSError):  # EIO: the terminal is closed
            while part := screen.read(65_536):
                seen += part
        process.wait(LIMIT)
        return seen.decode("utf-8", "replace").replace("\r\n", "\n")

    def json(self, *words: str, **given: Any) -> Any:
        """The document of a `--json` command; its exit code must be that of the process."""
        done = self.run(*words, "--json", **given)
        assert done.document.get("exit_code", 0) == done.code, (done.code, done.out)
        return done.document

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def files(self) -> dict[str, bytes]:
        """Every file of the project with its bytes, except the locks between processes and the cache."""
        found = sorted(path for path in self.root.rglob("*") if path.is_file() and path.name != "lock")
        held = {path.relative_to(self.root).as_posix(): path for path in found}
        return {name: path.read_bytes() for name, path in held.items() if not name.startswith("mybox/cache/")}

    def runs(self) -> list[list[dict[str, Any]]]:
        """The events of every run so far, oldest first."""
        logs = sorted((self.root / "mybox" / "logs" / "runs").glob("*.jsonl"))
        return [[json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] for log in logs]

    def said(self, *words: str, **given: Any) -> str:
        """Runs a command that must succeed; returns its stdout."""
        done = self.run(*words, **given)
        assert done.code == 0, (done.code, done.out, done.err)
        return done.out


def place_in(tmp_path: Path, *, program: Sequence[str] = MODULE) -> Place:
    """An empty project."""
    root = tmp_path / "project"
    (root / "mybox").mkdir(parents=True)
    return Place(root=root, program=program)


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The test's environment with the source tree's kernel, without `CI`, which changes how commands behave."""
    own = {"PYTHONPATH": str(SOURCE / "kernel"), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "default"}
    mine = {name: value for name, value in os.environ.items() if name != "CI"}
    return {**mine, **own, **(more or {})}


def type_a(name: str, script: str, *, description: str = "does a thing", extra: str = "") -> dict[str, str]:
    """The files of a skill that runs `script`, by path below its own folder."""
    head = f"name: {name}\ndescription: {description}\ncommand: python ${{SKILL_ROOT}}/run.py\n{extra}"
    return {"SKILL.md": f"---\n{head}---\n# {name}\n\nRuns.\n", "run.py": script}


def below(folder: str, files: Mapping[str, str]) -> dict[str, str]:
    return {f"{folder}/{name}": text for name, text in files.items()}


NOBODY = 1234  # a user without a name


def as_nobody(place: Place, *words: str, env: Mapping[str, str], stdin: str = "") -> Done:
    """Runs a command with exactly `env`; root becomes a user who may read everything and write only what is theirs."""
    argv = [*place.program, *words]
    if os.geteuid() == 0:
        powers = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
        argv = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *powers, *argv]
    done = subprocess.run(argv, cwd=place.root, env=env, input=stdin, capture_output=True, text=True, timeout=LIMIT)
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    return Done(code=done.returncode, out=done.stdout, err=done.stderr)


def open_to_nobody(folder: Path) -> None:
    """Lets that user reach the test's own folders."""
    for parent in folder.parents[:3]:
        if os.geteuid() == 0 and parent.name.startswith(("pytest-", "test_")):
            parent.chmod(0o755)

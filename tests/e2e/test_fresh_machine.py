"""A script of `bin/` in a fresh clone, with a Python that has none of the kernel's packages (issue 26, item 6)."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import sysconfig
from contextlib import suppress
from pathlib import Path

import pytest

from cli.support import SOURCE

pytestmark = pytest.mark.wide

SCRIPTS = sorted(path.name for path in (SOURCE / "bin").glob("[a-z]*.py"))
BASE = Path(sys.base_prefix) / "bin" / "python3"


class Machine:
    """A clone of this project and an empty home; `python` has no packages installed."""

    def __init__(self, base: Path) -> None:
        self.clone, home = base / "a clone", base / "home"
        home.mkdir()
        subprocess.run(["git", "clone", "-q", "--depth", "1", SOURCE.as_uri(), str(self.clone)], check=True)
        subprocess.run([str(BASE), "-m", "venv", "--without-pip", str(base / "bare")], check=True)
        self.python = base / "bare" / "bin" / "python3"
        self.env = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}

    def run(self, script: str, *words: str) -> subprocess.CompletedProcess[str]:
        argv = [str(self.python), f"bin/{script}", *words]
        return subprocess.run(argv, cwd=self.clone, env=self.env, capture_output=True, text=True, timeout=60)

    def answer(self, typed: str, script: str, *words: str) -> tuple[int, str]:
        """Types `typed` on a terminal; returns the exit code and everything that is shown."""
        master, slave = pty.openpty()
        argv = [str(self.python), f"bin/{script}", *words]
        process = subprocess.Popen(
            argv, cwd=self.clone, env=self.env, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)
        os.write(master, typed.encode())
        seen = b""
        with os.fdopen(master, "rb", buffering=0) as screen, suppress(OSError):  # EIO: the terminal is closed
            while part := screen.read(65_536):
                seen += part
        return process.wait(60), seen.decode()

    def make(self) -> None:
        """Creates the files that `make` creates, with the packages of this test's environment."""
        venv = self.clone / ".venv"
        subprocess.run([str(BASE), "-m", "venv", "--without-pip", str(venv)], check=True)
        site = next(venv.glob("lib/python3*/site-packages"))
        (site / "here.pth").write_text(f"{self.clone / 'kernel'}\n{sysconfig.get_paths()['purelib']}\n")
        (venv / "made").touch()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("script", SCRIPTS)
def test_without_an_environment_one_line_says_how_it_is_made(machine: Machine, script: str) -> None:
    done = machine.run(script, "list", "--json")
    line = f"error: the environment is not made yet; make it with: make -C '{machine.clone}' .venv/made\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", line)


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_environment_that_make_made_is_used(machine: Machine, script: str) -> None:
    machine.make()
    done = machine.run(script, "--help")
    assert (done.returncode, "Usage: navigator" in done.stdout, done.stderr) == (0, True, "")


@pytest.mark.requirement("STA-2")
def test_the_words_of_the_command_line_arrive_as_they_were_typed(machine: Machine) -> None:
    machine.make()
    done = machine.run("navigator.py", "ask", "--format", "raw", "/word-count one  'two three'")
    assert '"words": 3' in done.stdout, done.stderr
    assert subprocess.run(["git", "status", "--porcelain"], cwd=machine.clone, capture_output=True).stdout == b""


def test_another_python_that_has_a_kernel_of_its_own_is_left_for_the_clones(machine: Machine) -> None:
    machine.make()
    site = next((machine.python.parents[1]).glob("lib/python3*/site-packages"))
    for name in ("navigator_kernel", "click", "msgspec"):
        (site / name).mkdir()
        (site / name / "__init__.py").write_text("raise SystemExit('another kernel')\n")
    done = machine.run("skill_manager.py", "list")
    assert (done.returncode, "word-count" in done.stdout) == (0, True), done.stderr


@pytest.mark.parametrize("typed", ["\n", "no\n", "\x04"], ids=["nothing", "no", "end of input"])
def test_on_a_terminal_nothing_is_made_without_a_yes(machine: Machine, typed: str) -> None:
    code, seen = machine.answer(typed, "doctor.py")
    assert (code, "Make it now" in seen, "make it with: make -C" in seen) == (1, True, True), seen
    assert not (machine.clone / ".venv").exists()


def test_after_a_yes_it_is_made_with_a_line_that_counts(machine: Machine) -> None:
    """The chore is replaced by one that needs no network and creates the same files."""
    machine.make()
    (machine.clone / ".venv").rename(machine.clone / "kept")
    (machine.clone / "Makefile").write_text(".venv/made:\n\t@sleep 1\n\t@mv kept .venv\n")
    code, seen = machine.answer("y\n", "skill_manager.py", "list", "--json")
    assert (code, "making .venv, once: 1 s" in seen, '"word-count"' in seen) == (0, True, True), seen


def test_an_error_while_the_environment_is_made_is_shown(machine: Machine) -> None:
    (machine.clone / "Makefile").write_text(".venv/made:\n\t@echo no disk >&2; false\n")
    code, seen = machine.answer("y\n", "doctor.py")
    assert (code, "error: it could not be made" in seen, "no disk" in seen) == (1, True, True), seen


def test_the_shared_module_can_be_read_by_old_pythons() -> None:
    import ast

    for name in ("_environment.py", *SCRIPTS):
        ast.parse((SOURCE / "bin" / name).read_text("utf-8"), feature_version=(3, 7))

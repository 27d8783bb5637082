"""A conversation, from a pipe and on a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import SLEEP, environment
from processes import filled_below, working_in
from tables import cases

pytestmark = pytest.mark.sample(1)


@pytest.mark.wide
def test_two_turns_from_a_pipe(run: Any) -> None:
    done = run("chat", typed="/code-review x\n/word-count one two three\n")
    assert (done.code, "code-review" in done.out, "3 words" in done.out) == (0, True, True)


@pytest.mark.wide
def test_a_conversation_is_one_json_document(run: Any) -> None:
    told = run("chat", "--json", typed="/word-count x\nwhat can you do?\n").document()
    assert [reply["report"]["state"] for reply in told["replies"]] == ["success", "success"]
    assert {reply["session"] for reply in told["replies"]} == {told["session"]}


@pytest.mark.parametrize("script", ["chat.py", ""])
def test_help_shows_the_quit_command_and_the_path_syntax(run: Any, script: str) -> None:
    done = run(*(() if script else ("chat",)), typed="/help\n", script=script)
    assert (done.code, "/quit" in done.out, "@path" in done.out) == (0, True, True)


@cases("typed, code")
def test_the_exit_code_from_a_pipe_is_the_last_turns(run: Any, typed: str, code: int) -> None:
    assert run("chat", typed=typed).code == code


@pytest.mark.requirement("SEN-2")
def test_a_question_is_answered_by_the_next_line(run: Any) -> None:
    told = run("chat", "--json", typed="/word-count\nto be or not to be\n").document()
    assert [reply["report"]["state"] for reply in told["replies"]] == ["pending", "success"]
    assert told["replies"][1]["report"]["data"]["words"] == 6


@pytest.mark.requirement("SAF-1")
@pytest.mark.parametrize(
    ("answer", "made"), [("yes", True), ("是", True), ("no", False), ("否", False), ("maybe", False)]
)
def test_a_shell_command_runs_after_a_yes_only(run: Any, answer: str, made: bool) -> None:
    done = run("chat", typed=f"!echo made-$((40 + 2))\n{answer}\n")
    assert ("made-42" in done.out) is made


@pytest.mark.wide
@pytest.mark.requirement("SEN-7")
def test_follow_ups_go_back_until_they_are_released(run: Any) -> None:
    told = run("chat", "--json", typed="/code-review x\nand again\nstop\nand again\n").document()
    assert [reply["route"]["entity"] for reply in told["replies"]] == ["code-review", "code-review", None, None]


@pytest.mark.parametrize(
    "typed", ["/word-count one \\\ntwo\n", '"""\n/word-count\none\ntwo\n"""\n', '"""\n/word-count\none\ntwo\n']
)
def test_a_message_may_have_several_lines(run: Any, typed: str) -> None:
    told = run("chat", "--json", typed=typed).document()
    assert [reply["report"]["data"].get("words") for reply in told["replies"]] == [2]


@pytest.mark.parametrize(
    ("word", "shown"),
    [("/skills", "Counts words, characters"), ("/why", "why        word-count: written as an instruction")],
)
def test_a_chat_accepts_its_own_commands(run: Any, word: str, shown: str) -> None:
    assert shown not in run("chat", typed="/word-count x\n").out
    done = run("chat", typed=f"/word-count x\n{word}\n")
    assert (done.code, shown in done.out) == (0, True)


@pytest.mark.wide
def test_an_error_does_not_end_the_conversation(run: Any, root: Path) -> None:
    (root / "src").mkdir()
    done = run("chat", "--json", typed="see @src/\n/nope\n/word-count x\n")
    assert done.code == 0
    assert done.document()["replies"][-1]["report"]["state"] == "success"


# On a terminal


@dataclass
class Screen:
    """The output of a terminal, read in order."""

    master: int
    shown: str = ""

    def until(self, wanted: str, limit: float = 20) -> None:
        """Waits for `wanted`; drops the output up to and including it."""
        assert self.comes(wanted, limit), f"{wanted!r} is not in {self.shown!r}"
        self.shown = self.shown.partition(wanted)[2]

    def comes(self, wanted: str, limit: float) -> bool:
        """Whether `wanted` is shown within `limit` seconds."""
        deadline = time.monotonic() + limit
        while wanted not in self.shown:
            ready, _, _ = select.select([self.master], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                return False
            self.shown += os.read(self.master, 65536).decode("utf-8", "replace")
        return True

    def until_after(self, wanted: str, again: bytes) -> None:
        """Like `until`, but types `again` while `wanted` does not appear: a signal that arrives between a prompt and
        the read after it waits for the next key."""
        for _ in range(5):
            if self.comes(wanted, 2.0):
                break
            self.type(again)
        self.until(wanted)

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)


@contextmanager
def terminal(root: Path, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], Screen]]:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "navigator_kernel.cli.main", "chat", *words],
        cwd=root,
        env=environment(TERM="dumb"),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=_controlling,
    )
    os.close(slave)
    try:
        yield process, Screen(master)
    finally:
        process.kill()
        process.wait()
        os.close(master)


def _controlling() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def sleeper(root: Path) -> None:
    folder = root / ".claude" / "skills" / "doze-long"
    folder.mkdir(parents=True)
    (folder / "run.py").write_text(SLEEP)
    (folder / "SKILL.md").write_text(
        "---\nname: doze-long\ndescription: dozes\ncommand: python ${SKILL_ROOT}/run.py\n---\nGo.\n"
    )


def last_event(root: Path) -> str:
    newest = max((root / "mybox" / "logs" / "runs").glob("*.jsonl"))
    kind: str = json.loads(newest.read_text().splitlines()[-1])["type"]
    return kind


def alive(pid: int) -> bool:
    try:
        return b"\nState:\tZ" not in Path(f"/proc/{pid}/status").read_bytes()[:300]
    except OSError:
        return False


def ends(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(pid)


def started(root: Path) -> int:
    deadline = time.monotonic() + 20
    while not (found := filled_below(root, "pid")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return max(working_in(found[0].parent))  # in a sandbox, `pid` may hold the number of another namespace


@pytest.mark.timeout(90)
def test_ctrl_c_stops_the_turn_and_its_process_and_not_the_program(root: Path) -> None:
    sleeper(root)
    with terminal(root) as (process, screen):
        screen.until("> ")
        screen.type(b"/doze-long\n")
        screen.until("[y]es")
        screen.until("\n> ")
        screen.type(b"yes\n")
        pid = started(root)
        screen.type(b"\x03")
        screen.until("stopped")
        screen.until("\n> ")
        assert ends(pid)
        assert last_event(root) == "RunCancelled"
        assert process.poll() is None
        screen.type(b"/word-count one two\n")
        screen.until("2 words")
        screen.type(b"/quit\n")
        assert process.wait(20) == 0


@pytest.mark.wide
@pytest.mark.timeout(60)
def test_ctrl_c_at_the_prompt_ends_nothing(root: Path) -> None:
    with terminal(root) as (process, screen):
        screen.until("> ")
        screen.type(b"half a messa\x03")
        screen.until_after("\n> ", again=b"\x03")
        screen.type(b"/word-count one two\n")
        screen.until("2 words")
        screen.until("\n> ")
        screen.type(b"\x04")
        assert process.wait(20) == 0


@pytest.mark.wide
@pytest.mark.timeout(60)
def test_ctrl_c_during_ask_ends_with_130_and_the_process_is_dead(root: Path) -> None:
    sleeper(root)
    process = subprocess.Popen(
        [sys.executable, "-m", "navigator_kernel.cli.main", "ask", "--yes", "/doze-long", "--json"],
        cwd=root,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    pid = started(root)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    told = json.loads(out)
    assert (process.returncode, told["exit_code"], b"Traceback" in err) == (130, 130, False)
    assert last_event(root) == "RunCancelled"
    assert ends(pid)


def test_a_shell_command_starts_in_the_project_and_cannot_change_it(run: Any, root: Path) -> None:
    (root / "notes.txt").write_text("kept\n")
    done = run("chat", typed="!ls; echo lost > notes.txt\nyes\n")
    assert "notes.txt" in done.out and (root / "notes.txt").read_text() == "kept\n"


def test_what_a_shell_command_says_of_errors_is_shown(run: Any) -> None:
    done = run("chat", typed="!echo warn >&2; echo fine\nyes\n")
    assert "fine\n" in done.out and "warn\n" in done.out


def test_skills_are_listed_shortly_and_found_by_words(run: Any) -> None:
    none = run("chat", typed="/skills zzzzqqq\n")
    assert none.out + none.err == "no skill is found by these words; /skills lists all\n"
    every, some = run("chat", typed="/skills\n").out, run("chat", typed="/skills count words\n").out
    assert "code-review" in every and "word-count" in every
    assert "word-count" in some and "code-review" not in some


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("/word-c", "/word-count "),
        ("@@word-c", "@@word-count "),
        ("#wee", "#weekly "),
        ("@no", "@notes.txt "),
        ("@old", '"old data.csv" '),
        ("@a", "@a.txt "),
        ("@fi", "\x07ve"),
        ("count sub/in", "count sub/inner/"),
    ],
)
def test_tab_completes_a_skill_a_workflow_or_a_file(root: Path, typed: str, completed: str) -> None:
    (root / "notes.txt").write_text("a\n")
    for name in ("old data.csv", "a.txt", "five.txt", "five more.txt"):
        (root / name).write_text("a\n")
    (root / "mybox" / "workflows").mkdir(parents=True)
    (root / "mybox" / "workflows" / "weekly.md").write_text("a\n")
    (root / "sub" / "inner").mkdir(parents=True)
    with terminal(root) as (process, screen):
        screen.until("> ")
        screen.type(f"{typed}\t".encode())
        screen.until(completed)
        screen.type(b"\x15\x04")
        assert process.wait(20) == 0


def test_a_conversation_that_is_taken_up_again_shows_what_waits(run: Any, root: Path) -> None:
    run("chat", "--session", "s", typed="!echo made\n")
    with terminal(root, "--session", "s") as (_, screen):
        screen.until("echo made")
        screen.until("[y]es")

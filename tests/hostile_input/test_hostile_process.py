"""Input that needs a process of its own: bytes that are not text, a pipe that is also a file, little memory."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cli.support import START, Done, Place
from hostile_input.planted import SECRET, Ground

FIRST_BYTES = bytes(range(256))
MEMORY = 300 * 1024**2  # bytes of data that the process may allocate
SMALL = (
    sys.executable,
    "-I",
    "-c",
    f"{START}import resource; resource.setrlimit(resource.RLIMIT_DATA, ({MEMORY},) * 2)\n"
    "from navigator_kernel.cli.main import main; main()",
)

pytestmark = [pytest.mark.wide, pytest.mark.timeout(60), pytest.mark.requirement("SAF-1")]


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def harmless(ground: Ground, done: Done) -> bool:
    return SECRET not in done.out + done.err + ground.written().decode("utf-8", "replace") and not ground.canaries


def test_a_conversation_of_any_bytes_ends(ground: Ground) -> None:
    done = Place(root=ground.project).run("chat", stdin=FIRST_BYTES + b"\n\xff\xfe@.env\n/mirror \xc3\x28\n@.env\n")
    assert (done.code, harmless(ground, done), "a file of secrets" in done.out) == (3, True, True)


def test_a_message_of_any_bytes_ends(ground: Ground) -> None:
    done = Place(root=ground.project).run("ask", "-", stdin=FIRST_BYTES)
    assert (done.code, harmless(ground, done)) == (9, True)


def test_a_message_with_invalid_utf8_is_accepted(ground: Ground) -> None:
    done = Place(root=ground.project).run("ask", "--json", "--", "/mirror", "\udcff\udcc3")
    assert (done.document["exit_code"], harmless(ground, done)) == (9, True)  # no model


@pytest.mark.requirement("PRE-8")
def test_reading_dev_stdin_as_a_file_is_refused_and_shows_nothing_of_it(ground: Ground) -> None:
    done = Place(root=ground.project).run("ask", "/mirror @/dev/stdin", stdin=SECRET)
    assert (done.code, harmless(ground, done)) == (3, True)


@pytest.mark.requirement("PRE-8")
def test_a_message_of_one_file_again_and_again_fits_a_small_memory(ground: Ground) -> None:
    done = Place(root=ground.project, program=SMALL).run("ask", "-", stdin="@wide.txt " * 20_000)
    assert (done.code in {2, 9}, harmless(ground, done)) == (True, True), (
        done.err
    )  # too much for a command, or nobody's

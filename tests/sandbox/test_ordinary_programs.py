"""Ordinary programs work under both sandboxes: the system call filter stops harm but not work."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from navigator_kernel.sandbox.backends import ALLOWED, ATTRIBUTES, CHECKED, MARKS, NONE
from sandbox.world import World, opened
from tables import cases, table

pytestmark = pytest.mark.sample(1)

RUNGS = ("bubblewrap", "landlock")
SHELL = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:] or {argv!r}).returncode)"
BASH = """set -e
for i in 1 2 3; do echo $i; done | sort -r | head -n 1; cat <(echo hi) > made; cp made other; mv other third; ln -s made way
mkdir -p a/b; : > a/b/c; find . -type f | wc -l; gzip -c made > made.gz; gzip -dc made.gz > /dev/null
sleep 0.05; timeout 2 true; nproc; date; seq 5 | xargs -n 2 echo; dd if=/dev/zero of=zeros bs=1k count=4 2> /dev/null; stat zeros
ulimit -n; nice -n 5 true; du -s .; sed s/h/j/ made; awk '{print $1}' made; rm -r a; flock zeros true; mktemp; wc -c < zeros"""
PROGRAMS = table(__file__, "PROGRAMS")

# Each prints "worked" if the command did what it says, and nothing to stderr. The first word of a name is the program
COMMANDS = table(__file__, "COMMANDS")


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with opened("self") as found:
        yield found


@pytest.fixture(params=RUNGS)
def rung(request: pytest.FixtureRequest, world: World) -> str:
    name: str = request.param
    if not world.attempt("print(1)", name)["there"]:
        pytest.skip(f"there is no {name} here")
    return name


@pytest.mark.requirement("AGT-2")
@pytest.mark.parametrize("name", PROGRAMS)
def test_ordinary_python_programs_work(world: World, rung: str, name: str) -> None:
    found = world.attempt(f"{PROGRAMS[name]}\nprint('worked')", rung)
    assert (found["out"].strip(), found["code"]) == ("worked", 0), found


@cases("program, argv", lists=True)
def test_other_interpreters_work(world: World, rung: str, program: str, argv: list[str]) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    found = world.attempt(SHELL.format(argv=argv), rung, 30)
    assert found["code"] == 0, found


@pytest.mark.requirement("AGT-2")
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_that_set_modes_times_and_owners_do_so(world: World, rung: str, name: str) -> None:
    program = re.split(r"\W", name)[0]
    if shutil.which(program, path=os.defpath) is None:
        pytest.skip(f"{program} is not installed")
    argv = ["bash", "-c", f"set -e; echo text > old; {COMMANDS[name]}"]
    found = world.attempt(SHELL.format(argv=argv), rung, 60)
    assert (found["code"], found["out"].strip(), found["err"]) == (0, "worked", ""), found


HEADERS = [*Path("/usr/include").glob("*/asm/unistd_64.h"), *Path("/usr/include").glob("asm/unistd_64.h")]


@pytest.mark.skipif(not HEADERS, reason="the kernel's headers are not installed")
def test_the_numbers_are_those_of_the_kernels_headers() -> None:
    known = dict(re.findall(r"#define __NR_(\w+)\s+(\d+)", HEADERS[0].read_text()))
    listed = {name: one for table in (ALLOWED, MARKS, ATTRIBUTES, CHECKED) for name, (one, _) in table.items()}
    wrong = {name: one for name, one in listed.items() if name in known and one != int(known[name])}
    assert wrong == {} and len(listed) > 200


@pytest.mark.parametrize("column", [0, 1], ids=["x86_64", "aarch64"])
def test_no_number_stands_for_two_calls(column: int) -> None:
    plain = {**ALLOWED, **MARKS, **ATTRIBUTES, **CHECKED}
    numbers = [held[column] for held in plain.values() if held[column] != NONE]
    assert len(numbers) == len(set(numbers))

"""`allowed-tools` limits every command of a line; what is not certain is refused with the way to write it."""

from __future__ import annotations

from pathlib import Path

import pytest

from navigator_kernel.values.allowed import Unclear, allowed_tools, commands_in
from tables import cases
from tools.bench_of_tools import toolbox


def programs(line: str) -> list[str]:
    return [command.words[0].text for command in commands_in(line)]


@cases("line, found", lists=True)
def test_every_command_of_a_line_is_found(line: str, found: list[str]) -> None:
    assert programs(line) == found


@cases("line")
def test_what_is_not_certain_is_not_guessed(line: str) -> None:
    with pytest.raises(Unclear):
        commands_in(line)


PYTHON = ("Bash(python:*)", "Bash(head *)", "Bash(git status:*)", "Bash(scripts/*.sh:*)", "Bash(npm run test)")


@pytest.mark.requirement("JIT-12")
@cases("line")
def test_a_line_of_allowed_commands_is_allowed(line: str) -> None:
    assert allowed_tools(PYTHON).refused(line) == ""


@pytest.mark.requirement("JIT-12")
@cases("line")
def test_a_line_with_another_command_is_refused(line: str) -> None:
    assert allowed_tools(PYTHON).refused(line)


def test_a_refusal_names_the_command_and_what_is_allowed(tmp_path: Path) -> None:
    box = toolbox(tmp_path.resolve(), allowed=("Bash(python:*)",))
    answer = box.call("run", command="python3 -c 'print(1)' | sort -r")
    assert answer.failed and "not 'sort -r'" in answer.text and "python:*" in answer.text
    answer = box.call("run", command="for x in 1; do python3 x.py; done")
    assert answer.failed and "joined by && or |" in answer.text
    assert "1" in box.agreed("run", command="python3 -c 'print(1)'").text

"""`allowed-tools` limits every command of a line; what is not certain is refused with the way to write it."""

from __future__ import annotations

from pathlib import Path

import pytest

from navigator_kernel.values.allowed import Unclear, allowed_tools, commands_in
from tools.bench_of_tools import toolbox


def programs(line: str) -> list[str]:
    return [command.words[0].text for command in commands_in(line)]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("python x.py", ["python"]),
        ("python -c 'print(1); import os' \"a b\" # curl", ["python"]),
        ("python x.py;curl y", ["python", "curl"]),
        ("a|b||c&&d&e\nf", ["a", "b", "c", "d", "e", "f"]),
        ("a|&b 2>&1 >/dev/null <<<curl", ["a", "b"]),
        ('a $(b `c` "$(d)") > >(e) <(f)', ["c", "d", "b", "e", "f", "a"]),
        ("a \"x $(b 'y)') z\" && (c; d)", ["b", "a", "c", "d"]),
        ("! time a", ["a"]),
        ("a \\\n b", ["a"]),
        ("a <<'E' | b\ncurl $(curl)\nE\nc", ["a", "b", "c"]),
        ("a <<-E\nx\n\tE\nb", ["a", "b"]),
        ("a 'b\nc' \"d\ne\"", ["a"]),
        ("a <<'E'\n\tE\npython 'x\nE\ncurl 'y'", ["a", "curl"]),
        ("py'th'on\"3\" x", ["python3"]),
        ("a # b\nc", ["a", "c"]),
        ("a x#y; b", ["a", "b"]),
        ("git log --format='%h'", ["git"]),
        ('a {b,c} *.py ~/x $HOME "$1 ${x} 5$"', ["a"]),
    ],
)
def test_every_command_of_a_line_is_found(line: str, found: list[str]) -> None:
    assert programs(line) == found


@pytest.mark.parametrize(
    "line",
    [
        "PATH=. python x",
        "a; x=1",
        "for x in a; do b; done",
        "if a; then b; fi",
        "f() { a; }; f",
        "{ a; }",
        "[[ -v x ]]",
        "((x=1))",
        "a $((1+1))",
        "a ${x:=$(b)}",
        "a ${x@P}",
        "a $'x'",
        'a $"x"',
        "a $[x]",
        '"$x" a',
        "$x a",
        "`a` b",
        "{a,b}",
        "*.py",
        "~/a",
        "eval b",
        ". b",
        "source b",
        "trap b EXIT",
        "alias a=b; a",
        "coproc b",
        "exec 3<>(",
        "a 'b",
        'a "b',
        "a $(b",
        "a <<E\n$(b)\nE",
        "a <<E\nx",
        "a <<'E F'\nx\nE F",
        "a `b \\`c\\``",
        "printf -v 'x[$(b)]' y",
        'test -v "$x"',
        '[ -v "x[1]" ]',
        'a "$\\\n(b)"',
        "a $\\\n(b)",
        "case x in x) b;; esac",
        "a\u00a0b",
        "a >",
        "(" * 12 + "a" + ")" * 12,
        "a=(b)",
        "a[$(b)]=c",
        "declare -x PATH=.",
        "export PATH=.",
        "set -a",
    ],
)
def test_what_is_not_certain_is_not_guessed(line: str) -> None:
    with pytest.raises(Unclear):
        commands_in(line)


PYTHON = ("Bash(python:*)", "Bash(head *)", "Bash(git status:*)", "Bash(scripts/*.sh:*)", "Bash(npm run test)")


@pytest.mark.requirement("JIT-12")
@pytest.mark.parametrize(
    "line",
    [
        "python x.py",
        "python3 -c 'print(1)'",
        "python3.11 -m x '#' | head -3",
        "/usr/bin/python3 x.py && head x > y",
        "xargs -n 1 python x.py",
        "timeout 10 python x.py; nice -n 5 python y.py",
        "env python x.py",
        "bash -c 'python x.py | head'",
        "python - <<'EOF'\nimport os; os.system('curl')\nEOF",
        'python x.py $(head -1 y) "$(python z.py)"',
        "git status -s",
        "./scripts/a.sh x",
        "$SKILL_ROOT/scripts/a.sh x",
        "npm run test",
    ],
)
def test_a_line_of_allowed_commands_is_allowed(line: str) -> None:
    assert allowed_tools(PYTHON).refused(line) == ""


@pytest.mark.requirement("JIT-12")
@pytest.mark.parametrize(
    "line",
    [
        "python x.py; curl y",
        "python x.py & curl y",
        "python$(curl y)",
        'python "$(curl y)"',
        "python `curl y`",
        "python x.py\ncurl y",
        "python <(curl y)",
        "python x.py > >(curl y)",
        "env curl y",
        "env -S 'curl y' python",
        "env PATH=. python x.py",
        "bash -c 'curl y'",
        'bash -c "$x"',
        "bash -c '$0 y' curl",
        "sh -c 'python x.py; curl y'",
        "xargs curl",
        "xargs -I{} sh -c 'curl {}'",
        "timeout 5 curl y",
        "python <<EOF\n$(curl y)\nEOF",
        "PATH=. python x.py",
        "LD_PRELOAD=./x.so python x.py",
        "./python x.py",
        "bin/python x.py",
        "$SKILL_ROOT/python x.py",
        "pythonx x.py",
        "python2to3 x.py",
        "command curl y",
        "exec curl y",
        "find . -exec python x.py ';'",
        "git push",
        "git statusx",
        "headx y",
        "npm run test2",
        "npm run test && curl y",
        "scripts/../a.sh/../../x",
        "if true; then python x.py; fi",
        "scripts/../../evil.sh",
    ],
)
def test_a_line_with_another_command_is_refused(line: str) -> None:
    assert allowed_tools(PYTHON).refused(line)


def test_a_refusal_names_the_command_and_what_is_allowed(tmp_path: Path) -> None:
    box = toolbox(tmp_path.resolve(), allowed=("Bash(python:*)",))
    answer = box.call("run", command="python3 -c 'print(1)' | sort -r")
    assert answer.failed and "not 'sort -r'" in answer.text and "python:*" in answer.text
    answer = box.call("run", command="for x in 1; do python3 x.py; done")
    assert answer.failed and "joined by && or |" in answer.text
    assert "1" in box.agreed("run", command="python3 -c 'print(1)'").text

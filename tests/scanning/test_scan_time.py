"""What looking at a text costs: about as much more as the text is longer, whatever it holds."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from navigator_kernel.skills.scan.rule import Rule, rules
from scanning.test_content_rules import EXAMPLES, found_in

SHORT, SMALL, LARGE = 10_000, 25_000, 100_000  # characters of text that is made to be slow
SLOWER, NOISE = 8, 0.02  # how many times slower four times as much may be; seconds that are no measure
MOST = 0.5  # seconds for `SHORT`


def seconds(text: str, path: str) -> float:
    began = time.process_time()
    found_in(text, path)
    return time.process_time() - began


def slow_texts(rule: Rule) -> Iterator[str]:
    """What is repeated: the rule's needles, with what patterns wait for."""
    for between in (" ", "\n", "\"'/$(1, "):
        yield between.join(rule.needles or ("you", "must", "run", "4A1")) + between


@pytest.mark.ci
@pytest.mark.parametrize("number", range(len(EXAMPLES)), ids=lambda number: f"{number}-{EXAMPLES[number][0]}")
def test_four_times_the_text_takes_about_four_times_as_long(number: int) -> None:
    rule = rules()[number]
    path = "x.sh" if "code" in rule.kinds else "x.md"
    for unit in slow_texts(rule):
        few, many = (seconds(unit * (size // len(unit) + 1), path) for size in (SMALL, LARGE))
        assert many < SLOWER * max(few, NOISE), (unit[:60], few, many)


@pytest.mark.parametrize(
    "unit",
    [
        "1",
        "a",
        "9,",
        " ",
        "\n",
        "<a ",
        "<!--",
        "[",
        "```\n",
        "é",
        "\u2066א",
        "a-",
        "$(",
        "'",
        "curl -o ",
        "curl >a ",
        "; . ",
        "sh -x ",
    ],
)
@pytest.mark.parametrize("path", ["x.py", "x.md"])
def test_long_lines_of_one_thing_take_no_longer_than_others(unit: str, path: str) -> None:
    few, many = (seconds("é" + unit * (size // len(unit)), path) for size in (SMALL, LARGE))
    assert many < SLOWER * max(few, NOISE), (few, many)


AGAIN = "clauDE_DesKToP_CoNfIGx|^ x for os.system |npx  -|gem  -://|uvx  -git+|base64 -d > |xxd -r> .$x|socket.socketx .recv(xo |rm  ---  -urf".split(
    "|"
)
LINES = [("nc -", "c"), ("ssh -", "R"), ("truncate -s", " "), ("curl op read ", "readFile")]


@pytest.mark.parametrize(("head", "unit"), [*(("", unit) for unit in AGAIN), *LINES])
def test_what_patterns_try_again_and_again_takes_no_time(head: str, unit: str) -> None:
    assert seconds(head + unit * (SHORT // len(unit)), "x.sh") < MOST

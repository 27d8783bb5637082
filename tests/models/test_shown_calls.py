"""Calls that a text only shows, as a page that a model quotes does, and calls that are meant (shown_calls.tsv)."""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.adapters.models.calls import Spoken, read_arguments
from navigator_kernel.tools.built_in import specs
from tables import table

TOOLS = specs("en")
FENCE = "```"
READ = '<tool_call>{"name":"read","arguments":{"file_path":"a"}}</tool_call>'
RUN = READ.replace("read", "run").replace('"file_path":"a"', '"command":"evil"')
XML = "<function=run>\n<parameter=command>evil</parameter>\n</function>"
ROWS = [
    (kind, json.loads(text).replace("{RUN}", RUN).replace("{XML}", XML).replace("{READ}", READ))
    for kind, text in (
        line.split("\t") for line in Path(__file__).with_name("shown_calls.tsv").read_text("utf-8").splitlines()[1:]
    )
]


def texts(kind: str) -> list[str]:
    return [text for which, text in ROWS if which == kind]


def read(text: str, size: int = 0) -> tuple[str, list[tuple[str, Any]]]:
    spoken = Spoken(TOOLS)
    for at in range(0, len(text), size or len(text)):
        spoken(text[at : at + (size or len(text))])
    final, calls = spoken.end()
    return final, [(call.name, read_arguments(call.arguments)) for call in calls]


@pytest.mark.requirement("JIT-5", "JIT-7")
@pytest.mark.parametrize("size", [0, 3])
def test_a_call_that_a_text_shows_or_quotes_is_not_carried_out(size: int) -> None:
    assert [text for text in texts("shown") if read(text, size)[1]] == []


@pytest.mark.requirement("JIT-5", "JIT-7")
def test_after_a_call_that_cannot_be_read_nothing_is_carried_out_and_the_model_is_told() -> None:
    for text in texts("damaged"):
        final, calls = read(text)
        assert (final, [arguments for _, arguments in calls]) == ("", [None]), text


@pytest.mark.requirement("JIT-5", "JIT-7")
def test_a_call_after_an_answer_that_the_model_imagined_is_not_carried_out() -> None:
    for text in texts("first"):
        assert read(text) == ("", [("read", {"file_path": "a"})])


@pytest.mark.requirement("JIT-5", "JIT-7")
@pytest.mark.parametrize("size", [0, 3])
def test_a_call_is_carried_out_after_words_of_what_the_model_is_about_to_do(size: int) -> None:
    for text in texts("meant"):
        calls = read(text, size)[1]
        assert len(calls) == sum(map(text.count, (READ, "<function=", "[TOOL_CALLS]"))), text
        assert all(arguments is not None for _, arguments in calls), text


def test_python_says_nothing_of_the_escapes_in_a_models_text() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read("<tool_call>{'name': 'run', 'arguments': {'command': 'grep \\d'}}</tool_call>")[1]
        assert read("[run(command='grep \\d')]")[1] == [("run", {"command": "grep \\d"})]


# What begins a text, what repeats in it, and what ends it
SHAPES = table(__file__, "SHAPES")


@pytest.mark.parametrize("shape", SHAPES, ids=range(len(SHAPES)))
def test_a_long_answer_takes_time_in_proportion_to_its_length(shape: tuple[str, str, str]) -> None:
    begin, part, end = shape
    spent = []
    for length in (20_000, 100_000):
        text, began = begin + part * (length // len(part)) + end, time.process_time()
        read(text, 1_000)
        spent.append(time.process_time() - began)
    assert spent[1] < 12 * max(spent[0], 0.01)  # 25 times if it grew with the square

"""No text makes a reader of messages take time that grows much faster than the text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

import pytest

from cpu_time import thread_seconds
from navigator_kernel.adapters.files.project_files import ProjectFiles
from navigator_kernel.adapters.secrets.redaction import search
from navigator_kernel.language.clauses import LIMIT, clauses, may_spell_out, parts
from navigator_kernel.language.stated import columns, number, period
from navigator_kernel.routing.skill_orders import changes_skills
from navigator_kernel.text import clean, fold, language_of, shorten, strip_url_credentials
from navigator_kernel.turn.message import preprocess, words_of
from navigator_kernel.turn.split import split
from navigator_kernel.values.request import Message
from routing.place import routing_at, write_skills
from stages.messages import project
from tables import table

pytestmark = pytest.mark.ci

SMALL = 2_000  # characters
TIMES = 4
FACTOR = 9.0  # linear work takes 4 times as long, quadratic work 16 times
NOISE = 0.02  # seconds; quadratic work on 8,000 characters takes longer

PIECES = [*table(__file__, "PIECES"), "\ud800"]  # YAML has no lone surrogates
BEFORE = ("", "/word-count ", "@", "```\n")


LONG = 50_000  # characters
FOUR_TIMES = 6.0  # most by which the time may grow for a text of four times the length
REPEATED = table(__file__, "REPEATED")


@pytest.fixture
def files(tmp_path: Path) -> ProjectFiles:
    root = project(tmp_path)
    return ProjectFiles(root, root)


def seconds(use: Callable[[str], object], text: str, tries: int = 3) -> float:
    return thread_seconds(lambda: use(text), tries)


def slow(use: Callable[[str], object], small: int = SMALL, begins: Sequence[str] = ("",)) -> list[str]:
    """The texts whose time grows too fast, each as its beginning and its repeated piece."""
    found = []
    for before in begins:
        for piece in PIECES:
            large = before + (piece * (TIMES * small))[: TIMES * small]
            if seconds(use, large, tries=1) < NOISE:
                continue
            if (taken := seconds(use, large)) > FACTOR * seconds(use, before + (piece * small)[:small]) + NOISE:
                found.append(f"{before!r} {piece!r}: {taken:.2f} s")
    return found


@pytest.mark.parametrize(
    "use",
    [words_of, clean, lambda text: clean(text, lines=False), language_of, fold, lambda text: shorten(text, 80), strip_url_credentials, may_spell_out, changes_skills],
    ids=["words_of", "clean", "clean-line", "language_of", "fold", "shorten", "strip_url_credentials", "may_spell_out", "changes_skills"],
)  # fmt: skip
def test_the_time_for_a_text_grows_as_the_text(use: Callable[[str], object]) -> None:
    assert slow(use, begins=BEFORE if use is words_of else ("",)) == []


def test_the_time_for_what_a_message_states_grows_as_the_message() -> None:
    def read(text: str) -> object:
        return period(text, date(2026, 11, 28)), number(text), columns(text, ["name", "a", "1", "的"])

    assert slow(read, SMALL // TIMES, begins=("", "only ", "since 3 ", "最近")) == []


@pytest.mark.requirement("PRE-8")
def test_the_time_to_take_a_message_apart_grows_as_the_message(files: ProjectFiles) -> None:
    assert slow(lambda text: preprocess(Message(text=text), files), begins=BEFORE) == []


def test_a_text_over_the_limit_of_clauses_costs_nothing() -> None:
    assert slow(lambda text: (clauses(text), parts(text)), LIMIT + 1) == []


@pytest.mark.parametrize("text", ["a" * 1_000_000, "a " * 100_000, "'" * 199_999, '\\"' * 100_000, '"\\\\' * 50_000])
def test_words_of_a_whole_message_take_some_seconds_at_most(text: str) -> None:
    assert seconds(words_of, text, tries=1) < 3


@pytest.mark.parametrize(
    "text",
    ["@a " * 100_000, " ".join(f"@a{n}.c" for n in range(50_000)), "@a.b的" * 50_000, f"@{'a/../' * 190_000}file"],
    ids=["one-name", "many-files", "chinese", "winding"],
)
def test_files_of_a_whole_message_take_some_seconds_at_most(text: str, files: ProjectFiles) -> None:
    assert seconds(lambda text: preprocess(Message(text=text), files), text, tries=1) < 8


@pytest.mark.timeout(600)  # it measures processor time, which a busy machine gives slowly
@pytest.mark.parametrize("read", ["preprocess", "may_spell_out", "split", "recognise", "retrieve", "redaction"])
def test_four_times_the_text_takes_about_four_times_as_long(read: str, files: ProjectFiles) -> None:
    write_skills(files.root, {"word-count": "Counts the words of a text", "pdf-merge": "Merges PDF files"})
    router = routing_at(files.root).router
    readers: dict[str, Callable[[str], object]] = {
        "preprocess": lambda text: preprocess(Message(text=text), files),
        "may_spell_out": may_spell_out,
        "split": split,
        "recognise": router.recognise,
        "retrieve": router.retrieve,
        "redaction": search,
    }
    found = []
    for piece in REPEATED:
        texts = [(piece * size)[:size] for size in (LONG // 4, LONG, 4 * LONG)]
        if seconds(readers[read], texts[-1], 1) < NOISE:
            continue
        # What is slow stays slow; a busy machine is slow now and then, and in one of the two steps
        if all(grows_too_fast(*(seconds(readers[read], text) for text in texts)) for _ in range(3)):
            found.append(piece)
    assert found == []


def grows_too_fast(short: float, middle: float, long: float) -> bool:
    """Whether the time grows too much for a text of four times the length, and also from one to the next of three such
    lengths on average: a text that no longer fits into the processor's cache takes longer once."""
    return long > FOUR_TIMES * middle and long > FOUR_TIMES**2 * short


@pytest.mark.parametrize(
    ("exponent", "lost", "expected"), [(1.0, 1.0, False), (1.0, 2.0, False), (2.0, 1.0, True), (1.5, 1.0, True)]
)
def test_a_step_of_the_cache_is_not_a_growth(exponent: float, lost: float, *, expected: bool) -> None:
    short, middle, long = (length**exponent for length in (1, 4, 16))
    assert grows_too_fast(short, middle, long * lost) == expected

"""The index of words has the rows of its state and no others, whatever was added and removed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.index.word_index import WordIndex
from navigator_kernel.routing.entries import Entry
from navigator_kernel.routing.index import IndexFiles, IndexSnapshot, RoutingIndex
from navigator_kernel.routing.ranker import SEARCHED

Index = Callable[[str], RoutingIndex]
WORDS = [f"word{at}" for at in range(90)]


@pytest.fixture
def index_at(tmp_path: Path) -> Index:
    return lambda name: RoutingIndex(tmp_path / name, FolderWriter([tmp_path]), None)


def said(seed: int) -> Entry:
    """An entry with random words."""
    chance = Random(seed)

    def some(count: int) -> str:
        return " ".join(chance.choices(WORDS, k=count))

    name, length = f"skill-{seed}", chance.randrange(4, 16)
    return Entry(id=name, name=name, description=some(length), body=some(12), examples=(some(5),))


def held(index: RoutingIndex, entries: Sequence[Entry]) -> IndexSnapshot:
    index.sync(entries)
    assert index.view is not None
    return index.view


def scores(view: IndexSnapshot, text: str, limit: int = 200) -> dict[str, float]:
    return {view.row(row).id: score for row, score in view.search(dict.fromkeys(text.split(), 1.0), SEARCHED, limit)}


MANY = [said(seed) for seed in range(300)]


def test_removed_rows_are_not_found_and_do_not_shorten_the_results(index_at: Index) -> None:
    index = index_at("index")
    best = list(scores(held(index, MANY), "word1 word2", 25))
    view = held(index, [entry for entry in MANY if entry.id not in best[:5]])
    assert len(scores(view, "word1 word2", 20)) == 20
    assert best[5] in scores(view, "word1 word2", 20)
    assert not set(best[:5]) & scores(view, "word1 word2").keys()


def test_a_new_row_that_goes_again_leaves_nothing(index_at: Index) -> None:
    index = index_at("index")
    held(index, MANY[:50])
    view = held(index, MANY[:51])
    assert "skill-50" in scores(view, "50")
    view = held(index, MANY[:50])
    assert scores(view, "50") == {}
    view = held(index, MANY[:51])
    assert list(scores(view, "50")) == ["skill-50"]


def test_another_process_finds_the_newest_rows_too(index_at: Index) -> None:
    held(index_at("index"), MANY[:100])
    held(index_at("index"), MANY[1:110])
    view = held(index_at("index"), MANY[1:110])
    assert next(iter(scores(view, "105"))) == "skill-105"
    assert scores(view, "0") == {}


def test_a_reader_of_an_older_state_finds_no_row_twice_and_no_later_rows(index_at: Index, tmp_path: Path) -> None:
    """Between tantivy's commit and the new head, a reader has the old head and all rows of tantivy."""
    index = index_at("index")
    held(index, MANY[:100])
    older = held(index, MANY[:110])
    wanted = scores(older, "word1 word2 word3")
    held(index, MANY[:200])
    files = IndexFiles(tmp_path / "index" / "words", FolderWriter([tmp_path]))
    again = IndexSnapshot(files, older.head, None)
    rows = [row for row, _ in again.search(dict.fromkeys(["word1", "word2", "word3"], 1.0), SEARCHED, 200)]
    assert len(rows) == len(set(rows))
    assert {again.row(row).id for row in rows} == wanted.keys()


@pytest.mark.wide
def test_many_rows_that_come_at_once_are_one_segment(tmp_path: Path) -> None:
    """Each segment slows down every search and every look-up of a term's rarity."""
    words = WordIndex(("body",), tmp_path)
    words.change((row, {"body": [f"{row}w{at}" for at in range(200)]}) for row in range(2_000))
    assert len(list(tmp_path.glob("*.term"))) == 1
    assert [row for row, _ in words.search(dict.fromkeys(["1999w7"], 1.0), {"body": 1.0}, 5)] == [1999]

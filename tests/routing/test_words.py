"""The newest rows are kept outside tantivy: they are found as if they were in it, and one skill causes no commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.index.columns import SegmentStore
from navigator_kernel.adapters.index.word_index import WordIndex
from navigator_kernel.routing.entries import Entry
from navigator_kernel.routing.index import RoutingIndex
from navigator_kernel.routing.ranker import SEARCHED
from navigator_kernel.routing.view import IndexSnapshot
from navigator_kernel.routing.words import FEW, SMALL

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
    return {
        view.row(row).id: score for row, score in view.words.search(dict.fromkeys(text.split(), 1.0), SEARCHED, limit)
    }


def commits(root: Path) -> list[bytes]:
    return [path.read_bytes() for path in root.glob("*/*/g-*/words/meta.json")]


def late(view: IndexSnapshot) -> tuple[list[str], int]:
    """The ids of the newest rows, and the number of buried ones."""
    return [view.row(row).id for row in view.words.late.newest], len(view.words.late.buried)


MANY = [said(seed) for seed in range(300)]


def test_a_new_row_has_the_score_that_tantivy_would_give_it(index_at: Index, tmp_path: Path) -> None:
    """Except that lengths are not rounded, and each part computes the rarity of a term itself."""
    whole = held(index_at("whole"), MANY)
    held(index_at("grown"), MANY[:280])
    before = commits(tmp_path / "grown")
    for count in range(281, 301):
        grown = held(index_at("grown"), MANY[:count])
    assert late(grown) == ([entry.id for entry in MANY[280:]], 0)
    for text in ("word1 word2 word3", "word7 word30", "word11 word12 word13 word14 word15"):
        wanted, found = scores(whole, text), scores(grown, text)
        assert found.keys() == wanted.keys()
        for name, score in wanted.items():
            assert found[name] == pytest.approx(score, rel=0.08)
    assert [grown.words.seen("purpose", word) for word in WORDS] == [
        whole.words.seen("purpose", word) for word in WORDS
    ]
    assert commits(tmp_path / "grown") == before


def test_the_best_come_first_wherever_they_are(index_at: Index) -> None:
    index = index_at("index")
    held(index, MANY)
    view = held(index, [*MANY, said(300)])
    found = view.words.search(dict.fromkeys(["word5", "word300"], 1.0), SEARCHED, 20)
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    assert len(found) == 20
    assert view.words.search(dict.fromkeys(["300"], 1.0), SEARCHED, 5)[0][0] == 300


def test_removed_rows_are_not_found_and_do_not_shorten_the_results(index_at: Index, tmp_path: Path) -> None:
    index = index_at("index")
    view = held(index, MANY)
    before, best = commits(tmp_path), list(scores(view, "word1 word2", 25))
    view = held(index, [entry for entry in MANY if entry.id not in best[:5]])
    assert late(view) == ([], 5)
    assert list(scores(view, "word1 word2", 20)) == best[5:]
    assert commits(tmp_path) == before


def test_a_new_row_that_goes_again_leaves_nothing(index_at: Index) -> None:
    index = index_at("index")
    held(index, MANY[:50])
    view = held(index, MANY[:51])
    assert "skill-50" in scores(view, "50")
    view = held(index, MANY[:50])
    assert (scores(view, "50"), late(view)) == ({}, ([], 0))
    view = held(index, MANY[:51])
    assert list(scores(view, "50")) == ["skill-50"]


def test_when_they_are_many_all_are_committed_at_once(index_at: Index, tmp_path: Path) -> None:
    index = index_at("index")
    held(index, MANY[:100])
    before = commits(tmp_path)
    view = held(index, MANY[1 : 100 + FEW - 1])
    assert (len(late(view)[0]), late(view)[1]) == (FEW - 1, 1)
    assert commits(tmp_path) == before
    view = held(index, MANY[1 : 100 + FEW])
    assert late(view) == ([], 0)
    assert commits(tmp_path) != before
    fresh = held(index_at("index"), MANY[1 : 100 + FEW])
    assert scores(fresh, "word1 word2") == scores(view, "word1 word2")
    assert "skill-0" not in scores(fresh, "0 word1")
    view = held(index, MANY[1 : 101 + FEW])
    assert late(view) == ([f"skill-{100 + FEW}"], 0)


def test_long_bodies_are_committed_sooner(index_at: Index) -> None:
    long = [
        Entry(id=f"long-{at}", name=f"long-{at}", description="", body=" ".join(f"x{n}" for n in range(SMALL // 2)))
        for at in range(3)
    ]
    index = index_at("index")
    held(index, MANY[:20])
    assert late(held(index, [*MANY[:20], *long[:1]])) == (["long-0"], 0)
    assert late(held(index, [*MANY[:20], *long])) == ([], 0)


def test_another_process_finds_the_newest_rows_too(index_at: Index) -> None:
    held(index_at("index"), MANY[:100])
    held(index_at("index"), MANY[1:110])
    view = held(index_at("index"), MANY[1:110])
    assert late(view) == ([entry.id for entry in MANY[100:110]], 1)
    assert next(iter(scores(view, "105"))) == "skill-105"
    assert scores(view, "0") == {}


def test_a_reader_of_an_older_state_finds_no_row_twice_and_no_later_rows(index_at: Index, tmp_path: Path) -> None:
    """Between tantivy's commit and the new head, a reader has the old head and all rows of tantivy."""
    index = index_at("index")
    held(index, MANY[:100])
    older = held(index, MANY[:110])
    wanted = scores(older, "word1 word2 word3")
    held(index, MANY[:200])
    columns = SegmentStore(tmp_path / "index" / "words", FolderWriter([tmp_path]))
    again = IndexSnapshot(columns, older.head, None)
    rows = [row for row, _ in again.words.search(dict.fromkeys(["word1", "word2", "word3"], 1.0), SEARCHED, 200)]
    assert len(rows) == len(set(rows))
    assert {again.row(row).id for row in rows} == wanted.keys()


HARM: dict[str, Callable[[bytes], bytes]] = {
    "no JSON": lambda line: b"x" * len(line),
    "no pair": lambda line: b"[1]" + b" " * (len(line) - 4) + b"\n",
    "no number": lambda line: line.replace(b"[10", b"[[]", 1),
    "no fields": lambda line: b"[100,7]" + b" " * (len(line) - 8) + b"\n",
}


@pytest.mark.parametrize("harm", HARM)
def test_unreadable_newest_rows_are_rebuilt(index_at: Index, tmp_path: Path, harm: str) -> None:
    held(index_at("index"), MANY[:100])
    held(index_at("index"), MANY[:101])
    (path,) = tmp_path.glob("index/*/g-*/newest")
    path.write_bytes(HARM[harm](path.read_bytes()))
    view = held(index_at("index"), MANY[:101])
    assert next(iter(scores(view, "100"))) == "skill-100"
    assert late(view) == ([], 0)


@pytest.mark.wide
def test_many_rows_that_come_at_once_are_one_segment(tmp_path: Path) -> None:
    """Each segment slows down every search and every look-up of a term's rarity."""
    words = WordIndex(("body",), tmp_path)
    words.change((row, {"body": [f"{row}w{at}" for at in range(200)]}) for row in range(2_000))
    assert len(list(tmp_path.glob("*.term"))) == 1
    assert [row for row, _ in words.search(dict.fromkeys(["1999w7"], 1.0), {"body": 1.0}, 5)] == [1999]

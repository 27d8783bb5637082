"""The index processes only added and removed entries, and damage costs time but never an answer."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.model_ports import Encoder
from navigator_kernel.routing.entries import Entry
from navigator_kernel.routing.index import RoutingIndex
from navigator_kernel.routing.ranker import Ranker
from routing.semantic import TOLD, Counting, entries

pytestmark = pytest.mark.sample(2)

Index = Callable[..., RoutingIndex]


@pytest.fixture
def index_at(tmp_path: Path, encoder: Encoder) -> Index:
    def at(chosen: Encoder | None = encoder) -> RoutingIndex:
        return RoutingIndex(tmp_path / "index", FolderWriter([tmp_path]), chosen)

    return at


def found(index: RoutingIndex, text: str) -> list[str]:
    assert index.view is not None
    ranker = Ranker(index.view, index.encoder)
    return [one.row.name for one in ranker.measured(ranker.query(text))]


def nearest(index: RoutingIndex, text: str) -> str:
    assert index.view is not None and index.view.vectors is not None and index.encoder is not None
    rows, _ = index.view.vectors.near(index.encoder.encode([text], "query")[0], 1)
    return index.view.row(int(rows[0])).name


def test_candidates_come_by_words_and_by_meaning(index_at: Index) -> None:
    index = index_at()
    assert index.sync(entries()) == 8
    assert found(index, "merge these pdf files")[0] == "pdf-merge"
    assert nearest(index, "这个周末我想去旅行") == "travel-planner"
    assert nearest(index, "write the minutes of our meeting") == "会议纪要"


def heads(root: Path) -> list[int]:
    return [path.stat().st_mtime_ns for path in root.glob("index/*/current.json")]


def test_syncing_an_unchanged_state_encodes_and_writes_nothing(
    index_at: Index, encoder: Encoder, tmp_path: Path
) -> None:
    index_at().sync(entries())
    before, counting = heads(tmp_path), Counting(encoder)
    again = index_at(counting)
    assert again.sync(entries()) == 0
    assert (counting.texts, heads(tmp_path)) == ([], before)
    assert found(again, "merge these pdf files")[0] == "pdf-merge"


def test_only_new_or_changed_texts_are_encoded(index_at: Index, encoder: Encoder) -> None:
    counting = Counting(encoder)
    index = index_at(counting)
    index.sync(entries())
    counting.texts.clear()
    held = entries()
    held[0] = replace(held[0], description="Joins PDF documents.")
    assert index.sync(held[:-1]) == 3  # one row was added; its old row and another one were removed
    assert set(counting.texts) == {"pdf merge", "pdf merge: Joins PDF documents.", "joins"}


def test_a_removed_entry_is_not_found_until_it_is_added_again(index_at: Index) -> None:
    index = index_at()
    index.sync(entries())
    index.sync([entry for entry in entries() if entry.name != "pdf-merge"])
    assert "pdf-merge" not in found(index, "merge these pdf files")
    index.sync(entries())
    assert found(index, "merge these pdf files")[0] == "pdf-merge"


def test_sync_counts_all_changes_and_encodes_only_new_entries_in_any_order(index_at: Index, encoder: Encoder) -> None:
    """In the process that made the last change, and in one that reads the change."""
    counting, chance, held = Counting(encoder), Random(3), entries()
    index, kept = index_at(counting), set(TOLD)
    index.sync(held)
    for turn in range(30):
        counting.texts.clear()
        chosen = chance.sample(held, chance.randrange(1, len(held) + 1))
        chosen = chosen if turn % 2 else sorted(chosen, key=lambda entry: entry.id)
        names = {entry.id for entry in chosen}
        index = index if turn % 3 else index_at(counting)
        assert index.sync(chosen) == len(names ^ kept)
        assert {text.partition(":")[0] for text in counting.texts if ":" in text} == {
            entry.title for entry in chosen if entry.id not in kept
        }
        assert index.view is not None
        assert {index.view.row(at).id for at in index.view.rows_by_digest.values()} == names
        kept = names


def test_an_entry_given_twice_is_indexed_until_it_is_no_longer_given(index_at: Index) -> None:
    index, (one, *others) = index_at(None), entries()
    for told in ([one, one, *others], [one, *others], [*others, one], [one, *others, one], others):
        index.sync(told)
        assert index.view is not None
        assert {index.view.row(at).id for at in index.view.rows_by_digest.values()} == {entry.id for entry in told}


def test_without_an_encoder_words_serve_alone(index_at: Index) -> None:
    index = index_at(None)
    index.sync(entries())
    assert index.view is not None and index.view.vectors is None
    assert found(index, "merge these pdf files") == ["pdf-merge"]


def test_an_index_with_many_removed_entries_is_rebuilt_without_them(index_at: Index) -> None:
    index = index_at()
    many = [Entry(id=f"s{at}", name=f"skill-{at}", description=f"Does thing {at}.") for at in range(400)]
    index.sync(many)
    index.sync(many[:10])
    assert index.view is not None
    assert (index.view.count, len(index.view.head.dead)) == (10, 0)
    assert found(index, "thing 3")[0] == "skill-3"


FILES = ("rows", "digests", "spans", "terms", "vectors", "shot_ends", "words/meta.json", "../current.json")


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


HARM: dict[str, Callable[[Path], object]] = {
    "emptied": lambda path: path.write_bytes(b""),
    "cut in half": lambda path: os.truncate(path, path.stat().st_size // 2),
    "gone": lambda path: path.unlink(),
    "a folder": replace_by_folder,
}


@pytest.mark.parametrize("harm", HARM)
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_index_is_rebuilt(index_at: Index, tmp_path: Path, name: str, harm: str) -> None:
    index_at().sync(entries())
    (generation,) = tmp_path.glob("index/*/g-*")
    HARM[harm](generation / name)
    again = index_at()
    again.sync(entries())
    assert found(again, "merge these pdf files")[0] == "pdf-merge"
    assert nearest(again, "这个周末我想去旅行") == "travel-planner"
    assert index_at().sync(entries()) == 0


def test_an_index_that_a_killed_process_left_half_written_is_rebuilt(index_at: Index, tmp_path: Path) -> None:
    index_at().sync(entries())
    (folder,) = tmp_path.glob("index/*")
    (folder / "changing").write_bytes(b"")
    (generation,) = folder.glob("g-*")
    with (generation / "rows").open("ab") as file:
        file.write(b"half a li")
    again = index_at()
    again.sync(entries()[1:])
    assert "pdf-merge" not in found(again, "merge these pdf files")
    assert [path.name for path in folder.glob("g-*")] == [again.view.head.generation if again.view else ""]
    assert not (folder / "changing").exists()


PROCESS = """
import sys
from pathlib import Path
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.index.use_encoder import UseEncoder
from navigator_kernel.routing.index import RoutingIndex
from routing.semantic import entries
root, kept, skip = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
encoder = UseEncoder(kept, lambda: FolderWriter([kept]))
index = RoutingIndex(root / "index", FolderWriter([root]), encoder)
held = [entry for at, entry in enumerate(entries()) if at != skip]
for turn in range(5):
    index.sync(held)
    index.sync(entries())
print(index.view.count)
"""


@pytest.mark.wide
def test_processes_that_index_at_once_all_end_right(index_at: Index, tmp_path: Path, encoder_folder: Path) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(["kernel", "tests"])}
    words = [sys.executable, "-c", PROCESS, str(tmp_path), str(encoder_folder)]
    running = [
        subprocess.Popen([*words, str(skip)], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for skip in range(3)
    ]
    ended = [process.communicate(timeout=100)[0].strip() for process in running]  # a process may print that it waits
    assert (ended, [process.returncode for process in running]) == (["8"] * 3, [0] * 3)
    index = index_at()
    assert index.sync(entries()) == 0
    assert found(index, "merge these pdf files")[0] == "pdf-merge"

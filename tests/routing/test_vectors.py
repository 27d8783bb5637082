"""The share of a message that examples explain; a message and its words have the same vectors together as apart."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from navigator_kernel.adapters.index.columns import RecordReader
from navigator_kernel.adapters.index.use_encoder import LIMITS, PARTS, UseEncoder
from navigator_kernel.routing import vectors as vectors_module
from navigator_kernel.routing.vectors import Vectors

WIDTH = 8


def vectors(*examples: Sequence[Sequence[float]], texts: Sequence[Sequence[float]] = ()) -> Vectors:
    """One row for each list of examples; without `texts`, all names and texts are the same."""
    told = np.full((len(examples), 3, WIDTH), WIDTH**-0.5, dtype=np.float16)
    if texts:
        told[:, 1] = np.array(texts, dtype=np.float16)
    shots = [np.array(said, dtype=np.float16).reshape(-1, WIDTH) for said in examples]
    ends = np.cumsum([said.nbytes for said in shots]).astype(np.int64)
    held = np.concatenate(shots).tobytes()
    return Vectors(
        vectors=memoryview(told.tobytes()),
        shots=memoryview(held),
        shot_ends=memoryview(ends.tobytes()),
        rows=len(examples),
        dimensions=WIDTH,
    )


def along(*directions: int) -> list[float]:
    found = np.zeros(WIDTH)
    found[list(directions)] = 1.0
    return list(found / np.linalg.norm(found))


def explained(held: Vectors, query: Sequence[float], rows: Sequence[int]) -> list[float]:
    return [numbers[-1] for numbers in held.measured(np.array(query, dtype=np.float32), rows)]


def test_a_message_that_is_an_example_is_nearly_all_of_it_its_rows() -> None:
    held = vectors([along(0), along(1)], [along(2), along(3)], [])
    first, second, untaught = explained(held, along(0), [0, 1, 2])
    assert first > 0.95
    assert 0.0 <= second < 0.02 and 0.0 <= untaught < 0.02


def test_without_examples_in_any_row_the_texts_decide_the_shares() -> None:
    held = vectors([], [], texts=[along(0), along(1)])
    near, far = explained(held, along(0), [0, 1])
    assert near > 0.5 > far >= 0.0
    assert vectors([]).measured(np.zeros(WIDTH, dtype=np.float32), []).shape == (0, 5)


def test_a_row_without_examples_has_its_text_in_the_share() -> None:
    """The examples of one row do not take the share that another's description explains."""
    held = vectors([along(0)], [], texts=[along(0), along(0, 1)])
    taught, untaught = explained(held, along(1), [0, 1])
    assert untaught > taught


def test_what_is_as_near_to_other_peoples_messages_is_not_explained_by_an_example() -> None:
    held, others = vectors([along(0)], [], texts=[along(5), along(6)]), np.array([along(0, 2)], dtype=np.float32)
    near, far = (np.array(along(*directions), dtype=np.float32) for directions in ((0,), (0, 2)))
    share = {
        len(one): [held.measured(query, [0, 1], one)[0, 4] for query in (near, far)] for one in (others, others[:0])
    }
    assert share[1][0] > 0.9 * share[0][0]
    assert share[1][1] < 0.5 * share[0][1]


def test_the_more_examples_a_row_has_the_better_they_describe_it() -> None:
    held = vectors([], [along(0)], [along(at) for at in range(WIDTH)])
    none, one, many = held.measured(np.array(along(0), dtype=np.float32), [0, 1, 2])[:, 3]
    assert 0.0 == none < one < many < 1.0


def test_a_row_with_the_same_example_among_many_others_has_the_smaller_share() -> None:
    held = vectors([along(0)], [along(0), *(along(at) for at in range(3, WIDTH))])
    own, copied = explained(held, along(0), [0, 1])
    assert own > copied + 0.2


def test_two_that_say_the_same_share_what_one_would_have() -> None:
    alone = explained(vectors([along(0)], [along(5)]), along(0), [0, 1])
    shared = explained(vectors([along(0)], [along(0)]), along(0), [0, 1])
    assert shared[0] == pytest.approx(shared[1])
    assert shared[0] < alone[0] - 0.2


def test_a_duplicate_example_leaves_the_share_of_its_row_nearly_unchanged() -> None:
    once = explained(vectors([along(0, 1)], [along(5)]), along(0), [0, 1])
    twice = explained(vectors([along(0, 1), along(0, 1)], [along(5)]), along(0), [0, 1])
    assert twice[0] == pytest.approx(once[0], abs=0.02)


def test_a_message_and_its_words_are_encoded_together_as_they_are_apart(encoder: UseEncoder) -> None:
    text, words = "review my pull request, 请审查", ["review", "pull", "审查"]
    query, said = encoder.message(text, words)
    assert np.allclose(query, encoder.encode([text], "query")[0], atol=1e-5)
    assert np.allclose(said, encoder.encode(words, "word"), atol=1e-5)
    assert encoder.message(text, [])[1].shape == (0, encoder.dimensions)


def test_a_long_message_has_the_mean_vector_of_its_parts(encoder: UseEncoder) -> None:
    parts = ["Review my code, " * 11, "then paint a boat. " * 9, "写一份周报。" * 30]
    found = encoder.encode([". ".join(parts)], "query")[0]
    apart = encoder.encode(parts, "query")
    assert float(np.linalg.norm(found)) == pytest.approx(1.0, abs=1e-4)
    assert min(float(found @ one) for one in apart) > 0.4


def test_of_a_very_long_message_the_beginning_and_the_end_are_read(encoder: UseEncoder) -> None:
    size, half = LIMITS["query"], LIMITS["query"] * PARTS // 2
    start, end = "a" * half, "z" * half
    texts = [f"{start}{'m' * size * 3}{end}", f"{start}{'q' * size * 5}{end}", f"{start}{'m' * size * 3}{'y' * half}"]
    read, same, another = encoder.encode(texts, "query")
    assert np.allclose(read, same, atol=1e-5)
    assert not np.allclose(read, another, atol=1e-2)


def test_among_many_rows_most_of_those_next_to_a_query_are_found_and_nearest_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Few rows are compared in full; their cosines are exact. The file is mapped, and read piece by piece."""
    chance, rows, width = np.random.default_rng(5), 6_000, 32
    topics = chance.normal(size=(60, width))
    told = topics[chance.integers(60, size=rows)] + 0.7 * chance.normal(size=(rows, width))
    held = np.repeat((told / np.linalg.norm(told, axis=1, keepdims=True))[:, None], 3, axis=1).astype(np.float16)
    files: dict[str, Any] = {
        "vectors": memoryview(held.tobytes()),
        "shots": memoryview(b""),
        "shot_ends": memoryview(bytes(8 * rows)),
    }
    whole = Vectors(**files, rows=rows, dimensions=width)
    monkeypatch.setattr(vectors_module, "EXACT", rows - 1)
    (tmp_path / "vectors").write_bytes(held.tobytes())
    with (tmp_path / "vectors").open("rb") as file:
        mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    picked = RecordReader(tmp_path / "vectors", 3 * width * 2)
    few = Vectors(**{**files, "vectors": mapped}, rows=rows, dimensions=width, picked=picked)
    shared = 0
    for query in (topics[:40] / np.linalg.norm(topics[:40], axis=1, keepdims=True)).astype(np.float32):
        (best, near), (found, said) = whole.near(query, 32), few.near(query, 32)
        exact = dict(zip(best.tolist(), near.tolist(), strict=True))
        shared += len(exact.keys() & set(found.tolist()))
        assert said.tolist() == sorted(said.tolist(), reverse=True)
        for row, cosine in zip(found.tolist(), said.tolist(), strict=True):
            assert cosine == pytest.approx(exact.get(row, cosine), abs=1e-5)
    assert shared / (40 * 32) > 0.9
    assert np.allclose(few.measured(query, [5, 5_999]), whole.measured(query, [5, 5_999]), atol=1e-6)


def grown(held: np.ndarray, rows: int, before: Vectors | None = None) -> Vectors:
    """The vectors of the first `rows` rows."""
    ends, told = memoryview(bytes(8 * rows)), memoryview(held[:rows].tobytes())
    search = None if before is None else before.search
    return Vectors(
        vectors=told, shots=memoryview(b""), shot_ends=ends, rows=rows, dimensions=held.shape[2], before=search
    )


@pytest.mark.parametrize("exact", [50, 1_000], ids=["in clusters", "in full"])
def test_added_rows_are_found_without_reprocessing_the_earlier_rows(
    monkeypatch: pytest.MonkeyPatch, exact: int
) -> None:
    monkeypatch.setattr(vectors_module, "EXACT", exact)
    held = np.random.default_rng(7).normal(size=(240, 3, 32))
    held = (held / np.linalg.norm(held, axis=2, keepdims=True)).astype(np.float16)
    first = grown(held, 200)
    found = {"clusters made": 0, "rows told": 0}
    made, told = vectors_module._middles, vectors_module._told

    def middles(sample: np.ndarray, count: int) -> np.ndarray:
        found["clusters made"] += 1
        return made(sample, count)

    def some(rows: np.ndarray) -> np.ndarray:
        found["rows told"] += len(rows)
        return told(rows)

    monkeypatch.setattr(vectors_module, "_middles", middles)
    monkeypatch.setattr(vectors_module, "_told", some)
    later = grown(held, 240, grown(held, 220, first))
    assert found == {"clusters made": 0, "rows told": 40}
    for row in (3, 205, 239):
        query = told(held[row : row + 1])[0]
        rows, cosines = later.near(query, 5)
        assert rows[0] == row
        assert cosines[0] == pytest.approx(1.0, abs=1e-3)
        assert cosines.tolist() == sorted(cosines.tolist(), reverse=True)


def test_when_more_came_than_are_compared_in_full_there_are_new_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors_module, "EXACT", 50)
    held = np.random.default_rng(8).normal(size=(200, 3, 32)).astype(np.float16)
    first = grown(held, 100)
    second = grown(held, 150, first)
    third = grown(held, 151, second)
    assert [one.search.clustered for one in (first, second, third)] == [100, 100, 151]


def test_the_middle_of_rows_that_point_apart_is_as_long_as_any_other() -> None:
    """A shorter one would be searched less often than its nearness warrants."""
    apart = np.array([[1.0, 0.0], [-0.8, 0.6]], dtype=np.float32)
    assert np.linalg.norm(vectors_module._middles(apart, 1), axis=1) == pytest.approx([1.0])

"""The share of a message that examples explain; a message and its words have the same vectors together as apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from navigator_kernel.adapters.index.use_encoder import LIMITS, PARTS, UseEncoder
from navigator_kernel.routing.vectors import Vectors, places

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


def test_the_rows_nearest_to_a_query_come_first_with_their_cosines() -> None:
    chance, rows = np.random.default_rng(5), 300
    facets = chance.normal(size=(rows, 3, WIDTH))
    facets = (facets / np.linalg.norm(facets, axis=2, keepdims=True)).astype(np.float16)
    ends = memoryview(bytes(8 * rows))
    index = Vectors(
        vectors=memoryview(facets.tobytes()), shots=memoryview(b""), shot_ends=ends, rows=rows, dimensions=WIDTH
    )
    middles = facets[:, 1:].astype(np.float32).sum(axis=1)
    middles /= np.linalg.norm(middles, axis=1, keepdims=True)
    for query in middles[:20]:
        nearest, cosines = index.near(query, 32)
        exact = middles @ query
        assert nearest.tolist() == np.argsort(-exact, kind="stable")[:32].tolist()
        assert np.allclose(cosines, exact[nearest], atol=1e-6)


def test_a_place_counts_by_its_reciprocal_equals_share_one_and_nothing_has_none() -> None:
    assert places([0.2, 0.9, 0.2, 0.1, 0.0]).tolist() == [1 / 2, 1.0, 1 / 2, 1 / 4, 0.0]
    assert places([]).tolist() == []


def test_of_rows_with_nearly_the_same_text_the_first_is_a_different_one() -> None:
    """A chain of kin counts from those that stay: the third is far from the first, though not from the second."""
    held = vectors([], [], [], [], texts=[along(0), along(0, 1), along(1), along(0)])
    assert held.different([0, 1, 2, 3]) == [0, 2]
    assert held.different([3, 2]) == [0, 1]
    assert held.different([]) == []

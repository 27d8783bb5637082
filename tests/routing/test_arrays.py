"""Features computed in arrays equal those computed row by row."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.model_ports import Encoder
from navigator_kernel.routing.arrays import places
from navigator_kernel.routing.entries import Entry
from navigator_kernel.routing.features import LEXICAL
from navigator_kernel.routing.index import RoutingIndex
from navigator_kernel.routing.ranker import Ranker

WORDS = "review code pdf merge merge 周报 写 weather deploy deploy-tool v2 the to a translate 翻译 email data-base x".split()
ODD = ["", "???", "the of to", "merge", "merge merge pdf", "写周报 翻译 email", "deploy the data-base to v2 " * 20]


def made(count: int) -> list[Entry]:
    chance = Random(7)

    def text(most: int) -> str:
        return " ".join(chance.choices(WORDS, k=chance.randrange(most)))

    return [
        Entry(
            id=f"{at}",
            name=text(4) or f"name-{at}",
            description=f"{text(12)}. Not for {text(4)}." if at % 3 else "",
            tags=tuple(text(3).split()),
            aliases=tuple(text(4).split()),
            examples=tuple(filter(None, (text(6), text(3)))) if at % 4 == 0 else (),
            body=text(30),
        )
        for at in range(count)
    ]


@pytest.fixture
def ranker(tmp_path: Path, encoder: Encoder) -> Ranker:
    index = RoutingIndex(tmp_path / "index", FolderWriter([tmp_path]), encoder)
    index.sync(made(60))
    assert index.view is not None
    return Ranker(index.view, encoder)


def test_lexical_features_are_the_same_from_arrays_and_row_by_row(ranker: Ranker) -> None:
    chance = Random(3)
    for text in [*ODD, *(" ".join(chance.choices(WORDS, k=8)) for _ in range(20))]:
        said = ranker.said(text)
        for one in ranker.measured(said):
            assert one.numbers[: len(LEXICAL)] == pytest.approx(ranker._lexical(said.asked, one.at), abs=1e-9), text


def test_a_place_counts_by_its_reciprocal_equals_share_one_and_nothing_has_none() -> None:
    assert places(np.array([0.2, 0.9, 0.2, 0.1, 0.0])).tolist() == [1 / 2, 1.0, 1 / 2, 1 / 4, 0.0]
    assert places(np.array([])).tolist() == []


def test_a_ranking_by_words_alone_is_the_same_before_numpy_is_there_and_after(ranker: Ranker) -> None:
    said = ranker.said("merge these pdf files")
    before = ranker.measured(said, meaning=False)
    ranker.measured(said)
    after = ranker.measured(said, meaning=False)
    assert [one.at for one in before] == [one.at for one in after] != []
    for one, same in zip(before, after, strict=True):
        assert one.numbers == pytest.approx(same.numbers, abs=1e-9)

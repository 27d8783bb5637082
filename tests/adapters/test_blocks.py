"""Products with weights stored in blocks equal plain products, on every machine."""

from __future__ import annotations

import numpy as np
import pytest

from navigator_kernel.adapters.index import blocks


@pytest.mark.parametrize("each", [64, 768], ids=["blocks of 64 columns", "one block"])
@pytest.mark.parametrize("count", [0, 1, 2, 29, 30, 31, 200])
def test_a_product_with_blocks_is_that_with_the_whole(each: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "columns", lambda wide: each)
    random = np.random.default_rng(count)
    weights, rows = (random.standard_normal(shape).astype(np.float32) for shape in ((512, 768), (count, 512)))
    held = blocks.blocked(weights)
    assert held.shape == (768 // each, 512, each)
    found = blocks.times(rows, held)
    assert (found.shape, found.dtype) == ((count, 768), np.dtype(np.float32))
    assert np.allclose(found, rows @ weights, atol=1e-3)


def test_a_block_is_the_whole_without_the_instructions_that_take_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for found, wanted in ((["X86_V3"], 320), (["X86_V3", "X86_V4"], 64), (["AVX2", "AVX512_SKX"], 64)):
        monkeypatch.setattr(np, "show_config", lambda mode, found=found: {"SIMD Extensions": {"found": found}})
        assert blocks.columns(320) == wanted
    for empty in ({}, {"SIMD Extensions": {"baseline": ["NEON"]}}):
        monkeypatch.setattr(np, "show_config", lambda mode, empty=empty: empty)
        assert blocks.columns(320) == 320

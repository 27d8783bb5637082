"""A text is encoded once for all projects, and kept vectors are never trusted unchecked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.index import use_encoder
from navigator_kernel.adapters.index.use_encoder import KeptVectors, UseEncoder
from navigator_kernel.model_ports import TextKind

TEXTS = ["merge three files", "合并三个文件", "bake a cake"]


class Counting(UseEncoder):
    """The real encoder, which records what it encodes."""

    seen: list[str]

    def encode(self, texts: Sequence[str], kind: TextKind) -> Any:
        self.seen = [*getattr(self, "seen", []), *texts]
        return super().encode(texts, kind)


@pytest.fixture
def counting(encoder_folder: Path) -> Counting:
    return Counting(encoder_folder, lambda: FolderWriter([encoder_folder]))


def kept(encoder: UseEncoder, folder: Path) -> KeptVectors:
    return KeptVectors(encoder, folder, lambda: FolderWriter([folder]))


def test_another_process_encodes_only_the_new_texts_and_gets_the_same_numbers(
    counting: Counting, tmp_path: Path
) -> None:
    first = kept(counting, tmp_path).encode(TEXTS, "document")
    counting.seen = []
    again = kept(counting, tmp_path).encode([*TEXTS, "paint a wall"], "document")
    assert counting.seen == ["paint a wall"]
    assert np.array_equal(again[:3], first)
    assert np.allclose(first, UseEncoder.encode(counting, TEXTS, "document"), atol=1e-3)


def test_a_question_and_a_document_of_the_same_words_are_kept_apart(counting: Counting, tmp_path: Path) -> None:
    held = kept(counting, tmp_path)
    assert not np.allclose(held.encode(TEXTS, "document"), held.encode(TEXTS, "query"), atol=1e-2)


def test_a_message_is_not_kept(counting: Counting, tmp_path: Path) -> None:
    held = kept(counting, tmp_path)
    held.encode(["my secret plan"], "query")
    held.message("my secret plan", ["secret", "plan"])
    assert not held.path.exists()


@pytest.mark.parametrize("damage", [lambda data: data[:-5], lambda data: data[:20] + b"\xff" * 40 + data[60:]])
def test_a_damaged_file_is_made_again(counting: Counting, tmp_path: Path, damage: Any) -> None:
    first = kept(counting, tmp_path).encode(TEXTS, "document")
    held = kept(counting, tmp_path)
    held.path.write_bytes(damage(held.path.read_bytes()))
    assert np.array_equal(held.encode(TEXTS, "document"), first)
    counting.seen = []
    assert np.array_equal(kept(counting, tmp_path).encode(TEXTS, "document"), first)
    assert counting.seen == []


def test_a_full_file_is_started_again(counting: Counting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(use_encoder, "MOST", 4)
    held = kept(counting, tmp_path)
    held.encode(TEXTS, "document")
    size = held.path.stat().st_size
    held.encode(["one more", "and one more"], "document")
    assert held.path.stat().st_size == size // 3 * 2
    assert np.array_equal(held.encode(TEXTS, "document"), kept(counting, tmp_path).encode(TEXTS, "document"))


def test_without_a_place_to_write_it_encodes_all_the_same(counting: Counting, tmp_path: Path) -> None:
    held = KeptVectors(counting, tmp_path / "a", lambda: FolderWriter([tmp_path / "b"]))
    assert held.encode(TEXTS, "document").shape == (3, 256)

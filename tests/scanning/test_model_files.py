"""Model files: the imports of a pickle are found however they are written, and an unreadable pickle is reported."""

from __future__ import annotations

import bz2
import collections
import contextlib
import datetime as dt
import gzip
import io
import lzma
import pickle
import pickletools
import zipfile
import zlib
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from navigator_kernel.skills.scan import content
from navigator_kernel.skills.scan.unwanted_files import Imports, model_findings
from tables import table

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.requirement("SAF-1")

SYSTEM = b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R."
TORCH = 0x1950A86A20F9469CFC6C  # magic number of files from torch before version 1.6
PLAIN = {
    "set": {1, 2}, "complex": 1j, "when": dt.datetime(2026, 1, 2, tzinfo=dt.UTC), "path": PurePosixPath("a"),
    "ordered": collections.OrderedDict(a=1), "counts": collections.Counter("aab"), "range": range(3),
    "numbers": np.arange(6, dtype="float32").reshape(2, 3), "one": np.float64(1.5), "type": np.dtype("int16"),
    "objects": np.array([{"a": 1}, None], dtype=object), "random": np.random.RandomState(1), "words": ["x"] * 3,
    "generator": np.random.default_rng(1), "flag": np.bool_(True), "bytes": b"\x00\xff", "default": collections.defaultdict(list),
}  # fmt: skip


def text_of(word: str) -> bytes:
    """The operation that pushes `word` onto the stack."""
    return b"\x8c" + bytes([len(word.encode())]) + word.encode()


class Called:
    """Pickles that import `module.name`; the old one also calls it."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def old(self) -> bytes:
        return f"c{self.module}\n{self.name}\n(S'id'\ntR.".encode()

    def new(self) -> bytes:
        return b"\x80\x04" + b"".join(text_of(x) for x in (self.module, self.name)) + b"\x93."


def found(path: str, data: bytes) -> list[tuple[str, str | None]]:
    return [(one.code, one.text) for one in model_findings(path, data)]


def imports(name: str) -> list[tuple[str, str | None]]:
    return [("pickled-model", f"a pickle that imports {name}")]


def archive(**members: bytes) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as pack:
        for name, data in members.items():
            pack.writestr(name.replace("__", "/") + ".pkl", data)
    return held.getvalue()


def saved(value: Any) -> bytes:
    held = io.BytesIO()
    np.save(held, value, allow_pickle=True)
    return held.getvalue()


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("what", sorted(PLAIN))
def test_a_pickle_of_plain_data_has_no_finding(what: str, protocol: int) -> None:
    for data in (written := pickle.dumps(PLAIN[what], protocol), pickletools.optimize(written)):
        assert found("weights.pkl", data) == []


MEMO = {
    "BINGET": b"\x80\x04\x8c\x02osq\x00\x8c\x06systemq\x01\x8c\x01a\x8c\x01bh\x00h\x01\x93.",
    "BINGET after other texts are removed": b"\x80\x04\x8c\x02os\x94\x8c\x06system\x94\x8c\x04math000h\x00h\x01\x93.",
    "LONG_BINGET": b"\x80\x04\x8c\x02osr\x00\x00\x00\x00\x8c\x06systemr\x01\x00\x00\x00j\x00\x00\x00\x00j\x01\x00\x00\x00\x93.",
    "GET": b"\x80\x04\x8c\x02osp7\n\x8c\x06systemp9\n\x8c\x01xg7\ng9\n\x93.",
    "a text between": b"\x80\x04\x8c\x02os\x8c\x06system\x8c\x05numpy0\x93.",
    "a mark between": b"\x80\x04\x8c\x02os\x8c\x06system(\x8c\x05numpy\x8c\x05dtype1\x93.",
    "a text twice": b"\x80\x04\x8c\x02os\x8c\x06system20\x93.",
}


@pytest.mark.parametrize("how", sorted(MEMO))
def test_an_import_is_found_whatever_way_its_names_come_to_the_stack(how: str) -> None:
    loader = Imported(MEMO[how])
    with contextlib.suppress(IndexError, pickle.UnpicklingError):
        loader.load()
    assert loader.names == [("os", "system")]
    assert found("weights.pkl", MEMO[how]) == imports("os.system")


class Imported(pickle.Unpickler):
    """Python's own reader, which lists the imports instead of making them."""

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))
        self.names: list[tuple[str, str]] = []

    def find_class(self, module: str, name: str) -> object:
        self.names.append((module, name))
        return tuple


OPERATIONS = [text_of("os"), text_of("system"), text_of("numpy"), b"(", b"0", b"1", b"2", b"\x85", b"\x86", b"t", b"\x94", b"q\x00",
    b"q\x01", b"h\x00", b"h\x01", b"\x93", b"cos\npath\n", b"N", b"]", b"a", b"}", b"s", b"l", b"R", b"S'id'\n", b"(ios\nopen\n"]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(parts=st.lists(st.sampled_from(OPERATIONS), max_size=30))
def test_every_import_that_the_loader_makes_is_listed(parts: list[bytes]) -> None:
    data = b"\x80\x04" + b"".join(parts) + b"."
    loader, listed = Imported(data), Imports()
    with contextlib.suppress(Exception):
        loader.load()
    listed.read(data)
    assert listed.names[: len(loader.names)] == loader.names


HIDDEN: dict[str, tuple[str, str]] = table(__file__, "HIDDEN")


@pytest.mark.parametrize("how", sorted(HIDDEN))
def test_more_than_the_data_of_a_model_is_found(how: str) -> None:
    call = Called(*HIDDEN[how])
    assert found("weights.pkl", call.new()) == imports(".".join(HIDDEN[how]))
    if call.module.isascii():
        assert found("weights.pkl", call.old()) == imports(".".join(HIDDEN[how]))


def test_a_name_that_the_pickle_computes_is_found() -> None:
    data = b"\x80\x04c_codecs\nencode\n\x8c\x02os\x8c\x05ascii\x86R\x8c\x06system\x93."
    assert found("weights.pkl", data) == imports("a name it computes")


@pytest.mark.parametrize(
    "pack",
    [zlib.compress, gzip.compress, bz2.compress, lzma.compress, lambda data: lzma.compress(data, lzma.FORMAT_ALONE)],
)
def test_a_compressed_pickle_is_read(pack: Callable[[bytes], bytes]) -> None:
    assert found("model.joblib", pack(SYSTEM)) == imports("os.system")
    assert found("model.joblib", pack(pickle.dumps(PLAIN["numbers"]))) == []


def test_each_pickle_of_an_old_file_of_torch_is_read() -> None:
    head = [pickle.dumps(value, 2) for value in (TORCH, 1001, {"little_endian": True})]
    weights, keys, numbers = pickle.dumps({"w": PLAIN["ordered"]}, 2), pickle.dumps(["1"], 2), b"\x00\x9c\x01\x44" * 400
    assert found("model.pt", b"".join([*head, weights, keys, numbers])) == []
    assert found("model.pt", b"".join([*head, SYSTEM, keys, numbers])) == imports("os.system")


@pytest.mark.parametrize("name", ["model.pt", "model.npz", "pytorch_model.bin"])
def test_each_pickle_of_an_archive_is_read(name: str) -> None:
    plain = {f"part{number}": pickle.dumps(number) for number in range(12)}
    assert found(name, archive(**plain)) == []
    last = archive(**plain, archive__data=SYSTEM)
    assert found(name, last) == [("pickled-model", "archive with a pickle that imports os.system")]


def test_an_array_of_objects_is_read_as_a_pickle() -> None:
    honest = saved(PLAIN["objects"])
    assert found("a.npy", honest) == found("a.npy", saved(PLAIN["numbers"])) == []
    assert found("a.npy", honest[: honest.index(b"\x80")] + SYSTEM) == imports("os.system")


def parts() -> dict[str, tuple[str, bytes]]:
    long = pickle.dumps(["x"] * 250_000) + SYSTEM
    return {
        "more operations than are read": ("a.pkl", long),
        "an operation that is not one": ("a.pkl", pickle.dumps([1])[:-1] + b"\xff" + SYSTEM),
        "a number that only the loader reads": ("a.pkl", b"I0x10\n0" + SYSTEM),
        "a second pickle that is cut": ("a.pkl", pickle.dumps([1]) + b"\x80\x04\x8c\x40os"),
        "an array between": ("a.joblib", b"\x80\x04\x8c\x05numpy\x8c\x07ndarray\x93" + b"\x00" * 64 + SYSTEM),
        "a compression that is not known": ("a.pkl.zst", b"\x28\xb5\x2f\xfd" + b"\x00" * 40),
        "more compressed data than are read": ("a.joblib", zlib.compress(pickle.dumps(bytes(17_000_000)) + SYSTEM)),
        "a damaged archive": ("a.pt", archive(data=SYSTEM)[:-30]),
        "a member that is too large": ("a.pt", archive(data=pickle.dumps(bytes(17_000_000)), more=SYSTEM)),
    }


@pytest.mark.parametrize("what", sorted(parts()))
def test_a_file_whose_pickles_cannot_all_be_read_is_reported_as_not_scanned(what: str) -> None:
    [(code, text)] = found(*parts()[what])
    assert code == "not-scanned"
    assert text is not None
    assert text.startswith("a model file of")


@pytest.mark.parametrize("name", ["weights.bin", "tokens.model", "image.png", "notes.pt"])
@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=400))
def test_bytes_that_are_not_a_pickle_have_no_finding_of_one(name: str, data: bytes) -> None:
    if not data.startswith((b"\x80", b"PK")):
        assert {code for code, _ in found(name, b"\x00" + data)} <= {"unreadable-program"}


@settings(max_examples=100, deadline=None)
@given(value=st.recursive(st.none() | st.integers() | st.text() | st.binary() | st.floats(), lambda kid: st.lists(kid) | st.dictionaries(st.text(), kid)), protocol=st.integers(0, 5))  # fmt: skip
def test_any_plain_value_is_read_to_its_end(value: object, protocol: int) -> None:
    assert found("weights.pkl", pickle.dumps(value, protocol)) == []


def test_a_scan_of_a_skill_names_the_model_file_and_what_it_imports() -> None:
    seen = content.findings({"SKILL.md": b"---\nname: a\n---\n", "models/a.pkl": SYSTEM + bytes(9)})
    [one] = [one for one in seen if one.code == "pickled-model"]
    assert (one.level, one.path, one.line) == ("warning", "models/a.pkl", None)
    assert one.text == "a pickle that imports os.system"

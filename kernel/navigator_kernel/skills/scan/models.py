"""Finds model files that run code when they are loaded: pickles, also compressed or in archives of torch and numpy."""

from __future__ import annotations

import bz2
import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Iterator

from navigator_kernel.skills.scan.finding import finding
from navigator_kernel.skills.scan.pickles import Imports
from navigator_kernel.text import lazy_compile
from navigator_kernel.values.receipt import NOT_SCANNED
from navigator_kernel.values.resource import Diagnostic

_PICKLES = (".pkl", ".pickle", ".dill", ".joblib", ".sav")
_NAMES = (*_PICKLES, ".pt", ".pth", ".ckpt", ".npy", ".npz", ".bin", ".model")
_PACKED = lazy_compile(r"\.(?:gz|bz2|xz|lzma|z|zst|lz4)$")
_PROTOCOLS = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
_MOST = 16 * 1024 * 1024  # decompressed bytes of pickles that are checked in one file
# Imports of plain model data: from these packages, classes, number types and the functions that rebuild objects
_PACKAGES = frozenset({
    "collections", "numpy", "torch", "datetime", "decimal", "fractions", "uuid", "array", "copyreg", "copy_reg",
    "sklearn", "scipy", "pandas", "joblib", "pathlib", "_codecs", "xgboost", "lightgbm", "transformers", "builtins",
    "__builtin__",
})  # fmt: skip
_REBUILT = lazy_compile(
    r"_*[A-Z]\w*|(?:q?u?int|b?float|complex)\w*|(?:_rebuild|_?_reconstruct|_unpickle|__pyx_unpickle|_new_|__newobj)\w*"
    r"|__\w+_ctor|_array_reconstructor|_frombuffer|encode|set|frozenset|list|dict|tuple|bool_?|str_?|bytes_?|bytearray"
    r"|slice|x?range|object_?|long|unicode|void|date|datetime|time|timedelta|timezone|array|deque|defaultdict|scalar|dtype"
    r"|ndarray|new_block|newObj|device|[a-z]{3}_(?:matrix|array)|\w+_gen|rv_frozen|interp1d",
    re.ASCII,
)
_RUNS = frozenset({"Popen", "CDLL", "PyDLL", "Process", "Pool", "Thread", "Unpickler", "NumpyUnpickler"})
_NAME = lazy_compile(r"[\w.-]+", re.ASCII)
_OBJECT_TYPE = lazy_compile(rb"['|]O['\d]")


def findings(path: str, data: bytes) -> Iterator[Diagnostic]:
    """A warning if loading the file imports more than plain model data, or if not all of its pickles can be read."""
    low = _PACKED.sub("", path.lower())
    begun = data.startswith(_PROTOCOLS)
    if not (begun or low.endswith(_NAMES)):
        return
    found, packed = Imports(), data.startswith(b"PK\x03\x04")
    _read(data, found)
    # Bytes of another format may look like an import, but with a name that no module has
    surely = begun or packed or low.endswith(_PICKLES)
    names = [name for name in found.names if surely or all(map(_NAME.fullmatch, name))]
    strange = next((f"{module}.{name}" for module, name in names if _is_strange(module, name)), "")
    if strange:
        imports = f"a pickle that imports {strange.strip('.') or 'a name it computes'}"
        kind = f"archive with {imports}" if packed else imports
        yield finding(
            "pickled-model", "warning", path, "runs code of its own when it is loaded", None, kind, judged=data
        )
    elif not found.whole and (surely or names):
        message = "not all of it was scanned: its pickles cannot be read to their end"
        yield finding(NOT_SCANNED, "warning", path, message, None, f"a model file of {len(data):,} bytes", judged=data)


def _is_strange(module: str, name: str) -> bool:
    """Whether an import does more than rebuild plain model data."""
    plain = all(_REBUILT.fullmatch(part) and part not in _RUNS for part in name.split("."))
    return module.partition(".")[0] not in _PACKAGES or not plain


def _read(data: bytes, found: Imports) -> None:
    if data.startswith(b"PK\x03\x04"):
        _read_archive(data, found)
    elif data.startswith(b"\x93NUMPY"):
        _read_numpy(data, found)
    else:
        found.read(_unpacked(data, found))


def _read_archive(data: bytes, found: Imports) -> None:
    left = _MOST
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as pack:
            for one in pack.infolist():
                if not one.filename.lower().endswith((".pkl", ".npy")):
                    continue
                with pack.open(one) as member:
                    held = member.read(left + 1)
                left -= len(held)
                if left < 0:
                    found.whole = False
                    return
                _read_numpy(held, found) if held.startswith(b"\x93NUMPY") else found.read(held)
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, NotImplementedError, RuntimeError, EOFError):
        found.whole = False


def _read_numpy(data: bytes, found: Imports) -> None:
    """An array of objects is a pickle behind a header (numpy.lib.format)."""
    size, begin = (2, 10) if data[6:7] == b"\x01" else (4, 12)
    end = begin + int.from_bytes(data[8 : 8 + size], "little")
    if _OBJECT_TYPE.search(data[begin:end]):
        found.read(data[end:])


def _unpacked(data: bytes, found: Imports) -> bytes:
    """The data behind zlib, gzip, bzip2 or xz, as joblib and pandas write it; `data` itself if it is not compressed."""
    try:
        if data.startswith((b"\x1f\x8b", b"x\x01", b"x\x5e", b"x\x9c", b"x\xda")):
            held = zlib.decompressobj(47).decompress(data, _MOST + 1)
        elif data.startswith(b"BZh"):
            held = bz2.BZ2Decompressor().decompress(data, _MOST + 1)
        elif data.startswith((b"\xfd7zXZ\0", b"\x5d\0\0")):
            held = lzma.LZMADecompressor(memlimit=256 * 1024 * 1024).decompress(data, _MOST + 1)
        else:
            return data
    except (zlib.error, OSError, lzma.LZMAError, EOFError):
        found.whole = False
        return b""
    found.whole = found.whole and len(held) <= _MOST
    return held[:_MOST]

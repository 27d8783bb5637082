"""Finds model files that run code when they are loaded: pickles, bare or in archives of torch and joblib."""

from __future__ import annotations

import io
import pickletools
import zipfile

_NAMES = (".pkl", ".pickle", ".pt", ".pth", ".ckpt", ".joblib", ".dill", ".npy", ".bin", ".model", ".sav")
_MOST = 4 * 1024 * 1024  # bytes of one pickle that are looked at
_STEPS = 200_000  # operations of one pickle
# Modules whose objects plain data of models is made of
_DATA = frozenset({
    "collections", "numpy", "torch", "datetime", "decimal", "fractions", "uuid", "array", "copyreg", "sklearn",
    "scipy", "pandas", "joblib",
    "_codecs", "xgboost", "lightgbm", "transformers",
})  # fmt: skip


def kind_of(path: str, data: bytes) -> str:
    """The kind of the file if loading it calls code outside the usual modules of models; empty otherwise."""
    named = path.lower().endswith(_NAMES)
    if data.startswith(b"PK\x03\x04") and named:
        return next((f"archive with {kind}" for held in _members(data) if (kind := _pickle(held))), "")
    if named or data[:2] in {b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"}:
        return _pickle(data)
    return ""


def _members(data: bytes) -> list[bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as pack:
            held = [one for one in pack.infolist() if one.filename.endswith(".pkl") and one.file_size <= _MOST]
            return [pack.read(one) for one in held[:8]]
    except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError, EOFError):
        return []


def _pickle(data: bytes) -> str:
    """Checks a pickle by its operations, without loading it."""
    called: list[str] = []
    words: list[str] = []
    try:
        for number, (code, given, _) in enumerate(pickletools.genops(data[:_MOST])):
            if code.name in {"GLOBAL", "INST"}:
                called.append(str(given).replace(" ", "."))
            elif code.name == "STACK_GLOBAL" and len(words) > 1:
                called.append(".".join(words[-2:]))
            elif isinstance(given, str):
                words.append(given)
            if number > _STEPS:
                break
    except Exception:  # noqa: BLE001 - what is not a pickle fails in many ways
        if not called:
            return ""
    strange = [name for name in called if name.partition(".")[0] not in _DATA]
    return f"a pickle that calls {strange[0]}" if strange else ""

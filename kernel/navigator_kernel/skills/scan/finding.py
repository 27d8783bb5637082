"""Creates findings: each has a file, a line and the text itself."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

from navigator_kernel.text import clean
from navigator_kernel.values.resource import Diagnostic

Level = Literal["note", "warning", "error"]

SHOWN = 120  # characters of the text that are shown
MOST = 100  # findings of one code and level in one file
_LOWER: Mapping[Level, Level] = {"error": "warning", "warning": "note", "note": "note"}


def finding(
    code: str, level: Level, path: str, message: str, line: int | None, text: str, *, judged: str | bytes = ""
) -> Diagnostic:
    """Creates a finding; ValueError if its rule, file, sentence or text is missing, or its line is below 1. `line` is
    None for a file without lines; `text` then names the type of the file. `judged` is everything that was examined for
    it, by default the text."""
    shown = shortened(text)
    if not (code and path and message and shown) or (line is not None and line < 1):
        raise ValueError(f"a finding needs a rule, a file, a sentence and a text: {code!r} in {path!r}")
    held = judged or text
    digest = _of_file(held) if isinstance(held, bytes) else _digest(held.encode("utf-8", "surrogatepass"))
    return Diagnostic(code=code, level=level, path=path, message=message, line=line, text=shown, digest=digest)


@lru_cache(maxsize=1)  # many findings in one file need the same digest
def _of_file(data: bytes) -> str:
    return _digest(data)


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def shortened(text: str, at: int = 0) -> str:
    """One line of `text`, cleaned and cut around the position `at`."""
    begin = max(at - SHOWN // 3, 0) if len(text) > SHOWN else 0
    cut = text[begin : begin + 4 * SHOWN]
    shown = " ".join(clean(cut, lines=False).split())
    head, tail = ("…" if begin else ""), ("…" if len(shown) > SHOWN or begin + len(cut) < len(text) else "")
    return f"{head}{shown[:SHOWN]}{tail}" if shown else clean(ascii(text[:40]), lines=False) if text else ""


def lowered(level: Level) -> Level:
    return _LOWER[level]


def identity(found: Diagnostic) -> str:
    """The key that an acceptance is bound to: the rule, the file, and the digest of what was examined."""
    return f"{found.code}@{found.path}@{found.digest}"


def told(found: Mapping[str, Any], folder: str = "") -> str:
    """The sentence for a finding, the same for every command."""
    place = "/".join(part for part in (folder, str(found["path"])) if part)
    line = f":{found['line']}" if found.get("line") else ""
    text = f": '{found['text']}'" if found.get("text") else ""
    said = f"{found['level']} {place}{line} {found['code']}: {found['message']}{text}"
    return clean(said, lines=False)

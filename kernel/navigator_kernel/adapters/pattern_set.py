"""Finds in one pass over a text which of many patterns may match it, so that most are never tried (Hyperscan)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from navigator_kernel.adapters.files.writer import make_private
from navigator_kernel.adapters.stores.project_state import PrivateWriter
from navigator_kernel.adapters.widened import folded, widened
from navigator_kernel.errors import KernelError

_WIDENING = Path(__file__).with_name("widened.py")  # it made the stored databases, so its bytes are part of their names


class PatternSet:
    """`sources` are patterns of `re`, with any flags. The compiled database is stored in the folder `kept`, which must
    be the person's own. Without Hyperscan, which has no wheel for some machines, every pattern may match."""

    def __init__(self, sources: Iterable[str], kept: Path | None) -> None:
        self._sources: Sequence[str] = tuple(dict.fromkeys(sources))
        self._every = frozenset(self._sources)
        self._database = _loaded(self._sources, kept)

    def possible(self, text: str) -> frozenset[str]:
        """The sources of the patterns that may match in `text`, or would if its spaces were line breaks."""
        read = folded(text)
        if self._database is None or read is None:
            return self._every
        found = set[int]()

        def add(number: int, *_: object) -> None:
            found.add(number)

        self._database.scan(read, match_event_handler=add)
        return frozenset(self._sources[number] for number in found)


def _loaded(sources: Sequence[str], kept: Path | None) -> Any:
    """The database of `sources`, from the folder `kept` or newly compiled; None without Hyperscan."""
    try:
        import hyperscan
    except ImportError:
        return None
    made_of = "\0".join(sources).encode() + _WIDENING.read_bytes()
    name = hashlib.blake2b(made_of, digest_size=16).hexdigest()
    place = kept / f"{name}.hsdb" if kept is not None else None
    if place is not None:
        with suppress(OSError, hyperscan.error):  # missing, damaged, or of another release or processor
            loaded = hyperscan.loadb(place.read_bytes(), hyperscan.HS_MODE_BLOCK)
            loaded.scratch = hyperscan.Scratch(loaded)
            return loaded
    flags = hyperscan.HS_FLAG_SINGLEMATCH | hyperscan.HS_FLAG_DOTALL | hyperscan.HS_FLAG_ALLOWEMPTY
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(
        expressions=[widened(source) for source in sources],
        ids=list(range(len(sources))),
        elements=len(sources),
        flags=[flags] * len(sources),
    )
    if place is not None:
        with suppress(OSError, KernelError):
            PrivateWriter(place.parent, partial(make_private, place.parent)).write(place, hyperscan.dumpb(database))
    return database

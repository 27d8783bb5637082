"""Steps on disk that are all taken back unless they are kept."""

from __future__ import annotations

import os
import secrets
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from navigator_kernel.adapters.files import read_bounded
from navigator_kernel.ports import Writer

_SIZE_LIMIT = 256 * 1024 * 1024  # bytes of a file whose old content is kept for taking back


class Change:
    """A context: leaving it without `keep()` undoes every step, last first. `scratch` holds what is under way."""

    def __init__(self, writer: Writer, scratch: Path) -> None:
        self._writer, self._scratch = writer, scratch
        self._undo, self._rest = ExitStack(), list[Path]()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._undo.close()
        for path in self._rest:
            self._writer.remove(path)

    def keep(self) -> None:
        """From here on the steps stay."""
        self._undo.pop_all()

    def new_folder(self) -> Path:
        """An empty folder in the scratch place, gone unless it is moved away."""
        path = self._free("staging")
        self._undo.callback(self._writer.remove, path)
        self._writer.make_folder(path)
        return path

    def write(self, path: Path, data: bytes) -> bool:
        """Whether the file had to change; one that holds `data` already is left alone."""
        try:
            before: bytes | None = read_bounded(path, _SIZE_LIMIT)
        except FileNotFoundError:
            before = None
        if before == data:
            return False
        self._undo.callback(self._restore, path, before)
        self._writer.write(path, data)
        return True

    def move(self, source: Path, target: Path) -> None:
        self._writer.move(source, target)
        self._undo.callback(self._writer.move, target, source)

    def remove(self, path: Path) -> None:
        """Moves it out of sight, to be deleted when the change ends well; nothing where it is gone."""
        if os.path.lexists(path):
            aside = self._free("removed")
            self.move(path, aside)
            self._rest.append(aside)
            self._undo.callback(self._rest.remove, aside)

    def _restore(self, path: Path, before: bytes | None) -> None:
        if before is None:
            self._writer.remove(path)
        else:
            self._writer.write(path, before)

    def _free(self, what: str) -> Path:
        return self._scratch / f"{what}-{secrets.token_hex(8)}"

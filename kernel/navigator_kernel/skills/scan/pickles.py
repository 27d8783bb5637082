"""Lists what a pickle imports, by its operations and without loading it (Python's Lib/pickletools.py)."""

from __future__ import annotations

import io
import pickletools

from msgspec import Struct, field

_TORCH = 5  # pickles at the start of a torch file from before version 1.6; the numbers of the model follow
_MARK = object()
_KEEP = {"PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"}
_FETCH = {"GET", "BINGET", "LONG_BINGET"}
_NO_TEXT = {"GLOBAL", "INST", "PERSID", "INT", "LONG", "FLOAT"}


class Imports(Struct):
    """The `names` that pickles import when they are loaded, each (module, name), in order; ("", "") for one that the
    pickle computes. `whole` is False if not all of them could be read. At most `steps` more operations are read."""

    names: list[tuple[str, str]] = field(default_factory=list)
    whole: bool = True
    steps: int = 200_000

    def read(self, data: bytes) -> None:
        """Adds what the pickles in `data`, one after another, import."""
        stream, ended = io.BytesIO(data), 0
        while stream.tell() < len(data):
            try:
                self._pickle(stream)
            except Exception:  # noqa: BLE001 - bytes that are not a pickle fail in many ways
                self.whole = self.whole and ended >= _TORCH
                return
            if self.steps <= 0:
                self.whole = False
                return
            ended += 1

    def _pickle(self, stream: io.BytesIO) -> None:
        stack: list[object] = []
        memo: dict[object, object] = {}
        for code, given, _ in pickletools.genops(stream):
            self.steps -= 1
            if self.steps <= 0:
                return
            if code.name in {"GLOBAL", "INST"}:
                module, _, name = str(given).partition(" ")
                self.names.append((module, name))
            elif code.name == "STACK_GLOBAL":
                self.names.append(_pair(*stack[-2:]))
            if code.name in _KEEP:
                memo[len(memo) if given is None else given] = stack[-1]
            else:
                _moved(stack, code, memo[given] if code.name in _FETCH else given)


def _moved(stack: list[object], code: pickletools.OpcodeInfo, given: object) -> None:
    """Takes from the stack what the operation takes, and puts on it what the operation puts: texts as they are."""
    taken = code.stack_before
    if pickletools.markobject in taken or (code.name == "POP" and stack[-1] is _MARK):
        while stack.pop() is not _MARK:
            pass
        taken = taken[: taken.index(pickletools.markobject)] if pickletools.markobject in taken else []
    if len(taken) > len(stack):
        raise IndexError(code.name)
    kept = stack[-1] if code.name == "DUP" else given if code.name not in _NO_TEXT else None
    del stack[len(stack) - len(taken) :]
    put = kept if isinstance(kept, str) else None
    stack.extend(_MARK if kind is pickletools.markobject else put for kind in code.stack_after)


def _pair(module: object, name: object) -> tuple[str, str]:
    return (module, name) if isinstance(module, str) and isinstance(name, str) else ("", "")

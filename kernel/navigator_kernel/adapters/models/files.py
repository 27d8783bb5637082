"""Adds files that tools showed to a request if the model takes them, or else a sentence about each."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from navigator_kernel.adapters.files.tree import read_inside
from navigator_kernel.errors import KernelError
from navigator_kernel.values.chat import PDF

if TYPE_CHECKING:
    from navigator_kernel.values.chat import ChatMessage, ShownFile

MOST = 15_000_000  # bytes of files in one request; providers accept 32 MB, and base64 adds a third
UNSEEN = "(The model that you are cannot see pictures: do not guess what is in this one. A script can look at it.)"
UNREAD = (
    "(The model that you are cannot read PDFs. A script can get its text: run with the package pypdf, for example.)"
)
CHANGED = "(The file is not there any more, or was changed: read it again.)"
LEFT_OUT = "(It is left out of this request, which has other files: read it again.)"


def contents(messages: Sequence[ChatMessage], takes: Collection[str]) -> list[list[Any]]:
    """For each message, the contents that follow its text. `takes` are the media types that the model takes; if there
    are too many bytes, the newest files are sent."""
    room, found = MOST, []
    for message in reversed(messages):
        parts: list[Any] = []
        for file in reversed(message.files):
            part, room = _content(file, takes, room)
            parts.insert(0, part)
        found.append(parts)
    return found[::-1]


def _content(file: ShownFile, takes: Collection[str], room: int) -> tuple[Any, int]:
    """The content for a file, and the number of bytes left after it."""
    from pydantic_ai.messages import BinaryContent

    if file.kind not in takes:
        return (UNREAD if file.kind == PDF else UNSEEN), room
    if file.size > room:
        return LEFT_OUT, 0
    data = _same(file)
    if data is None:
        return CHANGED, room
    return BinaryContent(data=data, media_type=file.kind), room - file.size


def _same(file: ShownFile) -> bytes | None:
    """The file's bytes, or None if they are not those that the tool was allowed to read: a link may have replaced
    it."""
    path = Path(file.path)
    try:
        data = read_inside(path.parent, (path.name,), file.size + 1)
    except (KernelError, OSError, ValueError):
        return None
    return data if hashlib.sha256(data).hexdigest() == file.sha256 else None

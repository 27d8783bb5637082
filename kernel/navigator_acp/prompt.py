"""Makes a message from the content blocks of a prompt."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from acp.schema import EmbeddedResourceContentBlock, ResourceContentBlock, TextContentBlock

from navigator_kernel.errors import UsageProblem
from navigator_kernel.text import escape_controls, lazy_compile, shorten

if TYPE_CHECKING:
    from acp.schema import AudioContentBlock, ImageContentBlock

    Block = (
        TextContentBlock | ImageContentBlock | AudioContentBlock | ResourceContentBlock | EmbeddedResourceContentBlock
    )

NAMED = 200  # characters of a link's name or address
_PLAIN = lazy_compile(r"[A-Za-z0-9_./~+-]+")  # a path that needs no quotes
_UNQUOTABLE = lazy_compile(r"[\"`\\]")
_UNSAFE = lazy_compile(r"[^\w .,:;/%?&=#~+()-]")  # characters that can begin an instruction in a message, and others


def message_of(blocks: Sequence[Block], root: Path) -> str:
    """The text as it is, with a link to a project file as `@path`, which the kernel reads by its own rules.

    UsageProblem for an image or a sound.
    """
    message = ""
    for block in blocks:
        match block:
            case TextContentBlock(text=text):
                message += text
                continue
            case ResourceContentBlock(uri=uri, name=name):
                link = _mention(uri, root) or _written(name, uri)
            case EmbeddedResourceContentBlock(resource=resource):
                link = _mention(resource.uri, root) or _written("", resource.uri)
            case _:
                hint = "describe it in words, or name the file in the project"
                raise UsageProblem(f"content of the type {block.type!r} cannot be used", hint=hint)
        gap = "" if not message or message[-1].isspace() else " "
        message += f"{gap}{link} "
    return message.strip()


def _mention(uri: str, root: Path) -> str:
    """`@path` relative to the project's folder; empty for any other address and for a name that `@` cannot take."""
    try:
        parts = urlsplit(uri)
        path = Path(os.path.normpath(unquote(parts.path)))
    except ValueError:
        return ""
    if parts.scheme != "file" or parts.netloc not in {"", "localhost"} or not path.is_relative_to(root):
        return ""
    name = path.relative_to(root).as_posix()
    if name == "." or _UNQUOTABLE.search(name) or escape_controls(name) != name:
        return ""
    return f"@{name}" if _PLAIN.fullmatch(name) else f'@"{name}"'


def _written(name: str, uri: str) -> str:
    """The link as text. Other people choose the names of files, so nothing in it may be a command of the kernel."""
    shown, address = (_UNSAFE.sub("_", shorten(escape_controls(text), NAMED)) for text in (name, uri))
    return f"[{shown or 'link'}]({address})"

"""Describes a picture or a PDF: its type, its size in pixels, and its number of pages."""

from __future__ import annotations

import zlib

from navigator_kernel.errors import Refused, UsageProblem
from navigator_kernel.text import lazy_compile
from navigator_kernel.values.chat import PDF

PICTURE_SIZE, PDF_SIZE = 3_750_000, 10_000_000  # bytes; services accept 5 MB of base64 per picture
WIDEST = 8_000  # pixels of the longer side
UNPACKED = 4 * 1024 * 1024  # bytes of a PDF's object streams to decompress
_HEADS = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"), (b"%PDF-", PDF))
_PAGES = lazy_compile(r"/Type\s*/Pages\b")
_OBJECTS = lazy_compile(rb"/ObjStm\b[^\n]{0,500}?>>\s*stream\r?\n")
_COUNT = lazy_compile(r"/Count\s+(\d{1,6})\b")
_SIZES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})  # segments of a JPEG that contain its size


def kind_of(data: bytes) -> str:
    """The media type; empty if it is neither a picture that models can read nor a PDF."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for head, kind in _HEADS if data.startswith(head)), "")


def described(name: str, kind: str, data: bytes) -> str:
    """A description of the file for a model. Refused if it is too large, UsageProblem if it is incomplete."""
    size = f"{len(data):,} bytes"
    if kind == PDF:
        _refuse_large(name, data, PDF_SIZE)
        count = pages_of(data)
        return f"{name} is a PDF, {size}{f', {count} pages' if count else ''}"
    _refuse_large(name, data, PICTURE_SIZE)
    measured = pixels_of(kind, data)
    if measured is None or 0 in measured:
        raise UsageProblem(f"{name} begins like a picture, but is not one", hint="look at it with a script")
    if max(measured) > WIDEST:
        hint = "make it smaller with a script, then read that"
        raise Refused(f"{name} has {measured[0]} x {measured[1]} pixels", hint=hint, reason="too-large")
    return f"{name} is a picture ({kind.partition('/')[2]}), {measured[0]} x {measured[1]} pixels, {size}"


def _refuse_large(name: str, data: bytes, limit: int) -> None:
    if len(data) > limit:
        hint = f"a model is given {limit:,} at most; make it smaller with a script, then read that"
        raise Refused(f"{name} has {len(data):,} bytes", hint=hint, reason="too-large")


def pixels_of(kind: str, data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels, or None."""
    if kind == "image/png" and data[12:16] == b"IHDR" and len(data) >= 24:
        return int.from_bytes(data[16:20]), int.from_bytes(data[20:24])
    if kind == "image/gif" and len(data) >= 10:
        return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
    if kind == "image/jpeg":
        return _of_jpeg(data)
    return _of_webp(data) if kind == "image/webp" else None


def _of_jpeg(data: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        mark = data[at + 1]
        if mark in _SIZES:
            return int.from_bytes(data[at + 7 : at + 9]), int.from_bytes(data[at + 5 : at + 7])
        at += 1 if mark == 0xFF else 2 + int.from_bytes(data[at + 2 : at + 4])
    return None


def _of_webp(data: bytes) -> tuple[int, int] | None:
    """The size, in any of the three forms: with extra parts, lossless, plain (RFC 9649)."""
    if len(data) < 30:
        return None
    form = data[12:16]
    if form == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    if form == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if form == b"VP8 ":
        return int.from_bytes(data[26:28], "little") & 0x3FFF, int.from_bytes(data[28:30], "little") & 0x3FFF
    return None


def pages_of(data: bytes) -> int:
    """The number of pages that the PDF states, 0 if unknown."""
    found, room = [data], UNPACKED
    for begin in _OBJECTS.finditer(data):
        unpacking = zlib.decompressobj()
        try:
            found.append(unpacking.decompress(data[begin.end() :], max(room, 1)))
        except zlib.error:
            continue
        room -= len(found[-1])
        if room <= 0:
            break
    return max((_count(part.decode("latin-1")) for part in found), default=0)


def _count(text: str) -> int:
    """The highest page count of a node in the page tree; the count is near the node's type."""
    counts = [0]
    for hit in _PAGES.finditer(text):
        around = text[max(hit.start() - 300, 0) : hit.end() + 300]
        counts += [int(one) for one in _COUNT.findall(around)]
    return max(counts)

"""Pictures and PDFs of the kinds that models see, as small as possible."""

from __future__ import annotations

import struct
import zlib


def png(width: int = 4, height: int = 3) -> bytes:
    def part(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress((b"\x00" + b"\xff\x00\x00" * width) * height)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", rows) + part(b"IEND", b"")


def jpeg(width: int = 4, height: int = 3) -> bytes:
    frame = struct.pack(">BHH", 8, height, width) + b"\x01\x01\x11\x00"
    app0 = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
    return b"\xff\xd8" + app0 + b"\xff\xff\xc0" + struct.pack(">H", 2 + len(frame)) + frame + b"\xff\xd9"


def gif(width: int = 4, height: int = 3) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\x00\x00\x00;"


def webp(form: bytes = b"VP8X", width: int = 4, height: int = 3) -> bytes:
    size = {
        b"VP8X": bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"),
        b"VP8L": b"\x2f" + (width - 1 | (height - 1) << 14).to_bytes(4, "little") + bytes(5),
        b"VP8 ": bytes(3) + b"\x9d\x01\x2a" + struct.pack("<HH", width, height),
    }[form]
    body = b"WEBP" + form + struct.pack("<I", len(size)) + size
    return b"RIFF" + struct.pack("<I", len(body)) + body


def pdf(pages: int = 2, *, packed: bool = False) -> bytes:
    kids = " ".join(f"{number} 0 R" for number in range(3, 3 + pages))
    tree = f"<</Type /Pages /Kids [{kids}] /Count {pages}>>".encode()
    if packed:
        body = zlib.compress(b"2 0 " + tree)
        held = b"5 0 obj\n<</Type /ObjStm /N 1 /First 4 /Filter /FlateDecode /Length %d>>\nstream\n" % len(body)
        tree = held + body + b"\nendstream\nendobj\n"
    else:
        tree = b"2 0 obj\n" + tree + b"\nendobj\n"
    return b"%PDF-1.7\n1 0 obj\n<</Type /Catalog /Pages 2 0 R>>\nendobj\n" + tree + b"%%EOF\n"

"""What `read` says and shows of a picture or a PDF."""

from __future__ import annotations

import hashlib
import tracemalloc
from pathlib import Path

import pytest

from tools.bench_of_tools import Toolbox, toolbox
from tools.picture_files import gif, jpeg, pdf, png, webp

pytestmark = pytest.mark.sample(2)

PICTURES = {
    "boat.png": (png(), "image/png"),
    "boat.jpg": (jpeg(), "image/jpeg"),
    "boat.gif": (gif(), "image/gif"),
    "boat.webp": (webp(), "image/webp"),
    "lossless.webp": (webp(b"VP8L"), "image/webp"),
    "plain.webp": (webp(b"VP8 "), "image/webp"),
}


@pytest.fixture
def box(tmp_path: Path) -> Toolbox:
    made = toolbox(tmp_path.resolve())
    made.workspace.mkdir(parents=True)
    return made


@pytest.mark.requirement("JIT-5")
@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_shown_with_its_size(box: Toolbox, name: str) -> None:
    data, kind = PICTURES[name]
    (box.workspace / name).write_bytes(data)
    answer = box.call("read", file_path=name)
    assert answer.text == f"{name} is a picture ({kind.partition('/')[2]}), 4 x 3 pixels, {len(data)} bytes"
    digest = hashlib.sha256(data).hexdigest()
    assert answer.files == ((str(box.workspace / name), kind, len(data), digest),)


@pytest.mark.requirement("JIT-5")
@pytest.mark.parametrize(
    ("data", "pages"),
    [(pdf(2), ", 2 pages"), (pdf(31, packed=True), ", 31 pages"), (b"%PDF-1.7\nno pages", ""),
     (b"%PDF-1.7\n<</Type /ObjStm /Length 4>>\nstream\nabcd", "")],
)  # fmt: skip
def test_a_pdf_is_shown_with_its_pages_where_it_counts_them(box: Toolbox, data: bytes, pages: str) -> None:
    (box.workspace / "song.pdf").write_bytes(data)
    answer = box.call("read", file_path="song.pdf")
    assert (answer.text, len(answer.files)) == (f"song.pdf is a PDF, {len(data):,} bytes{pages}", 1)


@pytest.mark.wide
def test_a_pdf_with_a_decompression_bomb_is_still_described(box: Toolbox) -> None:
    import zlib

    bomb = zlib.compress(bytes(512 * 1024 * 1024), 9)
    (box.workspace / "a.pdf").write_bytes(b"%PDF-1.7\n<</Type /ObjStm>>\nstream\n" + bomb)
    tracemalloc.start()
    try:
        assert box.call("read", file_path="a.pdf").text.startswith("a.pdf is a PDF, ")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * 1024 * 1024, "bytes; 512 MiB unpacked"


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("big.png", png() + bytes(3_750_000), "a model is given 3,750,000 at most"),
        ("big.pdf", pdf() + bytes(10_000_000), "a model is given 10,000,000 at most"),
        ("wide.png", png(9_000, 1), "has 9000 x 1 pixels"),
        ("empty.png", png(0, 3), "is not one"),
        ("cut.png", png()[:12], "is not one"),
        ("cut.jpg", jpeg()[:8], "is not one"),
        ("cut.webp", webp()[:20], "is not one"),
        ("song.zip", b"PK\x03\x04\x00", "is a binary file of 5 bytes"),
    ],
)
def test_a_file_that_no_model_can_take_is_an_error_with_a_hint(box: Toolbox, name: str, data: bytes, said: str) -> None:
    (box.workspace / name).write_bytes(data)
    answer = box.call("read", file_path=name)
    assert answer.failed and said in answer.text and "script" in answer.text and answer.files == ()


@pytest.mark.requirement("JIT-12")
def test_a_picture_of_the_project_that_nobody_named_is_asked_about(box: Toolbox) -> None:
    (box.root / "boat.png").write_bytes(png())
    answer = box.agreed("read", file_path=str(box.root / "boat.png"))
    assert len(box.asked) == 1 and answer.files[0].path == str(box.root / "boat.png")

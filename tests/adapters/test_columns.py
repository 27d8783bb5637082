"""Reading files of an index: mapped whole, released, or record by record."""

from __future__ import annotations

import mmap
from pathlib import Path

from navigator_kernel.adapters.index.columns import RecordReader, at_hand, unmapped
from processes import open_files

RECORDS = [bytes([number]) * 512 for number in range(100)]


def mapped(path: Path) -> memoryview:
    with path.open("rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def test_a_mapped_file_reads_the_same_when_it_is_at_hand_and_when_it_was_given_back(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"".join(RECORDS))
    held = mapped(tmp_path / "file")
    assert at_hand(held) is held
    assert bytes(held) == b"".join(RECORDS)
    unmapped(held)
    assert bytes(held) == b"".join(RECORDS)
    assert bytes(at_hand(memoryview(b"in memory"))) == b"in memory"
    unmapped(memoryview(b"in memory"))


def test_records_are_read_in_the_order_that_they_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"head" + b"".join(RECORDS))
    picked = RecordReader(tmp_path / "file", 512, 4)
    assert picked([99, 0, 7, 7]) == RECORDS[99] + RECORDS[0] + RECORDS[7] + RECORDS[7]
    assert picked([]) == b""


def test_a_file_is_closed_when_its_reader_is_deleted(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"".join(RECORDS))
    picked, target = RecordReader(tmp_path / "file", 512), str(tmp_path / "file")
    assert target in open_files()
    del picked
    assert target not in open_files()

"""An archive is read like a folder, and every hostile trick in it is refused before a byte is used."""

from __future__ import annotations

import gzip
import io
import os
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navigator_kernel.adapters.sources import local
from navigator_kernel.adapters.sources.local import ArchiveSource
from navigator_kernel.errors import FetchFailed, KernelError, Refused

pytestmark = pytest.mark.sample(1)

FILES = {"pdf/SKILL.md": b"text", "pdf/go.sh": b"#!/bin/sh\n", "pdf/data/a.bin": b"\0\xff" * 500}
LIMITS = {"each": 10_000, "total": 100_000}
Pack = Callable[..., Path]


def pack_zip(path: Path, files: dict[str, bytes], links: dict[str, str] | None = None) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as pack:
        for name, data in files.items():
            pack.writestr(zip_info(name, 0o100755 if name.endswith(".sh") else 0o100644), data)
        for name, target in (links or {}).items():
            pack.writestr(zip_info(name, 0o120777), target)
    return path


def zip_info(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


class OldInfo(zipfile.ZipInfo):
    """A member whose name is written in `encoding`, without the flag of UTF-8, as old tools on Windows do."""

    encoding = "gbk"

    def _encodeFilenameFlags(self) -> tuple[bytes, int]:
        return self.filename.encode(self.encoding), self.flag_bits


def pack_old(path: Path, names: list[str], encoding: str) -> Path:
    with zipfile.ZipFile(path, "w") as pack:
        for name in names:
            info = OldInfo(name)
            info.encoding = encoding
            pack.writestr(info, b"text")
    return path


def names_in(path: Path) -> list[str]:
    with ArchiveSource(path) as source:
        files = [entry for entry in source.entries if entry.kind == "blob"]
        assert set(source.contents([entry.oid for entry in files], **LIMITS).values()) == {b"text"}
        return [entry.path for entry in files]


@pytest.mark.requirement("LIF-2")
@pytest.mark.parametrize("encoding", ["gbk", "utf-8"])
def test_names_of_an_archive_from_chinese_windows_are_read(tmp_path: Path, encoding: str) -> None:
    names = ["技能/SKILL.md", "技能/数据/乗法.csv", "技能/报告模板.docx"]  # the second byte of 乗 is a backslash
    assert names_in(pack_old(tmp_path / "a.zip", names, encoding)) == sorted(names)


def test_names_of_a_tar_archive_from_chinese_windows_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w", encoding="gbk", format=tarfile.GNU_FORMAT) as pack:
        pack.addfile(tar_info("技能/报告.md", size=4), io.BytesIO(b"text"))
    assert names_in(path) == ["技能/报告.md"]


def test_names_of_an_archive_from_western_windows_are_read(tmp_path: Path) -> None:
    names = ["übung/SKILL.md", "übung/Müller.md", "übung/café.md"]
    assert names_in(pack_old(tmp_path / "a.zip", names, "cp437")) == sorted(names)


def test_folders_that_windows_divides_by_backslashes_are_folders(tmp_path: Path) -> None:
    path = pack_zip(tmp_path / "a.zip", {"pdf\\SKILL.md": b"text", "pdf\\data\\a.md": b"text"})
    assert names_in(path) == ["pdf/SKILL.md", "pdf/data/a.md"]


def pack_tar(path: Path, files: dict[str, bytes], links: dict[str, str] | None = None) -> Path:
    with tarfile.open(path, "w" if path.suffix == ".tar" else "w:gz") as pack:
        for name, data in files.items():
            pack.addfile(
                tar_info(name, size=len(data), mode=0o755 if name.endswith(".sh") else 0o644), io.BytesIO(data)
            )
        for name, target in (links or {}).items():
            pack.addfile(tar_info(name, type=tarfile.SYMTYPE, linkname=target))
    return path


def tar_info(name: str, **given: Any) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    for key, value in given.items():
        setattr(info, key, value)
    return info


KINDS = [("a.zip", pack_zip), ("a.skill", pack_zip), ("a.tar", pack_tar), ("a.tar.gz", pack_tar), ("a.tgz", pack_tar)]
every_kind = pytest.mark.parametrize(("name", "pack"), KINDS, ids=[name for name, _ in KINDS])


@every_kind
def test_an_archive_is_read_like_a_folder(tmp_path: Path, name: str, pack: Pack) -> None:
    path = pack(tmp_path / name, FILES, {"pdf/link": "SKILL.md"})
    with ArchiveSource(path) as source:
        assert (source.commit, source.tree) == ("", "")
        assert {(entry.path, entry.mode, entry.kind) for entry in source.entries} == {
            ("pdf", "040000", "tree"),
            ("pdf/data", "040000", "tree"),
            ("pdf/SKILL.md", "100644", "blob"),
            ("pdf/go.sh", "100755", "blob"),
            ("pdf/data/a.bin", "100644", "blob"),
            ("pdf/link", "120000", "blob"),
        }
        oids = {entry.path: entry.oid for entry in source.entries if entry.kind == "blob"}
        held = source.contents(reversed(oids.values()), **LIMITS)
        assert {path: held[oid] for path, oid in oids.items()} == {**FILES, "pdf/link": b"SKILL.md"}
        assert source.contents([], **LIMITS) == {}
    assert os.listdir(tmp_path) == [name]


@every_kind
def test_the_content_of_an_archive_decides_its_format_not_its_name(tmp_path: Path, name: str, pack: Pack) -> None:
    path = pack(tmp_path / name, FILES).rename(tmp_path / "b.skill")
    with ArchiveSource(path) as source:
        assert len(source.entries) == 5


@every_kind
def test_equal_contents_have_equal_fingerprints(tmp_path: Path, name: str, pack: Pack) -> None:
    with ArchiveSource(pack(tmp_path / name, {"a": b"1", "b": b"1", "c": b"2"})) as source:
        a, b, c = map(source.fingerprint, source.entries)
    assert a == b != c


@every_kind
def test_limits_are_kept(tmp_path: Path, name: str, pack: Pack) -> None:
    with ArchiveSource(pack(tmp_path / name, FILES)) as source:
        with pytest.raises(Refused, match="over 100 bytes"):
            source.contents(["pdf/data/a.bin"], each=100, total=10_000)
        with pytest.raises(Refused, match="together"):
            source.contents(["pdf/SKILL.md", "pdf/data/a.bin"], each=10_000, total=1_000)


@every_kind
@pytest.mark.parametrize(
    "path",
    ["/etc/x", "../x", "a/../../x", "a/./x", "a//x", "C:/x", "c:x", "a\\b", "..\\x", "/", "//h/x", "a/" * 70 + "x",
     "n" * 5000],
)  # fmt: skip
def test_a_path_that_leads_elsewhere_is_refused(tmp_path: Path, name: str, pack: Pack, path: str) -> None:
    with pytest.raises(Refused) as caught, ArchiveSource(pack(tmp_path / name, {"ok/SKILL.md": b"x", path: b"x"})):
        pass
    assert len(caught.value.data["problems"]) == 1
    assert caught.value.exit_code == 3


@every_kind
def test_all_problems_are_reported_together(tmp_path: Path, name: str, pack: Pack) -> None:
    with pytest.raises(Refused) as caught, ArchiveSource(pack(tmp_path / name, {"../a": b"", "/b": b"", "c": b""})):
        pass
    assert caught.value.data["problems"] == ["'../a' leads outside", "'/b' is an absolute path"]


@every_kind
def test_a_file_below_a_file_is_refused(tmp_path: Path, name: str, pack: Pack) -> None:
    for files in ({"a": b"", "a/b": b""}, {"a/b": b"", "a": b""}):
        with pytest.raises(Refused, match=r"below a file|occurs twice"), ArchiveSource(pack(tmp_path / name, files)):
            pass


@every_kind
def test_a_file_below_a_link_is_refused(tmp_path: Path, name: str, pack: Pack) -> None:
    path = pack(tmp_path / name, {"a/b": b""}, {"a": "/etc"})
    with pytest.raises(Refused), ArchiveSource(path):
        pass


@every_kind
def test_a_link_out_is_only_its_text(tmp_path: Path, name: str, pack: Pack) -> None:
    with ArchiveSource(pack(tmp_path / name, {}, {"a": "/etc/passwd"})) as source:
        assert [entry.mode for entry in source.entries] == ["120000"]
        assert source.contents(["a"], **LIMITS) == {"a": b"/etc/passwd"}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@every_kind
def test_a_name_that_is_there_twice_is_refused(tmp_path: Path, name: str, pack: Pack) -> None:
    path = pack(tmp_path / name, {"a": b"1"})
    if pack is pack_zip:
        with zipfile.ZipFile(path, "a") as again:
            again.writestr("a", b"2")
    else:
        twice = io.BytesIO()
        with tarfile.open(fileobj=twice, mode="w") as tar:
            for data in (b"1", b"2"):
                tar.addfile(tar_info("a", size=1), io.BytesIO(data))
        path.write_bytes(twice.getvalue())
    with pytest.raises(Refused, match="occurs twice"), ArchiveSource(path):
        pass


@pytest.mark.parametrize("kind", [tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE,
                                  tarfile.GNUTYPE_SPARSE, b"Z"])  # fmt: skip
def test_a_tar_member_that_is_not_a_regular_file_is_refused(tmp_path: Path, kind: bytes) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as tar:
        tar.addfile(tar_info("a", type=kind, linkname="b"))
    with pytest.raises(Refused, match=r"hard link|not a regular file"), ArchiveSource(path):
        pass


@pytest.mark.parametrize("kind", [stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK, stat.S_IFDIR])
def test_a_zip_member_that_is_not_a_regular_file_is_refused(tmp_path: Path, kind: int) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as pack:
        pack.writestr(zip_info("a", kind | 0o644), b"")
    with pytest.raises(Refused, match="not a regular file"), ArchiveSource(path):
        pass


@pytest.mark.parametrize("flag", [0x1, 0x41, 0x2000])
def test_an_encrypted_member_is_refused(tmp_path: Path, flag: int) -> None:
    path = pack_zip(tmp_path / "a.zip", {"a": b"1"})
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\1\2") + 8
    data[at : at + 2] = struct.pack("<H", flag)
    path.write_bytes(data)
    with pytest.raises(Refused, match="encrypted"), ArchiveSource(path):
        pass


def test_a_name_with_a_hidden_end_is_refused(tmp_path: Path) -> None:
    path = pack_zip(tmp_path / "a.zip", {"SKILL.mdX.exe": b"1"})
    path.write_bytes(path.read_bytes().replace(b"SKILL.mdX.exe", b"SKILL.md\0.exe"))
    with pytest.raises(Refused, match="not a plain path"), ArchiveSource(path):
        pass


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_rare_way_of_packing_is_refused(tmp_path: Path, method: int) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", method) as pack:
        pack.writestr("a", b"1")
    with pytest.raises(Refused, match="packed in a way"), ArchiveSource(tmp_path / "a.zip"):
        pass


@every_kind
def test_too_many_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, pack: Pack) -> None:
    monkeypatch.setattr(local, "COUNT_LIMIT", 10)
    with ArchiveSource(pack(tmp_path / name, {str(number): b"" for number in range(10)})):
        pass
    path = pack(tmp_path / name, {str(number): b"" for number in range(11)})
    with pytest.raises(Refused, match="over 10 files") as caught, ArchiveSource(path):
        pass
    assert caught.value.data["reason"] == "too-large"


@every_kind
def test_too_many_bytes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, pack: Pack) -> None:
    path = pack(tmp_path / name, {"a": bytes(600_000), "b": bytes(600_000)})
    monkeypatch.setattr(local, "TOTAL_LIMIT", 1_000_000)
    with pytest.raises(Refused, match="over") as caught, ArchiveSource(path):
        pass
    assert caught.value.data["reason"] == "too-large"


def test_a_stream_that_never_ends_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "STREAM_LIMIT", 1_000_000)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.addfile(tar_info("a", size=0))
    head = packed.getvalue()[:512]
    for body in (bytes(5_000_000), head * 10_000):
        whole = tar_header("b", 5_000_000) + body if body[:1] == b"\0" else body
        (tmp_path / "a.tgz").write_bytes(gzip.compress(whole))
        with pytest.raises(Refused), ArchiveSource(tmp_path / "a.tgz"):
            pass


def tar_header(name: str, size: int) -> bytes:
    return tar_info(name, size=size).tobuf(tarfile.USTAR_FORMAT)


def test_a_size_that_is_a_lie_is_not_believed(tmp_path: Path) -> None:
    path = pack_zip(tmp_path / "a.zip", {"a": bytes(5_000_000)})
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\1\2") + 24
    data[at : at + 4] = struct.pack("<L", 100)
    path.write_bytes(data)
    with ArchiveSource(path) as source, pytest.raises(FetchFailed, match="damaged"):
        source.contents(["a"], **LIMITS)


@pytest.mark.parametrize("claimed", [0xFFFFFFFF, 2**30])
def test_a_list_of_members_that_is_too_long_is_not_read(tmp_path: Path, claimed: int) -> None:
    path = pack_zip(tmp_path / "a.zip", FILES)
    data = bytearray(path.read_bytes())
    at = data.rindex(b"PK\5\6") + 12
    data[at : at + 4] = struct.pack("<L", claimed)
    path.write_bytes(data)
    with pytest.raises(Refused, match="list of members"), ArchiveSource(path):
        pass


def test_a_header_of_many_bytes_is_not_read(tmp_path: Path) -> None:
    header = tar_info("x", type=tarfile.XHDTYPE, size=2**33).tobuf(tarfile.GNU_FORMAT)
    (tmp_path / "a.tar").write_bytes(header + bytes(10_000))
    with pytest.raises(KernelError), ArchiveSource(tmp_path / "a.tar"):
        pass


@pytest.mark.parametrize("size", [-512, -1024, -(2**40)])
@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_tar_that_leads_backwards_ends(tmp_path: Path, size: int, kind: bytes) -> None:
    field = b"\xff" + (size & (256**11 - 1)).to_bytes(11, "big")
    header = bytearray(tar_info("x", type=kind).tobuf(tarfile.GNU_FORMAT))
    header[124:136] = field
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    (tmp_path / "a.tar").write_bytes(tar_header("a", 0) * 3 + bytes(header) + tar_header("b", 0) + bytes(1024))
    with pytest.raises(KernelError), ArchiveSource(tmp_path / "a.tar"):
        pass


def test_headers_within_headers_end(tmp_path: Path) -> None:
    name = tar_info("././@LongLink", type=tarfile.GNUTYPE_LONGNAME, size=2).tobuf(tarfile.GNU_FORMAT)
    (tmp_path / "a.tar").write_bytes((name + b"x\0".ljust(512, b"\0")) * 5_000 + bytes(1024))
    with pytest.raises(FetchFailed), ArchiveSource(tmp_path / "a.tar"):
        pass


def test_a_tar_that_breaks_off_in_the_middle_is_damaged(tmp_path: Path) -> None:
    whole = pack_tar(tmp_path / "a.tar", FILES).read_bytes()
    middle = whole.index(b"pdf/data/a.bin")
    (tmp_path / "a.tar").write_bytes(whole[:middle] + b"garbage" + whole[middle + 7 :])
    with pytest.raises(FetchFailed, match="damaged"), ArchiveSource(tmp_path / "a.tar"):
        pass


@pytest.mark.parametrize("data", [b"", b"x", b"PK\3\4", b"\x1f\x8b", b"not an archive" * 100])
def test_a_file_that_is_not_an_archive_is_reported(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(data)
    with pytest.raises(FetchFailed, match=r"is not an archive") as caught, ArchiveSource(path):
        pass
    assert caught.value.hint


def test_a_named_pipe_or_a_missing_file_is_reported(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.zip")
    for name in ("pipe.zip", "nothing.zip"):
        with pytest.raises(FetchFailed), ArchiveSource(tmp_path / name):
            pass


def test_a_tar_made_in_a_folder_is_read(tmp_path: Path) -> None:
    (tmp_path / "in" / "pdf").mkdir(parents=True)
    (tmp_path / "in" / "pdf" / "SKILL.md").write_text("x")
    with tarfile.open(tmp_path / "a.tgz", "w:gz") as tar:
        tar.add(tmp_path / "in", ".")
    with ArchiveSource(tmp_path / "a.tgz") as source:
        assert [entry.path for entry in source.entries] == ["pdf", "pdf/SKILL.md"]


def test_an_archive_in_an_archive_is_a_file(tmp_path: Path) -> None:
    inner = pack_zip(tmp_path / "b.zip", {"SKILL.md": b"x"}).read_bytes()
    with ArchiveSource(pack_zip(tmp_path / "a.zip", {"b.zip": inner})) as source:
        assert source.contents(["b.zip"], **LIMITS) == {"b.zip": inner}


def test_a_file_that_is_exchanged_meanwhile_is_still_the_first(tmp_path: Path) -> None:
    path = pack_zip(tmp_path / "a.zip", {"a": b"first"})
    with ArchiveSource(path) as source:
        pack_zip(tmp_path / "b.zip", {"a": b"other"}).replace(path)
        assert source.contents(["a"], **LIMITS) == {"a": b"first"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("whole")
    return {name: pack(folder / name, FILES, {"pdf/link": "SKILL.md"}).read_bytes() for name, pack in KINDS}


@every_kind
@given(data=st.data())
def test_no_damage_is_a_surprise(
    tmp_path_factory: pytest.TempPathFactory, whole: dict[str, bytes], name: str, pack: Pack, data: st.DataObject
) -> None:
    bytes_ = bytearray(whole[name])
    for at in data.draw(st.lists(st.integers(0, len(bytes_) - 1), min_size=1, max_size=6)):
        bytes_[at] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / f"fuzzed-{name}"
    path.write_bytes(bytes_[: data.draw(st.integers(1, len(bytes_)))] if data.draw(st.booleans()) else bytes_)
    try:
        with ArchiveSource(path) as source:
            oids = [entry.oid for entry in source.entries if entry.kind == "blob"]
            assert sum(map(len, source.contents(oids, **LIMITS).values())) <= LIMITS["total"]
    except KernelError:
        pass

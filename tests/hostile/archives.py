"""Hostile archives: members that are written elsewhere, are not plain files, or are far larger than they seem."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from hostile.ground import Case, Ground, Harm, Order, Outcome, broke, escaped, leaked
from hostile.trees import MEGA, MISSING, REFUSED, bytes_over, has_mode
from skill_repositories import skill_text

DAMAGED = 7
PACKED = frozenset({"packed"})
GOOD = ("SKILL.md", skill_text("packed"))
Member = tuple[str, str] | tarfile.TarInfo  # name and text


def tar(members: Callable[[Ground], Sequence[Member]], *, ending: str = "tar") -> Callable[[Ground], Order]:
    def build(ground: Ground) -> Order:
        path = ground.base / f"x.{ending}"
        with tarfile.open(path, "w:gz" if ending.endswith("gz") else "w", format=tarfile.PAX_FORMAT) as pack:
            for member in members(ground):
                info = member if isinstance(member, tarfile.TarInfo) else tarfile.TarInfo(member[0])
                data = b"" if isinstance(member, tarfile.TarInfo) else member[1].encode()
                info.size = len(data) or info.size
                pack.addfile(info, io.BytesIO(data or bytes(info.size)))
        return Order(source=str(path))

    return build


def special(name: str, kind: bytes, target: str = "", *, mode: int = 0o644, size: int = 0) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode, info.size = kind, target, mode, size
    return info


def packed(
    name: str, members: Callable[[Ground], Sequence[Member]], said: str, harm: Harm | None, code: int = REFUSED
) -> Case:
    installed = frozenset() if code else PACKED
    return Case(
        name=f"tar-{name}", build=tar(members), way="unpack", harm=harm, code=code, said=said, installed=installed
    )


def piped(ground: Ground, _: Outcome) -> bool:
    """A pipe is among the files: a program that reads it waits for ever."""
    found = (path for path in (ground.naive / ".claude").rglob("*") if not path.is_symlink())
    return any(stat.S_ISFIFO(path.lstat().st_mode) for path in found)


def exchanged(ground: Ground, _: Outcome) -> bool:
    """The project has the second of two manifests, while a reader of the first saw another one."""
    return any(b"the second" in data for _, data in ground.held(ground.naive))


def pax(ground: Ground) -> Sequence[Member]:
    """A plain name, and an extended name that overrides it."""
    info = tarfile.TarInfo("notes.txt")
    info.pax_headers = {"path": f"{'../' * 4}outside/pwned"}
    return [GOOD, info]


TARS = (
    packed("climbs", lambda _: [GOOD, ("../../../../outside/pwned", "x")], "leads outside", escaped),
    packed("climbs-in-the-middle", lambda _: [
        GOOD, special("a", tarfile.DIRTYPE, mode=0o755), ("a/../../../../../outside/pwned", "x")], "leads outside", escaped),
    packed("absolute", lambda ground: [GOOD, (f"{ground.outside}/pwned", "x")], "absolute", escaped),
    packed("climbs-by-extended-name", pax, "leads outside", escaped),
    packed("written-through-a-link", lambda ground: [
        GOOD, special("out", tarfile.SYMTYPE, str(ground.outside)), ("out/pwned", "x")], "below a file", escaped),
    packed("written-through-two-links", lambda ground: [
        GOOD, special("a", tarfile.SYMTYPE, "../../../.."), special("b", tarfile.SYMTYPE, "a/outside"),
        ("b/pwned", "x")], "below a file", escaped),
    packed("link-to-a-secret", lambda ground: [
        GOOD, special("notes", tarfile.SYMTYPE, f"{ground.outside}/secret")], "leads out", leaked),
    packed("link-to-passwd", lambda _: [GOOD, special("notes", tarfile.SYMTYPE, "/etc/passwd")], "leads out", leaked),
    packed("hard-link-to-a-secret", lambda ground: [
        GOOD, special("notes", tarfile.LNKTYPE, "../../../../outside/secret")], "hard link", leaked),
    packed("hard-link-written-through", lambda ground: [
        GOOD, special("p", tarfile.LNKTYPE, "../../../../outside/precious"), ("p", "pwned")], "hard link", escaped),
    packed("pipe", lambda _: [GOOD, special("p", tarfile.FIFOTYPE)], "not a regular file", piped),
    packed("device", lambda _: [GOOD, special("d", tarfile.CHRTYPE)], "not a regular file", None),
    packed("setuid", lambda _: [GOOD, special("run", tarfile.REGTYPE, mode=0o4755)], "", has_mode(0o4000), code=0),
    packed("writable-for-all", lambda _: [GOOD, special("run", tarfile.REGTYPE, mode=0o777)], "", has_mode(2), code=0),
    packed("twice", lambda _: [GOOD, ("SKILL.md", skill_text("packed", "the second"))], "occurs twice", exchanged),
    packed("manifest-is-a-link", lambda _: [special("SKILL.md", tarfile.SYMTYPE, "/etc/passwd")], "leads out",
           leaked),
    packed("manifest-is-a-folder", lambda _: [special("SKILL.md", tarfile.DIRTYPE), ("SKILL.md/a", "x")], "no SKILL.md",
           broke("IsADirectory"), code=MISSING),
    packed("manifest-is-a-pipe", lambda _: [special("SKILL.md", tarfile.FIFOTYPE)], "not a regular file", None),
    packed("file-and-folder", lambda _: [GOOD, ("a", "x"), ("a/b", "y")], "below a file", broke("Errno")),
    packed("far-larger-than-itself", lambda _: [
        GOOD, special("zeros", tarfile.REGTYPE, size=11 * MEGA)], "over", bytes_over(10 * MEGA)),
)  # fmt: skip


def zipped(
    members: Callable[[Ground], Iterable[tuple[zipfile.ZipInfo | str, str | bytes]]],
    change: Callable[[bytes], bytes] = bytes,
) -> Callable[[Ground], Order]:
    def build(ground: Ground) -> Order:
        held = io.BytesIO()
        with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as pack:
            for info, data in members(ground):
                pack.writestr(info, data)
        path = ground.base / "x.skill"
        path.write_bytes(change(held.getvalue()))
        return Order(source=str(path))

    return build


def linked(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    return info


def moded(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, mode << 16
    return info


def encrypted(data: bytes) -> bytes:
    """Sets the flag for encryption in every header."""
    held = bytearray(data)
    for mark, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        start = held.rfind(mark)
        held[start + at] |= 1
    return bytes(held)


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def twice(_: Ground) -> Iterable[tuple[str, str]]:
    import warnings

    yield GOOD
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield "SKILL.md", skill_text("packed", "the second")


def half(ground: Ground, outcome: Outcome) -> bool:
    """The unguarded installer failed and left the files that it had written."""
    return bool(outcome.broke) and any(path.name == "SKILL.md" and path.parent.name == "packed"
                                       for path, _ in ground.held(ground.naive))  # fmt: skip


def member(name: str, build: Callable[[Ground], Order], said: str, harm: Harm | None, code: int = REFUSED) -> Case:
    installed = frozenset() if code else PACKED
    return Case(name=f"zip-{name}", build=build, way="unpack", harm=harm, code=code, said=said, installed=installed)


ZIPS = (
    member("climbs", zipped(lambda _: [GOOD, ("../../../../outside/pwned", "x")]), "leads outside", escaped),
    member("absolute", zipped(lambda ground: [GOOD, (f"{ground.outside}/pwned", "x")]), "absolute", escaped),
    member("written-through-a-link", zipped(lambda ground: [
        GOOD, (linked("out"), str(ground.outside)), ("out/pwned", "x")]), "below a file", escaped),
    member("link-to-a-secret", zipped(lambda ground: [
        GOOD, (linked("notes"), f"{ground.outside}/secret")]), "leads out", leaked),
    member("link-to-passwd", zipped(lambda _: [GOOD, (linked("notes"), "/etc/passwd")]), "leads out", leaked),
    member("twice", zipped(twice), "occurs twice", exchanged),
    member("encrypted", zipped(lambda _: [GOOD, ("late", "x")], encrypted), "encrypted", half),
    member("cut-off", zipped(lambda _: [GOOD], cut), "damaged", broke("Error"), code=DAMAGED),
    member("far-larger-than-itself", zipped(lambda _: [GOOD, ("zeros", bytes(11 * MEGA))]), "over",
           bytes_over(10 * MEGA)),
    member("setuid", zipped(lambda _: [GOOD, (moded("run", stat.S_IFREG | 0o4755), "x")]), "", has_mode(0o4000),
           code=0),
    member("pipe", zipped(lambda _: [GOOD, (moded("p", stat.S_IFIFO | 0o644), "x")]), "not a regular file", None),
    member("backslash", zipped(lambda _: [GOOD, ("..\\pwned", "x")]), "not a plain path", None),
    member("drive", zipped(lambda _: [GOOD, ("C:/pwned", "x")]), "absolute", None),
)  # fmt: skip


def folder(fill: Callable[[Path], object]) -> Callable[[Ground], Order]:
    """A plain folder with something special in it."""

    def build(ground: Ground) -> Order:
        place = ground.base / "packed"
        place.mkdir()
        (place / "notes.md").write_text("notes\n")
        fill(place)
        return Order(source=str(place))

    return build


def pipe(place: Path) -> None:
    import os

    os.mkfifo(place / "SKILL.md")


FOLDERS = (
    Case(name="folder-manifest-is-a-pipe", build=folder(pipe), way="folder!", harm=None, code=MISSING,
         said="no SKILL.md"),
    Case(name="folder-manifest-is-a-folder", build=folder(lambda place: (place / "SKILL.md").mkdir()), way="copied",
         harm=broke("IsADirectory"), code=MISSING, said="no SKILL.md"),
    Case(name="folder-manifest-is-a-link", build=folder(lambda place: (place / "SKILL.md").symlink_to("/etc/passwd")),
         way="copied", harm=leaked, code=REFUSED, said="leads out"),
)  # fmt: skip

ARCHIVES = (*TARS, *ZIPS, *FOLDERS)

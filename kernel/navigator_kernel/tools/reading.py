"""The tools that read: lines of a file, entries of a folder, names by a pattern, text by a regular expression."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from navigator_kernel.adapters.files.tree import FolderEntry, opened_inside, read_inside, walk_inside
from navigator_kernel.adapters.processes.module_child import ModuleChild
from navigator_kernel.errors import KernelError, NotFound, Refused, UsageProblem
from navigator_kernel.text import escape_controls, lazy_compile, lines_of
from navigator_kernel.tools.places import Place, is_open
from navigator_kernel.tools.search_child import LARGEST, is_binary
from navigator_kernel.values.chat import PDF, ShownFile

LINES = 2_000  # lines of a file in one call
WIDTH = 2_000  # characters of a line
SHOWN = 16_000  # characters of an answer
ENTRIES = 200  # entries of a folder, and files found by a pattern
WALKED = 50_000  # files in one search
SECONDS, MEMORY = 20, 1024**3  # seconds and bytes of memory for a search
SEARCH = "navigator_kernel.tools.search_child"
SKIPPED = frozenset({"node_modules", "__pycache__", ".venv", ".git"})


class Found(NamedTuple):
    """The text and the files of a result for a model."""

    text: str
    files: tuple[ShownFile, ...] = ()


def read(place: Place, arguments: Mapping[str, Any]) -> Found:
    """Reads a picture or a PDF as it is, or lines of a text file."""
    data = read_inside(place.root, place.parts, LARGEST)
    if kind := kind_of(data):
        words = described(escape_controls(place.path.name), kind, data)
        digest = hashlib.sha256(data).hexdigest()
        return Found(words, (ShownFile(str(place.path), kind, len(data), digest),))
    if is_binary(data):
        message = f"{place.path.name} is a binary file of {len(data):,} bytes, not text"
        raise UsageProblem(message, hint="open it with a script")
    return Found(_lines(place, arguments, data))


def _lines(place: Place, arguments: Mapping[str, Any], data: bytes) -> str:
    """The lines `offset` to `offset + limit`, each with its number; if more lines follow, also the offset to continue
    from."""
    lines = lines_of(data.decode("utf-8", "replace"))
    first = max(int(arguments.get("offset") or 1), 1)
    wanted = min(max(int(arguments.get("limit") or LINES), 1), LINES)
    shown: list[str] = []
    room = SHOWN
    for number, line in enumerate(lines[first - 1 : first - 1 + wanted], start=first):
        text = f"{number:>6}\t{line if len(line) <= WIDTH else f'{line[:WIDTH]} … (line cut)'}"
        if len(text) > room and shown:
            break
        shown.append(text)
        room -= len(text) + 1
    last = first - 1 + len(shown)
    if not lines:
        return "(the file is empty)"
    if not shown:
        raise UsageProblem(f"{place.path.name} has {len(lines)} lines", hint=f"an offset from 1 to {len(lines)}")
    more = f"\n… lines {first} to {last} of {len(lines)}; go on with offset={last + 1}" if last < len(lines) else ""
    return "\n".join(shown) + more


def listed(place: Place, _arguments: Mapping[str, Any]) -> Found:
    """The entries of a folder, folders first."""
    found = [
        one
        for one in walk_inside(place.root, place.parts, deep=False)
        if is_open(place, (*place.parts, *one.path.split("/")))
    ]
    lines = [
        f"{escape_controls(one.path)}/" if one.is_folder else f"{escape_controls(one.path)} ({one.size:,} bytes)"
        for one in found
    ]
    return Found(_cut(lines, "entries") or "(the folder is empty)")


def globbed(place: Place, arguments: Mapping[str, Any], others: Sequence[Place] = ()) -> Found:
    """The files below a folder, and in `others`, whose path matches the pattern; `**` stands for any folders."""
    matches = _matcher(str(arguments["pattern"]))
    files = (("/".join((*where.parts, "")), file) for where in others if not where.is_lent for file in _files(where))
    paths = {file.path for where in (place, *others) if where.is_lent or where == place for file in _files(where)}
    matching = sorted(path for path in {*paths, *(f"{base}{file.path}" for base, file in files)} if matches(path))
    return Found(_cut([escape_controls(path) for path in matching], "files") or "(no file matches)")


def searched(place: Place, arguments: Mapping[str, Any], others: Sequence[Place] = ()) -> Found:
    """`path:line: text` of each line that the regular expression matches, also in `others`, or the files with
    `output_mode=files_with_matches`. The expression runs in a process with limits of its own (CWE-1333)."""
    try:
        flags = re.IGNORECASE if arguments.get("ignore_case") else 0
        re.compile(str(arguments["pattern"]), flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageProblem(f"the pattern is not a regular expression: {error}", hint="Python's syntax") from error
    wanted = _matcher(str(arguments["glob"])) if arguments.get("glob") else None
    roots: dict[str, str] = {}
    for where in (place, *others):
        for path in _targets(where, wanted):
            roots.setdefault(path, str(where.root))
    child = ModuleChild(SEARCH, memory=MEMORY)
    try:
        paths = [[root, path] for path, root in roots.items()]
        question = {"paths": paths, "pattern": str(arguments["pattern"]), "flags": int(flags)}
        answer = child.ask({**question, "names": arguments.get("output_mode") == "files_with_matches"}, seconds=SECONDS)
    except KernelError as error:
        raise UsageProblem(
            f"the search was stopped: {error.message}", hint="a simpler pattern, or fewer files"
        ) from error
    finally:
        child.close()
    more = "\n… there are more matches; narrow the pattern or the path" if answer["cut"] else ""
    return Found("\n".join(map(escape_controls, answer["found"])) + more or "(nothing matches)")


def _targets(place: Place, wanted: Any) -> list[str]:
    """The files to search, as paths below `place.root`."""
    if place.is_lent:
        return [one.path for one in _files(place) if wanted is None or wanted(one.path)]
    try:
        inside = list(_files(place))
    except NotFound:
        with opened_inside(place.root, place.parts, place.path.name):  # a file, or else an error
            return ["/".join(place.parts)]
    prefix = "/".join(place.parts)
    return [f"{prefix}/{one.path}".lstrip("/") for one in inside if wanted is None or wanted(one.path)]


def _files(place: Place) -> Iterator[FolderEntry]:
    if place.is_lent:
        yield FolderEntry("/".join(place.parts), is_folder=False, size=0)
        return
    count = 0
    for one in walk_inside(place.root, place.parts):
        if not is_open(place, (*place.parts, *one.path.split("/"))) or not SKIPPED.isdisjoint(one.path.split("/")):
            continue
        count += 1
        if count > WALKED:
            raise UsageProblem(f"there are over {WALKED:,} files", hint="name a subfolder")
        yield one


def _matcher(pattern: str) -> Callable[[str], bool]:
    """A test whether a path matches, or only its name if the pattern names no folder. Its time is proportional to both:
    `fnmatch` never backtracks, and folders are matched one by one."""
    wanted = pattern.strip("/").split("/")
    if len(wanted) == 1 and wanted != ["**"]:
        return lambda path: fnmatchcase(path.rpartition("/")[2], wanted[0])
    return lambda path: _matches(path.split("/"), wanted)


def _matches(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether `parts` match; `**` stands for any number of folders. `reached` contains the numbers of `parts` that the
    pattern can match so far."""
    reached = {0}
    for one in wanted:
        if one == "**":
            reached = set(range(min(reached), len(parts) + 1)) if reached else reached
        else:
            reached = {at + 1 for at in reached if at < len(parts) and fnmatchcase(parts[at], one)}
    return len(parts) in reached


def _cut(lines: list[str], what: str) -> str:
    more = f"\n… {len(lines) - ENTRIES} more {what}" if len(lines) > ENTRIES else ""
    return "\n".join(lines[:ENTRIES]) + more


# What is said about a picture or a PDF: its type, its size in pixels, and its number of pages

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
        # The number of pages that the PDF states, 0 if unknown
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
        count = max((_count(part.decode("latin-1")) for part in found), default=0)
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
        at = 2
        while at + 9 <= len(data) and data[at] == 0xFF:
            mark = data[at + 1]
            if mark in _SIZES:
                return int.from_bytes(data[at + 7 : at + 9]), int.from_bytes(data[at + 5 : at + 7])
            at += 1 if mark == 0xFF else 2 + int.from_bytes(data[at + 2 : at + 4])
        return None
    # WebP, in any of the three forms: with extra parts, lossless, plain (RFC 9649)
    form = data[12:16] if kind == "image/webp" and len(data) >= 30 else b""
    if form == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    if form == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if form == b"VP8 ":
        return int.from_bytes(data[26:28], "little") & 0x3FFF, int.from_bytes(data[28:30], "little") & 0x3FFF
    return None


def _count(text: str) -> int:
    """The highest page count of a node in the page tree; the count is near the node's type."""
    counts = [0]
    for hit in _PAGES.finditer(text):
        around = text[max(hit.start() - 300, 0) : hit.end() + 300]
        counts += [int(one) for one in _COUNT.findall(around)]
    return max(counts)

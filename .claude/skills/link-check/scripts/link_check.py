"""Finds the relative links and anchors of Markdown files that lead nowhere, and prints them as one JSON object."""

import argparse
import html
import json
import os
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from urllib.parse import unquote

LINK = re.compile(r"\]\(\s*(?:<([^<>]*)>|((?:[^\s()]|\([^\s()]*\))*))")
DEFINITION = re.compile(r" {0,3}\[[^\]\s^][^\]]*\]:\s*(?:<([^<>]*)>|(\S+))")
TAG = re.compile(r"<(?:a|img)\s[^<>]*?\b(?:href|src)\s*=\s*[\"']([^\"'<>]*)[\"']", re.IGNORECASE)
AUTOLINK = re.compile(r"(?<!\()<(https?://[^\s<>]*)>", re.IGNORECASE)
NAMED = re.compile(r"<[a-z][^<>]*?\b(?:id|name)\s*=\s*[\"']([^\"'<>]*)[\"']", re.IGNORECASE)
CUSTOM = re.compile(r"\{#([\w.:-]+)\}$")
UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")
FENCE = re.compile(r"[\s>]*(`{3,}|~{3,})(.*)", re.DOTALL)
TICKS = re.compile(r"`+")
INLINE = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)|<[^<>]*>")
UNDERSCORES = re.compile(r"(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)")
SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)
ESCAPE = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.?")
HIDDEN = frozenset({"Cc", "Cf", "Zl", "Zp"})
LEFT_OUT = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__"})
OF_A_MACHINE = ("CACHEDIR.TAG", "pyvenv.cfg")  # a folder with one of them is a cache or a virtual environment
MARKDOWN = frozenset({".md", ".markdown", ".mdx"})
LISTED = 200  # broken links in the answer; all are counted
SIZE = 4 * 2**20  # bytes of a file that is read
LINE = 20_000  # characters of a line that are looked at
SHOWN = 300  # characters of a link that are shown


@dataclass
class Found:
    """What was met on the way."""

    top: Path
    broken: list[dict[str, object]] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    files: int = 0
    links: int = 0
    external: int = 0
    skipped: Counter[str] = field(default_factory=Counter)


def check(written: str) -> dict[str, object]:
    """`{summary, files, links, external, broken: [{file, line, link, reason}], …}` of a folder, or of one file."""
    project = project_folder()
    target = place(written, project)
    base = target if target.is_dir() else target.parent
    found = Found(top=project if target.is_relative_to(project) else base)
    for path in files(target, found.skipped) if target.is_dir() else [target]:
        look(path, plain(path.relative_to(base).as_posix()), found)
    total = sum(found.reasons.values())
    return {
        "summary": f"{total} broken of {found.links} relative links in {found.files} files, {found.external} external",
        "folder": plain(written),
        "files": found.files,
        "links": found.links,
        "external": found.external,
        "total": total,
        "reasons": dict(sorted(found.reasons.items())),
        "broken": found.broken,
        "listed": len(found.broken),
        "skipped": dict(sorted(found.skipped.items())),
    }


def look(path: Path, name: str, found: Found) -> None:
    """Adds the links of one file."""
    text = text_of(path)
    if text is None:
        found.skipped["unreadable"] += 1
        return
    found.files += 1
    for number, target in links(text):
        if SCHEME.match(target):
            found.external += 1
            continue
        found.links += 1
        reason = problem(target, path, found.top)
        if reason is None:
            continue
        found.reasons[reason] += 1
        if len(found.broken) < LISTED:
            found.broken.append({"file": name, "line": number, "link": plain(target)[:SHOWN], "reason": reason})


@lru_cache(maxsize=100_000)
def problem(target: str, source: Path, top: Path) -> str | None:
    """Why the link leads nowhere; nothing outside `top` is looked at."""
    written, _, anchor = target.partition("#")
    path = source
    if written:
        start = top if written.startswith("/") else source.parent
        path = Path(os.path.realpath(start / unquote(written).replace("\0", "").lstrip("/")))
        if not path.is_relative_to(top):
            return "outside"
        if not is_there(path) and "?" in written:
            return problem(f"{written.partition('?')[0]}#{anchor}", source, top)
        if not is_there(path):
            return "no such file"
    if not anchor or anchor.lower() == "top" or path.suffix.lower() not in MARKDOWN or not path.is_file():
        return None
    wanted = unquote(anchor)
    return None if {wanted, wanted.lower()} & anchors(path) else "no such heading"


def is_there(path: Path) -> bool:
    try:
        path.stat()
    except OSError:
        return False
    return True


def links(text: str) -> Iterator[tuple[int, str]]:
    """Line and target of each link, image and definition."""
    for number, line in prose(text):
        hits = [hit for pattern in (LINK, TAG, AUTOLINK) for hit in pattern.finditer(line)]
        for hit in [*hits, DEFINITION.match(line)]:
            written = next((group for group in hit.groups() if group), "") if hit else ""
            if written.strip():
                yield number, html.unescape(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", written.strip()))


@cache
def anchors(path: Path) -> frozenset[str]:
    """What a `#…` may name in a Markdown file, as GitHub makes it, and every `id` that it writes itself."""
    found: set[str] = set()
    seen: Counter[str] = Counter()
    for heading in headings(text_of(path) or ""):
        custom = CUSTOM.search(heading)
        found |= {custom[1]} if custom else set()
        for name in {slug(heading), slug(UNDERSCORES.sub("", heading))}:
            found.add(f"{name}-{seen[name]}" if seen[name] else name)
            seen[name] += 1
    lines = (line for _, line in prose(text_of(path) or ""))
    return frozenset(found | {hit[1] for line in lines for hit in NAMED.finditer(line)})


def headings(text: str) -> Iterator[str]:
    """The text of each heading, of either form."""
    before = ""
    for _, line in prose(text, keep_code=True):
        bare = line.strip()
        level = len(bare) - len(bare.lstrip("#"))
        if 1 <= level <= 6 and not bare[level : level + 1].strip():
            title = bare[level:].strip()
            closed = title.rstrip("#")
            yield closed.rstrip() if not closed or closed[-1:].isspace() else title
        elif before and UNDERLINE.match(line):
            yield before
        before = bare if bare and not bare.startswith(("#", "|", "- ", "* ", "```")) else ""


def slug(heading: str) -> str:
    text = INLINE.sub(lambda hit: hit[1] or "", html.unescape(heading)).strip().lower()
    return "".join("-" if mark == " " else mark for mark in text if mark in " -" or is_word(mark))


def is_word(mark: str) -> bool:
    category = unicodedata.category(mark)
    return category[0] in "LMN" or category == "Pc"


def prose(text: str, *, keep_code: bool = False) -> Iterator[tuple[int, str]]:
    """Number and text of each line outside code blocks and comments, by default without its code spans."""
    fence, commented = "", False
    for number, line in enumerate(text.split("\n"), start=1):
        line = line[:LINE]
        hit = None if commented else FENCE.match(line)
        if fence:
            fence = "" if hit and hit[1].startswith(fence) and not hit[2].strip() else fence
        elif hit and not (hit[1][0] == "`" and "`" in hit[2]):
            fence = hit[1]
        else:
            shown, commented = without_comments(line if keep_code else without_code(line), open_before=commented)
            yield number, shown


def without_comments(line: str, *, open_before: bool) -> tuple[str, bool]:
    """The line without what stands in comments, and whether one is open at its end."""
    kept: list[str] = []
    commented = open_before
    while line:
        part, mark, line = line.partition("-->" if commented else "<!--")
        kept += [] if commented else [part]
        commented = bool(mark) != commented
    return "".join(kept), commented


def without_code(line: str) -> str:
    """The line without its code spans: as many ticks at the end as at the beginning."""
    runs = list(TICKS.finditer(line))
    partner: dict[int, int] = {}
    last: dict[int, int] = {}
    for at in range(len(runs) - 1, -1, -1):
        size = len(runs[at][0])
        partner[at] = last.get(size, at)
        last[size] = at
    kept, begin, at = [], 0, 0
    while at < len(runs):
        if partner[at] != at:
            kept.append(line[begin : runs[at].start()])
            begin = runs[partner[at]].end()
        at = partner[at] + 1
    return "".join([*kept, line[begin:]])


def text_of(path: Path) -> str | None:
    """The file's text, None where it is too large or none."""
    try:
        with path.open("rb") as file:
            data = file.read(SIZE + 1)
    except OSError:
        return None
    if len(data) > SIZE or b"\0" in data:
        return None
    return data.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")


def files(folder: Path, skipped: Counter[str]) -> Iterator[Path]:
    """Every Markdown file below `folder` in the order of names; links are not followed."""
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        try:
            entries = sorted(os.scandir(here), key=lambda entry: entry.name)
        except OSError:
            skipped["unreadable"] += 1
            continue
        if here != folder and any(entry.name in OF_A_MACHINE for entry in entries):
            skipped["folders"] += 1
            continue
        deeper: list[Path] = []
        for entry in entries:
            path = Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                kept = not is_left_out(path)
                deeper += [path] if kept else []
                skipped["folders"] += not kept
            elif entry.is_file(follow_symlinks=False) and path.suffix.lower() in MARKDOWN:
                yield path
        waiting += reversed(deeper)


def is_left_out(folder: Path) -> bool:
    """Whether nobody wrote what is in it: version control, dependencies, bytecode, the kernel's own run folders."""
    return folder.name in LEFT_OUT or (folder.name == "mybox" and folder in Path.cwd().parents)


def plain(text: str) -> str:
    """`text` without escape sequences, control characters, direction marks and halves of characters."""
    whole = ESCAPE.sub("", text.replace("\t", " ")).encode("utf-8", "replace").decode("utf-8")
    return "".join(mark for mark in whole if unicodedata.category(mark) not in HIDDEN)


def project_folder() -> Path:
    """The project that the run's own folder lies in, else where the program was started."""
    run = Path.cwd()
    return run.parents[2] if run.parts[-3:-1] == ("mybox", "workspace") else run


def place(written: str, project: Path) -> Path:
    """The file or folder that is meant; a relative path starts at the project."""
    found = Path(os.path.realpath(project / written))
    if not found.is_relative_to(project) and not Path(written).is_absolute():
        raise SystemExit(f"{written!r} leads out of the project")
    if not found.is_file() and not found.is_dir():
        raise SystemExit(f"there is no file or folder {written!r}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", help="a Markdown file or a folder")
    parser.add_argument("folder", nargs="?", help="the same, as a word; without either the project")
    given = parser.parse_args()
    try:
        found = check(given.path or given.folder or ".")
    except OSError as error:
        raise SystemExit(f"{error.filename!r} cannot be read: {error.strerror}") from error
    sys.stdout.write(json.dumps(found, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()

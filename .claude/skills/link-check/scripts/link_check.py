"""Finds the relative links and anchors of Markdown files that lead nowhere, and prints them as one JSON object."""

import argparse
import html
import json
import os
import re
import subprocess
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
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
CHINESE = os.environ.get("NAVIGATOR_LANGUAGE") == "zh"
LEFT_OUT = frozenset({".git", ".hg", ".svn", ".claude", ".agents", "mybox", "__pycache__", ".venv", "venv"})
LEFT_OUT |= {"node_modules", "bower_components", "vendor", "third_party"}
OF_A_MACHINE = ("CACHEDIR.TAG", "pyvenv.cfg")  # a folder with one of them is a cache or a virtual environment
# A repository's own configuration can name programs and servers; none is run and none is asked.
QUIET = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "protocol.allow=never", "safe.bareRepository=explicit")
GIT = ("git", *(word for setting in QUIET for word in ("-c", setting)))
IGNORED = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
REASONS = {"no such file": "没有这个文件", "no such heading": "没有这个标题", "outside": "在项目之外"}
MARKDOWN = frozenset({".md", ".markdown", ".mdx"})
LISTED = 200  # broken links in the answer; all are counted
SIZE = 4 * 2**20  # bytes of a file that is read
LINE = 20_000  # characters of a line that are looked at
SHOWN = 300  # characters of a link that are shown

ASCII = bytes(range(128))
UTF_8 = re.compile(rb"(?:[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})+")
GB = re.compile(rb"(?:[\x81-\xfe][\xa1-\xfe])+")
MOST = 0.8  # of the bytes beyond ASCII that tell an encoding


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


def check(written: str, without: frozenset[str]) -> dict[str, object]:
    """`{summary, files, links, external, broken: [{file, line, link, reason}], text, …}` of a folder or a file."""
    project = project_folder()
    target = place(written, project)
    name = plain(target.relative_to(project).as_posix() if target.is_relative_to(project) else str(target))
    base = target if target.is_dir() else target.parent
    found = Found(top=project if target.is_relative_to(project) else base)
    for path in files(target, found.skipped, without) if target.is_dir() else [target]:
        look(path, plain(path.relative_to(base).as_posix()), found)
    if not found.files:
        where = repr(name) if target != project else say("the project", "项目")
        raise SystemExit(say(f"there is no Markdown file in {where}", f"{where} 里没有 Markdown 文件"))
    return {
        "summary": sentence(and_without("" if target == project else name, without), found),
        "folder": plain(written),
        "files": found.files,
        "links": found.links,
        "external": found.external,
        "total": found.reasons.total(),
        "reasons": dict(sorted(found.reasons.items())),
        "broken": found.broken,
        "listed": len(found.broken),
        "skipped": dict(sorted((+found.skipped).items())),
        "text": text_of_broken(found, "" if target == project else f"{name}/" if target.is_dir() else name),
    }


def sentence(name: str, found: Found) -> str:
    """The number of broken links among those that were followed, in the person's language."""
    broken, source = found.reasons.total(), name or say("the project", "整个项目")
    if CHINESE:
        summary = f"{source}：{found.files:,} 个文件的 {found.links:,} 个相对链接中有 {broken:,} 个失效"
        return summary + (f"；另有 {found.external:,} 个外部链接未检查" if found.external else "")
    summary = f"{source}: {broken:,} of {many(found.links, 'relative link')} broken in {many(found.files, 'file')}"
    return summary + (f"; {many(found.external, 'external link')} not checked" if found.external else "")


def text_of_broken(found: Found, begin: str) -> str:
    """A line for each broken link, with its path from the project; `begin` is a folder with its slash, or a file."""
    alone = begin and not begin.endswith("/")
    lines = [
        f"{begin if alone else begin + str(link['file'])}:{link['line']} {link['link']}"
        f" ({say(str(link['reason']), REASONS[str(link['reason'])])})"
        for link in found.broken
    ]
    more = found.reasons.total() - len(lines)
    return "\n".join(lines + ([say(f"and {more:,} more", f"还有 {more:,} 个")] if more else []))


def many(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def say(english: str, chinese: str) -> str:
    return chinese if CHINESE else english


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
    wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    if len(data) > SIZE or (b"\0" in data and not wide):
        return None
    encoding = "utf-16" if wide else encoding_of(data)
    return data.decode(encoding, "replace").replace("\r\n", "\n").replace("\r", "\n")


def encoding_of(data: bytes) -> str:
    """By what most of the bytes beyond ASCII form: UTF-8, GB18030, or single characters."""
    beyond = len(data.translate(None, ASCII))
    if sum(map(len, UTF_8.findall(data))) >= beyond * MOST:
        return "utf-8-sig"
    return "gb18030" if sum(map(len, GB.findall(data))) >= beyond * MOST else "cp1252"


def files(folder: Path, skipped: Counter[str], without: frozenset[str]) -> Iterator[Path]:
    """Every Markdown file below `folder` in the order of names that a person of the project wrote; no links."""
    waiting, ignored = [folder], ignored_by_git(folder)
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
        if here != folder and any(entry.name == ".git" for entry in entries):
            ignored |= ignored_by_git(here)
        deeper: list[Path] = []
        for entry in entries:
            path = Path(entry.path)
            if entry.path in ignored:
                skipped["ignored"] += 1
            elif is_left_out(entry.path, without):
                skipped["unwanted"] += 1
            elif entry.is_dir(follow_symlinks=False):
                skipped["folders"] += entry.name in LEFT_OUT
                deeper += [] if entry.name in LEFT_OUT else [path]
            elif entry.is_file(follow_symlinks=False) and path.suffix.lower() in MARKDOWN:
                yield path
        waiting += reversed(deeper)


def is_left_out(path: str, without: frozenset[str]) -> bool:
    """Whether the file or folder is one of those that the person does not want, or fits one of their patterns."""
    return path in without or any(fnmatch(Path(path).name, name) for name in without if "*" in name)


def and_without(name: str, without: frozenset[str]) -> str:
    """`name` as people are shown it, with what was left out."""
    project = os.path.realpath(os.environ.get("NAVIGATOR_PROJECT", "."))
    names = sorted(plain(os.path.relpath(path, project) if path.startswith("/") else path) for path in without)
    if not names:
        return name
    whole = name or say("the project", "整个项目")
    return say(f"{whole} without {', '.join(names)}", f"{whole}（不含 {'、'.join(names)}）")


def ignored_by_git(folder: Path) -> frozenset[str]:
    """The paths below `folder` that git ignores; none without git, or where `folder` itself is ignored: it is meant."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    own = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_CONFIG_NOSYSTEM": "1"}
    try:
        done = subprocess.run([*GIT, *IGNORED], cwd=folder, env={**kept, **own}, capture_output=True, check=False)
    except OSError:
        return frozenset()
    names = [os.fsdecode(name).rstrip("/") for name in done.stdout.split(b"\0") if name]
    if done.returncode or "." in names:
        return frozenset()
    return frozenset(str(folder / name) for name in names)


def plain(text: str) -> str:
    """`text` without escape sequences, control characters, direction marks and halves of characters."""
    whole = ESCAPE.sub("", text.replace("\t", " ")).encode("utf-8", "replace").decode("utf-8")
    return "".join(mark for mark in whole if unicodedata.category(mark) not in HIDDEN)


def project_folder() -> Path:
    """The project, which the kernel names, else where the program was started."""
    return Path(os.path.realpath(os.environ.get("NAVIGATOR_PROJECT", ".")))


def place(written: str, project: Path) -> Path:
    """The file or folder that is meant; a relative path starts at the project."""
    found = Path(os.path.realpath(project / written))
    if not found.is_relative_to(project) and not Path(written).is_absolute():
        raise SystemExit(say(f"{written!r} leads out of the project", f"{written!r} 在项目之外"))
    if not found.is_file() and not found.is_dir():
        raise SystemExit(say(f"there is no file or folder {written!r}", f"没有名为 {written!r} 的文件或文件夹"))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", help="a Markdown file or a folder")
    parser.add_argument("folder", nargs="?", help="the same, as a word; without either the project")
    parser.add_argument("--without", default="", help="files, folders and patterns to leave out, one a line")
    given = parser.parse_args()
    try:
        found = check(given.path or given.folder or ".", frozenset(filter(None, given.without.split("\n"))))
    except OSError as error:
        raise SystemExit(f"{error.filename!r} cannot be read: {error.strerror}") from error
    sys.stdout.write(json.dumps(found, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()

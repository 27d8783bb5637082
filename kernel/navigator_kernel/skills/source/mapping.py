"""The catalogue of known repositories and their skills (LIF-14, X-35, X-42)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from navigator_kernel.adapters.files.database import file_lock
from navigator_kernel.adapters.files.writer import read_bounded, stamp
from navigator_kernel.errors import Damaged, KernelError
from navigator_kernel.skills.formats.names import NAME
from navigator_kernel.text import clean, fold, lazy_compile, shorten

if TYPE_CHECKING:
    from navigator_kernel.ports import Writer

BEGIN, END = "<!-- observed: begin -->", "<!-- observed: end -->"
_HEAD = "| name | description | upstream_repo | subpath |\n|---|---|---|---|\n"
_NEW = (
    "# Skills mapping\n\nSub-skills and the repositories that hold them. Add rows above the observed region;\n"
    "`skill info` and `skill install` write the region.\n\n" + _HEAD
)
_SIZE_LIMIT = 16 * 1024 * 1024  # bytes
_CELL = 300  # characters
_OWNED = lazy_compile(r"[\w.-]+/[\w.-]+")
_MARKS = lazy_compile(r"[&<>|\[`]")
_COLUMNS = {
    "name": "name", "skill": "name", "sub-skill": "name", "子技能": "name", "名称": "name", "技能": "name",
    "description": "description", "描述": "description", "说明": "description",
    "upstream-repo": "repo", "repo": "repo", "repository": "repo", "main-repo": "repo",
    "仓库": "repo", "主仓库": "repo",
    "subpath": "subpath", "path": "subpath", "路径": "subpath",
}  # fmt: skip
_HEADING = lazy_compile(r"#{2,6}[ \t].*[(（]\s*(?:https://github\.com/)?([\w.-]+/[\w.-]+?)\s*[)）]\s*")
_LINK = lazy_compile(r"\[[^\][]*\]\(\s*+<?([^)>\s]{1,500})>?\s*+\)")
_GITHUB = lazy_compile(r"https?://(?:www\.)?github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?")
_LAST_BAR = lazy_compile(r"(?<!\\)\|$")
_Key = tuple[str, str, str]  # repo, subpath, folded name


class Row(NamedTuple):
    """`repo` is owner/repo or a URL, `subpath` the skill's folder in it, if known."""

    name: str
    description: str
    repo: str
    subpath: str


class Known(Struct, frozen=True):
    """A row with its page; `observed` is true for an observed row, false for one written by people."""

    row: Row
    page: Path
    observed: bool


class SkillMapping:
    """Implements `ports.KnownSkills` over `paths`: the first is the person's, which `observe` writes to; the rest are
    only read. `named` is a project's own page: its rows are listed, but never used to install by name (X-43)."""

    def __init__(self, paths: Sequence[Path], named: Path | None = None) -> None:
        self.path = paths[0]
        self._paths, self._named = tuple(paths), named
        self._stamps: tuple[object, ...] | None = None
        self._index: dict[str, tuple[str, str]] = {}

    def find(self, name: str) -> tuple[str, str] | None:
        """`(repository, sub-skill)`; rows by people win over observed ones, upper rows over lower ones."""
        return self._indexed().get(fold(name))

    def named(self, name: str) -> tuple[str, str] | None:
        """`(repository, sub-skill)` from the project's own page."""
        if self._named is None:
            return None
        with suppress(Damaged):
            for known in self._page(self._named):
                if fold(known.row.name) == fold(name):
                    return known.row.repo, known.row.name
        return None

    def observe(self, rows: Iterable[Row], writer: Writer) -> None:
        """Adds new `rows` to the person's page."""
        rows = tuple(rows)
        if not rows or self.grown(rows) is None:
            return
        writer.make_folder(self.path.parent)
        with file_lock(self.path.with_suffix(".lock")):
            if (grown := self.grown(rows)) is not None:
                writer.write(self.path, grown, mode=0o600)

    def names(self) -> tuple[str, ...]:
        return tuple(sub for _, sub in self._indexed().values())

    def rows(self) -> Iterator[Known]:
        """All rows of all pages without duplicates, in order."""
        seen: set[_Key] = set()
        for page in (*([self._named] if self._named is not None else []), *self._paths):
            for known in self._page(page):
                if (key := _key(known.row)) not in seen:
                    seen.add(key)
                    yield known

    def seen(self) -> list[Row]:
        """The rows of the person's page."""
        return [known.row for known in self._page(self.path)]

    def _page(self, page: Path) -> Iterator[Known]:
        head, _, rest = _text(page).partition(BEGIN)
        observed, _, tail = rest.partition(END)
        for text, seen in ((head, False), (tail, False), (observed, True)):
            yield from (Known(row, page, seen) for row in _rows(text))

    def grown(self, rows: Iterable[Row]) -> bytes | None:
        """The file with `rows` in its observed region, or None if it has them all; Damaged without both marks."""
        head, observed, tail = _regions(_text(self.path) or _NEW, self.path)
        known = {_key(row): row for row in _rows(observed)}
        before = dict(known)
        for row in rows:  # those with more information
            key = _key(row)
            if NAME.fullmatch(row.name) and (row.description or key not in known):
                known[key] = row._replace(description=_plain(_cell(row.description)))
        if known == before:
            return None
        region = ""
        for row in sorted(known.values(), key=lambda row: (row.repo, row.name, row.subpath)):
            repo = f"[{row.repo}](https://github.com/{row.repo})" if _OWNED.fullmatch(row.repo) else _cell(row.repo)
            region += f"| `{row.name}` | {_cell(row.description)} | {repo} | {_cell(row.subpath)} |\n"
        return f"{head}{BEGIN}\n{_HEAD}{region}{END}{tail}".encode()

    def _indexed(self) -> dict[str, tuple[str, str]]:
        stamps = tuple(stamp(path) for path in self._paths)
        if stamps != self._stamps:
            self._index = {}
            for text in filter(None, map(_text, self._paths)):
                head, _, rest = text.partition(BEGIN)
                observed, _, tail = rest.partition(END)
                for row in (*_rows(head), *_rows(tail), *_rows(observed)):
                    self._index.setdefault(fold(row.name), (row.repo, row.name))
            self._stamps = stamps
        return self._index


def _key(row: Row) -> _Key:
    return row.repo, row.subpath, fold(row.name)


def _text(path: Path) -> str:
    try:
        return read_bounded(path, _SIZE_LIMIT).decode("utf-8-sig").replace("\r\n", "\n")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (UnicodeDecodeError, KernelError) as error:
        raise Damaged(f"{str(path)!r} cannot be read: {error}", hint="fix or remove the file") from error


def _regions(text: str, path: Path) -> tuple[str, str, str]:
    """The text before, in and after the observed region."""
    if BEGIN not in text and END not in text:
        return text.rstrip("\n") + "\n\n", "", "\n"
    head, begun, rest = text.partition(BEGIN)
    region, ended, tail = rest.partition(END)
    if not begun or not ended or BEGIN in rest or END in tail:
        raise Damaged(f"{str(path)!r} has no clear observed region", hint=f"keep one {BEGIN} and one {END} below it")
    return head, region, tail


@lru_cache(maxsize=8)
def _rows(text: str) -> tuple[Row, ...]:
    """The table rows of either layout: a repository in each row, or in the heading above."""
    rows: list[Row] = []
    repo = ""
    columns: Sequence[str] = ()
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if line.startswith("#"):
            hit = _HEADING.fullmatch(line[:500])
            repo, columns = (hit.group(1) if hit else ""), ()
        elif "|" in line and not _is_rule(line):
            line = _LAST_BAR.sub("", line.strip().removeprefix("|")).replace("\\|", "\0")
            cells = [cell.strip() for cell in line.split("|")]
            if at + 1 < len(lines) and _is_rule(lines[at + 1]):
                columns = [_COLUMNS.get(fold(cell.strip("`* ")), "") for cell in cells]
                continue
            cell_of = dict(zip(columns or Row._fields, cells, strict=False))
            name, place = cell_of.get("name", "").strip("`* "), cell_of.get("repo", "")[:2000]
            link = _LINK.search(place)
            url = _plain(link.group(1) if link else place.strip("`<> "))
            named = _GITHUB.fullmatch(url)
            source = (named.group(1) if named else url) or repo
            if source and NAME.fullmatch(name):
                subpath = _plain(cell_of.get("subpath", "").strip("`"))
                rows.append(Row(name, _plain(cell_of.get("description", "")), source, subpath))
    return tuple(rows)


def _is_rule(line: str) -> bool:
    return "|" in line and "-" in line and not line.strip("|:- \t")


def _cell(text: str) -> str:
    """`text` as one cell that cannot end the table or a comment, and contains no link."""
    if not text:
        return text
    line = shorten(clean(text, lines=False).replace("\\", "/"), _CELL)
    if not _MARKS.search(line):
        return line
    for mark, written in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "\\|"), ("[", "\\["), ("`", "'")):
        line = line.replace(mark, written)
    return line


def _plain(cell: str) -> str:
    for written, mark in (("\0", "|"), ("\\|", "|"), ("\\[", "["), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        cell = cell.replace(written, mark)
    return cell

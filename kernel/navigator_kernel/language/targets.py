"""Finds the files and folders that a message names in plain words: by path, by name, or by what they are.

What exists is used. What looks like a file or folder and does not exist is kept with the names that are like it, so that
no skill works on something else instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from difflib import get_close_matches
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from navigator_kernel.errors import KernelError, NotFound, Refused
from navigator_kernel.language.signs import named_files
from navigator_kernel.language.sources import SOURCES
from navigator_kernel.text import fold, lazy_compile, numbered
from navigator_kernel.values.request import UNREAD, FileReference

if TYPE_CHECKING:
    from navigator_kernel.adapters.files.project_files import ProjectFiles

_SOURCES = SOURCES["targets"]
LIMIT = 4_000  # characters of a message in which files are looked for
MOST = 16  # files and folders that one message can name without a mark
LONGEST, CUTS = 260, 12  # characters of a path, and places where it may begin or end
NEAR = 3  # names that are suggested in place of one that does not exist

QUOTED = lazy_compile(_SOURCES["_QUOTED"])
_ADDRESS = lazy_compile(r"[a-z][a-z\d+.-]{1,15}://[^\s，。；]+|(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.-]+", re.IGNORECASE)
_CHUNK = lazy_compile(r"[^\s\"'`“”‘’「」『』《》（）()<>，。；、：！？|,;*?]++")
_GLOB = lazy_compile(r"(?<![\w*./\-])[\w./\-]*\*[\w./*\-]*\.\w{1,8}(?!\w)")
_HAN_RUN = lazy_compile("[\u3400-\u9fff]+")
_WORD = lazy_compile(r"\.?[A-Za-z0-9_][A-Za-z0-9_.\-]+")
# Names before and after the word "folder"
_BEFORE_FOLDER = lazy_compile(_SOURCES["_BEFORE_FOLDER"], re.IGNORECASE)
_AFTER_FOLDER = lazy_compile(_SOURCES["_AFTER_FOLDER"], re.IGNORECASE)
_BEFORE_MULU = lazy_compile(r"(?<![\w.\-/])([\w.\-/\u3400-\u9fff]+)[ \t]?(?:这个|那个)?(?:子?目录|文件夹)")
# Words around the name of a folder that say that a place is meant
_INTO = lazy_compile(_SOURCES["_INTO"], re.IGNORECASE)
_AND = lazy_compile(r"[ \t]*(?:,|&|and(?=[ \t])|和|与|以及|、)[ \t]*")
_INSIDE = lazy_compile(r"\b(?:in|inside|under|within)[ \t]+$", re.IGNORECASE)
_ENDS = lazy_compile(r"[ \t]*(?:$|[,.;?!\n](?!\w)|(?:and|but|then)\b)")
_PLACE_ZH = lazy_compile(r"[ \t]?(?:里面?|下面?|中|内|目录|文件夹|呢|的)|[ \t]?[?？。.!！]*$")
_PLACED = lazy_compile(r"[里下中内]|目录|文件夹|呢|的")
_OUT_OF, _LEFT_OUT = (
    lazy_compile(f"{_SOURCES['_BUT_NOT']}$", re.IGNORECASE),
    lazy_compile(_SOURCES["_BUT_NOT"], re.IGNORECASE),
)
_LIST_OF = lazy_compile(_SOURCES["_LIST_OF"])
_EXCEPTED = lazy_compile(
    rf"(?<![A-Za-z0-9_./*-])((?:{_SOURCES['_NAME']}[ \t]?[、和与,，][ \t]?){{0,4}}{_SOURCES['_NAME']}){_SOURCES['_NO_MORE']}"
)
_AFTER_NO_MORE = lazy_compile(_SOURCES["_NO_MORE"])
_AFTER_LEFT_OUT = lazy_compile(r"(?:目录|文件夹|里面?的?|中的|以外|之外|的|除外|不算|不要|不看).*$")
# "besides tests, also": what is named is wanted as well
_AS_WELL = lazy_compile(_SOURCES["_AS_WELL"], re.IGNORECASE)
_GENERAL = frozenset(
    "a an the this that these those my our your its their his her same each every any which what whole entire current project root working home parent "
    "new empty output except excluding without ignoring skipping besides not but source other another some all no top main first second whose one right wrong correct sub in of inside under from for check scan list "
    "and or to with is are there many few several most biggest largest smallest by per into on at as how size shared own given of .git".split()
)
_KNOWN = {
    "readme": ("readme", "自述文件", "自述"),
    "changelog": ("changelog", "change log", "变更日志", "更新日志", "变更记录"),
    "license": ("license", "licence", "许可证"),
    "contributing": ("contributing guide", "contributing", "贡献指南"),
    "makefile": ("makefile",),
    "dockerfile": ("dockerfile",),
}
_TEXTS = (".md", ".txt", ".rst")
_KINDS: Sequence[tuple[tuple[str, ...], tuple[str, ...]]] = (
    ((".log", ".log.gz", ".log.1"), ("log file", "logfile", "logs", "log", "日志文件", "日志")),
    ((".csv", ".tsv", ".xlsx"), ("csv file", "csv", "spreadsheet", "表格文件", "csv 文件", "表格")),
    ((".json", ".jsonl", ".ndjson"), ("json file", "json lines", "jsonl", "json", "json 文件")),
    (_TEXTS, ("document", "page", "guide", "notes", "text file", "文档", "笔记", "说明", "手册")),
)
_TITLED = lazy_compile(_SOURCES["_TITLED"], re.IGNORECASE)
_ENGLISH_BEFORE = lazy_compile(r"(?<![\w'’.\-])((?:[A-Za-z0-9][\w'’.\-]*[ \t]+){1,4})$")
_HAN_BEFORE = lazy_compile(r"([\w\u3400-\u9fff][\w.\-\u3400-\u9fff]{0,15}?)[ \t]?的?[ \t]?$")
_DOTTED, _DOT_FILE = lazy_compile(_SOURCES["_DOTTED"]), lazy_compile(_SOURCES["_DOT_FILE"])
_NEWEST = frozenset({"latest", "newest", "last", "current", "最新", "最近", "当前"})


class _Mention(NamedTuple):
    """A name as it is written, where it begins, and the paths that it may mean. `loose` names are descriptions; `too_many` is
    the number of files of a pattern that means more than one message can name."""

    written: str
    start: int
    paths: tuple[str, ...]
    is_folder: bool = False
    loose: bool = False
    too_many: int = 0


def find_targets(
    text: str, files: ProjectFiles, today: date | None = None, whole: str = ""
) -> tuple[FileReference, ...]:
    """The files and folders that `text` names without a mark, in its order, then those that it, or the `whole` message of
    which it is a part, leaves out. `today` is for "yesterday's log"."""
    left = left_out(whole or text, files)
    text = text[:LIMIT]
    finder = _Finder(text, files, today)
    mentions = sorted(finder.mentions(), key=lambda mention: mention.start)
    known = {path for mention in mentions if len(mention.paths) == 1 for path in mention.paths}
    targets: dict[str, FileReference] = {}
    unwanted = {file.path for file in left}
    for mention in mentions[:MOST]:
        if len(mention.paths) > 1 and known & set(mention.paths):
            continue  # the message itself says which of them
        reference = finder.reference(mention)
        if reference.path in unwanted or mention.written in {file.written for file in left}:
            continue
        targets.setdefault(str(reference.path) if reference.usable else mention.written, reference)
    return (*targets.values(), *left)


def without_left_out(text: str, names: Iterable[str]) -> str:
    """`text` without the words that leave the `names` out."""
    for name in names:
        before = rf"[,，;；]?[ \t]{{0,3}}(?:but[ \t])?(?:{_SOURCES['_BUT_NOT']}|[,，、和与及]|and[ \t]|or[ \t])[ \t]*(?:the[ \t]+)?"
        after = r"[\"'`”」]?(?:[ \t]*(?:(?:sub)?folders?|director(?:y|ies)|files?)\b|[ \t]?(?:目录|文件夹|文件))?(?:里面?的?|以外|之外|的)?"
        excepted = rf"{re.escape(name)}(?:[ \t]?[、和与,，][ \t]?{_SOURCES['_NAME']}){{0,4}}{_SOURCES['_NO_MORE']}"
        pattern = rf"[,，;；]?[ \t]{{0,3}}{excepted}|{before}[\"'`“「]?{re.escape(name)}(?!\w){after}"
        text = lazy_compile(pattern, re.IGNORECASE).sub(" ", text)
    return text


def too_many(written: str, count: int) -> str:
    return f"{written!r} means {numbered(count, 'file')}, and {MOST} at once is the most"


def left_out(text: str, files: ProjectFiles) -> tuple[FileReference, ...]:
    """The files, folders and patterns such as `*.md` that `text` leaves out: "except tests", 不包括 docs 目录."""
    from navigator_kernel.language.stated import kinds_of_files

    finder = _Finder(text := text[:LIMIT], files, None)
    references: dict[str, FileReference] = {}
    for start, end, endings in kinds_of_files(text):
        as_well = any(hit.end() == start and _AS_WELL.match(text, hit.start()) for hit in _LEFT_OUT.finditer(text))
        if not as_well and (_OUT_OF.search(text[:start][-40:]) or _AFTER_NO_MORE.match(text, end)):
            places = (Path(f"*{ending}") for ending in endings)
            references |= {str(at): FileReference(written=text[start:end], path=at, left_out=True) for at in places}
    lists = [hit.end() for hit in islice(_LEFT_OUT.finditer(text), MOST) if not _AS_WELL.match(text, hit.start())]
    for at in (*lists, *(hit.start(1) for hit in islice(_EXCEPTED.finditer(text), MOST))):
        end = at
        while (listed := _LIST_OF.match(text, end)) and len(references) < MOST:
            written = listed[1].rstrip(".:")
            if not written.isascii():
                written = _AFTER_LEFT_OUT.sub("", written) or written
            pattern = _GLOB.fullmatch(written)
            paths = (written,) if pattern else finder.called(written)
            for path in paths:
                place = Path(written) if pattern else files.place(path)
                references[str(place)] = FileReference(written=written, path=place, left_out=True)
            if not paths or not listed[2]:
                break
            end = listed.end()
    return tuple(references.values())


class _Finder:
    def __init__(self, text: str, files: ProjectFiles, today: date | None) -> None:
        self.text, self.files, self.today = text, files, today
        self._taken: list[tuple[int, int]] = [hit.span() for hit in _ADDRESS.finditer(text)]
        self._exists = cache(self._place)  # the words of a long message occur again

    def mentions(self) -> Iterator[_Mention]:
        """Names first, then places, then descriptions where nothing else is named."""
        named = [
            *self._quoted(),
            *self._globs(),
            *self._listed(),
            *self._files(),
            *self._paths(),
            *self._named_folders(),
        ]
        yield from named
        places = list(self._places(only_signed=bool(named)))
        yield from places
        named += places
        if not any(not mention.is_folder for mention in named):
            called = [*self._titles()]
            yield from called or self._described()

    def reference(self, mention: _Mention) -> FileReference:
        """The file or folder itself, with its text if that is short and UTF-8."""
        if mention.too_many:
            problem = too_many(mention.written, mention.too_many)
            return FileReference(written=mention.written, path=Path(mention.written), problem=problem, refused=True)
        if not mention.paths:
            near = tuple(self._near(mention))
            problem = f"no {'folder' if mention.is_folder else 'file'} is called {mention.written!r}"
            return FileReference(written=mention.written, path=Path(mention.written), problem=problem, near=near)
        if len(mention.paths) > 1:
            return FileReference(
                written=mention.written, path=Path(mention.written), choices=mention.paths, loose=mention.loose
            )
        return located(mention.written, mention.paths[0], self.files, loose=mention.loose)

    @cached_property
    def listing(self) -> Sequence[str]:
        return [name for name in self.files.listing() if name.isprintable()]

    def _take(self, start: int, end: int) -> bool:
        """Whether the part of the text is free, which it is not any longer then; what is excluded is never free."""
        if any(begin < end and start < stop for begin, stop in self._taken) or _OUT_OF.search(self.text[:start][-40:]):
            return False
        self._taken.append((start, end))
        return True

    def _place(self, name: str) -> str:
        """What a path names: `file`, `folder`, `closed` if it may not be read, or empty."""
        try:
            return "folder" if self.files.place(name).is_dir() else "file"
        except Refused:
            return "closed"
        except (KernelError, OSError, ValueError):
            return ""

    def _quoted(self) -> Iterator[_Mention]:
        for hit in QUOTED.finditer(self.text):
            name = next(group for group in hit.groups() if group).strip()
            what = self._exists(name) if name else ""
            paths = (name,) if what else self._called(name) if "." in name else ()
            if (paths or named_files(f'"{name}"') == [name]) and self._take(*hit.span()):
                yield _Mention(name, hit.start(), paths, what == "folder")

    def _globs(self) -> Iterator[_Mention]:
        from fnmatch import fnmatchcase

        for hit in _GLOB.finditer(self.text):
            whole = hit.group() if "/" in hit.group() else f"*{hit.group()}"
            paths = [name for name in self.listing if fnmatchcase(name, whole) and not name.endswith("/")]
            if self._take(*hit.span()):
                each = len(paths) <= MOST
                yield from (_Mention(hit.group(), hit.start(), (path,)) for path in paths if each)
                if not paths or not each:
                    yield _Mention(hit.group(), hit.start(), (), too_many=len(paths))

    def _listed(self) -> Iterator[_Mention]:
        """Names with a blank or Chinese in them: only the list of the project's files shows their ends."""
        if "." not in self.text or (self.text.isascii() and " " not in self.text):
            return
        for path in sorted(self.listing, key=len, reverse=True):
            last = path.rpartition("/")[2]
            if not last or (last.isascii() and " " not in path):
                continue
            name = path if path in self.text else last
            at = self.text.find(name) if not name.isascii() or " " in name else -1
            if at >= 0 and self._take(at, at + len(name)):
                yield _Mention(name, at, (path,) if name == path else self._called(name))

    def _files(self) -> Iterator[_Mention]:
        names = (name.rpartition("=")[2] for name in named_files(self.text))  # `input=data.csv`
        for name in sorted(names, key=len, reverse=True):
            at, what = self.text.find(name), self._exists(name)
            if self._take(at, at + len(name)):
                yield _Mention(name, at, (name,) if what else self._called(name), what == "folder")

    def _paths(self) -> Iterator[_Mention]:
        """Words with a slash or a dot in them, as `.env`; what names nothing counts only below a real folder."""
        for hit in _CHUNK.finditer(self.text):
            word = hit.group().rstrip(".:~")
            dotted = _DOTTED.search(word)
            if word.lower() in _GENERAL or len(word) > LONGEST:
                continue
            if "/" not in word and not dotted:  # one whose ending says little, as `app.js`, if there is such a file
                span = hit.start(), hit.start() + len(word)
                paths = self._called(word) if "." in word and span not in self._taken else ()
                if paths and self._take(*span):
                    yield _Mention(word, hit.start(), paths)
                continue
            first = dotted.start() if dotted and "/" not in word else 0
            # Chinese may stand beside a path without a blank
            beside = [at for at, char in enumerate(word) if "\u3400" <= char <= "\u9fff"]
            ends = [len(word), *(at for at in reversed(beside) if at > first + 2)][:CUTS]
            starts = [first, *(at + 1 for at in beside if at < word.find("/"))][:CUTS]
            spans = ((start, end) for start in starts for end in ends if end > start)
            start, end, what = next(
                ((s, e, w) for s, e in spans if (w := self._exists(word[s:e]))), (first, ends[-1], "")
            )
            name = word[start:end].rstrip("/") or word[start:end]
            if what == "closed" and name.startswith("/") and not Path(name).exists():
                continue
            if not what and not self._is_folder(name.partition("/")[0]) and not _DOT_FILE.fullmatch(name):
                continue
            if name not in {"/", ".", ".."} and self._take(hit.start() + start, hit.start() + end):
                yield _Mention(
                    name, hit.start() + start, (name,) if what else (), "/" in name if not what else what != "file"
                )

    def _is_folder(self, name: str) -> bool:
        return bool(name) and self._exists(name) == "folder"

    def _named_folders(self) -> Iterator[_Mention]:
        """`the payments folder`, `folder assets`, `库存目录`. A name of nothing counts if it looks like a folder's."""
        for pattern in (_BEFORE_FOLDER, _AFTER_FOLDER, _BEFORE_MULU):
            for hit in pattern.finditer(self.text):
                group = hit.lastindex or 1
                words, begin = hit[group], hit.start(group)
                name, at, paths = self._called_folder(words, from_end=pattern is not _AFTER_FOLDER)
                if not name:
                    last = words.split()[-1 if pattern is not _AFTER_FOLDER else 0]
                    plain = last.isascii() and last.lower() not in _GENERAL and any(map(str.isalpha, last))
                    if not plain or _HAN_RUN.search(words):
                        continue
                    name, at = last, len(words) - len(last) if pattern is not _AFTER_FOLDER else 0
                if self._take(begin + at, begin + at + len(name)):
                    yield _Mention(name, begin + at, paths, is_folder=True)

    def _called_folder(self, words: str, *, from_end: bool) -> tuple[str, int, tuple[str, ...]]:
        """The longest part at the end of `words` (or all of them) that names a folder, where it begins, and the folders
        with that name."""
        cuts = [at for at in range(max(1, len(words) - LONGEST), len(words)) if _is_cut(words, at)] if from_end else []
        for start in [0, *cuts[-CUTS * 2 :]]:
            name = words[start:].strip()
            for form in (name, *(name.replace(" ", sign) for sign in "-_" if " " in name)):
                if form.lower() not in _GENERAL and (paths := self._folders_called(form)):
                    return words[start:], start, paths
        return "", 0, ()

    def _folders_called(self, name: str) -> tuple[str, ...]:
        if len(name) > LONGEST:
            return ()
        return (name,) if self._is_folder(name) else self._ending_in(name, self._folders)

    def called(self, name: str) -> tuple[str, ...]:
        """The files or folders with this name or path."""
        if name.lower() in _GENERAL or self._exists(name) == "closed":
            return ()
        return (name,) if self._exists(name) else self._folders_called(name) or self._called(name)

    def _called(self, name: str) -> tuple[str, ...]:
        """The files with this name, or with this end of a path."""
        return self._ending_in(name.removeprefix("./"), self._by_name)

    def _ending_in(self, name: str, by_last: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
        ending = f"/{fold(name)}"
        return tuple(path for path in by_last.get(ending.rpartition("/")[2], ()) if fold(f"/{path}").endswith(ending))

    @cached_property
    def _by_name(self) -> Mapping[str, Sequence[str]]:
        """The project's files by their folded names."""
        return _by_last(path for path in self.listing if not path.endswith("/"))

    @cached_property
    def _folders(self) -> Mapping[str, Sequence[str]]:
        return _by_last(path.rstrip("/") for path in self.listing if path.endswith("/"))

    def _places(self, *, only_signed: bool) -> Iterator[_Mention]:
        """Folders that are named by a word alone: `in src`, `assets 里`. Without such a sign only a folder at the top
        counts, and only if no other has a sign."""
        spans = [(hit.start(), hit.start() + len(hit.group().rstrip(".-"))) for hit in _WORD.finditer(self.text)]
        if _PLACED.search(self.text):
            positions = ((self.text.find(name), name) for name in self._folders if not name.isascii())
            spans += [(at, at + len(name)) for at, name in positions if at >= 0]
        signed: list[_Mention] = []
        bare: list[_Mention] = []
        for start, end in spans:
            word = self.text[start:end]
            if word.lower() in _GENERAL or any(begin < end and start < stop for begin, stop in self._taken):
                continue
            beside_han = not word.isascii() or _HAN_RUN.match(self.text[end:].lstrip()[:1])
            after = _PLACE_ZH.match(self.text, end) if beside_han else None
            joint = _AND.match(self.text, end)  # `docs and README.md`
            sign = bool(_INTO.search(self.text[:start][-24:])) or bool(after and after.group().strip())
            if joint is not None and (next_word := _WORD.match(self.text, joint.end())):
                is_named = any(begin == joint.end() for begin, _ in self._taken)
                sign |= is_named or self._is_folder(next_word.group().rstrip(".-"))
            paths = self._folders_called(word) if sign else (word,) if self._is_folder(word) else ()
            if not paths and _INSIDE.search(self.text[:start][-12:]) and _ENDS.match(self.text, end):
                near = get_close_matches(word, self._folders, 1, 0.85) if word.isascii() and len(word) > 3 else []
                if near and self._take(start, end):
                    yield _Mention(word, start, (), is_folder=True)
            if paths and not _OUT_OF.search(self.text[:start][-40:]):
                (signed if sign else bare).append(_Mention(word, start, paths, is_folder=True))
        yield from signed or ([] if only_signed else bare)

    def _titles(self) -> Iterator[_Mention]:
        """`the readme`, `in the handbook`, `值班手册有多少字`: files by their name without its ending."""
        lower = self.text.lower()
        for stem, words in _KNOWN.items():
            at, word = next(((at, word) for word in words if (at := lower.find(word)) >= 0), (-1, ""))
            if at >= 0 and self._stands_alone(at, at + len(word)):
                paths = tuple(path for path in self.listing if "/" not in path and fold(path).partition(".")[0] == stem)
                if paths and self._take(at, at + len(word)):
                    yield _Mention(self.text[at : at + len(word)], at, paths[:1])
        signs = [hit.span(1) for hit in _TITLED.finditer(self.text)]
        if not signs and not _HAN_RUN.search(self.text):
            return
        stems: dict[str, list[str]] = {}
        for path in self.listing:
            if not path.endswith("/"):
                stems.setdefault(fold(path.rpartition("/")[2].rpartition(".")[0]), []).append(path)
        for start, end in signs:
            if (matching := stems.get(fold(self.text[start:end]))) and self._take(start, end):
                yield _Mention(self.text[start:end], start, tuple(matching[:MOST]))
        for stem, matching in sorted(stems.items(), key=lambda item: -len(item[0])):
            at = self.text.find(stem) if len(stem) > 2 and not stem.isascii() else -1
            if at >= 0 and self._take(at, at + len(stem)):
                yield _Mention(stem, at, tuple(matching[:MOST]))

    def _described(self) -> Iterator[_Mention]:
        """`yesterday's log`, `the nightly import log`, `昨天的日志`: files by their kind and words of their paths."""
        lower = self.text.lower()
        for endings, words in _KINDS:
            for word in words:
                at = lower.find(word)
                while at >= 0 and not self._stands_alone(at, at + len(word)):
                    at = lower.find(word, at + 1)
                if at < 0:
                    continue
                if (paths := self._of_kind(endings, self.text[:at])) and self._take(at, at + len(word)):
                    yield _Mention(self.text[at : at + len(word)], at, paths, loose=True)
                    return
                break

    def _stands_alone(self, start: int, end: int) -> bool:
        around = self.text[start - 1 : start] if start else "", self.text[end : end + 1]
        return (
            not any(char.isascii() and (char.isalnum() or char in "_-./") for char in around if char)
            or not self.text[start].isascii()
        )

    def _of_kind(self, endings: tuple[str, ...], before: str) -> tuple[str, ...]:
        """The files of a kind whose paths have the words before it; by its day, if one is said."""
        from navigator_kernel.language.stated import day

        files = [path for path in self.listing if not path.endswith("/") and fold(path).endswith(endings)]
        when = day(self.text, self.today) if self.today else None
        if when is not None:
            files = [path for path in files if _is_of(path, when)] or [
                path for path in files if self._changed(path) == when
            ]
        hit = _ENGLISH_BEFORE.search(before[-80:]) or _HAN_BEFORE.search(before[-40:])
        given = [fold(word) for word in hit[1].replace("的", " ").split() if word] if hit else []
        words = [word.removesuffix("'s").removesuffix("’s") for word in given]
        if not _NEWEST.isdisjoint(words) and files:
            return (max(files, key=self._stamp),)
        telling = [word for word in words if any(_says(path, word) for path in files)]
        fitting = [path for path in files if all(_says(path, word) for word in telling)]
        if telling and fitting:
            return tuple(fitting[:MOST])
        alone = len(files) == 1 and endings != _TEXTS  # "the log" is clear where there is one; "this text" never is
        return tuple(files[:MOST]) if when is not None or alone else ()

    def _changed(self, path: str) -> date | None:
        try:
            return datetime.fromtimestamp(self.files.place(path).stat().st_mtime).astimezone().date()
        except (KernelError, OSError):
            return None

    def _stamp(self, path: str) -> tuple[str, str]:
        stamp = _DATED.search(path)
        return "".join(stamp.groups()) if stamp else "", str(self._changed(path) or "")

    def _near(self, mention: _Mention) -> Iterator[str]:
        """Names of files or folders that are like one that does not exist, at most `NEAR`."""
        kind = [name.rstrip("/") for name in self.listing if name.endswith("/") is mention.is_folder]
        last = mention.written.rpartition("/")[2]
        by_name = {name.rpartition("/")[2]: name for name in reversed(kind)}
        close = [by_name[name] for name in get_close_matches(last, by_name, NEAR, 0.6)]
        yield from dict.fromkeys([*get_close_matches(mention.written, kind, NEAR, 0.75), *close][:NEAR])


_PART = lazy_compile(r"[a-z0-9]+")
_DATED = lazy_compile(r"(?<!\d)(20\d\d)[-_.]?(0\d|1[0-2])[-_.]?([0-3]\d)(?!\d)")


def located(written: str, path: str, files: ProjectFiles, *, loose: bool = False) -> FileReference:
    """The file or folder at `path`, with its text if that can be read; its problem if it may not be used."""
    try:
        place = files.place(path)
        if place.is_dir():
            return FileReference(written=written, path=place, folder=True, loose=loose)
        content, unread = files.read(path)[1], ""
    except NotFound as error:
        return FileReference(written=written, path=Path(path), problem=error.message, hint=error.hint)
    except KernelError as error:
        if error.data.get("reason") not in UNREAD:
            return FileReference(written=written, path=Path(path), problem=error.message, hint=error.hint, refused=True)
        content, unread = "", error.message
    return FileReference(written=written, path=place, content=content, unread=unread, loose=loose)


def _by_last(paths: Iterable[str]) -> Mapping[str, Sequence[str]]:
    by_name: dict[str, list[str]] = {}
    for path in paths:
        by_name.setdefault(fold(path.rpartition("/")[2]), []).append(path)
    return by_name


def _is_cut(words: str, at: int) -> bool:
    """Whether a name may begin at `at`: not inside an English word."""
    return not (words[at].isascii() and words[at - 1].isascii()) or words[at - 1].isspace()


def _says(path: str, word: str) -> bool:
    """Whether the path has the word; a short one, such as "in", only as a part between signs."""
    name = fold(path)
    return word in (name if len(word) > 3 or not word.isascii() else _PART.findall(name))


def _is_of(path: str, when: date) -> bool:
    """Whether the path has the date of the day."""
    return any("".join(hit.groups()) == f"{when:%Y%m%d}" for hit in _DATED.finditer(path))

"""Extracts a skill's parameters from a message; what cannot be inferred is reported as missing (X-10, SEN-2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from navigator_kernel.language.clauses import is_long
from navigator_kernel.language.sources import SOURCES
from navigator_kernel.language.targets import without_left_out
from navigator_kernel.text import STOP, fold, lazy_compile
from navigator_kernel.values.request import CONTINUES, FileReference, PreprocessingResult
from navigator_kernel.values.resource import PATHS, STATED, ParamSpec

if TYPE_CHECKING:
    from navigator_kernel.language.stated import Limit

_PAIR = lazy_compile(r"(?:--)?([A-Za-z_][\w-]*)=(.*)", re.DOTALL)
_FLAG = lazy_compile(r"--([A-Za-z][\w-]*)")
_URL = lazy_compile(r"https?://[^\s<>\"'，。）)]+[^\s<>\"'，。）).,;:!?]")
_EMAIL = lazy_compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.-]*\w")
_QUOTED = lazy_compile(r"\"([^\"]+)\"|'([^']+)'|“([^”“]+)”|「([^」「]+)」|`([^`]+)`")
# Words that refer to the output of the step before, and are not values themselves
_REFERS = lazy_compile(
    r"(?:(?:on|to|of|with|from|for|into|in)\s+)?(?:it|them|this|that|these|those|(?:the|its|their|that|this|these|those)\s+"
    r"(?:results?|outputs?|reports?|files?|tables?|texts?|lists?|data|summar(?:y|ies)))"
    r"|(?:把|对)?(?:它们?|其|(?:这个|这些|该|上一步的?|其|得到的|刚才的)?(?:结果|输出|报告|文件|表格|数据|内容))",
    re.IGNORECASE,
)
_OF_ALL = lazy_compile(
    r"\b(?:overall|altogether|in total|all[ -]time|ever|everything|everywhere|(?:whole|entire) (?:project|history))\b"
    r"|总共|总的|一共|全部|所有|整个|从头到尾",
    re.IGNORECASE,
)
# Values of these kinds replace each other in a message that continues the run before
_GROUPS = {
    "since": "period",
    "until": "period",
    "columns": "columns",
    "mentioned": "columns",
    "choice": "choice",
    "group": "by",
}
# Values of a table that a message may have without meaning them
_ORDINARY = frozenset(
    """all any csv data date day file first last list month name new none number only other report row rows column
    columns summary table text the type value week year yes count sheet record records line lines 数据 日期 文件
    表格 名称 类型 数量 金额 其他 全部 所有 没有 多少 时间 记录""".split()
)
_NAME = lazy_compile(r"[a-z][\w.-]*|[\u3400-\u9fff]{2,4}(?=呢|$)")
_CLAUSE = lazy_compile(r"[,;，；。?？]")
FIGURE = lazy_compile(
    r"\b(?:how (?:much|many)|what(?:'s| is| was| are)|which|total|sum|average|mean|number|amount|compar\w*|versus|vs"
    r"|most|highest|lowest)\b"
    r"|多少|几|合计|平均|总|最[高低多少大小]|对比|比较",
    re.IGNORECASE,
)
_OF_TABLE = frozenset({"columns", "mentioned", "sort", "where"})  # kinds of values that name parts of a table
_CONDITION = lazy_compile(r"([^<>=!]*)[<>=!]=?(.*)")
_KEY = lazy_compile(r"\"([^\"\\\n]{1,100})\"\s*:")
_VALUE = lazy_compile(r":\s*\"([^\"\\\n]{1,40})\"")
_APART = lazy_compile(r"[\n\r,;\t|\"]+")
# Words without which a message sets no limit, but for names of columns and values
_LIMITING = lazy_compile(SOURCES["stated"]["_LIMITING"], re.IGNORECASE)
# Groups that are meant as such even if nothing has them
_EXPLICIT = lazy_compile(
    r"group|broken|split|分组|(?:by|per) (?:hour|day|week|month|quarter|year)|[按每].*(?:小时|[天日周月年]|季度)"
)
_JSON = {".json", ".jsonl", ".ndjson"}
_TABLES = {".csv", ".tsv", *_JSON}
# A short message that leaves out a value of the table before, or puts one in the place of another
_OTHER_LIMIT = lazy_compile(
    r"(?:(?:and|but|now|also)\s+)*(?:without|except(?:\s+for)?|excluding|leaving\s+out|minus)\s+(?:the\s+)?(?P<without>\S.{0,60})"
    r"|(?:但|那|再)?(?:不含|不包括|除去|除开|排除|去掉|不要)\s?(?P<zh>\S.{0,20})"
    r"|(?:no|nope|wrong|sorry|不|不是|不对|错了)\s?[,，.。!:：-]\s?(?:i\smeant?|it['’]?s|only|just|for|in|我说的是|要的?是|是|看)?\s?"
    r"(?:the\s)?(?P<other>\S.{0,40})",
    re.IGNORECASE,
)
MOST_CHOICES = 9  # files of a folder in one question
_HEAD = 64 * 1024  # bytes of a file in which the names of its columns are looked for
_CELLS = 2**20  # bytes in which its values are looked for
MOST_OF_CELL = 40  # characters of a value that a message may name
_AFTER_COLON = lazy_compile(
    r"(?P<points>\b(?:of|in|on|from|this|these|below|following|text|sentence)|(?:这[段句篇]|以下|下面)[^\s：:]{0,4})?"
    r"(?:(?<!\d):|:(?!\d)|：)\s*(?P<text>\S.*)$",
    re.DOTALL | re.IGNORECASE,
)


class Parameters(Struct, frozen=True, kw_only=True):
    """`values` by name, `positional` the remaining arguments, `missing` the required ones without a usable value.

    `problem` is a file or folder that the message names and that cannot be used, `unclear` one that may be several.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    positional: tuple[str, ...] = ()
    missing: tuple[ParamSpec, ...] = ()
    problem: FileReference | None = None
    unclear: FileReference | None = None


def parameters(
    specs: Sequence[ParamSpec], arguments: Sequence[str], request: PreprocessingResult, *, named: bool
) -> Parameters:
    """The parameters of a skill. `named` says that the arguments were written for it, so that the remaining words are
    its text."""
    values, positional = _written(specs, arguments)
    if request.handed is not None and _REFERS.fullmatch(" ".join(positional)):
        positional.clear()
    files = [file for file in request.files if file.usable]
    targets = [_chosen(target, request.answer) for target in _files_of_folders(specs, meant(request, specs))]
    unused = [*files, *(target for target in targets if target.usable)]
    for spec in sorted(specs, key=lambda spec: spec.validation not in PATHS):
        if spec.name not in values:
            if spec.validation in PATHS:
                value = _path(spec, positional, unused, request)
            else:
                value = _inferred(spec, positional, files, request, values, specs, named=named)
            if value is not None:
                values[spec.name] = value
    for name in [spec.name for spec in specs if spec.validation in PATHS and spec.name in values]:
        value, known = values[name], [*files, *targets]
        given = next((file for file in known if value in {file.written, str(file.path)}), None)
        values[name] = str(given.path if given else (request.base / value).resolve())
    values |= _continued(specs, values, request)
    values |= _answered(specs, values, request.answer) if request.answer.strip() else {}
    replaced = {spec.instead_of for spec in specs if spec.name in values}
    missing = tuple(
        spec
        for spec in specs
        if spec.required and spec.default is None and spec.name not in replaced
        if not fits(spec, values.get(spec.name))
    )
    defaults = {s.name: s.default for s in specs if s.default is not None and s.name not in values}
    return Parameters(
        values={**defaults, **values},
        positional=tuple(positional),
        missing=missing,
        problem=_problem(specs, values, missing, [*files, *targets], request),
        unclear=next((target for target in targets if target.choices and wants_path(specs)), None),
    )


def names_value(text: str, before: Mapping[str, str]) -> bool:
    """Whether a short text leaves out or corrects a value of the table that is among the last run's values `before`:
    `without Oslo`, `no, Oslo`. `No, thanks` and `without me` name none."""
    hit = _OTHER_LIMIT.fullmatch(text.strip(" \t.!?。！？"))
    if hit is None:
        return False
    tables = [path for path in map(Path, before.values()) if path.suffix.lower() in _TABLES]
    values = {fold(value) for table in tables for value in (*header(table), *_cells(table))} - _ORDINARY
    named = fold(next(filter(None, hit.groups())))
    return not values.isdisjoint((named, *named.split("-"))) or any(
        not value.isascii() and named.startswith(value) for value in values
    )


def wants_path(specs: Sequence[ParamSpec]) -> bool:
    """Whether a skill works on a file or folder that the person names."""
    return any(spec.validation in PATHS for spec in specs)


def meant(request: PreprocessingResult, specs: Sequence[ParamSpec] = ()) -> Sequence[FileReference]:
    """What the message names in plain words, but not inside a text that it gives. `*.py` is not a file for a skill with
    a parameter for endings."""
    text = given_text(request.need).strip()
    takes_endings = any(spec.validation == "endings" for spec in specs)
    return [
        target
        for target in request.targets
        if not text or target.written == text or not (target.loose or target.written in text)
        if not (takes_endings and target.written.startswith("*."))
    ]


def _files_of_folders(specs: Sequence[ParamSpec], targets: Sequence[FileReference]) -> Sequence[FileReference]:
    """For a skill that works on a file and on no folder: the files of a named folder in place of the folder."""
    kinds = {spec.validation for spec in specs if spec.validation in PATHS}
    if kinds != {"file_exists"} or any(target.usable and not target.folder for target in targets):
        return targets
    return [_files_of(target) if target.folder and target.usable else target for target in targets]


def _files_of(folder: FileReference) -> FileReference:
    """The only file of the folder, a choice of several, or the folder. A link is never meant: it may lead out of the
    project."""
    try:
        files = [path for path in sorted(folder.path.iterdir()) if path.is_file() and not path.is_symlink()]
    except OSError:
        files = []
    files = [path for path in files if not path.name.startswith(".")]
    written = folder.written.rstrip("/")
    inside = written if f"/{folder.path}".endswith(f"/{written}") else folder.path.name
    paths = [f"{inside}/{path.name}" for path in files[:MOST_CHOICES]]
    if len(paths) == 1:
        return replace(folder, path=files[0], written=paths[0], folder=False, loose=False)
    return replace(folder, written=f"{inside}/…", choices=tuple(paths), loose=False) if paths else folder


def _chosen(target: FileReference, answer: str) -> FileReference:
    """The one of several files that the answer to the question means, by its number or its path."""
    choice = answer.strip().rstrip(".。")
    at = int(choice) - 1 if choice.isdecimal() else -1
    path = target.choices[at] if 0 <= at < len(target.choices) else choice if choice in target.choices else ""
    place = target.path / Path(path).name if target.folder else Path(path)
    return replace(target, path=place, choices=(), written=path, folder=False) if path else target


def _path(
    spec: ParamSpec, positional: list[str], unused: list[FileReference], request: PreprocessingResult
) -> str | None:
    """The path that a parameter gets: an argument, what the message names, or a file of the step before."""

    only_folders = spec.validation == "folder_exists"
    is_text = spec.instead_of and len(positional) > 1  # then a word such as "docs" is one of the text

    def fit(word: str) -> bool:
        path = request.base / word
        return is_file(path) or (spec.validation != "file_exists" and is_there(path) and ("/" in word or not is_text))

    if (
        word := _taken(positional, lambda word: fit(word) and not (only_folders and is_file(request.base / word)))
    ) is not None:
        return word
    needed = spec.required or spec.instead_of
    for file in unused:
        kind = file.folder == (spec.validation == "folder_exists") or spec.validation == "path_exists"
        if kind and (needed or not file.loose):
            unused.remove(file)
            return str(file.path)
    handed = request.handed.files if request.handed and spec.validation == "file_exists" and needed else ()
    return next((str(file.path) for file in handed), None)


def _problem(
    specs: Sequence[ParamSpec],
    values: Mapping[str, str],
    missing: Sequence[ParamSpec],
    named: Sequence[FileReference],
    request: PreprocessingResult,
) -> FileReference | None:
    """What the message names and the skill cannot work on, or a limit that the skill does not take, so that it never
    works on something else or on everything instead."""
    paths = [spec for spec in specs if spec.validation in PATHS]
    places = [Path(values[spec.name]) for spec in paths if spec.name in values]
    takes_all = any(spec.validation == "without" for spec in specs) or not paths
    for file in () if takes_all else request.without:
        if not places or any(place == file.path or place in file.path.parents for place in places if place.is_dir()):
            return replace(file, problem=f"this skill cannot leave out {file.written!r}", refused=True)
    absent = next((file for file in named if file.problem and not file.loose), None)
    if absent is not None and (paths or missing):
        return absent
    wants_text = any(spec.validation == "not_empty" for spec in missing)
    if wants_text and (unread := next((file for file in named if file.unread), None)) is not None:
        return replace(unread, problem=unread.unread, refused=True)
    if paths and not any(spec.name in values for spec in paths) and not missing:
        other = next((file for file in named if file.usable and not file.loose), None)
        if other is not None and all(spec.validation != "path_exists" for spec in paths):
            kind = "a folder" if other.folder else "a file"
            return replace(other, problem=f"{other.written!r} is {kind}", refused=True)
    if (
        missing
        or is_long(request.need)
        or not (_LIMITING.search(request.need) or any(spec.validation == "columns" for spec in specs))
    ):
        return None
    return _not_taken(specs, values, request)


def _not_taken(
    specs: Sequence[ParamSpec], values: Mapping[str, str], request: PreprocessingResult
) -> FileReference | None:
    """The first limit of the message that the skill does not take."""
    from navigator_kernel.language import stated

    reads = [spec for spec in specs if spec.validation in STATED - {"without", "where", "group", "sort", "person"}]
    table, takes_person = _table(specs, values, request), any(spec.validation == "person" for spec in specs)
    for limit in _limits(specs, values, request)[0]:
        may_be_none = limit.kind == "group" or (limit.kind == "person" and not takes_person)  # "written by Ann"
        if may_be_none and limit.value not in table[0] and not _EXPLICIT.search(limit.words):
            continue
        inside = replace(request, need=limit.words)
        taken = any(stated.taken(limit, spec) for spec in specs) or (limit.kind == "only" and "columns" in values)
        if not taken and (limit.kind == "time" or not any(_stated(spec, inside, values, specs) for spec in reads)):
            near = stated.near(limit, specs, table)
            problem = f"this skill cannot limit or order its answer by {limit.words!r}"
            return FileReference(written=limit.words, path=Path(limit.words), problem=problem, near=near, refused=True)
    return None


def _continued(specs: Sequence[ParamSpec], values: Mapping[str, str], request: PreprocessingResult) -> dict[str, str]:
    """The last run's values that the message does not replace: a path or text replaces both, a time both its ends, a
    condition those of its column, and "overall" what limits the work. Another table must have the columns."""
    before, changed = request.before, {_group(spec) for spec in specs if spec.name in values}
    same = {spec.name: before[spec.name] for spec in specs if spec.name in before and _group(spec) not in changed}
    for spec in specs:
        if spec.validation == "where" and {spec.name} <= values.keys() & before.keys():
            columns = {_condition(each)[0] for each in values[spec.name].split("\n")}
            earlier = [each for each in before[spec.name].split("\n") if _condition(each)[0] not in columns]
            same |= {spec.name: "\n".join([*earlier, values[spec.name]])}
    if same and _OF_ALL.search(request.need):
        wide = {spec.name for spec in specs if spec.required or _group(spec) in {"columns", "choice", "by"}}
        return {name: value for name, value in same.items() if name in wide}
    return same if not same or "subject" not in changed or _has_columns(specs, values, same) else {}


def _group(spec: ParamSpec) -> str:
    """What a value says of the work: a value of the same group replaces it."""
    if spec.validation in {*PATHS, "endings"} or (spec.required and spec.validation == "not_empty"):
        return "subject"
    return _GROUPS.get(spec.validation, spec.name)


def _has_columns(specs: Sequence[ParamSpec], values: Mapping[str, str], same: Mapping[str, str]) -> bool:
    """Whether the table that is worked on now has all that the values `same` name; so has what is not a table."""
    path = next((values[spec.name] for spec in specs if spec.validation == "file_exists" and spec.name in values), "")
    if not path or not any(spec.validation == "columns" for spec in specs):
        return True
    parts = {spec.validation: same.get(spec.name, "") for spec in specs if spec.validation in _OF_TABLE}
    columns = [*parts["columns"].split(","), *parts.get("mentioned", "").split(",")]
    columns.append(parts.get("sort", "").removesuffix(" desc"))
    cells = [column or value for column, value in map(_condition, parts.get("where", "").split("\n"))]
    known = {"", "rows", *map(fold, header(Path(path))), *map(fold, _cells(Path(path)))}
    return all(fold(name) in known for name in (*columns, *cells))


def _condition(written: str) -> tuple[str, str]:
    """The column, empty if none is said, and the value of `port=Oslo`, `Oslo` or `!=Oslo`."""
    hit = _CONDITION.fullmatch(written)
    return (hit[1], hit[2]) if hit else ("", written)


def is_file(path: Path) -> bool:
    """Whether the text is the path of a file."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_there(path: Path, *, only_folders: bool = False) -> bool:
    """Whether the text is the path of a file or folder."""
    try:
        return path.is_dir() or (not only_folders and path.is_file())
    except (OSError, ValueError):
        return False


def fits(spec: ParamSpec, value: str | None) -> bool:
    """Whether `value` passes the declared validation (part 3, item 2)."""
    if value is None or not value.strip():
        return spec.validation == "none" and value is not None
    match spec.validation:
        case "url_format":
            return _URL.fullmatch(value) is not None
        case "email":
            return _EMAIL.fullmatch(value) is not None
        case "file_exists":
            return is_file(Path(value))
        case "folder_exists" | "path_exists":
            return is_there(Path(value), only_folders=spec.validation == "folder_exists")
        case "number":
            return value.isdecimal()
        case _:
            return True


def _written(specs: Sequence[ParamSpec], arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """`name=value`, `--name value` and `--name=value` for declared names; the rest is positional."""
    known = {spec.name.replace("-", "_"): spec.name for spec in specs}
    values: dict[str, str] = {}
    positional: list[str] = []
    waiting: str | None = None
    for word in arguments:
        pair, flag = _PAIR.fullmatch(word), _FLAG.fullmatch(word)
        if waiting is not None:
            values[waiting], waiting = word, None
        elif pair and (name := known.get(pair.group(1).replace("-", "_"))):
            values[name] = pair.group(2)
        elif flag and (name := known.get(flag.group(1).replace("-", "_"))):
            waiting = name
        else:
            positional.append(word)
    return values, positional


def _inferred(
    spec: ParamSpec,
    positional: list[str],
    files: list[FileReference],
    request: PreprocessingResult,
    values: Mapping[str, str],
    specs: Sequence[ParamSpec],
    *,
    named: bool,
) -> str | None:
    text = " ".join([*positional, request.need])
    match spec.validation:
        case "url_format":
            return _taken(positional, lambda word: bool(_URL.fullmatch(word))) or _first(_URL, text)
        case "email":
            return _taken(positional, lambda word: bool(_EMAIL.fullmatch(word))) or _first(_EMAIL, text)
        case "without":
            return "\n".join(str(file.path) for file in request.without) or None
        case _ if spec.validation in STATED:
            return _stated(spec, request, values, specs)
        case _ if any(other.instead_of == spec.name and other.name in values for other in specs):
            return None
        case _:
            return _as_text(spec, positional, files, request, named=named)


def _stated(
    spec: ParamSpec, request: PreprocessingResult, values: Mapping[str, str], specs: Sequence[ParamSpec]
) -> str | None:
    """A time, a number or the columns that the message asks for, outside the names of its files."""
    from navigator_kernel.language import stated

    text, is_follow_up = _said(request), request.way in CONTINUES
    match spec.validation:
        case "since" | "until":
            text = stated.without_names(text, [name for names in _table(specs, values, request) for name in names])
            # "between 5 and 9" of a column is not a time
            for limit in _limits(specs, values, request)[0] if any(map(str.isdigit, text)) else ():
                of_column = limit.kind == "where" and limit.words[-1:].isdigit()
                at = text.casefold().find(limit.words.casefold()) if of_column else -1
                text = f"{text[:at]} {text[at + len(limit.words) :]}" if at >= 0 else text
            since, until = stated.period(text, date.fromisoformat(request.today)) if request.today else ("", "")
            return (since if spec.validation == "since" else until) or None
        case "number":
            return stated.number(text) or None
        case "word":
            return stated.word(text) or None
        case "endings":
            one_file = any(
                is_file(request.base / values[spec.name])
                for spec in specs
                if spec.validation in PATHS and spec.name in values
            )
            wanted = without_left_out(text, (file.written for file in request.without))
            return None if one_file or given_text(request.need) else ",".join(stated.endings(wanted)) or None
        case "choice":
            return ",".join(stated.chosen(text, spec.choices)) or None
        case "mentioned":
            return ",".join(dict.fromkeys(_limits(specs, values, request)[1])) or None
        case "columns":
            names, cells = _table(specs, values, request)
            limits, mentioned = _limits(specs, values, request)
            of_groups = dict.fromkeys(mentioned) if any(limit.kind == "group" for limit in limits) else ()
            columns = [name for name in stated.columns(text, names) if name in names or name not in cells]
            return ",".join(columns or of_groups) or None
        case _ if not (is_follow_up or _LIMITING.search(text) or any(spec.validation == "columns" for spec in specs)):
            return None
        case _:
            limits, _ = _limits(specs, values, request)
            taken = dict.fromkeys(filter(None, (stated.taken(limit, spec) for limit in limits)))
            return ("\n".join(taken) or None) if spec.validation == "where" else next(iter(taken), None)


def _said(request: PreprocessingResult) -> str:
    """The message with a mark, over which no pattern of a limit reaches, for each name of a file."""
    text = request.need
    for file in (*request.files, *request.targets):
        text = text if file.loose or file.written.startswith("*.") else text.replace(file.written, " \ue003 ")
    return text


def _limits(
    specs: Sequence[ParamSpec], values: Mapping[str, str], request: PreprocessingResult
) -> tuple[Sequence[Limit], Sequence[str]]:
    """The limits that the message sets, and the columns that it names beside them; none inside a text that it gives."""
    from navigator_kernel.language import stated

    text = _said(request)
    if given_text(request.need) or not any(spec.validation in STATED for spec in specs):
        return (), ()
    names, cells = _table(specs, values, request)
    words = {word for spec in specs if spec.choices for each in stated.choices(spec.choices).values() for word in each}
    cells = [cell for cell in cells if fold(cell) not in words]
    values_meant = [cell for cell in cells if _is_meant(cell, request)]
    limits, mentioned = stated.limits(text, names, cells, request.people, meant=values_meant)
    if request.way in CONTINUES:  # "and Ann?", "only by Ann" after the commits of somebody else
        words = set(_NAME.findall(request.need.casefold()))
        people = [name for name in request.people if words & {*name.casefold().split()}]
        if all(limit.kind in {"only", "group"} and fold(limit.value) in fold(" ".join(people)) for limit in limits):
            limits = [stated.Limit("person", name, name) for name in people]
    return limits, mentioned


def _is_meant(cell: str, request: PreprocessingResult) -> bool:
    """Whether a message that has the words of a value of the table surely means it: as a name in a clause that asks for
    a figure, or because it continues the run before."""
    if fold(cell) in _ORDINARY or request.way in CONTINUES:
        return fold(cell) not in _ORDINARY
    asking = (clause for clause in _CLAUSE.split(request.need) if FIGURE.search(clause))
    return not cell[0].islower() and any(cell in clause for clause in asking)


def _table(
    specs: Sequence[ParamSpec], values: Mapping[str, str], request: PreprocessingResult
) -> tuple[Sequence[str], Sequence[str]]:
    """The names of the columns of the skill's file, and those of its values that the message names."""
    given = {**request.before, **values}
    paths = (given[spec.name] for spec in specs if spec.validation == "file_exists" and spec.name in given)
    if not any(spec.validation == "columns" for spec in specs) or not (path := next(paths, "")):
        return (), ()
    said = fold(request.need)
    return header(Path(path)), [cell for cell in _cells(Path(path)) if fold(cell) in said]


def _cells(path: Path) -> Sequence[str]:
    """The values of a table that are words."""
    text = _beginning(path, _CELLS)
    cells = _VALUE.findall(text) if path.suffix.lower() in _JSON else _APART.split(text.partition("\n")[2])
    words = dict.fromkeys(cell.strip() for cell in cells)
    return [
        cell for cell in words if 1 < len(cell) <= MOST_OF_CELL and not cell[0].isdigit() and cell.lower() not in STOP
    ]


def _beginning(path: Path, size: int) -> str:
    try:
        with path.open("rb") as file:
            return decoded(file.read(size))
    except OSError:
        return ""


def header(path: Path) -> tuple[str, ...]:
    """The names of the columns of a table: the first line of a CSV file, the keys of the first records of JSON."""
    text = _beginning(path, _HEAD)
    if path.suffix.lower() in _JSON:
        return tuple(dict.fromkeys(_KEY.findall(text)))
    first = text.lstrip("\ufeff").split("\n", 1)[0].strip()
    return tuple(cell.strip().strip('"') for cell in first.split(max(",;\t|", key=first.count)))


def decoded(data: bytes) -> str:
    """The text of the first bytes of a file in UTF-8, or UTF-16 with its mark, else in GB18030."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data[: len(data) & ~1].decode("utf-16", "replace")
    try:
        return data[: data.rfind(b"\n") + 1 or None].decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("gb18030", "replace")


def _as_text(
    spec: ParamSpec, positional: list[str], files: list[FileReference], request: PreprocessingResult, *, named: bool
) -> str | None:
    if not spec.required:
        return None
    if files:
        return files[0].content or None
    if named and positional:
        words, positional[:] = " ".join(positional), []
        return "\n".join(part for part in (words, request.cleaned_content if request.commands else "") if part)
    if request.commands and request.need:
        return request.cleaned_content
    if target := next((file for file in meant(request) if file.usable and not file.folder and file.content), None):
        return target.content
    if text := given_text(request.need):
        return text
    return request.handed.subject or None if request.handed else None


def given_text(need: str) -> str:
    """The text that a message gives in quotes or after a colon. Quotes after a colon that points to them are its."""
    quoted, after = _QUOTED.search(need), _AFTER_COLON.search(need)
    if quoted and not (after and after["points"] and after.start("text") < quoted.start()):
        return next(group for group in quoted.groups() if group)
    return after["text"] if after else ""


def _answered(specs: Sequence[ParamSpec], values: Mapping[str, str], answer: str) -> dict[str, str]:
    """The values of an answer, by name, or the whole answer for one missing value (X-11)."""
    open_specs = [
        spec for spec in specs if spec.required and spec.default is None and not fits(spec, values.get(spec.name))
    ]
    if not open_specs:
        return {}
    names = "|".join(re.escape(spec.name) for spec in specs)
    apart = lazy_compile(rf"[\n;；]\s*+|(?<![\s,，])[\s,，]++(?=(?:{names})=)")
    named, _ = _written(open_specs, apart.split(answer.strip()))
    unnamed = [spec for spec in open_specs if spec.name not in named]
    return {**named, unnamed[0].name: answer.strip()} if len(unnamed) == 1 and not named else named


def _taken(positional: list[str], fits: Callable[[str], bool]) -> str | None:
    for word in positional:
        if fits(word):
            positional.remove(word)
            return word
    return None


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    hit = pattern.search(text)
    return hit.group() if hit else None

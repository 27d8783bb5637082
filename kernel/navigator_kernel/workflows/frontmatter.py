"""Reads the frontmatter of a workflow file, and reports each problem with its line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, TypeVar, get_args

from msgspec import Struct, field

from navigator_kernel.adapters.files.autoload import is_autoloaded
from navigator_kernel.text import lazy_compile
from navigator_kernel.values.workflow import Location, Output, OutputFormat, Sandboxed

T = TypeVar("T")

_LOCATIONS: Mapping[str, Location] = {word: word for word in get_args(Location)}
_FORMATS: Mapping[str, OutputFormat] = {word: word for word in get_args(OutputFormat)}
_REQUIRED = ("name", "version", "description", "depends_on")
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})
_TABLES = ("sandbox", "sandbox.file_access", "output")
DEPTH = 8  # levels of nesting to read
_VERSION = lazy_compile(r"\d{1,6}(?:\.\d{1,6}){0,2}(?:[-+][\w.-]{1,40})?")
_APART = lazy_compile(r"[,，、\s]+")


class Head(Struct):
    """`end` is the index of the first line below; `lines` has the line of each key, with dots in nested ones."""

    end: int = 0
    lines: dict[str, int] = field(default_factory=dict)
    name: str = ""
    version: str = "1.0.0"
    description: str = ""
    depends_on: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    timeout: float = 0.0
    sandbox: Sandboxed = field(default_factory=Sandboxed)
    output: Output = field(default_factory=Output)

    def line(self, key: str) -> int:
        return self.lines.get(key, 1)


def read_head(lines: Sequence[str], problems: list[tuple[int, str]]) -> Head:
    """Parses the text between the first two `---`; adds problems as (line, message)."""
    head = Head()
    ends = [at for at, line in enumerate(lines) if line.rstrip() == "---"][:2]
    if len(ends) < 2 or ends[0] != 0:
        problems.append((1, "the file begins with no frontmatter between two lines '---'"))
        return head
    head.end = ends[1] + 1
    values = _values("\n".join(lines[1 : ends[1]]), head, problems)
    if values is None:
        return head
    problems += [(head.line(key), f"{key!r} is a table of keys") for key in _TABLES if key in values]
    problems += [(1, f"{key!r} is missing") for key in _REQUIRED if key not in values]
    _fill(head, values, problems)
    return head


def _values(source: str, head: Head, problems: list[tuple[int, str]]) -> dict[str, Any] | None:
    """Dotted key → string or list of strings, or None with a problem added."""
    import yaml

    depth = 0
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        for event in yaml.parse(source, Loader=loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent) or depth > DEPTH:
                line = 2 if event.start_mark is None else event.start_mark.line + 2
                problems.append((line, "anchors and aliases are not read, nor deep nesting"))
                return None
        node = yaml.compose(source, Loader=loader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        problems.append((2 if mark is None else mark.line + 2, f"not YAML: {getattr(error, 'problem', '') or error}"))
        return None
    found: dict[str, Any] = {}
    _collect(node, "", found, head, problems)
    return found


def _collect(node: Any, prefix: str, found: dict[str, Any], head: Head, problems: list[tuple[int, str]]) -> None:
    if node is None or node.id != "mapping":
        problems.append((2, "the frontmatter is not a mapping of keys to values"))
        return
    for key, value in node.value:
        name, line = f"{prefix}{key.value}", key.start_mark.line + 2
        if name in head.lines:
            problems.append((line, f"a second {name!r}"))
        head.lines[name] = line
        if value.id == "mapping":
            _collect(value, f"{name}.", found, head, problems)
        elif value.id == "sequence":
            found[name] = [item.value if item.id == "scalar" else None for item in value.value]
        else:
            found[name] = str(value.value)


def _fill(head: Head, values: Mapping[str, Any], problems: list[tuple[int, str]]) -> None:
    def take(key: str, read: Callable[[Any], T], otherwise: T, wanted: str) -> T:
        if key not in values:
            return otherwise
        try:
            return read(values[key])
        except (ValueError, KeyError, TypeError):
            problems.append((head.line(key), f"{key!r} is {wanted}"))
            return otherwise

    head.name = take("name", _text, "", "one line of text")
    head.version = take("version", _version, "1.0.0", "a version such as 1.0.0")
    head.description = take("description", _text, "", "one line of text")
    head.depends_on = take("depends_on", _words, (), "a list of skills")
    head.tags = take("tags", _words, (), "a list of words")
    head.timeout = take("timeout_seconds", _seconds, 0.0, "a number of seconds, 0 to 86400")
    take("sequential", _only_true, "", "true: steps run one after another (WFL-7)")
    take("stop_on_error", _only_true, "", "true: a step that fails stops the run (WFL-8)")
    inside = "a list of paths inside the project"
    head.sandbox = Sandboxed(
        read=take("sandbox.file_access.read", _paths, (), inside),
        write=take("sandbox.file_access.write", _box, ("mybox/workspace",), "a list of paths below mybox/workspace"),
        forbidden=take("sandbox.file_access.forbidden", _paths, (), inside),
    )
    take("sandbox.network", _only_false, "", "false: the network is granted by policy, not by a file")
    head.output = Output(
        location=take("output.location", _LOCATIONS.__getitem__, "inline", f"one of: {', '.join(_LOCATIONS)}"),
        format=take("output.format", _FORMATS.__getitem__, "markdown", f"one of: {', '.join(_FORMATS)}"),
        file_path=take("output.file_path", _file, "", "a path inside the run's workspace that no program obeys"),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or "\n" in value.strip():
        raise ValueError
    return value.strip()


def _version(value: Any) -> str:
    if not _VERSION.fullmatch(_text(value)):
        raise ValueError
    return _text(value)


def _words(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [word for word in _APART.split(value) if word]
    if None in value:
        raise ValueError
    return tuple(str(item).strip() for item in value)


def _seconds(value: Any) -> float:
    number = float(value)
    if not 0 <= number <= 86_400:
        raise ValueError
    return number


def _only_true(value: Any) -> str:
    if str(value).lower() not in _TRUE:
        raise ValueError
    return "true"


def _only_false(value: Any) -> str:
    if str(value).lower() not in _FALSE:
        raise ValueError
    return "false"


def _paths(value: Any) -> tuple[str, ...]:
    return tuple(_inside(item) for item in _words(value))


def _box(value: Any) -> tuple[str, ...]:
    found = _paths(value)
    if any(PurePosixPath(path).parts[:2] != ("mybox", "workspace") for path in found):
        raise ValueError
    return found


def _file(value: Any) -> str:
    path = "" if value == "" else _inside(value)
    if any(map(is_autoloaded, path.split("/"))):  # a program of the person would run or obey it
        raise ValueError
    return path


def _inside(value: str) -> str:
    path = PurePosixPath(value)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\x00" in value:
        raise ValueError
    return path.as_posix()

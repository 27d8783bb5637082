"""Splits a resource file into metadata and text, and reads the metadata as YAML within limits; common mistakes are
tolerated (FMT-1, FMT-6, X-2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from navigator_kernel.errors import NotLoadable
from navigator_kernel.text import lazy_compile
from navigator_kernel.values.resource import Diagnostic

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FILE_LIMIT = 1024 * 1024  # bytes
METADATA_LIMIT = 64 * 1024  # characters

_KEY_LINE = lazy_compile(r"^([A-Za-z_][\w .-]{0,63}?)\s*[:：]\s*(.*)$")
_FENCE = lazy_compile(r"---[ \t]*")
_ENDS = {"---", "..."}
_END = lazy_compile(r"(?:-{3,}|\.\.\.)[ \t]*")
_HIDDEN = lazy_compile("[\u200b\u202a-\u202e\u2060\u2066-\u2069\ufeff\U000e0000-\U000e007f]")
_REFERENCE = lazy_compile(r"[&*][\w-]+(?:[ \t]|$)|!")
_PAIR = lazy_compile(r"([ ]*(?:- )?[A-Za-z_][\w .-]{0,63}?:[ \t]+)(\S.*)")
_WHOLE = lazy_compile(r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[|>][-+0-9]{0,2}|\[.*\]|\{.*\})[ \t]*(?:[ \t]#.*)?""")
_COMMENT = lazy_compile(r"#+ ")
_TABBED = lazy_compile(r"(?m)^[ \t]*\t[ \t]*")
_PROSE = lazy_compile(  # a description such as `!important rules`, `&amp entities`, `{{name}} filler`
    r"(?m)^((?:description|when[_-]to[_-]use):[ \t]{1,9})"
    r"((?:![A-Za-z][\w'-]{0,60}|&[\w-]{1,60}|\{\{[^{}\n]{1,60}\}\})[ \t]{1,9}[^\W_][^\n]{1,2000})$"
)
_COLON = lazy_compile(r":(?:[ \t]|$)")
_BLOCK = lazy_compile(r"[|>][-+0-9]{0,2}")


class Parts(Struct):
    """`form` is how the metadata was written: `frontmatter`, `block` (FMT-1) or `none`.

    `lines` has the line of each top-level key, `plain` the text and line of each value without quotes, by its keys
    joined with dots. `source` is the YAML that was read, empty if there was none.
    """

    form: str
    meta: dict[str, Any]
    body: str
    title: str = ""
    diagnostics: list[Diagnostic] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)
    plain: dict[str, tuple[str, int]] = field(default_factory=dict)
    source: str = ""

    def note(self, code: str, message: str, path: str, line: int | None = None) -> None:
        self.diagnostics.append(Diagnostic(code=code, level="warning", path=path, message=message, line=line))


def split(data: bytes, path: str) -> Parts:
    """The metadata and text of a resource file. NotLoadable, with a `reason`, if it cannot be read."""
    parts = Parts(form="none", meta={}, body="")
    if len(data) > FILE_LIMIT:
        raise NotLoadable(f"{path!r} is over 1 MiB", hint="move text to other files", reason="too-large")
    if data.startswith(b"\xef\xbb\xbf"):
        parts.note("bom", "there is a byte order mark at the start", path, 1)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        guess = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else _narrow(data)
        parts.note("not-utf8", f"not UTF-8; read as {guess}", path)
        text = data.decode(guess, errors="replace")
    if "\r" in text:
        parts.note("crlf", "lines end in a carriage return", path)
    lines = text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff").split("\n")
    first = _next(lines, 0)
    if first == len(lines):
        raise NotLoadable(f"{path!r} is empty", hint="write a name, a description and the instructions", reason="empty")
    start = first
    while start < len(lines) and lines[start].lstrip().startswith("<!--"):
        closed = next((at for at in range(start, len(lines)) if "-->" in lines[at]), len(lines))
        start = _next(lines, closed + 1)
    if start == len(lines) or not _FENCE.fullmatch(lines[start]):
        _block(lines, first, parts, path)
        return parts
    if start != first:
        parts.note("frontmatter-late", "there is a comment before the frontmatter", path, first + 1)
    _frontmatter(lines, start, parts, path)
    return parts


# Characters


def _narrow(data: bytes) -> str:
    """gb18030 if most of the characters would be everyday ones, or else a Latin code page."""
    try:
        foreign = [mark.encode("gb18030") for mark in data.decode("gb18030") if mark > "\x7f"]
        everyday = sum(len(code) == 2 and (0xA1 <= code[0] <= 0xA9 or 0xB0 <= code[0] <= 0xD7) for code in foreign)
        if everyday > len(foreign) * 0.7:
            return "gb18030"
    except UnicodeError:
        pass
    return "cp1252"


def _check(source: str, first: int, parts: Parts, path: str) -> None:
    """Raises NotLoadable for metadata that is too large or could steer a terminal; notes hidden characters."""
    if len(source) > METADATA_LIMIT:
        raise NotLoadable(f"the metadata of {path!r} is over 64 KiB", hint="shorten it", reason="too-large")
    if source.replace("\n", "").isprintable():
        return
    if hit := CONTROL.search(source):
        line = first + source.count("\n", 0, hit.start())
        message = f"the metadata of {path!r} has the control character U+{ord(hit.group()):04X} in line {line}"
        raise NotLoadable(message, hint="remove it", reason="control-character", line=line)
    if hit := _HIDDEN.search(source):
        line = first + source.count("\n", 0, hit.start())
        parts.note("hidden-character", f"U+{ord(hit.group()):04X} is hidden in the metadata", path, line)


def _body(lines: Sequence[str], parts: Parts, path: str) -> str:
    text = "\n".join(lines)
    if "\x00" in text:
        parts.note("nul-removed", "the text has NUL characters; left out", path)
    return text.replace("\x00", "").strip("\n")


# The place of the metadata


def _next(lines: Sequence[str], at: int) -> int:
    return next((i for i in range(at, len(lines)) if lines[i].strip()), len(lines))


def _frontmatter(lines: list[str], start: int, parts: Parts, path: str) -> None:
    first = start + 1
    fence = next((at for at in range(first, len(lines)) if lines[at][:3] in _ENDS and _END.fullmatch(lines[at])), None)
    # After a blank line, a heading shows that these lines are text, and the fence after them is only a rule
    has_prose = any(
        lines[at][:1] == "#" and _COMMENT.match(lines[at]) and not lines[at - 1].strip()
        for at in range(first + 1, fence or first)
    )
    if has_prose and not _is_yaml("\n".join(lines[first:fence])):
        fence = None
    if fence is None:  # it ends before a blank line, a heading, or flush text that is not a key
        end = first
        while end < len(lines) and lines[end].strip() and (lines[end][0] in " \t-" or _KEY_LINE.match(lines[end])):
            end += 1
        parts.note("unclosed", "the frontmatter is never closed; it ends at the first blank line", path, first)
    else:
        end = fence
        if lines[end] != "---" or lines[start] != "---":
            parts.note("fence-odd", "the frontmatter is not fenced by plain '---'", path, end + 1)
    parts.form = "frontmatter"
    _read_yaml("\n".join([*lines[first:end], ""]), first + 1, parts, path)
    parts.body = _body(lines[end if fence is None else end + 1 :], parts, path)
    heading = parts.body.lstrip().partition("\n")[0]
    parts.title = heading[2:].strip() if heading.startswith("# ") else ""


def _block(lines: list[str], start: int, parts: Parts, path: str) -> None:
    """FMT-1: `# title`, then `key: value` lines up to a blank line. Blank lines after the title are skipped."""
    first = start
    if lines[start].startswith("# "):
        parts.title = lines[start][2:].strip()
        first = _next(lines, start + 1)
    end = first
    while end < len(lines) and _KEY_LINE.match(lines[end].strip()):
        end += 1
    if end < len(lines) and lines[end].strip():
        end = first
    _check("\n".join(lines[start:end]), start + 1, parts, path)
    parts.body = _body(lines[end:], parts, path)
    if end > first:
        parts.form = "block"
        parts.note("header-form", "written as a title and 'key: value' lines", path, first + 1)
        _take_lines("\n".join(line.strip() for line in lines[first:end]), first + 1, parts, path)


# YAML


def _read_yaml(source: str, first: int, parts: Parts, path: str) -> None:
    """Reads the metadata; `first` is the line of `source`. Invalid YAML is fixed, or at worst read line by line."""
    _check(source, first, parts, path)
    wrong: int | None = None
    for code, message, fix in _FIXES:
        fixed = fix(source)
        if fixed == source and code:
            continue
        source = fixed
        try:
            values = parsed(source)
        except Hostile as error:
            raise _not_loadable(error, path, first) from error
        except NotYaml as error:
            wrong = error.line + first if wrong is None and error.line is not None else wrong
            continue
        if not isinstance(values.value, dict):
            parts.note("yaml-not-a-mapping", "the frontmatter is not a mapping; read line by line", path, first)
            break
        if code:
            parts.note(code, message, path, wrong)
        parts.meta, parts.source = values.value, source
        parts.lines = {key: line + first for key, line in values.lines.items()}
        parts.plain = {key: (value, line + first) for key, (value, line) in values.plain.items()}
        return
    else:
        parts.note("yaml-repaired", "not valid YAML; read line by line", path, wrong)
    _take_lines(source, first, parts, path)


def _is_yaml(source: str) -> bool:
    """Whether `source` is a YAML mapping as it stands, or hostile YAML."""
    try:
        return len(source) <= METADATA_LIMIT and isinstance(parsed(source).value, dict)
    except Hostile:
        return True
    except NotYaml:
        return False


def _not_loadable(error: Hostile, path: str, first: int) -> NotLoadable:
    line = error.line + first
    message = f"the metadata of {path!r} {error} in line {line}"
    return NotLoadable(message, hint="write plain keys and values", reason=error.reason, line=line)


# Invalid YAML


def _with_quotes(source: str) -> str:
    """`source` with quotes around each value on one line that YAML would misread; block scalars stay unchanged."""
    lines: list[str] = []
    block = -1  # the indentation of the key whose block scalar is open
    for line in source.split("\n"):
        indent = len(line) - len(line.lstrip(" "))
        if block >= 0 and (not line.strip() or indent > block):
            lines.append(line)
            continue
        block = -1
        hit = _PAIR.fullmatch(line)
        if hit and hit.group(2)[0] in "|>":
            block = indent
        elif hit:
            value = hit.group(2)
            if value[0] in "\"'[{":
                is_misread = not _WHOLE.fullmatch(value)
            else:
                is_misread = value[0] in "@`%*&,]}" or value[:2] in {"- ", "? "} or bool(_COLON.search(value))
                # Quotes would hide a reference or a tag, which is refused
                is_misread = is_misread and not _REFERENCE.match(value)
            if is_misread:
                line = f"{hit.group(1)}{_in_quotes(value)}"
        lines.append(line)
    return "\n".join(lines)


def _in_quotes(value: str) -> str:
    return "'" + value.rstrip().replace("'", "''") + "'"


def _take_lines(source: str, first: int, parts: Parts, path: str) -> None:
    """Reads broken YAML: top-level `key: value` lines, lists, maps of one level and continuation lines."""
    chunks: dict[str, list[str]] = {}
    chunk: list[str] = []
    for at, line in enumerate(source.split("\n")):
        hit = None if line[:1] in {" ", "\t", "-", "#"} else _KEY_LINE.match(line)
        if hit:
            key = hit.group(1).strip()
            if key in chunks:
                raise _not_loadable(Hostile("duplicate-key", f"has the key {key!r} twice", at), path, first)
            chunks[key] = chunk = [hit.group(2).strip()]
            parts.lines[key] = at + first
        elif item := line.strip():
            chunk.append(item)
    parts.meta = {key: _chunk(lines[0], lines[1:]) for key, lines in chunks.items()}


def _chunk(head: str, rest: list[str]) -> Any:
    if _BLOCK.fullmatch(head):
        return ("\n" if head[0] == "|" else " ").join(rest)
    if not head and rest and all(line.startswith("- ") for line in rest):
        return [_unquote(line[2:]) for line in rest]
    if not head and rest and all(hits := [_KEY_LINE.match(line) for line in rest]):
        return {hit.group(1).strip(): _unquote(hit.group(2)) for hit in hits if hit}
    return _unquote(" ".join([head, *rest] if head else rest))


def _unquote(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


_FIXES: tuple[tuple[str, str, Callable[[str], str]], ...] = (
    (  # a description that begins as a tag, an anchor or a map, and goes on in words; an alias of the anchor is refused
        "yaml-unquoted",
        "a value needs quotes; read as it stands",
        lambda source: _PROSE.sub(lambda hit: hit[1] + _in_quotes(hit[2]), source),
    ),
    ("", "", str),
    (
        "yaml-tabs",
        "indented by tabs; read as spaces",
        lambda source: _TABBED.sub(lambda hit: hit.group().replace("\t", "  "), source),
    ),
    ("yaml-unquoted", "a value needs quotes; read as it stands", _with_quotes),
)


DEPTH_LIMIT = 12
CONTROL = lazy_compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]")

_HUGE = lazy_compile(r"[-+]?(?:0[xXoObB][0-9a-fA-F_]{65,}|[0-9][0-9_]{64,})")
_EASY = lazy_compile(r"""([A-Za-z][A-Za-z0-9_-]{0,63}): +(?:"([^"\\]*)"|'([^']*)'|([^\W\d_].*?)(?<! )) *+""")


class Hostile(Exception):
    """Metadata outside the safe subset: the reason's code, a description, and the line, counted from 0."""

    def __init__(self, reason: str, text: str, line: int) -> None:
        super().__init__(text)
        self.reason, self.line = reason, line


class NotYaml(Exception):
    """The text is not YAML; `line` is the line of the error, counted from 0, or None if unknown."""

    def __init__(self, line: int | None) -> None:
        super().__init__("no YAML")
        self.line = line


class Values(Struct):
    """The values of a YAML text, every scalar a string.

    `lines` has the line of each top-level key, `plain` the text and line of each value without quotes, by its keys
    joined with dots; lines count from 0.
    """

    value: Any = None
    lines: dict[str, int] = field(default_factory=dict)
    plain: dict[str, tuple[str, int]] = field(default_factory=dict)
    _open: list[tuple[Any, str | None]] = field(default_factory=list)  # open containers, each with its pending key
    _names: list[str] = field(default_factory=list)  # the key of each open container

    def put(self, value: Any, line: int, *, plain: bool = False) -> None:
        container, key = self._open[-1] if self._open else (None, None)
        if container is None:
            self.value = value
        elif isinstance(container, list):
            container.append(value)
        elif key is None:
            if not isinstance(value, str):
                raise Hostile("yaml-odd-key", "has a key that is not text", line)
            if value == "<<" and plain:
                raise Hostile("yaml-merge-key", "merges other maps", line)
            if value in container:
                raise Hostile("duplicate-key", f"has the key {value[:64]!r} twice", line)
            if len(self._open) == 1:
                self.lines[value] = line
            self._open[-1] = (container, value)
        else:
            container[key] = value
            if plain and value:
                self.plain[".".join([*self._names[1:], key])] = (value, line)
            self._open[-1] = (container, None)

    def open(self, value: Any, line: int) -> None:
        self._names.append(self._open[-1][1] or "" if self._open else "")
        self.put(value, line)
        self._open.append((value, None))
        if len(self._open) > DEPTH_LIMIT:
            raise Hostile("yaml-depth", f"nests deeper than {DEPTH_LIMIT}", line)

    def close(self) -> None:
        self._open.pop()
        self._names.pop()


def parsed(source: str) -> Values:
    """Parses YAML. Hostile for anchors, aliases, tags, deep nesting or huge numbers; NotYaml if it cannot be read."""
    return _easy(source) or _read(source)


def _easy(source: str) -> Values | None:
    """Parses lines of one key and one text each, as in most manifests; None for everything else.

    Every YAML reader reads such lines in the same way; this takes a tenth of a parser's time, and loads no parser.
    """
    values = Values(value={})
    for at, line in enumerate(source.removesuffix("\n").split("\n")):
        hit = _EASY.fullmatch(line) if line.isprintable() else None
        if hit is None or hit[1] in values.value:
            return None
        key, double, single, bare = hit.groups()
        if bare is not None:
            if ": " in bare or " #" in bare or bare[-1] == ":":
                return None
            values.plain[key] = (bare, at)
        values.value[key] = bare or double or single or ""
        values.lines[key] = at
    return values


def _read(source: str) -> Values:
    import yaml

    values, documents = Values(value={}), 0
    try:
        for event in yaml.parse(source, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader)):
            line = event.start_mark.line if event.start_mark else 0
            if isinstance(event, yaml.NodeEvent):
                if event.anchor is not None:
                    raise Hostile("yaml-anchor", "uses an anchor or alias", line)
                if getattr(event, "tag", None) is not None:
                    raise Hostile("yaml-tag", "uses a tag", line)
            if isinstance(event, yaml.ScalarEvent):
                if CONTROL.search(event.value):
                    raise Hostile("control-character", "has a control character", line)
                if len(event.value) > 64 and event.implicit[0] and _HUGE.fullmatch(event.value):
                    raise Hostile("yaml-huge-number", "has a number of over 64 digits", line)
                values.put(event.value, line, plain=event.implicit[0])
            elif isinstance(event, yaml.CollectionStartEvent):
                values.open({} if isinstance(event, yaml.MappingStartEvent) else [], line)
            elif isinstance(event, yaml.CollectionEndEvent):
                values.close()
            elif isinstance(event, yaml.DocumentStartEvent):
                documents += 1
    except yaml.MarkedYAMLError as error:
        last = source.rstrip().count("\n")  # what is never closed begins on the line of the context
        lines = [mark.line for mark in (error.problem_mark, error.context_mark) if mark and mark.line <= last]
        raise NotYaml(lines[0] if lines else None) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise NotYaml(None) from error
    if documents > 1:
        raise NotYaml(None)
    return values

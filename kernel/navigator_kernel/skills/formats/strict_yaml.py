"""Reads a safe subset of YAML: maps, lists and texts, without anchors, tags, types or deep nesting (X-2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from navigator_kernel.text import lazy_compile

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
        held, key = self._open[-1] if self._open else (None, None)
        if held is None:
            self.value = value
        elif isinstance(held, list):
            held.append(value)
        elif key is None:
            self._open[-1] = (held, self._key(value, held, line, plain=plain))
        else:
            held[key] = value
            if plain and value:
                self.plain[".".join([*self._names[1:], key])] = (value, line)
            self._open[-1] = (held, None)

    def open(self, value: Any, line: int) -> None:
        self._names.append(self._open[-1][1] or "" if self._open else "")
        self.put(value, line)
        self._open.append((value, None))
        if len(self._open) > DEPTH_LIMIT:
            raise Hostile("yaml-depth", f"nests deeper than {DEPTH_LIMIT}", line)

    def close(self) -> None:
        self._open.pop()
        self._names.pop()

    def _key(self, value: Any, held: Mapping[str, Any], line: int, *, plain: bool) -> str:
        if not isinstance(value, str):
            raise Hostile("yaml-odd-key", "has a key that is not text", line)
        if value == "<<" and plain:
            raise Hostile("yaml-merge-key", "merges other maps", line)
        if value in held:
            raise Hostile("duplicate-key", f"has the key {value[:64]!r} twice", line)
        if len(self._open) == 1:
            self.lines[value] = line
        return value


def parsed(source: str) -> Values:
    """Parses YAML. Hostile for anchors, aliases, tags, deep nesting or huge numbers; NotYaml if it cannot be read."""
    return _easy(source) or _read(source)


def _easy(source: str) -> Values | None:
    """Parses lines of one key and one text each, as in most manifests; None for everything else.

    Every YAML reader reads such lines in the same way; this takes a tenth of a parser's time, and loads no parser.
    """
    found = Values(value={})
    for at, line in enumerate(source.removesuffix("\n").split("\n")):
        hit = _EASY.fullmatch(line) if line.isprintable() else None
        if hit is None or hit[1] in found.value:
            return None
        key, double, single, bare = hit.groups()
        if bare is not None:
            if ": " in bare or " #" in bare or bare[-1] == ":":
                return None
            found.plain[key] = (bare, at)
        found.value[key] = bare or double or single or ""
        found.lines[key] = at
    return found


def _read(source: str) -> Values:
    import yaml

    try:
        return _from_events(source)
    except yaml.MarkedYAMLError as error:
        raise NotYaml(error.problem_mark.line if error.problem_mark else None) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise NotYaml(None) from error


def _from_events(source: str) -> Values:
    import yaml

    found, documents = Values(value={}), 0
    for event in yaml.parse(source, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader)):
        line = event.start_mark.line if event.start_mark else 0
        if isinstance(event, yaml.NodeEvent):
            _refuse(event, line)
        if isinstance(event, yaml.ScalarEvent):
            found.put(event.value, line, plain=event.implicit[0])
        elif isinstance(event, yaml.CollectionStartEvent):
            found.open({} if isinstance(event, yaml.MappingStartEvent) else [], line)
        elif isinstance(event, yaml.CollectionEndEvent):
            found.close()
        elif isinstance(event, yaml.DocumentStartEvent):
            documents += 1
    if documents > 1:
        raise yaml.YAMLError("several documents")
    return found


def _refuse(event: Any, line: int) -> None:
    if event.anchor is not None:
        raise Hostile("yaml-anchor", "uses an anchor or alias", line)
    if getattr(event, "tag", None) is not None:
        raise Hostile("yaml-tag", "uses a tag", line)
    text = getattr(event, "value", "")
    if CONTROL.search(text):
        raise Hostile("control-character", "has a control character", line)
    if len(text) > 64 and event.implicit[0] and _HUGE.fullmatch(text):
        raise Hostile("yaml-huge-number", "has a number of over 64 digits", line)

"""Splits a resource file into its metadata and its text, forgiving what people write (FMT-1, FMT-6, X-2)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from navigator_kernel.errors import NotLoadable
from navigator_kernel.values.resource import Diagnostic

METADATA_LIMIT = 64 * 1024  # characters
DEPTH_LIMIT = 12

_KEY_LINE = re.compile(r"^([A-Za-z_][\w .-]{0,63}?)\s*[:：]\s*(.*)$")
_FENCE = re.compile(r"^---[ \t]*$")


@dataclass(slots=True)
class Parts:
    """`form` is how the metadata was written: `frontmatter`, `block` (FMT-1) or `none`."""

    form: str
    meta: dict[str, Any]
    body: str
    title: str = ""
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def note(self, code: str, message: str, path: str, line: int | None = None) -> None:
        self.diagnostics.append(Diagnostic(code=code, level="warning", path=path, message=message, line=line))


def split(data: bytes, path: str) -> Parts:
    """The metadata and text of a resource file. NotLoadable where nothing can be read from it."""
    text, notes = _decode(data, path)
    lines = text.split("\n")
    start = next((i for i, line in enumerate(lines) if line.strip()), None)
    if start is None:
        raise NotLoadable(f"{path!r} is empty", hint="write a name, a description and the instructions", reason="empty")
    parts = _frontmatter(lines, start, path) if _FENCE.match(lines[start]) else _block(lines, start)
    parts.diagnostics[:0] = notes
    return parts


def _decode(data: bytes, path: str) -> tuple[str, list[Diagnostic]]:
    notes: list[Diagnostic] = []
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        text = data.decode("utf-8-sig", errors="replace")
        message = f"not UTF-8 at byte {error.start}; replaced"
        notes.append(Diagnostic(code="not-utf8", level="warning", path=path, message=message))
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", ""), notes


def _frontmatter(lines: list[str], start: int, path: str) -> Parts:
    end = next((i for i in range(start + 1, len(lines)) if _FENCE.match(lines[i])), None)
    if end is None:
        raise NotLoadable(f"{path!r} opens frontmatter and never closes it", hint="add a line '---'", reason="unclosed")
    source = "\n".join(lines[start + 1 : end])
    if len(source) > METADATA_LIMIT:
        raise NotLoadable(f"the frontmatter of {path!r} is over 64 KiB", hint="shorten it", reason="too-large")
    parts = Parts(form="frontmatter", meta={}, body="\n".join(lines[end + 1 :]).strip("\n"))
    parts.title = _title(parts.body)
    parts.meta = _yaml(source, parts, path, first_line=start + 2)
    return parts


def _yaml(source: str, parts: Parts, path: str, first_line: int) -> dict[str, Any]:
    import yaml

    try:
        value = _load(source)
    except _HostileYaml as error:
        message = f"the frontmatter of {path!r} {error}"
        raise NotLoadable(message, hint="write plain keys and values", reason="hostile") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = None if mark is None else mark.line + first_line
        parts.note("yaml-repaired", "not valid YAML; read line by line", path, line)
        return _line_by_line(source)
    if value is None:
        return {}
    if not isinstance(value, dict):
        parts.note("yaml-not-a-mapping", "the frontmatter is no mapping; read line by line", path, first_line)
        return _line_by_line(source)
    return {str(key): item for key, item in value.items()}


class _HostileYaml(Exception):
    """YAML that asks for more than values."""


def _load(source: str) -> Any:
    """PyYAML with every scalar a string, and no anchors, aliases, tags, duplicate keys or deep nesting."""
    import yaml

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    depth = 0
    for event in yaml.parse(source, Loader=loader):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise _HostileYaml("uses an anchor or alias")
        if getattr(event, "tag", None) is not None:
            raise _HostileYaml("uses a tag")
        if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            depth += 1
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            depth -= 1
        if depth > DEPTH_LIMIT:
            raise _HostileYaml(f"nests deeper than {DEPTH_LIMIT}")
    reader = loader(source)
    try:
        node = reader.get_single_node()
        _refuse_duplicates(node)
        return None if node is None else reader.construct_document(node)
    finally:
        reader.dispose()


def _refuse_duplicates(node: Any) -> None:
    import yaml

    if isinstance(node, yaml.MappingNode):
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(set(keys)) != len(keys):
            raise _HostileYaml("has the same key twice")
        for _, value in node.value:
            _refuse_duplicates(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            _refuse_duplicates(value)


def _line_by_line(source: str) -> dict[str, Any]:
    """Top-level `key: value` lines, `- item` lists and continuation lines: what unquoted colons leave readable."""
    meta: dict[str, Any] = {}
    key = ""
    for line in source.split("\n"):
        hit = None if line[:1] in {" ", "\t", "-", "#"} else _KEY_LINE.match(line)
        if hit:
            key = hit.group(1).strip()
            meta[key] = _unquote("" if hit.group(2) in {"|", ">", "|-", ">-"} else hit.group(2))
        elif key and (item := line.strip()):
            if item.startswith("- "):
                held = meta[key] if isinstance(meta[key], list) else ([meta[key]] if meta[key] else [])
                meta[key] = [*held, _unquote(item[2:])]
            elif isinstance(meta[key], str):
                meta[key] = f"{meta[key]} {item}".strip()
    return meta


def _unquote(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _block(lines: list[str], start: int) -> Parts:
    """FMT-1: `# title`, then `key: value` lines up to a blank line. Blank lines after the title are skipped."""
    title = ""
    at = start
    if lines[at].startswith("# "):
        title = lines[at][2:].strip()
        at = next((i for i in range(at + 1, len(lines)) if lines[i].strip()), len(lines))
    meta: dict[str, Any] = {}
    first = at
    while at < len(lines) and (hit := _KEY_LINE.match(lines[at].strip())):
        meta[hit.group(1).strip()] = _unquote(hit.group(2))
        at += 1
    ended = at >= len(lines) or not lines[at].strip()
    if not meta or not ended:
        return Parts(form="none", meta={}, body="\n".join(lines[first:]).strip("\n"), title=title)
    return Parts(form="block", meta=meta, body="\n".join(lines[at:]).strip("\n"), title=title)


def _title(body: str) -> str:
    first = next((line for line in body.split("\n") if line.strip()), "")
    return first[2:].strip() if first.startswith("# ") else ""

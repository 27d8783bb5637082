"""Converts any accepted layout to the canonical SKILL.md (X-2, X-3)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from navigator_kernel.skills.formats.frontmatter import FILE_LIMIT, Parts, split
from navigator_kernel.skills.formats.manifest import (
    OUR_KEYS,
    SPEC_KEYS,
    merged_keys,
    read_manifest,
    spelled,
    text_of,
    words_of,
)
from navigator_kernel.text import lazy_compile

FORMATS: Mapping[str, str] = {
    "skill": "<name>/SKILL.md with frontmatter, as the open Agent Skills specification says; also skill.md",
    "flat": "<name>.md, a skill of one file: frontmatter with name, description, tools, inherit_history",
    "header": "'# title', then 'key: value' lines up to a blank line, then the text",
    "command": "a command of a host agent, <name>.md: frontmatter without a name (description, argument-hint, model)",
    "rule": "a Cursor rule, <name>.mdc: frontmatter with description, globs, alwaysApply",
    "gemini": "a Gemini command, <name>.toml: description and prompt; {{args}} becomes $ARGUMENTS",
    "text": "Markdown without metadata: the file's name and its first sentence are used",
}

_HOST_KEYS = frozenset(
    {"when_to_use", "disable-model-invocation", "type", "paths", "globs"}
)  # hosts read these keys at the top level
_LISTS = frozenset({"tags", "keywords_cn", "triggers", "aliases", "effects", "tools", "examples"})
_NUMBER = lazy_compile(r"[-+.]?[0-9][\w.:+-]*")  # a number in any version of YAML
_TEXT_TAG = "tag:yaml.org,2002:str"


def detect_format(data: bytes, name: str) -> str:
    """The key of FORMATS for a file; `name` is that of the file or its folder. NotLoadable if it cannot be used."""
    if _from_toml(data) is not None:
        return "gemini"
    parts = split(data, name)
    if parts.form != "frontmatter":
        return "header" if parts.form == "block" else "text"
    keys = set(map(spelled, parts.meta))
    if name.endswith(".mdc") or keys & {"globs", "alwaysApply"}:
        return "rule"
    if "name" not in keys:
        return "command"
    return "flat" if keys & {"tools", "inherit_history"} and name.endswith(".md") else "skill"


def to_canonical(data: bytes, name: str) -> bytes:
    """Converts a skill to a SKILL.md: the specification's keys, ours as `navigator-*` under `metadata`, all others
    unchanged, then the text. `name` is that of the file or its folder, used if the file has no name.

    A canonical file stays unchanged. NotLoadable if `data` cannot be used. Comments in the metadata are lost.
    """
    stem = name.removesuffix(".md").removesuffix(".mdc").removesuffix(".toml")
    data = _from_toml(data) or data
    parts = split(data, stem)
    skill = read_manifest(data, path=Path(f"{stem}.md"), folder=None)
    meta = merged_keys(parts, stem)
    description = text_of(meta.get("description")) or text_of(meta.get("when_to_use")) or skill.description
    head: dict[str, Any] = {"name": _text(skill.name), "description": _text(description)}
    kept, metadata = _sorted_keys(parts, meta, head)
    if metadata:
        head["metadata"] = _map(metadata)
    order = ("name", "description", "license", "compatibility", "allowed-tools", "metadata")
    body = parts.body if parts.form == "frontmatter" or not parts.title else f"# {parts.title}\n\n{parts.body}".strip()
    written = _file([*((_plain(key), head[key]) for key in order if key in head), *kept], body)
    read_manifest(written, path=Path(f"{stem}.md"), folder=None)  # a result over a limit is refused here, not later
    return written


def _sorted_keys(parts: Parts, meta: Mapping[str, Any], head: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The unchanged pairs and those that move under `metadata`; the specification's keys are added to `head`."""
    kept: list[Any] = []
    moved: dict[str, Any] = {}
    seen: set[str] = set()
    for key, node in sorted(_pairs(parts), key=lambda pair: pair[0].value != spelled(pair[0].value)):
        known = spelled(key.value)
        text = None if known in seen else _as_text(known, meta.get(known))
        if known in {"name", "description", "metadata"} and known not in seen:
            seen.add(known)
        elif known in seen:  # another spelling of a key that is already present
            moved[key.value] = _text(text_of(parts.meta[key.value]))
        elif text is None or known not in SPEC_KEYS | OUR_KEYS - _HOST_KEYS:
            kept.append((key, node))
        elif known in SPEC_KEYS:
            head[known] = _text(text)
        else:
            moved[f"navigator-{known}"] = _text(text)
        seen.add(known)
    order = list(parts.meta)
    kept.sort(key=lambda pair: order.index(pair[0].value))
    return kept, {**_metadata(parts, meta, set(moved)), **moved}


def _as_text(key: str, value: Any) -> str | None:
    """A value of a known key as one string that reads back as the same value; None if there is no such string."""
    if key == "allowed-tools" and isinstance(value, (str, list)):
        words = words_of(value, spaces=True)
        return " ".join(words) if words_of(" ".join(words), spaces=True) == words else None
    if isinstance(value, str):
        return text_of(value)
    if key == "required_params":
        return json.dumps(value, ensure_ascii=False)
    if not isinstance(value, list):
        return None
    if key not in _LISTS:
        return text_of(value)
    lines = key == "examples"
    text = ("\n" if lines else ", ").join(words_of(value))
    return text if words_of(text, commas=not lines) == words_of(value) else None


def _metadata(parts: Parts, meta: Mapping[str, Any], moved: set[str]) -> dict[str, Any]:
    """The existing pairs of `metadata`, without those that a top-level key overrides."""
    metadata = meta.get("metadata")
    if not metadata:
        return {}
    if not isinstance(metadata, Mapping):
        return {"text": _text(metadata if isinstance(metadata, str) else json.dumps(metadata, ensure_ascii=False))}
    nodes = {key.value: node for key, node in _pairs(parts) if spelled(key.value) == "metadata"}
    chosen = nodes.get("metadata") or next(iter(nodes.values()))
    pairs: dict[str, Any] = {}
    for key, value in chosen.value:
        bare = key.value.removeprefix("navigator-")
        if bare == key.value or f"navigator-{spelled(bare)}" not in moved:
            pairs[key.value] = _text(value.value) if isinstance(value.value, str) else value
    return pairs


def _pairs(parts: Parts) -> list[tuple[Any, Any]]:
    """The metadata as YAML nodes, in their original style."""
    import yaml

    if not parts.source:
        return [(_plain(key), _node(value)) for key, value in parts.meta.items()]
    root = yaml.compose(parts.source, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))
    return list(root.value) if isinstance(root, yaml.MappingNode) else []


def _from_toml(data: bytes) -> bytes | None:
    """A Gemini command as Markdown with frontmatter; None if `data` is not one."""
    import tomllib

    try:
        value = tomllib.loads(data.decode("utf-8-sig")) if len(data) <= FILE_LIMIT else {}
    except (ValueError, RecursionError):
        return None
    prompt = value.pop("prompt", None)
    if not isinstance(prompt, str) or not prompt.strip():
        return None
    pairs = [(_text(key), _node(item, _text)) for key, item in value.items()]
    return _file(pairs, prompt.strip("\n").replace("{{args}}", "$ARGUMENTS"))


def _file(pairs: list[tuple[Any, Any]], body: str) -> bytes:
    import yaml

    root = yaml.MappingNode("tag:yaml.org,2002:map", pairs, flow_style=False)
    head = yaml.serialize(root, Dumper=yaml.BaseDumper, allow_unicode=True, width=2**31) if pairs else ""
    return f"---\n{head}---\n".encode() + (f"\n{body}\n".encode() if body else b"")


def _node(value: Any, text: Callable[[str], Any] | None = None) -> Any:
    """The YAML node of a value; `text` makes the nodes of texts, which are plain by default."""
    import yaml

    if isinstance(value, Mapping):
        return _map({str(key): _node(item, text) for key, item in value.items()})
    if isinstance(value, list):
        return yaml.SequenceNode("tag:yaml.org,2002:seq", [_node(item, text) for item in value], flow_style=False)
    if isinstance(value, str) and text:
        return text(value)
    return _plain(str(value).lower() if isinstance(value, bool) else str(value))


def _map(pairs: Mapping[str, Any]) -> Any:
    import yaml

    nodes = [(_text(key), node) for key, node in pairs.items()]
    return yaml.MappingNode("tag:yaml.org,2002:map", nodes, flow_style=False)


def _plain(text: str) -> Any:
    import yaml

    return yaml.ScalarNode(_TEXT_TAG, text)


def _text(text: str) -> Any:
    """Text that every YAML reader reads as text: quoted if it looks like a number, a boolean or a date."""
    import yaml

    rules = yaml.SafeLoader.yaml_implicit_resolvers.get(text[:1], [])
    typed = _NUMBER.fullmatch(text) or any(rule.match(text) for _, rule in rules)
    style = "|" if "\n" in text else "'" if typed or not text else None
    return yaml.ScalarNode(_TEXT_TAG, text, style=style)

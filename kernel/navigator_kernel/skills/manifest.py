"""Reads a resource file of any of the documented forms into one SkillDef (part 3, items 1 and 2; X-2, X-3)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from navigator_kernel.errors import NotLoadable
from navigator_kernel.skills.frontmatter import Parts, split
from navigator_kernel.values.resource import Level, ParamSpec, ResourceType, SkillDef, Validation

DESCRIPTION_LIMIT = 1024
NAME = re.compile(r"[^\W_](?:[\w-]{0,62}[^\W_])?")  # letters and digits of any script, `-` and `_` inside

_SECTION = re.compile(r"^##[ \t]+(\S.*)$")
_SYSTEM = {"system prompt", "系统提示词", "系统提示"}
_USER = {"user prompt template", "用户提示词模板", "用户提示模板"}
_VALIDATIONS: Mapping[str, Validation] = {rule: rule for rule in get_args(Validation)}
_FALSE = {"false", "no", "off", "0", "否"}
_SPEC_KEYS = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
_OUR_KEYS = {
    "command", "required_params", "interrupt_on_missing", "keywords_cn", "tags", "category", "examples", "tools",
    "enabled", "priority", "backend", "inherit_history", "effects", "confirm", "idempotent", "triggers",
    "aliases", "timeout", "when_to_use", "disable-model-invocation", "type",
}  # fmt: skip


def read_manifest(
    data: bytes, *, path: Path, folder: Path | None, level: Level = "project", type: ResourceType = "skill"
) -> SkillDef:
    """The resource in `data`. What can be forgiven becomes a diagnostic; NotLoadable for the rest (FMT-7)."""
    parts = split(data, str(path))
    meta = _merged(parts, str(path))
    expected = folder.name if folder is not None else path.stem
    name = _name(meta, parts, expected, str(path))
    description = _text(meta.get("description")) or _text(meta.get("when_to_use")) or _first_words(parts, str(path))
    if parts.form == "none":
        parts.note("no-frontmatter", "the file has no metadata; its name and first words are used", str(path))
    sections = _sections(parts.body)
    return SkillDef(
        name=name,
        description=description[:DESCRIPTION_LIMIT],
        path=path,
        folder=folder,
        type=type,
        level=level,
        sop=parts.body,
        system_prompt=_pick(sections, _SYSTEM),
        user_template=_pick(sections, _USER),
        command=_text(meta.get("command")),
        required_params=_params(meta.get("required_params"), parts, str(path)),
        tools=None if "tools" not in meta else _words(meta["tools"]),
        allowed_tools=_words(meta.get("allowed-tools"), spaces=True),
        tags=_words(meta.get("tags")),
        keywords_cn=_words(meta.get("keywords_cn")),
        triggers=_words(meta.get("triggers")),
        examples=_words(meta.get("examples"), commas=False),
        aliases=_words(meta.get("aliases")),
        category=_text(meta.get("category")),
        backend=_text(meta.get("backend")),
        effects=_words(meta.get("effects")),
        confirm=_text(meta.get("confirm")),
        idempotent=_flag(meta.get("idempotent"), default=False),
        enabled=_flag(meta.get("enabled"), default=True),
        priority=_number(meta.get("priority"), 50, parts, str(path)),
        inherit_history=_flag(meta.get("inherit_history"), default=True),
        implicit=not _flag(meta.get("disable-model-invocation"), default=False),
        timeout=_seconds(meta.get("timeout"), parts, str(path)),
        license=_text(meta.get("license")),
        extra={key: value for key, value in meta.items() if key not in _SPEC_KEYS | _OUR_KEYS},
        diagnostics=tuple(parts.diagnostics),
    )


def _merged(parts: Parts, path: str) -> dict[str, Any]:
    """Top-level keys, with `navigator-*` of `metadata` below them (X-2)."""
    meta = {_spelled(key): value for key, value in parts.meta.items()}
    held = meta.get("metadata")
    if not isinstance(held, Mapping):
        if held not in (None, ""):
            parts.note("metadata-not-a-map", "metadata is no map; left out", path)
        return meta
    for key, value in sorted(held.items(), key=lambda item: not str(item[0]).startswith("navigator-")):
        bare = _spelled(str(key).removeprefix("navigator-"))
        if bare in _OUR_KEYS:
            meta.setdefault(bare, value)
    return meta


def _spelled(key: str) -> str:
    """A known key under its one spelling, `-` and `_` alike; others as they are."""
    lowered = key.strip().lower()
    for known in (lowered, lowered.replace("-", "_"), lowered.replace("_", "-")):
        if known in _OUR_KEYS | _SPEC_KEYS:
            return known
    return key


def _name(meta: Mapping[str, Any], parts: Parts, expected: str, path: str) -> str:
    declared = _text(meta.get("name")) or (parts.title if NAME.fullmatch(parts.title) else "") or expected
    if not NAME.fullmatch(declared):
        parts.note("name-odd", f"the name {declared!r} is not usable; the file's own is used", path)
        declared = expected
    if not NAME.fullmatch(declared):
        raise NotLoadable(f"{path!r} has no usable name", hint="letters, digits and hyphens, 1 to 64", reason="name")
    if declared != expected and parts.form == "frontmatter":
        parts.note("name-folder", f"the name {declared!r} differs from the folder {expected!r}", path)
    return declared


def _first_words(parts: Parts, path: str) -> str:
    for paragraph in parts.body.split("\n"):
        line = paragraph.strip()
        if line and not line.startswith(("#", "```", "---", "|", "<")):
            parts.note("no-description", "no description; the first sentence is used", path)
            return line[:200]
    if parts.title:
        parts.note("no-description", "no description; the title is used", path)
        return parts.title
    raise NotLoadable(f"{path!r} has no description and no text", hint="add a description", reason="no-description")


def _sections(body: str) -> dict[str, str]:
    """`## heading` → text below it, fences left alone (FMT-2)."""
    found: dict[str, list[str]] = {}
    held: list[str] | None = None
    fenced = False
    for line in body.split("\n"):
        fenced ^= line.lstrip().startswith("```")
        hit = None if fenced else _SECTION.match(line)
        if hit is not None:
            held = found[hit.group(1).strip().lower()] = []
        elif held is not None:
            held.append(line)
    return {title: "\n".join(lines).strip() for title, lines in found.items()}


def _pick(sections: Mapping[str, str], names: set[str]) -> str:
    return next((sections[name] for name in names if name in sections), "")


def _text(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(str(item) for item in value)
    return "" if value is None or isinstance(value, Mapping) else str(value).strip()


def _words(value: Any, *, commas: bool = True, spaces: bool = False) -> tuple[str, ...]:
    """A list, however it was written: YAML, `[a, b]` as text, commas, or spaces outside parentheses."""
    if value is None:
        return ()
    if isinstance(value, Mapping):
        return tuple(str(key) for key in value)
    if isinstance(value, list):
        return tuple(text for item in value if (text := _text(item)))
    text = str(value).strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    elif not commas:
        return tuple(line.strip(" -") for line in text.split("\n") if line.strip(" -"))
    pattern = r"[,，、;\n]+(?![^(]*\))" if not spaces else r"[,，、\s]+(?![^(]*\))"
    return tuple(word.strip(" '\"") for word in re.split(pattern, text) if word.strip(" '\""))


def _params(value: Any, parts: Parts, path: str) -> tuple[ParamSpec, ...]:
    if isinstance(value, str) and value.strip():
        value = _embedded(value)
    found: list[ParamSpec] = []
    for item in value if isinstance(value, list) else []:
        if isinstance(item, str) and item.strip():
            found.append(ParamSpec(name=item.strip()))
        elif isinstance(item, Mapping) and _text(item.get("name")):
            found.append(_param(item, parts, path))
        else:
            parts.note("param-odd", "an entry of required_params has no name; left out", path)
    return tuple(found)


def _param(item: Mapping[str, Any], parts: Parts, path: str) -> ParamSpec:
    written = _text(item.get("validation")) or "not_empty"
    rule = _VALIDATIONS.get(written)
    if rule is None:
        parts.note("validation-unknown", f"the validation {written!r} is unknown; not_empty is used", path)
    return ParamSpec(
        name=_text(item["name"]),
        prompt=_text(item.get("prompt")),
        validation=rule or "not_empty",
        required=_flag(item.get("required"), default=True),
        default=None if item.get("default") is None else _text(item["default"]),
    )


def _embedded(text: str) -> Any:
    """A list written as one string, which is what `metadata` allows: JSON, or names with commas."""
    import json

    try:
        return json.loads(text)
    except ValueError:
        return list(_words(text))


def _flag(value: Any, *, default: bool) -> bool:
    text = _text(value).lower()
    return default if not text else text not in _FALSE


def _number(value: Any, default: int, parts: Parts, path: str) -> int:
    text = _text(value)
    if re.fullmatch(r"-?\d{1,6}", text):
        return int(text)
    if text:
        parts.note("priority-odd", f"priority {text[:20]!r} is no whole number; {default} is used", path)
    return default


def _seconds(value: Any, parts: Parts, path: str) -> float | None:
    text = _text(value)
    if re.fullmatch(r"\d{1,5}(\.\d+)?", text) and float(text) > 0:
        return float(text)
    if text:
        parts.note("timeout-odd", f"timeout {text[:20]!r} is no number of seconds; left out", path)
    return None

"""Reads a resource file of any of the documented forms into one SkillDef (part 3, items 1 and 2; X-2, X-3)."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, get_args

from navigator_kernel.errors import KernelError, NotLoadable
from navigator_kernel.skills.formats.frontmatter import Parts, split
from navigator_kernel.skills.formats.names import NAME
from navigator_kernel.text import clean, lazy_compile
from navigator_kernel.values.resource import USUAL_PRIORITY, Level, ParamSpec, ResourceType, SkillDef, Validation

if TYPE_CHECKING:
    from pathlib import Path


DESCRIPTION_LIMIT = 1024
LISTED_LIMIT = 1536  # characters of `description` and `when_to_use` together that Claude Code lists

_SECTION = lazy_compile(r"^##[ \t]+(\S.*)$")
_SYSTEM = {"system prompt", "系统提示词", "系统提示"}
_USER = {"user prompt template", "用户提示词模板", "用户提示模板"}
_NAMED = _SYSTEM | _USER
_VALIDATIONS: Mapping[str, Validation] = {rule: rule for rule in get_args(Validation)}
_NESTED = 500  # lists and maps in one string
_ESCAPED_CONTROL = lazy_compile(r"\\u(?:00[0189]|007f|d[89a-f])", re.IGNORECASE)
_SWITCHES = {"yes", "no", "on", "off", "true", "false", "null"}  # all typed values that begin with a letter
_SLASH = lazy_compile(r"/[A-Za-z][\w.-]*(?::[\w.:-]+)?(?:\s|$)")  # a program has a second slash, or a folder before it
_LISTS = lazy_compile(r"[,，、\n\[]")
_BY_COMMAS, _BY_BLANKS = lazy_compile(r"[,，、;\n]++(?![^(]{0,500}\))"), lazy_compile(r"[,，、\s]++(?![^(]{0,500}\))")
_BESIDE_BRACES = lazy_compile(r"[,\n]++(?![^{}]{0,500}\})")
_BRACKETED = lazy_compile(r"\([^()]*\)")
_INTEGER = lazy_compile(r"-?\d{1,6}")
_DECIMAL = lazy_compile(r"\d{1,5}(\.\d+)?")
_FALSE = {"false", "no", "off", "0", "否"}
SPEC_KEYS = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
OUR_KEYS = {
    "command", "required_params", "interrupt_on_missing", "keywords_cn", "tags", "category", "examples", "tools",
    "enabled", "priority", "backend", "inherit_history", "effects", "dynamic", "network", "reads", "confirm",
    "idempotent", "triggers", "aliases", "timeout", "when_to_use", "disable-model-invocation", "type", "paths", "globs",
}  # fmt: skip
PACKAGES = "dependencies"  # kept as written: a comma may be part of a version
_KEYS = SPEC_KEYS | OUR_KEYS


def read_manifest(
    data: bytes, *, path: Path, folder: Path | None, level: Level = "project", type: ResourceType = "skill"
) -> SkillDef:
    """The resource in `data`. Faults that can be tolerated become diagnostics; NotLoadable for any other (FMT-7)."""
    parts = split(data, str(path))
    meta = merged_keys(parts, str(path))
    name = _name(meta, parts, folder.name if folder is not None else path.stem, str(path))
    use = text_of(meta.get("when_to_use"))
    description = text_of(meta.get("description")) or use or _first_words(parts, str(path))
    _note_forms(meta if type == "skill" else {}, description, parts, str(path))
    description = description[:DESCRIPTION_LIMIT]
    if use and use not in description:  # as Claude Code lists them
        end = "" if description[-1] in ".!?。！？" else "。" if description[-1] > "\u2e80" else "."
        description = f"{description}{end} {use}"[:LISTED_LIMIT]
    sections = _sections(parts.body)
    fields = {kind: take(meta[key]) for key, (kind, take) in _TAKES.items() if key in meta}
    for key, take in _JUDGES.items():
        if key in meta:
            fields[key] = take(meta[key], parts, str(path))
    return SkillDef(
        name=name,
        description=description,
        path=path,
        folder=folder,
        type=type,
        level=level,
        sop=parts.body,
        system_prompt=_pick(sections, _SYSTEM),
        user_template=_pick(sections, _USER),
        extra={key: value for key, value in meta.items() if key not in _KEYS},
        diagnostics=tuple(parts.diagnostics),
        **fields,
    )


def _note_forms(meta: Mapping[str, Any], description: str, parts: Parts, path: str) -> None:
    """Notes forms that were read although the specification has others; `meta` is empty for a resource other than a
    skill."""
    if parts.form == "none":
        parts.note("no-frontmatter", "the file has no metadata; its name and first words are used", path)
    if len(description) > DESCRIPTION_LIMIT:
        line = parts.lines.get("description")
        parts.note("description-long", f"the description is cut after {DESCRIPTION_LIMIT} characters", path, line)
    tools = meta.get("allowed-tools")
    if isinstance(tools, (list, Mapping)) or _LISTS.search(_BRACKETED.sub("", text_of(tools))):
        line = parts.lines.get("allowed-tools")
        parts.note("allowed-tools-form", "allowed-tools is not a list of words with spaces between", path, line)
    for key, (value, line) in parts.plain.items():
        top, _, rest = key.partition(".")
        if top in SPEC_KEYS and (top == "metadata") == bool(rest) and _is_typed(value):
            parts.note("not-text", f"{key} is not written as text; quote its value", path, line)


def _is_typed(value: str) -> bool:
    """Whether other readers take the value for a number, a boolean or a date."""
    if not value[0].isalpha() or value.lower() in _SWITCHES:
        import yaml

        return any(rule.match(value) for _, rule in yaml.SafeLoader.yaml_implicit_resolvers.get(value[0], []))
    return False


def merged_keys(parts: Parts, path: str) -> dict[str, Any]:
    """Top-level keys, then those of `metadata`, where `navigator-*` comes first (X-2); the exact spelling of a key
    wins."""
    meta: dict[str, Any] = {}
    for key, value in sorted(parts.meta.items(), key=lambda item: item[0] != spelled(item[0])):
        if spelled(key) in meta:
            parts.note("key-twice", f"{key[:64]!r} is there in another spelling too", path, parts.lines.get(key))
        meta.setdefault(spelled(key), value)
    metadata = meta.get("metadata")
    if not isinstance(metadata, Mapping):
        if metadata not in (None, ""):
            parts.note("metadata-not-a-map", "metadata is not a map; left out", path)
        return meta
    for key, value in sorted(metadata.items(), key=lambda item: not str(item[0]).startswith("navigator-")):
        bare = spelled(str(key).removeprefix("navigator-"))
        if bare in OUR_KEYS or bare == PACKAGES:
            meta.setdefault(bare, value)
    return meta


@lru_cache(maxsize=256)
def spelled(key: str) -> str:
    """A known key in its usual spelling, with `-` and `_` treated alike; other keys unchanged."""
    lowered = key.strip().lower()
    spellings = (lowered, lowered.replace("-", "_"), lowered.replace("_", "-"))
    return next((known for known in spellings if known in _KEYS), key)


def _name(meta: Mapping[str, Any], parts: Parts, expected: str, path: str) -> str:
    expected, title = unicodedata.normalize("NFC", expected), unicodedata.normalize("NFC", parts.title)
    line = parts.lines.get("name")
    written = text_of(meta.get("name")) or (title if NAME.fullmatch(title) else "") or expected
    declared = unicodedata.normalize("NFC", written)
    if declared != written:
        parts.note("name-not-nfc", "the name is not in Unicode's composed form; composed", path, line)
    if not NAME.fullmatch(declared):
        parts.note("name-odd", f"the name {declared[:80]!r} is not usable; the file's own is used", path, line)
        declared = expected
    if not NAME.fullmatch(declared):
        raise NotLoadable(f"{path!r} has no usable name", hint="letters, digits and hyphens, 1 to 64", reason="name")
    if declared != expected and parts.form == "frontmatter":
        parts.note("name-folder", f"the name {declared!r} differs from the folder {expected!r}", path, line)
    return declared


def _first_words(parts: Parts, path: str) -> str:
    for paragraph in parts.body.split("\n"):
        line = clean(paragraph, lines=False).strip()
        if line and not line.startswith(("#", "```", "---", "|", "<")):
            parts.note("no-description", "no description; the first sentence is used", path)
            return line[:200]
    if parts.title:
        parts.note("no-description", "no description; the title is used", path)
        return parts.title
    raise NotLoadable(f"{path!r} has no description and no text", hint="add a description", reason="no-description")


def _sections(body: str) -> dict[str, str]:
    """`## heading` → text below it, ignoring headings in fences (FMT-2); empty if the text has none of the wanted
    names."""
    folded = body.lower() if "##" in body else ""
    if not any(name in folded for name in _NAMED):
        return {}
    sections: dict[str, list[str]] = {}
    section: list[str] = []
    fenced = False
    for line in body.split("\n"):
        fenced ^= line.lstrip().startswith("```")
        hit = None if fenced else _SECTION.match(line)
        if hit is not None:
            section = sections[hit.group(1).strip().lower()] = []
        else:
            section.append(line)
    return {title: "\n".join(lines).strip() for title, lines in sections.items()}


def _pick(sections: Mapping[str, str], names: set[str]) -> str:
    return next((sections[name] for name in names if name in sections), "")


def text_of(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(_item(item) for item in value).strip()
    return "" if value is None or isinstance(value, Mapping) else str(value).strip()


def words_of(value: Any, *, commas: bool = True, spaces: bool = False) -> tuple[str, ...]:
    """A list as words, however it was written: YAML, `[a, b]` as text, commas, or spaces outside parentheses."""
    if value is None:
        return ()
    if isinstance(value, Mapping):
        return tuple(str(key) for key in value)
    if isinstance(value, list):
        return tuple(text for item in value if (text := _item(item)))
    text = str(value).strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    elif not commas:
        return tuple(line.strip(" -") for line in text.split("\n") if line.strip(" -"))
    pattern = _BY_BLANKS if spaces else _BY_COMMAS
    return tuple(word.strip(" '\"") for word in pattern.split(text) if word.strip(" '\""))


def patterns_of(value: Any) -> tuple[str, ...]:
    """Patterns of files; a comma in braces, as in `*.{ts,tsx}`, separates nothing."""
    texts = value if isinstance(value, list) else [value]
    words = (word for text in texts for word in _BESIDE_BRACES.split(text_of(text).strip("[]")))
    return tuple(bare for word in words if (bare := word.strip(" '\"")))


def _item(value: Any) -> str:
    """An item of a list as text: in YAML, `- fix: this` is a map."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {text_of(text)}" for key, text in value.items())
    return text_of(value)


def _params(value: Any, parts: Parts, path: str) -> tuple[ParamSpec, ...]:
    if isinstance(value, str) and value.strip():  # as in `metadata`: JSON, or names with commas
        text, value = value, list(words_of(value))
        if text.count("[") + text.count("{") <= _NESTED and not _ESCAPED_CONTROL.search(text):
            with suppress(ValueError):
                value = json.loads(text)
    if value and not isinstance(value, list):
        parts.note("params-form", "required_params is not a list; left out", path, parts.lines.get("required_params"))
    params: list[ParamSpec] = []
    for item in value if isinstance(value, list) else []:
        if isinstance(item, str) and item.strip():
            params.append(ParamSpec(name=item.strip()))
            continue
        if not isinstance(item, Mapping) or not text_of(item.get("name")):
            parts.note("param-odd", "an entry of required_params has no name; left out", path)
            continue
        written = text_of(item.get("validation")) or "not_empty"
        if written not in _VALIDATIONS:
            parts.note("validation-unknown", f"the validation {written!r} is unknown; not_empty is used", path)
        param = ParamSpec(
            name=text_of(item["name"]),
            prompt=text_of(item.get("prompt")),
            validation=_VALIDATIONS.get(written, "not_empty"),
            required=_flag(item.get("required"), default=True),
            default=None if item.get("default") is None else text_of(item["default"]),
            instead_of=text_of(item.get("instead_of")),
            choices=text_of(item.get("choices")),
        )
        params.append(param)
    return tuple(params)


def _command(value: Any, parts: Parts, path: str) -> str:
    """The command; empty for one like `/hub:board`, which a person types in another agent."""
    text = text_of(value)
    if _SLASH.match(text):
        line = parts.lines.get("command")
        parts.note("command-slash", f"{text[:64]!r} is a slash command of another agent; left out", path, line)
        return ""
    return text


def _flag(value: Any, *, default: bool = False) -> bool:
    text = text_of(value).lower()
    return default if not text else text not in _FALSE


def _number(value: Any, parts: Parts, path: str) -> int:
    text = text_of(value)
    if _INTEGER.fullmatch(text):
        return int(text)
    if text:
        parts.note("priority-odd", f"priority {text[:20]!r} is not a whole number; {USUAL_PRIORITY} is used", path)
    return USUAL_PRIORITY


def _seconds(value: Any, parts: Parts, path: str) -> float | None:
    text = text_of(value)
    if _DECIMAL.fullmatch(text) and float(text) > 0:
        return float(text)
    if text:
        parts.note("timeout-odd", f"timeout {text[:20]!r} is not a number of seconds; left out", path)
    return None


_TAKES: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "tools": ("tools", words_of),
    "allowed-tools": ("allowed_tools", partial(words_of, spaces=True)),
    "tags": ("tags", words_of),
    "keywords_cn": ("keywords_cn", words_of),
    "triggers": ("triggers", words_of),
    "examples": ("examples", partial(words_of, commas=False)),
    "aliases": ("aliases", words_of),
    "globs": ("paths", patterns_of),
    "paths": ("paths", patterns_of),
    "category": ("category", text_of),
    "backend": ("backend", text_of),
    "effects": ("effects", words_of),
    "reads": ("reads", words_of),
    "dynamic": ("dynamic", _flag),
    "network": ("network", _flag),
    "confirm": ("confirm", text_of),
    "idempotent": ("idempotent", _flag),
    "enabled": ("enabled", partial(_flag, default=True)),
    "inherit_history": ("inherit_history", partial(_flag, default=True)),
    "disable-model-invocation": ("implicit", lambda value: not _flag(value)),
    "license": ("license", text_of),
}
_JUDGES: Mapping[str, Callable[[Any, Parts, str], Any]] = {
    "command": _command,
    "required_params": _params,
    "priority": _number,
    "timeout": _seconds,
}


def declared(manifest: SkillDef | KernelError) -> dict[str, Any]:
    """The data of a manifest, or why it cannot be used."""
    if isinstance(manifest, KernelError):
        return {"description": "", "kind": "", "license": "", "tools": [], "problems": [_clean(manifest.message)]}
    return {
        "name": _clean(manifest.name),
        "description": _clean(manifest.description),
        "kind": manifest.kind,
        "license": _clean(manifest.license),
        "command": _clean(manifest.command),
        "tools": [_clean(tool) for tool in (*manifest.allowed_tools, *(manifest.tools or ()))],
        "permissions": permissions(manifest),
        "problems": [_clean(note.message) for note in manifest.diagnostics],
    }


def permissions(manifest: SkillDef) -> dict[str, Any]:
    """`{effects, reads, network, dynamic}`: what the skill declares that it changes and reads, whether it reaches the
    network, and whether its text contains commands to run."""
    return {
        "effects": [_clean(effect) for effect in manifest.effects],
        "reads": [_clean(place) for place in manifest.reads],
        "network": manifest.network,
        "dynamic": manifest.dynamic,
    }


def _clean(text: str) -> str:
    return clean(text, lines=False)

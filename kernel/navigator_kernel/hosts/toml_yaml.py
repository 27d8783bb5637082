"""Edits the TOML and YAML files of hosts; comments and the form of all else stay. In YAML, the entry is one line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from navigator_kernel.errors import Damaged, Refused

if TYPE_CHECKING:
    from navigator_kernel.hosts.hosts import Entry

BY_HAND = "correct it, or write by hand what --dry-run shows for an empty project"


def put_toml(entry: Entry, data: bytes | None) -> bytes:
    import tomlkit
    from tomlkit.items import AoT

    _, held = load_toml(entry, data)
    place: Any = held
    for key in entry.keys[:-1]:
        if key not in place:
            place[key] = tomlkit.table(is_super_table=True)
        place = place[key]
        if not isinstance(place, dict):
            raise entry.refusal()
    key = entry.keys[-1]
    if entry.joins:
        there = place.get(key, [])
        if not isinstance(there, list):
            raise entry.refusal()
        new = [element for element in entry.elements() if element not in _plain(there)]
        if new and key not in place:
            place[key] = there = tomlkit.aot()
        for element in new:
            table = tomlkit.table() if isinstance(there, AoT) else tomlkit.inline_table()
            table.update(element)
            there.append(table)
        return tomlkit.dumps(held).encode() if new else data or b""
    if key in place:
        if not entry.is_in(_plain(place[key])):
            raise entry.refusal()
        return data or b""
    place[key] = entry.value
    return tomlkit.dumps(held).encode()


def take_toml(entry: Entry, data: bytes) -> bytes:
    import tomlkit

    _, held = load_toml(entry, data)
    chain: list[Any] = [held]
    for key in entry.keys[:-1]:
        if key not in chain[-1]:
            return data
        chain.append(chain[-1][key])
    key = entry.keys[-1]
    if key not in chain[-1]:
        return data
    there, ours = chain[-1][key], entry.elements()
    if entry.joins:
        if not isinstance(there, list):
            raise entry.refusal()
        gone = [at for at, element in enumerate(_plain(there)) if element in ours]
        if not gone:
            return data
        for at in reversed(gone):
            del there[at]
    if not entry.joins or not there:
        del chain[-1][key]
    for place, key in zip(reversed(chain[:-1]), reversed(entry.keys[:-1]), strict=True):
        if not place[key]:
            del place[key]
    return tomlkit.dumps(held).encode()


def _plain(item: Any) -> Any:
    return item.unwrap() if hasattr(item, "unwrap") else item


def load_toml(entry: Entry, data: bytes | None) -> tuple[Any, Any]:
    """The plain values, and the document."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse((data or b"").decode("utf-8"))
        return document.unwrap(), document
    except (TOMLKitError, UnicodeDecodeError) as error:
        raise Damaged(f"{str(entry.file)!r} is not TOML: {error}", hint=BY_HAND) from error


def put_yaml(entry: Entry, data: bytes | None) -> bytes:
    """The entry on one line, in the form of JSON, which is YAML, too."""
    import yaml

    there, text, root = load_yaml(entry, data)
    key, name = entry.keys
    table = _member(root, key)
    held = there.get(key) or {}
    if not isinstance(held, dict) or (name in held and not entry.is_in(held[name])):
        raise entry.refusal()
    if name in held:
        return data or b""
    line = "\r\n" if "\r\n" in text else "\n"
    value = json.dumps(entry.value, ensure_ascii=False)
    if table is None:
        at, added = len(text), f"{'' if text.endswith(line) or not text else line}{key}:{line}  {name}: {value}{line}"
    elif not isinstance(table[1], yaml.MappingNode):  # the key has no value
        at, added = table[0].end_mark.index + 1, f"{line}  {name}: {value}"
    elif table[1].flow_style:
        at, added = table[1].start_mark.index + 1, f"{json.dumps(name)}: {value}{', ' if table[1].value else ''}"
    else:
        first = table[1].value[0][0].start_mark
        at, added = first.index, f"{name}: {value}{line}{' ' * first.column}"
    new = text[:at] + added + text[at:]
    if _loaded(new) != {**there, key: {**held, name: entry.value}}:
        raise Refused(f"{str(entry.file)!r} cannot be edited safely", hint=BY_HAND)
    return new.encode()


def take_yaml(entry: Entry, data: bytes) -> bytes:
    there, text, root = load_yaml(entry, data)
    key, name = entry.keys
    table = _member(root, key)
    member = _member(table[1], name) if table else None
    if table is None or member is None:
        return data
    del there[key][name]
    rest = [node for node, _ in table[1].value if node is not member[0]]
    start, end = member[0].start_mark.index, member[1].end_mark.index
    after = next((node.start_mark.index for node in rest if node.start_mark.index > start), None)
    if table[1].flow_style:
        end = after or end
        start = start if after or not rest else text.rindex(",", 0, start)
    elif after is not None:
        end = after
    elif rest:
        start = text.rindex("\n", 0, start)
        end = start + len(text[start:end].rstrip())
    else:  # the key goes as well
        del there[key]
        start = table[0].start_mark.index
        if end < len(text) and text[end - 1] != "\n" and "\n" in text[end:]:
            end = text.index("\n", end) + 1
    new = text[:start] + text[end:]
    if (_loaded(new) or {}) != there:
        raise Refused(f"{str(entry.file)!r} cannot be edited safely", hint="remove the entry by hand")
    return new.encode()


def load_yaml(entry: Entry, data: bytes | None) -> tuple[Any, str, Any]:
    """The plain values, the text, and its nodes."""
    import yaml

    try:
        text = (data or b"").decode("utf-8")
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if root is None or (isinstance(root, yaml.MappingNode) and not root.flow_style):
            return yaml.safe_load(text) or {}, text, root
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, RecursionError) as error:  # of dates and tags, too
        problem = " ".join(str(error).split())
        raise Damaged(f"{str(entry.file)!r} is not YAML: {problem}", hint=BY_HAND) from error
    raise Refused(f"{str(entry.file)!r} cannot be edited safely", hint=BY_HAND)


def _member(node: Any, key: str) -> Any:
    """The nodes of the key and its value, or None."""
    pairs = node.value if node is not None and isinstance(node.value, list) else ()
    return next((pair for pair in pairs if isinstance(pair, tuple) and pair[0].value == key), None)


def _loaded(text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, LookupError, AttributeError):
        return None

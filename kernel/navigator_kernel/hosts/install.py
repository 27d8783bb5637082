"""Writes the entries of a host, and restores its files, byte for byte if nobody changed them."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.errors import Busy, Damaged, KernelError, Refused
from navigator_kernel.hosts import jsonc
from navigator_kernel.hosts.hosts import Entry, Host

if TYPE_CHECKING:
    from navigator_kernel.ports import Writer

LONGEST = 16 * 1024 * 1024  # bytes of a settings file
BY_HAND = "correct it, or write by hand what --dry-run shows for an empty project"


class Change(NamedTuple):
    """A file with its current and its new content; None if it does not exist. `names` are the keys that are new in an
    entry with names."""

    file: Path
    before: bytes | None
    after: bytes | None
    names: tuple[str, ...] = ()


class Installer(Struct, frozen=True, kw_only=True):
    """`kept` is the person's folder with notes of how each file was before."""

    root: Path
    kept: Path
    writer: Writer

    def install(self, host: Host) -> list[Change]:
        """The changes that an install would make; writes nothing."""
        changes: dict[Path, Change] = {}
        for entry in host.entries:
            file = self._file(entry.file, host)
            change = changes.get(file) or Change(file, now := _read(file), now)
            new = () if entry.names is None else (*change.names, *absent_names(entry, change.after))
            changes[file] = change._replace(after=set_entry(entry, change.after), names=new or change.names)
        return [change for change in changes.values() if change.after != change.before]

    def uninstall(self, host: Host) -> list[Change]:
        """The changes that an uninstall would make: the earlier content if nobody changed the file since, else the
        content without the entries. Refused for another value at an entry's place in a file that no install wrote."""
        changes: dict[Path, Change] = {}
        for entry in host.entries:
            file = self._file(entry.file, host)
            change = changes.get(file) or Change(file, now := _read(file), now)
            if change.after is not None:
                if not self._noted(file):
                    set_entry(entry, change.after)
                after = remove_entry(self._ours(entry, file), change.after, self._before(file))
                changes[file] = change._replace(after=after)
        changed = [change for change in changes.values() if change.after != change.before]
        return [change._replace(after=self._as_it_was(change, host)) for change in changed]

    def write(self, changes: Sequence[Change], *, back: bool = False) -> None:
        """Writes the changes, each after a note of how the file was; on the way `back` the empty folders that an
        install made and the notes are removed last. Busy if a file is not as it was read."""
        for change in changes:
            if _read(change.file) != change.before:
                raise Busy(f"{str(change.file)!r} was changed meanwhile", hint="try again")
            if not back:
                self._remember(change)
            if change.after is None:
                self.writer.remove(change.file)
            else:
                mode = 0o644
                with suppress(OSError):  # a settings file may be private to its owner
                    mode = change.file.stat().st_mode & 0o777
                self.writer.write(change.file, change.after, mode=mode)
        for change in changes if back else ():
            folders = self._noted(change.file).get("folders")
            for folder in folders if isinstance(folders, list) else ():
                with suppress(KernelError):
                    self.writer.remove_empty(Path(folder))
            self.writer.remove(self._note(change.file))

    def users(self, file: Path) -> list[str]:
        """The hosts that were installed into this file and not uninstalled since, by their names."""
        users = self._noted(Path(os.path.realpath(file))).get("users")
        return [str(user) for user in users] if isinstance(users, list) else []

    def note_user(self, host: Host, name: str, *, is_gone: bool = False) -> None:
        """Notes for each file with a note that the host `name` was installed into it, or `is_gone`."""
        for file in {Path(os.path.realpath(entry.file)) for entry in host.entries}:
            users = [user for user in self.users(file) if user != name]
            if note := dict(self._noted(file)):
                note["users"] = users if is_gone else [*users, name]
                self.writer.write(self._note(file), json.dumps(note).encode(), mode=0o600)

    def _as_it_was(self, change: Change, host: Host) -> bytes | None:
        """The content before the first install if only we changed the file since; it may have entries of an install
        that the person's own changes followed."""
        note = self._noted(change.file)
        if note.get("after") != _digest(change.before):
            return change.after
        data = self._before(change.file)
        for entry in host.entries if data is not None else ():
            if self._file(entry.file, host) == change.file:
                data = remove_entry(self._ours(entry, change.file), data or b"")
        return data

    def _before(self, file: Path) -> bytes | None:
        before = self._noted(file).get("before")
        return base64.b64decode(before) if isinstance(before, str) else None

    def _ours(self, entry: Entry, file: Path) -> Entry:
        """The entry with the names that installs have set; without a note of these, with its own."""
        noted = self._noted(file).get("names")
        return replace(entry, names=tuple(noted)) if entry.names is not None and isinstance(noted, list) else entry

    def _remember(self, change: Change) -> None:
        known = self._noted(change.file)
        if known.get("after") == _digest(change.before):  # two hosts share a file: keep its state before the first one
            before = known.get("before")
        else:
            before = None if change.before is None else base64.b64encode(change.before).decode()
        names = known.get("names")
        names = [*(names if isinstance(names, list) else ()), *change.names]
        missing = [str(folder) for folder in change.file.parents if not folder.exists()]  # which the write makes
        body = {"folders": missing, **known, "file": str(change.file), "before": before}
        body |= {"after": _digest(change.after), "names": names}
        self.writer.make_folder(self.kept)
        self.writer.write(self._note(change.file), json.dumps(body).encode(), mode=0o600)

    def _noted(self, file: Path) -> Mapping[str, object]:
        try:
            note = json.loads(self._note(file).read_bytes())
        except (OSError, ValueError):
            return {}
        return note if isinstance(note, dict) else {}

    def _note(self, file: Path) -> Path:
        return self.kept / f"{hashlib.sha256(os.fsencode(file)).hexdigest()[:24]}.json"

    def _file(self, file: Path, host: Host) -> Path:
        """The real path of the file; Refused for a project file that a link leads out of the project."""
        real = Path(os.path.realpath(file))
        if not host.mine and not real.is_relative_to(os.path.realpath(self.root)):
            raise Refused(f"{str(file)!r} leads out of the project", hint="make it a plain file")
        return real


def _read(file: Path) -> bytes | None:
    try:
        return read_bounded(file, LONGEST)
    except FileNotFoundError:
        return None


def _digest(data: bytes | None) -> str:
    return hashlib.sha256(data).hexdigest() if data is not None else ""


def set_entry(entry: Entry, data: bytes | None) -> bytes:
    """The file with the entry in it; the same bytes if it is there already. Damaged if the file cannot be parsed,
    Refused if another value is at the entry's place."""
    put = {"toml": put_toml, "yaml": put_yaml}.get(entry.form, _put_json)
    return put(entry, data)


def absent_names(entry: Entry, data: bytes | None) -> list[str]:
    """The names of the entry that have no value yet; Refused if something else than an object is at its place."""
    place = load_toml(entry, data)[0] if entry.form == "toml" else _json(entry, data)[0]
    for key in entry.keys:
        place = place.get(key, {}) if isinstance(place, dict) else place
    if entry.joins:
        elements = place if isinstance(place, list) else ()
        there = {element.get("path") for element in elements if isinstance(element, dict)}
    elif isinstance(place, dict):
        there = set(place)
    else:
        raise entry.refusal()
    return [name for name in entry.names or () if name not in there]


def remove_entry(entry: Entry, data: bytes, before: bytes | None = None) -> bytes:
    """The file without the entry, and without what this would leave empty, unless the file had it `before` the install;
    the same bytes if it is not there."""
    load: Callable[[Entry, bytes], tuple[Any, ...]] = _json
    if entry.form == "toml":
        load, shorter = load_toml, take_toml(entry, data)
    elif entry.form == "yaml":
        load, shorter = load_yaml, take_yaml(entry, data)
    else:
        shorter = _taken_from_json(entry, data, before)
    if shorter == data:
        return data
    # If the install added one piece of text, and it is there unchanged, the rest stays byte for byte
    before = before or b""
    after = set_entry(entry, before)
    start = _shared(before, after)
    end = len(after) - _shared(before[start:][::-1], after[start:][::-1])
    if after[:start] + after[end:] != before or data.count(after[start:end]) != 1:
        return shorter
    cut = data.replace(after[start:end], b"")
    if load is _json and cut.count(b",") > shorter.count(b","):  # a comma would stand at the end
        return shorter
    try:
        return cut if load(entry, set_entry(entry, cut))[0] == load(entry, data)[0] else shorter
    except KernelError:
        return shorter


def _shared(one: bytes, other: bytes) -> int:
    """The number of bytes at the beginning that both have."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def _put_json(entry: Entry, data: bytes | None) -> bytes:
    _, text, node = _json(entry, data)
    new: list[tuple[str | None, Any]] = [(key, entry.value) for key in entry.keys[-1:]]
    if entry.joins:
        new = [(None, element) for element in entry.elements()]
    elif entry.names is not None:
        new = [(name, entry.value) for name in absent_names(entry, data)]
    path = entry.keys if entry.joins or entry.names is not None else entry.keys[:-1]
    for at, key in enumerate(path):
        child = next((child for child in node.children if child.key == key), None)
        if child is None:
            value: Any = [element for _, element in new] if entry.joins else dict(new)
            for inner in reversed(path[at + 1 :]):
                value = {inner: value}
            return jsonc.add(text, node, [(key, value)]).encode() if new else data or b""
        node = child.node
        if not isinstance(node.value, list if entry.joins and at == len(path) - 1 else dict):
            raise entry.refusal()
    if entry.joins:
        new = [(None, element) for _, element in new if element not in node.value]
    elif entry.names is None and entry.keys[-1] in node.value:
        if not entry.is_in(node.value[entry.keys[-1]]):
            raise entry.refusal()
        new = []
    return jsonc.add(text, node, new).encode() if new else data or b""


def _taken_from_json(entry: Entry, data: bytes, before: bytes | None) -> bytes:
    _, text, node = _json(entry, data)
    path = entry.keys if entry.joins or entry.names is not None else entry.keys[:-1]
    chain = [node]
    for key in path:
        child = next((child for child in node.children if child.key == key), None)
        if child is None:
            return data
        node = child.node
        chain.append(node)
    gone = [
        at
        for at, child in enumerate(node.children)
        if (entry.joins and child.node.value in entry.elements())
        or (entry.names is not None and child.key in entry.names and child.node.value == entry.value)
        or (entry.names is None and not entry.joins and child.key == entry.keys[-1])
    ]
    was = jsonc.parse(before.decode()).value if before and before.strip() else {}
    if not gone or (entry.is_frame and (entry.keys[0] in was or node.value.keys() - was.keys() != set(entry.keys))):
        return data
    while len(chain) > 1 and len(gone) == len(node.children) and (len(gone) > 1 or jsonc.is_bare(text, node)):
        held = was
        for key in path[: len(chain) - 1]:
            held = held.get(key) if isinstance(held, dict) else None
        if held is not None:
            break
        chain.pop()
        key, node = path[len(chain) - 1], chain[-1]
        gone = [at for at, child in enumerate(node.children) if child.key == key]
    return jsonc.remove(text, node, gone).encode()


def _json(entry: Entry, data: bytes | None) -> tuple[Any, str, jsonc.Node]:
    """The plain values, the text, and its nodes."""
    try:
        text = data.decode("utf-8") if data and data.strip() else "{}\n"
        if entry.form == "json":
            json.loads(text.removeprefix("\ufeff"))
        node = jsonc.parse(text)
    except (ValueError, RecursionError) as error:
        kind = "plain JSON" if entry.form == "json" else "JSON with comments"
        hint = "correct it, or write the entry by hand"
        raise Damaged(f"{str(entry.file)!r} is not {kind}: {error}", hint=hint) from error
    if not isinstance(node.value, dict):
        raise Damaged(f"{str(entry.file)!r} holds no object", hint="correct it, or write the entry by hand")
    return node.value, text, node


# TOML and YAML: comments and the form of all else stay. In YAML, the entry is one line.


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

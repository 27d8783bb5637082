"""The lock file `skills.lock.json`, for version control: what the project wants. The table `skills.db` derives from
folders and receipts: what is here (LIF-13, X-38)."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from navigator_kernel.adapters.files.database import read_rows, table_bytes
from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.errors import Damaged, KernelError, Refused
from navigator_kernel.skills.catalog.receipts import tree_digest
from navigator_kernel.skills.formats.names import NAME
from navigator_kernel.text import clean, lazy_compile
from navigator_kernel.values.receipt import Receipt, receipt_from

if TYPE_CHECKING:
    from pathlib import Path

    from navigator_kernel.skills.catalog.place import InstallScope
    from navigator_kernel.skills.install.deps import InstallDeps
    from navigator_kernel.values.resource import SkillDef


VERSION = 1
_SIZE_LIMIT = 64 * 1024 * 1024  # bytes
_LEFT_OUT = frozenset({"v", "name", "installed_at", "can"})  # times would differ between machines; bytes say the rest
_FIELDS = frozenset(Receipt.__struct_fields__)
CONFLICT = lazy_compile(rb"^(<{7}|>{7}) ", re.MULTILINE)

Entries = Mapping[str, Mapping[str, Any]]


def read_lock(path: Path) -> Entries:
    """The entries by name, empty without a file; Damaged if it cannot be read."""
    try:
        content = read_bounded(path, _SIZE_LIMIT)
    except FileNotFoundError:
        return {}
    except Refused as error:
        raise _damaged(path, "cannot be read") from error
    return entries_in(content, path)


def entries_in(content: bytes, path: Path) -> Entries:
    """The entries in the bytes of a lock; Damaged if they are none, with `conflict` if git could not merge them."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        if CONFLICT.search(content):
            hint = "navigator doctor --repair merges it, entry by entry"
            message = f"{str(path)!r} has conflict markers"
            raise Damaged(message, hint=hint, path=str(path), conflict=True) from error
        raise _damaged(path, "cannot be read") from error
    entries = data.get("skills") if isinstance(data, dict) else None
    if not isinstance(entries, dict) or not all(isinstance(entry, dict) for entry in entries.values()):
        raise _damaged(path, "is not a lock of skills")
    if (version := data.get("version")) != VERSION:
        if isinstance(version, int) and version > VERSION:
            hint = "a newer version wrote it: update this program, or take the file from version control"
            raise Damaged(
                f"{str(path)!r} has the version {version}, not {VERSION}", hint=hint, path=str(path), newer=True
            )
        raise _damaged(path, f"has the version {version!r}, not {VERSION}")
    return entries


def lock_bytes(
    entries: Entries,
    receipts: Iterable[Receipt] = (),
    gone: Collection[str] = (),
    made: Mapping[str, Mapping[str, Any] | None] | None = None,
) -> bytes:
    """The lock with `entries`, but for those in `gone`, and with an entry for each of `receipts`. An earlier lock that
    is kept has also the entries that the change `made`, None for one that it removed."""
    skills = {name: entry for name, entry in entries.items() if name not in gone}
    skills |= {receipt.name: lock_entry(receipt) for receipt in receipts}
    whole = {"version": VERSION, "skills": skills} | ({} if made is None else {"made": made})
    return _written(whole)


def with_unknown(lock: bytes, before: bytes) -> bytes:
    """`lock` with what the earlier lock `before` has beside the fields of this version, in the whole and in the entries
    that both have: people and newer versions write such fields."""
    old, new = json.loads(before), json.loads(lock)
    for name, entry in new["skills"].items():
        unknown = {key: value for key, value in old["skills"].get(name, {}).items() if key not in _FIELDS}
        new["skills"][name] = unknown | entry
    whole = {key: value for key, value in old.items() if key != "made"} | new
    return _written(whole)


def _written(whole: Mapping[str, Any]) -> bytes:
    return (json.dumps(whole, ensure_ascii=False, indent=2, sort_keys=True) + "\n").encode()


def lock_entry(receipt: Receipt) -> dict[str, Any]:
    return {key: value for key, value in receipt.to_dict().items() if key not in _LEFT_OUT}


def receipts_in(entries: Entries, place: InstallScope, deps: InstallDeps) -> dict[str, Receipt]:
    """The entries of a lock file as receipts; Damaged for an invalid entry."""
    now, receipts = deps.clock.now(), {}
    for name, entry in entries.items():
        try:
            receipts[name] = receipt_from({**entry, "v": 1, "name": name, "installed_at": now})
            if not NAME.fullmatch(name):
                raise ValueError("it is not a name")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _bad_entry(f"the lock's entry of {name!r} cannot be read", place) from error
        if tree_digest(receipts[name].files) != receipts[name].digest:
            raise _bad_entry(f"the lock's entry of {name!r} has a digest that is not that of its files", place)
    return receipts


def _bad_entry(message: str, place: InstallScope) -> Damaged:
    hint = "navigator doctor --repair rebuilds it if the skill is installed; else take it from version control"
    return Damaged(message, hint=hint, path=str(place.lock))


LockState = Literal["same", "missing", "extra", "stale"]


def lock_states(entries: Entries | None, receipts: Mapping[str, Receipt], folder: Path) -> Mapping[str, LockState]:
    """How each skill in `folder` compares with the lock: it is `missing` (without receipt or files), `extra` (the lock
    does not want it), or `stale` (the lock wants another source, or other bytes). Without a lock nothing is compared.
    """
    if entries is None:
        return dict.fromkeys(receipts, "same")
    states: dict[str, LockState] = {}
    for name in sorted({*entries, *receipts}):
        receipt = receipts.get(name)
        if name not in entries:
            states[name] = "extra"
        elif receipt is None or not os.path.lexists(folder / name):
            states[name] = "missing"
        else:
            states[name] = "same" if pin(entries[name]) == pin(lock_entry(receipt)) else "stale"
    return states


def wanted_entries(place: InstallScope) -> Entries | None:
    """The entries of the lock; None if the place has no lock."""
    return read_lock(place.lock) if os.path.lexists(place.lock) else None


def pin(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """What an entry pins: where the skill comes from, under which name, and its bytes."""
    keys = ("source", "ref", "commit", "subpath", "declared", "digest")
    return tuple(str(entry.get(key) or "") for key in keys)


def _damaged(path: Path, what: str) -> Damaged:
    return Damaged(f"{str(path)!r} {what}", hint="navigator doctor --repair rebuilds it", path=str(path))


_MANIFEST_LIMIT = 10 * 1024 * 1024  # bytes
_MARK = "tree_digest"  # column of our own rows; other rows are kept unless the table is rebuilt


def records_bytes(
    place: InstallScope,
    receipts: Mapping[str, Receipt],
    *,
    coming: Mapping[str, SkillDef] | None = None,
    rebuild: bool = False,
    damaged: Sequence[str] = (),
) -> bytes:
    """The new contents of skills.db. `coming` are skills that are not in their places yet; the rows of skills in
    `damaged`, whose receipts cannot be read, stay. `rebuild` drops the other rows of the old file, which then need not
    be readable."""
    rows_now = [] if rebuild else read_rows(place.database)
    others = [row for row in rows_now if _MARK not in row or row.get("name") in damaged]
    siblings = Counter(receipt.source for receipt in receipts.values())
    coming = coming or {}
    rows = [_row(receipts[name], place, siblings, coming.get(name)) for name in sorted(receipts)]
    path = place.inner / "none" if rebuild else place.database
    return table_bytes(path, [*rows, *others])


def manifest_in(folder: Path) -> SkillDef | None:
    """The skill in an installed folder, or None if its manifest is missing or cannot be used."""
    from navigator_kernel.skills.formats.manifest import read_manifest  # `list` compares locks and reads no manifest

    for name in ("SKILL.md", "skill.md"):
        try:
            data = read_bounded(folder / name, _MANIFEST_LIMIT)
            return read_manifest(data, path=folder / name, folder=folder)
        except FileNotFoundError:
            continue
        except KernelError:
            return None
    return None


def repository_of(source: str) -> str:
    """`owner/repo` of a GitHub URL, else empty."""
    from navigator_kernel.skills.source.address import GITHUB

    return source.removeprefix(GITHUB).removesuffix(".git") if source.startswith(GITHUB) else ""


def _row(receipt: Receipt, place: InstallScope, siblings: Mapping[str, int], coming: SkillDef | None) -> dict[str, Any]:
    folder = place.skills / receipt.name
    skill = coming or manifest_in(folder)
    repository = repository_of(receipt.source)
    child = bool(receipt.subpath)
    description = clean(skill.description, lines=False) if skill else ""
    words = (receipt.name, description, *(skill.tags + skill.keywords_cn if skill else ()))
    return {
        "id": receipt.name,
        "name": receipt.name,
        "folder_name": receipt.name,
        "description": description,
        "category": _clean(skill.category) if skill else "",
        "tags": [_clean(tag) for tag in skill.tags] if skill else [],
        "keywords_cn": [_clean(word) for word in skill.keywords_cn] if skill else [],
        "package_type": "child" if child else "standalone",
        "parent": (repository or receipt.source).rpartition("/")[2].removesuffix(".git") if child else "",
        "parent_repo": repository if child else "",
        "child_count": 0 if child else siblings[receipt.source] - 1,
        "repo": repository or receipt.source,
        "stars": None,
        "install": f"install {repository or receipt.source}" + (f" --skill {receipt.name}" if child else ""),
        "installed": coming is not None or folder.is_dir(),
        "installed_path": place.told(folder),
        "last_updated": receipt.installed_at,
        "synced_at": receipt.installed_at,
        "search_index": _clean(" ".join(words)).casefold(),
        "source_file": "github" if repository else "manual",
        "commit": receipt.commit,
        _MARK: receipt.digest,
        "kind": skill.kind if skill else "B",
    }


def _clean(text: str) -> str:
    return clean(text, lines=False)

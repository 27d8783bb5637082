"""The lock file `skills.lock.json`, for version control, and the table `skills.db`: both derive from folders and
receipts (LIF-13, X-38)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from navigator_kernel.adapters.files.database import read_rows, table_bytes
from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.errors import Damaged, KernelError, Refused
from navigator_kernel.skills.formats.manifest import read_manifest
from navigator_kernel.skills.source.address import GITHUB
from navigator_kernel.text import clean

if TYPE_CHECKING:
    from pathlib import Path

    from navigator_kernel.skills.catalog.place import InstallScope
    from navigator_kernel.values.receipt import Receipt
    from navigator_kernel.values.resource import SkillDef


VERSION = 1
_SIZE_LIMIT = 64 * 1024 * 1024  # bytes
_LEFT_OUT = frozenset({"v", "name", "installed_at"})  # times would differ between machines

Entries = Mapping[str, Mapping[str, Any]]


def read_lock(path: Path) -> Entries:
    """The entries by name, empty without a file; Damaged if it cannot be read."""
    try:
        data = json.loads(read_bounded(path, _SIZE_LIMIT))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError, Refused) as error:
        raise _damaged(path, "cannot be read") from error
    entries = data.get("skills") if isinstance(data, dict) else None
    if not isinstance(entries, dict) or not all(isinstance(entry, dict) for entry in entries.values()):
        raise _damaged(path, "is not a lock of skills")
    if data.get("version") != VERSION:
        raise _damaged(path, f"has the version {data.get('version')!r}, not {VERSION}")
    return entries


def lock_bytes(entries: Entries, receipts: Iterable[Receipt], gone: Sequence[str] = ()) -> bytes:
    """The lock with an entry for each of `receipts`, and the entries of skills that are not installed here, without
    those in `gone`."""
    skills = {name: entry for name, entry in entries.items() if name not in gone}
    skills |= {receipt.name: _entry(receipt) for receipt in receipts}
    whole = {"version": VERSION, "skills": skills}
    return (json.dumps(whole, ensure_ascii=False, indent=2, sort_keys=True) + "\n").encode()


def _entry(receipt: Receipt) -> dict[str, Any]:
    return {key: value for key, value in receipt.to_dict().items() if key not in _LEFT_OUT}


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

"""The receipts of installed skills, one file each, from which all other records derive (X-38), and the digests in
them."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from navigator_kernel.adapters.files.writer import read_bounded, seal_file
from navigator_kernel.errors import Damaged, IntegrityMismatch, NotFound, Refused
from navigator_kernel.skills.formats.names import NAME
from navigator_kernel.text import lazy_compile
from navigator_kernel.values.receipt import FILE_LIMIT, VERSION, InstalledFile, Receipt, receipt_from

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from navigator_kernel.skills.catalog.place import InstallScope


_SIZE_LIMIT = 4 * 1024 * 1024  # bytes


def read_receipts(place: InstallScope, damaged: list[str] | None = None) -> Mapping[str, Receipt]:
    """All receipts by name. An unreadable one raises Damaged, or its name is added to `damaged`."""
    receipts: dict[str, Receipt] = {}
    for path in sorted(place.inner.glob("*.json")):
        try:
            if receipt := read_receipt(place, path.stem):
                receipts[path.stem] = receipt
        except Damaged:
            if damaged is None:
                raise
            damaged.append(path.stem)
    return receipts


def read_receipt(place: InstallScope, name: str) -> Receipt | None:
    """The receipt of skill `name`, or None; Damaged if it cannot be read."""
    return receipt_in(place.inner, name)


def receipt_in(inner: Path, name: str) -> Receipt | None:
    """The same, given the folder of receipts."""
    if not NAME.fullmatch(name):
        return None
    path = inner / f"{name}.json"
    try:
        raw = json.loads(read_bounded(path, _SIZE_LIMIT))
        receipt = receipt_from(raw)
        if receipt.name != name or receipt.v > VERSION:
            raise ValueError("it belongs to another skill or a newer version")
        [text.encode() for text in (receipt.source, receipt.digest, receipt.commit, receipt.subpath)]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, Refused) as error:
        hint = "navigator doctor --repair makes it again, if the lock still knows the skill"
        raise Damaged(f"the receipt {str(path)!r} cannot be read", hint=hint, path=str(path)) from error
    return receipt


def receipt_bytes(receipt: Receipt) -> bytes:
    return (json.dumps(receipt.to_dict(), ensure_ascii=False, indent=1) + "\n").encode()


def folder_digest(folder: Path, receipt: Receipt | None = None) -> str:
    """`sha256:<hex>` over the path, mode and content of every file of the skill in `folder`; Refused for links and
    special files."""
    return tree_digest(skill_files(folder, receipt))


def skill_files(folder: Path, receipt: Receipt | None = None) -> tuple[InstalledFile, ...]:
    """`folder_files` without what systems, editors and interpreters leave there (`is_left_behind`). Those that the
    source itself has, as `receipt` states, count as they were installed: a system rewrites them at will.

    A file that another file of the skill names is the skill's own, whatever it is called: it may be run or read."""
    present = folder_files(folder)
    before = [file for file in receipt.files if is_left_behind(file.path)] if receipt else []
    left = {file.path for file in (*present, *before) if is_left_behind(file.path)}
    if not left:
        return present
    own = [file for file in present if file.path not in left]
    named = _named(folder, own, left)
    own += [file for file in present if file.path in named]
    own += [file for file in before if file.path not in named]
    return tuple(sorted(own, key=lambda file: file.path))


_SYSTEM = frozenset(
    ".ds_store thumbs.db ehthumbs.db desktop.ini .directory .localized .coverage .apdisk .volumeicon.icns".split()
)
_EDITOR = lazy_compile(
    r"(?:[^/]+~|#[^/]+#|\.#[^/]+|\._[^/]+|\.[^/]+\.sw[a-z]|\.[^/]+\.kate-swp|[^/]+\.(?:bak|orig|save)|\.~lock\.[^/]+#"
    r"|~\$[^/]+|\.nfs[0-9a-f]+|\.fuse_hidden[0-9a-f]+|4913)"
)
# Folders that only tools write
_CACHES = frozenset(
    """.pytest_cache .mypy_cache .ruff_cache .hypothesis .ipynb_checkpoints .idea .vscode .trashes .appledouble
    .spotlight-v100 .fseventsd .trash-1000""".split()
)
_COMPILED = lazy_compile(r"(?:[^/]+/)*__pycache__/[^/]+\.py[co](?:\.\d+)?")


def is_left_behind(path: str) -> bool:
    """Whether the file at `path` of a skill is of the kind that a system, an editor or an interpreter leaves. A run
    never reads its bytecode: its processes keep theirs elsewhere."""
    name = path.rpartition("/")[2]
    folders = {folder.lower() for folder in path.split("/")[:-1]}
    is_named = name.lower() in _SYSTEM or not folders.isdisjoint(_CACHES)
    return is_named or bool(_EDITOR.fullmatch(name) or _COMPILED.fullmatch(path))


def _named(folder: Path, own: Iterable[InstalledFile], left: Iterable[str]) -> frozenset[str]:
    """Those of `left` that one of the files `own` names; all of them if one cannot be read."""
    names = {path: path.rpartition("/")[2].encode("utf-8", errors="surrogateescape") for path in left}
    found: set[str] = set()
    for file in own:
        try:
            data = read_bounded(folder / file.path, FILE_LIMIT)
        except (OSError, Refused):
            return frozenset(names)
        found |= {path for path, name in names.items() if name in data}
    return frozenset(found)


def file_digest(path: Path) -> str:
    """`sha256:<hex>` of one regular file's content."""
    return f"sha256:{seal_file(path).sha256}"


def tree_digest(files: Iterable[InstalledFile]) -> str:
    """The digest of a folder with exactly these files, in any order."""
    digest = hashlib.sha256()
    for file in sorted(files, key=lambda file: file.path):
        line = f"{file.path}\0{file.mode:04o}\0{file.sha256}\n"
        digest.update(line.encode("utf-8", errors="surrogateescape"))
    return f"sha256:{digest.hexdigest()}"


def folder_files(folder: Path) -> tuple[InstalledFile, ...]:
    """Every file below `folder`, by path; Refused for links and special files, NotFound without a folder,
    IntegrityMismatch if another process changes it meanwhile."""
    if folder.is_symlink():
        raise Refused(f"{str(folder)!r} is a link", hint="use the folder that it points to")
    if not folder.is_dir():
        raise NotFound(f"there is no folder {str(folder)!r}", hint="check the path")
    try:
        return tuple(sorted(_files(folder, ""), key=lambda file: file.path))
    except FileNotFoundError as error:
        raise IntegrityMismatch(f"{str(folder)!r} changed while it was read", hint="try again") from error


def _files(folder: Path, prefix: str) -> Iterator[InstalledFile]:
    with os.scandir(folder) as entries:
        listed = list(entries)
    for entry in listed:
        path = f"{prefix}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from _files(Path(entry.path), f"{path}/")
        elif not (entry.name.startswith(".#") and entry.is_symlink() and not Path(entry.path).exists()):  # of Emacs
            seal = seal_file(Path(entry.path))
            yield InstalledFile(path=path, sha256=seal.sha256, mode=seal.mode, size=seal.size)

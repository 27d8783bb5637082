"""Exports installed skills to folders or reproducible archives, and to the forms in which others read them."""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec import Struct

from navigator_kernel.adapters.files.project_files import refuse_named
from navigator_kernel.adapters.files.writer import FolderWriter, read_bounded
from navigator_kernel.errors import IntegrityMismatch, KernelError, Refused, UsageProblem
from navigator_kernel.skills.catalog.place import at_rest
from navigator_kernel.skills.catalog.receipts import folder_files, read_receipt, tree_digest
from navigator_kernel.skills.source.gate import SKILL_LIMIT
from navigator_kernel.text import clean
from navigator_kernel.values.receipt import InstalledFile, Receipt

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from navigator_kernel.skills.install.inventory import Installed

Form = Literal["well-known", "plugin", "marketplace", "skills-lock", "zip"]

ENDINGS = (".skill", ".zip")
INDEX = ".well-known/agent-skills"  # a folder; discovery RFC 0.2.0
_SCHEMA = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
MARKETPLACE = ".claude-plugin/marketplace.json"
PLUGIN = ".claude-plugin/plugin.json"
AGENT_PLUGIN = "plugin.json"  # Agent Plugins 1.0.0, whose skills lie where Claude Code's plugins have theirs
_PLUGIN_SCHEMA = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
LOCK = "skills-lock.json"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip archive can store
_LEFT_OUT = frozenset({".git", "__pycache__"})
_ODD_NAME = "a site publishes only names of up to 64 letters a to z and digits, with '-' between"


class _File(NamedTuple):
    data: bytes
    mode: int


class _Copy(Struct, frozen=True, kw_only=True):
    """A skill to export: its files by path, and its receipt if it has one."""

    name: str
    description: str
    files: Mapping[str, _File]
    digest: str
    changed: bool = False
    receipt: Receipt | None = None

    def to_dict(self, path: Path) -> dict[str, Any]:
        size = sum(len(file.data) for file in self.files.values())
        base = {"name": self.name, "path": str(path), "files": len(self.files), "bytes": size}
        return {**base, "digest": self.digest, "changed_since_installed": self.changed}


def export(
    skills: Sequence[Installed], target: Path, kept: Sequence[Path], *, packed: str, force: bool, dry_run: bool
) -> dict[str, Any]:
    """`{target, form, dry_run, changed, skills: [{name, path, files, bytes, digest, changed_since_installed}]}`.

    A `target` that ends in .skill or .zip becomes one archive, any other a folder with a folder for each skill, or with
    `packed` a file NAME with that ending. Refused if something is there (`force` replaces a skill or an archive,
    nothing else), for links, and below `kept`, the folders of installed skills.
    """
    whole = target.suffix.lower() in ENDINGS
    if target.suffix.lower() == ".skill" and len(skills) > 1:
        raise UsageProblem(f"a .skill file holds one skill, not {len(skills)}", hint="name a .zip file, or a folder")
    copies = [_copied(skill) for skill in skills]
    ways = {copy.name: target if whole else target / f"{copy.name}{packed}" for copy in copies}
    _refuse_place(target, whole=whole)
    refuse_kept(ways.values(), kept)
    _refuse_taken(ways.values(), force=force, archives=whole or bool(packed))
    if not dry_run:
        writer = FolderWriter([target])
        groups = [copies] if whole else [[copy] for copy in copies]
        for group in groups:
            way = ways[group[0].name]
            writer.write(way, _archive(group)) if whole or packed else _write_folder(group[0], way, writer)
    told = [copy.to_dict(ways[copy.name]) for copy in copies]
    form = "archive" if whole or packed else "folder"
    return {"target": str(target), "form": form, "dry_run": dry_run, "changed": True, "skills": told}


def publish(
    skills: Sequence[Installed], target: Path, kept: Sequence[Path], form: Form, *, force: bool, dry_run: bool
) -> dict[str, Any]:
    """The same as `export`, in a form that others read: below the folder `target` the files of a site with its index
    (`well-known`), of a plugin (of Claude Code and of Agent Plugins 1.0.0) or of a repository that is a marketplace of
    Claude Code, or its lock of the npm package `skills`.

    Refused if one of the files is there (`force` replaces it); UsageProblem for a lock if the source of a skill has no
    form in it, or if `target` is called like an archive. `left_out` are the skills that no client takes from a site.
    """
    from navigator_kernel.adapters.sources.published import NAME
    from navigator_kernel.skills.install.import_lock import foreign_entry

    if target.suffix.lower() in ENDINGS:
        raise UsageProblem(f"--as {form} writes a folder, not an archive", hint="name a folder, or leave --as out")
    copies = sorted(map(_copied, skills), key=lambda copy: copy.name)
    left_out = {one.name: _ODD_NAME for one in copies if form == "well-known" and not NAME.fullmatch(one.name)}
    if len(left_out) == len(copies):
        raise UsageProblem(f"{', '.join(left_out)}: {_ODD_NAME}", hint="rename the skill, or leave --as out")
    copies = [one for one in copies if one.name not in left_out]
    if form == "well-known":
        files = _site(copies)
    elif form != "skills-lock":
        files = _plugin(copies, target.name, form)
    else:
        entries = {
            copy.name: foreign_entry(copy.name, copy.receipt, {path: file.data for path, file in copy.files.items()})
            for copy in copies
        }
        files = {LOCK: _json({"version": 1, "skills": entries})}
    ways = {target / path: file for path, file in files.items()}
    _refuse_place(target, whole=False)
    refuse_kept(ways, kept)
    _refuse_taken(ways, force=force, archives=True)
    if not dry_run:
        writer = FolderWriter([target])
        for path, file in ways.items():
            writer.write(path, file.data, mode=file.mode)
    rows = [copy.to_dict(target) for copy in copies]
    base = {"target": str(target), "form": form, "dry_run": dry_run, "changed": True, "skills": rows}
    return {**base, "left_out": left_out}


def served_site(skills: Iterable[Installed], limit: int) -> tuple[dict[str, bytes], dict[str, str]]:
    """The files of a site that publishes the skills, by path below `INDEX`, and why the others are left out: they
    cannot be read, were changed since they were installed, have a name that no client takes, or are over `limit` bytes
    together."""
    from navigator_kernel.adapters.sources.published import NAME

    copies: list[_Copy] = []
    left_out: dict[str, str] = {}
    for skill in skills:
        try:
            copy = _copied(skill)
        except (KernelError, OSError) as error:
            left_out[skill.skill.name] = str(error)
            continue
        if not NAME.fullmatch(copy.name):
            left_out[copy.name] = _ODD_NAME
            continue
        limit -= sum(len(file.data) for file in copy.files.values())
        if copy.changed or limit < 0:
            left_out[copy.name] = "it was changed since it was installed" if copy.changed else "the site is too large"
        else:
            copies.append(copy)
    return {path.removeprefix(f"{INDEX}/"): file.data for path, file in _site(copies).items()}, left_out


def _site(copies: Sequence[_Copy]) -> dict[str, _File]:
    """A skill that is only a manifest is published as that, any other one as an archive with its files at the top."""
    files: dict[str, _File] = {}
    rows = []
    for copy in copies:
        is_lone = [*copy.files] == ["SKILL.md"]
        path = f"{copy.name}/SKILL.md" if is_lone else f"{copy.name}.zip"
        data = copy.files["SKILL.md"].data if is_lone else _archive([copy], nested=False)
        files[f"{INDEX}/{path}"] = _File(data, 0o644)
        kind = "skill-md" if is_lone else "archive"
        row = {"name": copy.name, "type": kind, "description": copy.description, "url": path}
        rows.append({**row, "digest": f"sha256:{_sha256(data)}"})
    return {**files, f"{INDEX}/index.json": _json({"$schema": _SCHEMA, "skills": rows})}


def _plugin(copies: Sequence[_Copy], folder: str, form: Form) -> dict[str, _File]:
    """One plugin with all skills, named after the folder, or a marketplace with it, of the same name."""
    name = "-".join("".join(mark if mark.isascii() and mark.isalnum() else " " for mark in folder.lower()).split())
    name = name[:64].strip("-") or "skills"
    files = {f"skills/{copy.name}/{path}": file for copy in copies for path, file in copy.files.items()}
    if form == "marketplace":
        paths = [f"./skills/{copy.name}" for copy in copies]
        plugin = {"name": name, "source": "./", "strict": False, "skills": paths}
        return {**files, MARKETPLACE: _json({"name": name, "owner": {"name": folder}, "plugins": [plugin]})}
    about = copies[0].description if len(copies) == 1 else f"The skills {', '.join(copy.name for copy in copies)}"
    manifest = {"name": name, "description": about}
    return {**files, PLUGIN: _json(manifest), AGENT_PLUGIN: _json({"$schema": _PLUGIN_SCHEMA, **manifest})}


def _json(value: object) -> _File:
    return _File((json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode(), 0o644)


def refuse_kept(paths: Iterable[Path], kept: Iterable[Path]) -> None:
    """Refused if a real path lies in a folder of `kept` or contains one."""
    folders = [Path(os.path.realpath(folder)) for folder in kept]
    for path in paths:
        real = Path(os.path.realpath(path.parent), path.name)
        if any(real.is_relative_to(folder) or folder.is_relative_to(real) for folder in folders):
            hint = "name another place; navigator skill install changes the installed skills"
            raise Refused(f"{str(path)!r} is where skills are installed", hint=hint)


def _copied(one: Installed) -> _Copy:
    """Reads the files. Refused for links and special files, IntegrityMismatch if a file changes meanwhile."""
    skill = one.skill
    if skill.folder is None:
        data = read_bounded(skill.path, SKILL_LIMIT)
        digest = tree_digest([InstalledFile(path="SKILL.md", sha256=_sha256(data), mode=0o644, size=len(data))])
        lone = {"SKILL.md": _File(data, 0o644)}
        return _Copy(name=skill.name, description=skill.description, files=lone, digest=digest)
    with at_rest(one.place):  # so that the files and the receipt are of one version
        receipt = one.receipt and read_receipt(one.place, skill.folder.name)
        listed = folder_files(skill.folder)
        changed = receipt is not None and tree_digest(listed) != receipt.digest
        if receipt is None:
            listed = tuple(file for file in listed if not _LEFT_OUT & set(file.path.split("/")))
        if sum(file.size for file in listed) > SKILL_LIMIT:
            message = f"skill {skill.name!r} is over {SKILL_LIMIT} bytes"
            raise Refused(message, hint="nobody could install it; move large files out", reason="too-large")
        files: dict[str, _File] = {}
        for file in listed:
            shown = clean(file.path, lines=False)
            if "\\" in file.path or shown != file.path:
                raise Refused(f"{shown!r} is not a plain path", hint="give the file a plain name", reason="path-odd")
            refuse_named(file.path.split("/"), file.path)
            data = read_bounded(skill.folder / file.path, SKILL_LIMIT)
            if _sha256(data) != file.sha256:
                raise IntegrityMismatch(
                    f"{str(skill.folder / file.path)!r} changed while it was read", hint="try again"
                )
            files[file.path] = _File(data, file.mode)
    return _Copy(
        name=skill.name,
        description=skill.description,
        files=files,
        digest=tree_digest(listed),
        changed=changed,
        receipt=receipt,
    )


def _refuse_place(target: Path, *, whole: bool) -> None:
    if target.is_symlink():
        raise Refused(f"{str(target)!r} is a link", hint="name what it points to")
    if not whole and os.path.lexists(target) and not target.is_dir():
        raise Refused(f"{str(target)!r} is not a folder", hint="name a folder, or a file that ends in .skill or .zip")


def _refuse_taken(paths: Iterable[Path], *, force: bool, archives: bool) -> None:
    taken = [path for path in dict.fromkeys(paths) if os.path.lexists(path)]
    if taken and not force:
        shown = ", ".join(repr(str(path)) for path in taken[:5])
        raise Refused(f"already exists: {shown}", hint="--force replaces it", paths=[str(path) for path in taken])
    for path in taken:
        if archives:
            is_ours, what = path.is_file(), "an archive"
        else:
            is_ours = path.is_dir() and any(entry.name.lower() == "skill.md" for entry in path.iterdir())
            what = "a skill"
        if path.is_symlink() or not is_ours:
            raise Refused(f"{str(path)!r} exists and is not {what}", hint="move it away, or name another place")


def _archive(copies: Sequence[_Copy], *, nested: bool = True) -> bytes:
    """A zip archive with a folder for each skill, or the files of one at its top; equal skills give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for copy in sorted(copies, key=lambda copy: copy.name):
            for path, file in sorted(copy.files.items()):
                info = zipfile.ZipInfo(f"{copy.name}/{path}" if nested else path, _EPOCH)
                info.create_system = 3  # Unix on every system, because the modes are Unix modes
                info.external_attr = (0o100000 | file.mode) << 16
                archive.writestr(info, file.data, zipfile.ZIP_DEFLATED, 9)
    return buffer.getvalue()


def _write_folder(copy: _Copy, path: Path, writer: FolderWriter) -> None:
    """Writes the folder atomically."""
    staged = path.with_name(f".navigator-{secrets.token_hex(8)}.tmp")
    try:
        for name, file in sorted(copy.files.items()):
            writer.write(staged / name, file.data, mode=file.mode)
        writer.remove(path)
        writer.move(staged, path)
    except BaseException:
        writer.remove(staged)
        raise


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()

"""Converts a file to a SKILL.md, and checks the skills at a path."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct, UnsetType

from navigator_kernel.adapters.files.writer import FolderWriter, read_bounded
from navigator_kernel.errors import KernelError, NotFound, Refused
from navigator_kernel.skills.formats.frontmatter import FILE_LIMIT
from navigator_kernel.skills.formats.layouts import detect_format, to_canonical
from navigator_kernel.skills.formats.manifest import read_manifest
from navigator_kernel.text import clean

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from navigator_kernel.values.resource import Diagnostic

_LIMIT = 16 * 1024 * 1024  # bytes of a file that is read


class ConvertResult(Struct, frozen=True, kw_only=True):
    """`text` is the new SKILL.md, if it was not written."""

    path: str
    layout: str
    name: str
    dry_run: bool
    out: str
    changed: bool
    text: str | UnsetType = UNSET


class ValidatedSkill(Struct, frozen=True, kw_only=True):
    name: str
    path: str
    ok: bool
    findings: list[dict[str, Any]]


class ValidateResult(Struct, frozen=True, kw_only=True):
    count: int
    errors: int
    strict: bool
    skills: list[ValidatedSkill]
    exit_code: int


def convert(path: Path, out: Path | None, managed: Sequence[Path], *, force: bool, dry_run: bool) -> ConvertResult:
    """Writes the canonical SKILL.md of a file or a folder in any layout to `out`, a file or a folder. Refused below
    `managed`: only an update may change an installed skill; one that a person wrote is theirs."""
    from navigator_kernel.skills.install.export import refuse_kept

    path = _manifest(path)
    name = path.parent.name if path.name.lower() == "skill.md" else path.name
    data = read_bounded(path, FILE_LIMIT)
    written = to_canonical(data, name)
    own = read_manifest(written, path=path, folder=None).name
    layout = detect_format(data, name)
    if out is None:
        text = written.decode()
        return ConvertResult(path=str(path), layout=layout, name=own, dry_run=dry_run, out="", changed=False, text=text)
    out = out if out.suffix else out / "SKILL.md"
    refuse_kept([out], managed)
    try:
        before = read_bounded(out, _LIMIT)
    except FileNotFoundError:
        before = None
    if before is not None and before != written and not force:
        raise Refused(f"{str(out)!r} already exists", hint="--force replaces it")
    if before != written and not dry_run:
        FolderWriter([out]).write(out, written)
    return ConvertResult(
        path=str(path),
        layout=layout,
        name=own,
        dry_run=dry_run,
        out=str(out),
        changed=before != written,
        text=written.decode() if dry_run else UNSET,
    )


def validate_at(path: Path, *, strict: bool) -> ValidateResult:
    """Checks the file, the SKILL.md of a folder, or those of all skills below it; examples and tests only if there is
    nothing else."""
    from navigator_kernel.adapters.sources.local import FolderSource
    from navigator_kernel.skills.source.discover import find_skills

    if path.is_dir() and not any(file.name.lower() == "skill.md" for file in path.iterdir()):
        with FolderSource(path) as tree:
            below = find_skills(tree.entries, top=path.name)
        chosen = [skill for skill in below if skill.role == "skill"] or below
        paths = [path / skill.manifest.path for skill in chosen]
    else:
        paths = [_manifest(path)]
    skills = [_validated(manifest, strict=strict) for manifest in paths]
    errors = sum(finding["level"] == "error" for skill in skills for finding in skill.findings)
    code = 1 if errors else 0
    return ValidateResult(count=len(skills), errors=errors, strict=strict, skills=skills, exit_code=code)


def form_findings(path: Path, *, strict: bool) -> list[Diagnostic]:
    """The rules that the manifest at `path` breaks, which `validate` and `eval` judge alike."""
    from navigator_kernel.adapters.sources.local import FolderSource
    from navigator_kernel.skills.formats.validate import validate
    from navigator_kernel.skills.source.discover import REGULAR

    if path.name.lower() != "skill.md":
        return validate(read_bounded(path, _LIMIT), path.stem, {}, strict=strict)
    with FolderSource(path.parent) as tree:
        paths = [entry.path for entry in tree.entries if entry.kind != "tree"]
        evals = [entry for entry in tree.entries if entry.path.endswith(("evals.json", "trigger-eval.json"))]
        read = [entry.oid for entry in evals if entry.mode in REGULAR]
        files = {**dict.fromkeys(paths), **tree.contents(read, each=_LIMIT, total=4 * _LIMIT)}
    return validate(read_bounded(path, _LIMIT), path.parent.name, files, strict=strict)


def _validated(path: Path, *, strict: bool) -> ValidatedSkill:
    from navigator_kernel.skills.formats.validate import description_findings

    name = path.parent.name if path.name.lower() == "skill.md" else path.stem
    notes = form_findings(path, strict=strict)
    with suppress(KernelError):
        skill = read_manifest(read_bounded(path, _LIMIT), path=path, folder=path.parent)
        notes += description_findings(skill, strict=strict)
    findings = [
        {key: value if key == "line" else clean(str(value), lines=False) for key, value in note.to_dict().items()}
        for note in notes
    ]
    ok = not any(finding["level"] == "error" for finding in findings)
    return ValidatedSkill(name=clean(name, lines=False), path=str(path), ok=ok, findings=findings)


def _manifest(path: Path) -> Path:
    """The file, or the SKILL.md of a folder; NotFound if there is none."""
    if path.is_dir():
        manifest = next((file for file in sorted(path.iterdir()) if file.name.lower() == "skill.md"), None)
        if manifest is None:
            raise NotFound(f"there is no SKILL.md in {str(path)!r}", hint="name the file")
        return manifest
    if not os.path.lexists(path):
        raise NotFound(f"there is no {str(path)!r}", hint="name a file, or a folder with a SKILL.md")
    return path

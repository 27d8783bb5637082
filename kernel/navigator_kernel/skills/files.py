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
    from collections.abc import Mapping, Sequence
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
    several = path.is_dir() and not any(file.name.lower() == "skill.md" for file in path.iterdir())
    paths = _manifests_below(path) if several else [_manifest(path)]
    skills = [_validated(one, strict=strict) for one in paths]
    errors = sum(finding["level"] == "error" for one in skills for finding in one.findings)
    code = 1 if errors else 0
    return ValidateResult(count=len(skills), errors=errors, strict=strict, skills=skills, exit_code=code)


def _manifests_below(path: Path) -> list[Path]:
    from navigator_kernel.adapters.sources.local import FolderSource
    from navigator_kernel.skills.source.discover import find_skills

    with FolderSource(path) as tree:
        skills = find_skills(tree.entries, top=path.name)
    chosen = [skill for skill in skills if skill.role == "skill"] or skills
    return [path / skill.manifest.path for skill in chosen]


def form_findings(path: Path, *, strict: bool) -> list[Diagnostic]:
    """The rules that the manifest at `path` breaks, which `validate` and `eval` judge alike."""
    from navigator_kernel.skills.formats.validate import validate

    whole = path.name.lower() == "skill.md"
    files = _files(path.parent) if whole else {}
    return validate(read_bounded(path, _LIMIT), path.parent.name if whole else path.stem, files, strict=strict)


def _validated(path: Path, *, strict: bool) -> ValidatedSkill:
    from navigator_kernel.skills.formats.validate import description_findings

    name = path.parent.name if path.name.lower() == "skill.md" else path.stem
    notes = form_findings(path, strict=strict)
    with suppress(KernelError):
        skill = read_manifest(read_bounded(path, _LIMIT), path=path, folder=path.parent)
        notes += description_findings(skill, strict=strict)
    findings = [_finding(one) for one in notes]
    ok = not any(one["level"] == "error" for one in findings)
    return ValidatedSkill(name=clean(name, lines=False), path=str(path), ok=ok, findings=findings)


def _files(folder: Path) -> Mapping[str, bytes | None]:
    """Every file of a skill by its path, with the bytes of its evals only, as these are checked too."""
    from navigator_kernel.adapters.sources.local import FolderSource
    from navigator_kernel.skills.source.discover import REGULAR

    with FolderSource(folder) as tree:
        paths = [entry.path for entry in tree.entries if entry.kind != "tree"]
        evals = [entry for entry in tree.entries if entry.path.endswith(("evals.json", "trigger-eval.json"))]
        read = [entry.oid for entry in evals if entry.mode in REGULAR]
        return {**dict.fromkeys(paths), **tree.contents(read, each=_LIMIT, total=4 * _LIMIT)}


def _finding(one: Diagnostic) -> dict[str, Any]:
    return {key: value if key == "line" else clean(str(value), lines=False) for key, value in one.to_dict().items()}


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

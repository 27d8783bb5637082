"""What a source of skills holds, told before anything is installed (LIF-1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from navigator_kernel.errors import KernelError
from navigator_kernel.skills.discover import REGULAR, Found, choose
from navigator_kernel.skills.doors import Doors, Options, opened
from navigator_kernel.skills.install import observed
from navigator_kernel.skills.mapping import Row
from navigator_kernel.skills.reading import Reader
from navigator_kernel.skills.source import Source
from navigator_kernel.text import clean
from navigator_kernel.values.resource import SkillDef

SCRIPTS = (".py", ".sh", ".bash", ".zsh", ".js", ".mjs", ".ts", ".rb", ".pl", ".php", ".ps1", ".bat", ".cmd")


def analyse(
    source: Source, wanted: Sequence[str], doors: Doors, options: Options
) -> tuple[dict[str, Any], tuple[Row, ...]]:
    """`{source, url, ref, commit, count, skills: […]}` and the rows that the mapping may learn.

    All manifests are read; the other files, and so their sizes, only of skills that are named, or of a lone one.
    """
    with opened(source, doors, options) as tree:
        reader = Reader(source, tree)
        found = reader.find()
        chosen = choose(found, wanted, reader.named, reader.alike) if wanted else found
        whole = bool(wanted) or len(found) == 1
        sizes = _sizes(chosen, reader) if whole else {}
        skills = [_told(skill, reader.manifest(skill), sizes) for skill in chosen]
        head = {"source": source.label, "url": source.url, "ref": source.ref, "commit": tree.commit}
        return {**head, "count": len(found), "skills": skills}, observed(reader)


def _sizes(chosen: Sequence[Found], reader: Reader) -> Mapping[str, int]:
    oids = [entry.oid for skill in chosen for entry in skill.entries if entry.mode in REGULAR]
    return {oid: len(data) for oid, data in reader.read(oids).items()}


def _told(found: Found, manifest: SkillDef | KernelError, sizes: Mapping[str, int]) -> dict[str, Any]:
    files = [found.inner(entry) for entry in found.entries]
    scripts = [found.inner(e) for e in found.entries if e.mode == "100755" or e.path.lower().endswith(SCRIPTS)]
    size = sum(sizes.get(entry.oid, 0) for entry in found.entries) if sizes else None
    told: dict[str, Any] = {"name": clean(found.name, lines=False), "path": clean(found.shown, lines=False)}
    told |= declared(manifest)
    return {**told, "files": list(map(_clean, files)), "scripts": list(map(_clean, scripts)), "size": size}


def declared(manifest: SkillDef | KernelError) -> dict[str, Any]:
    """What a manifest says of itself, or why it cannot be used."""
    if isinstance(manifest, KernelError):
        return {"description": "", "kind": "", "license": "", "tools": [], "problems": [_clean(manifest.message)]}
    return {
        "name": _clean(manifest.name),
        "description": _clean(manifest.description),
        "kind": manifest.kind,
        "license": _clean(manifest.license),
        "command": _clean(manifest.command),
        "tools": [_clean(tool) for tool in (*manifest.allowed_tools, *(manifest.tools or ()))],
        "problems": [_clean(note.message) for note in manifest.diagnostics],
    }


def _clean(text: str) -> str:
    return clean(text, lines=False)

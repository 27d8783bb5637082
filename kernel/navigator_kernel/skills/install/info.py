"""Describes the skills of a source before anything is installed (LIF-1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from navigator_kernel.errors import KernelError, Refused
from navigator_kernel.skills.formats.manifest import declared
from navigator_kernel.skills.install.install import observe_catalogue
from navigator_kernel.skills.install.plans import drafts, scanned
from navigator_kernel.skills.source.discover import REGULAR, select_skills
from navigator_kernel.text import clean
from navigator_kernel.values.receipt import Verdict
from navigator_kernel.values.resource import Diagnostic, SkillDef

if TYPE_CHECKING:
    from navigator_kernel.skills.install.deps import InstallDeps
    from navigator_kernel.skills.source.discover import Found
    from navigator_kernel.skills.source.mapping import Row
    from navigator_kernel.skills.source.reading import SourceReader

SCRIPTS = (".py", ".sh", ".bash", ".zsh", ".js", ".mjs", ".ts", ".rb", ".pl", ".php", ".ps1", ".bat", ".cmd")


Judged = Mapping[str, tuple[Verdict, list[dict[str, Any]]]]  # keyed by the skill's folder in the tree


def analyse(reader: SourceReader, wanted: Sequence[str], deps: InstallDeps) -> tuple[dict[str, Any], tuple[Row, ...]]:
    """`{source, url, ref, subpath, commit, count, problems, skills: […]}` and the rows that the mapping may learn;
    `problems` lists the parts of plugin manifests that could not be used.

    All manifests are read; the other files, and with them sizes and findings, only of named skills, or of a single one.
    """
    found = reader.find()
    chosen = select_skills(found, wanted, reader.named, reader.contents) if wanted else found
    whole = bool(wanted) or len(found) == 1
    sizes, judged = (_sizes(chosen, reader), judge(chosen, reader, deps)) if whole else ({}, {})
    skills = [_told(skill, reader.manifest(skill), sizes, judged) for skill in chosen]
    source = reader.source
    head = {"source": source.label, "url": source.url, "ref": source.ref, "subpath": source.subpath}
    head = {key: _clean(text) for key, text in head.items()}
    told = {"count": len(found), "problems": [_finding(note) for note in reader.notes], "skills": skills}
    return {**head, "commit": reader.tree.commit, **told}, observe_catalogue(reader)


def _sizes(chosen: Sequence[Found], reader: SourceReader) -> Mapping[str, int]:
    oids = [entry.oid for skill in chosen for entry in skill.entries if entry.mode in REGULAR]
    return {oid: len(data) for oid, data in reader.read(oids).items()}


def judge(chosen: Sequence[Found], reader: SourceReader, deps: InstallDeps) -> Judged:
    """The verdict and the findings of the scanners for each skill, or why it would be refused."""
    refused: list[tuple[Found, KernelError]] = []
    judged: dict[str, tuple[Verdict, list[dict[str, Any]]]] = {}
    for plan in drafts(chosen, reader, deps.clock, refused=refused):
        try:
            plan = scanned(plan, deps)
            verdict, findings = plan.receipt.verdict, [_finding(one) for one in plan.findings]
        except Refused as error:
            verdict, findings = "block", [_cleaned(one) for one in error.data["findings"]]
        judged[plan.receipt.subpath] = verdict, findings
    for skill, reason in refused:
        code = str(reason.data.get("reason", reason.code))
        why = Diagnostic(code=code, level="error", path=skill.shown, message=reason.message)
        judged[skill.folder] = "block", [_finding(why)]
    return judged


def _told(found: Found, manifest: SkillDef | KernelError, sizes: Mapping[str, int], judged: Judged) -> dict[str, Any]:
    """Describes one skill; `size` and `findings` are None if its files were not read."""
    files = [found.inner(entry) for entry in found.entries]
    scripts = [found.inner(e) for e in found.entries if e.mode == "100755" or e.path.lower().endswith(SCRIPTS)]
    verdict, findings = judged.get(found.folder, ("not_scanned", None))
    told: dict[str, Any] = {"name": _clean(found.name), "path": _clean(found.shown)}
    told |= {**declared(manifest), "plugin": _clean(found.plugin), "role": found.role}
    told |= {"files": list(map(_clean, files)), "scripts": list(map(_clean, scripts))}
    size = sum(sizes.get(entry.oid, 0) for entry in found.entries) if found.folder in judged else None
    return {**told, "size": size, "verdict": verdict, "findings": findings}


def _finding(one: Diagnostic) -> dict[str, Any]:
    return _cleaned(one.to_dict())


def _cleaned(finding: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _clean(value) if isinstance(value, str) else value for key, value in finding.items()}


def _clean(text: str) -> str:
    return clean(text, lines=False)

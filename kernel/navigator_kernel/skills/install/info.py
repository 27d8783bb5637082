"""Describes and scans the skills of a source before anything is installed (LIF-1), and scans installed ones."""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct, UnsetType

from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.errors import KernelError, Refused
from navigator_kernel.skills.catalog.catalogue import FILE_LIMIT
from navigator_kernel.skills.formats.manifest import declared
from navigator_kernel.skills.install.deps import InstallDeps, open_source_tree
from navigator_kernel.skills.install.install import observe_catalogue
from navigator_kernel.skills.install.plans import drafts, scanned, verdict_of
from navigator_kernel.skills.source.address import parse_source
from navigator_kernel.skills.source.discover import REGULAR, Found, select_skills
from navigator_kernel.skills.source.reading import SourceReader
from navigator_kernel.text import clean
from navigator_kernel.values.resource import Diagnostic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from navigator_kernel.skills.install.inventory import Installed
    from navigator_kernel.skills.options import InstallOptions
    from navigator_kernel.values.receipt import Verdict

    Judged = Mapping[str, tuple[Verdict, list[dict[str, Any]]]]  # keyed by the skill's folder in the tree

SCRIPTS = (".py", ".sh", ".bash", ".zsh", ".js", ".mjs", ".ts", ".rb", ".pl", ".php", ".ps1", ".bat", ".cmd")


class SourceInfo(Struct, frozen=True, kw_only=True):
    """The skills of a source: `problems` lists the parts of plugin manifests that could not be used, `notes` says that
    the page of known skills could not be written."""

    source: str
    url: str
    ref: str
    subpath: str
    commit: str
    count: int
    problems: list[dict[str, Any]]
    skills: list[dict[str, Any]]
    notes: list[str] | UnsetType = UNSET


class ScannedSkill(Struct, frozen=True, kw_only=True):
    name: str
    path: str
    verdict: Verdict
    findings: list[dict[str, Any]]


def analyse(reader: SourceReader, names: Sequence[str], deps: InstallDeps) -> SourceInfo:
    """Describes the named skills of a source, or all, and adds what was seen to the page of known skills.

    All manifests are read; the other files only of named skills, or of a single one, and for the others `size` and
    `findings` are None.
    """
    skills_here = reader.find()
    chosen = select_skills(skills_here, names, reader.named, reader.contents) if names else skills_here
    whole = bool(names) or len(skills_here) == 1
    sizes: dict[str, int] = {}
    judged: Judged = {}
    if whole:
        oids = [entry.oid for skill in chosen for entry in skill.entries if entry.mode in REGULAR]
        sizes = {oid: len(data) for oid, data in reader.read(oids).items()}
        judged = judge(chosen, reader, deps)
    skills = []
    for skill in chosen:
        files = [_clean(skill.inner(entry)) for entry in skill.entries]
        is_script = [entry.mode == "100755" or entry.path.lower().endswith(SCRIPTS) for entry in skill.entries]
        verdict, findings = judged.get(skill.folder, ("not_scanned", None))
        row: dict[str, Any] = {"name": _clean(skill.name), "path": _clean(skill.shown)}
        row |= {**declared(reader.manifest(skill)), "plugin": _clean(skill.plugin), "role": skill.role}
        row |= {"files": files, "scripts": list(compress(files, is_script))}
        row["size"] = sum(sizes.get(entry.oid, 0) for entry in skill.entries) if skill.folder in judged else None
        skills.append({**row, "verdict": verdict, "findings": findings})
    problem, source = deps.observe(observe_catalogue(reader)), reader.source
    return SourceInfo(
        source=_clean(source.label),
        url=_clean(source.url),
        ref=_clean(source.ref),
        subpath=_clean(source.subpath),
        commit=reader.tree.commit,
        count=len(skills_here),
        problems=[_finding(note) for note in reader.notes],
        skills=skills,
        notes=[problem] if problem else UNSET,
    )


def scan_source(reader: SourceReader, names: Sequence[str], deps: InstallDeps) -> list[ScannedSkill]:
    """The verdict and the findings of each skill of a source, or of the named ones."""
    chosen = reader.find()
    if names:
        chosen = select_skills(chosen, names, reader.named, reader.contents)
    source = reader.source
    label = f"{source.label}{'/' if source.kind == 'folder' else ' '}"
    return [
        _scanned(folder.rpartition("/")[2] or source.base_name, f"{label}{folder}".rstrip(" /"), *judgement)
        for folder, judgement in judge(chosen, reader, deps).items()
    ]


def scan_installed(one: Installed, root: Path, deps: InstallDeps, options: InstallOptions) -> list[ScannedSkill]:
    """Scans an installed skill by reading its folder as a source."""
    skill, path = one.skill, str(one.skill.folder or one.skill.path)
    if one.place.level == "project":
        path = one.place.told(skill.folder or skill.path)
    if skill.folder is None:
        files = {skill.path.name: read_bounded(skill.path, FILE_LIMIT)}
        findings = None if deps.scanner is None else deps.scanner(skill, files)
        return [_scanned(skill.name, path, verdict_of(findings), [finding.to_dict() for finding in findings or ()])]
    try:
        source = parse_source(str(skill.folder), base=root)
        with open_source_tree(source, deps, options) as tree:
            reader = SourceReader(source, tree)
            top = [each for each in reader.find() if not each.folder]
            return [_scanned(skill.name, path, *judgement) for judgement in judge(top, reader, deps).values()]
    except KernelError as error:
        finding = {"code": error.code, "level": "error", "path": "", "message": clean(error.message), "line": None}
        return [_scanned(skill.name, path, "block", [finding])]


def _scanned(name: str, path: str, verdict: Verdict, findings: list[dict[str, Any]]) -> ScannedSkill:
    """One skill of the result, cleaned, as names and findings are text from a stranger."""
    found = [_cleaned(finding) for finding in findings]
    return ScannedSkill(name=_clean(name), path=_clean(path), verdict=verdict, findings=found)


def judge(chosen: Sequence[Found], reader: SourceReader, deps: InstallDeps) -> Judged:
    """The verdict and the findings of the scanners for each skill, or why it would be refused."""
    judged: dict[str, tuple[Verdict, list[dict[str, Any]]]] = {}
    plans, refused = drafts(chosen, reader, deps.clock)
    for plan in plans:
        try:
            plan = scanned(plan, deps, is_install=False)
            verdict, findings = plan.receipt.verdict, [_finding(finding) for finding in plan.findings]
        except Refused as error:
            verdict, findings = "block", [_cleaned(one) for one in error.data["findings"]]
        judged[plan.receipt.subpath] = verdict, findings
    for skill, reason in refused:
        code = str(reason.data.get("reason", reason.code))
        why = Diagnostic(code=code, level="error", path=skill.shown, message=reason.message)
        judged[skill.folder] = "block", [_finding(why)]
    return judged


def _finding(one: Diagnostic) -> dict[str, Any]:
    return _cleaned(one.to_dict())


def _cleaned(finding: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _clean(value) if isinstance(value, str) else value for key, value in finding.items()}


def _clean(text: str) -> str:
    return clean(text, lines=False)

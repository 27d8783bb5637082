"""Prepares skills for installation: checked files, receipts, and findings."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from navigator_kernel.errors import KernelError, NotLoadable, Refused, UsageProblem
from navigator_kernel.skills.catalog.receipts import tree_digest
from navigator_kernel.skills.formats.manifest import read_manifest
from navigator_kernel.skills.install.abilities import abilities
from navigator_kernel.skills.options import InstallOptions
from navigator_kernel.skills.scan.commands import findings as command_findings
from navigator_kernel.skills.scan.finding import Judged, facts, judged, refusal
from navigator_kernel.skills.source.discover import Found, Tree
from navigator_kernel.skills.source.gate import SKILL_LIMIT, PlannedFile, admit, dead_links, unread_links
from navigator_kernel.skills.source.rules import refuse_skill
from navigator_kernel.text import clean, fold, lazy_compile
from navigator_kernel.values.job import consent_subject
from navigator_kernel.values.receipt import NOT_SCANNED, Accepted, InstalledFile, Receipt, Verdict
from navigator_kernel.values.standing import install_subject

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from navigator_kernel.ports import Clock
    from navigator_kernel.skills.install.deps import InstallDeps
    from navigator_kernel.skills.source.reading import SourceReader
    from navigator_kernel.values.resource import Diagnostic, SkillDef

    Refusal = tuple[Found, KernelError]  # a skill of a source that cannot be planned, and why

_NAME_LINE = lazy_compile(rb"^(name[ \t]*:[ \t]*)[^\r\n]*", re.MULTILINE)


class PlannedSkill(NamedTuple):
    """One skill as it will be on disk: `contents` by path inside it. `verdict` is the result of this scan; the
    receipt's may come from a lock file. `about` are words about the plugin that brings it, `queries` are
    requests that its publisher names for it."""

    skill: SkillDef
    receipt: Receipt
    contents: Mapping[str, bytes]
    findings: tuple[Diagnostic, ...] = ()
    verdict: Verdict = "not_scanned"
    granted: tuple[str, ...] = ()  # findings that the person accepts by name in this command
    about: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()

    @property
    def agreements(self) -> tuple[str, ...]:
        """The subjects that a typed install command agrees to: the origin of these bytes and, for a skill with a
        command, that it runs with access only to its own folder; none if scanners blocked it or did not scan all of
        it."""
        if self.verdict not in {"ok", "warn"}:
            return ()
        name, digest, origin = self.receipt.name, self.receipt.digest, clean(self.receipt.origin, lines=False)
        command = (consent_subject("type_a", name, digest, origin),) if self.skill.kind == "A" else ()
        return (install_subject(name, origin, digest), *command)


def drafts(
    chosen: Sequence[Found],
    reader: SourceReader,
    clock: Clock,
    rename: str = "",
    files: Mapping[str, tuple[PlannedFile, ...]] | None = None,
) -> tuple[list[PlannedSkill], list[Refusal]]:
    """Plans the skills in `chosen`, and the errors of those whose files are not allowed (Refused) or whose manifest
    cannot be used (NotLoadable). `rename` is the new name of the one skill in `chosen`; `files` is the result of
    `safe_files`, if that was called before."""
    refused: list[Refusal] = []
    if files is None:
        files, refused = safe_files(chosen, reader)
    blobs, large = reader.read_apart({folder: [file.oid for file in planned] for folder, planned in files.items()})
    refused += [(skill, large[skill.folder]) for skill in chosen if skill.folder in large]
    now = clock.now()
    plans: list[PlannedSkill] = []
    for skill in chosen:
        if skill.folder not in files or skill.folder in large:
            continue
        contents = {file.path: blobs[file.oid] for file in files[skill.folder]}
        modes = {file.path: file.mode for file in files[skill.folder]}
        try:
            manifest = reader.manifest_from(skill, contents[skill.inner(skill.manifest)])
            plan = _plan(manifest, skill, contents, modes, reader, now)
            plans.append(titled(plan, skill, reader, rename))
        except (NotLoadable, Refused) as error:
            refused.append((skill, error))
    return plans, refused


def safe_files(
    chosen: Sequence[Found], reader: SourceReader
) -> tuple[dict[str, tuple[PlannedFile, ...]], list[Refusal]]:
    """The safe files of each skill, by its folder in the tree, and the errors of the other skills."""
    whole, links = Tree(reader.tree.entries), dict(reader.links)
    while ids := unread_links(chosen, links, whole):
        links |= reader.read(ids)
    files: dict[str, tuple[PlannedFile, ...]] = {}
    refused: list[Refusal] = []
    for skill in chosen:
        try:
            files[skill.folder] = admit(skill, links, whole)
            reader.told[skill.folder] = dead_links(skill, links, whole)
        except Refused as error:
            refused.append((skill, error))
    return files, refused


def titled(plan: PlannedSkill, skill: Found, reader: SourceReader, name: str) -> PlannedSkill:
    """The same skill under `name`: only the line with its name changes; unchanged if that is empty or its own name."""
    if name in {"", plan.receipt.name}:
        return plan
    manifest, path = plan.skill, skill.inner(skill.manifest)
    data, count = _NAME_LINE.subn(lambda hit: hit[1] + name.encode(), plan.contents[path], count=1)
    changed = read_manifest(data, path=manifest.path, folder=manifest.folder) if count else manifest
    if changed.name != name:
        raise NotLoadable(f"skill {manifest.name!r} does not state its name", hint="leave --as out", reason="no-name")
    manifest, contents = replace(changed, name=name), {**plan.contents, path: data}
    modes = {file.path: file.mode for file in plan.receipt.files}
    made = _plan(manifest, skill, contents, modes, reader, plan.receipt.installed_at)
    return made._replace(receipt=replace(made.receipt, declared=plan.receipt.name))


def refuse_twin(plan: PlannedSkill, seen: dict[str, PlannedSkill]) -> None:
    """Raises UsageProblem if one of `seen` has the same name; otherwise adds the skill to `seen`."""
    first = seen.setdefault(fold(plan.receipt.name), plan)
    if first is not plan:
        paths = [first.receipt.subpath, plan.receipt.subpath]
        hint = f"install one of them under another name with --as: {clean(', '.join(paths), lines=False)}"
        raise UsageProblem(f"two skills call themselves {plan.receipt.name!r}", hint=hint, paths=paths)


def scanned(
    plan: PlannedSkill,
    deps: InstallDeps,
    options: InstallOptions | None = None,
    *,
    is_locked: bool = False,
    is_install: bool = True,
) -> PlannedSkill:
    """Adds the verdict of the scanners and what it can do; Refused for a block that the person did not accept, and for
    an install that the rules of a policy file do not allow: every skill that is installed comes through here.
    `is_locked` says that the lock names exactly these bytes."""
    options = options or InstallOptions()
    plan = plan._replace(receipt=replace(plan.receipt, can=abilities(plan.skill, plan.contents)))
    seen = None if deps.scanner is None else deps.scanner(plan.skill, plan.contents)
    findings = () if seen is None else (*seen, *command_findings(plan.skill, plan.contents))
    if is_install and (rules := deps.rules):
        verdict = verdict_of(None if seen is None else findings)
        refuse_skill(rules, plan.receipt, verdict, findings, is_locked=is_locked)
    if seen is None:
        return plan
    judgement = Judged((), (), ())
    if any(finding.level == "error" for finding in findings):
        judgement = judged(plan.receipt, findings, options.accept, deps.agreed)
    if judgement.blocking:
        raise refusal(plan.receipt, findings, judgement.blocking, options)
    remaining = [replace(one, level="warning") if one in judgement.accepted else one for one in findings]
    accepted = tuple(Accepted(**facts(one)) for one in judgement.accepted)
    verdict = verdict_of(remaining)
    receipt = replace(plan.receipt, verdict=verdict, accepted=accepted)
    return plan._replace(receipt=receipt, findings=tuple(remaining), verdict=verdict, granted=judgement.granted)


def verdict_of(findings: Sequence[Diagnostic] | None) -> Verdict:
    """The verdict that follows from the findings; `findings` is None if there was no scan."""
    if findings is None:
        return "not_scanned"
    if any(finding.level == "error" for finding in findings):
        return "block"
    if any(finding.code == NOT_SCANNED for finding in findings):
        return "not_scanned"
    return "warn" if any(finding.level == "warning" for finding in findings) else "ok"


def _plan(
    manifest: SkillDef,
    skill: Found,
    contents: Mapping[str, bytes],
    modes: Mapping[str, int],
    reader: SourceReader,
    now: str,
) -> PlannedSkill:
    if sum(map(len, contents.values())) > SKILL_LIMIT:
        message = f"skill {manifest.name!r} is over {SKILL_LIMIT} bytes"
        raise Refused(message, hint="tell its author", reason="too-large")
    files = tuple(
        InstalledFile(path=path, sha256=hashlib.sha256(data).hexdigest(), mode=modes[path], size=len(data))
        for path, data in sorted(contents.items())
    )
    receipt = Receipt(
        name=manifest.name,
        source=reader.source.url,
        ref=reader.source.ref,
        commit=reader.tree.commit,
        subpath=skill.folder,
        tree=skill.tree if reader.source.kind == "git" else "",
        files=files,
        digest=tree_digest(files),
        verdict="not_scanned",
        installed_at=now,
    )
    about = reader.about.get(skill.plugin, ())
    queries = getattr(reader.tree, "queries", {}).get(skill.folder.partition("/")[0], ())
    return PlannedSkill(skill=manifest, receipt=receipt, contents=contents, about=about, queries=queries)

"""What new bytes of an installed skill change: files, lines, what it can do, and what else a person should know."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Struct, field

from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.adapters.processes.line_diff import unified
from navigator_kernel.errors import KernelError
from navigator_kernel.skills.catalog.receipts import folder_files, is_left_behind
from navigator_kernel.skills.install.abilities import abilities, grown
from navigator_kernel.skills.install.lockfile import manifest_in
from navigator_kernel.text import clean
from navigator_kernel.values.receipt import FILE_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from navigator_kernel.skills.catalog.place import InstallScope
    from navigator_kernel.skills.install.deps import InstallDeps
    from navigator_kernel.skills.install.plans import PlannedSkill
    from navigator_kernel.values.receipt import Receipt

Note: TypeAlias = tuple[str, str, str]  # a kind, and two texts: before, after


class ChangedFile(Struct, frozen=True, kw_only=True):
    """A file of a skill that the source changed: `change` is `new`, `removed` or `changed`, with the number of
    lines that come and go, 0 for files without lines."""

    path: str
    change: Literal["new", "removed", "changed"]
    added: int = 0
    removed: int = 0


class SkillChange(Struct, frozen=True, kw_only=True):
    """What new bytes of a skill change: files, what the skill `can` do that it could not, its findings that it had not,
    and what else a person should know, each of `notes` a kind and two texts: before, after."""

    files: list[ChangedFile]
    can: dict[str, list[str]]
    findings: list[dict[str, Any]] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    @property
    def is_growth(self) -> bool:
        begins_to_run = any(kind == "command" and not before for kind, before, _ in self.notes)
        return bool(self.can or self.findings or begins_to_run)


def changed_by(
    plan: PlannedSkill,
    here: Receipt | None,
    place: InstallScope,
    deps: InstallDeps,
    *,
    notes: Sequence[Note] = (),
    edited: bool = False,
    is_wanted: bool = False,
) -> SkillChange:
    """What `plan` changes of the skill that is `here`, perhaps `edited`; all of it is new where nothing is here, unless
    the lock wants exactly that."""
    folder = place.skills / plan.receipt.name
    contents = {path: _read(folder / path) for path in _paths(folder)} if here is not None else {}
    files = list(_changed_files(contents, plan))
    if here is None:
        return SkillChange(files=files, can={} if is_wanted else plan.receipt.can.to_dict(), notes=list(notes))
    before, skill, notes = {file.path for file in here.files}, manifest_in(folder), list(notes)
    could = here.can if edited or skill is None else abilities(skill, contents)
    if skill is not None and skill.command != plan.skill.command:
        notes.append(("command", clean(skill.command, lines=False), clean(plan.skill.command, lines=False)))
    if here.subpath != plan.receipt.subpath:
        notes.append(("moved", clean(here.subpath, lines=False), clean(plan.receipt.subpath, lines=False)))
    if here.source != plan.receipt.source:
        notes.append(("source", clean(here.source, lines=False), clean(plan.receipt.source, lines=False)))
    if here.ref != plan.receipt.ref:
        notes.append(("ref", clean(here.ref, lines=False), clean(plan.receipt.ref, lines=False)))
    new = [finding for finding in plan.findings if finding.level != "note"]
    if new and deps.scanner is not None and skill is not None:
        scanned_before = {path: data for path, data in contents.items() if path in before}
        earlier = {(finding.code, finding.path, finding.message) for finding in deps.scanner(skill, scanned_before)}
        new = [finding for finding in new if (finding.code, finding.path, finding.message) not in earlier]
    can = grown(could, plan.receipt.can).to_dict()
    return SkillChange(files=files, can=can, findings=[finding.to_dict() for finding in new], notes=notes)


def _changed_files(contents: Mapping[str, bytes], plan: PlannedSkill) -> Iterator[ChangedFile]:
    for path in sorted({*contents, *plan.contents}):
        before, after = contents.get(path), plan.contents.get(path)
        if before == after or (after is None and is_left_behind(path)):
            continue
        lines = [Counter(data.splitlines() if data and b"\0" not in data else ()) for data in (before, after)]
        yield ChangedFile(
            path=clean(path, lines=False),
            change="new" if before is None else "removed" if after is None else "changed",
            added=(lines[1] - lines[0]).total(),
            removed=(lines[0] - lines[1]).total(),
        )


LONGEST = 200_000  # characters of the difference of one skill
FILE = 500_000  # bytes of a file that is compared line by line


def difference(folder: Path, contents: Mapping[str, bytes]) -> str:
    """The diff from the files in `folder` to `contents`; if it is longer than `LONGEST`, it is cut at a line."""
    here = {path: folder / path for path in _paths(folder)}
    lines: list[str] = []
    room = LONGEST
    for path in sorted({*here, *contents}):
        before = _read(here[path]) if path in here else None
        for line in _of_file(path, before, contents.get(path)):
            room -= len(line) + 1
            if room < 0:
                return "\n".join([*lines, "… the rest is not shown"])
            lines.append(line)
    return "\n".join(lines)


def _paths(folder: Path) -> list[str]:
    with suppress(KernelError):
        return [file.path for file in folder_files(folder)]
    return []


def _read(path: Path) -> bytes:
    try:
        return read_bounded(path, FILE_LIMIT)
    except (KernelError, OSError):
        return b"\0"  # shown as a file without lines


def _of_file(path: str, before: bytes | None, after: bytes | None) -> Iterator[str]:
    if before == after:
        return
    if any(b"\0" in data or len(data) > FILE for data in (before or b"", after or b"")):
        name = clean(path, lines=False)
        yield f"--- {f'a/{name}' if before is not None else '/dev/null'}"
        yield f"+++ {f'b/{name}' if after is not None else '/dev/null'}"
        yield "@@ the contents differ @@"
        return
    yield from unified(path, before, after).removesuffix("\n").split("\n")

"""Lists installed skills from their folders and receipts (LIF-1, LIF-4)."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec import Struct

from navigator_kernel.errors import Damaged, KernelError
from navigator_kernel.skills.catalog.catalogue import ResourceCatalogue
from navigator_kernel.skills.catalog.place import InstallScope, at_rest, own_links, told_links
from navigator_kernel.skills.catalog.receipts import folder_digest, read_receipt, read_receipts, skill_files
from navigator_kernel.text import clean
from navigator_kernel.values.resource import Diagnostic, SkillDef
from navigator_kernel.values.standing import install_subject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from navigator_kernel.skills.catalog.listing import Root
    from navigator_kernel.values.receipt import Receipt

Status = Literal["managed", "unmanaged", "shipped"]


class Installed(NamedTuple):
    """`receipt` is set for managed skills; `links` are our links to the skill."""

    skill: SkillDef
    place: InstallScope
    status: Status
    receipt: Receipt | None
    links: tuple[str, ...] = ()
    agreed: frozenset[str] = frozenset()

    @property
    def is_proven(self) -> bool:
        """Whether this person's install command recorded the receipt's origin: a clone can bring any receipt."""
        return self.receipt is not None and is_mine(self.receipt, self.agreed)

    def row(self) -> SkillRow:
        return SkillRow(**self.facts())

    def facts(self) -> dict[str, Any]:
        """The fields of a `SkillRow`."""
        skill, receipt = self.skill, self.receipt
        source, commit = (_clean(receipt.source), _clean(receipt.commit)) if receipt else ("", "")
        return {
            "name": _clean(skill.name),
            "description": _clean(skill.description),
            "kind": skill.kind,
            "status": self.status,
            "level": self.place.level,
            "enabled": skill.enabled,
            "path": self.place.told(skill.folder or skill.path),
            "links": list(self.links),
            "source": source if self.is_proven else "",
            "commit": commit if self.is_proven else "",
            "claimed_source": "" if self.is_proven else source,
        }


class SkillRow(Struct, frozen=True, kw_only=True):
    """An installed skill in a list. `claimed_source` is what a receipt says that this person's own command did not
    write."""

    name: str
    description: str
    kind: str
    status: Status
    level: str
    enabled: bool
    path: str
    links: list[str]
    source: str
    commit: str
    claimed_source: str


def is_mine(receipt: Receipt, agreed: frozenset[str]) -> bool:
    """Whether this person's own command installed it: only then do equal bytes prove that nothing has changed since."""
    return install_subject(receipt.name, _clean(receipt.origin), receipt.digest) in agreed


def inventory(
    roots: Sequence[Root],
    places: Sequence[InstallScope],
    disabled: frozenset[str],
    shipped: Mapping[str, str],
    agreed: frozenset[str] = frozenset(),
) -> tuple[tuple[Installed, ...], tuple[Diagnostic, ...]]:
    """Every skill in `roots` by name, where the first root wins, and diagnostics of what could not be read. `places`
    are the places of the roots.

    `shipped` maps a name to the digest that this release ships: a skill with this digest is shipped wherever it is.
    `agreed` are the subjects that the person agreed to.
    """
    receipts: dict[Path, Mapping[str, Receipt]] = {}
    notes: list[Diagnostic] = []
    for place in places:
        damaged: list[str] = []
        receipts[place.skills] = read_receipts(place, damaged)
        for name in damaged:
            message = f"the receipt of {name!r} cannot be read; the skill counts as unmanaged"
            path = str(place.inner / f"{name}.json")
            notes.append(Diagnostic(code="receipt-damaged", level="error", path=path, message=message))
    catalogue = ResourceCatalogue(roots=tuple(roots), disabled=lambda: disabled)
    skills = catalogue.list_resources(enabled_only=False)
    rows = _installed(skills, places, shipped, agreed, lambda place, name: receipts[place.skills].get(name))
    return rows, (*notes, *catalogue.diagnostics())


def recorded(
    skills: Sequence[SkillDef], places: Sequence[InstallScope], shipped: Mapping[str, str], agreed: frozenset[str]
) -> tuple[Installed, ...]:
    """Adds the records to the `skills` of `places`; a damaged receipt counts as missing."""

    def receipt_of(place: InstallScope, name: str) -> Receipt | None:
        with suppress(Damaged):
            return read_receipt(place, name)
        return None

    return _installed(skills, places, shipped, agreed, receipt_of)


def _installed(
    skills: Iterable[SkillDef],
    places: Sequence[InstallScope],
    shipped: Mapping[str, str],
    agreed: frozenset[str],
    receipt_of: Callable[[InstallScope, str], Receipt | None],
) -> tuple[Installed, ...]:
    by_path = {place.skills: place for place in reversed(places)}
    linked = {place.skills: own_links(place) for place in places}
    rows = []
    for skill in skills:
        own = skill.folder or skill.path
        top = own.parent if own.parent in by_path else own.parent.parent  # in a group of skills
        own_name = skill.folder.name if skill.folder and own.parent == top else ""
        receipt = receipt_of(by_path[top], own_name) if own_name else None
        links = told_links(by_path[top], linked[top], own_name) if own_name else ()
        rows.append(Installed(skill, by_path[top], _status(skill, receipt, shipped), receipt, tuple(links), agreed))
    return tuple(rows)


def compared(receipt: Receipt, place: InstallScope) -> tuple[Receipt | None, dict[str, list[str]]]:
    """The receipt and the differences of its folder. If there are any, both are read again while no command changes the
    skills: the receipt is another one after an update, and None after an uninstall."""
    changes = differences(receipt, place.skills / receipt.name)
    if not any(changes.values()):
        return receipt, changes
    with at_rest(place):
        now = read_receipt(place, receipt.name)
        return now, differences(now, place.skills / now.name) if now is not None else {}


def is_touched(receipt: Receipt, place: InstallScope) -> bool:
    """Whether the skill's files differ from the receipt. Contents are read only if a file is younger than the receipt:
    an install writes it last."""
    folder = place.skills / receipt.name
    try:
        written = (place.inner / f"{receipt.name}.json").stat().st_mtime_ns
        for file in receipt.files:
            status = (folder / file.path).lstat()
            if status.st_size != file.size or status.st_mtime_ns > written:
                return any(differences(receipt, folder).values())
        found = sum(len(files) for _, _, files in os.walk(folder))
    except OSError:
        return any(differences(receipt, folder).values())
    return found != len(receipt.files) and any(differences(receipt, folder).values())


def differences(receipt: Receipt, folder: Path) -> dict[str, list[str]]:
    """Differences between `folder` and `receipt`: `{modified, missing, extra, mode}`."""
    recorded = {file.path: file for file in receipt.files}
    problems: dict[str, list[str]] = {"modified": [], "missing": [], "extra": [], "mode": []}
    try:
        present = {file.path: file for file in skill_files(folder, receipt)}
    except KernelError as error:
        what = "missing" if error.code == "not_found" else "modified"
        problems[what] = sorted(map(_clean, recorded)) if what == "missing" else [_clean(error.message)]
        return problems
    problems["missing"] = sorted(_clean(path) for path in recorded if path not in present)
    problems["extra"] = sorted(_clean(path) for path in present if path not in recorded)
    for path in sorted(recorded.keys() & present.keys()):
        if recorded[path].sha256 != present[path].sha256:
            problems["modified"].append(_clean(path))
        elif recorded[path].mode != present[path].mode:
            problems["mode"].append(_clean(path))
    return problems


def _status(skill: SkillDef, receipt: Receipt | None, shipped: Mapping[str, str]) -> Status:
    if receipt:
        return "managed"
    if skill.folder is None or skill.name not in shipped:
        return "unmanaged"
    try:
        return "shipped" if folder_digest(skill.folder) == shipped[skill.name] else "unmanaged"
    except KernelError:
        return "unmanaged"


def _clean(text: str) -> str:
    return clean(text, lines=False)

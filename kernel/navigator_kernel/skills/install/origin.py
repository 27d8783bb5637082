"""Opens the source of an installed skill again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from navigator_kernel.errors import SkillNotFound
from navigator_kernel.skills.install.deps import InstallDeps, open_source_tree
from navigator_kernel.skills.install.plans import PlannedSkill, drafts, titled
from navigator_kernel.skills.options import InstallOptions
from navigator_kernel.skills.source.address import Source, parse_source
from navigator_kernel.skills.source.reading import SourceReader
from navigator_kernel.text import fold

if TYPE_CHECKING:
    from navigator_kernel.skills.source.found import Found
    from navigator_kernel.values.receipt import Receipt


def source_from_receipt(receipt: Receipt, *, ref: str | None = None) -> Source:
    """The source of a receipt, at its ref or at `ref`. Refused like any source."""
    return parse_source(receipt.source, base=Path("/"), ref=receipt.ref if ref is None else ref)


@contextmanager
def open_origin(source: Source, deps: InstallDeps, options: InstallOptions) -> Iterator[SourceReader]:
    """Opens the source and finds all its skills."""
    with open_source_tree(source, deps, options) as tree:
        reader = SourceReader(source, tree)
        with suppress(SkillNotFound):
            reader.find()
        yield reader


def locate_again(receipt: Receipt, reader: SourceReader) -> Found | None:
    """The skill at its old path, else the only one with its name, else None."""
    for found in reader.found:
        if found.folder == receipt.subpath:
            return found
    name = fold(receipt.declared or receipt.name)
    moved = [found for found in reader.found if fold(reader.named(found)) == name]
    return moved[0] if len(moved) == 1 else None


def planned(pairs: Sequence[tuple[Receipt, Found]], reader: SourceReader, deps: InstallDeps) -> list[PlannedSkill]:
    """Prepares installed skills again, each under its installed name."""
    places = {found.folder: found for _, found in pairs}
    drawn = {plan.receipt.subpath: plan for plan in drafts(list(places.values()), reader, deps.clock)}
    return [
        titled(drawn[found.folder], found, reader, receipt.name if receipt.declared else "") for receipt, found in pairs
    ]

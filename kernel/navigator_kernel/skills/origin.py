"""Goes back to where an installed skill came from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from navigator_kernel.errors import SkillNotFound
from navigator_kernel.skills.doors import Doors, Options, opened
from navigator_kernel.skills.plans import Plan, drafts, titled
from navigator_kernel.skills.reading import Reader
from navigator_kernel.skills.source import Source, parse_source
from navigator_kernel.text import fold

if TYPE_CHECKING:
    from navigator_kernel.skills.discover import Found
    from navigator_kernel.values.receipt import Receipt


def source_of(receipt: Receipt, *, ref: str | None = None) -> Source:
    """The source of a receipt, at the ref that was asked for unless `ref` names another. Refused as any source is."""
    return parse_source(receipt.source, base=Path("/"), ref=receipt.ref if ref is None else ref)


@contextmanager
def reading(source: Source, doors: Doors, options: Options) -> Iterator[Reader]:
    """A reader with all skills of the source found."""
    with opened(source, doors, options) as tree:
        reader = Reader(source, tree)
        with suppress(SkillNotFound):
            reader.find()
        yield reader


def found_again(receipt: Receipt, reader: Reader) -> Found | None:
    """The skill where it was, else the one of its name that lies elsewhere now; None where there is none or several."""
    for found in reader.found:
        if found.folder == receipt.subpath:
            return found
    name = fold(receipt.declared or receipt.name)
    moved = [found for found in reader.found if fold(reader.named(found)) == name]
    return moved[0] if len(moved) == 1 else None


def planned(pairs: Sequence[tuple[Receipt, Found]], reader: Reader, doors: Doors) -> list[Plan]:
    """The plans of skills that are installed, each under the name that it has here."""
    places = {found.folder: found for _, found in pairs}
    drawn = {plan.receipt.subpath: plan for plan in drafts(list(places.values()), reader, doors.clock)}
    return [
        titled(drawn[found.folder], found, reader, receipt.name if receipt.declared else "") for receipt, found in pairs
    ]

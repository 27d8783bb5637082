"""Chooses the data flow analysis for a passage of code, and lowers findings by their context."""

from __future__ import annotations

from typing import TYPE_CHECKING

from navigator_kernel.skills.scan.context import Kind, Passage, is_aside, warned_of
from navigator_kernel.skills.scan.finding import lowered as less
from navigator_kernel.skills.scan.flow.python_flow import hits as of_python
from navigator_kernel.skills.scan.flow.text_flow import hits as of_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from navigator_kernel.skills.scan.rule import Hit

KINDS: frozenset[Kind] = frozenset({"code", "fence", "config", "comment"})


def hits(passage: Passage) -> Iterator[Hit]:
    """The hits of flows in a passage."""
    if passage.kind not in KINDS:
        return
    is_python = passage.path.lower().endswith((".py", ".pyw"))
    in_python = list(of_python(passage.body)) if is_python or passage.kind == "fence" else []
    for hit in in_python if in_python or is_python else of_text(passage.body):
        mild = passage.kind != "comment" and (is_aside(passage.path) or warned_of(passage, hit.at))
        yield hit._replace(level=less(hit.level)) if mild else hit

"""Stage 0: counts installed skills, and reminds the person if there are few (STA-1..4, X-34, X-44)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from navigator_kernel.values.reply import Notice

if TYPE_CHECKING:
    from navigator_kernel.ports import Catalogue
    from navigator_kernel.values.request import Session

ENOUGH = 10  # STA-3


def precheck(catalogue: Catalogue, session: Session, hook: Callable[[int], object]) -> Notice | None:
    """The notice to show, or None. A plugin's notice takes precedence."""
    if session.notice_shown:
        return None
    count = catalogue.count_own()
    told = hook(count)
    if isinstance(told, Notice):
        return told
    return Notice(code="few_skills", count=count) if count < ENOUGH else None

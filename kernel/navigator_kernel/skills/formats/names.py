"""Valid names of skills."""

from __future__ import annotations

from collections.abc import Sequence

from navigator_kernel.errors import UsageProblem
from navigator_kernel.text import clean, lazy_compile

NAME = lazy_compile(r"[^\W_](?:[\w-]{0,62}[^\W_])?")  # letters and digits of any script, `-` and `_` inside


def refuse_rename(rename: str, wanted: Sequence[str]) -> None:
    """Raises UsageProblem if the new name is invalid, or if more than one skill is wanted."""
    if rename and (len(wanted) > 1 or not NAME.fullmatch(rename)):
        hint = "--as takes a name of letters, digits, '-' and '_' for one --skill"
        raise UsageProblem(f"nothing can be installed as {clean(rename, lines=False)!r}", hint=hint)

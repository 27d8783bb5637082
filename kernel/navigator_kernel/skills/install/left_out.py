"""The reasons why skills of a source are not installed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from navigator_kernel.errors import KernelError, NotLoadable
from navigator_kernel.text import clean

if TYPE_CHECKING:
    from navigator_kernel.skills.source.found import Found

State = Literal["skipped", "blocked"]

# Explains each reason in a list of many skills. The reasons in `_MEANT` are rules of the layout: these skills are no
# part of "all". All others are failures, which a person can settle, at least by `--exclude`; docs/reference/states.md.
_WHY: Mapping[str, str] = {
    "ambiguous": "the name of several skills",
    "broken-copy": "a broken link in place of a copy of another one",
    "broken-link": "a link of it leads to nothing",
    "copy": "a copy of another one",
    "edited": "changed here since it was installed",
    "example": "an example",
    "excluded": "named by --exclude",
    "hidden": "in a hidden folder",
    "lookalike": "its name looks like another one",
    "manifest": "its manifest cannot be used",
    "name-taken": "name already in use",
    "no-name-left": "its name is another skill's, and no other name is free",
    "no-text": "no text and no command",
    "not-found": "no skill of that name",
    "placeholder": "a placeholder",
    "reserved": "its name is the kernel's own",
    "scanner": "the scanner blocks it",
    "test": "a test",
    "too-large": "too large",
    "unsafe-files": "its files may not lie here",
}
_MEANT = frozenset({"broken-copy", "copy", "example", "excluded", "hidden", "no-text", "placeholder", "test"})
_BLOCKS = frozenset({"lookalike", "reserved", "scanner", "too-large", "unsafe-files"})
DANGLING = ("link-dangling",)  # codes of a skill whose only fault is broken links, which are harmless
_BY_CODE = {"not_loadable": "manifest", "skill_not_found": "not-found", "usage": "ambiguous"}
_BY_REASON = {"empty": "no-text", "no-description": "no-text"}


class LeftOut(NamedTuple):
    """A skill or a typed name that was not installed; `codes` give details of the reason."""

    name: str
    path: str
    reason: str
    error: KernelError
    codes: tuple[str, ...] = ()

    @property
    def state(self) -> State:
        return "blocked" if self.reason in _BLOCKS else "skipped"

    @property
    def is_failure(self) -> bool:
        """Whether the skill should have been installed."""
        return self.reason not in _MEANT

    def to_dict(self) -> dict[str, Any]:
        why = _WHY.get(self.reason, self.reason)
        why = f"{why}: {', '.join(self.codes)}" if self.codes else why
        head = {"name": clean(self.name, lines=False), "path": clean(self.path, lines=False), "state": self.state}
        head |= {"reason": self.reason, "why": why}
        return {**self.error.to_dict(), **head, "failure": self.is_failure}


def left_out(skill: Found, reason: str, message: str, *, hint: str = "", **facts: Any) -> LeftOut:
    """Creates one for a reason that is known in advance."""
    return LeftOut(skill.name, skill.shown, reason, KernelError(message, hint=hint, **facts))


def failed(skill: Found, error: KernelError) -> LeftOut:
    """Creates one for an error."""
    return told_of(skill.name, skill.shown, error)


def told_of(name: str, path: str, error: KernelError) -> LeftOut:
    data = error.data
    if findings := data.get("findings"):
        errors = (finding["code"] for finding in findings if finding["level"] == "error")
        rules = {str(code) for code in data.get("blocked_by") or errors}
        return LeftOut(name, path, "scanner", error, tuple(sorted(rules)))
    given = str(data.get("reason", ""))
    if isinstance(error, NotLoadable):
        return LeftOut(name, path, _BY_REASON.get(given, "manifest"), error, (given,) if given else ())
    reason, codes = given or _BY_CODE.get(error.code, error.code), tuple(data.get("codes", ()))
    if codes == DANGLING:
        return LeftOut(name, path, "broken-link", error)
    return LeftOut(name, path, reason, error, codes)

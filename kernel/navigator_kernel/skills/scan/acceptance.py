"""Blocks that the person accepted: one rule of one skill, while the finding stays the same."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from navigator_kernel.errors import Refused
from navigator_kernel.skills.scan.finding import identity, told
from navigator_kernel.text import clean

if TYPE_CHECKING:
    from navigator_kernel.skills.options import InstallOptions
    from navigator_kernel.values.receipt import Receipt
    from navigator_kernel.values.resource import Diagnostic

SHOWN = 5  # findings that a refusal shows


class Judged(NamedTuple):
    """The blocking findings that nobody accepted, the accepted ones, and the new acceptances to be stored."""

    blocking: Sequence[Diagnostic]
    accepted: Sequence[Diagnostic]
    granted: tuple[str, ...]


def subject(receipt: Receipt, found: Diagnostic) -> str:
    """The subject of an acceptance. It is bound to the skill and its source, not to a commit: an update asks again only
    if the finding differs."""
    return f"accepted:{receipt.name}@{clean(receipt.source, lines=False)}@{identity(found)}"


def judged(receipt: Receipt, findings: Sequence[Diagnostic], given: Sequence[str], subjects: Collection[str]) -> Judged:
    """Sorts the errors by acceptance. `given` are the rules that the person names now, `RULE` or `NAME:RULE`;
    `subjects` are the earlier acceptances, to which no file of a project can add."""
    named = {rule for rule in given if ":" not in rule}
    named |= {rule.partition(":")[2] for rule in given if rule.partition(":")[0] == receipt.name}
    blocking, accepted, granted = [], [], []
    for one in (found for found in findings if found.level == "error"):
        kept = subject(receipt, one)
        if kept in subjects:
            accepted.append(one)
        elif one.code in named and one.digest:
            accepted.append(one)
            granted.append(kept)
        else:
            blocking.append(one)
    return Judged(blocking, accepted, tuple(granted))


def facts(found: Diagnostic) -> Mapping[str, str]:
    """The facts that are recorded about an acceptance."""
    return {"rule": found.code, "file": clean(found.path, lines=False), "digest": found.digest}


def refusal(
    receipt: Receipt, findings: Sequence[Diagnostic], blocking: Sequence[Diagnostic], options: InstallOptions
) -> Refused:
    """The refusal, which shows the findings with their places and the whole command that accepts them."""
    shown = "; ".join(told(one.to_dict()) for one in blocking[:SHOWN])
    rules = list(dict.fromkeys(one.code for one in blocking))
    words = [receipt.source, "--skill", receipt.name]
    if receipt.declared:  # without `--as`, a skill at a path keeps its own name
        words = [receipt.source, "--skill", receipt.subpath or receipt.declared, "--as", receipt.name]
    words += ["--ref", receipt.ref] if receipt.ref else []
    words += [word for rule in rules for word in ("--accept", f"{receipt.name}:{rule}")]
    data: dict[str, Any] = {
        "findings": [one.to_dict() for one in findings],
        "skill": receipt.name,
        "blocked_by": rules,
    }
    message = f"skill {receipt.name!r} is blocked: {shown}"
    hint = f"read it; to install it anyway: {options.command('install', *words)}"
    return Refused(message, hint=hint, reason="unsafe", **data)

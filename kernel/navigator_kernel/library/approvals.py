"""Approvals of tool calls by another agent's model: each approval is for one call."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

from msgspec import Struct, field

from navigator_kernel.errors import NotFound, UsageProblem
from navigator_kernel.values.approval import Approval, digest_of
from navigator_kernel.values.job import is_lasting

MOST = 256  # pending questions; the oldest is dropped if there are more

Lasting = Literal["once", "session"]


class Approvals(Struct):
    """`key` names a call by its tool and its arguments. Everything is kept in memory and ends with the process."""

    _waiting: dict[str, tuple[str, Approval]] = field(default_factory=dict)
    _agreed: dict[str, set[str]] = field(default_factory=dict)
    _lasting: set[str] = field(default_factory=set)
    _count: int = 0

    def taken(self, key: str) -> tuple[str, ...]:
        """Returns what the person allowed for this call; what was allowed once is used up."""
        return (*self._lasting, *self._agreed.pop(key, ()))

    def asked(
        self,
        key: str,
        had: Collection[str],
        subject: str,
        question: str,
        tool: str,
        arguments: Mapping[str, Any],
        also: tuple[str, ...] = (),
    ) -> Approval:
        """Adds the question about a call that was not made, in place of the same earlier one; what the person `had`
        allowed for the call stays valid."""
        if kept := set(had) - self._lasting:
            self._agreed[key] = kept
        self._count += 1
        name = f"call:{digest_of(key, subject, self._count)}"
        approval = Approval(
            id=name, subject=subject, question=question, also=also, tool=tool, arguments=dict(arguments)
        )
        others = [
            (other, held) for other, held in self._waiting.items() if (held[0], held[1].subject) != (key, subject)
        ]
        self._waiting = {**dict(others[1 - MOST :]), name: (key, approval)}
        return approval

    def waiting(self) -> tuple[Approval, ...]:
        """The waiting questions, oldest first."""
        return tuple(approval for _, approval in self._waiting.values())

    def allow(self, name: str, lasting: Lasting) -> None:
        """Allows a call. NotFound if none waits under this name, UsageProblem if it can be allowed only once."""
        if name not in self._waiting:
            raise NotFound(f"no call waits under {name!r}", hint="Kernel.approvals() names those that do")
        key, approval = self._waiting[name]
        if lasting == "session" and not is_lasting(approval.subject):
            raise UsageProblem(f"a yes to {approval.tool!r} applies to this call only", hint='allow it "once"')
        del self._waiting[name]
        subjects = (approval.subject, *approval.also)
        if lasting == "session":
            self._lasting.update(filter(is_lasting, subjects))
        self._agreed.setdefault(key, set()).update(subjects)

"""The result of a turn: the reports, the three sections, the next session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from navigator_kernel.text import Language
from navigator_kernel.values.approval import Approval, waiting_approval
from navigator_kernel.values.chat import Spent
from navigator_kernel.values.packet import Report
from navigator_kernel.values.request import Said, Session
from navigator_kernel.values.route import RouteDecision
from navigator_kernel.values.work import is_unfinished
from navigator_kernel.values.workflow import WorkflowView


class Notice(Struct, frozen=True, kw_only=True):
    """A reminder that blocks nothing (STA-4)."""

    code: str
    count: int


class Sections(Struct, frozen=True, kw_only=True):
    """The sections: why, what was done, what changed (OUT-1..3); empty for X-24."""

    logic_trace: tuple[str, ...] = ()
    action_vector: tuple[str, ...] = ()
    state_update: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, list[str]]:
        return {
            "logic_trace": list(self.logic_trace),
            "action_vector": list(self.action_vector),
            "state_update": list(self.state_update),
        }


class Reply(Struct, frozen=True, kw_only=True):
    """`report` is the one that counts: the last one. `said` are the entries that the turn adds to the history;
    `workflow` is the workflow of the turn, `question` its question before it continues. `open` names what is still
    open, or no longer, beside the matter of the turn, `answer` says what the message meant: `{outcome, value?}`.
    `usage` is that of all requests to models in the turn, with routing and failed ones, `models` those that were asked.
    `is_stopped` says that the person stopped a model at its work, which can go on.
    """

    run: str
    decision: RouteDecision
    report: Report
    reports: tuple[Report, ...]
    sections: Sections
    session: Session
    language: Language
    said: tuple[Said, ...] = ()
    notice: Notice | None = None
    workflow: WorkflowView | None = None
    question: str = ""
    open: str = ""
    answer: Mapping[str, str] | None = None
    usage: Spent = field(default_factory=Spent)
    models: tuple[str, ...] = ()
    is_stopped: bool = False

    @property
    def approval(self) -> Approval | None:
        """The approval that the run waits for, or None."""
        return waiting_approval(self.session, self.question or self.report.summary)

    def to_dict(self) -> dict[str, Any]:
        """The document of `navigator ask --json`."""
        body: dict[str, Any] = {"run": self.run, "session": self.session.id, "route": self.decision.to_dict()}
        body |= {"report": self.report.to_dict(), "reports": [report.to_dict() for report in self.reports]}
        notice: Mapping[str, Any] | None = None
        if self.notice is not None:
            notice = {"code": self.notice.code, "count": self.notice.count}
        waiting = self.session.approval is not None or self.session.question is not None
        body["resume"] = self.session.id if waiting or is_unfinished(self.session) else None
        body["workflow"] = None if self.workflow is None else self.workflow.to_dict()
        body["question"] = self.question or None
        body["open"], body["answer"] = self.open or None, self.answer
        body["usage"] = self.usage.to_dict() if self.usage.requests else None
        return {**body, "sections": self.sections.to_dict(), "notice": notice, "exit_code": self.report.exit_code}

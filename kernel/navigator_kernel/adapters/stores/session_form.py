"""Converts a session to JSON values and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import asdict

from navigator_kernel.values.packet import packet_from
from navigator_kernel.values.request import PendingApproval, PendingQuestion, Session, Sticky

VERSION = 1


def session_to_dict(session: Session) -> dict[str, Any]:
    """The session as JSON values; `session_from` is its inverse."""
    approval = session.approval
    return {
        "v": VERSION,
        "id": session.id,
        "turn": session.turn,
        "notice_shown": session.notice_shown,
        "sticky": None if session.sticky is None else asdict(session.sticky),
        "approval": None
        if approval is None
        else {
            "packets": [packet.to_dict() for packet in approval.packets],
            "subject": approval.subject,
            "asked_at": approval.asked_at,
            "workflow": approval.workflow,
            "agreed": list(approval.agreed),
            "also": list(approval.also),
            "wider": approval.wider,
            "question": approval.question,
            "steps": list(approval.steps),
        },
        "question": None if session.question is None else asdict(session.question),
        "failures": session.failures,
        "failed": session.failed,
        "retry": [packet.to_dict() for packet in session.retry],
        "grants": list(session.grants),
        "private": session.private,
        "talks": session.talks,
        "written": list(session.written),
    }


def session_from(raw: Mapping[str, Any]) -> Session:
    """The session in `raw`; KeyError, TypeError or ValueError if it is invalid."""
    if raw["v"] > VERSION:
        raise ValueError(f"a newer version ({raw['v']}) wrote it")
    sticky, approval, question = raw["sticky"], raw["approval"], raw["question"]
    return Session(
        id=raw["id"],
        turn=raw["turn"],
        notice_shown=raw["notice_shown"],
        sticky=None if sticky is None else Sticky(**sticky),
        approval=None if approval is None else _approval(approval),
        question=None if question is None else _question(question),
        failures=raw["failures"],
        failed=str(raw.get("failed", "")),
        retry=tuple(packet_from(packet) for packet in raw.get("retry", ())),
        grants=tuple(map(str, raw.get("grants", ()))),
        private=raw.get("private", True) is not False,  # an earlier version did not store it
        talks=raw.get("talks", False) is True,
        written=tuple(map(str, raw.get("written", ()))),
    )


def _question(raw: Mapping[str, Any]) -> PendingQuestion:
    lists = {"missing": tuple(raw["missing"]), **{key: tuple(raw.get(key, ())) for key in ("answers", "options")}}
    return PendingQuestion(**{**raw, **lists})


def _approval(raw: Mapping[str, Any]) -> PendingApproval:
    packets = tuple(packet_from(packet) for packet in raw["packets"])
    return PendingApproval(
        packets=packets,
        subject=raw["subject"],
        asked_at=raw["asked_at"],
        workflow=raw.get("workflow", ""),
        agreed=tuple(map(str, raw.get("agreed", ()))),
        also=tuple(map(str, raw.get("also", ()))),
        wider=raw.get("wider", ""),
        question=str(raw.get("question", "")),
        steps=tuple(map(str, raw.get("steps", ()))),
    )

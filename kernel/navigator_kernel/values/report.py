"""A subagent's answer: one of five states, data, and metadata (RET-1..10)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from msgspec import Struct, field

State = Literal["success", "error", "timeout", "partial", "pending"]
STATES: tuple[State, ...] = get_args(State)

Format = Literal["summary", "detail", "raw"]
Style = Literal["emoji", "ascii", "json"]

FORMATS: Mapping[str, Format] = {word: word for word in get_args(Format)}

_EXIT: Mapping[State, int] = {"success": 0, "partial": 1, "error": 1, "pending": 9, "timeout": 124}


class Meta(Struct, frozen=True, kw_only=True):
    """`time` in seconds, `ts` ISO 8601 in UTC; `cached` says that no agent ran (X-21)."""

    agent: str
    time: float
    ts: str
    cached: bool = False

    def to_dict(self) -> dict[str, Any]:
        base: dict[str, Any] = {"agent": self.agent, "time": self.time, "ts": self.ts}
        return {**base, "cached": True} if self.cached else base


class Report(Struct, frozen=True, kw_only=True):
    """What a subagent returns. `data` holds JSON values; `raw` is the untouched output (RET-8).

    `recoverable` lets a fallback candidate be tried, `effects` names what was already changed, after which none may be
    tried (X-6).

    The other fields are the kernel's own notes, which no rendering shows and no agent can write: `target` is what the
    order was for, `subject` what needs a yes before it can be done, `also` what the same yes must cover too, `wider`
    what a yes for the session also covers, `offloaded` the file with all of an output that was too long, `progress` how
    far waiting or failed work came, as JSON; `by_model` says that `raw` is a model's own words; `private` that it may
    contain the person's files or data, which only a model's answer to the message alone does not; `unanswered` that it
    failed because no model gave an answer.
    """

    state: State
    summary: str
    meta: Meta
    data: Mapping[str, Any] = field(default_factory=dict)
    raw: str | None = None
    recoverable: bool = False
    effects: tuple[str, ...] = ()
    target: str = ""
    subject: str = ""
    also: tuple[str, ...] = ()
    wider: str = ""
    offloaded: str = ""
    progress: str = ""
    by_model: bool = False
    private: bool = True
    unanswered: bool = False

    @property
    def agent(self) -> str:
        return self.meta.agent

    @property
    def exit_code(self) -> int:
        """The exit code of a report (part 3, item 8)."""
        typed = self.data.get("exit_code") if self.state == "error" else None
        return typed if isinstance(typed, int) and 0 < typed < 256 else _EXIT[self.state]

    @property
    def files(self) -> tuple[str, ...]:
        """The files that it names in `data["files"]`; empty if that is something else, such as a number."""
        names = self.data.get("files")
        return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list | tuple) else ()

    def to_dict(self) -> dict[str, Any]:
        """The report as its canonical JSON object."""
        body: dict[str, Any] = {"state": self.state, "agent": self.agent, "summary": self.summary}
        body |= {"data": dict(self.data), "meta": self.meta.to_dict(), "recoverable": self.recoverable}
        if self.effects:
            body["effects"] = list(self.effects)
        if self.raw is not None:
            body["raw"] = self.raw
        return body


def shown_path(path: Path, root: Path) -> str:
    """The path as reports name it: from the project's folder `root`, or absolute if it lies elsewhere."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def report_to_dict(report: Report) -> dict[str, Any]:
    """The whole report with the kernel's own notes; `report_of` is its inverse."""
    own: dict[str, Any] = {"target": report.target, "subject": report.subject, "wider": report.wider}
    own |= {"also": list(report.also)} if report.also else {}
    own |= {"offloaded": report.offloaded, "progress": report.progress}
    own |= {"by_model": report.by_model, "private": report.private, "unanswered": report.unanswered}
    return {**report.to_dict(), **own}


def report_of(raw: Mapping[str, Any]) -> Report:
    """Parses `raw`; KeyError or TypeError if it is invalid."""
    meta = raw["meta"]
    return Report(
        state=raw["state"],
        summary=raw["summary"],
        meta=Meta(agent=meta["agent"], time=meta["time"], ts=meta["ts"], cached=meta.get("cached", False)),
        data=raw["data"],
        raw=raw.get("raw"),
        recoverable=raw["recoverable"],
        effects=tuple(raw.get("effects", ())),
        target=raw.get("target", ""),
        subject=raw.get("subject", ""),
        also=tuple(raw.get("also", ())),
        wider=raw.get("wider", ""),
        offloaded=raw.get("offloaded", ""),
        progress=raw.get("progress", ""),
        by_model=raw.get("by_model", False),
        private=raw.get("private", True),
        unanswered=raw.get("unanswered", False),
    )

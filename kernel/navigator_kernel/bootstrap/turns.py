"""Runs the turns of one project, and stores the session of each."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.secrets.redaction import remembering
from navigator_kernel.adapters.stores.underway import run_of
from navigator_kernel.dispatch import EventStream
from navigator_kernel.errors import Busy, NotFound, UsageProblem
from navigator_kernel.text import language_of, lazy_compile, warn
from navigator_kernel.turn.answers import Resumed, is_interrupted, is_open, resume
from navigator_kernel.turn.turn import run_turn
from navigator_kernel.values.approval import waiting_approval
from navigator_kernel.values.owner import owned, owner_of_session, viewing
from navigator_kernel.values.request import Message, PendingApproval, Session
from navigator_kernel.values.work import is_unfinished
from navigator_kernel.values.workflow import WorkflowRun, plan_from, plan_to_dict

if TYPE_CHECKING:
    from navigator_kernel.bootstrap.project import Project
    from navigator_kernel.events import Listener
    from navigator_kernel.values.reply import Reply

RECALLED = 200  # history entries that a model may be shown
LONGEST = 1_000_000  # characters of a message
MOST = 32  # concurrent turns; further ones wait

Keep = Literal["always", "waiting", "never"]


class Turns(Struct, frozen=True):
    """Takes turns in a project, several side by side."""

    project: Project

    def session(self, name: str | None, text: str = "") -> Session:
        """The session called `name`, new if there is none yet; without a name one that is kept only if it waits, or
        the one in which a killed process was working on `text`. It waits if a process was killed in its turn."""
        if name is None:
            interrupted = [
                order
                for order in (self.project.underway.left() if text else ())
                if not order.turn and order.order.packets[0].task_spec.intent.strip() == text.strip()
            ]
            if interrupted:
                return Session(id=interrupted[-1].session, approval=interrupted[-1].order)
            return Session(id=self.project.ids.new())
        if not _NAME.fullmatch(name):
            raise UsageProblem(f"{name!r} is not a session name", hint="letters, digits, '.', '_' and '-', 1 to 80")
        try:
            session = self.project.sessions.load(name)
        except NotFound:
            session = Session(id=name)
        left = [order for order in self.project.underway.left() if (order.session, order.turn) == (name, session.turn)]
        return replace(session, approval=left[-1].order) if left else session

    def answered(self, approval: str, text: str) -> tuple[Message, Session]:
        """The answer to exactly the approval that a session waits for now. NotFound if that was answered, withdrawn or
        has expired. A reason for a refusal, `e …`, is read only in an attended message."""
        gone = NotFound(
            f"nothing waits under {approval!r}", hint="it was answered or withdrawn, or was asked over a day ago"
        )
        try:
            session = self.project.sessions.load(approval.rpartition(":")[0])
        except NotFound:
            raise gone from None
        waits = waiting_approval(session)
        if session.approval is None or waits is None or waits.id != approval:
            raise gone
        if not is_open(session.approval, SystemClock().now()):
            raise gone
        packets = session.approval.packets
        language = packets[0].context.language if packets else None
        return Message(text=text, attended=text.startswith("e "), language=language), replace(session, question=None)

    def workflow_answer(self, held: WorkflowRun, subject: str) -> tuple[Message, Session]:
        """The approval of `subject` of a workflow's run, in the session that it belongs to."""
        try:
            session = self.project.sessions.load(held.session)
        except NotFound:
            session = Session(id=held.session)
        now = self.project.clock.now()
        approval = session.approval
        if approval is None or (approval.workflow, approval.subject) != (held.token, subject):
            last = next((one.report for one in reversed(held.records) if one.report is not None), None)
            also = last.also if last is not None and last.subject == subject else ()
            approval = PendingApproval(packets=(), subject=subject, workflow=held.token, also=also)
        waiting = replace(approval, asked_at=now)
        text = "是" if language_of(held.plan.description) == "zh" else "yes"
        return Message(text=text, attended=False), replace(session, approval=waiting, question=None)

    async def take(
        self,
        message: Message,
        session: Session,
        listeners: Sequence[Listener] = (),
        *,
        keep: Keep,
        run: str = "",
        agreed: Sequence[str] = (),
        missed: Callable[[Busy], None] | None = None,
        allow: Callable[[Resumed], None] = lambda _resumed: None,
        stopped: Callable[[Reply], None] = lambda _reply: None,
    ) -> Reply:
        """Runs one turn and returns the reply; `keep` says when its session is saved: with "waiting" only if it waits
        for an answer. `agreed` lists subjects that the person agreed to for this turn alone; `allow` raises an error if
        the message may not have the effect that it has.

        A session that is kept takes one turn after another, in the order in which they were asked for. Busy if that
        takes too long (`adapters/stores/sessions.py`), or if the session was continued elsewhere meanwhile and the
        message answers what it asked before or asks now; a workflow that was carried out all the same returns its
        reply, and `missed` is called with the error. A cancelled turn ends in a CancelledError; `stopped` is called
        before, if a model had worked, with the reply from which its work can go on.
        """
        project, owner, lasts = self.project, owner_of_session(session.id), keep == "always"
        project.refuse_replaced()
        async with project.sessions.queue.turn(session.id, warn) if lasts else nullcontext():
            session = self._continued(message, session) if lasts else session
            if owner:  # earlier versions wrote to folders without an owner, which are closed now
                written = tuple(path for path in session.written if f"-{owner}/" in path)
                session = replace(session, written=written)
            if project.models is not None and session.turn:
                session = replace(session, history=tuple(project.sessions.history(session.id, RECALLED)))
            resumed = resume(message, session, project.clock.now(), project.catalogue)
            allow(resumed)
            goes_on: str = ""  # the run of a killed process that continues now
            size: int | None = None  # of its file
            covered: tuple[str, ...] = ()
            if (approved := resumed.approved) is not None and not resumed.declined:
                covered = approved.covered
                if is_interrupted(approved):
                    (goes_on, size), covered = run_of(approved.subject), approved.agreed
            run = goes_on or run or owned(project.ids.new(), owner)
            seq = len(project.run_log.read(run)) if goes_on else 0
            for subject in agreed:
                project.consents.allow(run, subject)
            loop, task = asyncio.get_running_loop(), asyncio.current_task()

            def stop(work: str) -> None:
                if work in {"", run} and task is not None:
                    loop.call_soon_threadsafe(task.cancel)

            is_open = is_interrupted(resumed.session.approval)
            is_new = session.approval is None and session.question is None
            # A message with a secret cannot be repeated
            text = message.text if lasts and is_new and project.redact(message.text) == message.text else ""
            recorded = project.underway.kept(run, session, covered, size, message=text, is_open=is_open)
            stoppable = project.sessions.queue.stoppable(session.id, stop) if lasts else nullcontext()
            with viewing(owner), remembering(), recorded, stoppable, project.run_log.opened(run) as log:
                if session.question is not None:  # the answer to "password?" is one
                    project.redact(dict.fromkeys(session.question.missing, message.text.strip()))
                stream = EventStream(run, session.turn, log, project.clock, listeners, seq, project.redact)
                reply = await run_turn(message, session, project, stream, resumed)
                if (view := reply.workflow) is not None:
                    plan, left = (
                        plan_from(project.redact(plan_to_dict(view.plan))),
                        tuple(project.redact(list(view.left))),
                    )
                    reply = replace(reply, workflow=replace(view, plan=plan, left=left))
                after = reply.session
                waits = after.approval is not None or after.question is not None or is_unfinished(after)
                if lasts or (keep == "waiting" and waits):
                    try:
                        project.sessions.save(reply.session, reply.said)
                    except Busy as error:
                        if reply.workflow is None or missed is None:
                            raise
                        missed(error)
            if reply.is_stopped:
                stopped(reply)
                raise asyncio.CancelledError
            return reply

    def _continued(self, message: Message, session: Session) -> Session:
        """The stored session if it is newer than `session`, which the message was written for; without consents that
        were revoked meanwhile."""
        try:
            stored = self.project.sessions.load(session.id)
        except NotFound:
            return session
        if stored.turn <= session.turn:
            # The session, with no more consents than the stored one has
            grants = tuple(one for one in session.grants if one in stored.grants)
            approval = session.approval
            if approval is not None and stored.approval is not None:
                revoked = {one for one in session.grants if one not in grants}
                approval = replace(approval, agreed=tuple(one for one in approval.agreed if one not in revoked))
            return replace(session, grants=grants, approval=approval)
        for one in (session, stored):
            asks = one.approval is not None or one.question is not None
            if asks and resume(message, one, self.project.clock.now(), self.project.catalogue).outcome != "other":
                hint = f"navigator session show {session.id}, then send it again"
                raise Busy(f"session {session.id!r} was continued meanwhile, and the message may not fit", hint=hint)
        return stored


def refuse_message(text: str) -> None:
    """Raises UsageProblem for an empty or too long message."""
    if not text.strip():
        raise UsageProblem("there is no message", hint='navigator ask "review this code", or text on stdin')
    if len(text) > LONGEST:
        raise UsageProblem(f"the message is over {LONGEST:,} characters", hint="point to a file with @path")


_NAME = lazy_compile(r"[A-Za-z0-9][\w.-]{0,79}", re.ASCII)

"""The tools of the MCP server: route a message, load a skill, run it, and explain a run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from navigator_kernel.errors import NotFound, Refused, SkillNotFound, UsageProblem
from navigator_kernel.events import RunStarted
from navigator_kernel.text import shorten
from navigator_kernel.turn.message import preprocess
from navigator_kernel.turn.understand import decide, understand_locally
from navigator_kernel.values.request import Message, Session
from navigator_kernel.values.route import NeedClarification
from navigator_kernel.why import lines_of, reasons

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from navigator_kernel.ports import Executor, Kernel
    from navigator_kernel.values.reply import Reply
    from navigator_kernel.values.resource import SkillDef

DESCRIBED = 400  # characters of a description
MOST = 20  # most candidates in one answer
LOOK, PAUSE = 2.0, 0.05  # seconds between checks for changed files, and the delay before one
TEXT = 64_000  # characters of a skill's text
LOOKED_AT = 200  # newest runs searched for one of a host
SESSIONS = "mcp-"  # the names of the sessions of hosts begin with it


class KernelTools(Struct, kw_only=True):
    """Each tool returns JSON values or raises a KernelError. `take` takes turns, side by side, and keeps the session of
    a turn that waits for the person, so that they can answer it."""

    kernel: Kernel
    take: Callable[[Message, Session], Awaitable[Reply]]
    _looked: float = float("-inf")

    async def route(self, message: str, k: int = 5) -> Mapping[str, Any]:
        """The route of a message, without asking a model and without running anything.

        In a large catalogue the next call notices a file that was changed in place, and this one a skill that was added
        or removed. UsageProblem for an empty message.
        """
        if not message.strip():
            raise UsageProblem("there is no message", hint="send what the person wants, as they wrote it")
        with self.kernel.catalogue.glance():
            told = self._routed(message, k)
        loop = asyncio.get_running_loop()
        if loop.time() - self._looked > LOOK:
            self._looked = loop.time()
            loop.call_later(PAUSE, self.kernel.catalogue.list_resources)
        return told

    def _routed(self, message: str, k: int) -> Mapping[str, Any]:
        kernel = self.kernel
        request = preprocess(Message(text=message), kernel.files)
        intent = understand_locally(request, Session(id="mcp"), kernel.router)
        decision = decide(intent, request, kernel.catalogue)
        found = intent.retrieval.candidates[: min(max(k, 1), MOST)] if intent.retrieval else ()
        shown = [(one.confidence, skill) for one in found if (skill := self._model_may(one.name)) is not None]
        body = {**decision.to_dict(), "band": intent.retrieval.band if intent.retrieval else None}
        body |= {"candidates": [{**_described(skill), "confidence": round(sure, 4)} for sure, skill in shown]}
        if isinstance(decision.result, NeedClarification):
            body |= {"question": decision.result.question, "options": list(decision.options)}
        return body

    async def load_skill(self, name: str) -> Mapping[str, Any]:
        """A skill's text with its digest, for the host's model to follow. SkillNotFound for an unknown name; Refused if
        the skill was changed, or neither installed nor trusted."""
        skill = self._model_may(name)
        if skill is None:
            near = self.kernel.catalogue.suggest(name)
            raise SkillNotFound(f"no skill is called {name!r}", hint=f"similar names: {', '.join(near) or 'none'}")
        executor = self.kernel.catalogue.create_executor(skill.namespace)
        _refuse_unknown(executor)
        if executor.is_changed:
            hint = f"the person may look at it: navigator skill verify {skill.name}"
            raise Refused(f"skill {skill.name!r} was changed since it was installed", hint=hint)
        text = (skill.sop or skill.system_prompt)[:TEXT]
        needs = [spec.name for spec in skill.required_params]
        body = {**_described(skill), "digest": executor.digest, "text": text, "required_params": needs}
        return {**body, "folder": str(skill.folder or ""), "runs": skill.kind == "A"}

    async def run_skill(self, name: str, args: str = "") -> Mapping[str, Any]:
        """The report of a turn that runs the skill, under the person's policy; pending if it needs their consent."""
        skill = self._model_may(name)
        if skill is None:
            raise SkillNotFound(f"no skill is called {name!r}", hint="route finds the one for a message")
        kernel = self.kernel
        if skill.kind == "B":  # kind A is checked later, when its command starts
            _refuse_unknown(kernel.catalogue.create_executor(skill.namespace))
        message = Message(text=f"/{skill.name} {args}".strip())
        if len(preprocess(message, kernel.files).commands) != 1:
            raise UsageProblem("the arguments hold a second instruction", hint="call one skill, not a command")
        session = Session(id=f"{SESSIONS}{kernel.ids.new()}", notice_shown=True)
        reply = await self.take(message, session)
        waits = reply.session.approval is not None or reply.session.question is not None
        body: dict[str, Any] = {"run": reply.run, "report": kernel.redact(reply.report.to_dict())}
        return {**body, "ask_the_person": f"navigator ask --session {session.id} yes"} if waits else body

    async def why(self, run: str = "") -> Mapping[str, Any]:
        """Why a run that a host began, by default the newest of these, did what it did: in `why` a sentence for each
        message, in `lines` every stage with its numbers. NotFound for any other run: its message is not the host's."""
        log = self.kernel.run_log
        for name in [run] if run else log.runs()[:LOOKED_AT]:
            events = log.read(name)
            if events and isinstance(events[0].body, RunStarted) and events[0].body.session.startswith(SESSIONS):
                lines = [line.strip() for event in events for line in lines_of(event)]
                return {"run": name, "why": list(reasons(events, self.kernel.catalogue)), "lines": lines}
        raise NotFound(f"no run is called {run!r}" if run else "there is no run yet", hint="run_skill makes one")

    def _model_may(self, name: str) -> SkillDef | None:
        """The skill with this name; None if there is none, or if its author keeps it from models."""
        skill = self.kernel.catalogue.find(name)
        return skill if skill is not None and skill.implicit else None


def _described(skill: SkillDef) -> dict[str, Any]:
    return {"name": skill.name, "description": shorten(skill.description, DESCRIBED)}


def _refuse_unknown(executor: Executor) -> None:
    """Refused for a skill neither installed nor trusted: nobody here sees what another agent does with its text."""
    if executor.standing == "unknown":
        name = executor.skill.name
        hint = f"the person may look at it, then: navigator skill trust {name}"
        message = f"skill {name!r} was neither installed nor trusted by the person"
        raise Refused(message, hint=hint, reason="unknown-skill")

"""The tools of skills for another agent's model: which are offered, and how a call is checked and run."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from navigator_kernel.agent_loop.skill_tool import NAME as SKILL
from navigator_kernel.agent_loop.specialist import work_of
from navigator_kernel.agent_loop.window import suffix
from navigator_kernel.errors import ConsentNeeded, KernelError, NotFound, Refused, SkillNotFound, UsageProblem
from navigator_kernel.language.wording import say
from navigator_kernel.text import clean, escape_controls, shorten
from navigator_kernel.tools.guarded import LONGEST
from navigator_kernel.values.approval import Approval, digest_of
from navigator_kernel.values.chat import ToolCall, ToolSpec
from navigator_kernel.values.job import is_lasting
from navigator_kernel.values.work import AgentTask

if TYPE_CHECKING:
    from navigator_kernel.model_ports import Tools
    from navigator_kernel.ports import Catalogue, Consents, Executor, Ids
    from navigator_kernel.values.reply import Reply
    from navigator_kernel.values.resource import SkillDef

RUN_SKILL = "run_skill"
DESCRIBED = 400  # characters of a description
TOGETHER = 16_000  # total characters of the descriptions shown to a model
ANSWER = 16_000  # characters of an answer
_TEXT = {"type": "string"}

RunSkill = Callable[[str, str, Sequence[str]], Coroutine[Any, Any, "Reply"]]


class Called(NamedTuple):
    """The outcome of a call: text for the model; `approval` if it was not made because the person has to agree first.
    `run` is its id in the audit log."""

    text: str
    run: str
    failed: bool = False
    approval: Approval | None = None


class SkillCalls(Struct, frozen=True, kw_only=True):
    """Tools of the `skills` for one conversation of another agent. `named` are the files that the program named,
    `mentioned` finds the project files in a text, `workspace` is where the tools write. Each call has its own run, so
    that a yes to one call is not a yes to another; `tools` makes new tools for each call."""

    skills: tuple[SkillDef, ...]
    tools: Callable[[], Tools]
    run_skill: RunSkill
    approvals: Approvals
    catalogue: Catalogue
    consents: Consents
    ids: Ids
    project: Path
    workspace: Path
    named: tuple[Path, ...]
    mentioned: Callable[[str], Sequence[Path]]

    def offered(self) -> tuple[ToolSpec, ...]:
        """The tools of all skills by name; with several prompt skills, `skill` says which one a call is for, and a tool
        that already has an argument of that name is left out."""
        prompts, commands = self._of_kind("B"), self._of_kind("A")
        found: dict[str, tuple[ToolSpec, list[str]]] = {}
        for skill in prompts:
            tools, work = self.tools(), self._assigned(skill, "")
            for spec in tools.offered(work):
                if len(prompts) == 1 or "skill" not in spec.schema.get("properties", {}):
                    found.setdefault(spec.name, (spec, []))[1].append(skill.name)
        found.pop(SKILL, None)
        offered = []
        if prompts:
            text = f"{say('tool.load_skill', 'en')}\n{_listed(prompts)}"
            offered.append(ToolSpec(name=SKILL, description=text, schema=_schema({"name": _one_of(prompts)}, ["name"])))
        if commands:
            text = f"{say('tool.run_skill', 'en')}\n{_listed(commands)}"
            schema = _schema({"skill": _one_of(commands), "arguments": _TEXT}, ["skill"])
            offered.append(ToolSpec(name=RUN_SKILL, description=text, schema=schema))
        for spec, names in found.values():
            if len(prompts) == 1:
                offered.append(spec)
                continue
            fields = {"skill": {**_TEXT, "enum": names}, **spec.schema.get("properties", {})}
            more = {"properties": fields, "required": ["skill", *spec.schema.get("required", ())]}
            offered.append(replace(spec, schema={**spec.schema, **more}))
        return tuple(offered)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Called:
        """Makes a call; every outcome is an answer. Nothing that needs the person's consent is done without it."""
        run, key = self.ids.new(), digest_of(str(self.workspace), name, dict(arguments))
        had = self.approvals.taken(key)
        try:
            for subject in had:
                self.consents.allow(run, subject)
            if name == RUN_SKILL:
                return await self._run(arguments, run, had)
            given, prompts = dict(arguments), self._of_kind("B")
            if name == SKILL:
                wanted = str(given.get("name", ""))
            else:  # with one prompt skill, a call does not say which
                wanted = prompts[0].name if len(prompts) == 1 else str(given.pop("skill", ""))
            work = self._assigned(_named(prompts, wanted), run)
            call = ToolCall(id=key, name=name, arguments=json.dumps(given, ensure_ascii=False))
            answer = await self.tools().call(work, call, given)
            text = answer.text if name != SKILL or answer.failed else suffix(replace(work, guide=answer.text))
            return Called(f"{text}\n{say('tool.not_shown', 'en')}" if answer.files else text, run, answer.failed)
        except ConsentNeeded as asked:
            subject = str(asked.data["subject"])
            also = tuple(asked.data.get("also", ()))
            approval = self.approvals.asked(key, had, subject, asked.message, name, arguments, also)
        except KernelError as error:
            hint = f" ({error.hint})" if error.hint else ""
            return Called(say("tool.failed", "en", error=f"{clean(error.message)}{hint}"), run, failed=True)
        return Called(say("tool.needs_approval", "en", tool=escape_controls(name)), run, failed=True, approval=approval)

    async def _run(self, arguments: Mapping[str, Any], run: str, had: Sequence[str]) -> Called:
        """Runs the skill's command in a turn."""
        skill, words = _named(self._of_kind("A"), str(arguments.get("skill", ""))), str(arguments.get("arguments", ""))
        self._ask_for_files(skill, words, run)
        reply = await self.run_skill(skill.name, words, had)
        if reply.approval is not None:
            wants = {"subject": reply.approval.subject, "also": reply.approval.also}
            raise ConsentNeeded(reply.approval.question, hint="the person agrees", **wants)
        text = clean(reply.report.raw or reply.report.summary)
        failed = reply.report.state in {"error", "timeout", "pending"}
        return Called(text if len(text) <= ANSWER else f"{text[:ANSWER]} …", reply.run, failed)

    def _ask_for_files(self, skill: SkillDef, words: str, run: str) -> None:
        """Asks about project files that the program did not name, as `read` asks (JIT-12)."""
        others = [str(path) for path in self.mentioned(words) if path not in self.named]
        if not others:
            return
        digest = self.catalogue.create_executor(skill.namespace).digest
        subject = f"tool:{RUN_SKILL}@sha256:{digest_of(skill.name, digest, others)}"
        shown = escape_controls(", ".join(others))
        if len(shown) > LONGEST:
            raise UsageProblem("it names more files than the person can be shown", hint="name fewer files")
        question = say("ask.read_files", "en", skill=escape_controls(skill.name), files=shown)
        facts: dict[str, Any] = {"tool": RUN_SKILL, "skill": skill.name}
        self.consents.require(run, subject, question, by_name=True, for_order=True, **facts)

    def _assigned(self, skill: SkillDef, run: str) -> AgentTask:
        """The task for the tools of `skill`, with its current bytes. What another agent's model has read is unknown
        here, so it counts as private."""
        executor = self.catalogue.create_executor(skill.namespace)
        return AgentTask(
            run=run,
            step=0,
            request="",
            language="en",
            skill=skill.name,
            digest=executor.digest,
            standing=executor.standing,
            tools=skill.tools or (),
            private=True,
            **work_of(executor, self.workspace, self.project, self.named),
        )

    def _of_kind(self, kind: str) -> tuple[SkillDef, ...]:
        return tuple(skill for skill in self.skills if skill.kind == kind)


def chosen_skills(catalogue: Catalogue, names: Sequence[str]) -> tuple[SkillDef, ...]:
    """The skills with these names; without names, all that the person accepts and that models may call. SkillNotFound,
    Refused, or UsageProblem if they are more than a model can be shown."""
    if names:
        skills = [_wanted(catalogue, name) for name in dict.fromkeys(names)]
    else:
        offered = [skill for skill in catalogue.list_resources() if skill.type == "skill" and skill.implicit]
        skills = [skill for skill in offered if catalogue.standing(skill) != "unknown"]
    if sum(len(shorten(skill.description, DESCRIBED)) for skill in skills) > TOGETHER:
        hint = "name some of them; Kernel.route(message) says which fit"
        raise UsageProblem(f"{len(skills)} skills are more than a model is shown at once", hint=hint)
    return tuple(skills)


def _wanted(catalogue: Catalogue, name: str) -> SkillDef:
    skill = catalogue.find(name)
    if skill is None:
        near = ", ".join(catalogue.suggest(name)) or "none"
        raise SkillNotFound(f"no skill is called {name!r}", hint=f"similar names: {near}")
    executor: Executor = catalogue.create_executor(skill.namespace)
    if not skill.implicit:
        raise Refused(
            f"skill {skill.name!r} is not offered to models, by its author's choice", hint="run it yourself: Kernel.run"
        )
    if skill.kind == "B" and executor.standing == "unknown":
        hint = f"the person may look at it, then: navigator skill trust {skill.name}"
        raise Refused(f"skill {skill.name!r} was neither installed nor trusted by the person", hint=hint)
    return skill


def _named(skills: Sequence[SkillDef], name: str) -> SkillDef:
    found = next((skill for skill in skills if skill.name == name), None)
    if found is None:
        names = ", ".join(skill.name for skill in skills) or "none"
        raise SkillNotFound(f"no skill is called {name!r} here", hint=f"there are: {names}")
    return found


def _listed(skills: Sequence[SkillDef]) -> str:
    return "\n".join(f"- {skill.name}: {clean(shorten(skill.description, DESCRIBED), lines=False)}" for skill in skills)


def _one_of(skills: Sequence[SkillDef]) -> dict[str, Any]:
    return {**_TEXT, "enum": [skill.name for skill in skills]}


def _schema(fields: Mapping[str, Any], required: Sequence[str]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(fields), "required": list(required), "additionalProperties": False}


# Approvals of tool calls by another agent's model: each approval is for one call.

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

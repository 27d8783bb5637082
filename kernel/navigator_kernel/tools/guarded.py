"""The checks in front of a tool call: the skill must declare the tool and the person must allow it (JIT-5)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from navigator_kernel.adapters.models.calls import is_note
from navigator_kernel.config.denials import denial, tool_denial
from navigator_kernel.errors import KernelError, UsageProblem
from navigator_kernel.events import UICommand
from navigator_kernel.language.wording import say
from navigator_kernel.text import clean, escape_controls, shown_line
from navigator_kernel.values.chat import GuardedTool, Result, ToolCall, ToolSpec, filled
from navigator_kernel.values.rights import Right
from navigator_kernel.values.standing import AGAIN, Need, skill_subject
from navigator_kernel.values.work import AgentTask, ToolAnswer

if TYPE_CHECKING:
    from navigator_kernel.config.settings import Policy
    from navigator_kernel.model_ports import BuiltIn, Tools
    from navigator_kernel.ports import Audit, Consents

MOST = 16_000  # characters of a result for a model


class GuardedTools(Struct, frozen=True, kw_only=True):
    """Implements `model_ports.Tools`. `always` are tools that every skill has and that change nothing, `built_in` those
    for files and commands; `tools` returns the tools of plugins, and is called only for a skill that declares any.
    `direct` returns those for a message without a skill: tools of MCP servers, each of which the person agreed to.
    """

    tools: Callable[[], Mapping[str, GuardedTool]]
    always: Tools
    consents: Consents
    audit: Audit
    policy: Policy
    built_in: BuiltIn | None = None
    direct: Callable[[], Mapping[str, GuardedTool]] = dict
    _private: set[str] = field(default_factory=set)  # runs whose model got private data from a tool

    def admit(self, work: AgentTask) -> None:
        """Requires consent by name for the tools of a skill that the person neither installed nor trusted."""
        wanted = (*work.tools, *work.allowed)
        if work.standing != "unknown" or not wanted:
            return
        names = ", ".join(escape_controls(name) for name in wanted)
        question = say("ask.skill_tools", work.language, skill=escape_controls(work.skill), tools=names)
        subject = skill_subject(work.skill, work.digest)
        facts: dict[str, Any] = {"skill": work.skill, "tools": list(wanted)}
        self.consents.require(work.run, subject, question, by_name=True, for_order=True, **facts)

    def offered(self, work: AgentTask) -> tuple[ToolSpec, ...]:
        """The tools, which are the same for the same skill and policy, in the order of its manifest (X-40); none for an
        unknown skill that declares none, of which only the text is used."""
        if work.standing == "unknown" and not (work.tools or work.allowed):
            return ()
        kernels = (*self.always.offered(work), *(self.built_in.offered(work) if self.built_in else ()))
        offered = [spec for spec in kernels if not tool_denial(self.policy, work.skill, spec.name)]
        taken = {spec.name for spec in offered}
        return (*offered, *(self._known(work)[name].spec for name in self._allowed(work) if name not in taken))

    async def call(self, work: AgentTask, call: ToolCall, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Calls a tool. ConsentNeeded if the person has to agree first; every other result is an answer."""
        name = call.name
        self.admit(work)
        is_denied = bool(tool_denial(self.policy, work.skill, name))
        if name in {spec.name for spec in self.always.offered(work)} and not is_denied:
            return await self.always.call(work, call, arguments)
        own = self.built_in
        if own and name in {spec.name for spec in own.offered(work)} and not is_denied:
            try:
                reaching = own.reaching(work, call, arguments)
            except KernelError as error:
                return self._refused(work, call, error)
            if reaching is not None:
                return await self._asked(reaching, work, call, arguments)
            answer = await own.call(work, call, arguments)
            self._private.add(work.run)
            return answer
        if name not in self._allowed(work):
            if is_note(name):
                return ToolAnswer(text=say("tool.noted", work.language))
            self.audit.record("refused", run=work.run, subject=f"tool:{name}", skill=work.skill, why="not declared")
            offered = ", ".join(spec.name for spec in self.offered(work))
            key = "tool.unknown" if offered else "tool.none"
            return ToolAnswer(text=say(key, work.language, tool=name, offered=offered), failed=True)
        return await self._asked(self._known(work)[name], work, call, arguments)

    async def _asked(
        self, tool: GuardedTool, work: AgentTask, call: ToolCall, arguments: Mapping[str, Any]
    ) -> ToolAnswer:
        """Asks for consent where needed, then calls the tool."""
        subject = subject_of(call, arguments, tool, work)
        try:
            self._ask(tool, call, arguments, work)
        except UsageProblem as error:
            return self._refused(work, call, error)
        self.audit.record("started", run=work.run, actor="tool", subject=subject, skill=work.skill, **tool.facts)
        try:
            result = await tool.run(arguments)
            json.dumps(result.value)
        except Exception as error:  # noqa: BLE001 - a plugin's tool may raise anything; the turn continues
            result = Result(error=f"{type(error).__name__}: {error}")
        self.audit.record("ended", run=work.run, subject=subject, how="error" if result.error else "done")
        if not result.error:
            self._private.add(work.run)
        # The uniform answer of a tool, also for failures and empty results (TOL-4)
        if result.error:
            return ToolAnswer(text=say("tool.failed", work.language, error=clean(result.error)), failed=True)
        text = result.value if isinstance(result.value, str) else json.dumps(result.value, ensure_ascii=False)
        done = say("tool.done", work.language)
        if not result.value and not isinstance(result.value, bool | int | float):
            text = done if result.value is None or result.value == "" else f"{done}: {text}"
        text = clean(text)
        text = text if len(text) <= MOST else f"{text[:MOST]} …"
        commands = tuple(_commands(tool, result.value, work))
        return ToolAnswer(text=text, commands=commands, changed=bool(tool.effects))

    def _refused(self, work: AgentTask, call: ToolCall, error: KernelError) -> ToolAnswer:
        why = f"{error.message}{f' ({error.hint})' if error.hint else ''}"
        facts = {"why": escape_controls(error.message), "reason": error.data.get("reason", error.code)}
        self.audit.record("refused", run=work.run, subject=f"tool:{call.name}", skill=work.skill, **facts)
        return ToolAnswer(text=say("tool.failed", work.language, error=clean(why)), failed=True)

    def _ask(self, tool: GuardedTool, call: ToolCall, arguments: Mapping[str, Any], work: AgentTask) -> None:
        """Asks with the arguments, each time (JIT-12). Consent covers this call only; for a tool that only reads
        according to its server, one for longer covers it under the same bytes of the same skill. `--yes` covers none,
        because a model chose the call."""
        needs, lasting = needs_again(work, call, arguments), ""
        leaks = tool.outward and (work.private or work.run in self._private)  # private data could leave with the call
        # Without a skill, the person's approval of a tool that only reads is enough, until a call could carry data out
        if leaks or (tool.confirm and (work.skill or not tool.only_reads)):
            asked = shown_line(filled(tool.confirm, arguments) or f"Call {tool.name}?")
            why = f" {say('ask.leaks', work.language)}" if leaks else ""
            question = f"{asked}{why} {tool.name} {shown_arguments(arguments)}"
            needs = (*needs, Need(subject_of(call, arguments, tool, work), question))
            lasting = "" if leaks else _lasting_subject(tool, work)
        if needs:
            own, also = needs[-1], needs[:-1]
            facts: dict[str, Any] = {"tool": tool.name, "arguments": dict(arguments), "lasting": lasting, "also": also}
            self.consents.require(work.run, own.subject, own.question, by_name=True, **facts)

    def _allowed(self, work: AgentTask) -> tuple[str, ...]:
        """The declared tools that exist and are not denied."""
        if work.skill and not work.tools:
            return ()
        known, policy, skill = self._known(work), self.policy, work.skill
        declared = (known[name] for name in dict.fromkeys(work.tools if skill else known) if name in known)
        return tuple(t.name for t in declared if not tool_denial(policy, skill, t.name, by_server=t.by_server))

    def _known(self, work: AgentTask) -> Mapping[str, GuardedTool]:
        if work.skill:
            return self.tools()
        return {} if denial(self.policy, "", ("mcp",)) else self.direct()


def subject_of(call: ToolCall, arguments: Mapping[str, Any], tool: GuardedTool, work: AgentTask) -> str:
    """The subject of consent to a call: tool, arguments, and the skill's digest."""
    identity = tool.identity or tool.name
    body = json.dumps([call.id, identity, work.skill, work.digest, dict(arguments)], sort_keys=True, default=str)
    return f"tool:{call.name}#{hashlib.sha256(body.encode()).hexdigest()}"


def _lasting_subject(tool: GuardedTool, work: AgentTask) -> str:
    """The subject of a session's consent to a tool that says that it only reads; empty for every other tool, and under
    a skill that the person does not accept."""
    if not tool.only_reads or work.standing == "unknown":
        return ""
    body = json.dumps([tool.identity or tool.name, work.skill, work.digest])
    digest = f"sha256:{hashlib.sha256(body.encode()).hexdigest()}"
    return Right(tool.right, work.skill, digest).subject if tool.right else f"tool:{tool.name}@{digest}"


def _commands(tool: GuardedTool, value: Any, work: AgentTask) -> Iterator[UICommand]:
    """The user interface commands of a successful call, from the tool's declaration (X-17)."""
    fields = value if isinstance(value, Mapping) else {}
    for effect in tool.effects:
        kind, _, what = effect.partition(":")
        told = filled(what, fields)
        match kind:
            case "toast":
                message = told or f"{tool.name}: {say('tool.done', work.language)}"
                yield UICommand(type="toast", payload={"message": message, "type": "success"})
            case "refresh" | "navigate" | "modal":
                yield UICommand(type=kind, payload={"target": told})


LONGEST = 100_000  # characters of a question to the person, which is whole or not asked


def needs_again(work: AgentTask, call: ToolCall, arguments: Mapping[str, Any]) -> tuple[Need, ...]:
    """The consent to repeat exactly this call, if it was under way when a process was killed."""
    if not work.begun:
        return ()
    body = json.dumps([call.id, call.name, work.skill, work.digest, dict(arguments)], sort_keys=True, default=str)
    subject = f"{AGAIN}{call.name}#{hashlib.sha256(body.encode()).hexdigest()}"
    tool, shown = escape_controls(call.name), shown_arguments(arguments)
    return (Need(subject, say("ask.again", work.language, tool=tool, arguments=shown)),)


def shown_arguments(arguments: Mapping[str, Any]) -> str:
    """The arguments as the person is shown them, whole; UsageProblem if they are too long for that."""
    shown = shown_line(json.dumps(dict(arguments), ensure_ascii=False, default=str))
    if len(shown) > LONGEST:
        hint = "make several calls with shorter arguments"
        raise UsageProblem("the arguments are too long to show to the person", hint=hint)
    return shown

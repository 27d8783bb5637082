"""The skills subagent: runs a skill's command, or hands back its prompt (AGT-2, AGT-3, AGT-8)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from navigator_kernel.errors import IntegrityMismatch, KernelError
from navigator_kernel.hookspecs import hookimpl
from navigator_kernel.language.wording import say
from navigator_kernel.ports import Agent
from navigator_kernel.values.job import Job, Outcome
from navigator_kernel.values.packet import Packet, packet_from_yaml, shown_path
from navigator_kernel.values.resource import PATHS

if TYPE_CHECKING:
    from navigator_kernel.ports import AgentPorts, Executor

MESSAGE_LIMIT = 2_000  # characters of an error output that are kept in the data


@hookimpl
def kernel_register_agents(ports: AgentPorts) -> Sequence[Agent]:
    return (SkillsAgent(ports=ports),)


class SkillsAgent(Struct, frozen=True, kw_only=True):
    """Type A has a `command` and is run; Type B has none and its prompt is returned for the kernel."""

    ports: AgentPorts
    name: str = "skills"
    aliases: Sequence[str] = ("skills_agent",)
    description: str = "Runs an installed skill, or returns its prompt"

    async def handle(self, prompt: str) -> object:
        return await self.act(packet_from_yaml(prompt))

    async def act(self, packet: Packet) -> object:
        executor = self.ports.catalogue.create_executor(packet.task_spec.target)
        self._refuse_changed(executor)
        request = str(packet.params.value("request", ""))
        arguments = [str(word) for word in packet.params.value("arguments", ())]
        if executor.skill.kind == "B":
            outputs = {command: await self._printed(executor, packet, command) for command in executor.dynamic}
            written = str(packet.params.value("written", ""))
            parts = executor.parts(request, arguments, packet.params.required, outputs, written)
            return _prompt(executor, packet, parts)
        argv = executor.argv(request, arguments, packet.params.required)
        outcome = await self._run(executor, packet, argv)
        folder = self.ports.workspace(packet.context.run)
        files = [shown_path(folder / name, self.ports.root) for name in outcome.wrote]
        answer = _answer(executor, packet, outcome, files)
        if answer["state"] == "success":
            self.ports.record_use(executor.skill.name)
        return answer

    def _refuse_changed(self, executor: Executor) -> None:
        """X-38: bytes that are not those that were installed run only once the person has accepted them."""
        if executor.is_changed and not self.ports.consents.trusted(executor.consent):
            name = executor.skill.name
            hint = f"navigator skill verify {name} names the files; navigator skill trust {name} accepts them"
            raise IntegrityMismatch(f"skill {name!r} was changed since it was installed", hint=hint)

    async def _printed(self, executor: Executor, packet: Packet, command: str) -> str:
        """What a command in the text of a skill prints; nothing of a message is in it (X-4)."""
        outcome = await self._run(executor, packet, ("/bin/sh", "-c", command), for_order=True)
        if outcome.exit_code != 0:
            said = outcome.stderr.decode("utf-8", "replace").strip()[-MESSAGE_LIMIT:]
            how = f"ended with {outcome.exit_code}" if outcome.exit_code else "took too long"
            raise KernelError(f"{command!r} {how}: {said}", hint="it stands in the text of the skill")
        return outcome.stdout.decode("utf-8", "replace").strip()

    async def _run(
        self, executor: Executor, packet: Packet, argv: tuple[str, ...], *, for_order: bool = False
    ) -> Outcome:
        """Runs a process of the skill. `for_order` says that one yes to the skill's bytes covers several, also when the
        order continues."""
        skill = executor.skill
        job = Job(
            actor="type_a",
            subject=skill.name,
            digest=executor.digest,
            run=packet.context.run,
            argv=argv,
            cwd=self.ports.workspace(packet.context.run),
            timeout=packet.constraints.timeout,
            shipped=self.ports.catalogue.is_shipped(skill),
            origin=executor.origin,
            wants=executor.wants,
            packages=executor.packages,
            reads=self._reads(executor, packet),
            project=self.ports.root,
            env={**_environment(packet, self.ports.root), "SKILL_ROOT": str(skill.folder or skill.path.parent)},
            for_order=for_order,
        )
        return await self.ports.sandbox.run(job)

    def _reads(self, executor: Executor, packet: Packet) -> tuple[Path, ...]:
        """Its own folder, what the packet names, and the project where its manifest says so."""
        skill = executor.skill
        named = [str(path) for path in packet.params.value("files", ())]
        checked = {spec.name for spec in skill.required_params if spec.validation in PATHS}
        named += [str(value) for name, value in packet.params.required.items() if name in checked]
        whole = (self.ports.root,) if "project" in executor.wants else ()
        root = self.ports.root.resolve()
        inside = (path for path in (root / path for path in named if path) if path.resolve().is_relative_to(root))
        return (skill.folder or skill.path, *whole, *inside)


def _environment(packet: Packet, root: Path) -> dict[str, str]:
    """Where the project is, the person's language, and in a workflow the path of the report of the step before."""
    own = {"NAVIGATOR_PROJECT": str(root), "NAVIGATOR_LANGUAGE": str(packet.context.language)}
    previous = str(packet.params.value("previous", ""))
    return {**own, "NAVIGATOR_PREVIOUS": previous} if previous else own


def _prompt(executor: Executor, packet: Packet, parts: tuple[str, str]) -> Mapping[str, Any]:
    """`request` in the data is where the person's part of the prompt begins and ends."""
    skill, (system, user) = executor.skill, parts
    text = "\n\n".join(part for part in parts if part)
    begin = len(system) + 2 if system and user else len(system)
    backend = executor.backend(str(packet.params.value("backend", "")))
    memory = [str(item) for item in packet.params.value("memory", ())]
    if memory:
        head = say("prompt.memory", packet.context.language)
        text = "\n".join([text, "", head, *(f"- {item}" for item in memory)])
    data: dict[str, Any] = {"skill": skill.name, "kind": "B", "backend": backend, "prompt": text}
    data["request"] = [begin, begin + len(user)]
    summary = say("skills.prompt", packet.context.language, skill=skill.name)
    return {"state": "success", "summary": summary, "data": data, "raw": text}


def _answer(executor: Executor, packet: Packet, outcome: Outcome, files: list[str]) -> dict[str, Any]:
    """Exit code 0 with some output is success; silence is an error (AGT-7), and partial output is kept."""
    language, name = packet.context.language, executor.skill.name
    out = outcome.stdout.decode("utf-8", "replace").strip()
    err = outcome.stderr.decode("utf-8", "replace").strip()
    data: dict[str, Any] = {**_data(out), **({"files": files} if files else {})}
    data |= {"truncated": True} if outcome.truncated else {}
    if outcome.timed_out:
        seconds = f"{packet.constraints.timeout:g}"
        data |= {"elapsed": round(outcome.elapsed, 3), "limit": packet.constraints.timeout}
        return {
            "state": "timeout",
            "summary": say("worker.cut", language, seconds=seconds),
            "data": data,
            "raw": out or None,
        }
    if outcome.exceeded:
        text = say("worker.exceeded", language, what=name, limit=outcome.exceeded)
        data |= {"type": "LimitExceeded", "msg": text}
        return {"state": "error", "summary": text, "data": data, "raw": out or None, "effects": files}
    if outcome.exit_code:
        msg = (err or out)[-MESSAGE_LIMIT:]
        data = {key: value for key, value in data.items() if key not in {"code", "exit_code"}}  # the kernel's keys
        data |= {"type": "ExitCode", "msg": msg, "status": outcome.exit_code}
        summary = say("skills.failed", language, skill=name, code=outcome.exit_code)
        return {"state": "error", "summary": summary, "data": data, "raw": out or None, "effects": files}
    if not out and not files:
        text = say("skills.silent", language, skill=name)
        return {"state": "error", "summary": text, "data": {"type": "Silence", "msg": text}}
    said = data.pop("summary", None)
    summary = said if isinstance(said, str) else say("skills.done", language, skill=name)
    return {"state": "success", "summary": summary, "data": data, "raw": out}


def _data(out: str) -> dict[str, Any]:
    """One JSON object printed is the data; anything else is its `output`."""
    try:
        found = json.loads(out)
    except ValueError:
        return {"output": out} if out else {}
    return found if isinstance(found, dict) else {"output": found}

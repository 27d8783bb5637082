"""The worker subagent: runs scripts of `bin/`, and skill commands through the lifecycle port (AGT-1, AGT-6, AGT-7)."""

from __future__ import annotations

import asyncio
import hashlib
import sys
import time
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field, to_builtins

from navigator_kernel.errors import NotFound, UsageProblem
from navigator_kernel.hookspecs import hookimpl
from navigator_kernel.language.chinese import in_language
from navigator_kernel.language.rendering import listed
from navigator_kernel.language.wording import APART, COLON, between, say, worded
from navigator_kernel.text import in_one_language, shorten
from navigator_kernel.values.job import Actor, Job, Outcome
from navigator_kernel.values.packet import Packet, packet_from_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from navigator_kernel.ports import Agent, AgentPorts
    from navigator_kernel.text import Language

SKILL_MANAGER = "skill_manager"
READS = ("info", "list", "outdated", "search", "verify")  # skill commands
CHANGES = ("disable", "enable", "install", "uninstall", "update")
SHOWN = 5  # most results in a sentence
MESSAGE_LIMIT = 2_000
REMEMBERED = 256  # idempotency keys in memory


@hookimpl
def kernel_register_agents(ports: AgentPorts) -> Sequence[Agent]:
    return (WorkerAgent(ports=ports),)


class WorkerAgent(Struct, frozen=True, kw_only=True):
    """It never edits code. Only scripts that `docs/commands.md` lists are run (SAF-6)."""

    ports: AgentPorts
    name: str = "worker"
    aliases: Sequence[str] = ("worker_agent",)
    description: str = "Runs scripts of bin/ and skill commands"
    done: dict[str, asyncio.Task[Mapping[str, Any]]] = field(default_factory=dict)

    async def handle(self, prompt: str) -> object:
        return await self.act(packet_from_yaml(prompt))

    async def act(self, packet: Packet) -> object:
        key = packet.context.idempotency_key
        if key not in self.done:
            if len(self.done) >= REMEMBERED:
                self.done.pop(next(iter(self.done)))
            self.done[key] = asyncio.ensure_future(self._done(packet))
        task = self.done[key]
        try:
            return await task
        except BaseException:
            self.done.pop(key, None)  # a failed packet may be tried again
            raise

    async def _done(self, packet: Packet) -> Mapping[str, Any]:
        operation = packet.task_spec.operation
        if operation.startswith("skill."):
            return await self._lifecycle(packet, operation.removeprefix("skill."), dict(packet.params.required))
        if operation == "shell":
            command = str(packet.params.value("command"))
            digest = f"sha256:{hashlib.sha256(command.encode()).hexdigest()}"
            return await self._process(
                packet, "shell", command, digest, ("/bin/sh", "-c", command), start=self.ports.root
            )
        name = str(packet.params.value("script", ""))
        args = tuple(str(word) for word in packet.params.value("args", ()))
        if name == SKILL_MANAGER:
            return await self._lifecycle(packet, *_parsed(args))
        return await self._script(packet, name, args)

    async def _lifecycle(self, packet: Packet, operation: str, params: dict[str, Any]) -> Mapping[str, Any]:
        """A command that writes needs a yes; one that reads needs none."""
        words = [operation, str(params.get("source", "")), *params.get("skill", ()), *params.get("name", ())]
        what = " ".join(word for word in words if word)
        if operation in CHANGES:
            self.ports.consents.require(packet.context.run, f"skill.{what}", what)
        found = await asyncio.to_thread(self._perform, operation, params)
        parts, raw = _sentence(operation, found, packet.context.language)
        summary = APART[packet.context.language].join([*parts[:SHOWN], *(["…"] if len(parts) > SHOWN else [])])
        effects = [what] if operation in CHANGES and found.get("changed", True) else []
        state = "partial" if found.get("exit_code") else "success"
        return {"state": state, "summary": summary, "data": found, "raw": "\n".join(raw) or None, "effects": effects}

    def _perform(self, operation: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of a skill command as JSON values. Several names are several commands; the first that fails ends
        them."""
        skills = self.ports.lifecycle
        match operation:
            case "list":
                done: list[Struct] = [skills.installed()]
            case "search":
                done = [skills.search(str(params["query"]))]
            case "info":
                done = [skills.info(str(params["source"]))]
            case "install":
                done = [skills.install(str(params["source"]), params.get("skill", ()))]
            case "update":
                done = [skills.update(params["name"])]
            case "outdated":
                done = [skills.outdated(params["name"])]
            case "verify":
                done = [skills.verify(name) for name in params["name"] or [""]]
            case "uninstall":
                done = [skills.uninstall(params["name"])]
            case "enable":
                done = [skills.enable(name) for name in params["name"]]
            case "disable":
                done = [skills.disable(name) for name in params["name"]]
            case _:
                known = ", ".join(sorted(READS + CHANGES))
                raise UsageProblem(f"no skill command is called {operation!r}", hint=f"one of: {known}")
        bodies = [to_builtins(one) for one in done]
        return bodies[0] if len(bodies) == 1 else {"skills": bodies}

    async def _script(self, packet: Packet, name: str, args: tuple[str, ...]) -> Mapping[str, Any]:
        path = self.ports.scripts.get(name)
        if path is None:
            known = ", ".join(sorted(self.ports.scripts))
            raise NotFound(f"no script is called {name!r}", hint=f"docs/commands.md lists: {known}")
        digest = f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
        if not self._is_release(path, digest):
            return await self._process(packet, "script", name, digest, (sys.executable, str(path), *args))
        began = time.perf_counter()
        if answered := await asyncio.to_thread(self.ports.answer, name, args):  # needs the kernel's own state
            elapsed, (code, text) = time.perf_counter() - began, answered
            return _answer(Outcome(exit_code=code, stdout=text.encode(), stderr=b"", elapsed=elapsed), packet, name)
        argv = (sys.executable, "-I", "-P", str(path), *args)
        return await self._process(packet, "script", name, digest, argv, shipped=True, reads=(path.parent,))

    def _is_release(self, path: Path, digest: str) -> bool:
        """Whether `path` is a script of this release, in the release's own folder and unchanged. A project's script is
        a third party's, whatever its bytes: what it imports lies beside it."""
        is_there = path.parent.resolve() == self.ports.release.resolve()
        return is_there and self.ports.shipped.get(f"bin/{path.name}") == digest

    async def _process(
        self,
        packet: Packet,
        actor: Actor,
        subject: str,
        digest: str,
        argv: tuple[str, ...],
        *,
        shipped: bool = False,
        reads: tuple[Path, ...] = (),
        start: Path | None = None,
    ) -> Mapping[str, Any]:
        job = Job(
            actor=actor,
            subject=subject,
            digest=digest,
            run=packet.context.run,
            argv=argv,
            cwd=self.ports.workspace(packet.context.run),
            start=start,
            timeout=packet.constraints.timeout,
            shipped=shipped,
            wants=("project",),
            reads=(self.ports.root, *reads),
            project=self.ports.root,
            env={"NAVIGATOR_ROOT": str(self.ports.root)},
        )
        return _answer(await self.ports.sandbox.run(job), packet, subject)


def _answer(outcome: Outcome, packet: Packet, subject: str) -> Mapping[str, Any]:
    """Both streams are kept (AGT-7); what was printed before a time-out, too."""
    language = packet.context.language
    out = outcome.stdout.decode("utf-8", "replace").strip()
    err = outcome.stderr.decode("utf-8", "replace").strip()
    data: dict[str, Any] = {"stdout": out, "stderr": err, "status": outcome.exit_code}
    data |= {"truncated": True} if outcome.truncated else {}
    if outcome.timed_out:
        data |= {"elapsed": round(outcome.elapsed, 3), "limit": packet.constraints.timeout}
        seconds = f"{packet.constraints.timeout:g}"
        return {
            "state": "timeout",
            "summary": say("worker.cut", language, seconds=seconds),
            "data": data,
            "raw": out or None,
        }
    if outcome.exceeded:
        text = say("worker.exceeded", language, what=subject, limit=outcome.exceeded)
        return {
            "state": "error",
            "summary": text,
            "data": {**data, "type": "LimitExceeded", "msg": text},
            "raw": out or None,
        }
    if outcome.exit_code:
        data |= {"type": "ExitCode", "msg": (err or out)[-MESSAGE_LIMIT:]}
        summary = say("worker.failed", language, what=subject, code=outcome.exit_code)
        return {"state": "error", "summary": summary, "data": data, "raw": out or None}
    if not out and not err:
        text = say("skills.silent", language, skill=subject)
        return {"state": "error", "summary": text, "data": {**data, "type": "Silence", "msg": text}}
    if packet.task_spec.operation == "shell":  # a person sees both, as in a shell
        out = "\n".join(filter(None, (out, err)))
    return {"state": "success", "summary": say("worker.done", language, what=subject), "data": data, "raw": out}


def _sentence(operation: str, result: Mapping[str, Any], language: Language) -> tuple[list[str], list[str]]:
    """What a skill command did or found, in parts of a sentence, and the lines behind it."""
    skills: Sequence[Mapping[str, Any]] = result.get("skills", [result] if "name" in result else ())
    names = between([str(skill["name"]) for skill in skills], language)
    match operation:
        case "list" | "search":
            return [say(f"lifecycle.{operation}", language, count=len(skills))], listed(skills, language)
        case "info" if "name" not in result:
            parts = [say("lifecycle.offers", language, source=result["source"], count=len(skills))]
            return parts, listed(skills, language)
        case "info":
            off = "" if result["enabled"] else say("lifecycle.off", language)
            source = result["source"] or result["status"]
            origin = say("lifecycle.origin", language, source=source, commit=result["commit"][:12])
            described = in_one_language(result["description"], language)
            return [f"{result['name']}{off}{COLON[language]}{shorten(described, MESSAGE_LIMIT)}"], [origin]
        case "enable" | "disable":
            return [say(f"lifecycle.{operation}", language, names=names)], []
        case "uninstall":
            return [say("uninstall.done", language, name=skill["name"]) for skill in skills], []
        case "install":
            commit = result["commit"] or say("install.no_commit", language)
            done, notes = [], []
            for skill in skills:
                key = "install.done" if skill["changed"] else "install.same"
                done.append(say(key, language, name=skill["name"], commit=commit))
                warnings = (finding["message"] for finding in skill["findings"] if finding["level"] != "note")
                notes += [f"{skill['name']}{COLON[language]}{text}" for text in warnings]
            for left in result["left_out"]:
                state, why = say(f"left.{left['state']}", language), in_language(left["msg"], language)
                notes.append(f"{state} {left['name']}{COLON[language]}{why}")
            return (done, notes) if done else (notes, [])
        case "verify":
            return [say("verify.same", language, count=result.get("count", len(skills)))], []
    news = [skill for skill in skills if skill["state"] != "current"]
    if operation == "outdated":
        parts = [f"{s['name']}{COLON[language]}{worded('news', s['state'], language)}" for s in news]
    else:
        changed = [skill for skill in skills if skill["action"] != "kept"]
        problems = [in_language(skill["problem"], language) for skill in changed]
        parts = [
            say(f"update.{s['action']}", language, name=s["name"], why=p)
            for s, p in zip(changed, problems, strict=True)
        ]
    current = say("lifecycle.current" if names else "lifecycle.list", language, names=names, count=0)
    return parts or [current], []


def _parsed(args: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """`list`, `search <words>`, `info <source>`, `install <source> [--skill x]…`, `uninstall <name>…`."""
    if not args:
        raise UsageProblem("skill_manager needs a command", hint="list, search, info, install or uninstall")
    operation, words, skills = args[0], list(args[1:]), list[str]()
    plain: list[str] = []
    while words:
        word = words.pop(0)
        name, _, value = word.partition("=")
        if name == "--skill":
            skills.append(value or (words.pop(0) if words else ""))
        elif word == "--json":
            continue
        elif word.startswith("-"):
            raise UsageProblem(f"skill_manager has no option {word!r} here", hint="use the command line for it")
        else:
            plain.append(word)
    match operation:
        case "list":
            return operation, {}
        case "search":
            return operation, {"query": " ".join(plain)}
        case "info" | "install" if plain:
            return operation, {"source": plain[0], **({"skill": skills} if operation == "install" else {})}
        case "update" | "outdated" | "verify":
            return operation, {"name": plain}
        case "uninstall" | "enable" | "disable" if plain:
            return operation, {"name": plain}
    raise UsageProblem(f"skill_manager cannot do {' '.join(args)!r}", hint="list, search, info, install or uninstall")

"""What a plan's approval covers, which files a step may name, and what may be done twice."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from navigator_kernel.errors import KernelError
from navigator_kernel.ports import Kernel
from navigator_kernel.values.packet import Packet
from navigator_kernel.values.request import PreprocessingResult
from navigator_kernel.values.resource import ParamSpec
from navigator_kernel.values.route import Lifecycle, Script
from navigator_kernel.values.workflow import Sandboxed, WorkflowPlan

_ONCE = frozenset({"uninstall"})  # the second one finds nothing there; every other skill command ends the same way


def grants(plan: WorkflowPlan, kernel: Kernel) -> tuple[str, ...]:
    """The subjects that a yes to `plan` covers: each skill command, script and skill that it shows (SAF-1).

    A skill that is here is covered by its digest; one that the plan itself installs by its name. An MCP server is
    agreed to by its whole command, when it is started.
    """
    found: list[str] = []
    for step in plan.steps:
        action = kernel.router.recognise(step.input)
        match step.agent, action:
            case "worker", Lifecycle(operation=operation, source=source, skills=skills):
                found.append(f"skill.{' '.join(word for word in (operation, source, *skills) if word)}")
            case "worker", Script(name=name) if name in kernel.scripts:
                digest = hashlib.sha256(kernel.scripts[name].read_bytes()).hexdigest()
                found.append(f"script:{name}@sha256:{digest}")
            case "skills", _:
                found.append(_skill(step.skill, kernel))
    return tuple(dict.fromkeys(found))


def _skill(name: str, kernel: Kernel) -> str:
    skill = kernel.catalogue.find(name)
    if skill is None:
        return f"type_a:{name}"
    try:
        return f"type_a:{skill.name}@{kernel.catalogue.create_executor(skill.namespace).digest}"
    except KernelError:
        return f"type_a:{skill.name}"


def is_idempotent(packet: Packet, kernel: Kernel) -> bool:
    """Whether running the order twice is as good as once: what its skill declares, or what kind of order it is."""
    match packet.agent:
        case "skills":
            skill = kernel.catalogue.find(packet.task_spec.target.partition(":")[2])
            return skill is not None and (skill.idempotent or skill.kind == "B")
        case "mcp":
            return packet.task_spec.operation != "call"
        case _:
            kind, _, operation = packet.task_spec.operation.partition(".")
            return kind == "skill" and operation not in _ONCE


def file_problem(request: PreprocessingResult, sandbox: Sandboxed, root: Path) -> str:
    """Why a file that a step names may not be read, empty where all may."""
    for file in request.files:
        if file.problem:
            return file.problem
        if problem := _problem(file.path.relative_to(root.resolve()), sandbox):
            return problem
    return ""


def order_problem(packet: Packet, specs: Sequence[ParamSpec], sandbox: Sandboxed, places: tuple[Path, Path]) -> str:
    """The same for files that are given by name alone: as a parameter that is a file, or as a word that is one.

    `places` are the project's root and the run's own folder, whose files are the workflow's.
    """
    root, own = (place.resolve() for place in places)
    names = {spec.name for spec in specs if spec.validation == "file_exists"}
    words = [str(value) for name, value in packet.params.required.items() if name in names]
    for word in [*words, *map(str, packet.params.value("arguments", ()))]:
        path = Path(os.path.realpath(root / word))
        if path.is_relative_to(own) or not path.exists():
            continue
        if not path.is_relative_to(root):
            return f"{word!r} is outside the project"
        if problem := _problem(path.relative_to(root), sandbox):
            return problem
    return ""


def _problem(path: Path, sandbox: Sandboxed) -> str:
    pure = PurePosixPath(path.as_posix())
    if _among(pure, sandbox.forbidden):
        return f"{str(pure)!r} is forbidden by the workflow"
    if not _among(pure, sandbox.read):
        return f"{str(pure)!r} is not among the files that the workflow may read (sandbox.file_access.read)"
    return ""


def _among(path: PurePosixPath, places: tuple[str, ...]) -> bool:
    return any(path.is_relative_to(place) for place in places)

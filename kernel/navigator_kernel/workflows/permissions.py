"""Decides what the approval of a plan covers, which files a step may name, and which steps may be repeated."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from navigator_kernel.errors import KernelError
from navigator_kernel.language.parameters import is_file
from navigator_kernel.values.route import Lifecycle, Script

if TYPE_CHECKING:
    from navigator_kernel.ports import Kernel
    from navigator_kernel.values.packet import Packet
    from navigator_kernel.values.request import PreprocessingResult
    from navigator_kernel.values.workflow import Sandboxed, WorkflowPlan

_ONCE = frozenset({"uninstall"})  # a second run finds nothing there; every other skill command ends the same way


def grants(plan: WorkflowPlan, kernel: Kernel) -> tuple[str, ...]:
    """The subjects that a yes to `plan` covers: each skill command, script and skill that it shows (SAF-1).

    An existing skill is covered by its digest; one that the plan itself installs, by its name until it is installed
    (`installed`). Anything covered by neither is asked about when its turn comes. Consent to an MCP server is given to
    its whole command, when it is started.
    """
    found: list[str] = []
    coming: set[str] = set()
    for step in plan.steps:
        action = kernel.router.recognise(step.input)
        match step.agent, action:
            case "worker", Lifecycle(operation=operation, source=source, skills=skills):
                found.append(f"skill.{' '.join(word for word in (operation, source, *skills) if word)}")
                coming |= set(skills) if operation == "install" else set()
            case "worker", Script(name=name) if name in kernel.scripts:
                digest = hashlib.sha256(kernel.scripts[name].read_bytes()).hexdigest()
                found.append(f"script:{name}@sha256:{digest}")
            case "skills", _:
                found += _skill(step.skill, kernel) or ([f"type_a:{step.skill}"] if step.skill in coming else [])
    return tuple(dict.fromkeys(found))


def installed(packet: Packet, granted: Sequence[str], kernel: Kernel) -> tuple[str, ...]:
    """The consents to skills that a plan covered by name, if the last step was an install."""
    if packet.task_spec.operation != "skill.install":
        return ()
    names = [subject.removeprefix("type_a:") for subject in granted if is_by_name(subject)]
    return tuple(subject for name in names for subject in _skill(name, kernel))


def is_by_name(subject: str) -> bool:
    """Whether a subject names a skill of a plan, without agreement to its bytes."""
    return subject.startswith("type_a:") and "@sha256:" not in subject


def _skill(name: str, kernel: Kernel) -> list[str]:
    skill = kernel.catalogue.find(name)
    try:
        return [kernel.catalogue.create_executor(skill.namespace).consent] if skill else []
    except KernelError:
        return []


def is_idempotent(packet: Packet, kernel: Kernel) -> bool:
    """Whether the packet may be repeated: by the skill's declaration or its kind."""
    match packet.agent:
        case "skills":
            skill = kernel.catalogue.find(packet.task_spec.target.partition(":")[2])
            worked_on = kernel.models is not None and bool(skill and skill.tools)  # by a model, whose tools can act
            return skill is not None and (skill.idempotent or (skill.kind == "B" and not worked_on))
        case "mcp":
            return packet.task_spec.operation != "call"
        case _:
            kind, _, operation = packet.task_spec.operation.partition(".")
            return kind == "skill" and operation not in _ONCE


def file_problem(request: PreprocessingResult, sandbox: Sandboxed, root: Path) -> str:
    """The reason why a file of a step may not be read, or empty."""
    for file in request.files:
        if file.problem:
            return file.problem
        if problem := _problem(file.path, sandbox, root.resolve()):
            return problem
    return ""


def order_problem(packet: Packet, sandbox: Sandboxed, places: tuple[Path, Path]) -> str:
    """As `file_problem`, for files that are given by name alone: any value or word that names a file.

    `places` are the project's root and the run's own folder, whose files belong to the workflow.
    """
    root, own = (place.resolve() for place in places)
    for word in map(str, [*packet.params.required.values(), *packet.params.value("arguments", ())]):
        if not is_file(root / word):
            continue
        path = Path(os.path.realpath(root / word))
        if not path.is_relative_to(own) and (problem := _problem(path, sandbox, root)):
            return problem
    return ""


def _problem(real: Path, sandbox: Sandboxed, root: Path) -> str:
    if not real.is_relative_to(root):
        return f"{str(real)!r} is outside the project"
    shown = repr(real.relative_to(root).as_posix())
    if _among(real, sandbox.forbidden, root):
        return f"{shown} is forbidden by the workflow"
    if not _among(real, sandbox.read, root):
        return f"{shown} is not among the files that the workflow may read (sandbox.file_access.read)"
    return ""


def _among(real: Path, places: tuple[str, ...], root: Path) -> bool:
    return any(real.is_relative_to(os.path.realpath(root / place)) for place in places)

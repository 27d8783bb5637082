"""The work of a run: its steps with packet and report, and the files of the project that its tools changed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.adapters.processes.line_diff import diff_of
from navigator_kernel.errors import NotFound
from navigator_kernel.events import StepCompleted, StepStarted
from navigator_kernel.values.http.endpoint import Call, Endpoint
from navigator_kernel.values.packet import yaml_of

if TYPE_CHECKING:
    from navigator_kernel.gateway.gateway import Gateway


class RunStep(Struct, frozen=True, kw_only=True):
    """`packet` and `report` are YAML; `ended`, `state` and `report` are empty for a step that has not ended. `seq` is
    the number of the event that began the step."""

    seq: int
    step: int | None
    agent: str
    target: str
    started: str
    ended: str
    state: str
    packet: str
    report: str


class RunSteps(Struct, frozen=True, kw_only=True):
    run: str
    steps: list[RunStep]


class ChangedFile(Struct, frozen=True, kw_only=True):
    """A changed file; `new` is true if the run created it. `diff` is unified and whole."""

    path: str
    new: bool
    diff: str


class RunChanges(Struct, frozen=True, kw_only=True):
    """The changes as in `navigator diff`; empty for a run that changed no file of the project."""

    run: str
    changes: list[ChangedFile]


class ToUndo(Struct, frozen=True, forbid_unknown_fields=True):
    """With `force`, also restores files that were changed after the run."""

    force: bool = False


class UndoneFile(Struct, frozen=True, kw_only=True):
    """`state` is `undone`, `as before` or `changed since`."""

    path: str
    state: str


class Undone(Struct, frozen=True, kw_only=True):
    run: str
    files: list[UndoneFile]


async def read_run_steps(gateway: Gateway, call: Call) -> RunSteps:
    """The packet and the report of each step, as YAML."""
    run = call.path["run"]
    gateway.session_of_run(call.caller, run)
    return RunSteps(run=run, steps=await asyncio.to_thread(_steps, gateway, run))


async def read_run_changes(gateway: Gateway, call: Call) -> RunChanges:
    run = call.path["run"]
    gateway.session_of_run(call.caller, run)
    return RunChanges(run=run, changes=await asyncio.to_thread(_changes, gateway, run))


async def undo_run(gateway: Gateway, call: Call) -> Undone:
    """Restores the files of the project that the run changed, like `navigator undo`. 404 if it changed none."""
    run, force = call.path["run"], call.body.force
    gateway.session_of_run(call.caller, run)
    done = await asyncio.to_thread(lambda: gateway.project.changes.undo(run, force=force))
    return Undone(run=run, files=[UndoneFile(path=path, state=how) for path, how in done])


def _steps(gateway: Gateway, run: str) -> list[RunStep]:
    """The steps of a run, in the order in which they began."""
    found: list[RunStep] = []
    for event in gateway.log.read(run):
        body = event.body
        if isinstance(body, StepStarted):
            target = body.packet.get("task_spec", {}).get("target", "")
            found.append(
                RunStep(
                    seq=event.seq,
                    step=event.step,
                    agent=body.agent,
                    target=target,
                    started=event.ts,
                    ended="",
                    state="",
                    packet=_yaml(gateway, body.packet),
                    report="",
                )
            )
        elif isinstance(body, StepCompleted):
            at = next((at for at, one in enumerate(found) if one.step == event.step and not one.ended), None)
            if at is not None:
                state, report = str(body.report.get("state", "")), _yaml(gateway, body.report)
                found[at] = replace(found[at], ended=event.ts, state=state, report=report)
    return found


def _yaml(gateway: Gateway, record: Mapping[str, Any]) -> str:
    return yaml_of(gateway.project.redact(dict(record)))


def _changes(gateway: Gateway, run: str) -> list[ChangedFile]:
    try:
        made = gateway.project.changes.of(run)
    except NotFound:
        return []
    redact = gateway.project.redact
    return [ChangedFile(path=one.path, new=one.before is None, diff=redact(diff_of(one))) for one in made]


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/runs/{run}/steps",
        role="chat",
        summary="Read the packet and the report of each step",
        handler=read_run_steps,
        tag="runs",
        answer=RunSteps,
        errors=(404,),
    ),
    Endpoint(
        method="GET",
        path="/api/runs/{run}/changes",
        role="chat",
        summary="Show what a run changed in the project",
        handler=read_run_changes,
        tag="runs",
        answer=RunChanges,
        errors=(404,),
    ),
    Endpoint(
        method="POST",
        path="/api/runs/{run}/undo",
        role="admin",
        summary="Restore the files that a run changed",
        handler=undo_run,
        tag="runs",
        body=ToUndo,
        answer=Undone,
        errors=(404,),
    ),
)

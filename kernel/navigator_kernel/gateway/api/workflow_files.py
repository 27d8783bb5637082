"""Reads, checks, writes and removes stored workflows as text. A file is data: its plan needs an approval as before."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct

from navigator_kernel.errors import KernelError, NotFound, NotLoadable
from navigator_kernel.values.http.conditions import (
    IF_MATCH,
    IF_NONE_MATCH,
    another_state,
    refuse_another,
    tag_of,
    tagged,
)
from navigator_kernel.values.http.endpoint import Answer, Call, Endpoint
from navigator_kernel.workflows.store import check_text, named_in, remove_stored, store_text, stored_text

if TYPE_CHECKING:
    from navigator_kernel.gateway.gateway import Gateway

Text = Annotated[str, Meta(max_length=100_000)]


class WorkflowText(Struct, frozen=True, kw_only=True):
    """The file of a stored workflow. `redacted` is true if secrets in it are not shown: such a text must not be written
    back."""

    name: str
    text: str
    redacted: bool


class GivenText(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: Text


class TextToCheck(GivenText, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Without a `name`, the name in the text is used."""

    name: Annotated[str, Meta(max_length=200)] = ""


class TextProblem(Struct, frozen=True, kw_only=True):
    """`line` is 1 for a problem of the whole text."""

    line: int
    message: str


class CheckedStep(Struct, frozen=True, kw_only=True):
    text: str
    skill: str
    agent: str


class CheckedText(Struct, frozen=True, kw_only=True):
    """The result of a check; `steps` are those of the plan, empty if there are problems."""

    name: str
    problems: list[TextProblem]
    steps: list[CheckedStep]


async def read_workflow(gateway: Gateway, call: Call) -> Answer:
    """Reads the text of a workflow's file, even if it cannot be used."""
    text = await asyncio.to_thread(stored_text, call.path["name"], gateway.project)
    return tagged(_shown(call.path["name"], text, gateway), call.headers)


async def check_workflow(gateway: Gateway, call: Call) -> CheckedText:
    """Finds the problems of a text, each with its line; nothing is written."""
    return await asyncio.to_thread(_checked, gateway, call.body)


async def write_workflow(gateway: Gateway, call: Call) -> Answer:
    """Writes a text that is a valid plan; 409 with all problems for an invalid one. With `If-None-Match: *` only if no
    workflow has that name."""
    await asyncio.to_thread(_written, gateway, call)
    value = _shown(call.path["name"], call.body.text, gateway)
    return Answer(value=value, headers={"etag": tag_of(value)})


async def delete_workflow(gateway: Gateway, call: Call) -> Answer:
    """Removes the file. Runs that it began are kept, with their plan."""
    await asyncio.to_thread(_removed, gateway, call)
    return Answer(status=204)


def _checked(gateway: Gateway, body: TextToCheck) -> CheckedText:
    name = body.name or named_in(body.text)
    try:
        plan = check_text(body.text, name, gateway.project)
    except NotLoadable as error:
        found = error.data.get("problems") or [{"line": 1, "message": error.message}]
        return CheckedText(name=name, problems=[TextProblem(**one) for one in found], steps=[])
    except KernelError as error:
        said = f"{error.message} ({error.hint})" if error.hint else error.message
        return CheckedText(name=name, problems=[TextProblem(line=1, message=said)], steps=[])
    steps = [CheckedStep(text=step.text, skill=step.skill, agent=step.agent) for step in plan.steps]
    return CheckedText(name=name, problems=[], steps=steps)


def _written(gateway: Gateway, call: Call) -> None:
    name = call.path["name"]
    with gateway.workflow_files:
        _refuse_another(gateway, call)
        store_text(name, call.body.text, gateway.project)


def _removed(gateway: Gateway, call: Call) -> None:
    with gateway.workflow_files:
        refuse_another(
            _shown(call.path["name"], stored_text(call.path["name"], gateway.project), gateway), call.headers
        )
        remove_stored(call.path["name"], gateway.project)


def _refuse_another(gateway: Gateway, call: Call) -> None:
    """Raises 412 if the file is not in the state that the request names, or exists although it must not."""
    name = call.path["name"]
    try:
        held = _shown(name, stored_text(name, gateway.project), gateway)
    except NotFound:
        if IF_MATCH in call.headers:
            raise another_state() from None
        return
    if call.headers.get(IF_NONE_MATCH, "").strip() == "*":
        raise another_state()
    refuse_another(held, call.headers)


def _shown(name: str, text: str, gateway: Gateway) -> WorkflowText:
    told: str = gateway.project.redact(text)
    return WorkflowText(name=name, text=told, redacted=told != text)


def _of(method: str, path: str, summary: str, handler: Any, **more: Any) -> Endpoint:
    return Endpoint(method=method, path=path, summary=summary, handler=handler, tag="workflows", **more)


ENDPOINTS = (
    _of(
        "POST",
        "/api/workflows/check",
        "Check the text of a workflow",
        check_workflow,
        role="chat",
        body=TextToCheck,
        answer=CheckedText,
    ),
    _of(
        "GET",
        "/api/workflows/{name}",
        "Read the text of a workflow",
        read_workflow,
        role="chat",
        headers=(IF_NONE_MATCH,),
        sends=("ETag",),
        answer=WorkflowText,
        errors=(404,),
    ),
    _of(
        "PUT",
        "/api/workflows/{name}",
        "Write the text of a workflow",
        write_workflow,
        role="admin",
        body=GivenText,
        headers=(IF_MATCH, IF_NONE_MATCH),
        sends=("ETag",),
        answer=WorkflowText,
        errors=(409, 412),
    ),
    _of(
        "DELETE",
        "/api/workflows/{name}",
        "Remove a workflow",
        delete_workflow,
        role="admin",
        headers=(IF_MATCH,),
        status=204,
        errors=(404, 412),
    ),
)

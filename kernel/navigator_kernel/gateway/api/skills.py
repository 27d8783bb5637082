"""Skills: list, search, look at, and change, as the commands of `navigator skill` do."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import asdict

from navigator_kernel.errors import Refused, UsageProblem
from navigator_kernel.gateway.endpoints import Answer, Call, Endpoint
from navigator_kernel.gateway.jobs import Job, perform
from navigator_kernel.gateway.pages import Page, page_of

if TYPE_CHECKING:
    from navigator_kernel.gateway.gateway import Gateway

Text = Annotated[str, Meta(min_length=1, max_length=2_000)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]


class Sought(Page, frozen=True, forbid_unknown_fields=True):
    """Those that fit `q`, best first; without it all, by name."""

    q: Annotated[str, Meta(max_length=2_000)] = ""


class Skills(Struct, frozen=True, kw_only=True):
    """`{name, description, kind, status, level, enabled, path, …}` of each, as `navigator skill list --json`."""

    skills: list[dict[str, Any]]
    next: str


class Source(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A repository, and the skills of it: those of `skills`, or with `all` every one. `ref` is a branch, tag or commit;
    with `user` they are for all projects of the person."""

    source: Text
    skills: Annotated[list[Name], Meta(max_length=1_000)] = []
    exclude: Annotated[list[Name], Meta(max_length=1_000)] = []
    all: bool = False
    ref: Annotated[str, Meta(max_length=200)] = ""
    user: bool = False
    offline: bool = False


class Named(Struct, frozen=True, forbid_unknown_fields=True):
    name: Name


class Several(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Those of `names`; without them all."""

    names: Annotated[list[Name], Meta(max_length=1_000)] = []
    check: bool = False
    user: bool = False
    offline: bool = False


class StartedJob(Struct, frozen=True, kw_only=True):
    job: str


class JobState(Struct, frozen=True, kw_only=True):
    """`state` is `waiting`, `running`, `done` or `failed`; `done` of `all` skills were looked at."""

    id: str
    operation: str
    started: str
    state: str
    done: int
    all: int
    result: Mapping[str, Any] | None
    problem: Mapping[str, Any] | None


class JobStates(Struct, frozen=True, kw_only=True):
    jobs: list[JobState]


class Wait(Struct, frozen=True, forbid_unknown_fields=True):
    """Answers when the job has ended, at the latest after so many seconds."""

    wait: Annotated[float, Meta(ge=0, le=30)] = 0.0


async def list_skills(gateway: Gateway, call: Call) -> Skills:
    """With `q` the router ranks them."""
    if call.query.q:
        params = {"query": call.query.q, "limit": call.query.limit}
        found = await asyncio.to_thread(perform, gateway.root, "search", params)
        return Skills(skills=list(found["skills"]), next="")
    found = await asyncio.to_thread(perform, gateway.root, "list", {})
    held = sorted(found["skills"], key=lambda one: f"{one['name']} {one['level']}")
    page, following = page_of(held, call.query, lambda one: f"{one['name']} {one['level']}", rising=True)
    return Skills(skills=page, next=following)


async def read_skill(gateway: Gateway, call: Call) -> Mapping[str, Any]:
    """As `navigator skill info --json`. Only installed skills: a source is looked at by a preview."""
    name = call.path["name"]
    held = await asyncio.to_thread(perform, gateway.root, "list", {})
    if name not in {one["name"] for one in held["skills"]}:
        found = gateway.kernel.catalogue.suggest(name)
        raise _unknown(name, found)
    return await asyncio.to_thread(perform, gateway.root, "info", {"source": name})


async def verify_skill(gateway: Gateway, call: Call) -> Mapping[str, Any]:
    """Whether its files are those that were installed."""
    return await asyncio.to_thread(perform, gateway.root, "verify", {"name": call.body.name})


async def preview_install(gateway: Gateway, call: Call) -> StartedJob:
    """What an install would bring: skills, findings, permissions and the changes of the lock. Nothing is written."""
    return _started(gateway, call, "install", {**_source(call.body), "dry_run": True})


async def install_skills(gateway: Gateway, call: Call) -> StartedJob:
    """The request is the person's yes to what the skills declare. A block of the scanner is accepted at the terminal
    only."""
    return _started(gateway, call, "install", _source(call.body))


async def update_skills(gateway: Gateway, call: Call) -> StartedJob:
    """With `check` it says what is outdated, and changes nothing."""
    held = asdict(call.body)
    return _started(gateway, call, "update", {**held, "name": held.pop("names")})


async def uninstall_skill(gateway: Gateway, call: Call) -> StartedJob:
    return _started(gateway, call, "uninstall", {"name": [call.path["name"]]})


async def enable_skill(gateway: Gateway, call: Call) -> Mapping[str, Any]:
    return await asyncio.to_thread(perform, gateway.root, "enable", {"name": call.body.name})


async def disable_skill(gateway: Gateway, call: Call) -> Mapping[str, Any]:
    return await asyncio.to_thread(perform, gateway.root, "disable", {"name": call.body.name})


async def trust_skill(_gateway: Gateway, call: Call) -> Answer:
    raise Refused("a skill is trusted at the terminal", hint=f"navigator skill trust {call.body.name}")


async def list_jobs(gateway: Gateway, call: Call) -> JobStates:
    return JobStates(jobs=[_state(job) for job in gateway.jobs.all(call.caller.id)])


async def read_job(gateway: Gateway, call: Call) -> JobState:
    job = gateway.jobs.find(call.caller.id, call.path["job"])
    if call.query.wait and not job.ended.is_set():
        await asyncio.wait([asyncio.ensure_future(job.ended.wait())], timeout=call.query.wait)
    return _state(job)


def _started(gateway: Gateway, call: Call, operation: str, params: Mapping[str, Any]) -> StartedJob:
    return StartedJob(job=gateway.jobs.start(call.caller.id, operation, params).id)


def _source(body: Source) -> dict[str, Any]:
    if not body.all and not body.skills:
        raise UsageProblem("no skill is named", hint='"skills": ["name"], or "all": true')
    held = asdict(body)
    return {**held, "skill": held.pop("skills")}


def _state(job: Job) -> JobState:
    shown = {name: getattr(job, name) for name in JobState.__struct_fields__}
    return JobState(**shown)


def _unknown(name: str, near: Sequence[str]) -> Exception:
    from navigator_kernel.errors import SkillNotFound

    hint = f"near names: {', '.join(near)}" if near else "GET /api/skills lists them"
    return SkillNotFound(f"no skill is called {name!r}", hint=hint, suggestions=list(near))


def _get(path: str, summary: str, handler: Any, **more: Any) -> Endpoint:
    return Endpoint(method="GET", path=path, role="read", summary=summary, handler=handler, tag="skills", **more)


def _change(path: str, summary: str, handler: Any, body: Any, **more: Any) -> Endpoint:
    given = {"role": "admin", "errors": (404, 409), **more}
    return Endpoint(method="POST", path=path, summary=summary, handler=handler, tag="skills", body=body, **given)


_JOB: Mapping[str, Any] = {"answer": StartedJob, "status": 202}

ENDPOINTS = (
    _get("/api/skills", "List or search the skills", list_skills, query=Sought, answer=Skills),
    _change("/api/skills/verify", "Compare a skill with what was installed", verify_skill, Named, role="read"),
    _change("/api/skills/preview", "Show what an install would bring", preview_install, Source, **_JOB),
    _change("/api/skills/install", "Install skills", install_skills, Source, **_JOB),
    _change("/api/skills/update", "Update skills", update_skills, Several, **_JOB),
    _change("/api/skills/enable", "Switch a skill on", enable_skill, Named),
    _change("/api/skills/disable", "Switch a skill off", disable_skill, Named),
    _change("/api/skills/trust", "Refused: a skill is trusted at the terminal", trust_skill, Named),
    _get("/api/skills/{name:path}", "Look at a skill", read_skill, errors=(404,)),
    Endpoint(
        method="DELETE",
        path="/api/skills/{name:path}",
        role="admin",
        summary="Uninstall a skill",
        handler=uninstall_skill,
        tag="skills",
        errors=(404,),
        **_JOB,
    ),
    _get("/api/jobs", "List your installs and updates", list_jobs, answer=JobStates),
    _get("/api/jobs/{job}", "Look at a job, or wait for it", read_job, query=Wait, answer=JobState, errors=(404,)),
)

"""Skills: list, search, look at, and change, as the commands of `navigator skill` do."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct, to_builtins

from navigator_kernel.bootstrap.lifecycle import lifecycle_of
from navigator_kernel.errors import Refused, UsageProblem
from navigator_kernel.evals.lint import Listing, listings
from navigator_kernel.gateway.jobs import Job
from navigator_kernel.skills.options import InstallOptions
from navigator_kernel.values.http.cursors import Page, page_of
from navigator_kernel.values.http.endpoint import Answer, Call, Endpoint

if TYPE_CHECKING:
    from navigator_kernel.gateway.gateway import Gateway
    from navigator_kernel.skills.lifecycle import Lifecycle

Text = Annotated[str, Meta(min_length=1, max_length=2_000)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Word = Annotated[str, Meta(min_length=1, max_length=1_000)]
KEPT = 60.0  # seconds that a list of skills is cached


class Sought(Page, frozen=True, forbid_unknown_fields=True):
    """The skills that fit `q`, best first; without it all skills, by name."""

    q: Annotated[str, Meta(max_length=2_000)] = ""


class Skills(Struct, frozen=True, kw_only=True):
    """`{name, description, kind, status, level, enabled, path, …}` of each skill, as in `navigator skill list
    --json`."""

    skills: list[dict[str, Any]]
    next: str


class Source(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A repository and its skills: those in `skills`, or with `all` every one except those that `exclude` lists, by
    name or path. `ref` is a branch, tag or commit; `commit` is the one that a preview showed, and an install is refused
    if the source has another one now. With `user` the skills are for all projects of the person."""

    source: Text
    skills: Annotated[list[Name], Meta(max_length=10_000)] = []
    exclude: Annotated[list[Word], Meta(max_length=10_000)] = []
    all: bool = False
    ref: Annotated[str, Meta(max_length=200)] = ""
    commit: Annotated[str, Meta(max_length=64)] = ""
    user: bool = False
    offline: bool = False


class Named(Struct, frozen=True, forbid_unknown_fields=True):
    name: Name


class Verified(Struct, frozen=True, forbid_unknown_fields=True):
    """The skill to verify; without a name, every installed skill."""

    name: Annotated[str, Meta(max_length=200)] = ""


class Several(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The skills in `names`; all if it is empty. `check` changes nothing, and with `diff` it shows each difference. A
    skill that can do more than before stays pending until `agreed` has its digest."""

    names: Annotated[list[Name], Meta(max_length=1_000)] = []
    check: bool = False
    diff: bool = False
    agreed: Annotated[list[str], Meta(max_length=1_000)] = []
    user: bool = False
    offline: bool = False


class Earlier(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`to` is the stamp of an earlier lock, or the beginning of that stamp; empty for the last lock. `check` changes
    nothing."""

    to: Annotated[str, Meta(max_length=100)] = ""
    check: bool = False
    user: bool = False
    offline: bool = False


class Whose(Struct, frozen=True, forbid_unknown_fields=True):
    user: bool = False


class HostListings(Struct, frozen=True, kw_only=True):
    hosts: list[Listing]


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
    """The answer comes when the job has ended, after `wait` seconds at the latest."""

    wait: Annotated[float, Meta(ge=0, le=30)] = 0.0


def list_skills(gateway: Gateway, call: Call) -> Skills:
    """Lists the skills; with `q` the router ranks them."""
    if call.query.q:
        query = call.query
        found = _done(gateway, lambda skills: skills.search(query.q, limit=query.limit))
        return Skills(skills=found["skills"], next="")
    held = _all_skills(gateway, again=not call.query.cursor)
    page, following = page_of(held, call.query, _place, rising=True)
    return Skills(skills=page, next=following)


def read_skill(gateway: Gateway, call: Call) -> Mapping[str, Any]:
    """Answers like `navigator skill info --json`, for installed skills only: use a preview to look at a source."""
    return _done(gateway, lambda skills: skills.info(call.path["name"], here=True))


def verify_skill(gateway: Gateway, call: Call) -> Mapping[str, Any]:
    """Checks whether the files of skills are those that were installed."""
    return _done(gateway, lambda skills: skills.verify(call.body.name))


def scan_skill(gateway: Gateway, call: Call) -> Mapping[str, Any]:
    """Answers like `navigator skill scan --json`, for an installed skill."""
    return _done(gateway, lambda skills: skills.scan(call.body.name, here=True))


def host_listings(gateway: Gateway, _call: Call) -> HostListings:
    skills = [skill for skill in gateway.project.catalogue.list_resources() if skill.type == "skill"]
    return HostListings(hosts=listings(skills))


async def preview_install(gateway: Gateway, call: Call) -> StartedJob:
    """Shows what an install would bring: skills, findings, permissions and changes to the lock. Nothing is written."""
    return _install(gateway, call, dry_run=True)


async def install_skills(gateway: Gateway, call: Call) -> StartedJob:
    """Installs skills. The request is the person's yes to what the skills declare. A block by the scanner can be
    accepted only at the terminal."""
    return _install(gateway, call, dry_run=False)


async def update_skills(gateway: Gateway, call: Call) -> StartedJob:
    """Updates skills; with `check` it lists the outdated ones and changes nothing."""
    body: Several = call.body
    options = InstallOptions(user=body.user, offline=body.offline, agreed=body.agreed)

    def run(skills: Lifecycle) -> Struct:
        if body.check:
            return skills.outdated(body.names, options, diffs=body.diff)
        return skills.update(body.names, options)

    return _started(gateway, call, "update", run)


async def rollback_skills(gateway: Gateway, call: Call) -> StartedJob:
    """Restores the installed skills to those of an earlier lock, byte for byte."""
    body: Earlier = call.body
    options = InstallOptions(user=body.user, offline=body.offline, dry_run=body.check)
    return _started(gateway, call, "rollback", lambda skills: skills.rollback(body.to, options))


async def uninstall_skill(gateway: Gateway, call: Call) -> StartedJob:
    """Uninstalls a skill; with `user` one that is for all projects of the person."""
    options = InstallOptions(user=call.query.user)
    return _started(gateway, call, "uninstall", lambda skills: skills.uninstall([call.path["name"]], options))


def enable_skill(gateway: Gateway, call: Call) -> Mapping[str, Any]:
    return _done(gateway, lambda skills: skills.enable(call.body.name))


def disable_skill(gateway: Gateway, call: Call) -> Mapping[str, Any]:
    return _done(gateway, lambda skills: skills.disable(call.body.name))


async def trust_skill(_gateway: Gateway, call: Call) -> Answer:
    raise Refused("a skill is trusted at the terminal", hint=f"navigator skill trust {shlex.quote(call.body.name)}")


async def list_jobs(gateway: Gateway, call: Call) -> JobStates:
    return JobStates(jobs=[_state(job) for job in gateway.jobs.all(call.caller.id)])


async def read_job(gateway: Gateway, call: Call) -> JobState:
    job = gateway.jobs.find(call.caller.id, call.path["job"])
    if call.query.wait and not job.ended.is_set():
        await asyncio.wait([asyncio.ensure_future(job.ended.wait())], timeout=call.query.wait)
    return _state(job)


def _done(gateway: Gateway, run: Callable[[Lifecycle], Struct]) -> dict[str, Any]:
    """The JSON document of a skill command that is carried out at once."""
    document: dict[str, Any] = to_builtins(run(lifecycle_of(gateway.project)))
    return document


def _started(gateway: Gateway, call: Call, operation: str, run: Callable[[Lifecycle], Struct]) -> StartedJob:
    return StartedJob(job=gateway.jobs.start(call.caller.id, operation, run).id)


def _install(gateway: Gateway, call: Call, *, dry_run: bool) -> StartedJob:
    body: Source = call.body
    if not body.all and not body.skills:
        raise UsageProblem("no skill is named", hint='"skills": ["name"], or "all": true')
    options = InstallOptions(
        everything=body.all,
        exclude=body.exclude,
        ref=body.ref,
        commit=body.commit,
        user=body.user,
        offline=body.offline,
        grown=True,
        dry_run=dry_run,
    )
    return _started(gateway, call, "install", lambda skills: skills.install(body.source, body.skills, options))


def _state(job: Job) -> JobState:
    shown = {name: getattr(job, name) for name in JobState.__struct_fields__}
    return JobState(**shown)


def _all_skills(gateway: Gateway, *, again: bool) -> Sequence[dict[str, Any]]:
    """All skills by name. Pages after the first come from the list that was read for a first page, if it is at most
    `KEPT` seconds old: reading 10,000 manifests takes a second."""
    now, listed = time.monotonic(), gateway.listed
    if again or listed is None or now - listed[0] > KEPT:
        installed = _done(gateway, lambda skills: skills.installed())
        gateway.listed = listed = now, sorted(installed["skills"], key=_place)
    return listed[1]


def _place(one: Mapping[str, Any]) -> str:
    return f"{one['name']} {one['level']}"


_get = partial(Endpoint, "GET", role="read", tag="skills")
_change = partial(Endpoint, "POST", role="admin", tag="skills", errors=(404, 409))
_JOB: Mapping[str, Any] = {"answer": StartedJob, "status": 202}

ENDPOINTS = (
    _get("/api/skills", "List or search the skills", list_skills, query=Sought, answer=Skills),
    _get("/api/hosts", "Show the sizes of the skill lists of coding agents", host_listings, answer=HostListings),
    _change("/api/skills/verify", "Compare skills with what was installed", verify_skill, body=Verified, role="read"),
    _change("/api/skills/scan", "Scan an installed skill", scan_skill, body=Named, role="read"),
    _change("/api/skills/preview", "Show what an install would change", preview_install, body=Source, **_JOB),
    _change("/api/skills/install", "Install skills", install_skills, body=Source, **_JOB),
    _change("/api/skills/update", "Update skills", update_skills, body=Several, **_JOB),
    _change("/api/skills/rollback", "Return to an earlier lock", rollback_skills, body=Earlier, **_JOB),
    _change("/api/skills/enable", "Switch a skill on", enable_skill, body=Named),
    _change("/api/skills/disable", "Switch a skill off", disable_skill, body=Named),
    _change("/api/skills/trust", "Refused: a skill is trusted at the terminal", trust_skill, body=Named),
    _get("/api/skills/{name:path}", "Look at a skill", read_skill, errors=(404,)),
    Endpoint(
        "DELETE",
        "/api/skills/{name:path}",
        "Uninstall a skill",
        uninstall_skill,
        role="admin",
        tag="skills",
        query=Whose,
        errors=(404,),
        **_JOB,
    ),
    _get("/api/jobs", "List your installs and updates", list_jobs, answer=JobStates),
    _get("/api/jobs/{job}", "Read a job, or wait for its end", read_job, query=Wait, answer=JobState, errors=(404,)),
)

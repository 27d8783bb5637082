"""Explains why a run chose its skill and not another one, and learns from its message."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct

from navigator_kernel.errors import UsageProblem, unknown_skill
from navigator_kernel.events import RouteDecided, RunStarted, SkillsShortlisted
from navigator_kernel.language.wording import because_of
from navigator_kernel.text import Language
from navigator_kernel.values.http.endpoint import Call, Endpoint
from navigator_kernel.why import Missed, lines_of, missed, reasons, skill_named

if TYPE_CHECKING:
    from navigator_kernel.gateway.gateway import Gateway

NAMED = frozenset({"syntax", "session"})  # tiers whose messages do not show the purpose of a skill
Name = Annotated[str, Meta(max_length=200)]


class ToExplain(Struct, frozen=True, forbid_unknown_fields=True, rename={"skill": "not"}):
    """With `not`, the answer also says where that skill dropped out; sentences are in `language`."""

    skill: Name = ""
    language: Language = "en"


class Explanation(Struct, frozen=True, kw_only=True):
    """`why` says in a sentence for each message why it was decided so, as `navigator why` does. `lines` are as
    `navigator why -v` prints them, in English; `shortlisted` and `decided` are the reasons of the router and of the
    decision with their numbers. `missed` is the answer of `navigator why --not`."""

    run: str
    why: list[str]
    lines: list[str]
    shortlisted: str
    decided: str
    missed: Missed | None


class ToLearn(Struct, frozen=True, forbid_unknown_fields=True):
    """The skill that the run's message is an example of."""

    skill: Annotated[str, Meta(min_length=1, max_length=200)]


class Learned(Struct, frozen=True, kw_only=True):
    """`learned` is False if the message was known already, or contains a secret."""

    skill: str
    learned: bool


def explain_run(gateway: Gateway, call: Call) -> Explanation:
    run = call.path["run"]
    gateway.session_of_run(call.caller, run)
    events = gateway.log.read(run)
    shortlist = next((event.body for event in events if isinstance(event.body, SkillsShortlisted)), None)
    decided = next((event.body.decision for event in events if isinstance(event.body, RouteDecided)), None)
    name, language, catalogue = call.query.skill.strip(), call.query.language, gateway.project.catalogue
    first = shortlist.candidates[0] if shortlist and shortlist.candidates else {}
    best = {"entity": first.get("name"), "confidence": first.get("confidence", 0.0)}
    skill = skill_named(catalogue, name) if name else None
    return Explanation(
        run=run,
        why=list(reasons(events, catalogue, language)),
        lines=[line.strip() for event in events for line in lines_of(event)],
        shortlisted=_because(shortlist.reason, best, language) if shortlist else "",
        decided=_because(decided["reason"], decided, language) if decided else "",
        missed=missed(events, skill, skill.name if skill else name, language) if name else None,
    )


def _because(reason: str, facts: Any, language: Language) -> str:
    return because_of(reason, language, name=facts["entity"] or "", confidence=f"{facts['confidence']:.2f}")


def learn_run(gateway: Gateway, call: Call) -> Learned:
    """Makes the message an example of the skill, like `navigator route --teach`. SkillNotFound for an unknown skill."""
    run, name = call.path["run"], call.body.skill
    gateway.session_of_run(call.caller, run)
    bodies = [event.body for event in gateway.log.read(run)]
    message = bodies[0].message.strip() if isinstance(bodies[0], RunStarted) else ""
    tiers = [body.decision["tier"] for body in bodies if isinstance(body, RouteDecided)]
    if not message or not tiers or tiers[0] in NAMED:
        raise UsageProblem("the message of this run is an answer, or names its skill itself", hint="choose another run")
    skill = gateway.project.catalogue.find(name)
    if skill is None:
        raise unknown_skill(name, gateway.project.catalogue.suggest(name))
    return Learned(skill=skill.name, learned=gateway.project.lessons.learn(skill.name, message))


_endpoint = partial(Endpoint, tag="runs", role="chat", errors=(404,))
_WHY = "Explain how a run chose its skill, and why not another one"
_LEARN = "Use a skill for messages like this one from now on"

ENDPOINTS = (
    _endpoint("GET", "/api/runs/{run}/why", _WHY, explain_run, query=ToExplain, answer=Explanation),
    _endpoint("POST", "/api/runs/{run}/learn", _LEARN, learn_run, role="approve", body=ToLearn, answer=Learned),
)

"""Stage 3: decides what to do about an intent (COV-1..7, RTE-1..3, X-7, X-8)."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from navigator_kernel.language.clauses import asks_to_look
from navigator_kernel.language.parameters import meant
from navigator_kernel.language.wording import say
from navigator_kernel.text import Language, fold
from navigator_kernel.values.resource import PATHS
from navigator_kernel.values.route import (
    Direct,
    Intent,
    NeedClarification,
    Retrieval,
    RouteDecision,
    RouteResult,
    Skills,
    Unknown,
)

if TYPE_CHECKING:
    from navigator_kernel.ports import Catalogue
    from navigator_kernel.values.request import PreprocessingResult

FALLBACKS = 3  # INT-12
NAMED = 0.4  # confidence from which a skill is taken that takes what the message names
POSSIBLE = 0.1  # confidence from which a skill may be meant by a message that names what does not exist
BEHIND = 0.1  # confidence of the next one, as a part of the first one's, up to which the first is far ahead


def decide(intent: Intent, request: PreprocessingResult, catalogue: Catalogue) -> RouteDecision:
    """Makes the decision. A named skill that does not exist is Unknown, never Direct (X-7, X-29)."""
    unreadable = [file for file in request.files if file.problem]
    if unreadable:
        result: RouteResult = Unknown(
            what="file",
            name="; ".join(file.problem for file in unreadable),
            hint="; ".join(dict.fromkeys(file.hint for file in unreadable)),
            refused=any(file.refused for file in unreadable),
        )
        return RouteDecision(result=result, tier="syntax", confidence=1.0, reason="unreadable")
    result = _result(intent, request, catalogue) if len(request.commands) < 2 else _one_at_a_time(request)
    result = _without_text(result, request, catalogue) or result
    names = result.names if isinstance(result, Skills) else ()
    return RouteDecision(
        result=result,
        entity=names[0] if names else intent.entity,
        candidates=tuple(name for name in intent.candidates[:FALLBACKS] if name not in names),
        confidence=intent.confidence,
        tier=intent.tier,
        reason=intent.reasoning or "",
    )


def _without_text(result: RouteResult, request: PreprocessingResult, catalogue: Catalogue) -> Unknown | None:
    """A marked folder, or a file whose text cannot be used, for anything else than a skill that takes a path."""
    skills = [catalogue.find(name) for name in result.names] if isinstance(result, Skills) else []
    if skills and all(skill and PATHS & {spec.validation for spec in skill.required_params} for skill in skills):
        return None
    files = [file for file in request.files if file.unread or file.folder]
    if not files or isinstance(result, NeedClarification):
        return None
    name = files[0].unread or f"{files[0].written!r} is not a regular file"
    return Unknown(what="file", name=name, hint="name a smaller part of it, or a text file", refused=True)


def _result(intent: Intent, request: PreprocessingResult, catalogue: Catalogue) -> RouteResult:
    if isinstance(intent.action, Skills):
        found = _named(intent.action, catalogue)
        followed = intent.tier == "session" and isinstance(found, Unknown)
        return Direct() if followed else found  # a follow-up does not name its skill, which is gone by now
    if intent.action is not None:
        return intent.action
    if intent.mode == "SKILL" and intent.entity is not None:
        return Skills(names=(intent.entity,))
    if intent.retrieval is not None and (by_target := _by_target(intent.retrieval, request, catalogue)) is not None:
        return by_target
    if intent.retrieval is not None and intent.retrieval.band == "ambiguous":
        return _offer(intent.retrieval, request)
    return Direct()


def _by_target(found: Retrieval, request: PreprocessingResult, catalogue: Catalogue) -> RouteResult | None:
    """The first skill, if it is far ahead, the message asks to look at something, and the skill takes what it names: a
    file, a folder or a time. A file that does not exist is said at once, without a question about the skill. Else None.
    """
    from navigator_kernel.language.stated import period

    first, second = (*found.candidates, None, None)[:2]
    skill = catalogue.find(first.name) if first is not None else None
    kinds = {spec.validation for spec in skill.required_params} if skill else set[str]()
    if first is None or not kinds & {*PATHS, "since"} or not asks_to_look(request.need):
        return None
    named = [file for file in (*request.files, *meant(request)) if not file.loose]
    absent = next((file for file in named if file.problem), None) if kinds & PATHS else None
    if absent is not None and first.confidence >= POSSIBLE:
        return Unknown(
            what="file", name=absent.problem, suggestions=absent.near, hint=absent.hint, refused=absent.refused
        )
    if first.confidence < NAMED or (second and second.confidence > first.confidence * BEHIND):
        return None
    usable = [file for file in (*request.files, *meant(request)) if file.usable]
    fits = "path_exists" in kinds and bool(usable)
    fits |= any(("folder_exists" if file.folder else "file_exists") in kinds for file in usable)
    timed = "since" in kinds and request.today and any(period(request.need, date.fromisoformat(request.today)))
    return Skills(names=(first.name,)) if fits or timed else None


def _offer(found: Retrieval, request: PreprocessingResult) -> NeedClarification:
    """Offers at most three skills with numbers; the answer is a number, a name, or no (X-45)."""
    options = found.offered or tuple(candidate.name for candidate in found.candidates[:FALLBACKS])
    told = [_with_needs(name, found, request.language) for name in options]
    if len(options) == 1:
        question = say("ask.use", request.language, name=told[0])
    else:
        listed = "  ".join(f"{at} {name}" for at, name in enumerate(told, 1))
        more = say("ask.more", request.language, count=found.more) if found.more else ""
        question = say("ask.which", request.language, options=listed, more=more)
    return NeedClarification(question=question, options=options)


def _with_needs(name: str, found: Retrieval, language: Language) -> str:
    """The name, with the MCP servers that the skill needs but that are not set up."""
    lacks = found.lacks.get(name)
    return say("ask.needs", language, name=name, servers=", ".join(lacks)) if lacks else name


def _one_at_a_time(request: PreprocessingResult) -> NeedClarification:
    """Asks which of several instructions to carry out, so that none is dropped silently."""
    options = tuple(command.original_string for command in request.commands)
    return NeedClarification(
        question=say("ask.one_instruction", request.language, options=" | ".join(options)), options=options
    )


def _named(action: Skills, catalogue: Catalogue) -> RouteResult:
    names: list[str] = []
    for name in action.names:
        held = catalogue.find(name) or catalogue.find(name, "command") or catalogue.find(name, "prompt")
        if held is None and (off := _switched_off(name, catalogue)):
            return Unknown(what="disabled", name=off, hint=f"navigator skill enable {off}")
        if held is None:
            return Unknown(what="skill", name=name, suggestions=catalogue.suggest(name))
        names.append(held.name)
    return Skills(names=tuple(names), arguments=action.arguments, direct_call=action.direct_call)


def _switched_off(name: str, catalogue: Catalogue) -> str:
    """The name of the disabled skill with this name, or empty."""
    every = catalogue.list_resources(enabled_only=False)
    return next((one.name for one in every if one.type == "skill" and fold(one.name) == fold(name)), "")

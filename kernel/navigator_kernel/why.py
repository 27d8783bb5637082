"""Explains a run from its events, and where a skill dropped out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from navigator_kernel.language.wording import COLON, because_of, between, say, sentences, worded
from navigator_kernel.text import Language, clean, shorten

if TYPE_CHECKING:
    from navigator_kernel.events import Event
    from navigator_kernel.ports import Catalogue
    from navigator_kernel.values.resource import SkillDef


def readable_lines(events: Sequence[Event], catalogue: Catalogue, language: Language | None = None) -> Iterator[str]:
    """The lines about a run for people, without numbers: each message, the reason for the decision and for each step of
    several, and what happened then. A reason is in `language`, by default that of its message."""
    whys, spoken = {event.seq: why for event, why in _explained(events, catalogue, language)}, language or "en"
    for event in events:
        if event.type == "RunStarted":
            spoken = language or event.to_dict()["data"]["language"]
        if event.seq in whys:
            key = "why.step" if event.type == "SkillChosen" else "why.event.RouteDecided"
            yield say(key, spoken, why=whys[event.seq])
        elif event.type == "RunCompleted":
            yield _line(event.type, spoken, event.to_dict()["data"])
        elif event.type not in _NUMBERS:
            yield from lines_of(event, spoken)


def reasons(events: Sequence[Event], catalogue: Catalogue, language: Language | None = None) -> Iterator[str]:
    """Why each message of a run was decided as it was, and which skill came next, in a sentence like `pdf, because
    'merge' and '.pdf' are in its description; next: docx .12`; of several steps also why each has its skill."""
    return (why for _, why in _explained(events, catalogue, language))


def _explained(events: Sequence[Event], catalogue: Catalogue, language: Language | None) -> Iterator[tuple[Event, str]]:
    """Each decision of a run, and each skill chosen for one of several steps, with its sentence."""
    message, spoken, reason = "", language or "en", ""
    listed: Sequence[Mapping[str, Any]] = ()
    orders = [event.to_dict()["data"]["packet"]["task_spec"] for event in events if event.type == "StepStarted"]
    texts = {order.get("target", ""): order.get("intent", "") for order in orders}
    for event in events:
        data = event.to_dict()["data"]
        if event.type == "RunStarted":
            message, spoken, listed = data["message"], language or data["language"], ()
        elif event.type == "SkillsShortlisted":
            listed = data["candidates"]
        elif event.type == "RouteDecided":
            reason = data["decision"]["reason"]
            yield event, _sentence(data["decision"], message, listed, catalogue, spoken)
        elif event.type == "SkillChosen" and reason in _SEVERAL:
            skill = skill_named(catalogue, data["skill"])
            text = texts.get(f"skill:{data['skill']}") or message
            if skill is not None:
                why = _evidence(text, skill, spoken)
                yield event, say("why.because", spoken, what=data["skill"], why=why)


WORDS = 3  # words in a reason
LEAST = 0.01  # confidence of a skill that is named beside the chosen one
_SEVERAL = frozenset({"steps", "clauses", "approved"})  # reasons for decisions about several steps
_NUMBERS = frozenset({"SkillsOffered", "SkillsShortlisted", "SkillChosen", "SkillLoaded", "SkillUsed"})


def _sentence(
    decision: Mapping[str, Any],
    message: str,
    listed: Sequence[Mapping[str, Any]],
    catalogue: Catalogue,
    language: Language,
) -> str:
    kind, tier, reason, entity = (decision[key] or "" for key in ("kind", "tier", "reason", "entity"))
    skill = skill_named(catalogue, entity) if kind == "skills" else None
    what = say(f"why.{kind}", language) if kind in {"direct", "clarify"} else entity or kind
    if skill is not None and tier == "retrieval" and reason == "leader":
        text = say("why.because", language, what=what, why=_evidence(message, skill, language))
    else:
        sure = next((f"{each['confidence']:.2f}".replace("0.", ".") for each in listed if each["name"] == entity), "")
        why = because_of(reason, language, name=entity, confidence=sure).partition(";" if language == "en" else "；")[0]
        text = f"{what}{COLON[language]}{why}"
    others = [candidate for candidate in listed if candidate["name"] != entity and candidate["confidence"] >= LEAST]
    shown = others[: 2 if kind == "clarify" else 1]
    names = between(
        (f"{candidate['name']} {candidate['confidence']:.2f}".replace(" 0.", " .") for candidate in shown), language
    )
    return text + (say("why.next" if skill else "why.nearest", language, names=names) if names else "")


def _evidence(message: str, skill: SkillDef, language: Language) -> str:
    """The words of the message in the part of the skill that has most of them, in the order of the message."""
    from navigator_kernel.adapters.index.word_index import WordIndex
    from navigator_kernel.routing.entries import entry_of
    from navigator_kernel.routing.words import content_terms, terms

    stems, entry = WordIndex(()).stems, entry_of(skill)
    of_message = list(dict.fromkeys(content_terms(message)))
    parts = {
        "description": entry.purpose,
        "name": " ".join((entry.title, *entry.aliases)),
        "tags": " ".join(entry.tags),
        "examples": " ".join(entry.examples),
        "text": entry.body,
    }
    places: dict[str, list[str]] = {}
    for place, text in parts.items():
        known = set(stems(terms(text)))
        places[place] = [word for word, stem in zip(of_message, stems(of_message), strict=True) if stem in known]
    place = max(places, key=lambda one: len(places[one]))
    words = [f".{one}" if f".{one}" in message.lower() else one for one in _joined(places[place], parts[place])][:WORDS]
    if not words:
        return say("why.meaning", language)
    quoted = [say("why.quoted", language, word=word) for word in words]
    listed = between(quoted[:-1], language) + say("why.and", language) + quoted[-1] if words[1:] else quoted[0]
    return say(
        "why.words" if words[1:] else "why.word", language, words=listed, place=say(f"why.part.{place}", language)
    )


def _joined(words: Sequence[str], text: str) -> list[str]:
    """The words, with pairs of Chinese characters that overlap joined if the text has them together."""
    joined: list[str] = []
    for word in words:
        together = joined[-1] + word[1:] if joined and joined[-1][-1] == word[0] and not word.isascii() else ""
        if together and together in text:
            joined[-1] = together
        else:
            joined.append(word)
    return joined


def lines_of(event: Event, language: Language = "en") -> list[str]:
    """The text of one event, in one or a few lines; empty for events that only help to explain others."""
    data = event.to_dict()["data"]
    if event.type == "SkillsShortlisted":
        lines = [f"  shortlist  {data['band']}"]
        for candidate in data["candidates"][:5]:
            parts = "  ".join(f"{name} {value:.2f}" for name, value in candidate["parts"].items())
            lines.append(f"             {candidate['name']}  confidence {candidate['confidence']:.2f}  {parts}")
        return lines
    if event.type == "RouteDecided":
        decision = data["decision"]
        why = because_of(
            decision["reason"], "en", name=decision["entity"] or "", confidence=f"{decision['confidence']:.2f}"
        )
        return [f"  decided    {decision['kind']} {decision['entity'] or ''} by {decision['tier']}: {why}"]
    if event.type == "ToolsLeftOut":
        names = ", ".join(clean(name, lines=False) for name in data["tools"])
        return [_shortened(f"  left out   {names}: {data['skill']} names these tools, and they are not offered here")]
    if event.type == "StepCompleted":
        notes = data["report"]["data"].get("diagnostics", ())
        return [_shortened(say("why.note", language, text=clean(str(one["msg"]), lines=False))) for one in notes]
    if event.type == "RunCompleted":
        lines = [_line(event.type, language, data)]
        for name, body in data.get("sections", {}).items():
            lines += [f"  {say(f'section.{name}', 'en')}", *(f"    {line}" for line in body)]
        return lines
    return [_line(event.type, language, data)] if f"why.event.{event.type}" in sentences() else []


def _line(event: str, language: Language, data: Mapping[str, Any]) -> str:
    facts = {**data, "state": worded("outcome", str(data.get("state", "")), language)}
    return _shortened(sentences()[f"why.event.{event}"][language == "zh"].format(**facts))


def _shortened(line: str, limit: int = 160) -> str:
    """The line, shortened to one line that keeps its indent."""
    return "  " + shorten(line, limit) if "\n" in line or len(line) > limit else line


STAGES = ("offered", "shortlisted", "chosen", "loaded", "used")


class Missed(Struct, frozen=True, kw_only=True):
    """How far a skill came in a run: the `stages` that it reached, the one where it `fell_out` (empty for none), and
    why; `confidence` is its own in the shortlist, `best` the first entry there with its confidence, each None if
    missing."""

    skill: str
    stages: tuple[str, ...]
    fell_out: str
    why: str
    confidence: float | None = None
    best: tuple[str, float] | None = None


def missed(events: Sequence[Event], skill: SkillDef | None, name: str, language: Language = "en") -> Missed:
    """Finds where `name` fell out of the run with these `events`; `skill` is the skill with this name now, enabled or
    not. `why` is in `language`."""
    data = [(event.type, event.to_dict()["data"]) for event in events]
    listed = [candidate for kind, facts in data if kind == "SkillsShortlisted" for candidate in facts["candidates"]]
    own = next((candidate["confidence"] for candidate in listed if candidate["name"] == name), None)
    best = (listed[0]["name"], listed[0]["confidence"]) if listed else None
    reached = {
        "offered": skill is not None and skill.enabled and skill.implicit,
        "shortlisted": own is not None,
        **{
            stage: any(event == f"Skill{stage.title()}" and facts["skill"] == name for event, facts in data)
            for stage in STAGES[2:]
        },
    }
    last = max((at for at, stage in enumerate(STAGES) if reached[stage]), default=-1)
    stages, fell_out = STAGES[: last + 1], STAGES[last + 1] if last + 1 < len(STAGES) else ""
    reason = _reason(fell_out, data, skill, name)
    why = say(f"why.{reason.code}", language, **reason.facts)
    return Missed(skill=name, stages=stages, fell_out=fell_out, why=why, confidence=own, best=best)


def skill_named(catalogue: Catalogue, name: str) -> SkillDef | None:
    """The skill for `missed`, even if it is switched off."""
    every = (resource for resource in catalogue.list_resources(enabled_only=False) if resource.type == "skill")
    return catalogue.find(name) or next((resource for resource in every if resource.name == name), None)


class _Reason(NamedTuple):
    """The sentence `why.CODE`, and the values to fill it with."""

    code: str
    facts: Mapping[str, str]


_Told = Sequence[tuple[str, Mapping[str, Any]]]


def _reason(fell_out: str, data: _Told, skill: SkillDef | None, name: str) -> _Reason:
    """The reason for the stage `fell_out`, from the events of the run."""
    questions = [fields["question"] for kind, fields in data if kind == "ClarificationAsked"]
    match fell_out:
        case "offered":
            if skill is None:
                return _Reason("unknown", {"name": name})
            return _Reason("implicit" if skill.enabled else "disabled", {"name": name})
        case "shortlisted":
            # The reason: nothing was decided, nothing was looked for, or other skills were nearer
            if any(kind == "SkillsShortlisted" for kind, _ in data):
                return _Reason("nearer", {"name": name})
            decided = next((fields["decision"] for kind, fields in data if kind == "RouteDecided"), None)
            if decided is None:
                return _Reason("undecided", {})
            facts = {"kind": decided["kind"], "entity": decided["entity"] or "", "tier": decided["tier"]}
            return _Reason("not_looked", facts)
        case "chosen" | "loaded" if questions:
            return _Reason("asked", {"question": questions[0]})
        case "chosen":
            chosen = [fields["skill"] for kind, fields in data if kind == "SkillChosen"]
            by = next((fields["decision"]["tier"] for kind, fields in data if kind == "RouteDecided"), "nothing")
            facts = {"skill": ", ".join(chosen), "tier": by}
            return _Reason("another" if chosen else "unsure", facts)
        case "loaded":
            before = [fields["report"]["summary"] for kind, fields in data if kind == "StepCompleted"]
            return _Reason("earlier", {"summary": before[-1]}) if before else _Reason("ended_before", {})
        case "used":
            stopped = any(kind == "RunCancelled" for kind, _ in data)
            return _Reason("stopped" if stopped else "ended", {})
    states = [fields["state"] for kind, fields in data if kind == "SkillUsed" and fields["skill"] == name]
    return _Reason("used", {"state": states[-1]})

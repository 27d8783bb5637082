"""A choice of skills or a missing value waits for an answer."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from bench.conversation_rows import Row, Scene, Seen, decided, label_of, released, skill_in, squash, tried
from bench.conversation_stage import FILES, Effect, SetupFailed, Skill, Stage
from bench.conversation_stubs import ASKING, OFFERS, Offer, Wanted, asking


def choice_scene(row: Row) -> Scene:
    context, language = row["context"], row["lang"]
    quoted, options = re.search(r"[\"“](.+?)[\"”]", context), _options(context)
    said = quoted.group(1) if quoted else context
    fits = [one for one in OFFERS if list(one.skills) == options and one.language in {"", language}]
    if not fits:
        print(f"no offer is prepared for {context!r}", file=sys.stderr)
    offer = fits[0] if fits else Offer({name: f"{name.replace('-', ' ')}: {said}" for name in options})
    said = offer.said or said
    skills = [Skill(name, what) for name, what in {**offer.skills, **offer.beside}.items()]
    wanted = Wanted(f"choice:{','.join(options)}:{said}", skills, settings=offer.settings, warm=(said,))
    return Scene(row, wanted, _play_choice, {"said": said, "options": options})


def _options(context: str) -> list[str]:
    """The skills that the context offers, in order."""
    asked = (
        context.rpartition("assistant:")[2] if "assistant:" in context else context.rpartition("助手：")[2] or context
    )
    numbered = re.findall(r"\b[1-9]\s+([a-z][\w-]*)", asked)
    return numbered or re.findall(r"[a-z][\w]*(?:-[\w]+)*(?=\s*(?:\?|吗))", asked)[:1]


def _play_choice(scene: Scene, stage: Stage, session: str) -> Seen:
    asked, options, text = scene.facts["said"], scene.facts["options"], scene.row["text"]
    first = tried(stage, session, asked, "question")
    offered = list(((first.get("report") or {}).get("data") or {}).get("options", ()))
    if offered != options:
        raise SetupFailed(f"{asked!r} offers {offered}, not {options}")
    reply = stage.say(session, text)
    label, _, known = label_of(reply)
    if ran := stage.effects():
        return Seen(_picked(ran, scene))
    if stage.waiting(session) == "question":
        return Seen(_still_open(scene, stage, session, label, known=known))
    said = stage.history(session)
    if any(asked in one and squash(text) in squash(one.replace(asked, "")) for one in said):
        return Seen("refine")  # routed again with both messages, and nothing fits
    if known:
        one = "no" if len(options) == 1 else "none"
        return Seen(one if label in {"no", "none"} else "refine" if label == "refine" else "other")
    if decided(reply) == "no_skill":
        return Seen("no" if len(options) == 1 else "none")
    return Seen("other")


def _picked(ran: Sequence[Effect], scene: Scene) -> str:
    """The outcome where a skill ran: with both messages it was routed again."""
    asked, options, text = scene.facts["said"], scene.facts["options"], scene.row["text"]
    first = ran[0]
    given = squash(" ".join(map(str, first.input)))
    if squash(asked) not in given:
        return "other"
    if len(ran) > 1 or (squash(text) and squash(text) in given.replace(squash(asked), "", 1)):
        return "refine"
    if first.name not in options:
        return "other"
    return "yes" if len(options) == 1 else f"pick:{options.index(first.name) + 1}"


def _still_open(scene: Scene, stage: Stage, session: str, label: str, *, known: bool) -> str:
    """The outcome where a question waits: the same one, or a new one about both messages. Answering it shows which."""
    options = scene.facts["options"]
    stage.say(session, "y" if len(options) == 1 else "1")
    ran = stage.effects()
    if ran and _picked(ran, scene) in {"refine", "other"}:
        return _picked(ran, scene)
    return "other" if known and label in {"", "other"} else "question"


def missing_scene(row: Row) -> Scene:
    name = skill_in(row["context"], ASKING, "log-summary")
    return Scene(row, asking(), _play_missing, {"skill": name})


def _play_missing(scene: Scene, stage: Stage, session: str) -> Seen:
    name = scene.facts["skill"]
    first = f"/{name}"
    tried(stage, session, first, "question")
    reply = stage.say(session, scene.row["text"])
    label, _, known = label_of(reply)
    ran = stage.effects()
    if ran and ran[0].name == name:
        return Seen(f"value:{_value(stage, ' '.join(map(str, ran[0].input)))}")
    if ran:
        return Seen("other")
    if stage.waiting(session) == "question":
        return Seen("other" if known and label in {"", "other"} else "question")
    if known:
        return Seen("cancel" if label in {"cancel", "no", "stop"} else "other")
    return Seen("cancel" if released(reply) else "other")


def _value(stage: Stage, given: str) -> str:
    """The value as the person would say it: a file by its name, also where the skill got its path or its text."""
    for name, text in FILES.items():
        if given.strip() and given.strip() in {text.strip(), str(stage.place.root / name)}:
            return name
    return given.removeprefix(f"{stage.place.root}/")

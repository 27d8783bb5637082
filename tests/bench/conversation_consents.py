"""An effect, a plan or interrupted work waits for an answer."""

from __future__ import annotations

import re

from bench.conversation_rows import (
    Reply,
    Row,
    Scene,
    Seen,
    decided,
    label_of,
    new_bodies,
    released,
    skill_in,
    squash,
    tried,
)
from bench.conversation_stage import FILES, SetupFailed, Stage, refusals
from bench.conversation_stubs import SAID, calls_of, happened, name_of, office, plain


def approval_scene(row: Row) -> Scene:
    context = row["context"]
    name = skill_in(context, SAID, _closest(context))
    if name not in {"send-report", "fetch-page", "clean-build", "fix-typos", "db-migrate"}:
        name = _closest(context)
    return Scene(row, office(), _play_approval, {"skill": name})


def _closest(context: str) -> str:
    kinds = (
        ("send-report", r"mail|邮件|@[\w-]+\.\w"),
        ("fetch-page", r"network|网络|https?:"),
        ("db-migrate", r"database|production|生产"),
        ("fix-typos", r"diff|edit|修改"),
        ("clean-build", r"command|命令|`"),
    )
    return next((name for name, pattern in kinds if re.search(pattern, context, re.IGNORECASE)), "send-report")


def _play_approval(scene: Scene, stage: Stage, session: str) -> Seen:
    name, text = scene.facts["skill"], scene.row["text"]
    stage.calls[name] = calls_of(name, scene.row["context"])
    tried(stage, session, SAID[name][scene.chinese], "approval")
    if happened(stage, name):
        raise SetupFailed(f"{name} acted before anybody agreed")
    stage.server.requests.clear()
    reply = stage.say(session, text)
    label, why, known = label_of(reply)
    if happened(stage, name):
        return Seen(_grant(scene, stage, session))
    told = [one for one in refusals(stage.server) if one]
    if stage.waiting(session) == "approval":
        anew = any(
            one[-1]["role"] == "user" for one in new_bodies(stage, name)
        )  # another call than the one that waited
        return Seen("other" if anew or (known and label in {"", "other"}) else "question")
    if told:  # the model goes on without the call
        said = next((one for one in (why, text) if one and any(squash(one) in squash(part) for part in told)), "")
        return Seen("no_with_reason", said) if said and label != "no" else Seen("no")
    if label == "no_with_reason":  # without a model there is nobody to tell
        return Seen("no") if stage.calls.get(name) else Seen(label, why or text)
    if label in {"stop", "undo", "no"}:
        return Seen(label)
    if label in {"yes", "yes_session", "always", "question"}:
        return Seen("no")  # whatever it says: nothing was done, and nothing waits
    if not known and (released(reply) or decided(reply) == "declined"):
        return Seen("stop" if released(reply) else "no")
    return Seen("other")


def _grant(scene: Scene, stage: Stage, session: str) -> str:
    """How far the consent went: whether the same is done in another session, or in this one, without a question."""
    name = scene.facts["skill"]
    for place, outcome in ((f"{session}-new", "always"), (session, "yes_session")):
        (stage.place.root / "README.md").write_text(FILES["README.md"], "utf-8")
        before = happened(stage, name)
        stage.say(place, SAID[name][scene.chinese])
        if happened(stage, name) > before:
            return outcome
    return "yes"


def plan_scene(row: Row) -> Scene:
    body = re.sub(r"^(?:plan|计划)\s*[:：]\s*", "", row["context"])
    body = re.sub(r"\s+[-—–]\s+[^-]*$", "", body)
    steps = [one.strip() for one in re.split(r"(?:^|\s)\d[.、]\s*", body) if one.strip()]
    return Scene(row, plain(), _play_plan, {"steps": steps})


def _play_plan(scene: Scene, stage: Stage, session: str) -> Seen:
    steps = scene.facts["steps"]
    words = [f"/{one}" if re.match(r"[a-z]", one) else one for one in steps]
    said = "\n".join(f"{at}. {one}" for at, one in enumerate(words, 1))
    first = tried(stage, session, said, "approval")
    planned = _steps(first)
    if len(planned) != len(steps):
        raise SetupFailed(f"{said!r} made a plan of {planned}")
    reply = stage.say(session, scene.row["text"])
    label, _, known = label_of(reply)
    ran = [effect.name for effect in stage.effects()]
    shown = _steps(reply)
    if ran:
        names = [next((name for name in SAID if name in one), "pdf" if "pdf" in one else "") for one in steps]
        same = ran == names[: len(ran)] and label != "edit"
        text = squash(scene.row["text"])
        if label != "edit" and any(text and text in squash(str(effect.input)) for effect in stage.effects()):
            return Seen("other")  # the text itself was taken for a request
        wanted = ran == names or (same and (reply.get("report") or {}).get("state") != "success")
        return Seen("yes" if wanted else "edit" if set(ran) & set(names) else "other")
    if stage.waiting(session) == "approval":
        if (shown and shown != planned) or label == "edit":
            return Seen("edit")
        return Seen("other" if known and label in {"", "other"} else "question")
    if stage.waiting(session) == "question":
        return Seen("edit" if label == "edit" else "question" if label == "question" else "other")
    if known:
        return Seen(label if label in {"no", "edit"} else "no" if label in {"stop", "cancel"} else "other")
    if released(reply) or decided(reply) == "declined":
        return Seen("no")
    return Seen("other")


def _steps(reply: Reply) -> list[str]:
    return [str(one) for one in ((reply.get("report") or {}).get("data") or {}).get("steps", ())]


def interrupted_scene(row: Row) -> Scene:
    name = skill_in(row["context"], ("todo-scan", "send-report"), "todo-scan")
    return Scene(row, office(), _play_interrupted, {"skill": name})


def _play_interrupted(scene: Scene, stage: Stage, session: str) -> Seen:
    """A scan is killed while the model thinks about its result, a mail while it is being sent."""
    name = scene.facts["skill"]
    stage.calls[name] = calls_of(name, scene.row["context"])
    if name == "send-report":
        tried(stage, session, SAID[name][scene.chinese], "approval")
        (stage.base / "slow").touch()
        stage.killed(session, "yes", lambda: bool(stage.effects()))
        (stage.base / "slow").unlink()
    else:
        stage.hang = True
        try:
            stage.killed(session, SAID[name][scene.chinese], lambda: bool(refusals(stage.server)))
        finally:
            stage.hang = False
    if stage.waiting(session) != "interrupted":
        raise SetupFailed(f"the session waits for {stage.waiting(session)!r}, not for the interrupted work")
    before = stage.effects()
    stage.server.requests.clear()
    reply = stage.say(session, scene.row["text"])
    label, _, known = label_of(reply)
    waiting, new = stage.waiting(session), [one for one in stage.effects() if one not in before]
    if waiting == "interrupted":
        return Seen("other" if known and label in {"", "other"} else "question")
    bodies = new_bodies(stage, name)
    if any(name_of(one) == name for one in new) or any(one[-1]["role"] == "tool" for one in bodies):
        return Seen("yes")
    if waiting == "approval" and not bodies:
        return Seen("yes")  # it goes on, and asks before it repeats what may have been done
    if known:
        return Seen("no" if label in {"no", "stop"} else "other")
    return Seen("no" if released(reply) or decided(reply) == "declined" else "other")

"""Nothing waits: a skill has just run, well or badly, or the session is idle."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import pairwise
from shutil import which

from bench.conversation_rows import Row, Scene, Seen, decided, label_of, new_bodies, released, skill_in, tried
from bench.conversation_stage import FILES, SetupFailed, Stage
from bench.conversation_stubs import SAID, Wanted, calls_of, happened, name_of, office, plain
from cli.support import MODULE, environment


def after_scene(row: Row) -> Scene:
    context, failed = row["context"], row["state"] == "after_error"
    name = skill_in(context, SAID, "word-count")
    effect = not failed and name in {"send-report", "fix-typos", "db-migrate", "clean-build"}
    facts = {"skill": name, "effect": effect, "error": _error(context) if failed else ""}
    return Scene(row, office() if effect else plain(), _play_after, facts)


def _error(context: str) -> str:
    """The message with which the skill fails."""
    return re.split(r"\b(?:failed|error)\s*[:：]\s*|失败\s*[:：]\s*", context, maxsplit=1)[-1].strip()


def _play_after(scene: Scene, stage: Stage, session: str) -> Seen:
    name, text, failed = scene.facts["skill"], scene.row["text"], bool(scene.facts["error"])
    _run_once(scene, stage, session)
    before, done = stage.effects(), (stage.place.root / "README.md").read_bytes()
    stage.server.requests.clear()
    reply = stage.say(session, text)
    label, _, known = label_of(reply)
    new = [effect for effect in stage.effects() if effect not in before]
    again = [effect for effect in new if name_of(effect) == name]
    other = "retry_with" if failed else "follow_up"
    if (stage.place.root / "README.md").read_bytes() != done:
        return Seen("undo" if (stage.place.root / "README.md").read_text("utf-8") == FILES["README.md"] else "retry")
    if again and before and again[0].input == before[0].input:
        return Seen("retry")
    if again:
        return Seen(other if label not in {"retry", other} else label)
    waiting = stage.waiting(session)
    if scene.facts["effect"] and waiting == "approval" and new_bodies(stage, name):
        return Seen(
            label if label in {"retry", "follow_up"} else "follow_up" if decided(reply) == "follow_up" else "retry"
        )
    if new:
        return Seen("other")
    if known and label in {"retry", "retry_with", "follow_up"}:
        return Seen(label if waiting else "question")  # it waits for a value, or did nothing
    if known:
        return Seen(label or "other")
    if released(reply):
        return Seen("stop")
    return Seen("other" if waiting or new_bodies(stage) else "question")


def _run_once(scene: Scene, stage: Stage, session: str) -> None:
    """Runs the skill, and agrees to what it asks."""
    name, said = scene.facts["skill"], SAID[scene.facts["skill"]][scene.chinese]
    if scene.facts["error"]:
        stage.place.write({"broken.txt": scene.facts["error"]})
    stage.calls[name] = calls_of(name, scene.row["context"])
    if scene.facts["effect"]:
        tried(stage, session, said, "approval")
        stage.say(session, "yes")
    else:
        stage.say(session, said)
    if not (happened(stage, name) if scene.facts["effect"] else stage.effects()):
        raise SetupFailed(f"{said!r} did not run {name}")
    (stage.place.root / "broken.txt").unlink(missing_ok=True)


def idle_scene(row: Row) -> Scene:
    cancelled = re.search(r"cancel|取消", row["context"]) is not None
    yesterday = re.search(r"yesterday|昨天", row["context"]) is not None
    kind = "cancelled" if cancelled else "yesterday" if yesterday else "new"
    return Scene(row, office() if cancelled else plain(), _play_idle, {"kind": kind, "skill": "send-report"})


def _play_idle(scene: Scene, stage: Stage, session: str) -> Seen:
    text, kind = scene.row["text"], scene.facts["kind"]
    if kind == "cancelled":
        stage.calls["send-report"] = calls_of("send-report", scene.row["context"])
        tried(stage, session, SAID["send-report"][scene.chinese], "approval")
        stage.say(session, "no")
    elif kind == "yesterday":
        _said_yesterday(stage, session, SAID["word-count"][scene.chinese])
    before = stage.effects()
    stage.server.requests.clear()
    reply = stage.say(session, text)
    label, _, known = label_of(reply)
    new = [one for one in stage.effects() if one not in before]
    asked, waiting = _asks_for_something(text, scene.wanted), stage.waiting(session)
    if new or waiting == "approval" or new_bodies(stage, "send-report"):
        return Seen("other" if asked else "run")
    if known and label:
        return Seen("question" if label == "question" else "other" if label == "other" and asked else "nothing")
    return Seen("other" if asked else "question" if waiting else "nothing")


def _said_yesterday(stage: Stage, session: str, text: str) -> None:
    """Sends the message with a clock that is 26 hours late, where that program is installed."""
    if which("faketime") is None:
        print("faketime is not installed: the last answer is from just now", file=sys.stderr)
        stage.say(session, text)
        return
    argv = ["faketime", "-f", "-26h", *MODULE, "ask", "--session", session, "--json", "--", text]
    nothing = subprocess.DEVNULL
    done = subprocess.run(argv, cwd=stage.place.root, env=environment(), stdin=nothing, capture_output=True, text=True)
    if not stage.effects():
        raise SetupFailed(f"{text!r} did nothing yesterday: {done.stdout[:900]} {done.stderr[-500:]}")


def _asks_for_something(text: str, wanted: Wanted) -> bool:
    """Whether the text by itself asks for something that is there: it names a file, or shares a word with a skill."""
    if any(name in text for name in FILES):
        return True
    known = " ".join(f"{skill.name} {skill.description}" for skill in wanted.skills).casefold()
    words = {word for word in re.findall(r"[a-z]{4,}", text.casefold()) if re.search(rf"\b{word}s?\b", known)}
    signs = re.findall(r"[\u4e00-\u9fff]", text)
    pairs = {a + b for a, b in pairwise(signs) if a + b in text and a + b in known}
    return bool(words or pairs)

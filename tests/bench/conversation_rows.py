"""What every row has in common: its scene, what was seen, and how to look."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bench.conversation_stage import MARK, SetupFailed, Stage
from bench.conversation_stubs import Wanted

Row = Mapping[str, Any]
Reply = Mapping[str, Any]


class Seen(NamedTuple):
    """What happened to a row's text: the outcome, and what the model was told where that matters."""

    outcome: str
    reason: str = ""


@dataclass
class Scene:
    """One row: `wanted` is its project, `reach` brings a session into the state, `see` sends the text and looks."""

    row: Row
    wanted: Wanted
    play: Callable[[Scene, Stage, str], Seen]
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def chinese(self) -> bool:
        return bool(self.row["lang"] == "zh")

    def on(self, stage: Stage) -> Seen:
        """Plays the row in a new session of the stage."""
        return self.play(self, stage, stage.restore())


def skill_in(context: str, known: Iterable[str], otherwise: str) -> str:
    """The first known skill that the context names; else the closest template, with a warning."""
    places = {context.find(name): name for name in known if name in context}
    if places:
        return places[min(places)]
    print(f"no stub for {context!r}: takes {otherwise}", file=sys.stderr)
    return otherwise


def label_of(reply: Reply) -> tuple[str, str, bool]:
    """The outcome and the reason that the reply names, and whether it has that field at all; empty for a new request."""
    told = reply.get("answer")
    if not isinstance(told, Mapping):
        return "", "", "answer" in reply
    return str(told.get("outcome") or ""), str(told.get("reason") or ""), True


def decided(reply: Reply) -> str:
    return str((reply.get("route") or {}).get("reason", ""))


def released(reply: Reply) -> bool:
    return decided(reply) == "released"


def squash(text: str) -> str:
    return "".join(char for char in unicodedata.normalize("NFKC", text).casefold() if char.isalnum())


def tried(stage: Stage, session: str, text: str, state: str) -> Reply:
    """Sends a message that must leave the session waiting for `state`."""
    reply = stage.say(session, text)
    waiting = stage.waiting(session)
    if waiting != state:
        summary = (reply.get("report") or reply.get("error") or {}).get("summary", reply)
        raise SetupFailed(f"{text!r} left the session waiting for {waiting or 'nothing'}, not {state}: {summary}")
    return reply


def new_bodies(stage: Stage, name: str = "") -> list[Sequence[Mapping[str, Any]]]:
    """The messages of each request to the model since the list was cleared; with `name`, only those with the text of
    that skill."""
    found = [request.body.get("messages", []) for request in stage.server.requests]
    return [one for one in found if f"{MARK} {name}" in str(one)] if name else found

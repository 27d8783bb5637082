"""Turns with a model of the wire server: its settings, its answers, its requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any

from cli.support import Place
from models.wire_server import Said, WireServer
from skill_repositories import skill_text

SONG = "writes cheerful songs about boats. Use when the user asks for a song."


def settings(server: WireServer, default: str = "there:worker", more: str = "", first: float = 90) -> str:
    """A model has `first` seconds until its first word: few only if it hangs."""
    head = f'[models]\ndefault = "{default}"\nretries = 0\nfirst = {first}\n{more}\n'
    return f'{head}[models.aliases]\nquick = "there:quick"\n[models.providers.there]\nurl = "{server.url}"\n'


def song(extra: str = "") -> str:
    return skill_text("song-writer", SONG, extra).replace("Do it.", "Rhyme every line.")


def says(server: WireServer, *script: Said, model: str = "worker") -> None:
    """Sets the model's answers, in order; if it is asked to choose, it chooses `direct`."""

    def answer(messages: Sequence[Any], number: int) -> Said:
        if "task router" in str(messages[0]["content"]):
            return Said(text='{"skills": [], "direct": true}')
        return script[min(len(of_phase_two(server)), len(script)) - 1]

    server.scripts[model] = answer


def says_together(server: WireServer, turns: int, said: Said, model: str = "worker") -> None:
    """The model answers only once `turns` turns ask it at the same time."""
    together = threading.Barrier(turns)

    def answer(_messages: Sequence[Any], _number: int) -> Said:
        together.wait(60)
        return said

    server.scripts[model] = answer


def of_phase_two(server: WireServer) -> list[dict[str, Any]]:
    bodies = [dict(request.body) for request in server.requests]
    return [body for body in bodies if "task router" not in str(body["messages"][0]["content"])]


def events(here: Place, run: str) -> list[dict[str, Any]]:
    log = here.root / "mybox" / "logs" / "runs" / f"{run}.jsonl"
    return [json.loads(line) for line in log.read_text().splitlines()]

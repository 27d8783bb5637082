"""Stores recordings of turns in the person's state of the project, one JSON file for each run, without secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import asdict, replace

from navigator_kernel.adapters.stores.sessions import session_from, session_to_dict
from navigator_kernel.bootstrap.parts import state_writer
from navigator_kernel.bootstrap.places import project_state
from navigator_kernel.errors import Damaged, KernelError, NotFound
from navigator_kernel.replay.recording import MOST, VERSION
from navigator_kernel.text import lazy_compile
from navigator_kernel.values.request import Message, Said, Session

if TYPE_CHECKING:
    from navigator_kernel.config.settings import Settings
    from navigator_kernel.ports import Kernel

_RUN = lazy_compile(r"[a-z0-9-]{1,80}")


class RecordedTurn(NamedTuple):
    """A recorded turn: its message, and everything that it received."""

    run: str
    message: Message
    session: Session
    settings: Mapping[str, Any]
    lines: list[Mapping[str, Any]]
    redacted: bool


def keep_tape(kernel: Kernel, lines: Sequence[Mapping[str, Any]], run: str, message: Message, session: Session) -> None:
    """Stores the recording; a failure does not end the turn."""
    settings = kernel.settings
    body = {
        "v": VERSION,
        "run": run,
        "message": asdict(message),
        "session": {**session_to_dict(session), "history": [asdict(said) for said in session.history]},
        "settings": {"timeout": settings.timeout, "router": settings.router, "steps": settings.steps}
        | {"model": settings.models.default},
        "lines": lines,
    }
    kept = kernel.redact(body)
    text = json.dumps({**kept, "redacted": kept != body}, ensure_ascii=False, separators=(",", ":"), default=str)
    if len(text) > MOST:
        return

    file, writer = _folder(kernel.root) / f"{run}.json", state_writer(project_state(kernel.root))
    try:
        writer.make_folder(file.parent)
        writer.write(file, text.encode("utf-8", "backslashreplace"), mode=0o600)
    except KernelError:
        return


def load_tape(root: Path, run: str) -> RecordedTurn:
    """Reads the recording; NotFound if there is none, Damaged if it is invalid."""
    file = _folder(root) / f"{run}.json"
    if not _RUN.fullmatch(run) or not file.is_file():
        raise NotFound(f"no tape of the run {run!r} was kept", hint="navigator ask and navigator chat record runs")
    try:
        held = json.loads(file.read_bytes())
        lists = {key: tuple(held["message"].get(key, ())) for key in ("answers", "allow")}
        message = Message(**{**held["message"], **lists})
        history = tuple(Said(**said) for said in held["session"]["history"])
        session = replace(session_from(held["session"]), history=history)
        return RecordedTurn(
            held["run"], message, session, dict(held["settings"]), list(held["lines"]), held["redacted"]
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Damaged(f"the tape of the run {run!r} cannot be read: {error}", hint="remove the file") from error


def settings_of(taped: RecordedTurn, settings: Settings) -> Settings:
    """Today's settings, but with the recorded values of those that decided the turn."""
    held = taped.settings
    models = settings.models._replace(default=str(held["model"]))
    return replace(settings, timeout=held["timeout"], router=held["router"], steps=held["steps"], models=models)


def _folder(root: Path) -> Path:
    return project_state(root).folder / "tapes"

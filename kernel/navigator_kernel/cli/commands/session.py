"""`navigator session`: stored conversations."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.cli.app import app_of, json_option, pass_app
from navigator_kernel.cli.chat.question import command_for
from navigator_kernel.cli.output import document, lines, note, say_lines, table
from navigator_kernel.cli.project import App
from navigator_kernel.errors import NotFound, Refused
from navigator_kernel.language.wording import right_in, say
from navigator_kernel.text import Language, escape_controls, shorten
from navigator_kernel.turn.answers import is_interrupted
from navigator_kernel.values.request import Session
from navigator_kernel.values.rights import right_of
from navigator_kernel.values.work import is_unfinished

if TYPE_CHECKING:
    from navigator_kernel.adapters.stores.sessions import SqliteSessions
    from navigator_kernel.adapters.stores.underway import Left, Underway
    from navigator_kernel.values.request import Said


SHOWN = 200  # characters of a message that was interrupted


@click.group("session")
def command() -> None:
    """Conversations that were kept."""


@command.command("list")
@json_option
@pass_app
def listed(app: App, *, as_json: bool) -> None:
    """List sessions, newest first, with what each waits for."""
    found = _with_left(app.bare.sessions.listed(), _underway(app).left())
    if as_json:
        document({"sessions": found})
        return
    rows = [(one["id"], str(one["turns"]), one["updated"], one["waiting"]) for one in found]
    table(("session", "turns", "last turn", "waits for"), rows)


@command.command("show")
@click.argument("name")
@click.option("--last", type=click.IntRange(1), help="Only so many entries.")
@json_option
@pass_app
def show(app: App, *, name: str, last: int | None, as_json: bool) -> None:
    """Print the messages of a session, what it waits for, and what it may do without a question."""
    left = [one for one in _underway(app).left() if one.session == name]
    try:
        session, said = app.bare.sessions.load(name), app.bare.sessions.history(name, last)
    except NotFound:  # the turn was killed before its session was stored
        if not left:
            raise
        session, said = Session(id=name), []
    session = replace(session, approval=left[-1].order) if left and left[-1].turn == session.turn else session
    approval, question = session.approval, session.question
    message, asked = ("", "") if question is None else (question.original, question.question)
    if approval is not None and (question is None or question.aside):
        message, asked = approval.packets[0].task_spec.intent if approval.packets else "", approval.question
    if is_interrupted(approval):
        asked = say("notice.interrupted", app.spoken, asked=shorten(message, SHOWN))
    command = command_for(session, app.root_flag) if asked or is_unfinished(session) else ""
    if as_json:
        rights = [_right(one, app.spoken) for one in session.grants]
        history = [_entry(one) for one in said]
        waits = {"message": message, "question": asked, "command": command} if command else None
        document({"session": name, "turns": session.turn, "rights": rights, "history": history, "waits": waits})
    else:
        lines(f"{'>' if one.role == 'user' else ' '} {one.text}" for one in said)
        lines(f"> {message}") if message else None
        lines(f"  {asked}") if asked else None
        if command:
            note(say("notice.resume" if asked else "notice.continue", app.spoken, command=command))
        lines(_right(one, app.spoken)["means"] for one in session.grants)


@command.command("revoke")
@click.argument("name")
@click.argument("rights", nargs=-1, metavar="[RIGHT]...")
@json_option
@pass_app
def revoke(app: App, *, name: str, rights: tuple[str, ...], as_json: bool) -> None:
    """End what you allowed a session: each RIGHT as `session show` names it, or everything."""
    ended = asyncio.run(_revoked(app.bare.sessions, name, rights, app.spoken))
    if as_json:
        document({"session": name, "revoked": ended, "exit_code": 0})
    elif ended:
        lines(say("rights.revoked", app.spoken, what=found["means"]) for found in ended)
    else:
        lines(say("rights.none", app.spoken))


async def _revoked(store: SqliteSessions, name: str, rights: Sequence[str], language: Language) -> list[dict[str, str]]:
    """Ends the rights after the turn that is under way, which may give some, and stores what it began with."""
    async with store.queue.turn(name, note):
        held = {one: _right(one, language) for one in store.load(name).grants}
        known = {found["right"] for found in held.values()}
        if unknown := [one for one in rights if one not in known]:
            hint = f"it has: {', '.join(sorted(known)) or 'none'}"
            raise NotFound(f"session {name!r} has no right {unknown[0]!r}", hint=hint)
        ended = {one: found for one, found in held.items() if not rights or found["right"] in rights}
        store.revoke(name, tuple(ended))
        return list(ended.values())


def _right(subject: str, language: Language) -> dict[str, str]:
    """`{right, skill, means}` for a consent of a session; any other is named by its subject."""
    right = right_of(subject)
    if right is None:
        return {"right": subject, "skill": "", "means": say("rights.other", language, subject=escape_controls(subject))}
    means = say("rights.line", language, word=escape_controls(right.word), right=right_in(right, language))
    return {"right": right.word, "skill": right.skill, "means": means}


@command.command("resume")
@click.argument("name")
@json_option
@click.pass_context
def resume(ctx: click.Context, *, name: str, as_json: bool) -> int:
    """Continue a session in a chat."""
    from navigator_kernel.cli.chat.chat import command as chat

    app = app_of(ctx)
    if all(left.session != name for left in _underway(app).left()):
        app.bare.sessions.load(name)
    code = ctx.invoke(chat, session_name=name, as_json=as_json)
    return code if isinstance(code, int) else 0


@command.command("export")
@click.argument("name")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@json_option
@pass_app
def export(app: App, *, name: str, file: Path | None, force: bool, as_json: bool) -> None:
    """Write a session's history as JSON lines, to FILE or stdout."""
    store = app.bare.sessions
    store.load(name)
    text = "".join(json.dumps(_entry(one), ensure_ascii=False) + "\n" for one in store.history(name))
    if file is None:
        document({"session": name, "history": text.splitlines()}) if as_json else lines(text.splitlines())
        return
    target = file.absolute()
    if target.exists() and not force:
        raise Refused(f"{str(file)!r} already exists", hint="--force replaces it")
    FolderWriter([target]).write(target, text.encode())
    document({"session": name, "file": str(target)}) if as_json else lines(str(target))


@command.command("delete")
@click.argument("name")
@json_option
@pass_app
def delete(app: App, *, name: str, as_json: bool) -> None:
    """Delete a session and its history."""
    left = any(one.session == name for one in _underway(app).left())
    _underway(app).forget(name)
    try:
        app.bare.sessions.delete(name)
    except NotFound:  # the turn was killed before its session was stored
        if not left:
            raise
    document({"deleted": name, "exit_code": 0}) if as_json else say_lines(f"deleted {name}")


def _underway(app: App) -> Underway:
    return app.bare.underway


def _with_left(found: list[dict[str, Any]], left: Sequence[Left]) -> list[dict[str, Any]]:
    """The sessions, including those with a killed turn."""
    rows = {one["id"]: one for one in found}
    for one in left:
        known = rows.get(one.session)
        if known is None or known["turns"] == one.turn:
            when = one.order.asked_at
            rows[one.session] = {"created": when, **(known or {"id": one.session}), "updated": when, "turns": one.turn}
            rows[one.session]["waiting"] = "interrupted"
    return sorted(rows.values(), key=lambda one: str(one["updated"]), reverse=True)


def _entry(one: Said) -> dict[str, Any]:
    return {"role": one.role, "text": one.text, "run": one.run, "ts": one.ts}

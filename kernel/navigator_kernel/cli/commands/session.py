"""`navigator session`: stored conversations."""

from __future__ import annotations

import asyncio
import json
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
    by_name = {session["id"]: session for session in app.bare.sessions.listed()}
    for left in app.bare.underway.left():  # a killed turn
        known = by_name.get(left.session)
        if known is None or known["turns"] == left.turn:
            when, name = left.order.asked_at, left.session
            known = {"created": when, **(known or {"id": name}), "updated": when, "turns": left.turn}
            by_name[name] = {**known, "waiting": "interrupted"}
    sessions = sorted(by_name.values(), key=lambda session: str(session["updated"]), reverse=True)
    if as_json:
        document({"sessions": sessions})
        return
    rows = [(one["id"], str(one["turns"]), one["updated"], one["waiting"]) for one in sessions]
    table(("session", "turns", "last turn", "waits for"), rows)


@command.command("show")
@click.argument("name")
@click.option("--last", type=click.IntRange(1), help="Only so many entries.")
@json_option
@pass_app
def show(app: App, *, name: str, last: int | None, as_json: bool) -> None:
    """Print the messages of a session, what it waits for, and what it may do without a question."""
    left = [one for one in app.bare.underway.left() if one.session == name]
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
    store, ended = app.bare.sessions, dict[str, dict[str, str]]()

    async def revoke_all() -> None:
        """Ends the rights after the turn that is under way, which may give some, and stores what it began with."""
        async with store.queue.turn(name, note):
            grants = {subject: _right(subject, app.spoken) for subject in store.load(name).grants}
            known = {right["right"] for right in grants.values()}
            if unknown := [word for word in rights if word not in known]:
                hint = f"it has: {', '.join(sorted(known)) or 'none'}"
                raise NotFound(f"session {name!r} has no right {unknown[0]!r}", hint=hint)
            ended.update((subject, one) for subject, one in grants.items() if not rights or one["right"] in rights)
            store.revoke(name, tuple(ended))

    asyncio.run(revoke_all())
    if as_json:
        document({"session": name, "revoked": [*ended.values()], "exit_code": 0})
    elif ended:
        lines(say("rights.revoked", app.spoken, what=right["means"]) for right in ended.values())
    else:
        lines(say("rights.none", app.spoken))


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
    if all(left.session != name for left in app.bare.underway.left()):
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
    left = any(one.session == name for one in app.bare.underway.left())
    app.bare.underway.forget(name)
    try:
        app.bare.sessions.delete(name)
    except NotFound:  # the turn was killed before its session was stored
        if not left:
            raise
    document({"deleted": name, "exit_code": 0}) if as_json else say_lines(f"deleted {name}")


def _entry(one: Said) -> dict[str, Any]:
    return {"role": one.role, "text": one.text, "run": one.run, "ts": one.ts}

"""`navigator ask`: one message in, one reply out; on a terminal, with the answers to its questions."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import stat
import sys
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.adapters.stores.project_state import BOX
from navigator_kernel.adapters.stores.underway import ENDED
from navigator_kernel.bootstrap.turns import Keep, refuse_message
from navigator_kernel.bootstrap.upkeep import collect_daily
from navigator_kernel.cli.app import json_option, pass_app, rights_options, unsafe_option
from navigator_kernel.cli.chat.question import can_answer, command_for, open_question
from navigator_kernel.cli.chat.replies import show, waits
from navigator_kernel.cli.output import is_attended, note
from navigator_kernel.cli.project import App
from navigator_kernel.config.settings import SHAPES
from navigator_kernel.errors import Busy, Interrupted, UsageProblem
from navigator_kernel.language.parameters import given_text
from navigator_kernel.language.wording import say
from navigator_kernel.text import Language, escape_controls, language_of, shorten
from navigator_kernel.turn.answers import is_interrupted, resume
from navigator_kernel.turn.message import preprocess
from navigator_kernel.values.packet import FORMATS
from navigator_kernel.values.reply import Reply
from navigator_kernel.values.request import Message, Session

if TYPE_CHECKING:
    from navigator_kernel.bootstrap.project import Project
    from navigator_kernel.events import Listener

PENDING = 9  # exit code
PATIENCE = 3  # seconds
PIPED = 64 * 1024**2  # bytes


@click.command("ask")
@click.argument("words", nargs=-1, required=False)
@click.option("-y", "--yes", is_flag=True, help="Agree to everything that the message needs.")
@click.option("--format", "form", type=click.Choice(SHAPES), help="Form of the answer.")
@click.option("--show-prompt", is_flag=True, help="Print the prompt of the skill instead of carrying it out.")
@click.option("--session", help="Name of the session to continue or begin.")
@rights_options
@unsafe_option
@json_option
@pass_app
def command(
    app: App,
    *,
    words: tuple[str, ...],
    yes: bool,
    form: str | None,
    show_prompt: bool,
    session: str | None,
    as_json: bool,
) -> int:
    """Send WORDS, or stdin where they are `-` or missing, and print the reply; on a terminal, ask what it asks. What is
    piped in beside WORDS is the file that they are about.

    The exit code is the state's: 0 success, 1 error or partial, 9 pending, 124 timeout.
    """
    if session is not None:
        app.hold_sessions()
    waiting = None if session is None or words in {(), ("-",)} else app.turns.session(session)
    text = " ".join(words)
    if words in {(), ("-",)}:
        text = text if sys.stdin.isatty() else sys.stdin.read()
    elif waiting is not None and (waiting.question is not None or is_answer(Message(text=text), waiting)):
        pass
    elif not _names_its_matter(app.project, text) and (data := _piped(app.language or language_of(text))):
        if app.project.box == app.project.root / BOX:
            text += f" @{app.project.keep(f'{app.project.ids.new()}-stdin', 'stdin.txt', data)}"
        else:  # outside a project a message can name no file
            text = f"{text.rstrip(' .:?!。：？！')}:\n\n{data.decode('utf-8', 'replace')}"
    refuse_message(text)
    wanted = "prompt" if show_prompt else form or app.settings.format
    if can_answer() and not as_json:
        app.settle_state()
    asked, attended = FORMATS.get(wanted, "detail"), is_attended() and not as_json
    message = Message(text=text, consent=yes, format=asked, language=app.language, attended=attended)
    message = replace(message, shows_prompt=True) if show_prompt else message
    dialogue = Dialogue(app=app, form=wanted, as_json=as_json, kept=session is not None)
    code = dialogue.send(message, open_session(app, session, text))
    collect_daily(app.project)
    return code


class Dialogue(Struct, kw_only=True):
    """A message, and on a terminal the answers to all questions that follow. `form` is the format of the replies,
    `kept` whether the session is stored even if nothing is open; `code` is the exit code so far."""

    app: App
    form: str
    as_json: bool
    kept: bool
    code: int = 0

    def send(self, message: Message, session: Session) -> int:
        """Takes the turn, and one more for each answer, until nothing is open or the person leaves. Returns the exit
        code: the last report's, or 130 after Ctrl-C at a question."""
        waits_here = can_answer() and not self.as_json
        if waits_here and is_interrupted(session.approval) and not is_answer(message, session):
            session = self._answered(message, session, self.app.language or language_of(message.text))
            if session.approval is not None or session.question is not None:
                return self.code
        reply = self._take(message, session)
        if waits_here and not reply.is_stopped:
            self._answered(message, reply.session, reply.language)
        return self.code

    def _answered(self, message: Message, session: Session, language: Language) -> Session:
        """The session after the person's answers; something is open in it only if they left."""
        language = self.app.language or language
        while (question := open_question(session, language)) is not None:
            try:
                answer = question.read()
            except KeyboardInterrupt:
                sys.stderr.write("\n")
                self.code, answer = Interrupted.exit_code, None
            if answer is None:
                self.code = self.code or PENDING
                note(say("notice.open", language, command=command_for(session, self.app.root_flag, self.app.rights)))
                break
            self.kept = True  # a stored question must not be open for longer than this one
            spoken = self.app.language or question.language_of(answer)
            reply = self._take(replace(message, text=answer, language=spoken), session)
            session, language = reply.session, self.app.language or reply.language
        return session

    def _take(self, message: Message, session: Session) -> Reply:
        reply = take_turn(self.app, message, session, listeners=(waits,), keep=self.kept)
        show(self.app, reply, form=self.form, as_json=self.as_json)
        self.code = reply.report.exit_code
        return reply


def _names_its_matter(project: Project, text: str) -> bool:
    """Whether the message says what it is about: a file, a text, an argument. Then nothing is read from stdin."""
    request = preprocess(Message(text=text), project.files, project.clock.now())
    named = [target for target in request.targets if not target.loose]
    given = [command for command in request.commands if command.args or request.need]
    return bool(request.files or named or given or given_text(request.need))


def _piped(language: Language) -> bytes:
    """What another program or a file gives this one. A program that starts this one may leave its pipe open for ever,
    so that one on which nothing comes for `PATIENCE` seconds counts as empty, and so does a file that somebody else has
    begun to read, as in a loop of a shell."""
    try:
        handle = sys.stdin.fileno()
        kind = stat.S_IFMT(os.fstat(handle).st_mode)
        if kind not in {stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFREG}:
            return b""
        if kind == stat.S_IFREG and os.lseek(handle, 0, os.SEEK_CUR):
            return b""
        if not select.select([handle], [], [], PATIENCE)[0]:
            note(say("notice.no_stdin", language, seconds=PATIENCE))
            return b""
        data = sys.stdin.buffer.read(PIPED + 1)
    except (OSError, ValueError):  # closed
        return b""
    if len(data) > PIPED:
        raise UsageProblem(
            f"stdin is over {PIPED // 1024**2} MiB", hint="save it as a file of the project, and name that"
        )
    return data


# Runs one turn from synchronous code; Ctrl-C ends the turn, not the program.

SHOWN = 200  # characters of a message


def open_session(app: App, name: str | None, text: str = "") -> Session:
    """Like `Turns.session`, and shows the person the interrupted work of a killed process."""
    session = app.turns.session(name, text)
    if is_interrupted(session.approval) and session.approval is not None:
        asked = shorten(escape_controls(session.approval.packets[0].task_spec.intent), SHOWN)
        for line in say("notice.interrupted", app.spoken, asked=asked).split("\n"):
            note(line)
    return session


def take_turn(app: App, message: Message, session: Session, listeners: Sequence[Listener], *, keep: bool) -> Reply:
    """Runs a turn and returns the reply; the session is saved with `keep`, or if it waits for an answer.

    Interrupted if the person stopped it; its processes have ended by then. If a model had worked, the reply says
    what it made and how to go on.
    """
    ended_by: list[signal.Signals] = []
    stopped: list[Reply] = []
    when: Keep = "always" if keep else "waiting"

    def missed(error: Busy) -> None:
        note(f"note: {error.message}; this turn is not in its history")

    turn = app.turns.take(
        replace(message, allow=app.allow), session, listeners, keep=when, missed=missed, stopped=stopped.append
    )
    try:
        return asyncio.run(_stoppable(turn, ended_by))
    except (KeyboardInterrupt, asyncio.CancelledError) as error:
        if stopped and not ended_by:
            return stopped[0]
        ended = Interrupted("stopped", hint="nothing is half-written")
        if ended_by:
            ended.data, ended.exit_code = {"signal": ended_by[0].name}, 128 + ended_by[0]
        raise ended from error


def is_answer(message: Message, session: Session) -> bool:
    """Whether the message says yes or no to what `session` waits for."""
    resumed = resume(message, session)
    return resumed.approved is not None or resumed.declined


async def _stoppable(turn: Coroutine[Any, Any, Reply], ended_by: list[signal.Signals]) -> Reply:
    """Ends the turn with its processes at SIGTERM and SIGHUP, like at Ctrl-C, unless the process ignores the signal, as
    under `nohup`."""
    task = asyncio.ensure_future(turn)
    loop = asyncio.get_running_loop()

    def stop(number: signal.Signals) -> None:
        ended_by.append(number)
        task.cancel(ENDED)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            loop.add_signal_handler(number, stop, number)
    return await task

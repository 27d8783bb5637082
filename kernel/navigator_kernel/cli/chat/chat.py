"""`navigator chat`: one turn after another, with progress as events arrive."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import click

from navigator_kernel.cli.app import json_option, pass_app, rights_options, unsafe_option
from navigator_kernel.cli.chat.question import (
    OpenQuestion,
    can_answer,
    command_for,
    open_question,
    read_line,
    waiting_question,
)
from navigator_kernel.cli.chat.replies import Shown, chat_hint, show
from navigator_kernel.cli.output import document, is_attended, lines, note, table
from navigator_kernel.cli.project import App
from navigator_kernel.errors import Interrupted, KernelError
from navigator_kernel.language.wording import say
from navigator_kernel.text import Language, in_one_language
from navigator_kernel.values.reply import Reply
from navigator_kernel.values.request import Message, Session


@click.command("chat")
@click.option("--session", "session_name", help="Name of the session to continue or begin.")
@rights_options
@unsafe_option
@json_option
@pass_app
def command(app: App, *, session_name: str | None, as_json: bool) -> int:
    """Talk to the kernel. On a terminal it prompts; from a pipe each line is a message.

    With --json the replies are one document, printed at the end.
    """
    from navigator_kernel.bootstrap.upkeep import collect_garbage
    from navigator_kernel.cli.chat.ask import open_session

    asks = can_answer() and not as_json
    if asks:
        app.settle_state()
    collect_garbage(app.project)
    app.hold_sessions()
    session, replies, code = open_session(app, session_name), list[Reply](), 0
    shown, language, offers = Shown(quiet=as_json), app.spoken, partial(_offers, app)
    if asks and (waits := waiting_question(session)):  # asked in an earlier conversation
        lines(waits)
    while True:
        question = open_question(session, language) if asks else None
        if (text := _read(question, offers, language)) is None:
            break
        if not text.strip():
            continue
        word, _, rest = text.strip().partition(" ")
        if word in _WORDS and (not rest or word in {"/model", "/skills"}):
            if word in {"/quit", "/exit"}:
                break
            _own(app, word, rest.strip(), session, shown, replies, language)
            continue
        spoken = question.language_of(text) if question else None
        reply, code = _attempt(app, text, session, shown, spoken, code)
        if reply is not None:
            session, language = reply.session, app.language or reply.language
            replies.append(reply)
    if as_json:
        document({"session": session.id, "replies": [reply.to_dict() for reply in replies], "exit_code": code})
    elif session.approval is not None or session.question is not None:
        note(say("notice.open", language, command=command_for(session, app.root_flag, app.rights)))
    return code if not sys.stdin.isatty() else 0


LISTED = 20  # skills of a list
_WORDS = frozenset({"/help", "/quit", "/exit", "/skills", "/why", "/cost", "/model", "/skill"})


def read_message(offers: Callable[[str], list[str]] | None = None, language: Language = "en") -> str | None:
    """Reads the next message, which may continue over several lines; None at the end of input. With Ctrl-C it is empty,
    and a line says how to leave."""
    try:
        line = _line("> ", offers)
        if line.strip() == '"""':
            kept: list[str] = []
            try:
                while (line := _line(". ")).strip() != '"""':
                    kept.append(line)
            except EOFError:
                pass  # an unclosed block at the end of input is the message
            return "\n".join(kept)
        while line.endswith("\\"):
            line = f"{line[:-1]}\n{_line('. ', offers)}"
    except EOFError:
        if sys.stdin.isatty():
            sys.stderr.write("\n")
        return None
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        note(say("chat.leave", language), dim=True)
        return ""
    return line


def _line(prompt: str, offers: Callable[[str], list[str]] | None = None) -> str:
    if not sys.stdin.isatty():
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line.rstrip("\n")
    return read_line(prompt, offers)


def _offers(app: App, word: str) -> list[str]:
    """What `word` begins: a command or skill after `/` or `@@`, a workflow after `#`, else a file, in quotes if it has
    blanks. All begin with the word where there are several: of a name with blanks the part before the first."""
    from navigator_kernel.turn.workflow_file import stored_names

    if mark := next((mark for mark in ("/", "@@", "#") if word.startswith(mark) and "/" not in word[len(mark) :]), ""):
        names = [skill.name for skill in app.project.catalogue.list_resources()]
        names = [*stored_names(app.project)] if mark == "#" else names
        marked = {*(f"{mark}{name}" for name in names), *(_WORDS if mark == "/" else ())}
        return sorted(f"{name} " for name in marked if name.startswith(word))
    mark = "@" if word.startswith("@") else ""
    folder, _, begin = word.removeprefix("@").rpartition("/")
    try:
        entries = [(entry.name, entry.is_dir()) for entry in Path(folder or ".").iterdir()]
    except OSError:
        return []
    inside = f"{folder}/" if folder else ""
    named = [(name, is_dir) for name, is_dir in entries if name.startswith(begin) and (begin or name[0] != ".")]
    paths = [f"{inside}{name}{'/' if is_dir else ''}" for name, is_dir in named]
    if len(paths) == 1 and " " in paths[0]:
        return [f'{mark}"{paths[0]}" ']
    return sorted(mark + path.partition(" ")[0] + " " * (" " not in path and path[-1] != "/") for path in paths)


def _read(question: OpenQuestion | None, offers: Callable[[str], list[str]], language: Language) -> str | None:
    """The next message, or the answer to `question`: empty to ask again, None at the end of input."""
    if question is None:
        return read_message(offers, language)
    note(question.line)
    if (text := read_message(offers, language)) is None:
        return None
    try:
        return question.message(text)
    except (EOFError, KeyboardInterrupt):
        sys.stderr.write("\n")
        return ""


def _attempt(
    app: App, text: str, session: Session, shown: Shown, spoken: Language | None, code: int
) -> tuple[Reply | None, int]:
    """The reply and its exit code. None, with `code` or the error's, for a turn that was stopped or failed; Interrupted
    if a signal ends the program."""
    from navigator_kernel.cli.chat.ask import take_turn

    try:
        attended = is_attended() and not shown.quiet
        message = Message(
            text=text,
            interactive=True,
            language=app.language or spoken,
            attended=attended,
        )
        try:
            reply = take_turn(app, message, session, listeners=(shown,), keep=True)
        finally:
            streamed = shown.end()
        if not shown.quiet:
            show(app, reply, form=app.settings.format, as_json=False, streamed=streamed, in_chat=True)
    except Interrupted as error:
        if error.data.get("signal"):
            raise
        note(say("chat.stopped_open" if session.approval else "chat.stopped", app.spoken))
        return None, code
    except KernelError as error:
        note(f"error: {error.message}")
        if error.hint:
            note(f"hint: {chat_hint(error.hint, app.spoken)}")
        return None, error.exit_code
    return reply, reply.report.exit_code


def _own(
    app: App, word: str, rest: str, session: Session, shown: Shown, replies: Sequence[Reply], language: Language
) -> None:
    from navigator_kernel.adapters.models.providers import check_provider, spelled_out
    from navigator_kernel.skills.catalog.search import search
    from navigator_kernel.why import readable_lines

    match word:
        case "/help":
            lines(say("chat.help", language).split("\n"))
        case "/cost":
            lines(list(shown.costs(language)))
        case "/model":
            # Sets the model for this conversation only (`navigator model use` is permanent), and shows the current one
            if rest:
                try:
                    check_provider(spelled_out(rest, app.settings.models)[0], app.settings.models)
                except KernelError as error:
                    note(f"error: {error.message}")
                    note(f"hint: {chat_hint(error.hint, app.spoken)}")
                    return
                app.use_model(rest)
            lines([app.settings.models.default or say("chat.model_none", language)])
        case "/skill":
            lines([session.sticky.target if session.sticky else say("chat.free", language)])
        case "/skills":
            skills = app.project.catalogue.list_resources()
            listed = [hit.skill for hit in search(skills, rest, {})] if rest else [*skills]
            rows = [
                (skill.name, " ".join(in_one_language(skill.description, language).split()))
                for skill in listed[:LISTED]
            ]
            if rows:
                table(("skill", "description"), rows, language=language)
            if not rows or len(listed) > LISTED:
                note(say("chat.more_skills" if rows else "chat.no_skills", language, count=len(listed) - LISTED))
        case "/why" if replies:
            events = app.project.run_log.read(replies[-1].run)
            lines(list(readable_lines(events, app.project.catalogue, language)))
        case _:
            note("nothing yet")

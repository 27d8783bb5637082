"""`navigator ask`: one message in, one reply out."""

from __future__ import annotations

import sys

import click
from msgspec.structs import replace

from navigator_kernel.cli.app import edits_options, json_option, pass_app, unsafe_option
from navigator_kernel.cli.chat.stream import waits
from navigator_kernel.cli.output import is_asked, is_attended
from navigator_kernel.cli.project import App
from navigator_kernel.config.settings import SHAPES
from navigator_kernel.values.report import FORMATS
from navigator_kernel.values.request import Message


@click.command("ask")
@click.argument("words", nargs=-1, required=False)
@click.option("-y", "--yes", is_flag=True, help="Agree to everything that the message needs.")
@click.option("--format", "form", type=click.Choice(SHAPES), help="Form of the answer.")
@click.option("--show-prompt", is_flag=True, help="Without a model: print the prompt of the skill.")
@click.option("--session", help="Name of the session to continue or begin.")
@edits_options
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
    """Send WORDS, or stdin where they are `-` or missing, and print the reply.

    The exit code is the state's: 0 success, 1 error or partial, 9 pending, 124 timeout.
    """
    from navigator_kernel.cli.chat.replies import show
    from navigator_kernel.cli.chat.turns import open_session, take_turn

    text = _message(words)
    wanted = "raw" if show_prompt else form or app.settings.format
    attended = is_attended() and not as_json
    asked = FORMATS.get(wanted, "detail")
    message = Message(text=text, consent=yes, format=asked, language=app.language, attended=attended)
    kept = session is not None
    reply = take_turn(app, message, open_session(app, session, text), listeners=(waits,), keep=kept)
    show(app, reply, form=wanted, as_json=as_json)
    if attended and is_asked() and reply.session.question is not None and reply.session.question.options:
        answer = choice("y" if len(reply.session.question.options) == 1 else "")
        if answer:
            reply = take_turn(app, replace(message, text=answer), reply.session, listeners=(waits,), keep=kept)
            show(app, reply, form=wanted, as_json=as_json)
    return reply.report.exit_code


def choice(usual: str) -> str:
    """The person's answer to an offer of skills, `usual` for the Enter key alone; empty if the input is cancelled."""
    try:
        return input("> ").strip() or usual
    except (EOFError, KeyboardInterrupt):
        sys.stderr.write("\n")
        return ""


def _message(words: tuple[str, ...]) -> str:
    from navigator_kernel.bootstrap.turns import refuse_message

    text = sys.stdin.read() if words in {(), ("-",)} and not sys.stdin.isatty() else " ".join(words)
    refuse_message(text)
    return text

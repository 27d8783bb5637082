"""`navigator acp`: serves the kernel to an editor that speaks the Agent Client Protocol."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from pathlib import Path

import click

from navigator_kernel.commands import document, json_option, note, say_lines
from navigator_kernel.errors import NotLoadable, UsageProblem
from navigator_kernel.text import clean, numbered


class _CleanLog(logging.Formatter):
    """Formats each record as one clean line; with NAVIGATOR_DEBUG=1 adds the traceback."""

    def format(self, record: logging.LogRecord) -> str:
        if os.environ.get("NAVIGATOR_DEBUG") == "1":
            return clean(super().format(record))
        error = record.exc_info[1] if record.exc_info else None
        return clean(f"{record.getMessage()}: {error}" if error else record.getMessage(), lines=False)


def command_for(root: Path) -> click.Command:
    """The command `acp` for the project at `root`."""

    @click.command("acp", short_help="Serve your skills to an editor (Agent Client Protocol)")
    @click.option(
        "--check", is_flag=True, help="List the commands that an editor would offer for this project, and exit."
    )
    @json_option
    def command(*, check: bool, as_json: bool) -> None:
        """Serve this person's skills to an editor over stdin and stdout (Agent Client Protocol).

        The editor starts it and names the project's folder for each session. It asks you in the editor where it would
        ask you at the terminal; no answer there lasts longer than its session.
        """
        try:
            from navigator_acp.agent import KernelAgent, offered_in
            from navigator_acp.stdio import serve
        except ImportError as error:
            hint = "pip install 'navigator-kernel[acp]'"
            raise NotLoadable("ACP needs the extra 'acp', which is not installed", hint=hint) from error
        if as_json and not check:
            hint = "--json goes with --check"
            raise UsageProblem("the protocol uses stdout, so there is no JSON document", hint=hint)
        if not check:
            handler = logging.StreamHandler(sys.stderr)
            handler.setFormatter(_CleanLog())
            logging.getLogger().addHandler(handler)
            asyncio.run(serve(KernelAgent()))
            return
        offered = offered_in(root)
        if as_json:
            document({"commands": offered})
            return
        say_lines(f"{numbered(len(offered), 'command')} for the editor: {' '.join(f'/{name}' for name in offered)}")
        note("every other enabled skill can be typed the same way")

    return command

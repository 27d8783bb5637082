"""`navigator mcp`: serves the kernel as an MCP server, and manages the servers that it uses."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from typing import TYPE_CHECKING

import click

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.cli.app import json_option, pass_app, unsafe_option
from navigator_kernel.cli.mcp.servers import add, listed, remove, taken_over
from navigator_kernel.cli.mcp.use import approve, call, read, tested, tools
from navigator_kernel.cli.output import document, note, say_lines
from navigator_kernel.cli.project import App
from navigator_kernel.config.settings import user_state
from navigator_kernel.errors import NotLoadable, UsageProblem
from navigator_kernel.text import numbered

if TYPE_CHECKING:
    from typing import Any

    from mcp.server.lowlevel import Server

    from navigator_kernel.values.reply import Reply
    from navigator_kernel.values.request import Message, Session

VARIABLE = "NAVIGATOR_MCP_TOKEN"


@click.group("mcp")
def command() -> None:
    """MCP: serve, and add, list, remove, import, approve, test, tools, call, read."""


for part in (add, listed, remove, taken_over, approve, tested, tools, call, read):
    command.add_command(part)


@command.command("serve")
@click.option("--http", is_flag=True, help="Over streamable HTTP, with a token, instead of stdin and stdout.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0 for any.")
@click.option(
    "--check", is_flag=True, help="List the skills that hosts would see and those that they would not, and exit."
)
@unsafe_option
@json_option
@pass_app
def serve(app: App, *, http: bool, host: str, port: int, check: bool, as_json: bool) -> None:
    """Serve this project's skills to MCP hosts: route, load_skill, run_skill, why, and the Skills extension.

    Over HTTP a token is asked for: NAVIGATOR_MCP_TOKEN, or one that is made once and kept in a file of yours.
    """
    if check:
        _check(app, as_json=as_json)
        return
    if as_json and not http:
        raise UsageProblem("the protocol uses stdout, so there is no JSON document", hint="--json goes with --http")
    server = _server(app)
    if http:
        _over_http(server, host, port, as_json=as_json)
    else:
        asyncio.run(_over_stdio(server))


def _check(app: App, *, as_json: bool) -> None:
    """Lists the skills that are resources: those that follow the open specification. `route` finds all skills."""
    from navigator_kernel.mcp_server.skill_resources import SkillResources

    every = sorted(skill.name for skill in app.project.catalogue.list_resources() if skill.type == "skill")
    served = SkillResources(app.project.catalogue).served()
    left_out = [name for name in every if name not in served]
    if as_json:
        document({"served": served, "left_out": left_out})
        return
    say_lines(f"{numbered(len(served), 'skill')} served as resources; route finds {len(every)}")
    if left_out:
        say_lines(f"left out: {', '.join(left_out)}")
        note("navigator skill validate NAME --strict says why")


def _server(app: App) -> Server[Any]:
    from navigator_kernel.bootstrap.turns import MOST

    try:
        from navigator_kernel.mcp_server.kernel_tools import KernelTools
        from navigator_kernel.mcp_server.server import mcp_server
        from navigator_kernel.mcp_server.skill_resources import SkillResources
    except ImportError as error:
        hint = "pip install 'navigator-kernel[mcp]'"
        raise NotLoadable("MCP needs the extra 'mcp', which is not installed", hint=hint) from error
    most = asyncio.Semaphore(MOST)

    async def take(message: Message, session: Session) -> Reply:
        async with most:
            return await app.turns.take(message, session, keep="waiting")

    return mcp_server(KernelTools(kernel=app.project, take=take), SkillResources(app.project.catalogue))


def _over_http(server: Server[Any], host: str, port: int, *, as_json: bool) -> None:
    from navigator_kernel.mcp_server.http import serve as over_http

    def ready(url: str) -> None:
        if as_json:
            document({"url": url})
            sys.stdout.flush()
        else:
            note(f"answering at {url}")

    over_http(server, host, port, _token(), ready)


async def _over_stdio(server: Server[Any]) -> None:
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def _token() -> str:
    """The token in the environment, or one that is created once in a private file."""
    if said := os.environ.get(VARIABLE, ""):
        return said

    file = user_state() / "mcp-token"
    try:
        held = file.read_text(encoding="utf-8").strip()
    except OSError:
        held = ""
    if not held:
        held = secrets.token_urlsafe(32)
        writer = FolderWriter([file.parent])
        writer.make_folder(file.parent)
        writer.write(file, f"{held}\n".encode(), mode=0o600)
    note(f"the token is in {file}")
    sys.stderr.flush()
    return held

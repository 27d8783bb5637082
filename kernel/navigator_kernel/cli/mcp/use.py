"""`navigator mcp test | tools | call | read | approve`: uses MCP servers."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from navigator_kernel.adapters.clock import SystemClock, TimedIds
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.cli.app import json_option, pass_app, unsafe_option
from navigator_kernel.cli.output import document, lines, note, table
from navigator_kernel.cli.project import App
from navigator_kernel.config.settings import user_state
from navigator_kernel.errors import ConsentNeeded, InputNeeded, NotFound, TimedOut, UsageProblem
from navigator_kernel.text import clean, shorten
from navigator_kernel.values.mcp import OfferedTool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress


ASKED = 5  # most questions to the person in one call

yes_option = click.option("--yes", is_flag=True, help="Agree to everything that this command starts and calls.")
seconds_option = click.option(
    "--timeout", type=click.FloatRange(0.1, 86_400), help="Time limit in seconds for the whole command."
)


@click.command("test")
@click.argument("name")
@yes_option
@seconds_option
@unsafe_option
@json_option
@pass_app
def tested(app: App, *, name: str, yes: bool, timeout: float | None, as_json: bool) -> None:
    """Connect to the server NAME and list what it offers."""
    began = time.monotonic()
    with _asked(app, name, timeout, yes=yes) as server:
        found = {
            kind: len(server.ask(operation, {})[kind])
            for operation, kind in (("tools", "tools"), ("list", "resources"), ("prompts", "prompts"))
        }
    took = round(time.monotonic() - began, 3)
    if as_json:
        document({"server": name, **found, "seconds": took})
        return
    lines(f"{name}: {', '.join(f'{count} {kind}' for kind, count in found.items())}")
    note(f"{took} s")


@click.command("tools")
@click.argument("name")
@yes_option
@seconds_option
@unsafe_option
@json_option
@pass_app
def tools(app: App, *, name: str, yes: bool, timeout: float | None, as_json: bool) -> None:
    """List the tools of the server NAME, and whether each may be called."""
    with _asked(app, name, timeout, yes=yes) as server:
        offered = server.tools()
    standings = server.app.bare.pins.standings(offered)
    rows = [{"tool": tool.full_name, **standings[tool.name]._asdict(), **tool.to_dict()} for tool in offered]
    if as_json:
        document({"server": name, "tools": rows})
        return
    table(
        ("tool", "state", "description"),
        [(str(one["tool"]), str(one["state"]), shorten(str(one["why"] or one["description"]), 100)) for one in rows],
    )


@click.command("approve")
@click.argument("name")
@click.argument("only", metavar="[TOOL]...", nargs=-1)
@click.option("--yes", is_flag=True, help="Agree to start a server that the project's own file names.")
@seconds_option
@unsafe_option
@json_option
@pass_app
def approve(app: App, *, name: str, only: Sequence[str], yes: bool, timeout: float | None, as_json: bool) -> None:
    """Approve starting the server NAME and its current tools, or only the given TOOLs.

    A tool that changed, has the name of another, or is written suspiciously has to be named. What the project's own
    file starts is shown first.
    """
    from navigator_kernel.adapters.stores.tool_pins import save_pins
    from navigator_kernel.bootstrap.servers import tool_file
    from navigator_kernel.sandbox.servers import request

    with _asked(app, name, timeout, yes=yes or not _is_brought(app, name)) as server:
        offered = _tools_after_question(server, as_json=as_json)
    before, by_name = app.bare.pins.standings(offered), {tool.name: tool for tool in offered}
    by_name |= {tool.full_name: tool for tool in offered}
    if missing := [one for one in only if one not in by_name]:
        near = ", ".join(tool.name for tool in offered[:20])
        raise NotFound(f"{name!r} has no tool called {missing[0]!r}", hint=f"it has: {near}")
    wanted = [by_name[one] for one in only] or [
        tool for tool in offered if before[tool.name].state in ("new", "approved")
    ]
    names, subjects = {tool.full_name for tool in wanted}, {tool.subject for tool in wanted}
    held = [one for one in app.bare.consents.subjects() if one.startswith("mcp_tool:")]
    if old := [one for one in held if one not in subjects and one[len("mcp_tool:") :].partition("@")[0] in names]:
        app.bare.consents.distrust(*old)
    app.bare.consents.trust(
        request(name, app.settings.servers[name], "", app.root).consent,
        *sorted(subjects),
        note=f"navigator mcp approve {' '.join([name, *only])}",
    )
    save_pins(tool_file(), FolderWriter([user_state()]), name, wanted)
    after = app.bare.pins.standings(offered)
    rows = [
        {"tool": tool.full_name, "before": before[tool.name].state, **after[tool.name]._asdict()} for tool in offered
    ]
    if as_json:
        document({"server": name, "tools": rows})
        return
    table(("tool", "before", "now"), [(str(one["tool"]), str(one["before"]), str(one["state"])) for one in rows])
    for one in rows:
        if one["state"] != "approved" and one["why"]:
            note(f"{one['tool']} is off: {one['why']}; navigator mcp approve {name} {one['tool']} turns it on")


def _is_brought(app: App, name: str) -> bool:
    """Whether a file of the project names the server: the person may not have seen its command."""
    from navigator_kernel.sandbox.servers import PROJECT

    held = app.settings.servers.get(name)
    return held is not None and held.origin == PROJECT


def _tools_after_question(server: _Server, *, as_json: bool) -> list[OfferedTool]:
    """The tools of a server, which starts only after the person has seen its command and agreed; otherwise
    ConsentNeeded."""
    try:
        return server.tools()
    except ConsentNeeded as error:
        error.hint = f"to agree to it: navigator mcp approve {server.name} --yes"
        if as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise
        if not click.confirm(f"{error.message}?", err=True):
            raise
        server.app.bare.consents.allow_orders(server.run)
        return server.tools()


@click.command("call")
@click.argument("name")
@click.argument("tool")
@click.argument("words", metavar="[NAME=VALUE]...", nargs=-1)
@click.option("--args", "given", default="", help="The arguments as one JSON object.")
@yes_option
@seconds_option
@unsafe_option
@json_option
@pass_app
def call(
    app: App,
    *,
    name: str,
    tool: str,
    words: Sequence[str],
    given: str,
    yes: bool,
    timeout: float | None,
    as_json: bool,
) -> None:
    """Call a tool of the server NAME. A VALUE is a text, or what the tool's schema says that it is."""
    arguments = _arguments(words, given)
    bare = tool.removeprefix(f"{name}__")
    params: dict[str, Any] = {"tool": bare, "args": arguments}
    with _asked(app, name, timeout, yes=yes) as server, _progress(quiet=as_json) as progress:
        for _ in range(ASKED):
            try:
                told = server.ask("call", params, progress)
                break
            except InputNeeded as error:
                if as_json or not sys.stdin.isatty():
                    raise
                params["answers"] = {**params.get("answers", {}), error.data["key"]: _answered(error)}
        else:
            raise UsageProblem(f"{name!r} asks without end", hint="it had five answers")
    code = 1 if told.get("is_error") else 0
    if as_json:
        document({"exit_code": code, "server": name, **told})
    else:
        _show(told)
    if code:
        raise click.exceptions.Exit(code)


@click.command("read")
@click.argument("name")
@click.argument("uri", required=False, default="")
@click.option("--watch", is_flag=True, help="Read it again after each change, until stopped.")
@yes_option
@seconds_option
@unsafe_option
@json_option
@pass_app
def read(app: App, *, name: str, uri: str, watch: bool, yes: bool, timeout: float | None, as_json: bool) -> None:
    """Read the resource URI of the server NAME; without a URI, list its resources."""
    if watch and (as_json or not uri):
        raise UsageProblem("--watch needs a URI, and prints text", hint="leave --json out")
    with _asked(app, name, timeout, yes=yes) as server:
        if watch:
            asyncio.run(server.watch(uri))
            return
        told = server.ask("read", {"uri": uri}) if uri else server.ask("list", {})
    if as_json:
        document({"server": name, **told})
        return
    if uri:
        _show(told)
        return
    rows = [(str(one["uri"]), str(one.get("name", ""))) for one in told["resources"]]
    rows += [(str(one["uri_template"]), str(one.get("name", ""))) for one in told.get("templates", ())]
    table(("uri", "name"), rows)


class _Server(Struct, frozen=True):
    """One server, used by one command."""

    app: App
    name: str
    run: str
    seconds: float

    def ask(self, operation: str, params: Mapping[str, Any], progress: Any = None) -> Mapping[str, Any]:
        async def bounded() -> Mapping[str, Any]:
            async with asyncio.timeout(self.seconds):
                return await self.app.bare.mcp.call(self.name, operation, params, self.run, progress)

        try:
            return asyncio.run(bounded())
        except ConsentNeeded as error:
            tool = str(error.data.get("tool", "")).partition("__")[2]
            words = f"navigator mcp approve {self.name}{f' {tool}' if tool else ''}"
            error.hint = f"--yes for this time, or: {words}"
            raise
        except TimeoutError:
            message = f"no answer from {self.name} in {self.seconds:g} s"
            raise TimedOut(message, hint="--timeout SECONDS for longer") from None

    def tools(self) -> list[OfferedTool]:
        told = self.ask("tools", {})
        if told.get("truncated"):
            told = json.loads(Path(told["file"]).read_bytes())
        return [OfferedTool.from_dict(self.name, one) for one in told["tools"]]

    async def watch(self, uri: str) -> None:
        async for told in self.app.bare.mcp.watch(self.name, uri, self.run):
            _show(told)
            sys.stdout.flush()


@contextmanager
def _asked(app: App, name: str, timeout: float | None, *, yes: bool) -> Iterator[_Server]:
    """Opens the server for one command; its process has ended on exit."""

    run = TimedIds(SystemClock()).new()
    if yes:
        app.bare.consents.allow_orders(run)
    try:
        yield _Server(app, name, run, timeout or app.settings.timeout)
    finally:
        app.bare.mcp.close()


def _arguments(words: Sequence[str], given: str) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    if given:
        try:
            held = json.loads(given)
        except ValueError as error:
            raise UsageProblem(f"--args is not JSON: {error}", hint='--args \'{"name": "value"}\'') from error
        if not isinstance(held, dict):
            raise UsageProblem("--args is not a JSON object", hint='--args \'{"name": "value"}\'')
        arguments |= held
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise UsageProblem(f"{word!r} is not an argument", hint="NAME=VALUE, or --args with JSON")
        arguments[key] = value
    return arguments


def _answered(error: InputNeeded) -> dict[str, Any]:
    """The person's answers, field by field."""
    from navigator_kernel.adapters.mcp_client.elicitation import fitted

    note(str(error.data["question"]))
    answer: dict[str, Any] = {}
    for field, about in error.data["fields"].items():
        about = about if isinstance(about, Mapping) else {}
        needed = field in error.data["required"]
        said = click.prompt(
            str(about.get("title") or field), default=None if needed else "", err=True, show_default=False
        )
        if said == "" and not needed:
            continue
        answer[field] = fitted(str(said), about)
    return answer


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Any]:
    """A progress bar on a terminal, None elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    with _bar() as bar:
        task = bar.add_task("", total=None)

        async def told(done: float, of: float | None, message: str | None) -> None:
            bar.update(task, completed=done, total=of, description=clean(message or "", lines=False))

        yield told


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import Progress

    return Progress(console=Console(stderr=True), transient=True)


def _show(told: Mapping[str, Any]) -> None:
    """Prints the texts of an answer; for other parts, their type and size."""
    for item in (*told.get("content", ()), *told.get("contents", ())):
        text = item.get("text") or (item.get("resource") or {}).get("text")
        size = len(str(item.get("data") or item.get("blob") or ""))
        other = f"[{item.get('mime_type') or item.get('type') or 'data'}, {size} characters]"
        lines(text.splitlines() if isinstance(text, str) else other)
    if told.get("truncated"):
        note(f"this is the beginning of {told['size']} bytes: {told['file']}")

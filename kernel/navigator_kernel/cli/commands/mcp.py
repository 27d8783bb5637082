"""`navigator mcp`: serves the kernel as an MCP server, and manages the servers that it uses."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from msgspec import Struct

from navigator_kernel.adapters.clock import SystemClock, TimedIds
from navigator_kernel.adapters.files.database import file_lock
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.secrets import redaction
from navigator_kernel.bootstrap.places import tool_file
from navigator_kernel.cli.app import json_option, pass_app, unsafe_option
from navigator_kernel.cli.output import document, lines, note, say_lines, table
from navigator_kernel.cli.project import App
from navigator_kernel.config.mcp_settings import HOSTS, OWN_FILE, PROJECT_FILE, of_hosts, servers_in, whole
from navigator_kernel.config.settings import user_file, user_state
from navigator_kernel.errors import ConsentNeeded, InputNeeded, NotFound, NotLoadable, Refused, TimedOut, UsageProblem
from navigator_kernel.sandbox.servers import PREFIX, PROJECT, is_secret, request, save_pins
from navigator_kernel.text import clean, lazy_compile, numbered, shorten, strip_url_credentials
from navigator_kernel.values.mcp import McpServer, OfferedTool, server_from

if TYPE_CHECKING:
    from navigator_kernel.values.reply import Reply
    from navigator_kernel.values.request import Message, Session


VARIABLE = "NAVIGATOR_MCP_TOKEN"


@click.group("mcp")
def command() -> None:
    """MCP: serve, and add, list, remove, import, approve, test, tools, call, read."""


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
    from navigator_kernel.bootstrap.turns import MOST
    from navigator_kernel.mcp_server.skill_resources import SkillResources

    if check:
        # Lists the skills that are resources: those that follow the open specification. `route` finds all skills.
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
        return
    if as_json and not http:
        raise UsageProblem("the protocol uses stdout, so there is no JSON document", hint="--json goes with --http")
    try:
        from navigator_kernel.mcp_server.server import KernelTools, mcp_server
        from navigator_kernel.mcp_server.server import serve as over_http
    except ImportError as error:
        hint = "pip install 'navigator-kernel[mcp]'"
        raise NotLoadable("MCP needs the extra 'mcp', which is not installed", hint=hint) from error
    most = asyncio.Semaphore(MOST)

    async def take(message: Message, session: Session) -> Reply:
        async with most:
            return await app.turns.take(message, session, keep="waiting")

    server = mcp_server(KernelTools(kernel=app.project, take=take), SkillResources(app.project.catalogue))

    async def over_stdio() -> None:
        from mcp.server.stdio import stdio_server

        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    def ready(url: str) -> None:
        if as_json:
            document({"url": url})
            sys.stdout.flush()
        else:
            note(f"answering at {url}")

    if http:
        over_http(server, host, port, _token(), ready)
    else:
        asyncio.run(over_stdio())


def _token() -> str:
    """The token in the environment, or one that is created once in a private file."""
    if token := os.environ.get(VARIABLE, ""):
        return token
    file = user_state() / "mcp-token"
    try:
        token = file.read_text(encoding="utf-8").strip()
    except OSError:
        token = ""
    if not token:
        token = secrets.token_urlsafe(32)
        writer = FolderWriter([file.parent])
        writer.make_folder(file.parent)
        writer.write(file, f"{token}\n".encode(), mode=0o600)
    note(f"the token is in {file}")
    sys.stderr.flush()
    return token


# `navigator mcp add | list | remove | import`: configures MCP servers.

_NOT_A_NAME = lazy_compile(r"[^A-Za-z0-9]+")

project_option = click.option(
    "--project", is_flag=True, help=f"In the project's {PROJECT_FILE}, for everybody who works on it."
)


@command.command("add")
@click.argument("name")
@click.argument("words", nargs=-1)
@click.option("--preset", default="", help="A well-known server; without a command, the one called NAME.")
@click.option("--url", default="", help="The address of a server that uses streamable HTTP.")
@click.option("--env", multiple=True, help="An environment variable as NAME=VALUE; a secret as NAME='${NAME}'.")
@click.option("--header", multiple=True, help="A header of its requests as NAME=VALUE; a secret as '${NAME}'.")
@click.option("--network", is_flag=True, help="Allow it to use the network.")
@click.option("--force", is_flag=True, help="Replace a server that has the same name.")
@project_option
@json_option
@pass_app
def add(
    app: App,
    *,
    name: str,
    words: Sequence[str],
    preset: str,
    url: str,
    env: Sequence[str],
    header: Sequence[str],
    network: bool,
    force: bool,
    project: bool,
    as_json: bool,
) -> None:
    """Add an MCP server: a command after --, an address, or a preset. Nothing is started.

    navigator mcp add notes -- python3 /opt/notes.py, navigator mcp add time, navigator mcp add filesystem ~/papers
    """
    server = _named(name, tuple(words), preset, url)
    pairs = {"env": _pairs(env, "--env"), "headers": _pairs(header, "--header")}
    server = server._replace(
        env={**server.env, **pairs["env"]},
        headers={**server.headers, **pairs["headers"]},
        network=server.network or network,
    )
    server_from(name, server.to_dict())
    if secret := next(iter(_secrets(server)), ""):
        variable = _variable(secret if secret in server.env else f"{name}_{secret}")
        raise Refused(f"{secret} holds a secret", hint=f"export {variable}, and write '${{{variable}}}' in its place")
    file = _file(app, project=project)

    def edit(servers: dict[str, Any]) -> None:
        if name in servers and not force:
            raise UsageProblem(f"{str(file)!r} already has a server called {name!r}", hint="--force replaces it")
        servers[name] = server.to_dict()

    _change(app, file, edit, project=project)
    if as_json:
        document({"name": name, "file": str(file), "server": server.to_dict()})
        return
    say_lines(f"added {name} to {file}")
    note(f"navigator mcp approve {name} starts it and shows its tools")


@command.command("list")
@json_option
@pass_app
def listed(app: App, *, as_json: bool) -> None:
    """List the MCP servers: where each is named, and whether you agreed to start it."""
    rows = []
    for name, server in sorted(app.settings.servers.items()):
        agreed = app.bare.consents.trusted(request(name, server, "", app.root).consent)
        env, headers = (
            {key: "(a secret)" if is_secret(key, value) else value for key, value in table.items()}
            for table in (server.env, server.headers)
        )
        shown = server._replace(env=env, headers=headers).to_dict()  # as its file has it, with secrets hidden
        rows.append({"name": name, "origin": server.origin, "approved": agreed, **shown})
    notes = [text for text in app.settings.notes if text.startswith((PROJECT_FILE, OWN_FILE))]
    if as_json:
        document({"servers": rows, "notes": notes})
        return
    table(
        ("name", "from", "approved", "what is started or asked"),
        [(str(row["name"]), str(row["origin"]), "yes" if row["approved"] else "no", _line(row)) for row in rows],
    )
    for text in notes:
        note(text)
    if not rows:
        note("no MCP server is named: navigator mcp add NAME -- COMMAND, or navigator mcp import")


@command.command("remove")
@click.argument("name")
@project_option
@json_option
@pass_app
def remove(app: App, *, name: str, project: bool, as_json: bool) -> None:
    """Remove the server NAME and your consents for it."""
    file = _file(app, project=project)

    def edit(servers: dict[str, Any]) -> None:
        if name not in servers:
            elsewhere = app.settings.servers.get(name)
            where = {"project": f"--project: {PROJECT_FILE} names it", "settings": f"{user_file()} names it"}
            hint = where.get(elsewhere.origin, "") if elsewhere else "navigator mcp list shows those there are"
            raise NotFound(f"{str(file)!r} has no server called {name!r}", hint=hint)
        del servers[name]

    _change(app, file, edit, project=project)
    its_tools = f"{PREFIX}{OfferedTool(server=name, name='x').full_name.removesuffix('x')}"
    ended = [
        subject for subject in app.bare.consents.subjects() if subject.startswith((f"mcp_server:{name}@", its_tools))
    ]
    if ended:
        app.bare.consents.distrust(*ended)
    removed = {"name": name, "file": str(file), "distrusted": ended}
    document(removed) if as_json else say_lines(f"removed {name} from {file}")


@command.command("import")
@click.argument("hosts", nargs=-1)
@click.option("--server", "only", multiple=True, help="Only this server; may be repeated.")
@click.option("--dry-run", is_flag=True, help="Show what would be added, and add nothing.")
@click.option("--force", is_flag=True, help="Replace servers that have the same names.")
@json_option
@pass_app
def taken_over(
    app: App, *, hosts: Sequence[str], only: Sequence[str], dry_run: bool, force: bool, as_json: bool
) -> None:
    """Add the MCP servers that the coding agents on this machine know (all, or those named HOSTS) to your own file.

    Values that are secrets become references, which want the variables to be set.
    """
    known = sorted({host.host for host in HOSTS})
    if unknown := [host for host in hosts if host not in known]:
        raise UsageProblem(f"no host is called {unknown[0]!r}", hint=f"one of: {', '.join(known)}")
    file = _file(app, project=False)
    # The servers to add by name, and the skipped ones with reasons; the first host with a name wins
    there = {} if force else servers_in(file, "user", lenient=False).servers
    taken: dict[str, dict[str, Any]] = {}
    notes: list[str] = []
    for host, source, configured in of_hosts(app.root, Path.home()):
        if hosts and host.host not in hosts:
            continue
        notes += [f"{source}: {text}" for text in configured.notes]
        for name, server in configured.servers.items():
            if (only and name not in only) or name == "navigator":
                continue
            if name in taken or name in there:
                notes.append(f"{source}: {name!r} already exists")
                continue
            server, variables = _referenced(name, server)
            taken[name] = {"host": host.host, "file": str(source), "server": server.to_dict(), "variables": variables}
    if missing := [name for name in only if name not in taken]:
        raise NotFound(f"no host has a server called {missing[0]!r}", hint="; ".join(notes) or "see --dry-run")
    if taken and not dry_run:
        entries = {name: entry["server"] for name, entry in taken.items()}
        _change(app, file, lambda servers: servers.update(entries), project=False)
    if as_json:
        document({"added": taken, "notes": notes, "file": str(file), "dry_run": dry_run})
        return
    for name, entry in taken.items():
        say_lines(f"{'would add' if dry_run else 'added'} {name} ({entry['host']}): {_line(entry['server'])}")
        for variable in entry["variables"]:
            note(f"{name}: export {variable}=…, or keep it with: navigator model key {variable}")
    for text in notes:
        note(text)
    if not taken:
        note("nothing to add")


def _named(name: str, words: tuple[str, ...], preset: str, url: str) -> McpServer:
    if url:
        if words or preset:
            raise UsageProblem("a server with an address has no command", hint="--url alone, with --header")
        return McpServer(url=url)
    if preset or (name in PRESETS and (not words or PRESETS[name].wants)):
        name = preset or name
        known = PRESETS.get(name)
        if known is None:
            raise UsageProblem(f"no preset is called {name!r}", hint=f"one of: {', '.join(PRESETS)}")
        if known.wants and not words:
            hint = f"navigator mcp add {name} {known.wants}"
            raise UsageProblem(f"the preset {name!r} needs {known.wants}", hint=hint)
        if words and known.server.url:
            raise UsageProblem(f"the preset {name!r} takes no more arguments", hint=f"navigator mcp add {name}")
        return known.server._replace(args=(*known.server.args, *words))
    if not words:
        hint = f"after --, or --url, or a preset: {', '.join(PRESETS)}"
        raise UsageProblem(f"{name!r} has no command", hint=hint)
    return McpServer(command=words[0], args=words[1:])


def _pairs(words: Sequence[str], option: str, *, hint: str = "NAME=VALUE") -> Mapping[str, str]:
    pairs = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise UsageProblem(f"{word!r} is not a value of {option}", hint=hint)
        pairs[key] = value
    return pairs


def _secrets(server: McpServer) -> list[str]:
    """The names of the values that contain a secret and not a reference."""
    values = {**server.env, **server.headers, **{f"ARGUMENT_{at}": word for at, word in enumerate(server.args, 1)}}
    literal = {name: value for name, value in values.items() if "${" not in value}
    return [name for name, value in literal.items() if redaction.found(f"{name}={value}") or redaction.found(value)]


def _referenced(name: str, server: McpServer) -> tuple[McpServer, list[str]]:
    """The server with references in place of secrets, and the variables that these need."""
    variables: list[str] = []
    hidden = set(_secrets(server))

    def reference(key: str, value: str, prefix: str) -> str:
        if not (key in hidden or is_secret(key, value)):
            return value
        variables.append(_variable(f"{prefix}{key}"))
        scheme, space, rest = value.partition(" ")
        return f"{scheme} ${{{variables[-1]}}}" if space and rest and scheme.isalpha() else f"${{{variables[-1]}}}"

    env = {key: reference(key, value, "") for key, value in server.env.items()}
    headers = {key: reference(key, value, f"{name}_") for key, value in server.headers.items()}
    return server._replace(env=env, headers=headers), variables


def _variable(name: str) -> str:
    return _NOT_A_NAME.sub("_", name).upper()


def _file(app: App, *, project: bool) -> Path:
    return app.root / PROJECT_FILE if project else user_file().with_name(OWN_FILE)


def _change(app: App, file: Path, edit: Callable[[dict[str, Any]], None], *, project: bool) -> None:
    """Passes the servers of the file by name to `edit`, which changes them, and writes the file; one process at a time.
    Damaged if the file cannot be read; it then stays unchanged. Entries of others stay as they are."""
    writer = FolderWriter([file.parent], within=app.root if project else None)
    writer.make_folder(file.parent)
    with file_lock(file.with_name(f".{file.name}.lock")):
        body = whole(file)
        edit(body.setdefault("mcpServers", {}))
        writer.write(file, f"{json.dumps(body, ensure_ascii=False, indent=2)}\n".encode(), mode=0o600)


def _line(server: Mapping[str, Any]) -> str:
    words = server.get("url") or " ".join([str(server.get("command", "")), *server.get("args", [])])
    return shorten(strip_url_credentials(str(words)), 200)


# `navigator mcp test | tools | call | read | approve`: uses MCP servers.

ASKED = 5  # most questions to the person in one call

yes_option = click.option("--yes", is_flag=True, help="Agree to everything that this command starts and calls.")
seconds_option = click.option(
    "--timeout", type=click.FloatRange(0.1, 86_400), help="Time limit in seconds for the whole command."
)


@command.command("test")
@click.argument("name")
@yes_option
@seconds_option
@unsafe_option
@json_option
@pass_app
def tested(app: App, *, name: str, yes: bool, timeout: float | None, as_json: bool) -> None:
    """Connect to the server NAME and list what it offers."""
    began = time.monotonic()
    with _opened(app, name, timeout, yes=yes) as server:
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


@command.command("tools")
@click.argument("name")
@yes_option
@seconds_option
@unsafe_option
@json_option
@pass_app
def tools(app: App, *, name: str, yes: bool, timeout: float | None, as_json: bool) -> None:
    """List the tools of the server NAME, and whether each may be called."""
    with _opened(app, name, timeout, yes=yes) as server:
        offered = server.tools()
    standings = server.app.bare.pins.standings(offered)
    rows = [{"tool": tool.full_name, **standings[tool.name]._asdict(), **tool.to_dict()} for tool in offered]
    if as_json:
        document({"server": name, "tools": rows})
        return
    table(
        ("tool", "state", "description"),
        [(str(row["tool"]), str(row["state"]), shorten(str(row["why"] or row["description"]), 100)) for row in rows],
    )


@command.command("approve")
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
    configured = app.settings.servers.get(name)
    brought = configured is not None and configured.origin == PROJECT  # the person may not have seen its command
    with _opened(app, name, timeout, yes=yes or not brought) as server:
        try:
            offered = server.tools()
        except ConsentNeeded as error:  # the person sees its command first
            error.hint = f"to agree to it: navigator mcp approve {name} --yes"
            if as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
                raise
            if not click.confirm(f"{error.message}?", err=True):
                raise
            app.bare.consents.allow_orders(server.run)
            offered = server.tools()
    before, by_name = app.bare.pins.standings(offered), {tool.name: tool for tool in offered}
    by_name |= {tool.full_name: tool for tool in offered}
    if missing := [word for word in only if word not in by_name]:
        near = ", ".join(tool.name for tool in offered[:20])
        raise NotFound(f"{name!r} has no tool called {missing[0]!r}", hint=f"it has: {near}")
    approved = [by_name[word] for word in only] or [
        tool for tool in offered if before[tool.name].state in ("new", "approved")
    ]
    names, subjects = {tool.full_name for tool in approved}, {tool.subject for tool in approved}
    trusted = [subject for subject in app.bare.consents.subjects() if subject.startswith(PREFIX)]
    earlier = [subject for subject in trusted if subject.removeprefix(PREFIX).partition("@")[0] in names]
    if old := [subject for subject in earlier if subject not in subjects]:
        app.bare.consents.distrust(*old)
    app.bare.consents.trust(
        request(name, app.settings.servers[name], "", app.root).consent,
        *sorted(subjects),
        note=f"navigator mcp approve {' '.join([name, *only])}",
    )
    save_pins(tool_file(), FolderWriter([user_state()]), name, approved)
    after = app.bare.pins.standings(offered)
    rows = [
        {"tool": tool.full_name, "before": before[tool.name].state, **after[tool.name]._asdict()} for tool in offered
    ]
    if as_json:
        document({"server": name, "tools": rows})
        return
    table(("tool", "before", "now"), [(str(row["tool"]), str(row["before"]), str(row["state"])) for row in rows])
    for row in rows:
        if row["state"] != "approved" and row["why"]:
            note(f"{row['tool']} is off: {row['why']}; navigator mcp approve {name} {row['tool']} turns it on")


@command.command("call")
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
    arguments: dict[str, Any] = {}
    if given:
        try:
            arguments = json.loads(given)
        except ValueError as error:
            raise UsageProblem(f"--args is not JSON: {error}", hint='--args \'{"name": "value"}\'') from error
        if not isinstance(arguments, dict):
            raise UsageProblem("--args is not a JSON object", hint='--args \'{"name": "value"}\'')
    arguments |= _pairs(words, "ARGUMENTS", hint="NAME=VALUE, or --args with JSON")
    params: dict[str, Any] = {"tool": tool.removeprefix(f"{name}__"), "args": arguments}
    with _opened(app, name, timeout, yes=yes) as server, _progress(quiet=as_json) as progress:
        for _ in range(ASKED):
            try:
                answer = server.ask("call", params, progress)
                break
            except InputNeeded as error:
                if as_json or not sys.stdin.isatty():
                    raise
                params["answers"] = {**params.get("answers", {}), error.data["key"]: _answered(error)}
        else:
            raise UsageProblem(f"{name!r} asks without end", hint="it had five answers")
    code = 1 if answer.get("is_error") else 0
    if as_json:
        document({"exit_code": code, "server": name, **answer})
    else:
        _show(answer)
    if code:
        raise click.exceptions.Exit(code)


@command.command("read")
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
    with _opened(app, name, timeout, yes=yes) as server:
        if watch:
            asyncio.run(server.watch(uri))
            return
        answer = server.ask("read", {"uri": uri}) if uri else server.ask("list", {})
    if as_json:
        document({"server": name, **answer})
        return
    if uri:
        _show(answer)
        return
    rows = [(str(entry["uri"]), str(entry.get("name", ""))) for entry in answer["resources"]]
    rows += [(str(entry["uri_template"]), str(entry.get("name", ""))) for entry in answer.get("templates", ())]
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
        answer = self.ask("tools", {})
        if answer.get("truncated"):
            answer = json.loads(Path(answer["file"]).read_bytes())
        return [OfferedTool.from_dict(self.name, one) for one in answer["tools"]]

    async def watch(self, uri: str) -> None:
        async for answer in self.app.bare.mcp.watch(self.name, uri, self.run):
            _show(answer)
            sys.stdout.flush()


@contextmanager
def _opened(app: App, name: str, timeout: float | None, *, yes: bool) -> Iterator[_Server]:
    """Opens the server for one command; its process has ended on exit."""
    run = TimedIds(SystemClock()).new()
    if yes:
        app.bare.consents.allow_orders(run)
    try:
        yield _Server(app, name, run, timeout or app.settings.timeout)
    finally:
        app.bare.mcp.close()


def _answered(error: InputNeeded) -> dict[str, Any]:
    """The person's answers, field by field."""
    from navigator_kernel.adapters.mcp_client.connection import fitted

    note(str(error.data["question"]))
    answer: dict[str, Any] = {}
    for field, about in error.data["fields"].items():
        about = about if isinstance(about, Mapping) else {}
        needed = field in error.data["required"]
        default = None if needed else ""
        text = click.prompt(str(about.get("title") or field), default=default, err=True, show_default=False)
        if text or needed:
            answer[field] = fitted(str(text), about)
    return answer


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Any]:
    """A progress bar on a terminal, None elsewhere."""
    from rich.console import Console
    from rich.progress import Progress

    if quiet or not sys.stderr.isatty():
        yield None
        return
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        async def progress(done: float, of: float | None, message: str | None) -> None:
            bar.update(task, completed=done, total=of, description=clean(message or "", lines=False))

        yield progress


def _show(answer: Mapping[str, Any]) -> None:
    """Prints the texts of an answer; for other parts, their type and size."""
    for item in (*answer.get("content", ()), *answer.get("contents", ())):
        text = item.get("text") or (item.get("resource") or {}).get("text")
        size = len(str(item.get("data") or item.get("blob") or ""))
        other = f"[{item.get('mime_type') or item.get('type') or 'data'}, {size} characters]"
        lines(text.splitlines() if isinstance(text, str) else other)
    if answer.get("truncated"):
        note(f"this is the beginning of {answer['size']} bytes: {answer['file']}")


# Presets of well-known public MCP servers, each with a short name; starting one needs the usual consent.


class Preset(NamedTuple):
    """`wants` names the arguments that the preset needs. uvx and npx fetch a package at its first start, and so need
    the network."""

    server: McpServer
    what: str
    wants: str = ""


def _python(package: str, *words: str) -> McpServer:
    return McpServer(command="uvx", args=(package, *words), network=True)


def _node(package: str, **env: str) -> McpServer:
    return McpServer(command="npx", args=("-y", f"@modelcontextprotocol/server-{package}"), env=env, network=True)


def _address(url: str, **headers: str) -> McpServer:
    return McpServer(url=url, headers=headers)


PRESETS: Mapping[str, Preset] = {
    "context7": Preset(_address("https://mcp.context7.com/mcp"), "documentation of libraries"),
    "deepwiki": Preset(_address("https://mcp.deepwiki.com/mcp"), "questions about public repositories"),
    "everything": Preset(_node("everything"), "the reference server, which has every part of the protocol"),
    "fetch": Preset(_python("mcp-server-fetch"), "web pages as text"),
    "filesystem": Preset(_node("filesystem"), "files in the named folders", "FOLDER…"),
    "git": Preset(_python("mcp-server-git", "--repository"), "one git repository", "FOLDER"),
    "github": Preset(
        _address("https://api.githubcopilot.com/mcp/", Authorization="Bearer ${GITHUB_TOKEN}"),
        "repositories, issues and pull requests; GITHUB_TOKEN has to be set",
    ),
    "memory": Preset(_node("memory", MEMORY_FILE_PATH="${SERVER_FOLDER}/memory.jsonl"), "a graph of facts"),
    "sequential-thinking": Preset(_node("sequential-thinking"), "thoughts in numbered steps"),
    "time": Preset(_python("mcp-server-time"), "the time in other time zones"),
}

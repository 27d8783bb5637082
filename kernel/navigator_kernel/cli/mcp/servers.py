"""`navigator mcp add | list | remove | import`: configures MCP servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.secrets import redaction
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, note, say_lines, table
from navigator_kernel.cli.project import App
from navigator_kernel.config.mcp_settings import HOSTS, OWN_FILE, PROJECT_FILE, of_hosts, servers_in
from navigator_kernel.config.settings import user_file
from navigator_kernel.errors import NotFound, Refused, UsageProblem
from navigator_kernel.text import lazy_compile, shorten, strip_url_credentials
from navigator_kernel.values.mcp import McpServer, OfferedTool, server_from

_NOT_A_NAME = lazy_compile(r"[^A-Za-z0-9]+")

project_option = click.option(
    "--project", is_flag=True, help=f"In the project's {PROJECT_FILE}, for everybody who works on it."
)


@click.command("add")
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
    if found := _secrets(server):
        variable = _NOT_A_NAME.sub("_", found[0] if found[0] in server.env else f"{name}_{found[0]}").upper()
        raise Refused(f"{found[0]} holds a secret", hint=f"export {variable}, and write '${{{variable}}}' in its place")
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


@click.command("list")
@json_option
@pass_app
def listed(app: App, *, as_json: bool) -> None:
    """List the MCP servers: where each is named, and whether you agreed to start it."""
    from navigator_kernel.sandbox.servers import request

    rows = []
    for name, server in sorted(app.settings.servers.items()):
        agreed = app.bare.consents.trusted(request(name, server, "", app.root).consent)
        rows.append({"name": name, "origin": server.origin, "approved": agreed, **_shown(server)})
    notes = [text for text in app.settings.notes if text.startswith((PROJECT_FILE, OWN_FILE))]
    if as_json:
        document({"servers": rows, "notes": notes})
        return
    table(
        ("name", "from", "approved", "what is started or asked"),
        [(str(one["name"]), str(one["origin"]), "yes" if one["approved"] else "no", _line(one)) for one in rows],
    )
    for text in notes:
        note(text)
    if not rows:
        note("no MCP server is named: navigator mcp add NAME -- COMMAND, or navigator mcp import")


@click.command("remove")
@click.argument("name")
@project_option
@json_option
@pass_app
def remove(app: App, *, name: str, project: bool, as_json: bool) -> None:
    """Remove the server NAME and your consents for it."""
    file = _file(app, project=project)

    def edit(servers: dict[str, Any]) -> None:
        if name not in servers:
            held = app.settings.servers.get(name)
            where = {"project": f"--project: {PROJECT_FILE} names it", "settings": f"{user_file()} names it"}
            hint = where.get(held.origin, "") if held else "navigator mcp list shows those there are"
            raise NotFound(f"{str(file)!r} has no server called {name!r}", hint=hint)
        del servers[name]

    _change(app, file, edit, project=project)
    tools = f"mcp_tool:{OfferedTool(server=name, name='x').full_name.removesuffix('x')}"
    gone = [one for one in app.bare.consents.subjects() if one.startswith((f"mcp_server:{name}@", tools))]
    if gone:
        app.bare.consents.distrust(*gone)
    removed = {"name": name, "file": str(file), "distrusted": gone}
    document(removed) if as_json else say_lines(f"removed {name} from {file}")


@click.command("import")
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
    taken, notes = _of_hosts(app, hosts, only, {} if force else _there(file))
    if missing := [name for name in only if name not in taken]:
        raise NotFound(f"no host has a server called {missing[0]!r}", hint="; ".join(notes) or "see --dry-run")
    if taken and not dry_run:
        entries = {name: held["server"] for name, held in taken.items()}
        _change(app, file, lambda servers: servers.update(entries), project=False)
    if as_json:
        document({"added": taken, "notes": notes, "file": str(file), "dry_run": dry_run})
        return
    for name, held in taken.items():
        say_lines(f"{'would add' if dry_run else 'added'} {name} ({held['host']}): {_line(held['server'])}")
        for variable in held["variables"]:
            note(f"{name}: export {variable}=…, or keep it with: navigator model key {variable}")
    for text in notes:
        note(text)
    if not taken:
        note("nothing to add")


def _there(file: Path) -> Mapping[str, McpServer]:
    return servers_in(file, "user", lenient=False).servers


def _of_hosts(
    app: App, hosts: Sequence[str], only: Sequence[str], there: Mapping[str, McpServer]
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The servers to add by name, and the skipped ones with reasons; the first host with a name wins."""
    taken: dict[str, dict[str, Any]] = {}
    notes: list[str] = []
    for host, source, found in of_hosts(app.root, Path.home()):
        if hosts and host.host not in hosts:
            continue
        notes += [f"{source}: {text}" for text in found.notes]
        for name, server in found.servers.items():
            if (only and name not in only) or name == "navigator":
                continue
            if name in taken or name in there:
                notes.append(f"{source}: {name!r} already exists")
                continue
            held, variables = _referenced(name, server)
            taken[name] = {"host": host.host, "file": str(source), "server": held.to_dict(), "variables": variables}
    return taken, notes


def _named(name: str, words: tuple[str, ...], preset: str, url: str) -> McpServer:
    from navigator_kernel.config.mcp_presets import PRESETS
    from navigator_kernel.config.mcp_presets import preset as of_preset

    if url:
        if words or preset:
            raise UsageProblem("a server with an address has no command", hint="--url alone, with --header")
        return McpServer(url=url)
    if preset or (name in PRESETS and (not words or PRESETS[name].wants)):
        return of_preset(preset or name, words)
    if not words:
        hint = f"after --, or --url, or a preset: {', '.join(PRESETS)}"
        raise UsageProblem(f"{name!r} has no command", hint=hint)
    return McpServer(command=words[0], args=words[1:])


def _pairs(given: Sequence[str], option: str) -> Mapping[str, str]:
    found = {}
    for pair in given:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UsageProblem(f"{pair!r} is not a value of {option}", hint="NAME=VALUE")
        found[key] = value
    return found


def _shown(server: McpServer) -> dict[str, Any]:
    """The server as its file has it, with secrets hidden."""
    from navigator_kernel.sandbox.servers import is_secret

    env, headers = (
        {key: "(a secret)" if is_secret(key, value) else value for key, value in table.items()}
        for table in (server.env, server.headers)
    )
    return server._replace(env=env, headers=headers).to_dict()


def _secrets(server: McpServer) -> list[str]:
    """The names of the values that contain a secret and not a reference."""
    held = {**server.env, **server.headers, **{f"ARGUMENT_{at}": word for at, word in enumerate(server.args, 1)}}
    literal = {name: value for name, value in held.items() if "${" not in value}
    return [name for name, value in literal.items() if redaction.found(f"{name}={value}") or redaction.found(value)]


def _referenced(name: str, server: McpServer) -> tuple[McpServer, list[str]]:
    """The server with references in place of secrets, and the variables that these need."""
    from navigator_kernel.sandbox.servers import is_secret

    variables: list[str] = []
    hidden = set(_secrets(server))

    def kept(table: Mapping[str, str], prefix: str) -> dict[str, str]:
        held = {}
        for key, value in table.items():
            if not (key in hidden or is_secret(key, value)):
                held[key] = value
                continue
            variable = _NOT_A_NAME.sub("_", f"{prefix}{key}").upper()
            scheme, space, rest = value.partition(" ")
            variables.append(variable)
            held[key] = f"{scheme} ${{{variable}}}" if space and rest and scheme.isalpha() else f"${{{variable}}}"
        return held

    env, headers = kept(server.env, ""), kept(server.headers, f"{name}_")
    return server._replace(env=env, headers=headers), variables


def _file(app: App, *, project: bool) -> Path:
    return app.root / PROJECT_FILE if project else user_file().with_name(OWN_FILE)


def _change(app: App, file: Path, edit: Callable[[dict[str, Any]], None], *, project: bool) -> None:
    from navigator_kernel.adapters.files.mcp_file import change

    change(file, FolderWriter([file.parent], within=app.root if project else None), edit)


def _line(server: Mapping[str, Any]) -> str:
    words = server.get("url") or " ".join([str(server.get("command", "")), *server.get("args", [])])
    return shorten(strip_url_credentials(str(words)), 200)

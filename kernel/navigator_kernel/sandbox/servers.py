"""What the process of an MCP server may see, and which tools of the server may be called."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.adapters.files.database import file_lock
from navigator_kernel.adapters.processes.process import environment
from navigator_kernel.adapters.secrets.redaction import found
from navigator_kernel.errors import ConnectionFailed, Damaged, Refused
from navigator_kernel.sandbox.confinement import SYSTEM, confinement, covers
from navigator_kernel.sandbox.contain import exceeded
from navigator_kernel.text import escape_controls, fold, lazy_compile, shorten
from navigator_kernel.values.job import Exceeded, Job
from navigator_kernel.values.mcp import McpServer, OfferedTool, PinState

if TYPE_CHECKING:
    from navigator_kernel.config.settings import Policy
    from navigator_kernel.ports import Audit, Consents, Writer


Started: TypeAlias = "tuple[tuple[str, ...], Mapping[str, str], Callable[[int], Exceeded]]"
Start: TypeAlias = "Callable[[str, McpServer, str, Path, Path], Started]"

PROJECT = "project"  # the origin of a server that a project's file defines
FOLDER = "SERVER_FOLDER"  # the reference to the server's own folder
_SECRET_NAME = lazy_compile(r"key|token|secret|passw|auth|credential", re.IGNORECASE)
SECONDS = 600  # seconds of processor time for one connection, times the number of processors


def starter(
    check: Callable[[Job], None],
    contained: Callable[[Job], tuple[str, ...]],
    secret: Callable[[str], str | None],
    project: Path | None = None,
) -> Start:
    """A function that prepares the start of a server after `check` has allowed it, with a scratch folder for this
    process alone. It returns the argv from `contained`, the environment, and a function that checks whether the process
    with a given id is over its limit; all are empty for a server with an address. `secret` returns the values of
    references. A server that may read all of `project` does not see the files of secrets in it."""

    def start(name: str, server: McpServer, run: str, cwd: Path, scratch: Path) -> Started:
        wanted_job = request(name, server, run, cwd)
        check(wanted_job)
        if server.url:
            return (), {}, lambda _pid: ""
        resolved = server.resolved(lambda word: str(cwd) if word == FOLDER else secret(word))
        job = replace(server_job(name, resolved, run, cwd), scratch=scratch, project=project)
        if server.origin == PROJECT:  # the question did not show the values of references in its arguments
            job = replace(job, reads=wanted_job.reads)
        # The limit that the sandbox does not check: the server's stored files and its scratch folder together
        allowed, hidden = confinement(replace(job, reads=())), dict[int, float]()
        return contained(job), environment(job, ""), lambda pid: exceeded(allowed, pid, hidden)

    return start


def request(name: str, server: McpServer, run: str, cwd: Path) -> Job:
    """The job that the person is asked about: the whole command or address, with references as they are written.
    Secrets in the person's own settings are not shown. The values in a project's file are shown in full, as the name of
    a variable does not prove that its value is a secret. Consent to such a server also covers the real paths that it
    reads, as a link in a project may later lead elsewhere."""
    brought = server.origin == PROJECT
    reads = tuple(_mounted(server))
    given = [
        f"{key}={'(a secret)' if not brought and is_secret(key, value) else value}"
        for key, value in sorted({**server.env, **server.headers}.items())
    ]
    return Job(
        actor="mcp_server",
        subject=name,
        digest=_with_paths(server.digest, reads) if brought else server.digest,
        run=run,
        argv=(server.url, *given) if server.url else (*given, server.command, *server.args),
        cwd=cwd,
        timeout=SECONDS,
        wants=("network",) if server.network or server.url else (),
        reads=reads,
        for_order=True,  # each call of its tools is asked about
    )


def is_secret(key: str, value: str) -> bool:
    """Whether a value in a file is a secret, which is never shown; a reference is not one."""
    return "${" not in value and bool(_SECRET_NAME.search(key) or found(f"{key}={value}") or found(value))


def server_job(name: str, server: McpServer, run: str, cwd: Path) -> Job:
    """The process of a server whose references are resolved. ConnectionFailed if there is no such program."""
    program = _program(server)
    if program is None:
        message = f"the MCP server {name!r} cannot be started: no program is called {server.command!r}"
        raise ConnectionFailed(message, hint=f"check the command of {name!r} and PATH")
    started, place = program
    return Job(
        actor="mcp_server",
        subject=name,
        digest=server.digest,
        run=run,
        argv=(started, *server.args),
        cwd=cwd,
        timeout=SECONDS,
        wants=("network",) if server.network else (),
        reads=(place, *_named(server)),
        env=server.env,
    )


def _mounted(server: McpServer) -> Iterator[Path]:
    """The real paths that its process sees besides the system's own: its program's files, and those that it names."""
    program = None if server.url else _program(server)
    named = [] if server.url else [*([program[1]] if program else []), *_named(server)]
    for path in dict.fromkeys(Path(os.path.realpath(path)) for path in named):
        if not covers(map(Path, SYSTEM), path):
            yield path


def _with_paths(digest: str, reads: tuple[Path, ...]) -> str:
    body = "\0".join((digest, *map(str, reads))).encode("utf-8", "surrogateescape")
    return f"sha256:{sha256(body).hexdigest()}"


def _program(server: McpServer) -> tuple[str, Path] | None:
    """Its program, and the folder or file with the program's parts; None if there is no such program."""
    path = shutil.which(server.command)
    if path is None:
        return None
    environment = Path(path).parent.parent
    if (environment / "pyvenv.cfg").is_file():
        return path, environment
    started = os.path.realpath(path)
    # The folder that the program is installed in, if nothing else of the person's is there; else the program
    program = Path(started)
    prefix = program.parent.parent
    shared = {Path("/"), Path.home(), Path.home() / ".local"}
    return started, (prefix if program.parent.name == "bin" and prefix not in shared else program)


def _named(server: McpServer) -> Iterator[Path]:
    """Each argument that is an existing absolute path. For a script in the person's own settings, its folder, as it may
    consist of several files; for an argument in a project's file, exactly that path."""
    for word in server.args:
        path = Path(word)
        if not path.is_absolute() or not path.exists():
            continue
        if server.origin == PROJECT:
            yield path
            continue
        modules = [folder for folder in path.parents if folder.name == "node_modules"]  # with a script's other packages
        folder = modules[-1] if modules else path if path.is_dir() else path.parent
        yield path if Path.home().resolve().is_relative_to(folder.resolve()) else folder


# Decides which MCP tools may be called: a tool is approved as it was shown, and blocked when it changes.

PREFIX = "mcp_tool:"
SHOWN = 400  # characters of a description that a question shows


class Standing(NamedTuple):
    """`why` says what is wrong with a tool that is neither new nor approved."""

    state: PinState
    why: str = ""


class ToolPins(Struct, frozen=True):
    """`scan` names, for each description, what it tries to do to its reader."""

    consents: Consents
    policy: Policy
    audit: Audit
    scan: Callable[[Sequence[str]], Sequence[Sequence[str]]]

    def standings(self, tools: Sequence[OfferedTool], only: str = "") -> Mapping[str, Standing]:
        """The standing by the tool's own name, for all tools of one server or for `only` one of them; of two tools with
        the same name neither can be called."""
        trusted = [subject for subject in self.consents.subjects() if subject.startswith(PREFIX)]
        approved: dict[str, set[str]] = {}
        for subject in trusted:
            approved.setdefault(subject.removeprefix(PREFIX).partition("@")[0], set()).add(subject)
        names = Counter(fold(tool.name) for tool in tools)
        twice = Standing("shadowing", "the server has two tools of this name")
        chosen = [tool for tool in tools if only in ("", tool.name)]
        standings = {tool.name: twice if names[fold(tool.name)] > 1 else _standing(tool, approved) for tool in chosen}
        new = [tool for tool in chosen if standings[tool.name].state == "new"]
        for tool, seen in zip(new, self.scan([text_of(tool) for tool in new]) if new else (), strict=True):
            if seen:
                standings[tool.name] = Standing("suspicious", seen[0])
        return standings

    def require(self, run: str, name: str, tools: Sequence[OfferedTool]) -> None:
        """Raises Refused by policy or for an ambiguous name, ConsentNeeded if nobody agreed to the tool as it is now. A
        tool that changed, shadows another or is written suspiciously needs a consent of its own."""
        tool = next(offered for offered in tools if offered.name == name)
        state, why = self.standings(tools, name)[name]
        for rule in self.policy.deny:
            if fnmatchcase(f"tool:{tool.full_name}", rule):
                self.audit.record("refused", run=run, subject=tool.subject, why=rule)
                raise Refused(f"{tool.full_name} may not be called", hint=f"policy: deny {rule}", reason="policy")
        if state == "shadowing" and sum(fold(offered.name) == fold(name) for offered in tools) > 1:
            raise Refused(f"{tool.full_name}: {why}", hint="it is not clear which of them would be called")
        if state == "approved":
            self.audit.record("authorised", run=run, subject=tool.subject, by="trust")
            return
        because = f" ({why})" if why else ""
        question = (
            f"call {tool.full_name}{because}: {escape_controls(shorten(tool.description, SHOWN)) or 'no description'}"
        )
        facts: dict[str, Any] = {"tool": tool.full_name, "standing": state}
        self.consents.require(run, tool.subject, question, by_name=state != "new", **facts)


def _standing(tool: OfferedTool, approved: Mapping[str, Iterable[str]]) -> Standing:
    """The standing of a tool before its description is scanned."""
    mine = set(approved.get(tool.full_name, ()))
    if tool.subject in mine:
        return Standing("approved")
    if mine:
        return Standing("changed", "it has changed since it was approved")
    own = fold(tool.full_name.partition("__")[2])
    for name in sorted(approved):
        if fold(name.partition("__")[2]) == own:
            return Standing("shadowing", f"it has the name of {name}, which was approved")
    return Standing("new")


def text_of(tool: OfferedTool) -> str:
    """All text of the tool that a model would read."""
    return "\n".join((tool.name, tool.description, *_texts(tool.schema)))


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield str(name)
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


# The definitions of MCP tools that a person agreed to, kept outside of every project.

HINT = "remove it, and approve the tools again"


def load_pins(file: Path) -> tuple[OfferedTool, ...]:
    """Returns the tools in order of their names, none without a file; Damaged if it cannot be read."""
    try:
        body = json.loads(file.read_text(encoding="utf-8"))
        return tuple(OfferedTool.from_dict(entry["server"], entry) for entry in body["tools"])
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Damaged(f"{str(file)!r} cannot be read: {error}", hint=HINT) from error


def save_pins(file: Path, writer: Writer, server: str, tools: Sequence[OfferedTool]) -> None:
    """Saves the tools, in place of the server's tools of the same names."""
    writer.make_folder(file.parent)
    with file_lock(file.with_suffix(".lock")):
        names = {tool.name for tool in tools}
        others = [pinned for pinned in load_pins(file) if pinned.server != server or pinned.name not in names]
        every = sorted([*others, *tools], key=lambda tool: (tool.server, tool.name))
        body = {"v": 1, "tools": [{"server": tool.server, **tool.to_dict()} for tool in every]}
        writer.write(file, json.dumps(body, ensure_ascii=False, indent=1).encode("utf-8", "replace"), mode=0o600)

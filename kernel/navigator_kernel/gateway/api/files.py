"""The files of a run, files of the project for completion, and files attached to a message."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import quote

from msgspec import Meta, Struct
from starlette.responses import Response

from navigator_kernel.adapters.files.autoload import disarmed_last, refuse_autoloaded
from navigator_kernel.adapters.files.project_files import FILE_LIMIT, holds_secrets, refuse_named
from navigator_kernel.adapters.files.tree import read_inside, walk_inside
from navigator_kernel.errors import KernelError, NotFound, Refused
from navigator_kernel.text import lazy_compile
from navigator_kernel.tools.places import is_closed
from navigator_kernel.values.http.endpoint import Call, Endpoint
from navigator_kernel.values.owner import owned, owner_of_session

if TYPE_CHECKING:
    from navigator_kernel.adapters.files.changes import FileChange
    from navigator_kernel.gateway.gateway import Gateway

MOST = 200  # listed files of a run
OFFERED = 50  # project files offered at a time
SEEN = 5_000  # folder entries to look at
LARGEST = 16 * 1024 * 1024  # bytes of a file in a response
ATTACHED = 2 * 1024 * 1024  # bytes of a file attached to a message
NAME = 100  # characters of its name to keep
BINARY = "application/octet-stream"
# Folders of generated files, to which no message refers
_MADE = frozenset({"node_modules", "__pycache__", "venv", "dist", "build", "target"})
_OWN = lazy_compile(r"step-\d+\.json")  # the kernel's own record of a step
_NOT_IN_NAMES = lazy_compile(r"[^\w.+-]+")

Origin = Literal["workspace", "project"]


class RunFile(Struct, frozen=True, kw_only=True):
    """A file that a run wrote: `workspace` files are its own, `project` files were changed by its tools. `size` is in
    bytes, `is_new` says that the file was not there before, `is_closed` that its name is one of secrets, so that it is
    not sent."""

    path: str
    origin: Origin
    size: int
    is_new: bool
    is_closed: bool = False


class RunFiles(Struct, frozen=True, kw_only=True):
    run: str
    files: list[RunFile]


class WhichFile(Struct, frozen=True, forbid_unknown_fields=True):
    """`origin` is as in the list of files."""

    origin: Origin = "workspace"


class Prefix(Struct, frozen=True, forbid_unknown_fields=True):
    """The beginning of a path in the project."""

    prefix: Annotated[str, Meta(max_length=1_000)] = ""


class ProjectPaths(Struct, frozen=True, kw_only=True):
    """Paths in the project; the path of a folder ends with a slash."""

    paths: list[str]


class Attachment(Struct, frozen=True, forbid_unknown_fields=True):
    """`data` is the file's content in base64."""

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    data: Annotated[bytes, Meta(max_length=ATTACHED)]


class Attached(Struct, frozen=True, kw_only=True):
    """`mention` names the file in a message: with `@` the message gets the file's text, without it only the path."""

    path: str
    mention: str
    size: int


def list_run_files(gateway: Gateway, call: Call) -> RunFiles:
    """Lists files of the run's workspace first, then files of the project that its tools changed."""
    run = call.path["run"]
    gateway.session_of_run(call.caller, run)
    changed: dict[str, FileChange] = {}
    created: set[str] = set()
    for change in _changes(gateway, run):
        if change.path not in changed and change.before is None:
            created.add(change.path)
        changed[change.path] = change
    of_project = (
        RunFile(path=path, origin="project", size=change.size, is_new=path in created)
        for path, change in changed.items()
    )
    sizes: dict[str, int] = {}
    with suppress(NotFound, OSError):  # the run wrote nothing, or its workspace was cleaned up
        walked = list(islice(walk_inside(gateway.project.box / "workspace", (run,)), SEEN))
        sizes = {one.path: one.size for one in walked if not _OWN.fullmatch(one.path)}
    in_workspace = [  # what was disarmed comes last, and nothing is left out for its name
        RunFile(path=path, origin="workspace", size=sizes[path], is_new=True, is_closed=holds_secrets(path.split("/")))
        for path in islice(disarmed_last(sizes), MOST)
    ]
    return RunFiles(run=run, files=[*in_workspace, *islice(of_project, MOST)])


def read_run_file(gateway: Gateway, call: Call) -> Response:
    """Sends a file as a download. A changed file of the project is sent as the run left it."""
    run, path = call.path["run"], call.path["path"]
    gateway.session_of_run(call.caller, run)
    parts = _parts(path)
    refuse_named(parts, path)
    if call.query.origin == "workspace":
        data = read_inside(gateway.project.box / "workspace", (run, *parts), LARGEST + 1)
    else:
        changes = [change for change in _changes(gateway, run) if change.path == path]
        if not changes:
            raise NotFound(f"run {run!r} did not change {path!r}", hint=f"GET /api/runs/{run}/files lists its files")
        if changes[-1].is_large:
            hint = "open it in the project's folder"
            raise Refused(f"{path!r} is too large to be sent", hint=hint, reason="too-large")
        data = changes[-1].after
    if len(data) > LARGEST:
        raise Refused(f"{path!r} is larger than {LARGEST // 1024 // 1024} MiB", hint="open it on the server")
    headers = {
        "cache-control": "no-store",
        "content-disposition": f"attachment; filename*=UTF-8''{quote(parts[-1], safe='')}",
        "content-security-policy": "default-src 'none'; sandbox",
        "x-content-type-options": "nosniff",
    }
    return Response(data, headers=headers, media_type=BINARY)


def list_project_files(gateway: Gateway, call: Call) -> ProjectPaths:
    """Lists files and folders whose path begins with `prefix`, one folder at a time. Hidden files, files of secrets and
    the kernel's own files are left out."""
    folder, _, beginning = call.query.prefix.rpartition("/")
    parts = _parts(folder) if folder else ()
    if "\0" in call.query.prefix or any(_is_left_out(parts[: at + 1]) for at in range(len(parts))):
        return ProjectPaths(paths=[])
    try:
        entries = list(islice(walk_inside(gateway.root.resolve(), parts, deep=False), SEEN))
    except (KernelError, OSError):
        return ProjectPaths(paths=[])
    beginning = beginning.casefold()
    head = f"{folder}/" if folder else ""
    paths = (
        f"{head}{entry.path}{'/' if entry.is_folder else ''}"
        for entry in entries
        if entry.path.casefold().startswith(beginning) and not _is_left_out((*parts, entry.path))
    )
    return ProjectPaths(paths=list(islice(paths, OFFERED)))


def attach_file(gateway: Gateway, call: Call) -> Attached:
    """Stores a file in a workspace, so that a message of the session can name it."""
    session = gateway.session_id(call.caller, call.path["session"])
    given = call.body.name.replace("\\", "/").rpartition("/")[2]
    refuse_named((given,), given)
    name = _NOT_IN_NAMES.sub("-", given)[-NAME:].strip("-.") or "file"
    refuse_autoloaded(gateway.root, (name,))
    digest = hashlib.sha256(session.encode() + b"\0" + call.body.data).hexdigest()[:12]
    folder = owned(f"attached-{digest}", owner_of_session(session))
    path = gateway.project.keep(folder, name, call.body.data)
    try:
        call.body.data.decode("utf-8")
        mark = "@" if len(call.body.data) <= FILE_LIMIT and b"\0" not in call.body.data else ""
    except UnicodeDecodeError:  # not a text
        mark = ""
    return Attached(path=path, mention=f"{mark}{path}", size=len(call.body.data))


def _changes(gateway: Gateway, run: str) -> Sequence[FileChange]:
    try:
        return gateway.project.changes.of(run)
    except KernelError:
        return ()  # the run changed nothing, or the record cannot be read: `navigator diff` reports that


def _parts(path: str) -> tuple[str, ...]:
    """The parts of `path`; NotFound unless it only leads downwards."""
    parts = tuple(path.split("/"))
    if any(part in {"", ".", ".."} or "\0" in part for part in parts):
        raise NotFound("there is nothing at this address", hint="the list of files has their paths")
    return parts


def _is_left_out(parts: Sequence[str]) -> bool:
    last = parts[-1]
    return last.startswith(".") or is_closed(parts) or last in _MADE or holds_secrets(parts)


_get = partial(Endpoint, "GET", tag="runs", role="chat", errors=(404,))
_listing: Any = {"role": "read", "tag": "chat", "query": Prefix, "answer": ProjectPaths}
_LIST = "List files of the project by the beginning of their path"

ENDPOINTS = (
    _get("/api/runs/{run}/files", "List the files that a run wrote", list_run_files, answer=RunFiles),
    _get(
        "/api/runs/{run}/files/{path:path}",
        "Download a file that a run wrote",
        read_run_file,
        query=WhichFile,
        media=BINARY,
    ),
    _get("/api/files", _LIST, list_project_files, **_listing),
    Endpoint(
        "POST",
        "/api/sessions/{session}/files",
        "Store a file that a message of the session can name",
        attach_file,
        tag="chat",
        role="chat",
        body=Attachment,
        answer=Attached,
        status=201,
    ),
)

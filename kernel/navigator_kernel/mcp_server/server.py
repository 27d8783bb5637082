"""The MCP server: four tools, and the Skills extension, over the official SDK (SEP-2640)."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import jsonschema
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.models import InitializationOptions
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from msgspec import Struct
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse

from navigator_kernel import __version__
from navigator_kernel.errors import KernelError, NotFound, Refused, SkillNotFound, UsageProblem
from navigator_kernel.events import RunStarted
from navigator_kernel.text import clean, shorten
from navigator_kernel.turn.message import preprocess
from navigator_kernel.turn.understand import decide, understand_locally
from navigator_kernel.values.request import Message, Session
from navigator_kernel.values.route import NeedClarification
from navigator_kernel.why import lines_of, reasons

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from navigator_kernel.mcp_server.skill_resources import SkillResources
    from navigator_kernel.ports import Executor, Kernel
    from navigator_kernel.values.reply import Reply
    from navigator_kernel.values.resource import SkillDef


T = TypeVar("T")

EXTENSION = "io.modelcontextprotocol/skills"
FEATURES = {"directoryRead": True}
FRESH = 5_000  # milliseconds that a host may cache a list
INSTRUCTIONS = (
    "Skills of this project and this person, under one router. Before a task call `route` with the person's message "
    "as it is, in any language. Where it names a skill, call `load_skill` and follow the text; where the skill says "
    "that it runs, call `run_skill`. A report that is pending waits for the person: show them the question and the "
    "command in `ask_the_person`, and do not answer it for them. `why` says how a run came to what it did."
)
_TEXT: Mapping[str, Any] = {"type": "string", "maxLength": 20_000}
_LOOKS = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)


def _tool(
    called: str, description: str, annotations: types.ToolAnnotations, /, **properties: Mapping[str, Any]
) -> types.Tool:
    """Creates a tool; properties without a default are required."""
    required = [key for key, about in properties.items() if "default" not in about]
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return types.Tool(name=called, description=description, input_schema=schema, annotations=annotations)


TOOLS = (
    _tool(
        "route",
        "Finds the skill for a message among all installed skills. Changes nothing and asks no model.",
        _LOOKS,
        message=_TEXT,
        k={"type": "integer", "minimum": 1, "maximum": 20, "default": 5},
    ),
    _tool("load_skill", "The text of a skill, to be followed, with the digest of its files.", _LOOKS, name=_TEXT),
    _tool(
        "run_skill",
        "Runs a skill in the sandbox and returns its report. What the person has not agreed to is pending. A skill "
        "that has no program is worked on by the model in the person's settings, which may cost money; you can "
        "follow the text of load_skill instead.",
        types.ToolAnnotations(read_only_hint=False, destructive_hint=True),
        name=_TEXT,
        args={**_TEXT, "default": ""},
    ),
    _tool(
        "why",
        "Why a run of run_skill, or the newest, did what it did: a sentence, then every stage with its numbers.",
        _LOOKS,
        run={**_TEXT, "default": ""},
    ),
)


class ListSkills(types.PaginatedRequestParams):
    """The parameters of `skills/list`."""


class GetSkill(types.RequestParams):
    """The parameters of `skills/get`."""

    uri: str


class ReadFolder(types.PaginatedRequestParams):
    """The parameters of `resources/directory/read`."""

    uri: str


def mcp_server(tools: KernelTools, shelf: SkillResources) -> Server[Any]:
    """Creates the server, which runs over any transport."""
    handlers = _Handlers(tools, shelf)

    @asynccontextmanager
    async def warmed(_: Server[Any]) -> AsyncIterator[dict[str, Any]]:
        """Starts to build the index while the host is still connecting."""
        made = asyncio.create_task(tools.route("which skill is meant", 1))
        yield {}
        made.cancel()

    server: Server[Any] = _Server(
        "navigator",
        version=__version__,
        title="Navigator Kernel",
        instructions=INSTRUCTIONS,
        lifespan=warmed,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
    )
    server.extensions[EXTENSION] = FEATURES
    server.add_request_handler("skills/list", ListSkills, handlers.list_skills)
    server.add_request_handler("skills/get", GetSkill, handlers.get_skill)
    server.add_request_handler("resources/directory/read", ReadFolder, handlers.read_folder)
    return server


class _Server(Server[Any]):
    """Declares the extension in the handshake of earlier versions of the protocol, too, which have no extensions."""

    def create_initialization_options(self, *args: Any, **options: Any) -> InitializationOptions:
        options.setdefault("experimental_capabilities", {EXTENSION: FEATURES})
        return super().create_initialization_options(*args, **options)


class _Handlers(Struct, frozen=True):
    """A failed call is an answer; a wrong address, or an unknown tool, is the protocol's error -32602."""

    tools: KernelTools
    shelf: SkillResources

    async def list_tools(self, _ctx: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=list(TOOLS), ttl_ms=FRESH)

    async def call_tool(self, _ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        schema = next((tool.input_schema for tool in TOOLS if tool.name == params.name), None)
        if schema is None:
            raise MCPError(types.INVALID_PARAMS, f"no tool is called {params.name[:80]!r}")
        try:
            call: Callable[..., Awaitable[Mapping[str, Any]]] = getattr(self.tools, params.name)
            # Returns `arguments`; UsageProblem with the validator's message if they do not match `schema`
            arguments = params.arguments or {}
            problem = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(schema).iter_errors(arguments))
            if problem is not None:
                where = ".".join(map(str, problem.path)) or "arguments"
                raise UsageProblem(f"{where}: {shorten(problem.message, 200)}", hint="see the tool's input schema")
            body = await call(**arguments)
        except KernelError as error:
            return _answer({"error": error.to_dict()}, failed=True)
        return _answer(body, failed=body.get("report", {}).get("state") in {"error", "timeout"})

    async def list_resources(self, _ctx: Any, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        """Lists the texts of the skills; the files beside them are in the skills' entries."""
        entries, after = self.shelf.page(_name(params.cursor if params else None))
        resources = [
            types.Resource(
                uri=entry["uri"],
                name=entry["frontmatter"]["name"],
                description=entry["frontmatter"]["description"],
                mime_type="text/markdown",
            )
            for entry in entries
        ]
        return types.ListResourcesResult(resources=resources, next_cursor=_cursor(after), ttl_ms=FRESH)

    async def list_templates(self, _ctx: Any, _params: Any) -> types.ListResourceTemplatesResult:
        description = "A file of a skill; SKILL.md is its text"
        template = types.ResourceTemplate(
            uri_template="skill://{name}/{+path}", name="skill file", description=description
        )
        return types.ListResourceTemplatesResult(resource_templates=[template], ttl_ms=FRESH)

    async def read_resource(self, _ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        file = _there(self.shelf.read, str(params.uri))
        contents: types.TextResourceContents | types.BlobResourceContents
        if file.text is not None:
            contents = types.TextResourceContents(uri=file.uri, mime_type=file.media, text=file.text)
        else:
            blob = base64.b64encode(file.data).decode()
            contents = types.BlobResourceContents(uri=file.uri, mime_type=file.media, blob=blob)
        return types.ReadResourceResult(contents=[contents])

    async def list_skills(self, _ctx: Any, params: ListSkills) -> dict[str, Any]:
        entries, after = self.shelf.page(_name(params.cursor))
        more = {"nextCursor": _cursor(after)} if after else {}
        return {"resultType": "complete", "skills": entries, "ttlMs": FRESH, "cacheScope": "private", **more}

    async def get_skill(self, _ctx: Any, params: GetSkill) -> dict[str, Any]:
        entry = _there(self.shelf.entry, params.uri)
        return {"resultType": "complete", "skill": entry, "ttlMs": FRESH, "cacheScope": "private"}

    async def read_folder(self, _ctx: Any, params: ReadFolder) -> dict[str, Any]:
        return {"resultType": "complete", "resources": _there(self.shelf.folder, params.uri)}


def _there(look: Callable[[str], T], uri: str) -> T:
    try:
        return look(uri)
    except (KernelError, OSError) as error:
        reason = error.message if isinstance(error, KernelError) else "the file cannot be read"
        raise MCPError(types.INVALID_PARAMS, clean(reason, lines=False), {"uri": uri}) from error


def _answer(body: Mapping[str, Any], *, failed: bool) -> types.CallToolResult:
    """The result of a call, twice: as JSON text for a model, and as a structure for its host."""
    plain = json.loads(json.dumps(body, default=str))
    text = types.TextContent(type="text", text=json.dumps(plain, ensure_ascii=False))
    return types.CallToolResult(content=[text], structured_content=plain, is_error=failed)


def _cursor(name: str) -> str | None:
    """The cursor of the page after `name`. A name does not change its place if other skills are added or removed."""
    return base64.urlsafe_b64encode(name.encode()).decode() if name else None


def _name(cursor: str | None) -> str:
    try:
        return base64.b64decode(cursor or "", altchars=b"-_", validate=True).decode()
    except ValueError as error:
        raise MCPError(types.INVALID_PARAMS, "the cursor is not from this server") from error


# The MCP server over streamable HTTP, with a token and a check of the origin.

PATH = "/mcp"
LONGEST = 1024 * 1024  # bytes of a request


class _Token:
    """Refuses every request without the token, and reveals nothing else."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app, self.expected = app, f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            header = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
            if not hmac.compare_digest(header, self.expected):
                refusal = PlainTextResponse("a token is needed", 401, {"WWW-Authenticate": "Bearer"})
                await refusal(scope, receive, send)
                return
        await self.app(scope, receive, send)


def serve(server: Server[Any], host: str, port: int, token: str, ready: Callable[[str], None]) -> None:
    """Serves at `http://host:port/mcp` until it is stopped; `ready` is called with that address. KernelError if it
    cannot listen there. A request with another address as Host or Origin is refused (421, 403)."""
    import uvicorn  # only this transport needs it

    from navigator_kernel.adapters.http_connection import Connection

    config = uvicorn.Config(
        "", host=host, port=port, http=Connection, ws="none", log_level="error", access_log=False, server_header=False
    )
    try:
        listener = config.bind_socket()
    except (OSError, SystemExit) as error:  # uvicorn calls sys.exit if it cannot listen
        raise KernelError(f"cannot listen at {host}:{port}", hint="another --port") from error
    with listener:
        place = f"{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
        # Creates the application. `place` is the host and port that clients must name; they leave out the port 80
        places = [place, place.removesuffix(":80")] if place.endswith(":80") else [place]
        security = TransportSecuritySettings(
            allowed_hosts=places, allowed_origins=[f"http://{allowed}" for allowed in places]
        )
        app = server.streamable_http_app(
            streamable_http_path=PATH, transport_security=security, host=host, max_request_body_size=LONGEST
        )
        app.user_middleware.insert(0, Middleware(_Token, token=token))
        config.app = app
        listener.listen()  # clients that connect before the server is up wait
        ready(f"http://{place}{PATH}")
        uvicorn.Server(config).run(sockets=[listener])


# The tools of the MCP server: route a message, load a skill, run it, and explain a run.

DESCRIBED = 400  # characters of a description
MOST = 20  # most candidates in one answer
LOOK, PAUSE = 2.0, 0.05  # seconds between checks for changed files, and the delay before one
TEXT = 64_000  # characters of a skill's text
LOOKED_AT = 200  # newest runs searched for one of a host
SESSIONS = "mcp-"  # the names of the sessions of hosts begin with it


class KernelTools(Struct, kw_only=True):
    """Each tool returns JSON values or raises a KernelError. `take` takes turns, side by side, and keeps the session of
    a turn that waits for the person, so that they can answer it."""

    kernel: Kernel
    take: Callable[[Message, Session], Awaitable[Reply]]
    _looked: float = float("-inf")

    async def route(self, message: str, k: int = 5) -> Mapping[str, Any]:
        """The route of a message, without asking a model and without running anything.

        In a large catalogue the next call notices a file that was changed in place, and this one a skill that was added
        or removed. UsageProblem for an empty message.
        """
        if not message.strip():
            raise UsageProblem("there is no message", hint="send what the person wants, as they wrote it")
        with self.kernel.catalogue.glance():
            kernel = self.kernel
            request = preprocess(Message(text=message), kernel.files)
            intent = understand_locally(request, Session(id="mcp"), kernel.router)
            decision = decide(intent, request, kernel.catalogue)
            candidates = intent.retrieval.candidates[: min(max(k, 1), MOST)] if intent.retrieval else ()
            shown = [
                (candidate.confidence, skill)
                for candidate in candidates
                if (skill := self._model_may(candidate.name)) is not None
            ]
            answer = {**decision.to_dict(), "band": intent.retrieval.band if intent.retrieval else None}
            answer |= {"candidates": [{**_described(skill), "confidence": round(sure, 4)} for sure, skill in shown]}
            if isinstance(decision.result, NeedClarification):
                answer |= {"question": decision.result.question, "options": list(decision.options)}
        loop = asyncio.get_running_loop()
        if loop.time() - self._looked > LOOK:
            self._looked = loop.time()
            loop.call_later(PAUSE, self.kernel.catalogue.list_resources)
        return answer

    async def load_skill(self, name: str) -> Mapping[str, Any]:
        """A skill's text with its digest, for the host's model to follow. SkillNotFound for an unknown name; Refused if
        the skill was changed, or neither installed nor trusted."""
        skill = self._model_may(name)
        if skill is None:
            near = self.kernel.catalogue.suggest(name)
            raise SkillNotFound(f"no skill is called {name!r}", hint=f"similar names: {', '.join(near) or 'none'}")
        executor = self.kernel.catalogue.create_executor(skill.namespace)
        _refuse_unknown(executor)
        if executor.is_changed:
            hint = f"the person may look at it: navigator skill verify {skill.name}"
            raise Refused(f"skill {skill.name!r} was changed since it was installed", hint=hint)
        text = (skill.sop or skill.system_prompt)[:TEXT]
        needs = [spec.name for spec in skill.required_params]
        body = {**_described(skill), "digest": executor.digest, "text": text, "required_params": needs}
        return {**body, "folder": str(skill.folder or ""), "runs": skill.kind == "A"}

    async def run_skill(self, name: str, args: str = "") -> Mapping[str, Any]:
        """The report of a turn that runs the skill, under the person's policy; pending if it needs their consent."""
        skill = self._model_may(name)
        if skill is None:
            raise SkillNotFound(f"no skill is called {name!r}", hint="route finds the one for a message")
        kernel = self.kernel
        if skill.kind == "B":  # kind A is checked later, when its command starts
            _refuse_unknown(kernel.catalogue.create_executor(skill.namespace))
        message = Message(text=f"/{skill.name} {args}".strip())
        if len(preprocess(message, kernel.files).commands) != 1:
            raise UsageProblem("the arguments hold a second instruction", hint="call one skill, not a command")
        session = Session(id=f"{SESSIONS}{kernel.ids.new()}", notice_shown=True)
        reply = await self.take(message, session)
        waits = reply.session.approval is not None or reply.session.question is not None
        body: dict[str, Any] = {"run": reply.run, "report": kernel.redact(reply.report.to_dict())}
        return {**body, "ask_the_person": f"navigator ask --session {session.id} yes"} if waits else body

    async def why(self, run: str = "") -> Mapping[str, Any]:
        """Why a run that a host began, by default the newest of these, did what it did: in `why` a sentence for each
        message, in `lines` every stage with its numbers. NotFound for any other run: its message is not the host's."""
        log = self.kernel.run_log
        for name in [run] if run else log.runs()[:LOOKED_AT]:
            events = log.read(name)
            if events and isinstance(events[0].body, RunStarted) and events[0].body.session.startswith(SESSIONS):
                lines = [line.strip() for event in events for line in lines_of(event)]
                return {"run": name, "why": list(reasons(events, self.kernel.catalogue)), "lines": lines}
        raise NotFound(f"no run is called {run!r}" if run else "nothing was run yet", hint="run_skill makes one")

    def _model_may(self, name: str) -> SkillDef | None:
        """The skill with this name; None if there is none, or if its author keeps it from models."""
        skill = self.kernel.catalogue.find(name)
        return skill if skill is not None and skill.implicit else None


def _described(skill: SkillDef) -> dict[str, Any]:
    return {"name": skill.name, "description": shorten(skill.description, DESCRIBED)}


def _refuse_unknown(executor: Executor) -> None:
    """Refused for a skill neither installed nor trusted: nobody here sees what another agent does with its text."""
    if executor.standing == "unknown":
        name = executor.skill.name
        hint = f"the person may look at it, then: navigator skill trust {name}"
        message = f"skill {name!r} was neither installed nor trusted by the person"
        raise Refused(message, hint=hint, reason="unknown-skill")

"""The MCP server: four tools, and the Skills extension, over the official SDK (SEP-2640)."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import jsonschema
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from msgspec import Struct

from navigator_kernel import __version__
from navigator_kernel.errors import KernelError, UsageProblem
from navigator_kernel.text import clean, shorten

if TYPE_CHECKING:
    from navigator_kernel.mcp_server.kernel_tools import KernelTools
    from navigator_kernel.mcp_server.skill_resources import SkillResources

T = TypeVar("T")

EXTENSION = "io.modelcontextprotocol/skills"
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
    required = [key for key, held in properties.items() if "default" not in held]
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
    held = _Handlers(tools, shelf)

    @asynccontextmanager
    async def warmed(_: Server[Any]) -> AsyncIterator[dict[str, Any]]:
        """Starts to build the index while the host is still connecting."""
        made = asyncio.create_task(tools.route("which skill is meant", 1))
        yield {}
        made.cancel()

    server: Server[Any] = Server(
        "navigator",
        version=__version__,
        title="Navigator Kernel",
        instructions=INSTRUCTIONS,
        lifespan=warmed,
        on_list_tools=held.list_tools,
        on_call_tool=held.call_tool,
        on_list_resources=held.list_resources,
        on_list_resource_templates=held.list_templates,
        on_read_resource=held.read_resource,
    )
    server.extensions[EXTENSION] = {"directoryRead": True}
    server.add_request_handler("skills/list", ListSkills, held.list_skills)
    server.add_request_handler("skills/get", GetSkill, held.get_skill)
    server.add_request_handler("resources/directory/read", ReadFolder, held.read_folder)
    return server


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
            body = await call(**_checked(params.arguments or {}, schema))
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
        told = "A file of a skill; SKILL.md is its text"
        template = types.ResourceTemplate(uri_template="skill://{name}/{+path}", name="skill file", description=told)
        return types.ListResourceTemplatesResult(resource_templates=[template], ttl_ms=FRESH)

    async def read_resource(self, _ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        file = _there(self.shelf.read, str(params.uri))
        held: types.TextResourceContents | types.BlobResourceContents
        if file.text is not None:
            held = types.TextResourceContents(uri=file.uri, mime_type=file.media, text=file.text)
        else:
            blob = base64.b64encode(file.data).decode()
            held = types.BlobResourceContents(uri=file.uri, mime_type=file.media, blob=blob)
        return types.ReadResourceResult(contents=[held])

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
        said = error.message if isinstance(error, KernelError) else "the file cannot be read"
        raise MCPError(types.INVALID_PARAMS, clean(said, lines=False), {"uri": uri}) from error


def _checked(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns `arguments`; UsageProblem with the validator's message if they do not match `schema`."""
    problem = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(schema).iter_errors(arguments))
    if problem is not None:
        where = ".".join(map(str, problem.path)) or "arguments"
        raise UsageProblem(f"{where}: {shorten(problem.message, 200)}", hint="see the tool's input schema")
    return arguments


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

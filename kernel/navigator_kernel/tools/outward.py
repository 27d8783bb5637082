"""The tools that reach others: `fetch`, for a web page of a host that the person's policy names, and those of MCP
servers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from navigator_kernel.adapters.processes.module_child import ModuleChild
from navigator_kernel.adapters.web import Page, Target, get
from navigator_kernel.errors import KernelError, UsageProblem
from navigator_kernel.text import clean, lazy_compile, shorten
from navigator_kernel.tools.search_child import is_binary
from navigator_kernel.values.allowed import FETCH
from navigator_kernel.values.chat import GuardedTool, Result, ToolSpec
from navigator_kernel.values.mcp import OfferedTool
from navigator_kernel.values.rights import PAGES

SECONDS = 30.0  # time limit for a page
LARGEST = 8 * 1024 * 1024  # bytes of a page
SHOWN = 15_000  # characters of it for a model
READING, MEMORY = 20, 1024**3  # seconds, and bytes of memory, for turning a page into text
SCHEMA = 32 * 1024  # characters of a schema for a model
READER = "navigator_kernel.tools.html_child"
_PAGES = frozenset({"text/html", "application/xhtml+xml"})
_TEXT = lazy_compile(r"text/.*|application/(?:.*\+)?(?:json|xml|javascript|yaml|toml)")
_SUFFIX = lazy_compile(r"\.\w{1,8}")
_META = lazy_compile(r"<meta[^>]{0,200}charset=[\"']?([\w-]{1,40})")

Call: TypeAlias = "Callable[[str, str, Mapping[str, Any]], Coroutine[Any, Any, Mapping[str, Any]]]"


def fetching(
    spec: ToolSpec, target: Target, hosts: tuple[str, ...], keep: Callable[[str, bytes], str], question: str
) -> GuardedTool:
    """The tool for one call of `fetch`. `keep` stores a file with a suffix in the workspace and returns its place;
    `question` is the question to the person. One yes covers a host for a session, until the model has private data."""

    async def run(_arguments: Mapping[str, Any]) -> Result:
        try:
            return Result(await asyncio.to_thread(_page, target, hosts, keep))
        except KernelError as error:
            return Result(error=f"{error.message}{f' ({error.hint})' if error.hint else ''}")

    return GuardedTool(
        name=FETCH,
        spec=spec,
        run=run,
        confirm=question,
        only_reads=True,
        identity=f"{FETCH} {target.scheme}://{target.host}:{target.port}",
        right=f"{PAGES}{target.host}:{target.port}",
        facts={"url": target.url},
    )


def _page(target: Target, hosts: tuple[str, ...], keep: Callable[[str, bytes], str]) -> str:
    """The page as text; one that is over the limit or not text is stored as a file."""
    page = get(target.url, hosts, SECONDS, LARGEST)
    head = f"{page.url} ({page.kind}, {len(page.data):,} bytes)"
    if not (page.kind in _PAGES or _TEXT.fullmatch(page.kind)) or is_binary(page.data):
        suffix = PurePosixPath(urlsplit(page.url).path).suffix
        where = keep(suffix if _SUFFIX.fullmatch(suffix) else ".bin", page.data)
        return f"{head}\nit is not text, and is kept in {where}"
    text, title = _decoded(page), ""
    if page.kind in _PAGES:
        # The text and the title of a page
        child = ModuleChild(READER, memory=MEMORY)
        try:
            held = child.ask({"html": text, "url": page.url}, seconds=READING)
        except KernelError as error:
            raise UsageProblem(f"the page cannot be read: {error.message}", hint="ask for another page") from error
        finally:
            child.close()
        text, title = str(held["text"]), shorten(str(held["title"]), 200)
    text = clean(text)
    if len(text) > SHOWN:
        where = keep(".txt", text.encode("utf-8", "replace"))
        text = f"{text[:SHOWN]}\n… the whole text, {len(text):,} characters, is in {where}"
    return "\n".join([head, *([title] if title else []), "", text or "(the page has no text)"])


def _decoded(page: Page) -> str:
    said = _META.search(page.data[:2048].decode("ascii", "replace").lower()) if page.kind in _PAGES else None
    for charset in (page.charset, said[1] if said else ""):
        try:
            return page.data.decode(charset or "utf-8", "replace" if charset else "strict")
        except (LookupError, UnicodeDecodeError):
            continue
    return page.data.decode("utf-8", "replace")


def mcp_tools(
    approved: Sequence[OfferedTool],
    may: Callable[[OfferedTool], bool],
    call: Call,
    outward: Callable[[str], bool] = lambda _server: True,
) -> tuple[GuardedTool, ...]:
    """The tools of `approved` that `may` allows and whose schema a model can be shown, named `server__tool` (JIT-5);
    `outward` says whether a server may reach the network. Each call needs consent (JIT-12): what a server says of its
    own tool grants nothing, and only lets one yes cover a session."""
    return tuple(
        _mcp_tool(tool, call, outward=outward(tool.server)) for tool in approved if may(tool) and _shown(tool.schema)
    )


def _mcp_tool(tool: OfferedTool, call: Call, *, outward: bool) -> GuardedTool:
    async def run(arguments: Mapping[str, Any]) -> Result:
        """Calls the tool; if the server fails or asks something, the result says so."""
        try:
            answer = await call(tool.server, tool.name, arguments)
        except KernelError as error:
            return Result(error=f"{error.message}{f' ({error.hint})' if error.hint else ''}")
        texts = [item["text"] for item in answer.get("content", ()) if isinstance(item.get("text"), str)]
        if answer.get("is_error"):
            return Result(error="\n".join(texts) or "the tool says that it failed")
        return Result("\n".join(texts) if texts else answer.get("structured", list(answer.get("content", ()))))

    name, annotations = tool.full_name, tool.more.get("annotations")
    only_reads = isinstance(annotations, Mapping) and annotations.get("read_only_hint") is True
    return GuardedTool(
        name=name,
        spec=ToolSpec(name=name, description=clean(tool.description), schema=_cleaned(dict(tool.schema))),
        run=run,
        effects=() if only_reads else ("mcp",),
        confirm=f"Call {name}?",
        outward=outward,
        only_reads=only_reads,
        by_server=True,
        identity=tool.subject,  # the server and its whole description of the tool
    )


def _shown(schema: Mapping[str, Any]) -> bool:
    """Whether a schema is an object within the size limit and without outside references."""
    is_short = schema.get("type") == "object" and len(json.dumps(schema)) <= SCHEMA
    return is_short and all(reference.startswith("#") for reference in _references(schema))


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        value = list(value.values())
    for item in value if isinstance(value, list) else ():
        yield from _references(item)


def _cleaned(value: Any) -> Any:
    """The value with all texts cleaned."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(name), lines=False): _cleaned(item) for name, item in value.items()}
    return [_cleaned(item) for item in value] if isinstance(value, list) else value

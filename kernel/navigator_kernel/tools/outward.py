"""The tool `fetch`: gets a web page from a host that the person's policy names."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct

from navigator_kernel.adapters.processes.module_child import ModuleChild
from navigator_kernel.adapters.web import Page, Target, get
from navigator_kernel.errors import KernelError, UsageProblem
from navigator_kernel.text import clean, lazy_compile, shorten
from navigator_kernel.tools.search_child import is_binary
from navigator_kernel.tools.specs import specs
from navigator_kernel.values.allowed import FETCH
from navigator_kernel.values.chat import Result, ToolSpec
from navigator_kernel.values.mcp import OfferedTool
from navigator_kernel.values.rights import PAGES

SECONDS = 30.0  # time limit for a page
LARGEST = 8 * 1024 * 1024  # bytes of a page
SHOWN = 15_000  # characters of it for a model
READING, MEMORY = 20, 1024**3  # seconds, and bytes of memory, for turning a page into text
READER = "navigator_kernel.tools.html_child"
_PAGES = frozenset({"text/html", "application/xhtml+xml"})
_TEXT = lazy_compile(r"text/.*|application/(?:.*\+)?(?:json|xml|javascript|yaml|toml)")
_SUFFIX = lazy_compile(r"\.\w{1,8}")
_META = lazy_compile(r"<meta[^>]{0,200}charset=[\"']?([\w-]{1,40})")


class Fetching(Struct, frozen=True, kw_only=True):
    """Implements `model_ports.Tool` for one call. `keep` stores a file with a suffix in the workspace and returns its
    place; `question` is the question to the person."""

    target: Target
    hosts: tuple[str, ...]
    keep: Callable[[str, bytes], str]
    question: str
    name: str = FETCH
    effects: tuple[str, ...] = ()
    outward: bool = True
    only_reads: bool = True  # one yes covers a host for a session, until the model has private data

    @property
    def identity(self) -> str:
        return f"{FETCH} {self.target.scheme}://{self.target.host}:{self.target.port}"

    @property
    def right(self) -> str:
        """The word of a session's consent to pages of the host."""
        return f"{PAGES}{self.target.host}:{self.target.port}"

    @property
    def confirm(self) -> str:
        return self.question

    @property
    def spec(self) -> ToolSpec:
        return next(one for one in specs("en", self.hosts) if one.name == FETCH)

    @property
    def facts(self) -> Mapping[str, str]:
        """Facts for the audit log."""
        return {"url": self.target.url}

    async def run(self, _arguments: Mapping[str, Any]) -> Result:
        """Fetches the page as text; one that is over the limit or not text is stored as a file."""
        try:
            return Result(await asyncio.to_thread(self._page))
        except KernelError as error:
            return Result(error=f"{error.message}{f' ({error.hint})' if error.hint else ''}")

    def _page(self) -> str:
        page = get(self.target.url, self.hosts, SECONDS, LARGEST)
        head = f"{page.url} ({page.kind}, {len(page.data):,} bytes)"
        if not (page.kind in _PAGES or _TEXT.fullmatch(page.kind)) or is_binary(page.data):
            return f"{head}\nit is not text, and is kept in {self.keep(_suffix(page), page.data)}"
        text, title = _decoded(page), ""
        if page.kind in _PAGES:
            text, title = _readable(page.url, text)
        text = clean(text)
        if len(text) > SHOWN:
            where = self.keep(".txt", text.encode("utf-8", "replace"))
            text = f"{text[:SHOWN]}\n… the whole text, {len(text):,} characters, is in {where}"
        return "\n".join([head, *([title] if title else []), "", text or "(the page has no text)"])


def _readable(url: str, html: str) -> tuple[str, str]:
    """The text and the title of a page."""
    child = ModuleChild(READER, memory=MEMORY)
    try:
        held = child.ask({"html": html, "url": url}, seconds=READING)
    except KernelError as error:
        raise UsageProblem(f"the page cannot be read: {error.message}", hint="ask for another page") from error
    finally:
        child.close()
    return str(held["text"]), shorten(str(held["title"]), 200)


def _decoded(page: Page) -> str:
    said = _META.search(page.data[:2048].decode("ascii", "replace").lower()) if page.kind in _PAGES else None
    for charset in (page.charset, said[1] if said else ""):
        try:
            return page.data.decode(charset or "utf-8", "replace" if charset else "strict")
        except (LookupError, UnicodeDecodeError):
            continue
    return page.data.decode("utf-8", "replace")


def _suffix(page: Page) -> str:
    found = PurePosixPath(urlsplit(page.url).path).suffix
    return found if _SUFFIX.fullmatch(found) else ".bin"


# Approved tools of MCP servers as tools of a skill, named `server__tool` (JIT-5, JIT-12).

SCHEMA = 32 * 1024  # characters of a schema for a model
Call: TypeAlias = "Callable[[str, str, Mapping[str, Any]], Coroutine[Any, Any, Mapping[str, Any]]]"


class McpTool(Struct, frozen=True):
    """Implements `model_ports.Tool`. Each call needs consent: what a server says of its own tool grants nothing, and
    only lets one yes cover a session (see `tools.desk`). `outward` says that its server may reach the network,
    `by_server` that it is a server's tool."""

    offered: OfferedTool
    call: Call
    outward: bool = True
    by_server: bool = True

    @property
    def identity(self) -> str:
        """The subject of consent: the server and its whole description of the tool."""
        return self.offered.subject

    @property
    def name(self) -> str:
        return self.offered.full_name

    @property
    def spec(self) -> ToolSpec:
        held = self.offered
        return ToolSpec(name=self.name, description=clean(held.description), schema=_cleaned(dict(held.schema)))

    @property
    def effects(self) -> tuple[str, ...]:
        return () if self.only_reads else ("mcp",)

    @property
    def confirm(self) -> str:
        return f"Call {self.name}?"

    @property
    def only_reads(self) -> bool:
        """Whether the tool only reads, according to its server."""
        said = self.offered.more.get("annotations")
        return isinstance(said, Mapping) and said.get("read_only_hint") is True

    async def run(self, arguments: Mapping[str, Any]) -> Result:
        """Calls the tool; if the server fails or asks something, the result says so."""
        try:
            told = await self.call(self.offered.server, self.offered.name, arguments)
        except KernelError as error:
            return Result(error=f"{error.message}{f' ({error.hint})' if error.hint else ''}")
        texts = [item["text"] for item in told.get("content", ()) if isinstance(item.get("text"), str)]
        if told.get("is_error"):
            return Result(error="\n".join(texts) or "the tool says that it failed")
        return Result("\n".join(texts) if texts else told.get("structured", list(told.get("content", ()))))


def mcp_tools(
    kept: Sequence[OfferedTool],
    may: Callable[[OfferedTool], bool],
    call: Call,
    outward: Callable[[str], bool] = lambda _server: True,
) -> tuple[McpTool, ...]:
    """The tools of `kept` that `may` allows and whose schema a model can be shown; `outward` says whether a server may
    reach the network."""
    return tuple(McpTool(tool, call, outward(tool.server)) for tool in kept if may(tool) and _shown(tool.schema))


def _shown(schema: Mapping[str, Any]) -> bool:
    """Whether a schema is an object within the size limit and without outside references."""
    text = json.dumps(schema)
    return schema.get("type") == "object" and len(text) <= SCHEMA and not any(map(_leads_away, _references(schema)))


def _leads_away(reference: str) -> bool:
    return not reference.startswith("#")


def _references(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [found for held in value.values() for found in _references(held)]
    return [found for held in value for found in _references(held)] if isinstance(value, list) else []


def _cleaned(value: Any) -> Any:
    """The value with all texts cleaned."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(name), lines=False): _cleaned(held) for name, held in value.items()}
    return [_cleaned(held) for held in value] if isinstance(value, list) else value

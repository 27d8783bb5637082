"""A configured MCP server, and the tools that it offers."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from msgspec import Struct, field

from navigator_kernel.errors import UsageProblem
from navigator_kernel.text import lazy_compile

CONNECT = 30.0  # seconds for a server to start
NAME = lazy_compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._-]{0,62}[A-Za-z0-9])?")
LONGEST = 64  # characters of a tool's name that model services accept
PinState = Literal["approved", "new", "changed", "shadowing", "suspicious"]

_ODD = lazy_compile(r"[^A-Za-z0-9-]+|_+")
_REFERENCE = lazy_compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]{0,2000}))?\}")


class McpServer(NamedTuple):
    """`network` means that it may use the network, which the person's own settings grant. A server with a `url` is
    called over streamable HTTP. `${NAME}` in any text stands for an environment variable or a secret in the keyring."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = MappingProxyType({})
    network: bool = False
    url: str = ""
    headers: Mapping[str, str] = MappingProxyType({})
    connect: float = CONNECT
    origin: str = "settings"

    @property
    def digest(self) -> str:
        """The digest of everything that decides what is started or called; references count as they are written."""
        body = [self.command, list(self.args), dict(self.env), self.url, dict(self.headers)]
        return f"sha256:{hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()}"

    def resolved(self, secret: Any) -> McpServer:
        """Resolves references with `secret(name)`; UsageProblem for one without a value."""

        def value(hit: re.Match[str]) -> str:
            known = secret(hit[1])
            if known is None and hit[2] is None:
                hint = f"export {hit[1]}=…, or keep it in the keyring"
                raise UsageProblem(f"the variable {hit[1]} is not set", hint=hint)
            return str(hit[2] if known is None else known)

        def filled(text: str) -> str:
            return _REFERENCE.sub(value, text)

        return self._replace(
            command=filled(self.command),
            args=tuple(map(filled, self.args)),
            env={name: filled(value) for name, value in self.env.items()},
            url=filled(self.url),
            headers={name: filled(value) for name, value in self.headers.items()},
        )

    def to_dict(self) -> dict[str, Any]:
        """The server as an entry of a file in the common format."""
        if self.url:
            held: dict[str, Any] = {"type": "http", "url": self.url, "headers": dict(self.headers)}
        else:
            held = {"command": self.command, "args": list(self.args), "env": dict(self.env), "network": self.network}
        return {name: value for name, value in held.items() if value not in ({}, [], False)}


class OfferedTool(Struct, frozen=True, kw_only=True):
    """A server's description of a tool: untrusted text."""

    server: str
    name: str
    description: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def full_name(self) -> str:
        """`server__tool` in characters that model services accept; a long or changed name ends in a digest."""
        whole = f"{_plain(self.server)}__{_plain(self.name)}"
        if len(whole) <= LONGEST and _plain(self.name) == self.name:
            return whole
        mark = hashlib.sha256("\0".join((self.server, self.name)).encode()).hexdigest()[:8]
        return f"{whole[: LONGEST - 9]}_{mark}"

    @property
    def digest(self) -> str:
        """The digest of its server, name, description, schema and all other facts about it."""
        body = [self.server, self.name, self.description, self.schema, {k: v for k, v in self.more.items() if v}]
        return f"sha256:{hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()}"

    @property
    def subject(self) -> str:
        """The subject of consent to it."""
        return f"mcp_tool:{self.full_name}@{self.digest}"

    def to_dict(self) -> dict[str, Any]:
        """Everything in the tool's digest except the server."""
        more = {name: value for name, value in self.more.items() if value}
        held = {"name": self.name, "description": self.description, "schema": dict(self.schema)}
        return {**held, "more": more} if more else held

    @classmethod
    def from_dict(cls, server: str, held: Mapping[str, Any]) -> OfferedTool:
        about = {name: held[name] for name in ("name", "description", "schema", "more") if name in held}
        return cls(server=server, **about)


def server_from(name: str, body: Any, origin: str = "settings") -> McpServer:
    """Parses an entry of `mcpServers` or `[mcp.servers]`; UsageProblem if it is invalid."""
    if not NAME.fullmatch(name) or "__" in name:
        raise UsageProblem(f"{name!r} is not an MCP server name", hint="letters, digits, '-', '_', '.', at most 64")
    if not isinstance(body, Mapping):
        raise UsageProblem(f"MCP server {name!r} has invalid settings", hint="a table with a command, or a url")
    kind, url = str(body.get("type", body.get("transport", ""))), body.get("httpUrl", body.get("url", ""))
    command = body.get("command", "")
    if kind == "sse":
        said = f"MCP server {name!r} uses SSE, a transport that MCP has removed"
        raise UsageProblem(said, hint="use its streamable HTTP address")
    if not isinstance(command, str) or not isinstance(url, str) or bool(command) == bool(url):
        hint = f'[mcp.servers.{name}] command = "…", or url'
        raise UsageProblem(f"MCP server {name!r} needs either a command or a url", hint=hint)
    args, env, headers = (
        body.get("args", []),
        body.get("env") or {},
        body.get("headers", body.get("http_headers")) or {},
    )
    network, connect = body.get("network", False), body.get("connect", CONNECT)
    tables = isinstance(args, list) and isinstance(env, Mapping) and isinstance(headers, Mapping)
    numbers = isinstance(connect, int | float) and not isinstance(connect, bool) and 0 < connect <= 600
    if not tables or not isinstance(network, bool) or not numbers:
        hint = "args is a list, env and headers are tables, network true or false, connect seconds"
        raise UsageProblem(f"MCP server {name!r} has invalid settings", hint=hint)
    if url and not url.startswith(("http://", "https://", "${")):
        raise UsageProblem(
            f"MCP server {name!r} has no http:// or https:// address", hint=f'[mcp.servers.{name}] url = "https://…"'
        )
    return McpServer(command, tuple(map(str, args)), _texts(env), network, url, _texts(headers), float(connect), origin)


def _texts(table: Mapping[Any, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in table.items()}


def _plain(name: str) -> str:
    return _ODD.sub("_", name).strip("_") or "x"

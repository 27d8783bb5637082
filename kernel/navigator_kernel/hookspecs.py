"""The hooks that a plugin may implement. Each takes what it needs of its arguments, and states which result wins.

A hook returns values or objects with async methods, never a coroutine. The kernel calls each implementation
separately: one that raises is reported and left out, and the others still run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from navigator_kernel.model_ports import Encoder, Tool
    from navigator_kernel.ports import (
        Agent,
        AgentPorts,
        Catalogue,
        Dispatcher,
        DispatchPorts,
        ProjectPorts,
        Router,
        SharedStores,
    )
    from navigator_kernel.values.http.endpoint import Endpoint
    from navigator_kernel.values.reply import Notice, Reply
    from navigator_kernel.values.resource import Diagnostic

PROJECT = "navigator"  # also the name of the entry point group

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def kernel_register_agents(ports: AgentPorts) -> Iterable[Agent]:
    """Returns subagents. All are used; if two have the same name, the first registered wins."""
    return ()


@hookspec
def kernel_register_sources(root: Path) -> Iterable[Path]:
    """Returns folders of skills for the project at `root`. All are used."""
    return ()


@hookspec
def kernel_register_tools(root: Path) -> Iterable[Tool]:
    """Returns tools for the project at `root`, which models may call for skills that declare them. All are used; if two
    have the same name, the first registered wins."""
    return ()


@hookspec
def kernel_register_tools_and_endpoints(project: ProjectPorts) -> Iterable[Tool | Endpoint]:
    """Returns tools for models, and endpoints for `navigator serve` (`values.http.endpoint`), that keep files of their
    own or encode texts. An endpoint has a path below `/api/` or `/<plugin>`, a role, and a `service`, its handler's
    first argument; without one that is `ports.ServedTurns`, the turns of the server. A handler that streams returns a
    `values.http.sse.EventStream`. All are used, tools after those of `kernel_register_tools`, endpoints after the
    kernel's; if two have the same name, or two endpoints the same method and path, the first registered wins."""
    return ()


@hookspec(firstresult=True)
def kernel_register_routers(catalogue: Catalogue) -> Router | None:
    """Returns a router that replaces the kernel's. The first result that is not None wins."""


@hookspec(firstresult=True)
def kernel_register_encoders(root: Path) -> Encoder | None:
    """Returns an encoder that replaces the shipped one: `id`, `dimensions`, and `encode(texts, kind)` with the kinds
    query, document and word. The first result that is not None wins; if it fails, the router matches words only."""


@hookspec(firstresult=True)
def kernel_register_dispatchers(agents: Mapping[str, Agent], ports: DispatchPorts) -> Dispatcher | None:
    """Returns a dispatcher that replaces the in-process one; an implementation may leave out either argument. Its
    `submit` may return None, which leaves the packet to the kernel's own; a KernelError of `submit` or `result` becomes
    the report, and one of the hook itself is the command's error. The first result that is not None wins."""


@hookspec(firstresult=True)
def kernel_register_stores(project: ProjectPorts) -> SharedStores | None:
    """Returns a database in which hosts share the state of the project that NAVIGATOR_PROJECT_ID names; asked only if
    it is set, and only of installed packages. The first result that is not None wins; without one nothing works, so
    that no host goes on alone. A KernelError of the hook is the command's error."""


@hookspec
def kernel_register_commands(root: Path) -> Iterable[Any]:
    """Returns click commands for the command line. All are used; the kernel's own commands cannot be replaced."""
    return ()


@hookspec
def kernel_scan_skill(skill: Mapping[str, bytes]) -> Iterable[Diagnostic]:
    """Returns findings about a skill before it is installed, given as path → content. A finding of level `error` blocks
    it. All are used; if a scanner fails, the skill counts as not scanned, never as clean."""
    return ()


@hookspec(firstresult=True)
def kernel_precheck(count: int) -> Notice | None:
    """Returns a notice for the first turn of a session, given the number of installed skills. The first result that is
    not None wins."""


@hookspec
def kernel_finish_turn(reply: Reply) -> None:
    """Called after every turn; the result is ignored."""

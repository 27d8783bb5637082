"""The hooks that a plugin may implement; each takes one value, and each says who wins.

A hook returns values, or objects with async methods: never a coroutine. The kernel calls each implementation by
itself, so one that raises is named and left out while the others go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from navigator_kernel.model_ports import Encoder, Tool
    from navigator_kernel.ports import Agent, AgentPorts, Catalogue, Dispatcher, Router
    from navigator_kernel.values.reply import Notice, Reply
    from navigator_kernel.values.resource import Diagnostic

PROJECT = "navigator"  # the name of the entry point group, too

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def kernel_register_agents(ports: AgentPorts) -> Iterable[Agent]:
    """Subagents to add, looked up by name. All are taken; of one name, the first registered wins."""
    return ()


@hookspec
def kernel_register_sources(root: Path) -> Iterable[Path]:
    """Folders of skills that the plugin brings, for the project at `root`. All are taken."""
    return ()


@hookspec
def kernel_register_tools(root: Path) -> Iterable[Tool]:
    """Tools that models may call for skills which declare them, for the project at `root`. All are taken; of one name,
    the first registered wins."""
    return ()


@hookspec(firstresult=True)
def kernel_register_routers(catalogue: Catalogue) -> Router | None:
    """A router to use in place of the kernel's. The first that is not None wins."""


@hookspec(firstresult=True)
def kernel_register_encoders(root: Path) -> Encoder | None:
    """An encoder to use in place of the shipped one: an `id`, `dimensions`, and `encode(texts, kind)` with kind query,
    document or word. The first that is not None wins; one that fails is left out, and words decide."""


@hookspec(firstresult=True)
def kernel_register_dispatchers(agents: Mapping[str, Agent]) -> Dispatcher | None:
    """A dispatcher to use in place of the one in this process. The first that is not None wins."""


@hookspec
def kernel_register_commands(root: Path) -> Iterable[Any]:
    """click commands for the command line. All are taken; the kernel's own names cannot be replaced."""
    return ()


@hookspec
def kernel_scan_skill(skill: Mapping[str, bytes]) -> Iterable[Diagnostic]:
    """Findings about a skill that is about to be installed, given as path → content; one of level `error` blocks it.
    All are taken; a scanner that fails means "not scanned", never "clean"."""
    return ()


@hookspec(firstresult=True)
def kernel_precheck(count: int) -> Notice | None:
    """A notice for the first turn of a session, given how many skills the person installed. The first that is not None
    wins."""


@hookspec
def kernel_finish_turn(reply: Reply) -> None:
    """Told of every finished turn; what is returned is not used."""

"""A process that is to run, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Actor = Literal["type_a", "shell", "script", "mcp_server"]  # rows of the authority table that start processes

Exceeded = Literal["", "disk"]  # a limit that ends a process although its time is not over

OUTPUT_LIMIT = 1024 * 1024  # bytes kept of each stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """`argv` is never joined into a shell line. `digest` is what a consent is bound to; `shipped` work needs none.

    `cwd` is the run's own folder and the only one written to; `reads` are the paths it may see besides.
    """

    actor: Actor
    subject: str
    digest: str
    run: str
    argv: tuple[str, ...]
    cwd: Path
    timeout: float
    shipped: bool = False
    reads: tuple[Path, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`exit_code` is 128 and more for a signal, as a shell has it, and None where it did not end by itself: time ran
    out, or `exceeded` names the limit that it went over. `truncated` says output was cut."""

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    elapsed: float
    timed_out: bool = False
    truncated: bool = False
    exceeded: Exceeded = ""

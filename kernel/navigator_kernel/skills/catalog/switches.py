"""Stores which skills a person disabled, their profiles, and how often each skill was used, in their state of the
project; the skills' files never change."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from navigator_kernel.adapters.files.database import file_lock
from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.errors import Damaged, KernelError, Refused
from navigator_kernel.text import fold

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from navigator_kernel.ports import Writer


_SIZE_LIMIT = 4 * 1024 * 1024  # bytes


class Switches(Struct, frozen=True, kw_only=True):
    """The `disabled` names, the named sets of skills, the `profile` in use, and what was disabled `before` it."""

    disabled: frozenset[str]
    profiles: Mapping[str, tuple[str, ...]] = {}
    profile: str = ""
    before: frozenset[str] = frozenset()
    v: int = 1


def read_switches(state: Path) -> Switches:
    """The person's switches; Damaged if the file cannot be read."""
    path = switches_path(state)
    try:
        return msgspec.json.decode(read_bounded(path, _SIZE_LIMIT), type=Switches)
    except FileNotFoundError:
        return Switches(disabled=frozenset())
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, Refused) as error:
        hint = "fix or remove the file; without it every skill is on"
        raise Damaged(f"{str(path)!r} cannot be read", hint=hint, path=str(path)) from error


def change_switches(state: Path, writer: Writer, change: Callable[[Switches], Switches]) -> bool:
    """Writes what `change` makes of the switches, and returns whether that was a change."""
    writer.make_folder(state)
    with file_lock(state / "disabled.lock"):
        before = read_switches(state)
        after = change(before)
        if before == after:
            return False
        text = msgspec.json.format(msgspec.json.encode(after, order="deterministic"), indent=1)
        writer.write(switches_path(state), text + b"\n")
    return True


def switches_path(state: Path) -> Path:
    return state / "disabled.json"


_USAGE_SIZE_LIMIT = 4 * 1024 * 1024  # bytes


def use_counts(state: Path) -> Mapping[str, int]:
    """Uses by case-folded name; empty if the file cannot be read, as a bonus must not fail a search."""
    return read_uses(state / "usage.json") or {}


def add_use(state: Path, name: str, writer: Writer) -> int:
    """Counts one more use of `name` and returns how many there are now. A file that cannot be read is left as it is
    (X-38): then nothing is counted, and the result is 0."""
    writer.make_folder(state)
    with file_lock(state / "usage.lock"):
        counted = read_uses(state / "usage.json")
        if counted is None:
            return 0
        uses = counted.get(fold(name), 0) + 1
        counts = dict(sorted({**counted, fold(name): uses}.items()))
        text = json.dumps({"v": 1, "uses": counts}, ensure_ascii=False, indent=1)
        writer.write(state / "usage.json", f"{text}\n".encode())
    return uses


def read_uses(path: Path) -> dict[str, int] | None:
    """Reads the file; empty if it does not exist, None if it cannot be read."""
    try:
        uses = json.loads(read_bounded(path, _USAGE_SIZE_LIMIT))["uses"].items()
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, KernelError):
        return None
    counts: dict[str, int] = {}
    for name, count in uses:
        if type(count) is int and count > 0:
            counts[fold(name)] = counts.get(fold(name), 0) + count
    return counts

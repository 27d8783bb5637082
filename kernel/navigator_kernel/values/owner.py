"""Whose sessions, runs and files these are: each token of the gateway owns what its sessions made, the person the rest.

A token's sessions begin with its id, and the names of its runs and of the folders of its files end with it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from navigator_kernel.text import lazy_compile

_TOKEN = lazy_compile(r"t[0-9a-f]{8}")
_WORKSPACE = ("mybox", "workspace")
_STORED = ("mybox", "workflows")  # stored workflows are for everybody who may use the project


_VIEWER: ContextVar[str] = ContextVar("who takes this turn", default="")


@contextmanager
def viewing(token: str) -> Iterator[None]:
    """Until the end of the block, the turn of this task is taken by `token`, or by the person if it is ""."""
    before = _VIEWER.set(token)
    try:
        yield
    finally:
        _VIEWER.reset(before)


def viewer() -> str:
    """Who takes the turn of this task: the id of a token, or "" for the person."""
    return _VIEWER.get()


def owner_of_session(session: str) -> str:
    """The token that the session belongs to, or ""."""
    token, dot, _ = session.partition(".")
    return token if dot and _TOKEN.fullmatch(token) else ""


def owned(name: str, token: str) -> str:
    """The name of a run, or of a folder in `mybox/workspace`, that belongs to `token`."""
    return f"{name}-{token}" if token else name


def owner_of_run(run: str) -> str:
    """The token that the run belongs to, or ""."""
    token = run.rpartition("-")[2]
    return token if _TOKEN.fullmatch(token) else ""


def is_closed(parts: Sequence[str], token: str) -> bool:
    """Whether the path `parts`, relative to the project, is closed to a turn of `token`: in `mybox` everything but that
    token's own folders in `mybox/workspace`, and stored workflows. Nothing is closed to the person."""
    folded = tuple(part.casefold() for part in parts)
    if not token or folded[:1] != _WORKSPACE[:1] or folded[:2] == _STORED:
        return False
    return folded[:2] != _WORKSPACE or len(folded) < 3 or folded[2].rpartition("-")[2] != token


# What is looked up once while a message is understood, so that all of it sees one state of the project

Looked = TypeVar("Looked")
_KNOWN: ContextVar[dict[Hashable, Any] | None] = ContextVar("what was looked up for this message", default=None)


@contextmanager
def one_look() -> Iterator[None]:
    """Until the end of the outermost block, this task looks each thing up once."""
    before = _KNOWN.set({} if (known := _KNOWN.get()) is None else known)
    try:
        yield
    finally:
        _KNOWN.reset(before)


def looked_up(key: Hashable, look: Callable[[], Looked]) -> Looked:
    """What `look` returns; within `one_look` it is called once for each key."""
    known: dict[Hashable, Looked] | None = _KNOWN.get()
    if known is None:
        return look()
    if key not in known:
        known[key] = look()
    return known[key]

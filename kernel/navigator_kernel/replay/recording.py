"""Records every answer that came into a turn, in order, with its port, and replays them."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from navigator_kernel import errors
from navigator_kernel.errors import KernelError

T = TypeVar("T")
VERSION = 1
MOST = 8 * 1024 * 1024  # characters of one tape; a longer one is not kept
TURNS = 10_000  # cycles of the event loop to wait until an answer is next on the tape


class Form(NamedTuple):
    """How a value is encoded as JSON values, and decoded again."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


PLAIN = Form(lambda value: value, lambda held: held)


class ReplayMismatch(KernelError):
    """A replayed turn asks for something that was not recorded."""

    code = "departed"


class Tape(Protocol):
    """Records or replays every port of a turn."""

    @property
    def playing(self) -> bool:
        """Whether the tape replays: nothing is carried out, because the results are known."""

    def heard(self, door: str, ask: Callable[[], T], form: Form = PLAIN) -> T: ...

    async def awaited(self, door: str, ask: Callable[[], Awaitable[T]], form: Form) -> T: ...


class Recorder:
    """Records the answers that come into a turn, one turn after another."""

    playing = False

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] | None = None

    def begin(self) -> None:
        self.lines = []

    def end(self) -> list[dict[str, Any]]:
        """Ends the recording and returns all its lines."""
        lines, self.lines = self.lines or [], None
        return lines

    def heard(self, door: str, ask: Callable[[], T], form: Form = PLAIN) -> T:
        try:
            value = ask()
        except KernelError as error:
            self._keep(door, error=_told(error))
            raise
        self._keep(door, value=form.encode(value))
        return value

    async def awaited(self, door: str, ask: Callable[[], Awaitable[T]], form: Form) -> T:
        try:
            value = await ask()
        except KernelError as error:
            self._keep(door, error=_told(error))
            raise
        self._keep(door, value=form.encode(value))
        return value

    def _keep(self, door: str, **line: Any) -> None:
        if self.lines is not None:
            self.lines.append({"door": door, **line})


class Replayer:
    """Repeats the recorded answers. Awaited answers come in the order in which they were recorded."""

    playing = True

    def __init__(self, lines: list[Mapping[str, Any]]) -> None:
        self._held: dict[str, deque[Mapping[str, Any]]] = defaultdict(deque)
        self._order = deque(str(line["door"]) for line in lines if _is_awaited(str(line["door"])))
        for line in lines:
            self._held[str(line["door"])].append(line)

    def heard(self, door: str, ask: Callable[[], T], form: Form = PLAIN) -> T:  # noqa: ARG002 - as in `Tape`
        return self._next(door, form)  # type: ignore[no-any-return]  # the recorded value

    async def awaited(self, door: str, ask: Callable[[], Awaitable[T]], form: Form) -> T:  # noqa: ARG002 - as in `Tape`
        for _ in range(TURNS):
            if not self._held[door] or self._order[0] == door:
                break
            await asyncio.sleep(0)
        if self._order and self._order[0] == door:
            self._order.popleft()
        return self._next(door, form)  # type: ignore[no-any-return]  # the recorded value

    def _next(self, door: str, form: Form) -> Any:
        if not self._held[door]:
            raise ReplayMismatch(
                f"nothing more was recorded at {door!r}", hint="the turn differs from the recording now"
            )
        line = self._held[door].popleft()
        if "error" in line:
            raise _raised(line["error"])
        return form.decode(line["value"])


AWAITED = ("report:", "model:", "tool:")


def _is_awaited(door: str) -> bool:
    return door.startswith(AWAITED)


def _told(error: KernelError) -> dict[str, Any]:
    return {"type": type(error).__name__, "message": error.message, "hint": error.hint, "data": dict(error.data)}


def _raised(held: Mapping[str, Any]) -> KernelError:
    kind = getattr(errors, str(held["type"]), KernelError)
    kind = kind if isinstance(kind, type) and issubclass(kind, KernelError) else KernelError
    return kind(str(held["message"]), hint=str(held["hint"]), **dict(held["data"]))

"""Guards calls into plugins: what one raises is an ordinary error, what hangs is left behind, what one prints goes to
stderr. `Plugins.call` and `Plugins.run` are the only ways into a plugin; they name it, and call these functions."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any, TextIO, TypeVar, cast

from navigator_kernel.errors import TimedOut

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future

SECONDS = "NAVIGATOR_PLUGIN_SECONDS"
_USUAL = 10.0
T = TypeVar("T")

# Set if code may write to stdout: what opens a stream like the given one on another descriptor. Only `main` sets it, so
# that it is None in threads that plugins start, and in programs that use the library, whose stdout is left alone
_may_print: ContextVar[Callable[[TextIO, int], TextIO] | None] = ContextVar("may_print", default=None)
_kept: list[_Stdout] = []  # the stdout of this process while it is kept from plugins
_HUNG: set[tuple[str, str]] = set()  # calls that may still run: a process does not wait for them twice, nor at its end


class Hung(TimedOut):
    """A plugin has not answered within its time; the call may still run."""


def limit() -> float:
    """Seconds that a plugin has for its import and for each hook."""
    try:
        return max(float(os.environ.get(SECONDS, "")), 0.1)
    except ValueError:
        return _USUAL


def call(plugin: str, hook: str, function: Callable[..., T], *given: Any, seconds: float = 0.0) -> T:
    """Calls `function` on a thread of its own. Hung after `seconds`, by default `limit()`, and at once if the same hook
    hung before; an exit or another BaseException becomes a RuntimeError."""
    from concurrent.futures import Future, wait
    from threading import Thread

    if (plugin, hook) in _HUNG:
        raise Hung("it did not answer before")
    keep_stdout()
    done: Future[T] = Future()

    def work() -> None:
        try:
            _may_print.set(None)
            done.set_result(function(*given))
        except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
            done.set_exception(as_error(error))

    Thread(target=copy_context().run, args=(work,), name=f"navigator-plugin {plugin}", daemon=True).start()
    seconds = seconds or limit()
    if not wait([done], seconds).done:
        raise _hung(plugin, hook, seconds)
    return done.result()


async def run(plugin: str, loop: PluginLoop, function: Callable[[], Awaitable[T]], seconds: float) -> T:
    """Awaits what `function` returns in `loop`. Hung after `seconds`; other errors as in `call`."""
    import asyncio

    keep_stdout()
    future = loop.start(function)
    waiting = asyncio.wrap_future(future)
    try:
        await asyncio.wait([waiting], timeout=seconds)
    except asyncio.CancelledError:
        future.cancel()
        raise
    if not waiting.done():
        future.cancel()
        raise _hung(plugin, "", seconds)  # the loop goes on, so the hook may be called again
    if waiting.cancelled():
        raise RuntimeError("it cancelled itself")
    return waiting.result()


def as_error(error: BaseException) -> Exception:
    """`error`, or a RuntimeError for one that would end the program or a thread."""
    if isinstance(error, Exception):
        return error
    return RuntimeError(f"it called for {type(error).__name__} ({error})").with_traceback(error.__traceback__)


class PluginLoop:
    """An event loop in a daemon thread, which ends when nothing refers to this object any more."""

    def __init__(self, name: str) -> None:
        import asyncio
        import threading
        import weakref

        self._loop = asyncio.new_event_loop()
        threading.Thread(target=_run_loop, args=(self._loop,), name=name, daemon=True).start()
        weakref.finalize(self, _stop, self._loop).atexit = False

    def start(self, function: Callable[[], Awaitable[T]]) -> Future[T]:
        import asyncio

        return asyncio.run_coroutine_threadsafe(_answered(function), self._loop)

    def answers(self) -> bool:
        """Whether the loop still responds."""
        import threading

        turned = threading.Event()
        self._loop.call_soon_threadsafe(turned.set)
        return turned.wait(0.2)


async def _answered(function: Callable[[], Awaitable[T]]) -> T:
    from asyncio import CancelledError

    _may_print.set(None)
    try:
        return await function()
    except CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
        raise as_error(error) from None


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Runs the loop until it is stopped, then cancels the remaining tasks and waits for their end."""
    import asyncio

    loop.run_forever()
    if tasks := asyncio.all_tasks(loop):
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
    loop.close()


def _stop(loop: asyncio.AbstractEventLoop) -> None:
    with suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(loop.stop)


def _hung(plugin: str, hook: str, seconds: float) -> Hung:
    _HUNG.add((plugin, hook))
    return Hung(f"it has not answered within {seconds:g} s", hint=f"{SECONDS}=60 waits longer")


class _Stdout:
    """`sys.stdout` while plugins are loaded: the kernel writes to `own`, everyone else to stderr."""

    def __init__(self, own: Any, reopened: Callable[[TextIO, int], TextIO]) -> None:
        self.replaced, self.own = own, own
        if own.fileno() == 1 and not own.isatty():  # what plugins' processes and libraries write goes to stderr, too
            own.flush()
            self.own = reopened(own, os.dup(1))
            os.dup2(2, 1)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own if _may_print.get() else sys.stderr, name)


def own_stdout(reopened: Callable[[TextIO, int], TextIO]) -> None:
    """Says that the caller and what it calls may write to stdout, and plugins may not."""
    _may_print.set(reopened)


def keep_stdout() -> None:
    """Keeps stdout from plugins, from their first call on, if `own_stdout` was called."""
    reopened = _may_print.get()
    if reopened is not None and not _kept:
        with suppress(OSError, ValueError):  # stdout is closed, or has no descriptor
            _kept.append(_Stdout(sys.stdout, reopened))
            sys.stdout = cast("TextIO", _kept[0])


def give_stdout() -> None:
    """Gives stdout to the command of a plugin."""
    for kept in _kept:
        kept.own.flush()
        if kept.own is not kept.replaced:
            os.dup2(kept.own.fileno(), 1)
        sys.stdout = kept.replaced
    _kept.clear()
    _may_print.set(None)


def leave_plugins(code: int) -> bool:
    """Whether the process must end without its threads, because a plugin hangs. If plugins were loaded, ends it with
    `code` in any case when they have had their time, also if their exit handlers hang."""
    _may_print.set(None)  # for what they print at exit
    if _kept or _HUNG:
        import threading

        late = threading.Timer(limit(), os._exit, (code,))
        late.daemon = True
        late.start()
    return bool(_HUNG)

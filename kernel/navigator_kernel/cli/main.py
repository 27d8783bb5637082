"""The entry point: runs a command line, prints its error, and returns the exit code."""

from __future__ import annotations

import atexit
import gc
import io
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, TextIO

from navigator_kernel import guard
from navigator_kernel.errors import UNWRITABLE, Interrupted, KernelError
from navigator_kernel.text import clean

NO_HOME = "/nonexistent"  # Debian's name for it
_GARBAGE = 500_000  # new objects before a garbage collection


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the command line and ends the process with its exit code.

    Objects live as long as the process, so a search for garbage would only add a tenth to the time of a short command.
    """
    gc.set_threshold(_GARBAGE)
    args = list(sys.argv[1:] if argv is None else argv)
    # Opens the standard streams, with encodings that never fail. A closed one becomes the null device, so that no
    # file that is opened later gets its number: as stdin it is empty, and as stdout it refuses what is written.
    if sys.stdin is None:
        sys.stdin = open(os.open(os.devnull, os.O_RDONLY), encoding="utf-8", closefd=False)  # noqa: SIM115 - open to the end
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    sys.stdout = _opened(sys.stdout, os.O_RDONLY, is_needed=True)
    sys.stderr = _opened(sys.stderr, os.O_WRONLY, is_needed=False)
    if not os.environ.get("HOME", "/").startswith("/"):  # a folder of the clone that the command runs in
        del os.environ["HOME"]
    if os.path.expanduser("~") == "~":  # noqa: PTH111 - neither HOME nor the list of users names one, as in a container
        os.environ["HOME"] = NO_HOME
    guard.own_stdout(_reopened)
    # Ends the process like `sys.exit`, but without the interpreter's cleanup, which takes 8 ms. If a thread is still
    # running that is not a plugin's, or the output cannot be written, calls `sys.exit` itself.
    code = run(args)
    gc.freeze()  # no garbage collection at exit either
    with suppress(OSError):
        sys.stdout.flush()
    threads = sys.modules.get("threading")
    if guard.leave_plugins(code) or threads is None or threads.active_count() == 1:
        atexit._run_exitfuncs()  # noqa: SLF001 - it has no public name, and `os._exit` would leave it out
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    sys.exit(code)


class OutputLost(Exception):
    """What the command prints on stdout cannot be written: the stream is closed, or its disk is full."""


class _Output(io.FileIO):
    """A standard stream, without ownership of its descriptor. What stderr cannot take is dropped: no work fails because
    of a note."""

    def __init__(self, descriptor: int, *, is_needed: bool) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._is_needed = is_needed

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if not self._is_needed:
                return len(data)
            if isinstance(error, BrokenPipeError):
                raise
            raise OutputLost(f"cannot write to stdout: {error.strerror}") from error


def _opened(stream: TextIO | None, if_closed: int, *, is_needed: bool) -> TextIO:
    if stream is None:
        raw = _Output(os.open(os.devnull, if_closed), is_needed=is_needed)
        return io.TextIOWrapper(raw, "utf-8", "backslashreplace", write_through=True)
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    return _output(stream.fileno(), stream, is_needed=is_needed)


def _output(descriptor: int, like: io.TextIOWrapper, *, is_needed: bool) -> TextIO:
    raw = _Output(descriptor, is_needed=is_needed)
    lines, at_once = like.line_buffering, like.write_through
    buffer = raw if at_once else io.BufferedWriter(raw)
    return io.TextIOWrapper(buffer, like.encoding, "backslashreplace", line_buffering=lines, write_through=at_once)


def _reopened(stdout: TextIO, descriptor: int) -> TextIO:
    """A stream like `stdout` on another descriptor of the same file."""
    return _output(descriptor, stdout, is_needed=True) if isinstance(stdout, io.TextIOWrapper) else stdout


def run(args: list[str]) -> int:
    """Runs one command line, prints its error, and returns its exit code."""
    try:
        code = _run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        return 0
    except OutputLost as error:
        _drop_output()
        return _told({"msg": str(error), "exit_code": 1}, args, as_json=False)
    return code


def _drop_output() -> None:
    """Sends what is still to be written to stdout nowhere, so that the end of the process does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(args: list[str]) -> int:
    as_json = "--json" in args[: args.index("--")] if "--" in args else "--json" in args
    try:
        if args[:1] == ["route"] and args[1:] and not any(word.startswith("-") for word in args):
            from navigator_kernel.cli.project import App  # without the command-line parser, which takes as long
            from navigator_kernel.cli.route.routed import answer

            outcome: int | Mapping[str, Any] = answer(App(), " ".join(args[1:]))
        else:
            from navigator_kernel.cli.registry import invoke

            outcome = invoke(args)  # the exit code, or the error in the arguments
        return outcome if isinstance(outcome, int) else _told(outcome, args, as_json=as_json)
    except KernelError as error:
        return _told({**error.to_dict(), **_closed_home(error)}, args, as_json=as_json)
    except KeyboardInterrupt:
        return _told(Interrupted("stopped", hint="nothing is half-written").to_dict(), args, as_json=as_json)
    except (BrokenPipeError, OutputLost):
        raise
    except Exception as error:
        if os.environ.get("NAVIGATOR_DEBUG") == "1":
            raise
        kind = type(error).__name__
        body = {"type": kind, "code": "internal", "msg": f"{kind}: {error}", "exit_code": 1}
        return _told({**body, "hint": "NAVIGATOR_DEBUG=1 shows where"}, args, as_json=as_json)


def _closed_home(error: KernelError) -> dict[str, str]:
    """The hint for a file of the person's own folders that cannot be written: the variables that name other folders."""
    from navigator_kernel.config.settings import user_cache, user_state

    path = str(error.data.get("path", "")) if error.data.get("errno") in UNWRITABLE else ""
    if not path.startswith((str(user_state()), str(user_cache()))):
        return {}
    return {"hint": "XDG_STATE_HOME and XDG_CACHE_HOME name folders that you can write to"}


def _told(error: Mapping[str, Any], args: Sequence[str], *, as_json: bool) -> int:
    """Prints the error, for a person in their language; returns its exit code."""
    if as_json:
        from navigator_kernel.cli.output import document

        document({"error": dict(error), "exit_code": error["exit_code"]})
    else:
        from navigator_kernel.cli.project import spoken_in
        from navigator_kernel.language.chinese import in_language

        language = spoken_in(args)
        for label, text in (("error: ", str(error["msg"])), ("hint: ", str(error.get("hint", "")))):
            sys.stderr.write(f"{in_language(label, language)}{clean(in_language(text, language))}\n" if text else "")
    return int(error["exit_code"])


if __name__ == "__main__":
    main()

"""The entry point: runs a command line, prints its error, and returns the exit code."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from navigator_kernel import guard
from navigator_kernel.errors import Interrupted, KernelError
from navigator_kernel.text import clean

_GARBAGE = 500_000  # new objects before a garbage collection


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the command line and ends the process with its exit code.

    Objects live as long as the process, so a search for garbage would only add a tenth to the time of a short command.
    """
    gc.set_threshold(_GARBAGE)
    args = list(sys.argv[1:] if argv is None else argv)
    for stream, errors in ((sys.stdout, "backslashreplace"), (sys.stderr, "backslashreplace"), (sys.stdin, "replace")):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=errors)
    guard.own_stdout()
    _leave(run(args))


def _leave(code: int) -> NoReturn:
    """Ends the process like `sys.exit`, but without the interpreter's cleanup, which takes 8 ms. If a thread is still
    running that is not a plugin's, or the output cannot be written, calls `sys.exit` itself."""
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


def run(args: list[str]) -> int:
    """Runs one command line, prints its error, and returns its exit code."""
    as_json = "--json" in args[: args.index("--")] if "--" in args else "--json" in args
    try:
        told = _answered(args)
        sys.stdout.flush()
        return told if isinstance(told, int) else _told(told, as_json=as_json)
    except KernelError as error:
        return _told(error.to_dict(), as_json=as_json)
    except KeyboardInterrupt:
        return _told(Interrupted("stopped", hint="nothing is half-written").to_dict(), as_json=as_json)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("NAVIGATOR_DEBUG") == "1":
            raise
        surprise = {
            "type": type(error).__name__,
            "code": "internal",
            "msg": f"{type(error).__name__}: {error}",
            "exit_code": 1,
        }
        return _told({**surprise, "hint": "NAVIGATOR_DEBUG=1 shows where"}, as_json=as_json)


def _answered(args: list[str]) -> int | Mapping[str, Any]:
    """Runs the command; returns the exit code, or the error in the arguments. A plain question is routed without the
    command-line parser, which takes as long to import as the answer takes."""
    if args[:1] == ["route"] and args[1:] and not any(word.startswith("-") for word in args):
        return _routed(" ".join(args[1:]))
    return _parsed(args)


def _routed(question: str) -> int:
    from navigator_kernel.cli.project import App
    from navigator_kernel.cli.route.routed import answer

    return answer(App(), question)


def _parsed(args: list[str]) -> int | Mapping[str, Any]:
    from navigator_kernel.cli.registry import invoke

    return invoke(args)


def _told(error: Mapping[str, Any], *, as_json: bool) -> int:
    if as_json:
        _document({"error": dict(error), "exit_code": error["exit_code"]})
    else:
        sys.stderr.write(f"error: {clean(str(error['msg']))}\n")
        if error.get("hint"):
            sys.stderr.write(f"hint: {clean(str(error['hint']))}\n")
    return int(error["exit_code"])


def _document(body: Mapping[str, Any]) -> None:
    from navigator_kernel.cli.output import document

    document(body)


if __name__ == "__main__":
    main()

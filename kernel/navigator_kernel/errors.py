"""The kernel's errors, each with a hint and an exit code."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, TypeVar

# The `errno` of errors that mean: this person cannot write there
UNWRITABLE = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR})


class KernelError(Exception):
    """An error that the kernel raises on purpose: a message, a hint about what to do, and facts for `--json`.

    `code` is a stable word for programs, `exit_code` the exit code of the process (requirements, part 3, item 8).
    `recoverable` says that another candidate may work (X-6).
    """

    code: ClassVar[str] = "error"
    exit_code: int = 1
    recoverable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str = "", **data: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.data: Mapping[str, Any] = data

    def to_dict(self) -> dict[str, Any]:
        """The error as one JSON object: `{type, code, msg, hint, exit_code, …facts}`."""
        head = {"type": type(self).__name__, "code": self.code, "msg": self.message}
        return {**head, "hint": self.hint, "exit_code": self.exit_code, **self.data}


class UsageProblem(KernelError):
    """The arguments of a command are wrong."""

    code, exit_code = "usage", 2


class Refused(KernelError):
    """The policy forbids it."""

    code, exit_code = "refused", 3


class NotFound(KernelError):
    """There is nothing with this name."""

    code, exit_code, recoverable = "not_found", 4, True


class SkillNotFound(NotFound):
    """There is no skill with this name; carries up to three suggestions (X-7, X-29)."""

    code = "skill_not_found"


Missing = TypeVar("Missing", bound=NotFound)


def unknown_name(error: type[Missing], message: str, near: Iterable[str], *, hint: str) -> Missing:
    """The error for a name that nothing has: its hint asks for the similar names `near`, and is `hint` without any."""
    near = list(near)
    return error(message, hint=f"did you mean {', '.join(near)}?" if near else hint, suggestions=near)


def unknown_skill(name: str, near: Iterable[str]) -> SkillNotFound:
    hint = "navigator skill list shows the installed skills"
    return unknown_name(SkillNotFound, f"no skill is called {name!r}", near, hint=hint)


class NotLoadable(KernelError):
    """A resource exists but cannot be used (CAN-3)."""

    code, recoverable = "not_loadable", True


class Busy(KernelError):
    """Another process holds the lock."""

    code, exit_code = "busy", 5


class IntegrityMismatch(KernelError):
    """A file differs from its record."""

    code, exit_code = "integrity", 6


class Damaged(KernelError):
    """A file of the kernel cannot be read; it is reported and never overwritten (X-38)."""

    code, exit_code = "damaged", 6


class StorageFailed(KernelError):
    """A file or a database cannot be read or written now; it is not damaged. `data["kind"]` is one word for the cause:
    full, read_only, no_locks, too_long, fault, link,
    unreachable or other."""

    code = "storage"


class FetchFailed(KernelError):
    """A source could not be reached or read."""

    code, exit_code = "fetch_failed", 7


class ConnectionFailed(FetchFailed):
    """An MCP server cannot be started or reached, or went away (AGT-9)."""

    code, recoverable = "connection_failed", True


class ResourceNotFound(NotFound):
    """An MCP server has no such resource, tool or prompt; `data["available"]` names some, nearest first (AGT-9)."""

    code = "resource_not_found"


class PermissionDenied(Refused):
    """An MCP server or its policy forbids the operation (AGT-9)."""

    code = "permission_denied"


class InvalidURI(UsageProblem):
    """The address is not a URI (AGT-9)."""

    code = "invalid_uri"


class InputNeeded(KernelError):
    """An MCP server asks the person for something; `data["required"]` names it (X-9)."""

    code, exit_code = "input", 9


class NoSandbox(KernelError):
    """No sandbox works on this machine."""

    code, exit_code = "no_sandbox", 8


class ConsentNeeded(KernelError):
    """The person must agree first; nothing was done. `data["subject"]` is what to agree to."""

    code, exit_code = "consent", 9


class ModelFailed(KernelError):
    """A model gave no usable answer. `data["kind"]` is one word for the cause, `data["model"]` the model."""

    code = "model_failed"


class TimedOut(KernelError):
    """A time limit ran out."""

    code, exit_code = "timeout", 124


class Interrupted(KernelError):
    """The person stopped it, or the signal that `data["signal"]` names, which changes the exit code."""

    code, exit_code = "interrupted", 130

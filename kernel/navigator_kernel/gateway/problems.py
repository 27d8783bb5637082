"""Answers for errors: problem documents (RFC 9457)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from msgspec import Struct
from starlette.responses import Response

from navigator_kernel.errors import (
    Busy,
    ConsentNeeded,
    Damaged,
    FetchFailed,
    InputNeeded,
    IntegrityMismatch,
    Interrupted,
    KernelError,
    ModelFailed,
    NoSandbox,
    NotFound,
    NotLoadable,
    Refused,
    TimedOut,
    UsageProblem,
)
from navigator_kernel.text import clean, escape_controls
from navigator_kernel.values.http.endpoint import HttpProblem

MEDIA_TYPE = "application/problem+json"
URN = "urn:navigator:problem:"
STATUSES: Mapping[type[KernelError], int] = {
    UsageProblem: 400,
    Refused: 403,
    NotFound: 404,
    Busy: 409,
    ConsentNeeded: 409,
    InputNeeded: 409,
    Interrupted: 409,
    IntegrityMismatch: 409,
    NotLoadable: 409,
    Damaged: 500,
    FetchFailed: 502,
    ModelFailed: 502,
    NoSandbox: 503,
    TimedOut: 504,
}


class Problem(Struct, frozen=True, kw_only=True):
    """RFC 9457. `code` is a stable word for programs, `hint` says what to do; `data` has facts for programs."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    hint: str = ""
    data: dict[str, Any] = {}


class ProblemResponse(Response):
    """`{type, title, status, detail, code, hint, …facts}`."""

    media_type = MEDIA_TYPE

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        hint: str = "",
        facts: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        body: dict[str, Any] = {"type": f"{URN}{code}", "title": HTTPStatus(status).phrase, "status": status}
        body |= {"detail": escape_controls(clean(detail)), "code": code}
        if hint:
            body["hint"] = escape_controls(clean(hint))
        more = {key: value for key, value in (facts or {}).items() if key not in body}
        self.document = {**body, **more}
        super().__init__(msgspec.json.encode(self.document, enc_hook=str), status, headers=dict(headers or {}))


def problem_of(error: Exception) -> ProblemResponse:
    """The answer for `error`. An unexpected error is logged, and its text is not shown."""
    if isinstance(error, HttpProblem):
        return ProblemResponse(error.status, error.code, error.detail, hint=error.hint, headers=error.headers)
    if isinstance(error, KernelError):
        return ProblemResponse(
            status_of(error), error.code, error.message, hint=error.hint, facts={"data": dict(error.data)}
        )
    logging.getLogger("navigator").error("a request failed: %s", type(error).__name__, exc_info=error)
    return ProblemResponse(500, "error", "the request failed", hint="the log of navigator serve says why")


def status_of(error: KernelError) -> int:
    """The status of the error's nearest class that has one."""
    return next((STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES), 500)

"""Fetches one document over https."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from navigator_kernel import __version__
from navigator_kernel.errors import FetchFailed
from navigator_kernel.text import clean

if TYPE_CHECKING:
    from http.client import HTTPMessage
    from urllib.request import OpenerDirector, Request

Asked = TypeVar("Asked")


def fetch(seconds: float, url: str, limit: int) -> bytes:
    """Returns the answer of the server at `url`, at most `limit` bytes, within `seconds` including name resolution,
    which sockets do not limit. FetchFailed without such an answer."""
    late = FetchFailed(f"{url!r} did not answer in {seconds:g} s", hint="try again later", reason="timeout")
    return within(seconds, lambda: _asked(url, seconds, limit), late)


def within(seconds: float, ask: Callable[[], Asked], late: Exception) -> Asked:
    """Returns or raises what `ask` does; raises `late` if it takes longer, or if a socket's own timeout ends first."""
    held: list[Asked] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            held.append(ask())
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
            failed.append(error)

    asking = threading.Thread(target=work, daemon=True)
    asking.start()
    asking.join(seconds)
    if failed:
        raise late if isinstance(failed[0], TimeoutError) else failed[0]
    if not held:
        raise late
    return held[0]


def _asked(url: str, seconds: float, limit: int) -> bytes:
    from http.client import HTTPException
    from urllib.error import HTTPError

    opener = _opener()
    opener.addheaders = [("Accept", "application/json"), ("User-Agent", f"navigator/{__version__}")]
    try:
        with opener.open(url, timeout=seconds) as answer:
            data: bytes = answer.read(limit + 1)
    except HTTPError as error:
        error.close()
        raise FetchFailed(
            f"{url!r} answers {error.code} {clean(error.msg, lines=False)}", hint="ask its owner"
        ) from error
    except (OSError, HTTPException, ValueError) as error:
        cause = getattr(error, "reason", "") or error
        if isinstance(cause, TimeoutError):
            raise cause from error
        why = clean(str(cause), lines=False)
        raise FetchFailed(f"cannot read {url!r}: {why}", hint="check the address and the network") from error
    if len(data) > limit:
        raise FetchFailed(f"{url!r} is over {limit} bytes", hint="ask its owner to split it", reason="too-large")
    return data


def _opener() -> OpenerDirector:
    """An opener for https only, with the proxy and the certificates of the environment."""
    from ssl import create_default_context
    from urllib import request

    class Redirects(request.HTTPRedirectHandler):
        def redirect_request(
            self, req: Request, fp: Any, code: int, msg: str, headers: HTTPMessage, newurl: str
        ) -> Request | None:
            if urlsplit(newurl).scheme != "https":
                fp.close()
                raise FetchFailed(f"{req.full_url!r} leads to {newurl[:200]!r}", hint="only https is followed")
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    opener = request.OpenerDirector()
    handlers: Iterable[request.BaseHandler] = (
        request.ProxyHandler(),
        request.HTTPSHandler(context=create_default_context()),
        request.HTTPDefaultErrorHandler(),
        request.HTTPErrorProcessor(),
        request.UnknownHandler(),
        Redirects(),
    )
    for handler in handlers:
        opener.add_handler(handler)
    return opener

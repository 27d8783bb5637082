"""Fetches one web page from a host that the person named, or one document over https.

An address that is not public must be named, too.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPMessage
from ssl import create_default_context
from typing import Any, NamedTuple, TypeVar
from urllib import request
from urllib.error import HTTPError
from urllib.parse import quote, urljoin, urlsplit
from urllib.request import OpenerDirector, Request

from navigator_kernel import __version__
from navigator_kernel.errors import FetchFailed, KernelError, Refused, UsageProblem
from navigator_kernel.text import clean, escape_controls

PORTS = {"https": 443, "http": 80}
LONGEST = 1_500  # characters of an address, so that the person sees all of it
HOPS = 5
_MOVED = frozenset({301, 302, 303, 307, 308})
_SAFE = "%/:=&?~#+!$,;'@()*[]"  # characters that are not percent-encoded
_IN_IPV4 = ipaddress.ip_network("64:ff9b::/96")  # each stands for the IPv4 address in its last 32 bits (RFC 6052)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Target(NamedTuple):
    """The parts of an address; `path` includes the query."""

    url: str
    scheme: str
    host: str
    port: int
    path: str


class Page(NamedTuple):
    """The server's answer at `url`, which differs from the requested address after a redirect; `kind` is its content
    type without parameters, `charset` is empty if the answer names none."""

    url: str
    kind: str
    charset: str
    data: bytes


def target_of(url: str, named: Sequence[str]) -> Target:
    """Parses an address. Refused, with a `reason`, if it is not allowed; UsageProblem if it is malformed. `named` are
    the person's hosts: `docs.example.org`, `*.example.org`, `example.org:8443`, `10.0.0.0/8`."""
    if len(url) > LONGEST or not url.isprintable() or " " in url:
        raise UsageProblem("the address is not well formed", hint=f"at most {LONGEST:,} characters, without blanks")
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").rstrip(".").encode("idna").decode(), parts.port
    except (ValueError, UnicodeError) as error:
        raise UsageProblem(f"{url[:200]!r} is not an address", hint="https://HOST/PATH") from error
    if parts.scheme not in PORTS or not host:
        raise Refused(f"{parts.scheme or 'no scheme'!r} is not fetched", hint="https://HOST/PATH", reason="scheme")
    if "@" in parts.netloc:
        raise Refused("the address holds a user or a password", hint="leave it out", reason="credentials")
    port = port or PORTS[parts.scheme]
    if not any(_fits(rule, host, port, PORTS[parts.scheme]) for rule in named):
        hint = f"the person's settings name these hosts in [policy] fetch: {', '.join(named) or 'none'}"
        raise Refused(
            f"{escape_controls(host)}:{port} is not a host that the person named", hint=hint, reason="not-named"
        )
    if parts.scheme == "http" and not _is_local(host):
        raise Refused("http is allowed for this machine only", hint="ask for it over https", reason="scheme")
    path = quote(f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}", safe=_SAFE)
    return Target(url, parts.scheme, host, port, path)


def get(url: str, named: Sequence[str], seconds: float, limit: int) -> Page:
    """Fetches the page at `url`, at most `limit` bytes, within `seconds`, and follows redirects to named hosts. No
    proxy is used: it connects to exactly the address that it has checked.

    Raises what `target_of` raises; Refused for a name that resolves to an address that is not public, unless that is
    named, too; FetchFailed if the page cannot be fetched.
    """
    late = FetchFailed(f"{url!r} did not answer in {seconds:g} s", hint="try again later", reason="timeout")
    return within(seconds, lambda: _followed(target_of(url, named), named, seconds, limit), late)


def _followed(target: Target, named: Sequence[str], seconds: float, limit: int) -> Page:
    addresses = _addresses(target, named)
    # A public page must not lead to a private address, not even a named one: the person approved only the first host
    inner = named if not addresses[0].is_global else ()
    for _ in range(HOPS):
        with closing(_connected(target, addresses, seconds)) as connection:
            answer = _asked(connection, target, limit)
        if isinstance(answer, Page):
            return answer
        try:
            following = target_of(urljoin(target.url, answer), named)
            if following.scheme != target.scheme:
                raise Refused("that is another scheme", hint="fetch that address itself", reason="scheme")
            addresses = _addresses(following, inner)
        except (Refused, UsageProblem) as error:
            message = f"{target.host} leads to {escape_controls(answer[:200])}: {error.message}"
            raise Refused(message, hint=error.hint, reason="redirect") from error
        target = following
    raise FetchFailed(f"{target.host} leads on more than {HOPS} times", hint="ask for another page")


def _addresses(target: Target, named: Sequence[str]) -> list[Address]:
    """All addresses that the name resolves to; Refused if one of them is neither public nor named."""
    try:
        answers = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise FetchFailed(f"{target.host} is not known: {error.strerror}", hint="check the address") from error
    addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in answers]
    for address in addresses:
        if not _is_open(address, target, named):
            hint = "only the person can name that address in [policy] fetch"
            message = f"{target.host} stands for {address}, an address that is not public"
            raise Refused(message, hint=hint, reason="private-address")
    return addresses


def _is_open(address: Address, target: Target, named: Sequence[str]) -> bool:
    meant = _meant(address)
    if meant.is_global and not meant.is_multicast:
        return True
    if target.host == "localhost" and meant.is_loopback:
        return bool(named)
    return any(_fits(rule, str(address), target.port, target.port) for rule in named)


def _meant(address: Address) -> Address:
    """The IPv4 address that an IPv6 address stands for, else the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    inner = address.ipv4_mapped or address.sixtofour
    return inner or (ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _IN_IPV4 else address)


def _fits(entry: str, host: str, port: int, usual: int) -> bool:
    """Whether `entry` of the person's settings names the host, which is a name or an address."""
    if "/" in entry:
        try:
            return port == usual and ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    parts = urlsplit(f"//{entry}")
    if port != (parts.port or usual):
        return False
    name = parts.hostname or ""
    return host.endswith(name[1:]) if name.startswith("*.") else host == name


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _connected(target: Target, addresses: Sequence[Address], seconds: float) -> HTTPConnection:
    """Connects to a checked address; the name is not resolved a second time."""
    connection = HTTPConnection(target.host, target.port, timeout=seconds)
    connection.default_port = PORTS[target.scheme]
    problem: OSError | None = None
    for address in addresses:
        try:
            made = socket.create_connection((str(address), target.port), timeout=seconds)
        except OSError as error:
            problem = error
            continue
        try:
            secure = target.scheme == "https"
            connection.sock = (
                create_default_context().wrap_socket(made, server_hostname=target.host) if secure else made
            )
        except OSError as error:
            made.close()
            problem = error
            continue
        return connection
    raise _unread(target, problem or OSError("it has no address"))


def _asked(connection: HTTPConnection, target: Target, limit: int) -> Page | str:
    """The page, or the address that it redirects to."""
    headers = {"User-Agent": f"navigator/{__version__}", "Accept": "text/html, text/plain, */*"}
    try:
        connection.request("GET", target.path, headers=headers)
        with connection.getresponse() as answer:
            if answer.status in _MOVED and (there := answer.headers.get("Location")):
                return str(there)
            data = answer.read(limit + 1) if answer.status == 200 else b""
    except (OSError, HTTPException, ValueError) as error:
        raise _unread(target, error) from error
    if answer.status != 200:
        reason = clean(answer.reason, lines=False)[:100]
        raise FetchFailed(f"{target.host} answers {answer.status} {reason}", hint="ask for another page")
    if len(data) > limit:
        message = f"the page is over {limit // 1024**2} MiB"
        raise Refused(message, hint="ask for a smaller one", reason="too-large")
    if (coding := answer.headers.get("Content-Encoding", "identity").strip().lower()) not in {"identity", ""}:
        raise FetchFailed(f"{target.host} answers in {escape_controls(coding)[:40]}", hint="ask for another page")
    charset = answer.headers.get_content_charset("") or ""
    return Page(target.url, answer.headers.get_content_type(), charset, data)


def _unread(target: Target, error: Exception) -> Exception:
    if isinstance(error, TimeoutError):
        return error  # `within` reports the timeout
    why = clean(str(error), lines=False)[:300]
    return FetchFailed(f"cannot read {target.host}: {why}", hint="check the address and the network")


Asked = TypeVar("Asked")


def fetch(seconds: float, url: str, limit: int, leads: Callable[[str], object] = str) -> bytes:
    """Returns the answer of the server at `url`, at most `limit` bytes, within `seconds` including name resolution,
    which sockets do not limit. FetchFailed without such an answer. `leads` gets each address that the server leads to,
    and raises an error for one that must not be asked."""
    late = FetchFailed(f"{url!r} did not answer in {seconds:g} s", hint="try again later", reason="timeout")
    return within(seconds, lambda: _document(url, seconds, limit, leads), late)


def within(seconds: float, ask: Callable[[], Asked], late: Exception) -> Asked:
    """Returns or raises what `ask` does; raises `late` if it takes longer, or if a socket's own timeout ends first."""
    results: list[Asked] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            results.append(ask())
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
            failed.append(error)

    asking = threading.Thread(target=work, daemon=True)
    asking.start()
    asking.join(seconds)
    if failed:
        raise late if isinstance(failed[0], TimeoutError) else failed[0]
    if not results:
        raise late
    return results[0]


def _document(url: str, seconds: float, limit: int, leads: Callable[[str], object]) -> bytes:
    opener = _opener(leads)
    opener.addheaders = [("Accept", "application/json, */*;q=0.8"), ("User-Agent", f"navigator/{__version__}")]
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


def _opener(leads: Callable[[str], object]) -> OpenerDirector:
    """An opener for https only, with the proxy and the certificates of the environment."""

    class Redirects(request.HTTPRedirectHandler):
        def redirect_request(
            self, req: Request, fp: Any, code: int, msg: str, headers: HTTPMessage, newurl: str
        ) -> Request | None:
            try:
                if urlsplit(newurl).scheme != "https":
                    raise FetchFailed(f"{req.full_url!r} leads to {newurl[:200]!r}", hint="only https is followed")
                leads(newurl)
            except KernelError:
                fp.close()
                raise
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

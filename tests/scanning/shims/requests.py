"""The part of `requests` that scripts of skills use, over the box's one server."""

import json as _json
import urllib.parse
import urllib.request
from typing import Any


class Response:
    def __init__(self, data: bytes) -> None:
        self.content, self.text, self.status_code, self.ok = data, data.decode("utf-8", "replace"), 200, True

    def json(self) -> Any:
        return _json.loads(self.text)

    def raise_for_status(self) -> None:
        return None


def request(
    method: str, url: str, *, params: Any = None, data: Any = None, json: Any = None, files: Any = None,
    headers: Any = None, timeout: float = 5, **_: Any,
) -> Response:  # fmt: skip
    if params:
        url = f"{url}?{urllib.parse.urlencode(params)}"
    if json is not None:
        data = _json.dumps(json)
    elif isinstance(data, dict):
        data = urllib.parse.urlencode(data)
    for held in (files or {}).values():
        held = held[1] if isinstance(held, tuple) else held
        data = held.read() if hasattr(held, "read") else held
    data = data.read() if hasattr(data, "read") else data
    data = data.encode() if isinstance(data, str) else data
    asked = urllib.request.Request(url, data=data, headers=headers or {}, method=method.upper())
    with urllib.request.urlopen(asked, timeout=5) as answer:
        return Response(answer.read())


def get(url: str, **more: Any) -> Response:
    return request("get", url, **more)


def post(url: str, data: Any = None, json: Any = None, **more: Any) -> Response:
    return request("post", url, data=data, json=json, **more)


def put(url: str, data: Any = None, **more: Any) -> Response:
    return request("put", url, data=data, **more)


class Session:
    """A session that keeps nothing."""

    get, post, put = staticmethod(get), staticmethod(post), staticmethod(put)

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}

"""Pages of a list: an opaque cursor that stands for a place in its order."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar

from msgspec import Meta, Struct

from navigator_kernel.values.http.endpoint import HttpProblem

T = TypeVar("T")


class Page(Struct, frozen=True, forbid_unknown_fields=True):
    """At most `limit` entries after the `cursor` that the previous page returned."""

    limit: Annotated[int, Meta(ge=1, le=500)] = 50
    cursor: Annotated[str, Meta(max_length=400)] = ""


def page_of(entries: Sequence[T], page: Page, key: Callable[[T], str], *, rising: bool = False) -> tuple[list[T], str]:
    """A page of `entries`, which are sorted by `key`, falling or `rising`, and the cursor of the next page, empty at
    the end. An entry that was added or removed meanwhile moves no other one."""
    after = place_of(page.cursor)
    left = [one for one in entries if not after or (key(one) > after if rising else key(one) < after)]
    held = list(left[: page.limit])
    return held, cursor_of(key(held[-1])) if len(left) > len(held) else ""


def cursor_of(place: str) -> str:
    return base64.urlsafe_b64encode(place.encode()).decode()


def place_of(cursor: str) -> str:
    """The place that a cursor stands for; 400 for a cursor that is not one."""
    try:
        return base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeError):
        raise HttpProblem(400, "usage", "the cursor is not one of this list") from None

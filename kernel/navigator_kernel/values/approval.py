"""A question that waits for approval, under an id bound to exactly what is asked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from navigator_kernel.values.job import is_lasting
from navigator_kernel.values.request import Session


class Approval(Struct, frozen=True, kw_only=True):
    """`Kernel.approve`, `deny` and `allow` take `id`. `subject` says what an approval covers: it ends in a digest of
    the bytes or the arguments, if there are any; `also` are the other subjects of the same question; `lasts` says that
    a yes can be for the session. `tool` and `arguments` are of a call that another agent's model made; they are empty
    for a run that waits."""

    id: str
    subject: str
    question: str
    also: tuple[str, ...] = ()
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    lasts: bool = False


def waiting_approval(session: Session, question: str = "") -> Approval | None:
    """The approval that `session` waits for, or None. The id begins with the session's name; another order, or the same
    one asked about again, has another id."""
    held = session.approval
    if held is None:
        return None
    keys = [packet.context.idempotency_key for packet in held.packets]
    name = digest_of(session.id, held.subject, *held.also, held.asked_at, held.workflow, keys)
    question = held.question or question
    asked = Approval(id=f"{session.id}:{name}", subject=held.subject, question=question, also=held.also)
    return replace(asked, lasts=bool(held.wider) or is_lasting(held.subject))


def digest_of(*parts: Any) -> str:
    """A digest of JSON values: 96 bits in hex."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:24]

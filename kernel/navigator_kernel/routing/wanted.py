"""What is known about messages in general, by their vectors: whether one wants a skill, and what others are like."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

OTHERS = 64  # messages that share a message with the examples of skills


class Wanted(Struct, frozen=True, kw_only=True):
    """Weights fitted by `tests/maintenance/fit_wanted.py` for the encoder of that name; all vectors have length 1.

    A network of one hidden layer estimates whether a message wants a skill: `inner` and `shift` lead to that layer,
    `outer` and `bias` to the log-odds. `others` are the vectors of messages for no skill that many people have.
    """

    encoder: str
    inner: Array
    shift: Array
    outer: Array
    bias: float
    others: Array

    def probabilities(self, vectors: Array) -> Array:
        """The probabilities for vectors in rows, or for one vector."""
        import numpy as np

        odds: Array = np.tanh(vectors @ self.inner + self.shift) @ self.outer + self.bias
        return 1 / (1 + np.exp(-odds))

    def nearest(self, vector: Array) -> Array:
        """The OTHERS nearest of `others`."""
        import numpy as np

        return self.others[np.argsort(-(self.others @ vector))[:OTHERS]]


@cache
def wanted_by(encoder: str) -> Wanted | None:
    """What is known for `encoder`; None if the file is for another one."""
    held = msgspec.json.decode(Path(__file__).with_name("wanted.json").read_bytes())  # 3 ms faster than json
    return wanted_of(held) if held["encoder"] == encoder else None


def wanted_of(held: Mapping[str, Any]) -> Wanted:
    """The contents of `wanted.json`, in which `others` are bytes in base64."""
    import numpy as np

    arrays = {name: np.array(held[name], np.float32) for name in ("inner", "shift", "outer")}
    others = np.frombuffer(b64decode(held["others"]), np.int8).reshape(-1, len(arrays["inner"])).astype(np.float32)
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    return Wanted(encoder=held["encoder"], bias=held["bias"], others=others, **arrays)

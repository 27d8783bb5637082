"""The orders that a decision comes down to."""

from __future__ import annotations

from dataclasses import dataclass

from navigator_kernel.values.packet import Packet


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing to be done: the first packet, and the candidates that may stand in for it (CAN-1)."""

    packets: tuple[Packet, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Steps in order; each starts after the one before it succeeded (WFL-7)."""

    steps: tuple[Step, ...]

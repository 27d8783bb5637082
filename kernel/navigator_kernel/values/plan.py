"""The dispatch plan: the steps that a decision leads to."""

from __future__ import annotations

from msgspec import Struct

from navigator_kernel.values.packet import Packet


class DispatchStep(Struct, frozen=True, kw_only=True):
    """One thing to be done: the first packet, and the candidates that may stand in for it (CAN-1)."""

    packets: tuple[Packet, ...]


class DispatchPlan(Struct, frozen=True, kw_only=True):
    """Steps in order; each starts after the one before it succeeded (WFL-7)."""

    steps: tuple[DispatchStep, ...]

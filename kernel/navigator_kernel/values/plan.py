"""The dispatch plan: the steps that a decision leads to."""

from __future__ import annotations

from msgspec import Struct

from navigator_kernel.values.packet import Packet


class DispatchStep(Struct, frozen=True, kw_only=True):
    """A step: its first packet, and the fallback candidates (CAN-1)."""

    packets: tuple[Packet, ...]


class DispatchPlan(Struct, frozen=True, kw_only=True):
    """Steps in order; each starts after the one before it succeeded (WFL-7)."""

    steps: tuple[DispatchStep, ...]

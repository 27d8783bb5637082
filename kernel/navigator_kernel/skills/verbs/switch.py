"""The commands that keep notes of the project: enable, disable and record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from navigator_kernel.skills.lifecycle import required
from navigator_kernel.skills.switches import switch
from navigator_kernel.skills.usage import add_use

if TYPE_CHECKING:
    from navigator_kernel.skills.lifecycle import Answer, Lifecycle

Params = Mapping[str, Any]


def _switch(ground: Lifecycle, params: Params, *, on: bool) -> Answer:
    name = required(params, "name")
    held = ground.held(name)
    if held is None:
        raise ground.unknown(name)
    changed = switch(ground.state, held.skill.name, ground.state_writer, on=on)
    return {"name": held.skill.name, "enabled": on, "changed": changed}


def _record(ground: Lifecycle, params: Params) -> Answer:
    """`{name}`: one more use of a skill, for the bonus of a search (LIF-16)."""
    name = required(params, "name")
    return {"name": name, "uses": add_use(ground.state, name, ground.state_writer)}


VERBS: Mapping[str, Callable[[Lifecycle, Params], Answer]] = {
    "disable": lambda ground, params: _switch(ground, params, on=False),
    "enable": lambda ground, params: _switch(ground, params, on=True),
    "record": _record,
}

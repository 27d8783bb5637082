"""The commands that store data about skills: enable, disable, examples and record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from navigator_kernel.adapters.files.database import file_lock
from navigator_kernel.errors import UsageProblem
from navigator_kernel.skills.catalog.aliases import kept_examples, sidecar_path, with_examples
from navigator_kernel.skills.catalog.switches import add_use, set_enabled
from navigator_kernel.skills.commands.lifecycle import required, words
from navigator_kernel.skills.install.apply import held_bytes

if TYPE_CHECKING:
    from navigator_kernel.skills.commands.lifecycle import Answer, Lifecycle

Params = Mapping[str, Any]


def _switch(ground: Lifecycle, params: Params, *, on: bool) -> Answer:
    name = required(params, "name")
    held = ground.held(name)
    if held is None:
        raise ground.unknown(name)
    changed = set_enabled(ground.state, held.skill.name, ground.state_writer, on=on)
    return {"name": held.skill.name, "enabled": on, "changed": changed}


def _record(ground: Lifecycle, params: Params) -> Answer:
    """`{name}`: adds one use of a skill, for the bonus in a search (LIF-16)."""
    name = required(params, "name")
    return {"name": name, "uses": add_use(ground.state, name, ground.state_writer)}


def _examples(ground: Lifecycle, params: Params) -> Answer:
    """`{name, examples}`: the requests that a model wrote for an installed skill; `examples` replaces them.
    UsageProblem for a skill without a receipt, because they are stored beside it."""
    name = required(params, "name")
    held = ground.held(name)
    if held is None:
        raise ground.unknown(name)
    if held.receipt is None:
        hint = "write `examples:` into its SKILL.md, or navigator route MESSAGE --teach NAME"
        raise UsageProblem(f"{held.skill.name!r} was not installed: it has no receipt", hint=hint)
    path = sidecar_path(held.place.inner, held.receipt.name)
    if "examples" in params:
        with file_lock(held.place.guard):
            ground.deps.writer.write(path, with_examples(held_bytes(path), words(params["examples"])))
    return {"name": held.skill.name, "examples": kept_examples(held_bytes(path))}


VERBS: Mapping[str, Callable[[Lifecycle, Params], Answer]] = {
    "disable": lambda ground, params: _switch(ground, params, on=False),
    "enable": lambda ground, params: _switch(ground, params, on=True),
    "examples": _examples,
    "record": _record,
}

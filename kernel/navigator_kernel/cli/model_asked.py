"""Asks the model for a command after the person agreed to the cost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

from navigator_kernel.cli.output import is_asked
from navigator_kernel.errors import ConsentNeeded, NotFound

if TYPE_CHECKING:
    from navigator_kernel.cli.project import App
    from navigator_kernel.model_ports import ChatModel
    from navigator_kernel.routing.skill_writer import Order
    from navigator_kernel.values.resource import SkillDef

T = TypeVar("T")


def agreed_model(
    app: App,
    name: str,
    order: Order,
    skills: Sequence[SkillDef],
    more: Sequence[str] = (),
    *,
    sure: bool,
    as_json: bool,
) -> str:
    """Returns the model's name. NotFound if none is set, ConsentNeeded if nobody agreed to the cost."""
    from navigator_kernel.routing.skill_writer import tokens_for

    if not (wanted := name or app.settings.models.default):
        raise NotFound("no model is set", hint="navigator model use PROVIDER:MODEL, or --model NAME")
    sent, back = tokens_for(order, skills, more)
    cost = f"{len(skills)} requests to {wanted}, about {sent:,} tokens in and {back:,} out"
    asked = not as_json and is_asked()
    if not sure and not (asked and click.confirm(f"{cost}. Ask the model?", err=True)):
        raise ConsentNeeded(f"nobody agreed to {cost}", hint="--yes agrees to it")
    return wanted


def asked_model(app: App, name: str, work: Callable[[ChatModel], Awaitable[T]]) -> T:
    """Runs `work` with this model, and closes it."""
    import asyncio

    from navigator_kernel.bootstrap.models import open_model

    model = open_model(name, app.settings.models)

    async def done() -> T:
        try:
            return await work(model)
        finally:
            await model.close()

    return asyncio.run(done())

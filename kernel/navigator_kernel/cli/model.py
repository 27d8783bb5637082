"""`navigator model`: which models are asked, whether they answer, and by which key."""

from __future__ import annotations

import sys
from typing import Any

import click

from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, lines, note, table
from navigator_kernel.cli.project import App
from navigator_kernel.errors import NotFound, UsageProblem
from navigator_kernel.settings import user_file
from navigator_kernel.text import without_secret

ASKED = "Answer with the one word: ready"
TOKENS = 1_000  # of the answer to `model test`, reasoning included
LIMIT = 60.0  # seconds


@click.group("model")
def command() -> None:
    """Models: list, test, use, key."""


@command.command("list")
@json_option
@pass_app
def listed(app: App, *, as_json: bool) -> None:
    """List the models that are set, the services that are known, and whether each has a key."""
    from navigator_kernel.adapters.model_providers import HOSTED, LOCAL, find_key, served, spelled_out

    models = app.settings.models
    named = {"default": models.default, **{f"fallback {at}": name for at, name in enumerate(models.fallback, 1)}}
    named |= {f"alias {name}": target for name, target in models.aliases.items()}
    rows = []
    for role, name in named.items():
        if name:
            provider, model = spelled_out(name, models)
            rows.append({"role": role, "model": f"{provider}:{model}", "key": find_key(provider, models).origin})
    services = [
        {
            "name": one,
            "url": without_secret(held.url) if (held := served(one, models)) else "",
            "key": find_key(one, models).origin,
        }
        for one in sorted({*HOSTED, *LOCAL, *models.providers})
    ]
    if as_json:
        document({"models": rows, "services": services})
        return
    table(("as", "model", "key"), [(one["role"], one["model"], one["key"] or "-") for one in rows])
    table(
        ("service", "address", "key"), [(one["name"], one["url"] or "its own", one["key"] or "-") for one in services]
    )
    if not rows:
        note("no model is set: navigator model use PROVIDER:MODEL")


@command.command("test")
@click.argument("name", required=False, default="")
@json_option
@pass_app
def tested(app: App, *, name: str, as_json: bool) -> None:
    """Ask NAME, or the model that is set, for one word."""
    import asyncio
    import time

    from navigator_kernel.adapters.chat_model import WireModel
    from navigator_kernel.values.chat import Asked, ChatMessage

    wanted = name or app.settings.models.default
    if not wanted:
        raise NotFound("no model is set", hint="navigator model use PROVIDER:MODEL, or name one here")
    model, heard = WireModel(wanted, app.settings.models), []
    began = time.monotonic()

    async def asked() -> Any:
        question = Asked(messages=(ChatMessage(role="user", text=ASKED),), tokens=TOKENS, limit=LIMIT)
        try:
            return await model.complete(question, lambda _: heard.append(time.monotonic() - began))
        finally:
            await model.close()

    done = asyncio.run(asked())
    took = {"first": round(heard[0], 3) if heard else None, "seconds": round(time.monotonic() - began, 3)}
    told = {"model": done.model, "answer": done.message.text, **took, **done.spent.to_dict()}
    if as_json:
        document(told)
        return
    lines(f"{done.model}: {done.message.text.strip()}")
    cost = "price not known" if told["cost"] is None else f"${told['cost']:.6f}"
    note(
        f"{took['first']} s to the first word, {took['seconds']} s in all, {done.spent.input} tokens in and "
        f"{done.spent.output} out, {cost}"
    )


@command.command("use")
@click.argument("name")
@json_option
@pass_app
def use(app: App, *, name: str, as_json: bool) -> None:
    """Ask the model NAME, provider:model or an alias, from now on; `none` for no model."""
    from navigator_kernel.adapters.model_providers import spelled_out
    from navigator_kernel.cli.settings_file import changed

    value = None if name == "none" else name
    if value is not None:
        spelled_out(value, app.settings.models)
    path = changed(user_file(), ["models", "default"], value, app.root)
    document({"model": value, "path": str(path)}) if as_json else lines(str(path))


@command.command("key")
@click.argument("provider")
@click.option("--remove", is_flag=True, help="Take the key out again.")
@json_option
def key(*, provider: str, remove: bool, as_json: bool) -> None:
    """Keep a key for PROVIDER, which is asked for or read from stdin, in this system's keyring."""
    from navigator_kernel.adapters.model_providers import keep_key

    value = "" if remove else _typed(provider)
    if not remove and not value:
        raise UsageProblem("no key was given", hint="type it, or pipe it in")
    keep_key(provider, value)
    told = {"provider": provider, "kept": not remove}
    document(told) if as_json else note("removed" if remove else f"kept for {provider}")


def _typed(provider: str) -> str:
    if sys.stdin.isatty():
        return str(click.prompt(f"key for {provider}", hide_input=True, err=True)).strip()
    return sys.stdin.readline().strip()

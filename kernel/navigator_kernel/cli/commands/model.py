"""`navigator model`: which models are used, whether they answer, and where their keys come from."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping

import click

from navigator_kernel.adapters.models.providers import (
    HOSTED,
    LOCAL,
    check_provider,
    find_key,
    keep_key,
    served,
    spelled_out,
)
from navigator_kernel.bootstrap.models import keep_found
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, lines, note, say_lines, table
from navigator_kernel.cli.project import App
from navigator_kernel.config.settings import user_file
from navigator_kernel.errors import NotFound, UsageProblem
from navigator_kernel.language.chinese import in_language
from navigator_kernel.language.wording import say
from navigator_kernel.text import numbered, strip_url_credentials
from navigator_kernel.values.chat import Asked, ChatMessage, Spent, Tooling

_FOUND: Mapping[Tooling, str] = {
    "native": "it calls them itself",
    "schema": "it does not call them itself; it names them in a JSON schema that its server enforces",
    "none": "none; it can answer questions, but cannot work on a skill that needs tools",
}


@click.group("model")
def command() -> None:
    """Models: list, test, use, key."""


@command.command("list")
@json_option
@pass_app
def listed(app: App, *, as_json: bool) -> None:
    """List configured models, known providers, and whether each has a key."""
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
            "url": strip_url_credentials(held.url) if (held := served(one, models)) else "",
            "key": find_key(one, models).origin,
        }
        for one in sorted({*HOSTED, *LOCAL, *models.providers})
    ]
    if as_json:
        document({"models": rows, "services": services})
        return
    table(("as", "model", "key"), [(one["role"], one["model"], one["key"] or "-") for one in rows])
    own = in_language("its own", app.spoken)
    table(("service", "address", "key"), [(one["name"], one["url"] or own, one["key"] or "-") for one in services])
    if not rows:
        note("no model is set: navigator model use PROVIDER:MODEL")


@command.command("test")
@click.argument("name", required=False, default="")
@json_option
@pass_app
def tested(app: App, *, name: str, as_json: bool) -> None:
    """Test a model with one word and one tool call, and store how it uses tools."""
    import asyncio

    from navigator_kernel.adapters.models.chat_model import WireModel
    from navigator_kernel.agent_loop.models import LIMIT, TOKENS, WORD, tooling

    models = app.settings.models
    wanted = name or models.default
    if not wanted:
        raise NotFound("no model is set", hint="navigator model use PROVIDER:MODEL, or name one here")
    connection, words, began = WireModel(wanted, models), list[float](), time.monotonic()

    async def test() -> tuple[str, str, dict[str, float | None], Tooling, Spent]:
        question = Asked(messages=(ChatMessage(role="user", text=WORD),), tokens=TOKENS, limit=LIMIT)
        try:
            done = await connection.complete(question, lambda _: words.append(time.monotonic() - began))
            took = {"first": round(words[0], 3) if words else None, "seconds": round(time.monotonic() - began, 3)}
            found, spent = await tooling(connection)
        finally:
            await connection.close()
        return done.model, done.message.text, took, found, done.spent + spent

    model, answer, took, found, spent = asyncio.run(test())
    keep_found(model, found)
    result = {"model": model, "answer": answer, **took, **spent.to_dict(), "tools": found}
    if as_json:
        document(result)
        return
    lines(f"{model}: {answer.strip()}")
    say_lines(f"tools: {_FOUND[found]}")
    cost = "price not known" if result["cost"] is None else f"${result['cost']:.6f}"
    note(
        f"{took['first']} s to the first word, {took['seconds']} s to the last; {numbered(spent.requests, 'request')}, "
        f"{numbered(spent.input, 'token')} in and {spent.output} out, {cost}"
    )
    held = served(model.partition(":")[0], models)
    if held is not None and held.tools not in ("", found):
        note(f"your settings override this: tools = {held.tools!r}")


@command.command("use")
@click.argument("name")
@json_option
@pass_app
def use(app: App, *, name: str, as_json: bool) -> None:
    """Use the model NAME (provider:model or an alias); `none` for no model."""
    from navigator_kernel.cli.settings_file import changed

    value = None if name == "none" else name
    provider = ""
    if value is not None:
        provider, _ = spelled_out(value, app.settings.models)
        check_provider(provider, app.settings.models)
    path = changed(user_file(), ["models", "default"], value, app.root)
    if as_json:
        document({"model": value, "path": str(path)})
    else:
        lines(say("model.default" if value else "model.default_none", app.spoken, model=name, path=str(path)))
    if not provider:
        return
    held, key = served(provider, app.settings.models), find_key(provider, app.settings.models)
    if not key.value and (held is None or held.key):
        note(f"there is no key for {provider!r} yet: export {key.variable}=…, or navigator model key {provider}")


@command.command("key")
@click.argument("provider")
@click.option("--remove", is_flag=True, help="Remove the key.")
@json_option
def key(*, provider: str, remove: bool, as_json: bool) -> None:
    """Store a key for PROVIDER in this system's keyring; it is asked for or read from stdin."""
    if remove:
        value = ""
    elif sys.stdin.isatty():
        value = str(click.prompt(f"key for {provider}", hide_input=True, err=True)).strip()
    else:
        value = sys.stdin.readline().strip()
    if not remove and not value:
        raise UsageProblem("no key was given", hint="type it, or pipe it in")
    keep_key(provider, value)
    if as_json:
        document({"provider": provider, "kept": not remove})
    else:
        note("removed" if remove else f"kept for {provider}")

"""`navigator usage`: what models took in this project, and how much of it came from a provider's cache."""

from __future__ import annotations

import click

from navigator_kernel.adapters.stores.run_log import usage_of
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, note, table
from navigator_kernel.cli.project import App
from navigator_kernel.text import numbered
from navigator_kernel.values.chat import Spent


@click.command("usage")
@click.option("--session", help="Only runs of this session.")
@click.option("--last", type=click.IntRange(1, 5_000), default=5_000, show_default=True, help="Newest runs to count.")
@json_option
@pass_app
def command(app: App, *, session: str | None, last: int, as_json: bool) -> None:
    """Sum up the use of models: requests, tokens, what a cache saved, and cost."""
    runs, models = usage_of(app.bare.run_log, lambda name: session in (None, name), last)
    if as_json:
        document({"runs": runs, "models": [{"model": name, **spent.to_dict()} for name, spent in models.items()]})
        return
    total = sum(models.values(), Spent())
    rows = [_row(name, spent) for name, spent in (*models.items(), *([("", total)] if len(models) > 1 else []))]
    table(("model", "requests", "tokens in", "from a cache", "tokens out", "cost"), rows)
    note(f"{numbered(runs, 'run')} counted")


def _row(model: str, spent: Spent) -> tuple[str, ...]:
    cached = f"{spent.cached / spent.input:.0%}" if spent.input else "-"
    cost = f"${spent.cost:.4f}" if spent.priced else "-"
    return (model or "all", f"{spent.requests:,}", f"{spent.input:,}", cached, f"{spent.output:,}", cost)

"""`navigator skill learn`: lets the model write example requests for a skill, shows them, and removes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from navigator_kernel.cli import skill_names
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, note, table
from navigator_kernel.cli.project import App
from navigator_kernel.errors import KernelError, UsageProblem
from navigator_kernel.values.chat import Spent

if TYPE_CHECKING:
    from navigator_kernel.model_ports import ChatModel
    from navigator_kernel.skills.commands.lifecycle import Lifecycle
    from navigator_kernel.values.resource import SkillDef


@click.command("learn")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=skill_names.here)
@click.option("--all", "everything", is_flag=True, help="Every installed skill that has no such examples yet.")
@click.option("--model", "model_name", default="", help="The model to ask, instead of the configured one.")
@click.option("--show", is_flag=True, help="Only show the examples.")
@click.option("--forget", is_flag=True, help="Remove the examples.")
@click.option("--yes", is_flag=True, help="Ask the model without asking you first.")
@json_option
@pass_app
def learn(
    app: App,
    *,
    names: tuple[str, ...],
    everything: bool,
    model_name: str,
    show: bool,
    forget: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Let the model write five example requests for skill NAME, which help the router to find it.

    They are kept beside the skill's receipt, and the skill's own files stay as they are. What it costs is shown first.
    Exit code 1 where the model failed for a skill; the examples of the others are kept.
    """
    if bool(names) == everything or (show and forget):
        raise UsageProblem("which skills?", hint="navigator skill learn NAME, or --all; --show or --forget, not both")
    lifecycle = app.bare.lifecycle
    found = [dict(lifecycle.perform("examples", {"name": name})) for name in names or _installed(lifecycle)]
    cost: dict[str, Any] = {}
    if forget:
        found = [_kept(lifecycle, one["name"], ()) for one in found]
    elif not show:
        wanted = [one["name"] for one in found if not (everything and one["examples"])]
        cost = _written(app, lifecycle, wanted, model_name, sure=yes, as_json=as_json)
        found = cost.pop("skills")
    failed = int(bool(cost.get("failed")))
    if as_json:
        document({"count": len(found), "skills": found, "exit_code": failed, **cost})
        return failed
    rows = [(one["name"], example) for one in found for example in one["examples"]]
    table(("skill", "example"), rows) if rows else note("no examples are kept")
    return failed


def _installed(lifecycle: Lifecycle) -> list[str]:
    return [one["name"] for one in lifecycle.perform("list", {})["skills"] if one["status"] == "managed"]


def _kept(lifecycle: Lifecycle, name: str, examples: Sequence[str]) -> dict[str, Any]:
    return dict(lifecycle.perform("examples", {"name": name, "examples": list(examples)}))


def _written(
    app: App, lifecycle: Lifecycle, names: Sequence[str], model_name: str, *, sure: bool, as_json: bool
) -> dict[str, Any]:
    """Returns `{skills, failed, requests, input_tokens, …}`; raises the first failure if every skill failed."""
    from navigator_kernel.cli.model_asked import agreed_model, asked_model
    from navigator_kernel.routing.skill_writer import EXAMPLES

    catalogue = app.bare.catalogue
    skills = [skill for name in names if (skill := catalogue.find(name)) is not None]
    if not skills:
        return {"skills": [], "failed": {}, **Spent().to_dict()}
    wanted = agreed_model(app, model_name, EXAMPLES, skills, sure=sure, as_json=as_json)
    done, failed, spent = asked_model(app, wanted, partial(_asked, skills, lifecycle, quiet=as_json))
    if not done:
        raise next(iter(failed.values()))
    return {"skills": done, "failed": {name: error.message for name, error in failed.items()}, **spent.to_dict()}


async def _asked(
    skills: Sequence[SkillDef], lifecycle: Lifecycle, model: ChatModel, *, quiet: bool
) -> tuple[list[dict[str, Any]], dict[str, KernelError], Spent]:
    """Asks for examples and stores those of each skill immediately, so that an interruption loses none."""
    from navigator_kernel.routing.skill_writer import write_examples

    done: list[dict[str, Any]] = []
    failed: dict[str, KernelError] = {}
    spent = Spent()
    for skill in skills:
        try:
            examples, cost = await write_examples(model, skill)
        except KernelError as error:
            failed[skill.name] = error
            if not quiet:
                note(f"{skill.name}: {error.message}")
            continue
        spent += cost
        done.append(_kept(lifecycle, skill.name, examples))
    return done, failed, spent


COMMANDS: Mapping[str, click.Command] = {"learn": learn}

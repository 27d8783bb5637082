"""`navigator skill new` creates a skill with evals; `learn` lets the model write example requests for one."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.cli import skill_names
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, note, say_lines, table
from navigator_kernel.errors import KernelError, Refused, UsageProblem
from navigator_kernel.skills.formats.names import refuse_lookalike
from navigator_kernel.skills.formats.validate import validate
from navigator_kernel.text import clean, language_of, shorten
from navigator_kernel.values.chat import Spent

if TYPE_CHECKING:
    from navigator_kernel.cli.project import App
    from navigator_kernel.model_ports import ChatModel
    from navigator_kernel.skills.lifecycle import Examples, Lifecycle

ELSEWHERE = ("what is the weather tomorrow", "明天天气怎么样")  # messages for no skill of a project


@click.command("new")
@click.argument("name")
@click.option("--description", default="", help="What the skill does and when to use it.")
@click.option("--query", "queries", multiple=True, help="A message that should use the skill; may be repeated.")
@json_option
@pass_app
def new(app: App, *, name: str, description: str, queries: Sequence[str], as_json: bool) -> None:
    """Create .claude/skills/NAME with a SKILL.md to fill in, and evals for navigator eval."""
    name = unicodedata.normalize("NFC", name)
    files = {file: text.encode() for file, text in _files(name, clean(description, lines=False), queries).items()}
    if problems := [
        one.message for one in validate(files["SKILL.md"], name, files, strict=True) if one.level == "error"
    ]:
        raise UsageProblem(
            problems[0], hint="lower-case letters, digits and '-', at most 64; a description of at most 1,024"
        )
    refuse_lookalike(name, ())
    folder = app.root / ".claude" / "skills" / name
    if folder.exists() or folder.is_symlink():
        raise Refused(f"{str(folder)!r} already exists", hint="choose another name, or change the existing skill")
    writer = FolderWriter([folder], within=app.root)
    for file, body in files.items():
        writer.make_folder((folder / file).parent)
        writer.write(folder / file, body)
    if as_json:
        document({"name": name, "path": str(folder), "files": sorted(files)})
        return
    say_lines([f"wrote {folder / file}" for file in sorted(files)])
    note(f"fill in SKILL.md, then: navigator eval {name}")


def _files(name: str, description: str, queries: Sequence[str]) -> Mapping[str, str]:
    words = name.replace("-", " ")
    queries = queries or (f"help me with {words}", f"{words} please")
    chinese = any(language_of(text) == "zh" for text in (description, *queries))
    scenario = f"用户需要 {words} 时使用" if chinese else f"the user asks for {words}"
    told = description or f"Does {words}. Use when {scenario}."
    rows = [{"query": query, "should_trigger": True, "expected_skill": name} for query in queries]
    rows += [{"query": query, "should_trigger": False} for query in ELSEWHERE]
    examples = "".join(f"    {shorten(clean(query), 500)}\n" for query in queries)
    page = (
        f"---\nname: {name}\ndescription: {json.dumps(told, ensure_ascii=False)}\n"
        f"metadata:\n  navigator-examples: |\n{examples}---\n\n# {words}\n\n"
        "Say here what is to be done, step by step, and what the answer looks like.\n"
    )
    cases = {
        "skill_name": name,
        "evals": [{"id": 1, "prompt": queries[0], "expected_output": "Say it here.", "files": []}],
    }
    return {
        "SKILL.md": page,
        "evals/evals.json": f"{json.dumps(cases, ensure_ascii=False, indent=2)}\n",
        "evals/trigger-eval.json": f"{json.dumps(rows, ensure_ascii=False, indent=2)}\n",
    }


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
    names = names or tuple(skill.name for skill in lifecycle.installed().skills if skill.status == "managed")
    skills = [lifecycle.examples(name) for name in names]
    cost: dict[str, Any] = {}
    if forget:
        skills = [lifecycle.examples(skill.name, ()) for skill in skills]
    elif not show:
        pending = [skill.name for skill in skills if not (everything and skill.examples)]
        cost = _written(app, lifecycle, pending, model_name, sure=yes, as_json=as_json)
        skills = cost.pop("skills")
    failed = int(bool(cost.get("failed")))
    if as_json:
        document({"count": len(skills), "skills": to_builtins(skills), "exit_code": failed, **cost})
        return failed
    rows = [(skill.name, example) for skill in skills for example in skill.examples]
    table(("skill", "example"), rows) if rows else note("no examples are kept")
    return failed


def _written(
    app: App, lifecycle: Lifecycle, names: Sequence[str], model_name: str, *, sure: bool, as_json: bool
) -> dict[str, Any]:
    """Returns `{skills, failed, requests, input_tokens, …}`; raises the first failure if every skill failed."""
    from navigator_kernel.cli.model_asked import agreed_model, asked_model
    from navigator_kernel.routing.skill_writer import EXAMPLES, write_examples

    catalogue = app.bare.catalogue
    skills = [skill for name in names if (skill := catalogue.find(name)) is not None]
    if not skills:
        return {"skills": [], "failed": {}, **Spent().to_dict()}
    model = agreed_model(app, model_name, EXAMPLES, skills, sure=sure, as_json=as_json)
    done: list[Examples] = []
    failed: dict[str, KernelError] = {}

    async def write_all(model: ChatModel) -> Spent:
        """Stores the examples of each skill immediately, so that an interruption loses none."""
        spent = Spent()
        for skill in skills:
            try:
                examples, cost = await write_examples(model, skill)
            except KernelError as error:
                failed[skill.name] = error
                if not as_json:
                    note(f"{skill.name}: {error.message}")
                continue
            spent += cost
            done.append(lifecycle.examples(skill.name, examples))
        return spent

    spent = asked_model(app, model, write_all)
    if not done:
        raise next(iter(failed.values()))
    return {"skills": done, "failed": {name: error.message for name, error in failed.items()}, **spent.to_dict()}


COMMANDS: Mapping[str, click.Command] = {"learn": learn, "new": new}

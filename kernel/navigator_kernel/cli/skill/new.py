"""`navigator skill new`: creates a skill with evals."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence

import click

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, note, say_lines
from navigator_kernel.cli.project import App
from navigator_kernel.errors import Refused, UsageProblem
from navigator_kernel.skills.formats.confusables import refuse_lookalike
from navigator_kernel.skills.formats.validate import validate
from navigator_kernel.text import clean, language_of, shorten

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
    if found := [one.message for one in validate(files["SKILL.md"], name, files, strict=True) if one.level == "error"]:
        raise UsageProblem(
            found[0], hint="lower-case letters, digits and '-', at most 64; a description of at most 1,024"
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


COMMANDS: Mapping[str, click.Command] = {"new": new}

"""`navigator skill optimize`: proposes a better description of a skill and shows what it changes; writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import click
from msgspec.structs import replace

from navigator_kernel.cli import skill_names
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, note, say_lines
from navigator_kernel.cli.project import App
from navigator_kernel.cli.skill.eval import difference, gathered, show, tried
from navigator_kernel.errors import UsageProblem
from navigator_kernel.evals.cases import EvalCase
from navigator_kernel.evals.score import Outcome, worth
from navigator_kernel.skills.catalog.aliases import other_words
from navigator_kernel.text import clean, lazy_compile
from navigator_kernel.values.chat import Spent

if TYPE_CHECKING:
    from navigator_kernel.bootstrap.project import Project
    from navigator_kernel.model_ports import ChatModel
    from navigator_kernel.values.resource import SkillDef


class _Trial(NamedTuple):
    """Tries descriptions of one skill on `cases`; `folder` contains the index."""

    app: App
    project: Project
    skill: SkillDef
    cases: Sequence[EvalCase]
    folder: Path

    def outcomes(self, description: str) -> list[Outcome]:
        changed = replace(self.skill, description=description)
        return tried(self.project, self.cases, self.app.settings, [changed], self.folder)


@click.command("optimize")
@click.argument("name", shell_complete=skill_names.here)
@click.option("--model", "model_name", default="", help="Let this model propose descriptions, too.")
@click.option("--yes", is_flag=True, help="Ask the model without asking you first.")
@json_option
@pass_app
def optimize(app: App, *, name: str, model_name: str, yes: bool, as_json: bool) -> None:
    """Propose a better description for the skill NAME.

    Proposals are made from the skill's own text, with --model also by the model. Each one is tried on the evals of all
    skills and on the examples of this one. The best is shown with the messages that change. Nothing is written.
    """
    from navigator_kernel.cli.model_asked import agreed_model, asked_model
    from navigator_kernel.routing.skill_writer import DESCRIPTIONS, SHOWN, write_descriptions

    project = app.bare
    skill = skill_names.named(project.catalogue, name)
    every = [one for one in project.catalogue.list_resources() if one.type == "skill"]
    cases, _ = gathered(app, project, every, whole=True)
    own = [EvalCase(skill.name, "examples", text, should_trigger=True) for text in (*skill.examples, *skill.triggers)]
    if not own and not any(case.wanted == skill.name for case in cases):
        hint = f"write evals/{skill.name}.json into its folder, or: navigator skill learn {skill.name}"
        raise UsageProblem(f"there is no message that {skill.name!r} is for", hint=hint)
    cases = [*cases, *own]
    bare = replace(skill, examples=(), triggers=())  # the evals use them as messages, so they must not match themselves
    asked: tuple[str, ...] = ()
    spent = Spent()
    if model_name:
        wanted = [case.query for case in cases if case.wanted == bare.name][:SHOWN]
        others = [case.query for case in cases if case.wanted != bare.name]
        words = {*bare.description.casefold().split()}
        unwanted = sorted(others, key=lambda text: -len(words.intersection(text.casefold().split())))[:SHOWN]
        model = agreed_model(app, model_name, DESCRIPTIONS, [bare], [*wanted, *unwanted], sure=yes, as_json=as_json)

        async def work(model: ChatModel) -> tuple[tuple[str, ...], Spent]:
            return await write_descriptions(model, bare, wanted, unwanted)

        asked, spent = asked_model(app, model, work)
    with TemporaryDirectory(prefix="navigator-") as folder:
        trial = _Trial(app, project, bare, cases, Path(folder))
        now = trial.outcomes(skill.description)
        # The description with the best outcomes, the shorter of two equals: additions are kept one by one if they
        # help, then the model's descriptions are compared with the result
        best, then = bare.description, now
        for more in additions(bare, other_words):
            text = joined(best, [more])
            outcomes = trial.outcomes(text) if len(text) <= LONGEST else then
            if sum(map(worth, outcomes)) > sum(map(worth, then)):
                best, then = text, outcomes
        for text in asked:
            outcomes = trial.outcomes(text)
            gained = sum(map(worth, outcomes)) - sum(map(worth, then))
            if gained > 0 or (gained == 0 and then is not now and len(text) < len(best)):
                best, then = text, outcomes
    changes = difference(now, then, "en" if as_json else app.spoken)
    body = {"skill": skill.name, "description": skill.description, **changes}
    body |= {"proposed": None if best == skill.description else best, **spent.to_dict()}
    if as_json:
        document(body)
        return
    show(body, app.spoken)
    if body["proposed"] is None:
        note("no proposal routes the messages better")
        return
    say_lines(["", "proposed description:", f"  {body['proposed']}"])
    note("nothing was written: put it into a copy of its SKILL.md, then navigator eval --against COPY")


COMMANDS: Mapping[str, click.Command] = {"optimize": optimize}


LONGEST = 1_024  # characters of a description (Agent Skills specification)
HEADINGS, TYPES, PHRASES, WORDS = 6, 8, 4, 6  # most additions of each kind
_HEADING = lazy_compile(r"(?m)^#{2,3}[ \t]+([^\n#`]{3,40})[ \t]*$")
_PLAIN = frozenset(
    "overview introduction installation setup usage quick start reference references notes examples example output "
    "workflow steps step instructions troubleshooting requirements prerequisites resources purpose guidelines tips "
    "when how to use this skill it works".split()
)
_TYPE = lazy_compile(
    r"(?<![\w.])\.(pdf|docx?|xlsx?|pptx?|csv|tsv|json|ya?ml|html?|md|png|jpe?g|svg|mp4|mp3|wav|ipynb|sql|xml)\b"
)
_PHRASE = lazy_compile(r"[\"“「]([^\"”」\n]{6,60})[\"”」]")
_WHEN = lazy_compile(r"(?ims)^#{1,3}(?=[^\n]*\b(?:when|trigger))[^\n]*+\n(.*?)(?=^#|\Z)")


class Addition(NamedTuple):
    """A sentence that a description could have; `rule` names its source."""

    rule: str
    sentence: str


def additions(skill: SkillDef, translated: Callable[[Sequence[str]], Sequence[str]]) -> Iterator[Addition]:
    """At most one addition for each rule; `translated` returns the words of texts in the other language."""
    known, text = skill.description.casefold(), clean(skill.sop)
    lines = [heading.strip(" :*").casefold().split() for heading in _HEADING.findall(text)]
    headings = [" ".join(line) for line in lines if not all(word.strip(":&-") in _PLAIN for word in line)]
    # Quoted phrases below a heading about when the skill is used
    phrases = [phrase.strip() for part in _WHEN.findall(text) for phrase in _PHRASE.findall(part)]
    for rule, begin, words in (
        ("file types", "Works with", _new(known, [f".{ending.lower()}" for ending in _TYPE.findall(text)])[:TYPES]),
        ("headings", "Covers", _new(known, headings)[:HEADINGS]),
        ("phrases", "For requests such as", [f'"{phrase}"' for phrase in _new(known, phrases)[:PHRASES]]),
        ("other language", "", _new(known, translated([skill.name, *skill.tags]))[:WORDS]),
    ):
        if words:
            yield Addition(rule, f"{begin} {', '.join(words)}.".strip() if begin else f"({', '.join(words)})")


def joined(description: str, more: Sequence[Addition]) -> str:
    """The description with these sentences added at its end."""
    text = description.rstrip()
    text = text if not text or text[-1] in ".!?。！？)）" else f"{text}."
    return " ".join([text, *(one.sentence for one in more)]).strip()


def _new(known: str, words: Sequence[str]) -> list[str]:
    return [word for word in dict.fromkeys(words) if word.casefold() not in known]

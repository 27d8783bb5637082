"""Shared parts of the skill commands: options, progress, findings and the question whether to accept a block."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from navigator_kernel.cli.output import document, note
from navigator_kernel.errors import ConsentNeeded, Refused, UsageProblem
from navigator_kernel.language.wording import say
from navigator_kernel.skills.scan.finding import told
from navigator_kernel.text import Language, clean

if TYPE_CHECKING:
    from navigator_kernel.cli.project import App
    from navigator_kernel.skills.install.conflict import Side
    from navigator_kernel.skills.lifecycle import Lifecycle
    from navigator_kernel.skills.options import InstallOptions


def shown(skill: str, findings: Iterable[Mapping[str, Any]], *, notes: bool) -> list[str]:
    """Findings as lines, worst first; notes only on request."""
    order = {"error": 0, "warning": 1, "note": 2}
    chosen = sorted(
        (finding for finding in findings if notes or finding["level"] != "note"), key=lambda one: order[one["level"]]
    )
    return [told(one, skill) for one in chosen]


def note_lines(skill: str, findings: Iterable[Mapping[str, Any]], *, notes: bool) -> None:
    for line in shown(skill, findings, notes=notes):
        note(line)


R = TypeVar("R")


def accepting(
    app: App,
    operation: str,
    options: InstallOptions,
    run: Callable[[Lifecycle, InstallOptions], R],
    *,
    source: str = "",
    quiet: bool,
    ask: bool = True,
) -> R:
    """The result of `run`. If `ask` is true, the person is asked at a terminal about each block, rule by rule, and what
    they accept is tried again."""
    ask = ask and not quiet and sys.stdin.isatty() and sys.stderr.isatty()
    asked: set[str] = set()
    while True:
        problem: Refused | None = None
        try:
            with busy(app, operation, quiet=quiet, source=source) as lifecycle:
                result = run(lifecycle, options)
            left = getattr(result, "left_out", [])
        except Refused as error:
            problem, left = error, error.data.get("left_out") or [error.data]
        blocked = [one for one in left if one.get("blocked_by") and one["skill"] not in asked]
        asked |= {one["skill"] for one in blocked}
        accepted = []
        for one in blocked if ask else ():
            if all(_accepts(one, rule, app.spoken) for rule in one["blocked_by"]):
                accepted += [f"{one['skill']}:{rule}" for rule in one["blocked_by"]]
        if not accepted:
            if problem is not None:
                raise problem
            return result
        options = replace(options, accept=[*options.accept, *accepted])


def _accepts(blocked: Mapping[str, Any], rule: str, language: Language) -> bool:
    """Whether the person types the name of the rule."""
    skill = blocked["skill"]
    for finding in blocked["findings"]:
        if finding["level"] == "error" and finding["code"] == rule:
            note(told(finding, skill))
    ask = clean(say("install.accept", language, rule=rule, skill=skill), lines=False)
    return bool(click.prompt(ask, default="", show_default=False, err=True, prompt_suffix="").strip() == rule)


def taking(app: App, take: Sequence[str], run: Callable[[Mapping[str, Side]], R], *, quiet: bool) -> R:
    """The result of a repair. At a terminal, the person chooses a side for each entry of the lock that both sides of a
    merge changed; `take` has those chosen before, each `NAME=ours` or `NAME=theirs`."""
    sides: dict[str, Side] = {}
    for word in take:
        name, _, side = word.partition("=")
        if side not in {"ours", "theirs"}:
            raise UsageProblem(f"{word!r} names no side", hint="--take NAME=ours, or NAME=theirs")
        sides[name] = "ours" if side == "ours" else "theirs"
    while True:
        try:
            return run(sides)
        except ConsentNeeded as error:
            if "conflicts" not in error.data or quiet or not (sys.stdin.isatty() and sys.stderr.isatty()):
                raise
            for one in error.data["conflicts"]:
                none = say("take.removed", app.spoken)
                ask = say("take.side", app.spoken, name=one.name, ours=one.ours or none, theirs=one.theirs or none)
                sides[one.name] = click.prompt(ask, type=click.Choice(["ours", "theirs"]), err=True)


F = TypeVar("F", bound=Callable[..., Any])

dry_option = click.option("--dry-run", is_flag=True, help="Only show what would happen.")
accept_option = click.option(
    "--accept",
    multiple=True,
    metavar="RULE",
    help="Install despite this rule of the scanner: RULE or NAME:RULE; may be repeated.",
)
grown_option = click.option(
    "--yes", "grown", is_flag=True, help="Agree to what a skill can do that it could not before."
)
take_option = click.option(
    "--take",
    multiple=True,
    metavar="NAME=SIDE",
    help="The side of a merge for an entry of the lock that both changed: NAME=ours or NAME=theirs; may be repeated.",
)
verbose_option = click.option(
    "-v", "--verbose", is_flag=True, help="A line for every skill and finding, notes and what is left out, too."
)
_user = click.option("--user", is_flag=True, help="Your own skills instead of the project's.")
_TARGETS = click.Choice(["claude", "agents"])


def place_options(command: F) -> F:
    """Adds `--user` and `--target` to a command that works on one place."""
    text = "The folder: .claude/skills (default) or .agents/skills."
    return _user(click.option("--target", type=_TARGETS, help=text)(command))


def filter_options(command: F) -> F:
    """Adds `--user` and `--target` to a command that works on all places."""
    return _user(click.option("--target", type=_TARGETS, help="Only .claude/skills, or only .agents/skills.")(command))


def reach_options(command: F) -> F:
    """Adds `--offline` and `--auth`."""
    offline = click.option("--offline", is_flag=True, help="Do not use the network, only what was fetched before.")
    auth = click.option("--auth", is_flag=True, help="Let git use your own keys and credentials for this host.")
    return offline(auth(command))


@contextmanager
def busy(app: App, operation: str, *, quiet: bool, source: str = "") -> Iterator[Lifecycle]:
    """The skill commands; on a terminal with a spinner that shows how many skills are done."""
    lifecycle = app.bare.lifecycle
    if quiet or not sys.stderr.isatty():
        yield lifecycle
        return
    with _spinner(app, operation, source) as lifecycle.deps.progress:
        yield lifecycle


@contextmanager
def _spinner(app: App, operation: str, source: str) -> Iterator[Callable[[int, int], None]]:
    from rich.console import Console
    from rich.text import Text

    what = say(f"busy.{operation}", app.spoken, source=source)

    def line(text: str) -> Text:
        return Text(clean(text, lines=False), no_wrap=True, overflow="ellipsis")

    with Console(stderr=True).status(line(what)) as shown:

        def show(done: int, of: int) -> None:
            if of > 1:
                shown.update(line(f"{what}: {done}/{of}"))

        yield show


def show_json(result: Struct, **more: Any) -> None:
    """Prints the result of a skill command as its JSON document."""
    document({**to_builtins(result), **more})

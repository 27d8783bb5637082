"""Shows a turn: its reply, to a person or as the one JSON document, and what happens while it runs."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct, field
from msgspec.structs import replace

from navigator_kernel.cli.chat.question import can_answer, command_for
from navigator_kernel.cli.output import (
    cut,
    document,
    draft,
    is_attended,
    is_formatted,
    lines,
    model_text,
    note,
    style_of,
    width,
)
from navigator_kernel.events import (
    Event,
    Progress,
    RunContent,
    SkillActivated,
    StepStarted,
    ToolCallStarted,
    UICommand,
    Usage,
)
from navigator_kernel.language.rendering import file_lines, render_report, render_sentence, step_lines
from navigator_kernel.language.wording import say
from navigator_kernel.text import Language, clean, lazy_compile, shorten
from navigator_kernel.values.chat import Spent, spent_by
from navigator_kernel.values.packet import FORMATS, Report, Style
from navigator_kernel.values.work import is_unfinished
from navigator_kernel.values.workflow import MAX_STEPS, outline

if TYPE_CHECKING:
    from rich.live import Live

    from navigator_kernel.cli.project import App
    from navigator_kernel.values.reply import Reply, Sections

AROUND = 4  # lines of the screen for the line of letters, the prompt and what is typed
HEAD = 200  # columns of a question's first line, repeated below its pages


def show(app: App, reply: Reply, *, form: str, as_json: bool, streamed: bool = False, in_chat: bool = False) -> None:
    """Prints the report on stdout in the format `form`. The notice, and for a person the sections, go to stderr (X-41,
    X-44); with `protocol` the sections go to stdout. With `streamed`, a model's answer was printed already; `in_chat`,
    hints say what to type there."""
    if as_json:
        document(reply.to_dict())
        return
    language = app.language or reply.language
    style = style_of(app.settings.style)
    if reply.notice is not None and reply.notice.code == "few_skills":
        note(say("notice.few_skills_chat" if in_chat else "notice.few_skills", language, count=reply.notice.count))
    if reply.workflow is not None and form != "raw":
        # Prints the scope before the plan (WFL-5), the plan (WFL-10), and the steps that it leaves out (WFL-3)
        if reply.workflow.state == "proposed":
            note(say("workflow.scope", language))
        lines(outline(reply.workflow.plan, language))
        count = len(reply.workflow.plan.steps)
        if reply.workflow.left:
            note(say("workflow.left", language, limit=count, steps="; ".join(reply.workflow.left)))
        if count > MAX_STEPS:
            note(say("workflow.many", language, count=count))
    if form != "raw":
        lines(line for report in reply.reports[:-1] for line in step_lines(report, style))
    waits = reply.session.approval is not None or reply.session.question is not None
    goes_on = not waits and not in_chat and is_unfinished(reply.session)
    report = for_chat(reply.report, language) if in_chat else reply.report
    if goes_on and "hint" in report.data:  # the command that goes on is shown below
        continues, alone = (say(key, reply.language, hint="") for key in ("hint.go_on_or", "hint.go_on"))
        hint = str(report.data["hint"]).removeprefix(continues).removeprefix(alone)
        report = replace(report, data={**report.data, "hint": hint})
    if waits and report.state == "pending" and can_answer() and form in {"auto", "detail"}:
        _took(reply, form, language)  # before the question, so that its letters stand right below it
        _ask(report, style, language)
    else:
        _answer(report, form, style, language, streamed=streamed, as_sentence=in_chat or is_attended())
        _took(reply, form, language)
    if reply.workflow is not None and reply.workflow.result:
        note(say("workflow.result", language, path=reply.workflow.result))
    for text in filter(None, (reply.question, reply.open)):
        note(text)
    if waits and not in_chat and (reply.is_stopped or not can_answer()):
        note(say("notice.resume", language, command=command_for(reply.session, app.root_flag, app.rights)))
        if word := reply.report.data.get("allow"):
            note(say("notice.allow", language, word=shlex.quote(str(word))))
    if goes_on:
        note(say("notice.continue", language, command=command_for(reply.session, app.root_flag, app.rights)))
    how = app.settings.sections if form in {"auto", "detail"} and is_attended() else "off"
    if form == "protocol":
        lines(sections(reply.sections, language))
    elif how == "full":
        for line in sections(reply.sections, language):
            note(line, dim=True)
    elif how == "compact" and not waits:
        for key, body in _titled(reply.sections):
            note(f"{say(key, language)} {'; '.join(body)}", dim=True)


def for_chat(report: Report, language: Language) -> Report:
    """The report with hints that a person can follow in chat; a skill's or a model's own words stay."""
    data = dict(report.data)
    if data.get("hint"):
        data["hint"] = chat_hint(str(data["hint"]), language)
    if "ways" in data:
        host, shown = chat_hint(data["ways"][1], language), say("chat.way_show", language, skill=data["skill"])
        data["ways"] = [say("chat.way_model", language), host, shown]
        summary = report.summary
    elif data.get("reason") == "no_model":
        near = ", ".join(map(str, data.get("nearest", ())))
        summary = say("chat.near" if near else "chat.no_model", language, skills=near)
    elif report.by_model or report.state == "success":
        summary = report.summary
    else:
        summary = chat_hint(report.summary, language)
    return replace(report, data=data, summary=summary)


def chat_hint(hint: str, language: Language) -> str:
    """The hint with chat's own commands in place of those of the shell; others are marked as commands for a shell."""
    for command, typed in _IN_CHAT:
        hint = hint.replace(f"navigator {command}", typed)
    return _COMMAND.sub(lambda hit: say("notice.shell", language, command=hit.group()), hint)


# commands that chat has itself, longest first
_IN_CHAT = (("skill list", "/skills"), ("model use", "/model"), ("list", "/skills"), ("why", "/why"))
_COMMAND = lazy_compile(r"\bnavigator (?=[a-z])")


def _ask(report: Report, style: Style, language: Language) -> None:
    """Prints a question; one that is longer than the screen through the pager, and then what it is about."""
    text = render_sentence(report, style).rstrip()
    size = os.get_terminal_size(sys.stdout.fileno())
    rows = sum(max(1, -(-width(line) // (size.columns or 80))) for line in text.split("\n"))
    if rows + AROUND <= (size.lines or 24):
        lines(text)
        return
    click.echo_via_pager(clean(text) + "\n")
    head, count = text.partition("\n")[0].rstrip(" :："), text.count("\n") + 1
    lines(say("notice.lines", language, what=cut(head, HEAD), count=f"{count:,}"))


def _answer(report: Report, form: str, style: Style, language: Language, *, streamed: bool, as_sentence: bool) -> None:
    """Prints a model's answer as the model wrote it and in full, and its failure on stderr. Any other report is printed
    as a report, or for a person as a sentence."""
    if form == "prompt" and report.state == "success" and report.raw is not None:
        text = clean(report.raw) if sys.stdout.isatty() else report.raw  # the exact text, but for a terminal
        click.echo(text, nl=not text.endswith("\n"))
        return
    form = "auto" if form == "prompt" else form
    has_failed = report.unanswered or report.data.get("type") == "Unfinished"
    is_failure = form == "auto" and report.raw is None and has_failed
    if not is_failure and (form not in {"auto", "detail"} or not report.by_model or report.raw is None):
        if form == "auto" and as_sentence:
            lines(render_sentence(report, style))
        else:
            lines(render_report(report, FORMATS.get(form, "detail"), style))
        return
    if not streamed and not is_failure:
        text = report.raw or ""
        if report.offloaded:  # the report contains only the beginning
            with suppress(OSError, ValueError, KeyError, TypeError):
                whole = json.loads(Path(report.offloaded).read_text(encoding="utf-8"))["raw"]
                text = whole if isinstance(whole, str) else text
        model_text(text)
    for line in file_lines(report, language):
        note(line)
    if report.data.get("incomplete"):
        note(say("model.incomplete", language))
    if report.state != "success":
        note(render_sentence(report, style).partition("\n")[0])
    if hint := report.data.get("hint"):
        note(f"hint: {clean(str(hint), lines=False)}")
    for one in report.data.get("diagnostics", ()):
        note(clean(str(one["msg"]), lines=False))


def _took(reply: Reply, form: str, language: Language) -> None:
    """Prints the usage of all requests of the turn; the lines add up to `/cost`."""
    if form not in {"auto", "detail"} or not reply.usage.requests:
        return
    spent, models = reply.usage, ", ".join(clean(name, lines=False) for name in reply.models)
    if spent.unknown == spent.requests and not spent.input + spent.output:
        note(say("usage.all_unknown", language, model=models), dim=True)
        return
    cost = f"${spent.cost:.4f}" if spent.priced else say("usage.unpriced", language)
    told = say("usage.line", language, model=models, tokens=spent.input + spent.output, cost=cost)
    if spent.unknown:
        told += "; " + say("usage.unknown", language, count=spent.unknown, requests=spent.requests)
    note(told, dim=True)


def sections(held: Sections, language: Language) -> list[str]:
    """The sections that are not empty (OUT-1..3, X-24)."""
    return [line for key, body in _titled(held) for line in (say(key, language), *(f"  {one}" for one in body))]


def _titled(held: Sections) -> list[tuple[str, list[str]]]:
    return [(f"section.{name}", body) for name, body in held.to_dict().items() if body]


# Shows a turn while it runs: the text, skills, tools, and usage.

ARGUMENTS = 80  # characters of a call's arguments
NO_SKILL = "(no skill)"


class Shown(Struct):
    """Listens to the turns of one conversation; with `quiet` it counts their usage and shows nothing."""

    quiet: bool = False
    streamed: bool = False  # whether text of this turn is on the screen
    _text: str = ""  # the paragraph that still grows
    _draft: Live | None = None  # shows it
    _open: bool = False  # whether its line is unfinished
    spent: defaultdict[str, Spent] = field(default_factory=lambda: defaultdict(Spent))  # of the conversation, by skill

    def __call__(self, event: Event) -> None:
        if isinstance(event.body, Usage):
            self.spent[event.body.skill or NO_SKILL] += spent_by(event.body)
        if self.quiet:
            return
        match event.body:
            case RunContent(text=text) if event.step is not None and sys.stdout.isatty():
                self.streamed = True
                if not is_formatted():
                    sys.stdout.write(clean(text))
                    sys.stdout.flush()
                    self._open = True
                    return
                self._text += text  # Markdown, of which the last paragraph still grows
                if end := _end_of_paragraph(self._text):
                    self._show(end)
                if self._text.strip():
                    self._draft = draft(self._text, self._draft)
            case SkillActivated(skill=skill):
                self._note(f"… {skill}")
            case StepStarted(agent=agent) if agent not in {"skills", "kernel"}:
                self._note(f"… {agent}")
            case ToolCallStarted(tool=tool, args=args) if (
                "." not in tool
            ):  # a model's call; the kernel's own calls contain an agent's name
                self._note(f"… {tool} {shorten(json.dumps(dict(args), ensure_ascii=False), ARGUMENTS)}")
            case Progress(text=text):
                self._note(text)
            case UICommand(type="toast", payload=payload):
                self._note(str(payload.get("message", "")))

    def end(self) -> bool:
        """Whether the answer was streamed; resets the state for the next turn."""
        self._show(len(self._text))
        streamed, self.streamed = self.streamed, False
        return streamed

    def costs(self, language: Language) -> Iterator[str]:
        """A line for each skill, and one for all."""
        total = Spent()
        for name, spent in sorted(self.spent.items()):
            total += spent
            yield _line(name, spent, language)
        yield _line(say("cost.all", language), total, language)

    def _note(self, text: str) -> None:
        if sys.stderr.isatty():
            self._show(len(self._text))
            note(clean(text, lines=False))

    def _show(self, end: int) -> None:
        if self._open:
            sys.stdout.write("\n")
            sys.stdout.flush()
            self._open = False
        if self._draft is not None:
            self._draft.stop()
            self._draft = None
        text, self._text = self._text[:end], self._text[end:]
        if text.strip():
            model_text(text)


def _end_of_paragraph(text: str) -> int:
    """Where the last whole paragraph ends, 0 if there is none; a block of code is one paragraph."""
    end = fences = at = 0
    for line in text.splitlines(keepends=True):
        at += len(line)
        fences += line.lstrip().startswith("```")
        if not line.strip() and line.endswith("\n") and not fences % 2:
            end = at
    return end


def waits(event: Event) -> None:
    """Shows a wait on a terminal."""
    if isinstance(event.body, Progress) and sys.stderr.isatty():
        note(clean(event.body.text, lines=False))


def _line(name: str, spent: Spent, language: Language) -> str:
    cost = f"${spent.cost:.4f}" if spent.priced else say("usage.unpriced", language)
    unknown = say("cost.unknown", language, number=spent.unknown) if spent.unknown else ""
    tokens = {"input": spent.input, "cached": spent.cached, "output": spent.output}
    return say("cost.line", language, name=name, requests=spent.requests, **tokens, cost=cost) + unknown

"""Shows a reply to a person, or as the one JSON document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from navigator_kernel.cli.output import document, is_attended, lines, note, style_of
from navigator_kernel.language.rendering import render_report, render_sentence
from navigator_kernel.language.wording import say
from navigator_kernel.stages.answers import asks_for_model
from navigator_kernel.text import clean
from navigator_kernel.values.job import is_lasting
from navigator_kernel.values.report import FORMATS
from navigator_kernel.values.workflow import MAX_STEPS, REPEAT, WorkflowView, outline

if TYPE_CHECKING:
    from navigator_kernel.cli.project import App
    from navigator_kernel.text import Language
    from navigator_kernel.values.reply import Reply, Sections
    from navigator_kernel.values.report import Report, Style


def show(app: App, reply: Reply, *, form: str, as_json: bool, streamed: bool = False) -> None:
    """Prints the report on stdout in the format `form`. The notice, and for a person the sections, go to stderr (X-41,
    X-44); with `protocol` the sections go to stdout. With `streamed`, a model's answer was printed already."""
    if as_json:
        document(reply.to_dict())
        return
    language = app.language or reply.language
    style = style_of(app.settings.style)
    if reply.notice is not None and reply.notice.code == "few_skills":
        note(say("notice.few_skills", language, count=reply.notice.count))
    if reply.workflow is not None and form != "raw":
        _workflow(reply.workflow, language)
        lines([render_report(report, "summary", style) for report in reply.reports[:-1]])
    _answer(reply.report, form, style, language, streamed=streamed)
    if form in {"auto", "detail"} and reply.usage.requests:
        _took(reply, language)
    if reply.workflow is not None and reply.workflow.result:
        note(say("workflow.result", language, path=reply.workflow.result))
    _asked(reply, language)
    if form == "protocol":
        lines(sections(reply.sections, language))
    elif form in {"auto", "detail"} and is_attended():
        _beside(reply.sections, app.settings.sections, language)


def _answer(report: Report, form: str, style: Style, language: Language, *, streamed: bool) -> None:
    """Prints a model's answer as the model wrote it and in full, and its failure on stderr. Any other report is printed
    as a report, or for a person as a sentence."""
    if form == "auto" and report.raw is None and (report.unanswered or report.data.get("type") == "Unfinished"):
        _failed(report, style)
        return
    if form not in {"auto", "detail"} or not report.by_model or report.raw is None:
        if form == "auto" and is_attended() and "prompt" in report.data and report.state == "success":
            _unworked(str(report.data.get("skill", "")), language)
        elif form == "auto" and is_attended():
            lines(render_sentence(report, style))
        else:
            lines(render_report(report, FORMATS.get(form, "detail"), style))
        return
    if not streamed:
        lines(clean(_whole(report)))
    for file in report.data.get("written", ()):
        note(say("reply.file", language, path=clean(str(file["path"]), lines=False), size=f"{file['size']:,}"))
    if report.data.get("incomplete"):
        note(say("model.incomplete", language))
    if report.state != "success":
        _failed(report, style)
    for one in report.data.get("diagnostics", ()):
        note(clean(str(one["msg"]), lines=False))


def _failed(report: Report, style: Style) -> None:
    """Prints the failure and a hint on stderr."""
    note(render_sentence(report, style).partition("\n")[0])
    if hint := report.data.get("hint"):
        note(f"hint: {clean(str(hint), lines=False)}")


def _whole(report: Report) -> str:
    """The whole answer, even if the report contains only its beginning."""
    if report.offloaded:
        try:
            held = json.loads(Path(report.offloaded).read_text(encoding="utf-8"))["raw"]
        except (OSError, ValueError, KeyError, TypeError):
            held = None
        if isinstance(held, str):
            return held
    return report.raw or ""


def _took(reply: Reply, language: Language) -> None:
    """Prints the usage of all requests of the turn; the lines add up to `/cost`."""
    spent, models = reply.usage, ", ".join(clean(name, lines=False) for name in reply.models)
    if spent.unknown == spent.requests and not spent.input + spent.output:
        note(say("usage.all_unknown", language, model=models))
        return
    cost = f"${spent.cost:.4f}" if spent.priced else say("usage.unpriced", language)
    told = say("usage.line", language, model=models, tokens=spent.input + spent.output, cost=cost)
    if spent.unknown:
        told += "; " + say("usage.unknown", language, count=spent.unknown, requests=spent.requests)
    note(told)


def _unworked(skill: str, language: Language) -> None:
    """Prints what a prompt skill needs if there is no model, and what can be done instead."""
    lines(say("prompt.unworked", language, skill=clean(skill, lines=False)))
    for way in ("model", "host", "show"):
        note(say(f"prompt.way_{way}", language))


def sections(held: Sections, language: Language) -> list[str]:
    """The sections that are not empty (OUT-1..3, X-24)."""
    return [line for key, body in _titled(held) for line in (say(key, language), *(f"  {one}" for one in body))]


def _titled(held: Sections) -> list[tuple[str, list[str]]]:
    return [(f"section.{name}", body) for name, body in held.to_dict().items() if body]


def _beside(held: Sections, how: str, language: Language) -> None:
    """Prints a dim line for each section, or the sections in full (X-41)."""
    if how == "full":
        for line in sections(held, language):
            note(line, dim=True)
    elif how == "compact":
        for key, body in _titled(held):
            note(f"{say(key, language)} {'; '.join(body)}", dim=True)


def _workflow(view: WorkflowView, language: Language) -> None:
    """Prints the scope before the plan (WFL-5), the plan (WFL-10), and the steps that it leaves out (WFL-3)."""
    if view.state == "proposed":
        note(say("workflow.scope", language))
    lines(outline(view.plan, language))
    count = len(view.plan.steps)
    if view.left:
        note(say("workflow.left", language, limit=count, steps="; ".join(view.left)))
    if count > MAX_STEPS:
        note(say("workflow.many", language, count=count))


def _asked(reply: Reply, language: Language) -> None:
    """Prints what the turn waits for, and how to answer from a shell."""
    if reply.question:
        note(reply.question)
    approval = reply.session.approval
    if approval is not None and approval.workflow:
        key = "repeat" if approval.subject == REPEAT else "resume" if approval.subject.startswith("retry:") else "token"
        note(say(f"workflow.{key}", language, token=approval.workflow))
    elif approval is not None and asks_for_model(approval) and is_attended():
        folder = clean(str(reply.report.data.get("folder", "")), lines=False) if approval.wider else ""
        what = say("notice.answers_folder" if folder else "notice.answers_session", language, folder=folder)
        lasts = bool(approval.wider) or is_lasting(approval.subject)
        for line in say("notice.answers", language, what=what).split("\n"):
            if lasts or not line.startswith("a "):
                note(line)
        note(say("notice.resume", language, session=reply.session.id))
    elif approval is not None or reply.session.question is not None:
        note(say("notice.resume", language, session=reply.session.id))

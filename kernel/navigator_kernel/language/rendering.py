"""Renders a report: five states, three lengths, three styles (RET-1, RET-3, X-20)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from navigator_kernel.language.wording import COLON, say
from navigator_kernel.text import Language, clean, cut_text, in_one_language, lazy_compile, shorten
from navigator_kernel.values.packet import DISARMED, Format, Report, State, Style

if TYPE_CHECKING:
    from navigator_kernel.values.packet import Format, Report, State, Style

EMOJI: Mapping[State, str] = {"success": "✅", "partial": "⚠️", "pending": "⏸️", "error": "❌", "timeout": "⏱️"}
ASCII: Mapping[State, str] = {
    "success": "[OK]",
    "partial": "[PARTIAL]",
    "pending": "[PENDING]",
    "error": "[ERROR]",
    "timeout": "[TIMEOUT]",
}
SUMMARY_LIMIT = 400  # characters of the status line
STEP_LINES = 10  # lines of a step's output in the reply of a workflow
QUESTION_LIMIT = 4_000  # characters of a status line that asks a question

# YAML 1.1 reads some words as other values
_PLAIN_KEY = lazy_compile(r"(?!(?i:true|false|yes|no|on|off|null|y|n)\Z)[A-Za-z_][\w.-]*")


def render_report(report: Report, format: Format, style: Style) -> str:
    """The report as text without a newline at its end; text from elsewhere is cleaned.

    `summary` is the status line, `detail` adds state, data and meta as RET-7 asks; `raw` is the
    output alone, or the detail if there is none. `json` is one object.
    """
    if style == "json":
        return json.dumps(_document(report, format), ensure_ascii=False)
    if format == "raw" and report.raw is not None:
        return clean(report.raw)
    mark = (EMOJI if style == "emoji" else ASCII)[report.state]
    line = f"{mark} {report.agent} {_status(report)}"
    if format == "summary":
        return line
    meta = report.meta
    lines = [line, f"  state: {report.state}"]
    if report.data:
        lines.append(f"  data: {flow(report.data)}")
    cached = ", cached: true" if meta.cached else ""
    lines.append(f"  meta: {{agent: {meta.agent}, time: {_number(meta.time)}, ts: {flow(meta.ts)}{cached}}}")
    return "\n".join(lines)


def render_sentence(report: Report, style: Style) -> str:
    """A report for a person: a sentence on the outcome, then the result (X-41)."""
    mark = (EMOJI if style == "emoji" else ASCII)[report.state]
    status = f"{mark} {_status(report)}"
    return "\n".join([status, *(f"  {line}" for line in result_lines(report))])


def step_lines(report: Report, style: Style, *, whole: bool = False) -> list[str]:
    """A step of a workflow: its status line, its output in words, or the text that a skill writes beside its data, and
    its files. Of the output the first lines, or with `whole` all of it."""
    text = report.data.get("text")
    output = result_lines(report)
    if report.state in {"success", "partial"}:
        in_words = text if isinstance(text, str) else "" if _is_data(report) else report.raw or ""
        output = clean(in_words).strip().splitlines()
    if not whole and len(output) > STEP_LINES:
        output = [*output[:STEP_LINES], "…"]
    files = [clean(file, lines=False) for file in report.files]
    return [render_report(report, "summary", style), *(f"  {line}" for line in [*output, *files])]


def file_lines(report: Report, language: Language) -> list[str]:
    """The files that a model made, with their sizes in bytes: each by its path in the project if it was delivered; a
    folder that other programs would obey stands for all that is in it."""
    sizes: dict[str, int] = {}
    for file in report.data.get("written", ()):
        folder, disarmed, _ = str(file["path"]).partition(f"{DISARMED}/")
        path = file.get("delivered") or folder + disarmed
        sizes[path] = sizes.get(path, 0) + file["size"]
    return [say("reply.file", language, path=clean(path, lines=False), size=f"{sizes[path]:,}") for path in sizes]


def result_lines(report: Report) -> list[str]:
    """The result besides the summary: an output in words with the files, or the data; for a failure, its message and
    hint."""
    if report.state == "pending":
        return [clean(str(way), lines=False) for way in report.data.get("ways", ())]
    if report.state in {"error", "timeout"}:
        lines = [clean(str(report.data[key]), lines=False) for key in ("msg", "hint") if report.data.get(key)]
        return [text for text in lines if text not in report.summary]
    text = report.data.get("text") if _is_data(report) else report.raw
    if isinstance(text, str):
        files = [clean(file, lines=False) for file in report.files] if text is not report.raw else []
        return [*clean(text).strip().splitlines(), *files]
    return [f"{key}: {in_words(value)}" for key, value in report.data.items()]


def in_words(value: Any) -> str:
    """A value on one line for a person, without the signs of a data format."""
    match value:
        case Mapping():
            return ", ".join(f"{clean(str(key), lines=False)} {in_words(item)}" for key, item in value.items())
        case list() | tuple():
            return ("; " if any(isinstance(item, Mapping) for item in value) else ", ").join(map(in_words, value))
        case _:
            return clean(value, lines=False) if isinstance(value, str) else flow(value)


def _is_data(report: Report) -> bool:
    """Whether the output is JSON, which `data` holds already."""
    return (report.raw or "").strip()[:1] in {"{", "["}


def _status(report: Report) -> str:
    """The summary on one line. A long question keeps both ends, as a person must not miss its end. One for
    an approval is shown as it is, with its diff or script."""
    if report.state == "pending" and report.subject:
        return clean(report.summary)
    if report.state == "pending":
        return cut_text(" ".join(clean(report.summary).split()), QUESTION_LIMIT)
    return shorten(clean(report.summary), SUMMARY_LIMIT)


def flow(value: Any) -> str:
    """A value as one line of YAML: plain keys, quoted strings, lists without spaces."""
    match value:
        case Mapping():
            pairs = []
            for key, item in value.items():
                name = str(key)
                name = name if _PLAIN_KEY.fullmatch(name) else json.dumps(clean(name), ensure_ascii=False)
                pairs.append(f"{name}: {flow(item)}")
            return "{" + ", ".join(pairs) + "}"
        case list() | tuple():
            return "[" + ",".join(map(flow, value)) + "]"
        case str():
            return json.dumps(clean(value), ensure_ascii=False)
        case float():
            return _number(value)
        case _:
            return json.dumps(value, ensure_ascii=False, default=str)


def _document(report: Report, format: Format) -> dict[str, Any]:
    if format == "detail":
        return report.to_dict()
    head = {"state": report.state, "agent": report.agent, "summary": report.summary}
    return {**head, "raw": report.raw} if format == "raw" else head


def _number(value: float) -> str:
    """A number with at most three decimals, without `.0`."""
    return str(int(value)) if value == int(value) else repr(round(value, 3))


# Renders a list of skills.

LISTED = 50  # most skills in a list
DESCRIBED = 100  # characters of each description


def listed(skills: Sequence[Mapping[str, Any]], language: Language) -> list[str]:
    """A line for each of the first LISTED skills, installed ones first."""
    own_first = sorted(skills, key=lambda skill: skill.get("status") == "shipped")
    lines = []
    for skill in own_first[:LISTED]:
        off = "" if skill.get("enabled", True) else say("lifecycle.off", language)
        description = in_one_language(str(skill.get("description", "")), language)
        lines.append(f"{skill['name']}{off}{COLON[language]}{shorten(description, DESCRIBED)}")
    more = len(skills) - len(lines)
    return [*lines, *([say("lifecycle.more", language, count=more)] if more else [])]

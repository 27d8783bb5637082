"""The data that a step passes to the next one, and the output of a workflow for the person (WFL-7, part 3 item 5)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.errors import KernelError
from navigator_kernel.language.parameters import is_file
from navigator_kernel.language.rendering import render_report
from navigator_kernel.text import escape_controls
from navigator_kernel.values.request import FileReference, Handoff

if TYPE_CHECKING:
    from navigator_kernel.ports import Kernel
    from navigator_kernel.values.packet import Report
    from navigator_kernel.values.workflow import WorkflowRun

TEXT_LIMIT = 256 * 1024  # bytes of a file whose text is passed on
WHOLE_LIMIT = 16 * 1024 * 1024  # bytes of an output stored in a file
_SUFFIXES = {"markdown": "md", "json": "json", "text": "txt"}


def hand_off(kernel: Kernel, token: str, number: int, report: Report) -> Handoff:
    """Stores the whole report of step `number` as a JSON file, and returns it with the output and the files."""
    folder = workspace(kernel, token)
    data, raw = _whole(kernel, report)
    path = folder / f"handover-{number}.json"
    body = {"step": number, "state": report.state, "summary": report.summary, "data": data, "raw": raw}
    whole = json.dumps(body, ensure_ascii=False, indent=1, default=str)
    kernel.keep(token, path.name, whole.encode("utf-8", "replace"))
    text = data.get("text")  # what a skill writes for readers, beside its data
    if not isinstance(text, str) or not text:
        text = raw if raw is not None else json.dumps(data, ensure_ascii=False, default=str)
    files = tuple(_files(kernel.root, folder, replace(report, data=data)))
    return Handoff(step=number, text=text, files=files, report=path)


def final_output(kernel: Kernel, run: WorkflowRun, report: Report) -> str:
    """Writes the last report to the workflow's `output`, and returns its path, or an empty text if it is inline."""
    out = run.plan.output
    if out.location == "inline":
        return ""
    name = out.file_path or f"result.{_SUFFIXES[out.format]}"
    data, raw = _whole(kernel, report)
    match out.format:
        case "json":
            text = json.dumps({**report.to_dict(), "data": data, "raw": raw}, ensure_ascii=False, indent=1, default=str)
        case "text":
            text = raw if raw is not None else report.summary
        case _:
            text = (
                f"# {run.plan.description}\n\n```text\n{render_report(report, 'detail', 'ascii')}\n```\n\n{raw or ''}"
            )
    return kernel.keep(run.token, name, text.rstrip("\n").encode("utf-8", "replace") + b"\n")


def workspace(kernel: Kernel, token: str) -> Path:
    """The folder that all steps of a run share."""
    return kernel.box / "workspace" / token


def _whole(kernel: Kernel, report: Report) -> tuple[dict[str, Any], str | None]:
    """The data and the raw output, read from the file if they were too long for the report."""
    if report.offloaded:
        try:
            held = json.loads(read_bounded(kernel.root / report.offloaded, WHOLE_LIMIT))
            return dict(held["data"]), held["raw"]
        except (OSError, ValueError, KeyError, TypeError, KernelError):
            pass  # the file has been removed; the report's own data is left
    return dict(report.data), report.raw


def _files(root: Path, folder: Path, report: Report) -> Iterator[FileReference]:
    """The files in the run's folder that the step names, with their text if it is short enough and UTF-8."""
    for name in report.files:
        path = root / name
        if not is_file(path) or not path.resolve().is_relative_to(folder.resolve()):
            continue
        try:
            text = read_bounded(path, TEXT_LIMIT).decode("utf-8")
        except (OSError, UnicodeDecodeError, KernelError):
            text = ""
        yield FileReference(written=escape_controls(name), path=path, content=text)

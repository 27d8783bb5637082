"""Reads and writes workflow files, `mybox/workflows/<name>.md` (WFL-9, part 3 item 5)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct, field

from navigator_kernel.errors import NotLoadable
from navigator_kernel.text import clean, lazy_compile
from navigator_kernel.values.packet import yaml_flow
from navigator_kernel.values.workflow import WorkflowPlan, WorkflowStep
from navigator_kernel.workflows.frontmatter import Head, read_head

NAME = lazy_compile(r"[^\W_](?:[\w-]{0,78}[^\W_])?")
SIZE_LIMIT = 64 * 1024  # characters
AGENTS = ("skills", "worker", "mcp")

_SECTION = lazy_compile(r"##\s+(?:Step|步骤)\s*(\d{1,4})\s*[:：]\s*(.*)", re.IGNORECASE)
_ITEM = lazy_compile(r"[-*]\s+(skill|agent|input|output|技能|子智能体|输入|输出)\s*[:：]\s*(.*)", re.IGNORECASE)
_CHINESE = {"技能": "skill", "子智能体": "agent", "输入": "input", "输出": "output"}


class _Section(Struct):
    number: int
    line: int
    text: str
    items: dict[str, tuple[str, int]] = field(default_factory=dict)


def dumps(plan: WorkflowPlan) -> str:
    """The file of `plan`: frontmatter and one section for each step; what is the usual is left out."""
    held, out = plan.sandbox, plan.output
    head: dict[str, Any] = {
        "name": plan.name,
        "version": plan.version,
        "description": plan.description,
        "depends_on": list(plan.depends_on),
        "tags": list(plan.tags),
        **({"timeout_seconds": plan.timeout_seconds} if plan.timeout_seconds else {}),
        "sequential": True,
        "stop_on_error": True,
        "sandbox": {
            "file_access": {"read": list(held.read), "write": list(held.write), "forbidden": list(held.forbidden)},
            "network": held.network,
        },
        "output": {"location": out.location, "format": out.format, "file_path": out.file_path},
    }
    body = ["---", *_yaml(head), "---", ""]
    for at, step in enumerate(plan.steps, 1):
        agent = "" if step.agent == "skills" else step.agent
        items = {"skill": step.skill, "agent": agent, "input": step.input, "output": step.output}
        body += [f"## Step {at}: {_line(step.text)}", ""]
        body += [f"- {key}: {_value(value)}" for key, value in items.items() if value]
        body.append("")
    return "\n".join(body)


def loads(text: str, name: str, limit: int) -> WorkflowPlan:
    """The plan in a file called `name`, of at most `limit` steps. NotLoadable lists every problem with its line."""
    if len(text) > SIZE_LIMIT:
        raise NotLoadable(f"workflow {name!r} is over {SIZE_LIMIT // 1024} KiB", hint="shorten it")
    problems: list[tuple[int, str]] = []
    lines = text.replace("\r\n", "\n").split("\n")
    head = read_head(lines, problems)
    steps = tuple(_steps(_sections(lines, head.end, problems), problems))
    if head.name and head.name != name:
        problems.append((head.line("name"), f"the name {head.name!r} differs from the file's, {name!r}"))
    if not 1 <= len(steps) <= limit:
        problems.append((head.end + 1, f"{len(steps)} steps; a workflow has 1 to {limit}"))
    problems += _undeclared(head, steps)
    if problems:
        found = [{"line": line, "message": message} for line, message in sorted(problems, key=lambda one: one[0])]
        told = "; ".join(f"line {item['line']}: {item['message']}" for item in found)
        raise NotLoadable(f"workflow {name!r} cannot be used: {told}", hint="fix these lines", problems=found)
    return WorkflowPlan(
        name=name,
        description=head.description,
        steps=steps,
        version=head.version,
        depends_on=head.depends_on,
        tags=head.tags,
        timeout_seconds=head.timeout,
        sandbox=head.sandbox,
        output=head.output,
    )


def _sections(lines: Sequence[str], start: int, problems: list[tuple[int, str]]) -> list[_Section]:
    found: list[_Section] = []
    for at, line in enumerate(lines[start:], start + 1):
        if hit := _SECTION.fullmatch(line.rstrip()):
            found.append(_Section(number=int(hit[1]), line=at, text=hit[2].strip()))
            if found[-1].number != len(found):
                problems.append((at, f"step {hit[1]} stands where step {len(found)} belongs"))
        elif line.startswith("## "):
            problems.append((at, f"{line[:60]!r} is not a step; write '## Step {len(found) + 1}: …'"))
            found.append(_Section(number=len(found) + 1, line=at, text=""))  # the lines below belong to it
        elif found and (item := _ITEM.fullmatch(line.strip())):
            key = _CHINESE.get(item[1], item[1].lower())
            if key in found[-1].items:
                problems.append((at, f"a second {key!r}"))
            found[-1].items[key] = (_read(item[2]), at)
        elif found and line.strip():
            problems.append((at, f"{line.strip()[:60]!r} is none of skill, agent, input, output"))
    return found


def _steps(sections: Sequence[_Section], problems: list[tuple[int, str]]) -> Iterator[WorkflowStep]:
    for section in sections:
        values = {key: value for key, (value, _) in section.items.items()}
        problems += [
            (section.line, f"step {section.number} has no {key}") for key in ("skill", "input") if not values.get(key)
        ]
        agent = values.get("agent") or "skills"
        if agent.removesuffix("_agent") not in AGENTS:
            problems.append((section.items["agent"][1], f"{agent!r} is not an agent; one of: {', '.join(AGENTS)}"))
        yield WorkflowStep(
            text=section.text or values.get("input", ""),
            skill=values.get("skill", ""),
            agent=agent.removesuffix("_agent"),
            input=values.get("input", ""),
            output=values.get("output", ""),
        )


def _undeclared(head: Head, steps: Sequence[WorkflowStep]) -> list[tuple[int, str]]:
    if "depends_on" not in head.lines:
        return []  # already reported
    wanted = dict.fromkeys(step.skill for step in steps if step.agent == "skills" and step.skill)
    line = head.line("depends_on")
    return [(line, f"depends_on lacks {name!r}") for name in wanted if name not in head.depends_on]


def _yaml(value: dict[str, Any], indent: str = "") -> Iterator[str]:
    """Block mappings with JSON below, which YAML reads as flow style."""
    for key, item in value.items():
        if isinstance(item, dict):
            yield f"{indent}{key}:"
            yield from _yaml(item, indent + "  ")
        else:
            yield f"{indent}{key}: {yaml_flow(item)}"


def _line(text: str) -> str:
    return clean(text, lines=False)


def _value(text: str) -> str:
    """A value as one line; a JSON string if it would not be read back equal."""
    plain = text == clean(text, lines=False).strip() and not text.startswith('"')
    return text if plain else json.dumps(text, ensure_ascii=False)


def _read(text: str) -> str:
    if text.startswith('"') and text.endswith('"') and len(text) > 1:
        try:
            return str(json.loads(text))
        except ValueError:
            return text
    return text.strip()

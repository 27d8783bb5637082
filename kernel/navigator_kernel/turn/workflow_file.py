"""Reads and writes workflow files, `mybox/workflows/<name>.md` (WFL-9, part 3 item 5)."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from msgspec import Struct, field
from msgspec.structs import replace

from navigator_kernel.adapters.files.autoload import is_autoloaded
from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.errors import Damaged, KernelError, NotFound, NotLoadable, UsageProblem
from navigator_kernel.text import clean, lazy_compile
from navigator_kernel.turn.steps import relative_to_root
from navigator_kernel.values.packet import yaml_flow
from navigator_kernel.values.request import FileReference
from navigator_kernel.values.workflow import (
    FOLDER,
    Location,
    Output,
    OutputFormat,
    Sandboxed,
    WorkflowPlan,
    WorkflowStep,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from navigator_kernel.ports import Kernel


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
    sandbox, out = plan.sandbox, plan.output
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
            "file_access": {
                "read": list(sandbox.read),
                "write": list(sandbox.write),
                "forbidden": list(sandbox.forbidden),
            },
            "network": sandbox.network,
        },
        "output": {"location": out.location, "format": out.format, "file_path": out.file_path},
    }
    body = ["---", *_yaml(head), "---", ""]
    for at, step in enumerate(plan.steps, 1):
        agent = "" if step.agent == "skills" else step.agent
        items = {"skill": step.skill, "agent": agent, "input": step.input, "output": step.output}
        body += [f"## Step {at}: {clean(step.text, lines=False)}", ""]
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
        listed = [
            {"line": line, "message": message} for line, message in sorted(problems, key=lambda problem: problem[0])
        ]
        detail = "; ".join(f"line {item['line']}: {item['message']}" for item in listed)
        raise NotLoadable(f"workflow {name!r} cannot be used: {detail}", hint="fix these lines", problems=listed)
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
    sections: list[_Section] = []
    for at, line in enumerate(lines[start:], start + 1):
        if hit := _SECTION.fullmatch(line.rstrip()):
            sections.append(_Section(number=int(hit[1]), line=at, text=hit[2].strip()))
            if sections[-1].number != len(sections):
                problems.append((at, f"step {hit[1]} stands where step {len(sections)} belongs"))
        elif line.startswith("## "):
            problems.append((at, f"{line[:60]!r} is not a step; write '## Step {len(sections) + 1}: …'"))
            sections.append(_Section(number=len(sections) + 1, line=at, text=""))  # the lines below belong to it
        elif sections and (item := _ITEM.fullmatch(line.strip())):
            key = _CHINESE.get(item[1], item[1].lower())
            if key in sections[-1].items:
                problems.append((at, f"a second {key!r}"))
            sections[-1].items[key] = (_read(item[2]), at)
        elif sections and line.strip():
            problems.append((at, f"{line.strip()[:60]!r} is none of skill, agent, input, output"))
    return sections


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
    skills = dict.fromkeys(step.skill for step in steps if step.agent == "skills" and step.skill)
    line = head.line("depends_on")
    return [(line, f"depends_on lacks {name!r}") for name in skills if name not in head.depends_on]


def _yaml(value: dict[str, Any], indent: str = "") -> Iterator[str]:
    """Block mappings with JSON below, which YAML reads as flow style."""
    for key, item in value.items():
        if isinstance(item, dict):
            yield f"{indent}{key}:"
            yield from _yaml(item, indent + "  ")
        else:
            yield f"{indent}{key}: {yaml_flow(item)}"


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


# Reads the frontmatter of a workflow file, and reports each problem with its line.

T = TypeVar("T")

_LOCATIONS: Mapping[str, Location] = {word: word for word in get_args(Location)}
_FORMATS: Mapping[str, OutputFormat] = {word: word for word in get_args(OutputFormat)}
_REQUIRED = ("name", "version", "description", "depends_on")
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})
_TABLES = ("sandbox", "sandbox.file_access", "output")
DEPTH = 8  # levels of nesting to read
_VERSION = lazy_compile(r"\d{1,6}(?:\.\d{1,6}){0,2}(?:[-+][\w.-]{1,40})?")
_APART = lazy_compile(r"[,，、\s]+")


class Head(Struct):
    """`end` is the index of the first line below; `lines` has the line of each key, with dots in nested ones."""

    end: int = 0
    lines: dict[str, int] = field(default_factory=dict)
    name: str = ""
    version: str = "1.0.0"
    description: str = ""
    depends_on: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    timeout: float = 0.0
    sandbox: Sandboxed = field(default_factory=Sandboxed)
    output: Output = field(default_factory=Output)

    def line(self, key: str) -> int:
        return self.lines.get(key, 1)


def read_head(lines: Sequence[str], problems: list[tuple[int, str]]) -> Head:
    """Parses the text between the first two `---`; adds problems as (line, message)."""
    head = Head()
    ends = [at for at, line in enumerate(lines) if line.rstrip() == "---"][:2]
    if len(ends) < 2 or ends[0] != 0:
        problems.append((1, "the file begins with no frontmatter between two lines '---'"))
        return head
    head.end = ends[1] + 1
    values = _values("\n".join(lines[1 : ends[1]]), head, problems)
    if values is None:
        return head
    problems += [(head.line(key), f"{key!r} is a table of keys") for key in _TABLES if key in values]
    problems += [(1, f"{key!r} is missing") for key in _REQUIRED if key not in values]
    _fill(head, values, problems)
    return head


def _values(source: str, head: Head, problems: list[tuple[int, str]]) -> dict[str, Any] | None:
    """Dotted key → string or list of strings, or None with a problem added."""
    import yaml

    depth = 0
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        for event in yaml.parse(source, Loader=loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent) or depth > DEPTH:
                line = 2 if event.start_mark is None else event.start_mark.line + 2
                problems.append((line, "anchors and aliases are not read, nor deep nesting"))
                return None
        node = yaml.compose(source, Loader=loader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        problems.append((2 if mark is None else mark.line + 2, f"not YAML: {getattr(error, 'problem', '') or error}"))
        return None
    values: dict[str, Any] = {}
    _collect(node, "", values, head, problems)
    return values


def _collect(node: Any, prefix: str, values: dict[str, Any], head: Head, problems: list[tuple[int, str]]) -> None:
    if node is None or node.id != "mapping":
        problems.append((2, "the frontmatter is not a mapping of keys to values"))
        return
    for key, value in node.value:
        name, line = f"{prefix}{key.value}", key.start_mark.line + 2
        if name in head.lines:
            problems.append((line, f"a second {name!r}"))
        head.lines[name] = line
        if value.id == "mapping":
            _collect(value, f"{name}.", values, head, problems)
        elif value.id == "sequence":
            values[name] = [item.value if item.id == "scalar" else None for item in value.value]
        else:
            values[name] = str(value.value)


def _fill(head: Head, values: Mapping[str, Any], problems: list[tuple[int, str]]) -> None:
    def take(key: str, read: Callable[[Any], T], otherwise: T, expected: str) -> T:
        if key not in values:
            return otherwise
        try:
            return read(values[key])
        except (ValueError, KeyError, TypeError):
            problems.append((head.line(key), f"{key!r} is {expected}"))
            return otherwise

    head.name = take("name", _text, "", "one line of text")
    head.version = take("version", _version, "1.0.0", "a version such as 1.0.0")
    head.description = take("description", _text, "", "one line of text")
    head.depends_on = take("depends_on", _words, (), "a list of skills")
    head.tags = take("tags", _words, (), "a list of words")
    head.timeout = take("timeout_seconds", _seconds, 0.0, "a number of seconds, 0 to 86400")
    take("sequential", _only_true, "", "true: steps run one after another (WFL-7)")
    take("stop_on_error", _only_true, "", "true: a step that fails stops the run (WFL-8)")
    inside = "a list of paths inside the project"
    head.sandbox = Sandboxed(
        read=take("sandbox.file_access.read", _paths, (), inside),
        write=take("sandbox.file_access.write", _box, ("mybox/workspace",), "a list of paths below mybox/workspace"),
        forbidden=take("sandbox.file_access.forbidden", _paths, (), inside),
    )
    take("sandbox.network", _only_false, "", "false: the network is granted by policy, not by a file")
    head.output = Output(
        location=take("output.location", _LOCATIONS.__getitem__, "inline", f"one of: {', '.join(_LOCATIONS)}"),
        format=take("output.format", _FORMATS.__getitem__, "markdown", f"one of: {', '.join(_FORMATS)}"),
        file_path=take("output.file_path", _file, "", "a path inside the run's workspace that no program obeys"),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or "\n" in value.strip():
        raise ValueError
    return value.strip()


def _version(value: Any) -> str:
    if not _VERSION.fullmatch(_text(value)):
        raise ValueError
    return _text(value)


def _words(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [word for word in _APART.split(value) if word]
    if None in value:
        raise ValueError
    return tuple(str(item).strip() for item in value)


def _seconds(value: Any) -> float:
    number = float(value)
    if not 0 <= number <= 86_400:
        raise ValueError
    return number


def _only_true(value: Any) -> str:
    if str(value).lower() not in _TRUE:
        raise ValueError
    return "true"


def _only_false(value: Any) -> str:
    if str(value).lower() not in _FALSE:
        raise ValueError
    return "false"


def _paths(value: Any) -> tuple[str, ...]:
    return tuple(_inside(item) for item in _words(value))


def _box(value: Any) -> tuple[str, ...]:
    paths = _paths(value)
    if any(PurePosixPath(path).parts[:2] != ("mybox", "workspace") for path in paths):
        raise ValueError
    return paths


def _file(value: Any) -> str:
    path = "" if value == "" else _inside(value)
    if any(map(is_autoloaded, path.split("/"))):  # a program of the person would run or obey it
        raise ValueError
    return path


def _inside(value: str) -> str:
    path = PurePosixPath(value)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\x00" in value:
        raise ValueError
    return path.as_posix()


# Finds, reads and writes the workflows in `mybox/workflows/` (WFL-9).


def stored_names(kernel: Kernel) -> list[str]:
    """The names that `#name` can call."""
    folder = kernel.root / FOLDER
    names = sorted(path.stem for path in folder.glob("*.md")) if folder.is_dir() else []
    return [name for name in names if NAME.fullmatch(name) and name != "README"]


def load_stored(name: str, kernel: Kernel) -> WorkflowPlan:
    """Loads the workflow; NotLoadable with all problems and lines, Damaged if the file is not text."""
    return loads(_store_text(name, kernel), name, kernel.settings.steps)


def stored_text(name: str, kernel: Kernel) -> str:
    """The text of the workflow's file, even if it cannot be used; NotFound if there is none."""
    if name not in stored_names(kernel):
        raise NotFound(f"no workflow is called {name!r}", hint="navigator workflow list shows them")
    return _store_text(name, kernel)


def check_text(text: str, name: str, kernel: Kernel) -> WorkflowPlan:
    """Parses `text` as the file of `name`; NotLoadable with all problems and lines."""
    if not NAME.fullmatch(name) or name == "README":
        raise UsageProblem(f"{name!r} is not a workflow name", hint="letters, digits, '_' and '-', 1 to 80")
    return loads(text, name, kernel.settings.steps)


def named_in(text: str) -> str:
    """The name in the frontmatter of `text`, or an empty text."""
    return read_head(text.replace("\r\n", "\n").split("\n"), []).name


def store_text(name: str, text: str, kernel: Kernel) -> WorkflowPlan:
    """Writes `text` as the file of `name` if it is a plan that can be used; raises the errors of `check_text`."""
    plan = check_text(text, name, kernel)
    _write(plan, text.encode("utf-8", "replace"), kernel)
    return plan


def remove_stored(name: str, kernel: Kernel) -> None:
    """Removes the workflow's file; the runs that it began stay. NotFound if there is none."""
    if name not in stored_names(kernel):
        raise NotFound(f"no workflow is called {name!r}", hint="navigator workflow list shows them")
    kernel.audit.record("wrote", path=f"{FOLDER}/{name}.md", sha256="")
    kernel.writer.remove(kernel.root / FOLDER / f"{name}.md")


def store(plan: WorkflowPlan, kernel: Kernel) -> WorkflowPlan:
    """Writes the plan's file unless the same steps are there already, and returns the plan under the file's name."""
    plan = with_free_name(plan, kernel)
    if not (kernel.root / plan.file).exists():
        _write(plan, dumps(plan).encode("utf-8", "replace"), kernel)
    return plan


def with_free_name(plan: WorkflowPlan, kernel: Kernel) -> WorkflowPlan:
    """The plan under a free name, or under a name that has the same steps already, maybe for another file."""
    base, at = plan.name, 1
    while (kernel.root / plan.file).exists() and not call_of(plan, kernel):
        at += 1
        plan = replace(plan, name=f"{base}-{at}")
    return plan


def _store_text(name: str, kernel: Kernel) -> str:
    try:
        return read_bounded(kernel.root / FOLDER / f"{name}.md", 4 * SIZE_LIMIT).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise Damaged(f"workflow {name!r} cannot be read: {error}", hint=f"fix or remove {FOLDER}/{name}.md") from error


def _write(plan: WorkflowPlan, data: bytes, kernel: Kernel) -> None:
    path = kernel.root / plan.file
    kernel.writer.make_folder(path.parent)
    kernel.audit.record("wrote", path=plan.file, sha256=hashlib.sha256(data).hexdigest())
    kernel.writer.write(path, data)


def is_stored(plan: WorkflowPlan, kernel: Kernel) -> bool:
    """Whether the file of the plan's name has the same steps."""
    return call_of(plan, kernel) == f"#{plan.name}"


def call_of(plan: WorkflowPlan, kernel: Kernel) -> str:
    """The message that runs the plan again: with its only file if the stored workflow reads another one; else empty."""
    try:
        stored = load_stored(plan.name, kernel)
    except KernelError:
        return ""
    if stored.steps == plan.steps:
        return f"#{plan.name}"
    file = plan.sandbox.read[0] if len(plan.sandbox.read) == 1 else ""
    changed = with_file(stored, file, kernel.root.resolve()) if file else None
    return f"#{plan.name} {file}" if changed is not None and changed.steps == plan.steps else ""


def with_file(plan: WorkflowPlan, path: str, root: Path) -> WorkflowPlan | None:
    """The plan with the file `path` in place of the only one that it reads; None if that is not one."""
    if len(plan.sandbox.read) != 1:
        return None
    file = FileReference(written=plan.sandbox.read[0], path=root / path)
    steps = [
        replace(step, text=relative_to_root(step.text, [file], root), input=relative_to_root(step.input, [file], root))
        for step in plan.steps
    ]
    if [step.input for step in steps] == [step.input for step in plan.steps] and path != file.written:
        return None
    description, sandbox = plan.description.replace(file.written, path), replace(plan.sandbox, read=(path,))
    return replace(plan, steps=tuple(steps), description=description, sandbox=sandbox)

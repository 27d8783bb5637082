"""Describes what is public: what follows semantic versions (docs/reference/public.md).

`PYTHONPATH=tests python -m maintenance.public_surface` compares it with the snapshot of the last release, docs/reference/public.json, and says
what would break; with `--write` it writes the snapshot, which a release does.

The description is made of maps, lists and words. A name that goes away from a map breaks somebody's program, one that
comes does not. Lists are sets: those under a name of `compatibility.GROWS` may grow, those of `SHRINKS` may shrink.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from maintenance.compatibility import breaks, excused
from maintenance.http_surface import operations, shape

TOP = Path(__file__).resolve().parents[2]
SNAPSHOT = TOP / "docs" / "reference" / "public.json"
OUTPUTS = TOP / "docs" / "reference" / "outputs.json"
GUIDE = TOP / "docs" / "guides" / "use-as-a-library.md"
CHANGES = TOP / "docs" / "changes"


def main() -> int:
    """The exit code: 1 where something breaks that no file of docs/changes/ names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the snapshot")
    if parser.parse_args().write:
        SNAPSHOT.write_text(as_text(surface()), "utf-8")
        return 0
    found = [one for one in breaks(snapshot(), surface()) if not excused(one, CHANGES)]
    print(*found, sep="\n" if found else "", end="\n" if found else "")
    return 1 if found else 0


def snapshot() -> dict[str, Any]:
    """The surface of the last release."""
    held: dict[str, Any] = json.loads(SNAPSHOT.read_text("utf-8"))
    return held


def as_text(held: Mapping[str, Any]) -> str:
    """As it is kept: sorted, each name on a line of its own."""
    line = partial(json.dumps, ensure_ascii=False, sort_keys=True)
    sections = [
        f"{line(section)}: {{\n" + ",\n".join(f" {line(name)}: {line(names[name])}" for name in sorted(names)) + "\n}"
        for section, names in sorted(held.items())
    ]
    return "{\n" + ",\n".join(sections) + "\n}\n"


def surface() -> dict[str, Any]:
    """Section → name → what is promised of it."""
    return {
        "command": dict(commands()),
        "error": errors(),
        "event": dict(events()),
        "file format": formats(),
        "hook": dict(hooks()),
        "library": dict(library()),
        "output": outputs(),
        "setting": settings(),
        **operations(),
    }


def commands() -> Iterator[tuple[str, Any]]:
    """Every command by its words, with its arguments and options."""
    from navigator_kernel.cli.registry import navigator

    yield from _commands("navigator", navigator, click.Context(navigator, info_name="navigator"))


def errors() -> dict[str, Any]:
    """Code of an error → exit code, and the states of an answer with theirs."""
    from navigator_kernel.errors import KernelError
    from navigator_kernel.values.packet import STATES, Meta, Report

    kinds: list[type[KernelError]] = [KernelError]
    found: dict[str, Any] = {}
    while kinds:
        kind = kinds.pop()
        kinds += [one for one in kind.__subclasses__() if one.__module__ == KernelError.__module__]
        found[kind.code] = {"class": kind.__name__, "exit code": kind.exit_code}
    for state in STATES:
        found[f"state {state}"] = Report(state=state, summary="", meta=Meta(agent="", time=0, ts="")).exit_code
    return found


def events() -> Iterator[tuple[str, Any]]:
    """Every event with its fields, and the envelope of all."""
    from navigator_kernel.events import BODIES, Event

    kinds: dict[str, Any] = {"envelope": Event, **BODIES}
    for name, kind in kinds.items():
        fields = {field: str(kind.__annotations__[field]) for field in kind.__struct_fields__ if field != "body"}
        yield name, fields


def formats() -> dict[str, Any]:
    """Files that other programs may read: their version, and the names in them."""
    from navigator_kernel import events
    from navigator_kernel.skills.formats.manifest import OUR_KEYS, PACKAGES, SPEC_KEYS
    from navigator_kernel.skills.install import lockfile
    from navigator_kernel.values import receipt

    return {
        "SKILL.md": {"accepts": sorted({*SPEC_KEYS, *OUR_KEYS, PACKAGES})},
        "mybox/logs/runs/*.jsonl": {"version": events.VERSION},
        "receipt": {"version": receipt.VERSION, "fields": _fields(receipt.Receipt)},
        "skills.lock.json": {"version": lockfile.VERSION},
    }


def hooks() -> Iterator[tuple[str, Any]]:
    """Every hook with its argument, its result, and whether the first result wins."""
    from navigator_kernel import hookspecs

    for name, held in vars(hookspecs).items():
        if name.startswith("kernel_"):
            first = bool(getattr(held, f"{hookspecs.PROJECT}_spec")["firstresult"])
            yield name, {**_signature(held), "first result wins": first}


def library() -> Iterator[tuple[str, Any]]:
    """The names that the guide lists, with those members that it lists."""
    import navigator_kernel

    table = GUIDE.read_text("utf-8").split("| name |")[1].split("\n\n")[0]
    for name, text in re.findall(r"^\| `(\w+)` \| (.*) \|$", table, re.MULTILINE):
        held = getattr(navigator_kernel, name)
        members = re.findall(r"`(\w+)`", text) if isinstance(held, type) else ()
        made = {"()": _signature(held)} if name == "Kernel" else {}
        yield name, made | {member: _member(held, member) for member in members}
    yield "hookimpl", {"from": "navigator_kernel.hookspecs"}


def outputs() -> dict[str, Any]:
    """What every command prints with `--json`."""
    return {command: shape(schema, answer=True) for command, schema in json.loads(OUTPUTS.read_text("utf-8")).items()}


def settings() -> dict[str, Any]:
    """Every setting with the words that it takes."""
    from navigator_kernel.config.settings import SCALARS, TABLES

    words = {name: held[0] for name, held in SCALARS.items()}
    found: dict[str, Any] = {
        name: {"accepts": [*held] if isinstance(held, tuple) else ["number"]} for name, held in words.items()
    }
    return found | {f"[{name}]": {} for name in TABLES}


def _commands(name: str, command: click.Command, context: click.Context) -> Iterator[tuple[str, Any]]:
    yield name, _parameters(command.params)
    if not isinstance(command, click.Group):
        return
    for word in command.list_commands(context):
        inner = command.get_command(context, word)
        if inner is not None:
            yield from _commands(f"{name} {word}", inner, click.Context(inner, parent=context, info_name=word))


def _parameters(params: Sequence[click.Parameter]) -> dict[str, Any]:
    """Arguments by their place, since their names are not typed; options by each spelling."""
    arguments = [item for item in params if isinstance(item, click.Argument)]
    options = {
        spelling: _taken(item)
        for item in params
        if isinstance(item, click.Option)
        for spelling in (*item.opts, *item.secondary_opts)
    }
    places = {f"argument {count}": _taken(item) for count, item in enumerate(arguments, 1)}
    required = [f"argument {count}" for count, item in enumerate(arguments, 1) if item.required]
    required += [item.opts[-1] for item in params if isinstance(item, click.Option) and item.required]
    return {**places, **options, "required": sorted(required)}


def _taken(item: click.Parameter) -> dict[str, Any]:
    """A flag, or the kind or words of its value."""
    if isinstance(item, click.Option) and (item.is_flag or item.count):
        return {"accepts": ["flag"]}
    words = [*map(str, item.type.choices)] if isinstance(item.type, click.Choice) else [_kind(item.type)]
    many = ["many"] if item.multiple or item.nargs == -1 else []
    return {"accepts": sorted(words) + many}


def _kind(type_: click.ParamType[Any]) -> str:
    """Any text is a text, a path too."""
    number = isinstance(type_, (click.types.IntParamType, click.types.FloatParamType))
    return type_.name.removesuffix(" range") if number else "text"


def _member(owner: type, name: str) -> Any:
    """A method's signature, else the type of what is read."""
    held = inspect.getattr_static(owner, name, None)
    if inspect.isfunction(held):
        return _signature(held)
    if isinstance(held, property):
        return {"is": [str(held.fget.__annotations__["return"])]}
    known = [inspect.get_annotations(kind).get(name) for kind in owner.__mro__]
    if not any(known) and name not in vars(owner)["__init__"].__code__.co_names:
        raise AttributeError(f"the guide lists {owner.__name__}.{name}, which is not there")
    return {"is": [str(found) for found in known if found is not None][:1]}


def _signature(held: Any) -> dict[str, Any]:
    signature = inspect.signature(held)
    params = [item for item in signature.parameters.values() if item.name != "self" and item.name[0] != "_"]
    takes = {item.name: {"kind": str(item.kind.description), "type": _named(item.annotation)} for item in params}
    open_ = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    required = sorted(item.name for item in params if item.default is item.empty and item.kind not in open_)
    result = "" if isinstance(held, type) else _named(signature.return_annotation)
    return {"takes": takes, "required": required, "gives": result, "awaited": inspect.iscoroutinefunction(held)}


def _named(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def _fields(kind: Any) -> dict[str, str]:
    return {name: str(kind.__annotations__[name]) for name in kind.__struct_fields__}


if __name__ == "__main__":
    sys.exit(main())

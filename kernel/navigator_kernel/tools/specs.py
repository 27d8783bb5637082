"""The built-in tools as models see them; names and arguments are those of common coding agents."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from navigator_kernel.language.wording import say
from navigator_kernel.text import Language
from navigator_kernel.values.chat import ToolSpec

TEXT, NUMBER, FLAG = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
WORDS = {"type": "array", "items": {"type": "string"}}
EDITS = {"type": "array", "items": {"type": "object"}}

# The arguments of each tool: the required ones, then the optional ones
_ARGUMENTS: Mapping[str, tuple[Mapping[str, Mapping[str, Any]], Mapping[str, Mapping[str, Any]]]] = {
    "read": ({"file_path": TEXT}, {"offset": NUMBER, "limit": NUMBER}),
    "list": ({}, {"path": TEXT}),
    "glob": ({"pattern": TEXT}, {"path": TEXT}),
    "grep": (
        {"pattern": TEXT},
        {
            "path": TEXT,
            "glob": TEXT,
            "ignore_case": FLAG,
            "output_mode": {**TEXT, "enum": ["content", "files_with_matches"]},
        },
    ),
    "write": ({"file_path": TEXT, "content": TEXT}, {}),
    "edit": ({"file_path": TEXT, "old_string": TEXT, "new_string": TEXT}, {"replace_all": FLAG}),
    "deliver": ({"from": WORDS}, {"to": TEXT}),
    "run": ({}, {"command": TEXT, "argv": WORDS, "timeout": NUMBER, "packages": WORDS}),
    "fetch": ({"url": TEXT}, {}),
}

# Arguments that are understood but not offered: `MultiEdit`, and `insert` of a text editor
_UNDERSTOOD: Mapping[str, Mapping[str, Mapping[str, Any]]] = {"edit": {"edits": EDITS, "insert_line": NUMBER}}
# A call of each tool in the right form, for the answer to a wrong one
_EXAMPLES: Mapping[str, Mapping[str, Any]] = {
    "read": {"file_path": "notes.txt", "offset": 1, "limit": 200},
    "list": {"path": "docs"},
    "glob": {"pattern": "**/*.py"},
    "grep": {"pattern": "total", "path": "docs", "glob": "*.md"},
    "write": {"file_path": "notes.txt", "content": "the whole text"},
    "edit": {"file_path": "notes.txt", "old_string": "text in the file", "new_string": "text instead"},
    "run": {"command": "python3 script.py data.csv"},
    "fetch": {"url": "https://example.org/page"},
}


@cache
def specs(language: Language, hosts: tuple[str, ...] = ()) -> tuple[ToolSpec, ...]:
    """All built-in tools in a fixed order (X-40); `fetch` only if there are `hosts`."""
    told = {"fetch": {"hosts": ", ".join(hosts)}}
    return tuple(
        ToolSpec(name=name, description=say(f"tool.{name}", language, **told.get(name, {})), schema=schema_of(name))
        for name in _ARGUMENTS
        if hosts or name not in told
    )


def understood(name: str) -> Mapping[str, Any]:
    """The arguments that the tool `name` takes, offered or not: the schema of each."""
    needed, others = _ARGUMENTS[name]
    return {**needed, **others, **_UNDERSTOOD.get(name, {})}


def example_of(name: str) -> str:
    """A call of the tool in the right form."""
    return f"{name} {json.dumps(_EXAMPLES[name])}"


def schema_of(name: str) -> Mapping[str, Any]:
    """The JSON schema of the arguments of the tool `name`."""
    needed, others = _ARGUMENTS[name]
    fields = {one: dict(kind) for one, kind in (*needed.items(), *others.items())}
    return {"type": "object", "properties": fields, "required": list(needed), "additionalProperties": False}

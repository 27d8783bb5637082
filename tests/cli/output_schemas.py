"""The JSON Schema of every `--json` document, on which programs may rely: `docs/reference/outputs.json`.

A document may have more fields than its schema names. `GOLDEN=write` with `-n 0` rewrites the schemas from the output
of commands.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache, reduce
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

KEPT = Path(__file__).parents[2] / "docs" / "reference" / "outputs.json"
FIELD = re.compile(r"[a-z]+([_A-Z]?[a-z]+)*")  # other keys are data, such as names of skills and paths
FOREIGN = frozenset({"data", "schema"})  # a skill or a server decides their contents

Schema = dict[str, Any]


def differences(command: str, document: Any) -> Sequence[str]:
    """The errors of `document` against the schema of `command`."""
    if os.environ.get("GOLDEN") == "write":
        _write(command, document)
    found = Draft202012Validator(schemas()[command]).iter_errors(document)
    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in found]


@cache
def schemas() -> Mapping[str, Schema]:
    held: Mapping[str, Schema] = json.loads(KEPT.read_text("utf-8"))
    return held


def schema_of(value: Any) -> Schema:
    """The schema that `value` is an example of; null and an empty list leave their type and items open."""
    match value:
        case None:
            return {}
        case bool():
            return {"type": "boolean"}
        case int() | float():
            return {"type": "number"}
        case str():
            return {"type": "string"}
        case list():
            return {"type": "array", **({"items": reduce(merged, map(schema_of, value))} if value else {})}
    if not all(FIELD.fullmatch(name) for name in value):
        return {"type": "object", "additionalProperties": reduce(merged, map(schema_of, value.values()))}
    fields = {name: {"type": "object"} if name in FOREIGN else schema_of(held) for name, held in value.items()}
    return {"type": "object", "properties": fields, "required": sorted(fields)}


def merged(one: Schema, other: Schema) -> Schema:
    """A schema that allows both."""
    if one == other or not one or not other:
        return one if one == other else {}
    if one["type"] != other["type"] or "properties" not in one or "properties" not in other:
        return {"type": one["type"]} if one["type"] == other["type"] else {}
    names = sorted({*one["properties"], *other["properties"]})
    both = {name for name in names if name in one["properties"] and name in other["properties"]}
    fields = {
        name: merged(one["properties"][name], other["properties"][name])
        if name in both
        else (one["properties"] | other["properties"])[name]
        for name in names
    }
    return {"type": "object", "properties": fields, "required": sorted({*one["required"]} & {*other["required"]})}


def _write(command: str, document: Any) -> None:
    held = {**(schemas() if KEPT.exists() else {}), command: schema_of(document)}
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(held[name], sort_keys=True)}" for name in sorted(held))
    KEPT.write_text(f"{{\n{lines}\n}}\n", "utf-8")
    schemas.cache_clear()

"""Makes `rules.json` of the content rules: the same tables, and for each pattern what a text must hold to match it.

Most patterns are then neither compiled nor looked for. What is needed is read off the pattern, as RE2's prefilters are
(Cox 2012, "Regular Expression Matching with a Trigram Index").
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from re import _constants as ops  # type: ignore[attr-defined] # the parser that `re` has has no public door
from re import _parser as parser  # type: ignore[attr-defined] # as above
from typing import Any

import yaml

RULES = Path(__file__).resolve().parent.parent / "kernel/navigator_kernel/skills/scan/rules.yaml"
MOST, CLAUSES = 60, 3  # words of one clause, and clauses of one pattern, that it is worth to look for
_ZERO_WIDTH = (ops.AT, ops.ASSERT, ops.ASSERT_NOT)
_REPEATS = (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT)
Clause = frozenset[str]


def rules_json() -> str:
    """A line a table."""
    tables = [
        {**table, "needs": [needs(source) for source in table["any"]]}
        for table in yaml.safe_load(RULES.read_text("utf-8"))
    ]
    return "[\n" + ",\n".join(json.dumps(table, ensure_ascii=False) for table in tables) + "\n]\n"


def needs(source: str) -> list[list[str]]:
    """Of each of these clauses a text that `source` matches holds one word, in lower case and with its blanks as
    spaces; the longest words first, for they say the most."""
    found = dict.fromkeys(_clauses(parser.parse(source, re.IGNORECASE | re.MULTILINE)))
    chosen = sorted((one for one in found if len(one) <= MOST), key=_worth, reverse=True)[:CLAUSES]
    return [sorted(one) for one in chosen]


def _worth(clause: Clause) -> tuple[int, int]:
    return min(map(len, clause)), -len(clause)


def _clauses(items: Iterable[tuple[Any, Any]]) -> list[Clause]:
    """What every match of these holds, one after the other."""
    found: list[Clause] = []
    run = ""
    for op, held in items:
        if op is ops.LITERAL and (one := _lowered(chr(held))):
            run += one
        elif op not in _ZERO_WIDTH:
            found += [frozenset((run,))] if run else []
            run = ""
            found += _inner(op, held)
    return found + ([frozenset((run,))] if run else [])


def _inner(op: Any, held: Any) -> Sequence[Clause]:
    if op is ops.SUBPATTERN:
        return _clauses(held[-1])
    if op is ops.ATOMIC_GROUP:
        return _clauses(held)
    if op in _REPEATS:
        return _clauses(held[2]) if held[0] else ()
    if op is ops.BRANCH:
        branches = [_clauses(branch) for branch in held[1]]
        return [frozenset().union(*(max(one, key=_worth) for one in branches))] if all(branches) else ()
    return ()


def _lowered(one: str) -> str:
    """As the scanner has it; empty for what it might have otherwise."""
    low = " " if one.isspace() and one != "\n" else one.lower()
    return low if len(low) == 1 and low != "\n" else ""

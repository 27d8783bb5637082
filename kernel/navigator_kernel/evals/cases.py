"""Reads evals: lists of `{query, should_trigger, expected_skill?}`, and the skill-creator's `{skill_name, evals}`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from navigator_kernel.skills.formats.validate import entry_fault

LIMIT = 1024 * 1024  # bytes of one file
MOST = 5_000  # evals of one file


class EvalCase(NamedTuple):
    """One message. `skill` owns the eval, empty for the project's own; `expected` is the skill that gets it instead."""

    skill: str
    file: str
    query: str
    should_trigger: bool
    expected: str = ""

    @property
    def wanted(self) -> str:
        """The skill that the message is for; empty if the eval says only which skill it is not for."""
        return self.expected or (self.skill if self.should_trigger else "")


class Problem(NamedTuple):
    """A fault of a skill or its evals; one with the level `error` fails the whole check."""

    code: str
    level: str
    skill: str
    message: str
    file: str = ""
    line: int | None = None


def cases_in(skill: str, folder: Path) -> tuple[list[EvalCase], list[Problem]]:
    """The evals of all JSON files in `folder`, and a problem for each file that cannot be read and
    each eval that cannot be used."""
    cases: list[EvalCase] = []
    problems: list[Problem] = []
    for file in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        try:
            if file.is_symlink() or file.stat().st_size > LIMIT:
                raise ValueError(f"it is a link, or over {LIMIT // 1024**2} MiB")
            for one in _read(skill, file.name, json.loads(file.read_bytes().decode("utf-8-sig"))):
                if isinstance(one, EvalCase):
                    cases.append(one)
                else:
                    problems.append(one._replace(file=str(file)))
        except (OSError, ValueError, RecursionError) as error:
            problems.append(Problem("eval-broken", "error", skill, f"it cannot be read: {error}", str(file)))
    return cases, problems


def _read(skill: str, file: str, held: Any) -> Iterator[EvalCase | Problem]:
    owner = skill
    if isinstance(held, Mapping):
        owner, held = str(held.get("skill_name") or skill), held.get("evals")
    if not isinstance(held, Sequence) or isinstance(held, str) or len(held) > MOST:
        raise ValueError(f"it is not a list of evals, or one of over {MOST:,}")
    for at, entry in enumerate(held):
        if fault := entry_fault(entry):
            yield Problem("trigger-form", "error", skill, f"entry {at} {fault}")
            continue
        triggers, expected = entry.get("should_trigger", True), entry.get("expected_skill") or ""
        if triggers and not (owner or expected):
            yield Problem("trigger-form", "error", skill, f"entry {at} needs a name as expected_skill")
        else:
            yield EvalCase(owner, file, entry.get("query", entry.get("prompt")), triggers, expected)

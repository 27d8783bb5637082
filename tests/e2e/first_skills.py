"""Sends a new user's messages, with five public skills installed beside the shipped ones: `PYTHONPATH=tests python -m
e2e.first_skills` writes the page of what follows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from e2e.test_corpus_install import CORPUS

INSTALLED = {"anthropics+skills": ("pdf", "docx", "xlsx", "skill-creator"), "obra+superpowers": ("brainstorming",)}
BUNDLES = [CORPUS / f"{name}.bundle" for name in INSTALLED]
MESSAGES = Path(__file__).with_suffix(".tsv")
PAGE = Path(__file__).parents[2] / "docs/reference/first-skills.md"
HEAD = """# The first skills

What becomes of twenty messages when a new user has typed `navigator init` and installed `pdf`, `docx`, `xlsx` and `skill-creator` of
anthropics/skills and `brainstorming` of obra/superpowers, beside the shipped skills and without a model. The messages and the right
skills were written before any of them was tried (`tests/e2e/first_skills.tsv`). `PYTHONPATH=tests python -m e2e.first_skills` writes this
page, and `tests/e2e/test_first_skills.py` (marker `ci`) checks it.

A skill is **taken** without a question, up to three are **offered** in a question, or the message is **left** alone. Right is the right
skill taken or among those offered, or a message left alone that no skill is for.
"""


class Outcome(NamedTuple):
    """What became of a message: `way` is `taken`, `offered` or `left`. `wanted` is empty if no skill is right."""

    message: str
    wanted: str
    way: str
    skills: Sequence[str]

    @property
    def is_right(self) -> bool:
        return self.wanted in self.skills if self.wanted else self.way == "left"

    @property
    def is_taken_wrong(self) -> bool:
        return self.way == "taken" and set(self.skills) != {self.wanted}


def outcomes(work: Path) -> list[Outcome]:
    """Sends the messages in a new project and home below the folder `work`."""
    project = work / "project"
    project.mkdir()
    env = {"PATH": os.environ["PATH"], "HOME": str(work), "LANG": "C.UTF-8"}

    def run(*words: str) -> str:
        done = subprocess.run(words, cwd=project, env=env, capture_output=True, text=True)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    navigator = (sys.executable, "-m", "navigator_kernel.cli.main")
    run("git", "init", "--quiet")
    run(*navigator, "init")
    for bundle, skills in zip(BUNDLES, INSTALLED.values(), strict=True):
        repo = str(work / f"{bundle.stem}.git")
        run("git", "clone", "--quiet", "--bare", str(bundle), repo)
        run(*navigator, "install", repo, *(word for skill in skills for word in ("--skill", skill)))
    rows = [line.split("\t") for line in MESSAGES.read_text("utf-8").splitlines() if not line.startswith("#")]
    return [
        _outcome(message, wanted.strip("-"), run(*navigator, "route", "--json", message)) for wanted, message in rows
    ]


def _outcome(message: str, wanted: str, told: str) -> Outcome:
    route = json.loads(told)
    if route["kind"] == "skills":
        return Outcome(message, wanted, "taken", [step["skill"] for step in route["steps"]] or [route["entity"]])
    return Outcome(message, wanted, "left" if route["kind"] == "direct" else "offered", route["options"])


def page(found: Sequence[Outcome]) -> str:
    rows = ["| message | right skill | what happened | right |", "|---|---|---|---|", *map(row, found)]
    return "\n".join([HEAD, *_counts(found), "", *rows]) + "\n"


def _counts(found: Sequence[Outcome]) -> Iterator[str]:
    counts = Counter((one.way, one.is_right) for one in found)
    yield "| | taken | offered | left |"
    yield "|---|---|---|---|"
    for is_right, name in ((True, "right"), (False, "wrong")):
        yield f"| {name} | {' | '.join(str(counts[way, is_right]) for way in ('taken', 'offered', 'left'))} |"


def row(one: Outcome) -> str:
    happened = f"{one.way}: {', '.join(one.skills)}" if one.skills else one.way
    return f"| {one.message} | {one.wanted or 'none'} | {happened} | {'yes' if one.is_right else 'no'} |"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(page(outcomes(Path(folder))), "utf-8")
    sys.stdout.write(f"written: {PAGE.name}\n")

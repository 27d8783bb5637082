"""Two hundred skills that no message means: twenty domains of ten, and near neighbours of the shipped skills."""

from __future__ import annotations

from pathlib import Path

from tables import table

DOMAINS: dict[str, tuple[str, str]] = table(__file__, "DOMAINS")

NEIGHBOURS: dict[str, str] = table(__file__, "NEIGHBOURS")

RUNNER = """---
name: test-runner
description: Runs a project's tests and reports failures. This skill should be used when somebody wants the tests run
metadata:
  navigator-examples: |
    Run tests
    运行测试
---
# Test runner

Find the test command of the project and run it.
"""


def write_distractors(folder: Path) -> int:
    """Writes the skills, test-runner among them; returns their number."""
    found = dict(NEIGHBOURS)
    for domain, (subject, verbs) in DOMAINS.items():
        for verb in verbs.split():
            what = verb.replace("-", " ")
            found[f"{domain}-{verb}"] = (
                f"Helps to {what} {subject}. This skill should be used when somebody wants to {what} {subject}"
            )
    for name, description in list(found.items())[:199]:
        _write(
            folder,
            name,
            f"---\nname: {name}\ndescription: {description}\n---\n# {name}\n\n{description}. Ask for what is missing, then act.\n",
        )
    _write(folder, "test-runner", RUNNER)
    return 200


def _write(folder: Path, name: str, text: str) -> None:
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(text)

"""Which model alias a prompt is for."""

from __future__ import annotations

from pathlib import Path

import pytest

from navigator_kernel.skills.catalog.executor import SkillExecutor
from navigator_kernel.values.resource import SkillDef


def executor(backend: str) -> SkillExecutor:
    skill = SkillDef(name="x", description="x", path=Path("x.md"), folder=None, backend=backend)
    return SkillExecutor(skill=skill)


@pytest.mark.requirement("FMT-5")
@pytest.mark.parametrize(
    ("asked", "declared", "expected"),
    [("fast", "claude", "fast"), ("", "claude", "claude"), ("", "", "default"), ("fast", "", "fast")],
)
def test_the_call_wins_over_the_file_and_the_file_over_the_default(asked: str, declared: str, expected: str) -> None:
    assert executor(declared).backend(asked) == expected

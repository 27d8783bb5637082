"""When an update approves new bytes on the person's behalf."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dispatch.orders import NOW
from navigator_kernel.bootstrap.places import open_consents
from navigator_kernel.skills.install.plans import PlannedSkill
from navigator_kernel.skills.install.update import agrees_again
from navigator_kernel.values.receipt import Receipt
from navigator_kernel.values.resource import SkillDef
from navigator_kernel.values.standing import install_subject, skill_subject

OLD = Receipt(
    name="pdf",
    source="https://example.org/x.git",
    ref="main",
    commit="a" * 40,
    subpath="pdf",
    tree="b" * 40,
    files=(),
    digest="sha256:old",
    verdict="ok",
    installed_at=NOW,
)
NEW = replace(OLD, commit="c" * 40, digest="sha256:new")
SUBJECTS: dict[str, Callable[[Receipt], str]] = {
    "installed": lambda one: install_subject(one.name, one.origin, one.digest),
    "trusted": lambda one: skill_subject(one.name, one.digest),
}


def agrees(project: Any, new: Receipt, before: dict[str, Receipt], *, consents: Any = open_consents) -> bool:
    deps = project.lifecycle.deps
    deps.consents = consents()
    skill = SkillDef(name="pdf", description="", path=Path("SKILL.md"), folder=None)
    return agrees_again(PlannedSkill(skill, new, {}), before, deps.agreed)


@pytest.mark.requirement("SAF-1", "X-43")
@pytest.mark.parametrize("how", list(SUBJECTS))
def test_new_bytes_are_agreed_to_only_where_the_person_agreed_to_the_old_ones(project: Any, how: str) -> None:
    assert not agrees(project, NEW, {"pdf": OLD})
    open_consents().trust(SUBJECTS[how](OLD), note="a test")
    assert agrees(project, NEW, {"pdf": OLD})
    assert not agrees(project, NEW, {"pdf": replace(OLD, digest="sha256:other")})


@pytest.mark.requirement("SAF-1", "X-43")
def test_new_bytes_of_another_source_or_another_skill_are_not_agreed_to(project: Any) -> None:
    open_consents().trust(SUBJECTS["trusted"](OLD), note="a test")
    assert not agrees(project, replace(NEW, source="https://example.org/y.git"), {"pdf": OLD})
    assert not agrees(project, NEW, {"docx": OLD})


def test_without_a_store_of_consents_nothing_is_agreed_to(project: Any) -> None:
    assert not agrees(project, NEW, {"pdf": OLD}, consents=lambda: None)

"""What `policy explain` and the gate decide about one skill, without a process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from navigator_kernel.config.settings import Policy
from navigator_kernel.sandbox.guard import (
    _NEEDS,
    GIVEN,
    SAID,
    Decision,
    Standing,
    explained,
    of_built_in,
    of_tool,
    refusal,
)
from navigator_kernel.skills.catalog.executor import SkillExecutor
from navigator_kernel.values.job import Want
from navigator_kernel.values.resource import SkillDef
from tables import cases

NOBODY = Standing(shipped=False, trusted=False, granted=False, rung="bubblewrap")


def executor(tmp_path: Path, **given: Any) -> SkillExecutor:
    (tmp_path / "SKILL.md").write_text("---\nname: x\n---\n")
    held = {"name": "x", "description": "", "path": tmp_path / "SKILL.md", "folder": tmp_path, "command": "python x.py"}
    return SkillExecutor(skill=SkillDef(**{**held, **given}))


def decided(tmp_path: Path, standing: Standing = NOBODY, policy: Policy | None = None, **given: Any) -> dict[str, Any]:
    found = explained(executor(tmp_path, **given), standing, policy or Policy())
    return {one.what: (one.verdict, one.rule, one.detail) for one in found}


@pytest.mark.requirement("SAF-1")
def test_declared_network_access_is_asked_about_until_granted_and_undeclared_access_is_denied(tmp_path: Path) -> None:
    network = GIVEN["network"]
    asked = decided(tmp_path, network=True)[network]
    assert asked == ("ask", f"its manifest: {SAID['network']}", "exit code 9 without a yes")
    granted = decided(tmp_path, NOBODY._replace(granted=True), network=True)[network]
    assert granted == ("allow", "you agreed to that for these bytes", "")
    unsaid = decided(tmp_path, NOBODY._replace(granted=True))[network]
    assert unsaid == ("deny", "its manifest does not say network: true", "")


@pytest.mark.requirement("SAF-1")
def test_a_denial_in_the_settings_overrides_every_consent(tmp_path: Path) -> None:
    agreed = Standing(shipped=True, trusted=True, granted=True, rung="bubblewrap")
    denied = decided(tmp_path, agreed, Policy(frozenset({"net*", "skills"})), network=True)
    assert denied[GIVEN["network"]] == ("deny", "your settings: [policy] deny net*", "so it does not run")
    assert denied["run"][:2] == ("deny", "your settings: [policy] deny skills")


@cases("known, expected")
def test_whether_it_runs_is_decided_by_whose_its_bytes_are(
    tmp_path: Path, known: Any, expected: tuple[str, str]
) -> None:
    assert decided(tmp_path, NOBODY._replace(**known))["run"][:2] == expected


def test_without_a_sandbox_backend_containment_is_denied(tmp_path: Path) -> None:
    assert decided(tmp_path)["be contained"][:2] == ("allow", "bubblewrap works here")
    assert decided(tmp_path, NOBODY._replace(rung=""))["be contained"][:2] == ("deny", "nothing here can contain it")


#
def test_a_refusal_names_the_first_thing_that_is_denied_and_its_rule() -> None:
    wants: tuple[Want, ...] = ("packages", "project", "network")
    policy = Policy(frozenset({"network", "project"}), {"x": frozenset({"skills"})})
    assert refusal(policy, "type_a", "y", ()) is None
    assert refusal(policy, "type_a", "y", wants[:1]) is None
    found = refusal(policy, "type_a", "y", wants)
    assert found == Decision(GIVEN["project"], "deny", "your settings: [policy] deny project")
    assert refusal(policy, "type_a", "x", wants) == Decision(
        "run", "deny", "your settings: [policy.skills.x] deny skills"
    )
    assert refusal(Policy(frozenset({"shell"})), "type_a", "x", ()) is None


@pytest.mark.requirement("JIT-5")
@cases("listed, denied, expected")
def test_a_tool_is_allowed_where_the_manifest_lists_it_and_nobody_denies_it(
    listed: tuple[str, ...] | None, denied: tuple[str, ...], expected: tuple[str, str]
) -> None:
    assert of_tool("a", "x", listed, Policy(frozenset(denied)))[1:3] == expected


BUILT_IN = "built-in tool of prompt skills"


@pytest.mark.requirement("JIT-5")
@pytest.mark.parametrize(
    ("tool", "policy", "given", "expected"),
    [
        ("read", Policy(), {}, ("allow", BUILT_IN, "")),
        ("run", Policy(), {}, ("ask", BUILT_IN, _NEEDS["run"])),
        ("run", Policy(frozenset({"tool:r*"})), {}, ("deny", "your settings: [policy] deny tool:r*", "")),
        ("read", Policy(frozenset({"network"})), {}, ("allow", BUILT_IN, "")),
        (
            "fetch",
            Policy(frozenset({"network"}), fetch=("a.org",)),
            {},
            ("deny", "your settings: [policy] deny network", ""),
        ),
        ("fetch", Policy(), {}, ("deny", "your settings: [policy] names no hosts in fetch", "")),
        ("fetch", Policy(fetch=("a.org", "b.org")), {}, ("ask", BUILT_IN, "only from a.org, b.org")),
        ("run", Policy(), {"allowed_tools": ("Read",)}, ("deny", "its allowed-tools does not name it", "")),
        ("run", Policy(), {"tools": ("x",)}, ("deny", "its manifest names other tools, and has no allowed-tools", "")),
    ],
)
def test_a_built_in_tool_is_decided_by_policy_then_by_the_manifest(
    tmp_path: Path, tool: str, policy: Policy, given: Any, expected: tuple[str, str, str]
) -> None:
    held = msgspec.structs.replace(executor(tmp_path, command="", **given), shipped=True)
    assert of_built_in(tool, held, policy)[1:] == expected


@pytest.mark.requirement("SAF-1")
def test_a_built_in_tool_of_a_skill_that_nobody_accepts_is_denied(tmp_path: Path) -> None:
    found = of_built_in("read", executor(tmp_path, command=""), Policy())
    assert (found.what, found.verdict, found.rule) == ("call read", "deny", "you neither installed nor trust it")

"""`navigator policy explain` predicts what then happens."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.support import Place, below, place_in, type_a
from navigator_kernel.sandbox.contain import ContainedRunner
from navigator_kernel.values.allowed import EVERY
from person_state import accept
from skill_repositories import skill_text
from tables import cases

pytestmark = pytest.mark.sample(1)

LOOKS = """import sys
try:
    print(open("../../../told").read())
except OSError as error:
    sys.exit(str(error))
"""


@pytest.fixture
def here(tmp_path: Path) -> Place:
    place = place_in(tmp_path)
    place.write({**below(".claude/skills/looker", type_a("looker", LOOKS)), "told": "something"})
    return place


def told(place: Place, *words: str) -> dict[str, tuple[str, str]]:
    """The verdict and the rule for each action."""
    found = place.json("policy", "explain", *words)
    return {one["what"]: (one["verdict"], one["rule"]) for one in found["decisions"]}


@pytest.mark.wide
@pytest.mark.requirement("SAF-1")
def test_policy_explain_predicts_whether_a_skill_runs(here: Place) -> None:
    assert told(here, "looker")["run"] == ("ask", "nobody has agreed to these bytes")
    assert here.run("ask", "/looker").code == 9
    here.said("skill", "trust", "looker")
    assert told(here, "looker")["run"] == ("allow", "you agreed to these bytes from there")
    assert here.run("ask", "/looker").code in {0, 1}
    script = here.root / ".claude/skills/looker/run.py"
    script.write_text(f"{LOOKS}\n")
    assert told(here, "looker")["run"][0] == "ask"
    assert here.run("ask", "/looker").code == 9


@pytest.mark.parametrize(("says", "verdict", "code"), [("", "deny", 1), ("reads: project\n", "allow", 0)])
def test_policy_explain_predicts_whether_a_skill_can_read_the_project(
    here: Place, says: str, verdict: str, code: int
) -> None:
    manifest = here.root / ".claude/skills/looker/SKILL.md"
    manifest.write_text(manifest.read_text().replace("description:", f"{says}description:", 1))
    here.said("skill", "trust", "looker")
    assert told(here, "looker")["read the project"][0] == verdict
    assert here.run("ask", "/looker").code == code


def test_a_shipped_skill_needs_no_yes(here: Place) -> None:
    found = told(here, "word-count")
    assert found["run"] == ("allow", "its bytes are the released ones")
    assert found["reach the network"] == ("deny", "its manifest does not say network: true")


def test_a_prompt_starts_nothing_and_its_model_may_call_built_in_tools(here: Place) -> None:
    found = told(here, "code-review")
    assert found.pop("start a process") == ("deny", "it has no command")
    assert [what.removeprefix("call ") for what in found] == list(EVERY)


@pytest.mark.requirement("JIT-5")
@pytest.mark.parametrize(
    ("rights", "tool", "verdict", "rule"),
    [
        ('["run"]', "Bash", "allow", "your settings: allow run"),
        ('["edit:./"]', "str_replace", "allow", "your settings: allow edit:./"),
        ('["edit:docs/"]', "Write", "ask", "your settings: allow edit:docs/"),
        ('["run"]', "Write", "ask", "built-in tool of prompt skills"),
    ],
)
def test_policy_explain_shows_what_the_settings_allow_under_any_name_of_a_tool(
    here: Place, home: Path, rights: str, tool: str, verdict: str, rule: str
) -> None:
    here.write({".claude/skills/painter/SKILL.md": skill_text("painter", "Paints pictures.")})
    accept(here.root, "painter")
    file = home / ".config/navigator/config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'[allow.painter]\n"{here.root}" = {rights}\n')
    found = told(here, "painter", tool)
    assert "start a process" not in found and (verdict, rule) == next(iter(found.values()))


@pytest.mark.parametrize(
    ("tools", "verdict"), [("", "deny"), ("tools: [read_file]\n", "deny"), ("tools: [write_file]\n", "allow")]
)
def test_policy_explain_allows_a_tool_only_if_the_manifest_lists_it(here: Place, tools: str, verdict: str) -> None:
    manifest = here.root / ".claude/skills/looker/SKILL.md"
    manifest.write_text(manifest.read_text().replace("description:", f"{tools}description:", 1))
    assert told(here, "looker", "write_file")["call write_file"][0] == verdict


@pytest.mark.requirement("JIT-5")
@cases("settings, extra, tool, verdict, rule")
def test_policy_explain_shows_the_verdict_and_the_rule_for_a_built_in_tool(
    here: Place, home: Path, settings: str, extra: str, tool: str, verdict: str, rule: str
) -> None:
    here.write({".claude/skills/painter/SKILL.md": skill_text("painter", "Paints pictures.", extra)})
    accept(here.root, "painter")
    file = home / ".config/navigator/config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"[policy]\n{settings}\n")
    assert told(here, "painter", tool)[f"call {tool}"] == (verdict, rule)


def test_a_prompt_that_nobody_accepts_has_no_built_in_tools(here: Place) -> None:
    here.write({".claude/skills/painter/SKILL.md": skill_text("painter", "Paints pictures.")})
    assert told(here, "painter", "read")["call read"] == ("deny", "you neither installed nor trust it")


def test_without_a_sandbox_it_says_so(
    here: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from navigator_kernel.cli.main import run

    monkeypatch.setattr(ContainedRunner, "rung", lambda _: None)
    monkeypatch.chdir(here.root)
    assert run(["policy", "explain", "looker"]) == 0
    assert "nothing here can contain it" in " ".join(capsys.readouterr().out.split())


def test_a_skill_that_is_not_there_is_4(here: Place) -> None:
    assert here.run("policy", "explain", "frobnicate").code == 4

"""What holds for every shipped skill: its form, its words, its evals, and that it is available out of the box."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from navigator_kernel.bootstrap.places import shipped_digests, shipped_home
from navigator_kernel.skills.catalog.catalogue import ResourceCatalogue
from navigator_kernel.skills.catalog.listing import Root
from navigator_kernel.skills.catalog.receipts import folder_digest
from navigator_kernel.skills.formats.template import Filling, fill_argv
from navigator_planner.toolkit import registry
from shipped.place import NAMES, Place, script_of
from tables import table

if TYPE_CHECKING:
    from navigator_kernel.values.resource import SkillDef

TOP = Path(__file__).parents[2]
SAMPLES = {"code-optimize", "code-review", "master-orchestrator", "task_manager", "git-workflow", "rust-dev"}
RUN = table(__file__, "RUN")
PHRASE = "This skill should be used when"
HAN = re.compile(r"[一-鿿]")
SPEC = {"name", "description", "license", "metadata"}  # the specification's top-level keys that shipped skills use

every = pytest.mark.parametrize("name", NAMES)


def frontmatter(name: str) -> dict[str, Any]:
    """The frontmatter as any YAML reader sees it."""
    text = (shipped_home().skills / name / "SKILL.md").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(text.split("---\n")[1])
    return found


def skill(name: str) -> SkillDef:
    found = ResourceCatalogue(roots=(Root(path=shipped_home().skills, level="shipped"),)).find(name)
    assert found is not None
    return found


def evals(name: str, kind: str) -> Any:
    return json.loads((shipped_home().skills / name / "evals" / f"{kind}.json").read_text(encoding="utf-8"))


# The shipped skills


@pytest.mark.requirement("FMT-11")
def test_the_samples_are_shipped_among_at_least_fourteen() -> None:
    assert set(NAMES) >= SAMPLES | set(RUN)
    assert len(NAMES) >= 14


@pytest.mark.requirement("FMT-11")
def test_the_samples_are_prompts_with_the_importance_that_the_documents_give_them() -> None:
    assert {skill(name).kind for name in SAMPLES} == {"B"}
    assert [skill(name).priority for name in ("master-orchestrator", "code-review", "code-optimize")] == [100, 80, 80]
    assert skill("master-orchestrator").tags == ("orchestration", "workflow", "meta")


@pytest.mark.requirement("FMT-11", "STA-3", "X-44")
def test_shipped_skills_do_not_count_as_installed(place: Place) -> None:
    notice = place.talk().say("/code-review x").notice
    assert notice is not None and notice.count == 0


def test_the_wheel_and_the_digests_list_exactly_the_shipped_skills() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))
    copied = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    wheel = {source.removeprefix(".claude/skills/") for source in copied if source.startswith(".claude/skills/")}
    assert wheel == set(NAMES)
    assert {name for name in shipped_digests() if not name.startswith("bin/")} == set(NAMES)


@every
def test_its_digest_is_that_of_its_files(name: str) -> None:
    assert folder_digest(shipped_home().skills / name) == shipped_digests()[name]


# The form of a skill


@every
def test_it_keeps_to_the_specification_of_agent_skills(name: str) -> None:
    held = frontmatter(name)
    assert set(held) == SPEC
    assert held["name"] == name
    assert re.fullmatch(
        r"[a-z0-9]+(-[a-z0-9]+)*", name.replace("task_manager", "task-manager")
    )  # the name that FMT-11 asks for
    assert 0 < len(held["description"]) <= 1024 and not re.search(r"[<>]", held["description"])
    assert all(isinstance(value, str) for value in held["metadata"].values())
    assert all(key.startswith("navigator-") for key in held["metadata"])


@every
def test_it_is_read_without_a_note(name: str) -> None:
    found = skill(name)
    assert (found.diagnostics, found.enabled, found.license) == ((), True, "Apache-2.0")
    assert len(found.sop.splitlines()) < 500


@every
def test_it_has_words_of_both_languages(name: str) -> None:
    found = skill(name)
    chinese = [example for example in found.examples if HAN.search(example)]
    assert len(found.examples) >= 5 and len(chinese) >= 2 and len(chinese) < len(found.examples)
    assert found.category and len(found.tags) >= 3 and len(found.keywords_cn) >= 3
    assert len(set(found.examples)) == len(found.examples)
    assert all(HAN.search(word) for word in found.keywords_cn)


@every
def test_nothing_is_declared_that_does_not_exist_yet(name: str) -> None:
    found, known = skill(name), set(registry())
    assert (set(found.tools or ()) - known, found.allowed_tools, found.effects, found.extra) == (set(), (), (), {})


@pytest.mark.parametrize("name", RUN)
def test_a_shipped_skill_with_a_script_is_marked_as_idempotent(name: str) -> None:
    assert skill(name).kind == "A"
    assert frontmatter(name)["metadata"]["navigator-idempotent"] == "true"


@pytest.mark.parametrize("name", RUN)
def test_its_command_is_its_own_script_with_a_word_for_each_parameter(name: str) -> None:
    found = skill(name)
    params = {spec.name: f"value of {spec.name}" for spec in found.required_params}
    argv = fill_argv(found.command, Filling(params=params, root=found.folder, arguments=("word",)))
    assert argv[:2] == (sys.executable, str(script_of(name)))
    assert set(params.values()) <= set(argv)


@pytest.mark.parametrize("name", RUN)
def test_its_script_needs_nothing_but_python(name: str) -> None:
    text = script_of(name).read_text(encoding="utf-8")
    imported = set(re.findall(r"^(?:from|import) (\w+)", text, re.MULTILINE))
    assert imported <= sys.stdlib_module_names
    assert not imported & {"socket", "urllib", "http", "ssl", "ctypes", "pickle"} or "from urllib.parse import" in text


def test_the_scripts_keep_to_the_style_of_the_house() -> None:
    folder = shipped_home().skills
    for words in (["check", "--quiet"], ["format", "--check", "--quiet"]):
        assert subprocess.run([sys.executable, "-m", "ruff", *words, str(folder)], cwd=TOP).returncode == 0


# The description of a skill


@pytest.mark.requirement("RTE-37", "RTE-39")
@every
def test_its_description_says_when_to_use_it_in_both_languages(name: str) -> None:
    summary, phrase, rest = skill(name).description.partition(PHRASE)
    scenario, opening, hint = rest.partition("（")
    assert (phrase, opening, hint[-1:]) == (PHRASE, "（", "）")
    assert summary.endswith(". ") and len(summary) > 30 and not HAN.search(summary.replace("待办", ""))
    assert len(scenario.split()) >= 6
    assert len(HAN.findall(hint)) >= 8 and hint.endswith("时使用）")


# The evals of a skill


@every
def test_its_trigger_evals_are_of_both_kinds_and_languages(name: str) -> None:
    rows = evals(name, "trigger-eval")
    assert len(rows) >= 6 and len({row["query"] for row in rows}) == len(rows)
    assert all(set(row) - {"expected_skill"} == {"query", "should_trigger"} for row in rows)
    assert {row.get("expected_skill", name) for row in rows} <= set(NAMES)
    for wanted in (True, False):
        queries = [row["query"] for row in rows if row["should_trigger"] is wanted]
        chinese = sum(bool(HAN.search(query)) for query in queries)
        assert len(queries) >= 2 and 0 < chinese < len(queries)
    assert all(row["should_trigger"] == (row.get("expected_skill") == name) for row in rows)


@every
def test_its_evals_are_laid_out_as_the_skill_creators(name: str) -> None:
    held = evals(name, "evals")
    assert (set(held), held["skill_name"]) == ({"skill_name", "evals"}, name)
    assert len(held["evals"]) >= 2
    assert [row["id"] for row in held["evals"]] == list(range(1, len(held["evals"]) + 1))
    for row in held["evals"]:
        assert set(row) == {"id", "prompt", "expected_output", "files"}
        assert row["prompt"].strip() and row["expected_output"].strip()
        assert all((shipped_home().skills / name / file).is_file() for file in row["files"])
    assert {bool(HAN.search(row["prompt"])) for row in held["evals"]} == {True, False}

"""Every documented form of a resource file is read; a broken one gets a code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.skills.formats.manifest import read_manifest
from navigator_kernel.values.resource import ParamSpec
from skills_reading.manifests import codes, meta, read
from tables import cases, table

# The canonical form


@pytest.mark.requirement("FMT-9")
def test_the_open_specifications_keys_are_read() -> None:
    skill = read(
        "---\nname: x\ndescription: >\n  does a thing,\n  well\nlicense: MIT\ncompatibility: any\n"
        "metadata:\n  author: me\nallowed-tools: Read Grep Bash(git log *)\n---\n# X\n\nDo it.\n"
    )
    assert (skill.name, skill.description, skill.license) == ("x", "does a thing, well", "MIT")
    assert skill.allowed_tools == ("Read", "Grep", "Bash(git log *)")
    assert codes(skill) == []


@pytest.mark.requirement("FMT-8")
def test_the_text_below_the_metadata_is_the_sop() -> None:
    assert meta("license: MIT", "# Role\n\n1. Look.\n2. Act.").sop == "# Role\n\n1. Look.\n2. Act."


@pytest.mark.requirement("FMT-10")
def test_a_skills_meta_has_name_description_source_and_content_hash() -> None:
    shown = read("---\nname: x\ndescription: d\n---\nGo.\n", level="shipped").meta
    assert (shown.name, shown.description, shown.source) == ("x", "d", "shipped")
    assert hasattr(shown, "content_hash")


OURS: list[tuple[str, str, str, object]] = list(table(__file__, "OURS"))


@pytest.mark.requirement("FMT-9", "REG-3")
@pytest.mark.parametrize(("key", "written", "attribute", "value"), OURS)
def test_our_keys_are_read_at_top_level(key: str, written: str, attribute: str, value: object) -> None:
    skill = meta(f"{key}: {written}")
    assert getattr(skill, attribute) == value
    assert codes(skill) == []


@pytest.mark.requirement("FMT-9", "REG-3")
@pytest.mark.parametrize(("key", "written", "attribute", "value"), OURS)
def test_our_keys_are_read_as_strings_under_metadata(key: str, written: str, attribute: str, value: object) -> None:
    skill = meta(f"metadata:\n  navigator-{key}: {written}")
    assert getattr(skill, attribute) == value
    assert codes(skill) == []


@pytest.mark.parametrize("key", ["keywords-cn", "Keywords_CN", "navigator-keywords_cn"])
def test_a_key_may_be_spelled_with_a_hyphen_or_in_capitals(key: str) -> None:
    text = f"metadata:\n  {key}: 审查" if key.startswith("navigator") else f"{key}: 审查"
    assert meta(text).keywords_cn == ("审查",)


def test_the_top_level_wins_over_metadata() -> None:
    assert meta("priority: 70\nmetadata:\n  navigator-priority: '10'").priority == 70


def test_our_key_wins_over_another_tools_key_of_that_name_under_metadata() -> None:
    assert meta("metadata:\n  tags: theirs\n  navigator-tags: ours").tags == ("ours",)


@pytest.mark.parametrize(
    "written",
    ["tags: [a, b]", "tags:\n  - a\n  - b", "tags: a, b", 'tags: "[a, b]"', "tags: a，b", "tags: |\n  a\n  b"],
)
def test_a_list_may_be_written_in_any_way(written: str) -> None:
    assert meta(written).tags == ("a", "b")


@pytest.mark.requirement("FMT-9")
@cases("written")
def test_an_example_may_hold_commas(written: str) -> None:
    assert meta(written).examples == ("review this, please", "审查代码")


@pytest.mark.requirement("FMT-6", "AGT-3")
@pytest.mark.parametrize(("lines", "kind"), [("license: MIT", "B"), ("command: tool {x}", "A")])
def test_a_command_makes_a_skill_type_a(lines: str, kind: str) -> None:
    assert meta(lines).kind == kind


@pytest.mark.requirement("AGT-2")
def test_defaults_without_settings() -> None:
    skill = meta("license: MIT")
    assert (skill.enabled, skill.priority, skill.inherit_history, skill.implicit) == (True, 50, True, True)
    assert (skill.tools, skill.timeout, skill.command, skill.backend) == (None, None, "", "")


@cases("written, enabled")
def test_a_switch_is_read_as_people_write_it(written: str, enabled: bool) -> None:
    assert meta(f"enabled: {written}").enabled is enabled


def test_an_empty_tools_list_is_not_the_same_as_none() -> None:
    assert meta("tools: []").tools == ()


# Parameters


@cases("written")
def test_required_params_are_read_in_every_form(written: str) -> None:
    assert meta(written).required_params == (ParamSpec(name="url", prompt="which page", validation="url_format"),)


@pytest.mark.parametrize("written", ["required_params: [url, text]", "required_params: url, text"])
def test_required_params_may_be_names_only(written: str) -> None:
    assert [p.name for p in meta(written).required_params] == ["url", "text"]


def test_a_param_may_be_optional_or_have_a_default() -> None:
    found = meta("required_params:\n  - {name: a, required: false}\n  - {name: b, default: '7'}").required_params
    assert [(p.required, p.default) for p in found] == [(False, None), (True, "7")]


def test_an_unknown_validation_is_named_and_the_strict_one_used() -> None:
    skill = meta("required_params:\n  - {name: a, validation: magic}")
    assert (skill.required_params[0].validation, codes(skill)) == ("not_empty", ["validation-unknown"])


@pytest.mark.parametrize("written", ["required_params:\n  - {prompt: no name}", "required_params: '[3]'"])
def test_a_param_without_a_name_is_named(written: str) -> None:
    assert codes(meta(written)) == ["param-odd"]


# The legacy forms


@pytest.mark.requirement("FMT-1", "FMT-2", "REG-7")
def test_the_legacy_block_and_its_sections_are_read() -> None:
    skill = read(
        "# code-optimize\n\ndescription: makes code fast\nenabled: true\npriority: 80\nbackend: claude\ntags: perf, code\n\n"
        "## System Prompt\n\nYou optimise.\n\n## User Prompt Template\n\nOptimise {request}\n",
        "code-optimize",
    )
    assert (skill.name, skill.description, skill.priority) == ("code-optimize", "makes code fast", 80)
    assert (skill.backend, skill.tags) == ("claude", ("perf", "code"))
    assert (skill.system_prompt, skill.user_template) == ("You optimise.", "Optimise {request}")


@pytest.mark.requirement("FMT-1")
def test_the_block_ends_at_the_first_blank_line() -> None:
    skill = read("# t\ndescription: d\n\npriority: 99\n")
    assert (skill.priority, "priority: 99" in skill.sop) == (50, True)


@pytest.mark.requirement("FMT-1")
@pytest.mark.parametrize("text", ["# t\ndescription：中文冒号\n\nbody\n", "description: 中文冒号\n\nbody\n"])
def test_the_block_may_have_a_wide_colon_or_no_title(text: str) -> None:
    assert read(text).description == "中文冒号"


@pytest.mark.requirement("FMT-2")
@pytest.mark.parametrize("form", ["---\nname: x\ndescription: d\n---\n", "# x\ndescription: d\n\n", "Just text.\n\n"])
@cases("system, user")
def test_the_sections_are_known_in_every_form_and_both_languages(form: str, system: str, user: str) -> None:
    skill = read(f"{form}## {system}\n\nS\n\n## {user}\n\nU\n\n## Notes\n\nN\n")
    assert (skill.system_prompt, skill.user_template) == ("S", "U")


def test_a_heading_inside_a_code_fence_is_not_a_section() -> None:
    skill = meta("license: MIT", "```md\n## System Prompt\nfake\n```\n\n## System Prompt\n\nreal")
    assert skill.system_prompt == "real"


@pytest.mark.requirement("FMT-6")
def test_a_flat_file_is_a_skill_of_one_file() -> None:
    text = "---\nname: task_manager\ndescription: tasks\ntools: [task_get, task_list]\ninherit_history: false\n---\n# Role\n"
    skill = read_manifest(text.encode(), path=Path("/s/task_manager.md"), folder=None)
    assert (skill.name, skill.folder, skill.tools) == ("task_manager", None, ("task_get", "task_list"))
    assert skill.inherit_history is False


@pytest.mark.requirement("FMT-6")
def test_history_is_inherited_by_default() -> None:
    assert read("---\nname: x\ndescription: d\n---\n").inherit_history is True


@pytest.mark.requirement("FMT-7")
def test_a_file_without_metadata_is_read_and_named() -> None:
    skill = read("# A title of several words\n\nThe first sentence.\n")
    assert (skill.name, skill.description) == ("x", "The first sentence.")
    assert codes(skill) == ["no-description", "no-frontmatter"]


@pytest.mark.parametrize("type", ["skill", "command", "agent", "prompt"])
@pytest.mark.requirement("REG-2")
def test_the_namespace_is_type_and_name(type: Any) -> None:
    assert read("---\nname: x\ndescription: d\n---\n", type=type).namespace == f"{type}:x"


# Keys of other hosts


@cases("lines, key, value", lists=True)
def test_a_key_that_the_kernel_does_not_know_is_kept(lines: str, key: str, value: object) -> None:
    assert meta(lines).extra == {key: value}


def test_keys_of_the_specification_are_not_extra_keys() -> None:
    assert meta("license: MIT\ncompatibility: any\nmetadata: {author: me}").extra == {}


def test_a_skill_may_forbid_that_it_is_chosen_for_its_words() -> None:
    assert meta("disable-model-invocation: true").implicit is False


def test_when_to_use_stands_in_for_a_description() -> None:
    assert read("---\nname: x\nwhen_to_use: on Mondays\n---\nGo.\n").description == "on Mondays"


@pytest.mark.requirement("RTE-39")
@pytest.mark.parametrize(
    ("description", "use", "both"),
    [
        ("Merges files", "Use on Mondays", "Merges files. Use on Mondays"),
        ("Merges files.", "Use on Mondays", "Merges files. Use on Mondays"),
        ("合并文件", "周一使用", "合并文件。 周一使用"),
        ("Merges files. Use on Mondays.", "Use on Mondays", "Merges files. Use on Mondays."),
        ("d" * 1100, "u" * 1100, "d" * 1024 + ". " + "u" * 510),
    ],
)
def test_when_to_use_is_part_of_the_description(description: str, use: str, both: str) -> None:
    text = f"---\nname: x\ndescription: {description}\nwhen-to-use: {use}\n---\nGo.\n"
    assert read(text).description == both


@cases("lines, paths")
def test_patterns_of_files_are_read_in_each_form(lines: str, paths: tuple[str, ...]) -> None:
    assert meta(lines).paths == paths

"""Every accepted layout becomes one SKILL.md with the same content."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from navigator_kernel.errors import NotLoadable
from navigator_kernel.skills.formats.frontmatter import split
from navigator_kernel.skills.formats.layouts import FORMATS, detect_format, to_canonical
from navigator_kernel.skills.formats.manifest import read_manifest
from navigator_kernel.skills.formats.validate import validate
from navigator_kernel.values.resource import SkillDef
from tables import table

SHIPPED = sorted((Path(__file__).parents[2] / ".claude" / "skills").glob("*/SKILL.md"))

HEADER = """# code-optimize

description: makes code fast
enabled: true
priority: 80
backend: claude
tags: perf, code

## System Prompt

You optimise.
"""
FLAT = """---
name: task_manager
description: "tasks: all of them"
tools: [task_get, task_list]
inherit_history: false
---
# Role

1. Look.
"""
COMMAND = """---
description: Fixes an issue
argument-hint: "[number]"
allowed-tools: [Read, 'Bash(git log *)']
model: sonnet
disable-model-invocation: true
---
Fix issue $ARGUMENTS.
"""
RULE = """---
description: TypeScript style
globs: *.ts,*.tsx
alwaysApply: false
---
- Use types.
"""
GEMINI = """description = "Reviews: a change"
turbo = true
steps = 3

[extra]
colour = "red"

prompt_version = "1"
"""
SAMPLES = table(__file__, "SAMPLES")
FULL = """---
description: does: it
Name: full
# a comment
version: 1.10
user-invocable: no
hooks:
  PreToolUse: [{matcher: "Bash", run: 'a "b"'}]
keywords-cn: [审查, 代码]
required_params:
  - {name: url, prompt: "which page", validation: url_format, extra: kept}
examples:
  - review this, please
  - 审查代码
effects: [refresh:tasks]
priority: 0080
command: python ${SKILL_ROOT}/a.py {url}
metadata:
  author: me
  version: 1.0
  navigator-keywords_cn: old
  tags: theirs
  nested: {a: [1, "2"]}
allowed-tools: Read, Bash(git log *)
---
Do it.
"""


def read(data: bytes, name: str = "x") -> SkillDef:
    return read_manifest(data, path=Path(f"{name}.md"), folder=None)


def said(skill: SkillDef) -> SkillDef:
    """A skill without what depends on its layout: its notes, and the outer blanks of its text."""
    return replace(skill, diagnostics=(), sop=skill.sop.strip())


def test_every_format_has_a_line_and_a_sample() -> None:
    assert set(SAMPLES) == set(FORMATS)
    assert all(line and "\n" not in line for line in FORMATS.values())


@pytest.mark.parametrize("kind", SAMPLES)
def test_each_layout_is_detected_from_the_content_and_the_name_of_its_file(kind: str) -> None:
    name, text = SAMPLES[kind]
    assert detect_format(text.encode(), name) == kind


@pytest.mark.requirement("REG-3")
@pytest.mark.parametrize("kind", SAMPLES)
def test_every_layout_becomes_a_manifest_that_says_the_same(kind: str) -> None:
    name, text = SAMPLES[kind]
    written = to_canonical(text.encode(), name)
    stem = name.partition(".")[0]
    assert written.startswith(b"---\nname: ")
    assert detect_format(written, stem) in {"skill", "rule"}
    if kind != "gemini":
        before, after = read(text.encode(), stem), read(written, stem)
        assert said(replace(after, sop="")) == said(replace(before, sop=""))
        assert before.sop.strip() in after.sop
    assert to_canonical(written, stem) == written


@pytest.mark.requirement("FMT-1", "FMT-2")
def test_the_header_form_keeps_its_title_and_its_sections() -> None:
    written = to_canonical(HEADER.encode(), "other").decode()
    assert written == (
        "---\nname: code-optimize\ndescription: makes code fast\nmetadata:\n  navigator-enabled: 'true'\n"
        "  navigator-priority: '80'\n  navigator-backend: claude\n  navigator-tags: perf, code\n---\n\n"
        "# code-optimize\n\n## System Prompt\n\nYou optimise.\n"
    )


@pytest.mark.requirement("FMT-6")
def test_a_flat_file_keeps_its_tools_and_its_history() -> None:
    after = read(to_canonical(FLAT.encode(), "task_manager.md"))
    assert (after.name, after.tools, after.inherit_history) == ("task_manager", ("task_get", "task_list"), False)


def test_a_gemini_command_keeps_its_prompt_and_its_keys() -> None:
    written = to_canonical(SAMPLES["gemini"][1].encode(), "review.toml").decode()
    assert written == (
        "---\nname: review\ndescription: 'Reviews: a change'\nturbo: true\nsteps: 3\n"
        "extra:\n  colour: red\n  prompt_version: '1'\n---\n\nReview $ARGUMENTS.\n"
    )


def test_keys_that_nobody_here_knows_stay_as_they_were_written() -> None:
    written = to_canonical(FULL.encode(), "x").decode()
    for line in ("version: 1.10", "user-invocable: no", """  PreToolUse: [{matcher: "Bash", run: 'a "b"'}]"""):
        assert line in written.split("\n")
    assert "navigator-priority: '0080'" in written
    assert '"extra": "kept"' in written
    assert "allowed-tools: Read Bash(git log *)" in written


def test_every_field_of_a_full_manifest_is_kept() -> None:
    written = to_canonical(FULL.encode(), "x")
    assert said(read(written)) == said(read(FULL.encode()))
    assert to_canonical(written, "x") == written
    assert b"navigator-keywords_cn: old" not in written


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.parent.name)
def test_a_shipped_skill_says_the_same_in_its_canonical_form(path: Path) -> None:
    data = path.read_bytes()
    written = to_canonical(data, path.parent.name)
    assert said(read(written)) == said(read(data))
    assert to_canonical(written, path.parent.name) == written


@pytest.mark.parametrize("kind", ["skill", "header", "text"])
def test_a_canonical_file_without_host_keys_passes_strict_validation(kind: str) -> None:
    name, text = SAMPLES[kind]
    stem = read(to_canonical(text.encode(), name), name.partition(".")[0]).name
    assert validate(to_canonical(text.encode(), name), stem, {}, strict=True) == []


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff---\r\nname: x\r\ndescription: d\r\n---\r\nGo.\r\n",
        "---\nname: x\ndescription: d\n\nGo.\n",
        "---\nname: x\ndescription: use\n  when: asked\ntags:\n  - a\nmine: yes\n---\nGo.\n",
        "---\nname: x\ndescription: d\nmetadata: text\n---\nGo.\n",
        "---\nname: x\ndescription: d\nmetadata: [a, b]\n---\nGo.\n",
        "---\nname: x\ndescription: d\nTags: wrong\ntags: right\n---\nGo.\n",
        "---\nname: x\ndescription: d\ntags: ['a, b', c]\nexamples: ['a\n\n  b']\n---\nGo.\n",
        "---\nname: x\ndescription: d\nallowed-tools: ['Read File', Grep]\n---\nGo.\n",
        "---\nname: x\ndescription: d\ntools: []\n---\nGo.\n",
        "---\nname: x\ndescription: d\nlicense: {a: b}\n---\nGo.\n",
        "---\nname: x\nwhen_to_use: on Mondays\n---\nGo.\n",
        "---\nname: x\ndescription: |\n  one\n\n  two  \n\n---\nGo.\n",
        "---\nname: x\ndescription: ' - odd # start'\nk: >\n  a\n  b\n---\n\n\n---\n\nGo.\n",
        f"---\nname: x\ndescription: {'d' * 2000}\n---\nGo.\n",
    ],
)
def test_a_tolerated_manifest_keeps_its_meaning_and_its_canonical_form_is_stable(text: str) -> None:
    written = to_canonical(text.encode(), "x")
    assert said(read(written)) == said(read(text.encode()))
    assert to_canonical(written, "x") == written


def test_nothing_of_a_description_is_cut() -> None:
    assert (
        split(to_canonical(f"---\nname: x\ndescription: {'d' * 2000}\n---\n".encode(), "x"), "x").meta["description"]
        == "d" * 2000
    )


@pytest.mark.parametrize("data", [b"", b"---\nname: &a x\n---\n", b'prompt = "\\u0007"', b"---\nname: x\n---\n"])
def test_an_unusable_file_cannot_be_converted(data: bytes) -> None:
    with pytest.raises(NotLoadable):
        to_canonical(data, "x y")


@pytest.mark.wide
@settings(max_examples=300)
@given(
    st.text(alphabet="ab:-#|>[]{}'\" \n\t,1审$%@`.", max_size=80),
    st.sampled_from(["mine", "tags", "examples", "metadata"]),
)
def test_a_canonical_file_comes_back_unchanged(text: str, key: str) -> None:
    for data in (f"---\nname: x\ndescription: d\n{key}: {text}\n---\nGo.\n", f"# x\n{key}: {text}\n\nGo.\n", text):
        with suppress(NotLoadable):
            written = to_canonical(data.encode(), "x")
            assert to_canonical(written, "x") == written
            assert said(read(written)).tags == read(data.encode()).tags

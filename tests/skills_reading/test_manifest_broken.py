"""Which defects of a resource file are tolerated with a note, and which are refused with a reason."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navigator_kernel.errors import NotLoadable
from skills_reading.manifests import codes, meta, read
from tables import cases

# Tolerated defects


@cases("text, code")
def test_a_file_with_a_tolerated_defect_is_read_with_a_diagnostic_code(text: str, code: str) -> None:
    assert code in codes(read(text))


@pytest.mark.requirement("FMT-9")
def test_an_unquoted_colon_costs_nothing_but_a_note() -> None:
    skill = read("---\nname: x\ndescription: use when: asked\ntags:\n  - a\n  - b\n---\nGo.\n")
    assert (skill.description, skill.tags) == ("use when: asked", ("a", "b"))


@pytest.mark.requirement("FMT-9")
@pytest.mark.parametrize("text", ["!important rules of css", "{{name}} template filler", "&amp entities", "!it's so"])
def test_a_description_that_begins_like_yaml_is_read_as_it_stands(text: str) -> None:
    assert read(f"---\nname: x\ndescription: {text}\n---\nGo.\n").description == text


@pytest.mark.parametrize("more", ["&a text\nother: *a", "!!python/name:os.system x y"])
def test_an_alias_of_a_description_or_a_tag_of_a_language_is_refused(more: str) -> None:
    with pytest.raises(NotLoadable):
        read(f"---\nname: x\ndescription: {more}\n---\nGo.\n")


@pytest.mark.parametrize("type", ["command", "agent", "prompt"])
def test_a_hosts_own_files_may_list_tools_with_commas(type: Any) -> None:
    assert codes(read("---\nname: x\ndescription: d\nallowed-tools: Read, Grep\n---\nGo.\n", type=type)) == []


def test_a_note_says_in_which_line() -> None:
    [note] = read("---\nname: x\ndescription: use when: asked\n---\nGo.\n").diagnostics
    assert (note.line, note.level) == (3, "warning")


# Files that are read as their author meant them


@pytest.mark.parametrize("change", [lambda t: "\ufeff" + t, lambda t: t.replace("\n", "\r\n"), lambda t: "\n\n" + t])
def test_a_mark_at_the_start_and_foreign_line_ends_change_no_value(change: Any) -> None:
    skill = read(change("---\nname: x\ndescription: d\n---\nGo.\n"))
    assert (skill.description, skill.sop) == ("d", "Go.")


@cases("encoding, text")
def test_a_file_that_is_not_utf8_is_read_by_a_guess_that_is_named(encoding: str, text: str) -> None:
    skill = read(f"---\nname: x\ndescription: {text}\n---\n".encode(encoding))
    assert skill.description == text
    assert "not-utf8" in codes(skill)


def test_bytes_that_no_guess_fits_cost_only_themselves() -> None:
    skill = read(b"---\nname: x\ndescription: caf\x81\n---\n")
    assert (skill.description, codes(skill)) == ("caf\ufffd", ["not-utf8"])


def test_one_value_without_quotes_leaves_all_others_as_they_are() -> None:
    skill = meta(
        "category: it's: here\ntags:\n  - a: b\n  - 'c'\nexamples: |\n  do: this\n  - and that\nlicense: \"MIT\" terms\n"
        "metadata:\n  note: see http://x: y\n  navigator-priority: '70'"
    )
    assert (skill.category, skill.license, skill.priority) == ("it's: here", '"MIT" terms', 70)
    assert skill.examples == ("do: this", "and that")
    assert codes(skill) == ["yaml-unquoted"]


def test_body_text_before_a_horizontal_rule_is_not_metadata() -> None:
    skill = read("---\nname: x\ndescription: d\n\n# Do it\n\nThis first.\nThen that.\n\n---\n\nDone.\n")
    assert (skill.description, skill.sop.splitlines()[0], codes(skill)) == ("d", "# Do it", ["unclosed"])


def test_metadata_that_is_never_closed_ends_where_text_begins() -> None:
    skill = read("---\nname: x\ndescription: d\ntags:\n  - a\n- b\nGo and do.\nNote: well\n")
    assert (skill.tags, skill.sop) == (("a", "b"), "Go and do.\nNote: well")


def test_a_map_in_broken_yaml_is_still_a_map() -> None:
    skill = meta("metadata:\n\tnavigator-priority: 70\n  author: me\n   odd: x")
    assert (skill.priority, codes(skill)) == (70, ["yaml-repaired"])


@pytest.mark.requirement("FMT-1")
def test_blank_lines_and_spaces_at_line_ends_cost_nothing() -> None:
    skill = read("---  \nname: x  \n\ndescription: d \t\n\n--- \n\n\nGo.  \n\n")
    assert (skill.name, skill.description, skill.sop) == ("x", "d", "Go.  ")


@pytest.mark.parametrize(
    "written", ["[" * 5000, '[{"name": "\\u001b"}]', '[{"name": "\\ud800"}]', f'[{{"name": {"9" * 5000}}}]']
)
def test_parameters_that_json_would_smuggle_in_are_words(written: str) -> None:
    assert all(
        param.name.isprintable()
        for param in meta(f"metadata:\n  navigator-required_params: '{written}'").required_params
    )


def test_a_name_is_kept_in_its_composed_form() -> None:
    skill = read("---\nname: cafe\u0301\ndescription: d\n---\n", "cafe\u0301")
    assert (skill.name, codes(skill)) == ("caf\u00e9", ["name-not-nfc"])


def test_the_exact_spelling_of_a_key_wins_wherever_it_stands() -> None:
    assert meta("Tags: wrong\ntags: right").tags == ("right",)
    assert meta("tags: right\nTags: wrong").tags == ("right",)


def test_first_words_that_stand_in_for_a_description_steer_no_terminal() -> None:
    assert read("Do \x1b[31mthis\x1b[0m.\n").description == "Do this."


def test_a_description_is_cut_at_1024() -> None:
    assert len(read(f"---\nname: x\ndescription: {'a' * 5000}\n---\n").description) == 1024


@pytest.mark.parametrize("value", ["yes", "1.0", "null", "~", "2026-01-31", "0x1F", "1e3"])
def test_every_scalar_is_a_string(value: str) -> None:
    assert meta(f"category: {value}").category == value


@pytest.mark.parametrize("name", ["code-review", "task_manager", "代码审查", "x", "a1", "é"])
def test_names_of_any_script_are_names(name: str) -> None:
    assert read(f"---\nname: {name}\ndescription: d\n---\n", name).name == name


# Files that are refused


@pytest.mark.requirement("FMT-7", "REG-9")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("\n \n", "empty"),
        ("---\nname: x\n", "no-description"),
        ("---\nname: x\ndescription: &a d\n---\n", "yaml-anchor"),
        ("---\nname: x\ndescription: d\na: &a [1]\nb: *a\n---\n", "yaml-anchor"),
        ("---\nname: x\ndescription: a: b\na: &a {b: c}\nd: *a\n---\n", "yaml-anchor"),
        ("---\nname: x\ndescription: a: b\na: !tag c\n---\n", "yaml-tag"),
        ("---\nname: x\ndescription: !!python/object/apply:os.system [id]\n---\n", "yaml-tag"),
        ("---\nname: x\ndescription: !tag d\n---\n", "yaml-tag"),
        ("---\nname: x\nname: y\ndescription: d\n---\n", "duplicate-key"),
        ("---\nname: x\ndescription: d\na: {b: 1, b: 2}\n---\n", "duplicate-key"),
        ("---\nname: x\nname: y\ndescription: use\n  when: asked\n---\n", "duplicate-key"),
        ("# x\nname: x\nname: y\n\nGo.\n", "duplicate-key"),
        (f"---\nname: x\ndescription: d\na: {'[' * 40}{']' * 40}\n---\n", "yaml-depth"),
        ("---\nname: x\ndescription: d\n<<: {license: MIT}\n---\n", "yaml-merge-key"),
        (f"---\nname: x\ndescription: d\npriority: {'9' * 65}\n---\n", "yaml-huge-number"),
        (f"---\nname: x\ndescription: d\npriority: 0x{'f' * 65}\n---\n", "yaml-huge-number"),
        ("---\nname: x\ndescription: d\n? {a: b}\n: c\n---\n", "yaml-odd-key"),
        ("---\nname: x\ndescription: a\x1b[2Jb\n---\n", "control-character"),
        ("---\nname: x\ndescription: a\x00b\n---\n", "control-character"),
        ('---\nname: x\ndescription: "a\\e[2Jb"\n---\n', "control-character"),
        ("# x\ndescription: a\x07b\n\nGo.\n", "control-character"),
        (f"---\nname: x\ndescription: {'a' * 70_000}\n---\n", "too-large"),
        ("# x\n" + "a: b\n" * 20_000 + "\nGo.\n", "too-large"),
        ("x" * (1024 * 1024 + 1), "too-large"),
        ("---\nname: x\n---\n", "no-description"),
    ],
)
def test_an_unloadable_file_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(NotLoadable) as raised:
        read(text)
    assert raised.value.data["reason"] == reason


def test_a_refusal_says_in_which_line() -> None:
    with pytest.raises(NotLoadable, match="in line 4") as raised:
        read("---\nname: x\ndescription: d\na: *b\n---\n")
    assert raised.value.data["line"] == 4


@pytest.mark.timeout(30)
@given(st.binary(max_size=300))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    with suppress(NotLoadable):
        read(b"---\n" + data)


@given(st.text(alphabet="-:#|>[]{}&*!'\"\n\t abк审,%@`", max_size=120))
def test_no_frontmatter_raises_anything_else(text: str) -> None:
    with suppress(NotLoadable):
        read(f"---\nname: x\ndescription: d\n{text}\n---\nGo.\n")


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    [
        "---\n" + "a: " * 15_000 + "\n---\nGo.\n",
        "---\n" + "a b " * 15_000 + "\n---\nGo.\n",
        "k" * 500_000,
        "# " + "x: y" * 100_000,
        "---\nname: x\ndescription: d\n---\n" + "## a\n" * 60_000,
        "---\nname: x\ndescription: d\n---\n" + "```\n## a\n" * 40_000,
        "---\nname: x\ndescription: d\nallowed-tools: " + "Bash(" * 10_000 + "\n---\n",
    ],
    ids=["colons", "words", "one-word", "title", "headings", "fences", "parentheses"],
)
def test_no_text_takes_long(text: str) -> None:
    began = time.process_time()
    with suppress(NotLoadable):
        read(text)
    assert time.process_time() - began < 3

"""What is forgiven in a resource file with a note, and what is refused with a reason."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navigator_kernel.errors import NotLoadable
from skills_reading.manifests import codes, meta, read

# What is forgiven


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("---\nname: x\ndescription: use when: asked\n---\nGo.\n", "yaml-repaired"),
        ("---\nname: x\ndescription: 'open\n---\nGo.\n", "yaml-repaired"),
        ("---\nname: x\ndescription: d\n\tbad: tab\n---\nGo.\n", "yaml-repaired"),
        ("---\n- a\n- b\n---\nGo.\n", "yaml-not-a-mapping"),
        ("---\nname: ../evil\ndescription: d\n---\n", "name-odd"),
        ("---\nname: two words\ndescription: d\n---\n", "name-odd"),
        ("---\nname: other\ndescription: d\n---\n", "name-folder"),
        ("---\nname: x\ndescription: d\nmetadata: text\n---\n", "metadata-not-a-map"),
        ("---\nname: x\ndescription: d\npriority: high\n---\n", "priority-odd"),
        ("---\nname: x\ndescription: d\ntimeout: soon\n---\n", "timeout-odd"),
        ("---\nname: x\n---\nGo and do.\n", "no-description"),
    ],
)
def test_what_is_odd_is_read_and_has_a_code(text: str, code: str) -> None:
    assert code in codes(read(text))


@pytest.mark.requirement("FMT-9")
def test_an_unquoted_colon_costs_nothing_but_a_note() -> None:
    skill = read("---\nname: x\ndescription: use when: asked\ntags:\n  - a\n  - b\n---\nGo.\n")
    assert (skill.description, skill.tags) == ("use when: asked", ("a", "b"))


def test_a_note_says_in_which_line() -> None:
    [note] = read("---\nname: x\ndescription: use when: asked\n---\nGo.\n").diagnostics
    assert (note.line, note.level) == (3, "warning")


def test_a_file_that_is_not_utf8_is_read_and_named() -> None:
    skill = read("---\nname: x\ndescription: café\n---\n".encode("latin-1"))
    assert (skill.description, codes(skill)) == ("caf\ufffd", ["not-utf8"])


@pytest.mark.parametrize("change", [lambda t: "\ufeff" + t, lambda t: t.replace("\n", "\r\n"), lambda t: "\n\n" + t])
def test_a_mark_at_the_start_and_foreign_line_ends_change_nothing(change: Any) -> None:
    skill = read(change("---\nname: x\ndescription: d\n---\nGo.\n"))
    assert (skill.description, skill.sop, codes(skill)) == ("d", "Go.", [])


def test_a_description_is_cut_at_1024() -> None:
    assert len(read(f"---\nname: x\ndescription: {'a' * 5000}\n---\n").description) == 1024


@pytest.mark.parametrize("value", ["yes", "1.0", "null", "~", "2026-01-31", "0x1F", "1e3"])
def test_every_scalar_is_a_string(value: str) -> None:
    assert meta(f"category: {value}").category == value


@pytest.mark.parametrize("name", ["code-review", "task_manager", "代码审查", "x", "a1", "é"])
def test_names_of_any_script_are_names(name: str) -> None:
    assert read(f"---\nname: {name}\ndescription: d\n---\n", name).name == name


# What is refused


@pytest.mark.requirement("FMT-7", "REG-9")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("\n \n", "empty"),
        ("---\nname: x\n", "unclosed"),
        ("---\nname: x\ndescription: &a d\n---\n", "hostile"),
        ("---\nname: x\ndescription: d\na: &a [1]\nb: *a\n---\n", "hostile"),
        ("---\nname: x\ndescription: !!python/object/apply:os.system [id]\n---\n", "hostile"),
        ("---\nname: x\ndescription: !tag d\n---\n", "hostile"),
        ("---\nname: x\nname: y\ndescription: d\n---\n", "hostile"),
        ("---\nname: x\ndescription: d\na: {b: 1, b: 2}\n---\n", "hostile"),
        (f"---\nname: x\ndescription: d\na: {'[' * 40}{']' * 40}\n---\n", "hostile"),
        (f"---\nname: x\ndescription: {'a' * 70_000}\n---\n", "too-large"),
        ("---\nname: x\n---\n", "no-description"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(NotLoadable) as raised:
        read(text)
    assert raised.value.data["reason"] == reason


@pytest.mark.timeout(10)
def test_a_billion_laughs_end_at_once() -> None:
    laughs = "a0: &a0 [x,x]\n" + "".join(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
    with pytest.raises(NotLoadable):
        meta(laughs)


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

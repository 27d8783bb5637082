"""What placeholders become, and what never becomes one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navigator_kernel.errors import KernelError, NotLoadable, Refused
from navigator_kernel.skills.catalog.executor import SkillExecutor
from navigator_kernel.skills.formats.template import Filling, fill, fill_argv
from navigator_kernel.values.resource import SkillDef
from tables import cases

ROOT = Path("/skills/x")


def filled(template: str, **given: Any) -> str:
    return fill(template, Filling(root=ROOT, **given))


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        pytest.param("$1", "one", marks=pytest.mark.requirement("PRE-10")),
        pytest.param("$2 then $1", "two then one", marks=pytest.mark.requirement("PRE-10")),
        pytest.param("a$1b", "aoneb", marks=pytest.mark.requirement("PRE-10")),
        pytest.param("$3", "$3", marks=pytest.mark.requirement("PRE-10")),
        pytest.param("$0", "$0"),
        pytest.param("$10", "$10"),
        pytest.param("$1.50", "one.50"),
        pytest.param("\\$1", "$1"),
        pytest.param("cost: \\$5", "cost: $5"),
        pytest.param("$ARGUMENTS", "one 'two", marks=pytest.mark.requirement("PRE-11")),
        pytest.param("<$ARGUMENTS>", "<one 'two>", marks=pytest.mark.requirement("PRE-11")),
        pytest.param("$ARGUMENTSX", "$ARGUMENTSX"),
        pytest.param("\\$ARGUMENTS", "$ARGUMENTS"),
        pytest.param("${SKILL_ROOT}/run.py", "/skills/x/run.py", marks=pytest.mark.requirement("PRE-12")),
        pytest.param("${HOME}", "${HOME}"),
        pytest.param("\\${SKILL_ROOT}", "${SKILL_ROOT}"),
        pytest.param("{request}", "please", marks=pytest.mark.requirement("FMT-3")),
        pytest.param("{{request}}", "please", marks=pytest.mark.requirement("FMT-3")),
        pytest.param("{{ request }}", "please", marks=pytest.mark.requirement("FMT-3")),
        pytest.param("{k} {{k}}", "v v", marks=pytest.mark.requirement("FMT-3")),
        pytest.param("{unknown} {{unknown}}", "{unknown} {{unknown}}"),
        pytest.param('{"json": 1}', '{"json": 1}'),
        pytest.param("", ""),
    ],
)
def test_a_placeholder_with_a_value_is_replaced_and_any_other_stays(template: str, expected: str) -> None:
    given_ = {"request": "please", "arguments": ("one", "two"), "raw": "one 'two", "params": {"k": "v"}}
    assert filled(template, **given_) == expected


@pytest.mark.requirement("PRE-13")
def test_one_template_serves_arguments_root_and_request_at_once() -> None:
    text = filled("run ${SKILL_ROOT}/x with $1 of $ARGUMENTS for {request}", request="r", arguments=("a",), raw="a b")
    assert text == "run /skills/x/x with a of a b for r"


@pytest.mark.requirement("FMT-3")
@pytest.mark.parametrize(
    "hostile", ["$1", "$ARGUMENTS", "{request}", "{{k}}", "${SKILL_ROOT}", "\\$1", "@file", "!`id`"]
)
@pytest.mark.parametrize("template", ["{request}", "$1", "$ARGUMENTS", "{k}"])
def test_a_value_is_never_read_again(template: str, hostile: str) -> None:
    given_ = {"request": hostile, "arguments": (hostile,), "raw": hostile, "params": {"k": hostile}}
    assert filled(template, **given_) == hostile


@given(value=st.text(max_size=40), other=st.text(max_size=40))
def test_filling_twice_equals_joining_the_values(value: str, other: str) -> None:
    assert filled("{a}|{b}", params={"a": value, "b": other}) == f"{value}|{other}"


def argv(command: str, **given: Any) -> tuple[str, ...]:
    return fill_argv(command, Filling(root=ROOT, **given))


@pytest.mark.requirement("AGT-8")
@pytest.mark.parametrize(
    "value", ["a b", "a;rm -rf /", "$(id)", "`id`", "'", '"', "a\nb", "*", "~", "|", "&&", "", "$HOME", "{other}"]
)
def test_a_value_is_one_whole_argument(value: str) -> None:
    expected = ("tool", value, "end") if value else ("tool", "end")
    assert argv("tool {x} end", params={"x": value}) == expected


@pytest.mark.requirement("AGT-8")
@cases("command")
def test_a_placeholder_glued_to_other_text_is_refused(command: str) -> None:
    with pytest.raises(NotLoadable, match="glue"):
        argv(command, params={"x": "v"}, arguments=("v",), raw="v")


@pytest.mark.requirement("AGT-8")
@pytest.mark.parametrize("command", ["tool --x={x}", "tool {x}.txt"])
def test_a_glued_placeholder_is_refused_whether_or_not_it_has_a_value(command: str) -> None:
    with pytest.raises(NotLoadable, match="glue"):
        fill_argv(command, Filling(root=ROOT, params={"x": None}))


@pytest.mark.requirement("SAF-1")
@pytest.mark.parametrize("value", ["-rf", "--exec=id", "-", "--"])
@pytest.mark.parametrize("command", ["tool {x}", "tool -q {x}", "tool $1", "tool --top {x}"])
def test_a_value_that_looks_like_an_option_is_refused(command: str, value: str) -> None:
    if value == "-":
        assert argv(command, params={"x": value}, arguments=(value,))[-1] == "-"
        return
    with pytest.raises(Refused, match="option"):
        argv(command, params={"x": value}, arguments=(value,))


@pytest.mark.parametrize("value", ["-rf", "--exec=id"])
def test_after_a_double_dash_a_value_may_look_like_an_option(value: str) -> None:
    assert argv("tool -- {x}", params={"x": value}) == ("tool", "--", value)
    assert argv("tool -- {y} {x}", params={"x": value, "y": "y"}) == ("tool", "--", "y", value)


def test_a_negative_number_is_not_an_option() -> None:
    assert argv("tool --top {x}", params={"x": "-1.5"}) == ("tool", "--top", "-1.5")


@cases("command, expected")
def test_an_optional_value_that_is_missing_drops_its_flag(command: str, expected: tuple[str, ...]) -> None:
    assert argv(command, params={"text": "hi", "top": None}) == expected


def test_a_placeholder_of_nobody_never_reaches_the_program() -> None:
    assert "{top}" not in argv("tool --top {top} {text}", params={"text": "hi"})


@pytest.mark.requirement("PRE-12")
@pytest.mark.parametrize("word", ["${SKILL_ROOT}", "${SKILL_ROOT}/run.py", "--data=${SKILL_ROOT}/d"])
def test_the_skills_own_folder_may_stand_anywhere(word: str) -> None:
    assert argv(f"tool {word}") == ("tool", word.replace("${SKILL_ROOT}", str(ROOT)))


def test_a_folder_with_spaces_stays_one_argument() -> None:
    assert fill_argv("tool ${SKILL_ROOT}/run.py", Filling(root=Path("/a b"))) == ("tool", "/a b/run.py")


@pytest.mark.parametrize("name", ["python", "python3"])
def test_python_is_the_one_that_runs_the_kernel(name: str) -> None:
    assert argv(f"{name} x.py") == (sys.executable, "x.py")


@pytest.mark.parametrize("command", ["", "   ", "tool 'open"])
def test_a_command_that_is_empty_or_has_an_open_quote_cannot_be_loaded(command: str) -> None:
    with pytest.raises(NotLoadable):
        argv(command)


def test_a_value_with_a_nul_is_refused() -> None:
    with pytest.raises(Refused):
        argv("tool {x}", params={"x": "a\x00b"})


def test_the_program_is_never_a_value() -> None:
    with pytest.raises(KernelError):
        argv("{x} now", params={"x": "/bin/sh"})


# The prompt


def executor(**given: Any) -> SkillExecutor:
    skill = SkillDef(name="x", description="d", path=ROOT / "SKILL.md", folder=ROOT, **given)
    return SkillExecutor(skill=skill)


@pytest.mark.requirement("FMT-4", "REG-6")
def test_system_part_blank_line_user_part() -> None:
    made = executor(sop="s", system_prompt="You review.", user_template="Review: {request}")
    assert made.prompt("my code", (), {}) == "You review.\n\nReview: my code"


@pytest.mark.requirement("FMT-4")
def test_without_a_template_the_request_is_the_user_part() -> None:
    assert executor(sop="s", system_prompt="You review.").prompt("my code", (), {}) == "You review.\n\nmy code"


@pytest.mark.requirement("FMT-4")
def test_without_a_system_part_there_is_the_user_part_only() -> None:
    assert executor(sop="s", user_template="Do {request}").prompt("it", (), {}) == "Do it"


@pytest.mark.requirement("REG-6")
def test_without_sections_the_text_is_the_system_part() -> None:
    assert executor(sop="Do it well.").prompt("this", (), {}) == "Do it well.\n\nthis"


@pytest.mark.requirement("FMT-3")
def test_parameters_are_put_in() -> None:
    made = executor(user_template="{request} in {{language}} and {style}")
    assert made.prompt("write", (), {"language": "en", "style": "plain"}) == "write in en and plain"


@pytest.mark.requirement("PRE-11", "PRE-12")
def test_text_that_places_the_arguments_itself_gets_no_second_copy() -> None:
    made = executor(sop="Read ${SKILL_ROOT}/a for $ARGUMENTS.")
    assert made.prompt("x y", ("x", "y"), {}) == "Read /skills/x/a for x y."


@pytest.mark.requirement("PRE-10", "PRE-13")
def test_a_custom_command_has_positional_arguments() -> None:
    made = executor(type="command", sop="Compare $1 with $2.")
    assert made.prompt("a b", ("a", "b"), {}).startswith("Compare a with b.")


@pytest.mark.parametrize("text", ["awk '{print $1}'", "costs $5", "a {json} example"])
def test_examples_in_a_skills_text_are_not_placeholders(text: str) -> None:
    assert executor(sop=text).prompt("go", ("one",), {"json": "x"}) == f"{text}\n\ngo"


@pytest.mark.parametrize("hostile", ["$1", "{request}", "${SKILL_ROOT}", "$ARGUMENTS", "!`id`", "@x"])
def test_a_request_is_never_read_as_a_placeholder(hostile: str) -> None:
    made = executor(sop="s", system_prompt="S", user_template="{request}")
    assert made.prompt(hostile, (hostile,), {}) == f"S\n\n{hostile}"

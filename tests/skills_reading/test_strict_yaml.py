"""Frontmatter of plain lines is read without a parser, with the result that a parser gives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from navigator_kernel.skills.formats import frontmatter
from navigator_kernel.skills.formats.manifest import read_manifest

PIECES = [
    *("name", "a", "Z9", "中文", "é", "é", "true", "null", "1", "0x1F", "1e3", "2024-01-01", "~", "=", "y", "www"),
    *(": ", ":", ":\t", " #", "#", "- ", "-", "? ", "! ", "!!str", "&a", "*a", "|", ">", "%", "@", "`", "<<"),
    *('"', "'", "''", "\\", "\\n", "[", "]", "{", "}", ", ", ",", "  ", "\t"),
    *("\x85", "\u2028", "\ufeff", "\u200b", "\xa0"),
    *("\u3000", "\U0001f600", "\ue000", "---", "...", "：", "\x07", "\x7f"),
]
KEYS = ["name", "description", "allowed-tools", "a_b", "Name", "n a", "1", "-x", "", '"q"', "中", "y", "true", "<<"]

pieces = st.lists(st.sampled_from(PIECES), max_size=4).map("".join)
values = st.builds("{}{}".format, st.sampled_from(["a", "Word", "中", "é", "x y ", "", '"', "'"]), pieces)
usual = st.builds("{}: {}".format, st.sampled_from(["name", "description", "a-b", "y"]), values)
quoted = st.builds("{}: {mark}{}{mark}".format, st.sampled_from(KEYS), pieces, mark=st.sampled_from("\"'"))
odd = st.builds("{}{}{} ".format, st.sampled_from(KEYS), st.sampled_from([": ", ":", ":  ", " : "]), values)
indented = st.builds("{}{}".format, st.sampled_from(["  ", "- ", "# ", "\t", ""]), values)
heads = st.lists(st.one_of(usual, usual, quoted, odd, indented), min_size=1, max_size=3).map("\n".join)


@pytest.mark.ci
@settings(max_examples=3_000, deadline=None)
@given(heads)
@example("name: a\ndescription: b c\n")
@example("name: 'it is'\ndescription: \"so: it # is\"\n")
@example("description: a\n  goes on\n")
@example("name: a\nname: b\n")
@example(f"name: {'a' * 70}\n")
def test_frontmatter_read_without_the_parser_equals_the_parsers_result(head: str) -> None:
    easy = frontmatter._easy(head)
    if easy is not None:
        assert easy == frontmatter._read(head), "value, lines and plain values"


def test_a_usual_manifest_needs_no_parser_loaded() -> None:
    code = (
        "import sys; from pathlib import Path; from navigator_kernel.skills.formats.manifest import read_manifest;"
        "read_manifest(b'---\\nname: ok\\ndescription: Off it goes.\\n---\\nGo.', path=Path('ok/SKILL.md'), folder=Path('ok'));"
        "sys.exit('yaml' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    "word", ["yes", "No", "ON", "off", "true", "False", "null", "~", "1", "1.5", ".inf", "2024-01-01"]
)
def test_an_unquoted_boolean_null_number_or_date_is_reported_as_not_text(word: str) -> None:
    data = f"---\nname: x\ndescription: d\nlicense: {word}\n---\nGo.\n".encode()
    skill = read_manifest(data, path=Path("x/SKILL.md"), folder=Path("x"))
    assert [one.code for one in skill.diagnostics] == ["not-text"]

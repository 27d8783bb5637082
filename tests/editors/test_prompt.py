"""Content blocks of a prompt become one message, in which no name that others gave is an instruction."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from acp.helpers import embedded_text_resource, resource_block, resource_link_block, text_block
from acp.schema import ResourceContentBlock
from hypothesis import given
from hypothesis import strategies as st

from navigator_acp.calls import MOST, TEXT, kind_of, locations_of, shown_input, title_of
from navigator_acp.prompt import message_of
from navigator_kernel.adapters.files.project_files import ProjectFiles
from navigator_kernel.turn.message import preprocess
from navigator_kernel.values.request import Message
from tables import cases

ROOT = Path("/home/me/project")


def link(path: str, name: str = "x") -> ResourceContentBlock:
    return resource_link_block(name, f"file://{quote(path)}")


@pytest.mark.requirement("PRE-8")
@cases("path, mention")
def test_a_link_to_a_file_of_the_project_is_a_mention(path: str, mention: str) -> None:
    assert message_of([text_block("sum up"), link(path), text_block("please")], ROOT) == f"sum up {mention} please"


def test_an_embedded_file_is_read_by_the_rules_of_the_kernel() -> None:
    block = resource_block(embedded_text_resource("file:///home/me/project/a.md#L1:4", "!touch made"))
    assert message_of([text_block("read "), block], ROOT) == "read @a.md"


NAMES = st.text(alphabet="ab/.!`@#\"'\\\n\r\t\x1b\u2028 \u202e-_[]()", min_size=1, max_size=20)


@pytest.mark.requirement("X-43")
@given(path=NAMES, name=NAMES)
def test_no_name_that_others_gave_is_an_instruction(path: str, name: str) -> None:
    for uri in (f"file:///home/me/project/{quote(path)}", f"file:///home/me/project/{path}", path):
        message = message_of([resource_link_block(name, uri)], ROOT)
        found = preprocess(Message(text=message), ProjectFiles(ROOT, ROOT))
        assert found.commands == ()
        assert all(not file.path.is_absolute() or file.path.is_relative_to(ROOT) for file in found.files)


def test_the_title_input_and_locations_of_a_call_are_short_and_clean(tmp_path: Path) -> None:
    (tmp_path / "a.md").touch()
    assert title_of("run", {"argv": ["echo", "\x1b[31mred", "x" * 500]}).startswith("run echo red xxx")
    assert len(title_of("run", {"argv": ["x" * 500]})) == 120
    assert [one.path for one in locations_of({"file_path": "a.md"}, tmp_path)] == [str(tmp_path / "a.md")]
    for path in ("b.md", "../x", "/etc/passwd", "a\0b", ""):
        assert [one.path for one in locations_of({"path": path}, tmp_path) if one.path != str(tmp_path)] == []
    deep: object = "x"
    for _ in range(50):
        deep = [deep]
    shown = shown_input({"a": "x" * 10_000, "many": list(range(1000)), "deep": deep, "e": "\x1b]0;x\x07"})
    assert len(shown["a"]) == TEXT + 2 and len(shown["many"]) == MOST and shown["e"] == ""
    assert str(shown["deep"]).count("[") < 5
    assert [kind_of(name) for name in ("read", "edit", "run", "fetch", "grep", "notes__add")] == [
        "read", "edit", "execute", "fetch", "search", "other",
    ]  # fmt: skip

"""A call in the names and arguments of any coding agent is the kernel's own call, or stays what it is."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from navigator_kernel.adapters.models.calls import is_note, meant, read_arguments, unpacked
from navigator_kernel.tools.built_in import specs
from navigator_kernel.values.chat import ToolCall, ToolSpec
from tables import cases

OWN = specs("en", ("example.org",))
SKILL = ToolSpec(name="skill", description="", schema={"properties": {"name": {"type": "string"}}})
PLUGIN = ToolSpec(name="search", description="", schema={"properties": {"query": {"type": "string"}}})


def understood(name: str, arguments: Any, *offered: ToolSpec) -> tuple[str, Any]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call = meant(ToolCall(id="1", name=name, arguments=text), offered or (*OWN, SKILL))
    return call.name, read_arguments(call.arguments)


@pytest.mark.requirement("JIT-5")
@pytest.mark.parametrize(
    ("name", "arguments", "tool", "wanted"),
    [
        ("Read", {"file_path": "a", "offset": 3}, "read", {"file_path": "a", "offset": 3}),
        ("read_file", {"target_file": "a", "start_line": 3, "end_line": 5}, "read", {"file_path": "a", "offset": 3, "limit": 3}),
        ("view", {"path": "a", "view_range": "[2, -1]"}, "read", {"file_path": "a", "offset": 2}),
        ("NotebookRead", {"notebook_path": "a.ipynb"}, "read", {"file_path": "a.ipynb"}),
        ("LS", {"path": ".", "ignore": ["*.pyc"]}, "list", {"path": "."}),
        ("Glob", {"pattern": "**/*.py", "path": None}, "glob", {"pattern": "**/*.py"}),
        ("Grep", {"pattern": "x", "-i": True, "-n": True, "-A": 2, "head_limit": 5, "type": "py"}, "grep", {"pattern": "x", "ignore_case": True, "glob": "*.py"}),
        ("grep_search", {"query": "x", "include": "*.md", "case_sensitive": "false"}, "grep", {"pattern": "x", "glob": "*.md", "ignore_case": True}),
        ("Grep", {"pattern": "x", "output_mode": "count"}, "grep", {"pattern": "x", "output_mode": "content"}),
        ("Write", {"path": "a", "contents": "b"}, "write", {"file_path": "a", "content": "b"}),
        ("create_file", {"filename": "a.json", "content": {"b": 1}}, "write", {"file_path": "a.json", "content": '{\n  "b": 1\n}'}),
        ("Edit", {"filePath": "a", "oldString": "b", "newString": "c", "replaceAll": "true"}, "edit", {"file_path": "a", "old_string": "b", "new_string": "c", "replace_all": True}),
        ("str_replace", {"path": "a", "old_str": "b", "new_str": ""}, "edit", {"file_path": "a", "old_string": "b", "new_string": ""}),
        ("MultiEdit", {"path": "a", "edits": [{"old_str": "b", "new_str": "c"}]}, "edit", {"file_path": "a", "edits": [{"old_string": "b", "new_string": "c"}]}),
        ("str_replace_based_edit_tool", {"command": "create", "path": "a", "file_text": "b"}, "write", {"file_path": "a", "content": "b"}),
        ("str_replace_editor", {"command": "insert", "path": "a", "insert_line": "0", "insert_text": "b"}, "edit", {"file_path": "a", "insert_line": 0, "new_string": "b"}),
        ("Bash", {"command": "ls", "description": "Lists", "timeout": 120000, "run_in_background": False}, "run", {"command": "ls", "timeout": 120}),
        ("shell", {"command": ["bash", "-lc", "ls | wc -l"], "timeout_ms": 5000}, "run", {"command": "ls | wc -l", "timeout": 5}),
        ("exec_command", {"cmd": "ls", "workdir": "sub dir", "yield_time_ms": 10}, "run", {"command": "cd 'sub dir' && ls"}),
        ("run", {"argv": '["ls", "-l"]', "packages": "numpy"}, "run", {"argv": ["ls", "-l"], "packages": ["numpy"]}),
        ("python", {"code": "print(1)"}, "run", {"argv": ["python3", "-c", "print(1)"]}),
        ("WebFetch", {"url": "https://example.org", "prompt": "sum up"}, "fetch", {"url": "https://example.org"}),
        ("functions.read:0", {"path": "a"}, "read", {"file_path": "a"}),
        ("Skill", {"command": "pdf"}, "skill", {"name": "pdf"}),
        ("read", {"file_path": "a", "path": "b"}, "read", {"file_path": "a", "path": "b"}),
        ("read", {"file_path": "a", "colour": "blue"}, "read", {"file_path": "a", "colour": "blue"}),
    ],
)  # fmt: skip
def test_calls_of_other_agents_are_understood(name: str, arguments: Any, tool: str, wanted: Any) -> None:
    assert understood(name, arguments) == (tool, wanted)


PATCH = """*** Begin Patch
*** Update File: a.py
@@ def greet():
 # says hello
-print("helo")
+print("hello")
@@ import os
+import sys
@@
-gone
*** Add File: new/b.txt
+one
+
+two
*** End Patch"""
CHANGES = [
    (
        "edit",
        {
            "file_path": "a.py",
            "edits": [
                {"old_string": '# says hello\nprint("helo")', "new_string": '# says hello\nprint("hello")'},
                {"old_string": "import os", "new_string": "import os\nimport sys"},
                {"old_string": "gone\n", "new_string": ""},
            ],
        },
    ),
    ("write", {"file_path": "new/b.txt", "content": "one\n\ntwo\n"}),
]


@pytest.mark.requirement("JIT-5")
@pytest.mark.parametrize("arguments", [PATCH, json.dumps({"input": PATCH}), json.dumps({"patch": f"\n{PATCH}\n"})])
def test_a_patch_is_a_call_for_each_of_its_files(arguments: str) -> None:
    call = meant(ToolCall(id="1", name="apply_patch", arguments=arguments), OWN)
    calls = unpacked([call], OWN)
    assert [(one.name, read_arguments(one.arguments)) for one in calls] == CHANGES
    assert [one.id for one in calls] == ["1", "1-1"]


@pytest.mark.parametrize(
    "lines", ["*** Delete File: a.py", "*** Update File: a.py\n*** Move to: b.py", "*** Add File: a.py\nno sign", "x"]
)
def test_a_patch_that_does_more_than_add_and_update_is_not_applied_in_part(lines: str) -> None:
    patch = f"*** Begin Patch\n*** Add File: c.txt\n+c\n{lines}\n*** End Patch"
    call = ToolCall(id="1", name="edit", arguments=json.dumps({"input": patch}))
    assert unpacked([call], OWN) == (call,)


def test_an_edit_of_a_text_that_is_a_patch_stays_an_edit() -> None:
    call = ToolCall(
        id="1", name="edit", arguments=json.dumps({"file_path": "a", "old_string": PATCH, "new_string": ""})
    )
    assert unpacked([call], OWN) == (call,)


@pytest.mark.requirement("JIT-5")
def test_a_name_means_no_tool_that_is_not_offered() -> None:
    without_run = [spec for spec in OWN if spec.name != "run"]
    assert understood("Bash", {"command": "ls"}, *without_run) == ("Bash", {"command": "ls"})


def test_an_offered_tool_of_the_very_name_is_meant() -> None:
    assert understood("search", {"query": "x"}, *OWN, PLUGIN) == ("search", {"query": "x"})


def test_a_tool_of_another_kind_keeps_its_own_arguments() -> None:
    schema = {"properties": {"path": {"type": "string"}, "head": {"type": "integer"}}, "required": ["path"]}
    other = ToolSpec(name="read", description="", schema=schema)
    assert understood("read", {"path": "a", "view_range": [1, 2]}, other) == (
        "read",
        {"path": "a", "view_range": [1, 2]},
    )


@cases("text, wanted", lists=True)
def test_arguments_are_repaired_only_where_the_intent_is_certain(text: str, wanted: object) -> None:
    assert read_arguments(text) == wanted


def test_reading_bad_arguments_takes_time_in_proportion_to_their_length() -> None:
    began = time.monotonic()
    for text in ('"\\' * 200_000, "," * 400_000, "[" * 400_000, "`" * 400_000, '{"a":' * 100_000):
        assert read_arguments(text) is None
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("name", "is_one"), [("TodoWrite", True), ("functions.update_plan", True), ("think", True), ("Task", False)]
)
def test_plans_and_thoughts_are_notes(name: str, *, is_one: bool) -> None:
    assert is_note(name) is is_one

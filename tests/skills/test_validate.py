"""Every rule of the specification, and each of ours, has its own code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navigator_kernel.skills.formats.validate import validate
from navigator_kernel.values.resource import Diagnostic
from tables import cases

ROOT = Path(__file__).parents[2]
SHIPPED = sorted(path.parent for path in (ROOT / ".claude" / "skills").glob("*/SKILL.md"))


def check(
    text: str | bytes, folder: str = "x", files: Mapping[str, bytes | None] | None = None, *, strict: bool = True
) -> list[Diagnostic]:
    return validate(text if isinstance(text, bytes) else text.encode(), folder, files or {}, strict=strict)


def head(lines: str = "", body: str = "Go.", name: str = "x", description: str = "does a thing") -> str:
    return f"---\nname: {name}\ndescription: {description}\n{lines}{chr(10) if lines else ''}---\n{body}\n"


def codes(text: str | bytes, folder: str = "x", files: Mapping[str, bytes | None] | None = None) -> list[str]:
    return [note.code for note in check(text, folder, files)]


# The specification


@pytest.mark.parametrize(
    "text",
    [
        head(),
        head("license: Apache-2.0\ncompatibility: Requires git\nallowed-tools: Bash(git:*) Read"),
        head('metadata:\n  author: me\n  version: "1.0"\n  navigator-tags: a, b'),
        head(description="d" * 1024),
        head(f"compatibility: {'c' * 500}"),
    ],
)
def test_a_skill_within_the_specification_has_no_findings(text: str) -> None:
    assert check(text) == []


@pytest.mark.parametrize("name", ["a", "pdf-processing", "a1-b2", "n" * 64, "代码审查", "é"])
def test_names_of_lower_case_letters_digits_and_hyphens_are_allowed(name: str) -> None:
    assert codes(head(name=name), name) == []


@cases("name, folder, code")
def test_each_rule_of_a_name_has_its_code(name: str, folder: str, code: str) -> None:
    found = {note.code: (note.level, note.line) for note in check(head(name=name), folder)}
    assert found.pop(code) == ("error", 2)
    assert set(found) <= {"name"}  # also reported if no reader could use the name


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("---\ndescription: d\n---\n", "name-missing", None),
        ("---\nname:\ndescription: d\n---\n", "name-missing", 2),
        ("---\nname: x\n---\nGo.\n", "description-missing", None),
        ("---\nname: x\ndescription: ''\n---\nGo.\n", "description-missing", 3),
        (head(description="d" * 1025), "description-length", 3),
        (head(f"compatibility: {'c' * 501}"), "compatibility-length", 4),
        (head("compatibility: ''"), "compatibility-length", 4),
        (head("license: [MIT]"), "not-text", 4),
        (head("license: [MIT, b"), "yaml-unquoted", 4),  # not the fence, where YAML notices it
        (head('license: "MIT'), "yaml-unquoted", 4),
        (head("license: 2.0"), "not-text", 4),
        (head("metadata: text"), "metadata-not-a-map", None),
        (head("metadata:\n  tags: [a]"), "metadata-not-text", 4),
        (head("metadata:\n  a: {b: c}"), "metadata-not-text", 4),
        (head("metadata:\n  a: b\n  version: 1.0"), "not-text", 6),
        (head("allowed-tools: [Read]"), "allowed-tools-form", 4),
        (head("allowed-tools: Read, Grep"), "allowed-tools-form", 4),
        (head("license: MIT\nversion: 1.0.0"), "key-unknown", 5),
        (head("tags: a"), "key-unknown", 4),
        (head("license: Proprietary. LICENSE.txt has complete terms"), "license-file-missing", 4),
        ("# x\ndescription: d\n\nGo.\n", "frontmatter-missing", 1),
        ("Go.\n", "frontmatter-missing", 1),
        (head(description="use when: asked"), "yaml-unquoted", 3),
        ("---\nname: x\ndescription: d\n\nGo.\n", "unclosed", 1),
        ("\ufeff" + head(), "bom", 1),
        (head().encode("utf-16"), "not-utf8", None),
    ],
)
def test_each_rule_of_the_specification_has_its_code_and_line(text: str | bytes, code: str, line: int | None) -> None:
    found = {note.code: note for note in check(text)}
    assert (found[code].level, found[code].line) == ("error", line)


def test_a_bundled_license_file_that_exists_has_no_finding() -> None:
    assert codes(head("license: Complete terms in LICENSE.txt"), files={"LICENSE.txt": None}) == []


@pytest.mark.parametrize("text", [head().replace("\n", "\r\n"), head(body="line\n" * 501)])
def test_advice_is_not_an_error(text: str) -> None:
    assert [note.level for note in check(text)] == ["warning"]


def test_without_strict_only_what_cannot_be_used_here_or_elsewhere_is_an_error() -> None:
    odd = head("tags: a\nallowed-tools: [Read]\nmetadata:\n  version: 1.0", name="Other", description="use when: asked")
    notes = check(odd, strict=False)
    assert [(note.code, note.level) for note in notes] == [
        ("name-folder", "warning"),
        ("yaml-unquoted", "error"),
        ("allowed-tools-form", "warning"),
        ("not-text", "error"),
    ]


def test_a_misspelt_key_of_ours_has_its_line_and_the_key_that_was_meant() -> None:
    text = head(
        "metadata:\n  author: x\n  navigator-comand: tool\n  'navigator-required-parms': '[]'\n  navigator-zzzz: y"
    )
    told = {note.line: note.message for note in check(text, strict=False) if note.code == "key-misspelt"}
    assert told == {
        6: "no key is called 'navigator-comand'; did you mean navigator-command?",
        7: "no key is called 'navigator-required-parms'; did you mean navigator-required_params?",
        8: "no key is called 'navigator-zzzz'",
    }


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ("navigator-command: tool", ["4 'navigator-command' is read only below metadata"]),
        ("navigator-comand: tool", ["4 no key is called 'navigator-comand'; did you mean navigator-command?",
            "4 'navigator-comand' is read only below metadata"]),
        ("user-invokable: true", ["4 no key is called 'user-invokable'; did you mean user-invocable?"]),
        ("model: 7", ["4 model '7' is not the name of a model"]),
        ("disable-model-invocation: maybe", ["4 disable-model-invocation 'maybe' is neither true nor false"]),
        ("metadata:\n  author: x\n  navigator-network: perhaps", ["6 network 'perhaps' is neither true nor false"]),
        ("allowed-tools: Reed Bash(git:*)", ["4 no tool is called 'Reed'; did you mean Read?"]),
        ("metadata:\n  author: x\n  navigator-timeout: soon",
            ["6 timeout 'soon' is not a number of seconds; left out"]),
        ("user-invocable: false\nmodel: opus\nallowed-tools: Read Search mcp__x__y\nversion: '1'\ncolor: red", []),
    ],
)  # fmt: skip
def test_what_is_nearly_right_has_its_line_and_what_was_meant(keys: str, told: list[str]) -> None:
    assert [f"{note.line} {note.message}" for note in check(head(keys), strict=False)] == told


def test_a_misspelt_description_says_so() -> None:
    text = "---\nname: x\ndescripton: Does a thing. Use when asked\n---\nGo.\n"
    told = {note.code: note.message for note in check(text, strict=False)}
    assert "did you mean description?" in told["key-misspelt"] and "description-missing" in told


def test_a_skill_without_text_has_a_warning_unless_it_has_a_command() -> None:
    empty = [note for note in check(head(body="\n"), strict=True) if note.code == "body-empty"]
    assert [note.level for note in empty] == ["warning"]
    assert "body-empty" not in codes(head("metadata:\n  navigator-command: tool", body="\n"))


def test_a_command_of_a_shell_may_have_its_signs_and_variables() -> None:
    held = head("metadata:\n  navigator-command: bash -c 'ls \"${HOME}\" | head'")
    assert not {"command-shell", "command-variable"} & set(codes(held))


@pytest.mark.requirement("FMT-7")
@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "empty"),
        ("---\nname: x\n---\n", "description-missing"),
        (head("a: &a b"), "yaml-anchor"),
        (head("a: 1\na: 2"), "duplicate-key"),
    ],
)
def test_an_unreadable_skill_has_an_error_with_its_reason_code_strict_or_not(
    text: str, code: str, strict: bool
) -> None:
    found = {note.code: note.level for note in check(text, strict=strict)}
    assert found[code] == "error"


# The kernel's own keys


@cases("command, code, level")
def test_a_command_must_be_one_that_can_run(command: str, code: str, level: str) -> None:
    text = head(f"metadata:\n  navigator-command: {json.dumps(command)}\n  navigator-required_params: url")
    found = {note.code: note for note in check(text, files={"scripts/a.py": None}, strict=False)}
    assert (found[code].level, found[code].line) == (level, 6 if code.startswith("param") else 5)
    assert {note.level for note in check(text, files={"scripts/a.py": None})} == {"error"}


def test_a_command_whose_files_and_parameters_are_there_has_no_finding() -> None:
    text = head(
        "metadata:\n  navigator-command: python ${SKILL_ROOT}/scripts/a.py {url} -- $1\n  navigator-required_params: url"
    )
    assert codes(text, files={"scripts/a.py": None}) == []


@cases("params, code")
def test_parameters_must_be_well_formed(params: str, code: str) -> None:
    assert code in codes(head(f"metadata:\n  navigator-required_params: '{params}'"))


LINKED = """
[a](docs/a.md) ![b](assets/b.png "title") [c](<my file.md>) [d](docs/a.md#part) [e](docs) [f](./docs/../docs/a.md)
[web](https://x.y/z) [part](#part) [mail](mailto:a@b) [root](/etc) [it]({file}) [self](SKILL.md) [g](my%20file.md)
`[code](gone.md)` and [![nested](assets/b.png)](docs/a.md)

```
[fenced](gone.md)
```

[ref]: docs/a.md
[^1]: a footnote
"""


def test_files_that_the_text_links_to_are_there() -> None:
    files = dict.fromkeys(("docs/a.md", "assets/b.png", "my file.md"))
    assert codes(head(body=LINKED), files=files) == []
    assert codes(head(body=LINKED)).count("link-missing") == 10


@cases("link, code")
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_link_that_leads_nowhere_is_named_with_its_line(link: str, code: str, ends: str) -> None:
    [note] = [note for note in check(head(body=f"\n# X\n\n{link}").replace("\n", ends)) if note.code != "crlf"]
    assert (note.code, note.line) == (code, 8)


GOOD_EVALS = {
    "skill_name": "x",
    "evals": [{"id": 1, "prompt": "do", "expected_output": "y", "files": ["evals/files/a"]}],
}


@pytest.mark.parametrize(
    ("path", "value", "code"),
    [
        ("evals/evals.json", GOOD_EVALS, None),
        ("evals/evals.json", [{"query": "a", "should_trigger": True}], None),
        ("evals/trigger-eval.json", [{"query": "a", "should_trigger": False, "expected_skill": "x"}], None),
        ("evals/evals.json", {**GOOD_EVALS, "skill_name": "y"}, "evals-skill"),
        ("evals/evals.json", {"evals": {}}, "evals-form"),
        ("evals/evals.json", {"evals": [{"prompt": ""}]}, "trigger-form"),
        ("evals/evals.json", {"evals": [{"prompt": "a", "files": ["gone"]}]}, "evals-file-missing"),
        ("evals/evals.json", {"evals": [{"prompt": "a", "files": "gone"}]}, "evals-file-missing"),
        ("evals/evals.json", "text", "evals-form"),
        ("evals/trigger-eval.json", {}, "evals-form"),
        ("evals/trigger-eval.json", ["a"], "trigger-form"),
        ("trigger-eval.json", [{"query": "a"}], None),  # as `eval` reads it
        ("trigger-eval.json", [{"should_trigger": True}], "trigger-form"),
        ("trigger-eval.json", [{"query": "a", "should_trigger": 1}], "trigger-form"),
        ("evals/trigger-eval.json", [{"query": "a", "should_trigger": True, "expected_skill": 3}], "trigger-form"),
    ],
)
def test_evals_must_be_well_formed(path: str, value: object, code: str | None) -> None:
    notes = check(head(), files={path: json.dumps(value).encode(), "evals/files/a": None})
    assert [(note.code, note.path) for note in notes] == ([(code, path)] if code else [])


@pytest.mark.parametrize("data", [b"{", b"\xff", b"[" * 100_000])
def test_evals_that_are_not_json_are_reported(data: bytes) -> None:
    assert codes(head(), files={"evals/evals.json": data}) == ["evals-json"]


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda path: path.name)
def test_a_shipped_skill_keeps_every_rule(folder: Path) -> None:
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    found = check((folder / "SKILL.md").read_bytes(), folder.name, files)
    allowed = ["name-characters"] if "_" in folder.name else []  # FMT-11 gives it this name
    assert [note.code for note in found] == allowed


@given(st.binary(max_size=200), st.booleans())
def test_no_bytes_raise(data: bytes, strict: bool) -> None:
    check(b"---\nname: x\ndescription: d\n" + data, strict=strict)
    check(data, strict=strict)

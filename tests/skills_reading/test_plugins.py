"""Which plugin a skill belongs to, as the manifests of a repository say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from navigator_kernel.adapters.sources.git import TreeEntry
from navigator_kernel.skills.formats.plugin_manifests import Plugins, plugin_files, read_plugins
from navigator_kernel.skills.source.discover import find_skills


def entries(*paths: str) -> list[TreeEntry]:
    return [TreeEntry(path=path, mode="100644", kind="blob", oid=path) for path in paths]


def plugins(manifests: dict[str, Any], *paths: str) -> Plugins:
    blobs = {
        path: value if isinstance(value, bytes) else json.dumps(value).encode() for path, value in manifests.items()
    }
    return read_plugins(entries(*manifests, *paths), blobs)


def codes(found: Plugins) -> list[str]:
    return [note.code for note in found.diagnostics]


def test_all_skills_below_a_plugin_are_its_own() -> None:
    found = plugins({"a/.claude-plugin/plugin.json": {"name": "tools"}}, "a/skills/x/SKILL.md", "b/SKILL.md")
    assert [found.owner(folder) for folder in ("a/skills/x", "a", "b", "ab", "")] == ["tools", "tools", "", "", ""]


def test_a_marketplace_names_the_skills_of_each_plugin() -> None:
    market = {
        "plugins": [
            {"name": "documents", "source": "./", "skills": ["./skills/pdf", "./skills/docx/SKILL.md"]},
            {"name": "examples", "source": "./", "skills": ["./examples/art"]},
        ]
    }
    paths = ("skills/pdf/SKILL.md", "skills/docx/SKILL.md", "skills/other/SKILL.md", "examples/art/SKILL.md")
    found = plugins({".claude-plugin/marketplace.json": market}, *paths)
    skills = find_skills(entries(*paths), top="repo", plugins=found)
    assert {skill.folder: (skill.plugin, skill.role) for skill in skills} == {
        "examples/art": ("examples", "skill"),
        "skills/docx": ("documents", "skill"),
        "skills/other": ("", "skill"),
        "skills/pdf": ("documents", "skill"),
    }
    assert codes(found) == []


def test_a_marketplace_may_keep_its_plugins_in_a_folder() -> None:
    market = {"metadata": {"pluginRoot": "./plugins"}, "plugins": [{"name": "web", "source": "web-tools"}]}
    found = plugins({".claude-plugin/marketplace.json": market}, "plugins/web-tools/skills/x/SKILL.md")
    assert found.owner("plugins/web-tools/skills/x") == "web"


def test_a_plugin_that_is_elsewhere_covers_nothing_here() -> None:
    market = {"plugins": [{"name": "far", "source": {"source": "github", "repo": "a/b"}}]}
    found = plugins({".claude-plugin/marketplace.json": market}, "a/SKILL.md")
    assert (found.owner("a"), codes(found)) == ("", [])


@pytest.mark.parametrize("declared", ["./own", ["./own"], ["own/SKILL.md"], ["./own/"]])
def test_a_plugin_may_declare_folders_of_skills(declared: Any) -> None:
    found = plugins({"plugin.json": {"name": "tools", "skills": declared}}, "own/x/SKILL.md", "own/SKILL.md")
    assert (found.owner("own/x"), found.declares("own/x"), found.declares("else")) == ("tools", True, False)


def test_a_file_of_that_name_from_another_tool_says_nothing() -> None:
    found = plugins({"plugin.json": {"name": "grafana", "type": "panel"}}, "a/SKILL.md")
    assert (found.owner("a"), codes(found)) == ("", [])


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (b"{", "plugin-json"),
        (b"\xff\xfe", "plugin-json"),
        (b"[" * 100_000, "plugin-json"),
        (b'{"name": ' + b"9" * 5000 + b"}", "plugin-json"),
        (b" " * (1024 * 1024 + 1), "plugin-large"),
        (b"[]", "plugin-form"),
        ({"name": "../x"}, "plugin-name-odd"),
        ({"name": 3}, "plugin-name-odd"),
        ({}, "plugin-name-odd"),
        ({"name": "a", "skills": 3}, "plugin-form"),
        ({"name": "a", "skills": [3]}, "plugin-form"),
        ({"name": "a", "skills": ["../x"]}, "plugin-path-odd"),
        ({"name": "a", "skills": ["/etc"]}, "plugin-path-odd"),
        ({"name": "a", "skills": ["./gone"]}, "plugin-path-missing"),
    ],
)
def test_a_manifest_that_cannot_be_used_is_noted_and_never_an_error(value: Any, code: str) -> None:
    found = plugins({".claude-plugin/plugin.json": value}, "a/SKILL.md")
    assert codes(found) == [code]
    assert found.diagnostics[0].level == "warning"


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ({"plugins": {}}, "plugin-form"),
        ({"plugins": ["a"]}, "plugin-form"),
        ({"plugins": [{"name": "a", "source": "../.."}]}, "plugin-path-odd"),
        ({"plugins": [{"source": "./"}]}, "plugin-name-odd"),
    ],
)
def test_a_marketplace_that_cannot_be_used_is_noted(value: Any, code: str) -> None:
    assert codes(plugins({".claude-plugin/marketplace.json": value}, "a/SKILL.md")) == [code]


def test_a_note_says_in_which_line() -> None:
    assert plugins({".claude-plugin/plugin.json": b'{\n"name": }'}).diagnostics[0].line == 2


def test_a_plugin_manifest_that_is_a_symlink_or_was_not_read_is_ignored() -> None:
    held = [
        TreeEntry(path="plugin.json", mode="120000", kind="blob", oid="x"),
        *entries("a/.claude-plugin/plugin.json"),
    ]
    assert [entry.path for entry in plugin_files(held)] == ["a/.claude-plugin/plugin.json"]
    assert read_plugins(held, {}) == Plugins()

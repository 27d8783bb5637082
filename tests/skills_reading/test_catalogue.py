"""All resources as one list, which follows changes of the files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.bootstrap.places import shipped_home
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.bootstrap.roots import resource_roots
from navigator_kernel.errors import NotLoadable, SkillNotFound
from navigator_kernel.skills.catalog.catalogue import FILE_LIMIT, ResourceCatalogue
from navigator_kernel.skills.catalog.listing import Root

Put = Callable[..., Path]


def names(catalogue: ResourceCatalogue, **given: Any) -> list[str]:
    return [resource.name for resource in catalogue.list_resources(**given)]


def codes(catalogue: ResourceCatalogue) -> list[str]:
    return [note.code for note in catalogue.diagnostics()]


# Files that are added, edited or removed


@pytest.mark.requirement("REG-1", "REG-5", "REG-8", "CTX-2", "CTX-3")
def test_a_file_that_is_dropped_is_there_without_a_restart(catalogue: ResourceCatalogue, put: Put) -> None:
    assert names(catalogue) == []
    put("alpha")
    assert names(catalogue) == ["alpha"]


@pytest.mark.requirement("REG-5")
@pytest.mark.parametrize("name", ["SKILL.md", "skill.md"])
def test_the_manifest_may_be_written_in_either_case(catalogue: ResourceCatalogue, skills: Path, name: str) -> None:
    (skills / "alpha").mkdir()
    (skills / "alpha" / name).write_text("---\nname: alpha\ndescription: d\n---\n")
    assert names(catalogue) == ["alpha"]


@pytest.mark.requirement("REG-5")
def test_a_flat_file_is_a_skill(catalogue: ResourceCatalogue, skills: Path) -> None:
    (skills / "task_manager.md").write_text("---\nname: task_manager\ndescription: tasks\n---\nGo.\n")
    assert names(catalogue) == ["task_manager"]


@pytest.mark.requirement("REG-8")
def test_an_edit_is_seen(catalogue: ResourceCatalogue, put: Put) -> None:
    put("alpha", "before")
    assert catalogue.list_resources()[0].description == "before"
    put("alpha", "after it")
    assert catalogue.list_resources()[0].description == "after it"


def test_an_edit_of_the_same_length_in_the_same_instant_is_seen_by_its_inode(
    catalogue: ResourceCatalogue, put: Put, tmp_path: Path
) -> None:
    path = put("alpha", "one")
    catalogue.list_resources()
    stamp = path.stat().st_mtime_ns
    other = tmp_path / "other"
    other.write_text(path.read_text().replace("one", "two"))
    os.utime(other, ns=(stamp, stamp))
    other.replace(path)
    assert catalogue.list_resources()[0].description == "two"


def test_a_removed_file_is_gone(catalogue: ResourceCatalogue, put: Put) -> None:
    path = put("alpha")
    assert names(catalogue) == ["alpha"]
    path.unlink()
    assert names(catalogue) == []


def test_files_and_folders_that_are_not_resources_are_ignored(
    catalogue: ResourceCatalogue, skills: Path, put: Put
) -> None:
    put("alpha")
    put("deep/er/inside")
    put(".navigator")
    (skills / "README.md").write_text("# Skills\n")
    (skills / "skills.db").write_text("{}")
    (skills / "empty").mkdir()
    assert (names(catalogue), codes(catalogue)) == (["alpha"], [])


@pytest.mark.requirement("X-3")
def test_skills_in_a_folder_of_skills_are_read_and_answer_to_its_name(catalogue: ResourceCatalogue, put: Put) -> None:
    put("alpha")
    assert names(catalogue) == ["alpha"]
    put("team/beta")
    put("alpha/inner")  # a part of a skill
    assert (names(catalogue), catalogue.count()) == (["alpha", "beta"], 2)
    found = catalogue.find("team:beta")
    assert found is not None and found.name == "beta"
    put("team")  # now it is a skill itself
    assert names(catalogue) == ["alpha", "team"]


def test_a_root_that_is_not_there_is_empty(tmp_path: Path) -> None:
    catalogue = ResourceCatalogue(roots=(Root(path=tmp_path / "no", level="project"),))
    assert (names(catalogue), catalogue.count(), codes(catalogue)) == ([], 0, [])


# Names


@pytest.mark.requirement("REG-2")
def test_a_namespace_is_type_and_name(catalogue: ResourceCatalogue, put: Put) -> None:
    put("alpha")
    assert catalogue.exists("skill:alpha")
    assert not catalogue.exists("command:alpha")
    assert not catalogue.exists("alpha")
    assert not catalogue.exists("skill:beta")


@pytest.mark.requirement("REG-2")
def test_the_same_name_may_stand_for_resources_of_several_types(tmp_path: Path, home: Path) -> None:
    for folder, text in {"skills": "s", "commands": "c", "agents": "a", "prompts": "p"}.items():
        path = tmp_path / ".claude" / folder / "same.md"
        path.parent.mkdir(parents=True)
        path.write_text(f"---\nname: same\ndescription: {text}\n---\nGo.\n")
    catalogue = Project(tmp_path, agents=False).catalogue
    found = {r.namespace: r.description for r in catalogue.list_resources() if r.name == "same"}
    assert found == {"skill:same": "s", "command:same": "c", "agent:same": "a", "prompt:same": "p"}


@pytest.mark.requirement("REG-2")
@pytest.mark.parametrize("asked", ["code-fix", "code_fix", "Code_Fix", "code fix", "cf"])
def test_a_name_is_found_however_it_is_spelled(catalogue: ResourceCatalogue, put: Put, asked: str) -> None:
    put("code-fix", extra="aliases: cf\n")
    found = catalogue.find(asked)
    assert found is not None
    assert found.name == "code-fix"


def test_a_name_wins_over_an_alias(catalogue: ResourceCatalogue, put: Put) -> None:
    put("aaa", extra="aliases: bbb\n")
    put("bbb")
    found = catalogue.find("bbb")
    assert found is not None
    assert found.name == "bbb"


@pytest.mark.parametrize("asked", ["code", "code-fixx", "", "-", "../code-fix", "/code-fix"])
def test_another_name_is_not_found(catalogue: ResourceCatalogue, put: Put, asked: str) -> None:
    put("code-fix")
    assert catalogue.find(asked) is None


def test_near_names_are_suggested_nearest_first(catalogue: ResourceCatalogue, put: Put) -> None:
    for name in ("code-review", "code-format", "git-workflow", "zebra"):
        put(name)
    assert catalogue.suggest("code-reviw")[0] == "code-review"
    assert len(catalogue.suggest("code", 2)) == 2


# Precedence


@pytest.mark.requirement("REG-1")
def test_the_project_wins_over_the_person(tmp_path: Path, home: Path) -> None:
    for base, text in ((tmp_path, "project"), (home, "person")):
        path = base / ".claude" / "skills" / "same" / "SKILL.md"
        path.parent.mkdir(parents=True)
        path.write_text(f"---\nname: same\ndescription: {text}\n---\n")
    catalogue = Project(tmp_path, agents=False).catalogue
    found = catalogue.find("same")
    assert found is not None
    assert (found.description, found.level) == ("project", "project")
    assert "shadowed" in codes(catalogue)


@pytest.mark.requirement("REG-1")
@pytest.mark.parametrize("host", [".claude", ".agents", ".gemini", ".opencode", ".codex", ".cursor", ".github"])
@pytest.mark.parametrize("level", ["project", "user"])
def test_every_documented_root_is_read(tmp_path: Path, home: Path, host: str, level: str) -> None:
    base = tmp_path if level == "project" else home
    path = base / host / "skills" / "mine" / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text("---\nname: mine\ndescription: d\n---\n")
    found = Project(tmp_path, agents=False).catalogue.find("mine")
    assert found is not None
    assert found.level == level


def plugged(folder: Path) -> ResourceCatalogue:
    (folder / "elsewhere").mkdir()
    project = Project(folder / "elsewhere", agents=False)
    project.roots = resource_roots(project.root, (folder / "plugin",))
    return project.catalogue


@pytest.mark.requirement("REG-1")
def test_a_folder_of_a_plugin_is_read(tmp_path: Path, put: Put) -> None:
    put("theirs", folder=tmp_path / "plugin")
    found = plugged(tmp_path).find("theirs")
    assert found is not None
    assert found.level == "plugin"


def test_two_copies_of_a_skill_need_no_warning(tmp_path: Path, put: Put) -> None:
    put("alpha", folder=tmp_path / ".claude" / "skills")
    put("alpha", folder=tmp_path / ".cursor" / "skills")
    assert "shadowed" not in codes(Project(tmp_path, agents=False).catalogue)


def test_a_package_of_the_project_brings_its_skills(tmp_path: Path, put: Put) -> None:
    (tmp_path / "mybox").mkdir()
    for name, folder in (("near", "web"), ("inner", "packages/web"), ("far", "a/b/c"), ("built", "node_modules/web")):
        put(name, folder=tmp_path / folder / ".claude" / "skills")
    put("theirs", folder=tmp_path / "vendor" / "tool" / ".claude" / "skills")
    (tmp_path / "vendor" / "tool" / ".git").mkdir()
    put("linked", folder=tmp_path.parent / f"{tmp_path.name}-other" / ".claude" / "skills")
    (tmp_path / "link").symlink_to(tmp_path.parent / f"{tmp_path.name}-other")
    found = {
        skill.name for skill in Project(tmp_path, agents=False).catalogue.list_resources() if skill.level == "project"
    }
    assert found == {"near", "inner"}


def test_only_a_project_has_packages(tmp_path: Path, put: Put) -> None:
    put("inner", folder=tmp_path / "packages" / "web" / ".claude" / "skills")
    assert "inner" not in names(Project(tmp_path, agents=False).catalogue)


# Plugins of Claude Code


def plugin(home: Path, put: Put, name: str, version: str = "1.0.0", skill: str = "", folder: str = "skills") -> Path:
    top = home / ".claude" / "plugins" / "cache" / "market" / name / version
    put(skill or name, folder=top / folder)
    return top


def write_json(path: Path, body: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(body))


def of_plugins(root: Path) -> dict[str, tuple[str, ...]]:
    return {
        skill.name: skill.tags
        for skill in Project(root, agents=False).catalogue.list_resources()
        if skill.level == "plugin"
    }


def test_the_newest_version_of_a_plugin_in_the_cache_is_read(tmp_path: Path, home: Path, put: Put) -> None:
    old, new = plugin(home, put, "tools", "1.0.0", "old"), plugin(home, put, "tools", "0.9.0", "new")
    os.utime(old, (1, 1))
    os.utime(new, (2, 2))
    assert of_plugins(tmp_path) == {"new": ("tools",)}


def test_the_list_of_installed_plugins_says_which_are_read(tmp_path: Path, home: Path, put: Put) -> None:
    used, gone = plugin(home, put, "tools"), plugin(home, put, "gone")
    here, there, off = (plugin(home, put, name) for name in ("here", "there", "off"))
    os.utime(gone, (2, 2))
    listed = {"tools@market": [{"scope": "user", "installPath": str(used)}]}
    listed |= {"off@market": [{"scope": "user", "installPath": str(off)}]}
    for folder, project in ((here, tmp_path), (there, tmp_path / "elsewhere")):
        key = f"{folder.parent.name}@market"
        listed[key] = [{"scope": "project", "projectPath": str(project), "installPath": str(folder)}]
    write_json(home / ".claude" / "plugins" / "installed_plugins.json", {"version": 2, "plugins": listed})
    write_json(home / ".claude" / "settings.json", {"enabledPlugins": {"off@market": False, "tools@market": True}})
    assert set(of_plugins(tmp_path)) == {"tools", "here"}


def test_a_plugin_may_name_its_folders_of_skills_and_only_inside_itself(tmp_path: Path, home: Path, put: Put) -> None:
    top = plugin(home, put, "tools", folder="extra")
    (top / "CHANGELOG.md").write_text("# Changes\n\nNone.\n")
    put("outside", folder=top.parent / "outside")
    write_json(top / ".claude-plugin" / "plugin.json", {"name": "tools", "skills": ["./extra/tools", "../outside"]})
    assert set(of_plugins(tmp_path)) == {"tools"}
    (top / ".claude-plugin" / "plugin.json").unlink()
    put("above", folder=top)
    assert set(of_plugins(tmp_path)) == {"above"}  # skills right below the plugin; its pages are none


def test_the_words_of_a_plugin_and_its_marketplace_are_tags_of_its_skills(tmp_path: Path, home: Path, put: Put) -> None:
    top = plugin(home, put, "tools")
    write_json(top / ".claude-plugin" / "plugin.json", {"name": "tools", "keywords": ["terraform", 3, "tools"]})
    rows = [{"name": "tools", "category": "cloud", "tags": ["aws"]}, {"name": "other", "tags": ["no"]}]
    market = home / ".claude" / "plugins" / "marketplaces" / "market"
    write_json(market / ".claude-plugin" / "marketplace.json", {"plugins": rows})
    assert of_plugins(tmp_path) == {"tools": ("tools", "terraform", "aws", "cloud")}


NO_PATHS = ["a\\u0000b", "\\ud800", "x" * 5_000]


@pytest.mark.parametrize("path", NO_PATHS)
def test_what_can_be_no_path_in_the_files_of_a_plugin_harms_nothing(
    tmp_path: Path, home: Path, put: Put, path: str
) -> None:
    top, listed = plugin(home, put, "tools"), home / ".claude" / "plugins" / "installed_plugins.json"
    (top / "plugin.json").write_text(f'{{"skills": ["{path}"]}}')
    assert set(of_plugins(tmp_path)) == {"tools"}
    listed.write_text(f'{{"plugins": {{"tools@market": [{{"installPath": "{path}", "projectPath": "{path}"}}]}}}}')
    assert of_plugins(tmp_path) == {}


@pytest.mark.parametrize("text", ["[]", "{", '{"plugins": 3}', '{"plugins": {"a": [3], "@": {"installPath": 1}}}'])
def test_a_broken_list_of_plugins_harms_nothing(tmp_path: Path, home: Path, put: Put, text: str) -> None:
    plugin(home, put, "tools")
    (home / ".claude" / "plugins" / "installed_plugins.json").write_text(text)
    (home / ".claude" / "settings.json").write_text(text)
    assert set(of_plugins(tmp_path)) <= {"tools"}


def test_the_project_wins_over_shipped_resources(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "skills" / "code-review" / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text("---\nname: code-review\ndescription: ours\n---\n")
    found = Project(tmp_path, agents=False).catalogue.find("code-review")
    assert found is not None
    assert found.description == "ours"


def test_the_shipped_skills_are_there_in_an_empty_folder(tmp_path: Path) -> None:
    held = names(Project(tmp_path, agents=False).catalogue)
    assert {"code-review", "csv-report", "git-workflow", "word-count"} <= set(held)


def test_a_folder_that_two_roots_share_is_read_once(tmp_path: Path, put: Put) -> None:
    put("alpha", folder=tmp_path / ".claude" / "skills")
    (tmp_path / ".agents").symlink_to(".claude")
    catalogue = Project(tmp_path, agents=False).catalogue
    assert names(catalogue).count("alpha") == 1
    assert "shadowed" not in codes(catalogue)


def test_every_shipped_skill_is_read_without_a_note() -> None:
    catalogue = ResourceCatalogue(roots=(Root(path=shipped_home().skills, level="shipped"),))
    assert len(names(catalogue)) >= 14
    assert codes(catalogue) == []


# Disabled


@pytest.mark.requirement("REG-3", "REG-4", "CTX-8")
def test_a_skill_that_its_file_disables_is_never_offered(catalogue: ResourceCatalogue, put: Put) -> None:
    put("alpha", extra="enabled: false\n")
    assert (names(catalogue), names(catalogue, enabled_only=False)) == ([], ["alpha"])
    assert (catalogue.find("alpha"), catalogue.exists("skill:alpha")) == (None, False)


@pytest.mark.requirement("REG-4")
def test_a_skill_that_a_person_disables_is_never_offered(skills: Path, put: Put) -> None:
    off: set[str] = set()
    catalogue = ResourceCatalogue(roots=(Root(path=skills, level="project"),), disabled=lambda: frozenset(off))
    put("alpha")
    assert names(catalogue) == ["alpha"]
    off.add("alpha")
    assert (names(catalogue), catalogue.find("alpha")) == ([], None)
    off.clear()
    assert names(catalogue) == ["alpha"]


@pytest.mark.requirement("REG-4")
def test_a_disabled_skill_cannot_be_executed(catalogue: ResourceCatalogue, put: Put) -> None:
    put("alpha", extra="enabled: false\n")
    with pytest.raises(SkillNotFound):
        catalogue.create_executor("skill:alpha")


@pytest.mark.requirement("REG-4")
def test_a_disabled_skill_is_not_suggested(catalogue: ResourceCatalogue, put: Put) -> None:
    put("alpha", extra="enabled: false\n")
    assert catalogue.suggest("alpha") == ()


# Broken files


BROKEN = [
    ("", "empty"),
    ("---\nname: bad\n", "no-description"),
    ("---\nname: &a bad\ndescription: d\n---\n", "yaml-anchor"),
    ("---\nname: bad\n---\n", "no-description"),
    ("---\n" + "a: b\n" * 20_000 + "---\n", "too-large"),
    ("x" * (FILE_LIMIT + 1), "too-large"),
]


@pytest.mark.requirement("REG-9", "FMT-7")
@pytest.mark.parametrize(("text", "code"), BROKEN, ids=[f"{code}-{at}" for at, (_, code) in enumerate(BROKEN)])
def test_a_broken_file_has_a_code_and_the_others_work(
    catalogue: ResourceCatalogue, put: Put, text: str, code: str
) -> None:
    put("good")
    path = put("bad")
    path.write_text(text)
    assert names(catalogue) == ["good"]
    [note] = catalogue.diagnostics()
    assert (note.code, note.level, note.path) == (code, "error", str(path))


@pytest.mark.requirement("REG-9")
def test_an_executor_of_a_broken_file_says_why_it_cannot_be_had(catalogue: ResourceCatalogue, put: Put) -> None:
    put("bad").write_text("---\nname: bad\n")
    with pytest.raises(NotLoadable, match="no description"):
        catalogue.create_executor("skill:bad")


@pytest.mark.requirement("REG-9")
def test_a_folder_named_like_a_skill_file_is_not_a_skill(catalogue: ResourceCatalogue, skills: Path) -> None:
    (skills / "odd" / "SKILL.md").mkdir(parents=True)
    (skills / "odd.md").mkdir()
    assert names(catalogue) == []


@pytest.mark.requirement("REG-9")
@pytest.mark.timeout(10)
def test_a_fifo_in_place_of_a_manifest_is_not_waited_for(catalogue: ResourceCatalogue, put: Put, skills: Path) -> None:
    put("good")
    (skills / "odd").mkdir()
    os.mkfifo(skills / "odd" / "SKILL.md")
    os.mkfifo(skills / "flat.md")
    assert names(catalogue) == ["good"]


@pytest.mark.requirement("REG-9")
def test_a_dangling_link_is_passed_over(catalogue: ResourceCatalogue, put: Put, skills: Path) -> None:
    put("good")
    (skills / "odd.md").symlink_to("nowhere.md")
    assert names(catalogue) == ["good"]


def test_a_broken_skill_file_is_listed_without_findings_after_it_is_fixed(
    catalogue: ResourceCatalogue, put: Put
) -> None:
    path = put("alpha")
    good = path.read_text()
    path.write_text("---\n")
    assert names(catalogue) == []
    path.write_text(good)
    assert (names(catalogue), codes(catalogue)) == (["alpha"], [])


# Executors


@pytest.mark.requirement("REG-2", "REG-6")
def test_an_executor_makes_the_request_into_a_prompt(catalogue: ResourceCatalogue, put: Put) -> None:
    put("alpha")
    made = catalogue.create_executor("skill:alpha")
    assert made.prompt("my need", (), {}) == "Do it.\n\nmy need"


@pytest.mark.requirement("REG-2", "CAN-2")
def test_an_executor_of_nothing_names_it_and_its_neighbours(catalogue: ResourceCatalogue, put: Put) -> None:
    put("alpha")
    with pytest.raises(SkillNotFound) as raised:
        catalogue.create_executor("skill:alpah")
    assert raised.value.data["suggestions"] == ["alpha"]
    assert raised.value.exit_code == 4


def test_a_digest_changes_with_any_file_of_the_folder(catalogue: ResourceCatalogue, put: Put) -> None:
    folder = put("alpha").parent
    first = catalogue.create_executor("skill:alpha").digest
    (folder / "run.py").write_text("print(1)\n")
    assert catalogue.create_executor("skill:alpha").digest != first


@pytest.mark.requirement("REG-3", "INT-10")
def test_a_listed_resource_has_its_priority_tags_and_type(catalogue: ResourceCatalogue, put: Put) -> None:
    put("alpha", extra="priority: 80\ntags: one, two\n")
    [offered] = catalogue.list_resources()
    assert (offered.priority, offered.tags, offered.type) == (80, ("one", "two"), "skill")


# The count


@pytest.mark.requirement("STA-2")
def test_the_count_is_of_folders_and_flat_files(catalogue: ResourceCatalogue, put: Put, skills: Path) -> None:
    put("alpha")
    put("beta")
    (skills / "gamma.md").write_text("anything\n")
    assert catalogue.count() == 3


@pytest.mark.requirement("STA-2")
def test_the_count_leaves_the_files_unread(catalogue: ResourceCatalogue, put: Put) -> None:
    put("alpha").write_bytes(b"\xff\x00 no manifest at all")
    put("beta").write_text("")
    assert catalogue.count() == 2
    assert catalogue._read == {}


def test_the_count_follows_the_folder(catalogue: ResourceCatalogue, put: Put) -> None:
    put("alpha")
    assert catalogue.count() == 1
    put("beta")
    assert catalogue.count() == 2
    for path in (catalogue.roots[0].path / "beta").iterdir():
        path.unlink()
    (catalogue.roots[0].path / "beta").rmdir()
    assert catalogue.count() == 1


def test_a_skill_of_two_roots_counts_once(tmp_path: Path, put: Put) -> None:
    for folder in ("one", "two"):
        put("same", folder=tmp_path / folder)
    roots = tuple(Root(path=tmp_path / folder, level="project") for folder in ("one", "two"))
    assert ResourceCatalogue(roots=roots).count() == 1

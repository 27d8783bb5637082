from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from navigator_kernel.adapters.sources.git import TreeEntry
from navigator_kernel.errors import SkillNotFound, UsageProblem
from navigator_kernel.skills.formats.plugin_manifests import Plugins
from navigator_kernel.skills.source.discover import Found, candidate_manifests, find_skills, select_skills
from tables import cases

if TYPE_CHECKING:
    from collections.abc import Mapping


def tree(*paths: str, links: Mapping[str, str] | None = None) -> list[TreeEntry]:
    """Entries whose ids are their paths; a link's id is `link:` with its target, so that `read` knows it."""
    every = [*paths, *(links or {})]
    folders = {path.rsplit("/", depth)[0] for path in every for depth in range(1, path.count("/") + 1)}
    blobs = [TreeEntry(path=path, mode="100644", kind="blob", oid=path) for path in paths]
    held = [TreeEntry(path=path, mode="120000", kind="blob", oid=f"link:{to}") for path, to in (links or {}).items()]
    return [*blobs, *held, *(TreeEntry(path=path, mode="040000", kind="tree", oid=f"t:{path}") for path in folders)]


def read(entries: list[TreeEntry]) -> dict[str, bytes]:
    return {oid: oid.removeprefix("link:").encode() for oid in candidate_manifests(entries)}


def linked(*paths: str, links: Mapping[str, str], subpath: str = "") -> tuple[Found, ...]:
    entries = tree(*paths, links=links)
    return find_skills(entries, top="repo", subpath=subpath, links=read(entries))


def same(skill: Found) -> frozenset[object]:
    return frozenset(skill.inner(entry) for entry in skill.entries)


def different(skill: Found) -> frozenset[object]:
    return frozenset({skill.folder})


def folder_name(skill: Found) -> str:
    return skill.name


def chosen(found: tuple[Found, ...], *words: str) -> list[str]:
    return [skill.folder for skill in select_skills(found, words, folder_name, different)]


@pytest.mark.requirement("LIF-1")
def test_skills_are_found_at_any_depth_in_either_case() -> None:
    found = find_skills(tree("a/SKILL.md", "b/c/d/skill.md", "e/Skill.MD", "f/README.md"), top="repo")
    assert [(skill.folder, skill.name, skill.tree) for skill in found] == [
        ("a", "a", "t:a"),
        ("b/c/d", "d", "t:b/c/d"),
        ("e", "e", "t:e"),
    ]


def test_a_skill_owns_exactly_what_is_below_it() -> None:
    found = find_skills(tree("a/SKILL.md", "a/x/y", "a-b/SKILL.md", "a/b/SKILL.md", "a.txt", "b"), top="repo")
    owned = {skill.folder: [skill.inner(entry) for entry in skill.entries] for skill in found}
    assert owned == {"a": ["SKILL.md", "b/SKILL.md", "x/y"], "a/b": ["SKILL.md"], "a-b": ["SKILL.md"]}


def test_a_skill_at_the_top_has_the_name_of_the_repository() -> None:
    (found,) = find_skills(tree("SKILL.md", "x/y"), top="repo", tree="root")
    assert (found.folder, found.name, found.tree, len(found.entries)) == ("", "repo", "root", 2)


def test_a_subpath_narrows_the_search() -> None:
    entries = tree("a/x/SKILL.md", "ab/x/SKILL.md", "b/SKILL.md")
    assert [skill.folder for skill in find_skills(entries, top="repo", subpath="a")] == ["a/x"]
    with pytest.raises(SkillNotFound):
        find_skills(entries, top="repo", subpath="c")


def test_folders_that_the_listing_leaves_out_change_nothing() -> None:
    entries = [entry for entry in tree("a/b/SKILL.md", "a/c/d/SKILL.md") if entry.kind != "tree"]
    assert [skill.folder for skill in find_skills(entries, top="repo")] == ["a/b", "a/c/d"]


# Roles of skills by their folders


@cases("folder, role")
def test_examples_tests_and_hidden_skills_are_recognised_by_their_folders(folder: str, role: str) -> None:
    (found,) = find_skills(tree(f"{folder}/SKILL.md"), top="repo")
    assert found.role == role


def test_a_skill_in_an_examples_folder_that_was_named_is_not_an_example() -> None:
    (found,) = find_skills(tree("examples/pdf/SKILL.md"), top="repo", subpath="examples")
    assert found.role == "skill"


# Links


def test_without_the_texts_of_links_a_manifest_that_is_a_link_makes_no_skill() -> None:
    with pytest.raises(SkillNotFound):
        find_skills(tree(links={"a/SKILL.md": "../b.md"}), top="repo")


def test_a_manifest_that_is_a_link_is_the_file_that_it_leads_to() -> None:
    (found,) = linked("shared/a.md", links={"a/SKILL.md": "../shared/a.md"})
    assert (found.folder, found.manifest) == (
        "a",
        TreeEntry(path="a/SKILL.md", mode="100644", kind="blob", oid="shared/a.md"),
    )


@pytest.mark.parametrize("to", ["/etc/passwd", "../../x", "SKILL.md", "gone", "", "../m/x"])
def test_a_manifest_that_leads_astray_is_found_as_the_link_that_it_is(to: str) -> None:
    (found,) = linked("x", links={"a/SKILL.md": to})
    assert (found.folder, found.manifest.mode) == ("a", "120000")


def test_a_folder_of_a_skill_that_is_a_link_is_found_where_it_really_lies() -> None:
    (found,) = linked("src/a/SKILL.md", links={".claude/skills/b": "../../src/a"})
    assert (found.folder, found.also) == ("src/a", (".claude/skills/b",))
    assert chosen((found,), "b", ".claude/skills/b", "a", "src/a") == ["src/a"]


def test_a_subpath_that_contains_only_links_contains_the_skills_that_they_lead_to() -> None:
    links = {".claude/skills/a": "../../src/a", "c": ".claude"}
    for subpath in (".claude/skills", "c/skills", ".claude/skills/a"):
        (found,) = linked("src/a/SKILL.md", "src/b/SKILL.md", links=links, subpath=subpath)
        assert found.folder == "src/a"


def test_a_link_to_a_folder_of_skills_may_be_the_subpath() -> None:
    (found,) = linked("src/a/SKILL.md", "b/SKILL.md", links={".claude/skills": "../src"}, subpath=".claude/skills")
    assert found.folder == "src/a"


def test_the_most_open_of_its_places_says_what_a_skill_is() -> None:
    (found,) = linked(".src/a/SKILL.md", links={"skills/a": "../.src/a"})
    assert found.role == "skill"


@pytest.mark.timeout(10)
def test_links_in_circles_and_long_chains_are_left_alone() -> None:
    chain = {f"l{at:04}": f"l{at + 1:04}" for at in range(1_500)}
    found = linked("a/SKILL.md", links={**chain, "l1500": "a", "x": "y", "y": "x", "z": "./" * 500 + "z"})
    assert [skill.folder for skill in found] == ["a"]


def test_only_links_that_may_lead_to_a_skill_are_read_first() -> None:
    entries = tree("a/SKILL.md", ".claude-plugin/plugin.json", links={"b": "a", "CLAUDE.md": "AGENTS.md"})
    assert candidate_manifests(entries) == (".claude-plugin/plugin.json", "link:a")


# Selection


@pytest.mark.requirement("LIF-2")
def test_a_skill_is_chosen_by_name_folder_path_glob_plugin_and_declared_name() -> None:
    plugins = Plugins(owners={"p": "tools"})
    found = find_skills(tree("p/one/SKILL.md", "q/two/SKILL.md", "SKILL.md"), top="repo", plugins=plugins)
    assert chosen(found, "one") == ["p/one"]
    assert chosen(found, "ONE", "q/two/", "./q/two", "q/two/SKILL.md") == ["p/one", "q/two"]
    assert chosen(found, "q/*", "t?o", ".", "repo") == ["q/two", ""]
    assert chosen(found, "tools:one", "tools:*") == ["p/one"]
    declared = select_skills(
        found, ["the-second"], lambda skill: "the-second" if skill.name == "two" else "", different
    )
    assert [skill.folder for skill in declared] == ["q/two"]


def test_a_glob_means_examples_only_where_it_means_nothing_else() -> None:
    found = find_skills(tree("a/SKILL.md", "examples/ab/SKILL.md"), top="repo")
    assert chosen(found, "*") == ["a"]
    assert chosen(found, "examples/*") == ["examples/ab"]


def test_a_name_means_the_skill_before_an_example_of_that_name() -> None:
    found = find_skills(tree("a/SKILL.md", "examples/a/SKILL.md", "tests/a/SKILL.md"), top="repo")
    assert chosen(found, "a") == ["a"]
    assert chosen(found, "examples/a") == ["examples/a"]


def test_a_name_of_several_skills_that_are_equally_near_is_a_question() -> None:
    found = find_skills(tree("x/a/SKILL.md", "y/a/SKILL.md"), top="repo")
    with pytest.raises(UsageProblem) as raised:
        chosen(found, "a")
    assert raised.value.data["paths"] == ["x/a", "y/a"]


def test_a_name_of_several_skills_means_the_nearest_one() -> None:
    found = find_skills(tree("x/y/a/SKILL.md", "x/a/SKILL.md", ".gemini/a/SKILL.md"), top="repo")
    assert chosen(found, "a") == ["x/a"]


def test_a_name_means_the_skill_that_a_plugin_names_wherever_it_lies() -> None:
    plugins = Plugins(owners={"x/y/a": "p"}, declared=frozenset({"x/y/a"}))
    found = find_skills(tree("x/y/a/SKILL.md", "a/SKILL.md"), top="repo", plugins=plugins)
    assert chosen(found, "a") == ["x/y/a"]


def test_copies_are_one_skill() -> None:
    found = find_skills(tree("x/a/SKILL.md", "y/a/SKILL.md", "z/a/SKILL.md", "z/a/more.md"), top="repo")
    assert [skill.folder for skill in select_skills(found, ["a"], folder_name, same)] == ["z/a"]


def test_a_skill_that_cannot_be_used_is_meant_by_its_name_only_where_it_is_alone() -> None:
    found = find_skills(tree("a/SKILL.md", "x/a/SKILL.md", "b/SKILL.md"), top="repo")
    good = select_skills(found, ["a", "b"], folder_name, different, lambda skill: skill.folder == "x/a")
    assert [skill.folder for skill in good] == ["x/a", "b"]


@pytest.mark.parametrize(("word", "near"), [("pdff", ["pdf"]), ("code_revew", ["code-review"]), ("zzz", [])])
def test_a_near_miss_is_suggested(word: str, near: list[str]) -> None:
    found = find_skills(tree("pdf/SKILL.md", "code-review/SKILL.md"), top="repo")
    with pytest.raises(SkillNotFound) as raised:
        chosen(found, word)
    assert raised.value.data["suggestions"] == near


@pytest.mark.requirement("LIF-1")
def test_a_name_in_its_own_case_means_the_skill_that_is_written_so() -> None:
    found = find_skills(tree("Pdf/SKILL.md", "other/pdf/SKILL.md"), top="repo")
    assert chosen(found, "pdf") == ["other/pdf"]
    assert chosen(found, "Pdf") == ["Pdf"]


@pytest.mark.requirement("LIF-1")
def test_a_source_with_skills_in_submodules_alone_says_so() -> None:
    entries = [*tree("README.md"), TreeEntry(path="skills/pdf", mode="160000", kind="commit", oid="1")]
    with pytest.raises(SkillNotFound) as error:
        find_skills(entries, top="repo")
    assert "skills/pdf" in error.value.hint
    assert "submodule" in error.value.hint

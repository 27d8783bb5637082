from __future__ import annotations

import pytest

from navigator_kernel.adapters.git import TreeEntry
from navigator_kernel.errors import SkillNotFound
from navigator_kernel.skills.discover import find_skills


def tree(*paths: str) -> list[TreeEntry]:
    folders = {path.rsplit("/", depth)[0] for path in paths for depth in range(1, path.count("/") + 1)}
    blobs = [TreeEntry(path=path, mode="100644", kind="blob", oid=path) for path in paths]
    return [*blobs, *(TreeEntry(path=path, mode="040000", kind="tree", oid=f"t:{path}") for path in folders)]


@pytest.mark.requirement("LIF-1")
def test_skills_are_found_at_any_depth_in_either_case() -> None:
    found = find_skills(tree("a/SKILL.md", "b/c/d/skill.md", "e/Skill.MD", "f/README.md"), top="repo")
    assert [(skill.folder, skill.name, skill.tree) for skill in found] == [
        ("a", "a", "t:a"),
        ("b/c/d", "d", "t:b/c/d"),
        ("e", "e", "t:e"),
    ]


def test_a_skill_owns_exactly_what_lies_below_it() -> None:
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


def test_a_manifest_that_is_a_link_makes_no_skill() -> None:
    entry = TreeEntry(path="a/SKILL.md", mode="120000", kind="blob", oid="x")
    with pytest.raises(SkillNotFound):
        find_skills([entry], top="repo")

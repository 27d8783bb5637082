"""What "all skills of a source" means, on real repositories: no problem of one skill keeps another one out."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from navigator_kernel.errors import Refused, SkillNotFound, UsageProblem
from navigator_kernel.skills.install.install import _none
from navigator_kernel.skills.install.selection import LeftOut
from navigator_kernel.values.resource import Diagnostic
from skill_repositories import add_raw, commit, git, make_repo, skill_text, snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.sample(2)

PLUGIN = '{"name": "second", "skills": ["./skills/run"]}'


def installed(project: Any) -> list[str]:
    return sorted(path.name for path in project.skills.iterdir() if (path / "SKILL.md").is_file())


def left(answer: Mapping[str, Any]) -> dict[str, str]:
    return {one["path"] or one["name"]: one["reason"] for one in answer["left_out"]}


def every(project: Any, repo: Path, **given: Any) -> Mapping[str, Any]:
    answer: Mapping[str, Any] = project.run("install", source=f"file://{repo}", all=True, **given)
    counts = answer["counts"]
    assert counts["found"] == sum(value for key, value in counts.items() if key != "found")
    assert all(one["why"] and one["msg"] for one in answer["left_out"])
    return answer


@pytest.mark.requirement("LIF-2")
def test_a_skill_with_a_problem_is_left_out_with_its_reason_and_the_others_are_installed(
    project: Any, tmp_path: Path
) -> None:
    files = {f"skills/{name}/SKILL.md": skill_text(name) for name in ("good", "fine", "linked", "long")}
    files["skills/-odd/SKILL.md"] = skill_text("-odd")
    files["skills/open/SKILL.md"] = "---\nname: open\n"
    repo = make_repo(tmp_path, files)
    add_raw(repo, {"skills/linked/extra.md": ("120000", b"../../../gone.md"), "skills/long/aux.md": ("100644", b"x")})
    answer = every(project, repo)
    assert installed(project) == ["fine", "good"]
    assert left(answer) == {
        "skills/-odd": "manifest",
        "skills/linked": "unsafe-files",
        "skills/long": "unsafe-files",
        "skills/open": "no-text",
    }
    assert (answer["exit_code"], answer["counts"]["blocked"]) == (1, 2)


def test_a_skill_that_a_scanner_blocks_is_left_out_and_named(maker: Any, tmp_path: Path) -> None:
    def scan(skill: Any, contents: Any) -> list[Diagnostic]:
        bad = Diagnostic(code="bad-rule", level="error", path="SKILL.md", message="it is bad")
        return [bad] if skill.name == "b" else []

    project = maker(scan=scan)
    repo = make_repo(tmp_path, {f"{name}/SKILL.md": skill_text(name) for name in "abc"})
    answer = every(project, repo)
    (one,) = answer["left_out"]
    assert (one["path"], one["state"], one["reason"], one["why"]) == (
        "b",
        "blocked",
        "scanner",
        "the scanner blocks it: bad-rule",
    )
    assert one["findings"][0]["message"] == "it is bad"
    assert (installed(project), answer["exit_code"]) == (["a", "c"], 1)


def test_a_file_that_is_too_large_keeps_only_its_own_skill_out(project: Any, tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {f"{name}/SKILL.md": skill_text(name) for name in "abc"}
    repo = make_repo(tmp_path, {**files, "b/data.bin": b"x" * (10 * 1024 * 1024 + 1)})
    assert left(every(project, repo)) == {"b": "too-large"}
    assert installed(project) == ["a", "c"]


def test_a_skill_whose_name_is_taken_is_left_out_and_the_existing_one_stays(project: Any, tmp_path: Path) -> None:
    project.run("install", source=f"file://{make_repo(tmp_path, {'a/SKILL.md': skill_text('a', 'mine')}, name='one')}")
    (project.skills / "b").mkdir()
    repo = make_repo(tmp_path, {f"{name}/SKILL.md": skill_text(name) for name in "abc"}, name="two")
    answer = every(project, repo)
    assert left(answer) == {"a": "name-taken", "b": "name-taken"}
    assert "mine" in (project.skills / "a" / "SKILL.md").read_text()
    assert (answer["exit_code"], installed(project)) == (1, ["a", "c"])


def test_if_every_skill_is_blocked_no_skill_is_written(maker: Any, tmp_path: Path) -> None:
    bad = Diagnostic(code="bad", level="error", path="SKILL.md", message="it is bad")
    project = maker(scan=lambda _skill, _contents: [bad])
    repo = make_repo(tmp_path, {f"{name}/SKILL.md": skill_text(name) for name in "ab"})
    answer = every(project, repo)
    assert (answer["counts"]["blocked"], answer["changed"], answer["exit_code"]) == (2, False, 1)
    with pytest.raises(Refused, match="nothing was installed") as caught:
        project.run("install", source=f"file://{repo}", skill=["a", "b"])
    assert len(caught.value.data["left_out"]) == 2
    assert not [
        path for path in project.skills.glob("*") if path.name not in {".navigator", ".gitattributes", ".gitignore"}
    ]


def test_the_error_says_how_to_accept_each_of_the_blocked_ones_that_it_names() -> None:
    def left_out(name: str, reason: str, **data: Any) -> LeftOut:
        return LeftOut(name, name, reason, Refused(f"{name} is {reason}", hint=f"about {name}", **data))

    bad = [left_out(name, "scanner", blocked_by=["x"]) for name in "abcde"]
    told = _none([*bad[:2], left_out("f", "edited"), *bad[2:]])
    assert told.message == "nothing was installed: a is scanner; b is scanner; f is edited; c is scanner"
    assert told.hint == "about a; about b; about c"
    assert (told.data["blocked_by"], len(told.data["left_out"])) == (["x"], 6)
    assert _none(bad[:1]) is bad[0].error
    assert "nothing is left to install" in _none([left_out("a", "example"), left_out("b", "copy")]).message


# Copies


def test_copies_under_the_folders_of_several_agents_are_one_skill(project: Any, tmp_path: Path) -> None:
    files = {
        f"{place}/pdf/SKILL.md": skill_text("pdf") for place in (".claude/skills", ".codex/skills", "tools/skills")
    }
    files["tools/skills/pdf/run.py"] = "print(1)\n"
    repo = make_repo(tmp_path, {**files, "tools/skills/docx/SKILL.md": skill_text("docx")})
    add_raw(repo, {".gemini/skills/pdf/SKILL.md": ("120000", b"../../../tools/skills/pdf/SKILL.md")})
    answer = every(project, repo)
    assert left(answer) == dict.fromkeys((".claude/skills/pdf", ".codex/skills/pdf", ".gemini/skills/pdf"), "copy")
    assert (answer["exit_code"], installed(project)) == (0, ["docx", "pdf"])
    assert (project.skills / "pdf" / "run.py").is_file()


def test_a_broken_link_in_place_of_a_copy_is_not_a_failure(project: Any, tmp_path: Path) -> None:
    repo = make_repo(tmp_path, {"src/pdf/SKILL.md": skill_text("pdf"), "docx/SKILL.md": skill_text("docx")})
    add_raw(repo, {".gemini/skills/pdf/SKILL.md": ("120000", b"../../../old/pdf/SKILL.md")})
    answer = every(project, repo)
    assert (left(answer), answer["exit_code"]) == ({".gemini/skills/pdf": "broken-copy"}, 0)
    assert installed(project) == ["docx", "pdf"]


# Names


def twins(tmp_path: Path, name: str = "repo") -> Path:
    files = {
        f"{plugin}/skills/run/SKILL.md": skill_text("run", f"of {plugin}") for plugin in ("first", "second", "x/y")
    }
    files |= {f"{plugin}/.claude-plugin/plugin.json": f'{{"name": "{plugin}"}}' for plugin in ("first", "second")}
    return make_repo(tmp_path, files, name=name)


@pytest.mark.requirement("LIF-2")
def test_the_nearest_of_several_namesakes_keeps_the_name_and_the_others_get_their_owners_prefix(
    project: Any, tmp_path: Path
) -> None:
    answer = every(project, twins(tmp_path))
    assert (installed(project), answer["left_out"], answer["exit_code"]) == (["run", "second-run", "y-run"], [], 0)
    assert "description: of first\n" in (project.skills / "run" / "SKILL.md").read_text()
    assert "name: second-run\ndescription: of second\n" in (project.skills / "second-run" / "SKILL.md").read_text()
    again = every(project, tmp_path / "repo")
    assert (again["changed"], again["counts"]["there"]) == (False, 3)


def test_the_skill_that_a_plugins_manifest_names_keeps_the_name(project: Any, tmp_path: Path) -> None:
    repo = twins(tmp_path)
    commit(repo, {"second/.claude-plugin/plugin.json": PLUGIN})
    every(project, repo)
    assert installed(project) == ["first-run", "run", "y-run"]


@pytest.mark.parametrize("word", ["second/run", "second:run", "second-run", "SECOND/Run"])
def test_a_skill_can_be_asked_for_by_its_owner_and_name(project: Any, tmp_path: Path, word: str) -> None:
    repo = twins(tmp_path)
    project.run("install", source=f"file://{repo}", skill=word)
    assert installed(project) == ["second-run"]
    assert project.run("install", source=f"file://{repo}", skill="y/run")["changed"] is True
    assert installed(project) == ["second-run", "y-run"]


def test_a_twin_under_its_second_name_follows_its_source(project: Any, tmp_path: Path) -> None:
    repo = twins(tmp_path)
    every(project, repo)
    commit(repo, {"second/skills/run/SKILL.md": skill_text("run", "newer")})
    answer = project.run("update", name=["second-run"])
    assert answer["changed"] is True
    assert "name: second-run\ndescription: newer\n" in (project.skills / "second-run" / "SKILL.md").read_text()


def test_a_broken_twin_takes_no_name(project: Any, tmp_path: Path) -> None:
    repo = make_repo(tmp_path, {"run/SKILL.md": "---\nname: run\n", "a/b/run/SKILL.md": skill_text("run", "good")})
    every(project, repo)
    assert installed(project) == ["run"]
    assert "good" in (project.skills / "run" / "SKILL.md").read_text()


def test_two_folders_that_declare_one_name_are_two_skills(project: Any, tmp_path: Path) -> None:
    repo = make_repo(tmp_path, {"a/SKILL.md": skill_text("same"), "b/SKILL.md": skill_text("same", "other")})
    every(project, repo)
    assert installed(project) == ["b", "same"]


@pytest.mark.wide
def test_names_do_not_depend_on_the_order_of_the_tree(maker: Any, tmp_path: Path) -> None:
    seen = set()
    files = [(f"{place}/run/SKILL.md", skill_text("run", place)) for place in ("a/b", "c", "d/e/f", "g", ".codex/h")]
    for at in range(4):
        random.Random(at).shuffle(files)
        repo = make_repo(tmp_path, {"README.md": "x"}, name=f"repo{at}")
        for path, text in files:
            commit(repo, {path: text})
        project = maker(f"project{at}")
        every(project, repo)
        texts = {name: (project.skills / name / "SKILL.md").read_text() for name in installed(project)}
        seen.add(tuple(sorted(texts.items())))
    assert len(seen) == 1


# Files that are not skills, and excluded skills


def test_placeholders_examples_and_manifests_without_a_text_are_not_skills(project: Any, tmp_path: Path) -> None:
    files = {f"skills/{name}/SKILL.md": skill_text(name) for name in ("pdf", "README", "TEMPLATE", "template-skill")}
    files["skills/empty/SKILL.md"] = "---\nname: empty\ndescription: nothing\n---\n"
    files["skills/tool/SKILL.md"] = "---\nname: tool\ndescription: a tool\ncommand: echo hi\n---\n"
    files["examples/one/SKILL.md"] = skill_text("one")
    answer = every(project, make_repo(tmp_path, files))
    assert (installed(project), answer["exit_code"]) == (["pdf", "tool"], 0)
    assert set(left(answer).values()) == {"placeholder", "no-text", "example"}


def test_a_slash_command_of_another_agent_is_not_a_program(project: Any, tmp_path: Path) -> None:
    commands = {"one": "/hub:board", "two": "/board now", "three": "/usr/bin/env x", "four": "echo /board"}
    files = {f"{name}/SKILL.md": skill_text(name, extra=f"command: {text}\n") for name, text in commands.items()}
    told = {one["name"]: one for one in every(project, make_repo(tmp_path, files))["skills"]}
    assert {name: one["kind"] for name, one in told.items()} == {"one": "B", "two": "B", "three": "A", "four": "A"}
    assert [finding["code"] for finding in told["one"]["findings"]] == ["command-slash"]


@pytest.mark.parametrize("word", ["b", "B", "deep/b", "./deep/b/", "deep/b/SKILL.md"])
def test_a_skill_can_be_excluded_by_its_exact_name_or_path(project: Any, tmp_path: Path, word: str) -> None:
    repo = make_repo(tmp_path, {f"deep/{name}/SKILL.md": skill_text(name) for name in ("a", "b", "bb")})
    answer = every(project, repo, exclude=[word])
    assert (left(answer), answer["exit_code"]) == ({"deep/b": "excluded"}, 0)
    assert installed(project) == ["a", "bb"]


def test_an_excluded_name_that_is_not_there_is_asked_about_before_anything_is_done(
    project: Any, tmp_path: Path
) -> None:
    repo = make_repo(tmp_path, {f"{name}/SKILL.md": skill_text(name) for name in ("alpha", "beta")})
    with pytest.raises(SkillNotFound, match="'alpa'") as caught:
        project.run("install", source=f"file://{repo}", all=True, exclude=["beta", "alpa"])
    assert caught.value.data["suggestions"] == ["alpha"]
    assert not project.skills.exists()


# Several named skills


@pytest.mark.requirement("LIF-2")
def test_the_valid_ones_of_several_named_skills_are_installed_and_the_others_are_reported(
    maker: Any, tmp_path: Path
) -> None:
    bad = Diagnostic(code="bad", level="error", path="SKILL.md", message="it is bad")
    project = maker(scan=lambda skill, _contents: [bad] if skill.name == "b" else [])
    repo = make_repo(tmp_path, {f"{name}/SKILL.md": skill_text(name) for name in "abc"})
    answer = project.run("install", source=f"file://{repo}", skill=["a", "b", "nowhere", "c"])
    assert (installed(project), answer["exit_code"]) == (["a", "c"], 1)
    assert left(answer) == {"b": "scanner", "nowhere": "not-found"}


def test_if_none_of_several_named_skills_exists_the_error_names_each_and_nothing_is_written(
    project: Any, tmp_path: Path
) -> None:
    repo = make_repo(tmp_path, {f"{name}/SKILL.md": skill_text(name) for name in "ab"})
    with pytest.raises(SkillNotFound) as caught:
        project.run("install", source=f"file://{repo}", skill=["x", "y"])
    assert "'x'" in caught.value.message
    assert "'y'" in caught.value.message
    assert not project.skills.exists()


# Repositories by path


@pytest.mark.requirement("LIF-2")
@pytest.mark.parametrize("name", ["x.git", "bare", "with space % and #.git"])
def test_a_bare_repository_by_its_path_is_a_git_source(project: Any, tmp_path: Path, name: str) -> None:
    repo = make_repo(tmp_path, {"pdf/SKILL.md": skill_text("pdf")})
    git(repo, "clone", "--quiet", "--bare", ".", str(tmp_path / name))
    answer = project.run("install", source=str(tmp_path / name))
    assert answer["commit"] == git(repo, "rev-parse", "HEAD").strip()
    before = snapshot(project.root)
    assert project.run("update")["changed"] is False
    assert snapshot(project.root) == before


def test_a_folder_without_skills_is_named_in_full(project: Any, tmp_path: Path) -> None:
    (tmp_path / "x.git").mkdir()
    with pytest.raises(SkillNotFound, match=r"x\.git"):
        project.run("install", source=str(tmp_path / "x.git"))


def test_several_skills_and_none_named_is_still_a_question(project: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="none is named"):
        project.run("install", source=f"file://{twins(tmp_path)}")


def test_each_choice_of_a_source_means_one_skill(project: Any, tmp_path: Path) -> None:
    """Twins are told apart by their paths; a copy, an example and an unusable skill are not choices."""
    text = skill_text("run", "goes fast")
    files = {
        "a/run/SKILL.md": text,
        "b/run/SKILL.md": skill_text("run", "goes far"),
        ".codex/skills/run/SKILL.md": text,
    }
    files |= {"walk/SKILL.md": skill_text("walk", "slow"), "examples/sit/SKILL.md": skill_text("sit")}
    files |= {"open/SKILL.md": "---\nname: [\n---\n"}
    source = f"file://{make_repo(tmp_path, files)}"
    with pytest.raises(UsageProblem) as caught:
        project.run("install", source=source, choosing=True)
    choices = caught.value.data["choices"]
    assert choices == [("a/run", "goes fast"), ("b/run", "goes far"), ("walk", "slow")]
    for word, _ in choices[1:]:
        assert len(project.run("install", source=source, skill=word)["skills"]) == 1
    assert installed(project) == ["run", "walk"]
    assert "goes far" in (project.skills / "run" / "SKILL.md").read_text()


def test_a_client_that_cannot_choose_gets_no_choices(project: Any, tmp_path: Path) -> None:
    repo = make_repo(tmp_path, {f"{name}/SKILL.md": skill_text(name) for name in ("one", "two")})
    with pytest.raises(UsageProblem) as caught:
        project.run("install", source=f"file://{repo}")
    assert set(caught.value.data) == {"skills"}


@pytest.mark.requirement("LIF-2")
def test_a_submodule_beside_the_skills_is_left_out_with_the_address_that_it_comes_from(
    project: Any, tmp_path: Path
) -> None:
    modules = (
        '[submodule "x"]\n\tpath = skills/far\n\turl = ../far.git\n[submodule "t"]\n\tpath = docs/theme\n\turl = ../t\n'
    )
    files = {"skills/good/SKILL.md": skill_text("good"), ".gitmodules": modules}
    repo = make_repo(tmp_path, files)
    add_raw(repo, {"skills/far": ("160000", b""), "docs/theme": ("160000", b"")})
    answer = every(project, repo)
    assert (installed(project), left(answer), answer["exit_code"]) == (["good"], {"far": "submodule"}, 0)
    with pytest.raises(SkillNotFound, match="'skills/far' is a submodule") as caught:
        project.run("install", source=f"file://{repo}", skill="far")
    assert caught.value.hint == f"navigator install file://{repo.parent}/far.git"

"""What a person reads about skills: tables on a narrow terminal, changes, problems, and names in the shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.support import Place, place_in
from cli.terminals import terminal
from navigator_kernel.cli.output import width
from skill_repositories import commit, make_repo, skill_text

pytestmark = pytest.mark.sample(1)

LONG = "draws charts of every kind there is, for reports, slides and web pages, from tables and databases"
ZH = "制作各种图表，用于报告、幻灯片和网页，数据来自表格和数据库，也可以导出为图片或者嵌入文档之中"


@pytest.fixture
def here(tmp_path: Path) -> Place:
    return place_in(tmp_path)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    licence = "license: A licence with a name that is longer than anything else in the table\n"
    files = {"skills/alpha/SKILL.md": skill_text("alpha", LONG, licence)}
    files |= {"skills/beta/SKILL.md": skill_text("beta", ZH, licence), "skills/beta/run.sh": "echo\n"}
    return make_repo(tmp_path, files, name="a-repository-whose-name-is-rather-long")


def seen(place: Place, columns: int, *words: str) -> list[str]:
    """The lines shown on a terminal with that many columns."""
    with terminal(place, *words, columns=columns) as screen:
        return screen.rest().splitlines()


@pytest.mark.parametrize("columns", [80, 120])
def test_the_listing_of_a_source_keeps_the_description_and_fits(here: Place, repo: Path, columns: int) -> None:
    shown = seen(here, columns, "skill", "info", repo.as_uri())
    table = [line for line in shown if line.startswith(("skill", "alpha", "beta"))][:3]
    assert [line.split()[-1] for line in table[:1]] == ["description"]
    assert "licence" not in table[0]
    assert "draws charts of every" in table[1]
    assert "制作各种图表" in table[2]
    assert max(map(width, table)) <= columns


@pytest.mark.wide
@pytest.mark.parametrize("words", [("list",), ("search", "charts")])
def test_lists_keep_the_description_at_80_columns(here: Place, repo: Path, words: tuple[str, ...]) -> None:
    here.said("install", repo.as_uri(), "--all")
    shown = seen(here, 80, *words)
    assert any("alpha" in line and "draws charts of every kind" in line for line in shown)
    assert all(width(line) <= 80 for line in shown)


def test_descriptions_begin_in_one_column_whatever_is_before_them(here: Place) -> None:
    here.write({
        ".claude/skills/图表/SKILL.md": skill_text("图表", "制作图表"),
        ".claude/skills/abcd/SKILL.md": skill_text("abcd", "makes charts"),
    })  # fmt: skip
    lines = here.said("list").splitlines()
    starts = {width(line.partition(text)[0]) for line in lines for text in ("制作图表", "makes charts") if text in line}
    assert len(starts) == 1


@pytest.mark.wide
@pytest.mark.requirement("X-35")
@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_command_that_is_to_be_copied_is_never_cut(here: Place, repo: Path, columns: int) -> None:
    here.said("skill", "info", repo.as_uri())
    command = f"navigator skill install {repo.as_uri()} --skill skills/alpha"
    assert command in "\n".join(seen(here, columns, "skill", "mapping", "alpha"))
    assert command in here.said("skill", "mapping", "alpha")


@pytest.mark.requirement("X-35")
def test_a_copy_in_an_agents_folder_has_no_row_of_its_own(here: Place, tmp_path: Path) -> None:
    text = skill_text("alpha", "draws")
    files = {"skills/alpha/SKILL.md": text, ".gemini/skills/alpha/SKILL.md": text, "plugins/p/alpha/SKILL.md": text}
    here.said("skill", "info", make_repo(tmp_path, files, name="copies").as_uri())
    rows = [row for row in here.json("skill", "mapping", "alpha")["rows"] if row["observed"]]
    assert len(rows) == 1
    assert not rows[0]["subpath"].startswith(".gemini")


@pytest.mark.wide
@pytest.mark.requirement("LIF-1")
@pytest.mark.parametrize("name", ["alpha", "word-count"])
def test_info_of_a_skill_is_plain_text_without_python_values(here: Place, repo: Path, name: str) -> None:
    here.said("install", repo.as_uri(), "--all")
    told = here.said("skill", "info", name)
    assert not [mark for mark in ("{'", "['", "None", "True", "False", "': ") if mark in told]
    keys = {line.partition(":")[0] for line in told.splitlines()}
    assert {"name", "description", "status", "path", "files"} <= keys
    if name == "alpha":
        assert {"source", "commit", "path in the source", "installed at"} <= keys


@pytest.mark.wide
def test_outdated_and_update_show_what_changed_and_a_count(here: Place, repo: Path) -> None:
    here.said("install", repo.as_uri(), "--all")
    assert here.said("skill", "outdated") == "2 current\n"
    assert here.said("update") == "2 already current\n"
    commit(repo, {"skills/alpha/SKILL.md": skill_text("alpha", "another")})
    told = here.said("skill", "outdated").splitlines()
    assert [line.split()[:2] for line in told] == [["skill", "state"], ["alpha", "changed"], ["1", "changed,"]]
    assert told[-1] == "1 changed, 1 current"
    changes = "alpha: 1 file, 1 line added, 2 removed\n  SKILL.md: +1 -2\n"
    assert here.said("update") == f"{changes}updated alpha\n1 already current, 1 updated\n"


def chinese(place: Place, *words: str) -> list[str]:
    """The lines that a successful command prints in Chinese."""
    return place.said("--language", "zh", "skill", *words).splitlines()


@pytest.mark.wide
def test_outdated_and_update_are_shown_in_chinese(here: Place, repo: Path) -> None:
    assert chinese(here, "update") == ["这里没有安装过技能"]
    here.said("install", repo.as_uri(), "--all")
    assert chinese(here, "outdated") == ["已是最新 2 个"]
    commit(repo, {"skills/alpha/SKILL.md": skill_text("alpha", "another")})
    told = chinese(here, "outdated")
    assert [line.split()[:2] for line in told[:2]] == [["技能", "状态"], ["alpha", "有更新"]]
    assert told[2:] == ["有更新 1 个，已是最新 1 个"]
    changes = ["alpha：1 个文件，增加 1 行，删除 2 行", "  SKILL.md：+1 -2"]
    assert chinese(here, "update", "--dry-run") == [*changes, "将更新 alpha", "已是最新 1 个，已更新 1 个"]
    here.write({".claude/skills/alpha/SKILL.md": skill_text("alpha", "mine")})
    updated = chinese(here, "update", "--force")
    assert updated[:2] == ["alpha：1 个文件，增加 1 行，删除 1 行", "  SKILL.md：+1 -1"]
    assert updated[2].startswith("已更新 alpha（备份保留在 ")
    assert updated[3:] == ["已是最新 1 个，已更新 1 个"]


@pytest.mark.wide
def test_a_rollback_and_a_frozen_install_are_shown_in_chinese(here: Place, repo: Path) -> None:
    here.said("install", repo.as_uri(), "--skill", "alpha")
    here.said("install", repo.as_uri(), "--skill", "beta")
    assert chinese(here, "rollback", "--dry-run") == ["将移除 beta", "将保留 alpha"]
    assert chinese(here, "rollback") == ["已移除 beta", "保留 alpha"]
    (here.root / ".claude/skills/alpha/SKILL.md").unlink()
    (here.root / ".claude/skills/alpha").rmdir()
    assert chinese(here, "install", "--frozen") == ["已恢复 alpha"]


def test_a_frozen_install_names_what_it_restores_and_counts_what_it_keeps(here: Place, tmp_path: Path) -> None:
    files = {f"skills/s{at}/SKILL.md": skill_text(f"s{at}", f"draws {at}") for at in range(14)}
    here.said("install", make_repo(tmp_path, files, name="many").as_uri(), "--all")
    (here.root / ".claude/skills/s3/SKILL.md").unlink()
    changed = "s3: 1 file, 7 lines added, 0 removed\n  SKILL.md: new, 7 lines\n"
    planned = f"{changed}would restore s3\nwould keep 13 skills\n"
    assert here.run("install", "--frozen", "--force", "--dry-run").out == planned
    *_, restored, kept = here.said("install", "--frozen", "--force").splitlines()
    assert restored.startswith("restored s3 (copy kept in ") and kept == "kept 13 skills"
    for at in range(14):
        (here.root / f".claude/skills/s{at}/SKILL.md").unlink()
        (here.root / f".claude/skills/s{at}").rmdir()
    assert here.said("install", "--frozen") == "restored 14 skills\n"
    assert here.said("install", "--frozen", "-v").splitlines() == [
        f"kept {one}" for one in sorted(f"s{at}" for at in range(14))
    ]
    assert here.said("install", "--frozen", "-q") == ""


@pytest.mark.requirement("LIF-1")
def test_info_of_a_skill_is_shown_in_chinese(here: Place, repo: Path) -> None:
    here.said("install", repo.as_uri(), "--skill", "alpha")
    told = dict(line.split("：", 1) for line in chinese(here, "info", "alpha"))
    assert (told["名称"], told["描述"], told["类型"], told["状态"]) == ("alpha", LONG, "B，提示词", "已安装，项目")
    assert {"来源", "提交", "来源内的路径", "安装时间", "许可证"} <= set(told)
    assert (told["扫描结论"], told["文件"]) == ("通过", "1：SKILL.md")


@pytest.mark.wide
@pytest.mark.requirement("LIF-1")
def test_info_of_a_source_is_shown_in_chinese(here: Place, repo: Path) -> None:
    done = here.run("--language", "zh", "skill", "info", repo.as_uri(), "--skill", "beta")
    assert done.out.splitlines()[0].split() == "技能 类型 许可证 字节 工具 脚本 插件 描述".split()
    assert done.out.splitlines()[2:] == ["beta：脚本 run.sh"]
    assert "beta：扫描结论 通过" in done.err.splitlines()
    assert f"1 个技能；安装其中一个：navigator skill install {repo.as_uri()} --skill NAME" in done.err.splitlines()
    assert (
        "用 --skill 指定技能后显示其字节数和扫描发现"
        in here.run("--language", "zh", "skill", "info", repo.as_uri()).err
    )


@pytest.mark.wide
def test_doctor_shows_what_is_wrong_and_a_count(here: Place) -> None:
    here.write({".claude/skills/skills.db": "{ broken"})
    done = here.run("doctor")
    lines = done.out.splitlines()
    assert (done.code, lines[0][:2]) == (1, "!!")
    assert not [line for line in lines if line.startswith("ok")]
    assert [word.split()[1] for word in lines[-1].split(", ")] == ["damaged", "missing", "notes", "ok"]
    every = here.run("doctor", "-v").out.splitlines()
    assert any(line.startswith("ok  python") for line in every)
    assert every[-1] == lines[-1]


@pytest.mark.wide
def test_doctor_counts_notes_on_the_text_of_skills_and_names_them_with_v(here: Place) -> None:
    names = ["one", "two", "three"]
    text = "---\nname: {0}\ndescription: Does {0}.\nmetadata:\n  updated: 2026-01-02\n---\nDo it.\n"
    here.write({f".claude/skills/{name}/SKILL.md": text.format(name) for name in names})
    lines = here.run("doctor").out.splitlines()
    assert "..  manifest not-text: 3 skills" in lines
    assert lines[-1].split(", ")[2] == "3 notes"
    every = here.run("doctor", "-v").out
    assert all(f"/{name}/SKILL.md: metadata.updated is not written as text" in every for name in names)


@pytest.mark.requirement("LIF-5")
@pytest.mark.parametrize("words", [("uninstall",), ("remove", "--dry-run"), ("remove", "--target", "agents")])
def test_a_shipped_skill_is_reported_as_shipped(here: Place, words: tuple[str, ...]) -> None:
    done = here.run(*words, "word_count")
    assert done.code == 3
    assert "'word-count' is shipped with navigator and cannot be uninstalled" in done.err
    assert "hint: navigator skill disable word-count" in done.err


@pytest.mark.wide
@pytest.mark.parametrize(("language", "said"), [("en", "is disabled"), ("zh", "已禁用")])
def test_a_call_of_a_disabled_skill_says_so(here: Place, language: str, said: str) -> None:
    here.said("skill", "disable", "word-count")
    done = here.run("--language", language, "ask", "/word-count one two")
    assert (done.code, said in done.out) == (4, True)
    assert "navigator skill enable word-count" in done.out
    here.said("skill", "enable", "word-count")
    assert "2 words" in here.said("ask", "/word-count one two")


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("navigator remove a", {"alpha"}),
        ("navigator update ", {"alpha"}),
        ("navigator uninstall --target agents ", set()),
        ("navigator skill info al", {"alpha"}),
        ("navigator skill enable word-", {"word-count"}),
        ("navigator skill disable al", {"alpha"}),
        ("navigator install {source} --skill ", {"alpha", "beta"}),
        ("navigator skill install --all {source} --skill be", {"beta"}),
        ("navigator add owner/repo --skill be", set()),
        ("navigator install nothing --skill ", set()),
    ],
)
def test_names_of_skills_complete_in_the_shell(here: Place, repo: Path, line: str, names: set[str]) -> None:
    here.said("install", repo.as_uri(), "--skill", "alpha")
    before = here.files()
    words = line.format(source=repo.as_uri())
    asked = {"_NAVIGATOR_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    assert set(here.run(env=asked).out.split()) == {f"plain,{name}" for name in names}
    assert here.files() == before

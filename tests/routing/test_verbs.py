"""Tier 1: literal commands, in both languages."""

from __future__ import annotations

from typing import Any

import pytest

from navigator_kernel.values.route import Direct, Lifecycle, Mcp, Script, Skills
from tables import cases


def life(operation: Any, source: str = "", skills: tuple[str, ...] = (), query: str = "") -> Lifecycle:
    return Lifecycle(operation=operation, source=source, skills=skills, query=query)


# The documents' intent tree


@pytest.mark.requirement("SEN-3", "LIF-7")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # analyse, view -> info
        ("分析 anthropics/skills", life("info", "anthropics/skills")),
        ("分析anthropics/skills", life("info", "anthropics/skills")),
        ("分析一下 https://github.com/anthropics/skills", life("info", "https://github.com/anthropics/skills")),
        ("请分析仓库 anthropics/skills", life("info", "anthropics/skills")),
        ("帮我查看 anthropics/skills", life("info", "anthropics/skills")),
        ("看看 anthropics/skills 这个仓库", life("info", "anthropics/skills")),
        ("analyze anthropics/skills", life("info", "anthropics/skills")),
        ("analyse the repository anthropics/skills", life("info", "anthropics/skills")),
        ("inspect https://gitlab.com/a/b.git", life("info", "https://gitlab.com/a/b.git")),
        ("please look at anthropics/skills", life("info", "anthropics/skills")),
        ("what is in anthropics/skills?", life("info", "anthropics/skills")),
        ("info file:///srv/repo", life("info", "file:///srv/repo")),
        # install, add -> install
        ("install anthropics/skills", life("install", "anthropics/skills")),
        ("Install anthropics/skills --skill pdf", life("install", "anthropics/skills", ("pdf",))),
        ("install anthropics/skills --skill pdf --skill docx", life("install", "anthropics/skills", ("pdf", "docx"))),
        ("install pdf from anthropics/skills", life("install", "anthropics/skills", ("pdf",))),
        ('install "pdf" from anthropics/skills', life("install", "anthropics/skills", ("pdf",))),
        ("安装 anthropics/skills 中的 'pdf'", life("install", "anthropics/skills", ("pdf",))),
        ("install the pdf skill from anthropics/skills", life("install", "anthropics/skills", ("pdf",))),
        ("install the frobnicate skill acme/skills", life("install", "acme/skills", ("frobnicate",))),
        ("add git@github.com:a/b.git", life("install", "git@github.com:a/b.git")),
        ("安装 anthropics/skills", life("install", "anthropics/skills")),
        ("安装 anthropics/skills --skill pdf", life("install", "anthropics/skills", ("pdf",))),
        ("请安装 anthropics/skills 中的 pdf", life("install", "anthropics/skills", ("pdf",))),
        ("请帮我安装 https://github.com/a/b", life("install", "https://github.com/a/b")),
        ("添加 ./my/skills", life("install", "./my/skills")),
        # find -> search
        ("find a skill for pdf", life("search", query="pdf")),
        ("search skills for code review", life("search", query="code review")),
        ("find pdf skills", life("search", query="pdf")),
        ("查找 pdf 技能", life("search", query="pdf")),
        ("查找pdf相关的技能", life("search", query="pdf")),
        ("搜索技能 翻译", life("search", query="翻译")),
        ("找一个翻译技能", life("search", query="翻译")),
        # list -> list
        ("list skills", life("list")),
        ("list all my skills", life("list")),
        ("show the installed skills", life("list")),
        ("which skills are installed?", life("list")),
        ("查看技能列表", life("list")),
        ("列出所有已安装的技能", life("list")),
        ("查看已安装技能", life("list")),
        ("有哪些技能？", life("list")),
        ("已装列表", life("list")),
        # delete -> uninstall
        ("uninstall word-count", life("uninstall", skills=("word-count",))),
        ("remove the word-count skill", life("uninstall", skills=("word-count",))),
        ("delete skill word-count", life("uninstall", skills=("word-count",))),
        ("uninstall word-count csv-report", life("uninstall", skills=("word-count", "csv-report"))),
        ("卸载 word-count", life("uninstall", skills=("word-count",))),
        ("卸载word-count", life("uninstall", skills=("word-count",))),
        ("删除技能 word-count", life("uninstall", skills=("word-count",))),
        ("删除 word-count 技能", life("uninstall", skills=("word-count",))),
        ("请移除 word-count", life("uninstall", skills=("word-count",))),
        # switches
        ("enable word-count", life("enable", skills=("word-count",))),
        ("disable word-count", life("disable", skills=("word-count",))),
        ("启用 word-count", life("enable", skills=("word-count",))),
        ("停用 word-count", life("disable", skills=("word-count",))),
        ("禁用word-count", life("disable", skills=("word-count",))),
        ("turn off the word-count skill, please", life("disable", skills=("word-count",))),
        ("把 word-count 技能停用", life("disable", skills=("word-count",))),
        ("把 word-count 卸载掉", life("uninstall", skills=("word-count",))),
        ("switch on word-count", life("enable", skills=("word-count",))),
        ("remove word-count and csv-report", life("uninstall", skills=("word-count", "csv-report"))),
        # update, outdated, verify
        ("update word-count", life("update", skills=("word-count",))),
        ("please upgrade all my skills", life("update")),
        ("更新所有技能", life("update")),
        ("is word-count up to date?", life("outdated", skills=("word-count",))),
        ("check my skills for updates", life("outdated")),
        ("which skills are outdated?", life("outdated")),
        ("word-count 有更新吗？", life("outdated", skills=("word-count",))),
        ("verify my skills", life("verify")),
        ("校验 word-count", life("verify", skills=("word-count",))),
        # questions about a skill, or about the skills of a source
        ("what does word-count do?", life("info", "word-count")),
        ("tell me about the word-count skill", life("info", "word-count")),
        ("where does word-count come from?", life("info", "word-count")),
        ("word-count 是做什么的", life("info", "word-count")),
        ("which skills are in anthropics/skills?", life("info", "anthropics/skills")),
        ("list the skills of https://github.com/a/b", life("info", "https://github.com/a/b")),
        ("anthropics/skills 里有哪些技能", life("info", "anthropics/skills")),
        # install, with the skill or the source first
        ("please install the word-count skill from a/b", life("install", "a/b", ("word-count",))),
        ("get the word-count skill from a/b", life("install", "a/b", ("word-count",))),
        ("install one-skill and another from a/b", life("install", "a/b", ("one-skill", "another"))),
        ("从 a/b 安装 word-count", life("install", "a/b", ("word-count",))),
        ("list the disabled skills", life("list")),
    ],
)
def test_a_lifecycle_verb_with_its_object_is_a_skill_command(crowd: Any, text: str, expected: Lifecycle) -> None:
    assert crowd.says(text) == expected


# a bare verb never routes


@cases("text")
def test_a_bare_verb_and_an_ordinary_sentence_are_left_to_retrieval(crowd: Any, text: str) -> None:
    assert crowd.says(text) is None


# Names as objects


@pytest.mark.requirement("LIF-9", "COV-2")
@cases("text, name, arguments")
def test_a_skills_exact_name_as_the_object_is_that_skill(
    crowd: Any, text: str, name: str, arguments: tuple[str, ...]
) -> None:
    assert crowd.says(text) == Skills(names=(name,), arguments=arguments)


@pytest.mark.parametrize(
    "text", ["run code-reviews", "the code-review was late", "run code-review-checklists", "code reviewers talk"]
)
def test_a_name_inside_another_word_or_sentence_is_not_an_object(crowd: Any, text: str) -> None:
    assert crowd.says(text) is None


@pytest.mark.parametrize("text", ["run test for me", "test this code", "run tests in the folder", "report on sales"])
def test_a_skill_with_an_ordinary_word_for_a_name_needs_to_be_called_a_skill(village: Any, text: str) -> None:
    place = village({"test": "tests things", "tests": "more", "report": "reports"})
    assert place.says(text) is None


@pytest.mark.parametrize("text", ["run the test skill", "run test", "test", "用 test 技能"])
def test_a_skill_with_an_ordinary_word_for_a_name_can_be_called(village: Any, text: str) -> None:
    assert village({"test": "tests things"}).says(text) == Skills(names=("test",))


# Scripts


@pytest.mark.requirement("SEN-4")
@cases("text, name, args")
def test_the_name_of_a_script_goes_to_the_worker(crowd: Any, text: str, name: str, args: tuple[str, ...]) -> None:
    assert crowd.says(text) == Script(name=name, args=args)


@pytest.mark.parametrize(
    "text", ["run evil", "run ../evil.py", "run bin/evil.py", "doctor who", "chat with me", "the doctor"]
)
def test_an_unlisted_script_or_a_plain_word_is_not_a_script(crowd: Any, text: str) -> None:
    assert crowd.says(text) is None


# Precedence


@pytest.mark.requirement("COV-5")
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("run skill_manager", Skills),
        ("mcp运行 skill_manager", Skills),
        ("mcp run doctor", Mcp),
        ("run doctor", Script),
        ("安装 skill_manager", type(None)),
        ("uninstall skill_manager", Lifecycle),
        ("分析 skill_manager", Lifecycle),
    ],
)
def test_a_skills_name_wins_over_mcp_over_a_script_over_a_verb(village: Any, text: str, kind: type) -> None:
    assert isinstance(village({"skill_manager": "a skill with a script's name"}).says(text), kind)


@pytest.mark.requirement("LIF-9")
@pytest.mark.parametrize("text", ["uninstall word-count", "卸载 word-count", "disable word-count", "停用word-count"])
def test_removing_a_skill_never_runs_it(crowd: Any, text: str) -> None:
    assert isinstance(crowd.says(text), Lifecycle)


# Names of skills that are not installed


@pytest.mark.requirement("SEN-6", "LIF-8", "COV-7")
@cases("text")
def test_the_name_of_a_known_sub_skill_is_an_offer_to_install_it(crowd: Any, text: str) -> None:
    assert crowd.says(text) == life("install", "acme/skills", ("web-scraper",))


@pytest.mark.requirement("SEN-6")
def test_a_known_sub_skill_may_have_a_chinese_name(crowd: Any) -> None:
    assert crowd.says("论文润色") == life("install", "acme/papers", ("论文润色",))


@pytest.mark.requirement("SEN-6")
@pytest.mark.parametrize("text", ["web-scrapers", "scrape the web", "install web-scrapers"])
def test_an_unknown_name_is_not_guessed(crowd: Any, text: str) -> None:
    assert crowd.says(text) is None


@pytest.mark.requirement("LIF-8")
@pytest.mark.parametrize("text", ["install the frobnicate skill", "安装 frobnicate 技能"])
def test_an_install_command_for_a_skill_of_no_known_repository_has_an_empty_source(crowd: Any, text: str) -> None:
    assert crowd.says(text) == life("install", skills=("frobnicate",))


@pytest.mark.requirement("COV-7")
def test_an_installed_skill_wins_over_one_that_could_be_installed(village: Any) -> None:
    place = village({"web-scraper": "ours"})
    assert place.says("web-scraper") == Skills(names=("web-scraper",))


# Abilities


@pytest.mark.requirement("OUT-5", "SEN-3")
@cases("text")
def test_a_question_for_its_abilities_is_answered_by_the_kernel(crowd: Any, text: str) -> None:
    assert crowd.says(text) == Direct(topic="capabilities")


@pytest.mark.parametrize("text", ["", "   ", "?", "!!!", "。", "\n", "a", "请", "please"])
def test_next_to_nothing_is_nothing(crowd: Any, text: str) -> None:
    assert crowd.says(text) is None


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    [
        "a" * 50_000,
        "run " * 20_000,
        "安装" * 20_000,
        "/" * 50_000,
        "a/b " * 20_000,
        "install " + "a-" * 20_000,
        "find " + "a skill " * 8_000,
        "请" * 30_000,
    ],
)
def test_no_message_takes_long(crowd: Any, text: str) -> None:
    import time

    began = time.process_time()
    crowd.says(text)
    assert time.process_time() - began < 2

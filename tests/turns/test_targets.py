"""What a message names in plain words is used, named as missing, or asked about; never is something else worked on."""

from __future__ import annotations

import json
import subprocess
from datetime import date
from pathlib import Path

import pytest

from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.files.project_files import ProjectFiles
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.config.settings import Settings
from navigator_kernel.values.reply import Reply
from navigator_kernel.values.request import Session
from tables import cases, table
from turns.conftest import Talk

TODAY = date(2026, 11, 28)
FILES = {
    "README.md": "# Shop\n\nSee [guide](docs/guide.md) and [gone](docs/gone.md).\n",
    "CHANGELOG.md": "one\ntwo\nthree\n",
    "docs/guide.md": "alpha beta alpha gamma\n",
    "docs/部署说明.md": "部署说明很短\n",
    "docs/notes.md": "one note\n",
    "archive/notes.md": "old old notes\n",
    "papers/draft 2.txt": "a draft of words\n",
    "data/订单.csv": "订单号,金额\n1,10\n2,20\n",
    "data/sales 2026.csv": "id,amount\n1,5\n2,7\n",
    "exports/customers.json": json.dumps([{"name": "Anna", "city": "Lyon", "mail": "a@b.example"}]),
    "src/shop/cart.py": "# TODO: round totals\n",
    "src/shop/payments/refunds.py": "# FIXME: tax\n",
    "src/库存/盘点.py": "# 待办：导出\n",
    "src/web/app.js": "// TODO: menu\n",
    "logs/app-2026-11-27.log": "2026-11-27 10:00:00 ERROR gateway timeout\n",
    "logs/app-2026-11-28.log": "2026-11-28 10:00:00 INFO fine\n",
    "logs/nightly/import.log": "2026-11-28 01:00:00 WARN slow\n",
    "logs/worker.log": "2026-11-28 01:00:00 ERROR mail refused\n" * 9_000,
    "old pictures/a.txt": "a\n",
    ".gitignore": "build/\n",
    "build/notes.md": "made\n",
    "vendor/lib/x.py": "# TODO: theirs\n",
}

pytestmark = [pytest.mark.requirement("SEN-2"), pytest.mark.sample(12)]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project under git, with a build folder that git ignores."""
    root = tmp_path_factory.mktemp("targets") / "shop"
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    (root / "mybox").mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=root, check=True)
    return root


def found(shop: Path, text: str) -> list[str]:
    """What the text names: paths, with `/` after folders, `a|b` for one of several, `?` before what does not exist."""
    root = shop.resolve()
    names: list[str] = []
    for target in ProjectFiles(root, root).find(text, TODAY):
        path = target.path.relative_to(root).as_posix() if target.path.is_relative_to(root) else str(target.path)
        shown = "|".join(target.choices) or ("?" * bool(target.problem) + path + "/" * target.folder)
        names += [] if target.left_out else [shown]
    return names


NAMED = [
    ("how many words are in docs/guide.md", ["docs/guide.md"]),
    ("hw many lines does the CHANGELOG.md have", ["CHANGELOG.md"]),
    ("compare docs/guide.md with CHANGELOG.md", ["docs/guide.md", "CHANGELOG.md"]),
    ("count the words in papers/draft 2.txt", ["papers/draft 2.txt"]),
    ('count the words in "draft 2.txt"', ["papers/draft 2.txt"]),
    ("summarise sales 2026.csv, please", ["data/sales 2026.csv"]),
    ("what is in cart.py?", ["src/shop/cart.py"]),
    ("how many lines has .gitignore", [".gitignore"]),
    ("统计 .gitignore 的行数", [".gitignore"]),
    ("list the .py files", []),
    ("who wrote most of the .git history", []),
    ("统计订单.csv的行数", ["data/订单.csv"]),
    ("docs/部署说明.md 有多少字", ["docs/部署说明.md"]),
    ("src/库存里还有哪些待办", ["src/库存/"]),
    ("list the TODOs left in src", ["src/"]),
    ("any fixme in the payments folder?", ["src/shop/payments/"]),
    ("what takes space in the old pictures folder", ["old pictures/"]),
    ("find todos in folder src/web", ["src/web/"]),
    ("check docs for broken links", ["docs/"]),
    ("docs 呢", ["docs/"]),
    ("库存目录里的待办", ["src/库存/"]),
    ("which error shows up in yesterday's log", ["logs/app-2026-11-27.log"]),
    ("昨天的日志里有多少个错误", ["logs/app-2026-11-27.log"]),
    ("how many warnings did the nightly import log have", ["logs/nightly/import.log"]),
    ("are there broken links in the readme", ["README.md"]),
    ("how many words are in the guide?", ["docs/guide.md"]),
    ("部署说明有多少字", ["docs/部署说明.md"]),
    ("how many words are in notes.md", ["archive/notes.md|docs/notes.md"]),
    ("count docs/notes.md and notes.md", ["docs/notes.md"]),
    ("count the words in docs/pricing.md", ["?docs/pricing.md"]),
    ("src/billing 里有哪些 TODO", ["?src/billing"]),
    ("检查 handbook 目录里的死链", ["?handbook"]),
    ("list todos in vendor/lib", ["vendor/lib/"]),
    ("what is in build/notes.md", ["build/notes.md"]),
]
NOTHING = list(table(__file__, "NOTHING"))


@pytest.mark.parametrize(("text", "names"), NAMED)
def test_what_a_message_names_is_found(shop: Path, text: str, names: list[str]) -> None:
    assert found(shop, text) == names


@pytest.mark.parametrize("text", NOTHING)
def test_a_message_that_names_nothing_names_nothing(shop: Path, text: str) -> None:
    assert found(shop, text) == []


def test_what_does_not_exist_has_the_names_that_are_like_it(shop: Path) -> None:
    [target] = ProjectFiles(shop, shop).find("count docs/giude.md", TODAY)
    assert target.problem and target.near[0] == "docs/guide.md"


def test_secrets_are_not_read_because_they_are_named(shop: Path) -> None:
    (shop / ".env").write_text("KEY=1\n")
    [target] = ProjectFiles(shop, shop).find("count the words in .env.local and ./.env", TODAY)[-1:]
    assert (target.refused, target.content) == (True, "")


def test_the_settings_of_a_repository_run_no_program(shop: Path, tmp_path: Path) -> None:
    made, hook = tmp_path / "ran", tmp_path / "hook.sh"
    hook.write_text(f"#!/bin/sh\ntouch {made}\n")
    hook.chmod(0o755)
    subprocess.run(["git", "config", "core.fsmonitor", str(hook)], cwd=shop, check=True)
    assert found(shop, "how many words are in notes.md") and not made.exists()
    subprocess.run(["git", "config", "--unset", "core.fsmonitor"], cwd=shop, check=True)


# Whole turns with the shipped skills


class Noon(SystemClock):
    """The clock of a machine whose date is TODAY."""

    def now(self) -> str:
        return f"{TODAY}T12:00:00.000Z"


@pytest.fixture
def talk(shop: Path, monkeypatch: pytest.MonkeyPatch) -> Talk:
    monkeypatch.chdir(shop)
    return Talk(kernel=Project(shop, Settings(), clock=Noon()), session=Session(id="targets"))


def skill_of(reply: Reply) -> str:
    return reply.decision.entity or ""


@cases("text, skill, fact")
def test_a_skill_works_on_what_is_named(talk: Talk, text: str, skill: str, fact: str) -> None:
    reply = talk.say(text, consent=True)
    assert (skill_of(reply), reply.report.state) == (skill, "success"), reply.report
    assert fact in reply.report.summary


@pytest.mark.requirement("RTE-18", "WFL-1")
@cases("text, skills, facts, absent")
def test_each_wish_gets_its_own_skill_and_works_on_what_it_names(
    talk: Talk, text: str, skills: tuple[str, ...], facts: tuple[str, ...], absent: str
) -> None:
    reply = talk.say(text, consent=True)
    summaries = "\n".join(report.summary for report in reply.reports)
    ran = [step.skill for step in reply.workflow.plan.steps] if reply.workflow else [skill_of(reply)]
    assert (tuple(ran), reply.report.state) == (skills, "success"), reply.report
    assert [fact for fact in facts if fact not in summaries] == []
    assert absent not in summaries


@pytest.mark.requirement("COV-6")
@cases("text, part")
def test_the_half_that_no_skill_does_is_named_before_anything_runs(talk: Talk, text: str, part: str) -> None:
    report = talk.say(text, consent=True).report
    assert (report.state, report.exit_code) == ("pending", 9)
    assert f"'{part}'" in report.summary


def test_what_must_not_be_looked_at_is_not(talk: Talk) -> None:
    reply = talk.say("do not check the links in docs")
    assert (reply.report.state, len(reply.reports), reply.decision.reason) == ("success", 1, "declined")


@cases("text, name, code")
def test_what_is_not_there_is_said_and_nothing_else_is_worked_on(talk: Talk, text: str, name: str, code: int) -> None:
    report = talk.say(text, consent=True).report
    assert (report.state, report.exit_code) == ("error", code)
    assert name in report.summary


def test_one_of_two_files_is_asked_for_and_answered_by_its_number(talk: Talk) -> None:
    reply = talk.say("how many words are in notes.md", consent=True)
    assert reply.report.state == "pending"
    assert "1 archive/notes.md  2 docs/notes.md" in reply.report.summary
    assert "docs/notes.md: 2 words" in talk.say("2", consent=True).report.summary


def test_a_folder_of_one_file_means_the_file_and_of_several_a_choice(talk: Talk, shop: Path) -> None:
    one = talk.say("how many errors are in logs/nightly", consent=True)
    assert "logs/nightly/import.log: 1 line" in one.report.summary
    (shop / "old pictures" / "linked.log").symlink_to("/etc/passwd")
    linked = talk.say("how many errors are in the old pictures folder", consent=True)
    assert "passwd" not in str(linked.report) and "a.txt" in linked.report.summary  # the link is not among its files
    several = talk.say("how many errors are in the logs folder", consent=True)
    assert several.report.state == "pending", several.report
    assert "3 logs/worker.log" in several.report.summary
    assert "logs/worker.log: 9,000 lines" in talk.say("3", consent=True).report.summary


def test_a_path_of_the_project_is_never_a_repository(talk: Talk) -> None:
    for text in (
        "show exports/customers.json",
        "分析一下 logs/nightly/import.log",
        "show src/shop",
        "add docs/guide.md to git",
    ):
        assert talk.kernel.router.recognise(text) is None, text
    assert talk.kernel.router.recognise("analyze some-owner/some-skills") is not None


def test_each_of_two_skills_gets_its_own_target(talk: Talk) -> None:
    reply = talk.say("count the words in docs/guide.md and also list the TODOs in src/web", consent=True)
    assert [report.summary.partition(":")[0] for report in reply.reports] == ["docs/guide.md", "src/web"]


def test_a_skill_for_one_file_works_on_each_of_several(talk: Talk) -> None:
    reports = talk.say("count the words in docs/guide.md and CHANGELOG.md", consent=True).reports
    assert [report.summary.partition(":")[0] for report in reports] == ["docs/guide.md", "CHANGELOG.md"]


@pytest.mark.requirement("SEN-7")
def test_what_follows_changes_only_what_it_names(talk: Talk) -> None:
    talk.say("show exports/customers.json as a table", consent=True)
    assert "1 row, 2 columns" in talk.say("only name and city", consent=True).report.summary
    talk.say("list the todos in src/shop", consent=True)
    assert "src/web: 1 mark" in talk.say("now only in src/web", consent=True).report.summary
    asked = talk.say("the same for the other one", consent=True).report
    assert (asked.state, "names nothing else" in asked.summary) == ("pending", True)
    assert "src/shop: 2 marks" in talk.say("src/shop", consent=True).report.summary
    talk.say("now only in src/web", consent=True)
    assert "the project: 4 marks" in talk.say("and overall?", consent=True).report.summary


@pytest.mark.requirement("WFL-7")
def test_each_step_works_on_its_own_folder_and_the_next_one_on_the_result(talk: Talk) -> None:
    reply = talk.say("count the words in docs/guide.md and then list the TODOs in src/web", consent=True)
    assert [step.input for step in (reply.workflow.plan.steps if reply.workflow else ())] == [
        "count the words in @docs/guide.md",
        "list the TODOs in @src/web/",
    ]
    assert "src/web: 1 mark" in reply.reports[1].summary
    reply = talk.say("find the TODOs in src/shop and then count the words of what you found", consent=True)
    assert {"word": "round", "count": 1} in reply.reports[1].data["top"]


def test_half_of_a_request_is_not_dropped(talk: Talk) -> None:
    reply = talk.say(
        "tell me how many errors yesterday's log has and then show the largest files in docs", consent=True
    )
    assert [report.target.rpartition(":")[2] for report in reply.reports] == ["log-summary", "folder-inventory"]


@pytest.mark.parametrize("text", ["how many errors are in the log", "what is in the log of the importer"])
def test_a_small_word_describes_no_file_whose_name_has_its_letters(tmp_path: Path, text: str) -> None:
    for name in ("inner.log", "areas.log"):  # "in" and "are" stand in the message
        (tmp_path / name).write_text("x\n")
    assert ProjectFiles(tmp_path, tmp_path).find(text, TODAY) == ()

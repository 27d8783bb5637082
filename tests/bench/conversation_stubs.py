"""The skills that stand in for those of a conversation, what they are told, and how the router is brought to offer them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bench.conversation_stage import Calls, Effect, Skill, Stage
from tables import table

TYPOS = ("This is teh project.\n", "This is the project.\n")
OFFICE = (
    Skill("send-report", "Sends the report by mail（发送周报邮件）", calls=(("send_mail", {}),), more="tools: [send_mail]\n"),
    Skill("db-migrate", "Migrates the database（迁移数据库）", calls=(("run_on_server", {}),), more="tools: [run_on_server]\n"),
    Skill("todo-scan", "Finds TODO comments in source code（查找代码里的待办）", calls=(("scan_files", {}),), more="tools: [scan_files]\n"),
    Skill("clean-build", "Removes what a build made（清理构建）", calls=(("run", {}),), more="allowed-tools: Read, Write, Bash\n"),
    Skill("fix-typos", "Corrects spelling mistakes in a file（修正错别字）", calls=(("edit", {}),), more="allowed-tools: Read, Edit\n"),
    Skill("fetch-page", "Gets a page of the web（抓取网页）", more="network: true\n"),
    Skill("word-count", "Counts words, lines and characters of a text file（统计文件的字数）"),
    Skill("translate", "Translates a text into another language（翻译成别的语言）"),
)  # fmt: skip
PLAIN = (
    Skill("word-count", "Counts words, lines and characters of a text file（统计文件的字数）"),
    Skill("csv-report", "Summarises a CSV file as a table, by month or another column（汇总 CSV 表格数据）"),
    Skill("translate", "Translates a text into another language（翻译成别的语言）"),
    Skill("todo-scan", "Finds TODO comments in source code（查找代码里的待办、todo）"),
    Skill("log-summary", "Sums up a log file（汇总日志文件）"),
    Skill("fetch-page", "Gets a page of the web（抓取网页）"),
    Skill("fix-typos", "Corrects spelling mistakes in a file（修正错别字）"),
    Skill("send-report", "Sends the report by mail（发送周报邮件）"),
    Skill("slack-post", "Posts a message to a Slack channel（发 Slack 消息）"),
    Skill("pdf", "Makes a PDF file（做成 PDF）"),
)
ASKING = table(__file__, "ASKING")
EFFECT_OF = {"send_mail": "send-report", "run_on_server": "db-migrate", "scan_files": "todo-scan"}
SAID = table(__file__, "SAID")


class Wanted(NamedTuple):
    """The project that a row needs: rows with the same `key` share one, each after it was put back."""

    key: str
    skills: Sequence[Skill]
    model: bool = False
    settings: str = ""
    warm: Sequence[str] = ()


def office() -> Wanted:
    return Wanted("office", OFFICE, model=True, warm=("hello", "你好"))


def plain() -> Wanted:
    return Wanted("plain", PLAIN, warm=("hello", "你好"))


def asking() -> Wanted:
    def one(name: str, parameter: str, asked: str, what: str) -> Skill:
        more = f'required_params: \'[{{"name": "{parameter}", "prompt": "{asked}"}}]\'\n'
        return Skill(name, what, arguments=f"{{{parameter}}}", more=f"metadata:\n  navigator-{more}")

    others = [skill for skill in PLAIN if skill.name not in ASKING]
    return Wanted("missing", [*(one(name, *facts) for name, facts in ASKING.items()), *others], warm=("hello", "你好"))


def calls_of(name: str, context: str) -> Calls:
    """What the model does for this skill: the recipient and the command are those of the context."""
    mails, commands = re.findall(r"[\w.+-]+@[\w-]+\.[\w.]*\w", context), re.findall(r"`([^`]+)`", context)
    match name:
        case "send-report":
            return (("send_mail", {"to": ", ".join(mails) or "team@example.com", "subject": "Weekly report"}),)
        case "db-migrate":
            return (("run_on_server", {"command": commands[0] if commands else "alembic upgrade head"}),)
        case "clean-build":
            made = ("write", {"file_path": "build/made.txt", "content": "made\n"})
            return (made, ("run", {"command": commands[0] if commands else "rm -rf build/"}))
        case "fix-typos":
            return (("edit", {"file_path": "README.md", "old_string": TYPOS[0], "new_string": TYPOS[1]}),)
        case "todo-scan":
            count = re.search(r"\d+", context)
            return (("scan_files", {"count": int(count.group()) if count else 1200}),)
    return ()


def name_of(effect: Effect) -> str:
    return EFFECT_OF.get(effect.name, effect.name)


def happened(stage: Stage, name: str) -> int:
    """How often the effect of the skill has happened."""
    if name == "fix-typos":
        return int(TYPOS[1] in (stage.place.root / "README.md").read_text("utf-8"))
    if name == "clean-build":
        made = {path.parent.parent for path in (stage.place.root / "mybox/workspace").glob("*/build/made.txt")}
        folders = [path for path in (stage.place.root / "mybox/workspace").glob("*") if path.is_dir()]
        return sum(folder not in made for folder in folders if _wrote(stage, folder.name))
    return sum(name_of(effect) == name for effect in stage.effects())


def _wrote(stage: Stage, run: str) -> bool:
    """Whether the model wrote the file in this run that the command then removes."""
    log = stage.place.root / "mybox/logs/runs" / f"{run}.jsonl"
    return log.is_file() and "made.txt" in log.read_text("utf-8")


class Offer(NamedTuple):
    """How the router is brought to offer skills for the message of a context: their descriptions in the order of the
    offer, others beside them, and settings. `language` is the only one that it works in, `said` a message to send
    instead."""

    skills: Mapping[str, str]
    beside: Mapping[str, str] = {}
    settings: str = ""
    language: str = ""
    said: str = ""


# Found by search: with these descriptions the router offers exactly these skills for the messages of the contexts
OFFERS = (
    Offer({"word-count": "Size of files（文件大小）"}),
    Offer({"csv-report": "Summarises columns of CSV files（汇总 CSV 的列）"}),
    Offer({"translate": "Translates text into English（翻译成英文）"}),
    Offer(
        {
            "pdf": "A document（文档）",
            "docx": "Makes Word documents（Word 文档）",
            "xlsx": "documents in Excel（文档）",
        },
        language="en",
    ),
    Offer(
        {
            "pdf": "Makes documents of notes（笔记、文档）",
            "docx": "documents（文字）",
            "xlsx": "documents, numbers（数字、文档）",
        },
        settings='encoder = "off"\n',
        language="zh",
    ),
    Offer(
        {
            "todo-scan": "Goes over a repository: TODO",
            "lint-check": "Goes over a repository: lint",
            "secret-scan": "Goes over a repository: secrets",
        },
        language="en",
        said="look over my repo",  # `check` would name lint-check, which is then taken
    ),
    Offer(
        {
            "todo-scan": "看看仓库里的待办",
            "lint-check": "格式，仓库",
            "secret-scan": "密码，仓库",
        },
        settings='boldness = "cautious"\n',
        language="zh",
    ),
    Offer(
        {"send-report": "Sends the team a message by mail", "slack-post": "Sends the team a message by Slack"},
        language="en",
    ),
    Offer({"send-report": "团队消息", "slack-post": "发消息（团队）"}, language="zh"),
)

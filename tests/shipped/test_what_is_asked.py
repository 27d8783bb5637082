"""The sentence of a shipped skill tells the fact that a message asks for, or says that the skill cannot tell it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from shipped.place import Place
from skill_repositories import git

pytestmark = pytest.mark.requirement("SEN-2", "X-10")

NOTES = "# Notes\n\nThe crew met. The crew ate.\nA crewman sang.\n\nEnd\n"
LOG = (
    "2026-09-01 10:00:00 ERROR first thing broke\n2026-09-01 10:05:00 INFO timeout of 3\n"
    "2026-09-01 10:06:00 ERROR second thing broke\n2026-09-01 10:07:00 INFO timeout again\n"
)


def answer_of(place: Place, message: str) -> str:
    """The summary of the reply, and after a question which skill is meant, of the skill that is about the file."""
    talk = place.talk()
    report = talk.say(message).report
    offered = report.data.get("options", ())
    owner = "word-count" if "notes.md" in message else "log-summary" if "app.log" in message else "git-summary"
    at = list(offered).index(owner) + 1 if owner in offered else 0
    meant = "" if not at else "y" if len(offered) == 1 else str(at)
    return (talk.say(meant).report if meant else report).summary


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("how often does the word crew appear in notes.md", "notes.md: 11 words, 58 characters, 6 lines; “crew” comes 2 times"),
        ("how many times is 'crew' used in notes.md", "; “crew” comes 2 times"),
        ("notes.md 里 crew 这个词一共出现了几次", "；“crew”出现 2 次"),
        ("how many paragraphs has notes.md", "; 3 paragraphs"),
        ("how many characters without spaces are in notes.md", "; 44 characters without spaces"),
        ("how many words has notes.md", "notes.md: 11 words, 58 characters, 6 lines; the most frequent is “crew”, 2 times"),
        ("what is the last error in app.log", "; last error: 2026-09-01 10:06:00 ERROR second thing broke"),
        ("app.log 最早的错误是什么", "；最早的错误：2026-09-01 10:00:00 ERROR first thing broke"),
        ("how many lines of app.log contain timeout", "; 2 lines with 'timeout'"),
        ("first and last timestamp of app.log", "; from 2026-09-01 10:00:00 to 2026-09-01 10:07:00"),
        ("errors after 10:02 in app.log", "this skill cannot limit or order its answer by 'after 10:02'"),
        ("app.log 10点以后的错误", "这个技能不能按 '10点以后' 限定或排序"),
    ],
)  # fmt: skip
def test_the_fact_that_is_asked_for_is_told(place: Place, message: str, told: str) -> None:
    place.write("notes.md", NOTES)
    place.write("app.log", LOG)
    assert told in answer_of(place, message)


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("who made the last commit?", "; last: 2026-03-02T00:00:00Z by Ben: second"),
        ("what was the first commit here", "; first: 2026-03-01T00:00:00Z by Ann: first"),
        ("最近一次提交是谁做的", "；最后一次：2026-03-02T00:00:00Z，Ben：second"),
    ],
)
def test_the_commit_that_is_asked_for_is_told(place: Place, message: str, told: str) -> None:
    person = "<a@b.invalid>"
    stream = ""
    for who, day, why in (("Ann", 1, "first"), ("Ben", 2, "second")):
        when = int(datetime(2026, 3, day, tzinfo=UTC).timestamp())
        stream += f"commit refs/heads/main\ncommitter {who} {person} {when} +0000\ndata {len(why)}\n{why}\n"
    git(place.root, "init", "--quiet", "--initial-branch=main")
    git(place.root, "fast-import", "--quiet", stdin=stream.encode())
    assert told in answer_of(place, message)

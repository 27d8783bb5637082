"""The run logs of whole turns equal the stored ones, byte for byte."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

TURNS: dict[str, tuple[str, ...]] = {
    "capabilities": ("what can you do?",),
    "capabilities-zh": ("你能做什么？",),
    "direct": ("hello there, my friend",),
    "direct-zh": ("今天天气怎么样",),
    "called-with-a-file": ("/code-review @a.py",),
    "found-by-its-words": ("review this code: return a - b",),
    "found-by-its-words-zh": ("审查这段代码",),
    "run-on-a-file": ("/csv-report @sales.csv",),
    "script": ("run skill_manager search shout-loud",),
    "unknown-skill": ("/code-reviw",),
    "missing-file": ("look at @nowhere.py",),
    "ambiguous": ("paint watercolours of boats at sea", "bob-painter"),
    "asked-and-answered": ("/word-count", "to be or not to be"),
    "asked-and-answered-zh": ("执行 word-count", "生存还是毁灭"),
    "asked-and-left": ("/word-count", "/code-review @a.py"),
    "agreed": ("/shout-loud hello", "yes"),
    "agreed-zh": ("/shout-loud 你好", "是"),
    "declined": ("!echo hello", "no"),
    "shell": ("!echo hello", "yes"),
    "mcp-without-uri": ("mcp read files",),
    "followed-up": ("/code-review @a.py", "and again", "stop"),
    "several-instructions": ("/code-review a\n/word-count b",),
    "workflow": ("#release",),
}


@pytest.mark.requirement("EVT-1", "EVT-7")
@pytest.mark.parametrize("name", list(TURNS))
def test_a_turns_log_is_what_it_was(talk: Any, name: str) -> None:
    for text in TURNS[name]:
        talk.say(text)
    talk.matches(name)


@pytest.mark.requirement("EVT-7")
def test_a_failing_skills_log_is_what_it_was(talk: Any) -> None:
    talk.say("/fail-hard now", consent=True)
    talk.matches("failed")


@pytest.mark.requirement("EVT-7")
def test_a_turn_that_is_taken_twice_leaves_the_same_log(talker: Any) -> None:
    first, second = talker(), talker()
    first.say("/csv-report @sales.csv")
    before = first.log()
    shutil.rmtree(first.kernel.root / "mybox" / "workspace")  # the next run gets the same name
    second.say("/csv-report @sales.csv")
    assert second.log() == before + before

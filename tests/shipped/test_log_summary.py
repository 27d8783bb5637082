"""log-summary: the figures match the generated lines, in every format that loggers write."""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from shipped.place import ESCAPES, Place, script_of
from tables import cases, table

pytestmark = pytest.mark.sample(1)

LEVELS = ("DEBUG", "INFO", "WARN", "ERROR", "FATAL")
MESSAGES: dict[str, Callable[[random.Random], str]] = {
    "user <n> logged in": lambda dice: f"user {dice.randint(1, 10**9)} logged in",
    "cannot reach <ip> after <n>ms": lambda dice: (
        f"cannot reach 10.0.{dice.randint(0, 255)}.7:80 after {dice.randint(1, 99)}ms"
    ),
    "request <id> failed": lambda dice: f"request {uuid.UUID(int=dice.getrandbits(128))} failed",
    "block <hex> at <hex> is gone": lambda dice: (
        f"block {dice.getrandbits(64):015x}a1 at 0x{dice.getrandbits(16):x} is gone"
    ),
    "用户 <n> 登录失败": lambda dice: f"用户 {dice.randint(1, 99)} 登录失败",
}
FORMS: dict[str, str] = table(__file__, "FORMS")


def lines(form: str, seed: int) -> tuple[list[str], Counter[tuple[str, str]]]:
    """A made-up log, and the count of each message at each level."""
    dice = random.Random(seed)
    counts: Counter[tuple[str, str]] = Counter()
    found: list[str] = []
    for at in range(dice.randint(200, 400)):
        level, settled = dice.choice(LEVELS), dice.choice(list(MESSAGES))
        said = MESSAGES[settled](dice)
        found.append(FORMS[form].format(m=at // 60, s=at % 60, level=level, lower=level.lower(), said=said))
        counts[settled, level] += 1
    return found, counts


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("seed", range(2))
def test_levels_and_messages_are_counted(place: Place, form: str, seed: int) -> None:
    written, counts = lines(form, seed)
    place.write("server.log", "\n".join(written))
    data = place.data("/log-summary @server.log top=50")
    assert data["lines"] == len(written)
    assert data["levels"] == {
        level: sum(number for (_, of), number in counts.items() if of == level) for level in data["levels"]
    }
    assert {(told["message"], told["level"]): told["count"] for told in data["messages"]} == dict(counts)
    assert (data["continued"], data["approximate"], data["distinct"]) == (0, False, len(counts))


@cases("form, first, last")
def test_the_first_and_the_last_time_keep_their_form(place: Place, form: str, first: str, last: str) -> None:
    written = lines(form, 1)[0][:200]
    place.write("server.log", "\n".join(written))
    data = place.data("/log-summary @server.log")
    assert (data["first"], data["last"][: len(last)]) == (first, last)


@cases("line, level")
def test_levels_have_one_name_each(place: Place, line: str, level: str) -> None:
    data = place.script("log-summary", place.write("a.log", line)).data
    assert data["levels"] == {level: 1}


def test_continuation_lines_are_counted_and_have_no_level_of_their_own(place: Place) -> None:
    text = (
        "2026-01-31 09:30:00 ERROR boom\nTraceback (most recent call last):\n  File 'x.py', line 3\nValueError: no\n\n"
    )
    data = place.script("log-summary", place.write("a.log", text + "2026-01-31 09:31:00 INFO on\n")).data
    assert (data["lines"], data["continued"], data["blank"], data["levels"]) == (6, 3, 1, {"ERROR": 1, "INFO": 1})


@pytest.mark.parametrize(
    "text", ["分析这个日志文件 @server.log", "how many errors are in this log: @server.log", "/log-summary server.log"]
)
def test_it_is_found_by_its_words_and_by_name(place: Place, text: str) -> None:
    place.write("server.log", "ERROR x\n")
    assert place.data(text)["levels"] == {"ERROR": 1}


def test_a_log_that_is_too_large_for_a_message_is_named_without_the_mark(place: Place) -> None:
    place.write("server.log", "INFO x\n" * 100_000)  # 700 kB
    assert place.data("/log-summary server.log")["lines"] == 100_000


def test_at_most_as_many_messages_are_listed_as_are_wanted(place: Place) -> None:
    written = "\n".join(f"INFO {chr(97 + at // 26)}{chr(97 + at % 26)}!" for at in range(100))
    path = place.write("a.log", written)
    assert len(place.script("log-summary", path).data["messages"]) == 10
    assert len(place.script("log-summary", "--top", "3", path).data["messages"]) == 3


@pytest.mark.parametrize("top", ["0", "51", "-1", "x", "٣", "1e1", ""])
def test_a_number_of_messages_is_1_to_50(place: Place, top: str) -> None:
    assert "is no number of messages" in place.script("log-summary", f"--top={top}", place.write("a", "x")).complaint


@pytest.mark.parametrize(("content", "said"), [(b"", "the file is empty"), (b"\xef\xbb\xbf", "the file is empty")])
def test_an_empty_file_is_reported_as_empty(place: Place, content: bytes, said: str) -> None:
    assert place.script("log-summary", place.write("a.log", content)).complaint == said


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"INFO caf\xe9", "café"),
        ("INFO 你好".encode("gb18030"), "你好"),
        (gzip.compress(b"INFO x", mtime=0), "x"),
        ("INFO 你好".encode("utf-16"), "你好"),
        (f"INFO {ESCAPES}end".encode(), "red end"),
        (b"INFO \0\0\0x", "x"),
        (b"INFO " + b"y" * 10_000, "y" * 200),
        (b"INFO a\tb   c", "a b c"),
        (b'{"level": "info", "msg": "' + b"[" * 300 + b'"}', "[" * 200),
        (b'{"a":' * 20_000, '{"a":' * 40),
        (b"\r\nINFO x\r\n", "x"),
    ],
)
def test_any_bytes_become_clean_text(place: Place, content: bytes, message: str) -> None:
    data = place.script("log-summary", place.write("a.log", content)).data
    assert [told["message"] for told in data["messages"]] == [message]


@pytest.mark.wide
def test_a_large_log_is_not_held_in_memory(place: Place) -> None:
    line = "2026-01-31 09:30:00 INFO " + "x" * 975 + "\n"
    path = place.write("large.log", line * 80_000 + "y" * (60 * 2**20))  # 140 MB; the last line has no newline
    data = place.script("log-summary", path, memory=110 * 2**20).data
    assert (data["lines"], data["levels"]) == (80_001, {"INFO": 80_000})


@pytest.mark.wide
def test_very_many_different_messages_are_counted_roughly(place: Place) -> None:
    dice = random.Random(1)
    words = ["".join(dice.choices("ghijklmnop", k=9)) for _ in range(120_000)]
    text = "\n".join(f"INFO {word}\nINFO often" for word in words)
    data = place.script("log-summary", place.write("a.log", text)).data
    assert (data["approximate"], data["messages"][0]) == (True, {"message": "often", "level": "INFO", "count": 120_000})


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "line", ["[" * 15_000, '"' * 15_000, "a1" * 7_500, "0-" * 7_500, 'msg="' + "\\" * 14_000, " " * 15_000 + "x"]
)
def test_no_line_takes_long(place: Place, line: str) -> None:
    assert place.script("log-summary", place.write("a.log", f"{line}\n" * 2_000)).data["lines"] == 2_000


def test_its_own_eval_is_right(place: Place) -> None:
    path = script_of("log-summary").parents[1] / "evals" / "files" / "server.log"
    data: Any = place.script("log-summary", path).data
    assert json.dumps(data["levels"]) == '{"ERROR": 2, "WARN": 1, "INFO": 3}'
    assert (data["lines"], data["continued"], data["first"]) == (7, 1, "2026-01-31 09:30:00,120")
    assert {"message": "user <n> logged in", "level": "INFO", "count": 2} in data["messages"]


def usual(errors: int, warnings: int, others: int, *, form: str = "2026-09-01 10:00:{s:02} {level} {text}") -> str:
    """A log with that many lines of each kind; one error in four is another one."""
    kinds = [("INFO", "page {} shown")] * others + [("WARN", "磁盘还剩 {} MB")] * warnings
    kinds += [("ERROR", "支付 {} 超时" if at % 4 else "cannot open file {}") for at in range(errors)]
    random.Random(1).shuffle(kinds)
    lines = [form.format(s=at % 60, level=level, text=text.format(at)) for at, (level, text) in enumerate(kinds)]
    return "".join(f"{line}\n" for line in lines)


BRACKETS = "[2026-09-01T10:00:{s:02}Z] [{level}] {text}"
EVERYDAY = (  # language, file, encoding, text
    ("en", "app.log", "utf-8", usual(9, 4, 30)),
    ("en", "logs/worker.log", "utf-8", usual(1, 1, 0)),
    ("en", "logs/app.log.1", "utf-8", usual(5, 0, 10)),
    ("en", "logs/app.log.2.gz", "utf-8", usual(7, 3, 50)),
    ("en", "many infos.log", "utf-8", usual(3, 2, 12_000)),
    ("en", "brackets.log", "utf-8", usual(6, 6, 6, form=BRACKETS)),
    ("en", "wide.log", "utf-16", usual(4, 1, 5)),
    ("en", "bom.log", "utf-8-sig", usual(4, 1, 5)),
    ("en", "quiet.log", "utf-8", usual(0, 0, 12)),
    ("en", "only warnings.log", "utf-8", usual(0, 5, 2)),
    ("zh", "应用.log", "utf-8", usual(9, 4, 30)),
    ("zh", "日志/夜间 导入.log", "utf-8", usual(13, 9, 60)),
    ("zh", "旧编码.log", "gb18030", usual(8, 2, 40)),
    ("zh", "旧编码.log.1", "gb18030", usual(3, 2, 2, form=BRACKETS)),
    ("zh", "归档.log.3.gz", "gb18030", usual(6, 5, 4)),
    ("zh", "宽字符.log", "utf-16", usual(4, 1, 5)),
    ("zh", "很多.log", "gb18030", usual(30, 20, 9_000)),
    ("zh", "一行.log", "utf-8", usual(1, 0, 0)),
    ("zh", "没有错误.log", "utf-8", usual(0, 1, 20)),
    ("zh", "app.log", "utf-8", usual(11, 11, 11)),
)


def lines_with(words: str, text: str) -> int:
    env = {**os.environ, "LC_ALL": "C.UTF-8"}
    return int(subprocess.run(["grep", "-cE", words], input=text.encode(), env=env, capture_output=True).stdout)


@pytest.mark.parametrize(("language", "file", "encoding", "text"), EVERYDAY, ids=lambda value: str(value)[:16])
def test_errors_and_warnings_are_those_that_grep_counts(
    place: Place, language: str, file: str, encoding: str, text: str
) -> None:
    content = text.encode(encoding)
    place.write(file, gzip.compress(content) if file.endswith(".gz") else content)
    data = place.answer("log-summary", file, language=language)
    errors, warnings, lines = (lines_with(words, text) for words in (" .?ERROR", " .?WARN", ""))
    assert (data["errors"], data["warnings"], data["lines"]) == (errors, warnings, lines)
    tops = {top["message"]: top["count"] for top in data["top_errors"]}
    times = {"支付 <n> 超时": lines_with("超时", text), "cannot open file <n>": lines_with("cannot open", text)}
    assert tops == {message: count for message, count in times.items() if count}
    assert {top["message"]: top["count"] for top in data["top_warnings"]} == (
        {"磁盘还剩 <n> MB": warnings} if warnings else {}
    )
    assert data["encoding"] == encoding.removesuffix("-sig") and data["summary"].startswith(file)
    if errors:
        first = max(times, key=times.__getitem__)
        assert first in data["summary"] and f"- {times[first]} × ERROR {first}" in data["text"].splitlines()


@cases("language, text, summary")
def test_the_summary_is_a_sentence_of_the_persons_language(
    place: Place, language: str, text: str, summary: str
) -> None:
    assert place.answer("log-summary", place.write("a.log", text), language=language)["summary"] == summary


def test_a_damaged_archive_is_an_error(place: Place) -> None:
    path = place.write("a.log.gz", gzip.compress(b"INFO x\n" * 1_000)[:-20])
    assert "cannot be read" in place.script("log-summary", path).complaint


DAYS = """\
2026-11-20 10:00:00 ERROR first
  at line 1
20/Nov/2026:11:00:00 +0000 WARN second
{"time": "2026-11-21T09:00:00Z", "level": "error", "msg": "third"}
[2026/11/22 08:00:00] INFO fourth
{"ts": 1795449600, "level": 50, "msg": "fifth"}
"""  # the last is of 2026-11-23, 16:00 UTC


@pytest.mark.requirement("PRE-10")
@cases("since, until, lines, errors")
def test_only_the_lines_of_the_days_that_are_asked_for_count(
    place: Place, since: str, until: str, lines: int, errors: int
) -> None:
    given = place.script("log-summary", "--since", since, "--until", until, place.write("a.log", DAYS)).data
    assert (given["lines"], given["errors"]) == (lines, errors)
    assert (
        "the file covers 2026-11-20 to 2026-11-2" in given["summary"] if not lines else "covers" not in given["summary"]
    )


def test_a_log_without_dates_cannot_be_asked_for_a_day_and_the_log_of_a_day_is_counted_whole(place: Place) -> None:
    words = ("--since", "2026-11-20", "--until", "2026-11-20")
    none = place.script("log-summary", *words, place.write("a.log", "ERROR x\n")).complaint
    named = place.script("log-summary", *words, place.write("app-2026-11-20.log", "2026-11-19 23:59:59 ERROR x\n")).data
    assert "no line of 'a.log' has a date" in none and named["errors"] == 1


@pytest.mark.parametrize("text", ["how many errors are in a.log on 2026-11-21", "a.log 里 2026年11月21日 有多少错误"])
def test_the_days_of_a_message_reach_the_skill(place: Place, text: str) -> None:
    place.write("a.log", DAYS)
    assert place.ask(text).data["lines"] == 1


@pytest.mark.requirement("SEN-2")
@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("errors only in app.log", "app.log: 4 lines, 2 errors; most frequent: disk full (2 times)"),
        ("warnings in app.log", "app.log: 4 lines, 1 warning; most frequent: low (1 time)"),
        ("看看 app.log，只看 error", "app.log：4 行，2 个错误；最常见的：disk full（2 次）"),
    ],
)
def test_only_the_levels_of_a_message_are_told(place: Place, message: str, expected: str) -> None:
    place.write("app.log", "".join(f"2026-09-01 10:00:0{at} {text}\n" for at, text in enumerate(("INFO up", "ERROR disk full", "WARN low", "ERROR disk full"))))  # fmt: skip
    report = place.ask(message)
    assert report.summary == expected
    assert "up" not in report.data["text"]


def test_a_limit_that_it_does_not_take_is_refused(place: Place) -> None:
    place.write("app.log", "2026-09-01 10:00:00 ERROR disk full\n")
    report = place.ask("errors in app.log, grouped by hour")
    assert report.state == "error"
    assert "cannot limit or order its answer by" in report.summary

"""Sums up a log file: lines per level, its first and last time, its most frequent messages, as one JSON object."""

import argparse
import gzip
import io
import json
import os
import re
import sys
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

CHINESE = os.environ.get("NAVIGATOR_LANGUAGE") == "zh"
LEVELS = {"ERR": "ERROR", "SEVERE": "ERROR", "WARNING": "WARN", "INFORMATION": "INFO", "VERBOSE": "TRACE"}
LEVELS |= {"CRIT": "CRITICAL", "PANIC": "FATAL", "EMERG": "FATAL", "FINE": "DEBUG"}
ERRORS = frozenset({"FATAL", "CRITICAL", "ALERT", "ERROR"})
SERIOUS = ERRORS | {"WARN"}  # levels whose messages are forgotten last
ORDER = ("FATAL", "CRITICAL", "ALERT", "ERROR", "WARN", "NOTICE", "INFO", "DEBUG", "TRACE")
_WORDS = "|".join([*ORDER, *LEVELS])
_HAN = {"致命": "FATAL", "严重": "CRITICAL", "错误": "ERROR", "警告": "WARN", "告警": "WARN"}
_HAN |= {"信息": "INFO", "调试": "DEBUG"}
_HANS = "|".join(_HAN)
LEVEL = re.compile(
    rf"(?<![\w.-])({_WORDS})(?![\w-])"  # the word in capitals
    rf"|(?i:\blevel[\"']?\s?[=:]\s?[\"']?({_WORDS})\b|[\[<(【]({_WORDS}|{_HANS})[\])>:】]|^({_WORDS})\s?:)|^\s*({_HANS})[\s:：]"
)
LEVELS |= _HAN
_CLOCK = r"\d{2}:\d{2}:\d{2}(?:[.,]\d{1,9})?"
_ZONE = r"(?:\s?(?:Z\b|[+-]\d{2}:?\d{2}\b))?"
TIME = re.compile(
    rf"\d{{4}}[-/.]\d{{2}}[-/.]\d{{2}}[T ]{_CLOCK}{_ZONE}"
    rf"|\d{{1,2}}/[A-Z][a-z]{{2}}/\d{{4}}:{_CLOCK}{_ZONE}"
    rf"|\b[A-Z][a-z]{{2}} [ \d]\d {_CLOCK}(?: \d{{4}}\b)?"
)
VARYING = re.compile(
    r"\b(?P<id>[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})\b"
    r"|\b(?P<ip>\d{1,3}(?:\.\d{1,3}){3})(?::\d+)?\b"
    r"|\b(?P<hex>0x[0-9a-fA-F]+|(?=[a-fA-F]*\d)(?=\d*[a-fA-F])[0-9a-fA-F]{4,})\b"
    r"|(?P<n>\d+)"
)
SAID = re.compile(r"\bmsg=(?:\"((?:[^\"\\]|\\.)*)\"?|(\S+))")  # the message of a line of `name=value`
EMPTY = re.compile(r"\[\s*\]|【\s*】|\(\s*\)|<\s*>|\"\s*\"")  # what is left round a time or a level
ESCAPE = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.?")
HIDDEN = frozenset({"Cc", "Cf", "Zl", "Zp"})
EDGE = " \t\r\n-:|,;\"'"  # what is left beside them
KEYS = (
    ("time", "timestamp", "ts", "@timestamp", "asctime", "date"),
    ("level", "lvl", "severity", "levelname", "log.level"),
    ("msg", "message", "event"),
)
NUMBERS = {10: "TRACE", 20: "DEBUG", 30: "INFO", 40: "WARN", 50: "ERROR", 60: "FATAL"}  # as bunyan and pino write them
LINE = 16_000  # characters of a line that are read
CUT = 500  # characters of a line that are looked at where it is no JSON
TEXT = 200  # characters of a message that count
ASCII = bytes(range(128))
UTF_8 = re.compile(rb"(?:[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})+")
GB = re.compile(rb"(?:[\x81-\xfe][\xa1-\xfe])+")
MOST = 0.8  # of the bytes beyond ASCII that tell an encoding
CHUNK = 2**20  # bytes
HEAD = 120  # characters in which a time and a level are looked for
DISTINCT = 50_000  # messages that are counted apart; beyond it the rare ones are forgotten
LISTED = 10
MOST_LISTED = 50  # messages that may be asked for


DATE = re.compile(
    r"(?P<y>\d{4})[-/.](?P<m>\d{2})[-/.](?P<d>\d{2})"
    r"|(?P<d2>\d{1,2})/(?P<b>[A-Z][a-z]{2})/(?P<y2>\d{4})"
    r"|(?P<b3>[A-Z][a-z]{2}) +(?P<d3>\d{1,2}) \S+(?: (?P<y3>\d{4}))?"
)
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass
class Found:
    """What the lines of the days from `since` to `until` hold. `begin` and `end` are the first and the last day of the
    whole file, `inside` says whether the line before was of these days."""

    since: date | None = None
    until: date | None = None
    begin: date | None = None
    end: date | None = None
    inside: bool = True
    lines: int = 0
    blank: int = 0
    continued: int = 0
    structured: bool = False
    levels: Counter[str] = field(default_factory=Counter)
    messages: Counter[tuple[str, str]] = field(default_factory=Counter)
    first: str | None = None
    last: str | None = None
    approximate: bool = False
    word: str = ""
    with_word: int = 0
    of_errors: dict[str, str] = field(default_factory=dict)  # the first and the last line of an error


def summary(
    path: Path,
    source: str,
    top: int,
    since: date | None,
    until: date | None,
    wanted: frozenset[str] = frozenset(),
    which: str = "",
    word: str = "",
) -> dict[str, object]:
    """`{summary, lines, levels, errors, warnings, top_errors, first, last, messages: [{message, level, count}], …}`."""
    if since and since == until and re.search(since.strftime("%Y[-_.]?%m[-_.]?%d"), path.name):
        since = until = None  # the log of that day, whole
    found, encoding = Found(since, until, inside=not (since or until), word=word.casefold()), encoding_of(path)
    empty = True
    for line in lines(path, encoding):
        empty = False
        note(line, found)
    if empty:
        raise SystemExit(say("the file is empty", "文件是空的"))
    if (since or until) and not found.begin:
        raise SystemExit(say(f"no line of {source!r} has a date that can be read", f"{source!r} 中没有可读取的日期"))
    levels = {name: found.levels[name] for name in (*ORDER, "none") if found.levels[name]}
    levels = {name: times for name, times in levels.items() if not wanted or name in wanted}
    messages_of = {key: times for key, times in found.messages.items() if not wanted or key[0] in wanted}
    common = sorted(messages_of.items(), key=lambda item: (-item[1], item[0]))
    messages = [{"message": plain(text), "level": level, "count": times} for (level, text), times in common]
    errors = [message for message in messages if message["level"] in ERRORS]
    warnings = [message for message in messages if message["level"] == "WARN"]
    figures: dict[str, Any] = {
        "lines": found.lines,
        "blank": found.blank,
        "continued": found.continued,
        "levels": levels,
        "errors": sum(found.levels[level] for level in ERRORS),
        "warnings": found.levels["WARN"],
        "top_errors": errors[:top],
        "top_warnings": warnings[:top],
        "first": plain(found.first) if found.first else None,
        "last": plain(found.last) if found.last else None,
        "distinct": len(messages_of),
        **({"only": sorted(wanted, key=ORDER.index)} if wanted else {}),
        "approximate": found.approximate,
        **({"word": word, "lines_with_word": found.with_word} if word else {}),
        **{f"{kind}_error": error for kind, error in found.of_errors.items() if kind in which.split(",")},
        "messages": messages[:top],
    }
    about = {"source": source, "encoding": encoding.removesuffix("-sig")}
    return {
        "summary": sentence(source + days_of(found), figures) + told(figures, which) + covered(found),
        **about,
        **figures,
        "text": text_of(figures),
    }


def told(figures: dict[str, Any], about: str) -> str:
    """The clauses of the lines with a word, and of the first and the last error, where they are asked for."""
    clauses = ""
    if "word" in figures:
        number = figures["lines_with_word"]
        clauses += say(
            f"; {many(number, 'line')} with {figures['word']!r}", f"；含“{figures['word']}”的有 {number:,} 行"
        )
    for kind, english, chinese in (("last", "last error", "最后的错误"), ("first", "first error", "最早的错误")):
        if kind in about.split(",") and (error := figures.get(f"{kind}_error")):
            clauses += say(f"; {english}: {error}", f"；{chinese}：{error}")
    return clauses


def sentence(source: str, figures: dict[str, Any]) -> str:
    """Lines, errors, warnings, the most frequent error, the first and the last time, in the person's language."""
    if "only" in figures:
        return sentence_of_levels(source, figures)
    total, errors, warnings = (figures[name] for name in ("lines", "errors", "warnings"))
    unnamed = total and not set(figures["levels"]) - {"none"}
    first = next(iter(figures["top_errors"]), {"message": "", "count": 0})
    begin, end = figures["first"], figures["last"]
    if CHINESE:
        clauses = [f"{total:,} 行，{errors:,} 个错误、{warnings:,} 个警告{'（没有写明级别的行）' if unnamed else ''}"]
        clauses += [f"最常见的错误：{first['message']}（{first['count']:,} 次）"] if errors else []
        return f"{source}：{'；'.join([*clauses, *([f'从 {begin} 到 {end}'] if begin else [])])}"
    counts = f"{many(total, 'line')}, {many(errors, 'error')}, {many(warnings, 'warning')}"
    clauses = [f"{counts}{' (no line names a level)' if unnamed else ''}"]
    clauses += [f"most frequent error: {first['message']} ({many(first['count'], 'time')})"] if errors else []
    return f"{source}: {'; '.join([*clauses, *([f'from {begin} to {end}'] if begin else [])])}"


def sentence_of_levels(source: str, figures: dict[str, Any]) -> str:
    """How many of the lines have the levels that are asked for, and their most frequent message."""
    only, counts = list(figures["only"]), []
    if set(only) >= ERRORS:
        counts.append(say(many(figures["errors"], "error"), f"{figures['errors']:,} 个错误"))
        only = [level for level in only if level not in ERRORS]
    for level in only:
        times, thing = figures["levels"].get(level, 0), "warning" if level == "WARN" else f"{level} line"
        counts.append(say(many(times, thing), f"{times:,} 个警告" if level == "WARN" else f"{times:,} 行 {level}"))
    lines = say(many(figures["lines"], "line"), f"{figures['lines']:,} 行")
    summary = say(f"{source}: {lines}, {', '.join(counts)}", f"{source}：{lines}，{'、'.join(counts)}")
    for first in figures["messages"][:1]:
        summary += say(f"; most frequent: {first['message']} ({many(first['count'], 'time')})", "")
        summary += say("", f"；最常见的：{first['message']}（{first['count']:,} 次）")
    return summary


def days_of(found: Found) -> str:
    """The days that count, behind the name of the file."""
    since, until = found.since, found.until
    if since and since == until:
        return say(f" on {since}", f" {since}")
    begin = say(f" since {since}", f" {since} 起") if since else ""
    return begin + (say(f" until {until}", f" 至 {until}") if until else "")


def covered(found: Found) -> str:
    """If no line is of these days: the days of the file."""
    if found.lines:
        return ""
    return say(
        f" (the file covers {found.begin} to {found.end})", f"（该文件的日期范围：{found.begin} 至 {found.end}）"
    )


def text_of(figures: dict[str, Any]) -> str:
    """The levels and the lists of messages, a line for each."""
    text = [f"{level}: {times:,}" for level, times in figures["levels"].items() if level != "none"]
    lists = [(say("Errors", "错误"), "top_errors"), (say("Warnings", "警告"), "top_warnings")]
    for title, name in [*lists, (say("All messages", "所有消息"), "messages")]:
        shown = [f"- {hit['count']:,} × {hit['level']} {hit['message']}" for hit in figures[name]]
        text += ["", title, *shown] if shown else []
    return "\n".join(text).strip()


def many(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def say(english: str, chinese: str) -> str:
    return chinese if CHINESE else english


def note(line: str, found: Found) -> None:
    """Adds one line; one without time and level belongs to the line before, once there was such a line."""
    text = (ESCAPE.sub("", line) if "\x1b" in line else line).strip()
    time, level, message = parts(text) if text else ("", "", "")
    if (found.since or found.until) and (day := day_of(time)):
        found.begin, found.end = min(found.begin or day, day), max(found.end or day, day)
        found.inside = (found.since or day) <= day <= (found.until or day)
    if not found.inside:
        return
    found.lines += 1
    if found.word.isdigit():  # 404 must not match in 14045
        found.with_word += re.search(rf"(?<![\d.:-]){found.word}(?![\d.:-])", line) is not None
    else:
        found.with_word += bool(found.word) and found.word in line.casefold()
    if not text:
        found.blank += 1
        return
    if not time and not level and found.structured:
        found.continued += 1
        return
    found.structured = found.structured or bool(time or level)
    found.first, found.last = found.first or time or None, time or found.last
    found.levels[level or "none"] += 1
    if level in ERRORS:
        found.of_errors["last"] = error = plain(text)[:TEXT]
        found.of_errors.setdefault("first", error)
    found.messages[level or "none", same(message)] += 1
    if len(found.messages) > DISTINCT:
        kept = sorted(found.messages.items(), key=lambda item: (item[0][0] not in SERIOUS, -item[1]))
        found.messages = Counter(dict(kept[: DISTINCT // 2]))
        found.approximate = True


def parts(text: str) -> tuple[str, str, str]:
    """Time, level and message of a line, each empty where there is none."""
    if text.startswith("{") and (fields := json_fields(text)):
        return fields
    head, rest = text[:HEAD], text[HEAD:CUT]
    time = TIME.search(head)
    head = head.replace(time[0], " ", 1) if time else head
    level = LEVEL.search(head)
    head = f"{head[: level.start()]} {head[level.end() :]}" if level else head
    word = next(group for group in level.groups() if group) if level else ""
    if "msg=" in text and (message := SAID.search(text[:CUT])):
        return time[0] if time else "", level_named(word), message[1] or message[2] or ""
    return time[0] if time else "", level_named(word), EMPTY.sub(" ", head + rest).strip(EDGE)


@lru_cache(maxsize=1_000)
def day_of(time: str) -> date | None:
    """The day of a time as loggers write it; without a year, the last such day."""
    if re.fullmatch(r"\d{9,13}(?:\.\d+)?", time):
        seconds = float(time) / (1000 if len(time.partition(".")[0]) > 11 else 1)
        return datetime.fromtimestamp(seconds, UTC).astimezone().date()
    if not (hit := DATE.search(time)):
        return None
    month = hit["m"] or hit["b"] or hit["b3"]
    number = int(month) if month.isdecimal() else MONTHS.index(month) + 1 if month in MONTHS else 0
    year, number_of_day = hit["y"] or hit["y2"] or hit["y3"], int(hit["d"] or hit["d2"] or hit["d3"])
    tomorrow = datetime.now(UTC).date() + timedelta(1)
    try:
        day = date(int(year) if year else tomorrow.year, number, number_of_day)
        return day if year or day <= tomorrow else day.replace(year=day.year - 1)
    except ValueError:
        return None


def json_fields(text: str) -> tuple[str, str, str] | None:
    """The same of a line that is a JSON object, by the names that loggers give them."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    time, level, message = (next((fields[key] for key in keys if fields.get(key)), "") for keys in KEYS)
    if not isinstance(message, str) or not message:
        return None
    name = NUMBERS.get(level, "") if isinstance(level, int) else str(level)
    return str(time) if isinstance(time, str | int | float) else "", level_named(name), message[:CUT]


def level_named(word: str) -> str:
    """The one name of a level; empty for a word that is none."""
    name = LEVELS.get(word.upper(), word.upper())
    return name if name in ORDER else ""


def same(message: str) -> str:
    """The message with all that differs from one time to the next taken away."""
    return " ".join(map(settled, message.split()))[:TEXT]


@lru_cache(maxsize=20_000)
def settled(word: str) -> str:
    return VARYING.sub(lambda hit: f"<{hit.lastgroup}>", word)


def lines(path: Path, encoding: str) -> Iterator[str]:
    """The beginning of each line; one without an end does not fill the memory."""
    with opened(path) as data, io.TextIOWrapper(data, encoding=encoding, errors="replace") as file:
        begun = False
        while part := file.readline(LINE):
            if not begun:
                yield part
            begun = not part.endswith("\n")


def opened(path: Path) -> IO[bytes]:
    """The bytes of the file, also of a compressed one."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path) if packed else path.open("rb")


def encoding_of(path: Path) -> str:
    """By its first bytes, else by what most of its bytes beyond ASCII form: UTF-8, GB18030, or single characters."""
    beyond = utf_8 = gb = 0
    with opened(path) as file:
        while chunk := file.read(CHUNK):
            if file.tell() <= CHUNK and chunk.startswith((b"\xff\xfe", b"\xfe\xff")):
                return "utf-16"
            if high := len(chunk.translate(None, ASCII)):
                beyond += high
                utf_8 += sum(map(len, UTF_8.findall(chunk)))
                gb += sum(map(len, GB.findall(chunk)))
    if utf_8 >= beyond * MOST:
        return "utf-8-sig"
    return "gb18030" if gb >= beyond * MOST else "cp1252"


def plain(text: str) -> str:
    """`text` without escape sequences, control characters, direction marks and halves of characters."""
    whole = ESCAPE.sub("", text.replace("\t", " ")).encode("utf-8", "replace").decode("utf-8")
    return "".join(mark for mark in whole if unicodedata.category(mark) not in HIDDEN)


def number(written: str) -> int:
    if not re.fullmatch(r"[0-9]{1,3}", written) or not 1 <= int(written) <= MOST_LISTED:
        message = f"{written!r} is no number of messages: write 1 to {MOST_LISTED}"
        raise SystemExit(say(message, f"{written!r} 不是消息数，请写 1 到 {MOST_LISTED}"))
    return int(written)


def day(written: str) -> date | None:
    if not written:
        return None
    try:
        return date.fromisoformat(written)
    except ValueError:
        english = f"{written!r} is not a date; write it like 2026-11-30"
        raise SystemExit(say(english, f"{written!r} 不是日期，请写成 2026-11-30 的形式")) from None


def levels_of(written: str) -> frozenset[str]:
    """The levels of a list such as `ERROR,WARN`; ERROR means all that are at least as serious."""
    names = [name.strip() for name in re.split("[,，、]", written) if name.strip()]
    if unknown := next((name for name in names if not level_named(name)), ""):
        message = f"{unknown!r} is no level; write some of {', '.join(ORDER)}"
        raise SystemExit(say(message, f"{unknown!r} 不是日志级别，请写 {'、'.join(ORDER)} 中的一些"))
    levels = frozenset(map(level_named, names))
    return levels | ERRORS if "ERROR" in levels else levels


def place(written: str) -> tuple[Path, str]:
    """The file that is meant, a relative path starts at the project; and its name as people are shown it."""
    project = Path(os.path.realpath(os.environ.get("NAVIGATOR_PROJECT", ".")))
    path = Path(os.path.realpath(project / written))
    return path, plain(path.relative_to(project).as_posix() if path.is_relative_to(project) else written)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("input", help="the log file")
    parser.add_argument("--top", default=str(LISTED), help="how many frequent messages to list")
    parser.add_argument("--levels", default="", help="only lines of these levels, with commas between: ERROR,WARN")
    parser.add_argument("--by", default="", help="which list is wanted; all are in the answer, as they are ordered")
    parser.add_argument("--since", default="", help="the first day that counts, as 2026-11-30")
    parser.add_argument("--until", default="", help="the last day that counts")
    parser.add_argument("--about", default="", help="which error the summary tells: first, last")
    parser.add_argument("--word", default="", help="a word; the lines with it are counted")
    given = parser.parse_args()
    try:
        about = (
            number(given.top),
            day(given.since),
            day(given.until),
            levels_of(given.levels),
            given.about,
            given.word,
        )
        found = summary(*place(given.input), *about)
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise SystemExit(say(f"{given.input!r} cannot be read: {why}", f"不能读取 {given.input!r}：{why}")) from error
    sys.stdout.write(json.dumps(found, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()

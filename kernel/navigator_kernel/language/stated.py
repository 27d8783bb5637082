"""Reads from a message, English or Chinese, what it states of time, of how many, and of columns.

No library reads both languages right: dateparser knows no periods and takes "may I" for a month, jionlp reads Chinese
only and takes any four digits for a year, and recognizers-text cannot be imported beside a current version of `emoji`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from datetime import date, timedelta
from difflib import get_close_matches
from itertools import zip_longest
from typing import NamedTuple, TypedDict

from navigator_kernel.language.sources import SOURCES
from navigator_kernel.text import lazy_compile
from navigator_kernel.values.resource import ParamSpec

_SHORT = 40  # characters of a message that may be only a time
_BESIDE_TIME = lazy_compile(r"(?:and|then|now|only|just|in|on|for|of|the|what|how|about|那么?|只看|[的呢]|[\s,?。!])*")
_LIMIT = 4_000  # characters of a message that are read
Days = tuple[date, date]  # the first and the last one
_SOURCES = SOURCES["stated"]


class _Parts(TypedDict, total=False):
    """What is stated of a time. Monday is weekday 0."""

    y: int
    months: tuple[int, int]  # the first and the last
    d: int
    part: int  # 0, 1, 2: early, in the middle, late in a month or year
    week: int  # counted from this one
    w: tuple[int, int]  # the first and the last weekday
    which: str  # last, past or this
    now: bool
    span: Days
    around: Days  # the week, month or year of the day that is that long ago
    joined: bool


class _Time(NamedTuple):
    """A time in the text, from `start` to `end`; `sure` says that it needs no word such as "in" before it."""

    parts: _Parts
    start: int
    end: int
    sure: bool


_INCOMPLETE = frozenset({"d", "part", "which", "now"})  # parts that need others
_MAY_FOLLOW: dict[str, set[str]] = {  # the kinds of tokens that may follow if there is only this part as yet
    "d": {"month", "relative"},
    "part": {"month", "year", "relative"},
    "which": {"weekday", "month"},
    "now": set(),
    "span": set(),
}
_SURE_MONTHS = frozenset("january february july september october november december".split())  # no verbs, no names
_UNITS = dict(  # the day comes last: it is a part of some Chinese names of weekdays
    pair.split("=")
    for pair in "week=week 周=week 星期=week 礼拜=week month=month quarter=quarter 季度=quarter year=year 年=year "
    "hour=hour 小时=hour 月=month day=day 天=day 日=day".split()
)
_MONTHS_OF = {"month": 1, "quarter": 3, "year": 12}
_NTH = {"se": 2, "th": 3, "fo": 4, "la": 4}  # the second, third, fourth and last quarter
_DAY_WORDS = {"day before": 2, "yesterday": 1, "today": 0, "昨": 1, "今": 0, "大前": 3, "前": 2}
_TOKENS = {name.removeprefix("token."): source for name, source in _SOURCES.items() if name.startswith("token.")}
_TOKEN = lazy_compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _TOKENS.items()))
_WEAK = frozenset("year now which weekday quarter half head month part nth zh_day day".split())  # not sure if alone
_NUMBER = lazy_compile(r"\d+")
_GLUE = lazy_compile(r"[\s,]*+-?(?:of\s++)?(?:the\s++)?的?\s*")
_OF = lazy_compile(r"\s+of\s")
_RANGE = lazy_compile(rf"\s{{0,9}}(?:-|–|—|~|\.\.|to|until|till|thru|through|{_SOURCES['_UP_TO']}|到|至)\s*(?:the\s+)?")
_BOTH = lazy_compile(r"\s{0,9}(?:and|or|with|vs\.?|versus|&|、|[和与跟及或]|以及)\s*(?:the\s+)?")
_ON_THE = lazy_compile(r"(?<![a-z])(?:on|since|until|before|of|from)\s+the\s+$")
_OF_THAT_DAY = lazy_compile("(?:那天)?的?(?:日志|提交|错误|告警|记录|改动|数据|报表|报告|销售|订单|待办)")
_END = lazy_compile(r"\s*(?:$|[^\s\w]|(?:and|to|or)(?![a-z]))")
_BEFORE = lazy_compile(_SOURCES["_BEFORE"])
_AFTER = lazy_compile(_SOURCES["_AFTER"])


def period(text: str, today: date) -> tuple[str, str]:
    """The first and the last day, in ISO 8601, of the period that the message states; "" where it is open, and twice
    if it states none. A month without a year is the last one that has begun; the last 30 days begin 30 days ago."""
    text = _plain(text)
    first: date | None = None
    last: date | None = None
    for time in _joined(text, today):
        relation = _relation(text, time)
        days = _days(time.parts, today) if relation != "no" and (time.sure or relation) else None
        if days is None:
            continue
        if relation in ("", "within") and first is last is None:
            first, last = time.parts.get("around", days)
        elif relation in ("since", "above") and first is None:
            start = days[0] if relation == "since" else days[1] + timedelta(1)
            first = start if last is None or start <= last else None
        elif relation in ("until", "below") and last is None:
            to_its_end = relation == "until" or time.parts.get("part") == 2  # before the end of june
            end = days[1] if to_its_end else days[0] - timedelta(1)
            last = end if first is None or first <= end else None
    return (first.isoformat() if first else "", last.isoformat() if last else "")


def day(text: str, today: date) -> date | None:
    """The single day that the message means, if it means one."""
    first, last = period(text, today)
    return date.fromisoformat(first) if first and first == last else None


def is_period(text: str) -> bool:
    """Whether a short text states a time and nothing else: "yesterday?", "and in July"."""
    plain = _plain(text)
    times = _joined(plain, date.max) if len(plain) <= _SHORT else []
    return len(times) == 1 and _BESIDE_TIME.fullmatch(plain[: times[0].start] + plain[times[0].end :]) is not None


def without_names(text: str, names: Sequence[str]) -> str:
    """The text without the names of columns and values that could be read as times: March, Q1."""
    times = [name for name in names if _TOKEN.search(_plain(name)) and period(f"in {name}", date.max) != ("", "")]
    return _IN_MARK.sub(" ■ ", _marked(_lower(text), times)) if times else text


def _joined(text: str, today: date) -> list[_Time]:
    """The times of the text in their order; two that a word such as "to" joins are one."""
    joined: list[_Time] = []
    for time in _times(text, today):
        if joined and (days := _joint_days(text, joined[-1], time, today)):
            joined[-1] = _Time({"span": days, "joined": True}, joined[-1].start, time.end, sure=True)
        else:
            joined.append(time)
    return [time for time in joined if not time.parts.keys() <= _INCOMPLETE or (time.sure and "d" in time.parts)]


def _times(text: str, today: date) -> Iterator[_Time]:
    """The times of the text, and parts of times; tokens side by side are one: "3", "september", "2026"."""
    tokens = [*_TOKEN.finditer(text)]
    group: list[re.Match[str]] = []
    parts: _Parts = {}
    for token, following in zip_longest([*tokens, None], tokens[1:]):
        more = _parts(token, today) if token else {}
        if token and group and _continues(text, group, parts, more, token, following):
            if token.lastgroup == "recent":  # the first months of a year
                more = {"months": (1, min(12, _numbers(token)[0] * (3 if "季" in token.group() else 1)))}
            parts |= more
            group.append(token)
            continue
        if group and _is_time(text, group, parts):
            yield _Time(parts, group[0].start(), group[-1].end(), _is_sure(text, group, parts))
        group, parts = ([token], more) if token and more else ([], {})


def _continues(
    text: str,
    group: list[re.Match[str]],
    parts: _Parts,
    more: _Parts,
    token: re.Match[str],
    following: re.Match[str] | None,
) -> bool:
    """Whether the token, which states `more`, belongs to the time that the tokens of `group` have begun."""
    kind, before = token.lastgroup, group[-1]
    if not _GLUE.fullmatch(text, before.end(), token.start()):
        return False
    if kind == "recent":
        return token.group().startswith("前") and parts.keys() == {"y"} and token.group()[-1] in "月度"
    if not more or parts.keys() & more.keys() or "span" in more or "now" in more:
        return False
    if len(parts) == 1 and kind not in _MAY_FOLLOW.get(next(iter(parts)), {kind}):
        return False
    if "d" in more:
        if following is not None and following.lastgroup == "month" and "months" not in parts and kind != "zh_day":
            return True
        first, last = parts.get("months", (0, 1))
        in_one = before.lastgroup == "month" and not text.endswith("in ", 0, before.start())
        return first == last and (in_one or kind != "day")  # "in september 5 files changed" does not state a day
    if kind == "month" and "year" in str(before.lastgroup):  # "the files of 2025 may be"
        return token.group() not in ("may", "march", "mar")
    return kind != "weekday" or parts.keys() == {"which"} or "week" in parts


def _is_time(text: str, group: list[re.Match[str]], parts: _Parts) -> bool:
    """No: "the second half", "the first quarter of the rows"."""
    kind, word = group[0].lastgroup, group[0].group()
    if "y" in parts or kind not in ("half", "head", "quarter"):
        return True
    return kind == "quarter" and (word.startswith("q") or not _OF.match(text, group[-1].end()))


def _is_sure(text: str, group: list[re.Match[str]], parts: _Parts) -> bool:
    kinds = [str(token.lastgroup) for token in group]
    if kinds[0] == "iso":  # 2026.9.3 may be a version, and 2026/9 anything
        return group[0]["sep"] != "." and ("d" in parts or len(group[0].group()) == 7)
    if not set(kinds) <= _WEAK:
        return True
    if kinds == ["nth"]:
        return bool(
            _ON_THE.search(text, max(0, group[0].start() - 12), group[0].start()) and _END.match(text, group[0].end())
        )
    if kinds == ["zh_day"]:
        return _OF_THAT_DAY.match(text, group[0].end()) is not None
    if "month" in kinds:
        at = kinds.index("month")
        name = group[at].group().rstrip(".")
        may_be_verb = name in ("may", "march", "mar")
        dated = kinds[at + 1 : at + 2] == ["nth"] or (not may_be_verb and ("d" in parts or "part" in parts))
        return name in _SURE_MONTHS or "y" in parts or "which" in parts or dated
    if "weekday" in kinds:
        return "which" in parts or text.startswith("'s", group[-1].end())
    return "y" in parts and len(parts) > 1


def _joint_days(text: str, former: _Time, latter: _Time, today: date) -> Days | None:
    """From the first day of `former` to the last of `latter`, if the text between them says so. What one of them leaves
    out, the other one states: "3 to 7 september", "between May and July 2026", "2026年3月到5月"."""
    to, both = (pattern.fullmatch(text, former.end, latter.start) for pattern in (_RANGE, _BOTH))
    certain = former.sure or latter.sure or _relation(text, former)
    if not certain or not (to or (both and (latter.sure or _END.match(text, latter.end)))):
        return None
    start, end = former.parts, latter.parts
    if start.keys() == {"d"} and "d" in end:
        start = {**end, **start}
    if end.keys() == {"d"} and "d" in start:
        end = {**start, **end}
    first, last = _days(start, today), _days(end, today)
    if first and last and "months" in start and "y" not in start and "y" in end:
        of_years = (_days({**start, "y": end["y"] - less}, today) for less in (0, 1))
        first = next((days for days in of_years if days and days <= last), None)
    if first and to and "months" in end and "y" not in end:
        of_years = (_days({**end, "y": first[0].year + more}, today) for more in (0, 1))
        last = next((days for days in of_years if days and days >= first), None)
    if first and last and "w" in start and first > last:  # from monday to friday
        first = (first[0] - timedelta(7), first[1])
    return (min(first[0], last[0]), max(first[1], last[1])) if first and last else None


def _relation(text: str, time: _Time) -> str:
    """What the words round a time say of it: since, until, below, above, within, no, or "" if they say nothing."""
    before = _BEFORE.search(text, max(0, time.start - 30), time.start)
    name = str(before.lastgroup).removeprefix("zh_") if before else ""
    if "joined" in time.parts:
        return "no" if name == "no" else "within"
    if after := _AFTER.match(text, time.end):
        return str(after.lastgroup)
    is_year = before is not None and before.group().strip() in ("of", "for") and time.parts.keys() == {"y"}
    return name if not is_year or time.sure or _END.match(text, time.end) else ""  # for 2025 people


def _numbers(token: re.Match[str]) -> list[int]:
    return [int(digits) for digits in _NUMBER.findall(token.group())]


def _parts(token: re.Match[str], today: date) -> _Parts:
    """What a token states."""
    word, numbers = token.group(), _numbers(token)
    count = numbers[0] if numbers else 2 if "couple" in word else _NTH.get(word[:2], 1)
    match token.lastgroup:
        case "iso" if len(numbers) == 2:
            return {"y": count, "months": (numbers[1], numbers[1])}
        case "iso":
            return {"y": count, "months": (numbers[1], numbers[1]), "d": numbers[2]}
        case "slash" if max(numbers[:2]) > 12 or numbers[0] == numbers[1]:
            month, on_day = sorted(numbers[:2])
            return {"y": numbers[2], "months": (month, month), "d": on_day}
        case "year" | "zh_year":
            return {"y": count}
        case "this_year":
            return {"y": today.year - {"去": 1, "前": 2}.get(word[0], 0)}
        case "day_word":
            on = today - timedelta(next(days for name, days in _DAY_WORDS.items() if name in word))
            return {"span": (on, on)}
        case "now":
            return {"now": True}
        case "recent":
            return {"span": (_back(today, count, _unit(word)), today)}
        case "ago":
            on = _back(today, count, _unit(word))
            return {"span": (on, on), "around": _around(on, _unit(word))}
        case "relative":
            return _relative(word, today)
        case "which":
            return {"which": word.split()[0]}
        case "weekday" | "zh_weekday":
            return {"w": _weekday(word)}
        case "quarter" | "zh_quarter":
            return {"months": (3 * count - 2, 3 * count)}
        case "half" | "zh_half":
            return {"months": (7, 12) if word[0] in "s下" or "2" in word else (1, 6)}
        case "head":
            return {"months": (1, min(12, count * (3 if "quarter" in word else 1)))}
        case "month" | "zh_month":
            at = count if numbers else "janfebmaraprmayjunjulaugsepoctnovdec".index(word[:3]) // 3 + 1
            return {"months": (at, at)}
        case "part":
            return {"part": _part(word)}
        case "nth" | "zh_day" | "day":
            return {"d": count}
    return {}


def _unit(word: str) -> str:
    return next(unit for name, unit in _UNITS.items() if name in word)


def _part(word: str) -> int:
    early, middle = ("early", "start", "begin", "初", "上"), ("mid", "中")
    return 0 if any(name in word for name in early) else 1 if any(name in word for name in middle) else 2


def _weekday(word: str) -> tuple[int, int]:
    if word.endswith(("weekend", "末")):
        return 5, 6
    at = "motuwethfrsasu".find(word[:2]) // 2 if word.isascii() else "123456日".find(word[-1].replace("天", "日"))
    return at, at


def _relative(word: str, today: date) -> _Parts:
    count = 2 if word.startswith("上上") else 1 if word.startswith(("上", "last", "previous")) else 0
    unit = _unit(word)
    if unit == "week":
        parts: _Parts = {"week": -count}
        return {**parts, "w": _weekday(word)} if word.endswith(("weekend", *"123456日天末")) else parts
    on = _back(today, count, unit)
    first, last = _around(on, unit)
    parts = {"y": on.year} if unit == "year" else {"y": on.year, "months": (first.month, last.month)}
    return {**parts, "part": _part(word)} if " of " in word else parts


def _back(today: date, count: int, unit: str) -> date:
    """The day that is so many units before today, or the last one of its month."""
    if unit not in _MONTHS_OF:
        return today - timedelta({"hour": -(-count // 24), "day": count, "week": 7 * count}[unit])
    year, month = divmod(today.year * 12 + today.month - 1 - count * _MONTHS_OF[unit], 12)
    return date(year, month + 1, min(today.day, _last_day(year, month + 1)))


def _last_day(year: int, month: int) -> int:
    return (date(year + month // 12, month % 12 + 1, 1) - timedelta(1)).day


def _around(on: date, unit: str) -> Days:
    """The week, month, quarter or year of the day, or the day."""
    if unit in _MONTHS_OF:
        month = on.month - (on.month - 1) % _MONTHS_OF[unit]
        last = month + _MONTHS_OF[unit] - 1
        return date(on.year, month, 1), date(on.year, last, _last_day(on.year, last))
    monday = on - timedelta(on.weekday())
    return (monday, monday + timedelta(6)) if unit == "week" else (on, on)


def _days(parts: _Parts, today: date) -> Days | None:
    """The days of a time; None if the calendar does not have them, or something is left out."""
    if "span" in parts or "now" in parts:
        return parts.get("span", (today, today))
    which = parts.get("which")
    if "months" in parts or "y" in parts:
        for year in [parts["y"]] if "y" in parts else range(today.year, today.year - 9, -1):
            try:
                first, last = _in_year(parts, year)
            except ValueError:  # the 29th of February
                continue
            if "y" in parts or which == "this" or (last < today if which else first <= today):
                return first, last
    elif parts.keys() == {"d"}:  # the last such day that has begun
        for days in range(62):
            if (on := today - timedelta(days)).day == parts["d"]:
                return on, on
    elif "w" in parts or "week" in parts:
        first_day, last_day = parts.get("w", (0, 6))
        start = today + timedelta(first_day - today.weekday() + 7 * parts.get("week", 0))
        if "week" not in parts and which != "this" and (start >= today if which else start > today):
            start -= timedelta(7)
        return start, start + timedelta(last_day - first_day)
    return None


def _in_year(parts: _Parts, year: int) -> Days:
    months, part, d = parts.get("months"), parts.get("part"), parts.get("d")
    if months is None:
        months = (1, 12) if part is None else ((1, 1), (5, 8), (12, 12))[part]
        part = None
    ends = (10, 20, _last_day(year, months[1]))
    if d is None:
        return date(year, months[0], (1, 11, 21)[part or 0]), date(year, months[1], ends[2 if part is None else part])
    return date(year, months[0], d), date(year, months[1], d)


_COUNTED = lazy_compile(_SOURCES["_COUNTED"])


def number(text: str) -> str:
    """How many are asked for, in digits: "5" of "the five biggest files"; "" if the message does not say."""
    hit = _COUNTED.search(_plain(text))
    return hit[hit.lastindex or 0] if hit else ""


# Words that are numbers; "one" is left out: "the first one"
_COUNTS = dict(
    pair.split("=")
    for pair in "two=2 three=3 four=4 five=5 six=6 seven=7 eight=8 nine=9 ten=10 eleven=11 twelve=12 fifteen=15 "
    "twenty=20 thirty=30 fifty=50".split()
)
_COUNT = lazy_compile(rf"(?<![a-z])(?:{'|'.join(_COUNTS)})(?![a-z])")
_DIGITS = {char: at for at, chars in enumerate(("〇零", "一", "二两", *"三四五六七八九")) for char in chars}
_NUMERAL = lazy_compile("(?:(?!一[共起直样些下般旦定切])[〇零一二两三四五六七八九十百])+")
# Quoted text, an address, a file with a Chinese name; then a run that may be a name or a date
_NAMED = lazy_compile(_SOURCES["_NAMED"])
_ENDING = lazy_compile(r"\.[a-z][a-z0-9]{0,7}(?![a-z0-9])")


def _plain(text: str) -> str:
    """The text in lower case, with numbers as digits, and a mark in place of files, addresses and quoted texts."""
    text = _NAMED.sub(lambda hit: hit.group() if hit["run"] and not _is_name(hit["run"]) else "■", _lower(text))
    text = _COUNT.sub(lambda hit: _COUNTS[hit.group()], text).replace("近半年", "近6个月").replace("去半年", "去6个月")
    return _NUMERAL.sub(lambda hit: _digits(hit.group()), text)


def _lower(text: str) -> str:
    return unicodedata.normalize("NFKC", text[:_LIMIT])[:_LIMIT].lower()


def _is_name(run: str) -> bool:
    with_slash = ("/" in run or "\\" in run) and any(map(str.isalpha, run))
    return with_slash or "_" in run or "@" in run or _ENDING.search(run) is not None


def _digits(numeral: str) -> str:
    if "十" not in numeral and "百" not in numeral:
        return "".join(str(_DIGITS[char]) for char in numeral)
    total = digit = 0
    for char in numeral:
        total += {"十": 10, "百": 100}.get(char, 0) * (digit or 1)
        digit = _DIGITS.get(char, 0)
    return str(total + digit)


# Kinds of files in English and Chinese, each with the endings of its files
_ENDINGS = {
    "markdown|md": ".md .markdown", "text|txt|plain text|文本|纯文本": ".txt .md .rst", "csv": ".csv", "tsv": ".tsv", "json": ".json .jsonl",
    "yaml|yml": ".yaml .yml", "toml": ".toml", "xml": ".xml", "html": ".html .htm", "css": ".css", "log|日志": ".log", "pdf": ".pdf", "sql": ".sql",
    "word|docx": ".docx .doc", "excel|xlsx": ".xlsx .xls", "powerpoint|pptx|ppt": ".pptx .ppt", "zip": ".zip", "rst": ".rst", "notebook": ".ipynb",
    "python|py": ".py .pyi", "javascript|js": ".js .mjs .cjs .jsx", "typescript|ts": ".ts .tsx", "rust|rs": ".rs", "golang|go": ".go", "java": ".java",
    "ruby|rb": ".rb", "php": ".php", "kotlin": ".kt", "swift": ".swift", "c": ".c .h", "c++|cpp": ".cpp .cc .hpp .h", "shell|bash|sh": ".sh .bash",
    "image|picture|photo|图片|图像|照片": ".png .jpg .jpeg .gif .webp .svg .bmp .tif .tiff .ico", "png": ".png", "jpg|jpeg": ".jpg .jpeg", "svg": ".svg",
    "video|视频": ".mp4 .mov .mkv .webm .avi", "audio|音频": ".mp3 .wav .flac .ogg .m4a",
}  # fmt: skip
_OF_KIND = {word: endings.split() for words, endings in _ENDINGS.items() for word in words.split("|")}
# Kinds of files without text
_MEDIA = ("pdf", "docx", "xlsx", "pptx", "zip", "image", "video", "audio")
_KINDS = "|".join(sorted(map(re.escape, _OF_KIND), key=len, reverse=True))
_FILES_OF_KIND = lazy_compile(
    rf"(?<![\w./*-])(?:\*?\.)?(?P<english>{_KINDS})(?:[ -](?:source|script|code))?[ ]files(?![\w-])"
    r"|(?<![\w./-])(?P<things>image|picture|photo|video|notebook|pdf)s(?![\w-])"
    rf"|(?:所有|全部|每个|各个?|这些|那些|几[个张份]|多少[个张份]?|哪些|统计|只[看查要])的?\s?\.?(?P<chinese>{_KINDS})\s?(?:源|源码|代码|脚本)?(?:文件|(?<=[图照视音][片像频]))"
    rf"|(?<![\w./-])\.?(?P<counted>{_KINDS})\s?(?:文件|(?<=[图照视音][片像频]))(?=[有共一总里中]{{0,3}}(?:几[个张份]|多少(?:[个张份]|\s?(?:$|[?!。,;]))))"
    r"|(?<![\w./*-])\*\.(?P<ending>\w{1,8})(?![\w./*-])"
    rf"|(?:(?<![a-z])(?:only|just)\s(?:the\s)?|[只仅光][看查要]?\s?)\.?(?P<only>{_KINDS})(?:\sones|\s?的)?(?=\s*(?:$|[,.;?!。，]))"
)
_AND_KIND = lazy_compile(rf"(?<![\w./*-])\.?(?P<kind>{_KINDS})\s?(?:,|/|&|、|和|及|(?:and|or)(?=\s))\s?$")

_LISTED_KINDS = lazy_compile(
    rf"(?:(?<![a-z])(?:all|any|every)\s(?:the\s)?|(?:所有|全部)的?\s?)?(?<![A-Za-z0-9_./*-])(?P<kinds>\.?(?:{_KINDS})"
    rf"(?:\s?(?:,\s?(?:and|or)\s|[,/&、和与及]|(?:and|or)(?=\s))\s?\.?(?:{_KINDS})){{0,5}})"
    r"(?:[ -](?:source|script|code))?(?:\s?(?:源|源码|代码|脚本)?文件|\s?files?(?![\w-])|(?:(?<=image)|(?<=photo)|(?<=video)|(?<=picture)|(?<=notebook))s(?![\w-])|(?<=[图照视音][片像频]))"
)


def media(ending: str) -> Sequence[str]:
    """What a file with this ending is called, if it holds no text: `png` is an `image`, a `picture`, 图片. A `word` is also
    something else."""
    if not any(f".{ending}" in _OF_KIND[kind] for kind in _MEDIA):
        return ()
    return [ending, *(kind for kind, endings in _OF_KIND.items() if f".{ending}" in endings and kind != "word")]


def kinds_of_files(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Where a text names kinds of files, `python and rust files`: the start, the end and their endings."""
    kind = lazy_compile(rf"(?<![a-z0-9_+])(?:{_KINDS})(?![a-z0-9_+])")
    for hit in _LISTED_KINDS.finditer(text.lower()):
        listed = [_OF_KIND[each.group()] for each in kind.finditer(hit["kinds"])]
        yield hit.start(), hit.end(), tuple(dict.fromkeys(ending for endings in listed for ending in endings))


def endings(text: str) -> tuple[str, ...]:
    """The endings of the files to which the message limits itself: `.py` and `.pyi` of "in the Python files" or "*.py"."""
    text, listed = _lower(text), list[str]()
    for hit in _FILES_OF_KIND.finditer(text):
        kinds = [next(kind for kind in hit.groups() if kind)]
        start = hit.start(hit.lastindex or 0)
        while (before := _AND_KIND.search(text, max(0, start - 24), start)) and len(kinds) < len(_ENDINGS):
            kinds.append(before["kind"])
            start = before.start("kind")
        listed += [ending for kind in reversed(kinds) for ending in ([f".{kind}"] if hit["ending"] else _OF_KIND[kind])]
    return tuple(dict.fromkeys(listed))


# In the text that these patterns read, each name of a column is one mark
_LIMITS = [lazy_compile(source) for name, source in _SOURCES.items() if name.startswith("limit.")]
_PIECE = lazy_compile(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+")
_GAP = lazy_compile(r"[\s_.-]{0,2}")
_LONGER_BEFORE, _LONGER_AFTER = lazy_compile(r"[a-z0-9][./_-]$"), lazy_compile(r"[./_-][a-z0-9]")
_NO_NAMES = frozenset("only just columns column fields field and the with to 只 仅 列 和 与".split())


def columns(text: str, known: Sequence[str]) -> tuple[str, ...]:
    """The names of `known` to which the message limits the output, in its order, and as they are written those of columns
    that the file does not have; empty if it limits nothing."""
    marked = _marked(_lower(text), known)
    for pattern in _LIMITS if "\ue000" in marked else ():
        for hit in pattern.finditer(marked):
            if not hit.groupdict().get("no"):
                before = _LISTED_BEFORE.search(marked, max(0, hit.start("list") - 80), hit.start("list"))
                return _named((before[1] if before else "") + hit["list"], known)
    if known and not number(text) and (limit := _ONLY_OTHERS.search(marked)):
        return _named(limit[1] or limit[2], known)
    unknown = _OTHER_COLUMN.search(marked)
    name = next(filter(None, unknown.groups())) if unknown else _measured(marked, known)
    return (name,) if name else ()


def _named(listed: str, known: Sequence[str]) -> tuple[str, ...]:
    names = [name for name in _LISTED_NAME.finditer(listed) if name[0] not in _JOINING]
    return tuple(dict.fromkeys(known[int(name[1])] if name[1] else name[0] for name in names))


def _measured(marked: str, known: Sequence[str]) -> str:
    """The column whose mean or median is asked for, if the file has no column of such a name."""
    if not known or not (hit := _MEASURED.search(marked)) or "\ue000" in hit.group():
        return ""
    name = hit[1] or _BEFORE_NAME.sub("", hit[2])
    alike = any(name in _lower(column) or _lower(column) in name for column in known)
    return "" if alike or name in _ANY_COLUMN or _OTHER_MEASURE.search(name) else name


_LISTED_NAME = lazy_compile("\ue000(\\d+)\ue001|[^\\s,、和与及跟&+/\ue000\ue001\"'“”‘’「」`]{1,30}")
# Names before the first that the file has: "only name and", "with name and"
_LISTED_BEFORE = lazy_compile(_SOURCES["_LISTED_BEFORE"])
_JOINING = frozenset("and plus as well the its their 以".split())
# One column that the file does not have, called a column: "only the phone column"
# At the end of a message: "only name and price", of which the file has neither
_ONLY_OTHERS = lazy_compile(
    r"(?<![a-z])(?:only|just)\s(?:the\s)?({one}(?:\s?(?:,|,?\sand)\s(?:the\s)?{one}){{1,5}})\s?[.!]?$"
    r"|[只仅光](?:要|看|显示|留|列出)\s?({han}(?:\s?[,、和与]\s?{han}){{1,5}})\s?(?:这?[两二三四几]?[列栏]|字段)?[。!]?$".format(
        one="[a-z\ue000][\\w\ue000\ue001-]{0,30}", han="[\\w\u3400-\u9fff\ue000\ue001-]{1,20}?"
    )
)
_MEASURED = lazy_compile(_SOURCES["_MEASURED"])
# Words that ask for another figure beside the mean: 最大值和平均值
_OTHER_MEASURE = lazy_compile(r"最[大小高低多少]|总[和数计]|合计|众数|中位|方差|标准差|[和与及]$")
_BEFORE_NAME = lazy_compile(r"^(?:[里中内的求算看查给出我把将是计统]|一下|计算|统计|分析)+")
_ANY_COLUMN = frozenset(
    "value values number numbers column columns row rows of all each every 每列 各列 每 各 列 字段 这列 该列 数字 数值 数据 所有 全部 它".split()
) | {""}
_OTHER_COLUMN = lazy_compile(_SOURCES["_OTHER_COLUMN"])


def _marked(text: str, known: Sequence[str]) -> str:
    """The text with a mark for each name in it, which has the place of the name in `known`. The name `order_id` may be
    written `order id`, `OrderID` or `order ids`, but not inside a longer name such as `order_id.csv`."""
    text = text.translate({0xE000: None, 0xE001: None})
    if not known:
        return text
    divided = [_PIECE.findall(_lower(name)) for name in known]
    keys = ["".join(pieces) for pieces in divided]
    most = max(map(len, divided), default=0) + 3  # `orderId` is one piece, and `order id` has two
    backwards = [(place, key) for place, key in reversed([*enumerate(keys)]) if key]  # of equal names the first counts
    places = {form: place for place, key in backwards for form in _forms(key)}
    places |= {key: place for place, key in backwards}
    pieces = [*_PIECE.finditer(text)]
    marked, done, at = "", 0, 0
    while at < len(pieces):
        start, longest, place, name = pieces[at].start(), at, -1, ""
        for to in range(at, min(at + most, len(pieces))):
            if name and not _GAP.fullmatch(text, pieces[to - 1].end(), pieces[to].start()):
                break
            name += pieces[to].group().lower()
            end = pieces[to].end()
            longer = _LONGER_BEFORE.search(text, max(0, start - 2), start) or _LONGER_AFTER.match(text, end)
            if name in places and name not in _NO_NAMES and not longer:
                longest, place = to, places[name]
        if place >= 0:
            marked += f"{text[done:start]}\ue000{place}\ue001"
            done = pieces[longest].end()
        at = longest + 1
    return marked + text[done:]


def without_columns(text: str, names: Sequence[str], word: str) -> str:
    """The text with `word` in place of each name of a column."""
    return _IN_MARK.sub(f" {word} ", _marked(text, names))


def _forms(key: str) -> set[str]:
    """A name in lower case, and its singular and plural forms."""
    forms = {key, f"{key}s", f"{key}es", f"{key[:-1]}ies" if key.endswith("y") else key} if key.isascii() else {key}
    if len(key) > 3 and key.isascii() and key.endswith("s"):
        forms |= {key[:-1], f"{key[:-3]}y" if key.endswith("ies") else key[:-2] if key.endswith("es") else key}
    return {form for form in forms if form == key or len(form) > 2}  # Ines is not "in"


def word(text: str) -> str:
    """The word whose occurrences the message asks for: "how often does `clinic` appear"; "" if it asks for none."""
    hits = (pattern.search(text) for pattern in _WORDS)
    return next((hit[1] for hit in hits if hit), "")


_WORDS = [lazy_compile(f"(?i){source}") for name, source in _SOURCES.items() if name.startswith("word.")]


class Limit(NamedTuple):
    """What a message limits an answer to: a condition such as `port=Oslo`, a group, an order or a person; `words` is how
    it is written."""

    kind: str
    value: str
    words: str


def limits(
    text: str,
    names: Sequence[str] = (),
    cells: Sequence[str] = (),
    people: Sequence[str] = (),
    *,
    kinds: str = "",
    meant: Collection[str] = (),
) -> tuple[Sequence[Limit], Sequence[str]]:
    """The limits that the message sets, all or those of `kinds`, in a file with the columns `names` and the values `cells`, in a project
    with commits by `people`; and the other columns that it names. A value of `meant` limits the rows wherever it stands."""
    every, listed, besides = [*names, *cells], list[Limit](), list[re.Match[str]]()
    whole = _marked(_lower(text), every)
    order = " desc" if _DOWN.search(whole) else ""
    marked = _IN_MARK.sub(lambda hit: hit[0] if int(hit[1]) < len(names) else f"\ue002{hit[1]}\ue001", whole)
    possible = {kind for kind, gate in _GATES.items() if kinds in {"", kind, _AS.get(kind)} and gate.search(whole)}
    for kind, pattern in [each for each in _LIMITED if each[0].rstrip("=<>!") in possible]:
        for hit in pattern.finditer(marked):
            groups = {"words": hit[0], **{name: part for name, part in hit.groupdict().items() if part}}
            own = [hit.span(name) for name in groups if name != "words"]
            begin = hit.start("v") if kind.startswith("where=") and "c" not in groups else hit.start()
            inside = _IN_MARK.finditer(marked, begin, hit.end())
            besides += [mark for mark in inside if not any(start <= mark.start() < end for start, end in own)]
            part = {
                name: _IN_MARK.sub(lambda mark: every[int(mark[1])], group).strip() for name, group in groups.items()
            }
            if kind == "author" and not any(part["w"] in (name, *name.split()) for name in map(_lower, people)):
                continue
            marked = f"{marked[:begin]}{'■' * (hit.end() - begin)}{marked[hit.end() :]}"
            sign = kind.removeprefix("where")
            if sign != kind:
                sign = "!=" if "c" not in part and _is_unwanted(whole, hit.start("v")) else sign
                condition = f"{part['c']}{sign}{part['v']}" if "c" in part else sign.removeprefix("=") + part["v"]
                listed.append(Limit("where", condition, part["words"]))
                listed += [Limit("where", f"{part['c']}<={part['to']}", part["words"])] if "to" in part else []
            elif kind != "plain":
                value = (
                    part.get("g")
                    or part.get("w")
                    or (part["s"] + order if "s" in part else " desc" if kind == "sort" else part["words"])
                )
                listed.append(Limit(_AS.get(kind, kind), value, part["words"]))
                if "g" in part and not {"s", "most", "often"}.isdisjoint(part):
                    by = "rows" if "often" in part else part.get("s", "")
                    listed.append(Limit("sort", by if "low" in part else f"{by} desc", part["words"]))
    for hit in _VALUES.finditer(marked) if kinds in {"", "where"} else ():  # "except Oslo and Bergen", "did Mei borrow"
        values = [every[int(mark[1])] for mark in _IN_MARK.finditer(hit[0])]
        is_meant = any(value in meant for value in values)  # those of one list are meant alike
        sign = "!=" if _is_unwanted(marked, hit.start()) else ""
        listed += [Limit("where", sign + value, value) for value in values if sign or is_meant]
    mentioned = (int(mark[1]) for mark in (*besides, *_IN_MARK.finditer(marked)))
    return listed, [names[place] for place in mentioned if place < len(names)]


def _is_unwanted(marked: str, start: int) -> bool:
    return _EXCEPT.search(marked, max(0, start - 24), start) is not None


def taken(limit: Limit, spec: ParamSpec) -> str:
    """The value that a parameter gets from the limit; empty if it takes no such limit."""
    value, _, order = limit.value.partition(" desc")
    if limit.kind != spec.validation and not (limit.kind == "group" and spec.validation == "sort" and spec.choices):
        return ""  # "by frequency" may be an order
    if not spec.choices:
        return limit.value
    name = next((name for name, words in choices(spec.choices).items() if not _forms(value).isdisjoint(words)), "")
    return name and f"{name}{' desc' if order or limit.value.endswith(' desc') else ''}"


def near(limit: Limit, specs: Sequence[ParamSpec], table: tuple[Sequence[str], Sequence[str]]) -> tuple[str, ...]:
    """What the skill can be limited to instead: values that it declares, else names like the one that is said."""
    declared = [name for spec in specs if spec.validation == limit.kind for name in choices(spec.choices) if name]
    return tuple(declared or get_close_matches(limit.value, [*table[0], *table[1]], 3, 0.6))


_IN_MARK = lazy_compile("[\ue000\ue002](\\d+)\ue001")
_VALUES = lazy_compile(
    "\ue002\\d+\ue001(?:\\s?(?:[,、&/和与及或]|(?:and|or|vs\\.?|versus)\\s)\\s?(?:the\\s)?\ue002\\d+\ue001)*"
)
_LIMITED = [
    (name.partition(".")[0], lazy_compile(source))
    for name, source in _SOURCES.items()
    if name.partition(".")[0].startswith(("group", "sort", "where", "person", "author", "plain", "only", "time"))
]
_AS = {"author": "person", "plain": "person"}  # an author is a person with commits; what is plain sets no limit


def chosen(text: str, declared: str) -> tuple[str, ...]:
    """Which of the values that a skill declares, as `ERROR=error, errors; *TODO=todo`, the message names: without those
    that it excludes. A value with `*` is also a word for all: it counts only beside an "only" or a "not"."""
    text = _lower(text)
    wanted, unwanted, general = dict[str, None](), set[str](), set[str]()
    for name, words in choices(declared).items():
        pattern = "|".join(
            rf"(?<![a-z0-9_]){re.escape(word)}(?![a-z0-9_])(?! first(?![a-z]))" if word.isascii() else re.escape(word)
            for word in words
        )
        for hit in lazy_compile(pattern).finditer(text):
            wanted[name.removeprefix("*")] = None
            general |= {name[1:]} if name.startswith("*") else set()
            if _NOT_WANTED.search(text, max(0, hit.start() - 24), hit.start()):
                unwanted.add(name.removeprefix("*"))
    if unwanted and not wanted.keys() - unwanted:
        return tuple(name for each in choices(declared) if (name := each.removeprefix("*")) not in unwanted)
    if general and not unwanted and not _ONLY.search(text):
        return ()
    return tuple(name for name in wanted if name not in unwanted)


def choices(declared: str) -> dict[str, tuple[str, ...]]:
    """The words of each value in `ERROR=error, errors; WARN=warning`."""
    pairs = (choice.partition("=") for choice in declared.split(";"))
    return {name.strip(): tuple(word.strip() for word in _lower(words or name).split(",")) for name, _, words in pairs}


_NOT_WANTED = lazy_compile(_SOURCES["_NOT_WANTED"])
_ONLY, _EXCEPT = lazy_compile(_SOURCES["_ONLY"]), lazy_compile(_SOURCES["_EXCEPT"])
_DOWN = lazy_compile(_SOURCES["_DOWN"])
_GATES = {name[5:]: lazy_compile(source) for name, source in _SOURCES.items() if name.startswith("gate.")}

"""Reads from a message, English or Chinese, what it states of time, of how many, and of columns.

No library reads both languages right: dateparser knows no periods and reads "may I" as a month, jionlp reads Chinese
only and any four digits as a year, and recognizers-text cannot be imported with a current version of its own parts.
"""

from __future__ import annotations

import re
import unicodedata
from calendar import monthrange
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import zip_longest
from typing import Any, NamedTuple

from navigator_kernel.text import lazy_compile

_LIMIT = 4_000  # characters of a message that are read
Days = tuple[date, date]  # the first and the last one

# Words that are numbers; "one" is left out, as in "the first one"
_COUNTS = dict(
    zip(
        "two three four five six seven eight nine ten eleven twelve fifteen twenty thirty fifty".split(),
        "2 3 4 5 6 7 8 9 10 11 12 15 20 30 50".split(),
        strict=True,
    )
)
_COUNT = lazy_compile(rf"(?<![a-z])(?:{'|'.join(_COUNTS)})(?![a-z])")
_NUMERAL = lazy_compile("(?:(?!一[共起直样些下般旦定切])[〇零一二两三四五六七八九十百])+")
_DIGITS = {char: at for at, chars in enumerate(("〇零", "一", "二两", *"三四五六七八九")) for char in chars}
# What only names something: quoted text, an address, a file with a Chinese name; then runs that may be names or dates
_NAMED = lazy_compile(
    r"\"(?![\d\s/:.-]*\")[^\"\n]*\"|(?<!\w)'[^'\n]*'(?!\w)|`[^`\n]*`|“[^“”\n]*”|「[^「」\n]*」|《[^《》\n]*》"
    r"|(?<![a-z])[a-z][a-z+.-]{0,15}://[^\s,。;、]*"
    r"|(?:(?![的把将从在对给用到和与及跟])[\w/-]){0,40}[\u3400-\u9fff]\.[a-z][a-z0-9]{0,7}(?![a-z0-9])"
    r"|(?P<run>[a-z0-9_.~/\\@-]{3,}+)"
)
_ENDING = lazy_compile(r"\.[a-z][a-z0-9]{0,7}(?![a-z0-9])")

_MONTHS = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?"
)
_SURE_MONTHS = frozenset("january february july september october november december".split())
_WEEKDAYS = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_UNITS = {  # the day comes last: it is a part of some Chinese names of weekdays
    "week": "week", "周": "week", "星期": "week", "礼拜": "week", "month": "month", "quarter": "quarter",
    "季度": "quarter", "year": "year", "年": "year", "hour": "hour", "小时": "hour", "月": "month",
    "day": "day", "天": "day", "日": "day",
}
_UNIT, _ZH_UNIT = "(?:hour|day|week|month|quarter|year)s?(?![a-z])", "个?(?:小时|天|日(?!志)|周|星期|礼拜|月|季度|年)"
_DAY_WORDS = {"day before": 2, "yesterday": 1, "today": 0, "昨": 1, "今": 0, "大前": 3, "前": 2}
_ZH_WEEKDAY = "(?:[1-6](?!\\s*[个次条名位项\\d])|日(?!志)|天(?!气)|末)"
_YEAR = r"(?:19|20)\d\d"
_FROM = r"(?<![a-z0-9_$€£¥#@/\\])(?<![^\d\s]-)(?<!\d\.)"  # no part of a longer name, number or price
_TO = r"(?![a-z0-9_]|[-/.]\d)"
_THINGS = r"\s*(?:lines?|words?|files?|rows?|items?|records?|bytes|dollars|euros|usd|users|requests?|[元块行个条次字])"
_TOKENS = {
    "iso": rf"{_FROM}{_YEAR}(?P<sep>[-/.])(?:1[0-2]|0?[1-9])(?:(?P=sep)\d\d?)?(?:t\d[\d:.]*z?)?{_TO}",
    "slash": rf"{_FROM}\d\d?/\d\d?/{_YEAR}{_TO}",
    "zh_year": rf"(?<!\d){_YEAR}\s*年(?!代)度?",
    "year": rf"{_FROM}{_YEAR}(?![a-z0-9_年]|[/.]\d|{_THINGS}(?![a-z]))",
    "this_year": "[今去前本]年",
    "day_word": r"(?:the\s+)?day before yesterday|(?<![a-z])(?:yesterday|today)(?![a-z])|大?前[天日](?!志)|[昨今][天日]",
    "now": r"(?<![a-z])now(?![a-z])|现在",
    "recent": rf"(?<![a-z])(?:(?:last|past|previous|recent|within)\s+(?:the\s+last\s+)?(?:\d{{1,3}}|couple\s+of)\s+{_UNIT}"
    rf"|past\s+{_UNIT}|(?:in|over|during|within)\s+the\s+last\s+(?!quarter){_UNIT})"
    rf"|(?:最近|近|过去|(?<![之以目])前)的?\s*\d{{1,3}}\s*{_ZH_UNIT}(?:[以之]?[内里来])?|\d{{1,3}}\s*{_ZH_UNIT}[以之]?内",
    "ago": rf"(?<![a-z\d])(?:\d{{1,3}}|an?|one)\s+{_UNIT}\s+ago|(?<=than )\d{{1,3}}\s+{_UNIT}|\d{{1,3}}\s*{_ZH_UNIT}[之以]?前(?![后端])",
    "relative": r"(?<![a-z])(?:last|previous|this|current)\s+(?:week(?:end)?|month|quarter(?!\s+of\s)|year)(?![a-z])"
    rf"|(?:上上|[上本这])1?个?\s*(?:(?:周|星期|礼拜){_ZH_WEEKDAY}?|月|季度|年)",
    "which": rf"(?<![a-z])(?:(?:last|past)\s+(?=(?:{_WEEKDAYS}|{_MONTHS})(?![a-z]))"
    rf"|this\s+(?=(?:{_WEEKDAYS}|{'|'.join(sorted(_SURE_MONTHS))}|april|june|august)(?![a-z])))",
    "weekday": rf"(?<![a-z]){_WEEKDAYS}(?![a-z])",
    "zh_weekday": rf"(?<![每个])(?:周|星期|礼拜){_ZH_WEEKDAY}",
    "quarter": r"(?<![a-z0-9_])q[1-4](?![a-z0-9_])|(?<![a-z])(?:first|second|third|fourth|last|1st|2nd|3rd|4th)\s+quarter(?![a-z])",
    "zh_quarter": "(?:第\\s*[1-4]\\s*个?|(?<![\\d前])[1-4])季度",
    "half": r"(?<![a-z0-9_])h[12](?![a-z0-9_])|(?<![a-z])(?:first|second)\s+half(?![a-z])",
    "zh_half": "[上下]半年",
    "head": r"(?<![a-z])first\s+\d\d?\s+(?:months|quarters)",
    "month": rf"(?<![a-z0-9_-])(?:{_MONTHS})(?![a-z0-9_])\.?",
    "zh_month": r"(?<![\d.])(?:1[0-2]|0?[1-9])\s*月(?!天)份?",
    "part": r"(?<![a-z])(?:(?:early|late|mid)(?:[\s-]|(?=\d))|(?:the\s+)?(?:start|beginning|middle|end)\s+of\s+(?:the\s+)?)|年?[初底末]|[上中下]旬",
    "skip": r"(?:(?<![a-z])(?:top|first|last|line|version|section|chapter|page|step|item|number|port|status)|[前第])\s*\d+",
    "nth": r"(?<![a-z0-9_.-])\d\d?(?:st|nd|rd|th)(?![a-z0-9_])(?!\s*-?part)",
    "zh_day": r"(?<![\d.])(?:3[01]|[12]\d|0?[1-9])\s*[日号](?!志)",
    "day": r"(?<![a-z_$€£¥#@/\\.\d])(?<![a-z]-)(?:3[01]|[12]\d|0?[1-9])(?![a-z0-9_%]|[.:/]\d)",
}
_TOKEN = lazy_compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _TOKENS.items()))
_WEAK = frozenset("year now which weekday quarter half head month part nth zh_day day".split())  # not sure by themselves
_GLUE = lazy_compile(r"[\s,]*(?:(?:of|in)\s+)?(?:the\s+)?的?\s*")
_RANGE = lazy_compile(r"\s*(?:-|–|—|~|\.\.|to|until|till|thru|through|up to|到|至)\s*(?:the\s+)?")
_BOTH = lazy_compile(r"\s*(?:and|or|&|、|[和与跟及或]|以及)\s*(?:the\s+)?")
_END = lazy_compile(r"\s*(?:$|[^\s\w]|(?:and|to|or)(?![a-z]))")
_BEFORE = lazy_compile(
    r"(?:(?<![a-z])(?:(?P<no>except(?:\s+for)?|excluding|without|not(?:\s+(?:in|on|since))?)"
    r"|(?P<since>since|starting(?:\s+(?:from|in|on))?|beginning(?:\s+(?:in|on))?|as of|newer than)"
    r"|(?P<until>until|till|up\s+to|through|no later than)|(?P<below>before|prior to|earlier than|older than)"
    r"|(?P<above>after|later than)|(?P<within>in|on|during|of|for|from|between|within|throughout|over|at))[\s=:]*(?:the\s+)?"
    r"|(?:(?P<zh_no>除了?)|(?P<zh_since>自从?)|(?P<zh_until>直到|截[至止]到?)|(?P<zh_within>[从在于到至由]))\s*)$"
)
_AFTER = lazy_compile(
    r"\s*的?(?:(?P<since>以来|起(?![草来名诉源点])|开始|以后|至今|onwards?|(?:and|or)\s+(?:later|newer)|to date|on(?=\s*(?:$|[,.;!?])))"
    r"|(?P<below>[之以]前|前(?![后端台面缀者\d]))|(?P<above>之后|后(?![端台面续缀勤者半]))|(?P<until>为?止|(?:and|or)\s+(?:earlier|older)))"
)


class _Time(NamedTuple):
    """A time in the text: its parts, from `start` to `end`; `sure` says that it needs no word such as "in" before."""

    parts: dict[str, Any]
    start: int
    end: int
    sure: bool


def period(text: str, today: date) -> tuple[str, str]:
    """The first and the last day, in ISO 8601, of the period that the message states; "" where it is open, and twice
    if it states none. A month without a year is the last one that has begun; 30 days go back to the day 30 days ago."""
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
            end = days[1] if relation == "until" else days[0] - timedelta(1)
            last = end if first is None or first <= end else None
    return (first.isoformat() if first else "", last.isoformat() if last else "")


def day(text: str, today: date) -> date | None:
    """The single day that the message means, if it means one."""
    first, last = period(text, today)
    return date.fromisoformat(first) if first and first == last else None


def _plain(text: str) -> str:
    """The text in lower case, with numbers as digits, and a mark in place of files, addresses and quoted texts."""
    text = unicodedata.normalize("NFKC", text[:_LIMIT])[:_LIMIT].lower()
    text = _NAMED.sub(lambda hit: hit.group() if hit["run"] and not _is_name(hit["run"]) else "■", text)
    text = _COUNT.sub(lambda hit: _COUNTS[hit.group()], text).replace("近半年", "近6个月").replace("去半年", "去6个月")
    return _NUMERAL.sub(lambda hit: _digits(hit.group()), text)


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


def _joined(text: str, today: date) -> Iterator[_Time]:
    """The times of the text in their order; two that a word such as "to" joins are one."""
    previous: _Time | None = None
    for time in _times(text, today):
        if previous is not None and (days := _joint_days(text, previous, time, today)):
            previous = _Time({"span": days, "joined": True}, previous.start, time.end, sure=True)
            continue
        if previous is not None and not previous.parts.keys() <= _INCOMPLETE:
            yield previous
        previous = time
    if previous is not None and not previous.parts.keys() <= _INCOMPLETE:
        yield previous


def _joint_days(text: str, one: _Time, other: _Time, today: date) -> Days | None:
    """From the first day of `one` to the last of `other`, if words between them say so. What one of them leaves out,
    the other one states: "3 to 7 september", "between May and July 2026", "2026年3月到5月"."""
    to, both = (pattern.fullmatch(text, one.end, other.start) for pattern in (_RANGE, _BOTH))
    certain = one.sure or other.sure or bool(_relation(text, one))
    if not certain or not (to or (both and (other.sure or _END.match(text, other.end)))):
        return None
    start, end = one.parts, other.parts
    if start.keys() == {"d"} and "d" in end:
        start = {**end, **start}
    if end.keys() == {"d"} and "d" in start:
        end = {**start, **end}
    shared = "months" in start and "y" in end and "y" not in start
    years = [end["y"], end["y"] - 1] if shared else [start.get("y")]
    first = next((days for y in years if (days := _days(_of_year(start, y), today))), None)
    last = _days(end, today)
    if first and last and len(years) > 1 and first > last:
        first = _days(_of_year(start, years[1]), today)
    if first and to and "months" in end and "y" not in end:
        later = (_days(_of_year(end, first[0].year + more), today) for more in (0, 1))
        last = next((days for days in later if days and days >= first), None)
    if not first or not last:
        return None
    if "w" in start and first > last:
        first = (first[0] - timedelta(7), first[1])
    return min(first[0], last[0]), max(first[1], last[1])


def _of_year(parts: dict[str, Any], year: int | None) -> dict[str, Any]:
    return parts if year is None else {**parts, "y": year}


def _relation(text: str, time: _Time) -> str:
    """What the words round a time say of it: `since`, `until`, `below`, `above`, `within`, `no`, or "" if nothing."""
    before = _BEFORE.search(text, max(0, time.start - 24), time.start)
    name = before.lastgroup.removeprefix("zh_") if before and before.lastgroup else ""
    if "joined" in time.parts:
        return "no" if name == "no" else "within"
    if after := _AFTER.match(text, time.end):
        return after.lastgroup or ""
    if before and before.group().strip() in ("of", "for") and time.parts.keys() == {"y"}:
        return name if time.sure or _END.match(text, time.end) else ""
    return name


def _times(text: str, today: date) -> Iterator[_Time]:
    """The times of the text, and parts of times; tokens side by side are one time: "3", "september", "2026"."""
    tokens = [hit for hit in _TOKEN.finditer(text) if hit.lastgroup]
    group: list[re.Match[str]] = []
    parts: dict[str, Any] = {}
    for token, following in zip_longest(tokens, tokens[1:]):
        more = _parts(token, today)
        if group and _continues(text, group, parts, token, following, more):
            if token.lastgroup == "recent":  # the first months of a year
                more = {"months": (1, min(12, _numbers(token)[0] * (3 if "季" in token.group() else 1)))}
            parts |= more
            group.append(token)
            continue
        if group and _is_time(text, group, parts):
            yield _Time(parts, group[0].start(), group[-1].end(), _is_sure(text, group, parts))
        group, parts = ([token], more) if more else ([], {})
    if group and _is_time(text, group, parts):
        yield _Time(parts, group[0].start(), group[-1].end(), _is_sure(text, group, parts))


_INCOMPLETE = frozenset({"d", "part", "which", "now"})
_AFTER_PART = {  # the kinds that may follow if there is only this part as yet
    "d": {"month", "relative"},
    "part": {"month", "year", "relative"},
    "which": {"weekday", "month"},
    "now": set[str](),
    "span": set[str](),
}


def _continues(
    text: str, group: list[re.Match[str]], parts: dict[str, Any], token: re.Match[str],
    following: re.Match[str] | None, more: dict[str, Any],
) -> bool:  # fmt: skip
    """Whether the token belongs to the time that the tokens of `group` have begun."""
    kind, before = token.lastgroup, group[-1]
    if not _GLUE.fullmatch(text, before.end(), token.start()):
        return False
    if kind == "recent":
        return token.group().startswith("前") and parts.keys() == {"y"} and token.group()[-1] in "月度"
    if not more or parts.keys() & more.keys() or "span" in more or "now" in more:
        return False
    if len(parts) == 1 and (allowed := _AFTER_PART.get(next(iter(parts)))) is not None and kind not in allowed:
        return False
    if kind == "day":
        in_month = before.lastgroup == "month" and not text[: before.start()].endswith("in ")
        return in_month or (following is not None and following.lastgroup == "month" and "months" not in parts)
    if kind == "month" and before.lastgroup in ("year", "zh_year"):
        return token.group() not in ("may", "march", "mar")
    return kind != "weekday" or parts.keys() == {"which"} or "week" in parts


def _is_time(text: str, group: list[re.Match[str]], parts: dict[str, Any]) -> bool:
    kinds = {token.lastgroup for token in group}
    if kinds & {"half", "head"} and "y" not in parts:
        return False
    named = kinds == {"quarter"} and not group[0].group().startswith("q")
    return not (named and text[group[-1].end() :].lstrip().startswith("of "))


def _is_sure(text: str, group: list[re.Match[str]], parts: dict[str, Any]) -> bool:
    kinds = [str(token.lastgroup) for token in group]
    if kinds[0] == "iso":
        return group[0]["sep"] != "." and ("d" in parts or len(group[0].group()) == 7)
    if not set(kinds) <= _WEAK:
        return True
    if "month" in kinds:
        at = kinds.index("month")
        name = group[at].group().rstrip(".")
        verb = name in ("may", "march", "mar")
        dated = "d" in parts and (not verb or kinds[at + 1 : at + 2] == ["nth"])
        return name in _SURE_MONTHS or "y" in parts or "which" in parts or dated or ("part" in parts and not verb)
    if "weekday" in kinds:
        return "which" in parts or text.startswith("'s", group[-1].end())
    return "y" in parts and len(parts) > 1


def _numbers(token: re.Match[str]) -> list[int]:
    return [int(digits) for digits in _NUMBER.findall(token.group())]


_NUMBER = lazy_compile(r"\d+")


def _parts(token: re.Match[str], today: date) -> dict[str, Any]:
    """The parts that a token states: `y`, `months` (first, last), `d`, `part` of a month or year (0, 1, 2), `week`
    from this one, `w` weekdays (first, last), `which`, `span` (two dates), `around` (two dates), `now`."""
    word, numbers = token.group(), _numbers(token)
    match token.lastgroup:
        case "iso":
            y, month, *d = numbers[:3]
            return {"y": y, "months": (month, month), **({"d": d[0]} if d else {})}
        case "slash":
            month, d = sorted(numbers[:2]) if max(numbers[:2]) > 12 or numbers[0] == numbers[1] else (0, 0)
            return {"y": numbers[2], "months": (month, month), "d": d} if d else {}
        case "year" | "zh_year":
            return {"y": numbers[0]}
        case "this_year":
            return {"y": today.year - {"去": 1, "前": 2}.get(word[0], 0)}
        case "day_word":
            on = today - timedelta(next(count for name, count in _DAY_WORDS.items() if name in word))
            return {"span": (on, on)}
        case "now":
            return {"now": True}
        case "recent":
            return {"span": (_back(today, numbers[0] if numbers else 2 if "couple" in word else 1, _unit(word)), today)}
        case "ago":
            on = _back(today, numbers[0] if numbers else 1, _unit(word))
            return {"span": (on, on), "around": _around(on, _unit(word))}
        case "relative":
            return _relative(word, today)
        case "which":
            return {"which": word.split()[0]}
        case "weekday":
            at = ("mon", "tue", "wed", "thu", "fri", "sat", "sun").index(word[:3])
            return {"w": (at, at)}
        case "zh_weekday":
            return {"w": _zh_weekday(word)}
        case "quarter" | "zh_quarter":
            at = numbers[0] if numbers else 1 + ("fi", "se", "th", "fo").index(word[:2].replace("la", "fo"))
            return {"months": (3 * at - 2, 3 * at)}
        case "half" | "zh_half":
            return {"months": (7, 12) if "2" in word or "second" in word or "下" in word else (1, 6)}
        case "head":
            return {"months": (1, min(12, numbers[0] * (3 if "quarter" in word else 1)))}
        case "month" | "zh_month":
            at = numbers[0] if numbers else "janfebmaraprmayjunjulaugsepoctnovdec".index(word[:3]) // 3 + 1
            return {"months": (at, at)}
        case "part":
            early, middle = ("early", "start", "begin", "初", "上"), ("mid", "中")
            return {"part": 0 if any(w in word for w in early) else 1 if any(w in word for w in middle) else 2}
        case "nth" | "zh_day" | "day":
            return {"d": numbers[0]}
        case _:
            return {}


def _unit(word: str) -> str:
    return next(unit for name, unit in _UNITS.items() if name in word)


def _zh_weekday(word: str) -> tuple[int, int]:
    """The first and the last of the days that the last character means, Monday as 0."""
    last = word[-1]
    return (5, 6) if last == "末" else (6, 6) if last in "日天" else (int(last) - 1, int(last) - 1)


def _relative(word: str, today: date) -> dict[str, Any]:
    count = -2 if word.startswith("上上") else -1 if word.startswith(("上", "last", "previous")) else 0
    unit = _unit(word)
    if unit == "week":
        days = (5, 6) if word.endswith("weekend") else _zh_weekday(word) if word[-1] in "123456日天末" else None
        return {"week": count, **({"w": days} if days else {})}
    on = _back(today, -count, unit)
    if unit == "year":
        return {"y": on.year}
    first, last = _around(on, unit)
    return {"y": on.year, "months": (first.month, last.month)}


def _back(today: date, count: int, unit: str) -> date:
    """The day that is so many units before today, or the last one of its month."""
    if unit in ("hour", "day", "week"):
        return today - timedelta({"hour": -(-count // 24), "day": count, "week": 7 * count}[unit])
    year, month = divmod(today.year * 12 + today.month - 1 - count * {"month": 1, "quarter": 3, "year": 12}[unit], 12)
    return date(year, month + 1, min(today.day, monthrange(year, month + 1)[1]))


def _around(on: date, unit: str) -> Days:
    """The week, month, quarter or year of the day, or the day."""
    if unit == "week":
        monday = on - timedelta(on.weekday())
        return monday, monday + timedelta(6)
    if unit in ("hour", "day"):
        return on, on
    size = {"month": 1, "quarter": 3, "year": 12}[unit]
    month = on.month - (on.month - 1) % size
    return date(on.year, month, 1), _month_end(on.year, month + size - 1)


def _month_end(year: int, month: int) -> date:
    return date(year, month, monthrange(year, month)[1])


def _days(parts: dict[str, Any], today: date) -> Days | None:
    """The days of a time; None if the calendar does not have them, or something is left out."""
    if "span" in parts or "now" in parts:
        return parts.get("span", (today, today))
    if "months" not in parts and "y" not in parts and parts.keys() & {"w", "week"}:
        return _weekdays(parts, today)
    if "months" not in parts and "y" not in parts:
        return None
    years = [parts["y"]] if "y" in parts else range(today.year, today.year - 9, -1)
    for year in years:
        try:
            first, last = _in_year(parts, year)
        except ValueError:  # the 29th of February
            continue
        ended = last < today or parts.get("which") not in ("last", "past")
        if "y" in parts or (first <= today and ended) or parts.get("which") == "this":
            return first, last
    return None


def _weekdays(parts: dict[str, Any], today: date) -> Days:
    first, last = parts.get("w", (0, 6))
    if "week" in parts or parts.get("which") == "this":
        start = today - timedelta(today.weekday() - 7 * parts.get("week", 0) - first)
    else:
        ended = "which" in parts
        start = today - timedelta((today.weekday() - first - ended) % 7 + ended)
    return start, start + timedelta(last - first)


def _in_year(parts: dict[str, Any], year: int) -> Days:
    months, part, d = parts.get("months"), parts.get("part"), parts.get("d")
    if months is None:
        months = (1, 12) if part is None else ((1, 1), (5, 8), (12, 12))[part]
    elif part is not None and d is None:
        starts, ends = (1, 11, 21), (10, 20, monthrange(year, months[1])[1])
        return date(year, months[0], starts[part]), date(year, months[1], ends[part])
    last = date(year, months[1], d) if d else _month_end(year, months[1])
    return date(year, months[0], d or 1), last


_NO_COUNT = (
    r"(?!\d|[.:/-]\d|%|st|nd|rd|th)(?!\s*-?(?:hours?|minutes?|seconds?|days?|weeks?|months?|quarters?|years?|percent|bytes?|[kmg]i?b"
    r"|columns?|fields?)(?![a-z])|\s*(?:个?(?:小时|分钟|天|日|周|星期|礼拜|月|季度|年|百分点|字段)|列|秒|分))"
)
_MANY = rf"(?<![\d.])(?!(?:19|20)\d\d(?!\d))0*([1-9]\d{{0,3}}){_NO_COUNT}"
_FEW = rf"(?<![\d.])0*([1-9]\d?){_NO_COUNT}"
_MOST = (
    "(?:most|least|biggest|largest|smallest|longest|shortest|newest|oldest|latest|earliest|highest|lowest|greatest|best|worst|slowest"
    "|fastest|busiest|heaviest|commonest|cheapest|top|last)"
)
_KIND = "[个条行名位项种篇次类张份段组]"
_NUMBER_OF = lazy_compile(
    rf"(?<![a-z])(?:top|first|{_MOST})[\s-]*{_MANY}"
    rf"|{_MANY}\s+{_MOST}(?![a-z])|{_MANY}\s+[a-z]+\s+(?:with|having)\s+the\s+{_MOST}(?![a-z])"
    rf"|(?<![a-z])(?:show|list|give|print|display|name)(?:\s+(?:me|us))?\s+{_FEW}\s+[a-z]"
    rf"|(?<![a-z])(?:limit(?:ed)?(?:\s+to)?|at most|no more than|up to|max(?:imum)?)[\s:=]*{_MANY}|(?<![a-z])(?:only|just)\s+{_FEW}"
    rf"|(?<![之以目提当先])前\s*(?!1\s*{_KIND}){_MANY}|(?<![上下里外])头\s*{_MANY}\s*{_KIND}|最后\s*{_MANY}"
    rf"|最[^\s\d的]{{1,4}}的?\s*{_MANY}\s*{_KIND}|最[大小长短新旧多少高低]的\s*{_MANY}|(?<![这那有]){_MANY}\s*(?:{_KIND}[^\s\d,。;]{{0,6}}最(?![近后])|大(?![于小写约概]))"
    rf"|(?:列出|显示|给我|给出|展示|最多|至多|不超过|只要|只看|只列|仅列|取)\s*(?:显示|列出)?\s*{_MANY}\s*{_KIND}"
)


def number(text: str) -> str:
    """How many are asked for, in digits: "5" of "the five biggest files"; "" if the message does not say."""
    hit = _NUMBER_OF.search(_plain(text))
    return hit[hit.lastindex or 0] if hit else ""


# A name of a column is one mark in the text in which these look for lists
_NAME = "[\"'“‘「`]*\ue000\\d+\ue001[\"'”’」`]*"
_OTHER = r"[^\s,、\ue000-\ue001]{1,30}(?=\s*(?:[,、和与及]|and(?![a-z])|$))"  # a name that the file does not have
_LIST = (
    rf"(?P<list>{_NAME}(?:(?:\s*(?:,\s*and\s|[,、和与及跟&+/]|以及|(?:and|plus|as well as)(?![a-z]))\s*(?:(?:the|its|their)\s+)?"
    rf"|(?<=[\"”」])(?=[\"“「]))(?:{_NAME}|{_OTHER}))*+)"
)
_LIST_END = (
    r"(?=\s*(?:$|[^\w\s\ue000=<>]|(?:columns?|fields?|values?|of|from|in|for|as|please|sort|sorted|ordered|by|then|when|only|alone|per|at|to)"
    r"(?![a-z])|[\u3400-\u9fff]))(?!\s*(?:[为是等大小含]|的(?!列|字段|数据|值|信息|内容)))"
)
_SHOW = "(?:show|display|print|list|keep|output|give|include|including|select|extract|get|want|need|see|with|use|return)"
_FILL = rf"(?:[\s:]+|(?:{_SHOW}|having|have|i|we|me|us|to|the|these|those|following|columns?|fields?|named|called|two|three|\d)(?![a-z]))*+"
_ZH_SHOW = "(?:显示|列出|展示|输出|保留|返回|给我|查看|需要|提取|包含|导出|选取|看|要|取|选|留|列)"
_ZH_COLUMNS = "这?[\\d一两二三四五六七八九十]*\\s*(?:列|个?字段|栏)"
_LIMITS = [
    lazy_compile(pattern)
    for pattern in (
        rf"(?<!not )(?<![a-z])(?:only|just|nothing (?:but|except)|solely|limit(?:ed)?(?:\s+[a-z]+){{0,3}}?\s+to)(?![a-z]){_FILL}{_LIST}{_LIST_END}",
        rf"(?<![a-z])(?:columns|fields)\s*[:=]\s*{_LIST}|(?:列|字段)\s*:\s*{_LIST}".replace("list>", "other>", 1),
        rf"(?<![a-z]){_SHOW}(?![a-z]){_FILL}{_LIST}\s*(?:columns?|fields?)(?![a-z])",
        rf"(?<![a-z]){_SHOW}\s+(?:the\s+)?(?:columns|fields){_FILL}{_LIST}{_LIST_END}",
        rf"(?P<no>(?<![a-z])(?:by|of|in|on|not|than|where)\s+(?:the\s+)?)?{_LIST}\s*(?:columns?|fields?)?\s*(?:only|alone|(?:and\s+)?nothing else)(?![a-z])",
        rf"(?<!不)[只仅光](?:{_ZH_SHOW}|[\s:是想就出下这\d]|[两三]列)*+{_LIST}{_LIST_END}",
        rf"{_ZH_SHOW}\s*{_LIST}\s*{_ZH_COLUMNS}(?![的里中])",
        rf"(?P<no>[按对把]\s*)?{_LIST}\s*(?:{_ZH_COLUMNS})?\s*(?:就行|就好|就够|就可以|即可)",
        rf"(?P<no>[按对把]\s*)?{_LIST}\s*这?[2-9两二三四五六七八九]\s*(?:列|个?字段|栏)(?=\s*(?:$|[^\w\s]))",
    )
]
_PIECE = lazy_compile(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+")
_APART = lazy_compile(r"[\s_.-]{0,2}")
_MARK = lazy_compile("\ue000(\\d+)\ue001")
_LISTED_NAME = lazy_compile("\ue000(\\d+)\ue001|[^\\s,、和与及跟&+/\ue000\ue001\"'“”‘’「」`]{1,30}")
_JOINING = frozenset("and plus as well the its their 以".split())
# One column that the file does not have, called a column: "only the phone column"
_UNKNOWN = lazy_compile(
    r"(?<![a-z])(?:only|just)\s+(?:[a-z]+\s+){0,2}?(?:the\s+)?([a-z][\w-]{1,30})\s+(?:columns?|fields?)(?![a-z])"
    r"|[只仅光](?:要|看|显示|留|列出)?\s*([\w\u3400-\u9fff-]{1,12}?)\s*这?(?:一列|列|字段)"
)
_NO_NAMES = frozenset("only just columns column fields field and the with to 只 仅 列 和 与".split())


def columns(text: str, known: Sequence[str]) -> tuple[str, ...]:
    """The names of `known` to which the message limits the output, in its order, and those of columns that the file does
    not have as they are written; empty if it limits nothing."""
    marked = _marked(unicodedata.normalize("NFKC", text[:_LIMIT])[:_LIMIT].lower(), known)
    for pattern in _LIMITS:
        for hit in pattern.finditer(marked):
            groups = hit.groupdict()
            if not groups.get("no"):
                listed = _LISTED_NAME.finditer(groups["list"] or groups.get("other") or "")
                names = (known[int(name[1])] if name[1] else name[0] for name in listed if name[0] not in _JOINING)
                return tuple(dict.fromkeys(names))
    unknown = _UNKNOWN.search(marked)
    return (unknown[1] or unknown[2],) if unknown else ()


def _marked(text: str, known: Sequence[str]) -> str:
    """The text with the place in `known` of each name in it; `order_id` may be written `order id`, `OrderID` or `order ids`."""
    text = text.translate({0xE000: None, 0xE001: None})
    keys = ["".join(_PIECE.findall(unicodedata.normalize("NFKC", name).lower())) for name in known]
    places = {form: at for at, key in reversed([*enumerate(keys)]) for form in _forms(key)}
    places |= {key: at for at, key in reversed([*enumerate(keys)])}
    pieces = [*_PIECE.finditer(text)]
    marked, done, at = "", 0, 0
    while at < len(pieces):
        start, to, place = pieces[at].start(), at, None
        name = ""
        for place_of_piece in range(at, min(at + 16, len(pieces))):
            piece = pieces[place_of_piece]
            if name and not _APART.fullmatch(text, pieces[place_of_piece - 1].end(), piece.start()):
                break
            name += piece.group()
            if name in places and name not in _NO_NAMES and _stands_alone(text, start, piece.end()):
                to, place = place_of_piece, places[name]
        if place is not None:
            marked += f"{text[done:start]}\ue000{place}\ue001"
            done = pieces[to].end()
        at = to + 1
    return marked + text[done:]


def _forms(key: str) -> set[str]:
    """The name in lower case, and its singular and plural forms."""
    if not key.isascii():
        return {key}
    plural = {key, f"{key}s", f"{key}es", *([f"{key[:-1]}ies"] if key.endswith("y") else [])}
    if len(key) < 4 or not key.endswith("s"):
        return plural
    return {*plural, key[:-1], *([f"{key[:-3]}y"] if key.endswith("ies") else [key[:-2]] if key.endswith("es") else [])}


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Whether the name is not a part of a longer one, as `city` in `city.json`."""
    return not (_LONGER_BEFORE.search(text, max(0, start - 2), start) or _LONGER_AFTER.match(text, end))


_LONGER_BEFORE, _LONGER_AFTER = lazy_compile(r"[a-z0-9][./_-]$"), lazy_compile(r"[./_-][a-z0-9]")

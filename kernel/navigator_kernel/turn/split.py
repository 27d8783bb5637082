"""Splits a message into the steps that it lists; any other message stays whole (WFL-1, WFL-2).

Steps are explicit if a connective joins two orders (`then`, `然后`), or if they are numbered. Nothing is cut inside
quotes, code, an address or a fixed phrase, or if one verb governs both parts: "explain how to open a file and then read
it" is one order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import islice, pairwise

from navigator_kernel.language.orders import is_order, is_thing, is_verb
from navigator_kernel.text import lazy_compile

_MASKED = lazy_compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|\"[^\"\n]*\"|(?<!\w)'[^'\n]*'(?!\w)|“[^“”\n]*”|‘[^‘’\n]*’|「[^「」\n]*」|『[^『』\n]*』|《[^《》\n]*》"
    r"|[a-z][a-z\d+.-]{0,15}://[^\s，。；]+|@[^\s，。；,;、]+?(?:\.[a-z\d]{1,8}(?=[^\x00-\xff])|(?=[\s，。；,;、]|$))"
    r"|\b(?:every )?now and then\b|\bthen and there\b|\bthere and then\b"
    r"|\b(?:back|since|by|until|till|even|only|just|but) then\b"
    r"|先进先出|后进先出|先来后到|先后|再见|再次|再三|再度|再也|再者|再来|再说|再加上|不再|别再|一再|然后呢|最后一|接着上",
    re.DOTALL | re.IGNORECASE,
)
_JOINT = lazy_compile(
    r"(?:(?<![,;.!，。；、！\n])(?<![-*•][ \t])(?=[,;.!，。；、！\n])|(?<![\s,;.!，。；、！])(?=[^\S\n])"
    r"|(?![\s,;.!，。；、！]))"
    r"(?=(?P<stop>(?:\n[ \t]*+[-*•]\s|[,;.!，。；、！\n])*))(?P=stop)"
    r"(?:(?:(?<=[，,；;。])|(?<=[，,；;。]\n))\s{0,80}+[\u4e00-\u9fff]{0,3}(?:完成?|好)[之以]?后[，,]?再?|\s{0,80}+(?:"
    r"(?<![\w/-])(?:and\s+)?(?P<any>then|after\s+that|afterwards?|thereafter|subsequently)(?![\w/-])"
    r"|(?<![\w-])(?P<and>and\s+)?(?P<end>next|finally|lastly|last\s+of\s+all|once\s+(?:that's|that\s+is|it's|it\s+is)\s+done)(?![\w-])"
    r"|(?:(?:完成后|做完后|完了)?(?:然后|接着|接下来|随后|紧接着|而后|其次)再?|(?:完成|完)?(?:之后|以后)[，,]?再?)"
    r"|(?P<zhend>最后|末了)再?|(?P<zai>后?再)))[,:，：]?\s{0,80}+",
    re.IGNORECASE,
)
_OPENING = lazy_compile(
    r"^\s*(?:[-*•]\s+)?(?:(?:first(?:ly|\s+of\s+all)?|to\s+(?:start|begin)(?:\s+with)?)(?![\w-])|首先|第一步|先)[,:，：]?\s*",
    re.IGNORECASE,
)
_CLOSING = lazy_compile(
    r"^\s*(?:(?:and\s+)?(?:then|finally|lastly|next)(?![\w-])|最后|然后|接着|其次|再)[,:，：]?\s*", re.IGNORECASE
)
_NUMBER = lazy_compile(
    r"(?:(?:^|(?<=[;；。，,:：)）])|(?<=[^\S \t]))[ \t]*+|(?<=[ \t])(?![ \t]))"
    r"(?:(?:step|步骤)\s*(?P<step>\d{1,2})\s*[.:：)、,，]?"
    r"|(?P<digit>\d{1,2})[.)、）](?![\d.])"
    r"|[第其](?P<ordinal>[一二三四五六七八九])(?:步\s*[:：,，、是]?|[:：,，、是]?(?![次周天年版季名章页行列期轮印眼时手个条张步]))"
    r"|(?P<han>[一二三四五六七八九])[、是]|[(（](?P<round>\d)[)）]|(?P<circled>[①-⑨])"
    r"|(?P<nth>first(?:ly)?|second(?:ly)?|third(?:ly)?|fourth|fifth|lastly|finally)[,:]"
    r"|(?:(?<=[,;:.]\s)(?:and\s+)?|(?<![^\n])|(?<=\s)and\s+|(?<=\s)(?<!(?:the|per|one)\s)(?<!\sa\s)(?<!(?:each|very|this|that)\s)"
    r"(?!first))(?P<bare>first|second|third|fourth|fifth)(?=\s+[a-z]+\s+[^\s,;]))\s*",
    re.IGNORECASE | re.MULTILINE,
)
_HAN = "一二三四五六七八九"
_ELSEWHERE = lazy_compile(
    r"before\s(?:you\s)?([^,;]+),\s*(?:please\s+)?(\S[^;\n]*)|after\s+(?P<after>\w+ing\s[^,;]+),\s*(\S[^;\n]*)"
    r"|([^,;\n]+?)(?<!\s),?\s+after\s+(\w+ing\s[^,;\n]+)|(?P<zh>[^，；\n]+?)之?前[，,]?\s*请?先([^，；\n]+)",
    re.IGNORECASE,
)
_GERUND = lazy_compile(r"(\w+)ing(?=\s)")
_NTH = ("first", "second", "third", "fourth", "fifth")
_HOW_TO = lazy_compile(
    r"\b(?:how|ways?|steps?|what|where|when|whether)\s+to\s+\w+|\b(?:a|an|the|some|any|my|our)\s+(?:[\w-]+\s+){1,3}to\s+(?P<verb>\w+)",
    re.I,
)
_SUBJECT = lazy_compile(
    r"\b(?:where|when|while|if|whether|how(?!\s+(?:many|much)\b)|why|that|which|who|because|until|so\s+that)\s+"
    r"(?:you|we|i|they|people|(?:the|these|those|my|our|all|both|two|many|some)\s+[\w-]+s|(?!this|is\b|it|was\b|does\b|has\b)[\w-]+s)\s+\w+",
    re.IGNORECASE,
)  # fmt: skip
_CONDITION = lazy_compile(
    r"(?:^|[,;，；]\s*|\b(?:and|but|so)\s+)(?:if|when|whenever|unless|in\s+case|once|如果|若是?|假如|要是|当|一旦)[^,;，；]*$",
    re.I,
)
# On the left, something else acts or is told how to: the joined part continues that
_ACTS = lazy_compile(r"\S\s++first\W*$|\blets?\s+\w+s\s", re.IGNORECASE)
_SOMEBODY = lazy_compile(r"\s*+[它他她]")
_TOLD = lazy_compile(r"(?:如何|怎么|怎样|为什么|让(?!我))(?=.)")
_EXPLAIN = lazy_compile(r"(?:请|帮我|先)*(?:解释|说明|描述|分析|介绍|讲解|告诉|看看|看一下|查)")
_ASKS = lazy_compile(r"(?:什么|怎么办|怎么样|怎样|如何|吗|呢)[？?。.]*\s*$")
_CALL = lazy_compile(r"(?:/(?:[^\W_][\w-]*:)?|@@)[^\W_][\w-]*(?=\s|$)")
_COUNTED = ("one", "two", "three", "four")
_ENDS = lazy_compile(r"final|last|end|最后|末了", re.IGNORECASE)
_LINE_ENDS = lazy_compile(r"(?<![ \t\r])[ \t\r]*+\n\s*+")
_A_THING = lazy_compile(r"一[个段份种条]")
_BULLET = lazy_compile(r"^[-*•]\s+")
_EDGE = " \t\r\n,，。;；、:："


_SHORTEST = 8  # characters of a request
_BLOCKS = lazy_compile(
    r"```.*?(?:```|\Z)|\"[^\"\n]*\"|“[^“”\n]*”|「[^「」\n]*」"
    r"|^(?:[ \t]*(?:[-*•]|\d{1,2}[.)、）]|[a-z]\)|[（(]\d[)）])[ \t]*\S[^\n]*|[ \t]{2,}\S[^\n]*"
    r"|[^\n]{0,100}[{}|<>=][^\n]{0,100})$",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_NOT_WISHES = "次周天年版季名章页行列期轮印眼时手"  # 第一次 and the like count something else than requests
_WISH = lazy_compile(
    r"(?:^|(?<=[.!?;:)\n。！？；：）])|(?<=[，,、])(?=[ \t]*[\u4e00-\u9fff]))[ \t]*(?:and,?\s+|so,?\s+)?(?:"
    + "|".join(
        rf"(?P<{name}>{word}(?:ly)?(?:\s+(?:of\s+all|off|up))?(?=[\s,:])|{number}(?=[,:.])|[(（](?:{letter}|{digit})[)）]"
        rf"|(?<![\w(])(?:{letter}|{digit})\)|{first}|第{han}(?=[\u4e00-\u9fff,，、:：])(?![{_NOT_WISHES}])|{han}、)"
        for name, word, number, letter, digit, han, first in (
            ("one", "first", "one", "a", 1, "一", "首先|其一"),
            ("two", "second", "two", "b", 2, "二", "其次|其二"),
            ("three", "third", "three", "c", 3, "三", "其三"),
            ("four", "fourth", "four", "d", 4, "四", "其四"),
        )
    )
    + r"|(?P<open>(?:please\s+)?(?:begin|start)\s+(?:with|by)\b|to\s+(?:begin|start)\s+with\b"
    r"|[^，。；！？\n]{0,6}(?<![优事首原])先(?![生进前后天不别]))"
    r"|(?P<next>(?:then|next(?!\s+(?:time|turn|day|week|month|quarter|year))|after\s+that|afterwards?|finally|lastly|last(?=[,:])|at\s+the\s+end|in\s+the\s+end|subsequently"
    r"|(?:when|once|as\s+soon\s+as)\s[^,.;\n]{1,40}\b(?:done|stands?|works?|through|finished|ready|known?|agreed?)\b"
    r"|(?:based\s+on|from|out\s+of|with)\s+(?:that|this|these|those|the\s+(?:results?|totals?|findings?|outcome))\b"
    r"|the\s+(?:second|third|last|next)\s+(?:thing|step|part|piece))(?![\w-])"
    r"|然后|接着|接下来|随后|最后(?![几一两三\d])|末了"
    r"|[^，。；：！？\n]{1,10}(?:完|好|定了?|出来|改完|做好)了?(?:[(（][^()（）\n]{1,20}[)）])?(?:之后|以后|后|再(?!说))|(?:这|那)?之后(?=[，,])"
    r"|[^，。；：！？\n]{1,6}之前(?=[先把])|(?:in\s+(?:there|it)|whichever|whatever|either\s+way)(?=[\s,]))"
    r"|(?P<again>再(?![说见也三加次者怎])))",
    re.IGNORECASE,
)
# After words that announce an order, a colon and two or three parts between semicolons
_LISTED = lazy_compile(
    r"(?:\bin\s+(?:this|that|the\s+following)?\s*order\b|\bin\s+a\s+row\b|\b(?:two|three)\s+(?:things|jobs|steps|pieces|parts)\b"
    r"|按顺序|按时间|依次|先后|[两二三]件事|分[两二三]步|[两二三]步走)[^:：.。\n]{0,60}[:：](?P<parts>(?:[^.。\n]|\.(?=\w))+)"
)
# Words that say how many requests there are, and the rest of their sentence
_ANNOUNCED = lazy_compile(
    r"(?:\b(?P<two>two|both)|\bthree)\s+(?:things|jobs|steps|pieces|parts|tasks|requests|favou?rs)\b[^.:!?\n]*[.:!?]?"
    r"|分?(?:(?P<zh>[两二])|三)(?:件(?:事情?)?|步走?|个忙|样事?|关|块)(?![\u4e00-\u9fff]{0,6}[个次年])[^。：:！？\n]*[。：:！？]?",
    re.IGNORECASE,
)
# A request that is to come before the one that is written before it
_CORRECTS = lazy_compile(
    r"(?:no,?\s+wait|wait|no|sorry|actually|不对|等等|等一下|不不?)[,，\s](?=[^.。\n]*(?:\b(?:first|second|before)\b|先|之前|第[一二]))",
    re.IGNORECASE,
)
# The beginning of a second request that may as well be a part of the first one
_WEAK = lazy_compile(r"(?:and,?\s+|so,?\s+)?(?:then|finally|lastly|next)(?![\w-])|再|然后|最后|末了", re.IGNORECASE)
_REFUSES = lazy_compile(r"\s*(?:do\s+not|don['’]t|no|not)\b(?!,?\s+wait)|\s*[不别](?!对)", re.IGNORECASE)
_SEMICOLON = lazy_compile(r"[;；]\s*")


def wishes(text: str) -> tuple[str, ...]:
    """The requests of a message with sentences around its orders, in order, from the word that begins each: `First, …
    Second, …`, `先 … 然后 …`; empty if no words order it. What lies in quotes, code, data or a list belongs to the
    request around it."""
    masked = _BLOCKS.sub(lambda hit: "Q" * len(hit.group()), text)
    marks = list(_WISH.finditer(masked))
    cuts = _counted(marks) or _listed(masked) or _followed(marks, masked)
    cuts = [begin for begin, end in pairwise([*cuts, len(text)]) if begin == cuts[0] or end - begin >= _SHORTEST]
    parts = [text[begin:end].strip(_EDGE) for begin, end in pairwise([*cuts, len(text)])]
    for at in range(1, len(parts)):
        if _CORRECTS.match(parts[at]):
            parts[at - 1 : at + 1] = parts[at], parts[at - 1]
    return tuple(parts)


def are_apart(text: str, parts: Sequence[str]) -> bool:
    """Whether a message surely has several requests: it says so, has more than two `parts`, or the second one begins
    with more than `then`."""
    return len(parts) > 2 or _ANNOUNCED.search(text) is not None or _WEAK.match(parts[1]) is None


def _counted(marks: Sequence[re.Match[str]]) -> list[int]:
    """Where `first`, `second` and `third` begin; a closing word such as `finally` counts on. Four and more are the
    requirements of one task."""
    cuts: list[int] = []
    for mark in marks:
        ends = mark.lastgroup == "next" and len(cuts) == 2 and _ENDS.search(mark[0])
        if ends or mark.lastgroup == _COUNTED[len(cuts)]:
            cuts.append(mark.start())
        if len(cuts) == len(_COUNTED):
            return []
    return cuts if len(cuts) > 1 else []


def _listed(masked: str) -> list[int]:
    listing = _LISTED.search(masked)
    if listing is None:
        return []
    begin = listing.start("parts")
    cuts = [begin, *(begin + hit.end() for hit in _SEMICOLON.finditer(listing["parts"]))]
    return cuts if 2 <= len(cuts) <= 3 and not any(_REFUSES.match(masked, cut) for cut in cuts) else []


def _followed(marks: Sequence[re.Match[str]], masked: str) -> list[int]:
    """Where a request begins after another one; the first of them begins at a word such as `先`, else after the words
    that announce them, else at the start."""
    heading = _ANNOUNCED.search(masked)
    opened = next((mark for mark in marks if mark.lastgroup in {"open", "one"}), None)
    after = 0 if opened is None else opened.end()
    kinds = {"next", "two", "three", "again"} if opened else {"next", "two", "three"}
    cuts = [mark.start() for mark in marks if mark.start() >= after and mark.lastgroup in kinds]
    if heading and heading.lastgroup and len(cuts) > 1:  # two requests: of the words between them, `再` is the weakest
        strong = [mark.start() for mark in marks if mark.start() in cuts and mark.lastgroup != "again"]
        cuts = strong if len(strong) == 1 else cuts
    begin = heading.end() if heading and cuts and heading.end() < cuts[0] else 0
    return [begin if opened is None else opened.start(), *cuts] if cuts else []


def split(text: str, named: Callable[[str], bool] = lambda _: False) -> tuple[str, ...]:
    """The steps in order, each as it was written but without its connective; only the whole text if it is one order.

    `named` says whether a clause is an order by a name that only the caller knows, such as a skill's.
    """
    text = _in_order(_LINE_ENDS.sub("\n", text))
    masked = _MASKED.sub(lambda hit: "Q" * len(hit.group()), text)

    def order(clause: str) -> bool:
        return _CALL.match(clause) is not None or is_order(clause) or named(clause)

    steps = _numbered(text, masked, order) or _joined(text, masked, order)
    return steps if len(steps) > 1 else (text.strip(),)


def _in_order(text: str) -> str:
    """`before you do B, do A`, `do B after doing A` and `B 之前先 A` as `A, then B`; any other text as it is."""
    hit = _ELSEWHERE.fullmatch(text.strip(_EDGE))
    parts = [_ordered(part) for part in (hit.groups() if hit else ()) if part]
    if hit is None or not all(parts):
        return text
    first, then = parts if hit["after"] else reversed(parts)
    return f"{first}，然后{then}" if hit["zh"] else f"{first}, then {then}"


def _ordered(part: str) -> str:
    """The part as an order, `checking the links` as `check the links`; empty if it is none."""
    gerund = _GERUND.match(part)
    stem = gerund[1] if gerund else ""
    forms = (stem, f"{stem}e", stem[:-1]) if stem else ()
    verb = next((form for form in forms if is_verb(form)), "")
    order = f"{verb}{part[gerund.end() :]}" if gerund and verb else part
    return order if is_order(order) else ""


def _numbered(text: str, masked: str, order: Callable[[str], bool]) -> tuple[str, ...]:
    """The items of `1. … 2. … 3. …`, `第一步 … 第二步 …`; the text before the first is their heading."""
    marks: list[re.Match[str]] = []
    for hit in _NUMBER.finditer(masked):
        if _ordinal(hit, len(marks)) == len(marks) + 1:
            marks.append(hit)
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    items = tuple(_trimmed(text[mark.end() : end]) for mark, end in zip(marks, ends, strict=False))
    return items if len(items) > 1 and all(map(order, items)) else ()


def _ordinal(hit: re.Match[str], so_far: int) -> int:
    nth = (hit["nth"] or hit["bare"] or "").lower()
    if nth in {"lastly", "finally"}:
        return so_far + 1 if so_far > 1 else 0
    if nth:
        return _NTH.index(nth.removesuffix("ly")) + 1
    if han := hit["ordinal"] or hit["han"] or hit["circled"]:
        return (_HAN if han in _HAN else "①②③④⑤⑥⑦⑧⑨").index(han) + 1
    return int(hit["step"] or hit["digit"] or hit["round"])


def _joined(text: str, masked: str, order: Callable[[str], bool]) -> tuple[str, ...]:
    joints = list(_JOINT.finditer(masked))
    opened = _OPENING.match(masked) is not None or "先" in masked[: joints[0].start() if joints else 0]
    steps: list[str] = []
    begin = 0
    for at, joint in enumerate(joints):
        end = joints[at + 1].start() if at + 1 < len(joints) else len(text)
        left, right = slice(begin, joint.start()), slice(joint.end(), end)
        if not _may_cut(joint, masked, opened=opened) or not order(_trimmed(text[right])):
            continue
        if not order(_trimmed(text[left])) or _governed(masked[left], masked[right], joint):
            continue
        steps.append(_trimmed(text[left]))
        begin = joint.end()
    return (*steps, _trimmed(text[begin:]))


def _may_cut(joint: re.Match[str], masked: str, *, opened: bool) -> bool:
    """Whether the text may be cut here: words with other meanings count only after a stop, `and`, or an earlier
    `first`."""
    stopped = bool(joint["stop"]) or "\n" in joint.group()
    if joint["end"]:
        return stopped or bool(joint["and"])
    if joint["zhend"]:
        return stopped or opened
    if joint["zai"]:
        return stopped or opened or not masked.endswith(("个", "不", "要", "可以", "能"), 0, joint.start())
    return not masked.startswith("的", joint.end())


def _governed(left: str, right: str, joint: re.Match[str]) -> bool:
    """Whether the joined part belongs to something on the left: a condition, `how to`, a clause with its own
    subject."""
    if _CONDITION.search(left) or is_thing(right):
        return True
    thing = _A_THING.search(left, max(map(left.rfind, "，。,")) + 1)
    is_first = left.endswith("先") or (thing is not None and "先" in left[thing.end() :])
    if (is_first and not left.strip().startswith("先")) or _ACTS.search(left):
        return True
    # somebody else acts in the last clause, or is told how to act
    begin = max(map(left.rfind, "，,。；;\n")) + 1
    line = left.rfind("\n", 0, begin) + 1
    before = left[line:begin].rstrip()
    if before[-1:] in {"，", ","} and before[:-1].strip() and _SOMEBODY.match(left, begin):
        return True
    if any(left[line : hit.start()].strip() for hit in islice(_TOLD.finditer(left, begin), 2)):
        return True
    if joint["stop"]:
        return False
    if _EXPLAIN.match(left.strip()) and _ASKS.search(right) and not _EXPLAIN.match(right.strip()):
        return True
    hit = _HOW_TO.search(left)
    return bool(hit and (hit["verb"] is None or is_verb(hit["verb"]))) or _SUBJECT.search(left) is not None


def _trimmed(part: str) -> str:
    """The part without the punctuation around it and without a leading word of order."""
    text = _BULLET.sub("", part.strip(_EDGE))
    text = _OPENING.sub("", _CLOSING.sub("", text)).strip(_EDGE)
    return text[:-1].rstrip() if text.endswith(".") and not text.endswith("..") else text

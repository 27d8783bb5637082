"""Splits a message at words that join requests (`and`, `also`, `并且`), as each may need another skill.

Nothing is cut inside quotes, code or an address, after a colon, in a message that states an order of steps (workflows
handle that), or if one verb governs both parts: "the pros and cons of it" is one thing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from navigator_kernel.text import lazy_compile

if TYPE_CHECKING:
    from collections.abc import Sequence

LIMIT = 4_000  # characters of a message that can contain several requests; a longer one is a text
MOST = 3  # most clauses, and skills, of one message
_PIECES = 12  # joints from which a message is a text, not a list of requests

_MASKED = lazy_compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|\"[^\"\n]*\"|(?<!\w)'[^'\n]*'(?!\w)|“[^“”\n]*”|‘[^‘’\n]*’|「[^「」\n]*」|『[^『』\n]*』|《[^《》\n]*》"
    r"|(?<!\w)[A-Za-z][A-Za-z\d+.-]{0,15}://[^\s，。；]+"
    r"|(?::(?=\s)|：).*",  # the text after a colon is the object, not a request
    re.DOTALL,
)
_BORDER = r"(?<![\da-z_\u00b5-\u024f-])"  # a word may follow Chinese without a space
_STRONG = (
    rf"{_BORDER}(?:also|besides|in\s+addition(?!\s+to)|additionally)(?![\w-])"
    r"|(?:while\s+(?:you|we)(?:['’]re|\s+are)\s+at\s+it|by\s+the\s+way)(?![\w-])|并且|而且|同时|还(?:[要想得]|有(?![多哪几没什谁]))|另外|此外|顺[便带]"
)
_WEAK = (
    rf"{_BORDER}(?:and|as\s+well\s+as|along\s+with|together\s+with|plus)(?![\w-])|以及|外加"
    r"|(?<![合归兼吞一])并(?![发行列集排购])|(?<![总之饱温])和(?![平谐睦解])|(?<!参)与(?!否)|(?<![涉普以])及(?![时格其])"
)
_JOINT = lazy_compile(
    rf"(?P<stop>(?:[;；。！？!?\n]|(?<=\w)\.(?=\s|$))+|(?<!\d)[,，]+|[,，]+(?!\d)|、|(?<=\s)[/&](?=\s))?[,，、;；\s]*"
    rf"(?P<words>(?:(?:{_STRONG}|{_WEAK})[,，\s]*)*)",
    re.IGNORECASE,
)
_STOP = lazy_compile(r"[;；。！？!?.\n]")
_ALSO = lazy_compile(_STRONG, re.IGNORECASE)
_STOPS = " \t\r\n,，。;；、!！?？"
_EDGE = f"{_STOPS}./&"

# Words for an order of steps, or for an event to wait for
_ORDERED = lazy_compile(
    r"\b(?:then|afterwards?|after|before|next|once|until|finally|lastly|first(?:ly)?|second(?:ly)?|subsequently)\b"
    r"|然后|接着|接下来|之后|以后|随后|其次|最后|第[一二三]步|(?<!优)先(?!进)|再",
    re.IGNORECASE,
)
# A clause that gives a condition or a reason, or excludes something
_ASIDE = lazy_compile(
    r"\s*(?:please\s+)?(?:but|or|nor|if|when|whenever|while|unless|because|since|although|though|so)(?![\w-])"
    r"|\s*请?(?:但|不过|或|如果|要是|假如|当|因为|由于|为了|虽然|即使|只要|除非)",
    re.IGNORECASE,
)
_UNWANTED = lazy_compile(
    r"\b(?:not|no|never|without|except|instead|rather|skip|ignore)\b|n['’]t\b"
    r"|不[要用必需想]|(?<![级类特分识区个性])别|无[需须]|除了|除外|以外|不算|忽略|跳过",
    re.IGNORECASE,
)
# A clause that says what is not to be done: `do not check docs`, `别查链接`
_REFUSED = lazy_compile(
    r"(?:(?:^|[,;.!?，；。！？\n])[^\S\n]*+(?:(?:but|and|so|please|just|also)\s+|[但也请并就而且]){0,3}"
    r"|\s(?:and|but)\s+(?:please\s+)?|(?:但是?|并且?|而且?)(?=[不别]))"
    r"(?:(?:do\s+not|don['’]?t)(?!\s+(?:forget|worry|hesitate|you|we|i)\b)|(?:there\s+is\s+)?no\s+need\s+(?:to|for)|never(?:\s+mind|\s+you\s+mind)?"
    r"|without\s+\w+ing|forget\s+about|leave\s+(?:out|alone)|skip|ignore|not\s+the)\b(?:[^,;.!?，；。！？\n]|\.(?=\w))*"
    r"|(?:(?:^|[,;.!?，；。！？\n])[^\S\n]*+[但也请并就而且]{0,3}|(?:但是?|并且?|而且?))"
    r"(?:不要|不用|不必|不需要|不想|无需|先?别(?![忘的人名处])|跳过|忽略)(?!忘)(?:[^,;.!?，；。！？\n]|\.(?=\w))*",
    re.IGNORECASE,
)
# A part after a mere `and` that begins so belongs to the part before: `the images`, `warnings are in it`
_BELONGS = lazy_compile(
    r"(?:the|an?|my|our|your|its|their|his|her|these|those|this|that|all|any|some|every|each|other|more|most|of|in|on"
    r"|for|to|with|from|by|it|them|tell\s+(?:me|us))(?![\w-])|告诉我"
    r"|(?!(?:what|which|who|how|where|when|why)\b)[\w-]+\s+(?:of|in|within|between|per|is|are|was|were|has|have|does|do)(?![\w-])",
    re.IGNORECASE,
)
_NO_SUBJECT = lazy_compile(
    r"(?:分别|各自?|[总一]?共)?(?:出现|占|是)了?(?:多少|几|哪)|[只仅光](?:要|看|算|统计|列|显示|保留)|按照?.{1,12}?排[序列名]?|(?:only|just|sort(?:ed)?|order(?:ed)?|where)\b",
    re.IGNORECASE,
)
_COMPARES = lazy_compile(
    r"\b(?:between|compar\w+|differ\w*|versus|vs)\b|对比|比较|区别|差异|不同|之间|关系|相比", re.IGNORECASE
)
# A clause of a long message, and words in one that say that something is not wanted or is there already
_CLAUSE = lazy_compile(r"[^.!?;,:()。！？；，：（）\n]*[.!?;,:()。！？；，：（）\n]?")
_EXCLUDES = lazy_compile(
    r"\b(?:no|not|never|without|already|leave)\b|n['’]t\b|不用|不要|(?<![级类特分识区个性])别|不碰|不在|不需要|已经|无需",
    re.IGNORECASE,
)
# A colon and what follows: a text that the words before it point to, one below an empty line, or code or data
_DATA = lazy_compile(
    r"(?P<points>\b(?:of|in|on|from|this|these|below|following)|(?:这[段句篇]|以下|下面)(?!问题)[^\s：:]{0,4})?"
    r"(?P<colon>:\s|：)(?(points)|(?=[^\S\n]{0,9}\n|[^\n]{0,300}?(?:[{}\[\]=;<>|]|\w\()))",
    re.IGNORECASE,
)
_LONG, _LEFT = 300, 0.3  # bytes of UTF-8 of a long message, and the least share of it that says what is wanted
_TERM = lazy_compile(r"[\u3400-\u4dbf\u4e00-\u9fff]+|[^\W_]+")
_ASCII_TERM = lazy_compile(r"[A-Za-z0-9]+")
_EMPTY = frozenset(
    """a an the this that these those it its them they my our your me us we i you he she and or of in on at to for with
    from by is are be do does did can could would will should may please pls also too so just all any some thanks
    thank hi hello hey ok need want like let give get make have has what which how there here now""".split()
)
_EMPTY_HAN = lazy_compile(
    r"谢谢你?|请问|请|麻烦|帮忙?|给?我们?|你们?|它们?|这[个些段份]?|那[个些段份]?|一[下个些]|的|了|吧|吗|呢|把|也|都|还|要|想|能|会|可以|需要"
)
# Every message that spells out steps contains one of these
_STEPS = lazy_compile(
    r"\bthen\b|\bafter|\bnext\b|\bfinally\b|\blastly\b|\bstep\b|\bsecond|\bsubsequently\b|\bdone\b"
    r"|然后|接着|接下来|之后|以后|随后|其次|紧接|而后|最后|末了|再|步|[一1][.)、）]|[(（]1",
    re.IGNORECASE,
)
# Every English one contains one of these: searching for them is cheaper than the pattern
_STEP_MARKS = "then after next finally lastly step second subsequently done 1. 1) (1".split()
# Every joint in an English message contains one of these marks or words
_MARKS, _BETWEEN = frozenset(";!?\n,"), (". ", " / ", " & ")
_WORDS = frozenset("also besides addition additionally and well along together plus".split())
_COURTESY = lazy_compile(
    r"^(?:(?:please|pls|now|just|then|finally|ok(?:ay)?|and|also|hey|hi|(?:can|could|would|will) you|i(?:'d| would) like(?: to)?"
    r"|i (?:want|need)(?: to)?|let me|help me)\b[\s,:]*|(?:请|麻烦|帮我|帮忙|给我|我想|我要|再|然后|最后|接着|先|顺便|一下)[\s，,]*)+",
    re.IGNORECASE,
)
_LOOKS = lazy_compile(
    r"(?:the )?(?:h?o?w (?:many|much|long|big|large|often|old)|which|what(?:'s| is| are)?|who(?:se)?|when|where|is|are|any|do|does|did|has|have|was|were"
    r"|count|number|size|amount|length|list|show|find|search|look|check|scan|tell|give|report|summari[sz]e|sum|total|average|analy[sz]e|compare|know|see"
    r"|[a-z]+[a-rt-z]s (?:in|of|from|under|since|between))\b",
    re.IGNORECASE,
)
_LOOK = lazy_compile(
    r"\b(?:list|show|count|check|scan|look|search|find|report|analy[sz]e|summari[sz]e|tell)(?:ing)?\b|[统计列查看数扫汇找]",
    re.IGNORECASE,
)
_ASKS_ZH = lazy_compile(
    r"多少|几[个次条行处]|哪|谁|什么|怎么?样|有没有|是否|是不是|吗[？?。]?$|^(?:统计|列出|列一下|查|找|检查|看|汇总|分析|总结|数|告诉|报告|扫描|盘点|对比|显示|展示)|最[高低大小多少长短快慢新旧早晚]的[^,，。]{1,12}[？?。]?$|的(?:[字词行总个]数|数量|大小|总[和额量]|合计|列表)[？?。]?$"
)
_BOTH = lazy_compile(r"\bboth\s+|[这那]?[两三几]个(?=\s*技能)", re.IGNORECASE)
_COMMA_WORD = lazy_compile(r"[,，][^\w,，]*+\w")


class Clause(Struct, frozen=True):
    """`apart` says that more than a mere `and` or comma separates it from the one before."""

    text: str
    apart: bool


def may_spell_out(text: str) -> bool:
    """A cheap check for a word or number that joins steps, before the text is parsed."""
    if is_long(text):
        return True
    if text.isascii() and not any(mark in text.lower() for mark in _STEP_MARKS):
        return False
    return _STEPS.search(text) is not None


def is_long(text: str) -> bool:
    """Whether a message has sentences around what it asks for."""
    return len(text.encode("utf-8", "surrogatepass")) >= _LONG


def asked_for(text: str) -> str:
    """What a message asks for: a long one without the clauses that exclude something, if it has much else; a short one
    without the text, code or data that it gives after a colon."""
    if not is_long(text):
        hit = _DATA.search(text)
        rest = text[: hit.start("colon")].rstrip() if hit else text
        return rest if _substance(rest) >= 2 else text
    return without_excluded(text)


def without_excluded(text: str) -> str:
    """A text without the clauses that exclude something, if it has much else."""
    rest = "".join(" " if _EXCLUDES.search(clause) else clause for clause in _CLAUSE.findall(text))
    return rest if len(rest) > _LEFT * len(text) else text


def asks_to_look(text: str) -> bool:
    """Whether `text` asks something, or orders no more than to look, count or report: nothing is to be changed by it."""
    order = _COURTESY.sub("", text.strip())
    return _LOOKS.match(order) is not None or _ASKS_ZH.search(order) is not None


def without_refused(text: str, names: Sequence[str] = ()) -> str:
    """A text without the clauses that say what is not to be done, as it is if they are all of it. A clause that leaves
    out the `names` of files says where, and not what."""
    rest = _REFUSED.sub(lambda hit: hit.group() if any(map(hit.group().count, names)) else " ", text).strip(_STOPS)
    return rest if rest and _content(rest) else text


def refuses(text: str) -> bool:
    """Whether all of a text says that something is not to be looked at, counted or listed."""
    return _REFUSED.match(text) is not None and not _content(_REFUSED.sub(" ", text)) and _LOOK.search(text) is not None


def clauses(text: str, names: Sequence[str] = (), *, objects: bool = False) -> tuple[Clause, ...]:
    """The two or three requests in order, or none if the text is one request or has too many. The `names` of files are
    not cut. With `objects`, the parts may also be several objects of one verb, and steps with an order."""
    if len(text) > LIMIT or not may_join(text) or (_ORDERED.search(text) and not objects):
        return ()
    pieces: list[str] = []
    apart: list[bool] = []
    for joint, piece in _pieces(text, names):
        alone = (
            _substance(piece) >= 2 and not _NO_SUBJECT.match(piece)
            if objects
            else bool(pieces) and _stands_alone(pieces[-1], joint, piece)
        )
        if pieces and (_substance(pieces[-1]) < 2 or not alone):
            pieces[-1] += joint + piece
        else:
            pieces.append(piece)
            apart.append(_divides(joint) or bool(_COMMA_WORD.search(joint)))
    stripped = [piece.strip(_EDGE) for piece in pieces]
    most = _PIECES if objects else MOST
    if not 2 <= len(stripped) <= most or any(_ASIDE.match(clause) or _UNWANTED.search(clause) for clause in stripped):
        return ()
    return tuple(map(Clause, stripped, [True, *apart[1:]]))


def parts(text: str) -> tuple[str, ...]:
    """The joined pieces in order, for lists of names; the whole text if nothing joins."""
    if len(text) > LIMIT or not may_join(text) or _ORDERED.search(text):
        return (text.strip(),)
    pieces = [_BOTH.sub("", piece).strip(_STOPS) for _, piece in _pieces(text)]
    return tuple(filter(_content, pieces))


def may_join(text: str) -> bool:
    """A cheap check before the text is parsed."""
    text = text.strip(_EDGE)
    if not text.isascii() or not _MARKS.isdisjoint(text) or any(mark in text for mark in _BETWEEN):
        return True
    return not _WORDS.isdisjoint(_ASCII_TERM.findall(text.lower()))


def _pieces(text: str, names: Sequence[str] = ()) -> list[tuple[str, str]]:
    """The pieces with their joining words; one piece if there are too many."""
    masked = text
    for name in names:
        masked = masked.replace(name, "Q" * len(name))
    masked = _MASKED.sub(lambda hit: "Q" * len(hit.group()), masked)
    joints = [hit for hit in _JOINT.finditer(masked) if hit["stop"] or hit["words"]]
    if len(joints) >= _PIECES:
        return [("", text)]
    ends = [hit.start() for hit in joints] + [len(text)]
    rest = [(hit.group(), text[hit.end() : end]) for hit, end in zip(joints, ends[1:], strict=True)]
    return [("", text[: ends[0]]), *rest]


def _stands_alone(left: str, joint: str, piece: str) -> bool:
    """Whether `piece` is a separate request, and not a part of what `left` is about."""
    if _substance(piece) < 2:
        return False
    if _divides(joint):
        return True
    return not (_BELONGS.match(piece) or _COMPARES.search(left) or _COMPARES.search(piece))


def _divides(joint: str) -> bool:
    return bool(_STOP.search(joint) or _ALSO.search(joint))


def _substance(piece: str) -> int:
    """The number of meaningful terms: words, and pairs of Chinese characters."""
    return sum(max(1, len(run) - 1) if run > "\u3400" else len(run) > 1 for run in _content(piece))


def _content(piece: str) -> list[str]:
    """The words and runs of Chinese characters, without common words."""
    runs = _ASCII_TERM.findall(piece) if piece.isascii() else _TERM.findall(_EMPTY_HAN.sub(" ", piece))
    return [run for run in runs if run.lower() not in _EMPTY]

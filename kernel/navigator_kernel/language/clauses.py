"""Splits a message at words that join requests (`and`, `also`, `并且`), as each may need another skill.

Nothing is cut inside quotes, code or an address, after a colon, in a message that states an order of steps (workflows
handle that), or if one verb governs both parts: "the pros and cons of it" is one thing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import Struct

from navigator_kernel.language.sources import SOURCES
from navigator_kernel.text import lazy_compile

if TYPE_CHECKING:
    from collections.abc import Sequence

_SOURCES = SOURCES["clauses"]
LIMIT = 4_000  # characters of a message that can contain several requests; a longer one is a text
MOST = 3  # most clauses, and skills, of one message
_PIECES = 12  # joints from which a message is a text, not a list of requests

OF_COMMITS = lazy_compile("commit|work (?:by|of)|push|contribut|author|提交|贡献|改|作者", re.IGNORECASE)
_MASKED = lazy_compile(_SOURCES["_MASKED"], re.DOTALL)
_JOINT = lazy_compile(_SOURCES["_JOINT"], re.IGNORECASE)
_STOP = lazy_compile(r"[;；。！？!?.\n]")
_ALSO = lazy_compile(_SOURCES["_STRONG"], re.IGNORECASE)
_STOPS = " \t\r\n,，。;；、!！?？"
_EDGE = f"{_STOPS}./&"

# Words for an order of steps, or for an event to wait for
_ORDERED = lazy_compile(_SOURCES["_ORDERED"], re.IGNORECASE)
# A clause that gives a condition or a reason, or excludes something
_ASIDE = lazy_compile(_SOURCES["_ASIDE"], re.IGNORECASE)
_UNWANTED = lazy_compile(_SOURCES["_UNWANTED"], re.IGNORECASE)
# A clause that says what is not to be done: `do not check docs`, `别查链接`
_REFUSED = lazy_compile(_SOURCES["_REFUSED"], re.IGNORECASE)
# A clause that names what is there already or is not meant: `the pdf is done`, `not a pdf`, `简历不用改`
_SETTLED = lazy_compile(_SOURCES["_SETTLED"], re.IGNORECASE)
_OBJECT = lazy_compile(r"[把将]|[做写]成|\.[A-Za-z]")
_REFERS = lazy_compile(r"(?<![\w-])(?:it|its|this|that|them|their|these|those)(?![\w-])|[它此这该]", re.IGNORECASE)
# A part after a mere `and` that begins so belongs to the part before: `the images`, `warnings are in it`
_BELONGS = lazy_compile(_SOURCES["_BELONGS"], re.IGNORECASE)
_NO_SUBJECT = lazy_compile(_SOURCES["_NO_SUBJECT"], re.IGNORECASE)
_COMPARES = lazy_compile(_SOURCES["_COMPARES"], re.IGNORECASE)
# A clause of a long message, and words in one that say that something is not wanted or is there already
_CLAUSE = lazy_compile(r"[^.!?;,:()。！？；，：（）\n]*[.!?;,:()。！？；，：（）\n]?")
_EXCLUDES = lazy_compile(_SOURCES["_EXCLUDES"], re.IGNORECASE)
# A colon and what follows: a text that the words before it point to, one below an empty line, or code or data
_DATA = lazy_compile(_SOURCES["_DATA"], re.IGNORECASE)
_LONG, _LEFT = 300, 0.3  # bytes of UTF-8 of a long message, and the least share of it that says what is wanted
_TERM = lazy_compile(r"[\u3400-\u4dbf\u4e00-\u9fff]+|[^\W_]+")
_ASCII_TERM = lazy_compile(r"[A-Za-z0-9]+")
_EMPTY = frozenset(
    """a an the this that these those it its them they my our your me us we i you he she and or of in on at to for with
    from by is are be do does did can could would will should may please pls also too so just all any some thanks
    thank hi hello hey ok need want like let give get make have has what which how there here now""".split()
)
_EMPTY_HAN = lazy_compile(_SOURCES["_EMPTY_HAN"])
# Every message that spells out steps contains one of these
_STEPS = lazy_compile(_SOURCES["_STEPS"], re.IGNORECASE)
# Every English one contains one of these: searching for them is cheaper than the pattern
_STEP_MARKS = "then after next finally lastly step second subsequently done 1. 1) (1".split()
# Every joint in an English message contains one of these marks or words
_MARKS, _BETWEEN = frozenset(";!?\n,"), (". ", " / ", " & ")
_WORDS = frozenset("also besides addition additionally and well along together plus".split())
_GREETS = lazy_compile(_SOURCES["_GREETS"], re.IGNORECASE)
_COURTESY = lazy_compile(_SOURCES["_COURTESY"], re.IGNORECASE)
_RUN_WORKFLOW = tuple(lazy_compile(_SOURCES[name], re.IGNORECASE) for name in ("_RUN_MARKED", "_RUN_NAMED"))
_LIST_WORKFLOWS = lazy_compile(_SOURCES["_LIST_WORKFLOWS"], re.IGNORECASE)
_SAVE_WORKFLOW = lazy_compile(_SOURCES["_SAVE_WORKFLOW"], re.IGNORECASE)
# Acts that change or show more than a skill that only looks; `does` in the data has the words of skills that do them
_ACTS = {
    name.removeprefix("act."): lazy_compile(source, re.IGNORECASE)
    for name, source in _SOURCES.items()
    if name.startswith("act.")
}
_LOOKS = lazy_compile(_SOURCES["_LOOKS"], re.IGNORECASE)
_LOOK = lazy_compile(_SOURCES["_LOOK"], re.IGNORECASE)
_ASKS_ZH = lazy_compile(_SOURCES["_ASKS_ZH"])
# A remark: what somebody feels, or what happened or is so; and words of a request, a question or a need
_FEELS = lazy_compile(_SOURCES["_FEELS"], re.IGNORECASE)
_HAPPENED = lazy_compile(_SOURCES["_HAPPENED"], re.IGNORECASE)
_NEEDS = lazy_compile(_SOURCES["_NEEDS"], re.IGNORECASE)
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
    rest = "".join(" " if _EXCLUDES.search(clause) else clause for clause in _CLAUSE.findall(text))
    return rest if len(rest) > _LEFT * len(text) else text


def asks_to_look(text: str) -> bool:
    """Whether `text` asks something, or orders no more than to look, count or report: nothing is to be changed by it."""
    order = _COURTESY.sub("", text.strip())
    return _LOOKS.match(order) is not None or _ASKS_ZH.search(order) is not None


def greets(text: str) -> bool:
    """Whether `text` only says hello."""
    return _GREETS.search(text) is not None


def asks_for_more(text: str, skills: Sequence[str]) -> bool:
    """Whether a message orders an act, to draw, save, delete, send or the like, of which none of the descriptions
    `skills` speaks."""
    order = _COURTESY.sub("", text.strip())
    for act, pattern in _ACTS.items():
        if hit := pattern.search(order) or pattern.search(text):
            kind = next(filter(None, hit.groupdict().values()), "")
            does = lazy_compile(_SOURCES[f"does.{act}"].replace("{to}", re.escape(kind)), re.IGNORECASE)
            if not any(map(does.search, skills)):
                return True
    return False


def remark(text: str) -> Literal["feeling", "event", ""]:
    """Whether a short text only says what somebody likes or dislikes, or else what happened or is so, and nothing in it
    has the form of a request, a question or a need: `I hate slides`, `my viewer crashed again`."""
    if is_long(text) or _NEEDS.search(text):
        return ""
    return "feeling" if _FEELS.search(text) else "event" if _HAPPENED.search(text) else ""


def without_refused(text: str, names: Sequence[str] = ()) -> str:
    """A text without the clauses that say what is not to be done, is there already, or is not meant; as it is if they
    are all of it, or if the rest refers to them. A clause that leaves out the `names` of files says where, and not
    what."""
    rest = _REFUSED.sub(lambda hit: hit.group() if any(map(hit.group().count, names)) else " ", text).strip(_STOPS)
    text = rest if rest and _content(rest) else text
    rest, count = _SETTLED.subn(" ", text)
    rest = rest.strip(f"{_STOPS}:：.")
    named = rest.isascii() or _OBJECT.search(rest)  # what a Chinese order does not name is what was just named
    return rest if count and named and _substance(rest) >= 2 and not _REFERS.search(rest) else text


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
            # a separate request, and not a part of what the piece before is about
            else bool(pieces)
            and _substance(piece) >= 2
            and (
                _divides(joint)
                or not (_BELONGS.match(piece) or _COMPARES.search(pieces[-1]) or _COMPARES.search(piece))
            )
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


def _divides(joint: str) -> bool:
    return bool(_STOP.search(joint) or _ALSO.search(joint))


def _substance(piece: str) -> int:
    """The number of meaningful terms: words, and pairs of Chinese characters."""
    return sum(max(1, len(run) - 1) if run > "\u3400" else len(run) > 1 for run in _content(piece))


def _content(piece: str) -> list[str]:
    """The words and runs of Chinese characters, without common words."""
    runs = _ASCII_TERM.findall(piece) if piece.isascii() else _TERM.findall(_EMPTY_HAN.sub(" ", piece))
    return [run for run in runs if run.lower() not in _EMPTY]


class WorkflowOrder(NamedTuple):
    """An order about stored workflows. `words` are those behind the name; `is_sure` says that the order itself says
    that the name is of a workflow, not only its verb: `run daily` may mean anything."""

    verb: Literal["run", "list", "save"]
    name: str = ""
    words: str = ""
    is_sure: bool = True


def workflow_order(text: str) -> WorkflowOrder | None:
    """What a whole message orders about stored workflows: to run one, to list them, to save the last work as one."""
    if _LIST_WORKFLOWS.fullmatch(text):
        return WorkflowOrder("list")
    if (hit := _SAVE_WORKFLOW.fullmatch(text)) is not None:
        return WorkflowOrder("save", hit["name"] or hit["before"] or hit["after"] or "")
    marked, named = (pattern.fullmatch(text) for pattern in _RUN_WORKFLOW)
    if marked is not None:
        return WorkflowOrder("run", marked["name"], marked["rest"])
    if named is not None:
        return WorkflowOrder("run", named["name"], named["rest"] or "", is_sure=bool(named["kind"]))
    return None

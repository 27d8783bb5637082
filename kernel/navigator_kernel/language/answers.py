"""Says what a person's next message means, given what is open: read by rule, and never more than its words.

A message agrees only if every word of it agrees or weighs nothing. Refusals and doubts win over everything else, and
an unclear message counts as a question, which changes nothing. The words are data: `answers.toml`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.language.clauses import workflow_order
from navigator_kernel.language.orders import has_new_object, is_apart, is_order, is_wanted
from navigator_kernel.language.signs import Clause, Piece, clauses, is_path, normal, phrases_of, verbs, words
from navigator_kernel.text import fold, lazy_compile

Situation = Literal[
    "approval",
    "choice_one",
    "choice_many",
    "missing",
    "free",
    "skill",
    "plan",
    "after_run",
    "after_error",
    "interrupted",
    "idle",
]
Outcome = Literal[
    "yes", "yes_session", "always", "no", "no_with_reason", "question", "stop", "undo", "other", "refine", "pick",
    "none", "value", "cancel", "edit", "follow_up", "thanks", "complaint", "retry", "retry_with", "nothing", "help",
]  # fmt: skip

LONGEST = 200  # characters of an answer
IDLE = 60  # characters of a message that may be an answer though nothing is open
REASON = 1_000  # characters of a person's reason
HEAD = 300  # characters of a question that name its effect; a diff may follow
_BESIDE_A_PLACE = frozenset(
    {"yes", "go", "verb.use", "no", "neg", "wait", "lead", "tail", "change", "correct", "thanks"}
)
_NO_VALUE = tuple(
    "我|你|i |im |ill |one |the one |same|the same|like last|原来|上次|之前|和上|跟上|和之|跟之".split("|")
)
_CALLED = frozenset({"is called", "called", "named", "its called", "叫", "叫做", "名叫", "名字是"})
_WHY = lazy_compile(r"(?is)\s*e(?:[\s:：,，]|$)(?P<why>.*)")
_INSTRUCTION = lazy_compile(r"(?:/(?:[^\W_][\w-]*:)?|@@|#(?!\d))[^\W_][\w-]*(?=\s|$)|!(?![\[!])[ \t]*[^\s`!]")
_ASKING = frozenset({"what", "where", "who", "why", "how", "or not", "what exactly", "where exactly"})
_ASKED_BEHIND = frozenset({"不", "没", "没有", "否"})  # 它算标点不, 有方案没
_SCORN = lazy_compile(r"([\u4e00-\u9fff])(?:什么|啥)\1|[\u4e00-\u9fff](?:个屁|个鬼|个锤子)")  # 删什么删
_PRONOUNS = frozenset({"it", "that", "this", "them", "它", "这个"})
_ONCE_MORE = lazy_compile(r"再[给发跑帮来试查数算翻做弄执].{0,6}一[次遍回]")
_SAME = frozenset(
    {"what about", "how about", "same for", "same with", "the same for", "the same with", "do the same for"}
)
_CALLED_AGAIN = lazy_compile(r"(?i)^(?:and )?(?:again|once more|next|now|再来|再来一次|下一个|这次)[ \t]?[:：]")
_GOES_ON = lazy_compile(
    r"(?i)^(?:please )?(?:continue|go on|carry on|keep going|proceed|继续|接着|接着来|往下)[\s.!。！吧]*$"
)
_IN_ORDER = lazy_compile(
    r"(?i)^(?:(?:and|now)\s+)*(?:(?:the\s+)?(?:top|first|last|biggest|largest|smallest|highest|lowest)\s+\d{1,3}|(?:sort|order|rank)(?:ed)?"
    r"(?:\s+(?:it|them|these))?(?:\s+by\s+[\w-]+)?|(?:highest|largest|biggest|most)\s+first)[.!]?$|^(?:前\s?\d{1,3}\s?[个名条]?|从[大高多]到[小低少]|排序|排一下|降序)$"
)
# A refusal of what was asked for, whatever it was, and words behind which the next order stands by itself
_DROPPED = lazy_compile(
    r"(?i)(?:please |no,? )?(?:don'?t|do not|no need to) \w+ (?:it|that|this|them|anything)$"
    r"|[那先]?(?:不用|不要|别|不)再?(?:[\u4e00-\u9fff]{1,3}了|(?![的了])[\u4e00-\u9fff])$"
)
_JOINTS = frozenset({"and", "then", "just", "instead", "rather", "就", "那", "那就"})
_CLOSED = lazy_compile(r"(?i)[了吧]$|^(?:never ?mind|nvm|(?:forget|cancel|drop|scrap) (?:it|that|this))$")
_USES = lazy_compile(r"(?i)(?:just )?(?:use|take|try|go with) (?:the )?\S+(?: instead)?$|[就那]?[用选]\s*\S+\s*吧?$")
_HERE = lazy_compile(
    r"(?i)\b(?:this|that) (?:folder|directory|project|repo\w*|week|month|year)\b"
    r"|这个?(?:文件夹|目录|项目|[周月年])"
)
_OF_STEP = lazy_compile(r"(?i)\bsteps?\b|步|加上")
_STEPS = lazy_compile(r"(?i)(?:[,;，；。]|\band\b|\bthen\b|然后|接着|最后|再|并)+")
_SURELY = lazy_compile(r"[吗？?]$")
_TEXT_WANTED = lazy_compile(
    r"(?i)\b(?:text|content|message|note|words|prompt|description|title|query|request|sentence|body|what to)\b"
    r"|正文|文字|内容|文本|标题|描述|消息|句子|要什么"
)
_TASK_WANTED = lazy_compile(r"(?i)\b(?:task|to-?do|reminder)\b|任务|待办|提醒")
_SCOPE = lazy_compile(r"(?i)^s$|^s\b|session|conversation|chat|until i|till i|会话|对话|聊天")
_EITHER = lazy_compile(r"(?!不|错|了|好)([\u4e00-\u9fff])不\1|是.{1,12}还是")
# A word for what the open question is about, for its effect, or for its reason
_REFERRING = lazy_compile(r"(?i)\b(?:it|its|this|that|these|those|them|they|will|would|why)\b|[它这那会]|为什么|为啥")
# The name of a file, also between Chinese words: `销售.csv有几行`
_FILE = lazy_compile(r"(?i)(?<![\w@/~-])[\w@/~-]++\.[a-z][a-z\d]{0,5}(?![a-z\d])")
# Situations with a few answers, of which a question about something else is none
_ONE_OF_FEW = frozenset({"approval", "choice_one", "choice_many", "plan", "interrupted", "skill", "missing"})
_OPEN_QUESTION = lazy_compile(r"(?i)^(?:what|who|which|how|when|where)|[几多什啥哪谁怎]")
_MOVES = frozenset({"to", "把", "将", "翻成"})  # words of a change that also belong to an order
_ONLY = frozenset({"only", "just", "只", "只要"})
_OF_ANSWER = frozenset({"no", "stop", "wait", "undo", "correct"})
_AGREE = frozenset({"yes", "go"})
_WIDTH = frozenset({"session", "always", "once"})
_FIRM = frozenset(
    {"yes", "go", "no", "stop", "wait", "undo", "again", "thanks", "praise", "blame", "topic", "self", "correct"}
)


class OpenState(Struct, frozen=True, kw_only=True):
    """What is open. `question` is its text, `options` are the skills to choose from, the steps of a plan, or the words
    that name a skill, with the skills' `names`; `asked` says that the last answer ended in a question of its own,
    `works` that a model did the last run."""

    situation: Situation = "idle"
    question: str = ""
    options: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    asked: bool = False
    works: bool = False


class Reading(Struct, frozen=True, kw_only=True):
    """`value` is the number of the picked option or the value that was asked for, `reason` the words that go with a
    refusal or a change, `wish` those behind a refusal that ask for something else. Of a `question`, `asks` says that it
    asks something, `recalls` that it asks only what was done or what waits, `loose` that it says something else."""

    outcome: Outcome
    value: str = ""
    reason: str = ""
    wish: str = ""
    asks: bool = False
    recalls: bool = False
    loose: bool = False


class _Found(NamedTuple):
    """`marks` are the signs that count, `content` the words of each clause that no list has, `weak` the signs of words
    that may also weigh nothing; `asks` says that the message asks something."""

    marks: frozenset[str]
    weak: frozenset[str]
    content: tuple[str, ...]
    asks: bool
    clauses: tuple[Clause, ...]
    text: str
    last: str  # the last agreement or refusal


def read(text: str, state: OpenState) -> Reading:
    """The meaning of `text`, in time that grows with its length; over LONGEST characters it is a new request."""
    text = text.strip()
    plain = normal(text[: LONGEST + 1])
    if state.situation == "idle" and len(plain) > IDLE:
        return Reading(outcome="other")
    if state.situation in {"approval", "plan"} and (letter := _WHY.match(text)):
        outcome: Outcome = "edit" if state.situation == "plan" else "no_with_reason"
        return Reading(outcome=outcome, reason=letter["why"].strip()[:REASON])
    if _INSTRUCTION.match(plain) or ((order := workflow_order(text)) is not None and order.is_sure):
        return Reading(outcome="other")
    if len(text) > LONGEST:
        return _long(text, plain, state)
    if plain in {"?", "h", "help", "/?", "？"} and state.situation not in {"idle", "after_run", "after_error"}:
        return Reading(outcome="help")
    if (refused := _refused_for(plain, state)) is not None:
        same = len(plain) == len(text)  # then the wish can be taken as it was typed
        return replace(refused, wish=text[-len(refused.wish) :]) if same else refused
    found = _found(plain, state)
    reading = _READERS[state.situation](found, state)
    if state.situation in _ONE_OF_FEW and _is_of_its_own(found, reading, state):
        return Reading(outcome="other")
    is_asked_for_text = state.situation not in {"plan", "missing"} or wants_text(state)
    if not is_asked_for_text and reading.outcome in {"edit", "question", "value"} and _is_whole_task(text, found):
        return Reading(outcome="other")
    if "elsewhere" in found.weak and (
        reading.outcome in {"question", "complaint"}
        or (reading.outcome == "value" and found.asks and not wants_text(state))
    ):
        return Reading(outcome="other")
    if "recall" in found.weak and found.asks and not _text_of(found) and state.situation not in _ONE_OF_FEW | {"free"}:
        return Reading(outcome="question", asks=True, recalls=True)
    if reading.outcome == "question":
        return replace(reading, asks=found.asks, loose=bool(_text_of(found)))
    return replace(reading, reason=text.strip()[:REASON]) if reading.reason else reading


def is_yes(text: str) -> bool:
    """Whether the text agrees, and says nothing else."""
    return read(text, OpenState(situation="interrupted")).outcome == "yes"


def is_no(text: str) -> bool:
    """Whether the text refuses, and says nothing else."""
    return read(text, OpenState(situation="missing")).outcome == "cancel"


def only_file(text: str) -> str:
    """The file that the text names if it says nothing else: `it's app.log`, `no, use b.md instead`; else empty."""
    state = OpenState(situation="missing")
    found = _found(normal(text.strip()), state)
    *others, last = _text_of(found).split() or [""]
    is_other = "request" in found.weak or any(sign.startswith("kind.") for sign in found.weak)
    is_other = is_other or text.lstrip().startswith(("/", "#", "!", "@@"))  # an instruction
    if found.asks or is_other or (others and "verb.use" not in found.weak) or not is_path(last):
        return ""
    return read(text, state).value


def wants_text(state: OpenState) -> bool:
    """Whether a text in the person's own words is missing, not a file, a name or a number."""
    return state.situation == "missing" and any(
        pattern.search(state.question) for pattern in (_TEXT_WANTED, _TASK_WANTED)
    )


def _long(text: str, plain: str, state: OpenState) -> Reading:
    """A long message is the text that was asked for, or refuses if its beginning does, with all of it as the reason;
    otherwise it is a new request."""
    if state.situation == "free" or wants_text(state):
        return Reading(outcome="value", value=text)
    if state.situation == "approval":
        begin = clauses(plain)[:1]
        found = _found(begin[0].text[: begin[0].pieces[-1].end], state) if begin and begin[0].pieces else None
        if found is not None and found.marks & {"no", "stop"} and not _text_of(found):
            return _refused(text)
    return Reading(outcome="other")


def _refused_for(plain: str, state: OpenState) -> Reading | None:
    """A refusal of what is open, or of nothing, with a wish of its own behind it: `never mind, count other.md`,
    `cancel that and list the todos`, `不用了，统计字数`. None for all else, such as an answer behind a no, as in `no,
    the first`, and what a text could begin with where a text is wanted."""
    end, stops, is_named = 0, False, False
    for clause in clauses(plain):
        pieces = clause.pieces
        if not pieces or clause.asked:
            break
        pieces = pieces[:-1] if "neg" in pieces[-1].signs and len(pieces) > 1 else pieces  # "no don't"
        # What may stand in a refusal that names nothing of its own: "no thanks"
        refuse = [bool(piece.signs & {"no", "stop", "wait", "thanks"}) or _is_light(piece) for piece in pieces]
        count = next((at for at, refuses in enumerate(refuse) if not refuses), len(pieces))
        if count < len(pieces) and _DROPPED.match(plain[pieces[0].start : clause.pieces[-1].end]):
            end, is_named = clause.pieces[-1].end, is_named or not pieces[0].text.isascii()
            continue
        own = {sign for piece in pieces[:count] for sign in piece.signs & {"no", "stop"}}
        if not own and count < len(pieces):
            break
        stops = stops or "stop" in own
        if count < len(pieces):  # in one clause only what stands apart is a wish, not the order in "never send that"
            last = pieces[count - 1].text
            end = pieces[count].start if last.casefold() in _JOINTS or _CLOSED.search(last) else 0
            break
        end = clause.pieces[-1].end if end or own else 0
    wish = plain[end:].lstrip(" ,;.!。-~、:…") if end else ""
    if not wish or _USES.match(wish) or not _is_wish(wish):
        return None
    alone = read(wish, state).outcome
    by_text = state.situation == "free" or wants_text(state)
    if state.situation in {"idle", "after_run", "after_error"}:
        follows: Outcome = "follow_up" if alone == "follow_up" and not stops else "other"
        return Reading(outcome=follows, wish=wish) if stops or alone in {"other", "question", "follow_up"} else None
    is_text = by_text and not (_FILE.search(wish) or _INSTRUCTION.match(wish))
    if not stops and (is_text or (state.situation == "plan" and is_named) or alone == "edit"):
        return None
    if not by_text and not stops and alone in {"value", "pick", "yes"}:
        return None
    if state.situation == "approval" and not stops:
        return replace(_refused(plain), wish=wish)
    return Reading(outcome="other", wish=wish)


def _is_wish(text: str) -> bool:
    """Whether the text is an instruction, says what is wanted, orders what is not about the open matter, or asks it."""
    if _INSTRUCTION.match(text):
        return True
    if _REFERRING.search(_HERE.sub(" ", _FILE.sub(" ", text))):
        return False
    asks = text.rstrip(" .!")[-1:] in {"?", "呢", "吗"} or _has_path(text)
    return is_order(text) or is_wanted(text) or (asks and _OPEN_QUESTION.search(text) is not None)


def _found(plain: str, state: OpenState) -> _Found:
    head = plain_head(state.question)
    kinds = {kind for kind, names in verbs().items() if any(_names(word, head) for word in names)}
    if state.situation in {"idle", "after_run", "after_error"}:
        kinds = {"use", "send", "delete", "change", "access"}
    elif state.situation in {"choice_one", "choice_many", "skill"}:
        kinds = {"use"}
    elif state.situation == "plan":
        kinds = (kinds | {"run"}) - {"change"}
    elif state.situation == "interrupted":
        kinds |= {"run"}
    names = [name.casefold() for name in state.options]
    options = dict.fromkeys([*names, *(name.replace("-", " ") for name in names)], "option")
    parts = tuple(part for clause in clauses(plain, options) for part in _corrected(clause))
    marks: set[str] = set()
    weak: set[str] = set()
    content: list[str] = []
    asks = False
    last = ""
    scorns = _SCORN.search(plain) is not None
    marks |= {"again"} if _ONCE_MORE.search(plain) else set()
    for clause in parts:
        asks |= clause.asked or _asks(clause)
        own: set[str] = set()
        content.append(_weigh(clause, kinds, own, weak))
        last = "no" if own & {"no", "stop"} else "yes" if own & _AGREE else last
        marks |= own
    if scorns:
        marks, asks, last = marks | {"no"}, False, "no"
    return _Found(frozenset(marks), frozenset(weak), tuple(content), asks, parts, plain, last)


def _corrected(clause: Clause) -> Iterator[Clause]:
    """The clause in parts: what stands before a correction in its middle, such as "no wait", the correction, and what
    replaces the first part."""
    pieces = clause.pieces
    begin = next((at for at in range(1, len(pieces)) if _corrects(pieces[at : at + 2])), 0)
    end = next((at for at in range(begin, len(pieces)) if not pieces[at].signs & {"no", "wait", "correct"}), 0)
    if not begin or not end or all(piece.signs & _FIRM for piece in pieces[:begin]):
        yield clause
        return
    yield clause._replace(pieces=pieces[:begin])
    yield clause._replace(pieces=pieces[begin:end])
    yield from _corrected(clause._replace(pieces=pieces[end:]))


def _corrects(pieces: Sequence[Piece]) -> bool:
    """Whether the first of two pieces takes back what stands before: "sorry", "啊不", or "no" before a "wait"."""
    first, rest = pieces[0].signs, pieces[1:]
    takes_back = "no" in first and "neg" not in first and bool(rest) and bool(rest[0].signs & {"wait", "correct"})
    return ("correct" in first and "neg" not in first) or takes_back


def plain_head(question: str) -> str:
    """The beginning of a question, without the diff or the script that follows it."""
    return normal(question[:HEAD]).casefold()


def _names(word: str, head: str) -> bool:
    """Whether the question names the effect with this verb."""
    if not word.isascii():
        return word in head
    at = head.find(word)
    while at >= 0:
        if not (at and head[at - 1].isalnum()):
            return True
        at = head.find(word, at + 1)
    return False


def _asks(clause: Clause) -> bool:
    """Whether the clause has a Chinese question word anywhere, or an English one before any content."""
    opening = True
    for piece in clause.pieces:
        if "question" in piece.signs and (opening or not piece.text.isascii() or piece.text.casefold() in _ASKING):
            return True
        opening = opening and bool(piece.signs & (_FIRM | {"filler", "change", "next"})) and "vague" not in piece.signs
    last = clause.pieces[-1].text if len(clause.pieces) > 1 else ""
    return (
        last in _ASKED_BEHIND or _EITHER.search(clause.text[clause.pieces[0].start : clause.pieces[-1].end]) is not None
    )


def _weigh(clause: Clause, kinds: set[str], marks: set[str], weak: set[str]) -> str:
    """Adds the signs of a clause to `marks` and `weak`; returns its words that no list has. The mark `else` says that
    something in it does not belong to a yes."""
    content: list[str] = []
    pieces = clause.pieces
    at = 0
    while at < len(pieces):
        piece, signs = pieces[at], pieces[at].signs
        if _is_part_of_word(pieces, at):
            signs = frozenset()
        behind = next((other for other in pieces[at + 1 :] if not _is_light(other)), None)
        if "neg" in signs and behind is not None:
            of_effect = any(sign.removeprefix("verb.") in kinds for sign in behind.signs)
            if not of_effect and (
                behind.signs & {"hinder", "wait"} or ("stop" in behind.signs and "stop" not in signs)
            ):
                marks.add("push")
                at = pieces.index(behind) + 1
                continue
            if behind.signs <= {"always", "light", "vague"} and "always" in behind.signs:
                at = pieces.index(behind) + 1  # "not always, just for this session" refuses the width alone
                continue
            if "stop" not in signs:
                marks.add("no")
                if behind.signs & {"always", "again", "undo"}:
                    marks.add("negated")
                at = pieces.index(behind) + (1 if _acts(behind.signs) else 0) or at + 1
                continue
        at += 1
        if not signs:
            content.append(piece.text)
            marks.add("else")
            continue
        if _is_light(piece):
            weak.update(signs)
            if not signs & {"filler", "object"}:
                marks.add("else")
            continue
        strong = signs & (_FIRM | _WIDTH) - ({"topic"} if content else set())  # "into Polish, btw" changes no subject
        kind = {sign.partition(".")[2] for sign in signs if sign.startswith("verb.")}
        if kind & kinds:
            strong |= {"go"}
        if "neg" in signs and not strong:
            strong = frozenset({"no"})
        marks.update(strong or {"else"})
        weak.update(signs - strong)
        if not strong and kind and not signs & {"change", "next"}:
            content.append(piece.text)
    return " ".join(content)


def _is_part_of_word(pieces: Sequence[Piece], at: int) -> bool:
    """Whether a single Chinese character stands beside one that no list has, as in 过滤 or 整理; or a phrase with 了
    behind such a one, as in 建好了."""
    piece = pieces[at]
    if piece.text.isascii() or "neg" in piece.signs or not piece.signs:
        return False
    beside = bool(at) and pieces[at - 1].end == piece.start and not pieces[at - 1].text.isascii()
    if piece.text in {"好了", "完了", "行了"}:  # 改好了
        return beside and not _is_light(pieces[at - 1]) and "yes" not in pieces[at - 1].signs
    before = beside and not pieces[at - 1].signs
    behind = (
        at + 1 < len(pieces)
        and not pieces[at + 1].signs
        and pieces[at + 1].start == piece.end
        and not pieces[at + 1].text.isascii()
    )
    return bool(
        (before and (len(piece.text) == 1 or piece.text.endswith("了"))) or (behind and len(piece.text) == 1)
    ) and bool(piece.signs & _FIRM)


def _acts(signs: frozenset[str]) -> bool:
    return bool(signs & {"yes", "go", "again", "undo", "always", "session", "no", "stop"}) or any(
        sign.startswith("verb.") for sign in signs
    )


def _is_light(piece: Piece) -> bool:
    """Whether the piece weighs nothing by itself."""
    return bool(piece.signs & {"filler", "light", "object"}) and not piece.signs & (_FIRM | _WIDTH | {"neg"})


def _text_of(found: _Found) -> str:
    return " ".join(part for part in found.content if part)


def _has_path(text: str) -> bool:
    return any(is_path(word.strip("，。,;；\"'()")) for word in text.split())


def _is_request(found: _Found, known: str = "") -> bool:
    """Whether the message asks for something of its own: it changes the subject, or begins with a verb of a request and
    names a file that `known` does not name."""
    if "topic" in found.marks:
        return True
    words_of = [word for word in _text_of(found).split() if is_path(word) and word.casefold() not in known]
    first = _first(found)
    if found.asks and first is not None and _REFERRING.search(first.text):  # "does it send sales.csv?"
        return False
    begins = first is not None and "request" in first.signs
    return bool(words_of) and (begins or "request" in found.weak)


def _is_of_its_own(found: _Found, reading: Reading, state: OpenState) -> bool:
    """Whether the message is about a file or folder that the open question does not name, or orders a new thing, and
    not about what the answer would do: `how many rows has sales.csv?` and `write a poem`, but not `does it read
    sales.csv?`, `what about sales.csv?` or `make a backup first`. Where a skill is to be named, any question with a
    subject of its own is one."""
    pieces = [piece for clause in found.clauses for piece in clause.pieces]
    if reading.outcome not in {"question", "refine", "pick", "edit"} or not pieces:
        return False
    head, names_skill = plain_head(state.question), state.situation == "skill"
    named = [word for word in _text_of(found).split() if is_path(word.rstrip("/")) or word.endswith("/")]
    named += (files := _FILE.findall(found.text))
    others = any(word.casefold() not in head for word in named)
    parts = [found.text[clause.pieces[0].start : clause.pieces[-1].end] for clause in found.clauses if clause.pieces]
    verb = next((piece for piece in pieces if any(sign.startswith("verb.") for sign in piece.signs)), pieces[0])
    orders = [part for part in parts if is_apart(part)] if "verb.use" not in verb.signs else []
    if others and orders and state.situation in {"choice_one", "choice_many"}:
        return True
    changes = any("change" in piece.signs and piece.text not in _MOVES for piece in pieces)
    if (not names_skill and (changes or pieces[0].signs & {"next", "adds"})) or found.marks & _OF_ANSWER:
        return False
    # Without a border, what refers may seem to be a part of the name: `它会动销售.csv吗`
    refers = _REFERRING.search(_FILE.sub(" ", found.text)) or any(set("它这那") & set(name) for name in files)
    of_effect = refers or "change" in found.weak or found.marks & {"go", "again"}
    asks = found.asks and reading.outcome == "question" and not of_effect
    if state.situation == "missing":  # "maybe sales.csv?" could be the value
        asks &= any("question" in piece.signs and _OPEN_QUESTION.search(piece.text) is not None for piece in pieces)
    if others:
        return bool(orders) or asks or names_skill
    new = any(map(has_new_object, orders)) and reading.outcome != "pick" and not named
    return new or (names_skill and asks and bool(_text_of(found)))


def _is_whole_task(text: str, found: _Found) -> bool:
    """Whether the message says a task of several steps about files, in place of what is open, and not how that is to
    change: `use b.csv instead`."""
    first = next((piece for clause in found.clauses for piece in clause.pieces), None)
    if first is None:
        return False
    in_order = first.text in {"先", "首先"} or any(sign.startswith("place.") for sign in first.signs)
    changes = bool(first.signs & {"change", "adds", "next"}) and not in_order
    changes = changes or bool(found.weak & {"adds", "verb.use"}) or _OF_STEP.search(text) is not None
    orders = [part for part in _STEPS.split(text) if is_order(part.strip())]
    return not changes and len(orders) > 1 and any(map(_has_path, orders))


def _first(found: _Found) -> Piece | None:
    """The first piece that weighs something, or begins a request."""
    pieces = (piece for clause in found.clauses for piece in clause.pieces)
    polite = {"yes", "thanks", "praise", "go", "topic"}
    return next((p for p in pieces if "request" in p.signs or not (_is_light(p) or p.signs & polite)), None)


def _refused(text: str) -> Reading:
    return Reading(outcome="no_with_reason", reason=text.strip()[:REASON])


def _agreed(found: _Found) -> Reading | None:
    """A yes, if nothing in the message says anything else."""
    agrees = found.marks & _AGREE or "once" in found.marks or ("session" in found.marks and _SCOPE.search(found.text))
    trails = found.text.endswith(("…", "...", "。。。"))  # a hesitation
    if found.asks or trails or not agrees or found.marks - _AGREE - _WIDTH - {"push", "thanks", "praise"}:
        return None
    if "always" in found.marks:
        return Reading(outcome="always")
    return Reading(outcome="yes_session" if "session" in found.marks else "yes")


def _approval(found: _Found, state: OpenState) -> Reading:
    marks, content, head = found.marks, _text_of(found), plain_head(state.question)
    if found.text.casefold() in {"a", "s"}:
        return Reading(outcome="yes_session")
    if _is_request(found, head) and "change" not in found.weak and not marks & {"no", "stop"}:
        return Reading(outcome="other")
    if found.asks and _ends_in_refusal(found):
        return Reading(outcome="no")
    if found.asks:
        return Reading(outcome="other" if "topic" in marks else "question")
    if "undo" in marks and not marks & _AGREE:
        return Reading(outcome="undo")
    if "topic" in marks and content:
        return Reading(outcome="other")
    if marks & {"stop", "no"}:
        return _withdrawn(found)
    if "wait" in marks:
        return Reading(outcome="question")
    if (yes := _agreed(found)) is not None:
        return yes
    if marks & {"correct"} or ("blame" in marks and content):
        return _refused(found.text)
    if _is_request(found, head):
        return Reading(outcome="other")
    if marks & _AGREE:  # with something else beside it
        return _refused(found.text) if content and "change" in found.weak else Reading(outcome="question")
    if found.weak & {"change", "verb.use"} and content:
        return _refused(found.text)
    return Reading(outcome="question")


def _ends_in_refusal(found: _Found) -> bool:
    """Whether a rhetorical question is followed by a refusal: `在周五？想都别想`."""
    own = set[str]()
    last = found.clauses[-1]
    return not last.asked and not _weigh(last, set(), own, set()) and "no" in own


def _withdrawn(found: _Found) -> Reading:
    """A refusal: of everything, with a reason, or plain."""
    content = _text_of(found)
    if "stop" in found.marks and "no" not in found.marks and not content:
        return Reading(outcome="stop")
    reasons = content or ("correct" in found.marks and "change" in found.weak)
    return _refused(found.text) if reasons else Reading(outcome="no")


def _choice_one(found: _Found, state: OpenState) -> Reading:
    marks, content = found.marks, _text_of(found)
    if "topic" in marks and content:
        return Reading(outcome="other")
    others = zip(found.clauses, found.content, strict=True)
    apart = any(words and not any(piece.signs & {"no", "neg"} for piece in clause.pieces) for clause, words in others)
    corrected = bool(content) and (
        "correct" in marks or (apart and "change" in found.weak) or (apart and "no" in marks)
    )
    if found.asks:
        return Reading(outcome="refine" if corrected and "correct" in marks else "question")
    if marks & {"no", "stop", "undo"} or marks & {"self"}:
        if found.last == "yes" and not content:
            return Reading(outcome="question")
        return Reading(outcome="refine" if corrected and not marks & {"stop", "self", "blame"} else "no")
    if _agreed(found) is not None:
        return Reading(outcome="yes")
    if marks & {"wait"} and not content:
        return Reading(outcome="question")
    if marks & {"blame", "correct"} and not content:
        return Reading(outcome="no")
    chosen, unwanted, beyond = _mentions(found, state.options)  # its place or its name
    if chosen and not unwanted and not beyond and not marks & {"wait", "blame"} and not content:
        return Reading(outcome="yes")
    if _is_request(found):
        return Reading(outcome="other")
    return Reading(outcome="refine" if content and _refines(found, "adds") else "question")


def _choice_many(found: _Found, state: OpenState) -> Reading:
    marks, content = found.marks, _text_of(found)
    if "topic" in marks and content:
        return Reading(outcome="other")
    if found.text.strip("().") == "0":
        return Reading(outcome="none")
    chosen, unwanted, count = _mentions(found, state.options)
    rest = [name for name in state.options if name not in unwanted]
    if found.asks:
        return Reading(outcome="question")
    loose = len(content.split()) + sum(not char.isascii() for char in content) // 3
    if (
        len(chosen) == 1
        and loose <= (4 if "verb.use" in found.weak or "go" in marks else 2)
        and not (marks & {"wait", "blame"} and len(found.clauses) == 1)
    ):
        return Reading(outcome="pick", value=str(state.options.index(chosen[0]) + 1))
    if len(chosen) > 1 or (unwanted and not chosen and rest):
        return Reading(outcome="question")
    if marks & {"no", "stop", "self"}:
        return Reading(outcome="none")
    if (marks & _AGREE and not content) or count or found.text.strip(" ().").isdigit():
        return Reading(outcome="question")
    if marks & {"wait"} or "all" in found.text.casefold().split() or "全" in found.text:
        return Reading(outcome="question")
    if _is_request(found):
        return Reading(outcome="other")
    return Reading(outcome="refine" if content and _refines(found) else "question")


def _refines(found: _Found, *more: str) -> bool:
    """Whether the message says how the request is meant, such as by the file alone."""
    return bool(found.weak & {"change", "next", *more}) or all(map(is_path, _text_of(found).split()))


def _mentions(found: _Found, options: Sequence[str]) -> tuple[list[str], list[str], int]:
    """The options that the message wants, those that it rules out, and how many places it names that are not there."""
    chosen: list[str] = []
    unwanted: list[str] = []
    beyond = 0
    replaces = False  # a clause like "no, wait" takes back what stood before it
    for clause in found.clauses:
        alone = all(_is_light(piece) or piece.signs & _BESIDE_A_PLACE or _is_place(piece) for piece in clause.pieces)
        named: list[str] = []
        negated = corrects = False
        places = [_option(piece, options, alone=alone) for piece in clause.pieces]
        for at, (piece, option) in enumerate(zip(clause.pieces, places, strict=True)):
            if piece.signs & {"neg", "no", "except"}:
                if not any(places[at + 1 :]) and named:  # 2 不行
                    unwanted += named
                    named = []
                elif not named:
                    corrects = bool(chosen) and (
                        piece.text in {"不", "啊不", "哦不"} or not piece.signs & {"neg", "except"}
                    )
                    negated = not corrects
                else:  # the mail thing, not slack
                    negated = True
            elif option is None:
                beyond += 1
            elif option:
                (unwanted if negated else named).append(option)
        turns = not any(places) and any(piece.signs & {"no", "correct", "wait"} for piece in clause.pieces)
        replaces = replaces or (bool(chosen) and turns)
        corrects = corrects or (replaces and bool(named))
        if corrects and chosen:  # 2, no, 3
            unwanted += chosen
            chosen = []
        chosen += named
    if set(chosen) & set(unwanted):
        return [], list(options), beyond
    return list(dict.fromkeys(chosen)), list(dict.fromkeys(unwanted)), beyond


def _is_place(piece: Piece) -> bool:
    return any(sign.startswith(("place.", "option")) for sign in piece.signs)


def _option(piece: Piece, options: Sequence[str], *, alone: bool) -> str | None:
    """The option that a piece names: by its name, a part of it, another word for it, or its place; empty if it names
    none, None if it names a place that is not there."""
    word = fold(piece.text)
    named = [name for name in options if fold(name) == word]
    meant = next((sign.removeprefix("kind.") for sign in piece.signs if sign.startswith("kind.")), "")
    partly = [name for name in options if f"-{word}-" in f"-{fold(name)}-" or (meant and meant in fold(name))]
    for names in (named, partly):
        if len(names) == 1:
            return names[0]
    place = next((sign.removeprefix("place.") for sign in piece.signs if sign.startswith("place.")), "")
    if not place or (
        not alone and not piece.text.startswith(("第", "option", "number")) and piece.text[:1] not in "最后"
    ):
        return ""
    index = {"last": len(options), "middle": 2 if len(options) == 3 else 0}.get(place, 0) or int(
        place if place.isdigit() else 0
    )
    return options[index - 1] if 0 < index <= len(options) else None


def _missing(found: _Found, state: OpenState) -> Reading:
    marks, content = found.marks, _text_of(found)
    if "topic" in marks and content:
        return Reading(outcome="other")
    if wants_text(state):
        first = _first(found)
        if "else" not in marks:  # nothing but a refusal, a yes or thanks: nothing to work on
            return Reading(outcome="cancel" if marks & {"stop", "no"} else "question")
        begin, *rest = found.clauses
        if rest and all("stop" in piece.signs for piece in begin.pieces):  # "never mind, count the words of a.txt"
            return Reading(outcome="other" if found.asks or "request" in found.weak else "cancel")
        is_task = _TASK_WANTED.search(state.question) is not None
        if is_task and found.asks and not rest:
            return Reading(outcome="question")
        is_quoted = found.text.startswith(('"', "“", "「"))
        may_be_wish = not is_task or _has_path(found.text)  # "write the report" is what a task is about
        if first is not None and "request" in first.signs and may_be_wish and not is_quoted:
            return Reading(outcome="other")
        return Reading(outcome="value", value=found.text)
    if is_path(found.text):
        return Reading(outcome="value", value=found.text.removeprefix("@"))
    if marks & {"stop"} and not _has_path(found.text):
        return Reading(outcome="cancel")
    value = _value(found)
    strong = _has_path(value) or any(char.isdigit() for char in value)
    if "no" in marks and value and not strong and _is_vague(found, value):
        return Reading(outcome="cancel")
    if (
        marks & {"no", "self"}
        and not strong
        and (not value or "self" in marks or len(value.split()) > 2 or len(value) > 12)
    ):
        return Reading(outcome="cancel")
    if found.asks or not value or _is_vague(found, value):
        return Reading(outcome="question")
    first = _first(found)
    more = [piece for clause in found.clauses for piece in clause.pieces if piece is not first and not _is_light(piece)]
    asks_for_more = any(not is_path(piece.text) and not piece.signs & {"lead", "tail"} for piece in more)
    if first is not None and "request" in first.signs and not first.signs & {"lead", "filler"} and asks_for_more:
        return Reading(outcome="other")
    if not strong and (len(value.split()) > 4 or sum(not char.isascii() for char in value) > 8):
        return Reading(outcome="question")
    return Reading(outcome="value", value=value)


def _is_vague(found: _Found, value: str) -> bool:
    unsure = (*phrases_of("vague"), *phrases_of("wait"), *phrases_of("yes"))
    pieces = [piece for clause in clauses(value) for piece in clause.pieces]
    if all(_is_light(piece) or piece.signs & _FIRM for piece in pieces):
        return True
    texts = {value.casefold().strip(" .。!！"), found.text.casefold().strip(" .。!！")}
    return bool(texts & set(unsure)) or value.casefold().startswith(_NO_VALUE)


def _value(found: _Found) -> str:
    """The value in an answer, without the words around it and without what it rules out; empty if there is none."""
    words: list[str] = []
    paths: list[str] = []
    corrects = False  # "French. No, sorry, Italian": what stood before the correction is taken back
    parts = [clause for clause in found.clauses if clause.pieces]
    for clause in found.clauses:
        pieces = list(clause.pieces)
        if pieces and "no" in pieces[0].signs and "neg" not in pieces[0].signs:
            pieces = pieces[1:]
            corrects = corrects or not pieces
        cut = next((at for at, piece in enumerate(pieces) if piece.signs & {"neg", "no", "except"}), None)
        if cut is not None:  # "to bob, not to anna", but also "app.log is out": nothing follows
            pieces = pieces[:cut] if any(not _is_light(piece) for piece in pieces[cut + 1 :]) else []
        if not pieces:
            continue
        part = clause.text[pieces[0].start : pieces[-1].end]
        here = [p.text for p in pieces if is_path(p.text)] or [word for word in part.split() if is_path(word)]
        called = next((n for n, piece in enumerate(pieces) if piece.text.casefold() in _CALLED), None)
        pieces = pieces[called + 1 :] if called is not None and called + 1 < len(pieces) else pieces
        text = _trimmed(clause.text[pieces[0].start : pieces[-1].end])
        firm = all(piece.signs for piece in pieces) and any(piece.signs & {"no", "correct", "wait"} for piece in pieces)
        is_value = text and not (all(piece.signs for piece in pieces) and any(piece.signs & _FIRM for piece in pieces))
        corrects = corrects or firm
        if corrects and (is_value or here):
            words, paths, corrects = [], [], firm
        paths += here
        words += [text] if is_value else []
    if paths:
        mails = [path for path in paths if "@" in path[1:]]
        if (
            len(set(mails)) > 1
            and any(  # `only tom`, `sue is on holiday`
                "@" in c.text[c.pieces[0].start : c.pieces[-1].end]
                and any("fact" in piece.signs or piece.text.casefold() in _ONLY for piece in c.pieces)
                for c in parts
            )
        ):
            return ""  # it is not clear which of them are meant
        return ", ".join(dict.fromkeys(mails)) if mails else paths[-1].removeprefix("@")
    if len(words) > 1:
        words = [text for text in words if not _is_known(text)] or words[-1:]
    numbers = {
        text for text in " ".join(words).replace("px", " ").split() if text.strip(".,!").replace(",", "").isdigit()
    }
    if len(numbers) > 1 or len(words) > 1:
        return ""  # it is not clear which of them is meant
    number = next(iter(numbers), "").strip(".,!")
    if number and all(word == number or _is_known(word) for word in "".join(words).replace("px", " ").split()):
        return number.replace(",", "")
    return "".join(words)


def _is_known(text: str) -> bool:
    """Whether every word of the text is on a list: it cannot be a value then."""
    return all(piece.signs for clause in clauses(text) for piece in clause.pieces)


def _trimmed(text: str) -> str:
    """The text without the phrases that lead to a value or follow it."""
    text = text.strip(" \"'“”「」`")
    while True:
        before = text
        lower = text.casefold()
        for phrase in phrases_of("lead"):
            if lower.startswith(phrase) and (
                not phrase.isascii()
                or not lower[len(phrase) : len(phrase) + 1].isascii()
                or lower[len(phrase) : len(phrase) + 1] in " :"
            ):
                text = text[len(phrase) :].lstrip(" :：")
                break
        lower = text.casefold()
        for phrase in phrases_of("tail"):
            if lower.endswith(phrase) and (
                not phrase.isascii() or not lower[-len(phrase) - 1 : -len(phrase)].isalnum()
            ):
                text = text[: -len(phrase)].rstrip()
                break
        words_in = text.split()
        if len(words_in) > 1 and not words_in[0].isascii() and words_in[1].startswith(words_in[0]):
            text = " ".join(words_in[1:])  # a stutter: 德 德语
        if text == before:
            return text


def _free(found: _Found, state: OpenState) -> Reading:
    """An answer in the person's own words: all but a refusal, a doubt or another subject is added to the request."""
    marks, content = found.marks, _text_of(found)
    if "topic" in marks and content:
        return Reading(outcome="other")
    if marks & {"stop", "no"} and not content:
        return Reading(outcome="cancel")
    if (found.asks or marks & {"wait"}) and not content:
        return Reading(outcome="question")
    if not content and (yes := _agreed(found)) is not None:
        return yes
    return Reading(outcome="value", value=found.text)


def _skill(found: _Found, state: OpenState) -> Reading:
    """A skill for what none fits, by the words of its name; or a yes to the other steps."""
    marks, content = found.marks, _text_of(found)
    if "topic" in marks and content:
        return Reading(outcome="other")
    refuses = bool(marks & {"stop", "no"})
    if "option" in found.weak and not (found.asks or refuses or content):
        return Reading(outcome="value", value=found.text)
    if _is_request(found, plain_head(state.question)):
        return Reading(outcome="other")
    if refuses and not found.asks:
        return Reading(outcome="cancel")
    return _agreed(found) or Reading(outcome="question")


def _plan(found: _Found, state: OpenState) -> Reading:
    marks, content = found.marks, _text_of(found)
    places = {sign for sign in found.weak if sign.startswith("place.")} - {"place.last"}
    names_step = bool(places) or "option" in found.weak or _names_option(found, state.options)
    if "topic" in marks and content:
        return Reading(outcome="other")
    if _is_request(found, plain_head(state.question)) and "change" not in found.weak:
        return Reading(outcome="other")
    if found.asks:
        return Reading(outcome="question")
    if _agreed(found) is not None and not places:
        return Reading(outcome="yes")
    edits = names_step or "change" in found.weak
    if marks & {"stop", "no", "self"} and not (names_step or (content and "change" in found.weak)):
        return Reading(outcome="no")
    if marks & {"wait", "blame", "undo"} and not content:
        return Reading(outcome="question")
    if _is_request(found, plain_head(state.question)) and not edits:
        return Reading(outcome="other")
    if edits and (content or names_step or not marks & _AGREE):
        return Reading(outcome="edit", reason=found.text[:REASON])
    return Reading(outcome="question")


def _names_option(found: _Found, options: Sequence[str]) -> bool:
    parts = {part for name in options for part in fold(name).split("-") if len(part) > 2}
    return any(word.casefold() in parts for word in _text_of(found).split()) or any(
        phrase in found.text and any(kind in fold(name) for name in options)
        for phrase, kind in words("kinds").items()
        if len(phrase) > 1
    )


def _interrupted(found: _Found, state: OpenState) -> Reading:
    marks, content = found.marks, _text_of(found)
    if found.asks:
        return Reading(outcome="question")
    if "topic" in marks and content:
        return Reading(outcome="other")
    if marks & {"no", "stop", "undo", "self"}:
        return Reading(outcome="no")
    if "wait" in marks:
        return Reading(outcome="question")
    if _agreed(found) is not None:
        return Reading(outcome="yes")
    if marks == {"again"} and not content:
        return Reading(outcome="yes")
    return Reading(outcome="other" if _is_request(found, plain_head(state.question)) else "question")


def _after_run(found: _Found, state: OpenState) -> Reading:
    from navigator_kernel.language.stated import is_period

    marks, content = found.marks, _text_of(found)
    manner = any(piece.signs & {"manner"} for clause in found.clauses for piece in clause.pieces)
    if "topic" in marks and content:
        return Reading(outcome="other")
    if found.text.isdigit() and not state.asked:
        return Reading(outcome="nothing")
    goes_on = state.works and _GOES_ON.match(found.text)
    if goes_on or _CALLED_AGAIN.match(found.text) or _IN_ORDER.match(found.text):
        return Reading(outcome="follow_up")
    if state.asked and not marks & {"undo", "thanks", "blame", "stop"} and len(content.split()) <= 6 and not found.asks:
        return Reading(outcome="follow_up")
    if "undo" in marks and "negated" not in marks:
        if found.asks:
            return Reading(outcome="other" if manner and content else "question")
        return Reading(outcome="undo")
    if marks & {"correct", "blame", "no"} and not found.asks and _names_other(found, state):
        return Reading(outcome="follow_up")
    if "blame" in marks or ("correct" in marks and not marks & {"again"} and not found.asks):
        return Reading(outcome="complaint")
    if "verb.delete" in found.weak and not content and not marks & {"no", "stop"} and not found.asks:
        names_one = any(sign.startswith("place.") for sign in found.weak)  # "delete task 1" is a wish of its own
        return Reading(outcome="other" if names_one else "undo")
    if _adds(found) or is_period(found.text):
        return Reading(outcome="follow_up")
    if found.asks:
        return _asked_after(found, manner=manner)
    repeats = "again" in found.text.casefold() or "再" in found.text
    if "negated" in marks or ("no" in marks and repeats and "again" not in marks):
        return Reading(outcome="complaint")
    if "again" in marks and found.last != "no":
        return _repeated(found)
    few = len(content.split()) <= 3 and not (content and "change" in found.weak)
    if marks & {"stop", "no", "self"} and few:
        return Reading(outcome="thanks" if "thanks" in marks and "stop" not in marks else "stop")
    if "again" in marks:
        return _repeated(found)
    few_words = (
        len(content.split()) <= 3 and sum(not char.isascii() for char in content) <= 4 and not _has_path(content)
    )
    talks = bool(marks & {"thanks", "praise", "yes"}) and not found.weak & {"request", "next", "adds"} and few_words
    if talks or (not content and "else" not in marks and not _only_requests(found)):
        return Reading(outcome="thanks")  # or an answer to nothing: there is nothing to do
    return Reading(outcome="other")


def _names_other(found: _Found, state: OpenState) -> bool:
    """Whether a correction ends in the one file that was meant, which the last run was not about: `no, I meant b.md`,
    `wrong file, it's b.md`."""
    *before, last = found.clauses
    signs = {sign for piece in last.pieces for sign in piece.signs}
    files = [word for word in found.content[-1].split() if is_path(word)]
    replaces = bool(signs & {"fact", "change", "lead"}) or not found.marks & {"stop", "blame"}
    says = "correct" in signs or bool(before and replaces)
    known = not files or files[0].casefold() in state.question.casefold()
    return says and not known and found.content[-1] == files[0] and not signs & {"no", "neg", "blame", "undo"}


def _repeated(found: _Found) -> Reading:
    """The same once more, or with another input: if the clause that says so names something of its own."""
    for clause, content in zip(found.clauses, found.content, strict=True):
        if content and any("again" in piece.signs for piece in clause.pieces):
            if _has_path(content) or len(content.split()) > 3:
                return Reading(outcome="other")  # a request of its own
            verb = all(any(s.startswith("verb.") for s in p.signs) for p in clause.pieces if p.text in content.split())
            if verb or any(piece.text.casefold() in _PRONOUNS for piece in clause.pieces):
                continue  # "count it again, i added a paragraph"
            adds = any(piece.signs & {"next", "adds"} for piece in clause.pieces)
            return Reading(outcome="follow_up" if adds else "question")
    return Reading(outcome="retry")


def _asked_after(found: _Found, *, manner: bool) -> Reading:
    content = _text_of(found)
    if not content and not found.weak & {"object"} and found.text.strip("?？!！ ") == "":
        return Reading(outcome="complaint")
    first = _first(found)
    request = first is not None and "request" in first.signs and bool(content)
    return Reading(outcome="other" if _has_path(content) or manner or request else "question")


def _adds(found: _Found) -> bool:
    """Whether the message names another input or a condition for what ran last: `and for March?`, `notes.md next`."""
    content = _text_of(found)
    if found.marks & {"stop", "topic", "self", "thanks", "praise", "negated"}:
        return False
    pieces = [piece for clause in found.clauses for piece in clause.pieces]
    first = next((piece for piece in pieces if not piece.signs & {"yes", "thanks", "praise"}), None)
    count = sum(len(clause.pieces) for clause in found.clauses)
    if not content and count < 2 and not (first is not None and "adds" in first.signs and len(first.text) > 3):
        return False
    begins = first is not None and bool(first.signs & {"next", "adds"})
    request = first is not None and "request" in first.signs and not begins
    adds = any("adds" in piece.signs for clause in found.clauses for piece in clause.pieces)
    files = [word for word in content.split() if is_path(word)]
    short = sum(map(str.isascii, content.split())) <= 4 and sum(not char.isascii() for char in content) <= 12
    if first is not None and first.signs & {"filler", "light"} and not files:  # "now smaller", but not "now commit it"
        begins = (
            begins
            and (count <= 3 or bool(pieces[1].signs & {"next", "adds"}))  # "and only the open ones"
            and not any(piece.text.casefold() in _PRONOUNS for c in found.clauses for piece in c.pieces)
        )
    if "no" in found.marks and not ((adds or begins) and len(found.clauses) > 1):
        return False
    if files and not request and len(content.split()) == len(files):
        return True  # a file name alone, or with words of no weight
    is_question = any("question" in piece.signs and not piece.signs & {"next", "adds"} for piece in pieces)
    if found.asks and (is_question or not begins) and not found.text.rstrip("?？").endswith("呢"):
        return False
    if first is not None and first.text.casefold() in _SAME:
        return True
    return short and (begins or (adds and (not request or bool(files))))


def _after_error(found: _Found, state: OpenState) -> Reading:
    marks, content = found.marks, _text_of(found)
    if "topic" in marks and content:
        return Reading(outcome="other")
    if found.asks and not ("blame" in marks and not _SURELY.search(found.text)):
        return Reading(outcome="other" if _is_request(found, plain_head(state.question)) else "question")
    if "blame" in marks and not _has_path(content) and "again" not in marks:
        return Reading(outcome="complaint")
    if marks & {"self"}:
        return Reading(outcome="stop")
    if "no" in marks and not marks & {"stop", "again"} and _says_how(found):
        return Reading(outcome="retry_with", reason=found.text)
    if marks & {"stop", "no", "thanks"} and not _has_path(content) and not ("again" in marks and found.last != "no"):
        return Reading(outcome="stop")
    if "undo" in marks:
        return Reading(outcome="undo")
    if "again" in marks or ("go" in marks and not content):
        fixed = _has_path(content) or ("change" in found.weak and bool(content))
        return Reading(outcome="retry_with" if fixed else "retry", reason=found.text)
    if not content:
        return Reading(outcome="other" if "else" in marks else "question")
    first = _first(found)
    if _is_request(found, plain_head(state.question)) and not marks & {"again"}:
        asks_anew = any(
            "request" in p.signs and not p.signs & {"fact", "lead"} for c in found.clauses for p in c.pieces
        )
        if asks_anew:
            return Reading(outcome="other")
    if first is not None and "request" in first.signs and "change" not in first.signs and "verb.use" not in first.signs:
        return Reading(outcome="other")
    statement = found.weak & {"change", "fact"} or "go" in marks or _has_path(content)
    return Reading(outcome="retry_with" if statement else "other", reason=found.text)


def _says_how(found: _Found) -> bool:
    """Whether a clause beside the refusal says what to do instead: `no, not month, use the "date" column`."""
    for clause, content in zip(found.clauses, found.content, strict=True):
        signs = {sign for piece in clause.pieces for sign in piece.signs}
        if content and "fact" in signs and not signs & {"no", "neg"}:
            return len(found.clauses) > 1
    return False


def _only_requests(found: _Found) -> bool:
    """`run job`: nothing in it answers anything, and a skill may have that name."""
    return not found.marks and "request" in found.weak


def _idle(found: _Found, state: OpenState) -> Reading:
    is_number = _text_of(found).replace(" ", "").isdigit()
    answers = is_number or ("else" not in found.marks and not _only_requests(found))
    return Reading(outcome="nothing" if answers and not found.asks else "other")


_READERS = {
    "approval": _approval,
    "choice_one": _choice_one,
    "choice_many": _choice_many,
    "missing": _missing,
    "free": _free,
    "skill": _skill,
    "plan": _plan,
    "after_run": _after_run,
    "after_error": _after_error,
    "interrupted": _interrupted,
    "idle": _idle,
}

"""Stage 2: finds out what a message means, by the cheapest tier that is sure, and decides what to do about it
(INT-1..14, COV-1..7, RTE-1..3, X-1, X-7, X-8)."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from msgspec.structs import replace

from navigator_kernel.events import (
    Body,
    ClarificationAsked,
    RouteDecided,
    SkillChosen,
    SkillsOffered,
    SkillsShortlisted,
    Usage,
)
from navigator_kernel.language.clauses import (
    MOST,
    OF_COMMITS,
    Clause,
    asks_for_more,
    asks_to_look,
    clauses,
    is_long,
    parts,
    refuses,
    without_refused,
)
from navigator_kernel.language.orders import is_order
from navigator_kernel.language.parameters import FIGURE, header, meant, parameters, wants_path
from navigator_kernel.language.signs import is_path, named_files
from navigator_kernel.language.targets import without_left_out
from navigator_kernel.language.wording import say
from navigator_kernel.text import fold, lazy_compile
from navigator_kernel.values.chat import usage_facts
from navigator_kernel.values.reply import Notice
from navigator_kernel.values.request import PreprocessingResult, Session, mark
from navigator_kernel.values.resource import PATHS
from navigator_kernel.values.route import (
    Action,
    Candidate,
    Complexity,
    Direct,
    Intent,
    Mcp,
    Mode,
    NeedClarification,
    Retrieval,
    RouteDecision,
    RouteResult,
    Shell,
    Skills,
    Tier,
    Unknown,
    Workflow,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from navigator_kernel.model_ports import Judge
    from navigator_kernel.ports import Catalogue, Router


# The end of a name whose beginning is not clear: `看看日志.docx`
QUOTED = lazy_compile(r"\"[^\"\n]+\"|(?<!\w)'[^'\n]+'(?!\w)|“[^“”\n]+”|「[^「」\n]+」")
_TEXT = {"en": "this text", "zh": "这段文字"}
_OF_TABLES = {"where", "group"}  # parameters whose values the words of a question about a table name
_IN_FILE = {"en": "{text} in @{kind}", "zh": "@{kind} 里{text}"}
_BESIDE_HAN = lazy_compile(r"[\u3400-\u9fff]{1,2}\.([A-Za-z][A-Za-z0-9]{0,7})(?![A-Za-z0-9.])")
_TABLE = lazy_compile(r"\.[ct]sv$", re.IGNORECASE)
_HOW_MANY = lazy_compile(r"(?:how[ ]many|[多几][少个]?个?)[ ]?$", re.IGNORECASE)
_BEFORE_PLACE = r"(?:\b(?:in|inside|under|within|from|of|across)[ \t]+)?(?:\b(?:the|my|our)[ \t]+)?"
_IN_PLACE = r"\b(?:in|inside|under|within|below|across)[ \t]+(?:(?:the|my|our)[ \t]+)?"
_PLACE = r"(?:[ \t]+(?:folder|directory|dir)\b|[ \t]?(?:这个)?(?:目录|文件夹|里|下面|中的|内))"
_AFTER_PLACE = r"(?:[ \t]+(?:folder|directory|dir)\b|[ \t]?(?:这个)?(?:目录|文件夹)?(?:里面?|下面?|中|内)?的?)"
ENOUGH = 10  # installed skills; with fewer, the person is reminded (STA-3)
FALLBACKS = 3  # INT-12
NAMED = 0.4  # confidence from which a skill is taken that takes what the message names
POSSIBLE = 0.1  # confidence from which a skill may be meant by a message that names what does not exist
LOOKS, LESS = 0.15, 0.3  # confidence of a command that only looks, and that of the next one as a part of it
ROUNDS = 2  # rounds of questions about one message
SURE = 0.9  # confidence from which each of two joined wishes has its own skill
FAILURES = 2  # SAF-5: after this many in a row, nothing is tried again unless the person says what to change


async def understand(
    request: PreprocessingResult, session: Session, router: Router, judge: Judge | None = None
) -> Intent:
    """Finds the intent. Asks a model only if retrieval is uncertain, or if the settings say always (X-1)."""
    intent = understand_locally(request, session, router)
    retrieval = intent.retrieval
    sure = intent.tier != "retrieval" or intent.action is not None
    if judge is None or retrieval is None or sure or not judge.is_wanted(retrieval):
        return intent
    judged = await judge.judge(request.need, retrieval, session.history, request.language)
    if judged.question and len(request.answers) >= ROUNDS:
        judged = replace(judged, question="", failure="asked_enough")
    # The intent that a model chose; the other candidates come after it
    others = intent.retrieval.candidates if intent.retrieval else ()
    names = tuple(candidate.name for candidate in others if candidate.name not in judged.skills)[:3]
    if judged.skills:
        action: Action = Skills(names=judged.skills)
    elif judged.question:
        action = NeedClarification(question=judged.question)
    else:
        action = Direct()
    reason = "judged_failed" if judged.failure else "judged"
    made = _intent(action, "model", reason)
    likely = next((candidate.confidence for candidate in others if candidate.name in judged.skills), intent.confidence)
    return replace(made, candidates=names, confidence=likely, retrieval=intent.retrieval, judged=judged)


def understand_locally(request: PreprocessingResult, session: Session, router: Router, k: int = 12) -> Intent:
    """Finds the intent without a model: by syntax, names and verbs, the conversation, then retrieval of `k` skills."""
    if request.commands:
        command = request.commands[0]
        match command.type:
            case "shell":
                instruction: Action = Shell(command=command.name)
            case "workflow":
                instruction = Workflow(name=command.name)
            case _:
                instruction = Skills(names=(command.name,), arguments=command.args, direct_call=True)
        return _intent(instruction, "syntax", "instruction")
    if request.way == "plain":
        return _intent(Direct(), "session", "no_skill")
    if request.way in {"chosen", "again"}:
        return _intent(Skills(names=(request.target,)), "session", request.way)
    action = _listed(request, session, router) or router.recognise(request.need)
    if action is not None:
        return _intent(action, "exact", "exact")
    if session.failures >= FAILURES and mark(request.need) == session.failed:  # anything else is a change
        question = say("ask.failed_twice", request.language)
        return _intent(NeedClarification(question=question), "session", "failed_twice")
    if not is_long(request.need):
        if refuses(request.need):
            return _intent(Direct(topic="declined"), "session", "declined")
        request = replace(request, need=without_refused(request.need))
    last = session.sticky
    text = matter(request)
    retrieval = router.retrieve(text, k, files_in(request))
    if not is_long(request.need):  # of a long message the place and the kind of files are a small part
        retrieval = _without_place(retrieval, text, request, router)
        plain = QUOTED.sub(" ", text)
        if plain != text and (is_order(plain) or asks_to_look(plain)):
            # What is quoted is what to work on, and may speak of anything
            general = router.retrieve(QUOTED.sub(_TEXT[request.language], text), k, files_in(request))
            retrieval = general if general.band == "route" else retrieval
    before = last.values.values() if request.way == "follow_up" and last is not None else ()
    if (before or retrieval.band != "route") and (plain := _without_columns(text, request, before)) != text:
        general = router.retrieve(plain, k, files_in(request))
        text, retrieval = (plain, general) if before or general.band == "route" else (text, retrieval)
    same = retrieval.band == "route" and retrieval.candidates[0].name == request.target
    used = set(session.sticky.values.values()) if session.sticky is not None else set[str]()
    named_in = (*request.files, *(target for target in request.targets if not target.loose))
    if request.way == "about" and same and all(not file.choices and str(file.path) in used for file in named_in):
        return _intent(Direct(), "session", "no_skill")
    leaders = _leaders(retrieval, request, session, router)
    if leaders and request.target in {"", *(leader.name for leader in leaders)}:
        intent = _intent(Skills(names=tuple(leader.name for leader in leaders)), "retrieval", "clauses")
        return replace(intent, confidence=min(leader.confidence for leader in leaders), retrieval=retrieval)
    if request.target and request.way != "about" and not _another(retrieval, request.target):
        return _intent(Skills(names=(request.target,)), "session", "answer")
    # SEN-7, X-12: what continues the run before goes to the same subagent, unless it clearly means another skill
    if request.way == "follow_up" and last is not None and not _leaves(text, retrieval, last.target, router):
        # the same skill or MCP server with the new message
        again: Action = Skills(names=(last.target,))
        if last.agent == "mcp":
            named = router.recognise(f"mcp {request.need.strip()} {last.target}")
            again = named if isinstance(named, Mcp) else Mcp(operation="list", server=last.target)
        return _intent(again, "session", "follow_up")
    # INT-9..12: the best by words and priority, at most three candidates after it, or `backend` with no entity
    complexity: Complexity = "simple" if len(request.need) < 80 else "medium" if len(request.need) < 400 else "complex"
    best = retrieval.candidates[0] if retrieval.candidates else None
    routed = retrieval.band == "route" and best is not None
    others = retrieval.candidates[1:4] if routed else retrieval.candidates[:3]
    return Intent(
        mode="SKILL" if routed else "BACKEND",
        task_type="skill" if routed else "unknown",
        complexity=complexity,
        confidence=best.confidence if best else 0.5,
        entity=best.name if routed and best else None,
        candidates=tuple(c.name for c in others),
        reasoning=retrieval.reason,
        tier="retrieval",
        retrieval=retrieval,
    )


def about_the_same(
    request: PreprocessingResult, session: Session, router: Router, catalogue: Catalogue
) -> PreprocessingResult:
    """A question after a run goes on with it if it names a column or a value that the same command takes, and repeats
    it if the command surely answers it about the same file: `how many errors are there?` after a summary of app.log is
    `how many errors are there in app.log?`."""
    last, skill = session.sticky, catalogue.find(request.target)
    if request.way != "about" or last is None or last.target != request.target or skill is None or skill.kind != "A":
        return request
    paths = [PurePath(value) for value in last.values.values() if value.startswith("/")]
    if len(paths) != 1 or request.files or request.targets or not asks_to_look(request.need):
        return request
    follows = replace(request, way="follow_up", before=last.values)
    given = parameters(skill.required_params, (), follows, named=False).values
    if any(given.get(s.name) != last.values.get(s.name) for s in skill.required_params if s.validation in _OF_TABLES):
        return replace(request, way="follow_up")
    text = _IN_FILE[request.language].format(text=request.need.rstrip(" .?!。？！"), kind=_kind(paths[0]))
    retrieval = router.retrieve(text, files=(paths[0].name,))
    is_same = retrieval.band == "route" and retrieval.candidates[0].name == last.target
    return replace(request, way="again") if is_same and _do((last.target,), request, catalogue) else request


def _kind(path: PurePath) -> str:
    """The type of a file, without numbers (`a.log.1`), or its name if it has no type."""
    return next((end[1:] for end in reversed(path.suffixes) if not end[1:].isdigit()), path.name)


def matter(request: PreprocessingResult) -> str:
    """The text for routing, in which only the type of each file is kept, or the name of a file without a type, with the
    mark of a file: whoever names one wants work done on it. What is left out, and who it was, is not work."""
    from navigator_kernel.language.stated import limits

    text = request.need
    if request.without:
        text = without_left_out(text, (file.written for file in request.without))
    paths = {target.written: target.path for target in request.targets}  # a title, as "the readme", says no type itself
    for name in sorted(files_in(request), key=len, reverse=True):
        kind = _kind(PurePath(paths.get(name, name)))
        text = text.replace(f"@{name}", f"@{kind}").replace(name, f"@{kind}")
    text = _BESIDE_HAN.sub(lambda hit: f" @{hit[1]}" if named_files(f"x.{hit[1]}") else hit[0], text)
    for limit in limits(text, people=request.people, kinds="person")[0] if OF_COMMITS.search(text) else ():
        author = "作者" if request.language == "zh" else "author"
        text = lazy_compile(re.escape(limit.value), re.IGNORECASE).sub(author, text, count=1)
    return text


def _without_columns(text: str, request: PreprocessingResult, before: Iterable[str]) -> str:
    """The text without the names of columns, which say what a figure is of, and not which skill: those of the tables
    that the message names, if it asks for a figure, and of the tables `before`, which the last run worked on."""
    from navigator_kernel.language.stated import without_columns

    named = (request.base / file.path for file in (*request.files, *request.targets) if file.usable)
    tables = [*map(Path, before), *(named if FIGURE.search(text) else ())]
    names = [name for path in tables if _TABLE.search(path.name) for name in header(path)]
    return without_columns(text, names, "列" if request.language == "zh" else "column") if names else text


def _without_place(retrieval: Retrieval, named: str, request: PreprocessingResult, router: Router) -> Retrieval:
    """What is found for the text `named`. Where something lies says little about what is to be done: if no skill is
    clear, or only the name of a folder speaks for the one that is (`what is in docs`), what is found without the names
    of folders, and for "the folder" in their place, decides where both agree, or where only the latter says anything.
    What is found without the kind of the files (`all markdown files`) counts if it is surer, or the files are counted."""
    from navigator_kernel.language.stated import kinds_of_files

    general, plain, is_place = named, named, False
    for target in request.targets:
        if target.folder:
            name = re.escape(target.written)
            place = lazy_compile(rf"{_BEFORE_PLACE}{name}(?!\w){_AFTER_PLACE}|{name}{_AFTER_PLACE}")
            plain = place.sub(" ", plain, count=1)
            general = general.replace(target.written, "这个文件夹" if request.language == "zh" else "the folder", 1)
            is_place = is_place or lazy_compile(rf"{_IN_PLACE}{name}(?!\w)|{name}/?{_PLACE}").search(named) is not None
    of_any_kind, is_counted = plain, False
    for start, end, _ in reversed([*kinds_of_files(plain)]):
        is_counted = is_counted or _HOW_MANY.search(plain, 0, start) is not None
        of_any_kind = f"{of_any_kind[:start]}{'文件' if request.language == 'zh' else 'files'}{of_any_kind[end:]}"
    any_kind = router.retrieve(of_any_kind) if of_any_kind != plain else retrieval
    if is_counted or _first(any_kind) > _first(retrieval):
        return any_kind
    if plain == named or not (retrieval.band != "route" or is_place):
        return retrieval
    without, neutral = (router.retrieve(text.strip() or named) for text in (plain, general))
    leaders = [each.candidates[0].name if each.candidates else "" for each in (retrieval, without, neutral)]
    agree = leaders[1] == leaders[2]
    if is_place and leaders[2] not in {"", leaders[0]} and (agree or _first(without) < POSSIBLE):
        return max(without, neutral, key=_first) if agree else neutral
    if retrieval.band == "route":
        return retrieval
    return max(retrieval, without, *([neutral] if leaders[2] in leaders[:2] else []), key=_first)


def _first(retrieval: Retrieval) -> float:
    return retrieval.candidates[0].confidence if retrieval.candidates else 0.0


def files_in(request: PreprocessingResult) -> Sequence[str]:
    """The names of the files that the message names, with `@` or without."""
    plain = (target.written for target in request.targets if not target.folder and not target.loose)
    return tuple(dict.fromkeys((*(file.written for file in request.files), *plain, *named_files(request.need))))


def _listed(request: PreprocessingResult, session: Session, router: Router) -> Skills | None:
    """RTE-18: the skills that the message lists by name, in order; their arguments come once, after the last name.

    A step of a workflow, which has no session, is for one skill.
    """
    listed = parts(request.need) if session.id else ()
    if not 2 <= len(listed) <= MOST:
        return None
    actions = [router.recognise(f"use {part}" if at else part) for at, part in enumerate(listed)]
    skills = [action for action in actions if isinstance(action, Skills)]
    names = tuple(dict.fromkeys(name for action in skills for name in action.names))
    if len(skills) < len(actions) or len(names) < 2 or any(action.arguments for action in skills[:-1]):
        return None
    return Skills(names=names, arguments=skills[-1].arguments)


def _leaders(
    retrieval: Retrieval, request: PreprocessingResult, session: Session, router: Router
) -> Sequence[Candidate]:
    """RTE-18: the leaders of the clauses, if each clause surely has one and they are not all the same; after a mere
    `and`, each must be sure or surer than that of the whole message, unless each clause names a file or folder of its
    own: then a likely leader is enough. Empty with several files: one order is for all of them; and for a long message:
    its sentences belong together.
    """
    whole = retrieval.candidates[0].confidence if retrieval.candidates else 0.0
    if not session.id or len(request.files) > 1 or is_long(request.need):
        return ()
    orders = clauses(matter(request))
    names = ["@" if not target.folder else target.written for target in request.targets if not target.loose]
    are_named = all(any(name in clause.text for name in names) for clause in orders)
    least = NAMED if are_named else 0.0 if all(clause.apart for clause in orders) else min(whole, SURE)
    sure: dict[Clause, Candidate] = {}
    for clause in sorted(orders, key=lambda clause: len(clause.text)):  # the first uncertain one ends the search
        of_clause = _without_place(router.retrieve(clause.text), clause.text, request, router)
        is_sure = of_clause.band == "route" or are_named
        if not is_sure or _first(of_clause) <= least or router.recognise(clause.text) is not None:
            return ()
        sure[clause] = of_clause.candidates[0]
    leaders: dict[str, Candidate] = {}
    for clause in orders:
        leaders.setdefault(sure[clause].name, sure[clause])
    return tuple(leaders.values()) if len(leaders) > 1 else ()


def _leaves(text: str, retrieval: Retrieval, target: str, router: Router) -> bool:
    """Whether `text`, which continues the run before, clearly means another skill. The name of a file, like todo.md,
    says nothing about the skill that is meant."""
    if not _another(retrieval, target):
        return False
    plain = " ".join(word for word in text.split() if not is_path(word))
    return _another(router.retrieve(plain), target)


def _another(retrieval: Retrieval, target: str) -> bool:
    """Whether the message clearly means a skill other than `target`."""
    return retrieval.band == "route" and retrieval.candidates[0].name != target


def _intent(action: Action, tier: Tier, reason: str) -> Intent:
    entity = action.names[0] if isinstance(action, Skills) else getattr(action, "name", None)
    mode: Mode = "SKILL" if isinstance(action, Skills) else "BACKEND" if isinstance(action, Direct) else "COMMAND"
    return Intent(
        mode=mode,
        task_type=type(action).__name__.lower(),
        complexity="simple",
        confidence=1.0,
        entity=entity,
        reasoning=reason,
        tier=tier,
        action=action,
    )


def decide(intent: Intent, request: PreprocessingResult, catalogue: Catalogue) -> RouteDecision:
    """Makes the decision. A named skill that does not exist is Unknown, never Direct (X-7, X-29)."""
    unreadable = [file for file in request.files if file.problem]
    if unreadable:
        result: RouteResult = Unknown(
            what="file",
            name="; ".join(file.problem for file in unreadable),
            hint="; ".join(dict.fromkeys(file.hint for file in unreadable)),
            refused=any(file.refused for file in unreadable),
        )
        return RouteDecision(result=result, tier="syntax", confidence=1.0, reason="unreadable")
    if len(request.commands) > 1:  # asks which of several instructions to carry out, so that none is dropped silently
        options = tuple(command.original_string for command in request.commands)
        question = say("ask.one_instruction", request.language, options=" | ".join(options))
        result = NeedClarification(question=question, options=options)
    else:
        result = _result(intent, request, catalogue)
    result = _without_text(result, request, catalogue) or result
    names = result.names if isinstance(result, Skills) else ()
    undone = intent.entity if isinstance(result, Direct) and intent.mode == "SKILL" else None  # the nearest one
    near = [*filter(None, [undone]), *intent.candidates][:FALLBACKS]
    return RouteDecision(
        result=result,
        entity=names[0] if names else None if undone else intent.entity,
        candidates=tuple(name for name in near if name not in names),
        confidence=intent.confidence,
        tier=intent.tier,
        reason=intent.reasoning or "",
    )


def _without_text(result: RouteResult, request: PreprocessingResult, catalogue: Catalogue) -> Unknown | None:
    """A marked folder, or a file whose text cannot be used, for anything else than a skill that takes a path, or one
    whose model has tools for files."""
    skills = [catalogue.find(name) for name in result.names] if isinstance(result, Skills) else []
    if skills and all(
        skill and (skill.kind == "B" or PATHS & {spec.validation for spec in skill.required_params}) for skill in skills
    ):
        return None
    files = [file for file in request.files if file.unread or file.folder]
    if not files or isinstance(result, NeedClarification):
        return None
    name = files[0].unread or f"{files[0].written!r} is not a regular file"
    return Unknown(what="file", name=name, hint="name a smaller part of it, or a text file", refused=True)


def _result(intent: Intent, request: PreprocessingResult, catalogue: Catalogue) -> RouteResult:
    if isinstance(intent.action, Skills):
        result = _named(intent.action, catalogue)
        if intent.reasoning in {"follow_up", "clauses"} and not _do(intent.action.names, request, catalogue):
            return Direct()
        followed = intent.tier == "session" and isinstance(result, Unknown)
        return Direct() if followed else result  # a follow-up does not name its skill, which is gone by now
    if intent.action is not None:
        return intent.action
    if intent.mode == "SKILL" and intent.entity is not None and not _do((intent.entity,), request, catalogue):
        return Direct()
    if intent.mode == "SKILL" and intent.entity is not None:
        return Skills(names=(intent.entity,))
    if intent.retrieval is not None and (by_target := _by_target(intent.retrieval, request, catalogue)) is not None:
        return by_target
    if intent.retrieval is not None and intent.retrieval.band == "ambiguous":
        # Offers at most three skills with numbers; the answer is a number, a name, or no
        retrieval = intent.retrieval
        offered = retrieval.offered or tuple(candidate.name for candidate in retrieval.candidates[:FALLBACKS])
        options = tuple(name for name in offered if _do((name,), request, catalogue))
        if not options:
            return Direct()
        labels = [  # the name, with the MCP servers that the skill needs but that are not set up
            say("ask.needs", request.language, name=name, servers=", ".join(lacks)) if lacks else name
            for name, lacks in ((name, retrieval.lacks.get(name)) for name in options)
        ]
        if len(options) == 1:
            question = say("ask.use", request.language, name=labels[0])
        else:
            listed = "  ".join(f"{at} {name}" for at, name in enumerate(labels, 1))
            more = say("ask.more", request.language, count=retrieval.more) if retrieval.more else ""
            question = say("ask.which", request.language, options=listed, more=more)
        return NeedClarification(question=question, options=options)
    return Direct()


def _by_target(retrieval: Retrieval, request: PreprocessingResult, catalogue: Catalogue) -> RouteResult | None:
    """The command that most likely looks at what the message names: a file, a folder, a kind of files or a time. A file that does not exist is said at once, without a question about the skill. Else None."""
    from navigator_kernel.language.stated import endings, limits, period

    first = retrieval.candidates[0] if retrieval.candidates else None
    skill = catalogue.find(first.name) if first is not None else None
    kinds = {spec.validation for spec in skill.required_params} if skill else set[str]()
    if first is None or not kinds & {*PATHS, "since"} or not asks_to_look(request.need):
        return None
    named = [file for file in (*request.files, *meant(request)) if not file.loose]
    absent = next((file for file in named if file.problem), None) if kinds & PATHS else None
    if absent is not None and first.confidence >= POSSIBLE:
        return Unknown(
            what="file", name=absent.problem, suggestions=absent.near, hint=absent.hint, refused=absent.refused
        )
    name = command_that_looks(retrieval, request, catalogue)
    skill = catalogue.find(name) if name else None
    kinds = {spec.validation for spec in skill.required_params} if skill else set()
    usable = [file for file in (*request.files, *meant(request)) if file.usable]
    fits = "path_exists" in kinds and bool(usable)
    fits |= any(("folder_exists" if file.folder else "file_exists") in kinds for file in usable)
    fits |= "endings" in kinds and bool(endings(request.need))
    fits |= "person" in kinds and bool(limits(request.need, people=request.people, kinds="person")[0])
    timed = "since" in kinds and request.today and any(period(request.need, date.fromisoformat(request.today)))
    return Skills(names=(name,)) if fits or timed else None


def command_that_looks(retrieval: Retrieval, request: PreprocessingResult, catalogue: Catalogue) -> str:
    """The command that a question, or an order to look at something, most likely means, if it is well ahead of the
    next one that takes what is named: to look changes nothing. Else empty."""
    if not asks_to_look(request.need):
        return ""
    skills = [(each, catalogue.find(each.name)) for each in retrieval.candidates]
    if any(target.usable and not target.loose for target in request.targets):  # not a skill that needs something else
        skills = [
            (each, skill)
            for each, skill in skills
            if skill and (not skill.required_params or wants_path(skill.required_params))
        ]
    if not skills:
        return ""
    (best, skill), others = skills[0], skills[1:]
    is_ahead = not others or others[0][0].confidence <= best.confidence * LESS
    likely = skill and skill.kind == "A" and best.confidence >= LOOKS and is_ahead
    return best.name if likely and _do((best.name,), request, catalogue) else ""


def _do(names: Sequence[str], request: PreprocessingResult, catalogue: Catalogue) -> bool:
    """Whether one of the skills does what the message orders, by its own description. A prompt can do anything, a command
    only what it is for."""
    skills = [skill for skill in map(catalogue.find, names) if skill is not None]
    if any(skill.kind != "A" for skill in skills) or is_long(request.need):
        return True
    texts = [" ".join((s.name, s.description, *s.tags, *s.keywords_cn, *s.triggers)) for s in skills]
    return not asks_for_more(matter(replace(request, need=without_refused(request.need))), texts)


def _named(action: Skills, catalogue: Catalogue) -> RouteResult:
    names: list[str] = []
    for name in action.names:
        skill = catalogue.find(name) or catalogue.find(name, "command") or catalogue.find(name, "prompt")
        every = catalogue.list_resources(enabled_only=False) if skill is None else ()
        off = next((one.name for one in every if one.type == "skill" and fold(one.name) == fold(name)), "")
        if off:
            return Unknown(what="disabled", name=off, hint=f"navigator skill enable {off}")
        if skill is None:
            return Unknown(what="skill", name=name, suggestions=catalogue.suggest(name))
        names.append(skill.name)
    return Skills(names=tuple(names), arguments=action.arguments, direct_call=action.direct_call)


def narrate(intent: Intent, decision: RouteDecision, offered: int) -> Iterator[Body]:
    """The events of the routing funnel in order: offered, shortlisted, decided, chosen."""
    yield SkillsOffered(count=offered)
    if intent.retrieval is not None:
        retrieval = intent.retrieval
        yield SkillsShortlisted(
            candidates=tuple(candidate.to_dict() for candidate in retrieval.candidates),
            band=retrieval.band,
            reason=retrieval.reason,
        )
    if intent.judged is not None:
        yield from (Usage(model=use.model, phase=1, **usage_facts(use.spent)) for use in intent.judged.used)
    yield RouteDecided(decision=decision.to_dict(), trace=(decision.tier, decision.reason))
    if isinstance(decision.result, Skills):
        for name in decision.result.names:
            yield SkillChosen(skill=name, tier=decision.tier, confidence=round(decision.confidence, 4))
    if isinstance(decision.result, NeedClarification):
        yield ClarificationAsked(question=decision.result.question, missing=decision.result.missing)


def precheck(catalogue: Catalogue, session: Session, hook: Callable[[int], object]) -> Notice | None:
    """The reminder that few skills are installed, once a session, or None (STA-1..4, X-34, X-44). A plugin's notice takes
    precedence."""
    if session.notice_shown:
        return None
    count = catalogue.count_own()
    answer = hook(count)
    if isinstance(answer, Notice):
        return answer
    return Notice(code="few_skills", count=count) if count < ENOUGH else None

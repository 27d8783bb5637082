"""Plans a workflow for a message that lists several steps, each bound to its best skill (WFL-1..6)."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from navigator_kernel.language.clauses import asks_to_look, clauses, is_long, without_refused
from navigator_kernel.language.orders import has_own_object, is_order, leading_verb
from navigator_kernel.language.parameters import Parameters, is_there, parameters, wants_path
from navigator_kernel.language.wording import say
from navigator_kernel.text import Language, clean, fold, lazy_compile, shorten
from navigator_kernel.turn import understand
from navigator_kernel.turn.message import preprocess
from navigator_kernel.turn.packets import asked_values, plan, unusable
from navigator_kernel.turn.split import are_apart, split, wishes
from navigator_kernel.turn.understand import FALLBACKS, POSSIBLE, command_that_looks, decide, understand_locally
from navigator_kernel.values.owner import one_look
from navigator_kernel.values.request import FileReference, Message, PreprocessingResult, Session
from navigator_kernel.values.route import (
    Candidate,
    Direct,
    Lifecycle,
    Mcp,
    NeedClarification,
    RouteDecision,
    RouteResult,
    Script,
    Skills,
    Unknown,
)
from navigator_kernel.values.workflow import Sandboxed, WorkflowPlan, WorkflowStep

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from navigator_kernel.ports import Catalogue, FileReader, Router
    from navigator_kernel.values.context import TurnContext
    from navigator_kernel.values.request import PreprocessingResult
    from navigator_kernel.values.resource import ParamSpec


LIMIT = 4_000  # characters of a message that can spell out steps; a longer one is a text
SHOWN = 160  # characters of a step in a question
NAME_LIMIT = 72  # characters of a plan's name, with room for a number if it is taken

_RUN_NAME = lazy_compile(
    r"(?:\b(?:run|use|execute|call|apply|try|start)\b\s++(?:the\s++)?|执行|运行|使用|调用|用)\s*+[`'\"“「]?([A-Za-z0-9][\w.-]{0,63}?)[`'\"”」]?"
    r"(?=\s*(?:$|[,.，。;；]|--|@|\"|'|\b(?:on|with|for|to|over|against|in|skill)\b|技能|处理|来|对|分析|统计))",
    re.IGNORECASE,
)
# A last clause that only asks for the result, which the reply gives anyway
_TELLS = lazy_compile(
    r"(?:please\s+)?(?:tell|show|give|send|report|print|display)(?:\s+(?:to|me|us|it|them|that|back|(?:the|its|their)\s+\w+))*"
    r"|(?:请)?(?:把|将)?(?:它们?|结果|输出|答案)?(?:再)?(?:告诉|展示|显示|汇报|报告|反馈|发|给|拿)(?:一下)?(?:给)?(?:我|我们)?(?:看看?|一下|听)?(?:它们?|结果|输出|答案)?",
    re.IGNORECASE,
)
_IT = lazy_compile(r"(?<![\w-])(?:it|this|that)(?![\w-])|它|该文件|这个文件", re.IGNORECASE)
_SEPARATORS = lazy_compile(r"[,;，；、\s]+")
_COUNTED = lazy_compile(
    r"(?:(?:one|two|three|first(?:ly)?|second(?:ly)?|third(?:ly)?|[a-c1-3]|第?[一二三])[.:)）、，：,]|[(（][a-c1-3][)）])\s*",
    re.IGNORECASE,
)
_NOT_WORD = lazy_compile(r"[^\w-]+")


class PlanProposal(Struct, frozen=True, kw_only=True):
    """The plan, and the steps beyond the limit in the person's words. A plan without an order between its steps, which
    are all commands, needs no yes: it runs `at_once`."""

    plan: WorkflowPlan
    left: tuple[str, ...] = ()
    at_once: bool = False


class ListedSteps(Struct, frozen=True, kw_only=True):
    """The steps that a message lists, bound to skills where one fits, and the steps beyond the limit in the person's
    words. `said` is the message without the request's answers."""

    said: str
    steps: Sequence[BoundStep]
    left: tuple[str, ...] = ()
    at_once: bool = False


def plan_workflow(
    request: PreprocessingResult, need: str, ground: PlanningContext, *, alone: bool = False
) -> PlanProposal | NeedClarification | Unknown | None:
    """A plan, a question about missing parts, a file that cannot be read, or None if one skill or none is enough."""
    with one_look():
        listed = list_steps(request, need, ground, alone=alone)
        return propose(listed, ground) if isinstance(listed, ListedSteps) else listed


def list_steps(
    request: PreprocessingResult, need: str, ground: PlanningContext, *, alone: bool = False
) -> ListedSteps | Unknown | None:
    """The steps of a message; a file that cannot be read; or None if one skill or none is enough.

    `need` is the message with files as they were written and the request's answers at its end; with `alone`, a single
    order also makes a plan.
    """
    text = need.removesuffix(" ".join(request.answers).strip()).rstrip() if request.answers else need
    if len(text) > LIMIT:
        return None
    ordered = wishes(text) if is_long(text) and not alone else ()
    plain = text if is_long(text) else without_refused(text, [file.written for file in request.without])
    steps = ordered or split(plain, lambda clause: bool(bind(clause, ground, after=False).skill))
    names = [file.written for file in (*request.files, *request.targets)]
    apart = [_side_by_side(step, names, ground, is_step=len(steps) > 1) if not is_long(text) else () for step in steps]
    at_once = len(steps) == 1 and not alone
    steps = tuple(part for step, parts in zip(steps, apart, strict=True) for part in parts or (step,))
    if len(steps) < 2 and not alone:
        return None
    k = WIDE if ordered else FEW
    bound = [bind(step, ground, k, after=at > 0 and not at_once) for at, step in enumerate(steps[: ground.limit])]
    bound = _without_telling(_with_installed(bound))
    if (unreadable := _unreadable(bound)) is not None:
        return unreadable
    if ordered:
        if not _are_several(bound, surely=are_apart(text, steps)):
            return None  # one task in several sentences
        bound = _with_nearest(bound, request, ground)
    elif is_long(text) and not alone and all(step.decision.tier == "retrieval" for step in bound):
        return None  # the requirements of one task
    else:
        is_plan = alone or len(steps) > ground.limit
        if not any(step.skill for step in bound) or not (is_plan or not _covered(bound, text, ground)):
            return None
    for answer in request.answers:
        bound = _answered(bound, answer, ground)
    at_once = at_once and all(_is_command(step, ground) for step in bound)
    return _unreadable(bound) or ListedSteps(said=text, steps=bound, left=tuple(steps[ground.limit :]), at_once=at_once)


def _side_by_side(text: str, names: Sequence[str], ground: PlanningContext, *, is_step: bool) -> Sequence[str]:
    """The wishes of a text that nothing orders, if a command does one of them, and another skill or none the next: a
    command does its own work only, while a skill that is read gets all that no other skill does, unless it has an
    object of its own. A part that is not a request by its form is a wish of its own only if it clearly means another
    skill than the part before. In a text that is a step of several, it is enough that each part has a skill of its
    own."""
    texts: list[str] = []
    bound: list[BoundStep] = []
    begin = end = 0
    known: set[str] = set()
    for clause in clauses(text, names, objects=True):
        start = text.index(clause.text, end)
        joint, end = text[end:start], start + len(clause.text)
        wish = _with_subject(clause.text, bound[-1]) if bound else clause.text
        step, asks = bind(wish, ground, after=False), is_order(wish) or asks_to_look(wish)
        files = {*understand.files_in(step.request)} - known
        known |= files
        of_verb = not asks or not (step.skill or is_order(wish))
        if bound and of_verb and (verb := leading_verb(texts[0])):
            led = bind(f"{verb} {wish}", ground, after=False)
            wish, step = (led.text, led) if led.skill else (wish, step)
        if bound and not _targets(step) and len(named := _targets(bound[-1])) == 1 and _lacks_path(step, ground):
            place = f"{named[0]} 里{wish}" if ground.context.language == "zh" else f"{wish} in {named[0]}"
            of_it = bind(place, ground, after=False)
            wish, step = (place, of_it) if of_it.skill or _leader(of_it) == bound[-1].skill else (wish, step)
        continues = (
            bool(bound) and not step.skill and bound[-1].agent == "skills" and not _is_command(bound[-1], ground)
        ) and not has_own_object(clause.text, joint, files)
        if bound and (
            _leader(step) == bound[-1].skill
            or not (step.skill or asks)
            or continues
            or _is_cut(bound[-1], step, asks=asks)
        ):
            texts[-1] = text[begin:end]
            bound[-1] = bind(texts[-1], ground, after=False)
        else:
            begin = start
            texts.append(wish)
            bound.append(step)
    skills = {step.skill for step in bound}
    if len(skills) < 2 or (is_step and "" not in skills and len(skills) == len(bound)):
        return texts if len(skills) > 1 else ()
    if not any(_is_command(step, ground) for step in bound):
        return texts if "" in skills and is_order(texts[0]) else ()
    whole = ground.router.retrieve(text)
    skill = ground.catalogue.find(whole.candidates[0].name) if whole.band == "route" else None
    return texts if skill is None or skill.kind == "A" else ()


def _leader(step: BoundStep) -> str:
    likely = step.candidates[0] if step.candidates else None
    return step.skill or (likely.name if likely and likely.confidence >= POSSIBLE else "")


def _is_cut(before: BoundStep, step: BoundStep, *, asks: bool) -> bool:
    """Whether one wish was cut into these: the first part is not a request by its form, or the second is an object and
    the first means no skill, or the same; but not if each names a file or folder and they seem to mean different
    skills."""
    if before.skill or (_targets(before) and _targets(step) and _leader(before) not in {"", _leader(step)}):
        return False
    is_request = is_order(before.text) or asks_to_look(before.text)
    return not is_request or (not asks and _leader(before) in {"", _leader(step)})


def _is_command(step: BoundStep, ground: PlanningContext) -> bool:
    skill = ground.catalogue.find(step.skill) if step.agent == "skills" else None
    return skill is not None and skill.kind == "A"


def _with_subject(wish: str, before: BoundStep) -> str:
    """The wish with the only file or folder of the wish before in place of a word for it: `how many words has it`."""
    named = _targets(before)
    return _IT.sub(f" {named[0]} ", wish, count=1).strip() if len(named) == 1 else wish


def _targets(step: BoundStep) -> Sequence[str]:
    return [file.written for file in (*step.request.files, *step.request.targets) if file.usable]


def _lacks_path(step: BoundStep, ground: PlanningContext) -> bool:
    """Whether the step asks about a file or folder that it does not name, and so may speak of the one named before."""
    skill = ground.catalogue.find(_leader(step))
    unclear = not step.skill or (skill is not None and missing_params(step, ground) is not None)
    return unclear and skill is not None and wants_path(skill.required_params) and asks_to_look(step.text)


def _are_several(bound: Sequence[BoundStep], *, surely: bool) -> bool:
    """Whether the parts of a long message are wishes for different skills; if they are not `surely` apart and no skill
    is named, each must have its own."""
    wanted = [step for step in bound if step.decision.reason != "unwanted"]
    leaders = {step.candidates[0].name if step.candidates else step.skill for step in wanted} - {""}
    if not surely and all(step.decision.tier == "retrieval" for step in bound):
        leaders &= {step.skill for step in bound}
    return len(leaders) > 1


def _with_nearest(bound: Sequence[BoundStep], request: PreprocessingResult, ground: PlanningContext) -> list[BoundStep]:
    """Each step that is for a named or sure skill, once for each skill; else with those of the other skills that fit it
    best, and a little also what the whole message is about; of skills that do nearly the same, one."""
    about = ground.router.retrieve(understand.matter(request), WIDE, understand.files_in(request)).candidates
    sure: dict[str, BoundStep] = {}
    for step in bound:
        if step.skill and (step.decision.tier != "retrieval" or step.decision.confidence >= SURE_OF_WISH):
            sure.setdefault(step.skill, step)
    steps: list[BoundStep] = []
    for step in bound:
        if step.decision.tier == "retrieval" and sure.get(step.skill) is not step:
            near = _together(step.candidates, about)
            names = [name for name in near if name not in sure or name == step.skill]
            offered = tuple(ground.router.varied(names[:NEAREST])[:FALLBACKS])
            step = replace(step, skill="", agent="", result=Direct(), offered=offered)
        steps.append(step)
    return steps


def _together(candidates: Sequence[Candidate], about: Sequence[Candidate] = ()) -> list[str]:
    """The names of `candidates`, and of those of the whole message, best first."""
    totals: dict[str, float] = {}
    for share, ranked in ((1.0, candidates), (ABOUT, about)):
        scores = {each.name: each.score for each in ranked}
        least = min(scores.values(), default=0.0) - UNLISTED
        for name in {each.name for each in (*candidates, *about)}:
            totals[name] = totals.get(name, 0.0) + share * scores.get(name, least)
    return sorted(totals, key=lambda name: -totals[name])


def propose(listed: ListedSteps, ground: PlanningContext) -> PlanProposal | NeedClarification:
    """The plan of these steps, or a question about missing parts."""
    question = _question(listed.steps, ground)
    plan = _plan(listed.said, listed.steps, ground)
    return question or PlanProposal(plan=plan, left=listed.left, at_once=listed.at_once)


def _unreadable(bound: Sequence[BoundStep]) -> Unknown | None:
    """A named file or skill that does not exist or may not be read."""
    return next((step.result for step in bound if isinstance(step.result, Unknown)), None)


def _with_installed(bound: list[BoundStep]) -> list[BoundStep]:
    """For `install <source> and then run x`: x is not installed yet, so it becomes the skill to install."""
    steps = list(bound)
    for at, step in enumerate(bound):
        sure = step.skill and step.decision.tier != "retrieval"
        hit = None if sure else _RUN_NAME.search(step.text)
        before = ((i, bound[i].result) for i in range(at - 1, -1, -1))
        source = next((i for i, one in before if isinstance(one, Lifecycle) and one.operation == "install"), None)
        if hit is None or source is None:
            continue
        requested, order, name = bound[source].result, steps[source].result, hit.group(1).rstrip(".")
        if not isinstance(order, Lifecycle) or not isinstance(requested, Lifecycle):
            continue
        if requested.skills and name not in requested.skills:  # the person named the skills to install
            if "-" in name:  # and no similar skill stands in for the named one
                steps[at] = replace(step, skill="", agent="", result=Direct())
            continue
        names = tuple(dict.fromkeys([*order.skills, name]))
        steps[source] = replace(steps[source], result=replace(order, skills=names))
        steps[at] = replace(step, skill=name, agent="skills", result=Skills(names=(name,)))
    return steps


def _without_telling(bound: list[BoundStep]) -> list[BoundStep]:
    last = bound[-1]
    tells = last.after and not last.skill and _TELLS.fullmatch(last.text.strip())
    return bound[:-1] if tells else bound


def _covered(bound: Sequence[BoundStep], text: str, ground: PlanningContext) -> bool:
    """Whether one skill does all steps, on the same objects (WFL-2, COV-6)."""
    if len(bound) < 2:
        return True
    retrieval = ground.router.retrieve(text)
    if retrieval.reason == "example":
        return True
    fitting = [step for step in bound if step.skill]
    if len({step.skill for step in fitting}) > 1 or any(step.agent != "skills" for step in fitting):
        return False
    if len(fitting) < len(bound):
        return False  # no step is dropped silently
    quoted = understand.QUOTED.findall
    things = [{*(str(file.path) for file in step.request.files), *quoted(step.text)} for step in bound]
    return not all(things) or len({thing for some in things for thing in some}) < 2


def _answered(bound: list[BoundStep], answer: str, ground: PlanningContext) -> list[BoundStep]:
    """Fills the steps from an answer: skills first, then missing values (X-10, X-11)."""
    if any(not step.skill for step in bound):
        words = [word.strip(" `'\"。.") for word in _SEPARATORS.split(answer)]
        named = [skill.name for skill in map(ground.catalogue.find, filter(None, words)) if skill is not None]
        steps: list[BoundStep] = []
        for step in bound:
            if not step.skill and named:
                name = named.pop(0)
                step = replace(step, skill=name, agent="skills", result=Skills(names=(name,)))
            steps.append(step)
        return steps
    lacking = [at for at, step in enumerate(bound) if missing_params(step, ground) is not None]
    by_name = [at for at in lacking if _names_one(answer, missing_params(bound[at], ground))]
    steps = list(bound)
    for at in by_name or sorted(lacking, key=lambda at: not has_typed_params(bound[at], ground)):
        steps[at] = fill_missing(bound[at], answer, ground)
        if not by_name and steps[at] != bound[at]:
            break
    return steps


def _names_one(answer: str, question: NeedClarification | None) -> bool:
    """Whether `answer` contains `name=value` for a value that was asked for."""
    names = "|".join(map(re.escape, question.missing)) if question else ""
    return bool(names) and lazy_compile(rf"(?:^|[\n;；]\s*+)(?:{names})=").search(answer) is not None


def _question(bound: Sequence[BoundStep], ground: PlanningContext) -> NeedClarification | None:
    """One question about steps without a skill, or about all missing values."""
    language = ground.context.language
    unbound = [step for step in bound if not step.skill]
    if unbound:
        scope = say("workflow.scope", language)
        texts = [repr(shorten(step.text, SHOWN)) for step in unbound]  # `'send it' (mail, chat?)`
        offers = [f" ({', '.join(step.offered)}?)" if step.offered else "" for step in unbound]
        steps = "; ".join(map("".join, zip(texts, offers, strict=True)))
        fitting = [step for step in bound if step.skill]
        others = "; ".join(f"{step.text} → {step.skill}" for step in fitting)
        key = "workflow.rest" if fitting else "workflow.which"
        question = say(key, language, steps=steps, scope=scope, others=others)
        return NeedClarification(question=question, missing=("skill",), rest=_rest(fitting))
    questions = [asked_for for step in bound if (asked_for := missing_params(step, ground)) is not None]
    if not questions:
        return None
    missing = tuple(name for asked_for in questions for name in asked_for.missing)
    return replace(questions[0], question=" ".join(asked_for.question for asked_for in questions), missing=missing)


def _rest(fitting: Sequence[BoundStep]) -> str:
    """The message that asks for these steps and nothing else; what is not worded as an order names its skill."""
    lines = []
    for step in fitting:
        text = _COUNTED.sub("", step.text, count=1) if _COUNTED.match(step.text) else step.text
        lines.append(text if step.agent != "skills" or is_order(text) else f"use {step.skill}: {text}")
    return lines[0] if len(lines) == 1 else "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))


def _plan(text: str, bound: Sequence[BoundStep], ground: PlanningContext) -> WorkflowPlan:
    language = ground.context.language
    steps = tuple(_stored(step, ground, last=at == len(bound), language=language) for at, step in enumerate(bound, 1))
    read = dict.fromkeys(path for step in bound for path in files_of(step, ground))
    return WorkflowPlan(
        name="-then-".join(map(_label, bound))[:NAME_LIMIT].strip("-"),
        description=shorten(text, 200),
        steps=steps,
        depends_on=tuple(dict.fromkeys(step.skill for step in steps if step.agent == "skills")),
        sandbox=Sandboxed(read=tuple(read)),
    )


def _stored(step: BoundStep, ground: PlanningContext, *, last: bool, language: Language) -> WorkflowStep:
    """A step as text with its answers, which approval covers."""
    text = serialize_step(step, ground)
    given = "".join(f" ({name}: {value})" for name, value in step.given.items())
    return WorkflowStep(
        text=clean(text if step.agent == "worker" else f"{step.text}{given}", lines=False),
        skill=step.skill,
        agent=step.agent,
        input=text,
        output=say("workflow.last" if last else "workflow.handed", language),
    )


def _label(step: BoundStep) -> str:
    word = step.result.operation if isinstance(step.result, Lifecycle) else step.skill
    return _NOT_WORD.sub("-", fold(word)).strip("-") or "step"


# One step: its skill, and its missing parameters (WFL-4..6, X-10, X-39)

PLANNED = 0.6  # confidence from which a skill is put in a plan
SURE_OF_WISH = 0.85  # the same for one of several wishes of a long message, whose parts say less
FEW, WIDE, NEAREST = 12, 60, 12  # candidates of a step, of a wish, and of these those that may be offered
ABOUT = 0.3  # share of what the whole message is about in what a wish is about
UNLISTED = 0.5  # by how much a skill that is not a candidate is below the last one
MANAGER = "skill_manager"  # the skill of lifecycle steps (AGT-6)

# A later step's words for the output of the one before say nothing about the wanted skill
_HANDED = lazy_compile(
    r"(?<![\w-])(?:(?:the|its|their|that|this)\s+(?:results?|outputs?)|it|them)(?![\w-])"
    r"|(?:上一步|得到的?|刚才的?|其|该|这个|这些)?(?:结果|输出)(?:里|中)?的?",
    re.IGNORECASE,
)
_WORD = lazy_compile(r"\w+")
_AFTER_PATH = lazy_compile(r"[\u3400-\u9fff]")  # Chinese that stands beside a path could be a part of it
_FROM_BEFORE = frozenset({"not_empty", "none", "file_exists"})  # validations whose values the step before can supply
_TYPED = frozenset({"url_format", "email", "file_exists"})


class PlanningContext(Struct, frozen=True, kw_only=True):
    """The services for planning. `root` is the project's real folder, `limit` the maximum number of steps."""

    catalogue: Catalogue
    router: Router
    files: FileReader
    root: Path
    limit: int
    context: TurnContext


class BoundStep(Struct, frozen=True, kw_only=True):
    """`given` are the values from answers, by the parameter's name; `after` says that another step comes before it.
    `offered` are the skills that may be meant, if it is not clear which."""

    text: str
    request: PreprocessingResult
    result: RouteResult
    decision: RouteDecision
    skill: str
    agent: str
    after: bool
    offered: tuple[str, ...] = ()
    candidates: Sequence[Candidate] = ()
    given: Mapping[str, str] = field(default_factory=dict)


def bind(text: str, ground: PlanningContext, k: int = FEW, *, after: bool) -> BoundStep:
    """Binds a step to a skill by its name, else by description, examples and tags (COV-2, COV-3, WFL-4).

    `skill` and `agent` are empty if none fits. What is named in plain words gets its mark.
    """
    step = _bind(text, ground, k, after=after)
    if step.agent != "skills" or not isinstance(step.result, Skills):
        return step
    marked = _marked(step, ground)
    step = step if marked == text else _bind(marked, ground, k, after=after)
    stops = unusable(_held(step, step.request, ground), ground.context.language)
    return replace(step, result=stops) if isinstance(stops, Unknown) else step


def _marked(step: BoundStep, ground: PlanningContext) -> str:
    """The step's text with an `@` before each file and folder that the skill gets and that is named without it."""
    params = _held(step, step.request, ground)
    given = set(params.values.values())
    text = step.text
    for target in step.request.targets:
        assigned = f"={target.written}" in text  # `name=@path` is a command's
        if target.usable and not assigned and given & {str(target.path), target.content}:
            text = _with_mark(text, target.written, within(target, ground.root))
    skill = ground.catalogue.find(step.skill)
    for name in [spec.name for spec in (skill.required_params if skill else ()) if spec.validation == "file_exists"]:
        for word in step.result.arguments if isinstance(step.result, Skills) else ():
            bare = word.removeprefix(f"{name}=")
            path = Path(os.path.realpath(bare))
            if bare and str(path) == os.path.realpath(params.values.get(name, "")) and path.is_relative_to(ground.root):
                text = (
                    _with_mark(text, bare, bare)
                    if bare == word
                    else text.replace(bare, path.relative_to(ground.root).as_posix(), 1)
                )
    return text


def _with_mark(text: str, written: str, path: str) -> str:
    """`text` with the marked `path` in place of the first `written` without a mark."""
    mark = f'@"{path}"' if " " in path or _AFTER_PATH.search(text.partition(written)[2][:1]) else f"@{path}"
    end = "/?" if path.endswith("/") else ""
    form = lazy_compile(rf"(?P<quote>[\"'`“「]?)(?<![\w@./-]){re.escape(written)}{end}(?P<end>[\"'`”」]?)")
    return form.sub(mark.replace("\\", r"\\"), text, count=1)


def files_of(step: BoundStep, ground: PlanningContext) -> list[str]:
    """The files that a step names, relative to the project's root."""
    marked = [within(file, ground.root) for file in step.request.files if not file.problem]
    arguments = step.result.arguments if isinstance(step.result, Skills) else ()
    values = _held(step, step.request, ground).values if step.agent == "skills" else {}
    words = [str(word) for word in (*values.values(), *arguments, *step.given.values())]
    real = [Path(os.path.realpath(word)) for word in words if is_there(Path(word))]
    return marked + [path.relative_to(ground.root).as_posix() for path in real if path.is_relative_to(ground.root)]


def _bind(text: str, ground: PlanningContext, k: int, *, after: bool) -> BoundStep:
    request = preprocess(Message(text=text, language=ground.context.language), ground.files, ground.context.now)
    meant = replace(request, need=_HANDED.sub(" ", request.need)) if after else request
    intent = understand_locally(meant, Session(id=""), ground.router, k)
    decision = decide(intent, request, ground.catalogue)
    offered: tuple[str, ...] = ()
    if isinstance(decision.result, NeedClarification) and intent.retrieval and intent.retrieval.candidates:
        best = intent.retrieval.candidates[0]  # the person sees the plan before anything runs
        words, offered = fold(best.name).split("-"), decision.result.options
        # or all words of a name of several words are said: `polish the manuscript` for polish-manuscript
        is_said = len(words) > 1 and set(words) <= set(_WORD.findall(fold(text)))
        fits = best.confidence >= PLANNED or is_said
        decision = replace(
            decision, result=Skills(names=(best.name,)) if fits else Direct(), entity=best.name if fits else None
        )
    retrieval = None if decision.reason == "unreadable" else intent.retrieval
    if retrieval and (looks_with := command_that_looks(retrieval, request, ground.catalogue)):
        decision = replace(decision, result=Skills(names=(looks_with,)), entity=looks_with)
    skill, agent = "", ""
    match decision.result:
        case Skills(names=names):
            skill, agent = names[0], "skills"
        case Lifecycle():
            skill, agent = MANAGER, "worker"
        case Script(name=name):
            skill, agent = name, "worker"
        case Mcp(server=server):
            skill, agent = server or "mcp", "mcp"
    return BoundStep(
        text=text,
        request=request,
        result=decision.result,
        decision=decision,
        skill=skill,
        agent=agent,
        after=after,
        offered=offered,
        candidates=intent.retrieval.candidates if intent.retrieval else (),
    )


def missing_params(step: BoundStep, ground: PlanningContext) -> NeedClarification | None:
    """The missing values of a step; text and files may come from the step before it."""
    if step.agent != "skills":
        result = plan(replace(step.decision, result=step.result), step.request, ground.catalogue, ground.context)
        return replace(result, target=step.skill) if isinstance(result, NeedClarification) else None
    unclear = unusable(_held(step, step.request, ground), ground.context.language)
    if isinstance(unclear, NeedClarification):
        return replace(unclear, target=step.skill)
    missing = _missing(step, ground)
    if not missing:
        return None
    what = asked_values(missing, ground.context.language)
    question = say("ask.missing", ground.context.language, skill=step.skill, what=what)
    return NeedClarification(question=question, missing=tuple(spec.name for spec in missing), target=step.skill)


def fill_missing(step: BoundStep, answer: str, ground: PlanningContext) -> BoundStep:
    """The step with missing values filled from `answer`."""
    words = " ".join(answer.split())
    if step.agent != "skills":
        merged = bind(f"{step.text} {words}", ground, after=step.after)
        return merged if merged.agent == step.agent and missing_params(merged, ground) is None else step
    missing = _missing(step, ground)
    if any(spec.validation == "file_exists" for spec in missing):
        marked = words if "@" in words else f'@"{words}"'
        named = bind(f"{step.text} {marked}", ground, after=step.after).request
        wrong = next((file for file in named.files if file.problem and file.refused), None)
        if wrong is not None:
            return replace(step, result=Unknown(what="file", name=wrong.problem, hint=wrong.hint, refused=True))
        if named.files and not any(file.problem for file in named.files):
            return replace(step, text=f"{step.text} {marked}", request=named)
    params = _held(step, replace(step.request, answers=(answer,)), ground)
    seen = _held(step, replace(step.request, need=answer, answers=()), ground)  # an address is recognised by its form
    got = {spec.name: params.values[spec.name] for spec in missing if spec not in params.missing}
    typed = [spec for spec in missing if spec.validation in _TYPED and spec not in seen.missing]
    got = {**{spec.name: seen.values[spec.name] for spec in typed}, **got}
    got = {name: " ".join(value.split()) for name, value in got.items()}
    return replace(step, given={**step.given, **got}) if got else step


def has_typed_params(step: BoundStep, ground: PlanningContext) -> bool:
    """Whether each missing value has a validation, by which an answer is recognised."""
    return step.agent == "skills" and all(spec.validation in _TYPED for spec in _missing(step, ground))


def serialize_step(step: BoundStep, ground: PlanningContext) -> str:
    """The step's message for storage: paths from the project's root, and answers and conclusions in words."""
    text = relative_to_root(step.text, step.request.files, ground.root)
    if isinstance(step.result, Lifecycle) and step.result.operation == "install":
        action = ground.router.recognise(step.text)
        known = action.skills if isinstance(action, Lifecycle) else ()
        return " ".join([text, *(f"--skill {name}" for name in step.result.skills if name not in known)])
    if step.given:
        words = " ".join(f"{name}={shlex.quote(value)}" for name, value in step.given.items())
        return f"/{step.skill} {words}\n{text}"
    return text


def relative_to_root(text: str, files: Sequence[FileReference], root: Path) -> str:
    """`text` with each `@path` relative to the project's root, whatever the current folder was."""
    known = {file.written: file for file in files}
    if not known:
        return text
    names = "|".join(re.escape(name) for name in sorted(known, key=len, reverse=True))

    def lasting(hit: re.Match[str]) -> str:
        file = known[hit[1] or hit[2] or hit[3]]
        if file.problem or (path := within(file, root)) == file.written:
            return hit.group()
        return f'@"{path}"' if " " in path else f"@{path}"

    return lazy_compile(rf"@(?:\"({names})\"|'({names})'|({names}))").sub(lasting, text)


def within(file: FileReference, root: Path) -> str:
    """The path from the project's root; a folder ends in `/`, for `@name` alone may be a person."""
    path = file.path.relative_to(root).as_posix() if file.path.is_relative_to(root) else file.written.rstrip("/")
    return f"{path}/" if file.folder else path


def _missing(step: BoundStep, ground: PlanningContext) -> list[ParamSpec]:
    params = _held(step, step.request, ground)
    handed = _FROM_BEFORE if step.after else frozenset()
    return [spec for spec in params.missing if spec.validation not in handed and spec.name not in step.given]


def _held(step: BoundStep, request: PreprocessingResult, ground: PlanningContext) -> Parameters:
    skill = ground.catalogue.find(step.skill)
    arguments = step.result.arguments if isinstance(step.result, Skills) else ()
    specs = skill.required_params if skill else ()
    return parameters(specs, arguments, request, named=step.decision.tier != "retrieval")

"""Plans a workflow for a message that lists several steps, each bound to its best skill (WFL-1..6)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.language.clauses import is_long
from navigator_kernel.language.wording import say
from navigator_kernel.text import Language, clean, fold, lazy_compile, shorten
from navigator_kernel.values.route import (
    Direct,
    Lifecycle,
    Mcp,
    NeedClarification,
    RouteResult,
    Script,
    Skills,
    Unknown,
)
from navigator_kernel.values.workflow import Sandboxed, WorkflowPlan, WorkflowStep
from navigator_kernel.workflows.segments import split, wishes
from navigator_kernel.workflows.step_binding import (
    BoundStep,
    PlanningContext,
    bind,
    files_of,
    fill_missing,
    has_typed_params,
    missing_params,
    serialize_step,
)

if TYPE_CHECKING:
    from navigator_kernel.values.request import PreprocessingResult

LIMIT = 4_000  # characters of a message that can spell out steps; a longer one is a text
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
_QUOTED = lazy_compile(r"\"[^\"\n]+\"|(?<!\w)'[^'\n]+'(?!\w)|“[^“”\n]+”|「[^「」\n]+」")
_SEPARATORS = lazy_compile(r"[,;，；、\s]+")
_NOT_WORD = lazy_compile(r"[^\w-]+")


class PlanProposal(Struct, frozen=True, kw_only=True):
    """The plan, and the steps beyond the limit in the person's words."""

    plan: WorkflowPlan
    left: tuple[str, ...] = ()


class ListedSteps(Struct, frozen=True, kw_only=True):
    """The steps that a message lists, bound to skills where one fits, and the steps beyond the limit in the person's
    words. `said` is the message without the request's answers."""

    said: str
    steps: Sequence[BoundStep]
    left: tuple[str, ...] = ()


def plan_workflow(
    request: PreprocessingResult, need: str, ground: PlanningContext, *, alone: bool = False
) -> PlanProposal | NeedClarification | Unknown | None:
    """A plan, a question about missing parts, a file that cannot be read, or None if one skill or none is enough."""
    listed = list_steps(request, need, ground, alone=alone)
    return propose(listed, ground) if isinstance(listed, ListedSteps) else listed


def list_steps(
    request: PreprocessingResult, need: str, ground: PlanningContext, *, alone: bool = False
) -> ListedSteps | Unknown | None:
    """The steps of a message; a file that cannot be read; or None if one skill or none is enough.

    `need` is the message with files as they were written and the request's answers at its end; with `alone`, a single
    order also makes a plan.
    """
    said = need.removesuffix(" ".join(request.answers).strip()).rstrip() if request.answers else need
    if len(said) > LIMIT:
        return None
    ordered = wishes(said) if is_long(said) and not alone else ()
    clauses = ordered or split(said, lambda clause: _is_named(clause, ground))
    if len(clauses) < 2 and not alone:
        return None
    bound = [bind(clause, ground, after=at > 0) for at, clause in enumerate(clauses[: ground.limit])]
    bound = _without_telling(_with_installed(bound))
    if (unreadable := _unreadable(bound)) is not None:
        return unreadable
    if ordered:
        bound = [_with_nearest(step) for step in bound]
        leaders = {step.skill or next(iter(step.offered), "") for step in bound}
        if len(leaders - {""}) < 2:
            return None  # one task in several sentences
    elif is_long(said) and not alone and all(step.decision.tier == "retrieval" for step in bound):
        return None  # the requirements of one task
    more = len(clauses) > ground.limit
    if not any(step.skill for step in bound) or not (alone or more or not _covered(bound, said, ground)):
        return None
    for answer in request.answers:
        bound = _answered(bound, answer, ground)
    return _unreadable(bound) or ListedSteps(said=said, steps=bound, left=tuple(clauses[ground.limit :]))


def _with_nearest(step: BoundStep) -> BoundStep:
    """The step; if it surely wants a skill but none is likely, with those that come nearest."""
    if step.skill or step.offered or step.decision.reason != "unlikely":
        return step
    return replace(step, offered=step.decision.candidates)


def propose(listed: ListedSteps, ground: PlanningContext) -> PlanProposal | NeedClarification:
    """The plan of these steps, or a question about missing parts."""
    asked = _question(listed.steps, ground)
    return asked or PlanProposal(plan=_plan(listed.said, listed.steps, ground), left=listed.left)


def _unreadable(bound: Sequence[BoundStep]) -> Unknown | None:
    """A named file or skill that does not exist or may not be read."""
    return next((step.result for step in bound if isinstance(step.result, Unknown)), None)


def _is_named(clause: str, ground: PlanningContext) -> bool:
    return isinstance(ground.router.recognise(clause), Skills | Lifecycle | Script | Mcp)


def _with_installed(bound: list[BoundStep]) -> list[BoundStep]:
    """For `install <source> and then run x`: x is not installed yet, so it becomes the skill to install."""
    found = list(bound)
    for at, step in enumerate(bound):
        sure = step.skill and step.decision.tier != "retrieval"
        hit = None if sure else _RUN_NAME.search(step.text)
        source = next((i for i in range(at - 1, -1, -1) if _installs(bound[i].result)), None)
        if hit is None or source is None:
            continue
        asked, order, name = bound[source].result, found[source].result, hit.group(1).rstrip(".")
        if not isinstance(order, Lifecycle) or not isinstance(asked, Lifecycle):
            continue
        if asked.skills and name not in asked.skills:  # the person named the skills to install
            if "-" in name:  # and no similar skill stands in for the named one
                found[at] = replace(step, skill="", agent="", result=Direct())
            continue
        names = tuple(dict.fromkeys([*order.skills, name]))
        found[source] = replace(found[source], result=replace(order, skills=names))
        found[at] = replace(step, skill=name, agent="skills", result=Skills(names=(name,)))
    return found


def _installs(result: RouteResult) -> bool:
    return isinstance(result, Lifecycle) and result.operation == "install"


def _without_telling(bound: list[BoundStep]) -> list[BoundStep]:
    last = bound[-1]
    tells = last.after and not last.skill and _TELLS.fullmatch(last.text.strip())
    return bound[:-1] if tells else bound


def _covered(bound: Sequence[BoundStep], said: str, ground: PlanningContext) -> bool:
    """Whether one skill does all steps, on the same objects (WFL-2, COV-6)."""
    if len(bound) < 2:
        return True
    found = ground.router.retrieve(said)
    if found.reason == "example":
        return True
    fitting = [step for step in bound if step.skill]
    if len({step.skill for step in fitting}) > 1 or any(step.agent != "skills" for step in fitting):
        return False
    if len(fitting) < len(bound):
        return False  # no step is dropped silently
    things = [_things(step) for step in bound]
    return not all(things) or len({thing for some in things for thing in some}) < 2


def _things(step: BoundStep) -> set[str]:
    """The objects of a step: files and quoted texts."""
    return {str(file.path) for file in step.request.files} | set(_QUOTED.findall(step.text))


def _answered(bound: list[BoundStep], answer: str, ground: PlanningContext) -> list[BoundStep]:
    """Fills the steps from an answer: skills first, then missing values (X-10, X-11)."""
    if any(not step.skill for step in bound):
        words = [word.strip(" `'\"。.") for word in _SEPARATORS.split(answer)]
        named = [skill.name for skill in map(ground.catalogue.find, filter(None, words)) if skill is not None]
        found: list[BoundStep] = []
        for step in bound:
            if not step.skill and named:
                name = named.pop(0)
                step = replace(step, skill=name, agent="skills", result=Skills(names=(name,)))
            found.append(step)
        return found
    lacking = [at for at, step in enumerate(bound) if missing_params(step, ground) is not None]
    by_name = [at for at in lacking if _names_one(answer, missing_params(bound[at], ground))]
    found = list(bound)
    for at in by_name or sorted(lacking, key=lambda at: not has_typed_params(bound[at], ground)):
        found[at] = fill_missing(bound[at], answer, ground)
        if not by_name and found[at] != bound[at]:
            break
    return found


def _names_one(answer: str, asked: NeedClarification | None) -> bool:
    """Whether `answer` contains `name=value` for a value that was asked for."""
    names = "|".join(map(re.escape, asked.missing)) if asked else ""
    return bool(names) and lazy_compile(rf"(?:^|[\n;；]\s*+)(?:{names})=").search(answer) is not None


def _question(bound: Sequence[BoundStep], ground: PlanningContext) -> NeedClarification | None:
    """One question about steps without a skill, or about all missing values."""
    language = ground.context.language
    unbound = [step for step in bound if not step.skill]
    if unbound:
        scope = say("workflow.scope", language)
        steps = "; ".join(_with_offer(step) for step in unbound)
        fitting = [step for step in bound if step.skill]
        others = "; ".join(f"{step.text} → {step.skill}" for step in fitting)
        question = say("workflow.rest", language, steps=steps, scope=scope, others=others)
        return NeedClarification(question=question, missing=("skill",), rest=_rest(fitting))
    asked = [one for step in bound if (one := missing_params(step, ground)) is not None]
    if not asked:
        return None
    missing = tuple(name for one in asked for name in one.missing)
    return replace(asked[0], question=" ".join(one.question for one in asked), missing=missing)


def _with_offer(step: BoundStep) -> str:
    """The step, with the skills that may be meant: `'send it' (mail, chat?)`."""
    return f"{step.text!r} ({', '.join(step.offered)}?)" if step.offered else repr(step.text)


def _rest(fitting: Sequence[BoundStep]) -> str:
    """The message that asks for these steps and nothing else."""
    if len(fitting) == 1:
        return fitting[0].text
    return "\n".join(f"{number}. {step.text}" for number, step in enumerate(fitting, 1))


def _plan(said: str, bound: Sequence[BoundStep], ground: PlanningContext) -> WorkflowPlan:
    language = ground.context.language
    steps = tuple(_stored(step, ground, last=at == len(bound), language=language) for at, step in enumerate(bound, 1))
    read = dict.fromkeys(path for step in bound for path in files_of(step, ground))
    return WorkflowPlan(
        name="-then-".join(map(_label, bound))[:NAME_LIMIT].strip("-"),
        description=shorten(said, 200),
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

"""Makes a plan of a message that spells out several steps, each bound to its best skill (WFL-1..6)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from navigator_kernel.errors import KernelError
from navigator_kernel.ports import Catalogue, FileReader, Router
from navigator_kernel.stages.decide import decide
from navigator_kernel.stages.preprocess import preprocess
from navigator_kernel.stages.understand import understand_locally
from navigator_kernel.text import fold, shorten
from navigator_kernel.values.parameters import parameters
from navigator_kernel.values.request import Message, PreprocessingResult, Session
from navigator_kernel.values.resource import ParamSpec
from navigator_kernel.values.route import (
    Lifecycle,
    Mcp,
    NeedClarification,
    RouteDecision,
    RouteResult,
    Script,
    Skills,
    Unknown,
)
from navigator_kernel.values.wording import say
from navigator_kernel.values.workflow import Sandboxed, WorkflowPlan, WorkflowStep
from navigator_kernel.workflows.split import split

LIMIT = 4_000  # characters of a message that may spell out steps; a longer one is a text
SURE = 0.9  # overlap with an example from which one skill covers the whole message
MANAGER = "skill_manager"  # what lifecycle steps are bound to (AGT-6)

_RUN_NAME = re.compile(
    r"(?:\b(?:run|use|execute|call|apply|try|start)\b\s+(?:the\s+)?|执行|运行|使用|调用|用)\s*[`'\"“「]?([A-Za-z0-9][\w.-]{0,63}?)[`'\"”」]?"
    r"(?=\s*(?:$|[,.，。;；]|--|@|\"|'|\b(?:on|with|for|to|over|against|in|skill)\b|技能|处理|来|对|分析|统计))",
    re.IGNORECASE,
)

# What a later step calls the output of the one before says nothing of the skill that is wanted
_HANDED = re.compile(
    r"\b(?:the|its|their|that|this)\s+(?:results?|outputs?)\b|\b(?:it|them)\b"
    r"|(?:上一步|得到的?|刚才的?|其|该|这个|这些)?(?:结果|输出)(?:里|中)?的?",
    re.IGNORECASE,
)
_HINT = re.compile(
    r"\bthen\b|\bafter|\bnext\b|\bfinally\b|\blastly\b|\bstep\b|\bsecond|\bsubsequently\b|\bdone\b"
    r"|然后|接着|接下来|之后|以后|随后|其次|紧接|而后|最后|末了|再|步|[一1][.)、）]|[(（]1",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What a plan is made from. `relative` writes a real path as it reads from the project's root; `limit` is the
    largest number of steps."""

    catalogue: Catalogue
    router: Router
    files: FileReader
    relative: Callable[[Path], str]
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """The plan, and the steps beyond the limit in the person's words."""

    plan: WorkflowPlan
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bound:
    text: str
    request: PreprocessingResult
    result: RouteResult
    decision: RouteDecision
    skill: str = ""
    agent: str = ""


def propose(
    request: PreprocessingResult, need: str, ground: Ground, *, alone: bool = False
) -> Proposed | NeedClarification | Unknown | None:
    """A plan, a question about what is missing, a file that cannot be read, or None where one skill or none is enough.

    `need` is the message with files as they were written; with `alone` a single order makes a plan, too.
    """
    said = need.removesuffix(request.answer).rstrip() if request.answer else need
    if len(said) > LIMIT:
        return None
    clauses = split(said, lambda clause: _is_named(clause, ground))
    if len(clauses) < 2 and not alone:
        return None
    bound = _with_installed([_bind(at, clause, request, ground) for at, clause in enumerate(clauses[: ground.limit])])
    unreadable = next((one.result for one in bound if isinstance(one.result, Unknown)), None)
    if unreadable is not None:
        return unreadable
    if not any(one.skill for one in bound) or (not alone and _covered(bound, request, ground)):
        return None
    bound = _answered(bound, request, ground)
    if (question := _question(bound, request, ground)) is not None:
        return question
    return Proposed(plan=_plan(said, bound, request, ground), left=tuple(clauses[ground.limit :]))


def may_spell_out(text: str) -> bool:
    """A cheap look for a word or number that joins steps, before anything is taken apart."""
    return _HINT.search(text) is not None


def _is_named(clause: str, ground: Ground) -> bool:
    return isinstance(ground.router.recognise(clause), Skills | Lifecycle | Script | Mcp)


def _bind(at: int, clause: str, whole: PreprocessingResult, ground: Ground) -> _Bound:
    """COV-2, COV-3, WFL-4: by its name, else by description, examples and tags."""
    request = preprocess(Message(text=clause, language=whole.language), ground.files)
    meant = replace(request, need=_HANDED.sub(" ", request.need)) if at else request
    intent = understand_locally(meant, Session(id=""), ground.router)
    decision = decide(intent, request, ground.catalogue)
    if isinstance(decision.result, NeedClarification) and intent.retrieval and intent.retrieval.candidates:
        best = intent.retrieval.candidates[0].name  # the person sees the plan before anything runs
        decision = replace(decision, result=Skills(names=(best,)), entity=best)
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
    return _Bound(text=clause, request=request, result=decision.result, decision=decision, skill=skill, agent=agent)


def _with_installed(bound: list[_Bound]) -> list[_Bound]:
    """`install <source> and then run x`: x is not here yet, and is what the source is asked for."""
    found = list(bound)
    for at, one in enumerate(bound):
        sure = one.skill and one.decision.tier != "retrieval"
        hit = None if sure else _RUN_NAME.search(one.text)
        source = next((i for i in range(at - 1, -1, -1) if _installs(found[i].result)), None)
        if hit is None or source is None:
            continue
        order, name = found[source].result, hit.group(1).rstrip(".")
        if not isinstance(order, Lifecycle) or (order.skills and name not in order.skills):
            continue
        found[source] = replace(found[source], result=replace(order, skills=order.skills or (name,)))
        found[at] = replace(one, skill=name, agent="skills", result=Skills(names=(name,)))
    return found


def _installs(result: RouteResult) -> bool:
    return isinstance(result, Lifecycle) and result.operation == "install"


def _covered(bound: Sequence[_Bound], request: PreprocessingResult, ground: Ground) -> bool:
    """WFL-2, COV-6: one skill does all of it, unless it is wanted of different things."""
    if request.target and not request.answer:
        return True
    found = ground.router.retrieve(request.need)
    if found.band == "route" and found.candidates[0].parts.get("example", 0.0) >= SURE:
        return True
    skills = {one.skill for one in bound if one.skill}
    if len(skills) > 1 or any(one.agent != "skills" for one in bound if one.skill):
        return False
    objects = {file.path for one in bound for file in one.request.files}
    return len(objects) < 2 or not all(one.skill for one in bound)


def _answered(bound: list[_Bound], request: PreprocessingResult, ground: Ground) -> list[_Bound]:
    """An answer that names a skill binds the step that has none; any other is for the skill that asked (X-11)."""
    if not request.answer:
        return bound
    named = ground.catalogue.find(request.answer.strip(" `'\"。."))
    found: list[_Bound] = []
    for one in bound:
        if not one.skill and named is not None:
            one = replace(one, skill=named.name, agent="skills", result=Skills(names=(named.name,)))
            named = None
        elif one.skill and one.skill == request.target:
            one = replace(one, request=replace(one.request, answer=request.answer))
        found.append(one)
    return found


def _question(bound: Sequence[_Bound], request: PreprocessingResult, ground: Ground) -> NeedClarification | None:
    """One question: for the steps that no skill fits, else for what the first skill that lacks something lacks."""
    unbound = [one.text for one in bound if not one.skill]
    language = request.language
    if unbound:
        scope = say("workflow.scope", language)
        question = say("workflow.unbound", language, steps="; ".join(map(repr, unbound)), scope=scope)
        return NeedClarification(question=question, missing=("skill",))
    for at, one in enumerate(bound):
        missing = _missing(one, at, ground)
        if missing:
            what = "; ".join(spec.prompt or spec.name for spec in missing)
            question = say("ask.missing", language, skill=one.skill, what=what)
            return NeedClarification(question=question, missing=tuple(spec.name for spec in missing), target=one.skill)
    return None


def _missing(one: _Bound, at: int, ground: Ground) -> list[ParamSpec]:
    """What a step lacks; text and files may come from the step before it."""
    skill = ground.catalogue.find(one.skill) if one.agent == "skills" else None
    if skill is None or not isinstance(one.result, Skills):
        return []
    named = one.decision.tier != "retrieval"
    held = parameters(skill.required_params, one.result.arguments, one.request, named=named)
    handed = {"not_empty", "none", "file_exists"} if at else set()
    return [spec for spec in held.missing if spec.validation not in handed]


def _plan(said: str, bound: Sequence[_Bound], request: PreprocessingResult, ground: Ground) -> WorkflowPlan:
    steps = tuple(
        WorkflowStep(
            text=shorten(_input(one, ground) if one.agent == "worker" else one.text, 200),  # what a yes covers
            skill=one.skill,
            agent=one.agent,
            input=_input(one, ground),
            output=say("workflow.handed" if at < len(bound) else "workflow.last", request.language),
        )
        for at, one in enumerate(bound, 1)
    )
    read = dict.fromkeys(
        _lasting(file.written, ground) for one in bound for file in one.request.files if not file.problem
    )
    return WorkflowPlan(
        name="-then-".join(_label(one) for one in bound)[:80].strip("-"),
        description=shorten(said, 200),
        steps=steps,
        depends_on=tuple(dict.fromkeys(step.skill for step in steps if step.agent == "skills")),
        sandbox=Sandboxed(read=tuple(read)),
    )


def _label(one: _Bound) -> str:
    word = one.result.operation if isinstance(one.result, Lifecycle) else one.skill
    return re.sub(r"[^\w-]+", "-", fold(word)).strip("-") or "step"


def _input(one: _Bound, ground: Ground) -> str:
    """The step's message as it is stored: paths from the project's root, what was answered or concluded written out."""
    text = one.text
    for file in sorted(one.request.files, key=lambda file: -len(file.written)):
        if not file.problem and (lasting := _lasting(file.written, ground)) != file.written:
            text = text.replace(f"@{file.written}", f'@"{lasting}"' if " " in lasting else f"@{lasting}")
    if isinstance(one.result, Lifecycle) and _installs(one.result) and one.result.skills:
        flags = " ".join(f"--skill {name}" for name in one.result.skills)
        return text if all(name in text for name in one.result.skills) else f"{text} {flags}"
    if one.request.answer:
        missing = _missing(replace(one, request=replace(one.request, answer="")), 0, ground)
        name = missing[0].name if missing else "text"
        return f"/{one.skill} {name}={shlex.quote(' '.join(one.request.answer.split()))}\n{text}"
    return text


def _lasting(written: str, ground: Ground) -> str:
    """The path as it reads from the project's root, wherever the person stood."""
    try:
        real, _ = ground.files.read(written)
    except KernelError:
        return written
    return ground.relative(real)

"""Binds a step of a plan to a skill, and finds its missing parameters (WFL-4..6, X-10, X-39)."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from navigator_kernel.language.clauses import asks_to_look
from navigator_kernel.language.parameters import Parameters, is_there, parameters
from navigator_kernel.language.wording import say
from navigator_kernel.stages.decide import BEHIND, NAMED, decide
from navigator_kernel.stages.plan import asked_values, plan, unusable
from navigator_kernel.stages.preprocess import preprocess
from navigator_kernel.stages.understand import understand_locally
from navigator_kernel.text import fold, lazy_compile
from navigator_kernel.values.request import FileReference, Message, PreprocessingResult, Session
from navigator_kernel.values.route import (
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

if TYPE_CHECKING:
    from navigator_kernel.ports import Catalogue, FileReader, Router
    from navigator_kernel.values.context import TurnContext
    from navigator_kernel.values.resource import ParamSpec

PLANNED = 0.6  # confidence from which a skill is put in a plan
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
    given: Mapping[str, str] = field(default_factory=dict)


def bind(text: str, ground: PlanningContext, *, after: bool) -> BoundStep:
    """Binds a step to a skill by its name, else by description, examples and tags (COV-2, COV-3, WFL-4).

    `skill` and `agent` are empty if none fits. What is named in plain words gets its mark.
    """
    step = _bind(text, ground, after=after)
    if step.agent != "skills" or not isinstance(step.result, Skills):
        return step
    marked = _marked(step, ground)
    step = step if marked == text else _bind(marked, ground, after=after)
    stops = unusable(_held(step, step.request, ground), ground.context.language)
    return replace(step, result=stops) if isinstance(stops, Unknown) else step


def _marked(step: BoundStep, ground: PlanningContext) -> str:
    """The step's text with an `@` before each file and folder that the skill gets and that is named without it."""
    held = _held(step, step.request, ground)
    given = set(held.values.values())
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
            if bare and str(path) == os.path.realpath(held.values.get(name, "")) and path.is_relative_to(ground.root):
                text = (
                    _with_mark(text, bare, bare)
                    if bare == word
                    else text.replace(bare, path.relative_to(ground.root).as_posix(), 1)
                )
    return text


def _with_mark(text: str, written: str, path: str) -> str:
    """`text` with the marked `path` in place of the first `written` without a mark."""
    mark = f'@"{path}"' if " " in path or _AFTER_PATH.search(text.partition(written)[2][:1]) else f"@{path}"
    form = lazy_compile(rf"(?P<quote>[\"'`“「]?)(?<![\w@./-]){re.escape(written)}(?P<end>[\"'`”」]?)")
    return form.sub(mark.replace("\\", r"\\"), text, count=1)


def files_of(step: BoundStep, ground: PlanningContext) -> list[str]:
    """The files that a step names, relative to the project's root."""
    marked = [within(file, ground.root) for file in step.request.files if not file.problem]
    arguments = step.result.arguments if isinstance(step.result, Skills) else ()
    values = _held(step, step.request, ground).values if step.agent == "skills" else {}
    words = [str(word) for word in (*values.values(), *arguments, *step.given.values())]
    real = [Path(os.path.realpath(word)) for word in words if is_there(Path(word))]
    return marked + [path.relative_to(ground.root).as_posix() for path in real if path.is_relative_to(ground.root)]


def _bind(text: str, ground: PlanningContext, *, after: bool) -> BoundStep:
    request = preprocess(Message(text=text, language=ground.context.language), ground.files, ground.context.now)
    meant = replace(request, need=_HANDED.sub(" ", request.need)) if after else request
    intent = understand_locally(meant, Session(id=""), ground.router)
    decision = decide(intent, request, ground.catalogue)
    offered: tuple[str, ...] = ()
    if isinstance(decision.result, NeedClarification) and intent.retrieval and intent.retrieval.candidates:
        best, others = intent.retrieval.candidates[0], intent.retrieval.candidates[1:2]
        ahead = not others or others[0].confidence <= best.confidence * BEHIND
        # The person sees the plan before anything runs
        looks = ahead and best.confidence >= NAMED and asks_to_look(text)
        fits, offered = looks or best.confidence >= PLANNED or _says_name(text, best.name), decision.result.options
        decision = replace(
            decision, result=Skills(names=(best.name,)) if fits else Direct(), entity=best.name if fits else None
        )
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
    )


def _says_name(text: str, name: str) -> bool:
    """Whether all words of a name of several words are said: `polish the manuscript` for polish-manuscript."""
    words = fold(name).split("-")
    return len(words) > 1 and set(words) <= set(_WORD.findall(fold(text)))


def missing_params(step: BoundStep, ground: PlanningContext) -> NeedClarification | None:
    """The missing values of a step; text and files may come from the step before it."""
    if step.agent != "skills":
        asked = plan(replace(step.decision, result=step.result), step.request, ground.catalogue, ground.context)
        return replace(asked, target=step.skill) if isinstance(asked, NeedClarification) else None
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
    held = _held(step, replace(step.request, answers=(answer,)), ground)
    seen = _held(step, replace(step.request, need=answer, answers=()), ground)  # an address is recognised by its form
    got = {spec.name: held.values[spec.name] for spec in missing if spec not in held.missing}
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
        said = ground.router.recognise(step.text)
        known = said.skills if isinstance(said, Lifecycle) else ()
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
    held = _held(step, step.request, ground)
    handed = _FROM_BEFORE if step.after else frozenset()
    return [spec for spec in held.missing if spec.validation not in handed and spec.name not in step.given]


def _held(step: BoundStep, request: PreprocessingResult, ground: PlanningContext) -> Parameters:
    skill = ground.catalogue.find(step.skill)
    arguments = step.result.arguments if isinstance(step.result, Skills) else ()
    specs = skill.required_params if skill else ()
    return parameters(specs, arguments, request, named=step.decision.tier != "retrieval")

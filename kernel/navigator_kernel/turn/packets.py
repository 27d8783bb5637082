"""Builds complete packets, or one question that lists all missing parameters (PKT-1..10, SEN-2, X-10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from navigator_kernel.language.parameters import Parameters, is_there, meant, parameters
from navigator_kernel.language.targets import MOST, too_many
from navigator_kernel.language.wording import APART, say
from navigator_kernel.text import Language, in_one_language
from navigator_kernel.values.packet import Constraints, Context, Packet, Params, ReturnSpec, TaskSpec
from navigator_kernel.values.plan import DispatchPlan, DispatchStep
from navigator_kernel.values.request import ASKED_BY_SERVER, PreprocessingResult
from navigator_kernel.values.resource import PATHS, ParamSpec, SkillDef
from navigator_kernel.values.route import (
    Direct,
    Lifecycle,
    Mcp,
    NeedClarification,
    RouteDecision,
    Script,
    Shell,
    Skills,
    Unknown,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from navigator_kernel.ports import Catalogue
    from navigator_kernel.values.context import TurnContext

SKILL_LIMIT = 90.0  # seconds (AGT-8)
_AND = frozenset({"and", "和", "与", ",", "、"})


def plan(
    decision: RouteDecision, request: PreprocessingResult, catalogue: Catalogue, order: TurnContext
) -> DispatchPlan | NeedClarification | Unknown:
    """Builds the plan, empty if the kernel answers itself. Nothing is dispatched while a value is missing (PKT-10), or
    if the message names a file that the skill cannot use: then the result says so."""
    match decision.result:
        case Skills() as skills:
            return _skills(skills, decision, request, catalogue, order)
        case Lifecycle() as lifecycle:
            return _lifecycle(lifecycle, request, order)
        case Script(name=name, args=args):
            return _one(_packet("worker", "run", name, request, order, {"script": name, "args": list(args)}))
        case Shell(command=command):
            return _one(_packet("worker", "shell", command, request, order, {"command": command}))
        case Mcp() as mcp:
            missing = tuple(
                name
                for name, absent in (
                    ("server", not mcp.server),
                    ("uri", mcp.operation == "read" and not mcp.uri),
                    ("tool", mcp.operation == "call" and not mcp.tool),
                    ("prompt", mcp.operation == "prompt" and not mcp.tool),
                )
                if absent
            )
            if missing:
                hint = f"{', '.join(missing)} ({', '.join(order.servers)})" if order.servers else ", ".join(missing)
                return NeedClarification(question=say("ask.mcp", order.language, what=hint), missing=missing)
            required: dict[str, Any] = {"server": mcp.server}
            required |= {"uri": mcp.uri} if mcp.uri else {}
            kind = "prompt" if mcp.operation == "prompt" else "tool"
            required |= {kind: mcp.tool, "args": dict(mcp.args)} if mcp.tool else {}
            if request.target.startswith(ASKED_BY_SERVER):
                required["said"] = list(request.answers)
            return _one(_packet("mcp", mcp.operation, mcp.uri or mcp.tool or mcp.server, request, order, required))
        case Direct(topic="") if order.has_model:
            memory = [memory.text for memory in order.memories]
            optional: dict[str, Any] = {"request": _cleaned(request) or request.need}
            files = [str(file.path) for file in request.files if not file.problem]
            optional |= ({"memory": memory} if memory else {}) | ({"files": files} if files else {})
            optional |= {"skills": list(request.likely)} if request.likely else {}
            return _one(_packet("kernel", "answer", "direct", request, order, {}, optional))
        case _:
            return DispatchPlan(steps=())


def _skills(
    skills: Skills, decision: RouteDecision, request: PreprocessingResult, catalogue: Catalogue, order: TurnContext
) -> DispatchPlan | NeedClarification | Unknown:
    steps: list[DispatchStep] = []
    for name in skills.names:
        skill = _resource(name, catalogue)
        specs = skill.required_params if skill else ()
        alone = len(skills.names) == 1
        subjects = one_subject_each(specs, skills.arguments, request) if alone else [(skills.arguments, request)]
        if len(subjects) > MOST:
            return Unknown(what="file", name=too_many(" ".join(skills.arguments), len(subjects)), refused=True)
        for arguments, subject in subjects:
            given = parameters(specs, arguments, subject, named=decision.tier != "retrieval")
            if (stops := unusable(given, order.language)) is not None:
                return stops
            # Whether a model works on the skill, and asks for missing values itself
            if given.missing and not (order.has_model and skill is not None and skill.kind == "B"):
                what = asked_values(given.missing, order.language)  # one question for all, in the skill's own words
                optional = tuple(spec.name for spec in specs if not spec.required)
                question = say("ask.missing", order.language, skill=name, what=what)
                missing = tuple(spec.name for spec in given.missing)
                return NeedClarification(question=question, missing=missing, optional=optional)
            if (
                request.before
                and request.way != "again"
                and given.values == request.before
                and skill
                and skill.kind == "A"
            ):
                question = say("ask.other", order.language, text=request.original.strip(), skill=name)
                return NeedClarification(question=question)
            at = len(steps)
            # The arguments; for a prompt as the person wrote them behind the name, with quotes and blanks
            command = subject.commands[0] if subject.commands and (skill is None or skill.kind == "B") else None
            written = command.rest if command is not None and command.args == tuple(arguments) else " ".join(arguments)
            packets = [_skill_packet(name, skill, given, subject, order, at, written=written)]
            for other in () if skills.direct_call else decision.candidates:  # those that lack no value (CAN-1)
                candidate = _resource(other, catalogue)
                its = parameters(candidate.required_params if candidate else (), (), subject, named=False)
                if not its.missing and unusable(its, order.language) is None:
                    packets.append(_skill_packet(other, candidate, its, subject, order, at))
            steps.append(DispatchStep(packets=tuple(packets)))
            used = set(given.values.values())  # what one of several skills works on is not the next one's
            rest = tuple(target for target in request.targets if not used & {str(target.path), target.content})
            request = request if alone else replace(request, targets=rest or request.targets)
    return DispatchPlan(steps=tuple(steps))


def one_subject_each(
    specs: Sequence[ParamSpec], arguments: Sequence[str], request: PreprocessingResult
) -> Sequence[tuple[Sequence[str], PreprocessingResult]]:
    """The arguments and the request, once for each of several files or folders that they name, if the skill takes
    one."""
    paths = [spec for spec in specs if spec.validation in PATHS]
    if not paths or (len(paths) > 1 and len({spec.instead_of or spec.name for spec in paths}) > 1):
        return [(arguments, request)]  # two that are not alternatives
    if arguments:
        words: list[str] = []
        for word in arguments:  # a pattern such as `docs/*.md` means the files that match it
            is_pattern = "*" in word and "**" not in word and ".." not in word and not word.startswith(("/", "-"))
            matches = sorted(request.base.glob(word)) if is_pattern else ()
            words += [p.relative_to(request.base).as_posix() for p in matches if p.is_file()] or [word]
        places = [word for word in words if is_there(request.base / word)]
        others = [word for word in words if word not in places and word not in _AND]
        if not all(word.startswith("--") or "=" in word or word.isdecimal() for word in others):
            return [(arguments, request)]  # the words are a text
        return [((word, *others), request) for word in places] or [(arguments, request)]
    named = [target for target in meant(request, specs) if target.usable and not target.loose]
    kinds = {spec.validation for spec in paths}
    fitting = [
        subject
        for subject in named
        if not kinds.isdisjoint({"path_exists", "folder_exists" if subject.folder else "file_exists"})
        if not any(subject.path in other.path.parents for other in named)
    ]
    files = [file for file in request.files if file.usable]
    if len(fitting) + len(files) < 2:
        return [(arguments, request)]
    rest = [target for target in request.targets if target not in fitting]
    by_mark = [replace(request, files=(file,), targets=tuple(rest)) for file in files]
    by_name = [replace(request, files=(), targets=(subject, *rest)) for subject in fitting]
    return [(arguments, subject) for subject in (*by_mark, *by_name)]


def unusable(given: Parameters, language: Language) -> NeedClarification | Unknown | None:
    """What is wrong with a file that the message names: it does not exist, may not be read, or may be several."""
    if (file := given.problem) is not None:
        return Unknown(what="file", name=file.problem, suggestions=file.near, hint=file.hint, refused=file.refused)
    if given.unclear is None:
        return None
    listed = "  ".join(f"{at} {path}" for at, path in enumerate(given.unclear.choices, 1))
    question = say("ask.which_file", language, name=given.unclear.written, options=listed)
    return NeedClarification(question=question, missing=("file",))


def _resource(name: str, catalogue: Catalogue) -> SkillDef | None:
    return catalogue.find(name) or catalogue.find(name, "command") or catalogue.find(name, "prompt")


def asked_values(missing: Sequence[ParamSpec], language: Language) -> str:
    """The missing values in the skill's own words, in the language of the message."""
    return APART[language].join(in_one_language(spec.prompt or spec.name, language) for spec in missing)


def _skill_packet(
    name: str,
    skill: SkillDef | None,
    given: Parameters,
    request: PreprocessingResult,
    order: TurnContext,
    at: int,
    *,
    written: str = "",
) -> Packet:
    """`written` are the person's own words to the skill; without them, the message is used, and without that its name
    (PRE-20)."""
    words = written if request.commands else ""  # without a command, they are part of the message
    apart = _apart(request) if words else ""
    message = apart.join(part for part in (words, _cleaned(request)) if part) or name
    prompt = say("prompt.skill", order.language, skill=name, args=written).strip()
    optional: dict[str, Any] = {"prompt": prompt, "request": message, "arguments": list(given.positional)}
    handed = request.handed
    files = (*request.files, *request.targets, *(handed.files if handed else ()))
    optional["files"] = [str(file.path) for file in files if file.usable]
    optional |= {"previous": str(handed.report)} if handed else {}
    if skill is None or skill.kind == "B":
        optional["request"] = message
        if handed and handed.text:  # the output of the previous step, marked as such
            optional["request"] += f'\n\n<step number="{handed.step}">\n{handed.text}\n</step>'
        optional |= {"written": message if words else written} if written and not given.values else {}
        optional |= {"memory": [memory.text for memory in order.memories]} if order.memories else {}
    limit = min(skill.timeout or order.timeout, SKILL_LIMIT) if skill else order.timeout
    kind = f"{skill.type}:{skill.name}" if skill else f"skill:{name}"
    required = {**{spec.name: "" for spec in given.missing}, **given.values}
    return _packet("skills", "run", kind, request, order, required, optional, at=at, timeout=limit)


def _apart(request: PreprocessingResult) -> str:
    """What stands between the words behind a command and the next lines, where the message begins with the command."""
    text, first = request.original.lstrip(), request.commands[0].original_string if request.commands else ""
    after = text.removeprefix(first) if first and text.startswith(first) and request.cleaned_content else ""
    return after[: len(after) - len(after.lstrip())] or "\n\n"


def _cleaned(request: PreprocessingResult) -> str:
    """The message without instructions, or the text of files that only arguments named."""
    if request.cleaned_content or not request.files:
        return request.cleaned_content
    return "\n\n".join(
        f'<file path="{file.written}">\n{file.content}\n</file>' for file in request.files if file.content
    )


def _lifecycle(action: Lifecycle, request: PreprocessingResult, order: TurnContext) -> DispatchPlan | NeedClarification:
    """Sends a skill command to the worker, or asks for its missing object (AGT-6, PKT-9)."""
    needed: Mapping[str, tuple[str, Any]] = {
        "install": ("source", action.source),
        "info": ("source", action.source),
        "search": ("query", action.query),
        **dict.fromkeys(("uninstall", "enable", "disable"), ("name", list(action.skills))),
    }
    required: dict[str, Any] = {}
    if action.operation in needed:
        name, value = needed[action.operation]
        if not value:
            what = ", ".join(action.skills) or "skill"
            question = say("ask.source", order.language, skills=what) if name == "source" else None
            text = question or say("ask.missing", order.language, skill=f"skill {action.operation}", what=name)
            return NeedClarification(question=text, missing=(name,))
        required[name] = value
    if action.operation == "install":
        required["skill"] = list(action.skills)
    if action.operation in {"update", "outdated", "verify"}:
        required["name"] = list(action.skills)
    target = action.source or " ".join(action.skills) or action.query or "skills"
    return _one(_packet("worker", f"skill.{action.operation}", target, request, order, required))


def _packet(
    agent: str,
    operation: str,
    target: str,
    request: PreprocessingResult,
    order: TurnContext,
    required: Mapping[str, Any],
    optional: Mapping[str, Any] | None = None,
    *,
    at: int = 0,
    timeout: float | None = None,
) -> Packet:
    again = f"/{order.attempt}" if order.attempt > 1 else ""
    step = order.step + at
    return Packet(
        agent=agent,
        task_spec=TaskSpec(intent=request.original, operation=operation, target=target),
        params=Params(required=required, optional=optional or {}),
        constraints=Constraints(timeout=timeout or order.timeout),
        return_spec=ReturnSpec(format=order.format),
        context=Context(
            run=order.run,
            step=step,
            idempotency_key=f"{order.run}/{step}/{agent}/{target}{again}",
            language=order.language,
        ),
    )


def _one(packet: Packet) -> DispatchPlan:
    return DispatchPlan(steps=(DispatchStep(packets=(packet,)),))

"""Phase 1: asks a model which of a few skills a message needs, if retrieval is unsure (X-1, RTE-4..28)."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from navigator_kernel.errors import KernelError, ModelFailed
from navigator_kernel.text import Language, clean, fold, shorten
from navigator_kernel.values.chat import Asked, ChatMessage, Completion, Tried, tried_of
from navigator_kernel.values.resource import USUAL_PRIORITY, SkillDef
from navigator_kernel.values.route import Judged, Retrieval

if TYPE_CHECKING:
    from navigator_kernel.model_ports import ChatModel
    from navigator_kernel.ports import Catalogue
    from navigator_kernel.values.request import Said

TEMPERATURE = 0.1  # RTE-14
SHORTLIST, WHOLE = 12, 64  # most skills to show, of the candidates and of the whole catalogue
DESCRIBED, RECALLED, READ = 400, 500, 4_000  # characters of a description, of an earlier turn, of a message
TURNS = 2  # turns shown before the message
LIMIT = 30.0  # seconds for an answer
TOKENS = 1_000  # tokens of an answer, including reasoning
SKILLS = 3  # most skills for one message
DOUBT = 0.2  # probability that any skill is wanted, below which no model is asked

Mode = Literal["cascade", "llm_only"]


class ModelJudge(Struct):
    """Implements `model_ports.Judge`."""

    chosen: Callable[[], ChatModel]  # returns the model; opened on demand
    catalogue: Catalogue
    mode: Mode = "cascade"
    _shaped: bool = field(default=True)

    def is_wanted(self, found: Retrieval) -> bool:
        """Whether to ask a model: unless the mode is `llm_only`, a sure match and small talk need none."""
        return self.mode == "llm_only" or (found.band != "route" and found.wanted >= DOUBT)

    async def judge(self, text: str, found: Retrieval, said: Sequence[Said], language: Language) -> Judged:
        """Asks the model. Every failure is `direct` with its reason: a model's fault must not stop a message (RTE-11,
        RTE-12)."""
        try:
            offered = self._offered(found)
            messages = (
                ChatMessage(role="system", text=prompt(offered, language)),
                *(ChatMessage(role=one.role, text=shorten(one.text, RECALLED)) for one in said[-2 * TURNS :]),
                ChatMessage(role="user", text=shorten(text, READ)),
            )
            done = await self._answer(self.chosen(), messages, shape([skill.name for skill in offered]))
        except KernelError as error:
            logging.getLogger("navigator").warning("no model chose: %s", error.message)
            used = tuple(one for one in tried_of(error.data) if one.spent.requests)
            kind, model = str(error.data.get("kind", error.code)), str(error.data.get("model", ""))
            return Judged(failure=kind, model=model, used=used)
        judged = parsed(done.message.text, [skill.name for skill in offered])
        used = (*(one for one in done.tried if one.spent.requests), Tried(model=done.model, spent=done.spent))
        return replace(judged, model=done.model, used=used)

    async def _answer(self, model: ChatModel, messages: tuple[ChatMessage, ...], schema: dict[str, Any]) -> Completion:
        """The model's answer; a server that rejects shapes is asked without one from then on."""
        if self._shaped:
            try:
                return await model.complete(_request(messages, schema))
            except ModelFailed as error:
                if error.data.get("kind") != "rejected":
                    raise
                self._shaped = False
        return await model.complete(_request(messages, None))

    def _offered(self, found: Retrieval) -> Sequence[SkillDef]:
        if self.mode == "llm_only":
            every = [skill for skill in self.catalogue.list_resources() if skill.type == "skill" and skill.implicit]
            if len(every) <= WHOLE:
                return sorted(every, key=lambda skill: (-skill.priority, skill.name))
        names = [candidate.name for candidate in found.candidates[:SHORTLIST]]
        return [skill for name in names if (skill := self.catalogue.find(name)) is not None]


def shape(names: Sequence[str]) -> dict[str, Any]:
    """The JSON schema of an answer, for servers that can enforce one: only skills in `names`."""
    named = {"type": "string", "enum": list(names)} if names else {"type": "string"}
    properties = {
        "skills": {"type": "array", "items": named, "maxItems": SKILLS},
        "direct": {"type": "boolean"},
        "question": {"type": "string", "maxLength": RECALLED},
    }
    return {"type": "object", "properties": properties, "required": ["skills", "direct"]}


def _request(messages: tuple[ChatMessage, ...], schema: dict[str, Any] | None) -> Asked:
    """A request without tools, since some models would call them (RTE-15)."""
    return Asked(messages=messages, temperature=TEMPERATURE, shape=schema, tokens=TOKENS, limit=LIMIT)


def prompt(skills: Sequence[SkillDef], language: Language) -> str:
    """The system prompt: the role, the prohibitions, the list, the three forms and how to judge (RTE-4)."""
    shown = [
        {"name": skill.name, "description": _line(skill.description, DESCRIBED), "facts": _facts(skill)}
        for skill in skills
    ]
    text: str = _template(language).render(skills=shown, language="中文" if language == "zh" else "English")
    return f"{text.strip()}\n"


def parsed(text: str, offered: Sequence[str]) -> Judged:
    """The first JSON object in `text` that is one of the three forms; skills win over `direct` (RTE-9), names that were
    not offered do not count (RTE-27), and what cannot be decided is direct (RTE-13)."""
    by_fold = {fold(name): name for name in offered}
    for answer in _objects(text):
        named = answer.get("skills")
        names = [named] if isinstance(named, str) else named if isinstance(named, list) else []
        known = [by_fold[fold(name)] for name in names if isinstance(name, str) and fold(name) in by_fold]
        if known:
            return Judged(skills=tuple(dict.fromkeys(known)))
        question = answer.get("question")
        if not names and answer.get("direct") is not True and isinstance(question, str) and question.strip():
            return Judged(question=clean(question.strip()))
        return Judged(failure="unknown_skill" if names else "")
    return Judged(failure="unreadable")


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Each JSON object in `text` that has one of the three keys; prose and fences are skipped."""
    decoder, at = json.JSONDecoder(), text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            if isinstance(value, dict) and value.keys() & {"skills", "direct", "question"}:
                yield value
        at = text.find("{", end)


def _facts(skill: SkillDef) -> str:
    """INT-8: the skill's tags, two of its examples (RTE-40), and its priority if it is not the usual one."""
    facts = [f"tags: {_line(', '.join(skill.tags[:8]), DESCRIBED)}"] if skill.tags else []
    facts += [f"for example: {_line(' / '.join(skill.examples[:2]), DESCRIBED)}"] if skill.examples else []
    facts += [f"priority: {skill.priority}"] if skill.priority != USUAL_PRIORITY else []
    return f" [{'; '.join(facts)}]" if facts else ""


def _line(text: str, most: int) -> str:
    return shorten(" ".join(clean(text, lines=False).split()), most)


@cache
def _template(language: Language) -> Any:
    from jinja2.sandbox import SandboxedEnvironment

    text = (Path(__file__).parent / "prompts" / f"phase_one.{language}.md").read_text(encoding="utf-8")
    return SandboxedEnvironment(autoescape=False, keep_trailing_newline=True).from_string(text)

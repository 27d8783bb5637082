"""Shows a turn while it runs: the text, skills, tools, and usage."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from typing import TYPE_CHECKING

from msgspec import Struct, field

from navigator_kernel.cli.output import draft, is_formatted, model_text, note
from navigator_kernel.events import (
    Event,
    Progress,
    RunContent,
    SkillActivated,
    StepStarted,
    ToolCallStarted,
    UICommand,
    Usage,
)
from navigator_kernel.language.wording import say
from navigator_kernel.text import clean, shorten
from navigator_kernel.values.chat import Spent, spent_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.live import Live

    from navigator_kernel.text import Language

ARGUMENTS = 80  # characters of a call's arguments
NO_SKILL = "(no skill)"


class Shown(Struct):
    """Listens to the turns of one conversation; with `quiet` it counts their usage and shows nothing."""

    quiet: bool = False
    streamed: bool = False  # whether text of this turn is on the screen
    _text: str = ""  # the paragraph that still grows
    _draft: Live | None = None  # shows it
    _open: bool = False  # whether its line is unfinished
    spent: defaultdict[str, Spent] = field(default_factory=lambda: defaultdict(Spent))  # of the conversation, by skill

    def __call__(self, event: Event) -> None:
        if isinstance(event.body, Usage):
            self._count(event.body)
        if self.quiet:
            return
        match event.body:
            case RunContent(text=text) if event.step is not None and sys.stdout.isatty():
                self.streamed = True
                self._add(text)
            case SkillActivated(skill=skill):
                self._note(f"… {skill}")
            case StepStarted(agent=agent) if agent not in {"skills", "kernel"}:
                self._note(f"… {agent}")
            case ToolCallStarted(tool=tool, args=args) if (
                "." not in tool
            ):  # a model's call; the kernel's own calls contain an agent's name
                self._note(f"… {tool} {shorten(json.dumps(dict(args), ensure_ascii=False), ARGUMENTS)}")
            case Progress(text=text):
                self._note(text)
            case UICommand(type="toast", payload=payload):
                self._note(str(payload.get("message", "")))

    def end(self) -> bool:
        """Whether the answer was streamed; resets the state for the next turn."""
        self._show(len(self._text))
        streamed, self.streamed = self.streamed, False
        return streamed

    def costs(self, language: Language) -> Iterator[str]:
        """A line for each skill, and one for all."""
        total = Spent()
        for name, spent in sorted(self.spent.items()):
            total += spent
            yield _line(name, spent, language)
        yield _line(say("cost.all", language), total, language)

    def _note(self, text: str) -> None:
        if sys.stderr.isatty():
            self._show(len(self._text))
            note(clean(text, lines=False))

    def _add(self, text: str) -> None:
        """Shows Markdown, of which the last paragraph still grows, or plain text where that is not possible."""
        if is_formatted():
            self._text += text
            if end := _end_of_paragraph(self._text):
                self._show(end)
            if self._text.strip():
                self._draft = draft(self._text, self._draft)
            return
        sys.stdout.write(clean(text))
        sys.stdout.flush()
        self._open = True

    def _show(self, end: int) -> None:
        if self._open:
            sys.stdout.write("\n")
            sys.stdout.flush()
            self._open = False
        if self._draft is not None:
            self._draft.stop()
            self._draft = None
        text, self._text = self._text[:end], self._text[end:]
        if text.strip():
            model_text(text)

    def _count(self, usage: Usage) -> None:
        self.spent[usage.skill or NO_SKILL] += spent_by(usage)


def _end_of_paragraph(text: str) -> int:
    """Where the last whole paragraph ends, 0 if there is none; a block of code is one paragraph."""
    end = fences = at = 0
    for line in text.splitlines(keepends=True):
        at += len(line)
        fences += line.lstrip().startswith("```")
        if not line.strip() and line.endswith("\n") and not fences % 2:
            end = at
    return end


def waits(event: Event) -> None:
    """Shows a wait on a terminal."""
    if isinstance(event.body, Progress) and sys.stderr.isatty():
        note(clean(event.body.text, lines=False))


def _line(name: str, spent: Spent, language: Language) -> str:
    cost = f"${spent.cost:.4f}" if spent.priced else say("usage.unpriced", language)
    unknown = say("cost.unknown", language, number=spent.unknown) if spent.unknown else ""
    tokens = {"input": spent.input, "cached": spent.cached, "output": spent.output}
    return say("cost.line", language, name=name, requests=spent.requests, **tokens, cost=cost) + unknown

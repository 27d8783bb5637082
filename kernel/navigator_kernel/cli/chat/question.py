"""A question that is open on a terminal: its line of letters, their legend, and the message that a typed line sends."""

from __future__ import annotations

import shlex
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from navigator_kernel.cli.output import is_attended, note, padded, width
from navigator_kernel.language.wording import object_of, say
from navigator_kernel.text import Language
from navigator_kernel.turn.answers import asks_for_model, is_interrupted
from navigator_kernel.values.job import is_lasting
from navigator_kernel.values.request import PendingApproval, Session
from navigator_kernel.values.rights import right_of
from navigator_kernel.values.work import is_unfinished
from navigator_kernel.values.workflow import PLAN, REPEAT

Kind = Literal["call", "effect", "plan", "again", "interrupted", "one", "several", "rest", "value"]

# The letters of each kind of question, in the order in which they are shown
_LETTERS: Mapping[Kind, str] = {
    "call": "yane", "effect": "yan", "plan": "yne", "again": "yn", "interrupted": "yn",
    "one": "yn", "several": "1n", "rest": "yn", "value": "",
}  # fmt: skip
_NAMES = {"y": "yes", "a": "session", "n": "no", "e": "edit"}
_SESSION = {"en": "for this session", "zh": "本次会话"}  # in words: the letter alone answers only a model's call
_HELP = frozenset({"?", "help", "帮助"})


class OpenQuestion(Struct, frozen=True, kw_only=True):
    """`letters` are those that answer it, without `?`; `count` is the number of skills to choose from, and `right` the
    word of the right that `a` gives, if it gives one."""

    kind: Kind
    letters: str
    language: Language
    count: int = 0
    right: str = ""

    @property
    def line(self) -> str:
        """The line below the question."""
        if self.kind == "value":
            return say("letter.later", self.language)
        names = {**_NAMES, "n": "none"} if self.kind == "several" else _NAMES
        words = [f"1-{self.count}" if at == "1" else say(f"letter.{names[at]}", self.language) for at in self.letters]
        return "  ".join([*words, "[?]"])

    @property
    def legend(self) -> list[str]:
        """A line for each answer."""
        rows = []
        for letter in self.letters:
            key = f"legend.{self.kind}.{letter}"
            if letter == "a":
                key = f"legend.right.{self.right.partition(':')[0]}" if self.right else "legend.session"
            text = say(key, self.language, what=object_of(self.right, self.language))
            rows.append((f"1-{self.count}" if letter == "1" else letter, text))
        if self.kind == "call":
            rows.append(("取消" if self.language == "zh" else "cancel", say("legend.cancel", self.language)))
        rows.append(("Ctrl-D", say("legend.later", self.language)))
        columns = max(width(name) for name, _ in rows)
        lines = [f"{padded(name, columns)}  {text}" for name, text in rows]
        return [say("legend.value", self.language), *lines] if self.kind == "value" else lines

    def message(self, typed: str, usual: str = "") -> str:
        """The message that answers, `usual` for the Enter key alone. Empty if the person has to be asked again: they
        typed nothing, asked what the letters mean (the legend is printed), or typed a letter that is not offered.

        EOFError or KeyboardInterrupt if the person leaves where a reason is asked for.
        """
        word = unicodedata.normalize("NFKC", typed).strip().lower()
        if word in _HELP:
            for line in self.legend:
                note(line)
            return ""
        if not word:
            return usual
        if word == "a" and "a" in self.letters and self.kind != "call":
            return _SESSION[self.language]
        if word == "e" and "e" in self.letters:
            # `e` with the person's words: a reason against a call, which may be empty, or the change of a plan
            words = read_line(say("notice.reason" if self.kind == "call" else "notice.change", self.language))
            return f"e {words}" if words.strip() or self.kind == "call" else ""
        is_unknown = word in {"y", "a", "n", "e"} and word not in self.letters and self.kind in _STRICT
        return "" if is_unknown else typed

    def language_of(self, answer: str) -> Language | None:
        """The language in which to reply: letters and numbers have none of their own, so that of the question."""
        return self.language if answer.isascii() else None

    def read(self) -> str | None:
        """Asks until there is an answer and returns it; None at the end of input. KeyboardInterrupt for Ctrl-C."""
        while True:
            note(self.line)
            try:
                if answer := self.message(read_line("> "), "y" if self.kind == "one" else ""):
                    return answer
            except EOFError:
                sys.stderr.write("\n")
                return None


_STRICT = frozenset({"call", "effect", "plan", "again", "interrupted"})


def open_question(session: Session, language: Language) -> OpenQuestion | None:
    """What `session` waits for; None if nothing."""
    aside = session.question is not None and session.question.aside
    if session.approval is not None and (session.question is None or aside):
        kind, lasts = _kind_of(session.approval), bool(session.approval.wider) or is_lasting(session.approval.subject)
        letters = _LETTERS[kind] if lasts else _LETTERS[kind].replace("a", "")
        right = right_of(session.approval.wider or session.approval.subject)
        word = "" if right is None else right.word
        return OpenQuestion(kind=kind, letters=letters, language=language, right=word)
    if session.question is not None:
        count = len(session.question.options)
        if count == 1:
            kind = "one"
        elif count:
            kind = "several"
        else:
            kind = "rest" if session.question.rest else "value"
        return OpenQuestion(kind=kind, letters=_LETTERS[kind], language=language, count=count)
    return None


def waiting_question(session: Session) -> str:
    """The question that `session` waits with, or empty; that of interrupted work is said when the session is opened."""
    question, approval = session.question, session.approval
    if question is not None and (not question.aside or approval is None):
        return question.question
    return "" if approval is None or is_interrupted(approval) else approval.question


def _kind_of(approval: PendingApproval) -> Kind:
    if approval.workflow and approval.subject == PLAN:
        return "plan"
    if approval.workflow and (approval.subject == REPEAT or approval.subject.startswith("retry:")):
        return "again"
    if is_interrupted(approval):
        return "interrupted"
    return "call" if asks_for_model(approval) else "effect"


def can_answer() -> bool:
    """Whether a person reads the question and can type an answer: all three streams are a terminal."""
    return is_attended() and sys.stdin.isatty()


def read_line(prompt: str, offers: Callable[[str], list[str]] | None = None) -> str:
    """A line that the person types, with editing and history; Tab completes a word to one of its `offers`."""
    import readline

    matches: list[str] = []

    def complete(word: str, at: int) -> str | None:
        """The offer number `at`; readline asks for one after the other, so they are looked up once."""
        if at == 0 and offers is not None:
            matches[:] = offers(word)
        return matches[at] if at < len(matches) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" \t\n")
    readline.parse_and_bind("tab: complete")
    return input(prompt)


def command_for(session: Session, root: str | None = None, rights: Sequence[str] = ()) -> str:
    """The command that answers the open question from a shell, or goes on with unfinished work. `root` is the project's
    folder if it was named, `rights` are the options about rights that were given."""
    question = session.question
    if question is None and session.approval is None and is_unfinished(session):
        answer = "continue"
    elif question is None or question.rest or (question.aside and session.approval is not None):
        answer = "yes"
    else:
        answer = {0: '"…"', 1: "yes"}.get(len(question.options), "1")
    place = f" --root {shlex.quote(root)}" if root else ""
    return f"navigator{place} ask {shlex.join(['--session', session.id, *rights])} {answer}"

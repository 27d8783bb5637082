"""A message, its parsed parts, and its session."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct, field

from navigator_kernel.digests import blake2b
from navigator_kernel.text import Language
from navigator_kernel.values.packet import Format, Packet

# Files that a step writes for a person to read; others may be its own notes
DOCUMENTS = frozenset({".md", ".txt", ".rst", ".csv", ".tsv", ".json", ".yaml", ".yml", ".html", ".xml", ".tex"})

UNREAD = frozenset({"too-large", "not-utf8"})  # reasons for which only the text of a file cannot be used

InstructionType = Literal["skill", "shell", "subagent", "workflow"]
# How a message is to be understood: its skill was chosen by the person, none is wanted, it continues the run before, or
# it asks about that run, whose skill is not run again then
Way = Literal["", "chosen", "plain", "follow_up", "again", "about"]
CONTINUES: frozenset[Way] = frozenset({"follow_up", "again"})  # with the values of the run before


class Message(Struct, frozen=True, kw_only=True):
    """A message from a person or a host. `consent` says that the effects it asks for are agreed to (`--yes`); `answers`
    are the parts of a merged message that answer earlier questions, `target` the skill that asked last (X-11) or that
    the person chose, `way` says how it was found; `skill` gets every message that answers nothing; `attended` says that
    a person reads what is beside the answer (X-44), `shows_prompt` that a skill's prompt is wanted instead of its
    result; `allow` are words of rights that the person gives for this message (`--allow`)."""

    text: str
    interactive: bool = False
    consent: bool = False
    format: Format = "detail"
    language: Language | None = None
    answers: tuple[str, ...] = ()
    target: str = ""
    way: Way = ""
    skill: str = ""
    attended: bool = True
    shows_prompt: bool = False
    allow: tuple[str, ...] = ()


class CommandInstruction(Struct, frozen=True, kw_only=True):
    """An instruction (PRE-4). `args` are the unquoted words after the name, `rest` the same text as it was written, but
    for the marks of files, `original_string` the exact text."""

    name: str
    args: tuple[str, ...]
    type: InstructionType
    original_string: str
    rest: str = ""


class FileReference(Struct, frozen=True, kw_only=True):
    """A file or folder that the message names, as `@path` or in plain words (PRE-8, PRE-9).

    `problem` says why it cannot be used, `refused` that it exists but must not be read, `hint` what can be done.
    `unread` says why a usable file has no `content`: it is too large, or not UTF-8 text. Only what is named in plain
    words has `choices`, the paths of several that may be meant, `near`, names that are like that of one that does not
    exist, and `loose`, which says that the words describe it and may mean something else. `left_out` is a file, folder
    or pattern that the message excludes.
    """

    written: str
    path: Path
    content: str = ""
    problem: str = ""
    hint: str = ""
    refused: bool = False
    unread: str = ""
    folder: bool = False
    choices: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    loose: bool = False
    left_out: bool = False

    @property
    def usable(self) -> bool:
        return not self.problem and not self.choices


class Handoff(Struct, frozen=True, kw_only=True):
    """The result of the previous step: its output, its files, and its report as a JSON file."""

    step: int
    text: str
    files: tuple[FileReference, ...]
    report: Path

    @property
    def subject(self) -> str:
        """The input of the next step: the text of the only document, or the output."""
        texts = [file.content for file in self.files if file.content and file.path.suffix.lower() in DOCUMENTS]
        return texts[0] if len(texts) == 1 else self.text


class PreprocessingResult(Struct, frozen=True, kw_only=True):
    """PRE-2..5. `cleaned_content` is the message without instructions, with files expanded in place;
    `need` is the same with files as bare paths, for routing. `files` are those with a mark, `targets` what is named in
    plain words, `without` what they leave out; `people` are the authors of the project's commits, if it may be about
    them. `base` is the folder to which the arguments of a command are relative, `today` the date in ISO 8601. In a
    workflow, `handed` is the result of the previous step; `before` are the last run's values, which a message that
    continues it does not repeat; `likely` are the skills that routing found, best first."""

    original: str
    cleaned_content: str
    need: str
    commands: tuple[CommandInstruction, ...]
    files: tuple[FileReference, ...]
    should_halt_conversation: bool
    language: Language
    answers: tuple[str, ...] = ()
    target: str = ""
    way: Way = ""
    handed: Handoff | None = None
    base: Path = Path()
    targets: tuple[FileReference, ...] = ()
    people: tuple[str, ...] = ()
    without: tuple[FileReference, ...] = ()
    today: str = ""
    before: Mapping[str, str] = field(default_factory=dict)
    likely: tuple[str, ...] = ()

    @property
    def answer(self) -> str:
        """The answer to the last question."""
        return self.answers[-1] if self.answers else ""


class Sticky(Struct, frozen=True, kw_only=True):
    """The last run: the subagent that follow-ups go to (SEN-7, STK-1), its message and id, for repeating it and taking
    it back, when it ended (ISO 8601), whether a model did it, whether its answer asked something, and the values that
    the skill got."""

    agent: str
    target: str
    text: str = ""
    run: str = ""
    at: str = ""
    by_model: bool = False
    asks: bool = False
    values: Mapping[str, str] = field(default_factory=dict)


class PendingApproval(Struct, frozen=True, kw_only=True):
    """Orders that wait for approval, with the subject that it would cover. `asked_at` is in ISO 8601.

    `workflow` is the token of a run that waits instead of orders. `agreed` are the subjects that were already approved
    for these orders and are not used up: an order that stops for a second question does not ask the first one again.
    `also` are further subjects that the same approval covers, because the call needs them too. `wider` is what an
    approval for the whole session covers beside the subject, empty if nothing. `question` is the text that the person
    was asked, `steps` are the skills of a plan.
    """

    packets: tuple[Packet, ...]
    subject: str
    asked_at: str = ""
    workflow: str = ""
    agreed: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    wider: str = ""
    question: str = ""
    steps: tuple[str, ...] = ()

    @property
    def covered(self) -> tuple[str, ...]:
        """The subjects that the orders have consent to after a yes."""
        return (*self.agreed, self.subject, *self.also)


INTERRUPTED = "interrupted:"  # subject prefix of an order that a killed process left
ASKED_BY_SERVER = "mcp:"  # target prefix of an MCP server's question


class PendingQuestion(Struct, frozen=True, kw_only=True):
    """X-11: the message that was not clear enough, the question, the missing parts, and the skill it was for.

    `original` ends with the `answers` to the questions before this one; `options` are the skills to choose from,
    `rest` is the part of the message with which a yes continues; empty if a yes means nothing. With `aside` the person
    went on with something else.
    """

    original: str
    question: str
    target: str = ""
    missing: tuple[str, ...] = ()
    rounds: int = 1
    asked_at: str = ""
    answers: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    rest: str = ""
    aside: bool = False


class Said(Struct, frozen=True, kw_only=True):
    """One entry of a session's history. A question of the kernel has no entry, and the message that it was about has
    one only together with its answer (RTE-30, X-11)."""

    role: Literal["user", "assistant"]
    text: str
    run: str
    ts: str = ""


class AbsentFile(Struct, frozen=True, kw_only=True):
    """A message that named a file which does not exist, the name as written, and the only name that is nearly the
    same; else empty. The next message can give the right name."""

    message: str
    name: str
    near: str = ""


class Session(Struct, frozen=True, kw_only=True):
    """The state that one turn passes to the next. A turn returns a new session; none is changed in place.

    `failures` counts failures in a row (SAF-5), `failed` is the `mark` of the message that the last of them was for,
    `retry` are the orders that it left undone (SAF-7), `grants` is what the person agreed to for the whole session.
    `history` has the latest messages, read for this turn; `private` says that it may contain the person's files or
    data: if set, it stays set. `talks` says that a model answered the last message without a skill. `written` are the
    files in workspaces that its replies named, newest first, as absolute paths.
    """

    id: str
    turn: int = 0
    notice_shown: bool = False
    sticky: Sticky | None = None
    approval: PendingApproval | None = None
    question: PendingQuestion | None = None
    absent: AbsentFile | None = None
    failures: int = 0
    failed: str = ""
    retry: tuple[Packet, ...] = ()
    grants: tuple[str, ...] = ()
    private: bool = False
    talks: bool = False
    written: tuple[str, ...] = ()
    history: tuple[Said, ...] = ()


def mark(text: str) -> str:
    """A digest that identifies a message; a session keeps no second copy of text that may contain a secret."""
    return blake2b(text.strip().encode("utf-8", "replace"), digest_size=16).hexdigest()

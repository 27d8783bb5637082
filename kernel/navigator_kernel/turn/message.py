"""Stage 1: extracts instructions and files from a message; runs nothing, reads nothing twice (PRE-1..24).

`/skill args`, `@@skill args`, `#workflow` and `!cmd` count at the start of a line only, `` !`cmd` `` and `@path`
anywhere; text between ``` fences is left alone, and a backslash makes any of them plain text.
"""

from __future__ import annotations

import re
import shlex
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from navigator_kernel.errors import KernelError, NotFound, Refused
from navigator_kernel.language.clauses import OF_COMMITS, without_refused
from navigator_kernel.text import language_of, lazy_compile, split_words
from navigator_kernel.values.request import (
    CONTINUES,
    UNREAD,
    CommandInstruction,
    FileReference,
    InstructionType,
    Message,
    PreprocessingResult,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from navigator_kernel.ports import FileReader

_PREFIX = lazy_compile(r"^\s*需求理解\s*[：:]\s*")
_NAME = r"[^\W_][\w-]*"
_CALL = lazy_compile(rf"^[ \t]*(?P<mark>/|@@|#)(?P<name>(?:(?<=/){_NAME}:)?{_NAME})(?=\s|$)[ \t]*+(?P<rest>.*)$")
_SHELL = lazy_compile(r"^[ \t]*!(?!\[)[ \t]*(?P<cmd>[^\s`!].*)$")
_QUOTED_SHELL = lazy_compile(r"(?:(?<=\s)|^)!`(?P<cmd>[^`\n]+)`", re.MULTILINE)
_FILE = lazy_compile(
    r"(?:(?<=[\s，。：；、（(\u4e00-\u9fff])|^)@(?:\"(?P<double>[^\"\n]+)\"|'(?P<single>[^'\n]+)'|(?P<bare>[^\s@\"'，。；：、？！（）()<>|]+))",
    re.MULTILINE,
)
# Chinese may follow a file name without a space: 统计@a.txt的字数
_BEFORE_HAN = lazy_compile(r".*?\.[A-Za-z0-9]{1,8}(?=[\u4e00-\u9fff])")
_ASSIGNED = lazy_compile(r"(?:--)?[A-Za-z_][\w-]*=")
_AT_SERVER = lazy_compile(r"[A-Za-z0-9][\w.-]*:[A-Za-z][\w+.-]*:")  # a resource of an MCP server
_ESCAPED = lazy_compile(r"(?:(?<=\s)|^)\\(?=[/!@#])", re.MULTILINE)
_FENCED = lazy_compile(r"(^[ \t]*```.*?(?:^[ \t]*```[^\n]*$|\Z))", re.DOTALL | re.MULTILINE)
_SUFFIX = lazy_compile(r"\.\w{1,8}$")
_REQUIREMENT = lazy_compile(r"(?<!\S)@(?:\"([^\"\n]+)\"|'([^'\n]+)')")
_TYPES: Mapping[str, InstructionType] = {"/": "skill", "@@": "subagent", "#": "workflow"}
_MARKS = ("/", "@", "#", "!")
MOST_FILES = 256  # files that one message can name
TOGETHER = 4 * 1024 * 1024  # characters of files in one message, each mention counted


def without_prefix(text: str) -> str:
    """The message without the prefix 需求理解： (PRE-19)."""
    return _PREFIX.sub("", text) if "需求理解" in text else text


def preprocess(message: Message, files: FileReader, now: str = "") -> PreprocessingResult:
    """Parses the message. Files that cannot be read are kept with their problem, for a later stage to report.

    With the time (`now`, in ISO 8601), what the words name without a mark is found as well, but not in the arguments of
    a command.
    """
    text = without_prefix(message.text)
    parser = _Found(files)
    lines = [parser.take_line(line) for line in text.split("\n")]
    rest = "\n".join(line for line in lines if line is not None)
    need, cleaned = parser.take_inline(rest)
    today = datetime.fromisoformat(now).astimezone().date() if now else None
    plain = without_refused(_FENCED.sub(" ", need)) if today and not parser.commands else ""
    named = files.find(plain, today, need) if today and plain.strip() else ()
    return PreprocessingResult(
        original=message.text,
        cleaned_content=cleaned,
        need=need,
        commands=tuple(parser.commands),
        files=tuple(parser.references.values()),
        should_halt_conversation=bool(parser.commands) and not need,
        answers=message.answers,
        target=message.target,
        way=message.way,
        targets=tuple(file for file in named if file.written not in parser.references and not file.left_out),
        without=tuple(file for file in named if file.left_out),
        people=tuple(files.people()) if today and (OF_COMMITS.search(plain) or message.way in CONTINUES) else (),
        today=today.isoformat() if today else "",
        language=message.language or language_of(text),
    )


class _Found(Struct):
    files: FileReader
    commands: list[CommandInstruction] = field(default_factory=list)
    references: dict[str, FileReference] = field(default_factory=dict)
    fenced: bool = False
    _read: dict[str, tuple[Path, str] | KernelError] = field(default_factory=dict)  # each name is looked up once
    _placed: set[str] = field(default_factory=set)
    _room: int = TOGETHER

    def take_line(self, line: str) -> str | None:
        """The rest of the line, or None if the whole line was an instruction."""
        if line.lstrip(" \t").startswith("```"):
            self.fenced = not self.fenced
            return line
        if self.fenced or line.lstrip(" \t")[:1] not in _MARKS:
            return line
        if (hit := _CALL.match(line)) and not (hit["mark"] == "#" and hit["name"].isdigit()):
            rest = without_prefix(hit["rest"])
            args = tuple(self._argument(word) for word in words_of(rest))
            original = hit.group().strip()
            self.commands.append(
                CommandInstruction(
                    name=hit["name"],
                    args=args,
                    type=_TYPES[hit["mark"]],
                    original_string=original,
                    rest=_unescaped(_FILE.sub(self.bare, rest)).strip(),
                )
            )
            return None
        if hit := _SHELL.match(line):
            self._shell(hit["cmd"].strip(), line.strip())
            return None
        return line

    def take_inline(self, text: str) -> tuple[str, str]:
        """The text for routing, and the same text with files inserted; neither is parsed again."""
        bare: list[str] = []
        full: list[str] = []
        for index, part in enumerate(_FENCED.split(text) if "```" in text else [text]):
            if index % 2:
                bare.append(part)
                full.append(part)
                continue
            part = _QUOTED_SHELL.sub(self._quoted, part) if "!`" in part else part
            named = "@" in part
            bare.append(_unescaped(_FILE.sub(self.bare, part) if named else part))
            at = 0  # escapes are removed only from the text between the files
            for hit in _FILE.finditer(part) if named else ():
                full += [_unescaped(part[at : hit.start()]), self.full(hit)]
                at = hit.end()
            full.append(_unescaped(part[at:]))
        return "".join(bare).strip(), "".join(full).strip()

    def bare(self, hit: re.Match[str]) -> str:
        """The path without its mark; as written if it is not a file."""
        written, tail, file = self._named(hit)
        return hit.group() if file is None else written + tail

    def full(self, hit: re.Match[str]) -> str:
        """The file's text in place of its path; if there is no room left, a file named again keeps only its path."""
        written, tail, file = self._named(hit)
        if file is None:
            return hit.group()
        again = written in self._placed
        if file.problem or file.unread or file.folder or (again and len(file.content) > self._room):
            return written + tail
        self._room -= len(file.content) if again else 0
        self._placed.add(written)
        return f'<file path="{written}">\n{file.content}\n</file>{tail}'

    def _named(self, hit: re.Match[str]) -> tuple[str, str, FileReference | None]:
        """The path, what follows it, and the file."""
        written = hit["double"] or hit["single"] or hit["bare"].rstrip(".,;:!?")
        if hit["bare"] and (short := _BEFORE_HAN.match(written)) and isinstance(self._outcome(written), NotFound):
            written = short.group()
        tail = "" if hit["bare"] is None else hit["bare"][len(written) :]
        return written, tail, self._reference(written)

    def _reference(self, written: str) -> FileReference | None:
        """The file behind `@written`; None if it neither looks like a file nor is one."""
        if written in self.references:
            return self.references[written]
        if len(self.references) > MOST_FILES or _is_text(written, outcome := self._outcome(written)):
            return None
        path, content, problem, hint, refused = Path(written), "", "", "name fewer of them, or parts", True
        if len(self.references) == MOST_FILES:
            problem = f"the message names over {MOST_FILES} files"
        elif isinstance(outcome, KernelError) and (usable := _without_text(written, outcome)) is not None:
            self.references[written] = usable
            return usable
        elif isinstance(outcome, KernelError):
            problem, hint, refused = outcome.message, outcome.hint, isinstance(outcome, Refused)
        elif len(outcome[1]) > self._room:
            problem = f"{written!r} is too much: the files of the message are over {TOGETHER // 1024**2} MiB"
        else:
            (path, content), hint, refused = outcome, "", False
            self._room -= len(content)
        file = FileReference(written=written, path=path, content=content, problem=problem, hint=hint, refused=refused)
        self.references[written] = file
        return file

    def _outcome(self, written: str) -> tuple[Path, str] | KernelError:
        if written not in self._read:
            try:
                self._read[written] = self.files.read(written)
            except KernelError as error:
                self._read[written] = error
        return self._read[written]

    def _argument(self, word: str) -> str:
        """An `@path` among the arguments, or after `name=`, becomes the bare path; its content is among the files."""
        name = _ASSIGNED.match(word)
        head = name.group() if name else ""
        hit = _FILE.fullmatch(word[len(head) :])
        return head + self.bare(hit) if hit else _unescaped(word)

    def _shell(self, command: str, original: str) -> None:
        bare = command.removeprefix("`").removesuffix("`")
        self.commands.append(
            CommandInstruction(name=bare, args=tuple(words_of(bare)[1:]), type="shell", original_string=original)
        )

    def _quoted(self, hit: re.Match[str]) -> str:
        self._shell(hit["cmd"].strip(), hit.group())
        return ""


def _is_text(written: str, outcome: tuple[Path, str] | KernelError) -> bool:
    """Whether `@written` is a name, `@ann` or `@server:uri`: not a file, and not like one. A folder without a slash may
    have the name of a person."""
    if isinstance(outcome, KernelError) and _AT_SERVER.match(written):
        return True
    if not isinstance(outcome, KernelError) or "/" in written or _SUFFIX.search(written):
        return False
    return isinstance(outcome, NotFound) or bool(outcome.data.get("folder"))


def _without_text(written: str, outcome: KernelError) -> FileReference | None:
    """A folder, or a file whose path can be used although its text cannot."""
    if outcome.data.get("folder"):
        return FileReference(written=written, path=Path(outcome.data["path"]), folder=True)
    if outcome.data.get("reason") in UNREAD:
        return FileReference(written=written, path=Path(outcome.data["path"]), unread=outcome.message)
    return None


def _unescaped(text: str) -> str:
    return _ESCAPED.sub("", text) if "\\" in text else text


def words_of(text: str) -> list[str]:
    """Words with quotes honoured, or plain words if a quote is never closed. `@"a b"` stays one word with its mark."""
    escaped = _ESCAPED.sub(r"\\\\", text)  # a backslash before a mark is the kernel's escape, not the shell's
    marked = _REQUIREMENT.sub(lambda hit: shlex.quote(f"\0@{hit.group(1) or hit.group(2)}"), escaped)
    words = split_words(marked)
    if words is None:
        return text.split()
    return [f'@"{word[2:]}"' if word.startswith("\0@") else word.replace("\0", "") for word in words]

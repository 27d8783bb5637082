"""Resources that can be chosen: skills, commands, agents and prompts, as files declare them (REG-2, FMT-1..10)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from msgspec import Struct, field

ResourceType = Literal["skill", "command", "agent", "prompt"]
Level = Literal["project", "user", "shipped", "plugin"]
SkillKind = Literal["A", "B"]  # A runs a command, B is a prompt (AGT-2, AGT-3)
Validation = Literal[
    "url_format", "not_empty", "email", "file_exists", "folder_exists", "path_exists", "since", "until", "number",
    "columns", "mentioned", "endings", "without", "group", "where", "sort", "person", "choice", "word", "none",
]  # fmt: skip
PATHS = frozenset({"file_exists", "folder_exists", "path_exists"})  # validations of paths in the project
# Validations of what the words of a message limit the work to
STATED = frozenset(get_args(Validation)) - PATHS - {"url_format", "not_empty", "email", "none"}


USUAL_PRIORITY = 50


class Diagnostic(Struct, frozen=True, kw_only=True):
    """One thing that a reader noticed. `code` is stable; an `error` forbids the use of the resource, a `note` is only
    shown to those who ask for details. `text` is the text at that place if a scanner gives it, `digest` the digest of
    everything that the finding was judged by."""

    code: str
    level: Literal["note", "warning", "error"]
    path: str
    message: str
    line: int | None = None
    text: str = ""
    digest: str = ""

    def to_dict(self) -> dict[str, Any]:
        base = {"code": self.code, "level": self.level, "path": self.path, "message": self.message}
        more = {"text": self.text, "digest": self.digest}
        return {**base, "line": self.line, **{key: held for key, held in more.items() if held}}


class ParamSpec(Struct, frozen=True, kw_only=True):
    """One entry of `required_params` (part 3, item 2). `instead_of` is the name of a required parameter that is not
    needed if this one has a value; `choices` are its only values with their words: `ERROR=error, errors; WARN=warn`."""

    name: str
    prompt: str = ""
    validation: Validation = "not_empty"
    required: bool = True
    default: str | None = None
    instead_of: str = ""
    choices: str = ""


class SkillMeta(Struct, frozen=True, kw_only=True):
    """The data of a skill in a catalogue (FMT-10)."""

    name: str
    description: str
    source: str
    content_hash: str | None = None


class SkillDef(Struct, frozen=True, kw_only=True):
    """One resource file, read.

    `sop` is the text below the metadata; `system_prompt` and `user_template` are its sections if it has them (FMT-2).
    `path` is the file, `folder` the folder that owns it (None for a one-file skill). `reads` holds `project` if its
    command reads more of the project than the files that it gets, `network` says that it uses the network, `dynamic`
    that commands in its text are to be run. `paths` are patterns of the files that it is for. `extra` keeps every key
    that the kernel does not know; `idempotent` says that running it twice is as good as once.
    """

    name: str
    description: str
    path: Path
    folder: Path | None
    type: ResourceType = "skill"
    level: Level = "project"
    sop: str = ""
    system_prompt: str = ""
    user_template: str = ""
    command: str = ""
    required_params: tuple[ParamSpec, ...] = ()
    tools: tuple[str, ...] | None = None
    allowed_tools: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    keywords_cn: tuple[str, ...] = ()
    triggers: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    category: str = ""
    backend: str = ""
    effects: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    network: bool = False
    dynamic: bool = False
    confirm: str = ""
    idempotent: bool = False
    enabled: bool = True
    priority: int = USUAL_PRIORITY
    inherit_history: bool = True
    implicit: bool = True
    timeout: float | None = None
    license: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def kind(self) -> SkillKind:
        return "A" if self.command else "B"

    @property
    def namespace(self) -> str:
        """`type:name` (REG-2)."""
        return f"{self.type}:{self.name}"

    @property
    def needed_servers(self) -> tuple[str, ...]:
        """The MCP servers that it says it cannot work without (`requires:` with `mcp: [name]`)."""
        requires = self.extra.get("requires")
        named = requires.get("mcp") if isinstance(requires, Mapping) else None
        held = [named] if isinstance(named, str) else named
        return tuple(one for one in held if isinstance(one, str) and one) if isinstance(held, list) else ()

    @property
    def meta(self) -> SkillMeta:
        return SkillMeta(name=self.name, description=self.description, source=self.level)

"""The project of a command: its settings and parts, each created on first use."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from navigator_kernel.bootstrap.places import find_root, project_state
from navigator_kernel.cli.output import note
from navigator_kernel.config.settings import Settings, load_settings
from navigator_kernel.errors import KernelError
from navigator_kernel.text import Language, clean

if TYPE_CHECKING:
    from navigator_kernel.bootstrap.project import Project
    from navigator_kernel.bootstrap.turns import Turns

CHANGING = frozenset({"tool:write", "tool:edit", "tool:deliver", "tool:run"})  # denied by `--read-only`


class App(Struct, kw_only=True, dict=True):
    """The project of one command line. `flags` override every other level of settings; `unsafe`, `read_only` and the
    rights that it may `allow` are typed for one command."""

    root_flag: str | None = None
    flags: Mapping[str, Any] = field(default_factory=dict)
    unsafe: bool = False
    read_only: bool = False
    allow: tuple[str, ...] = ()
    _open: ExitStack = field(default_factory=ExitStack)

    @property
    def rights(self) -> tuple[str, ...]:
        """The options that give a further command the rights of this one."""
        flags = (*(["--read-only"] if self.read_only else []), *(["--unsafe-no-sandbox"] if self.unsafe else []))
        return (*(["--allow", ",".join(self.allow)] if self.allow else []), *flags)

    @cached_property
    def root(self) -> Path:
        return find_root(Path.cwd(), self.root_flag)

    @cached_property
    def settings(self) -> Settings:
        loaded = load_settings(self.root, flags=self.flags)
        if self.read_only:
            loaded = replace(loaded, policy=loaded.policy._replace(deny=loaded.policy.deny | CHANGING))
        self.__dict__["settings"] = loaded  # a note asks for its language
        for text in loaded.ignored:
            note(f"warning: {text}")
        return loaded

    @cached_property
    def project(self) -> Project:
        """The project, for commands that take turns."""
        from navigator_kernel.bootstrap.project import Project

        return Project(self.root, lambda: self.settings, unsafe=self.unsafe)

    @cached_property
    def bare(self) -> Project:
        """The project without agents, for commands that take no turn."""
        from navigator_kernel.bootstrap.project import Project

        return Project(self.root, lambda: self.settings, unsafe=self.unsafe, agents=False)

    @cached_property
    def turns(self) -> Turns:
        from navigator_kernel.bootstrap.turns import Turns

        return Turns(self.project)

    def hold_sessions(self) -> None:
        """Keeps the file of conversations open until `close`, for a command that reads it and then writes it."""
        self._open.enter_context(self.project.sessions.held())

    def use_model(self, name: str) -> None:
        """Switches to the model `name`."""
        self.settings = replace(self.settings, models=self.settings.models._replace(default=name))
        self.project = self.project.with_settings(self.settings)
        self.__dict__.pop("turns", None)

    def reopen(self) -> None:
        """Opens the project again when it is next needed."""
        self.__dict__.pop("project", None)

    def settle_state(self) -> None:
        """Asks the person once whether a project that may be a copy takes over the state of the other one."""
        state = project_state(self.root)
        if state.offered:
            import click

            from navigator_kernel.bootstrap.projects import adopt
            from navigator_kernel.language.wording import say

            other = max(state.offered, key=lambda record: record.created)
            there = say("notice.still_there" if other.is_there() else "notice.gone", self.spoken)
            key = "notice.before" if other.place.path == state.place.path else "notice.copy"
            question = say(key, self.spoken, here=str(state.root), path=other.place.path, there=there)
            if click.confirm(clean(question), err=True):
                adopt(state.root, other.folder.name, replace=False)
            else:
                state.claim()

    def close(self) -> None:
        self._open.close()

    @property
    def language(self) -> Language | None:
        """The language that was set, or None to follow the message."""
        match self.settings.language:
            case "en":
                return "en"
            case "zh":
                return "zh"
            case _:
                return None

    @property
    def spoken(self) -> Language:
        """The language of a command's output if there is no message to follow: the one that was set, or the locale's,
        also where the settings cannot be read."""
        named = (os.environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
        locale = next(filter(None, named), "")  # the first that is not empty, as usual
        try:
            language = self.language
        except KernelError:
            language = None
        return language or ("zh" if locale.lower().startswith("zh") else "en")


def spoken_in(args: Sequence[str]) -> Language:
    """The language of the errors and the help of a command line, which may be wrong itself."""
    flags = {name: _flag(args, f"--{name}") for name in ("language", "root")}
    match flags["language"]:
        case "en" | "zh" as language:
            return language
        case _:
            return App(root_flag=flags["root"]).spoken


def _flag(args: Sequence[str], name: str) -> str | None:
    """The value of an option, in either of its forms; the last one counts."""
    values = [value for word, value in pairwise(args) if word == name]
    values += [word.removeprefix(f"{name}=") for word in args if word.startswith(f"{name}=")]
    return values[-1] if values else None

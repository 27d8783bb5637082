"""A skill made ready to be used: its text as a prompt, or its command as an argv (REG-2, REG-6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from navigator_kernel.skills.digest import file_digest, folder_digest
from navigator_kernel.skills.template import Filling, fill, fill_argv

if TYPE_CHECKING:
    from navigator_kernel.values.resource import SkillDef

DEFAULT_BACKEND = "default"


@dataclass(frozen=True, kw_only=True)
class SkillExecutor:
    """Implements `ports.Executor` for one skill."""

    skill: SkillDef

    @cached_property
    def digest(self) -> str:
        if self.skill.folder is None:
            return file_digest(self.skill.path)
        return folder_digest(self.skill.folder)

    def prompt(self, request: str, arguments: Sequence[str], params: Mapping[str, Any]) -> str:
        """System part, blank line, user part; without sections the whole text is the system part (FMT-4)."""
        filling = self._filling(request, arguments, params)
        user = fill(self.skill.user_template or "{request}", filling)
        system = self.skill.system_prompt or ("" if self.skill.user_template else self.skill.sop)
        uses_arguments = "$ARGUMENTS" in system
        system = fill(system, filling, braces=False, numbers=self.skill.type == "command")
        if not system:
            return user
        return system if uses_arguments and not self.skill.user_template else f"{system}\n\n{user}"

    def backend(self, asked: str = "") -> str:
        """FMT-5: what the call asks for, else what the file says, else `default`; an alias, looked up in the
        settings by what has a model (X-32)."""
        return asked or self.skill.backend or DEFAULT_BACKEND

    def argv(self, request: str, arguments: Sequence[str], params: Mapping[str, Any]) -> tuple[str, ...]:
        return fill_argv(self.skill.command, self._filling(request, arguments, params))

    def _filling(self, request: str, arguments: Sequence[str], params: Mapping[str, Any]) -> Filling:
        root = self.skill.folder or self.skill.path.parent
        raw = " ".join(arguments) if arguments else request
        return Filling(request=request, arguments=tuple(arguments), raw=raw, params=params, root=root)

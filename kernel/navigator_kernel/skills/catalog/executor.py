"""Prepares a skill for use: its text as a prompt, or its command as an argv (REG-2, REG-6)."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.errors import Damaged
from navigator_kernel.skills.catalog.listing import INNER
from navigator_kernel.skills.catalog.receipts import file_digest, folder_digest, receipt_in
from navigator_kernel.skills.formats.template import Filling, commands_in, fill, fill_argv
from navigator_kernel.text import clean
from navigator_kernel.values.job import Want, consent_subject
from navigator_kernel.values.standing import Standing, install_subject, skill_subject, standing_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from navigator_kernel.values.receipt import Receipt
    from navigator_kernel.values.resource import SkillDef

DEFAULT_BACKEND = "default"


class SkillExecutor(Struct, frozen=True, kw_only=True, dict=True):
    """Implements `ports.Executor` for one skill. `agreed` returns the subjects that the person agreed to; `shipped`
    says that its bytes are this release's."""

    skill: SkillDef
    agreed: Callable[[], Collection[str]] = tuple
    shipped: bool = False

    @cached_property
    def digest(self) -> str:
        if self.skill.folder is None:
            return file_digest(self.skill.path)
        return folder_digest(self.skill.folder, self._receipt)

    @cached_property
    def _receipt(self) -> Receipt | None:
        """The receipt, or None for a skill that was not installed or whose receipt is damaged."""
        folder = self.skill.folder
        if folder is None:
            return None
        with suppress(Damaged):
            return receipt_in(folder.parent / INNER, folder.name)
        return None

    @property
    def claimed(self) -> str:
        """Source, commit and folder as the receipt states them (X-38). A clone can bring any receipt."""
        return clean(self._receipt.origin, lines=False) if self._receipt else ""

    @cached_property
    def origin(self) -> str:
        """The claimed origin if this person's install command recorded it for these files, else empty (X-43)."""
        if not self.claimed:
            return ""
        recorded = install_subject(self.skill.name, self.claimed, self.digest) in self.agreed()
        return self.claimed if recorded else ""

    @cached_property
    def standing(self) -> Standing:
        """How far the person trusts the skill; tools, prompts, hooks and MCP answers depend on it."""
        if self.shipped:
            return "trusted"
        return standing_of(self.skill.name, self.claimed, self.digest, self.agreed())

    @property
    def was_accepted(self) -> bool:
        """Whether the person accepted the skill before its files were changed."""
        begins = (skill_subject(self.skill.name, ""), f"installed:{self.skill.name}@")
        return any(subject.startswith(begins) for subject in self.agreed()) and self.standing == "unknown"

    @property
    def is_changed(self) -> bool:
        """Whether the skill's files differ from what was installed."""
        return self._receipt is not None and self._receipt.digest != self.digest

    @cached_property
    def packages(self) -> tuple[str, ...]:
        """The packages that the command needs; Refused or NotLoadable for an invalid declaration."""
        from navigator_kernel.skills.formats.dependencies import declared  # needed only for a skill that runs

        return declared(self.skill) if self.skill.kind == "A" else ()

    @property
    def wants(self) -> tuple[Want, ...]:
        named: dict[Want, bool] = {
            "network": self.skill.network,
            "packages": bool(self.packages),
            "project": "project" in self.skill.reads,
        }
        return tuple(want for want, said in named.items() if said)

    @property
    def consent(self) -> str:
        """The subject of consent to the command."""
        return consent_subject("type_a", self.skill.name, self.digest, self.origin, self.wants)

    @property
    def dynamic(self) -> tuple[str, ...]:
        """The commands in its text whose output is inserted, if its manifest allows that (X-4)."""
        return commands_in(self.skill.sop) if self.skill.dynamic and self.skill.kind == "B" else ()

    def prompt(
        self,
        request: str,
        arguments: Sequence[str],
        params: Mapping[str, Any],
        outputs: Mapping[str, str] | None = None,
    ) -> str:
        return "\n\n".join(part for part in self.parts(request, arguments, params, outputs) if part)

    def parts(
        self,
        request: str,
        arguments: Sequence[str],
        params: Mapping[str, Any],
        outputs: Mapping[str, str] | None = None,
        written: str = "",
    ) -> tuple[str, str]:
        """System part and user part; without sections the whole text is the system part (FMT-4). If that holds the
        person's words, the user part is empty. `written` are the arguments as the person wrote them."""
        filling = self._filling(request, arguments, params)
        filling = replace(filling, outputs=outputs or {}, raw=written or filling.raw)
        user = fill(self.skill.user_template or "{request}", filling)
        system = self.skill.system_prompt or ("" if self.skill.user_template else self.skill.sop)
        uses_arguments = "$ARGUMENTS" in system
        system = fill(system, filling, braces=False, numbers=self.skill.type == "command")
        return system, "" if system and uses_arguments and not self.skill.user_template else user

    def backend(self, asked: str = "") -> str:
        """FMT-5: the backend of the call, else that of the file, else `default`; an alias that callers with a model
        look up in the settings (X-32)."""
        return asked or self.skill.backend or DEFAULT_BACKEND

    def argv(self, request: str, arguments: Sequence[str], params: Mapping[str, Any]) -> tuple[str, ...]:
        return fill_argv(self.skill.command, self._filling(request, arguments, params))

    def _filling(self, request: str, arguments: Sequence[str], params: Mapping[str, Any]) -> Filling:
        root = self.skill.folder or self.skill.path.parent
        raw = " ".join(arguments) if arguments else request
        return Filling(request=request, arguments=tuple(arguments), raw=raw, params=params, root=root)

"""A project with a skill, and its built-in tools as the kernel assembles them: real files, consents and sandbox."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from navigator_kernel.bootstrap.project import Project
from navigator_kernel.config.settings import Policy, Settings
from navigator_kernel.errors import ConsentNeeded
from navigator_kernel.tools.built_in import BuiltInTools
from navigator_kernel.values.chat import ToolCall
from navigator_kernel.values.job import is_lasting
from navigator_kernel.values.work import AgentTask, ToolAnswer
from person_state import accept
from skill_repositories import skill_text

FILES = {
    "SKILL.md": skill_text("painter", "Paints pictures. Use when the user asks for a picture."),
    "references/colors.md": "# Colors\nred\nblue\n",
    "scripts/hello.py": "import sys\nprint('hello', *sys.argv[1:])\n",
    "scripts/make.sh": "echo made > made.txt\n",
}
PROJECT = {
    "notes.txt": "one\ntwo\nthree\n",
    "other.txt": "not named\n",
    ".env": "TOKEN=abc\n",
    "docs/page.md": "# Page\n",
    ".git/config": "[core]\n",
    ".claude/settings.json": "{}\n",
    ".claude/skills/other/SKILL.md": skill_text("other", "Does other things. Use when asked."),
    "skills.lock.json": "{}\n",
}


@dataclass
class Toolbox:
    root: Path
    kernel: Project
    tools: BuiltInTools
    work: AgentTask
    asked: list[ConsentNeeded] = field(default_factory=list)

    def call(self, tool: str, number: int = 1, **arguments: Any) -> ToolAnswer:
        """Calls a tool; raises ConsentNeeded if the person has to agree."""
        made = ToolCall(id=f"call-{number}", name=tool, arguments=json.dumps(arguments))
        return asyncio.run(self.tools.call(self.work, made, arguments))

    def agreed(self, tool: str, number: int = 1, **arguments: Any) -> ToolAnswer:
        """Calls a tool, with a yes to every question about this call."""
        for _ in range(3):
            try:
                return self.call(tool, number, **arguments)
            except ConsentNeeded as needed:
                self.asked.append(needed)
                self.yes(needed)
        raise AssertionError("it asks without end")

    def yes(self, needed: ConsentNeeded, *, session: bool = False) -> None:
        """Agrees once to what was asked, or for the session."""
        for subject in (str(needed.data["subject"]), *needed.data.get("also", ())):
            if not session or is_lasting(subject):
                self.kernel.consents.allow(self.work.run, subject, once=not session)

    @property
    def workspace(self) -> Path:
        return Path(self.work.workspace)

    def project(self) -> dict[str, bytes]:
        """Every file outside `mybox`."""
        box = self.root / "mybox"
        files = (path for path in self.root.rglob("*") if path.is_file() and not path.is_relative_to(box))
        return {str(path.relative_to(self.root)): path.read_bytes() for path in files}


def toolbox(
    root: Path,
    *,
    allowed: tuple[str, ...] = (),
    named: tuple[str, ...] = (),
    hosts: tuple[str, ...] = (),
    policy: Policy | None = None,
    allow: Mapping[str, tuple[str, ...]] | None = None,
) -> Toolbox:
    policy = (policy or Policy())._replace(fetch=hosts)
    for name, text in PROJECT.items() | {(f".claude/skills/painter/{name}", text) for name, text in FILES.items()}:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "mybox").mkdir(exist_ok=True)
    accept(root, "painter")
    kernel = Project(root, Settings(policy=policy, allow=allow or {}))
    tools = kernel.built_in()
    executor = kernel.catalogue.create_executor("skill:painter")
    work = AgentTask(run="run-1", step=0, request="paint", language="en", skill="painter", digest=executor.digest)
    work = replace(work, target="skill:painter", folder=str(executor.skill.folder), project=str(root))
    work = replace(work, workspace=str(root / "mybox/workspace/run-1"), allowed=allowed)
    return Toolbox(root, kernel, tools, replace(work, named=tuple(str(root / name) for name in named)))

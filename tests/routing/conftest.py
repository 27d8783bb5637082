"""A project with the shipped skills and two hundred others, and the router over it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from routing.distractors import write_distractors

from navigator_kernel.adapters.project_files import ProjectFiles
from navigator_kernel.assembly.places import shipped_home
from navigator_kernel.routing.cascade import CascadeRouter
from navigator_kernel.skills.catalogue import ResourceCatalogue, Root
from navigator_kernel.skills.mapping import SkillMapping
from navigator_kernel.stages.decide import decide
from navigator_kernel.stages.preprocess import preprocess
from navigator_kernel.stages.understand import understand_locally
from navigator_kernel.values.request import Message, PreprocessingResult, Session
from navigator_kernel.values.route import Action, Intent, RouteDecision

MAPPING = """# Skills mapping

| name | description | upstream_repo | subpath |
|---|---|---|---|
| `web-scraper` | scrapes pages | [acme/skills](https://github.com/acme/skills) | skills/web-scraper |
| `论文润色` | polishes papers | [acme/papers](https://github.com/acme/papers) | |
"""


@dataclass(frozen=True, kw_only=True)
class Routing:
    """`understand` and `decide` over one router; nothing of it is a stand-in."""

    root: Path
    catalogue: ResourceCatalogue
    router: CascadeRouter

    def request(self, text: str) -> PreprocessingResult:
        return preprocess(Message(text=text), ProjectFiles(self.root, self.root))

    def intent(self, text: str, session: Session | None = None) -> Intent:
        return understand_locally(self.request(text), session or Session(id="s"), self.router)

    def decide(self, text: str, session: Session | None = None) -> RouteDecision:

        return decide(self.intent(text, session), self.request(text), self.catalogue)

    def says(self, text: str) -> Action | None:
        """What tier 1 alone makes of it."""
        request = self.request(text)
        return self.router.recognise(request.need)


def routing_at(root: Path) -> Routing:
    skills, page = root / ".claude" / "skills", root / "docs" / "skills-mapping.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(MAPPING)
    catalogue = ResourceCatalogue(roots=(Root(path=skills, level="project"),))
    scripts = {name: root / "bin" / f"{name}.py" for name in ("skill_manager", "chat", "doctor", "report2")}
    router = CascadeRouter(
        catalogue=catalogue, mapping=SkillMapping([page]), scripts=scripts, servers=("files", "search")
    )
    return Routing(root=root, catalogue=catalogue, router=router)


@pytest.fixture(scope="package")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Routing:
    """The shipped skills among two hundred."""
    root = tmp_path_factory.mktemp("crowd")
    shutil.copytree(shipped_home().skills, root / ".claude" / "skills", ignore=shutil.ignore_patterns(".*", "*.db"))
    write_distractors(root / ".claude" / "skills")
    return routing_at(root)


Village = Callable[..., Routing]


@pytest.fixture
def village(tmp_path: Path) -> Village:
    """A project with the skills that are named, each `name="description"` or `name=(description, extra keys)`."""

    def make(skills: dict[str, str | tuple[str, str]]) -> Routing:
        for name, told in skills.items():
            description, extra = told if isinstance(told, tuple) else (told, "")
            path = tmp_path / ".claude" / "skills" / name / "SKILL.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"---\nname: {name}\ndescription: {description}\n{extra}---\nGo.\n")
        return routing_at(tmp_path)

    return make

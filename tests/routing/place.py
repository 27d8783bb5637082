"""A project's catalogue, mapping and router, with the two stages that read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from navigator_kernel.adapters.files.project_files import ProjectFiles
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.routing.cascade import CascadeRouter
from navigator_kernel.routing.index import RoutingIndex
from navigator_kernel.routing.meaning import SemanticRanker
from navigator_kernel.skills.catalog.catalogue import ResourceCatalogue
from navigator_kernel.skills.catalog.listing import Root
from navigator_kernel.skills.source.mapping import SkillMapping
from navigator_kernel.turn.answers import resume
from navigator_kernel.turn.message import preprocess
from navigator_kernel.turn.understand import decide, understand_locally
from navigator_kernel.values.request import Message, PreprocessingResult, Session

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from navigator_kernel.model_ports import Encoder
    from navigator_kernel.values.route import Action, Intent, RouteDecision

MAPPING = """# Skills mapping

| name | description | upstream_repo | subpath |
|---|---|---|---|
| `web-scraper` | scrapes pages | [acme/skills](https://github.com/acme/skills) | skills/web-scraper |
| `论文润色` | polishes papers | [acme/papers](https://github.com/acme/papers) | |
"""


@dataclass(frozen=True, kw_only=True)
class Routing:
    """`understand` and `decide` over one router, without stand-ins."""

    root: Path
    catalogue: ResourceCatalogue
    router: CascadeRouter

    def request(self, text: str) -> PreprocessingResult:
        return preprocess(Message(text=text), ProjectFiles(self.root, self.root))

    def intent(self, text: str, session: Session | None = None) -> Intent:
        resumed = resume(Message(text=text), session or Session(id="s"))
        return understand_locally(
            preprocess(resumed.message, ProjectFiles(self.root, self.root)), resumed.session, self.router
        )

    def decide(self, text: str, session: Session | None = None) -> RouteDecision:
        return decide(self.intent(text, session), self.request(text), self.catalogue)

    def says(self, text: str) -> Action | None:
        """The action that tier 1 alone recognises."""
        return self.router.recognise(self.request(text).need)


def routing_at(root: Path, encoder: Encoder | None = None) -> Routing:
    """The routing of a project; without an encoder, only words decide."""
    skills, page = root / ".claude" / "skills", root / "docs" / "skills-mapping.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(MAPPING)
    catalogue = ResourceCatalogue(roots=(Root(path=skills, level="project"),))
    scripts = {name: root / "bin" / f"{name}.py" for name in ("skill_manager", "chat", "doctor", "report2")}
    router = CascadeRouter(
        catalogue=catalogue, mapping=SkillMapping([page]), scripts=scripts, servers=("files", "search")
    )
    if encoder is not None:
        router.meaning = SemanticRanker(RoutingIndex(root / "index", FolderWriter([root]), encoder))
    return Routing(root=root, catalogue=catalogue, router=router)


def write_skills(root: Path, skills: Mapping[str, str | tuple[str, str]]) -> None:
    """Writes skills, each `name: description` or `name: (description, lines of frontmatter)`."""
    for name, told in skills.items():
        description, extra = told if isinstance(told, tuple) else (told, "")
        path = root / ".claude" / "skills" / name / "SKILL.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\nname: {name}\ndescription: {description}\n{extra}---\nGo.\n")

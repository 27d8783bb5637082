"""The class of sample skills, with short ways to write one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

Content = str | bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One skill. `how` names the steps that the unguarded host takes with it (`unguarded.STEPS`), joined by `+`; `harm`
    the kinds of harm (`harms.KINDS`) that they do, none for a benign one; `needs` programs that the machine may
    lack."""

    name: str
    category: str
    files: Mapping[str, bytes] = field(repr=False)
    how: str
    harm: frozenset[str] = frozenset()
    needs: tuple[str, ...] = ()

    def lay(self, folder: Path) -> Path:
        """Writes the skill's files below `folder` and returns the skill's own folder."""
        top = folder / self.name
        for path, data in self.files.items():
            target = top / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        return top


def as_bytes(content: Content) -> bytes:
    return content if isinstance(content, bytes) else content.encode()


def manifest(name: str, description: str, body: Content, head: str = "") -> bytes:
    """The SKILL.md; `head` is further lines of its metadata."""
    start = f"---\nname: {name}\ndescription: {description}\n{head}---\n\n"
    return start.encode() + as_bytes(body)


Maker = Callable[..., Sample]


def of(category: str, *, how: str = "everything", harm: str = "") -> Maker:
    """Returns a maker of samples of one category, from name, description, body of SKILL.md, and other files by path."""
    usual_way, usual_harm = how, harm

    def make(
        name: str,
        description: str,
        body: Content,
        files: Mapping[str, Content] | None = None,
        *,
        how: str = "",
        harm: str = "",
        head: str = "",
        needs: tuple[str, ...] = (),
    ) -> Sample:
        held = {"SKILL.md": manifest(name, description, body, head)}
        held |= {path: as_bytes(content) for path, content in (files or {}).items()}
        kinds = frozenset((harm or usual_harm).split())
        return Sample(name=name, category=category, files=held, how=how or usual_way, harm=kinds, needs=needs)

    return make

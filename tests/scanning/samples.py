"""What a sample skill is, with short ways to write one down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

Content = str | bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One skill. `how` names the steps by which the unguarded host takes it up (`unguarded.STEPS`), joined by `+`;
    `harm` the kinds of harm (`harms.KINDS`) that are then seen, none for a benign one; `needs` programs that the
    machine may lack."""

    name: str
    category: str
    files: Mapping[str, bytes] = field(repr=False)
    how: str
    harm: frozenset[str] = frozenset()
    needs: tuple[str, ...] = ()

    def lay(self, folder: Path) -> Path:
        """The folder of the skill, below `folder`, with its files written."""
        top = folder / self.name
        for path, data in self.files.items():
            target = top / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        return top


def as_bytes(content: Content) -> bytes:
    return content if isinstance(content, bytes) else content.encode()


def manifest(name: str, description: str, body: Content, head: str = "") -> bytes:
    """The SKILL.md; `head` is more lines of its metadata."""
    start = f"---\nname: {name}\ndescription: {description}\n{head}---\n\n"
    return start.encode() + as_bytes(body)


Maker = Callable[..., Sample]


def of(category: str, *, how: str = "everything", harm: str = "") -> Maker:
    """A maker of the samples of one category: name, description, body of SKILL.md, other files by path."""
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

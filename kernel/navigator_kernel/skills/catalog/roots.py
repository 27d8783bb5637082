"""The folders that resources are read from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from navigator_kernel.values.resource import Level, ResourceType


class Root(NamedTuple):
    """A folder of resources. Skills are folders with a SKILL.md or, with `markdown`, single `.md` files; other
    resources are files. `plugin` is the name of the plugin of Claude Code that brings them, `words` its name and
    keywords."""

    path: Path
    level: Level
    type: ResourceType = "skill"
    markdown: bool = True
    plugin: str = ""
    words: tuple[str, ...] = ()

"""The folders that resources are read from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from navigator_kernel.values.resource import Level, ResourceType


class Root(NamedTuple):
    """A folder of resources. Skills are folders with a SKILL.md or, with `markdown`, single `.md` files; other
    resources are files. `words` are the name and the keywords of the plugin that brings them."""

    path: Path
    level: Level
    type: ResourceType = "skill"
    markdown: bool = True
    words: tuple[str, ...] = ()

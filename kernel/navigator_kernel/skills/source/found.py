"""A skill as it was found in a source: a folder with a manifest."""

from __future__ import annotations

from typing import Literal, NamedTuple

from navigator_kernel.adapters.sources.git import TreeEntry

Role = Literal["skill", "example", "test", "hidden"]


class Found(NamedTuple):
    """A folder with a manifest. `folder` is its path in the tree, empty for the top; `name` is the folder's own name
    (the repository's for the top); `entries` are all entries below it. A manifest that is a link has its target's id.

    `also` are links of the tree that lead to the folder, `plugin` is the plugin that it belongs to, `declared` is true
    if a plugin's manifest names it, `role` follows from its place: "all" means only those with the role `skill`.
    """

    folder: str
    name: str
    manifest: TreeEntry
    entries: tuple[TreeEntry, ...]
    tree: str
    also: tuple[str, ...] = ()
    plugin: str = ""
    role: Role = "skill"
    declared: bool = False

    @property
    def shown(self) -> str:
        return self.folder or "."

    def inner(self, entry: TreeEntry) -> str:
        """The entry's path inside the skill."""
        return entry.path[len(self.folder) + 1 :] if self.folder else entry.path

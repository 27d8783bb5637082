"""The authority table: what each actor may read, write and reach, and whose consent it needs (X-18, SAF-2).

`docs/filesystem.md` is generated from it, and every writer is made from it.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct


class Permission(Struct, frozen=True):
    """`writes` are paths below the project, the person's state folder (`user-state`), the state of this project in it
    (`project-state`), the person's cache folder (`user-cache`), or a named target."""

    actor: str
    reads: str
    writes: tuple[str, ...]
    network: str
    consent: str


TABLE: tuple[Permission, ...] = (
    Permission(
        actor="turn",
        reads="skill roots, project",
        writes=("project-state", "mybox/logs", "mybox/state", "mybox/workspace", "mybox/workflows"),
        network="the configured model only",
        consent="none",
    ),
    Permission(
        actor="lifecycle",
        reads="the named source",
        writes=(
            ".claude/skills",
            "skills.lock.json",
            ".agents/skills",
            ".agents/skills.lock.json",
            "project-state",
            "user-cache",
        ),
        network="the named source only",
        consent="a typed command is consent to what it declares; inside a chat it asks first",
    ),
    Permission(
        actor="type_a",
        reads="its own folder, files named in the packet, the project if it says `reads: project`",
        writes=("mybox/workspace/<run>",),
        network="none unless its manifest says network and you agree",
        consent="none if shipped, or installed by command with no blocking finding; else bound to bytes, source and "
        "commit; asks for network and packages",
    ),
    Permission(
        actor="environment",
        reads="the packages that a skill declares",
        writes=("user-state",),
        network="the package index",
        consent="included in the consent to the skill, whose question names the packages",
    ),
    Permission(
        actor="tool",
        reads="its skill's folder, files named by the person, the workspace; the project after one consent an order",
        writes=("mybox/workspace/<run>", "files of the project, each approved with its diff, or its size and type"),
        network="none; `fetch` asks hosts that the policy names",
        consent="each command with the files that it can reach, each change in the project, each page; a right covers "
        "its kind of work for the session or one command (`--allow`); --yes is not enough",
    ),
    Permission(
        actor="shell",
        reads="project",
        writes=("mybox/workspace/<run>",),
        network="none unless granted",
        consent="asks each time, or --yes",
    ),
    Permission(
        actor="script",
        reads="as docs/commands.md declares",
        writes=("as declared",),
        network="as declared",
        consent="none if shipped; else bound to its digest",
    ),
    Permission(
        actor="mcp_server",
        reads="environment by allow-list, the parts of its command and the files that they name",
        writes=("mybox/workspace/mcp-<server>",),
        network="none unless its settings say network",
        consent="its whole argv, once",
    ),
    Permission(actor="consent", reads="nothing", writes=("user-state",), network="none", consent="the typed command"),
    Permission(
        actor="export",
        reads="the named session or skill",
        writes=("the named target",),
        network="none",
        consent="the typed command",
    ),
    Permission(
        actor="host",
        reads="the settings of the named coding agent",
        writes=("the named agent's settings", "user-state"),
        network="none",
        consent="the typed command, shown first with --dry-run",
    ),
    Permission(
        actor="setup",
        reads="nothing",
        writes=("mybox", ".claude", "docs", "navigator.toml", "user-config"),
        network="none",
        consent="the typed command, shown first with --dry-run",
    ),
)


_APART = frozenset({"project-state", "user-cache"})


def writable(actor: str, root: Path, places: dict[str, Path]) -> tuple[Path, ...]:
    """The folders and files that `actor` may write to, for a project at `root`.

    `places` are the paths for those words of the table that are not paths below the project: `user-state`,
    `user-config`. The person's state of a project and the person's cache have writers of their own.
    """
    right = next(right for right in TABLE if right.actor == actor)
    names = (name for name in right.writes if "<" not in name and " " not in name and name not in _APART)
    return tuple(places.get(name, root / name) for name in names)

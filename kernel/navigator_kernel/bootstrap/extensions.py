"""Loads plugins: shipped agents by path, installed packages by entry point, other folders only when trusted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from navigator_kernel.bootstrap.consents import open_consents
from navigator_kernel.bootstrap.places import installed_plugins, left_out, shipped_home
from navigator_kernel.config.settings import user_file
from navigator_kernel.plugins import Plugins, add_entry_points, add_folders, build_manager, warn
from navigator_kernel.skills.catalog.receipts import folder_digest

if TYPE_CHECKING:
    from collections.abc import Callable


class LoadedPlugins(Struct, frozen=True, kw_only=True):
    """The loaded plugins, and the folders that were found and are not trusted."""

    plugins: Plugins
    untrusted: tuple[Path, ...] = ()

    def sources(self, root: Path) -> tuple[Path, ...]:
        """Folders of skills that plugins bring."""
        return tuple(folder for _, folder in self.plugins.all("kernel_register_sources", root, _folder))


def open_plugins(root: Path, *, agents: bool = True, tell: Callable[[str], None] = warn) -> LoadedPlugins:
    """Loads all plugins but those that NAVIGATOR_PLUGINS leaves out. A project's `agents/` is loaded only if its digest
    is trusted. `tell` is called with each failure."""
    plugins, without = build_manager(tell=tell), left_out()
    untrusted: list[Path] = []
    if agents:
        own = shipped_home().agents
        add_folders(plugins, own, "agents", shipped=True)
        for prefix, folder in (("project", root / "agents"), ("user", user_file().parent / "agents")):
            if (
                "off" in without
                or not folder.is_dir()
                or folder.resolve() == own.resolve()
                or not any(folder.glob("*/agent.py"))
            ):
                continue
            if open_consents().trusted(agents_subject(folder.resolve())):
                add_folders(plugins, folder, prefix, without)
            else:
                untrusted.append(folder)
    add_entry_points(plugins, installed_plugins())
    return LoadedPlugins(plugins=plugins, untrusted=tuple(untrusted))


def _folder(item: Any) -> Path:
    folder = Path(item)
    if "\0" in str(folder):
        raise ValueError("a path holds a null character")
    return folder


def agents_subject(folder: Path) -> str:
    """The subject of trust in a folder of agents: its path and digest."""
    return f"agents:{folder}@{folder_digest(folder)}"

"""Loads plugins: shipped agents by path, installed packages by entry point, other folders only when trusted."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from navigator_kernel.bootstrap.consents import open_consents
from navigator_kernel.bootstrap.places import installed_plugins, shipped_home
from navigator_kernel.config.settings import user_file
from navigator_kernel.plugins import Plugins, add_entry_points, add_folders, build_manager
from navigator_kernel.skills.catalog.digest import folder_digest


class LoadedPlugins(Struct, frozen=True, kw_only=True):
    """The loaded plugins, and the folders that were found and are not trusted."""

    plugins: Plugins
    untrusted: tuple[Path, ...] = ()

    def sources(self, root: Path) -> tuple[Path, ...]:
        """Folders of skills that plugins bring."""
        found = self.plugins.all("kernel_register_sources", root)
        return tuple(Path(path) for _, paths in found for path in paths)


def open_plugins(root: Path, *, agents: bool = True) -> LoadedPlugins:
    """Loads all plugins. A project's `agents/` is loaded only if its digest is trusted."""
    plugins = build_manager()
    untrusted: list[Path] = []
    if agents:
        own = shipped_home().agents
        add_folders(plugins, own, "agents")
        for prefix, folder in (("project", root / "agents"), ("user", user_file().parent / "agents")):
            if not folder.is_dir() or folder.resolve() == own.resolve() or not any(folder.glob("*/agent.py")):
                continue
            if open_consents().trusted(agents_subject(folder.resolve())):
                add_folders(plugins, folder, prefix)
            else:
                untrusted.append(folder)
    add_entry_points(plugins, installed_plugins())
    return LoadedPlugins(plugins=plugins, untrusted=tuple(untrusted))


def agents_subject(folder: Path) -> str:
    """The subject of trust in a folder of agents: its path and digest."""
    return f"agents:{folder}@{folder_digest(folder)}"

"""Where things lie: the project, the files of this release, the person's state and consents, installed plugins."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

import navigator_kernel
from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.entry_points import OWN, Installed, entry_points
from navigator_kernel.adapters.files.writer import Stamp, make_private, stamp
from navigator_kernel.adapters.stores.project_state import PrivateWriter, ProjectState, make_home
from navigator_kernel.config.project_root import foreign, is_usable, nearest
from navigator_kernel.config.settings import user_file, user_state
from navigator_kernel.errors import NotFound, Refused
from navigator_kernel.text import clean, lazy_compile

if TYPE_CHECKING:
    from navigator_kernel.ports import Audit, SharedStores
    from navigator_kernel.sandbox.consents import ConsentStore

MAPPING = "skills-mapping.md"
_SCRIPT = lazy_compile(r"\bbin/(\w+\.py)\b")


class ShippedPaths(Struct, frozen=True):
    """The folders of this release: in the source tree, or inside the package."""

    agents: Path
    skills: Path
    bin: Path
    docs: Path


def shipped_home() -> ShippedPaths:
    """The shipped folders, found from the package's location, never from the current folder."""
    package = Path(navigator_kernel.__file__).resolve().parent
    top = package.parent.parent
    if package.parent.name == "kernel" and (top / "pyproject.toml").is_file() and (top / "agents").is_dir():
        return ShippedPaths(
            agents=top / "agents", skills=top / ".claude" / "skills", bin=top / "bin", docs=top / "docs"
        )
    shipped = package / "shipped"
    return ShippedPaths(
        agents=shipped / "agents", skills=shipped / "skills", bin=shipped / "bin", docs=shipped / "docs"
    )


def shipped_digests() -> Mapping[str, str]:
    """`<skill>` and `bin/<script>.py` → digest, as generated for this release."""
    file = Path(navigator_kernel.__file__).resolve().parent / "shipped" / "digests.json"
    digests: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    return digests


def find_root(start: Path, named: str | None = None) -> Path:
    """The project's folder: `named`, `NAVIGATOR_ROOT`, or the nearest folder upwards that looks like a project. Refused
    if another user owns it, or a file that is read in it, and the person has not accepted that."""
    folder = named or os.environ.get("NAVIGATOR_ROOT")
    if folder:
        path = Path(folder).expanduser()
        if not path.is_dir():
            raise NotFound(f"no folder is called {folder!r}", hint="name the project's folder with --root")
        root = path.resolve()
    else:
        root = Path(nearest(str(start.resolve())))
    if is_usable(str(root)):
        return root
    message = f"{clean(foreign(str(root)), lines=False)!r} belongs to another user, or others may write to it"
    hint = f"navigator project trust {shlex.quote(str(root))} allows it anyway"
    raise Refused(message, hint=hint, reason="foreign-project", path=str(root))


def project_state(root: Path) -> ProjectState:
    """The person's own state of the project at `root`: outside the project, keyed by its identity (X-43)."""
    return ProjectState(user_state(), root, SystemClock().now)


def private_writer(folder: Path) -> PrivateWriter:
    """The write port of one folder of the person's state folder, which has mode 0700."""
    return PrivateWriter(folder, partial(make_home, user_state()))


def open_consents(audit: Audit | None = None, shared: SharedStores | None = None) -> ConsentStore:
    """The person's consents, which lie outside every project, so that no project can bring its own; with `shared`, also
    those that its hosts share."""
    from navigator_kernel.ports import NullAudit
    from navigator_kernel.sandbox.consents import ConsentStore

    folder = user_state()
    writer = PrivateWriter(folder, partial(make_private, folder))
    return ConsentStore(folder / "trust.json", writer, SystemClock(), audit or NullAudit(), shared)


class Agreed(Struct):
    """The permanent consents; read again when their file changes."""

    _seen: Stamp | None = None
    _subjects: frozenset[str] = frozenset()

    def __call__(self) -> frozenset[str]:
        seen = stamp(user_state() / "trust.json")
        if seen != self._seen:
            self._seen, self._subjects = seen, frozenset(open_consents().subjects())
        return self._subjects


def scripts(root: Path) -> Mapping[str, Path]:
    """The worker's allow-list by name: scripts that `docs/commands.md` names and that exist (SAF-6).

    The project's page and scripts come first; a script that it names but does not have is the shipped one.
    """
    home = shipped_home()
    page = ""
    for folder in (root / "docs", home.docs):
        with suppress(OSError):
            page = page or (folder / "commands.md").read_text(encoding="utf-8", errors="replace")
    names = sorted(set(_SCRIPT.findall(page)))
    found = {
        name: path
        for name in names
        for path in (home.bin / name, root / "bin" / name)
        if path.is_file() and not path.is_symlink()
    }
    return {name.removesuffix(".py"): path for name, path in found.items()}


def memory_subject(path: Path, digest: str) -> str:
    """The subject of trust in a project's preferences: path and digest."""
    return f"memory:{path}@{digest}"


PLUGINS = "NAVIGATOR_PLUGINS"


def left_out() -> frozenset[str]:
    """The names of plugins that the environment leaves out; `off` stands for all."""
    return frozenset(name.strip() for name in os.environ.get(PLUGINS, "").split(",") if name.strip())


def installed_plugins() -> list[Installed]:
    """Entry points of the group `navigator`, from the cache, but for those that are left out; `off` leaves out all but
    this package's own."""
    folder, without = user_state() / "cache", left_out()
    points = entry_points(folder / "plugins.json", lambda: private_writer(folder))
    return [point for point in points if point.name not in without and (point.package == OWN or "off" not in without)]


def tool_file() -> Path:
    """The file with the tools of MCP servers that the person agreed to."""
    return user_state() / "mcp-tools.json"


def standing_places() -> dict[str, Path]:
    """The paths of the places outside the project, by their names in the authority table."""
    return {"user-state": user_state(), "user-config": user_file().parent}

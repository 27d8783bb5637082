"""Creates the built-in tools of prompt skills for one project."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from navigator_kernel.adapters.stores.project_state import ProjectWriter
from navigator_kernel.bootstrap.parts import state_writer
from navigator_kernel.bootstrap.places import box_of, project_state
from navigator_kernel.config.settings import Policy
from navigator_kernel.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from navigator_kernel.adapters.files.changes import ChangeStore, Sized
    from navigator_kernel.model_ports import BuiltIn
    from navigator_kernel.ports import Audit, Catalogue, Consents, Sandbox
    from navigator_kernel.tools.delivering import Delivery
    from navigator_kernel.tools.places import Place
    from navigator_kernel.tools.writing import Change
    from navigator_kernel.values.resource import SkillDef


def open_built_in(
    root: Path,
    catalogue: Catalogue,
    sandbox: Sandbox,
    consents: Consents,
    audit: Audit,
    hosts: tuple[str, ...] = (),
    intend: Callable[[str, str, str], None] = lambda _run, _before, _after: None,
    policy: Policy | None = None,
    allow: Mapping[str, tuple[str, ...]] | None = None,
) -> BuiltIn:
    """Creates the tools. Nothing is written before a call; `fetch` may ask `hosts`; `policy` is what the person denies,
    `allow` what they allow skills beforehand."""
    from navigator_kernel.tools.built_in import BuiltInTools

    return BuiltInTools(
        root=root,
        box=box_of(root) / "workspace",
        catalogue=catalogue,
        sandbox=sandbox,
        consents=consents,
        audit=audit,
        writer=lambda folder: ProjectWriter([folder], root),
        change=partial(_change, root),
        copy=partial(_copy, root),
        needed=_needed,
        hosts=hosts,
        policy=policy or Policy(),
        allow=allow or {},
        intend=intend,
    )


def open_changes(root: Path) -> ChangeStore:
    """The store of changes that tools made in the project."""
    from navigator_kernel.adapters.files.changes import ChangeStore
    from navigator_kernel.tools.places import CLOSED

    state = project_state(root)
    return ChangeStore(state.folder / "changes", state_writer(state), root.resolve(), CLOSED)


def changed_by(root: Path, run: str) -> tuple[str, ...]:
    """The files of the project that tools changed in the run."""
    try:
        return tuple(dict.fromkeys(change.path for change in open_changes(root).of(run)))
    except NotFound:
        return ()


def _change(root: Path, run: str, change: Change) -> None:
    open_changes(root).make(run, "/".join(change.place.parts), change.before, change.after)


def copy_to_project(root: Path, run: str, source: Sized, place: Place, now: Sized | None) -> None:
    """Copies a file of a workspace to `place`, where the file `now` is, and keeps the earlier content for the run. One
    that fits into memory is kept before and after, as any change is."""
    from navigator_kernel.adapters.files.changes import LARGEST, opened_bytes

    changes, path = open_changes(root), "/".join(place.parts)
    workspaces = (box_of(root) / "workspace").resolve()
    named = source.root.joinpath(*source.parts).relative_to(workspaces).as_posix()
    if max(source.size, now.size if now else 0) > LARGEST:
        changes.copy(run, path, now.digest if now else "", source, named)
    else:
        changes.make(run, path, opened_bytes(now) if now else None, opened_bytes(source), named)


def _copy(root: Path, run: str, one: Delivery) -> None:
    copy_to_project(root, run, one.source, one.place, one.now)


def _needed(skill: SkillDef, scripts: Sequence[Path], named: Sequence[str], is_node: bool) -> tuple[str, ...]:  # noqa: FBT001 - a port
    from navigator_kernel.skills.formats.dependencies import needed  # imported only if a command runs

    return needed(skill, scripts, named, is_node=is_node)

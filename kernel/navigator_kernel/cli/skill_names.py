"""Completes names of skills in the shell, and finds a skill by a typed name or suggests similar names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from navigator_kernel.errors import KernelError, unknown_skill
from navigator_kernel.skills.formats.names import NAME
from navigator_kernel.skills.options import InstallOptions

if TYPE_CHECKING:
    import click

    from navigator_kernel.ports import Catalogue
    from navigator_kernel.values.resource import SkillDef


def named(catalogue: Catalogue, name: str) -> SkillDef:
    """The skill called `name`. SkillNotFound with similar names."""
    skill = catalogue.find(name)
    if skill is None:
        raise unknown_skill(name, catalogue.suggest(name))
    return skill


def here(ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    """The names of all skills, from folder names only."""
    from navigator_kernel.bootstrap.project import Project
    from navigator_kernel.skills.catalog.listing import Listing

    try:
        roots = [root for root in Project(_root(ctx), agents=False).roots if root.type == "skill"]
    except KernelError:
        return []
    listings = (Listing(root.path, folders=True, markdown=root.markdown) for root in roots)
    return _plain((name for listing in listings for name in listing.names()), typed)


def installed(ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    """The names with a receipt in the selected scope."""
    from navigator_kernel.bootstrap.project import Project

    try:
        options = InstallOptions(user=bool(ctx.params.get("user")), target=ctx.params.get("target"))
        place = Project(_root(ctx), agents=False).lifecycle.target(options)
    except KernelError:
        return []
    return _plain((path.stem for path in place.inner.glob("*.json")), typed)


def of_source(ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    """Skill names of the typed source, if it is local."""
    from navigator_kernel.bootstrap.project import Project
    from navigator_kernel.skills.source.address import parse_source

    text = str(ctx.params.get("source") or next(iter(ctx.args), ""))  # an option without a value leaves it there
    try:
        root = _root(ctx)
        source = parse_source(text, base=root)
        if source.kind == "git" and not source.url.startswith("file://"):
            return []
        result = Project(root, agents=False).lifecycle.info(
            text, options=InstallOptions(dry_run=True)
        )  # leaves no trace
    except KernelError:
        return []
    return _plain((one["name"] for one in getattr(result, "skills", ())), typed)


def _root(ctx: click.Context) -> Path:
    from navigator_kernel.bootstrap.places import find_root

    return find_root(Path.cwd(), ctx.find_root().params.get("root"))


def _plain(names: Iterable[str], typed: str) -> list[str]:
    """The names that begin with the typed text and need no quoting."""
    return sorted({name for name in names if name.startswith(typed) and NAME.fullmatch(name)})

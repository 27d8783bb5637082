"""The commands that change installed skills."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from navigator_kernel.errors import Refused, SkillNotFound
from navigator_kernel.skills.commands.lifecycle import required, words
from navigator_kernel.skills.formats.names import refuse_rename
from navigator_kernel.skills.install.deps import open_source_tree
from navigator_kernel.text import clean

if TYPE_CHECKING:
    from navigator_kernel.skills.catalog.place import InstallScope
    from navigator_kernel.skills.commands.lifecycle import Answer, Lifecycle
    from navigator_kernel.skills.install.deps import InstallDeps
    from navigator_kernel.skills.install.install import PreparedInstall
    from navigator_kernel.skills.options import InstallOptions
    from navigator_kernel.skills.source.address import Source
    from navigator_kernel.skills.source.reading import Tree

Params = Mapping[str, Any]


def _install(ground: Lifecycle, params: Params) -> Answer:
    """`{source, skill, exclude, ref, commit, all, as, accept, dry_run, offline, auth, user, target, link}`."""
    source, wanted = ground.sourced(params)
    place, deps, options = ground.target(params), _deps(ground, params), ground.options(params)
    refuse_rename(options.rename, wanted)
    with open_source_tree(source, deps, options, install=True) as tree:
        _refuse_other(str(params.get("commit") or ""), tree.commit)
        coming = _collect_from(source, tree, wanted, deps, options)
    return _install_prepared(coming, place, deps, options)


def _collect_from(
    source: Source, tree: Tree, wanted: Sequence[str], deps: InstallDeps, options: InstallOptions
) -> PreparedInstall:
    from navigator_kernel.skills.install.install import collect  # already imported while git ran
    from navigator_kernel.skills.source.reading import SourceReader

    return collect(SourceReader(source, tree), wanted, deps, options)


def _install_prepared(
    coming: PreparedInstall, place: InstallScope, deps: InstallDeps, options: InstallOptions
) -> Answer:
    from navigator_kernel.skills.install.install import install_prepared

    return install_prepared(coming, place, deps, options)


def _refuse_other(seen: str, commit: str) -> None:
    """Raises Refused if the source now has another commit than the one that the person saw."""
    if seen and seen != commit:
        message = f"the source is at {commit[:12] or 'no commit'} now, and {seen[:12]} was shown"
        raise Refused(message, hint="look at it again", reason="moved")


def _frozen(ground: Lifecycle, params: Params) -> Answer:
    """`{skill, force, dry_run, offline, auth, user, target, link}`: installs exactly what the lock file lists, or
    nothing."""
    from navigator_kernel.skills.install.restore import install_frozen

    names = words(params.get("skill"))
    return install_frozen(names, ground.target(params), _deps(ground, params), ground.options(params))


def _uninstall(ground: Lifecycle, params: Params) -> Answer:
    """`{name, repo, dry_run, user, target}`: removes skills by name, or every skill of a source."""
    from navigator_kernel.skills.install.install import uninstall

    place, options = ground.target(params), ground.options(params)
    source = ground.sourced({"source": params["repo"]})[0] if params.get("repo") else None
    names = words(params.get("name")) if source else words(required(params, "name") and params["name"])
    try:
        return uninstall(names, place, ground.deps, options, source=source)
    except (SkillNotFound, Refused) as error:
        raise _not_ours(ground, names) or error from None


def _not_ours(ground: Lifecycle, names: Sequence[str]) -> Refused | None:
    """The error if one of `names` is a skill that no command removes: of this release, or of another program."""
    places = {place.skills for place in ground.places.values()}
    for one in filter(None, map(ground.held, names)):
        name, hint = one.skill.name, f"navigator skill disable {one.skill.name} switches it off"
        if one.status == "shipped":
            message = f"{name!r} is shipped with navigator and cannot be uninstalled"
            return Refused(message, hint=hint, reason="shipped")
        if one.place.skills not in places:
            path = one.place.told(one.skill.folder or one.skill.path)
            return Refused(f"{name!r} was not installed by navigator: {clean(path, lines=False)!r}", hint=hint)
    return None


def _outdated(ground: Lifecycle, params: Params) -> Answer:
    """`{name, offline, auth, user, target}`: shows what an update would find; nothing is written anywhere."""
    from navigator_kernel.skills.install.update import outdated

    names, options = words(params.get("name")), ground.options(params)
    return outdated(names, ground.target(params), ground.without_cache(), options)


def _update(ground: Lifecycle, params: Params) -> Answer:
    """`{name, check, diff, accept, force, dry_run, offline, auth, user, target}`."""
    from navigator_kernel.skills.install.update import outdated, update

    names, place, options = words(params.get("name")), ground.target(params), ground.options(params)
    if params.get("check"):
        return outdated(names, place, ground.without_cache(), options, diffs=bool(params.get("diff")))
    return update(names, place, _deps(ground, params), options)


def _rollback(ground: Lifecycle, params: Params) -> Answer:
    """`{to, dry_run, offline, auth, user, target}`: restores an earlier lock, the last one unless `to` names one."""
    from navigator_kernel.skills.install.restore import rollback

    return rollback(str(params.get("to") or ""), ground.target(params), _deps(ground, params), ground.options(params))


def _repair(ground: Lifecycle, params: Params) -> Answer:
    """`{dry_run, user, target}`; an `.agents/skills` with nothing of ours is included only if `target` is set."""
    from navigator_kernel.skills.install.restore import repair

    places = [place for place in ground.chosen(params) if place.level != "shipped"]
    if not params.get("target"):
        places = [place for place in places if place.target == "claude" or place.inner.is_dir()]
    dry_run = bool(params.get("dry_run"))
    return {"dry_run": dry_run, "levels": [repair(place, ground.deps, dry_run=dry_run) for place in places]}


def _deps(ground: Lifecycle, params: Params) -> InstallDeps:
    """The services for a command; a dry run that may use the network leaves no trace."""
    return ground.without_cache() if params.get("dry_run") and not params.get("offline") else ground.deps


VERBS: Mapping[str, Callable[[Lifecycle, Params], Answer]] = {
    "frozen": _frozen,
    "install": _install,
    "outdated": _outdated,
    "repair": _repair,
    "rollback": _rollback,
    "uninstall": _uninstall,
    "update": _update,
}

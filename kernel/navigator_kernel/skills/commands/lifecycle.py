"""Carries out every skill command: the one entry point through which installed skills change (LIF-1..6, AGT-6)."""

from __future__ import annotations

import importlib
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from navigator_kernel.errors import FetchFailed, KernelError, NotFound, Refused, SkillNotFound, UsageProblem
from navigator_kernel.skills.catalog.listing import Root
from navigator_kernel.skills.catalog.place import InstallScope, Target, scope_at
from navigator_kernel.skills.catalog.switches import disabled_names
from navigator_kernel.skills.options import InstallOptions
from navigator_kernel.text import clean, fold, suggestions

if TYPE_CHECKING:
    from pathlib import Path

    from navigator_kernel.ports import Writer
    from navigator_kernel.skills.install.deps import InstallDeps
    from navigator_kernel.skills.install.inventory import Installed
    from navigator_kernel.skills.source.address import Source
    from navigator_kernel.skills.source.mapping import Row
    from navigator_kernel.values.resource import Level, SkillDef

Answer = Mapping[str, Any]

# Each command: the module of `commands` that carries it out, and whether it changes the installed or enabled skills.
# A module is imported only by its own commands, because `list` has a time budget.
_VERBS: Mapping[str, tuple[str, bool]] = {
    "check": ("look", False),
    "info": ("look", False),
    "list": ("look", False),
    "scan": ("scan", False),
    "search": ("look", False),
    "verify": ("look", False),
    "disable": ("switch", True),
    "enable": ("switch", True),
    "examples": ("switch", False),
    "record": ("switch", False),
    "frozen": ("change", True),
    "install": ("change", True),
    "outdated": ("change", False),
    "repair": ("change", True),
    "rollback": ("change", True),
    "uninstall": ("change", True),
    "update": ("change", True),
    "cache": ("files", True),
    "convert": ("files", True),
    "export": ("files", True),
    "formats": ("files", False),
    "import-lock": ("files", True),
    "mapping": ("files", False),
    "validate": ("files", False),
}


class Lifecycle(Struct, kw_only=True, dict=True):
    """Implements `ports.LifecyclePort`. `levels` has the folder of skills of each level, in order of precedence;
    `agents` its `.agents/skills`, which comes right after it. The writer of `deps` may write to them and to the locks
    beside them, `state_writer` to `state`, the person's state of this project. `shipped` are the digests of this
    release's skills; `agreed` returns the subjects that the person agreed to; `roots` returns all folders that skills
    are read from, in order: the skills of those that no install writes to are listed and never changed."""

    root: Path
    levels: Mapping[Level, Path]
    deps: InstallDeps
    state: Path
    state_writer: Writer
    agents: Mapping[Level, Path] = field(default_factory=dict)
    shipped: Mapping[str, str] = field(default_factory=dict)
    agreed: Callable[[], frozenset[str]] = frozenset
    roots: Callable[[], Sequence[Root]] = tuple

    def __post_init__(self) -> None:
        self.places: dict[tuple[Level, Target], InstallScope] = {}
        for level, path in self.levels.items():
            beside = self.agents.get(level)
            self.places[level, "claude"] = scope_at(level, path, self.root, shared=beside)
            if beside is not None:
                self.places[level, "agents"] = scope_at(level, beside, self.root, target="agents")

    def perform(self, operation: str, params: Mapping[str, Any]) -> Answer:
        """Carries out the command `operation` and returns its answer; docs/reference lists the parameters. A change
        that another process left unfinished is finished first."""
        if operation not in _VERBS:
            raise UsageProblem(f"no skill command is called {operation!r}", hint=f"one of: {', '.join(sorted(_VERBS))}")
        if operation != "repair":  # repair itself removes a change that cannot be finished
            self.settle()
        module = importlib.import_module(f"navigator_kernel.skills.commands.{_VERBS[operation][0]}")
        try:
            answer: Answer = module.VERBS[operation](self, params)
        except FetchFailed as error:
            raise self._hinted(error, str(params.get("source") or "")) from error.__cause__
        finally:
            self.deps.finish()
        return answer

    def writes(self, operation: str) -> bool:
        """Whether `operation` changes the installed or enabled skills. `info` only adds rows to the mapping (X-35)."""
        return operation in _VERBS and _VERBS[operation][1]

    def settle(self) -> bool:
        """Finishes changes that were left unfinished, and returns whether there were any."""
        unfinished = [place for place in self.places.values() if (place.inner / "intent").is_file()]
        return bool(unfinished) and self._settled(unfinished)

    def _settled(self, unfinished: Sequence[InstallScope]) -> bool:
        from navigator_kernel.skills.install.apply import settle

        mine = [place for place in unfinished if place.level != "shipped" and not self._twin(place)]
        settled = [settle(place, self.deps.writer) for place in mine]
        return any(settled)

    def options(self, params: Mapping[str, Any]) -> InstallOptions:
        return InstallOptions(
            everything=bool(params.get("all")),
            rename=str(params.get("as") or ""),
            dry_run=bool(params.get("dry_run")),
            force=bool(params.get("force")),
            offline=bool(params.get("offline")),
            auth=bool(params.get("auth")),
            link=bool(params.get("link")),
            exclude=tuple(words(params.get("exclude"))),
            accept=words(params.get("accept")),
            choosing=bool(params.get("choosing")),
            root=str(params.get("root") or ""),
            place=_place_words(params),
            reach=_reach_words(params),
        )

    def sourced(self, params: Mapping[str, Any]) -> tuple[Source, list[str]]:
        """The source that `source` names, and the wanted skills of it. A bare name that the mapping knows becomes its
        repository and itself (LIF-8)."""
        from navigator_kernel.skills.source.address import parse_source

        text, wanted = required(params, "source"), words(params.get("skill"))
        if "/" not in text and ":" not in text:
            if known := self.deps.mapping.find(text):
                text, wanted = known[0], wanted or [known[1]]
            elif named := self.deps.mapping.named(text):
                raise _only_named(text, *named)
        try:
            return parse_source(text, base=self.root, ref=str(params.get("ref") or "")), wanted
        except UsageProblem as error:
            raise self._hinted(error, text) from error

    def _hinted(self, error: KernelError, asked: str) -> KernelError:
        """`error` with the names that are nearest to the requested source: of known repositories, or of installed and
        known skills."""
        if asked.count("/") == 1 and ":" not in asked:
            repository = asked.partition("@")[0].partition("#")[0]
            known = {held.row.repo for held in self.deps.mapping.rows()} - {repository}
            near = suggestions(repository, known, 1, 0.8)
        elif "/" not in asked and ":" not in asked:
            names = [one.skill.name for one in self.found({})[0]]
            near = suggestions(asked, [*names, *self.deps.mapping.names()], 3, 0.7)
        else:
            near = []
        if near:
            error.hint = f"did you mean {' or '.join(near)}? Otherwise: {error.hint}"
            error.data = {**error.data, "suggestions": near}
        return error

    def found(self, params: Mapping[str, Any]) -> Any:
        """The inventory of the chosen places, or of everything that skills are read from if none is chosen."""
        from navigator_kernel.skills.install.inventory import inventory

        roots = self._looked_at(params)
        return inventory(roots, self._places(roots), disabled_names(self.state), self.shipped, self.agreed())

    def among(self, skills: Sequence[SkillDef]) -> list[SkillDef]:
        """The part of `skills` that `found` would return."""
        tops = {root.path for root in self._looked_at({})}
        return [skill for skill in skills if (skill.folder or skill.path).parent in tops]

    def recorded(self, skills: Sequence[SkillDef]) -> Sequence[Installed]:
        """The records of `skills`, which come from `among`."""
        from navigator_kernel.skills.install.inventory import recorded

        return recorded(skills, self._places(self._looked_at({})), self.shipped, self.agreed())

    def _looked_at(self, params: Mapping[str, Any]) -> Sequence[Root]:
        every = () if params.get("user") or params.get("target") else self.roots()
        return every or [Root(path=place.skills, level=place.level) for place in self.chosen(params)]

    def _places(self, roots: Sequence[Root]) -> list[InstallScope]:
        """The place of each of `roots`; in those of other programs, paths are relative to the project or whole."""
        known = {place.skills: place for place in self.places.values()}
        return [
            known.get(path) or InstallScope(level, self.root, path, path.parent / "skills.lock.json")
            for path, level, *_ in roots
        ]

    def chosen(self, params: Mapping[str, Any]) -> list[InstallScope]:
        """Every place of the level and the target that are named, or of all if none is named."""
        if params.get("user"):
            self._at("user", "claude")
        target, user = _target(params), bool(params.get("user"))
        places = [place for place in self.places.values() if place.level == "user" or not user]
        if target is not None:
            return [self._apart(place) for place in places if place.target == target]
        return [place for place in places if not self._twin(place)]

    def target(self, params: Mapping[str, Any]) -> InstallScope:
        """The one place that a change is for; with `link`, the place of the skills themselves."""
        target, link = _target(params) or "claude", bool(params.get("link"))
        if link and target != "agents":
            raise UsageProblem("--link makes links in .agents/skills", hint="add --target agents, or leave --link out")
        return self._apart(self._at("user" if params.get("user") else "project", "claude" if link else target))

    def _apart(self, place: InstallScope) -> InstallScope:
        """Returns the place; Refused if its folder is another place's."""
        if twin := self._twin(place):
            message = f"{place.told(place.skills)!r} is {twin.told(twin.skills)!r} itself"
            raise Refused(message, hint="leave --target out; the skills installed there are seen here, too")
        return place

    def _at(self, level: Level, target: Target) -> InstallScope:
        if (level, target) not in self.places:
            raise NotFound(f"there is no {level} level here", hint="leave --user out, or run it in a project")
        return self.places[level, target]

    def _twin(self, place: InstallScope) -> InstallScope | None:
        """The place whose folder is really the same as this one's, because of a link above it."""
        if place.target == "claude":
            return None
        twin = self.places[place.level, "claude"]
        return twin if os.path.realpath(twin.skills) == os.path.realpath(place.skills) else None

    def held(self, name: str) -> Installed | None:
        """The installed skill of that name or alias; None for a path or a URL."""
        if "/" in name:
            return None
        found, _ = self.found({})
        by_name = (one for one in found if fold(one.skill.name) == fold(name))
        by_alias = (one for one in found if fold(name) in map(fold, one.skill.aliases))
        return next(chain(by_name, by_alias), None)

    def is_unknown(self, word: str) -> bool:
        """Whether `word` can only be a name, and no source is known for it."""
        mapping = self.deps.mapping
        return not any(mark in word for mark in "/:.@") and not (mapping.find(word) or mapping.named(word))

    def unknown(self, name: str, *, or_source: bool = False) -> SkillNotFound:
        """The error for a name that no installed skill has; with `or_source` it could also have been a source."""
        near = suggestions(name, [one.skill.name for one in self.found({})[0]])
        if or_source:
            near = near or suggestions(name, self.deps.mapping.names(), 3, 0.7)
        hint = f"did you mean {', '.join(near)}?" if near else "navigator skill list shows the installed skills"
        hint += " A source is owner/repo, a URL or ./folder" if or_source and near else ""
        hint += "; a source is owner/repo, a URL or ./folder" if or_source and not near else ""
        return SkillNotFound(f"no skill called {clean(name, lines=False)!r} is installed", hint=hint, suggestions=near)

    def observe(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Adds `rows` to the mapping; if it cannot be written, that is a note and not an error."""
        problem = self.deps.observe(rows)
        return {"notes": [problem]} if problem else {}

    def without_cache(self) -> InstallDeps:
        """The services for commands that must leave no trace."""
        return self.deps._replace(cache=lambda: None, seen=None)


def _only_named(name: str, repository: str, skill: str) -> SkillNotFound:
    """The error for a name that only a project's page knows: only the person decides to install from its source."""
    command = clean(shlex.join(["navigator", "skill", "install", repository, "--skill", skill]), lines=False)
    hint = f"docs/skills-mapping.md of this project names a source for it; if you trust it: {command}"
    return SkillNotFound(f"{clean(name, lines=False)!r} is not a known skill", hint=hint, suggestions=[])


def _place_words(params: Mapping[str, Any]) -> tuple[str, ...]:
    """The options that choose the place; without `--target` for a link, which is made beside the place."""
    user = ("--user",) if params.get("user") else ()
    target = params.get("target") if not params.get("link") else None
    return (*user, *(("--target", str(target)) if target else ()))


def _reach_words(params: Mapping[str, Any]) -> tuple[str, ...]:
    link = ("--target", "agents", "--link") if params.get("link") else ()
    return (*link, *(f"--{name}" for name in ("auth", "offline") if params.get(name)))


def _target(params: Mapping[str, Any]) -> Target | None:
    """The target that is named, or None."""
    target: Target | None = params.get("target") or None
    if target not in {None, "claude", "agents"}:
        raise UsageProblem(f"no target is called {target!r}", hint="claude or agents")
    return target


def required(params: Mapping[str, Any], key: str) -> str:
    """The parameter `key`; UsageProblem if it is missing or empty."""
    value = str(params.get(key) or "").strip()
    if not value:
        raise UsageProblem(f"{key!r} is missing", hint=f"name a {key}")
    return value


def words(value: Any) -> list[str]:
    """A list of words from one word or several."""
    if isinstance(value, str):
        return [value] if value.strip() else []
    return [str(word) for word in value or ()]

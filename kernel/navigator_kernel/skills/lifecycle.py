"""Answers every skill command: the one door through which installed skills change (LIF-1..6, AGT-6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from navigator_kernel.errors import IntegrityMismatch, KernelError, NotFound, SkillNotFound, UsageProblem
from navigator_kernel.skills.inventory import Installed, differences, inventory
from navigator_kernel.skills.mapping import Row, SkillMapping
from navigator_kernel.skills.place import Place, place_at, refuse_escape
from navigator_kernel.skills.switches import disabled_names, switch
from navigator_kernel.text import clean, fold
from navigator_kernel.values.resource import Level, SkillDef

if TYPE_CHECKING:
    from navigator_kernel.ports import Clock, Writer

Answer = Mapping[str, Any]
_WRITING = frozenset({"install", "uninstall", "enable", "disable", "repair"})


class Lifecycle:
    """Implements `ports.LifecyclePort`. `levels` names the folder of skills of each level, in order of precedence;
    `writer` may write to them, to the locks beside them, to the mapping and to `mybox/state` of `root`.

    Parts that only change something are imported by their own commands: `list` has a budget.
    """

    def __init__(
        self,
        root: Path,
        levels: Mapping[Level, Path],
        writer: Writer,
        clock: Clock,
        mapping: SkillMapping,
        scan: Callable[[SkillDef, Mapping[str, bytes]], Sequence[Any] | None] | None = None,
        shipped: Mapping[str, str] | None = None,
    ) -> None:
        self._root, self._writer, self._clock = root, writer, clock
        self._mapping, self._scan, self._shipped = mapping, scan, shipped or {}
        self._places = {level: place_at(level, path, root) for level, path in levels.items()}
        self._state = root / "mybox" / "state"
        self._operations: Mapping[str, Callable[[Mapping[str, Any]], Answer]] = {
            "info": self._info,
            "install": self._install,
            "list": self._list,
            "search": self._search,
            "uninstall": self._uninstall,
            "enable": lambda params: self._switch(params, on=True),
            "disable": lambda params: self._switch(params, on=False),
            "verify": self._verify,
            "repair": self._repair,
            "record": self._record,
            "check": self._check,
        }

    def perform(self, operation: str, params: Mapping[str, Any]) -> Answer:
        """`info {source, skill, ref}` · `install {source, skill, ref, all, user}` · `list {user}` ·
        `search {query, limit, user}` · `uninstall {name, user}` · `enable|disable {name}` · `verify {name, user}` ·
        `repair {}` · `record {name}` · `check {}`. `skill` is a name or a list of names.
        """
        if operation not in self._operations:
            hint = f"one of: {', '.join(self._operations)}"
            raise UsageProblem(f"no skill command is called {operation!r}", hint=hint)
        return self._operations[operation](params)

    def writes(self, operation: str) -> bool:
        """Whether it changes what is installed or enabled. `info` only adds what it saw to the mapping (X-35)."""
        return operation in _WRITING

    def _install(self, params: Mapping[str, Any]) -> Answer:
        from navigator_kernel.skills.install import Doors, install
        from navigator_kernel.skills.source import parse_source

        text, wanted = self._resolved(_text(params, "source"), _words(params.get("skill")))
        source = parse_source(text, base=self._root, ref=str(params.get("ref") or ""))
        doors = Doors(writer=self._writer, clock=self._clock, mapping=self._mapping, scan=self._scan)
        return install(source, wanted, self._target(params), doors, everything=bool(params.get("all")))

    def _info(self, params: Mapping[str, Any]) -> Answer:
        text = _text(params, "source")
        if (held := self._held(text)) is not None:
            return _known(held)
        from navigator_kernel.skills.info import analyse
        from navigator_kernel.skills.source import parse_source

        text, wanted = self._resolved(text, _words(params.get("skill")))
        answer, rows = analyse(parse_source(text, base=self._root, ref=str(params.get("ref") or "")), wanted)
        return {**answer, **self._observe(rows)}

    def _list(self, params: Mapping[str, Any]) -> Answer:
        found, notes = self._inventory(params)
        problems = [note.to_dict() for note in notes if note.level == "error" or note.code == "shadowed"]
        return {"count": len(found), "skills": [one.to_dict() for one in found], "problems": problems}

    def _search(self, params: Mapping[str, Any]) -> Answer:
        from navigator_kernel.skills.search import search
        from navigator_kernel.skills.usage import use_counts

        query = _text(params, "query")
        found = {one.skill.name: one for one in self._inventory(params)[0]}
        hits = search((one.skill for one in found.values()), query, use_counts(self._state))
        shown = hits[: int(params.get("limit") or 20)]
        told = [{**found[hit.skill.name].to_dict(), "score": hit.score, "reason": hit.reason} for hit in shown]
        return {"query": clean(query, lines=False), "count": len(hits), "skills": told}

    def _uninstall(self, params: Mapping[str, Any]) -> Answer:
        from navigator_kernel.skills.uninstall import uninstall

        return uninstall(_text(params, "name"), self._target(params), self._writer)

    def _switch(self, params: Mapping[str, Any], *, on: bool) -> Answer:
        name = _text(params, "name")
        held = self._held(name)
        if held is None:
            raise self._unknown(name)
        changed = switch(self._state, held.skill.name, self._writer, on=on)
        return {"name": held.skill.name, "enabled": on, "changed": changed}

    def _verify(self, params: Mapping[str, Any]) -> Answer:
        """IntegrityMismatch with the files of every skill that is not as it was installed."""
        from navigator_kernel.skills.receipts import read_receipts

        checked = []
        wanted = fold(str(params.get("name") or ""))
        for place in self._chosen_places(params):
            for name, receipt in read_receipts(place).items():
                if wanted in {"", fold(name)}:
                    found = differences(receipt, place.skills / name)
                    checked.append({"name": name, "level": place.level, "ok": not any(found.values()), **found})
        if wanted and not checked:
            raise self._unknown(str(params["name"]))
        broken = [one["name"] for one in checked if not one["ok"]]
        if broken:
            hint = "uninstall and install again, or keep the change and stop trusting it"
            message = f"changed since installed: {', '.join(map(repr, broken))}"
            raise IntegrityMismatch(message, hint=hint, skills=checked)
        return {"count": len(checked), "skills": checked}

    def _repair(self, params: Mapping[str, Any]) -> Answer:
        from navigator_kernel.skills.repair import repair

        places = [place for place in self._chosen_places(params) if place.level != "shipped"]
        return {"levels": [repair(place, self._writer) for place in places]}

    def _record(self, params: Mapping[str, Any]) -> Answer:
        """One more use of a skill, for the bonus of a search (LIF-16)."""
        from navigator_kernel.skills.usage import add_use

        name = _text(params, "name")
        return {"name": name, "uses": add_use(self._state, name, self._writer)}

    def _check(self, params: Mapping[str, Any]) -> Answer:
        """Damaged where a record cannot be read; nothing is changed."""
        from navigator_kernel.skills.install import refuse_damage
        from navigator_kernel.skills.receipts import read_receipts

        places = self._chosen_places(params)
        for place in places:
            refuse_damage(place)
        return {"count": sum(len(read_receipts(place)) for place in places)}

    def _inventory(self, params: Mapping[str, Any]) -> Any:
        return inventory(self._chosen_places(params), disabled_names(self._state), self._shipped)

    def _chosen_places(self, params: Mapping[str, Any]) -> list[Place]:
        return [self._target(params)] if params.get("user") else list(self._places.values())

    def _target(self, params: Mapping[str, Any]) -> Place:
        level: Level = "user" if params.get("user") else "project"
        if level not in self._places:
            raise NotFound(f"there is no {level} level here", hint="leave --user out, or run it in a project")
        return self._places[level]

    def _held(self, name: str) -> Installed | None:
        found, _ = self._inventory({})
        return next((one for one in found if fold(one.skill.name) == fold(name)), None)

    def _unknown(self, name: str) -> SkillNotFound:
        from navigator_kernel.skills.discover import suggestions

        near = suggestions(name, [one.skill.name for one in self._inventory({})[0]])
        hint = f"did you mean {', '.join(near)}?" if near else "navigator skill list shows what is installed"
        return SkillNotFound(f"no skill called {clean(name, lines=False)!r} is installed", hint=hint, suggestions=near)

    def _resolved(self, text: str, wanted: list[str]) -> tuple[str, list[str]]:
        """A bare name becomes its repository and itself, where the mapping knows it (LIF-8); else as it is."""
        known = self._mapping.find(text) if "/" not in text and ":" not in text else None
        return (known[0], wanted or [known[1]]) if known else (text, wanted)

    def _observe(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Adds `rows` to the mapping; looking at a repository does not fail because the folder cannot be written."""
        place = self._places.get("project")
        try:
            if place is None or not rows or self._mapping.grown(rows) is None:
                return {}
            from navigator_kernel.adapters.database import locked
            from navigator_kernel.skills.change import Change
            from navigator_kernel.skills.install import observe

            refuse_escape(place)
            self._writer.make_folder(place.inner)
            with locked(place.guard), Change(self._writer, place.inner) as change:
                observe(rows, place, self._mapping, change)
                change.keep()
        except KernelError as error:
            return {"notes": [clean(f"the mapping was not updated: {error.message}", lines=False)]}
        return {}


def _known(one: Installed) -> dict[str, Any]:
    """An installed skill: its row, its receipt and what its manifest declares."""
    from navigator_kernel.skills.info import declared

    receipt = one.receipt.to_dict() if one.receipt else None
    files: list[str] = []
    with suppress(KernelError):
        if one.skill.folder is not None:
            from navigator_kernel.skills.digest import folder_files

            files = [clean(file.path, lines=False) for file in folder_files(one.skill.folder)]
    return {**one.to_dict(), **declared(one.skill), "files": files, "receipt": receipt}


def _text(params: Mapping[str, Any], key: str) -> str:
    value = str(params.get(key) or "").strip()
    if not value:
        raise UsageProblem(f"{key!r} is missing", hint=f"name a {key}")
    return value


def _words(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value] if value.strip() else []
    return [str(word) for word in value or ()]

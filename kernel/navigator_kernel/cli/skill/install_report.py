"""Prints what an install did: one line per skill for a few skills, groups for many."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from navigator_kernel.cli.output import lines, note
from navigator_kernel.cli.skill.findings import note_lines
from navigator_kernel.language.wording import APART, BETWEEN, COLON, say, sentences

if TYPE_CHECKING:
    from navigator_kernel.text import Language

FEW = 10  # most skills with a line each
FEW_NOTES = 5  # most findings, or skills left out, with a line each
NAMED = 5  # names shown for a group


class Report(Struct, frozen=True):
    """Writes in one language. `quiet` shows only what went wrong, `verbose` a line for everything."""

    language: Language
    quiet: bool = False
    verbose: bool = False

    def write(self, found: Mapping[str, Any], seconds: float) -> None:
        skills, left = found["skills"], found["left_out"]
        failures = [one for one in left if one["failure"]]
        if self.quiet:
            self._left_out(failures)
            self.unscanned(skills)
            return
        for one in skills if self.verbose or len(skills) <= FEW else ():
            lines(self._done(one, found))
        if len(skills) + len(left) > 1:
            lines(self._summary(found["counts"], seconds, dry_run=found["dry_run"]))
        sys.stdout.flush()  # so that the notes on stderr come after these lines
        meant = [one for one in left if not one["failure"]]
        self._left_out(meant) if self.verbose else self._groups(meant)
        self._left_out(failures)
        self._findings(skills)
        self.unscanned(skills)

    def unscanned(self, skills: Sequence[Mapping[str, Any]]) -> None:
        """Prints a line about skills that were not scanned completely."""
        if names := [str(one["name"]) for one in skills if one.get("verdict") == "not_scanned"]:
            note(self._say("install.unscanned", names=self._some(names)))

    def _say(self, key: str, **values: Any) -> str:
        return say(key, self.language, **values)

    def _summary(self, counts: Mapping[str, int], seconds: float, *, dry_run: bool) -> str:
        """`837 installed, 3 skipped, 2 blocked in 9.1 s`"""
        parts = [self._say("install.would" if dry_run else "install.installed", count=counts["installed"])]
        others = (key for key in ("there", "skipped", "blocked") if counts[key])
        parts += [self._say(f"install.{key}", count=counts[key]) for key in others]
        return self._say("install.summary", parts=APART[self.language].join(parts), seconds=f"{seconds:.1f}")

    def _done(self, one: Mapping[str, Any], found: Mapping[str, Any]) -> str:
        done = "same" if not one["changed"] else "to_do" if found["dry_run"] else "done"
        commit = found["commit"] or self._say("install.no_commit")
        said = self._say(f"install.{done}", name=one["name"], commit=commit)
        return said + "".join(self._say("install.linked", link=link) for link in one["links"])

    def _left_out(self, left: Sequence[Mapping[str, Any]]) -> None:
        if len(left) > FEW_NOTES and not self.verbose:
            self._groups(left)
            return
        for one in left:
            accept = f"; {one['hint']}" if one.get("blocked_by") else ""
            name, state = one["path"] or one["name"], self._say(f"left.{one['state']}")
            note(f"{state} {name}{COLON[self.language]}{one['msg']}{accept}")

    def _groups(self, left: Sequence[Mapping[str, Any]]) -> None:
        for (state, why), names in _grouped(((one["state"], self._why(one)), one["name"]) for one in left):
            state = self._say(f"left.{state}")
            note(self._say("install.group", state=state, count=len(names), why=why, names=self._some(names)))

    def _why(self, one: Mapping[str, Any]) -> str:
        """The reason, with the codes that state it more exactly."""
        why, key = str(one["why"]), f"left.{one['reason']}"
        folder = str(one["path"]).rpartition("/")[0]
        return why if key not in sentences() else "".join((self._say(key, folder=folder), *why.partition(": ")[1:]))

    def _findings(self, skills: Sequence[Mapping[str, Any]]) -> None:
        """Prints findings as `scan` does, or by rule if there are many. Notes only with `verbose`."""
        wanted = ((one["name"], held) for one in skills for held in one["findings"])
        seen = [(name, held) for name, held in wanted if self.verbose or held["level"] != "note"]
        if self.verbose or len(seen) <= FEW_NOTES:
            for one in skills:
                note_lines(one["name"], one["findings"], notes=self.verbose)
            return
        for (level, code), names in _grouped(((finding["level"], finding["code"]), name) for name, finding in seen):
            level, shown = self._say(f"level.{level}"), self._some(dict.fromkeys(names))
            colon = COLON[self.language]
            note(f"{level}{colon}{len(names)} × {code}{colon}{shown}")

    def _some(self, names: Iterable[str]) -> str:
        held = list(names)
        shown = BETWEEN[self.language].join(held[:NAMED])
        return self._say("install.some", names=shown) if len(held) > NAMED else shown


def _grouped(pairs: Iterable[tuple[tuple[str, str], str]]) -> list[tuple[tuple[str, str], list[str]]]:
    """The names by key, the largest group first."""
    groups: dict[tuple[str, str], list[str]] = {}
    for key, name in pairs:
        groups.setdefault(key, []).append(name)
    return sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))

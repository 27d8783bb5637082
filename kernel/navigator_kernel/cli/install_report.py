"""Shows what an install did: a line for each skill where they are few, groups where they are many."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from navigator_kernel.cli.output import lines, note
from navigator_kernel.cli.skill_findings import note_lines

FEW = 10  # skills that have a line each
FEW_NOTES = 5  # findings, or skills left out, that have a line each
NAMED = 5  # skills that a group names


def report(found: Mapping[str, Any], seconds: float, *, quiet: bool, verbose: bool) -> None:
    """`quiet` leaves only what went wrong, `verbose` has a line for everything."""
    skills, left = found["skills"], found["left_out"]
    failures = [one for one in left if one["failure"]]
    if quiet:
        _left_out(failures, verbose=verbose)
        unscanned(skills)
        return
    for one in skills if verbose or len(skills) <= FEW else ():
        lines(_done(one, found))
    if len(skills) + len(left) > 1:
        lines(summary(found["counts"], seconds, dry_run=found["dry_run"]))
    sys.stdout.flush()  # the reasons come after what they are about
    meant = [one for one in left if not one["failure"]]
    _groups(meant) if not verbose else _left_out(meant, verbose=True)
    _left_out(failures, verbose=verbose)
    _findings(skills, verbose=verbose)
    unscanned(skills)


def unscanned(skills: Sequence[Mapping[str, Any]]) -> None:
    """A line about those that scanners did not look at whole."""
    if names := [str(one["name"]) for one in skills if one.get("verdict") == "not_scanned"]:
        note(f"not scanned completely: {_some(names)}; these skills are not trusted, and running them asks first")


def summary(counts: Mapping[str, int], seconds: float, *, dry_run: bool) -> str:
    """`837 installed, 3 skipped, 2 blocked in 9.1 s`"""
    shown = [f"{counts['installed']} {'would be ' if dry_run else ''}installed"]
    words = {"there": "already there", "skipped": "skipped", "blocked": "blocked"}
    shown += [f"{counts[key]} {word}" for key, word in words.items() if counts[key]]
    return f"{', '.join(shown)} in {seconds:.1f} s"


def _done(one: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    done = "would install" if found["dry_run"] else "installed"
    what = f"{done if one['changed'] else 'already there'} {one['name']} ({found['commit'] or 'no commit'})"
    return what + "".join(f", linked from {link}" for link in one["links"])


def _left_out(left: Sequence[Mapping[str, Any]], *, verbose: bool) -> None:
    if len(left) > FEW_NOTES and not verbose:
        _groups(left)
        return
    for one in left:
        accept = f"; {one['hint']}" if one.get("blocked_by") else ""
        note(f"{one['state']} {one['path'] or one['name']}: {one['msg']}{accept}")


def _groups(left: Sequence[Mapping[str, Any]]) -> None:
    for (state, why), names in _grouped(((one["state"], one["why"]), one["name"]) for one in left):
        note(f"{state} {len(names)} ({why}): {_some(names)}")


def _findings(skills: Sequence[Mapping[str, Any]], *, verbose: bool) -> None:
    """As `scan` says them; those of one rule together, where they are many. Notes only with `verbose`."""
    seen = [(one["name"], held) for one in skills for held in one["findings"] if verbose or held["level"] != "note"]
    if verbose or len(seen) <= FEW_NOTES:
        for one in skills:
            note_lines(one["name"], one["findings"], notes=verbose)
        return
    for (level, code), names in _grouped(((finding["level"], finding["code"]), name) for name, finding in seen):
        note(f"{level}: {len(names)} × {code}: {_some(dict.fromkeys(names))}")


def _grouped(pairs: Iterable[tuple[tuple[str, str], str]]) -> list[tuple[tuple[str, str], list[str]]]:
    """The largest group first."""
    groups: dict[tuple[str, str], list[str]] = {}
    for key, name in pairs:
        groups.setdefault(key, []).append(name)
    return sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))


def _some(names: Iterable[str]) -> str:
    held = list(names)
    return ", ".join(held[:NAMED]) + (", …" if len(held) > NAMED else "")

"""The options of a command that changes skills."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple

from navigator_kernel.text import clean


class InstallOptions(NamedTuple):
    """`everything` means all skills but those that `exclude` names, `rename` is the name to install under, `dry_run`
    shows what would happen, `force` replaces edited files (a backup is kept), `offline` uses no network, `auth` allows
    the person's own credentials for this host, `link` also makes links in `.agents/skills`; `accept` are the rules
    whose block the person accepts, each `RULE` or `NAME:RULE`; with `choosing`, the choices are shown if a skill must
    be named. `root`, `place` and `reach` are the person's options for the project, for the place in it, and for how the
    source is reached."""

    everything: bool = False
    rename: str = ""
    dry_run: bool = False
    force: bool = False
    offline: bool = False
    auth: bool = False
    link: bool = False
    exclude: tuple[str, ...] = ()
    accept: Sequence[str] = ()
    choosing: bool = False
    root: str = ""
    place: tuple[str, ...] = ()
    reach: tuple[str, ...] = ()

    def undoing(self, name: str) -> str:
        """The hint about an edited skill: how to see its changes, and how to undo them."""
        restore = self.command("install", "--frozen", "--force", "--skill", name)
        return f"{self.command('verify', name)} names the changes; {restore} undoes them and keeps a copy"

    def command(self, verb: str, *words: str) -> str:
        """`navigator skill <verb> <words>` for the same place, safe to paste into a shell."""
        root = ["--root", self.root] if self.root else []
        more = (*self.place, *(self.reach if verb == "install" else ()))
        return clean(shlex.join(["navigator", *root, "skill", verb, *words, *more]), lines=False)

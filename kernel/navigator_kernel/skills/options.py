"""The options of a skill command."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from navigator_kernel.text import clean

Target: TypeAlias = Literal["claude", "agents"]


class InstallOptions(Struct, frozen=True, kw_only=True):
    """Where and how a skill command works. `user` means the person's own skills, `target` the folder `.claude/skills`
    or `.agents/skills`, None for both or the usual one; `link` also makes links in `.agents/skills`. `root` is the
    `--root` that the person typed.

    `trust_lock` is the person's agreement to every skill that the lock lists, as if each had been installed by command.

    `dry_run` shows what would happen, `force` replaces edited files (a backup is kept), `offline` uses no network,
    `auth` allows the person's own credentials for this host; `accept` are the rules whose block the person accepts,
    each `RULE` or `NAME:RULE`.

    For an update, or an install of what is here: `grown` agrees to skills that can do more than before, `agreed` to
    those whose new bytes have one of these digests.

    For an install: `everything` means all skills but those that `exclude` names, `rename` is the name to install under,
    `ref` a branch, tag or commit, `commit` the one that the person saw; with `choosing`, the choices are shown if a
    skill must be named."""

    user: bool = False
    target: Target | None = None
    link: bool = False
    root: str = ""
    dry_run: bool = False
    force: bool = False
    offline: bool = False
    auth: bool = False
    trust_lock: bool = False
    accept: Sequence[str] = ()
    grown: bool = False
    agreed: Sequence[str] = ()
    everything: bool = False
    exclude: Sequence[str] = ()
    rename: str = ""
    ref: str = ""
    commit: str = ""
    choosing: bool = False

    def undoing(self, name: str) -> str:
        """The hint about an edited skill: how to see its changes, and how to undo them."""
        restore = self.command("install", "--frozen", "--force", "--skill", name)
        return f"{self.command('verify', name)} names the changes; {restore} undoes them and keeps a copy"

    def command(self, verb: str, *words: str) -> str:
        """`navigator skill <verb> <words>` for the same place, safe to paste into a shell."""
        root = ["--root", self.root] if self.root else []
        place = ["--user"] if self.user else []
        if self.target and not self.link:  # a link is made beside the place of the skills
            place += ["--target", self.target]
        reach = ["--target", "agents", "--link"] if self.link else []
        reach += [f"--{name}" for name in ("auth", "offline") if getattr(self, name)]
        more = [*place, *(reach if verb == "install" else ())]
        return clean(shlex.join(["navigator", *root, "skill", verb, *words, *more]), lines=False)

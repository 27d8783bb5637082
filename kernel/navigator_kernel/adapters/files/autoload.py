"""The files that a person's own programs run or obey as soon as somebody enters a folder, and how they are disarmed.

A prompt calls `git status` in a folder, and the repository there names a program (`core.fsmonitor`); direnv, version
managers, editors and coding agents read files of their own. A workspace holds none of these: tools refuse to write one,
and those that a command left are renamed.
"""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import NamedTuple

from navigator_kernel.adapters.files.tree import Listing, entries_below, open_folder, read_inside, remove_tree
from navigator_kernel.errors import KernelError, Refused
from navigator_kernel.text import clean, escape_controls
from navigator_kernel.values.packet import DISARMED

MOST = 1_000_000  # entries of one folder that are looked at; the limit of the disk allows fewer
_NAME = 200  # bytes that are kept of a longer name, so that the suffix fits
_HEAD = 1024  # bytes that show whether a file is text

# Names as `plain_name` gives them, by the programs that read them unasked
_TABLE = {
    "version control": ".git git~? .hg .jj .svn .bzr .sl .pijul _darcs .fslckout _fossil_ .husky .githooks .hooks",
    "shells that load a folder's settings": """
        .envrc .direnv .env .env.leave .autoenv .autoenv.zsh .autoenv_leave.zsh .autoenv.sh .shadowenv.d .smartcd
        .ondirrc devenv.nix .devenv""",
    "version managers": """
        mise.toml mise.*.toml .mise.toml .mise.*.toml mise .mise .rtx.toml .rtx.*.toml .tool-versions .asdfrc .*-version
        .nvmrc .sdkmanrc .jabbarc .proto .prototools .pkgx.y*ml pkgx.y*ml rust-toolchain rust-toolchain.toml .cargo
        global.json""",
    "editors": """
        .vscode .idea .fleet .zed .vs .nova .theia .devcontainer .devcontainer.json .exrc .vimrc .nvimrc .nvim.lua
        .lvimrc .gvimrc .vimrc.lua .local.vimrc .dir-locals.el .dir-locals-2.el .kakrc .helix *.code-workspace""",
    "coding agents": """
        .claude .cursor .codex .gemini .windsurf .agents .qwen .roo .kiro .continue .aider.conf.yml .opencode .mcp.json
        .goose .amp .kimi .kimi-code
        opencode.json opencode.jsonc .cursorrules .windsurfrules .clinerules .goosehints claude.md claude.local.md
        agents.md agents.override.md gemini.md qwen.md crush.md warp.md""",
    "interpreters and debuggers": """
        *.pth sitecustomize.py usercustomize.py .pdbrc .pdbrc.py .gdbinit .lldbinit .irbrc .pryrc .rprofile .renviron
        .rdata .octaverc .ghci .ocamlinit .iex.exs .erlang .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs""",
    "file managers": ".directory desktop.ini autorun.inf",
}
# Scripts that set up a shell, in the `bin` of an environment that some shells enter by themselves
_ACTIVATE = "activate activate.* activate_this.py".split()
_BIN = frozenset({"bin", "scripts"})
_NAMES = [name for names in _TABLE.values() for name in names.split()]
_EXACT = frozenset(name for name in _NAMES if not set(name) & set("*?"))
_PATTERNS = tuple(name for name in _NAMES if name not in _EXACT)


class Disarmed(NamedTuple):
    """The path of a file or folder from the workspace before it was renamed, and after; "" if it had to be removed,
    because its folder was too deep to be looked at."""

    before: str
    after: str


@lru_cache(maxsize=8192)
def plain_name(name: str) -> str:
    """The form in which names of files are compared: as a disk compares them that ignores case, the form of characters,
    invisible characters, and dots and blanks at the end."""
    seen = unicodedata.normalize("NFKC", clean(name, lines=False)).casefold()
    seen = unicodedata.normalize("NFKC", seen)
    return seen.rstrip(". ") or seen


def is_autoloaded(name: str, folder: str = "") -> bool:
    """Whether a program of the person may run or obey a file or folder of this name, in a folder called `folder`,
    unasked."""
    plain = plain_name(name).partition(":")[0].rstrip(". ")  # after a colon, Windows has streams of the same file
    patterns = _PATTERNS if plain_name(folder) not in _BIN else (*_PATTERNS, *_ACTIVATE)
    return plain in _EXACT or (
        not plain.endswith(DISARMED) and any(fnmatchcase(plain, pattern) for pattern in patterns)
    )


def is_repository(names: Collection[str]) -> bool:
    """Whether a folder with these entries is a git repository without a work tree, or the folder of one
    (gitrepository-layout(5)); git finds it from inside."""
    plain = {plain_name(name) for name in names}
    return "head" in plain and ({"objects", "refs"} <= plain or "commondir" in plain)


def refuse_autoloaded(root: Path, parts: Sequence[str], *, by_name: bool = True) -> None:
    """Raises Refused for a file to write at `parts` below `root` that a program would run or obey unasked: one of the
    table, if `by_name`, or one that makes a folder a git repository."""
    written = escape_controls("/".join(parts))
    pairs = zip(parts, ("", *parts), strict=False)
    unsafe = next((part for part, folder in pairs if is_autoloaded(part, folder)), None) if by_name else None
    if unsafe is not None:
        hint = f"use another name, such as {unsafe.lstrip('.') or unsafe}.txt; in the project the person is asked"
        message = f"{written!r} is not written: programs of the person run or obey {unsafe!r} unasked"
        raise Refused(message, hint=hint, reason="autoload")
    for at, part in enumerate(parts):
        folder = root.joinpath(*parts[:at])
        try:
            names = os.listdir(folder)
        except OSError:
            return
        if is_repository({*names, part}):
            hint = "a workspace holds no repository: run git in one command, at whose end it is disarmed"
            raise Refused(
                f"{written!r} is not written: it would be part of a git repository", hint=hint, reason="autoload"
            )


def disarm(folder: Path) -> tuple[Disarmed, ...]:
    """Renames every file and folder below `folder` that a program would run or obey unasked, at any depth and whatever
    its mode, and returns them by path. For a git repository that is its `HEAD`, too: without it, git sees none.

    KernelError if one can be neither renamed nor removed.
    """
    seen, reached, folders = Listing(files={}), set[str](), set[str]()
    live: list[tuple[str, str]] = []
    for level, entries in entries_below(folder, seen, MOST):
        reached.add(level)
        names = {entry[0] for entry in entries}
        folders |= {f"{level}{name}/" for name, status in entries if stat.S_ISDIR(status.st_mode)}
        live += [(level, name) for name in names if _is_live(folder, level, name, names)]
    # What cannot be looked at goes first, then the deepest first, so that no path changes before it is used
    gone = [_removed(folder, path) for path in sorted(folders - reached) if seen.cut]
    changed = [_renamed(folder, *place) for place in sorted(live, key=lambda place: (-place[0].count("/"), place))]
    if seen.cut and not any(gone):
        message = "not every file of the workspace can be looked at"
        raise KernelError(message, hint=f"remove {str(folder)!r}, and do not enter it before")
    return tuple(_as_they_lie(sorted([*filter(None, gone), *filter(None, changed)])))


def disarmed_last(paths: Collection[str]) -> Iterator[str]:
    """The paths, with those that were disarmed after all others, so that a long list shows the results first."""
    yield from sorted(paths, key=lambda path: DISARMED in path)


def _is_live(folder: Path, level: str, name: str, names: Collection[str]) -> bool:
    if plain_name(name) == "head" and is_repository(names):
        return True
    return is_autoloaded(name, level.rstrip("/").rpartition("/")[2]) and not _are_weights(folder, level, name)


def _are_weights(folder: Path, level: str, name: str) -> bool:
    """Whether a `.pth` is a trained model: not text, and not where Python looks for `.pth` files."""
    parts = level.split("/")[:-1]
    if not plain_name(name).endswith(".pth") or {"site-packages", "dist-packages"} & {*map(plain_name, parts)}:
        return False
    try:
        return b"\0" in read_inside(folder, (*parts, name), _HEAD)
    except KernelError:
        return False


def _as_they_lie(disarmed: Sequence[Disarmed]) -> Iterator[Disarmed]:
    """The same, each with the folders around it as they are called now; a folder comes before what is in it."""
    folders: dict[str, str] = {}
    for entry in disarmed:
        around = [f"{entry.before[:at]}/" for at, sign in enumerate(entry.before) if sign == "/"]
        changed = next((path for path in reversed(around) if path in folders), "")
        after = f"{folders[changed]}{entry.after.removeprefix(changed)}" if entry.after and changed else entry.after
        folders[f"{entry.before}/"] = f"{after}/"
        yield Disarmed(entry.before, after)


def _renamed(folder: Path, level: str, name: str) -> Disarmed | None:
    short = os.fsdecode(os.fsencode(name)[:_NAME])
    short = "file" if is_autoloaded(f"{short}{DISARMED}") else short
    try:
        at = open_folder(folder, level.split("/")[:-1])
        try:
            names = (f"{short}{DISARMED}{number or ''}" for number in count())
            fresh = next(new for new in names if not _is_there(new, at))
            os.rename(name, fresh, src_dir_fd=at, dst_dir_fd=at)
        finally:
            os.close(at)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _problem(f"{level}{name}", error) from error
    return Disarmed(escape_controls(f"{level}{name}"), escape_controls(f"{level}{fresh}"))


def _is_there(name: str, at: int) -> bool:
    try:
        os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _removed(folder: Path, path: str) -> Disarmed | None:
    """Removes a folder that was not looked at: it is moved to the top first, where its path is short."""
    *parts, name = path.rstrip("/").split("/")
    fresh = f".gone-{os.urandom(8).hex()}"
    try:
        at, top = open_folder(folder, parts), open_folder(folder, ())
        try:
            os.rename(name, fresh, src_dir_fd=at, dst_dir_fd=top)
        finally:
            os.close(at)
            os.close(top)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _problem(path, error) from error
    if problems := remove_tree(folder / fresh):
        raise KernelError(f"{path!r} cannot be looked at or removed: {problems[0]}", hint="remove it by hand")
    return Disarmed(escape_controls(path), "")


def _problem(path: str, error: OSError) -> KernelError:
    message = f"{escape_controls(path)!r}, which programs run or obey unasked, cannot be renamed: {error.strerror}"
    return KernelError(message, hint="remove it by hand, and do not enter its folder before")

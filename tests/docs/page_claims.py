"""Reads the commands, flags, files and chores that a page names, and reports those that do not exist."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click

from navigator_kernel.cli.registry import navigator
from navigator_kernel.sandbox.authority import TABLE

TOP = Path(__file__).resolve().parents[2]
FOLDERS = ("docs", "bin", "agents", "kernel", ".claude", "tests", "mybox")
LANGUAGES = ("", "console", "bash", "sh", "text")  # of code fences with commands
MADE = frozenset(
    {path.partition("/<")[0] for right in TABLE for path in right.writes if "/" in path}
    | {".claude/skills/.navigator", ".claude/skills/skills.db", "mybox/.gitignore", "mybox/temp"}
)  # created at run time, so not in the source tree

_FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_GRANT = re.compile(r"Bash\(([^)]*)\)")  # an entry of `allowed-tools`, in the frontmatter of a page for host agents
_PIECE = re.compile(r"\s(?:\||&&|;|>)\s|\s\d?>(?=\S)|\s&$", re.MULTILINE)
_COMMENT = re.compile(r"\s#\s.*$")
_TOKEN = re.compile(r'"[^"]*"|\'[^\']*\'|<[^>]*>|[^\s\[\]]+')
_SCRIPT = re.compile(r"(?:\$ )?python3? (bin/\S+)(.*)", re.DOTALL)
_PROGRAM = re.compile(r"(?:\$ )?navigator(?=\s|$)(.*)", re.DOTALL)
_CHORE = re.compile(r"(?:\$ )?make ([a-z][a-z-]*)\b")
_PIP = re.compile(r"(?:\$ )?(?:\S+/)?(?:pip|pipx|uv)\b.*?\binstall .*?(navigator-kernel\b|'\.\[([^]]*)\]')")
_FILE = re.compile(rf"(?:{'|'.join(map(re.escape, FOLDERS))})/\S*")


def problems(page: str, top: Path = TOP) -> list[str]:
    """Everything that `page` names and that does not exist, each with the words of the page."""
    pieces = [piece.strip() for code in _codes(page) for piece in _PIECE.split(_COMMENT.sub("", code))]
    found = [problem for piece in pieces for problem in _of(piece, top)]
    return found + [problem for span in _spans(page) for problem in _file(span, top)]


def _codes(page: str) -> Iterator[str]:
    """Everything that can be a command: spans, lines of fences, and calls that a host agent is allowed to make."""
    yield from _spans(page)
    for language, body in _FENCE.findall(page):
        if language.partition(" ")[0] in LANGUAGES:
            yield from body.splitlines()
    head = page.split("---\n")[1] if page.startswith("---\n") else ""
    yield from (re.sub(r":?\*$", "", grant).rstrip() for grant in _GRANT.findall(head))


def _spans(page: str) -> list[str]:
    """Inline code, each span on one line; a span does not cross a blank line."""
    paragraphs = _FENCE.sub("\n\n", page).split("\n\n")
    return [" ".join(body.split()) for part in paragraphs for _, body in _SPAN.findall(part)]


def _of(code: str, top: Path) -> Iterator[str]:
    if hit := _CHORE.match(code):
        targets = re.findall(r"^([a-z][a-z-]*):", (top / "Makefile").read_text("utf-8"), re.MULTILINE)
        if hit.group(1) not in targets:
            yield f"no chore: make {hit.group(1)}"
    if hit := _PIP.match(code):
        extras = tomllib.loads((top / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
        wrong = [name for name in (hit.group(2) or "").split(",") if name and name not in extras]
        yield from (f"no extra: {name}" for name in wrong)
        if not hit.group(2):
            yield "the package is on no index"
    if hit := _PROGRAM.match(code):
        yield from _command(navigator, _TOKEN.findall(hit.group(1)), "navigator")
    if hit := _SCRIPT.match(code):
        script = top / hit.group(1)
        if script.is_file():
            yield from _command(_started_by(script), _TOKEN.findall(hit.group(2)), hit.group(1))
        elif hit.group(1) != "bin/":  # `Bash(python bin/*)` means every script
            yield f"no script: {hit.group(1)}"


def _started_by(script: Path) -> click.Command:
    """The command that a script of `bin/` runs: the first word that it passes to `main`, or `navigator` without one."""
    hit = re.search(r'main\(\["(\w+)"', script.read_text("utf-8"))
    held = navigator.get_command(click.Context(navigator), hit.group(1)) if hit else navigator
    assert held is not None, script
    return held


def _command(command: click.Command, tokens: list[str], said: str) -> Iterator[str]:
    """The problems with `tokens` as the words of `command`; placeholders match anything."""
    context = click.Context(command)
    room = sum(item.nargs for item in command.params if isinstance(item, click.Argument))
    unbounded = any(item.nargs < 0 for item in command.params)
    words = iter(tokens)
    for token in words:
        if token == "--":  # the words after it belong to another program
            return
        if token.startswith("-") and len(token) > 1:
            option = _option(command, token.partition("=")[0])
            if option is None:
                yield f"no flag: {said} {token}"
                return  # the next word may or may not be its value
            if not (option.is_flag or option.count or "=" in token):
                next(words, None)
        elif isinstance(command, click.Group):
            if token.startswith(("<", "…")):
                return
            held = command.get_command(context, token) if token in command.list_commands(context) else None
            if held is None:
                yield f"no command: {said} {token}"
            else:
                yield from _command(held, list(words), f"{said} {token}")
            return
        elif not unbounded and (room := room - 1) < 0:
            yield f"too many words: {said} {token}"


def _option(command: click.Command, flag: str) -> click.Option | None:
    held = [item for item in command.get_params(click.Context(command)) if isinstance(item, click.Option)]
    return next((item for item in held if flag in (*item.opts, *item.secondary_opts)), None)


def _file(span: str, top: Path) -> Iterator[str]:
    """Checks a path: with a placeholder, the folder before it must exist; with `*`, something must match."""
    if not _FILE.fullmatch(span) or (top / span).exists():
        return
    known, placeholder, _ = span.partition("<")
    known = known if not placeholder else known.rpartition("/")[0]
    if any(known == made or known.startswith((f"{made}/", f"{made}.")) for made in MADE) or known.rstrip("/") in MADE:
        return
    if (placeholder and (top / known).exists()) or ("*" in known and any(top.glob(known))):
        return
    yield f"no file: {span}"

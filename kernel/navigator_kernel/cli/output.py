"""Prints answers: data to stdout, everything else to stderr, foreign text cleaned."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from unicodedata import combining, east_asian_width

from navigator_kernel.language.chinese import in_language
from navigator_kernel.text import Language, clean, escaped

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

    from navigator_kernel.values.packet import Style


GAP = 2  # spaces between the columns of a table
WIDE = 100  # columns of a text that are easy to read
TEXT = 30  # minimum width of a description, in columns


def document(body: Mapping[str, Any], *, whole: bool = False) -> None:
    """Prints the one JSON document of a `--json` command. `exit_code` is 0 unless `body` says otherwise; it is not
    added if `body` is `whole`, in the form of another standard."""
    body = body if whole else {"exit_code": 0, **body}
    plain = (sys.stdout.encoding or "ascii").lower().replace("-", "") != "utf8"
    text = json.dumps(body, ensure_ascii=plain, indent=1, default=str)
    text = text if text.isascii() and "\x7f" not in text else escaped(text)
    sys.stdout.write(text.encode("utf-8", "backslashreplace").decode() + "\n")


def lines(text: str | Iterable[str]) -> None:
    """Prints data for a person: a text, or lines, each of which stays one line."""
    if isinstance(text, str):
        sys.stdout.write(clean(text) + "\n")
        return
    for line in text:
        sys.stdout.write(clean(line, lines=False) + "\n")


def model_text(text: str) -> None:
    """Prints a model's text, on a terminal as it is meant to look."""
    if is_formatted():
        from rich.markdown import Markdown

        _screen().print(Markdown(clean(text), hyperlinks=False))
        sys.stdout.flush()
    else:
        lines(text)


def is_formatted() -> bool:
    """Whether a model's text is shown as Markdown: a terminal can move its cursor."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def draft(text: str, live: Live | None) -> Live:
    """Shows the beginning of a paragraph in the place of the one that `live` shows; its `stop` takes it away."""
    from rich.live import Live
    from rich.markdown import Markdown

    if live is None:
        live = Live(console=_screen(), transient=True, auto_refresh=False)
        live.start()
    live.update(Markdown(clean(text), hyperlinks=False), refresh=True)
    return live


def _screen() -> Console:
    from rich.console import Console

    columns = os.get_terminal_size(sys.stdout.fileno()).columns or 80
    return Console(file=sys.stdout, highlight=False, width=min(columns, WIDE))


def note(text: str, *, dim: bool = False) -> None:
    """Prints `text` on stderr as one line, whatever names are in it, in the person's language; a `dim` one is cut to
    the terminal."""
    line = clean(in_language(text, spoken()), lines=False)
    if dim and sys.stderr.isatty():
        line = cut(line, os.get_terminal_size(sys.stderr.fileno()).columns or None)
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        line = line if plain else f"\x1b[2m{line}\x1b[0m"
    sys.stderr.write(line + "\n")


def say_lines(text: str | Iterable[str]) -> None:
    """Prints the kernel's own sentences as data for a person, in their language; what is none stays as it is."""
    language = spoken()
    lines(in_language(text, language) if isinstance(text, str) else [in_language(line, language) for line in text])


def spoken() -> Language:
    """The language of the command that runs; English where none does."""
    click = sys.modules.get("click")
    context = click.get_current_context(silent=True) if click else None
    language: Language = getattr(context.find_root().obj, "spoken", "en") if context else "en"
    return language


def is_attended() -> bool:
    """Whether a person reads the output: neither stdout nor stderr goes into a pipe or a file."""
    return sys.stdout.isatty() and sys.stderr.isatty()


def is_asked() -> bool:
    """Whether a person can see choices and type: stdin and stderr are a terminal that can move its cursor."""
    return sys.stdin.isatty() and sys.stderr.isatty() and os.environ.get("TERM", "dumb") not in {"dumb", "unknown"}


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    spare: Sequence[str] = (),
    whole: str = "",
    language: Language | None = None,
) -> None:
    """Prints columns that line up on the screen, with Chinese characters two wide; the last is cut to the terminal.
    `language` is that of the heads, by default the command's.

    On a terminal that is too narrow the `spare` columns are left out in their order, and the `whole` one, which is
    meant to be copied, has a line of its own below each row. In a pipe nothing is cut or left out.
    """
    body = [[clean(cell, lines=False) for cell in row] for row in rows]
    heads = _translated(head) if (language or spoken()) == "zh" else [*head]
    widths = [max(map(width, column)) for column in zip(heads, *body, strict=True)]
    limit = os.get_terminal_size().columns if sys.stdout.isatty() else None
    apart = head.index(whole) if whole and limit and sum(widths) + GAP * (len(widths) - 1) > limit else None
    shown = [at for at in range(len(head)) if at != apart]
    for name in spare if limit else ():
        needed = sum(widths[at] + GAP for at in shown[:-1]) + min(widths[shown[-1]], TEXT)
        if needed <= (limit or 0):
            break
        shown = [at for at in shown if head[at] != name]
    for count, row in enumerate((heads, *body)):
        line = (" " * GAP).join(padded(row[at], widths[at]) for at in shown).rstrip()
        sys.stdout.write(cut(line, limit) + "\n")
        if count and apart is not None and row[apart]:
            sys.stdout.write(f"  {row[apart]}\n")


def _translated(head: Sequence[str]) -> list[str]:
    from navigator_kernel.language.wording import worded

    return [worded("head", name, "zh") for name in head]


def style_of(wanted: str) -> Style:
    """The style; `auto` means emoji if the terminal's encoding has them (X-20)."""
    if wanted == "emoji":
        return "emoji"
    if wanted == "ascii":
        return "ascii"
    try:
        "✅⚠️⏸️❌⏱️".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return "ascii"
    return "emoji"


def padded(text: str, columns: int) -> str:
    """`text`, cut or filled to this number of columns."""
    text = cut(text, columns)
    return text + " " * (columns - width(text))


def width(text: str) -> int:
    """The number of columns that `text` takes on a terminal."""
    if text.isascii():
        return len(text)

    return sum(0 if combining(mark) else 2 if east_asian_width(mark) in "WF" else 1 for mark in text)


def cut(line: str, limit: int | None) -> str:
    """`line` in at most `limit` columns, with an ellipsis if it was cut."""
    if limit is None or width(line) <= limit:
        return line
    beginning, room = "", limit - 1
    for mark in line:
        room -= width(mark)
        if room < 0:
            break
        beginning += mark
    return beginning + "…"

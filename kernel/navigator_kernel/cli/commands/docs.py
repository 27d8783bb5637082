"""`navigator docs`: shows the pages of this release in the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import click
from msgspec import Struct

from navigator_kernel.bootstrap.places import shipped_home
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, lines, table
from navigator_kernel.cli.project import App
from navigator_kernel.errors import NotFound, unknown_name
from navigator_kernel.text import Language, clean, lazy_compile, suggestions

WIDEST = 100  # columns: longer lines are hard to read


@click.command("docs")
@click.argument(
    "page", required=False, shell_complete=lambda _c, _p, typed: [one for one in page_files() if one.startswith(typed)]
)
@json_option
@pass_app
def command(app: App, *, page: str | None, as_json: bool) -> None:
    """Show a page of the documentation, or list all pages; in a pipe, print PAGE as Markdown."""
    if page is None:
        pages = [read_page(name, app.spoken) for name in page_files()]
        if as_json:
            document({"pages": [{"page": one.name, "title": one.title, "summary": one.summary} for one in pages]})
        else:
            table(("page", "what it is about"), [(one.name, one.summary) for one in pages])
        return
    shown = read_page(page, app.spoken)
    if as_json:
        document({"page": shown.name, "title": shown.title, "text": shown.text})
    elif sys.stdout.isatty():
        _show(shown.text)
    else:
        lines(shown.text.removesuffix("\n"))


def _show(text: str) -> None:
    """Renders Markdown, in a pager if it is longer than the terminal."""
    from rich.console import Console
    from rich.markdown import Markdown

    size = os.get_terminal_size()
    console = Console(width=min(size.columns, WIDEST))
    with console.capture() as captured:
        console.print(Markdown(clean(text), hyperlinks=False))
    shown = captured.get()
    if shown.count("\n") < size.lines:
        click.echo(shown, nl=False)
    else:
        click.echo_via_pager(shown)


# Finds the pages of this release and reads them for a terminal: `docs/` in the source tree, else in the package.

FOLDERS = ("guides", "concepts", "reference", "")
LEFT_OUT = frozenset(
    "index CODE_OF_CONDUCT CONTRIBUTING library routing-errors scanned-repositories first-skills requirements".split()
)

_COMMENT = lazy_compile(r"(?s)<!--(?:(?!<!--).)*?-->\n?")
_PICTURE = lazy_compile(r"!\[[^\][]*\]\([^()]*\)\n?")
_OWN_LINK = lazy_compile(r"\[([^\][]+)\]\((?!https?:)[^()]*\)")
_LINK = lazy_compile(r"\[([^\][]+)\]\([^()]*\)")
_END = lazy_compile(r"(?<=[.!?])\s|(?<=[。！？])")


class Page(Struct, frozen=True):
    """One page as it is read: its Markdown without comments, pictures and links to other pages."""

    name: str
    text: str

    @property
    def title(self) -> str:
        return self.text.partition("\n")[0].removeprefix("# ")

    @property
    def summary(self) -> str:
        return first_sentence(self.text)


def page_files(language: Language = "en") -> Mapping[str, Path]:
    """Name → file of every page, in the order to read them; for Chinese, the translation if there is one."""
    top = shipped_home().docs
    files = {}
    for page in (path for folder in FOLDERS for path in sorted((top / folder).glob("*.md"))):
        if page.stem not in LEFT_OUT:
            translated = top / "zh" / page.relative_to(top)
            files[page.stem.lower()] = translated if language == "zh" and translated.is_file() else page
    return files


def read_page(name: str, language: Language = "en") -> Page:
    """The page called `name`. NotFound with similar names."""
    files = page_files(language)
    if name not in files:
        message, near = f"no page is called {name!r}", suggestions(name, files)
        raise unknown_name(NotFound, message, near, hint="navigator docs lists all pages")
    text = _COMMENT.sub("", files[name].read_text("utf-8"))
    return Page(name=name, text=_OWN_LINK.sub(r"\1", _PICTURE.sub("", text)))


def first_sentence(text: str) -> str:
    """The first sentence of a page's first paragraph, without markup."""
    for block in _COMMENT.sub("", text).split("\n\n"):
        plain = " ".join(block.split())
        if plain and not plain.startswith(("#", "|", "!", "```", "<", ":::")):
            plain = _LINK.sub(r"\1", plain).replace("`", "").replace("**", "").lstrip("- ")
            return _END.split(plain, 1)[0].rstrip(":：")
    return ""

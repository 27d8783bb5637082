"""Finds the pages of this release and reads them for a terminal: `docs/` in the source tree, else in the package."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from navigator_kernel.bootstrap.places import shipped_home
from navigator_kernel.errors import NotFound
from navigator_kernel.text import Language, lazy_compile, suggestions

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
    found = [path for folder in FOLDERS for path in sorted((top / folder).glob("*.md")) if path.stem not in LEFT_OUT]
    return {path.stem.lower(): _translated(path, top) if language == "zh" else path for path in found}


def read_page(name: str, language: Language = "en") -> Page:
    """The page called `name`. NotFound with similar names."""
    files = page_files(language)
    if name not in files:
        near = suggestions(name, files)
        hint = f"did you mean {', '.join(near)}?" if near else "navigator docs lists all pages"
        raise NotFound(f"no page is called {name!r}", hint=hint, suggestions=near)
    text = _COMMENT.sub("", files[name].read_text("utf-8"))
    return Page(name=name, text=_OWN_LINK.sub(r"\1", _PICTURE.sub("", text)))


def _translated(page: Path, top: Path) -> Path:
    own = top / "zh" / page.relative_to(top)
    return own if own.is_file() else page


def first_sentence(text: str) -> str:
    """The first sentence of a page's first paragraph, without markup."""
    for block in _COMMENT.sub("", text).split("\n\n"):
        plain = " ".join(block.split())
        if plain and not plain.startswith(("#", "|", "!", "```", "<", ":::")):
            plain = _LINK.sub(r"\1", plain).replace("`", "").replace("**", "").lstrip("- ")
            return _END.split(plain, 1)[0].rstrip(":：")
    return ""

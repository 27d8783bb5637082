"""A Markdown extension for the Chinese site: links to English pages lead to the pages that were built from them.

The English pages are not in the folder of the Chinese ones, so the builder leaves such links as they are written.
"""

from __future__ import annotations

import re

from markdown import Markdown
from markdown.extensions import Extension
from markdown.postprocessors import Postprocessor

_ENGLISH = re.compile(r'(href="(?:\.\./)+[^":]*?)(README|[^"/]+)\.md(?=[#"])')


class EnglishLinks(Extension):  # type: ignore[misc] # the package has no types
    """Adds the change of links after everything else."""

    def extendMarkdown(self, md: Markdown) -> None:
        md.postprocessors.register(_Links(md), "english_links", -10)


class _Links(Postprocessor):  # type: ignore[misc] # the package has no types
    """`../guides/http.md` becomes `../guides/http.html`, and the README.md of a folder its index.html."""

    def run(self, text: str) -> str:
        return _ENGLISH.sub(lambda found: f"{found[1]}{'index' if found[2] == 'README' else found[2]}.html", text)


def makeExtension(**given: object) -> EnglishLinks:
    """Called by Markdown with the extension's settings, of which there are none."""
    return EnglishLinks(**given)

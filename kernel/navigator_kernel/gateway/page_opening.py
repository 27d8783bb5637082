"""Opens the page in the person's browser, signed in.

The token is in a file that only the person can read, and the browser gets the file's name: everybody on the machine can
read an argument of a process.
"""

from __future__ import annotations

import html
import webbrowser
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from navigator_kernel.errors import NotFound
from navigator_kernel.gateway.gateway import open_tokens

if TYPE_CHECKING:
    from navigator_kernel.bootstrap.project import Project

LIFE = timedelta(hours=12)
_FORM = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={}"><title>Navigator</title>\n'


class PageOpener:
    """Opens the page of one project; `close` removes what `open` made."""

    def __init__(self, project: Project) -> None:
        self._tokens, self._writer = open_tokens(project), project.state_writer
        self._file = project.state.folder / "open-page.html"
        self._made: list[str] = []

    def open(self, url: str) -> bool:
        """Opens the page and returns whether a browser was found."""
        held, text = self._tokens.create("admin", "page", LIFE)
        self._made.append(held.id)
        form = _FORM.format(html.escape(f"{url}/#token={text}"))
        self._writer.write(self._file, form.encode(), mode=0o600)
        return webbrowser.open(self._file.as_uri())

    def close(self) -> None:
        """Removes the token and the file."""
        for name in self._made:
            with suppress(NotFound):
                self._tokens.revoke(name)
        if self._made:
            self._writer.remove(self._file)

"""Opens the page in the person's browser, signed in.

The token lies in a file that only the person can read, and the browser is given the file's name: an argument of a
process can be read by everybody on the machine.
"""

from __future__ import annotations

import html
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from navigator_kernel.bootstrap.parts import state_writer
from navigator_kernel.bootstrap.places import project_state
from navigator_kernel.errors import NotFound
from navigator_kernel.gateway.gateway import open_tokens

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LIFE = timedelta(hours=12)
_FORM = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={}"><title>Navigator</title>\n'


@contextmanager
def page_opener(root: Path) -> Iterator[Callable[[str], bool]]:
    """Opens an address, and says whether a browser was found. At the end the token is removed, and the file."""
    state, tokens = project_state(root), open_tokens(root)
    writer, file = state_writer(state), state.folder / "open-page.html"
    made: list[str] = []

    def open_page(url: str) -> bool:
        held, text = tokens.create("admin", "page", LIFE)
        made.append(held.id)
        writer.write(file, _FORM.format(html.escape(f"{url}/#token={text}")).encode(), mode=0o600)
        return webbrowser.open(file.as_uri())

    try:
        yield open_page
    finally:
        for name in made:
            with suppress(NotFound):
                tokens.revoke(name)
        if made:
            writer.remove(file)

"""Turns a page of HTML into readable text, in a child process: see `module_child.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin

from navigator_kernel.adapters.processes.module_child import serve
from navigator_kernel.text import lazy_compile

# Elements that are not text for a reader; they are left out with their contents
_LEFT_OUT = frozenset(
    {"script", "style", "template", "svg", "math", "iframe", "object", "canvas", "select", "noscript"}
)
_VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())
_BLOCKS = frozenset(
    "address article aside blockquote body dd details div dl dt fieldset figcaption figure footer form header hr html "
    "main nav ol p section summary table tbody tfoot thead ul".split()
)
_BLANKS = lazy_compile(r"\s+")
_EMPTY_LINES = lazy_compile(r"\n{3,}")
_NO_TEXT = lazy_compile(r"\[\s*+\]\([^)(\s]*+\)")  # a link without its text
_HEADS = {f"h{level}": f"{'#' * level} " for level in range(1, 7)}


def answer(question: Mapping[str, Any]) -> dict[str, Any]:
    """`{html, url}` → `{title, text}`: links with their whole addresses, headings, lists and tables as in Markdown."""
    reader = _Reader(str(question["url"]))
    reader.feed(str(question["html"]))
    reader.close()
    return {"title": " ".join("".join(reader.title).split()), "text": _tidied("".join(reader.found))}


class _Reader(HTMLParser):
    def __init__(self, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self.url, self.found, self.title = url, [""], [""]
        self._hidden: list[str] = []  # the open element that is left out, and those of the same name inside it
        self._links: list[str] = []
        self._in_title, self._as_it_is = False, 0

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        held = dict(attrs)
        if self._hidden:
            self._hidden += [tag] if tag == self._hidden[0] else []
        elif tag not in _VOID and (tag in _LEFT_OUT or _is_hidden(held)):
            self._hidden = [tag]
        elif tag == "title":
            self._in_title = True
        elif tag == "a":
            self._links.append(self._address(held.get("href")))
            self.found.append("[" if self._links[-1] else "")
        elif tag == "img":
            self.found.append(f" {held.get('alt') or ''} ")
        else:
            self._begin(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._hidden:
            self._hidden = self._hidden[:-1] if tag == self._hidden[0] else self._hidden
        elif tag == "title":
            self._in_title = False
        elif tag == "a" and self._links:
            address = self._links.pop()
            self.found.append(f"]({address})" if address else "")
        else:
            self._as_it_is -= tag == "pre" and self._as_it_is > 0
            self.found.append("\n\n" if tag in _HEADS or tag in _BLOCKS or tag == "pre" else "")

    def handle_data(self, data: str) -> None:
        if self._hidden:
            return
        if self._in_title:
            self.title.append(data)
        else:
            self.found.append(data if self._as_it_is else _BLANKS.sub(" ", data))

    def _begin(self, tag: str) -> None:
        self._as_it_is += tag == "pre"
        marks = {"br": "\n", "tr": "\n", "li": "\n- ", "td": " | ", "th": " | ", "pre": "\n\n"}
        self.found.append(marks.get(tag) or (f"\n\n{_HEADS[tag]}" if tag in _HEADS else "\n\n" * (tag in _BLOCKS)))

    def _address(self, written: str | None) -> str:
        """The whole address, empty if it does not lead to a page."""
        try:
            whole = urljoin(self.url, (written or "").strip())
        except ValueError:
            return ""
        is_page = whole.startswith(("https://", "http://")) and not (written or "").startswith("#")
        return whole if is_page else ""


def _is_hidden(held: Mapping[str, str | None]) -> bool:
    style = (held.get("style") or "").replace(" ", "").lower()
    return "hidden" in held or "display:none" in style or "visibility:hidden" in style


def _tidied(text: str) -> str:
    lines = (line.rstrip() if line.strip() else "" for line in text.split("\n"))
    text = _EMPTY_LINES.sub("\n\n", "\n".join(lines))
    return _NO_TEXT.sub("", text).strip()


if __name__ == "__main__":
    serve(answer)

"""Builds the site in both languages; a link or an anchor that leads nowhere ends it with 1.

`python tests/maintenance/build_site.py zensical material` builds it with both programs, the first into `build/site`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

TOP = Path(__file__).resolve().parents[2]
BUILD = TOP / "build"


def main() -> int:
    """The exit code: 1 where something is not built, or leads nowhere."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", choices=["zensical", "material"], default=["zensical"])
    dead = []
    for program in parser.parse_args().programs:
        site = BUILD / ("site" if program == "zensical" else "site-material")
        build(program, site)
        dead += [f"{program}: {line}" for line in dead_links(site)]
    print(*dead, sep="\n" if dead else "", end="\n" if dead else "")
    return 1 if dead else 0


def build(program: str, site: Path) -> None:
    """Builds English into `site` and Chinese into its folder `zh`; on a warning, prints it and ends with 1."""
    for config, out in (("mkdocs.yml", site), ("mkdocs.zh.yml", site / "zh")):
        if program == "zensical":
            argv = ["zensical", "build", "--clean", "--strict", "--config-file", config]
        else:
            argv = ["mkdocs", "--quiet", "build", "--strict", "--config-file", config, "--site-dir", str(out)]
        env = os.environ | {"PYTHONPATH": str(TOP / "tests" / "maintenance"), "NO_COLOR": "1"}
        done = subprocess.run(
            [sys.executable, "-m", *argv], cwd=TOP, env=env, capture_output=True, text=True, check=False
        )
        if done.returncode:
            sys.exit(f"{' '.join(argv)}\n{done.stdout}{done.stderr}")


def dead_links(site: Path) -> Iterator[str]:
    """`page: address` for each address of a built page that leads to no file or no anchor of the site."""
    found = sorted(site.rglob("*.html"))
    pages = {path: _read(path) for path in found if path.name != "404.html"}  # the error page is served at any address
    for path, page in pages.items():
        for address in page.addresses:
            parts = urlsplit(address)
            target = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
            anchor = unquote(parts.fragment) if target in pages else ""
            if parts.scheme or parts.netloc:
                continue
            if not target.is_file() or (anchor and anchor not in pages[target].anchors):
                yield f"{path.relative_to(site)}: {address}"


class _Page(HTMLParser):
    """Collects the addresses and the anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, _tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in {"id", "name"} and value:
                self.anchors.add(value)
            elif name in {"href", "src"} and value:
                self.addresses.append(value)


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text("utf-8"))
    return page


if __name__ == "__main__":
    sys.exit(main())

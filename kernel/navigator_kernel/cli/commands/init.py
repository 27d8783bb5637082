"""`navigator init`: makes a folder a project and leaves existing files unchanged."""

from __future__ import annotations

import re
from pathlib import Path

import click

from navigator_kernel.adapters.stores.project_state import BOX, IGNORED
from navigator_kernel.bootstrap.places import shipped_home
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, say_lines
from navigator_kernel.cli.project import App
from navigator_kernel.text import lazy_compile, numbered

_PAGES = ("commands.md", "filesystem.md", "skills-mapping.md")
_COG = lazy_compile(r"<!-- \[\[\[(?:cog(?:(?!<!--).)*?\]\]\]|end\]\]\]) -->\n", re.DOTALL)


@click.command("init")
@click.option("--workstation", is_flag=True, help="Also write the pages in docs/ that coding agents read.")
@click.option("--dry-run", is_flag=True, help="Only show what would be written.")
@json_option
@pass_app
def command(app: App, *, workstation: bool, dry_run: bool, as_json: bool) -> None:
    """Make the current folder (or --root) a project: mybox/, which git ignores but for its workflows."""
    root = Path(app.root_flag).resolve() if app.root_flag else Path.cwd()
    wanted = {root / BOX / ".gitignore": IGNORED}
    if workstation:
        docs = shipped_home().docs
        wanted |= {root / "docs" / page: _COG.sub("", (docs / page).read_text("utf-8")).encode() for page in _PAGES}
    fresh = {path: data for path, data in wanted.items() if not path.exists()}
    writer = Project(root).writer_for("setup")
    for path, data in fresh.items():
        if not dry_run:
            writer.write(path, data)
    names = [path.relative_to(root).as_posix() for path in fresh]
    if as_json:
        document({"root": str(root), "written": names, "dry_run": dry_run, "exit_code": 0})
    else:
        say_lines([*names, f"{numbered(len(names), 'file')} {'would be ' if dry_run else ''}written"])

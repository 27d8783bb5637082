"""What the commands of plugins need: the option `--json`, output that is cleaned and translated like the kernel's, and
the parts of a project that carry out packets of other machines.

Data goes to stdout, everything else to stderr. `json_option` gives a command the argument `as_json`; `document` prints
its one JSON document, with `exit_code`. `lines` prints data as it is, `say_lines` and `note` sentences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from navigator_kernel.cli.app import json_option
from navigator_kernel.cli.output import document, lines, note, say_lines
from navigator_kernel.config.settings import load_settings

if TYPE_CHECKING:
    from pathlib import Path

    from navigator_kernel.ports import DispatchPorts

__all__ = ["dispatch_ports", "document", "json_option", "lines", "note", "say_lines"]


def dispatch_ports(root: Path, skills: Path | None = None, at: Path | None = None) -> DispatchPorts:
    """The parts of the project at `root` that a worker uses; the skills of the folder `skills` come first in it. With
    `at`, they work on the files of that folder, with the skills, settings and state of the project."""
    from navigator_kernel.bootstrap.project import Project
    from navigator_kernel.skills.catalog.listing import Root

    project = Project(root, load_settings(root))
    if skills is not None:
        project.roots = (Root(path=skills, level="project"), *project.roots)
    if at is not None:
        elsewhere = Project(at, project.settings)
        elsewhere.roots, elsewhere.state = project.roots, project.state
        project = elsewhere
    return project.dispatch_ports

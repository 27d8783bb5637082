"""The command `navigator skill`, also available as `bin/skill_manager.py`."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import click

from navigator_kernel.cli.project import App

# Each command's module is imported when it is called: most need little.
COMMANDS: Mapping[str, str] = {
    **dict.fromkeys(("list", "search", "info", "verify", "scan", "usage"), "skill.look"),
    **dict.fromkeys(("install", "uninstall", "update", "outdated", "rollback", "repair"), "skill.change"),
    **dict.fromkeys(("enable", "disable", "trust", "distrust", "record"), "skill.trust"),
    "doctor": "commands.doctor",
    **dict.fromkeys(("learn", "new"), "skill.learn"),
    "optimize": "skill.optimize",
    **dict.fromkeys(("export", "import-lock", "convert", "formats", "cache", "mapping", "validate"), "skill.files"),
}


class Verbs(click.Group):
    """A group whose commands are found by name."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"navigator_kernel.cli.{COMMANDS[cmd_name]}")
        command: click.Command = module.COMMANDS[cmd_name]
        return command


@click.group("skill", cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.pass_context
def command(ctx: click.Context) -> None:
    """Install, find, update and remove skills."""
    ctx.ensure_object(App)

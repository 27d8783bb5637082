"""All commands by name; a command's module is imported when the command is called. Plugins add commands, which are
imported for `--help`, too."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from navigator_kernel import __version__, guard
from navigator_kernel.errors import KernelError
from navigator_kernel.text import suggestions

if TYPE_CHECKING:
    from navigator_kernel.plugins import Plugins

_HOOK = "kernel_register_commands"
_PLUGIN = "navigator.plugin"  # in a context's `meta`: the plugin whose command runs
_COMMANDS = "navigator.commands"  # and the commands of plugins

# name → (module, or module:command, help); the help is here so that `navigator --help` loads nothing
COMMANDS: Mapping[str, tuple[str, str]] = {
    "agent": ("commands.agent", "Subagents: list"),
    "ask": ("chat.ask", "Send one message and print the reply"),
    "chat": ("chat.chat", "Start a conversation"),
    "completion": ("completion", "Print the shell completion for bash, zsh or fish"),
    "config": ("commands.config", "Settings: list, get, set, unset"),
    "diff": ("commands.runs:diff", "Show what a run's tools changed in the project"),
    "docs": ("commands.docs", "Show the pages of the documentation"),
    "doctor": ("commands.doctor", "Find missing and damaged parts, and repair them"),
    "eval": ("skill.eval", "Check that messages reach the skills that their evals expect"),
    "files": ("commands.runs:files", "List the files that runs made, and copy them to the project"),
    "gc": ("commands.doctor:gc", "Remove temporary files and old logs"),
    "host": ("commands.host", "Coding agents: install, list, uninstall; for Claude Code, Codex, Gemini CLI and others"),
    "init": ("commands.init", "Make this folder a project"),
    "log": ("commands.runs:log", "Show the audit log: what was allowed, refused, run and written"),
    "mcp": ("commands.mcp", "MCP: serve your skills to other agents; add servers, approve and call their tools"),
    "model": ("commands.model", "Models: list, test, use, key"),
    "plugin": ("commands.plugin", "Plugins: list, trust, distrust"),
    "policy": (
        "commands.policy",
        "What a skill may do here and which may be installed, and which rule says so: explain, show",
    ),
    "profile": ("commands.profile", "Named sets of skills that are on here: list, show, save, use, remove"),
    "project": (
        "commands.project",
        "Projects and their states: show, list, adopt, forget, trust, distrust",
    ),
    "route": ("route.route", "Show which skill a message would be routed to"),
    "serve": ("commands.serve", "Serve this project over HTTP: chat, events, skills and OpenAI's API"),
    "session": ("commands.session", "Conversations that were kept: list, show, resume, export, delete"),
    "skill": ("skill", "Skills: info, install, list, search, uninstall, enable, disable, trust"),
    "workflow": ("commands.workflow", "Stored workflows and their runs: list, show, run, resume, approve, abort"),
    "usage": ("commands.runs:usage", "Sum up what models took: tokens, cache hits, cost"),
    "undo": ("commands.runs:undo", "Undo what a run's tools changed in the project"),
    "why": ("commands.runs:why", "Explain the choice of a past turn"),
}


# short form → (command of `navigator skill`, help)
EVERYDAY: Mapping[str, tuple[str, str]] = {
    "install": ("install", "Install skills from a repository, a folder or an archive"),
    "add": ("install", "The same as install"),
    "search": ("search", "Find an installed skill by words"),
    "list": ("list", "List installed skills"),
    "info": ("info", "Show an installed skill, or the skills of a source"),
    "outdated": ("outdated", "List installed skills that have updates"),
    "update": ("update", "Update installed skills from their sources"),
    "verify": ("verify", "Check installed skills against their receipts"),
    "rollback": ("rollback", "Return to an earlier skills.lock.json"),
    "enable": ("enable", "Switch an installed skill on"),
    "disable": ("disable", "Switch an installed skill off"),
    "uninstall": ("uninstall", "Remove installed skills"),
    "remove": ("uninstall", "The same as uninstall"),
}


class Commands(click.Group):
    """A group that imports a command's module when the command is called; plugins add to it by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted((*COMMANDS, *EVERYDAY, *plugin_commands(ctx)))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in EVERYDAY:
            from navigator_kernel.cli.skill import command as skills

            return skills.get_command(ctx, EVERYDAY[cmd_name][0])
        if cmd_name in COMMANDS:
            module, _, name = COMMANDS[cmd_name][0].partition(":")
            found: click.Command = getattr(importlib.import_module(f"navigator_kernel.cli.{module}"), name or "command")
            return found
        return plugin_commands(ctx).get(cmd_name, ("", None))[1]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and name not in {*COMMANDS, *EVERYDAY}:  # from here on stdout is the plugin's, and errors
            ctx.meta[_PLUGIN] = plugin_commands(ctx)[name][0]
            guard.give_stdout()
        return name, command, rest

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (
            click.ClickException,
            click.exceptions.Exit,
            click.Abort,
            KernelError,
            KeyboardInterrupt,
            BrokenPipeError,
        ):
            raise
        except BaseException as error:
            if _PLUGIN not in ctx.meta or os.environ.get("NAVIGATOR_DEBUG") == "1":
                raise
            if isinstance(error, SystemExit) and isinstance(error.code, int | None):
                return error.code or 0
            told = error.code if isinstance(error, SystemExit) else f"{type(error).__name__}: {error}"
            raise KernelError(f"plugin {ctx.meta[_PLUGIN]!r}: {told}", hint="report it to the plugin") from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Everyday commands"):
            formatter.write_dl([(name, text) for name, (_, text) in EVERYDAY.items()])
        with formatter.section("Commands"):
            texts = {name: text for name, (_, text) in COMMANDS.items()}
            texts |= {name: command.get_short_help_str(200) for name, (_, command) in plugin_commands(ctx).items()}
            formatter.write_dl(sorted(texts.items()))


def plugin_commands(ctx: click.Context) -> Mapping[str, tuple[str, click.Command]]:
    """The commands that plugins of installed packages add, by name, each with its plugin."""
    from navigator_kernel.bootstrap.places import find_root, installed_plugins
    from navigator_kernel.plugins import add_entry_points, build_manager

    top = ctx.find_root()
    if _COMMANDS not in top.meta:
        try:
            root = find_root(Path.cwd(), top.params.get("root"))
        except KernelError:  # another user's folder, or none
            root = Path.home()
        plugins = build_manager()
        add_entry_points(plugins, installed_plugins())
        top.meta[_COMMANDS] = commands_of(plugins, root)
    found: Mapping[str, tuple[str, click.Command]] = top.meta[_COMMANDS]
    return found


def commands_of(plugins: Plugins, root: Path) -> Mapping[str, tuple[str, click.Command]]:
    """The commands that plugins add, by name, each with its plugin. One with a name that is taken, and what is not a
    command, is recorded as a failure."""
    found: dict[str, tuple[str, click.Command]] = {}
    for plugin, command in plugins.all(_HOOK, root, _read_command):
        if command.name in {*COMMANDS, *EVERYDAY, *found}:
            plugins.fail(plugin, _HOOK, ValueError(f"a command called {command.name!r} exists already"))
        else:
            found[str(command.name)] = plugin, command
    return found


def _read_command(item: Any) -> click.Command:
    if not isinstance(item, click.Command) or not item.name or not isinstance(item.name, str):
        raise TypeError(f"{type(item).__name__} is not a click command with a name")
    return item


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="navigator")
@click.option(
    "--root", type=click.Path(file_okay=False), help="The project's folder; by default found from the current folder."
)
@click.option("--language", type=click.Choice(["auto", "en", "zh"]), help="Language of messages.")
@click.option("--style", type=click.Choice(["auto", "emoji", "ascii"]), help="How states are marked.")
@click.pass_context
def navigator(ctx: click.Context, *, root: str | None, language: str | None, style: str | None) -> None:
    """Installs, chooses, runs and explains Agent Skills."""
    from navigator_kernel.cli.project import App

    ctx.obj = App(root_flag=root, flags={"language": language, "style": style})
    ctx.call_on_close(ctx.obj.close)


def invoke(args: list[str]) -> int | Mapping[str, Any]:
    """Runs a command line and returns its exit code."""

    def formatter_for(_: click.Context, **size: Any) -> click.HelpFormatter:
        """Makes the layout of help in the language of the command line; click calls it as a method of a context."""
        from navigator_kernel.cli.chinese_help import ChineseHelp
        from navigator_kernel.cli.project import spoken_in

        return ChineseHelp(**size) if spoken_in(args) == "zh" else click.HelpFormatter(**size)

    formatter = click.Context.formatter_class
    click.Context.formatter_class = cast("Any", formatter_for)
    try:
        code = navigator.main(args=args, prog_name="navigator", standalone_mode=False)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:  # a group alone: its help, as help
        sys.stderr.write(f"{error.format_message()}\n")
        return error.exit_code
    except click.ClickException as error:
        context, word = getattr(error, "ctx", None), getattr(error, "command_name", None)
        message, hint = error.format_message(), f"{context.command_path if context else 'navigator'} --help"
        if context is not None and word is not None:
            message, hint = f"No such command {word!r}.", _meant(word, context) or hint
        if isinstance(error, click.BadParameter) and error.param and isinstance(error.param.type, click.Choice):
            word = error.message[1:].partition("' ")[0]
            hint = f"did you mean {near[0]}?" if (near := suggestions(word, error.param.type.choices, 1)) else hint
        if isinstance(error, click.NoSuchOption) and (other := _OF_OTHERS.get(error.option_name)):
            has = context is not None and any(other in parameter.opts for parameter in context.command.params)
            message = f"No such option {error.option_name!r}."
            hint = f"write {other}" if has else f"leave {error.option_name} out" if other == "--yes" else hint
        kind, code = type(error).__name__, error.exit_code
        return {"type": kind, "code": "usage", "msg": message, "exit_code": code, "hint": hint}
    except click.Abort:
        raise KeyboardInterrupt from None
    finally:
        click.Context.formatter_class = formatter
    return code if isinstance(code, int) else 0


# Options of other programs that install skills, and ours
_OF_OTHERS = {
    "-y": "--yes",
    "--yes": "--yes",
    "-g": "--user",
    "--global": "--user",
    "-s": "--skill",
    "-a": "--target",
    "--agent": "--target",
}


def _meant(word: str, context: click.Context) -> str:
    """A hint with the most similar command name; empty if there is none."""
    from navigator_kernel.cli.skill import COMMANDS as OF_SKILLS

    path, group = context.command_path, context.command
    if context.parent is None and word in OF_SKILLS:
        return f"did you mean {path} skill {word}?"
    near = suggestions(word, group.list_commands(context) if isinstance(group, click.Group) else (), 1)
    return f"did you mean {path} {near[0]}? {path} --help lists all commands" if near else ""

"""`navigator plugin`: which plugins are loaded, which failed, and which folders of agents are trusted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from navigator_kernel.adapters.entry_points import Installed
from navigator_kernel.bootstrap.places import PLUGINS, left_out
from navigator_kernel.bootstrap.plugin_parts import agents_subject, open_plugins
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, note, say_lines, table
from navigator_kernel.cli.project import App
from navigator_kernel.errors import KernelError, NotFound
from navigator_kernel.plugins import Failure


@click.group("plugin")
def command() -> None:
    """Plugins."""


@command.command("list")
@json_option
@pass_app
def listed(app: App, *, as_json: bool) -> int:
    """List plugins with their packages, hooks and failures; exit code 1 if one failed."""
    app.project.plugins = open_plugins(app.root, tell=lambda _line: None)  # the failures are printed below
    plugins, untrusted = app.project.plugins.plugins, [str(path) for path in app.project.plugins.untrusted]
    failures = [failure.to_dict() for failure in tried(app)]
    every = {name: plugins.packages.get(name, Installed(name, "")) for name in (*plugins.names(), *plugins.packages)}
    rows = [(name, one.package, one.version, plugins.hooks(name)) for name, one in every.items()]
    if as_json:
        keys = ("name", "package", "version", "hooks")
        body = {"plugins": plugins.names(), "untrusted": untrusted, "failures": failures}
        body |= {"details": [dict(zip(keys, row, strict=True)) for row in rows], "left_out": sorted(left_out())}
        document({**body, "exit_code": 1 if failures else 0})
    else:
        table(
            ("plugin", "package", "hooks"),
            [(name, f"{package} {version}".strip(), ", ".join(hooks)) for name, package, version, hooks in rows],
        )
        for path in untrusted:
            note(f"not trusted, so not loaded: {path}")
        if left_out():
            note(f"left out by {PLUGINS}: {', '.join(sorted(left_out()))}")
        for failure in failures:
            note(f"failed: {failure['plugin']} in {failure['hook']}: {failure['error']}")
    return 1 if failures else 0


def tried(app: App) -> Sequence[Failure]:
    """The failures of plugins, once each of their hooks was called that changes nothing."""
    project, plugins = app.project, app.project.plugins.plugins
    brought = {hook for name in plugins.names() if not plugins.is_shipped(name) for hook in plugins.hooks(name)}
    _ = project.agents, project.dispatcher, project.plugin_tools
    project.precheck_hook(project.catalogue.count_own())
    if "kernel_register_routers" in brought:
        project.router.recognise("which skill is meant")
        project.router.retrieve("which skill is meant", 1)
    if "kernel_register_commands" in brought:
        from navigator_kernel.cli.registry import commands_of

        commands_of(plugins, app.root)
    if "kernel_register_tools_and_endpoints" in brought:
        from navigator_kernel.gateway.plugin_endpoints import plugin_endpoints

        try:
            from navigator_kernel.gateway import server
        except ImportError:  # without the extra 'gateway' there is no server whose endpoints one could repeat
            plugin_endpoints(plugins, project.plugin_ports, (), 0.0)
        else:
            plugin_endpoints(plugins, project.plugin_ports, server.ENDPOINTS, 0.0)
    if "kernel_scan_skill" in brought:
        from navigator_kernel.bootstrap.scanning.scanners import plugin_failures

        for plugin, error in plugin_failures(
            {"SKILL.md": b"---\nname: sample\ndescription: A sample\n---\n# Sample\n"}
        ):
            plugins.fail(plugin, "kernel_scan_skill", KernelError(error))
    return plugins.failures


@command.command("trust")
@click.argument("folder", type=click.Path(path_type=Path))
@json_option
@pass_app
def trust(app: App, *, folder: Path, as_json: bool) -> None:
    """Let the agents of FOLDER run in this program, until its files change."""
    subject = agents_subject(_folder(folder))
    app.project.consents.trust(subject, note=f"navigator plugin trust {folder}")
    document({"trusted": subject, "exit_code": 0}) if as_json else say_lines(f"trusted {subject}")


@command.command("distrust")
@click.argument("folder", type=click.Path(path_type=Path))
@json_option
@pass_app
def distrust(app: App, *, folder: Path, as_json: bool) -> None:
    """Withdraw trust from FOLDER."""
    book = app.project.consents
    prefix = f"agents:{_folder(folder)}@"
    gone = [subject for subject in book.subjects() if subject.startswith(prefix)]
    for subject in gone:
        book.distrust(subject)
    document({"distrusted": gone, "exit_code": 0}) if as_json else say_lines(gone or "nothing was trusted there")


def _folder(folder: Path) -> Path:
    if not folder.is_dir():
        raise NotFound(f"no folder is called {str(folder)!r}", hint="name a folder that contains <agent>/agent.py")
    return folder.resolve()

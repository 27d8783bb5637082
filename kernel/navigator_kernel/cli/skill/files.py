"""The skill commands that read and write files: export, import-lock, convert, formats, cache, mapping, validate."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import UNSET

from navigator_kernel.bootstrap.lifecycle import write_seen
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, lines, note, say_lines, table
from navigator_kernel.cli.project import App
from navigator_kernel.cli.skill.work import busy, dry_option, filter_options, place_options, reach_options, show_json
from navigator_kernel.errors import UsageProblem
from navigator_kernel.language.chinese import in_language
from navigator_kernel.language.wording import COLON, fixes, say
from navigator_kernel.skills.options import InstallOptions
from navigator_kernel.text import numbered

if TYPE_CHECKING:
    from navigator_kernel.skills.install.export import Form


@click.command("export")
@click.argument("names", nargs=-1)
@click.argument("out")
@click.option("--all", "everything", is_flag=True, help="Every installed skill that did not come with this release.")
@click.option("--zip", "packed", is_flag=True, help="Write a NAME.skill for each skill into the folder OUT.")
@click.option(
    "--as",
    "form",
    type=click.Choice(["well-known", "plugin", "marketplace", "skills-lock", "zip"]),
    help="Write a site's index, a plugin, a marketplace of Claude Code, npm's skills lock or zips into the folder OUT.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing skill or archive.")
@dry_option
@filter_options
@json_option
@pass_app
def export(
    app: App,
    /,
    *,
    names: tuple[str, ...],
    out: str,
    everything: bool,
    packed: bool,
    form: Form | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Copy the installed skills NAMES to the folder OUT, or pack them into OUT.skill or OUT.zip."""
    if packed and form:
        raise UsageProblem("--zip and --as exclude each other", hint="leave one of them out")
    options = InstallOptions(**given, everything=everything)
    result = app.bare.lifecycle.export(names, Path.cwd() / out, options, packed=packed, form=form)
    if as_json:
        document(result)
        return
    done = "would export" if result["dry_run"] else "exported"
    for one in result["skills"]:
        say_lines(f"{done} {one['name']} to {one['path']}")
        if one["changed_since_installed"]:
            note(f"warning: {one['name']} was changed since it was installed")
    for name, why in result.get("left_out", {}).items():
        note(f"warning: {name} is left out: {why}")


@click.command("import-lock")
@click.argument("file", required=False)
@dry_option
@reach_options
@place_options
@json_option
@pass_app
def import_lock(app: App, /, *, file: str | None, as_json: bool, **given: Any) -> int:
    """Install the skills of FILE: skills-lock.json (default: the project's), .skill-lock.json or apm.lock.yaml."""
    with busy(app, "import-lock", quiet=as_json) as lifecycle:
        result = lifecycle.import_lock(Path.cwd() / file if file else None, InstallOptions(**given))
    if as_json:
        document(result)
        return int(result["exit_code"])
    done = "would import" if result["dry_run"] else "imported"
    for one in result["imported"]:
        say_lines(f"{done if one['changed'] else 'already there'} {one['name']} ({one['commit'] or 'no commit'})")
        for text in one["notes"]:
            note(f"note: {one['name']}: {text}")
        for finding in one["findings"]:
            note(f"{finding['level']}: {finding['code']}: {finding['message']}")
    for one in result["skipped"]:
        note(f"skipped {one['name']}: {one['why']}" + (f" ({one['hint']})" if one["hint"] else ""))
    return int(result["exit_code"])


@click.command("convert")
@click.argument("path")
@click.option("--out", help="Where the SKILL.md is written: a file, or the folder of the skill.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@dry_option
@json_option
@pass_app
def convert(app: App, /, *, path: str, out: str | None, as_json: bool, **given: Any) -> None:
    """Write the canonical SKILL.md of PATH, a file or a folder in any accepted layout; print it without --out."""
    result = app.bare.lifecycle.convert(Path.cwd() / path, Path.cwd() / out if out else None, **given)
    if as_json:
        show_json(result)
    elif result.text is not UNSET:
        lines(result.text.removesuffix("\n"))
        if result.out:
            note(f"would write {result.out}" if result.changed else f"{result.out} is so already")
    else:
        say_lines(f"wrote {result.out}" if result.changed else f"{result.out} is so already")


@click.command("formats")
@json_option
@pass_app
def formats(app: App, *, as_json: bool) -> None:
    """List the accepted layouts of a skill."""
    layouts = app.bare.lifecycle.formats()
    document({"formats": layouts}) if as_json else table(("layout", "what it is"), layouts.items())


@click.command("cache")
@click.option("--clear", is_flag=True, help="Remove cached repositories; they are fetched again when needed.")
@click.option(
    "--older-than",
    type=click.FloatRange(0),
    help="With --clear: only repositories that were not used for this many days.",
)
@dry_option
@json_option
@pass_app
def cache(app: App, /, *, as_json: bool, **given: Any) -> None:
    """List or clear the cache of fetched repositories."""
    result = app.bare.lifecycle.cache(**given)
    if as_json:
        show_json(result)
        return
    rows = [
        (repository.url, str(repository.bytes), str(len(repository.refs)), repository.used)
        for repository in result.repositories
    ]
    if rows:
        table(("repository", "bytes", "refs", "used"), rows)
    done = "" if not given["clear"] else " would be removed" if given["dry_run"] else " removed"
    note(f"{numbered(result.count, 'repository')}, {numbered(result.bytes, 'byte')}{done}")


@click.command("mapping")
@click.argument("word", required=False)
@click.option(
    "--write", is_flag=True, help="Add the skills that were seen in sources to the project's docs/skills-mapping.md."
)
@json_option
@pass_app
def mapping(app: App, *, word: str | None, write: bool, as_json: bool) -> None:
    """List skills of known repositories that match WORD, with the command that installs each."""
    if write:
        if word:
            raise UsageProblem("--write adds every row that was seen", hint="leave WORD out")
        written = write_seen(app.bare)
        document(written) if as_json else say_lines(f"{numbered(written['added'], 'row')} added to {written['path']}")
        return
    result = app.bare.lifecycle.mapping(word or "")
    if as_json:
        show_json(result)
        return
    rows = [(row["name"], row["install"], row["description"]) for row in result.rows]
    table(("skill", "install", "description"), rows, whole="install")
    note(numbered(result.count, "row"))


@click.command("validate")
@click.argument("path")
@click.option("--strict", is_flag=True, help="Check every rule of the open Agent Skills specification.")
@json_option
@pass_app
def validate(app: App, *, path: str, strict: bool, as_json: bool) -> int:
    """Check the skills at PATH, or the installed skill of that name; exit code 1 where one has an error."""
    result = app.bare.lifecycle.validate(path, Path.cwd(), strict=strict)
    if as_json:
        show_json(result)
        return result.exit_code
    for one in result.skills:
        for finding in one.findings:
            at = f":{finding['line']}" if finding["line"] else ""
            where = "" if finding["path"] == "SKILL.md" else f"{finding['path']} "
            parts = (say(f"level.{finding['level']}", app.spoken), finding["code"], where)
            lines([f"{one.path}{at}: {COLON[app.spoken].join(parts)}{in_language(finding['message'], app.spoken)}"])
    for fix in fixes((finding["code"] for skill in result.skills for finding in skill.findings), app.spoken):
        note(fix)
    note(f"{numbered(result.count, 'skill')}, {numbered(result.errors, 'error')}")
    return result.exit_code


COMMANDS: Mapping[str, click.Command] = {
    "cache": cache,
    "convert": convert,
    "export": export,
    "formats": formats,
    "import-lock": import_lock,
    "mapping": mapping,
    "validate": validate,
}

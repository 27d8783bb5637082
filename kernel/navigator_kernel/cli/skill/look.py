"""The skill commands that only read: list, search, info, verify and scan."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click
from msgspec import UNSET, Struct, to_builtins

from navigator_kernel import __version__
from navigator_kernel.cli import skill_names
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, lines, note, table
from navigator_kernel.cli.skill.work import busy, filter_options, reach_options, show_json, shown, verbose_option
from navigator_kernel.errors import IntegrityMismatch, Refused
from navigator_kernel.language.chinese import in_language
from navigator_kernel.language.wording import APART, BETWEEN, COLON, say, worded
from navigator_kernel.skills.options import InstallOptions
from navigator_kernel.skills.scan.finding import sarif
from navigator_kernel.text import Language, fold, in_one_language, numbered, shorten

if TYPE_CHECKING:
    from navigator_kernel.cli.project import App

UNUSED = 30  # days after which a skill without a use is named
_RUNS = 5_000  # newest runs that are counted


class SkillUsage(Struct, frozen=True, kw_only=True):
    """How often a skill was `used` in the runs that are kept, and on which `days`; `tokens` is what a host's list of
    skills takes for it in each prompt, at most: none for shipped skills, which no host lists."""

    name: str
    level: str
    enabled: bool
    uses: int
    last_used: str
    days: list[str]
    tokens: int


@click.command("scan")
@click.argument("source", required=False, default="")
@click.option("--all", "everything", is_flag=True, help="Every installed skill.")
@click.option("--skill", "skills", multiple=True, help="Only this skill of the source; may be repeated.")
@click.option("--ref", help="Branch, tag or commit.")
@verbose_option
@click.option("--sarif", "as_sarif", is_flag=True, help="Print the findings as SARIF 2.1.0.")
@reach_options
@filter_options
@json_option
@pass_app
def scan(
    app: App,
    /,
    *,
    source: str,
    everything: bool,
    skills: tuple[str, ...],
    ref: str | None,
    verbose: bool,
    as_sarif: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Scan an installed skill or a SOURCE for dangerous content; exit code 1 if there is any."""
    options = InstallOptions(**given, everything=everything, ref=ref or "")
    with busy(app, "scan", quiet=as_json or as_sarif, source=source) as lifecycle:
        result = lifecycle.scan(source, skills, options)
    if as_sarif:
        document(sarif(to_builtins(result.skills), __version__, app.root), whole=True)
    elif as_json:
        show_json(result)
    else:
        for skill in result.skills:
            lines(f"{skill.name}: {skill.verdict.replace('_', ' ')}")
            lines([f"  {line}" for line in shown(skill.name, skill.findings, notes=verbose)])
        note(f"{numbered(result.count, 'skill')}, {result.blocked} would not be installed")
    return result.exit_code


@click.command("list")
@filter_options
@json_option
@pass_app
def listed(app: App, /, *, as_json: bool, **where: Any) -> None:
    """List installed skills."""
    result = app.bare.lifecycle.installed(InstallOptions(**where))
    if as_json:
        show_json(result)
        return
    # A disabled skill is marked in a column that no narrow terminal leaves out
    off = APART[app.spoken] + worded("place", "disabled", app.spoken)
    spare = ("kind", "from") if all(skill.enabled for skill in result.skills) else ("kind",)
    rows = []
    for skill in result.skills:
        status = worded("status", skill.status, app.spoken) + ("" if skill.enabled else off)
        rows.append((skill.name, skill.kind, status, in_one_language(skill.description, app.spoken)))
    table(("skill", "kind", "from", "description"), rows, spare=spare, language=app.spoken)
    for one in result.lock:
        note(say(f"lock.{one.state}", app.spoken, name=one.name))
    for problem in result.problems:
        note(f"{problem['level']}: {problem['code']}: {problem['path']}: {problem['message']}")


@click.command("search")
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many are shown.")
@click.option("--remote", is_flag=True, help="Also search the catalogues that your settings name.")
@click.option("--offline", is_flag=True, help="Ask no network.")
@filter_options
@json_option
@pass_app
def search(app: App, /, *, words: tuple[str, ...], limit: int, remote: bool, as_json: bool, **given: Any) -> None:
    """Find installed skills by WORDS."""
    catalogues = app.settings.catalogues if remote else None
    with busy(app, "search", quiet=as_json) as lifecycle:
        result = lifecycle.search(" ".join(words), InstallOptions(**given), limit=limit, catalogues=catalogues)
    if as_json:
        show_json(result)
        return
    rows = [
        (
            str(skill.score),
            skill.name,
            worded("by", skill.reason, app.spoken),
            in_one_language(skill.description, app.spoken),
        )
        for skill in result.skills
    ]
    table(("score", "skill", "by", "description"), rows, spare=("by", "score"), language=app.spoken)
    if result.remote is not UNSET:
        keys = ("score", "name", "reason", "install", "description")
        offered = [tuple(str(one[key]) for key in keys) for one in result.remote]
        head = ("score", "offered", "by", "to install it", "description")
        table(head, offered, whole="to install it", language=app.spoken)
    note(say("search.found", app.spoken, count=result.count))


@click.command("usage")
@filter_options
@json_option
@pass_app
def usage(app: App, /, *, as_json: bool, **where: Any) -> None:
    """Show when skills were last used here, how often, and the tokens that listing them costs a host."""
    from navigator_kernel.adapters.stores.preferences import tokens
    from navigator_kernel.adapters.stores.run_log import uses_of

    since, uses = uses_of(app.bare.run_log, _RUNS)
    by_name = {fold(name): times for name, times in uses.items()}
    skills = [
        SkillUsage(
            name=skill.name,
            level=skill.level,
            enabled=skill.enabled,
            uses=len(times := by_name.get(fold(skill.name), [])),
            last_used=times[0] if times else "",
            days=sorted({time[:10] for time in times}),
            tokens=0 if skill.status == "shipped" else tokens(f"- {skill.name}: {skill.description}"),
        )
        for skill in app.bare.lifecycle.installed(InstallOptions(**where)).skills
    ]
    skills.sort(key=lambda skill: (-skill.uses, -skill.tokens, skill.name))
    total = sum(skill.tokens for skill in skills)
    if as_json:
        document({"since": since, "tokens": total, "skills": to_builtins(skills)})
        return
    never = say("usage.never", app.spoken)
    rows = [
        (skill.name, str(skill.uses), str(len(skill.days)), skill.last_used[:10] or never, f"{skill.tokens:,}")
        for skill in skills
    ]
    table(("skill", "uses", "days", "last use", "tokens"), rows, language=app.spoken)
    note(say("usage.listing", app.spoken, tokens=total))
    recent = (datetime.now(UTC) - timedelta(days=UNUSED)).isoformat()
    unused = [skill.name for skill in skills if skill.enabled and skill.tokens and skill.last_used < recent]
    if unused and "" < since <= recent:
        names = BETWEEN[app.spoken].join(unused[:10]) + (" …" if len(unused) > 10 else "")
        note(say("usage.unused", app.spoken, since=recent[:10], names=names))


@click.command("info")
@click.argument("source", shell_complete=skill_names.here)
@click.option(
    "--skill",
    "skills",
    multiple=True,
    help="Only this skill of the source; may be repeated.",
    shell_complete=skill_names.of_source,
)
@click.option("--ref", help="Branch, tag or commit.")
@reach_options
@json_option
@pass_app
def info(app: App, /, *, source: str, skills: tuple[str, ...], ref: str | None, as_json: bool, **reach: Any) -> None:
    """Show the skills of SOURCE (a repository, folder or URL), or an installed skill of that name."""
    with busy(app, "info", quiet=as_json, source=source) as lifecycle:
        result = lifecycle.info(source, skills, InstallOptions(**reach, ref=ref or ""))
    body = to_builtins(result)
    if as_json:
        document(body)
    elif "skills" in body:
        offered, language, colon = body["skills"], app.spoken, COLON[app.spoken]
        head = ("skill", "type", "licence", "bytes", "tools", "scripts", "plugin", "description")
        spare = ("licence", "tools", "plugin", "scripts", "bytes", "type")
        rows = []
        for one in offered:
            size, scripts = "-" if one["size"] is None else str(one["size"]), str(len(one["scripts"]) or "-")
            known = (one["license"] or "-", size, _short(one["tools"], language) or "-", scripts, one["plugin"] or "-")
            rows.append((one["name"], one["kind"], *known, in_one_language(one["description"], language)))
        table(head, rows, spare=spare, language=language)
        for one in (one for one in offered if one["findings"] is not None):
            name, verdict = one["name"], worded("verdict", one["verdict"], language)
            command = one.get("command")
            lines([say("offer.runs", language, name=name, command=command)] if command else [])
            lines([say("offer.script", language, name=name, path=path) for path in one["scripts"]])
            lines([f"{name}{colon}{_finding(finding)}" for finding in one["findings"]])
            note(say("offer.verdict", language, name=name, verdict=verdict))
        for one in offered:
            for problem in one["problems"]:
                note(f"{one['name']}{colon}{problem}")
        for problem in body["problems"]:
            note(_finding(problem))
        at = say("offer.at", language, ref=body["ref"]) if body["ref"] else ""
        count = {} if len(offered) == 1 else {"count": len(offered)}
        note(say("offer.many" if count else "offer.one", language, at=at, source=shlex.quote(source), **count))
        if any(one["findings"] is None for one in offered):
            note(say("offer.more", language))
    else:
        lines(_about(body, app.spoken))


@click.command("verify")
@click.argument("name", required=False, shell_complete=skill_names.installed)
@filter_options
@json_option
@pass_app
def verify(app: App, /, *, name: str | None, as_json: bool, **where: Any) -> None:
    """Check installed skills against their receipts and the lock; exit code 6 if anything differs."""
    try:
        result = app.bare.lifecycle.verify(name or "", InstallOptions(**where))
    except (IntegrityMismatch, Refused) as error:
        if not as_json:
            skills, language = error.data.get("skills", ()), app.spoken
            changed = [skill for skill in skills if skill["state"] != "same"]
            lines([say(f"lock.{one['state']}", language, name=one["name"]) for one in changed])
            for one in (skill for skill in skills if skill["refused"]):
                lines([f"{one['name']}{COLON[language]}{in_language(one['refused'], language)}"])
            for one in skills:
                for kind in ("modified", "missing", "extra", "mode"):
                    lines([say(f"verify.{kind}", language, name=one["name"], file=file) for file in one[kind]])
        raise
    if as_json:
        show_json(result)
        return
    lines(say("verify.same", app.spoken, count=result.count))
    others = [skill["name"] for skill in result.skills if not skill["by_you"]]
    if others:
        note(say("verify.others", app.spoken, names=BETWEEN[app.spoken].join(others)))


def _about(one: Mapping[str, Any], language: Language) -> list[str]:
    """The lines about an installed skill, one for each known fact."""
    receipt, apart, colon = one["receipt"] or {}, APART[language], COLON[language]
    places = (worded("place", place, language) for place in (one["level"], *(() if one["enabled"] else ("disabled",))))
    accepted = (
        say("about.accepted_in", language, rule=one["rule"], file=one["file"]) for one in receipt.get("accepted") or ()
    )
    facts = {
        "name": one["name"],
        "description": one["description"],
        "type": worded("kind", one["kind"], language),
        "status": apart.join(dict.fromkeys((worded("status", one["status"], language), *places))),
        "path": one["path"],
        "links": _short(one["links"], language),
        "source": one["source"],
        "claimed_source": one["claimed_source"],
        "commit": one["commit"],
        "ref": receipt.get("ref"),
        "subpath": receipt.get("subpath"),
        "installed_at": receipt.get("installed_at"),
        "verdict": worded("verdict", str(receipt.get("verdict", "")), language),
        "accepted": _short([*accepted], language),
        **{f"can.{kind}": _short(names, language) for kind, names in (receipt.get("can") or {}).items()},
        "license": one["license"],
        "command": one["command"],
        "tools": _short(one["tools"], language),
        "files": f"{len(one['files'])}{colon}{_short(one['files'], language)}",
    }
    known = [f"{say(f'about.{key}', language)}{colon}{value}" for key, value in facts.items() if value]
    return [*known, *(f"{say('about.problem', language)}{colon}{text}" for text in one["problems"])]


def _finding(one: Mapping[str, Any]) -> str:
    return f"{one['level']}: {one['code']}: {one['path']}: {one['message']}"


def _short(values: Sequence[str], language: Language) -> str:
    return shorten(BETWEEN[language].join(map(str, values)), 200)


COMMANDS: Mapping[str, click.Command] = {
    "info": info,
    "list": listed,
    "scan": scan,
    "search": search,
    "usage": usage,
    "verify": verify,
}

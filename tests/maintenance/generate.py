"""Makes every generated page and file from its source; `--check` only says which would change.

Pages that mix prose and generated parts hold cog blocks that call the functions here; files that are generated as a
whole (`.claude/agents/`, the digests of what is shipped, the content rules as they are read) are written by `main`.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import click
import yaml

TOP = Path(__file__).resolve().parents[2]
RULES = TOP / "kernel/navigator_kernel/skills/scan/rules.yaml"
SHIPPED_SKILLS = (
    "code-optimize", "code-review", "csv-report", "folder-inventory", "git-summary", "git-workflow", "json-table",
    "link-check", "log-summary", "master-orchestrator", "rust-dev", "task_manager", "todo-scan", "word-count",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 where a file is not as generated")
    check = parser.parse_args().check
    stale = [path for path, text in whole_files().items() if not path.exists() or path.read_text("utf-8") != text]
    for path in [] if check else stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(whole_files()[path], "utf-8")
    for path in stale:
        print(f"{'stale' if check else 'written'}: {path.relative_to(TOP)}")
    sys.exit(1 if check and stale else 0)


def whole_files() -> Mapping[Path, str]:
    """Path → text of everything that is generated as a whole."""
    files = {TOP / "kernel/navigator_kernel/shipped/digests.json": digests(), RULES.with_suffix(".json"): rules_json()}
    files |= site_pages()
    for brief in sorted(TOP.glob("agents/*/brief.md")):
        files[TOP / ".claude/agents" / f"{brief.parent.name}_agent.md"] = agent_page(brief)
    return files


def site_pages() -> Mapping[Path, str]:
    """The home pages of the site, and its list of pages for language models."""
    from maintenance.site_pages import home_page, llms_text

    docs = TOP / "docs"
    return {
        docs / "index.md": home_page("README.md", at="."),
        docs / "zh/index.md": home_page("README.zh-CN.md", at="zh"),
        docs / "llms.txt": llms_text(),
    }


def rules_json() -> str:
    """The tables of the content rules, one a line: JSON is read faster than YAML."""
    tables = yaml.safe_load(RULES.read_text("utf-8"))
    return "[\n" + ",\n".join(json.dumps(table, ensure_ascii=False) for table in tables) + "\n]\n"


def digests() -> str:
    """`<skill>` and `bin/<script>.py` → digest, as JSON (what may run without asking)."""
    from navigator_kernel.skills.catalog.receipts import file_digest, folder_digest

    found = {name: folder_digest(TOP / ".claude/skills" / name) for name in SHIPPED_SKILLS}
    found |= {f"bin/{path.name}": file_digest(path) for path in sorted(TOP.glob("bin/*.py"))}
    return json.dumps(found, indent=1, sort_keys=True) + "\n"


def agent_page(brief: Path) -> str:
    """The host agents' copy of a brief (AGT-5), which says where it comes from."""
    head, _, body = brief.read_text("utf-8").partition("\n---\n")
    source = brief.relative_to(TOP).as_posix()
    return f"{head}\n---\n\n<!-- generated from {source} by tests/maintenance/generate.py; edit that file -->\n{body}"


def authority_rows() -> Iterator[str]:
    """The authority table as Markdown."""
    from navigator_kernel.sandbox.authority import TABLE

    yield "| actor | reads | writes | network | consent |"
    yield "|---|---|---|---|---|"
    for right in TABLE:
        writes = ", ".join(f"`{path}`" for path in right.writes)
        yield f"| {right.actor} | {right.reads} | {writes} | {right.network} | {right.consent} |"


def skill_command_rows() -> Iterator[str]:
    """`Intent | Command Signature | Note` of every skill command, from the command line itself (SAF-6)."""
    from navigator_kernel.cli.skill import command

    yield from _rows("python bin/skill_manager.py", command)


def command_rows() -> Iterator[str]:
    """The same of every other command."""
    from navigator_kernel.cli.registry import COMMANDS, EVERYDAY, navigator

    yield "| Intent | Command Signature | Note |"
    yield "|---|---|---|"
    context = click.Context(navigator)
    for name in navigator.list_commands(context):
        held = navigator.get_command(context, name)
        if name in {"skill", *EVERYDAY} or held is None:
            continue
        if isinstance(held, click.Group):
            yield from list(_rows(f"navigator {name}", held))[2:]
        else:
            text = COMMANDS[name][1] if name in COMMANDS else held.get_short_help_str(200)
            yield _row(text, f"navigator {name}", held)


def everyday_rows() -> Iterator[str]:
    """The short forms of skill commands, which take the same words."""
    from navigator_kernel.cli.registry import EVERYDAY

    yield "| Intent | Command Signature | Note |"
    yield "|---|---|---|"
    for name, (own, text) in EVERYDAY.items():
        yield f"| {text} | `navigator {name}` | as `navigator skill {own}`, with its arguments and options |"


def script_rows() -> Iterator[str]:
    """The scripts of `bin/`: the worker's allow-list."""
    yield "| Intent | Command Signature | Note |"
    yield "|---|---|---|"
    for path in sorted(TOP.glob("bin/[!_]*.py")):
        first = path.read_text("utf-8").split("\n")[0].strip('"')
        note = "the commands above" if path.stem == "skill_manager" else ""
        yield f"| {first} | `python bin/{path.name}` | {note} |"


def session_rows(guide: str, *beginnings: str) -> Iterator[str]:
    """From the recorded session of a guide: the first `navigator` command that begins so, with what the screen
    showed."""
    import re

    text = (TOP / "docs" / guide).read_text("utf-8")
    commands = re.findall(r"^\$ .*\n(?:(?!\$ |```).*\n)*", text, re.MULTILINE)
    yield "```session"
    for beginning in beginnings:
        yield next(one for one in commands if one.startswith(f"$ navigator {beginning}")).rstrip("\n")
    yield "```"


def hook_rows() -> Iterator[str]:
    """Every hook with its documentation, as sections."""
    import inspect

    from navigator_kernel import hookspecs

    for name, held in vars(hookspecs).items():
        if name.startswith("kernel_"):
            yield f"## `{name}{inspect.signature(held)}`".replace("navigator_kernel.", "").replace("ForwardRef", "")
            yield ""
            yield inspect.getdoc(held) or ""
            yield ""


def setting_rows() -> Iterator[str]:
    """Every setting with its values and default."""
    from navigator_kernel.config.settings import SCALARS, TABLES

    yield "| setting | values | default | what it is |"
    yield "|---|---|---|---|"
    for name, (allowed, default, text, _) in SCALARS.items():
        values = ", ".join(f"`{word}`" for word in allowed) if isinstance(allowed, tuple) else "a number"
        yield f"| `{name}` | {values} | `{default}` | {text} |"
    for name, text in TABLES.items():
        yield f"| `[{name}]` | a table |  | {text} |"


def endpoint_rows() -> Iterator[str]:
    """Every endpoint of the HTTP API: method, path, role, what it does, and its statuses."""
    from maintenance.http_surface import endpoints
    from navigator_kernel.gateway.openapi import statuses, template_of

    yield "| method | path | role | what it does | statuses |"
    yield "|---|---|---|---|---|"
    for held in endpoints():
        codes = ", ".join(map(str, sorted({held.status, *statuses(held)})))
        path = template_of(held.path)
        yield f"| `{held.method}` | `{path}` | {held.role or 'no token'} | {held.summary} | {codes} |"


def event_rows() -> Iterator[str]:
    """Every event with its fields and what it says, without the ids of requirements."""
    import re

    from navigator_kernel.events import BODIES

    yield "| event | fields | meaning |"
    yield "|---|---|---|"
    for name, kind in BODIES.items():
        fields = ", ".join(f"`{field}`" for field in kind.__struct_fields__)
        meaning = re.sub(r" \([A-Z]+-\d+(, [A-Z]+-\d+)*\)", "", " ".join((kind.__doc__ or "").split()))
        yield f"| `{name}` | {fields} | {meaning} |"


def format_rows() -> Iterator[str]:
    """Every file that other programs may read, with its version and keys."""
    from maintenance.public_surface import formats

    yield "| file | version | keys |"
    yield "|---|---|---|"
    for name, held in formats().items():
        keys = ", ".join(f"`{key}`" for key in held.get("accepts", held.get("fields", ())))
        yield f"| `{name}` | {held.get('version', '')} | {keys} |"


def state_rows() -> Iterator[str]:
    """The five states with their marks and exit codes."""
    from navigator_kernel.language.rendering import ASCII, EMOJI
    from navigator_kernel.values.packet import STATES, Meta, Report

    yield "| state | mark | plain | exit code |"
    yield "|---|---|---|---|"
    for state in STATES:
        report = Report(state=state, summary="", meta=Meta(agent="", time=0, ts=""))
        yield f"| `{state}` | {EMOJI[state]} | `{ASCII[state]}` | {report.exit_code} |"


def linter_rows(language: str) -> Iterator[str]:
    """Every rule of the linter: its id, what is wrong, the fix and an example."""
    from navigator_kernel.language.wording import linter_rules

    head = "| rule | what is wrong | the fix | example |" if language == "en" else "| 规则 | 问题 | 修改 | 示例 |"
    yield from (head, "|---|---|---|---|")
    for code, (what, fix, chinese_what, chinese_fix, example) in sorted(linter_rules().items()):
        told = (what, fix) if language == "en" else (chinese_what, chinese_fix)
        shown = "<br>".join(f"`{line}`" for line in example.replace("|", "\\|").split("\\n") if line.strip())
        yield f"| `{code}` | {told[0]} | {told[1]} | {'' if example == '-' else shown} |"


def _rows(prefix: str, group: click.Group) -> Iterator[str]:
    yield "| Intent | Command Signature | Note |"
    yield "|---|---|---|"
    context = click.Context(group)
    for name in group.list_commands(context):
        if (held := group.get_command(context, name)) is not None:
            yield _row(held.get_short_help_str(200), f"{prefix} {name}", held)


def _row(intent: str, line: str, command: click.Command) -> str:
    """One command: arguments in angle brackets, options in square ones."""
    words: list[str] = []
    notes: list[str] = []
    for item in command.params:
        if isinstance(item, click.Argument):
            name = item.make_metavar(click.Context(command)).strip("[].").lower()
            words.append(f"<{name}>" if item.required else f"[{name}]")
        elif isinstance(item, click.Option) and item.name != "help" and not item.hidden:
            value = "" if item.is_flag else f" <{item.name}>"
            words.append(f"[{item.opts[-1]}{value}]")
            notes += [f"{item.opts[-1]}: {item.help}"] if item.name != "as_json" else []
    return f"| {intent} | `{' '.join([line, *words])}` | {' '.join(notes)} |".replace("\n", " ")


if __name__ == "__main__":
    main()

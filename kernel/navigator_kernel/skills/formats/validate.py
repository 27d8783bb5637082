"""Checks one skill against the Agent Skills specification and the rules of our own keys."""

from __future__ import annotations

import json
import posixpath
import re
import shlex
import unicodedata
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from msgspec import Struct, field

from navigator_kernel.errors import KernelError, NotLoadable
from navigator_kernel.skills.formats.frontmatter import Parts, split
from navigator_kernel.skills.formats.manifest import (
    DESCRIPTION_LIMIT,
    OUR_KEYS,
    PACKAGES,
    SPEC_KEYS,
    merged_keys,
    read_manifest,
    spelled,
    text_of,
)
from navigator_kernel.skills.formats.template import Filling, fill_argv
from navigator_kernel.text import clean, lazy_compile, shorten, suggestions
from navigator_kernel.values.resource import Diagnostic, SkillDef

MANIFEST = "SKILL.md"
NAME_LIMIT = 64  # characters
COMPATIBILITY_LIMIT = 500  # characters
BODY_LIMIT = 500  # lines that the specification recommends

_ADVICE = frozenset(
    {"crlf", "description-person", "body-long", "body-empty", "hidden-character"}
)  # they break no rule of the specification
# Hide a skill from every host; other breaches of the specification may be a host's own keys
_HIDES = frozenset(
    "frontmatter-missing unclosed yaml-unquoted not-text name-missing description-missing description-length".split()
)
_MOST = 100  # keys of one place, and tools, that are compared with known names
# Keys that only hosts read, and flags with the words for them
_TOP_KEYS = {*SPEC_KEYS, *OUR_KEYS, PACKAGES} | set(
    "user-invocable argument-hint arguments model models effort context agent agents hooks shell version author".split()
)
_FLAGS = frozenset("dynamic network idempotent enabled inherit_history disable-model-invocation user-invocable".split())
_FLAG_WORDS = frozenset("true false yes no on off 1 0 是 否".split())
_FIGURES = lazy_compile(r"[\d.]{1,64}")
# Tools of Claude Code. Other hosts have others, so only names that are close to these are reported
_TOOLS = frozenset(
    """Agent AskUserQuestion Bash BashOutput Edit ExitPlanMode Glob Grep KillShell MultiEdit NotebookEdit NotebookRead
    Read Skill SlashCommand Task TodoRead TodoWrite WebFetch WebSearch Write""".split()
)
# The keys that notes of a manifest without a line are about
_ABOUT = {"timeout-odd": "timeout", "priority-odd": "priority", "command-slash": "command"}
_ABOUT |= dict.fromkeys(("params-form", "param-odd", "validation-unknown"), "required_params")
_TOLD_BY_RULES = frozenset(
    {"name-odd", "name-folder", "no-description", "description-long", "no-frontmatter", "header-form"}
)
_TARGET = lazy_compile(r"\]\(\s*(?:<([^<>\n]{1,500})>|([^()\s<>]{1,500}))(?:\s[^)\n]{0,200})?\)")
_DEFINITION = lazy_compile(r"\s{0,3}\[[^\]^\n][^\]\n]{0,200}\]:\s*<?([^\s<>]{1,500})")
_ELSEWHERE = lazy_compile(r"[#/~@]|[A-Za-z][A-Za-z0-9+.-]*:|.*[{}$*]")
_PLACEHOLDER = lazy_compile(r"(?<!\$)\{\{?\s*([\w-]+)\s*\}\}?")
_LICENCE_FILE = lazy_compile(
    r"\b(?:LICEN[CS]E|COPYING|NOTICE)(?:[-.][A-Za-z0-9]{1,64})?\b|\b[\w.-]{1,64}\.(?:txt|md)\b"
)
_VARIABLE = lazy_compile(r"[{}$]")
_FILLED = lazy_compile(r"\$\{(?!SKILL_ROOT\})(\w{1,64})\}")
_SHELLS, _SHELL_SIGNS = frozenset("sh bash dash zsh fish pwsh cmd".split()), frozenset("| || & && ; > >> < 2>".split())
_ARGUMENT = lazy_compile(r"[^\W\d][\w-]{0,63}")
_AFTER_PATH = lazy_compile(r"[#?]")
_FENCE = lazy_compile(r"\s*(```+|~~~+)")
_CODE = lazy_compile(r"`[^`\n]*`")

SHORT = 30  # characters of a description that tells a skill from others
# RTE-37 and RTE-39: when to use the skill, in English or in Chinese
_HINT = lazy_compile(
    r"\b(?:use|used|invoked?|triggers?|triggered|activated?|appl(?:y|ies))\b[^.。]{0,40}\b(?:when|whenever|if|before|after)\b"
    r"|\buse (?:it |this |this skill )?(?:for|on)\b"
    r"|\bwhen(?:ever)?\b[^.。]{0,20}\b(?:user|you|someone|somebody|asked|asks|working)\b"
    r"|（(?=[^（）]*）)[^（）]*?(?:时|场景|用于|适用)|当[^。]{1,60}时|用于|适用于|时(?:候)?使用|时触发",
    re.IGNORECASE,
)
_HAN = lazy_compile(r"[\u3400-\u9fff]")  # a Chinese character says at least as much as two letters
_PERSON = lazy_compile(
    r"\b(?:I|I'm|I'll|my|we|our)\b (?:can|will|am|help|do|make|write)|我(?:可以|能|会)", re.IGNORECASE
)

Files = Mapping[str, bytes | None]


class _Findings(Struct):
    strict: bool
    found: list[Diagnostic] = field(default_factory=list)

    def add(
        self, code: str, message: str, line: int | None = None, path: str = MANIFEST, *, fatal: bool = False
    ) -> None:
        is_error = fatal or code in _HIDES or (self.strict and code not in _ADVICE)
        level: Literal["error", "warning"] = "error" if is_error else "warning"
        text = clean(message, lines=False)
        self.found.append(Diagnostic(code=code, level=level, path=path, message=text, line=line))


def validate(data: bytes, folder_name: str, files: Files, *, strict: bool) -> list[Diagnostic]:
    """Every rule that the manifest in `data` breaks, by file and line; empty if it breaks none.

    `files` maps each path inside the skill to its bytes, or None if they were not read. With `strict`, every rule of
    the specification counts, and each breach is an error; otherwise only one that makes the skill unusable, here or in
    every host, is.
    """
    findings = _Findings(strict)
    try:
        parts = split(data, MANIFEST)
    except NotLoadable as error:
        _add_reason(error, findings)
        return findings.found
    _check_specification(parts, folder_name, files, findings)
    if not strict:
        is_flat = not any(path.lower() == "skill.md" for path in files)  # of another layout, perhaps
        hides = _HIDES - {"frontmatter-missing"} if is_flat else _HIDES
        findings.found = [finding for finding in findings.found if finding.code in hides]
    covered = _TOLD_BY_RULES if strict or findings.found else frozenset()
    covered -= frozenset() if strict else {"name-odd", "name-folder"}
    try:
        skill = read_manifest(data, path=Path(MANIFEST), folder=Path(folder_name or "skill"))
    except NotLoadable as error:
        if error.data.get("reason") not in covered:
            _add_reason(error, findings)
    else:
        for note in skill.diagnostics:
            if note.code not in covered and (folder_name or note.code != "name-folder"):
                line = note.line or _line_of(parts, _ABOUT.get(note.code, ""))
                findings.add(note.code, note.message, line)
        _check_keys(skill, parts, findings)
        if not skill.command and not parts.body.strip():
            findings.add("body-empty", "the file has no text: nothing says what is to be done")
        _check_command(skill, parts, files, findings)
        line = _line_of(parts, "required_params")
        names = [param.name for param in skill.required_params]
        used = {*_PLACEHOLDER.findall(skill.command), *_PLACEHOLDER.findall(skill.sop)}
        for at, name in enumerate(names):
            if not _ARGUMENT.fullmatch(name):
                findings.add("param-name", f"{shorten(name, 64)!r} is not a name of a parameter", line)
            elif name in names[:at]:
                findings.add("param-twice", f"the parameter {name!r} is listed twice", line)
            elif skill.command and name not in used:
                findings.add("param-unused", f"the command has no place for the parameter {name!r}", line)
        _check_evals(skill, files, findings)
    # The line of the file at which its text begins
    whole = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").rstrip(b"\n")
    _check_links(parts.body, max(1, whole.count(b"\n") - parts.body.count("\n") + 1), files, findings)
    return sorted(findings.found, key=lambda note: (note.path != MANIFEST, note.path, note.line or 0, note.code))


def description_findings(skill: SkillDef, *, strict: bool) -> list[Diagnostic]:
    """What keeps a description from leading messages to its skill (RTE-37, RTE-39); nothing if there is none, which
    another rule names."""
    text, findings = skill.description.strip(), _Findings(strict)
    if not text or any(note.code == "no-description" for note in skill.diagnostics):
        return []
    size = len(text) + len(_HAN.findall(text))
    if not _HINT.search(text):
        findings.add("trigger-missing", "the description does not say when to use it")
    if size < SHORT:
        findings.add("description-short", "the description is too short to tell it from others")
    if _PERSON.search(text):
        findings.add("description-person", "the description speaks in the first person")
    return findings.found


def entry_fault(entry: object) -> str:
    """Why an entry of a list of evals cannot be used, in words that follow its number; empty if it can."""
    fields = entry if isinstance(entry, Mapping) else {}
    query = fields.get("query", fields.get("prompt"))
    if not isinstance(query, str) or not query.strip() or not isinstance(fields.get("should_trigger", True), bool):
        return "needs a query, and true or false as should_trigger"
    return "" if isinstance(fields.get("expected_skill"), str | None) else "needs a name as expected_skill"


def _add_reason(error: NotLoadable, findings: _Findings) -> None:
    findings.add(str(error.data.get("reason", error.code)), error.message, error.data.get("line"), fatal=True)


# The specification


def _check_specification(parts: Parts, folder_name: str, files: Files, findings: _Findings) -> None:
    if parts.form != "frontmatter":
        findings.add("frontmatter-missing", "the file does not begin with frontmatter between '---' lines", 1)
        return
    for key in parts.meta:
        if key not in SPEC_KEYS:
            findings.add("key-unknown", f"{shorten(key, 64)!r} is not a key of the specification", parts.lines.get(key))
    for key in sorted(SPEC_KEYS - {"metadata", "allowed-tools"}):
        if not isinstance(parts.meta.get(key, ""), str):
            findings.add("not-text", f"{key} is not text", parts.lines.get(key))
    _check_name(parts, folder_name, findings)
    description, line = parts.meta.get("description"), parts.lines.get("description")
    if not isinstance(description, str) or not description.strip():
        findings.add("description-missing", "there is no description", line)
    elif len(description) > DESCRIPTION_LIMIT:
        message = f"the description has {len(description)} characters, over {DESCRIPTION_LIMIT}"
        findings.add("description-length", message, line)
    compatibility, line = parts.meta.get("compatibility", "-"), parts.lines.get("compatibility")
    if isinstance(compatibility, str) and not 1 <= len(compatibility.strip()) <= COMPATIBILITY_LIMIT:
        findings.add("compatibility-length", f"compatibility must have 1 to {COMPATIBILITY_LIMIT} characters", line)
    metadata, line = parts.meta.get("metadata"), parts.lines.get("metadata")
    for key, value in metadata.items() if isinstance(metadata, dict) else ():
        if not isinstance(value, str):
            findings.add("metadata-not-text", f"metadata.{shorten(key, 64)} is not text", line)
    text = parts.meta.get("license")
    for name in _LICENCE_FILE.findall(text) if isinstance(text, str) else ():
        if "." in name and name not in files:
            message = f"the license names {name!r}, which does not exist"
            findings.add("license-file-missing", message, parts.lines.get("license"))
    if parts.body.count("\n") >= BODY_LIMIT:
        findings.add("body-long", f"the text has over {BODY_LIMIT} lines; move some to other files")


def _check_name(parts: Parts, folder_name: str, findings: _Findings) -> None:
    value, line = parts.meta.get("name"), parts.lines.get("name")
    name = unicodedata.normalize("NFKC", value.strip()) if isinstance(value, str) else ""
    if not name:
        findings.add("name-missing", "there is no name", line)
        return
    folder = unicodedata.normalize("NFKC", folder_name)
    rules = {
        "name-length": (len(name) <= NAME_LIMIT, f"is over {NAME_LIMIT} characters"),
        "name-case": (name == name.lower(), "is not in lower case"),
        "name-characters": (
            all(mark.isalnum() or mark == "-" for mark in name),
            "has more than letters, digits and '-'",
        ),
        "name-hyphen": (not name.startswith("-") and not name.endswith("-"), "begins or ends with '-'"),
        "name-double-hyphen": ("--" not in name, "has '--' in it"),
        "name-folder": (not folder or name == folder, f"is not that of its folder, {folder!r}"),
    }
    for code, (holds, what) in rules.items():
        if not holds:
            findings.add(code, f"the name {shorten(name, 80)!r} {what}", line)


# Our own keys


def _check_keys(skill: SkillDef, parts: Parts, findings: _Findings) -> None:
    """Finds misspelt keys, keys of ours at a place where nothing reads them, values that are read as something else
    than they say, and tools that only nearly have the name of one."""
    metadata = parts.meta.get("metadata")
    absent = _TOP_KEYS - {spelled(key) for key in parts.meta}
    for key in (*islice(parts.meta, _MOST), *islice(metadata if isinstance(metadata, dict) else (), _MOST)):
        bare, near = key.removeprefix("navigator-"), list[str]()
        line = parts.lines.get(key) or _line_of(parts, bare)
        if bare == key:
            if key in parts.meta and spelled(key).lower() not in _TOP_KEYS:
                near = suggestions(key, absent, 1, 0.85)
        else:
            if key in parts.meta:
                findings.add("key-place", f"{shorten(key, 64)!r} is read only below metadata", line)
            if spelled(bare) not in {*OUR_KEYS, PACKAGES}:
                near = [f"navigator-{one}" for one in suggestions(bare, OUR_KEYS, 1)] or [""]
        for name in near:
            meant = f"; did you mean {name}?" if name else ""
            findings.add("key-misspelt", f"no key is called {shorten(key, 64)!r}{meant}", line)
    meta = merged_keys(parts, MANIFEST)
    for key in (key for key in meta if key in _FLAGS or key == "model"):
        value = shorten(text_of(meta[key]), 64)
        line, is_flag = _line_of(parts, key), value.lower() in _FLAG_WORDS
        if key == "model" and (is_flag or _FIGURES.fullmatch(value)):
            findings.add("value-odd", f"model {value!r} is not the name of a model", line)
        elif key != "model" and value and not is_flag:
            findings.add("value-odd", f"{key} {value!r} is neither true nor false", line)
    for tool in skill.allowed_tools[:_MOST]:
        name = tool.partition("(")[0]
        near = suggestions(name, _TOOLS, 1, 0.75) if name.isalpha() else []
        if near and near[0].lower() != name.lower() and abs(len(near[0]) - len(name)) <= 1:
            line = _line_of(parts, "allowed-tools")
            findings.add("tool-misspelt", f"no tool is called {name!r}; did you mean {near[0]}?", line)


def _line_of(parts: Parts, key: str) -> int | None:
    """The line of one of our keys, which may be inside `metadata`."""
    metadata, above = parts.meta.get("metadata"), parts.lines.get("metadata")
    if key in parts.lines or above is None or not isinstance(metadata, dict):
        return parts.lines.get(key)
    written = next((name for name in metadata if spelled(name.removeprefix("navigator-")) == spelled(key)), "")
    rows = parts.source.split("\n")
    rows = rows[next((at for at, row in enumerate(rows) if row.startswith("metadata")), 0) :]
    return above + next((at for at, row in enumerate(rows) if row.strip(" \"'").startswith(written)), 0)


def _check_command(skill: SkillDef, parts: Parts, files: Files, findings: _Findings) -> None:
    if not skill.command:
        return
    line = _line_of(parts, "command")
    params = {param.name: "x" for param in skill.required_params}
    try:
        fill_argv(skill.command, Filling(request="x", arguments=("x",) * 99, raw="x", params=params, root=Path("x")))
        words = shlex.split(skill.command)
    except KernelError as error:
        findings.add("command-invalid", error.message, line, fatal=True)
        return
    for name in _PLACEHOLDER.findall(skill.command):
        if name not in params and name != "request":
            findings.add("command-placeholder", f"the command has a place for {name!r}, which is not a parameter", line)
    if words and posixpath.basename(words[0]) not in _SHELLS:
        for name in _FILLED.findall(skill.command):
            findings.add("command-variable", f"the command has {name!r} in ${{}}, which nothing fills in", line)
        if sign := next((word for word in words if word in _SHELL_SIGNS), ""):
            message = f"the command has {sign!r}, but no shell runs it: use bash -c, or a script"
            findings.add("command-shell", message, line)
    for word in words:
        path = word.removeprefix("${SKILL_ROOT}/")
        if path != word and not _VARIABLE.search(path) and _normal(path) not in files:
            findings.add("command-file-missing", f"the command runs {path!r}, which does not exist", line)


def _check_links(body: str, first: int, files: Files, findings: _Findings) -> None:
    """Checks that the files of the skill that its text links to exist, except in code."""
    existing = {*files, MANIFEST, "."}
    existing |= {"/".join(path.split("/")[:depth]) for path in files for depth in range(1, path.count("/") + 1)}
    fence = ""
    for line, text in enumerate(body.split("\n"), first):
        mark = _FENCE.match(text)
        if mark and (not fence or mark.group(1).startswith(fence)):
            fence = "" if fence else mark.group(1)
            continue
        if fence:
            continue
        bare = _CODE.sub("", text)
        targets = [bracketed or plain for bracketed, plain in _TARGET.findall(bare)]
        if hit := _DEFINITION.match(bare):
            targets.append(hit.group(1))
        for target in targets:
            if not target.strip() or _ELSEWHERE.match(target.strip()):
                continue
            path = _normal(unquote(_AFTER_PATH.split(target, maxsplit=1)[0]))
            if path.startswith("../") or path == "..":
                findings.add("link-outside", f"the text links to {shorten(target, 80)!r}, outside the skill", line)
            elif path not in existing:
                findings.add("link-missing", f"the text links to {shorten(target, 80)!r}, which does not exist", line)


def _normal(path: str) -> str:
    return posixpath.normpath(path.strip())


# Evals


def _check_evals(skill: SkillDef, files: Files, findings: _Findings) -> None:
    for path, data in sorted(files.items()):
        if data is None or path not in {"evals/evals.json", "evals/trigger-eval.json", "trigger-eval.json"}:
            continue
        try:
            value = json.loads(data)
        except (ValueError, RecursionError) as error:
            findings.add("evals-json", "it is not JSON", getattr(error, "lineno", None), path)
            continue
        has_cases = isinstance(value, dict) and path.endswith("evals.json")
        entries = value.get("evals") if has_cases else value
        if has_cases and value.get("skill_name", skill.name) != skill.name:
            findings.add("evals-skill", f"it is for another skill than {skill.name!r}", None, path)
        if not isinstance(entries, list):
            message = "'evals' is not a list" if has_cases else "it is not a list of evals"
            findings.add("evals-form", message, None, path)
            continue
        for at, entry in enumerate(entries):
            if fault := entry_fault(entry):
                findings.add("trigger-form", f"entry {at} {fault}", None, path, fatal=True)
            names = entry.get("files", []) if has_cases and isinstance(entry, dict) else []
            for file in names if isinstance(names, list) else [None]:
                if not isinstance(file, str) or _normal(file) not in files:
                    message = f"entry {at} names the file {file!r}, which does not exist"
                    findings.add("evals-file-missing", message, None, path)

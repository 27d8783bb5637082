"""Findings: each has a file, a line and the text itself. They can be shown as SARIF; a person can accept those that
block."""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import quote

from navigator_kernel.errors import Refused
from navigator_kernel.text import clean
from navigator_kernel.values.resource import Diagnostic

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from navigator_kernel.skills.options import InstallOptions
    from navigator_kernel.values.receipt import Receipt


Level = Literal["note", "warning", "error"]

SHOWN = 120  # characters of the text that are shown
MOST = 100  # findings of one code and level in one file
_LOWER: Mapping[Level, Level] = {"error": "warning", "warning": "note", "note": "note"}


def finding(
    code: str, level: Level, path: str, message: str, line: int | None, text: str, *, judged: str | bytes = ""
) -> Diagnostic:
    """Creates a finding; ValueError if its rule, file, sentence or text is missing, or its line is below 1. `line` is
    None for a file without lines; `text` then names the type of the file. `judged` is everything that was examined for
    it, by default the text."""
    shown = shortened(text)
    if not (code and path and message and shown) or (line is not None and line < 1):
        raise ValueError(f"a finding needs a rule, a file, a sentence and a text: {code!r} in {path!r}")
    held = judged or text
    digest = _of_file(held) if isinstance(held, bytes) else _digest(held.encode("utf-8", "surrogatepass"))
    return Diagnostic(code=code, level=level, path=path, message=message, line=line, text=shown, digest=digest)


@lru_cache(maxsize=1)  # many findings in one file need the same digest
def _of_file(data: bytes) -> str:
    return _digest(data)


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def shortened(text: str, at: int = 0) -> str:
    """One line of `text`, cleaned and cut around the position `at`."""
    begin = max(at - SHOWN // 3, 0) if len(text) > SHOWN else 0
    cut = text[begin : begin + 4 * SHOWN]
    shown = " ".join(clean(cut, lines=False).split())
    head, tail = ("…" if begin else ""), ("…" if len(shown) > SHOWN or begin + len(cut) < len(text) else "")
    return f"{head}{shown[:SHOWN]}{tail}" if shown else clean(ascii(text[:40]), lines=False) if text else ""


def lowered(level: Level) -> Level:
    return _LOWER[level]


def told(found: Mapping[str, Any], folder: str = "") -> str:
    """The sentence for a finding, the same for every command."""
    place = "/".join(part for part in (folder, str(found["path"])) if part)
    line = f":{found['line']}" if found.get("line") else ""
    text = f": '{found['text']}'" if found.get("text") else ""
    return clean(f"{found['level']} {place}{line} {found['code']}: {found['message']}{text}", lines=False)


SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(skills: Sequence[Mapping[str, Any]], version: str, root: Path) -> dict[str, Any]:
    """One SARIF run for `skills`, in the form of `skill scan`. A path is that of the file from the top of the
    repository that the project at `root` is in; of a file elsewhere it is a `file:` address."""
    top = next((folder for folder in (root, *root.parents) if os.path.lexists(folder / ".git")), root)
    rules: dict[str, str] = {}
    results = []
    for skill, finding in ((one, finding) for one in skills for finding in one["findings"]):
        rules.setdefault(finding["code"], finding["message"])
        written = "/".join(part for part in (str(skill["path"]), str(finding["path"])) if part)
        path = root / written
        if path.is_relative_to(top) and os.path.lexists(root / str(skill["path"])):
            written = path.relative_to(top).as_posix()
        uri = path.as_uri() if written.startswith("/") else quote(written, safe="/:.~")
        place: dict[str, Any] = {"artifactLocation": {"uri": uri}}
        if finding["line"]:
            place["region"] = {"startLine": finding["line"]}
        result = {
            "ruleId": finding["code"],
            "level": finding["level"],
            "message": {"text": f"{skill['name']}: {finding['message']}"},
            "locations": [{"physicalLocation": place}],
        }
        results.append(result)
    driver = {
        "name": "navigator",
        "version": version,
        "rules": [{"id": code, "shortDescription": {"text": rules[code]}} for code in sorted(rules)],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


REFUSAL_SHOWS = 5  # findings that a refusal shows


class Judged(NamedTuple):
    """The blocking findings that nobody accepted, the accepted ones, and the new acceptances to be stored."""

    blocking: Sequence[Diagnostic]
    accepted: Sequence[Diagnostic]
    granted: tuple[str, ...]


def subject(receipt: Receipt, found: Diagnostic) -> str:
    """The subject of an acceptance. It is bound to the skill and its source, not to a commit, and to the rule, the file
    and the digest of what was examined: an update asks again only if the finding differs."""
    source = clean(receipt.source, lines=False)
    return f"accepted:{receipt.name}@{source}@{found.code}@{found.path}@{found.digest}"


def judged(receipt: Receipt, findings: Sequence[Diagnostic], given: Sequence[str], subjects: Collection[str]) -> Judged:
    """Sorts the errors by acceptance. `given` are the rules that the person names now, `RULE` or `NAME:RULE`;
    `subjects` are the earlier acceptances, to which no file of a project can add."""
    named = {rule for rule in given if ":" not in rule}
    named |= {rule.partition(":")[2] for rule in given if rule.partition(":")[0] == receipt.name}
    blocking, accepted, granted = [], [], []
    for error in (finding for finding in findings if finding.level == "error"):
        acceptance = subject(receipt, error)
        if acceptance in subjects:
            accepted.append(error)
        elif error.code in named and error.digest:
            accepted.append(error)
            granted.append(acceptance)
        else:
            blocking.append(error)
    return Judged(blocking, accepted, tuple(granted))


def facts(found: Diagnostic) -> Mapping[str, str]:
    """The facts that are recorded about an acceptance."""
    return {"rule": found.code, "file": clean(found.path, lines=False), "digest": found.digest}


def refusal(
    receipt: Receipt, findings: Sequence[Diagnostic], blocking: Sequence[Diagnostic], options: InstallOptions
) -> Refused:
    """The refusal, which shows the findings with their places and the whole command that accepts them."""
    shown = "; ".join(told(one.to_dict()) for one in blocking[:REFUSAL_SHOWS])
    rules = list(dict.fromkeys(one.code for one in blocking))
    words = [receipt.source, "--skill", receipt.name]
    if receipt.declared:  # without `--as`, a skill at a path keeps its own name
        words = [receipt.source, "--skill", receipt.subpath or receipt.declared, "--as", receipt.name]
    words += ["--ref", receipt.ref] if receipt.ref else []
    words += [word for rule in rules for word in ("--accept", f"{receipt.name}:{rule}")]
    message = f"skill {receipt.name!r} is blocked: {shown}"
    hint = f"read it; to install it anyway: {options.command('install', *words)}"
    reported = [one.to_dict() for one in findings]
    return Refused(message, hint=hint, reason="unsafe", findings=reported, skill=receipt.name, blocked_by=rules)

"""A team's rules: which sources skills may come from, and what the scanners may find in them. They stand in the policy
files of the machine and of the person, never in a project; a skill must satisfy both files (issue 50, item 6)."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, get_args

from msgspec import Struct

from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.errors import Damaged, KernelError, Refused, UsageProblem
from navigator_kernel.skills.scan.finding import Level, told
from navigator_kernel.skills.source.address import FORGE_HOSTS, SAME_AS
from navigator_kernel.text import clean, lazy_compile, strip_url_credentials, suggestions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from navigator_kernel.values.receipt import Receipt, Verdict
    from navigator_kernel.values.resource import Diagnostic

_SIZE_LIMIT = 1024 * 1024  # bytes
_EXAMPLES = '"github.com/acme/*", "https://skills.acme.com", "npm:@acme/*"'
# A host without a dot needs the scheme or a port: else it is the name of an owner
_PATTERN = lazy_compile(
    r"(?!.*\.\.|mcp:)(?:npm:@?[\w.~*/-]+|(?:(?:https?|ssh)://(?:[\w.-]+@)?|(?:[\w.-]+@)?(?=[^/]*[.*:]))[\w.*\[\]:-]+(?:/[^\s?#@]*)?)"
)
_ALLOWED: Mapping[Level, frozenset[Verdict]] = {
    "error": frozenset({"ok", "warn", "block", "not_scanned"}),
    "warning": frozenset({"ok", "warn"}),
    "note": frozenset({"ok"}),
}
_HINTS = {
    "sources": f"a list of sources: {_EXAMPLES}; not an MCP server, because a project says what its name means",
    "folders": "true or false: whether folders and archives of this machine may be installed",
    "scan": "the most serious finding that a skill may be installed with: note, warning or error",
    "pinned": "true or false: whether a source must be pinned to a commit, a version or an entry of the lock",
}


class Rules(Struct, frozen=True, kw_only=True):
    """The rules of the file at `path`. Skills come from `sources` only, unless that is None, and from folders,
    archives and repositories of this machine only if `folders`. `scan` is the most serious finding that a skill may be
    installed with, whatever the person accepts; below `error`, all of it must have been scanned. If `pinned`, a source
    must name a commit or a version, or the lock the bytes."""

    path: str
    sources: list[str] | None = None
    folders: bool = True
    scan: Level = "error"
    pinned: bool = False

    def allows(self, url: str) -> bool:
        """Whether skills may come from `url` of a `Source`: from what lies at one of the sources or below it, where a
        star stands for any letters of one part."""
        if not (parts := address_of(url).split("/"))[0]:
            return self.folders
        patterns = (address_of(one, is_rule=True).replace("[", "[[]").split("/") for one in self.sources or ())
        fits = any(len(parts) >= len(wanted) and all(map(fnmatchcase, parts, wanted)) for wanted in patterns)
        return self.sources is None or fits


def read_rules(files: Iterable[Path]) -> tuple[Rules, ...]:
    """The rules of those `files` that exist. Damaged for one that cannot be read or is a link, UsageProblem for a key
    or a value that means nothing: then nothing can be installed."""
    import tomllib  # takes 14 ms

    rules = []
    for path in files:
        try:
            text = read_bounded(path, _SIZE_LIMIT).decode()
            table = tomllib.loads(text)
        except FileNotFoundError:
            continue
        except (KernelError, ValueError, RecursionError) as error:
            kind = "UTF-8" if isinstance(error, UnicodeDecodeError) else f"TOML: {error}"
            why = error.message if isinstance(error, KernelError) else f"{str(path)!r} is not {kind}"
            hint = "nothing is installed until the file can be read; fix it, or remove it"
            raise Damaged(f"the policy file cannot be used: {why}", hint=hint, path=str(path)) from error
        for key, value in table.items():
            begin = lazy_compile(rf"\s*\[*\s*[\"']?{re.escape(key)}[\"'\s=.\]]")
            line = next((number for number, row in enumerate(text.splitlines(), 1) if begin.match(row)), 1)
            where = f"{str(path)!r}, line {line}"
            if key not in _HINTS:
                near = suggestions(key, _HINTS, 1, 0.6)
                hint = f"did you mean {near[0]!r}?" if near else f"the rules are: {', '.join(_HINTS)}"
                raise UsageProblem(f"{where}: {clean(key, lines=False)!r} is not a rule", hint=hint, path=str(path))
            bad = [value]
            if key == "sources":
                if not isinstance(value, list):
                    raise UsageProblem(f"{where}: {key!r} must be a list", hint=_HINTS[key], path=str(path))
                bad = [one for one in value if not isinstance(one, str) or not _PATTERN.fullmatch(one)]
            elif value in get_args(Level) if key == "scan" else isinstance(value, bool):
                bad = []
            if bad:
                shown = clean(str(bad[0]), lines=False)
                raise UsageProblem(f"{where}: {key!r} cannot be {shown!r}", hint=_HINTS[key], path=str(path))
        rules.append(Rules(**{"folders": "sources" not in table, **table, "path": str(path)}))
    return tuple(rules)


def address_of(url: str, *, is_rule: bool = False) -> str:
    """The one form of all spellings of a source: `host/path`, `npm:/package` or `mcp:/server`, which no pattern of a
    host fits; empty for a place on this machine. Only a rule may use another name of a host: over ssh or after a
    redirect, it is another host."""
    if url.startswith(("npm:", "mcp:")):
        return f"{url[:4]}/{url[4:].rstrip('/')}"
    scheme, separator, rest = url.partition("://")
    if url.startswith("/") or scheme.lower() == "file":
        return ""
    if not separator:  # user@host:path, or host:path with a host of the person's ssh settings; or a rule without scheme
        before, colon, below = url.partition(":")
        is_ssh = colon and "/" not in before and ("@" in before or not below.partition("/")[0].isdigit())
        scheme, rest = ("ssh", f"{before}/{below.lstrip('/')}") if is_ssh else ("https", url)
    host, _, path = rest.partition("/")
    user, _, host = host.lower().rpartition("@")
    host = host.removesuffix(":22" if scheme.lower() == "ssh" else ":443")
    host = SAME_AS.get(host, host) if is_rule else host
    path = path.rstrip("/").removesuffix(".git")
    path = path.lower() if host in FORGE_HOSTS else path
    home = "" if user in {"", "git"} else f"~{user}"  # on a plain ssh server, each user has folders of their own
    return "/".join(part for part in (host, home, path) if part)


def refuse_source(rules: Sequence[Rules], url: str) -> None:
    """Refused if one of the rules does not allow skills from `url`."""
    for rule in rules:
        if not rule.allows(url):
            key = "sources" if address_of(url) else "folders"
            listed = ", ".join(rule.sources or ()) if key == "sources" else ""
            shown = strip_url_credentials(clean(url, lines=False))
            message = f"{shown!r} is not a source that {key!r} in {rule.path!r} allows"
            raise _refused(
                message, rule, key, f"allowed are: {listed}" if listed else "no folder of this machine is allowed"
            )


def refuse_skill(
    rules: Sequence[Rules],
    receipt: Receipt,
    verdict: Verdict,
    findings: Sequence[Diagnostic] = (),
    *,
    is_locked: bool,
) -> None:
    """Refused if one of the rules does not allow the skill; no agreement changes that. `verdict` is that of all its
    findings, accepted or not; `is_locked` says that the lock names exactly these bytes."""
    refuse_source(rules, receipt.source)
    for rule in rules:
        if rule.pinned and not is_locked and (not receipt.commit or receipt.ref != receipt.commit):
            message = f"skill {receipt.name!r} is not pinned, and 'pinned' in {rule.path!r} requires that"
            pin = f"pin it: --ref {receipt.commit}" if receipt.commit else "install it from a repository, at a commit"
            raise _refused(message, rule, "pinned", pin)
        if verdict not in _ALLOWED[rule.scan]:
            worst = min(findings, key=lambda one: ("error", "warning", "note").index(one.level), default=None)
            shown = f": {told(worst.to_dict())}" if worst else ""
            what = "was not scanned completely" if verdict == "not_scanned" else "has findings"
            message = f"skill {receipt.name!r} {what}, which 'scan' in {rule.path!r} does not allow{shown}"
            raise _refused(message, rule, "scan", "--accept does not change that; tell its author")


def _refused(message: str, rule: Rules, key: str, hint: str) -> Refused:
    hint = f"{hint}; whoever keeps {rule.path!r} can change the rule"
    return Refused(message, hint=hint, reason="policy", rule=key, path=rule.path)

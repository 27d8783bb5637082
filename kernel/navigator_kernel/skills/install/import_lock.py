"""Installs the skills in the lock of another tool: `skills-lock.json` of the npm package `skills` (version 1), its
`~/.agents/.skill-lock.json` (version 3), or `apm.lock.yaml` of APM (versions 1 and 2)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.adapters.sources.published import is_archive
from navigator_kernel.errors import (
    Busy,
    ConsentNeeded,
    Damaged,
    FetchFailed,
    Interrupted,
    KernelError,
    NotFound,
    Refused,
    UsageProblem,
)
from navigator_kernel.skills.install.deps import open_source_tree
from navigator_kernel.skills.install.install import InstalledSkill, InstallResult, collect, install_prepared
from navigator_kernel.skills.source.address import Source, parse_source
from navigator_kernel.skills.source.reading import SourceReader
from navigator_kernel.text import clean, fold

if TYPE_CHECKING:
    from navigator_kernel.skills.catalog.place import InstallScope
    from navigator_kernel.skills.install.deps import InstallDeps
    from navigator_kernel.skills.options import InstallOptions
    from navigator_kernel.values.receipt import Receipt

VERSIONS = (1, 3)
FILE = "skills-lock.json"
_SIZE_LIMIT = 16 * 1024 * 1024  # bytes
_FOUND = {"github", "gitlab", "git", "local", "well-known"}
_UNREAD: Mapping[str, str] = {
    "node_modules": "it comes from an npm package: navigator skill install ./node_modules/{source}",
}
# The order of ASCII in the package's JavaScript (Unicode collation, root locale): first the characters, then case.
_ORDER = {mark: at for at, mark in enumerate(" _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz")}
_CODES = {3, 4, 6, 7}  # exit codes that are kept if all failures have the same one

Files = Mapping[str, bytes]


class _Entry(Struct, frozen=True, kw_only=True):
    """`wanted` is the skill's path in its source, or its name; `digest` is the hash of its files in the lock."""

    name: str
    source: Source
    wanted: str
    digest: str


class _Run:
    """One import: installed skills, skipped skills, and the files that were read."""

    def __init__(self, place: InstallScope, deps: InstallDeps, options: InstallOptions) -> None:
        self._place, self._deps, self._options = place, deps, options
        self._files: dict[str, Files] = {}
        self.fresh: set[str] = set()
        self.imported: list[dict[str, Any]] = []
        self.skipped: list[dict[str, Any]] = []
        self.codes: set[int] = set()

    def skip(self, name: str, why: str, hint: str = "", code: str = "unsupported") -> None:
        told = {"name": name, "why": why, "hint": hint, "code": code}
        self.skipped.append({key: clean(value, lines=False) for key, value in told.items()})

    def fail(self, name: str, error: KernelError) -> None:
        self.codes.add(error.exit_code)
        self.skip(name, error.message, error.hint, error.code)

    def take(self, entries: Sequence[_Entry]) -> None:
        """Installs the skills of one source together, or one by one if that fails."""
        try:
            with open_source_tree(entries[0].source, self._deps, self._options, install=True) as tree:
                words = [entry.wanted for entry in entries]
                prepared = collect(SourceReader(entries[0].source, tree), words, self._deps, self._options)
            self._files |= {plan.receipt.name: plan.contents for plan in prepared.made}
            answer = install_prepared(prepared, self._place, self._deps, self._options)
            self.fresh |= {skill.name for skill in answer.skills if skill.changed}
        except (Damaged, Busy, Interrupted):
            raise
        except KernelError as error:
            if len(entries) > 1 and not isinstance(error, FetchFailed):
                self._one_by_one(entries)
                return
            for entry in entries:
                self.fail(entry.name, error)
            return
        if len(entries) == 1 and not answer.skills:  # the person has not agreed yet
            [one] = answer.left_out
            self.fail(entries[0].name, ConsentNeeded(one["msg"], hint=f"navigator update {one['name']} asks"))
            return
        if len(answer.skills) != len(entries):  # two entries name the same skill
            self._one_by_one(entries)
            return
        for entry, told in zip(entries, answer.skills, strict=True):
            self._tell(entry, told, answer)

    def _one_by_one(self, entries: Sequence[_Entry]) -> None:
        for entry in entries:
            self.take([entry])

    def _tell(self, entry: _Entry, told: InstalledSkill, answer: InstallResult) -> None:
        name = told.name
        if any(one["name"] == name and one["source"] != answer.source for one in self.imported):
            self.fail(entry.name, Refused(f"skill {name!r} comes from another entry", hint="install it with --as"))
            return
        notes = [] if fold(name) == fold(entry.name) else [f"it is called {name!r} now"]
        files = self._files[name]
        # For a skill at the top of its repository, some versions of the package hash only the manifest
        hashes = [foreign_hash(files)]
        if "/" not in entry.wanted:
            hashes.append(foreign_hash({path: data for path, data in files.items() if path.lower() == "skill.md"}))
        if entry.digest and hashes[0] and entry.digest not in hashes:
            notes.append("changed since it was locked")
        head = {"name": name, "entry": clean(entry.name, lines=False), "source": answer.source}
        head |= {"ref": entry.source.ref, "commit": answer.commit, "path": told.path, "digest": told.digest}
        self.imported.append({**head, "changed": name in self.fresh, "notes": notes, "findings": told.findings})


def import_lock(file: Path, place: InstallScope, deps: InstallDeps, options: InstallOptions) -> dict[str, Any]:
    """Returns `{file, level, dry_run, changed, imported: [{name, entry, source, ref, commit, path, digest, changed,
    notes, findings}], skipped: [{name, why, hint, code}], exit_code}`. `file` itself is only read.

    A skill that cannot be installed is skipped with the reason; `exit_code` is not 0 if that was a failure. NotFound
    without the file, Damaged if it is not a lock of these versions.
    """
    run = _Run(place, deps, options)
    groups: dict[object, list[_Entry]] = {}
    for name, raw in sorted(_read(file).items()):
        kind = str(raw.get("sourceType") or "github")
        if kind not in _FOUND:
            why = _UNREAD.get(kind, f"sources of the kind {kind!r} are unknown")
            run.skip(name, why.format(source=raw.get("source", "")))
            continue
        try:
            entry = _entry(name, raw, kind, file.parent)
        except KernelError as error:
            run.fail(name, error)
            continue
        groups.setdefault(entry.source, []).append(entry)
    for entries in groups.values():
        run.take(entries)
    head = {"file": str(file), "level": place.level, "dry_run": options.dry_run, "changed": bool(run.fresh)}
    imported = sorted(run.imported, key=lambda told: str(told["entry"]))
    skipped = sorted(run.skipped, key=lambda told: str(told["name"]))
    same = run.codes if len(run.codes) == 1 and not run.imported else {1}
    exit_code = (max(same) if same <= _CODES else 1) if run.codes else 0
    return {**head, "imported": imported, "skipped": skipped, "exit_code": exit_code}


def foreign_entry(name: str, receipt: Receipt | None, files: Files) -> dict[str, str]:
    """The entry of a skill in a `skills-lock.json`, version 1; UsageProblem if its source has no form in it."""
    source = parse_source(receipt.source, base=Path("/")) if receipt else None
    if (
        receipt is None
        or source is None
        or source.kind in {"folder", "archive"}
        or is_archive(source.url)
        or source.url.startswith(("npm:", "mcp:"))
    ):
        message = f"the source of {name!r} has no form in a {FILE}"
        raise UsageProblem(message, hint="leave out what was not installed from a repository or a site")
    if source.kind == "web":
        head = {"source": urlsplit(source.url).netloc, "sourceType": "well-known", "sourceUrl": source.url}
    else:
        kind = "github" if source.label != source.url else "git"
        head = {"source": source.label, "sourceType": kind, "sourceUrl": source.url}
        head |= {"ref": receipt.ref} if receipt.ref else {}
        head["skillPath"] = f"{receipt.subpath}/SKILL.md".removeprefix("/")
    digest = foreign_hash(files)
    return {**head, "computedHash": digest} if digest else head


def foreign_hash(files: Files) -> str | None:
    """SHA-256 over each file's path and content in the npm package's order, or None if that order is not known."""
    kept = {path: data for path, data in files.items() if not {".git", "node_modules"} & set(path.split("/")[:-1])}
    if len(kept) > 1 and any(mark not in _ORDER for path in kept for mark in path.lower()):
        return None
    ranks = {path: [_ORDER.get(mark, 0) for mark in path.lower()] for path in kept}
    digest = hashlib.sha256()
    for path in sorted(kept, key=lambda path: (ranks[path], [mark.isupper() for mark in path])):
        digest.update(path.encode() + kept[path])
    return digest.hexdigest()


def _read(file: Path) -> Mapping[str, Mapping[str, Any]]:
    is_apm = file.suffix in {".yaml", ".yml"}
    try:
        content = read_bounded(file, _SIZE_LIMIT)
        whole = _of_apm(content) if is_apm else json.loads(content)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound(f"there is no {str(file)!r}", hint="name the skills-lock.json") from error
    except (ValueError, RecursionError, Refused) as error:
        raise _damaged(file, "cannot be read") from error
    entries = whole.get("skills") if isinstance(whole, dict) else None
    if not isinstance(entries, dict) or not all(isinstance(entry, dict) for entry in entries.values()):
        raise _damaged(file, "is not a lock of skills")
    if whole.get("version") not in VERSIONS:
        raise _damaged(file, f"has the version {str(whole.get('version'))[:20]!r}, not 1 or 3")
    return entries


def _of_apm(content: bytes) -> dict[str, Any]:
    """The dependencies of an `apm.lock.yaml` in the form of a `skills-lock.json`; ValueError if it is none."""
    import yaml

    try:
        whole = yaml.load(content, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - a safe loader
    except yaml.YAMLError as error:
        raise ValueError("it is not YAML") from error
    if not isinstance(whole, dict) or str(whole.get("lockfile_version")) not in {"1", "2"}:
        return {"version": whole.get("lockfile_version") if isinstance(whole, dict) else None, "skills": {}}
    rows = whole.get("dependencies") or []
    skills: dict[str, Any] = {}
    for row in rows if isinstance(rows, list) else [rows]:
        row = row if isinstance(row, dict) else {}
        path, repository = (_text(row, key).strip("/") for key in ("virtual_path", "repo_url"))
        name = (path or repository).rpartition("/")[2].removesuffix(".git") or "a dependency"
        kind, package = "git", _text(row, "package_type")
        if package and "skill" not in package and "marketplace" not in package:
            kind = f"{package} of APM"
        ref = _text(row, "resolved_commit") or _text(row, "resolved_ref")
        entry = {"sourceType": kind, "sourceUrl": repository, "ref": ref, "skillPath": f"{path}/SKILL.md".strip("/")}
        skills[name if name not in skills else f"{repository}/{path}"] = entry
    return {"version": 1, "skills": skills}


def _damaged(file: Path, what: str) -> Damaged:
    return Damaged(f"{str(file)!r} {what}", hint="a lock of the npm package skills, or of APM, is read", path=str(file))


def _entry(name: str, raw: Mapping[str, Any], kind: str, base: Path) -> _Entry:
    """One entry of the lock; Refused, NotFound or UsageProblem if its source cannot be used."""
    source = _text(raw, "sourceUrl") or _text(raw, "source")
    if kind in {"git", "gitlab"} and not _text(raw, "sourceUrl") and ":" not in source:
        raise NotFound(f"the lock names {source!r} and not the host", hint="install it by its URL")
    wanted = _text(raw, "skillPath")
    if kind == "well-known":
        site = source if "://" in source else f"https://{source}"
        source = site if "/.well-known" in site else f"{site.rstrip('/')}/.well-known"
    parsed = parse_source(source, base=base, ref=_text(raw, "ref") if kind in {"github", "gitlab", "git"} else "")
    if wanted and "/" not in (folder := wanted.rpartition("/")[0]):
        parsed = replace(parsed, subpath=parsed.subpath or folder)  # a single word could also be another skill's name
    return _Entry(name=name, source=parsed, wanted=wanted or name, digest=_text(raw, "computedHash"))


def _text(raw: Mapping[str, Any], key: str) -> str:
    value = raw.get(key)
    return value.strip() if isinstance(value, str) else ""

"""The commands that read and write files: export, import-lock, convert, formats, cache, mapping and validate."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from navigator_kernel.adapters.files.writer import FolderWriter, read_bounded
from navigator_kernel.errors import NotFound, Refused, UsageProblem
from navigator_kernel.skills.catalog.receipts import read_receipts
from navigator_kernel.skills.commands.lifecycle import required, words
from navigator_kernel.skills.formats.frontmatter import FILE_LIMIT
from navigator_kernel.skills.formats.layouts import FORMATS, detect_format, to_canonical
from navigator_kernel.skills.formats.manifest import read_manifest
from navigator_kernel.text import clean, fold

if TYPE_CHECKING:
    from navigator_kernel.adapters.sources.repo_cache import RepoCache
    from navigator_kernel.skills.commands.lifecycle import Answer, Lifecycle
    from navigator_kernel.skills.install.inventory import Installed
    from navigator_kernel.values.resource import Diagnostic

Params = Mapping[str, Any]

_LIMIT = 16 * 1024 * 1024  # bytes of a file that is read


def _export(ground: Lifecycle, params: Params) -> Answer:
    """`{name, all, target, zip, force, dry_run, user, of}`: `target` is where to write, `of` where the skills are."""
    from navigator_kernel.skills.install.export import export

    target = _path(ground, required(params, "target"))
    kept = [place.skills for place in ground.places.values()]
    flags = {"packed": "zip", "force": "force", "dry_run": "dry_run"}
    given = {key: bool(params.get(name)) for key, name in flags.items()}
    return export(_wanted(ground, params), target, kept, **given)


def _import_lock(ground: Lifecycle, params: Params) -> Answer:
    """`{file, dry_run, offline, auth, user, target}`."""
    from navigator_kernel.skills.install.import_lock import FILE, import_lock

    file = _path(ground, str(params.get("file") or FILE))
    return import_lock(file, ground.target(params), ground.deps, ground.options(params))


def _convert(ground: Lifecycle, params: Params) -> Answer:
    """`{path, out, force, dry_run}` → `{path, layout, name, out, changed, dry_run}`; also `text` without `out` or with
    `dry_run`."""
    path, dry_run = _manifest(_path(ground, required(params, "path"))), bool(params.get("dry_run"))
    name = path.parent.name if path.name.lower() == "skill.md" else path.name
    data = read_bounded(path, FILE_LIMIT)
    written = to_canonical(data, name)
    own = read_manifest(written, path=path, folder=None).name
    head = {"path": str(path), "layout": detect_format(data, name), "name": own, "dry_run": dry_run}
    if not params.get("out"):
        return {**head, "out": "", "changed": False, "text": written.decode()}
    out = _path(ground, str(params["out"]))
    out = out if out.suffix else out / "SKILL.md"
    _refuse_managed(ground, out)
    held = _held(out)
    if held is not None and held != written and not params.get("force"):
        raise Refused(f"{str(out)!r} already exists", hint="--force replaces it")
    told = {**head, "out": str(out), "changed": held != written}
    if dry_run:
        return {**told, "text": written.decode()}
    if held != written:
        FolderWriter([out]).write(out, written)
    return told


def _formats(_ground: Lifecycle, _params: Params) -> Answer:
    """`{formats: {name: description}}`."""
    return {"formats": dict(FORMATS)}


def _cache(ground: Lifecycle, params: Params) -> Answer:
    """`{clear, older_than, dry_run}` → `{count, bytes, repositories: [{url, bytes, refs, used}]}`; with `clear` these
    are the removed ones, and `cleared`, `changed` and `dry_run` are added. `older_than` is days since the last use."""
    cache, days = _repositories(ground), params.get("older_than")
    if days is not None and not params.get("clear"):
        raise UsageProblem("--older-than says what --clear removes", hint="add --clear")
    rows = [row for row in cache.listed() if days is None or _age(ground, str(row["used_at"])) > float(days)]
    told = [
        {"url": clean(row["url"], lines=False), "bytes": row["bytes"], "refs": row["refs"], "used": row["used_at"]}
        for row in rows
    ]
    answer = {"count": len(told), "bytes": sum(row["bytes"] for row in rows), "repositories": told}
    if not params.get("clear"):
        return answer
    dry_run = bool(params.get("dry_run"))
    cleared = 0 if dry_run else cache.clear(None if days is None else float(days))
    return {**answer, "cleared": cleared, "changed": bool(told), "dry_run": dry_run}


def _mapping(ground: Lifecycle, params: Params) -> Answer:
    """`{word}` → `{count, rows: [{name, description, repo, subpath, page, observed, install}]}`."""
    from navigator_kernel.skills.source.remote import known_skills

    rows = known_skills(str(params.get("word") or ""), ground.deps.mapping)
    return {"count": len(rows), "rows": rows}


def _validate(ground: Lifecycle, params: Params) -> Answer:
    """`{path, base, strict}` → `{count, errors, strict, skills: [{name, path, ok, findings}], exit_code}`.

    `path` is the name of an installed skill, or, relative to `base`, a file or a folder with skills at any depth.
    """
    base = Path(str(params.get("base") or ground.root))
    path, strict = _skill_path(ground, required(params, "path"), base), bool(params.get("strict"))
    told = [_checked(one, strict=strict) for one in _manifests(path)]
    errors = sum(finding["level"] == "error" for one in told for finding in one["findings"])
    head = {"count": len(told), "errors": errors, "strict": strict}
    return {**head, "skills": told, "exit_code": 1 if errors else 0}


def _wanted(ground: Lifecycle, params: Params) -> Sequence[Installed]:
    """The named skills, or all that were not shipped with this release."""
    found = {fold(one.skill.name): one for one in ground.found({**params, "target": params.get("of")})[0]}
    names = words(params.get("name"))
    if bool(names) == bool(params.get("all")):
        raise UsageProblem("name the skills, or use --all", hint="navigator skill export NAME OUT")
    if names:
        missing = next((name for name in names if fold(name) not in found), None)
        if missing is not None:
            raise ground.unknown(missing)
        return list({fold(name): found[fold(name)] for name in names}.values())
    every = [one for one in found.values() if one.status != "shipped"]
    if not every:
        raise NotFound("nothing is installed", hint="name a shipped skill to export it")
    return every


def _repositories(ground: Lifecycle) -> RepoCache:
    cache = ground.deps.cache()
    if cache is None:
        raise NotFound("this command keeps no repositories", hint="navigator skill cache")
    return cache


def _age(ground: Lifecycle, used: str) -> float:
    """Days since `used`."""
    return (datetime.fromisoformat(ground.deps.clock.now()) - datetime.fromisoformat(used)).total_seconds() / 86_400


def _skill_path(ground: Lifecycle, word: str, base: Path) -> Path:
    """The path of the installed skill `word`, if there is one; otherwise `word` as a path relative to `base`."""
    plain = "/" not in word and not word.startswith(".")
    held = ground.held(word) if plain else None
    if held is not None:
        return held.skill.folder or held.skill.path
    path = _path(ground, str(base / word))
    if plain and not path.suffix and not os.path.lexists(path):
        raise ground.unknown(word)
    return path


def _manifests(path: Path) -> list[Path]:
    """The file, the SKILL.md of a folder, or those of all skills below it; examples and tests only if there is nothing
    else."""
    if not path.is_dir() or any(file.name.lower() == "skill.md" for file in path.iterdir()):
        return [_manifest(path)]
    return _below(path)


def _below(path: Path) -> list[Path]:
    from navigator_kernel.adapters.sources.local import FolderSource
    from navigator_kernel.skills.source.discover import find_skills

    with FolderSource(path) as tree:
        found = find_skills(tree.entries, top=path.name)
    chosen = [skill for skill in found if skill.role == "skill"] or found
    return [path / skill.manifest.path for skill in chosen]


def _checked(path: Path, *, strict: bool) -> dict[str, Any]:
    from navigator_kernel.skills.formats.validate import validate

    whole = path.name.lower() == "skill.md"
    files = _files(path.parent) if whole else {}
    name = path.parent.name if whole else path.stem
    found = validate(read_bounded(path, _LIMIT), name, files, strict=strict)
    told = [_finding(one) for one in found]
    ok = not any(one["level"] == "error" for one in told)
    return {"name": clean(name, lines=False), "path": str(path), "ok": ok, "findings": told}


def _files(folder: Path) -> Mapping[str, bytes | None]:
    """Every file of a skill by its path, with the bytes of its evals only, as these are checked too."""
    from navigator_kernel.adapters.sources.local import FolderSource
    from navigator_kernel.skills.source.discover import REGULAR

    with FolderSource(folder) as tree:
        paths = [entry.path for entry in tree.entries if entry.kind != "tree"]
        evals = [entry for entry in tree.entries if entry.path.endswith(("evals.json", "trigger-eval.json"))]
        read = [entry.oid for entry in evals if entry.mode in REGULAR]
        return {**dict.fromkeys(paths), **tree.contents(read, each=_LIMIT, total=4 * _LIMIT)}


def _finding(one: Diagnostic) -> dict[str, Any]:
    return {key: value if key == "line" else clean(str(value), lines=False) for key, value in one.to_dict().items()}


def _manifest(path: Path) -> Path:
    """The file, or the SKILL.md of a folder; NotFound if there is none."""
    if path.is_dir():
        held = next((file for file in sorted(path.iterdir()) if file.name.lower() == "skill.md"), None)
        if held is None:
            raise NotFound(f"there is no SKILL.md in {str(path)!r}", hint="name the file")
        return held
    if not os.path.lexists(path):
        raise NotFound(f"there is no {str(path)!r}", hint="name a file, or a folder with a SKILL.md")
    return path


def _held(path: Path) -> bytes | None:
    """The current content of the file, or None if it is missing; Refused unless it is a regular file."""
    try:
        return read_bounded(path, _LIMIT)
    except FileNotFoundError:
        return None


def _refuse_managed(ground: Lifecycle, path: Path) -> None:
    """Refuses a path in an installed skill, which only an update may change; a skill that a person wrote is theirs."""
    from navigator_kernel.skills.install.export import refuse_kept

    for place in ground.places.values():
        own = [place.skills / name for name in read_receipts(place)]
        refuse_kept([path], [*own, place.inner, place.database])


def _path(ground: Lifecycle, text: str) -> Path:
    """`text` as a path relative to the project, without `..`."""
    return Path(os.path.normpath(ground.root / text))


VERBS: Mapping[str, Callable[[Lifecycle, Params], Answer]] = {
    "cache": _cache,
    "convert": _convert,
    "export": _export,
    "formats": _formats,
    "import-lock": _import_lock,
    "mapping": _mapping,
    "validate": _validate,
}

"""Finds skills that are not installed, in configured catalogues and in the mapping (LIF-16, X-35)."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.adapters.web import fetch
from navigator_kernel.errors import FetchFailed, KernelError, Refused, UsageProblem
from navigator_kernel.skills.catalog.search import search
from navigator_kernel.skills.formats.manifest import DESCRIPTION_LIMIT
from navigator_kernel.skills.formats.names import NAME
from navigator_kernel.skills.source.address import parse_source
from navigator_kernel.text import clean, fold, shorten
from navigator_kernel.values.resource import SkillDef

if TYPE_CHECKING:
    from navigator_kernel.skills.source.mapping import Known, SkillMapping

SIZE_LIMIT = 16 * 1024 * 1024  # bytes of one catalogue
SECONDS = 20.0  # seconds for one catalogue
_WANTED = '[{"name", "description", "repo", "subpath", "tags"}] or {"skills": […]}'


class RemoteSkill(NamedTuple):
    """A skill of a catalogue: `repo` is owner/repo or a URL, `subpath` its folder in it, empty if unknown."""

    name: str
    description: str
    repo: str
    subpath: str
    tags: tuple[str, ...] = ()


def search_remote(
    query: str, catalogues: Sequence[str], *, base: Path, offline: bool = False, seconds: float = SECONDS
) -> list[dict[str, Any]]:
    """`[{name, description, repo, subpath, score, reason, catalogue, install}]`, best first, each skill once.

    `catalogues` are https or file URLs, or paths relative to `base`. UsageProblem if there is none, Refused for any
    other scheme, FetchFailed if one cannot be read or is not a catalogue.
    """
    if not catalogues:
        hint = 'name one in your own settings: catalogues = ["https://…"]'
        raise UsageProblem("no catalogue is configured", hint=hint)
    offered: dict[tuple[str, str, str], tuple[RemoteSkill, str]] = {}
    for catalogue in catalogues:
        for offer in offers(fetched(catalogue, base=base, offline=offline, seconds=seconds), catalogue):
            offered.setdefault((offer.repo, offer.subpath, offer.name), (offer, catalogue))
    pairs = list(offered.values())
    hits = search((_skill(at, offer) for at, (offer, _) in enumerate(pairs)), query, {})
    results = []
    for hit in hits:
        offer, catalogue = pairs[int(hit.skill.path.name)]
        row: dict[str, Any] = {"name": offer.name, "description": offer.description, "repo": offer.repo}
        row |= {"subpath": offer.subpath, "score": hit.score, "reason": hit.reason, "catalogue": catalogue}
        results.append({**row, "install": install_command(offer.repo, offer.subpath, offer.name)})
    return results


def known_skills(word: str, mapping: SkillMapping) -> list[dict[str, Any]]:
    """`[{name, description, repo, subpath, page, observed, install}]`: the rows of the mapping that match `word` by
    name, description or repository, best first; if `word` is empty, all rows in their order."""
    rows = list(mapping.rows())
    if word.strip():
        skills = [_skill(at, RemoteSkill(*known.row, tags=(known.row.repo,))) for at, known in enumerate(rows)]
        rows = [rows[int(hit.skill.path.name)] for hit in search(skills, word, {})]
    rows_shown = []
    for known in _once(rows):
        row = {key: clean(value, lines=False) for key, value in known.row._asdict().items()}
        more = {"page": str(known.page), "observed": known.observed}
        rows_shown.append(
            {**row, **more, "install": install_command(known.row.repo, known.row.subpath, known.row.name)}
        )
    return rows_shown


def _once(rows: Sequence[Known]) -> Iterator[Known]:
    """Removes copies of a skill: in folders of other agents, or with the same description."""
    plain = {(known.row.repo, fold(known.row.name)) for known in rows if not _is_hidden(known.row.subpath)}
    seen: set[tuple[str, str, str]] = set()
    for known in rows:
        key = known.row.repo, fold(known.row.name)
        whole = (*key, known.row.description)
        if (known.row.description and whole in seen) or (key in plain and _is_hidden(known.row.subpath)):
            continue
        seen.add(whole)
        yield known


def _is_hidden(subpath: str) -> bool:
    return any(part.startswith(".") and part != "." for part in subpath.split("/"))


def install_command(repo: str, subpath: str, name: str) -> str:
    """The install command of a skill, safe to paste into a shell, or empty."""
    word = name if subpath in {"", "."} else subpath
    try:
        kind = parse_source(repo, base=Path("/")).kind
    except KernelError:
        return ""
    plain = clean(word, lines=False) == word and not word.startswith("-") and ".." not in word.split("/")
    return shlex.join(["navigator", "skill", "install", repo, "--skill", word]) if plain and kind == "git" else ""


def fetched(catalogue: str, *, base: Path, offline: bool = False, seconds: float = SECONDS) -> bytes:
    """The bytes of a catalogue, at most SIZE_LIMIT."""
    url = urlsplit(catalogue)
    if url.scheme == "https":
        if url.username or url.password:
            raise Refused("the catalogue's URL carries a user or password", hint="leave them out")
        if offline or not url.hostname:
            why = "is on the network" if offline else "names no host"
            raise FetchFailed(f"{catalogue!r} {why}", hint="leave --offline out" if offline else "https://host/path")
        return fetch(seconds, catalogue, SIZE_LIMIT)
    if "://" in catalogue and (url.scheme != "file" or url.netloc not in {"", "localhost"}):
        raise Refused(f"{catalogue!r} is not a catalogue's address", hint="https://…, file:///… or a path")
    try:
        path = Path(unquote(url.path)) if url.scheme == "file" else base / Path(catalogue).expanduser()
        return read_bounded(path, SIZE_LIMIT)
    except (OSError, ValueError, RuntimeError, KernelError) as error:
        why = error.message if isinstance(error, KernelError) else f"there is no {catalogue!r}"
        raise FetchFailed(f"cannot read the catalogue: {why}", hint="check the path") from error


def offers(data: bytes, catalogue: str) -> list[RemoteSkill]:
    """The skills of a catalogue, cleaned; FetchFailed names an invalid entry."""
    try:
        whole = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FetchFailed(f"{catalogue!r} is not JSON: {str(error)[:80]}", hint=f"it should hold {_WANTED}") from error
    entries = whole.get("skills") if isinstance(whole, dict) else whole
    if not isinstance(entries, list):
        raise FetchFailed(f"{catalogue!r} is not a catalogue of skills", hint=f"it should hold {_WANTED}")
    return [_offer(entry, f"entry {at} of {catalogue!r}") for at, entry in enumerate(entries)]


def _offer(entry: object, where: str) -> RemoteSkill:
    if not isinstance(entry, dict):
        raise FetchFailed(f"{where} is not an object", hint=f"it should be {_WANTED}")
    name, repo = _word(entry.get("name"), "name", where), _word(entry.get("repo"), "repo", where)
    description = _word(entry.get("description", ""), "description", where)
    subpath = _word(entry.get("subpath", ""), "subpath", where).strip("/")
    if not NAME.fullmatch(name) or not install_command(repo, subpath, name):
        raise FetchFailed(f"{where} names nothing that can be installed: {name!r} of {repo!r}", hint="tell its owner")
    tags = entry.get("tags") or []
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise FetchFailed(f"{where} has tags that are not a list of words", hint=f"it should be {_WANTED}")
    tags = tuple(clean(tag, lines=False) for tag in tags)
    return RemoteSkill(name, shorten(description, DESCRIPTION_LIMIT), repo, subpath, tags)


def _word(value: object, key: str, where: str) -> str:
    if not isinstance(value, str):
        raise FetchFailed(f"{where} has no text as its {key}", hint=f"it should be {_WANTED}")
    return clean(value, lines=False).strip()


def _skill(at: int, offer: RemoteSkill) -> SkillDef:
    """The remote skill in a form that can be searched; its path is its index in the list."""
    return SkillDef(name=offer.name, description=offer.description, path=Path(str(at)), folder=None, tags=offer.tags)

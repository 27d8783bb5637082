"""Reads a skill's Python and npm packages as requirements that can only come from a package index."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.errors import NotLoadable, Refused
from navigator_kernel.text import lazy_compile, shorten, strip_url_credentials
from navigator_kernel.values.job import NPM

if TYPE_CHECKING:
    from navigator_kernel.values.resource import SkillDef


KEY = "dependencies"
FILE = "requirements.txt"
BYTES_LIMIT = 64 * 1024  # of `requirements.txt`, or of a script's own metadata
SCRIPT_LIMIT = 1024 * 1024  # bytes of a script that is read
COUNT_LIMIT = 200
NODE = frozenset({".js", ".mjs", ".cjs"})  # file extensions of Node scripts
LENGTH_LIMIT = 1024  # characters of one requirement without its hashes

_LAYOUT = 1  # version of an environment's layout; another version gets another name
_ROOT = "${SKILL_ROOT}/"
# The documented example is `python>=3.8, pandas>=1.5.0`: it lists programs of the machine beside packages, and a
# package index has unrelated packages with the names of these programs
_PROGRAMS = frozenset("python python3 node nodejs npm npx pnpm bun deno git bash curl ffmpeg pip uv none null".split())
_REACHES = [
    (lazy_compile(rf"\A(?:{form})"), reason, what)
    for form, reason, what in (
        (r"-r|--requirement|-c|--constraint", "include", "another file"),
        (r"-e|--editable", "editable", "an editable package"),
        (
            r"-i|-f|--index|--extra-index|--default-index|--find-links|--no-index|--trusted",
            "index",
            "an index of its own",
        ),
        (r"-", "option", "an option"),
        (r"[^;]*?\b(?:git|hg|svn|bzr)\+", "vcs", "a repository"),
        (r"[^;]*(?:://|@)", "url", "an address"),
        (r"[.~]|[^;]*[/\\]|[^;]*\.(?:whl|zip|egg|tgz|tbz|txz|tar(?:\.\w+)?)\s*(?:;|$)", "path", "a file"),
    )
]
_HASH = lazy_compile(r"--hash[= ]((?:sha256|sha384|sha512):[0-9a-f]{64,128})")
_CLAUSE = r"\s?(?:===|==|~=|!=|<=|>=|<|>)\s?[A-Za-z0-9.*+!_-]+\s?"
_FORM = lazy_compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s?"
    r"(?:\[(?P<extras>[A-Za-z0-9._, -]*)\]\s?)?"
    rf"\(?(?P<versions>{_CLAUSE}(?:,{_CLAUSE})*,?)?\s?\)?"
    r"(?:\s?;(?P<marker>[A-Za-z0-9_ .'\"()<>=!~,*+-]+))?"
)
_BETWEEN = lazy_compile(
    r"[\n，、]|,(?=\s*[A-Za-z0-9'\"])(?![^\[\]]{0,200}\])"
)  # a comma within a version comes before an operator
_QUOTED = lazy_compile(r"^(['\"])(.*)\1$")
_COMPARED = lazy_compile(r"(===|==|~=|!=|<=|>=|<|>)(\d+(?:\.\d+){0,2})")
_CONTINUED = lazy_compile(r"\\\r?\n")
_COMMENT = lazy_compile(r"(?:^|\s)#.*")
_INDEX_KEY = lazy_compile("source|index|links|override")
_OPTION = lazy_compile(r" (?=-)")
_EXACT = lazy_compile(r"===?[^*,]+")
_SEPARATORS = lazy_compile(r"[-_.]+")


def declared(skill: SkillDef, folder: Path | None = None) -> tuple[str, ...]:
    """The requirements (PEP 508) that `skill` declares, each once, with ` --hash=…` after those that give their hashes.

    They come from `dependencies` in its metadata, else from `requirements.txt` in its folder, else from its own script
    that its command starts (PEP 723); entries that name no package are skipped. `folder` is where its files are, by
    default its own. Refused, with a `reason`, for one that does not come from an index; NotLoadable for one that cannot
    be read, or that needs another Python.
    """
    folder = folder or skill.folder
    name = skill.name
    for words in _written(skill, folder):
        if requirements := tuple(dict.fromkeys(_requirement(word, name) for word in words)):
            _check_count(requirements, name)
            return requirements
    return ()


def needed(skill: SkillDef, scripts: Sequence[Path], named: Sequence[str], *, is_node: bool = False) -> tuple[str, ...]:
    """The requirements of one command of a prompt skill: what the skill declares, else the metadata of the `scripts`
    that it runs (PEP 723), the Node packages of the nearest `package.json`, and those that were `named` for it, which
    are Node packages if they begin with `npm:` or if `is_node`. The errors are those of `declared`."""

    requirements = [*declared(skill)]
    for script in () if requirements else scripts:
        if script.suffix == ".py":
            requirements += [_requirement(word, skill.name) for word in _of_script(script, skill.name)]
    for word in named:
        of_node = is_node or word.startswith(NPM)
        requirements.append(named_package(skill, word) if of_node else _requirement(word, skill.name))
    names = {package.rpartition("@")[0] for package in requirements if package.startswith(NPM)}
    for script in scripts:
        if script.suffix in NODE:
            packages = node_packages(skill, script)
            requirements += [package for package in packages if package.rpartition("@")[0] not in names]
    return tuple(dict.fromkeys(requirements))


def fingerprint(requirements: Iterable[str], python: Sequence[str] = ()) -> str:
    """The name of the environment for `requirements`: SHA-256 in hex over them and the interpreter, which is this one
    unless `python` identifies another."""
    body = [_LAYOUT, sorted(set(requirements)), list(python or running())]
    return hashlib.sha256(json.dumps(body).encode()).hexdigest()


def running() -> tuple[str, ...]:
    """Identifies this interpreter: implementation, version, ABI, machine and place, on which its wheels or links
    depend."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    return sys.implementation.name, version, sys.abiflags, os.uname().machine, os.path.realpath(sys.base_prefix)


# Places of declarations


def _written(skill: SkillDef, folder: Path | None) -> Iterator[list[str]]:
    """The requirements at each place; a place is read only if those before it name no package."""
    written = skill.extra.get(KEY) or ""
    if isinstance(written, Mapping):
        raise NotLoadable(
            f"{KEY!r} of skill {skill.name!r} is a map", hint=f"{KEY}: [package>=1.0]", reason="dependencies-form"
        )
    text = str(written).strip()
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    items = written if isinstance(written, list) else _BETWEEN.split(inner)
    words = []
    for word in (_QUOTED.sub(r"\2", str(item).strip()) for item in items):
        hit = _FORM.fullmatch(word)
        name = hit["name"].lower() if hit else ""
        if hit and name in {"python", "python3"}:
            _check_python(hit["versions"] or "", skill.name)
        if word and name not in _PROGRAMS:
            words.append(word)
    yield words
    if folder is None:
        return
    try:
        text = _read(folder / FILE, BYTES_LIMIT).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"{FILE!r} of skill {skill.name!r} is not UTF-8"
        raise NotLoadable(message, hint="save it as UTF-8", reason="text") from error
    lines = _CONTINUED.sub(" ", text).splitlines()
    yield [word for line in lines if (word := _COMMENT.sub("", line).strip())]
    script = _script(skill.command, folder)
    yield _of_script(script, skill.name) if script else []


def _of_script(path: Path, skill: str) -> list[str]:
    block = _block(_read(path, SCRIPT_LIMIT).decode("utf-8", "replace"), skill)
    if not block:
        return []
    table = _toml(block, skill)
    words, python = table.get(KEY, []), table.get("requires-python", "")
    if not isinstance(words, list) or not all(isinstance(word, str) for word in (*words, python)):
        raise _unread(skill, "dependencies is not a list of words")
    # Whether the table tells uv to take packages from elsewhere: an index may have other packages by these names
    tool = table.get("tool")
    uv = tool.get("uv") if isinstance(tool, Mapping) else None
    if isinstance(uv, Mapping) and any(_INDEX_KEY.search(key) for key in uv):
        raise _refused(skill, "[tool.uv]", "index", "an index of its own")
    _check_python(python, skill)
    return words


def _script(command: str, folder: Path) -> Path | None:
    """The first file of the skill that `command` names, if it is small enough to be read."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    paths = [Path(f"{folder}/{word.removeprefix(_ROOT)}") for word in words if word.startswith(_ROOT)]
    script = next((path for path in paths if ".." not in path.parts and path.is_file()), None)
    return script if script and script.stat().st_size <= SCRIPT_LIMIT else None


def _block(text: str, skill: str) -> str:
    """The TOML between `# /// script` and the last `# ///` of the same comment (PEP 723); empty if there is none."""
    lines = text.replace("\r\n", "\n").split("\n")
    starts = [at for at, line in enumerate(lines) if line == "# /// script"]
    if len(starts) > 1:
        raise _unread(skill, "there are two blocks")
    comment = lines[starts[0] + 1 :] if starts else []
    after = next((at for at, line in enumerate(comment) if line != "#" and not line.startswith("# ")), len(comment))
    ends = [at for at, line in enumerate(comment[:after]) if line == "# ///"]
    block = "\n".join(line[2:] for line in comment[: ends[-1]]) if ends else ""
    if len(block) > BYTES_LIMIT:
        raise _unread(skill, f"it is over {BYTES_LIMIT} bytes")
    return block


def _toml(text: str, skill: str) -> dict[str, Any]:
    import tomllib  # 14 ms, and few scripts have metadata

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _unread(skill, shorten(str(error), 100)) from error


def _unread(skill: str, why: str) -> NotLoadable:
    message = f"what the script of skill {skill!r} says of itself cannot be read: {why}"
    return NotLoadable(message, hint="write it as PEP 723 says", reason="script-metadata")


def _read(path: Path, limit: int) -> bytes:
    """The bytes of a file, empty if there is no such file; Refused for a link or more than `limit` bytes."""
    try:
        return read_bounded(path, limit)
    except FileNotFoundError:
        return b""


# One requirement


def _requirement(written: str, skill: str) -> str:
    """`written` in its normal form: the name as in an index (PEP 503), with spaces only before marker and hashes."""
    word, *options = _OPTION.split(" ".join(written.split()))
    hashes = [hit[1] for option in options if (hit := _HASH.fullmatch(option))]
    for part in (word, *(option for option in options if not _HASH.fullmatch(option))):
        for form, reason, what in _REACHES:
            if form.search(part):
                raise _refused(skill, part, reason, what)
    hit = _FORM.fullmatch(word) if len(word) <= LENGTH_LIMIT else None
    if hit is None:
        message = f"skill {skill!r} declares {shorten(word, 80)!r}, which is not a requirement"
        raise NotLoadable(message, hint="package>=1.0", reason="requirement")
    versions = (hit["versions"] or "").replace(" ", "").rstrip(",")
    if hashes and not _EXACT.fullmatch(versions):
        message = f"skill {skill!r} names the bytes of {hit['name']!r} without its version"
        raise NotLoadable(message, hint=f"{hit['name']}==1.0 --hash=…", reason="hash")
    extras = ",".join(sorted(part.strip() for part in (hit["extras"] or "").split(",") if part.strip()))
    marker = f"; {marker}" if (marker := (hit["marker"] or "").strip()) else ""
    head = f"{_SEPARATORS.sub('-', hit['name']).lower()}{f'[{extras}]' if extras else ''}{versions}{marker}"
    return " ".join([head, *(f"--hash={digest}" for digest in sorted(set(hashes)))])


def _refused(skill: str, word: str, reason: str, what: str) -> Refused:
    message = f"skill {skill!r} declares {shorten(strip_url_credentials(word), 80)!r}: {what}"
    return Refused(message, hint="only names and versions of packages in your index are taken", reason=reason)


def _check_count(packages: Collection[str], name: str) -> None:
    if len(packages) > COUNT_LIMIT:
        message = f"skill {name!r} declares {len(packages)} packages"
        raise Refused(message, hint=f"at most {COUNT_LIMIT}", reason="too-many")


def _check_python(versions: str, skill: str) -> None:
    """Raises NotLoadable if this Python does not match `versions`."""
    here = tuple(sys.version_info[:3])
    for sign, number in _COMPARED.findall(versions.replace(" ", "")):
        given = tuple(int(part) for part in number.split("."))
        full, same = (*given, 0, 0)[:3], here[: len(given)] == given
        fits = {
            ">=": here >= full,
            "<=": here <= full or same,
            ">": here > full,
            "<": here < full,
            "!=": not same,
            "~=": here >= full and here[: max(1, len(given) - 1)] == given[: max(1, len(given) - 1)],
        }
        if not fits.get(sign, same):
            value = ".".join(map(str, here))
            message = f"skill {skill!r} needs Python {shorten(versions.strip(), 40)}, and this is {value}"
            raise NotLoadable(message, hint="run the kernel with another Python", reason="python")


PACKAGE_FILE = "package.json"
PACKAGE_BYTES = 256 * 1024
_NAME = lazy_compile(r"(?:@[a-z0-9~-][a-z0-9._~-]{0,100}/)?[a-z0-9~-][a-z0-9._~-]{0,200}")
_VERSION = lazy_compile(r"[0-9A-Za-z.*^~<>=|+ -]{0,100}")  # a range, or a tag such as `latest`


def node_packages(skill: SkillDef, script: Path) -> list[str]:
    """`npm:NAME@VERSION` of each dependency, from the nearest `package.json` within the skill's folder.

    Refused, with a `reason`, for one that does not come from a registry; NotLoadable if the file cannot be read.
    """
    folders = (
        [] if skill.folder is None else [parent for parent in script.parents if parent.is_relative_to(skill.folder)]
    )
    body = next(filter(None, (_read(folder / PACKAGE_FILE, PACKAGE_BYTES) for folder in folders)), b"")
    if not body:
        return []
    try:
        package = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _unread_package(skill, "it is not JSON") from error
    versions: Any = package.get("dependencies", {}) if isinstance(package, Mapping) else None
    if not isinstance(versions, Mapping) or not all(isinstance(version, str) for version in versions.values()):
        raise _unread_package(skill, "dependencies is not a table of names and versions")
    _check_count(versions, skill.name)
    return sorted(_package(skill, name, version) for name, version in versions.items())


def named_package(skill: SkillDef, word: str) -> str:
    """`npm:NAME@VERSION` of a package that a model names: `docx`, `npm:docx`, `docx@9` or `@scope/name@^1.0`."""
    name, _, version = word.removeprefix(NPM).strip()[1:].partition("@")
    return _package(skill, word.removeprefix(NPM).strip()[:1] + name, version)


def _package(skill: SkillDef, name: str, version: str) -> str:
    version = " ".join(version.split()) or "*"
    if not _NAME.fullmatch(name) or not _VERSION.fullmatch(version):
        shown = shorten(strip_url_credentials(f"{name}@{version}"), 80)
        hint = "only names and versions of packages in your registry are taken"
        raise Refused(f"skill {skill.name!r} declares {shown!r}", hint=hint, reason="package")
    return f"{NPM}{name}@{version}"


def _unread_package(skill: SkillDef, why: str) -> NotLoadable:
    message = f"{PACKAGE_FILE} of skill {skill.name!r} cannot be read: {why}"
    return NotLoadable(message, hint="fix it", reason="package-json")

"""Caches parsed manifests between processes; a file is read again only when its stamp changes.

The store is in the person's own state, outside every project, because its contents are trusted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import MsgspecError, Struct
from msgspec.json import decode
from msgspec.structs import asdict

from navigator_kernel import __version__
from navigator_kernel.adapters.files.writer import stamp
from navigator_kernel.errors import KernelError
from navigator_kernel.values.resource import Diagnostic, ParamSpec, SkillDef

if TYPE_CHECKING:
    from navigator_kernel.ports import Writer

LIMIT = 64 * 1024 * 1024  # bytes of one store; a larger catalogue is read again
PROJECTS = 16  # stores that are kept, those written last

_READERS = (
    "skills/formats/manifest.py",
    "skills/formats/frontmatter.py",
    "skills/formats/names.py",
    "values/resource.py",
)
Stamp = tuple[int, int, int, int]  # the stamp of `skills.catalog.listing`

_PLACES = {"path", "folder"}
_VALUES: Mapping[str, Callable[..., Any]] = {"required_params": ParamSpec, "diagnostics": Diagnostic}


class ManifestStore(Struct, frozen=True):
    """The store in `file`, with the manifests of one project's roots."""

    file: Path
    writer: Callable[[], Writer]

    def load(self) -> dict[str, tuple[Stamp, SkillDef]]:
        """The stored manifests by path; empty if there are none, or if another release or other readers wrote them."""
        try:
            data = self.file.read_bytes()
            try:
                stored = decode(data)  # takes a third of the time of `json.loads`
            except MsgspecError:
                stored = json.loads(data)  # reads the lone surrogates of a manifest, too
            if stored["reader"] != _reader():
                return {}
            return {str(path): (tuple(seen), _skill(Path(path), body)) for path, seen, body in stored["skills"]}
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return {}

    def save(self, manifests: Iterable[tuple[str, Stamp, SkillDef]]) -> None:
        """Stores manifests, except those that JSON would change. It is not a failure if the store cannot be written."""
        rows = ([path, list(seen), body] for path, seen, skill in manifests if (body := _body(skill)) is not None)
        text = json.dumps({"reader": _reader(), "skills": list(rows)}, ensure_ascii=False)
        data = text.encode("utf-8", errors="surrogatepass")
        if len(data) > LIMIT:
            return
        try:
            writer = self.writer()
            writer.make_folder(self.file.parent)
            writer.write(self.file, data, mode=0o600)
            for old in sorted(self.file.parent.glob("*.json"), key=lambda path: -path.stat().st_mtime_ns)[PROJECTS:]:
                writer.remove(old)
        except (KernelError, OSError):
            return


def _reader() -> list[Any]:
    """The identity of this reader: the release, and the stamps of the files that read a manifest."""
    package = Path(__file__).parents[2]
    return [__version__, [list(stamp(package / name) or ()) for name in _READERS]]


_BLANK = SkillDef(name="", description="", path=Path(), folder=None)


def _body(skill: SkillDef) -> dict[str, Any] | None:
    """The fields that differ from their defaults; None if JSON cannot express one of them."""
    fields = [name for name in SkillDef.__struct_fields__ if name not in _PLACES]
    body: dict[str, Any] = {
        name: getattr(skill, name) for name in fields if getattr(skill, name) != getattr(_BLANK, name)
    }
    body["description"] = skill.description
    for name in _VALUES.keys() & body.keys():
        body[name] = [asdict(value) for value in body[name]]
    if skill.folder is not None:
        body["folder"] = True
    extra = body.get("extra")
    try:
        return body if extra is None or json.loads(json.dumps(extra)) == extra else None
    except (TypeError, ValueError, RecursionError):
        return None


def _skill(path: Path, body: dict[str, Any]) -> SkillDef:
    for name, kind in _VALUES.items():
        if name in body:
            body[name] = tuple(kind(**values) for values in body[name])
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in body.items()}
    fields["folder"] = path.parent if fields.pop("folder", False) else None
    return SkillDef(path=path, **fields)

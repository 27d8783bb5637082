"""The record of one installed skill: its source and the digests of its files (X-38)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

VERSION = 1

Verdict = Literal["ok", "warn", "block", "not_scanned"]
NOT_SCANNED = "not-scanned"  # the code of a finding about something that was not scanned, or not completely
FILE_LIMIT = 10 * 1024 * 1024  # bytes of one file of a skill


class InstalledFile(Struct, frozen=True, kw_only=True):
    """`path` is relative with `/`, `mode` is 0o644 or 0o755, `sha256` of the content in hex."""

    path: str
    sha256: str
    mode: int
    size: int

    def to_dict(self) -> dict[str, Any]:
        return {"path": self.path, "sha256": self.sha256, "mode": f"{self.mode:04o}", "size": self.size}


class Accepted(Struct, frozen=True, kw_only=True):
    """A blocking finding that the person accepted: its rule, its file, and the digest of the content that it was judged
    by. It is for information only; the valid consent is in the person's own state."""

    rule: str
    file: str
    digest: str

    def to_dict(self) -> dict[str, str]:
        return {"rule": self.rule, "file": self.file, "digest": self.digest}


class Abilities(Struct, frozen=True, kw_only=True):
    """What a skill can do, as its bytes say (see `skills/install/abilities.py`): names only."""

    programs: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    credentials: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    permissions: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, list[str]]:
        """The kinds that are not empty."""
        return {kind: list(names) for kind in self.__struct_fields__ if (names := getattr(self, kind))}


class Receipt(Struct, frozen=True, kw_only=True):
    """`source` is a URL or folder as given, `ref` the requested ref, `commit` the full id (empty for a plain folder),
    `subpath` the skill's folder inside, `tree` its git tree id, `digest` the digest of all `files`. `declared` is the
    name in its manifest if it was installed under another one (`--as`). `can` is what its bytes say that it can do."""

    name: str
    source: str
    ref: str
    commit: str
    subpath: str
    tree: str
    files: tuple[InstalledFile, ...]
    digest: str
    verdict: Verdict
    installed_at: str
    declared: str = ""
    accepted: tuple[Accepted, ...] = ()
    can: Abilities = Abilities()
    v: int = VERSION

    @property
    def origin(self) -> str:
        """Source, commit and folder as one text."""
        return f"{self.source}#{self.commit}:{self.subpath}"

    @property
    def identity(self) -> dict[str, str]:
        """The identity of the installed skill: name, digest and origin."""
        return {"name": self.name, "digest": self.digest, "origin": self.origin}

    def to_dict(self) -> dict[str, Any]:
        base: dict[str, Any] = {"v": self.v, "name": self.name, "source": self.source, "ref": self.ref}
        base |= {"commit": self.commit, "subpath": self.subpath, "tree": self.tree, "digest": self.digest}
        base |= {"verdict": self.verdict, "installed_at": self.installed_at}
        base |= {"declared": self.declared} if self.declared else {}
        base |= {"accepted": [one.to_dict() for one in self.accepted]} if self.accepted else {}
        base |= {"can": can} if (can := self.can.to_dict()) else {}
        return {**base, "files": [file.to_dict() for file in self.files]}


def receipt_from(raw: Mapping[str, Any]) -> Receipt:
    """The receipt in `raw`; KeyError, TypeError or ValueError if it is not a receipt."""
    files = tuple(
        InstalledFile(path=item["path"], sha256=item["sha256"], mode=int(item["mode"], 8), size=item["size"])
        for item in raw["files"]
    )
    accepted = tuple(
        Accepted(rule=str(item["rule"]), file=str(item["file"]), digest=str(item["digest"]))
        for item in raw.get("accepted", ())
    )
    names = ("name", "source", "ref", "commit", "subpath", "tree", "digest", "verdict", "installed_at")
    texts = {name: raw[name] for name in names} | {"declared": raw.get("declared", "")}
    words = [*texts.values(), *(word for file in files for word in (file.path, file.sha256))]
    if not all(isinstance(word, str) for word in words) or not all(isinstance(file.size, int) for file in files):
        raise TypeError("a text or a number is something else")
    can = {kind: tuple(map(str, raw.get("can", {}).get(kind, ()))) for kind in Abilities.__struct_fields__}
    return Receipt(files=files, accepted=accepted, can=Abilities(**can), v=raw["v"], **texts)

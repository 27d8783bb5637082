"""Reads what a person writes for a source of skills, and refuses what could start anything else."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from navigator_kernel.errors import Refused, UsageProblem
from navigator_kernel.text import clean

GITHUB = "https://github.com/"
FORMS = "owner/repo, owner/repo@ref, an https, ssh or file URL, or ./folder"

_HELPER = re.compile(r"[A-Za-z0-9][A-Za-z0-9+.-]*::")
_SHORT = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9-]{0,38}))/([A-Za-z0-9._-]{1,100}?)(?:\.git)?(?:[@#](.+))?")
_SCP = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9._-]*)@([A-Za-z0-9][A-Za-z0-9.-]*):([^#]+)(?:#(.+))?")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)(?:\?[^#]*)?(?:#(.+))?")
_PAGE = re.compile(r"/([^/]+)/([^/]+?)(?:\.git)?/(tree|blob)/([^/]+)(?:/(.*))?")
_REF = re.compile(r"[^\W_][\w./+@-]{0,199}")
_HOST = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9._-]*@)?(?:[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where skills come from. `url` is git's URL or the folder's real path, `ref` a branch, tag or commit as asked
    for, `subpath` the part of the tree that was named, `label` what people call it: owner/repo, or the URL."""

    kind: Literal["git", "folder"]
    url: str
    label: str
    ref: str = ""
    subpath: str = ""

    @property
    def repository(self) -> str:
        """What the mapping calls it (X-35); empty for a folder of this machine."""
        return "" if self.kind == "folder" else self.label

    @property
    def base_name(self) -> str:
        """The last part of its path: the folder name of a skill that lies at the top."""
        return self.url.rstrip("/").rpartition("/")[2].rpartition(":")[2].removesuffix(".git") or "skill"


def parse_source(text: str, *, base: Path, ref: str = "") -> Source:
    """The source that `text` names, folders seen from `base`; `ref` stands in for one that `text` lacks.

    Refused for what git could take for an option, a helper or a secret; UsageProblem for what names nothing.
    """
    text = text.strip()
    if not text:
        raise UsageProblem("no source is named", hint=FORMS)
    if clean(text, lines=False) != text or any(mark in text for mark in "\n\r\t"):
        raise Refused(f"the source {clean(text, lines=False)!r} holds control characters", hint=FORMS)
    if text.startswith("-"):
        raise Refused(f"the source {text!r} looks like an option", hint=FORMS)
    if _HELPER.match(text):
        raise Refused(f"the source {text!r} names a transport helper", hint=FORMS)
    source = _parsed(text, base)
    source = replace(source, ref=source.ref or ref)
    if source.kind == "folder" and source.ref:
        raise UsageProblem("a folder has no refs", hint=f"file://{source.url} reads it as a repository")
    _refuse_odd(source)
    return source


def _parsed(text: str, base: Path) -> Source:
    if text in {".", ".."} or text.startswith(("./", "../", "/", "~/")):
        folder = (base / Path(text).expanduser()).resolve()
        return Source(kind="folder", url=str(folder), label=clean(str(folder), lines=False))
    if "://" in text:
        return _from_url(text)
    if hit := _SCP.fullmatch(text):
        return Source(kind="git", url=text.partition("#")[0], label=text.partition("#")[0], ref=hit.group(3) or "")
    if hit := _SHORT.fullmatch(text):
        return _on_github(hit.group(1), hit.group(2), hit.group(3) or "")
    raise UsageProblem(f"{text!r} is no source", hint=FORMS)


def _from_url(text: str) -> Source:
    hit = _URL.fullmatch(text)
    if not hit:
        raise UsageProblem(f"{_shown(text)!r} is no URL", hint=FORMS)
    scheme, host, path, ref = hit.group(1).lower(), hit.group(2), hit.group(3), hit.group(4) or ""
    if scheme not in {"https", "ssh", "file"}:
        raise Refused(f"{scheme!r} is no transport that is allowed", hint="https, ssh or file")
    if scheme == "file":
        return _local(host, path, ref)
    _refuse_host(scheme, host)
    if scheme == "https" and host.lower().removeprefix("www.") == "github.com":
        return _github_page(path, ref)
    if not path.strip("/"):
        raise UsageProblem(f"{_shown(text)!r} names no repository", hint=FORMS)
    url = f"{scheme}://{host.lower() if scheme == 'https' else host}{path.rstrip('/')}"
    return Source(kind="git", url=url, label=url, ref=ref)


def _local(host: str, path: str, ref: str) -> Source:
    if host.lower() not in {"", "localhost"}:
        raise Refused(f"a file URL names another machine: {host!r}", hint="file:///absolute/path")
    if not path.strip("/"):
        raise UsageProblem("the file URL names no folder", hint="file:///absolute/path")
    url = f"file://{path.rstrip('/')}"
    return Source(kind="git", url=url, label=url, ref=ref)


def _refuse_host(scheme: str, host: str) -> None:
    if ":" in host.rpartition("@")[0] or (scheme == "https" and "@" in host):
        hint = "leave the user and password out; git's own means hold secrets"
        raise Refused("the URL carries a user or password", hint=hint)
    if not _HOST.fullmatch(host):
        raise Refused(f"{clean(host, lines=False)!r} is no plain host name", hint="write its ASCII form")


def _github_page(path: str, ref: str) -> Source:
    """A repository's URL, or its tree or blob page; the ref in a page's URL is one part long."""
    page = _PAGE.fullmatch(path.rstrip("/"))
    if page is None:
        parts = [part for part in path.split("/") if part]
        if len(parts) != 2:
            raise UsageProblem(f"{GITHUB + path.strip('/')!r} is no repository", hint=FORMS)
        return _on_github(parts[0], parts[1].removesuffix(".git"), ref)
    from urllib.parse import unquote  # 5 ms, and rarely needed

    owner, name, kind, named, below = page.groups()
    below = unquote(below or "").strip("/")
    if kind == "blob":
        below = below.rpartition("/")[0]
    return replace(_on_github(owner, name, ref or unquote(named)), subpath=below)


def _on_github(owner: str, name: str, ref: str) -> Source:
    if not _SHORT.fullmatch(f"{owner}/{name}") or name in {".", ".."}:
        raise UsageProblem(f"{owner + '/' + name!r} is no repository", hint=FORMS)
    return Source(kind="git", url=f"{GITHUB}{owner}/{name}.git", label=f"{owner}/{name}", ref=ref)


def _refuse_odd(source: Source) -> None:
    ref = source.ref
    odd = ".." in ref or "@{" in ref or "//" in ref or ref.endswith((".lock", "/", ".")) or "/." in ref
    if ref and (odd or not _REF.fullmatch(ref)):
        raise Refused(f"{clean(ref, lines=False)!r} is no ref", hint="a branch, a tag or a full commit id")
    parts = source.subpath.split("/") if source.subpath else []
    if any(part in {"", ".", ".."} for part in parts) or clean(source.subpath, lines=False) != source.subpath:
        raise Refused(f"{clean(source.subpath, lines=False)!r} is no path inside a repository", hint="a/b/c")


def _shown(text: str) -> str:
    return re.sub(r"://[^/]*@", "://", clean(text, lines=False))

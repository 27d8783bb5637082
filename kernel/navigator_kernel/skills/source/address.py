"""Parses the source of a skill as a person types it, and refuses addresses that could start something else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.adapters.sources.git import is_ref
from navigator_kernel.errors import Refused, UsageProblem
from navigator_kernel.text import clean, lazy_compile, strip_url_credentials

GITHUB = "https://github.com/"
FORMS = "owner/repo, owner/repo/path, owner/repo@ref, an https, ssh or file URL, ./folder, ./repo.git or ./file.skill"
ARCHIVES = (".skill", ".zip", ".tar", ".tar.gz", ".tgz")

_HELPER = lazy_compile(r"[A-Za-z0-9][A-Za-z0-9+.-]*::")
_SHORT = lazy_compile(
    r"([A-Za-z0-9](?:[A-Za-z0-9-]{0,38}))/([A-Za-z0-9._-]{1,100}?)(?:\.git)?(?:/([^@#]*))?(?:[@#](.+))?"
)
_NAME = lazy_compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")
_SCP = lazy_compile(r"([^@/:#]+)@([^@/:#]+):([^#]+)(?:#(.+))?")
_USER = lazy_compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_URL = lazy_compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)(?:\?[^#]*)?(?:#(.+))?")
_GITHUB_PAGE = lazy_compile(r"/([^/]+)/([^/]+?)(?:\.git)?/(tree|blob)/(.+)")
_GITLAB_PAGE = lazy_compile(r"(?=.*\Z)(/.+?)(?:\.git)?/-/(tree|blob)/(.+)")
_HOST = lazy_compile(r"(?:[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?")
_DISGUISED = lazy_compile(r"\\|%(?:[01][0-9a-f]|7f|5c)", re.I)  # a plain or encoded backslash, or an encoded control
_PUNCTUATION = lazy_compile("[/:]")
_SPECIAL = lazy_compile("[%?#]")


class Source(Struct, frozen=True, kw_only=True):
    """A source of skills. `url` is git's URL, or the real path of a folder or an archive; `ref` is the requested
    branch, tag or commit, `subpath` the named part of the tree, `label` the name for people: owner/repo, or the URL.
    `page` is a ref and a subpath in one, from a page's URL: only the server knows where the ref ends."""

    kind: Literal["git", "folder", "archive"]
    url: str
    label: str
    ref: str = ""
    subpath: str = ""
    page: str = ""

    @property
    def repository(self) -> str:
        """The source's name in the mapping (X-35), or empty for a local source."""
        return self.label if self.kind == "git" else ""

    @property
    def base_name(self) -> str:
        """The last part of the source's path, which names a skill at its top."""
        name = self.url.rstrip("/").rpartition("/")[2].rpartition(":")[2]
        ending = next((end for end in ARCHIVES if self.kind == "archive" and name.lower().endswith(end)), ".git")
        return name[: -len(ending)] if name.lower().endswith(ending) and name != ending else name or "skill"


def parse_source(text: str, *, base: Path, ref: str = "") -> Source:
    """The source that `text` names, with folders and archives relative to `base`; `ref` is used if `text` has no ref.

    Refused for a text that git could take for an option, a helper or a secret; UsageProblem for one that names nothing.
    """
    text = text.strip()
    if not text:
        raise UsageProblem("no source is named", hint=FORMS)
    if clean(text, lines=False) != text or any(mark in text for mark in "\n\r\t"):
        raise Refused(f"the source {clean(text, lines=False)!r} holds control characters", hint=FORMS)
    if text.startswith("-"):
        raise Refused(f"the source {text!r} looks like an option", hint=FORMS)
    if _DISGUISED.search(text):
        raise Refused(f"the source {_shown(text)!r} holds a backslash or an encoded control", hint="write it plainly")
    if _HELPER.match(text):
        raise Refused(f"the source {text!r} names a transport helper", hint=FORMS)
    source = _parsed(text, base)
    source = _at_page(source, ref) if source.page else replace(source, ref=source.ref or ref)
    if source.kind != "git" and source.ref:
        hint = f"file://{source.url} reads it as a repository" if source.kind == "folder" else "leave the ref out"
        raise UsageProblem(f"{'a folder' if source.kind == 'folder' else 'an archive'} has no refs", hint=hint)
    _refuse_odd(source)
    return source


def _parsed(text: str, base: Path) -> Source:
    packed = text.lower().endswith(ARCHIVES)
    if text in {".", ".."} or text.startswith(("./", "../", "/", "~/")) or (packed and not _PUNCTUATION.search(text)):
        path = (base / Path(text).expanduser()).resolve()
        if _is_repository(path):
            quoted = _SPECIAL.sub(lambda mark: f"%{ord(mark[0]):02x}", str(path))  # special in git's URLs
            return _local("", quoted, "")
        kind: Literal["archive", "folder"] = "archive" if packed and not path.is_dir() else "folder"
        return Source(kind=kind, url=str(path), label=clean(str(path), lines=False))
    if "://" in text:
        return _from_url(text)
    if hit := _SCP.fullmatch(text):
        return _from_scp(*hit.groups(default=""))
    if hit := _SHORT.fullmatch(text):
        owner, name, below, ref = hit.groups(default="")
        return _on_github(owner, name, ref, subpath=below.strip("/"))
    raise UsageProblem(f"{text!r} is not a source", hint=FORMS)


def _is_repository(path: Path) -> bool:
    """Whether the folder is a git repository without a work tree (gitrepository-layout(5))."""
    return (path / "HEAD").is_file() and (path / "objects").is_dir() and (path / "refs").is_dir()


def _from_url(text: str) -> Source:
    hit = _URL.fullmatch(text)
    if not hit:
        raise UsageProblem(f"{_shown(text)!r} is not a URL", hint=FORMS)
    scheme, host, path, ref = hit.group(1).lower(), hit.group(2), hit.group(3), hit.group(4) or ""
    if scheme not in {"https", "ssh", "file"}:
        raise Refused(f"{scheme!r} is not an allowed transport", hint="https, ssh or file")
    _refuse_climbing(path)
    if scheme == "file":
        return _local(host, path, ref)
    _refuse_host(scheme, host)
    if scheme == "https" and host.lower().removeprefix("www.") == "github.com":
        return _github_page(path, ref)
    if not path.strip("/"):
        raise UsageProblem(f"{_shown(text)!r} names no repository", hint=FORMS)
    page = _GITLAB_PAGE.fullmatch(path.rstrip("/")) if scheme == "https" else None
    path, kind, rest = page.groups() if page else (path.rstrip("/"), "", "")
    url = f"{scheme}://{host.lower() if scheme == 'https' else host}{path}{'.git' if page else ''}"
    source = Source(kind="git", url=url, label=url, ref=ref)
    return _with_page(source, kind, rest) if page else source


def _local(host: str, path: str, ref: str) -> Source:
    if host.lower() not in {"", "localhost"}:
        raise Refused(f"a file URL names another machine: {host!r}", hint="file:///absolute/path")
    if not path.strip("/"):
        raise UsageProblem("the file URL names no folder", hint="file:///absolute/path")
    url = f"file://{path.rstrip('/')}"
    return Source(kind="git", url=url, label=url, ref=ref)


def _from_scp(user: str, host: str, path: str, ref: str) -> Source:
    if not _USER.fullmatch(user) or path.startswith("-"):
        raise Refused(f"{user + '@' + host + ':' + path!r} looks like an option", hint="git@host:owner/repo")
    _refuse_plain_host(host)
    _refuse_climbing(path)
    url = f"{user}@{host}:{path}"
    return Source(kind="git", url=url, label=url, ref=ref)


def _refuse_host(scheme: str, host: str) -> None:
    user, at, name = host.rpartition("@")
    if ":" in user or (scheme == "https" and at):
        hint = "leave the user and password out; git's own means hold secrets"
        raise Refused("the URL carries a user or password", hint=hint)
    if at and not _USER.fullmatch(user):
        raise Refused(f"{clean(user, lines=False)!r} is not a plain user name", hint="ssh://git@host/path")
    _refuse_plain_host(name)


def _refuse_plain_host(host: str) -> None:
    """Raises Refused for letters of other scripts, which look like Latin ones."""
    if not _HOST.fullmatch(host) or any(part.startswith("xn--") for part in host.lower().split(".")):
        raise Refused(f"{clean(host, lines=False)!r} is not a plain host name", hint="only plain ASCII names are read")


def _refuse_climbing(path: str) -> None:
    if ".." in unquote(path).split("/"):
        raise Refused(f"{clean(path, lines=False)!r} leads upwards", hint="write the path without '..'")


def _github_page(path: str, ref: str) -> Source:
    """Parses a repository's URL, or the URL of its tree or blob page."""
    page = _GITHUB_PAGE.fullmatch(path.rstrip("/"))
    if page is None:
        parts = [part for part in path.split("/") if part]
        if len(parts) != 2:
            raise UsageProblem(f"{GITHUB + path.strip('/')!r} is not a repository", hint=FORMS)
        return _on_github(parts[0], parts[1].removesuffix(".git"), ref)
    owner, name, kind, rest = page.groups()
    return _with_page(_on_github(owner, name, ref), kind, rest)


def _with_page(source: Source, kind: str, rest: str) -> Source:
    """`source` with the page `rest`; the page of a file stands for its folder. The part behind `#` is a place on the
    page unless it is the ref."""
    page = unquote(rest)
    page = (page.rpartition("/")[0] if kind == "blob" else page) or page
    ref = source.ref if f"{page}/".startswith(f"{source.ref}/") else ""
    return _at_page(replace(source, ref="", page=page), ref)


def _at_page(source: Source, ref: str) -> Source:
    """The source with the ref and the path of its page separated, if they are known."""
    if ref and f"{source.page}/".startswith(f"{ref}/"):
        return replace(source, ref=ref, subpath=source.page[len(ref) + 1 :], page="")
    return source if "/" in source.page else replace(source, ref=source.page, page="")


def _on_github(owner: str, name: str, ref: str, subpath: str = "") -> Source:
    if not _NAME.fullmatch(f"{owner}/{name}") or name in {".", ".."}:
        raise UsageProblem(f"{owner + '/' + name!r} is not a repository", hint=FORMS)
    return Source(kind="git", url=f"{GITHUB}{owner}/{name}.git", label=f"{owner}/{name}", ref=ref, subpath=subpath)


def _refuse_odd(source: Source) -> None:
    for ref in (source.ref, source.page.partition("/")[0]):
        if ref and not is_ref(ref):
            raise Refused(f"{clean(ref, lines=False)!r} is not a ref", hint="a branch, a tag or a commit id")
    path = source.subpath or source.page
    parts = path.split("/") if path else []
    if any(part in {"", ".", ".."} for part in parts) or clean(path, lines=False) != path:
        raise Refused(f"{clean(path, lines=False)!r} is not a path inside a repository", hint="a/b/c")


def _shown(text: str) -> str:
    return strip_url_credentials(clean(text, lines=False))

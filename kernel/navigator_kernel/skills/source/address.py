"""Parses the source of a skill as a person types it, and refuses addresses that could start something else."""

from __future__ import annotations

import re
import shlex
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import parse_qs, unquote

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.adapters.sources.git import is_ref
from navigator_kernel.errors import Refused, UsageProblem
from navigator_kernel.text import clean, lazy_compile, strip_url_credentials
from navigator_kernel.values.mcp import NAME as SERVER

if TYPE_CHECKING:
    from collections.abc import Mapping

GITHUB = "https://github.com/"
FORMS = (
    "owner/repo, owner/repo/path, owner/repo@ref, an https, ssh or file URL, a site that publishes skills, ./folder, "
    "./repo.git or ./file.skill"
)
ARCHIVES = (".skill", ".zip", ".tar", ".tar.gz", ".tgz")

_HELPER = lazy_compile(r"[A-Za-z0-9][A-Za-z0-9+.-]*::")
_SHORT = lazy_compile(
    r"([A-Za-z0-9](?:[A-Za-z0-9_-]{0,38}))/([A-Za-z0-9._-]{1,100}?)(?:\.git)?(?:/([^@#]*))?(?:([@#])(.+))?"
)
_NAME = lazy_compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,38}/[A-Za-z0-9._-]{1,100}")
_PACKAGE = lazy_compile(
    r"((?:@[a-z0-9][a-z0-9._~-]{0,100}/)?[a-z0-9][a-z0-9._~-]{0,200})(?:@([A-Za-z0-9][\w.+-]{0,60}))?"
)
_SCP = lazy_compile(r"([^@/:#]+)@([^@/:#]+):([^#]+)(?:#(.+))?")
_ALIAS = lazy_compile(r"([A-Za-z0-9][A-Za-z0-9._-]+):(?!/)((?:[^#:/]+/)[^#:]+|[^#:/]+\.git)(?:#(.+))?")
_SCHEMELESS = lazy_compile(r"(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}(?::\d{1,5})?/(?s:.*)")
_USER = lazy_compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_URL = lazy_compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#(.+))?")
_HOST = lazy_compile(r"(?:[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?")
_DISGUISED = lazy_compile(r"\\|%(?:[01][0-9a-f]|7f|5c)", re.I)  # a plain or encoded backslash, or an encoded control
_PUNCTUATION = lazy_compile("[/:]")
_SPECIAL = lazy_compile("[%?#]")
_QUOTED = lazy_compile(
    r"""<([^<>]+)>|"([^"]+)"|'([^']+)'|`([^`]+)`|“([^“”]+)”|‘([^‘’]+)’|「([^「」]+)」|《([^《》]+)》|（([^（）]+)）|【([^【】]+)】"""
    r"""|\(([^()]+)\)|\[([^\[\]]+)\]|\[(?:[^\[\]]|!\[[^\[\]]*\]\([^()]*\))*\]\(<?([^()<>\s]+)>?(?:\s+"[^"]*"|\s+'[^']*')?\)"""
    # the last is a link of Markdown, perhaps around a badge
)
_FOLDERS = ("./", "../", "/", "~/")
_ASCII = str.maketrans("：／＠＃？＝＆．", ":/@#?=&.")  # marks as Chinese keyboards write them
# Lines for other programs that people paste whole, and the words before the address in them
_LINE = lazy_compile(
    r"(?:[$>%] )?(?:[A-Z_]{1,40}=(?:\"[^\"]*\"|'[^']*'|[^\s\"']+) ){0,4}"
    r"(?:cd \S+ (?:&&|;) )?(?:sudo )?(?:npx|bunx|pnpx|pnpm|yarn|npm|git|gh|glab|claude|codex|gemini|copilot"
    r"|navigator|skills|openskills|apm|uvx|uv|pipx|pip3?|clawhub|degit|tiged|giget|opencode|qwen|kimi|goose|amp|\$?skill-installer"
    r"|/plugin|/skills?) (?s:.+)"
)
_VERBS = frozenset({"add", "add-skill", "clone", "install", "degit", "tiged", "giget", "--from"})
_SENTENCE = lazy_compile("[，。；！？、]")
_BULLET = lazy_compile(r"(?:[-*•>]|\d{1,2}[.)])\s+")
_PAIRS = ("()", "（）", "<>", "[]", "《》", "「」", "“”", '"', "`")
_ADDRESS = lazy_compile(r"(?:https|ssh)://[^\s<>\"'`()（），。、；]+")
_PORTS = frozenset("22 222 2200 2222 7999 8022 10022 29418".split())  # of ssh, which scp's form cannot hold
_BELOW = lazy_compile(r"([^:&]+)(?:&path:/?|:(?=[^/]+/))(.+)")  # a path behind a ref, as docker and pnpm write it
_OPTIONS = {"-b": "ref", "--branch": "ref", "--ref": "ref", "--pin": "ref", "-s": "skill", "--skill": "skill"}
_OPTIONS |= {"--path": "path", "--subdir": "path"}
_OTHERS = frozenset({";", "|", "||", "&&", "&"})  # behind them another command begins
_WITH_REF = lazy_compile(r"(.+)[#@]([^#@]+)")
_FOLLOWED = lazy_compile(r"(.*/[^/@]+)@([^/@]+)")  # pip's and npm's way to write a ref behind an address
_DRIVE = lazy_compile(r"/?([A-Za-z]):[/\\]++(.*)")

# The beginnings that npm and others write instead of a host
_FORGES = {
    "github": "https://github.com/",
    "gh": "https://github.com/",
    "gitlab": "https://gitlab.com/",
    "bitbucket": "https://bitbucket.org/",
    "codeberg": "https://codeberg.org/",
    "gitee": "https://gitee.com/",
    "gist": "https://gist.github.com/",
}
FORGE_HOSTS = frozenset({
    "github.com", "gitlab.com", "bitbucket.org", "codeberg.org", "gitee.com", "gist.github.com", "ssh.dev.azure.com",
})  # fmt: skip
# Hosts that show or send the files of another one
SAME_AS = {
    "www.github.com": "github.com",
    "github.dev": "github.com",
    "github1s.com": "github.com",
    "www.gitlab.com": "gitlab.com",
    "www.bitbucket.org": "bitbucket.org",
    "raw.githack.com": "raw.githubusercontent.com",
    "rawcdn.githack.com": "raw.githubusercontent.com",
}
# Addresses that show a repository of GitHub or a package of npm, whose name follows
_MIRRORS = {
    "github": "vscode.dev/github/ insiders.vscode.dev/github/ api.github.com/repos/ gitingest.com/ uithub.com/",
    "gh": "cdn.jsdelivr.net/gh/ www.jsdelivr.com/package/gh/ deepwiki.com/",
    "npm": "cdn.jsdelivr.net/npm/ www.jsdelivr.com/package/npm/ unpkg.com/ www.npmjs.com/package/ npmjs.com/package/",
}
# Sites that list skills of others
_LISTINGS = frozenset("skillsmp.com clawhub.ai clawhub.com lobehub.com mcpmarket.com agentskills.so".split())

# Pages of a repository by the shape of their path, which enterprise hosts share with the public ones. `ref` is a
# branch, tag or commit, `page` a ref with a path below it; a `file` page stands for the folder of its file.
_GITHUB_RAW = lazy_compile(r"(/[^/]+/[^/]+)/(?P<page>.+)")
_GITHUB_ARCHIVE = lazy_compile(r"(/[^/]+/[^/]+)/(?:zip|tar\.gz|legacy\.zip|legacy\.tar\.gz)/(?P<ref>.+)")
_CDN = lazy_compile(r"([^/]+)/([^/@]+)(?:@([^/]+))?(?:/(.*))?")
_NPM_PAGE = lazy_compile(r"((?:@[^/@]+/)?[^/@]+)(?:(?:@|/v/)([^/]+))?(?:/.*)?")
_GIST = lazy_compile(r"/(?:[^/]+/)?([0-9a-f]{5,64})(?:\.git)?(?:/(?:raw/)?([0-9a-f]{7,64}))?(?:/.*)?")
_DIRECTORY = lazy_compile(r"(/[^/]+/[^/]+)(?:/(?P<skill>[^/]+))?")
_BITBUCKET_SERVER = lazy_compile(
    r"(?P<above>(?:/[^/]+)*?)/(?P<kind>projects|users)/(?P<owner>[^/]+)/repos/(?P<name>[^/]+)"
    r"(?:/(?:browse|raw|commits|branches|src)(?:/(?P<path>.*))?)?"
)
_AZURE = lazy_compile(r"(?=.*\Z)((?:/[^/]+)*/_git/[^/]+)(?:/commit/(?P<ref>[0-9a-f]+)|/(?P<other>.+))?")
_SNIPPET = lazy_compile(r"(?=.*\Z)((?:/.+)?)/-/snippets/(\d+)(?:/raw/(?P<page>.+))?")
_GITLAB = lazy_compile(
    r"(?=.*\Z)(/.+?)(?:\.git)?/-/"
    r"(?:(?:tree|commit|commits|tags)/(?P<page>.+)|(?:blob|raw|blame|edit)/(?P<file>.+)|archive/(?P<ref>.+)/[^/]+"
    r"|(?P<other>.+))"
)
_PAGE = lazy_compile(
    r"(?=.*\Z)(/[^/]+(?:/[^/]+)+?)(?:\.git)?/(?:"
    r"(?:src|commits|archive)/(?:branch|tag|commit)/(?P<page>.+)|(?:raw|media|rendered|blame)/(?:branch|tag|commit)/(?P<file>.+)"
    r"|(?:tree|commit|commits)/(?P<page2>.+)|(?:blob|raw|blame|edit)/(?P<file2>.+)"
    r"|releases/tag/(?P<ref>.+)|archive/(?P<archive>.+)\.(?:zip|tar\.gz)|(?:zip|tar)ball/(?P<ball>.+))"
)
_BITBUCKET = lazy_compile(
    r"(/[^/]+/[^/]+?)(?:\.git)?/(?:(?:src|raw)(?:/(?P<page>.+))?|branch/(?P<ref>.+)|commits/(?:branch/|tag/)?(?P<commit>.+)"
    r"|get/(?P<archive>.+)\.(?:zip|tar\.gz))"
)
_SOURCE = lazy_compile(r"(/[^/]+(?:/[^/]+)+?)(?:\.git)?/src/(?P<page>.+)")
_REFS = lazy_compile(r"refs/(?:heads|tags|remotes/origin)/")
# Pages of a repository that show no files
_OTHER_PAGES = frozenset(
    "issues pull pulls pull-requests merge_requests discussions actions projects wiki security pulse graphs network "
    "settings stargazers forks branches tags releases packages activity milestones labels watchers downloads pipelines "
    "compare find deployments contributors codespaces search".split()
)
# Words in the place of an owner in pages of GitHub that show several repositories
_OTHER_OWNERS = frozenset("orgs users topics search marketplace sponsors trending stars collections settings".split())


class Source(Struct, frozen=True, kw_only=True):
    """A source of skills. `url` is git's URL, the real path of a folder or an archive, or the address of an archive, of
    an index of skills, or of the `/.well-known` of a site, or `npm:PACKAGE`, or `mcp:SERVER`. `ref` is the requested
    branch, tag, commit or version, `subpath` the named part of the tree, `label` the name for people: owner/repo, or
    the URL. `page` is a ref and a subpath in one, from a page's URL: only the server knows where the ref ends. `skill`
    is the name of the skill that is meant; if `ref` is the same word, that is so only if the server knows no such
    ref. `skills` are those that a pasted line names."""

    kind: Literal["git", "folder", "archive", "web"]
    url: str
    label: str
    ref: str = ""
    subpath: str = ""
    page: str = ""
    skill: str = ""
    skills: tuple[str, ...] = ()

    @property
    def repository(self) -> str:
        """The source's name in the mapping (X-35), or empty for a local source."""
        return self.label if self.kind == "git" else ""

    @property
    def base_name(self) -> str:
        """The last part of the source's path, which names a skill at its top."""
        name = self.url.rstrip("/").rpartition("/")[2].rpartition(":")[2]
        ending = next(
            (end for end in ARCHIVES if self.kind in {"archive", "web"} and name.lower().endswith(end)), ".git"
        )
        return name[: -len(ending)] if name.lower().endswith(ending) and name != ending else name or "skill"


def parse_source(text: str, *, base: Path, ref: str = "") -> Source:
    """The source that `text` names, with folders and archives relative to `base`; `ref` is used if `text` has no ref.

    Refused for a text that git could take for an option, a helper or a secret; UsageProblem for one that names nothing.
    """
    text = text.strip()
    for _ in range(2):  # quotes before or behind the marks of a sentence; a folder may have any name
        if not text.startswith(_FOLDERS):
            text = text.translate(_ASCII).rstrip("。，、；！,;!").removesuffix("." if "://" in text else "")
            text = _BULLET.sub("", text, count=1) if _BULLET.match(text) else text.removeprefix("**").removesuffix("**")
            for pair in _PAIRS:  # half of one, from a sentence
                is_half = text.count(pair[0]) != text.count(pair[1]) if pair[1:] else text.count(pair) == 1
                text = text.strip(pair) if is_half else text
            if text.startswith(("https://", "<https://")):
                # Slack's links end at a bar, and others where a sentence goes on
                text = _SENTENCE.split(text.partition("|")[0], maxsplit=1)[0]
        if quoted := _QUOTED.fullmatch(text):
            text = next(filter(None, quoted.groups())).strip()
    if not text:
        raise UsageProblem("no source is named", hint=FORMS)
    if clean(text, lines=False) != text or any(mark in text for mark in "\n\r\t"):
        raise Refused(f"the source {clean(text, lines=False)!r} holds control characters", hint=FORMS)
    if text.startswith("-"):
        raise Refused(f"the source {text!r} looks like an option", hint=FORMS)
    if _DISGUISED.search(text):
        hint = "write it plainly" if "://" in text or "\\" not in text else _written(text.replace("\\", "/"))
        raise Refused(f"the source {_shown(text)!r} holds a backslash or an encoded control", hint=hint)
    if helper := _HELPER.match(text):
        address = text[helper.end() :]
        is_plain = address.startswith("https://")
        hint = f"write {_shown(address)}" if is_plain else "clone it with git, then write ./FOLDER"
        raise Refused(f"the source {_shown(text)!r} names a transport helper", hint=hint)
    source = _from_line(text, base) if _LINE.fullmatch(text) else _parsed(text, base)
    source = _at_page(source, ref) if source.page else replace(source, ref=source.ref or ref)
    if source.kind != "git" and source.ref and not source.url.startswith("npm:"):
        hint = f"file://{source.url} reads it as a repository" if source.kind == "folder" else "leave the ref out"
        kind = {"folder": "a folder", "archive": "an archive", "web": "a site"}[source.kind]
        raise UsageProblem(f"{kind} has no refs", hint=hint)
    _refuse_odd(source)
    return source


def site_of(url: str) -> str:
    """What the addresses of one site's indexes have in common; any other address as it is, with a slash behind it."""
    return f"{url}/".partition("/.well-known/")[0]


def site_below(source: Source) -> Source | None:
    """Where a site may publish skills, if git finds no repository at the address of `source`; None for an address that
    can only be a repository's."""
    host = source.url.removeprefix("https://").partition("/")[0]
    is_plain = source.url == source.label and not (source.ref or source.page or source.subpath)
    if not is_plain or not source.url.startswith("https://") or source.url.endswith(".git") or host in FORGE_HOSTS:
        return None
    url = f"{source.url}/.well-known"
    return Source(kind="web", url=url, label=url)


def _from_line(text: str, base: Path) -> Source:
    """The source in a line for another program, such as `npx skills add …` or `git clone …`, with the branch and the
    skills that its options name. As in the npm package `skills`, several may follow one `--skill`."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";|")
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = iter([*lexer])
    except ValueError:  # a quote without its end
        words = iter(text.split())
    before = [*takewhile(lambda word: word not in _VERBS, words)]
    named: dict[str, list[str]] = {"-": [], "skill": [], "ref": [], "path": [], "other": []}
    last = "-"
    for word in takewhile(lambda word: word not in _OTHERS, words):
        option, equals, value = word.partition("=")
        if meant := _OPTIONS.get(option):
            named[meant].append(value if equals else next(words, ""))
            last = meant if meant == "skill" else "-"
        elif option == "--all":
            named["skill"].append("*")
        elif option.startswith("-"):
            last = "-" if equals else "other"  # a word behind it may be its value
        else:
            named[last if "/" not in word and ":" not in word else "-"].append(word)
            last = "-" if last == "other" else last
    address = next((word for word in named["-"] if "/" in word or ":" in word), "")
    if any(word.partition("@")[0] == "clawhub" for word in before):
        hint = "open the skill on clawhub.ai, and copy the address of the repository or archive that it names"
        raise UsageProblem(f"{_shown(text)!r} names no repository to install from", hint=hint)
    gist = next((word for word in named["-"] if before[:2] == ["gh", "gist"] and _GIST.fullmatch(f"/{word}")), "")
    host = next((word.partition("=")[2] for word in before if word.startswith("GH_HOST=")), "")
    address = f"https://{host}/{address}" if host and _NAME.fullmatch(address) else address or (gist and f"gist:{gist}")
    if not address:
        hint = "of lines for other programs, only those with add, clone or install and an address are read"
        for word in [*named["-"], *named["other"]][:1]:
            address = shlex.quote(f"npm:{word}" if before[-1:] in (["npm"], ["pnpm"], ["yarn"]) else word)
            hint = f"write {address}"
            if "@" in word and ":" not in address:
                hint = f"write {address} if Claude Code has its marketplace here; if not, OWNER/REPO with --skill NAME"
        raise UsageProblem(f"{_shown(text)!r} names no repository to install from", hint=hint)
    skills = named["skill"]
    if before[-1:] in (["skill"], ["skills"]):  # `gh skill install OWNER/REPO NAME@VERSION`
        for name, _, version in (word.partition("@") for word in named["-"][named["-"].index(address) + 1 :]):
            skills.append(name)
            named["ref"] += [version] if version else []
    source = parse_source(address, base=base, ref=next(iter(named["ref"]), ""))
    below = next(iter(named["path"]), "").strip("/").removeprefix("./")
    source = replace(source, subpath=source.subpath or ("" if source.page else below), skills=tuple(skills))
    _refuse_climbing(source.subpath)
    _refuse_odd(source)
    return source


def _parsed(text: str, base: Path) -> Source:
    packed = text.lower().endswith(ARCHIVES)
    if text in {".", ".."} or text.startswith(_FOLDERS) or (packed and not _PUNCTUATION.search(text)):
        path = (base / Path(text).expanduser()).resolve()
        # A git repository without a work tree (gitrepository-layout(5))
        if (path / "HEAD").is_file() and (path / "objects").is_dir() and (path / "refs").is_dir():
            quoted = _SPECIAL.sub(lambda mark: f"%{ord(mark[0]):02x}", str(path))  # special in git's URLs
            return _local("", quoted, "")
        hit = None if path.exists() else _WITH_REF.fullmatch(text)
        if hit and (base / Path(hit[1]).expanduser()).exists():
            return replace(_parsed(hit[1], base), ref=hit[2])
        kind: Literal["archive", "folder"] = "archive" if packed and not path.is_dir() else "folder"
        return Source(kind=kind, url=str(path), label=clean(str(path), lines=False))
    if "://" in text:
        return _from_url(text.removeprefix("git+"))
    if hit := _SCP.fullmatch(text):
        return _from_scp(*hit.groups(default=""))
    forge, colon, below = text.partition(":")
    if colon and forge.lower() == "npm":
        if (package := _PACKAGE.fullmatch(below)) is None:
            raise UsageProblem(
                f"{text!r} is not a package of npm", hint="npm:NAME, npm:@SCOPE/NAME or npm:NAME@VERSION"
            )
        return Source(kind="web", url=f"npm:{package[1]}", label=f"npm:{package[1]}", ref=package[2] or "")
    if colon and forge.lower() == "mcp":
        server, _, skill = below.partition("/")
        if not SERVER.fullmatch(server) or "/" in skill:
            raise UsageProblem(f"{text!r} is not an MCP server", hint="mcp:SERVER or mcp:SERVER/SKILL")
        return Source(kind="web", url=f"mcp:{server}", label=f"mcp:{server}", skill=skill)
    if colon and (beginning := _FORGES.get(forge.lower())):
        return _from_url(f"{beginning}{below.strip('/')}")
    if hit := _ALIAS.fullmatch(text):
        host, place, named = hit.groups(default="")
        if host.lower() in FORGE_HOSTS:  # whose user is always `git`
            return _from_scp("git", host, place, named)
        _refuse_plain_host(host)  # a name in the person's ssh settings
        _refuse_climbing(place)
        if place.startswith("-"):
            raise Refused(f"{host + ':' + place!r} looks like an option", hint="git@host:owner/repo")
        return Source(kind="git", url=f"{host}:{place}", label=f"{host}:{place}", ref=named)
    if _SCHEMELESS.fullmatch(text):
        return _from_url(f"https://{text}")
    if hit := _SHORT.fullmatch(text):
        owner, name, below, mark, word = hit.groups(default="")
        if below.startswith(("tree/", "blob/")):
            return _from_url(f"{GITHUB}{text}")
        word, inner = _divided(word)
        if mark == "@" and "/" in word and not below and is_ref(word):
            # a branch with a slash, or a ref and a path below it
            return replace(_on_github(owner, name, ""), page=word)
        source = _on_github(owner, name, word, subpath=below.strip("/") or inner)
        return replace(source, skill=word) if mark == "@" and not below.strip("/") else source
    raise UsageProblem(f"{text!r} is not a source", hint=_written(text))


def _written(address: str) -> str:
    """How the source that `address` may mean is written."""
    user, at, rest = address.partition("@")
    host, slash, path = rest.partition("/")
    if at and slash and _USER.fullmatch(user) and _HOST.fullmatch(host):
        is_marketplace = user != "git" and "." not in host and "/" not in path  # as `/plugin install` writes a plugin
        return f"write {rest} with --skill {user}" if is_marketplace else f"write {user}@{host}:{path}"
    if drive := _DRIVE.fullmatch(address):
        return f"go to the folder and write ./folder; in WSL it is /mnt/{drive[1].lower()}/{drive[2]}"
    if address.startswith(("./", "../", "~/")):
        return f"write {address}"
    if " / " in address:
        return f"write {address.replace(' / ', '/')}"
    first, *more = address.split()
    repository, colon, below = first.partition(":")
    if more and _SHORT.fullmatch(first):
        return f"write {first}, with --skill NAME or a path behind it"
    if colon and below and _NAME.fullmatch(repository):
        return f"write {repository}/{below}"
    if address.startswith("@") and _NAME.fullmatch(address[1:]):
        return f"write {address[1:]}, or npm:{address} for a package of npm"
    return FORMS


def _divided(ref: str) -> tuple[str, str]:
    """A ref, and the path that may stand behind it."""
    hit = _BELOW.fullmatch(ref)
    return (hit[1], hit[2].strip("/")) if hit else (ref, "")


def _from_url(text: str) -> Source:
    hit = _URL.fullmatch(text)
    if not hit:
        addresses = _ADDRESS.findall(text)
        hint = f"write {_shown(addresses[0])}" if len(addresses) == 1 else FORMS
        raise UsageProblem(f"{_shown(text)!r} is not a URL", hint=hint)
    scheme, (host, path, query, ref) = hit[1].lower(), hit.groups(default="")[1:]
    is_pip = ref.startswith(("subdirectory=", "egg="))
    asked = {key: values[-1] for key, values in parse_qs(f"{query}&{ref}" if is_pip else query).items()}
    ref = "" if is_pip or "tab" in asked else ref  # behind a tab of a page stands a heading
    is_here = host.rpartition(":")[0] in {"127.0.0.1", "localhost", "[::1]"}
    if scheme == "http" and is_here and (web := _published(scheme, host, path, ref)):
        return web
    if scheme not in {"https", "ssh", "file"}:
        plain = scheme in {"http", "git"} and "@" not in host
        hint = f"write https://{_shown(host + path)}" if plain else "https, ssh or file"
        raise Refused(f"{scheme!r} is not an allowed transport", hint=hint)
    _refuse_climbing(path)
    if scheme == "file":
        return _local(host, path, ref)
    user, _, name = host.rpartition("@")
    address, colon, below = name.rpartition(":")
    if scheme == "ssh" and colon and user and address and below and not below.isdigit() and "]" not in below:
        return _from_scp(user, address, f"{below}{path}", ref)  # `ssh://git@host:owner/repo`, a common mixture
    if scheme == "https" and _is_name_of_a_button(user, name.lower(), path):
        host = name
    user, at, name = host.rpartition("@")
    if ":" in user or (scheme == "https" and at):
        hint = "leave the user and password out; git's own means hold secrets"
        raise Refused("the URL carries a user or password", hint=hint)
    if at and not _USER.fullmatch(user):
        raise Refused(f"{clean(user, lines=False)!r} is not a plain user name", hint="ssh://git@host/path")
    _refuse_plain_host(name)
    if scheme == "https":
        host = host.lower().removesuffix(":443").removesuffix(".")
        _refuse_detour(asked, host, path)
        host = SAME_AS.get(host, host)
        if page := _page(host, path.rstrip("/"), query):
            if not page.page and not page.ref:
                return replace(page, ref="" if "gist" in host else ref)
            # What stands behind `#` is a place on the page unless the page begins with it
            named = ref if f"{page.page}/".startswith(f"{ref}/") else ""
            return _at_page(page, named) if page.page else page
        if not query and (web := _published(scheme, host, path, ref)):
            return web
    if not path.strip("/"):
        raise UsageProblem(f"{_shown(text)!r} names no repository", hint=FORMS)
    ref = next((asked[key] for key in ("ref", "branch", "tag", "version", "h") if key in asked), ref)
    skill = ""
    if followed := _FOLLOWED.fullmatch(path.rstrip("/")):
        path, skill, ref = followed[1], "" if ref else followed[2], ref or followed[2]
    path, _, below = (path, "", "") if path.startswith("//") else path.partition("//")
    ref, inner = _divided(ref)
    below = (below or inner or asked.get("subdirectory", "") or asked.get("path", "")).strip("/")
    if scheme == "https" and host == "github.com":
        source = _on_github_at(path, ref)
    else:
        if scheme == "https":
            _refuse_other_page(host, path)
        url = f"{scheme}://{host}{path.rstrip('/')}"
        source = Source(kind="git", url=url, label=url, ref=ref)
    below = source.subpath or below
    return replace(source, subpath=below, skill="" if below else skill)


def _refuse_detour(query: Mapping[str, str], host: str, path: str) -> None:
    """Raises UsageProblem for the address of a mail program, a search or a chat that leads to another one."""
    if (
        inner := path.partition("/https:/")[2].strip("/")
    ) and host not in FORGE_HOSTS:  # as archives of the web have it
        raise UsageProblem(f"{host!r} only shows another address", hint=f"write https://{_shown(inner)}")
    for key in ("q", "url", "u", "target", "to", "redirect", "dest"):
        if query.get(key, "").startswith("https://") and host not in FORGE_HOSTS and path.count("/") < 3:
            raise UsageProblem(f"{host + path!r} only leads to another address", hint=f"write {_shown(query[key])}")


def _published(scheme: str, host: str, path: str, ref: str) -> Source | None:
    """The site, its index of skills, or the archive that an address names; None for the address of a repository."""
    below = path.strip("/")
    is_archive = below.lower().endswith(ARCHIVES) and (host not in FORGE_HOSTS or "/releases/download/" in path)
    above, well_known, rest = f"{path}/".partition("/.well-known/")
    index, _, skill = rest.strip("/").partition("/")
    if well_known and index in {"", "skills", "agent-skills"}:
        url = f"{scheme}://{host}{above}/.well-known{f'/{index}/index.json' if index else ''}"
        skill = unquote(skill.partition("/")[0].removesuffix("index.json"))
        return Source(kind="web", url=url, label=url, ref=ref, skill=skill)
    if well_known and rest.strip("/") in {"ai-catalog.json", "ard.json"}:
        url = f"{scheme}://{host}{path.rstrip('/')}"
        return Source(kind="web", url=url, label=url, ref=ref)
    if path.lower().endswith(".md") and host not in FORGE_HOSTS:
        name = _shown(unquote(below.rpartition("/")[2]))
        hint = f"save it as {name} in a folder of its own, then write ./FOLDER; or name the repository it is from"
        raise UsageProblem(f"{_shown(host + path)!r} is one file and not a repository", hint=hint)
    if not is_archive and (host in FORGE_HOSTS or (below and scheme == "https")):
        return None  # `site_below` is what it is where git finds no repository
    url = f"{scheme}://{host}{path.rstrip('/')}{'' if is_archive else '/.well-known'}"
    return Source(kind="web", url=url, label=url, ref=ref)


def _is_name_of_a_button(user: str, host: str, path: str) -> bool:
    """Whether `user` is the name that the clone button of Azure DevOps or Bitbucket writes before the host: it is no
    secret, and git does not need it."""
    if host == "dev.azure.com":
        return user != "" and user.lower() == unquote(path).strip("/").partition("/")[0].lower()
    if host.endswith(".visualstudio.com"):
        return user != "" and user.lower() == host.partition(".")[0]
    return host == "bitbucket.org" and len(user) <= 30 and _USER.fullmatch(user) is not None


def _page(host: str, path: str, query: str) -> Source | None:
    """The repository, ref and path of the web page of a repository's files; None for any other address."""
    asked = {key: values[-1] for key, values in parse_qs(query).items()}
    base = f"https://{host}"
    if host in {"raw.githubusercontent.com", "raw.github.com", "codeload.github.com"}:
        raw = (_GITHUB_RAW if host.startswith("raw") else _GITHUB_ARCHIVE).fullmatch(path)
        return _page_of(GITHUB[:-1], raw) if raw else None
    if host in {"gist.github.com", "gist.githubusercontent.com"}:
        if (gist := _GIST.fullmatch(path)) is None:
            raise UsageProblem(f"{base + path!r} is not a gist", hint="open the gist and copy its address")
        return _plain_git(f"https://gist.github.com/{gist[1]}.git", gist[2] or "")
    if host in {"skills.sh", "www.skills.sh"} and (listed := _DIRECTORY.fullmatch(path)):
        owner, name = listed[1].strip("/").split("/")
        return replace(_on_github(owner, name, ""), skill=unquote(listed["skill"] or ""))
    if mirrored := _mirrored(f"{host}{path}"):
        return replace(mirrored, ref=mirrored.ref or ("" if mirrored.page else asked.get("ref", "")))
    if host.removeprefix("www.") in _LISTINGS:
        hint = "open the skill there, and copy the address of the repository or archive that it names"
        raise UsageProblem(f"{base + path!r} is a page that lists skills of others", hint=hint)
    if server := _BITBUCKET_SERVER.fullmatch(path):
        owner = f"{'~' if server['kind'] == 'users' else ''}{server['owner'].lstrip('~')}"
        url = f"{base}{server['above']}/scm/{owner}/{server['name']}.git"
        return replace(_plain_git(url, asked.get("at", "")), subpath=unquote(server["path"] or "").strip("/"))
    if "/_git/" in path and (azure := _AZURE.fullmatch(path)):
        if azure["other"]:
            raise _not_of_files(f"{base}{path}", f"{base}{azure[1]}")
        version = asked.get("version", "")
        ref = azure["ref"] or (version[2:] if version[:2] in {"GB", "GT", "GC"} else version)
        return replace(_plain_git(f"{base}{azure[1]}", ref), subpath=asked.get("path", "").strip("/"))
    if snippet := _SNIPPET.fullmatch(path):
        url = f"{base}{snippet[1]}/snippets/{snippet[2]}.git"
        return replace(_plain_git(url, ""), page=unquote(snippet["page"] or "").rpartition("/")[0])
    if gitlab := _GITLAB.fullmatch(path):
        if gitlab["other"]:
            raise _not_of_files(f"{base}{path}", f"{base}{gitlab[1]}")
        return _page_of(base, gitlab, ".git")
    if path.endswith(".git"):
        return None
    if host == "bitbucket.org":
        page = _BITBUCKET.fullmatch(path)
        return _page_of(base, page) if page else None
    if "h" in asked and "/tree/" in f"{path}/":  # cgit
        repository, _, below = path.partition("/tree")
        return replace(_plain_git(f"{base}{repository}", asked["h"]), subpath=unquote(below).strip("/"))
    page = _PAGE.fullmatch(path) or (_SOURCE.fullmatch(path) if "gitlab" not in host else None)
    return _page_of(base, page) if page else None


def _mirrored(address: str) -> Source | None:
    """The repository of GitHub or the package of npm that another site shows at `address`; None for any other one."""
    shown = ((kind, top) for kind, tops in _MIRRORS.items() for top in tops.split() if address.startswith(top))
    kind, top = next(shown, ("", ""))
    below = address[len(top) :]
    if kind == "github":
        return _from_url(f"{GITHUB}{below.replace('/contents', '', 1) if top.startswith('api.') else below}")
    if kind == "npm" and (package := _NPM_PAGE.fullmatch(unquote(below))):
        return _parsed(f"npm:{package[1]}{'@' if package[2] else ''}{package[2] or ''}", Path())
    if kind == "gh" and (hit := _CDN.fullmatch(unquote(below))):
        folder, _, file = (hit[4] or "").strip("/").rpartition("/")
        inner = "" if top == "deepwiki.com/" else folder if "." in file else f"{folder}/{file}".strip("/")
        return _on_github(hit[1], hit[2], hit[3] or "", subpath=inner)
    return None


def _page_of(base: str, hit: re.Match[str], ending: str = "") -> Source:
    """The source of a page whose path was matched: the repository, and what its groups name."""
    named = {name: unquote(value) for name, value in hit.groupdict().items() if value}
    kind, value = next(iter(named.items()), ("", ""))
    value = _REFS.sub("", value, count=1) if _REFS.match(value) else value
    if base.endswith("//git.sr.ht"):
        value = value.replace("/item", "", 1)
    if base == GITHUB[:-1]:
        owner, name = hit[1].strip("/").split("/")[:2]
        source = _on_github(owner, name.removesuffix(".git"), "")
    else:
        source = _plain_git(f"{base}{hit[1]}{ending}", "")
    if kind.startswith(("page", "file")):
        folder = value.rpartition("/")[0] if kind.startswith("file") else value
        return replace(source, page=folder or value)
    return replace(source, ref=value)


def _plain_git(url: str, ref: str) -> Source:
    return Source(kind="git", url=url, label=url, ref=_REFS.sub("", ref, count=1) if _REFS.match(ref) else ref)


def _on_github_at(path: str, ref: str) -> Source:
    """The repository at a path of GitHub, or the folder of it that a person wrote behind it."""
    owner, _, rest = path.strip("/").partition("/")
    name, _, below = rest.partition("/")
    if not name or owner in _OTHER_OWNERS:
        hint = "open the repository and copy its address" if name else f"write {owner}/REPOSITORY"
        raise UsageProblem(f"{GITHUB + path.strip('/')!r} is not a repository", hint=hint)
    _refuse_other_page("github.com", path)
    below = "" if below.strip("/") in {"tree", "blob", "raw", "commits"} else below
    return _on_github(owner, name.removesuffix(".git"), ref, subpath=unquote(below).strip("/"))


def _refuse_other_page(host: str, path: str) -> None:
    """Raises UsageProblem for the page of an issue, a release and the like, and for a file to download."""
    parts = [part for part in path.split("/") if part]
    if host == "dev.azure.com" and "_git" not in parts:
        hint = (
            f"write https://dev.azure.com/{'/'.join(parts[:2]) if parts[1:] else f'{parts[0]}/PROJECT'}/_git/REPOSITORY"
        )
        raise UsageProblem(f"{host + path!r} is not a repository", hint=hint)
    address = "/".join((f"https://{host}", *parts))
    if len(parts) > 2 and parts[2] in _OTHER_PAGES and not path.endswith(".git"):
        raise _not_of_files(address, "/".join((f"https://{host}", *parts[:2])))
    if path.lower().endswith(ARCHIVES):
        hint = f"download it, then write ./{parts[-1]}"
        raise UsageProblem(f"{address!r} is a file and not a repository", hint=hint)


def _not_of_files(page: str, repository: str) -> UsageProblem:
    short = repository.removeprefix(GITHUB)
    return UsageProblem(
        f"{_shown(page)!r} is a page about a repository, not of its files",
        hint=f"write {_shown(short)}, or open the folder or the commit there and copy that address",
    )


def _local(host: str, path: str, ref: str) -> Source:
    if host.lower() not in {"", "localhost"}:
        raise Refused(f"a file URL names another machine: {host!r}", hint="file:///absolute/path")
    if not path.strip("/"):
        raise UsageProblem("the file URL names no folder", hint="file:///absolute/path")
    if _DRIVE.fullmatch(path):
        raise UsageProblem(f"{path[1:]!r} is a folder of Windows", hint=_written(path[1:]))
    url = f"file://{path.rstrip('/')}"
    return Source(kind="git", url=url, label=url, ref=ref)


def _from_scp(user: str, host: str, path: str, ref: str) -> Source:
    if not _USER.fullmatch(user) or path.startswith("-"):
        raise Refused(f"{user + '@' + host + ':' + path!r} looks like an option", hint="git@host:owner/repo")
    _refuse_plain_host(host)
    _refuse_climbing(path)
    if path.partition("/")[0] in _PORTS and host not in FORGE_HOSTS:
        raise UsageProblem(f"{user + '@' + host + ':' + path!r} has a port", hint=f"write ssh://{user}@{host}:{path}")
    page = _PAGE.fullmatch(f"/{path}") if host in FORGE_HOSTS and not path.endswith(".git") else None
    repository = f"{page[1].strip('/')}.git" if page else path
    url = f"{user}@{host}:{repository}"
    source = _page_of(f"https://{host}", page) if page else Source(kind="git", url=url, label=url, ref=ref)
    return replace(source, url=url, label=url)


def _refuse_plain_host(host: str) -> None:
    """Raises Refused for letters of other scripts, which look like Latin ones."""
    if not _HOST.fullmatch(host) or any(part.startswith("xn--") for part in host.lower().split(".")):
        raise Refused(f"{clean(host, lines=False)!r} is not a plain host name", hint="only plain ASCII names are read")


def _refuse_climbing(path: str) -> None:
    if ".." in unquote(path).split("/"):
        raise Refused(f"{clean(path, lines=False)!r} leads upwards", hint="write the path without '..'")


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

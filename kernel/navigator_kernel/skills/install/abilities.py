"""What a skill can do, as far as its bytes say: the programs that it runs, the hosts that it talks to, what it reads of
the environment and of credentials, the packages that it fetches, its tools, permissions and hooks.

It is for a person who decides about an update: a word too many costs a glance, so lists of words and forms are short.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from navigator_kernel.skills.formats.manifest import permissions
from navigator_kernel.skills.scan.context import Passage, is_comment, language_of, passages
from navigator_kernel.text import clean, lazy_compile
from navigator_kernel.values.receipt import Abilities

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from navigator_kernel.values.resource import SkillDef

MOST = 200  # names of one kind
_TEXT = 1_000_000  # bytes of a file that is read
_SHELLS = frozenset("sh bash zsh fish shell console terminal ksh".split())
_DATA = frozenset(
    "json jsonc yaml yml toml xml html css csv text txt markdown md diff log ini output plaintext".split()
)
_QUIET = frozenset(  # shell words, and programs that only look, count and format
    """if then else elif fi for in do done while until case esac function select time return exit break continue
    local export unset readonly declare typeset set shift trap test true false cd pwd echo printf read source
    alias let wait pushd popd ls cat head tail wc sort uniq grep egrep fgrep cut tr awk sed find basename
    dirname date sleep mkdir touch diff cmp which command type tree less more seq expr tee realpath readlink
    stat file jq rg fd hash getopts umask""".split()
)
_KNOWN = frozenset(  # programs that count wherever a text shows them as code
    """curl wget nc ncat socat ssh scp rsync sftp ftp telnet git gh glab docker podman kubectl helm terraform aws
    gcloud az heroku vercel netlify fly npm npx pnpm yarn bun bunx node deno python python2 python3 py pip pip3
    pipx uv uvx ruby gem perl php lua bash sh zsh fish pwsh powershell cmd osascript open xdg-open brew apt
    apt-get yum dnf apk pacman snap cargo go rustup gcc make rm mv dd chmod chown mkfs mount sudo su crontab at
    systemctl launchctl kill pkill killall eval base64 openssl gpg ssh-keygen security secret-tool pass op vault
    ffmpeg magick pandoc soffice psql mysql sqlite3 redis-cli mongosh playwright claude codex gemini ollama
    xclip pbpaste defaults reg schtasks env printenv tar zip unzip nmap dig nslookup host""".split()
)
_BEFORE = (
    r"(?:(?:sudo|env|time|nohup|exec|xargs|command|then|do|else|!)[ \t]+(?:-\S+[ \t]+)*"
    r"|[A-Za-z_]\w*=[^\s;|&]*[ \t]+)*"
)
_STATEMENT = lazy_compile(
    r"(?:^|[|;&(`]|\$\()[ \t]*(?:[$>%#] [ \t]*)?"
    + _BEFORE
    + r"([A-Za-z_][\w.+-]{0,60}|(?:\./|~/|/)[\w./-]{1,80})(?=$|[\s;|&)`])",
    re.MULTILINE,
)
_SUDO = lazy_compile(r"(?:^|[|;&(`\s])(sudo|xargs|env)(?=[ \t]+\S)", re.MULTILINE)
_CALL = lazy_compile(
    r"(?:subprocess\.\w{1,20}|Popen|os\.(?:system|popen|exec\w{1,4}|spawn\w{1,4})|(?:exec"
    r"|spawn)(?:File)?(?:Sync)?|shell_exec)"
    r"\(\s{0,20}\[?\s{0,20}f?[\"'`]([\w./+-]{1,80})"
)
_FUNCTION = lazy_compile(r"^[ \t]*(?:function[ \t]+)?([\w-]{1,60})[ \t]*\(\)", re.MULTILINE)
_URL = lazy_compile(
    r"\b(?:https?|wss?|ftp|ssh|git)://(?:[^\s/@\"'<>]{1,200}@)?([\w-]{1,63}(?:\.[\w-]{1,63}){0,8})", re.IGNORECASE
)
_AT = lazy_compile(r"\bgit@([\w.-]{1,200}):")
_REACHED = lazy_compile(
    r"\b(?:curl|wget|nc|ncat|ssh|scp|sftp"
    r"|telnet)\b[^\n;|&]{0,300}?[ @]((?:[\w-]{1,63}\.){1,8}[a-z]{2,24})(?=[:/\s]|$)",
    re.MULTILINE,
)
_CONNECTED = lazy_compile(
    r"(?:HTTPS?Connection|create_connection|connect)\(\s{0,9}\(?\s{0,9}[\"']([\w-]{1,63}(?:\.[\w-]{1,63}){1,8})[\"']"
)
_SENT = lazy_compile(
    r"(?:\b(?:fetch|download|post|send|upload|submit|curl|wget|webhook|exfiltrate|forward)\b|发送|上传|下载)[^\n]{0,160}?"
    r"(?<![(<])\b(https?://[^\s)>\"']{4,300})",
    re.IGNORECASE,
)
_IMAGE = lazy_compile(r"!\[[^\]\n]{0,200}\]\((https?://[^\s)]{0,300}[?{$&][^\s)]{0,300})\)")
_NAMESPACES = frozenset("www.w3.org json-schema.org schemas.microsoft.com schemas.openxmlformats.org purl.org".split())
_VARIABLE = lazy_compile(
    r"(?:environ(?:\.get)?\s?[\[(]\s?[\"']|getenv\(\s?[\"']|process\.env\.|process\.env\[[\"']|ENV\[[\"']"
    r"|Deno\.env\.get\([\"']|\$env:)"
    r"([A-Za-z_]\w{0,80})"
)
_SHELL_VARIABLE = lazy_compile(r"\$\{?([A-Z][A-Z0-9_]{2,80})\b")
_ASSIGNED = lazy_compile(
    r"(?:^|[\s;])(?:export[ \t]+|for[ \t]+|read[ \t]+(?:-\w+[ \t]+)*)?([A-Z][A-Z0-9_]{2,80})(?:=|[ \t]+in\b)",
    re.MULTILINE,
)
_WHOLE = lazy_compile(
    r"dict\(os\.environ|os\.environ\.(?:items|copy)|json\.dumps\(\s?(?:dict\()?os\.environ"
    r"|stringify\(process\.env|\bprintenv\b(?![ \t]+\w)"
)
_SECRET = lazy_compile(
    r"\b([A-Z][A-Z0-9]{0,30}(?:_[A-Z0-9]{1,30}){0,6}_(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?))\b"
)
_COMMON = frozenset(
    "HOME PATH PWD OLDPWD TMPDIR SHELL IFS RANDOM USER LANG ARGUMENTS LINENO BASH_SOURCE EDITOR COLUMNS".split()
)
_CREDENTIAL = lazy_compile(
    r"(\.aws/(?:credentials|config)|\.ssh/[\w.*-]{1,40}|\bid_(?:rsa|ed25519|ecdsa)\b|\.netrc\b|\.npmrc\b"
    r"|\.pypirc\b|\.git-credentials"
    r"|\.docker/config\.json|\.kube/config|\.config/gh/hosts\.yml|\.config/gcloud\b|\.azure/|\.gnupg\b"
    r"|\.claude/\.credentials\.json"
    r"|\.codex/auth\.json|find-(?:generic|internet)-password|secret-tool lookup|keyring\.get_password|Login Data\b"
    r"|/etc/shadow|\.password-store|\.vault-token|\.bash_history|\.zsh_history|wallet\.dat)"
)
_DOTENV = lazy_compile(r"(?<![\w.])(\.env(?:\.\w{1,20})?)(?![\w.(\[])")
_INSTALL = lazy_compile(
    r"\b(?:pip3?[ \t]+install|uv[ \t]+(?:pip[ \t]+install|add|tool[ \t]+install)|uvx|pipx[ \t]+(?:run|install)"
    r"|npm[ \t]+(?:install|i|exec)|npx|bunx|bun[ \t]+add|yarn[ \t]+(?:add|dlx)|pnpm[ \t]+(?:add|dlx|install)"
    r"|cargo[ \t]+install"
    r"|go[ \t]+install|gem[ \t]+install|brew[ \t]+install|apt(?:-get)?[ \t]+install|dnf[ \t]+install|apk[ \t]+add)"
    r"((?:[ \t]+[^\s;|&`)#\"']{1,120}){1,40})"
)
_PACKAGE = lazy_compile(r"@?[A-Za-z][\w./@+-]{0,100}(?:\[[\w,]{1,40}\])?(?:[=<>~!]{1,2}[\w.*]{1,30})?")
_RUNS_ONE = lazy_compile(r"^(?:npx|bunx|uvx|pipx|npm[ \t]+exec)")
_SCRIPT_NEEDS = lazy_compile(r"^#[ \t]*dependencies[ \t]*=[ \t]*\[([^\]]{0,4000})\]", re.MULTILINE)
_QUOTED = lazy_compile(r"[\"']([^\"'\n]{1,120})[\"']")
_WORDS = lazy_compile(r"[\s|;&(`]")
_INSERTED = lazy_compile(r"!`([^`\n]{1,400})`")


def abilities(skill: SkillDef, contents: Mapping[str, bytes]) -> Abilities:
    """What the skill with these files can do, each list sorted."""
    found: dict[str, set[str]] = {field: set() for field in Abilities.__struct_fields__}
    found["tools"] |= {*skill.allowed_tools, *(skill.tools or ())}
    for name, value in permissions(skill).items():
        found["permissions"] |= {name} if value is True else {f"{name} {one}" for one in value or ()}
    _add_hooks(skill.extra.get("hooks"), found)
    # The text of a file, empty if it is none or too large
    texts = {
        path: ("" if len(data) > _TEXT or b"\0" in data[:8192] else data.decode("utf-8", errors="replace"))
        for path, data in contents.items()
    }
    assigned = {name for text in texts.values() for name in _ASSIGNED.findall(text)}
    for path, text in texts.items():
        for passage in passages(path, text) if text else ():
            if passage.kind in {"prose", "comment"}:
                for address in (*_SENT.findall(passage.body), *_IMAGE.findall(passage.body)):
                    found["hosts"].update(host.lower() for host in _URL.findall(address))
                found["environment"].update(_SECRET.findall(passage.body))
                found["credentials"].update(_CREDENTIAL.findall(passage.body))
                for command in _INSERTED.findall(passage.body):
                    _run(command, found, known_only=False)
            else:
                _read_code(passage, found, assigned)
        _read_file(path, text, found)
    if skill.command:
        _run(skill.command, found, known_only=False)
    return Abilities(
        **{kind: tuple(sorted(clean(one, lines=False) for one in names)[:MOST]) for kind, names in found.items()}
    )


def grown(before: Abilities, after: Abilities) -> Abilities:
    """What `after` has and `before` has not."""
    old, new = asdict(before), asdict(after)
    return Abilities(**{kind: tuple(one for one in names if one not in old[kind]) for kind, names in new.items()})


def _read_code(passage: Passage, found: Mapping[str, set[str]], assigned: set[str]) -> None:
    lines = list(_uncommented(passage))
    body, language = "\n".join(lines), _language(passage)
    is_shell, is_data = language in _SHELLS, language in _DATA
    if passage.kind == "fence" and is_data:
        return
    found["environment"].update(_SECRET.findall(body))
    found["credentials"].update((*_CREDENTIAL.findall(body), *_DOTENV.findall(body)))
    if passage.kind == "config":
        found["hosts"].update(host.lower() for host in _URL.findall(body) if "$schema" not in body)
        return
    is_inline = passage.kind == "fence" and passage.text[passage.start - 1 : passage.start] == "`"
    if is_shell or not (language or (is_inline and " " not in body.strip())):  # a single word is a name, no command
        _run(body, found, known_only=not is_shell)
    found["programs"].update(name.rpartition("/")[2] for name in _CALL.findall(body))
    found["environment"].update(name for name in _VARIABLE.findall(body) if name not in _COMMON)
    found["environment"].update(["*"] if _WHOLE.search(body) else ())
    if is_shell or not language:
        found["environment"].update(set(_SHELL_VARIABLE.findall(body)) - assigned - _COMMON)
    shown = body if language else "\n".join(line for line in lines if _names_program(line) or "(" in line)
    hosts = {*_URL.findall(shown), *_AT.findall(shown), *_REACHED.findall(shown), *_CONNECTED.findall(shown)}
    found["hosts"].update(host.lower() for host in hosts if host.lower() not in _NAMESPACES)


def _run(code: str, found: Mapping[str, set[str]], *, known_only: bool) -> None:
    """Adds the programs that shell code runs and the packages that it fetches."""
    functions = set(_FUNCTION.findall(code))
    words = {word.rpartition("/")[2] for word in (*_STATEMENT.findall(code), *_SUDO.findall(code))}
    words = {word for word in words if word and word not in _QUIET and word not in functions}
    found["programs"].update(words & _KNOWN if known_only else words)
    for hit in _INSTALL.finditer(code):
        packages = [word for word in hit[1].split() if _PACKAGE.fullmatch(word)]
        found["packages"].update(packages[:1] if _RUNS_ONE.match(hit[0]) else packages)


def _read_file(path: str, text: str, found: Mapping[str, set[str]]) -> None:
    """Adds what files of a known form say: requirements, packages, hooks, servers."""
    name = path.rpartition("/")[2]
    if name.startswith("requirements") and name.endswith(".txt"):
        found["packages"].update(line.strip() for line in text.splitlines() if _PACKAGE.fullmatch(line.strip()))
    elif name.endswith(".py"):
        for block in _SCRIPT_NEEDS.findall(text[:20_000]):
            found["packages"].update(_QUOTED.findall(block))
    elif name in {"package.json", "hooks.json", ".mcp.json", "mcp.json"}:
        with suppress(ValueError, RecursionError):
            whole = json.loads(text)
            for key in ("dependencies", "devDependencies", "optionalDependencies"):
                found["packages"].update(whole.get(key) or ()) if name == "package.json" else None
            found["hooks"].update(f"mcp {server}" for server in whole.get("mcpServers") or ())
            if name == "hooks.json":
                _add_hooks(whole.get("hooks") or whole, found)
            found["hooks"].update(
                f"npm {key}" for key in whole.get("scripts") or () if "install" in key or key == "prepare"
            )


def _add_hooks(hooks: Any, found: Mapping[str, set[str]]) -> None:
    """Adds each command of a hook, with its event, and the programs that it runs."""
    for event, value in hooks.items() if isinstance(hooks, dict) else ():
        for command in _commands(value):
            found["hooks"].add(f"{event}: {command[:120]}")
            _run(command, found, known_only=False)


def _commands(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _commands(one)
    elif isinstance(value, dict):
        for key in ("command", "hooks", "run", "url"):
            yield from _commands(value.get(key))


def _uncommented(passage: Passage) -> Iterator[str]:
    at = 0
    for line in passage.body.split("\n"):
        first = at + len(line) - len(line.lstrip())
        at += len(line) + 1
        if line.strip() and not (line.lstrip()[0] in "#/;*-" and is_comment(passage, min(first + 3, at - 2))):
            yield line


def _language(passage: Passage) -> str:
    if passage.kind == "fence":
        return language_of(passage)
    ending = passage.path.rpartition(".")[2].lower() if "." in passage.path.rpartition("/")[2] else ""
    if ending in {"md", "markdown"}:
        return "sh"  # the command of a manifest
    first = passage.text.partition("\n")[0]
    is_shell = first.startswith("#!") and first.rstrip().endswith("sh")
    return "sh" if is_shell or ending in {"sh", "bash", "zsh", "fish"} else ending


def _names_program(line: str) -> bool:
    return not _KNOWN.isdisjoint(_WORDS.split(line))

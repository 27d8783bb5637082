"""What a skill can do, as far as its bytes say: the programs that it runs, the hosts that it talks to, what it reads of
the environment and of credentials, the packages that it fetches, its tools, permissions and hooks.

It is for a person who decides about an update: a word too many costs a glance, so lists of words and forms are short.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from navigator_kernel.skills.formats.manifest import permissions
from navigator_kernel.skills.scan.context import (
    Passage,
    commands_of,
    is_comment,
    language_of,
    passages,
    without_docstrings,
    without_heredocs,
)
from navigator_kernel.text import clean, lazy_compile
from navigator_kernel.values.receipt import Abilities

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from navigator_kernel.values.resource import SkillDef

MOST = 200  # names of one kind
_TEXT = 1_000_000  # bytes of a file that is read
# Lists of words: shells, formats of data, words that start no program and programs that only look, count and format
# (quiet), programs that count wherever a text shows them as code (known), functions that run the program that their
# first argument names (runners), usual variables, modules of node, and languages whose lines are commands (of_lines)
_LISTS = {
    name: frozenset(words.split())
    for line in Path(__file__).with_name("abilities.tsv").read_text("utf-8").splitlines()
    for name, words in [line.split("\t")]
}
_SHELLS, _QUIET, _KNOWN, _COMMON = (_LISTS[name] for name in ("shells", "quiet", "known", "common"))
_BEFORE = (
    r"(?:(?:sudo|env|time|nohup|exec|xargs|command|if|elif|while|until|then|do|else|RUN|CMD|!)[ \t]+(?:-\S+[ \t]+)*"
    r"|[A-Za-z_]\w*=(?:\"[^\"\n]*+\"|'[^'\n]*+'|[^\s;|&$`(\"']*+|\$\{?\w++\}?)[ \t]+)*"
)
_STATEMENT = lazy_compile(
    r"(?:^|[|;&`]|(?<!\w)\(|\{(?=[ \t]))[ \t]*(?:[$>%#] [ \t]*|@)?"
    + _BEFORE
    + r"([A-Za-z_][\w.+-]{0,60}|(?:\./|~/|/)[\w./-]{1,80})(?=$|[\s;|&)`])",
    re.MULTILINE,
)
_SUDO = lazy_compile(r"(?:^|[|;&(`\s])(sudo|xargs|env)(?=[ \t]+\S)", re.MULTILINE)
_CALL = lazy_compile(
    r"(?<![\w.:])((?:[\w.:]|\)(?=\.)){1,80})\(\s{0,20}[\[(&]?\s{0,20}(?:f?([\"'`])([\w./+-]{1,80})(?=[\"'`\s])|([A-Za-z_]\w{0,60}))"
)
_OWNERS = frozenset(("subprocess", "child_process"))
_MADE = ("exec.Command", "Deno.Command", "Command.new", "os.execute", "Process.Start")
_ALIAS = lazy_compile(
    r"\b(?:subprocess|child_process|Popen|run|call|check_\w{4,6}|system|popen)[ \t]+as[ \t]+([A-Za-z_]\w{0,60})"
    r"|\b([A-Za-z_]\w{0,60})[ \t]*=[ \t]*(?:child_process\b|subprocess\b|os\.(?:system|popen)\b)(?![.(])"
    r"|\b([A-Za-z_]\w{0,60})[ \t]+from[ \t]+[\"'](?:node:)?child_process"
    r"|\bfrom[ \t]+subprocess[ \t]+import[ \t]+(\([^()]{1,300}|[^\n#]{1,200})"
    r"|\{([^{}]{1,200})\}[^\n]{1,20}\bchild_process\b"
)
_REQUIRED = lazy_compile(r"\brequire\(\s?[\"'](?:node:)?child_process[\"']\s?\)")
_HELD = lazy_compile(
    r"(?<![\w.])([A-Za-z_]\w{0,60})(?:\s?:[^=\n]{1,40})?\s{0,9}=\s{0,9}[\[(]?\s{0,20}f?([\"'`]?)([\w./+:@-]{1,120})"
)
_HELD_RUN = lazy_compile(
    r"(?:^|[|;&(`])[ \t]*\"?\$[{ ]?([A-Za-z_]\w{0,60})(?:\[@\])?\}?\"?(?=$|[\s;|&)`])", re.MULTILINE
)
_PARTS = lazy_compile(r"[\"'`]\s{0,9}[/,+]\s{0,9}f?[\"'`]/?")
_BACKTICKS = lazy_compile(r"`([^`\n]{1,400})`|%x[{(\[]([^\n})\]]{1,400})")
_DOLLAR = lazy_compile(r"\$`([^`\n]{1,400})`")
_FUNCTION = lazy_compile(r"^[ \t]*(?:function[ \t]+)?([\w-]{1,60})[ \t]*\(\)", re.MULTILINE)
_URL = lazy_compile(
    r"\b(?:https?|wss?|s?ftp|ssh|git|postgre\w{1,4}|mysql|mongodb(?:\+srv)?|rediss?|amqps?|smtps?|ldaps?)"
    r"://(?:[^\s/@\"'<>]{1,200}@)?([\w-]{1,63}(?:\.[\w-]{1,63}){0,8})",
    re.IGNORECASE,
)
_AT = lazy_compile(r"\bgit@([\w.-]{1,200}):")
_ADDRESS = r"(?:[\w-]{1,63}\.){1,8}[a-z]{2,24}|\d{1,3}(?:\.\d{1,3}){3}"
_REACHED = lazy_compile(
    r"\b(?:curl|wget|nc|ncat|ssh|scp|sftp|telnet)\b[^\n;|&]{0,300}?"
    rf"[ @\"'](?<!-o )(?<!-O )({_ADDRESS})(?=[:/\s\"']|$)|/dev/(?:tcp|udp)/([\w.-]{{1,200}})",
    re.MULTILINE,
)
_FILE = lazy_compile(r"[^\n]*\.(?:txt|json|html?|pdf|png|jpe?g|csv|ya?ml|xml|log|t?gz|tar|bin|pem|key|out|conf|toml)")
_CONNECTED = lazy_compile(
    r"(?:HTTPS?Connection|create_connection|connect|createConnection|(?:SMTP|IMAP4|POP3)(?:_SSL)?|FTP(?:_TLS)?)"
    rf"\(\s{{0,9}}\(?\s{{0,9}}(?:\d{{1,5}},\s{{0,4}})?[\"']({_ADDRESS})[\"':]"
    rf"|\b(?:host|hostname|server|servername|endpoint)[\"']?\s{{0,4}}[:=]\s{{0,4}}[\"']({_ADDRESS})[\"':/]"
)
_HELD_HOST = lazy_compile(r"://(?:[\"'`]\s?\+\s?|\$?\{?)([A-Za-z_]\w{0,60})|://%s[^\n]{0,80}%\s?\(?([A-Za-z_]\w{0,60})")
_HOST = lazy_compile(r"[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}(?::\d{1,5})?")
_JOINED = lazy_compile(r"([\"'])\s?\+\s?\1")
_LOADED = lazy_compile(r"<script\b[^>]{0,300}?(?:src|href)\s?=\s?[\"']?(?:https?:)?//([\w.-]{1,200})", re.IGNORECASE)
_SENT = lazy_compile(
    r"(?:\b(?:fetch|download|(?<!the )(?<!log )(?<!\ba )(?<!blog-)post|send|upload|submit|curl|wget|WebFetch|webhook"
    r"|exfiltrate|forward)\b|发送|上传|下载(?!页|地址|链接|中心)|访问|抓取|调用|提交)[^\n]{0,160}?"
    r"(?<![(<])\b(https?://[^\s)>\"']{4,300})",
    re.IGNORECASE,
)
_IMAGE = lazy_compile(r"!\[[^\]\n]{0,200}\]\((https?://[^\s)]{0,300}(?:[{$<]|=(?=[A-Z_[&)]))[^\s)]{0,300})\)")
_FORBIDDEN = lazy_compile(
    r"\b(?:never|avoid|(?:do|must|should) not|don[’']t)\b"
    r"(?![ \t](?:forget|hesitate|fail|only|skip|stop|wait|mind|just))[^.!?\n;:,]{0,80}$"
    r"|(?:不要|切勿|禁止|不得)[^。！？，\n]{0,30}$",
    re.IGNORECASE,
)
_TOOL = lazy_compile(r"\b(mcp__\w{1,120})")
_ASKED = lazy_compile(
    r"\binstall(?:ing)?[ \t]+(?:the[ \t]+)?`([\w.@/-]{2,60})`(?:[ \t]+(?:package|module|library))?"
    r"[ \t]+(?:with|via|using|through|from)[ \t]+`?(?:pip|uv|npm|pnpm|yarn|brew|conda|cargo|gem|apt)\b",
    re.IGNORECASE,
)
# Files that are read by the tests of a skill, and descriptions of data
_EXAMPLES = lazy_compile(
    r"(?:^|/)(?:evals?|schemas?)/[^\n]*\.(?:jsonl?|ya?ml|csv|xml)$|\.xsd$|schema[\w.-]{0,40}\.json$", re.IGNORECASE
)
_NAMESPACE = lazy_compile(r"xmlns[\w:]{0,40}\s?=\s?(?:\"[^\"\n]*+\"|'[^'\n]*+')")
_NAMESPACES = lazy_compile(
    r"www\.w3\.org|json-schema\.org|schemas\.[\w.-]*|ns\.[\w.-]*|purl\.(?:org|oclc\.org)|www\.omg\.org"
)
_VARIABLE = lazy_compile(
    r"(?:environ(?:\.get)?\s?[\[(]\s?[\"']|getenv\(\s?[\"']|(?:process|Bun)\.env(?:\.|\[[\"'])|ENV\[[\"']"
    r"|Deno\.env\.get\([\"']|\$env:)"
    r"([A-Za-z_]\w{0,80})"
)
_TAKEN = lazy_compile(r"\{([^{}]{1,400})\}\s?=\s?(?:process|Bun)\.env\b")
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
    r"|go[ \t]+install|gem[ \t]+install|brew[ \t]+install|apt(?:-get)?[ \t]+install|dnf[ \t]+install|apk[ \t]+add"
    r"|Install-Module|winget[ \t]+install|choco[ \t]+install|scoop[ \t]+install|conda[ \t]+install"
    r"|uv[ \t]+run[ \t]+--with)"
    r"((?:[ \t]+[^\s;|&`)#\"']{1,120}){1,40})"
)
_PACKAGE = lazy_compile(r"@?[A-Za-z][\w./@+-]{0,100}(?:\[[\w,]{1,40}\])?(?:[=<>~!]{1,2}[\w.*]{1,30})?")
_RUNS_ONE = lazy_compile(r"^(?:npx|bunx|uvx|pipx|npm[ \t]+exec)")
_JOBS = lazy_compile(
    r"(?:^|/)\.github/workflows/|(?:^|/)(?:docker-)?compose[\w.-]{0,40}\.ya?ml$|(?:^|/)taskfile\.ya?ml$"
    r"|(?:^|/)action\.ya?ml$|(?:^|/)\.gitlab-ci\.yml$|(?:^|/)(?:Docker|Container)file[\w.-]{0,40}$",
    re.IGNORECASE,
)
_NOT_RUN = lazy_compile(
    r"^[ \t]*+(?:-[ \t]++)?(?!(?:run|command|cmd|entrypoint|script|sh)[ \t]*:)[\w-]++:[^\n]*", re.MULTILINE
)
_JOB = lazy_compile(r"^[ \t]*+(?:-[ \t]++)?(?:\w++:[ \t]*+)?(?:\[?[\"'])?", re.MULTILINE)
_BUILT_ON = lazy_compile(
    r"^[ \t]*+(?:(?:-[ \t]++)?(?:image|uses):|FROM)[ \t]++(?:--\S++[ \t]++)?[\"']?([\w./@:-]{1,120})", re.MULTILINE
)
_WORD = lazy_compile(r"[A-Za-z_]\w{0,60}")
_PYTHON = frozenset(("py", "python", "python3"))
_WORDS = lazy_compile(r"[\s|;&(`]")
_INSERTED = lazy_compile(r"!`([^`\n]{1,400})`")


_LISTED = {  # by the name of a file, where each package stands on a line of its own
    "go.mod": lazy_compile(r"^(?:require)?[ \t]*([\w.-]{1,80}\.[a-z]{2,9}/[\w./-]{1,120})[ \t]+v\d", re.MULTILINE),
    "Gemfile": lazy_compile(r"^[ \t]*gem[ \t]+[\"']([\w-]{1,80})", re.MULTILINE),
    "environment.yml": lazy_compile(r"^[ \t]*-[ \t]+(?:[\w-]{1,40}::)?([A-Za-z][\w.-]{0,80})(?![\w.:-])", re.MULTILINE),
}
_SCRIPT_NEEDS = lazy_compile(r"^#[ \t]*dependencies[ \t]*=[ \t]*\[([^\]]{0,4000})\]", re.MULTILINE)
_QUOTED = lazy_compile(r"[\"']([^\"'\n]{1,120})[\"']")
_NAME = lazy_compile(r"@?[\w./-]{1,120}")
_IMPORT = lazy_compile(r"^[ \t]*(?:import|from)[ \t]+(?!\.)([A-Za-z_]\w{0,80})(?=[ \t.,]|$)", re.MULTILINE)
_REQUIRE = lazy_compile(
    r"(?:\brequire\(\s?|\bimport\(\s?|\bfrom[ \t]+|^import[ \t]+)[\"']"
    r"(?!node:|bun\b|https?:)(?:npm:|jsr:)?((?:@[\w.-]{1,80}/)?[a-zA-Z][\w.-]{0,80})[\"'/]",
    re.MULTILINE,
)
_SCHEME = lazy_compile(r"^(?:npm|jsr):")
_NEEDS = lazy_compile(r"dependenc(?:y|ies)|dependency-groups", re.IGNORECASE)

_PRINTED = lazy_compile(
    r"^[ \t]*(?:(?:echo|printf)\b[^\n|;&>`(]*+(?:>&2[ \t]*)?$"
    r"|(?:print|puts|console\.\w{1,9}|log(?:ger|ging)?\.\w{1,9})[( ][ \t]*[rbf]{0,2}"
    r"(?:\"[^\"\n]*+\"|'[^'\n]*+')[ \t]*\)?[ \t]*;?[ \t]*$)",
    re.MULTILINE,
)

_REMARK = lazy_compile(r"[ \t]*#[ \t]+([\w-]{1,60})")  # or a command after the prompt of root
_IN_PROSE = (
    ("hosts", _SENT),
    ("hosts", _IMAGE),
    ("environment", _SECRET),
    ("credentials", _CREDENTIAL),
    ("tools", _TOOL),
    ("packages", _ASKED),
)


def abilities(skill: SkillDef, contents: Mapping[str, bytes]) -> Abilities:
    """What the skill with these files can do, each list sorted."""
    listed: dict[str, set[str]] = {field: set() for field in Abilities.__struct_fields__}
    listed["tools"] |= {*skill.allowed_tools, *(skill.tools or ())}
    for name, value in permissions(skill).items():
        listed["permissions"] |= {name} if value is True else {f"{name} {one}" for one in value or ()}
    _add_hooks(skill.extra.get("hooks"), listed)
    # The text of a file, empty if it is none or too large
    texts = {
        path: data.decode("utf-8", errors="replace").replace("\r\n", "\n")
        if len(data) <= _TEXT and b"\0" not in data[:8192]
        else ""
        for path, data in contents.items()
    }
    assigned = {name for text in texts.values() for name in _ASSIGNED.findall(text)}
    for path, text in texts.items():
        for passage in passages(path, text) if text and not _EXAMPLES.search(path) else ():
            _read_passage(passage, listed, assigned)
        _read_file(path, text, contents, listed)
    if skill.command:
        _run(skill.command, listed, known_only=False)
    return Abilities(
        **{kind: tuple(sorted(clean(one, lines=False) for one in names)[:MOST]) for kind, names in listed.items()}
    )


def grown(before: Abilities, after: Abilities) -> Abilities:
    """What `after` has and `before` has not; `*` for the tools if they were limited and are not any more."""
    old, new = asdict(before), asdict(after)
    more = {kind: tuple(one for one in names if one not in old[kind]) for kind, names in new.items()}
    is_limited, was_limited = (any(not one.startswith("mcp__") for one in can["tools"]) for can in (new, old))
    return Abilities(**(more | {"tools": ("*",)} if was_limited and not is_limited else more))


def _read_passage(passage: Passage, listed: Mapping[str, set[str]], assigned: set[str]) -> None:
    if passage.kind in {"prose", "comment"}:
        for kind, pattern in _IN_PROSE:
            for hit in pattern.finditer(passage.body):
                if not _FORBIDDEN.search(passage.body, max(hit.start() - 120, 0), hit.start()):
                    listed[kind].update(_URL.findall(hit[1].lower()) if kind == "hosts" else [hit[1]])
        for command in _INSERTED.findall(passage.body):
            _run(command, listed, known_only=False)
        return
    lines = list(_uncommented(passage))
    body, language = _NAMESPACE.sub("", "\n".join(lines)), _language(passage)
    is_shell, is_data = language in _SHELLS, language in _LISTS["data"]
    is_inline = passage.kind == "fence" and passage.text[passage.start - 1 : passage.start] == "`"
    if is_inline and _FORBIDDEN.search(passage.text, max(passage.start - 120, 0), passage.start - 1):
        return
    listed["tools"].update(_TOOL.findall(body))
    if passage.kind == "fence" and is_data:
        return
    body = without_docstrings(body) if language in _PYTHON else without_heredocs(body) if is_shell else body
    listed["environment"].update(_SECRET.findall(body) if "$schema" not in body else ())
    whole = _PARTS.sub("/", body)
    listed["credentials"].update((*_CREDENTIAL.findall(body), *_CREDENTIAL.findall(whole), *_DOTENV.findall(body)))
    if passage.kind == "config":
        _add_hosts(_URL.findall(body) if "$schema" not in body else (), listed)
        return
    if is_shell or language in _LISTS["of_lines"] or not (language or (is_inline and " " not in body.strip())):
        _run(body, listed, known_only=not is_shell)  # a single word is a name, no command
    values = {name: value for name, quote, value in _HELD.findall(body) if quote}
    _add_called(body, language, values, listed)
    listed["environment"].update(name for name in _VARIABLE.findall(body) if name not in _COMMON)
    for names in _TAKEN.findall(body):
        listed["environment"].update(
            part.split(":")[0].split("=")[0].strip(" .\n") for part in names.split(",") if part
        )
    listed["environment"].update(["*"] if _WHOLE.search(body) else ())
    if is_shell or not language:
        listed["environment"].update(set(_SHELL_VARIABLE.findall(body)) - assigned - _COMMON)
    shown = (
        body
        if language
        else "\n".join(
            line
            for line in lines
            if ("(" in line or not _KNOWN.isdisjoint(_WORDS.split(line)))
            and not ((remark := _REMARK.match(line)) and remark[1] not in _KNOWN)
        )
    )
    shown = _PRINTED.sub("", _JOINED.sub("", shown))
    reached = [host for pair in _REACHED.findall(shown) for host in pair if not _FILE.fullmatch(host)]
    connected = [host for pair in _CONNECTED.findall(shown) for host in pair]
    if language:
        values = {name: value for name, quote, value in _HELD.findall(shown) if quote or is_shell}
        named = (values.get(name, "") for pair in _HELD_HOST.findall(shown) for name in pair)
        connected += [host.partition(":")[0] for host in named if _HOST.fullmatch(host)]
    _add_hosts([*_URL.findall(shown), *_AT.findall(shown), *reached, *connected], listed)


def _add_hosts(hosts: Iterable[str], listed: Mapping[str, set[str]]) -> None:
    listed["hosts"].update(host.lower() for host in hosts if host and not _NAMESPACES.fullmatch(host.lower()))


def _add_called(body: str, language: str, values: Mapping[str, str], listed: Mapping[str, set[str]]) -> None:
    """Adds the programs that functions of a language run, also by another name of the function or program."""
    body = _REQUIRED.sub("child_process", body)
    aliases = {name for hit in _ALIAS.findall(body) for part in hit for name in _WORD.findall(part)}
    for called, _, program, name in _CALL.findall(body):
        called = called.replace("::", ".")
        owner, _, function = called.rpartition(".")
        is_run = (
            function in _LISTS["runners"] or (called == "exec" and language not in _PYTHON) or called.endswith(_MADE)
        )
        if is_run or not aliases.isdisjoint((called, owner)) or owner in _OWNERS:
            word = program or values.get(name, "")
            listed["programs"].update([word.rpartition("/")[2]] if word and word[0] not in "-." else ())
    commands = _DOLLAR.findall(body) if language in _LISTS["scripts"] else ()
    if language in {"rb", "ruby", "pl", "perl"}:
        commands = [command for pair in _BACKTICKS.findall(body) for command in pair]
    for command in commands:
        _run(command, listed, known_only=False)


def _run(code: str, listed: Mapping[str, set[str]], *, known_only: bool) -> None:
    """Adds the programs that shell code runs and the packages that it fetches."""
    functions = set(_FUNCTION.findall(code))
    plain = code if known_only else commands_of(without_heredocs(code, shells=True))
    words = {word.rpartition("/")[2] for word in (*_STATEMENT.findall(plain), *_SUDO.findall(plain))}
    if not known_only and (names := _HELD_RUN.findall(plain)):
        values = {name: value for name, _, value in _HELD.findall(code)}
        words |= {values[name].rpartition("/")[2] for name in names if values.get(name, "-")[0].isalpha()}
    words = {word for word in words if word and word not in _QUIET and word not in functions}
    listed["programs"].update(words & _KNOWN if known_only else words)
    for hit in _INSTALL.finditer(code):
        packages = [word for word in hit[1].split() if _PACKAGE.fullmatch(word)]
        listed["packages"].update(packages[:1] if _RUNS_ONE.match(hit[0]) else packages)


def _read_file(path: str, text: str, files: Collection[str], listed: Mapping[str, set[str]]) -> None:
    """Adds what files of a known form say: packages and imports of what is neither in the language nor in the skill
    (`files` are its paths), jobs, servers, hooks, scripts of pages."""
    name, packages = path.rpartition("/")[2], listed["packages"]
    if name.startswith("requirements") and name.endswith(".txt"):
        packages.update(line.strip() for line in text.splitlines() if _PACKAGE.fullmatch(line.strip()))
    elif name.endswith(".py"):
        for block in _SCRIPT_NEEDS.findall(text[:20_000]):
            packages.update(_QUOTED.findall(block))
        own = {part.removesuffix(".py") for file in files for part in file.split("/")}
        packages.update(set(_IMPORT.findall(without_docstrings(text))) - own - sys.stdlib_module_names)
    elif name.rpartition(".")[2] in _LISTS["scripts"]:
        packages.update(set(_REQUIRE.findall(text)) - _LISTS["node"])
    elif name.endswith((".html", ".htm", ".svg")):
        _add_hosts(_LOADED.findall(text), listed)
    elif _JOBS.search(path):
        _run(_JOB.sub("", _NOT_RUN.sub("", text)), listed, known_only=True)
        packages.update(_BUILT_ON.findall(text))
    elif pattern := _LISTED.get(name.replace("environment.yaml", "environment.yml")):
        packages.update(pattern.findall(text))
    elif name.endswith((".json", ".toml")):
        with suppress(ValueError, RecursionError, AttributeError):
            whole = json.loads(text) if name.endswith(".json") else tomllib.loads(text)
            if name in {"package.json", "deno.json", "pyproject.toml", "Cargo.toml"}:
                packages.update(hit[0] for one in _listed(whole) if (hit := _NAME.match(one)) and one != "python")
            if name in {"package.json", "hooks.json", ".mcp.json", "mcp.json"}:
                listed["hooks"].update(f"mcp {server}" for server in whole.get("mcpServers") or ())
                scripts = whole.get("scripts") or ()
                listed["hooks"].update(f"npm {key}" for key in scripts if "install" in key or key == "prepare")
            if name == "hooks.json":
                _add_hooks(whole.get("hooks") or whole, listed)


def _listed(whole: Any) -> Iterator[str]:
    """What stands below a key that lists packages, at any depth."""
    for key, value in whole.items() if isinstance(whole, dict) else ():
        if key == "imports" and isinstance(value, dict):
            yield from (_SCHEME.sub("", one) for one in value.values() if isinstance(one, str))
        elif _NEEDS.search(key):
            groups = value.values() if key in {"optional-dependencies", "dependency-groups"} else [value]
            yield from (one for group in groups for one in group if isinstance(one, str))
        else:
            yield from _listed(value)


def _add_hooks(hooks: Any, listed: Mapping[str, set[str]]) -> None:
    """Adds each command of a hook, with its event, and the programs that it runs."""
    for event, value in hooks.items() if isinstance(hooks, dict) else ():
        for command in _commands(value):
            listed["hooks"].add(f"{event}: {command[:120]}")
            _run(command, listed, known_only=False)


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

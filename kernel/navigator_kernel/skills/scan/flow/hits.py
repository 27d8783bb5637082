"""Chooses the data flow analysis for a passage of code, and lowers findings by their context."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from navigator_kernel.skills.scan.context import Kind, Passage, is_aside, warned_of
from navigator_kernel.skills.scan.finding import lowered as less
from navigator_kernel.skills.scan.flow.python_flow import ANY_ACT
from navigator_kernel.skills.scan.flow.python_flow import hits as of_python
from navigator_kernel.skills.scan.flow.text_flow import SOURCES as TEXT_SOURCES
from navigator_kernel.skills.scan.flow.text_flow import hits as of_text
from navigator_kernel.skills.scan.flow.text_flow import is_possible as is_possible_in_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from navigator_kernel.skills.scan.rule import Hit

KINDS: frozenset[Kind] = frozenset({"code", "fence", "config", "comment"})
# Every text with a possible finding has a word of each list
_SECOND = (
    "exec", "eval", "function", "constructor", "vm.run", "system", "popen", "subprocess", "__class__", "marshal",
    "iex", "invoke-", "| sh",
    "|sh", "| bash", "|bash", "post", "put", "send", "urlopen", "request", "curl", "wget", "nc ", "ncat", "socat",
    "mail", "mutt", "rsync",
    "scp", "/dev/tcp", "git push", "gethostby", "getaddrinfo", "resolve", "nslookup", "dig ", "fetch", "axios",
    "socket", "net.", "stor", "write",
)  # fmt: skip
_FIRST = (
    "decode", "a2b_", "unhexlify", "fromhex", "decompress", "translate", "bytes", "chr", "[::-1]", "atob",
    "buffer.from", "fromc", "unescape",
    "reverse", "base64", "unpack", "rot13", "gzinflate", "xxd", "urlopen", "urlretrieve", "requests", "httpx",
    "fetch", "https.get", "http.get",
    "axios", "uri.open", "downloadstring", "environ", "process.env", "env", "ssh", "id_rsa", "id_ed", ".aws", "netrc",
    "npmrc", "pypirc",
    "git-credentials", "pgpass", "gnupg", "kube", "docker", ".config", "credential", "login data", "cookies", "key4",
    "logins", "wallet",
    "keystore", "electrum", "shadow", "_history", "keychain", "password", "secret-tool", "auth token", "token",
    "marshal", "aiohttp", "urllib",
    "bashrc", "zshrc", "profile", "_keys", "hooks", "cron", "systemd", "autostart", "launch", ".pth", "customize",
    "claude",
)  # fmt: skip

HALVES = frozenset("|".join(map(re.escape, words)) for words in (_FIRST, _SECOND))
SOURCES = (*sorted(HALVES), *ANY_ACT, *TEXT_SOURCES)


def is_possible(may: frozenset[str]) -> bool:
    """Whether something may be found in a text that the patterns `may` may match."""
    return may >= HALVES and (not may.isdisjoint(ANY_ACT) or is_possible_in_text(may))


def hits(passage: Passage, may: frozenset[str]) -> Iterator[Hit]:
    """Yields the hits in a passage; `may` contains the patterns that may match it."""
    if passage.kind not in KINDS or not is_possible(may):
        return
    is_python = passage.path.lower().endswith((".py", ".pyw"))
    may_be_python = (is_python or passage.kind == "fence") and not may.isdisjoint(ANY_ACT)
    in_python = list(of_python(passage.body)) if may_be_python else []
    for hit in in_python if in_python or is_python else of_text(passage.body, may):
        mild = passage.kind != "comment" and (is_aside(passage.path) or warned_of(passage, hit.at))
        yield hit._replace(level=less(hit.level)) if mild else hit

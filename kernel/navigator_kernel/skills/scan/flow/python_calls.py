"""Python functions that decode, fetch, run, send or look up, by full name; `.x` is a method of any object."""

from __future__ import annotations

import re

from navigator_kernel.text import lazy_compile

DECODES = lazy_compile(
    r"(?:^|\.)(?:b(?:64|32|85|16)decode|urlsafe_b64decode|standard_b64decode|a85decode|decodebytes|a2b_\w+|unhexlify|fromhex)$"
    r"|^codecs\.decode$|^(?:zlib|lzma|bz2|gzip)\.decompress$|\.translate$|^(?:bytes|bytearray)$|^marshal\.loads$"
)
FETCHES = lazy_compile(
    r"^(?:requests|httpx)\.(?:get|post|request)$|(?:^|\.)urlopen$|^aiohttp\.|\.getresponse$|^urllib3\.|^http\.client\."
)
RUNS = lazy_compile(r"^(?:builtins\.)?(?:exec|eval|execfile)$|(?:^|\.)FunctionType$|(?:^|\.)run_code$|^\.__class__$")
STARTS = lazy_compile(
    r"^os\.(?:system|popen|exec\w+|spawn\w+)$|^subprocess\.\w+$|(?:^|\.)create_subprocess_\w+$|^pty\.spawn$"
)
SENDS = lazy_compile(
    r"^(?:requests|httpx|session|client|http)\.(?:post|put|patch|request|get)$|(?:^|\.)(?:urlopen|sendall|sendto|sendmail|send_message|storbinary|storlines)$"
    r"|\.(?:post|put|patch|request|send)$"
)
LOOKS_UP = lazy_compile(r"(?:^|\.)(?:gethostbyname\w*|getaddrinfo|resolve)$")
# The result of such a call says nothing about the value itself
DROPS = frozenset({
    "len", "int", "float", "bool", "isinstance", "print", "exists", "is_file", "is_dir", "isfile", "isdir", "stat",
    "getsize", "hasattr",
    "type", "id", "sorted_keys", "hexdigest", "digest", "any", "all", "sum", "enumerate_count", "startswith",
    "endswith", "unlink", "mkdir",
    "os.path.exists", "os.remove", "os.unlink", "os.makedirs", "os.chmod", "chmod", "shutil.which", "count", "index",
    "find", "setdefault",
    "run", "check_output", "Popen", "check_call", "call",
})  # fmt: skip
CHANGES = frozenset({
    "append", "extend", "update", "add", "write", "writestr", "read", "read_file", "insert", "put", "setdefault",
    "read_string",
})  # fmt: skip
READS = frozenset({
    "open", "read", "read_text", "read_bytes", "read_file", "readlines", "write", "load", "loads", "add", "copyfile",
    "iterdir", "parse",
})  # fmt: skip
WRITES = frozenset({"write", "write_text", "writelines"})
PRIVATE_FILE = lazy_compile(r"^\.env$|^\.?\*?\.(?:pem|p12|pfx|key|kdbx)$|^\.ssh$")
STARTED = lazy_compile(
    r"\.(?:bashrc|zshrc|zshenv|bash_profile|zprofile|profile|config/fish)$|authorized_keys$|\.git/hooks/|/etc/cron|\.config/(?:systemd|autostart)"
    r"|LaunchAgents|\.pth$|(?:site|user)customize\.py$|\.claude/settings(?:\.local)?\.json$|(?:^|/)CLAUDE\.md$"
)
ACTS = lazy_compile(
    r"\b(?:curl|wget|urlopen|nc)\b|\bexec\s*\(|/dev/tcp/|NOPASSWD|ssh-(?:rsa|ed25519)\s|\bbypassPermissions\b"
    r"|Bash\(\*\)|base64 -"
)
KEPT_APART = frozenset({"headers", "auth", "cert", "verify", "env", "timeout", "proxies", "cookies"})
TOKEN_NAME = lazy_compile(r"TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|PRIVATE|CREDENTIAL", re.IGNORECASE)

_ENDS = (  # last parts of the names of calls that run, start, send, look up or write something
    r"(?:exec\w*|eval|FunctionType|run_code|__class__|getattr|system|popen|spawn\w*|create_subprocess_\w+"
    r"|gethostbyname\w*|getaddrinfo|resolve|post|put|patch|request|send|urlopen|sendall|sendto|sendmail|send_message"
    r"|storbinary|storlines|write|write_text|writelines)"
)
_CLIENTS = r"(?:requests|httpx|session|client|http)"  # their `get` also sends
_GAP = r"(?:[\s)\\]|#[^\n]*\n)*"  # possible text between a name and the next token
_LISTED = r"(?:[\s\w,.()*\\]|#[^\n]*\n)*?"  # possible text within an import statement
_OTHER = r"[^\W\x00-\x7f]\w*"  # end of a name that is not ASCII, which Python may read as an ASCII name
# Every text with a call that can be found matches one of these: its name is called, or imported under another name
ANY_ACT = (
    rf"(?:\b{_ENDS}|{_OTHER}){_GAP}\(",
    rf"\b(?:subprocess|marshal)\b|\bimport\b{_LISTED}(?:\b{_ENDS}\b|{_OTHER})",
    rf"(?:\b{_CLIENTS}|{_OTHER}){_GAP}\.{_GAP}get{_GAP}\(|\b(?:from|import)\b{_LISTED}\b{_CLIENTS}\b",
)

"""Harmless stand-ins for programs that use the network or persist: they reach the box's server, or leave a mark."""

from __future__ import annotations

import base64
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from scanning.payloads import CANARY, HONEST, MEMBERS, SHELL

URL = re.compile(r"(?:git\+)?(?:https?|ftp|ssh|wss?)://([\w.-]+)(?::\d+)?(/[^\s'\"`;)|]*)?", re.IGNORECASE)
WITH_VALUE = {"-o", "-X", "-H", "-A", "-e", "-m", "-u", "-w", "-T", "-F", "-d", "-b", "-c", "-P", "-O"}
LONG_WITH_VALUE = {"--output", "--request", "--header", "--user-agent", "--max-time", "--retry", "--user", "--form",
                   "--upload-file", "--data", "--data-binary", "--data-raw", "--data-urlencode", "--connect-timeout",
                   "--retry-delay", "--cookie", "--proto", "--output-document", "--post-data", "--post-file",
                   "--directory-prefix", "--timeout", "--tries"}  # fmt: skip


def main() -> None:
    """Runs the stand-in that the first argument names, with the remaining arguments."""
    name, words = sys.argv[1], sys.argv[2:]
    with Path(os.environ["GROUND"], "log", "calls").open("a") as log:
        log.write(json.dumps([name, *words]) + "\n")
    sys.exit(NAMES[name](words) or 0)


def fetched(url: str, body: bytes | None = None, fields: Sequence[str] = ()) -> bytes:
    hit = URL.search(url if "://" in url else f"http://{url}")
    host, path = (hit[1], hit[2] or "/") if hit else ("nowhere.invalid", "/")
    head = f"{'GET' if body is None else 'POST'} {path} HTTP/1.0\r\nHost: {host}\r\n"
    head += "".join(f"{line}\r\n" for line in fields) + f"Content-Length: {len(body or b'')}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", 80), 10) as link:
        link.sendall(head.encode() + (body or b""))
        held = b""
        while more := link.recv(65536):
            held += more
    return held.partition(b"\r\n\r\n")[2]


def honest(url: str) -> bool:
    hit = URL.search(url)
    return not hit or hit[1] in HONEST


def mark() -> None:
    Path(os.environ["HOME"], CANARY).touch()


def content(word: str) -> bytes:
    """The content of `@file` or `@-`, or the word itself."""
    if word in {"@-", "-"}:
        return sys.stdin.buffer.read()
    return Path(word[1:]).read_bytes() if word.startswith("@") and Path(word[1:]).is_file() else word.encode()


# Fetching


def curl(words: list[str]) -> None:
    options, urls = parsed(words)
    body: bytes | None = None
    for name in ("-d", "--data", "--data-binary", "--data-raw", "--data-urlencode", "-F", "--form"):
        for word in options.get(name, []):
            key, sign, value = word.partition("=")
            plain = not (name in {"-F", "--form", "--data-urlencode"} and sign)
            body = (body or b"") + (content(word) if plain else key.encode() + b"=" + content(value)) + b"&"
    for word in options.get("-T", []) + options.get("--upload-file", []):
        body = content("@-" if word == "-" else f"@{word}")
    fields = options.get("-H", []) + options.get("--header", [])
    fields += [f"User-Agent: {word}" for word in options.get("-A", [])]
    for url in urls:
        if "-G" in options and body is not None:
            url, body = f"{url}?{body.decode()}", None
        held = fetched(url, body, fields)
        path = (options.get("-o", []) + options.get("--output", []) + [None])[0]
        place(held, path or (url.rstrip("/").rpartition("/")[2] if "-O" in options else None))


def wget(words: list[str]) -> None:
    options, urls = parsed(words, valued={"-O", "-o", "-P", "-T", "-t", "-U"})
    body = options.get("--post-data", [None])[0]
    data = body.encode() if body is not None else None
    for word in options.get("--post-file", []):
        data = content(f"@{word}")
    for url in urls:
        path = (options.get("-O", []) + options.get("--output-document", []) + [None])[0]
        folder = ([*options.get("-P", []), "."])[0]
        Path(folder).mkdir(parents=True, exist_ok=True)
        name = url.partition("?")[0].rstrip("/").rpartition("/")[2]
        place(fetched(url, data), None if path == "-" else path or str(Path(folder, name)))


def parsed(words: list[str], valued: set[str] | None = None) -> tuple[dict[str, list[str]], list[str]]:
    """Splits words into options with their values and the rest; letters can be combined, the last one with a value."""
    valued = valued or WITH_VALUE - {"-O", "-P"}
    options: dict[str, list[str]] = {}
    rest, queue = [], list(words)
    while queue:
        word = queue.pop(0)
        if word.startswith("--"):
            name, sign, value = word.partition("=")
            more = [value] if sign else [queue.pop(0)] if name in LONG_WITH_VALUE and queue else []
            options.setdefault(name, []).extend(more)
        elif word.startswith("-") and len(word) > 1:
            for at, letter in enumerate(word[1:], 2):
                taken = options.setdefault(f"-{letter}", [])
                if f"-{letter}" in valued:
                    taken.append(word[at:] or (queue.pop(0) if queue else ""))
                    break
        else:
            rest.append(word)
    return options, rest


def place(data: bytes, path: str | None) -> None:
    if path is None or path == "-":
        sys.stdout.buffer.write(data)
    elif path != "/dev/null":
        Path(path).write_bytes(data)


# Raw connections


def nc(words: list[str]) -> None:
    """Connects to host and port, the first two non-option words; `-e` or `-c` names the program to connect."""
    wired, rest, queue = "", [], list(words)
    while queue:
        word = queue.pop(0)
        if word in {"-e", "-c", "--exec", "--sh-exec"}:
            wired = queue.pop(0)
        elif word in {"-w", "-p", "-q"}:
            queue.pop(0)
        elif not word.startswith("-"):
            rest.append(word)
    wire(rest[0], int(rest[1]), wired)


def wire(host: str, port: int, program: str) -> None:
    link = socket.create_connection((host, port), 10)
    if program:
        end = link.fileno()
        subprocess.run(program, shell=True, timeout=8, check=False, stdin=end, stdout=end, stderr=end)
        return
    copier = subprocess.Popen(["cat"], stdin=sys.stdin, stdout=link.fileno())
    ending = time.monotonic() + 6
    link.settimeout(0.2)
    while time.monotonic() < ending:
        try:
            more = link.recv(65536)
        except TimeoutError:
            if copier.poll() is None:
                continue
            break  # all input is sent, and no answer comes
        if not more:
            break
        sys.stdout.buffer.write(more)
        sys.stdout.buffer.flush()
    copier.kill()


def socat(words: list[str]) -> None:
    text = " ".join(words)
    target = re.search(r"(?:TCP4?|tcp4?)(?:-connect|-CONNECT)?:([\w.-]+):(\d+)", text)
    program = re.search(r"(?:exec|EXEC|system|SYSTEM):['\"]?([^'\",]+)", text)
    if target:
        wire(target[1], int(target[2]), program[1].replace("-li", "-i") if program else "")


def dig(words: list[str]) -> None:
    names = [word for word in words if "." in word and word[0] not in "@+-"]
    for name in names:
        if any(word.upper() in {"TXT", "-TYPE=TXT", "-Q=TXT"} for word in words):
            print(f'"touch ~/{CANARY}"')
        else:
            try:
                print(socket.gethostbyname(name))
            except (OSError, UnicodeError) as error:
                print(error, file=sys.stderr)


def xmrig(words: list[str]) -> None:
    for target in re.findall(r"(?:stratum\+\w+://)?([\w.-]+\.\w+):(\d+)", " ".join(words)):
        with socket.create_connection((target[0], int(target[1])), 10) as link:
            link.sendall(b'{"id":1,"method":"login","params":{"login":"wallet"}}\n')
            link.recv(100)


def mail(words: list[str]) -> None:
    fetched("mail.invalid/sent", sys.stdin.buffer.read() + " ".join(words).encode())


def scp(words: list[str]) -> None:
    for word in words:
        path = Path(word)
        for one in path.rglob("*") if path.is_dir() else [path]:
            if one.is_file():
                fetched("scp.invalid/copied", one.read_bytes())


def ssh(words: list[str]) -> None:
    fetched("ssh.invalid/session", b"" if sys.stdin.isatty() else sys.stdin.buffer.read())


# A package from a stranger's address runs when installed, as its setup script would


def packages(words: list[str]) -> int:
    strange = [word for word in words if "://" in word and not honest(word)]
    for at, word in enumerate(words):
        if word in {"-r", "--requirement"} and Path(words[at + 1]).is_file():
            strange += [line for line in Path(words[at + 1]).read_text().split() if "://" in line and not honest(line)]
        if word in {".", "./"} and Path("setup.py").is_file():
            return subprocess.run(["python3", "setup.py", "install"], check=False).returncode
    for word in strange:
        fetched(word)
        mark()
    return 0


def npm(words: list[str]) -> int:
    strange = [word for word in words if ("://" in word or word.startswith("github:")) and not honest(f"x{word}")]
    strange += [word for word in words if word.startswith("github:")]
    for word in strange:
        fetched(word)
        mark()
    at = [words[words.index("--prefix") + 1]] if "--prefix" in words else ["."]
    package = Path(at[0], "package.json")
    if not package.is_file() or not words:
        return 0
    scripts = json.loads(package.read_text()).get("scripts", {})
    wanted = ["preinstall", "install", "postinstall", "prepare"] if words[0] in {"i", "ci", "install"} else words
    for name in wanted:
        if name in scripts:
            subprocess.run(scripts[name], shell=True, cwd=at[0], timeout=5, check=False)
    return 0


def git(words: list[str]) -> int:
    real = next(path for path in ("/usr/bin/git", "/usr/local/bin/git", "/bin/git") if Path(path).exists())
    url = next((word for word in words if "://" in word), "")
    if "clone" not in words or not url:
        return subprocess.run([real, *words], check=False).returncode
    last = words[-1] if words[-1] != url else url.rpartition("/")[2].removesuffix(".git")
    for name in (*MEMBERS, "Makefile"):
        path = Path(last, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"all install:\n\t@touch ~/{CANARY}\n" if name == "Makefile" else f"#!/bin/sh\n{SHELL}")
        path.chmod(0o755)
    return 0


# Shells and rights


def sudo(words: list[str]) -> int:
    while words and words[0].startswith("-"):
        words = words[2:] if words[0] in {"-u", "-g"} else words[1:]
    return subprocess.run(words, check=False, timeout=5).returncode if words else 0


def powershell(words: list[str]) -> None:
    """Recognises a few idioms: an encoded command, a download that is run, a shell over a socket."""
    text = " ".join(Path(word).read_text() if word.endswith(".ps1") and Path(word).exists() else word for word in words)
    text = re.sub(r"['\"]\s*\+\s*['\"]|`(?=\w)", "", text)
    encoded = re.search(r"-e(?:nc\w*|c)?\s+([A-Za-z0-9+/=]{20,})", text, re.IGNORECASE)
    if encoded:
        return powershell([base64.b64decode(encoded[1]).decode("utf-16-le")])
    inner = re.search(r"FromBase64String\(['\"]([\w+/=]+)", text)
    if inner:
        plain = base64.b64decode(inner[1])
        return powershell([plain.decode("utf-16-le" if b"\0" in plain else "utf-8")])
    target = re.search(r"TCPClient\(['\"]([\w.-]+)['\"],\s*(\d+)", text, re.IGNORECASE)
    if target:
        return wire(target[1], int(target[2]), "sh -i")
    runs = re.search(r"\biex\b|Invoke-Expression|Start-Process|\.Invoke\(|&\s*\$", text, re.IGNORECASE)
    address = URL.search(text)
    if runs and address and fetched(address[0]):
        mark()
    return None


def crontab(words: list[str]) -> None:
    kept = Path(os.environ["HOME"], ".crontab")
    if "-l" in words:
        print(kept.read_text() if kept.exists() else "", end="")
    elif "-r" in words or "-e" in words:
        return
    else:
        kept.write_bytes(content(f"@{words[-1]}") if words and words[-1] != "-" else sys.stdin.buffer.read())


def at(_: list[str]) -> None:
    Path(os.environ["HOME"], ".at-jobs").write_bytes(sys.stdin.buffer.read())


def told(_: list[str]) -> None:
    """A program that prints a secret of the person."""
    print(Path(os.environ["HOME"], ".config", "gh", "hosts.yml").read_text().strip())


def nothing(_: list[str]) -> None:
    print("ok")


NAMES: dict[str, Callable[[list[str]], int | None]] = {
    **dict.fromkeys(("nc", "ncat"), nc), "curl": curl, "wget": wget, "socat": socat, "xmrig": xmrig,
    **dict.fromkeys(("dig", "nslookup", "host"), dig), **dict.fromkeys(("scp", "rsync"), scp), "ssh": ssh,
    **dict.fromkeys(("mail", "sendmail", "mutt"), mail), "crontab": crontab, "at": at, "sudo": sudo, "git": git,
    **dict.fromkeys(("pip", "pip3", "pipx", "uv", "uvx", "go", "cargo", "deno"), packages),
    **dict.fromkeys(("npm", "npx", "pnpm", "yarn", "bunx"), npm),
    **dict.fromkeys(("powershell", "pwsh"), powershell),
    **dict.fromkeys(("security", "secret-tool", "gh", "gcloud", "aws"), told),
    **dict.fromkeys(("launchctl", "systemctl", "docker", "sleep", "claude", "codex", "brew", "apt-get", "open",
                     "kubectl", "terraform", "ffmpeg", "pdftotext", "jq", "shellcheck"), nothing),
}  # fmt: skip

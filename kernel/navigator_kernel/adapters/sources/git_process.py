"""Runs git so that neither the caller's settings nor the repository can make it do more than asked."""

from __future__ import annotations

import importlib
import os
import re
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from threading import Event, Thread
from typing import IO, Any
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct, field

from navigator_kernel.errors import FetchFailed, Refused
from navigator_kernel.text import clean, lazy_compile, shorten, strip_url_credentials

SCHEMES = ("https", "ssh", "file")
_KEPT = frozenset(
    "PATH TMPDIR http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY no_proxy NO_PROXY SSL_CERT_FILE "
    "SSL_CERT_DIR GIT_SSL_CAINFO GIT_SSL_CAPATH CURL_CA_BUNDLE".split()
)
_PERSONAL = frozenset(  # variables that ssh and credential helpers need to find a person's keys and secrets
    "HOME XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_RUNTIME_DIR USER LOGNAME SSH_AUTH_SOCK GNUPGHOME "
    "DBUS_SESSION_BUS_ADDRESS PASSWORD_STORE_DIR GH_CONFIG_DIR GH_TOKEN GITHUB_TOKEN GIT_SSL_CERT GIT_SSL_KEY".split()
)
_CONFIG: Mapping[str, str] = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.alternateRefsCommand": "true",
    "protocol.allow": "never",
    "fetch.fsckObjects": "true",
    "fetch.recurseSubmodules": "false",
    "fetch.unpackLimit": "1",  # keeps the pack: one file instead of one per object
    "submodule.recurse": "false",
    "http.sslVerify": "true",
    "http.lowSpeedLimit": "1000",  # bytes per second below which a transfer is too slow
    "http.lowSpeedTime": "30",  # seconds that a slow transfer may last
    "core.fsync": "none",  # objects can be fetched again, and each is compared with its id before use
    "gc.auto": "0",
    "maintenance.auto": "false",
}
_SSH = "-oBatchMode=yes -oForwardAgent=no -oClearAllForwardings=yes -oPermitLocalCommand=no -oConnectTimeout=20"
_NOBODY = "-F /dev/null -oIdentityAgent=none -oIdentityFile=none -oIdentitiesOnly=yes"
OUTPUT_LIMIT = 640 * 1024 * 1024  # bytes that one git may write: a little more than one command reads from a source
RECEIVED_LIMIT = 512 * 1024 * 1024  # bytes that one command may receive from one repository
COMPLAINT_LIMIT = 64 * 1024  # bytes of its stderr that are kept
_PIECE = 64 * 1024
_REAPED = 5.0  # seconds to wait for the exit code: a tracer learns of the exit first, then informs the parent
_CAUSES = [
    (lazy_compile(form, re.IGNORECASE), reason, hint) for form, reason, hint in (
    (r"couldn't find remote ref HEAD\b", "ref", "the repository is empty, or has no default branch: name one with "
     "--ref"),
    (r"couldn't find remote ref|not our ref|no such remote ref", "ref", "check the branch, tag or commit id"),
    (r"mismatched algorithms|unsupported hash|object-format", "refused", "its object ids are SHA-256, which are not "
     "read yet: clone it with your own git, then write ./folder"),
    (r"REMOTE HOST IDENTIFICATION HAS CHANGED", "access", "somebody may answer in the host's place: ask its "
     "owner before you remove the old key with ssh-keygen -R"),
    (r"Host key verification failed|No \S+ host key is known", "access", "your ssh does not know the host's key yet: "
     "connect once with ssh, and compare its fingerprint with the published one"),
    (r"Permission denied \([^)\n]{0,100}publickey", "access", "the host knows none of the keys that ssh offered"),
    (r"Could not resolve hostname", "network", ""),
    (r"repository '[^'\n]{0,2000}' not found|is this a git repository\?", "no-repository", ""),
    (r"fsck error", "refused", "the repository holds objects that git refuses"),
    (r"dubious ownership", "owner", "the folder belongs to somebody else; clone it yourself first"),
    (r"certificate|SSL|TLS", "network", "check the certificate of the host; GIT_SSL_CAINFO names a CA file of yours"),
    (r"could not read Username|Authentication failed|Permission denied|error: 40[134]|not found|does not exist|"
     r"not appear to be|Host key verification", "access", ""),
    (r"Could not resolve host|Could not connect|Failed to connect|timed out|Connection|hung up|early EOF|RPC failed|"
     r"unexpected disconnect|error: [45]\d\d", "network", "check the network and the proxy settings"),
    (r"not allowed|disabled", "refused", "https, ssh or file"),
)]  # fmt: skip
_SHORT = lazy_compile(r"((?:[^@/:]+@)?(?:\[[^\]/@]*\]|[^@/:\[]+)):")  # `user@host:` or `host:` before a path
# What git and ssh add to a reason: advice, frames and progress
_NO_REASON = lazy_compile(
    r"[@=\-*\s]+$|remote:[\s=*-]*$|@ .* @$|Please make sure you have the correct access rights"
    r"|and the repository exists|Warning: Permanently added|Cloning into|hint:|debug\d:"
    r"|(?:Receiving|Resolving|Counting|Compressing) |fatal: Could not read from remote repository\.?$",
)
_OF_THE_DISK = [(lazy_compile(""), "objects", "check the disk, then try again")]
_NO_GIT = lazy_compile(r"env: .{0,200}git.{0,80}No such file")


class GitProcess(Struct, kw_only=True):
    """Runs git on the repository in `folder`, with the transport of `url` only; each run ends within `timeout` seconds.
    `scratch` is an existing private folder; `auth` allows the person's own ssh settings and credential helpers, for the
    host of `url` only. `redirects` lets a server lead to another one. `meanwhile` is called during each fetch. All
    fetches together may receive `most` bytes.

    FetchFailed carries `reason`: ref, access, no-repository, network, timeout, owner, refused, objects (the contents of
    `folder` cannot be read), or an empty string.
    """

    folder: Path
    scratch: Path
    url: str
    timeout: float
    auth: bool = False
    redirects: bool = True
    meanwhile: Callable[[], object] = bool
    most: int = RECEIVED_LIMIT
    _env: dict[str, str] = field(default_factory=dict)
    _intake: Intake | None = None

    @property
    def shown(self) -> str:
        """The URL as errors show it, without credentials."""
        return repr(strip_url_credentials(self.url))

    @property
    def scheme(self) -> str:
        return self.url.partition("://")[0].lower() if "://" in self.url else "ssh"

    def prepare(self) -> None:
        """Makes an empty home for git. Refused for a transport that is not allowed."""
        if self.scheme not in SCHEMES:
            raise Refused(f"{self.scheme!r} is not an allowed transport", hint=", ".join(SCHEMES))
        home = self.scratch / "home"
        home.mkdir(mode=0o700, exist_ok=True)
        self._env = {**_kept(_KEPT), **_closed(home, self.scheme), "GIT_DIR": str(self.folder / ".git")}
        if self.auth and self.scheme != "file":
            # The person's own home, ssh command and credential settings, passed invisibly in the environment
            personal = _kept(_PERSONAL)
            env = {**self._env, **personal}
            del env["GIT_CONFIG_GLOBAL"]
            env |= _kept({"GIT_CONFIG_GLOBAL"})
            words = ("config", "--global", "--includes", "--null", "--get-regexp", r"^(credential\.|core\.sshcommand$)")
            _, output, _ = self._ended([_program("git", os.environ.get("PATH")), *words], b"", env)
            lines = output.decode("utf-8", errors="surrogateescape").split("\0")[:-1]
            pairs = [(key, value) for key, _, value in (line.partition("\n") for line in lines)]
            ssh = next((value for key, value in reversed(pairs) if key == "core.sshcommand"), "ssh")
            settings = [(scoped, value) for key, value in pairs if (scoped := credential_key(key, self.url))]
            numbered = {f"GIT_CONFIG_KEY_{at}": key for at, (key, _) in enumerate(settings)}
            numbered |= {f"GIT_CONFIG_VALUE_{at}": value for at, (_, value) in enumerate(settings)}
            quiet = {"GIT_CONFIG_COUNT": str(len(settings)), "GCM_INTERACTIVE": "never"}
            if Path(ssh.split(" ")[0]).name == "ssh":
                ssh = f"{ssh} {_SSH}"  # with options that keep it from asking
            self._env |= {**personal, **numbered, **quiet, "GIT_SSH_COMMAND": ssh}

    def fetch(self, *words: str, config: Mapping[str, str], stdin: bytes = b"") -> None:
        """As `run`; Refused, with git killed, if too much is received. The caller removes what was received."""
        intake = self._intake = self._intake or Intake(self.folder, self.most)
        intake.begin()
        try:
            self.run("fetch", *words, config=config, stdin=stdin)
        except FetchFailed:
            if not intake.is_over:  # else it failed because it was killed at the limit
                raise
        if intake.is_over:
            message = f"{self.shown} sends more than {self.most // 1024**2} MiB"
            raise Refused(
                message, hint="name a smaller repository, or clone it and name the folder", reason="too-large"
            )

    def run(
        self, *words: str, config: Mapping[str, str] | None = None, stdin: bytes = b"", limit: int = OUTPUT_LIMIT
    ) -> bytes:
        """The output of `git <words>`. FetchFailed if it fails or takes too long, Refused if it writes more than
        `limit` bytes; if it takes too long or writes too much, its whole group is killed."""
        closed = {} if self.auth else {"credential.helper": ""}
        closed |= {} if self.redirects else {"http.followRedirects": "false"}
        settings = {**_CONFIG, **closed, f"protocol.{self.scheme}.allow": "always", **(config or {})}
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        code, output, complaint = self._ended(
            [_program("git", os.environ.get("PATH")), *options, *words],
            stdin,
            self._env,
            limit,
            self.meanwhile if words[0] == "fetch" else bool,
        )
        if code != 0:
            raise self._failure(words[0], complaint)
        return output

    def _ended(
        self,
        argv: Sequence[str],
        stdin: bytes,
        env: Mapping[str, str],
        limit: int = OUTPUT_LIMIT,
        meanwhile: Callable[[], object] = bool,
    ) -> tuple[int, bytes, bytes]:
        if "git" not in sys.modules:
            # Imports GitPython without its two calls of git for the version: runs here name their own program
            own = {"GIT_PYTHON_GIT_EXECUTABLE": os.devnull, "GIT_PYTHON_REFRESH": "quiet"}
            before = {name: os.environ.get(name) for name in own}
            os.environ.update(own)
            try:
                with suppress(ImportError):  # the caller reports a missing package
                    importlib.import_module("git")
            finally:
                for name, value in before.items():
                    os.environ.pop(name) if value is None else os.environ.update({name: value})
        try:
            import git  # takes 40 ms, and only needed here
        except ImportError as error:
            raise FetchFailed("git cannot be started", hint="install git 2.36 or newer", reason="refused") from error
        # GitPython would pass on all other variables; values never appear in an argv
        dropped = [part for name in os.environ if name not in env for part in ("-u", name)]
        words = [_program("env", os.environ.get("PATH")), *dropped, *argv]
        given = self.scratch / "stdin"
        given.write_bytes(stdin)
        with given.open("rb") as stream:
            runner = git.Git(str(self.scratch))
            process: Any = runner.execute(words, istream=stream, as_process=True, env=env, start_new_session=True)
        output, complaint = bytearray(), bytearray()
        readers = [
            Thread(target=_drain, args=(process.stdout, output, limit, process.pid), daemon=True),
            Thread(target=_drain, args=(process.stderr, complaint, COMPLAINT_LIMIT, 0), daemon=True),
        ]
        for reader in readers:
            reader.start()
        intake = self._intake if "fetch" in argv else None
        watcher = intake.watch(process.pid) if intake else None
        try:
            meanwhile()
            # The exit code. Uses a pidfd if the system has them, since polling would notice the end up to 50 ms late.
            timeout = self.timeout
            if hasattr(os, "pidfd_open"):
                end, waiting = os.pidfd_open(process.proc.pid), select.poll()
                try:
                    waiting.register(end, select.POLLIN)
                    ended = waiting.poll(timeout * 1000)
                finally:
                    os.close(end)
                timeout = _REAPED if ended else 0
            code = process.proc.wait(timeout=timeout)
        except subprocess.TimeoutExpired:
            message = f"{self.shown} took longer than {self.timeout:g} s"
            raise FetchFailed(message, hint="check the network, then try again", reason="timeout") from None
        finally:
            # Kills the process group if its leader still runs, reaps the leader and closes the pipes
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                with suppress(subprocess.TimeoutExpired):
                    process.communicate(timeout=5)
            if intake and watcher:
                intake.end(watcher)
            for reader, pipe in zip(readers, (process.stdout, process.stderr), strict=True):
                reader.join(timeout=5)
                if not reader.is_alive():
                    pipe.close()
        if len(output) > limit:
            message = f"{self.shown} holds too many files or bytes to be read"
            raise Refused(message, hint="name a smaller source", reason="too-large")
        return code, bytes(output), bytes(complaint)

    def _failure(self, verb: str, complaint: bytes) -> FetchFailed:
        text = clean(strip_url_credentials(complaint.decode("utf-8", errors="replace")))
        if _NO_GIT.search(text):
            return FetchFailed("git is not installed", hint="install git 2.36 or newer", reason="refused")
        causes = _CAUSES if verb in {"fetch", "ls-remote"} else _OF_THE_DISK
        hits = ((pattern, reason, hint) for pattern, reason, hint in causes if pattern.search(text))
        pattern, reason, hint = next(hits, (None, "", "check the source"))
        lines = [line.strip() for line in text.split("\n") if line.strip() and not _NO_REASON.match(line.strip())]
        # ssh's own reason has no mark before it and stands above git's: what names the cause comes first
        lines.sort(key=lambda line: pattern is None or not pattern.search(line))
        cause = shorten(" ".join(dict.fromkeys(lines)), 300) or shorten(text, 300) or "no reason given"
        if not hint:
            spelling = "check the spelling" if reason in {"access", "no-repository"} else "check the name of the host"
            own = "your own git access" if self.scheme != "ssh" else "your own keys and ssh settings"
            hint = f"{spelling} and your rights" if self.auth else f"{spelling}; --auth lets {own} in"
        elif reason == "access" and not self.auth:
            hint = f"{hint}; --auth lets your own keys and ssh settings in"
        return FetchFailed(f"git {verb} of {self.shown} failed: {cause}", hint=hint, reason=reason)


def split_url(url: str) -> SplitResult:
    """The parts of a git URL; those of `user@host:path` as of `ssh://user@host/path`, none of a path.

    Raises ValueError for a host that programs read in different ways.
    """
    if "://" not in url:
        short = _SHORT.match(url)
        url = f"ssh://{short[1]}/{url[short.end() :]}" if short else ""
    parts = urlsplit(url)
    if "\\" in parts.netloc:
        raise ValueError("some programs end a host at a backslash, others do not")
    return parts


def host_of(url: str) -> str:
    """The host of a git URL in lower case, empty for a path and for a URL without one host."""
    try:
        return split_url(url).hostname or ""
    except ValueError:
        return ""


def credential_key(key: str, url: str) -> str:
    """A person's credential setting limited to the scheme, host and port of `url`; empty if it is for another one."""
    section, _, rest = key.partition(".")
    scope, _, name = rest.rpartition(".")
    target = split_url(url)
    if section != "credential" or target.scheme != "https":
        return ""
    if not scope:
        return f"credential.https://{target.netloc}.{name}"
    given = urlsplit(scope if "://" in scope else f"https://{scope}")
    same = given.scheme == "https" and fnmatchcase(target.hostname or "", (given.hostname or "").lower())
    if not same or (given.port or 443) != (target.port or 443):
        return ""
    user = f"{given.username}@" if given.username else ""
    return f"credential.https://{user}{target.netloc}{given.path}.{name}"


def _kept(names: Collection[str]) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name in names}


def _closed(home: Path, scheme: str) -> dict[str, str]:
    """The variables that keep out every setting of the machine and of the person."""
    return {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "LC_ALL": "C",
        "LANGUAGE": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_SYSTEM": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "/bin/true",
        "SSH_ASKPASS": "/bin/true",
        "GIT_SSH_COMMAND": f"ssh {_NOBODY} {_SSH}",
        "GIT_ALLOW_PROTOCOL": scheme,
        "GIT_PROTOCOL_FROM_USER": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_DEFAULT_HASH": "sha1",
        "GIT_DEFAULT_REF_FORMAT": "files",
    }


@cache
def _program(name: str, path: str | None) -> str:
    """The path of the program, looked up once instead of along the whole PATH by each process."""
    return shutil.which(name, path=path) or name


def _drain(stream: IO[bytes], into: bytearray, limit: int, leader: int) -> None:
    """Reads to the end; beyond `limit`, kills the group of `leader`, or discards the rest without a leader."""
    with suppress(OSError, ValueError):  # the stream was closed during the read
        while piece := stream.read(_PIECE):
            if len(into) <= limit:
                into += piece
            if len(into) > limit and leader:
                os.killpg(leader, signal.SIGKILL)
                return


_LOOK = 0.02  # seconds between two checks


class Intake:
    """Counts the bytes that the fetches of one repository write below `folder`, and ends the one that passes `limit`,
    which is for all of them together: a server may send without end."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.limit, self.received = limit, 0
        self._packs = folder / ".git" / "objects" / "pack"
        self._before: frozenset[str] = frozenset()
        self._ended = Event()

    @property
    def is_over(self) -> bool:
        return self.received > self.limit

    def begin(self) -> None:
        """Prepares for a fetch: files that exist already are not counted."""
        self._before, self._ended = frozenset(self._sizes()), Event()

    def watch(self, leader: int) -> Thread:
        """Kills the process group of `leader` at the limit, until `end` is called."""
        watcher = Thread(target=self._look, args=(leader, self._ended), daemon=True)
        watcher.start()
        return watcher

    def end(self, watcher: Thread) -> None:
        """Adds the bytes of a fetch, which may have passed the limit between two looks."""
        self._ended.set()
        watcher.join()
        self.received += self._come()

    def _look(self, leader: int, ended: Event) -> None:
        while not ended.wait(_LOOK):
            if self.received + self._come() > self.limit:
                with suppress(OSError):
                    os.killpg(leader, signal.SIGKILL)
                return

    def _come(self) -> int:
        return sum(size for name, size in self._sizes().items() if name not in self._before)

    def _sizes(self) -> dict[str, int]:
        """The bytes of each file by name; one may disappear meanwhile, because git renames each complete pack."""
        sizes: dict[str, int] = {}
        with suppress(OSError), os.scandir(self._packs) as entries:
            for entry in entries:
                with suppress(OSError):
                    sizes[entry.name] = entry.stat(follow_symlinks=False).st_size
        return sizes

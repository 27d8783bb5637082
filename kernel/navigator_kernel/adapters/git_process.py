"""Runs git so that neither the caller's settings nor the repository's can make it do more than asked."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from navigator_kernel.errors import FetchFailed
from navigator_kernel.text import clean, shorten

_KEPT = frozenset(
    "PATH TMPDIR http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY no_proxy NO_PROXY SSL_CERT_FILE "
    "SSL_CERT_DIR GIT_SSL_CAINFO GIT_SSL_CAPATH CURL_CA_BUNDLE".split()
)
_CONFIG: Mapping[str, str] = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.alternateRefsCommand": "true",
    "credential.helper": "",
    "protocol.allow": "never",
    "fetch.fsckObjects": "true",
    "fetch.recurseSubmodules": "false",
    "fetch.unpackLimit": "1",  # keep the pack: one file instead of one an object
    "submodule.recurse": "false",
    "http.lowSpeedLimit": "1000",  # bytes a second, for
    "http.lowSpeedTime": "30",  # seconds
    "gc.auto": "0",
    "maintenance.auto": "false",
}
_SSH = "ssh -oBatchMode=yes -oForwardAgent=no -oClearAllForwardings=yes -oPermitLocalCommand=no -oConnectTimeout=20"
_SECRET = re.compile(r"://[^/@\s]+@")
_CAUSES = (
    (r"couldn't find remote ref|not our ref|no such remote ref", "check the branch, tag or full commit id"),
    (r"could not read Username|Authentication failed|Permission denied|not found|does not exist|not appear to be",
     "check the spelling; a private repository needs an ssh URL and a key"),
    (r"Could not resolve host|Could not connect|timed out|Connection", "check the network and the proxy settings"),
    (r"dubious ownership", "the folder belongs to somebody else; clone it yourself first"),
    (r"fsck|bad object|corrupt", "the repository holds objects that git refuses"),
)  # fmt: skip


@dataclass(slots=True, kw_only=True)
class GitProcess:
    """git in `folder`, allowed to speak only the transport of `url`; each run ends within `timeout` seconds."""

    folder: Path
    url: str
    timeout: float
    _env: dict[str, str] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """The URL as an error may show it."""
        return repr(without_secret(self.url))

    @property
    def scheme(self) -> str:
        return self.url.partition("://")[0].lower() if "://" in self.url else "ssh"

    def prepare(self) -> None:
        """Makes the folder and an empty home for git."""
        home = self.folder.with_name(f"{self.folder.name}-home")
        self.folder.mkdir(mode=0o700)
        home.mkdir(mode=0o700)
        self._env = _environment(home, self.scheme)

    def run(self, *words: str, config: Mapping[str, str] | None = None, stdin: bytes = b"") -> bytes:
        """What `git <words>` wrote. FetchFailed where it fails or takes too long, its whole group dead by then."""
        settings = {**_CONFIG, f"protocol.{self.scheme}.allow": "always", **(config or {})}
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        process = self._start([*_without(self._env), "git", *options, *words], stdin)
        try:
            output, complaint = process.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            raise FetchFailed(
                f"{self.shown} took longer than {self.timeout:g} s", hint="check the network, then try again"
            ) from None
        finally:
            _end(process)
        if process.returncode != 0:
            raise self._failure(words[0], complaint)
        return bytes(output)

    def _start(self, argv: Sequence[str], stdin: bytes) -> Any:
        try:
            import git  # 70 ms, and only needed here
        except ImportError as error:
            raise FetchFailed("git cannot be started", hint="install git 2.36 or newer") from error
        given = self.folder.with_name("stdin")
        given.write_bytes(stdin)
        with given.open("rb") as stream:
            runner = git.Git(str(self.folder))
            return runner.execute(argv, istream=stream, as_process=True, env=self._env, start_new_session=True)

    def _failure(self, verb: str, complaint: bytes) -> FetchFailed:
        text = clean(without_secret(complaint.decode("utf-8", errors="replace")))
        if re.search(r"env: .*git.*No such file", text):
            return FetchFailed("git is not installed", hint="install git 2.36 or newer")
        lines = [line for line in text.split("\n") if line.startswith(("fatal:", "error:", "remote:"))]
        reason = shorten(" ".join(lines) or text, 300) or "no reason given"
        hint = next((hint for pattern, hint in _CAUSES if re.search(pattern, text, re.I)), "check the source")
        return FetchFailed(f"git {verb} of {self.shown} failed: {reason}", hint=hint)


def without_secret(text: str) -> str:
    """`text` without the user and password part of its URLs."""
    return _SECRET.sub("://", text)


def _environment(home: Path, scheme: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in _KEPT}
    if scheme == "ssh" and "SSH_AUTH_SOCK" in os.environ:
        kept["SSH_AUTH_SOCK"] = os.environ["SSH_AUTH_SOCK"]
    return {
        **kept,
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
        "GIT_SSH_COMMAND": _SSH,
        "GIT_ALLOW_PROTOCOL": scheme,
        "GIT_PROTOCOL_FROM_USER": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
    }


def _without(env: Mapping[str, str]) -> list[str]:
    """`env -u …` for all else that GitPython would hand down; values never show in an argv."""
    return ["env", *(part for name in os.environ if name not in env for part in ("-u", name))]


def _end(process: Any) -> None:
    """Kills what is left of the process group, reaps its leader, closes its pipes."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=5)

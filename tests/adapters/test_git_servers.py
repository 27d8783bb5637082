"""Real servers: the requests they get, what they may send, and whose secrets they see."""

from __future__ import annotations

import base64
import os
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.adapters.sources.git import GitSource
from navigator_kernel.adapters.sources.git_process import credential_key, host_of
from navigator_kernel.adapters.sources.repo_cache import RepoCache
from navigator_kernel.errors import FetchFailed
from skill_repositories import commit, git, make_repo
from tables import cases

FILES: dict[str, str | bytes] = {f"s{number}/SKILL.md": f"text {number}" for number in range(20)}
LIMITS = {"each": 10_000, "total": 100_000}
SUBJECT = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
pytestmark = [
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the servers' certificates"),
    pytest.mark.sample(1),
]


class Handler(BaseHTTPRequestHandler):
    """git's own `http-backend`, behind a password if the server has one."""

    protocol_version = "HTTP/1.1"
    server: GitServer

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        given = self.headers.get("Authorization", "")
        self.server.seen.append((path, given))
        if self.server.elsewhere:
            return self.answer(302, {"Location": f"{self.server.elsewhere}{self.path}"})
        if self.server.secret and given != "Basic " + base64.b64encode(self.server.secret.encode()).decode():
            return self.answer(401, {"WWW-Authenticate": 'Basic realm="git"'})
        env = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.server.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": "" if self.server.old else self.headers.get("Git-Protocol", ""),
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True, check=False)
        head, _, rest = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
        return self.answer(int(headers.pop("Status", "200").split(" ")[0]), headers, rest)

    def do_POST(self) -> None:
        self.do_GET()

    def answer(self, code: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(code)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing."""


class GitServer(ThreadingHTTPServer):
    """Serves the repositories below `root` over https, on both names of this machine. `seen` has paths and secrets."""

    def __init__(self, root: Path, certificate: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.root, self.secret, self.elsewhere, self.old = root, "", "", False
        self.seen: list[tuple[str, str]] = []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, certificate.with_name("key.pem"))
        self.socket = context.wrap_socket(self.socket, server_side=True)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores a client that hangs up because it does not trust us."""

    def url(self, name: str = "repo", host: str = "localhost") -> str:
        return f"https://{host}:{self.server_port}/{name}"

    def secrets(self) -> set[str]:
        return {base64.b64decode(given.removeprefix("Basic ")).decode() for _, given in self.seen if given}


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    made = tmp_path / "cert.pem"
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    argv = ["openssl", "req", "-x509", *kind, "-keyout", str(made.with_name("key.pem")), "-out", str(made), *SUBJECT]
    subprocess.run(argv, check=True, capture_output=True)
    return made


@pytest.fixture
def servers(tmp_path: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[GitServer]]:
    """Two servers whose certificate git trusts."""
    make_repo(tmp_path, FILES)
    monkeypatch.setenv("GIT_SSL_CAINFO", str(certificate))
    made = [GitServer(tmp_path, certificate) for _ in range(2)]
    for server in made:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield made
    for server in made:
        server.shutdown()
        server.server_close()


@pytest.fixture
def server(servers: list[GitServer]) -> GitServer:
    return servers[0]


def text(source: GitSource, path: str = "s3/SKILL.md") -> str:
    (oid,) = (entry.oid for entry in source.entries if entry.path == path)
    return source.contents([oid], **LIMITS)[oid].decode()


def posts(server: GitServer) -> int:
    return sum(path.endswith("git-upload-pack") for path, _ in server.seen)


@pytest.mark.requirement("LIF-2")
def test_a_repository_is_read_over_https(server: GitServer) -> None:
    with GitSource(server.url()) as source:
        assert text(source) == "text 3"


@pytest.mark.parametrize("old", [True, False], ids=["old protocol", "new protocol"])
def test_a_server_without_partial_fetches_is_read_all_the_same(server: GitServer, tmp_path: Path, old: bool) -> None:
    server.old = old
    for key in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
        git(tmp_path / "repo", "config", key, "false")
    cache = RepoCache(tmp_path / "cache")
    with GitSource(server.url(), cache=cache) as source:
        assert text(source) == "text 3"
        made = source.commit
    server.seen.clear()
    with GitSource(server.url(), made, cache=cache) as source:
        assert text(source, "s4/SKILL.md") == "text 4"
    assert server.seen == []


@pytest.mark.wide
def test_a_server_that_sends_commits_without_files_but_no_single_file_is_read(
    server: GitServer, tmp_path: Path
) -> None:
    server.old = True
    git(tmp_path / "repo", "config", "uploadpack.allowAnySHA1InWant", "false")
    cache = RepoCache(tmp_path / "cache")
    with GitSource(server.url(), cache=cache) as source:
        assert text(source) == "text 3"
    new = commit(tmp_path / "repo", {"s3/SKILL.md": "new words"})
    with GitSource(server.url(), cache=cache) as source:
        assert (source.commit, text(source)) == (new, "new words")


@pytest.mark.parametrize("name", ["GIT_SSL_NO_VERIFY", "nothing"])
def test_a_certificate_that_nobody_vouches_for_is_refused(
    server: GitServer, monkeypatch: pytest.MonkeyPatch, name: str, home: Path
) -> None:
    monkeypatch.delenv("GIT_SSL_CAINFO")
    monkeypatch.setenv(name, "1")
    with (home / ".gitconfig").open("a") as file:
        file.write("[http]\n\tsslVerify = false\n")
    for auth in (False, True):
        with pytest.raises(FetchFailed, match=r"(?i)certificate|ssl") as caught, GitSource(server.url(), auth=auth):
            pass
        assert "GIT_SSL_CAINFO" in caught.value.hint
    assert server.seen == []


def test_the_proxy_of_the_environment_is_asked(server: GitServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    with pytest.raises(FetchFailed, match=r"127\.0\.0\.1 port 1") as caught, GitSource(server.url()):
        pass
    assert "proxy" in caught.value.hint


def keep_secret(home: Path, lines: str) -> None:
    with (home / ".gitconfig").open("a") as file:
        file.write(lines)


HELPER = 'helper = "!f() { cat >/dev/null; echo username=me; echo password=s3cret; }; f"\n'


@pytest.mark.parametrize("scope", ["[credential]", '[credential "https://localhost:PORT"]', "included"])
def test_a_private_repository_uses_the_persons_credential_helper_only_with_auth(
    server: GitServer, home: Path, scope: str
) -> None:
    server.secret = "me:s3cret"
    if scope == "included":
        keep_secret(home, "[include]\n\tpath = more\n")
        (home / "more").write_text(f"[credential]\n\t{HELPER}")
    else:
        keep_secret(home, f"{scope.replace('PORT', str(server.server_port))}\n\t{HELPER}")
    with pytest.raises(FetchFailed) as caught, GitSource(server.url()):
        pass
    assert "--auth" in caught.value.hint
    assert server.secrets() == set(), "the helper was not asked"
    with GitSource(server.url(), auth=True) as source:
        assert text(source) == "text 3"
    assert server.secrets() == {"me:s3cret"}


def test_a_file_of_secrets_in_the_persons_home_is_found(server: GitServer, home: Path) -> None:
    server.secret = "me:s3cret"
    keep_secret(home, "[credential]\n\thelper = store\n")
    (home / ".git-credentials").write_text(f"https://me:s3cret@localhost:{server.server_port}\n")
    with GitSource(server.url(), auth=True) as source:
        assert text(source) == "text 3"


def test_no_secret_stands_in_an_argument(server: GitServer, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.secret = "me:s3cret"
    keep_secret(home, f"[credential]\n\t{HELPER}")
    argvs: list[str] = []
    start = subprocess.Popen.__init__

    def seen(self: Any, argv: Any, *args: Any, **given: Any) -> None:
        argvs.append(" ".join(argv))
        start(self, argv, *args, **given)

    monkeypatch.setattr(subprocess.Popen, "__init__", seen)
    with GitSource(server.url(), auth=True):
        pass
    assert argvs
    assert "s3cret" not in "".join(argvs)


def test_another_host_never_sees_the_secret_of_the_first(servers: list[GitServer], home: Path) -> None:
    first, second = servers
    keep_secret(home, f"[credential]\n\t{HELPER}")
    second.secret = "me:s3cret"
    first.elsewhere = second.url("", "127.0.0.1").rstrip("/")
    with pytest.raises(FetchFailed), GitSource(first.url(), auth=True):
        pass
    assert second.seen, "it was led there"
    assert second.secrets() == set()


def test_other_settings_of_the_person_stay_out(server: GitServer, home: Path, tmp_path: Path) -> None:
    keep_secret(home, f'[url "file:///nowhere"]\n\tinsteadOf = https://\n[core]\n\tfsmonitor = "touch {tmp_path}/x"\n')
    with GitSource(server.url(), auth=True) as source:
        assert source.commit
    assert not (tmp_path / "x").exists()


def test_a_missing_repository_is_reported(server: GitServer) -> None:
    with pytest.raises(FetchFailed, match="not found") as caught, GitSource(server.url("none")):
        pass
    assert "spelling" in caught.value.hint


SSH = """#!/bin/sh
echo "$SSH_AUTH_SOCK" > {log}.agent
echo "$*" > {log}
for last in "$@"; do :; done
exec sh -c "$last"
"""


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Puts an `ssh` on the path that runs its command on this machine; returns the log of its arguments."""
    folder = tmp_path / "programs"
    folder.mkdir()
    log = tmp_path / "ssh.log"
    for name in ("ssh", "my-ssh"):
        (folder / name).write_text(SSH.format(log=log))
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    make_repo(tmp_path, FILES)
    return log


@pytest.mark.parametrize("form", ["ssh://git@host.invalid{}", "git@host.invalid:{}"])
def test_the_ssh_agent_and_the_ssh_settings_are_used_only_with_auth(ssh: Path, tmp_path: Path, form: str) -> None:
    url = form.format(tmp_path / "repo")
    with GitSource(url) as source:
        assert text(source) == "text 3"
    assert "-F /dev/null" in ssh.read_text()
    assert "IdentityAgent=none" in ssh.read_text()
    assert (tmp_path / "ssh.log.agent").read_text() == "\n"
    with GitSource(url, auth=True) as source:
        assert text(source) == "text 3"
    assert "/dev/null" not in ssh.read_text()
    assert "BatchMode=yes" in ssh.read_text()
    assert (tmp_path / "ssh.log.agent").read_text() == "/run/agent\n"


def test_the_persons_own_ssh_command_is_used_only_with_auth(ssh: Path, tmp_path: Path, home: Path) -> None:
    keep_secret(home, "[core]\n\tsshCommand = ssh -i my-key\n")
    for auth in (False, True):
        with GitSource(f"git@host.invalid:{tmp_path}/repo", auth=auth) as source:
            assert source.commit
        assert ("-i my-key" in ssh.read_text()) is auth


@cases("key, scoped")
def test_a_credential_setting_is_narrowed_to_one_host(key: str, scoped: str) -> None:
    assert credential_key(key, "https://host:8443/a/b") == scoped
    assert credential_key(key, "git@host:a/b") == ""


@cases("url, host")
def test_the_host_of_a_source_is_the_one_that_git_asks(url: str, host: str) -> None:
    assert host_of(url) == host

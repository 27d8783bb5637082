"""Which files `@path` reads, why it refuses the others, and that nothing bypasses the check."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from navigator_kernel.adapters.files.project_files import FILE_LIMIT, PATH_LIMIT, ProjectFiles
from navigator_kernel.errors import NotFound, Refused
from navigator_kernel.turn.message import MOST_FILES, TOGETHER
from processes import open_files
from stages.messages import project, take

pytestmark = pytest.mark.requirement("PRE-8", "SAF-1")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = project(tmp_path)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "notes.txt").write_text("outside")
    return folder


def read(root: Path, written: str) -> str:
    return ProjectFiles(root, root).read(written)[1]


def reason(root: Path, written: str) -> str:
    with pytest.raises(Refused) as caught:
        read(root, written)
    assert caught.value.hint and not caught.value.message.endswith(".")
    return str(caught.value.data["reason"])


def put(root: Path, name: str, text: str = "x") -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


# Secrets


@pytest.mark.parametrize(
    "name",
    [
        *[".env", ".env.local", ".env.production", ".envrc", ".env.bak", ".env~", ".env.swp", ".ENV"],
        *[".netrc", ".npmrc", ".pypirc", ".git-credentials", ".pgpass", ".my.cnf", ".htpasswd", ".vault-token"],
        *["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_rsa_work", "id_ed25519.old", "deep/ID_RSA"],
        *["key.pem", "server.key", "a.p12", "a.pfx", "a.keystore", "a.jks", "a.kdbx", "Key.PEM", "key.pem.bak"],
        *["credentials", "credentials.json", "service-account.json", "service-account-prod.json"],
        *["secrets.yml", "secrets.yaml", "secrets.json", "secrets.toml", "conf/Secrets.YAML", "secrets.yml.orig~"],
        *[".git/config", ".ssh/known_hosts", ".aws/config", ".gnupg/a", ".kube/config", ".docker/config.json"],
        *[".azure/profile", "deep/er/.ssh/config", ".SSH/config"],
    ],
)
def test_a_file_of_secrets_is_refused_by_its_name(root: Path, name: str) -> None:
    put(root, name)
    assert reason(root, name) == "secrets"


@pytest.mark.parametrize(
    "name",
    [
        *[".env.example", ".env.sample", ".env.template", ".env.local.example", "env", "a.env", ".environment"],
        *["id_rsa.pub", "id_ed25519.pub", "my_id_rsa", "key.txt", "pem", "monkey", "a.keys", "keyboard.md"],
        *["credentials.md", "my-credentials.py", "service-accounts.md", "secrets.py", "my-secrets.yml", "secrets"],
        *[".gitignore", ".github/a.yml", "git/config", "ssh/config", "docker/config.json", "mybox/workspace/r/a.json"],
        *["my.pem.txt", "state/a", "deep/mybox/state/a"],
    ],
)
def test_a_name_that_only_looks_alike_is_read(root: Path, name: str) -> None:
    put(root, name, "read")
    assert read(root, name) == "read"


@pytest.mark.parametrize(("link", "target"), [("plain.txt", ".env"), (".env", "notes.md"), (".ssh", "src")])
def test_neither_name_of_a_link_may_be_a_secrets(root: Path, link: str, target: str) -> None:
    put(root, ".env" if target == ".env" else "other")
    (root / link).symlink_to(target)
    assert reason(root, f"{link}/index.ts" if target == "src" else link) == "secrets"


def test_names_above_the_project_are_not_its_own(tmp_path: Path) -> None:
    folder = tmp_path / ".docker" / "project"
    put(folder, "notes.md", "read")
    (tmp_path / "link").symlink_to(folder)
    assert read(folder, str(tmp_path / "link" / "notes.md")) == "read"


@pytest.mark.parametrize("name", ["mybox/state/a.json", "mybox/logs/runs/a.jsonl", "MyBox/State/a"])
def test_the_kernels_own_records_are_refused(root: Path, name: str) -> None:
    put(root, name)
    assert reason(root, name) == "kernel"


# Each refusal has its own name


def test_a_file_outside_is_refused_and_one_that_is_not_there_too(root: Path) -> None:
    assert {reason(root, f"../outside/{name}") for name in ("notes.txt", "absent.txt")} == {"outside"}


@pytest.mark.parametrize("name", ["pipe", "socket", "src", ".", "src/"])
def test_a_path_that_is_not_a_regular_file_is_refused(root: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    os.mkfifo("pipe")
    with socket.socket(socket.AF_UNIX) as held:
        held.bind("socket")
    assert reason(root, name) == "special"


def test_a_file_that_is_too_large_is_refused(root: Path) -> None:
    put(root, "large.txt", "x" * (FILE_LIMIT + 1))
    assert reason(root, "large.txt") == "too-large"


def test_a_file_that_is_not_utf8_is_refused(root: Path) -> None:
    (root / "latin.txt").write_bytes(b"caf\xe9")
    assert reason(root, "latin.txt") == "not-utf8"


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unreadable to root")
def test_a_file_without_the_right_to_read_it_is_refused(root: Path) -> None:
    (root / "notes.md").chmod(0)
    assert reason(root, "notes.md") == "unreadable"


@pytest.mark.parametrize(
    "name", ["absent", "a\0b", "a\udc80", "x" * 300, "x/" * PATH_LIMIT, "notes.md/x", "loop", "loop/x"]
)
def test_a_missing_or_invalid_path_is_not_found_with_a_short_message(root: Path, name: str) -> None:
    (root / "loop").symlink_to("loop")
    with pytest.raises(NotFound) as caught:
        read(root, name)
    assert len(caught.value.message) < 400


def test_a_folder_that_may_only_be_passed_is_passed(root: Path) -> None:
    (root / "src").chmod(0o311)
    assert read(root, "src/index.ts").startswith("export")


def test_a_hard_link_is_a_file_like_any_other(root: Path) -> None:
    (root / "same.md").hardlink_to(root / "notes.md")
    assert read(root, "same.md") == "# Notes\n"


# The opened file is the checked file


def to_link(path: Path, target: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to(target)


def to_pipe(path: Path, _: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("place", "target", "change"),
    [
        ("folder", "outside", to_link),
        ("folder/deep", "outside", to_link),
        ("folder/deep/notes.txt", "outside/notes.txt", to_link),
        ("folder/deep/notes.txt", "", to_pipe),
    ],
    ids=["folder", "inner-folder", "file", "file-to-pipe"],
)
def test_a_path_that_is_swapped_between_check_and_open_is_not_read(
    root: Path, place: str, target: str, change: Callable[[Path, Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root, "folder/deep/notes.txt", "inside")
    (root.parent / "outside" / "deep").mkdir()
    (root.parent / "outside" / "deep" / "notes.txt").write_text("outside")
    find = os.path.realpath

    def exchanging(path: str | Path) -> str:
        found = find(path)
        if str(path).endswith("notes.txt"):
            change(root / place, root.parent / target)
        return str(found)

    monkeypatch.setattr("navigator_kernel.adapters.files.project_files.os.path.realpath", exchanging)
    with pytest.raises((NotFound, Refused)):
        read(root, "folder/deep/notes.txt")
    assert change is to_pipe or (root / "folder/deep/notes.txt").read_text() == "outside"


def test_no_handle_is_left_open(root: Path) -> None:
    (root / "link").symlink_to("link")
    put(root, ".env")
    before = open_files()
    for name in ("notes.md", "absent/x", "src", "link", ".env", "notes.md/x", "../outside/notes.txt"):
        try:
            read(root, name)
        except (NotFound, Refused):
            continue
    assert not open_files() - before


# Mentions in a message


@pytest.mark.parametrize("name", ["id_rsa", "credentials", "outside"])
def test_a_file_mention_is_reported_as_refused_even_if_it_could_mean_a_person(root: Path, name: str) -> None:
    put(root, "id_rsa")
    put(root, "credentials")
    (root / "outside").symlink_to(root.parent / "outside" / "notes.txt")
    [file] = take(root, f"ask @{name} about it").files
    assert (file.refused, file.content) == (True, "")


def test_a_folder_that_might_be_a_person_is_text(root: Path) -> None:
    assert take(root, "ask @src about it").files == ()


def test_chinese_may_follow_a_name_that_begins_with_a_dot(root: Path) -> None:
    put(root, ".env")
    [file] = take(root, "统计@.env的字数").files
    assert (file.written, file.refused) == (".env", True)


def test_more_files_than_one_message_may_name_are_refused_once(root: Path) -> None:
    files = take(root, " ".join(f"@a{n}.txt" for n in range(MOST_FILES + 10))).files
    assert len(files) == MOST_FILES + 1
    assert (files[-1].refused, str(MOST_FILES) in files[-1].problem) == (True, True)


def test_more_text_than_one_message_may_take_in_is_refused_by_name(root: Path) -> None:
    count = TOGETHER // FILE_LIMIT
    for n in range(count + 1):
        put(root, f"a{n}.txt", "x" * FILE_LIMIT)
    found = take(root, " ".join(f"@a{n}.txt" for n in range(count + 1)))
    assert [file.written for file in found.files if file.refused] == [f"a{count}.txt"]
    assert f"'a{count}.txt' is too much" in found.files[-1].problem


def test_a_file_that_is_named_again_and_again_takes_no_more_room_than_there_is(root: Path) -> None:
    put(root, "a.txt", "x" * FILE_LIMIT)
    found = take(root, "@a.txt " * 1000)
    assert len(found.cleaned_content) < 2 * TOGETHER
    assert (found.files[0].problem, found.cleaned_content.endswith("a.txt")) == ("", True)


@pytest.mark.parametrize("before", ["\u00a0", "\u3000", "\x0b", "\r"])
def test_a_line_is_a_fence_for_files_where_it_is_one_for_calls(root: Path, before: str) -> None:
    found = take(root, f"{before}```\n/review it\n@file\n{before}```")
    assert (len(found.commands), len(found.files)) == (1, 1)

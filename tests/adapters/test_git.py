from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.adapters.sources.git import GitSource
from navigator_kernel.adapters.sources.git_process import GitProcess
from navigator_kernel.errors import FetchFailed, Refused
from navigator_kernel.text import strip_url_credentials
from skill_repositories import add_raw, commit, git, make_repo

pytestmark = pytest.mark.sample(2)

FILES: dict[str, str | bytes] = {"a/SKILL.md": "text a", "b/SKILL.md": "text b", "big.bin": b"\x00\xff" * 2000}
LIMITS = {"each": 10_000, "total": 100_000}


def blobs(source: GitSource) -> dict[str, str]:
    return {entry.path: entry.oid for entry in source.entries if entry.kind == "blob"}


def present(source: GitSource) -> int:
    return len(source._sizes(list(blobs(source).values())))


def process(tmp_path: Path, url: str, **given: Any) -> GitProcess:
    made = GitProcess(folder=tmp_path / "g", scratch=tmp_path, url=url, **{"timeout": 10.0, **given})
    made.folder.mkdir()
    made.prepare()
    return made


def living(group: int) -> list[str]:
    """Processes of the group that are neither gone nor waiting to be reaped."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, pgid = stat.read_text().rpartition(")")[2].split()[:3]
            if int(pgid) == group and state != "Z":
                found.append(stat.parent.name)
    return found


@pytest.mark.parametrize("partial", [True, False])
def test_a_commit_is_read_without_a_work_tree(tmp_path: Path, partial: bool) -> None:
    repo = make_repo(tmp_path, FILES, partial=partial)
    with GitSource(f"file://{repo}") as source:
        assert source.commit == git(repo, "rev-parse", "HEAD").strip()
        assert source.tree == git(repo, "rev-parse", "HEAD^{tree}").strip()
        assert sorted(blobs(source)) == sorted(FILES)
        oids = blobs(source)
        held = source.contents(oids.values(), **LIMITS)
        assert {path: held[oid] for path, oid in oids.items()} == {
            path: data.encode() if isinstance(data, str) else data for path, data in FILES.items()
        }
        assert os.listdir(source._git.folder) == [".git"]
    assert not source._scratch.exists()


def test_only_the_blobs_that_are_needed_are_fetched(tmp_path: Path) -> None:
    with GitSource(f"file://{make_repo(tmp_path, FILES)}") as source:
        assert present(source) == 0
        source.contents([blobs(source)["a/SKILL.md"]], **LIMITS)
        assert present(source) == 1


def test_a_server_without_partial_fetches_sends_all_and_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with GitSource(f"file://{make_repo(tmp_path, FILES, partial=False)}") as source:
        assert present(source) == len(FILES)
        monkeypatch.setattr(GitSource, "_fetch", None)
        assert source.contents(blobs(source).values(), **LIMITS)


def test_a_server_that_sends_no_single_blobs_is_asked_for_the_whole_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    run = GitProcess.run

    def refusing(self: GitProcess, *words: str, **given: Any) -> bytes:
        asked.append(words[0])
        if "--stdin" in words:
            raise FetchFailed("not our ref")
        return run(self, *words, **given)

    monkeypatch.setattr(GitProcess, "run", refusing)
    with GitSource(f"file://{make_repo(tmp_path, FILES)}") as source:
        assert len(source.contents(blobs(source).values(), **LIMITS)) == len(FILES)
    assert asked.count("fetch") == 3


def test_reading_never_fetches_by_itself(tmp_path: Path) -> None:
    with GitSource(f"file://{make_repo(tmp_path, FILES)}") as source:
        config = (source._git.folder / ".git" / "config").read_text()
        assert "remote" not in config
        assert "partial" not in config.lower()
        with pytest.raises(FetchFailed):
            source._git.run("cat-file", "blob", blobs(source)["a/SKILL.md"])
        assert present(source) == 0


def test_the_number_of_git_runs_does_not_grow_with_the_skills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[str] = []
    run = GitProcess.run

    def counted(self: GitProcess, *words: str, **given: Any) -> bytes:
        runs.append(words[0])
        return run(self, *words, **given)

    monkeypatch.setattr(GitProcess, "run", counted)
    repo = make_repo(tmp_path, {f"s{number}/SKILL.md": f"text {number}" for number in range(300)})
    with GitSource(f"file://{repo}") as source:
        source.contents(blobs(source).values(), **LIMITS)
    assert runs == ["fetch", "cat-file", "ls-tree", "fetch", "cat-file", "cat-file"]


def test_limits_are_kept_before_anything_is_read(tmp_path: Path) -> None:
    with GitSource(f"file://{make_repo(tmp_path, FILES)}") as source:
        with pytest.raises(Refused, match="over 100 bytes"):
            source.contents(blobs(source).values(), each=100, total=10_000)
        with pytest.raises(Refused, match="together"):
            source.contents(blobs(source).values(), each=10_000, total=100)


@pytest.mark.parametrize("ref", ["nothing", "f" * 40])
def test_a_ref_that_is_not_there_is_named(tmp_path: Path, ref: str) -> None:
    with pytest.raises(FetchFailed) as caught, GitSource(f"file://{make_repo(tmp_path, FILES)}", ref):
        pass
    assert caught.value.exit_code == 7
    assert "branch, tag" in caught.value.hint


def test_a_submodule_is_an_entry_and_is_not_followed(tmp_path: Path) -> None:
    repo = make_repo(tmp_path, {**FILES, ".gitmodules": '[submodule "m"]\n\tpath = m\n\turl = file:///nowhere\n'})
    add_raw(repo, {"m": ("160000", b"")})
    with GitSource(f"file://{repo}") as source:
        assert [entry.kind for entry in source.entries if entry.path == "m"] == ["commit"]


def test_a_tree_that_names_git_itself_is_refused_by_the_check_of_objects(tmp_path: Path) -> None:
    repo = make_repo(tmp_path, FILES)
    blob = git(repo, "hash-object", "-w", "--stdin", stdin=b"x").strip()
    inner = git(repo, "mktree", stdin=f"100644 blob {blob}\tconfig\n".encode()).strip()
    outer = git(repo, "mktree", stdin=f"040000 tree {inner}\t.git\n".encode()).strip()
    made = git(repo, "commit-tree", "-m", "x", outer).strip()
    git(repo, "update-ref", "HEAD", made)
    with pytest.raises(FetchFailed), GitSource(f"file://{repo}"):
        pass


def test_names_that_are_not_utf8_are_kept_apart(tmp_path: Path) -> None:
    repo = make_repo(tmp_path, FILES)
    blob = git(repo, "hash-object", "-w", "--stdin", stdin=b"x").strip()
    git(repo, "update-index", "-z", "--index-info", stdin=b"100644 " + blob.encode() + b"\tbad-\xff\0")
    git(repo, "commit", "--quiet", "--message", "x")
    with GitSource(f"file://{repo}") as source:
        assert "bad-\udcff" in blobs(source)


def test_settings_of_the_caller_do_not_reach_git(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo, canary = make_repo(tmp_path, FILES), tmp_path / "canary"
    settings = f'[url "file:///nowhere"]\n\tinsteadOf = file://\n[core]\n\tfsmonitor = touch {canary}\n'
    (home / ".gitconfig").write_text(settings)
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.hooksPath")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(tmp_path))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", f"touch {canary}")
    with GitSource(f"file://{repo}") as source:
        assert source.entries
    assert not canary.exists()


def test_hooks_and_filters_of_a_repository_do_not_run(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    repo = make_repo(tmp_path, {**FILES, ".gitattributes": "* filter=evil\n"})
    for key in ("filter.evil.smudge", "core.fsmonitor", "core.sshCommand"):
        git(repo, "config", key, f"touch {canary}")
    for name in ("post-checkout", "reference-transaction", "post-merge"):
        hook = repo / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {canary}\n")
        hook.chmod(0o755)
    with GitSource(f"file://{repo}") as source:
        source.contents(blobs(source).values(), **LIMITS)
    assert not canary.exists()


@pytest.mark.parametrize("url", ["ext::sh -c 'touch canary'", "http://127.0.0.1:1/x"])
def test_a_transport_that_was_not_asked_for_is_not_spoken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.chdir(tmp_path)
    git_process = process(tmp_path, "https://example.invalid/x")
    git_process.run("init", "--quiet")
    with pytest.raises(FetchFailed, match=r"not allowed|disabled"):
        git_process.run("fetch", "origin", config={"remote.origin.url": url})
    assert not list(tmp_path.rglob("canary"))


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/x", "git://127.0.0.1/x", "ext::sh -c x"])
def test_a_url_that_no_source_can_have_is_not_asked(tmp_path: Path, url: str) -> None:
    with pytest.raises((Refused, FetchFailed)), GitSource(url, timeout=5):
        pass


@pytest.mark.parametrize("ref", ["-x", "+a:b", "a..b", "refs/heads/*", "--upload-pack=x"])
def test_a_ref_that_git_could_take_for_something_else_is_refused(ref: str) -> None:
    with pytest.raises(Refused):
        GitSource("file:///x", ref)


@pytest.mark.wide
def test_a_run_that_hangs_is_ended_with_all_its_children(tmp_path: Path) -> None:
    git_process = process(tmp_path, "file:///x", timeout=3)
    start = time.monotonic()
    words = f"!cut -d' ' -f5 /proc/$$/stat > {tmp_path}/pid; sleep 60 & sleep 60"
    with pytest.raises(FetchFailed, match="longer than 3 s"):
        git_process.run("hang", config={"alias.hang": words})
    assert time.monotonic() - start < 30
    group = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 20
    while living(group) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert living(group) == []


def test_no_secret_of_a_url_is_shown() -> None:
    assert (
        strip_url_credentials("fatal: https://me:pass@host/x and ssh://a@b/c") == "fatal: https://host/x and ssh://b/c"
    )
    assert strip_url_credentials("https://me:p@ss@host/a@b, c@d") == "https://host/a@b, c@d"
    assert strip_url_credentials('{"url":"https://host","mail":"a@b"}') == '{"url":"https://host","mail":"a@b"}'


def test_a_new_commit_is_seen(tmp_path: Path) -> None:
    repo = make_repo(tmp_path, FILES)
    made = commit(repo, {"c/SKILL.md": "c"})
    with GitSource(f"file://{repo}") as source:
        assert source.commit == made

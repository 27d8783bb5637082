"""Which names stand for a commit, and how a page's URL is divided into ref and path."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from navigator_kernel.adapters.sources.git import GitSource, is_ref
from navigator_kernel.errors import FetchFailed, UsageProblem
from skill_repositories import GitCount, commit, git, make_repo
from tables import cases

pytestmark = pytest.mark.sample(1)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Four commits: the first is tagged, the second is on no tip, and `main` and `release/1.x` differ."""
    made = make_repo(tmp_path, {"a/SKILL.md": "first"})
    git(made, "tag", "-a", "-m", "one", "v1")
    git(made, "tag", "light")
    git(made, "branch", "feature")
    commit(made, {"a/SKILL.md": "second"})
    commit(made, {"a/SKILL.md": "third"})
    git(made, "switch", "--quiet", "--create", "release/1.x")
    commit(made, {"deep/er/SKILL.md": "fourth"})
    git(made, "switch", "--quiet", "main")
    return made


def at(repo: Path, word: str) -> str:
    return git(repo, "rev-parse", f"{word}^{{commit}}").strip()


def twins(repo: Path) -> list[str]:
    """Two commits whose ids begin with the same seven digits; 40,000 commits contain such a pair."""
    head = f"tree {git(repo, 'rev-parse', 'main^{tree}').strip()}\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n"
    seen: dict[str, bytes] = {}
    for number in range(40_000):
        text = f"{head}\n{number}\n".encode()
        short = hashlib.sha1(b"commit %d\0%b" % (len(text), text)).hexdigest()[:7]
        if short in seen:
            made = (git(repo, "hash-object", "-t", "commit", "-w", "--stdin", stdin=one) for one in (seen[short], text))
            return sorted(oid.strip() for oid in made)
        seen[short] = text
    raise AssertionError("no twins")


@pytest.mark.requirement("LIF-2")
@pytest.mark.parametrize(
    ("ref", "same"),
    [("", "main"), ("main", "main"), ("release/1.x", "release/1.x"), ("refs/heads/main", "main"), ("v1", "main~2"),
     ("light", "main~2"), ("HEAD", "main")],
)  # fmt: skip
def test_a_branch_and_both_kinds_of_tag_stand_for_a_commit(repo: Path, ref: str, same: str) -> None:
    with GitSource(f"file://{repo}", ref) as source:
        assert source.commit == at(repo, same)
        assert source.ref == ref


@pytest.mark.requirement("LIF-2")
@pytest.mark.parametrize("length", [7, 12, 39, 40])
@pytest.mark.parametrize("word", ["main", "main~1", "release/1.x"])
def test_a_commit_is_known_by_its_whole_id_or_its_beginning(repo: Path, word: str, length: int) -> None:
    wanted = at(repo, word)
    with GitSource(f"file://{repo}", wanted[:length].upper()) as source:
        assert source.commit == wanted


def test_the_id_of_a_tag_stands_for_its_commit(repo: Path) -> None:
    with GitSource(f"file://{repo}", git(repo, "rev-parse", "v1").strip()) as source:
        assert source.commit == at(repo, "v1")


def test_a_commit_of_the_past_is_found_without_its_trees(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = GitCount(tmp_path, monkeypatch)
    with GitSource(f"file://{repo}", at(repo, "main~1")[:9]) as source:
        history = source._scratch / "history"
        kinds = git(history, "cat-file", "--batch-all-objects", "--batch-check=%(objecttype)").split()
        assert set(kinds) <= {"commit", "tag"}
    assert [verb for verb in count.runs() if verb in {"fetch", "ls-remote"}] == ["ls-remote", "fetch", "fetch"]


def test_a_branch_that_is_called_like_a_commit_is_the_branch(repo: Path) -> None:
    git(repo, "branch", "20240131", "main~1")
    with GitSource(f"file://{repo}", "20240131") as source:
        assert source.commit == at(repo, "main~1")


def test_an_abbreviated_hash_that_matches_no_commit_is_reported(repo: Path) -> None:
    with pytest.raises(FetchFailed, match="no commit") as caught, GitSource(f"file://{repo}", "0000000"):
        pass
    assert caught.value.hint


@pytest.mark.parametrize("tips", [True, False])
def test_a_beginning_of_several_commits_is_an_error_that_lists_them(repo: Path, tips: bool) -> None:
    both = twins(repo)
    for name, oid in zip(("one", "two"), both, strict=True):
        tip = oid if tips else git(repo, "commit-tree", "-m", "x", "-p", oid, "main^{tree}").strip()
        git(repo, "branch", name, tip)
    with pytest.raises(UsageProblem) as caught, GitSource(f"file://{repo}", both[0][:7]):
        pass
    assert caught.value.data["commits"] == both
    assert all(oid in caught.value.hint for oid in both)


@pytest.mark.requirement("LIF-15")
@cases("page, ref, subpath, same")
def test_the_longest_ref_that_exists_divides_a_page(repo: Path, page: str, ref: str, subpath: str, same: str) -> None:
    with GitSource(f"file://{repo}", page=page) as source:
        assert (source.ref, source.subpath, source.commit) == (ref, subpath, at(repo, same))


@pytest.mark.parametrize("length", [40, 8])
def test_a_page_of_a_commit_is_divided_after_it(repo: Path, length: int) -> None:
    wanted = at(repo, "main~1")
    with GitSource(f"file://{repo}", page=f"{wanted[:length]}/a") as source:
        assert (source.commit, source.ref, source.subpath) == (wanted, wanted[:length], "a")


def test_a_page_is_divided_by_one_question(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = GitCount(tmp_path, monkeypatch)
    with GitSource(f"file://{repo}", page="release/1.x/deep"):
        assert [verb for verb in count.runs() if verb in {"fetch", "ls-remote"}] == ["ls-remote", "fetch"]


def test_a_page_of_no_ref_names_the_refs_there_are(repo: Path) -> None:
    with pytest.raises(FetchFailed, match="nothing/a") as caught, GitSource(f"file://{repo}", page="nothing/a"):
        pass
    assert "main" in caught.value.hint


@pytest.mark.parametrize("text", ["main", "v1.2", "feature/x", "中文", "a@b", "a+b"])
def test_a_plain_name_is_a_ref(text: str) -> None:
    assert is_ref(text)


@pytest.mark.parametrize("text", ["", "-x", "a..b", "a b", "a:b", "a^{}", "a//b", "/a", "a/", "a.lock", "a@{1}", "*"])
def test_a_malformed_name_is_not_a_ref(text: str) -> None:
    assert not is_ref(text)

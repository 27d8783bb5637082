"""git-summary: the figures match the generated commits; the repository's own programs are never run."""

from __future__ import annotations

import os
import random
import re
import subprocess
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from shipped.place import ESCAPES, Place
from skill_repositories import git, snapshot
from tables import cases, table

pytestmark = pytest.mark.sample(1)

AUTHORS = ("Ada Lovelace", "张衡", "Grace O'Hopper", "bot[1]")
FILES = ("a.py", "src/深/b c.rs", "docs/\nodd.md", "z\t.txt", "src/a.py")
START = datetime(2024, 1, 15, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    author: str
    files: frozenset[str]
    time: datetime
    merge: bool = False


def history(root: Path, seed: int, count: int = 40) -> list[Commit]:
    """Imports a generated history into git and returns its commits; one is a merge, some change nothing."""
    dice = random.Random(seed)
    stream: list[bytes] = []
    made: list[Commit] = []
    for at in range(count):
        files = frozenset(dice.sample(FILES, dice.randint(0, 3)))
        time = START + timedelta(days=7 * at, hours=dice.randint(0, 23))
        commit = Commit(author=dice.choice(AUTHORS), files=files, time=time, merge=at == count - 1)
        who = f"{commit.author} <a{at}@example.invalid> {int(time.timestamp())} +0800"
        head = f"commit refs/heads/main\nmark :{at + 1}\nauthor {who}\ncommitter {who}\ndata 4\nwhy?\n"
        parents = f"from :{at}\n" if at else ""
        parents += f"merge :{at // 2}\n" if commit.merge else ""
        changes = "".join(f"M 644 inline {quoted(name)}\ndata 5\n{at:05}\n" for name in sorted(files))
        stream.append(f"{head}{parents}{changes}\n".encode())
        made.append(commit)
    git(root, "init", "--quiet")
    git(root, "fast-import", "--quiet", stdin=b"".join(stream))
    return made


def quoted(name: str) -> str:
    return '"' + name.replace("\n", "\\n").replace("\t", "\\t") + '"'


def counted(commits: list[Commit]) -> tuple[Counter[str], Counter[str]]:
    """Commits by author, and by file name as displayed; a merge has no files."""
    shown = {name: name.replace("\n", "").replace("\t", " ") for name in FILES}
    files = Counter(shown[name] for commit in commits if not commit.merge for name in commit.files)
    return Counter(commit.author for commit in commits), files


def assert_figures(data: Any, commits: list[Commit]) -> None:
    authors, files = counted(commits)
    assert (data["commits"], data["merges"]) == (len(commits), sum(commit.merge for commit in commits))
    assert {told["name"]: told["commits"] for told in data["authors"]} == authors
    assert {told["file"]: told["commits"] for told in data["files"]} == files
    assert [told["commits"] for told in data["authors"]] == sorted(authors.values(), reverse=True)
    if commits:
        ends = [min(commit.time for commit in commits), max(commit.time for commit in commits)]
        assert [data["first"], data["last"]] == [f"{end:%Y-%m-%dT%H:%M:%SZ}" for end in ends]


@pytest.mark.parametrize("seed", range(3))
def test_all_commits_are_counted(place: Place, seed: int) -> None:
    commits = history(place.root, seed)
    data = place.data("/git-summary")
    assert_figures(data, commits)
    months = Counter(f"{commit.time:%Y-%m}" for commit in commits)
    assert data["months"] == dict(sorted(months.items())[-10:])
    assert (data["branch"], data["repository"], data["limited"]) == ("main", "project", False)


@pytest.mark.parametrize(
    ("begin", "end"), [("2024-03-01", ""), ("", "2024-05-20"), ("2024-03-01T12:00:00Z", "2024-06-30T00:00:00+08:00")]
)
def test_a_period_contains_the_commits_between_its_ends(place: Place, begin: str, end: str) -> None:
    commits = history(place.root, 1)
    words = [f"since={begin}"] * bool(begin) + [f"until={end}"] * bool(end)
    first = datetime.fromisoformat(begin or "1971-01-01")
    last = datetime.fromisoformat(end or "2099-01-01") + timedelta(days=len(end) == 10)
    kept = [c for c in commits if at_utc(first) <= c.time < at_utc(last)]
    assert_figures(place.data(f"/git-summary {' '.join(words)}"), kept)
    assert 0 < len(kept) < len(commits)


def at_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)  # a time without a zone is local


@pytest.mark.parametrize("ago", ["30d", "4w", "30 days", "1个月", "30天", "1 Month", "4周"])
def test_a_period_may_be_how_long_ago(place: Place, ago: str) -> None:
    git(place.root, "init", "--quiet")
    for days in (1, 20, 40, 400):
        stamp = f"{int((datetime.now(UTC) - timedelta(days=days)).timestamp())} +0000"
        env = {**os.environ, "GIT_COMMITTER_DATE": stamp, "GIT_AUTHOR_DATE": stamp}
        subprocess.run(["git", "commit", "-qm", "x", "--allow-empty"], cwd=place.root, env=env, check=True)
    assert place.script("git-summary", "--since", ago).data["commits"] == 2


@pytest.mark.parametrize("when", ["yesterday-ish", "2026-13-01", "1", "0001-01-01", "9999-12-31", "30 parsecs"])
def test_an_invalid_date_is_reported_with_an_example_of_a_valid_one(place: Place, when: str) -> None:
    git(place.root, "init", "--quiet")
    assert "30d" in place.script("git-summary", f"--since={when}").complaint


@cases("text")
def test_the_history_is_that_of_the_folder(place: Place, text: str) -> None:
    commits = [commit for commit in history(place.root, 2, 5) if not commit.merge]
    place.write("src/x", "")
    inside = [commit for commit in commits if any(name.startswith("src/") for name in commit.files)]
    assert place.data(text)["commits"] == (len(inside) if "src" in text else 5)


def test_a_repository_without_commits_has_none(place: Place) -> None:
    git(place.root, "init", "--quiet", "--initial-branch", "trunk")
    data = place.data("/git-summary")
    assert (data["commits"], data["first"], data["authors"], data["branch"]) == (0, None, [], "trunk")


def test_a_folder_that_is_not_a_git_repository_is_reported(place: Place) -> None:
    assert "not a git repository" in place.script("git-summary").complaint


@pytest.mark.parametrize("name", ["nowhere", "a\x1b[31m", "../elsewhere"])
def test_a_folder_that_is_not_there_or_not_ours_is_named(place: Place, name: str) -> None:
    assert repr(name) in place.script("git-summary", "--", name).complaint


def test_without_git_it_says_so(place: Place, tmp_path: Path) -> None:
    assert "'git'" in place.script("git-summary", env={"PATH": str(tmp_path)}).complaint


def test_names_are_shown_without_what_steers_a_terminal_and_without_addresses(place: Place) -> None:
    git(place.root, "init", "--quiet")
    place.write(f"a{ESCAPES}", "x")
    git(place.root, "add", ".")
    git(place.root, "-c", f"user.name=E{ESCAPES}ve", "-c", "user.email=eve@example.invalid", "commit", "-qm", ESCAPES)
    done = place.script("git-summary")
    assert ([told["name"] for told in done.data["authors"]], done.data["files"][0]["file"]) == (["Ered ve"], "ared ")
    assert "example.invalid" not in done.out


def test_no_program_of_the_repository_is_run_and_nothing_in_it_changes(place: Place) -> None:
    history(place.root, 3, 6)
    bad = place.write("bad.sh", f"#!/bin/sh\ntouch {place.root}/ran\n")
    bad.chmod(0o755)
    config = [
        *(f"core.{name}" for name in ("fsmonitor", "pager", "editor", "sshCommand", "askPass", "gitProxy")),
        *("pager.log", "diff.external", "diff.bad.textconv", "diff.bad.command", "filter.bad.clean", "filter.bad.smudge"),
        *("gpg.program", "gpg.ssh.program", "credential.helper", "uploadpack.packObjectsHook", "alias.log", "alias.branch"),
    ]  # fmt: skip
    for name in config:
        git(place.root, "config", name, f"!{bad}" if name.startswith("alias") else str(bad))
    git(place.root, "config", "log.showSignature", "true")
    place.write(".gitattributes", "* diff=bad filter=bad\n")
    for hook in ("post-index-change", "reference-transaction", "pre-commit"):
        (place.write(f".git/hooks/{hook}", bad.read_text())).chmod(0o755)
    before = snapshot(place.root / ".git")
    assert place.data("/git-summary")["commits"] == 6
    assert not (place.root / "ran").exists()
    assert snapshot(place.root / ".git") == before


def test_missing_objects_of_a_partial_clone_are_not_fetched(place: Place) -> None:
    history(place.root, 4, 6)
    ran = place.root / "ran"
    settings = {
        "remote.origin.url": f"ext::touch {ran}",
        "remote.origin.promisor": "true",
        "protocol.ext.allow": "always",
    }
    for name, value in {**settings, "extensions.partialClone": "origin", "core.repositoryFormatVersion": "1"}.items():
        git(place.root, "config", name, value)
    tree = git(place.root, "rev-parse", "HEAD~2^{tree}").strip()
    (place.root / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    assert place.script("git-summary").complaint
    assert not ran.exists()
    subprocess.run(["git", "log", "--name-only"], cwd=place.root, capture_output=True, check=False)
    assert ran.exists()  # the trap works


def test_the_callers_own_git_settings_do_not_lead_elsewhere(place: Place, tmp_path: Path) -> None:
    history(place.root, 5, 4)
    other = tmp_path / "other"
    other.mkdir()
    history(other, 6, 9)
    env = {"GIT_DIR": str(other / ".git"), "GIT_WORK_TREE": str(other), "GIT_NAMESPACE": "x"}
    assert place.script("git-summary", env=env).data["commits"] == 4


def test_a_bare_repository_inside_the_project_is_not_believed(place: Place) -> None:
    bare = place.root / "vendor"
    bare.mkdir()
    git(bare, "init", "--quiet", "--bare")
    git(bare, "config", "core.fsmonitor", f"touch {place.root}/ran")
    assert "bare" in place.script("git-summary", "vendor").complaint
    assert not (place.root / "ran").exists()


DAYS = (  # day, author, files
    ("2026-01-05", "Ada", ["README.md", "src/app.py"]),
    ("2026-01-20", "王芳", ["src/app.py"]),
    ("2026-02-03", "Ada", ["src/web/x.js", "src/app.py"]),
    ("2026-02-14", "李强", ["文档/说明 书.md"]),
    ("2026-02-28", "王芳", ["文档/说明 书.md", "src/库存.py"]),
    ("2026-03-01", "Ada", ["src/app.py"]),
    ("2026-03-31", "王芳", ["src/库存.py"]),
    ("2026-04-01", "王芳", ["README.md"]),
    ("2026-04-15", "王芳", ["文档/说明 书.md", "*.md"]),
)
EVERYDAY = table(__file__, "EVERYDAY")


@pytest.mark.parametrize(("language", "named", "since", "until"), EVERYDAY)
def test_an_everyday_question_has_the_numbers_of_git(
    place: Place, language: str, named: str, since: str, until: str
) -> None:
    git(place.root, "init", "--quiet")
    for at, (day, author, files) in enumerate(DAYS):
        for file in files:
            place.write(file, f"{at}\n")
        stamp = {"GIT_AUTHOR_DATE": f"{day}T12:00:00", "GIT_COMMITTER_DATE": f"{day}T12:00:00"}
        subprocess.run(["git", "add", *files], cwd=place.root, check=True)
        words = [
            "-c",
            f"user.name={author}",
            "-c",
            "user.email=x@example.invalid",
            "commit",
            "-qm",
            f"第 {at} 次 change",
        ]
        subprocess.run(["git", *words], cwd=place.root, env={**os.environ, **stamp}, check=True)
    period = [f"--since={since}{'T00:00:00' * (len(since) == 10)}"] if since else []
    period += [f"--until={until}{'T23:59:59' * (len(until) == 10)}"] if until else []
    where = ["HEAD", "--"] if named == "." else ["HEAD", "--", f":(literal){named}"]
    commits = int(git(place.root, "rev-list", "--count", *period, *where))
    authors = re.findall(r"(?m)^\s*(\d+)\t(.+)$", git(place.root, "shortlog", "-sn", *period, *where))
    names = git(place.root, "-c", "core.quotePath=false", "log", "--format=", "--name-only", *period, *where).split(
        "\n"
    )
    subjects = git(place.root, "log", "--format=%s", *period, *where).splitlines()
    words = [f"--since={since}"] * bool(since) + [f"--until={until}"] * bool(until)
    data = place.answer("git-summary", *words, "--folder", named, language=language)
    assert data["commits"] == commits
    assert Counter({told["name"]: told["commits"] for told in data["authors"]}) == Counter(
        {author: int(number) for number, author in authors}
    )
    assert Counter({told["file"]: told["commits"] for told in data["files"]}) == Counter(filter(None, names))
    assert [commit["subject"] for commit in data["recent"]] == subjects
    summary = data["summary"]
    assert summary.startswith("project" if named == "." else named)
    assert (f"{commits} commit" if language == "en" else f"{commits} 次提交") in summary
    if commits:
        most = max(data["authors"], key=lambda told: told["commits"])
        shown = {
            "en": f"most active: {most['name']} ({most['commits']} commit",
            "zh": f"是 {most['name']}（{most['commits']} 次",
        }
        assert shown[language] in summary and f"- {most['name']}: {most['commits']}" in data["text"].splitlines()


def test_the_summary_has_singular_and_plural(place: Place) -> None:
    git(place.root, "init", "--quiet")
    place.write("a", "x")
    git(place.root, "add", ".")
    git(place.root, "-c", "user.name=Eve", "commit", "-qm", "x")
    told = "project: 1 commit by 1 author to 1 file; most active: Eve (1 commit)"
    assert place.answer("git-summary")["summary"] == told
    assert (
        place.answer("git-summary", language="zh")["summary"]
        == "project：1 次提交，1 位作者，改动 1 个文件；提交最多的是 Eve（1 次）"
    )


@pytest.mark.requirement("SEN-2")
@pytest.mark.parametrize("message", ["how many commits did zoe make", "commits by zoe", "zoe 提交了几次"])
def test_the_commits_of_one_person_are_counted(place: Place, message: str) -> None:
    for number, who in enumerate(("Zoe Park", "Ben Ode", "Zoe Park")):
        place.write("notes.txt", f"{number}\n")
        git(place.root, "init", "-q") if not number else None
        git(place.root, "add", "notes.txt")
        git(place.root, "-c", f"user.name={who}", "-c", "user.email=a@b.invalid", "commit", "-qm", "note")
    found = place.data(message)
    assert (found["commits"], found["authors"]) == (2, [{"name": "Zoe Park", "commits": 2}])
    assert "no commit is by 'hannah'; there are commits by Zoe Park, Ben Ode" in place.ask("commits by hannah").summary

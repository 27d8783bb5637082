"""A release happens completely or not at all, and the message says why it does not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from maintenance.release import last_release, write_changelog, write_version

ROOT = Path(__file__).resolve().parents[2]
FRAGMENT = "docs/changes/why.md"
GONE = '"event": {\n "Gone": {"text": "str"},'


class Repository:
    """A clone of this repository."""

    def __init__(self, root: Path) -> None:
        self.root = root
        subprocess.run(["git", "clone", "-q", ROOT.as_uri(), str(root)], check=True, capture_output=True)
        for name, value in (("user.name", "releaser"), ("user.email", "releaser@localhost")):
            self.git("config", name, value)

    def git(self, *words: str) -> str:
        return subprocess.run(["git", *words], cwd=self.root, check=True, capture_output=True, text=True).stdout

    def write(self, name: str, change: Callable[[str], str], *, committed: bool = True) -> None:
        path = self.root / name
        path.write_text(change(path.read_text("utf-8") if path.exists() else ""), "utf-8")
        if committed:
            self.git("add", "--all")
            self.git("commit", "--quiet", "--message", "A change")

    def release(self, *words: str) -> subprocess.CompletedProcess[str]:
        env = {
            **os.environ,
            "PYTHONPATH": f"{self.root / 'kernel'}:{self.root / 'tests'}",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        argv = [sys.executable, "-m", "maintenance.release", *words]
        return subprocess.run(argv, cwd=self.root, env=env, capture_output=True, text=True)

    def state(self) -> tuple[str, ...]:
        return self.git("rev-parse", "HEAD"), self.git("tag"), self.git("status", "--porcelain", "--ignored")


@pytest.fixture(scope="module")
def cloned(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository(tmp_path_factory.mktemp("release") / "clone")


@pytest.fixture
def repository(cloned: Repository) -> Iterator[Repository]:
    """The clone, reset after the test."""
    head = cloned.git("rev-parse", "HEAD").strip()
    yield cloned
    cloned.git("reset", "--quiet", "--hard", head)
    cloned.git("tag", "--delete", *cloned.git("tag", "--list", "v99.*").split())


def promised(text: str) -> str:
    """Adds an event that does not exist to a snapshot."""
    return text.replace('\n"event": {', f"\n{GONE}", 1)


def released(version: str) -> Callable[[str], str]:
    return lambda _: f"# Changelog\n\n## {version} (2026-01-01)\n\n- It was made.\n"


@pytest.mark.wide
def test_uncommitted_changes_stop_a_release(repository: Repository) -> None:
    repository.write("README.md", lambda text: text + "\n", committed=False)
    done = repository.release("99.0.0", "--dry")
    assert done.returncode == 1
    assert "not committed" in done.stderr


@pytest.mark.wide
def test_a_tag_that_is_there_stops_it(repository: Repository) -> None:
    repository.git("tag", "v99.0.0")
    assert "choose the next version" in repository.release("99.0.0", "--dry").stderr


@pytest.mark.wide
@pytest.mark.parametrize(("version", "why"), [("0.0.9", "is too low"), ("one", "three numbers")])
def test_a_malformed_or_too_low_version_stops_a_release(repository: Repository, version: str, why: str) -> None:
    done = repository.release(version, "--dry")
    assert (done.returncode, why in done.stderr) == (1, True), done.stderr


@pytest.mark.wide
def test_a_removed_public_thing_needs_a_fragment_and_a_major_version(repository: Repository) -> None:
    repository.write("docs/reference/public.json", promised)
    repository.write("CHANGELOG.md", released("1.4.0"))
    done = repository.release("1.5.0", "--dry")
    assert "event `Gone`: was removed" in done.stderr
    repository.write(FRAGMENT, lambda _: "Breaking: the event `Gone` is not sent any more.\n")
    done = repository.release("1.5.0", "--dry")
    assert "1.5.0 is too low, 2.0.0 is the lowest version that may follow" in done.stderr


def test_fragments_become_the_changelog_of_the_version(tmp_path: Path) -> None:
    for name, text in {
        "CHANGELOG.md": "# Changelog\n\nNewest first.\n\n## 1.0.0 (2026-01-01)\n\n- Old.\n",
        "docs/changes/README.md": "How.\n",
        "docs/changes/a.md": "One sentence,\nand [a guide](../guides/http.md#top).\n",
        "docs/changes/b.md": "Breaking: `x` is gone.\n",
        "pyproject.toml": 'name = "x"\nversion = "1.0.0"\n',
        "kernel/navigator_kernel/__init__.py": '__version__ = "1.0.0"\n',
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    before = datetime.now(UTC).date()
    write_changelog(tmp_path, "2.0.0")
    write_version(tmp_path, "2.0.0")
    assert (tmp_path / "CHANGELOG.md").read_text() in {
        f"# Changelog\n\nNewest first.\n\n## 2.0.0 ({day})\n\n- Breaking: `x` is gone.\n"
        "- One sentence,\n  and [a guide](docs/guides/http.md#top).\n\n## 1.0.0 (2026-01-01)\n\n- Old.\n"
        for day in (before, datetime.now(UTC).date())
    }
    assert last_release((tmp_path / "CHANGELOG.md").read_text()) == (2, 0, 0)
    assert [path.name for path in (tmp_path / "docs/changes").iterdir()] == ["README.md"]
    assert (tmp_path / "pyproject.toml").read_text() == 'name = "x"\nversion = "2.0.0"\n'
    assert (tmp_path / "kernel/navigator_kernel/__init__.py").read_text() == '__version__ = "2.0.0"\n'


@pytest.mark.ci
@pytest.mark.timeout(900)
def test_a_dry_run_does_all_of_it_and_leaves_nothing(repository: Repository) -> None:
    repository.write(FRAGMENT, lambda _: "`navigator why` shows more.\n")
    before = repository.state()
    done = repository.release("99.0.0", "--dry")
    print(done.stdout[-2000:])  # .ci/run shows it
    assert done.returncode == 0, done.stderr
    assert re.search(r"twine check --strict has no complaint: \S+\.whl, \S+\.tar\.gz\n", done.stdout)
    assert re.search(r"installed: navigator, version 99\.0\.0, \d\d skills\n", done.stdout)
    assert re.search(r"navigator_kernel-99\.0\.0\.cdx\.json: CycloneDX 1\.\d, [1-9]\d components\n", done.stdout)
    assert repository.state() == before

"""Every hostile case harms an installer that trusts it, and gets the expected verdict from ours."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hostile.cases import CASES, HARMFUL
from hostile.ground import HOST, Case, Ground, Order, skill
from hostile.manifests import MANIFESTS, twins
from hostile.trees import TREES, UNFETCHED
from hostile.unguarded import install
from navigator_kernel.cli.main import run

pytestmark = pytest.mark.sample(1)

ENOUGH = 60  # cases that harm the unguarded installer
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
TOGETHER = [
    case
    for case in (*TREES, *MANIFESTS)
    if case.code != UNFETCHED and case.way != "folder" and case.name != "tree-bomb"
]
Run = Callable[[Order], tuple[int, Any]]


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    made = Ground(tmp_path / "ground")
    monkeypatch.setenv("TMPDIR", str(made.temp))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("TOKEN", "TOKEN-IN-ENV")
    monkeypatch.chdir(made.naive)
    yield made
    made.open_folders()
    subprocess.run(["rm", "-rf", str(made.base)], check=True)  # some paths are too deep for shutil


@pytest.fixture
def ours(ground: Ground, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """The exit code and the one JSON document of the command line, run in this process."""

    def start(order: Order) -> tuple[int, Any]:
        monkeypatch.chdir(ground.ours)
        capfd.readouterr()
        code = run(["--root", str(ground.ours), *order.line()])
        out, err = capfd.readouterr()
        assert "Traceback (most recent" not in out + err
        document, end = json.JSONDecoder().raw_decode(out)
        assert out[end:] == "\n", f"more than one document: {out!r}"
        assert document["exit_code"] == code
        return code, document

    return start


def home() -> dict[str, bytes]:
    """The person's own files, without those that the kernel keeps about itself."""
    top = Path(os.environ["HOME"])
    ours = (str(top / ".local/state/navigator"), str(top / ".cache/navigator"))
    found = (path for path in sorted(top.rglob("*")) if path.is_file())
    return {str(path): path.read_bytes() for path in found if not set(ours) & set(map(str, path.parents))}


def told(ground: Ground) -> dict[str, object]:
    """The ground without the naive project, the upstream, fetched files, the process lock and git's ignore list."""
    found = ground.seen(ground.naive, ground.upstream, ground.ours / "mybox" / "cache")
    inner = f"ours/{'/'.join(HOST)}/.navigator"
    ours = {inner, f"{inner}/lock", "ours/.claude/skills/.gitignore", "ours/mybox/cache"}
    return {path: held for path, held in found.items() if path not in ours}


def message_of(document: Any) -> str:
    error = document.get("error", {"msg": "", "code": ""})
    assert error["code"] != "internal", error
    return str(error["msg"])


def test_there_are_enough_cases_that_harm() -> None:
    assert len(HARMFUL) >= ENOUGH
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.requirement("SAF-1")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_hostile_case_harms_the_unguarded_and_gets_its_verdict_here(case: Case, ground: Ground, ours: Run) -> None:
    order = case.build(ground)
    if case.harm is not None:
        outcome = install(ground, case.way, order)
        assert case.harm(ground, outcome), f"the case does no harm: {outcome}"
    ground.clear()
    outside = (ground.seen(ground.ours), home())
    before = told(ground)
    code, document = ours(order)
    message = message_of(document)
    assert code == case.code, message
    assert case.said in message
    assert ground.skills(ground.ours) == case.installed
    assert not ground.canary.exists()
    assert (ground.seen(ground.ours), home()) == outside
    assert not case.code or told(ground) == before
    sound(ground)
    if case.installed:
        shown = ours(Order(source="", words=("skill", "list", "--json")))[1]["skills"]
        assert case.installed <= {one["name"] for one in shown if one["status"] == "managed"}
        assert not UNSEEN.search(json.dumps(shown, ensure_ascii=False))
    for name in case.installed:
        assert ground.ours.joinpath(*HOST, ".navigator", f"{name}.json").is_file(), f"{name} has no receipt"


def sound(ground: Ground) -> None:
    """The project has only plain files with the expected modes and no bytes from outside, and `mine` is unchanged."""
    if ground.ours.joinpath(*HOST).is_symlink():
        return
    mine = ground.ours.joinpath(*HOST, "mine")
    if mine.exists():
        assert "written by hand" in (mine / "SKILL.md").read_text()
    for path in ground.ours.joinpath(*HOST).rglob("*"):
        held = path.lstat()
        assert path.is_dir() or path.is_file(), path
        assert not path.is_symlink()
        assert path.is_dir() or held.st_mode & 0o7777 in {0o644, 0o755, 0o600}, path
    assert not any(b"SECRET-8c1f" in data or b"root:x:0:0:" in data for _, data in ground.held(ground.ours))


def all_of_them(ground: Ground) -> str:
    """The URL of one repository with a folder for each case that can be fetched, and one good skill."""
    trees = []
    for case in TOGETHER:
        case.build(ground)
        trees.append(("40000", case.name, ground.tree()))
    ground.commit(skill("fine"), raw=[*trees])
    subprocess.run(["git", "-C", str(ground.upstream), "cat-file", "-e", "HEAD^{tree}"], check=True)
    return ground.url


@pytest.mark.wide
def test_one_repository_of_them_all_still_gives_its_one_good_skill(ground: Ground, ours: Run) -> None:
    url = all_of_them(ground)
    code, document = ours(Order(source=url, skill="fine"))
    assert (code, [one["name"] for one in document["skills"]]) == (0, ["fine"])
    assert ground.skills(ground.ours) == {"fine"}
    sound(ground)


@pytest.mark.wide
def test_one_repository_of_them_all_is_listed_and_gives_only_what_does_no_harm(ground: Ground, ours: Run) -> None:
    url = all_of_them(ground)
    code, document = ours(Order(source="", words=("skill", "info", url, "--json")))
    assert (code, len(document["skills"]) > len(TOGETHER) // 2) == (0, True)
    assert not UNSEEN.search(json.dumps(document, ensure_ascii=False))
    code, document = ours(Order(source="", words=("skill", "install", "--all", "--json", url)))
    left = {one["path"] for one in document["left_out"] if one["msg"] and one["reason"]}
    assert (code, "fine" in ground.skills(ground.ours), ground.canary.exists()) == (1, True, False)
    assert len(left) > len(TOGETHER) // 4 and document["counts"]["blocked"] > 0
    assert ground.skills(ground.ours) == {one["name"] for one in document["skills"]}
    sound(ground)


def test_only_one_of_two_skills_with_lookalike_names_is_installed(ground: Ground, ours: Run) -> None:
    code, document = ours(twins(ground))
    (left,) = document["left_out"]
    assert (code, left["reason"], ground.skills(ground.ours)) == (1, "lookalike", {"coco"})


BOMBS = [
    case
    for case in CASES
    if case.name in {"yaml-aliases", "yaml-depth", "scalar-of-a-megabyte", "file-too-large", "tree-bomb"}
]


@pytest.mark.parametrize("case", BOMBS, ids=lambda case: case.name)
def test_a_bomb_is_refused_by_a_process_of_its_own_within_a_small_memory(case: Case, ground: Ground) -> None:
    order = case.build(ground)
    limit = "import resource; resource.setrlimit(resource.RLIMIT_DATA, (200 * 2**20,) * 2)\n"
    start = f"{limit}from navigator_kernel.cli.main import main; main()"
    words = [sys.executable, "-c", start, "--root", str(ground.ours), *order.line()]
    before = os.times().children_user
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (case.code, False), done.stderr
    assert case.said in json.loads(done.stdout)["error"]["msg"]
    assert os.times().children_user - before < 2

"""Gives every test a home of its own, and the same random examples on every machine."""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from homes import CACHE, contents, enter, fill
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.index.kept_vectors import KeptVectors
from navigator_kernel.adapters.index.use_encoder import UseEncoder
from navigator_kernel.adapters.processes.module_child import ModuleChild
from navigator_kernel.bootstrap.parts import open_catalogue, open_sandbox
from navigator_kernel.routing.entries import entry_of
from navigator_kernel.routing.index import RoutingIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
    from pathlib import Path

    from homes import Contents

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the kernel sets it: the last digits depend on it

pytest_plugins = ["requirement_marks", "wide", "pytester"]

settings.load_profile("ci")  # hypothesis's own: no deadline, the same examples each time, no example database

FAILED = pytest.StashKey[bool]()
AT_ONCE = 2_000  # folders, 0.8 GB
LONG = {"tests/gateway/test_contract.py", "tests/gateway/test_ends.py", "tests/tools/test_killed.py"}
PARTS = "::test_no_file_of_2000_projects_answers_a_question["


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collects the tests without the garbage collector, which takes as long as the rest of it, and lets no later collection
    go through all the tests and modules again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)  # of xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """`--dist loadfile` keeps the tests of a file together, which share what takes long to make; the one that is cut in
    parts shares little, and its parts go to either worker. (`loadgroup` of xdist 3.8 groups nothing under pytest 9.2.)
    Files of a few tests that take minutes come first: at the end one worker would do them while the other has nothing."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
        def _split_scope(self, nodeid: str) -> str:
            return nodeid if PARTS in nodeid else super()._split_scope(nodeid)

        def _assign_work_unit(self, node: Any) -> None:
            for scope in LONG & self.workqueue.keys():
                self.workqueue.move_to_end(scope, last=False)
            super()._assign_work_unit(node)

    return Scheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Notes that the test failed: its folders are kept."""
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report


@pytest.fixture(scope="session", autouse=True)
def heard_signals() -> None:
    """What `nohup make test &` makes every process ignore, and Python passes on to the processes that it starts."""
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


@pytest.fixture(scope="session")
def new_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A new folder whose name begins so. `mktemp` looks through all that are there first: 20 ms after 5,000 tests."""
    base, numbers = tmp_path_factory.getbasetemp(), count()

    def make(name: str) -> Path:
        folder = base / f"{name}{next(numbers)}"
        folder.mkdir(mode=0o700)
        return folder

    return make


@pytest.fixture(scope="session")
def done_with() -> Iterator[list[Path]]:
    """Folders of tests that passed. Many are removed at once: for seconds after a removal ext4 makes files slowly."""
    folders: list[Path] = []
    yield folders
    remove(folders)


@pytest.fixture
def folder_of_test(
    new_folder: Callable[[str], Path], done_with: list[Path], request: pytest.FixtureRequest
) -> Iterator[Callable[[str], Path]]:
    """Makes a new folder whose name begins so. It goes once the test has passed: all of them need 7 GB."""
    made: list[Path] = []

    def make(name: str) -> Path:
        made.append(new_folder(name))
        return made[-1]

    yield make
    if FAILED not in request.node.stash:
        done_with += made
    if len(done_with) >= AT_ONCE:
        remove(done_with)


def remove(folders: list[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    folders.clear()


@pytest.fixture
def tmp_path(folder_of_test: Callable[[str], Path], request: pytest.FixtureRequest) -> Path:
    """As pytest's own."""
    return folder_of_test(f"{re.sub(r'[^A-Za-z0-9_]', '_', request.node.name)[:30]}-")


@pytest.fixture(scope="session")
def pattern_sets(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Path]:
    """What the scanner compiles in a new home, which takes it 0.8 s each time."""
    folder = tmp_path_factory.mktemp("patterns")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        scanner = ModuleChild("navigator_kernel.bootstrap.scanning.content_child", memory=2**30)
        scanner.ask({"files": {"SKILL.md": b"---\nname: a\n---\n"}, "secrets": True}, seconds=60)
        scanner.close()
    return sorted((folder / CACHE / "patterns").glob("*.hsdb"))  # none without Hyperscan


@pytest.fixture(scope="session")
def encoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the encoder's arrays are prepared, which takes 2 s in each new home."""
    return tmp_path_factory.mktemp("encoders")


@pytest.fixture(scope="session")
def encoder(encoder_folder: Path) -> UseEncoder:
    """The real one, prepared."""
    made = UseEncoder(encoder_folder, lambda: FolderWriter([encoder_folder]))
    made.encode(["a"], "query")
    return made


@pytest.fixture(scope="session")
def vectors(tmp_path_factory: pytest.TempPathFactory, encoder: UseEncoder) -> Path:
    """The vectors of the shipped skills' texts, which each new home would take 0.6 s to make."""
    folder = tmp_path_factory.mktemp("vectors")
    kept = KeptVectors(encoder, folder, lambda: FolderWriter([folder]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        skills = open_catalogue(folder).list_resources()
    index = RoutingIndex(folder / "index", FolderWriter([folder]), kept)
    index.sync([entry_of(skill) for skill in skills])
    return kept.path


@pytest.fixture(scope="session")
def sandbox_choice(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Path]:
    """Which kind of sandbox works here, which each new home would start four processes to find out; on some machines none."""
    folder = tmp_path_factory.mktemp("sandbox")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        kept = open_sandbox()
        kept.rung()
    return [kept.memory] if kept.memory.is_file() else []


@pytest.fixture(scope="session")
def caches(
    pattern_sets: Sequence[Path], encoder: UseEncoder, vectors: Path, sandbox_choice: Sequence[Path]
) -> Mapping[str, Sequence[Path]]:
    """What a home has of its caches, by folder."""
    prepared = f"encoders/{encoder.prepared.name}"
    return {
        "patterns": pattern_sets,
        prepared: sorted(encoder.prepared.iterdir()),
        "encoders": [vectors],
        "": sandbox_choice,
    }


@pytest.fixture(scope="session")
def spare_homes() -> dict[str, tuple[Path, Contents]]:
    """By the caches in it: a home that no test changed, with its contents at the beginning."""
    return {}


@pytest.fixture(autouse=True)
def home(
    new_folder: Callable[[str], Path],
    done_with: list[Path],
    spare_homes: dict[str, tuple[Path, Contents]],
    caches: Mapping[str, Sequence[Path]],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Iterator[Path]:
    """An empty HOME with a git identity; nothing of the person who runs the tests shows through. One that a test did not
    change is the home of a later test: making and removing it takes several milliseconds."""
    key = repr(caches)
    if key not in spare_homes:
        made = fill(new_folder("home"), caches)
        spare_homes[key] = made, contents(made)
    folder, before = spare_homes.pop(key)
    yield enter(folder, monkeypatch)
    if contents(folder) == before:
        spare_homes[key] = folder, before
    elif FAILED not in request.node.stash:
        done_with.append(folder)

"""Gives every test its own home directory, and the same random examples on every machine."""

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

from homes import contents, enter, fill
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.index.use_encoder import KeptVectors, UseEncoder
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.routing.entries import entry_of
from navigator_kernel.routing.index import RoutingIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
    from pathlib import Path

    from homes import Contents

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the kernel sets it: the last digits of results depend on it

pytest_plugins = ["postgres_server", "requirement_marks", "wide", "pytester"]

settings.load_profile("ci")  # hypothesis's own profile: no deadline, the same examples each time, no example database

FAILED = pytest.StashKey[bool]()
AT_ONCE = 2_000  # folders, 0.8 GB
LONG = {"tests/gateway/test_contract.py", "tests/gateway/test_ends.py", "tests/tools/test_killed.py"}
PARTS = "::test_no_file_of_2000_projects_answers_a_question["


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collects the tests with the garbage collector off, which would double the time, and freezes them, so that no
    later garbage collection goes through all the tests and modules again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)  # a hook of xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """`--dist loadfile` keeps the tests of a file together, because they share fixtures that are slow to make; the file that
    is split shares little, and either worker takes its parts. (`loadgroup` of xdist 3.8 groups nothing under pytest 9.2.)
    Files with a few tests that take minutes come first, so that no worker is idle at the end."""
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
    """Notes that the test failed, so that its folders are kept."""
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report


@pytest.fixture(scope="session", autouse=True)
def heard_signals() -> None:
    """Restores signals that `nohup make test &` makes every process ignore: Python passes this on to its children."""
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


@pytest.fixture(scope="session")
def new_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes a folder with a name prefix. `mktemp` scans all existing folders first: 20 ms after 5,000 tests."""
    base, numbers = tmp_path_factory.getbasetemp(), count()

    def make(name: str) -> Path:
        folder = base / f"{name}{next(numbers)}"
        folder.mkdir(mode=0o700)
        return folder

    return make


@pytest.fixture(scope="session")
def done_with() -> Iterator[list[Path]]:
    """Folders of tests that passed, removed in batches: for seconds after a removal, ext4 creates files slowly."""
    folders: list[Path] = []
    yield folders
    remove(folders)


@pytest.fixture
def folder_of_test(
    new_folder: Callable[[str], Path], done_with: list[Path], request: pytest.FixtureRequest
) -> Iterator[Callable[[str], Path]]:
    """Makes a folder with a name prefix. It is removed once the test has passed: the folders of all tests need 7 GB."""
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
    """Like pytest's own `tmp_path`."""
    return folder_of_test(f"{re.sub(r'[^A-Za-z0-9_]', '_', request.node.name)[:30]}-")


@pytest.fixture(scope="session")
def encoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the encoder's prepared arrays, which take 2 s to prepare in each new home."""
    return tmp_path_factory.mktemp("encoders")


@pytest.fixture(scope="session")
def encoder(encoder_folder: Path) -> UseEncoder:
    """The real encoder, prepared."""
    made = UseEncoder(encoder_folder, lambda: FolderWriter([encoder_folder]))
    made.encode(["a"], "query")
    return made


@pytest.fixture(scope="session")
def vectors(tmp_path_factory: pytest.TempPathFactory, encoder: UseEncoder) -> Path:
    """The vectors of the shipped skills' texts, which take 0.6 s to compute in each new home."""
    folder = tmp_path_factory.mktemp("vectors")
    kept = KeptVectors(encoder, folder, lambda: FolderWriter([folder]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        skills = Project(folder, agents=False).catalogue.list_resources()
    index = RoutingIndex(folder / "index", FolderWriter([folder]), kept)
    index.sync([entry_of(skill) for skill in skills])
    return kept.path


@pytest.fixture(scope="session")
def sandbox_choice(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Path]:
    """The cached kind of sandbox that works here: finding it takes four processes. On some machines there is none."""
    folder = tmp_path_factory.mktemp("sandbox")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        kept = Project(folder, agents=False).contained
        kept.rung()
    return [kept.memory] if kept.memory.is_file() else []


@pytest.fixture(scope="session")
def caches(encoder: UseEncoder, vectors: Path, sandbox_choice: Sequence[Path]) -> Mapping[str, Sequence[Path]]:
    """The cache files of a home, by folder."""
    prepared = f"encoders/{encoder.prepared.name}"
    return {
        prepared: sorted(encoder.prepared.iterdir()),
        "encoders": [vectors],
        "": sandbox_choice,
    }


@pytest.fixture(scope="session")
def spare_homes() -> dict[str, tuple[Path, Contents]]:
    """Homes that no test changed, each with its contents at the beginning, by their caches."""
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
    """An empty HOME with a git identity, isolated from the person who runs the tests. A home that a test did not change
    is used again by a later test: making and removing one takes several milliseconds."""
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

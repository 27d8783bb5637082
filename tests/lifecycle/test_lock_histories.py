"""Random histories of two clones with five branches: the lock against a small model of what must hold (LIF-13).

The model knows for each commit which version of which skill the project wants. The lock is written, read and merged by
the functions that the commands use.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from navigator_kernel.errors import ConsentNeeded
from navigator_kernel.skills.catalog.receipts import tree_digest
from navigator_kernel.skills.install.conflict import Side, Sides, merged, sides_of
from navigator_kernel.skills.install.lockfile import entries_in, lock_bytes, lock_states, pin
from navigator_kernel.values.receipt import InstalledFile, Receipt

pytestmark = pytest.mark.sample(1)

HISTORIES = int(os.environ.get("LOCK_HISTORIES", "300"))
NAMES, BRANCHES = ("a", "b", "c", "d"), ("main", "one", "two", "three", "four")
LOCK = Path("skills.lock.json")
_FOLDER = TemporaryDirectory()  # every skill of a model has its files
FOLDERS = Path(_FOLDER.name)
for _name in NAMES:
    (FOLDERS / _name).mkdir()
Model = dict[str, int]


def receipt(name: str, version: int) -> Receipt:
    files = (InstalledFile(path="SKILL.md", sha256=f"{version:064x}", mode=0o644, size=version),)
    return Receipt(
        name=name,
        source=f"file:///up/{name}",
        ref="",
        commit=f"{version:040x}",
        subpath=name,
        tree="",
        files=files,
        digest=tree_digest(files),
        verdict="ok",
        installed_at="now",
    )


def version_of(entry: object) -> int:
    assert isinstance(entry, dict)
    return int(entry["commit"], 16)


def model_of(lock: bytes) -> Model:
    return {name: version_of(entry) for name, entry in entries_in(lock, LOCK).items()}


@dataclass(frozen=True)
class Commit:
    lock: bytes
    parents: tuple[int, ...]


@dataclass
class Clone:
    branch: str = "main"
    lock: bytes = b""
    here: dict[str, Receipt] = field(default_factory=dict)


@dataclass
class World:
    commits: list[Commit]
    heads: dict[str, int]
    clones: tuple[Clone, Clone]

    def commit(self, clone: Clone, *parents: int) -> None:
        self.commits.append(Commit(clone.lock, (self.heads[clone.branch], *parents)))
        self.heads[clone.branch] = len(self.commits) - 1

    def ancestors(self, at: int) -> set[int]:
        seen, waiting = set[int](), [at]
        while waiting:
            one = waiting.pop()
            if one not in seen:
                seen.add(one)
                waiting += self.commits[one].parents
        return seen

    def base(self, one: int, other: int) -> int:
        return max(self.ancestors(one) & self.ancestors(other))


def new_world() -> World:
    first = Commit(lock_bytes({}), ())
    return World([first], dict.fromkeys(BRANCHES, 0), (Clone(lock=first.lock), Clone(lock=first.lock)))


def install(world: World, clone: Clone, name: str, version: int) -> None:
    before = model_of(clone.lock)
    clone.here[name] = receipt(name, version)
    clone.lock = lock_bytes(entries_in(clone.lock, LOCK), [clone.here[name]])
    assert model_of(clone.lock) == {**before, name: version}
    world.commit(clone)


def uninstall(world: World, clone: Clone, name: str) -> None:
    before = model_of(clone.lock)
    clone.here.pop(name, None)
    clone.lock = lock_bytes(entries_in(clone.lock, LOCK), (), [name])
    assert model_of(clone.lock) == {own: version for own, version in before.items() if own != name}
    world.commit(clone)


def sync(world: World, clone: Clone) -> None:
    clone.here = {name: receipt(name, version) for name, version in model_of(clone.lock).items()}
    assert set(lock_states(entries_in(clone.lock, LOCK), clone.here, FOLDERS).values()) <= {"same"}


def checkout(world: World, clone: Clone, branch: str) -> None:
    clone.branch, clone.lock = branch, world.commits[world.heads[branch]].lock
    wanted = model_of(clone.lock)
    here = {name: int(one.commit, 16) for name, one in clone.here.items()}
    for name, state in lock_states(entries_in(clone.lock, LOCK), clone.here, FOLDERS).items():
        assert (state == "missing") == (name not in here)
        assert (state == "extra") == (name not in wanted)
        assert (state == "same") == (here.get(name) == wanted.get(name))


def merge(world: World, clone: Clone, branch: str, side: Side) -> None:
    mine, other = world.heads[clone.branch], world.heads[branch]
    base = world.commits[world.base(mine, other)].lock
    locks = (base, world.commits[mine].lock, world.commits[other].lock)
    known, ours, theirs = map(model_of, locks)
    both = sorted(
        name
        for name in {*known, *ours, *theirs}
        if ours.get(name) != theirs.get(name)
        and ours.get(name) != known.get(name)
        and theirs.get(name) != known.get(name)
    )
    sides, take = Sides(*(entries_in(lock, LOCK) for lock in locks)), dict.fromkeys(both, side)
    if both:
        with pytest.raises(ConsentNeeded) as caught:
            merged(sides, {})
        assert [one.name for one in caught.value.data["conflicts"]] == both
    clone.lock = lock_bytes(merged(sides, take))
    wanted = {
        name: (ours if (name in both and side == "ours") or theirs.get(name) == known.get(name) else theirs).get(name)
        for name in {*known, *ours, *theirs}
    }
    assert model_of(clone.lock) == {name: version for name, version in wanted.items() if version is not None}
    swapped = merged(
        Sides(sides.base, sides.theirs, sides.ours), dict.fromkeys(both, "ours" if side == "theirs" else "theirs")
    )
    assert lock_bytes(swapped) == clone.lock, "it matters who merges"
    world.commit(clone, other)


OPERATIONS = st.one_of(
    st.tuples(st.just(install), st.sampled_from(NAMES), st.integers(1, 9)),
    st.tuples(st.just(uninstall), st.sampled_from(NAMES)),
    st.tuples(st.just(sync)),
    st.tuples(st.just(checkout), st.sampled_from(BRANCHES)),
    st.tuples(st.just(merge), st.sampled_from(BRANCHES), st.sampled_from(("ours", "theirs"))),
)
HISTORY = st.lists(st.tuples(st.integers(0, 1), OPERATIONS), max_size=40)


# LIF-13
@settings(max_examples=HISTORIES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(HISTORY)
def test_each_command_changes_its_own_entries_and_a_merge_keeps_what_one_side_changed(
    history: list[tuple[int, tuple[object, ...]]],
) -> None:
    world = new_world()
    for who, (operation, *words) in history:
        clone = world.clones[who]
        if operation is not sync:  # as after a pull: the branch may have moved
            clone.lock = world.commits[world.heads[clone.branch]].lock
        assert callable(operation)
        operation(world, clone, *words)
    for one in world.commits:
        assert lock_bytes(entries_in(one.lock, LOCK)) == one.lock


VERSIONS = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 3))


# LIF-13
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(VERSIONS, VERSIONS, VERSIONS, st.sampled_from(("--diff3", "--zdiff3")))
def test_conflict_markers_alone_give_both_sides_back(
    tmp_path_factory: pytest.TempPathFactory, base: Model, ours: Model, theirs: Model, style: str
) -> None:
    folder = tmp_path_factory.mktemp("merge")
    models = {"ours": ours, "base": base, "theirs": theirs}
    for name, model in models.items():
        (folder / name).write_bytes(lock_bytes({}, [receipt(*one) for one in model.items()]))
    done = subprocess.run(
        ["git", "merge-file", "-p", style, *models], cwd=folder, capture_output=True, timeout=60, check=False
    )
    sides = sides_of(folder / "lock", done.stdout)
    if done.returncode == 0:
        assert sides is None
        return
    assert sides is not None
    entries = merged(sides, dict.fromkeys(NAMES, "ours"))
    for name, version in ours.items():
        if theirs.get(name) == version or name not in base:
            assert pin(entries[name]) == pin(lock_bytes_entry(name, version))


def lock_bytes_entry(name: str, version: int) -> dict[str, object]:
    return dict(entries_in(lock_bytes({}, [receipt(name, version)]), LOCK)[name])

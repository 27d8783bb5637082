"""Manifests that an earlier process read: which are reused, and which are read again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.stores import manifest_store
from navigator_kernel.adapters.stores.manifest_store import ManifestStore
from navigator_kernel.skills.catalog import catalogue as reading
from navigator_kernel.skills.catalog.catalogue import MANY, ResourceCatalogue
from navigator_kernel.skills.catalog.listing import Root, Stamp
from navigator_kernel.values.resource import SkillDef

if TYPE_CHECKING:
    from pathlib import Path

RICH = """---
name: {name}
description: "Does {name} \U0001f600 完成任务"
tags: [a, 数据]
triggers: do {name}
tools: [read_file]
required_params:
  - {{name: url, prompt: "Which?", validation: url_format}}
priority: 70
timeout: 2.5
disable-model-invocation: true
odd: {{deep: [1, null, 2.5]}}
---
## System Prompt
Be {name}.
"""
Opened = Callable[[], ResourceCatalogue]


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """Opens a catalogue of many skills as each new process does."""
    for at in range(MANY + 1):
        path = tmp_path / "skills" / f"skill-{at}" / "SKILL.md"
        path.parent.mkdir(parents=True)
        path.write_text(RICH.format(name=f"skill-{at}"), encoding="utf-8")

    def opened() -> ResourceCatalogue:
        store = ManifestStore(tmp_path / "kept" / "one.json", lambda: FolderWriter([tmp_path / "kept"]))
        return ResourceCatalogue(roots=(Root(path=tmp_path / "skills", level="project"),), kept=store)

    return opened


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The skills whose files were read."""
    seen: list[str] = []
    real = reading._read

    def watched(root: Root, path: Path, stamp: Stamp) -> object:
        seen.append(path.parent.name)
        return real(root, path, stamp)

    monkeypatch.setattr(reading, "_read", watched)
    return seen


@pytest.mark.requirement("REG-1")
@pytest.mark.requirement("CTX-5")
def test_the_next_process_has_the_same_resources_without_reading_a_file(opened: Opened, read: list[str]) -> None:
    first = opened().list_resources()
    assert len(read) == MANY + 1
    read.clear()
    assert opened().list_resources() == first
    assert read == []
    assert first[0].required_params and first[0].extra and not first[0].implicit


@pytest.mark.parametrize("how", ["size", "time alone", "same size and time"])
def test_a_file_that_changed_is_read_again(opened: Opened, read: list[str], tmp_path: Path, how: str) -> None:
    opened().list_resources()
    read.clear()
    path = tmp_path / "skills" / "skill-7" / "SKILL.md"
    before, text = path.stat(), path.read_text(encoding="utf-8")
    match how:
        case "size":
            path.write_text(text.replace("Does", "Changes"), encoding="utf-8")
        case "time alone":
            os.utime(path, ns=(1, 1))
        case _:
            path.write_text(text.replace("Does", "Sees"), encoding="utf-8")
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    held = opened().find("skill-7")
    assert held is not None and held.description.startswith({"size": "Changes", "time alone": "Does"}.get(how, "Sees"))
    assert read == ["skill-7"]


@pytest.mark.parametrize("harm", [b"", b"[", b"null", b'{"reader": 1}', b"\xff", b'{"skills": [["a"]]}'])
def test_a_store_that_is_not_whole_is_read_past(opened: Opened, tmp_path: Path, harm: bytes) -> None:
    first = opened().list_resources()
    (tmp_path / "kept" / "one.json").write_bytes(harm)
    assert opened().list_resources() == first


@pytest.mark.parametrize("change", [{"name": 5, "no": 1}, {"required_params": [{"no": 1}]}, []])
def test_an_entry_that_does_not_fit_is_read_past(opened: Opened, tmp_path: Path, change: object) -> None:
    first, file = opened().list_resources(), tmp_path / "kept" / "one.json"
    body = json.loads(file.read_bytes())
    body["skills"][0][2] = change
    file.write_text(json.dumps(body))
    assert opened().list_resources() == first


def test_after_a_change_of_release_all_manifests_are_read_again(
    opened: Opened, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened().list_resources()
    read.clear()
    monkeypatch.setattr(manifest_store, "__version__", "0.0.0")
    opened().list_resources()
    assert len(read) == MANY + 1


def test_skills_of_another_root_are_not_taken_for_this_ones(opened: Opened, tmp_path: Path) -> None:
    opened().list_resources()
    store = ManifestStore(tmp_path / "kept" / "one.json", lambda: FolderWriter([tmp_path / "kept"]))
    user = ResourceCatalogue(roots=(Root(path=tmp_path / "skills", level="user"),), kept=store)
    assert {skill.level for skill in user.list_resources()} == {"user"}


def test_a_manifest_that_json_cannot_represent_is_not_stored(tmp_path: Path) -> None:
    store = ManifestStore(tmp_path / "one.json", lambda: FolderWriter([tmp_path]))
    plain = SkillDef(name="a", description="", path=tmp_path / "a", folder=None)
    odd = SkillDef(name="b", description="", path=tmp_path / "b", folder=None, extra={1: "x"})  # type: ignore[dict-item]  # YAML has keys that are numbers
    stamp = (1, 2, 3, 4)
    store.save([(str(plain.path), stamp, plain), (str(odd.path), stamp, odd)])
    assert store.load() == {str(plain.path): (stamp, plain)}


def test_a_store_that_cannot_be_written_stops_nothing(opened: Opened, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("a file")
    assert len(opened().list_resources()) == MANY + 1


def test_only_the_stores_used_last_are_kept(tmp_path: Path) -> None:
    for at in range(manifest_store.PROJECTS + 3):
        ManifestStore(tmp_path / f"{at}.json", lambda: FolderWriter([tmp_path])).save([])
        os.utime(tmp_path / f"{at}.json", (at, at))
    ManifestStore(tmp_path / "last.json", lambda: FolderWriter([tmp_path])).save([])
    left = {path.stem for path in tmp_path.glob("*.json")}
    assert len(left) == manifest_store.PROJECTS and "last" in left and "0" not in left

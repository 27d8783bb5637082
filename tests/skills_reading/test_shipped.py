"""What counts as shipped: the bytes of this release, in any place, compiled or not."""

from __future__ import annotations

import py_compile
import shutil
from typing import TYPE_CHECKING

import pytest

from navigator_kernel.bootstrap.places import shipped_digests, shipped_home
from navigator_kernel.skills.catalog.catalogue import ResourceCatalogue
from navigator_kernel.skills.catalog.listing import Root

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def copied(tmp_path: Path) -> ResourceCatalogue:
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(shipped_home().skills / "word-count", tmp_path / "word-count", ignore=ignore)
    return ResourceCatalogue(roots=(Root(path=tmp_path, level="project"),), shipped=shipped_digests())


def is_shipped(catalogue: ResourceCatalogue) -> bool:
    skill = catalogue.find("word-count")
    assert skill is not None
    return catalogue.is_shipped(skill)


def test_a_copy_of_a_shipped_skill_is_shipped(copied: ResourceCatalogue) -> None:
    assert is_shipped(copied)


def test_a_shipped_skill_with_compiled_bytecode_still_counts_as_shipped(
    copied: ResourceCatalogue, tmp_path: Path
) -> None:
    py_compile.compile(str(tmp_path / "word-count" / "scripts" / "word_count.py"), doraise=True)
    assert (tmp_path / "word-count" / "scripts" / "__pycache__").is_dir()
    assert is_shipped(copied)


def test_one_more_byte_in_its_script_is_another_skill(copied: ResourceCatalogue, tmp_path: Path) -> None:
    with (tmp_path / "word-count" / "scripts" / "word_count.py").open("a") as file:
        file.write("\n")
    assert not is_shipped(copied)


def test_one_more_file_is_another_skill(copied: ResourceCatalogue, tmp_path: Path) -> None:
    (tmp_path / "word-count" / "more.py").write_text("")
    assert not is_shipped(copied)

"""The files that the arguments of a skill name in plain words."""

from __future__ import annotations

from pathlib import Path

import pytest

from navigator_kernel.adapters.files.project_files import ProjectFiles
from tables import cases


@pytest.mark.requirement("TOL-9")
@cases("text, names")
def test_a_path_in_the_text_is_that_file_and_not_another_of_its_name(
    tmp_path: Path, text: str, names: tuple[str, ...]
) -> None:
    root = tmp_path.resolve()
    for name in ("My Notes.txt", "data/My Notes.txt", "sales.csv", "data/sales.csv", "船 歌.txt", "data/船 歌.txt"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(name)
    found = ProjectFiles(root=root, base=root).named(text.replace("ROOT", str(root)))
    assert tuple(str(path.relative_to(root)) for path in found) == names

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


@pytest.mark.requirement("TOL-9", "SAF-1")
@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("look at src/app", ("src/app",)),
        ("check ./docs and @src", ("docs", "src")),
        ("检查 src/ 里的代码", ("src",)),
        ("read 'my docs/'", ("my docs",)),
        ("write docs about src", ()),  # words that may mean anything
        ("see src/app/main.py", ("src/app/main.py",)),
        ("look at ./ and ../ and / and .git/ and https://example.org/src/app", ()),
    ],
)
def test_a_path_of_a_folder_is_that_folder(tmp_path: Path, text: str, names: tuple[str, ...]) -> None:
    root = tmp_path.resolve() / "project"
    for name in ("src/app/main.py", "docs/a.md", "my docs/b.md", ".git/config"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    found = ProjectFiles(root=root, base=root).named(text)
    assert tuple(str(path.relative_to(root)) for path in found) == names

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.errors import NotLoadable, Refused
from skill_repositories import add_raw, make_repo, skill_text

ONE = {"solo/SKILL.md": skill_text("solo")}

HOSTILE = {
    "escaping link": {"solo/passwd": ("120000", b"/etc/passwd")},
    "link out of the skill": {"solo/up": ("120000", b"../other/secret")},
    "dangling link": {"solo/gone": ("120000", b"nowhere")},
    "link to a folder": {"solo/sub/a": ("100644", b"a"), "solo/dir": ("120000", b"sub")},
    "submodule": {"solo/module": ("160000", b"")},
    "case collision": {"solo/Readme": ("100644", b"a"), "solo/README": ("100644", b"b")},
    "folder collision": {"solo/Sub/a": ("100644", b"a"), "solo/sub/b": ("100644", b"b")},
    "unicode collision": {"solo/caf\u00e9": ("100644", b"a"), "solo/cafe\u0301": ("100644", b"b")},
    "control character": {"solo/a\x1b[31mb": ("100644", b"a")},
    "bidi character": {"solo/a\u202etxt.py": ("100644", b"a")},
    "backslash": {"solo/a\\..\\b": ("100644", b"a")},
    "too deep": {"solo/" + "d/" * 13 + "f": ("100644", b"a")},
    "too large": {"solo/big": ("100644", b"x" * (10 * 1024 * 1024 + 1))},
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_skill_that_is_not_safe_to_write_is_refused(project: Any, tmp_path: Path, case: str) -> None:
    repo = make_repo(tmp_path, ONE)
    add_raw(repo, HOSTILE[case])
    with pytest.raises(Refused) as caught:
        project.run("install", source=f"file://{repo}")
    assert "\x1b" not in caught.value.message
    assert not project.skills.exists()


def test_a_skill_with_too_many_files_is_refused(project: Any, tmp_path: Path) -> None:
    files = {f"solo/f{number}": "x" for number in range(2_001)}
    with pytest.raises(Refused, match="2002 files"):
        project.run("install", source=f"file://{make_repo(tmp_path, {**ONE, **files})}")


def test_a_link_inside_a_skill_becomes_the_file_it_points_to(project: Any, tmp_path: Path) -> None:
    repo = make_repo(tmp_path, {**ONE, "solo/docs/a.md": "text"})
    add_raw(repo, {"solo/b.md": ("120000", b"docs/a.md"), "solo/docs/c.md": ("120000", b"../b.md")})
    project.run("install", source=f"file://{repo}")
    assert not (project.skills / "solo" / "docs" / "c.md").is_symlink()
    assert (project.skills / "solo" / "docs" / "c.md").read_text() == "text"


def test_a_hostile_neighbour_does_not_keep_a_good_skill_out(project: Any, tmp_path: Path) -> None:
    repo = make_repo(tmp_path, ONE)
    add_raw(repo, {"bad/SKILL.md": ("100644", b"x"), "bad/passwd": ("120000", b"/etc/passwd")})
    assert project.run("install", source=f"file://{repo}", skill="solo")["changed"] is True


def test_a_manifest_that_cannot_be_used_keeps_the_skill_out(project: Any, tmp_path: Path) -> None:
    repo = make_repo(tmp_path, {"solo/SKILL.md": "---\nname: solo\n"})
    with pytest.raises(NotLoadable):
        project.run("install", source=f"file://{repo}")


def test_a_name_that_reads_like_an_installed_one_is_refused(project: Any, tmp_path: Path) -> None:
    (project.skills / "So_Lo").mkdir(parents=True)
    repo = make_repo(tmp_path, {"x/SKILL.md": skill_text("so-lo")})
    with pytest.raises(Refused, match="reads like"):
        project.run("install", source=f"file://{repo}")


#
def test_a_link_in_a_repository_cannot_move_the_folder_of_skills(project: Any, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (project.root / ".claude").mkdir()
    (project.root / ".claude" / "skills").symlink_to(outside)
    with pytest.raises(Refused, match="leads out"):
        project.run("install", source=f"file://{make_repo(tmp_path, ONE)}")
    assert not list(outside.iterdir())

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.adapters.sources.git import TreeEntry
from navigator_kernel.errors import NotLoadable, Refused
from navigator_kernel.skills.source.discover import Found, Tree, find_skills
from navigator_kernel.skills.source.gate import PlannedFile, admit, unread_links
from skill_repositories import add_raw, make_repo, skill_text

pytestmark = pytest.mark.sample(1)

ONE = {"solo/SKILL.md": skill_text("solo")}

DEAD = {
    "a folder of the author's machine": {"solo/gone": ("120000", b"/home/someone/nowhere")},
    "a disk of the author's machine": {"solo/gone": ("120000", b"/Volumes/Work/shared/rules.md")},
    "nothing": {"solo/gone": ("120000", b"nowhere")},
    "nothing in another folder": {"solo/gone": ("120000", b"../other/secret")},
    "another dead link": {"solo/gone": ("120000", b"x/y"), "solo/x": ("120000", b"/srv/x")},
}
HOSTILE = {
    "link to a file of every machine": {"solo/passwd": ("120000", b"/etc/passwd")},
    "link to a file of this person": {"solo/key": ("120000", b"~/.ssh/id_rsa")},
    "link above the repository": {"solo/up": ("120000", b"../../../../etc/passwd")},
    "manifest that is a dead link": {"solo/SKILL.md": ("120000", b"/etc/passwd")},
    "link to a folder that holds it": {"solo/dir": ("120000", b".")},
    "link in a circle": {"solo/x": ("120000", b"y"), "solo/y": ("120000", b"x")},
    "link into a submodule": {"solo/module": ("160000", b""), "solo/x": ("120000", b"module")},
    "submodule": {"solo/module": ("160000", b"")},
    "case collision": {"solo/Readme": ("100644", b"a"), "solo/README": ("100644", b"b")},
    "folder collision": {"solo/Sub/a": ("100644", b"a"), "solo/sub/b": ("100644", b"b")},
    "unicode collision": {"solo/caf\u00e9": ("100644", b"a"), "solo/cafe\u0301": ("100644", b"b")},
    "control character": {"solo/a\x1b[31mb": ("100644", b"a")},
    "bidi character": {"solo/a\u202etxt.py": ("100644", b"a")},
    "backslash": {"solo/a\\..\\b": ("100644", b"a")},
    "device name": {"solo/docs/AUX.txt": ("100644", b"a")},
    "option-like name": {"solo/-rf": ("100644", b"a")},
    "name that ends in a dot": {"solo/a.": ("100644", b"a")},
    "bare repository": {f"solo/x/{name}": ("100644", b"a") for name in ("HEAD", "objects/a", "refs/a")},
    "too deep": {"solo/" + "d/" * 13 + "f": ("100644", b"a")},
    "too large": {"solo/big": ("100644", b"x" * (10 * 1024 * 1024 + 1))},
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_skill_that_is_not_safe_to_write_is_refused(project: Any, tmp_path: Path, case: str) -> None:
    repo = make_repo(tmp_path, ONE)
    own = str(Path.home()).encode()
    add_raw(repo, {path: (mode, data.replace(b"~", own, 1)) for path, (mode, data) in HOSTILE[case].items()})
    with pytest.raises(Refused) as caught:
        project.run("install", source=f"file://{repo}")
    assert "\x1b" not in caught.value.message
    assert not project.skills.exists()


@pytest.mark.parametrize("case", DEAD)
def test_a_link_that_leads_to_nothing_is_left_out_with_a_warning(project: Any, tmp_path: Path, case: str) -> None:
    repo = make_repo(tmp_path, ONE)
    add_raw(repo, DEAD[case])
    (installed,) = project.run("install", source=f"file://{repo}")["skills"]
    assert ("solo", "dead-link", "gone") in {("solo", one["code"], one["path"]) for one in installed["findings"]}
    assert [path.name for path in (project.skills / "solo").iterdir()] == ["SKILL.md"]


@pytest.mark.wide
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
    with pytest.raises(Refused, match="looks like"):
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


# The gate by itself


def gate(files: dict[str, str], folder: str = "s", *, whole: bool = True) -> tuple[PlannedFile, ...]:
    """The admitted files of the skill in `folder` of a tree; `files` has targets for links, modes for other paths."""
    entries = [entry(path, text) for path, text in {f"{folder}/SKILL.md": "100644", **files}.items()]
    tree = Tree(entries)
    skill = next(found for found in find_skills(entries, top="repo") if found.folder == folder)
    links: dict[str, bytes] = {}
    while missing := unread_links([skill], links, tree):
        links |= {oid: oid.removeprefix("to:").encode() for oid in missing}
    return admit(skill, links, tree if whole else None)


def entry(path: str, text: str) -> TreeEntry:
    if len(text) == 6 and text.isdigit():
        return TreeEntry(path=path, mode=text, kind="commit" if text == "160000" else "blob", oid=path)
    return TreeEntry(path=path, mode="120000", kind="blob", oid=f"to:{text}")


def codes(files: dict[str, str], *, whole: bool = True) -> list[str]:
    with pytest.raises(Refused) as raised:
        gate(files, whole=whole)
    assert raised.value.data["reason"] == "unsafe-files"
    found: list[str] = raised.value.data["codes"]
    return found


def paths(files: dict[str, str], *, whole: bool = True) -> dict[str, str]:
    return {file.path: file.oid for file in gate(files, whole=whole) if file.path != "SKILL.md"}


def test_a_link_to_another_file_of_the_repository_becomes_that_file() -> None:
    assert paths({"s/a.md": "../shared/b.md", "shared/b.md": "100755"}) == {"a.md": "shared/b.md"}
    assert gate({"s/a.sh": "../b", "b": "100755"})[1] == PlannedFile("a.sh", "b", 0o755)


def test_a_link_to_a_folder_becomes_the_files_in_it() -> None:
    files = {"s/docs": "../shared", "shared/a": "100644", "shared/sub/b": "100644", "shared/c": "../d", "d": "100644"}
    assert paths(files) == {"docs/a": "shared/a", "docs/sub/b": "shared/sub/b", "docs/c": "d"}


def test_links_on_the_way_of_a_link_are_followed() -> None:
    assert paths({"s/a": "../one/b", "one": "two", "two": "three/x", "three/x/b": "100644"}) == {"a": "three/x/b"}
    assert paths({"s/a": "up/../b", "s/up": "../deep/er", "deep/er/x": "100644", "deep/b": "100644"})["a"] == "deep/b"


def test_without_the_tree_links_resolve_only_inside_the_skill() -> None:
    assert paths({"s/a": "b/c", "s/b/c": "100644", "s/d": "b"}, whole=False) == {
        "a": "s/b/c",
        "b/c": "s/b/c",
        "d/c": "s/b/c",
    }
    assert [file.path for file in gate({"s/a": "../b", "b": "100644"}, whole=False)] == ["SKILL.md"]


@pytest.mark.parametrize("target", ["/home/someone/x", "/opt/shared/a.md", "../t/gone", "gone", "SKILL.md/x"])
def test_a_dead_link_is_not_among_the_files(target: str) -> None:
    assert [file.path for file in gate({"s/a": target, "s/b": "100644"})] == ["SKILL.md", "b"]


def test_a_link_that_was_not_read_is_refused() -> None:
    entries = [entry("s/SKILL.md", "100644"), entry("s/a", "SKILL.md")]
    (skill,) = find_skills(entries, top="repo")
    with pytest.raises(Refused, match="not read"):
        admit(skill, {}, Tree(entries))


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"s/a": "/etc/passwd"}, "link-escape"),
        ({"s/a": "//etc/passwd"}, "link-escape"),
        ({"s/a": "../.git/config"}, "link-escape"),
        ({"s/a": "/srv/../etc/passwd"}, "link-escape"),
        ({"s/a": "../../etc/passwd"}, "link-escape"),
        ({"s/a": "../../s/SKILL.md"}, "link-escape"),
        ({"s/a": "."}, "link-loop"),
        ({"s/a": ".."}, "link-loop"),
        ({"s/a": "b", "s/b": "a"}, "link-loop"),
        ({"s/a": "a/b"}, "link-loop"),
        ({"s/x/a": "../y", "s/y/b": "../x"}, "link-loop"),
        ({"s/a": "../t", "t/b": "../s", "t/c": "100644"}, "link-loop"),
        ({"s/a": "../m", "m": "160000"}, "link-submodule"),
        ({"s/a": "../m/x", "m": "160000"}, "link-submodule"),
        ({"s/a": "../m", "m/x": "160000"}, "submodule"),
        ({"s/a": "../m", "m": "000000"}, "special-file"),
        ({"s/a": "000000"}, "special-file"),
        ({"s/a": "100664"}, "special-file"),
        ({"s/a": "160000"}, "submodule"),
        ({"s/docs": "../Docs", "Docs/a": "100644", "s/DOCS/b": "100644"}, "collision"),
        ({"s/a": "100644", "s/a/b": "100644"}, "collision"),
        ({"s/stra\u00dfe": "100644", "s/STRASSE": "100644"}, "collision"),
        *(
            ({f"s/{name}": "100644"}, "device-name")
            for name in ("CON", "nul.txt", "x/Com1", "lpt9.a.b", "aux .md", "CONIN$")
        ),
        *(({f"s/{name}": "100644"}, "option-like") for name in ("-", "--output=x", "x/-e")),
        *(
            ({f"s/{name}": "100644"}, "path-odd")
            for name in ("a.", "a ", "x./y", "a\\b", "a\tb", "a\u202eb", "a\u200bb", "a\x7f")
        ),
        *(
            ({f"s/{name}": "100644"}, "nested-git")
            for name in (".git/config", "x/.GIT/HEAD", ".git", "git~1/x", ".git. /x", "x/.git")
        ),
        ({"s/x/HEAD": "100644", "s/x/refs/a": "100644", "s/x/objects/a": "100644"}, "nested-git"),
        ({"s/" + "d/" * 13 + "f": "100644"}, "too-deep"),
        ({"s/a": "../d", f"d/{'e/' * 12}f": "100644"}, "too-deep"),
        ({f"s/{at}": "100644" for at in range(2_000)}, "too-many"),
        ({"s/a": "../d", **{f"d/{at}": "100644" for at in range(2_000)}}, "too-many"),
        ({"s/" + "n" * 201: "100644"}, "path-long"),
    ],
)
def test_unsafe_files_are_refused_with_their_code(files: dict[str, str], code: str) -> None:
    assert code in codes(files)


@pytest.mark.timeout(10)
def test_links_that_multiply_end_at_the_limit() -> None:
    fan = {f"f{level}/{at}": f"../f{level + 1}" for level in range(10) for at in range(10)}
    assert "too-many" in codes({"s/a": "../f0", **fan, "f10/x": "100644"})


def test_plain_files_that_only_sound_like_git_are_kept() -> None:
    files = {"s/.gitignore": "100644", "s/.gitattributes": "100644", "s/.gitmodules": "100644", "s/HEAD": "100644"}
    assert len(gate(files)) == 5


def test_names_that_only_begin_like_devices_are_kept() -> None:
    assert len(gate({"s/console.md": "100644", "s/auxiliary": "100644", "s/com10": "100644", "s/a-b": "100644"})) == 5


def test_a_skill_whose_manifest_is_a_link_is_written_as_the_file_that_it_leads_to() -> None:
    entries = [entry("s/SKILL.md", "../m.md"), entry("m.md", "100644")]
    (skill,) = find_skills(entries, top="repo", links={"to:../m.md": b"../m.md"})
    assert isinstance(skill, Found)
    assert admit(skill, {"to:../m.md": b"../m.md"}, Tree(entries)) == (PlannedFile("SKILL.md", "m.md", 0o644),)

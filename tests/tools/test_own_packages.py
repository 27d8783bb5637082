"""Packages are set up with one question, or the model is told at once how to get them; a script that writes beside
itself has a copy of its skill."""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path

import pytest

from navigator_kernel.errors import ConsentNeeded
from tables import cases
from tools import bench_of_tools
from tools.bench_of_tools import Toolbox, toolbox

WHICH = shutil.which
RUN = """\
const fs = require('fs'), path = require('path');
process.chdir(__dirname);
fs.writeFileSync(path.join(__dirname, '.temp.js'), "console.log('from temp', require('./lib/helpers').name)");
require('./.temp.js');
fs.writeFileSync(path.join(__dirname, 'shot.txt'), 'a picture');
"""
KEEP = """\
import { appendFileSync, mkdirSync } from 'fs'; import { dirname, join } from 'path'; import { fileURLToPath } from 'url';
const place = join(dirname(fileURLToPath(import.meta.url)), process.argv[2]);
mkdirSync(dirname(place), { recursive: true });
appendFileSync(place, process.argv[3] + '\\n');
"""
LOAD = "process.chdir(__dirname); require('fs').writeFileSync('.temp.js', ''); require('./' + process.argv[2]);\n"
SKILL = {"keep.mjs": KEEP, "load.js": LOAD, "run.js": RUN, "lib/helpers.js": "exports.name = 'helpers';\n"}


@pytest.fixture(params=["bubblewrap", "landlock"])
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Toolbox:
    if WHICH("node") is None or (request.param == "bubblewrap" and WHICH("bwrap") is None):
        pytest.skip("a program is not installed")
    if request.param == "landlock":
        monkeypatch.setattr(shutil, "which", lambda name, **given: None if name == "bwrap" else WHICH(name, **given))
    monkeypatch.setattr(bench_of_tools, "FILES", bench_of_tools.FILES | SKILL)
    root = tmp_path.resolve() / "project"
    root.mkdir()
    return toolbox(root)


@pytest.mark.parametrize("line", ["node run.js", "cd $SKILL_ROOT && node run.js", "node run.js | cat", "./run.js"])
def test_a_script_that_writes_beside_itself_has_a_copy_and_the_skill_stays_as_it_is(box: Toolbox, line: str) -> None:
    before = box.project()
    answer = box.agreed("run", command=line).text
    assert "from temp helpers" in answer and "wrote: .skill-1/.temp.js, .skill-1/shot.txt" in answer
    assert box.project() == before
    left = {str(path.relative_to(box.workspace)) for path in box.workspace.rglob("*") if path.is_file()}
    assert left == {".skill-1/.temp.js", ".skill-1/shot.txt"}
    assert "wrote: .skill-2/.temp.js" in box.agreed("run", 2, command=line).text


@pytest.mark.parametrize("left", ["note.txt", "data/state.json"])
def test_what_a_script_leaves_beside_itself_is_there_for_the_next_command(box: Toolbox, left: str) -> None:
    first = box.agreed("run", command=f"node keep.mjs {left} a").text
    assert f"wrote: .skill-1/{left}" in first
    assert "a" in box.agreed("run", 2, command=f"cat {left} && node keep.mjs {left} b").text
    assert box.call("read", 3, file_path=left).text == "     1\ta\n     2\tb"
    assert [path.name for path in box.workspace.iterdir()] == [".skill-1"]


@pytest.mark.parametrize("planted", ["lib.js", "keep.mjs", "node_modules/x/index.js", "package.json", "a.txt"])
def test_a_copy_with_more_than_data_in_it_is_not_used_again(box: Toolbox, planted: str) -> None:
    path = box.workspace / ".skill-1" / planted
    path.parent.mkdir(parents=True)
    path.symlink_to(box.root / "notes.txt") if planted == "a.txt" else path.write_text("")
    assert "wrote: .skill-2/note.txt" in box.agreed("run", command="node keep.mjs note.txt a").text


def test_a_script_in_a_copy_finds_the_files_of_the_workspace_that_the_line_names(box: Toolbox) -> None:
    box.call("write", file_path="own/t.js", content="console.log('of the workspace')")
    box.call("write", file_path="runner.js", content="")
    assert "of the workspace" in box.agreed("run", command="node load.js own/t.js").text


@cases("line, package")
def test_a_line_that_requires_a_package_of_the_skill_has_it(box: Toolbox, line: str, package: str) -> None:
    (Path(box.work.folder) / "package.json").write_text('{"dependencies": {"boat": "^1.0", "@sea/wind": "2.0"}}')
    box = toolbox(box.root)
    box.call("write", file_path="t.js", content="const boat = require('boat/sail')\n")
    box.call("write", file_path="u.mjs", content="import fs from 'fs'\n")
    with pytest.raises(ConsentNeeded) as needed:
        box.call("run", command=line)
    assert ("npm: @sea/wind@2.0, boat@^1.0" in needed.value.message) == bool(package)


def test_a_package_that_is_missing_is_named_with_the_way_to_get_it(box: Toolbox) -> None:
    told = box.agreed("run", command="node -e \"require('boat')\"").text
    assert 'note: give run the package that has it: "packages": ["npm:boat"]' in told
    assert "npm:" not in box.agreed("run", 2, command="node -e \"require('./boat.js')\"").text


def test_a_changed_copy_is_never_what_runs_for_the_skill(box: Toolbox) -> None:
    evil = "require('fs').writeFileSync(__dirname + '/../evil', '')"
    box.agreed("run", command=f'mkdir .skill-1 && cp run.js .skill-1/ && echo "{evil}" > .skill-1/run.js')
    assert "wrote: .skill-2/" in box.agreed("run", 2, command="node run.js").text
    assert not (box.workspace / "evil").exists()


@cases("line, hint")
def test_a_command_that_installs_packages_is_told_at_once_how_to_get_them(tmp_path: Path, line: str, hint: str) -> None:
    answer = toolbox(tmp_path.resolve()).call("run", command=line)
    assert answer.failed and "installed by a command" in answer.text and hint in answer.text


@cases("name")
def test_a_list_of_packages_is_not_a_package(tmp_path: Path, name: str) -> None:
    answer = toolbox(tmp_path.resolve()).call("run", command="python3 x.py", packages=["boat", name])
    assert answer.failed and "is a file, not a package" in answer.text and "requirements.txt" in answer.text


def test_an_install_that_no_rule_sees_fails_at_once(tmp_path: Path) -> None:
    box, began = toolbox(tmp_path.resolve()), time.monotonic()
    if WHICH("npm") is None:
        pytest.skip("npm is not installed")
    line = "for name in docx; do npm install $name; python3 -m pip install $name; done"
    assert "ENOTCACHED" in box.agreed("run", command=line).text
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    ("packages", "line", "program"),
    [(["x"], "python a.py", "uv"), (["npm:x"], "ls", "npm"), (["x"], "node a.js", "npm")],
)
def test_without_the_program_that_installs_packages_nobody_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packages: list[str], line: str, program: str
) -> None:
    box = toolbox(tmp_path.resolve())
    monkeypatch.setitem(sys.modules, "uv", None)
    monkeypatch.setattr(shutil, "which", lambda name, **given: None if name in {"uv", "npm"} else WHICH(name, **given))
    answer = box.call("run", command=line, packages=packages)
    assert answer.failed and f"need {program}, which is not installed" in answer.text
    assert ("navigator-kernel[env]" if program == "uv" else "install Node.js with npm") in answer.text


def test_the_question_names_the_index_of_each_package(tmp_path: Path) -> None:
    box = toolbox(tmp_path.resolve())
    for line, packages, said in (
        ("node a.js", ["docx", "npm:@a/b@^1"], "(npm: docx, @a/b@^1)"),
        ("python a.py", ["docx", "npm:left@1"], "(PyPI: docx; npm: left@1)"),
        ("markitdown a.pdf -o a.md", ["markitdown[pdf]"], "(PyPI: markitdown[pdf])"),
    ):
        with pytest.raises(ConsentNeeded) as needed:
            box.call("run", command=line, packages=packages)
        assert said in needed.value.message


def test_a_script_of_the_workspace_has_the_packages_that_it_names_itself(tmp_path: Path) -> None:
    box = toolbox(tmp_path.resolve())
    text = '# /// script\n# dependencies = ["boat"]\n# ///\nimport boat\n'
    box.call("write", file_path="own.py", content=text)
    with pytest.raises(ConsentNeeded) as needed:
        box.call("run", 2, command="cat x | python own.py")
    assert "(PyPI: boat)" in needed.value.message
    assert json.loads(json.dumps(needed.value.data["subject"]))

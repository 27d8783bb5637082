"""A line that a model runs is a bash line in the workspace, with the skill's files and the person's where it expects
them, on both rungs of the sandbox."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from pathlib import Path

import pytest
from msgspec.structs import replace

from navigator_kernel.errors import ConsentNeeded
from navigator_kernel.sandbox.backends import landlock_abi
from tables import cases, table
from tools import bench_of_tools
from tools.bench_of_tools import Toolbox, toolbox

WHICH = shutil.which
SKILL = table(__file__, "SKILL")
SALES = "region,sum\nnorth,1\nsouth,2\n"


@pytest.fixture(params=["bubblewrap", "landlock"])
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Toolbox:
    if request.param == "bubblewrap" and WHICH("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    if request.param == "landlock" and not landlock_abi():
        pytest.skip("this kernel has no Landlock")
    if request.param == "landlock":
        monkeypatch.setattr(shutil, "which", lambda name, **given: None if name == "bwrap" else WHICH(name, **given))
    monkeypatch.setattr(bench_of_tools, "FILES", bench_of_tools.FILES | SKILL)
    more = {"sales.csv": SALES, "data/year.csv": "year\n2026\n", "data/secret.csv": "not named\n"}
    monkeypatch.setattr(bench_of_tools, "PROJECT", bench_of_tools.PROJECT | more)
    root = tmp_path.resolve() / "project"
    root.mkdir()
    return toolbox(root, named=("sales.csv", "data/year.csv"))


def earlier(box: Toolbox, name: str, text: str) -> None:
    path = box.root / "mybox/workspace/run-0" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    box.work = replace(box.work, earlier=(*box.work.earlier, str(path)))


@pytest.mark.requirement("JIT-12")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("python scripts/contrast.py '#777' '#fff'", "contrast #777 #fff"),
        ('python3 scripts/contrast.py "*.csv"', "contrast *.csv"),
        ("python scripts/contrast.py a | tr a-z A-Z", "CONTRAST A"),
        ("cd data && python3 ../scripts/contrast.py b; cat skill.csv year.csv", "contrast b\nof the skill\nyear\n2026"),
        ("python3 $SKILL_ROOT/scripts/contrast.py c && echo done", "contrast c\ndone"),
        ("for one in 1 2; do python scripts/contrast.py $one; done", "contrast 1\ncontrast 2"),
        ("scripts/contrast.py d", "contrast d"),
        ("./scripts/contrast.py e | cat", "contrast e"),
        ("bash scripts/plain.sh f", "plain f"),
        ("scripts/plain.sh g && scripts/first.pl", "plain g\nperl"),
        ("chmod +x scripts/plain.sh && scripts/plain.sh h", "plain h"),
        ("chmod -R 755 scripts; chmod +x scripts/*.sh $SKILL_DIR/scripts/plain.sh && ./scripts/plain.sh i", "plain i"),
        ("uv run scripts/contrast.py j", "contrast j"),
        ('cd . && uv run --script "$SKILL_DIR/scripts/contrast.py" k | cat', "contrast k"),
        ("uv run python scripts/contrast.py l; uv run --no-project python3 -c 'print(1)'", "contrast l\n1"),
        ("PYTHONPATH=. python3 scripts/contrast.py m", "contrast m"),
        ("echo uv run x; cd $SKILL_DIR && ls top.txt", "top.txt"),
        ("python scripts/where.py", "asset"),
        ("node scripts/node.mjs", str(len(SALES))),
        ("node -e \"fetch('data:,hi').then(got => got.text()).then(console.log)\"", "hi"),
        ("cat < top.txt", "top"),
        (
            "cd scripts && python3 contrast.py n && cat ../sales.csv ../data/year.csv | head -1",
            "contrast n\nregion,sum",
        ),
        ("cd assets && echo new > b.txt && cat b.txt ../assets/a.txt && rm b.txt", "new\nasset"),
        ("grep -rl region .", "./sales.csv"),
        (
            "grep -rn --include='*.csv' 'of the skill' . | cat; grep --recursive -l assets .",
            "./data/skill.csv:1:of the skill\n./scripts/where.py",
        ),
        ("find . -type f -name 'contrast.py' && echo 'grep -r x' | grep -e r", "./scripts/contrast.py\ngrep -r x"),
        ("head -2 sales.csv", "region,sum\nnorth,1"),
        ("cat sales.csv | head -1", "region,sum"),
        ("sort -r <sales.csv >sorted.csv && head -1 sorted.csv", "south,2"),
        ("python3 -c \"print(open('sales.csv').readline())\"", "region,sum"),
        ("python3 - <<'EOF'\nprint(open('data/year.csv').read())\nEOF", "year\n2026"),
        ("cat data/year.csv year.csv", "year\n2026\nyear\n2026"),
        ("python scripts/asked.py sales.csv", "region,sum"),
        ("cat ./sales.csv $PWD/sales.csv | wc -l", "6"),
        ("cd painter && python3 scripts/contrast.py o && cat sales.csv | head -1", "contrast o\nregion,sum"),
        ('cd "$SKILL_DIR/scripts" && python3 contrast.py p; cat ../sales.csv', "contrast p\nregion,sum"),
        ("cd ~/.claude/skills/painter && python scripts/contrast.py q > /dev/stdout", "contrast q"),
        ("D=$HOME/.codex/skills/painter; python3 $D/scripts/contrast.py r", "contrast r"),
        ("python3 /painter/scripts/contrast.py s; cat /mnt/skills/public/painter/top.txt", "contrast s\ntop"),
        ("ls painter/scripts/contrast.py ~/.claude/skills/painter/assets | tail -1", "a.txt"),
        ("cat ${CLAUDE_PLUGIN_ROOT}/skills/painter/top.txt", "top"),
    ],
)
def test_names_mean_the_same_in_every_form_of_a_line(box: Toolbox, line: str, said: str) -> None:
    answer = box.agreed("run", command=line)
    assert answer.text.startswith("exit code 0") and said in answer.text
    assert {path.name for path in box.workspace.iterdir()} <= {"sorted.csv"}
    assert "wrote" not in answer.text or answer.text.count("sorted.csv") == 1


@pytest.mark.requirement("JIT-12")
@cases("line")
def test_a_script_that_is_made_in_the_workspace_runs(box: Toolbox, line: str) -> None:
    assert "built" in box.agreed("run", command=line).text
    (box.workspace / "build.sh").chmod(0o644)
    assert "built" in box.agreed("run", 2, command="./build.sh").text
    box.call("write", 3, file_path="tool.py", content="print('of python')\n")
    assert "of python" in box.agreed("run", 4, command="./tool.py | cat").text
    told = box.agreed("run", 5, command="chmod u+s build.sh").text
    assert "exit code 1" in told and not (box.workspace / "build.sh").stat().st_mode & stat.S_ISUID


@pytest.mark.requirement("JIT-12", "X-18")
@cases("line")
def test_no_line_changes_what_a_name_leads_to(box: Toolbox, line: str) -> None:
    project = box.project()
    modes = {path: (path.stat().st_mode, path.stat().st_mtime_ns) for path in box.root.rglob("*.*") if path.is_file()}
    answer = box.agreed("run", command=line)
    if ">" in line or "cp" in line:
        assert "exit code 1" in answer.text and "is read-only here" in answer.text
    assert box.project() == project
    for path, seen in modes.items():
        if not path.is_relative_to(box.root / "mybox"):
            assert (path.stat().st_mode, path.stat().st_mtime_ns) == seen


@pytest.mark.requirement("JIT-12")
def test_a_file_of_that_name_in_the_workspace_is_the_one_that_counts(box: Toolbox) -> None:
    assert "exit code 0" in box.agreed("run", command="sed -i s/north/east/ sales.csv && grep east sales.csv").text
    assert (box.workspace / "sales.csv").read_text() == SALES.replace("north", "east")
    assert (box.root / "sales.csv").read_text() == SALES
    assert "east,1" in box.agreed("run", 2, command="cat sales.csv").text
    box.call("write", 3, file_path=f"{box.workspace}/scripts/contrast.py", content="print('mine')\n")
    assert "mine\nplain" in box.agreed("run", 4, command="python scripts/contrast.py; bash scripts/plain.sh").text
    with pytest.raises(ConsentNeeded):  # a yes for the skill's scripts is none for a file of the workspace
        box.call("run", 5, command="python scripts/contrast.py")


@pytest.mark.requirement("JIT-12")
def test_a_file_of_an_earlier_turn_is_there_as_a_copy_of_its_own(box: Toolbox) -> None:
    earlier(box, "make_chart.py", "print(open('out/points.csv').read()); open('chart.txt', 'w').write('new')\n")
    earlier(box, "out/points.csv", "1,2\n")
    earlier(box, "chart.txt", "old")
    answer = box.agreed("run", command="python make_chart.py && cat chart.txt")
    assert "1,2\n\nnew" in answer.text and "wrote: chart.txt\n" in answer.text
    assert (box.root / "mybox/workspace/run-0/chart.txt").read_text() == "old"
    assert [path.name for path in box.workspace.iterdir()] == ["chart.txt"]


@pytest.mark.requirement("X-18", "SAF-2")
def test_a_folder_that_the_person_named_is_open_without_its_secrets(box: Toolbox) -> None:
    (box.root / "data/.env").write_text("TOKEN=12345\n")
    (box.root / "mybox/own.txt").write_text("of the kernel\n")
    (box.root / ".claude/own.txt").write_text("of an agent\n")
    folders = (str(box.root / name) for name in ("data", "mybox", ".claude"))
    box.work = replace(box.work, named=(*box.work.named, *folders))
    assert "not named" in box.call("read", file_path="data/secret.csv").text
    assert "data/secret.csv" in box.call("glob", 2, pattern="**/*.csv").text
    assert "data/secret.csv:1: not named" in box.call("grep", 3, pattern="named", output_mode="content").text
    told = box.agreed("run", 4, command="cd data && cat secret.csv skill.csv ../sales.csv; cat .env $PWD/../data/.env")
    assert "not named\nof the skill\nregion,sum" in told.text
    told = box.agreed("run", 5, command=f"cat {box.root}/data/secret.csv {box.root}/data/.env {box.root}/other.txt")
    assert "not named" in told.text and told.text.count("12345") == 0 and "cannot" not in told.text.split("stderr")[0]
    assert box.call("read", 6, file_path="data/.env").failed and box.call("read", 7, file_path=".env").failed
    with pytest.raises(ConsentNeeded):
        box.call("read", 8, file_path="docs/page.md")
    told = box.agreed("run", 9, command=f"cat {box.root}/mybox/own.txt {box.root}/.claude/own.txt")
    assert "exit code 1" in told.text and "of the kernel" not in told.text and "of an agent" not in told.text
    assert box.call("read", 10, file_path=".claude/own.txt").failed


@pytest.mark.requirement("JIT-12", "AGT-2")
def test_what_one_line_writes_to_tmp_the_next_finds(box: Toolbox) -> None:
    """A project in /tmp itself has no other /tmp, so that this one lies elsewhere."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as root:
        other = toolbox(Path(root).resolve())
        assert "exit code 0\nwrote: /tmp/x.py" in other.agreed("run", command="echo 'print(7)' > /tmp/x.py").text
        assert "exit code 0\n7\nprint(7)" in other.agreed("run", 2, command="python3 /tmp/x.py && cat /tmp/x.py").text
        assert "print(7)" in other.asked[-1].message and "print(7)" in other.call("read", 3, file_path="/tmp/x.py").text
        other.agreed("run", 4, command="rm /tmp/x.py")
        assert list(other.workspace.iterdir()) == [] and box.workspace != other.workspace


@pytest.mark.requirement("X-18", "SAF-2")
def test_a_name_opens_nothing_that_the_person_did_not_name(box: Toolbox) -> None:
    told = box.agreed("run", command="cat data/secret.csv ../../../other.txt $PWD/../../../data/secret.csv").text
    assert "not named" not in told and "exit code 1" in told


@pytest.mark.requirement("SAF-2", "X-18")
def test_a_link_of_the_workspace_never_leads_the_names_out(box: Toolbox) -> None:
    box.workspace.mkdir(parents=True)
    (box.workspace / "data").symlink_to(box.root / "docs")
    (box.root / "docs/year.csv").symlink_to(box.root / "data/year.csv")
    answer = box.agreed("run", command="cat year.csv; ls")
    assert "2026" in answer.text
    assert (box.root / "docs/year.csv").is_symlink() and sorted(os.listdir(box.root / "docs")) == [
        "page.md",
        "year.csv",
    ]


@pytest.mark.requirement("JIT-12")
def test_links_of_a_killed_kernel_go_with_the_next_command(box: Toolbox) -> None:
    box.workspace.mkdir(parents=True)
    (box.workspace / "sales.csv").symlink_to(box.root / "sales.csv")
    assert "north" in box.agreed("run", command="cat sales.csv").text
    assert os.listdir(box.workspace) == []


@pytest.mark.requirement("JIT-12", "TOL-9")
@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("cat Sales.csv", "Sales.csv is here as {workspace}/sales.csv"),
        (
            "python3 {baseDir}/scripts/contrast.py 2>&1 | tail -1",
            "contrast.py is here as {workspace}/scripts/contrast.py",
        ),
        ("cat other.txt", "a command sees its workspace, the skill's files and those that the person named"),
        ("cat data/secret.csv 2>&1 | cat", "a command sees its workspace"),
        ("python3 -m http.server 8123 > log.txt 2>&1 &", "what a command starts ends with it"),
        ("(sleep 9 &) ; true & sleep 0.1; echo started", "what a command starts ends with it"),
        ("curl -sS http://127.0.0.1:9/x", "what a command starts ends with it"),
    ],
)
def test_what_a_line_did_not_find_is_named_with_what_is_there(box: Toolbox, line: str, note: str) -> None:
    answer = box.agreed("run", command=line)
    assert answer.text.splitlines()[-1].startswith(f"note: {note.replace('{workspace}', str(box.workspace))}")


@pytest.mark.parametrize("line", ["no-such-program x", "no-such-program | cat", "cat x.txt && true; no-such a"])
def test_a_program_that_is_missing_is_told_before_a_question_or_by_bash(box: Toolbox, line: str) -> None:
    if line.startswith("cat"):
        assert "no-such: command not found" in box.agreed("run", command=line).text
    else:
        answer = box.call("run", command=line)
        assert answer.failed and "no program is called 'no-such-program'" in answer.text

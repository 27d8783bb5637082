from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.support import Place, below, place_in, type_a
from navigator_kernel.adapters.processes.environments import Environments, activated, argv_in
from navigator_kernel.adapters.processes.process import ProcessRunner
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.sandbox import contain
from navigator_kernel.sandbox.backends import SandboxBackend, rungs
from navigator_kernel.skills.formats.dependencies import declared
from navigator_kernel.values.job import Job, Outcome
from navigator_kernel.values.resource import SkillDef
from package_index import Index, made, serving, two
from tools.bench_of_tools import toolbox

pytestmark = [pytest.mark.requirement("SAF-3"), pytest.mark.ci]


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    with serving(monkeypatch) as held:
        yield held


RUN = """
import json, os, subprocess, sys
import tool
out = {"name": tool.NAME, "cached": tool.__cached__ is not None and os.path.exists(tool.__cached__), "prefix": sys.prefix}
out["script"] = subprocess.run(["part"], capture_output=True, text=True).stdout
try:
    open(os.path.join(sys.prefix, "x"), "w")
except OSError as error:
    out["write"] = error.errno
flags = ["install", "--disable-pip-version-check", "--retries", "0", "--timeout", "1"]
offline = ["--no-index", "--find-links", sys.argv[1]]
tried = {}
for pip in (["pip", *flags], [sys.executable, "-m", "pip", *flags], [sys.argv[2], "-m", "pip", *flags, *offline]):
    try:
        tried[str(pip)] = subprocess.run([*pip, "other"], capture_output=True).returncode
    except OSError:
        tried[str(pip)] = "not there"
out["tried"] = tried
print(json.dumps(out))
"""


def outcome_in(rung: SandboxBackend, job: Job, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    monkeypatch.setattr(contain, "rungs", lambda: (rung,))
    sandbox = Project(Path(), agents=False).contained
    assert sandbox.rung() is not None and isinstance(sandbox.inner, ProcessRunner)
    return asyncio.run(sandbox.run(job))


@pytest.mark.parametrize("rung", rungs(), ids=lambda rung: rung.name)
def test_a_contained_skill_has_its_packages_and_cannot_install_others(
    index: Index, tmp_path: Path, rung: SandboxBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    two(index)
    index.add("other")
    folder, skill, cwd = tmp_path / "environments", tmp_path / "skill", tmp_path / "run"
    for path in (skill, cwd):
        path.mkdir()
    (skill / "run.py").write_text(RUN)
    (skill / "requirements.txt").write_text("tool\n")
    (skill / "other-1.0-py3-none-any.whl").write_bytes(index.files["other/other-1.0-py3-none-any.whl"])
    declares = declared(SkillDef(name="s", description="d", path=skill / "SKILL.md", folder=skill, command="python x"))
    env = made(folder, declares)
    job = Job(
        actor="type_a",
        subject="s",
        digest="sha256:0",
        run="run",
        argv=argv_in(env, (sys.executable, str(skill / "run.py"), str(skill), sys.executable)),
        cwd=cwd,
        timeout=30,
        reads=(env, skill),
        env=activated(env),
    )
    outcome = outcome_in(rung, job, monkeypatch)
    assert outcome.exit_code == 0, outcome.stderr.decode()
    said = json.loads(outcome.stdout)
    tried = said.pop("tried")
    assert said.pop("write") in {1, 13, 30}  # EPERM, EACCES, EROFS
    assert said == {"name": "part", "cached": True, "prefix": str(env / "venv"), "script": "script\n"}
    assert len(tried) == 3 and not [how for how, code in tried.items() if code == 0]
    assert subprocess.run([sys.executable, "-c", "import other"], capture_output=True).returncode == 1
    assert Environments(folder).path(env.name) == env


def needy(place: Place) -> None:
    """A skill that declares the packages that its command imports."""
    files = type_a("needy", "import tool\nprint(tool.NAME)\n")
    files["SKILL.md"] = files["SKILL.md"].replace("description:", "dependencies: [tool]\ndescription:", 1)
    place.write(below(".claude/skills/needy", files))


def test_packages_that_a_skill_declares_are_named_in_the_question(index: Index, tmp_path: Path) -> None:
    two(index)
    place = place_in(tmp_path)
    needy(place)
    done = place.run("ask", "/needy", "--json")
    told = done.document["report"]
    assert (done.code, "(PyPI: tool)" in told["summary"], "+packages@" in told["data"]["subject"]) == (9, True, True)
    assert index.asked == []


def test_a_yes_brings_them_for_this_skill_alone(index: Index, tmp_path: Path) -> None:
    two(index)
    place = place_in(tmp_path)
    needy(place)
    place.write(
        below(".claude/skills/other", type_a("other", "import importlib.util as u\nprint(u.find_spec('tool'))\n"))
    )
    done = place.run("ask", "/needy", "--yes")
    assert (done.code, "part" in done.out) == (0, True), done.err
    assert "None" in place.said("ask", "/other", "--yes")


def test_packages_can_be_denied(index: Index, tmp_path: Path) -> None:
    place = place_in(tmp_path)
    needy(place)
    file = Path(place.json("config", "path")["user"])
    file.parent.mkdir(parents=True)
    file.write_text('[policy]\ndeny = ["packages"]\n')
    assert (place.run("ask", "/needy", "--yes").code, index.asked) == (3, [])


@pytest.mark.requirement("JIT-12")
def test_a_line_has_the_console_scripts_of_the_packages_that_it_names(tmp_path: Path, index: Index) -> None:
    code = {"boat.py": "import sys\ndef main(): print('boat', *sys.argv[1:])\n"}
    code["boat-1.0.dist-info/entry_points.txt"] = "[console_scripts]\nboatsay = boat:main\n"
    index.add("boat", code)
    root = tmp_path.resolve() / "project"
    root.mkdir()
    box = toolbox(root, named=("notes.txt",))
    told = box.agreed(
        "run", command="boatsay notes.txt > out.md && boatsay $(cat out.md) | cat", packages=["boat"]
    ).text
    assert "boat boat notes.txt" in told and "wrote: out.md" in told
    assert "(PyPI: boat)" in box.asked[0].message
    assert "boat x" in box.agreed("run", 2, argv=["boatsay", "x"], packages=["boat"]).text
    answer = box.call("run", 3, command="boatsay x")
    assert answer.failed and "no program is called 'boatsay'" in answer.text and "packages" in answer.text

"""A project with the tests' own runnable skills, and a whole kernel over it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from navigator_kernel.bootstrap.project import Project
from navigator_kernel.config.settings import Settings
from navigator_kernel.events import StepStarted
from navigator_kernel.values.packet import Packet, packet_from
from navigator_kernel.values.request import Session
from tables import table
from turns.conftest import Counting, Standing, Talk

TEXT = 'required_params: \'[{"name": "text", "prompt": "the text"}]\'\n'
FILE = 'required_params: \'[{"name": "input", "prompt": "the file", "validation": "file_exists"}]\'\n'

SHOUT = "import sys\nprint(sys.argv[-1].upper())\n"
COUNT = "import json, sys\nprint(json.dumps({'words': len(sys.argv[-1].split())}))\n"
TOTAL = (
    "import sys\nprint(sum(int(line.split(',')[1]) for line in open(sys.argv[-1]) if line.strip()[-1:].isdigit()))\n"
)
TABLE = "open('table.csv', 'w').write('a,1\\nb,2\\n')\nprint('table written')\n"
ECHO = "import os\nprint(open(os.environ['NAVIGATOR_PREVIOUS'], encoding='utf-8').read())\n"
FLOOD = "print('many words ' * 10_000)\n"
FAIL = "import sys\nsys.exit('no luck')\n"
SLEEP = "import time\nprint('begun', flush=True)\ntime.sleep(60)\n"

# name → (purpose, further frontmatter, script; a prompt skill has none)
SKILLS: Mapping[str, tuple[str, str, str]] = table(__file__, "SKILLS")


def put_skill(root: Path, name: str, told: tuple[str, str, str]) -> Path:
    """Writes a skill and returns its folder; a script gets its parameter, if it has one, as its last argument."""
    description, extra, script = told
    folder = root / ".claude" / "skills" / name
    folder.mkdir(parents=True, exist_ok=True)
    if script:
        (folder / "run.py").write_text(script, encoding="utf-8")
        takes = " -- {text}" if extra.startswith(TEXT) else " {input}" if extra.startswith(FILE) else ""
        extra += f"command: python ${{SKILL_ROOT}}/run.py{takes}\n"
    (folder / "SKILL.md").write_text(
        f"---\nname: {name}\ndescription: {description}\n{extra}---\nDo it well.\n", encoding="utf-8"
    )
    return folder


def project_in(tmp_path: Path) -> Path:
    """A project with the skills above and two files."""
    root = tmp_path / "project"
    (root / "mybox").mkdir(parents=True)
    for name, told in SKILLS.items():
        put_skill(root, name, told)
    (root / "notes.txt").write_text("one two three\n")
    (root / "data.csv").write_text("city,sum\nBonn,3\nKiel,5\n")
    return root


def talk_in(root: Path, **settings: Any) -> Talk:
    """A conversation in `root` with a kernel whose clock stands still."""
    earlier = len(list((root / "mybox" / "logs" / "runs").glob("*.jsonl")))
    kernel = Project(root, Settings(**settings), clock=Standing())
    vars(kernel).update(ids=Counting(seen=earlier))
    return Talk(kernel=kernel, session=Session(id="session-1"))


def packets(talk: Talk) -> list[Packet]:
    """Every packet that was sent to an agent so far."""
    started = [event.body for event in talk.events if isinstance(event.body, StepStarted)]
    return [packet_from(json.loads(json.dumps(body.packet))) for body in started]


def workflow_file(root: Path, name: str, *steps: tuple[str, str], head: str = "") -> Path:
    """Writes a workflow as a person would, each step a skill and its input."""
    lines = ["---", f"name: {name}", "version: 1.0.0", f"description: {name}"]
    lines += [f"depends_on: {json.dumps([skill for skill, _ in steps])}", *head.splitlines(), "---", ""]
    for at, (skill, said) in enumerate(steps, 1):
        lines += [f"## Step {at}: {skill}", "", f"- skill: {skill}", f"- input: {json.dumps(said)}", ""]
    path = root / "mybox" / "workflows" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines), encoding="utf-8")
    return path

"""Every fence of a guide runs, in its own project; links lead to a target, and generated files are up to date."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs.guide_runs import FENCE, fences, project_in
from maintenance.generate import digests
from navigator_kernel.values.packet import packet_from
from tables import cases

pytestmark = pytest.mark.ci

DOCS = Path(__file__).resolve().parents[2] / "docs"
CODE = re.compile("`[^`\n]*`")
UPDATES = ".github/workflows/skill-updates.yml"
PIPELINES = [".github/workflows/skills.yml", UPDATES, ".gitlab-ci.yml", ".pre-commit-config.yaml", "Containerfile"]
GUIDES = sorted(DOCS.glob("guides/*.md"))


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_the_fences_of_a_guide_run(guide: Path, tmp_path: Path) -> None:
    assert project_in(tmp_path).follow(guide.read_text("utf-8")) > 0


@pytest.mark.parametrize("file", PIPELINES)
def test_the_steps_of_a_pipeline_run_in_a_fresh_clone(file: str, tmp_path: Path) -> None:
    held = list(fences((DOCS / "guides" / "ci.md").read_text("utf-8")))
    (body,) = (fence.body for fence in held if fence.title == file)
    written: Any = None if file == "Containerfile" else yaml.safe_load(body)
    hooks = {hook["id"]: hook["entry"] for hook in yaml.safe_load((DOCS.parent / ".pre-commit-hooks.yaml").read_text())}
    settings = ""
    if file == "Containerfile":
        steps: list[str] = re.findall("^RUN (.+)", body, re.MULTILINE)
        (variables,) = re.findall("^ENV (.+)", body, re.MULTILINE)
        settings = f"export {variables.replace('/tmp', str(tmp_path))}"
    elif file == ".gitlab-ci.yml":
        steps = written["skills"]["script"]
    elif file == ".pre-commit-config.yaml":
        steps = [hooks[hook["id"]] for hook in written["repos"][0]["hooks"]]
    else:
        steps = [step.get("run", "") for step in written["jobs"]["skills"]["steps"]]
    own = [step for step in steps if step.startswith("navigator ")]
    assert len(own) >= 2
    clone = (
        "git add -A && git -c user.name=a -c user.email=a@b.example commit -qm x && git clone -q . clone && cd clone"
    )
    begin = next(fence.body for fence in held if fence.language == "bash")
    script = "\n".join(["set -e", clone, settings, *own])
    assert project_in(tmp_path).follow(f"```bash\n{begin}```\n\n```bash\n{script}\n```\n") == 2


def test_the_action_opens_a_pull_request_for_each_update(tmp_path: Path) -> None:
    held = list(fences((DOCS / "guides" / "ci.md").read_text("utf-8")))
    (written,) = (yaml.safe_load(fence.body) for fence in held if fence.title == UPDATES)
    job = written["jobs"]["skills"]
    assert ["env" in one for one in (job, *job["steps"])] == [False] * len(job["steps"]) + [True]  # the token
    steps = [step["run"] for step in job["steps"] if "pip" not in step.get("run", "pip")]
    begin = next(fence.body for fence in held if fence.language == "bash")
    update = """\
set -e
git add skills.lock.json && git -c user.name=a -c user.email=a@b.example commit -qm x
git clone -q --bare . team.git && git clone -q team.git clone
printf 'Then wave.\\n```\\r\\n@everybody\\n' >> up/greet/SKILL.md && seq 20000 > up/greet/notes.md
git -C up add . && git -C up -c user.name=eve -c user.email=e@b.example commit -qam wave
export HERE="$PWD" PATH="$PWD/tools:$PATH" && mkdir tools && cat > tools/gh <<'END'
#!/bin/sh
[ -e "$HERE/failed" ] || { touch "$HERE/failed"; exit 1; }
{ echo "$@"; cat body.md; } >> "$HERE/opened"
END
chmod +x tools/gh && cd clone
"""
    project = project_in(tmp_path)
    again = ["rm -r updates .claude; git checkout -qf main", *steps]
    script = "\n".join([update, *steps, *again, *again])  # `gh` fails at first
    project.follow(f"```bash\n{begin}```\n\n```bash\n{script}\n```\n")
    opened = (project.root / "opened").read_text().splitlines()
    assert re.match("pr create --head skills/greet-[0-9a-f]{12} ", opened[0])
    assert sum("pr create" in line for line in opened) == 1
    assert all(line.startswith("    ") for line in opened[1:-1])  # the last line may be cut
    assert len("\n".join(opened[1:]).encode()) == 60_000
    assert any("+Then wave." in line for line in opened)


@cases("text, told")
def test_a_fence_that_does_not_do_what_it_says_is_a_failure(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=told):
        project_in(tmp_path).follow(text)


def test_a_fence_with_a_title_is_a_file_and_an_ellipsis_is_anything(tmp_path: Path) -> None:
    project = project_in(tmp_path)
    text = "````markdown title=a/b.md\n```\nx\n```\n````\n\n```console\n$ wc -l a/b.md\n3…b.md\n```\n"
    assert project.follow(text) == 2
    assert (project.root / "a" / "b.md").read_text() == "```\nx\n```\n"


def test_the_packet_of_the_turn_page_is_a_packet() -> None:
    text = (DOCS / "concepts" / "turn.md").read_text("utf-8")
    fence = re.search(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert fence
    assert packet_from(yaml.safe_load(fence.group(1))).to_yaml() == fence.group(1)


def test_the_links_of_the_pages_lead_somewhere() -> None:
    pages = [*DOCS.rglob("*.md"), *(DOCS.parent / name for name in ("README.md", "README.zh-CN.md", "CLAUDE.md"))]
    dead = [
        f"{page.relative_to(DOCS.parent)}: {link}"
        for page in pages
        for link in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", CODE.sub("", FENCE.sub("", page.read_text("utf-8"))))
        if not link.startswith(("http://", "https://")) and not (page.parent / link).exists()
    ]
    assert dead == []


def test_both_readmes_name_the_same_pages() -> None:
    english, chinese = ((DOCS.parent / name).read_text("utf-8") for name in ("README.md", "README.zh-CN.md"))
    links = [
        {link.replace("docs/zh/", "docs/") for link in re.findall(r"\]\((docs/[^)]+)\)", text)}
        for text in (english, chinese)
    ]
    assert links[0] == links[1]


def test_the_shipped_digests_are_those_of_the_shipped_files() -> None:
    held = (DOCS.parent / "kernel/navigator_kernel/shipped/digests.json").read_text("utf-8")
    assert json.loads(held) == json.loads(digests())


@pytest.mark.requirement("AGT-5")
@pytest.mark.parametrize("name", ["worker", "skills", "mcp"])
def test_each_subagent_has_its_definition_for_host_agents(name: str) -> None:
    page = (DOCS.parent / ".claude" / "agents" / f"{name}_agent.md").read_text("utf-8")
    _, head, body = page.split("---\n", 2)
    keys = yaml.safe_load(head)
    assert {"name", "description", "color", "allowed-tools", "restricted-tools"} == set(keys)
    assert keys["name"] == f"{name}_agent"
    brief = (DOCS.parent / "agents" / name / "brief.md").read_text("utf-8")
    assert body.split("-->\n", 1)[1] == brief.split("\n---\n", 1)[1]

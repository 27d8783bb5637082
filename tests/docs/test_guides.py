"""Every fence of a guide runs, in a project of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from navigator_kernel.values.packet import packet_from

DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDES = sorted(DOCS.glob("guides/*.md"))


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_the_commands_of_a_guide_run(guide: Path, tmp_path: Path) -> None:
    shim = tmp_path / "bin" / "navigator"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m navigator_kernel.cli.main "$@"\n')
    shim.chmod(0o755)
    project = tmp_path / "project"
    project.mkdir()
    env = {**os.environ, "PATH": f"{shim.parent}:{os.environ['PATH']}"}
    fences = re.findall(r"```console\n(.*?)```", guide.read_text("utf-8"), re.DOTALL)
    assert fences
    for line in [line for fence in fences for line in fence.split("\n") if line.startswith("$ ")]:
        done = subprocess.run(["/bin/sh", "-c", line[2:]], cwd=project, env=env, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


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
        for link in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text("utf-8"))
        if not link.startswith(("http://", "https://")) and not (page.parent / link).exists()
    ]
    assert dead == []


def test_both_readmes_name_the_same_pages() -> None:
    english, chinese = ((DOCS.parent / name).read_text("utf-8") for name in ("README.md", "README.zh-CN.md"))
    links = [set(re.findall(r"\]\((docs/[^)]+)\)", text)) for text in (english, chinese)]
    assert links[0] == links[1]


def test_the_shipped_digests_are_those_of_the_shipped_files() -> None:
    sys.path.insert(0, str(DOCS))
    try:
        import generate
    finally:
        sys.path.remove(str(DOCS))
    held = (DOCS.parent / "kernel/navigator_kernel/shipped/digests.json").read_text("utf-8")
    assert json.loads(held) == json.loads(generate.digests())


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

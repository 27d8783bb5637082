"""Every skill of the repositories that people use is installed from the command line, or left out with a reason."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tables import table

CORPUS = Path(os.environ.get("NAVIGATOR_CORPUS") or Path(__file__).parents[3] / "shared" / "corpus")
REPOSITORIES = table(__file__, "REPOSITORIES")


@pytest.mark.ci
@pytest.mark.timeout(600)
@pytest.mark.requirement("LIF-2")
@pytest.mark.parametrize(("name", "expected"), REPOSITORIES)
def test_all_skills_of_a_well_known_repository_are_installed_or_left_out_with_a_reason(
    tmp_path: Path, name: str, expected: dict[str, int]
) -> None:
    bundle = CORPUS / f"{name}.bundle"
    if not bundle.is_file():
        pytest.skip(f"the corpus has no {bundle.name}")
    repo, project = tmp_path / f"{name}.git", tmp_path / "project"
    subprocess.run(["git", "clone", "--quiet", "--bare", str(bundle), str(repo)], check=True, capture_output=True)
    subprocess.run(["git", "init", "--quiet", str(project)], check=True, capture_output=True)
    words = ["skill", "install", str(repo), "--all", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "navigator_kernel.cli.main", *words], cwd=project, capture_output=True, text=True
    )
    assert done.returncode in {0, 1}, done.stderr
    answer = json.loads(done.stdout)
    counts = answer["counts"]
    print(name, counts, answer["seconds"])  # .ci/run shows it
    assert counts == expected  # a change of the kernel does not change what people get
    assert counts["installed"] == len(answer["skills"]) == len(list(project.glob(".claude/skills/*/SKILL.md")))
    assert all(one["why"] and one["msg"] for one in answer["left_out"])
    assert done.returncode == any(one["failure"] for one in answer["left_out"])
    subprocess.run(["git", "-C", str(project), "add", "--all"], check=True, capture_output=True)

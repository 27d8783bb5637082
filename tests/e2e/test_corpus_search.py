"""`search` among skills that people install: by topic, in Chinese, by a name's start; and a word without a match."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from e2e.test_corpus_install import CORPUS

WANTED = {
    "anthropics+skills": ("xlsx", "pptx", "docx", "pdf"),
    "sickn33+antigravity-awesome-skills": ("code-review-excellence", "brainstorming"),
}


def _said(project: Path, *words: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "navigator_kernel.cli.main", *words, "--json"],
        cwd=project,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True, capture_output=True)
    for name, skills in WANTED.items():
        bundle = CORPUS / f"{name}.bundle"
        if not bundle.is_file():
            pytest.skip(f"the corpus has no {bundle.name}")
        repo = tmp_path / f"{name}.git"
        subprocess.run(["git", "clone", "--quiet", "--bare", str(bundle), str(repo)], check=True, capture_output=True)
        _said(folder, "install", str(repo), *(word for skill in skills for word in ("--skill", skill)))
    return folder


@pytest.mark.ci
@pytest.mark.requirement("LIF-3")
@pytest.mark.parametrize("which", ["off", "auto"])
def test_well_known_skills_are_found_by_topic_or_name_prefix(
    project: Path, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAVIGATOR_ENCODER", which)
    first = {query: _said(project, "search", query)["skills"] for query in ("excel", "幻灯片", "brainst", "zzzzqq")}
    names = {query: [one["name"] for one in found] for query, found in first.items()}
    assert names["excel"].index("xlsx") < names["excel"].index("code-review-excellence")
    assert names["幻灯片"][0] == "pptx"
    assert names["brainst"][0] == "brainstorming"
    assert names["zzzzqq"] == []

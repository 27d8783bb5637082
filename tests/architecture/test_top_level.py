"""The top-level folder contains what DESIGN promises, and nothing else."""

from __future__ import annotations

from architecture.source import tracked

ALLOWED = {
    "pyproject.toml", "README.md", "README.zh-CN.md", "CLAUDE.md", "Makefile", "CHANGELOG.md", "LICENSE", "NOTICE",
    "kernel", "agents", "bin", "mybox", "docs", ".claude", "tests",
    ".gitignore", ".ci", ".github", ".pre-commit-config.yaml", ".pre-commit-hooks.yaml", "requirements.lock",
    "requirements-site.lock",
    "mkdocs.yml", "mkdocs.base.yml", "mkdocs.zh.yml",
}  # fmt: skip


def test_the_top_level_contains_only_the_agreed_names() -> None:
    assert {path.parts[0] for path in tracked()} - ALLOWED == set()

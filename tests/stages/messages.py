"""Preprocesses a message in a small project of real files."""

from __future__ import annotations

from pathlib import Path

from navigator_kernel.adapters.files.project_files import ProjectFiles
from navigator_kernel.turn.message import preprocess
from navigator_kernel.values.request import Message, PreprocessingResult


def project(tmp_path: Path) -> Path:
    """A folder with a few files."""
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "index.ts").write_text("export const answer = 42\n")
    (folder / "file").write_text("content of file")
    (folder / "a b.txt").write_text("spaces in its name")
    (folder / "notes.md").write_text("# Notes\n")
    return folder


def take(root: Path, text: str) -> PreprocessingResult:
    return preprocess(Message(text=text), ProjectFiles(root, root))


def calls(found: PreprocessingResult) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(command.type, command.name, command.args) for command in found.commands]

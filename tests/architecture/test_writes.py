"""The kernel writes only through the write port (SAF-2, X-18)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from architecture.source import ROOT, python_files, read

WRITE_PORT = "kernel/navigator_kernel/adapters/files/writer.py"
# Modules that write files other than the project's or the person's, and which files
EXCEPT = {
    "kernel/navigator_kernel/adapters/processes/environments.py": "the mode of its own folder",
    "kernel/navigator_kernel/adapters/files/autoload.py": "names in a workspace, from open folders that may have any mode",
    "kernel/navigator_kernel/adapters/processes/launcher.py": "the maps of a program's own user namespace",
    "kernel/navigator_kernel/adapters/processes/line_diff.py": "texts to compare, in the system's temporary folder",
    "kernel/navigator_kernel/adapters/sources/git_process.py": "git's home and input, in the system's temporary folder",
    "kernel/navigator_kernel/adapters/files/scratch.py": "a process's own temporary folder, and names in the one it runs in",
    "kernel/navigator_kernel/adapters/files/tree.py": "removes what the write port hands it, and scratch folders",
    "kernel/navigator_kernel/adapters/processes/marks.py": "in the place of a program in the sandbox, in its own folders",
    "kernel/navigator_kernel/adapters/sources/repo_cache.py": "the mode of its own folder",
    "kernel/navigator_kernel/adapters/stores/salvage.py": "a database, which SQLite itself writes; replaced in one step",
    "kernel/navigator_kernel/planner/store.py": "a database, which SQLite itself writes",
    "kernel/navigator_kernel/storage_errors.py": "a trial of the disk, beside a database that SQLite could not write",
    "kernel/navigator_kernel/cli/main.py": "the null device",
    "kernel/navigator_kernel/cli/route/resident.py": "a socket in the runtime folder",
    "kernel/navigator_kernel/daemon/client.py": "the time of the last start, in the runtime folder",
    "kernel/navigator_kernel/sandbox/contain.py": "the trial of a sandbox, in the system's temporary folder",
}
METHODS = frozenset(
    "write_text write_bytes mkdir rmdir unlink rename symlink_to hardlink_to touch chmod link_to".split()
)
FUNCTIONS = frozenset(
    "os.rename os.replace os.remove os.unlink os.mkdir os.makedirs os.rmdir os.symlink os.link os.truncate os.chmod os.chown"
    " shutil.rmtree shutil.copy shutil.copy2 shutil.copyfile shutil.copytree shutil.move tempfile.mkstemp tempfile.mkdtemp".split()
)
OPENING = frozenset("w a x + wb ab xb r+ rb+ r+b w+ wt at".split())


def writes(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of each call that writes to a file."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        if name in FUNCTIONS or (
            isinstance(node.func, ast.Attribute) and node.func.attr in METHODS and name not in FUNCTIONS
        ):
            yield node.lineno, name
        elif name == "open" or name.endswith(".open"):
            modes = [
                item.value for item in (*node.args, *(k.value for k in node.keywords)) if isinstance(item, ast.Constant)
            ]
            if any(isinstance(mode, str) and mode in OPENING for mode in modes) or "O_WRONLY" in ast.unparse(node):
                yield node.lineno, name


@pytest.mark.requirement("SAF-2")
def test_every_write_goes_through_the_write_port() -> None:
    found = {}
    for folder in ("kernel", "agents", "bin"):
        for path in python_files(folder):
            if str(path) not in {WRITE_PORT, *EXCEPT} and (hits := list(writes(ast.parse(read(path))))):
                found[str(path)] = hits
    assert found == {}


def test_the_exceptions_are_needed() -> None:
    for name in (WRITE_PORT, *EXCEPT):
        assert list(writes(ast.parse(read(ROOT / name)))), f"{name} writes nothing any more"

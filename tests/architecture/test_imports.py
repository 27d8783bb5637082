"""Which modules may import which others, and what a start may cost."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from architecture.lazy_imports import misplaced, needless
from architecture.source import ROOT, python_files, read

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

CORE = "kernel/navigator_kernel"
OPEN_TO_AGENTS = {
    "hookspecs",
    "ports",
    "model_ports",
    "values",
    "language",
    "events",
    "errors",
    "storage_errors",
    "text",
}
OPEN_TO_PLUGINS = {*OPEN_TO_AGENTS, "commands", "turn_steps"}
NOT_AT_START = {
    "numpy", "tantivy", "git", "pydantic", "mcp", "rich", "tinydb", "jinja2", "importlib.metadata",
}  # fmt: skip
SAMPLE = '''
from navigator_kernel import middle

def needless():
    """Both are there."""
    import urllib.parse
    from navigator_kernel import low

def needed():
    import json
    from urllib import request
    from navigator_kernel.heavy import one, two

def guarded():
    if True:
        try:
            import rich
        except ImportError:
            return

def branch(flag):
    if flag:
        import json
    else:
        import csv
    with flag:
        import html

def late(flag):
    if flag:
        return
    import json

def nested(flag):
    for _ in flag:
        import json
'''
LOADED_BY_START = """
import json, sys
before = set(sys.modules)
import navigator_kernel.cli.main, navigator_kernel.cli.registry
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_the_import_contracts_hold() -> None:
    argv = [str(Path(sys.executable).with_name("lint-imports")), "--no-logo", "--no-cache"]
    done = subprocess.run(argv, cwd=ROOT, env=with_kernel(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_agents_import_only_the_open_part_of_the_kernel() -> None:
    wanted = {(str(path), part) for path in python_files("agents") for part in kernel_parts(path)}
    assert {part for _, part in wanted}, "no agent imports the kernel: is this the right folder?"
    assert [(path, part) for path, part in wanted if part not in OPEN_TO_AGENTS] == []


def test_the_contracts_name_every_plugin_and_every_part_of_the_kernel_that_is_closed_to_them() -> None:
    """A new package is closed to plugins until somebody opens it."""
    project = tomllib.loads(read(ROOT / "pyproject.toml"))
    contracts = {one["name"]: one for one in project["tool"]["importlinter"]["contracts"]}
    unaware, closed = contracts["the kernel knows no plugin"], contracts["a plugin imports what is open to plugins"]
    assert set(unaware["forbidden_modules"]) == set(closed["source_modules"]) == plugin_packages()
    assert {value.partition(".")[0] for value in own_entry_points(project).values()} <= plugin_packages()
    parts = {path.parts[2].removesuffix(".py") for path in python_files(CORE)} - {"__init__", "__main__"}
    assert set(closed["forbidden_modules"]) == {f"navigator_kernel.{part}" for part in parts - OPEN_TO_PLUGINS}


def test_the_kernel_does_not_name_its_plugins() -> None:
    """Neither their packages nor their names, in code and in strings."""
    points = own_entry_points(tomllib.loads(read(ROOT / "pyproject.toml")))
    named = re.compile(rf"\b(?:{'|'.join([*plugin_packages(), *points])})\b", re.IGNORECASE)
    told = [(str(path), hit.group()) for path in python_files(CORE) for hit in named.finditer(read(path))]
    assert told == []


@pytest.mark.requirement("RTE-36")
def test_tools_models_and_memory_know_nothing_of_routing() -> None:
    unaware = ("navigator_kernel/tools", "navigator_planner", "navigator_kernel/adapters/models")
    places = [f"kernel/{place}" for place in (*unaware, "navigator_kernel/adapters/stores/preferences.py")]
    files = [path for path in python_files("kernel") if any(str(path).startswith(place) for place in places)]
    assert len(files) > len(unaware)
    assert [(str(path), part) for path in files for part in kernel_parts(path) if part in {"routing", "stages"}] == []


def test_importing_the_command_line_loads_nothing_heavy() -> None:
    argv = [sys.executable, "-c", LOADED_BY_START]
    done = subprocess.run(argv, cwd=ROOT, env=with_kernel(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout)
    assert [name for name in loaded if name in NOT_AT_START or name.partition(".")[0] in NOT_AT_START] == []


def test_a_plain_question_is_answered_without_the_parser_of_command_lines(tmp_path: Path) -> None:
    """Importing it would take as long as the answer."""
    code = "import sys; from navigator_kernel.cli.main import run; run(['route', 'hello']); sys.exit('click' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=with_kernel(), capture_output=True, text=True)
    assert (done.returncode, done.stdout.partition(":")[0]) == (0, "direct"), done.stderr


def test_patterns_of_a_module_wait_until_they_are_needed() -> None:
    """Modules that run alone cannot use `navigator_kernel.text`."""
    alone = {"launcher.py", "resident_client.py", "prompt_hook.py"}
    eager = [
        f"{path}:{node.lineno}"
        for path in python_files("kernel")
        if path.name not in alone
        for node in ast.parse(read(path)).body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and node.value is not None
        and ast.unparse(node.value).startswith("re.compile(")
        and not ast.unparse(node.value).startswith(("re.compile(b", "re.compile(rb"))
    ]
    assert eager == []


def test_an_import_inside_a_function_loads_what_its_module_does_not(trees: dict[str, ast.Module]) -> None:
    assert needless(trees) == []


def test_an_import_inside_a_function_stands_first_in_it_or_in_a_branch(trees: dict[str, ast.Module]) -> None:
    assert misplaced(trees) == []


def test_needless_and_misplaced_imports_are_found() -> None:
    sources = {
        "navigator_kernel": "",
        "navigator_kernel.low": "from urllib.parse import quote",
        "navigator_kernel.middle": "if TYPE_CHECKING:\n    import json\nelse:\n    from navigator_kernel import low",
        "navigator_kernel.heavy": "",
        "navigator_kernel.top": SAMPLE,
    }
    sample = {name: ast.parse(text) for name, text in sources.items()}
    assert needless(sample) == ["navigator_kernel.top:6", "navigator_kernel.top:7"]
    assert misplaced(sample) == ["navigator_kernel.top:32", "navigator_kernel.top:36"]


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    """The parsed code by module; agents and scripts, which are loaded by path, by their path."""
    return {module_name(path): ast.parse(read(path)) for path in python_files("kernel", "agents", "bin")}


def module_name(path: Path) -> str:
    if path.parts[0] != "kernel":
        return str(path)
    return ".".join(path.with_suffix("").parts[1:]).removesuffix(".__init__")


def plugin_packages() -> set[str]:
    """The packages beside the core."""
    return {path.parts[1] for path in python_files("kernel")} - {"navigator_kernel"}


def own_entry_points(project: dict[str, Any]) -> dict[str, str]:
    points: dict[str, str] = project["project"]["entry-points"]["navigator"]
    return points


def with_kernel() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "kernel")}


def kernel_parts(path: Path) -> Iterator[str]:
    """The part of the kernel that each import names; "" for the kernel itself."""
    for node in ast.walk(ast.parse(read(path))):
        for name in imported(node):
            package, _, rest = name.partition(".")
            if package == "navigator_kernel":
                yield rest.partition(".")[0]


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0:
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []

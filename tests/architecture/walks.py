"""Measures how far a reader has to walk: what one command passes, and rooms that only one other room opens."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from architecture.source import ROOT, python_files, read

# Runs a command of the program, and prints how many functions and files of the kernel it called
TRACE = """
import json, os, sys, threading
import navigator_kernel
top = os.path.dirname(os.path.dirname(navigator_kernel.__file__)) + os.sep
seen = set()
def profile(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(top) and "<" not in code.co_name and code.co_flags & 1:
        seen.add((code.co_filename, code.co_qualname))
def leave(code):
    sys.setprofile(None)
    files = {name for name, _ in seen}
    open(os.environ["TRACE_OUT"], "w").write(json.dumps({"functions": len(seen), "files": len(files)}))
    real(code)
real, os._exit = os._exit, leave
from navigator_kernel.cli.main import main
sys.argv = ["navigator", *sys.argv[1:]]
sys.setprofile(profile)
threading.setprofile(profile)
code = 0
try:
    code = main()
except SystemExit as error:
    code = error.code
leave(code if isinstance(code, int) else 0)
"""


class Walk(NamedTuple):
    functions: int
    files: int


def walk_of(folder: Path, *words: str) -> Walk:
    """The functions and files that `navigator WORDS` calls in the folder; class bodies and comprehensions left out."""
    out = folder.parent / "trace.json"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "kernel"), "TRACE_OUT": str(out)}
    argv = [sys.executable, "-c", TRACE, *words]
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return Walk(**json.loads(out.read_text()))


def modules_with_one_importer() -> list[str]:
    files = python_files("kernel")
    names = {_name(path): path for path in files}
    importers = Counter[str]()
    for module, path in names.items():
        nodes = list(ast.walk(ast.parse(read(path))))
        imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        for node in nodes:
            if isinstance(node, ast.ImportFrom):
                whole = {f"{node.module}.{alias.name}" for alias in node.names}
                imported |= {name if name in names else str(node.module) for name in whole}
        importers.update((imported & names.keys()) - {module})
    return sorted(name for name, count in importers.items() if count == 1)


def helpers_with_one_call() -> list[str]:
    """Private functions and methods that their module names once."""
    helpers = []
    for path in python_files("kernel"):
        nodes = list(ast.walk(ast.parse(read(path))))
        named = Counter(
            node.id if isinstance(node, ast.Name) else node.attr
            for node in nodes
            if isinstance(node, ast.Name | ast.Attribute)
        )
        helpers += [
            f"{path}:{node.lineno} {node.name}"
            for node in nodes
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.name.startswith("_")
            and not node.name.startswith("__")
            and named[node.name] == 1
        ]
    return helpers


def protocols() -> list[str]:
    return [
        f"{path}:{node.lineno} {node.name}"
        for path in python_files("kernel")
        for node in ast.walk(ast.parse(read(path)))
        if isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(base) for base in node.bases)
    ]


def _name(path: Path) -> str:
    return ".".join(path.with_suffix("").parts[1:]).removesuffix(".__init__")

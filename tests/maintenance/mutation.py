"""Mutates the code of a subject, one place at a time, and counts the mutants that no test notices."""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

from mutmut.stats import status_by_exit_code

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/mutation"
COPIED = ("tests", "agents", "bin", "docs", ".ci", ".claude", "README.md", "README.zh-CN.md", "CLAUDE.md", "Makefile")
SEED = 29
NO_MUTANT = "none"
Z = 1.96  # for a 95 % confidence interval
FAST = "not slow and not bench and not local_llm and not ci and not wide"
# mutmut would change each sentence for people in three ways, which says nothing about the code
SENTENCES = [r"\bhint=", r"\b(?:message|text|what) \+?= ", r"^\s*f?\"[^\"]* [^\"]* ", r"\"\"\""]
# mutmut sees only functions that a test runs in its own process; this, in the kernel's copy, records those of children
IN_CHILDREN = """

import os as _os

if _os.environ.get("MUTANT_UNDER_TEST") == "stats" and _os.environ.get("MUTATION_MAIN") != str(_os.getpid()):
    from contextlib import suppress as _suppress

    import mutmut.mutation.trampoline as _trampoline

    _seen = set()

    def _record(name, caller=None):
        key = _os.getpid(), name
        if key not in _seen:
            _seen.add(key)
            with _suppress(OSError), open(_os.environ.get("MUTATION_HITS", _os.devnull), "a") as hits:
                hits.write(name + "\\n")

    _trampoline.record_trampoline_hit = _record
"""
PLUGIN = "hits_of_children"
PLUGIN_CODE = """import os
from pathlib import Path

import pytest
from mutmut.state import state

HITS = Path(__file__).with_suffix(".hits")
os.environ["MUTATION_MAIN"], os.environ["MUTATION_HITS"] = str(os.getpid()), str(HITS)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item):
    if os.environ.get("MUTANT_UNDER_TEST") == "stats" and HITS.exists():
        state()._stats.update(HITS.read_text().split())
        HITS.unlink()
"""
DETECTED = {"killed", "timeout", "segfault"}


class Score(NamedTuple):
    """How many mutants of a subject ended with each status."""

    subject: str
    statuses: Counter[str]

    @property
    def mutants(self) -> int:
        return self.statuses.total()

    @property
    def detected(self) -> int:
        return sum(count for status, count in self.statuses.items() if status in DETECTED)

    @property
    def share(self) -> float:
        return self.detected / self.mutants if self.mutants else 0.0


def main(argv: list[str]) -> int:
    """Returns 1 if the score of a subject is below its floor, else 0."""
    subjects: dict[str, dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"][
        "mutation"
    ]
    options = parse(argv, sorted(subjects))
    failed = False
    print(f"{'subject':13}{'mutants':>8}{'killed':>8}{'survived':>9}{'timed out':>10}{'no tests':>9}  score (95 %)")
    for name in options.subjects or subjects:
        score = measure(name, subjects[name], options.sample, options.processes)
        print(row(score), flush=True)
        if score.share < subjects[name]["floor"]:
            print(f"{name}: the score is below {subjects[name]['floor']:.0%}, the floor", file=sys.stderr)
            failed = True
    print("survivors: build/mutation/SUBJECT/survived.txt; there, `mutmut show NAME` shows one", file=sys.stderr)
    return int(failed)


def parse(argv: list[str], names: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("subjects", nargs="*", choices=[*names, []], help="all, if none is named")
    parser.add_argument("--sample", default="150", help="how many mutants of each subject are tested, or `all`")
    parser.add_argument("--processes", type=int, default=2, help="how many are tested side by side")
    return parser.parse_args(argv)


def measure(name: str, subject: dict[str, Any], sample: str, processes: int) -> Score:
    """Tests a sample of the mutants of the subject's modules with the subject's tests."""
    folder = BUILD / name
    prepare(folder, subject)
    run(folder, processes, [NO_MUTANT])  # creates the mutants, and records which test calls which function
    names = sorted(results(folder))
    if sample != "all":
        names = sorted(random.Random(SEED).sample(names, min(int(sample), len(names))))
    run(folder, processes, names)
    held = results(folder)
    found = {one: status_by_exit_code[held[one]] for one in names}
    survived = [one for one, status in found.items() if status not in DETECTED]
    (folder / "survived.txt").write_text("".join(f"{found[one]}\t{one}\n" for one in survived), "utf-8")
    return Score(name, Counter(found.values()))


def prepare(folder: Path, subject: dict[str, Any]) -> None:
    """Copies the project to the folder in which mutmut changes it. mutmut expects packages in `src`; the kernel finds
    its agents and skills only from a folder `kernel`, so `src` is a link to `kernel`."""
    shutil.rmtree(folder, ignore_errors=True)
    unwanted = shutil.ignore_patterns("__pycache__", "node_modules")
    shutil.copytree(ROOT / "kernel", folder / "src", ignore=unwanted, symlinks=True)
    for name in COPIED:
        source, target = ROOT / name, folder / "mutants" / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=unwanted, symlinks=True)
        else:
            shutil.copy2(source, target)
    (folder / "mutants/kernel").mkdir()
    (folder / "mutants/src").symlink_to("kernel")
    (folder / "mutants" / f"{PLUGIN}.py").write_text(PLUGIN_CODE, "utf-8")
    with (folder / "src/navigator_kernel/__init__.py").open("a", encoding="utf-8") as package:
        package.write(IN_CHILDREN)
    (folder / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text("utf-8") + settings(subject), "utf-8")


def settings(subject: dict[str, Any]) -> str:
    """Returns the section of `pyproject.toml` that mutmut reads."""
    held = {
        "source_paths": ["src"],
        "only_mutate": [f"src/navigator_kernel/{module}.py" for module in subject["modules"]],
        "do_not_mutate_patterns": SENTENCES,
        "pytest_add_cli_args": ["-n", "0", "-p", "no:cacheprovider", "-p", PLUGIN, "-m", FAST, "--timeout", "60"],
        "pytest_add_cli_args_test_selection": [
            *subject["tests"],
            *(f"--deselect={test}" for test in subject.get("left_out", ())),
        ],
        "process_isolation": "forkserver",  # otherwise mutmut stops when a process that a test started ends
        "timeout_multiplier": 4.0,
        "timeout_constant": 15.0,
    }
    return "\n[tool.mutmut]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in held.items())


def run(folder: Path, processes: int, names: Sequence[str]) -> None:
    """Runs mutmut and appends its output to a file."""
    command = [str(Path(sys.executable).with_name("mutmut")), "run", "--max-children", str(processes), *names]
    with (folder / "mutmut.log").open("ab") as log:
        done = subprocess.run(command, cwd=folder, stdout=log, stderr=log, check=False)
    if done.returncode and names != [NO_MUTANT]:
        raise SystemExit(f"mutmut failed: see {folder / 'mutmut.log'}")


def results(folder: Path) -> dict[str, int | None]:
    """The exit code of the tests of each mutant; None if they did not run."""
    held: dict[str, int | None] = {}
    for path in (folder / "mutants/kernel").rglob("*.py.meta"):
        held.update(json.loads(path.read_text("utf-8"))["exit_code_by_key"])
    return held


def interval(hits: int, of: int) -> tuple[float, float]:
    """Wilson's interval, which contains the true share for 95 of 100 samples."""
    if not of:
        return 0.0, 1.0
    share, square = hits / of, Z * Z / of
    middle = share + square / 2
    half = Z * sqrt(share * (1 - share) / of + square / of / 4)
    return (middle - half) / (1 + square), (middle + half) / (1 + square)


def row(score: Score) -> str:
    low, high = interval(score.detected, score.mutants)
    held: Iterable[int] = (score.statuses[status] for status in ("killed", "survived", "timeout", "no tests"))
    killed, survived, late, untested = held
    counts = f"{score.mutants:>8}{killed:>8}{survived:>9}{late:>10}{untested:>9}"
    return f"{score.subject:13}{counts}  {score.share:.1%} ({low:.1%} to {high:.1%})"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

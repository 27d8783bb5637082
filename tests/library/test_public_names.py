"""The public names are those that the guide lists; they cost nothing until used, and a type checker knows them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import navigator_kernel

SOURCE = Path(__file__).parents[2]
GUIDE = SOURCE / "docs" / "guides" / "use-as-a-library.md"
LOADED = "import sys; before = set(sys.modules); import navigator_kernel; print(*(set(sys.modules) - before))"


def test_the_public_names_are_exactly_those_that_the_guide_lists() -> None:
    table = GUIDE.read_text("utf-8").split("| name |")[1].split("\n\n")[0]
    listed = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert sorted(listed) == sorted(navigator_kernel.__all__)
    assert all(getattr(navigator_kernel, name) is not None for name in listed)
    with pytest.raises(AttributeError):
        _ = navigator_kernel.Project  # type: ignore[attr-defined]  # the name does not exist
    with pytest.raises(ImportError):
        from navigator_kernel import Project  # type: ignore[attr-defined]  # noqa: F401 - the name does not exist


def test_importing_the_package_loads_nothing_else() -> None:
    path = f"import sys; sys.path.insert(0, {str(SOURCE / 'kernel')!r}); "
    done = subprocess.run([sys.executable, "-I", "-c", path + LOADED], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["navigator_kernel"]


@pytest.mark.ci
@pytest.mark.timeout(600)
def test_a_strict_type_checker_accepts_the_guide_and_finds_a_mistake(tmp_path: Path) -> None:
    programs = re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    assert len(programs) >= 2
    for number, program in enumerate(programs):
        (tmp_path / f"program{number}.py").write_text(program)
    mistakes = ("Kernel('.').run(1)", "Kernel('.').route('x').nothing", "navigator_kernel.Nothing")
    text = "import navigator_kernel\nfrom navigator_kernel import Kernel\n" + "".join(f"{one}\n" for one in mistakes)
    (tmp_path / "wrong.py").write_text(text)
    argv = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(tmp_path / "cache")]
    done = subprocess.run(
        [*argv, *sorted(path.name for path in tmp_path.glob("*.py"))], cwd=tmp_path, capture_output=True, text=True
    )
    found = [line.split(":")[:2] for line in done.stdout.splitlines() if ": error:" in line]
    assert found == [["wrong.py", "3"], ["wrong.py", "4"], ["wrong.py", "5"]], done.stdout

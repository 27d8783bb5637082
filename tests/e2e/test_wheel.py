"""The wheel works alone, in an empty folder, beside the packages whose names it must not take."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import pytest

from navigator_kernel.bootstrap.places import shipped_digests
from tables import cases

if TYPE_CHECKING:
    from collections.abc import Collection

pytestmark = [pytest.mark.ci, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
SHIPPED = {name for name in shipped_digests() if not name.startswith("bin/")}
WHO_PROVIDES = """
import agents, kernel, navigator_kernel
from importlib.metadata import packages_distributions
provided = packages_distributions()
print(*(provided[module.__name__] for module in (agents, kernel, navigator_kernel)))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source archive, as a stranger would build it."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT), cwd=out)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The script folder of an environment with the wheel and its namesakes."""
    venv = tmp_path_factory.mktemp("installed") / "venv"
    run(sys.executable, "-m", "venv", str(venv), cwd=venv.parent)
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    run(*pip, str(wheel), "kernel", "openai-agents", cwd=venv.parent)
    return venv / "bin"


def test_the_wheel_installs_the_kernel_and_its_plugins_only(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}
    assert {name for name in tops if not name.endswith(".dist-info")} == {
        path.name for path in (ROOT / "kernel").iterdir() if (path / "__init__.py").exists()
    }


def test_kernel_and_agents_still_come_from_their_own_packages(scripts: Path, tmp_path: Path) -> None:
    done = run(str(scripts / "python"), "-c", WHO_PROVIDES, cwd=tmp_path)
    assert done.stdout.strip() == "['openai-agents'] ['kernel'] ['navigator-kernel']"


def test_an_empty_folder_is_set_up_and_answers(scripts: Path, tmp_path: Path) -> None:
    run(str(scripts / "navigator"), "init", cwd=tmp_path)
    asked = [str(scripts / "navigator"), "ask", "word count of this: hello world"]
    done = run(*asked, cwd=tmp_path)
    assert "2 words" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_the_shipped_skills_are_there(scripts: Path, tmp_path: Path) -> None:
    done = run(str(scripts / "navigator"), "skill", "list", "--json", cwd=tmp_path)
    assert set(names(json.loads(done.stdout))) >= SHIPPED


def test_the_wheel_shows_the_pages_that_the_source_tree_shows(scripts: Path, tmp_path: Path) -> None:
    for language in ("en", "zh"):
        words = ("--language", language, "docs", "--json")
        installed = run(str(scripts / "navigator"), *words, cwd=tmp_path).stdout
        assert installed == run(sys.executable, "-m", "navigator_kernel.cli.main", *words, cwd=tmp_path).stdout


@cases("message, skill")
def test_the_default_install_routes_by_meaning(
    scripts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, message: str, skill: str | None
) -> None:
    monkeypatch.setenv("NAVIGATOR_ENCODER", "auto")
    told = json.loads(run(str(scripts / "navigator"), "route", message, "--json", cwd=tmp_path).stdout)
    assert (told["kind"], told["entity"]) == (("skills", skill) if skill else ("direct", None))
    assert told["reason"] != "nothing_known"


def test_without_the_encoder_words_route_alone_and_the_doctor_says_so(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAVIGATOR_ENCODER", "auto")
    run(sys.executable, "-m", "venv", "venv", cwd=tmp_path)
    pip = [str(tmp_path / "venv" / "bin" / "python"), "-m", "pip"]
    run(*pip, "install", "-qq", "--disable-pip-version-check", str(wheel), cwd=tmp_path)
    run(*pip, "uninstall", "-qq", "-y", "numpy", cwd=tmp_path)
    navigator = str(tmp_path / "venv" / "bin" / "navigator")
    run(navigator, "init", cwd=tmp_path)
    told = json.loads(run(navigator, "route", "review this code", "--json", cwd=tmp_path).stdout)
    assert (told["kind"], told["entity"]) == ("skills", "code-review")
    told = json.loads(run(navigator, "doctor", "--json", cwd=tmp_path, expected={1}).stdout)
    (found,) = [one for one in told["findings"] if one["what"] == "encoder"]
    assert found["detail"].endswith("messages are matched by words only")
    assert found["remedy"].startswith("pip install --force-reinstall numpy ")


def run(*argv: str, cwd: Path, expected: Collection[int] = (0,)) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode in expected, f"{argv} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def names(value: Any) -> list[str]:
    """Every `name` anywhere in a JSON value."""
    if isinstance(value, list):
        return [found for item in value for found in names(item)]
    if isinstance(value, dict):
        own = [value["name"]] if isinstance(value.get("name"), str) else []
        return own + [found for item in value.values() for found in names(item)]
    return []

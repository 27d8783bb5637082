from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import uv

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.processes.environments import LOCK, Environments, activated, argv_in, python_of
from navigator_kernel.errors import FetchFailed, IntegrityMismatch, KernelError, NotLoadable, Refused
from navigator_kernel.skills.formats.dependencies import fingerprint
from package_index import PASSWORD, USER, Index, made, sdist, serving, two, wheel
from processes import working_in

pytestmark = [pytest.mark.requirement("SAF-3"), pytest.mark.ci]


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    with serving(monkeypatch) as held:
        yield held


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "environments"


def left_in(folder: Path) -> list[str]:
    """The names in `folder`, except locks."""
    return [path.name for path in folder.iterdir() if path.suffix != ".lock"]


def test_packages_come_pinned_and_hashed_with_those_that_they_need(index: Index, folder: Path) -> None:
    two(index)
    env = made(folder, ["tool"])
    lines = (env / LOCK).read_text().splitlines()
    hashes = {
        name: hashlib.sha256(index.files[f"{name}/{name}-1.0-py3-none-any.whl"]).hexdigest()
        for name in ("part", "tool")
    }
    assert lines == [f"{name}==1.0 --hash=sha256:{sha}" for name, sha in hashes.items()]
    assert left_in(folder) == [env.name] == [fingerprint(["tool"])]
    assert sorted(path.name for path in env.iterdir()) == ["bytecode", "made.json", LOCK, "venv"]
    assert folder.stat().st_mode & 0o777 == 0o700


def test_an_existing_environment_is_reused_without_asking_the_index(index: Index, folder: Path) -> None:
    two(index)
    env = made(folder, ["tool"])
    index.asked.clear()
    assert made(folder, ["tool"]) == Environments(folder).path(env.name) == env
    assert index.asked == []
    assert Environments(folder).path(fingerprint(["other"])) is None


def test_nothing_of_a_package_is_run_while_it_is_put_in_place(index: Index, folder: Path, tmp_path: Path) -> None:
    two(index, tmp_path / "canary")
    env = made(folder, ["tool", "part>=1"])
    assert not (tmp_path / "canary").exists()
    subprocess.run([python_of(env), "-c", ""], check=True)
    assert (tmp_path / "canary").exists()


def test_no_program_of_a_package_takes_the_place_of_the_interpreter(index: Index, folder: Path) -> None:
    index.add("part", {"part.py": "", "part-1.0.data/scripts/python3": "#!/bin/sh\n"})
    with pytest.raises(FetchFailed, match="reserved name"):
        made(folder, ["part"])
    assert left_in(folder) == []


def test_a_package_without_a_wheel_is_refused_and_its_build_script_does_not_run(
    index: Index, folder: Path, tmp_path: Path
) -> None:
    canary = tmp_path / "canary"
    index.files["source/source-1.0.tar.gz"] = sdist("source", f"open({str(canary)!r}, 'w')\n")
    index.add("tool", None, "source")
    for wanted in ("source", "tool"):
        with pytest.raises(FetchFailed, match="no usable wheels") as caught:
            made(folder, [wanted])
        assert caught.value.data["reason"] == "no-wheel"
        assert "binary wheel" in caught.value.hint
    assert not canary.exists() and left_in(folder) == []


def test_a_wheel_is_taken_where_a_source_is_newer(index: Index, folder: Path) -> None:
    index.add("part")
    index.files["part/part-2.0.tar.gz"] = sdist("part", "raise SystemExit('built')\n")
    assert (made(folder, ["part"]) / LOCK).read_text().startswith("part==1.0 ")


def test_bytes_that_change_after_they_were_named_are_refused(index: Index, folder: Path) -> None:
    two(index)
    name = "part/part-1.0-py3-none-any.whl"
    index.named[name] = index.files[name]
    index.files[name] = wheel("part", {"part.py": "raise SystemExit\n"})
    with pytest.raises(IntegrityMismatch, match=r"(?i)hash mismatch") as caught:
        made(folder, ["part"])
    assert caught.value.data["reason"] == "hash"
    assert left_in(folder) == []


def test_only_the_bytes_that_a_skill_names_are_taken(index: Index, folder: Path) -> None:
    index.add("part")
    right = hashlib.sha256(index.files["part/part-1.0-py3-none-any.whl"]).hexdigest()
    index.files["part/part-1.0.tar.gz"] = sdist("part", "")
    env = made(folder, [f"part==1.0 --hash=sha256:{'0' * 64} --hash=sha256:{right}"])
    assert (env / LOCK).read_text() == f"part==1.0 --hash=sha256:{right}\n"
    with pytest.raises(IntegrityMismatch, match="other bytes"):
        made(folder, [f"part==1.0 --hash=sha256:{'0' * 64}"])


@pytest.mark.parametrize("scheme", ["http://127.0.0.1:1", "file://", "git+https://x.invalid"])
def test_no_package_leads_out_of_the_index(index: Index, folder: Path, scheme: str) -> None:
    index.add("tool", None, f"part @ {scheme}/part-1.0-py3-none-any.whl")
    with pytest.raises(KernelError) as caught:
        made(folder, ["tool"])
    assert caught.value.data["reason"] == "url"
    assert left_in(folder) == []


@pytest.mark.parametrize(
    ("wanted", "reason"), [(["nothing"], "not-found"), (["part>2"], "conflict"), (["part==1.0", "tool"], "conflict")]
)
def test_an_unresolvable_requirement_is_reported_with_its_reason(
    index: Index, folder: Path, wanted: list[str], reason: str
) -> None:
    index.add("part")
    index.add("tool", None, "part>1")
    with pytest.raises(FetchFailed) as caught:
        made(folder, wanted)
    assert caught.value.data["reason"] == reason
    assert caught.value.hint and not caught.value.message.endswith(".")


@pytest.mark.parametrize("secret", [PASSWORD, "hun@ter2", "hun%40ter2"])
def test_the_password_of_an_index_never_appears_in_an_error(
    index: Index, folder: Path, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.closed, address = True, index.url.removeprefix("http://")
    index.add("part", None, "nothing")
    told = []
    reasons = ["not-found" if secret == PASSWORD else "access", "network", ""]
    for where, reason in zip((address, "127.0.0.1:1/simple", "x y"), reasons, strict=True):
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://{USER}:{secret}@{where}")
        with pytest.raises(FetchFailed) as caught:
            made(folder, ["part"])
        assert caught.value.data["reason"] == reason, caught.value
        told.append(str(caught.value.to_dict()))
    assert not [text for text in told if secret in text or f"{USER}:" in text or "ter2" in text]


@pytest.mark.parametrize("name", ["UV_INDEX_URL", "UV_INDEX", "PIP_INDEX_URL"])
def test_the_persons_own_index_is_asked_as_the_person(
    index: Index, folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.closed = True
    index.add("part")
    monkeypatch.delenv("UV_DEFAULT_INDEX")
    monkeypatch.setenv(name, index.url.replace("://", f"://{USER}:{PASSWORD}@"))
    env = made(folder, ["part"])
    assert PASSWORD not in "".join(path.read_text() for path in (env / LOCK, env / "venv" / "pyvenv.cfg"))


def test_neither_the_project_nor_other_variables_steer_uv(
    index: Index, folder: Path, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two(index)
    for path in (tmp_path / "uv.toml", folder / "uv.toml", home / ".config" / "uv" / "uv.toml"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("offline = true\n")
    (tmp_path / ".python-version").write_text("3.99\n")
    monkeypatch.chdir(tmp_path)
    for name in ("UV_CONFIG_FILE", "UV_CONSTRAINT", "UV_OVERRIDE"):
        monkeypatch.setenv(name, str(tmp_path / "uv.toml"))
    monkeypatch.setenv("UV_PYTHON", "3.99")
    monkeypatch.setenv("UV_COMPILE_BYTECODE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    assert made(folder, ["tool"]).is_dir()
    assert not (tmp_path / "cache").exists()


def test_an_index_that_hangs_takes_no_longer_than_the_time_limit(index: Index, folder: Path) -> None:
    index.add("part")
    index.hangs, started = True, time.monotonic()
    with pytest.raises(FetchFailed, match="too long") as caught:
        made(folder, ["part"], timeout=1.0)
    assert caught.value.data["reason"] == "timeout"
    assert time.monotonic() - started < 5
    assert left_in(folder) == [] and started_for(fingerprint(["part"])) == []


def started_for(name: str) -> list[str]:
    """The command lines of processes that name an environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [line for line in [path.read_bytes().decode("utf-8", "replace")] if name in line]
        except OSError:
            continue
    return found


def test_packages_that_take_too_much_disk_are_refused(index: Index, folder: Path) -> None:
    index.add("part", {"part.py": "", "data.bin": os.urandom(3_000_000)})
    with pytest.raises(Refused, match="1 MiB") as caught:
        made(folder, ["part"], disk=1024**2)
    assert caught.value.data["reason"] == "too-large"
    assert left_in(folder) == []


def test_without_uv_the_extra_is_named(index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index.add("part")
    program = uv.find_uv_bin()
    monkeypatch.setitem(sys.modules, "uv", None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NotLoadable, match="uv") as caught:
        made(folder, ["part"])
    assert caught.value.hint == "pip install 'navigator-kernel[env]'"
    assert not folder.exists()
    monkeypatch.setenv("PATH", str(Path(program).parent))
    assert made(folder, ["part"]).is_dir()


MAKE = """
import sys
from pathlib import Path
from navigator_kernel.adapters.processes.environments import Environments
print(Environments(Path(sys.argv[1])).make(sys.argv[2], sys.argv[3:]))
"""


def making(folder: Path, requirements: Sequence[str]) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", MAKE, str(folder), fingerprint(requirements), *requirements]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def eventually(holds: Callable[[], object]) -> bool:
    end = time.monotonic() + 10
    while not holds() and time.monotonic() < end:
        time.sleep(0.02)
    return bool(holds())


def test_a_build_that_was_killed_counts_for_nothing_and_is_swept(index: Index, folder: Path) -> None:
    two(index)
    index.hangs, name = True, fingerprint(["tool"])
    with making(folder, ["tool"]) as builder:
        assert eventually(lambda: index.asked)
        builder.kill()
    (left,) = folder.glob("building-*")
    orphans = working_in(left / "work")
    assert Environments(folder).path(name) is None
    index.hangs = False
    index.add("other")
    made(folder, ["other"])
    for pid in orphans:
        os.kill(pid, signal.SIGKILL)
    assert made(folder, ["tool"]).name == name
    assert sorted(left_in(folder)) == sorted([name, fingerprint(["other"])])


@pytest.mark.parametrize("gone", ["made.json", LOCK, "venv/bin/python", "venv/lib", "bytecode"])
def test_an_incomplete_environment_is_rebuilt(index: Index, folder: Path, gone: str) -> None:
    two(index)
    env = made(folder, ["tool"])
    FolderWriter([env]).remove(env / gone)
    assert Environments(folder).path(env.name) is None
    index.asked.clear()
    assert made(folder, ["tool"]) == env == Environments(folder).path(env.name)
    assert index.asked


def test_an_environment_with_a_changed_file_is_not_found(index: Index, folder: Path) -> None:
    two(index)
    env = made(folder, ["tool"])
    (changed,) = env.glob("venv/lib/*/site-packages/part.py")
    changed.write_text("NAME = 'trap'\n")
    assert Environments(folder).path(env.name) is None


def test_an_environment_is_named_as_it_really_lies(index: Index, folder: Path, tmp_path: Path) -> None:
    """In a sandbox, no link leads to it."""
    two(index)
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    assert made(tmp_path / "link", ["tool"]).parent == folder


def test_an_environment_name_that_is_not_a_fingerprint_is_refused(folder: Path) -> None:
    for name in ("../x", "", "A" * 64, "a" * 63):
        with pytest.raises(Refused):
            Environments(folder).path(name)


def test_two_at_once_make_it_once(index: Index, folder: Path) -> None:
    two(index)
    made(folder.with_name("alone"), ["tool"])
    alone = sorted(index.asked)
    index.asked.clear()
    builders = [making(folder, ["tool"]) for _ in range(2)]
    ended = [(builder.communicate(timeout=60), builder.returncode) for builder in builders]
    assert [(out[0].strip(), code) for out, code in ended] == [(str(folder / fingerprint(["tool"])), 0)] * 2, ended
    assert sorted(index.asked) == alone


def test_only_python_itself_is_another_program(tmp_path: Path) -> None:
    program = str(tmp_path / "venv" / "bin" / "python")
    for started in ("python", "python3", sys.executable):
        assert argv_in(tmp_path, (started, "python")) == (program, "python")
    assert argv_in(tmp_path, ("bash", "python")) == ("bash", "python")
    assert activated(tmp_path)["PATH"].startswith(f"{tmp_path}/venv/bin:")

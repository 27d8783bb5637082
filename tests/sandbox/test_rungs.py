"""Which sandbox is used, and what happens if there is none."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import stat
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from navigator_kernel.adapters.files.tree import disk_used, listed
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.processes.process import ProcessRunner
from navigator_kernel.errors import NoSandbox, NotFound, UsageProblem
from navigator_kernel.sandbox import contain
from navigator_kernel.sandbox.backends import SandboxBackend, landlock_abi, launch, program, rungs
from navigator_kernel.sandbox.confinement import Confinement, _system, confinement
from navigator_kernel.sandbox.contain import ContainedRunner, trial
from navigator_kernel.values.job import Job, Outcome


@pytest.fixture
def runner(tmp_path: Path) -> ContainedRunner:
    kept = tmp_path / "kept"
    return ContainedRunner(ProcessRunner(), kept / "sandbox.json", lambda: FolderWriter([kept]))


def job(folder: Path, *argv: str, **given: object) -> Job:
    held = {"actor": "type_a", "subject": "it", "digest": "sha256:0", "run": "r", "timeout": 20.0, **given}
    return Job(argv=argv or ("echo", "hello"), cwd=folder, **held)  # type: ignore[arg-type]  # fields of a Job


def ran(runner: ContainedRunner, job: Job) -> Outcome:
    return asyncio.run(runner.run(job))


def broken(name: str) -> SandboxBackend:
    return SandboxBackend(
        name, lambda argv, _: {"argv": list(argv), "landlock": (b"", []), "seccomp": None, "marks": ()}
    )


def test_the_best_that_works_is_used_and_remembered(
    runner: ContainedRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = rungs()[-1]
    monkeypatch.setattr(contain, "rungs", lambda: (broken("best"), good))
    assert runner.rung() is good
    assert json.loads(runner.memory.read_text())["rung"] == good.name
    monkeypatch.setattr(contain, "trial", lambda *_: pytest.fail("it was tried again"))
    assert runner.rung() is good
    assert ran(runner, job(tmp_path)).stdout == b"hello\n"


@pytest.mark.parametrize("held", ["", "[", "7", '{"key": 1, "rung": "x"}', '{"rung": {}}'])
def test_an_invalid_record_of_the_chosen_sandbox_is_ignored(runner: ContainedRunner, held: str) -> None:
    runner.memory.parent.mkdir()
    runner.memory.write_text(held)
    found = runner.rung()
    assert found is not None and found.name == rungs()[0].name


def test_another_start_of_the_machine_tries_again(runner: ContainedRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    runner.rung()
    monkeypatch.setattr(contain, "_machine", lambda: ["another"])
    tried: list[str] = []

    def works(rung: SandboxBackend) -> str:
        tried.append(rung.name)
        return ""

    monkeypatch.setattr(contain, "trial", works)
    assert runner.rung() is not None and tried == [rungs()[0].name]


def test_a_sandbox_that_contains_nothing_is_not_taken_for_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program is called bwrap but only starts its command."""
    fake = tmp_path / "bin" / "bwrap"
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    assert shutil.which("bwrap") == str(fake)
    assert rungs()[0].name == "bubblewrap" and trial(rungs()[0]) == "it does not hide files"


def test_with_bubblewrap_hidden_landlock_takes_over(
    runner: ContainedRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not landlock_abi():
        pytest.skip("this kernel has no Landlock")
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, **given: None if name == "bwrap" else which(name, **given))
    found = runner.rung()
    assert found is not None and found.name == "landlock"


@pytest.mark.requirement("SAF-8")
def test_without_a_sandbox_nothing_runs_unless_unsafe_and_the_hint_lists_three_remedies(
    runner: ContainedRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contain, "rungs", lambda: (broken("only"),))
    with pytest.raises(NoSandbox) as caught:
        ran(runner, job(tmp_path, "touch", "ran"))
    assert (caught.value.exit_code, len(caught.value.hint.split("; "))) == (8, 3)
    assert os.listdir(tmp_path) == []
    assert not runner.memory.exists()  # so a rung that is installed later is found
    runner.unsafe = True
    assert ran(runner, job(tmp_path, "touch", "ran")).exit_code == 0


@pytest.mark.wide
def test_with_both_hidden_a_run_ends_with_8_and_the_flag_lets_it_run(tmp_path: Path) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    hidden = "landlock_create_ruleset"
    argv = [strace, "-f", "-qq", "-o", os.devnull, "-e", f"trace={hidden}", "-e", f"inject={hidden}:error=ENOSYS"]
    argv += [sys.executable, "-m", "navigator_kernel.cli.main", "ask", "word count of this: hello brave world"]
    env = {**os.environ, "PATH": str(Path(sys.executable).parent)}
    told = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert told.returncode == 8, told.stdout + told.stderr
    for way in ("apt-get install bubblewrap", "Landlock", "--unsafe-no-sandbox"):
        assert way in told.stdout
    told = subprocess.run([*argv, "--unsafe-no-sandbox"], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert told.returncode == 0 and "3 words" in told.stdout


def test_a_program_that_is_not_there_is_named(runner: ContainedRunner, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="frobnicate"):
        ran(runner, job(tmp_path, "frobnicate"))


def test_an_argument_that_is_too_long_is_a_usage_problem(runner: ContainedRunner, tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="128 KiB"):
        ran(runner, job(tmp_path, "echo", "x" * 131_072))
    assert len(ran(runner, job(tmp_path, "echo", "x" * 131_000)).stdout) == 131_001


def test_a_job_can_read_but_not_write_a_named_file_and_cannot_read_an_unnamed_one(
    runner: ContainedRunner, tmp_path: Path
) -> None:
    (tmp_path / "named").write_text("said")
    (tmp_path / "other").write_text("unsaid")
    (tmp_path / "run").mkdir()
    reads = (tmp_path / "named", tmp_path / "gone")
    code = "cat ../named; cat ../other; echo x >> ../named"
    done = ran(runner, job(tmp_path / "run", "sh", "-c", code, reads=reads))
    assert (done.stdout, done.exit_code != 0) == (b"said", True)
    assert (tmp_path / "named").read_text() == "said"


@pytest.mark.parametrize("rung", rungs(), ids=lambda rung: rung.name)
def test_project_access_excludes_sessions_unnamed_inputs_and_links_out_of_the_project(
    runner: ContainedRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rung: SandboxBackend
) -> None:
    monkeypatch.setattr(contain, "rungs", lambda: (rung,))
    root, outside = tmp_path / "project", tmp_path / "outside"
    work = root / "mybox" / "workspace" / "run"
    for folder in (work, root / "mybox" / "state", root / "mybox" / "in", root / "src" / "deep", outside):
        folder.mkdir(parents=True)
    told = {
        "mybox/state/sessions": "s",
        "mybox/in/named": "n",
        "mybox/in/unnamed": "u",
        "src/deep/code": "c",
        "top": "t",
    }
    for name, text in told.items():
        (root / name).write_text(text)
    (outside / "key").write_text("k")
    (root / "way").symlink_to(outside)
    reads = (root, root / "mybox" / "in" / "named")
    code = "cd ../../..; for f in top src/deep/code mybox/in/named mybox/in/unnamed mybox/state/sessions way/key; do cat $f; done"
    done = ran(runner, job(work, "sh", "-c", code, reads=reads))
    assert done.stdout == b"tcn"
    assert ran(runner, job(work, "sh", "-c", "echo x > kept && cat kept", reads=reads)).stdout == b"x\n"
    assert ran(runner, job(work, "sh", "-c", "echo x > ../../../top", reads=reads)).exit_code != 0


@pytest.mark.parametrize("rung", rungs(), ids=lambda rung: rung.name)
def test_a_program_of_a_version_manager_runs_with_its_parts_and_sees_nothing_else_of_the_home(
    runner: ContainedRunner, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, rung: SandboxBackend
) -> None:
    monkeypatch.setattr(contain, "rungs", lambda: (rung,))
    node, snakes = home / ".nvm/versions/node/v20", home / ".pyenv"
    texts = {
        node / "bin/greet": f"#!/bin/sh\ncat {node}/lib/words\n",
        node / "lib/words": "hello\n",
        node / "token": "secret\n",
        snakes / "shims/snake": f'#!/bin/sh\nexec "{snakes}/versions/$(cat {snakes}/version)/bin/snake"\n',
        snakes / "version": "3.12\n",
        snakes / "versions/3.12/bin/snake": "#!/bin/sh\necho hiss\n",
        home / ".local/bin/mine": "#!/bin/sh\necho mine\n",
        home / "bin/mine": "#!/bin/sh\necho mine\n",
        home / "lib/words": "secret\n",
    }
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    folders = (node / "bin", snakes / "shims", home / ".local/bin", home / "bin")
    monkeypatch.setenv("PATH", ":".join([*map(str, folders), os.environ["PATH"]]))
    _system.cache_clear()
    work = tmp_path / "run"
    work.mkdir()
    assert ran(runner, job(work, "greet")).stdout == b"hello\n"
    with pytest.raises(NotFound, match="the sandbox does not show"):
        ran(runner, job(work, "mine"))
    code = f"greet; snake; mine; cat {node}/token {home}/lib/words"
    done = ran(runner, job(work, "sh", "-c", code))
    _system.cache_clear()
    assert (done.stdout, done.exit_code != 0) == (b"hello\nhiss\n", True)


def test_a_script_of_this_release_is_not_contained(runner: ContainedRunner, tmp_path: Path) -> None:
    """It is the kernel's own command line, which has the person's rights."""
    runner.memory = tmp_path / "never"
    assert ran(runner, job(tmp_path, actor="script", shipped=True)).exit_code == 0
    assert not runner.memory.exists()


def test_links_are_seen_as_what_they_lead_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "way").symlink_to("real")
    held = confinement(job(tmp_path / "way", reads=(tmp_path / "way",)))
    assert held.writes == tmp_path / "real" and tmp_path / "real" in held.reads and tmp_path / "way" not in held.reads


def test_bytes_on_disk_are_counted_without_following_links(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "big").write_bytes(bytes(1_000_000))
    (tmp_path / "way").symlink_to("/usr")
    assert 1_000_000 <= disk_used(tmp_path, 1 << 30) < 1_100_000


def test_a_tree_of_names_alone_is_measured_no_further_than_its_limit(tmp_path: Path) -> None:
    """Empty files take no blocks: the limit of 512 MiB ends a count of 700,000 at 131,072, here 2 MiB at 512."""
    for at in range(600):
        (tmp_path / str(at)).touch()
    assert disk_used(tmp_path, 2 << 20) == (2 << 20) + 4096
    assert listed(tmp_path, entries=100).cut and len(listed(tmp_path, entries=100).files) == 100


@pytest.mark.parametrize("mode", [0o300, 0o000])
def test_a_folder_that_its_maker_closed_is_measured_and_a_link_in_its_place_changes_nothing(
    tmp_path: Path, mode: int
) -> None:
    closed, outside, run = tmp_path / "run" / "closed", tmp_path / "outside", tmp_path / "run"
    closed.mkdir(parents=True)
    (closed / "big").write_bytes(bytes(1_000_000))
    closed.chmod(mode)
    outside.mkdir(0o500)
    (run / "way").symlink_to(outside)
    assert disk_used(run, 1 << 30) >= 1_000_000
    assert stat.S_IMODE(outside.stat().st_mode) == 0o500


@pytest.mark.skipif(os.getuid() != 0, reason="only root needs a group")
def test_a_group_counts_and_goes_away() -> None:
    waits = subprocess.Popen(["sleep", "600"])
    held = contain.grouped(waits.pid, 3, 1 << 30)
    if held is None:
        waits.kill()
        waits.wait()
        pytest.skip("no control group can be made here")
    assert all(str(waits.pid) in (folder / "cgroup.procs").read_text() for folder in held.folders)
    held.remove()
    assert waits.wait() == -9
    assert not any(folder.exists() for folder in held.folders)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("network", [False, True])
@pytest.mark.parametrize("marks", [False, True])
def test_every_jump_of_a_filter_ends_inside_it_and_every_way_in_a_return(
    machine: str, network: bool, marks: bool
) -> None:
    held = program(network=network, marks=marks, machine=machine)
    assert held is not None and len(held) % 8 == 0 and len(held) // 8 < 4_096
    ops = list(struct.iter_unpack("<HBBI", held))
    for at, (code, yes, no, _) in enumerate(ops):
        if code & 7 == 5:  # BPF_JMP
            assert at + 1 + max(yes, no) < len(ops)
    assert ops[-1][0] == 6  # BPF_RET


def test_under_landlock_a_mode_cannot_be_changed_when_nobody_answers_the_call(tmp_path: Path) -> None:
    rung = next((rung for rung in rungs() if rung.name == "landlock"), None)
    if rung is None:
        pytest.skip("this kernel has no Landlock")
    (tmp_path / "mine").touch(0o600)
    reads = tuple(path for path in map(Path, ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache")) if path.exists())
    held = Confinement(reads=reads, hidden=(), writes=tmp_path, scratch=None, network=False, limits={})
    spec = {"gate": None, "seconds": 0, "threads": 0, "limits": {}, **rung.wrap(["/bin/chmod", "644", "mine"], held)}
    for answered in (False, True):
        words, fd = launch(spec if answered else {**spec, "marks": ({}, [])})  # its thread ends at the first call
        done = subprocess.run(words, pass_fds=(fd,), cwd=tmp_path, capture_output=True, text=True, timeout=60)
        os.close(fd)
        expected = (0, 0o644) if answered else (1, 0o600)
        assert (done.returncode, stat.S_IMODE((tmp_path / "mine").stat().st_mode)) == expected, done.stderr


def test_under_landlock_a_process_whose_memory_cannot_be_read_is_refused(
    runner: ContainedRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is also what Yama does (kernel.yama.ptrace_scope = 2)."""
    monkeypatch.setattr(contain, "rungs", lambda: tuple(rung for rung in rungs() if rung.name == "landlock"))
    code = "import ctypes, os; open('x', 'w'); ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); os.chmod('x', 0o600)"
    done = ran(runner, job(tmp_path, sys.executable, "-c", code))
    assert done.exit_code == 1 and b"PermissionError" in done.stderr


def test_a_machine_whose_calls_are_not_known_has_no_filter() -> None:
    assert program(network=False, machine="riscv64") is None


def test_the_workspace_keeps_what_a_run_made_with_the_persons_own_rights(
    runner: ContainedRunner, tmp_path: Path
) -> None:
    ran(runner, job(tmp_path, "sh", "-c", "echo x > kept"))
    seen = (tmp_path / "kept").stat()
    assert (seen.st_uid, stat.S_IMODE(seen.st_mode) & 0o600) == (os.getuid(), 0o600)

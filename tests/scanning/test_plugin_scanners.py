"""Plugin scanners run in another process, within limits; a failed one means "not scanned" and leaves nothing behind."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import plugins.conftest as packages
from navigator_kernel.adapters.processes import module_child
from navigator_kernel.bootstrap.scanning import scanners
from navigator_kernel.cli.main import run
from skill_repositories import skill_text
from tables import table

pytestmark = pytest.mark.sample(1)

install = packages.install

SCANNER = """
import os, pathlib, sys, time
from navigator_kernel.values.resource import Diagnostic

HERE = pathlib.Path({folder!r})

def one(code="seen", level="warning", path="SKILL.md", message="a plugin saw it"):
    return Diagnostic(code=code, level=level, path=path, message=message)

@hookimpl
def kernel_scan_skill(skill):
    {body}
"""
QUIET = "\n@hookimpl\ndef kernel_precheck(count):\n    return None\n"
STAYS = (
    "if not os.fork():\n        {before}\n        (HERE / 'new').write_text(str(os.getpid()))\n"
    "        (HERE / 'new').rename(HERE / 'pid')\n        time.sleep(60)\n"
)
FAILING = table(__file__, "FAILING")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with one harmless skill."""
    skill = tmp_path / "project" / ".claude" / "skills" / "reader"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(skill_text("reader"))
    (tmp_path / "project" / "mybox").mkdir()
    return tmp_path / "project"


@pytest.fixture
def scanner(install: Callable[..., str], tmp_path: Path) -> Callable[[str], str]:
    """Installs a plugin whose scanner does what `body` says, and returns the plugin's name."""
    return lambda body: install(SCANNER.format(folder=str(tmp_path), body=body))


@pytest.fixture
def said(root: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    def command(*words: str) -> Any:
        code = run(["--root", str(root), "skill", *words, "--json"])
        told = json.loads(capsys.readouterr().out)
        assert told["exit_code"] == code
        return told

    return command


@pytest.fixture
def judged(said: Callable[..., Any]) -> Callable[[], tuple[str, list[str], list[str]]]:
    """Returns verdict, codes and messages of a scan of the harmless skill."""

    def command() -> tuple[str, list[str], list[str]]:
        (found,) = said("scan", "reader")["skills"]
        findings = found["findings"]
        return found["verdict"], [one["code"] for one in findings], [one["message"] for one in findings]

    return command


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of scanners that answered each request to the other process."""
    answers: list[int] = []
    real = module_child.call_module

    def ask(*given: Any, **limits: Any) -> dict[str, Any]:
        answer = real(*given, **limits)
        answers.append(answer["scanners"])
        return answer

    monkeypatch.setattr(scanners, "call_module", ask)
    return answers


def is_dead(pid: int) -> bool:
    """Whether the process ends within twenty seconds; a zombie counts as dead."""
    for _ in range(1_000):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state in {"Z", "X"}:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.requirement("SAF-1")
def test_a_scanner_of_a_plugin_runs_in_another_process(scanner: Any, said: Any, tmp_path: Path) -> None:
    name = scanner("(HERE / 'pid').write_text(str(os.getpid()))\n    return [one()]")
    (source := tmp_path / "guide").mkdir()
    (source / "SKILL.md").write_text(skill_text("guide"))
    (told,) = said("install", str(source))["skills"]
    assert (told["verdict"], [one["code"] for one in told["findings"]]) == ("warn", ["seen"])
    assert int((tmp_path / "pid").read_text()) != os.getpid()
    assert name not in sys.modules


def test_a_scanner_is_given_every_file_of_the_skill(scanner: Any, judged: Any, root: Path) -> None:
    (root / ".claude/skills/reader/data.bin").write_bytes(b"\x00\xff")
    scanner("return [one(message=repr(sorted((path, len(data)) for path, data in skill.items())))]")
    size = len(skill_text("reader"))
    assert judged()[2] == [f"[('SKILL.md', {size}), ('data.bin', 2)]"]


@pytest.mark.wide
def test_a_warning_of_a_scanner_is_a_warning(scanner: Any, judged: Any) -> None:
    scanner("return [one()]")
    assert judged() == ("warn", ["seen"], ["a plugin saw it"])


@pytest.mark.requirement("SAF-1")
def test_an_error_of_a_scanner_blocks(scanner: Any, said: Any, tmp_path: Path) -> None:
    scanner("return [one(level='error')]")
    (source := tmp_path / "guide").mkdir()
    (source / "SKILL.md").write_text(skill_text("guide"))
    assert [one["verdict"] for one in said("scan", "reader")["skills"]] == ["block"]
    error = said("install", str(source))["error"]
    assert (error["exit_code"], [one["code"] for one in error["findings"]]) == (3, ["seen"])


@pytest.mark.wide
@pytest.mark.parametrize("body", ["return []", "return None", "yield from ()"])
def test_a_scanner_that_finds_nothing_leaves_the_verdict_as_it_is(scanner: Any, judged: Any, body: str) -> None:
    scanner(body)
    assert judged() == ("ok", [], [])


@pytest.mark.wide
@pytest.mark.requirement("SAF-1")
@pytest.mark.parametrize("body", FAILING.values(), ids=FAILING)
def test_a_scanner_that_fails_means_not_scanned(
    scanner: Any, judged: Any, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    monkeypatch.setattr(scanners, "SECONDS", 2)
    monkeypatch.setattr(scanners, "MEMORY", 512 * 1024**2)
    scanner(body)
    verdict, codes, _ = judged()
    assert (verdict, codes) == ("not_scanned", ["not-scanned"])


@pytest.mark.wide
def test_a_scanner_that_cannot_be_loaded_means_not_scanned(install: Any, judged: Any) -> None:
    install("raise RuntimeError('broken')")
    assert judged()[:2] == ("not_scanned", ["not-scanned"])


def test_a_scanner_that_fails_is_named_with_the_reason(scanner: Any, judged: Any) -> None:
    name = scanner("raise RuntimeError('it cannot')")
    assert judged()[2] == [f"{name}: RuntimeError: it cannot"]


@pytest.mark.wide
def test_findings_of_one_scanner_count_even_if_another_fails(scanner: Any, judged: Any) -> None:
    scanner("raise RuntimeError('it cannot')")
    scanner("return [one(level='error')]")
    verdict, codes, _ = judged()
    assert (verdict, sorted(codes)) == ("block", ["not-scanned", "seen"])


@pytest.mark.wide
def test_a_skill_that_was_not_scanned_is_installed_as_such(scanner: Any, said: Any, tmp_path: Path) -> None:
    scanner("raise RuntimeError('it cannot')")
    (source := tmp_path / "guide").mkdir()
    (source / "SKILL.md").write_text(skill_text("guide"))
    said("install", str(source))
    assert said("info", "guide")["receipt"]["verdict"] == "not_scanned"


@pytest.mark.wide
@pytest.mark.parametrize(
    ("before", "seconds", "verdict"),
    [("pass", 8, "not_scanned"), ("os.closerange(0, 64)", 30, "ok")],
    ids=["talks", "silent"],
)
def test_no_process_of_a_scanner_stays(
    scanner: Any,
    judged: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    before: str,
    seconds: float,
    verdict: str,
) -> None:
    monkeypatch.setattr(scanners, "SECONDS", seconds)
    waits = "    while not (HERE / 'pid').exists(): time.sleep(0.01)\n    return []"
    scanner(STAYS.format(before=before) + waits)
    assert judged()[0] == verdict
    assert is_dead(int((tmp_path / "pid").read_text()))


@pytest.mark.wide
def test_a_child_in_a_session_of_its_own_does_not_stay(scanner: Any, judged: Any, tmp_path: Path) -> None:
    waits = "    while not (HERE / 'pid').exists(): time.sleep(0.01)\n    return []"
    scanner(STAYS.format(before="os.setsid()\n        os.closerange(0, 64)") + waits)
    judged()
    assert is_dead(int((tmp_path / "pid").read_text()))


@pytest.mark.wide
def test_a_scanner_that_hangs_is_dead_afterwards(
    scanner: Any, judged: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(scanners, "SECONDS", 10)
    scanner("(HERE / 'pid').write_text(str(os.getpid()))\n    time.sleep(60)")
    began = time.monotonic()
    assert judged()[0] == "not_scanned"
    assert time.monotonic() - began < 40
    assert is_dead(int((tmp_path / "pid").read_text()))


@pytest.mark.wide
@pytest.mark.parametrize("what", ["print('{}')", "os.write(1, b'{}')", "sys.stdout.write('x' * 1000000)"])
def test_the_printed_output_of_a_scanner_is_not_part_of_its_answer(scanner: Any, judged: Any, what: str) -> None:
    scanner(f"{what}\n    return [one()]")
    assert judged() == ("warn", ["seen"], ["a plugin saw it"])


@pytest.mark.parametrize("name", ["json.py", "marshal.py", "sitecustomize.py", "usercustomize.py", "pluggy.py"])
def test_nothing_of_the_current_folder_is_imported(
    scanner: Any, judged: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    scanner("return [one()]")
    (stranger := tmp_path / "stranger").mkdir()
    (stranger / name).write_text(f"import pathlib\npathlib.Path({str(tmp_path / 'ran')!r}).touch()\n")
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])  # as in the installed program
    monkeypatch.chdir(stranger)
    assert judged() == ("warn", ["seen"], ["a plugin saw it"])
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("form", [[], ["--json"], ["--sarif"]], ids=["plain", "json", "sarif"])
def test_a_scanners_words_cannot_steer_the_terminal(
    scanner: Any, root: Path, capsys: pytest.CaptureFixture[str], form: list[str]
) -> None:
    steers = r"'\x1b[31mred\x1b]0;title\x07 \u202eright\u200b'"
    scanner(f"return [one(code={steers}, path={steers}, message={steers})]")
    run(["--root", str(root), "skill", "scan", "reader", *form])
    shown = capsys.readouterr()
    assert not set("\x1b\x07\u202e\u200b") & set(shown.out + shown.err)
    assert "red" in shown.out and "\\u001b" not in shown.out


@pytest.mark.requirement("SAF-8")
def test_a_scanner_sees_nothing_that_is_not_of_the_skill_on_its_input(scanner: Any, judged: Any) -> None:
    scanner("return [one(message=repr(sys.stdin.buffer.read()))]")
    assert judged()[2] == ["b''"]


@pytest.mark.wide
def test_if_no_plugin_has_a_scanner_the_plugin_process_is_asked_once(install: Any, said: Any, asked: Any) -> None:
    install(QUIET)
    assert said("scan", "--all")["count"] > 5
    assert asked == [0]


@pytest.mark.wide
def test_if_a_plugin_has_a_scanner_the_plugin_process_is_asked_once_per_skill(
    scanner: Any, said: Any, asked: Any, root: Path
) -> None:
    scanner("return []")
    (other := root / ".claude/skills/writer").mkdir()
    (other / "SKILL.md").write_text(skill_text("writer"))
    said("scan", str(root / ".claude" / "skills"))
    assert asked == [1, 1]


def test_without_plugins_no_plugin_process_is_asked(said: Any, asked: Any) -> None:
    said("scan", "--all")
    assert asked == []

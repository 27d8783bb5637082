"""Every command prints one JSON document on request and ends with the documented exit code."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tables import cases, table

pytestmark = pytest.mark.sample(1)

# words → exit code, in a project with nothing but mybox
COMMANDS: list[tuple[tuple[str, ...], int]] = list(table(__file__, "COMMANDS"))


@pytest.mark.parametrize(("words", "code"), COMMANDS, ids=[" ".join(words) for words, _ in COMMANDS])
def test_a_command_prints_exactly_one_json_document(run: Any, words: tuple[str, ...], code: int) -> None:
    done = run(*words, "--json")
    assert done.code == code, done.err
    told = done.document()
    assert told.get("exit_code", code) == code
    assert ("error" in told) == ((code in {2, 4} and words[0] != "ask") or words == ("ask",))


@pytest.mark.parametrize(("words", "code"), COMMANDS, ids=[" ".join(words) for words, _ in COMMANDS])
def test_a_command_says_the_same_to_a_person(run: Any, words: tuple[str, ...], code: int) -> None:
    done = run(*words)
    assert done.code == code
    assert done.out or done.err
    assert "Traceback" not in done.err
    assert "\x1b" not in done.out + done.err


@pytest.mark.parametrize(
    "text", ["review this code", "审查代码", "nothing that anybody knows", "   ", "first list todos, then review code"]
)
def test_a_route_without_options_says_what_it_says_with_them(run: Any, text: str) -> None:
    """The first is answered before the command line is parsed, the second after it."""
    plain, parsed = run("route", *text.split(" ")), run("route", *text.split(" "), "-k", "5")
    assert (plain.code, plain.out, plain.err) == (parsed.code, parsed.out, parsed.err)


@pytest.mark.parametrize(
    "words", [(), ("--help",), ("skill", "--help"), ("ask", "-h"), ("skill", "install", "-h"), ("--version",)]
)
def test_help_is_there_at_every_level(run: Any, words: tuple[str, ...]) -> None:
    done = run(*words)
    assert done.code in ({2, 0} if not words else {0})
    assert "navigator" in (done.out + done.err).lower()


@pytest.mark.parametrize("words", [(), ("host",), ("skill",), ("config",), ("mcp",)], ids=" ".join)
def test_a_group_alone_shows_its_help_and_no_error(run: Any, words: tuple[str, ...]) -> None:
    done = run(*words)
    assert (done.code, done.out, done.err) == (2, "", run(*words, "--help").out)


def test_every_command_is_in_the_help(run: Any) -> None:
    from navigator_kernel.cli.registry import COMMANDS as KNOWN

    text = run("--help").out
    assert all(f"  {name}" in text for name in KNOWN)


# States


@pytest.mark.parametrize(("style", "mark"), [("emoji", "✅ skills"), ("ascii", "[OK] skills")])
def test_a_state_is_marked_in_the_style_that_is_set(run: Any, style: str, mark: str) -> None:
    assert run("--style", style, "ask", "/word-count x").out.startswith(mark)


@pytest.mark.parametrize(("encoding", "mark"), [("ascii", "[OK]"), ("gbk", "[OK]"), ("utf-8", "✅")])
def test_the_style_follows_the_terminals_encoding(run: Any, encoding: str, mark: str) -> None:
    import subprocess
    import sys

    from cli.conftest import environment

    env = environment(PYTHONIOENCODING=encoding, PYTHONUTF8="0")
    argv = [sys.executable, "-m", "navigator_kernel.cli.main", "ask", "/word-count 你好"]
    done = subprocess.run(argv, env=env, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.decode(encoding, "replace").startswith(mark)) == (0, True)


@pytest.mark.requirement("OUT-1", "OUT-2", "OUT-3")
def test_a_task_is_shown_with_its_three_sections(run: Any) -> None:
    out = run("ask", "--format", "protocol", "/code-review x").out
    assert out.index("[Logic Trace]") < out.index("[Action Vector]") < out.index("[State Update]")


@pytest.mark.requirement("OUT-4")
@cases("words")
def test_abilities_short_formats_and_questions_are_shown_without_a_logic_trace(
    run: Any, words: tuple[str, ...]
) -> None:
    assert "[Logic Trace]" not in run("ask", *words).out


def test_a_message_may_come_from_a_pipe(run: Any) -> None:
    assert run("ask", typed="/word-count x\n").code == run("ask", "-", typed="/word-count x\n").code == 0


# why


@pytest.mark.wide
@pytest.mark.requirement("OUT-1", "INT-7")
def test_why_shows_the_newest_choice(run: Any) -> None:
    run("ask", "/word-count one two")
    run("ask", "review this code: x = 1")
    done = run("why", "-v")
    assert done.code == 0
    for word in ("message", "offered", "shortlist", "decided", "chosen", "used", "ended", "code-review"):
        assert word in done.out
    assert "word-count one" not in done.out


@pytest.mark.wide
def test_why_as_json_shows_a_named_run(run: Any) -> None:
    first = run("ask", "/word-count one two", "--json").document()["run"]
    run("ask", "hello my friend")
    told = run("why", first, "--json").document()
    assert (told["run"], told["events"][0]["data"]["message"]) == (first, "/word-count one two")


# route


@pytest.mark.requirement("INT-1")
@cases("text, kind, entity, tier")
def test_route_says_what_would_be_done_and_does_nothing(
    run: Any, root: Path, text: str, kind: str, entity: str | None, tier: str
) -> None:
    told = run("route", text, "--json").document()
    assert (told["kind"], told["entity"], told["tier"]) == (kind, entity, tier)
    left = {str(path.relative_to(root / "mybox")) for path in (root / "mybox").rglob("*") if path.is_file()}
    assert left <= {".gitignore", "state/project-id"}  # identifies the project's skill index in the person's state


# config


@pytest.mark.wide
@pytest.mark.parametrize("key", ["style", "language"])
def test_a_flag_wins_over_the_environment_over_the_project_over_the_person(
    run: Any, root: Path, home: Path, key: str
) -> None:
    words = {"style": ("emoji", "ascii", "auto"), "language": ("zh", "en", "auto")}[key]

    def told(*flags: str, **env: str) -> tuple[str, str]:
        found = run(*flags, "config", "get", key, "--json", env=env).document()
        return found["value"], found["origin"]

    assert told() == ("auto", "default")
    assert run("config", "set", key, words[0], "--user").code == 0
    assert told() == (words[0], "user")
    assert run("config", "set", key, words[1]).code == 0
    assert told() == (words[1], "project")
    variable = {f"NAVIGATOR_{key.upper()}": words[2]}
    assert told(**variable) == (words[2], "environment")
    assert told(f"--{key}", words[0], **variable) == (words[0], "flag")
    assert run("config", "unset", key).code == 0
    assert told() == (words[0], "user")


def test_a_setting_is_written_where_it_was_asked_for_and_comments_stay(run: Any, root: Path) -> None:
    (root / "navigator.toml").write_text("# mine\nstyle = 'ascii'  # so\n")
    assert run("config", "set", "timeout", "7").code == 0
    text = (root / "navigator.toml").read_text()
    assert "# mine" in text and "# so" in text and "timeout = 7" in text


@pytest.mark.requirement("SAF-1")
def test_a_project_cannot_set_servers_or_models(run: Any, root: Path) -> None:
    (root / "navigator.toml").write_text('[mcp.servers.evil]\ncommand = "/bin/sh"\n[models.aliases]\nclaude = "x:y"\n')
    told = run("config", "list", "--json").document()
    assert (told["servers"], told["aliases"], len(told["notes"])) == ([], {}, 2)


@pytest.mark.parametrize("words", [("skill", "list"), ("config", "list"), ("ask", "hello")])
def test_a_broken_settings_file_is_a_clear_error(run: Any, root: Path, words: tuple[str, ...]) -> None:
    (root / "navigator.toml").write_text("timeout = \n")
    done = run(*words, "--json")
    if words == ("skill", "list"):
        assert done.code in {0, 6}
        return
    assert (done.code, "navigator.toml" in done.document()["error"]["msg"]) == (6, True)


# init, gc


@pytest.mark.requirement("REG-5", "REG-8")
def test_init_makes_a_project_in_which_a_message_is_answered(run: Any, tmp_path: Path) -> None:
    place = tmp_path / "fresh"
    place.mkdir()
    told = run("init", "--json", cwd=place).document()
    assert told["written"] == ["mybox/.gitignore"]
    assert all((place / name).is_file() for name in told["written"])
    assert run("ask", "/word-count x", cwd=place).code == 0


def test_init_leaves_existing_files_alone(run: Any, tmp_path: Path) -> None:
    run("init", "--workstation", cwd=tmp_path)
    (tmp_path / "docs" / "commands.md").write_text("mine\n")
    assert run("init", "--workstation", "--json", cwd=tmp_path).document()["written"] == []
    assert (tmp_path / "docs" / "commands.md").read_text() == "mine\n"


@pytest.mark.requirement("SAF-1")
def test_a_dry_run_of_init_writes_nothing(run: Any, tmp_path: Path) -> None:
    place = tmp_path / "fresh"
    place.mkdir()
    told = run("init", "--workstation", "--dry-run", "--json", cwd=place).document()
    assert (told["dry_run"], len(told["written"]) > 2, list(place.iterdir())) == (True, True, [])


@pytest.fixture
def aged(root: Path) -> Path:
    old = time.time() - 90 * 86_400
    for name in (
        "temp/a.txt",
        "logs/runs/20250101-1-a.jsonl",
        "workspace/20250101-1-a/out.txt",
        "workflows/plan.md",
        "state/kept.json",
        "cache/x",
    ):
        path = root / "mybox" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
        os.utime(path, (old, old))
        os.utime(path.parent, (old, old))
    return root / "mybox"


def test_gc_removes_temporary_and_old_files_and_keeps_workflows_and_state(run: Any, aged: Path) -> None:
    told = run("gc", "--results", "--json").document()
    assert set(told["removed"]) == {
        "mybox/temp/a.txt",
        "mybox/logs/runs/20250101-1-a.jsonl",
        "mybox/workspace/20250101-1-a",
    }
    kept = {path.relative_to(aged).as_posix() for path in aged.rglob("*") if path.is_file()}
    assert {"workflows/plan.md", "state/kept.json"} <= kept


def test_a_dry_run_of_gc_removes_nothing(run: Any, aged: Path) -> None:
    before = sorted(aged.rglob("*"))
    assert len(run("gc", "--results", "--dry-run", "--json").document()["removed"]) == 3
    assert sorted(aged.rglob("*")) == before


def test_gc_leaves_alone_what_a_link_points_to(run: Any, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "dear.txt").write_text("mine")
    (root / "mybox" / "temp").symlink_to(outside)
    run("gc", "--days", "0")
    assert (outside / "dear.txt").read_text() == "mine"


# Completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_printed(run: Any, shell: str) -> None:
    done = run("completion", shell)
    assert done.code == 0
    assert "_NAVIGATOR_COMPLETE" in done.out


def test_completion_knows_the_commands(run: Any) -> None:
    done = run(env={"_NAVIGATOR_COMPLETE": "bash_complete", "COMP_WORDS": "navigator sk", "COMP_CWORD": "1"})
    assert "skill" in done.out


@pytest.mark.parametrize("script", ["skill_manager.py", "chat.py", "doctor.py"])
def test_a_script_of_bin_is_short_and_starts(run: Any, script: str) -> None:
    from cli.conftest import TOP

    assert len((TOP / "bin" / script).read_text().splitlines()) <= 10
    assert run("--help", script=script).code == 0


def test_a_closed_pipe_ends_without_a_word(root: Path) -> None:
    import subprocess
    import sys

    from cli.conftest import environment

    line = f"{sys.executable} -m navigator_kernel.cli.main skill list --json | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", line], cwd=root, env=environment(), capture_output=True, timeout=60, check=False
    )
    assert done.returncode in {0, 1}
    assert done.stderr == b""


def test_a_document_is_utf8_whatever_it_holds(run: Any) -> None:
    told = run(
        "ask", "--json", "/code-review 你好 \udc80".encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    ).document()
    assert "你好" in json.dumps(told, ensure_ascii=False)

"""A coding agent's hook prints a line on the skill that fits, from the resident process, or nothing; it never fails."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.support import Place, environment, place_in
from navigator_kernel.daemon import prompt_hook
from navigator_kernel.daemon.client import ask, socket_path
from navigator_kernel.daemon.prompt_hook import render_hint
from tables import cases

ARGV = (sys.executable, "-P", "-m", "navigator_kernel.daemon.prompt_hook")


def hooked(here: Place, data: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(ARGV, input=data, capture_output=True, timeout=20, cwd=here.root, env=environment())


def said(here: Place, prompt: str, event: str = "UserPromptSubmit") -> str:
    data = json.dumps({"prompt": prompt, "cwd": str(here.root), "hook_event_name": event}).encode()
    done = hooked(here, data)
    assert (done.returncode, done.stderr) == (0, b"")
    if not done.stdout:
        return ""
    told = json.loads(done.stdout)["hookSpecificOutput"]
    assert told["hookEventName"] == event
    return str(told["additionalContext"])


@pytest.fixture
def here(tmp_path: Path, home: Path) -> Iterator[Place]:
    """A project with a running resident process."""
    here = place_in(tmp_path)
    argv = [*here.program, "--root", str(here.root), "route", "--serve", "--json"]
    with subprocess.Popen(argv, cwd=here.root, env=environment(), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield here
        process.terminate()


def warm(here: Place, prompt: str) -> str:
    """The output of the hook once the process is warm; a busy machine can need several tries."""
    for _ in range(50):
        if told := said(here, prompt):
            return told
        time.sleep(0.1)
    return ""


@pytest.mark.parametrize(
    ("prompt", "event"), [("please review this code", "UserPromptSubmit"), ("帮我审查一下代码", "BeforeAgent")]
)
def test_the_skill_that_fits_is_named_in_either_language(here: Place, prompt: str, event: str) -> None:
    assert "code-review" in warm(here, prompt)
    assert "code-review" in said(here, prompt, event) or "code-review" in warm(here, prompt)


def test_the_last_skill_of_a_session_is_named_again_after_the_host_compacted_its_context(here: Place) -> None:
    assert warm(here, "please review this code")

    def after(session: str, **more: str) -> str:
        data = {"session_id": session, "cwd": str(here.root), **more}
        told = hooked(here, json.dumps(data).encode()).stdout
        return str(json.loads(told)["hookSpecificOutput"]["additionalContext"]) if told else ""

    compacted = {"hook_event_name": "SessionStart", "source": "compact"}
    assert after("a", **compacted) == ""
    assert "code-review" in after("a", prompt="please review this code", hook_event_name="UserPromptSubmit")
    assert after("a", prompt="why is the sky blue?", hook_event_name="UserPromptSubmit") == ""
    assert "The last skill of this session is code-review" in after("a", **compacted)
    assert (after("b", **compacted), after("a", hook_event_name="SessionStart", source="startup")) == ("", "")


def test_the_open_steps_of_a_workflow_are_named_after_the_host_compacted_its_context(here: Place) -> None:
    (here.root / "notes.txt").write_bytes(b"")
    data = {"session_id": "c", "cwd": str(here.root), "hook_event_name": "SessionStart", "source": "compact"}
    assert hooked(here, json.dumps(data).encode()).stdout == b""
    asked = here.json("ask", "make a report of the data in @notes.txt and then count the words in the report")
    token = asked["workflow"]["token"]
    assert hooked(here, json.dumps(data).encode()).stdout == b""  # nobody has agreed to the plan
    here.run("workflow", "approve", token)  # csv-report fails: the file is empty
    told = json.loads(hooked(here, json.dumps(data).encode()).stdout)["hookSpecificOutput"]["additionalContext"]
    assert f"Workflow run {token} has open steps: step 1 (csv-report), step 2 (word-count)." in told
    here.run("workflow", "abort", token)
    assert hooked(here, json.dumps(data).encode()).stdout == b""


def test_cursor_and_kimi_code_get_the_hint_in_their_own_form(here: Place) -> None:
    assert warm(here, "please review this code")
    message = "please review this code"
    cursor = {"prompt": message, "workspace_roots": [str(here.root)], "hook_event_name": "beforeSubmitPrompt"}
    kimi = {"prompt": [{"type": "text", "text": message}], "cwd": str(here.root), "client_type": "kimi_code_cli"}
    told = json.loads(hooked(here, json.dumps(cursor).encode()).stdout)
    assert told["continue"] is True and "code-review" in told["additional_context"]
    assert hooked(here, json.dumps(kimi).encode()).stdout.startswith(b"Navigator: the installed skill code-review fits")


@pytest.mark.wide
def test_a_message_that_needs_no_skill_gets_nothing(here: Place) -> None:
    assert warm(here, "please review this code")
    assert said(here, "why is the sky blue?") == ""


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b'{"prompt": 3}', b'{"prompt": ""}', b'{"cwd": "/nowhere"}', b"\xff\xfe", b"[" * 200_000,
     b'{"prompt": "hi", "cwd": "/no/such/folder"}', b'{"prompt": "hi", "cwd": "\\u0000"}'],
    ids=range(11),
)  # fmt: skip
def test_invalid_input_to_the_hook_gives_no_output_and_no_failure(tmp_path: Path, home: Path, data: bytes) -> None:
    done = hooked(place_in(tmp_path), data)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_first_message_of_a_session_gets_its_answer(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = place_in(tmp_path)
    monkeypatch.setattr(prompt_hook, "FIRST_PATIENCE", 30.0)  # a busy machine may need longer than a person would wait
    data = json.dumps({"prompt": "please review this code", "cwd": str(here.root)}).encode()
    told = prompt_hook._said(data)
    Path(socket_path(str(here.root))).unlink()  # ends the process that the hook started
    assert "code-review" in told


@pytest.mark.wide
def test_a_process_that_cannot_answer_is_waited_for_once(tmp_path: Path, home: Path) -> None:
    here = place_in(tmp_path)
    (here.root / "navigator.toml").write_text("[router]\nboldness = 7\n")
    waits = []
    for _ in range(2):
        began = time.monotonic()
        assert ask("please review this code", str(here.root), start=True, wait=3) is None
        waits.append(time.monotonic() - began)
    assert waits[0] > 2.5 > waits[1]


@cases("found, names", lists=True)
def test_a_hint_names_at_most_three_skills_and_never_an_invalid_name(found: dict[str, Any], names: list[str]) -> None:
    told = render_hint(found)
    assert all(name in told for name in names) if names else told == ""
    assert "gh" not in told and "\x1b" not in told

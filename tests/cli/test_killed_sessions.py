"""What a person sees of work that a killed process left unfinished, and the effect of each answer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from cli.support import Place, place_in
from models.wire_server import Said, WireServer, serving
from person_state import accept
from specialist.turns import settings, song
from tools.test_killed import forking, started

pytestmark = pytest.mark.sample(1)

MESSAGE = "/song-writer write a song"
PROCESSES: list[subprocess.Popen[str]] = []  # holds the process that forks the commands to be killed


@pytest.fixture(scope="module")
def server() -> Iterator[WireServer]:
    with serving() as held:
        yield held


@pytest.fixture(scope="module", autouse=True)
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with forking(tmp_path_factory.mktemp("forks")) as process:
        PROCESSES.append(process)
        yield


@pytest.fixture
def here(tmp_path: Path, home: Path, server: WireServer) -> Place:
    """A project with a model and a trusted prompt skill."""
    file = home / ".config/navigator/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(settings(server))
    here = place_in(tmp_path)
    here.write({".claude/skills/song-writer/SKILL.md": song()})
    accept(here.root, "song-writer")
    return here


def killed(here: Place, server: WireServer, *words: str) -> None:
    """Runs a turn whose process is killed while the model prepares its second answer."""
    write = Said(calls=[("write", json.dumps({"file_path": "song.txt", "content": "row row"}))])

    def answer(messages: Sequence[Mapping[str, Any]], number: int) -> Said:
        if not any(one["role"] == "tool" for one in messages):
            return write
        if number == 2:
            os.killpg(pid[0], signal.SIGKILL)
        return Said(text="It is written.")

    pid: list[int] = []
    server.requests.clear()
    server.scripts["worker"] = answer
    process = PROCESSES[-1]
    pid.append(started(process, here, here.root.parent, ["ask", *words, MESSAGE]))
    assert process.stdout is not None
    assert int(process.stdout.readline()) == -signal.SIGKILL


def waiting(here: Place) -> list[tuple[str, str]]:
    return [(one["id"], one["waiting"]) for one in here.json("session", "list")["sessions"]]


@pytest.mark.wide
@pytest.mark.requirement("JIT-12", "SAF-7")
@pytest.mark.parametrize("answer", [MESSAGE, "yes", "go on"])
def test_the_same_message_or_a_yes_continues_with_it(here: Place, server: WireServer, answer: str) -> None:
    killed(here, server, "--session", "s")
    assert waiting(here) == [("s", "interrupted")]
    listed = here.run("session", "show", "s")
    assert listed.out.startswith(f"> {MESSAGE}\n") and "continues it without repeating" in listed.out
    assert "to answer: navigator ask --session s yes" in listed.err
    shown = here.run("ask", "--session", "s", answer)
    assert shown.code == 0 and "It is written." in shown.out and "interrupted when its process was stopped" in shown.err
    assert "\n`yes`, or the same message, continues it" in shown.err
    assert len(list((here.root / "mybox/workspace").glob("*/song.txt"))) == 1
    assert [request.body["messages"][-1]["role"] for request in server.requests] == ["user", "tool", "tool"]
    assert waiting(here) == [("s", "")] and len(here.runs()) == 1


@pytest.mark.wide
@pytest.mark.parametrize(("answer", "state", "count"), [("no", "", 2), ("/song-writer another one", "interrupted", 4)])
def test_a_no_gives_it_up_and_another_message_leaves_it_open(
    here: Place, server: WireServer, answer: str, state: str, count: int
) -> None:
    killed(here, server, "--session", "s")
    here.run("ask", "--session", "s", answer)
    assert (waiting(here), len(server.requests)) == ([("s", state)], count)


@pytest.mark.wide
def test_one_without_a_session_continues_by_the_same_message_and_by_its_name(here: Place, server: WireServer) -> None:
    killed(here, server)
    ((name, state),) = waiting(here)
    assert state == "interrupted"
    assert "It is written." in here.said("ask", MESSAGE)
    assert waiting(here) == [] and len(here.runs()) == 1
    killed(here, server)
    ((name, state),) = waiting(here)
    assert "It is written." in here.said("session", "resume", name, stdin="yes\n")


@pytest.mark.wide
def test_a_resumed_run_is_shown_by_why(here: Place, server: WireServer) -> None:
    killed(here, server, "--session", "s")
    here.said("ask", "--session", "s", "yes")
    ((first, *_),) = here.runs()
    assert [event["seq"] for event in here.runs()[0]] == list(range(len(here.runs()[0])))
    assert here.said("why", first["run"]).count("  message    ") == 2


@pytest.mark.wide
def test_the_session_that_is_deleted_leaves_nothing(here: Place, server: WireServer) -> None:
    killed(here, server)
    ((name, _),) = waiting(here)
    assert here.run("session", "delete", name).code in {0, 4}
    assert waiting(here) == []

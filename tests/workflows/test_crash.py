"""A workflow whose process is killed continues where it was: no successful step is repeated (WFL-7, WFL-8)."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import pytest

from workflows.crashing import (
    DOUBLES,
    DRAWS,
    FAILS,
    KILLED,
    REPEATS,
    TAKES_TEXT,
    WAITS,
    Box,
    box_in,
    ended,
    wait_for,
)

pytestmark = pytest.mark.ci

TWO = "run draw-number and then run double-it"
NEEDS = "print(sys.argv[-1])\nsys.exit(0 if os.path.exists('../wanted') else 'no such file: wanted')\n"


@pytest.fixture
def box(tmp_path: Path) -> Box:
    """Skills that may not be repeated: one draws a number, one doubles it."""
    made = box_in(tmp_path)
    made.skill("draw-number", DRAWS)
    made.skill("double-it", DOUBLES, takes=TAKES_TEXT)
    return made


def output(box: Box, token: str, step: int) -> str:
    """The output that step `step` handed over, as text."""
    held = json.loads((box.workspace(token) / f"handover-{step}.json").read_text())
    return str(held["raw"])


@pytest.mark.requirement("WFL-7")
@pytest.mark.parametrize("third", [False, True], ids=["by-text", "by-file"])
def test_after_a_kill_the_next_step_uses_the_output_of_the_last_one(box: Box, *, third: bool) -> None:
    box.skill("say-again", REPEATS)
    token = box.proposed("run draw-number and then run say-again" if third else TWO)
    assert box.dying("after end:1").run("workflow", "approve", token).code == KILLED
    before = box.tries(token)
    assert before == [(1, 1, "success")]
    assert box.place.run("workflow", "resume", token).code == 0
    drawn, second = output(box, token, 1), "say-again" if third else "double-it"
    assert output(box, token, 2) == (f"seen {drawn}" if third else str(2 * int(drawn)))
    assert box.acts(token) == {"draw-number": 1, second: 1}
    assert box.tries(token) == [*before, (2, 1, "success")]


@pytest.mark.requirement("WFL-8")
def test_a_step_in_doubt_is_asked_about_and_not_repeated(box: Box) -> None:
    token = box.proposed(TWO)
    assert box.dying("after begin:1").run("workflow", "approve", token).code == KILLED
    asked = box.place.json("workflow", "resume", token)
    assert asked["exit_code"] == 9
    assert "step 1 (run draw-number)" in asked["question"]
    assert box.acts(token) == {}
    assert box.tries(token) == [(1, 1, "under way")]
    assert box.run(token)["state"] == "waiting"


def test_a_step_in_doubt_is_repeated_when_the_person_says_so(box: Box) -> None:
    token = box.proposed(TWO)
    assert box.dying("before end:1").run("workflow", "approve", token).code == KILLED
    assert box.acts(token) == {"draw-number": 1}
    assert box.place.run("workflow", "resume", token).code == 9
    assert box.acts(token) == {"draw-number": 1}
    assert box.place.run("workflow", "resume", token, "--repeat").code == 0
    assert box.acts(token) == {"draw-number": 2, "double-it": 1}
    assert box.tries(token) == [(1, 1, "under way"), (1, 2, "success"), (2, 1, "success")]


def test_a_yes_in_the_session_repeats_a_step_in_doubt(box: Box) -> None:
    token = box.proposed(TWO, session="s1")
    assert box.dying("after begin:1").run("ask", "--session", "s1", "yes").code == KILLED
    assert box.place.run("ask", "--session", "s1", "yes").code == 9
    assert box.acts(token) == {}
    assert box.place.run("ask", "--session", "s1", "yes").code == 0
    assert box.acts(token) == {"draw-number": 1, "double-it": 1}


def test_a_step_in_doubt_that_may_be_repeated_is_repeated_without_asking(box: Box) -> None:
    box.skill("draw-number", DRAWS, idempotent=True)
    token = box.proposed(TWO)
    assert box.dying("after begin:1").run("workflow", "approve", token).code == KILLED
    assert box.place.run("workflow", "resume", token).code == 0
    assert box.tries(token) == [(1, 1, "under way"), (1, 2, "success"), (2, 1, "success")]
    assert box.acts(token) == {"draw-number": 1, "double-it": 1}


@pytest.mark.parametrize("point", ["after end:2", "before mark:done", "after mark:done"])
def test_a_run_killed_at_its_very_end_repeats_nothing(box: Box, point: str) -> None:
    token = box.proposed(TWO)
    assert box.dying(point).run("workflow", "approve", token).code == KILLED
    before = box.tries(token)
    assert before == [(1, 1, "success"), (2, 1, "success")]
    resumed = box.place.run("workflow", "resume", token)
    assert resumed.code == (3 if point == "after mark:done" else 0)  # 3: the run has already ended
    assert box.run(token)["state"] == "done"
    assert box.tries(token) == before
    assert box.acts(token) == {"draw-number": 1, "double-it": 1}


def test_a_result_file_is_there_once_a_run_is_done(box: Box) -> None:
    token = box.proposed(TWO)
    assert box.place.run("workflow", "approve", token).code == 0
    stored = next((box.place.root / "mybox" / "workflows").glob("draw*.md"))
    stored.write_text(stored.read_text().replace('location: "inline"', 'location: "file"'))
    assert box.dying("after mark:done").run("workflow", "run", "--yes", stored.stem).code == KILLED
    again = box.place.json("workflow", "list")["runs"][0]["token"]
    assert box.run(again)["state"] == "done"
    assert (box.workspace(again) / "result.md").is_file()


@pytest.mark.parametrize("point", ["after mark:running", "before begin:1"])
def test_a_kill_between_the_yes_and_the_first_step_keeps_the_yes(box: Box, point: str) -> None:
    token = box.proposed(TWO)
    assert box.dying(point).run("workflow", "approve", token).code == KILLED
    assert box.tries(token) == []
    assert box.place.run("workflow", "resume", token).code == 0
    assert box.acts(token) == {"draw-number": 1, "double-it": 1}


def test_a_kill_between_the_file_and_the_yes_leaves_a_plan_that_can_be_agreed_to(box: Box) -> None:
    token = box.proposed(TWO)
    assert box.dying("before mark:running").run("workflow", "approve", token).code == KILLED
    files = list((box.place.root / "mybox" / "workflows").iterdir())
    assert [path.name for path in files] == ["draw-number-then-double-it.md"]
    assert box.place.run("workflow", "resume", token).code == 3
    assert box.acts(token) == {}
    assert box.place.run("workflow", "approve", token).code == 0
    assert list((box.place.root / "mybox" / "workflows").iterdir()) == files


def test_a_second_process_cannot_resume_a_run_that_is_being_resumed(box: Box) -> None:
    box.skill("wait-here", WAITS + DRAWS)
    token = box.proposed("run wait-here and then run double-it")
    assert box.dying("before begin:1").run("workflow", "approve", token).code == KILLED
    first = box.start("workflow", "resume", token)
    wait_for(lambda: box.find(token, "begun"))
    assert box.place.run("workflow", "resume", token).code == 5
    box.touch(token, "go")
    assert ended(first).code == 0
    assert box.acts(token) == {"wait-here": 1, "double-it": 1}
    assert box.run(token)["state"] == "done"


def test_processes_that_resume_a_run_at_the_same_moment_act_once(box: Box) -> None:
    token = box.proposed(TWO)
    assert box.dying("before begin:1").run("workflow", "approve", token).code == KILLED
    codes = [ended(one).code for one in [box.start("workflow", "resume", token) for _ in range(3)]]
    assert 0 in codes
    assert set(codes) <= {0, 3, 5}
    assert box.acts(token) == {"draw-number": 1, "double-it": 1}
    assert box.run(token)["state"] == "done"


def test_one_that_is_turned_away_does_not_say_that_a_done_run_is_under_way(box: Box, tmp_path: Path) -> None:
    """The second process has read the run before the first one finished it, and writes afterwards."""
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    token = box.proposed(TWO)
    assert box.dying("before begin:1").run("workflow", "approve", token).code == KILLED
    second = box.start("workflow", "resume", token, place=box.dying("after load 1", two))
    wait_for((two / "reached").exists, "the second process")
    first = box.start("workflow", "resume", token, place=box.dying("after mark:done", one))
    wait_for((one / "reached").exists, "the end of the run")
    (two / "go").touch()
    assert ended(second).code == 5
    (one / "go").touch()
    assert ended(first).code == 0
    assert box.run(token)["state"] == "done"


@pytest.mark.requirement("SAF-1")
def test_a_yes_in_the_session_does_not_run_a_plan_that_was_aborted(box: Box) -> None:
    token = box.proposed(TWO, session="s1")
    box.place.said("workflow", "abort", token)
    assert box.place.run("ask", "--session", "s1", "yes").code == 3
    assert box.acts(token) == {}
    assert box.run(token)["state"] == "aborted"


def test_a_no_in_the_session_does_not_abort_a_run_that_is_done(box: Box) -> None:
    token = box.proposed(TWO, session="s1")
    assert box.dying("after mark:done").run("workflow", "approve", token).code == KILLED
    box.place.run("ask", "--session", "s1", "no")
    assert box.run(token)["state"] == "done"


@pytest.mark.requirement("WFL-7", "WFL-8")
def test_a_failing_step_stops_the_run_and_the_next_one_never_starts(box: Box) -> None:
    box.skill("fail-hard", FAILS, takes=TAKES_TEXT)
    token = box.proposed("run draw-number and then run fail-hard and then run double-it")
    done = box.place.json("workflow", "approve", token)
    assert done["exit_code"] == 1
    assert "step 2 of 3" in done["question"]
    assert box.acts(token) == {"draw-number": 1, "fail-hard": 1}
    assert box.tries(token) == [(1, 1, "success"), (2, 1, "error")]
    assert box.run(token)["state"] == "stopped"


@pytest.mark.requirement("WFL-8")
def test_resuming_tries_the_failed_step_again_and_continues(box: Box) -> None:
    box.skill("need-a-file", NEEDS, takes=TAKES_TEXT)
    token = box.proposed("run draw-number and then run need-a-file and then run double-it")
    assert box.place.run("workflow", "approve", token).code == 1
    box.touch(token, "wanted")
    assert box.place.run("workflow", "resume", token).code == 0
    assert box.acts(token) == {"draw-number": 1, "need-a-file": 2, "double-it": 1}
    assert int(output(box, token, 3)) == 2 * int(output(box, token, 1))


@pytest.mark.requirement("SAF-5")
@pytest.mark.parametrize("again", [("workflow", "resume"), ("ask", "--session", "s1", "yes")], ids=["resume", "yes"])
def test_after_the_second_failure_a_yes_tries_no_third_time(box: Box, again: tuple[str, ...]) -> None:
    box.skill("fail-hard", FAILS, takes=TAKES_TEXT)
    token = box.proposed("run draw-number and then run fail-hard", session="s1")
    first = box.place.json("ask", "--session", "s1", "yes")
    assert (first["exit_code"], first["resume"]) == (1, "s1")
    second = box.place.json(*again, *([token] if again[0] == "workflow" else []))
    assert (second["exit_code"], second["resume"]) == (1, None)
    assert "failed twice" in second["question"]
    box.place.run("ask", "--session", "s1", "yes")
    assert box.acts(token) == {"draw-number": 1, "fail-hard": 2}
    assert box.run(token)["state"] == "stopped"


def test_ctrl_c_ends_a_step_with_its_processes_and_leaves_a_run_that_continues(box: Box) -> None:
    box.skill("wait-here", WAITS + "print(sys.argv[-1])\n", takes=TAKES_TEXT, idempotent=True)
    token = box.proposed("run draw-number and then run wait-here")
    process = box.start("workflow", "approve", token)
    wait_for(lambda: box.find(token, "begun"))
    process.send_signal(signal.SIGINT)
    assert ended(process).code == 130
    wait_for(lambda: not box.running(token), "the end of the skill's process")
    assert box.run(token)["state"] == "stopped"
    box.touch(token, "go")
    assert box.place.run("workflow", "resume", token).code == 0
    assert output(box, token, 2) == output(box, token, 1)
    assert box.acts(token) == {"draw-number": 1, "wait-here": 2}


def test_the_skill_of_a_killed_process_ends_and_its_step_is_repeated(box: Box) -> None:
    box.skill("wait-here", WAITS + DRAWS, idempotent=True)
    token = box.proposed("run wait-here and then run double-it")
    killed = box.start("workflow", "approve", token)
    wait_for(lambda: box.find(token, "begun"))
    assert box.running(token)
    box.find(token, "begun")[0].unlink()
    killed.kill()
    assert ended(killed).code == KILLED
    wait_for(lambda: not box.running(token), "the end of what it ran")
    second = box.start("workflow", "resume", token)
    try:
        wait_for(lambda: box.find(token, "begun"))
    finally:
        box.touch(token, "go")
        done = ended(second)
    assert (done.code, box.acts(token)) == (0, {"wait-here": 2, "double-it": 1})


@pytest.mark.requirement("WFL-9")
def test_a_plan_that_was_agreed_to_beforehand_is_stored_and_stays_agreed_to_after_a_kill(box: Box) -> None:
    assert box.dying("after end:1").run("ask", "--yes", TWO).code == KILLED
    assert (box.place.root / "mybox" / "workflows" / "draw-number-then-double-it.md").is_file()
    token = box.place.json("workflow", "list")["runs"][0]["token"]
    assert box.place.run("workflow", "resume", token).code == 0
    assert box.acts(token) == {"draw-number": 1, "double-it": 1}


@pytest.mark.parametrize("point", ["after begin:1", "after begin:2"])
def test_the_command_that_a_question_about_a_step_in_doubt_names_continues_with_it(box: Box, point: str) -> None:
    token = box.proposed(TWO)
    assert box.dying(point).run("workflow", "approve", token).code == KILLED
    asked = box.place.run("workflow", "resume", token)
    assert asked.code == 9
    named = re.findall(r"navigator ((?:workflow|ask) .*)", asked.err)
    assert box.place.run(*named[-1].split()).code == 0
    assert box.acts(token) == {"draw-number": 1, "double-it": 1}

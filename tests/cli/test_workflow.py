"""`navigator workflow` and the commands that lead to it, as people and programs use them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from cli.support import Place
from navigator_kernel.bootstrap.project import Project
from skill_repositories import make_repo
from workflows.project import FILE, TOTAL, project_in, put_skill, workflow_file

pytestmark = pytest.mark.sample(1)

TWO = "run shout-loud on @notes.txt and then count the terms in it"
TWO_ZH = "用 shout-loud 处理 @notes.txt，然后统计结果的词条数"
NAME = "shout-loud-then-count-terms"
COMMANDS = ("show", "run", "resume", "approve", "abort")


@pytest.fixture
def here(tmp_path: Path) -> Place:
    return Place(root=project_in(tmp_path))


def proposed(here: Place, text: str = TWO, **given: Any) -> str:
    """The token of the plan proposed for `text`."""
    document = here.json("ask", text, **given)
    assert document["exit_code"] == 9
    return str(document["workflow"]["token"])


def ended(here: Place, text: str = TWO) -> str:
    token = proposed(here, text)
    here.run("workflow", "approve", token)
    return token


# The message from the issue


@pytest.fixture
def source(tmp_path: Path) -> str:
    """A repository with a skill that totals a column, and one other skill."""
    folder = put_skill(tmp_path / "made", "csv-total", ("Totals the column of a CSV file", FILE, TOTAL))
    files = {f"skills/csv-total/{path.name}": path.read_text() for path in folder.iterdir()}
    files["skills/other/SKILL.md"] = "---\nname: other\ndescription: another\n---\nx\n"
    return f"file://{make_repo(tmp_path, files, name='r')}"


@pytest.mark.wide
@pytest.mark.requirement("WFL-1", "WFL-9", "WFL-10")
def test_a_plan_to_install_and_run_is_shown_with_its_token_and_runs_when_it_is_approved(
    here: Place, source: str
) -> None:
    done = here.run("ask", f"install {source} and then run csv-total on @data.csv")
    assert done.code == 9
    assert done.out.splitlines()[:3] == [
        f"[Workflow] install {source} and then run csv-total on @data.csv (plan: mybox/workflows/install-then-csv-total.md)",
        f"  Step 1: install {source} --skill csv-total → skill_manager → worker_agent",
        "  Step 2: run csv-total on @data.csv → csv-total → skills_agent",
    ]
    token = re.search(r'token: "([\w-]+)"', done.out)
    assert token is not None
    assert re.search(r"^to answer: navigator ask --session [\w-]+ yes$", done.err, re.MULTILINE)
    assert not (here.root / ".claude" / "skills" / "csv-total").exists()
    approved = here.json("workflow", "approve", token[1])
    assert (approved["exit_code"], approved["report"]["data"]["output"]) == (0, 8)
    assert (approved["workflow"]["state"], approved["workflow"]["done"]) == ("done", 2)
    assert not (here.root / ".claude" / "skills" / "other").exists()


@pytest.mark.wide
def test_the_same_line_as_json_has_the_plan_and_the_token(here: Place, source: str) -> None:
    document = here.json("ask", f"install {source} and then run csv-total on @data.csv")
    held = document["workflow"]
    assert [(step["skill"], step["agent"]) for step in held["steps"]] == [
        ("skill_manager", "worker"),
        ("csv-total", "skills"),
    ]
    assert (held["token"], held["state"], held["done"]) == (document["report"]["data"]["token"], "proposed", 0)


# Text shown with a plan


@pytest.mark.wide
@pytest.mark.requirement("WFL-5")
@pytest.mark.parametrize(("text", "scope"), [(TWO, "scope: installed skills"), (TWO_ZH, "仅在已安装的技能中匹配")])
def test_the_scope_is_shown_beside_the_plan(here: Place, text: str, scope: str) -> None:
    done = here.run("ask", text)
    assert (done.code, scope in done.err, "docs/skills-mapping.md" in done.err) == (9, True, True)


FOUR = "run shout-loud on a, then count the terms in it, then run shout-loud on it, then run draft-poem"


@pytest.mark.wide
@pytest.mark.requirement("WFL-3")
def test_steps_that_are_too_many_are_named(here: Place) -> None:
    done = here.run("ask", FOUR)
    assert "at most 3 steps" in done.err
    assert "left out: run draft-poem" in done.err
    assert done.out.count("\n  Step ") == 3
    assert here.json("ask", FOUR)["workflow"]["left"] == ["run draft-poem"]


@pytest.mark.requirement("WFL-3")
def test_more_steps_may_be_allowed_and_are_warned_of(here: Place) -> None:
    (here.root / "navigator.toml").write_text('steps = "4"\n')
    done = here.run("ask", FOUR)
    assert "4 steps are more than the 3 that a workflow should have" in done.err
    assert (done.out.count("\n  Step "), "left out" in done.err) == (4, False)


@pytest.mark.wide
def test_a_plan_may_be_agreed_to_beforehand(here: Place) -> None:
    document = here.json("ask", "--yes", TWO)
    assert (document["exit_code"], document["report"]["data"]["words"], document["workflow"]["state"]) == (0, 3, "done")


@pytest.mark.wide
def test_a_person_may_stand_in_any_folder(here: Place) -> None:
    (here.root / "deep down").mkdir()
    (here.root / "deep down" / "my words.txt").write_text("a b c d\n")
    text = 'run shout-loud on @"my words.txt" and then count the terms in it'
    token = proposed(here, text, cwd=here.root / "deep down")
    assert here.json("workflow", "approve", token)["report"]["data"]["words"] == 4


@pytest.mark.parametrize("text", [TWO, TWO_ZH])
def test_undecodable_bytes_in_a_message_cause_no_unicode_error(here: Place, text: str) -> None:
    done = here.run("ask", text.replace("shout-loud", "shout-loud \udcff\udcfe"))
    assert done.code in {2, 9}
    assert "UnicodeEncodeError" not in done.err


# Each command, for people and for programs


def test_nothing_is_listed_if_nothing_was_planned(here: Place) -> None:
    assert here.said("workflow", "list") == ""
    assert here.json("workflow", "list") == {"exit_code": 0, "workflows": [], "runs": []}


@pytest.mark.wide
def test_the_list_shows_stored_workflows_and_workflow_runs(here: Place) -> None:
    token = ended(here)
    listed = here.json("workflow", "list")
    assert [(one["name"], one["steps"], one["problem"]) for one in listed["workflows"]] == [(NAME, 2, "")]
    assert [(one["token"], one["state"], one["done"]) for one in listed["runs"]] == [(token, "done", 2)]
    told = here.said("workflow", "list")
    assert [word in told for word in (f"#{NAME}", token, "done", "2/2")] == [True] * 4


def test_a_plan_that_was_declined_or_forgotten_is_not_listed(here: Place) -> None:
    proposed(here)
    here.json("ask", "--session", "work", TWO)
    here.json("ask", "--session", "work", "no")
    here.run("workflow", "abort", proposed(here))
    assert here.json("workflow", "list") == {"exit_code": 0, "workflows": [], "runs": []}


def test_a_file_that_cannot_be_used_is_listed_with_its_line(here: Place) -> None:
    workflow_file(here.root, "good", ("draft-poem", "/draft-poem"))
    path = workflow_file(here.root, "bad", ("draft-poem", "/draft-poem"))
    path.write_text(path.read_text().replace("version: 1.0.0", "version: new"))
    listed = here.json("workflow", "list")
    assert listed["exit_code"] == 1
    assert ["line 3" in one["problem"] for one in listed["workflows"]] == [True, False]
    assert "line 3" in here.run("workflow", "list").out


@pytest.mark.wide
@pytest.mark.requirement("WFL-10")
@pytest.mark.parametrize("name", [NAME, f"#{NAME}"])
def test_a_stored_workflow_is_shown_as_its_plan(here: Place, name: str) -> None:
    ended(here)
    assert here.said("workflow", "show", name).splitlines() == [
        f"[Workflow] {TWO} (plan: mybox/workflows/{NAME}.md)",
        "  Step 1: run shout-loud on @notes.txt → shout-loud → skills_agent",
        "  Step 2: count the terms in it → count-terms → skills_agent",
    ]
    assert here.json("workflow", "show", name)["workflow"]["sandbox"]["read"] == ["notes.txt"]


@pytest.mark.wide
def test_a_run_is_shown_with_the_tries_of_its_steps(here: Place) -> None:
    token = ended(here, "run shout-loud on @notes.txt and then run fail-hard on it")
    here.run("workflow", "resume", token)
    held = here.json("workflow", "show", token)["run"]
    assert [(one["step"], one["attempt"], one["state"]) for one in held["tries"]] == [
        (1, 1, "success"),
        (2, 1, "error"),
        (2, 2, "error"),
    ]
    told = here.said("workflow", "show", token)
    assert f"run {token}  stopped" in told
    assert told.count("error") == 2
    failed = [line for line in told.splitlines() if "  error  " in line]
    assert all(one["summary"] in line for one, line in zip(held["tries"][1:], failed, strict=True))
    assert here.run("workflow", "show", token).err == f"to continue: navigator workflow resume {token}\n"


@pytest.mark.wide
@pytest.mark.parametrize("folder", [".", "deep"])
def test_the_output_and_the_files_of_each_step_are_shown_with_paths_that_open(here: Place, folder: str) -> None:
    put_skill(
        here.root,
        "write-lines",
        ("Writes lines", "", "open('lines.txt', 'w').write('a b c')\nprint('first\\nsecond')\n"),
    )
    (here.root / "deep").mkdir()
    done = here.run("ask", "--yes", "run write-lines and then count the terms in it", cwd=here.root / folder)
    token = here.json("workflow", "list")["runs"][0]["token"]
    path = f"mybox/workspace/{token}/lines.txt"
    assert (here.root / path).read_text() == "a b c"
    assert f"write-lines done\n  first\n  second\n  {path}\n" in done.out
    assert f"write-lines done\n      first\n      second\n      {path}\n" in here.said("workflow", "show", token)
    first, second = here.json("workflow", "show", token)["run"]["tries"]
    assert (first["files"], second["files"], second["data"]["words"]) == ([path], [], 3)


def test_a_stored_workflow_is_run_by_its_name_with_words(here: Place) -> None:
    workflow_file(here.root, "poem", ("draft-poem", "/draft-poem on $1 and $2"))
    document = here.json("workflow", "run", "poem", "rain", "snow")
    assert document["exit_code"] == 9  # no model
    assert document["workflow"]["steps"][0]["input"] == "/draft-poem on rain and snow"


@pytest.mark.parametrize(
    "word", ["你好", "it's", "a b", 'a "b"', "$2", "a;b", "two\nlines", "/draft-poem x", "*", "\\"]
)
def test_a_word_of_any_characters_is_put_in_as_it_is(here: Place, word: str) -> None:
    workflow_file(here.root, "poem", ("draft-poem", "Write a poem on: $1"))
    document = here.json("workflow", "run", "poem", word)
    assert document["workflow"]["steps"][0]["input"] == f"Write a poem on: {word}"


@pytest.mark.wide
def test_consent_to_a_step_can_be_given_in_advance_or_on_request(here: Place) -> None:
    workflow_file(here.root, "loud", ("shout-loud", "/shout-loud a"))
    assert here.json("workflow", "run", "loud", "--yes")["report"]["data"]["output"] == "A"
    waiting = here.json("workflow", "run", "loud")
    assert (waiting["exit_code"], waiting["report"]["data"]["reason"]) == (9, "consent")
    assert here.json("workflow", "approve", waiting["workflow"]["token"])["report"]["data"]["output"] == "A"


@pytest.mark.wide
@pytest.mark.requirement("WFL-8")
def test_a_run_that_stopped_continues_where_it_stopped(here: Place) -> None:
    put_skill(
        here.root,
        "wait-ready",
        (
            "Waits",
            "",
            "import os, sys\nos.path.exists('../ready') or sys.exit('not ready')\nprint(os.stat('../ready').st_size, 'letters')\n",
        ),
    )
    token = ended(here, "run shout-loud on @notes.txt and then run wait-ready")
    (here.root / "mybox" / "workspace" / token / "ready").write_text("12345")
    document = here.json("workflow", "resume", token)
    assert (document["exit_code"], document["report"]["data"]["output"]) == (0, "5 letters")
    assert document["reports"][0]["meta"]["cached"]


@pytest.mark.wide
def test_a_run_can_be_ended_for_good(here: Place) -> None:
    token = proposed(here)
    assert here.json("workflow", "abort", token) == {"exit_code": 0, "aborted": token}
    assert here.said("workflow", "abort", proposed(here)).startswith("aborted ")
    assert here.json("workflow", "approve", token)["error"]["exit_code"] == 3


@pytest.mark.wide
def test_an_interrupted_step_is_repeated_by_the_suggested_command(here: Place) -> None:
    token = proposed(here)
    journal = Project(here.root, agents=False).journal
    journal.mark(token, "running", ("type_a:shout-loud", "type_a:count-terms"))
    journal.begin(token, 1, 1, "sha256:0")
    done = here.run("workflow", "resume", token)
    assert (done.code, "step 1" in done.out + done.err) == (9, True)
    told = re.search(r"navigator (ask --session [^\n]*)", done.err)
    assert told is not None
    assert here.run(*told[1].split()).code == 0


# Exit codes, and one document for each


def cases(here: Place) -> dict[str, tuple[list[str], int]]:
    """Commands on runs in every state, each with its exit code."""
    done, waiting, broken = ended(here), proposed(here), ended(here, "run fail-hard on x and then run draft-poem")
    workflow_file(here.root, "plain", ("word-count", "/word-count one two"))
    workflow_file(here.root, "loud", ("shout-loud", "/shout-loud a"))
    workflow_file(here.root, "outside", ("shout-loud", "/shout-loud @notes.txt"))
    workflow_file(here.root, "nap", ("nap-long", "/nap-long"), head="timeout_seconds: 0.3")
    path = workflow_file(here.root, "bad", ("draft-poem", "/draft-poem"))
    path.write_text(path.read_text().replace("---", "===", 1))
    return {
        "run": (["run", "plain"], 0),
        "run what asks": (["run", "loud"], 9),
        "run what is refused": (["run", "outside", "--yes"], 3),
        "run what takes too long": (["run", "nap", "--yes"], 124),
        "run with words too many": (["run", "plain", "x"], 2),
        "run what cannot be used": (["run", "bad"], 1),
        "show what cannot be used": (["show", "bad"], 1),
        "resume what failed": (["resume", broken], 1),
        "resume what waits": (["resume", waiting], 3),
        "resume what has ended": (["resume", done], 3),
        "approve what has ended": (["approve", done], 3),
        "abort what has ended": (["abort", done], 3),
        "approve": (["approve", waiting], 0),
        "no name": (["show"], 2),
        "no such option": (["list", "--nonsense"], 2),
        "list": (["list"], 1),
    }


@pytest.mark.wide
def test_every_ending_has_its_exit_code_and_one_document(here: Place) -> None:
    found = cases(here)
    codes = {name: here.json("workflow", *words)["exit_code"] for name, (words, _) in found.items()}
    assert codes == {name: code for name, (_, code) in found.items()}


@pytest.mark.wide
def test_a_run_that_is_under_way_elsewhere_is_busy(here: Place) -> None:
    token = ended(here, "run fail-hard on x and then run draft-poem")
    with Project(here.root, agents=False).journal.hold(token):
        for command in ("resume", "approve", "abort"):
            assert here.json("workflow", command, token)["exit_code"] == 5
    assert here.json("workflow", "abort", token)["exit_code"] == 0


HOSTILE = [
    "../../x",
    "",
    " ",
    "x" * 5_000,
    "a b",
    "$(id)",
    "a\nb",
    "-x",
    "--",
    "a/b",
    ".",
    "*",
    "\x1b[31m",
    "名",
    "x.md",
]


@pytest.mark.wide
@pytest.mark.parametrize("command", COMMANDS)
def test_an_invalid_name_or_token_is_not_found(here: Place, command: str) -> None:
    before = here.files()
    codes = {token: here.run("workflow", command, "--json", "--", token).document["exit_code"] for token in HOSTILE}
    assert codes == dict.fromkeys(HOSTILE, 4)
    ours = ("mybox/logs/", "mybox/state/", "mybox/.gitignore")
    after = {path: data for path, data in here.files().items() if not path.startswith(ours)}
    assert after == {path: data for path, data in before.items() if not path.startswith(ours)}


def test_a_name_to_run_is_never_taken_for_a_message(here: Place) -> None:
    for name in ("x\n/draft-poem on rain", "\n!touch made", "\nrun draft-poem"):
        done = here.run("workflow", "run", "--yes", "--", name)
        assert (done.code, "prompt" in done.out, list(here.root.rglob("made"))) == (4, False, [])

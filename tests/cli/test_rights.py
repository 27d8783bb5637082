"""Rights as a person gives them: at a terminal, with --allow, in the settings; how they are listed and revoked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.support import Place, place_in
from cli.terminals import terminal
from cli.test_dialogue_transcript import assert_hints_work, compare, typed, without_values
from models.wire_server import Said, WireServer
from person_state import accept
from skill_repositories import skill_text
from specialist.turns import says, settings

pytestmark = [pytest.mark.ci, pytest.mark.requirement("JIT-12")]

TEXTS = {
    "en": {"message": "/reporter write a summary of @sales.csv", "end": "SUMMARY.md has the total.", "letters": "[n]o  [e]dit  [?]"},
    "zh": {"message": "/reporter 为 @sales.csv 写一份汇总", "end": "汇总在 SUMMARY.md 中。", "letters": "[n] 否  [e] 修改  [?]"},
}  # fmt: skip
SALES = "city,amount\nBonn,3\nKiel,4\n"


@pytest.fixture
def server() -> Any:
    from models.wire_server import serving

    with serving() as held:
        yield held


@pytest.fixture
def mine(home: Path, server: WireServer) -> Path:
    """The person's settings."""
    file = home / ".config" / "navigator" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(settings(server))
    return file


@pytest.fixture
def here(tmp_path: Path, mine: Path) -> Place:
    place = place_in(tmp_path)
    guide = skill_text("reporter", "Writes reports about tables. Use when a summary of a table is wanted.")
    place.write(
        {".claude/skills/reporter/SKILL.md": guide, ".claude/skills/reporter/scripts/check.py": "print('fine')\n"}
    )
    place.write(
        {
            "sales.csv": SALES,
            "style.md": "Write short sentences.\n",
            "docs/index.md": "# Index\n",
            "SUMMARY.md": "",
            "Makefile": "all:\n",
        }
    )
    accept(place.root, "reporter")
    return place


def call(tool: str, **arguments: Any) -> tuple[str, str]:
    return tool, json.dumps(arguments)


def nine(end: str) -> list[Said]:
    """ls, head, three runs of a script that is written and changed, a report, a read, a search and an edit."""
    total = "import csv\nprint(sum(int(row['amount']) for row in csv.DictReader(open('sales.csv'))){more})\n"
    scripts = [call("write", file_path="total.py", content=total.format(more=more)) for more in ("", " * 1", " + 0")]
    run = call("run", command="python3 total.py | tee total.txt")
    return [
        Said(calls=[call("run", command="ls -la")]),
        Said(calls=[call("run", command="head -2 sales.csv")]),
        *(Said(calls=[script, run]) for script in scripts),
        Said(calls=[call("write", file_path="SUMMARY.md", content="# Summary\n\nThe total is 7.\n")]),
        Said(calls=[call("read", file_path="style.md"), call("grep", pattern="Index", path="docs")]),
        Said(calls=[call("edit", file_path="docs/index.md", old_string="# Index\n", new_string="# Index\n\n- SUMMARY.md\n")]),
        Said(text=end),
    ]  # fmt: skip


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_task_of_nine_calls_asks_two_questions_at_a_terminal(here: Place, server: WireServer, language: str) -> None:
    words = TEXTS[language]
    says(server, *nine(words["end"]))
    with terminal(
        here, "--language", language, "chat", "--session", "s", columns=160, env={"LC_ALL": "C.UTF-8"}
    ) as screen:
        told = [typed(screen, words["message"], words["letters"]), typed(screen, "?", words["letters"])]
        told += [typed(screen, "a", words["letters"]), typed(screen, "a", words["end"]), screen.wait_for("\n> ")]
        screen.type("\x04")
        told.append(screen.rest())
    assert (here.root / "SUMMARY.md").read_text().endswith("The total is 7.\n")
    assert (here.root / "docs/index.md").read_text() == "# Index\n\n- SUMMARY.md\n"
    (total,) = here.root.glob("mybox/workspace/*/total.txt")
    assert total.read_text() == "7\n"
    text = without_values("".join(told), here)
    assert_hints_work(text)
    compare(text, f"rights-{language}")
    rights = here.json("session", "show", "s")["rights"]
    assert [(one["right"], one["skill"]) for one in rights] == [("run", "reporter"), ("edit:./", "reporter")]


def test_work_is_done_unattended_with_what_allow_names(here: Place, server: WireServer) -> None:
    says(server, *nine("done"))
    told = here.json("ask", "--allow", "run,edit:./", TEXTS["en"]["message"])
    assert (told["exit_code"], told["report"]["raw"]) == (0, "done")
    assert (here.root / "SUMMARY.md").is_file()
    by = {one["by"] for one in here.json("log")["entries"] if one["event"] == "authorised"}
    assert by == {"--allow run", "--allow edit:./"}


CALLS = {
    "run": call("run", command="ls"),
    "scripts": call("run", command="python3 scripts/check.py"),
    "read": call("read", file_path="style.md"),
    "edit:docs/": call("write", file_path="docs/index.md", content="# New\n"),
    "edit:./": call("write", file_path="style.md", content="# New\n"),
    "": call("write", file_path="Makefile", content="all:\n\ttrue\n"),
}


@pytest.mark.parametrize("word", CALLS)
def test_what_nobody_allowed_waits_and_names_the_word_that_covers_it(
    here: Place, server: WireServer, word: str
) -> None:
    says(server, Said(calls=[CALLS[word]]), Said(text="done"))
    others = ",".join(other for other in ("run", "read", "edit:docs/") if word not in {other, "scripts"})
    allow = ("--allow", others) if others else ()
    told = here.json("ask", *allow, "/reporter please")
    assert (told["exit_code"], told["report"]["data"].get("allow", "")) == (9, word)
    hint = f"to allow this beforehand, without a question: navigator ask --allow {word} …"
    says(server, Said(calls=[CALLS[word]]), Said(text="done"))
    server.requests.clear()
    shown = here.run("ask", *allow, "/reporter please")
    assert (shown.code, hint in shown.err) == (9, bool(word))
    if word:
        server.requests.clear()
        assert here.run("ask", "--allow", word, "/reporter please").code == 0


def test_allow_reaches_no_file_that_is_asked_alone_and_no_skill_that_nobody_accepts(
    here: Place, server: WireServer
) -> None:
    guide = skill_text("stranger", "Comes with the project.").replace(
        "description:", "allowed-tools: Bash Read\ndescription:"
    )
    here.write({".claude/skills/stranger/SKILL.md": guide})
    says(server, Said(calls=[CALLS["run"]]), Said(text="done"))
    told = here.json("ask", "--allow", "run,scripts,read,edit:./", "/stranger please")
    assert told["exit_code"] == 9 and "neither installed nor trusted" in told["report"]["summary"]
    for path in ("Makefile", "docs/run.sh", ".vscode/tasks.json"):
        says(
            server,
            Said(calls=[call("write", file_path=f"{here.root}/{path}", content="#!/bin/sh\n")]),
            Said(text="done"),
        )
        server.requests.clear()
        assert here.json("ask", "--allow", "run,scripts,read,edit:./", "/reporter please")["exit_code"] == 9


@pytest.mark.parametrize("word", ["network", "fetch:example.org", "edit:/etc", "edit:../x", "runs", ""])
def test_an_unknown_word_is_a_usage_error_with_the_known_ones(here: Place, word: str) -> None:
    for command in ("ask", "chat"):
        done = here.run(command, "--allow", f"run,{word}", *(["hello"] if command == "ask" else []))
        assert done.code == 2 and "run, scripts, read, edit:FOLDER/" in done.err


def test_settings_allow_one_skill_in_one_project(here: Place, mine: Path, server: WireServer, tmp_path: Path) -> None:
    plain = mine.read_text()
    for place, word, code in ((here.root, "run", 0), (tmp_path, "run", 9), (here.root, "read", 9)):
        mine.write_text(f'{plain}\n[allow.reporter]\n"{place}" = ["{word}"]\n')
        says(server, Said(calls=[CALLS["run"]]), Said(text="done"))
        server.requests.clear()
        assert here.run("ask", "/reporter please").code == code, (place, word)
    by = [one["by"] for one in here.json("log")["entries"] if one["event"] == "authorised"]
    assert by == ["your settings: [allow.reporter] run"]
    (here.root / "navigator.toml").write_text(f'[allow.reporter]\n"{here.root}" = ["run"]\n')
    mine.write_text(plain)
    server.requests.clear()
    done = here.run("ask", "/reporter please")
    assert done.code == 9 and "'allow' is read at user level only" in done.err
    mine.write_text(f'{plain}\n[allow.reporter]\n"{here.root}" = ["network"]\n')
    assert here.run("ask", "/reporter please").code == 2


def test_a_right_is_listed_and_ends_when_it_is_revoked(here: Place, server: WireServer) -> None:
    says(server, Said(calls=[CALLS["run"]]), Said(text="done"), Said(calls=[CALLS["run"]]), Said(text="done"))
    asked = here.json("ask", "--session", "s", "/reporter please")
    question = asked["report"]["summary"]
    assert "a yes for this session: reporter may run commands in its workspace" in question
    assert here.json("ask", "--session", "s", "yes, for this session")["exit_code"] == 0
    assert "run: reporter may run commands in its workspace, whatever it then holds" in here.said(
        "session", "show", "s"
    )
    assert here.run("session", "revoke", "s", "read").code == 4
    assert here.json("ask", "--session", "s", "/reporter again")["exit_code"] == 0
    assert [one["right"] for one in here.json("session", "revoke", "s", "run")["revoked"]] == ["run"]
    assert here.json("session", "show", "s")["rights"] == []
    server.requests.clear()
    assert here.json("ask", "--session", "s", "/reporter again")["exit_code"] == 9
    assert here.said("session", "revoke", "s").strip() == "no right was given in this session"


def test_a_right_that_is_revoked_elsewhere_ends_in_an_open_chat(here: Place, server: WireServer) -> None:
    runs, end = Said(calls=[CALLS["run"]]), Said(text="It is done.")
    says(server, runs, end, runs, end)
    letters = TEXTS["en"]["letters"]
    with terminal(here, "chat", "--session", "s", columns=160) as screen:
        typed(screen, "/reporter please", letters)
        typed(screen, "a", "It is done.")
        here.said("session", "revoke", "s")
        typed(screen, "/reporter again", letters)
        screen.wait_for("> ")
        screen.type("\x04")
        screen.rest()

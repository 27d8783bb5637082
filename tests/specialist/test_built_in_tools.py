"""A turn in which a model uses the built-in tools: what is asked, done, shown, undone (marker ci)."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from cli.support import Place
from cli.terminals import terminal
from models.wire_server import HELLO, Said, WireServer
from person_state import accept
from specialist.turns import of_phase_two, says, song
from tools.picture_files import png
from web_server import KEY_AND_CERTIFICATE, Reply, pages

pytestmark = pytest.mark.ci

NOTES = "one\ntwo\nthree\n"


@pytest.fixture
def writer(here: Place) -> Place:
    """The project with a skill that has its own script and reference, and two text files."""
    folder = ".claude/skills/song-writer"
    here.write({f"{folder}/references/rhymes.md": "boat, float\n", "notes.txt": NOTES, "歌词.txt": "船\n"})
    here.write({f"{folder}/scripts/count.py": "import sys\nprint(len(open(sys.argv[1]).read().split()), 'words')\n"})
    accept(here.root, "song-writer")
    return here


def call(tool: str, **arguments: Any) -> Said:
    return Said(calls=[(tool, json.dumps(arguments))])


def answers(server: WireServer) -> list[str]:
    return [str(one["content"]) for one in of_phase_two(server)[-1]["messages"] if one["role"] == "tool"]


def asked(here: Place, message: str) -> dict[str, Any]:
    answer: dict[str, Any] = here.json("ask", "--session", "s", message)
    return answer


@pytest.mark.requirement("JIT-5", "TOL-9")
def test_a_skill_reads_its_own_references_and_the_files_that_the_message_names(
    writer: Place, server: WireServer
) -> None:
    says(
        server,
        call("read", file_path="references/rhymes.md"),
        call("read", file_path="notes.txt"),
        call("read", file_path="歌词.txt"),
        HELLO,
    )
    told = asked(writer, "/song-writer a song about notes.txt，以及歌词.txt里的内容")
    assert (told["exit_code"], told["report"]["raw"]) == (0, HELLO.text)
    assert answers(server) == ["     1\tboat, float", "     1\tone\n     2\ttwo\n     3\tthree", "     1\t船"]
    body = of_phase_two(server)[0]
    assert [one["function"]["name"] for one in body["tools"]] == [
        "skill", "read", "list", "glob", "grep", "write", "edit", "deliver", "run",
    ]  # fmt: skip
    known = body["messages"][1]["content"]
    assert (
        f"用户提到的文件：{writer.root}/notes.txt, {writer.root}/歌词.txt" in known
        and "工作区（命令的当前目录" in known
    )


@pytest.mark.requirement("JIT-12")
def test_a_yes_continues_the_waiting_call_in_the_same_workspace(writer: Place, server: WireServer) -> None:
    says(
        server,
        call("write", file_path="song.txt", content="row row row"),
        call("run", command="python3 scripts/count.py song.txt"),
        call("read", file_path="song.txt"),
        Said(text="It has three words."),
    )
    waits = asked(writer, "/song-writer a song")
    assert waits["exit_code"] == 9 and "scripts/count.py song.txt" in waits["report"]["summary"]
    told = asked(writer, "yes")
    assert (told["exit_code"], told["report"]["raw"]) == (0, "It has three words.")
    assert answers(server)[1:] == ["exit code 0\n3 words", "     1\trow row row"]
    (folder,) = (writer.root / "mybox/workspace").iterdir()
    assert told["report"]["data"]["written"] == [{"path": str(folder / "song.txt"), "size": 11}]


@pytest.mark.requirement("JIT-12")
def test_an_edit_is_shown_then_made_and_can_be_undone(writer: Place, server: WireServer) -> None:
    notes = writer.root / "notes.txt"
    says(
        server,
        call("edit", file_path="notes.txt", old_string="two", new_string="2"),
        call("write", file_path=str(writer.root / "new.txt"), content="new\n"),
        Said(text="Done."),
    )
    waits = asked(writer, "/song-writer change notes.txt")
    assert (waits["exit_code"], notes.read_text()) == (9, NOTES)
    assert "-two\n+2\n" in waits["report"]["summary"]
    second = asked(writer, "yes")
    assert (second["exit_code"], notes.read_text()) == (9, NOTES.replace("two", "2"))
    told = asked(writer, "yes")
    assert told["exit_code"] == 0, told["report"]
    assert (writer.root / "new.txt").read_text() == "new\n"
    assert told["report"]["effects"] in (["write new.txt"], ["edit notes.txt", "write new.txt"])
    for run in (waits["run"], second["run"], told["run"]):  # they are one work
        assert [one["path"] for one in writer.json("diff", run)["changes"]] == ["notes.txt", "new.txt"]
    shown = writer.run("diff", told["run"])
    assert shown.err == f"run {told['run']}: 2 changes; navigator undo {told['run']} puts them back\n"
    undone = [{"path": "notes.txt", "state": "undone"}, {"path": "new.txt", "state": "undone"}]
    assert writer.json("undo", second["run"])["files"] == undone
    assert (notes.read_text(), (writer.root / "new.txt").exists()) == (NOTES, False)
    assert writer.run("diff").err == f"run {waits['run']}: 2 changes; undone since\n"


@pytest.mark.requirement("JIT-12")
def test_an_edit_of_a_file_that_nobody_named_ends_after_one_yes(writer: Place, server: WireServer) -> None:
    notes = str(writer.root / "notes.txt")
    edit = call("edit", file_path=notes, old_string="two", new_string="2")
    says(server, edit, call("read", file_path=notes), Said(text="Done."))
    waits = asked(writer, "/song-writer a song")
    assert "read files of" in waits["report"]["summary"] and "-two\n+2\n" in waits["report"]["summary"]
    assert (asked(writer, "yes")["exit_code"], (writer.root / "notes.txt").read_text()) == (
        0,
        NOTES.replace("two", "2"),
    )


@pytest.mark.requirement("JIT-12", "X-43")
def test_a_yes_is_for_one_execution_over_turns_and_for_one_session(writer: Place, server: WireServer) -> None:
    """The model writes a script, runs it, and makes the same call again: alike, then rewritten."""
    script, run = "open('ran.txt', 'a').write('ran ')\n", call("run", command="cat job.py|python3")
    again = [Said(calls=run.calls) for _ in range(2)]
    evil = call("write", file_path="job.py", content="open('evil.txt', 'w').close()\n")
    says(server, call("write", file_path="job.py", content=script), run, again[0], evil, again[1], HELLO)
    first = asked(writer, "/song-writer a song")
    assert "open('ran.txt', 'a')" in first["report"]["summary"]
    assert asked(writer, "yes")["exit_code"] == 9
    last = asked(writer, "yes")
    assert last["exit_code"] == 9 and "evil.txt" in last["report"]["summary"]
    (folder,) = (writer.root / "mybox/workspace").glob("*/")
    assert (folder / "ran.txt").read_text() == "ran ran " and not (folder / "evil.txt").exists()


@pytest.mark.requirement("JIT-12")
def test_a_second_question_keeps_the_consents_of_the_first(writer: Place, server: WireServer) -> None:
    other = {"file_path": str(writer.root / "notes.txt")}
    says(server, call("read", **other), call("run", command="true"), call("read", **other), Said(text="Done."))
    codes = [asked(writer, words)["exit_code"] for words in ("/song-writer a song", "yes", "yes")]
    assert codes == [9, 9, 0] and len(answers(server)) == 3
    says(server, call("read", **other), HELLO)
    for session in ("s", "t"):  # neither the next order nor another session has it
        server.requests.clear()
        assert writer.json("ask", "--session", session, "/song-writer a song")["exit_code"] == 9


@pytest.mark.requirement("JIT-12", "X-41")
@pytest.mark.parametrize("words", [("ask", "/song-writer change notes.txt"), ("chat",)], ids=["ask", "chat"])
def test_a_terminal_shows_the_diff_line_by_line(writer: Place, server: WireServer, words: tuple[str, ...]) -> None:
    says(server, call("edit", file_path="notes.txt", old_string="two", new_string="2"), HELLO)
    with terminal(writer, *words) as screen:
        if words == ("chat",):
            screen.wait_for("> ")
            screen.type("/song-writer change notes.txt\n")
        shown = screen.wait_for("[y]es").replace("\r\n", "\n")
    assert "\n one\n-two\n+2\n three\n" in shown


def test_files_that_came_out_are_named_with_their_size(writer: Place, server: WireServer) -> None:
    says(server, call("write", file_path="song.txt", content="row row row"), HELLO)
    done = writer.run("ask", "/song-writer a song")
    (file,) = (writer.root / "mybox/workspace").glob("*/song.txt")
    assert (done.code, f"file: {file} (11 bytes)\n" in done.err) == (0, True)
    assert f"hint: navigator files {file.parent.name} NAME --to PATH copies a file into the project\n" in done.err


@pytest.mark.requirement("X-43")
def test_a_delivered_file_is_named_by_its_path_in_the_project(writer: Place, server: WireServer) -> None:
    """The list of the files has it under the name of each run of the work."""
    write, deliver = (
        call("write", file_path="song.txt", content="row"),
        call("deliver", **{"from": ["song.txt"], "to": "out/"}),
    )
    says(server, write, deliver, HELLO)
    asked(writer, "/song-writer a song")
    done = writer.run("ask", "--session", "s", "yes")
    assert "file: out/song.txt (3 bytes)\n" in done.err and "hint: " not in done.err
    for run in [events[0]["run"] for events in writer.runs()][:2]:
        assert [one["delivered"] for one in writer.json("files", run)["files"]] == ["out/song.txt"]


def test_a_declined_edit_is_not_made_and_the_model_is_not_asked_again(writer: Place, server: WireServer) -> None:
    says(server, call("edit", file_path="notes.txt", old_string="two", new_string="2"), HELLO)
    assert asked(writer, "/song-writer change notes.txt")["exit_code"] == 9
    assert asked(writer, "no")["exit_code"] == 0
    assert (writer.root / "notes.txt").read_text() == NOTES
    assert len(of_phase_two(server)) == 1


@pytest.mark.requirement("SAF-1")
def test_a_skill_that_the_person_does_not_accept_has_no_tools(writer: Place, server: WireServer) -> None:
    writer.write({".claude/skills/song-writer/SKILL.md": song("license: MIT\n")})
    asked(writer, "/song-writer a song")
    assert "tools" not in of_phase_two(server)[0]


@pytest.mark.requirement("SAF-1")
def test_one_that_asks_for_tools_gets_them_by_a_yes(writer: Place, server: WireServer) -> None:
    writer.write({".claude/skills/song-writer/SKILL.md": song("allowed-tools: Read Write\n")})
    waits = asked(writer, "/song-writer a song")
    assert waits["exit_code"] == 9 and "use the tools Read, Write" in waits["report"]["summary"]
    assert asked(writer, "yes")["exit_code"] == 0
    assert "read" in [one["function"]["name"] for one in of_phase_two(server)[0]["tools"]]


@pytest.mark.requirement("JIT-5")
def test_why_names_the_tools_that_a_skill_wants_and_that_are_not_there(writer: Place, server: WireServer) -> None:
    writer.write({".claude/skills/song-writer/SKILL.md": song("allowed-tools: Read TodoWrite Task Bash(git:*)\n")})
    accept(writer.root, "song-writer")
    says(server, call("read", file_path="notes.txt"), HELLO)
    asked(writer, "/song-writer a song about notes.txt")
    (line,) = (line for line in writer.said("why").splitlines() if "left out" in line)
    assert line == "  left out   TodoWrite, Task: song-writer names these tools, and they are not offered here"


@pytest.mark.requirement("SAF-2")
@pytest.mark.parametrize("rule", ["tool:run", "tool:*"])
def test_the_persons_policy_takes_tools_away(writer: Place, mine: Path, server: WireServer, rule: str) -> None:
    mine.write_text(f'{mine.read_text()}[policy]\ndeny = ["{rule}"]\n')
    asked(writer, "/song-writer a song")
    names = [one["function"]["name"] for one in of_phase_two(server)[0].get("tools", ())]
    assert "run" not in names and ("read" in names) == (rule == "tool:run")


@pytest.mark.requirement("JIT-12")
def test_edits_can_be_allowed_for_one_command_and_commands_cannot(writer: Place, server: WireServer) -> None:
    edit = call("edit", file_path="notes.txt", old_string="two", new_string="2")
    says(server, edit, call("run", command="python3 -c 'print(1)'"), HELLO)
    waits = here_with(writer, "--allow-edits", "/song-writer change notes.txt")
    assert (writer.root / "notes.txt").read_text() == NOTES.replace("two", "2")
    assert waits["exit_code"] == 9 and "python3 -c" in waits["report"]["summary"]


@pytest.mark.requirement("JIT-5")
def test_a_command_that_may_only_read_offers_no_other_tool(writer: Place, server: WireServer) -> None:
    here_with(writer, "--read-only", "/song-writer look at notes.txt")
    names = [one["function"]["name"] for one in of_phase_two(server)[0]["tools"]]
    assert names == ["skill", "read", "list", "glob", "grep"]


@pytest.mark.requirement("JIT-5")
def test_a_picture_is_shown_and_only_its_digest_is_kept(writer: Place, mine: Path, server: WireServer) -> None:
    """A yes comes between reading it and the next request: the order that waits does not hold its bytes either."""
    mine.write_text(f"{mine.read_text()}vision = true\n")
    data = png(300, 200)
    (writer.root / "boat.png").write_bytes(data)
    says(server, call("read", file_path="boat.png"), call("run", command="true"), HELLO)
    waits = asked(writer, "/song-writer a song about boat.png")
    assert waits["exit_code"] == 9, waits
    encoded, digest = base64.b64encode(data).decode(), hashlib.sha256(data).hexdigest()
    assert any(digest.encode() in stored for stored in files_of(writer.root, mine.parents[2]))
    assert not any(encoded[40:100].encode() in stored for stored in files_of(writer.root, mine.parents[2]))
    assert asked(writer, "yes")["exit_code"] == 0
    assert all(encoded in json.dumps(body) for body in of_phase_two(server)[1:])
    assert not any(encoded[40:100].encode() in stored for stored in files_of(writer.root, mine.parents[2]))


def files_of(*homes: Path) -> list[bytes]:
    paths = [path for home in homes for path in home.rglob("*") if path.is_file() and path.suffix != ".png"]
    return [path.read_bytes() for path in paths]


@pytest.mark.requirement("JIT-5", "JIT-12")
def test_a_page_of_a_named_host_is_fetched_after_a_yes(
    writer: Place, mine: Path, server: WireServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pem = tmp_path / "tls.pem"
    pem.write_text(KEY_AND_CERTIFICATE)
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    with pages(pem) as there:
        there.replies["/boats"] = Reply(b"<h1>Boats</h1><p>They float.")
        mine.write_text(f'{mine.read_text()}[policy]\nfetch = ["localhost:{there.port}"]\n')
        says(server, call("fetch", url=f"{there.url}/boats"), call("fetch", url="https://example.net/"), HELLO)
        waits = asked(writer, "/song-writer a song")
        assert waits["exit_code"] == 9 and f"{there.url}/boats" in waits["report"]["summary"]
        assert asked(writer, "yes")["exit_code"] == 0
    page, refused = answers(server)
    assert page.endswith("\n\n# Boats\n\nThey float.") and "is not a host that the person named" in refused


def here_with(here: Place, option: str, message: str) -> dict[str, Any]:
    answer: dict[str, Any] = here.json("ask", option, message)
    return answer


@pytest.mark.requirement("JIT-12")
def test_a_question_with_a_long_diff_is_asked_whole(writer: Place, server: WireServer) -> None:
    """390,000 characters: more than a report may have otherwise."""
    new = "\n".join(f"{number:>8} {'x' * 66}" for number in range(5_000))
    says(server, call("edit", file_path="notes.txt", old_string="two", new_string=new), HELLO)
    waits = writer.run("ask", "--session", "s", "/song-writer change notes.txt")
    added = "\n".join(f"+{line}" for line in new.split("\n"))
    assert waits.code == 9 and f"\n one\n-two\n{added}\n three\n" in waits.out
    assert asked(writer, "yes")["exit_code"] == 0
    assert (writer.root / "notes.txt").read_text() == NOTES.replace("two", new)


@pytest.mark.requirement("JIT-12")
def test_the_command_diff_shows_a_large_change_whole_and_every_byte(writer: Place, server: WireServer) -> None:
    notes = writer.root / "notes.txt"
    notes.write_bytes(b"caf\xe9\r\n" + b"x\n" * 120_000)
    long = "y" * 200
    says(server, call("write", file_path="notes.txt", content=f"caf\u00e9\f\n{long}\n" + "x\n" * 120_000), HELLO)
    assert asked(writer, "/song-writer change notes.txt")["exit_code"] == 9
    assert asked(writer, "yes")["exit_code"] == 0
    shown = writer.run("diff").out
    pieces = ["+" + "y" * 77, "+…" + "y" * 76, "+…" + "y" * 47]
    assert "\n".join(["-caf\\xe9\\r", "+café\\x0c", *pieces, " x"]) in shown
    (change,) = writer.json("diff")["changes"]
    assert f"-caf\\xe9\r\n+café\f\n+{long}\n x\n" in change["diff"]


def test_undo_leaves_a_file_that_was_changed_since(writer: Place, server: WireServer) -> None:
    says(server, call("edit", file_path="notes.txt", old_string="two", new_string="2"), HELLO)
    asked(writer, "/song-writer change notes.txt")
    asked(writer, "yes")
    (writer.root / "notes.txt").write_text("mine\n")
    kept = writer.run("undo")
    assert (kept.code, (writer.root / "notes.txt").read_text()) == (1, "mine\n")
    assert kept.out == "kept: notes.txt, which was changed after the run\n"
    assert writer.run("undo", "--force").code == 0
    assert (writer.root / "notes.txt").read_text() == NOTES


@pytest.mark.parametrize(
    ("words", "code"), [(("undo",), 4), (("diff",), 4), (("diff", "no-run"), 4), (("undo", "../x"), 3)]
)
def test_undo_without_a_change_says_so(writer: Place, words: tuple[str, ...], code: int) -> None:
    assert writer.json(*words)["exit_code"] == code


@pytest.fixture
def reported(writer: Place, server: WireServer) -> Path:
    """A report that a turn of the session `s` wrote into its workspace."""
    says(server, call("write", file_path="out/report.md", content="one two three\n"), Said(text="It is in report.md."))
    told = asked(writer, "/song-writer write a report")
    (file,) = told["report"]["data"]["written"]
    server.requests.clear()
    return Path(file["path"])


@pytest.mark.requirement("JIT-5", "TOL-9")
def test_a_later_turn_reads_what_an_earlier_one_wrote(writer: Place, server: WireServer, reported: Path) -> None:
    says(server, call("read", file_path="report.md"), call("read", file_path=str(reported)), HELLO)
    assert asked(writer, "/song-writer now make it shorter")["exit_code"] == 0
    assert answers(server) == ["     1\tone two three"] * 2
    assert str(reported) in str(of_phase_two(server)[0]["messages"])


@pytest.mark.requirement("JIT-5", "SAF-2")
def test_a_later_turn_changes_a_copy_and_not_the_file_of_the_earlier_one(
    writer: Place, server: WireServer, reported: Path
) -> None:
    edit = call("edit", file_path="report.md", old_string=" two three", new_string="")
    says(server, call("write", file_path=str(reported), content="x"), edit, edit, Said(text="Shorter."))
    told = asked(writer, "/song-writer now make it shorter")
    (copy,) = told["report"]["data"]["written"]
    assert Path(copy["path"]).read_text() == "one\n" and Path(copy["path"]).parent.parent == reported.parents[2]
    assert reported.read_text() == "one two three\n"
    assert "read-only" in answers(server)[0]


@pytest.mark.requirement("SAF-2")
def test_another_session_does_not_read_it(writer: Place, server: WireServer, reported: Path) -> None:
    says(server, call("read", file_path=str(reported)), HELLO)
    writer.json("ask", "--session", "t", "/song-writer now make it shorter")
    assert "not open to tools" in answers(server)[0]


@pytest.mark.requirement("SAF-1")
def test_a_command_reads_the_earlier_file_and_cannot_change_it(
    writer: Place, server: WireServer, reported: Path
) -> None:
    count = call("run", command="python3 scripts/count.py report.md")
    says(server, count, call("run", command=f"echo x > {reported}"), HELLO)
    assert [asked(writer, words)["exit_code"] for words in ("/song-writer count it", "yes", "yes")] == [9, 9, 0]
    counted, changed = answers(server)
    assert counted.endswith("3 words") and not changed.startswith("exit code 0")
    assert reported.read_text() == "one two three\n"

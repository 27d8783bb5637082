"""`navigator ask` and `navigator why`: exit codes, output formats, languages, and terminals of any encoding."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli.support import Place, below, environment, place_in, type_a
from cli.terminals import terminal
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.events import Body, Event, RouteDecided, RunStarted, SkillChosen, SkillsShortlisted
from navigator_kernel.why import readable_lines
from skill_repositories import skill_text
from tables import cases

pytestmark = pytest.mark.sample(1)

Env = dict[str, str]

COUNT = "word count of this: hello world"
ZH_COUNT = "统计这段文字的字数：你好 世界"
ZH_TALK = "你好，今天过得怎么样"
MARKS = set("✅⚠⏸❌⏱\ufe0f")


@pytest.fixture
def here(tmp_path: Path) -> Place:
    """A project with a skill that takes too long and one that fails."""
    place = place_in(tmp_path)
    slow = type_a("slow", "import time\nprint('begun', flush=True)\ntime.sleep(60)\n", extra="timeout: 5\n")
    bad = type_a("bad", "import sys\nsys.exit('it broke')\n")
    place.write(below(".claude/skills/slow", slow) | below(".claude/skills/bad", bad))
    return place


@cases("words, code", lists=True, ids=lambda value: " ".join(value) if isinstance(value, list) else str(value))
def test_the_exit_code_is_the_states(here: Place, words: list[str], code: int) -> None:
    assert here.run("ask", *words).code == code


@pytest.mark.wide
def test_a_skill_that_takes_too_long_ends_at_its_own_limit_and_keeps_what_it_said(here: Place) -> None:
    report = here.json("ask", "--yes", "/slow x")["report"]
    assert (report["state"], report["raw"], report["data"]["limit"]) == ("timeout", "begun", 5.0)
    assert report["meta"]["time"] < 30


def test_without_a_yes_nothing_is_done(here: Place) -> None:
    report = here.json("ask", "!touch made")["report"]
    assert (report["data"]["reason"], list(here.root.rglob("made"))) == ("consent", [])


def test_a_command_that_was_agreed_to_starts_in_the_project(here: Place) -> None:
    assert here.json("ask", "--yes", "!pwd")["report"]["data"]["stdout"] == str(here.root)


@pytest.mark.parametrize("message", ["/grower 2", "!node .claude/skills/grower/run.js 2"])
def test_a_program_of_node_has_web_assembly(here: Place, message: str) -> None:
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    code = "console.log(new WebAssembly.Memory({ initial: +process.argv[2] }).buffer.byteLength / 65536, 'pages')\n"
    head = "name: grower\ndescription: grows\ncommand: node ${SKILL_ROOT}/run.js $ARGUMENTS\n"
    here.write(below(".claude/skills/grower", {"SKILL.md": f"---\n{head}---\n# Grower\n", "run.js": code}))
    assert here.json("ask", "--yes", message)["report"]["raw"] == "2 pages"


def test_an_unknown_skill_is_answered_with_the_nearest_ones(here: Place) -> None:
    report = here.json("ask", "/word-cuont x")["report"]
    assert report["data"]["suggestions"][0] == "word-count"
    assert "did you mean word-count" in report["summary"]


def test_a_missing_file_is_named(here: Place) -> None:
    assert "missing.txt" in here.run("ask", "/word-count @missing.txt").out


def test_a_file_of_the_project_is_read(here: Place) -> None:
    here.write({"notes.txt": "one two three\n"})
    assert here.json("ask", "/word-count @notes.txt")["report"]["data"]["words"] == 3


def test_a_path_starts_at_the_folder_that_the_command_is_run_in(here: Place) -> None:
    here.write({"deep/notes.txt": "one two three\n"})
    assert here.json("ask", "/word-count @notes.txt", cwd=here.root / "deep")["report"]["data"]["words"] == 3


@pytest.mark.wide
def test_a_summary_is_one_line(here: Place) -> None:
    assert here.said("ask", "--format", "summary", COUNT) == "✅ skills 2 words, 11 characters, 1 line\n"


@pytest.mark.wide
@pytest.mark.requirement("X-41", "OUT-1", "OUT-2", "OUT-3")
def test_the_protocol_has_state_data_meta_and_the_sections(here: Place) -> None:
    out = here.said("ask", "--format", "protocol", COUNT)
    parts = ["  state: success", "  data: {", "  meta: {", "[Logic Trace]", "[Action Vector]", "[State Update]"]
    assert [part for part in parts if part not in out] == []


@pytest.mark.wide
@pytest.mark.requirement("X-41")
def test_redirected_there_is_the_report_and_no_section(here: Place) -> None:
    done = here.run("ask", COUNT, env={"NAVIGATOR_OUTPUT_SECTIONS": "full"})
    assert ("  state: success" in done.out, "[Logic Trace]" in done.out + done.err) == (True, False)


@pytest.mark.wide
@pytest.mark.requirement("X-41")
def test_a_person_reads_a_sentence_and_a_dim_line_for_each_section(here: Place) -> None:
    told = here.on_terminal("ask", COUNT, env={"TERM": "xterm"}).splitlines()
    assert "✅ 2 words, 11 characters, 1 line" in told
    assert not any(line.lstrip().startswith(("state:", "meta:", "data:")) for line in told)
    dim = [line for line in told if line.startswith("\x1b[2m")]
    assert [line[4:].split("]")[0] for line in dim] == ["[Logic Trace", "[Action Vector", "[State Update"]
    assert dim == told[-3:] and "word-count" in dim[0]


@pytest.mark.wide
@pytest.mark.requirement("X-41")
@pytest.mark.parametrize(("how", "lines"), [("off", 0), ("compact", 3), ("full", 9)])
def test_the_sections_are_shown_as_they_are_set(here: Place, how: str, lines: int) -> None:
    here.said("config", "set", "output.sections", how)
    told = here.on_terminal("ask", COUNT, env={"TERM": "xterm"})
    assert told.count("\x1b[2m") == lines, told


@pytest.mark.requirement("X-41")
def test_a_question_is_asked_without_the_protocol(here: Place) -> None:
    with terminal(here, "ask", "/word-count", env={"NO_COLOR": "1"}) as screen:
        told = screen.wait_for("> ")
    assert "word-count needs: " in told and "required" not in told and "\x1b" not in told


@pytest.mark.wide
@pytest.mark.requirement("X-41")
def test_why_and_the_run_log_hold_the_sections_in_full(here: Place) -> None:
    here.said("config", "set", "output.sections", "off")
    here.said("ask", COUNT)
    held = here.runs()[-1][-1]["data"]["sections"]
    assert list(held) == ["logic_trace", "action_vector", "state_update"]
    told = here.said("why", "-v")
    assert all(f"    {line}\n" in told for body in held.values() for line in body)


@pytest.mark.wide
def test_raw_is_what_the_skill_printed(here: Place) -> None:
    assert json.loads(here.said("ask", "--format", "raw", COUNT))["words"] == 2


@pytest.mark.wide
@pytest.mark.parametrize(
    "words", [[COUNT], ["hello there"], ["/word-cuont x"], ["!echo hi"], ["--yes", "/slow x"]], ids=str
)
def test_plain_style_has_no_emoji(here: Place, words: list[str]) -> None:
    out = here.run("--style", "ascii", "ask", *words).out
    assert out.startswith("[") and out.isascii()


@pytest.mark.wide
@pytest.mark.parametrize("words", [[], ["-"]], ids=["no words", "-"])
def test_a_message_may_come_on_stdin(here: Place, words: list[str]) -> None:
    assert here.json("ask", *words, stdin=COUNT + "\n")["report"]["data"]["words"] == 2


@pytest.mark.parametrize(
    ("message", "piped", "words"),
    [
        ("count the words of this", 'He said "hello there" to @nobody', 6),
        ("how many words has this?", "one\n\n/todo-scan two\n", 3),
        ("统计这段文字的字数", "three small words", 3),
        ("/word-count", "one two", 2),
    ],
)
def test_what_is_piped_in_beside_a_message_is_the_file_that_it_is_about(
    here: Place, message: str, piped: str, words: int
) -> None:
    reply = here.json("ask", message, stdin=piped)
    assert reply["report"]["data"]["words"] == words == len(piped.split())
    kept = list((here.root / "mybox/workspace").glob("*-stdin/stdin.txt"))
    assert [file.read_text() for file in kept] == [piped]


@pytest.mark.parametrize(
    ("message", "words"),
    [("/word-count a b c", 3), ("count the words of README.md", 4), ('count the words of "a b"', 2), (COUNT, 2)],
)
def test_stdin_is_left_alone_where_the_message_names_what_it_is_about(here: Place, message: str, words: int) -> None:
    here.write({"README.md": "one two three four\n"})
    assert here.json("ask", message, stdin="another text of six words")["report"]["data"]["words"] == words
    assert not list((here.root / "mybox/workspace").glob("*-stdin"))


@pytest.mark.parametrize(
    ("message", "answer", "state"),
    [("count the words", "notes.txt", "success"), ("!echo hi", "yes", "success"), ("!echo hi", "no", "success")],
)
def test_an_answer_to_an_open_question_is_not_about_what_is_piped_in(
    here: Place, message: str, answer: str, state: str
) -> None:
    here.write({"notes.txt": "one two three\n"})
    assert here.json("ask", "--session", "s", message)["report"]["state"] == "pending"
    assert here.json("ask", "--session", "s", answer, stdin="something else")["report"]["state"] == state
    assert not list((here.root / "mybox/workspace").glob("*-stdin"))


def test_outside_a_project_what_is_piped_in_is_the_text_of_the_message(here: Place, tmp_path: Path) -> None:
    folder = tmp_path / "no project"
    folder.mkdir()
    done = here.run("ask", "--json", "count the words of this.", stdin='He said "hello there" to me', cwd=folder)
    assert json.loads(done.out)["report"]["data"]["words"] == 6
    assert list(folder.iterdir()) == []


def test_a_pipe_that_stays_open_and_empty_is_left_alone(here: Place) -> None:
    reading, writing = os.pipe()
    argv = [sys.executable, "-m", "navigator_kernel.cli.main", "ask", "--json", "count the words of this"]
    done = subprocess.run(
        argv, cwd=here.root, env=environment(), stdin=reading, capture_output=True, text=True, timeout=60
    )
    os.close(reading)
    os.close(writing)
    assert json.loads(done.stdout)["report"]["state"] == "pending"
    assert "nothing came on stdin within 3 seconds" in done.stderr


def test_more_than_64_mib_of_stdin_is_an_error(here: Place, tmp_path: Path) -> None:
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(64 * 1024**2 + 1)
    argv = [sys.executable, "-m", "navigator_kernel.cli.main", "ask", "count the words of this"]
    with large.open("rb") as file:
        done = subprocess.run(
            argv, cwd=here.root, env=environment(), stdin=file, capture_output=True, text=True, timeout=60
        )
    assert (done.returncode, "stdin is over 64 MiB" in done.stderr) == (2, True)


@pytest.mark.wide
def test_several_words_are_one_message(here: Place) -> None:
    assert here.json("ask", *COUNT.split())["report"]["data"]["words"] == 2


def test_a_message_that_is_too_long_is_refused(here: Place) -> None:
    done = here.run("ask", "-", stdin="x" * 1_000_001)
    assert (done.code, "1,000,000" in done.err) == (2, True)


def test_a_chinese_message_is_answered_in_chinese(here: Place) -> None:
    assert "没有配置" in here.run("ask", ZH_TALK).out


@pytest.mark.wide
def test_every_line_about_a_chinese_message_is_chinese(here: Place, lean: Env) -> None:
    told = here.on_terminal("ask", ZH_COUNT, env=lean)
    assert "[Logic Trace] 路由逻辑" in told
    assert "自行安装的技能：2 个" in told


@pytest.mark.wide
def test_the_language_that_is_asked_for_wins_over_the_messages(here: Place) -> None:
    assert "no model is set up" in here.run("--language", "en", "ask", ZH_TALK).out
    assert "没有配置" in here.run("--language", "zh", "ask", "write a limerick").out


@pytest.mark.requirement("OUT-5", "OUT-6")
@pytest.mark.parametrize("message", ["what can you do?", "你能做什么"])
def test_abilities_are_three_lines_on_github_install_and_uninstall_without_commands(here: Place, message: str) -> None:
    told = here.said("ask", "--format", "raw", message).splitlines()
    assert len(told) == 3
    first, second, third = ({"GitHub", "install", "安装", "uninstall", "卸载"} & words(line) for line in told)
    assert ("GitHub" in first, bool(second & {"install", "安装"}), bool(third & {"uninstall", "卸载"})) == (True,) * 3
    assert not any(mark in " ".join(told) for mark in ("skill_manager", "navigator", "--skill", "python", "`", "$ "))


def words(line: str) -> set[str]:
    return {word for word in ("GitHub", "install", "安装", "uninstall", "卸载") if word in line}


@pytest.mark.wide
@pytest.mark.requirement("STA-1", "STA-2", "STA-3", "STA-4")
@pytest.mark.parametrize(("message", "code"), [(COUNT, 0), ("write a limerick", 9), ("/word-cuont x", 4)])
def test_few_skills_are_remarked_on_whatever_is_asked_and_block_nothing(
    here: Place, lean: Env, message: str, code: int
) -> None:
    told = here.on_terminal("ask", message, env=lean)
    assert told.count("docs/skills-mapping.md") == 1 and "installed skills: 2." in told.splitlines()[0]
    assert here.run("ask", message, env=lean).code == code


@pytest.mark.wide
@pytest.mark.requirement("STA-4", "X-44")
def test_nobody_is_reminded_where_no_person_reads(here: Place, lean: Env) -> None:
    assert "skills-mapping" not in here.run("ask", COUNT, env=lean).err
    assert here.json("ask", COUNT, env=lean)["notice"] is None
    assert "skills-mapping" not in here.on_terminal("ask", COUNT, "--json", env=lean)


@pytest.mark.wide
@pytest.mark.requirement("STA-3", "X-44")
@pytest.mark.parametrize(("more", "off", "reminded"), [(7, 0, True), (8, 0, False), (8, 1, True)])
def test_ten_skills_of_the_persons_own_are_enough_and_shipped_ones_do_not_count(
    here: Place, more: int, off: int, reminded: bool
) -> None:
    """Two are there already; disabled ones do not count."""
    for number in range(more):
        here.write(below(f".claude/skills/s{number}", {"SKILL.md": f"---\nname: s{number}\ndescription: x\n---\nx\n"}))
    for number in range(off):
        here.said("skill", "disable", f"s{number}")
    assert ("skills-mapping" in here.on_terminal("ask", COUNT)) is reminded


@pytest.mark.wide
def test_why_shows_the_stages_of_a_choice_in_order(here: Place) -> None:
    here.said("ask", COUNT)
    told = here.said("why", "-v")
    parts = ["message", "offered", "shortlist", "word-count  confidence", "decided", "chosen", "used", "ended"]
    places = [told.find(part) for part in parts]
    assert -1 not in places and places == sorted(places)


WHY_CASES = {
    "merging a.pdf and b.pdf": "ada-papers, because 'merging' and '.pdf' are in its description",
    "帮我合并拆分这些pdf": "ada-papers，因为它的描述中有“合并拆分”和“pdf”",
    "/ada-papers x": "ada-papers: written as an instruction",
    "hello there": "no skill: the message asks for nothing that a skill does",
}


@pytest.mark.requirement("X-41", "OUT-1")
@pytest.mark.parametrize(("message", "why"), WHY_CASES.items(), ids=str)
def test_why_is_one_sentence_for_people(here: Place, message: str, why: str) -> None:
    here.write(
        {".claude/skills/ada-papers/SKILL.md": skill_text("ada-papers", "Merge, split .pdf files. 合并拆分 PDF 文件")}
    )
    here.write({".claude/skills/bob-papers/SKILL.md": skill_text("bob-papers", "Print .pdf files")})
    here.run("ask", message)
    (line,) = (line for line in here.said("why").splitlines() if re.match("  (?:why|原因) ", line))
    sentence, _, next_one = line.split(maxsplit=1)[1].replace("；", ";").partition(";")
    assert sentence == why
    (shortlist,) = [e["data"]["candidates"] for e in here.runs()[-1] if e["type"] == "SkillsShortlisted"] or [[]]
    others = [one for one in shortlist if one["name"] != "ada-papers" and one["confidence"] >= 0.01]
    assert (others[0]["name"] in next_one) if others else not next_one
    assert "confidence" not in here.said("why")


def test_why_names_the_next_skill_with_its_confidence(here: Place) -> None:
    here.write({".claude/skills/pdf/SKILL.md": skill_text("pdf", "Merges .pdf files")})
    decision = {"kind": "skills", "entity": "pdf", "tier": "retrieval", "reason": "leader", "confidence": 0.9}
    shortlist = ({"name": "pdf", "confidence": 0.9}, {"name": "docx", "confidence": 0.12})
    bodies: tuple[Body, ...] = (
        RunStarted(message="merge these .pdf files, please", session="s", language="en"),
        SkillsShortlisted(candidates=shortlist, band="route", reason="leader"),
        RouteDecided(decision=decision),
    )
    events = [Event(run="r", turn=1, step=None, seq=n, ts="", parent=None, body=one) for n, one in enumerate(bodies)]
    assert list(readable_lines(events, Project(here.root, agents=False).catalogue)) == [
        "  message    merge these .pdf files, please",
        "  why        pdf, because 'merge', '.pdf' and 'files' are in its description; next: docx .12",
    ]


def test_why_explains_each_step_of_several(here: Place) -> None:
    here.write({".claude/skills/pdf/SKILL.md": skill_text("pdf", "Merges .pdf files")})
    decision = {
        "kind": "workflow",
        "entity": "pdf-then-word-count",
        "tier": "exact",
        "reason": "steps",
        "confidence": 1.0,
    }
    bodies: tuple[Body, ...] = (
        RunStarted(message="merge the .pdf files and count the words", session="s", language="en"),
        RouteDecided(decision=decision),
        SkillChosen(skill="pdf", tier="exact", confidence=1.0),
        SkillChosen(skill="word-count", tier="exact", confidence=1.0),
    )
    events = [Event(run="r", turn=1, step=None, seq=n, ts="", parent=None, body=one) for n, one in enumerate(bodies)]
    _, whole, first, second = readable_lines(events, Project(here.root, agents=False).catalogue)
    assert whole == "  why        pdf-then-word-count: the message lists several steps"
    assert first == "  step       pdf, because 'merge', '.pdf' and 'files' are in its description"
    assert second == "  step       word-count, because 'files', 'count' and 'words' are in its description"


@pytest.mark.wide
def test_why_shows_the_named_run_instead_of_the_newest(here: Place) -> None:
    first = here.json("ask", COUNT)["run"]
    here.run("ask", "hello there")
    assert first in here.said("why", first) and "word-count" in here.said("why", first)
    assert first not in here.said("why")


@pytest.mark.wide
@pytest.mark.parametrize("run", ["20200101-000000000-000000", "../../etc/passwd", "x" * 200])
def test_why_of_an_unknown_run_is_not_found(here: Place, run: str) -> None:
    here.said("ask", COUNT)
    done = here.run("why", run)
    assert (done.code, done.out) == (4, "")


def test_why_before_the_first_run_says_so(here: Place) -> None:
    assert here.run("why").code == 4


@pytest.mark.wide
def test_a_damaged_log_is_named(here: Place) -> None:
    run = here.json("ask", COUNT)["run"]
    (here.root / "mybox" / "logs" / "runs" / f"{run}.jsonl").write_text("{ broken\n")
    done = here.run("why", run)
    assert (done.code, run in done.err) == (6, True)


@pytest.mark.wide
@pytest.mark.parametrize("encoding", ["gbk", "ascii", "latin-1", "utf-16"])
@pytest.mark.parametrize("message", [COUNT, ZH_COUNT, "word count of this: café 😀 naïve", "/没有这个 x"])
def test_no_encoding_of_the_terminal_breaks_a_reply(here: Place, encoding: str, message: str) -> None:
    done = here.run("ask", message, env={"PYTHONIOENCODING": encoding})
    assert done.code in {0, 4} and "Error" not in done.err


@pytest.mark.wide
@pytest.mark.parametrize("encoding", ["gbk", "ascii"])
def test_marks_are_plain_where_the_encoding_has_no_emoji(here: Place, encoding: str) -> None:
    done = here.run("ask", COUNT, env={"PYTHONIOENCODING": encoding})
    assert done.out.startswith("[OK] ")


@pytest.mark.wide
@pytest.mark.parametrize("encoding", ["gbk", "ascii", "latin-1"])
def test_json_is_json_in_every_encoding(here: Place, encoding: str) -> None:
    message = "café 😀 世界 \x80"
    here.run("ask", message)
    words = [*here.program, "why", "--json"]
    done = subprocess.run(words, cwd=here.root, env=environment({"PYTHONIOENCODING": encoding}), capture_output=True)
    assert json.loads(done.stdout.decode(encoding))["events"][0]["data"]["message"] == message


@pytest.mark.wide
@pytest.mark.parametrize("encoding", ["ascii:strict", "utf-8:strict"])
def test_undecodable_stdin_causes_no_internal_error(here: Place, encoding: str) -> None:
    done = here.run("ask", "-", stdin=b"hello \xff\xfe", env={"PYTHONIOENCODING": encoding})
    assert done.code in {2, 9}
    assert "NAVIGATOR_DEBUG" not in done.err

"""What a person sees of a prompt skill if no model is set."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli.support import Place, place_in
from cli.terminals import terminal
from skill_repositories import skill_text
from tables import cases


@pytest.fixture
def here(tmp_path: Path) -> Place:
    here = place_in(tmp_path)
    here.write({".claude/skills/song-writer/SKILL.md": skill_text("song-writer", "writes songs. Use when asked.")})
    return here


@pytest.mark.requirement("X-41")
@cases("message, said, ways", ids=["en", "zh"])
def test_a_prompt_skill_says_that_nothing_was_done_and_how_to_go_on(
    here: Place, message: str, said: str, ways: tuple[str, ...]
) -> None:
    with terminal(here, "ask", message, columns=160) as screen:
        shown = screen.rest()
    piped = here.run("ask", message)
    assert piped.code == 9
    for text in (shown, piped.out):
        assert said in text and all(way in text for way in ways)
        assert "✅" not in text and "Do it." not in text


@pytest.mark.requirement("X-41")
def test_a_prompt_skill_of_any_length_is_pending_for_programs_too(here: Place) -> None:
    here.write({".claude/skills/song-writer/SKILL.md": skill_text("song-writer", "writes songs.") + "la\n" * 20_000})
    body = here.json("ask", "/song-writer x")
    assert (body["exit_code"], body["report"]["state"], body["report"]["data"]["reason"]) == (9, "pending", "no_model")
    assert "prompt" not in body["report"]["data"] and len(str(body)) < 4_000


def test_a_plan_with_a_prompt_skill_says_before_the_yes_that_it_needs_a_model(here: Place) -> None:
    here.write({"a.txt": "one two"})
    done = here.run("ask", "count the words of a.txt and then write a song with song-writer")
    assert done.code == 9 and "song-writer: needs a model to carry it out, and none is set up." in done.out


@pytest.mark.requirement("X-41")
@pytest.mark.parametrize("words", ["a song", "  a  'b c'   \"d\"  ", "把 'x' 写进去", "--tone=mild  $HOME"])
def test_the_prompt_is_printed_exactly_with_the_persons_own_words(here: Place, words: str) -> None:
    text = "Run `qpdf --password=mypassword a.pdf`.\n\nexport API_TOKEN=abcdef0123456789abcdef\n\tDo it.  \n"
    here.write({".claude/skills/pdf/SKILL.md": f"---\nname: pdf\ndescription: Works on PDF.\n---\n{text}"})
    done = here.run("ask", "--show-prompt", f"/pdf {words}")
    assert (done.code, done.out) == (0, text.rstrip("\n") + f"\n\n{words.strip()}\n")
    assert "mypassword" not in "".join(log.read_text() for log in here.root.glob("mybox/logs/runs/*"))


def test_words_behind_a_name_stand_in_the_text_as_they_were_written(here: Place) -> None:
    text = "---\nname: pdf\ndescription: Works on PDF.\n---\nDo: $ARGUMENTS.\n"
    here.write({".claude/skills/pdf/SKILL.md": text})
    done = here.run("ask", "--show-prompt", "/pdf merge  'a b.pdf'   now")
    assert done.out == "Do: merge  'a b.pdf'   now.\n"


@pytest.mark.requirement("PRE-11", "X-41")
@pytest.mark.parametrize("text", ["Do it.", "Do: $ARGUMENTS"])
@pytest.mark.parametrize("words", ["one\ntwo", "one\n\n  two  x\n\n\nthree", "“一”\n二"])
def test_words_of_several_lines_are_the_persons_own(here: Place, text: str, words: str) -> None:
    here.write({".claude/skills/pdf/SKILL.md": f"---\nname: pdf\ndescription: Works on PDF.\n---\n{text}\n"})
    done = here.run("ask", "--show-prompt", f"/pdf {words}")
    assert done.out == (f"Do: {words}\n" if "$" in text else f"{text}\n\n{words}\n")


def test_a_file_stands_in_the_prompt_of_a_skill_with_arguments(here: Place) -> None:
    here.write({"a.txt": "some text", ".claude/skills/pdf/SKILL.md": skill_text("pdf", "Works.") + "Do: $ARGUMENTS\n"})
    done = here.run("ask", "--show-prompt", "/pdf shorten @a.txt")
    assert done.out.endswith('Do: shorten a.txt\n\n<file path="a.txt">\nsome text\n</file>\n')


@pytest.mark.requirement("X-41")
def test_chat_and_the_events_that_programs_read_have_the_three_ways(here: Place) -> None:
    told = here.run("chat", stdin="/song-writer a song\n").out
    assert "/model " in told and "(in a shell) navigator host install" in told
    assert '(in a shell) navigator ask --show-prompt "/song-writer"' in told
    (said,) = (one["data"]["text"] for one in here.json("why")["events"] if one["type"] == "RunContent")
    assert said.startswith("song-writer needs a model") and said.count("\n- ") == 3


def test_why_is_in_the_language_of_the_message(here: Place) -> None:
    here.run("ask", "/song-writer 一首歌")
    told = here.said("why").splitlines()[1:]
    assert all(re.match(r"  [消原结询]", line) for line in told) and "等待" in told[-1]

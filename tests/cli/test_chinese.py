"""Everything that a person can see has a Chinese form, which is found again in the finished sentence (X-31)."""

from __future__ import annotations

import ast
import re
import string
from pathlib import Path

import pytest

from cli.hints import Hint
from cli.support import Place, place_in
from maintenance.sentences import Sentence, every_sentence, wrong
from navigator_kernel.cli.output import width
from navigator_kernel.language.chinese import FILE, approval_in, chinese_forms, in_language
from navigator_kernel.language.wording import say, sentences
from navigator_kernel.text import Language, in_one_language, numbered
from tables import cases, table

TOP = Path(__file__).resolve().parents[2]
HAN = re.compile("[\u4e00-\u9fff]")
HALF_WIDTH = re.compile("[\u4e00-\u9fff][,;:?!]|[,;:?!][\u4e00-\u9fff]|[\u4e00-\u9fff]\\.(?:\\s|$)")
FORMS = chinese_forms()
BY_HAND = "# What is put together elsewhere"  # the rest of the file is not found by tests/maintenance/sentences.py


@pytest.fixture(scope="module")
def every() -> list[Sentence]:
    return every_sentence()


@pytest.fixture
def here(tmp_path: Path) -> Place:
    return place_in(tmp_path)


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def filled(text: str, values: dict[str, str]) -> str:
    return text.format(**{name: _Text(value) for name, value in values.items()})


class _Text(str):
    """A text that a template shows as it is, with `!r` and without."""

    def __repr__(self) -> str:
        return str(self)


def test_every_sentence_that_a_person_can_see_has_a_chinese_form(every: list[Sentence]) -> None:
    missing = [(one.place, one.english) for one in every if not one.chinese]
    assert not missing, "add them to language/chinese.tsv (tests/maintenance/sentences.py --missing)"


def test_no_chinese_form_is_left_over(every: list[Sentence]) -> None:
    found, _, _ = FILE.read_text("utf-8").partition(BY_HAND)
    written = [line.split("\t")[0] for line in found.splitlines() if not line.startswith("# ")]
    known = {one.english.replace("\n", "\\n").replace("\t", "\\t") for one in every}
    assert [text for text in written if text not in known] == []


def test_a_chinese_form_has_the_values_of_the_english_one() -> None:
    assert {english for english, chinese in FORMS.items() if fields(english) != fields(chinese)} == set()


def test_chinese_sentences_say_ni_and_have_full_width_marks(every: list[Sentence]) -> None:
    texts = [one.chinese for one in every if one.place not in {"chat.help", "tool.failed"}] + list(FORMS.values())
    assert [text for text in texts if "您" in text or HALF_WIDTH.search(text)] == []


def test_a_form_that_is_english_is_a_command_or_a_value_to_copy() -> None:
    same = [english for english, chinese in FORMS.items() if not HAN.search(chinese)]
    copied = re.compile(r"navigator |pip |apt-get |python|\[|--|network|reads|tool:|bash|https")
    worded = [text for text in same if re.search("[a-z]{2}", re.sub(r"\{\w+\}", "", text))]
    assert [text for text in worded if not copied.match(text)] == []


def test_a_finished_sentence_is_found_again_with_its_values() -> None:
    lost = []
    for english, chinese in FORMS.items():
        values = {name: f"'v{at}'" for at, name in enumerate(sorted(fields(english)))}
        values |= {name: "7" for name in values if name.startswith("count")}
        told = in_language(filled(english, values), "zh")
        kept = all(value.strip("'") in told for value in values.values())
        lost += [] if kept and bool(HAN.search(told)) == bool(HAN.search(chinese)) else [(english, told)]
    assert lost == []


@cases("english, chinese")
def test_a_number_with_what_is_counted_is_said_in_chinese(english: str, chinese: str) -> None:
    assert in_language(english, "zh") == chinese


def test_everything_that_is_counted_has_a_chinese_form_of_one_and_of_several() -> None:
    calls = (part for path in (TOP / "kernel").rglob("*.py") for part in ast.walk(ast.parse(path.read_text("utf-8"))))
    nouns = {
        call.args[1].value
        for call in calls
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "numbered"
        if isinstance(call.args[1], ast.Constant)
    }
    assert {"skill", "old run", "repository"} <= nouns
    texts = [numbered(count, str(noun)) for noun in nouns for count in (1, 2_000)]
    assert [text for text in texts if not HAN.search(in_language(text, "zh"))] == []


def test_a_number_of_one_a_missing_form_and_an_unknown_command_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `make lint` fails for."""
    given = [
        Sentence("a.py:1", "the file has {lines} lines", "文件有 {lines} 行"),
        Sentence("a.py:2", "nobody is at home", ""),
        Sentence("count.skills", "{count} skills", "{count} 个技能"),
        Sentence("a.py:3", "over {LIMIT} lines", "超过 {LIMIT} 行"),
    ]
    monkeypatch.setattr("maintenance.sentences.every_sentence", lambda: given)
    monkeypatch.setattr("cli.hints.hints", lambda: [Hint("a.py", "skill forget NAME")])
    assert [line.split(": ")[:2] for line in wrong()] == [
        ["a.py:1", "a number of one"],
        ["a.py:2", "without a Chinese form"],
        ["a.py", "navigator skill forget NAME"],
    ]


def test_a_sentence_inside_a_sentence_is_translated_too() -> None:
    text = "'a b' cannot be read: no file is called 'x.log'; 'y' is a folder"
    assert in_language(text, "zh") == "'a b' 无法读取：没有名为 'x.log' 的文件；'y' 是文件夹"


def test_a_text_that_is_not_the_kernels_stays_as_it_is() -> None:
    for text in ("Bonjour: tout va bien", "see no evil", "没有：文件", ""):
        assert in_language(text, "zh") == text


@pytest.mark.parametrize(
    "command",
    ["/bin/sh -c 'stopped: check the path'", "ls '; let it reach the network' x", "echo a: nothing is installed"],
)
def test_the_command_that_a_person_approves_is_shown_exactly(command: str) -> None:
    assert approval_in(f"run tool: {command}", "zh") == f"运行 tool：{command}"
    asked = f"run tool: {command}; let it reach the network"
    assert approval_in(asked, "zh") == f"运行 tool：{command}；并允许它访问网络"


def test_english_needs_no_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("navigator_kernel.language.chinese.FILE", Path("/nonexistent"))
    assert in_language("check the path", "en") == "check the path"


@cases("text, english, chinese")
def test_a_text_in_both_languages_is_shown_in_the_readers(text: str, english: str, chinese: str) -> None:
    assert (in_one_language(text, "en"), in_one_language(text, "zh")) == (english, chinese)


@pytest.mark.parametrize("key", [key for key, (english, _) in sentences().items() if "{count}" in english])
def test_a_count_of_one_has_a_singular(key: str) -> None:
    values = dict.fromkeys(fields(sentences()[key][0]), "x")
    assert not re.search(r"\b1 (?!of\b)[a-z]+[^s]s\b", say(key, "en", **{**values, "count": 1}))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_help_of_chat_fits_a_terminal_and_names_one_thing_a_line(language: Language) -> None:
    lines = say("chat.help", language).split("\n")
    assert max(map(width, lines)) <= 80
    assert len([line for line in lines if re.match(r"[/@!#?]", line)]) == 13


def test_every_head_of_a_table_has_both_languages() -> None:
    heads = set()
    for path in (TOP / "kernel/navigator_kernel/cli").rglob("*.py"):
        for hit in re.finditer(r"\btable\(\s*\(((?:\"[^\"]*\",? ?)+)\)", path.read_text("utf-8")):
            heads |= {name for name in re.split(r'", "|"', hit[1]) if name}
    assert {head for head in heads if f"head.{head}" not in sentences()} == set()


WRONG = table(__file__, "WRONG")


@pytest.mark.parametrize("words", WRONG.values(), ids=WRONG)
def test_a_wrong_command_line_is_answered_in_chinese(here: Place, words: tuple[str, ...]) -> None:
    done = here.run("--language", "zh", *words)
    assert done.code != 0
    assert done.err.startswith("错误：")
    assert all(HAN.search(line) or re.match(r"提示：navigator [\w -]+$", line) for line in done.err.splitlines())


def test_a_missing_file_is_named_in_the_language_of_the_message(here: Place) -> None:
    (here.root / "a.log").write_text("ERROR x\n")
    assert "没有名为 'b.log' 的文件" in here.run("ask", "统计 b.log 里的错误").out
    assert "no file is called 'b.log'" in here.run("ask", "count the errors in b.log").out
    assert "需要：日志文件" in here.run("ask", "执行 log-summary").out.partition("\n")[0]


def test_help_is_in_chinese_and_fits_the_terminal(here: Place) -> None:
    done = here.run("--language", "zh", "install", "--help")
    assert done.code == 0
    assert done.out.startswith("用法：navigator install [OPTIONS] [SOURCE]\n")
    options = done.out.split("选项：\n")[1].splitlines()
    assert all(HAN.search(line) for line in options)
    assert max(sum(2 if HAN.match(mark) else 1 for mark in line) for line in done.out.splitlines()) <= 80


def test_json_keeps_its_english_messages(here: Place) -> None:
    done = here.run("--language", "zh", "uninstall", "nosuch", "--json")
    assert done.document["error"]["msg"] == "no skill called 'nosuch' is installed"


def test_a_short_template_takes_no_other_sentence() -> None:
    assert in_language("please look at the thing removed", "zh") == "please look at the thing removed"
    assert in_language("3 entries", "zh") == "3 个条目"
    assert in_language("3 of 4 entries; none was changed or removed", "zh") == "4 个条目中的 3 个；没有条目被改动或删除"

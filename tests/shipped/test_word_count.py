"""word-count: the figures match the generated text."""

from __future__ import annotations

import os
import random
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from shipped.place import Place
from tables import cases

pytestmark = pytest.mark.sample(2)

WORDS = ("be", "Not", "don't", "well-known", "naïve", "42", "Ünïcödé")
HAN = "天地玄黄宇宙洪荒"
BETWEEN = (" ", ", ", "\n", " — ", "_", "...")


def put_together(seed: int) -> tuple[str, Counter[str]]:
    """A generated text, and the count of each of its words in lower case."""
    dice = random.Random(seed)
    pieces = [dice.choice((*WORDS, *HAN)) for _ in range(dice.randint(1, 300))]
    text = "".join(piece + dice.choice(BETWEEN) for piece in pieces)
    return text, Counter(piece.lower() for piece in pieces)


@pytest.mark.parametrize("seed", range(8))
def test_words_characters_and_lines_are_counted(place: Place, seed: int) -> None:
    text, counts = put_together(seed)
    place.write("text.md", text)
    data = place.data("/word-count @text.md --top 500")
    assert (data["words"], data["characters"]) == (counts.total(), len(text))
    assert data["lines"] == len(text.splitlines())
    assert data["han"] == sum(number for word, number in counts.items() if word in HAN)
    assert {top["word"]: top["count"] for top in data["top"]} == counts


@pytest.mark.parametrize(
    ("text", "words", "lines"),
    [("", 0, 0), ("\n", 0, 1), ("a", 1, 1), ("a\n\n", 1, 2), ("你好，world", 3, 1), ("--x", 1, 1)],
)
def test_the_smallest_texts(place: Place, text: str, words: int, lines: int) -> None:
    data = place.script("word-count", "--", text).data
    assert (data["words"], data["lines"]) == (words, lines)


EVERYDAY = (  # language, file, encoding, text
    ("en", "README.md", "utf-8", "# Title\n\nA small shop, and a small garden.\n"),
    ("en", "one.txt", "utf-8", "word\n"),
    ("en", "no newline.txt", "utf-8", "first line\nlast line without an end"),
    ("en", "windows.txt", "utf-8", "one\r\ntwo two\r\n"),
    ("en", "bom.txt", "utf-8-sig", "The cat saw the other cat\n"),
    ("en", "wide.txt", "utf-16", "Notes of the meeting: notes, and more notes\n"),
    ("en", "café.txt", "cp1252", "Le café était fermé, déjà\n"),
    ("en", "docs/deep/guide.md", "utf-8", "- item 1\n- item 2\n- item 3\n"),
    ("en", "large.txt", "utf-8", "the quick brown fox jumps over the lazy dog\n" * 20_000),
    ("en", "one long line.txt", "utf-8", "lorem ipsum dolor " * 100_000),
    ("zh", "说明.md", "utf-8", "# 说明\n\n先备份，再升级。\n"),
    ("zh", "文档/部署 说明.md", "utf-8", "部署前请安装 Python 和 Node。\n请先备份。\n"),
    ("zh", "旧编码.txt", "gb18030", "这是一份旧的文件，编码是国标。\n第二行\n"),
    ("zh", "宽字符.txt", "utf-16", "你好，世界\n"),
    ("zh", "带签名.txt", "utf-8-sig", "订单和发票\n订单\n"),
    ("zh", "一个字.txt", "utf-8", "字"),
    ("zh", "混合.txt", "gb18030", "版本 v2 发布 release 完成\n"),
    ("zh", "english.md", "utf-8", "only English words here, words\n"),
    ("zh", "长文.txt", "gb18030", "请退货的顾客填写申请单。\n" * 30_000),
    ("zh", "空 文件.txt", "utf-8", "\n\n"),
)


def program(*words: str, text: str) -> int:
    env = {**os.environ, "LC_ALL": "C.UTF-8"}
    done = subprocess.run(words, input=text.encode(), env=env, capture_output=True, check=False)
    return int(done.stdout.split()[0])


@pytest.mark.parametrize(("language", "file", "encoding", "text"), EVERYDAY, ids=lambda value: str(value)[:20])
def test_a_file_of_any_encoding_is_counted_as_wc_counts_it(
    place: Place, language: str, file: str, encoding: str, text: str
) -> None:
    place.write(file, text.encode(encoding))
    data = place.answer("word-count", "--file", file, language=language)
    is_han = [("一" <= mark <= "龥") for mark in text]
    letters = "".join(
        " " if han or not (mark.isalnum() or mark in "'’") else mark for mark, han in zip(text, is_han, strict=True)
    )
    han, others = sum(is_han), program("wc", "-w", text=letters)
    lines = program("wc", "-l", text=text) + (not text.endswith("\n"))
    counts = (program("wc", "-m", text=text), lines, han, han + others)
    assert (data["characters"], data["lines"], data["han"], data["words"]) == counts
    most = Counter([*letters.lower().split(), *(mark for mark in text if "一" <= mark <= "龥")])
    assert [top["count"] for top in data["top"]] == [number for _, number in most.most_common(10)]
    assert all(most[top["word"]] == top["count"] for top in data["top"])
    assert data["text"].splitlines() == [f"{top['word']} {top['count']}" for top in data["top"]]
    assert data["summary"].startswith(file) and all(f"{number:,}" in data["summary"] for number in counts if number)
    assert data["encoding"] == encoding.removesuffix("-sig")


@cases("language, text, summary")
def test_the_summary_is_a_sentence_of_the_persons_language(
    place: Place, language: str, text: str, summary: str
) -> None:
    assert place.answer("word-count", "--", text, language=language)["summary"] == summary


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\0\0", b"%PDF-1.7\n1 0 obj"])
def test_a_file_that_is_not_text_is_an_error(place: Place, content: bytes) -> None:
    path: Path = place.write("a.bin", content)
    assert place.script("word-count", "--file", path).complaint == "'a.bin' is not a text file"


@pytest.mark.parametrize(
    ("message", "words", "files"),
    [
        ("how many words are in docs", 7, 3),
        ("count the words of *.md", 9, 3),
        ("统计所有 markdown 文件的字数", 9, 3),
        ("count the words in all rst files", 1, 1),
    ],
)
@pytest.mark.requirement("SEN-2")
def test_a_folder_and_a_kind_of_files_are_counted_as_a_whole(
    place: Place, message: str, words: int, files: int
) -> None:
    contents: dict[str, str | bytes] = {
        "README.md": "one two three",
        "docs/a.md": "four five six",
        "docs/deep/b.md": "seven eight nine",
        "docs/deep/c.rst": "ten",
        "docs/picture.png": b"\x89PNG\0",
        "docs/build/d.md": "is ignored",
        "node_modules/x/e.md": "is no file of the person",
        ".gitignore": "build/\n",
    }
    for name, text in contents.items():
        place.write(name, text)
    subprocess.run(["git", "init", "-q", place.root], check=True)
    data = place.data(message)
    assert (data["words"], data["files"]) == (words, files)


def test_several_files_are_each_counted(place: Place) -> None:
    for name in ("a.md", "b.md", "c.txt"):
        place.write(name, f"{name} words")
    for message in ("/word-count a.md b.md c.txt", "/word-count a.md and b.md and c.txt", "/word-count *.* --top 3"):
        reports = place.talk().say(message).reports
        assert [report.data["source"] for report in reports] == ["a.md", "b.md", "c.txt"]
    assert place.data("/word-count a.md is fine")["source"] == "a.md"
    for at in range(20):
        place.write(f"many/{at}.log", "a")
    refused = place.ask("/word-count many/*.log")
    assert refused.state == "error" and "means 20 files, and 16 at once is the most" in refused.summary

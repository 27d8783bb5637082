"""Messages of several steps are split as written, and orders with misleading words stay whole."""

from __future__ import annotations

import time

import pytest

from navigator_kernel.workflows.imperatives import is_order
from navigator_kernel.workflows.segments import split
from workflows.messages import MULTI, SINGLE


def test_there_are_sixty_messages_of_each_kind_in_two_languages() -> None:
    assert len(dict(MULTI)) == len(set(SINGLE)) == 60
    assert sum(message.isascii() for message, _ in MULTI) >= 25
    assert sum(not message.isascii() for message in SINGLE) >= 25


@pytest.mark.requirement("WFL-1")
@pytest.mark.parametrize(("message", "steps"), MULTI)
def test_explicit_steps_are_split_as_written(message: str, steps: tuple[str, ...]) -> None:
    assert split(message) == steps


@pytest.mark.wide
@pytest.mark.requirement("WFL-2")
@pytest.mark.parametrize("message", SINGLE)
def test_one_order_with_tempting_words_stays_whole(message: str) -> None:
    assert split(message) == (message.strip(),)


@pytest.mark.requirement("WFL-1")
@pytest.mark.parametrize(
    ("message", "steps"),
    [
        ("Whisk the eggs, then heat up the pan", ("Whisk the eggs", "heat up the pan")),
        ("- first, list the files\n- then sort them", ("list the files", "sort them")),
        ("To start with, count the rows. After that, pivot the table.", ("count the rows", "pivot the table")),
        ("Firstly, list all; secondly, total them; lastly, mail it", ("list all", "total them", "mail it")),
        ("把图片裁成正方形，然后把它发给我", ("把图片裁成正方形", "把它发给我")),
        ("你能不能先看看日志，再修复问题", ("你能不能先看看日志", "修复问题")),
        ("修复这个问题后再提交代码", ("修复这个问题", "提交代码")),
        ("部署测试环境，部署完后跑测试", ("部署测试环境", "跑测试")),
        ("/paint:ada-painter a boat, then /word-count it", ("/paint:ada-painter a boat", "/word-count it")),
    ],
)
def test_orders_with_unknown_verbs_are_split_by_their_form(message: str, steps: tuple[str, ...]) -> None:
    assert split(message) == steps


@pytest.mark.requirement("WFL-2")
@pytest.mark.parametrize(
    "message",
    [
        "写一个函数，它先排序，然后去重",
        "写一个脚本，让用户先登录，再删除账号",
        "解释一下打开文件然后删除它会发生什么",
        "介绍如何先和面再发酵",
        "write a script that lets users log in, then delete the account",
        "translate the sentence he ate then left the room",
    ],
)
def test_a_described_sequence_of_actions_is_not_split_into_steps(message: str) -> None:
    assert split(message) == (message,)


def test_a_clause_that_only_the_caller_knows_is_an_order() -> None:
    said = "quux-7 on @a.txt and then list the files"
    assert split(said) == (said,)
    assert split(said, lambda clause: clause.startswith("quux-7")) == ("quux-7 on @a.txt", "list the files")


@pytest.mark.parametrize("word", ["review", "统计", "把", "please list", "请帮我汇总", "could you check"])
def test_an_order_begins_with_an_imperative(word: str) -> None:
    assert is_order(f"{word} the file 检查")


@pytest.mark.parametrize(
    "said", ["what happens", "the server broke", "we cleaned it", "解析的过程", "为什么失败", "", "。"]
)
def test_a_question_a_statement_or_a_noun_phrase_is_not_an_order(said: str) -> None:
    assert not is_order(said)


@pytest.mark.parametrize("piece", ["then ", "请", "and then ", "1. a ", "“", "first, ", "再", "the a an some to "])
def test_no_text_takes_long(piece: str) -> None:
    """Patterns that scan the same text again and again would take minutes here."""
    began = time.process_time()
    split((piece * 4_000)[:4_000])
    assert time.process_time() - began < 2

"""Messages of several steps are split as written, and orders with misleading words stay whole."""

from __future__ import annotations

import time

import pytest

from navigator_kernel.turn.split import is_order, split, wishes
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


# Messages with sentences around what they ask for


@pytest.mark.requirement("WFL-1")
@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("Long week. First, take the tables out of the scans. Second, put them in one workbook. Third, make five slides.",
         ("First, take", "Second, put", "Third, make")),
        ("Three jobs: (1) check the contrast of all pages; (2) put the texts in files for translators; (3) write new titles.",
         ("(1) check", "(2) put", "(3) write")),
        ("Boil the three studies down. Based on that, write a post for our site. When the text stands, turn it into five posts.",
         ("Boil the", "Based on that", "When the text")),
        ("Could you do this in a row: describe the API from my notes; set up a mock that behaves like it; test the endpoints. Thanks.",
         ("describe the", "set up", "test the")),
        ("做个小工具。先设计表,房源和订单都要有历史。表定了之后写第一版迁移。最后把库放到云上,连接池怎么配也说一下。", ("先设计表", "表定了之后", "最后把库")),
        ("下周评审,要过三关。第一关,做威胁建模。第二关,把威胁对应到控制措施。第三关,把静态扫描配起来。", ("第一关", "第二关", "第三关")),
        ("请帮我:一、把对手拆开看;二、重新想我们的定位;三、按新定位重写首页文案。", ("一、把", "二、重新", "三、按")),
        (
            "Our shop closes in May. First, count what is left. Second, write to the customers. Finally, make a page.",
            ("First", "Second", "Finally"),
        ),
        (
            "店要关了。首先，数一下库房里还剩什么。其次，给顾客写一封信。最后，做一个页面放优惠。",
            ("首先", "其次", "最后"),
        ),
    ],
)  # fmt: skip
def test_the_words_that_order_wishes_take_a_message_apart(text: str, begins: tuple[str, ...]) -> None:
    found = wishes(text)
    assert len(found) == len(begins)
    assert all(one.startswith(begin) for one, begin in zip(found, begins, strict=True)), found


@pytest.mark.requirement("WFL-1")
@pytest.mark.parametrize(
    "text",
    [
        "Please make the page for our launch. Requirements:\n1. Next.js and Tailwind.\n2. A hero with a photo.\n3. A price table.",
        "The installer must be portable:\na) runs under dash\nb) detects the system\nc) needs no root\nToday it needs bash.",
        "What the log says:\n```\nfirst, the pump started. then it stopped. finally it burned.\n```\nWhy?",
        'Our mail said "first pay, then complain, finally wait" and people laughed. Rewrite it.',
        "我们的表单要改:\n- 字段太多\n- 错误提示在最上面\n- 按钮叫提交\n怎么改,给个新版。",
        "第一次用这个系统，第二天就崩了，帮我看看日志。",
    ],
)
def test_requirements_data_and_quotes_are_parts_of_one_wish(text: str) -> None:
    assert wishes(text) == ()

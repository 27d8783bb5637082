"""Messages of several steps are split as written, and orders with misleading words stay whole."""

from __future__ import annotations

import time

import pytest

from navigator_kernel.language.orders import has_own_object, is_order
from navigator_kernel.turn.split import split, wishes
from tables import cases
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
@cases("message, steps")
def test_orders_with_unknown_verbs_are_split_by_their_form(message: str, steps: tuple[str, ...]) -> None:
    assert split(message) == steps


@pytest.mark.requirement("WFL-2")
@cases("message")
def test_a_described_sequence_of_actions_is_not_split_into_steps(message: str) -> None:
    assert split(message) == (message,)


@pytest.mark.requirement("WFL-1")
@cases("message, steps")
def test_numbers_in_a_sentence_list_steps(message: str, steps: tuple[str, ...]) -> None:
    assert split(message) == steps


@pytest.mark.requirement("WFL-2")
@cases("message")
def test_numbers_of_things_list_no_steps(message: str) -> None:
    assert split(message) == (message,)


@pytest.mark.requirement("WFL-1")
@cases("joint, clause")
def test_an_order_about_a_thing_of_its_own_is_a_wish(joint: str, clause: str) -> None:
    assert has_own_object(clause, joint, {"talk.mp3"})


@pytest.mark.requirement("WFL-2")
@cases("joint, clause")
def test_an_order_about_the_result_or_more_of_the_same_is_none(joint: str, clause: str) -> None:
    assert not has_own_object(clause, joint, {"c.pdf"})


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
@cases("text, begins")
def test_the_words_that_order_wishes_take_a_message_apart(text: str, begins: tuple[str, ...]) -> None:
    found = wishes(text)
    assert len(found) == len(begins)
    assert all(one.startswith(begin) for one, begin in zip(found, begins, strict=True)), found


@pytest.mark.requirement("WFL-1")
@cases("text")
def test_requirements_data_and_quotes_are_parts_of_one_wish(text: str) -> None:
    assert wishes(text) == ()

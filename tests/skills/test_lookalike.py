"""No skill gets a name that a person could mistake for another one."""

from __future__ import annotations

import unicodedata
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navigator_kernel.errors import Refused
from navigator_kernel.skills.formats.names import RESERVED, refuse_lookalike, skeleton
from navigator_kernel.text import fold
from tables import cases

KNOWN = ["code-review", "task_manager", "csv-report", "help", "代码审查", "二进制", "обзор"]


def reason(name: str, known: list[str] = KNOWN) -> str:
    with pytest.raises(Refused) as raised:
        refuse_lookalike(name, known)
    assert raised.value.message.isprintable()
    return str(raised.value.data["reason"])


@pytest.mark.parametrize(
    "name",
    [
        "c\u043ede-review",  # Cyrillic o
        "\u0441\u043ed\u0435-review",
        "code-\u0433ev\u0456ew",
        "cod\u03b5-review",  # Greek epsilon
        "\u0397elp",  # Greek capital Eta
        "\u13bbelp",  # Cherokee
        "h\u0435lp",
        "\u0570elp",  # Armenian ho
        "\uff43\uff4f\uff44\uff45-review",  # fullwidth
        "\U0001d41c\U0001d428\U0001d41d\U0001d41e-review",  # mathematical bold
        "code\u2010review".replace("\u2010", "\uff0d"),  # fullwidth hyphen
        "c\u00f6de-review",
        "he\u0142p",
        "\u029celp",  # small capital H
        "Code_Review",
        "CODE-REVIEW",
        "task-manager",
        "\u30cb\u8fdb\u5236",  # Katakana ni for the Chinese two
        "o\u0431\u0437\u043e\u0440",  # Latin o in a Cyrillic name
        "code\u200b-review",
        "code-review\u202e",
        "\u2066code-review\u2069",
        "code\u00ad-review",
    ],
)
def test_a_name_that_looks_like_an_installed_name_is_refused(name: str) -> None:
    assert reason(name) == "lookalike"


@pytest.mark.parametrize(
    "name", ["w\u043erker", "\u0455kills", "m\u0441p", "naviga\u0442or", "\uff4d\uff43\uff50", "n\u00e0vigator"]
)
def test_a_name_that_looks_like_a_reserved_name_is_refused(name: str) -> None:
    assert reason(name, []) == "lookalike"


@pytest.mark.parametrize("name", [*RESERVED, "Worker", "skill-manager", "NAVIGATOR"])
def test_a_reserved_name_is_refused(name: str) -> None:
    assert reason(name, []) == "reserved"


@pytest.mark.parametrize("name", ["p\u0430ypal", "\u0430pi-v2", "\uff44ata", "x-sc\u043epe"])
def test_a_word_that_mixes_scripts_to_read_as_latin_is_refused_whatever_is_known(name: str) -> None:
    assert reason(name, []) == "lookalike"


@cases("name")
def test_a_name_that_looks_like_nothing_else_is_kept(name: str) -> None:
    assert refuse_lookalike(name, KNOWN) == name


def test_a_name_comes_back_in_its_composed_form() -> None:
    assert refuse_lookalike("cafe\u0301", []) == "caf\u00e9"
    assert refuse_lookalike("cafe\u0301", ["caf\u00e9"]) == "caf\u00e9"


def test_the_message_names_the_code_point_of_a_confusable_letter() -> None:
    with pytest.raises(Refused, match="U\\+043E") as raised:
        refuse_lookalike("c\u043ede-review", KNOWN)
    assert raised.value.data["like"] == "code-review"


@given(st.text(max_size=20))
def test_no_name_raises_anything_else(name: str) -> None:
    with suppress(Refused):
        assert refuse_lookalike(name, KNOWN) == unicodedata.normalize("NFC", name)


@given(st.text(alphabet="abcXYZ019-_", max_size=20))
def test_plain_names_look_like_their_folded_form(name: str) -> None:
    assert skeleton(name) == skeleton(name.upper()) == fold(name)

"""Where the values of a skill's parameters come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from navigator_kernel.adapters.index.use_encoder import UseEncoder
from navigator_kernel.turn.packets import plan
from navigator_kernel.values.plan import DispatchPlan
from navigator_kernel.values.route import NeedClarification, RouteDecision, Skills
from routing.place import Routing
from stages.orders import order, packet, place_at


@pytest.fixture
def place(tmp_path: Path, encoder: UseEncoder) -> Routing:
    return place_at(tmp_path, encoder)


@pytest.mark.requirement("SEN-2")
@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("/text-one hello", "text", "hello"),
        ("/text-one hello there you", "text", "hello there you"),
        ("/text-one 'hello there'", "text", "hello there"),
        ("/text-one text=hello", "text", "hello"),
        ("/text-one 'text=hello you'", "text", "hello you"),
        ("/text-one --text hello", "text", "hello"),
        ("/text-one --text=hello", "text", "hello"),
        ("/text-one @data.csv", "text", "a,b\n1,2\n"),
        ("/text-one\nall of this\nis the text", "text", "all of this\nis the text"),
        ("/text-one the first\nand the second line", "text", "the first\nand the second line"),
        ("run text-one hello", "text", "hello"),
        ("/url-one https://a.example/x?y=1", "url", "https://a.example/x?y=1"),
        ("/url-one --url https://a.example", "url", "https://a.example"),
        ("/url-one look at https://a.example/p.", "url", "https://a.example/p"),
        ("run url-one on https://a.example/p，谢谢", "url", "https://a.example/p"),
        ("/mail-one to ada@b.example please", "to", "ada@b.example"),
        ("/mail-one to=ada@b.example", "to", "ada@b.example"),
        ("/calm-one hello --top 5", "top", "5"),
        ("/calm-one hello --style=loud", "style", "loud"),
        ("/calm-one top=3 hello", "top", "3"),
        ("/calm-one --top 5 hello", "text", "hello"),
    ],
)
def test_a_parameter_value_is_taken_from_the_message(place: Routing, text: str, name: str, value: str) -> None:
    assert packet(place, text).params.required[name] == value


@pytest.mark.requirement("SEN-2")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('do the text thing with "to be or not"', "to be or not"),
        ("do the text thing: to be or not", "to be or not"),
        ("文本处理：生存还是毁灭", "生存还是毁灭"),
        ("处理文本「生存还是毁灭」", "生存还是毁灭"),
        ("handle `x = 1` as text", "x = 1"),
    ],
)
def test_a_value_may_be_quoted_or_follow_a_colon(place: Routing, text: str, value: str) -> None:
    decision = RouteDecision(result=Skills(names=("text-one",)), tier="retrieval")
    found = plan(decision, place.request(text), place.catalogue, order())
    assert isinstance(found, DispatchPlan)
    assert found.steps[0].packets[0].params.required["text"] == value


@pytest.mark.requirement("SEN-2")
@pytest.mark.parametrize(
    "text",
    [
        "/file-one @data.csv",
        "/file-one input=@data.csv",
        "/file-one {path}",
        "use file-one on {path}",
        "/file-one input={path}",
    ],
)
def test_a_file_is_given_as_its_real_path(place: Routing, text: str) -> None:
    path = place.root / "data.csv"
    assert packet(place, text.format(path=path)).params.required["input"] == str(path)


def test_a_message_that_only_mentions_a_subject_gives_no_text(place: Routing) -> None:
    decision = RouteDecision(result=Skills(names=("text-one",)), tier="retrieval")
    assert isinstance(plan(decision, place.request("count some words"), place.catalogue, order()), NeedClarification)

"""Tier 2 by meaning: what is found in the other language, what is left alone, and why."""

from __future__ import annotations

import math
from pathlib import Path
from typing import get_args

import pytest
from msgspec.structs import replace

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.errors import KernelError
from navigator_kernel.model_ports import Encoder
from navigator_kernel.routing.entries import Entry
from navigator_kernel.routing.index import IndexSnapshot, RoutingIndex
from navigator_kernel.routing.meaning import PLAIN, SemanticRanker
from navigator_kernel.routing.ranker import EVIDENCE, LONG, MEASURED, OFFERED, ScoredCandidate, Way, bands, shipped
from navigator_kernel.values.resource import SkillDef
from navigator_kernel.values.route import Boldness, Retrieval
from routing.place import Routing, routing_at, write_skills
from routing.semantic import TOLD, entries
from tables import cases

pytestmark = pytest.mark.sample(1)


@pytest.fixture
def meaning(tmp_path: Path, encoder: Encoder) -> SemanticRanker:
    held = SemanticRanker(RoutingIndex(tmp_path / "index", FolderWriter([tmp_path]), encoder))
    held.learn(entries())
    return held


def first(found: Retrieval) -> str:
    return found.candidates[0].name


@pytest.mark.requirement("INT-1", "INT-9")
@cases("text, name")
def test_a_request_comes_first_to_its_skill_in_either_language(meaning: SemanticRanker, text: str, name: str) -> None:
    assert first(meaning.judged(text, 5)) == name


@pytest.mark.requirement("INT-11", "RTE-13")
@cases("text")
def test_a_message_that_fits_no_skill_goes_direct(meaning: SemanticRanker, text: str) -> None:
    assert meaning.judged(text, 5).band == "direct"


def test_confidence_is_a_probability_that_falls_with_the_rank(meaning: SemanticRanker) -> None:
    found = meaning.judged("merge these pdf files into one", 5)
    held = [one.confidence for one in found.candidates]
    assert found.band == "route"
    assert all(0 <= value <= 1 for value in held) and held == sorted(held, reverse=True)
    assert held[0] >= bands().take["balanced"]


def test_the_parts_of_a_score_add_up_to_it(meaning: SemanticRanker) -> None:
    for one in meaning.judged("merge these pdf files into one", 5).candidates:
        assert sum(one.parts.values()) == pytest.approx(one.score, abs=0.005 * len(MEASURED))


@pytest.mark.requirement("X-45")
def test_a_bolder_router_takes_more(meaning: SemanticRanker) -> None:
    texts = ["make the photo smaller", "will it rain tomorrow?", "files", "help with money", "我想出去玩"]
    taken = []
    for boldness in get_args(Boldness):
        meaning.boldness = boldness
        taken.append({text for text in texts if meaning.judged(text, 5).band == "route"})
    assert taken[0] <= taken[1] <= taken[2]


@pytest.mark.requirement("X-45", "RTE-21")
def test_an_ambiguous_message_is_offered_at_most_three_skills(meaning: SemanticRanker) -> None:
    found = meaning.judged("帮我看看这张照片", 5)
    assert (found.band, found.reason) == ("ambiguous", "likely")
    assert found.offered == tuple(one.name for one in found.candidates[: len(found.offered)])
    assert 1 <= len(found.offered) <= OFFERED


@pytest.mark.requirement("X-45")
@pytest.mark.parametrize("text", ["what does pdf stand for?", "谁发明了PDF"])
def test_a_question_about_a_subject_takes_no_skill(meaning: SemanticRanker, text: str) -> None:
    assert meaning.judged(text, 5).band != "route"


@pytest.mark.parametrize("way", get_args(Way))
def test_the_shipped_weights_match_the_measured_features(way: Way) -> None:
    model = shipped(way)
    assert {*model.rank, *model.by_length, *model.by_count, *model.by_examples} <= set(MEASURED)
    for net in (model.first, model.among):
        assert {len(row) for row in net.inner} == {len(EVIDENCE)}
        assert len(net.inner) == len(net.shift) == len(net.outer)
    assert bands(way).take["bold"] < bands(way).take["balanced"] < bands(way).take["cautious"]


@pytest.mark.parametrize("length", [1, 3, 8, 40, 400])
@pytest.mark.parametrize("way", get_args(Way))
def test_no_evidence_for_a_skill_counts_against_it(meaning: SemanticRanker, way: Way, length: int) -> None:
    assert meaning.index.view is not None
    numbers = dict.fromkeys(MEASURED, 0.0)
    for taught in (0.0, 0.1, 0.5, 0.8):
        one = ScoredCandidate(0, tuple({**numbers, "taught": taught}.values()), meaning.index.view)
        for count in (3, 100, 10_000):
            held = dict(zip(MEASURED, shipped(way).weights(one, length, count), strict=True))
            assert min(weight for name, weight in held.items() if name != "taught") >= 0


# together with words


@pytest.fixture
def place(tmp_path: Path, encoder: Encoder) -> Routing:
    write_skills(tmp_path, dict(TOLD))
    held = routing_at(tmp_path)
    held.router.meaning = SemanticRanker(RoutingIndex(tmp_path / "index", FolderWriter([tmp_path]), encoder))
    return held


def no_vectors(monkeypatch: pytest.MonkeyPatch, encoder: Encoder) -> None:
    """The encoder and the vectors of the skills fail, as they do without numpy."""

    def fails(*_: object) -> None:
        raise AssertionError("the encoder was asked")

    for asked in ("encode", "message"):
        monkeypatch.setattr(type(encoder), asked, fails)
    for mapped in ("vectors", "lexicon"):
        monkeypatch.setattr(IndexSnapshot, mapped, property(fails))


def test_words_that_are_sure_are_taken_before_a_vector_is_looked_at(
    meaning: SemanticRanker, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_vectors(monkeypatch, encoder)
    found = meaning.judged("merge pdf files", 5)
    assert (found.band, first(found)) == ("route", "pdf-merge")
    with pytest.raises(AssertionError, match="the encoder was asked"):
        meaning.judged("pdf", 5)  # one word alone is not sure
    with pytest.raises(AssertionError, match="the encoder was asked"):
        meaning.judged(f"merge pdf files {' '.join(f'word{at}' for at in PLAIN)}", 5)  # nor are they among many others
    with pytest.raises(AssertionError, match="the encoder was asked"):
        meaning.judged("what are merged pdf files?", 5)  # nor are words in a question


@pytest.mark.requirement("COV-3")
def test_meaning_decides_where_words_say_nothing(place: Routing) -> None:
    found = place.router.retrieve("冰箱里有鸡蛋和西红柿，可以做什么菜")
    assert found.candidates[0].name == "recipe-finder"
    place.router.meaning = None
    assert place.router.retrieve("冰箱里有鸡蛋和西红柿，可以做什么菜").candidates == ()


def test_a_skill_that_is_to_go_is_not_run_for_its_meaning(place: Routing) -> None:
    names = [one.name for one in place.router.retrieve("remove recipe-finder and everything like it").candidates]
    assert "recipe-finder" not in names


def test_an_encoder_that_fails_leaves_words_alone_and_says_so(
    place: Routing, encoder: Encoder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> None:
        raise KernelError("the sentence encoder is broken", hint="install it again")

    monkeypatch.setattr(type(encoder), "encode", fails)
    assert [place.router.retrieve(text).band for text in ("make the photo smaller", "pdf merge")] == ["direct", "route"]
    assert caplog.messages == ["routing by words only: the sentence encoder is broken"]


def test_a_new_skill_is_found_at_once(meaning: SemanticRanker) -> None:
    new = Entry(id="plant-care", name="plant-care", description="Says how to water and repot house plants.")
    meaning.learn([*entries(), new])
    assert first(meaning.judged("我的绿萝叶子发黄了怎么办", 5)) == "plant-care"


@pytest.mark.parametrize("harm", [b"\xff", b"[", b"7"])
@pytest.mark.parametrize("name", ["rows", "spans"])
def test_an_index_with_invalid_content_of_the_right_length_is_rebuilt(
    place: Routing, tmp_path: Path, name: str, harm: bytes
) -> None:
    asked = "冰箱里有鸡蛋和西红柿，可以做什么菜"
    place.router.retrieve(asked)
    (path,) = tmp_path.glob(f"index/*/g-*/{name}")
    path.write_bytes(harm * (path.stat().st_size - 1) + b"\n")
    again = routing_at(tmp_path)
    assert place.router.meaning is not None
    again.router.meaning = SemanticRanker(
        RoutingIndex(tmp_path / "index", FolderWriter([tmp_path]), place.router.meaning.index.encoder)
    )
    assert again.router.retrieve(asked).candidates[0].name == "recipe-finder"


def test_an_index_that_names_other_skills_is_rebuilt(place: Routing, tmp_path: Path) -> None:
    asked = "冰箱里有鸡蛋和西红柿，可以做什么菜"
    place.router.retrieve(asked)
    (path,) = tmp_path.glob("index/*/g-*/rows")
    path.write_bytes(path.read_bytes().replace(b'"recipe-finder"', b'"intruder-here"'))
    again = routing_at(tmp_path)
    assert place.router.meaning is not None
    again.router.meaning = SemanticRanker(
        RoutingIndex(tmp_path / "index", FolderWriter([tmp_path]), place.router.meaning.index.encoder)
    )
    assert again.router.retrieve(asked).candidates[0].name == "recipe-finder"


@pytest.mark.wide
def test_rows_that_count_no_more_crowd_none_out(meaning: SemanticRanker) -> None:
    """Each change leaves a row behind until the index is rebuilt."""
    held = entries()
    for at in range(70):
        changed = replace(held[0], examples=(f"join file {at} to file {at + 1}",))
        meaning.learn([changed, *held[1:]])
    assert meaning.index.view is not None
    assert len(meaning.index.view.head.dead) >= 64
    assert {one.name for one in meaning.judged("join file 3 to file 4", 50).candidates} == {one.id for one in held}


def test_a_search_by_words_looks_at_no_vector_and_takes_as_many_as_are_asked_for(
    meaning: SemanticRanker, encoder: Encoder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    skills = tuple(SkillDef(name=name, description=text, path=tmp_path, folder=None) for name, text in TOLD.items())
    meaning.retrieve(skills, "the weather forecast for Oslo", 1)

    no_vectors(monkeypatch, encoder)
    assert first(meaning.by_words(skills, "security\x1b[31m problems in code", 5)) == "code-review"
    assert len(meaning.by_words(skills, "security of a city", 1).candidates) == 1
    assert meaning.by_words(skills, "xylophone", 5).candidates == ()


def test_a_search_by_words_is_as_bold_as_its_router(tmp_path: Path) -> None:
    held = SemanticRanker(RoutingIndex(tmp_path / "index", FolderWriter([tmp_path]), None))
    skills = tuple(SkillDef(name=name, description=text, path=tmp_path, folder=None) for name, text in TOLD.items())
    assert held.by_words((), "the weather forecast", 5).candidates == ()
    asked = [
        f"{word} {other}" for word in ("budget", "weather", "pages", "pictures") for other in ("tell", "plan", "size")
    ]
    taken = {}
    for boldness in get_args(Boldness):
        held.boldness = boldness
        taken[boldness] = sum(held.by_words(skills, text, 5).band == "route" for text in asked)
    assert taken["cautious"] < taken["balanced"] <= taken["bold"]


def test_a_skill_that_does_nearly_the_same_as_an_earlier_one_comes_last(tmp_path: Path, encoder: Encoder) -> None:
    told = {
        "merge-pdf": "Merge PDF files into one.",
        "join-pdf": "Join PDF files into one.",
        "beer": "Brew a pale ale.",
    }
    write_skills(tmp_path, told)
    place, by_words = routing_at(tmp_path, encoder), routing_at(tmp_path)
    for each in (place, by_words):
        each.router.retrieve("merge these pdf files")
    assert list(place.router.varied(tuple(told))) == ["merge-pdf", "beer", "join-pdf"]
    assert list(by_words.router.varied(tuple(told))) == list(told)


@pytest.mark.requirement("X-45")
def test_a_skill_is_not_less_sure_for_another_one_that_does_the_same(tmp_path: Path, encoder: Encoder) -> None:
    told = {
        "stripe-integration": "Integrates Stripe for payments, subscriptions and webhooks.",
        "payment-integration": "Integrates payment providers for payments, subscriptions and webhooks.",
        "beer": "Brew a pale ale.",
    }
    write_skills(tmp_path, told)
    found = routing_at(tmp_path, encoder).router.retrieve("add subscriptions with webhooks to my shop")
    best, same, _ = found.candidates
    assert (best.name, same.name) == ("stripe-integration", "payment-integration")
    assert best.confidence > 1 / (1 + math.exp(same.score - best.score))


@pytest.mark.requirement("X-45")
def test_how_sure_a_skill_must_be_depends_on_how_many_there_are_and_on_the_length_of_the_message() -> None:
    few, many, most = (bands().least("balanced", count, 5) for count in (30, 800, 10_000))
    assert many < few < most
    assert [bands().least("balanced", count, LONG) for count in (30, 800, 10_000)] == [few, few, most]

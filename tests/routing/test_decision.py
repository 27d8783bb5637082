"""After a ranking, a skill is taken, up to three are offered, or the message is left alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.index.use_encoder import UseEncoder
from navigator_kernel.language.clauses import asked_for
from navigator_kernel.routing.entries import Entry
from navigator_kernel.routing.index import RoutingIndex
from navigator_kernel.routing.meaning import SemanticRanker
from navigator_kernel.routing.ranker import OFFERED, Query, bands
from navigator_kernel.routing.vectors import wanted_by
from navigator_kernel.routing.words import QueryFeatures
from routing.semantic import entries
from tables import cases

pytestmark = pytest.mark.sample(2)


def over(folder: Path, encoder: UseEncoder | None, *held: Entry) -> SemanticRanker:
    meaning = SemanticRanker(RoutingIndex(folder / "index", FolderWriter([folder]), encoder))
    meaning.learn(held or entries())
    return meaning


def entry(name: str, description: str, **more: Any) -> Entry:
    return Entry(id=name, name=name, description=description, **more)


@pytest.fixture
def few(tmp_path: Path, encoder: UseEncoder) -> SemanticRanker:
    """Eight skills, as most people have."""
    return over(tmp_path, encoder)


@pytest.mark.requirement("X-45")
@pytest.mark.parametrize("text", ["deploy my app to kubernetes", "help me with SEO", "做一个网站"])
def test_among_few_skills_none_is_offered_for_an_unrelated_request(few: SemanticRanker, text: str) -> None:
    found = few.judged(text, 5)
    assert (found.band, found.offered) == ("direct", ())


@pytest.mark.requirement("X-45")
@pytest.mark.parametrize(
    "text",
    ["create an invoice", "draft a letter to my landlord", "compose a lullaby for my daughter", "paint the fence", "set up a Kubernetes cluster",
     "给房东写一封信", "帮我修一下自行车"],
)  # fmt: skip
def test_among_few_skills_what_none_of_them_does_is_taken_by_none(few: SemanticRanker, text: str) -> None:
    assert few.judged(text, 5).band != "route"


@pytest.mark.requirement("X-45")
@pytest.mark.parametrize(
    ("text", "name"),
    [("merge these pdf files", "pdf-merge"), ("plan my trip: flights and hotels", "travel-planner"), ("帮我规划一次旅行", "travel-planner"),
     ("review my code", "code-review"), ("make this picture smaller", "image-resize"), ("整理一下这次会议的纪要", "会议纪要")],
)  # fmt: skip
def test_among_few_skills_the_one_that_does_it_is_taken(few: SemanticRanker, text: str, name: str) -> None:
    found = few.judged(text, 5)
    assert (found.band, found.candidates[0].name) == ("route", name)


@pytest.mark.requirement("X-45")
@pytest.mark.parametrize(
    "text",
    ["no need to merge these pdf files", "旅行不用你规划了", "merge these pdf files? never mind", "代码已经审查好了"],
)
def test_a_declined_or_finished_request_routes_to_no_skill(few: SemanticRanker, text: str) -> None:
    assert few.judged(text, 5).band != "route"


@pytest.mark.requirement("X-45")
@cases("text, band")
def test_a_remark_is_left_alone_or_offered_a_skill(few: SemanticRanker, text: str, band: str) -> None:
    assert few.judged(text, 5).band in {"direct", band}


@pytest.mark.requirement("X-45")
@pytest.mark.parametrize("text", ["photographs", "defects", "forecast", "预算", "weather"])
def test_a_single_word_that_names_nothing_is_at_most_offered_a_skill(few: SemanticRanker, text: str) -> None:
    assert few.judged(text, 5).band != "route"


@pytest.mark.requirement("X-45")
@pytest.mark.parametrize("text", ["what does pdf stand for?", "谁发明了PDF", "what is a pull request?"])
def test_a_question_is_offered_a_skill_and_not_given_one(few: SemanticRanker, text: str) -> None:
    assert few.judged(text, 5).band != "route"


@pytest.mark.requirement("X-45")
def test_skills_of_the_same_description_are_offered_together(tmp_path: Path, encoder: UseEncoder) -> None:
    same = "Paints watercolours of boats"
    found = over(tmp_path, encoder, entry("kilo", same), entry("zulu", same), entry("other", "Sings songs"))
    told = found.judged("paint watercolours of boats", 5)
    assert (told.band, set(told.offered)) == ("ambiguous", {"kilo", "zulu"})


@pytest.mark.requirement("X-45")
def test_the_number_of_further_matches_is_shown(tmp_path: Path, encoder: UseEncoder) -> None:
    kinds = "audit links titles sitemap canonicals headings images speed robots".split()
    held = [entry(f"seo-{kind}", f"Improves the SEO of a site: {kind}") for kind in kinds]
    found = over(tmp_path, encoder, *held, *entries()).judged("help me with SEO", 5)
    assert (found.band, len(found.offered), found.more) == ("ambiguous", OFFERED, len(kinds) - OFFERED)


# Names


@pytest.mark.requirement("COV-2")
@pytest.mark.parametrize(
    "text",
    ["write a short 3P update with internal-comms", "用internal-comms写一份周报", "draft it (internal_comms)", "internal comms for the team: we moved"],
)  # fmt: skip
@pytest.mark.parametrize("by_meaning", [True, False])
def test_a_name_of_several_parts_counts_anywhere(
    tmp_path: Path, encoder: UseEncoder, text: str, by_meaning: bool
) -> None:
    held = [*entries(), entry("internal-comms", "Company newsletters and status reports")]
    found = over(tmp_path, encoder if by_meaning else None, *held).judged(text, 5)
    assert found.candidates[0].name == "internal-comms"
    assert found.band == "route" or (not by_meaning and found.band == "ambiguous")


@pytest.mark.parametrize("text", ["write it without internal-comms", "不要用internal-comms，直接写"])
def test_a_name_that_is_ruled_out_does_not(tmp_path: Path, encoder: UseEncoder, text: str) -> None:
    held = [*entries(), entry("internal-comms", "Company newsletters and status reports")]
    found = over(tmp_path, encoder, *held).judged(text, 5)
    assert found.band != "route" or found.candidates[0].name != "internal-comms"


# Examples


def test_a_message_that_is_an_example_is_taken_whatever_it_looks_like(tmp_path: Path, encoder: UseEncoder) -> None:
    held = [*entries(), entry("chorister", "Helps with music", examples=("write a song", "写一首歌"))]
    meaning = over(tmp_path, encoder, *held)
    for text in ("write a song", "写一首歌"):
        found = meaning.judged(text, 5)
        assert (found.band, found.reason, found.candidates[0].name) == ("route", "example", "chorister")


@pytest.mark.requirement("EVT-7")
def test_a_message_gets_the_same_numbers_whatever_was_asked_before(tmp_path: Path, encoder: UseEncoder) -> None:
    text = "sketch a zibble for the frobnicator's merge of pdf files"
    warm, fresh = over(tmp_path / "warm", encoder), over(tmp_path / "fresh", encoder)
    for other in ("sketch it", "the frobnicator", "merge pdf files of the zibble", "给我画一张图"):
        warm.judged(other, 5)
    assert warm.judged(text, 5) == fresh.judged(text, 5)


@cases("remark, wish")
def test_a_remark_about_a_thing_is_not_a_wish(encoder: UseEncoder, remark: str, wish: str) -> None:
    wanted = wanted_by(encoder.id)
    assert wanted is not None
    found = wanted.probabilities(encoder.encode([remark, wish], "query"))
    assert found[0] < bands().want <= found[1]
    assert wanted.probabilities(encoder.encode([wish], "query")[0]) == pytest.approx(found[1], abs=1e-4)


def test_the_weights_of_one_encoder_are_not_those_of_another() -> None:
    assert wanted_by("another") is None


@cases("text, asks")
def test_neither_a_polite_wish_nor_a_message_with_something_to_work_on_asks(text: str, asks: bool) -> None:
    features = QueryFeatures({}, 1.0, frozenset())
    assert Query(asked_for(text), text, 1, features, {}, {}, {}, 1.0).asks == asks

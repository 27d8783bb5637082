"""The shipped skills among two hundred others: which skill is chosen, and which messages are left alone."""

from __future__ import annotations

from typing import Any

import pytest

from navigator_kernel.values.route import Direct, NeedClarification, Script, Skills
from tables import cases

pytestmark = pytest.mark.sample(1)


def test_there_are_two_hundred_others(crowd: Any) -> None:
    assert len(crowd.catalogue.list_resources()) >= 204
    assert crowd.catalogue.diagnostics() == ()


@pytest.mark.requirement("INT-1", "INT-9", "COV-1", "COV-3", "RTE-1", "PRE-23")
@cases("text, name")
def test_the_skill_that_is_meant_is_picked_without_its_name(crowd: Any, text: str, name: str) -> None:
    for path in ("src/deep/index.ts", "sales-2026.csv"):
        (crowd.root / path).parent.mkdir(parents=True, exist_ok=True)
        (crowd.root / path).write_text("a,b\n1,2\n")
    decision = crowd.decide(text)
    assert decision.result == Skills(names=(name,))
    assert (decision.kind, decision.agent, decision.entity) == ("skills", "skills", name)


@pytest.mark.requirement("RTE-49")
@pytest.mark.parametrize("text", ["Please run the test suite", "run the tests", "运行测试"])
def test_run_the_test_suite_is_the_skill_and_not_the_worker(crowd: Any, text: str) -> None:
    assert crowd.decide(text).result == Skills(names=("test-runner",))


@pytest.mark.requirement("SEN-4", "RTE-2")
def test_run_skill_manager_list_is_the_worker(crowd: Any) -> None:
    decision = crowd.decide("run skill_manager list")
    assert decision.result == Script(name="skill_manager", args=("list",))
    assert (decision.kind, decision.agent) == ("script", "worker")


@pytest.mark.requirement("INT-11", "COV-4", "RTE-2")
@cases("text")
def test_a_message_that_needs_no_skill_goes_direct(crowd: Any, text: str) -> None:
    decision = crowd.decide(text)
    assert decision.result == Direct()
    assert (decision.kind, decision.agent) == ("direct", None)


@pytest.mark.requirement("PRE-22", "COV-2")
@pytest.mark.parametrize("text", ["/code-review @a.py", "/code_review", "@@code-review x"])
def test_a_skill_that_is_called_is_not_routed(crowd: Any, text: str) -> None:
    (crowd.root / "a.py").write_text("print(1)\n")
    intent, decision = crowd.intent(text), crowd.decide(text)
    assert (intent.tier, intent.retrieval, intent.confidence) == ("syntax", None, 1.0)
    assert isinstance(decision.result, Skills)
    assert (decision.result.names, decision.result.direct_call) == (("code-review",), True)


# The intent's own rules


@pytest.mark.requirement("INT-12", "CAN-1")
def test_at_most_three_candidates_stand_behind_the_best_in_falling_order(crowd: Any) -> None:
    intent = crowd.intent("review this code")
    assert intent.entity == "code-review"
    assert 0 < len(intent.candidates) <= 3
    ranked = [candidate.name for candidate in intent.retrieval.candidates]
    assert [intent.entity, *intent.candidates] == ranked[: 1 + len(intent.candidates)]
    scores = [candidate.score for candidate in intent.retrieval.candidates]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.requirement("INT-11")
def test_no_clear_match_is_backend_without_an_entity(crowd: Any) -> None:
    intent = crowd.intent("why is the sky blue?")
    assert (intent.mode, intent.entity, intent.task_type) == ("BACKEND", None, "unknown")


@pytest.mark.requirement("INT-5", "INT-7")
@pytest.mark.parametrize(
    "text", ["review this code", "hello", "/code-review", "install a/b", "代码", "", "code review git csv"]
)
def test_a_confidence_is_between_0_and_1_and_has_a_reason(crowd: Any, text: str) -> None:
    intent = crowd.intent(text)
    assert 0.0 <= intent.confidence <= 1.0
    assert intent.reasoning
    for candidate in intent.retrieval.candidates if intent.retrieval else ():
        assert 0.0 <= candidate.confidence <= 1.0


@pytest.mark.requirement("INT-9")
@pytest.mark.parametrize("where", ["description", "tags", "keywords_cn", "examples", "body"])
def test_words_are_matched_wherever_a_skill_writes_them(village: Any, where: str) -> None:
    extra = "" if where in {"description", "body"} else f"{where}: zorblify\n"
    place = village(
        {"alpha": ("zorblify things" if where == "description" else "does a thing", extra), "beta": "another"}
    )
    if where == "body":
        path = place.root / ".claude" / "skills" / "alpha" / "SKILL.md"
        path.write_text(path.read_text() + "\nzorblify everything\n")
    assert place.router.retrieve("zorblify").candidates[0].name == "alpha"


@pytest.mark.requirement("INT-10")
@pytest.mark.parametrize("first", ["kilo", "zulu"])
def test_the_skill_with_the_higher_priority_comes_first_of_two_equal_ones(village: Any, first: str) -> None:
    same = "paints watercolours of boats"
    place = village({name: (same, f"priority: {90 if name == first else 10}\n") for name in ("kilo", "zulu")})
    assert place.router.retrieve("paint a watercolour of boats").candidates[0].name == first


@pytest.mark.requirement("LIF-10")
def test_a_name_counts_for_more_than_a_description_than_a_tag(village: Any) -> None:
    place = village(
        {
            "zebra": "does a thing",
            "second": "draws a zebra for a person",
            "third": ("does another thing", "tags: zebra\n"),
        }
    )
    assert [c.name for c in place.router.retrieve("zebra").candidates] == ["zebra", "second", "third"]


@pytest.mark.requirement("LIF-11")
def test_a_single_top_score_is_executed(village: Any) -> None:
    place = village({"boat-painter": "paints boats", "zebra": "draws"})
    assert place.decide("paint boats please").result == Skills(names=("boat-painter",))


@pytest.mark.requirement("LIF-11", "RTE-2")
def test_several_equal_ones_are_listed_for_a_choice(village: Any) -> None:
    place = village({"alpha": "paints watercolours of boats", "beta": "paints watercolours of boats", "gamma": "sings"})
    result = place.decide("paint watercolours of boats").result
    assert isinstance(result, NeedClarification)
    assert set(result.options) == {"alpha", "beta"}
    assert "alpha" in result.question and "beta" in result.question


@pytest.mark.requirement("LIF-11")
def test_a_choice_is_asked_for_in_the_persons_language(village: Any) -> None:
    place = village({"alpha": "绘制水彩船只图画", "beta": "绘制水彩船只图画"})
    result = place.decide("绘制水彩船只图画").result
    assert isinstance(result, NeedClarification)
    assert result.question.startswith("使用哪个技能？")


@pytest.mark.requirement("INT-14")
@pytest.mark.parametrize("text", ["review this code", "hello", "/x", "install a/b", "你好"])
def test_without_any_resource_a_message_is_still_understood(village: Any, text: str) -> None:
    place = village({})
    assert place.catalogue.list_resources() == ()
    assert place.decide(text).kind in {"direct", "clarify", "install"}


@pytest.mark.requirement("REG-5", "REG-1")
def test_a_skill_that_is_dropped_is_chosen_from_then_on(village: Any) -> None:
    place = village({"other": "sings songs"})
    assert place.decide("zorblify the boats").entity is None
    village({"zorb": "zorblify boats"})
    decision = place.decide("zorblify the boats")
    assert "zorb" in {decision.entity, *decision.options}


@pytest.mark.requirement("REG-4")
@pytest.mark.parametrize("extra", ["enabled: false\n", "disable-model-invocation: true\n"])
def test_a_skill_that_must_not_be_offered_is_not_chosen(village: Any, extra: str) -> None:
    place = village({"zorb": ("zorblify boats", extra), "other": "sings"})
    decision = place.decide("zorblify the boats")
    assert "zorb" not in {decision.entity, *decision.options, *decision.candidates}


def test_a_skill_that_is_not_offered_for_its_words_can_be_called(village: Any) -> None:
    place = village({"zorb-it": ("zorblify boats", "disable-model-invocation: true\n")})
    assert place.decide("/zorb-it now").result == Skills(names=("zorb-it",), arguments=("now",), direct_call=True)


@pytest.mark.requirement("COV-5")
def test_an_exact_name_wins_over_words_that_fit_another_better(crowd: Any) -> None:
    decision = crowd.decide("use code-coverage to review this code for bugs and security")
    assert (decision.result.names, decision.tier) == (("code-coverage",), "exact")


@pytest.mark.requirement("COV-6", "RTE-3")
@pytest.mark.parametrize("text", ["review this code", "/code-review", "summarise this csv file"])
def test_one_skill_that_covers_the_need_is_one_step(crowd: Any, text: str) -> None:
    assert len(crowd.decide(text).result.names) == 1


@pytest.mark.requirement("COV-7")
def test_an_installed_skill_wins_over_an_offer_to_install(village: Any) -> None:
    place = village({"web-scraper": "scrapes pages"})
    assert place.decide("web-scraper").result == Skills(names=("web-scraper",))


def test_retrieval_is_the_same_each_time(crowd: Any) -> None:
    first, second = crowd.router.retrieve("review code"), crowd.router.retrieve("review code")
    assert first == second


@pytest.mark.parametrize(
    "text", ["", "   ", "的了吗", "a the of", "🎉", "\x00", "((( AND OR *", "name:x", '"', "a" * 100_000]
)
def test_no_text_breaks_the_index(crowd: Any, text: str) -> None:
    assert crowd.router.retrieve(text).band in {"route", "ambiguous", "direct"}


@pytest.mark.wide
@pytest.mark.timeout(30)
def test_a_very_long_message_does_not_take_long(crowd: Any) -> None:
    import time

    words = " ".join(f"word{at}" for at in range(50_000))
    began = time.process_time()
    crowd.router.retrieve(f"review this code {words}")
    assert time.process_time() - began < 5


@pytest.mark.requirement("LIF-9")
@pytest.mark.parametrize("text", ["run x on data.csv", "run x on ./data", "用 x 处理 表格/数据.csv"])
def test_an_ordinary_word_that_is_run_on_a_file_is_a_name(village: Any, text: str) -> None:
    found = village({"x": "totals"}).says(text)
    assert isinstance(found, Skills)
    assert found.names == ("x",)

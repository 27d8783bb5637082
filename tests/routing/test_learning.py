"""A confirmed message becomes an example of its skill, which then comes first more often; other skills lose little."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from bench.encoders import Remembering
from cli.support import Place, place_in
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.model_ports import Encoder
from navigator_kernel.routing.cascade import CascadeRouter
from navigator_kernel.routing.index import RoutingIndex
from navigator_kernel.routing.meaning import SemanticRanker
from navigator_kernel.turn.answers import resume
from navigator_kernel.values.request import Message, PendingQuestion, Session
from navigator_kernel.values.route import Retrieval
from person_state import state_of
from routing.place import routing_at, write_skills
from turns.conftest import Talk, put
from workflows.project import talk_in

pytestmark = pytest.mark.sample(1)

# On the command line


@pytest.fixture
def here(tmp_path: Path) -> Place:
    place = place_in(tmp_path)
    for name in ("ada-painter", "zoe-painter"):
        put(place.root, name, "Paints watercolours of boats at sea")
    return place


def test_a_message_is_taught_listed_and_forgotten(here: Place) -> None:
    assert here.said("route", "a", "boat", "--teach", "Ada Painter") == "learned for ada-painter\n"
    assert here.said("route", "a boat", "--teach", "ada-painter") == "nothing new for ada-painter\n"
    assert here.said("route", "画一条船", "--teach", "zoe-painter") == "learned for zoe-painter\n"
    assert [line.split() for line in here.said("route", "--lessons").splitlines()] == [
        ["skill", "message"], ["ada-painter", "a", "boat"], ["zoe-painter", "画一条船"]
    ]  # fmt: skip
    assert here.said("route", "--forget", "ada-painter") == "forgot 1 for ada-painter\n"
    assert here.said("route", "--forget") == "forgot 1\n"
    assert here.said("route", "--lessons") == ""


def test_the_same_as_documents(here: Place) -> None:
    taught = {"exit_code": 0, "skill": "ada-painter", "learned": True}
    assert here.json("route", "a boat", "--teach", "ada-painter") == taught
    assert here.json("route", "a boat", "--teach", "ada-painter") == {**taught, "learned": False}
    here.json("route", "a tree", "--teach", "zoe-painter")
    held = {"ada-painter": ["a boat"], "zoe-painter": ["a tree"]}
    assert here.json("route", "--lessons") == {"exit_code": 0, "count": 2, "lessons": held}
    assert here.json("route", "--lessons", "zoe-painter")["lessons"] == {"zoe-painter": ["a tree"]}
    assert here.json("route", "--forget", "zoe-painter") == {"exit_code": 0, "skill": "zoe-painter", "forgotten": 1}
    assert here.json("route", "--forget") == {"exit_code": 0, "skill": None, "forgotten": 1}


def test_a_skill_that_is_not_there_cannot_be_taught(here: Place) -> None:
    error = here.json("route", "a boat", "--teach", "ada-paintr")["error"]
    assert (error["type"], error["exit_code"], error["suggestions"][0]) == ("SkillNotFound", 4, "ada-painter")
    assert not (here.root / "mybox" / "state" / "project-id").exists()


@pytest.mark.parametrize(
    "words",
    [(), ("--teach", "ada-painter"), ("a boat", "--teach", "ada-painter", "--forget"), ("--lessons", "--forget")],
)
def test_words_that_say_nothing_or_too_much_are_a_usage_problem(here: Place, words: Sequence[str]) -> None:
    assert here.json("route", *words)["exit_code"] == 2


def test_a_damaged_lessons_file_is_an_error_until_forget_resets_it(here: Place) -> None:
    (state_of(here.root) / "lessons.json").write_text("{ broken")
    assert here.json("route", "--lessons")["exit_code"] == 6
    assert here.json("route", "a boat", "--teach", "ada-painter")["exit_code"] == 6
    assert here.run("route", "what can you do?").code == 0
    assert here.json("route", "--forget")["forgotten"] == 0
    assert here.json("route", "a boat", "--teach", "ada-painter")["learned"]


# A question that was answered

ASKED = "paint watercolours of boats at sea"


@pytest.fixture
def talk(here: Place, monkeypatch: pytest.MonkeyPatch) -> Talk:
    monkeypatch.chdir(here.root)
    return talk_in(here.root)


def learned(talk: Talk) -> Mapping[str, Sequence[str]]:
    return Project(talk.kernel.root, agents=False).lessons.all()


@pytest.mark.requirement("LIF-11")
@pytest.mark.parametrize("answer", ["zoe-painter", "Zoe Painter", "zoe", "2", "the second one", "第二个", "用 zoe-painter 吧", "use zoe-painter please."])  # fmt: skip
def test_a_choice_leads_to_the_chosen_skill_and_is_learned(talk: Talk, answer: str) -> None:
    assert talk.say(ASKED).report.data["options"] == ["ada-painter", "zoe-painter"]
    assert learned(talk) == {}
    reply = talk.say(answer)
    assert (reply.decision.entity, reply.decision.candidates, reply.decision.reason) == ("zoe-painter", (), "chosen")
    assert reply.report.data["skill"] == "zoe-painter"
    assert reply.said[0].text == ASKED
    assert learned(talk) == {"zoe-painter": (ASKED,)}


@pytest.mark.parametrize("answer", ["painter", "no", "neither", "3", "what is the difference", "not zoe-painter", ""])
def test_an_answer_that_chooses_no_skill_is_not_learned(talk: Talk, answer: str) -> None:
    talk.say(ASKED)
    assert talk.say(answer).decision.reason != "chosen"
    assert learned(talk) == {}


@pytest.mark.parametrize("text", ["/ada-painter a boat", "what can you do?", "ada-painter"])
def test_a_skill_name_without_an_open_question_is_not_learned(talk: Talk, text: str) -> None:
    talk.say(text)
    talk.say("zoe-painter")
    assert learned(talk) == {}


def test_the_latest_choice_wins(here: Place, talk: Talk) -> None:
    here.said("route", ASKED, "--teach", "zoe-painter")
    assert talk.say(ASKED).decision.entity == "zoe-painter"
    here.said("route", ASKED, "--teach", "ada-painter")
    talk.session = Session(id="again", turn=talk.session.turn)
    assert talk.say(ASKED).decision.entity == "ada-painter"
    assert learned(talk) == {"ada-painter": (ASKED,)}


def test_files_are_learned_by_their_kind_only(talk: Talk) -> None:
    talk.kernel.root.joinpath("sea.png").write_text("blue")
    talk.say(f"{ASKED} like @sea.png")
    talk.say("zoe-painter")
    assert learned(talk) == {"zoe-painter": (f"{ASKED} like @png",)}


def test_a_lesson_that_cannot_be_kept_stops_no_turn(talk: Talk, caplog: pytest.LogCaptureFixture) -> None:
    (state_of(talk.kernel.root) / "lessons.json").write_text("{")
    talk.say(ASKED)
    assert talk.say("zoe-painter").report.data["skill"] == "zoe-painter"
    told = [record.message.partition(":")[0] for record in caplog.records]
    assert told == ["routing without learned examples", "the choice was not stored as an example"]


def test_a_name_wins_over_a_place_and_a_part_of_another() -> None:
    asked = PendingQuestion(original="merge", question="?", options=("pdf-merge", "pdf", "1"))
    for answer, name in (("pdf", "pdf"), ("1", "1"), ("2", "pdf"), ("merge", "pdf-merge"), ("选pdf", "pdf")):
        message = resume(Message(text=answer), Session(id="s", question=asked)).message
        assert (message.text, message.target, message.way) == ("merge", name, "chosen")


# Measured: twenty desks of a company, each with a description that says next to nothing

TOLD = [line.split("\t") for line in Path(__file__).with_name("desks.tsv").read_text(encoding="utf-8").splitlines()]
DESKS = {name: text for name, kind, text in TOLD if kind == "is for"}
TEXTS = {desk: [text for name, kind, text in TOLD if (name, kind) == (desk, "taught")] for desk in DESKS}
ALL_TAUGHT = {desk: texts[::-1] for desk, texts in TEXTS.items()}  # 20 each, half English, half Chinese
QUESTIONS = {text: name for name, kind, text in TOLD if kind == "asked"}  # 5 each, none of them among the lessons
Found = Mapping[str, Retrieval]  # by question


Company = Callable[..., Found]


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory, encoder: Encoder) -> Company:
    """A function that teaches the desks, then returns what is found for each question or for `asked`."""
    root, remembering = tmp_path_factory.mktemp("company"), Remembering(encoder)
    write_skills(root, dict(DESKS))
    place = routing_at(root)

    def found(taught: Mapping[str, Sequence[str]], asked: Iterable[str] = QUESTIONS) -> Found:
        index = RoutingIndex(root / f"index-{len(list(root.iterdir()))}", FolderWriter([root]), remembering)
        meaning = SemanticRanker(index, lessons=lambda: dict(taught))
        router = CascadeRouter(catalogue=place.catalogue, mapping=place.router.mapping, scripts={}, meaning=meaning)
        return {text: router.retrieve(text) for text in asked}

    return found


def first(found: Retrieval) -> str:
    return found.candidates[0].name if found.candidates else ""


def right(found: Found, *, without: Sequence[str] = ()) -> float:
    """The share of questions that go to their desk, without the desks left out."""
    asked = [text for text, desk in QUESTIONS.items() if desk not in without]
    return sum(first(found[text]) == QUESTIONS[text] for text in asked) / len(asked)


def mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers)


@pytest.mark.wide
@pytest.mark.timeout(300)
def test_the_right_skill_comes_first_more_often_with_every_example(company: Company) -> None:
    shares = [right(company({desk: texts[:n] for desk, texts in TEXTS.items()})) for n in (0, 1, 5, 10, 20)]
    assert all(later >= earlier for earlier, later in pairwise(shares)), shares
    assert shares[1] >= shares[0] + 0.15 and shares[-1] >= max(0.8, shares[0] + 0.4), shares


@pytest.mark.timeout(300)
@pytest.mark.parametrize("others", [0, 20])
def test_a_message_that_was_learned_goes_to_its_skill_from_then_on(company: Company, others: int) -> None:
    for desk, texts in TEXTS.items():
        found = company({**{one: ALL_TAUGHT[one][:others] for one in DESKS}, desk: texts[:2]}, texts[:2])
        assert [(first(one), one.band) for one in found.values()] == [(desk, "route")] * 2


@pytest.mark.timeout(300)
@pytest.mark.ci
def test_teaching_one_skill_costs_the_others_at_most_2_percent_accuracy_on_average(company: Company) -> None:
    before = company({})
    alone = [right(before, without=[one]) - right(company({one: ALL_TAUGHT[one]}), without=[one]) for one in DESKS]
    after = company(ALL_TAUGHT)
    others = {one: {desk: texts for desk, texts in ALL_TAUGHT.items() if desk != one} for one in DESKS}
    last = [right(company(others[one]), without=[one]) - right(after, without=[one]) for one in DESKS]
    assert mean(alone) <= 0.02 and max(alone) <= 0.04, alone
    assert mean(last) <= 0.02 and max(last) <= 0.04, last


@pytest.mark.timeout(300)
@pytest.mark.ci
def test_lessons_of_anothers_subject_draw_no_more_than_those_very_messages(company: Company) -> None:
    before, desks = company(ALL_TAUGHT), list(DESKS)
    drawn: list[float] = []
    for robber, robbed in zip(desks, [*desks[7:], *desks[:7]], strict=True):
        stolen = [f"could you: {text}" if text.isascii() else f"麻烦{text}" for text in TEXTS[robbed]]
        found = company({**ALL_TAUGHT, robber: [*stolen, *ALL_TAUGHT[robber]]})
        drawn.append(sum(first(found[text]) == robber != first(before[text]) for text in QUESTIONS))
    assert mean(drawn) <= 0.5 and max(drawn) <= 2, drawn  # of 100 questions

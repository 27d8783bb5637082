"""While a message is understood, the project's skills and files are listed once, and each wish is ranked once."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from navigator_kernel.adapters.files import project_files
from navigator_kernel.adapters.files.project_files import ProjectFiles
from navigator_kernel.errors import NotFound
from navigator_kernel.routing.meaning import SemanticRanker
from navigator_kernel.turn.steps import ListedSteps, PlanningContext, list_steps
from navigator_kernel.values.context import TurnContext
from navigator_kernel.values.owner import looked_up, one_look
from routing.place import routing_at, write_skills

if TYPE_CHECKING:
    from pathlib import Path

SKILLS = {
    "invoice-reader": "Reads invoices and lists their totals, dates and senders",
    "letter-writer": "Writes formal letters to landlords, banks and authorities",
    "meal-planner": "Plans meals for a week and writes the shopping list",
}
SEVERAL = (
    "We moved out of the old flat in March and nothing is settled yet, so I need a hand with the papers this evening. "
    "First, read the invoices in the folder bills and list their totals, dates and senders, because the bank asked. "
    "Second, write a formal letter to the landlord about the deposit that he still owes us, friendly but firm please. "
    "Third, plan the meals for next week and write the shopping list, for four people and with no meat on Friday."
)


def test_a_message_lists_the_files_of_the_project_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notes.txt").write_text("words\n")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    listed: list[Any] = []
    real = project_files._by_git

    def by_git(root: Path) -> Any:
        listed.append(root)
        return real(root)

    monkeypatch.setattr(project_files, "_by_git", by_git)
    with one_look():
        found = {tuple(ProjectFiles(tmp_path, base).listing()) for base in (tmp_path, tmp_path)}
    assert (found, len(listed)) == ({("notes.txt",)}, 1)
    (tmp_path / "more.txt").write_text("words\n")
    assert ProjectFiles(tmp_path, tmp_path).listing() == ("more.txt", "notes.txt")


def test_each_wish_of_a_message_is_ranked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_skills(tmp_path, SKILLS)
    place = routing_at(tmp_path)
    context = TurnContext(run="r", timeout=60.0, language="en", format="detail")
    files = ProjectFiles(tmp_path, tmp_path)
    ground = PlanningContext(
        catalogue=place.catalogue, router=place.router, files=files, root=tmp_path, limit=8, context=context
    )
    ranked: list[str] = []
    real = SemanticRanker.judged

    def judged(self: SemanticRanker, text: str, *more: Any, **named: Any) -> Any:
        ranked.append(text)
        return real(self, text, *more, **named)

    monkeypatch.setattr(SemanticRanker, "judged", judged)
    with one_look():
        listed = list_steps(place.request(SEVERAL), SEVERAL, ground)
    assert isinstance(listed, ListedSteps)
    assert len(listed.steps) == 3
    assert sorted(ranked) == sorted(set(ranked))
    assert len(ranked) == 4, ranked  # the three wishes, and the whole message


def test_what_is_looked_up_is_forgotten_with_the_message() -> None:
    asked: list[int] = []

    def look() -> int:
        asked.append(1)
        return len(asked)

    with one_look():
        assert [looked_up("a", look), looked_up("b", look), looked_up("a", look)] == [1, 2, 1]
        with one_look():  # a part of the same message
            assert looked_up("a", look) == 1
    assert [looked_up("a", look), looked_up("a", look)] == [3, 4]


def test_a_look_that_fails_is_tried_again() -> None:
    def fails() -> int:
        raise NotFound("gone")

    with one_look():
        with pytest.raises(NotFound):
            looked_up("a", fails)
        assert looked_up("a", lambda: 1) == 1

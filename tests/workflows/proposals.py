"""A project's router and catalogue, and the plan that a message gets from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from navigator_kernel.adapters.files.project_files import ProjectFiles
from navigator_kernel.turn.message import preprocess, without_prefix
from navigator_kernel.turn.steps import PlanningContext, PlanProposal, plan_workflow
from navigator_kernel.values.context import TurnContext
from navigator_kernel.values.request import Message
from navigator_kernel.values.route import NeedClarification, Unknown
from routing.place import Routing, routing_at, write_skills
from tables import table

if TYPE_CHECKING:
    from pathlib import Path

    from navigator_kernel.adapters.index.use_encoder import UseEncoder
    from navigator_kernel.values.workflow import WorkflowPlan, WorkflowStep

TEXT = 'required_params: \'[{"name": "text", "prompt": "the text"}]\'\n'
FILE = 'required_params: \'[{"name": "input", "prompt": "the CSV file", "validation": "file_exists"}]\'\n'
MAIL = 'required_params: \'[{"name": "to", "prompt": "whom to", "validation": "email"}]\'\n'

SKILLS: dict[str, str | tuple[str, str]] = table(__file__, "SKILLS")


def place_at(root: Path, encoder: UseEncoder) -> Routing:
    """The skills above, and some files."""
    write_skills(root, SKILLS)
    for name, text in {
        "notes.txt": "one two three\n",
        "data.csv": "a,1\n",
        "more.csv": "a,2\n",
        "deep down/my data.csv": "a,3\n",
        "deep down/plain.csv": "a,4\n",
        "表格/数据.csv": "甲,5\n",
    }.items():
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return routing_at(root, encoder)


def proposed(
    place: Routing,
    text: str,
    *,
    answer: str = "",
    limit: int = 3,
    alone: bool = False,
    base: str = "",
) -> PlanProposal | NeedClarification | Unknown | None:
    """What is proposed for `text` if the person is in the folder `base`; `answer` is the answer to a question."""
    files = ProjectFiles(place.root, place.root / base)
    said = f"{text} {answer}".strip()
    request = preprocess(Message(text=said, answers=(answer,) if answer else ()), files)
    ground = PlanningContext(
        catalogue=place.catalogue,
        router=place.router,
        files=files,
        root=place.root.resolve(),
        limit=limit,
        context=TurnContext(run="r", timeout=5.0, language=request.language, format="detail"),
    )
    return plan_workflow(request, without_prefix(said), ground, alone=alone)


def plan(place: Routing, text: str, **given: Any) -> WorkflowPlan:
    found = proposed(place, text, **given)
    assert isinstance(found, PlanProposal), found
    return found.plan


def steps(place: Routing, text: str, **given: Any) -> tuple[WorkflowStep, ...]:
    return plan(place, text, **given).steps


def bound(place: Routing, text: str, **given: Any) -> list[str]:
    """The skills that the steps are bound to."""
    return [step.skill for step in steps(place, text, **given)]


def question(place: Routing, text: str, **given: Any) -> NeedClarification:
    found = proposed(place, text, **given)
    assert isinstance(found, NeedClarification), found
    return found

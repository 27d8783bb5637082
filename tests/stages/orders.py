"""Skills with parameters, and the plan for a message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from navigator_kernel.adapters.index.use_encoder import UseEncoder
from navigator_kernel.turn.packets import plan
from navigator_kernel.values.context import TurnContext
from navigator_kernel.values.packet import Packet
from navigator_kernel.values.plan import DispatchPlan
from navigator_kernel.values.route import NeedClarification, RouteDecision, Unknown
from routing.place import Routing, routing_at, write_skills


def spec(name: str, validation: str = "not_empty", **more: str) -> str:
    told = {"name": name, "prompt": f"the {name}", "validation": validation, **more}
    return json.dumps(told)


def params(*specs: str) -> tuple[str, str]:
    return "does a thing", f"required_params: '[{', '.join(specs)}]'\n"


SKILLS: dict[str, str | tuple[str, str]] = {
    "plain-one": "paints boats",
    "text-one": params(spec("text")),
    "url-one": params(spec("url", "url_format")),
    "mail-one": params(spec("to", "email")),
    "file-one": params(spec("input", "file_exists")),
    "many-one": params(spec("url", "url_format"), spec("to", "email"), spec("input", "file_exists")),
    "calm-one": params(spec("text"), spec("style", default="plain"), spec("top", required="false")),
    "slow-one": ("is slow", "timeout: 30\n"),
    "slowest-one": ("is slowest", "timeout: 4000\n"),
}


def place_at(root: Path, encoder: UseEncoder) -> Routing:
    """The skills above, and one file."""
    write_skills(root, SKILLS)
    (root / "data.csv").write_text("a,b\n1,2\n")
    return routing_at(root, encoder)


def order(**given: Any) -> TurnContext:
    base: dict[str, Any] = {"run": "r1", "timeout": 60.0, "language": "en", "format": "detail"}
    return TurnContext(**{**base, **given})


def planned(place: Routing, text: str, **given: Any) -> DispatchPlan | NeedClarification | Unknown:
    language = place.request(text).language
    return plan(place.decide(text), place.request(text), place.catalogue, order(language=language, **given))


def packet(place: Routing, text: str, **given: Any) -> Packet:
    found = planned(place, text, **given)
    assert isinstance(found, DispatchPlan), found
    return found.steps[0].packets[0]


def asked(place: Routing, text: str) -> NeedClarification:
    found = planned(place, text)
    assert isinstance(found, NeedClarification), found
    return found


def of(place: Routing, result: Any, **given: Any) -> DispatchPlan | NeedClarification | Unknown:
    return plan(RouteDecision(result=result), place.request("say"), place.catalogue, order(**given))

"""The models that OpenAI's clients choose from: the router, and each skill by its name."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from navigator_kernel.values.http.endpoint import Call, Endpoint, HttpProblem

if TYPE_CHECKING:
    from navigator_kernel.gateway.gateway import Gateway

ROUTER = "navigator"
OF_SKILL = f"{ROUTER}/"
NEAR = 3  # names suggested for an unknown one


class Model(Struct, frozen=True, kw_only=True):
    """`navigator` lets the router choose, `navigator/<skill>` is that skill."""

    id: str
    created: int
    object: Literal["model"] = "model"
    owned_by: str = ROUTER


class Models(Struct, frozen=True, kw_only=True):
    data: list[Model]
    object: Literal["list"] = "list"


def list_models(gateway: Gateway, _: Call) -> Models:
    """`navigator`, and `navigator/<skill>` for each skill that is enabled."""
    skills = [skill for skill in gateway.project.catalogue.list_resources() if skill.type == "skill"]
    return Models(data=[_model(ROUTER), *(_model(f"{OF_SKILL}{skill.name}") for skill in skills)])


def read_model(gateway: Gateway, call: Call) -> Model:
    skill_of(gateway, call.path["model"])
    return _model(call.path["model"])


def skill_of(gateway: Gateway, model: str) -> str:
    """The skill that `model` names, empty for the router; 404 if there is no such model."""
    if model == ROUTER:
        return ""
    name = model.removeprefix(OF_SKILL)
    found = gateway.project.catalogue.find(name) if model.startswith(OF_SKILL) and name else None
    if found is None:
        near = gateway.project.catalogue.suggest(name, NEAR)
        names = ", ".join((ROUTER, *(f"{OF_SKILL}{one}" for one in near)))
        raise HttpProblem(404, "model_not_found", f"there is no model {model!r}", hint=f"there are: {names}")
    return found.name


def _model(name: str) -> Model:
    return Model(id=name, created=int(time.time()))


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/v1/models",
        role="read",
        summary="List models: the router and the skills",
        handler=list_models,
        tag="openai",
        answer=Models,
    ),
    Endpoint(
        method="GET",
        path="/v1/models/{model:path}",
        role="read",
        summary="Look at a model",
        handler=read_model,
        tag="openai",
        answer=Model,
        errors=(404,),
    ),
)

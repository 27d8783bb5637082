"""Any typed function becomes a tool: its schema, its session, its errors, its empty results."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from sqlalchemy import String, create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker

from navigator_kernel.errors import NotLoadable
from navigator_kernel.tools.factory import FunctionTool, ToolFactory
from navigator_kernel.values.chat import Result, ToolDef


class Base(DeclarativeBase):
    pass


class Boat(Base):
    __tablename__ = "boats"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(40), unique=True)


class Sail(BaseModel):
    colour: str
    area: float = 1.0


class Order(BaseModel):
    name: str
    sails: list[Sail]


class Watched(Session):
    """Records whether it was committed, rolled back and closed."""

    seen: list[str] = []  # noqa: RUF012 - one list for all instances, which each test empties

    def commit(self) -> None:
        self.seen.append("commit")
        super().commit()

    def rollback(self) -> None:
        self.seen.append("rollback")
        super().rollback()

    def close(self) -> None:
        self.seen.append("close")
        super().close()


@pytest.fixture
def factory(tmp_path: Path) -> Iterator[ToolFactory]:
    engine = create_engine(f"sqlite:///{tmp_path}/boats.sqlite")
    Base.metadata.create_all(engine)
    Watched.seen.clear()
    yield ToolFactory(sessionmaker(engine, class_=Watched, expire_on_commit=False))
    engine.dispose()


def run(tool: FunctionTool, arguments: Mapping[str, Any]) -> Result:
    return asyncio.run(tool.run(arguments))


def add(db: Session, name: str, *, times: int = 1) -> Boat:
    boat = Boat(name=name * times)
    db.add(boat)
    db.flush()
    return boat


def add_and_fail(db: Session, name: str) -> None:
    add(db, name)
    raise ValueError("it sank\x1b[31m")


def names(db: Session) -> list[str]:
    return list(db.scalars(select(Boat.name)))


def paint(order: Order) -> dict[str, Any]:
    return {"name": order.name, "colours": [sail.colour for sail in order.sails]}


def paint_apart(name: str, sails: list[Sail]) -> str:
    return f"{name}: {', '.join(type(sail).__name__ for sail in sails)}"


@pytest.mark.requirement("TOL-2", "TOL-3", "TOL-8")
def test_a_crud_function_is_a_tool_and_its_session_is_not_a_models_to_see(factory: ToolFactory) -> None:
    tool = factory.from_crud(add, "boat_add", "Adds a boat")
    assert set(tool.spec.schema["properties"]) == {"name", "times"}
    assert tool.spec.schema["required"] == ["name"] and tool.spec.schema["additionalProperties"] is False
    assert run(tool, {"name": "Ann"}).value == {"id": 1, "name": "Ann"}
    assert Watched.seen == ["commit", "close"]
    assert run(factory.from_crud(names, "names", "Names"), {}).value == ["Ann"]


@pytest.mark.requirement("TOL-3", "TOL-4")
def test_a_failed_call_is_rolled_back_closed_and_reported_in_one_line(factory: ToolFactory) -> None:
    done = run(factory.from_crud(add_and_fail, "fails", "Fails"), {"name": "Bob"})
    assert done == Result(error="it sank")
    assert Watched.seen == ["rollback", "close"]
    assert run(factory.from_crud(names, "names", "Names"), {}).value == []


def test_each_call_has_a_session_of_its_own(factory: ToolFactory) -> None:
    tool = factory.from_crud(add, "boat_add", "Adds a boat")

    async def all_at_once() -> list[Result]:
        return await asyncio.gather(*(tool.run({"name": f"boat-{at}"}) for at in range(8)))

    asyncio.run(all_at_once())
    assert Watched.seen.count("close") == 8


@pytest.mark.requirement("TOL-5")
@pytest.mark.parametrize(("func", "schema"), [(paint, Order), (paint_apart, None), (paint_apart, Order)])
def test_nested_values_stay_nested(factory: ToolFactory, func: Any, schema: Any) -> None:
    tool = factory.from_crud(func, "paint", "Paints", schema)
    assert tool.spec.schema["$defs"]["Sail"]["properties"]["colour"] == {"title": "Colour", "type": "string"}
    value = run(tool, {"name": "Ann", "sails": [{"colour": "red"}, {"colour": "blue", "area": 2}]}).value
    assert value in ({"name": "Ann", "colours": ["red", "blue"]}, "Ann: Sail, Sail")


@pytest.mark.requirement("TOL-4")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [({}, "name: Field required"), ({"name": 3}, "name: "), ({"name": "a", "sails": [{}]}, "sails.0.colour: ")],
)
def test_invalid_arguments_are_reported_with_their_path(
    factory: ToolFactory, arguments: dict[str, Any], words: str
) -> None:
    assert words in run(factory.from_crud(paint, "paint", "Paints", Order), arguments).error


def test_an_unknown_argument_is_reported(factory: ToolFactory) -> None:
    assert "more: Extra inputs" in run(factory.from_crud(add, "boat_add", "Adds"), {"name": "x", "more": 1}).error


class Service:
    """A service whose methods become tools unchanged."""

    def __init__(self, greeting: str) -> None:
        self.greeting = greeting

    def greet(self, name: str, at: datetime) -> str:
        return f"{self.greeting} {name} {at:%H}"

    async def wait(self, seconds: float) -> float:
        await asyncio.sleep(seconds)
        return seconds


@pytest.mark.requirement("TOL-1", "TOL-8")
def test_a_method_of_a_service_is_a_tool(factory: ToolFactory) -> None:
    service = Service("Hello")
    greet = factory.from_crud(service.greet, "greet", "Greets")
    assert run(greet, {"name": "Ann", "at": "2026-01-31T15:00:00+08:00"}).value == "Hello Ann 15"
    assert run(factory.from_crud(service.wait, "wait", "Waits"), {"seconds": 0}).value == 0


@pytest.mark.requirement("TOL-6")
def test_a_registry_is_a_table(factory: ToolFactory) -> None:
    tools = factory.registry(
        {"boat_add": ToolDef(add, "Adds a boat", effects=("refresh:boats",)), "paint": ToolDef(paint, "Paints", Order)}
    )
    assert [(tool.name, tool.spec.description, tool.effects) for tool in tools] == [
        ("boat_add", "Adds a boat", ("refresh:boats",)),
        ("paint", "Paints", ()),
    ]


def nothing(*words: str) -> None: ...


def needs(db: Session) -> None: ...


@pytest.mark.parametrize(("func", "made"), [(nothing, ToolFactory()), (needs, ToolFactory()), (print, ToolFactory())])
def test_a_function_that_cannot_be_a_tool_is_refused_when_the_tool_is_made(func: Any, made: ToolFactory) -> None:
    with pytest.raises(NotLoadable) as caught:
        made.from_crud(func, "x", "x")
    assert caught.value.hint

"""Makes tools from typed functions: a schema from the signature, an injected session, uniform errors (TOL-1..6)."""

from __future__ import annotations

import asyncio
import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from navigator_kernel.errors import NotLoadable
from navigator_kernel.language.wording import say
from navigator_kernel.text import clean, shorten
from navigator_kernel.values.chat import Result, ToolDef, ToolSpec, filled

if TYPE_CHECKING:
    from langchain_core.tools import StructuredTool
    from pydantic import BaseModel

SAID = 500  # characters of an error
SESSIONS = frozenset({"Session", "scoped_session"})  # SQLAlchemy classes, by name: it need not be installed
NAMED = frozenset({"db", "session"})  # names of parameters that are sessions if they have no type

Sessions = Callable[[], Any]


class FunctionTool(Struct, frozen=True, kw_only=True):
    """Implements `model_ports.Tool` over one function. `injected` is the parameter that takes a session, `whole` the
    one that takes the arguments as one value."""

    name: str
    definition: ToolDef
    schema: type[BaseModel]
    sessions: Sessions | None = None
    injected: str = ""
    whole: str = ""
    effects: tuple[str, ...] = field(default=())
    confirm: str = ""
    outward: bool = False  # the tool works on the person's own database

    @property
    def spec(self) -> ToolSpec:
        """The tool's schema; nested models stay nested (TOL-5)."""
        held = self.schema.model_json_schema()
        return ToolSpec(name=self.name, description=self.definition.description, schema=held)

    async def run(self, arguments: Mapping[str, Any]) -> Result:
        """Runs the function, on a thread if it blocks; errors are results."""
        from pydantic import ValidationError

        try:
            held = self.schema.model_validate(dict(arguments))
        except ValidationError as error:
            wrong = ((".".join(map(str, one["loc"])) or "arguments", one["msg"]) for one in error.errors())
            return Result(error="; ".join(f"{where}: {what}" for where, what in wrong))
        try:
            if inspect.iscoroutinefunction(self.definition.func):
                with self._session() as more:
                    value = await self.definition.func(**more, **self._given(held))
                    return Result(plain(value))
            return Result(await asyncio.to_thread(self.call, held))
        except Exception as error:  # noqa: BLE001 - a tool may raise anything; the model gets it, the turn continues
            said = str(error).partition("\n")[0] or type(error).__name__
            return Result(error=shorten(clean(said, lines=False), SAID))

    def as_langchain(self, agree: Callable[[str, Mapping[str, Any]], bool] | None = None) -> StructuredTool:
        """Makes a tool for LangChain's graphs (extra `langgraph`). Nothing checks its calls there: for a tool with
        `confirm`, `agree` gets that question and the arguments before each call; NotLoadable if `agree` is missing
        then."""
        from langchain_core.tools import StructuredTool, ToolException

        if self.confirm and agree is None:
            raise NotLoadable(f"tool {self.name!r} asks before each call", hint="say whom: as_langchain(agree=...)")

        async def called(**arguments: Any) -> Any:
            given = {name: plain(value) for name, value in arguments.items()}
            if self.confirm and agree is not None and not agree(filled(self.confirm, given), given):
                raise ToolException(say("tool.declined", "en", tool=self.name))
            result = await self.run(given)
            if result.error:
                raise ToolException(say("tool.failed", "en", error=result.error))
            return result.value

        return StructuredTool.from_function(
            coroutine=called,
            name=self.name,
            description=self.definition.description,
            args_schema=self.schema,
            handle_tool_error=True,
            metadata={"effects": list(self.effects), "confirm": self.confirm},
        )

    def call(self, held: BaseModel, before: Callable[[Any], None] = lambda _: None) -> Any:
        """Calls the function, which must not be a coroutine, and returns its result as plain values. `before` gets the
        same session first. Raises what they raise."""
        with self._session() as more:
            before(more.get(self.injected))
            return plain(self.definition.func(**more, **self._given(held)))

    def _given(self, held: BaseModel) -> dict[str, Any]:
        if self.whole:
            return {self.whole: held}
        return {name: getattr(held, name) for name in type(held).model_fields}

    @contextmanager
    def _session(self) -> Iterator[dict[str, Any]]:
        """A session for each call: committed, or rolled back after an error, and always closed (TOL-3)."""
        if not self.injected or self.sessions is None:
            yield {}
            return
        session = self.sessions()
        try:
            yield {self.injected: session}
            session.commit()
        except BaseException:
            session.rollback()
            raise
        finally:
            session.close()


class ToolFactory(Struct, frozen=True):
    """`sessions` opens a database session; functions that take one get it, and a model never sees that."""

    sessions: Sessions | None = None

    def from_crud(
        self,
        func: Callable[..., Any],
        name: str,
        description: str,
        args_schema: type[Any] | None = None,
        *,
        effects: tuple[str, ...] = (),
        confirm: str = "",
    ) -> FunctionTool:
        """Makes a tool of a function, or of a method of a service (TOL-2, TOL-8). NotLoadable if its parameters cannot
        be used."""
        return self.made(name, ToolDef(func, description, args_schema, effects, confirm))

    def registry(self, definitions: Mapping[str, ToolDef]) -> tuple[FunctionTool, ...]:
        return tuple(self.made(name, definition) for name, definition in definitions.items())

    def made(self, name: str, definition: ToolDef) -> FunctionTool:
        parameters = _parameters(definition.func, name)
        injected = next((one for one, (kind, _) in parameters.items() if _is_session(one, kind)), "")
        if injected and self.sessions is None:
            raise NotLoadable(f"tool {name!r} needs a database", hint="make the ToolFactory with one")
        if any("AsyncSession" in _names(kind) for kind, _ in parameters.values()):
            raise NotLoadable(
                f"tool {name!r} takes an AsyncSession", hint="take a Session: each call has its own thread"
            )
        parameters.pop(injected, None)
        schema = definition.args_schema
        taken = [one for one, (kind, _) in parameters.items() if schema is not None and kind is schema]
        whole = taken[0] if len(parameters) == 1 and taken else ""
        return FunctionTool(
            name=name,
            definition=definition,
            schema=schema or _schema(name, parameters),
            sessions=self.sessions,
            injected=injected,
            whole=whole,
            effects=definition.effects,
            confirm=definition.confirm,
        )


def _parameters(func: Callable[..., Any], name: str) -> dict[str, tuple[Any, Any]]:
    """`(type, default)` of each parameter by its name; `...` if it has no default."""
    try:
        signature, kinds = inspect.signature(func), typing.get_type_hints(func)
    except (TypeError, ValueError, NameError) as error:
        raise NotLoadable(f"tool {name!r} cannot be read: {error}", hint="give its parameters types") from error
    found: dict[str, tuple[Any, Any]] = {}
    for one in signature.parameters.values():
        if one.kind in {one.VAR_POSITIONAL, one.VAR_KEYWORD, one.POSITIONAL_ONLY}:
            raise NotLoadable(f"tool {name!r} takes {one}", hint="name each parameter")
        found[one.name] = (kinds.get(one.name, Any), ... if one.default is one.empty else one.default)
    return found


def _is_session(name: str, kind: Any) -> bool:
    return bool(_names(kind) & SESSIONS) or (kind is Any and name in NAMED)


def _names(kind: Any) -> set[str]:
    return {held.__name__ for held in getattr(kind, "__mro__", ())}


def _schema(name: str, parameters: Mapping[str, tuple[Any, Any]]) -> type[BaseModel]:
    """A model of the arguments that forbids others."""
    from pydantic import ConfigDict, create_model

    fields: dict[str, Any] = dict(parameters)
    made: type[BaseModel] = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
    return made


def plain(value: Any) -> Any:
    """Converts to JSON values: pydantic models, SQLAlchemy's rows by their columns, and collections of them."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if hasattr(value, "__table__"):
        return {column.key: plain(getattr(value, column.key)) for column in value.__table__.columns}
    if isinstance(value, Mapping):
        return {str(key): plain(held) for key, held in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(held) for held in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)

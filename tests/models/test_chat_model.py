"""Whatever a provider does, the result is an answer or one typed error, in time, after an exact number of requests."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from models.wire_server import HELLO, MODES, Said, WireServer, serving
from navigator_kernel.adapters.models.chat_model import WireModel
from navigator_kernel.config.settings import ModelProvider, Models
from navigator_kernel.errors import KernelError, ModelFailed, NotFound, TimedOut, UsageProblem
from navigator_kernel.language.model_failure import failure_text
from navigator_kernel.values.chat import Asked, ChatMessage, Completion, ToolSpec
from tables import table

pytestmark = pytest.mark.sample(1)

KEY, NO_HOST = "sk-made-up-key-0123456789", "no-such-host.invalid"
LIMITS = Models(retries=2)
SHORT = LIMITS._replace(first=3.0, idle=2.0)  # for modes in which the model hangs for 30 seconds
SLACK = 20.0  # seconds beyond a limit
QUESTION = (ChatMessage(role="system", text="Be brief."), ChatMessage(role="user", text="How are you?"))

# mode, ending ("" for an answer), number of requests
ENDINGS: tuple[tuple[str, str, int], ...] = table(__file__, "ENDINGS")
STREAMED_ONLY = {"hangs-at-the-first-word", "hangs-between-words", "ends-early", "error-in-stream"}
KINDS = ("openai", "anthropic")
WHOLE = {
    "cut": ("cut_off", 3),
    "silent-once": ("unreadable", 1),
    "no-choices": ("unreadable", 1),
}  # modes with another ending without a stream
OPENAI_ONLY = {"no-choices", "silent-once"}


@dataclass
class Seen:
    """The result of one request."""

    kind: str
    completion: Completion | None = None
    error: KernelError | None = None
    told: list[str] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)
    took: float = 0.0


@pytest.fixture(scope="module")
def server() -> Iterator[WireServer]:
    """A server, with each provider's library loaded before a request is timed, because loading takes seconds."""
    with serving() as held, pytest.MonkeyPatch.context() as environment:
        environment.setenv("THERE_API_KEY", KEY)
        for kind in KINDS:
            ask(models_of(held, kind), "well")
        yield held


@pytest.fixture(autouse=True)
def _fresh(server: WireServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.requests.clear()
    monkeypatch.setenv("THERE_API_KEY", KEY)


def models_of(server: WireServer, kind: str = "openai", limits: Models = LIMITS) -> Models:
    url = server.url.removesuffix("/v1") if kind == "anthropic" else server.url
    return limits._replace(providers={"there": ModelProvider(url, kind)})


def ask(models: Models, name: str, *, streamed: bool = True, asked: Asked | None = None) -> Seen:
    """Sends one request; waits between tries take no time and are kept."""
    seen = Seen("")

    async def sleep(seconds: float) -> None:
        seen.waited.append(seconds)

    async def run() -> Completion:
        model = WireModel(f"there:{name}", models, sleep=sleep)
        try:
            return await model.complete(asked or Asked(messages=QUESTION), seen.told.append if streamed else None)
        finally:
            await model.close()

    began = time.monotonic()
    try:
        seen.completion = asyncio.run(run())
    except TimedOut as error:
        seen.kind, seen.error = "timeout", error
    except KernelError as error:
        seen.kind, seen.error = str(error.data.get("kind", error.code)), error
    seen.took = time.monotonic() - began
    return seen


def test_every_way_of_the_server_is_tried_here() -> None:
    assert {mode for mode, _, _ in ENDINGS} | {"reasons", "calls"} == set(MODES)


def possible() -> Iterator[tuple[str, bool, str, str, int]]:
    """Each mode in each protocol, streamed and whole, except the combinations that do not exist."""
    for mode, ending, requests in ENDINGS:
        for kind in KINDS:
            for streamed in (True, False):
                if (streamed or mode not in STREAMED_ONLY) and (kind == "openai" or mode not in OPENAI_ONLY):
                    yield kind, streamed, mode, ending, requests


@pytest.mark.parametrize(
    ("kind", "streamed", "mode", "ending", "requests"),
    list(possible()),
    ids=[f"{mode}-{kind}-{'streamed' if streamed else 'whole'}" for kind, streamed, mode, _, _ in possible()],
)
def test_a_request_ends_in_an_answer_or_one_typed_error(
    server: WireServer, kind: str, streamed: bool, mode: str, ending: str, requests: int
) -> None:
    if not streamed:
        ending, requests = WHOLE.get(mode, (ending, requests))
    hangs = mode.startswith("hangs")
    seen = ask(models_of(server, kind, SHORT if hangs else LIMITS), mode, streamed=streamed)
    assert (seen.kind, server.asked(mode)) == (ending, requests), seen.error
    assert not hangs or seen.took < SHORT.first + SLACK
    if seen.error is not None:
        assert (seen.error.message.count("\n"), "{" in seen.error.message, bool(seen.error.hint)) == (0, False, True)
        assert f"model 'there:{mode}': " in seen.error.message
    if not ending:
        assert seen.completion and seen.completion.message.text == HELLO.text
        assert "".join(seen.told) == (HELLO.text if streamed else "")


def test_waits_grow_and_are_those_that_were_asked_for(server: WireServer) -> None:
    models = models_of(server)
    assert ask(models, "limited-once").waited == [7.0]
    assert ask(models, "failed").waited == [0.5, 1.0]


def test_a_wait_of_more_than_a_minute_or_than_the_limit_ends_the_request(server: WireServer) -> None:
    for limit in (30.0, 7_200.0):
        server.requests.clear()
        seen = ask(models_of(server), "limited-for-an-hour", asked=Asked(messages=QUESTION, limit=limit))
        assert (seen.kind, seen.waited) == ("rate_limited", [])
        assert seen.error is not None and seen.error.message.endswith("the provider asks to wait 1 h")


@pytest.mark.requirement("SAF-8")
def test_a_key_that_a_provider_repeats_is_not_shown(server: WireServer) -> None:
    seen = ask(models_of(server), "key-refused")
    assert seen.error is not None and seen.error.__cause__ is None
    assert "Incorrect API key provided: [redacted]" in seen.error.data["said"]
    assert KEY not in json.dumps(seen.error.to_dict())


@pytest.mark.wide
@pytest.mark.parametrize("kind", KINDS)
def test_the_whole_request_has_a_limit(server: WireServer, kind: str) -> None:
    seen = ask(models_of(server, kind), "hangs-between-words", asked=Asked(messages=QUESTION, limit=1.0))
    assert (seen.kind, seen.took < 1.0 + SLACK) == ("timeout", True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("url", "ending", "waits"),
    [
        ("http://127.0.0.1:9/v1", "unreachable", LIMITS.retries),
        (f"http://{NO_HOST}/v1", "no_address", LIMITS.retries),
        ("tls", "no_tls", 0),
    ],
)
def test_an_unreachable_server_is_reported_with_the_reason(
    server: WireServer, monkeypatch: pytest.MonkeyPatch, kind: str, url: str, ending: str, waits: int
) -> None:
    known: Any = socket.getaddrinfo

    def addresses(host: str | bytes, *args: Any, **kwargs: Any) -> Any:
        if host in {NO_HOST, NO_HOST.encode()}:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return known(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", addresses)
    url = server.url.replace("http:", "https:") if url == "tls" else url  # the server has no certificate
    seen = ask(LIMITS._replace(providers={"there": ModelProvider(url, kind)}), "well")
    assert (seen.kind, len(seen.waited)) == (ending, waits)
    assert seen.error is not None and "usage" not in seen.error.data


def test_a_failure_is_one_sentence_and_one_hint_in_two_languages(server: WireServer) -> None:
    """Including a 403 that is not about the key, and an error in the middle of a stream, which has no status."""
    told = {}
    for mode in ("forbidden", "error-in-stream", "key-refused"):
        error = ask(models_of(server), mode).error
        assert error is not None
        told[mode] = (error.message, failure_text(error.data, "zh")[0])
    assert told == {
        "forbidden": (
            "model 'there:forbidden': the provider does not allow this request (403): "
            '"Country, region, or territory not supported"',
            "模型 'there:forbidden'：服务商不允许此请求 (403)：\"Country, region, or territory not supported\"",
        ),
        "error-in-stream": (
            "model 'there:error-in-stream': the provider reported an error in the middle of the answer: \"Overloaded\"",
            "模型 'there:error-in-stream'：回答进行到一半时服务商报错：\"Overloaded\"",
        ),
        "key-refused": (
            "model 'there:key-refused': its key was refused (401)",
            "模型 'there:key-refused'：密钥被拒绝 (401)",
        ),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_the_partial_text_and_the_usage_of_an_interrupted_answer_are_kept(server: WireServer, kind: str) -> None:
    """Anthropic reports at the start how much it has read; OpenAI reports nothing before the end."""
    seen = ask(models_of(server, kind), "cut")
    assert seen.error is not None
    assert HELLO.text.startswith(seen.error.data["begun"]) and seen.error.data["begun"] == "".join(seen.told)
    usage = seen.error.data["usage"]
    read = 120 if kind == "anthropic" else 0
    assert (usage["requests"], usage["unknown_requests"], usage["input_tokens"]) == (1, 1, read)


def test_the_usage_of_failed_requests_comes_with_the_answer(server: WireServer) -> None:
    seen = ask(models_of(server), "silent-once")
    assert seen.completion is not None
    assert [(one.model, one.spent.requests, one.spent.unknown) for one in seen.completion.tried] == [
        ("there:silent-once", 1, 1)
    ]
    assert (seen.completion.taken.requests, seen.completion.taken.input) == (2, 240)


def test_a_wait_that_the_provider_asks_for_is_announced(server: WireServer) -> None:
    told: list[tuple[str, float]] = []
    asked = Asked(messages=QUESTION, waits=lambda model, seconds: told.append((model, seconds)))
    ask(models_of(server), "limited-once", asked=asked)
    assert told == [("there:limited-once", 7.0)]
    ask(models_of(server), "failed-once", asked=asked)
    assert len(told) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_a_call_of_a_tool_is_read_and_answered(server: WireServer, kind: str, streamed: bool) -> None:
    models = models_of(server, kind)
    tool = ToolSpec(
        name="look_up",
        description="Looks a word up",
        schema={"type": "object", "properties": {"word": {"type": "string"}}},
    )
    asked = Asked(messages=QUESTION, tools=(tool,))
    seen = ask(models, "calls", streamed=streamed, asked=asked)
    assert seen.completion is not None
    (call,) = seen.completion.message.calls
    assert (call.name, json.loads(call.arguments), seen.completion.finish) == ("look_up", {"word": "moon"}, "calls")
    answer = ChatMessage(role="tool", text="a ball of rock", call=call.id, name=call.name)
    ask(models, "well", streamed=streamed, asked=replace(asked, messages=(*QUESTION, seen.completion.message, answer)))
    told = json.dumps(server.requests[-1].body["messages"])
    assert (call.id in told, "a ball of rock" in told, "look_up" in told) == (True, True, True)


@pytest.mark.requirement("JIT-3")
@pytest.mark.parametrize("kind", KINDS)
def test_cache_control_is_set_for_anthropic_only_and_only_where_tools_are_offered(
    server: WireServer, kind: str
) -> None:
    messages = (ChatMessage(role="system", text="You help."), *QUESTION)
    for tools in ((), (ToolSpec(name="look_up", description="d"),)):
        ask(models_of(server, kind), "well", asked=Asked(messages=messages, tools=tools))
        body = server.requests[-1].body
        marks = [part for part in ("tools", "system", "messages") if "cache_control" in json.dumps(body.get(part, []))]
        assert marks == (["tools", "system", "messages"] if tools and kind == "anthropic" else [])


@pytest.mark.requirement("RTE-33")
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_reasoning_is_handed_back_where_the_provider_wants_it(server: WireServer, streamed: bool) -> None:
    models = models_of(server)._replace(providers={"there": ModelProvider(server.url, "deepseek")})
    server.scripts["deepseek-reasoner"] = lambda messages, number: Said(
        reasoning="the moon, then", calls=[("look_up", "{}")] if number == 1 else (), text="" if number == 1 else "done"
    )
    first = ask(
        models,
        "deepseek-reasoner",
        streamed=streamed,
        asked=Asked(messages=QUESTION, tools=(ToolSpec(name="look_up", description="d"),)),
    )
    assert first.completion is not None and first.completion.message.wire
    held = msgspec.convert(json.loads(json.dumps(first.completion.message.to_dict())), ChatMessage)
    answer = ChatMessage(role="tool", text="rock", call=held.calls[0].id, name="look_up")
    ask(models, "deepseek-reasoner", streamed=streamed, asked=Asked(messages=(*QUESTION, held, answer)))
    said = next(one for one in server.requests[-1].body["messages"] if one["role"] == "assistant")
    assert said["reasoning_content"] == "the moon, then"


@pytest.mark.requirement("RTE-14")
def test_a_temperature_is_sent_if_one_is_set(server: WireServer) -> None:
    ask(models_of(server), "well", asked=Asked(messages=QUESTION, temperature=0.1))
    assert server.requests[-1].body["temperature"] == 0.1
    ask(models_of(server), "well")
    assert "temperature" not in server.requests[-1].body


def test_the_shape_of_an_answer_is_asked_for(server: WireServer) -> None:
    shape = {"type": "object", "properties": {"direct": {"type": "boolean"}}, "required": ["direct"]}
    ask(models_of(server), "well", asked=Asked(messages=QUESTION, shape=shape))
    assert server.requests[-1].body["response_format"]["json_schema"]["schema"]["properties"] == shape["properties"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_usage_counts_cached_tokens_and_has_no_cost_where_the_price_is_unknown(
    server: WireServer, kind: str, streamed: bool
) -> None:
    seen = ask(models_of(server, kind), "well", streamed=streamed)
    assert seen.completion is not None
    spent = seen.completion.spent
    assert (spent.requests, spent.input, spent.output, spent.cached) == (1, 120, 12, 100)
    assert (spent.priced, spent.to_dict()["cost"]) == (False, None)  # a made-up model has no known price


def test_a_model_with_a_known_price_has_a_cost(server: WireServer) -> None:
    server.scripts["gpt-4o-mini"] = lambda _messages, _number: HELLO
    models = models_of(server)._replace(providers={"there": ModelProvider(server.url, "openai-chat")})
    seen = ask(models, "gpt-4o-mini")
    assert seen.completion is not None and 0 < (seen.completion.spent.to_dict()["cost"] or 0) < 0.01


def test_it_can_be_stopped_in_the_middle(server: WireServer) -> None:
    async def run() -> float:
        begun = asyncio.Event()
        model = WireModel("there:hangs-between-words", models_of(server))
        task = asyncio.create_task(model.complete(Asked(messages=QUESTION), lambda _text: begun.set()))
        await begun.wait()
        began = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await model.close()
        return time.monotonic() - began

    assert asyncio.run(run()) < SLACK


@pytest.mark.parametrize(
    ("name", "error"),
    [("there", UsageProblem), ("nobody:x", KernelError), (":x", UsageProblem), ("deepseek:x", NotFound)],
)
def test_an_unusable_model_name_is_an_error_with_a_hint(
    name: str, error: type[KernelError], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DEEPSEEK_API_KEY", raising=False)
    with pytest.raises(error) as caught:
        asyncio.run(WireModel(name, LIMITS).complete(Asked(messages=QUESTION)))
    assert caught.value.hint


def test_no_request_follows_a_redirection(server: WireServer) -> None:
    assert isinstance(ask(models_of(server), "moved").error, ModelFailed)
    assert server.asked("moved") == 1

"""Calls as models and their servers send them (calls.tsv): what the person sees, and what is called."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from models.test_chat_model import KEY, ask, models_of
from models.wire_server import Exchange, Said, WireServer, serving
from navigator_kernel.adapters.models.calls import Spoken, read_arguments
from navigator_kernel.tools.built_in import specs
from navigator_kernel.values.chat import Asked, ChatMessage, ToolCall
from tables import table

FILE = Path(__file__).with_name("calls.tsv")
ROWS = [line.split("\t") for line in FILE.read_text(encoding="utf-8").splitlines()[1:]]
TOOLS = specs("en")
READ = '{"name": "read", "arguments": {"file_path": "a"}}'


def rows(*kinds: str) -> list[Any]:
    return [
        pytest.param(kind, *map(json.loads, facts), id=f"{kind}-{name}") for name, kind, *facts in ROWS if kind in kinds
    ]


def read(calls: tuple[ToolCall, ...]) -> list[list[Any]]:
    return [[call.name, read_arguments(call.arguments)] for call in calls]


@pytest.fixture(scope="module")
def server() -> Iterator[WireServer]:
    with serving() as held, pytest.MonkeyPatch.context() as environment:
        environment.setenv("THERE_API_KEY", KEY)
        yield held


@pytest.mark.requirement("JIT-5", "JIT-7")
@pytest.mark.parametrize(("kind", "sent", "text", "calls"), rows("text"))
def test_a_text_is_read_as_calls_or_stays_in_whatever_pieces_it_comes(
    kind: str, sent: str, text: str, calls: list[list[Any]]
) -> None:
    for seed in range(12):
        chance, told, at = random.Random(seed), list[str](), 0
        spoken = Spoken(TOOLS, told.append)
        while at < len(sent):
            size = chance.choice([1, 1, 2, 3, 7, 50]) if seed else len(sent)
            spoken(sent[at : at + size])
            at += size
        final, found = spoken.end()
        assert (final, "".join(told), read(found)) == (text, text, calls)
        assert len({call.id for call in found}) == len(found)


@pytest.mark.requirement("JIT-5", "JIT-7")
@pytest.mark.parametrize(("kind", "sent", "text", "calls"), rows("streamed", "whole"))
def test_a_call_of_a_server_that_is_only_nearly_compatible_is_understood(
    server: WireServer, kind: str, sent: Any, text: str, calls: list[list[Any]]
) -> None:
    def act(exchange: Exchange) -> None:
        if kind == "whole":
            body = exchange.spoken.whole(Said(text="x"), "worker")
            body["choices"][0]["message"] = {"role": "assistant", **sent}
            exchange.send(200, json.dumps(body))
            return
        exchange.begin()
        for delta in sent:
            exchange.write(exchange.spoken.piece("worker", delta))  # type: ignore[call-arg]  # OpenAI only
        exchange.write(exchange.spoken.piece("worker", {}, "tool_calls"))  # type: ignore[call-arg]  # OpenAI only
        exchange.write("data: [DONE]\n\n")
        exchange.end()

    server.acts["worker"] = act
    asked = Asked(messages=(ChatMessage(role="user", text="Go."),), tools=TOOLS)
    seen = ask(models_of(server), "worker", streamed=kind == "streamed", asked=asked)
    assert seen.completion is not None, seen.error
    message = seen.completion.message
    assert (message.text, read(message.calls)) == (text, calls)
    assert len({call.id for call in message.calls if call.id}) == len(calls)


# An answer that its greatest length cut off, the text that is kept, and the call in which it ended
CUT = table(__file__, "CUT")


@pytest.mark.requirement("JIT-5")
@pytest.mark.parametrize(("sent", "text", "name"), CUT)
def test_a_call_in_which_an_answer_was_cut_off_cannot_be_read(sent: str, text: str, name: str) -> None:
    spoken = Spoken(TOOLS)
    spoken(sent)
    final, calls = spoken.end(is_cut=True)
    assert (final.strip(), [call.name for call in calls][-1:]) == (text, [name] if name else [])
    assert all(read_arguments(call.arguments) is None for call in calls[-1:])

"""Pictures and PDFs that a tool showed, in requests of both protocols; models that see none get a sentence."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from models.wire_server import WireServer, serving
from navigator_kernel.adapters.models import chat_model as model_files
from navigator_kernel.adapters.models.chat_model import CHANGED, LEFT_OUT, UNREAD, UNSEEN, WireModel
from navigator_kernel.adapters.models.providers import PICTURES, seen_by
from navigator_kernel.agent_loop.models import TextCalls
from navigator_kernel.agent_loop.window import tokens
from navigator_kernel.config.settings import ModelProvider, Models, load_settings
from navigator_kernel.errors import UsageProblem
from navigator_kernel.model_ports import ChatModel
from navigator_kernel.values.chat import PDF, Asked, ChatMessage, ShownFile, ToolCall, ToolSpec
from tools.picture_files import pdf, png

READ = ToolSpec(name="read", description="Reads")


@pytest.fixture(scope="module")
def server() -> Iterator[WireServer]:
    with serving() as held:
        yield held


def file_of(folder: Path, name: str, data: bytes, kind: str) -> ShownFile:
    path = folder / name
    path.write_bytes(data)
    return ShownFile(str(path), kind, len(data), hashlib.sha256(data).hexdigest())


def said(*files: ShownFile) -> tuple[ChatMessage, ...]:
    calls = tuple(ToolCall(id=f"call-{at}", name="read") for at in range(len(files)))
    answers = [
        ChatMessage(role="tool", text=f"file {at}", call=f"call-{at}", name="read", files=(file,))
        for at, file in enumerate(files)
    ]
    return (ChatMessage(role="user", text="What is on it?"), ChatMessage(role="assistant", calls=calls), *answers)


def sent(server: WireServer, provider: ModelProvider, *files: ShownFile, as_text: bool = False) -> list[dict[str, Any]]:
    """The messages of the request that shows `files`."""
    server.requests.clear()

    async def ask() -> None:
        wire = WireModel("there:well", Models(providers={"there": provider}, retries=0))
        model: ChatModel = TextCalls(wire) if as_text else wire
        try:
            await model.complete(Asked(messages=said(*files), tools=(READ,)))
        except Exception:
            if not as_text:  # the server's answer does not have the form that TextCalls asks for
                raise
        finally:
            await wire.close()

    asyncio.run(ask())
    return [dict(one) for one in server.requests[0].body["messages"]]


def openai(server: WireServer, *, vision: bool | None) -> ModelProvider:
    return ModelProvider(server.url, vision=vision)


def anthropic(server: WireServer, *, vision: bool | None) -> ModelProvider:
    return ModelProvider(server.url.removesuffix("/v1"), "anthropic", vision=vision)


@pytest.mark.requirement("JIT-5")
def test_a_picture_goes_as_a_data_url_in_openais_protocol(server: WireServer, tmp_path: Path) -> None:
    *_, answer, shown = sent(server, openai(server, vision=True), file_of(tmp_path, "a.png", png(), "image/png"))
    assert answer["role"] == "tool" and "file 0" in str(answer["content"])
    (picture,) = (part for part in shown["content"] if part["type"] == "image_url")
    assert picture["image_url"]["url"] == f"data:image/png;base64,{base64.b64encode(png()).decode()}"


@pytest.mark.requirement("JIT-5")
@pytest.mark.parametrize(("data", "kind", "block"), [(png(), "image/png", "image"), (pdf(), PDF, "document")])
def test_pictures_and_pdfs_are_blocks_of_the_result_in_anthropics(
    server: WireServer, tmp_path: Path, data: bytes, kind: str, block: str
) -> None:
    *_, answer = sent(server, anthropic(server, vision=True), file_of(tmp_path, "a", data, kind))
    (result,) = (part for part in answer["content"] if part["type"] == "tool_result")
    texts = [part["text"] for part in result["content"] if part["type"] == "text"]
    (shown,) = (part for part in result["content"] if part["type"] == block)
    assert texts[0] == "file 0"
    source = {"type": "base64", "media_type": kind, "data": base64.b64encode(data).decode()}
    assert {name: shown["source"][name] for name in source} == source


@pytest.mark.requirement("JIT-5")
@pytest.mark.parametrize("vision", [None, False])
@pytest.mark.parametrize("of", [openai, anthropic])
def test_a_model_without_vision_gets_a_note_in_place_of_a_picture_or_pdf(
    server: WireServer, tmp_path: Path, of: Any, vision: bool | None
) -> None:
    picture, paper = file_of(tmp_path, "a.png", png(), "image/png"), file_of(tmp_path, "a.pdf", pdf(), PDF)
    text = json.dumps(sent(server, of(server, vision=vision), picture, paper))
    assert f"file 0\\n{UNSEEN}" in text and f"file 1\\n{UNREAD}" in text and "base64" not in text


def test_one_that_only_speaks_like_openais_is_given_no_pdf(server: WireServer, tmp_path: Path) -> None:
    text = json.dumps(sent(server, openai(server, vision=True), file_of(tmp_path, "a.pdf", pdf(), PDF)))
    assert UNREAD in text and "base64" not in text


@pytest.mark.parametrize("vision", [True, False])
def test_a_model_that_calls_tools_by_a_schema_is_shown_a_picture_too(
    server: WireServer, tmp_path: Path, vision: bool
) -> None:
    file = file_of(tmp_path, "a.png", png(), "image/png")
    text = json.dumps(sent(server, openai(server, vision=vision), file, as_text=True))
    assert ("data:image/png;base64," in text, UNSEEN in text) == (vision, not vision)


@pytest.mark.requirement("SAF-2")
@pytest.mark.parametrize("what", ["changed", "gone", "link", "folder", "longer"])
def test_a_file_is_sent_only_while_it_is_the_one_that_was_read(server: WireServer, tmp_path: Path, what: str) -> None:
    file, path = file_of(tmp_path, "a.png", png(), "image/png"), tmp_path / "a.png"
    (tmp_path / "same.png").write_bytes(png())
    if what in {"changed", "longer"}:
        path.write_bytes(png(5, 5) if what == "changed" else png() + b"x")
    else:
        path.unlink()
    if what == "link":
        path.symlink_to(tmp_path / "same.png")
    if what == "folder":
        path.mkdir()
    text = json.dumps(sent(server, openai(server, vision=True), file))
    assert CHANGED in text and "base64" not in text


def test_the_newest_files_fit_one_request(server: WireServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = (file_of(tmp_path, name, png(size, 1), "image/png") for name, size in (("old.png", 3), ("new.png", 4)))
    monkeypatch.setattr(model_files, "MOST", new.size + old.size - 1)
    messages = sent(server, openai(server, vision=True), old, new)
    text = json.dumps(messages)
    assert f"file 0\\n{LEFT_OUT}" in text and base64.b64encode(png(4, 1)).decode() in text
    assert text.count("base64,") == 1


@pytest.mark.parametrize(
    ("provider", "sees", "reads"),
    [("anthropic", True, True), ("openai", True, True), ("google", True, True), ("deepseek", False, False),
     ("ollama", False, False), ("mine", False, False), ("mine-sees", True, False), ("mine-anthropic", True, True)],
)  # fmt: skip
def test_the_file_types_of_a_model_follow_from_its_provider_or_its_settings(
    provider: str, sees: bool, reads: bool
) -> None:
    models = Models(
        providers={
            "mine": ModelProvider("http://127.0.0.1:1/v1"),
            "mine-sees": ModelProvider("http://127.0.0.1:1/v1", vision=True),
            "mine-anthropic": ModelProvider("http://127.0.0.1:1", "anthropic", vision=True),
        }
    )
    taken = seen_by(provider, models)
    assert (taken >= PICTURES, PDF in taken) == (sees, reads)


@pytest.mark.parametrize(("value", "vision"), [("true", True), ("false", False)])
def test_the_persons_settings_say_whether_a_service_sees(home: Path, tmp_path: Path, value: str, vision: bool) -> None:
    mine = home / ".config/navigator/config.toml"
    mine.parent.mkdir(parents=True)
    mine.write_text(f'[models.providers.mine]\nurl = "http://127.0.0.1:1/v1"\nvision = {value}\n')
    assert load_settings(tmp_path).models.providers["mine"].vision is vision


@pytest.mark.parametrize("line", ['vision = "yes"', "vision = 1", "url = true", "key = false"])
def test_a_word_of_another_type_is_an_error(home: Path, tmp_path: Path, line: str) -> None:
    mine = home / ".config/navigator/config.toml"
    mine.parent.mkdir(parents=True)
    url = "" if line.startswith("url") else 'url = "http://127.0.0.1:1/v1"\n'
    mine.write_text(f"[models.providers.mine]\n{url}{line}\n")
    with pytest.raises(UsageProblem):
        load_settings(tmp_path)


def test_a_message_is_kept_without_the_bytes_of_its_files(tmp_path: Path) -> None:
    *_, message = said(file_of(tmp_path, "a.png", png(40, 40), "image/png"))
    kept = message.to_dict()
    assert msgspec.convert(json.loads(json.dumps(kept)), ChatMessage) == message
    assert len(json.dumps(kept)) < 500 and tokens(message) > 1_600

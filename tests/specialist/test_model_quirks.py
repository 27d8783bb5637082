"""What models and their servers send otherwise than asked: what the person sees, what is kept, the exit code."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cli.support import Place
from models.wire_server import Answer, Exchange, Said, WireServer
from person_state import accept
from specialist.turns import events, of_phase_two, says, settings

pytestmark = pytest.mark.ci

FENCE = "```"
RHYMES, READ = "     1\tboat, float", '{"name": "read", "arguments": {"file_path": "rhymes.md"}}'
DONE = Said(text="Done.")


class Quirk(NamedTuple):
    """One row: what the server sends first, then; the text for the person; the tools' names and arguments as they are
    kept and what they answered; the exit code; whether only servers of OpenAI's protocol do this."""

    name: str
    first: Said | Answer
    seen: str = "Done."
    called: Sequence[tuple[str, dict[str, Any]]] = ()
    answers: Sequence[str] = ()
    code: int = 0
    openai_only: bool = False


def calls(*calls: tuple[str, Any]) -> Said:
    return Said(calls=[(name, args if isinstance(args, str) else json.dumps(args)) for name, args in calls])


def pieces(*deltas: dict[str, Any]) -> Answer:
    """A server of OpenAI's protocol that streams these pieces of a message, then nothing else."""

    def answer(exchange: Exchange) -> None:
        exchange.begin()
        for delta in deltas:
            exchange.write(exchange.spoken.piece("worker", delta))  # type: ignore[call-arg]  # OpenAI only
        exchange.write(exchange.spoken.piece("worker", {}, "stop"))  # type: ignore[call-arg]  # OpenAI only
        exchange.write("data: [DONE]\n\n")
        exchange.end()

    return answer


def tool(name: str | None, arguments: Any, **facts: Any) -> dict[str, Any]:
    return {"tool_calls": [{**facts, "function": {"name": name, "arguments": arguments}}]}


def whole(body: dict[str, Any]) -> Answer:
    return lambda exchange: exchange.send(200, json.dumps(body))


def event(body: dict[str, Any]) -> Answer:
    def answer(exchange: Exchange) -> None:
        exchange.begin()
        exchange.write(f"data: {json.dumps(body)}\n\n")
        exchange.end()

    return answer


RHYME = ("read", {"file_path": "rhymes.md"})
WRITE = ("write", {"file_path": "song.md", "content": "a boat"})
CUT = "your answer was cut off at its greatest length"
LIMITED = {"error": {"code": 404, "message": "no endpoint for this model"}}

QUIRKS = (
    Quirk("Claude Code's names", calls(("Read", {"file_path": "rhymes.md"})), called=[RHYME], answers=[RHYMES]),
    Quirk("Gemini's names", calls(("read_file", {"absolute_path": "rhymes.md"})), called=[RHYME], answers=[RHYMES]),
    Quirk("a server's names", calls(("mcp__filesystem__read_text_file", {"path": "rhymes.md"}), ("read_file_tool", {"path": "rhymes.md"})), called=[RHYME, RHYME], answers=[RHYMES, RHYMES]),
    Quirk("a namespace", calls(("functions.read", {"path": "rhymes.md"})), called=[RHYME], answers=[RHYMES]),
    Quirk(
        "a text editor with a command",
        calls(("str_replace_based_edit_tool", {"command": "view", "path": "rhymes.md", "view_range": [1, 1]})),
        called=[("read", {"file_path": "rhymes.md", "offset": 1, "limit": 1})],
        answers=[RHYMES],
    ),
    Quirk(
        "numbers as text, extra arguments, null",
        calls(("read", {"file_path": "rhymes.md", "offset": "1", "limit": None, "description": "Reads rhymes"})),
        called=[("read", {"file_path": "rhymes.md", "offset": 1})],
        answers=[RHYMES],
    ),
    Quirk(
        "an unknown argument",
        calls(("read", {"file_path": "rhymes.md", "colour": "blue"})),
        called=[("read", {"file_path": "rhymes.md", "colour": "blue"})],
        answers=['unknown: colour (read takes file_path, offset, limit; for example: read {"file_path": "notes.txt"'],
    ),
    Quirk("a plan", calls(("TodoWrite", {"todos": [{"content": "rhyme"}]})), called=[("TodoWrite", {"todos": [{"content": "rhyme"}]})], answers=["noted; go on"]),
    Quirk("another case", calls(("read", {"file_path": "RHYMES.md"})), called=[("read", {"file_path": "RHYMES.md"})], answers=[RHYMES]),
    Quirk(
        "a path of Claude's own folders",
        calls(("read", {"file_path": "/mnt/skills/public/song-writer/rhymes.md"}), ("read", {"file_path": "file://./rhymes.md"})),
        called=[("read", {"file_path": "/mnt/skills/public/song-writer/rhymes.md"}), ("read", {"file_path": "file://./rhymes.md"})],
        answers=[RHYMES, RHYMES],
    ),
    Quirk("a file that is not there", calls(("read", {"file_path": "rhyme.md"})), called=[("read", {"file_path": "rhyme.md"})], answers=["song-writer: rhymes.md, SKILL.md"]),
    Quirk("Hermes", Said(text=f"I look.\n<tool_call>\n{READ}\n</tool_call>"), seen="I look.", called=[RHYME], answers=[RHYMES]),
    Quirk("Llama", Said(text='<function=read>{"file_path": "rhymes.md"}</function>'), called=[RHYME], answers=[RHYMES]),
    Quirk(
        "XML",
        Said(text='<function_calls>\n<invoke name="Read">\n<parameter name="file_path">rhymes.md</parameter>\n</invoke>\n</function_calls>'),
        called=[RHYME],
        answers=[RHYMES],
    ),
    Quirk("JSON alone", Said(text='{"tool": "read", "arguments": {"file_path": "rhymes.md"}}'), called=[RHYME], answers=[RHYMES]),
    Quirk("JSON in a fence", Said(text=f"I look.\n{FENCE}json\n{READ}\n{FENCE}\n"), seen="I look.", called=[RHYME], answers=[RHYMES]),
    Quirk("JSON as an example", Said(text=f"A call looks like this:\n{FENCE}json\n{READ}\n{FENCE}"), seen=f"A call looks like this:\n{FENCE}json\n{READ}\n{FENCE}"),
    Quirk("markup in a code block", Said(text=f"So:\n{FENCE}\n<tool_call>{READ}</tool_call>\n{FENCE}"), seen=f"So:\n{FENCE}\n<tool_call>{READ}</tool_call>\n{FENCE}"),
    Quirk("a thought", Said(text="<think>The person wants a song.</think>\n\nRow, row."), seen="Row, row."),
    Quirk("a thought without an end", Said(text="<thinking>The person wants"), seen="", code=1),
    Quirk("arguments of nothing", calls(("list", "null"), ("list", "")), called=[("list", {}), ("list", {})], answers=["rhymes.md", "rhymes.md"], openai_only=True),
    Quirk(
        "a patch of Codex",
        calls(("apply_patch", {"input": "*** Begin Patch\n*** Add File: song.md\n+a boat\n*** End Patch\n"})),
        called=[("write", {"file_path": "song.md", "content": "a boat\n"})],
        answers=["wrote"],
    ),
    Quirk("a cut call", calls(WRITE)._replace(finish="length"), answers=[CUT]),
    Quirk("a cut call after a whole one", calls(RHYME, WRITE)._replace(finish="length"), called=[RHYME], answers=[RHYMES, CUT]),
    Quirk(
        "a cut call in the text",
        Said(text='I write.\n<function=write>\n<parameter=file_path>song.md</parameter>\n<parameter=content>\na bo', finish="length"),
        seen="I write.",
        answers=[CUT],
    ),
    Quirk("a bracket too few", Said(text=f"<tool_call>{READ[:-1]}</tool_call>"), called=[("read", {})], answers=["not a JSON object"]),
    Quirk("DeepSeek", Said(text=f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read\n{FENCE}json\n{READ[29:-1]}\n{FENCE}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"), called=[RHYME], answers=[RHYMES]),
    Quirk("a document with a call", Said(text=f"# Forms\n\nHermes:\n\n<tool_call>{READ}</tool_call>\n\nThat was it."), seen=f"# Forms\n\nHermes:\n\n<tool_call>{READ}</tool_call>\n\nThat was it."),
    Quirk("commas at the end", calls(("read", '{"file_path": "rhymes.md",}')), called=[RHYME], answers=[RHYMES], openai_only=True),
    Quirk("a fence around arguments", calls(("read", f'{FENCE}json\n{{"file_path": "rhymes.md"}}\n{FENCE}')), called=[RHYME], answers=[RHYMES], openai_only=True),
    Quirk(
        "every call with index 0",
        pieces(
            tool("read", '{"file_path": "rhymes.md"}', index=0, id="a"),
            tool("list", "{}", index=0, id="b"),
        ),
        called=[RHYME, ("list", {})],
        answers=[RHYMES, "rhymes.md"],
        openai_only=True,
    ),
    Quirk(
        "one id for two calls",
        pieces(tool("read", '{"file_path": "rhymes.md"}', index=0, id="a"), tool("list", "{}", index=1, id="a")),
        called=[RHYME, ("list", {})],
        answers=[RHYMES, "rhymes.md"],
        openai_only=True,
    ),
    Quirk(
        "no ids, and arguments as an object",
        pieces(tool("read", {"file_path": "rhymes.md"}, index=0), tool("list", {}, index=0)),
        called=[RHYME, ("list", {})],
        answers=[RHYMES, "rhymes.md"],
        openai_only=True,
    ),
    Quirk("an error with status 200", whole(LIMITED), seen="", code=1, openai_only=True),
    Quirk("an error as the first event", event(LIMITED), seen="", code=1, openai_only=True),
    Quirk("a refusal", pieces({"refusal": "I can't "}, {"refusal": "help with that."}), seen="", code=1, openai_only=True),
)  # fmt: skip
WORDS = {  # what the person is told if there is no answer
    "a thought without an end": "its answer was empty",
    "an error with status 200": "no such model",
    "an error as the first event": "no endpoint for this model",
    "a refusal": 'it refuses: "I can\'t help with that."',
}
ROWS = [
    pytest.param(kind, quirk, id=f"{kind}-{quirk.name}")
    for quirk in QUIRKS
    for kind in ("openai", "anthropic")
    if kind == "openai" or not quirk.openai_only
]


@pytest.mark.requirement("JIT-5", "JIT-7", "TOL-9")
@pytest.mark.parametrize(("kind", "quirk"), ROWS)
def test_a_quirk_of_a_model_is_understood(here: Place, mine: Path, server: WireServer, kind: str, quirk: Quirk) -> None:
    here.write({".claude/skills/song-writer/rhymes.md": "boat, float\n"})
    accept(here.root, "song-writer")
    url = server.url if kind == "openai" else server.url.removesuffix("/v1")
    mine.write_text(settings(server).replace(server.url, url) + f'kind = "{kind}"\n')
    answers(server, quirk.first)
    try:
        told = here.json("ask", "/song-writer a song")
    finally:
        server.acts.clear()
    assert told["exit_code"] == quirk.code, told["report"]
    streamed = "".join(one["data"]["text"] for one in events(here, told["run"]) if one["type"] == "RunContent")
    raw = told["report"].get("raw") or ""
    if not quirk.code:  # an error is told as text, too
        assert streamed.replace("\n", "") == raw.replace("\n", "")  # rounds may be set apart
    assert raw.removesuffix("Done.").strip() == quirk.seen.removesuffix("Done.").strip()
    assert WORDS.get(quirk.name, "") in json.dumps(told["report"]).replace('\\"', '"')
    started = [one["data"] for one in events(here, told["run"]) if one["type"] == "ToolCallStarted"]
    assert [(one["tool"], one["args"]) for one in started] == list(quirk.called)
    kept = results(of_phase_two(server)[-1]["messages"])
    assert len(kept) == len(quirk.answers)
    assert all(wanted in text for wanted, text in zip(quirk.answers, kept, strict=True)), kept


def answers(server: WireServer, first: Said | Answer) -> None:
    """The first answer is the quirk; after tools the model is done."""
    server.scripts["worker"] = lambda _messages, _number: DONE
    server.acts["worker"] = (lambda exchange: exchange.say(first)) if isinstance(first, Said) else first


def results(messages: Sequence[Any]) -> list[str]:
    """The results of tools in a request, of either protocol; OpenAI's has an error as `{"error": …}`."""
    found = [str(one["content"]) for one in messages if one["role"] == "tool"]
    blocks = [block for one in messages if isinstance(one["content"], list) for block in one["content"]]
    for block in blocks:
        if block.get("type") == "tool_result":
            inner = block["content"]
            found.append(inner if isinstance(inner, str) else "".join(part.get("text", "") for part in inner))
    return [json.loads(text)["error"] if text.startswith('{"error":') else text for text in found]


@pytest.mark.requirement("JIT-12", "TOL-9")
def test_a_call_in_another_agents_name_is_asked_about_and_recorded_as_the_kernels_own(
    here: Place, server: WireServer
) -> None:
    line = "echo hello | tee said.txt"
    named, own = calls(("Bash", {"cmd": line, "description": "lists"})), calls(("run", {"command": line}))
    says(server, named, DONE)
    waits = here.json("ask", "--session", "s", "/song-writer a song")
    assert waits["exit_code"] == 9 and line in waits["report"]["summary"] and "lists" not in waits["report"]["summary"]
    says(server, named, own, DONE)
    told = here.json("ask", "--session", "s", "no, not that")
    assert told["exit_code"] != 9  # the same command is not asked about under its other name
    assert "Bash" not in here.run("log").out
    assert not list((here.root / "mybox/workspace").rglob("said.txt"))


@pytest.mark.requirement("JIT-5")
def test_a_denied_tool_stays_denied_under_every_name(here: Place, mine: Path, server: WireServer) -> None:
    mine.write_text(f'{settings(server)}\n[policy]\ndeny = ["tool:run"]\n')
    says(server, *(calls((name, {"command": "ls"})) for name in ("Bash", "shell", "functions.run")), DONE)
    told = here.json("ask", "/song-writer a song")
    assert told["exit_code"] != 9
    assert all("there is no tool called" in text for text in results(of_phase_two(server)[-1]["messages"])[:2])

"""Turns of many kinds over AG-UI, each recorded as the client gets it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.ag_ui import Event, asked, events, interrupts, of_kind, resumed
from gateway.served import Person, Served
from models.wire_server import HELLO, Said, WireServer
from person_state import accept
from specialist.turns import says
from workflows.project import SKILLS, put_skill, workflow_file

OWN = ("shout-loud", "count-terms", "fail-hard")


def prepared(person: Person) -> Person:
    """Adds skills that run a command, and a workflow of three steps."""
    root = person.here.root
    for name in OWN:
        put_skill(root, name, SKILLS[name])
    steps = (
        ("shout-loud", "/shout-loud one two"),
        ("count-terms", "/count-terms one two"),
        ("shout-loud", "/shout-loud three"),
    )
    workflow_file(root, "thrice", *steps)
    accept(root, *OWN)
    return person


ASKING = {
    "a skill with a command": "/shout-loud one two",
    "a command that fails": "/fail-hard now",
    "a command that a person typed": "!echo hello",
    "a workflow that stops before its first step": "#thrice",
    "a plan of three steps": "1. /shout-loud one\n2. /count-terms one two\n3. /shout-loud two",
}


def turn(
    served: Served, model: WireServer, body: str | Mapping[str, Any], *script: Said, role: str = "admin"
) -> list[Event]:
    """The events of a turn in which the model says `script`."""
    model.requests.clear()
    says(model, *(script or (HELLO,)))
    return events(served, asked(body) if isinstance(body, str) else body, role=role)


def waiting_task(served: Served, model: WireServer, role: str = "admin") -> tuple[str, list[Event]]:
    """A thread that waits for approval to delete a task, and its events."""
    made = turn(
        served, model, "/task_manager create it", calls("task_create", title="old"), Said(text="done"), role=role
    )
    task = json.loads(of_kind(made, "TOOL_CALL_RESULT")[0]["content"])["id"]
    body = asked(f"/task_manager delete task {task}")
    held = turn(served, model, body, calls("task_delete", task_id=task), Said(text="deleted"), role=role)
    return body["threadId"], held


def resume(served: Served, model: WireServer, body: Mapping[str, Any], role: str = "admin") -> list[Event]:
    """The events of a turn that continues after the model's call."""
    model.requests[:] = model.requests[-1:]
    return events(served, body, role=role)


def calls(tool: str, text: str = "", **arguments: Any) -> Said:
    return Said(text=text, calls=[(tool, json.dumps(arguments))])


def answered(held: Sequence[Event], thread: str, **entry: Any) -> dict[str, Any]:
    """The request that answers the interrupt at the end of `held`, from a client that includes its tool call."""
    made = of_kind(held, "TOOL_CALL_START")
    said = [
        {
            "id": str(call["toolCallId"]),
            "role": "assistant",
            "toolCalls": [
                {
                    "id": call["toolCallId"],
                    "type": "function",
                    "function": {"name": call["toolCallName"], "arguments": ""},
                }
            ],
        }
        for call in made
    ]
    return {**resumed(thread, interrupts(held)[0]["id"], **entry), "messages": said}


def recorded(served: Served, model: WireServer) -> dict[str, list[Event]]:
    """Recorded turns, by what they show."""
    withheld = Said(finish="content_filter")
    held = {
        "a shipped skill with a command": turn(served, model, "/word-count one two three"),
        "a prompt skill": turn(served, model, "/song-writer the moon", Said(text="The moon is a boat, afloat.")),
        "a prompt skill with a tool": turn(
            served, model, "/task_manager create it", calls("task_create", "I make it.", title="new"), Said(text="done")
        ),
        "two tools, one after another": turn(
            served,
            model,
            "/task_manager 创建两个任务",
            calls("task_create", title="会议"),
            calls("task_create", title="报告"),
            Said(text="已创建。"),
        ),
        "a tool that is not offered": turn(
            served, model, "/task_manager remove all", calls("format_disk", disk="a"), Said(text="I cannot do that.")
        ),
        "small talk": turn(served, model, "hello, how are you?"),
        "small talk in Chinese": turn(served, model, "你好，今天过得怎么样？", Said(text="你好！我很好。")),
        "a question for what is missing": turn(served, model, "/shout-loud"),
        "a skill that is not there": turn(served, model, "/no-such-skill hello"),
        "a model that fails": turn(served, model, "/song-writer the moon", withheld),
        "a model that fails in the middle": turn(
            served, model, "/task_manager create it", calls("task_create", "I make it.", title="half"), withheld
        ),
    }
    for name, text in ASKING.items():
        body = asked(text)
        held[name] = turn(served, model, body)
        held[f"{name}, after a yes"] = turn(served, model, answered(held[name], body["threadId"], payload=True))
    for word, payload in (("yes", {"approved": True}), ("no", False)):
        thread, held[f"a deletion before a {word}"] = waiting_task(served, model)
        held[f"a deletion after a {word}"] = resume(
            served, model, answered(held[f"a deletion before a {word}"], thread, payload=payload)
        )
    return held

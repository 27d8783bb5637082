"""A project in use: sessions, a pending approval, a workflow, tasks and notes."""

from __future__ import annotations

import json

from gateway.served import Served
from models.wire_server import Said, WireServer
from specialist.turns import says

FLOW = "count the words in: one two three, and then count the words in: four five"
ANSWER = """Here is what I changed:

1. The **opening** names the boat.
2. Every line rhymes.

| line | words |
|---|---|
| first | 7 |
| second | 6 |

```python
print("ahoy")
```
"""
TASKS = (("Write the report", 1), ("Call the harbour", 3), ("买牛奶", 2))


def fill(served: Served, model: WireServer) -> None:
    """Uses every part of the page once."""
    with served.client() as client:
        for title, priority in TASKS:
            client.post("/api/tasks", json={"title": title, "priority": priority}).raise_for_status()
        note = {"title": "Harbours", "content": "The **north** pier is closed."}
        client.post("/api/notes", json=note).raise_for_status()
    served.chat("/word-count one two three four", "words")
    model.requests.clear()
    says(model, Said(text=ANSWER))
    served.chat("/song-writer a song about a boat", "boats")
    model.requests.clear()
    says(model, Said(calls=[("task_delete", json.dumps({"task_id": 1}))]), Said(text="deleted"))
    served.chat("/task_manager delete task 1", "tidy")
    served.chat(FLOW, "flow")

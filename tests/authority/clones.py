"""A clone that another person made, a person with a model and an MCP server, and the input that both received."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cli.support import SOURCE, Place, below, type_a
from models.wire_server import Said, WireServer
from skill_repositories import commit, git, make_repo, skill_text

SERVER = str(SOURCE / "tests" / "mcp_client" / "hostile_server.py")
TOOL = "there__echo"
WORDS = "from afar"  # argument of the model's tool call, which the tool repeats
ECHO_USER = skill_text("echo-user", "says it again", f"tools: [{TOOL}]\n")
OTHER_TEXT = skill_text("other-skill", "says something else").replace("Do it.", "Steer the model.")
FILES = {
    ".claude/skills/echo-user/SKILL.md": ECHO_USER,
    ".claude/skills/other-skill/SKILL.md": OTHER_TEXT,
    **below(".claude/skills/greeter", type_a("greeter", "print('hello')\n")),
    "notes.txt": "the notes of the person",
}


def clone_of(tmp_path: Path, files: dict[str, str]) -> Place:
    """Clones a repository with `files`."""
    source = make_repo(tmp_path, dict(files), name="author")
    git(tmp_path, "clone", "--quiet", f"file://{source}", str(tmp_path / "clone"))
    return Place(root=tmp_path / "clone")


def pulled(place: Place, tmp_path: Path, files: dict[str, str]) -> None:
    """Commits `files` as the author, and pulls them into the clone."""
    commit(tmp_path / "author", dict(files))
    git(place.root, "pull", "--quiet")


def sets_model(server: WireServer, *calls: tuple[str, str]) -> None:
    """Sets a model for the person; it makes `calls` one after another and then repeats the last tool's answer."""
    file = Path(os.environ["XDG_CONFIG_HOME"]) / "navigator" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    url = f'[models.providers.there]\nurl = "{server.url}"\n'
    file.write_text(f'router = "local_only"\n[models]\ndefault = "there:worker"\nretries = 0\n{url}')
    wanted = calls or ((TOOL, json.dumps({"words": WORDS})),)
    server.requests.clear()

    def worker(messages: Sequence[Any], _number: int) -> Said:
        begun = max(at for at, one in enumerate(messages) if one["role"] == "user")
        answered = [one for one in messages[begun:] if one["role"] == "tool"]
        if len(answered) < len(wanted):
            return Said(calls=[wanted[len(answered)]])
        return Said(text=f"It said: {answered[-1]['content']}")

    server.scripts["worker"] = worker


def adds_server(place: Place, mode: str = "reads", *options: str) -> None:
    """Adds the person's own server and approves its tools."""
    place.said("mcp", "add", "there", *options, "--", sys.executable, SERVER, mode)
    place.said("mcp", "approve", "there", *(["--yes"] if options else []))


def started(place: Place) -> list[str]:
    """The skills and tools that were started, according to the record."""
    entries = place.json("log")["entries"]
    return [str(one["subject"]) for one in entries if one["event"] == "started" and one.get("actor") != "mcp_server"]

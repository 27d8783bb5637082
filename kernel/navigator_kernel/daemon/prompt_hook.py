"""The hook that a coding agent runs for each message: it prints matching skills, or nothing.

It reads the hook's JSON from stdin (`prompt`, `cwd` or Cursor's `workspace_roots`, `hook_event_name`), asks the
project's resident process, and prints the text to add to the context. On any failure it prints nothing and exits with
0. The first message of a session starts the process and waits for it up to FIRST_PATIENCE; each later message waits up
to PATIENCE.
"""

from __future__ import annotations

import json
import os
import sys

from navigator_kernel.config.project_root import nearest
from navigator_kernel.daemon.client import ask

LONGEST = 1024 * 1024  # bytes of the host's input, message included
PATIENCE = 0.06  # seconds to wait for an answer
FIRST_PATIENCE = 2.5  # seconds if the process had to be started: at the first message of a session
SHOWN = 3  # skills in a hint


def main() -> None:
    try:
        said = _said(sys.stdin.buffer.read(LONGEST))
        if said:
            sys.stdout.write(said + "\n")
            sys.stdout.flush()
    except BaseException:  # noqa: BLE001, S110 - the host continues without a hint
        pass
    os._exit(0)


def _said(data: bytes) -> str:
    """What the host adds to the context, in the form that it reads; empty if there is nothing to say."""
    held = json.loads(data)
    event = str(held.get("hook_event_name") or "UserPromptSubmit")
    is_compacted = event == "SessionStart" and held.get("source") == "compact"
    text, folder = (
        "" if is_compacted else held["prompt"],
        held.get("cwd") or (held.get("workspace_roots") or [os.curdir])[0],
    )
    is_kimi = isinstance(text, list) or str(held.get("client_type")).startswith("kimi")
    if isinstance(text, list):  # Kimi Code sends a message in parts
        text = " ".join(part["text"] for part in text if part.get("type") == "text")
    root = os.environ.get("NAVIGATOR_ROOT") or nearest(os.path.realpath(folder))
    if not (text.strip() or is_compacted) or not os.path.isdir(root):  # noqa: PTH112 - importing pathlib takes 4 ms
        return ""
    session = str(held.get("session_id") or "")[:200]
    if is_compacted:
        found = ask("", root, 5, PATIENCE, session=session) if session else None
    else:
        found = ask(text, root, 5, PATIENCE, session=session, start=True, wait=FIRST_PATIENCE)
    hint = render_hint(found, is_compacted=is_compacted) if found else ""
    if not hint or is_kimi:  # it adds plain text to the context (docs/en/customization/hooks.md of kimi-code)
        return hint
    if event == "beforeSubmitPrompt":  # Cursor, since 3.20; docs/cursor-hooks.md of ponytail read it in the client
        return json.dumps({"continue": True, "additional_context": hint})
    return json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": hint}})


def render_hint(found: dict[str, object], *, is_compacted: bool = False) -> str:
    """The text with the skill that fits, or with up to SHOWN that may fit, one per line; empty if there is none. If the
    host has compacted its context, the skill is the last one that fitted in the session, and the open steps of a
    workflow that is under way in the project are named."""
    options, skill = found.get("options"), found.get("entity")
    taken = found.get("kind") == "skills" and isinstance(skill, str)
    names = [skill] if taken else options if isinstance(options, list) else []
    shown = [name for name in map(str, names[:SHOWN]) if name.isprintable() and len(name) <= 64]
    steps, run = found.get("steps") if is_compacted else None, found.get("run")
    steps = (
        [step for step in map(str, steps) if step.isprintable() and len(step) <= 100] if isinstance(steps, list) else []
    )
    if not (shown or steps):
        return ""
    how = "load it with the tool load_skill of the MCP server navigator and follow it"
    if is_compacted:
        last = f" The last skill of this session is {shown[0]}. If its task has open steps, {how}." if shown else ""
        work = (
            f" Workflow run {run} has open steps: {', '.join(steps)}. navigator workflow resume {run} goes on."
            if steps
            else ""
        )
        return f"Navigator: the context was compacted.{last}{work}"
    if taken:
        return f"Navigator: the installed skill {shown[0]} fits this message. Before anything else, {how}."
    listed = "".join(f"\n- {name}" for name in shown)
    return f"Navigator: these installed skills may fit this message. Where one does, {how}.{listed}"


if __name__ == "__main__":
    main()

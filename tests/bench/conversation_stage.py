"""A project in which a conversation is brought into a state: skills that count their runs, a scripted model, effects.

Everything is real but the model: the command line, the sandbox, approvals, the tools. The effects are counted where no
answer can reach them: in files that only the stubs write.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

from cli.support import MODULE, Place, environment
from gateway.served import Person, Served
from gateway.served import serving as gateway_serving
from homes import XDG_FOLDERS, fill
from models.wire_server import Said, WireServer
from tables import table

CACHE = Path(".local/state/navigator/cache")  # grows with use and says nothing about a conversation
MODEL = "scripted"
MARK = "stub:"  # begins the line of a prompt skill's text that the scripted model reads
SECONDS = 60.0  # that one command may take
FILES: dict[str, str] = table(__file__, "FILES")
RUN = """\
import json, os, sys, time
from pathlib import Path

name = Path(__file__).parent.name
with open("ran.jsonl", "a") as file:
    file.write(json.dumps({"at": time.time_ns(), "name": name, "input": sys.argv[1:]}) + "\\n")
broken = Path(PROJECT) / "broken.txt"
if broken.exists():
    sys.exit(broken.read_text())
print(json.dumps({"summary": f"{name} done: " + " ".join(sys.argv[1:])[:200]}))
"""
AGENT = '''\
"""Tools with effects outside the workspace, which are counted in a file outside the project."""

import json
import time
from pathlib import Path

from navigator_kernel.hookspecs import hookimpl
from navigator_kernel.tools.factory import ToolFactory

EFFECTS = Path(BASE) / "effects.jsonl"
SLOW = Path(BASE) / "slow"


def _done(name, **given):
    with EFFECTS.open("a") as file:
        file.write(json.dumps({"at": time.time_ns(), "name": name, "input": given}) + "\\n")
    if SLOW.exists():
        time.sleep(60)


def send_mail(to: str, subject: str) -> str:
    _done("send_mail", to=to, subject=subject)
    return f"sent to {to}"


def run_on_server(command: str) -> str:
    _done("run_on_server", command=command)
    return f"done: {command}"


def scan_files(count: int) -> str:
    _done("scan_files", count=count)
    return f"{count} files scanned"


@hookimpl
def kernel_register_tools(root):
    make = ToolFactory().from_crud
    return [
        make(send_mail, "send_mail", "Sends a mail", effects=("toast:sent",), confirm="Send mail to {to}?"),
        make(run_on_server, "run_on_server", "Runs a command on the production server", effects=("toast:done",),
             confirm="Run `{command}` on the production database?"),
        make(scan_files, "scan_files", "Scans files"),
    ]
'''


Calls = Sequence[tuple[str, Mapping[str, Any]]]  # tools with their arguments


class Skill(NamedTuple):
    """A stub. `arguments` end the line of its command; without a command, `calls` are those of the model that works on
    it, as `(tool, arguments)`, and `more` are further lines of the manifest."""

    name: str
    description: str
    arguments: str = "{request}"
    calls: Calls = ()
    more: str = ""


class Effect(NamedTuple):
    """One run of a stub, in the order in which they happened."""

    at: int
    name: str
    input: Any


class SetupFailed(Exception):
    """The state of a row could not be reached."""


class Stage:
    """A home, a project and a model server. `build` makes a project; `restore` puts everything back as it was then.
    `calls` are what the scripted model does for each skill."""

    def __init__(self, base: Path, server: WireServer, surface: str = "ask") -> None:
        self.base, self.server = base, server
        self.home, self.place = base / "home", Place(root=base / "project")
        self._kept = base / "kept"
        self.sessions = 0
        self.calls: dict[str, Calls] = {}
        self.hang = False  # whether the model takes long to read the result of a call
        self.surface: Surface = {"ask": CommandLine, "chat": Chat, "http": Gateway}[surface](self)

    def build(
        self,
        skills: Sequence[Skill],
        *,
        model: bool,
        settings: str = "",
        warm: Sequence[str] = (),
    ) -> None:
        """Makes the project with `skills`, all trusted; `warm` are messages that are routed once, so that the index is
        made. The skills that are shipped are disabled, but for those with the name of a stub, which it replaces."""
        self.home.mkdir(parents=True)
        fill(self.home, {})
        self._enter()
        root = self.place.root
        (root / "mybox").mkdir(parents=True)
        config = self.home / ".config/navigator/config.toml"
        config.parent.mkdir(parents=True)
        served = (
            f'[models]\ndefault = "there:{MODEL}"\nretries = 0\n[models.providers.there]\nurl = "{self.server.url}"\n'
        )
        config.write_text(f'router = "local_only"\n{settings}{served if model else ""}')
        shipped = [one["name"] for one in self.place.json("skill", "list")["skills"]]
        names = {skill.name for skill in skills}
        for name in sorted(set(shipped) - names):
            self.place.said("skill", "disable", name)
        self.place.write({**FILES, **{path: text for skill in skills for path, text in self._texts(skill).items()}})
        if any(skill.calls for skill in skills):
            self.place.write({"agents/office/agent.py": AGENT.replace("BASE", repr(str(self.base)))})
            self.place.said("plugin", "trust", "agents")
        for skill in skills:
            if "network" not in skill.more:  # the question of those is about the network, and trust would answer it
                self.place.said("skill", "trust", skill.name)
        self.calls = {skill.name: skill.calls for skill in skills if skill.calls}
        for message in warm:
            self.place.run("route", message)
        self.place.run("ask", "--yes", "!true")  # finds out once which sandbox works here
        shutil.copytree(self.home, self._kept / "home", symlinks=True, ignore=_but_cache(self.home))
        shutil.copytree(root, self._kept / "project", symlinks=True)

    def _enter(self) -> None:
        """Makes the home that of this process and its commands."""
        for name in [name for name in os.environ if name.startswith(("NAVIGATOR_", "GIT_"))]:
            del os.environ[name]
        os.environ |= {"HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1", "NO_COLOR": "1"}
        os.environ |= {name: str(self.home / below) for name, below in XDG_FOLDERS.items()}
        os.environ["GIT_CONFIG_GLOBAL"] = str(self.home / ".gitconfig")

    def _texts(self, skill: Skill) -> dict[str, str]:
        folder, head = f".claude/skills/{skill.name}", f"name: {skill.name}\ndescription: {skill.description}\n"
        if skill.calls:
            text = f"---\n{head}{skill.more}---\n# {skill.name}\n\n{MARK} {skill.name}\n"
            return {f"{folder}/SKILL.md": text}
        command = f"command: python ${{SKILL_ROOT}}/run.py {skill.arguments}\n"
        text = f"---\n{head}{command}reads: project\n{skill.more}---\n# {skill.name}\n\nRuns.\n"
        script = RUN.replace("PROJECT", repr(str(self.place.root)))
        return {f"{folder}/SKILL.md": text, f"{folder}/run.py": script}

    def restore(self) -> str:
        """Puts home and project back as `build` left them; the project's folder stays, since it is part of its
        identity. Returns the name of a new session."""
        self.surface.close()  # a server that runs may not see its files replaced
        self._enter()
        self.server.scripts[MODEL] = self._answer
        _refill(self.home, self._kept / "home", keep=CACHE)
        _refill(self.place.root, self._kept / "project")
        for name in ("effects.jsonl", "slow"):
            (self.base / name).unlink(missing_ok=True)
        self.server.requests.clear()
        self.sessions += 1
        return f"row-{self.sessions}"

    def _answer(self, messages: Sequence[Mapping[str, Any]], _number: int) -> Said:
        if self.hang and messages[-1]["role"] == "tool":
            time.sleep(SECONDS / 10)
        return answer(messages, self.calls)

    def effects(self) -> list[Effect]:
        """Every run of a stub so far."""
        logs = [self.base / "effects.jsonl", *(self.place.root / "mybox/workspace").rglob("ran.jsonl")]
        lines = [line for log in logs if log.is_file() for line in log.read_text("utf-8").splitlines()]
        return sorted(Effect(**json.loads(line)) for line in lines)

    def waiting(self, session: str) -> str:
        """What the session waits for: `approval`, `question`, `interrupted` or empty."""
        listed = self.place.json("session", "list")["sessions"]
        return next((str(one["waiting"]) for one in listed if one["id"] == session), "")

    def history(self, session: str) -> list[str]:
        """What the person said in this session, as the product keeps it."""
        shown = self.place.run("session", "show", session, "--json")
        found = json.loads(shown.out).get("history", []) if shown.code == 0 else []
        return [one["text"] for one in found if one["role"] == "user"]

    def say(self, session: str, text: str) -> Mapping[str, Any]:
        return self.surface.say(session, text)

    def killed(self, session: str, text: str, when: Callable[[], bool]) -> None:
        """Sends the message in a process that is killed as soon as `when` holds."""
        argv = [*MODULE, "ask", "--session", session, "--json", "--", text]
        nowhere = subprocess.DEVNULL
        process = subprocess.Popen(
            argv, cwd=self.place.root, env=environment(), stdin=nowhere, stdout=nowhere, stderr=nowhere,
            start_new_session=True,
        )  # fmt: skip
        end = time.monotonic() + SECONDS
        while not when() and process.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        ended = process.poll() is not None
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()
        if ended or time.monotonic() >= end:
            raise SetupFailed(f"{text!r} was not interrupted")


class Surface:
    """A way to send messages. `say` returns the document of the reply, as `ask --json` prints it."""

    def say(self, session: str, text: str) -> Mapping[str, Any]:
        raise NotImplementedError

    def close(self) -> None:
        return


class CommandLine(Surface):
    """`navigator ask --session NAME --json`."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def say(self, session: str, text: str) -> Mapping[str, Any]:
        return _document(self._stage.place.run("ask", "--session", session, "--json", "--", text).out)


class Chat(Surface):
    """`navigator chat --session NAME --json`, with one line on stdin."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def say(self, session: str, text: str) -> Mapping[str, Any]:
        line = f'"""\n{text}\n"""\n' if "\n" in text or text.endswith("\\") else f"{text}\n"
        done = self._stage.place.run("chat", "--session", session, "--json", stdin=line)
        replies = _document(done.out).get("replies") or [{}]
        return replies[-1] if isinstance(replies[-1], dict) else {}


class Gateway(Surface):
    """`navigator serve`, started again for each row, and asked with a token that has the role `admin`."""

    def __init__(self, stage: Stage) -> None:
        self._stage, self._open = stage, ExitStack()
        self._served: Served | None = None

    def say(self, session: str, text: str) -> Mapping[str, Any]:
        if self._served is None:
            self._served = self._open.enter_context(gateway_serving(Person(self._stage.place, {})))
        try:
            sent = self._served.chat(text, session, events="all")
        except AssertionError as error:  # a problem document in place of a stream
            return {"error": {"summary": str(error)}}
        bodies = [one.data for one in sent if isinstance(one.data, dict)]
        last = next((one for one in reversed(bodies) if one.get("type") in {"RunCompleted", "RunError"}), {})
        ended = last.get("payload", last)
        routed: Mapping[str, Any] = next(
            (one.get("payload", one) for one in bodies if one.get("type") == "RouteDecided"), {}
        )
        report = {name: ended.get(name) for name in ("state", "summary", "data")}
        told = {"answer": {"outcome": ended["answer"]}} if "answer" in ended else {}
        return {"report": report, "route": routed.get("decision") or {}, **told}

    def close(self) -> None:
        self._open.close()
        self._served = None


def _document(out: str) -> Mapping[str, Any]:
    with suppress(ValueError):
        found = json.loads(out)
        return found if isinstance(found, dict) else {}
    return {}


def answer(messages: Sequence[Mapping[str, Any]], calls: Mapping[str, Calls]) -> Said:
    """The scripted model: makes the calls of the skill whose text it is given, one after another, then says a sentence."""
    asked = max((at for at, one in enumerate(messages) if one["role"] == "user"), default=-1)
    results = [one for one in messages[asked + 1 :] if one["role"] == "tool"]
    told = "\n".join(str(one.get("content")) for one in messages if one["role"] in {"system", "user"})
    name = next((name for name in calls if f"{MARK} {name}" in told), "")
    script = calls.get(name, ())
    if len(results) >= len(script):
        return Said(text="That is all." if script else "I answer without a skill.")
    tool, arguments = script[len(results)]
    return Said(calls=[(tool, json.dumps(arguments, ensure_ascii=False))])


def refusals(server: WireServer) -> list[str]:
    """What the model was told in place of the results of calls, newest last."""
    last = [request.body["messages"][-1] for request in server.requests if request.body.get("messages")]
    return [str(one.get("content")) for one in last if one["role"] == "tool"]


def _but_cache(home: Path) -> Callable[[str, list[str]], list[str]]:
    return lambda folder, _names: [CACHE.name] if Path(folder) == (home / CACHE).parent else []


def _refill(target: Path, source: Path, keep: Path | None = None) -> None:
    """Makes the contents of `target` those of `source`, but for the folder `keep` below it."""

    def emptied(folder: Path, inside: Path) -> None:
        for path in folder.iterdir():
            below = inside / path.name
            if keep is not None and below == keep:
                continue
            if keep is not None and keep.is_relative_to(below):
                emptied(path, below)
            elif stat.S_ISDIR(path.lstat().st_mode):
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()

    emptied(target, Path())
    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)

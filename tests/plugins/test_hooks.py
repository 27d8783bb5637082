"""Each hook, used by an installed package through the kernel as a person would meet it."""

from __future__ import annotations

import ast
import asyncio
import json
import re
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec import to_builtins

from models.wire_server import Said, serving
from navigator_kernel import hookspecs
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.cli.main import run
from navigator_kernel.cli.registry import navigator
from navigator_kernel.config.settings import load_settings
from navigator_kernel.dispatch import EventStream
from navigator_kernel.gateway.gateway import Gateway
from navigator_kernel.gateway.server import endpoints_of
from navigator_kernel.turn.turn import run_turn
from navigator_kernel.values.reply import Reply
from navigator_kernel.values.request import Message, Session
from person_state import accept, state_of

AGENT = """
class Echo:
    name, aliases, description = "echo", ("echo_agent",), "Repeats"
    async def handle(self, prompt):
        return {"state": "success", "summary": "echo", "data": {"prompt": prompt}}

@hookimpl
def kernel_register_agents(ports):
    return [Echo()]
"""
ROUTER = """
from navigator_kernel.values.route import Retrieval
class Mine:
    def recognise(self, text):
        return None
    def retrieve(self, text, k=12):
        return Retrieval(candidates=(), band="direct", reason="the plugin's own")

@hookimpl
def kernel_register_routers(catalogue):
    return Mine()
"""
ENCODER = """
class Mine:
    id, dimensions = "mine", 2
    def encode(self, texts, kind):
        return [[1.0, 0.0] for _ in texts]

@hookimpl
def kernel_register_encoders(root):
    return Mine()
"""
DISPATCHER = """
from navigator_kernel.values.packet import Meta, Report

class Mine:
    def __init__(self, agents):
        self.agents = agents
    async def submit(self, packet):
        return packet.context.idempotency_key if packet.agent in self.agents else None
    async def result(self, task):
        return Report(state="success", summary="sent elsewhere", meta=Meta(agent="worker", time=0.0, ts=""))
    async def cancel(self, task):
        pass

@hookimpl
def kernel_register_dispatchers(agents):
    return Mine(agents)
"""
STORES = """
from contextlib import contextmanager, nullcontext
import sqlite3

class Mine:
    def __init__(self, file):
        self.file, self.made = file, set()
    @contextmanager
    def open(self, subject, versions, *, beside=False, claimed=""):
        with sqlite3.connect(self.file) as database:
            for statement in () if subject in self.made else (one for version in versions for one in version):
                database.execute(statement)
            self.made.add(subject)
            yield database
        database.close()
    def claim(self, name):
        return nullcontext()
    def place(self, name, most):
        return nullcontext(lambda: None)

@hookimpl
def kernel_register_stores(project):
    return Mine(project.root / "shared.sqlite")
"""
COMMAND = """
import click
from navigator_kernel.commands import document, json_option, lines

@click.command("hello", short_help="Say hello")
@json_option
def hello(as_json):
    document({"said": "hello"}) if as_json else lines("hello from a plugin")

@click.command("skill")
def skill():
    click.echo("replaced")

@hookimpl
def kernel_register_commands(root):
    return [hello, skill]
"""
SCANNER = """
from navigator_kernel.values.resource import Diagnostic

@hookimpl
def kernel_scan_skill(skill):
    names = ",".join(sorted(skill))
    return [Diagnostic(code="looked", level="warning", path="SKILL.md", message=names)]
"""
PRECHECK = """
from navigator_kernel.values.reply import Notice

@hookimpl
def kernel_precheck(count):
    return Notice(code="mine", count=count)
"""
TOOLS = """
from navigator_kernel.tools.factory import ToolFactory

def greet(name: str) -> str:
    return f"Hello {name}"

@hookimpl
def kernel_register_tools(root):
    return [ToolFactory().from_crud(greet, "greet", "Greets"), object()]
"""
KEEPING = """
from navigator_kernel.tools.factory import ToolFactory
from navigator_kernel.values.http.endpoint import Endpoint

async def list_boats(names, call):
    return {"boats": names}

@hookimpl
def kernel_register_tools_and_endpoints(project):
    def boat_add(name: str) -> str:
        project.writer.write(project.state / "boats.txt", name.encode())
        return f"{project.root.name} has {name}, encoded by {project.encoder().id}"

    yield ToolFactory().from_crud(boat_add, "boat_add", "Adds a boat")
    for path in ("/api/boats", "/api/boats", "/api/skills", "/boats"):
        yield Endpoint(method="GET", path=path, role="read", summary="List boats", handler=list_boats, tag="boats", service=["Ida"])
"""
FINISH = """
told = []

@hookimpl
def kernel_finish_turn(reply):
    told.append(reply)
"""


def kernel_at(root: Path) -> Any:
    return Project(root, load_settings(root))


def turn(kernel: Any, text: str = "hello there", run: str = "run-1") -> Reply:
    stream = EventStream(run=run, turn=0, log=kernel.run_log, clock=kernel.clock)
    return asyncio.run(run_turn(Message(text=text), Session(id="s"), kernel, stream))


def test_kernel_register_agents_adds_an_agent_by_name_and_alias(root: Path, install: Any) -> None:
    install(AGENT)
    agents = kernel_at(root).agents
    assert (agents["echo"].description, agents["echo_agent"] is agents["echo"]) == ("Repeats", True)


def test_kernel_register_agents_cannot_replace_an_agent_of_the_kernel(root: Path, install: Any) -> None:
    install(AGENT.replace('"echo"', '"worker"'))
    assert kernel_at(root).agents["worker"].description != "Repeats"


def test_a_value_that_is_not_an_agent_is_a_failure_that_names_the_plugin_and_hook(root: Path, install: Any) -> None:
    name = install("@hookimpl\ndef kernel_register_agents(ports):\n    return ['worker']\n")
    failures = kernel_at(root).failures()
    assert [(failure["plugin"], failure["hook"]) for failure in failures] == [(name, "kernel_register_agents")]


def test_kernel_register_sources_adds_a_folder_of_skills(root: Path, install: Any, tmp_path: Path) -> None:
    folder = tmp_path / "brought" / "plugin-skill"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: plugin-skill\ndescription: Brought by a plugin\n---\n# x\n")
    install(f"@hookimpl\ndef kernel_register_sources(root):\n    return [{str(folder.parent)!r}]\n")
    found = kernel_at(root).catalogue.find("plugin-skill")
    assert (found.level, found.path) == ("plugin", folder / "SKILL.md")


def test_kernel_register_tools_adds_a_tool_that_a_skill_may_declare(
    root: Path, install: Any, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    name = install(TOOLS)
    skill = root / ".claude" / "skills" / "greeter" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: greeter\ndescription: Greets people\ntools: [greet]\n---\n# Greeter\n\nGreet.\n")
    accept(root, "greeter")
    with serving() as server:
        config = home / ".config" / "navigator" / "config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(f'[models]\ndefault = "there:x"\n[models.providers.there]\nurl = "{server.url}"\n')
        calls = [("greet", '{"name": "Ann"}')]
        server.scripts["x"] = lambda _messages, number: Said(calls=calls) if number == 1 else Said(text="done")
        kernel = kernel_at(root)
        assert turn(kernel, "/greeter Ann").report.state == "success"
        assert server.requests[1].body["messages"][-1]["content"] == "Hello Ann"
    assert [(one["plugin"], one["hook"]) for one in kernel.failures()] == [(name, "kernel_register_tools")]


def test_kernel_register_tools_and_endpoints_adds_a_tool_that_keeps_a_file_and_encodes(
    root: Path, install: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAVIGATOR_ENCODER", "auto")
    install(ENCODER)
    install(KEEPING)
    (tool,) = [one for one in Project(root).plugin_tools if one.name == "boat_add"]
    assert asyncio.run(tool.run({"name": "Ida"})).value == "project has Ida, encoded by plugin-mine"
    assert (state_of(root) / "boats.txt").read_text() == "Ida"


def test_kernel_register_tools_and_endpoints_cannot_replace_an_endpoint_of_the_kernel(
    root: Path, install: Any, caplog: pytest.LogCaptureFixture
) -> None:
    plugin = install(KEEPING)
    endpoints = endpoints_of(Gateway(Project(root)))
    assert [one.path for one in endpoints if one.name == "list_boats"] == ["/api/boats"]
    warned = [record.getMessage() for record in caplog.records]
    assert [text.partition("ValueError: ")[2] for text in warned] == [
        "GET /api/boats (list_boats) already exists",
        "GET /api/skills (list_boats) already exists",
        f"GET /boats needs a role, and a path below /api/ or /{plugin}",
    ]


@pytest.mark.requirement("TOL-11")
def test_a_skill_that_is_edited_is_another_in_the_next_turn(root: Path, home: Path) -> None:
    skill = root / ".claude" / "skills" / "greeter" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    with serving() as server:
        config = home / ".config" / "navigator" / "config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(f'[models]\ndefault = "there:well"\n[models.providers.there]\nurl = "{server.url}"\n')
        kernel = kernel_at(root)
        for words in ("Greet warmly.", "Greet in verse, and at length."):
            skill.write_text(f"---\nname: greeter\ndescription: Greets people\n---\n# Greeter\n\n{words}\n")
            turn(kernel, "/greeter Ann", run=f"run-{len(words)}")
            assert words in str(server.requests[-1].body["messages"])


def test_kernel_register_routers_replaces_the_router(root: Path, install: Any) -> None:
    install(ROUTER)
    assert turn(kernel_at(root)).decision.reason == "the plugin's own"


def test_kernel_register_encoders_brings_the_vectors_that_rank(
    root: Path, install: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAVIGATOR_ENCODER", "auto")
    install(ENCODER)
    assert kernel_at(root).router.meaning.index.encoder.id == "plugin-mine"


def test_kernel_register_dispatchers_replaces_the_dispatcher(root: Path, install: Any) -> None:
    install(DISPATCHER)
    skill = root / ".claude" / "skills" / "plain" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: plain\ndescription: Plain\ncommand: 'true'\n---\n# Plain\n")
    report = turn(kernel_at(root), "/plain").report
    assert (report.state, report.summary) == ("success", "sent elsewhere")


def test_kernel_register_stores_keeps_the_state_of_a_project_that_has_an_id(
    root: Path, install: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(STORES)
    monkeypatch.setenv("NAVIGATOR_PROJECT_ID", "shop")
    kernel = kernel_at(root)
    kernel.sessions.save(Session(id="s", turn=1))
    run = turn(kernel, "hello").run
    assert [event.run for event in kernel.run_log.read(run)][:1] == [run]
    assert kernel.run_log.runs() == [run]
    with sqlite3.connect(root / "shared.sqlite") as database:
        assert database.execute("SELECT id FROM sessions WHERE id = 's'").fetchall() == [("s",)]
    database.close()
    monkeypatch.delenv("NAVIGATOR_PROJECT_ID")
    assert kernel_at(root).sessions.listed() == []


@pytest.mark.parametrize(
    ("submitting", "state", "exit_code"),
    [
        ("return None", "success", 0),  # it leaves the packet to the kernel's own
        ("raise ValueError('odd')", "success", 0),
        ("from navigator_kernel.errors import Busy; raise Busy('too many wait')", "error", 5),
    ],
)
def test_what_a_dispatcher_does_not_take_is_done_here_and_an_error_of_the_kernel_is_the_report(
    root: Path, install: Any, submitting: str, state: str, exit_code: int
) -> None:
    body = DISPATCHER.replace(
        "return packet.context.idempotency_key if packet.agent in self.agents else None", submitting
    )
    install(body.replace("(agents):", "(agents, ports):").replace("Mine(agents)", "Mine({ports.root: agents})"))
    report = turn(kernel_at(root), "/word-count a b").report
    assert (report.state, report.exit_code) == (state, exit_code)
    assert report.summary != "sent elsewhere"


def test_kernel_register_commands_adds_a_command(root: Path, install: Any, capsys: pytest.CaptureFixture[str]) -> None:
    install(COMMAND)
    assert run(["--root", str(root), "hello"]) == 0
    assert capsys.readouterr().out == "hello from a plugin\n"


def test_a_command_of_a_plugin_stands_in_the_help_and_prints_a_document(
    root: Path, install: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    install(COMMAND)
    assert run(["--root", str(root), "--help"]) == 0
    assert "  hello       Say hello\n" in capsys.readouterr().out
    assert run(["--root", str(root), "hello", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"exit_code": 0, "said": "hello"}


def test_kernel_register_commands_cannot_replace_a_command_of_the_kernel(root: Path, install: Any) -> None:
    install(COMMAND)
    shown = CliRunner().invoke(navigator, ["--root", str(root), "skill", "--help"])
    assert "replaced" not in shown.output


def test_kernel_scan_skill_is_given_the_files_and_its_findings_are_shown(
    root: Path, install: Any, tmp_path: Path
) -> None:
    install(SCANNER)
    folder = tmp_path / "source" / "alpha"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: alpha\ndescription: A skill for a test\n---\n# alpha\n")
    (folder / "run.py").write_text("print(1)\n")
    answer = to_builtins(Project(root, agents=False).lifecycle.install(str(folder)))
    assert "looked" in json.dumps(answer)
    assert "SKILL.md,run.py" in json.dumps(answer)


def test_kernel_precheck_says_the_notice_of_the_first_turn(root: Path, install: Any) -> None:
    install(PRECHECK)
    notice = turn(kernel_at(root)).notice
    assert notice is not None
    assert notice.code == "mine"


def test_kernel_finish_turn_gets_the_reply(root: Path, install: Any) -> None:
    name = install(FINISH)
    reply = turn(kernel_at(root))
    assert sys.modules[name].told == [reply]


# every hook has a test here and a section on its page


def hooks() -> list[str]:
    return [name for name in vars(hookspecs) if name.startswith("kernel_")]


def test_there_are_at_most_12_hooks() -> None:
    assert 0 < len(hooks()) <= 12


@pytest.mark.parametrize("hook", hooks())
def test_a_hook_has_a_test_that_is_named_after_it(hook: str) -> None:
    tree = ast.parse(Path(__file__).read_text(encoding="utf-8"))
    tests = [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and f"test_{hook}_" in node.name]
    assert tests


@pytest.mark.parametrize("hook", hooks())
def test_a_hook_has_a_section_on_the_page_of_hooks(hook: str) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "hooks.md").read_text(encoding="utf-8")
    assert re.search(rf"^#+ .*\b{hook}\b", page, re.MULTILINE)


@pytest.mark.parametrize("hook", hooks())
def test_a_hook_takes_one_value_or_ports_besides_and_says_who_wins(hook: str) -> None:
    function = getattr(hookspecs, hook)
    assert function.__code__.co_varnames[1 : function.__code__.co_argcount] in {(), ("ports",)}
    assert re.search(r"\bwins\b|\ball are used\b|\bafter every\b", function.__doc__, re.IGNORECASE)

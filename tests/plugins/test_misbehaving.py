"""A plugin that raises, exits, hangs, prints or returns garbage: every command works, keeps its stdout clean, and names
the plugin that failed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from cli.support import SOURCE, Place, environment, place_in
from gateway.served import Person, serving
from models.wire_server import Said, WireServer
from models.wire_server import serving as serving_models
from person_state import accept
from plugins.conftest import HEAD
from tables import table

PROGRAM = (sys.executable, "-X", "utf8", "-m", "navigator_kernel.cli.main")  # a process of its own each time
ABOUT = "Greets people by their names. Use when somebody wants to greet a person."
SKILL = f"---\nname: greeter\ndescription: {ABOUT}\ntools: [greet]\n---\n# Greeter\n\nGreet.\n"
TEXT = "greet people by name"
TOOL = """
import sys, time
from navigator_kernel.values.chat import ToolSpec
from navigator_kernel.values.chat import Result

class Greet:
    name, effects, confirm = "greet", (), ""
    spec = ToolSpec(name="greet", description="Greets", schema={"type": "object"})
    async def run(self, arguments):
        BODY

@hookimpl
def kernel_register_tools(root):
    return [Greet()]
"""
ROUTER = """
import time
class Mine:
    def recognise(self, text):
        BODY
    def retrieve(self, text, k=12):
        BODY

@hookimpl
def kernel_register_routers(catalogue):
    return Mine()
"""
ENDPOINT = """
import sys, time
from navigator_kernel.values.http.endpoint import Endpoint

async def bad(service, call):
    BODY

@hookimpl
def kernel_register_tools_and_endpoints(project):
    return [Endpoint(method="GET", path=PATH, role="read", summary="Bad", handler=bad, tag="bad", service=1)]
"""
DISPATCHER = """
class Mine:
    async def submit(self, packet):
        BODY
    async def result(self, task):
        raise ValueError("odd")
    async def cancel(self, task):
        raise ValueError("odd")

@hookimpl
def kernel_register_dispatchers(agents):
    return Mine()
"""
Installing = Callable[[str, str], dict[str, str]]
TURNS, ALL = ("ask", "serve", "mcp"), ("ask", "route", "serve", "mcp")


def hook(name: str, body: str) -> str:
    return f"import sys, time\n@hookimpl\ndef {name}(given=None):\n    {body}\n".replace("given=None", GIVEN[name])


GIVEN = table(__file__, "GIVEN")
PRINTS = """
import os, subprocess, threading, atexit
print("printed")
os.write(1, b"written\\n")
subprocess.run(["echo", "by a child"])
threading.Thread(target=print, args=("on a thread",)).start()
atexit.register(print, "at exit")
@hookimpl
def kernel_register_sources(root):
    print("in a hook")
    return []
"""

# name → (code, the commands that name the plugin on stderr)
PLUGINS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "import-raises": ("raise RuntimeError('odd')", ALL),
    "import-exits": ("raise SystemExit(3)", ALL),
    "import-interrupts": ("raise KeyboardInterrupt", ALL),
    "import-hangs": ("import time\ntime.sleep(600)", ALL),
    "import-prints": (PRINTS, ()),
    "hook-misspelt": ("@hookimpl\ndef kernel_register_agentz(ports):\n    return []\n", ALL),
    "sources-bad-item": (hook("kernel_register_sources", "return ['/x', None]"), ALL),
    "sources-hang": (hook("kernel_register_sources", "time.sleep(600)"), ALL),
    "agents-garbage": (hook("kernel_register_agents", "return ['worker', 5]"), TURNS),
    "router-raises": (ROUTER.replace("BODY", "raise ValueError('odd')"), ALL),
    "router-garbage": (ROUTER.replace("BODY", "return 'nothing'"), ALL),
    "router-hangs": (ROUTER.replace("BODY", "time.sleep(600)"), ALL),
    "encoder-exits": (hook("kernel_register_encoders", "sys.exit(3)"), ALL),
    "dispatcher-is-none": (hook("kernel_register_dispatchers", "return 5"), TURNS),
    "dispatcher-garbage": (DISPATCHER.replace("BODY", "return 5"), TURNS),
    "precheck-exits": (hook("kernel_precheck", "sys.exit(3)"), ("ask", "serve")),
    "finish-raises": (hook("kernel_finish_turn", "raise BaseException('odd')"), TURNS),
    "finish-hangs": (hook("kernel_finish_turn", "time.sleep(600)"), TURNS),
    "tool-exits": (TOOL.replace("BODY", "sys.exit(3)"), TURNS),
    "tool-hangs": (TOOL.replace("BODY", "time.sleep(600)"), TURNS),
    "tool-garbage": (TOOL.replace("BODY", "return 5"), TURNS),
    "tool-prints": (TOOL.replace("BODY", "print('printed'); return Result('hello')"), ()),
    "endpoint-exits": (ENDPOINT.replace("BODY", "sys.exit(3)").replace("PATH", "'/api/bad'"), ("serve",)),
    "endpoint-hangs": (ENDPOINT.replace("BODY", "time.sleep(600)").replace("PATH", "'/api/bad'"), ("serve",)),
}
# Those of one group touch different hooks, or hooks that ask every plugin
TOGETHER: Sequence[Sequence[str]] = (
    "import-raises import-interrupts sources-bad-item router-raises dispatcher-is-none precheck-exits tool-exits".split(),
    "import-exits hook-misspelt agents-garbage router-garbage dispatcher-garbage finish-raises tool-garbage endpoint-exits".split(),
    "import-hangs sources-hang router-hangs finish-hangs tool-hangs endpoint-hangs".split(),
    "import-prints encoder-exits tool-prints".split(),
)
LISTED: Mapping[str, str] = {
    "import-misses": "import no_such_module",
    "sources-text": hook("kernel_register_sources", "return '/x'"),
    "agents-raise": hook("kernel_register_agents", "raise ValueError('odd')"),
    "router-is-none": hook("kernel_register_routers", "return object()"),
    "precheck-garbage": hook("kernel_precheck", "return 'few'"),
    "tool-is-none": TOOL.replace("[Greet()]", "[5]").replace("BODY", "pass"),
    "tool-named-read": TOOL.replace('"greet"', '"read"').replace("BODY", "pass"),
    "endpoint-elsewhere": ENDPOINT.replace("BODY", "pass").replace("PATH", "'/bad'"),
}


@pytest.fixture(scope="module")
def model() -> Iterator[WireServer]:
    with serving_models() as held:
        call = Said(calls=[("greet", '{"name": "Ann"}')])
        held.scripts["worker"] = lambda messages, _: call if messages[-1]["role"] == "user" else Said(text="done")
        yield held


@pytest.fixture
def here(tmp_path: Path, home: Path, model: WireServer) -> Place:
    """A project with a skill that needs a tool of a plugin, and a model that calls the tool once."""
    here = place_in(tmp_path, program=PROGRAM)
    here.write({".claude/skills/greeter/SKILL.md": SKILL})
    accept(here.root, "greeter")
    file = home / ".config" / "navigator" / "config.toml"
    file.parent.mkdir(parents=True)
    provider = f'[models.providers.there]\nurl = "{model.url}"\n'
    file.write_text(f'router = "local_only"\ntimeout = 3\n[models]\ndefault = "there:worker"\nretries = 0\n{provider}')
    return here


@pytest.fixture
def with_plugin(tmp_path: Path) -> Installing:
    """Installs a package with the code of a plugin, and returns the environment that has it."""

    def put(name: str, code: str) -> dict[str, str]:
        site, module = tmp_path / "site", name.replace("-", "_")
        info = site / f"{module}-2.1.dist-info"
        info.mkdir(parents=True)
        (site / f"{module}.py").write_text(HEAD + code, encoding="utf-8")
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: navigator-{name}\nVersion: 2.1\n")
        (info / "entry_points.txt").write_text(f"[navigator]\n{name} = {module}\n")
        encoder = {"NAVIGATOR_ENCODER": "auto"} if name.startswith("encoder") else {}
        return {"PYTHONPATH": f"{site}:{SOURCE / 'kernel'}", "NAVIGATOR_PLUGIN_SECONDS": "3", **encoder}

    return put


def ask(here: Place, env: Mapping[str, str]) -> str:
    done = here.run("ask", "--json", TEXT, env=env)
    assert (done.code, done.document["report"]["summary"]) == (0, "done"), done
    return done.err


def route(here: Place, env: Mapping[str, str]) -> str:
    done = here.run("route", "--json", TEXT, env=env)
    assert (done.code, done.document["entity"]) == (0, "greeter"), done
    return done.err


def serve(here: Place, env: Mapping[str, str]) -> str:
    """Two turns, and a request for an endpoint of the plugin between them."""
    person, errors = Person(here, dict(env)), here.root.parent / "stderr"
    with errors.open("wb") as stderr, serving(person, stderr=stderr) as held:
        for session in ("one", "two"):
            last = held.chat(TEXT, session)[-1]
            assert last.data["payload"].get("state") == "success", last
            with held.client() as client:
                assert client.get("/api/bad").status_code in {404, 500, 504}
    return errors.read_text()


def mcp(here: Place, env: Mapping[str, str]) -> str:
    """A host of the MCP server, which finds nothing but messages of the protocol on its stdout."""
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    asked: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": about},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "route", "arguments": {"message": TEXT}}},
        {
            "id": 3,
            "method": "tools/call",
            "params": {"name": "run_skill", "arguments": {"name": "greeter", "args": "A"}},
        },
    ]
    argv, errors = [*here.program, "mcp", "serve"], here.root.parent / "stderr"
    with (
        errors.open("wb") as stderr,
        subprocess.Popen(
            argv, cwd=here.root, env=environment(env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr
        ) as process,
    ):
        assert process.stdin is not None and process.stdout is not None
        for message in asked:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            process.stdin.flush()
            while "id" in message:
                answer = json.loads(process.stdout.readline())
                if answer.get("id") == message["id"]:
                    break
        assert answer["result"]["structuredContent"]["report"]["summary"] == "done", answer
        process.stdin.close()
        assert process.stdout.read() == b""
        assert process.wait(30) == 0
    return errors.read_text()


def told(err: str, name: str) -> bool:
    """Whether the plugin is named, with all its failures told once."""
    lines = [line for line in err.splitlines() if line.startswith(f"plugin {name} failed in ")]
    assert len(lines) == len(set(lines)), err
    return bool(lines)


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", PLUGINS)
def test_a_command_works_and_names_the_plugin_that_fails(here: Place, with_plugin: Installing, name: str) -> None:
    code, named = PLUGINS[name]
    assert told(ask(here, with_plugin(name, code)), name) == ("ask" in named)


@pytest.mark.sample(3)
@pytest.mark.parametrize("command", [route, serve, mcp])
@pytest.mark.parametrize("together", TOGETHER, ids=["raise", "garbage", "hang", "print"])
def test_every_command_works_and_names_each_of_the_plugins_that_fail(
    here: Place, with_plugin: Installing, together: Sequence[str], command: Callable[[Place, Mapping[str, str]], str]
) -> None:
    env: dict[str, str] = {}
    for name in together:
        env |= with_plugin(name, PLUGINS[name][0])
    err = command(here, env)
    assert {name: told(err, name) for name in together} == {
        name: command.__name__ in PLUGINS[name][1] for name in together
    }, err


def test_every_plugin_is_tried_with_every_command() -> None:
    assert sorted(name for names in TOGETHER for name in names) == sorted(PLUGINS)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "name", [*LISTED, *(name for name in PLUGINS if name.startswith(("import", "router", "hook")))]
)
def test_plugin_list_shows_the_package_and_what_fails(here: Place, with_plugin: Installing, name: str) -> None:
    code = LISTED[name] if name in LISTED else PLUGINS[name][0]
    done = here.run("plugin", "list", "--json", env=with_plugin(name, code))
    (one,) = [row for row in done.document["details"] if row["name"] == name]
    assert (one["package"], one["version"]) == (f"navigator-{name}", "2.1")
    failed = {failure["plugin"] for failure in done.document["failures"]}
    assert (done.code, failed) == ((0, set()) if name == "import-prints" else (1, {name}))


@pytest.mark.parametrize("left_out", ["off", "other, import-hangs"])
def test_navigator_plugins_leaves_a_plugin_out(here: Place, with_plugin: Installing, left_out: str) -> None:
    env = {**with_plugin("import-hangs", PLUGINS["import-hangs"][0]), "NAVIGATOR_PLUGINS": left_out}
    done = here.run("route", "--json", TEXT, env=env)
    assert (done.code, done.document["entity"], done.err) == (0, "greeter", "")


COMMAND = """
import click, sys
@click.command("hello")
@click.argument("how")
def hello(how):
    print("hello")
    if how == "exit":
        sys.exit(7)
    if how == "fail":
        raise ValueError("odd")

@click.command("skill")
def skill():
    pass

@hookimpl
def kernel_register_commands(root):
    return [hello, skill, "nope"]
"""


@pytest.mark.parametrize(("how", "code"), [("greet", 0), ("exit", 7), ("fail", 1)])
def test_a_command_of_a_plugin_has_stdout_and_its_own_exit_code(
    here: Place, with_plugin: Installing, how: str, code: int
) -> None:
    done = here.run("hello", how, env=with_plugin("speaks", COMMAND))
    assert (done.code, done.out) == (code, "hello\n")
    assert ("error: plugin 'speaks': ValueError: odd" in done.err) == (how == "fail")


@pytest.mark.wide
def test_plugin_list_shows_commands_that_are_dropped(here: Place, with_plugin: Installing) -> None:
    done = here.run("plugin", "list", "--json", env=with_plugin("speaks", COMMAND))
    assert [failure["error"] for failure in done.document["failures"]] == [
        "TypeError: str is not a click command with a name",
        "ValueError: a command called 'skill' exists already",
    ]


@pytest.mark.wide
def test_doctor_names_a_plugin_whose_router_fails(here: Place, with_plugin: Installing) -> None:
    done = here.run("doctor", "--json", env=with_plugin("odd", PLUGINS["router-raises"][0]))
    (one,) = [finding for finding in done.document["findings"] if finding["what"] == "plugins"]
    assert (one["state"], "odd in kernel_register_routers: ValueError" in one["detail"]) == ("damaged", True)

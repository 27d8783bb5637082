"""The command lines of coding agents themselves, from npm, name what `navigator host install` wrote and the skills beside
it, and after `host uninstall` no more. No model is asked: the agents only list what they have."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.support import Place, environment, place_in
from hosts.test_prompt_hook import warm
from skill_repositories import skill_text

pytestmark = [pytest.mark.ci, pytest.mark.timeout(300)]

PACKAGES = Path(__file__).with_name("npm")  # the versions, and the hash of each package
NO_NETWORK = re.compile(r"\b(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENETUNREACH|ETIMEDOUT|ENOTCACHED)\b")
TOOLS = {"route", "load_skill", "run_skill", "why"}


@pytest.fixture(scope="session")
def packages() -> Path:
    """The installed packages, kept beside this Python's own for the next run; their scripts are not run."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip("the programs are for Linux on x64")
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    names = ("package.json", "package-lock.json")
    digest = hashlib.sha256(b"".join((PACKAGES / name).read_bytes() for name in names)).hexdigest()
    folder = Path(sys.prefix, f"coding-agents-{digest[:12]}")
    if not folder.exists():
        for old in folder.parent.glob("coding-agents-*"):
            shutil.rmtree(old)
        fresh = folder.with_name("coding-agents-unfinished")
        fresh.mkdir()
        for name in names:
            shutil.copy(PACKAGES / name, fresh)
        argv = [npm, "ci", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(argv, cwd=fresh, capture_output=True, text=True, timeout=240)
        if done.returncode and NO_NETWORK.search(done.stderr):
            pytest.skip("no network: npm cannot fetch the coding agents")
        assert done.returncode == 0, done.stderr
        fresh.rename(folder)
    return folder / "node_modules"


Call = Callable[..., str]


@pytest.fixture
def here(tmp_path: Path, home: Path) -> Place:
    """A project with a skill in each folder that hosts read."""
    place = place_in(tmp_path)
    subprocess.run(["git", "init", "-q"], cwd=place.root, check=True)
    for folder in (".claude", ".agents"):
        place.write({f"{folder}/skills/greet/SKILL.md": skill_text("greet", "Greets a person by name")})
    return place


@pytest.fixture
def call(here: Place, home: Path) -> Call:
    """Runs a program in the project, as the person with this home; keys and settings of the tests' own are left out."""
    own = {name: value for name, value in environment().items() if name in {"PATH", "PYTHONPATH", "LANG"}}

    def run(*argv: str | Path, **more: str) -> str:
        held = {**own, "HOME": str(home), "NO_COLOR": "1", **more}
        done = subprocess.run(
            argv, cwd=here.root, env=held, capture_output=True, text=True, timeout=90, stdin=subprocess.DEVNULL
        )
        return done.stdout + done.stderr

    return run


def written(here: Place, home: Path) -> dict[str, bytes]:
    """The settings files of every host; what a host itself keeps below its folder does not count."""
    names = (".mcp.json", ".claude/settings.local.json", ".gemini/settings.json", "opencode.json",
             ".codex/config.toml", ".codex/hooks.json")  # fmt: skip
    files = [folder / name for folder in (here.root, home) for name in names]
    return {str(file): file.read_bytes() for file in files if file.exists()}


@pytest.fixture
def installed(here: Place, home: Path) -> Iterator[Callable[[str], None]]:
    """Installs into files that the person has, except opencode's, which writes to a file itself; in the end, all are as they were, to the byte."""
    here.write({".mcp.json": '{ "mcpServers": {} }\n', ".gemini/settings.json": '{"ui": {"hideTips": true}}'})
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text('# mine\nmodel = "gpt-5"\n')
    before = written(here, home)

    def install(host: str) -> None:
        here.said("host", "install", host)
        assert written(here, home) != before

    yield install
    assert written(here, home) == before


def claude(packages: Path, call: Call, *words: str, **more: str) -> str:
    program = packages / "@anthropic-ai" / "claude-code-linux-x64" / "claude"
    return call(program, *words, CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1", **more)


def test_claude_code_connects_to_the_server_and_runs_the_hook(
    packages: Path, here: Place, home: Path, call: Call, installed: Callable[[str], None]
) -> None:
    """Its session begins with what it has; then there is no model at the address."""

    def session() -> list[dict[str, Any]]:
        argv = (
            "-p",
            "please greet Ada by name",
            "--output-format",
            "stream-json",
            "--verbose",
            "--include-hook-events",
        )
        out = claude(packages, call, *argv, ANTHROPIC_BASE_URL="http://127.0.0.1:9", ANTHROPIC_API_KEY="none",
                     CLAUDE_CODE_MAX_RETRIES="0")  # fmt: skip
        return [json.loads(line) for line in out.splitlines() if line.startswith("{")]

    installed("claude-code")
    assert "Pending approval" in claude(packages, call, "mcp", "list")  # as `host install` tells the person
    (home / ".claude").mkdir(exist_ok=True)
    (home / ".claude" / "settings.json").write_text('{"enableAllProjectMcpServers": true}')  # the person's approval
    assert re.search(r"(?m)^navigator: .* Connected$", claude(packages, call, "mcp", "list"))
    argv = [*here.program, "--root", str(here.root), "route", "--serve", "--json"]
    with subprocess.Popen(argv, cwd=here.root, env=environment(), stdout=subprocess.PIPE) as resident:
        assert resident.stdout is not None
        resident.stdout.readline()
        assert warm(here, "please greet Ada by name")
        events = session()
        resident.terminate()
    (begin,) = (event for event in events if event.get("subtype") == "init")
    assert [server["name"] for server in begin["mcp_servers"]] == ["navigator"] and "greet" in begin["skills"]
    (hook,) = (event for event in events if event.get("subtype") == "hook_response")
    assert (hook["hook_event"], hook["exit_code"]) == ("UserPromptSubmit", 0) and "greet" in hook["output"]
    here.said("host", "uninstall", "claude-code")
    events = session()
    (begin,) = (event for event in events if event.get("subtype") == "init")
    assert begin["mcp_servers"] == [] and "hook_response" not in {event.get("subtype") for event in events}


def codex(packages: Path, root: Path, call: Call) -> dict[str, Any]:
    """What the app server of Codex has: servers with their tools, hooks, and the skills that are not hidden."""
    program = packages / "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"
    asked: tuple[tuple[str, dict[str, Any]], ...] = (
        ("skills/list", {"cwds": [str(root)]}),
        ("hooks/list", {"cwds": [str(root)]}),
        ("mcpServerStatus/list", {}),
    )
    begin = {"id": 0, "method": "initialize", "params": {"clientInfo": {"name": "test", "version": "1"}}}
    wishes = [{"id": at, "method": method, "params": given} for at, (method, given) in enumerate(asked, 1)]
    lines = [json.dumps(one) for one in (begin, {"method": "initialized"}, *wishes)]
    # It ends with its input: the shell holds that open until every answer is there
    script = 'coproc S { "$0" app-server; }; printf "%s\\n" "$@" >&"${S[1]}"; for n in 0 1 2 3; do while read -r l <&"${S[0]}"; do echo "$l"; case $l in \'{"id"\'*) break;; esac; done; done; kill "$S_PID"'
    out = call("bash", "-c", script, program, *lines)
    answers = {one["id"]: one["result"] for one in map(json.loads, re.findall(r'(?m)^\{"id".*$', out))}
    return {
        "servers": {server["name"]: set(server["tools"]) for server in answers[3]["data"]},
        "hooks": {hook["eventName"]: hook for row in answers[2]["data"] for hook in row["hooks"]},
        "skills": {skill["name"] for row in answers[1]["data"] for skill in row["skills"] if skill["enabled"]},
    }


def test_codex_lists_the_server_with_its_tools_the_hooks_and_the_skills_that_are_not_hidden(
    packages: Path, here: Place, home: Path, call: Call, installed: Callable[[str], None]
) -> None:
    installed("codex")
    has = codex(packages, here.root, call)
    assert has["servers"]["navigator"] == TOOLS and "greet" in has["skills"]
    hooks = {event: (hook["enabled"], hook["matcher"], hook["timeoutSec"]) for event, hook in has["hooks"].items()}
    assert hooks == {"userPromptSubmit": (True, None, 5), "sessionStart": (True, "compact", 5)}
    # As `host install` tells the person: Codex runs a hook once it is trusted
    assert {hook["trustStatus"] for hook in has["hooks"].values()} == {"untrusted"}
    here.said("host", "install", "codex", "--hide-skills")
    assert "greet" not in codex(packages, here.root, call)["skills"]
    here.said("host", "uninstall", "codex")
    has = codex(packages, here.root, call)
    assert "navigator" not in has["servers"] and not has["hooks"] and "greet" in has["skills"]


def test_gemini_connects_to_the_server_in_a_trusted_folder(
    packages: Path, here: Place, call: Call, installed: Callable[[str], None]
) -> None:
    def gemini(*words: str, **more: str) -> str:
        return call("node", packages / "@google/gemini-cli/bundle/gemini.js", *words, **more)

    installed("gemini")
    assert re.search(r"(?m)^✓ navigator: .* Connected$", gemini("mcp", "list", GEMINI_CLI_TRUST_WORKSPACE="true"))
    here.said("host", "uninstall", "gemini")
    assert "navigator" not in gemini("mcp", "list", GEMINI_CLI_TRUST_WORKSPACE="true")
    assert re.search(r"(?m)^greet \[Enabled\]", gemini("skills", "list", GEMINI_CLI_TRUST_WORKSPACE="true"))


def test_opencode_connects_to_the_server(
    packages: Path, here: Place, call: Call, installed: Callable[[str], None]
) -> None:
    def opencode(*words: str) -> str:
        return call(packages / "opencode-linux-x64-baseline/bin/opencode", *words)

    installed("opencode")
    assert re.search(r"✓ navigator\W[^\n]*connected", opencode("mcp", "list"))
    here.said("host", "uninstall", "opencode")
    assert "navigator" not in opencode("mcp", "list")
    assert '"name": "greet"' in opencode("debug", "skill")

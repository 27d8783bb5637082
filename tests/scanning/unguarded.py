"""A host that trusts skills: started inside the box, it reads, runs, loads and shows everything in a skill.

python -m scanning.unguarded GROUND SKILL STEPS
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from scanning.agent import FENCE, Agent
from scanning.services import Services
from scanning.standins import fetched
from scanning.terminal import deceives

SHELLS = frozenset({"bash", "sh", "shell", "zsh", "console"})
RUNNERS = {".py": "python3", ".pyc": "python3", ".pyz": "python3", ".sh": "bash", ".bash": "bash", ".js": "node",
           ".mjs": "node", ".cjs": "node", ".ps1": "pwsh", ".pl": "perl"}  # fmt: skip
CONFIGS = frozenset({"settings.json", "settings.local.json", "hooks.json", ".mcp.json", "mcp.json", "tasks.json",
                     "devcontainer.json", "plugin.json", "mcp_config.json"})  # fmt: skip
STARTS = frozenset({"postCreateCommand", "initializeCommand", "onCreateCommand", "postStartCommand", "apiKeyHelper"})
PATIENCE = 10  # seconds for one command
LEFT = 5.0  # seconds for processes that are still running
PASSED_ON = ("PATH", "HOME", "GROUND", "LANG")


class Host:
    """The skill is in the project, which is the current folder of what it starts unless a step names another."""

    def __init__(self, ground: Path, skill: Path) -> None:
        self.ground, self.skill = ground, skill
        self.home, self.project = ground / "home", ground / "home" / "project"
        talk = (self.home / ".claude" / "talk").read_text()
        self.agent = Agent(self.project, talk, self.shell, self._post, self.note)

    def note(self, kind: str, why: str) -> None:
        with (self.ground / "log" / "notes").open("a") as log:
            log.write(json.dumps([kind, why]) + "\n")

    def files(self) -> Iterator[tuple[Path, str]]:
        """Yields each file with its path inside the skill."""
        for path in sorted(self.skill.rglob("*")):
            if path.is_file():
                yield path, path.relative_to(self.skill).as_posix()

    def texts(self) -> Iterator[tuple[Path, str]]:
        """Yields each text file with its text."""
        for path, _ in self.files():
            data = path.read_bytes()
            if b"\0" not in data:
                yield path, data.decode("utf-8-sig", errors="replace")

    def start(self, words: list[str], folder: Path | None = None, more: dict[str, str] | None = None) -> None:
        env = {**os.environ, "CLAUDE_SKILL_DIR": str(self.skill), "CLAUDE_PLUGIN_ROOT": str(self.skill),
               "SKILL_ROOT": str(self.skill), "CLAUDE_PROJECT_DIR": str(self.project), **(more or {})}  # fmt: skip
        with (self.ground / "log" / "said").open("ab") as said:
            said.write(f"$ {words[-1]}\n".encode(errors="replace"))
            said.flush()
            try:
                subprocess.run(words, cwd=folder or self.project, env=env, timeout=PATIENCE, check=False,
                               stdin=subprocess.DEVNULL, stdout=said, stderr=said)  # fmt: skip
            except (OSError, ValueError, subprocess.TimeoutExpired) as error:
                said.write(f"{error}\n".encode(errors="replace"))

    def shell(self, text: str) -> None:
        """Runs the text; paths of the skill's files in it lead to the skill's folder."""
        for _, inner in sorted(self.files(), key=lambda held: -len(held[1])):
            if "/" in inner:
                text = re.sub(rf"(?<![\w/.{{}}-])(?:\./)?{re.escape(inner)}(?![\w/])", str(self.skill / inner), text)
        text = text.replace("{baseDir}", str(self.skill))
        self.start(["bash", "-c", text])

    def _post(self, url: str, body: bytes | None) -> None:
        fetched(url, body)


# Steps


def read(host: Host) -> None:
    """The agent reads every text of the skill and obeys it."""
    for path, text in host.texts():
        host.agent.read(path, text)


def load(host: Host) -> None:
    """Runs what a host runs while it loads SKILL.md: commands in its text, hooks in its metadata."""
    text = (host.skill / "SKILL.md").read_text(encoding="utf-8-sig")
    head, _, body = text[3:].partition("\n---")
    for command in re.findall(r"^\s*(?:- )?command:\s*(.+)$", head, re.MULTILINE) if "hooks:" in head else []:
        host.shell(json.loads(command) if command.startswith('"') else command.strip("'"))
    for command in re.findall(r"(?:^|\s)!`([^`\n]+)`", FENCE.sub("", body)):
        host.shell(command)


def config(host: Host) -> None:
    """Starts the hooks, servers and tasks that the skill ships, and applies its settings."""
    for path, text in host.texts():
        if path.name in CONFIGS:
            plain = re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)
            _settings(host, json.loads(plain))
        elif path.name == ".envrc" or path.parent.name in {".husky", "git-hooks"}:
            host.start(["bash", str(path)])


def _settings(host: Host, held: object) -> None:
    if isinstance(held, list):
        for one in held:
            _settings(host, one)
    if not isinstance(held, dict):
        return
    command = held.get("command")
    if isinstance(command, str):
        words = [str(word) for word in held.get("args", [])]
        env = {name: str(value) for name, value in held.get("env", {}).items()}
        text = command if not words else f"{command} {' '.join(map(_quoted, words))}"
        host.start(["bash", "-c", text.replace("${CLAUDE_PLUGIN_ROOT}", str(host.skill))], more=env)
    for name in STARTS & held.keys():
        host.shell(held[name] if isinstance(held[name], str) else " ".join(held[name]))
    _trusted(host, held)
    for value in held.values():
        _settings(host, value)


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _trusted(host: Host, held: dict[str, Any]) -> None:
    """Notes settings that bypass the person, and uses those that send the host's own traffic elsewhere."""
    allowed = set(map(str, held.get("allow", []) if isinstance(held.get("allow"), list) else []))
    loose = held.get("defaultMode") == "bypassPermissions" or allowed & {"Bash", "Bash(*)", "Bash(*:*)", "*"}
    if loose or held.get("enableAllProjectMcpServers") is True or held.get("chat.tools.autoApprove") is True:
        host.note("unsafe", json.dumps(held))
    env = held.get("env", {}) if isinstance(held.get("env"), dict) else {}
    for name, value in env.items():
        if name.endswith("_BASE_URL"):
            fetched(f"{value}/v1/messages", b"{}", [f"x-api-key: {os.environ['ANTHROPIC_API_KEY']}"])
    if isinstance(held.get("url"), str):
        fields = [f"{name}: {os.path.expandvars(value)}" for name, value in held.get("headers", {}).items()]
        fetched(os.path.expandvars(held["url"]), None, fields)


def fences(host: Host) -> None:
    """Runs every shell fence of every page."""
    for path, text in host.texts():
        if path.suffix in {".md", ".markdown", ".mdc"}:
            for hit in FENCE.finditer(text):
                if hit[0].split("\n")[0].strip(" \t`~").partition(" ")[0] in SHELLS:
                    host.shell(re.sub(r"^\$ ", "", hit[2], flags=re.MULTILINE))


def scripts(host: Host) -> None:
    """Runs scripts and programs, without arguments."""
    for path, inner in list(host.files()):
        if inner.startswith((".", "node_modules/")) or path.name in {"setup.py", "conftest.py"}:
            continue
        data = path.read_bytes()
        if path.suffix in RUNNERS:
            host.start([RUNNERS[path.suffix], str(path)])
        elif data.startswith((b"#!", b"\x7fELF")) and path.suffix != ".so":
            path.chmod(0o755)
            host.start([str(path)])


def native(host: Host) -> None:
    """Loads the libraries."""
    for path, inner in list(host.files()):
        if path.suffix == ".so" or ".so." in inner:
            host.start(["python3", "-c", f"import ctypes; ctypes.CDLL({str(path)!r})"])


def make(host: Host) -> None:
    if any((host.skill / name).exists() for name in ("Makefile", "makefile", "GNUmakefile")):
        host.start(["make"], host.skill)


def packages(host: Host) -> None:
    """Installs the skill's dependencies, with their scripts."""
    for path, _ in list(host.files()):
        if path.name == "package.json":
            host.start(["npm", "install"], path.parent)
        elif path.name == "setup.py":
            host.start(["pip", "install", "."], path.parent)
        elif path.name.startswith("requirements") and path.suffix == ".txt":
            host.start(["pip", "install", "-r", str(path)], path.parent)


def show(host: Host) -> None:
    """A person looks at the files in a terminal."""
    for path, text in host.texts():
        if deceives(text):
            host.note("fooled", path.name)


STEPS: dict[str, Callable[[Host], None]] = {
    "read": read,
    "load": load,
    "config": config,
    "fences": fences,
    "scripts": scripts,
    "native": native,
    "make": make,
    "packages": packages,
    "show": show,
}


def main() -> None:
    """Starts with the ground as its argument; reads a skill's folder and the names of steps from each line, and reports
    when they are done."""
    ground, kept = Path(sys.argv[1]), {path.name for path in Path("/tmp").iterdir()}
    services = Services(ground / "log" / "arrived")
    for line in sys.stdin:
        skill, steps = json.loads(line)
        host, answer = Host(ground, Path(skill)), "done"
        try:
            for name in STEPS if steps == "everything" else steps.split("+"):
                STEPS[name](host)
        except Exception:
            answer = traceback.format_exc()
        _settle(services)
        for path in Path("/tmp").iterdir():
            if path.name not in kept:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        print(json.dumps(answer), flush=True)


def _settle(services: Services) -> None:
    """Waits for the processes that are still running, then ends them."""
    ending = time.monotonic() + LEFT
    while time.monotonic() < ending and (services.busy or list(_others())):
        time.sleep(0.01)
    for process in _others():
        os.kill(process, signal.SIGKILL)
    while services.busy or list(_others()):
        time.sleep(0.01)


def _others() -> Iterator[int]:
    for process in Path("/proc").glob("[0-9]*"):
        if int(process.name) not in {1, os.getpid()}:
            try:
                if b"State:\tZ" not in (process / "status").read_bytes():
                    yield int(process.name)
            except OSError:
                continue

"""The demo of many hosts: a broker, Postgres, two gateways and three workers, as processes with ports of their own.

Messages go to both gateways; meanwhile a worker, the broker and a gateway are killed, and the broker starts again. The
exit code is 0 only if each turn ended, and is in its session once. All that it writes is in one temporary folder.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx2

from dispatch.nats_broker import Broker
from navigator_kernel.bootstrap.project import Project
from postgres_server import PostgresServer, found

TURNS = 8
LEASE = 2.0  # seconds
LIMIT = 60.0  # seconds for one turn
WORKERS = ("box1", "box2", "box3")
NAVIGATOR = (sys.executable, "-m", "navigator_kernel.cli.main")
SKILL = """\
---
name: tally
description: Adds up the numbers of a line
command: python ${SKILL_ROOT}/tally.py -- {text}
required_params: '[{"name": "text", "prompt": "the numbers"}]'
---

Prints the sum.
"""
SCRIPT = """\
import json, sys, time
time.sleep(0.7)
numbers = [int(word) for word in sys.argv[-1].split() if word.isdigit()]
print(json.dumps({"summary": f"the sum is {sum(numbers)}", "sum": sum(numbers)}))
"""


def main() -> None:
    if found("initdb") is None:
        sys.exit("the demo needs the programs of postgresql")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="navigator-cluster-") as folder, ExitStack() as stack:
        Path(folder).chmod(0o755)  # Postgres runs as another user, if this one is root
        cluster = Cluster(Path(folder), stack)
        with ThreadPoolExecutor(TURNS) as pool:
            turns = [pool.submit(cluster.turn, number) for number in range(TURNS)]
            cluster.fail()
            rows = [turn.result() for turn in turns]
        for row in rows:
            print("  ".join(str(cell).ljust(width) for cell, width in zip(row, (8, 26, 40, 8, 8), strict=True)))
        wrong = [row for row in rows if row[-1] != "once"]
        print(f"{TURNS - len(wrong)} of {TURNS} turns ended once, {time.monotonic() - began:.0f} s")
    if wrong:
        sys.exit(1)


class Cluster:
    """Its processes end with `stack`."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self.stack, self.begun = folder, stack, time.monotonic()
        self.first = threading.Event()  # a turn has begun
        database = folder / "database"
        database.mkdir()
        server = PostgresServer(database)
        stack.callback(server.stop)
        server.start()
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("NAVIGATOR_", "XDG_"))}
        self.plain = {**kept, "PYTHONUTF8": "1"}
        named = [word for name in WORKERS for word in ("--worker", f"{name}=skills")]
        self.run("cluster", "init", str(folder / "broker"), "--owner", "desk", *named, env=self.home("desk"))
        self.broker = Broker(folder, folder / "broker" / "nats.conf").start()
        stack.callback(self.broker.kill)
        self.gateways = self.home("desk", "desk.nk")
        self.gateways |= {"NAVIGATOR_DATABASE_URL": server.url, "NAVIGATOR_PROJECT_ID": "demo"}
        self.gateways |= {"NAVIGATOR_LEASE": f"{LEASE:g}", "NAVIGATOR_NATS_ACK_WAIT": "3"}
        skill = folder / "desk" / ".claude" / "skills" / "tally"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(SKILL)
        (skill / "tally.py").write_text(SCRIPT)
        self.token = json.loads(self.run("serve", "--new-token", "--json", env=self.gateways))["token"]
        self.workers = {name: self.started(name, "worker", "--agree", "--name", name) for name in WORKERS}
        self.serving = [self.started("desk", "serve", "--port", "0", "--json") for _ in range(2)]
        self.urls = [self.url_of(process) for process in self.serving]
        os.environ.update(self.gateways)
        self.project = Project(folder / "desk", agents=False)  # what any host sees
        self.tell(f"2 gateways, {len(WORKERS)} workers without the skill 'tally', a broker and Postgres are up")

    def home(self, name: str, key: str = "") -> dict[str, str]:
        """The environment of a host with a home and a project of its own."""
        (self.folder / name / "mybox").mkdir(parents=True, exist_ok=True)
        (self.folder / f"{name}-home").mkdir(exist_ok=True)
        env = {**self.plain, "HOME": str(self.folder / f"{name}-home")}
        if key:
            env |= {"NAVIGATOR_NATS_URL": self.broker.url, "NAVIGATOR_NATS_SEED": str(self.folder / "broker" / key)}
        return env

    def run(self, *words: str, env: dict[str, str]) -> str:
        done = subprocess.run(
            [*NAVIGATOR, *words], cwd=self.folder / "desk", env=env, stdout=subprocess.PIPE, text=True, check=True
        )
        return done.stdout

    def started(self, name: str, *words: str) -> subprocess.Popen[str]:
        env = self.gateways if name == "desk" else self.home(name, f"{name}.nk")
        errors = self.stack.enter_context((self.folder / f"{name}.log").open("a"))
        process = subprocess.Popen(
            [*NAVIGATOR, *words],
            cwd=self.folder / name,
            env=env,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process

    def url_of(self, process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        url: str = json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")["url"]
        return url

    def tell(self, line: str) -> None:
        print(f"{time.monotonic() - self.begun:5.1f} s  {line}", flush=True)

    def fail(self) -> None:
        """Kills one of each kind while turns are under way."""
        self.first.wait(LIMIT)
        time.sleep(0.3)
        self.workers["box1"].kill()
        self.tell("the worker box1 is killed")
        self.broker.kill()
        self.tell("the broker is killed")
        time.sleep(1)
        self.broker.start()
        self.tell("the broker is up again")
        self.serving[0].kill()
        self.tell("a gateway is killed, and does not come back")

    def turn(self, number: int) -> tuple[str, str, str, str, str]:
        """Sends a message and waits for its end; on the other gateway if the first one ends meanwhile."""
        session, numbers = f"turn-{number}", f"{number} {number + 1}"
        message = f"/tally {numbers}" if number % 3 else f"/word-count {numbers}"
        gateway, end = number % 2, time.monotonic() + LIMIT
        by = "gateway 1" if gateway == 0 else "gateway 2"
        try:
            self.say(gateway, session, message)
        except httpx2.HTTPError:
            by += ", then gateway 2"
            while not self.history(session) and time.monotonic() < end:
                time.sleep(0.3)
                with suppress(httpx2.HTTPError):
                    if any(left.session == session for left in self.project.underway.left()):
                        self.tell(f"{session}: gateway 2 continues what the killed one began")
                        self.say(1, session, "yes")
                    elif time.monotonic() > end - LIMIT / 2 and not self.history(session):
                        self.say(1, session, message)  # the gateway ended before it had stored the message
        answers = [entry["text"] for entry in self.history(session) if entry["role"] != "user"]
        is_right = len(answers) == 1 and (str(2 * number + 1) in answers[0] or "word-count" in message)
        seconds = f"{LIMIT - (end - time.monotonic()):.1f} s"
        answer = " ".join(answers[-1].split())[:38] if answers else "none"
        return session, by, answer, seconds, "once" if is_right else f"{len(answers)} times"

    def say(self, gateway: int, session: str, text: str) -> None:
        with (
            self.client(gateway) as client,
            client.stream("POST", f"/api/chat/{session}", json={"message": text}) as answer,
        ):
            answer.raise_for_status()
            is_last = False
            for line in answer.iter_lines():
                self.first.set()
                is_last = is_last or line in {"event: RunCompleted", "event: RunError"}
                if is_last and line.startswith("data: "):
                    if '"RunError"' in line:
                        self.tell(f"{session}: {line}")
                    return
        raise httpx2.ReadError("the stream ended early")

    def history(self, session: str) -> list[dict[str, str]]:
        with suppress(httpx2.HTTPError), self.client(1) as client:
            answer = client.get(f"/api/sessions/{session}")
            return list(answer.json()["history"]) if answer.status_code == 200 else []
        return []

    def client(self, gateway: int) -> httpx2.Client:
        said = {"Authorization": f"Bearer {self.token}"}
        return httpx2.Client(base_url=self.urls[gateway], headers=said, timeout=LIMIT)


if __name__ == "__main__":
    main()

"""Sends everyday requests to the command line in the project of `project.py`, and judges each reply by `facts.py`.

`PYTHONPATH=kernel:tests python -m journeys.run [WORDS]` prints the table of the requests that contain WORDS, or of all of them, and what
was told to each that is not right.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from cli.support import MODULE, environment
from journeys.facts import Facts, stands_in
from journeys.project import make

Verdict = Literal["right", "wrong", "honest", "broken"]
ROWS = Path(__file__).with_name("requests.tsv")
CLOSED = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
NETWORK = re.compile(r"FetchFailed|git fetch of|github\.com")
LIMIT = 90  # seconds for one reply


class Request(NamedTuple):
    kind: str
    language: str
    messages: Sequence[str]
    must: str
    must_not: str


class Reply(NamedTuple):
    state: str  # the worst of its reports
    text: str
    broken: str  # why it can be no reply, or empty


class Result(NamedTuple):
    request: Request
    reply: Reply
    verdict: Verdict
    missing: Sequence[str]
    forbidden: Sequence[str]


def requests() -> list[Request]:
    rows = [line.split("\t") for line in ROWS.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    return [Request(kind, language, text.split(" ⏎ "), must, must_not) for kind, language, text, must, must_not in rows]


def results(folder: Path, asked: Sequence[Request]) -> list[Result]:
    """Makes the project and a home in `folder`, which must not exist, and asks each request in a session of its own. If the
    day ends meanwhile, all is done again: yesterday's log would be another."""
    folder.mkdir()
    (folder / "home").mkdir()
    today, project = local_day(), folder / "project"
    make(project, today)
    env = {name: value for name, value in environment().items() if not name.startswith(("XDG_", "GIT_", "NAVIGATOR_"))}
    env |= {**CLOSED, "GIT_ALLOW_PROTOCOL": "file", "HOME": str(folder / "home"), "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}
    subprocess.run([*MODULE, "init"], cwd=project, env=env, check=True, capture_output=True, timeout=LIMIT)
    facts, rows = Facts(project, today), []
    for number, request in enumerate(asked):
        for message in request.messages:
            reply = ask(project, env, f"journey-{number}", message)
        rows.append(judged(request, reply, facts))
    return rows if local_day() == today else results(folder / "again", asked)


def local_day() -> dt.date:
    return dt.datetime.now().astimezone().date()


def ask(project: Path, env: dict[str, str], session: str, message: str) -> Reply:
    argv = [*MODULE, "ask", "--yes", "--json", "--session", session, "--", message]
    try:
        done = subprocess.run(argv, cwd=project, env=env, capture_output=True, text=True, timeout=LIMIT, stdin=subprocess.DEVNULL)  # fmt: skip
        document = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return Reply("", "", "no reply in time")
    except ValueError:
        return Reply("", "", f"no JSON, exit code {done.returncode}: {done.stdout[-200:]} {done.stderr[-200:]}")
    reports = document.get("reports") or [document.get("report") or {}]
    states = [report.get("state") for report in reports]
    state = next((state for state in ("timeout", "error", "pending", "partial") if state in states), "success")
    parts = [line for report in reports for line in told({key: report.get(key) for key in ("summary", "data", "raw")})]
    text = "\n".join([*parts, *told({key: document.get(key) for key in ("question", "notice")})])
    broken = "" if (state == "success") == (done.returncode == 0) else f"{state}, but exit code {done.returncode}"
    if "Traceback (most recent" in done.stderr:
        broken = "a traceback"
    if NETWORK.search(text + done.stderr):
        broken = "turned to the network"
    return Reply(state, text, broken or ("no reply in time" if state == "timeout" else ""))


def told(value: Any, at: str = "") -> Iterator[str]:
    """The lines that a reader sees of a JSON value, each with the place of its value: one for each record of a list."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from told(item, f"{at}.{key}" if at else key)
    elif isinstance(value, list):
        for item in value:
            record = " | ".join(f"{key}: {part}" for key, part in item.items()) if isinstance(item, dict) else item
            yield f"{at}: {record}"
    elif value not in (None, "") and not (at == "raw" and value.startswith("{")):  # that is the data once more
        yield f"{at}: {value}"


def judged(request: Request, reply: Reply, facts: Facts) -> Result:
    absent = [fact for fact, patterns in facts.of(request.must).items() if not stands_in(patterns, reply.text)]
    forbidden = [fact for fact, patterns in facts.of(request.must_not).items() if stands_in(patterns, reply.text)]
    success = reply.state == "success"
    verdict: Verdict
    if reply.broken:
        verdict = "broken"
    elif request.kind == "refuse":
        verdict = "wrong" if success or forbidden else "honest" if absent else "right"
    else:
        verdict = "honest" if not success else "wrong" if absent or forbidden else "right"
    return Result(request, reply, verdict, absent, forbidden)


def count(rows: Sequence[Result], *, refusals: bool) -> Counter[Verdict]:
    return Counter(result.verdict for result in rows if (result.request.kind == "refuse") == refusals)


def table(rows: Sequence[Result]) -> str:
    """A line for each request; below it, if it is not right, what is missing, what must not be there, and how the reply begins."""
    lines = []
    for number, (request, reply, verdict, absent, forbidden) in enumerate(rows, 1):
        lines.append(f"{number:2} {verdict:7}{request.kind:8}{reply.state:9}{' ⏎ '.join(request.messages)}")
        if verdict != "right":
            lines += [f"{'missing':>16}: {'; '.join(absent)}"] if absent else []
            lines += [f"{'forbidden':>16}: {'; '.join(forbidden)}"] if forbidden else []
            lines.append(f"{'told':>16}: {reply.broken or reply.text[:160]}".replace("\n", " ⏎ "))
    for name in ("requests", "refusals"):
        verdicts = count(rows, refusals=name == "refusals")
        lines.append(f"{name}: " + ", ".join(f"{verdict} {verdicts[verdict]}" for verdict in get_args(Verdict)))
    return "\n".join(lines)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        wanted = " ".join(sys.argv[1:])
        asked = [request for request in requests() if wanted in " ".join(request.messages)]
        print(table(results(Path(temporary) / "radio", asked)))

"""What people say next, through the whole product: `make bench-conversation ROWS=file OUT=file [SURFACE=ask] [SAMPLE=n]`.

Each row of ROWS, one JSON object a line, names a state, what the assistant said, and a text. A new session is brought
into that state through the product, the text is sent, and OUT gets `{"id", "outcome", "reason"?}`: what happened.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from multiprocessing import Process, Queue
from pathlib import Path
from typing import Any

from bench.conversation_rows import Row, Seen
from bench.conversation_scenes import scene_of
from bench.conversation_stage import SetupFailed, Stage
from models.wire_server import WireServer, serving

WORKERS = 2
PART = 12  # rows that a worker takes at a time, all of the same project
TRIES = 2  # a state that could not be reached is tried again in a new project


Done = tuple[Row, Seen | str, float]  # a row, what happened or why its state could not be reached, and its seconds


def play(rows: Sequence[Row], surface: str = "ask", workers: int = WORKERS) -> Iterator[Done]:
    """Plays each row, not in order."""
    tasks: Queue[Sequence[Row] | None] = Queue()
    results: Queue[Done] = Queue()
    for part in (*_parts(rows), *[None] * workers):
        tasks.put(part)
    processes = [Process(target=_work, args=(tasks, results, surface), daemon=True) for _ in range(workers)]
    for process in processes:
        process.start()
    for _ in rows:
        yield results.get()
    for process in processes:
        process.join()


def _parts(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """The rows by project, the project with the most rows first, in parts."""
    keyed = sorted((scene_of(row).wanted.key, at) for at, row in enumerate(rows))
    groups = [[rows[at] for _, at in group] for _, group in groupby(keyed, key=lambda one: one[0])]
    for group in sorted(groups, key=len, reverse=True):
        yield from (group[at : at + PART] for at in range(0, len(group), PART))


def _work(tasks: Queue[Sequence[Row] | None], results: Queue[Done], surface: str) -> None:
    """Plays parts until there are no more. A project is made once, and again after a state was not reached."""
    base = Path(tempfile.mkdtemp(prefix="conversation-"))
    made: dict[str, Stage] = {}
    try:
        with serving() as server:
            while (part := tasks.get()) is not None:
                for row in part:
                    results.put(_played(row, made, base, server, surface))
            for stage in made.values():
                stage.surface.close()
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _played(row: Row, made: dict[str, Stage], base: Path, server: WireServer, surface: str) -> Done:
    began, scene = time.monotonic(), scene_of(row)
    key, wanted = scene.wanted.key, scene.wanted
    seen: Seen | str = ""
    for _ in range(TRIES):
        try:
            if key not in made:
                made[key] = Stage(Path(tempfile.mkdtemp(dir=base)), server, surface)
                made[key].build(wanted.skills, model=wanted.model, settings=wanted.settings, warm=wanted.warm)
            seen = scene.on(made[key])
            break
        except Exception as error:
            seen = str(error) if isinstance(error, SetupFailed) else traceback.format_exc(limit=-3)
            made.pop(key).surface.close()
    return row, seen, time.monotonic() - began


def evasive(rows: Sequence[Row], outcomes: dict[str, str]) -> tuple[int, int]:
    """How many rows have a better answer than a question, and how many of them got one nevertheless."""
    better = [row for row in rows if row["ok"][0] != "question" and row["id"] in outcomes]
    return len(better), sum(outcomes[row["id"]] == "question" for row in better)


def _line(name: str, seen: Seen) -> str:
    reason = {"reason": seen.reason} if seen.outcome == "no_with_reason" and seen.reason else {}
    return json.dumps({"id": name, "outcome": seen.outcome, **reason}, ensure_ascii=False) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--surface", choices=("ask", "chat", "http"), default="ask")
    parser.add_argument("--sample", type=int, help="only so many rows, always the same ones")
    parser.add_argument("--only", help="only rows whose id contains this")
    parser.add_argument("--workers", type=int, default=WORKERS)
    given = parser.parse_args()
    rows: list[dict[str, Any]] = [
        json.loads(line) for line in given.rows.read_text("utf-8").splitlines() if line.strip()
    ]
    rows = [row for row in rows if not given.only or given.only in row["id"]]
    if given.sample is not None and given.sample < len(rows):
        rows = random.Random(44).sample(rows, given.sample)
    began, seen = time.monotonic(), dict[str, Seen]()
    failures = Counter[str]()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    try:
        for count, (row, one, took) in enumerate(play(rows, given.surface, given.workers), 1):
            if isinstance(one, Seen):
                seen[row["id"]] = one
            else:
                failures[row["state"]] += 1
            told = one.outcome if isinstance(one, Seen) else f"NOT REACHED: {one}"
            print(f"{count}/{len(rows)} {row['id']} {took:.1f} s {row['text']!r}: {told}", file=sys.stderr, flush=True)
    finally:
        lines = [_line(row["id"], seen[row["id"]]) for row in rows if row["id"] in seen]
        given.out.write_text("".join(lines), "utf-8")
    print(f"{len(seen)} of {len(rows)} rows in {time.monotonic() - began:.0f} s, over {given.surface}")
    if failures:
        print(f"states that could not be reached: {dict(failures)}")
    if all("ok" in row for row in rows):
        better, asked = evasive(rows, {name: one.outcome for name, one in seen.items()})
        print(f"question in place of a better answer: {asked} of {better}, {100 * asked / max(better, 1):.1f} %")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

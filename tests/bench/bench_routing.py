"""What the router is worth and what it costs: `make bench-routing [DATA=FOLDER] [OUT=FILE.json] [SIZES="100 1000"]`.

The shipped weights answer the sets of the folder. Beside them, in the same run and over the same entries: BM25 alone,
SQLite's FTS5, and the encoder's cosines alone. What is decided among 3 to 10,000 skills beside the shipped ones comes from
weights that were fitted without the message.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from bench.encoders import Remembering, default_encoder
from bench.environments import Absent, python_with
from bench.routing_errors import Mistake, mistake, page
from bench.routing_metrics import Answered, auroc, coverage, ece, ndcg, routed, stray, top
from bench.routing_sets import SKILL_LIKE, Question, RoutingSet, read_sets, scale, with_shots
from bench.semantic_router_peer import SemanticRouter
from bench.several_wishes import several
from maintenance.fit_router import tables
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.model_ports import Encoder
from navigator_kernel.routing.entries import Entry
from navigator_kernel.routing.index import RoutingIndex
from navigator_kernel.routing.meaning import SemanticRanker
from navigator_kernel.routing.ranker import SEARCHED
from navigator_kernel.routing.words import content_terms, terms
from navigator_kernel.values.route import Retrieval

DEPTH = 50  # candidates of each ranking
CHANGES = 40  # skills added, then removed: more than wait beside tantivy, so that a commit is included
WARM = 300  # questions asked before latencies are measured, and as many others that are measured
PLOT = Path(__file__).with_name("routing_plot.py")
AGGREGATIONS = ("mean", "sum")  # of semantic-router: the default and the better one

Rank = Callable[[str], tuple[list[str], float, bool]]  # ids in order, confidence in the first, whether it is taken


def opened(entries: Sequence[Entry], encoder: Encoder | None, folder: Path) -> SemanticRanker:
    meaning = SemanticRanker(RoutingIndex(folder, FolderWriter([folder]), encoder))
    meaning.learn(entries)
    return meaning


def ours(judged: Callable[[str], Retrieval]) -> Rank:
    def rank(text: str) -> tuple[list[str], float, bool]:
        found = judged(text)
        first = found.candidates[0].confidence if found.candidates else 0.0
        return [one.name for one in found.candidates], first, found.band == "route"

    return rank


def bm25(meaning: SemanticRanker) -> Rank:
    view = meaning.index.view
    assert view is not None

    def rank(text: str) -> tuple[list[str], float, bool]:
        stems = view.words.stems(content_terms(text))
        found = view.search(dict.fromkeys(stems, 1.0), SEARCHED, DEPTH)
        return [view.row(row).id for row, _ in found], found[0][1] if found else 0.0, False

    return rank


def cosines(meaning: SemanticRanker) -> Rank:
    view, encoder = meaning.index.view, meaning.index.encoder
    assert view is not None and encoder is not None

    def rank(text: str) -> tuple[list[str], float, bool]:
        assert view.vectors is not None
        rows, near = view.vectors.near(encoder.encode([text], "query")[0], DEPTH)
        return [view.row(int(row)).id for row in rows], float(near[0]), False

    return rank


def fts5(entries: Sequence[Entry]) -> Rank:
    base = sqlite3.connect(":memory:")
    base.execute("create virtual table held using fts5(id unindexed, name, purpose, body)")
    rows = [[e.id, *(" ".join(terms(text)) for text in (e.name, e.purpose, e.body))] for e in entries]
    base.executemany("insert into held values (?, ?, ?, ?)", rows)

    def rank(text: str) -> tuple[list[str], float, bool]:
        words = " OR ".join(f'"{term}"' for term in dict.fromkeys(content_terms(text)))
        query = f"select id, bm25(held, 0, 3, 1, 0.3) from held where held match ? order by 2 limit {DEPTH}"
        found = base.execute(query, [words]).fetchall() if words else []
        return [row[0] for row in found], -found[0][1] if found else 0.0, False

    return rank


def answered(questions: Sequence[Question], rank: Rank) -> list[Answered]:
    held = []
    for one in questions:
        ids, confidence, taken = rank(one.text)
        ranks = tuple(at for at, name in enumerate(ids) if name in one.labels)
        held.append(Answered(ranks, len(one.labels), confidence, taken))
    return held


def figures(answers: Sequence[Answered]) -> dict[str, Any]:
    """Of one set by one ranking."""
    found: dict[str, Any] = {"questions": len(answers), "auroc": auroc(answers), "stray": stray(answers)}
    if any(one.labels for one in answers):
        found |= {"top1": top(answers, 1), "recall5": top(answers, 5), "recall20": top(answers, 20)}
        found["ndcg10"] = ndcg(answers)
    share, precision = routed(answers)
    found |= {"routed": share, "precision": precision, "coverage90": coverage(answers, 0.9), "ece": ece(answers)}
    return {name: None if value is None else round(value, 4) for name, value in found.items()}


def peers(found: RoutingSet, encoder: Encoder, router: SemanticRouter | None) -> dict[str, Any]:
    """semantic-router over the same vectors; it knows examples only, so it is asked where every entry has some."""
    if router is None or not all(entry.examples for entry in found.entries):
        return {}
    routes = {entry.id: entry.examples for entry in found.entries}
    asked = [one.text for one in found.questions]
    texts = list(dict.fromkeys([*(text for said in routes.values() for text in said), *asked]))
    vectors = dict(zip(texts, encoder.encode(texts, "query"), strict=True))
    told = {}
    for how in AGGREGATIONS:
        held = []
        for one, (name, sure) in zip(found.questions, router.answers(vectors, routes, asked, how), strict=True):
            held.append(Answered((0,) if name in one.labels else (), len(one.labels), sure, routed=False))
        told[f"semantic-router {how}"] = figures(held)
    return told


def quality(
    found: RoutingSet, encoder: Encoder, router: SemanticRouter | None, folder: Path
) -> tuple[dict[str, Any], list[Answered], list[Mistake]]:
    meaning = opened(found.entries, encoder, folder / f"{found.name}")
    words = opened(found.entries, None, folder / f"{found.name}")
    judged = cache(lambda text: meaning.judged(text, DEPTH))
    answers = answered(found.questions, ours(judged))
    beside = {
        "words": ours(lambda text: words.judged(text, DEPTH)),
        "bm25": bm25(meaning),
        "cosines": cosines(meaning),
        "fts5": fts5(found.entries),
    }
    told = {"default": figures(answers)}
    told |= {name: figures(answered(found.questions, rank)) for name, rank in beside.items()}
    told |= peers(found, encoder, router)
    wrong = [mistake(one, judged(one.text).candidates) for one in found.questions]
    return told, answers, [one for one in wrong if one is not None]


def cost(data: Path, count: int) -> dict[str, Any]:
    """Seconds, milliseconds and MiB at `count` skills: an index is built by one process and asked by another."""
    asked = [one.text for found in read_sets(data) if found.name in SKILL_LIKE for one in found.questions[:120]]
    Random(0).shuffle(asked)
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # as the kernel sets it
    held: dict[str, Any] = {"skills": count}
    with TemporaryDirectory() as scratch:
        (Path(scratch) / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
        for part in PARTS:
            words = [sys.executable, "-m", "bench.bench_routing", "--data", str(data), "--cost", str(count)]
            words += ["--part", part, "--scratch", scratch]
            done = subprocess.run(words, capture_output=True, text=True, check=True, env=env)
            held |= json.loads(done.stdout.splitlines()[-1])
    bare = [timed(partial(subprocess.run, [sys.executable, "-c", "pass"], check=True))[0] for _ in range(5)]
    return {**held, "bare_python_ms": round(median(bare), 1), "load_average": os.getloadavg()[0]}


def built(entries: Sequence[Entry], scratch: Path) -> dict[str, Any]:
    encoder = default_encoder()
    encoder.encode(["ready"], "query")
    began, start = time.process_time(), time.perf_counter()
    opened(entries, encoder, scratch / "index")
    took, waited = time.process_time() - began, time.perf_counter() - start
    size = sum(path.stat().st_size for path in (scratch / "index").rglob("*") if path.is_file())
    whole = {"build_s": round(waited, 2), "build_cpu_s": round(took, 2), "index_mib": round(size / 2**20, 1)}
    return {**whole, "build_peak_mib": round(peak() / 1024)}


def answering(entries: Sequence[Entry], scratch: Path) -> dict[str, Any]:
    encoder, asked = default_encoder(), json.loads((scratch / "asked.json").read_text(encoding="utf-8"))
    encoder.encode(["ready"], "query")
    began = time.process_time()
    meaning = opened(entries, encoder, scratch / "index")
    meaning.judged(asked[0], 5)
    loaded = time.process_time() - began
    for text in asked[:WARM]:
        meaning.judged(text, 12)
    waited = [timed(partial(meaning.judged, text, 12)) for text in asked[WARM : 2 * WARM]]
    most = peak()
    new = [Entry(id=f"new-{at}", name=f"new-{at}", description="Does a new thing.") for at in range(CHANGES)]
    added, after = [], []
    for at in range(CHANGES):
        added.append(timed(partial(meaning.learn, [*entries, *new[: at + 1]])))
        after.append(timed(partial(meaning.judged, asked[at], 12)))
    removed = [timed(partial(meaning.learn, [*entries, *new[at + 1 :]])) for at in range(CHANGES)]
    told: dict[str, Any] = {"load_cpu_s": round(loaded, 3), "peak_mib": round(most / 1024)}
    for at, kind in enumerate(("ms", "cpu_ms")):
        of = [[one[at] for one in many] for many in (waited, added, removed, after)]
        told |= {f"p{share}_{kind}": round(float(np.percentile(of[0], share)), 2) for share in (50, 99)}
        for name, many in zip(("add", "remove", "message_after"), of[1:], strict=True):
            told |= {f"{name}_{kind}": round(median(many), 1), f"{name}_most_{kind}": round(max(many), 1)}
    return told


PARTS: Mapping[str, Callable[[Sequence[Entry], Path], dict[str, Any]]] = {"built": built, "answering": answering}


def timed(act: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds by the clock, and of CPU."""
    start, began = time.perf_counter(), time.process_time()
    act()
    return (time.perf_counter() - start) * 1000, (time.process_time() - began) * 1000


def peak() -> int:
    """KiB of memory that this process has had at most; `getrusage` would count what it was forked from."""
    held = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(held["VmHWM"].split()[0])


def main() -> None:
    here = argparse.ArgumentParser(description=__doc__)
    here.add_argument("--data", type=Path, default=Path("../shared/routing"))
    here.add_argument("--out", type=Path, default=Path("build/bench-routing.json"))
    here.add_argument("--sizes", type=int, nargs="*", default=[100, 1_000, 10_000, 49_000, 100_000])
    here.add_argument("--cost", type=int, help="measure one size and print it")
    here.add_argument("--part", choices=PARTS, help="of that measurement, in this process")
    here.add_argument("--scratch", type=Path, help="the folder of its index")
    here.add_argument("--plot", type=Path, help="draw the figures there, as PNG")
    here.add_argument("--errors", type=Path, help="write the page of errors there")
    given = here.parse_args()
    if given.part is not None:
        print(json.dumps(PARTS[given.part](scale(given.data, given.cost), given.scratch)))
        return
    if given.cost is not None:
        print(json.dumps(cost(given.data, given.cost)))
        return
    if not (given.data / "dev").is_dir():
        sys.exit(f"there are no routing sets in {str(given.data)!r}: say DATA=FOLDER, one with dev/ and catalog/")
    encoder, sets, joint = default_encoder(), {}, []
    router = peer()
    wrong: dict[str, list[Mistake]] = {}
    with TemporaryDirectory() as scratch:
        for zero in read_sets(given.data):
            for found in filter(None, (zero, with_shots(zero, given.data))):
                sets[found.name], answers, wrong[found.name] = quality(found, encoder, router, Path(scratch))
                joint += answers if found.name in (*SKILL_LIKE, "toole_direct") else []
                told(found.name, sets[found.name])
    together = figures(joint) if joint else {}
    print("skill-like sets together", together)
    decisions = tables(given.data, Remembering(encoder))
    wishes = several(given.data, encoder)
    print("several wishes", wishes)
    costs = [cost(given.data, count) for count in given.sizes]
    for row in costs:
        print(row)
    if given.errors is not None:
        counts = {name: found["default"]["questions"] for name, found in sets.items()}
        given.errors.write_text(page(wrong, counts), encoding="utf-8")
    given.out.parent.mkdir(parents=True, exist_ok=True)
    body = {
        "encoder": encoder.id,
        "sets": sets,
        "skill_like": together,
        "decisions": decisions,
        "several": wishes,
        "costs": costs,
    }
    given.out.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")
    if given.plot is not None:
        python, _ = python_with("plots", ("matplotlib",), "import matplotlib")
        subprocess.run([str(python), str(PLOT), str(given.out), str(given.plot)], check=True)


def peer() -> SemanticRouter | None:
    try:
        return SemanticRouter()
    except (Absent, OSError) as reason:
        print(f"semantic-router is left out: {reason}")
        return None


def told(name: str, found: dict[str, Any]) -> None:
    parts = [
        f"{which} {held.get('top1', 0):.3f}/{held.get('recall5', 0):.3f}" if "top1" in held else f"{which} -"
        for which, held in found.items()
    ]
    first = found["default"]
    rest = f"auroc {first['auroc']}, routed {first['routed']:.3f} at {first['precision']:.3f}, stray {first['stray']}"
    print(f"{name:24} {'  '.join(parts)}  | {rest}, ece {first['ece']:.3f}", flush=True)


if __name__ == "__main__":
    main()

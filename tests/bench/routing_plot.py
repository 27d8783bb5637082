"""Draws the figures of `make bench-routing`, with matplotlib in an environment of its own: the JSON and the PNG are named
on the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

SHOWN = ("default", "words", "bm25", "cosines", "semantic-router mean")


def drawn(held: dict[str, Any], path: Path) -> None:
    """Left the share of first places that are right, by set; right the milliseconds of a message by size."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 7), width_ratios=(3, 2), layout="constrained")
    sets = {name: found for name, found in held["sets"].items() if "top1" in found["default"]}
    height = 0.8 / len(SHOWN)
    for at, which in enumerate(SHOWN):
        rows = [(place, found[which]["top1"]) for place, found in enumerate(sets.values()) if which in found]
        places, shares = [place + at * height for place, _ in rows], [share for _, share in rows]
        left.barh(places, shares, height, label=which)
    left.set_yticks([place + 0.4 - height / 2 for place in range(len(sets))], list(sets))
    left.invert_yaxis()
    left.set(xlabel="right at the first place", xlim=(0, 1))
    left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.07), ncols=len(SHOWN), frameon=False)
    sizes = [row["skills"] for row in held["costs"]]
    for name in ("p50_ms", "p99_ms"):
        right.plot(sizes, [row[name] for row in held["costs"]], marker="o", label=name.removesuffix("_ms"))
    right.set(
        xscale="log", xlabel="skills", ylabel="milliseconds a message, one thread, encoder included", ylim=(0, None)
    )
    right.legend()
    figure.savefig(path, dpi=80, metadata={"Software": None})


if __name__ == "__main__":
    drawn(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), Path(sys.argv[2]))

"""The demo: installs a skill from a real git repository, routes a message to it, runs it, and checks the answer.

It needs no key and no network: the repository is made here and fetched over `file://`. All that it writes is in a
temporary folder, its own home included.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

SKILL = """\
---
name: region-totals
description: Adds up sales per region of a CSV file (use it when somebody asks for totals by region 按地区汇总销售额)
metadata:
  navigator-command: python ${SKILL_ROOT}/totals.py {input}
  navigator-required_params: '[{"name": "input", "prompt": "the CSV file, as @path", "validation": "file_exists"}]'
  navigator-examples: |
    what are the total sales per region
    每个地区的销售总额是多少
---

Prints the total of `amount` for each `region`.
"""
SCRIPT = """\
import csv, json, sys
totals = {}
with open(sys.argv[1], newline="") as file:
    for row in csv.DictReader(file):
        totals[row["region"]] = totals.get(row["region"], 0) + int(row["amount"])
print(json.dumps({"summary": f"{len(totals)} regions", "totals": totals}))
"""
REGIONS = ("north", "south", "east", "west")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="navigator-demo-") as folder:
        demo = Demo(Path(folder))
        demo.make_repository()
        rows = demo.make_input()
        demo.navigator("init")
        demo.navigator("skill", "info", demo.source)
        demo.navigator("skill", "install", demo.source, "--skill", "region-totals")
        question = "what are the total sales per region in @sales.csv"
        demo.navigator("route", question)
        demo.navigator("skill", "scan", "region-totals")
        demo.navigator("policy", "explain", "region-totals")
        demo.navigator("ask", question)
        answer = json.loads(demo.navigator("ask", question, "--json", shown=False))
        demo.navigator("why")
        demo.navigator("log")
        check(answer["report"]["data"]["totals"], rows)


def check(totals: dict[str, int], rows: list[tuple[str, int]]) -> None:
    """The same sums, computed here from the rows themselves."""
    wanted: dict[str, int] = defaultdict(int)
    for region, amount in rows:
        wanted[region] += amount
    if totals != dict(wanted):
        sys.exit(f"the skill said {totals}, the rows add up to {dict(wanted)}")
    print(f"checked: {len(rows)} generated rows add up to the same {len(wanted)} totals")


class Demo:
    """A home, a project and a repository of skills in one temporary folder."""

    def __init__(self, folder: Path) -> None:
        self.project, self.repository = folder / "project", folder / "skills"
        self.source = f"file://{self.repository}"
        for path in (self.project, self.repository, folder / "home"):
            path.mkdir()
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("NAVIGATOR_", "XDG_", "GIT_"))}
        self.env = {**kept, "HOME": str(folder / "home"), "PYTHONUTF8": "1"}

    def make_repository(self) -> None:
        skill = self.repository / "skills" / "region-totals"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(SKILL, "utf-8")
        (skill / "totals.py").write_text(SCRIPT, "utf-8")
        author = ["-c", "user.name=demo", "-c", "user.email=demo@localhost"]
        for words in (["init", "-q"], ["add", "-A"], [*author, "commit", "-qm", "A skill that adds up sales"]):
            subprocess.run(["git", *words], cwd=self.repository, env=self.env, check=True)

    def make_input(self) -> list[tuple[str, int]]:
        rows = [(random.choice(REGIONS), random.randint(1, 500)) for _ in range(200)]
        lines = ["region,amount", *(f"{region},{amount}" for region, amount in rows)]
        (self.project / "sales.csv").write_text("\n".join(lines) + "\n", "utf-8")
        return rows

    def navigator(self, *words: str, shown: bool = True) -> str:
        """Its stdout; the demo ends where it fails."""
        line = [sys.executable, "-m", "navigator_kernel.cli.main", "--style", "emoji", *words]
        done = subprocess.run(line, cwd=self.project, env=self.env, capture_output=True, text=True, check=False)
        if shown:
            print(f"$ navigator {' '.join(words)}\n{done.stderr}{done.stdout}", flush=True)
        if done.returncode:
            sys.exit(f"exit code {done.returncode}\n{done.stderr}")
        return done.stdout


if __name__ == "__main__":
    main()

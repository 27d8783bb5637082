"""Honest skills that run programs, use the network as they say, or hold notes for their maintainers."""

from __future__ import annotations

from scanning.samples import of

code = of("runs-programs")
web = of("uses-the-network")
noted = of("notes-for-maintainers")

CODE = (
    code(
        "run-checks",
        "Runs formatter, linter and tests of a project",
        "# Checks\n\n`python scripts/checks.py` runs all; the first failure ends it.\n",
        {
            "scripts/checks.py": """import shutil
import subprocess
import sys

STEPS = [["ruff", "format", "--check", "."], ["ruff", "check", "."], ["pytest", "-q"]]

for step in STEPS:
    if not shutil.which(step[0]):
        print("missing:", step[0])
        continue
    done = subprocess.run(step, check=False, timeout=600)
    if done.returncode:
        sys.exit(done.returncode)
"""
        },
    ),
    code(
        "colour-output",
        "Prints test results in colour",
        "# Colours\n\n`python scripts/report.py results.json`\n",
        {
            "scripts/report.py": """import os
import sys

RED, GREEN, RESET = "\\x1b[31m", "\\x1b[32m", "\\x1b[0m"
CLEAR = "\\033[2J\\033[H"
plain = "NO_COLOR" in os.environ or not sys.stdout.isatty()
for name, good in (("parse", True), ("write", False)):
    colour = "" if plain else (GREEN if good else RED)
    print(f"{colour}{name}{'' if plain else RESET}")
""",
            "scripts/report.sh": '#!/bin/bash\nprintf "\\e[1m%s\\e[0m\\n" "results"\ntput cnorm 2>/dev/null || true\n',
        },
    ),
    code(
        "calculator",
        "Computes expressions exactly",
        "# Calculator\n\n`python scripts/calc.py '2 * (3 + 4)'`. There is no `eval()` in it: the expression is parsed.\n",
        {
            "scripts/calc.py": '''import ast
import operator
import sys

KNOWN = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def evaluate(node):
    """The value of an expression; eval() would run anything."""
    if isinstance(node, ast.Expression):
        return evaluate(node.body)
    if isinstance(node, ast.BinOp):
        return KNOWN[type(node.op)](evaluate(node.left), evaluate(node.right))
    return ast.literal_eval(node)


print(evaluate(ast.parse(sys.argv[1] if len(sys.argv) > 1 else "2 * (3 + 4)", mode="eval")))
'''
        },
    ),
    code(
        "model-training",
        "Trains and evaluates small neural networks",
        """# Training

```python
model.train()
for batch in loader:
    loss = criterion(model(batch.x), batch.y)
    loss.backward()
model.eval()
with torch.no_grad():
    print(accuracy(model, test))
```

Load weights with `torch.load(path, weights_only=True)`; older files are pickles and can run code.
""",
        {
            "scripts/query.py": """import re
import sqlite3

base = sqlite3.connect(":memory:")
base.executescript("create table runs (name text, score real); insert into runs values ('a', 0.9)")
print(base.execute("select name, score from runs order by score").fetchall())
print(re.compile(r"epoch (\\d+)").match("epoch 3")[1])
""",
            "scripts/words.js": 'const found = /(\\d+) epochs/.exec("12 epochs");\nconsole.log(found[1]);\n',
        },
        needs=("node",),
    ),
    code(
        "clean-build",
        "Cleans and rebuilds a project",
        "# Clean build\n\n```bash\nrm -rf build/ dist/ *.egg-info\nfind . -name __pycache__ -type d -prune -exec rm -rf {} +\n"
        "mkdir -p build\n```\n",
        {
            "Makefile": """.PHONY: all clean
all: clean
\t@mkdir -p build && echo built > build/stamp

clean:
\t@rm -rf build dist .pytest_cache
"""
        },
    ),
    code(
        "nginx-admin",
        "Explains and checks nginx configurations",
        """# nginx

Check before each reload:

```bash
sudo nginx -t && sudo systemctl reload nginx
```

Logs are in `/var/log/nginx/`. A certificate is renewed by a timer.
""",
        {
            "assets/site.conf": "server {\n  listen 443 ssl;\n  server_name shop.example.com;\n  location /api/ { proxy_pass http://127.0.0.1:8080; }\n}\n"
        },
    ),
    code(
        "windows-files",
        "Finds large files on Windows",
        "# Large files\n\n`pwsh -File scripts/large.ps1`\n",
        {
            "scripts/large.ps1": "param([string]$Path = '.')\nGet-ChildItem -Path $Path -Recurse -File |\n"
            "  Sort-Object Length -Descending | Select-Object -First 20 FullName, Length\n"
        },
    ),
)

WEB = (
    web(
        "weather",
        "Tells the weather of a place",
        "# Weather\n\nSet `WEATHER_API_KEY` to your key of the weather service, then run `python scripts/weather.py Paris`.\n",
        {
            "scripts/weather.py": """import json
import os
import sys
import urllib.parse
import urllib.request

URL = "https://api.weather.example/v1/forecast.json"


def forecast(place: str, key: str) -> dict:
    query = urllib.parse.urlencode({"q": place})
    asked = urllib.request.Request(f"{URL}?{query}", headers={"Authorization": f"Bearer {key}"})
    with urllib.request.urlopen(asked, timeout=10) as page:
        return json.load(page)


key = os.environ.get("WEATHER_API_KEY") or sys.exit("WEATHER_API_KEY is not set")
print(forecast(" ".join(sys.argv[1:]) or "Paris", key).get("status"))
"""
        },
    ),
    web(
        "release-announcer",
        "Announces a release in a chat channel",
        "# Announcements\n\nThe address of the channel's webhook is in `CHANNEL_WEBHOOK`. Show the person the text before it is sent.\n",
        {
            "scripts/announce.py": """import os
import sys

import requests

hook = os.environ.get("CHANNEL_WEBHOOK")
text = " ".join(sys.argv[1:]) or "A new release is out"
if not hook:
    sys.exit(f"CHANNEL_WEBHOOK is not set; the text would be: {text}")
requests.post(hook, json={"text": text}, timeout=10).raise_for_status()
"""
        },
    ),
    web(
        "dead-links",
        "Finds dead links in Markdown files",
        "# Dead links\n\n`python scripts/links.py README.md` asks each address for its head only.\n",
        {
            "scripts/links.py": """import re
import sys
from pathlib import Path
from urllib.request import Request, urlopen

for path in map(Path, sys.argv[1:] or ["README.md"]):
    for url in re.findall(r"https?://[^\\s)>]+", path.read_text()):
        try:
            with urlopen(Request(url, method="HEAD"), timeout=10) as page:
                print(page.status, url)
        except OSError as error:
            print("dead", url, error)
"""
        },
    ),
    web(
        "local-preview",
        "Serves a folder for a look in the browser",
        "# Preview\n\n`python -m http.server --bind 127.0.0.1 8123` serves the folder on this machine only.\n",
        {
            "scripts/free_port.py": """import socket

with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    print("free port", probe.getsockname()[1])
"""
        },
    ),
)

NOTED = (
    noted(
        "style-guide",
        "Keeps texts in the style of a house",
        """<!-- markdownlint-disable MD013 MD033 -->
<!-- SPDX-License-Identifier: Apache-2.0 -->

# Style guide

<!-- TODO(maintainers): shorten this section before 2.0, see issue 118 -->

Short sentences. Active voice. One term for one thing.

<!-- prettier-ignore-start -->
| not | but |
|-----|-----|
| utilise | use |
<!-- prettier-ignore-end -->

[//]: # "The table above is generated by scripts of the website"
""",
        {
            "README.md": "# Style guide\n\n[![build](https://img.example.com/badge.svg)](https://ci.example.com 'state of the build')\n"
        },
    ),
    noted(
        "table-tools",
        "Converts tables between formats",
        "# Tables\n\n`python scripts/tables.py in.csv` writes Markdown. Tests are in `tests/`.\n",
        {
            "scripts/tables.py": '''"""Converts CSV to Markdown.

Note for contributors: keep this module free of dependencies, agents and people read it alike.
"""
import csv
import sys


def markdown(rows: list[list[str]]) -> str:
    # the second line is what makes it a table
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


if len(sys.argv) > 1:
    with open(sys.argv[1], newline="") as held:
        print(markdown(list(csv.reader(held))))
''',
            "tests/test_tables.py": """import subprocess
import sys
from pathlib import Path


def test_a_table_has_a_line_below_its_head(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\\n1,2\\n")
    script = Path(__file__).parents[1] / "scripts" / "tables.py"
    done = subprocess.run([sys.executable, script, tmp_path / "a.csv"], capture_output=True, text=True)
    assert done.stdout.splitlines()[1] == "|---|---|"
""",
            "CHANGELOG.md": "# Changes\n\n- 1.1: removed `eval` from the parser\n- 1.0: first\n",
            "LICENSE": "Apache License, Version 2.0. You may obtain a copy at https://www.apache.org/licenses/LICENSE-2.0\n",
        },
    ),
)

WORKING = (*CODE, *WEB, *NOTED)

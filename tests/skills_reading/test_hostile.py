"""No manifest costs much: each is read, or refused with a reason, in a separate process that is measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.sample(2)

CPU = 2.0  # seconds
MEMORY = 200 * 1024  # KiB
READ = """
import json, resource, sys
from pathlib import Path
from navigator_kernel.errors import NotLoadable
from navigator_kernel.skills.formats.layouts import to_canonical
from navigator_kernel.skills.formats.manifest import read_manifest
from navigator_kernel.skills.formats.validate import validate
data = sys.stdin.buffer.read()
reason = ""
began = resource.getrusage(resource.RUSAGE_SELF)
try:
    read_manifest(data, path=Path("x/SKILL.md"), folder=Path("x"))
except NotLoadable as error:
    reason = error.data["reason"]
if sys.argv[1] == "all":
    validate(data, "x", {}, strict=True)
    try:
        to_canonical(data, "x")
    except NotLoadable:
        pass
ended = resource.getrusage(resource.RUSAGE_SELF)
spent = ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
status = Path("/proc/self/status").read_text()  # ru_maxrss would tell of the parent too: it outlives exec
peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
print(json.dumps({"reason": reason, "cpu": spent, "memory": peak}))
"""


def head(lines: str, body: str = "Go.") -> bytes:
    return f"---\nname: x\ndescription: d\n{lines}\n---\n{body}\n".encode()


def laughs() -> str:
    floors = [f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30)]
    return "\n".join(["a0: &a0 [x,x]", *floors])


HOSTILE: dict[str, tuple[bytes, str]] = {
    "aliases": (head(laughs()), "yaml-anchor"),
    "anchors": (head("\n".join(f"k{i}: &a{i} v" for i in range(4_000))), "yaml-anchor"),
    "tags": (head("run: !!python/object/apply:os.system ['touch /tmp/x']"), "yaml-tag"),
    "flow depth": (head(f"a: {'[' * 30_000}"), "yaml-depth"),
    "map depth": (head(f"a: {'{a: ' * 15_000}"), "yaml-depth"),
    "block depth": (head("a:\n" + "\n".join(f"{' ' * i}b:" for i in range(1, 300))), "yaml-depth"),
    "duplicate keys": (head("k: 1\n" * 10_000), "duplicate-key"),
    "merge keys": (head("<<: [{a: 1}, {b: 2}]"), "yaml-merge-key"),
    "huge integer": (head(f"priority: {'9' * 60_000}"), "yaml-huge-number"),
    "sexagesimal": (head(f"priority: {':'.join(['59'] * 20_000)}"), ""),
    "nul": (head("a: b\0c"), "control-character"),
    "escape": (head("a: \x1b]0;title\x07"), "control-character"),
    "scalar of 1 MB": (head(f"a: {'x' * 1_000_000}"), "too-large"),
    "text of 10 MB": (head("a: b", "x" * 10_000_000), "too-large"),
    "lines of 10 MB": (b"\n" * 10_000_000, "too-large"),
    "header of 1 MB": (b"# x\n" + b"k: v\n" * 200_000, "too-large"),
}
LARGE: dict[str, bytes] = {
    "many keys": head("\n".join(f"k{i}: v" for i in range(6_000))),
    "many items": head(f"tags: [{'a,' * 30_000}]"),
    "many words": head(f"allowed-tools: {'Bash(a:*) ' * 6_000}"),
    "parentheses": head(f"allowed-tools: {'(' * 60_000}"),
    "values to fix": head("\n".join(f"k{i}: a: b" for i in range(5_000))),
    "brackets to fix": head("\n".join(f"k{i}: [a] b" for i in range(4_500))),
    "quotes to fix": head("a: '" + "''" * 30_000 + "x' y"),
    "lines to read one by one": head("a: b\n  c: d\n" + "\n".join(f"k{i}: v\n - x" for i in range(4_000))),
    "lines of one value": head("description2: a: b\n" + "  c: d\n" * 9_000),
    "brackets in the text": head("a: b", "[" * 500_000 + "](" * 200_000),
    "links in the text": head("a: b", "[a](b 'c) " * 90_000),
    "ticks in the text": head("a: b", "`" * 900_001),
    "fences in the text": head("a: b", "```\n~~~\n" * 120_000),
    "rules in the text": head("a: b", "\n---\n" * 200_000),
    "comments": b"<!-- -->\n" * 110_000 + head("a: b"),
    "comments on one line": b"<!-- -->" * 120_000 + b"\n" + head("a: b"),
    "never closed": b"---\n" + b"a: b\n\n# c\n" * 90_000,
    "gbk": "---\nname: x\ndescription: 审查\n---\n".encode("gbk") + "审查代码".encode("gbk") * 120_000,
    "latin": b"\xe9 " * 500_000,
    "zero bytes": b"# x\n\nGo" + b"\0" * 1_000_000,
    "carriage returns": b"# x\n\nGo" + b"\r" * 1_000_000,
    "title": b"# " + b"x: y" * 250_000,
    "licence": head(f"license: {'a-' * 30_000}"),
}


def spent(data: bytes, what: str) -> dict[str, Any]:
    script = [sys.executable, "-c", READ, what]
    done = subprocess.run(script, input=data, capture_output=True, timeout=60, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return dict(json.loads(done.stdout))


@pytest.mark.requirement("FMT-7")
@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_manifest_is_refused_with_its_reason_in_bounded_time_and_memory(case: str) -> None:
    data, reason = HOSTILE[case]
    told = spent(data, "read")
    assert told["reason"] == reason
    assert (told["cpu"] < CPU, told["memory"] < MEMORY) == (True, True), told


@pytest.mark.wide
@pytest.mark.parametrize("case", LARGE)
def test_a_manifest_at_its_limits_is_read_checked_and_written_in_bounded_time_and_memory(case: str) -> None:
    told = spent(LARGE[case], "all")
    assert (told["cpu"] < 3 * CPU, told["memory"] < MEMORY) == (True, True), told

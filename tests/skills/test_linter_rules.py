"""Each rule of the linter has a fix on its page, and each example there breaks its rule."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli.support import place_in
from navigator_kernel.evals.cases import cases_in
from navigator_kernel.evals.lint import of_descriptions, of_evals, without_evals
from navigator_kernel.language.wording import linter_rules
from navigator_kernel.skills.formats.manifest import read_manifest
from navigator_kernel.skills.formats.validate import validate
from tables import cases

KERNEL = Path(__file__).parents[2] / "kernel" / "navigator_kernel"
SOURCES = ("skills/formats/validate.py", "skills/formats/manifest.py", "skills/formats/frontmatter.py",
    "evals/lint.py", "evals/cases.py", "cli/skill/eval.py")  # fmt: skip
GIVEN = re.compile(
    r'(?:\bnote|\badd|Hostile|Problem)\(\s*"([a-z][a-z0-9-]+)"|reason="([a-z-]+)"|\(\s*"(yaml-[a-z]+)",\s*"|"(name-[a-z-]+)": \('
)
COMPUTED = {"precision-low", "recall-low", "served-low", "trigger-missing", "description-short", "description-person"}
EXAMPLES = {code: row[4] for code, row in linter_rules().items() if row[4] != "-" and not row[4].endswith("characters")}


def test_the_page_has_each_rule_of_the_code_and_no_other() -> None:
    given = {word for file in SOURCES for hit in GIVEN.findall((KERNEL / file).read_text("utf-8")) for word in hit}
    assert (given | COMPUTED) - {""} == linter_rules().keys()
    assert all(len(row) == 5 and all(row) for row in linter_rules().values())


@pytest.mark.parametrize("code", EXAMPLES)
def test_the_example_of_a_rule_breaks_it(code: str, tmp_path: Path) -> None:
    example = EXAMPLES[code].replace("\\n", "\n").replace("\\r", "\r").replace("\\t", "\t")
    example = re.sub(r"\\u([0-9a-f]{4})", lambda hit: chr(int(hit[1], 16)), example)
    keys = {"name": "x", "description": "Does a thing. Use when somebody asks for the thing"}
    kind, _, rest = example.partition(":")
    body = {"501 lines": "Go.\n" * 501}.get(rest.strip(), rest.strip()) if kind == "body" else "Go."
    evals = {"evals/evals.json": rest.strip().encode()} if kind == "evals" else {}
    if kind in keys:
        keys[kind] = rest.strip()
    more = "" if kind in {*keys, "body", "evals"} else f"{example}\n"
    text = f"---\n{''.join(f'{key}: {value}{chr(10)}' for key, value in keys.items())}{more}---\n{body}\n"
    if example.lstrip("\ufeff").startswith(("---", "<!--")):
        text = example.removeprefix("---") if example[3:4] not in {"\n", "\r"} and example[0] == "-" else example
    codes = {one.code for strict in (True, False) for one in validate(text.encode(), "x", evals, strict=strict)}
    if not codes & {"empty", "duplicate-key", "control-character"} and not code.startswith("yaml"):
        skill = read_manifest(text.encode(), path=Path("SKILL.md"), folder=Path("x"))
        for path, data in evals.items():
            (tmp_path / path).parent.mkdir()
            (tmp_path / path).write_bytes(data)
        rows, problems = cases_in("x", tmp_path / "evals")
        found = [*problems, *of_descriptions([skill]), *of_evals(rows, [skill]), *without_evals(rows, [skill], "error")]
        codes |= {one.code for one in found}
    assert code in codes


@cases("text")
def test_eval_and_validate_judge_a_skill_alike_and_print_the_same_fixes(tmp_path: Path, text: str) -> None:
    here = place_in(tmp_path)
    here.write({".claude/skills/x/SKILL.md": text})
    strict = here.json("skill", "validate", "--strict", ".claude/skills")
    (plain,) = here.json("skill", "validate", ".claude/skills")["skills"]
    judged = here.json("eval", "x")
    told = {one["code"]: one["level"] for one in judged["problems"] if not one["code"].startswith("eval-")}
    described = {"trigger-missing", "description-short", "description-person"}
    expected = {one["code"]: one["level"] for one in plain["findings"]}
    by_strict = {one["code"]: one["level"] for one in strict["skills"][0]["findings"]}
    assert told == {code: by_strict[code] if code in described else level for code, level in expected.items()}

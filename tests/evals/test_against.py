"""`navigator eval --against` and `navigator skill optimize`: which messages another setting or description changes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.support import Place, place_in
from models.wire_server import Said, WireServer, serving
from navigator_kernel.cli.skill.optimize import additions, joined
from navigator_kernel.evals.cases import EvalCase
from navigator_kernel.evals.score import Choice, Outcome, better
from navigator_kernel.skills.catalog.aliases import other_words
from navigator_kernel.skills.formats.manifest import read_manifest
from tables import table

pytestmark = pytest.mark.wide

VAGUE = """\
---
name: ledger-helper
description: Helps with the office.
---

# Ledger helper

Reads .xlsx and .csv files.

## Overview
## Pivot tables
## Currency conversion

## When to use
When somebody says "reconcile the bank statement" or "close the books".
"""
EVALS = list(table(__file__, "EVALS"))
GOOD = "Reconciles bank statements, makes pivot tables of expenses, converts amounts to euros in spreadsheets (.xlsx, .csv)."


@pytest.fixture
def here(tmp_path: Path) -> Place:
    place = place_in(tmp_path)
    skill = ".claude/skills/ledger-helper"
    place.write({f"{skill}/SKILL.md": VAGUE, f"{skill}/evals/evals.json": json.dumps(EVALS)})
    return place


@pytest.fixture
def server(home: Path) -> Iterator[WireServer]:
    with serving() as held:
        held.scripts["writer"] = lambda _messages, _number: Said(json.dumps({"descriptions": ["Does things.", GOOD]}))
        file = home / ".config" / "navigator" / "config.toml"
        file.parent.mkdir(parents=True)
        file.write_text(f'[models.providers.there]\nurl = "{held.url}"\n')
        yield held


def test_a_draft_is_compared_without_being_installed(here: Place) -> None:
    draft = VAGUE.replace("Helps with the office.", GOOD)
    here.write({"draft/SKILL.md": draft})
    told = here.json("eval", "--against", "draft")
    changed = {one["query"]: one["change"] for one in told["changes"]}
    assert set(changed.values()) <= {"better", "other"} and changed[EVALS[1]["query"]] == "better"
    assert told["after"]["served"] > told["before"]["served"]
    assert (here.root / ".claude/skills/ledger-helper/SKILL.md").read_text() == VAGUE
    assert here.json("eval", "--all")["served"] == told["before"]["served"]


def test_a_draft_that_harms_is_exit_code_1_and_names_the_messages(here: Place) -> None:
    here.write({"draft/SKILL.md": VAGUE.replace("Helps with the office.", GOOD)})
    here.write({".claude/skills/ledger-helper/SKILL.md": VAGUE.replace("Helps with the office.", GOOD)})
    here.write({"worse/SKILL.md": VAGUE})
    done = here.run("eval", "--against", "worse/SKILL.md")
    assert done.code == 1 and "worse: " in done.out and "wanted ledger-helper" in done.out


def test_a_setting_is_compared(here: Place) -> None:
    told = here.json("eval", "--against", "encoder=off")
    assert told["against"] == "encoder=off"
    assert {one["change"] for one in told["changes"]} <= {"better", "worse", "other"}
    assert told["exit_code"] == any(one["change"] == "worse" for one in told["changes"])


@pytest.mark.parametrize(
    ("against", "code"), [("nothing", 4), ("boldness=very", 2), ("no_setting=1", 2), ("stranger/SKILL.md", 2)]
)
def test_an_invalid_comparison_target_has_its_exit_code(here: Place, against: str, code: int) -> None:
    here.write({"stranger/SKILL.md": VAGUE.replace("ledger-helper", "stranger")})
    done = here.run("eval", "--against", against)
    assert (done.code, re.split("[=/]", against)[0] in done.err) == (code, True)


def test_a_proposal_says_what_the_text_has_and_writes_nothing(here: Place) -> None:
    told = here.json("skill", "optimize", "ledger-helper")
    assert told["proposed"].startswith("Helps with the office. ")
    assert "pivot tables" in told["proposed"]
    assert told["after"]["served"] > told["before"]["served"]
    assert "worse" not in {one["change"] for one in told["changes"]}
    assert (here.root / ".claude/skills/ledger-helper/SKILL.md").read_text() == VAGUE
    assert "proposed description:" in here.said("skill", "optimize", "ledger-helper")


def test_a_model_proposes_once_the_person_agreed_and_the_best_is_shown(here: Place, server: WireServer) -> None:
    words = ("skill", "optimize", "ledger-helper", "--model", "there:writer")
    assert (here.run(*words).code, server.requests) == (9, [])
    told = here.json(*words, "--yes")
    assert told["proposed"] == GOOD
    sent = json.loads(server.requests[0].body["messages"][1]["content"])
    assert sent["wanted"] == [one["query"] for one in EVALS if "expected_skill" not in one]


def test_without_a_message_there_is_nothing_to_try(here: Place) -> None:
    here.write({".claude/skills/silent/SKILL.md": "---\nname: silent\ndescription: Waits.\n---\n\nIt waits.\n"})
    done = here.run("skill", "optimize", "silent")
    assert done.code == 2 and "navigator skill learn silent" in done.err
    assert here.run("skill", "optimize", "nobody").code == 4


def test_additions_name_what_the_description_leaves_out() -> None:
    skill = read_manifest(VAGUE.encode(), path=Path("ledger-helper/SKILL.md"), folder=Path("ledger-helper"))
    told = {one.rule: one.sentence for one in additions(skill, other_words)}
    assert told["file types"] == "Works with .xlsx, .csv."
    assert told["headings"] == "Covers pivot tables, currency conversion."
    assert told["phrases"] == 'For requests such as "reconcile the bank statement", "close the books".'
    assert joined("Helps", list(additions(skill, other_words))[:1]) == "Helps. Works with .xlsx, .csv."


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (Choice(), Choice(skill="a"), "better"),
        (Choice(skill="b"), Choice(), "better"),
        (Choice(asked=("a",)), Choice(asked=("b",)), "worse"),
        (Choice(skill="a"), Choice(asked=("a", "b")), "worse"),
        (Choice(), Choice(asked=("b",)), "other"),
    ],
)
def test_a_changed_outcome_is_classified_as_better_worse_or_other(before: Choice, after: Choice, change: str) -> None:
    case = EvalCase("a", "f", "q", should_trigger=True)
    assert better(Outcome(case, before), Outcome(case, after)) == change

"""What a message means: syntax, names, the conversation, then retrieval."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from navigator_kernel.adapters.index.use_encoder import UseEncoder
from navigator_kernel.turn.understand import files_in, matter
from navigator_kernel.values.route import (
    Complexity,
    Direct,
    Intent,
    Lifecycle,
    Mcp,
    Mode,
    Script,
    Shell,
    Skills,
    Workflow,
)
from routing.place import Routing, routing_at, write_skills
from tables import cases


@pytest.fixture
def place(tmp_path: Path, encoder: UseEncoder) -> Routing:
    write_skills(
        tmp_path,
        {"boat-painter": "paints watercolours of boats", "song-writer": ("writes songs", "examples: [write a song]\n")},
    )
    return routing_at(tmp_path, encoder)


@pytest.mark.requirement("INT-2", "INT-6")
def test_an_intent_that_says_nothing_has_the_documents_defaults() -> None:
    intent = Intent()
    assert intent.to_dict() == {
        "mode": "BACKEND",
        "task_type": "unknown",
        "complexity": "medium",
        "confidence": 0.5,
        "entity": None,
        "candidates": [],
        "reasoning": None,
        "tier": "none",
    }


@pytest.mark.requirement("INT-3", "INT-4")
def test_the_words_of_an_intent_are_the_documents() -> None:
    assert get_args(Mode) == ("SKILL", "COMMAND", "AGENT", "PROMPT", "BACKEND")
    assert get_args(Complexity) == ("simple", "medium", "complex")


@pytest.mark.requirement("INT-2", "INT-3")
@pytest.mark.parametrize(
    ("text", "mode", "tier", "kind"),
    [
        ("/boat-painter now", "SKILL", "syntax", Skills),
        ("@@boat-painter now", "SKILL", "syntax", Skills),
        ("!ls", "COMMAND", "syntax", Shell),
        ("#release", "COMMAND", "syntax", Workflow),
        ("boat-painter", "SKILL", "exact", Skills),
        ("run skill_manager list", "COMMAND", "exact", Script),
        ("mcp run files", "COMMAND", "exact", Mcp),
        ("install a/b", "COMMAND", "exact", Lifecycle),
        ("what can you do?", "BACKEND", "exact", Direct),
        ("paint watercolours of boats", "SKILL", "retrieval", type(None)),
        ("hello", "BACKEND", "retrieval", type(None)),
    ],
)
def test_the_cheapest_sure_tier_decides(place: Routing, text: str, mode: str, tier: str, kind: type) -> None:
    intent = place.intent(text)
    assert (intent.mode, intent.tier) == (mode, tier)
    assert isinstance(intent.action, kind)


@pytest.mark.requirement("PRE-20")
@pytest.mark.parametrize(
    ("text", "words"),
    [("/boat-painter a b", ("a", "b")), ("/boat-painter", ()), ("/boat-painter a\nwith a red sail", ("a",))],
)
def test_the_words_behind_a_command_are_its_arguments(place: Routing, text: str, words: tuple[str, ...]) -> None:
    action = place.intent(text).action
    assert isinstance(action, Skills)
    assert action.arguments == words


@pytest.mark.requirement("INT-4")
@pytest.mark.parametrize(("length", "complexity"), [(10, "simple"), (200, "medium"), (600, "complex")])
def test_complexity_is_simple_medium_or_complex(place: Routing, length: int, complexity: str) -> None:
    assert place.intent("zq " * (length // 3)).complexity == complexity


# Follow-ups (SEN-7, X-12)


# Files that the message names


@pytest.mark.requirement("PRE-8")
@pytest.mark.parametrize(
    ("text", "named", "routed"),
    [
        ("what went wrong in app.log?", ["app.log"], "what went wrong in @log?"),
        ("fix src/merge-queue/app.rs:17, please", ["src/merge-queue/app.rs"], "fix @rs:17, please"),
        ("把报表.xlsx转成图表", ["报表.xlsx"], "把@xlsx转成图表"),
        ("打开 报表.xlsx", ["报表.xlsx"], "打开 @xlsx"),
        ("合并“2026 年”和“预算.xlsx”", ["预算.xlsx"], "合并“2026 年”和“@xlsx”"),
        ("分析app.log.1里的错误", ["app.log.1"], "分析@log里的错误"),
        ("merge a.pdf and data.pdf", ["a.pdf", "data.pdf"], "merge @pdf and @pdf"),
        ("合并报表.xlsx", [], "合并 @xlsx"),  # where the name begins is not certain
        ("a page in Next.js or Node.js, e.g. on example.com", [], None),
        ("open https://example.com/a.pdf, ask ann@example.com about numpy.array and/or TCP/IP", [], None),
    ],
)
def test_of_a_file_that_is_named_without_a_mark_only_the_type_counts(
    place: Routing, text: str, named: list[str], routed: str | None
) -> None:
    request = place.request(text)
    assert list(files_in(request)) == named
    assert matter(request) == (text if routed is None else routed)


def test_a_file_without_a_type_counts_by_its_name(place: Routing) -> None:
    (place.root / "Makefile").write_text("all:\n")
    assert matter(place.request("explain @Makefile")) == "explain @Makefile"


@cases("paths, text")
def test_a_skill_for_such_files_is_found_by_the_file_that_is_named(
    tmp_path: Path, encoder: UseEncoder, paths: str, text: str
) -> None:
    others = {f"other-{word}": f"answers questions about {word}" for word in ("boats", "songs", "tea")}
    write_skills(tmp_path, {**others, "ferris": ("answers questions", f"paths: {paths}\n")})
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "app.rs").write_text("fn main() {}\n")
    routing = routing_at(tmp_path, encoder)
    found = routing.intent(text).retrieval
    assert found is not None
    assert found.candidates[0].name == "ferris"
    assert all(one.score < found.candidates[0].score for one in found.candidates[1:])

"""Each requirement that code or a test cites has its text on the page."""

from __future__ import annotations

import re
from pathlib import Path

from requirement_marks import known

TOP = Path(__file__).resolve().parents[2]
UNKNOWN = {"PRE-99"}  # cited in a test because there is no such requirement


def test_every_cited_requirement_has_its_text_on_the_page() -> None:
    kinds = "|".join(sorted({id_.partition("-")[0] for id_ in known()}))
    cited = {
        id_
        for folder in ("kernel", "agents", "tests")
        for path in (TOP / folder).rglob("*.py")
        for id_ in re.findall(rf"(?<![\w-])(?:{kinds})-\d+\b", path.read_text("utf-8"))
    }
    assert sorted(cited - known().keys() - UNKNOWN) == []

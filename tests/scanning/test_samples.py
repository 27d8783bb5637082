"""There are enough samples of each sort, each says which harm it does, and none contains a real address."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from pathlib import Path

from scanning.samples import BENIGN, MALICIOUS

ENOUGH_MALICIOUS, ENOUGH_BENIGN, ENOUGH_OF_A_CATEGORY = 40, 20, 4
SOURCES = [path for path in sorted(Path(__file__).parent.rglob("*")) if path.suffix in {".py", ".yaml"}]
RESERVED = re.compile(r"(?:^|\.)(?:example\.(?:com|net|org)|example|test|invalid)$")
ADDRESS = re.compile(r"(?:\w+://|/dev/tcp/|git@)([\w-]+(?:\.[\w%{}-]+)*\.[a-z]{2,})\b")
HARMS = frozenset("ran leaked written destroyed mined shelled unsafe fooled unruled silenced unasked".split())


def test_there_are_enough_samples_of_each_sort() -> None:
    assert len(MALICIOUS) >= ENOUGH_MALICIOUS
    assert len(BENIGN) >= ENOUGH_BENIGN
    counted = Counter(sample.category for sample in MALICIOUS)
    assert {name: count for name, count in counted.items() if count < ENOUGH_OF_A_CATEGORY} == {}
    names = Counter(sample.name for sample in (*MALICIOUS, *BENIGN))
    assert [name for name, count in names.items() if count > 1] == []


def test_a_malicious_sample_says_which_harm_it_does() -> None:
    assert [sample.name for sample in MALICIOUS if not sample.harm] == []
    assert {kind for sample in MALICIOUS for kind in sample.harm} == HARMS
    assert [sample.name for sample in BENIGN if sample.harm] == []


def test_strangers_have_reserved_names() -> None:
    text = Path(__file__).with_name("malicious.yaml").read_text()
    # an XML namespace, and stats.example.org in ROT13
    found = set(ADDRESS.findall(text)) - {"www.w3.org", "fgngf.rknzcyr.bet"}
    assert len(found) >= 60  # the other samples have theirs encoded
    assert {host for host in found if not RESERVED.search(host)} == set()


def test_no_source_has_characters_that_nobody_sees() -> None:
    unseen = {"Cf", "Cc", "Co", "Cn", "Zl", "Zp"}
    found = {
        (path.name, f"{ord(letter):x}")
        for path in SOURCES
        for letter in path.read_text()
        if letter != "\n" and (unicodedata.category(letter) in unseen or "VARIATION" in unicodedata.name(letter, ""))
    }
    assert found == set()

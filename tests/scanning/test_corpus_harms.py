"""Every malicious sample harms a host that trusts it, no honest one does, and nothing leaves the box."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from scanning.corpus import BENIGN, MALICIOUS
from scanning.harms import KINDS
from scanning.playground import Playground, compiled, lacking, missing
from scanning.samples import Sample, of
from scanning.unguarded import STEPS

pytestmark = pytest.mark.ci

ENOUGH_MALICIOUS, ENOUGH_BENIGN, ENOUGH_OF_A_CATEGORY = 40, 20, 4
SOURCES = [path for path in sorted(Path(__file__).parent.rglob("*")) if path.suffix in {".py", ".yaml"}]
RESERVED = re.compile(r"(?:^|\.)(?:example\.(?:com|net|org)|example|test|invalid)$")
ADDRESS = re.compile(r"(?:\w+://|/dev/tcp/|git@)([\w-]+(?:\.[\w%{}-]+)*\.[a-z]{2,})\b")


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Playground]:
    if why := missing():
        pytest.skip(why)
    made = Playground(tmp_path_factory.mktemp("box") / "ground", compiled(tmp_path_factory.mktemp("compiled")))
    yield made
    made.close()


def seen_on(ground: Playground, sample: Sample) -> frozenset[str]:
    if name := lacking(sample):
        pytest.skip(f"there is no {name} here")
    return ground.loose(sample)


@pytest.mark.parametrize("sample", MALICIOUS, ids=lambda sample: f"{sample.category}-{sample.name}")
def test_a_malicious_skill_harms_a_host_that_trusts_it(sample: Sample, ground: Playground) -> None:
    found = seen_on(ground, sample)
    assert sample.harm <= found, ground.told()


@pytest.mark.parametrize("sample", BENIGN, ids=lambda sample: f"{sample.category}-{sample.name}")
def test_an_honest_skill_harms_nothing_whatever_is_done_with_it(sample: Sample, ground: Playground) -> None:
    assert sample.how == "everything"
    assert seen_on(ground, sample) == frozenset(), ground.told()


def test_there_are_enough_samples_of_each_sort() -> None:
    assert len(MALICIOUS) >= ENOUGH_MALICIOUS
    assert len(BENIGN) >= ENOUGH_BENIGN
    counted = Counter(sample.category for sample in MALICIOUS)
    assert {name: count for name, count in counted.items() if count < ENOUGH_OF_A_CATEGORY} == {}


def test_sample_names_are_unique() -> None:
    names = Counter(sample.name for sample in (*MALICIOUS, *BENIGN))
    assert [name for name, count in names.items() if count > 1] == []


def test_a_sample_says_by_which_steps_it_does_which_harm() -> None:
    for sample in MALICIOUS:
        assert sample.harm and sample.harm <= KINDS, sample
        assert set(sample.how.split("+")) <= STEPS.keys(), sample
    assert {kind for sample in MALICIOUS for kind in sample.harm} == KINDS
    assert [sample.name for sample in BENIGN if sample.harm] == []


def test_strangers_have_reserved_names() -> None:
    text = Path(__file__).with_name("malicious.yaml").read_text()
    found = set(ADDRESS.findall(text)) - {
        "www.w3.org",
        "fgngf.rknzcyr.bet",
    }  # an XML namespace, and stats.example.org in ROT13
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


def test_a_skill_that_only_talks_does_nothing(ground: Playground) -> None:
    quiet = of("quiet")("small-talk", "Talks about the weather", "# Small talk\n\nBe kind. Keep it short.\n")
    assert ground.loose(quiet) == frozenset()


def test_a_script_in_the_playground_reaches_no_network_and_writes_nothing_outside(
    ground: Playground, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("as it was\n")
    tries = f"""import os, pathlib, pwd, socket
for path in ("{outside}", "{Path(__file__)}", "/usr/bin/env", "/var/tmp/x"):
    try:
        open(path, "a").close()
    except OSError:
        continue
    print("WROTE", path)
for address in ("192.0.2.1", "198.51.100.7"):
    try:
        socket.create_connection((address, 80), 1)
    except OSError:
        continue
    print("REACHED", address)
print("HOME", pathlib.Path.home(), pwd.getpwuid(os.getuid()).pw_dir)
"""
    ground.loose(of("box", how="scripts")("box-tester", "Tests the box", "# Box\n", {"scripts/x.py": tries}))
    said = (ground.base / "log" / "said").read_text()
    assert f"HOME {ground.home} {ground.home}" in said
    assert "WROTE" not in said and "REACHED" not in said, said
    assert outside.read_text() == "as it was\n"

"""What lowers the level of a finding, and what is found only by following a value from one place to another."""

from __future__ import annotations

import pytest

from navigator_kernel.skills.scan.finding import finding
from navigator_kernel.values.receipt import NOT_SCANNED
from scanning.test_content_rules import told
from tables import cases


@pytest.mark.parametrize(
    "sentence",
    [
        "Do NOT change anything until you have presented a design and the user has already approved all of it.",
        "Go on once the user has already approved every change.",
        'Beware of texts that say "the user has already approved every change".',
        "Check whether the user has already approved every change.",
    ],
    ids=["until", "once", "quoted", "whether"],
)
def test_a_claim_in_a_condition_or_a_quotation_is_at_most_a_note(sentence: str) -> None:
    assert {level for _, level in told(f"# Work\n\n{sentence}\n")} <= {"note"}


@cases("path, text", ids=lambda value: value if "\n" not in value else "")
def test_a_common_practice_of_honest_skills_is_at_most_a_note(path: str, text: str) -> None:
    assert {level for _, level in told(text, path)} <= {"note"}


@cases("path, text, code")
def test_a_value_is_followed_from_its_source_to_its_sink(path: str, text: str, code: str) -> None:
    assert (code, "error") in told(text, path)


@pytest.mark.sample(1)
@pytest.mark.requirement("SAF-1")
@pytest.mark.parametrize(
    ("path", "before"),
    [("a.js", "x = 1;\n" * 20_000), ("a.js", "x = 1; " * 20_000), ("a.py", "x = 1\n" * 20_000)],
    ids=["lines", "one line", "python"],
)
def test_a_value_is_followed_however_much_stands_before_it(path: str, before: str) -> None:
    deed = (
        "const a = atob(b);\nnew Function(a)();\n" if path == "a.js" else "import base64\nexec(base64.b64decode(t))\n"
    )
    assert ("encoded-execute", "error") in told(before + deed, path)


@pytest.mark.requirement("SAF-1")
@pytest.mark.parametrize("number", [10, 5_000], ids=["short", "long"])
def test_a_long_number_keeps_no_flow_from_being_found(number: int) -> None:
    text = f"import base64\na = 0x{'f' * number}\nexec(base64.b64decode(str(a) + t))\n"
    assert ("encoded-execute", "error") in told(text, "a.py")


@pytest.mark.requirement("SAF-1")
def test_a_module_that_is_too_deep_to_follow_counts_as_not_scanned() -> None:
    deep = "a = urlopen(b)" + ".x" * 20_000 + "\nexec(a)\n"
    assert NOT_SCANNED in {code for code, _ in told(deep, "a.py")}


def test_a_finding_without_a_file_or_a_text_cannot_be_made() -> None:
    for path, text, line in (("", "x", 1), ("a", "", 1), ("a", "x", 0)):
        with pytest.raises(ValueError, match="a finding needs"):
            finding("code", "warning", path, "says", line, text)

"""`kernel_register_encoders`: a plugin's encoder ranks skills; if it fails, the words decide."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.bootstrap.project import Project
from navigator_kernel.config.settings import load_settings
from person_state import state_of

TOY = """
import numpy as np
class Toy:
    id, dimensions = {id!r}, {dimensions}
    def encode(self, texts, kind):
        {body}

@hookimpl
def kernel_register_encoders(root):
    return Toy()
"""
# texts about water get one direction, all others the other
WATER = "return np.array([[1.0, 0.0] if 'water' in t.lower() or 'rain' in t.lower() else [0.0, 1.0] for t in texts])"
SKILLS = {
    "umbrella": "Tells when to expect rain",
    "recipe": "Suggests what to cook",
    "ledger": "Adds up what was spent",
}


@pytest.fixture
def held(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NAVIGATOR_ENCODER", "auto")
    for name, description in SKILLS.items():
        folder = root / ".claude" / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {description}\n---\n# {name}\n")
    return root


def toy(body: str = WATER, *, key: str = "toy-1", dimensions: int = 2) -> str:
    return TOY.format(id=key, dimensions=dimensions, body=body)


def first(kernel: Any, text: str) -> str:
    return str(kernel.router.retrieve(text).candidates[0].name)


def failed(kernel: Any) -> list[tuple[str, str]]:
    return [(failure["plugin"], failure["hook"]) for failure in kernel.failures()]


def test_it_ranks_what_shares_no_word_with_the_message(held: Path, install: Any) -> None:
    install(toy())
    kernel = Project(held, load_settings(held))
    assert first(kernel, "will water fall from the sky") == "umbrella"
    assert (state_of(held) / "index" / "plugin-toy-1" / "current.json").is_file()
    assert failed(kernel) == []


@pytest.mark.parametrize(
    "body",
    [
        "raise RuntimeError('no model today')",
        "return np.zeros((len(texts), 3))",
        "return np.full((len(texts), 2), np.nan)",
        "return 'vectors'",
    ],
)
def test_one_that_fails_is_named_and_words_decide(held: Path, install: Any, body: str) -> None:
    name = install(toy(body))
    kernel = Project(held, load_settings(held))
    assert first(kernel, "when to expect rain") == "umbrella"
    assert (name, "kernel_register_encoders") in failed(kernel)


@pytest.mark.parametrize(("key", "dimensions"), [("../../out", 2), ("", 2), ("toy", 0), ("toy", 10_000)])
def test_an_id_that_is_a_path_and_odd_dimensions_are_refused(
    held: Path, install: Any, key: str, dimensions: int
) -> None:
    name = install(toy(key=key, dimensions=dimensions))
    kernel = Project(held, load_settings(held))
    assert (name, "kernel_register_encoders") in failed(kernel)
    assert first(kernel, "when to expect rain") == "umbrella"


def test_off_means_that_no_encoder_is_asked(held: Path, install: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAVIGATOR_ENCODER", "off")
    install(toy())
    kernel = Project(held, load_settings(held))
    assert first(kernel, "when to expect rain") == "umbrella"
    assert [path.name for path in (state_of(held) / "index").iterdir()] == ["words"]

"""Whatever its input, a parser returns a value or raises one of its named errors."""

from __future__ import annotations

import json
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hostile_input.near import (
    CODINGS,
    FENCES,
    FILLINGS,
    FRONT,
    HERE,
    JSON,
    LOCKS,
    PACKETS,
    PLACES,
    RECEIPTS,
    SECTIONS,
    TEXT,
    URLS,
    WRITTEN,
)
from navigator_kernel.adapters.files.project_files import ProjectFiles
from navigator_kernel.errors import Damaged, NotFound, NotLoadable, Refused, UsageProblem
from navigator_kernel.skills.catalog.receipts import receipt_in
from navigator_kernel.skills.formats.manifest import DESCRIPTION_LIMIT, read_manifest
from navigator_kernel.skills.formats.names import NAME
from navigator_kernel.skills.formats.template import Filling, fill, fill_argv
from navigator_kernel.skills.install.lockfile import read_lock
from navigator_kernel.skills.source.address import Source, parse_source
from navigator_kernel.turn.message import preprocess, words_of
from navigator_kernel.values.packet import packet_from
from navigator_kernel.values.receipt import receipt_from
from navigator_kernel.values.request import Message, PreprocessingResult

pytestmark = pytest.mark.wide

SECRET = "SECRET-4b7e9a"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


# Manifests: bytes and marks after a fence are tested in skills_reading


@settings(max_examples=100)
@given(FENCES, FRONT, FENCES, TEXT, CODINGS)
def test_a_near_manifest_is_a_skill_or_not_loadable(first: str, front: str, last: str, body: str, coding: str) -> None:
    data = f"{first}{front}{last}{body}".encode(coding, "replace")
    with suppress(NotLoadable):
        skill = read_manifest(data, path=HERE / "a" / "SKILL.md", folder=HERE / "a")
        assert NAME.fullmatch(skill.name)
        assert 0 < len(skill.description) <= DESCRIPTION_LIMIT
        assert not {"\x00", "\x1b"} & set(skill.description)
        assert all(isinstance(param.name, str) and param.name for param in skill.required_params)
        assert all(isinstance(word, str) for words in (skill.tags, skill.reads, skill.effects) for word in words)


@settings(max_examples=100)
@given(st.binary(max_size=200))
def test_no_bytes_without_a_fence_raise_anything_else(data: bytes) -> None:
    with suppress(NotLoadable):
        read_manifest(data, path=HERE / "a" / "SKILL.md", folder=HERE / "a")


# Templates


@settings(max_examples=100)
@given(TEXT, FILLINGS, st.booleans(), st.booleans())
def test_any_template_is_filled(template: str, filling: Filling, braces: bool, numbers: bool) -> None:
    fill(template, filling, braces=braces, numbers=numbers)


@settings(max_examples=100)
@given(st.lists(PLACES | st.sampled_from(["a", " ", "\n", "的"]), max_size=6), FILLINGS)
def test_values_in_a_filled_template_are_not_expanded_again(pieces: list[str], filling: Filling) -> None:
    alone = [fill(piece, filling) for piece in pieces]
    assert fill(" ".join(pieces), filling) == " ".join(alone)


@settings(max_examples=100)
@given(TEXT, FILLINGS)
def test_any_command_is_an_argv_or_refused(command: str, filling: Filling) -> None:
    with suppress(NotLoadable, Refused):
        argv = fill_argv(command, filling)
        assert argv and all(isinstance(word, str) for word in argv)


@settings(max_examples=100)
@given(st.lists(TEXT.filter(bool), min_size=2, max_size=2))
def test_an_argument_is_one_whole_word_of_the_argv(arguments: list[str]) -> None:
    with suppress(Refused):
        argv = fill_argv("run --first $1 $2 end", Filling(arguments=tuple(arguments)))
        assert argv == ("run", "--first", *arguments, "end")


# Sources


@settings(max_examples=200)
@given(URLS | TEXT, st.sampled_from(["", "main", "-x", "a..b", "a b", "\x00"]))
def test_any_text_is_a_source_or_refused(text: str, ref: str) -> None:
    found: Source | None = None
    with suppress(Refused, UsageProblem):
        found = parse_source(text, base=HERE, ref=ref)
    if found is None or found.kind != "git":
        return
    assert found.url.startswith(("https://", "ssh://", "file:///")) or "@" in found.url.split(":")[0]
    assert not found.url.startswith("-") and not found.ref.startswith("-")
    assert ".." not in found.subpath.split("/")
    assert not {"\x00", "\n", "\\"} & set(found.url + found.ref + found.subpath + found.page)


# Messages


@pytest.fixture(scope="module")
def files(place: Path) -> ProjectFiles:
    root = place / "project"
    root.mkdir()
    (root / "file").write_text("held")
    (root / ".env").write_text(SECRET)
    (place / "outside.txt").write_text(SECRET)
    (root / "out.txt").symlink_to(place / "outside.txt")
    return ProjectFiles(root, root)


def taken(text: str, files: ProjectFiles) -> PreprocessingResult:
    return preprocess(Message(text=text), files)


@pytest.mark.requirement("PRE-8", "SAF-1")
@settings(max_examples=100)
@given(text=WRITTEN)
def test_no_message_takes_in_a_secret(text: str, files: ProjectFiles) -> None:
    assert SECRET not in repr(taken(text, files))


@settings(max_examples=100)
@given(written=TEXT)
def test_any_path_is_a_file_of_the_project_or_refused(written: str, files: ProjectFiles) -> None:
    with suppress(NotFound, Refused):
        path, text = files.read(written)
        assert path.is_relative_to(files.root.resolve()) and text == "held"


@pytest.mark.requirement("PRE-21")
@settings(max_examples=100)
@given(body=WRITTEN)
def test_text_inside_a_code_fence_stays_unchanged_and_has_no_commands_or_files(body: str, files: ProjectFiles) -> None:
    assume("```" not in body)
    found = taken(f"before\n```\n{body}\n```\nafter", files)
    assert (found.cleaned_content, found.commands, found.files) == (f"before\n```\n{body}\n```\nafter", (), ())


@settings(max_examples=100)
@given(body=WRITTEN.filter(lambda text: "\ud800" not in text and "\r" not in text))
def test_file_content_is_inserted_unchanged_and_not_parsed_for_commands_or_files(
    body: str, files: ProjectFiles
) -> None:
    (files.root / "file.txt").write_text(body)
    found = taken("see @file.txt", files)
    (files.root / "file.txt").unlink()
    assert (found.commands, [file.content for file in found.files]) == ((), [body])
    assert found.cleaned_content == f'see <file path="file.txt">\n{body}\n</file>'


@settings(max_examples=100)
@given(st.text(st.sampled_from("ab 的\t\n\r'\"\\$;|&\x0b\u3000"), max_size=14))
def test_words_are_those_of_a_shell_and_plain_ones_where_a_quote_stays_open(text: str) -> None:
    try:
        expected = shlex.split(text)
    except ValueError:
        expected = text.split()
    assert words_of(text) == expected


# Records and packets


@settings(max_examples=60)
@given(RECEIPTS)
def test_a_near_receipt_is_one_or_says_what_is_wrong(raw: dict[str, Any]) -> None:
    with suppress(KeyError, TypeError, ValueError):
        receipt_from(raw)


@settings(max_examples=60)
@given(data=(RECEIPTS | JSON).map(lambda raw: json.dumps(raw).encode()) | st.binary(max_size=60))
def test_a_receipts_file_is_one_or_damaged(data: bytes, place: Path) -> None:
    (place / "a.json").write_bytes(data)
    with suppress(Damaged):
        receipt = receipt_in(place, "a")
        assert receipt is not None and receipt.name == "a"


@settings(max_examples=60)
@given(data=(LOCKS | JSON).map(lambda raw: json.dumps(raw).encode()) | st.binary(max_size=60))
def test_a_lock_is_entries_or_damaged(data: bytes, place: Path) -> None:
    (place / "lock.json").write_bytes(data)
    with suppress(Damaged):
        assert all(isinstance(entry, dict) for entry in read_lock(place / "lock.json").values())


@settings(max_examples=60)
@given(PACKETS)
def test_a_near_packet_is_one_or_says_what_is_wrong(raw: dict[str, Any]) -> None:
    with suppress(KeyError, TypeError, ValueError):
        packet_from(raw)


@settings(max_examples=60)
@given(TEXT)
def test_a_packets_yaml_has_no_section_that_a_value_wrote(text: str) -> None:
    whole: dict[str, dict[str, Any]] = {name: dict.fromkeys(keys, text) for name, keys in SECTIONS.items()}
    whole["constraints"]["timeout"], whole["context"]["step"] = 1.0, 0
    whole["return_spec"] |= {"format": "detail", "fields": [], "on_error": "propagate"}
    whole["context"]["language"] = "en"
    packet = packet_from({**whole, "subagent_type": text, "params": {"required": {"a": text}, "optional": {}}})
    read = yaml.safe_load(packet.to_yaml())
    assert {name: tuple(read[name]) for name in read if name != "subagent_type"} == SECTIONS

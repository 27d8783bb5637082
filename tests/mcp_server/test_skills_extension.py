"""The Skills extension, SEP-2640: complete entries with correct digests, files by address, pages, and nothing else."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from mcp_types import BlobResourceContents, TextResourceContents

from cli.support import Place, place_in
from mcp_server.hosts import ERAS, asked, digest, every, hosted, refused
from person_state import accept
from skill_repositories import skill_text
from tables import table

INVALID = -32602
FILES: Mapping[str, bytes] = {
    "references/GUIDE.md": b"# Guide\n",
    "references/deep/两.md": "深\n".encode(),
    "assets/a b%20#?.bin": bytes(range(256)),
    "scripts/run.py": b"print(1)\n",
}


@pytest.fixture
def here(tmp_path: Path, home: Path) -> Place:
    here = place_in(tmp_path)
    folder = here.root / ".claude" / "skills" / "boat-songs"
    for name, data in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    extra = 'license: MIT\nversion: 1.10\nflag: yes\nday: 2026-01-02\ntags: [sea, "1"]\nmetadata:\n  author: Ann\n'
    (folder / "SKILL.md").write_text(skill_text("boat-songs", "Writes songs about boats", extra))
    accept(here.root, "boat-songs")
    return here


@pytest.mark.wide
def test_every_skill_has_an_entry_with_the_digest_of_every_file(here: Place) -> None:
    entries = {entry["frontmatter"]["name"]: entry for entry in hosted(here, every)}
    assert {"boat-songs", "code-review", "word-count"} <= set(entries)
    folder = here.root / ".claude" / "skills" / "boat-songs"
    found = {one["uri"]: (one["digest"], one["size"]) for one in entries["boat-songs"]["resources"]}
    files = {"SKILL.md": folder / "SKILL.md", **{name: folder / name for name in FILES}}
    assert sorted(found.values()) == sorted((digest(path), path.stat().st_size) for path in files.values())
    assert "skill://boat-songs/assets/a%20b%2520%23%3F.bin" in found


@pytest.mark.wide
@pytest.mark.requirement("CTX-7")
def test_frontmatter_is_as_it_was_written(here: Place) -> None:
    (entry,) = [one for one in hosted(here, every) if one["frontmatter"]["name"] == "boat-songs"]
    text = (here.root / ".claude" / "skills" / "boat-songs" / "SKILL.md").read_text()
    written = yaml.safe_load(text.split("---\n")[1])
    assert entry["frontmatter"] == {**written, "day": "2026-01-02"}


@pytest.mark.wide
def test_every_file_of_an_entry_is_read_and_is_what_its_digest_says(here: Place) -> None:
    async def run(client: Any) -> list[tuple[str, bytes, str]]:
        entry = (await asked(client, "skills/get", uri="skill://boat-songs/SKILL.md"))["skill"]
        found = []
        for one in entry["resources"]:
            (held,) = (await client.read_resource(one["uri"])).contents
            binary = isinstance(held, BlobResourceContents)
            data = base64.b64decode(held.blob) if binary else held.text.encode()
            assert isinstance(held, TextResourceContents) or one["uri"].endswith(".bin")
            found.append((one["digest"], data, str(held.mime_type)))
        return found

    import hashlib

    read = hosted(here, run)
    assert len(read) == len(FILES) + 1
    assert [one for one, data, _ in read if one != f"sha256:{hashlib.sha256(data).hexdigest()}"] == []
    assert {media for _, _, media in read} >= {"text/markdown", "text/x-python"}


NOWHERE = table(__file__, "NOWHERE")


@pytest.mark.wide
def test_an_address_of_nothing_that_is_served_is_an_error_of_the_protocol(here: Place) -> None:
    async def run(client: Any) -> dict[str, list[int]]:
        found = {}
        for uri in NOWHERE:
            read = await refused(client.read_resource(uri)) if uri else INVALID
            found[uri] = [read, await refused(asked(client, "skills/get", uri=uri))]
        return found

    assert hosted(here, run) == {uri: [INVALID, INVALID] for uri in NOWHERE}


@pytest.mark.wide
def test_reading_a_directory_lists_its_direct_entries_and_refuses_invalid_uris(here: Place) -> None:
    async def run(client: Any) -> list[Any]:
        root = await asked(client, "resources/directory/read", uri="skill://boat-songs")
        inner = await asked(client, "resources/directory/read", uri="skill://boat-songs/references")
        wrong = ("skill://boat-songs/SKILL.md", "skill://boat-songs/", "skill://boat-songs/refer", "skill://none")
        return [
            root["resources"],
            inner["resources"],
            [await refused(asked(client, "resources/directory/read", uri=one)) for one in wrong],
        ]

    root, inner, wrong = hosted(here, run)
    assert [(one["name"], one["mimeType"]) for one in root] == [
        ("SKILL.md", "text/markdown"),
        ("assets", "inode/directory"),
        ("references", "inode/directory"),
        ("scripts", "inode/directory"),
    ]
    assert [one["name"] for one in inner] == ["GUIDE.md", "deep"]
    assert wrong == [INVALID] * 4


@pytest.mark.wide
def test_many_skills_come_in_pages_that_a_change_does_not_upset(here: Place) -> None:
    skills = here.root / ".claude" / "skills"
    for number in range(120):
        (skills / f"many-{number:03}").mkdir()
        (skills / f"many-{number:03}" / "SKILL.md").write_text(skill_text(f"many-{number:03}"))
    accept(here.root)

    async def run(client: Any) -> tuple[list[str], int]:
        first = await asked(client, "skills/list")
        (skills / "aaa-new").mkdir()
        (skills / "aaa-new" / "SKILL.md").write_text(skill_text("aaa-new"))
        names = [entry["frontmatter"]["name"] for entry in first["skills"]]
        page, cursor, pages = first, first.get("nextCursor"), 1
        while cursor:
            page = await asked(client, "skills/list", cursor=cursor)
            names += [entry["frontmatter"]["name"] for entry in page["skills"]]
            cursor, pages = page.get("nextCursor"), pages + 1
        return names, pages

    names, pages = hosted(here, run)
    assert len(names) == len(set(names)) == len([name for name in names if name != "aaa-new"])
    assert len([name for name in names if name.startswith("many-")]) == 120 and pages == 3


@pytest.mark.wide
def test_a_cursor_of_another_server_is_an_error_of_the_protocol(here: Place) -> None:
    async def run(client: Any) -> list[int]:
        cursors = ("x", "//", "%%", "é", "YWJj\n")
        return [await refused(asked(client, "skills/list", cursor=cursor)) for cursor in cursors]

    assert hosted(here, run) == [INVALID] * 5


def left_out(here: Place, name: str, text: str) -> Path:
    folder = here.root / ".claude" / "skills" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(text)
    return folder


@pytest.mark.wide
@pytest.mark.requirement("X-43")
def test_a_skill_that_is_only_in_the_project_is_not_served(here: Place) -> None:
    left_out(here, "stranger", skill_text("stranger"))
    names = {entry["frontmatter"]["name"] for entry in hosted(here, every)}
    assert "boat-songs" in names and "stranger" not in names


@pytest.mark.wide
def test_a_skill_that_may_not_be_served_is_left_out_and_the_others_are_served(here: Place) -> None:
    left_out(here, "under_score", skill_text("under_score"))
    left_out(here, "other-name", skill_text("another-name"))
    left_out(here, "too-long", skill_text("too-long", "x" * 1025))
    left_out(here, "list-of-tools", skill_text("list-of-tools", extra="allowed-tools: [Read]\n"))
    left_out(here, "odd-metadata", skill_text("odd-metadata", extra="metadata:\n  n: 1\n"))
    left_out(here, "no-number", skill_text("no-number", extra="n: .inf\n"))
    left_out(here, "for-people", skill_text("for-people", extra="disable-model-invocation: true\n"))
    (left_out(here, "with-link", skill_text("with-link")) / "link").symlink_to("/etc/passwd")
    folder = left_out(here, "many-files", skill_text("many-files"))
    for number in range(512):
        (folder / f"{number}.txt").write_text("")
    (left_out(here, "too-large", skill_text("too-large")) / "large.bin").write_bytes(b"x" * (16 * 1024 * 1024))
    accept(here.root)
    names = {entry["frontmatter"]["name"] for entry in hosted(here, every)}
    assert set(here.json("mcp", "serve", "--check")["served"]) == names
    wrong = {"under_score", "other-name", "another-name", "too-long", "list-of-tools", "odd-metadata", "no-number"}
    assert names & {*wrong, "for-people", "with-link", "many-files", "too-large"} == set()
    assert {"boat-songs", "code-review"} <= names


@pytest.mark.wide
def test_the_texts_are_listed_as_resources_for_hosts_that_know_no_skills(here: Place) -> None:
    async def run(client: Any) -> Any:
        return await client.list_resources(), await client.list_resource_templates()

    listed, templates = hosted(here, run, "legacy")
    (mine,) = [one for one in listed.resources if one.name == "boat-songs"]
    assert (str(mine.uri), mine.mime_type, mine.description) == (
        "skill://boat-songs/SKILL.md",
        "text/markdown",
        "Writes songs about boats",
    )
    assert [one.uri_template for one in templates.resource_templates] == ["skill://{name}/{+path}"]


def test_the_extension_is_declared_in_the_handshake_of_each_era(here: Place) -> None:
    async def declared(client: Any) -> Any:
        return client.session.server_capabilities

    now, before = (hosted(here, declared, era) for era in ERAS)
    assert now.extensions == before.experimental == {"io.modelcontextprotocol/skills": {"directoryRead": True}}

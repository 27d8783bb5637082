"""Skills that an MCP server serves (SEP-2640) are installed with their digests, locked, restored and updated."""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cli.support import Place
from navigator_kernel.adapters.sources.published import PublishedSource
from navigator_kernel.errors import FetchFailed, IntegrityMismatch, KernelError, NotFound, Refused, UsageProblem
from navigator_kernel.skills.source.address import Source, parse_source
from skill_repositories import skill_text
from tables import cases


class Shelf:
    """A server that answers from a table of files."""

    def __init__(self, **skills: Mapping[str, bytes]) -> None:
        self.files = {f"skill://{name}/{path}": data for name, held in skills.items() for path, data in held.items()}
        self.entries = [self.entry(name) for name in skills]

    def entry(self, name: str, **more: Any) -> dict[str, Any]:
        files = {uri: data for uri, data in self.files.items() if uri.startswith(f"skill://{name}/")}
        rows = [
            {"uri": uri, "digest": f"sha256:{hashlib.sha256(data).hexdigest()}", "size": len(data)}
            for uri, data in files.items()
        ]
        return {"uri": f"skill://{name}/SKILL.md", "frontmatter": {}, "resources": rows, **more}

    def ask(self, server: str, operation: str, params: Mapping[str, str]) -> Mapping[str, Any]:
        if server != "shelf":
            raise NotFound(f"no MCP server is called {server!r}")
        if operation == "skills":
            return {"skills": self.entries}
        data = self.files[params["uri"]]
        return {"contents": [{"uri": params["uri"], "blob": base64.b64encode(data).decode()}]}


@pytest.fixture
def shelf(project: Any) -> Shelf:
    held = Shelf(
        greet={"SKILL.md": skill_text("greet").encode(), "assets/x.bin": bytes(range(256))},
        wave={"SKILL.md": skill_text("wave").encode()},
    )
    project.lifecycle.deps.ask_server = held.ask
    return held


def names_of(result: Mapping[str, Any]) -> list[str]:
    return sorted(one["name"] for one in result["skills"])


def test_the_skills_of_a_server_are_installed_locked_restored_and_updated(project: Any, shelf: Shelf) -> None:
    assert names_of(project.run("info", source="mcp:shelf")) == ["greet", "wave"]
    assert names_of(project.run("install", source="mcp:shelf/greet")) == ["greet"]
    assert (project.skills / "greet" / "assets" / "x.bin").read_bytes() == bytes(range(256))
    lock = (project.root / "skills.lock.json").read_text()
    assert json.loads(lock)["skills"]["greet"]["source"] == "mcp:shelf"
    project.run("uninstall", name="greet")
    (project.root / "skills.lock.json").write_text(lock)
    project.run("frozen")
    assert (project.skills / "greet" / "assets" / "x.bin").read_bytes() == bytes(range(256))
    assert project.run("update", check=True)["skills"][0]["state"] == "current"
    shelf.files["skill://greet/SKILL.md"] = skill_text("greet", "greets twice").encode()
    shelf.entries = [shelf.entry("greet")]
    assert project.run("update", check=True)["skills"][0]["state"] == "changed"


def test_bytes_that_differ_from_their_digest_are_refused(project: Any, shelf: Shelf) -> None:
    shelf.files["skill://greet/assets/x.bin"] = b"other"
    with pytest.raises(IntegrityMismatch):
        project.run("install", source="mcp:shelf/greet")


@cases("more", lists=True)
def test_an_odd_entry_is_left_out_with_its_reason(project: Any, shelf: Shelf, more: dict[str, Any]) -> None:
    shelf.entries[0] = shelf.entry("greet", **more)
    result = project.run("install", source="mcp:shelf", all=True)
    assert (names_of(result), len(result["left_out"])) == (["wave"], 1)


@pytest.mark.parametrize("sent", [{"blob": "a"}, {"blob": "\u00e9"}, {"text": "\ud800"}, {"blob": 7}, {}])
def test_a_file_that_cannot_be_decoded_keeps_no_other_skill_out(project: Any, shelf: Shelf, sent: Any) -> None:
    def ask(server: str, operation: str, params: Mapping[str, str]) -> Mapping[str, Any]:
        is_bad = params.get("uri") == "skill://greet/SKILL.md"
        return {"contents": [sent]} if is_bad else shelf.ask(server, operation, params)

    project.lifecycle.deps.ask_server = ask
    result = project.run("install", source="mcp:shelf", all=True)
    assert (names_of(result), "sends no file" in str(result["left_out"])) == (["wave"], True)


def test_files_are_read_up_to_the_limit_of_all_only(shelf: Shelf) -> None:
    reads: list[str] = []

    def ask(server: str, operation: str, params: Mapping[str, str]) -> Mapping[str, Any]:
        reads.append(operation)
        return shelf.ask(server, operation, params)

    shelf.files |= {f"skill://greet/{number}.md": b"x" * 100 for number in range(40)}
    shelf.entries = [shelf.entry("greet")]
    with PublishedSource("mcp:shelf", ask=ask) as source, pytest.raises(Refused):
        source.contents([entry.oid for entry in source.entries if entry.kind == "blob"], each=1_000, total=500)
    assert reads.count("read") < 20


def test_an_address_of_a_server_is_one(project: Any, shelf: Shelf) -> None:
    parsed = parse_source("mcp:my server/fold", base=Path("/"))
    assert parsed == Source(kind="web", url="mcp:my server", label="mcp:my server", skill="fold")
    for text in ("mcp:", "mcp:/x", "mcp:a/b/c", "mcp:../x", "mcp:a@1"):
        with pytest.raises((UsageProblem, KernelError)):
            parse_source(text, base=Path("/"))
    with pytest.raises(NotFound):
        project.run("install", source="mcp:other", all=True)
    with pytest.raises(FetchFailed):
        project.run("install", source="mcp:shelf", all=True, offline=True)


@pytest.mark.ci  # two starts of a server of the SDK
def test_a_server_of_the_official_sdk_is_read_once_the_person_has_approved_it(tmp_path: Path, home: Path) -> None:
    here = Place(root=tmp_path / "project")
    (here.root / "mybox").mkdir(parents=True)
    server = str(Path(__file__).with_name("sdk_skill_server.py"))
    here.run("mcp", "add", "shelf", "--", sys.executable, server)
    refused = here.run("install", "mcp:shelf", "--all")
    assert (refused.code, "mcp approve shelf" in refused.err) == (9, True)
    assert here.run("mcp", "approve", "shelf").code == 0
    assert names_of(here.json("install", "mcp:shelf", "--all")) == ["greet", "wave"]
    assert (here.root / ".claude" / "skills" / "greet" / "references" / "how to.md").read_text() == "Be kind.\n"

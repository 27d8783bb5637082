"""`navigator serve` publishes the skills that the person trusts as a site does: other projects install them from it."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import httpx2
import pytest

from cli.support import Place
from gateway.served import LIMIT, Person, Served, serving
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.errors import NotFound
from navigator_kernel.gateway.api import published
from navigator_kernel.gateway.gateway import Gateway
from navigator_kernel.values.http.endpoint import Call, Caller
from person_state import accept
from skill_repositories import skill_text

INDEX = "/.well-known/agent-skills/index.json"


@pytest.fixture(scope="module")
def publishing(person: Person) -> Iterator[Served]:
    """A server that publishes a skill of two files and a skill of one; another one is not trusted, one is off, one was
    changed since it was installed, one is the person's own, and one has a name that no client takes."""
    texts = {name: skill_text(name) for name in ("fold", "secret", "off", "task_manager")}
    person.here.write({f".claude/skills/{name}/SKILL.md": text for name, text in texts.items()})
    person.here.write({".claude/skills/fold/scripts/fold.py": "print(1)\n"})
    mine = Path(person.env["HOME"]) / ".claude" / "skills" / "mine" / "SKILL.md"
    mine.parent.mkdir(parents=True)
    mine.write_text(skill_text("mine"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in person.env.items():
            patch.setenv(name, value)
        accept(person.here.root, "fold", "off", "task_manager")
    person.here.write({"source/changed/SKILL.md": skill_text("changed")})
    assert person.here.run("install", "./source", env=person.env).code == 0
    person.here.write({".claude/skills/changed/SKILL.md": skill_text("changed") + "More.\n"})
    assert person.here.run("skill", "disable", "off", env=person.env).code == 0
    with (
        (person.here.root / "server.log").open("wb") as log,
        serving(person, "--publish", roles=("read",), stderr=log) as held,
    ):
        yield held


def test_another_project_installs_what_is_published_byte_for_byte(
    publishing: Served, person: Person, new_folder: Callable[[str], Path]
) -> None:
    there = Place(root=new_folder("there"))
    (there.root / "mybox").mkdir()
    result = there.json("install", publishing.url, "--skill", "fold", "--skill", "song-writer", env=person.env)
    assert sorted(one["name"] for one in result["skills"]) == ["fold", "song-writer"]
    for path in ("fold/SKILL.md", "fold/scripts/fold.py", "song-writer/SKILL.md"):
        here = (person.here.root / ".claude" / "skills" / path).read_bytes()
        assert (there.root / ".claude" / "skills" / path).read_bytes() == here


def test_only_skills_that_are_trusted_and_on_are_published_with_their_digests(publishing: Served) -> None:
    with httpx2.Client(base_url=publishing.url, timeout=LIMIT) as anybody:
        rows = {row["name"]: row for row in anybody.get(INDEX).json()["skills"]}
        assert {"fold", "song-writer", "word-count"} <= rows.keys()
        assert not {"secret", "off", "changed", "mine", "task_manager"} & rows.keys()
        for row in (rows["fold"], rows["song-writer"]):
            data = anybody.get(f"/.well-known/agent-skills/{row['url']}").content
            assert row["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
        for path in ("secret/SKILL.md", "../../api/skills", "%2e%2e/%2e%2e/api/skills", "fold"):
            assert anybody.get(f"/.well-known/agent-skills/{path}").status_code in {401, 404}
        assert anybody.post(INDEX).status_code == 405
        assert anybody.get("/api/skills").status_code == 401


def test_the_log_names_what_is_left_out(publishing: Served, person: Person) -> None:
    with httpx2.Client(base_url=publishing.url, timeout=LIMIT) as anybody:
        anybody.get(INDEX)
    log = (person.here.root / "server.log").read_text()
    assert "the skill changed is not published: it is not as you installed it" in log
    assert "the skill task_manager is not published: a site publishes only names" in log
    assert "secret" not in log


@pytest.fixture
def gateway(tmp_path: Path) -> Gateway:
    """A server that made its site so long ago that it is made again."""
    gateway = Gateway(Project(tmp_path))
    gateway.site = (time.monotonic() - published.KEPT - 1, {"gone/SKILL.md": b"x"})
    return gateway


def call(**path: str) -> Call:
    return Call(caller=Caller(id="", role="read"), path=path, query=None, body=None, headers={})


def test_a_skill_that_is_not_published_any_more_is_closed_although_nobody_reads_the_index(gateway: Gateway) -> None:
    with pytest.raises(NotFound):
        asyncio.run(published.read_published_skill(gateway, call(file="gone/SKILL.md")))


def test_requests_at_the_same_time_make_the_site_once(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def site(_skills: object, limit: int) -> tuple[Mapping[str, bytes], Mapping[str, str]]:
        made.append(limit)
        return {"index.json": b"{}"}, {}

    async def many() -> None:
        await asyncio.gather(*(published.read_skill_index(gateway, call()) for _ in range(5)))

    monkeypatch.setattr(published, "served_site", site)
    asyncio.run(many())
    assert len(made) == 1


def test_the_index_needs_a_token_unless_the_person_says_publish(served: Served) -> None:
    with httpx2.Client(base_url=served.url, timeout=LIMIT) as anybody:
        assert anybody.get(INDEX).status_code == 401
        assert anybody.get("/.well-known/agent-skills/song-writer/SKILL.md").status_code == 401
    with served.client("read") as reader:
        assert reader.get(INDEX).status_code == 200

"""Data for the pages of skills and health: skills page by page, findings, differences, listings of hosts, the role."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from skill_repositories import commit, make_repo, skill_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import httpx2

    from gateway.served import Person, Served

pytestmark = pytest.mark.wide  # the plans and findings are tested without a server


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for name in ("gamma", "delta"):
        folder = tmp_path / "source" / name
        folder.mkdir(parents=True)
        text = skill_text(name, f"does {name} things", "license: MIT\nallowed-tools: Read, Bash\n")
        (folder / "SKILL.md").write_text(text)
    return tmp_path / "source"


def ended(client: httpx2.Client, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
    answer = client.post(path, json=body)
    assert answer.status_code == 202, answer.text
    job: Mapping[str, Any] = client.get(f"/api/jobs/{answer.json()['job']}", params={"wait": 30}).json()
    return job


def test_a_preview_says_what_each_skill_declares_and_what_it_replaces(served: Served, source: Path) -> None:
    body = {"source": str(source), "all": True}
    with served.client() as client:
        [_, gamma] = ended(client, "/api/skills/preview", body)["result"]["skills"]
        assert gamma["license"] == "MIT" and gamma["tools"] == ["Read", "Bash"] and gamma["was"] == ""
        assert gamma["permissions"] == {"effects": [], "reads": [], "network": False, "dynamic": False}
        assert ended(client, "/api/skills/install", body)["state"] == "done"
        (source / "gamma" / "SKILL.md").write_text(skill_text("gamma", "does gamma things better"))
        [delta, gamma] = ended(client, "/api/skills/preview", body)["result"]["skills"]
        assert not delta["changed"] and gamma["changed"] and gamma["was"].startswith("sha256:")


def test_a_check_shows_the_difference_and_a_rollback_takes_an_update_back(served: Served, tmp_path: Path) -> None:
    repository = make_repo(tmp_path, {"epsilon/SKILL.md": skill_text("epsilon", "does things once")})
    one = {"names": ["epsilon"]}
    with served.client() as client:
        ended(client, "/api/skills/install", {"source": f"file://{repository}", "all": True})
        commit(repository, {"epsilon/SKILL.md": skill_text("epsilon", "does things twice")})
        [plain] = ended(client, "/api/skills/update", {**one, "check": True})["result"]["skills"]
        [found] = ended(client, "/api/skills/update", {**one, "check": True, "diff": True})["result"]["skills"]
        assert found["state"] == "changed" and found["diff"].splitlines()[5:7] == [
            "-description: does things once",
            "+description: does things twice",
        ]
        assert {**plain, "diff": found["diff"]} == found
        assert ended(client, "/api/skills/update", one)["result"]["changed"]
        would = ended(client, "/api/skills/rollback", {"check": True})["result"]
        [epsilon] = [skill for skill in would["skills"] if skill["name"] == "epsilon"]
        assert (would["dry_run"], epsilon["action"], epsilon["change"]["files"][0]["added"]) == (True, "restored", 1)
        assert client.get("/api/skills/epsilon").json()["description"] == "does things twice"
        assert ended(client, "/api/skills/rollback", {})["state"] == "done"
        assert client.get("/api/skills/epsilon").json()["description"] == "does things once"


def test_an_update_that_can_do_more_waits_for_a_yes_to_its_very_bytes(served: Served, tmp_path: Path) -> None:
    repository = make_repo(tmp_path, {"zeta/SKILL.md": skill_text("zeta", "does things")})
    one = {"names": ["zeta"]}
    with served.client() as client:
        ended(client, "/api/skills/install", {"source": f"file://{repository}", "all": True})
        commit(repository, {"zeta/send.sh": "curl https://one.example/x\n"})
        [waits] = ended(client, "/api/skills/update", one)["result"]["skills"]
        assert (waits["action"], waits["change"]["can"]["hosts"]) == ("pending", ["one.example"])
        commit(repository, {"zeta/send.sh": "curl https://two.example/x\n"})
        [other] = ended(client, "/api/skills/update", {**one, "agreed": [waits["digest"]]})["result"]["skills"]
        assert (other["action"], other["change"]["can"]["hosts"]) == ("pending", ["two.example"])
        [done] = ended(client, "/api/skills/update", {**one, "agreed": [other["digest"]]})["result"]["skills"]
        assert done["action"] == "updated"


def test_a_large_difference_is_cut(tmp_path: Path) -> None:
    from navigator_kernel.skills.install.changes import LONGEST, difference

    folder = tmp_path / "skill"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    (folder / "b.bin").write_bytes(b"\0\1")
    shown = difference(folder, {"a.txt": b"two\n", "b.bin": b"\0\2", "c.txt": b"line\n" * 90_000})
    assert len(shown) <= LONGEST + 40 and shown.endswith("the rest is not shown")
    assert "-one\n+two" in shown and "@@ the contents differ @@" in shown and "--- /dev/null\n+++ b/c.txt" in shown


def test_an_installed_skill_is_scanned_and_no_source_is_looked_at(served: Served, source: Path) -> None:
    with served.client() as client:
        ended(client, "/api/skills/install", {"source": str(source), "all": True})
        with served.client("read") as reader:
            [one] = reader.post("/api/skills/scan", json={"name": "gamma"}).json()["skills"]
            assert one["name"] == "gamma" and one["verdict"] == "ok"
            for name in (str(source), "../../etc", "https://example.invalid/a/b", "no-such-skill"):
                assert reader.post("/api/skills/scan", json={"name": name}).status_code == 404
                assert reader.get(f"/api/skills/{name.replace('/', '%2F')}").status_code == 404


def test_all_skills_are_verified_at_once(served: Served, source: Path, person: Person) -> None:
    with served.client() as client:
        ended(client, "/api/skills/install", {"source": str(source), "all": True})
        assert client.post("/api/skills/verify", json={}).json()["count"] >= 2
        file = person.here.root / ".claude" / "skills" / "delta" / "SKILL.md"
        kept = file.read_text()
        file.write_text(kept + "more\n")
        answer = client.post("/api/skills/verify", json={})
        file.write_text(kept)
    assert answer.status_code == 409
    [one] = [one for one in answer.json()["data"]["skills"] if not one["ok"]]
    assert one["name"] == "delta" and one["modified"] == ["SKILL.md"]


def test_the_listings_of_hosts_say_what_has_no_room(served: Served, person: Person) -> None:
    long = "Handles the long subject. Use when asked. " * 40
    names = [f"long-{number:02}" for number in range(8)]
    try:
        person.here.write({f".claude/skills/{name}/SKILL.md": skill_text(name, long) for name in names})
        with served.client("read") as client:
            hosts = {one["host"]: one for one in client.get("/api/hosts").json()["hosts"]}
    finally:
        for name in names:
            (person.here.root / ".claude" / "skills" / name / "SKILL.md").unlink()
    claude = hosts["claude-code"]
    assert claude["limit"] == 8_000 and claude["limit_tokens"] == 2_000
    assert claude["characters"] > claude["limit"] and claude["tokens"] == -(-claude["characters"] // 4)
    assert set(claude["names"]) & set(names) and claude["beyond"] == len(claude["names"])


def test_the_token_endpoint_returns_the_role_of_the_token(served: Served) -> None:
    for role in ("admin", "chat", "read"):
        with served.client(role) as client:
            assert client.get("/api/token").json()["role"] == role


def test_the_pages_of_skills_are_of_one_list_and_a_first_page_reads_again(served: Served, person: Person) -> None:
    with served.client("read") as client:
        first = client.get("/api/skills", params={"limit": 3}).json()
        person.here.write({".claude/skills/zz-last/SKILL.md": skill_text("zz-last")})
        seen = [one["name"] for one in first["skills"]]
        while first["next"]:
            first = client.get("/api/skills", params={"limit": 3, "cursor": first["next"]}).json()
            seen += [one["name"] for one in first["skills"]]
        assert seen == sorted(seen) and "zz-last" not in seen
        again = client.get("/api/skills", params={"limit": 500}).json()["skills"]
        assert [one["name"] for one in again] == [*seen, "zz-last"]


def test_changes_need_the_role_admin(served: Served) -> None:
    with served.client("approve") as client:
        assert client.post("/api/skills/rollback", json={}).status_code == 403

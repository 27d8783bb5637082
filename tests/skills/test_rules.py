"""A team's rules: every way in passes them, and no byte of a clone loosens them (issue 50, item 6)."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.config import settings
from navigator_kernel.errors import Damaged, FetchFailed, KernelError, Refused
from navigator_kernel.skills.install.deps import InstallDeps
from navigator_kernel.skills.source.address import parse_source
from navigator_kernel.skills.source.rules import Rules, read_rules
from navigator_kernel.values.resource import Diagnostic
from skill_repositories import commit, git, make_repo, skill_text
from tables import cases
from web_server import KEY_AND_CERTIFICATE, Pages, Reply, pages

Ruled = Callable[..., None]


@pytest.fixture
def rule(monkeypatch: pytest.MonkeyPatch) -> Ruled:
    """Puts rules in force."""

    def put(*rules: Rules, **one: Any) -> None:
        monkeypatch.setattr(InstallDeps, "rules", rules or (Rules(path="/rules.toml", **one),))

    return put


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path, {"skills/greet/SKILL.md": skill_text("greet")})


def refused(project: Any, operation: str, **params: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        project.run(operation, **params)
    return caught.value


@cases("pattern, source, is_allowed")
def test_a_source_is_allowed_in_every_spelling_and_no_other_one_is(
    pattern: str, source: str, is_allowed: bool, tmp_path: Path
) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(f"sources = [{json.dumps(pattern)}]\n")
    [rules] = read_rules([file])
    assert rules.allows(parse_source(source, base=Path("/")).url) is is_allowed


@cases("text, words, code")
def test_a_policy_file_with_a_mistake_is_an_error_with_its_place(
    text: str, words: Sequence[str], code: int, tmp_path: Path
) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(text)
    with pytest.raises(KernelError) as caught:
        read_rules([file])
    assert caught.value.exit_code == code
    assert all(word in f"{caught.value.message} {caught.value.hint}" for word in (str(file), *words))


ODD = {"bytes": b"pinned = \xff\n", "brackets": b"sources = " + b"[" * 50_000, "number": b"pinned = " + b"9" * 5_000}


@pytest.mark.parametrize("kind", ["link", "dangling link", "folder", *ODD])
def test_a_policy_file_that_cannot_be_read_as_a_file_is_damaged(kind: str, tmp_path: Path) -> None:
    """A link would let the bytes of a clone decide, and one that leads to nothing would be taken for none."""
    file, clone = tmp_path / "policy.toml", tmp_path / "clone.toml"
    clone.write_text("pinned = false\n")
    if "link" in kind:
        file.symlink_to(clone if kind == "link" else tmp_path / "nothing")
    elif kind == "folder":
        file.mkdir()
    else:
        file.write_bytes(ODD[kind])
    with pytest.raises(Damaged) as caught:
        read_rules([file])
    assert ("is not UTF-8" in caught.value.message) is (kind == "bytes")


def test_a_policy_file_that_may_not_be_looked_for_counts_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "lstat", closed)
        files = settings.policy_files()
    assert settings.MACHINE_POLICY in files


# Every way in

WAYS = ("install", "update", "frozen", "rollback", "import-lock", "trust-lock")


@pytest.mark.parametrize("way", WAYS)
def test_no_way_in_passes_a_source_that_is_not_allowed(way: str, project: Any, repo: Path, rule: Ruled) -> None:
    url = f"file://{repo}"
    if way not in {"install", "import-lock"}:
        project.run("install", source=url)
    commit(repo, {"skills/greet/SKILL.md": skill_text("greet", "does more")})
    if way == "rollback":
        project.run("update")
    if way == "frozen":
        shutil.rmtree(project.skills / "greet")
    entry = {"source": url, "sourceType": "git", "sourceUrl": url, "skillPath": "skills/greet/SKILL.md"}
    (project.root / "skills-lock.json").write_text(json.dumps({"version": 1, "skills": {"greet": entry}}))
    before = {path: path.read_bytes() for path in project.skills.rglob("*") if path.is_file()}
    rule(sources=["github.com/acme/*"], folders=False)
    shutil.rmtree(repo)  # the refusal comes before anything is read
    if way == "import-lock":
        result = project.run(way)
        assert (result["imported"], result["exit_code"]) == ([], 3)
    else:
        operation = "frozen" if way == "trust-lock" else way
        by_way: dict[str, dict[str, Any]] = {"install": {"source": url}, "update": {"grown": True}}
        params = by_way.get(way, {})
        error = refused(project, operation, trust_lock=way == "trust-lock", **params)
        assert (error.exit_code, error.data["rule"], error.data["path"]) == (3, "folders", "/rules.toml")
    assert {path: path.read_bytes() for path in project.skills.rglob("*") if path.is_file()} == before


def test_a_skill_must_satisfy_the_rules_of_the_machine_and_of_the_person(project: Any, repo: Path, rule: Ruled) -> None:
    machine, person = Rules(path="/machine", folders=False), Rules(path="/person")
    for rules in ((machine, person), (person, machine)):
        rule(*rules)
        assert refused(project, "install", source=f"file://{repo}").data["path"] == "/machine"


def test_a_marketplace_that_is_allowed_leads_to_no_other_source(project: Any, tmp_path: Path, rule: Ruled) -> None:
    rows = [{"name": "tools", "source": {"source": "url", "url": "https://evil.example/tools.git"}}]
    market = make_repo(tmp_path, {".claude-plugin/marketplace.json": json.dumps({"plugins": rows})}, name="market")
    rule(sources=["github.com/acme/*"], folders=True)
    error = refused(project, "install", source=f"file://{market}", skill="tools")
    assert "evil.example/tools" in error.message


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pages]:
    """A site over https, whose certificate is trusted."""
    pem = tmp_path / "site.pem"
    pem.write_text(KEY_AND_CERTIFICATE)
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with pages(pem) as served:
        yield served


@pytest.mark.parametrize("how", ["redirect", "document"])
def test_a_site_that_is_allowed_leads_to_no_other_place(how: str, project: Any, site: Pages, rule: Ruled) -> None:
    text, there = skill_text("greet").encode(), f"{site.url}/other/greet.md"
    row = {
        "name": "greet",
        "type": "skill-md",
        "description": "",
        "digest": f"sha256:{hashlib.sha256(text).hexdigest()}",
    }
    row["url"] = there if how == "document" else "greet.md"
    site.replies["/team/.well-known/agent-skills/index.json"] = Reply(json.dumps({"skills": [row]}).encode())
    site.replies["/team/.well-known/agent-skills/greet.md"] = Reply(status=302, headers={"Location": there})
    site.replies["/other/greet.md"] = Reply(text)
    source = f"{site.url}/team/.well-known/agent-skills/index.json"
    rule(sources=[f"{site.url}/team"])
    error = refused(project, "install", source=source)
    assert "/other/greet.md" in error.message
    assert "/other/greet.md" not in [path for path, _ in site.asked]
    rule(sources=[site.url])
    assert project.run("install", source=source)["changed"]


def test_a_repository_that_moved_is_not_followed(project: Any, site: Pages, rule: Ruled) -> None:
    moved = {"Location": f"{site.url}/evil/tools/info/refs?service=git-upload-pack"}
    site.replies["/acme/tools/info/refs?service=git-upload-pack"] = Reply(status=301, headers=moved)
    rule(sources=[f"{site.url}/acme/*"])
    with pytest.raises((FetchFailed, Refused)):
        project.run("install", source=f"{site.url}/acme/tools")
    assert [path for path, _ in site.asked if "evil" in path] == []


# Findings


def finding(level: Any, code: str = "bad") -> Diagnostic:
    return Diagnostic(code=code, level=level, path="SKILL.md", message="it is bad", line=1, text="x", digest="sha256:1")


@cases("scan, code, level, is_allowed")
def test_a_finding_above_the_rule_is_refused_although_the_person_accepts_it(
    maker: Any, repo: Path, rule: Ruled, scan: Any, code: str, level: str, is_allowed: bool
) -> None:
    project = maker(scan=lambda _skill, _files: [finding(level, code)])
    rule(scan=scan)
    params = {"source": f"file://{repo}", "accept": ["bad"]}
    if is_allowed:
        assert project.run("install", **params)["changed"]
    else:
        error = refused(project, "install", **params)
        assert (error.data["rule"], "--accept does not" in error.hint) == ("scan", True)


def test_without_a_scanner_a_required_scan_refuses(project: Any, repo: Path, rule: Ruled) -> None:
    rule(scan="warning")
    assert refused(project, "install", source=f"file://{repo}").data["rule"] == "scan"


# Pins


def test_only_a_whole_commit_or_the_lock_pins_a_source(project: Any, repo: Path, rule: Ruled) -> None:
    head = git(repo, "rev-parse", "HEAD").strip()
    git(repo, "tag", "v1")
    rule(pinned=True)
    for ref in ("", "main", "v1", head[:12]):
        error = refused(project, "install", source=f"file://{repo}", ref=ref)
        assert (error.data["rule"], head in error.hint) == ("pinned", True)
    assert project.run("install", source=f"file://{repo}", ref=head)["changed"]


def test_the_lock_restores_under_pinned_and_new_bytes_of_a_branch_do_not_come(
    project: Any, repo: Path, rule: Ruled
) -> None:
    project.run("install", source=f"file://{repo}")
    shutil.rmtree(project.skills / "greet")
    rule(pinned=True)
    assert project.run("frozen")["changed"]
    commit(repo, {"skills/greet/SKILL.md": skill_text("greet", "does more")})
    assert refused(project, "update").data["rule"] == "pinned"
    assert project.run("outdated")["count"] == 1  # it only looks


# Installed skills


def test_verify_names_what_the_rules_of_today_do_not_allow_and_removes_nothing(
    project: Any, repo: Path, rule: Ruled
) -> None:
    project.run("install", source=f"file://{repo}")
    rule(folders=False)
    error = refused(project, "verify")
    assert error.message == "installed against the rules: greet"
    assert [(one["name"], one["ok"], "folders" in one["refused"]) for one in error.data["skills"]] == [
        ("greet", True, True)
    ]
    assert (project.skills / "greet" / "SKILL.md").is_file()
    assert project.run("list")["count"] == 1
    assert project.run("scan", source="greet")["count"] == 1


def test_info_and_scan_look_at_a_source_that_is_not_allowed(project: Any, repo: Path, rule: Ruled) -> None:
    rule(folders=False, scan="note", pinned=True)
    assert project.run("info", source=f"file://{repo}")["count"] == 1
    assert project.run("scan", source=f"file://{repo}")["count"] == 1

"""Skills that a web server publishes are installed, locked, restored and updated like those of a repository."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from navigator_kernel.adapters.sources.published import CATALOGUES
from navigator_kernel.errors import FetchFailed, IntegrityMismatch, KernelError, Refused, UsageProblem
from navigator_kernel.skills.source.address import Source, parse_source
from npm_registry import serving
from skill_repositories import make_repo, skill_text
from tables import cases
from web_server import KEY_AND_CERTIFICATE, Pages, Reply, pages

NEW, OLD = "/.well-known/agent-skills/", "/.well-known/skills/"


@pytest.fixture
def site() -> Iterator[Pages]:
    with pages(host="127.0.0.1") as served:
        yield served


@pytest.fixture
def secure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pages]:
    """A site over https, whose certificate is trusted."""
    pem = tmp_path / "site.pem"
    pem.write_text(KEY_AND_CERTIFICATE)
    for name in ("SSL_CERT_FILE", "GIT_SSL_CAINFO"):
        monkeypatch.setenv(name, str(pem))
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with pages(pem) as served:
        yield served


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def zipped(files: Mapping[str, str]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return held.getvalue()


def tarred(files: Mapping[str, str]) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as archive:
        for path, text in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return held.getvalue()


def publish(site: Pages, documents: Mapping[str, bytes], **more: Any) -> None:
    """An index of version 0.2.0 with a skill for each document: NAME.md is a manifest, any other one an archive."""
    rows = []
    for path, data in documents.items():
        name, kind = path.partition(".")[0], "skill-md" if path.endswith(".md") else "archive"
        row = {"name": name, "type": kind, "description": "", "url": path, "digest": digest(data)}
        rows.append({**row, **more.get(name, {})})
        site.replies[f"{NEW}{path}"] = Reply(data)
    site.replies[f"{NEW}index.json"] = Reply(json.dumps({"skills": rows}).encode())


def publish_files(site: Pages, skills: Mapping[str, Mapping[str, str]]) -> None:
    """An index of version 0.1.0."""
    rows = [{"name": name, "description": "", "files": [*files]} for name, files in skills.items()]
    site.replies[f"{OLD}index.json"] = Reply(json.dumps({"skills": rows}).encode())
    for name, files in skills.items():
        site.replies |= {f"{OLD}{name}/{quote(path)}": Reply(text.encode()) for path, text in files.items()}


def names_of(result: Mapping[str, Any]) -> list[str]:
    return sorted(one["name"] for one in result["skills"])


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def source_of(text: str) -> Source:
    return parse_source(text, base=Path("/"))


@cases("address, url, skill")
def test_the_address_of_a_site_an_index_or_an_archive_is_one(address: str, url: str, skill: str) -> None:
    source = source_of(address)
    assert (source.kind, source.url, source.skill) == ("web", url, skill)
    assert source_of(source.url) == Source(kind="web", url=url, label=url)  # the lock keeps the URL


@pytest.mark.parametrize(
    "address",
    [
        "https://github.com/o/r/archive/refs/heads/main.zip",
        "https://example.org/team/skills",
        "https://example.org/team/skills.git",
    ],
)
def test_an_address_of_a_repository_stays_one(address: str) -> None:
    assert source_of(address).kind == "git"


@pytest.mark.parametrize("address", ["https://github.com", "https://gitlab.com/", "https://example.org/x.zip?token=1"])
def test_a_host_of_repositories_is_not_a_site_and_a_query_is_not_kept(address: str) -> None:
    with pytest.raises(UsageProblem):
        source_of(address)


@pytest.mark.parametrize(
    "address", ["http://example.org/x.zip", "http://10.0.0.1/.well-known", "https://a:b@c.org/x.zip"]
)
def test_plain_http_is_for_this_machine_and_no_address_carries_a_password(address: str) -> None:
    with pytest.raises(Refused):
        source_of(address)


def test_all_skills_of_a_site_are_installed_locked_and_restored(project: Any, site: Pages) -> None:
    files = {"SKILL.md": skill_text("pack"), "scripts/p.py": "print(1)\n"}
    publish(
        site,
        {
            "greet.md": skill_text("greet").encode(),
            "pack.tar.gz": tarred(files),
            "fold.zip": zipped({"SKILL.md": skill_text("fold")}),
        },
    )
    result = project.run("install", source=site.url, all=True)
    assert names_of(result) == ["fold", "greet", "pack"]
    before = files_of(project.skills / "pack")
    assert {*before} >= {"SKILL.md", "scripts/p.py"}
    lock = json.loads((project.root / "skills.lock.json").read_text())["skills"]
    assert {entry["source"] for entry in lock.values()} == {f"{site.url}/.well-known"}
    project.run("uninstall", name="pack", force=True)
    (project.root / "skills.lock.json").write_text(json.dumps({"version": 1, "skills": lock}))
    project.run("frozen")
    assert files_of(project.skills / "pack") == before
    site.replies[f"{NEW}pack.tar.gz"] = Reply(tarred({**files, "scripts/p.py": "print(2)\n"}))
    project.run("uninstall", name="pack", force=True)
    (project.root / "skills.lock.json").write_text(json.dumps({"version": 1, "skills": lock}))
    with pytest.raises(IntegrityMismatch):  # its digest is not the one in the index
        project.run("frozen")


def test_the_files_of_an_older_index_are_fetched_only_for_the_named_skill(project: Any, site: Pages) -> None:
    files = {"SKILL.md": skill_text("fold"), "references/how to.md": "so\n"}
    publish_files(site, {"fold": files, "other": {"SKILL.md": skill_text("other"), "big.md": "x"}})
    project.run("install", source=f"{site.url}{OLD}", skill="fold")
    assert (project.skills / "fold" / "references" / "how to.md").read_text() == "so\n"
    assert f"{OLD}other/big.md" not in [path for path, _ in site.asked]


def test_an_update_takes_what_the_site_has_now(project: Any, site: Pages) -> None:
    publish_files(site, {"fold": {"SKILL.md": skill_text("fold")}})
    project.run("install", source=f"{site.url}{OLD}fold/SKILL.md")
    assert project.run("update", check=True)["skills"][0]["state"] == "current"
    site.replies[f"{OLD}fold/SKILL.md"] = Reply(skill_text("fold", "folds twice").encode())
    assert project.run("update", check=True)["skills"][0]["state"] == "changed"
    project.run("update")
    assert "twice" in (project.skills / "fold" / "SKILL.md").read_text()


def test_a_skill_that_cannot_be_read_is_named_and_keeps_no_other_one_out(project: Any, site: Pages) -> None:
    data = skill_text("greet").encode()
    wrong = {
        "changed": {"digest": digest(b"other")},
        "gone": {"url": "nothing.md"},
        "inner": {"url": "https://10.1.2.3/SKILL.md"},
        "plain": {"url": "http://example.org/SKILL.md"},
        "odd": {"type": "video"},
        "bracket": {"url": "https://[x"},
        "none": {"digest": "md5:1"},
        "climbs": {"name": "../up"},
    }
    publish(
        site, {"greet.md": data, "broken.zip": b"PK\3\4 no archive", **{f"{name}.md": data for name in wrong}}, **wrong
    )
    result = project.run("install", source=site.url, all=True)
    assert names_of(result) == ["greet"]
    left = {one["name"]: one for one in result["left_out"]}
    assert {*left} == {*wrong, "broken", "../up"} - {"climbs"}
    for name, kind in (("changed", IntegrityMismatch), ("gone", FetchFailed), ("inner", Refused), ("plain", Refused)):
        with pytest.raises(kind):
            project.run("install", source=site.url, skill=name)
    assert not [path for path, _ in site.asked if "10.1.2.3" in path]


@pytest.mark.parametrize(
    "files", [["../SKILL.md"], ["SKILL.md", "a/../../b"], ["SKILL.md", "/etc/x"], ["notes.md"], "x", [1]]
)
def test_an_older_index_names_no_files_outside_its_skills(project: Any, site: Pages, files: Any) -> None:
    site.replies[f"{OLD}index.json"] = Reply(json.dumps({"skills": [{"name": "fold", "files": files}]}).encode())
    with pytest.raises(KernelError) as raised:
        project.run("install", source=f"{site.url}{OLD}", all=True)
    assert raised.value.exit_code in {3, 7}
    assert [path for path, _ in site.asked] == [f"{OLD}index.json"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"skills": {}}', b"[" * 100_000, b'{"skills": [1, null, []]}'])
def test_what_is_not_an_index_is_an_error_of_the_source(project: Any, site: Pages, body: bytes) -> None:
    site.replies[f"{NEW}index.json"] = Reply(body)
    with pytest.raises(FetchFailed):
        project.run("install", source=f"{site.url}{NEW}", all=True)


def test_a_remote_archive_is_read_without_a_link_out_of_it(project: Any, site: Pages) -> None:
    site.replies["/files/greet.zip"] = Reply(zipped({"greet/SKILL.md": skill_text("greet")}))
    assert names_of(project.run("install", source=f"{site.url}/files/greet.zip")) == ["greet"]
    site.replies["/files/bad.zip"] = Reply(zipped({"../SKILL.md": skill_text("bad")}))
    with pytest.raises(Refused):
        project.run("install", source=f"{site.url}/files/bad.zip")
    with pytest.raises(FetchFailed):
        project.run("install", source=f"{site.url}/files/none.zip")
    with pytest.raises(FetchFailed):
        project.run("install", source=f"{site.url}/files/greet.zip", offline=True)


def test_a_site_is_read_over_https(project: Any, secure: Pages) -> None:
    publish(secure, {"greet.md": skill_text("greet").encode()})
    assert names_of(project.run("install", source=secure.url, all=True)) == ["greet"]
    secure.replies["/moved.zip"] = Reply(status=302, headers={"Location": f"http://127.0.0.1:{secure.port}/x.zip"})
    with pytest.raises(FetchFailed, match="leads to"):
        project.run("install", source=f"{secure.url}/moved.zip")


def test_an_address_below_a_site_that_git_does_not_know_is_a_place_of_skills(project: Any, secure: Pages) -> None:
    publish_files(secure, {"fold": {"SKILL.md": skill_text("fold")}})
    secure.replies = {f"/docs{path}": reply for path, reply in secure.replies.items()}
    address = f"{secure.url}/docs"
    assert project.run("info", source=address)["url"] == f"{address}/.well-known"
    assert names_of(project.run("install", source=address, all=True)) == ["fold"]
    lock = json.loads((project.root / "skills.lock.json").read_text())["skills"]
    assert lock["fold"]["source"] == f"{address}/.well-known"
    assert project.run("update", check=True)["skills"][0]["state"] == "current"


def test_the_error_for_an_address_without_repository_and_skills_is_gits_and_names_both_places(
    project: Any, secure: Pages
) -> None:
    secure.replies["/docs/info/refs"] = Reply(b"<!doctype html>\n<html></html>\n")
    for path in ("none", "docs"):
        with pytest.raises(FetchFailed, match="git fetch") as raised:
            project.run("install", source=f"{secure.url}/{path}", all=True)
        assert f"{secure.url}/{path}/.well-known" in raised.value.hint
    for more in (".git", "#v1"):
        secure.asked.clear()
        with pytest.raises(FetchFailed):
            project.run("install", source=f"{secure.url}/none{more}", all=True)
        assert not [path for path, _ in secure.asked if ".well-known" in path]


def test_what_is_exported_for_a_site_is_installed_from_it(project: Any, site: Pages, tmp_path: Path) -> None:
    repo = make_repo(tmp_path, {"a/SKILL.md": skill_text("a"), "b/SKILL.md": skill_text("b"), "b/x.txt": "x\n"})
    project.run("install", source=f"file://{repo}", all=True)
    out = tmp_path / "site"
    project.lifecycle.export((), out, _everything(), form="well-known")
    before = {name: files_of(project.skills / name) for name in ("a", "b")}
    for path in out.rglob("*"):
        if path.is_file():
            site.replies[f"/{path.relative_to(out).as_posix()}"] = Reply(path.read_bytes())
    project.run("uninstall", name=["a", "b"])
    project.run("install", source=site.url, all=True)
    assert {name: files_of(project.skills / name) for name in ("a", "b")} == before
    with pytest.raises(Refused, match="already exists"):
        project.lifecycle.export((), out, _everything(), form="well-known")


def test_an_export_for_a_site_leaves_out_names_that_no_client_takes(project: Any, tmp_path: Path) -> None:
    files = {f"{name}/SKILL.md": skill_text(name) for name in ("a", "task_manager")}
    project.run("install", source=f"file://{make_repo(tmp_path, files)}", all=True)
    result = project.lifecycle.export((), tmp_path / "site", _everything(), form="well-known")
    assert (names_of(result), [*result["left_out"]]) == (["a"], ["task_manager"])
    assert "task_manager" not in (tmp_path / "site" / NEW[1:] / "index.json").read_text()
    with pytest.raises(UsageProblem, match="task_manager"):
        project.lifecycle.export(["task_manager"], tmp_path / "other", form="well-known")


def test_two_addresses_of_one_site_are_one_source(project: Any, site: Pages) -> None:
    publish(site, {"greet.md": skill_text("greet").encode()})
    project.run("install", source=site.url)
    result = project.run("install", source=f"{site.url}{NEW}greet")
    assert (result["counts"]["there"], result["left_out"]) == (1, [])
    publish(site, {"greet.md": skill_text("greet", "newer").encode()})
    assert project.run("install", source=f"{site.url}{NEW}greet")["counts"]["installed"] == 1


@pytest.mark.parametrize("form", ["plugin", "marketplace", "well-known", "skills-lock"])
def test_another_form_is_not_written_to_the_name_of_an_archive(project: Any, tmp_path: Path, form: Any) -> None:
    project.run("install", source=f"file://{make_repo(tmp_path, {'a/SKILL.md': skill_text('a')})}")
    with pytest.raises(UsageProblem, match="not an archive"):
        project.lifecycle.export(["a"], tmp_path / "o8.zip", form=form)
    assert not (tmp_path / "o8.zip").exists()


def test_an_exported_marketplace_is_read_as_one(project: Any, tmp_path: Path) -> None:
    repo = make_repo(tmp_path, {"a/SKILL.md": skill_text("a"), "b/SKILL.md": skill_text("b")})
    project.run("install", source=f"file://{repo}", all=True)
    out = tmp_path / "Our skills!"
    project.lifecycle.export((), out, _everything(), form="marketplace")
    plugin = json.loads((out / ".claude-plugin" / "marketplace.json").read_text())["plugins"][0]
    assert (plugin["name"], plugin["skills"]) == ("our-skills", ["./skills/a", "./skills/b"])
    project.run("uninstall", name=["a", "b"])
    result = project.run("install", source=str(out), skill="our-skills:a")
    assert names_of(result) == ["a"]


def test_an_exported_plugin_is_one_of_claude_code_and_of_agent_plugins(project: Any, tmp_path: Path) -> None:
    repo = make_repo(tmp_path, {"a/SKILL.md": skill_text("a"), "b/SKILL.md": skill_text("b"), "b/x.txt": "x\n"})
    project.run("install", source=f"file://{repo}", all=True)
    before = {name: files_of(project.skills / name) for name in ("a", "b")}
    out = tmp_path / "Our tools"
    project.lifecycle.export((), out, _everything(), form="plugin")
    claude, agents = (json.loads((out / path).read_text()) for path in (".claude-plugin/plugin.json", "plugin.json"))
    assert agents == {"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json", **claude}
    assert claude == {"name": "our-tools", "description": "The skills a, b"}
    project.run("uninstall", name=["a", "b"])
    for other in (".claude-plugin/plugin.json", "plugin.json"):
        assert {one["plugin"] for one in project.run("info", source=str(out))["skills"]} == {"our-tools"}
        assert names_of(project.run("install", source=str(out), skill="our-tools:*")) == ["a", "b"]
        assert {name: files_of(project.skills / name) for name in ("a", "b")} == before
        (out / other).unlink()  # each of the two manifests is enough
    assert {one["plugin"] for one in project.run("info", source=str(out))["skills"]} == {""}


def test_an_exported_lock_is_imported_again(project: Any, site: Pages, tmp_path: Path) -> None:
    repo = make_repo(tmp_path, {"skills/a/SKILL.md": skill_text("a")})
    publish(site, {"greet.md": skill_text("greet").encode()})
    project.run("install", source=f"file://{repo}", all=True)
    project.run("install", source=site.url, all=True)
    project.lifecycle.export((), project.root, _everything(), form="skills-lock")
    entries = json.loads((project.root / "skills-lock.json").read_text())["skills"]
    assert {name: entry["sourceType"] for name, entry in entries.items()} == {"a": "git", "greet": "well-known"}
    project.run("uninstall", name=["a", "greet"])
    imported = project.lifecycle.import_lock()
    assert sorted((one["name"], tuple(one["notes"])) for one in imported["imported"]) == [("a", ()), ("greet", ())]


def _everything() -> Any:
    from navigator_kernel.skills.options import InstallOptions

    return InstallOptions(everything=True)


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_a_package_of_npm_is_pinned_to_its_version_and_its_digest(
    project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with serving(monkeypatch, tmp_path) as registry:
        for version in ("1.0.0", "1.1.0"):
            files = {"skills/pack/SKILL.md": skill_text("pack", f"packs as {version}")}
            registry.add("@acme/tools", files, version)
        result = project.run("install", source="npm:@acme/tools@1.0.0", all=True)
        assert (names_of(result), result["commit"]) == (["pack"], "1.0.0")
        before, lock = files_of(project.skills / "pack"), (project.root / "skills.lock.json").read_text()
        assert project.run("update", check=True)["skills"][0]["state"] == "current"  # the version was asked for
        project.run("uninstall", name="pack")
        (project.root / "skills.lock.json").write_text(lock)
        project.run("frozen")
        assert files_of(project.skills / "pack") == before
        project.run("install", source="npm:@acme/tools", skill="pack", force=True)
        assert json.loads((project.root / "skills.lock.json").read_text())["skills"]["pack"]["commit"] == "1.1.0"
        registry.add("@acme/tools", {"skills/pack/SKILL.md": skill_text("pack", "is newer")}, "1.2.0")
        assert project.run("update", check=True)["skills"][0]["state"] == "changed"
        registry.named["@acme/tools/1.2.0"] = b"other"
        with pytest.raises(IntegrityMismatch):
            project.run("install", source="npm:@acme/tools@1.2.0", all=True)
        for name in ("npm:@acme/tools@9", "npm:none"):
            with pytest.raises(FetchFailed):
                project.run("install", source=name, all=True)


@pytest.mark.parametrize("text", ["npm:", "npm:../x", "npm:@a", "npm:a/b/c", "npm:x@^1.0", "npm:x@1 2", "npm:X"])
def test_what_is_not_the_name_of_a_package_is_refused(text: str) -> None:
    with pytest.raises((Refused, UsageProblem)):
        source_of(text)


def entry(name: str, media: str, address: str, **more: Any) -> dict[str, Any]:
    """An entry of an AI Catalog."""
    return {
        "identifier": f"urn:air:example.org:skill:{name}",
        "displayName": name,
        "type": media,
        "url": address,
        **more,
    }


def test_the_skills_of_an_ai_catalog_are_installed_and_found_by_its_queries(project: Any, site: Pages) -> None:
    from navigator_kernel.skills.catalog.aliases import sidecar_path, with_sidecar
    from navigator_kernel.skills.formats.manifest import read_manifest

    markdown = 'text/markdown; profile="urn:air:agent-skills"'
    entries = [
        entry("greet", markdown, "/s/greet.md", representativeQueries=["say hello to my aunt", "x" * 300, 1]),
        entry("fold", "application/agent-skills+zip", "/s/fold.zip"),
        entry("page", markdown, "/s/page.md"),
        entry("notes", "text/markdown", "/s/notes.md"),
        entry("tools", "application/mcp-server-card+json", "/s/card.json"),
        entry("inline", markdown, "", url=None, data={}),
        entry("inner", markdown, "http://10.0.0.1/SKILL.md"),
    ]
    site.replies = {
        "/.well-known/ai-catalog.json": Reply(json.dumps({"specVersion": "1.0", "entries": entries}).encode()),
        "/s/greet.md": Reply(skill_text("greet").encode()),
        "/s/fold.zip": Reply(zipped({"fold/SKILL.md": skill_text("fold")})),
        "/s/page.md": Reply(b"\n<!doctype html><p>sign in"),
    }
    result = project.run("install", source=site.url, all=True)
    assert names_of(result) == ["fold", "greet"]
    left = {one["name"]: (one["reason"], one["failure"]) for one in result["left_out"]}
    assert {left[f"urn:air:example.org:skill:{name}"] for name in ("notes", "tools")} == {("no-skill", False)}
    assert {name for name, (_, is_failure) in left.items() if is_failure} == {"page", "inline", "inner"}
    path = project.skills / "greet" / "SKILL.md"
    manifest = read_manifest(path.read_bytes(), path=path, folder=path.parent)
    sidecar = sidecar_path(project.skills / ".navigator", "greet")
    assert with_sidecar(manifest, sidecar).examples == (*manifest.examples, "say hello to my aunt")
    assert project.run("update", check=True)["skills"][0]["state"] == "current"
    assert names_of(project.run("info", source=f"{site.url}/.well-known/ai-catalog.json", skill="greet")) == ["greet"]


def test_an_ai_catalog_leads_to_others_within_limits_and_never_in_a_circle(project: Any, site: Pages) -> None:
    """Addresses in a catalogue count from its own place; the chain of `deep` is longer than is followed."""
    media, markdown = "application/ai-catalog+json", "application/ai-skill+md"
    pages = {
        "/.well-known/ai-catalog.json": [
            entry("own", markdown, "/s/own.md"),
            entry("team", media, "/team/ai-catalog.json"),
            entry("gone", media, "/none.json"),
            entry("inner", media, "http://10.0.0.1/ai-catalog.json"),
            entry("deep", media, "/deep/1.json"),
        ],
        "/team/ai-catalog.json": [
            entry("greet", markdown, "skills/greet.md"),
            entry("back", media, "/.well-known/ai-catalog.json"),
        ],
        **{f"/deep/{at}.json": [entry(f"d{at + 1}", media, f"{at + 1}.json")] for at in range(1, 60)},
    }
    site.replies = {
        path: Reply(json.dumps({"specVersion": "1.0", "entries": rows}).encode()) for path, rows in pages.items()
    }
    site.replies |= {
        "/s/own.md": Reply(skill_text("own").encode()),
        "/team/skills/greet.md": Reply(skill_text("greet").encode()),
    }
    result = project.run("install", source=site.url, all=True)
    assert names_of(result) == ["greet", "own"]
    left = {one["name"].rpartition(":")[2] for one in result["left_out"]}
    assert left == {"gone", "inner", f"d{CATALOGUES - 1}"}  # the limit counts `team`, too


def test_an_index_with_too_many_files_is_refused_before_any_is_fetched(project: Any, site: Pages) -> None:
    skills = {f"s{at}": ["SKILL.md", *(f"{number}" for number in range(1_500))] for at in range(100)}
    rows = [{"name": name, "files": files} for name, files in skills.items()]
    site.replies[f"{OLD}index.json"] = Reply(json.dumps({"skills": rows}).encode())
    with pytest.raises(FetchFailed, match="files"):
        project.run("install", source=f"{site.url}{OLD}", all=True)
    assert [path for path, _ in site.asked] == [f"{OLD}index.json"]

"""`navigator host install` adds its own entries, changes nothing else, and can be undone to the byte."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest

from cli.support import Place, place_in
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.cli.commands.host import HOSTS as EVERY
from navigator_kernel.errors import Busy
from navigator_kernel.hosts.hosts import hosts
from navigator_kernel.hosts.install import Installer
from skill_repositories import skill_text
from tables import cases

pytestmark = pytest.mark.sample(2)

HOSTS = ("claude-code", "codex", "gemini", "generic")
SAMPLES: dict[str, dict[str, bytes]] = {
    "nothing there": {},
    "empty files": {
        ".mcp.json": b"",
        ".gemini/settings.json": b"{}",
        ".codex/config.toml": b"",
        ".codex/hooks.json": b"{}\n",
    },
    "servers and hooks of others": {
        ".mcp.json": b'{\n  "mcpServers": {\n    "files": {"command": "npx", "args": ["-y", "files"]}\n  }\n}\n',
        ".claude/settings.local.json": b'{"permissions": {"allow": ["Bash(ls:*)"]}, "hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "date"}]}], "Stop": []}}',
        ".gemini/settings.json": '{\n\t"theme": "深色",\n\t"mcpServers": {}\n}'.encode(),
        ".codex/config.toml": b'# mine\nmodel = "gpt-5"  # the best\n\n[mcp_servers.files]\ncommand = "npx"\nargs = [ "-y",\n  "files" ]\n',
        ".codex/hooks.json": b'{ "hooks" : { } }\r\n',
    },
    "byte order marks": {
        ".mcp.json": b'\xef\xbb\xbf{\r\n  "a": 1\r\n}\r\n',
        ".gemini/settings.json": b'\xef\xbb\xbf{"a": 1 /* mine */}',
    },
    "odd forms": {
        ".mcp.json": b'{"a":1}',
        ".claude/settings.local.json": b'{\n    "n": 1e3,\n    "text": "\\u00e9"\n}\n\n\n',
        ".gemini/settings.json": b'{"mcpServers": {"other": {}}}\n',
        ".codex/config.toml": b'mcp_servers = { other = { command = "x" } }\n',
    },
}


@pytest.fixture
def here(tmp_path: Path, home: Path) -> Place:
    return place_in(tmp_path)


def folder_of(name: str, here: Place, home: Path) -> Path:
    return home if name.startswith(".codex") else here.root


def seen(here: Place, home: Path) -> dict[str, bytes]:
    names = {name for sample in SAMPLES.values() for name in sample}
    held = {name: folder_of(name, here, home) / name for name in names}
    return {name: path.read_bytes() for name, path in held.items() if path.exists()}


def lay(sample: dict[str, bytes], here: Place, home: Path) -> None:
    for name, data in sample.items():
        path = folder_of(name, here, home) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("sample", SAMPLES)
def test_it_is_undone_to_the_byte_and_a_dry_run_does_nothing(here: Place, home: Path, host: str, sample: str) -> None:
    lay(SAMPLES[sample], here, home)
    before = seen(here, home)
    shown = here.said("host", "install", host, "--dry-run")
    assert "navigator" in shown and seen(here, home) == before
    here.said("host", "install", host)
    after = seen(here, home)
    assert after != before
    assert here.json("host", "install", host)["changed"] == []
    assert here.json("host", "uninstall", host, "--dry-run")["changed"] != [] and seen(here, home) == after
    here.said("host", "uninstall", host)
    assert seen(here, home) == before
    assert here.json("host", "uninstall", host)["changed"] == []


def test_it_can_be_done_and_undone_again_and_again(here: Place, home: Path) -> None:
    for _ in range(3):
        here.said("host", "install", "claude-code")
        assert ".mcp.json" in seen(here, home)
        here.said("host", "install", "claude-code", "--uninstall")
        assert seen(here, home) == {}


@pytest.mark.parametrize("host", HOSTS)
def test_all_else_stays_as_it_says(here: Place, home: Path, host: str) -> None:
    lay(SAMPLES["servers and hooks of others"], here, home)
    here.said("host", "install", host)
    for name, data in seen(here, home).items():
        old, new = read(name, SAMPLES["servers and hooks of others"][name]), read(name, data)
        new.get("mcpServers", {}).pop("navigator", None)
        new.get("mcp_servers", {}).pop("navigator", None)
        for event in ("UserPromptSubmit", "BeforeAgent", "SessionStart"):
            held = new.get("hooks", {}).get(event, [])
            held[:] = [one for one in held if "prompt_hook" not in str(one) and "navigator-hook" not in str(one)]
            if not held and event not in old.get("hooks", {}):
                new.get("hooks", {}).pop(event, None)
        assert {**old, "hooks": {}} | new == {**new, "hooks": new.get("hooks", {})}
        assert new.get("hooks", {}) == old.get("hooks", {})
    text = (home / ".codex" / "config.toml").read_text()
    assert text.startswith('# mine\nmodel = "gpt-5"  # the best\n')


def read(name: str, data: bytes) -> dict[str, Any]:
    held: dict[str, Any] = tomllib.loads(data.decode()) if name.endswith(".toml") else json.loads(data)
    return held


@pytest.mark.parametrize("host", EVERY)
def test_folders_that_an_install_made_go_with_it_if_they_are_empty(here: Place, home: Path, host: str) -> None:
    before = folders_of(here, home)
    here.said("host", "install", host)
    here.said("host", "uninstall", host)
    assert folders_of(here, home) == before
    here.said("host", "install", "claude-code")
    (here.root / ".claude" / "mine.md").write_text("mine")
    here.said("host", "uninstall", "claude-code")
    assert (here.root / ".claude" / "mine.md").exists()


def folders_of(here: Place, home: Path) -> set[Path]:
    """The folders of the project and the person, but for those of Navigator itself."""
    own = home / ".local" / "state" / "navigator"
    found = {path for top in (here.root, home) for path in top.rglob("*") if path.is_dir()}
    return {path for path in found if path != own and own not in path.parents and path not in own.parents}


def test_uninstall_keeps_an_entry_that_was_added_after_the_install(here: Place, home: Path) -> None:
    here.said("host", "install", "claude-code")
    file = here.root / ".mcp.json"
    held = json.loads(file.read_text())
    held["mcpServers"]["files"] = {"command": "npx"}
    file.write_text(json.dumps(held))
    here.said("host", "uninstall", "claude-code")
    assert json.loads(file.read_text()) == {"mcpServers": {"files": {"command": "npx"}}}


@pytest.mark.parametrize("host", HOSTS)
def test_the_list_says_which_hosts_have_navigator(here: Place, home: Path, host: str) -> None:
    def installed() -> dict[str, str]:
        return {row["host"]: row["installed"] for row in here.json("host", "list")["hosts"]}

    assert set(installed().values()) == {"no"} and installed().keys() == set(EVERY)
    here.said("host", "install", host)
    also = {"claude-code": "generic", "generic": "claude-code"}.get(host)  # they share .mcp.json
    expected = {**dict.fromkeys(EVERY, "no"), host: "yes"}
    if also:
        expected[also] = "yes" if also == "generic" else "partly"
    assert installed() == expected
    assert f"{host} " in here.said("host", "list")


def test_the_comments_of_cursors_servers_stay(here: Place, home: Path) -> None:
    data = b'{\n  // mine\n  "mcpServers": {"files": {"command": "npx"},}\n}\n'
    lay({".cursor/mcp.json": data}, here, home)
    here.said("host", "install", "cursor")
    changed = (here.root / ".cursor" / "mcp.json").read_bytes()
    assert b"// mine" in changed and b'"navigator"' in changed
    here.said("host", "uninstall", "cursor")
    assert (here.root / ".cursor" / "mcp.json").read_bytes() == data


def test_the_command_line_knows_every_host(tmp_path: Path) -> None:
    assert list(EVERY) == list(hosts(tmp_path))


def test_a_host_whose_file_cannot_be_read_is_listed_as_unknown_with_the_reason(here: Place, home: Path) -> None:
    lay({".cursor/hooks.json": b"{ // mine\n}"}, here, home)
    done = here.run("host", "list")
    assert (done.code, "cursor: " in done.err and "not plain JSON" in done.err) == (0, True)


@cases("data")
def test_a_yaml_value_that_cannot_be_is_an_error_of_its_file(here: Place, home: Path, data: str) -> None:
    file = home / ".config" / "goose" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(f"a: {data}\n")
    done = here.run("host", "install", "goose")
    assert (done.code, "hint: " in done.err, file.read_text()) == (6, True, f"a: {data}\n")
    assert "goose: " in here.run("host", "list").err


def test_a_settings_file_that_links_to_itself_is_an_error_of_its_host(here: Place, home: Path) -> None:
    """A clone can bring such a link."""
    (here.root / ".mcp.json").symlink_to(".mcp.json")
    done = here.run("host", "install", "generic")
    assert (done.code, "hint: " in done.err) == (3, True)
    done = here.run("host", "list")
    assert (done.code, "generic: " in done.err, "cursor " in done.out) == (0, True, True)


@cases("name, file, before, old, new, after")
def test_what_a_person_adds_on_the_line_of_our_entry_stays_a_setting(
    here: Place, home: Path, name: str, file: str, before: str, old: str, new: str, after: str
) -> None:
    lay({file: before.encode()}, here, home)
    here.said("host", "install", name)
    text = (here.root / file).read_bytes().decode()
    assert text.count(old) == 1
    lay({file: text.replace(old, new).encode()}, here, home)
    here.said("host", "uninstall", name)
    assert (here.root / file).read_bytes().decode() == after


def test_a_file_that_changed_since_it_was_read_is_not_replaced(here: Place, home: Path) -> None:
    host = hosts(here.root)["generic"]
    installer = Installer(root=here.root, kept=home / "kept", writer=FolderWriter([here.root, home]))
    for action, back in ((installer.install, False), (installer.uninstall, True)):
        changes = action(host)
        lay({".mcp.json": b'{"mine": 1}'}, here, home)
        with pytest.raises(Busy, match="was changed meanwhile"):
            installer.write(changes, back=back)
        assert (here.root / ".mcp.json").read_bytes() == b'{"mine": 1}'
        installer.write(installer.install(host))


@cases("words, said")
def test_what_to_do_next_is_said(here: Place, home: Path, words: tuple[str, ...], said: str) -> None:
    if "has" in said or words[0] == "uninstall":
        here.said("host", "install", "claude-code")
    if "no entries" in said:
        here.said("host", "uninstall", "claude-code")
    assert here.run("host", *words).err == said


SKILLS = {f".claude/skills/s{at}/SKILL.md": skill_text(f"s{at}", f"draws {at} " * 99) for at in range(12)}


def test_what_claude_code_lists_itself_is_said_with_its_cost(here: Place, home: Path) -> None:
    here.write(SKILLS)
    said = here.run("host", "install", "claude-code").err
    assert re.search(r"also lists the 12 skills of .claude/skills itself, with about [12]\d{3} tokens", said)
    assert re.search(r"\d of them do not fit", said)
    hint = re.search(r"navigator (host install claude-code --hide-skills) leaves", said)
    assert hint is not None
    assert "also lists" not in here.run(*hint[1].split()).err
    assert "also lists" not in here.run("host", "install", "claude-code").err  # they are hidden now
    here.write({".claude/settings.local.json": '{"skillOverrides": []}'})
    assert here.run("host", "install", "claude-code").code == 0


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("at_once", [True, False])
def test_hidden_skills_are_undone_to_the_byte(here: Place, home: Path, sample: str, at_once: bool) -> None:
    here.write(SKILLS)
    lay(SAMPLES[sample], here, home)
    before = seen(here, home)
    if not at_once:
        here.said("host", "install", "claude-code")
    here.said("host", "install", "claude-code", "--hide-skills")
    held = json.loads((here.root / ".claude/settings.local.json").read_text())["skillOverrides"]
    assert held == {f"s{at}": "user-invocable-only" for at in range(12)}
    assert here.json("host", "install", "claude-code", "--hide-skills")["changed"] == []
    shutil.rmtree(here.root / ".claude/skills/s3")  # uninstalled meanwhile
    here.said("host", "uninstall", "claude-code")
    assert seen(here, home) == before


def test_the_persons_own_overrides_stay_through_installs_and_edits(here: Place, home: Path) -> None:
    here.write(SKILLS)
    own = {"s1": "off", "s2": "user-invocable-only"}
    file = here.root / ".claude/settings.local.json"
    file.write_text(json.dumps({"skillOverrides": own}))
    here.said("host", "install", "claude-code", "--hide-skills")
    held = json.loads(file.read_text())
    assert {name: held["skillOverrides"][name] for name in ("s1", "s2", "s4")} == {**own, "s4": "user-invocable-only"}
    file.write_text(json.dumps({**held, "model": "x"}))  # the person's edit
    here.write({".claude/skills/new/SKILL.md": skill_text("new")})
    here.said("host", "install", "claude-code", "--hide-skills")
    here.said("host", "uninstall", "claude-code")
    assert json.loads(file.read_text()) == {"skillOverrides": own, "model": "x"}


def test_codex_hides_the_skills_that_it_reads_and_other_hosts_hide_none(here: Place, home: Path) -> None:
    here.write({".agents/skills/s1/SKILL.md": skill_text("s1")})
    here.said("host", "install", "codex", "--hide-skills")
    rows = tomllib.loads((home / ".codex/config.toml").read_text())["skills"]["config"]
    assert rows == [{"path": str(here.root / ".agents/skills/s1/SKILL.md"), "enabled": False}]
    here.said("host", "uninstall", "codex")
    assert seen(here, home) == {}
    assert here.run("host", "install", "gemini", "--hide-skills").code == 2
    lay({".claude/settings.local.json": b'{"skillOverrides": []}'}, here, home)
    here.write(SKILLS)
    assert here.run("host", "install", "claude-code", "--hide-skills").code == 3


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        (".mcp.json", b"{ // mine\n}", 6),
        (".mcp.json", b'{"a": 1, "a": 2}', 6),
        (".mcp.json", b"[]", 6),
        (".mcp.json", b'{"mcpServers": []}', 3),
        (".mcp.json", b'{"mcpServers": {"navigator": {"command": "another"}}}', 3),
        (".claude/settings.local.json", b'{"hooks": {"UserPromptSubmit": {}}}', 3),
        (".claude/settings.local.json", b"\xff", 6),
        (".codex/config.toml", b"a = \n", 6),
        (".codex/config.toml", b'[mcp_servers.navigator]\ncommand = "another"\n', 3),
    ],
)
def test_a_file_that_cannot_be_edited_safely_is_left_unchanged_with_a_hint(
    here: Place, home: Path, name: str, data: bytes, code: int
) -> None:
    lay({name: data}, here, home)
    done = here.run("host", "install", "codex" if name.startswith(".codex") else "claude-code")
    assert (done.code, "hint: " in done.err) == (code, True)
    assert seen(here, home) == {name: data}


@cases("name, data, host")
def test_an_uninstall_refuses_what_no_install_wrote_as_an_install_does(
    here: Place, home: Path, name: str, data: str, host: str
) -> None:
    file = (home if name.startswith("~/") else here.root) / name.removeprefix("~/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(data)
    install, uninstall = here.run("host", "install", host), here.run("host", "uninstall", host)
    assert (uninstall.code, uninstall.err, file.read_text()) == (3, install.err, data)


def test_an_entry_of_an_older_install_is_removed(here: Place, home: Path) -> None:
    here.said("host", "install", "cursor")
    file = here.root / ".cursor" / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"navigator": {"command": "older"}}}))
    here.said("host", "uninstall", "cursor")
    assert not list((here.root / ".cursor").rglob("*.json")) or json.loads(file.read_text()) == {}


def test_a_list_that_became_something_else_is_refused(here: Place, home: Path) -> None:
    here.said("host", "install", "kimi")
    (home / ".kimi-code" / "config.toml").write_text("hooks = 3\n")
    done = here.run("host", "uninstall", "kimi")
    assert (done.code, "unexpected contents" in done.err) == (3, True)


def test_an_entry_that_another_installed_host_uses_stays(here: Place, home: Path) -> None:
    here.said("host", "install", "claude-code")
    before = seen(here, home)
    done = here.run("host", "uninstall", "generic")
    assert (done.code, "claude-code still uses the entry" in done.err, seen(here, home)) == (0, True, before)
    here.said("host", "uninstall", "claude-code")
    assert seen(here, home) == {}
    here.said("host", "install", "generic")
    here.said("host", "uninstall", "generic")
    assert seen(here, home) == {}


@pytest.mark.parametrize("order", [("generic", "claude-code"), ("claude-code", "generic")])
def test_an_entry_of_two_installs_goes_with_the_last_one(here: Place, home: Path, order: tuple[str, str]) -> None:
    lay(SAMPLES["servers and hooks of others"], here, home)
    before = seen(here, home)
    for host in order:
        here.said("host", "install", host)
    done = here.run("host", "uninstall", "claude-code")
    assert (done.code, "generic still uses the entry" in done.err) == (0, True)
    now = seen(here, home)
    assert "navigator" in json.loads(now[".mcp.json"])["mcpServers"]
    assert now[".claude/settings.local.json"] == before[".claude/settings.local.json"]
    here.said("host", "uninstall", "generic")
    assert seen(here, home) == before


@pytest.mark.parametrize("host", ["codex", "copilot", "goose", "kimi", "windsurf", "generic"])
def test_the_files_of_an_install_do_not_show_that_the_host_is_here(here: Place, home: Path, host: str) -> None:
    def is_here() -> bool:
        return bool(next(row["found"] for row in here.json("host", "list")["hosts"] if row["host"] == host))

    here.said("host", "install", host)
    assert not is_here()
    here.said("host", "uninstall", host)
    assert not is_here()
    file = hosts(here.root, {"HOME": str(home)})[host].folders[0]
    file = file if host == "generic" else file / "own.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("{}")
    assert is_here()


@cases("word, hint")
def test_a_host_with_a_wrong_name_gets_the_nearest_one(here: Place, word: str, hint: str) -> None:
    done = here.run("host", "install", word)
    assert (done.code, f"hint: {hint}\n" in done.err) == (2, True)


@pytest.mark.requirement("SAF-2")
def test_a_link_of_a_projects_leads_nowhere_else(here: Place, home: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    outside.write_text("{}")
    (here.root / ".mcp.json").symlink_to(outside)
    assert here.run("host", "install", "claude-code").code == 3
    assert outside.read_text() == "{}"


def test_a_link_of_the_persons_own_is_followed(here: Place, home: Path, tmp_path: Path) -> None:
    """A person who keeps settings in a repository of dotfiles keeps the link."""
    dotfiles, link = tmp_path / "config.toml", home / ".codex" / "config.toml"
    dotfiles.write_text("# mine\n")
    link.parent.mkdir()
    link.symlink_to(dotfiles)
    here.said("host", "install", "codex")
    assert link.is_symlink() and "mcp_servers" in dotfiles.read_text()


def test_a_file_that_only_its_owner_may_read_stays_so(here: Place, home: Path) -> None:
    lay({".codex/config.toml": b'key = "secret"\n'}, here, home)
    file = home / ".codex" / "config.toml"
    file.chmod(0o600)
    here.said("host", "install", "codex")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    notes = list((home / ".local" / "state" / "navigator" / "hosts").iterdir())
    assert notes and {stat.S_IMODE(note.stat().st_mode) for note in notes} == {0o600}


@pytest.mark.wide
def test_the_server_that_is_written_starts(here: Place, home: Path) -> None:
    import asyncio

    from cli.support import environment
    from mcp import Client, StdioServerParameters

    here.said("host", "install", "claude-code")
    held = json.loads((here.root / ".mcp.json").read_text())["mcpServers"]["navigator"]
    params = StdioServerParameters(command=held["command"], args=held["args"], env=environment(), cwd=here.root)

    async def names() -> list[str]:
        async with Client(params) as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    assert "route" in asyncio.run(asyncio.wait_for(names(), 60))
    assert os.fspath(here.root) not in (here.root / ".mcp.json").read_text()

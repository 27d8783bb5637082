"""Each host gets its entries where and as it reads them; uninstalling gives the person's own bytes back."""

from __future__ import annotations

import importlib.util
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import validate

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.errors import KernelError
from navigator_kernel.hosts import jsonc
from navigator_kernel.hosts.hosts import Host, hiding, hosts
from navigator_kernel.hosts.install import Change, Installer

CASES = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
HOSTS: dict[str, dict[str, Any]] = CASES["HOSTS"]
SCHEMAS, FILES = CASES["SCHEMAS"], CASES["FILES"]
WITH_COMMENTS = ("vscode", "opencode", "amp", "gemini", "qwen")


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test here is about a loss of power."""
    monkeypatch.setattr("os.fsync", lambda handle: None)


class Machine:
    """A project and a home folder."""

    def __init__(self, folder: Path, **env: str) -> None:
        self.folder, self.env = folder, {"HOME": str(folder / "home"), **env}
        (folder / "project").mkdir(parents=True, exist_ok=True)

    def host(self, name: str) -> Host:
        return hosts(self.folder / "project", self.env)[name]

    def install(self, host: Host) -> list[Change]:
        return self._change(host, back=False)

    def uninstall(self, host: Host) -> list[Change]:
        return self._change(host, back=True)

    def _change(self, host: Host, *, back: bool) -> list[Change]:
        writer = FolderWriter([self.folder])
        installer = Installer(root=self.folder / "project", kept=self.folder / "kept", writer=writer)
        changes = installer.uninstall(host) if back else installer.install(host)
        installer.write(changes, back=back)
        return changes

    def files(self) -> dict[str, bytes]:
        paths = (path for top in ("project", "home") for path in (self.folder / top).rglob("*") if path.is_file())
        return {path.relative_to(self.folder).as_posix(): path.read_bytes() for path in paths}

    def write(self, name: str, data: bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def read(name: str, data: bytes) -> Any:
    text = data.decode()
    if name.endswith(".toml"):
        return tomllib.loads(text)
    return yaml.safe_load(text) if name.endswith(".yaml") else jsonc.parse(text).value


def named(value: Any, server: list[str], hook: str) -> Any:
    """The expected document with the commands in place of the words that stand for them."""
    words = {"server": server[0], "args": server[1:], "all": server, "hook": hook}
    if isinstance(value, dict):
        return {key: named(inner, server, hook) for key, inner in value.items()}
    if isinstance(value, list):
        return [named(inner, server, hook) for inner in value]
    return words.get(value, value) if isinstance(value, str) else value


def files_of(host: str, name: str) -> list[str]:
    form = name.rpartition(".")[2]
    return [*FILES[form], *(FILES["jsonc"] if host in WITH_COMMENTS else ())]


@pytest.mark.parametrize("host", HOSTS)
def test_an_empty_machine_gets_the_files_that_the_host_documents(tmp_path: Path, host: str) -> None:
    machine = Machine(tmp_path)
    machine.install(machine.host(host))
    server = machine.host("opencode").entries[0].value["command"]
    hook = machine.host("claude-code").entries[1].value["hooks"][0]["command"]
    written = {name: read(name, data) for name, data in machine.files().items()}
    assert written == named(HOSTS[host], server, hook)
    for name, schema in SCHEMAS.items():
        if name in written:
            validate(written[name], schema)
    assert machine.install(machine.host(host)) == []
    machine.uninstall(machine.host(host))
    assert machine.files() == {}


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("is_edited", [False, True])
def test_what_the_person_wrote_before_and_after_the_install_stays_to_the_byte(
    tmp_path: Path, host: str, is_edited: bool
) -> None:
    for name in HOSTS[host]:
        for at, text in enumerate(files_of(host, name)):
            machine = Machine(tmp_path / f"{at}-{Path(name).name}")
            machine.write(name, text.encode())
            machine.install(machine.host(host))
            after = machine.files()
            assert machine.install(machine.host(host)) == []
            kept = read(name, text.encode()) or {}
            assert read(name, after[name]).keys() >= kept.keys()
            if is_edited:
                machine.write(name, after[name].replace(b"MINE", b"CHANGED"))
            machine.uninstall(machine.host(host))
            expected = text.encode().replace(b"MINE", b"CHANGED") if is_edited else text.encode()
            assert machine.files() == {name: expected}


@pytest.mark.parametrize("host", WITH_COMMENTS)
def test_a_server_that_was_added_below_ours_stays_with_its_comment(tmp_path: Path, host: str) -> None:
    machine = Machine(tmp_path)
    entry = machine.host(host).entries[0]
    name = entry.file.relative_to(tmp_path).as_posix()
    machine.install(machine.host(host))
    text = entry.file.read_text()
    node = next(child.node for child in jsonc.parse(text).children if child.key == entry.keys[0])
    text = jsonc.add(text, node, [("other", {"command": "x"})]).replace('"other"', '// theirs\n    "other"')
    machine.write(name, text.encode())
    machine.uninstall(machine.host(host))
    assert "// theirs" in entry.file.read_text()
    assert jsonc.parse(entry.file.read_text()).value == {entry.keys[0]: {"other": {"command": "x"}}}


@pytest.mark.parametrize(("host", "name", "text", "code"), CASES["LEFT"])
def test_a_file_that_cannot_be_edited_safely_is_left_alone(
    tmp_path: Path, host: str, name: str, text: str, code: int
) -> None:
    machine = Machine(tmp_path)
    machine.write(name, text.encode())
    with pytest.raises(KernelError) as raised:
        machine.install(machine.host(host))
    assert (raised.value.exit_code, bool(raised.value.hint)) == (code, True)
    assert machine.files() == {name: text.encode()}


def test_an_entry_to_which_the_host_added_settings_counts_as_ours(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.install(machine.host("goose"))
    file = machine.host("goose").entries[0].file
    held = yaml.safe_load(file.read_text())
    held["extensions"]["navigator"] |= {"envs": {}, "bundled": None}
    file.write_text(yaml.safe_dump({**held, "GOOSE_MODE": "auto"}))  # goose writes the whole file again
    assert machine.install(machine.host("goose")) == []
    machine.uninstall(machine.host("goose"))
    assert yaml.safe_load(file.read_text()) == {"GOOSE_MODE": "auto"}


def test_the_hook_that_is_written_is_a_module_of_ours(tmp_path: Path) -> None:
    command = Machine(tmp_path).host("cursor").entries[1].value["command"].split()
    assert command == ["navigator-hook"] or importlib.util.find_spec(command[-1]) is not None


def test_the_environment_names_the_persons_folders(tmp_path: Path) -> None:
    names = {"copilot": "COPILOT_HOME", "kimi": "KIMI_CODE_HOME", "codex": "CODEX_HOME", "goose": "XDG_CONFIG_HOME"}
    for host, name in names.items():
        machine = Machine(tmp_path, **{name: str(tmp_path / "elsewhere")})
        assert all(entry.file.is_relative_to(tmp_path / "elsewhere") for entry in machine.host(host).entries)
    rooted = Machine(tmp_path, GOOSE_PATH_ROOT=str(tmp_path / "root")).host("goose")
    assert rooted.entries[0].file == tmp_path / "root" / "config" / "config.yaml"


def test_an_existing_jsonc_file_is_the_one_that_is_edited(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    for host, name in (("opencode", "project/opencode.jsonc"), ("amp", "project/.amp/settings.jsonc")):
        machine.write(name, b"{} // mine\n")
        machine.install(machine.host(host))
        assert b"navigator" in machine.files()[name]


def test_a_host_is_found_by_its_folder_or_its_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    machine = Machine(tmp_path)
    assert not any(machine.host(name).is_here() for name in HOSTS)
    machine.write("home/.cursor/argv.json", b"{}")
    machine.write("bin/amp", b"#!/bin/sh\n")
    (tmp_path / "bin" / "amp").chmod(0o755)
    assert [name for name in HOSTS if machine.host(name).is_here()] == ["cursor", "amp"]


def test_codex_hides_each_skill_by_its_real_path_and_shows_all_again(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    for name in ("one", "two"):
        machine.write(f"home/.codex/skills/{name}/SKILL.md", b"")
    folders = sorted((tmp_path / "home/.codex/skills").iterdir())
    own = '# mine\n[[skills.config]]\npath = "/other/SKILL.md"\nenabled = false\n'
    machine.write("home/.codex/config.toml", own.encode())
    before = machine.files()
    machine.install(machine.host("codex"))
    machine.install(hiding(machine.host("codex"), folders))
    held = tomllib.loads((tmp_path / "home/.codex/config.toml").read_text())
    rows = [{"path": str(folder / "SKILL.md"), "enabled": False} for folder in folders]
    assert held["skills"]["config"] == [{"path": "/other/SKILL.md", "enabled": False}, *rows]
    assert machine.install(hiding(machine.host("codex"), folders)) == []
    machine.uninstall(hiding(machine.host("codex"), []))  # the skills were uninstalled meanwhile
    assert machine.files() == before


def test_json_with_comments_is_read_as_strictly_as_json() -> None:
    assert jsonc.parse('/**/[1, {"a": "//"},] // end').value == [1, {"a": "//"}]
    for text in (
        "",
        "{",
        '{"a" 1}',
        '{"a": 1 "b": 2}',
        "{a: 1}",
        '{"a": 1, "a": 1}',
        "{} x",
        '{"a": tru}',
        "/* x",
        "[,]",
    ):
        with pytest.raises(ValueError, match=r"unexpected|Expecting|follows|twice"):
            jsonc.parse(text)
    assert json.loads(jsonc.add("{}", jsonc.parse("{}"), [("a", [1])])) == {"a": [1]}

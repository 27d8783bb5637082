"""Which settings can be made at which level, and which level wins."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from navigator_kernel.config.settings import (
    PROJECT_FILE,
    SCALARS,
    checked,
    field_of,
    load_settings,
    user_file,
    user_state,
)
from navigator_kernel.errors import Damaged, KernelError, UsageProblem
from tables import cases

LEVELS = ("flag", "environment", "project", "user")
VALUES = {"flag": "11", "environment": "22", "project": "33", "user": "44"}


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize("given", [c for n in range(5) for c in itertools.combinations(LEVELS, n)], ids="-".join)
def test_a_flag_wins_over_the_environment_over_the_project_over_the_person(
    tmp_path: Path, home: Path, given: tuple[str, ...]
) -> None:
    env = {"HOME": str(home), **({"NAVIGATOR_TIMEOUT": "22"} if "environment" in given else {})}
    if "project" in given:
        put(tmp_path / PROJECT_FILE, "timeout = 33\n")
    if "user" in given:
        put(user_file(env), "timeout = 44\n")
    held = load_settings(tmp_path, env, {"timeout": "11"} if "flag" in given else {})
    winner = next((level for level in LEVELS if level in given), "default")
    assert (held.timeout, held.origins["timeout"]) == (float(VALUES.get(winner, "60")), winner)


@pytest.mark.parametrize("key", list(SCALARS))
def test_nothing_set_is_the_default(tmp_path: Path, key: str) -> None:
    held = load_settings(tmp_path, {"HOME": str(tmp_path)})
    assert (getattr(held, field_of(key)), held.origins[key]) == (SCALARS[key][1], "default")


@pytest.mark.requirement("SAF-1")
@cases("text")
def test_a_projects_file_grants_nothing(tmp_path: Path, text: str) -> None:
    put(tmp_path / PROJECT_FILE, text)
    held = load_settings(tmp_path, {"HOME": str(tmp_path / "home")})
    assert (held.servers, held.models.aliases) == ({}, {})
    assert len(held.notes) == 1


@cases("text, told", lists=True)
def test_a_setting_that_does_not_exist_is_named_at_both_levels(tmp_path: Path, text: str, told: list[str]) -> None:
    env = {"HOME": str(tmp_path / "home")}
    put(tmp_path / PROJECT_FILE, text)
    assert load_settings(tmp_path, env).ignored == tuple(f"navigator.toml: {one}" for one in told)
    user_file(env).parent.mkdir(parents=True)
    (tmp_path / PROJECT_FILE).rename(user_file(env))
    assert load_settings(tmp_path, env).ignored == tuple(f"config.toml: {one}" for one in told)


def test_every_setting_of_the_person_is_known(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    put(
        user_file(env),
        "[models]\ndefault = 'a:b'\n[models.aliases]\nx = 'a:b'\n[hosts.'git.example.org']\nauth = true\n[hosts.x]\nauht = true\n"
        "[policy]\ndeny = ['network']\n[search]\ncatalogues = []\n[mcp.servers.files]\ncommand = 'x'\n[search.more]\n",
    )
    found = load_settings(tmp_path / "project", env).ignored
    assert found == ("config.toml: 'hosts.x.auht' is not a setting; did you mean 'hosts.x.auth'?",)


def test_the_person_may_name_servers_and_models(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    put(
        user_file(env),
        '[mcp.servers.files]\ncommand = "npx"\nargs = ["a", 1]\nenv = {KEY = "v"}\n[models.aliases]\nclaude = "x:y"\n',
    )
    held = load_settings(tmp_path / "project", env)
    server = held.servers["files"]
    assert (server.command, server.args, dict(server.env)) == ("npx", ("a", "1"), {"KEY": "v"})
    assert held.models.aliases == {"claude": "x:y"}


@pytest.mark.parametrize("body", ["args = []", "command = 3", 'command = ["sh"]'])
def test_a_server_without_a_command_is_refused(tmp_path: Path, body: str) -> None:
    env = {"HOME": str(tmp_path)}
    put(user_file(env), f"[mcp.servers.files]\n{body}\n")
    with pytest.raises(UsageProblem, match="files"):
        load_settings(tmp_path / "project", env)


@cases("text")
def test_a_table_of_the_wrong_shape_is_a_clear_error(tmp_path: Path, text: str) -> None:
    env = {"HOME": str(tmp_path)}
    put(user_file(env), text)
    with pytest.raises(KernelError):
        load_settings(tmp_path / "project", env)


@cases("key, value")
def test_an_invalid_setting_is_refused_with_a_hint(key: str, value: str) -> None:
    with pytest.raises(UsageProblem) as raised:
        checked(key, value)
    assert raised.value.hint


@pytest.mark.parametrize(
    ("key", "value", "kept"), [("language", "zh", "zh"), ("timeout", "1.5", 1.5), ("timeout", 86_400, 86_400.0)]
)
def test_a_value_that_fits_is_kept(key: str, value: object, kept: object) -> None:
    assert checked(key, value) == kept


@pytest.mark.parametrize("place", ["project", "user"])
@pytest.mark.parametrize("data", [b"timeout = \n", b"\xff\xfe", b"a = 1\na = 2\n"], ids=["open", "binary", "twice"])
def test_a_settings_file_that_is_not_valid_toml_is_named_in_the_error(tmp_path: Path, place: str, data: bytes) -> None:
    env = {"HOME": str(tmp_path / "home")}
    path = tmp_path / PROJECT_FILE if place == "project" else user_file(env)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    with pytest.raises(Damaged) as raised:
        load_settings(tmp_path, env)
    assert str(path) in raised.value.message


@pytest.mark.parametrize("named", ["", "relative/path"])
def test_a_folder_that_is_not_absolute_is_not_believed(tmp_path: Path, named: str) -> None:
    env = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": named, "XDG_STATE_HOME": named}
    assert user_file(env) == tmp_path / ".config" / "navigator" / "config.toml"
    assert user_state(env) == tmp_path / ".local" / "state" / "navigator"


def test_the_persons_folders_are_where_the_system_says(tmp_path: Path) -> None:
    env = {"HOME": "/nowhere", "XDG_CONFIG_HOME": str(tmp_path / "c"), "XDG_STATE_HOME": str(tmp_path / "s")}
    assert (user_file(env).parents[1], user_state(env).parent) == (tmp_path / "c", tmp_path / "s")

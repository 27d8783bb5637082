"""`navigator model`: which models are set, where their keys come from, and whether they answer."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.support import SOURCE, Done, Place, place_in
from models.wire_server import WireServer, serving
from tables import cases

pytestmark = pytest.mark.sample(1)

KEY = "sk-made-up-key-0123456789"


@pytest.fixture
def ring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a keyring that the commands use."""
    file = tmp_path / "keyring.json"
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "file_keyring.Keyring")
    monkeypatch.setenv("FILE_KEYRING", str(file))
    return file


@pytest.fixture(scope="module")
def server() -> Iterator[WireServer]:
    with serving() as held:
        yield held


@pytest.fixture
def here(tmp_path: Path) -> Place:
    return place_in(tmp_path)


@pytest.fixture
def mine(home: Path) -> Path:
    file = home / ".config" / "navigator" / "config.toml"
    file.parent.mkdir(parents=True)
    return file


def there(server: WireServer) -> str:
    return f'[models.providers.there]\nurl = "{server.url}"\n'


def test_a_model_that_is_set_is_asked_from_then_on(here: Place, mine: Path, server: WireServer) -> None:
    mine.write_text(f"# mine\n{there(server)}")
    assert here.said("model", "use", "there:well") == f"default model: there:well (saved in {mine})\n"
    told = here.json("model", "test")
    assert (told["model"], told["answer"], told["input_tokens"]) == ("there:well", "Hello, all is well.", 3 * 120)
    assert mine.read_text().startswith("# mine\n")
    assert here.said("model", "use", "none") == f"no default model (saved in {mine})\n"
    assert here.json("model", "test")["error"]["exit_code"] == 4


def test_the_environment_says_more_than_the_settings(
    here: Place, mine: Path, server: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine.write_text(f'[models]\ndefault = "there:failed"\n{there(server)}')
    monkeypatch.setenv("NAVIGATOR_MODEL", "there:well")
    assert here.json("model", "test")["model"] == "there:well"


@pytest.mark.requirement("RTE-35")
def test_a_project_sets_no_model_and_no_key(here: Place, server: WireServer) -> None:
    (here.root / "navigator.toml").write_text(f'[models]\ndefault = "there:well"\n{there(server)}')
    assert here.json("model", "list")["models"] == []
    assert here.json("model", "test")["error"]["exit_code"] == 4


@pytest.mark.wide
def test_a_provider_of_which_nothing_is_known_is_not_used(here: Place, mine: Path) -> None:
    for words in (("model", "use", "loc:m1"), ("model", "test", "loc:m1")):
        error = here.json(*words)["error"]
        assert (error["exit_code"], error["msg"]) == (2, "no provider is called 'loc'")
        assert {"anthropic", "ollama", "vllm"} <= set(re.split("[ ,]+", error["hint"]))
        assert "[models.providers.loc] with its url" in error["hint"]
    assert not mine.exists()


def test_a_model_without_a_key_is_used_with_a_remark(
    here: Place, mine: Path, server: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    mine.write_text(f'{there(server)}key = "MY_KEY"\n')
    server.requests.clear()
    done = here.run("model", "use", "there:well")
    assert done.code == 0
    assert done.err == "there is no key for 'there' yet: export MY_KEY=…, or navigator model key there\n"
    error = here.json("model", "test")["error"]
    assert (error["msg"], server.asked("well")) == ("there is no key for 'there': MY_KEY is not set", 0)


def test_an_alias_stands_for_a_model(here: Place, mine: Path, server: WireServer) -> None:
    mine.write_text(f'[models.aliases]\nquick = "there:well"\n{there(server)}')
    assert here.json("model", "test", "quick")["model"] == "there:well"
    (row,) = here.json("model", "list")["models"]
    assert (row["role"], row["model"]) == ("alias quick", "there:well")


@pytest.mark.wide
def test_a_key_of_the_keyring_is_used_and_never_shown(here: Place, mine: Path, server: WireServer, ring: Path) -> None:
    def run(*words: str, stdin: str = "") -> Done:
        """Runs `navigator model` with the keyring of this test on Python's path."""
        path = os.pathsep.join([str(SOURCE / "kernel"), str(Path(__file__).parent)])
        return here.run("model", *words, stdin=stdin, env={"PYTHONPATH": path})

    mine.write_text(there(server))
    kept = run("key", "there", stdin=f"{KEY}\n")
    assert (kept.code, json.loads(ring.read_text())) == (0, {"navigator/there": KEY})
    listed = run("list", "--json")
    (row,) = (one for one in listed.document["services"] if one["name"] == "there")
    assert (row["key"], row["url"]) == ("keyring", server.url)
    assert run("test", "there:well").code == 0
    assert server.requests[-1].headers["authorization"] == f"Bearer {KEY}"
    failed = run("test", "there:key-refused")
    assert failed.code == 1 and [done for done in (kept, listed, failed) if KEY in done.out + done.err] == []
    assert (run("key", "there", "--remove").code, json.loads(ring.read_text())) == (0, {})


@pytest.mark.wide
@cases("words, code", lists=True)
def test_each_failure_of_the_model_command_has_its_exit_code_and_a_hint(
    here: Place, mine: Path, server: WireServer, words: list[str], code: int
) -> None:
    first = 0.3 if "there:hangs" in words else 60
    mine.write_text(f"[models]\nfirst = {first}\nretries = 0\n{there(server)}")
    error = here.json("model", *words)["error"]
    assert (error["exit_code"], bool(error["hint"])) == (code, True)


@cases("text, wrong")
def test_an_invalid_model_setting_is_a_usage_error(here: Place, mine: Path, text: str, wrong: str) -> None:
    mine.write_text(text)
    error = here.json("model", "list")["error"]
    assert (error["exit_code"], wrong in error["msg"]) == (2, True), error

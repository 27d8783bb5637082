from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel import guard
from navigator_kernel.adapters.entry_points import Installed, entry_points
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.hookspecs import hookimpl
from navigator_kernel.plugins import Plugins, add_entry_points, add_folders, build_manager

HOOK = "kernel_register_sources"


class Good:
    @hookimpl
    def kernel_register_sources(self, root: Path) -> list[Path]:
        return [root / "good"]


class Bad:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    @hookimpl
    def kernel_register_sources(self, root: Path) -> list[Path]:
        raise self.error


class Lazy(Bad):
    @hookimpl
    def kernel_register_sources(self, root: Path) -> Any:
        yield root
        raise self.error


class Async:
    @hookimpl
    async def kernel_register_sources(self, root: Path) -> list[Path]:
        return [root]


class Silent:
    @hookimpl
    def kernel_register_sources(self, root: Path) -> None:
        return None


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def loaded(*plugins: object) -> Plugins:
    manager = build_manager()
    for number, plugin in enumerate(plugins):
        manager.add(f"{type(plugin).__name__.lower()}-{number}", partial(_itself, plugin))
    return manager


def _itself(plugin: object) -> object:
    return plugin


def failed(plugins: Plugins) -> list[tuple[str, str]]:
    return [(failure.plugin, failure.hook) for failure in plugins.failures]


@pytest.mark.parametrize("kind", [Bad, Lazy])
@pytest.mark.parametrize("error", [RuntimeError("odd"), SystemExit(3), RecursionError(), Mute(), KeyError("\x1b[31m")])
def test_a_plugin_that_raises_is_named_with_its_hook_and_the_others_go_on(
    kind: type[Bad], error: BaseException
) -> None:
    plugins = loaded(Good(), kind(error), Good())
    found = plugins.all(HOOK, Path("/p"))
    assert [name for name, _ in found] == ["good-0", "good-2"]
    assert failed(plugins) == [(f"{kind.__name__.lower()}-1", HOOK)]


def test_the_error_text_of_a_plugin_is_cleaned_of_control_characters() -> None:
    plugins = loaded(Bad(RuntimeError("a\x1b[31mb\nc")))
    plugins.all(HOOK, Path("/p"))
    assert plugins.failures[0].to_dict() == {"plugin": "bad-0", "hook": HOOK, "error": "RuntimeError: ab c"}


def test_a_hook_that_returns_a_coroutine_is_refused() -> None:
    plugins = loaded(Async(), Good())
    assert [name for name, _ in plugins.all(HOOK, Path("/p"))] == ["good-1"]
    assert [(failure.plugin, failure.error) for failure in plugins.failures] == [
        ("async-0", "TypeError: a hook returns values, not a coroutine")
    ]


def test_a_hook_that_has_nothing_to_say_is_left_out() -> None:
    plugins = loaded(Silent(), Good())
    assert ([name for name, _ in plugins.all(HOOK, Path("/p"))], plugins.failures) == (["good-1"], [])


def test_the_first_registered_wins() -> None:
    class Says:
        def __init__(self, word: Any) -> None:
            self.word = word

        @hookimpl
        def kernel_precheck(self, count: int) -> Any:
            return self.word

    plugins = loaded(Says(None), Says("one"), Says("two"))
    assert plugins.first("kernel_precheck", 3) == "one"


def test_a_hook_with_a_wrong_signature_is_a_failure_to_load() -> None:
    class Wrong:
        @hookimpl
        def kernel_register_sources(self, folder: Path) -> list[Path]:
            return [folder]

    plugins = loaded(Wrong(), Good())
    assert failed(plugins) == [("wrong-0", "load")]
    assert [name for name, _ in plugins.all(HOOK, Path("/p"))] == ["good-1"]


def test_a_plugin_that_failed_to_load_is_not_listed_as_loaded() -> None:
    class Wrong:
        @hookimpl
        def kernel_register_sources(self, folder: Path) -> list[Path]:
            return [folder]

    assert loaded(Wrong(), Good()).names() == ["good-1"]


def test_each_manager_has_its_own_plugins() -> None:
    loaded(Good())
    assert loaded().names() == []


# tracing


def test_navigator_trace_prints_each_hook_call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NAVIGATOR_TRACE", "1")
    plugins = build_manager()
    plugins.add("good", Good)
    plugins.add("bad", lambda: Bad(ValueError("odd")))
    plugins.add("silent", Silent)
    plugins.all(HOOK, Path("/p"))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines() == [
        f"hook {HOOK} good -> 1",
        f"hook {HOOK} bad failed: ValueError: odd",
        f"hook {HOOK} silent -> 0",
    ]


@pytest.mark.parametrize("value", [None, "", "0"])
def test_without_it_nothing_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], value: str | None
) -> None:
    if value is not None:
        monkeypatch.setenv("NAVIGATOR_TRACE", value)
    plugins = build_manager()
    plugins.add("good", Good)
    plugins.all(HOOK, Path("/p"))
    assert capsys.readouterr().err == ""


# loading


@pytest.mark.parametrize(
    "code", ["raise RuntimeError('odd')", "import sys; sys.exit(3)", "def (:", "import no_such_module"]
)
def test_a_folder_whose_import_fails_is_named_and_the_next_is_loaded(tmp_path: Path, code: str) -> None:
    for name, text in (("bad", code), ("good", "")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "agent.py").write_text(text)
    plugins = build_manager()
    add_folders(plugins, tmp_path, "user")
    assert (failed(plugins), plugins.names()) == ([("user:bad", "load")], ["user:good"])


def test_a_folder_is_loaded_under_a_private_module_name(tmp_path: Path) -> None:
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / "agent.py").write_text("")
    add_folders(build_manager(), tmp_path, "mine")
    assert sys.modules["json"] is json
    assert "_navigator_mine_json" in sys.modules


def test_a_folder_that_changed_is_loaded_with_its_new_code(tmp_path: Path) -> None:
    file = tmp_path / "mine" / "agent.py"
    file.parent.mkdir()
    for number in (1, 2):
        file.write_text(f"number = {number}\n")  # same size
        os.utime(file, (0, 0))
        add_folders(build_manager(), tmp_path, "changed")
        assert sys.modules["_navigator_changed_mine"].number == number


@pytest.mark.parametrize("value", ["no_such_module", "json:no_such_name", "json.tool:main.x"])
def test_an_entry_point_that_cannot_be_loaded_is_named(value: str) -> None:
    plugins = build_manager()
    add_entry_points(plugins, [Installed("mine", value)])
    assert failed(plugins) == [("mine", "load")]


def test_an_entry_point_may_name_an_object_of_a_module(install: Any) -> None:
    code = (
        "class Box:\n    @hookimpl\n    def kernel_register_sources(self, root):\n        return [root]\nbox = Box()\n"
    )
    module = install(code)
    plugins = build_manager()
    add_entry_points(plugins, [Installed("mine", f"{module}:box")])
    assert plugins.all(HOOK, Path("/p")) == [("mine", Path("/p"))]


# the cache of entry points


def cached(folder: Path) -> list[tuple[str, str]]:
    return [one[:2] for one in entry_points(folder / "plugins.json", lambda: FolderWriter([folder]))]


def test_an_installed_plugin_is_found(tmp_path: Path, install: Any) -> None:
    name = install("")
    assert (name, name) in cached(tmp_path / "cache")


def test_the_list_comes_from_the_cache_while_the_environment_stands_still(tmp_path: Path, install: Any) -> None:
    install("")
    found = cached(tmp_path / "cache")
    file = tmp_path / "cache" / "plugins.json"
    held = json.loads(file.read_text())
    file.write_text(json.dumps([{**held[0], "found": [["kept", "in:cache"]]}]))
    assert (found != [], cached(tmp_path / "cache")) == (True, [("kept", "in:cache")])


def test_two_environments_that_take_turns_have_a_cache_each(
    tmp_path: Path, install: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("")
    first = cached(tmp_path / "cache")
    for _ in range(2):
        with monkeypatch.context() as elsewhere:
            elsewhere.syspath_prepend(str(tmp_path))
            cached(tmp_path / "cache")
        assert cached(tmp_path / "cache") == first
    assert len(json.loads((tmp_path / "cache" / "plugins.json").read_text())) == 2


def test_a_new_package_is_seen_through_the_cache(tmp_path: Path, install: Any) -> None:
    install("")
    cached(tmp_path / "cache")
    second = install("")
    assert (second, second) in cached(tmp_path / "cache")


def test_a_package_that_is_put_in_a_folder_of_the_path_is_seen_through_the_cache(tmp_path: Path, install: Any) -> None:
    first = install("")
    cached(tmp_path / "cache")
    info = tmp_path / "site" / first / "other-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[navigator]\nother = other\n")
    assert ("other", "other") in cached(tmp_path / "cache")


@pytest.mark.parametrize("text", ["", "no json", "[]", "{}", '{"key": 1}', '{"key": null, "found": 5}', "\xff"])
def test_an_installed_plugin_is_found_despite_an_invalid_cache(tmp_path: Path, install: Any, text: str) -> None:
    name = install("")
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "plugins.json").write_bytes(text.encode("latin-1"))
    assert (name, name) in cached(tmp_path / "cache")


def test_an_installed_plugin_is_found_when_the_cache_cannot_be_written(tmp_path: Path, install: Any) -> None:
    name = install("")
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert (name, name) in cached(tmp_path / "cache")


def test_calls_that_come_at_once_share_the_plugins_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    class SlowLoop(guard.PluginLoop):
        def __init__(self, name: str) -> None:
            time.sleep(0.05)  # so that all calls come before the first loop is there
            super().__init__(name)

    monkeypatch.setattr(guard, "PluginLoop", SlowLoop)
    plugins = build_manager()

    async def loop() -> int:
        return id(asyncio.get_running_loop())

    with ThreadPoolExecutor(4) as pool:
        loops = list(pool.map(lambda _: asyncio.run(plugins.run("p", "hook", loop, 5)), range(4)))
    assert len(set(loops)) == 1

"""Finds plugins, loads them, and calls each of their hooks separately, so that one failure is named and isolated."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from functools import lru_cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pluggy
from msgspec import Struct, field

from navigator_kernel import hookspecs
from navigator_kernel.text import clean

TRACE = "NAVIGATOR_TRACE"


class Failure(Struct, frozen=True, kw_only=True):
    """A failure of a plugin, with the hook that it failed in (`load` for its import)."""

    plugin: str
    hook: str
    error: str

    def to_dict(self) -> dict[str, str]:
        return {"plugin": self.plugin, "hook": self.hook, "error": self.error}


class Plugins(Struct):
    """A typed façade over pluggy's manager, which is built here and passed in, never global."""

    manager: pluggy.PluginManager
    failures: list[Failure] = field(default_factory=list)
    trace: bool = False

    def add(self, plugin: object, name: str) -> None:
        """Registers a module or object; a wrong signature is recorded as a failure, not raised."""
        try:
            self.manager.register(plugin, name)
        except Exception as error:  # noqa: BLE001 - a plugin may be anything
            self.fail(name, "load", error)

    def all(self, hook: str, value: object) -> list[tuple[str, Any]]:
        """`(plugin, result)` of each implementation that returned a result, in the order of registration."""
        found: list[tuple[str, Any]] = []
        for implementation in getattr(self.manager.hook, hook).get_hookimpls():
            name = str(implementation.plugin_name)
            try:
                result = implementation.function(*([value] if implementation.argnames else []))
                if hasattr(result, "__await__"):
                    result.close()
                    raise TypeError("a hook returns values, not a coroutine")
                result = list(result) if result is not None and hook not in _SINGLE else result
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the plugin is named and isolated
                self.fail(name, hook, error)
                continue
            self._tell(f"{hook} {name} -> {type(result).__name__}")
            if result is not None:
                found.append((name, result))
        return found

    def first(self, hook: str, value: object) -> Any:
        """The first result that is not None."""
        return next((result for _, result in self.all(hook, value)), None)

    def fail(self, plugin: str, hook: str, error: BaseException) -> None:
        try:
            told = str(error)
        except Exception:  # noqa: BLE001 - str() of a plugin's error may raise anything
            told = "it cannot say why"
        text = clean(f"{type(error).__name__}: {told}", lines=False)
        self.failures.append(Failure(plugin=plugin, hook=hook, error=text))
        self._tell(f"{hook} {plugin} failed: {text}")

    def note_agent(self, agent: str, error: str) -> None:
        """Records an agent that raised an exception while it worked on a packet."""
        self.failures.append(Failure(plugin=agent, hook="handle", error=clean(error, lines=False)))

    def names(self) -> list[str]:
        return [name for name, _ in self.manager.list_name_plugin()]

    def _tell(self, line: str) -> None:
        if self.trace:
            sys.stderr.write(f"hook {line}\n")


_SINGLE = frozenset(
    {
        "kernel_register_routers",
        "kernel_register_encoders",
        "kernel_register_dispatchers",
        "kernel_precheck",
        "kernel_finish_turn",
    }
)


def build_manager(*, trace: bool | None = None) -> Plugins:
    """A manager that knows the hooks and no plugin; `trace` is NAVIGATOR_TRACE's unless given."""
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    return Plugins(manager=manager, trace=os.environ.get(TRACE) == "1" if trace is None else trace)


def add_folders(plugins: Plugins, folder: Path, prefix: str) -> None:
    """Loads each `<name>/agent.py` below `folder` by path, under a private module name, and registers it."""
    for file in sorted(folder.glob("*/agent.py")):
        name = f"{prefix}:{file.parent.name}"
        try:
            module = _module(f"_navigator_{prefix}_{file.parent.name}", file)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin's import may raise anything
            plugins.fail(name, "load", error)
            continue
        plugins.add(module, name)


def add_entry_points(plugins: Plugins, found: Sequence[tuple[str, str]]) -> None:
    """Loads and registers plugins of installed packages: `(name, module[:attribute])` of the group `navigator`."""
    for name, value in found:
        module, _, attribute = value.partition(":")
        try:
            plugin = importlib.import_module(module)
            plugins.add(getattr(plugin, attribute) if attribute else plugin, name)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin's import may raise anything
            plugins.fail(name, "load", error)


class _Loader(SourceFileLoader):
    """Compiles the source itself: bytecode is neither read nor written, as it would change the folder's digest."""

    def get_code(self, fullname: str) -> CodeType:
        return _compiled(self.get_data(self.get_filename(fullname)), self.path)


@lru_cache(maxsize=64)
def _compiled(source: bytes, path: str) -> CodeType:
    """The code of a module; kept, because one process may load the same agents for many kernels."""
    return compile(source, path, "exec", dont_inherit=True)


def _module(name: str, file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file, loader=_Loader(name, str(file)))
    if spec is None or spec.loader is None:
        raise ImportError(f"{str(file)!r} is not a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module

"""Finds plugins, loads them, and calls each of their hooks separately, so that one failure is named and isolated."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import lru_cache, partial
from importlib.machinery import SourceFileLoader
from itertools import islice
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, TypeVar

import pluggy
from msgspec import Struct, field

from navigator_kernel import guard, hookspecs
from navigator_kernel.adapters.entry_points import OWN, Installed
from navigator_kernel.errors import KernelError, NotFound
from navigator_kernel.text import clean, suggestions

TRACE = "NAVIGATOR_TRACE"
MOST = 10_000  # items that one hook may return
T = TypeVar("T")


class Failure(Struct, frozen=True, kw_only=True):
    """A failure of a plugin, with the hook that it failed in (`load` for its import)."""

    plugin: str
    hook: str
    error: str

    def to_dict(self) -> dict[str, str]:
        return {"plugin": self.plugin, "hook": self.hook, "error": self.error}


@lru_cache(maxsize=1_000)  # once in a process, which may load the same plugins for many kernels
def warn(line: str) -> None:
    """Logs `line`; on the command line it goes to stderr."""
    import logging

    logging.getLogger("navigator").warning("%s", line)


class Plugins(Struct):
    """A typed façade over pluggy's manager, which is built here and passed in, never global. `packages` are those of
    the installed plugins; `tell` is called with each failure."""

    manager: pluggy.PluginManager
    failures: list[Failure] = field(default_factory=list)
    trace: bool = False
    packages: dict[str, Installed] = field(default_factory=dict)
    tell: Callable[[str], None] = warn
    _shipped: set[str] = field(default_factory=set)
    _loops: dict[str, guard.PluginLoop] = field(default_factory=dict)

    def add(self, name: str, load: Callable[[], object], *, shipped: bool = False) -> None:
        """Registers the module or object that `load` returns. Failures are recorded: of the import, of a wrong
        signature, and of a hook that does not exist."""
        if shipped:
            self._shipped.add(name)
        try:
            plugin = self.call(name, "load", load)
            self.call(name, "load", lambda: self.manager.register(plugin, name))
        except Exception:  # noqa: BLE001 - it is recorded
            return
        known = [hook for hook in vars(hookspecs) if hook.startswith("kernel_")]
        for caller in self.manager.get_hookcallers(plugin) or ():
            if not caller.has_spec():
                near = suggestions(caller.name, known, 1)
                meant = f"; did you mean {near[0]}?" if near else ""
                self.fail(name, caller.name, NotFound(f"there is no such hook{meant}"))

    def all(
        self,
        hook: str,
        value: object,
        read: Callable[[Any], Any] = lambda item: item,
        *,
        seconds: float = 0.0,
        ports: object = None,
    ) -> list[tuple[str, Any]]:
        """`(plugin, read(item))` of each item that an implementation returned, in the order of registration. What
        fails, and each item for which `read` raises an exception, is recorded as a failure and left out. `ports` is
        the hook's second argument, if it has one."""
        found: list[tuple[str, Any]] = []
        for implementation in getattr(self.manager.hook, hook).get_hookimpls():
            name = str(implementation.plugin_name)
            arguments = implementation.argnames
            given = [ports if argument == "ports" and ports is not None else value for argument in arguments]
            try:
                items = self.call(name, hook, _items, implementation.function, given, hook, read, seconds=seconds)
            except Exception as problem:
                if hook in _DECIDED and isinstance(problem, KernelError) and not isinstance(problem, guard.Hung):
                    raise
                continue
            self._trace(f"{hook} {name} -> {len(items)}")
            for item, error in items:
                if error is None:
                    found.append((name, item))
                else:
                    self.fail(name, hook, error)
        return found

    def first(self, hook: str, value: object, read: Callable[[Any], Any] = lambda item: item) -> Any:
        """The first result that is not None."""
        return next((result for _, result in self.all(hook, value, read)), None)

    def call(self, plugin: str, hook: str, function: Callable[..., T], *given: Any, seconds: float = 0.0) -> T:
        """Calls `function`, a part of `plugin`, under `guard.call`. An error is recorded, and raised."""
        try:
            if plugin in self._shipped:
                return function(*given)
            return guard.call(plugin, hook, function, *given, seconds=seconds)
        except Exception as error:
            self.fail(plugin, hook, error)
            raise

    async def run(self, plugin: str, hook: str, function: Callable[[], Awaitable[T]], seconds: float) -> T:
        """Awaits what `function`, a part of `plugin`, returns, in the plugin's own event loop. An error is raised, and
        recorded if it is not one of the kernel's, which are answers."""
        if plugin not in self._loops:
            self._loops.setdefault(plugin, guard.PluginLoop(f"navigator-plugin {plugin}"))  # two turns may come at once
        loop = self._loops[plugin]
        try:
            return await guard.run(plugin, loop, function, seconds)
        except Exception as error:
            if isinstance(error, guard.Hung) and not loop.answers() and self._loops.get(plugin) is loop:
                del self._loops[plugin]
            if isinstance(error, guard.Hung) or not isinstance(error, KernelError):
                self.fail(plugin, hook, error)
            raise

    def is_shipped(self, plugin: str) -> bool:
        """Whether the plugin is a part of the kernel, and is called without a guard."""
        return plugin in self._shipped

    def fail(self, plugin: str, hook: str, error: BaseException) -> None:
        """Records a failure, and tells it, once."""
        try:
            text = str(error)
        except BaseException:  # noqa: BLE001 - str() of a plugin's error may raise anything
            text = "it cannot say why"
        hint = f" ({error.hint})" if isinstance(error, guard.Hung) and error.hint else ""
        failure = Failure(plugin=plugin, hook=hook, error=clean(f"{type(error).__name__}: {text}{hint}", lines=False))
        if failure not in self.failures:
            self.failures.append(failure)
            self.tell(clean(f"plugin {plugin} failed in {hook}: {failure.error}", lines=False))
        self._trace(f"{hook} {plugin} failed: {failure.error}")

    def names(self) -> list[str]:
        return [name for name, _ in self.manager.list_name_plugin()]

    def hooks(self, name: str) -> list[str]:
        """The hooks that the plugin implements."""
        return sorted(caller.name for caller in self.manager.get_hookcallers(self.manager.get_plugin(name)) or ())

    def _trace(self, line: str) -> None:
        if self.trace:
            sys.stderr.write(f"hook {line}\n")


# A person who named a database or a broker must not go on without it: a KernelError of these hooks is the command's
_DECIDED = frozenset({"kernel_register_dispatchers", "kernel_register_stores"})
_SINGLE = _DECIDED | frozenset(
    {
        "kernel_register_routers",
        "kernel_register_encoders",
        "kernel_precheck",
        "kernel_finish_turn",
    }
)


def _items(
    function: Callable[..., Any], given: Sequence[object], hook: str, read: Callable[[Any], Any]
) -> list[tuple[Any, Exception | None]]:
    """Calls a hook, and reads each item of its result, or its one result; `(item, error)` for each."""
    result = function(*given)
    if hasattr(result, "__await__"):
        result.close()
        raise TypeError("a hook returns values, not a coroutine")
    if result is None or hook == "kernel_finish_turn":
        return []
    if hook not in _SINGLE and isinstance(result, str | bytes | Mapping):
        raise TypeError(f"a list is wanted, not a value of type {type(result).__name__}")
    items = [result] if hook in _SINGLE else list(islice(result, MOST + 1))
    if len(items) > MOST:
        raise ValueError(f"it returned more than {MOST} items")
    found: list[tuple[Any, Exception | None]] = []
    for item in items:
        try:
            found.append((read(item), None))
        except BaseException as error:  # noqa: BLE001 - a plugin's object may raise anything
            found.append((None, guard.as_error(error)))
    return found


def build_manager(*, tell: Callable[[str], None] = warn) -> Plugins:
    """A manager that knows the hooks and no plugin."""
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    return Plugins(manager=manager, trace=os.environ.get(TRACE) == "1", tell=tell)


def add_folders(
    plugins: Plugins, folder: Path, prefix: str, but: Collection[str] = (), *, shipped: bool = False
) -> None:
    """Loads each `<name>/agent.py` below `folder` by path, under a private module name, and registers it; `but` are
    names that are left out."""
    for file in sorted(folder.glob("*/agent.py")):
        name, module = f"{prefix}:{file.parent.name}", f"_navigator_{prefix}_{file.parent.name}"
        if name not in but:
            plugins.add(name, partial(_module, module, file), shipped=shipped)


def add_entry_points(plugins: Plugins, points: Sequence[Installed]) -> None:
    """Loads and registers plugins of installed packages, this one's own among them."""
    for point in points:
        plugins.packages[point.name] = point
        plugins.add(point.name, partial(_imported, point.value), shipped=point.package == OWN)


def _imported(value: str) -> object:
    module, _, attribute = value.partition(":")
    plugin = importlib.import_module(module)
    return getattr(plugin, attribute) if attribute else plugin


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

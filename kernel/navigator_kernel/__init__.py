"""Navigator Kernel: installs, chooses, runs and explains Agent Skills.

As a library: `from navigator_kernel import Kernel` (docs/guides/use-as-a-library.md). The names in `__all__` and the
modules `navigator_kernel.events` and `navigator_kernel.errors` are public; all else may change in any release.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False  # importing `typing` takes 4 ms, and a hook that imports this has 100 ms
if TYPE_CHECKING:
    from navigator_kernel.errors import KernelError
    from navigator_kernel.events import Event
    from navigator_kernel.library.kernel import Kernel
    from navigator_kernel.library.run import Run
    from navigator_kernel.library.values import Installed, Route, Skill
    from navigator_kernel.values.approval import Approval
    from navigator_kernel.values.packet import Report
    from navigator_kernel.values.reply import Reply

__all__ = [
    "Approval",
    "Event",
    "Installed",
    "Kernel",
    "KernelError",
    "Reply",
    "Report",
    "Route",
    "Run",
    "Skill",
    "__version__",
]

_PLACES = {
    "Approval": "values.approval",
    "Event": "events",
    "Installed": "library.values",
    "Kernel": "library.kernel",
    "KernelError": "errors",
    "Reply": "values.reply",
    "Report": "values.packet",
    "Route": "library.values",
    "Run": "library.run",
    "Skill": "library.values",
}

if not TYPE_CHECKING:  # otherwise a type checker would accept any name

    def __getattr__(name):
        """Imports a public name at its first use (PEP 562)."""
        from importlib import import_module

        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
        return value

    def __dir__():
        return sorted({*globals(), *__all__})

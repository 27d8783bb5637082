"""The project of the library's tests: skills that run, one for a model, and two that nobody accepted."""

from __future__ import annotations

from library.conftest import kernel, place, server, with_model

__all__ = ["kernel", "place", "server", "with_model"]

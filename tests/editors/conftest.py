"""The project of the tests of the library: skills that run, one for a model, and one that nobody accepted."""

from __future__ import annotations

from library.conftest import kernel, place, server, with_model

__all__ = ["kernel", "place", "server", "with_model"]

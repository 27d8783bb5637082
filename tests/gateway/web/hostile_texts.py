"""Texts that would take effect in a page that shows foreign text as HTML, or that deceive its reader."""

from __future__ import annotations

from tables import table

TEXTS = (*table(__file__, "TEXTS"), "a" * 200_000)

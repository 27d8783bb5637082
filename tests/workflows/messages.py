"""Messages of people, English and Chinese, for the evaluation of the sentence splitter.

The messages were written without looking at the splitter. ``MULTI`` holds messages that spell out several
steps, each with the steps it must split into: the text of a step exactly as written, without the
connective words or list markers and without the punctuation and spaces around them. Politeness at the
front stays part of the first step; an introduction to a numbered list is dropped. ``SINGLE`` holds
messages that are one step although they contain something that looks like a connective or a list marker;
they must never be split.
"""

from __future__ import annotations

from tables import table

MULTI: tuple[tuple[str, tuple[str, ...]], ...] = table(__file__, "MULTI")

SINGLE: tuple[str, ...] = table(__file__, "SINGLE")

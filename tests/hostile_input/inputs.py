"""Hostile messages, each with the exit code and the words that it must end with."""

from __future__ import annotations

from dataclasses import dataclass

from tables import table

ABSENT = "no file is called"
UNANSWERED = "no model is set up"
READY = "needs a model to carry it out"
ONE = "only one instruction per message"
REFUSED, MISSING, WAITS = 3, 4, 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`text` can name the folder outside as {outside}; `kept` is text that the prompt must contain verbatim."""

    name: str
    text: str
    code: int
    said: str
    kept: tuple[str, ...] = ()


def case(name: str, text: str, code: int, said: str, *kept: str) -> Case:
    return Case(name=name, text=text, code=code, said=said, kept=kept)


FILES = (
    *(case(*row) for row in table(__file__, "FILES")),
    case("half-a-character-in-a-path", "/mirror @a\udc80.txt", MISSING, ABSENT),
    case("long-path", f"@{'a/' * 3000}b.txt", MISSING, ABSENT),
    case("winding-path", f"/mirror @{'deep/../' * 10_000}notes.md", MISSING, ABSENT),
)

CALLS = (
    *(case(*row) for row in table(__file__, "CALLS")),
    case("flood-of-commands", "\n".join(["!`yes`"] * 1000), WAITS, ONE),
    case("flood-of-calls", "\n".join(["/mirror x"] * 1000), WAITS, ONE),
)

# Text that must arrive verbatim, once, and is not interpreted again
LITERALS = tuple(case(*row) for row in table(__file__, "LITERALS"))

CONTROLS = (
    *(case(*row) for row in table(__file__, "CONTROLS")),
    case("half-a-character", "\ud800 x", WAITS, UNANSWERED),
    case("half-a-character-as-an-argument", "/mirror \udcff", WAITS, READY),
)

SHAPES = (
    *(case(*row) for row in table(__file__, "SHAPES")),
    case("brackets", "[" * 50_000, WAITS, UNANSWERED),
    case("braces", "{" * 50_000 + "}" * 50_000, WAITS, UNANSWERED),
    case("backticks", "`" * 50_000, WAITS, UNANSWERED),
    case("lines", "\n".join(["hello"] * 10_000), WAITS, UNANSWERED),
    case("long-argument", f"/mirror {'a' * 20_000}", WAITS, READY),
    case("names", "@a " * 10_000, WAITS, UNANSWERED),
    case("files", " ".join(f"@a{n}.txt" for n in range(1_000)), REFUSED, "over 256 files"),
)

CASES = (*FILES, *CALLS, *LITERALS, *CONTROLS, *SHAPES)

"""What a terminal shows of a text: the reviewer sees this, but the shell reads the bytes."""

from __future__ import annotations

import re
from collections.abc import Callable

CONTROL = re.compile(
    r"\x1b\[(?P<args>[\d;?]*)(?P<kind>[A-Za-z])"
    r"|\x1b[\]P_^](?P<said>.*?)(?:\x07|\x1b\\)"
    r"|\x1b(?P<short>[78cM])"
    r"|(?P<mark>[\r\n\b])",
    re.DOTALL,
)
Cells = dict[tuple[int, int], str]


class Screen:
    """The parts of a terminal that can hide text: cursor, erasing, concealing, black on black."""

    def __init__(self) -> None:
        self.cells: Cells = {}
        self.row = self.column = 0
        self.unseen = False

    def put(self, text: str) -> None:
        for letter in text:
            self.cells[self.row, self.column] = " " if self.unseen else letter
            self.column += 1

    def text(self) -> str:
        rows: dict[int, dict[int, str]] = {}
        for (row, column), letter in self.cells.items():
            rows.setdefault(row, {})[column] = letter
        lines = (rows.get(row, {}) for row in range(max(rows, default=-1) + 1))
        return "\n".join("".join(line.get(at, " ") for at in range(max(line, default=-1) + 1)) for line in lines)

    def mark(self, letter: str) -> None:
        self.column = max(self.column - 1, 0) if letter == "\b" else 0
        self.row += letter == "\n"

    def control(self, kind: str, args: list[int]) -> None:
        first = args[0] if args else 0
        steps = {"A": (-1, 0), "B": (1, 0), "C": (0, 1), "D": (0, -1), "E": (1, 0), "F": (-1, 0)}
        if kind in steps:
            down, right = steps[kind]
            self.row = max(self.row + down * max(first, 1), 0)
            self.column = 0 if kind in "EF" else max(self.column + right * max(first, 1), 0)
        elif kind == "G":
            self.column = max(first - 1, 0)
        elif kind in "Hf":
            self.row, self.column = max(first - 1, 0), max(([*args, 1, 1])[1] - 1, 0)
        elif kind == "K":
            self._erase(lambda row, column: row == self.row and (first or column >= self.column))
        elif kind == "J":
            self._erase(lambda row, column: first >= 2 or (row, column) >= (self.row, self.column))
        elif kind == "m":
            self._colour(args or [0])

    def _erase(self, hit: Callable[[int, int], object]) -> None:
        self.cells = {place: letter for place, letter in self.cells.items() if not hit(*place)}

    def _colour(self, args: list[int]) -> None:
        if 8 in args or {30, 40} <= set(args) or {37, 47} <= set(args):
            self.unseen = True
        elif 0 in args or 28 in args:
            self.unseen = False


def shown(text: str) -> str:
    """The final text on the screen, without trailing blanks."""
    screen, at = Screen(), 0
    for hit in CONTROL.finditer(text):
        screen.put(text[at : hit.start()])
        at = hit.end()
        if hit["mark"]:
            screen.mark(hit["mark"])
        elif hit["kind"]:
            screen.control(hit["kind"], [int(word) for word in hit["args"].strip("?").split(";") if word.isdigit()])
    screen.put(text[at:])
    return tidy(screen.text())


def written(text: str) -> str:
    """The text as a program reads it: all of it, without the sequences that steer the terminal."""
    plain = CONTROL.sub(lambda hit: "\n" if hit["mark"] else "", text)
    return tidy(plain)


def tidy(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


def deceives(text: str) -> bool:
    """Whether the lines that a program reads differ from the screen, or a link leads elsewhere than it says."""
    return shown(text) != written(text.replace("\r\n", "\n")) or _leads_elsewhere(text)


def _leads_elsewhere(text: str) -> bool:
    """Whether a link's text is an address of another host, or a sequence sets the clipboard."""
    for target, label in re.findall(r"\x1b\]8;[^;]*;([^\x07\x1b]+)(?:\x07|\x1b\\)(.*?)\x1b\]8;;", text, re.DOTALL):
        host = re.search(r"//([\w.-]+)", label)
        if host and f"//{host[1]}" not in target:
            return True
    return bool(re.search(r"\x1b\]52;", text))

"""A list with lines to mark: typing filters, Space marks, Enter accepts, Esc cancels."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from msgspec import Struct, field
from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import BufferControl, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.output import Output
from prompt_toolkit.output.vt100 import Vt100_Output

from navigator_kernel.cli.output import cut, padded, width
from navigator_kernel.language.wording import say
from navigator_kernel.text import Language, clean

Choice = tuple[str, str]  # a name and its description
MOST = 15  # lines of the list
AROUND = 5  # lines of the terminal outside the list
ESCAPE = 0.1  # seconds after which Esc is not the beginning of another key
NAMES = 32  # maximum width of names, in columns


def pick(title: str, choices: Sequence[Choice], language: Language) -> list[str] | None:
    """Lets the person mark lines. Returns the marked names in the order of `choices`; None if the person cancels."""

    def terminal_size() -> Size:
        size = os.get_terminal_size(sys.stderr.fileno())
        return Size(rows=size.lines or 24, columns=size.columns or 80)

    terminal = os.environ.get("TERM")
    output = Vt100_Output(sys.stderr, terminal_size, terminal, enable_cpr=False)  # not every terminal answers
    try:
        state = Marked(choices, output, language)
        typed = Buffer(multiline=False, on_text_changed=lambda buffer: state.filter(buffer.text))
        parts = [
            Window(
                FormattedTextControl(lambda: cut(clean(title, lines=False), output.get_size().columns - 1)), height=1
            ),
            Window(BufferControl(typed, input_processors=[BeforeInput("/ ")]), height=1),
            Window(FormattedTextControl(state.lines), dont_extend_height=True),
            Window(FormattedTextControl(state.status), height=1),
        ]
        keys = KeyBindings()
        for key, by in (("up", -1), ("c-p", -1), ("down", 1), ("c-n", 1), ("pageup", -MOST), ("pagedown", MOST)):
            keys.add(key, eager=True)(lambda _event, by=by: state.move(by))
        keys.add(" ", eager=True)(lambda _event: state.toggle())

        @keys.add("enter", eager=True)
        def take(event: KeyPressEvent) -> None:
            state.hasty = not state.marked
            if state.marked:
                event.app.exit(result=state.marked)

        @keys.add("escape", eager=True)
        @keys.add("c-c", eager=True)
        @keys.add("c-d", eager=True)
        def leave(event: KeyPressEvent) -> None:
            event.app.exit(result=None)

        app: Application[set[str] | None] = Application(
            layout=Layout(HSplit(parts)),
            key_bindings=keys,
            input=create_input(sys.stdin),
            output=output,
            erase_when_done=True,
        )
        app.ttimeoutlen = ESCAPE
        marked = app.run()
    except (KeyboardInterrupt, EOFError):
        return None
    return None if marked is None else [name for name, _ in choices if name in marked]


class Marked(Struct):
    """The state of the list; `at` is the line under the cursor, `top` the first visible line. `hasty` is true if Enter
    was pressed before anything was marked."""

    choices: Sequence[Choice]
    output: Output
    language: Language = "en"
    typed: str = ""
    at: int = 0
    top: int = 0
    hasty: bool = False
    marked: set[str] = field(default_factory=set)

    def shown(self) -> list[Choice]:
        """The lines that contain the typed text, matches in names first."""
        typed = self.typed.casefold()
        named = [one for one in self.choices if typed in one[0].casefold()]
        return named + [one for one in self.choices if typed not in one[0].casefold() and typed in one[1].casefold()]

    def filter(self, typed: str) -> None:
        self.typed, self.at, self.top = typed, 0, 0

    def move(self, by: int) -> None:
        self.at = max(0, min(self.at + by, len(self.shown()) - 1))

    def toggle(self) -> None:
        if shown := self.shown():
            self.marked ^= {shown[self.at][0]}
            self.hasty = False

    def lines(self) -> StyleAndTextTuples:
        """The style and the text of each visible line."""
        size, shown = self.output.get_size(), self.shown()
        rows = max(1, min(MOST, size.rows - AROUND))
        self.top = max(min(self.top, self.at), self.at - rows + 1)
        names = min(NAMES, max(width(clean(name, lines=False)) for name, _ in self.choices))
        found: StyleAndTextTuples = []
        for at, (name, text) in list(enumerate(shown))[self.top : self.top + rows]:
            row = f"{'>' if at == self.at else ' '} [{'x' if name in self.marked else ' '}] "
            row += f"{padded(clean(name, lines=False), names)}  {clean(text, lines=False)}"
            end = "\n" if at + 1 < min(len(shown), self.top + rows) else ""
            found.append(("reverse" if at == self.at else "", cut(row, size.columns - 1) + end))
        return found or [("", f"  {say('pick.none', self.language)}")]

    def status(self) -> str:
        hint = say("pick.hasty" if self.hasty else "pick.help", self.language)
        line = say("pick.status", self.language, shown=len(self.shown()), marked=len(self.marked), hint=hint)
        return cut(line, self.output.get_size().columns - 1)

"""Lays out `--help` in Chinese: click's own layout with translated texts, which are wrapped by their columns."""

from __future__ import annotations

from collections.abc import Iterable

import click

from navigator_kernel.cli.output import width
from navigator_kernel.language.chinese import in_language, which_begins

_NOT_FIRST = "，。；：！？、）”》…,.;:!?)"  # marks that no line begins with


class ChineseHelp(click.HelpFormatter):
    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        super().write_usage(prog, args, prefix or "用法：")

    def write_heading(self, heading: str) -> None:
        self.write(f"{'':>{self.current_indent}}{in_language(heading, 'zh')}：\n")

    def write_text(self, text: str) -> None:
        lines = _lines(in_language(text, "zh"), self.width - self.current_indent)
        self.write("".join(f"{'':>{self.current_indent if line else 0}}{line}\n" for line in lines))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        rows, chinese_rows = list(rows), []
        room = max(self.width - min(max(width(first) for first, _ in rows), col_max) - col_spacing - 2, 20)
        for first, second in rows:  # the help of an option may end with `[default: 5]`, that of a command be cut short
            sentence, gap, facts = second.partition("  [")
            chinese = in_language(sentence, "zh")
            if chinese == sentence:
                whole = which_begins(sentence.removesuffix("...").rstrip())
                chinese = whole.partition("\n")[0].partition("。")[0] or sentence
            chinese += gap + facts.replace("default: ", "默认：").replace("required", "必填")
            chinese_rows.append((first, "\n".join(("\b", *_lines(chinese, room)))))  # \b: as it is
        super().write_dl(chinese_rows, col_max, col_spacing)


def _lines(text: str, columns: int) -> list[str]:
    """The text in lines of at most this many columns; its paragraphs stay apart."""
    lines: list[str] = []
    for paragraph in text.split("\n\n"):
        lines, line = [*lines, ""] if lines else [], ""
        for word in _pieces(" ".join(paragraph.split("\n"))):
            if width(line + word.rstrip()) > columns and word not in _NOT_FIRST:
                lines, line = [*lines, line.rstrip()], ""
            line += word if line else word.lstrip()
        lines.append(line)
    return lines


def _pieces(text: str) -> Iterable[str]:
    """The parts between which a line may end: words with the blank after them, and Chinese characters."""
    word = ""
    for char in text:
        if char.isascii():
            word += char
            if char != " ":
                continue
        if word:
            yield word
        word = ""
        if not char.isascii():
            yield char
    if word:
        yield word

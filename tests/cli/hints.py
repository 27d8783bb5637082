"""Collects what the program's own sentences tell a person to run: the `navigator …` commands in its source and wording."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from cli.support import SOURCE
from navigator_kernel.cli.registry import navigator
from navigator_kernel.language.wording import sentences

VALUE = "NAME"  # stands for a value that is filled in
COMMAND = re.compile(r"(?<![\w/.-])navigator (?!(?:and|did)\b)(?=[a-z-])")  # prose: navigator did
# A hint's command ends at the end of its clause, or at words that go on with the sentence
END = re.compile(r"[;`()\n；：，。（）、]|[,.:](?=\s|$)|$")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*(?![\w=-])")  # --hash=… is pip's
ANSWERS = {"yes", "no"}


@dataclass(frozen=True, slots=True)
class Hint:
    """`text` begins after the word navigator and ends with its clause; `place` says where it is written."""

    place: str
    text: str


def hints() -> list[Hint]:
    """All hints of the kernel, its page and agents, in both languages."""
    found = [Hint(key, text) for key, both in sentences().items() for one in both for text in commands_in(_filled(one))]
    for folder in ("kernel", "agents"):
        for path in sorted((SOURCE / folder).rglob("*.py")):
            place = path.relative_to(SOURCE).as_posix()
            found += [Hint(place, text) for one in texts_of(path) for text in commands_in(one)]
    page = SOURCE / "kernel/navigator_kernel/gateway/web/src"
    for path in sorted((*page.rglob("*.ts"), *page.rglob("*.vue"))):
        text = path.read_text("utf-8") if ".test." not in path.name else ""
        parts = re.split(r"“[^”]*”|[\"'<>]", text)  # what is in “” is named, not offered
        found += [Hint(path.name, one) for part in parts for one in commands_in(part)]
    return sorted(set(found), key=lambda one: (one.place, one.text))


def texts_of(path: Path) -> Iterator[str]:
    """The string constants of a module with its values filled in; not its docstrings and comments."""
    tree = ast.parse(path.read_text("utf-8"))
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            inner.add(id(node.value))
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else VALUE for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield _filled(node.value)


@dataclass(frozen=True, slots=True)
class BareOption:
    """An option that a hint names without its command; `takers` are the commands of its place that have it."""

    place: str
    text: str
    takers: tuple[str, ...]


def bare_options() -> list[BareOption]:
    """The options that hints name outside a whole command. One of a module of commands must be an option of one of
    these, one of the code below `skills/` of a command for skills, and any other of some command."""
    known = [*_leaves(navigator, ())]
    named = [(key, "; ".join(both), known) for key, both in sentences().items()]
    for path in sorted((SOURCE / "kernel").rglob("*.py")):
        place = path.relative_to(SOURCE).as_posix()
        module = place.removeprefix("kernel/").removesuffix(".py").replace("/", ".")
        own = [(words, one) for words, one in known if getattr(one.callback, "__module__", "") == module]
        of_skills = [(words, one) for words, one in known if words[0] == "skill"] if "/skills/" in place else []
        named += [(place, text, own or of_skills or known) for text in _hint_texts(path)]
    return [
        BareOption(place, option, tuple(" ".join(words) for words, one in commands if _takes(one, option)))
        for place, text, commands in named
        for option in OPTION.findall(_without_commands(text))
    ]


def _without_commands(text: str) -> str:
    for hit in reversed([*COMMAND.finditer(text)]):
        end = hit.end() + len(END.split(text[hit.end() :], maxsplit=1)[0])
        text = text[: hit.start()] + text[end:]
    return text


def _hint_texts(path: Path) -> Iterator[str]:
    """The texts of the keyword `hint` and of the variable of that name; f-strings with their values filled in."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        is_hint = isinstance(node, ast.keyword) and node.arg == "hint"
        is_set = isinstance(node, ast.Assign) and any(
            isinstance(to, ast.Name) and to.id == "hint" for to in node.targets
        )
        if is_hint or is_set:
            inner: set[int] = set()
            for part in ast.walk(node):  # an f-string comes before its parts
                if isinstance(part, ast.JoinedStr):
                    inner |= {id(one) for one in ast.walk(part)}
                    yield "".join(str(one.value) if isinstance(one, ast.Constant) else VALUE for one in part.values)
                elif isinstance(part, ast.Constant) and isinstance(part.value, str) and id(part) not in inner:
                    yield part.value


def _leaves(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that is not a group, with the words that call it."""
    if not isinstance(command, click.Group):
        yield words, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        if inner is not None:
            yield from _leaves(inner, (*words, name))


def _takes(command: click.Command, option: str) -> bool:
    every = (*command.params, *navigator.params)
    return any(option in param.opts for param in every if isinstance(param, click.Option))


def commands_in(text: str) -> Iterator[str]:
    for hit in COMMAND.finditer(text):
        yield END.split(text[hit.end() :], maxsplit=1)[0].strip()


def _filled(text: str) -> str:
    return re.sub(r"\{\w*\}", VALUE, text)


def problem(hint: Hint) -> str:
    """Why the command cannot be run as it is written; empty if it can. Words of the sentence may follow it."""
    words = _words(hint.text)
    problems = [wrong(words[:count]) for count in range(len(words), 0, -1) if _is_prose(words[count:])]
    return "" if "" in problems else problems[0]


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _is_prose(words: list[str]) -> bool:
    """Whether these words can follow a command in its sentence: no option and no value is among them."""
    return all(re.fullmatch(r"[a-z']+|Navigator|[\u4e00-\u9fff].*", word) is not None for word in words)


def wrong(words: list[str]) -> str:
    """What the parser of the command line says against the command; empty if it accepts it."""
    context = click.Context(navigator, info_name="navigator")
    command: click.Command = navigator
    rest = list(words)
    try:
        while isinstance(command, click.Group):
            if command is navigator and rest[:1] == ["--root"]:
                rest = rest[2:]
            if not rest:
                return f"{context.command_path} needs a command"
            inner = command.get_command(context, rest[0])
            if inner is None:
                return f"{context.command_path} has no command {rest[0]!r}"
            context = click.Context(inner, info_name=rest.pop(0), parent=context)
            command = inner
        given, left, _ = command.make_parser(context).parse_args(rest)
        if left:
            return f"{context.command_path} takes no {left}"
    except click.ClickException as error:
        return error.format_message()
    for param in command.params:
        value = given.get(param.name or "")
        typed = [one for one in (value if isinstance(value, tuple) else [value]) if isinstance(one, str)]
        if isinstance(param, click.Argument) and (param.required and not typed):
            return f"{context.command_path} needs {param.human_readable_name}"
        if isinstance(param, click.Argument) and any(
            one.isalpha() and one.islower() and one not in ANSWERS for one in typed
        ):
            return f"{context.command_path} is followed by words of the sentence: {typed}"
    return ""

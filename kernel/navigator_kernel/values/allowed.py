"""What a skill's `allowed-tools` allow: built-in tools, by the names of any coding agent, and commands in a line."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from msgspec import Struct

from navigator_kernel.text import lazy_compile

READ, LIST, GLOB, GREP, WRITE, EDIT, RUN = "read", "list", "glob", "grep", "write", "edit", "run"
FETCH, DELIVER = "fetch", "deliver"
EVERY = (READ, LIST, GLOB, GREP, WRITE, EDIT, DELIVER, RUN, FETCH)
LOOKING = frozenset({READ, LIST, GLOB, GREP})

# Their names in Claude Code, Codex, Gemini CLI, Cursor and others, in lower case without separators
_NAMES: Mapping[str, tuple[str, ...]] = {
    READ: (
        "read", "readfile", "readtextfile", "readmanyfiles", "fileread", "view", "viewfile", "viewimage", "openfile",
        "cat", "notebookread",
    ),
    LIST: ("ls", "list", "listdir", "listdirectory", "listfiles", "directorytree"),
    GLOB: ("glob", "findfiles", "filesearch", "globfilesearch"),
    GREP: ("grep", "search", "searchfiles", "searchfilecontent", "grepsearch", "codebasesearch", "ripgrep"),
    WRITE: ("write", "writefile", "createfile", "create", "createnewfile", "writetofile", "filewrite", "savefile"),
    EDIT: (
        "edit", "multiedit", "editfile", "strreplace", "strreplaceeditor", "strreplacebasededittool", "applypatch",
        "replace", "searchreplace", "replaceinfile", "notebookedit",
    ),
    RUN: (
        "run", "bash", "shell", "exec", "execute", "execcommand", "localshell", "runshellcommand", "runterminalcmd",
        "runterminalcommand", "runinterminal", "executecommand", "terminal", "runcommand", "runbash", "executebash",
        "bashcommand", "runshell", "shellcommand", "python", "codeinterpreter", "executepython", "runpython",
    ),
    DELIVER: ("deliver", "deliverfile", "deliverfiles", "presentfile", "presentfiles", "exportfile", "copytoproject"),
    FETCH: ("fetch", "webfetch", "fetchurl", "readurl", "fetchwebpage", "urlfetch"),
}  # fmt: skip
_BY_NAME = {name: tool for tool, names in _NAMES.items() for name in names}
_WORD = lazy_compile(r"(?P<name>[^()]+)(?:\((?P<what>.*)\))?")
_ROOT = lazy_compile(r"\$\{?(?:SKILL_ROOT|SKILL_DIR|CLAUDE_SKILL_DIR|CLAUDE_PLUGIN_ROOT)\}?/")
_SYSTEM = ("/usr/bin/", "/bin/", "/usr/local/bin/")
_VERSION = lazy_compile(r"(.*[A-Za-z+_])-?([0-9]+(?:\.[0-9]+)*)")


def also_denied(tool: str) -> tuple[str, ...]:
    """The words whose denial denies a tool too, besides its own: fetching is network, and delivering is writing."""
    return {FETCH: ("network",), DELIVER: (f"tool:{WRITE}",)}.get(tool, ())


class Allowed(Struct, frozen=True):
    """The `tools` that a skill may use, the `commands` that its `run` is limited to (empty for no limit), and the words
    that mean no built-in tool (`other`)."""

    tools: tuple[str, ...]
    commands: tuple[str, ...] = ()
    other: tuple[str, ...] = ()

    def refused(self, line: str) -> str:
        """Why `run` may not run the bash line; empty if it may: then each command in it is allowed. `git:*` is every
        command that begins with the word `git`; `python:*` is also `python3.11`. `xargs git …` counts as `git …`."""
        if not self.commands:
            return ""
        try:
            others = [one for one in commands_in(_ROOT.sub("./", line)) if not self._allows(one)]
        except Unclear as error:
            return f"the line is not certain to keep to it because of {error}: write plain commands, joined by && or |"
        return f"not {' '.join(others[0].texts)!r}" if others else ""

    def _allows(self, command: Simple) -> bool:
        if any(_fits(command, rule) for rule in self.commands):
            return True
        if command.words[0].text == "cd" and len(command.words) == 2:  # to a folder of the workspace or of the skill
            text = f"{command.words[1].text}/"
            path = _ROOT.sub("./", text)
            is_plain = command.words[1].is_plain or path != text
            return is_plain and "$" not in path and path[0] not in "-~/" and ".." not in path.split("/")
        inner = list(wrapped(command))
        return bool(inner) and all(map(self._allows, inner))


def allowed_tools(words: Iterable[str]) -> Allowed:
    """The tools that the words of `allowed-tools` allow; all if there are none. Reading is always allowed, because
    skills refer to files that are read when needed (Agent Skills specification, progressive disclosure)."""
    found: dict[str, None] = {}
    commands: list[str] = []
    other: list[str] = []
    free = False
    for word in words:
        hit = _WORD.fullmatch(word.strip())
        if word.strip() == "*":
            found |= dict.fromkeys(EVERY)
        elif not (tool := built_in(hit["name"] if hit else word)):
            other.append(word)
        else:
            found[tool] = None
            what = (hit["what"] or "").strip() if hit else ""
            if tool == RUN and what not in {"", "*", "*:*"}:
                commands.append(what)
            free |= tool == RUN and what in {"", "*", "*:*"}
    if not found and not other:
        return Allowed(EVERY)
    if WRITE in found:  # delivering is writing, from a file
        found[DELIVER] = None
    tools = tuple(tool for tool in EVERY if tool in found or tool in LOOKING)
    return Allowed(tools, () if free else tuple(commands), tuple(other))


def left_out(words: Iterable[str], offered: Collection[str]) -> tuple[str, ...]:
    """The names in the words of `allowed-tools` that mean none of the `offered` tools, in order."""
    named = ((_WORD.fullmatch(word.strip()), word.strip()) for word in words)
    names = dict.fromkeys(hit["name"].strip() if hit else word for hit, word in named)
    return tuple(name for name in names if name != "*" and not {name, built_in(name)} & set(offered))


def built_in(name: str) -> str:
    """The built-in tool for a coding agent's tool name; empty if there is none."""
    return _BY_NAME.get(plain_name(name), "")


def plain_name(name: str) -> str:
    """A name in lower case without separators: `read_file` and `ReadFile` are the same."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _fits(command: Simple, rule: str) -> bool:
    rule = _ROOT.sub("./", rule)
    wanted = rule.removesuffix(":*").removesuffix(" *").split()
    is_start = rule.endswith((":*", " *")) or (len(wanted) == 1 and rule.endswith("*"))
    program, *words = command.words
    if not wanted or not _is_same(program.text, wanted[0]):
        return False
    if not is_start:
        written = " ".join(word.text for word in words)
        return all(word.is_plain for word in words) and fnmatchcase(written, " ".join(wanted[1:]))
    pairs = list(zip(words, wanted[1:], strict=False))
    return len(words) >= len(wanted) - 1 and all(
        word.is_plain and fnmatchcase(_short(word.text), _short(form)) for word, form in pairs
    )


def _is_same(program: str, wanted: str) -> bool:
    """Whether two names are of one program; another version of it is the same program."""
    folder = next((folder for folder in _SYSTEM if program.startswith(folder)), "")
    program = program.removeprefix(folder)
    if fnmatchcase(_short(program), _short(wanted)):
        return "/" not in program or ("/" in wanted and ".." not in program.split("/"))
    (name, version), (other, asked) = _versioned(program), _versioned(wanted)
    return name == other and (not version or not asked or f"{version}.".startswith(f"{asked}."))


def _versioned(program: str) -> tuple[str, str]:
    hit = _VERSION.fullmatch(program)
    return (hit[1], hit[2]) if hit else (program, "")


def _short(word: str) -> str:
    """The word without a `./` before a path; `./python` is another program than `python`."""
    return word[2:] if word.startswith("./") and "/" in word[2:] else word


# `commands_in` finds every command in a bash line, or says that this is not certain. It reads the part of bash's
# grammar that models use in one line, and raises `Unclear` for the rest: loops, functions, arithmetic, variables that
# are set. What it returns is never less than what bash would start: commands in pipes, lists, subshells, `$(…)`,
# backquotes and `<(…)` are in it.

DEEPEST = 8  # levels of commands within commands
_BLANK, _END = " \t", "\n;&|)"
_RESERVED = frozenset(
    "if then else elif fi for while until do done case esac select function coproc { } [[ ]] in eval source . "
    "trap alias let declare typeset local export readonly set enable builtin read mapfile readarray unset shopt hash "
    "bind".split()
)
# Variables that may be set for one command: they give it no other program, but for PYTHONPATH, set for Python only
_HARMLESS = frozenset(
    "PYTHONPATH PYTHONUNBUFFERED PYTHONIOENCODING PYTHONUTF8 PYTHONDONTWRITEBYTECODE PYTHONHASHSEED LANG LC_ALL TZ "
    "NODE_ENV NO_COLOR FORCE_COLOR".split()
)
_EXPANDING = frozenset(("test", "[", "printf", "wait"))  # they evaluate an index that stands in a word
_ASSIGNED = lazy_compile(r"[A-Za-z_]\w*(?:\[[^\]\n]*\])?\+?=")
_REDIRECTION = lazy_compile(r"[0-9]*(?:<<<|<<-?|<>|<&|>&|>>|>\||<|>)|&>>?")
_HERE = lazy_compile(r"[ \t]*(?:'(\w+)'|\"(\w+)\"|(\w+))(?=[\s;&|<>)]|$)")
_VARIABLE = lazy_compile(r"\$(?:[A-Za-z_]\w*|[0-9@*#?$!-]|\{[A-Za-z_]\w*\})")


class Unclear(ValueError):
    """What makes it uncertain which commands a line starts."""


class Word(NamedTuple):
    """A word without its quotes; `is_plain` if bash takes it as it is, `start` its place in the line."""

    text: str
    is_plain: bool
    start: int


class Simple(NamedTuple):
    """One command: its words. `is_bare` if it has no redirection and is not within another command."""

    words: tuple[Word, ...]
    is_bare: bool

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(word.text for word in self.words)


def commands_in(line: str, depth: int = 0) -> tuple[Simple, ...]:
    """Every command that the line starts, those within others first. `Unclear` if that is not certain."""
    reader = _Reader(line, depth)
    reader.read_list("")
    return tuple(reader.found)


class _Reader:
    def __init__(self, text: str, depth: int) -> None:
        self.text, self.at, self.depth = text, 0, depth
        self.found: list[Simple] = []
        self.here: list[tuple[str, bool, bool]] = []  # the end of each here-document; whether quoted, and with `<<-`
        if depth > DEEPEST:
            raise Unclear("commands within commands")

    def read_list(self, end: str) -> None:
        """Reads commands up to `end`, and steps over it."""
        while True:
            self._skip_blanks()
            if self.at >= len(self.text):
                if end or self.here:
                    raise Unclear("the line is not complete")
                return
            char = self.text[self.at]
            if char == end:
                self.at += 1
                return
            if char == "\n":
                self.at += 1
                self._skip_documents()
            elif char in ";&|" and not _REDIRECTION.match(self.text, self.at):
                if self.text.startswith(";;", self.at):
                    raise Unclear("';;'")
                self.at += 1
            elif char == "(":
                self._enter("(")
            elif char == ")":
                raise Unclear("')'")
            else:
                words: list[Word] = []
                is_bare, paths = self.depth == 0, False
                while True:
                    self._skip_blanks()
                    rest = self.text[self.at : self.at + 2]
                    redirection = _REDIRECTION.match(self.text, self.at)
                    if redirection and rest not in {"<(", ">("}:
                        is_bare = False
                        self._read_redirection(redirection.group())
                    elif not rest or rest[0] in _END:
                        break
                    elif not words and _ASSIGNED.match(self.text, self.at):
                        is_bare, assigned = False, self._read_word()
                        name = assigned.text.partition("=")[0]
                        if name not in _HARMLESS or not assigned.is_plain:
                            raise Unclear("a variable that is set in the line")
                        paths = paths or name == "PYTHONPATH"
                    elif rest[0] == "(":
                        raise Unclear("'('")
                    else:
                        word = self._read_word()
                        if words or word.text not in {"!", "time"}:
                            words.append(word)
                if paths and not (words and _is_same(words[0].text, "python")):
                    raise Unclear("a variable that is set in the line")
                if words:
                    self._add(Simple(tuple(words), is_bare))

    def _add(self, command: Simple) -> None:
        program = command.words[0]
        if not program.is_plain or not program.text:
            raise Unclear("the name of the program is not written out")
        if program.text in _RESERVED:
            raise Unclear(repr(program.text))
        unclear = (not word.is_plain or {*"`[$"} & {*word.text} for word in command.words[1:])
        if program.text in _EXPANDING and any(unclear):
            raise Unclear(f"what {program.text!r} evaluates")
        self.found.append(command)

    def _read_redirection(self, sign: str) -> None:
        self.at += len(sign)
        kind = sign.lstrip("0123456789")
        if kind not in {"<<", "<<-"}:
            self._skip_blanks()
            self._read_word()
            return
        name = _HERE.match(self.text, self.at)
        if name is None or self.depth:
            raise Unclear("a here-document")
        self.here.append((name[1] or name[2] or name[3], name[3] is None, kind == "<<-"))
        self.at = name.end()

    def _skip_documents(self) -> None:
        for end, is_quoted, is_indented in self.here:
            while True:
                line, _, _ = self.text[self.at :].partition("\n")
                if self.at >= len(self.text):
                    raise Unclear("a here-document without its end")
                self.at = min(self.at + len(line) + 1, len(self.text))
                if (line.lstrip("\t") if is_indented else line) == end:
                    break
                if not is_quoted and set(line) & set("$`\\"):
                    raise Unclear("a here-document that is not quoted (write <<'EOF')")
        self.here = []

    def _read_word(self) -> Word:
        start, parts, is_plain = self.at, list[str](), True
        while self.at < len(self.text):
            char, rest = self.text[self.at], self.text[self.at : self.at + 2]
            if rest in {"<(", ">("}:
                self._enter(rest)
                parts.append(rest)
                is_plain = False
            elif char in _BLANK or char in _END or char in "<>":
                break
            elif char == "'":
                end = self.text.find("'", self.at + 1)
                if end < 0:
                    raise Unclear("a quote without its end")
                parts.append(self.text[self.at + 1 : end])
                self.at = end + 1
            elif char == '"':
                text, plain = self._read_quoted()
                parts.append(text)
                is_plain = is_plain and plain
            elif char == "\\":
                if rest != "\\\n":
                    parts.append(rest[1:])
                self.at += 2
            elif char in "$`":
                parts.append(self._read_expansion())
                is_plain = False
            elif char == "(" or (char.isspace() and char not in " \t\n"):
                raise Unclear(repr(char))
            else:
                is_plain = is_plain and char not in "*?[{" and not (char == "~" and self.at == start)
                parts.append(char)
                self.at += 1
        if self.at == start:
            raise Unclear("a word is missing")
        if self.here and "\n" in self.text[start : self.at]:
            raise Unclear("a here-document")
        return Word("".join(parts), is_plain, start if self.depth == 0 else -1)

    def _read_quoted(self) -> tuple[str, bool]:
        self.at += 1
        parts, is_plain = list[str](), True
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == '"':
                self.at += 1
                return "".join(parts), is_plain
            if char == "\\" and self.text[self.at + 1 : self.at + 2] in set('$`"\\\n'):
                parts.append(self.text[self.at + 1].strip("\n"))
                self.at += 2
            elif char == "`" or (char == "$" and self.text[self.at + 1 : self.at + 2] not in set(" \"'/.,:;%)]|")):
                parts.append(self._read_expansion())
                is_plain = False
            else:
                parts.append(char)
                self.at += 1
        raise Unclear("a quote without its end")

    def _read_expansion(self) -> str:
        """Steps over `$NAME`, `$(…)` or backquotes; returns it as it is written."""
        start = self.at
        if self.text[start] == "`":
            end = self.text.find("`", start + 1)
            inner = self.text[start + 1 : end]
            if end < 0 or "\\" in inner:
                raise Unclear("backquotes")
            self.found += [one._replace(is_bare=False) for one in commands_in(inner, self.depth + 1)]
            self.at = end + 1
        elif variable := _VARIABLE.match(self.text, start):
            self.at = variable.end()
        elif self.text.startswith("$(", start) and not self.text.startswith("$((", start):
            self._enter("$(")
        else:
            raise Unclear(f"'{self.text[start : start + 2]}'")
        return self.text[start : self.at]

    def _enter(self, sign: str) -> None:
        """Reads the commands between parentheses."""
        if self.here or self.text.startswith("((", self.at + len(sign) - 1):
            raise Unclear("'(('")
        self.at += len(sign)
        self.depth += 1
        if self.depth > DEEPEST:
            raise Unclear("commands within commands")
        self.read_list(")")
        self.depth -= 1

    def _skip_blanks(self) -> None:
        while self.at < len(self.text):
            if self.text[self.at] in _BLANK:
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                self.at += 2
            elif self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return


# Programs that start the command that follows their options: the options that take a word, and other words before it
_WRAPPERS: dict[str, tuple[frozenset[str], int]] = {
    "env": (frozenset(), 0),
    "nohup": (frozenset(), 0),
    "command": (frozenset(), 0),
    "nice": (frozenset(("-n",)), 0),
    "timeout": (frozenset(("-k", "-s")), 1),
    "stdbuf": (frozenset(("-i", "-o", "-e")), 0),
    "xargs": (frozenset(("-I", "-n", "-P", "-d", "-L", "-s", "-a", "-E")), 0),
}
_FLAGS = lazy_compile(r"-(?:[0-9]+|[0rtxip]|[nPLskIoied][^\s=]+|-preserve-status|-foreground|-null|-no-run-if-empty)")


def wrapped(command: Simple) -> Iterator[Simple]:
    """The commands that a program such as `xargs` or `bash -c` starts in its place; none if it is no such program, or
    if that is not certain."""
    program, words = command.words[0].text, command.words
    if program in {"bash", "sh"} and len(words) >= 3 and words[1].text == "-c" and words[2].is_plain:
        yield from commands_in(words[2].text, DEEPEST - 2)
    if program not in _WRAPPERS:
        return
    (takes, count), at = _WRAPPERS[program], 1
    while at < len(words) and words[at].is_plain and words[at].text.startswith("-"):
        if words[at].text not in takes and not _FLAGS.fullmatch(words[at].text):
            return
        at += 2 if words[at].text in takes else 1
    inner = words[at + count :]
    if inner and inner[0].is_plain and "=" not in inner[0].text and all(word.is_plain for word in words[1:at]):
        yield Simple(inner, is_bare=False)

"""Maps the names that coding agents give to tools, as in a skill's `allowed-tools`, to the built-in tools."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase

from msgspec import Struct

from navigator_kernel.text import lazy_compile

READ, LIST, GLOB, GREP, WRITE, EDIT, RUN = "read", "list", "glob", "grep", "write", "edit", "run"
FETCH, DELIVER = "fetch", "deliver"
EVERY = (READ, LIST, GLOB, GREP, WRITE, EDIT, DELIVER, RUN, FETCH)
LOOKING = frozenset({READ, LIST, GLOB, GREP})

# Their names in Claude Code, Codex, Gemini CLI, Cursor and others, in lower case without separators
_NAMES: Mapping[str, tuple[str, ...]] = {
    READ: ("read", "readfile", "readmanyfiles", "view", "viewfile", "viewimage", "openfile", "cat", "notebookread"),
    LIST: ("ls", "list", "listdir", "listdirectory", "listfiles"),
    GLOB: ("glob", "findfiles", "filesearch", "globfilesearch"),
    GREP: ("grep", "search", "searchfiles", "searchfilecontent", "grepsearch", "codebasesearch", "ripgrep"),
    WRITE: ("write", "writefile", "createfile", "create", "writetofile"),
    EDIT: (
        "edit", "multiedit", "editfile", "strreplace", "strreplaceeditor", "strreplacebasededittool", "applypatch",
        "replace", "searchreplace", "replaceinfile", "notebookedit",
    ),
    RUN: (
        "run", "bash", "shell", "exec", "execute", "execcommand", "localshell", "runshellcommand", "runterminalcmd",
        "runterminalcommand", "runinterminal", "executecommand", "terminal", "python", "codeinterpreter",
    ),
    DELIVER: ("deliver", "deliverfile", "deliverfiles", "presentfile", "presentfiles", "exportfile", "copytoproject"),
    FETCH: ("fetch", "webfetch", "fetchurl", "readurl", "fetchwebpage", "urlfetch"),
}  # fmt: skip
_BY_NAME = {name: tool for tool, names in _NAMES.items() for name in names}
_WORD = lazy_compile(r"(?P<name>[^()]+)(?:\((?P<what>.*)\))?")


def also_denied(tool: str) -> tuple[str, ...]:
    """The words whose denial denies a tool too, besides its own: fetching is network, and delivering is writing."""
    return {FETCH: ("network",), DELIVER: (f"tool:{WRITE}",)}.get(tool, ())


class Allowed(Struct, frozen=True):
    """The `tools` that a skill may use, the `commands` that its `run` is limited to (empty for no limit), and the words
    that mean no built-in tool (`other`)."""

    tools: tuple[str, ...]
    commands: tuple[str, ...] = ()
    other: tuple[str, ...] = ()

    def fits(self, command: str) -> bool:
        """Whether `run` may run `command`: `git:*` is every command that begins with the word `git`."""
        return not self.commands or any(_fits(command.strip(), one) for one in self.commands)


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


def _fits(command: str, rule: str) -> bool:
    if rule.endswith(":*"):
        start = rule.removesuffix(":*").strip()
        return command == start or command.startswith(f"{start} ")
    return fnmatchcase(command, rule)

"""Maps the names that coding agents give to tools, as in a skill's `allowed-tools`, to the built-in tools."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase

from msgspec import Struct

from navigator_kernel.text import lazy_compile
from navigator_kernel.values.command_line import Simple, Unclear, commands_in, wrapped

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
_ROOT = lazy_compile(r"\$\{?(?:SKILL_ROOT|CLAUDE_SKILL_DIR|CLAUDE_PLUGIN_ROOT)\}?/")
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

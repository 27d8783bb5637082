"""The router: tier 1 by names and verbs, read literally, tier 2 by words and meaning (X-1, X-28, COV-1..7).

In tier 1, the first of these decides: a skill's exact name as the object, `mcp run`, the name of a script, a lifecycle
verb with a repository, source or skill as its object, in both languages (SEN-3..6, LIF-7). A bare verb never routes,
and verbs inside other words do not count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from string import whitespace
from typing import TYPE_CHECKING, Any, Literal
from weakref import finalize

from msgspec import Struct

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.errors import KernelError
from navigator_kernel.language.parameters import is_file, is_there
from navigator_kernel.language.signs import named_files
from navigator_kernel.language.words import split_words
from navigator_kernel.routing.entries import with_words_of_paths
from navigator_kernel.routing.index import RoutingIndex
from navigator_kernel.routing.meaning import SemanticRanker
from navigator_kernel.text import clean, fold, lazy_compile, warn
from navigator_kernel.values.owner import looked_up
from navigator_kernel.values.route import Action, Direct, Lifecycle, Mcp, Operation, Retrieval, Script, Skills

if TYPE_CHECKING:
    from navigator_kernel.ports import Catalogue, KnownSkills
    from navigator_kernel.values.resource import SkillDef

_RUN = r"(?:执行|运行|使用|调用|启动|用|\b(?:run|use|execute|call|invoke|start|worker|apply)\b)"
_NAME = r"[\w][\w.-]{0,79}"
_LATIN = lazy_compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?=[^\x00-\x7f])")
LONGEST = len("thank you")
HITS = 8  # places in a message to search for a name
_POLITE = lazy_compile(
    r"^(?:(?:please|can you|could you|kindly|now|then)\b[,\s]*|(?:请|麻烦|帮我|请帮我|现在|给我)[,，\s]*)+",
    re.IGNORECASE,
)
_POLITELY = ("please", "can you", "could you", "kindly", "now", "then", "请", "麻烦", "帮我", "现在", "给我")
_TAIL = lazy_compile(r"(?:\b(?:please|pls|thanks|thank you|now)\b|吧|好吗|谢谢|一下)\Z", re.IGNORECASE)
_SKILL_WORD = r"(?:(?<!\s)\s*+(?:的\s*+)?(?:技能|\bskills?\b))"
_BLANKS = lazy_compile(r"\s{2,}")
_ENDS_SKILL = lazy_compile(_SKILL_WORD + r"\s*$", re.IGNORECASE)
_SAYS_SKILL = lazy_compile(_SKILL_WORD, re.IGNORECASE)
_MARKED = lazy_compile(r"[-_\d]")
_BEGINS_MCP = lazy_compile(r"mcp(?:\s|运行|执行|列出|读取|工具|调用|提示|$)", re.IGNORECASE)
_FIRST_HAN = "\u3400"  # the first Chinese character
_URI = lazy_compile(r"\b[\w+.-]+://\S*")
_PROGRAM = lazy_compile(rf"(?:{_RUN}|python|bin/)", re.IGNORECASE)
_WHOLE_NAME = lazy_compile(_NAME)
_CLOSES_SKILL = lazy_compile(rf"{_SKILL_WORD}[\s。.!]*$", re.IGNORECASE)
_SCRIPT_BORDER = lazy_compile(r"(?<=[\w.-])(?=[的从中里技仓])|(?<=[的从中里])(?=[A-Za-z0-9])")
_SOURCE = lazy_compile(
    r"(?:https?|ssh|file|git)://\S+|git@[\w.-]+:\S+|(?:\.{1,2})?/[\w./~-]+"
    r"|\b[A-Za-z0-9](?:[\w-]{0,38})/[A-Za-z0-9][\w.-]*(?:/[\w./-]+)?(?:[@#][\w./-]+)?"
)
_FLAG = lazy_compile(r"--skill[= ]\s*(\S+)")
_WITH_NAME = lazy_compile(rf"{_RUN}\s*(?:(?:the|一下|这个)\s*)?[`'\"“「]?({_NAME})[`'\"”」]?", re.IGNORECASE)
_NAMED_SKILL = lazy_compile(rf"[`'\"“「]?({_NAME})[`'\"”」]?{_SKILL_WORD}", re.IGNORECASE)
_AT_FILE = lazy_compile(  # `run x on data.csv`
    r"\s*(?:(?:on|over|with|against|for|to)\b|处理|来处理|对)\s*@?[\w~./-]*(?:/|\.\w{1,8}(?!\w))", re.IGNORECASE
)
_SCRIPT = lazy_compile(
    rf"^(?:worker\b\s*)?(?:{_RUN}\s*)?(?:python3?\s+)?(?:bin/)?({_NAME}?)(?:\.py)?(?:\s+(.*))?$",
    re.IGNORECASE | re.DOTALL,
)
_MCP = lazy_compile(
    r"^mcp\s*(?:运行|执行|\brun\b)?\s*(列出|读取|工具|调用|提示|(?:list|read|tools|call|prompts?)\b)?\s*(.*)$",
    re.IGNORECASE,
)
_AT_SERVER = lazy_compile(
    r"(?:^|(?<=\s))@(?P<server>[A-Za-z0-9][A-Za-z0-9._-]*):(?P<uri>[A-Za-z][\w+.-]*:[^\s，。；、]+)"
)
McpOperation = Literal["list", "read", "tools", "call", "prompts", "prompt"]
_MCP_WORDS: Mapping[str, McpOperation] = {
    "list": "list",
    "列出": "list",
    "read": "read",
    "读取": "read",
    "tools": "tools",
    "工具": "tools",
    "call": "call",
    "调用": "call",
    "prompts": "prompts",
    "prompt": "prompt",
    "提示": "prompt",
}
_CAPABLE = lazy_compile(
    r"^(?:what (?:else )?can (?:you|this|it) do|what are your (?:abilities|capabilities|features)|capabilities"
    r"|你(?:还)?(?:能|可以|会)(?:做|干)?(?:什么|啥|哪些.*+)|(?:你)?有(?:什么|哪些)(?:能力|功能)|(?:能力|功能)(?:列表|介绍|展示)?)[?？!。.\s]*$",
    re.IGNORECASE,
)
_LIST = lazy_compile(
    r"^(?:list|show|view|查看|列出|显示|看看)\s*+(?:me\s++|all\s++|my\s++|your\s++|the\s++|of\s++|所有|全部|我的|你的)*"
    r"(?:installed|已装|已安装|安装)?\s*+(?:的)?\s*+(?:skills?|技能)(?:\s++(?:list|installed))?(?:列表)?[?？。.\s]*$"
    r"|^(?:已装|已安装的?)(?:技能)?列表$|^(?:which|what) skills (?:are (?:there|installed|available)|do (?:i|you|we) have|can (?:i|you) use)[?\s]*$"
    r"|^(?:你|我|现在|这里|都|一共)*(?:有|会|装了|安装了)(?:哪些|什么|啥|几个|多少)(?:个)?技能(?:可用|可以用)?[?？。\s]*$",
    re.IGNORECASE,
)
_SEARCH = lazy_compile(
    r"^(?:find|search|look)(?:\s+for)?\s++(?:(?:an?|the|some)\s++)?skills?\s++(?:for|to|about|that|which)?\s*+(.+)$"
    r"|^(?:find|search)(?:\s+for)?\s++(?:(?:an?|the|some)\s++)?(.+?)(?<!\s)\s++skills?$"
    r"|^(?:查找|搜索|寻找|找)(?:一下|一个)?\s*+(.+?)(?<!\s)\s*+(?:相关)?(?:的)?技能$|^(?:查找|搜索|找)(?:一下)?技能\s*+(.+)$",
    re.IGNORECASE,
)
_FROM = lazy_compile(r"(?:\b(?:from|of|in|at|skills?)|[从中里的自]|技能)\s*$", re.IGNORECASE)
_FILLERS = frozenset(
    "the a an from of skill skills repo repository github in at this my please 的 技能 仓库 从 中 里 里的 中的 这个 repository's named called".split()
)


class CascadeRouter(Struct):
    """Implements `ports.Router`. `meaning` ranks the skills; if its index or its encoder fails, or there is none, words
    alone decide, with an index in a temporary folder."""

    catalogue: Catalogue
    mapping: KnownSkills
    scripts: Mapping[str, Path]
    servers: Sequence[str] = ()
    meaning: SemanticRanker | None = None
    _spare: _Temporary | None = None

    def recognise(self, text: str) -> Action | None:
        return parse_command(clean(text, lines=False), self)

    def retrieve(self, text: str, k: int = 12, files: Sequence[str] = ()) -> Retrieval:
        every = looked_up((id(self), "skills"), self.catalogue.list_resources)
        skills = tuple(s for s in every if s.type == "skill" and s.implicit)
        request = with_words_of_paths(text, files, skills)
        retrieval = looked_up((id(self), request, k), lambda: self._retrieved(skills, request, k))
        if not changes_skills(text):
            return retrieval
        # an order to remove, enable or disable must not run the skills that it names
        others = tuple(each for each in retrieval.candidates if fold(each.name) not in fold(text))
        if len(others) == len(retrieval.candidates):
            return retrieval
        return Retrieval(candidates=others, band="direct", reason="unlikely", wanted=retrieval.wanted)

    def varied(self, names: Sequence[str]) -> Sequence[str]:
        return names if self.meaning is None or self._spare is not None else self.meaning.varied(names)

    def _retrieved(self, skills: tuple[SkillDef, ...], text: str, k: int) -> Retrieval:
        if self.meaning is not None and self._spare is None:
            try:
                return self.meaning.retrieve(skills, text, k, self.servers)
            except KernelError as error:
                warn("routing by words only: %s", error.message)
        if self._spare is None:
            self._spare = _Temporary(self.meaning)
        return self._spare.meaning.retrieve(skills, text, k, self.servers)


class _Temporary:
    """Ranks by words, with the settings of `before`. Its folder is removed with it."""

    def __init__(self, before: SemanticRanker | None) -> None:
        from shutil import rmtree
        from tempfile import mkdtemp

        folder = Path(mkdtemp(prefix="navigator-"))
        finalize(self, rmtree, folder, ignore_errors=True)
        self.meaning = SemanticRanker(RoutingIndex(folder, FolderWriter([folder]), None))
        if before is not None:
            self.meaning.boldness, self.meaning.lessons = before.boldness, before.lessons


class _Verb(Struct, frozen=True):
    """A verb at the start of a message; an English one must be a whole word, any text may follow a Chinese one."""

    operation: Operation
    words: tuple[str, ...]
    pattern: re.Pattern[str]

    def match(self, text: str) -> re.Match[str] | None:
        return self.pattern.match(text) if text.lower().startswith(self.words) else None


def _verb(operation: Operation, english: str, chinese: str) -> _Verb:
    whole = lazy_compile(rf"^(?:(?:{english})(?![\w-])|(?:{chinese})(?:一下)?)\s*", re.IGNORECASE | re.ASCII)
    return _Verb(operation, (*english.split("|"), *chinese.split("|")), whole)


_VERBS = (
    _verb("uninstall", "uninstall|delete|remove", "卸载|删除|移除"),
    _verb("install", "install|add", "安装|添加|装"),
    _verb("enable", "enable", "启用"),
    _verb("disable", "disable", "停用|禁用"),
    _verb("info", "analyse|analyze|inspect|view|show|info|look at|what is in", "分析|查看|看看"),
)
_CHANGES = tuple(verb for verb in _VERBS if verb.operation in {"uninstall", "enable", "disable"})
# A match of a pattern contains one of these: searching for them is cheaper, and most messages contain none.
_RUNS = "执行 运行 使用 调用 启动 用 run use execute call invoke start worker apply".split()
_SKILLS = ("skill", "技能")
LIMIT = 4_000  # characters of a message that can be an order; a longer one is a text, unless it begins with a name


def parse_command(text: str, names: CascadeRouter) -> Action | None:
    """The action that `text` names exactly, or None."""
    text = _bare(text)
    if not text:
        return None
    if len(text) > LIMIT:
        return _first_word(text, names)
    if text[0] in "WwCc你有能功" and _CAPABLE.match(text):
        return Direct(topic="capabilities")
    return (
        _lifecycle_of_named(text, names)
        or _skill(text, names)
        or _at_server(text, names)
        or _mcp(text, names)
        or _script(text, names)
        or _lifecycle(_BLANKS.sub(" ", text), names)
    )


def _bare(text: str) -> str:
    """`text` without the polite words at its beginning."""
    text = text.strip()
    return _POLITE.sub("", text).strip() if text.lower().startswith(_POLITELY) else text


def changes_skills(text: str) -> bool:
    """Whether `text` begins with an order to remove, enable or disable; a skill that it names must not be run."""
    text = _bare(text)
    return any(verb.match(text) for verb in _CHANGES)


def _lifecycle_of_named(text: str, names: CascadeRouter) -> Action | None:
    """A lifecycle verb whose object is a skill comes before running it: `uninstall word-count` never runs it."""
    for verb in _CHANGES:
        if verb.match(text) is None:
            continue
        text = _without_tail(text)
        hit = verb.match(text)
        if hit is None:
            continue
        objects = [word for word in _words(text[hit.end() :]) if word.lower() not in {"the", "skill", "skills", "技能"}]
        skills = tuple(word for word in objects if names.catalogue.find(word))
        if skills and len(skills) == len(objects):
            return Lifecycle(operation=verb.operation, skills=skills)
        if len(objects) == 1 and _ENDS_SKILL.search(text):
            return Lifecycle(operation=verb.operation, skills=tuple(objects))
    return None


def _skill(text: str, names: CascadeRouter) -> Action | None:
    """LIF-9, COV-2: a skill whose name stands alone, is the object of a verb, or is marked as a skill."""
    if alone := _first_word(text, names):
        return alone
    lowered = text.lower()
    for way, words in ((_WITH_NAME, _RUNS), (_NAMED_SKILL, _SKILLS)):
        for hit in islice(way.finditer(text), HITS) if any(word in lowered for word in words) else ():
            skill, rest = _named(hit, text, names)
            if skill is None:
                continue
            if way is _NAMED_SKILL or _specific(skill.name) or rest.strip() == "" or _AT_FILE.match(rest):
                tail = _SAYS_SKILL.sub("", rest, count=1)
                return Skills(names=(skill.name,), arguments=_arguments(_PREPOSITION.sub("", tail)))
    return None


def _first_word(text: str, names: CascadeRouter) -> Skills | None:
    head, _, rest = text.partition(" ")
    alone = names.catalogue.find(head.strip("/`'\"“”「」:："))
    if alone is None or (rest and not _specific(head)):
        return None
    return Skills(names=(alone.name,), arguments=_arguments(rest))


def _named(hit: re.Match[str], text: str, names: CascadeRouter) -> tuple[SkillDef | None, str]:
    """The skill and what follows its name; Chinese may follow a Latin name without a space."""
    skill = names.catalogue.find(hit.group(1))
    if skill is not None:
        return skill, text[hit.end() :]
    latin = _LATIN.match(hit.group(1))
    if latin is None:
        return None, ""
    return names.catalogue.find(latin.group()), text[hit.start(1) + latin.end() :]


def _without_tail(text: str) -> str:
    """`text` without the polite words and the punctuation at its end."""
    text = text.rstrip("?？!！。." + whitespace)
    end = len(text)
    while hit := _TAIL.search(text, max(end - LONGEST, 0), end):
        end = len(text[: hit.start()].rstrip(",，" + whitespace))
    return text[:end]


def _specific(name: str) -> bool:
    """Whether `name` is more than an ordinary word; `run test …` must not be taken for a skill called `test`."""
    return bool(_MARKED.search(name)) or not name.isascii()


def _mcp(text: str, names: CascadeRouter) -> Action | None:
    hit = _MCP.match(text) if text[:3].lower() == "mcp" else None
    if hit is None or not _BEGINS_MCP.match(text):
        return None
    word = (hit.group(1) or "").lower()
    rest = hit.group(2).strip()
    uri = _URI.search(rest)
    server = next(
        (name for name in names.servers if lazy_compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])").search(rest)), ""
    )
    operation = _MCP_WORDS.get(word) or ("read" if uri else "list")
    rest, given = _with_json(rest) if operation == "call" else (rest, {})
    words = [item for item in _words(rest) if item not in {server, uri.group() if uri else ""}]
    # a text about MCP, such as `MCP is a standard`, has more words than a command without a server that is set up
    most = {"call": len(words), "prompt": 2}.get(operation, 1)
    is_text = hit.group(2) >= _FIRST_HAN and not (word and text[hit.start(2) - 1].isspace())
    if not (server or uri) and (is_text or len([item for item in words if "=" not in item]) > most):
        return None
    if not server and len(names.servers) == 1:
        server = names.servers[0]
    tool = words[0] if operation in {"call", "prompt"} and words else ""
    args = {**dict(item.split("=", 1) for item in words[1:] if "=" in item), **given} if tool else {}
    return Mcp(operation=operation, server=server, uri=uri.group() if uri else "", tool=tool, args=args)


def _at_server(text: str, names: CascadeRouter) -> Action | None:
    """`@server:uri`: anywhere in the message for a known server, only as the whole message for another one."""
    hit = _AT_SERVER.search(text) if "@" in text else None
    if hit is None or (hit["server"] not in names.servers and hit.group() != text):
        return None
    return Mcp(operation="read", server=hit["server"], uri=hit["uri"].rstrip(".,;:!?"))


def _with_json(rest: str) -> tuple[str, Mapping[str, Any]]:
    """The text before a JSON object at the end, and the object."""
    head, brace, tail = rest.partition("{")
    try:
        arguments = json.loads(brace + tail) if brace else {}
    except ValueError:
        return rest, {}
    return (head, arguments) if isinstance(arguments, dict) else (rest, {})


def _script(text: str, names: CascadeRouter) -> Action | None:
    hit = _SCRIPT.match(text) if any(name in text for name in names.scripts) else None
    if hit is None or hit.group(1) not in names.scripts:
        return None
    name, rest = hit.group(1), hit.group(2) or ""
    if _specific(name) or _PROGRAM.match(text):
        return Script(name=name, args=_arguments(rest))
    return None


def _lifecycle(text: str, names: CascadeRouter) -> Action | None:
    about_skills = any(word in text.lower() for word in _SKILLS)
    if (about_skills or "装" in text) and _LIST.match(text):
        return Lifecycle(operation="list")
    if about_skills and (hit := _SEARCH.match(text)):
        return Lifecycle(operation="search", query=next(group for group in hit.groups() if group).strip(" ?？。."))
    for verb in _VERBS:
        if hit := verb.match(text):
            return _with_object(verb.operation, text[hit.end() :], names)
    bare = text.strip("`'\"")
    if _WHOLE_NAME.fullmatch(bare) and (known := names.mapping.find(bare)):
        return Lifecycle(operation="install", source=known[0], skills=(known[1],))
    return None


def _with_object(operation: Operation, rest: str, names: CascadeRouter) -> Action | None:
    """The verb's object: a source, or for `install` the name of a known sub-skill (SEN-6, LIF-8)."""
    flagged = tuple(_FLAG.findall(rest))
    source = _SOURCE.search(_FLAG.sub(" ", rest))
    before = [word for word in _words(rest[: source.start()] if source else _FLAG.sub(" ", rest)) if _is_object(word)]
    if source and operation in {"install", "info"}:
        if not _may_be_repository(operation, source.group().rstrip(".,，。"), _FLAG.sub(" ", rest)[source.end() :]):
            return None
        if before and (operation == "info" or not _FROM.search(rest[: source.start()])):
            return None  # the verb has another object: "show me the error in src/app"
        after = _words(_FLAG.sub(" ", rest)[source.end() :])
        named = flagged or tuple(word for word in (before or after) if _WHOLE_NAME.fullmatch(word) and _is_object(word))
        return Lifecycle(
            operation=operation, source=source.group().rstrip(".,，。"), skills=named if operation == "install" else ()
        )
    if operation == "install" and len(before) == 1 and (known := names.mapping.find(before[0])):
        return Lifecycle(operation="install", source=known[0], skills=(known[1],))
    if operation == "info" and len(before) == 1 and (skill := names.catalogue.find(before[0])):
        return Lifecycle(operation="info", source=skill.name)
    says_skill = _CLOSES_SKILL.search(rest)
    if operation == "install" and says_skill and len(before) <= 1:
        return Lifecycle(operation="install", skills=tuple(before))
    return None


def _may_be_repository(operation: Operation, source: str, after: str) -> bool:
    """Whether `source` names where skills come from, and not a file of the project. `owner/name` alone is looked at
    only if nothing else is said of it, and if the owner is not a folder here."""
    if "://" in source or source.startswith("git@"):
        return True
    path = Path(source.partition("@")[0].partition("#")[0])
    if named_files(source) == [source] or is_file(path):
        return False
    if operation == "install" or source.startswith((".", "/", "~")):
        return True
    if is_there(path):
        return any(next(path.glob(f"{depth}SKILL.md"), None) for depth in ("", "*/", "*/*/"))
    return not is_there(Path(path.parts[0])) and not any(
        _is_object(word) for word in _words(after) if word.strip("?？!！。.")
    )


def _is_object(word: str) -> bool:
    return word.lower() not in _FILLERS


def _words(text: str) -> list[str]:
    """The words, with quotes honoured; Chinese particles between names are separated from them."""
    spaced = _SCRIPT_BORDER.sub(" ", text)
    words = split_words(spaced)
    return spaced.split() if words is None else words


def _arguments(text: str) -> tuple[str, ...]:
    """The person's own words; Chinese particles in them are not separated."""
    text = text.strip(" :：,，")
    words = split_words(text)
    return tuple(text.split() if words is None else words)


_PREPOSITION = lazy_compile(r"^\s*(?:(?:on|for|with|to|about|of)\b|处理|来|去|对|统计|分析)\s*[:：]?\s*", re.IGNORECASE)

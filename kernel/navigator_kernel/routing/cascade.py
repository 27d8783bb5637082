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
from typing import TYPE_CHECKING, Any, Literal
from weakref import finalize

from msgspec import Struct

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.errors import KernelError
from navigator_kernel.routing.entries import with_words_of_paths
from navigator_kernel.routing.index import RoutingIndex
from navigator_kernel.routing.meaning import SemanticRanker
from navigator_kernel.routing.skill_orders import (
    LIMIT,
    NAME,
    SAYS_SKILL,
    SKILL_WORD,
    bare,
    changes_skills,
    order_of_named,
    skill_order,
    words_of_order,
)
from navigator_kernel.text import clean, fold, lazy_compile, split_words, warn
from navigator_kernel.values.owner import looked_up
from navigator_kernel.values.route import Action, Direct, Mcp, Retrieval, Script, Skills

if TYPE_CHECKING:
    from navigator_kernel.ports import Catalogue, KnownSkills
    from navigator_kernel.values.resource import SkillDef

_RUN = r"(?:执行|运行|使用|调用|启动|用|\b(?:run|use|execute|call|invoke|start|worker|apply)\b)"
_LATIN = lazy_compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?=[^\x00-\x7f])")
HITS = 8  # places in a message to search for a name
_BLANKS = lazy_compile(r"\s{2,}")
_MARKED = lazy_compile(r"[-_\d]")
_BEGINS_MCP = lazy_compile(r"mcp(?:\s|运行|执行|列出|读取|工具|调用|提示|$)", re.IGNORECASE)
_FIRST_HAN = "\u3400"  # the first Chinese character
_URI = lazy_compile(r"\b[\w+.-]+://\S*")
_PROGRAM = lazy_compile(rf"(?:{_RUN}|python|bin/)", re.IGNORECASE)
_WITH_NAME = lazy_compile(rf"{_RUN}\s*(?:(?:the|一下|这个)\s*)?[`'\"“「]?({NAME})[`'\"”」]?", re.IGNORECASE)
_NAMED_SKILL = lazy_compile(rf"[`'\"“「]?({NAME})[`'\"”」]?{SKILL_WORD}", re.IGNORECASE)
_AT_FILE = lazy_compile(  # `run x on data.csv`
    r"\s*(?:(?:on|over|with|against|for|to)\b|处理|来处理|对)\s*@?[\w~./-]*(?:/|\.\w{1,8}(?!\w))", re.IGNORECASE
)
_SCRIPT = lazy_compile(
    rf"^(?:worker\b\s*)?(?:{_RUN}\s*)?(?:python3?\s+)?(?:bin/)?({NAME}?)(?:\.py)?(?:\s+(.*))?$",
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


# A match of a pattern contains one of these: searching for them is cheaper, and most messages contain none.
_RUNS = "执行 运行 使用 调用 启动 用 run use execute call invoke start worker apply".split()
_SKILLS = ("skill", "技能")


def parse_command(text: str, names: CascadeRouter) -> Action | None:
    """The action that `text` names exactly, or None."""
    text = bare(text)
    if not text:
        return None
    if len(text) > LIMIT:
        return _first_word(text, names)
    if text[0] in "WwCc你有能功" and _CAPABLE.match(text):
        return Direct(topic="capabilities")
    return (
        order_of_named(text, names.catalogue, names.mapping)
        or _skill(text, names)
        or _at_server(text, names)
        or _mcp(text, names)
        or _script(text, names)
        or skill_order(_BLANKS.sub(" ", text), names.catalogue, names.mapping)
    )


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
                tail = SAYS_SKILL.sub("", rest, count=1)
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
    words = [item for item in words_of_order(rest) if item not in {server, uri.group() if uri else ""}]
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


def _arguments(text: str) -> tuple[str, ...]:
    """The person's own words; Chinese particles in them are not separated."""
    text = text.strip(" :：,，")
    words = split_words(text)
    return tuple(text.split() if words is None else words)


_PREPOSITION = lazy_compile(r"^\s*(?:(?:on|for|with|to|about|of)\b|处理|来|去|对|统计|分析)\s*[:：]?\s*", re.IGNORECASE)

"""Orders and questions about skills themselves, in both languages: install, update, remove, switch on and off, list,
find, describe (SEN-3..6, LIF-7). A verb counts only with a skill, a source or the word skill as its object."""

from __future__ import annotations

import re
from pathlib import Path
from string import whitespace
from typing import TYPE_CHECKING

from msgspec import Struct

from navigator_kernel.language.parameters import is_file, is_there
from navigator_kernel.language.signs import named_files
from navigator_kernel.text import fold, lazy_compile, split_words
from navigator_kernel.values.route import Lifecycle, Operation

if TYPE_CHECKING:
    from navigator_kernel.ports import Catalogue, KnownSkills

LIMIT = 4_000  # characters of a message that can be an order; a longer one is a text, unless it begins with a name
LONGEST = len("thank you")
_POLITE = lazy_compile(
    r"^(?:(?:please|can you|could you|kindly|now|then)\b[,\s]*|(?:请|麻烦|帮我|请帮我|现在|给我)[,，\s]*)+",
    re.IGNORECASE,
)
_POLITELY = ("please", "can you", "could you", "kindly", "now", "then", "请", "麻烦", "帮我", "现在", "给我")
_TAIL = lazy_compile(r"(?:\b(?:please|pls|thanks|thank you|now)\b|吧|好吗|谢谢|一下)\Z", re.IGNORECASE)
SKILL_WORD = r"(?:(?<!\s)\s*+(?:的\s*+)?(?:技能|\bskills?\b))"
_ENDS_SKILL = lazy_compile(SKILL_WORD + r"\s*$", re.IGNORECASE)
SAYS_SKILL = lazy_compile(SKILL_WORD, re.IGNORECASE)
NAME = r"[\w][\w.-]{0,79}"
_WHOLE_NAME = lazy_compile(NAME)
_CLOSES_SKILL = lazy_compile(rf"{SKILL_WORD}[\s。.!]*$", re.IGNORECASE)
_SCRIPT_BORDER = lazy_compile(r"(?<=[\w.-])(?=[的从中里技仓])|(?<=[的从中里])(?=[A-Za-z0-9])")
_SOURCE = lazy_compile(
    r"(?:https?|ssh|file|git)://\S+|git@[\w.-]+:\S+|(?:\.{1,2})?/[\w./~-]+"
    r"|\b[A-Za-z0-9](?:[\w-]{0,38})/[A-Za-z0-9][\w.-]*(?:/[\w./-]+)?(?:[@#][\w./-]+)?"
)
_FLAG = lazy_compile(r"--skill[= ]\s*(\S+)")
_LIST = lazy_compile(
    r"^(?:list|show|view|查看|列出|显示|看看)\s*+(?:me\s++|all\s++|my\s++|your\s++|the\s++|of\s++|所有|全部|我的|你的)*"
    r"(?:installed|enabled|disabled|已装|已安装|安装|已启用|已停用|停用)?\s*+(?:的)?\s*+(?:skills?|技能)(?:\s++(?:list|installed))?(?:列表)?[?？。.\s]*$"
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
    "the a an and me all from of skill skills repo repository github in at this my please 的 和 技能 仓库 从 中 里 里的 中的 这个 repository's named called".split()
)
# Words beside names of skills
_BESIDE = frozenset("the my and all skill skills 技能 这个 我的 和 与 、 所有 全部".split())
_VERB_LAST = lazy_compile(r"(卸载|删除|删掉|移除|启用|打开|停用|禁用|关闭|关掉|更新|升级)(?:掉|了|一下)?$")
# The text has single spaces between its words
_OF_SOURCE = lazy_compile(
    r"^(?:list|show|view|see|browse|which|what|列出|查看|看看|显示)(?![\w-]).*\bskills?\b|[有是](?:哪些|什么|多少)技能",
    re.IGNORECASE,
)
_NEWS = lazy_compile(
    r"^(?:is|are) (.+?) (?:up[ -]to[ -]date|outdated|current)$|^(?:is|are) there (?:any |an )?updates? (?:for|of|to) (.+)"
    r"|^any updates? (?:for|of|to) (.+)|^check (?:(?:for )?updates? (?:for|of|to) )?(.+?)(?: for updates?)?$"
    r"|^(?:which|what) (.*skills) (?:are outdated|have updates?|need (?:an )?updates?)$"
    r"|^(.+?)(?:有没有|有|需要|要不要|是不是|是否)(?:可用的)?(?:更新|新版本|升级|最新的?|最新版)[吗么]?$",
    re.IGNORECASE,
)
_ABOUT = lazy_compile(
    r"^what (?:does|do|can) (.+?) do$|^what(?:'s| is) (.+?) (?:for|good for|about)$"
    r"|^(?:what|which) version of (.+?)(?: do i have| is installed)?$"
    r"|^where (?:does|is) (.+?) (?:come from|from)$|^(?:tell me about|describe|explain) (.+)"
    r"|^(.+?)是?(?:用来)?[做干](?:什么|啥)用?的?$|^(.+?)(?:有什么用|是什么技能|来自哪里|是什么版本)$|^(?:介绍|说明)(?:一下)? ?(.+)",
    re.IGNORECASE,
)


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


_INSTALL = _verb("install", "install|add", "安装|添加|装")
_FETCH = _verb("install", "install|add|get|fetch|download", "安装|添加|装|下载|获取")  # if the order says "skill"
_VERBS = (
    _verb("uninstall", "uninstall|delete|remove|get rid of", "卸载|删除|删掉|移除"),
    _INSTALL,
    _verb("enable", "enable|activate|turn on|switch on", "启用|打开|激活"),
    _verb("disable", "disable|deactivate|turn off|switch off", "停用|禁用|关闭|关掉"),
    _verb("update", "update|upgrade", "更新|升级"),
    _verb("verify", "verify", "校验|验证"),
    _verb("info", "analyse|analyze|inspect|view|show|info|look at|what is in", "分析|查看|看看"),
)
_CHANGES = tuple(verb for verb in _VERBS if verb.operation in {"uninstall", "enable", "disable"})
_OF_NAMED = tuple(verb for verb in _VERBS if verb.operation not in {"install", "info"})
_SKILLS = ("skill", "技能")


def bare(text: str) -> str:
    """`text` without the polite words at its beginning."""
    text = text.strip()
    return _POLITE.sub("", text).strip() if text.lower().startswith(_POLITELY) else text


def changes_skills(text: str) -> bool:
    """Whether `text` begins with an order to remove, enable or disable; a skill that it names must not be run."""
    text = bare(text)
    return any(verb.match(text) for verb in _CHANGES)


def order_of_named(text: str, catalogue: Catalogue, mapping: KnownSkills | None = None) -> Lifecycle | None:
    """A lifecycle verb whose object is a skill comes before running it: `uninstall word-count` never runs it. So does a
    question about a skill: `what does word-count do?`"""
    text = " ".join(_without_tail(bare(text)).split())
    text = _verb_first(text) if text.startswith(("把", "从")) else text
    about_skills = any(word in text.lower() for word in _SKILLS)
    if (about_skills or "装" in text) and _LIST.match(text):
        return Lifecycle(operation="list")
    for verb in _OF_NAMED:
        if hit := verb.match(text):
            rest, skills = text[hit.end() :], _skills_in(text[hit.end() :], catalogue)
            every = verb.operation in {"update", "verify"} and about_skills and not _objects(rest)
            if not skills and len(_objects(rest)) == 1 and _ENDS_SKILL.search(text):
                skills = tuple(_objects(rest))  # an unknown name
            return Lifecycle(operation=verb.operation, skills=skills) if skills or every else None
    verb = _FETCH if about_skills else _INSTALL
    if (hit := verb.match(text)) and (about_skills or _SOURCE.search(text)):
        action = _with_object("install", text[hit.end() :], catalogue, mapping)
        is_alone = action is not None and not action.source and len(action.skills) == 1
        here = _skills_in(action.skills[0], catalogue) if action is not None and is_alone else ()
        return Lifecycle(operation="info", source=here[0]) if here else action
    source = _SOURCE.search(text) if about_skills else None
    if source and _OF_SOURCE.search(text) and _may_be_repository("info", source.group(), ""):
        return Lifecycle(operation="info", source=source.group().rstrip(".,，。"))
    if hit := _NEWS.search(text):
        rest = next(filter(None, hit.groups()))
        if (skills := _skills_in(rest, catalogue)) or (about_skills and not _objects(rest)):
            return Lifecycle(operation="outdated", skills=skills)
    hit = _ABOUT.search(text)
    skills = _skills_in(next(filter(None, hit.groups())), catalogue) if hit else ()
    return Lifecycle(operation="info", source=skills[0]) if len(skills) == 1 else None


def _verb_first(text: str) -> str:
    """An order in Chinese with the verb before its object: 停用 pdf for 把 pdf 停用, 安装 x 从 SOURCE for 从 SOURCE 安装 x."""
    if text.startswith("把"):
        hit = _VERB_LAST.search(text)
        return f"{hit[1]} {text[1 : hit.start()]}" if hit else text
    for verb in ("安装", "添加", "装"):
        source, _, names = text[1:].partition(verb)
        if names:
            return f"{verb}{names} 从 {source.strip().rstrip('里中来')}"
    return text


def _objects(text: str) -> list[str]:
    return [word for word in words_of_order(text) if word.lower() not in _BESIDE]


def _skills_in(text: str, catalogue: Catalogue) -> tuple[str, ...]:
    """The installed skills, switched on or off, of which `text` has the names and no other word; else none."""
    words = _objects(text)
    skills = [catalogue.find(word) for word in words]
    if words and not all(skills):
        every = (each for each in catalogue.list_resources(enabled_only=False) if each.type == "skill")
        off = {fold(skill.name): skill for skill in every}
        skills = [skill or off.get(fold(word)) for skill, word in zip(skills, words, strict=True)]
    return tuple(skill.name for skill in skills if skill) if all(skills) else ()


def _without_tail(text: str) -> str:
    """`text` without the polite words and the punctuation at its end."""
    text = text.rstrip("?？!！。." + whitespace)
    end = len(text)
    while hit := _TAIL.search(text, max(end - LONGEST, 0), end):
        end = len(text[: hit.start()].rstrip(",，" + whitespace))
    return text[:end]


def skill_order(text: str, catalogue: Catalogue, mapping: KnownSkills | None = None) -> Lifecycle | None:
    """An order about skills in which none that is installed is named, tried after everything else."""
    about_skills = any(word in text.lower() for word in _SKILLS)
    if about_skills and (hit := _SEARCH.match(text)):
        return Lifecycle(operation="search", query=next(group for group in hit.groups() if group).strip(" ?？。."))
    for verb in _VERBS:
        if hit := verb.match(text):
            return _with_object(verb.operation, text[hit.end() :], catalogue, mapping)
    alone = text.strip("`'\"")
    if mapping and _WHOLE_NAME.fullmatch(alone) and (known := mapping.find(alone)):
        return Lifecycle(operation="install", source=known[0], skills=(known[1],))
    return None


def _with_object(
    operation: Operation, rest: str, catalogue: Catalogue, mapping: KnownSkills | None
) -> Lifecycle | None:
    """The verb's object: a source, or for `install` the name of a known sub-skill (SEN-6, LIF-8)."""
    flagged = tuple(_FLAG.findall(rest))
    source = _SOURCE.search(_FLAG.sub(" ", rest))
    before = [
        word for word in words_of_order(rest[: source.start()] if source else _FLAG.sub(" ", rest)) if _is_object(word)
    ]
    if source and operation in {"install", "info"}:
        if not _may_be_repository(operation, source.group().rstrip(".,，。"), _FLAG.sub(" ", rest)[source.end() :]):
            return None
        if before and (operation == "info" or not _FROM.search(rest[: source.start()])):
            return None  # the verb has another object: "show me the error in src/app"
        after = words_of_order(_FLAG.sub(" ", rest)[source.end() :])
        named = flagged or tuple(word for word in (before or after) if _WHOLE_NAME.fullmatch(word) and _is_object(word))
        return Lifecycle(
            operation=operation, source=source.group().rstrip(".,，。"), skills=named if operation == "install" else ()
        )
    if operation == "install" and mapping and len(before) == 1 and (known := mapping.find(before[0])):
        return Lifecycle(operation="install", source=known[0], skills=(known[1],))
    if operation == "info" and len(before) == 1 and (skill := catalogue.find(before[0])):
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
        _is_object(word) for word in words_of_order(after) if word.strip("?？!！。.")
    )


def _is_object(word: str) -> bool:
    return word.lower() not in _FILLERS


def words_of_order(text: str) -> list[str]:
    """The words, with quotes honoured; Chinese particles between names are separated from them."""
    spaced = _SCRIPT_BORDER.sub(" ", text)
    words = split_words(spaced)
    return spaced.split() if words is None else words

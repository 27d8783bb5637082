"""Catalogues as people have them, drawn from the sets: of 3 to 10,000 skills beside the shipped ones, some without."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal
from zlib import crc32

from msgspec.structs import replace

from bench.routing_sets import Asked, RoutingSet, everyday, read_sets, scale, with_shots, written_messages
from navigator_kernel.bootstrap.places import shipped_home
from navigator_kernel.routing.entries import Entry, entry_of
from navigator_kernel.routing.vectors import SHOTS
from routing.place import routing_at
from tables import table

Presence = Literal["present", "absent", "none", "near"]

DRAWN = {3: 24, 10: 48, 30: 24, 100: 6, 300: 3}  # catalogues drawn from a set, by their number of skills
BARE_DRAWN = {1: 24, 4: 12}  # the same without the shipped skills
SHIPPED_DRAWN = {0: 8, 3: 8, 10: 8, 30: 6, 300: 2}  # the same, for messages to the shipped skills
MANY = (1_000, 10_000)
ASKED = 12  # messages for present skills of a drawn catalogue, and as many for absent ones
FULL = ("everyday", "long")  # sets that are also asked whole, alone and among MANY skills
DRAWN_FROM = (*FULL, "realskills", "fastskills_zh")
# Sets that only the order is fitted to, without the shipped skills; where they have examples, with these once more
ORDERED = (
    "clinc150", "banking77", "toole_single", "idaibin", "toollens_multi", "azure+body", "fastskills_zh", "realskills",
    "realskills+body",
)  # fmt: skip
# What people add to a message, with files as the router reads them
MATERIAL = (
    " @ts", " in @md", " (@csv)", ": total = sum(rows) / len(rows)", "：for i in range(3): print(i)", ": {\"a\": [1, 2]}",
    " - @log and @py", "：@xlsx", ": Dear all, the meeting is at ten. 请大家准时。",
)  # fmt: skip
ORDERED_QUESTIONS, ALONE = 400, -1
SOME = (0, 1, 3, 10)  # examples of an entry
# For which labels of the everyday catalogue a shipped skill is right as well
SHIPPED_DOES = table(__file__, "SHIPPED_DOES")


# Messages with one of these words may be for a shipped skill
_SHIPPED_WORDS = re.compile(
    r"cod[ei]|review|commit|git\b|branch|merge|diff|rust|cargo|csv|excel|spreadsheet|column|count|word|letters|json|table|link|"
    r"url|log\b|logs|todo|task|remind|folder|files|workflow|steps|slow|fast|optimi|refactor|bug|代码|程序|审|提交|分支|合并|表格|"
    r"列|统计|字|词|链接|日志|报错|待办|任务|提醒|文件|目录|步骤|流程|优化|性能|慢|重构",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Message:
    """A message to a catalogue: `present` says that a right skill is in it, `absent` that it is not; `none` wants no
    skill, `near` is a near miss. `right` are the names of the right skills in the catalogue, `excused` those that may
    be taken for an absent skill."""

    text: str
    lang: str
    kind: str
    presence: Presence
    right: frozenset[str]
    excused: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Catalogue:
    """`size` is the number of skills beside the shipped ones; ALONE for a set that only the order is fitted to."""

    set_name: str
    size: int
    entries: Sequence[Entry]
    messages: Sequence[Message]


@cache
def shipped_entries() -> Sequence[Entry]:
    with TemporaryDirectory() as scratch:
        folder = Path(scratch) / ".claude" / "skills"
        shutil.copytree(shipped_home().skills, folder, ignore=shutil.ignore_patterns(".*", "*.db"))
        skills = routing_at(Path(scratch)).router.catalogue.list_resources()
        return [entry_of(skill) for skill in skills if skill.type == "skill" and skill.implicit]


def catalogues(folder: Path) -> Iterator[Catalogue]:
    """Every catalogue: drawn ones, whole ones, and the sets for the order alone."""
    sets = dict(_sets(folder))
    nothing = [one for one in sets["everyday"][1] if not one.labels]
    for name, (entries, asked) in sets.items():
        yield from _drawn(name, entries, asked, nothing)
        if name in FULL:
            yield from _whole(name, entries, asked, folder)
    yield from _for_shipped(sets["everyday"][0], sets["everyday"][1])
    for zero in read_sets(folder):
        if zero.name in ORDERED:
            shots = with_shots(zero, folder)
            for one in (zero, shots, shots and _with_some(shots)):
                if one is not None:
                    yield _for_order(one)


def _sets(folder: Path) -> Iterator[tuple[str, tuple[Sequence[Entry], Sequence[Asked]]]]:
    found, asked = list(everyday(folder))[-1]  # with bodies
    yield "everyday", (found.entries, asked)
    lines = (folder / "long" / "dev.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    one = [row for row in rows if row["kind"] != "long_several"]
    yield "long", (found.entries, [Asked(row["query"], row["lang"], row["kind"], tuple(row["labels"])) for row in one])
    named = {one.name.removesuffix("+body"): one for one in read_sets(folder)}
    for name in DRAWN_FROM[len(FULL) :]:
        found = named[name]
        yield name, (found.entries, [_asked(one.text, one.labels) for one in found.questions])


def _asked(text: str, labels: tuple[str, ...]) -> Asked:
    return Asked(text, _lang(text), "clear" if labels else "none", labels)


def _drawn(
    name: str, entries: Sequence[Entry], asked: Sequence[Asked], nothing: Sequence[Asked]
) -> Iterator[Catalogue]:
    chance, own = random.Random(0), _without_shipped(entries)
    wishes, others = [one for one in asked if one.labels], [one for one in asked if not one.labels]
    others = others if name in FULL else list(nothing)
    for size, times in (*DRAWN.items(), *BARE_DRAWN.items()):
        for _ in range(times if size <= len(own) else 0):
            chance.shuffle(wishes)
            meant = [label for one in wishes[: max(1, size // 2)] for label in one.labels[:2] if label in own]
            ids = list(dict.fromkeys(meant))[: max(2, size * 2 // 3)]
            kept = set((ids + chance.sample(sorted(set(own) - set(ids)), len(own) - len(ids)))[:size])
            inside = [one for one in wishes if kept & set(one.labels)][:ASKED]
            outside = [one for one in wishes if not kept & set(one.labels) and not _also_right(one.labels)]
            left = chance.sample(others, min(ASKED // 2, len(others)))
            held = [_message(one, own, kept) for one in (*inside, *outside[: len(inside)], *left)]
            shipped = () if size in BARE_DRAWN else shipped_entries()
            yield Catalogue(name, size, [*shipped, *(own[one] for one in sorted(kept))], held)


def _for_shipped(entries: Sequence[Entry], asked: Sequence[Asked]) -> Iterator[Catalogue]:
    """The shipped skills with at most half of their examples; of the other half some are messages, half with MATERIAL. Most messages for absent
    skills and all near misses are of `messages.tsv`."""
    chance, own = random.Random(0), _without_shipped(entries)
    wishes = [one for one in asked if one.labels and not _also_right(one.labels)]
    nothing = [one for one in asked if not one.labels]
    near = [Asked(text, lang, kind, ()) for kind, lang, text in written_messages() if kind == "near"]
    for size, times in SHIPPED_DRAWN.items():
        for _ in range(times):
            kept, held, messages = set(chance.sample(sorted(own), size)), [], []
            most = chance.choice((1, 4, SHOTS, SHOTS))
            for entry in shipped_entries():
                spoken = chance.sample(entry.examples, len(entry.examples))
                held.append(replace(entry, examples=tuple(spoken[: min(len(spoken) // 2, most)])))
                right = frozenset({entry.name})
                given = [spoken[-2], spoken[-1].rstrip(".?!。？！") + chance.choice(MATERIAL)]
                messages += [Message(text, _lang(text), "clear", "present", right) for text in given]
            absent = [one for one in wishes if not kept & set(one.labels)]
            others = (*chance.sample(absent, ASKED), *chance.sample(nothing, ASKED // 2))
            messages += [_message(one, own, kept) for one in others]
            if size <= ASKED:  # a larger catalogue may have a skill for it
                wanted = chance.sample(elsewhere()[1], 2 * ASKED)
                messages += [Message(one.text, one.lang, "clear", "absent", frozenset()) for one in wanted]
            messages += [Message(one.text, one.lang, "near", "near", frozenset()) for one in chance.sample(near, ASKED)]
            yield Catalogue("shipped", size, [*held, *(own[one] for one in sorted(kept))], messages)


def elsewhere() -> tuple[Sequence[Asked], Sequence[Asked]]:
    """Messages of `messages.tsv` that are for no shipped skill: those whose vectors the router knows, and those with
    which it is fitted, which all want some skill."""
    others: list[Asked] = []
    asked: list[Asked] = []
    for kind, lang, text in written_messages():
        if kind == "none" or (kind == "want" and not _SHIPPED_WORDS.search(text)):
            known = kind == "none" or crc32(text.encode()) % 2
            (others if known else asked).append(Asked(text, lang, kind, ()))
    return others, asked


def _lang(text: str) -> str:
    return "zh" if re.search("[一-鿿]", text) else "en"


def _whole(name: str, entries: Sequence[Entry], asked: Sequence[Asked], folder: Path) -> Iterator[Catalogue]:
    own = _without_shipped(entries)
    messages = [_message(one, own, set(own)) for one in asked if one.kind != "several"]
    taken = {entry.name for entry in (*shipped_entries(), *own.values())}
    others = [entry for entry in scale(folder, 2 * max(MANY)) if entry.name not in taken]
    for size in (len(own), *MANY):
        yield Catalogue(name, size, [*shipped_entries(), *own.values(), *others[: size - len(own)]], messages)


def _without_shipped(entries: Sequence[Entry]) -> Mapping[str, Entry]:
    names = {entry.name for entry in shipped_entries()}
    return {entry.id: entry for entry in entries if entry.name not in names}


def _message(one: Asked, own: Mapping[str, Entry], kept: set[str]) -> Message:
    right = frozenset(one.labels) & kept
    also = frozenset(_also_right(one.labels))
    if right:
        return Message(one.text, one.lang, one.kind, "present", right | also)
    if one.labels:
        return Message(one.text, one.lang, one.kind, "absent", frozenset(), also)
    presence: Presence = "none" if one.kind in ("none", "long_none") else "near"
    return Message(one.text, one.lang, one.kind, presence, frozenset())


def _also_right(labels: Sequence[str]) -> Sequence[str]:
    return [name for name, does in SHIPPED_DOES.items() if any(re.search(does, one, re.IGNORECASE) for one in labels)]


def _with_some(shots: RoutingSet) -> RoutingSet:
    """The set with fewer examples of most entries, and with none of some."""
    chance = random.Random(0)
    entries = [replace(entry, examples=entry.examples[: chance.choice(SOME)]) for entry in shots.entries]
    return RoutingSet(f"{shots.name.removesuffix('10 shots')}some shots", shots.questions, tuple(entries))


def _for_order(found: RoutingSet) -> Catalogue:
    questions = [one for one in found.questions if one.labels]
    random.Random(1).shuffle(questions)
    asked = [_asked(one.text, one.labels) for one in questions[:ORDERED_QUESTIONS]]
    held = [Message(one.text, one.lang, one.kind, "present", frozenset(one.labels)) for one in asked]
    return Catalogue(found.name, ALONE, found.entries, held)

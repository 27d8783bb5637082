"""More than two thousand manifests as people write them, mistakes included, are read, or refused with a reason."""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from navigator_kernel.adapters.sources.git import TreeEntry
from navigator_kernel.errors import NotLoadable, Refused
from navigator_kernel.skills.formats.layouts import to_canonical
from navigator_kernel.skills.formats.manifest import LISTED_LIMIT, read_manifest
from navigator_kernel.skills.formats.names import refuse_lookalike
from navigator_kernel.skills.formats.plugin_manifests import read_plugins
from navigator_kernel.skills.formats.validate import validate
from navigator_kernel.skills.source.discover import Tree, candidate_manifests, find_skills, labels, select_skills
from navigator_kernel.skills.source.gate import admit, unread_links
from navigator_kernel.text import fold
from navigator_kernel.values.resource import SkillDef
from tables import table

if TYPE_CHECKING:
    from navigator_kernel.skills.source.discover import Found

COUNT = 2_400
SECONDS = 20.0
CODE = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")

WORDS = (
    "code review pdf docx report data csv test git commit release image audio search plan note web api deploy".split()
)
FOREIGN = list(table(__file__, "FOREIGN"))
DESCRIPTIONS = [
    "Reviews code for bugs and style. Use when somebody asks for a review.",
    "Use when: the user asks about {topic}; not for: anything else",
    "Extracts text, tables & images from PDF files (also scans) - fast #1 choice",
    "'Writes' release notes from commits: features, fixes, breaking changes",
    '"Smart" quotes and more: does things',
    "[BETA] Creates slides",
    "*Important* tool for {topic}",
    "@internal helper",
    "`git` helper: commits, branches",
    "100% offline {topic}",
    "审查代码，找出问题：安全、性能、可读性（用户请求审查时使用）",
    "ファイルを解析します。「要約して」と言われたときに使用",
    "Создаёт отчёты по данным",
    "Does it 🚀 with emoji 👩‍💻 and — dashes",
    "{topic}?",
    "yes",
    "2026-01-31",
    "one, two, three " * 90,
]
TOOLS = list(table(__file__, "TOOLS"))
EXTRAS = list(table(__file__, "EXTRAS"))
BODIES = list(table(__file__, "BODIES"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A manifest as a repository has it; `reason` says why it cannot be used, and is empty if it can."""

    path: str
    data: bytes
    reason: str

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    name: str
    lines: str
    body: str

    @property
    def text(self) -> str:
        return f"---\n{self.lines}\n---\n{self.body}"


Mistake = Callable[[Draft], str | bytes]

FORGIVEN: tuple[Mistake, ...] = (
    lambda draft: "\ufeff" + draft.text,
    lambda draft: draft.text.replace("\n", "\r\n"),
    lambda draft: draft.text.replace("\n", "\r"),
    lambda draft: draft.text.replace("\n", " \n"),
    lambda draft: draft.text.replace("\n---\n", "\n----\n", 1),
    lambda draft: draft.text.replace("\n---\n", "\n...\n", 1),
    lambda draft: "\n\n" + draft.text,
    lambda draft: f"<!-- Copyright -->\n{draft.text}",
    lambda draft: f"---\n{draft.lines}\n\n{draft.body.replace('---', '***')}",
    lambda draft: f"---\n{draft.lines}\n\tauthor: me\n---\n{draft.body}",
    lambda draft: f"---\n{draft.lines}\nnote: it's: here: again\n---\n{draft.body}",
    lambda draft: f'---\n{draft.lines}\nnote: "never closed\n---\n{draft.body}',
    lambda draft: f"---\n{draft.lines}\nnot a key at all\n---\n{draft.body}",
    lambda draft: f"---\n{draft.lines}\n  wrong: indent\n---\n{draft.body}",
    lambda draft: draft.text + "\0",
    lambda draft: draft.text.encode("gb18030", errors="replace"),
    lambda draft: draft.text.encode("utf-16"),
    lambda draft: draft.text.encode("cp1252", errors="replace"),
    lambda draft: draft.text.encode() + b"\xff\xfe\x81",
    lambda draft: f"# {draft.name}\n\ndescription: does a thing\npriority: 80\n\n{draft.body}",
    lambda draft: f"# {draft.name}\ndescription：中文冒号\n标签: a\n\n{draft.body}",
    lambda draft: f"# {draft.name}\n\nJust text, and no metadata.\n",
    lambda draft: "Just text.\n",
    lambda draft: f"---\n\n---\n{draft.name}\n",
    lambda draft: f"---\n- a\n- b\n---\n{draft.name}\n",
    lambda draft: f"---\ntitle: {draft.name}\n---\n# {draft.name}\n",
)
FATAL: tuple[tuple[str, Mistake], ...] = (
    ("empty", lambda draft: ""),
    ("empty", lambda draft: "\ufeff \r\n\n"),
    ("no-description", lambda draft: f"---\nname: {draft.name}\n---\n"),
    ("no-description", lambda draft: "---\n"),
    ("no-description", lambda draft: "```\ncode\n"[:4]),
    ("yaml-anchor", lambda draft: f"---\n{draft.lines}\nbase: &base {{a: 1}}\nmore: *base\n---\n{draft.body}"),
    ("yaml-tag", lambda draft: f"---\n{draft.lines}\nrun: !!python/name:os.system\n---\n{draft.body}"),
    ("yaml-merge-key", lambda draft: f"---\n{draft.lines}\n<<: {{a: b}}\n---\n{draft.body}"),
    ("yaml-depth", lambda draft: f"---\n{draft.lines}\ndeep: {'[' * 20}{']' * 20}\n---\n{draft.body}"),
    ("yaml-huge-number", lambda draft: f"---\n{draft.lines}\nbuild: {'7' * 90}\n---\n{draft.body}"),
    ("duplicate-key", lambda draft: f"---\n{draft.lines}\nauthor2: a\nauthor2: b\n---\n{draft.body}"),
    ("control-character", lambda draft: f"---\n{draft.lines}\nnote2: \x1b[31mred\n---\n{draft.body}"),
    ("control-character", lambda draft: f'---\n{draft.lines}\nnote2: "\\x07"\n---\n{draft.body}'),
    ("too-large", lambda draft: f"---\n{draft.lines}\nnote2: {'x' * 70_000}\n---\n{draft.body}"),
)
PLACES: tuple[tuple[str, str], ...] = table(__file__, "PLACES")


def name_of(rng: random.Random, at: int) -> str:
    if rng.random() < 0.15:
        return f"{rng.choice(FOREIGN)}-{at}"
    name = f"{rng.choice(WORDS)}-{rng.choice(WORDS)}-{at}"
    return {0: name.title(), 1: name.replace("-", "_"), 2: name.upper()}.get(rng.randrange(20), name)


def draft_of(rng: random.Random, name: str) -> Draft:
    topic = rng.choice(WORDS)
    description = rng.choice(DESCRIPTIONS).replace("{topic}", topic)
    forms = (
        f"description: {description}",
        f"description: >\n  {description}",
        f"description: |\n  {description}\n  more",
    )
    quoted = "description: '" + description.replace("'", "''") + "'"
    declared = rng.choice([name] * 8 + [f'"{name}"', f"{name} ", name.replace("-", " "), "../" + name])
    chosen = [rng.choice([*forms, quoted, quoted]), *rng.sample(EXTRAS, rng.randrange(5))]
    chosen += [rng.choice(TOOLS)] if rng.random() < 0.4 else []
    lines: dict[str, str] = {}
    for line in [f"name: {declared}", *chosen]:
        keys = [key.replace("_", "-") for key in re.findall(r"(?m)^([\w-]+):", line)]
        if not set(keys) & set(lines):
            lines |= dict.fromkeys(keys, line)
    return Draft(name=name, lines="\n".join(dict.fromkeys(lines.values())), body=rng.choice(BODIES).format(name=name))


def samples() -> list[Sample]:
    rng = random.Random(20260131)
    made = []
    for at in range(COUNT):
        name = name_of(rng, at)
        draft, reason, luck = draft_of(rng, name), "", rng.random()
        written: str | bytes = draft.text
        if luck < 0.06:
            reason, mistake = rng.choice(FATAL)
            written = mistake(draft)
        elif luck < 0.5:
            written = rng.choice(FORGIVEN)(draft)
        place = rng.choice(PLACES)[0].format(name=name, topic=rng.choice(WORDS))
        file = rng.choice(["SKILL.md"] * 9 + ["skill.md"])
        data = written if isinstance(written, bytes) else written.encode()
        made.append(Sample(path=f"{place}/{file}", data=data, reason=reason))
    return made


@pytest.fixture(scope="module")
def corpus() -> list[Sample]:
    return samples()


@pytest.fixture(scope="module")
def blobs(corpus: list[Sample]) -> dict[str, bytes]:
    """A repository around the manifests: the bytes of each path."""
    rng = random.Random(7)
    files = {sample.path: sample.data for sample in corpus}
    for sample in corpus:
        for extra in rng.sample(
            ["references/guide.md", "scripts/run.py", "LICENSE.txt", "assets/a b.png"], rng.randrange(4)
        ):
            files[f"{sample.folder}/{extra}"] = extra.encode()
    for topic in WORDS:
        manifest = b"{broken" if topic == "api" else f'{{"name": "{topic}-tools"}}'.encode()
        files[f"plugins/{topic}-tools/.claude-plugin/plugin.json"] = manifest
    return files | {"README.md": b"# All", "package.json": b"{}", "plugin.json": b"[]"}


@pytest.fixture(scope="module")
def links(corpus: list[Sample]) -> Mapping[str, str]:
    """Links to skills from another place, and to a file that several skills share."""
    some = [sample for sample in corpus if sample.path.startswith("packages/")][:20]
    folders = {f"linked/{sample.folder.rpartition('/')[2]}": f"../{sample.folder}" for sample in some}
    return folders | {f"{sample.folder}/shared": f"{'../' * (sample.folder.count('/') + 1)}shared" for sample in some}


@pytest.fixture(scope="module")
def entries(blobs: dict[str, bytes], links: Mapping[str, str]) -> list[TreeEntry]:
    files = [TreeEntry(path=path, mode="100644", kind="blob", oid=path) for path in [*blobs, "shared/a", "shared/b"]]
    return files + [TreeEntry(path=path, mode="120000", kind="blob", oid=f"to:{to}") for path, to in links.items()]


@pytest.fixture(scope="module")
def found(entries: list[TreeEntry], blobs: dict[str, bytes]) -> tuple[Found, ...]:
    held = {oid: blobs.get(oid, oid.removeprefix("to:").encode()) for oid in candidate_manifests(entries)}
    plugins = read_plugins(entries, held)
    assert sorted({note.code for note in plugins.diagnostics}) == ["plugin-form", "plugin-json"]
    return find_skills(entries, top="corpus", links=held, plugins=plugins)


def read(sample: Sample) -> SkillDef | str:
    """The skill, or the reason why it cannot be loaded."""
    folder = Path(sample.folder)
    try:
        return read_manifest(sample.data, path=Path(sample.path), folder=folder)
    except NotLoadable as error:
        return str(error.data["reason"])


@pytest.mark.requirement("FMT-7", "FMT-9")
def test_every_manifest_is_read_or_has_the_reason_that_was_planted(corpus: list[Sample]) -> None:
    assert len(corpus) >= 2_000
    results = {sample.path: read(sample) for sample in corpus}
    told = {path: result if isinstance(result, str) else "" for path, result in results.items()}
    planted = {sample.path: sample.reason for sample in corpus}
    wrong = {path: (planted[path], told[path]) for path in planted if planted[path] != told[path]}
    assert wrong == {}
    assert set(filter(None, told.values())) == {reason for reason, _ in FATAL}


def test_every_skill_that_is_read_has_a_name_a_description_and_coded_notes(corpus: list[Sample]) -> None:
    seen: Counter[str] = Counter()
    for skill in map(read, corpus):
        if isinstance(skill, SkillDef):
            assert skill.name.strip() and 0 < len(skill.description) <= LISTED_LIMIT
            assert all(CODE.fullmatch(note.code) and note.message.isprintable() for note in skill.diagnostics)
            seen.update(note.code for note in skill.diagnostics)
    assert len(seen) >= 15, seen


@pytest.mark.wide
def test_every_manifest_is_checked_strictly_without_an_exception(corpus: list[Sample]) -> None:
    for sample in corpus:
        notes = validate(sample.data, sample.folder.rpartition("/")[2], {}, strict=True)
        assert all(CODE.fullmatch(note.code) for note in notes)
        assert not sample.reason or any(note.level == "error" for note in notes)


@pytest.mark.wide
def test_every_usable_manifest_has_a_canonical_form_that_stays(corpus: list[Sample]) -> None:
    for sample in corpus[::4]:
        if not sample.reason:
            name = sample.folder.rpartition("/")[2]
            written = to_canonical(sample.data, name)
            assert to_canonical(written, name) == written


@pytest.mark.requirement("LIF-1")
def test_every_skill_of_the_repository_is_found_with_its_role_and_its_plugin(
    corpus: list[Sample], found: tuple[Found, ...]
) -> None:
    assert [skill.folder for skill in found] == sorted((sample.folder for sample in corpus), key=lambda f: f.split("/"))
    expected = {place.partition("/")[0]: role for place, role in PLACES if role != "skill"}
    assert all(skill.role == expected.get(skill.folder.partition("/")[0], "skill") for skill in found)
    plugins = {skill.plugin for skill in found if skill.folder.startswith("plugins/")}
    assert plugins == {f"{topic}-tools" for topic in WORDS if topic != "api"} | {""}
    assert sum(bool(skill.also) for skill in found) == 20


def test_every_skill_can_be_chosen_by_its_path_and_has_a_name_of_its_own(found: tuple[Found, ...]) -> None:
    def different(skill: Found) -> frozenset[object]:
        return frozenset({skill.folder})

    paths = [skill.folder for skill in found if "/" in skill.folder]
    assert [skill.folder for skill in select_skills(found, paths[:300], lambda s: s.name, different)] == paths[:300]
    twins = [*found, *(skill._replace(folder=f"more/{skill.folder}") for skill in found[:300])]
    told = labels(twins, lambda skill: skill.name, "repo")
    assert len({fold(label.name) for label in told.values()}) == len(told) == len(twins)


def test_every_skill_passes_the_gate_or_has_a_code(found: tuple[Found, ...], entries: list[TreeEntry]) -> None:
    whole = Tree(entries)
    links = {oid: oid.removeprefix("to:").encode() for oid in unread_links(found, {}, whole)}
    assert not unread_links(found, links, whole)
    written = [admit(skill, links, whole) for skill in found]
    assert sum(any(file.path == "shared/b" for file in files) for files in written) == 20


def test_names_of_the_corpus_look_like_each_other_only_where_they_do(corpus: list[Sample]) -> None:
    names = sorted({skill.name for skill in map(read, corpus) if isinstance(skill, SkillDef)})
    refused = []
    for name in names[:400]:
        try:
            refuse_lookalike(name, names[:400])
        except Refused:
            refused.append(name)
    assert refused == []


@pytest.mark.wide
@pytest.mark.timeout(60)
def test_all_of_it_takes_less_than_20_seconds(corpus: list[Sample], entries: list[TreeEntry]) -> None:
    began = time.process_time()
    samples()
    found = find_skills(entries, top="corpus")
    for sample in corpus:
        read(sample)
        validate(sample.data, sample.folder.rpartition("/")[2], {}, strict=False)
    select_skills(found, [found[0].folder], lambda skill: skill.name, lambda skill: frozenset([skill.folder]))
    assert time.process_time() - began < SECONDS

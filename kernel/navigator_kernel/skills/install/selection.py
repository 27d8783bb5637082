"""Selects the skills of a source to install, with their names, and the reason for each one left out."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec import Struct

from navigator_kernel.errors import KernelError, NotLoadable, SkillNotFound, UsageProblem
from navigator_kernel.language.wording import say, sentences
from navigator_kernel.skills.install.plans import PlannedSkill, safe_files
from navigator_kernel.skills.source.discover import (
    LINK,
    Found,
    Label,
    all_copies,
    inner_path,
    labels,
    originals,
    select_skills,
    unknown,
)
from navigator_kernel.text import Language, clean, fold

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from navigator_kernel.skills.source.gate import PlannedFile
    from navigator_kernel.skills.source.reading import SourceReader


State = Literal["skipped", "blocked", "pending"]
GROWN = "grown"  # reason of a skill that is here and waits for a yes: it can do more than before

# Rules of the layout: "all" does not mean these skills. All other reasons are failures, which a person can settle, at
# least by `--exclude`; docs/reference/states.md. The sentences `left.*` explain each.
_MEANT = frozenset(
    {
        "broken-copy",
        "copy",
        "elsewhere",
        "example",
        "excluded",
        "hidden",
        "no-skill",
        "no-text",
        "placeholder",
        "submodule",
        "test",
    }
)
_BLOCKS = frozenset({"lookalike", "reserved", "scanner", "too-large", "unsafe-files"})
DANGLING = ("link-dangling",)  # codes of a skill whose only fault is broken links, which are harmless
_BY_CODE = {"not_loadable": "manifest", "skill_not_found": "not-found", "usage": "ambiguous"}
_BY_REASON = {"empty": "no-text", "no-description": "no-text"}


class LeftOut(NamedTuple):
    """A skill or a typed name that was not installed; `codes` give details of the reason."""

    name: str
    path: str
    reason: str
    error: KernelError
    codes: tuple[str, ...] = ()

    @property
    def state(self) -> State:
        return "blocked" if self.reason in _BLOCKS else "pending" if self.reason == GROWN else "skipped"

    @property
    def is_failure(self) -> bool:
        """Whether the skill should have been installed."""
        return self.reason not in _MEANT

    def to_dict(self) -> dict[str, Any]:
        path = clean(self.path, lines=False)
        why = reason_of(self.reason, path, "en")
        why = f"{why}: {', '.join(self.codes)}" if self.codes else why
        head = {"name": clean(self.name, lines=False), "path": path, "state": self.state, "reason": self.reason}
        return {**self.error.to_dict(), **head, "why": why, "failure": self.is_failure}


def reason_of(reason: str, path: str, language: Language) -> str:
    """The reason in a list of many skills."""
    key = f"left.{reason}"
    return say(key, language, folder=path.rpartition("/")[0]) if key in sentences() else reason


def left_out(skill: Found, reason: str, message: str, *, hint: str = "", **facts: Any) -> LeftOut:
    """Creates one for a reason that is known in advance."""
    return LeftOut(skill.name, skill.shown, reason, KernelError(message, hint=hint, **facts))


def failed(skill: Found, error: KernelError) -> LeftOut:
    """Creates one for an error."""
    return told_of(skill.name, skill.shown, error)


def told_of(name: str, path: str, error: KernelError) -> LeftOut:
    data = error.data
    if findings := data.get("findings"):
        errors = (finding["code"] for finding in findings if finding["level"] == "error")
        rules = {str(code) for code in data.get("blocked_by") or errors}
        return LeftOut(name, path, "scanner", error, tuple(sorted(rules)))
    given = str(data.get("reason", ""))
    if isinstance(error, NotLoadable):
        return LeftOut(name, path, _BY_REASON.get(given, "manifest"), error, (given,) if given else ())
    reason, codes = given or _BY_CODE.get(error.code, error.code), tuple(data.get("codes", ()))
    if codes == DANGLING:
        return LeftOut(name, path, "broken-link", error)
    return LeftOut(name, path, reason, error, codes)


_PLACEHOLDERS = frozenset({"readme", "template", "template-skill", "skill-template"})
_ROLES = {"example": "it lies among examples", "test": "it lies among tests", "hidden": "it lies in a hidden folder"}


class Picked(NamedTuple):
    """`left` are the skills that were meant but are not among `skills`; `by_path` are the folders of those that were
    named by path, `files` are the files of each skill that may be written, or None if these are not known yet."""

    skills: Sequence[Found]
    left: list[LeftOut]
    by_path: frozenset[str] = frozenset()
    files: Mapping[str, tuple[PlannedFile, ...]] | None = None


class _Known(NamedTuple):
    """By folder: the names of the skills of a source that can be installed, the originals of their copies, the files
    that may be written, and the other skills."""

    labels: Mapping[str, Label]
    copies: Mapping[str, Found]
    files: Mapping[str, tuple[PlannedFile, ...]]
    others: Mapping[str, LeftOut]


class Selection(Struct, dict=True):
    """Selects from the skills of one source."""

    reader: SourceReader

    @property
    def is_lone(self) -> bool:
        """Whether the source has exactly one skill."""
        skills = self.reader.found
        meant = [skill for skill in skills if skill.role == "skill"] or skills
        return len({fold(skill.name) for skill in meant}) == 1 and len(originals(meant, self.reader.contents)) == 1

    def everything(self, exclude: Sequence[str] = ()) -> Picked:
        """All skills except those that `exclude` names by their exact name or path; SkillNotFound for a name without a
        skill. A problem with one skill does not exclude the others."""
        unwanted = self._excluded(exclude)
        chosen: list[Found] = []
        left: list[LeftOut] = []
        for skill in self.reader.found:
            original, label = self._known.copies.get(skill.folder), self._known.labels.get(skill.folder)
            if why := unwanted.get(skill.folder):
                left.append(why)
            elif original is not None:
                left.append(left_out(skill, "copy", f"it is a copy of {original.shown!r}", copy_of=original.shown))
            elif label is not None and not label.name:
                hint = f"--skill {clean(skill.shown, lines=False)} --as NAME"
                left.append(left_out(skill, "no-name-left", f"no name is free for {skill.shown!r}", hint=hint))
            elif why := self._known.others.get(skill.folder):
                left.append(why)
            else:
                chosen.append(skill)
        return Picked(chosen, left, files=self._known.files)

    def choices(self) -> list[tuple[str, str]]:
        """Each skill that could be installed: the word that means only this skill, and its description, both as written
        in the source."""
        reader = self.reader
        meant = [skill for skill in reader.found if skill.role == "skill"] or reader.found
        distinct = originals([skill for skill in meant if reader.is_usable(skill)], reader.contents)
        called = Counter(fold(reader.named(skill)) for skill in distinct)
        choices = []
        for skill in distinct:
            name = reader.named(skill)
            known = reader.known(skill)
            choices.append((name if called[fold(name)] == 1 else skill.shown, known.description if known else ""))
        return sorted(choices)

    def named(self, words: Sequence[str], exclude: Sequence[str] = ()) -> Picked:
        """The skills that `words` name. If there are several words, one that means no skill or several skills does
        not exclude the others."""
        chosen: dict[str, Found] = {}
        by_path: set[str] = set()
        left: list[LeftOut] = []
        for word in words:
            try:
                meant = self._meant(word)
            except (SkillNotFound, UsageProblem) as error:
                if len(words) == 1:
                    raise
                left.append(told_of(word, "", error))
                continue
            chosen |= {skill.folder: skill for skill in meant if skill.folder not in chosen}
            by_path |= {skill.folder for skill in meant if skill.lies_at(inner_path(word))}
        unwanted = self._excluded(exclude)
        left += [unwanted[folder] for folder in chosen if folder in unwanted]
        skills = [skill for folder, skill in chosen.items() if folder not in unwanted]
        return Picked(skills, left, frozenset(by_path))

    def name_for(self, plan: PlannedSkill, skill: Found) -> str:
        """The name under which a skill is installed, by name or with all others; empty if it is its own name.

        All manifests are read only if several skills may have the name: its folder has another name, or another folder
        has the same one.
        """
        own = fold(plan.receipt.name)
        if fold(skill.name) == own and self._folders_called[own] == 1:
            return ""
        label = self._known.labels.get(skill.folder)
        return label.name if label and label.qualified else ""

    @cached_property
    def _folders_called(self) -> Counter[str]:
        return Counter(fold(skill.name) for skill in self.reader.found)

    @cached_property
    def _known(self) -> _Known:
        """The proper skills; examples, tests, hidden skills and placeholders only if there is nothing else."""
        reader = self.reader
        alone = len(reader.found) == 1 or all(skill.role != "skill" for skill in reader.found)
        others: dict[str, LeftOut] = {}
        for skill in reader.found:
            manifest = reader.manifest(skill) if alone or skill.role == "skill" else None
            if manifest is None:
                others[skill.folder] = left_out(skill, skill.role, _ROLES[skill.role])
            elif not alone and {fold(skill.name), fold(reader.named(skill))} & _PLACEHOLDERS:
                why = "its name says that it is to be read or copied, not used"
                others[skill.folder] = left_out(skill, "placeholder", why)
            elif isinstance(manifest, KernelError):
                others[skill.folder] = failed(skill, manifest)
            elif not alone and not manifest.sop.strip() and not manifest.command:
                others[skill.folder] = left_out(skill, "no-text", "it has neither a text nor a command")
        files, refused = safe_files([skill for skill in reader.found if skill.folder not in others], reader)
        others |= {skill.folder: failed(skill, error) for skill, error in refused}
        safe = [skill for skill in reader.found if skill.folder in files]

        def contents(skill: Found) -> frozenset[object]:
            return frozenset((file.path, file.mode, reader.fingerprint(file.oid)) for file in files[skill.folder])

        copies = all_copies(safe, reader.named, contents)
        own = [skill for skill in safe if skill.folder not in copies]
        labelled = labels(own, reader.named, reader.source.base_name)
        names = {fold(reader.named(skill)): skill for skill in own}
        for skill in reader.found:
            if skill.manifest.mode == LINK and skill.folder in others and (one := names.get(fold(skill.name))):
                message = f"its manifest is a link that leads nowhere; {one.shown!r} has the name"
                others[skill.folder] = left_out(skill, "broken-copy", message, copy_of=one.shown)
        return _Known(labelled, copies, files, others)

    def _meant(self, word: str) -> Sequence[Found]:
        """The skills that a word means, by name or qualified name."""
        reader = self.reader
        try:
            return select_skills(reader.found, [word], reader.named, reader.contents, reader.is_usable)
        except SkillNotFound:
            if word in reader.unread:
                raise reader.unread[word] from None
            if word in {skill.plugin for skill in reader.found}:
                return self._meant(f"{word}:*")
            seconds = {folder: label for folder, label in self._known.labels.items() if label.qualified}
            called = {fold(name): folder for folder, label in seconds.items() for name in label}
            if fold(word) not in called:
                raise
            return [skill for skill in reader.found if skill.folder == called[fold(word)]]

    def _excluded(self, words: Sequence[str]) -> dict[str, LeftOut]:
        """The folders of the skills that `words` exclude."""
        unwanted: dict[str, LeftOut] = {}
        for word in words:
            hits = [
                skill
                for skill in self.reader.found
                if skill.lies_at(inner_path(word)) or fold(word) in map(fold, self._names(skill))
            ]
            if not hits:
                raise unknown(word, [name for skill in self.reader.found for name in self._names(skill)])
            unwanted |= {skill.folder: left_out(skill, "excluded", f"--exclude {word}") for skill in hits}
        return unwanted

    def _names(self, skill: Found) -> Iterator[str]:
        yield from filter(None, (skill.name, self.reader.named(skill), *self._known.labels.get(skill.folder, ())))

"""The router: tier 1 by names and verbs, tier 2 by words and meaning (X-1, COV-1..7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import finalize

from msgspec import Struct

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.errors import KernelError
from navigator_kernel.routing.entries import with_words_of_paths
from navigator_kernel.routing.index import RoutingIndex
from navigator_kernel.routing.meaning import SemanticRanker
from navigator_kernel.routing.verbs import Names, changes_skills, parse_command
from navigator_kernel.text import clean, fold, warn
from navigator_kernel.values.route import Action, Retrieval

if TYPE_CHECKING:
    from navigator_kernel.ports import Catalogue, KnownSkills
    from navigator_kernel.values.resource import SkillDef


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
        names = Names(catalogue=self.catalogue, mapping=self.mapping, scripts=self.scripts, servers=self.servers)
        return parse_command(clean(text, lines=False), names)

    def retrieve(self, text: str, k: int = 12, files: Sequence[str] = ()) -> Retrieval:
        skills = tuple(s for s in self.catalogue.list_resources() if s.type == "skill" and s.implicit)
        asked = with_words_of_paths(text, files, skills) if files else text
        return _unharmed(self._retrieved(skills, asked, k), text)

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


def _unharmed(found: Retrieval, text: str) -> Retrieval:
    """Drops the skills that a message names if it is an order to remove, enable or disable: it must not run them."""
    if not changes_skills(text):
        return found
    left = tuple(one for one in found.candidates if fold(one.name) not in fold(text))
    if len(left) == len(found.candidates):
        return found
    return Retrieval(candidates=left, band="direct", reason="unlikely", wanted=found.wanted)

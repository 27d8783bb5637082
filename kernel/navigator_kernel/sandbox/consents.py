"""Consents of the person: for one run, or for one digest permanently, stored outside every project. Hosts that share a
project store permanent ones in its database; what a host's own person agreed to before counts on that host only."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from navigator_kernel.adapters.files.database import file_lock
from navigator_kernel.errors import ConsentNeeded, Damaged
from navigator_kernel.ports import NullAudit
from navigator_kernel.values.rights import basis_of
from navigator_kernel.values.standing import Need

if TYPE_CHECKING:
    from navigator_kernel.ports import Audit, Clock, SharedStores, Writer

VERSION = 2
TABLES = (("CREATE TABLE trusted (subject TEXT PRIMARY KEY, entry TEXT NOT NULL)",),)
BY_INSTALLING = "installed by command"  # the note of trust in version 1, which `update` and `--frozen` also gave
ASKED_EACH_TIME = "script:"  # an earlier version stored trust in a project's scripts, which no longer counts
FEW = 10  # up to this many subjects get an entry each
TOGETHER = 8_000  # characters of subjects in one entry: even escaped, they fit its line uncut
KEPT = 1_000  # runs whose consents are remembered
EVERYTHING = "*"  # never stored: a typed `--yes` covers everything


class ConsentStore(Struct):
    """A subject ends in `@sha256:…`; other bytes are another subject. Several threads may use it."""

    file: Path
    writer: Writer
    clock: Clock
    audit: Audit = field(default_factory=NullAudit)
    shared: SharedStores | None = None
    _runs: dict[str, dict[str, bool]] = field(default_factory=dict)  # subject: whether it is for one execution
    _guard: RLock = field(default_factory=RLock)

    def allow(self, run: str, subject: str, *, once: bool = False) -> None:
        if subject != EVERYTHING:  # a subject from a file never covers everything
            with self._guard:
                agreed = self._agreed(run)
                agreed[subject] = once and agreed.get(subject, True)

    def allow_orders(self, run: str) -> None:
        with self._guard:
            self._agreed(run)[EVERYTHING] = False

    def left(self, run: str, subjects: Sequence[str]) -> tuple[str, ...]:
        return tuple(subject for subject in subjects if subject in self._runs.get(run, {}))

    def _agreed(self, run: str) -> dict[str, bool]:
        """The subjects that were agreed to for a run. If there are more than KEPT runs, the oldest is forgotten."""
        subjects = self._runs.setdefault(run, {})
        if len(self._runs) > KEPT:
            del self._runs[next(iter(self._runs))]
        return subjects

    def require(
        self,
        run: str,
        subject: str,
        detail: str,
        *,
        by_name: bool = False,
        for_order: bool = False,
        lasting: str = "",
        unless: Sequence[str] = (),
        also: Sequence[Need] = (),
        **facts: Any,
    ) -> None:
        own = Need(subject, detail, for_order, (lasting, *unless) if lasting else tuple(unless))
        needs = (*also, own)
        with self._guard:  # a consent for one execution is used once
            agreed = self._runs.get(run, {})
            by = {need: self._basis(agreed, need.subject, need.unless, by_name=by_name) for need in needs}
            missing = [need for need in needs if not by[need]]
            if not missing:
                for used in {used for need in needs if not need.for_order for used in (need.subject, lasting)}:
                    if agreed.get(used):
                        del agreed[used]
        for need in missing or needs:
            if missing:
                self.audit.record("refused", run=run, subject=need.subject, why="nobody agreed to it")
            else:
                self.audit.record("authorised", run=run, subject=need.subject, by=by[need])
        if missing:
            subjects = [need.subject for need in missing]
            if own in missing:  # it is named first, because a yes for longer is a yes to it
                subjects = [*([lasting] if lasting else []), subject, *subjects[:-1]]
            facts |= {"also": subjects[1:]} if subjects[1:] else {}
            question = "; ".join(need.question for need in missing)
            raise ConsentNeeded(question, hint="agree with --yes, or trust it by digest", subject=subjects[0], **facts)

    def _basis(self, agreed: dict[str, bool], subject: str, wider: Sequence[str], *, by_name: bool) -> str:
        """What allows `subject`, or "". A yes to one of `wider` counts if it is for more than one execution."""
        if subject in agreed:
            return "a yes"
        more = next((one for one in wider if agreed.get(one) is False), "")
        if more:
            return basis_of(more)
        if EVERYTHING in agreed and not by_name:
            return "--yes"
        return "trust" if any(map(self.trusted, (subject, *wider))) else ""

    def trusted(self, subject: str) -> bool:
        return subject in self._trusted() and not subject.startswith(ASKED_EACH_TIME)

    def trust(self, *subjects: str, note: str) -> None:
        self._record("trusted", subjects, note=note)
        self._change({subject: {"note": note, "ts": self.clock.now()} for subject in subjects})

    def distrust(self, *subjects: str) -> None:
        self._record("distrusted", subjects)
        self._change(dict.fromkeys(subjects))

    def subjects(self) -> tuple[str, ...]:
        return tuple(sorted(self._trusted()))

    def _record(self, event: str, subjects: Sequence[str], **facts: Any) -> None:
        """Records an entry for each of a few subjects; for many, as in a large install, one entry has as many as fit
        its line."""
        groups = [[subject] for subject in subjects] if len(subjects) <= FEW else _grouped(subjects)
        for group in groups:
            named: dict[str, Any] = {"subject": group[0]} if len(group) == 1 else {"subjects": group}
            self.audit.record(event, **named, **facts)

    def _change(self, entries: dict[str, Any]) -> None:
        if self.shared is not None:
            with self.shared.open("consents", TABLES) as database:
                for subject, entry in entries.items():
                    database.execute("DELETE FROM trusted WHERE subject = ?", (subject,))
                    if entry is not None:
                        database.execute("INSERT INTO trusted VALUES (?, ?)", (subject, json.dumps(entry)))
            entries = {subject: None for subject in entries.keys() & self._own() if entries[subject] is None}
            if not entries:
                return
        self.writer.make_folder(self.file.parent)
        with file_lock(self.file.with_suffix(".lock")):
            changed = {**self._own(), **entries}
            trusted = {subject: entry for subject, entry in sorted(changed.items()) if entry is not None}
            body = json.dumps({"v": VERSION, "trusted": trusted}, ensure_ascii=False, indent=1)
            self.writer.write(self.file, body.encode(), mode=0o600)

    def _trusted(self) -> dict[str, Any]:
        trusted = self._own()
        if self.shared is not None:
            with self.shared.open("consents", TABLES, beside=True) as database:
                rows = database.execute("SELECT subject, entry FROM trusted").fetchall()
            trusted |= {subject: json.loads(entry) for subject, entry in rows}
        return trusted

    def _own(self) -> dict[str, Any]:
        """What this host's person agreed to, without what is shared."""
        try:
            body = json.loads(self.file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise Damaged(
                f"{str(self.file)!r} cannot be read: {error}",
                hint="fix or remove it; you will be asked for trust again",
            ) from error
        trusted = body.get("trusted") if isinstance(body, dict) else None
        if not isinstance(trusted, dict):
            raise Damaged(
                f"{str(self.file)!r} is not a record of trust", hint="remove it; you will be asked for trust again"
            )
        if body.get("v", 1) == 1:  # it noted an installation as consent
            return {
                subject: entry
                for subject, entry in trusted.items()
                if not (isinstance(entry, dict) and entry.get("note") == BY_INSTALLING)
            }
        return trusted


def _grouped(subjects: Iterable[str]) -> Iterator[list[str]]:
    group: list[str] = []
    for subject in subjects:
        if group and sum(map(len, group)) + len(subject) > TOGETHER:
            yield group
            group = []
        group.append(subject)
    if group:
        yield group

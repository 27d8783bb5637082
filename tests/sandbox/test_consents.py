"""What the store of consents keeps and what it records."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from dispatch.orders import StillClock
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.processes.process import ProcessRunner
from navigator_kernel.errors import ConsentNeeded
from navigator_kernel.sandbox.consents import BY_INSTALLING, FEW, KEPT, TOGETHER, ConsentStore
from navigator_kernel.sandbox.guard import ConsentGate
from navigator_kernel.values.job import Job
from navigator_kernel.values.standing import Need
from tools.test_desk import Record

pytestmark = pytest.mark.requirement("SAF-1")


@pytest.fixture
def record() -> Record:
    return Record()


@pytest.fixture
def book(tmp_path: Path, record: Record) -> ConsentStore:
    return ConsentStore(tmp_path / "state/trust.json", FolderWriter([tmp_path]), StillClock(), record)


def of_version_1(book: ConsentStore, **notes: str) -> None:
    book.file.parent.mkdir()
    book.file.write_text(json.dumps({"trusted": {name: {"note": note} for name, note in notes.items()}}))


def test_trust_that_an_install_recorded_in_version_1_no_longer_counts(book: ConsentStore) -> None:
    of_version_1(book, typed="by hand", left=BY_INSTALLING, other="by hand")
    assert (book.trusted("typed"), book.trusted("left")) == (True, False)
    assert book.subjects() == ("other", "typed")


def test_the_first_write_upgrades_a_version_1_store_so_that_nothing_more_is_dropped(book: ConsentStore) -> None:
    of_version_1(book, typed="by hand", left=BY_INSTALLING)
    book.trust("new", note=BY_INSTALLING)
    assert book.subjects() == ("new", "typed")
    assert book.file.stat().st_mode & 0o777 == 0o600


def test_a_few_subjects_have_an_entry_each(book: ConsentStore, record: Record) -> None:
    names = [f"s{at}" for at in range(FEW)]
    book.trust(*names, note="why")
    assert record.entries == [("trusted", {"subject": name, "note": "why"}) for name in names]


def test_many_subjects_share_entries_that_fit_a_line(book: ConsentStore, record: Record) -> None:
    names = [f"{at:03}{'x' * (TOGETHER // 4 - 3)}" for at in range(FEW)]
    book.distrust(*names, "last")
    told = [facts.get("subjects", [facts.get("subject")]) for _, facts in record.entries]
    assert [len(group) for group in told] == [4, 4, 3]
    assert [one for group in told for one in group] == [*names, "last"]
    assert {event for event, _ in record.entries} == {"distrusted"}


def test_one_that_fills_an_entry_alone_is_named_alone(book: ConsentStore, record: Record) -> None:
    names = ["x" * TOGETHER, *(f"s{at}" for at in range(FEW))]
    book.trust(*names, note="why")
    assert [facts.get("subject", facts.get("subjects")) for _, facts in record.entries] == [names[0], names[1:]]


@pytest.mark.parametrize(
    ("agreed", "by"), [("it", "a yes"), ("wide", "a yes to wide"), ("wider", "a yes to wider"), ("", "--yes")]
)
def test_an_authorisation_is_recorded_with_the_consent_that_allowed_it(
    book: ConsentStore, record: Record, agreed: str, by: str
) -> None:
    book.allow("run", agreed) if agreed else book.allow_orders("run")
    book.require("run", "it", "do it", unless=("wide", "wider"))
    assert record.entries == [("authorised", {"run": "run", "subject": "it", "by": by})]


def test_a_yes_of_another_run_does_not_count(book: ConsentStore, record: Record) -> None:
    book.allow("other", "it")
    with pytest.raises(ConsentNeeded) as caught:
        book.require("run", "it", "do it", unless=("wide",), command="x")
    assert (caught.value.message, caught.value.data["subject"], caught.value.data["command"]) == ("do it", "it", "x")
    assert record.entries == [("refused", {"run": "run", "subject": "it", "why": "nobody agreed to it"})]


def test_the_oldest_of_too_many_runs_is_forgotten(book: ConsentStore) -> None:
    for at in range(KEPT + 1):
        book.allow(f"run-{at}", "it")
    book.require("run-1", "it", "do it")
    with pytest.raises(ConsentNeeded):
        book.require("run-0", "it", "do it")


def test_trust_in_a_script_of_a_project_counts_for_nothing(book: ConsentStore) -> None:
    book.trust("script:x@sha256:0", "type_a:x@sha256:0", note="why")
    assert [book.trusted(one) for one in ("script:x@sha256:0", "type_a:x@sha256:0")] == [False, True]


@pytest.mark.requirement("JIT-12")
def test_a_yes_for_once_is_used_up_by_one_execution(book: ConsentStore) -> None:
    book.allow("run", "it", once=True)
    book.require("run", "it", "do it")
    with pytest.raises(ConsentNeeded):
        book.require("run", "it", "do it")
    book.allow("run", "it", once=True)
    book.require("run", "it", "do it")


@pytest.mark.requirement("JIT-12")
def test_a_yes_for_once_is_used_up_by_one_of_many_threads(book: ConsentStore) -> None:
    def executions(at: int) -> int:
        with suppress(ConsentNeeded):
            book.require(f"run-{at // 8}", "it", "do it")
            return 1
        return 0

    for run in range(200):
        book.allow(f"run-{run}", "it", once=True)
    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(executions, range(1_600))) == 200


@pytest.mark.requirement("JIT-12")
def test_many_threads_may_agree_to_more_runs_than_are_kept(book: ConsentStore) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda at: book.allow(f"run-{at}", "it"), range(3 * KEPT)))
    assert sum(book.left(f"run-{at}", ["it"]) == ("it",) for at in range(3 * KEPT)) == KEPT


@pytest.mark.requirement("JIT-12")
def test_a_yes_to_a_kind_of_access_holds_for_the_run_and_no_other(book: ConsentStore) -> None:
    book.allow("run", "it", once=True)
    for _ in range(3):
        book.require("run", "it", "read", for_order=True)
    assert (book.left("run", ["it", "else"]), book.left("other", ["it"])) == (("it",), ())


@pytest.mark.requirement("JIT-12")
def test_a_yes_for_once_does_not_weaken_one_that_lasts(book: ConsentStore) -> None:
    book.allow("run", "it")
    book.allow("run", "it", once=True)
    for _ in range(3):
        book.require("run", "it", "do it")


@pytest.mark.requirement("JIT-12")
def test_all_that_is_missing_is_asked_in_one_question_and_nothing_is_used_up_before(book: ConsentStore) -> None:
    also = (Need("read@sha256:0", "read it", for_order=True), Need("again:it", "repeat it"))
    book.allow("run", "again:it", once=True)
    with pytest.raises(ConsentNeeded) as caught:
        book.require("run", "it#1", "change it", lasting="it@sha256:0", also=also)
    assert caught.value.message == "read it; change it"
    assert (caught.value.data["subject"], caught.value.data["also"]) == ("it@sha256:0", ["it#1", "read@sha256:0"])
    assert book.left("run", ["again:it"])
    for subject in (caught.value.data["subject"], *caught.value.data["also"]):
        book.allow("run", subject, once=True)
    book.require("run", "it#1", "change it", lasting="it@sha256:0", also=also)
    assert book.left("run", ["it#1", "it@sha256:0", "again:it", "read@sha256:0"]) == ("read@sha256:0",)


@pytest.mark.requirement("JIT-12")
def test_a_yes_for_once_to_a_wider_subject_covers_no_other_call(book: ConsentStore) -> None:
    book.allow("run", "scripts@sha256:0", once=True)
    with pytest.raises(ConsentNeeded):
        book.require("run", "it#1", "do it", lasting="scripts@sha256:0")
    book.allow("run", "scripts@sha256:0")
    for call in ("it#1", "it#2"):
        book.require("run", call, "do it", lasting="scripts@sha256:0")


@pytest.mark.requirement("SAF-3", "JIT-12")
def test_network_and_packages_are_one_question_and_a_yes_to_it_is_for_one_process(
    book: ConsentStore, tmp_path: Path
) -> None:
    gate = ConsentGate(book, ProcessRunner())
    wants: dict[str, Any] = {"wants": ("network", "packages"), "packages": ("numpy",)}
    job = Job(
        actor="tool", subject="s", digest="#1", run="run", argv=("touch", "a b"), cwd=tmp_path, timeout=20, **wants
    )
    with pytest.raises(ConsentNeeded) as caught:
        asyncio.run(gate.run(job))
    question, subject = caught.value.message, str(caught.value.data["subject"])
    assert question.startswith("run s: touch 'a b'; let it") and question.count("; let it") == 2 and "numpy" in question
    book.allow("run", subject, once=True)
    assert asyncio.run(gate.run(job)).exit_code == 0 and (tmp_path / "a b").exists()
    with pytest.raises(ConsentNeeded):
        asyncio.run(gate.run(job))

"""Several hosts share one project in Postgres: what one began another continues, and what ends badly ends once.

A host is a home folder and a checkout of its own; its commands are processes of their own.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cli.support import environment
from cut_link import link_to
from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.stores.journal import VERSIONS, SqliteJournal
from navigator_kernel.errors import Busy, KernelError, StorageFailed, UsageProblem
from navigator_postgres.plugin import PROJECT_ID, URL
from navigator_postgres.stores import PostgresStores
from postgres_server import PostgresServer, new_project
from workflows.crashing import DOUBLES, DRAWS, KILLED, LIMIT, TAKES_TEXT, WAITS, Box, box_in, ended, wait_for

pytestmark = [pytest.mark.ci, pytest.mark.wide]

TWO = "run draw-number and then run double-it"
LEASE = 2.0  # seconds, as `new_project` sets it
TABLES = (("CREATE TABLE made (name TEXT NOT NULL)", "INSERT INTO made VALUES ('a')"),)


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch, postgres: str) -> PostgresStores:
    return new_project(monkeypatch, postgres)


@pytest.fixture
def first(tmp_path: Path, project: PostgresStores) -> Box:
    """The first host's checkout, with skills that may not be repeated."""
    (tmp_path / "first").mkdir()
    box = box_in(tmp_path / "first")
    box.skill("draw-number", DRAWS)
    box.skill("double-it", DOUBLES, takes=TAKES_TEXT)
    return box


@pytest.fixture
def second(tmp_path: Path, first: Box) -> Box:
    """Another host's checkout."""
    (tmp_path / "second").mkdir()
    box = box_in(tmp_path / "second")
    shutil.copytree(first.place.root / ".claude", box.place.root / ".claude")
    return box


@pytest.fixture
def other_home(tmp_path: Path) -> dict[str, str]:
    """The environment of the other host: nothing of the first one's home is there."""
    home = tmp_path / "home-2"
    home.mkdir()
    names = ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")
    return {name: str(home if name == "HOME" else home / name.lower()) for name in names}


def test_a_run_of_one_host_is_seen_and_continued_on_another(
    first: Box, second: Box, other_home: dict[str, str]
) -> None:
    token = first.proposed(TWO, session="work")
    assert second.place.json("session", "list", env=other_home)["sessions"][0]["waiting"] == "approval"
    assert second.place.json("workflow", "approve", token, env=other_home)["exit_code"] == 0
    assert first.run(token)["state"] == "done"
    assert first.tries(token) == [(1, 1, "success"), (2, 1, "success")]
    shown = [box.place.json("why", token, env=env)["run"] for box, env in ((first, None), (second, other_home))]
    assert shown == [token, token]
    assert (first.acts(token), second.acts(token)) == ({}, {"draw-number": 1, "double-it": 1})


def test_a_killed_owners_run_is_taken_over_when_its_lease_ends(
    first: Box, second: Box, other_home: dict[str, str]
) -> None:
    token = first.proposed(TWO)
    assert first.dying("after end:1").run("workflow", "approve", token).code == KILLED
    killed = time.monotonic()
    while (done := second.place.run("workflow", "resume", token, env=other_home)).code == 5:
        time.sleep(0.1)
    assert done.code == 0, done
    assert time.monotonic() - killed < LEASE + 2 + 10  # a command takes some of them
    assert first.tries(token) == [(1, 1, "success"), (2, 1, "success")]
    assert second.acts(token) == {"double-it": 1}


@pytest.mark.parametrize("failure", ["frozen", "cut off from the database"])
def test_an_owner_that_comes_back_after_its_lease_writes_nothing(
    first: Box, second: Box, other_home: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    """X-6"""
    token, url = first.proposed(TWO), urlsplit(os.environ[URL])
    with link_to(url.port or 0) as link:
        with monkeypatch.context() as linked:
            linked.setenv(URL, url._replace(netloc=f"ann@127.0.0.1:{link.port}").geturl())
            owner = first.start("workflow", "approve", token, place=first.dying("before end:1", tmp_path))
        wait_for(lambda: (tmp_path / "reached").exists())
        if failure == "frozen":
            owner.send_signal(signal.SIGSTOP)
        link.is_cut = failure != "frozen"
        time.sleep(LEASE + 0.5)
        assert second.place.run("workflow", "abort", token, env=other_home).code == 0
        before = first.run(token)
        (tmp_path / "go").touch()
        owner.send_signal(signal.SIGCONT)
        link.is_cut = False
        done = ended(owner)
    assert done.code == 5, done
    assert first.run(token) == before
    assert before["state"] == "aborted" and first.tries(token) == [(1, 1, "under way")]


def test_a_run_that_another_host_carries_out_is_stopped_there_and_aborted(
    first: Box, second: Box, other_home: dict[str, str]
) -> None:
    """X-6"""
    first.skill("draw-number", WAITS)
    token = first.proposed(TWO)
    owner = first.start("workflow", "approve", token)
    wait_for(lambda: first.find(token, "begun"))
    assert second.place.run("workflow", "abort", token, env=other_home).code == 0
    assert ended(owner).code == 130
    assert first.run(token)["state"] == "aborted" and first.running(token) == set()


def test_a_living_owner_keeps_its_run_for_longer_than_a_lease(
    first: Box, second: Box, other_home: dict[str, str], tmp_path: Path
) -> None:
    token = first.proposed(TWO)
    owner = first.start("workflow", "approve", token, place=first.dying("before end:1", tmp_path))
    wait_for(lambda: (tmp_path / "reached").exists())
    time.sleep(2 * LEASE)
    assert second.place.run("workflow", "resume", token, env=other_home).code == 5
    (tmp_path / "go").touch()
    assert ended(owner).code == 0
    assert first.run(token)["state"] == "done"


@pytest.mark.parametrize("shift", [-3600, 3600])
def test_a_host_whose_clock_is_an_hour_wrong_takes_a_run_when_its_lease_ends_and_not_before(
    first: Box, second: Box, other_home: dict[str, str], tmp_path: Path, shift: int
) -> None:
    paths = f"{Path(__file__).parents[1] / 'wrong_clock'}:{environment()['PYTHONPATH']}"
    wrong = {**other_home, "PYTHONPATH": paths, "CLOCK_SHIFT": str(shift)}
    token = first.proposed(TWO)
    owner = first.start("workflow", "approve", token, place=first.dying("before end:2", tmp_path))
    wait_for(lambda: (tmp_path / "reached").exists())
    assert second.place.run("workflow", "resume", token, env=wrong).code == 5
    owner.kill()
    owner.communicate()
    while (done := second.place.run("workflow", "resume", token, env=wrong)).code == 5:
        time.sleep(0.1)
    assert done.code == 9, done  # the second step was under way: it is asked about
    assert first.tries(token)[0] == (1, 1, "success") and first.acts(token) == {"draw-number": 1, "double-it": 1}


def test_what_one_host_agreed_to_counts_on_all_and_is_withdrawn_on_all(
    first: Box, second: Box, other_home: dict[str, str]
) -> None:
    asks, agreed = 9, 0
    assert second.place.run("ask", "/draw-number", env=other_home).code == asks
    assert first.place.run("skill", "trust", "draw-number").code == 0
    assert second.place.run("ask", "/draw-number", "--session", "new", env=other_home).code == agreed
    assert second.place.run("skill", "distrust", "draw-number", env=other_home).code == 0
    assert first.place.run("ask", "/draw-number").code == asks


def test_the_log_of_each_host_is_read_on_all_and_only_its_own_is_checked(
    first: Box, second: Box, other_home: dict[str, str]
) -> None:
    assert first.place.run("skill", "trust", "draw-number").code == 0
    assert second.place.run("ask", "/double-it 3", env=other_home).code == 9
    for box, env, own in ((first, None, "trusted"), (second, other_home, "refused")):
        entries = [one for one in box.place.json("log", env=env)["entries"] if "subject" in one]
        assert {(one["event"], "host" in one) for one in entries} == {
            ("trusted", own != "trusted"),
            ("refused", own != "refused"),
        }
    assert "none of this machine was changed" in first.place.run("log").err


MIGRATE = """
import sys
from navigator_postgres.plugin import kernel_register_stores
sys.stdin.readline()
with kernel_register_stores(None).open("made", eval(sys.argv[1]), beside=True) as database:
    print(database.execute("SELECT count(*) FROM made").fetchone()[0])
"""


def test_hosts_that_migrate_at_once_run_each_migration_once(project: PostgresStores) -> None:
    pipe = subprocess.PIPE
    argv = [sys.executable, "-c", MIGRATE, repr(TABLES)]
    hosts = [subprocess.Popen(argv, env=environment(), stdin=pipe, stdout=pipe, stderr=pipe) for _ in range(6)]
    for host in hosts:
        assert host.stdin is not None
        host.stdin.write(b"\n")
        host.stdin.flush()
    done = [ended(host) for host in hosts]
    assert [(one.code, one.out) for one in done] == [(0, "1\n")] * 6, done


def test_newer_tables_are_refused_and_older_ones_brought_up_to_date(project: PostgresStores) -> None:
    url, name = os.environ[URL], os.environ[PROJECT_ID]
    with project.open("made", TABLES) as database:
        database.execute("INSERT INTO made VALUES ('b')")
    newer = (*TABLES, ("ALTER TABLE made ADD COLUMN size INTEGER NOT NULL DEFAULT 3",))
    with PostgresStores(url, name).open("made", newer, beside=True) as database:
        assert database.execute("SELECT name, size FROM made ORDER BY name").fetchall() == [("a", 3), ("b", 3)]
    older = PostgresStores(url, name).open("made", TABLES)
    with pytest.raises(KernelError, match="made by a newer navigator: version 2, and this one knows 1"), older:
        pass


def test_a_migration_that_fails_leaves_nothing(project: PostgresStores) -> None:
    broken = ((*TABLES[0], "CREATE TABLE made (again TEXT)"),)
    with pytest.raises(StorageFailed), project.open("made", broken):
        pass
    with project.open("made", TABLES, beside=True) as database:
        assert database.execute("SELECT count(*) FROM made").fetchall() == [(1,)]


def test_a_database_that_is_gone_for_seconds_loses_nothing(
    first: Box, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    token = first.proposed(TWO)
    owner = first.start("workflow", "approve", token, place=first.dying("before end:1", tmp_path))
    wait_for(lambda: (tmp_path / "reached").exists())
    postgres_server.stop()
    again = threading.Timer(6, postgres_server.start)
    again.start()
    try:
        (tmp_path / "go").touch()
        assert ended(owner).code == 0
    finally:
        again.join(LIMIT)
    assert first.tries(token) == [(1, 1, "success"), (2, 1, "success")]


@pytest.mark.parametrize(
    "url", ["postgresql://ann:hush-5Wq@127.0.0.1:9/x", "postgresql://ann:hush-5Wq@127.0.0.1:9/x?no=such&option"]
)
def test_a_database_that_cannot_be_reached_is_a_typed_error_without_the_password(
    first: Box, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv(URL, url)
    for words in (["session", "list"], ["workflow", "list", "--json"], ["ask", "run draw-number"]):
        done = first.place.run(*words)
        assert done.code == 1, done
        assert "the project's database cannot be used" in done.out + done.err
        assert "hush-5Wq" not in done.out + done.err
    found = [path for path in first.place.root.rglob("*") if path.is_file() and b"hush-5Wq" in path.read_bytes()]
    assert found == []


@pytest.mark.parametrize("without", [URL, PROJECT_ID])
def test_without_a_url_no_host_goes_on_alone_and_without_an_id_it_is_one_machine(
    first: Box, monkeypatch: pytest.MonkeyPatch, without: str
) -> None:
    first.proposed(TWO, session="work")
    monkeypatch.delenv(without)
    done = first.place.run("session", "list")
    if without == URL:
        assert done.code == 1 and "NAVIGATOR_PROJECT_ID is set, and no plugin has a database for it" in done.err
    else:
        assert done.code == 0 and "work" not in done.out


@pytest.mark.parametrize(("name", "lease"), [("", "2"), ("Shop", "2"), ('a"b', "2"), ("x" * 49, "2"), ("shop", "0")])
def test_an_id_or_a_lease_of_another_form_is_refused(name: str, lease: str) -> None:
    with pytest.raises(UsageProblem):
        PostgresStores("postgresql://ann@127.0.0.1:9/x", name, lease)


def test_a_write_without_the_claim_changes_nothing(project: PostgresStores) -> None:
    with project.open("made", TABLES):
        pass
    unclaimed = project.open("made", TABLES, claimed="run:x")
    with pytest.raises(Busy, match="'run:x' is not this process's any more"), unclaimed as database:
        database.execute("INSERT INTO made VALUES ('b')")
    with project.claim("run:x"), project.open("made", TABLES, claimed="run:x") as database:
        database.execute("INSERT INTO made VALUES ('c')")
    with project.open("made", TABLES, beside=True) as database:
        assert database.execute("SELECT name FROM made ORDER BY name").fetchall() == [("a",), ("c",)]


def test_writes_of_different_runs_do_not_wait_for_each_other(project: PostgresStores) -> None:
    journal = SqliteJournal(Path("journal"), FolderWriter([]), SystemClock(), shared=project)
    with ExitStack() as runs:
        for token in ("x", "y"):
            runs.enter_context(journal.hold(token))
        with project.open("journal", VERSIONS, beside=True, claimed="run:x"):
            began = time.monotonic()
            journal.begin("y", 1, 1, "digest")
            assert time.monotonic() - began < LEASE / 2


def test_one_process_has_a_run_once_even_if_its_lease_ended(project: PostgresStores) -> None:
    with project.claim("run:x"):
        with project.open("claims", ()) as database:
            database.execute("UPDATE claims SET ends = clock_timestamp() - interval '1 hour'")
        with pytest.raises(Busy), project.claim("run:x"):
            pass
        with project.open("made", TABLES, claimed="run:x"):
            pass
    with project.claim("run:x"):
        pass


def test_a_place_that_was_lost_is_not_the_next_hosts(project: PostgresStores) -> None:
    woken, other = project, PostgresStores(os.environ[URL], os.environ[PROJECT_ID], LEASE)
    with ExitStack() as late:
        with woken.place("s", 2), woken.open("claims", ()) as database:
            database.execute("UPDATE places SET ends = clock_timestamp() - interval '1 hour'")
            before = late.enter_context(other.place("s", 2))
        assert before() is None
        with woken.place("s", 2) as third:
            assert third() is not None


def test_a_host_that_was_frozen_in_a_transaction_does_not_stop_the_others(project: PostgresStores) -> None:
    other = PostgresStores(os.environ[URL], os.environ[PROJECT_ID], LEASE)
    frozen = project.open("made", TABLES)
    frozen.__enter__().execute("INSERT INTO made VALUES ('frozen')")
    began = time.monotonic()
    with other.open("made", TABLES) as database:
        assert database.execute("SELECT name FROM made").fetchall() == [("a",)]
    assert time.monotonic() - began < LEASE + 5
    with pytest.raises(StorageFailed):
        frozen.__exit__(None, None, None)

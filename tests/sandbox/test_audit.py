"""Everything allowed, refused, run and written is on record, and a changed record is detected."""

from __future__ import annotations

import hashlib
import hmac
import json
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.support import MODULE, Place, below, environment, place_in, type_a
from navigator_kernel.adapters.stores.audit import LINE_LIMIT, written
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.config.settings import user_state
from person_state import state_of
from skill_repositories import make_repo

pytestmark = [pytest.mark.requirement("SAF-1", "SAF-2"), pytest.mark.sample(1)]

LONG = st.text(max_size=20).map(lambda text: text * 4_000) | st.text(max_size=40) | st.integers()
FACTS = st.dictionaries(
    st.text(max_size=10),
    st.recursive(LONG, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner), max_leaves=40),
)
MAKES = "open('made.txt', 'w').write('made')\nprint('done')\n"


@pytest.fixture
def here(tmp_path: Path) -> Place:
    place = place_in(tmp_path)
    place.write(below(".claude/skills/maker", type_a("maker", MAKES)))
    return place


def entries(place: Place, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = place.json("log", *words)["entries"]
    return found


def record(place: Place) -> Path:
    return state_of(place.root) / "audit.jsonl"


def test_a_refusal_is_recorded_with_the_subject_that_needed_consent(here: Place) -> None:
    here.run("ask", "/maker")
    (one,) = entries(here)
    assert (one["event"], one["subject"].startswith("type_a:maker@sha256:")) == ("refused", True)


def test_a_run_is_on_record_from_its_authorisation_to_the_files_that_it_left(here: Place) -> None:
    here.said("ask", "/maker", "--yes")
    authorised, started, ended = entries(here)
    assert [one["event"] for one in (authorised, started, ended)] == ["authorised", "started", "ended"]
    assert (authorised["by"], started["digest"][:7], ended["how"]) == ("--yes", "sha256:", "exit code 0")
    assert ended["wrote"] == [{"path": "made.txt", "sha256": hashlib.sha256(b"made").hexdigest()}]
    assert len({one["run"] for one in (authorised, started, ended)}) == 1


def test_a_denial_by_policy_is_recorded_with_its_rule(here: Place) -> None:
    file = Path(here.json("config", "path")["user"])
    file.parent.mkdir(parents=True)
    file.write_text('[policy]\ndeny = ["skills"]\n')
    here.run("ask", "/maker", "--yes")
    assert "deny skills" in entries(here)[-1]["why"]


def test_an_install_is_on_record_with_source_commit_and_digest(here: Place, tmp_path: Path) -> None:
    repo = make_repo(tmp_path, below("skills/fetched", type_a("fetched", MAKES)))
    here.said("skill", "install", f"file://{repo}", "--skill", "fetched")
    here.said("skill", "uninstall", "fetched")
    came, trusted, command, went = entries(here)
    assert (came["event"], came["came"][0]["name"], came["came"][0]["verdict"]) == ("changed", "fetched", "ok")
    assert came["came"][0]["origin"].startswith(f"file://{repo}#")
    assert (trusted["event"], trusted["note"]) == ("trusted", "installed by command")
    assert (trusted["subject"].partition(":")[0], command["subject"].partition(":")[0]) == ("installed", "type_a")
    assert went["went"] == ["fetched"]


def test_trust_and_its_end_are_on_record(here: Place) -> None:
    here.said("skill", "trust", "maker")
    here.said("skill", "distrust", "maker")
    assert [one["event"] for one in entries(here)] == ["trusted", "trusted", "distrusted", "distrusted"]


@pytest.mark.wide
def test_all_of_many_skills_trusted_at_once_are_recorded_in_fewer_entries(tmp_path: Path) -> None:
    names = [f"tool-{number}" for number in range(30)]
    files = {path: text for name in names for path, text in below(f"skills/{name}", type_a(name, MAKES)).items()}
    repo, here = make_repo(tmp_path, files), place_in(tmp_path)
    here.said("skill", "install", f"file://{repo}", "--all")
    trusted = entries(here, "--event", "trusted")
    subjects = [one for entry in trusted for one in entry["subjects"]]
    for kind in ("installed", "type_a"):
        assert sorted(one.split("@")[0] for one in subjects if one.startswith(kind)) == sorted(
            f"{kind}:{name}" for name in names
        )
    assert len(trusted) < len(names)


@pytest.mark.wide
def test_a_workflow_that_is_stored_is_on_record_with_its_digest(here: Place) -> None:
    here.said("skill", "trust", "maker")
    here.said("ask", "--yes", "first /maker a, then /word-count one two", "--format", "summary")
    wrote = [one for one in entries(here, "--event", "wrote") if one["path"].startswith("mybox/workflows/")]
    for one in wrote:
        assert hashlib.sha256((here.root / one["path"]).read_bytes()).hexdigest() == one["sha256"]
    assert len(wrote) == len(list((here.root / "mybox/workflows").glob("*.md")))


@pytest.mark.parametrize("change", ["edited", "taken out", "put in", "no JSON"])
def test_a_record_that_was_changed_says_so_and_where(here: Place, change: str) -> None:
    here.said("skill", "trust", "maker")
    here.said("ask", "/maker")
    lines = record(here).read_bytes().splitlines(keepends=True)
    match change:
        case "edited":
            assert b"trusted" in lines[1]
            lines[1] = lines[1].replace(b"trusted", b"entrusted")
        case "taken out":
            del lines[1]
        case "put in":
            lines.insert(1, lines[0])
        case _:
            lines[1] = b"{}\n"
    record(here).write_bytes(b"".join(lines))
    done = here.run("log", "--json")
    assert (done.code, done.document["error"]["line"] in {2, 3}) == (6, True)


def chained_again(lines: list[bytes], secret: bytes, start: str) -> tuple[bytes, bytes]:
    """The record and the head as somebody who has the key `secret` writes them."""

    def code(before: str, body: bytes) -> str:
        return hmac.new(secret, before.encode() + b"\n" + body, hashlib.sha256).hexdigest()

    before, whole = code("start", start.encode()), b""
    for line in lines:
        body = line.rpartition(b',"mac":"')[0]
        before = code(before, body)
        whole += body + b',"mac":"' + before.encode() + b'"}\n'
    head = f"{len(lines):020d} {before}"
    return whole, f"{head} {code('head', head.encode())}\n".encode()


@pytest.mark.requirement("X-43")
@pytest.mark.parametrize("known", [True, False], ids=["his own key", "another key"])
def test_a_record_that_was_edited_and_chained_again_is_seen(here: Place, known: bool) -> None:
    here.said("skill", "trust", "maker")
    lines = record(here).read_bytes().splitlines(keepends=True)
    secret = (user_state() / "audit.key").read_bytes() if known else b"0" * 32
    edited = [lines[0].replace(b"trusted", b"denied"), *lines[1:]]
    whole, head = chained_again(edited, secret, record(here).parent.name)
    record(here).write_bytes(whole)
    record(here).with_suffix(".head").write_bytes(head)
    assert here.run("log").code == (
        0 if known else 6
    )  # with the right key the record passes: the forgery is well formed


@pytest.mark.parametrize("gone", [1, 2, 3])
def test_lines_that_were_cut_off_at_the_end_are_seen(here: Place, gone: int) -> None:
    here.said("ask", "/maker", "--yes")
    lines = record(here).read_bytes().splitlines(keepends=True)
    record(here).write_bytes(b"".join(lines[:-gone]))
    done = here.run("log", "--json")
    assert (done.code, done.document["error"]["line"]) == (6, 4 - gone)


def test_entries_recorded_after_a_truncation_do_not_hide_it(here: Place) -> None:
    here.said("ask", "/maker", "--yes")
    lines = record(here).read_bytes().splitlines(keepends=True)
    record(here).write_bytes(b"".join(lines[:-1]))
    here.said("ask", "/maker", "--yes")
    assert here.run("log").code == 6


def test_a_record_that_was_removed_is_seen(here: Place) -> None:
    here.said("ask", "/maker", "--yes")
    record(here).unlink()
    assert here.run("log").code == 6


def test_an_older_head_cannot_be_written_without_the_key(here: Place) -> None:
    here.said("ask", "/maker", "--yes")
    lines = record(here).read_bytes().splitlines(keepends=True)
    record(here).write_bytes(lines[0])
    head = record(here).with_suffix(".head")
    words = head.read_text().split()
    head.write_text(f"{1:020d} {json.loads(lines[0])['mac']} {words[2]}\n")
    assert here.run("log").code == 6


def test_a_head_that_is_one_line_behind_is_what_a_killed_process_leaves(here: Place) -> None:
    here.said("skill", "trust", "maker")
    head = record(here).with_suffix(".head")
    here.said("ask", "/maker", "--yes")
    audit, lines = Project(here.root, agents=False).audit, record(here).read_bytes().splitlines(keepends=True)
    held = head.read_bytes()
    audit.record("wrote", path="a")
    head.write_bytes(held)
    assert len(audit.entries()) == len(lines) + 1
    audit.record("wrote", path="b")
    assert len(audit.entries()) == len(lines) + 2


def recorded(here: Place) -> int:
    """The size of the record in bytes, 0 if there is none."""
    return record(here).stat().st_size if record(here).exists() else 0


@pytest.mark.wide
def test_a_process_killed_again_and_again_leaves_a_whole_record(here: Place) -> None:
    code = "from navigator_kernel.bootstrap.project import Project; from pathlib import Path; import sys\n"
    code += "audit = Project(Path(sys.argv[1]), agents=False).audit\nprint(flush=True)\nwhile True: audit.record('wrote', path='a')"
    for _ in range(12):
        argv = [sys.executable, "-c", code, str(here.root)]
        before = recorded(here)
        process = subprocess.Popen(argv, env=environment(None), stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        end = time.monotonic() + 20
        while recorded(here) == before and time.monotonic() < end:
            time.sleep(0.005)
        process.kill()
        process.communicate()
    assert len(entries(here, "--last", "100000")) > 12


def test_the_key_is_for_the_person_alone_and_of_32_bytes(here: Place) -> None:
    here.said("ask", "/maker", "--yes")
    key = user_state() / "audit.key"
    assert (stat.S_IMODE(key.stat().st_mode), key.stat().st_size) == (0o600, 32)


@pytest.mark.parametrize("harm", ["removed", "another", "readable"])
def test_without_its_own_key_the_record_is_not_believed(here: Place, harm: str) -> None:
    here.said("ask", "/maker", "--yes")
    key = user_state() / "audit.key"
    match harm:
        case "removed":
            key.unlink()
        case "another":
            key.write_bytes(bytes(32))
        case _:
            key.chmod(0o644)
    assert here.run("log").code == 6


def test_a_record_of_another_project_is_not_believed(here: Place, tmp_path: Path) -> None:
    here.said("ask", "/maker", "--yes")
    other = place_in(tmp_path / "other")
    for suffix in (".jsonl", ".head"):
        record(other).with_suffix(suffix).write_bytes(record(here).with_suffix(suffix).read_bytes())
    assert other.run("log").code == 6


def test_a_line_without_a_code_is_not_believed(here: Place) -> None:
    here.said("ask", "/maker", "--yes")
    old = {"v": 1, "ts": "now", "event": "trusted", "subject": "x", "prev": hashlib.sha256(b"").hexdigest()}
    record(here).write_text(json.dumps(old) + "\n")
    assert here.run("log").code == 6


@pytest.mark.wide
@given(facts=FACTS)
@settings(max_examples=60, deadline=None)
def test_every_entry_fits_its_line_and_keeps_its_identifying_fields(facts: dict[str, Any]) -> None:
    names = {"run": "r1", "actor": "type_a", "subject": "s" * 900, "digest": "sha256:1", "origin": "o", "by": "b"}
    line = written({**facts, **names})
    held = json.loads(line)
    assert len(line) < LINE_LIMIT
    assert {name: held[name] for name in names} == names


@pytest.mark.requirement("X-43")
def test_a_long_message_does_not_hide_what_ran(here: Place) -> None:
    here.run("ask", f"!echo {'x' * 60_000} && echo the-end", "--yes")
    (ran,) = [one for one in entries(here) if one["event"] == "started"]
    assert ran["actor"] == "shell" and ran["digest"].startswith("sha256:")
    for shown in (ran["subject"], ran["argv"][-1]):
        assert shown.startswith("echo x") and "&& echo the-end (" in shown and "characters, sha256:" in shown


@pytest.mark.wide
def test_two_processes_at_once_lose_no_entry_and_keep_the_chain(here: Place) -> None:
    argv = [*MODULE, "ask", "/maker", "--yes"]
    started = [
        subprocess.Popen(
            argv, cwd=here.root, env=environment(None), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(6)
    ]
    assert [process.wait(timeout=60) for process in started] == [0] * 6
    assert [one["event"] for one in entries(here)].count("ended") == 6


def test_a_half_written_last_line_is_reported_and_the_next_entry_gets_its_own_line(here: Place) -> None:
    here.said("skill", "trust", "maker")
    with record(here).open("ab") as file:
        file.write(b'{"v":1,"half')
    assert here.run("log").code == 6
    here.said("skill", "distrust", "maker")
    last = record(here).read_bytes().splitlines()[-1]
    assert json.loads(last)["event"] == "distrusted"


def test_nothing_runs_that_cannot_be_recorded(here: Place) -> None:
    record(here).parent.mkdir(parents=True, exist_ok=True)
    record(here).mkdir()
    done = here.run("ask", "/maker", "--yes")
    assert (done.code, list(here.root.glob("mybox/workspace/*/made.txt"))) == (1, [])


def test_no_secret_is_in_the_record(here: Place) -> None:
    token = "ghp_" + "a1B2c3D4" * 5
    here.run("ask", f"!echo {token}", "--yes")
    assert (token in record(here).read_text(), "[redacted]" in record(here).read_text()) == (False, True)


@pytest.mark.parametrize(
    ("words", "events"),
    [
        (("--event", "refused"), {"refused"}),
        (("--about", "maker"), {"refused", "authorised", "started", "ended"}),
        (("--last", "1"), {"ended"}),
    ],
)
def test_the_record_can_be_narrowed_down(here: Place, words: tuple[str, ...], events: set[str]) -> None:
    here.run("ask", "/maker")
    here.said("ask", "/maker", "--yes")
    assert {one["event"] for one in entries(here, *words)} == events


def test_a_person_is_shown_one_line_an_entry(here: Place) -> None:
    here.said("ask", "/maker", "--yes")
    told = here.said("log").splitlines()
    assert (len(told), "made.txt" in told[-1]) == (3, True)


def test_the_question_shows_what_a_terminal_would_hide(here: Place) -> None:
    hidden = "!echo ok \x1b]0 ;touch made; : \x07 done"
    done = here.run("ask", "--json", "--", hidden)
    told = done.document["report"]
    assert (done.code, "touch made" in told["summary"], "\\x1b" in told["summary"]) == (9, True, True)


def test_a_file_of_secrets_is_handed_to_no_skill_by_its_bare_name(here: Place) -> None:
    here.write({"credentials.json": '[{"a": "hunter2hunter2"}]'})
    done = here.run("ask", "/json-table credentials.json")
    assert (done.code, "hunter2" in done.out + done.err) == (3, False)


def test_a_link_does_not_open_a_secret_file(here: Place) -> None:
    here.write({"credentials.json": '[{"a": "hunter2hunter2"}]'})
    (here.root / "rows.json").symlink_to("credentials.json")
    done = here.run("ask", "/json-table rows.json")
    assert (done.code, "hunter2" in done.out + done.err, entries(here)[-1]["event"]) == (3, False, "refused")


def test_a_record_that_a_stranger_made_a_link_takes_nothing_in_and_lets_nothing_run(
    here: Place, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("mine")
    record(here).parent.mkdir(parents=True, exist_ok=True)
    record(here).symlink_to(outside)
    codes = here.run("ask", "/maker", "--yes").code, here.run("log").code
    assert (codes, outside.read_text()) == ((1, 3), "mine")

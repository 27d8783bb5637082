"""A resident process answers as `navigator route` does, for one user and one project, and is never in the way."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cli.support import MODULE, Place, environment, place_in
from navigator_kernel.daemon.client import REQUEST_LIMIT, ask, is_ours, is_private, socket_path
from person_state import state_of
from routing.place import write_skills
from routing.serving import LIMIT, Serving, answering, begun_processes, heard, place_of_socket, serving, until

pytestmark = [pytest.mark.timeout(180), pytest.mark.sample(1)]

NOBODY = 65534
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
IMPORTED = """
import json, sys
{first}
before = set(sys.modules)
{then}
print(json.dumps(sorted(set(sys.modules) - before)))
"""


@pytest.fixture
def here(tmp_path: Path) -> Place:
    place = place_in(tmp_path)
    write_skills(
        place.root, {"tea-maker": "Brews a pot of green tea", "sock-finder": "Finds lost socks in the laundry"}
    )
    place.write({"notes.md": "one two three\n"})
    return place


@pytest.fixture
def served(here: Place) -> Iterator[Serving]:
    with serving(here.root) as found:
        yield found


def request(root: Path, **given: Any) -> bytes:
    return json.dumps({"v": 1, "root": os.path.realpath(root), "text": "brew green tea", **given}).encode() + b"\n"


def test_the_answer_is_what_route_prints(here: Place, served: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here.root)
    texts = (
        "brew a pot of green tea",
        "/tea-maker now",
        "/no-such-skill",
        "统计 @notes.md 的字数",
        "count the words in @notes.md and then brew green tea",
        "what is the meaning of life",
        "list skills",
    )
    assert [served.asked(text) for text in texts] == [here.json("route", text) for text in texts]


@pytest.mark.wide
def test_file_names_are_relative_to_the_callers_folder(here: Place, served: Serving) -> None:
    below = here.root / "below"
    below.mkdir()
    (below / "own.md").write_text("one\n")
    text = "统计@own.md的字数"
    told = here.json("route", text, cwd=below)
    assert json.loads(served.said(request(here.root, text=text, base=str(below)))) == told


@pytest.mark.parametrize("form", [["--json"], ["--explain"], []], ids=["json", "explain", "text"])
def test_the_output_is_the_same_with_a_resident_process_and_without(here: Place, form: list[str]) -> None:
    words = ["count the words in @notes.md and then brew green tea", "-k", "3", *form]
    plain = here.said("route", *words)
    with begun_processes(here.root) as pid:
        assert here.said("route", "--resident", *words) == plain
        pid()
        until(lambda: ask("hello", str(here.root), timeout=LIMIT))
        assert here.said("route", "--resident", *words) == plain


def test_the_answer_of_the_resident_process_is_shown(here: Place) -> None:
    told = {**here.json("route", "hello"), "kind": "skills", "entity": "from-afar"}
    with answering(here.root, json.dumps(told).encode() + b"\n"):
        until(lambda: "skills: from-afar" in here.said("route", "--resident", "hello"))  # a busy machine may be slow


def test_route_gives_the_usual_answer_when_the_resident_process_stays_silent(here: Place) -> None:
    with place_of_socket(here.root) as (_, listener):
        listener.listen()
        assert here.said("route", "--resident", "brew green tea") == here.said("route", "brew green tea")


def test_only_its_user_may_enter_the_folder_and_open_the_socket(served: Serving) -> None:
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (served.path.parent, served.path)]
    assert modes == [0o700, 0o600]


def linked(folder: Path) -> None:
    real = folder.with_name("elsewhere")
    real.mkdir(mode=0o700)
    folder.symlink_to(real)


def opened(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o710)


def foreign(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    os.chown(folder, NOBODY, NOBODY)


@pytest.mark.parametrize("made", [linked, opened, pytest.param(foreign, marks=AS_ROOT), Path.touch])
def test_a_folder_that_is_not_private_is_refused_by_both(here: Place, made: Any) -> None:
    folder = Path(socket_path(str(here.root))).parent
    made(folder)
    done = here.json("route", "--serve")
    assert done["exit_code"] == (1 if made is Path.touch else 3)
    assert str(folder) in done["error"]["msg"]
    assert not is_private(str(folder))
    assert ask("hello", str(here.root), timeout=LIMIT, start=True) is None


def test_a_process_whose_socket_folder_is_open_to_others_is_not_asked(here: Place) -> None:
    with answering(here.root, b'{"kind": "skills"}\n'):
        assert ask("hello", str(here.root), timeout=LIMIT) == {"kind": "skills"}
        Path(socket_path(str(here.root))).parent.chmod(0o750)
        assert ask("hello", str(here.root), timeout=LIMIT) is None


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"\n", "usage"),
        (b"hello\n", "usage"),
        (b"\xff\xfe\n", "usage"),
        (b"[" * 60_000 + b"\n", "usage"),
        (b"[]\n", "usage"),
        (b"{}\n", "usage"),
        (b'{"v": 2, "text": "x"}\n', "usage"),
        (b'{"v": 1, "root": "/", "text": "x"}\n', "not_found"),
        (b"x" * (REQUEST_LIMIT + 1000), "usage"),
    ],
    ids=["empty", "words", "bytes", "deep", "list", "nothing", "version", "root", "oversized"],
)
def test_a_request_that_does_not_fit_is_an_error_and_the_next_is_answered(
    served: Serving, line: bytes, code: str
) -> None:
    told = json.loads(served.said(line))
    assert told["error"]["code"] == code
    assert told["exit_code"] == told["error"]["exit_code"]
    assert served.asked("brew green tea")["entity"] == "tea-maker"


@pytest.mark.parametrize("given", [{"text": " "}, {"text": 5}, {"k": 0}, {"k": 101}, {"k": "5"}, {"base": 1}], ids=str)
def test_a_value_that_does_not_fit_is_an_error(served: Serving, given: dict[str, Any]) -> None:
    assert json.loads(served.said(request(served.root, **given)))["error"]["code"] == "usage"


@pytest.mark.wide
def test_a_silent_or_slow_client_is_dropped_while_others_are_answered(served: Serving) -> None:
    with served.link() as silent, served.link() as slow:
        slow.sendall(b'{"v": 1')
        assert served.asked("brew green tea")["entity"] == "tea-maker"
        assert (heard(silent), heard(slow)) == (b"", b"")
    assert served.asked("brew green tea")["entity"] == "tea-maker"


def test_several_are_answered_at_once(served: Serving) -> None:
    texts = ["brew green tea", "find my lost socks"] * 10
    with ThreadPoolExecutor(10) as crowd:
        found = list(crowd.map(lambda text: served.asked(text)["entity"], texts))
    assert found == ["tea-maker", "sock-finder"] * 10


@pytest.mark.wide
def test_it_ends_when_nobody_asks(here: Place) -> None:
    with serving(here.root, idle=1) as found:
        assert found.ended() == 0
        assert not found.path.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_sigterm_or_sigint_ends_it_and_removes_its_socket(served: Serving, number: signal.Signals) -> None:
    served.process.send_signal(number)
    assert served.ended() == 0
    assert not served.path.exists()


@pytest.mark.wide
def test_it_ends_when_its_socket_is_gone(served: Serving) -> None:
    served.path.unlink()
    assert served.ended() == 0


@pytest.mark.wide
def test_it_ends_when_its_socket_is_anothers_and_leaves_that_alone(served: Serving) -> None:
    served.path.rename(served.path.with_name("aside"))
    served.path.write_text("another's")
    assert served.ended() == 0
    assert served.path.read_text() == "another's"


def test_a_second_one_for_the_project_is_busy(here: Place, served: Serving) -> None:
    assert here.json("route", "--serve")["exit_code"] == 5
    assert served.asked("brew green tea")["entity"] == "tea-maker"


@pytest.mark.wide
def test_only_one_of_two_resident_processes_started_at_once_serves(here: Place) -> None:
    words = (*MODULE, "route", "--serve")
    both = [subprocess.Popen(words, cwd=here.root, env=environment(), stderr=subprocess.DEVNULL) for _ in range(2)]
    try:
        until(lambda: ask("brew green tea", str(here.root), timeout=LIMIT))
        until(lambda: [process.poll() for process in both] != [None, None])
        assert {process.poll() for process in both} == {None, 5}
    finally:
        for process in both:
            process.terminate()
            process.wait()


@pytest.mark.wide
def test_the_socket_of_a_killed_one_is_taken_over(here: Place, served: Serving) -> None:
    served.process.kill()
    served.ended()
    assert served.path.is_socket()
    assert served.asked("brew green tea") is None
    with serving(here.root) as found:
        assert found.asked("brew green tea")["entity"] == "tea-maker"


def test_a_skill_that_comes_later_is_found(here: Place, served: Serving) -> None:
    assert served.asked("catalogue the cactus photos")["entity"] is None
    write_skills(here.root, {"cactus-keeper": "Makes a catalogue of photos of cactuses"})
    assert served.asked("catalogue the cactus photos") == here.json("route", "catalogue the cactus photos")
    found = served.asked("catalogue the cactus photos")
    assert "cactus-keeper" in {found["entity"], *found["options"]}


def test_changed_settings_apply_and_broken_ones_are_an_error_until_they_are_removed(
    here: Place, served: Serving
) -> None:
    here.write({"navigator.toml": 'language = "zh"\n'})
    assert json.loads(served.said(request(here.root)))["language"] == "zh"
    here.write({"navigator.toml": "language =\n"})
    for _ in range(2):
        assert json.loads(served.said(request(here.root)))["exit_code"] == 6
    assert served.asked("brew green tea") is None
    (here.root / "navigator.toml").unlink()
    assert served.asked("brew green tea")["language"] == "en"


def test_broken_settings_end_the_start_as_they_end_route(here: Place) -> None:
    here.write({"navigator.toml": "language =\n"})
    assert here.json("route", "--serve") == here.json("route", "hello")


def test_a_damaged_state_file_at_the_start_is_an_error_and_leaves_no_socket(here: Place) -> None:
    (state_of(here.root) / "disabled.json").write_text("{")
    assert here.json("route", "--serve")["exit_code"] == 6
    assert not Path(socket_path(str(here.root))).exists()


@pytest.mark.parametrize(
    "words",
    [["route", "--serve", "hello"], ["--language", "zh", "route", "--serve"], ["route", "--serve", "--resident", "x"]],
    ids=["message", "flag", "both"],
)
def test_serve_goes_with_nothing_else(here: Place, words: list[str]) -> None:
    assert here.json(*words)["exit_code"] == 2


def test_serve_with_a_socket_path_that_is_too_long_has_a_hint_at_xdg_runtime_dir(here: Place, tmp_path: Path) -> None:
    runtime = tmp_path / ("r" * 100)
    runtime.mkdir()
    done = here.json("route", "--serve", env={"XDG_RUNTIME_DIR": str(runtime)})
    assert "XDG_RUNTIME_DIR" in done["error"]["hint"]


def test_a_path_over_the_limit_gets_no_answer(here: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = tmp_path / ("r" * 100)
    (runtime / "navigator").mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    assert ask("hello", str(here.root), timeout=LIMIT) is None


def test_the_client_loads_next_to_nothing() -> None:
    then = "import navigator_kernel.daemon.client as client\nassert client.ask('hello', '.', start=False) is None"
    source = IMPORTED.format(first="import os, socket, time", then=then)
    done = subprocess.run([sys.executable, "-c", source], env=environment(), capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [
        "__future__",
        "navigator_kernel",
        "navigator_kernel.daemon",
        "navigator_kernel.daemon.client",
    ]


def test_without_a_process_there_is_no_answer(here: Place) -> None:
    assert ask("hello", str(here.root), timeout=LIMIT) is None
    assert not Path(socket_path(str(here.root))).parent.exists()


def test_a_message_over_the_limit_is_not_sent(served: Serving) -> None:
    assert served.asked("tea " * (REQUEST_LIMIT // 4)) is None


def test_one_is_begun_on_demand_away_from_the_caller_and_from_the_projects_modules(here: Place) -> None:
    here.write(dict.fromkeys(("click.py", "json.py", "navigator_kernel/__init__.py"), "raise SystemExit(3)\n"))
    with begun_processes(here.root) as pid:
        assert ask("brew green tea", str(here.root), start=True) is None
        until(lambda: ask("brew green tea", str(here.root), timeout=LIMIT))
        assert os.getsid(pid()) not in {os.getsid(0), os.getpid()}
        assert Path(f"/proc/{pid()}/cwd").readlink() == here.root
        files = {Path(f"/proc/{pid()}/fd/{handle}").readlink() for handle in range(3)}
        assert files == {Path(os.devnull)}


def test_a_started_process_keeps_no_pipe_of_the_caller_open(here: Place) -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    with begun_processes(here.root) as pid, os.fdopen(reading, "rb") as pipe:
        assert ask("brew green tea", str(here.root), start=True) is None
        pid()
        os.close(writing)
        assert pipe.read() == b""


def test_none_is_begun_from_inside_a_run(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAVIGATOR_PROCESS", "a.b")
    monkeypatch.setattr("os.posix_spawn", pytest.fail)
    assert ask("hello", str(here.root), start=True) is None


def test_a_client_with_other_settings_gets_no_answer(served: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAVIGATOR_LANGUAGE", "zh")
    assert served.asked("brew green tea") is None


@pytest.mark.parametrize(
    "answer",
    [b"", b"hello\n", b"[]\n", b"{}\n", b'{"error": {}}\n', b'{"kind": "skills"', b"[" * 90_000 + b"\n", b"\xff\n"],
    ids=["none", "words", "list", "nothing", "error", "half", "deep", "bytes"],
)
def test_an_invalid_answer_counts_as_no_answer(here: Place, answer: bytes) -> None:
    with answering(here.root, answer):
        assert ask("hello", str(here.root), timeout=LIMIT) is None


def test_a_silent_resident_process_gives_no_answer_after_the_timeout(here: Place) -> None:
    with place_of_socket(here.root) as (_, listener):
        listener.listen()
        assert ask("hello", str(here.root), timeout=0.2) is None


@AS_ROOT
def test_a_listener_of_another_user_is_not_asked(here: Place) -> None:
    with place_of_socket(here.root) as (_, listener):
        os.seteuid(NOBODY)
        try:
            listener.listen()  # SO_PEERCRED reports the user at the time of this call
        finally:
            os.seteuid(0)
        assert ask("hello", str(here.root), timeout=LIMIT) is None
        link, _ = listener.accept()
        with link:
            assert heard(link) == b""


@AS_ROOT
def test_a_client_of_another_user_is_not_answered(served: Serving) -> None:
    os.seteuid(NOBODY)
    try:
        ctypes.CDLL(None).setfsuid(0)  # keeps root's access to files, so that only the peer check can refuse
        with served.link() as link:
            with suppress(BrokenPipeError):
                link.sendall(request(served.root))
            assert heard(link) == b""
    finally:
        os.seteuid(0)


def test_a_peer_is_known_by_its_user() -> None:
    ours, others = (b"".join(n.to_bytes(4, sys.byteorder) for n in (1, os.geteuid() + more, 0)) for more in (0, 1))
    assert (is_ours(ours), is_ours(others)) == (True, False)

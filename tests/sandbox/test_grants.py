"""What a person agrees to: once, for a session, or for bytes of one source and commit; and what the person denies."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from cli.support import Place, below, place_in, type_a
from skill_repositories import commit, make_repo, skill_text
from tables import cases
from web_server import QuietServer

pytestmark = [pytest.mark.requirement("SAF-1", "SAF-8"), pytest.mark.sample(1)]

SAYS = "print('ran')\n"
REACHES = """import sys, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=5).read().decode())
except OSError as error:
    sys.exit(str(error))
"""


@pytest.fixture
def here(tmp_path: Path) -> Place:
    place = place_in(tmp_path)
    place.write(below(".claude/skills/tool", type_a("tool", SAYS)))
    return place


@pytest.fixture
def site() -> Iterator[str]:
    """A server on this machine that answers `reached`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"reached")

        def log_message(self, *_: object) -> None:
            return

    server = QuietServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def asks(place: Place, *, session: str, text: str = "/tool x") -> int:
    return place.run("ask", "--session", session, text).code


def settle(place: Place, text: str) -> None:
    """Writes the person's own settings."""
    file = Path(place.json("config", "path")["user"])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_a_yes_is_for_this_once(here: Place) -> None:
    assert [asks(here, session="s"), asks(here, session="s", text="yes"), asks(here, session="s")] == [9, 0, 9]


@pytest.mark.wide
@pytest.mark.parametrize("words", ["yes, for this session", "for this session", "本次会话", "可以，本次会话都可以"])
def test_a_yes_for_the_session_is_for_every_turn_of_it_and_no_other(here: Place, words: str) -> None:
    said = [asks(here, session="s"), asks(here, session="s", text=words), asks(here, session="s")]
    assert (said, asks(here, session="t")) == ([9, 0, 0], 9)


def test_a_yes_for_the_session_ends_with_the_first_changed_byte(here: Place) -> None:
    asks(here, session="s")
    asks(here, session="s", text="for this session")
    (here.root / ".claude/skills/tool/run.py").write_text(f"{SAYS}\n")
    assert asks(here, session="s") == 9


@pytest.mark.wide
@pytest.mark.parametrize("words", ["always", "yes, always", "总是", "以后都可以"])
def test_always_is_for_these_bytes_in_every_session(here: Place, words: str) -> None:
    said = [asks(here, session="s"), asks(here, session="s", text=words), asks(here, session="t")]
    (here.root / ".claude/skills/tool/run.py").write_text(f"{SAYS}\n")
    assert (said, asks(here, session="t")) == ([9, 0, 0], 9)


def test_always_is_taken_back_by_distrust(here: Place) -> None:
    asks(here, session="s")
    asks(here, session="s", text="always")
    assert len(here.json("skill", "distrust", "tool")["distrusted"]) == 1
    assert asks(here, session="t") == 9


@pytest.mark.wide
def test_a_command_that_was_typed_is_asked_about_in_each_session(here: Place) -> None:
    said = [asks(here, session="s", text=text) for text in ("!echo hi", "always", "!echo hi", "!echo other")]
    assert (said, asks(here, session="t", text="!echo hi")) == ([9, 0, 0, 9], 9)


def test_the_question_says_how_a_yes_lasts_longer(here: Place) -> None:
    done = here.run("ask", "/tool x", "--session", "s", "--format", "protocol")
    assert "for this session" in done.out


def installed(place: Place, tmp_path: Path, name: str) -> str:
    """Makes a repository with the same skill and returns its URL."""
    files = below("skills/fetched", type_a("fetched", SAYS))
    return f"file://{make_repo(tmp_path, files, name=name)}"


@pytest.mark.wide
def test_a_skill_installed_by_command_runs_without_a_question(here: Place, tmp_path: Path) -> None:
    here.said("skill", "install", installed(here, tmp_path, "one"), "--skill", "fetched")
    assert here.run("ask", "/fetched").code == 0


@pytest.mark.wide
def test_a_receipt_that_somebody_else_wrote_grants_nothing(here: Place, tmp_path: Path) -> None:
    here.said("skill", "install", installed(here, tmp_path, "one"), "--skill", "fetched")
    stranger = {"XDG_STATE_HOME": str(tmp_path / "another-persons")}
    assert here.run("ask", "/fetched", env=stranger).code == 9


@pytest.mark.wide
@pytest.mark.parametrize("change", ["source", "commit"])
def test_trust_is_bound_to_source_and_commit_not_to_bytes_alone(here: Place, tmp_path: Path, change: str) -> None:
    first = installed(here, tmp_path, "one")
    here.said("skill", "install", first, "--skill", "fetched")
    receipt = here.root / ".claude/skills/.navigator/fetched.json"
    held = json.loads(receipt.read_text())
    held[change] = f"{held[change]}0" if change == "source" else held[change][::-1]
    receipt.write_text(json.dumps(held))
    assert here.run("ask", "/fetched").code == 9


@pytest.mark.wide
def test_an_update_that_was_typed_is_agreed_to(here: Place, tmp_path: Path) -> None:
    first = installed(here, tmp_path, "one")
    here.said("skill", "install", first, "--skill", "fetched")
    commit(Path(first.removeprefix("file://")), {"skills/fetched/run.py": f"{SAYS}print('more')\n"})
    here.said("skill", "update", "fetched")
    assert here.run("ask", "/fetched").code == 0


def reaching(place: Place) -> None:
    manifest = skill_text("reacher", "reaches out").replace(
        "description:", "network: true\ncommand: python ${SKILL_ROOT}/run.py {request}\ndescription:", 1
    )
    place.write({".claude/skills/reacher/SKILL.md": manifest, ".claude/skills/reacher/run.py": REACHES})


def test_the_network_is_a_question_of_its_own(here: Place, site: str) -> None:
    reaching(here)
    done = here.run("ask", f"/reacher {site}", "--json")
    assert (done.code, "reach the network" in done.document["report"]["summary"]) == (9, True)
    assert "+network" in done.document["report"]["data"]["subject"]


@pytest.mark.wide
def test_a_skill_that_is_granted_the_network_reaches_it(here: Place, site: str) -> None:
    reaching(here)
    done = here.run("ask", f"/reacher {site}", "--yes")
    assert (done.code, "reached" in done.out) == (0, True)


def test_a_yes_does_not_give_the_network_to_a_skill_that_does_not_declare_it(here: Place, site: str) -> None:
    here.write(below(".claude/skills/sly", type_a("sly", f"import sys; sys.argv = ['', {site!r}]\n{REACHES}")))
    done = here.run("ask", "/sly", "--yes")
    assert (done.code, "reached" in done.out) == (1, False)


@pytest.mark.wide
def test_an_install_agrees_to_no_network(here: Place, tmp_path: Path, site: str) -> None:
    reaching(here)
    folder = here.root / ".claude/skills/reacher"
    repo = make_repo(tmp_path, {f"skills/reacher/{path.name}": path.read_text() for path in folder.iterdir()}, name="r")
    for path in (*folder.iterdir(), folder):
        path.rmdir() if path.is_dir() else path.unlink()
    here.said("skill", "install", f"file://{repo}", "--skill", "reacher")
    assert here.run("ask", f"/reacher {site}").code == 9


@pytest.mark.wide
@cases("settings, text, rule")
def test_an_action_denied_by_policy_is_refused_with_its_rule_despite_a_yes(
    here: Place, settings: str, text: str, rule: str
) -> None:
    reaching(here)
    settle(here, settings)
    done = here.run("ask", text, "--yes", "--json")
    data = done.document["report"]["data"]
    assert (done.code, data["reason"], rule in data["rule"]) == (3, "policy", True)


def test_a_denial_for_one_skill_does_not_apply_to_another(here: Place) -> None:
    settle(here, '[policy.skills.other]\ndeny = ["skills"]\n')
    assert here.run("ask", "/tool x", "--yes").code == 0


@pytest.mark.parametrize(
    "settings", ['[policy]\ndeny = ["netwrok"]\n', "[policy]\nallow = 1\n", '[policy.skills.x]\ndeny = "all"\n']
)
def test_a_word_that_denies_nothing_stops_everything(here: Place, settings: str) -> None:
    settle(here, settings)
    assert here.run("ask", "/tool x", "--yes").code == 2


def test_a_project_cannot_set_a_policy(here: Place) -> None:
    (here.root / "navigator.toml").write_text('[policy]\ndeny = ["skills"]\n')
    assert here.run("ask", "/tool x", "--yes").code == 0


def test_policy_explain_shows_a_denied_tool_with_its_rule(here: Place) -> None:
    settle(here, '[policy]\ndeny = ["tool:send_*"]\n')
    found = {one["what"]: one for one in here.json("policy", "explain", "tool", "send_mail")["decisions"]}
    assert (found["call send_mail"]["verdict"], "tool:send_*" in found["call send_mail"]["rule"]) == ("deny", True)

"""Nothing that the kernel writes about a message, in the project or the person's folders, holds its secrets (SAF-8)."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import string
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.secret_examples import Example, examples
from cli.support import Place
from navigator_kernel.adapters.secrets.redaction import REDACTED
from navigator_kernel.bootstrap.project import Project
from person_state import accept, state_of
from workflows.project import FILE, TEXT, project_in, put_skill, workflow_file

pytestmark = pytest.mark.sample(1)

KEEPS = "import hashlib, sys\nprint(hashlib.sha256(sys.argv[-1].encode()).hexdigest())\n"
ASKS = 'required_params: \'[{"name": "text", "prompt": "the text"}, {"name": "tone", "prompt": "the tone"}]\'\n'


@pytest.fixture
def token() -> str:
    """A value shaped like a GitHub token; a new one each time."""
    return "ghp_" + "".join(random.SystemRandom().choices(string.ascii_letters + string.digits, k=36))


@pytest.fixture
def here(tmp_path: Path) -> Place:
    root = project_in(tmp_path)
    put_skill(root, "keep-digest", ("Keeps the digest of a text", TEXT, KEEPS))
    return Place(root=root)


def holders(here: Place, token: str) -> list[str]:
    """The files of the project and of the person that hold the token."""
    places = {here.root, Path.home(), *(Path(os.environ[name]) for name in os.environ if name.startswith("XDG_"))}
    files = {path for place in places if place.is_dir() for path in place.rglob("*") if path.is_file()}
    assert state_of(here.root) in {folder for path in files for folder in path.parents}
    return sorted(str(path) for path in files if token.encode() in path.read_bytes())


def two_steps(token: str) -> str:
    return f"run keep-digest on {token} and then count the terms in it"


@pytest.mark.requirement("SAF-8")
@pytest.mark.parametrize("words", [(), ("--yes",)], ids=["proposed", "run"])
def test_a_plan_is_kept_without_the_secret_of_its_message(here: Place, token: str, words: tuple[str, ...]) -> None:
    shown = here.run("ask", "--session", "s", *words, two_steps(token))
    assert shown.code == (0 if words else 9), shown
    assert holders(here, token) == []
    assert not words or REDACTED in next((here.root / "mybox" / "workflows").glob("keep*.md")).read_text()


@pytest.mark.requirement("SAF-8")
def test_a_plan_that_runs_at_once_runs_with_its_secret(here: Place, token: str) -> None:
    here.said("ask", "--yes", two_steps(token))
    found = next((here.root / "mybox" / "workspace").rglob("handover-1.json")).read_text()
    assert hashlib.sha256(token.encode()).hexdigest() in found


@pytest.mark.requirement("SAF-8")
@pytest.mark.parametrize("way", ["session", "approve"])
def test_a_plan_whose_secret_was_not_kept_asks_for_it_again(here: Place, token: str, way: str) -> None:
    asked = here.json("ask", "--session", "s", two_steps(token))
    words = (
        ("ask", "--session", "s", "yes") if way == "session" else ("workflow", "approve", asked["workflow"]["token"])
    )
    done = here.json(*words)
    assert (done["report"]["state"], done["report"]["data"]["reason"]) == ("error", "secret")
    assert "send the whole message again" in done["report"]["summary"]
    assert holders(here, token) == []


@pytest.mark.wide
@pytest.mark.requirement("SAF-8")
def test_words_for_a_stored_workflow_run_with_their_secret_and_are_not_kept(here: Place, token: str) -> None:
    here.said("ask", "--yes", "run keep-digest on hello and then count the terms in it")
    stored = next((here.root / "mybox" / "workflows").glob("keep*.md"))
    stored.write_text(stored.read_text().replace("hello", "$1"))
    here.said("ask", "--yes", f"#{stored.stem} {token}")
    found = [path.read_text() for path in (here.root / "mybox" / "workspace").rglob("handover-1.json")]
    assert any(hashlib.sha256(token.encode()).hexdigest() in text for text in found)
    assert holders(here, token) == []


@pytest.mark.requirement("SAF-8")
def test_no_lesson_contains_a_secret(here: Place, token: str) -> None:
    assert here.said("route", f"push with {token}", "--teach", "keep-digest") == "nothing new for keep-digest\n"
    assert here.said("route", "数据库的密码是 hunter2", "--teach", "keep-digest") == "nothing new for keep-digest\n"
    assert here.said("route", "push it", "--teach", "keep-digest") == "learned for keep-digest\n"
    assert Project(here.root, agents=False).lessons.all() == {"keep-digest": ("push it",)}


@pytest.mark.requirement("SAF-8")
def test_a_question_about_a_message_with_a_secret_is_asked_and_the_message_not_kept(here: Place, token: str) -> None:
    put_skill(here.root, "say-it", ("Says a text in a tone", ASKS, KEEPS))
    asked = here.run("ask", "--session", "s", "--yes", f"/say-it {token}")
    assert asked.code == 9, asked
    assert holders(here, token) == []


@pytest.mark.requirement("SAF-8")
def test_the_answer_to_a_question_about_a_password_is_a_secret_whatever_it_is(here: Place) -> None:
    needs = 'required_params: \'[{"name": "user", "prompt": "the user"}, {"name": "password", "prompt": "a word"}]\'\n'
    folder = put_skill(here.root, "sign-in", ("Signs in", needs, KEEPS))
    with (folder / "SKILL.md").open("r+") as file:
        text = file.read().replace("run.py\n", "run.py {user} {password}\n")
        file.seek(0)
        file.write(text)
    assert here.run("ask", "--session", "s", "--yes", "/sign-in ann").code == 9
    done = here.run("ask", "--session", "s", "--yes", "qwvzjxkplm")
    assert (done.code, hashlib.sha256(b"qwvzjxkplm").hexdigest() in done.out) == (0, True), done
    assert holders(here, "qwvzjxkplm") == []


@pytest.mark.requirement("SAF-8")
def test_an_order_that_failed_is_not_kept_for_another_try_with_its_secret(here: Place, token: str) -> None:
    assert here.run("ask", "--session", "s", "--yes", f"/fail-hard {token}").code == 1
    assert holders(here, token) == []


@pytest.mark.requirement("SAF-8")
def test_an_order_that_waits_for_a_yes_leaves_no_secret_once_it_was_answered(here: Place, token: str) -> None:
    assert here.run("ask", "--session", "s", f"/keep-digest {token}").code == 9
    assert here.run("ask", "--session", "s", "no").code == 0
    assert holders(here, token) == []


# ---- any secret, at any place of a message, through a whole turn

EXAMPLES = examples()
H8 = (
    Example("Password", "log in with password: ", "Tr0ub4dor&3" + "zz", " now"),
    *(one for one in EXAMPLES if one.kind in {"AWS Access Key", "Anthropic Token", "Slack Token", "npm Token"}),
    Example("Private Key", "use ", f"-----BEGIN PRIVATE KEY-----\n{'Ab1x' * 16}\n-----END PRIVATE KEY-----", " now"),
)
SAYS = """import base64, json, sys
from urllib.parse import quote
text = sys.argv[-1]
print(text, json.dumps({"note": json.dumps({"inner": text})}), json.dumps(text.split()), quote(text), sep="\\n")
for word in text.split():
    print("word", word, base64.b64encode(word.encode()).decode())
"""
PRINTS = "import sys\nprint(open(sys.argv[-1]).read())\n"
INPUT = "secrets.txt"


def _nested(text: str) -> str:
    return json.dumps({"content": json.dumps({"note": f"a\n{text}"})})


PLACES: dict[str, Callable[[str], str]] = {
    "start": "/say-it {}".format,
    "after a line": "/say-it see\n{}".format,
    "in quotes": '/say-it note "{}"'.format,
    "json in json": lambda text: f"/say-it {_nested(text)}",
    "param": "/say-it text={}".format,
    "step": "#twice {}".format,
    "plan": "run say-it on {} and then count the terms in it".format,
    "file": lambda _: f"/print-it {INPUT}",
}


def left_in(text: bytes, secrets: Sequence[Example]) -> list[str]:
    """The kinds of the secrets of which a whole word is in the text; the first and last line of a key do not count."""
    words = [(one.kind, re.sub("-----(BEGIN|END)[A-Z ]+-----", "", one.secret).split()) for one in secrets]
    return [kind for kind, held in words if any(len(word) > 5 and word.encode() in text for word in held)]


def left_behind(here: Place, secrets: Sequence[Example]) -> list[tuple[str, list[str]]]:
    places = {here.root, Path.home(), *(Path(os.environ[name]) for name in os.environ if name.startswith("XDG_"))}
    files = {path for place in places if place.is_dir() for path in place.rglob("*") if path.is_file()}
    assert state_of(here.root) in {folder for path in files for folder in path.parents}
    kept = [(str(path), left_in(path.read_bytes(), secrets)) for path in sorted(files) if path.name != INPUT]
    return [(path, kinds) for path, kinds in kept if kinds]


def a_turn_leaves_nothing(here: Place, place: str, secrets: Sequence[Example]) -> None:
    put_skill(here.root, "say-it", ("Says a text", TEXT, SAYS))
    put_skill(here.root, "print-it", ("Prints a file", FILE, PRINTS))
    workflow_file(here.root, "twice", ("say-it", "/say-it $ARGUMENTS"), ("say-it", "/say-it again $ARGUMENTS"))
    accept(here.root)
    text = "\n".join(one.text for one in secrets)
    (here.root / INPUT).write_text(f"{text}\n{_nested(text)}\n")
    done = here.run("ask", "--yes", "--session", "s", PLACES[place](text))
    shown = here.run("why").out + here.run("session", "show", "s").out + here.run("log").out
    assert (done.code, left_in((done.out + done.err + shown).encode(), secrets)) == (0, []), done
    assert left_behind(here, secrets) == []
    logs = here.root / "mybox" / "logs" / "runs"
    assert {path.stat().st_mode & 0o077 for path in (logs, *logs.iterdir())} == {0}


@pytest.mark.requirement("SAF-8")
@pytest.mark.parametrize("place", PLACES)
def test_a_secret_at_any_place_of_a_message_is_left_nowhere(here: Place, place: str) -> None:
    a_turn_leaves_nothing(here, place, H8)


@pytest.mark.wide
@pytest.mark.requirement("SAF-8")
@pytest.mark.timeout(600)
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    place=st.sampled_from([*PLACES]), secrets=st.lists(st.sampled_from(EXAMPLES), min_size=1, max_size=8, unique=True)
)
def test_no_secret_of_any_shape_is_left_anywhere(here: Place, place: str, secrets: list[Example]) -> None:
    a_turn_leaves_nothing(here, place, secrets)

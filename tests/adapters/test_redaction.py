"""Secrets are replaced whole, everyday text is unchanged, and a run leaves no secret behind (SAF-8)."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import string
from pathlib import Path
from urllib.parse import quote

import pytest

from cli.support import Done, Place, below, place_in, type_a
from navigator_kernel.adapters.secrets.redaction import REDACTED, Redactor, remembering, secrets_of
from tables import cases

pytestmark = pytest.mark.sample(2)

LETTERS, UPPER, HEX = string.ascii_letters + string.digits, string.ascii_uppercase + string.digits, "0123456789abcdef"
LOWER = string.ascii_lowercase + string.digits
PART = 6  # characters; no part of a secret this long may remain


def made(length: int, letters: str = LETTERS) -> str:
    """Always the same text for a length, so that it is not a real secret."""
    return "".join(random.Random(f"{length}{letters}").choices(letters, k=length))


PLAIN_TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJtYWRlLXVwIn0."
GITLAB = {"glpat": 20, "gldt": 20, "glft": 20, "glsoat": 20, "glrt": 20, "glcbt": 24, "glimt": 25, "glptt": 40}

# The service, the surrounding text, and a secret of its kind in place of `@@`
SECRETS = (
    ("Artifactory", "use @@", "AKC" + made(24)),
    ("Artifactory", "use @@", "APA" + made(16)),
    ("AWSKey", "use @@ now", "AKIA" + made(16, UPPER)),
    ("AWSKey", "use @@ now", "ASIA" + made(16, UPPER)),
    ("AWSKey", "use @@ now", "ABIA" + made(16, UPPER)),
    ("AWSKey", "use @@ now", "ACCA" + made(16, UPPER)),
    ("AWSKey", 'aws_secret_access_key = "@@" there', made(40)),
    ("AWSKey", 'aws_session_token = "@@" there', made(40)),
    ("AzureStorageKey", "use AccountKey=@@ now", made(86) + "=="),
    ("BasicAuth", "see https://ann:@@@host.example/path now", made(14)),
    ("BasicAuth", "see postgres://ann:@@@host.example/path now", made(14)),
    ("Cloudant", "use cloudant_password=@@ now", made(64, HEX)),
    ("Cloudant", "use cl_key: @@ now", made(64, HEX)),
    ("DiscordBotToken", "use @@ now", f"M{made(23)}.{made(6)}.{made(27)}"),
    *(("GitHubToken", "use @@ now", f"gh{kind}_{made(36)}") for kind in "pousr"),
    *(("GitLabToken", "use @@ now", f"{kind}-{made(length)}") for kind, length in GITLAB.items()),
    ("GitLabToken", "use @@ now", "GR1348941" + made(20)),
    ("IbmCloudIam", "api_key: @@ there", made(22, UPPER) + made(22, HEX)),
    ("IbmCloudIam", "ibm_cloud_iam_key = @@ there", made(44)),
    ("IbmCosHmac", "cos_hmac_secret_access_key = @@ there", made(48, HEX)),
    ("JwtToken", "Bearer @@ now", PLAIN_TOKEN + made(43)),
    ("JwtToken", "Bearer @@ now", PLAIN_TOKEN + made(40) + "-_-"),
    ("Keyword", 'password = "@@" there', made(12)),
    ("Keyword", "{'client_secret': '@@'} there", made(12)),
    ("Keyword", 'api_key: "@@" there', made(12)),
    ("Keyword", 'client_secret_value = "@@" there', made(12)),
    ("Keyword", 'if password === "@@" there', made(12)),
    ("Keyword", 'if password != "@@" there', made(12)),
    ("Keyword", 'if "@@" == my_password there', made(12)),
    ("Keyword", 'private_key "@@"; there', made(12)),
    ("Mailchimp", "use @@ now", made(32, HEX) + "-us12"),
    ("Npm", "//registry.example/:_authToken=@@", "npm_" + made(36)),
    ("PypiToken", "use @@ now", "pypi-AgEIcHlwaS5vcmc" + made(90)),
    ("SendGrid", "use @@ now", f"SG.{made(22)}.{made(43)}"),
    ("Slack", "use @@ now", f"xoxb-{made(12, string.digits)}-{made(12, string.digits)}-{made(24, LOWER)}"),
    ("Slack", "use @@ now", f"https://hooks.slack.com/services/T{made(8, UPPER)}/B{made(8, UPPER)}/{made(24)}"),
    ("Softlayer", "softlayer_api_key = @@ there", made(64, LOWER)),
    ("Softlayer", "sl_api_key: @@ there", made(64, LOWER)),
    ("SquareOAuth", "use @@ now", "sq0csp-" + made(43)),
    ("Stripe", "use @@ now", "sk_live_" + made(24)),
    ("Stripe", "use @@ now", "rk_live_" + made(24)),
    ("Stripe", "use my_@@ now", "sk_live_" + made(24)),
    ("TelegramBotToken", "use @@ now", f"{made(10, string.digits)}:{made(35)}"),
    ("TwilioKey", "use @@ now", "AC" + made(32, LOWER)),
    ("TwilioKey", "use @@ now", "SK" + made(32, LOWER)),
)
# Secrets that a library once used for this did not recognise
MORE = (
    ("use @@ now", "github_pat_" + made(22) + "_" + made(59)),
    ("use @@ now", "sk-ant-api03-" + made(93)),
    ("use @@ now", f"sk-{made(20)}T3BlbkFJ{made(20)}"),
    ("use @@ now", f"sk-proj-{made(40)}T3BlbkFJ{made(20)}"),
    ("use @@ now", "AIza" + made(35)),
    ("use @@ now", "hf_" + made(34, LETTERS[:52])),
    ("use @@ now", "npm_" + made(36)),
    ("-H 'Authorization: Bearer @@' there", made(32)),
    ('{"authorization": "Basic @@"} there', made(32)),
    ("password: @@ there", made(14) + "7"),
    ("db_password=@@ there", made(14) + "7"),
    ("access-key: @@ there", made(24)),
    ("DB_PASSWORD_PROD=@@ there", made(14)),
    ("PASSWD_ROOT=@@ there", made(14)),
    ("see redis://:@@@cache.example:6379/0 now", made(14)),
)
BLOCKS = ("RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "EC PRIVATE KEY", "PRIVATE KEY", "PGP PRIVATE KEY BLOCK")
EVERYDAY = (
    "Please review the changes in src/main.py and tell me what could be better.",
    "How do I sort a list of dictionaries by a key in Python?",
    "The password must have twelve characters; tokens expire after an hour. What is a secret?",
    "See https://docs.example.org/guide/tokens#keys and http://localhost:8080/ for more, or mail ann@example.org.",
    "请检查这段代码，然后告诉我哪里可以改进。密码要十二个字符，令牌一小时后过期。",
    "把 README.md 翻译成中文，保留所有链接：https://example.org/文档?页=2。",
    "| name | count |\n| --- | ---: |\n| key | 12 |\n| token | 3 |\n",
    "def total(items):\n    return sum(item.price for item in items if item.key in wanted)\n",
    "PATH=/usr/bin:/bin LANG=C.UTF-8 make -j4 test && git push origin main\n",
    "SELECT id, name FROM users WHERE token IS NULL ORDER BY name;\n",
    "token = read_token2(line)\npassword = settings.password1.value\nmax_tokens: 4096\ntoken: string\nsecret: ${DB_SECRET1}\n",
    "from sk-learn import tree  # see sk-image-processing-tools and task-1234-of-the-long-list-of-tasks",
    f"sha256:{hashlib.sha256(b'1').hexdigest()}  dist/tool-1.0.tar.gz",
    f"commit {hashlib.sha1(b'2').hexdigest()}\nAuthor: Ann <ann@example.org>\n",
    "0b0d9a52-6c1e-4d3c-9a53-5f4f0ab7a1f9 and 123e4567-e89b-12d3-a456-426614174000",
    "😀 done: 12 files changed, 340 insertions(+), 12 deletions(-) at 2026-01-02T03:04:05Z",
)


def redacted(text: str, *known: str) -> str:
    return Redactor(known).text(text)


def parts_left(secret: str, text: str) -> list[str]:
    return [part for at in range(len(secret) - PART + 1) if (part := secret[at : at + PART]) in text]


def name_of(secret: tuple[str, str, str]) -> str:
    return f"{secret[0]}-{secret[2][:4]}"


@pytest.mark.requirement("SAF-8")
@pytest.mark.parametrize(("around", "value"), MORE, ids=[around + value[:4] for around, value in MORE])
def test_one_more_secret_is_replaced_whole_and_nothing_else(around: str, value: str) -> None:
    shown = redacted(f"Then {around.replace('@@', value)}\nand go on.")
    assert parts_left(value, shown) == []
    assert shown.startswith("Then ") and shown.endswith(f"{around[-4:]}\nand go on.") and REDACTED in shown


def test_the_word_after_a_secret_stays() -> None:
    assert redacted(f"use AKC{made(24)} next") == f"use {REDACTED} next"


@pytest.mark.parametrize("name", ["DB_PASS", "API_TOKENS", "MY_PWD", "KEY_PASSPHRASE", "AWS_CREDENTIALS", "GH_PAT"])
def test_a_variable_whose_name_says_so_is_secret(name: str) -> None:
    assert list(secrets_of({name: "plain-words-here"})) == ["plain-words-here"]


@pytest.mark.requirement("SAF-8")
@pytest.mark.parametrize("secret", SECRETS, ids=name_of)
def test_a_secret_is_replaced_whole_and_the_words_around_it_stay(secret: tuple[str, str, str]) -> None:
    _, around, value = secret
    shown = redacted(f"Then {around.replace('@@', value)}\nand go on.")
    assert parts_left(value, shown) == []
    assert shown.startswith("Then ") and shown.endswith("\nand go on.") and REDACTED in shown
    assert [word for word in ("use", "now", "there", "see", "path") if word in around and word not in shown] == []


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("ended", [True, False], ids=["ended", "cut off"])
def test_a_private_key_is_replaced_with_all_its_lines(kind: str, ended: bool) -> None:
    body = "\n".join(made(64 + number) for number in range(5))
    block = f"-----BEGIN {kind}-----\n{body}\n" + (f"-----END {kind}-----" if ended else "")
    assert redacted(f"before\n{block}") == f"before\n{REDACTED}"
    assert not ended or redacted(f"{block}\nbehind") == f"{REDACTED}\nbehind"


def test_a_key_of_ssh2_is_replaced() -> None:
    kind = "SSH2 ENCRYPTED PRIVATE KEY"
    assert parts_left(made(64), redacted(f"---- BEGIN {kind} ----\n{made(64)}\n---- END {kind} ----")) == []


@pytest.mark.requirement("SAF-8")
@pytest.mark.parametrize("line", ['{"password": "@1", "secret": "@2"}', 'password = "@1"; api_key = "@2"', "gl @1 @2"])
def test_every_secret_of_a_line_is_replaced(line: str) -> None:
    pair = ("glpat-" + made(20), "glpat-" + made(21))
    shown = redacted(line.replace("@1", pair[0]).replace("@2", pair[1]))
    assert [parts_left(one, shown) for one in (pair[0], pair[1][6:])] == [[], []]


@pytest.mark.requirement("SAF-8")
@pytest.mark.parametrize("before", [19_990, 25_000, 400_000])
def test_a_secret_far_behind_in_a_line_is_replaced(before: int) -> None:
    token = f"ghp_{made(36)}"
    assert redacted("x " * (before // 2) + token).endswith(f"x {REDACTED}")


@pytest.mark.parametrize(
    "line", ["PASSWORD=@@", "export DB_PASSWORD='@@'", 'MY_API_KEY="@@"', "GITHUB_TOKEN=@@ make", "AWS_SECRET_KEY=@@"]
)
def test_a_value_assigned_to_a_secret_name_is_replaced(line: str) -> None:
    assert redacted(line.replace("@@", made(12))) == line.replace("@@", REDACTED)


@pytest.mark.parametrize(
    "line", ["PASSWORD=$DB_PASSWORD", "TOKEN=", "SECRET=\nx", "PASSWORDS are 12 letters", "TOKEN=x"]
)
def test_a_line_that_assigns_no_secret_value_is_unchanged(line: str) -> None:
    assert redacted(line) == line


@pytest.mark.parametrize(
    "name", ["GITHUB_TOKEN", "db_password", "APP_SECRET", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "GH_PAT"]
)
def test_a_value_of_the_environment_is_a_secret_by_its_name(name: str) -> None:
    assert list(secrets_of({name: "correct horse", "HOME": "/home/ann"})) == ["correct horse"]


@pytest.mark.parametrize(
    "name",
    ["HOME", "PATH", "LANG", "EDITOR", "KEYBOARD", "TOKENIZERS_PARALLELISM", "AUTHOR", "PATTERN", "SSH_AUTH_SOCK"],
)
def test_a_variable_with_an_ordinary_name_is_not_a_secret(name: str) -> None:
    assert list(secrets_of({name: "correct horse"})) == []


@pytest.mark.parametrize("value", ["", "1", "true", "enabled"])
def test_an_empty_or_everyday_value_is_not_a_secret(value: str) -> None:
    assert list(secrets_of({"SERVICE_TOKEN": value})) == []


def test_a_known_secret_is_replaced_wherever_it_stands() -> None:
    text = "a correct horse, 'correct horse'\nxcorrect horsex"
    assert redacted(text, "correct horse") == f"a {REDACTED}, '{REDACTED}'\nx{REDACTED}x"


def test_the_longer_of_two_known_secrets_is_replaced_first() -> None:
    known = secrets_of({"A_TOKEN": "correct horse", "B_TOKEN": "correct horse battery"})
    assert redacted("correct horse battery", *known) == REDACTED


def test_values_keep_their_shape() -> None:
    token = f"ghp_{made(36)}"
    held = {"a": [f"x {token}", 1, 2.5, None, True], "b": ({"c": token}, "plain"), "d": {}, "e": 10**30}
    shown = {"a": [f"x {REDACTED}", 1, 2.5, None, True], "b": ({"c": REDACTED}, "plain"), "d": {}, "e": 10**30}
    assert Redactor().value(held) == shown


@pytest.mark.parametrize("secret", SECRETS, ids=name_of)
def test_redaction_of_a_secret_is_idempotent(secret: tuple[str, str, str]) -> None:
    once = redacted(secret[1].replace("@@", secret[2]))
    assert redacted(once) == once


@pytest.mark.parametrize("text", EVERYDAY, ids=range(len(EVERYDAY)))
def test_everyday_text_is_left_as_it_is(text: str) -> None:
    assert redacted(text) == text


# ---- values of several parts

PASSWORD = "Tr0ub4dor&3" + "zz"
KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{made(64)}\n{made(65)}\nQ1==\n-----END RSA PRIVATE KEY-----"


@pytest.mark.requirement("SAF-8")
@pytest.mark.parametrize(
    "words",
    [
        ["log", "in", "with", "password:", PASSWORD, "now"],
        ["curl", "-u", f"ann:{PASSWORD}", "https://host.example"],
        ["tool", "--password", PASSWORD],
        ["export", "DB_PASSWORD", "=", PASSWORD],
        f"use {KEY} now".split(),
    ],
    ids=["sentence", "curl", "option", "assignment", "key"],
)
def test_a_secret_is_found_in_the_words_that_a_message_was_cut_into(words: list[str]) -> None:
    shown = " ".join(Redactor().value({"arguments": words})["arguments"])
    assert parts_left(PASSWORD, shown) == parts_left(KEY.splitlines()[1], shown) == [] and "Q1==" not in shown
    assert (words[0] in shown, REDACTED in shown) == (True, True)


@pytest.mark.requirement("SAF-8")
@pytest.mark.parametrize("depth", range(4))
def test_a_secret_after_a_new_line_is_found_in_json_in_json(depth: int) -> None:
    tokens = (f"AKIA{made(16, UPPER)}", f"npm_{made(36)}", f"ghp_{made(36)}")
    text = "\n".join(["first", *tokens, f"password: {PASSWORD}", KEY, "last"])
    for _ in range(depth):
        text = json.dumps({"content": text})
    shown = redacted(text)
    assert [part for secret in (*tokens, PASSWORD, made(64)) for part in parts_left(secret, shown)] == []
    for _ in range(depth):
        shown = json.loads(shown)["content"]
    assert shown.startswith("first\n") and shown.endswith("\nlast")


@pytest.mark.requirement("SAF-8")
@pytest.mark.parametrize(
    "text", ["https://host.example/?q=password%3A%20@@", r"\u5bc6\u7801\uff1a@@ ok", r"{\"api_key\":\"@@\"}"]
)
def test_a_secret_is_found_behind_an_encoded_name(text: str) -> None:
    assert redacted(text.replace("@@", "Xy7" + made(12))) == text.replace("@@", REDACTED)


@pytest.mark.requirement("SAF-8")
@cases("value", lists=True, ids=str)
def test_a_parameter_is_secret_by_its_name(value: object) -> None:
    shown = json.dumps(Redactor().value(json.loads(json.dumps(value).replace("@@", made(24)))))
    assert parts_left(made(24), shown) == [] and REDACTED in shown


def test_ordinary_parameters_and_lists_stay_as_they_are() -> None:
    run = "20260131-093000123-9f3ac1"
    held = {"token": run, "idempotency_key": f"{run}/1/skills/helper", "max_tokens": "4096", "author": "Ann Lee"}
    held |= {"password": "required", "key": "name", "page_token": "next"}
    words = ["the", "password:", "twelve", "characters", "C:\\new\\token", "100%20of"]
    assert Redactor().value([held, words, list(EVERYDAY)]) == [held, words, list(EVERYDAY)]


@pytest.mark.requirement("SAF-8")
@pytest.mark.parametrize(
    "encoded",
    [
        PASSWORD,
        f"\\n{PASSWORD}",
        quote(PASSWORD),
        json.dumps({"x": json.dumps(f'"{PASSWORD}"')}),
        base64.b64encode(PASSWORD.encode()).decode(),
        base64.b64encode(f"ann:{PASSWORD}".encode()).decode(),
        base64.urlsafe_b64encode(f"x:{PASSWORD}:y".encode()).decode(),
    ],
)
def test_a_secret_that_a_turn_has_shown_is_replaced_in_any_encoding_until_the_turn_ends(encoded: str) -> None:
    text = f"it prints {encoded} here"
    with remembering():
        assert redacted(text) == text
        redacted(f"password: {PASSWORD}")
        shown = redacted(text)  # another redactor, as each store has its own
    middle = (encoded, encoded[4:-6])[len(encoded) > 24]
    assert middle not in shown and shown.startswith("it prints ") and shown.endswith(" here")
    assert redacted(text) == text


def test_an_everyday_word_after_a_name_is_not_replaced_elsewhere() -> None:
    with remembering():
        assert redacted('token = "description"') == f'token = "{REDACTED}"'
        assert redacted("the description of test.py") == "the description of test.py"
        redacted("pwd: ab12cd")
        assert redacted("xab12cdx ab12cd") == f"xab12cdx {REDACTED}"


# ---- through the command line

TOLD = "FAKE_SERVICE_TOKEN"
SAYS = "print('known @known')\nprint('token @token')\n"
LONG = f"{SAYS}for _ in range(2000):\n    print('filler filler filler')\n{SAYS}"
SKILLS = {"short-leak": SAYS, "long-leak": LONG, "failing-leak": f"{LONG}raise SystemExit(3)\n"}
KEEPS = "import hashlib, sys\nopen('given', 'w').write(hashlib.sha256(sys.argv[1].encode()).hexdigest())\n"


@pytest.fixture
def secrets() -> tuple[str, str]:
    """A value that only this environment has, and one shaped like a GitHub token; new ones each time."""
    letters = random.SystemRandom().choices(LETTERS, k=56)
    return "".join(letters[:20]), "ghp_" + "".join(letters[20:])


@pytest.fixture
def here(tmp_path: Path, secrets: tuple[str, str]) -> Place:
    place = place_in(tmp_path)
    for name, script in SKILLS.items():
        script = script.replace("@known", secrets[0]).replace("@token", secrets[1])
        place.write(below(f".claude/skills/{name}", type_a(name, script)))
    keeper = type_a("keeper", KEEPS, extra="required_params: [{name: text, prompt: what}]\n")
    keeper["SKILL.md"] = keeper["SKILL.md"].replace("/run.py", "/run.py {{text}}")
    place.write(below(".claude/skills/keeper", keeper))
    return place


def asked(here: Place, secrets: tuple[str, str], *words: str) -> Done:
    return here.run("ask", *words, env={TOLD: secrets[0]})


def holders(here: Place, secrets: tuple[str, str], *names: str) -> list[str]:
    """The files below mybox that match a name and hold one of the secrets."""
    files = [path for name in names for path in (here.root / "mybox").rglob(name) if path.is_file()]
    assert files, names
    return [str(path) for path in files if any(one.encode() in path.read_bytes() for one in secrets)]


@pytest.mark.wide
@pytest.mark.requirement("SAF-8")
@pytest.mark.parametrize(("skill", "form"), [("short-leak", "detail"), ("short-leak", "raw"), ("long-leak", "raw")])
@pytest.mark.parametrize("more", [(), ("--json",)], ids=["plain", "json"])
def test_no_output_shows_a_secret(
    here: Place, secrets: tuple[str, str], skill: str, form: str, more: tuple[str, ...]
) -> None:
    done = asked(here, secrets, "--yes", "--format", form, *more, f"/{skill} now")
    assert (done.code, REDACTED in done.out) == (0, True), done
    assert not any(one in done.out + done.err for one in secrets)


@pytest.mark.wide
@pytest.mark.requirement("SAF-8")
def test_nothing_that_is_left_behind_contains_a_secret(here: Place, secrets: tuple[str, str]) -> None:
    for skill in SKILLS:
        asked(here, secrets, "--yes", "--session", "s", f"/{skill} now")
    assert holders(here, secrets, "*.jsonl", "sessions.sqlite*", "step-*.json") == []
    assert REDACTED in next((here.root / "mybox").rglob("step-*.json")).read_text()


@pytest.mark.requirement("SAF-8")
def test_a_pending_command_runs_with_its_original_secret_after_a_yes(here: Place, secrets: tuple[str, str]) -> None:
    token = secrets[1]
    assert asked(here, secrets, "--session", "s", f"/keeper {token}").code == 9
    assert asked(here, secrets, "--session", "s", "yes").code == 0
    (given,) = (here.root / "mybox").rglob("given")
    assert given.read_text() == hashlib.sha256(token.encode()).hexdigest()


@pytest.mark.requirement("SAF-8")
def test_a_message_is_stored_without_its_secret(here: Place, secrets: tuple[str, str]) -> None:
    asked(here, secrets, "--yes", "--session", "s", f"/keeper {secrets[1]}")
    shown = here.said("session", "show", "s")
    assert "/keeper" in shown and secrets[1] not in shown
    assert holders(here, secrets, "*.jsonl", "sessions.sqlite*") == []


@pytest.mark.requirement("SAF-8")
def test_the_names_of_files_that_a_failing_skill_made_show_no_secret(here: Place, secrets: tuple[str, str]) -> None:
    script = f"open('{secrets[1]}.txt', 'w').write('x')\nraise SystemExit(3)\n"
    here.write(below(".claude/skills/namer", type_a("namer", script)))
    done = asked(here, secrets, "--yes", "--json", "/namer now")
    assert (done.code, secrets[1] in done.out) == (1, False)

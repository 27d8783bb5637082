"""Hostile words: sources, refs and names of skills that git, ssh or a shell takes for options or commands."""

from __future__ import annotations

from collections.abc import Callable

from hostile.ground import Case, Ground, Harm, Order, Outcome, leaked, ran, skill
from hostile.trees import GOOD, MISSING, REFUSED, UNFETCHED
from skill_repositories import skill_text

USAGE = 2


def upstream(ground: Ground) -> None:
    ground.commit(skill("good"))


def asked(source: str, *, ref: str = "", only: str = "", words: tuple[str, ...] = ()) -> Callable[[Ground], Order]:
    """An order whose parts can name places of the ground."""

    def build(ground: Ground) -> Order:
        upstream(ground)
        facts = {"touch": ground.touch, "url": ground.url, "base": ground.base, "canary": ground.canary}
        held = source.format(**facts)
        return Order(
            source=held,
            ref=ref.format(**facts),
            skill=only.format(**facts),
            words=[word.format(source=held, **facts) for word in words],
        )

    return build


def case(name: str, build: Callable[[Ground], Order], way: str, code: int, said: str, harm: Harm | None = ran) -> Case:
    return Case(name=name, build=build, way=way, harm=harm, code=code, said=said)


UPLOAD = "--upload-pack={touch};git-upload-pack"
HELPERS = (
    case("helper-ext", asked("ext::sh -c touch% {canary}"), "clone", REFUSED, "transport helper"),
    case("helper-ext-with-slashes", asked("ext::sh -c touch% {canary};://x"), "clone", REFUSED, "transport helper"),
    case("helper-file-descriptor", asked("fd::17/x"), "clone", REFUSED, "transport helper", None),
    case("option-as-source", asked(UPLOAD), "argv", REFUSED, "looks like an option"),
    case("option-as-source-bare", asked(UPLOAD, words=("skill", "install", "--json", "{source}")), "argv", USAGE,
         "No such option"),
    case("option-as-ref", asked("{url}", ref=UPLOAD), "clone", REFUSED, "is not a ref"),
    case("option-as-fragment", asked("{url}#" + UPLOAD), "fragment", REFUSED, "is not a ref"),
    case("ref-that-is-a-range", asked("{url}", ref="main..x"), "clone", REFUSED, "is not a ref", None),
    case("ref-with-a-colon", asked("{url}", ref="+refs/*:refs/*"), "clone", REFUSED, "is not a ref", None),
    case("ref-in-the-log", asked("{url}", ref="main@{{0}}"), "clone", REFUSED, "is not a ref", None),
    case("ssh-proxy-command", asked("ssh://-oProxyCommand=env -C .. touch canary/x"), "ssh", REFUSED, "not a plain host"),
    case("ssh-proxy-command-of-a-user", asked("ssh://git@-oProxyCommand=env -C .. touch canary/x"), "ssh", REFUSED, "not a plain host"),
    case("ssh-proxy-command-short", asked("git@-oProxyCommand=env -C .. touch canary:x"), "ssh", REFUSED, ""),
)  # fmt: skip


def shelled(name: str, source: str, code: int, said: str, only: str = "good") -> Case:
    """Words in which a shell finds commands."""
    return case(name, asked(source, only=only), "shell", code, said)


SHELL = (
    shelled("shell-dollar", "{url}$({touch})", UNFETCHED, "failed"),
    shelled("shell-backticks", "{url}`{touch}`", UNFETCHED, "failed"),
    shelled("shell-semicolon", "{url};{touch}", UNFETCHED, "failed"),
    shelled("shell-pipe", "{url}|{touch}", UNFETCHED, "failed"),
    shelled("shell-and", "{url}&{touch}", UNFETCHED, "failed"),
    shelled("shell-newline", "{url}\n{touch}", REFUSED, "control characters"),
    shelled("shell-owner", "owner/repo$({touch})", 2, "not a source"),
    shelled("shell-redirect", "{url} .clone2 >{canary}", UNFETCHED, "failed"),
    shelled("shell-skill", "{url}", MISSING, "no skill here", only="$({touch})"),
    shelled("shell-skill-backticks", "{url}", MISSING, "no skill here", only="`{touch}`"),
)


def shell_folder(ground: Ground) -> Order:
    """A folder that really has this name; our installer may read it."""
    path = ground.base / f"a$({ground.touch.replace(str(ground.base), '..')})" / "skills" / "good"
    path.mkdir(parents=True)
    (path / "SKILL.md").write_text(skill_text("good"))
    return Order(source=f"{ground.base}/a$({ground.touch.replace(str(ground.base), '..')})", skill="good")


def told_secret(ground: Ground, outcome: Outcome) -> bool:
    """The password is in the output, or in a file of the project."""
    return "hunter2" in outcome.broke or any(b"hunter2" in data for _, data in ground.held(ground.naive))


def climbed(ground: Ground) -> Order:
    """A source that climbs out of the folder of public repositories."""
    upstream(ground)
    ground.upstream.rename(ground.outside / "repository")
    (ground.base / "public").mkdir()
    return Order(source=f"file://{ground.base}/public/../outside/repository")


def taken(ground: Ground, _: Outcome) -> bool:
    return "good" in ground.skills(ground.naive)


ELSEWHERE = (
    Case(name="shell-folder", build=shell_folder, way="shell", harm=ran, code=0, installed=GOOD),
    case("password-in-the-url", asked("https://me:hunter2@127.0.0.1:1/x/y"), "clone", REFUSED, "user or password",
         told_secret),
    case("password-in-ssh", asked("ssh://me:hunter2@127.0.0.1:1/x/y"), "clone", REFUSED, "user or password",
         told_secret),
    case("token-in-the-url", asked("https://hunter2@127.0.0.1:1/x/y"), "clone", REFUSED, "user or password",
         told_secret),
    Case(name="url-climbs", build=climbed, harm=taken, code=REFUSED, said="leads upwards"),
    Case(name="url-climbs-encoded", build=lambda ground: Order(
        source=climbed(ground).source.replace("..", "%2e%2e")), way="decoded", harm=taken, code=REFUSED,
        said="leads upwards"),
    case("skill-climbs", asked("{url}", only="../../../outside/private"), "clone", MISSING, "no skill here", leaked),
    case("skill-absolute", asked("{url}", only="{base}/outside/private"), "clone", MISSING, "no skill here", leaked),
    case("file-of-another-machine", asked("file://host{base}/upstream"), "clone", REFUSED, "another machine", None),
    case("plain-http", asked("http://evil.invalid/x/y"), "clone", REFUSED, "not an allowed transport", None),
    case("plain-git", asked("git://127.0.0.1:1/x/y"), "clone", REFUSED, "not an allowed transport", None),
    case("host-cyrillic", asked("https://g\u0456thub.com/x/y"), "clone", REFUSED, "plain host", None),
    case("host-punycode", asked("https://xn--gthub-zza.com/x/y"), "clone", REFUSED, "plain host", None),
    case("host-backslash", asked("https://evil.invalid\\@github.com/x/y"), "clone", REFUSED, "backslash", None),
    case("source-bidi", asked("owner/\u202erepo"), "clone", REFUSED, "control characters", None),
    case("source-empty", asked(" "), "clone", 2, "missing", None),
)  # fmt: skip

WORDS = (*HELPERS, *SHELL, *ELSEWHERE)

"""Hostile commits: links, names, modes, nested repositories, settings that a checkout obeys, and large amounts."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from hostile.ground import (
    SECRET,
    Case,
    Flat,
    Ground,
    Harm,
    Order,
    Outcome,
    Raw,
    broke,
    escaped,
    leaked,
    limited,
    link,
    overwritten,
    ran,
    skill,
)
from skill_repositories import skill_text

REFUSED, MISSING, UNREAD, UNFETCHED = 3, 4, 1, 7
GOOD = frozenset({"good"})


def tree(files: Callable[[Ground], Flat], *, only: str = "", raw: Raw | None = None) -> Callable[[Ground], Order]:
    def build(ground: Ground) -> Order:
        ground.commit(files(ground), raw=raw)
        return Order(source=ground.url, skill=only)

    return build


def linked(name: str, links: Mapping[str, str], said: str, harm: Harm = leaked, **more: object) -> Case:
    """A skill `x` with links whose targets can name places of the ground."""

    def files(ground: Ground) -> Flat:
        held = {path: link(target.format(**vars(ground))) for path, target in links.items()}
        return {**skill("x"), **{path if "/" in path else f"skills/x/{path}": to for path, to in held.items()}}

    return Case(name=name, build=tree(files), harm=harm, **{"code": REFUSED, "said": said, **more})  # type: ignore[arg-type]  # the fields of a case, by name


def listed(
    name: str, more: Flat, code: int, said: str, harm: Harm | None, way: str = "download", **given: object
) -> Case:
    """A skill `x` with odd entries beside its manifest."""
    return Case(
        name=name,
        build=tree(lambda _: skill("x", more)),
        way=way,
        harm=harm,
        code=code,
        said=said,
        **given,  # type: ignore[arg-type]  # the fields of a case, by name
    )


def neighbour(ground: Ground) -> Order:
    """A good skill beside a hostile one; the order names the good one."""
    ground.commit({**skill("good"), "skills/x/SKILL.md": link(f"{ground.outside}/secret")})
    return Order(source=ground.url, words=("skill", "install", "--skill=good", "--json", ground.url))


OUT = "leads out"
LINKS = (
    linked("link-passwd", {"notes.txt": "/etc/passwd"}, OUT),
    linked("link-secret-relative", {"notes.txt": "../../../../outside/secret"}, OUT),
    linked("link-folder-outside", {"data": "{outside}"}, OUT),
    linked("link-folder-relative", {"data": "../../../../outside/private"}, OUT),
    linked("link-chain", {"a": "../b", "skills/b": "../c", "c": "/etc/passwd"}, "is a link"),
    linked("link-through-parent", {"up": "../..", "secret": "up/../../outside/secret"}, "is a link"),
    linked("link-through-folder-link", {"out": "{outside}", "secret": "out/secret"}, OUT),
    linked("link-environment", {"env": "/proc/self/environ"}, OUT, way="clone!"),
    linked("link-clone-settings", {"settings": "../../.git/config"}, "is a link", harm=lambda ground, _: any(
        b"[remote" in data for path, data in ground.held(ground.naive) if path.name == "settings")),
    linked("link-to-itself", {"me": "me"}, "is a link", harm=broke("me'")),
    linked("link-circle", {"a": "b", "b": "a"}, "is a link", harm=broke("b'")),
    linked("link-endless-device", {"zero": "/dev/zero"}, OUT, harm=limited, way="clone!"),
    linked("link-folders-within-themselves", {"a": ".", "b": "."}, "is a link", harm=limited, way="clone!"),
    Case(
        name="link-manifest",
        build=tree(lambda _: {"skills/x/SKILL.md": link("/etc/passwd")}),
        harm=leaked,
        code=REFUSED,
        said=OUT,
    ),
    Case(name="link-manifest-of-another", build=neighbour, harm=leaked, code=0, installed=GOOD),
    Case(
        name="link-then-written-through",
        build=tree(lambda ground: skill("x", {"out": link(str(ground.outside)), "out/pwned": "x"})),
        way="download",
        harm=escaped,
        code=UNFETCHED,
        said="duplicateEntries",
    ),
)  # fmt: skip

NAMES = (
    listed("name-dotdot", {"../../../../../../outside/pwned": "x"}, UNFETCHED, "hasDotdot", escaped),
    listed("name-dotdot-as-file", {"..": "x"}, UNFETCHED, "hasDotdot", broke("Errno")),
    listed("name-dot", {"!run.sh": "shown", "./!run.sh": "hidden"}, UNFETCHED, "hasDot", lambda ground, _: any(
        data == b"hidden" for path, data in ground.held(ground.naive))),
    Case(
        name="name-with-slashes",
        build=tree(lambda _: skill("x"), raw=[("100644", "../../../../outside/pwned", b"x")]),
        way="download",
        harm=escaped,
        code=UNFETCHED,
        said="fullPathname",
    ),
    Case(
        name="name-absolute",
        build=lambda ground: tree(lambda _: skill("x"), raw=[("100644", f"{ground.outside}/pwned", b"x")])(ground),
        way="download",
        harm=escaped,
        code=UNFETCHED,
        said="fullPathname",
    ),
    listed("name-like-an-option", {"--checkpoint=1": "x", "--checkpoint-action=exec=sh run.sh": "x"}, REFUSED,
           "read as an option", None),
    listed("name-steering", {"a\x1b[2Jb.md": "x"}, REFUSED, "not a plain path", lambda ground, _: any(
        "\x1b" in path.name for path, _ in ground.held(ground.naive)), way="clone"),
    listed("name-bidi", {"\u202efdp.exe": "x"}, REFUSED, "not a plain path", lambda ground, _: any(
        "\u202e" in path.name for path, _ in ground.held(ground.naive)), way="clone"),
    listed("name-newline", {"a\nSKILL.md": "x"}, REFUSED, "not a plain path", lambda ground, _: any(
        "\n" in path.name for path, _ in ground.held(ground.naive)), way="clone"),
    listed("name-no-unicode", {"caf\udce9.md": "x"}, REFUSED, "not a plain path", lambda ground, _: any(
        "\udce9" in path.name for path, _ in ground.held(ground.naive)), way="clone"),
    listed("name-device", {"aux.md": "x", "COM1": "x", "nul": "x"}, REFUSED, "device", None),
    listed("name-trailing-dot", {"SKILL.md.": "x"}, REFUSED, "ends in a dot", None),
    listed("name-backslash", {"..\\..\\pwned": "x"}, REFUSED, "not a plain path", None),
    listed("name-too-long", {"n" * 250: "x"}, REFUSED, "too long", None),
    listed("collision-of-case", {"README.md": "shown", "readme.md": "read"}, REFUSED, "one name", None),
    listed("collision-of-forms", {"caf\u00e9": "shown", "cafe\u0301": "read"}, REFUSED, "one name", None),
)  # fmt: skip


def starred(ground: Ground) -> Order:
    """Names that the shell's `*` passes to tar as options."""
    more = {"--checkpoint=1": "x", "--checkpoint-action=exec=sh run.sh": "x", "run.sh": f"touch {ground.canary}\n"}
    ground.commit(skill("x", more))
    return Order(source=ground.url, shown="x")


REPOSITORY = {
    "HEAD": "ref: refs/heads/main\n",
    "objects/info/packs": "",
    "refs/heads/.keep": "",
}


def inner(folder: str, ground: Ground) -> Flat:
    settings = (
        f'[core]\nrepositoryformatversion = 0\nbare = false\nworktree = ..\nfsmonitor = "touch {ground.canary};"\n'
    )
    held = {**REPOSITORY, "config": settings}
    return {f"{folder}/{path}": text for path, text in held.items()}


def submodule(url: str) -> Callable[[Ground], Flat]:
    def files(ground: Ground) -> Flat:
        modules = f'[submodule "m"]\n\tpath = skills/x/m\n\turl = {url.format(**vars(ground))}\n'
        if url == "PRIVATE":
            inside = Ground(ground.base / "outside" / "repository")
            inside.commit({"SKILL.md": skill_text("private", SECRET.strip())})
            modules = modules.replace("PRIVATE", inside.url)
            oid = (inside.upstream / ".git/refs/heads/main").read_text().strip()
        else:
            oid = "1" * 40
        return {**skill("x", {"m": ("160000", oid)}), ".gitmodules": modules}

    return files


REPOSITORIES = (
    Case(name="option-like-files", build=starred, way="clone+backup", harm=ran, code=REFUSED, said="read as an option"),
    Case(name="nested-git", build=tree(lambda ground: skill("x", inner(".git", ground))), way="download+status", harm=ran,
         code=UNFETCHED, said="hasDotgit"),
    Case(name="nested-git-bare", build=tree(lambda ground: skill("x", inner("vendor", ground))), way="clone+status",
         harm=ran, code=REFUSED, said="git repository"),
    Case(name="nested-git-in-capitals", build=tree(lambda ground: skill("x", inner(".GIT", ground))), code=UNFETCHED,
         said="hasDotgit"),
    Case(name="nested-git-short-name", build=tree(lambda ground: skill("x", inner("git~1", ground))), code=UNFETCHED,
         said="hasDotgit"),
    Case(name="submodule-helper", build=tree(submodule("ext::sh -c touch% {canary}")), harm=ran, code=REFUSED,
         said="submodule"),
    Case(name="submodule-private", build=tree(submodule("PRIVATE")), harm=leaked, code=REFUSED, said="submodule"),
)  # fmt: skip


def configured(setting: str, files: Flat) -> Callable[[Ground], Order]:
    """A person whose own git settings run what the repository contains, as LFS and shared hooks do."""

    def build(ground: Ground) -> Order:
        settings = Path(os.environ["GIT_CONFIG_GLOBAL"])
        settings.write_text(settings.read_text() + setting.format(script=ground.script))
        hook = ("100755", ground.script.read_text())
        ground.commit({path: hook if held == "HOOK" else held for path, held in files.items()})
        return Order(source=ground.url)

    return build


POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 12345\n"
LFS = '[filter "lfs"]\n\tsmudge = {script}\n'


def other_bytes(ground: Ground, _: Outcome) -> bool:
    """The project's bytes differ from those of the commit."""
    return any(path.name == "run.sh" and data != b"$Id$\necho\n" for path, data in ground.held(ground.naive))


SETTINGS = (
    Case(name="attributes-filter", build=configured('[filter "x"]\n\tsmudge = {script}\n', {
        **skill("good"), ".gitattributes": "* filter=x\n"}), harm=ran, code=0, installed=GOOD),
    Case(name="attributes-lfs", build=configured(LFS, {
        **skill("good", {"model.bin": POINTER}), ".gitattributes": "*.bin filter=lfs -text\n"}), harm=ran, code=0,
        installed=GOOD),
    Case(name="hooks-in-the-tree", build=configured("[core]\n\thooksPath = .hooks\n", {
        **skill("good"), ".hooks/post-checkout": "HOOK"}), harm=ran, code=0, installed=GOOD),
    Case(name="fsmonitor-in-the-tree", build=configured("[core]\n\tfsmonitor = .hooks/monitor\n", {
        **skill("good"), ".hooks/monitor": "HOOK"}), harm=ran, code=0, installed=GOOD),
    Case(name="attributes-line-ends", build=tree(lambda _: {**skill("good", {"run.sh": "$Id$\necho\n"}),
        ".gitattributes": "*.sh text eol=crlf\n"}), harm=other_bytes, code=0, installed=GOOD),
    Case(name="attributes-ident", build=tree(lambda _: {**skill("good", {"run.sh": "$Id$\necho\n"}),
        ".gitattributes": "*.sh ident\n"}), harm=other_bytes, code=0, installed=GOOD),
    Case(name="attributes-encoding", build=tree(lambda _: {**skill("good", {"run.sh": "$Id$\necho\n"}),
        ".gitattributes": "*.sh text working-tree-encoding=UTF-16\n"}), harm=other_bytes, code=0, installed=GOOD),
)  # fmt: skip


def upstream_settings(ground: Ground) -> Order:
    """An upstream on this machine whose own settings and hooks run the canary."""
    ground.commit(skill("good"))
    store = ground.upstream / ".git"
    run = f"{ground.script}"
    keys = {"core": ("fsmonitor", "sshCommand", "pager", "alternateRefsCommand", "askPass"), "diff": ("external",),
            "uploadpack": ("packObjectsHook",), "gpg": ("program",)}  # fmt: skip
    text = "".join(f"[{part}]\n" + "".join(f"\t{key} = {run}\n" for key in names) for part, names in keys.items())
    (store / "config").write_text((store / "config").read_text() + text)
    (store / "hooks").mkdir()
    for hook in (
        "post-checkout",
        "pre-receive",
        "update",
        "post-update",
        "reference-transaction",
        "fsmonitor-watchman",
    ):
        (store / "hooks" / hook).write_text(ground.script.read_text())
        (store / "hooks" / hook).chmod(0o755)
    return Order(source=ground.url)


def local_settings(ground: Ground) -> Order:
    """The same upstream, given as a plain folder."""
    upstream_settings(ground)
    held = ground.upstream / "skills" / "good"
    held.mkdir(parents=True)
    (held / "SKILL.md").write_text(skill_text("good"))
    return Order(source=str(ground.upstream))


def has_mode(mode: int) -> Harm:
    return lambda ground, _: any(path.stat().st_mode & 0o7777 & mode for path, _ in ground.held(ground.naive))


MODES = (
    Case(name="upstream-settings", build=upstream_settings, way="folder", harm=ran, code=0, installed=GOOD),
    Case(name="folder-settings", build=local_settings, way="folder", harm=ran, code=0, installed=GOOD),
    listed("mode-setuid", {"run": ("104755", "x")}, 0, "", has_mode(0o4000), installed=frozenset({"x"})),
    listed("mode-setgid", {"run": ("102755", "x")}, 0, "", has_mode(0o2000), installed=frozenset({"x"})),
    listed("mode-for-all", {"run": ("100777", "x")}, 0, "", has_mode(0o002), installed=frozenset({"x"})),
    listed("mode-pipe", {"run": ("10644", "x")}, REFUSED, "is a submodule", None),
    listed("mode-device", {"run": ("60644", "x")}, REFUSED, "is a submodule", None),
)


def half(ground: Ground, outcome: Outcome) -> bool:
    """The installer failed and left part of the skill behind."""
    return bool(outcome.broke) and "x" in ground.skills(ground.naive)


def deep(ground: Ground) -> Order:
    held = ground.put("tree", b"100644 f\0" + bytes.fromhex(ground.put("blob", b"x")))
    for _ in range(600):
        held = ground.put("tree", b"40000 d\0" + bytes.fromhex(held))
    ground.commit(skill("x", {"d": ("40000", held)}))
    return Order(source=ground.url)


def bomb(ground: Ground) -> Order:
    """Ten folders of ten folders of …: a few hundred bytes that expand to a million files."""
    held: str = ground.put("tree", b"100644 f\0" + bytes.fromhex(ground.put("blob", b"x")))
    for _ in range(6):
        held = ground.put("tree", b"".join(b"40000 d%d\0" % at + bytes.fromhex(held) for at in range(10)))
    ground.commit(skill("x"), raw=[("40000", "bomb", held)])
    return Order(source=ground.url)


def bytes_over(limit: int) -> Harm:
    return lambda ground, _: sum(len(data) for _, data in ground.held(ground.naive, limit=2**40)) > limit


MEGA = 2**20
AMOUNTS = (
    listed("too-many-files", {f"f{at}": "x" for at in range(2100)}, REFUSED, "over 2000",
           lambda ground, _: sum(1 for _ in ground.held(ground.naive)) > 2000, way="clone"),
    Case(name="too-deep", build=deep, harm=half, code=REFUSED, said="deeper"),
    listed("file-too-large", {"zeros": b"\0" * (11 * MEGA)}, REFUSED, "over", bytes_over(10 * MEGA), way="clone"),
    listed("same-file-many-times", {f"z{at}": b"\0" * (9 * MEGA) for at in range(6)}, REFUSED, "over",
           bytes_over(50 * MEGA), way="clone"),
    Case(name="tree-bomb", build=bomb, way="clone!", harm=limited, code=REFUSED, said="files"),
)  # fmt: skip


OWNERS = (
    Case(name="owner-by-declared-name", build=tree(lambda _: {"skills/x/SKILL.md": skill_text("mine")}),
         harm=overwritten, code=REFUSED, said="not installed by navigator"),
    Case(name="owner-by-folder-name", build=tree(lambda _: skill("mine")), harm=overwritten, code=REFUSED,
         said="not installed by navigator"),
)  # fmt: skip

TREES = (*LINKS, *NAMES, *REPOSITORIES, *SETTINGS, *MODES, *AMOUNTS, *OWNERS)

"""Records that a stranger supplies: in a skill, in the project itself, in a marketplace's list."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hostile.ground import (
    HOST,
    Case,
    Ground,
    Harm,
    Order,
    Outcome,
    escaped,
    leaked,
    overwritten,
    ran,
    skill,
)
from hostile.trees import GOOD, REFUSED, tree
from navigator_kernel.skills.catalog.receipts import tree_digest
from navigator_kernel.values.receipt import InstalledFile
from skill_repositories import skill_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

DAMAGED = 6
FROZEN = ("skill", "install", "--frozen", "--json")


def lock(name: str, **more: Any) -> Callable[[Ground], Order]:
    """A project whose lock file restores the upstream's skill `x` as `name`."""

    def build(ground: Ground) -> Order:
        text = skill_text("x").encode()
        commit = ground.commit(skill("x"))
        facts = {"touch": ground.touch, "canary": ground.canary, "base": ground.base}
        entry: dict[str, Any] = {
            "source": ground.url,
            "ref": "",
            "commit": commit,
            "subpath": "skills/x",
            "tree": "",
            "verdict": "ok",
        }
        entry |= {key: value.format(**facts) if isinstance(value, str) else value for key, value in more.items()}
        files = (file(more.get("path", "SKILL.md"), text if name == "x" else renamed(text, name)),)
        entry |= {"files": [one.to_dict() for one in files], "digest": tree_digest(files)}
        entry.pop("path", None)
        for project in (ground.naive, ground.ours):
            path = project / "skills.lock.json"
            path.write_text(json.dumps({"version": 1, "skills": {name.format(**facts): entry}}))
        return Order(source="", words=FROZEN)

    return build


def renamed(text: bytes, name: str) -> bytes:
    return text.replace(b"name: x", f"name: {name}".encode())


def file(path: str, data: bytes) -> InstalledFile:
    import hashlib

    return InstalledFile(path=path, sha256=hashlib.sha256(data).hexdigest(), mode=0o644, size=len(data))


def locked(name: str, build: Callable[[Ground], Order], said: str, harm: Harm | None, code: int) -> Case:
    return Case(name=f"lock-{name}", build=build, way="locked", harm=harm, code=code, said=said)


def beside(ground: Ground, _: Outcome) -> bool:
    """The installer made a folder in the project that is not a skill."""
    return (ground.naive / "mybox" / "pwned").exists()


LOCKS = (
    locked("name-climbs", lock("../../../outside/pwned", declared="x"), "cannot be read", escaped, DAMAGED),
    locked("name-into-the-project", lock("../../mybox/pwned", declared="x"), "cannot be read", beside, DAMAGED),
    locked("name-over-mine", lock("../skills/mine", declared="x"), "cannot be read", overwritten, DAMAGED),
    locked("name-over-mine-from-scratch", lock("../../../mine", declared="x"), "cannot be read", None, DAMAGED),
    locked("name-mine", lock("mine", declared="x"), "not installed by navigator", overwritten, REFUSED),
    locked("source-runs", lock("x", source="ext::sh -c touch% {canary}"), "transport helper", ran, REFUSED),
    locked(
        "source-is-an-option",
        lock("x", source="--upload-pack={touch};git-upload-pack"),
        "like an option",
        None,
        REFUSED,
    ),
    locked(
        "source-has-a-proxy", lock("x", source="ssh://-oProxyCommand={touch}/x"), "not a plain host name", None, REFUSED
    ),
    locked("path-climbs", lock("x", path="../mine/SKILL.md"), "not what the lock says", None, DAMAGED),
)


def finished(ground: Ground) -> Order:
    """A project with a record that says that a change of the skill `mine` is unfinished."""
    ground.commit(skill("good"))
    for project in (ground.naive, ground.ours):
        inner = project.joinpath(*HOST, ".navigator")
        scratch = inner / "change-0123456789abcdef"
        (scratch / "new" / "mine").mkdir(parents=True)
        (scratch / "new" / "mine" / "SKILL.md").write_text(skill_text("mine", "theirs"))
        body = {"v": 2, "scratch": scratch.name, "seal": "1:2", "folders": {"mine": [True, ""]}, "files": {}}
        (inner / "intent").write_text(json.dumps(body))
    return Order(source=ground.url)


def market(*plugins: Mapping[str, object]) -> Callable[[Ground], Order]:
    """A repository with a skill `good` and a marketplace that also lists others."""

    def build(ground: Ground) -> Order:
        held = json.dumps({"name": "market", "plugins": plugins}).replace("OUTSIDE", str(ground.outside))
        ground.commit({**skill("good"), ".claude-plugin/marketplace.json": held})
        return Order(source=ground.url)

    return build


def sold(name: str, *plugins: Mapping[str, object]) -> Case:
    return Case(name=f"market-{name}", build=market(*plugins), way="market", harm=leaked, code=0, installed=GOOD)


def smuggling(name: str, files: Mapping[str, str]) -> Case:
    """Files in a skill with names that the kernel uses; there they are plain files."""
    return Case(name=name, build=tree(lambda _: skill("good", files)), harm=None, code=0, installed=GOOD)


def linked_home(ground: Ground) -> Order:
    """A project whose folder of skills is a link that leads out."""
    ground.commit(skill("pwned"))
    for project in (ground.naive, ground.ours):
        _moved(project.joinpath(*HOST), project / "kept")
        project.joinpath(*HOST).symlink_to(ground.outside)
    return Order(source=ground.url)


def _moved(path: Path, to: Path) -> None:
    path.rename(to)


RECEIPT = '{"v": 1, "name": "mine", "source": "x", "files": []}'
PROJECTS = (
    Case(name="intent-of-a-stranger", build=finished, way="intent", harm=overwritten, code=0, installed=GOOD),
    Case(name="skills-linked-away", build=linked_home, harm=escaped, code=REFUSED, said="leads out of"),
    sold("source-climbs", {"name": "p", "source": "../../outside/private"}),
    sold("source-absolute", {"name": "p", "source": "OUTSIDE/private"}),
    sold("skill-climbs", {"name": "p", "source": "./", "skills": ["./../../outside/private"]}),
    sold("skill-absolute", {"name": "p", "source": "./", "skills": ["OUTSIDE/private"]}),
    smuggling("smuggled-receipt", {".navigator/mine.json": RECEIPT, ".navigator/intent": "{}"}),
    Case(
        name="name-of-the-intent",
        build=tree(lambda _: skill("intent")),
        harm=None,
        code=0,
        installed=frozenset({"intent"}),
    ),
    smuggling("smuggled-lock", {"skills.lock.json": '{"version": 1, "skills": {}}', "skills.db": "[]", "lock": ""}),
    smuggling("smuggled-settings", {".gitattributes": "* filter=x\n", ".lfsconfig": "[lfs]\n", ".gitmodules": ""}),
)

SMUGGLED = (*LOCKS, *PROJECTS)

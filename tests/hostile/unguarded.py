"""Installers that trust the skills they are given: each case must first do its harm to one of them."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import shutil
import stat
import subprocess
import sys
import tarfile
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from hostile.ground import HOST, Ground, Order, Outcome

LIMITS = {resource.RLIMIT_AS: 512 * 2**20, resource.RLIMIT_CPU: 1, resource.RLIMIT_FSIZE: 8 * 2**20}
CREDULOUS = ("-c", "protocol.allow=always", "-c", "safe.bareRepository=all")


def install(ground: Ground, way: str, order: Order) -> Outcome:
    """Installs `order` into the naive project by the steps of `way`; with `!`, in a process with small limits."""
    if way.endswith("!"):
        return _limited(ground, way.rstrip("!"), order)
    outcome = Outcome()
    os.environ["TOKEN"] = "TOKEN-IN-ENV"
    try:
        for step in way.split("+"):
            STEPS[step](ground, order, outcome)
    except Exception as error:  # some cases expect a failure
        outcome.broke = f"{type(error).__name__}: {error}"
    return outcome


def _limited(ground: Ground, way: str, order: Order) -> Outcome:
    words = [sys.executable, __file__, str(ground.base), way, order.source, order.skill]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(words, capture_output=True, env=env, timeout=30, check=False)
    text = done.stdout.decode(errors="replace")
    if done.returncode == 0:
        found = json.loads(text.splitlines()[-1])
        return Outcome(broke=found["broke"], limit=found["limit"])
    return Outcome(limit=f"killed by signal {-done.returncode}")


# Ways to install


def _clone(ground: Ground, order: Order, outcome: Outcome) -> None:
    clone = ground.naive / ".clone"
    _git("clone", "--quiet", "--recurse-submodules", order.source, str(clone))
    if order.ref:
        _git("-C", str(clone), "fetch", "origin", order.ref)
    _place(clone, ground, order, outcome)


def _fragment(ground: Ground, order: Order, outcome: Outcome) -> None:
    source, _, ref = order.source.partition("#")
    _clone(ground, replace(order, source=source, ref=ref), outcome)


def _decoded(ground: Ground, order: Order, outcome: Outcome) -> None:
    _clone(ground, replace(order, source=unquote(order.source)), outcome)


def _argv(ground: Ground, order: Order, outcome: Outcome) -> None:
    """Clones with the source in a place where git accepts options."""
    clone = ground.naive / ".clone"
    _git("clone", order.source, ground.url, str(clone))
    _place(clone, ground, order, outcome)


def _shell(ground: Ground, order: Order, _: Outcome) -> None:
    skills = ground.naive.joinpath(*HOST)
    steps = f"git clone --quiet {order.source} .clone; cp -r .clone/skills/{order.skill} {skills}"
    subprocess.run(steps, shell=True, cwd=ground.naive, capture_output=True, check=False)


def _ssh(ground: Ground, order: Order, _: Outcome) -> None:
    host = order.source.removeprefix("ssh://").partition("/")[0].rpartition("@")[2]
    host = order.source.rpartition(":")[0].rpartition("@")[2] if "://" not in order.source else host
    subprocess.run(["ssh", host, "git-upload-pack", "x"], capture_output=True, timeout=20, check=False)


def _download(ground: Ground, order: Order, outcome: Outcome) -> None:
    """Writes each file of the tree at its path and with its mode, as tools write what an API lists."""
    store, top = ground.naive / ".store", ground.naive.joinpath(*HOST, ".clone")
    _git("clone", "--quiet", "--bare", "-c", "fetch.fsckObjects=false", order.source, str(store))
    for path, mode, oid in _walk(store, "HEAD^{tree}", ""):
        target = top / path
        target.parent.mkdir(parents=True, exist_ok=True)
        _written(target, _git("-C", str(store), "cat-file", "blob", oid), mode)
    _place(top, ground, order, outcome)


def _walk(store: Path, tree: str, above: str) -> Iterator[tuple[str, int, str]]:
    """Yields path, mode and id of each file, exactly as the trees have them."""
    held = _git("-C", str(store), "cat-file", "tree", tree)
    while held:
        head, _, rest = held.partition(b"\0")
        mode, _, name = head.partition(b" ")
        oid, held = rest[:20].hex(), rest[20:]
        path = f"{Path(above) / os.fsdecode(name)}"
        if int(mode, 8) == stat.S_IFDIR:
            yield from _walk(store, oid, path)
        else:
            yield path, int(mode, 8), oid


def _written(path: Path, data: bytes, mode: int) -> None:
    if stat.S_ISLNK(mode):
        path.symlink_to(os.fsdecode(data))
    else:
        path.write_bytes(data)
        path.chmod(stat.S_IMODE(mode))


def _folder(ground: Ground, order: Order, outcome: Outcome) -> None:
    """Installs from a local folder after asking git for its state."""
    _git("-C", order.source.removeprefix("file://"), "status", "--short")
    _place(Path(order.source.removeprefix("file://")), ground, order, outcome)


def _copied(ground: Ground, order: Order, outcome: Outcome) -> None:
    _announce(Path(order.source), ground, outcome)


# Python before 3.11.4 has no filters and trusts every archive
TRUSTING: dict[str, Any] = {"filter": "fully_trusted"} if hasattr(tarfile, "fully_trusted_filter") else {}


def _unpack(ground: Ground, order: Order, outcome: Outcome) -> None:
    target = ground.naive.joinpath(*HOST, "packed")
    target.mkdir(exist_ok=True)
    if zipfile.is_zipfile(order.source):
        _unzip(Path(order.source), target)
    else:
        with tarfile.open(order.source) as tar:
            tar.extractall(target, **TRUSTING)
    _announce(target, ground, outcome)


def _unzip(archive: Path, target: Path) -> None:
    """Unpacks members under the names they have, links too, as many a small unzip does."""
    with zipfile.ZipFile(archive) as pack:
        for info in pack.infolist():
            path = target / info.filename
            data = pack.read(info)
            if info.is_dir():
                path.mkdir(parents=True, exist_ok=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            mode = info.external_attr >> 16
            _written(path, data, mode if stat.S_IFMT(mode) else stat.S_IFREG | 0o644)


def _locked(ground: Ground, _: Order, outcome: Outcome) -> None:
    """Restores the skills of the project's lock file."""
    lock = json.loads((ground.naive / "skills.lock.json").read_text())
    for name, entry in lock["skills"].items():
        clone = ground.temp / "locked"
        _git("clone", "--quiet", entry["source"], str(clone))
        target = ground.naive.joinpath(*HOST, name)
        _cleared(target, ground)
        shutil.copytree(clone / entry["subpath"], target)
        outcome.printed += name


def _intent(ground: Ground, _: Order, __: Outcome) -> None:
    """Finishes the change that the project's own record calls unfinished."""
    inner = ground.naive.joinpath(*HOST, ".navigator")
    intent = json.loads((inner / "intent").read_text())
    for name in intent["folders"]:
        target = inner.parent / name
        _cleared(target, ground)
        shutil.move(inner / intent["scratch"] / "new" / name, target)


def _market(ground: Ground, order: Order, outcome: Outcome) -> None:
    """Installs everything that a marketplace lists, from the places it gives."""
    clone = ground.naive / ".clone"
    _git("clone", "--quiet", order.source, str(clone))
    market = json.loads((clone / ".claude-plugin" / "marketplace.json").read_text())
    for plugin in market["plugins"]:
        for declared in plugin.get("skills", ["."]):
            _announce(clone / plugin["source"] / declared, ground, outcome)


# The person's next steps


def _status(ground: Ground, order: Order, _: Outcome) -> None:
    """Runs `git status` inside the new skill."""
    for head in ground.naive.joinpath(*HOST).rglob("HEAD"):
        subprocess.run(["git", "status"], cwd=head.parent, capture_output=True, check=False)
        subprocess.run(["git", "status"], cwd=head.parent.parent, capture_output=True, check=False)


def _backup(ground: Ground, order: Order, _: Outcome) -> None:
    """Packs everything with the shell's own `*`."""
    folder = ground.naive.joinpath(*HOST, *filter(None, [order.shown]))
    subprocess.run("tar cf /dev/null *", shell=True, cwd=folder, capture_output=True, check=False)


# Shared helpers


def _place(clone: Path, ground: Ground, order: Order, outcome: Outcome) -> None:
    if order.skill:
        _announce(clone / "skills" / order.skill, ground, outcome)
        return
    for manifest in sorted({*clone.rglob("SKILL.md"), *clone.rglob("skill.md")}):
        if ".claude" not in manifest.relative_to(clone).parts:
            _announce(manifest.parent, ground, outcome)


def _announce(folder: Path, ground: Ground, outcome: Outcome) -> None:
    """Copies the skill to the name that it gives itself, over whatever is there, and reports it."""
    meta = _meta(next(path for path in (folder / "SKILL.md", folder / "skill.md") if path.exists()))
    name = meta.get("name", folder.name)
    outcome.notes[str(name)] = meta
    outcome.printed += f"installed {name}: {meta.get('description')}\n"
    target = ground.naive.joinpath(*HOST) / name
    if os.path.realpath(target) != os.path.realpath(folder):
        _cleared(target, ground)
        shutil.copytree(folder, target, symlinks=False)


def _cleared(target: Path, ground: Ground) -> None:
    """Removes the target. The one guard here protects the machine that runs the tests."""
    if Path(os.path.realpath(target)).is_relative_to(ground.base):
        shutil.rmtree(target, ignore_errors=True)


def _meta(manifest: Path) -> Mapping[str, Any]:
    import yaml

    text = manifest.read_bytes().decode(errors="surrogateescape")
    hit = re.match(r"---\r?\n(.*?)\r?\n---", text, re.DOTALL)
    loaded = yaml.unsafe_load(hit[1]) if hit else {}
    json.dumps(loaded, default=str)  # as an index would store it
    return dict(loaded)


def _git(*words: str) -> bytes:
    done = subprocess.run(["git", *CREDULOUS, *words], capture_output=True, check=False)
    if done.returncode:
        text = done.stderr.decode(errors="replace")
        raise subprocess.SubprocessError(f"{words} ended with {done.returncode}: {text}")
    return done.stdout


STEPS: Mapping[str, Callable[[Ground, Order, Outcome], None]] = {
    "argv": _argv,
    "backup": _backup,
    "clone": _clone,
    "copied": _copied,
    "decoded": _decoded,
    "download": _download,
    "folder": _folder,
    "fragment": _fragment,
    "intent": _intent,
    "locked": _locked,
    "market": _market,
    "shell": _shell,
    "ssh": _ssh,
    "status": _status,
    "unpack": _unpack,
}


class _Old(Ground):
    """A ground that already exists."""

    def _project(self, project: Path) -> None:
        assert project.is_dir()


def _signs(text: str) -> Iterator[str]:
    known = {"MemoryError": "memory", "emory": "memory", "with -24": "time", "with -9": "time", "with -25": "disk"}
    yield from (limit for sign, limit in known.items() if sign in text)
    if f"[Errno {errno.EFBIG}]" in text:
        yield "disk"


def main(base: str, way: str, source: str, skill: str) -> None:
    warnings.simplefilter("ignore")
    for what, limit in LIMITS.items():
        resource.setrlimit(what, (limit, limit))
    outcome = install(_Old(Path(base)), way, Order(source=source, skill=skill))
    print(json.dumps({"broke": outcome.broke[-2000:], "limit": next(_signs(outcome.broke), "")}))


if __name__ == "__main__":
    main(*sys.argv[1:])

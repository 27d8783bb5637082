"""Makes a release: `make release VERSION=1.4.0`, and with `DRY=1` the same without keeping anything.

All of it happens in a temporary clone. Only when every check has passed do the commit and the tag come into this
repository and the files into `dist/`, so a release that fails leaves nothing. Nothing is pushed or uploaded.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from datetime import UTC, datetime
from pathlib import Path

from maintenance import public_surface
from maintenance.compatibility import Version, additions, breaks, excused, lowest_next, version_of

TOP = Path(__file__).resolve().parents[2]
TOOLS = ("twine==7.0.0", "cyclonedx-bom==7.5.0")  # needed only for a release
PLACES = {
    "pyproject.toml": re.compile(r'^version = "(.*)"$', re.MULTILINE),
    "kernel/navigator_kernel/__init__.py": re.compile(r'^__version__ = "(.*)"$', re.MULTILINE),
}
HEADING = re.compile(r"^## (\d+\.\d+\.\d+) \(", re.MULTILINE)
SKILL = "word-count"  # a shipped skill that an installed wheel must list


class Stop(Exception):
    """The release cannot go on; the text says why and what to do."""


def main() -> int:
    """The exit code: 1 where it stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version")
    parser.add_argument("--dry", action="store_true", help="leave nothing")
    given = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="navigator-release-") as folder:
            release(given.version, Path(folder), dry=given.dry)
    except (Stop, ValueError) as error:
        print(f"no release: {error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"no release: {' '.join(map(str, error.cmd))} ended with {error.returncode}", file=sys.stderr)
        print(error.stdout or "", error.stderr or "", file=sys.stderr)
        return 1
    return 0


def release(version: str, folder: Path, *, dry: bool) -> None:
    """Makes the release `version` in `folder`, then brings it here where it is not `dry`."""
    check_tree(version)
    check_version(version)
    clone, dist = folder / "clone", folder / "dist"
    run("git", "clone", "--quiet", str(TOP), str(clone))
    write_version(clone, version)
    write_changelog(clone, version)
    (clone / public_surface.SNAPSHOT.relative_to(TOP)).write_text(
        public_surface.as_text(public_surface.surface()), "utf-8"
    )
    commit(clone, version)
    say("building the source archive and the wheel")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(dist), str(clone), cwd=folder)
    tools = made_tools(folder / "tools")
    run(str(tools / "twine"), "check", "--strict", *map(str, sorted(dist.iterdir())))
    say(f"twine check --strict has no complaint: {', '.join(path.name for path in sorted(dist.iterdir()))}")
    installed = install(tools, next(dist.glob("*.whl")), folder / "empty")
    check_installed(installed, version, folder / "project")
    write_sbom(tools, installed, clone, dist / f"navigator_kernel-{version}.cdx.json")
    run("git", *identity(), "tag", "--annotate", "--message", f"Navigator Kernel {version}", f"v{version}", cwd=clone)
    if dry:
        say(f"{version} can be released; nothing was kept")
        return
    run("git", "fetch", "--quiet", str(clone), f"refs/tags/v{version}:refs/tags/v{version}", cwd=TOP)
    run("git", "merge", "--quiet", "--ff-only", f"v{version}", cwd=TOP)
    shutil.copytree(dist, TOP / "dist" / version, dirs_exist_ok=True)
    say(f"released {version}: the tag v{version} and dist/{version}/; push the branch and the tag, then upload")


def check_tree(version: str) -> None:
    """Stops where the version is none or tagged already, or something is not committed."""
    version_of(version)
    if run("git", "status", "--porcelain", cwd=TOP).strip():
        raise Stop("the tree has changes that are not committed: commit them first")
    if run("git", "tag", "--list", f"v{version}", cwd=TOP).strip():
        raise Stop(f"the tag v{version} already exists: choose the next version")


def check_version(version: str) -> None:
    """Stops where the public surface changed more than `version` says."""
    old, new = public_surface.snapshot(), public_surface.surface()
    broken = list(breaks(old, new))
    if unsaid := [str(one) for one in broken if not excused(one, public_surface.CHANGES)]:
        raise Stop("\n".join(unsaid))
    last = last_release((TOP / "CHANGELOG.md").read_text("utf-8"))
    lowest = lowest_next(last, broken=bool(broken), added=any(additions(old, new))) if last else current()
    if version_of(version) < lowest:
        why = f"{broken[0].section} `{broken[0].name}` breaks" if broken else "see docs/reference/public.md"
        raise Stop(f"{version} is too low, {'.'.join(map(str, lowest))} is the lowest version that may follow: {why}")


def last_release(changelog: str) -> Version | None:
    """The newest version that the changelog names."""
    found = HEADING.search(changelog)
    return version_of(found.group(1)) if found else None


def current() -> Version:
    """The version that stands in pyproject.toml."""
    found = PLACES["pyproject.toml"].search((TOP / "pyproject.toml").read_text("utf-8"))
    if found is None:
        raise Stop("pyproject.toml has no version")
    return version_of(found.group(1))


def write_version(tree: Path, version: str) -> None:
    for name, place in PLACES.items():
        text = (tree / name).read_text("utf-8")
        found = place.search(text)
        if found is None:
            raise Stop(f"{name} has no version")
        (tree / name).write_text(text[: found.start(1)] + version + text[found.end(1) :], "utf-8")


def write_changelog(tree: Path, version: str) -> None:
    """Moves the fragments under a heading with the version and today's date, those first that break something."""
    fragments = [path for path in sorted((tree / "docs/changes").glob("*.md")) if path.name != "README.md"]
    if not fragments:
        raise Stop("docs/changes/ has no fragment: there is nothing to release")
    items = sorted((item(path.read_text("utf-8")) for path in fragments), key=lambda text: "Breaking:" not in text)
    path = tree / "CHANGELOG.md"
    head, mark, rest = path.read_text("utf-8").partition("\n## ")
    today = datetime.now(UTC).date().isoformat()
    path.write_text(f"{head.rstrip()}\n\n## {version} ({today})\n\n" + "".join(items) + mark + rest, "utf-8")
    for fragment in fragments:
        fragment.unlink()


def item(fragment: str) -> str:
    """A fragment as an entry of a list, its links as they are from the top folder."""
    text = re.sub(r"\]\((?!\w+:|#)([^)\s]+)\)", lambda link: f"]({from_top(link.group(1))})", fragment.strip())
    return "- " + "\n  ".join(line.strip() for line in text.splitlines() if line.strip()) + "\n"


def from_top(link: str) -> str:
    return os.path.normpath(f"docs/changes/{link}")


def commit(tree: Path, version: str) -> None:
    run("git", "add", "--all", cwd=tree)
    run("git", *identity(), "commit", "--quiet", "--message", f"Release {version}", cwd=tree)


def identity() -> list[str]:
    """This repository's own name and address, which a clone does not have."""
    found = {name: run("git", "config", "--default", "", name, cwd=TOP).strip() for name in ("user.name", "user.email")}
    return [word for name, value in found.items() if value for word in ("-c", f"{name}={value}")]


def made_tools(folder: Path) -> Path:
    """The script folder of an environment with what only a release needs."""
    say(f"installing {' and '.join(TOOLS)} for this release alone")
    venv.create(folder, with_pip=True)
    pip(folder / "bin" / "python", "install", *TOOLS)
    return folder / "bin"


def install(tools: Path, wheel: Path, folder: Path) -> Path:
    """The Python of an environment that holds the wheel and what it needs, and nothing else: no pip either."""
    say("installing the wheel into an empty environment")
    venv.create(folder, with_pip=False)
    pip(tools / "python", "--python", str(folder / "bin" / "python"), "install", str(wheel))
    return folder / "bin" / "python"


def check_installed(python: Path, version: str, project: Path) -> None:
    """Stops where the installed command line does not work in an empty folder, for a person without settings."""
    project.mkdir()
    env = {"HOME": str(project), "PATH": os.environ["PATH"], "PYTHONUTF8": "1"}
    navigator = str(python.parent / "navigator")
    said = run(navigator, "--version", cwd=project, env=env).strip()
    if not said.endswith(f" {version}"):
        raise Stop(f"the installed command line says {said!r}, not {version}")
    listed = json.loads(run(navigator, "skill", "list", "--json", cwd=project, env=env))
    if SKILL not in [skill["name"] for skill in listed["skills"]]:
        raise Stop(f"the installed command line does not list the shipped skill {SKILL!r}")
    say(f"installed: {said}, {len(listed['skills'])} skills")


def write_sbom(tools: Path, python: Path, tree: Path, path: Path) -> None:
    """Writes the list of all that the wheel brings with it, in CycloneDX's JSON."""
    words = ["--pyproject", str(tree / "pyproject.toml"), "--mc-type", "application", "--output-reproducible"]
    run(str(tools / "cyclonedx-py"), "environment", *words, "--output-file", str(path), str(python))
    held = json.loads(path.read_text("utf-8"))
    say(f"{path.name}: {held['bomFormat']} {held['specVersion']}, {len(held['components'])} components")


def pip(python: Path, *words: str) -> None:
    run(str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", *words)


def run(*argv: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """Its stdout. Raises CalledProcessError where it fails."""
    inherited = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(argv, cwd=cwd, env=env or inherited, capture_output=True, text=True, check=True)
    return done.stdout


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())

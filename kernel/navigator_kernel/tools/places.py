"""Which file a model's path means, whether the skill may read or write it, and which files other programs obey."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple
from urllib.parse import unquote

from msgspec import Struct

from navigator_kernel.adapters.files.autoload import plain_name
from navigator_kernel.adapters.files.project_files import holds_secrets, refuse_named
from navigator_kernel.adapters.files.tree import walk_inside
from navigator_kernel.errors import KernelError, NotFound, Refused
from navigator_kernel.text import escape_controls, lazy_compile
from navigator_kernel.values.job import OWN_TMP, WORK_FOLDERS

Zone = Literal["workspace", "skill", "named", "earlier", "project"]
LONGEST = 4096  # characters of a path, the system's limit
COPY = ".skill-"  # the beginning of the names of the skill's copies in the workspace, for scripts that write in it
# Variables that tell a skill its folder
ROOT_NAMES = ("SKILL_ROOT", "SKILL_DIR", "CLAUDE_SKILL_DIR", "CLAUDE_PLUGIN_ROOT")
_ROOT = lazy_compile(r"\$(?:(?:{0})\b|\{{(?:{0})\}})".format("|".join(ROOT_NAMES)))


class Place(NamedTuple):
    """A file or folder at `parts` below `root`, which is a real path."""

    zone: Zone
    root: Path
    parts: tuple[str, ...]

    @property
    def path(self) -> Path:
        return self.root.joinpath(*self.parts)

    @property
    def is_lent(self) -> bool:
        """Whether it is one file that the person named, or that an earlier turn wrote."""
        return self.zone in {"named", "earlier"} and not self.path.is_dir()


class Places(Struct, frozen=True, kw_only=True):
    """The folders that the tools of one skill work in, all real paths: its `workspace`, its own `folder`, the files and
    the `folders` of the project that the person `named`, the files that `earlier` turns wrote below `box`, and the
    `project`."""

    workspace: Path
    folder: Path
    named: tuple[Path, ...]
    project: Path
    earlier: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()
    box: Path = Path()

    def find(self, written: str, *, new: bool = False) -> Place:
        """The place that `written` means: a relative path is looked for in the workspace, in the skill's folder, in the
        project, among the named files, and, unless `new`, among the files of earlier turns; with `new` a path that is
        found nowhere belongs to the workspace.

        Refused for a path outside all of these, for secrets, and for the kernel's own files (X-18).
        """
        if not written or len(written) > LONGEST or "\x00" in written:
            raise Refused("the path is empty or too long", hint="give the path of one file", reason="path")
        written = rooted(written, self.folder)
        if Path(written).is_absolute():
            path = Path(os.path.normpath(written))
            # In `/tmp` or in the work folder of another agent, unless something that is open here lies there
            lent = (self.workspace, self.folder, self.project, *self.named)
            bases = {"/tmp": f"{OWN_TMP}/", **dict.fromkeys(WORK_FOLDERS, "")}  # noqa: S108 - only compared
            base = next((folder for folder in bases if path.is_relative_to(folder)), None)
            if base is None or any(open_path.is_relative_to(base) for open_path in lent):
                return self._placed(path, written)
            written = f"{bases[base]}{path.relative_to(base)}"
        plain = os.path.normpath(written)
        for base in (self.workspace, self.folder, *(() if new else self.copies()), self.project):
            if os.path.lexists(base / plain) and not (base == self.project and plain == "."):
                return self._placed(base / plain, written)
        if (named := next((path for path in self.named if path.name == plain), None)) is not None:
            return self._placed(named, written)
        if not new and (before := self._before(plain)) is not None:
            return self._placed(before, written)
        return self._placed((self.workspace if new else self.folder) / plain, written)

    def copies(self) -> list[Path]:
        """The copies of the skill's folder in the workspace, where its scripts write beside themselves."""
        return sorted(self.workspace.glob(f"{COPY}*")) if self.folder != self.workspace else []

    def searched(self) -> tuple[Place, ...]:
        """Where a name is looked for without a folder: the workspace, the files and folders that the person named and
        the files of earlier turns, by their names, and the skill's folder."""
        found = [Place("workspace", self.workspace, ())]
        for path in filter(Path.is_file, (*self.named, *self.earlier)):
            base = self.box if path.is_relative_to(self.box) else self.project
            inside = path.relative_to(base).parts if path.is_relative_to(base) else path.parts[-1:]
            parts = inside[1:] if base == self.box else inside
            found.append(Place("named" if path in self.named else "earlier", path.parents[len(parts) - 1], parts))
        found += [Place("project", self.project, path.relative_to(self.project).parts) for path in self.folders]
        return (*found, *([Place("skill", self.folder, ())] if self.folder != self.workspace else []))

    def own(self, written: str) -> Path | None:
        """The file of the skill's folder that `written` means, or None."""
        try:
            place = self.find(written)
        except Refused:
            return None
        return place.path if place.zone == "skill" and place.path.is_file() else None

    def _before(self, plain: str) -> Path | None:
        """The newest file of an earlier turn with this path or name."""
        parts = Path(plain).parts
        return next((path for path in self.earlier if path.parts[-len(parts) :] == parts), None)

    def _placed(self, path: Path, written: str) -> Place:
        path = Path(os.path.normpath(path))
        if path in self.named:
            return Place("named", path.parent, (path.name,))
        zones: tuple[tuple[Zone, Path], ...] = (("workspace", self.workspace), ("skill", self.folder))
        for zone, root in zones:
            if path.is_relative_to(root):
                return Place(zone, root, path.relative_to(root).parts)
        if path in self.earlier and path.is_relative_to(self.box):
            return Place("earlier", self.box, path.relative_to(self.box).parts)
        if not path.is_relative_to(self.project):
            message = f"{escape_controls(written)!r} is outside the files that this skill may use"
            hint = f"use files below {self.workspace}, {self.folder} or the person's project"
            raise Refused(message, hint=hint, reason="outside")
        parts = path.relative_to(self.project).parts
        refuse_closed(parts, written)
        return Place("project", self.project, parts)


def rooted(text: str, folder: Path) -> str:
    """Replaces the variables that skills use for their own folder in `text` by `folder`."""
    return _ROOT.sub(lambda _hit: str(folder), text)


def refuse_closed(parts: Sequence[str], written: str) -> None:
    """Raises Refused for files with secrets and for files that belong to the kernel, to git or to a coding agent."""
    refuse_named(parts, escape_controls(written))
    if is_closed(parts):
        hint = "use the workspace, or another file of the project"
        raise Refused(f"{escape_controls(written)!r} is not open to tools", hint=hint, reason="closed")


# The project's files that no tool may read or write, and those that other programs run or obey. A person is asked about
# each change of such a file, with its diff; no consent to a folder or to all edits covers it.

# At any depth: their files run, grant or prove something, and tools neither read nor write them
CLOSED_ANYWHERE = frozenset({"mybox", ".git", ".claude", ".agents", "navigator.toml", "skills.lock.json"})
CLOSED = CLOSED_ANYWHERE | {"agents"}  # in the project's root; elsewhere `agents` is a usual folder of code

# Patterns of names in lower case, by subject. Any name that begins with a dot counts as well
_FILES: Mapping[str, str] = {
    "orders to agents": """
        claude*.md agents*.md gemini*.md qwen*.md codex*.md copilot*.md warp.md crush.md conventions.md
        skill.md llms*.txt mcp*.json *.mcp.json claude_desktop_config.json opencode.json*""",
    "builds, tasks, tests": """
        makefile* gnumakefile bsdmakefile *.mk *.mak justfile *.just taskfile* rakefile *.rake cmakelists.txt
        *.cmake cmakepresets.json meson.build meson_options.txt sconstruct sconscript wscript build
        build.bazel workspace workspace.bazel module.bazel *.bzl build.xml build.zig* build.rs build.sbt
        configure* *.ninja build.gradle* settings.gradle* gradle.properties gradlew* *.gradle mvnw* pom.xml
        project.clj deps.edn tiltfile earthfile magefile.go mkdocs.yml conf.py setup.py setup.cfg
        pyproject.toml tox.ini noxfile.py tasks.py fabfile.py dodo.py pytest.ini conftest.py sitecustomize.py
        usercustomize.py *.pth manage.py wsgi.py gulpfile* gruntfile* *.config.[jt]s *.config.[cm][jt]s
        *.csproj *.fsproj *.vbproj *.vcxproj *.sln *.props *.targets global.json""",
    "packages": """
        package.json deno.json* bunfig.toml requirements*.txt requirements*.in constraints*.txt pipfile
        environment*.y*ml gemfile *.gemspec composer.json cargo.toml go.mod go.sum go.work* mix.exs
        rebar.config package.swift podfile *.podspec *.cabal stack.yaml pubspec.yaml *.nix brewfile *.lock
        *.lockb *lock.json *lock.y*ml npm-shrinkwrap.json pnpm-workspace.yaml nuget.config""",
    "containers, CI, deployment": """
        dockerfile* *.dockerfile containerfile* docker-compose* docker-bake* compose.y*ml compose.*.y*ml
        vagrantfile jenkinsfile* azure-pipelines* appveyor.yml bitbucket-pipelines.yml cloudbuild.y*ml
        buildspec*.y*ml codemagic.yaml wercker.yml netlify.toml vercel.json fly.toml app.yaml procfile*
        heroku.yml *.tf *.tfvars ansible.cfg playbook*.y*ml chart.yaml kustomization.y*ml lefthook*
        pre-commit-config.y*ml dangerfile* fastfile capfile guardfile *.code-workspace *.workspace""",
    "shells, services": """
        *.sh *.bash *.zsh *.fish *.ksh *.csh *.ps1 *.psm1 *.bat *.cmd *.vbs *.command *.desktop *.service
        *.timer *.socket *.plist *.reg *.scpt crontab* bashrc* bash_profile bash_login bash_logout profile
        zshrc* zshenv zprofile zlogin cshrc kshrc inputrc xinitrc vimrc gvimrc gitconfig gitattributes
        gitmodules tmux.conf ssh_config sshd_config sudoers*""",
}
_PATTERNS = tuple(pattern for patterns in _FILES.values() for pattern in patterns.split())
_FOLDERS = frozenset(
    """bin sbin script scripts hook hooks githooks git-hooks git_hooks husky ci agents skills
    jenkins cron cron.d cron.daily init.d systemd profile.d node_modules site-packages dist-packages venv
    __pycache__ __pypackages__ vendor""".split()
)


def is_closed(parts: Sequence[str]) -> bool:
    """Whether a path in the project belongs to the kernel, to git or to a coding agent."""
    names = [plain_name(part) for part in parts]
    return not CLOSED_ANYWHERE.isdisjoint(names) or names[:1] == ["agents"]


def is_obeyed(parts: Sequence[str]) -> bool:
    """Whether other programs run or obey the file at a path in the project, as far as its names say."""
    *folders, name = (plain_name(part) for part in parts)
    return (
        any(part.startswith(".") for part in (*folders, name))
        or not _FOLDERS.isdisjoint(folders)
        or any(fnmatchcase(name, pattern) for pattern in _PATTERNS)
    )


def is_program(path: Path, *contents: bytes | None) -> bool:
    """Whether the file may be executed, or any of its contents begins with `#!`."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        mode = 0
    is_executable = stat.S_ISREG(mode) and bool(mode & 0o111)
    return is_executable or any(data is not None and data.startswith(b"#!") for data in contents)


# Paths as models write them: in quotes, as `file://`, from the skill's own name on, in another case. For a
# path that means no file, it lists the names that are near it.

NAMES = 8  # names in an answer
ENTRIES = 5_000  # entries of a folder in which a name is looked for
# The folders in which coding agents keep skills: the parts before a skill's name that lead nowhere else
_BEFORE = frozenset("/ ~ $home ${home} mnt home root skills public private user users examples plugins data".split())
_BEFORE |= frozenset(".claude .agents .codex .cursor .gemini .github .opencode .config agent claude".split())
_BEFORE |= frozenset(".goose .qwen .kimi .kimi-code .windsurf .codeium windsurf goose opencode".split())


def plain_path(written: str) -> str:
    """A path without quotes or space around it, and without `file://` before it."""
    path = written.strip()
    while len(path) > 1 and path[0] == path[-1] and path[0] in "\"'`":
        path = path[1:-1].strip()
    if path[:7].lower() == "file://":
        path = unquote(path[7:].removeprefix("localhost"))
    return path or written


def meant_place(places: Places, written: str) -> Place:
    """The place that a path means for reading and running. One that is not there as it is written may begin with the
    skill's name or folder, or differ in case from exactly one file; what is closed stays closed.

    Refused as by `Places.find`.
    """
    path = plain_path(written)
    try:
        place = places.find(path)
    except Refused as refused:
        if refused.data.get("reason") != "outside" or (inside := _of_skill(places, path)) is None:
            raise
        return inside
    if os.path.lexists(place.path):
        return place
    return _of_skill(places, path) or _in_other_case(places, path) or place


def _of_skill(places: Places, path: str) -> Place | None:
    """The file of the skill's folder that a path from the skill's name on means: `pdf/forms.md`,
    `/mnt/skills/public/pdf/forms.md`."""
    if not path or len(path) > LONGEST:
        return None
    parts, name = PurePosixPath(os.path.normpath(path)).parts, places.folder.name.casefold()
    for at, part in enumerate(parts):
        if part.casefold() == name:
            rest = str(places.folder.joinpath(*parts[at + 1 :]))
            if ".." in parts or (parts[:at] not in {(), ("/",)} and "skills" not in parts[:at]):
                return None
            found = places.find(rest)
            return found if os.path.lexists(found.path) else _alike(places, places.folder, parts[at + 1 :])
        if part.casefold() not in _BEFORE and not (at == 2 and parts[1].casefold() in {"home", "users"}):
            return None
    return None


def _in_other_case(places: Places, path: str) -> Place | None:
    for base in (places.workspace, places.folder, places.project):
        absolute = Path(os.path.normpath(path)) if Path(path).is_absolute() else None
        if absolute is not None and not absolute.is_relative_to(base):
            continue
        parts = (absolute.relative_to(base) if absolute else PurePosixPath(os.path.normpath(path))).parts
        if parts and ".." not in parts and (found := _alike(places, base, parts)) is not None:
            return found
    return None


def _alike(places: Places, base: Path, parts: tuple[str, ...]) -> Place | None:
    """The only place below `base` whose path has these parts in some case."""
    found = [base]
    for part in parts:
        found = [folder / name for folder in found for name in _names(folder) if name.casefold() == part.casefold()]
        if len(found) > NAMES:
            return None
    return places.find(str(found[0])) if len(found) == 1 and found[0] != base else None


def _names(folder: Path) -> list[str]:
    """The names in a folder; none in a link to one."""
    if folder.is_symlink():
        return []
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in islice(entries, ENTRIES)]
    except OSError:
        return []


def with_near(error: NotFound, place: Place) -> NotFound:
    """The error for a file that does not exist, with the names near it as its hint."""
    near = list(_near(place))
    if not near:
        return error
    folder = escape_controls(str(place.path.parent))
    names = ", ".join(map(escape_controls, near))
    return NotFound(error.message, hint=f"in {folder}: {names}", **error.data)


def _near(place: Place) -> Iterator[str]:
    """The open names in the file's folder that are most like its own, then others; then files of its name below."""
    parts = place.parts[:-1]
    try:
        entries = list(islice(walk_inside(place.root, parts, deep=False), ENTRIES))
        below = list(islice(walk_inside(place.root, parts), ENTRIES)) if place.zone != "project" else []
    except (KernelError, OSError):
        return
    names = {
        f"{one.path}/" if one.is_folder else one.path: None for one in entries if is_open(place, (*parts, one.path))
    }
    wanted = place.path.name
    same = [one.path for one in below if one.path.rpartition("/")[2].casefold() == wanted.casefold()]
    plain = {name.rstrip("/").casefold(): name for name in names}
    like = [plain[one] for one in get_close_matches(wanted.casefold(), plain, NAMES, 0.5)]
    yield from islice(dict.fromkeys((*same, *like, *names)), NAMES)


def is_open(place: Place, parts: tuple[str, ...]) -> bool:
    """Whether a tool may see the path of these parts in the zone of `place`."""
    return place.zone != "project" or not (is_closed(parts) or holds_secrets(parts))

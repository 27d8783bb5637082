"""Environments of Python wheels (uv) and of Node packages (npm), each made once and used only when it is complete."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from navigator_kernel.adapters.files.database import file_lock
from navigator_kernel.adapters.files.tree import disk_used
from navigator_kernel.adapters.files.writer import FolderWriter, read_bounded
from navigator_kernel.adapters.processes.process import Contained, execute
from navigator_kernel.errors import Busy, FetchFailed, IntegrityMismatch, KernelError, NotLoadable, Refused
from navigator_kernel.text import clean, lazy_compile, shorten, strip_url_credentials
from navigator_kernel.values.job import NPM, Job, Outcome

if TYPE_CHECKING:
    from navigator_kernel.ports import Writer


TIMEOUT = 15 * 60.0  # seconds for one environment, including the wait for another process
DISK = 2 * 1024 * 1024 * 1024  # bytes of one environment
LOCK = "requirements.lock"
MARKER = "made.json"

MODULES = "node_modules"
_VENV, _BYTECODE, _CACHE, _WORK = "venv", "bytecode", "cache", "work"
_LOCK_LIMIT = 16 * 1024 * 1024  # bytes
_NAME = lazy_compile(r"[0-9a-f]{64}")
_OPTIONS = ("--no-config", "--no-progress", "--quiet", "--color=never", "--no-python-downloads")
_WHEELS = ("--only-binary=:all:", "--no-sources")
_KEPT = lazy_compile(  # variables for the index, connection and login; none that makes uv build or write elsewhere
    r"HOME|LC_ALL|XDG_DATA_HOME|NETRC|SSL_CERT_FILE|SSL_CERT_DIR|SSL_CLIENT_CERT|(?i:(?:https?|all|no)_proxy)"
    r"|UV_(?:DEFAULT_INDEX|INDEX|INDEX_URL|EXTRA_INDEX_URL|INDEX_STRATEGY|FIND_LINKS|NO_INDEX|OFFLINE|EXCLUDE_NEWER"
    r"|KEYRING_PROVIDER|INSECURE_HOST|SYSTEM_CERTS|NATIVE_TLS|HTTP_TIMEOUT|HTTP_RETRIES)|UV_INDEX_\w+_(?:USERNAME|PASSWORD)"
)
_NOT_NAME = lazy_compile(r"[^a-z0-9-]")
_CAUSED = lazy_compile(r"\n[ \t]{0,80}cause: ")
_LOGIN = lazy_compile(r"://([^\s/]+)@")
_INDEXES = frozenset({"UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL"})
_OF_PIP = {"PIP_INDEX_URL": "UV_DEFAULT_INDEX", "PIP_EXTRA_INDEX_URL": "UV_EXTRA_INDEX_URL"}
_CAUSES = [
    (lazy_compile(form, re.IGNORECASE), kind, reason, hint) for form, kind, reason, hint in (
    (r"hash mismatch", IntegrityMismatch, "hash", "the index gives other bytes than it named; ask its owner"),
    (r"40[13] (?:Unauthorized|Forbidden)|authentication credentials", FetchFailed, "access",
     "check the user and password of your index"),
    (r"URL dependency", Refused, "url", "only packages of your index are taken; ask the package's author"),
    (r"no usable wheels|has no wheels|building from source|no-build|no-binary", FetchFailed, "no-wheel",
     "there is no binary wheel for this Python and machine, and nothing is built from source; name another version"),
    (r"not found in the package registry|no versions? of", FetchFailed, "not-found", "check the name and the version"),
    (r"No solution found", FetchFailed, "conflict", "the skill's packages do not go together; tell its author"),
    (r"Request failed|error sending|Failed to fetch|dns|connect|timed out|network", FetchFailed, "network",
     "check the network, the proxy settings and UV_DEFAULT_INDEX"),
)]  # fmt: skip


class Environments:
    """Each environment has its own folder below `folder`, named by its fingerprint: `venv`, `requirements.lock` and the
    bytecode of its modules for Python. `writer` may write to `folder`, which is outside every project: its contents
    count as approved. A `writer` that is passed in must allow the real path of `folder`."""

    def __init__(
        self, folder: Path, writer: Writer | None = None, *, timeout: float = TIMEOUT, disk: int = DISK
    ) -> None:
        self._folder = Path(os.path.realpath(folder))  # a sandbox does not have the links on its path
        self._writer = writer or FolderWriter([folder, self._folder])
        self._timeout, self._disk = timeout, disk

    def path(self, fingerprint: str) -> Path | None:
        """The environment if it is complete and has an interpreter; otherwise None."""
        place = self._named(fingerprint)
        try:
            marker = json.loads(read_bounded(place / MARKER, 1024))
            whole = marker == {"fingerprint": fingerprint, "seal": _seal(place)} and self.main(place).exists()
        except (OSError, ValueError, KernelError):
            return None
        return place if whole else None

    def main(self, place: Path) -> Path:
        """The file without which an environment is incomplete."""
        return python_of(place)

    def build(self, place: Path, end: float) -> Build:
        """Creates the build of an environment in `place`; NotLoadable without its program."""
        return Build(place, _program(), self._writer, end, self._disk)

    def make(self, fingerprint: str, requirements: Sequence[str]) -> Path:
        """Returns the environment with `requirements`, and makes it if it is missing: every package is a wheel, pinned
        in `requirements.lock` with its hashes, and no code of it is run.

        NotLoadable without its program; FetchFailed, with a `reason`, if a package cannot be fetched; IntegrityMismatch
        if the bytes do not match the named hashes; Refused if it needs more disk than allowed; Busy if another process
        takes all the time to make it.
        """
        target, end = self._named(fingerprint), monotonic() + self._timeout
        self.build(target, end)
        self._writer.make_folder(self._folder)
        try:
            self._folder.chmod(0o700)
        except OSError as error:
            message = f"cannot keep {str(self._folder)!r} private: {error.strerror}"
            raise KernelError(message, hint="check whose folder it is") from error
        with file_lock(self._lock(fingerprint), self._timeout):
            # Removes the remains of killed builds; those of other environments only if nobody holds their lock
            for remains in self._folder.glob("building-*"):
                name = remains.name.split("-")[1]
                if name == fingerprint:
                    self._discard(remains)
                elif _NAME.fullmatch(name):
                    with suppress(Busy), file_lock(self._lock(name), 0):
                        self._discard(remains)
            if existing := self.path(fingerprint):
                return existing
            place = self._folder / f"building-{fingerprint}-{os.urandom(4).hex()}"
            try:
                self.build(place, end).fetch(requirements)
                self._writer.remove(target)
                self._writer.move(place, target)
                self.build(target, end).finish()
            except BaseException:
                for remains in (place, target):
                    self._discard(remains)
                raise
            marker = {"fingerprint": fingerprint, "seal": _seal(target)}
            self._writer.write(target / MARKER, json.dumps(marker).encode())
        return target

    def _named(self, fingerprint: str) -> Path:
        if not _NAME.fullmatch(fingerprint):
            raise Refused(f"{fingerprint!r} names no environment", hint="64 digits of skills.dependencies.fingerprint")
        return self._folder / fingerprint

    def _lock(self, fingerprint: str) -> Path:
        return self._folder / f"{fingerprint}.lock"

    def _discard(self, path: Path) -> None:
        with suppress(KernelError):  # a uv whose kernel was killed may still write to it; the next build removes it
            self._writer.remove(path)


def activated(env: Path) -> dict[str, str]:
    """The variables that a process needs to use the environment at `env`, which it must be able to read."""
    path = os.environ.get("PATH", os.defpath)
    return {
        "PATH": f"{python_of(env).parent}{os.pathsep}{path}",
        "VIRTUAL_ENV": str(env / _VENV),
        "PYTHONPYCACHEPREFIX": str(env / _BYTECODE),
    }


def argv_in(env: Path, argv: Sequence[str]) -> tuple[str, ...]:
    """`argv` with the environment's interpreter in place of `python`, `python3` or the kernel's own interpreter."""
    known = {"python", "python3", sys.executable}
    return (str(python_of(env)), *argv[1:]) if argv[0] in known else tuple(argv)


def python_of(env: Path) -> Path:
    """The interpreter of the environment at `env`. Only a sandbox starts it: packages can run code at its start."""
    return env / _VENV / "bin" / "python"


class Build(Struct, frozen=True):
    """One build of an environment in `place` by `program`; `end` is a time of `monotonic()`, `disk` the most bytes that
    it may take."""

    place: Path
    program: str
    writer: Writer
    end: float
    disk: int

    def fetch(self, requirements: Sequence[str]) -> None:
        """Makes everything but the bytecode, with a cache of its own: earlier builds from source are not used."""
        self.begin()
        named, lock = self.place / _WORK / "requirements.in", self.place / LOCK
        self.writer.write(
            named, "".join(f"{requirement.partition(' --hash=')[0]}\n" for requirement in requirements).encode()
        )
        compiled = self.place / _WORK / LOCK
        self._uv(
            *("pip", "compile", str(named), f"--output-file={compiled}", "--generate-hashes", *_WHEELS),
            *("--no-header", "--no-annotate", "--no-emit-index-url", f"--python={sys.executable}"),
        )
        self.writer.write(lock, _held(read_bounded(compiled, _LOCK_LIMIT).decode(), requirements).encode())
        venv = str(self.place / _VENV)
        self._uv("venv", "--no-project", "--relocatable", f"--python={sys.executable}", venv)
        self._uv(
            *("pip", "install", "--require-hashes", "--no-deps", *_WHEELS, f"--python={python_of(self.place)}"),
            *("--requirements", str(lock)),
        )

    def finish(self) -> None:
        """Compiles the modules at their final place into a separate folder: a job's own prefix for bytecode excludes
        what lies beside a skill's files. uv's way is not used: it starts the new environment, and so packages' code."""
        prefix, lib = self.place / _BYTECODE, self.place / _VENV / "lib"
        words = ("-m", "compileall", "-q", "-f", "-j0", "--invalidation-mode=unchecked-hash", str(lib))
        self.run((sys.executable, "-I", "-S", f"-Xpycache_prefix={prefix}", *words), {})
        self.tidy()

    def begin(self) -> None:
        for name in (_WORK, _CACHE):
            self.writer.make_folder(self.place / name)

    def tidy(self) -> None:
        """Removes the working folder and the cache."""
        for name in (_WORK, _CACHE):
            self.writer.remove(self.place / name)

    def _uv(self, *words: str) -> None:
        # The person's index settings; pip's if there are none of uv
        env = {name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)}
        if _INDEXES.isdisjoint(env):
            env |= {name: os.environ[old] for old, name in _OF_PIP.items() if old in os.environ}
        outcome = self.run((self.program, *_OPTIONS, f"--cache-dir={self.place / _CACHE}", *words), env)
        if outcome.exit_code:
            text = clean(_hidden(outcome.stderr.decode("utf-8", "replace"), env))
            cause = _CAUSED.sub(": ", text.partition("\nhint:")[0]).removeprefix("error: ")
            raise _failure("uv", text, shorten(cause, 500).rstrip("."), _CAUSES)

    def run(self, argv: tuple[str, ...], env: Mapping[str, str]) -> Outcome:
        """Runs a command; leaves no process behind. FetchFailed after a timeout, Refused for too much disk."""
        remaining = max(0.0, self.end - monotonic())
        cwd = self.place / _WORK
        job = Job(
            actor="script",
            subject=Path(self.program).name,
            digest="",
            run=self.place.name,
            argv=argv,
            cwd=cwd,
            timeout=remaining,
            env=env,
        )
        outcome = execute(job, contained=Contained(argv, (), lambda _: None, lambda: "disk" if self._is_over() else ""))
        if outcome.timed_out:
            hint = "check the network, then try again"
            raise FetchFailed("the skill's packages took too long to install", hint=hint, reason="timeout")
        if outcome.exceeded or self._is_over():
            message = f"the skill's packages take more than {self.disk // 1024**2} MiB"
            raise Refused(message, hint="tell the skill's author", reason="too-large")
        return outcome

    def _is_over(self) -> bool:
        """Whether a folder is over `disk`. The cache and the packages installed from it share bytes by hard links."""
        return any(disk_used(self.place / name, self.disk) > self.disk for name in (_CACHE, _VENV, _BYTECODE, MODULES))


def _program() -> str:
    """The path of uv: the program of its package, else the one on PATH."""
    with suppress(ImportError, FileNotFoundError):
        import uv

        return uv.find_uv_bin()
    if path := shutil.which("uv"):
        return path
    hint = "pip install 'navigator-kernel[env]'"
    raise NotLoadable("packages of skills need uv, which is not installed", hint=hint, reason="no-uv")


def _held(lock: str, requirements: Sequence[str]) -> str:
    """`lock` with one line per package. If the requirements name hashes of a package, only these stay;
    IntegrityMismatch if the index has none of them."""
    named: dict[str, set[str]] = {}
    for requirement in requirements:
        word, *hashes = requirement.split(" --hash=")
        if hashes:
            named.setdefault(_package(word), set()).update(hashes)
    lines: list[str] = []
    for line in filter(str.strip, lock.replace("\\\n", " ").splitlines()):
        word, *hashes = (part.strip() for part in line.split(" --hash="))
        allowed = [digest for digest in hashes if digest in named.get(_package(word), hashes)]
        if not allowed:
            message = f"your index has other bytes of {word!r} than the skill names"
            raise IntegrityMismatch(message, hint="tell the skill's author", reason="hash")
        lines.append(" --hash=".join([word, *allowed]) + "\n")
    return "".join(lines)


def _package(requirement: str) -> str:
    return _NOT_NAME.split(requirement, maxsplit=1)[0]


def _failure(program: str, text: str, cause: str, causes: Sequence[tuple[Any, ...]]) -> KernelError:
    """The error for what the program wrote, `text`; `cause` is the part of it for the person."""
    hits = ((kind, reason, hint) for form, kind, reason, hint in causes if form.search(text))
    kind, reason, hint = next(hits, (FetchFailed, "", f"see what {program} says"))
    message = f"the skill's packages cannot be installed: {cause or f'{program} gave no reason'}"
    error: KernelError = kind(message, hint=hint, reason=reason)
    return error


def _hidden(text: str, env: Mapping[str, str]) -> str:
    """`text` without the credentials of indexes, however spelled: a password may contain an `@`."""
    known = [word for value in env.values() for word in _LOGIN.findall(value)]
    known += [word.partition(":")[2] for word in known]
    known += [value for name, value in env.items() if name.endswith("_PASSWORD")]
    for word in sorted(filter(None, known), key=len, reverse=True):
        text = text.replace(word, "***")
    return strip_url_credentials(text)


def _seal(env: Path) -> str:
    """A seal that changes if any file of the environment does: SHA-256 over paths, modes, sizes, times and links."""
    digest = hashlib.sha256()
    for entry in sorted(_below(str(env), "")):
        digest.update(f"{entry}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _below(folder: str, prefix: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            path, seen = f"{prefix}{entry.name}", entry.stat(follow_symlinks=False)
            if entry.is_dir(follow_symlinks=False):
                yield from _below(entry.path, f"{path}/")
            elif path != MARKER:
                where = str(Path(entry.path).readlink() if entry.is_symlink() else seen.st_mtime_ns)
                yield f"{path}\0{seen.st_mode}\0{seen.st_size}\0{where}"


# Environments of Node packages, each made once by npm without running install scripts.

LOCK_LIMIT = 16 * 1024 * 1024  # bytes
_START, _HOOKS = "start.mjs", "hooks.mjs"
# `require` searches NODE_PATH, `import` does not: packages that a script's own folders lack are searched for here
_START_TEXT = 'import { register } from "node:module";\nregister(new URL("./hooks.mjs", import.meta.url));\n'
_HOOKS_TEXT = """\
const here = new URL("./package.json", import.meta.url).href;
export async function resolve(specifier, context, next) {
  try {
    return await next(specifier, context);
  } catch (error) {
    if (error.code !== "ERR_MODULE_NOT_FOUND" || /^[./#]|^[a-z]+:/.test(specifier)) throw error;
    return next(specifier, { ...context, parentURL: here });
  }
}
"""
_OF_NPM = lazy_compile(  # variables for the registry, the connection and the login
    r"HOME|LC_ALL|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|SSL_CERT_DIR|(?i:(?:https?|all|no)_proxy)"
    r"|(?i:npm_config_(?:registry|userconfig|cafile|strict_ssl|proxy|https_proxy|noproxy|fetch_retries|offline))"
)
_ELSEWHERE = lazy_compile(
    r"(?!npm:)[^:/]*[:/]"
)  # an address, a path or a repository; `npm:` is another name in the registry
_NPM_CAUSES = [
    (lazy_compile(form), kind, reason, hint)
    for form, kind, reason, hint in (
        (r"EINTEGRITY", IntegrityMismatch, "hash", "the registry gives other bytes than it named; ask its owner"),
        (r"E40[13]\b", FetchFailed, "access", "check how you log in to your registry"),
        (r"E404|ETARGET|ENOVERSIONS", FetchFailed, "not-found", "check the name and the version"),
        (r"ERESOLVE", FetchFailed, "conflict", "the skill's packages do not go together; tell its author"),
        (r"EALLOWGIT", Refused, "url", "only packages of your registry are taken; ask the package's author"),
        (r"ECONN|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|network", FetchFailed, "network", "check the network and your registry"),
    )
]


class NodeEnvironments(Environments):
    """Each contains `node_modules` and the files that let a script elsewhere import from it."""

    def main(self, place: Path) -> Path:
        return place / MODULES

    def build(self, place: Path, end: float) -> Build:
        program = shutil.which("npm")
        if program is None:
            hint = "install Node.js with npm"
            raise NotLoadable("Node packages of skills need npm, which is not installed", hint=hint, reason="no-npm")
        return NodeBuild(place, program, self._writer, end, self._disk)


def node_activated(env: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """What a process with these `variables` needs beside them to use the environment at `env`, its programs before
    those of PATH; it also needs permission to read `env`."""
    path = variables.get("PATH") or os.environ.get("PATH", os.defpath)
    programs, start = f"{env / MODULES / '.bin'}{os.pathsep}{path}", f"--import={(env / _START).as_uri()}"
    return {"PATH": programs, "NODE_PATH": str(env / MODULES), "NODE_OPTIONS": start}


class NodeBuild(Build, frozen=True):
    def fetch(self, requirements: Sequence[str]) -> None:
        """Installs the packages without running their scripts; all must come from a registry, with a digest."""
        self.begin()
        named = dict(requirement.removeprefix(NPM).rpartition("@")[::2] for requirement in requirements)
        body = json.dumps({"private": True, "type": "module", "dependencies": named})
        self.writer.write(self.place / "package.json", body.encode())
        options = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-progress", "--omit=dev", "--loglevel=error")
        read = "--no-omit-lockfile-registry-resolved"  # the list below says where each package came from
        env = {name: value for name, value in os.environ.items() if _OF_NPM.fullmatch(name)}
        env |= {"npm_config_allow_git": "none", "npm_config_update_notifier": "false"}
        argv = (self.program, "install", *options, read, f"--prefix={self.place}", f"--cache={self.place / _CACHE}")
        outcome = self.run(argv, env)
        if outcome.exit_code:
            text = clean(_hidden(outcome.stderr.decode("utf-8", "replace"), env))
            lines = [line.removeprefix("npm error ") for line in text.splitlines() if "complete log" not in line]
            raise _failure("npm", text, shorten(" ".join(lines), 500), _NPM_CAUSES)
        # Raises Refused for a package that is a link, or that did not come from a registry with a digest
        try:
            listing: Any = json.loads(read_bounded(self.place / MODULES / ".package-lock.json", LOCK_LIMIT))
            packages = listing["packages"].items()
        except (OSError, ValueError, KeyError, AttributeError) as error:
            raise FetchFailed(
                "npm left no list of what it installed", hint="use npm 7 or newer", reason="npm"
            ) from error
        for path, package in packages:
            source = str(package.get("resolved", ""))
            needed = {**package.get("dependencies", {}), **package.get("optionalDependencies", {})}
            reaches = any(_ELSEWHERE.match(str(version)) for version in needed.values())
            is_of_registry = package.get("integrity") and source.startswith(("https://", "http://"))
            if reaches or package.get("link") or not is_of_registry:
                hint = "only packages of your registry are taken; ask the package's author"
                name = shorten(clean(path, lines=False), 80)
                raise Refused(f"{name!r} is not from a registry", hint=hint, reason="url")

    def finish(self) -> None:
        for name, text in ((_START, _START_TEXT), (_HOOKS, _HOOKS_TEXT)):
            self.writer.write(self.place / name, text.encode())
        self.tidy()

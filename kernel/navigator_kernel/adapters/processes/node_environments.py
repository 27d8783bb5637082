"""Environments of Node packages, each made once by npm without running install scripts."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.adapters.processes.environments import MODULES, Build, Environments, cache_of, hidden
from navigator_kernel.errors import FetchFailed, IntegrityMismatch, KernelError, NotLoadable, Refused
from navigator_kernel.text import clean, lazy_compile, shorten
from navigator_kernel.values.job import NPM

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
_KEPT = lazy_compile(  # variables for the registry, the connection and the login
    r"HOME|LC_ALL|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|SSL_CERT_DIR|(?i:(?:https?|all|no)_proxy)"
    r"|(?i:npm_config_(?:registry|userconfig|cafile|strict_ssl|proxy|https_proxy|noproxy|fetch_retries|offline))"
)
_ELSEWHERE = lazy_compile(
    r"(?!npm:)[^:/]*[:/]"
)  # an address, a path or a repository; `npm:` is another name in the registry
_CAUSES = [
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


def node_activated(env: Path, path: str) -> dict[str, str]:
    """The variables with which a process uses the environment at `env`, its programs before those of `path`; it also
    needs permission to read `env`."""
    found = f"{env / MODULES / '.bin'}{os.pathsep}{path or os.environ.get('PATH', os.defpath)}"
    return {"PATH": found, "NODE_PATH": str(env / MODULES), "NODE_OPTIONS": f"--import={(env / _START).as_uri()}"}


class NodeBuild(Build, frozen=True):
    def fetch(self, requirements: Sequence[str]) -> None:
        """Installs the packages without running their scripts; all must come from a registry, with a digest."""
        self.begin()
        named = dict(one.removeprefix(NPM).rpartition("@")[::2] for one in requirements)
        body = json.dumps({"private": True, "type": "module", "dependencies": named})
        self.writer.write(self.place / "package.json", body.encode())
        options = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-progress", "--omit=dev", "--loglevel=error")
        read = "--no-omit-lockfile-registry-resolved"  # `_refuse_others` reads where each package came from
        env = {name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)}
        env |= {"npm_config_allow_git": "none", "npm_config_update_notifier": "false"}
        argv = (self.program, "install", *options, read, f"--prefix={self.place}", f"--cache={cache_of(self.place)}")
        outcome = self.run(argv, env)
        if outcome.exit_code:
            raise _failure(outcome.stderr.decode("utf-8", "replace"), env)
        _refuse_others(self.place)

    def finish(self) -> None:
        for name, text in ((_START, _START_TEXT), (_HOOKS, _HOOKS_TEXT)):
            self.writer.write(self.place / name, text.encode())
        self.tidy()


def _refuse_others(place: Path) -> None:
    """Raises Refused for a package that is a link, or that did not come from a registry with a digest."""
    try:
        held: Any = json.loads(read_bounded(place / MODULES / ".package-lock.json", LOCK_LIMIT))
        packages = held["packages"].items()
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise FetchFailed("npm left no list of what it installed", hint="use npm 7 or newer", reason="npm") from error
    for name, one in packages:
        source, wanted = (
            str(one.get("resolved", "")),
            {**one.get("dependencies", {}), **one.get("optionalDependencies", {})},
        )
        reaches = any(_ELSEWHERE.match(str(version)) for version in wanted.values())
        is_of_registry = one.get("integrity") and source.startswith(("https://", "http://"))
        if reaches or one.get("link") or not is_of_registry:
            hint = "only packages of your registry are taken; ask the package's author"
            raise Refused(f"{shorten(clean(name, lines=False), 80)!r} is not from a registry", hint=hint, reason="url")


def _failure(complaint: str, env: dict[str, str]) -> KernelError:
    text = clean(hidden(complaint, env))
    said = [line.removeprefix("npm error ") for line in text.splitlines() if "complete log" not in line]
    hits = ((kind, reason, hint) for form, kind, reason, hint in _CAUSES if form.search(text))
    kind, reason, hint = next(hits, (FetchFailed, "", "see what npm says"))
    message = f"the skill's packages cannot be installed: {shorten(' '.join(said), 500) or 'npm gave no reason'}"
    return kind(message, hint=hint, reason=reason)

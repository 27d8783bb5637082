"""One table of the project's files that other programs run or obey, and of those that no tool may read or write.

A person is asked about each change of such a file, with its diff; no consent to a folder or to all edits covers it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from navigator_kernel.adapters.files.autoload import plain_name

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

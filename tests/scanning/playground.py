"""The ground on which a skill runs freely: a home with canary secrets, a project, and a box that nothing can leave."""

from __future__ import annotations

import json
import os
import platform
import pwd
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from scanning.harms import SECRET, Seen, harms, seen
from scanning.samples import Sample
from scanning.standins import NAMES
from tables import table

HERE = Path(__file__).parent
PYTHON = os.path.realpath(sys.executable)
FROM_HERE = f"import sys; sys.path[:0] = [{str(HERE.parent)!r}]; "
LIMIT = 60  # seconds for one skill
SHUT = ["--dev", "/dev", "--proc", "/proc", "--unshare-all", "--unshare-user", "--uid", "0", "--gid", "0", "--cap-drop", "ALL",
        "--cap-add", "CAP_NET_BIND_SERVICE", "--die-with-parent", "--new-session"]  # fmt: skip
MARK = SECRET.decode()
SECRETS = table(__file__, "SECRETS")
PLAIN = table(__file__, "PLAIN")
NAMED = dict.fromkeys(("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"), MARK)


class Playground:
    """`base` is the machine's only writable folder: `home`, `etc` and the `log` of events are rebuilt for each skill.
    `cache` has the compiled host and stand-ins. One box with one host runs the skills one after another."""

    def __init__(self, base: Path, cache: Path) -> None:
        self.base, self.home, self.etc, self.cache = base, base / "home", base / "etc", cache
        self.project = self.home / "project"
        self._host: subprocess.Popen[str] | None = None
        self._before: dict[str, Seen] = {}
        for name in ("etc/alternatives", "bin"):
            (base / name).mkdir(parents=True)
        self._programs()
        self._system()

    def _programs(self) -> None:
        start = shlex.join([*python(self.cache), "-I", "-c", f"{FROM_HERE}from scanning.standins import main; main()"])
        for name in NAMES:
            path = self.base / "bin" / name
            path.write_text(f'#!/bin/sh\nexec {start} {name} "$@"\n')
            path.chmod(0o755)
        for name in ("python", "python3"):
            (self.base / "bin" / name).symlink_to(PYTHON)

    def renew(self) -> None:
        """Restores the state before the first skill."""
        for path in (self.home, self.base / "log", *self.etc.iterdir()):
            if path.name != "alternatives":  # /etc/alternatives is mounted there
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        (self.base / "log").mkdir()
        for name, text in {**SECRETS, **PLAIN}.items():
            target = self.home / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text.format(MARK, MARK) if name in SECRETS else text)
        for name in (".git/objects", ".git/refs"):
            (self.project / name).mkdir()
        for name in (".config/autostart", ".config/systemd/user", "Library/LaunchAgents"):
            (self.home / name).mkdir(parents=True, exist_ok=True)
        self._system()

    def _system(self) -> None:
        """Writes the box's own /etc, in which every host name leads to the box's servers."""
        for path, text in {
            "passwd": f"dev:x:0:0:Dev:{self.home}:/bin/bash\n",
            "group": "dev:x:0:\n",
            "hosts": "127.0.0.1 localhost\n",
            "nsswitch.conf": "hosts: files dns\n",
            "resolv.conf": "nameserver 127.0.0.1\noptions timeout:5 attempts:2\n",
            "sudoers.d/README": "none\n",
            "cron.d/placeholder": "\n",
            "profile.d/lang.sh": "export LANG=C.UTF-8\n",
        }.items():
            (self.etc / path).parent.mkdir(exist_ok=True)
            (self.etc / path).write_text(text)

    def box(self) -> list[str]:
        """The command line that confines a program: own network, processes, home, /etc and /tmp, the rest read-only."""
        real = pwd.getpwuid(os.getuid()).pw_dir
        hidden = ["--tmpfs", real] if real != "/" and Path(real).is_dir() else []
        bare = [sys.base_prefix, str(HERE), str(self.cache)]
        kept = [word for path in bare for word in ("--ro-bind", path, path)]
        own = ["--bind", str(self.base), str(self.base), "--bind", str(self.etc), "/etc"]
        own += ["--ro-bind", str(self.base / "bin"), str(self.base / "bin")]
        links = ["--ro-bind-try", "/etc/alternatives", "/etc/alternatives"]
        return ["bwrap", "--ro-bind", "/", "/", "--tmpfs", "/tmp", *hidden, *kept, *own, *links, *SHUT, "--chdir",
                str(self.base)]  # fmt: skip

    def environment(self) -> Mapping[str, str]:
        shims = HERE / "shims"
        return {
            "HOME": str(self.home), "GROUND": str(self.base), "PATH": f"{self.base / 'bin'}:/usr/bin:/bin",
            "LANG": "C.UTF-8", "USER": "dev", "SHELL": "/bin/bash", "PYTHONPATH": str(shims),
            "NODE_OPTIONS": f"--require {shims / 'plain.js'}", "WEATHER_API_KEY": "of-the-weather",
            "DATABASE_URL": f"postgres://dev:{MARK}@db.example.com/shop", **NAMED,
        }  # fmt: skip

    def loose(self, sample: Sample) -> frozenset[str]:
        """The kinds of harm that the skill does to a host that trusts it."""
        self.renew()
        self._before = self._before or {"home": seen(self.home), "etc": seen(self.etc)}
        skill = sample.lay(self.project / ".claude" / "skills")
        answer = self._asked(json.dumps([str(skill), sample.how]))
        assert answer == "done", f"the host broke down: {answer}"
        return harms(self.base, sample.name, self._before)

    def _asked(self, line: str) -> str:
        """The host's answer; the host is started if it is not running, and killed if it takes too long."""
        if self._host is None or self._host.poll() is not None:
            start = f"{FROM_HERE}from scanning.unguarded import main; main()"
            words = [*self.box(), *python(self.cache), "-c", start, str(self.base)]
            pipe = subprocess.PIPE
            self._host = subprocess.Popen(words, env=self.environment(), text=True, stdin=pipe, stdout=pipe)
        limit = threading.Timer(LIMIT, self._host.kill)
        limit.start()
        print(line, file=self._host.stdin, flush=True)
        assert self._host.stdout is not None
        answer = self._host.stdout.readline()
        limit.cancel()
        return json.loads(answer) if answer else "it is gone"

    def close(self) -> None:
        if self._host is not None:
            for end in (self._host.stdin, self._host.stdout):
                assert end is not None
                end.close()
            self._host.wait(LIMIT)
        shutil.rmtree(self.base)

    def told(self) -> str:
        """What was printed and what arrived, for the message of a failing test."""
        logs = sorted((self.base / "log").iterdir())
        return "\n".join(f"== {path.name}\n{path.read_text(errors='replace')[-3000:]}" for path in logs)


def python(cache: Path) -> list[str]:
    """The start of a command line for the host or a stand-in."""
    return [PYTHON, "-S", "-X", f"pycache_prefix={cache}"]


def compiled(folder: Path) -> Path:
    """Compiles all that the host and the stand-ins import into the folder, and returns it."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    subprocess.run([*python(folder), "-c", f"{FROM_HERE}import scanning.unguarded"], env=env, check=True)
    return folder


@cache
def missing() -> str:
    """Why no box can be made here; empty if it can."""
    if not shutil.which("bwrap"):
        return "there is no bwrap here"
    words = ["bwrap", "--ro-bind", "/", "/", *SHUT, "true"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return f"bwrap cannot make a box here: {done.stderr.strip()}" if done.returncode else ""


def lacking(sample: Sample) -> str:
    """The program or kind of machine that the sample needs and that is missing here; empty if none."""
    return next((name for name in sample.needs if name != platform.machine() and not shutil.which(name)), "")

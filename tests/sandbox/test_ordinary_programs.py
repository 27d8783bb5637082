"""Ordinary programs work under both sandboxes: the system call filter stops harm but not work."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from navigator_kernel.sandbox.backends import ALLOWED, ATTRIBUTES, CHECKED, MARKS, NONE
from sandbox.world import World, opened

pytestmark = pytest.mark.sample(1)

RUNGS = ("bubblewrap", "landlock")
SHELL = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:] or {argv!r}).returncode)"
BASH = """set -e
for i in 1 2 3; do echo $i; done | sort -r | head -n 1; cat <(echo hi) > made; cp made other; mv other third; ln -s made way
mkdir -p a/b; : > a/b/c; find . -type f | wc -l; gzip -c made > made.gz; gzip -dc made.gz > /dev/null
sleep 0.05; timeout 2 true; nproc; date; seq 5 | xargs -n 2 echo; dd if=/dev/zero of=zeros bs=1k count=4 2> /dev/null; stat zeros
ulimit -n; nice -n 5 true; du -s .; sed s/h/j/ made; awk '{print $1}' made; rm -r a; flock zeros true; mktemp; wc -c < zeros"""
PROGRAMS = {
    "modes and times": "import os, shutil, tarfile, tempfile\nopen('old', 'w').close(); os.chmod('old', 0o640); os.utime('old', ns=(1, 2000))\nshutil.copy2('old', 'new'); found = os.stat('new'); assert (found.st_mode & 0o777, found.st_mtime_ns) == (0o640, 2000)\nos.mkdir('a'); shutil.copytree('a', 'b'); shutil.make_archive('c', 'gztar', 'a'); tarfile.open('c.tar.gz').extractall('d')\nfd = os.open('a', os.O_RDONLY); os.chmod('old', 0o600); os.utime(fd, (7, 7)); os.fchmod(fd, 0o700); open('a/x', 'w').close()\nos.chmod('x', 0o611, dir_fd=fd); os.utime('x', (7, 7), dir_fd=fd); found = os.stat('a/x'); assert (found.st_mode & 0o777, found.st_mtime) == (0o611, 7)\nos.chown('x', -1, -1, dir_fd=fd); os.fchown(fd, os.getuid(), os.getgid()); os.lchown('old', -1, os.getgid())\nfor call, number in ((lambda: os.chmod('gone', 0o600), 2), (lambda: os.fchmod(999, 0o600), 9), (lambda: os.chmod('old/x', 0), 20), (lambda: os.chmod('y' * 5000, 0), 36)):\n    try: call()\n    except OSError as error: assert error.errno == number, error\n    else: raise AssertionError(number)",
    "modes in many threads": "import os, threading\ndef change(at):\n    for n in range(50):\n        open(f'{at}', 'w').close(); os.chmod(f'{at}', 0o600 + at); assert os.stat(f'{at}').st_mode & 0o777 == 0o600 + at; found.append(n)\nfound = []; t = [threading.Thread(target=change, args=(n,)) for n in range(8)]\n[one.start() for one in t]; [one.join() for one in t]\nassert len(found) == 400",
    "modes among signals": "import os, signal\nseen = []; signal.signal(signal.SIGALRM, lambda *_: seen.append(1)); signal.siginterrupt(signal.SIGALRM, False); signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)\nopen('x', 'w').close()\nn = 0\nwhile n < 500 or not seen: os.chmod('x', 0o600 + n % 8); assert os.stat('x').st_mode & 7 == n % 8; n += 1\nsignal.setitimer(signal.ITIMER_REAL, 0); assert seen",
    "threads": "import threading\nfound=[]\nt=[threading.Thread(target=found.append, args=(n,)) for n in range(20)]\n[one.start() for one in t]; [one.join() for one in t]\nassert len(found) == 20",
    "sqlite": "import sqlite3\nd = sqlite3.connect('x.db'); d.execute('pragma journal_mode=wal'); d.execute('create table t (a)'); d.execute('insert into t values (1)'); d.commit()\nassert d.execute('select * from t').fetchall() == [(1,)]",
    "child processes": "import subprocess\nassert subprocess.run(['sh', '-c', 'echo a | cat'], capture_output=True, text=True).stdout == 'a\\n'",
    "asyncio": "import asyncio\nasync def main():\n    p = await asyncio.create_subprocess_exec('echo', 'a', stdout=-1)\n    assert (await p.communicate())[0] == b'a\\n'\nasyncio.run(main())",
    "socket pair": "import socket\na, b = socket.socketpair(); a.sendall(b'x'); assert b.recv(1) == b'x'",
    "own limits and priority": "import os, resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1])); os.nice(1); os.sched_setaffinity(0, os.sched_getaffinity(0))",
    "temporary files": "import tempfile, shutil\nwith tempfile.TemporaryDirectory() as f:\n    open(f + '/x', 'w').write('x'); shutil.copyfile(f + '/x', 'copied')",
    "processes that fork": "import os\npid = os.fork()\nif pid == 0: os._exit(3)\nassert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3",
    "mmap and big data": "import mmap, hashlib, zlib\nm = mmap.mmap(-1, 1 << 20); m[:4] = b'abcd'; assert zlib.decompress(zlib.compress(m[:])) == m[:]",
    "signals and timers": "import signal, time\nsignal.signal(signal.SIGALRM, lambda *_: None); signal.setitimer(signal.ITIMER_REAL, 0.05); time.sleep(0.2)",
}

# Each prints "worked" if the command did what it says, and nothing to stderr. The first word of a name is the program
COMMANDS = {
    "touch": "touch new; touch old; echo worked",
    "touch -d": "touch -d @981173106 old; [ $(stat -c %Y,%X old) = 981173106,981173106 ]; echo worked",
    "touch -m": "touch -m -d @7 old; [ $(stat -c %Y old) = 7 ] && [ $(stat -c %X old) != 7 ]; echo worked",
    "touch -h": "ln -s /etc/passwd way; touch -h -d @7 way; [ $(stat -c %Y way) = 7 ]; echo worked",
    "touch -r": "touch -d @7 old; touch -r old new; [ $(stat -c %Y new) = 7 ]; echo worked",
    "chmod 600": "chmod 600 old; [ $(stat -c %a old) = 600 ]; chmod 644 old; [ $(stat -c %a old) = 644 ]; echo worked",
    "chmod +x": "printf '#!/bin/sh\necho worked' > run.sh; ! ./run.sh 2> /dev/null; chmod +x run.sh; ./run.sh",
    "chmod -R": "mkdir -p a/b; touch a/b/c; chmod -R go= a; [ $(stat -c %a a/b/c) = 600 ]; echo worked",
    "chmod by a link": "ln -s old way; chmod 640 way; [ $(stat -c %a old) = 640 ]; echo worked",
    "chmod by a descriptor": "exec 5< old; chmod 640 /proc/self/fd/5; [ $(stat -c %a old) = 640 ]; echo worked",
    "chmod the folder": "chmod 700 .; [ $(stat -c %a .) = 700 ]; echo worked",
    "chmod in the home": "touch $HOME/f; chmod 600 $HOME/f; [ $(stat -c %a $HOME/f) = 600 ]; echo worked",
    "chmod +s": "! chmod u+s old 2> /dev/null; ! chmod 2755 old 2> /dev/null; [ ! -u old ] && [ ! -g old ]; echo worked",
    "chown": "chown $(id -u):$(id -g) old; chgrp $(id -g) old; echo worked",
    "cp -p": "touch -d @7 old; chmod 600 old; cp -p old new; [ $(stat -c %a,%Y new) = 600,7 ]; echo worked",
    "cp -a": "mkdir -p a/b; touch -d @7 a/b; cp -a a z; [ $(stat -c %Y z/b) = 7 ]; echo worked",
    "mv": "touch -d @7 old; mv old new; [ $(stat -c %Y new) = 7 ]; echo worked",
    "install": "install -m 750 old new; install -d -m 711 a; [ $(stat -c %a new),$(stat -c %a a) = 750,711 ]; echo worked",
    "mkdir -m": "mkdir -m 710 a; [ $(stat -c %a a) = 710 ]; echo worked",
    "sed -i": "chmod 600 old; sed -i s/text/more/ old; [ $(cat old),$(stat -c %a old) = more,600 ]; echo worked",
    "tar": "touch -d @7 old; chmod 640 old; tar cf a.tar old; rm old; tar xpf a.tar; [ $(stat -c %a,%Y old) = 640,7 ]; echo worked",
    "gzip": "touch -d @7 old; gzip old; gunzip old.gz; [ $(stat -c %Y old) = 7 ]; echo worked",
    "zip": "chmod 750 old; zip -q a.zip old; rm old; unzip -q a.zip; [ $(stat -c %a old) = 750 ]; echo worked",
    "rsync": "touch -d @7 old; mkdir a; rsync -a old a/; [ $(stat -c %Y a/old) = 7 ]; echo worked",
    "patch": "printf -- '--- old\n+++ old\n@@ -1 +1 @@\n-text\n+worked\n' | patch -s old; cat old",
    "git": "git init -q g; cd g; touch a; git add a; git -c user.name=a -c user.email=a@b commit -qm x; cd ..; git clone -q g h; [ -f h/a ]; echo worked",
    "make": "printf 'new: old\n\t@cp old new; touch new; echo worked\n' > Makefile; make -s; make -q",
    "perl": 'perl -e \'chmod(0640, "old") == 1 and utime(1, 2, "old") == 1 or die\'; [ $(stat -c %a,%Y old) = 640,2 ]; echo worked',
    "sort, of which a folder in PATH that is closed to it has another": "sort --version > /dev/null; echo worked",
    "python3": "python3 -c 'pass'; echo worked",
}


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with opened("self") as found:
        yield found


@pytest.fixture(params=RUNGS)
def rung(request: pytest.FixtureRequest, world: World) -> str:
    name: str = request.param
    if not world.attempt("print(1)", name)["there"]:
        pytest.skip(f"there is no {name} here")
    return name


@pytest.mark.requirement("AGT-2")
@pytest.mark.parametrize("name", PROGRAMS)
def test_ordinary_python_programs_work(world: World, rung: str, name: str) -> None:
    found = world.attempt(f"{PROGRAMS[name]}\nprint('worked')", rung)
    assert (found["out"].strip(), found["code"]) == ("worked", 0), found


@pytest.mark.parametrize(
    ("program", "argv"),
    [
        ("bash", ["bash", "-c", BASH]),
        (
            "git",
            [
                "bash",
                "-c",
                "git init -q g && cd g && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git status && git log",
            ],
        ),
        (
            "node",
            [
                "node",
                "-e",
                "const fs=require('fs'),cp=require('child_process');fs.writeFileSync('n','x');cp.execSync('ls');setTimeout(()=>console.log('done'),20)",
            ],
        ),
        ("perl", ["perl", "-e", "print `ls`"]),
    ],
)
def test_other_interpreters_work(world: World, rung: str, program: str, argv: list[str]) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    found = world.attempt(SHELL.format(argv=argv), rung, 30)
    assert found["code"] == 0, found


@pytest.mark.requirement("AGT-2")
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_that_set_modes_times_and_owners_do_so(world: World, rung: str, name: str) -> None:
    program = re.split(r"\W", name)[0]
    if shutil.which(program, path=os.defpath) is None:
        pytest.skip(f"{program} is not installed")
    argv = ["bash", "-c", f"set -e; echo text > old; {COMMANDS[name]}"]
    found = world.attempt(SHELL.format(argv=argv), rung, 60)
    assert (found["code"], found["out"].strip(), found["err"]) == (0, "worked", ""), found


HEADERS = [*Path("/usr/include").glob("*/asm/unistd_64.h"), *Path("/usr/include").glob("asm/unistd_64.h")]


@pytest.mark.skipif(not HEADERS, reason="the kernel's headers are not installed")
def test_the_numbers_are_those_of_the_kernels_headers() -> None:
    known = dict(re.findall(r"#define __NR_(\w+)\s+(\d+)", HEADERS[0].read_text()))
    listed = {name: one for table in (ALLOWED, MARKS, ATTRIBUTES, CHECKED) for name, (one, _) in table.items()}
    wrong = {name: one for name, one in listed.items() if name in known and one != int(known[name])}
    assert wrong == {} and len(listed) > 200


@pytest.mark.parametrize("column", [0, 1], ids=["x86_64", "aarch64"])
def test_no_number_stands_for_two_calls(column: int) -> None:
    plain = {**ALLOWED, **MARKS, **ATTRIBUTES, **CHECKED}
    numbers = [held[column] for held in plain.values() if held[column] != NONE]
    assert len(numbers) == len(set(numbers))

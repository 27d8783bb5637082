"""Attempts to get out of a sandbox: each prints ESCAPED if it succeeds, else the error that denied it.

In the code, `{project}`, `{home}` and so on stand for parts of a test's world; see `world.py`.
"""

from __future__ import annotations

from typing import NamedTuple

from tables import table

HEAD = """
import ctypes, errno, os, signal, socket, struct, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
x86 = os.uname().machine == "x86_64"
def call(number, *args):
    done = libc.syscall(number[0 if x86 else 1], *args)
    if done < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return done
def attempt():
{body}
try:
    attempt()
except OSError as error:
    print("DENIED", errno.errorcode.get(error.errno, error))
except MemoryError:
    print("DENIED ENOMEM")
else:
    print("ESCAPED")
"""


class Attempt(NamedTuple):
    """`body` does harm if it raises nothing; `limit` is what ends it if nothing is denied. `unguarded` says whether it
    is first shown to succeed without a sandbox: not if that would harm the machine or needs root."""

    name: str
    body: str
    limit: str = ""
    unguarded: bool = True

    @property
    def code(self) -> str:
        lines = "\n".join(f"    {line}" for line in self.body.strip().splitlines())
        return HEAD.replace("{body}", lines)


ATTEMPTS = tuple(Attempt(**one) for one in table(__file__, "ATTEMPTS"))

CHAIN = """
import os, time
if os.fork() == 0:
    line = "setpgrp; for (1 .. 2000000) { my $child = fork; exit if $child; last unless defined $child; select undef, undef, undef, 0.001; }"
    os.execvpe("perl", ["perl", "-e", line, "{token}"], {"PATH": os.defpath})
time.sleep({stay})
"""

SURVIVORS = """
import os, sys, time
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.environ.clear()
            for fd in (0, 1, 2):
                os.close(fd)
            os.execve(sys.executable, [sys.executable, "-c", "import time; time.sleep(120)", "{token}"], {})
        os._exit(0)
time.sleep({stay})
print("left behind")
"""

# The first thread of each has ended, so it looks like a zombie, but another thread continues
LEADERLESS = """
import ctypes, os, sys, threading, time
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for fd in (0, 1, 2):
                os.close(fd)
            threading.Thread(target=lambda: [(open("{token}", "a").write("."), time.sleep(0.05)) for _ in range(2400)]).start()
            ctypes.CDLL(None).pthread_exit(None)
        os._exit(0)
while not os.path.exists("{token}") or not os.path.getsize("{token}"):
    time.sleep(0.01)
time.sleep({stay})
print("left behind")
"""

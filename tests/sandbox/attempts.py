"""Attempts to get out of a sandbox: each prints ESCAPED if it succeeds, else the error that denied it.

In the code, `{project}`, `{home}` and so on stand for parts of a test's world; see `world.py`.
"""

from __future__ import annotations

from typing import NamedTuple

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

NAMELESS = """for _ in range(4):
    fd = os.open('held', os.O_CREAT | os.O_RDWR)
    os.unlink('held')
    os.posix_fallocate(fd, 0, 200 << 20)"""

# A thread changes where a call leads, while another makes it; the mode of the file outside says whether it was reached
RACE = """import threading
open('mine', 'w').close(); os.symlink('mine', 'way')
paths = [os.path.abspath('mine').encode().ljust(300, b'\\0'), b'{project}/secret'.ljust(300, b'\\0')]
buffer = ctypes.create_string_buffer(paths[0], 300)
def turn():
    while True:
        for path in paths:
            CHANGE
threading.Thread(target=turn, daemon=True).start()
end = time.monotonic() + 1
while time.monotonic() < end:
    libc.chmod(CALLED, 0o606)
if os.stat('{project}/secret').st_mode & 0o777 != 0o606: raise OSError(errno.EPERM, '')"""


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


ATTEMPTS = (
    Attempt("write into the project", "open('{project}/planted', 'w')"),
    Attempt("change a file of the project", "open('{project}/secret', 'a').write('x')"),
    Attempt("remove a file of the project", "os.unlink('{project}/doomed')"),
    Attempt("read the project without a right to", "open('{project}/secret').read()"),
    Attempt("write into the home", "open('{home}/.profile', 'a').write('x')"),
    Attempt("read a key in the home", "open('{home}/.ssh/id').read()"),
    Attempt("write to /tmp", "open('/tmp/planted-{token}', 'w')"),
    Attempt("write into another run", "open('{other}/planted', 'w')"),
    Attempt("read another run", "open('{other}/result').read()"),
    Attempt("write through a link", "os.symlink('{project}/secret', 'way'); open('way', 'a').write('x')"),
    Attempt("write through a hard link", "os.link('{project}/secret', 'way'); open('way', 'a').write('x')"),
    Attempt("move a file out", "open('mine', 'w'); os.rename('mine', '{project}/secret')"),
    Attempt("climb out by ..", "open('../../../planted', 'w')"),
    Attempt("change what its owner may", "os.chmod('{project}/secret', 0o777)"),
    Attempt("change a time", "os.utime('{project}/secret', (1, 1)); os.truncate('{project}/secret', 0)"),
    Attempt("write into the interpreter", "open(os.path.join(os.path.dirname(os.__file__), 'planted-{token}'), 'w')"),
    Attempt("write into the kernel's package", "open('{package}/planted', 'w')"),
    Attempt("read the environment of another", "open('/proc/{victim}/environ', 'rb').read(1)[0]"),
    Attempt("reach files through another's root", "os.listdir('/proc/{victim}/root/{project}')"),
    Attempt("reach files through another's folder", "os.listdir('/proc/{victim}/cwd/')"),
    Attempt("read the password hashes", "open('/etc/shadow').read()", unguarded=False),
    Attempt(
        "find a secret in its own environment",
        "if os.environ.get('SECRET_TOKEN') is None: raise OSError(errno.ENOENT, '')",
    ),
    Attempt("connect by TCP", "socket.create_connection(('127.0.0.1', {tcp}), 2)"),
    Attempt("send by UDP", "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'leak', ('127.0.0.1', {udp}))"),
    Attempt("listen on TCP", "socket.create_server(('127.0.0.1', 0))"),
    Attempt("connect to a socket in the project", "socket.socket(socket.AF_UNIX).connect('{project}/door')"),
    Attempt("connect to an abstract socket", "socket.socket(socket.AF_UNIX).connect('\\0{abstract}')"),
    Attempt("open a raw socket", "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)", unguarded=False),
    Attempt("listen to the wire", "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)", unguarded=False),
    Attempt("kill another", "os.kill({victim}, signal.SIGKILL)", unguarded=False),
    Attempt("stop another", "os.kill({victim}, signal.SIGSTOP); os.kill({victim}, signal.SIGCONT)"),
    Attempt(
        "send a datagram to a socket of the person",
        "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'leak', '{project}/post')",
    ),
    Attempt("change the limits of another", "call((302, 261), {victim}, 7, struct.pack('QQ', 64, 64), 0)"),
    Attempt("read the limits of another", "call((302, 261), {victim}, 7, 0, ctypes.create_string_buffer(16))"),
    Attempt("change the priority of another", "os.setpriority(os.PRIO_PROCESS, {victim}, 5)"),
    Attempt("change the priority of all that the person runs", "os.setpriority(os.PRIO_USER, os.getuid(), 0)"),
    Attempt("move another to one processor", "os.sched_setaffinity({victim}, {0})"),
    Attempt("change how another is scheduled", "os.sched_setscheduler({victim}, os.SCHED_BATCH, os.sched_param(0))"),
    Attempt("change how another reads the disk", "call((251, 30), 1, {victim}, 2 << 13 | 7)"),
    Attempt("share memory by System V", "call((29, 194), 0, 4096, 0o1600)"),
    Attempt("a semaphore of System V", "call((64, 190), 0, 1, 0o1600)"),
    Attempt("a message queue of System V", "call((68, 186), 0, 0o1600)"),
    Attempt(  # then removed: a user may have only ten queues
        "a message queue of POSIX",
        "call((240, 180), b'navigator-{token}', 0o100 | 2, 0o600, 0); call((241, 181), b'navigator-{token}')",
    ),
    Attempt("watch what others do to files", "call((294, 26), 0)"),
    Attempt("move the pages of another", "call((279, 239), {victim}, 0, 0, 0, 0, 0)"),
    Attempt("signal another by a descriptor", "call((424, 424), os.pidfd_open({victim}), 0, 0, 0)"),
    Attempt("trace another", "call((101, 117), 16, {victim}, 0, 0)", unguarded=False),
    Attempt("read the memory of another", "open('/proc/{victim}/mem', 'rb')", unguarded=False),
    Attempt("a user namespace of its own", "call((272, 97), 0x10000000)"),
    Attempt("a child in a user namespace", "if call((56, 220), 0x10000000 | 17, 0, 0, 0, 0) == 0: os._exit(0)"),
    Attempt("a mount namespace", "call((272, 97), 0x10020000)"),
    Attempt("mount", "call((165, 40), b'none', b'.', b'tmpfs', 0, 0)", unguarded=False),
    Attempt("another root", "os.chroot('.')", unguarded=False),
    Attempt("a file that runs as its owner", "open('own', 'w'); os.chmod('own', 0o4755)"),
    Attempt("a device", "os.mknod('disk', 0o060600, os.makedev(7, 0))", unguarded=False),
    Attempt("a ring of requests", "call((425, 425), 4, ctypes.create_string_buffer(120))", unguarded=False),
    Attempt("a program in the kernel", "call((321, 280), 0, ctypes.create_string_buffer(120), 120)", unguarded=False),
    Attempt(
        "a key in the kernel's ring", "call((248, 217), b'user', b'navigator-{token}', b'x', 1, -3)", unguarded=False
    ),
    Attempt("a file by its handle", "call((304, 265), -100, ctypes.create_string_buffer(128), 0)", unguarded=False),
    Attempt("leave its control group", "open('/sys/fs/cgroup/pids/cgroup.procs', 'w').write('0')", unguarded=False),
    Attempt("set the kernel", "open('/proc/sys/kernel/core_pattern', 'r+').close()", unguarded=False),
    Attempt("pull the emergency brake", "open('/proc/sysrq-trigger', 'w').close()", unguarded=False),
    Attempt("fill shared memory", "open('/dev/shm/planted', 'w').write('x'); os.unlink('/dev/shm/planted')"),
    Attempt("put a file among the devices", "open('/dev/planted', 'w').close()", unguarded=False),
    Attempt("write to the root", "open('/planted', 'w').close()", unguarded=False),
    Attempt("change an attribute", "os.setxattr('{project}/secret', 'user.mark', b'x')"),
    Attempt("change a time alone", "os.utime('{project}/secret', (1, 1))"),
    *(
        Attempt(f"change a mode {how}", body)
        for how, body in {
            "through a link": "os.symlink('{project}/secret', 'way'); os.chmod('way', 0o777)",
            "through a link to a folder": "os.symlink('{project}', 'way'); os.chmod('way/secret', 0o777)",
            "through a hard link": "os.link('{project}/secret', 'way'); os.chmod('way', 0o777)",
            "through a hard link to a file that it may read": "os.link('{package}/errors.py', 'way'); os.chmod('way', 0o777)",
            "through a hard link to a descriptor": "fd = os.open('{package}/errors.py', os.O_RDONLY)\n"
            "if libc.linkat(-100, b'/proc/self/fd/%d' % fd, -100, b'way', 0x400): raise OSError(ctypes.get_errno(), '')\n"
            "os.chmod('way', 0o777)",
            "after a move": "os.rename('{project}/doomed', 'mine'); os.chmod('mine', 0o777)",
            "after an exchange": "open('mine', 'w').close()\n"
            "call((316, 276), -100, b'mine', -100, b'{project}/secret', 2); os.chmod('mine', 0o777)",
            "through ..": "os.chmod('../../../secret', 0o777)",
            "from another folder": "os.chdir('{package}'); os.chmod('errors.py', 0o777)",
            "through a folder's descriptor": "os.chmod('secret', 0o777, dir_fd=os.open('{project}', os.O_PATH))",
            "of an open file": "os.fchmod(os.open('{package}/errors.py', os.O_RDONLY), 0o777)",
            "through /proc/self/fd": "fd = os.open('{project}/secret', os.O_PATH); os.chmod(f'/proc/self/fd/{fd}', 0o777)",
            "through another's folder": "os.chmod('/proc/{victim}/cwd/secret', 0o777)",
            "of the folder above": "os.chmod('..', 0o700)",
            "by a race of renames": RACE.replace("CALLED", "b'way'").replace(
                "CHANGE", "os.symlink(path.rstrip(b'\\0'), 'next'); os.rename('next', 'way')"
            ),
            "by a race in memory": RACE.replace("CALLED", "buffer").replace(
                "CHANGE", "ctypes.memmove(buffer, path, 300)"
            ),
        }.items()
    ),
    Attempt("change the times of an open file", "os.utime(os.open('{package}/errors.py', os.O_RDONLY), (1, 1))"),
    Attempt("change the times of a link outside", "os.utime('{project}/way', (1, 1), follow_symlinks=False)"),
    Attempt(
        "change the owner of an open file", "os.fchown(os.open('{package}/errors.py', os.O_RDONLY), os.getuid(), -1)"
    ),
    Attempt("change an owner", "os.chown('{project}/secret', os.getuid(), os.getgid())"),
    Attempt("take more memory than it may", "held = bytearray(5 << 30)", unguarded=False),
    Attempt(
        "one file that is too large",
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nfd = os.open('big', os.O_CREAT | os.O_WRONLY)\n"
        "for _ in range(300): os.write(fd, bytes(1 << 20))",
        unguarded=False,
    ),
    Attempt(
        "more disk than it may",
        "for at in range(400):\n    with open(f'part-{at}', 'wb') as file: file.write(os.urandom(1 << 20) * 8)\ntime.sleep(20)",
        limit="disk",
        unguarded=False,
    ),
    *(
        Attempt(f"more disk than it may, {how}", f"{body}\ntime.sleep(20)", limit="disk", unguarded=False)
        for how, body in {
            "in a folder that nobody may read": "os.mkdir('closed', 0o300)\n"
            "for at in range(4): os.posix_fallocate(os.open(f'closed/{at}', os.O_CREAT | os.O_RDWR), 0, 200 << 20)",
            "in files without a name": NAMELESS,
            "in files of a process that cannot be looked at": f"libc.prctl(4, 0, 0, 0, 0)\n{NAMELESS}",
            "in files of a process whose first thread has ended": "import threading\ndef fill():\n"
            + "".join(f"    {line}\n" for line in [*NAMELESS.splitlines(), "time.sleep(20)"])
            + "if os.fork() == 0: threading.Thread(target=fill).start(); libc.pthread_exit(None)",
            "in memory": "for _ in range(4): os.posix_fallocate(os.memfd_create('held'), 0, 200 << 20)",
            "in folders that are too deep": "for _ in range(600): os.mkdir('d'); os.chdir('d')",
        }.items()
    ),
    Attempt(
        "more processes than it may",
        "for _ in range(1_200):\n    if os.fork() == 0: time.sleep(30); os._exit(0)",
        unguarded=False,
    ),
    Attempt("more output than is kept", "for _ in range(3_000): print('x' * 1_000)", limit="output", unguarded=False),
    Attempt("more time than it has", "time.sleep(60)", limit="time", unguarded=False),
)

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

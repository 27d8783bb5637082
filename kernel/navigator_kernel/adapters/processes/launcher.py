"""Starts one program confined: `main` in `python -I -S -c … FD`, where FD holds the marshalled request; or with the
request in base64 in place of FD, for callers that cannot pass a file descriptor.

It imports nothing of the kernel and little else, because it is started before every program. It sets the limits, starts
the program (under bubblewrap, bubblewrap), and stays until that ends. It kills all processes of the program when the
program ends, when its time is up, and when the kernel is dead. While the kernel is stopped, and so measures nothing, it
stops them, too. Under Landlock a thread of it makes the calls that `marks` describes.
"""

from __future__ import annotations

import marshal
import os
import resource
import signal
import stat
import struct
import sys
import time

TYPE_CHECKING = False  # importing `typing` takes 4 ms
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn

NO_NEW_PRIVS, SECCOMP, SUBREAPER, DEATH_SIGNAL, DUMPABLE, DROP_BOUND = 38, 22, 36, 1, 4, 24  # options of prctl(2)
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # Landlock's system call numbers, the same on every machine
PATH_BENEATH = 1
SET_FILTER, LISTENER = (277 if os.uname().machine == "aarch64" else 317), 0b101000  # seccomp(2); waits are killable
NEW_NET, NEW_USER, NEW_MOUNTS = 0x40000000, 0x10000000, 0x00020000  # CLONE_NEW*
FAILED = 125  # exit code if the program cannot be started; the reason is on stderr
NOT_SET_UP = "the sandbox cannot be set up: "
TIME_IS_UP = signal.SIGALRM  # the signal that ends this process when the time is up; a program's end is an exit code
STOPS = frozenset((signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
TICK = 0.2  # seconds between two looks at the kernel


def main() -> None:
    spec = marshal.loads(read_spec(sys.argv[1]))  # noqa: S302 - the kernel wrote it
    try:
        for name, value in spec["limits"].items():
            limit(getattr(resource, name), value)
        supervise(spec, spec["threads"] if spec["gate"] is None else read_gate(spec["gate"]))
    except OSError as error:
        failed(error)


def read_spec(word: str) -> bytes:
    import binascii

    if not word.isdigit():
        return binascii.a2b_base64(word)
    fd = int(word)
    try:
        return os.read(fd, os.fstat(fd).st_size)
    finally:
        os.close(fd)


def read_gate(gate: int) -> int:
    """Waits until the caller has put this process into a group that limits it, and returns 0; without a group, returns
    the limit of the user's threads."""
    threads = os.read(gate, 32)
    os.close(gate)
    if not threads:
        raise OSError("the caller cancelled it")
    return int(threads)


def failed(error: OSError) -> NoReturn:
    sys.stderr.write(f"{NOT_SET_UP}{no_more_threads() if isinstance(error, BlockingIOError) else error}\n")
    sys.stderr.flush()
    os._exit(FAILED)


def no_more_threads() -> str:
    """What the system's "Resource temporarily unavailable" means."""
    most = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    limit = f", the limit is {most}" if most != resource.RLIM_INFINITY else ""
    return f"the user has {threads_of_user()} threads{limit}; no more can be started"


def threads_of_user() -> int:
    """The number of the user's threads that can be seen here. The owner of a process's folder in /proc does not tell
    whose it is: for many processes of a browser that is root."""
    me, count = str(os.getuid()).encode(), 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            status = read_file(f"/proc/{name}/status")
            if status.partition(b"\nUid:\t")[2].partition(b"\t")[0] == me:
                fields = read_file(f"/proc/{name}/stat").rpartition(b")")[2].split()
                count += int(fields[17]) if fields else 1
    return count


def supervise(spec: dict[str, Any], threads: int) -> NoReturn:
    """Runs the program as a child, and exits with its code. Unless 0, `threads` is the limit of its user's threads."""
    under_bubblewrap = spec["landlock"] is None
    if not under_bubblewrap:  # under bubblewrap, a process that loses its parent stays in the namespace
        prctl(SUBREAPER, 1)
    waited, end = {*STOPS, signal.SIGCHLD}, time.monotonic() + (spec["seconds"] or float("inf"))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    mine, theirs = (None, None) if under_bubblewrap else channel()
    own, child = os.getpid(), fork_below(threads)
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        start(spec, own, theirs)
    if theirs is not None:
        theirs.close()
        start_marks(mine, spec["marks"])
    if under_bubblewrap and os.stat(spec["argv"][0]).st_mode & stat.S_ISUID:  # noqa: PTH116 - pathlib takes 10 ms
        prctl(DUMPABLE, 0)  # so the caller sees that it can see no files of bubblewrap's processes, either
    for fd in (0, 1, 2):
        os.close(fd)  # so that the streams close when the program ends
    received, pauses = None, False
    while True:
        code = exit_code(child)
        if code is not None:
            if not under_bubblewrap or code < 0:  # else they ended with their process namespace
                kill_descendants()
            os._exit(code if code >= 0 else 128 - code)
        if os.getppid() != spec["kernel"] or (received is not None and received.si_signo in STOPS):
            kill_descendants()
            os._exit(128 + signal.SIGTERM)
        if time.monotonic() >= end:
            kill_descendants()
            signal.signal(TIME_IS_UP, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {TIME_IS_UP})
            os.kill(os.getpid(), TIME_IS_UP)
        paused, pauses = pauses, state_of(str(spec["kernel"]))[0] == b"T"
        if pauses or paused:
            for pid in descendants(own):
                send(pid, signal.SIGSTOP if pauses else signal.SIGCONT)
        received = signal.sigtimedwait(waited, TICK)


def fork_below(threads: int) -> int:
    """Forks with a limit of the user's threads (setrlimit(2), RLIMIT_NPROC). The system counts all of them, also those
    in other containers, which cannot be seen here; if they leave no room, all threads of the machine are added to the
    limit. BlockingIOError if that leaves none, either."""
    if threads == 0:
        return os.fork()
    hard, everyone = resource.getrlimit(resource.RLIMIT_NPROC)[1], read_file("/proc/loadavg").split()[3]
    for wanted in (threads, threads + int(everyone.partition(b"/")[2])):
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NPROC, (allowed, hard))
        try:
            child = os.fork()
        except BlockingIOError:
            continue
        if child == 0:
            resource.setrlimit(resource.RLIMIT_NPROC, (allowed, allowed))
        return child
    raise BlockingIOError


def start(spec: dict[str, Any], parent: int, channel: Any) -> NoReturn:
    """Becomes the program, or bubblewrap, which reads the filter from a file that has no name."""
    argv, variables = list(spec["argv"]), dict(os.environ)
    try:
        if spec["landlock"] is not None:
            prctl(DEATH_SIGNAL, signal.SIGKILL)
            if os.getppid() != parent:  # it was killed before this process asked for the signal
                os._exit(FAILED)
            rights, filtered = spec["landlock"], spec["seccomp"]
            if spec.get("loopback") and (names := own_network(spec["loopback"][2])) is not None:
                rights, filtered = (spec["loopback"][0], rights[1] + names), spec["loopback"][1]
            apply_restrictions(rights, filtered, channel)
            variables = reachable(os.environ)
        elif spec["seccomp"]:
            fd = os.memfd_create("filter", 0)
            os.write(fd, spec["seccomp"])
            os.lseek(fd, 0, os.SEEK_SET)
            argv[1:1] = ["--seccomp", str(fd)]
    except OSError as error:
        failed(error)
    try:
        os.execve(argv[0], argv, variables)  # noqa: S606 - no shell is wanted
    except OSError as error:
        sys.stderr.write(f"{argv[0]!r} cannot be started: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(FAILED)


def channel() -> tuple[Any, Any]:
    """Two connected sockets, for the descriptor that reports the program's calls."""
    import _socket  # `socket` takes 5 ms

    return _socket.socketpair()


def start_marks(channel: Any, marks: tuple[dict[int, str], list[bytes]]) -> None:
    import _thread

    try:
        _thread.start_new_thread(make_marks, (channel, *marks))
    except RuntimeError:  # there are too many threads
        channel.close()


def make_marks(channel: Any, calls: dict[int, str], folders: list[bytes]) -> None:
    """Makes the calls that `marks` describes, or all of them fail (ENOSYS). Nothing is imported before the first."""
    import select

    try:
        parts = channel.recvmsg(1, 32, 0x40000000)[1]  # MSG_CMSG_CLOEXEC
        listener = struct.unpack("i", parts[0][2])[0]
    except (OSError, IndexError):  # the program could not be started, or another listens to its calls
        return
    finally:
        channel.close()
    try:
        events = select.poll()
        events.register(listener, select.POLLIN)
        if events.poll()[0][1] & select.POLLIN:  # else the program has ended without such a call
            __import__("marks").answer(listener, events, calls, folders)
    finally:
        os.close(listener)


def exit_code(child: int) -> int | None:
    """The code of the child, negative for a signal, or None while it runs. What else has ended is reaped."""
    while (ended := os.waitpid(-1, os.WNOHANG))[0]:
        if ended[0] == child:
            return os.waitstatus_to_exitcode(ended[1])
    return None


def kill_descendants() -> None:
    """Kills descendants until this process has no child; what loses its parent meanwhile becomes one. No list is
    enough: a process may fork and end while the list is made."""
    prctl(SUBREAPER, 1)
    while has_child():
        found = descendants(os.getpid())
        for pid in found:
            send(pid, signal.SIGKILL)
        if not found:
            time.sleep(0.001)


def has_child() -> bool:
    """Whether a child is left after those that have ended are reaped."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        return


def descendants(top: int) -> list[int]:
    """The living processes below `top`."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            state, parent = state_of(name)
            if state and (state not in (b"Z", b"X") or goes_on(name)):
                parents.setdefault(parent, []).append(int(name))
    found, left = list[int](), [top]
    while left:
        children = parents.get(left.pop(), [])
        found += children
        left += children
    return found


def state_of(name: str) -> tuple[bytes, int]:
    """The state of a process and its parent; empty and 0 if there is no such process."""
    fields = read_file(f"/proc/{name}/stat").rpartition(b")")[2].split()
    return (fields[0], int(fields[1])) if fields else (b"", 0)


def read_file(path: str) -> bytes:
    """Up to 4 KiB of a file; empty if it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, 4096)
    except OSError:
        return b""
    finally:
        os.close(fd)


def goes_on(name: str) -> bool:
    """Whether a process that looks dead still has threads: its first one has ended, but others have not."""
    try:
        return len(os.listdir(f"/proc/{name}/task")) > 1
    except OSError:
        return False


def own_network(hosts: str) -> list[tuple[str, int]] | None:
    """Moves this process to a network of its own, which has nothing but a loopback, and lays the file `hosts` over
    /etc/hosts; returns the rule to read that. None if the system refuses this, as it may for users."""
    import fcntl
    from _socket import AF_INET, SOCK_DGRAM, socket

    user, group = os.getuid(), os.getgid()
    if libc().unshare(NEW_NET | NEW_MOUNTS) != 0:
        if libc().unshare(NEW_USER | NEW_NET | NEW_MOUNTS) != 0:
            return None
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            fd = os.open(f"/proc/self/{name}", os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(fd, text.encode())
            finally:
                os.close(fd)
    connection = socket(AF_INET, SOCK_DGRAM)
    try:
        fcntl.ioctl(connection, 0x8914, struct.pack("16sh14x", b"lo", 0x41))  # SIOCSIFFLAGS: up and running
    except OSError:  # then nothing can be reached, not even itself
        pass
    finally:
        connection.close()
    is_private = libc().mount(None, b"/", None, 0x44000, None) == 0  # MS_REC | MS_PRIVATE: nobody else sees the next
    if is_private and libc().mount(os.fsencode(hosts), b"/etc/hosts", None, 0x1000, None) == 0:  # MS_BIND
        return [("/etc/hosts", 4)]  # LANDLOCK_ACCESS_FS_READ_FILE
    return []


def apply_restrictions(landlock: tuple[bytes, list[tuple[str, int]]], seccomp: bytes | None, channel: Any) -> None:
    """Restricts this process and its children to what `landlock` grants: the ruleset, and rights by path. Sends the
    descriptor that reports the calls for `marks`."""
    import ctypes

    attributes, rules = landlock
    number = 0
    while libc().prctl(DROP_BOUND, number, 0, 0, 0) == 0:  # root keeps its files, but none of its capabilities
        number += 1
    prctl(NO_NEW_PRIVS, 1)
    ruleset = syscall("landlock_create_ruleset", CREATE_RULESET, attributes, len(attributes), 0)
    for path, rights in rules:
        try:
            fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        if stat.S_ISLNK(os.fstat(fd).st_mode):
            continue  # a link that was put there since; its target must not get the rights
        syscall(f"landlock_add_rule {path}", ADD_RULE, ruleset, PATH_BENEATH, struct.pack("=Qi", rights, fd), 0)
        os.close(fd)
    syscall("landlock_restrict_self", RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)
    if seccomp:
        held = ctypes.create_string_buffer(seccomp, len(seccomp))
        code = struct.pack("HxxxxxxP", len(seccomp) // 8, ctypes.addressof(held))
        listener = libc().syscall(SET_FILTER, 1, LISTENER, code)
        if listener >= 0:
            try:  # noqa: SIM105 - contextlib takes some milliseconds
                channel.sendmsg([b"x"], [(1, 1, struct.pack("i", listener))])  # SOL_SOCKET, SCM_RIGHTS
            except BrokenPipeError:  # nobody listens, so the calls for `marks` fail
                pass
        else:  # another one listens to this process, so the calls for `marks` fail
            prctl(SECCOMP, 2, code)


def reachable(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables without what Landlock shows but does not let open: bash and git would stop there with an error."""
    folders = list[str]()
    for folder in variables.get("PATH", "").split(os.pathsep):
        try:
            os.close(os.open(folder, os.O_RDONLY | os.O_DIRECTORY))
        except OSError:
            continue
        folders.append(folder)
    return {**variables, "PATH": os.pathsep.join(folders), "GIT_CONFIG_NOSYSTEM": "1"}


def limit(which: int, value: int) -> None:
    """Sets a limit, at most the current hard limit."""
    hard = resource.getrlimit(which)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (value, value))


def libc() -> Any:
    import ctypes  # takes 5 ms, and bubblewrap does not need it

    return ctypes.CDLL(None, use_errno=True)


def syscall(what: str, *args: object) -> int:
    return checked(libc().syscall(*args), what)


def prctl(option: int, value: int, *more: object) -> None:
    checked(libc().prctl(option, value, *(more or (0,)), 0, 0), "prctl")


def checked(result: int, what: str) -> int:
    import ctypes

    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result

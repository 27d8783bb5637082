"""Starts one program confined: `main` in `python -I -S -c … FD`, where FD holds the marshalled request; or with the
request in base64 in place of FD, for callers that cannot pass a file descriptor.

It imports nothing of the kernel and little else, because it is started before every program. Under bubblewrap it sets
limits and becomes bubblewrap. Under Landlock it stays: what the program leaves behind becomes its child, and is killed
when the program ends (prctl(2), PR_SET_CHILD_SUBREAPER). A thread of it makes the calls that `marks` describes.
"""

from __future__ import annotations

import marshal
import os
import resource
import signal
import stat
import struct
import sys

TYPE_CHECKING = False  # importing `typing` takes 4 ms
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn

NO_NEW_PRIVS, SECCOMP, SUBREAPER, DEATH_SIGNAL, DROP_BOUND = 38, 22, 36, 1, 24  # options of prctl(2)
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # Landlock's system call numbers, the same on every machine
PATH_BENEATH = 1
SET_FILTER, LISTENER = (277 if os.uname().machine == "aarch64" else 317), 0b101000  # seccomp(2); waits are killable
FAILED = 125  # exit code if the program cannot be started; the reason is on stderr


def main() -> None:
    spec = marshal.loads(read_spec(sys.argv[1]))  # noqa: S302 - the kernel wrote it
    try:
        for name, value in spec["limits"].items():
            limit(getattr(resource, name), value)
        if spec["landlock"] is None:
            run_contained(spec)
        supervised(spec)
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


def open_gate(gate: int | None) -> None:
    """Waits until the caller has put this process into the group that limits it."""
    if gate is None:
        return
    if not os.read(gate, 1):
        raise OSError("the caller cancelled it")
    os.close(gate)


def failed(error: OSError) -> NoReturn:
    sys.stderr.write(f"the sandbox cannot be set up: {error}\n")
    sys.stderr.flush()
    os._exit(FAILED)


def run_contained(spec: dict[str, Any]) -> NoReturn:
    """Becomes bubblewrap, which reads the filter from a file that has no name."""
    argv = list(spec["argv"])
    if spec["seccomp"]:
        fd = os.memfd_create("filter", 0)
        os.write(fd, spec["seccomp"])
        os.lseek(fd, 0, os.SEEK_SET)
        argv[1:1] = ["--seccomp", str(fd)]
    open_gate(spec["gate"])
    os.execv(argv[0], argv)  # noqa: S606 - no shell is wanted


def supervised(spec: dict[str, Any]) -> NoReturn:
    """Runs the program as a child; when it ends, kills its descendants and exits with its code."""
    import _socket  # `socket` takes 5 ms
    import _thread

    prctl(SUBREAPER, 1)
    open_gate(spec["gate"])
    mine, childs = _socket.socketpair()
    child = os.fork()
    if child == 0:
        try:
            prctl(DEATH_SIGNAL, signal.SIGKILL)
            apply_restrictions(spec["landlock"], spec["seccomp"], childs)
            os.execve(spec["argv"][0], spec["argv"], reachable(os.environ))  # noqa: S606 - no shell is wanted
        except OSError as error:
            failed(error)
    for fd in (1, 2):
        os.close(fd)  # so that the streams close when the program ends
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stopped)
    prctl(DEATH_SIGNAL, signal.SIGTERM)
    childs.close()
    try:
        _thread.start_new_thread(make_marks, (mine, *spec["marks"]))
    except RuntimeError:  # there are too many threads
        mine.close()
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            reap_orphans()
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


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


def stopped(*_: object) -> NoReturn:
    reap_orphans()
    os._exit(128 + signal.SIGTERM)


def reap_orphans() -> None:
    """Kills descendants until none is found; a process that loses its parent becomes a child of this one."""
    while found := descendants(os.getpid()):
        for pid in found:
            has_exited(pid)
        for pid in found:
            reaped(pid)


def has_exited(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        return


def reaped(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except OSError:
        return


def descendants(top: int) -> list[int]:
    """The living processes below `top`."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fd = os.open(f"/proc/{name}/stat", os.O_RDONLY | os.O_CLOEXEC)
                try:
                    state, parent = os.read(fd, 1024).rpartition(b")")[2].split()[:2]
                finally:
                    os.close(fd)
            except OSError:
                continue
            if state not in (b"Z", b"X") or goes_on(name):
                parents.setdefault(int(parent), []).append(int(name))
    found, left = list[int](), [top]
    while left:
        children = parents.get(left.pop(), [])
        found += children
        left += children
    return found


def goes_on(name: str) -> bool:
    """Whether a process that looks dead still has threads: its first one has ended, but others have not."""
    try:
        return len(os.listdir(f"/proc/{name}/task")) > 1
    except OSError:
        return False


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
            channel.sendmsg([b"x"], [(1, 1, struct.pack("i", listener))])  # SOL_SOCKET, SCM_RIGHTS
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

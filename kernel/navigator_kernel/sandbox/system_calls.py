"""The system calls that programs in a sandbox need, by name, with their numbers of x86_64 and aarch64.

The list has the calls that scripts of public skills used in a measurement (`tests/sandbox/measure_system_calls.py`),
and calls of the same family. All others are denied.
"""

from __future__ import annotations

from collections.abc import Mapping

NONE = -1  # the architecture has no such call


# Allowed with any arguments; the most frequent calls come first
ALLOWED: Mapping[str, tuple[int, int]] = {
    "read": (0, 63), "write": (1, 64), "close": (3, 57), "fstat": (5, 80), "newfstatat": (262, 79),
    "lseek": (8, 62), "mmap": (9, 222), "munmap": (11, 215), "futex": (202, 98), "openat": (257, 56),
    "poll": (7, NONE), "ppoll": (271, 73), "epoll_wait": (232, NONE), "epoll_pwait": (281, 22), "recvfrom": (45, 207),
    "sendto": (44, 206),
    # files
    "readv": (19, 65), "writev": (20, 66), "pread64": (17, 67), "pwrite64": (18, 68), "preadv": (295, 69),
    "pwritev": (296, 70), "preadv2": (327, 286), "pwritev2": (328, 287), "open": (2, NONE), "openat2": (437, 437),
    "creat": (85, NONE), "close_range": (436, 436), "stat": (4, NONE), "lstat": (6, NONE), "statx": (332, 291),
    "access": (21, NONE), "faccessat": (269, 48), "faccessat2": (439, 439), "getdents": (78, NONE),
    "getdents64": (217, 61), "getcwd": (79, 17), "chdir": (80, 49), "fchdir": (81, 50), "rename": (82, NONE),
    "renameat": (264, 38), "renameat2": (316, 276), "mkdir": (83, NONE), "mkdirat": (258, 34), "rmdir": (84, NONE),
    "link": (86, NONE), "linkat": (265, 37), "unlink": (87, NONE), "unlinkat": (263, 35), "symlink": (88, NONE),
    "symlinkat": (266, 36), "readlink": (89, NONE), "readlinkat": (267, 78), "truncate": (76, 45),
    "ftruncate": (77, 46), "fallocate": (285, 47), "fsync": (74, 82), "fdatasync": (75, 83), "sync": (162, 81),
    "syncfs": (306, 267), "sync_file_range": (277, 84), "fadvise64": (221, 223), "readahead": (187, 213),
    "copy_file_range": (326, 285), "sendfile": (40, 71), "splice": (275, 76), "tee": (276, 77),
    "vmsplice": (278, 75), "dup": (32, 23), "dup2": (33, NONE), "dup3": (292, 24), "fcntl": (72, 25),
    "flock": (73, 32), "umask": (95, 166), "statfs": (137, 43), "fstatfs": (138, 44), "getxattr": (191, 8),
    "lgetxattr": (192, 9), "fgetxattr": (193, 10), "listxattr": (194, 11), "llistxattr": (195, 12),
    "flistxattr": (196, 13), "cachestat": (451, 451),
    # memory
    "mprotect": (10, 226), "mremap": (25, 216), "madvise": (28, 233), "brk": (12, 214), "msync": (26, 227),
    "mincore": (27, 232), "mlock": (149, 228), "mlock2": (325, 284), "munlock": (150, 229), "mlockall": (151, 230),
    "munlockall": (152, 231), "memfd_create": (319, 279), "pkey_alloc": (330, 289), "pkey_free": (331, 290),
    "pkey_mprotect": (329, 288), "get_mempolicy": (239, 236), "set_mempolicy": (238, 237), "mbind": (237, 235),
    "membarrier": (324, 283), "remap_file_pages": (216, 234),
    # processes
    "fork": (57, NONE), "vfork": (58, NONE), "execve": (59, 221), "execveat": (322, 281), "exit": (60, 93),
    "exit_group": (231, 94), "wait4": (61, 260), "waitid": (247, 95), "kill": (62, 129), "tkill": (200, 130),
    "tgkill": (234, 131), "getpid": (39, 172), "getppid": (110, 173), "gettid": (186, 178), "getpgid": (121, 155),
    "getpgrp": (111, NONE), "setpgid": (109, 154), "getsid": (124, 156), "setsid": (112, 157), "getuid": (102, 174),
    "geteuid": (107, 175), "getgid": (104, 176), "getegid": (108, 177), "getresuid": (118, 148),
    "getresgid": (120, 150), "getgroups": (115, 158), "setuid": (105, 146), "setgid": (106, 144),
    "setreuid": (113, 145), "setregid": (114, 143), "setresuid": (117, 147), "setresgid": (119, 149),
    "setgroups": (116, 159), "setfsuid": (122, 151), "setfsgid": (123, 152), "capget": (125, 90),
    "capset": (126, 91), "prctl": (157, 167), "arch_prctl": (158, NONE), "personality": (135, 92),
    "getrusage": (98, 165), "times": (100, 153), "sysinfo": (99, 179), "uname": (63, 160), "getcpu": (309, 168),
    "getrlimit": (97, 163), "setrlimit": (160, 164), "getpriority": (140, 141), "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123), "sched_getscheduler": (145, 120), "sched_getparam": (143, 121),
    "sched_getattr": (315, 275), "sched_get_priority_max": (146, 125), "sched_get_priority_min": (147, 126),
    "sched_rr_get_interval": (148, 127), "set_tid_address": (218, 96), "set_robust_list": (273, 99),
    "get_robust_list": (274, 100), "rseq": (334, 293), "futex_waitv": (449, 449), "restart_syscall": (219, 128),
    "seccomp": (317, 277), "landlock_create_ruleset": (444, 444), "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446), "pidfd_open": (434, 434), "ioprio_get": (252, 31),
    # signals
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "rt_sigpending": (127, 136),
    "rt_sigsuspend": (130, 133), "rt_sigtimedwait": (128, 137), "sigaltstack": (131, 132), "pause": (34, NONE),
    "signalfd": (282, NONE), "signalfd4": (289, 74),
    # waiting
    "select": (23, NONE), "pselect6": (270, 72), "epoll_create": (213, NONE), "epoll_create1": (291, 20),
    "epoll_ctl": (233, 21), "epoll_ctl_old": (214, NONE), "epoll_wait_old": (215, NONE), "epoll_pwait2": (441, 441),
    "eventfd": (284, NONE), "eventfd2": (290, 19), "pipe": (22, NONE), "pipe2": (293, 59),
    # time
    "time": (201, NONE), "gettimeofday": (96, 169), "clock_gettime": (228, 113), "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115), "nanosleep": (35, 101), "alarm": (37, NONE), "getitimer": (36, 102),
    "setitimer": (38, 103), "timer_create": (222, 107), "timer_settime": (223, 110), "timer_gettime": (224, 108),
    "timer_getoverrun": (225, 109), "timer_delete": (226, 111), "timerfd_create": (283, 85),
    "timerfd_settime": (286, 86), "timerfd_gettime": (287, 87), "getrandom": (318, 278),
    # sockets
    "bind": (49, 200), "connect": (42, 203), "listen": (50, 201), "accept": (43, 202), "accept4": (288, 242),
    "getsockname": (51, 204), "getpeername": (52, 205), "getsockopt": (55, 209), "setsockopt": (54, 208),
    "sendmsg": (46, 211), "recvmsg": (47, 212), "sendmmsg": (307, 269), "recvmmsg": (299, 243),
    "shutdown": (48, 210),
}  # fmt: skip
# Calls that change a mode, an owner or a time: Landlock does not cover them
MARKS: Mapping[str, tuple[int, int]] = {
    "chmod": (90, NONE), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, NONE),
    "fchown": (93, 55), "lchown": (94, NONE), "fchownat": (260, 54), "utime": (132, NONE), "utimes": (235, NONE),
    "futimesat": (261, NONE), "utimensat": (280, 88),
}  # fmt: skip
# Calls that change an attribute: Landlock does not cover them, either
ATTRIBUTES: Mapping[str, tuple[int, int]] = {
    "setxattr": (188, 5), "lsetxattr": (189, 6),
    "fsetxattr": (190, 7), "setxattrat": (463, 463), "removexattr": (197, 14), "lremovexattr": (198, 15),
    "fremovexattr": (199, 16), "removexattrat": (466, 466),
}  # fmt: skip
# Allowed with some arguments only
CHECKED: Mapping[str, tuple[int, int]] = {
    "clone": (56, 220), "clone3": (435, 435), "socket": (41, 198), "socketpair": (53, 199), "ioctl": (16, 29),
    "chmod": (90, NONE), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "prlimit64": (302, 261),
    "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119), "sched_setparam": (142, 118), "sched_setattr": (314, 274),
}  # fmt: skip

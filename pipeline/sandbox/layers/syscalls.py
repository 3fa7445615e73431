"""System calls of x86-64 Linux that a guest can make, with their numbers (asm/unistd_64.h)."""

from __future__ import annotations

_ALLOWED: dict[str, int] = {
    # files: open, read, write, describe, change
    "read": 0, "write": 1, "close": 3, "stat": 4, "fstat": 5, "lstat": 6, "lseek": 8, "pread64": 17, "pwrite64": 18,
    "readv": 19, "writev": 20, "access": 21, "dup": 32, "dup2": 33, "sendfile": 40, "flock": 73, "fsync": 74,
    "fdatasync": 75, "ftruncate": 77, "getdents": 78, "getcwd": 79, "chdir": 80, "fchdir": 81, "rename": 82,
    "mkdir": 83, "rmdir": 84, "creat": 85, "link": 86, "unlink": 87, "symlink": 88, "readlink": 89, "umask": 95,
    "statfs": 137, "fstatfs": 138, "readahead": 187, "getxattr": 191, "lgetxattr": 192, "fgetxattr": 193,
    "listxattr": 194, "llistxattr": 195, "flistxattr": 196, "getdents64": 217, "fadvise64": 221, "mkdirat": 258,
    "newfstatat": 262, "unlinkat": 263, "renameat": 264, "linkat": 265, "symlinkat": 266, "readlinkat": 267,
    "faccessat": 269, "splice": 275, "tee": 276, "sync_file_range": 277, "fallocate": 285, "dup3": 292, "preadv": 295,
    "pwritev": 296, "renameat2": 316, "copy_file_range": 326, "preadv2": 327, "pwritev2": 328, "statx": 332,
    "close_range": 436, "faccessat2": 439,
    # memory
    "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12, "mremap": 25, "msync": 26, "mincore": 27, "madvise": 28,
    "mlock": 149, "munlock": 150, "mlockall": 151, "munlockall": 152, "mbind": 237, "set_mempolicy": 238,
    "get_mempolicy": 239, "membarrier": 324, "mlock2": 325, "pkey_mprotect": 329, "pkey_alloc": 330, "pkey_free": 331,
    "set_mempolicy_home_node": 450,
    # processes and threads
    "sched_yield": 24, "getpid": 39, "fork": 57, "vfork": 58, "execve": 59, "exit": 60, "wait4": 61, "uname": 63,
    "getrlimit": 97, "getrusage": 98, "sysinfo": 99, "times": 100, "getppid": 110, "getpgrp": 111, "getpgid": 121,
    "getsid": 124, "getpriority": 140, "sched_getparam": 143, "sched_getscheduler": 145, "sched_get_priority_max": 146,
    "sched_get_priority_min": 147, "sched_rr_get_interval": 148, "arch_prctl": 158, "setrlimit": 160, "gettid": 186,
    "futex": 202, "sched_getaffinity": 204, "set_thread_area": 205, "get_thread_area": 211, "set_tid_address": 218,
    "restart_syscall": 219, "exit_group": 231, "waitid": 247, "ioprio_get": 252, "set_robust_list": 273,
    "get_robust_list": 274, "getcpu": 309, "sched_getattr": 315, "rseq": 334, "futex_waitv": 449,
    # identity
    "getuid": 102, "getgid": 104, "geteuid": 107, "getegid": 108, "getgroups": 115, "getresuid": 118, "getresgid": 120,
    "capget": 125,
    # signals
    "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "pause": 34, "kill": 62, "rt_sigpending": 127,
    "rt_sigtimedwait": 128, "rt_sigqueueinfo": 129, "rt_sigsuspend": 130, "sigaltstack": 131, "tkill": 200,
    "tgkill": 234, "signalfd": 282, "signalfd4": 289, "rt_tgsigqueueinfo": 297,
    # time
    "nanosleep": 35, "getitimer": 36, "alarm": 37, "setitimer": 38, "gettimeofday": 96, "time": 201,
    "timer_create": 222, "timer_settime": 223, "timer_gettime": 224, "timer_getoverrun": 225, "timer_delete": 226,
    "clock_gettime": 228, "clock_getres": 229, "clock_nanosleep": 230, "timerfd_create": 283, "timerfd_settime": 286,
    "timerfd_gettime": 287,
    # waiting and pipes
    "poll": 7, "pipe": 22, "select": 23, "epoll_create": 213, "epoll_wait": 232, "epoll_ctl": 233, "pselect6": 270,
    "ppoll": 271, "epoll_pwait": 281, "eventfd": 284, "eventfd2": 290, "epoll_create1": 291, "pipe2": 293,
    "epoll_pwait2": 441,
    # a connected pair of sockets, which is all there is
    "sendto": 44, "recvfrom": 45, "sendmsg": 46, "recvmsg": 47, "shutdown": 48, "getsockname": 51, "getpeername": 52,
    "setsockopt": 54, "getsockopt": 55,
    # other
    "getrandom": 318,
}  # fmt: skip

# Succeed without effect.
_PRETENDED: dict[str, int] = {
    "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94, "utime": 132, "setpriority": 141, "sync": 162,
    "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199,
    "utimes": 235, "fchownat": 260, "futimesat": 261, "fchmodat": 268, "utimensat": 280, "syncfs": 306,
}  # fmt: skip

# Allowed depending on their arguments: see `seccomp`.
_CONDITIONAL: dict[str, int] = {
    "open": 2, "ioctl": 16, "socketpair": 53, "clone": 56, "fcntl": 72, "prctl": 157, "sched_setaffinity": 203,
    "openat": 257, "prlimit64": 302, "clone3": 435, "openat2": 437,
}  # fmt: skip

LAST = 450  # set_mempolicy_home_node, of Linux 5.17: the newest that was reviewed
NUMBERS = _ALLOWED | _PRETENDED | _CONDITIONAL
ALLOWED = frozenset(_ALLOWED)
PRETENDED = frozenset(_PRETENDED)

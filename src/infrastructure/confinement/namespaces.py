"""Namespaces of a started process and its descendants: their own process ids, and a /proc with them alone.

Standard library only. Needs user namespaces for unprivileged users, which some systems switch off.
"""

import os
from collections.abc import Iterable

from infrastructure.confinement import kernel
from infrastructure.confinement.system_paths import IN_MEMORY_BYTES, SHARED_MEMORY

_NEW_MOUNTS, _NEW_IPC, _NEW_USERS, _NEW_PIDS = 0x00020000, 0x08000000, 0x10000000, 0x20000000
_NO_SETUID, _NO_DEVICES, _NO_PROGRAMS = 2, 4, 8
_BIND, _RECURSIVE, _PRIVATE = 4096, 16384, 1 << 18
_GUARDED = _NO_SETUID | _NO_DEVICES | _NO_PROGRAMS


def enter() -> None:
    """Enter namespaces of users, mounts and IPC; the next child begins one of process ids, as its first process.
    The user stays the same, and is the only one. Raises OSError."""
    user, group = os.getuid(), os.getgid()
    kernel.unshare(_NEW_USERS | _NEW_MOUNTS | _NEW_IPC | _NEW_PIDS)
    for file, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        fd = os.open(f"/proc/self/{file}", os.O_WRONLY)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)
    kernel.mount("none", "/", "", _RECURSIVE | _PRIVATE)


def mount_own(writable: Iterable[str] = ()) -> None:
    """In the first process of the namespace: a /proc and shared memory for it alone; everything else but `writable` is
    read-only. Raises OSError."""
    for path in writable:
        if os.path.exists(path):
            kernel.mount(path, path, "", _BIND | _RECURSIVE)
    kernel.set_read_only("/", True)
    for path in writable:
        if os.path.exists(path):
            kernel.set_read_only(path, False)
    os.chdir(os.getcwd())  # of the mounts above, not of what is below them
    kernel.mount("proc", "/proc", "proc", _GUARDED)
    kernel.mount("tmpfs", SHARED_MEMORY, "tmpfs", _NO_SETUID | _NO_DEVICES, f"size={IN_MEMORY_BYTES}")


def hold() -> bool:
    """Whether this machine lets us do all that. Starts two short-lived processes."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            enter()
            inner = os.fork()
            if inner == 0:
                try:
                    mount_own()
                    code = 0
                finally:
                    os._exit(code)
            code = os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1])
        except OSError:
            code = 1
        finally:
            os._exit(code & 0x7F)
    return os.waitpid(child, 0)[1] == 0

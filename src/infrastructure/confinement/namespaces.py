"""Namespaces of a started process and its descendants: their own process ids with a /proc of them
alone, and their own network.

Standard library only. Needs user namespaces for unprivileged users, which some systems switch off.
"""

import os
from collections.abc import Callable, Iterable

from infrastructure.confinement import kernel, own_network
from infrastructure.confinement.system_paths import IN_MEMORY_BYTES, SHARED_MEMORY

_NEW_MOUNTS, _NEW_IPC, _NEW_USERS, _NEW_PIDS = 0x00020000, 0x08000000, 0x10000000, 0x20000000
_NEW_NETWORK = 0x40000000
_NO_SETUID, _NO_DEVICES, _NO_PROGRAMS = 2, 4, 8
_BIND, _RECURSIVE, _PRIVATE = 4096, 16384, 1 << 18
_GUARDED = _NO_SETUID | _NO_DEVICES | _NO_PROGRAMS


def enter(*, proxy: int | None = None) -> None:
    """Enter namespaces of users, mounts and IPC; the next child begins one of process ids, as its
    first process. With `proxy`, also one of the network (`own_network.offer`). Raises OSError."""
    _enter(_NEW_MOUNTS | _NEW_IPC | _NEW_PIDS | (0 if proxy is None else _NEW_NETWORK))
    kernel.mount("none", "/", "", _RECURSIVE | _PRIVATE)
    if proxy is not None:
        own_network.offer(proxy)


def enter_network(proxy: int) -> None:
    """Enter a namespace of the network alone (`own_network.offer`). Raises OSError."""
    _enter(_NEW_NETWORK)
    own_network.offer(proxy)


def _enter(flags: int) -> None:
    """New namespaces, and one of users, in which the user stays the same and is the only one."""
    user, group = os.getuid(), os.getgid()
    kernel.unshare(_NEW_USERS | flags)
    for file, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        fd = os.open(f"/proc/self/{file}", os.O_WRONLY)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)


def mount_own(writable: Iterable[str] = ()) -> None:
    """In the first process of the namespace: a /proc and shared memory for it alone; everything
    else but `writable` is read-only. Raises OSError."""
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
    """Whether this machine lets us have namespaces of users, mounts and processes. Starts two
    short-lived processes."""

    def succeeds() -> bool:
        enter()
        return _succeeds_in_child(_mount_own)

    return _succeeds_in_child(succeeds)


def hold_network() -> bool:
    """Whether this machine lets us have a namespace of the network. Starts a short-lived
    process."""

    def succeeds() -> bool:
        ours, theirs = own_network.link()
        enter_network(theirs)
        return own_network.received(ours) is not None

    return _succeeds_in_child(succeeds)


def _mount_own() -> bool:
    mount_own()
    return True


def _succeeds_in_child(function: Callable[[], bool]) -> bool:
    child = os.fork()
    if child == 0:
        is_done = False
        try:
            is_done = function()
        except OSError:
            is_done = False
        finally:
            os._exit(0 if is_done else 1)
    return os.waitpid(child, 0)[1] == 0

"""System calls that the standard library lacks. Standard library only, and cheap to import: the
launcher uses it."""

import ctypes
import os
import struct

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4

_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE, _READ_ONLY = 442, -100, 0x8000, 1
_CAPABILITY_VERSION = 0x20080522
_LAST_CAPABILITY = 63

_libc = ctypes.CDLL(None, use_errno=True)

Argument = int | ctypes.Array[ctypes.c_char]


def syscall(number: int, *arguments: Argument) -> int:
    """Call the kernel by number. Raises OSError."""
    converted = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return _checked(_libc.syscall(ctypes.c_long(number), *converted))


def prctl(option: int, value: int, further: Argument = 0) -> None:
    """prctl(2). Raises OSError."""
    unused = ctypes.c_ulong(0)
    second = ctypes.c_ulong(further) if isinstance(further, int) else further
    _checked(_libc.prctl(ctypes.c_int(option), ctypes.c_ulong(value), second, unused, unused))


def unshare(flags: int) -> None:
    """Enter new namespaces. Raises OSError."""
    _checked(_libc.unshare(ctypes.c_int(flags)))


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    """mount(2). Raises OSError."""
    names = os.fsencode(source), os.fsencode(target), kind.encode()
    _checked(_libc.mount(*names, ctypes.c_ulong(flags), data.encode() or None))


def set_read_only(path: str, value: bool) -> None:
    """Make a mount and all below it read-only or not (mount_setattr(2)). Raises OSError."""
    attributes = struct.pack("=4Q", _READ_ONLY if value else 0, 0 if value else _READ_ONLY, 0, 0)
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    name = ctypes.create_string_buffer(os.fsencode(path))
    syscall(_MOUNT_SETATTR, _AT_FDCWD, name, _AT_RECURSIVE, buffer, len(attributes))


def give_up_capabilities() -> None:
    """Drop every capability, of root too: with `PR_SET_NO_NEW_PRIVS` none comes back by executing a
    program."""
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    for capability in range(_LAST_CAPABILITY + 1):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:  # without the right to (then there is nothing to drop), or past the last capability
            break
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    _checked(_libc.capset(header, (ctypes.c_uint32 * 6)()))


def _checked(result: int) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result

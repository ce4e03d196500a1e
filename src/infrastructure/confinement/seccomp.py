"""A seccomp filter against system calls that no MCP server needs: debugging, mounting, namespaces,
kernel keys, …

Standard library only. The filter is a classic BPF program (`man 2 seccomp`): on a forbidden call it
returns an error number. Calls that it never looks into further cost nothing: the kernel knows them
beforehand.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Iterable

from infrastructure.confinement import kernel

_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_FILTER_MODE = 2
_X32 = 0x40000000

_NEW_NAMESPACES = 0x7E020080  # the CLONE_NEW… flags of clone(2) and unshare(2)
_UNIX_SOCKET, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_TYPE_INTO_TERMINAL = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX

_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""Identifier in the filter, and column of `_CALLS`."""
_CALLS = """
clone 56 220, unshare 272 97, clone3 435 435, socket 41 198, ioctl 16 29, kill 62 129, tkill 200 130,
tgkill 234 131, rt_sigqueueinfo 129 138, rt_tgsigqueueinfo 297 240, pidfd_open 434 434, ptrace 101 117,
process_vm_readv 310 270, process_vm_writev 311 271, process_madvise 440 440, kcmp 312 272, pidfd_getfd 438 438,
mount 165 40, umount2 166 39, pivot_root 155 41, chroot 161 51, move_mount 429 429, open_tree 428 428,
fsopen 430 430, fsconfig 431 431, fsmount 432 432, fspick 433 433, mount_setattr 442 442, swapon 167 224,
swapoff 168 225, setns 308 268, keyctl 250 219, add_key 248 217, request_key 249 218, bpf 321 280,
userfaultfd 323 282, perf_event_open 298 241, kexec_load 246 104, kexec_file_load 320 294, init_module 175 105,
finit_module 313 273, delete_module 176 106, io_uring_setup 425 425, io_uring_enter 426 426,
io_uring_register 427 427, reboot 169 142, acct 163 89, quotactl 179 60, quotactl_fd 443 443, syslog 103 116,
open_by_handle_at 304 265, name_to_handle_at 303 264, settimeofday 164 170, clock_settime 227 112,
clock_adjtime 305 266, adjtimex 159 171, sethostname 170 161, setdomainname 171 162, vhangup 153 58,
fanotify_init 300 262, iopl 172 -, ioperm 173 -, modify_ldt 154 -,
chmod 90 -, fchmodat 268 53, fchmodat2 452 452, chown 92 -, lchown 94 -, fchownat 260 54,
fchmod 91 52, creat 85 -, mknod 133 -, mknodat 259 33, open 2 -, openat 257 56, openat2 437 437,
memfd_create 319 279, memfd_secret 447 447, setxattr 188 5, lsetxattr 189 6, removexattr 197 14, lremovexattr 198 15, setxattrat 463 463, removexattrat 466 466
"""
"""Numbers of calls on x86-64 and on arm64."""
_BY_ARGUMENT = frozenset(
    {"clone", "unshare", "clone3", "socket", "ioctl", "openat2", "memfd_create", "memfd_secret"}
    | {"kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_open"}
)
"""Calls that are forbidden with some arguments only, or that are as if they were missing."""
_MODE_OF = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "mknod": 1, "mknodat": 2}
_MODE_OF |= {"open": 2, "openat": 3}
"""The argument that is the mode of a file. `open` has it, after its flags, if it creates one."""
_CREATE = 0x400040  # O_CREAT and O_TMPFILE
_SET_USER_ID = 0o4000  # not set-group-ID, which directories inherit and copies of them have
_MODES = frozenset(
    {"chmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchownat", "setxattr", "lsetxattr", "removexattr"}
    | {"lremovexattr", "setxattrat", "removexattrat"}
)
"""Calls that are forbidden if asked for; all others of the table always are."""


def program(
    *, unix_sockets: bool, network: bool, modes: bool = True, unreachable: Iterable[int] = (), machine: str = ""
) -> bytes:
    """The filter's instructions; empty for an unknown architecture.

    - `unix_sockets`: whether sockets of files may be created, through which services of the machine
      are reached (D-Bus, Docker). Connected pairs are always allowed.
    - `network`: whether sockets of IPv4 and IPv6 may be created.
    - `modes`: whether modes, owners and attributes of files may be changed by path.
    - `unreachable` are process ids that must not be signalled.
    """
    architecture, column = _ARCHITECTURES.get(machine or os.uname().machine, (0, 0))
    if not architecture:
        return b""
    rows = [row.split() for row in _CALLS.split(",")]
    numbers = {name: int(columns[column]) for name, *columns in rows if columns[column] != "-"}
    denied = _ERROR | errno.EPERM
    code = [
        *_load(_ARCHITECTURE),
        *_unless_equal(architecture, [_instruction(_RETURN, _KILL)]),
        *_load(_NUMBER),
        _instruction(_JUMP_AT_LEAST, _X32, 0, 1),
        _instruction(_RETURN, denied),
    ]
    for name, number in numbers.items():
        if name not in _BY_ARGUMENT and name not in _MODE_OF and not (modes and name in _MODES):
            code += _if_equal(number, [_instruction(_RETURN, denied)])
    # Arguments of the first two are in memory, which a filter cannot read; no limit of a process
    # counts the others' memory. Programs then use older calls.
    for name in ("clone3", "openat2", "memfd_create", "memfd_secret"):
        code += _if_equal(numbers[name], [_instruction(_RETURN, _ERROR | errno.ENOSYS)])
    code += _no_set_user_id(numbers, are_fixed=not modes)
    for name in ("clone", "unshare"):
        namespaces = [_instruction(_JUMP_SET, _NEW_NAMESPACES, 0, 1), _instruction(_RETURN, denied)]
        code += _if_equal(numbers[name], [*_argument(0), *namespaces, _allowed()])
    families = [_NETLINK, *([_UNIX_SOCKET] if unix_sockets else []), *([_INET, _INET6] if network else [])]
    of_family = [instruction for family in families for instruction in _if_equal(family, [_allowed()])]
    other_family = _instruction(_RETURN, _ERROR | errno.EAFNOSUPPORT)
    code += _if_equal(numbers["socket"], [*_argument(0), *of_family, other_family])
    requests = [line for request in _TYPE_INTO_TERMINAL for line in _if_equal(request, [_instruction(_RETURN, denied)])]
    code += _if_equal(numbers["ioctl"], [*_argument(1), *requests, _allowed()])
    code += _no_signals_to(tuple(unreachable), numbers)
    return b"".join([*code, _allowed()])


def install(instructions: bytes) -> None:
    """Filter this thread and what it starts, for good. Needs `PR_SET_NO_NEW_PRIVS`. Raises
    OSError."""
    code = ctypes.create_string_buffer(instructions, len(instructions))
    described = struct.pack("HxxxxxxP", len(instructions) // 8, ctypes.addressof(code))
    kernel.prctl(kernel.PR_SET_SECCOMP, _FILTER_MODE, ctypes.create_string_buffer(described, len(described)))


def _no_set_user_id(numbers: dict[str, int], *, are_fixed: bool) -> list[bytes]:
    """No file that another user would execute with the rights of ours. `are_fixed`: no mode is
    changed by path at all."""
    denied = _instruction(_RETURN, _ERROR | errno.EPERM)
    code: list[bytes] = []
    for name, argument in _MODE_OF.items():
        if name not in numbers:
            continue
        check = [*_argument(argument), _instruction(_JUMP_SET, _SET_USER_ID, 0, 1), denied, _allowed()]
        if are_fixed and name in _MODES:
            check = [denied]
        elif name in ("open", "openat"):
            check = [*_argument(argument - 1), _instruction(_JUMP_SET, _CREATE, 1, 0), _allowed(), *check]
        code += _if_equal(numbers[name], check)
    return code


def _no_signals_to(processes: tuple[int, ...], numbers: dict[str, int]) -> list[bytes]:
    """No signal to these processes, to their groups, or to all processes at once."""
    if not processes:
        return []
    denied = [_instruction(_RETURN, _ERROR | errno.EPERM)]
    groups = [0xFFFFFFFF, *(-process & 0xFFFFFFFF for process in processes)]
    code: list[bytes] = []
    for name in ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_open"):
        targets = [line for target in (*processes, *groups) for line in _if_equal(target, denied)]
        code += _if_equal(numbers[name], [*_argument(0), *targets, _allowed()])
    return code


def _if_equal(value: int, then: list[bytes]) -> list[bytes]:
    return [_instruction(_JUMP_EQUAL, value, 0, len(then)), *then]


def _unless_equal(value: int, then: list[bytes]) -> list[bytes]:
    return [_instruction(_JUMP_EQUAL, value, len(then), 0), *then]


def _argument(index: int) -> list[bytes]:
    """Load the low half of an argument (on a little-endian machine)."""
    return _load(_ARGUMENTS + 8 * index)


def _load(offset: int) -> list[bytes]:
    return [_instruction(_LOAD, offset)]


def _allowed() -> bytes:
    return _instruction(_RETURN, _ALLOW)


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)

"""Landlock: an allow-list of directories and TCP ports for this process and all that it starts.

Standard library only. `man 7 landlock` has the constants; a kernel reports which of them it has as
its ABI.
"""

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

from infrastructure.confinement import kernel

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_REPORT_VERSION = 1
_PATH_BENEATH, _NET_PORT = 1, 2

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_DEVICES = 1 << 6 | 1 << 11
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_ALL_OF_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
_ALL_SINCE_ABI_5 = (1 << 16) - 1
_BIND_TCP, _CONNECT_TCP = 1 << 0, 1 << 1
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1 << 0, 1 << 1
TRUNCATE_SINCE, PORTS_SINCE, SCOPES_SINCE = 3, 4, 6

_READ = _EXECUTE | _READ_FILE | _READ_DIR
_ON_FILES = _EXECUTE | _READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL


def abi() -> int:
    """The version of Landlock in this kernel; 0 without."""
    try:
        return kernel.syscall(_CREATE_RULESET, 0, 0, _REPORT_VERSION)
    except OSError:
        return 0


class Ruleset:
    """Rules, to be applied once. `paths` says whether paths are restricted at all (else scopes and
    ports only). `ports` are the TCP ports that may be connected to; None for all. Raises
    OSError."""

    def __init__(self, *, version: int, paths: bool, ports: Iterable[int] | None) -> None:
        self._fs = _ALL_OF_ABI.get(version, _ALL_SINCE_ABI_5) if paths else 0
        restricts_net = ports is not None and version >= PORTS_SINCE
        net = _CONNECT_TCP if restricts_net else 0
        scopes = _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS if version >= SCOPES_SINCE else 0
        self.is_empty = not (self._fs or net or scopes)
        fields = (self._fs, net, scopes)[: 1 + (version >= PORTS_SINCE) + (version >= SCOPES_SINCE)]
        attributes = ctypes.create_string_buffer(struct.pack(f"={len(fields)}Q", *fields), 8 * len(fields))
        self._fd = -1 if self.is_empty else kernel.syscall(_CREATE_RULESET, attributes, len(attributes), 0)
        if restricts_net:
            for port in ports or ():
                rule = ctypes.create_string_buffer(struct.pack("=QQ", _CONNECT_TCP, port), 16)
                kernel.syscall(_ADD_RULE, self._fd, _NET_PORT, rule, 0)

    def allow_reading(self, path: str) -> None:
        """Reading and executing at and below a path; a path that is not there is skipped."""
        self._allow(path, _READ)

    def allow_writing(self, path: str) -> None:
        """Everything but devices; a path that is not there is skipped."""
        self._allow(path, self._fs & ~_MAKE_DEVICES)

    def apply(self) -> None:
        """Restrict this thread and what it starts, for good. Needs `PR_SET_NO_NEW_PRIVS`."""
        if not self.is_empty:
            kernel.syscall(_RESTRICT_SELF, self._fd, 0)
            os.close(self._fd)

    def _allow(self, path: str, access: int) -> None:
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            return
        try:
            if not stat.S_ISDIR(os.fstat(fd).st_mode):
                access &= _ON_FILES
            rule = ctypes.create_string_buffer(struct.pack("=Qi", access & self._fs, fd), 12)
            kernel.syscall(_ADD_RULE, self._fd, _PATH_BENEATH, rule, 0)
        finally:
            os.close(fd)

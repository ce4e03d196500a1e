"""Starts a program in a thread, without the interpreter. `subprocess` holds the interpreter until
the new program is loaded, on a busy machine for tens of milliseconds in which the event loop stands
still. Used by `stdio_process.py`."""

import asyncio
import ctypes
import fcntl
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Final

import anyio

_SET_DEFAULT_SIGNALS, _SET_SIGNAL_MASK, _NEW_SESSION = 0x04, 0x08, 0x80
_IGNORED_BY_PYTHON: Final = (signal.SIGPIPE, signal.SIGXFSZ)
_STRUCTURE_BYTES: Final = 1024
"""More than any C library needs for attributes, actions or a set of signals."""
_FIRST_FREE = 3

_libc = ctypes.CDLL(None)  # its functions are called without the interpreter


class Spawned:
    """A child process, and our ends of its pipes, which the taker closes."""

    def __init__(self, pid: int, pipes: tuple[IO[bytes], IO[bytes], IO[bytes]]) -> None:
        self.pid = pid
        self.stdin, self.stdout, self.stderr = pipes
        self._code: int | None = None

    def poll(self) -> int | None:
        """The exit code, -N for signal N; None before the end."""
        return self._code if self._code is not None else self._waited(os.WNOHANG)

    def wait(self) -> None:
        if self._code is None:
            self._waited(0)

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def abandon(self) -> None:
        """Kill and reap the process, and close the pipes."""
        self.kill()
        self.wait()
        for pipe in (self.stdin, self.stdout, self.stderr):
            pipe.close()

    def _waited(self, options: int) -> int | None:
        pid, status = os.waitpid(self.pid, options)
        if pid:
            self._code = os.waitstatus_to_exitcode(status)
        return self._code


async def spawned(
    command: Sequence[str], *, environment: Mapping[str, str], cwd: Path | None, handed: Sequence[int]
) -> Spawned:
    """Start a program, found by its path, in a new session with pipes. It has the descriptors
    `handed` under their numbers, and is expected to close others that are not closed on exec. Under
    cancellation the process is ended first. Raises OSError (no such program or directory, no
    descriptor left)."""
    spawning = asyncio.ensure_future(asyncio.to_thread(_spawn, command, environment, cwd, handed))
    interrupted: asyncio.CancelledError | None = None
    with anyio.CancelScope(shield=True):
        while not spawning.done():
            try:
                await asyncio.wait([spawning])
            except asyncio.CancelledError as exc:  # the scope above shields from anyio's cancellation, not asyncio's
                interrupted = exc
    try:
        process = spawning.result()
    except OSError as error:
        if interrupted is not None:
            raise interrupted from error
        raise
    if interrupted is not None:
        process.abandon()
        raise interrupted
    return process


def _spawn(command: Sequence[str], environment: Mapping[str, str], cwd: Path | None, handed: Sequence[int]) -> Spawned:
    with ExitStack() as ours, ExitStack() as theirs:
        standard = []
        files = []
        for number in range(_FIRST_FREE):
            reading, writing = _pipe()
            own, other, mode = (reading, writing, "rb") if number else (writing, reading, "wb")
            theirs.callback(os.close, other)
            files.append(ours.enter_context(open(own, mode, buffering=0)))
            standard.append(other)
        pid = _posix_spawn(command, environment, cwd, [*enumerate(standard), *((fd, fd) for fd in handed)])
        ours.pop_all()
    stdin, stdout, stderr = files
    return Spawned(pid, (stdin, stdout, stderr))


def _pipe() -> tuple[int, int]:
    """Its descriptors are none of the standard ones, which a service may have been started
    without."""
    reading, writing = os.pipe()
    if min(reading, writing) >= _FIRST_FREE:
        return reading, writing
    try:
        return _above_standard(reading), _above_standard(writing)
    finally:
        os.close(reading)
        os.close(writing)


def _above_standard(descriptor: int) -> int:
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE)


def _posix_spawn(
    command: Sequence[str], environment: Mapping[str, str], cwd: Path | None, descriptors: Sequence[tuple[int, int]]
) -> int:
    """`descriptors` are pairs of the new number and ours; equal ones stay open."""
    actions, attributes, default, mask = (ctypes.create_string_buffer(_STRUCTURE_BYTES) for _ in range(4))
    with ExitStack() as stack:
        _call(_libc.posix_spawn_file_actions_init, actions)
        stack.callback(_libc.posix_spawn_file_actions_destroy, actions)
        _call(_libc.posix_spawnattr_init, attributes)
        stack.callback(_libc.posix_spawnattr_destroy, attributes)
        for new, ours in descriptors:
            _call(_libc.posix_spawn_file_actions_adddup2, actions, ours, new)
        if cwd is not None:
            _call(_libc.posix_spawn_file_actions_addchdir_np, actions, os.fsencode(cwd))
        _libc.sigemptyset(mask)
        _libc.sigemptyset(default)
        for number in _IGNORED_BY_PYTHON:
            _libc.sigaddset(default, int(number))
        _call(_libc.posix_spawnattr_setsigmask, attributes, mask)
        _call(_libc.posix_spawnattr_setsigdefault, attributes, default)
        flags = _SET_DEFAULT_SIGNALS | _SET_SIGNAL_MASK | _NEW_SESSION
        _call(_libc.posix_spawnattr_setflags, attributes, ctypes.c_short(flags))
        pid = ctypes.c_int()
        variables = [f"{name}={value}" for name, value in environment.items()]
        path, *vectors = os.fsencode(command[0]), _vector(command), _vector(variables)
        _call(_libc.posix_spawn, ctypes.byref(pid), path, actions, attributes, *vectors)
        return pid.value


def _vector(texts: Sequence[str]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * (len(texts) + 1))(*map(os.fsencode, texts), None)


def _call(function: Callable[..., int], *arguments: object) -> None:
    if error := function(*arguments):
        raise OSError(error, os.strerror(error))

"""Attempts of a hostile program, by name. One that raises OSError was denied; one that returns has
succeeded.

Standard library only: these modules run in confined processes."""

import ctypes
import os
from collections.abc import Callable
from typing import Any

World = dict[str, Any]
Attempt = Callable[[World], object]
ATTEMPTS: dict[str, Attempt] = {}

libc = ctypes.CDLL(None, use_errno=True)
NEW_USER, NEW_MOUNTS = 0x10000000, 0x00020000


def attempt(function: Attempt) -> Attempt:
    ATTEMPTS[function.__name__] = function
    return function


def syscall(number: int, *arguments: object) -> int:
    converted = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    result = libc.syscall(ctypes.c_long(number), *converted)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(result)


def call(name: str, *arguments: object) -> None:
    """A function of the C library that sets errno."""
    if getattr(libc, name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(64)


def append(path: str) -> None:
    """Open for writing; nothing is written, and no new file is left."""
    was_there = os.path.exists(path)
    os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT))
    if not was_there:
        os.unlink(path)


def require_real(path: str) -> None:
    """Directories may be there without what is in them, in a file system that only this process
    sees."""
    os.stat(path)

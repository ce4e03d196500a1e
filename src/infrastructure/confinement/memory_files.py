"""Files that a started process inherits: those without a name have what others must not see in its
arguments.

Standard library only, and cheap to import: the launcher uses it.
"""

import os
from collections.abc import Container, Mapping


def memory_file(content: bytes) -> int:
    """The descriptor of a file in memory, at its beginning. A child inherits it where it is asked
    to. Raises OSError."""
    fd = os.memfd_create("dragoman")
    try:
        with open(fd, "wb", closefd=False) as file:
            file.write(content)
        os.lseek(fd, 0, os.SEEK_SET)
    except BaseException:
        os.close(fd)
        raise
    return fd


def environment_bytes(variables: Mapping[str, str]) -> bytes:
    """Variables as the kernel has them. Neither names nor values may hold NUL."""
    return b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in variables.items())


def read_environment(fd: int) -> dict[str, str]:
    """The variables in a file of `environment_bytes`, which is closed. Raises OSError."""
    with open(fd, "rb") as file:
        lines = file.read().split(b"\0")[:-1]
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in (line.partition(b"=") for line in lines)}


def close_inherited(*, except_for: Container[int | None]) -> None:
    """Close all descriptors but the standard ones and these. Raises OSError without /proc."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in except_for:
            try:
                os.close(int(name))
            except OSError:  # the one that listed the others
                continue

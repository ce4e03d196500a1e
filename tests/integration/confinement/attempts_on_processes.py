"""Attempts on the service's process, the launcher and other servers."""

import ctypes
import errno
import os
import signal
import struct

from tests.integration.confinement.attempt import Attempt, World, attempt, read, syscall

# The service's process, the launcher and other servers.


def of_process(process: str, file: str) -> Attempt:
    def read_it(world: World) -> object:
        path = f"/proc/{world[process]}/{file}"
        found = os.listdir(path) if file in ("fd", "task", "root", "cwd") else read(path)
        if not found:
            raise PermissionError(errno.EACCES, "empty")
        # The number may be that of a process of ours, in namespaces.
        with open(f"/proc/{world[process]}/environ", "rb") as environment:
            if b"hostile_program" in environment.read():
                raise ProcessLookupError(errno.ESRCH, "this is a process of ours")
        return found

    read_it.__name__ = f"read_{file}_of_the_{process}"
    return read_it


for _process in ("service", "victim"):
    for _file in ("environ", "mem", "maps", "fd", "cwd", "root", "cmdline", "stack", "auxv"):
        attempt(of_process(_process, _file))


def require_outside(process: int) -> None:
    """In a namespace the numbers of outside processes are free, or those of our own ones."""
    if process in {os.getpid(), os.getppid(), 1}:
        raise ProcessLookupError(errno.ESRCH, "this is a process of ours")


@attempt
def signal_the_service(world: World) -> None:
    require_outside(world["service"])
    os.kill(world["service"], signal.SIGCONT)


@attempt
def signal_another_server(world: World) -> None:
    require_outside(world["victim"])
    os.kill(world["victim"], signal.SIGKILL)


@attempt
def signal_the_group_of_another_server(world: World) -> None:
    os.killpg(world["victim"], signal.SIGKILL)


@attempt
def signal_another_server_by_thread(world: World) -> None:
    require_outside(world["victim"])
    syscall(234, world["victim"], world["victim"], int(signal.SIGKILL))


@attempt
def signal_another_server_by_descriptor(world: World) -> None:
    require_outside(world["victim"])
    signal.pidfd_send_signal(os.pidfd_open(world["victim"]), signal.SIGKILL)


@attempt
def stop_the_launcher(world: World) -> None:
    require_outside(world["launcher"] or os.getppid())
    os.kill(os.getppid(), signal.SIGSTOP)


@attempt
def take_over_another_server_as_debugger(world: World) -> None:
    require_outside(world["victim"])
    syscall(101, 16, world["victim"], 0, 0)


@attempt
def debug_a_child(_: World) -> None:
    child = os.fork()
    if child == 0:
        signal.pause()
    try:
        syscall(101, 16, child, 0, 0)
    finally:
        os.kill(child, signal.SIGKILL)


@attempt
def read_the_memory_of_another_server(world: World) -> None:
    buffer = ctypes.create_string_buffer(64)
    local = struct.pack("PN", ctypes.addressof(buffer), 64)
    syscall(310, world["victim"], local, 1, struct.pack("PN", 0x400000, 64), 1, 0)


@attempt
def write_the_memory_of_another_server(world: World) -> None:
    buffer = ctypes.create_string_buffer(64)
    local = struct.pack("PN", ctypes.addressof(buffer), 64)
    syscall(311, world["victim"], local, 1, struct.pack("PN", 0x400000, 64), 1, 0)


@attempt
def take_a_descriptor_of_another_server(world: World) -> None:
    syscall(438, syscall(434, world["victim"], 0), 1, 0)


@attempt
def compare_with_another_server(world: World) -> None:
    syscall(312, os.getpid(), world["victim"], 1, 0, 0)


@attempt
def change_the_priority_of_another_server(world: World) -> None:
    require_outside(world["victim"])
    os.setpriority(os.PRIO_PROCESS, world["victim"], 0)
    raise PermissionError(errno.EACCES, "0 is what it has")

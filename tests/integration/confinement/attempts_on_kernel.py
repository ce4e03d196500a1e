"""Attempts on namespaces and on the kernel."""

import ctypes
import os
import signal
import struct

from tests.integration.confinement.attempt import NEW_MOUNTS, NEW_USER, World, attempt, call, syscall

# Namespaces and the kernel.


@attempt
def enter_a_namespace_of_users(_: World) -> None:
    call("unshare", NEW_USER)


@attempt
def enter_a_namespace_of_mounts(_: World) -> None:
    call("unshare", NEW_MOUNTS)


@attempt
def begin_a_namespace_by_clone(_: World) -> None:
    if syscall(56, NEW_USER | int(signal.SIGCHLD), 0, 0, 0, 0) == 0:
        os._exit(0)


@attempt
def begin_a_namespace_by_clone3(_: World) -> None:
    arguments = struct.pack("=11Q", NEW_USER, 0, 0, 0, int(signal.SIGCHLD), *[0] * 6)
    if syscall(435, arguments, len(arguments)) == 0:
        os._exit(0)


@attempt
def enter_the_namespace_of_its_parent(_: World) -> None:
    descriptor = os.open(f"/proc/{os.getppid()}/ns/mnt", os.O_RDONLY)
    call("setns", descriptor, 0)


@attempt
def enter_the_namespace_of_the_service(world: World) -> None:
    descriptor = os.open(f"/proc/{world['service']}/ns/mnt", os.O_RDONLY)
    call("setns", descriptor, 0)


@attempt
def mount_a_file_system(world: World) -> None:
    call("mount", b"none", world["own"].encode(), b"tmpfs", 0, None)


@attempt
def unmount_its_proc(_: World) -> None:
    call("umount2", b"/proc", 2)


@attempt
def remount_the_root_for_writing(_: World) -> None:
    call("mount", b"none", b"/", None, 32 | 4096, None)


@attempt
def mount_by_the_new_interface(_: World) -> None:
    syscall(430, b"tmpfs", 0)


@attempt
def take_a_copy_of_the_tree(_: World) -> None:
    syscall(428, -100, b"/", 1)


@attempt
def change_the_attributes_of_a_mount(_: World) -> None:
    syscall(442, -100, b"/", 0, struct.pack("=4Q", 0, 1, 0, 0), 32)


@attempt
def pivot_the_root(world: World) -> None:
    syscall(155, world["own"].encode(), world["own"].encode())


@attempt
def open_a_file_by_handle(_: World) -> None:
    syscall(304, -100, struct.pack("=Ii8s", 8, 1, b"\2\0\0\0\0\0\0\0"), 0)


OF_KERNEL: list[str] = []
"""Those of which only an error of permission is a denial."""


def of_kernel(name: str, number: int, *arguments: object) -> None:
    def do_it(_: World) -> None:
        syscall(number, *arguments)

    do_it.__name__ = name
    attempt(do_it)
    OF_KERNEL.append(name)


of_kernel("add_a_key_to_the_kernel", 248, b"user", b"hostile", b"x", 1, -3)
of_kernel("read_the_keyring", 250, 0, -3, 0)
of_kernel("request_a_key", 249, b"user", b"hostile", 0, 0)
of_kernel("load_a_program_into_the_kernel", 321, 5, b"\0" * 128, 128)
of_kernel("create_a_map_in_the_kernel", 321, 0, struct.pack("=5I", 2, 4, 8, 1, 0) + b"\0" * 108, 128)
of_kernel("handle_page_faults", 323, 1)
of_kernel("watch_performance_events", 298, b"\0" * 128, 0, -1, -1, 0)
of_kernel("set_up_a_ring", 425, 8, b"\0" * 120)
of_kernel("load_another_kernel", 246, 0, 0, 0, 0)
of_kernel("load_a_module", 175, b"", 0, b"")
of_kernel("load_a_module_from_a_file", 313, 0, b"", 0)
of_kernel("unload_a_module", 176, b"hostile", 0)
of_kernel("restart_the_machine", 169, 0, 0, 0, 0)
of_kernel("account_for_processes", 163, 0)
of_kernel("set_the_clock", 227, 0, struct.pack("=2q", 0, 0))
of_kernel("set_the_name_of_the_machine", 170, b"hostile", 7)
of_kernel("read_the_kernels_messages", 103, 3, ctypes.create_string_buffer(64), 64)
of_kernel("watch_all_files", 300, 0, 0)
of_kernel("use_ports_of_devices", 172, 3)
of_kernel("hang_up_the_terminal", 153)
of_kernel("use_a_swap_file", 167, b"/hostile", 0)
of_kernel("use_calls_of_the_x32_interface", 0x40000000 + 39)

"""Attempts to gain rights, and on sockets."""

import ctypes
import errno
import fcntl
import os
import resource
import socket
import struct
import subprocess
import sys
import termios

from tests.integration.confinement.attempt import World, attempt, call, syscall

# Privileges.


@attempt
def become_another_user(_: World) -> None:
    os.setuid(65534 if os.getuid() != 65534 else 1)


@attempt
def take_capabilities(_: World) -> None:
    header, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(*[0xFFFFFFFF] * 6)
    call("capset", header, data)


@attempt
def gain_capabilities_by_executing(_: World) -> None:
    script = "import os; print(open(f'/proc/{os.getpid()}/status').read())"
    found = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=False)
    held = [line for line in found.stdout.splitlines() if line.startswith("CapEff:")]
    if not held or int(held[0].split()[1], 16) == 0:
        raise PermissionError(errno.EPERM, "none")


@attempt
def lend_its_user_by_descriptor(world: World) -> None:
    descriptor = os.open(f"{world['own']}/lent", os.O_RDWR | os.O_CREAT, 0o600)
    os.fchmod(descriptor, 0o4755)


@attempt
def lend_its_user_by_path(world: World) -> None:
    os.close(os.open(f"{world['own']}/lent", os.O_RDWR | os.O_CREAT, 0o600))
    os.chmod(f"{world['own']}/lent", 0o4755)


@attempt
def lend_its_user_with_a_new_file(world: World) -> None:
    os.close(os.open(f"{world['own']}/new", os.O_RDWR | os.O_CREAT, 0o4755))


@attempt
def lend_its_user_with_a_file_without_a_name(world: World) -> None:
    os.close(os.open(world["own"], os.O_RDWR | os.O_TMPFILE, 0o4755))


@attempt
def lend_its_user_by_an_older_call(world: World) -> None:
    os.close(syscall(85, f"{world['own']}/older".encode(), 0o4755))


@attempt
def lend_its_user_by_a_node(world: World) -> None:
    os.mknod(f"{world['own']}/node", 0o104755)


@attempt
def lend_its_user_by_a_call_with_a_structure(world: World) -> None:
    how = struct.pack("=3Q", os.O_RDWR | os.O_CREAT, 0o4755, 0)
    os.close(syscall(437, -100, f"{world['own']}/structure".encode(), how, len(how)))


@attempt
def take_memory_that_no_limit_counts(_: World) -> None:
    os.close(os.memfd_create("hostile"))


@attempt
def take_secret_memory_that_no_limit_counts(_: World) -> None:
    os.close(syscall(447, 0))


@attempt
def raise_a_limit(_: World) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard * 2, hard * 2))


@attempt
def gain_priority(_: World) -> None:
    os.nice(-20)


@attempt
def run_in_real_time(_: World) -> None:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))


@attempt
def be_spared_when_memory_runs_out(_: World) -> None:
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("-1000")


@attempt
def type_into_a_terminal(_: World) -> None:
    terminal = os.openpty()
    fcntl.ioctl(terminal[1], termios.TIOCSTI, b"x")


@attempt
def find_a_secret_in_its_environment(_: World) -> object:
    if not (found := [name for name in os.environ if "SECRET" in name]):
        raise KeyError(errno.ENOENT, "none")
    return found


# Sockets.


@attempt
def connect_to_a_socket_of_the_machine(world: World) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(world["socket"])


@attempt
def connect_to_an_abstract_socket(world: World) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("\0" + world["abstract"])


@attempt
def send_a_datagram_to_a_socket_of_the_machine(world: World) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
        client.sendto(b"x", world["socket"])


@attempt
def capture_packets(_: World) -> None:
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW)


@attempt
def send_raw_packets(_: World) -> None:
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)


@attempt
def speak_to_the_hypervisor(_: World) -> None:
    socket.socket(socket.AF_VSOCK)


@attempt
def use_the_kernels_cryptography(_: World) -> None:
    socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)


@attempt
def configure_the_network(_: World) -> None:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:
        message = struct.pack("=IHHIIBBHiII", 32, 16, 5, 1, 0, 0, 0, 0, 1, 0, 0xFFFFFFFF)  # set flags of interface 1
        link.send(message)
        code = struct.unpack_from("=i", link.recv(4096), 16)[0]
        if code:
            raise OSError(-code, os.strerror(-code))


@attempt
def connect_to_a_port_that_is_not_allowed(world: World) -> None:
    with socket.create_connection(("127.0.0.1", world["port"]), timeout=5):
        pass

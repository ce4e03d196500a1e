"""What a server with an allowlist of hosts attempts, past its proxy and through it. A program of
its own, standard library only: `PROGRAM WORLD` writes what came of each attempt as JSON."""

import ctypes
import json
import os
import socket
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from fcntl import ioctl
from typing import Any

World = dict[str, Any]
FAST_OPEN, MULTIPATH_TCP, SET_ADDRESS = 0x20000000, 262, 0x8916
OUTSIDE = "192.0.2.1"
"""For documentation (RFC 5737): a route to it is what matters."""
WAIT_S = 30


def stream(address: tuple[str, int], *, family: int = socket.AF_INET, protocol: int = 0) -> None:
    with socket.socket(family, socket.SOCK_STREAM, protocol) as connection:
        connection.settimeout(WAIT_S)
        connection.connect(address)


def datagram(address: tuple[str, int]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
        sending.sendto(b"secret", address)


def with_the_first_packet(world: World) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as connection:
        connection.sendto(b"secret", FAST_OPEN, ("127.0.0.1", world["port"]))


def take_an_address(_: World) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        place = struct.pack("16sHH4s8x", b"lo", socket.AF_INET, 0, socket.inet_aton(OUTSIDE))
        ioctl(control.fileno(), SET_ADDRESS, place)


def enter_the_machines_network(_: World) -> None:
    for process in ("1", str(os.getppid())):
        descriptor = os.open(f"/proc/{process}/ns/net", os.O_RDONLY)
        if ctypes.CDLL(None, use_errno=True).setns(descriptor, 0) != 0:
            raise OSError(ctypes.get_errno(), "setns")


def abstract(world: World) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect("\0" + world["abstract"])


def packets(_: World) -> None:
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0x300).close()


PAST_THE_PROXY: dict[str, Callable[[World], object]] = {
    "a port of the machine": lambda world: stream(("127.0.0.1", world["port"])),
    "a port of the machine, IPv6": lambda world: stream(("::1", world["port"]), family=socket.AF_INET6),
    "a port of the machine, multipath": lambda world: stream(("127.0.0.1", world["port"]), protocol=MULTIPATH_TCP),
    "data with the first packet": with_the_first_packet,
    "an address outside": lambda _: stream((OUTSIDE, 443)),
    "the metadata of a cloud": lambda _: stream(("169.254.169.254", 80)),
    "a datagram outside": lambda _: datagram((OUTSIDE, 53)),
    "a name": lambda _: socket.getaddrinfo("allowed.example", 443),
    "an address of its own": take_an_address,
    "the machine's network": enter_the_machines_network,
    "an abstract socket": abstract,
    "raw packets": packets,
}


def asked(world: World, request: str) -> str:
    """The first line of the proxy's answer, and what follows the head."""
    text = request.format(**world)
    with socket.create_connection(("127.0.0.1", 3128), timeout=WAIT_S) as connection:
        connection.sendall(text.encode())
        answer = b""
        with suppress(ConnectionResetError):
            while piece := connection.recv(4096):
                answer += piece
                if answer.endswith(b"end of the answer"):
                    break
    head, _, body = answer.partition(b"\r\n\r\n")
    return f"{head.splitlines()[0].decode() if head else ''}|{body.decode()}"


THROUGH_THE_PROXY = {
    "another host": "CONNECT other.example:{port} HTTP/1.1\r\n\r\n",
    "another port": "CONNECT allowed.example:22 HTTP/1.1\r\n\r\n",
    "a name that ends alike": "CONNECT xallowed.example:{port} HTTP/1.1\r\n\r\n",
    "a name that begins alike": "CONNECT allowed.example.other.example:{port} HTTP/1.1\r\n\r\n",
    "a name below": "CONNECT a.allowed.example:{port} HTTP/1.1\r\n\r\n",
    "an address": "CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n",
    "the metadata of a cloud": "GET http://169.254.169.254/ HTTP/1.1\r\n\r\n",
    "localhost": "CONNECT localhost:{port} HTTP/1.1\r\n\r\n",
    "an allowed name with a private address": "CONNECT private.example:{port} HTTP/1.1\r\n\r\n",
    "an allowed name as a user": "GET http://allowed.example@other.example:{port}/ HTTP/1.1\r\n\r\n",
    "an allowed name as a header": "GET http://other.example:{port}/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
    "a port that is none": "CONNECT allowed.example:{port}0000000 HTTP/1.1\r\n\r\n",
    "no port": "CONNECT allowed.example HTTP/1.1\r\n\r\n",
    "another scheme": "GET ftp://allowed.example:{port}/ HTTP/1.1\r\n\r\n",
    "no host": "GET / HTTP/1.1\r\nHost: allowed.example\r\n\r\n",
    "control characters": "CONNECT allowed.example\x01:{port} HTTP/1.1\r\n\r\n",
    "another protocol": "hello\r\n\r\n",
}
ALLOWED = {
    "a tunnel": "CONNECT allowed.example:{port} HTTP/1.1\r\n\r\nGET /tunnelled HTTP/1.0\r\n\r\n",
    "a request": "GET http://ALLOWED.example.:{port}/asked?a=b HTTP/1.1\r\nProxy-Authorization: x\r\n\r\n",
    "a body": "POST http://allowed.example:{port}/ HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody",
}


def outcome(attempt: Callable[[World], object], world: World) -> str:
    try:
        found = attempt(world)
    except OSError as exc:
        return f"denied: {exc}"
    return f"succeeded: {found!r}"


def main(world: World) -> None:
    requests = {**THROUGH_THE_PROXY, **ALLOWED}
    found = {
        "past": {name: outcome(attempt, world) for name, attempt in PAST_THE_PROXY.items()},
        "through": {name: asked(world, request) for name, request in requests.items()},
        "proxy": os.environ["HTTPS_PROXY"],
    }
    json.dump(found, sys.stdout)
    sys.stdout.flush()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))

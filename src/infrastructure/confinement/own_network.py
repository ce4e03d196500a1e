"""A network of a started process alone: a loopback interface with a listening socket, which the
service has.

The service accepts on that socket, with a proxy behind it; nothing else leads out. Standard library
only, and cheap to import: `socket` would take as long as all other modules of the launcher.
"""

import _socket
import fcntl
import os
import struct

PROXY_PORT = 3128
_SET_INTERFACE_FLAGS, _UP = 0x8914, 1
_BACKLOG = 64
_FLAGS = _socket.MSG_DONTWAIT | _socket.MSG_CMSG_CLOEXEC


def offer(link: int) -> None:
    """In a new namespace of the network: bring its loopback up, listen, and hand the listening
    socket over by the socket `link`, which is closed. Raises OSError."""
    control = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    try:
        fcntl.ioctl(control.fileno(), _SET_INTERFACE_FLAGS, struct.pack("16sh14x", b"lo", _UP))
    finally:
        control.close()
    listening = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    try:
        listening.bind(("127.0.0.1", PROXY_PORT))
        listening.listen(_BACKLOG)
        over = _socket.socket(fileno=link)
        try:
            over.sendmsg([b"."], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("i", listening.fileno()))])
        finally:
            over.close()
    finally:
        listening.close()


def link() -> tuple[int, int]:
    """Two connected sockets; a child inherits the second where it is asked to."""
    ours, theirs = _socket.socketpair()
    return ours.detach(), theirs.detach()


def received(link: int) -> int | None:
    """The descriptor of the listening socket; None where the other side has ended without it, or
    has not sent it yet. Raises OSError."""
    end = _socket.socket(fileno=os.dup(link))
    try:
        _, ancillary, _, _ = end.recvmsg(1, _socket.CMSG_SPACE(struct.calcsize("i")), _FLAGS)
    finally:
        end.close()
    for level, kind, data in ancillary:
        if (level, kind) == (_socket.SOL_SOCKET, _socket.SCM_RIGHTS):
            return int(struct.unpack("i", data)[0])
    return None

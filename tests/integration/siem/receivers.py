"""Receivers of syslog on this machine: over TCP, over TLS with a certificate of the test, and over
UDP."""

import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.e2e.processes import until


class SyslogReceiver:
    """Has every connection's bytes once it ended."""

    def __init__(self) -> None:
        self.port = 0
        self.connections: list[bytes] = []

    def messages(self) -> list[bytes]:
        """All messages, by octet counting (RFC 6587, section 3.4.1), once a connection ended."""
        until(lambda: self.connections, what="a connection that ended")
        return [message for stream in self.connections for message in octet_counted(stream)]


@contextmanager
def deaf_receiver() -> Iterator[int]:
    """The port of a receiver that never reads, and whose kernel takes little."""
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


def octet_counted(stream: bytes) -> Iterator[bytes]:
    while stream:
        length, _, rest = stream.partition(b" ")
        yield rest[: int(length)]
        stream = rest[int(length) :]


@contextmanager
def syslog_receiver(
    context: ssl.SSLContext | None = None, *, reads: bool = True, writes: bool = False
) -> Iterator[SyslogReceiver]:
    """A receiver over TCP, with a `context` over TLS. Without `reads` it resets every connection.
    With `writes` it reads, and then writes until the other end has closed."""
    receiver = SyslogReceiver()

    class Handler(socketserver.BaseRequestHandler):
        request: socket.socket

        def handle(self) -> None:
            if not reads:
                self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                return
            connection = self.request if context is None else context.wrap_socket(self.request, server_side=True)
            received = b"".join(iter(lambda: connection.recv(65_536), b""))
            receiver.connections.append(received)
            with suppress(OSError):
                while writes:
                    connection.sendall(b"still here")
            if isinstance(connection, ssl.SSLSocket):
                connection.unwrap().close()

        def finish(self) -> None:
            if not reads:
                self.request.close()

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that refuses the certificate."""

        def shutdown_request(self, request: object) -> None:
            """Close without a further shutdown, which a reset connection does not take."""
            assert isinstance(request, socket.socket)
            request.close()

    with Server(("127.0.0.1", 0), Handler) as server:
        receiver.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()


def certificate(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """A certificate for this machine as a file in PEM, and the context of a server that has it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "siem")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, private = folder / "siem.pem", folder / "siem.key"
    pem.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, private)
    return pem, context

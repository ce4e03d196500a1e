"""Audit entries over syslog (RFC 5424): TCP and TLS with octet counting (RFC 6587, RFC 5425), or
UDP (RFC 5426)."""

import asyncio
import errno
import fcntl
import socket
import ssl
import sys
import termios
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import msgspec

from application.audit.ports import Receipt
from domain.audit.chain_check import StoredLink
from domain.json_value import JsonObject
from infrastructure.siem.ocsf import OcsfEvents
from infrastructure.siem.syslog_address import SyslogAddress

TIMEOUT_S = 15.0
CLOSE_S = 5.0
"""How long the receiver may take to read the rest and close the connection, also if it writes all
the time."""
MAX_DATAGRAM = 60_000
_FACILITY = 13
"""Log audit (RFC 5424, section 6.2.1)."""
_SEVERITIES = {1: 6, 2: 5, 3: 4, 4: 3}
"""Syslog's severities for OCSF's: informational, notice, warning, error."""
_APP = "dragoman"
_MAX_HOST, _MAX_MESSAGE_ID = 255, 32
_BOM = b"\xef\xbb\xbf"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class SyslogAuditReceiver:
    """The `AuditReceiver` port.

    - Syslog has no acknowledgement. A batch over TCP or TLS has its own connection and is accepted
      when the receiver has read to its end and closed it without an error. If it keeps the
      connection open for five seconds, the batch is accepted if its kernel has all of it (checked
      on Linux).
    - A datagram of UDP may be lost without a trace. A batch with one over 60,000 bytes is refused
      as too large.
    """

    def __init__(
        self, *, address: SyslogAddress, events: OcsfEvents, ca_file: Path | None = None, close_s: float = CLOSE_S
    ) -> None:
        self._address = address
        self._events = events
        self._ca_file = ca_file
        self._close_s = close_s
        self._host = socket.gethostname()[:_MAX_HOST] or "-"

    async def send(self, links: Sequence[StoredLink]) -> Receipt:
        messages = [syslog_message(self._events.of(link), host=self._host) for link in links]
        try:
            await asyncio.to_thread(self._send_datagrams if self._address.transport == "udp" else self._send, messages)
        except ssl.SSLError:
            return Receipt(failure="The connection to the receiver is not secure; its certificate may be wrong.")
        except TimeoutError:
            return Receipt(failure="The receiver did not answer in time.")
        except OSError as error:
            if error.errno == errno.EMSGSIZE:
                return Receipt(failure="An event is too large for a datagram.", too_large=True)
            return Receipt(failure="The receiver could not be reached, or broke off the connection.")
        return Receipt()

    async def close(self) -> None:
        """No connection is open between batches."""

    def _send(self, messages: Sequence[bytes]) -> None:
        place = (self._address.host, self._address.port)
        with socket.create_connection(place, timeout=TIMEOUT_S) as connection:
            sent = b"".join(b"%d %b" % (len(message), message) for message in messages)
            if self._address.transport == "tcp":
                connection.sendall(sent)
                self._end(connection)
                return
            context = ssl.create_default_context(cafile=None if self._ca_file is None else str(self._ca_file))
            with context.wrap_socket(connection, server_hostname=self._address.host) as secured:
                secured.sendall(sent)
                self._end(secured)

    def _end(self, connection: socket.socket) -> None:
        """Say that all was sent and wait for the other end. Raises ConnectionError or TimeoutError
        if it did not read it."""
        until = time.monotonic() + self._close_s
        try:
            connection.settimeout(self._close_s)
            with suppress(ssl.SSLEOFError, ssl.SSLZeroReturnError):
                if isinstance(connection, ssl.SSLSocket):
                    connection = connection.unwrap()
                connection.shutdown(socket.SHUT_WR)
                _read_to_end(connection, until)
        except TimeoutError:
            if _has_unacknowledged(connection):
                raise

    def _send_datagrams(self, messages: Sequence[bytes]) -> None:
        places = socket.getaddrinfo(self._address.host, self._address.port, type=socket.SOCK_DGRAM)
        family, kind, protocol, _, place = places[0]
        with socket.socket(family, kind, protocol) as outgoing:
            if any(len(message) > MAX_DATAGRAM for message in messages):
                raise OSError(errno.EMSGSIZE, "too large for a datagram")
            for message in messages:
                outgoing.sendto(message, place)


def _read_to_end(connection: socket.socket, until: float) -> None:
    """Raises TimeoutError if the other end is open at the moment `until` of the monotonic clock."""
    while (left_s := until - time.monotonic()) > 0:
        connection.settimeout(left_s)
        if not connection.recv(4096):
            return
    raise TimeoutError


def _has_unacknowledged(connection: socket.socket) -> bool:
    """Whether the other end's kernel has not all that was sent. False where the system does not
    tell."""
    if sys.platform != "linux":
        return False
    return fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4)) != bytes(4)


def syslog_message(event: JsonObject, *, host: str) -> bytes:
    """The event as one message, without framing; MSGID is our action."""
    metadata = cast(JsonObject, event["metadata"])
    priority = _FACILITY * 8 + _SEVERITIES[cast(int, event["severity_id"])]
    at = (_EPOCH + timedelta(milliseconds=cast(int, event["time"]))).isoformat(timespec="milliseconds")
    header = f"<{priority}>1 {at.replace('+00:00', 'Z')} {host} {_APP} - {_message_id(metadata['event_code'])} - "
    return header.encode() + _BOM + msgspec.json.encode(event)


def _message_id(action: object) -> str:
    return "".join(each for each in str(action) if "!" <= each <= "~")[:_MAX_MESSAGE_ID] or "-"

"""HTTP proxy for one started server, whose only network it is. Above: transports of MCP servers.
Below: the egress guard."""

import asyncio
import logging
import resource
import socket
from collections.abc import Callable
from functools import partial
from urllib.parse import urlsplit

import aiohappyeyeballs
from aiohttp.abc import AbstractResolver, ResolveResult

from infrastructure.http.egress import EgressBlockedError, EgressPolicy
from infrastructure.http.egress_resolver import GuardedResolver
from infrastructure.http.proxy_resolver import LookupsBusyError
from infrastructure.http.shared_bound import OrganizationBound

logger = logging.getLogger(__name__)

_MAX_CONNECTIONS = 64
_MAX_TOGETHER = 1024
_FILES_OF_ONE = 10
_ADDRESSES_OF_FAMILY = 2
_MAX_HEAD_BYTES = 32 * 1024
_PIECE_BYTES = 64 * 1024
_HEAD_S, _DIAL_S, _CLOSE_S = 30.0, 15.0, 30.0
_IDLE_S = 300.0
_ACCEPT_PAUSE_S = 0.5
_SECOND_ADDRESS_S = 0.25
_HTTP_PORT = 80
_MAX_HOST = 253
_LOGGED_REFUSALS = 20
_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_OF_ONE_HOP = frozenset({"host", "connection", "keep-alive", "te", "upgrade"})

Permits = Callable[[str, int], bool]
"""Whether a host and a port are permitted."""


def connections_together() -> int:
    """How many connections all proxies of this process may serve at the same time, by the files
    that it may open. One has 2 descriptors, and up to 5 while it is dialled."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(2, min(_MAX_TOGETHER, files // _FILES_OF_ONE)) if files > 0 else _MAX_TOGETHER


class _RefusedError(Exception):
    """Answered to the client with `reason`. `advice` is for logs and administrators."""

    def __init__(self, status: str, reason: str, *, advice: str | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.advice = advice or reason


class EgressProxy:
    """Rules:
    - Tunnels (CONNECT) and requests with an absolute `http` URL, to hosts and ports that `permits`
      has. What a tunnel carries is not read.
    - The egress guard checks each address that is really dialled: an allowed name does not lead
      into a private network.
    - A refusal answers 403 with the reason, and is reported to `on_refused`, the first ones of a
      process each.
    - At most 64 connections, and `bound` for those of other servers together with these; more wait.
      A peer that does not read is not read from. After `idle_s` without a byte in either direction
      a connection is closed.
    - A connection that fails does not end the others.
    """

    def __init__(
        self,
        *,
        permits: Permits,
        egress: EgressPolicy,
        on_refused: Callable[[str], None],
        bound: OrganizationBound,
        resolver: AbstractResolver,
        idle_s: float = _IDLE_S,
    ) -> None:
        self._permits = permits
        self._egress = egress
        self._on_refused = on_refused
        self._bound = bound
        self._resolver = resolver
        self._idle_s = idle_s
        self._refusals = 0
        self._has_failed = False

    async def serve(self, listening: socket.socket) -> None:
        """Serve until cancelled, which ends all connections."""
        free = asyncio.Semaphore(_MAX_CONNECTIONS)
        guard = GuardedResolver(self._egress, self._resolver)
        listening.setblocking(False)

        def release(connection: socket.socket, _: asyncio.Task[None]) -> None:
            """Also for a task that was cancelled before it began."""
            connection.close()
            self._bound.release()
            free.release()

        async with asyncio.TaskGroup() as connections:
            while True:
                await free.acquire()
                connection = await self._accepted(listening)
                try:
                    await self._bound.acquire()
                except BaseException:
                    connection.close()
                    raise
                task = connections.create_task(self._serve_one(connection, guard))
                task.add_done_callback(partial(release, connection))

    async def _accepted(self, listening: socket.socket) -> socket.socket:
        """The next connection, also after the process had no descriptor for one."""
        while True:
            try:
                connection, _ = await asyncio.get_running_loop().sock_accept(listening)
            except OSError as exc:
                self._failed("cannot accept a connection of an MCP server", exc)
                await asyncio.sleep(_ACCEPT_PAUSE_S)
            else:
                return connection

    async def _serve_one(self, connection: socket.socket, guard: GuardedResolver) -> None:
        writer: asyncio.StreamWriter | None = None
        try:
            reader, writer = await asyncio.open_connection(sock=connection, limit=_MAX_HEAD_BYTES)
            await self._answer(reader, writer, guard)
            await _sent(writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return  # the peer ended, is idle, or sends no HTTP
        except Exception as exc:  # noqa: BLE001 (one connection, and others are under way)
            self._failed("a connection of an MCP server failed", exc)
        finally:
            if writer is not None:
                writer.transport.abort()

    def _failed(self, message: str, failure: Exception) -> None:
        """Logged once: a server can cause failures without end."""
        if not self._has_failed:
            self._has_failed = True
            logger.error(message, exc_info=failure)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, guard: GuardedResolver) -> None:
        async with asyncio.timeout(_HEAD_S):
            head = await reader.readuntil(b"\r\n\r\n")
        try:
            host, port, request = _read(head)
            far_reader, far_writer = await self._dial(host, port, guard)
        except _RefusedError as refused:
            self._report(refused.advice)
            text = f"Dragoman refused the connection: {refused.reason}\n".encode()
            fields = f"content-type: text/plain\r\ncontent-length: {len(text)}\r\nconnection: close"
            writer.write(f"HTTP/1.1 {refused.status}\r\n{fields}\r\n\r\n".encode() + text)
            await writer.drain()
            return
        try:
            if request is None:
                writer.write(_ESTABLISHED)
            else:
                far_writer.write(request)
            async with asyncio.timeout(self._idle_s) as idle, asyncio.TaskGroup() as directions:
                directions.create_task(self._copy(reader, far_writer, idle))
                directions.create_task(self._copy(far_reader, writer, idle))
            await _sent(far_writer)
        finally:
            far_writer.transport.abort()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, idle: asyncio.Timeout) -> None:
        """Until the end of one direction, which its reader then sees."""
        try:
            while piece := await reader.read(_PIECE_BYTES):
                idle.reschedule(asyncio.get_running_loop().time() + self._idle_s)
                writer.write(piece)
                await writer.drain()
            writer.write_eof()
        except (OSError, RuntimeError):  # uvloop raises the second for a writer that the other direction closed
            writer.close()

    async def _dial(
        self, host: str, port: int, guard: GuardedResolver
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if not self._permits(host, port):
            raise _RefusedError("403 Forbidden", f"{host}:{port} is not in the server's allowlist (network_hosts).")
        try:
            async with asyncio.timeout(_DIAL_S):
                found = _few(await guard.resolve(host, port, socket.AF_UNSPEC))
                places = [(each["family"], socket.SOCK_STREAM, socket.IPPROTO_TCP, "", _place(each)) for each in found]
                dialled = await aiohappyeyeballs.start_connection(
                    places,
                    happy_eyeballs_delay=_SECOND_ADDRESS_S,
                    interleave=1,
                    socket_factory=guard.open_socket,
                )
                return await asyncio.open_connection(sock=dialled)
        except LookupsBusyError as busy:
            reason = "Too many names are being looked up at a time; try again."
            raise _RefusedError("503 Service Unavailable", reason) from busy
        except EgressBlockedError as blocked:
            raise _RefusedError("403 Forbidden", blocked.reason, advice=blocked.advice) from blocked
        except (OSError, UnicodeError) as exc:  # a timeout is the first, a label that is empty or too long the second
            raise _RefusedError("502 Bad Gateway", f"{host}:{port} cannot be reached.") from exc

    def _report(self, advice: str) -> None:
        self._refusals += 1
        if self._refusals < _LOGGED_REFUSALS:
            self._on_refused(advice)
        elif self._refusals == _LOGGED_REFUSALS:
            self._on_refused(f"{advice} Further refusals of this process are not logged.")


async def _sent(writer: asyncio.StreamWriter) -> None:
    """Close once all is sent. Raises OSError for a peer that does not read."""
    writer.close()
    async with asyncio.timeout(_CLOSE_S):
        await writer.wait_closed()


def _few(found: list[ResolveResult]) -> list[ResolveResult]:
    """The first addresses of each family: all are dialled side by side if none answers."""
    families = (socket.AF_INET6, socket.AF_INET)
    return [
        each for family in families for each in [one for one in found if one["family"] == family][:_ADDRESSES_OF_FAMILY]
    ]


def _read(head: bytes) -> tuple[str, int, bytes | None]:
    """Host, port, and the request to send there; None for a tunnel. Raises _RefusedError."""
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    method, _, rest = first.partition(" ")
    target, _, version = rest.partition(" ")
    is_tunnel = method == "CONNECT"
    if not version.startswith("HTTP/1."):
        raise _RefusedError("400 Bad Request", "A request is not HTTP/1.1.")
    try:
        parts = urlsplit(f"//{target}" if is_tunnel else target)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise _no_target() from None
    is_legal = host.isascii() and len(host) <= _MAX_HOST and all(each.isalnum() or each in ".-_:" for each in host)
    if not host or not is_legal or parts.scheme != ("" if is_tunnel else "http"):
        raise _no_target()
    if is_tunnel:
        if port is None:
            raise _no_target()
        return host, port, None
    place = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    fields = [line for line in lines if not _is_of_one_hop(line.partition(":")[0].strip().lower())]
    authority = parts.netloc.rpartition("@")[2]
    request = [f"{method} {place} HTTP/1.1", f"Host: {authority}", "Connection: close", *fields]
    return host, port or _HTTP_PORT, ("\r\n".join(request) + "\r\n\r\n").encode("latin-1")


def _no_target() -> _RefusedError:
    return _RefusedError("400 Bad Request", "A request is neither a tunnel to a host and port nor for an http URL.")


def _is_of_one_hop(name: str) -> bool:
    return name in _OF_ONE_HOP or name.startswith("proxy-")


def _place(result: ResolveResult) -> tuple[str, int] | tuple[str, int, int, int]:
    host, port = result["host"], result["port"]
    return (host, port, 0, 0) if result["family"] == socket.AF_INET6 else (host, port)

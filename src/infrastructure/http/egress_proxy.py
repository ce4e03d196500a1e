"""HTTP proxy for one started server, whose only network it is. Above: transports of MCP servers. Below: the egress guard."""

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from urllib.parse import urlsplit

import aiohappyeyeballs
import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from infrastructure.http.egress import EgressBlockedError, EgressPolicy
from infrastructure.http.egress_resolver import GuardedResolver

_MAX_CONNECTIONS = 64
_MAX_HEAD_BYTES = 32 * 1024
_PIECE_BYTES = 64 * 1024
_HEAD_S, _DIAL_S = 30.0, 15.0
_SECOND_ADDRESS_S = 0.25
_HTTP_PORT = 80
_MAX_HOST = 253
_LOGGED_REFUSALS = 20
_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_OF_ONE_HOP = frozenset({"host", "connection", "keep-alive", "te", "upgrade"})

Permits = Callable[[str, int], bool]
"""Whether a host and a port are permitted."""


class _RefusedError(Exception):
    """Answered to the client with `reason`. `advice` is for logs and administrators."""

    def __init__(self, status: str, reason: str, *, advice: str | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.advice = advice or reason


class EgressProxy:
    """Rules:
    - Tunnels (CONNECT) and requests with an absolute `http` URL, to hosts and ports that `permits` has. What a tunnel
      carries is not read.
    - The egress guard checks each address that is really dialled: an allowed name does not lead into a private network.
    - A refusal answers 403 with the reason, and is reported to `on_refused`, the first ones of a process each.
    - At most 64 connections; more wait. A peer that does not read is not read from.
    """

    def __init__(
        self,
        *,
        permits: Permits,
        egress: EgressPolicy,
        on_refused: Callable[[str], None],
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._permits = permits
        self._egress = egress
        self._on_refused = on_refused
        self._resolver = resolver
        self._refusals = 0

    async def serve(self, listening: socket.socket) -> None:
        """Serve until cancelled, which ends all connections."""
        loop = asyncio.get_running_loop()
        free = asyncio.Semaphore(_MAX_CONNECTIONS)
        guard = GuardedResolver(self._egress, self._resolver or aiohttp.DefaultResolver())
        listening.setblocking(False)
        try:
            async with asyncio.TaskGroup() as connections:
                while True:
                    await free.acquire()
                    connection, _ = await loop.sock_accept(listening)
                    reader, writer = await asyncio.open_connection(sock=connection, limit=_MAX_HEAD_BYTES)
                    task = connections.create_task(self._serve_one(reader, writer, guard))
                    task.add_done_callback(partial(_release, free, writer))
        finally:
            if self._resolver is None:
                await guard.close()

    async def _serve_one(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, guard: GuardedResolver
    ) -> None:
        try:
            await self._answer(reader, writer, guard)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return  # the peer ended, or sends no HTTP

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
            async with asyncio.TaskGroup() as directions:
                directions.create_task(_copy(reader, far_writer))
                directions.create_task(_copy(far_reader, writer))
        finally:
            far_writer.close()

    async def _dial(
        self, host: str, port: int, guard: GuardedResolver
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if not self._permits(host, port):
            raise _RefusedError("403 Forbidden", f"{host}:{port} is not in the server's allowlist (network_hosts).")
        try:
            async with asyncio.timeout(_DIAL_S):
                found = await guard.resolve(host, port, socket.AF_UNSPEC)
                places = [(each["family"], socket.SOCK_STREAM, socket.IPPROTO_TCP, "", _place(each)) for each in found]
                dialled = await aiohappyeyeballs.start_connection(
                    places,
                    happy_eyeballs_delay=_SECOND_ADDRESS_S,
                    interleave=1,
                    socket_factory=guard.open_socket,
                )
                return await asyncio.open_connection(sock=dialled)
        except EgressBlockedError as blocked:
            raise _RefusedError("403 Forbidden", blocked.reason, advice=blocked.advice) from blocked
        except (OSError, TimeoutError) as exc:
            raise _RefusedError("502 Bad Gateway", f"{host}:{port} cannot be reached.") from exc

    def _report(self, advice: str) -> None:
        self._refusals += 1
        if self._refusals < _LOGGED_REFUSALS:
            self._on_refused(advice)
        elif self._refusals == _LOGGED_REFUSALS:
            self._on_refused(f"{advice} Further refusals of this process are not logged.")


def _release(free: asyncio.Semaphore, writer: asyncio.StreamWriter, _: asyncio.Task[None]) -> None:
    """Also for a task that was cancelled before it began."""
    writer.close()
    free.release()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until the end of one direction, which its reader then sees."""
    try:
        while piece := await reader.read(_PIECE_BYTES):
            writer.write(piece)
            await writer.drain()
        writer.write_eof()
    except (OSError, RuntimeError):  # uvloop raises the second for a writer that the other direction closed
        writer.close()


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

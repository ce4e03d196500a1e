"""Requests to a container engine over its UNIX socket. Below: aiohttp, and a plain socket for the
connection that stops being HTTP (attach)."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from domain.json_value import JsonObject
from infrastructure.mcp.containers.engine import EngineError, EngineFault
from infrastructure.mcp.text import capped, clean

_TIMEOUT_S = 10.0
_MAX_SAID = 500
_MAX_LINE = 1024 * 1024
_MAX_HEAD = 16 * 1024
_ERRORS = 400
_ATTACH = (
    "POST {path}?stream=1&stdin=1&stdout=1&stderr=1 HTTP/1.1\r\n"
    "Host: engine\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 0\r\n\r\n"
)


class Refusal(Exception):
    """The engine's answer to a request that it refused; `said` is its own text, cleaned."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(status)
        self.status = status
        self.said = said

    def as_error(self) -> EngineError:
        detail = f"The container engine refused a request with status {self.status}; see the server's log."
        return EngineError(EngineFault.REFUSED, detail, said=self.said)


class EngineSocket:
    """Each request opens a connection: they are few, and nothing is to be closed. `find` looks for
    the socket. Methods raise Refusal, and EngineError UNREACHABLE."""

    def __init__(self, find: Callable[[], Path | None]) -> None:
        self._find = find

    @property
    def path(self) -> Path:
        found = self._find()
        if found is None:
            raise EngineError(EngineFault.UNREACHABLE, "The socket of the container engine is not there any more.")
        return found

    async def ping(self) -> Mapping[str, str]:
        """The headers in which the engine describes itself."""
        async with self._asked("GET", "/_ping") as response:
            return response.headers

    async def json(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None = None,
        body: JsonObject | None = None,
        *,
        timeout_s: float | None = _TIMEOUT_S,
    ) -> Any:
        """The answer; None for an empty one."""
        async with self._asked(method, path, params, body, timeout_s) as response:
            data = await response.read()
        try:
            return json.loads(data) if data.strip() else None
        except ValueError as exc:
            raise self._lost() from exc

    async def lines(
        self, method: str, path: str, params: Mapping[str, str], headers: Mapping[str, str]
    ) -> AsyncGenerator[JsonObject, None]:
        """The objects of an answer that has one a line, as they come."""
        async with self._asked(method, path, params, None, None, headers=headers) as response:
            async for line in response.content:
                if line.strip():
                    try:
                        yield json.loads(line)
                    except ValueError as exc:
                        raise self._lost() from exc

    async def attach(self, path: str) -> socket.socket:
        """The connection to a container's stdin and outputs, before it starts. The taker closes
        it."""
        loop = asyncio.get_running_loop()
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.setblocking(False)
            async with asyncio.timeout(_TIMEOUT_S):
                await loop.sock_connect(connection, str(self.path))
                await loop.sock_sendall(connection, _ATTACH.format(path=path).encode())
                head = b""
                while b"\r\n\r\n" not in head and len(head) < _MAX_HEAD:
                    part = await loop.sock_recv(connection, _MAX_HEAD)
                    if not part:
                        raise self._lost()
                    head += part
            # Nothing of the container can have come: it has not been started.
            status = head.split(b" ", 2)[1:2]
            if status != [b"101"] or not head.endswith(b"\r\n\r\n"):
                code = status[0].decode(errors="replace") if status else ""
                raise Refusal(int(code) if code.isascii() and code.isdecimal() else 500, "attach was refused")
        except BaseException as exc:
            connection.close()
            if isinstance(exc, OSError):  # a timeout is one
                raise self._lost() from exc
            raise
        return connection

    @asynccontextmanager
    async def _asked(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None = None,
        body: JsonObject | None = None,
        timeout_s: float | None = _TIMEOUT_S,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        session = aiohttp.ClientSession(
            connector=aiohttp.UnixConnector(path=str(self.path)),
            timeout=aiohttp.ClientTimeout(total=timeout_s, sock_connect=_TIMEOUT_S),
            read_bufsize=_MAX_LINE,
            trust_env=False,
        )
        url = f"http://engine{path}"
        try:
            async with session, session.request(method, url, params=params, json=body, headers=headers) as response:
                if response.status >= _ERRORS:
                    raise Refusal(response.status, _said(await response.read()))
                yield response
        except (aiohttp.ClientError, OSError, ValueError) as exc:  # a timeout is an OSError
            raise self._lost() from exc

    def _lost(self) -> EngineError:
        detail = f"The container engine at {self.path} does not answer. Is it running, and may Dragoman use its socket?"
        return EngineError(EngineFault.UNREACHABLE, detail)


def _said(data: bytes) -> str:
    try:
        message = json.loads(data)["message"]
    except (ValueError, KeyError, TypeError):
        message = data.decode(errors="replace")
    return capped(clean(str(message)), _MAX_SAID)

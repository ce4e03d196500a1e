"""What the service writes to a connection, and when."""

import asyncio
from typing import Any, cast

import uvicorn
from litestar.types import ASGIApp
from pytest_mock import MockerFixture
from uvicorn.server import ServerState

from interfaces.inbound import Inbound, InboundLimits
from tests.unit.interfaces.served_requests import App, Receive, Send, posted


class Waiting:
    """Starts its response, and goes on when it is let."""

    def __init__(self) -> None:
        self.let = asyncio.Event()

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """One request (ASGI)."""
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await self.let.wait()
        await send({"type": "http.response.body", "body": b"ok"})


class Written:
    """A connection whose writes are recorded."""

    def __init__(self, mocker: MockerFixture, app: object) -> None:
        inbound = Inbound(cast(ASGIApp, app), InboundLimits())
        config = uvicorn.Config(cast(Any, inbound), lifespan="off", log_config=None, date_header=False)
        config.load()
        self.transport = mocker.create_autospec(asyncio.Transport, instance=True)
        self.transport.get_extra_info.return_value = None
        self.transport.is_closing.return_value = False
        self.closed = asyncio.Event()
        self._writes: asyncio.Queue[bytes] = asyncio.Queue()
        self.transport.write.side_effect = lambda data: self._writes.put_nowait(bytes(data))
        self.transport.close.side_effect = self.closed.set
        self.protocol = cast(Any, inbound.protocol(app_state={}, config=config, server_state=ServerState()))
        self.protocol.connection_made(self.transport)

    async def write(self) -> bytes:
        """The next one."""
        async with asyncio.timeout(60):
            return await self._writes.get()

    def close(self) -> None:
        """The client leaves."""
        self.protocol.connection_lost(None)


async def test_the_head_and_the_body_of_a_response_are_one_write(mocker: MockerFixture) -> None:
    written = Written(mocker, App())

    written.protocol.data_received(posted(b"abc"))

    assert (await written.write()).endswith(b"\r\n\r\nPOST /mcp 3")
    written.close()


async def test_a_head_whose_body_is_not_there_yet_is_sent(mocker: MockerFixture) -> None:
    app = Waiting()
    written = Written(mocker, app)

    written.protocol.data_received(posted(b"abc"))
    assert (await written.write()).endswith(b"content-length: 2\r\n\r\n")

    app.let.set()
    assert await written.write() == b"ok"
    written.close()


async def test_a_connection_is_closed_after_the_response_was_written(mocker: MockerFixture) -> None:
    app = Waiting()
    app.let.set()
    written = Written(mocker, app)

    written.protocol.data_received(
        b"POST /mcp HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    )

    assert (await written.write()).endswith(b"connection: close\r\n\r\nok")
    async with asyncio.timeout(60):
        await written.closed.wait()
    written.close()

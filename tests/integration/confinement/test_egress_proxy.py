"""What servers with an allowlist do to their proxy holds up neither the service nor other
servers."""

import asyncio
import errno
import os
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult
from pytest_mock import MockerFixture

from infrastructure.http.egress import EgressPolicy
from infrastructure.http.egress_proxy import EgressProxy
from infrastructure.http.proxy_resolver import LookupsBusyError
from infrastructure.http.shared_bound import OrganizationBound, SharedBound
from infrastructure.mcp.transports.egress_link import EgressLink

pytestmark = pytest.mark.requirement("S1")

HERE = "127.0.0.1"
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


class Names(AbstractResolver):
    """Every name is this machine; looking `broken` up fails as nothing should."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        if host == "broken":
            raise ZeroDivisionError
        if host == "busy":
            raise LookupsBusyError
        if host == "a..example.com":
            host.encode("idna")
        return [ResolveResult(hostname=host, host=HERE, port=port, family=socket.AF_INET, proto=0, flags=0)]

    async def close(self) -> None:
        pass


class WithoutDescriptors(socket.socket):
    """Cannot accept the first connection at once."""

    failed = False

    def accept(self) -> tuple[socket.socket, object]:
        if not self.failed:
            self.failed = True
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


class Proxied:
    """A served proxy, and a target that says nothing and ends with its client."""

    def __init__(self, port: int, target: int) -> None:
        self._port = port
        self._target = target
        self.writers: list[asyncio.StreamWriter] = []

    async def ask(self, host: str = "allowed.example") -> asyncio.StreamReader:
        reader, writer = await asyncio.open_connection(HERE, self._port)
        self.writers.append(writer)
        writer.write(f"CONNECT {host}:{self._target} HTTP/1.1\r\n\r\n".encode())
        return reader

    async def tunnel(self) -> asyncio.StreamReader:
        reader = await self.ask()
        assert await reader.readexactly(len(ESTABLISHED)) == ESTABLISHED
        return reader


@asynccontextmanager
async def proxied(
    *, bound: OrganizationBound | None = None, idle_s: float = 60.0, kind: type[socket.socket] = socket.socket
) -> AsyncIterator[Proxied]:
    proxy = EgressProxy(
        permits=lambda host, port: True,
        egress=EgressPolicy(["127.0.0.0/8"]),
        on_refused=lambda reason: None,
        bound=bound or SharedBound(8).of("org_1"),
        resolver=Names(),
        idle_s=idle_s,
    )
    reached: list[asyncio.StreamWriter] = []

    async def wait_for_the_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append(writer)
        with suppress(OSError):
            await reader.read()
        writer.close()

    target = await asyncio.start_server(wait_for_the_end, HERE, 0)
    with kind() as listening:
        listening.bind((HERE, 0))
        listening.listen()
        serving = asyncio.create_task(proxy.serve(listening))
        made = Proxied(listening.getsockname()[1], target.sockets[0].getsockname()[1])
        try:
            yield made
        finally:
            serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving
            target.close()
            for writer in (*made.writers, *reached):
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()


async def test_a_server_keeps_its_network_when_the_process_had_no_descriptor_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with proxied(kind=WithoutDescriptors) as proxy:
        await proxy.tunnel()
    assert [record.exc_info is not None for record in caplog.records if "accept" in record.message] == [True]


@pytest.mark.parametrize(
    ("host", "status"), [("broken", b""), ("a..example.com", b"HTTP/1.1 502 "), ("busy", b"HTTP/1.1 503 ")]
)
async def test_a_connection_that_fails_ends_no_other(host: str, status: bytes) -> None:
    async with proxied() as proxy:
        first = await proxy.tunnel()
        assert (await (await proxy.ask(host)).read())[:13] == status
        await proxy.tunnel()
        assert not first.at_eof()


async def test_a_tunnel_without_traffic_is_closed() -> None:
    async with proxied(idle_s=0.05) as proxy:
        assert await (await proxy.tunnel()).read() == b""


async def test_servers_of_one_organization_leave_half_of_all_connections_to_others() -> None:
    bound = SharedBound(2)
    async with AsyncExitStack() as stack:
        first, second = [await stack.enter_async_context(proxied(bound=bound.of("org_1"))) for _ in range(2)]
        other = await stack.enter_async_context(proxied(bound=bound.of("org_2")))
        await first.tunnel()
        waiting = asyncio.create_task(second.tunnel())
        await other.tunnel()
        assert not waiting.done()
        first.writers[0].close()
        await waiting


async def test_an_end_of_a_servers_network_without_a_cause_is_logged(
    mocker: MockerFixture, caplog: pytest.LogCaptureFixture
) -> None:
    began = asyncio.Event()

    async def serve(listening: socket.socket) -> None:
        began.set()
        raise ZeroDivisionError

    proxy = mocker.create_autospec(EgressProxy, instance=True)
    proxy.serve.side_effect = serve
    link = EgressLink(proxy)
    with socket.socket() as listening, socket.socket(fileno=os.dup(link.fd)) as theirs:
        socket.send_fds(theirs, [b"."], [listening.fileno()])
        link.begin()
        await began.wait()
        await link.close()
    assert [record.levelname for record in caplog.records] == ["ERROR"]

"""What the tests of MCP connections are put together from: servers to register, ways to run one,
ways to use one."""

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn
from aiohttp.abc import AbstractResolver

from application.mcp.account_secrets import PersonSecretStore
from application.mcp.news import Listed
from application.mcp.ports import ConnectionScope, McpCall, McpReply
from application.system.shared_permits import SharedPermits
from domain.identity.identity_provider import IdentityProvider
from domain.ids import IdentityProviderId, McpServerId, OrganizationId, RunId, ThreadId
from domain.json_value import JsonValue
from domain.mcp.restarts import RestartLimit
from domain.mcp.server import Isolation, McpServer, McpServerConfig, McpServerKind
from infrastructure.http.egress import EgressPolicy
from infrastructure.http.proxies import DIRECT, Proxies
from infrastructure.mcp.catalogs.tool_changes import ToolsChanged
from infrastructure.mcp.connections.negotiation import Negotiate, negotiate_any
from infrastructure.mcp.connections.pool import SdkMcpConnections
from infrastructure.mcp.connections.server_record import StatusChanged
from infrastructure.mcp.known_secrets import KnownSecrets
from infrastructure.mcp.oauth.parts import OAuthParts
from infrastructure.mcp.pace import Paces
from infrastructure.mcp.secret_values import SecretReader, SecretValues
from infrastructure.mcp.transports.launch import Launch, launch_in_place
from infrastructure.mcp.transports.remote import Credentials, RemoteClient
from infrastructure.mcp.transports.server_contexts import ServerContexts
from infrastructure.mcp.transports.server_transports import Confine, Contain, Restored, ServerTransports
from infrastructure.runtime.system import SystemClock
from infrastructure.secrets.redaction import Redactor
from tests.builders import ORG, RUN, SERVER, THREAD, a_server
from tests.doubles.secrets import InMemorySecretStore
from tests.doubles.state import InMemoryState

SERVERS = Path(__file__).with_name("servers")
NODE_SERVERS = Path(__file__).parents[2] / "node" / "node_modules" / "@modelcontextprotocol"
EVERYTHING = str(NODE_SERVERS / "server-everything" / "dist" / "index.js")
ISOLATED_PYTHON = (sys.executable, "-I", "-S")

IN_RUN = ConnectionScope(organization_id=ORG, thread_id=THREAD, run_id=RUN)
PATIENCE_S = 60.0
LOOPBACK = EgressPolicy(["127.0.0.0/8"])
"""The servers of tests are on this machine."""


def scope(
    organization_id: OrganizationId = ORG, *, thread_id: ThreadId = THREAD, run_id: RunId | None = RUN
) -> ConnectionScope:
    return ConnectionScope(organization_id=organization_id, thread_id=thread_id, run_id=run_id)


def started(
    *command: str, id: McpServerId = SERVER, organization_id: OrganizationId = ORG, version: int = 1, **settings: Any
) -> McpServer:
    """A server that is a process of ours."""
    settings = {"slug": "started", "kind": McpServerKind.CUSTOM, "command": command[0], "args": command[1:], **settings}
    return a_server(id, organization_id=organization_id, version=version, config=McpServerConfig(**settings))


def plain_server(**settings: Any) -> McpServer:
    return started(*ISOLATED_PYTHON, str(SERVERS / "plain_server.py"), **settings)


def odd_server(*arguments: str, **settings: Any) -> McpServer:
    return started(*ISOLATED_PYTHON, str(SERVERS / "odd_server.py"), *arguments, **settings)


def remote(
    url: str, kind: McpServerKind = McpServerKind.HTTP, *, id: McpServerId = SERVER, **settings: Any
) -> McpServer:
    """A server at an address."""
    settings = {"slug": "remote", "kind": kind, "url": url, "isolation": Isolation.SHARED, **settings}
    return a_server(id, config=McpServerConfig(**settings))


def a_call(tool_name: str, timeout_s: float = PATIENCE_S, **arguments: JsonValue) -> McpCall:
    return McpCall(tool_name=tool_name, arguments=arguments, timeout_s=timeout_s)


def text_of(reply: McpReply) -> str:
    return "".join(block.text for block in reply.content)


@asynccontextmanager
async def sdk_connections(
    *,
    negotiate: Negotiate = negotiate_any,
    on_tools_changed: ToolsChanged | None = None,
    on_lost: Callable[[McpServer], None] | None = None,
    on_status: StatusChanged | None = None,
    on_listed: Listed | None = None,
    connect_timeout_s: float = PATIENCE_S,
    keep_alive_s: float = PATIENCE_S,
    max_processes: int = 100,
    permits: SharedPermits | None = None,
    restart_limit: RestartLimit | None = None,
    limits: Mapping[str, int] | None = None,
    secrets: SecretReader | None = None,
    person_secrets: PersonSecretStore | None = None,
    forget: Callable[[OrganizationId], None] | None = None,
    redactor: Redactor | None = None,
    egress: EgressPolicy = LOOPBACK,
    resolver: AbstractResolver | None = None,
    proxies: Proxies = DIRECT,
    oauth: OAuthParts | None = None,
    launch: Callable[[McpServer], Launch] = launch_in_place,
    restored: Restored | None = None,
    confine: Confine | None = None,
    contain: Contain | None = None,
    environment: Mapping[str, str] = os.environ,
    write_timeout_s: float = PATIENCE_S,
    paces: Paces | None = None,
) -> AsyncIterator[SdkMcpConnections]:
    """Connections as the service has them; afterwards no task is left."""
    before = asyncio.all_tasks()
    known = KnownSecrets(redactor or Redactor())
    values = SecretValues(
        secrets=secrets or InMemorySecretStore(InMemoryState()),
        known=known,
        person_secrets=person_secrets,
        forget=forget,
    )
    transports = ServerTransports(
        remote=RemoteClient(egress=egress, proxies=proxies, resolver=resolver),
        secrets=values,
        tls=ServerContexts(secrets=values, clock=SystemClock()),
        credentials=_no_oauth if oauth is None else oauth.credentials,
        environment=environment,
        launch=launch,
        restored=restored,
        confine=confine,
        contain=contain,
        limits=limits,
        write_timeout_s=write_timeout_s,
        paces=paces,
    )
    async with SdkMcpConnections(
        known_secrets=known,
        person_secrets=person_secrets,
        transports=transports,
        clock=SystemClock(),
        client_version="0",
        negotiate=negotiate,
        on_tools_changed=on_tools_changed,
        on_lost=on_lost,
        on_status=on_status,
        on_listed=on_listed,
        connect_timeout_s=connect_timeout_s,
        close_timeout_s=PATIENCE_S,
        keep_alive_s=keep_alive_s,
        max_processes=max_processes,
        permits=permits,
        restart_limit=restart_limit,
    ) as connections:
        yield connections
    # By name: servers that run in this event loop have tasks of their own.
    assert not [task for task in asyncio.all_tasks() - before if task.get_name().startswith("mcp-")]


async def no_provider(provider_id: IdentityProviderId) -> IdentityProvider | None:
    """No identity provider is registered."""
    return None


def _no_oauth(server: McpServer) -> Credentials:
    raise AssertionError(f"{server.config.slug} needs OAuth, and the test gives none")


async def until(condition: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
    """Waits for something outside this event loop that nobody announces to it."""
    async with asyncio.timeout(patience_s):
        while not condition():  # noqa: ASYNC110 (processes set no events)
            await asyncio.sleep(0.01)


def time_passes(seconds: float) -> None:
    """The event loop's clock goes on by so much at once. Deadlines end then, and not before a slow
    machine has come to what the test is about."""
    loop = asyncio.get_running_loop()
    before = loop.time
    loop.time = lambda: before() + seconds  # type: ignore[method-assign]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@asynccontextmanager
async def serving(app: Any, port: int = 0, **options: Any) -> AsyncIterator[str]:
    """An ASGI application in this event loop, on a port of its own unless one is given; its address
    without a path. `options` are further ones of uvicorn, such as those of TLS."""
    listener = socket.create_server(("127.0.0.1", port))
    config = uvicorn.Config(app, log_level="critical", ws="none", timeout_graceful_shutdown=1, **options)
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await until(lambda: server.started or task.done())
        scheme = "https" if config.is_ssl else "http"
        yield f"{scheme}://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
        listener.close()


def descendants(pid: int | None = None) -> set[int]:
    """All processes below this one (proc(5), /proc/pid/task/tid/children)."""
    found: set[int] = set()
    for children in Path(f"/proc/{pid or os.getpid()}/task").glob("*/children"):
        try:
            direct = [int(child) for child in children.read_text().split()]
        except OSError:  # gone meanwhile
            continue
        for child in direct:
            found |= {child} | descendants(child)
    return found


@asynccontextmanager
async def everything(mode: str, port: int | None = None) -> AsyncIterator[str]:
    """The npm server-everything in its own process; its address without a path. It says that it
    listens: that a port accepts a connection does not tell whose it is. Without `port`, another one
    is tried where the free one was taken meanwhile."""
    process, chosen = await listening(mode, port or free_port())
    for _ in range(0 if port else 3):
        if process.poll() is None:
            break
        process, chosen = await listening(mode, free_port())
    assert process.poll() is None, "server-everything does not start; run `npm ci` in tests/node"
    try:
        yield f"http://127.0.0.1:{chosen}"
    finally:
        process.kill()
        process.wait()


async def listening(mode: str, port: int) -> tuple["subprocess.Popen[bytes]", int]:
    """A server-everything that listens on the port, or has ended."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(  # noqa: ASYNC220 (a spawn is short)
            ["node", EVERYTHING, mode],
            env={**os.environ, "PORT": str(port)},
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
        said = f"on port {port}\n".encode()
        try:
            await until(lambda: process.poll() is not None or said in os.pread(log.fileno(), 4_096, 0))
        except BaseException:
            process.kill()
            process.wait()
            raise
    return process, port


def accepts(port: int) -> bool:
    """Whether something listens there."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


Answer = bytes | Iterator[bytes] | None
Respond = Callable[[bytes], Awaitable[Answer]]


@asynccontextmanager
async def answering(respond: Respond) -> AsyncIterator[str]:
    """A server that reads one request per connection and writes back what `respond` makes of it,
    nothing if None, and an iterator piece by piece as it is read; its address without a path."""
    unfinished: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        unfinished.add(writer)
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            (int(line.split(b":")[1]) for line in head.splitlines() if line.lower().startswith(b"content-length")), 0
        )
        answer = await respond(head + await reader.readexactly(length))
        if answer is not None:
            for piece in [answer] if isinstance(answer, bytes) else answer:
                writer.write(piece)
                await writer.drain()
            writer.close()
            unfinished.discard(writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for writer in unfinished:
            writer.close()


def http(status: str, content_type: str, body: bytes, *headers: str) -> bytes:
    """A complete HTTP reply."""
    lines = (f"HTTP/1.1 {status}", f"content-type: {content_type}", f"content-length: {len(body)}", "connection: close")
    return "\r\n".join((*lines, *headers, "", "")).encode() + body

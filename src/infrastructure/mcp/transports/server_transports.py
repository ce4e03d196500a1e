"""Creates the transport for a connection, by kind of server."""

import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Protocol

from application.mcp.ports import McpFailure, McpFailureKind
from domain.mcp.auth import ApiKeyAuth, BearerAuth, OAuthSettings
from domain.mcp.network import HostAllowlist
from domain.mcp.server import McpServer, McpServerKind
from domain.secrets.secret import external_reference
from infrastructure.http.egress import EgressPolicy
from infrastructure.http.egress_proxy import EgressProxy, connections_together
from infrastructure.http.proxy_resolver import LOOKUPS_TOGETHER, ProxyResolver
from infrastructure.http.shared_bound import SharedBound
from infrastructure.mcp.faults import (
    UNREAD_INPUT,
    TransportFailedError,
    TransportFault,
    connect_failure,
    exit_detail,
    stderr_tail,
)
from infrastructure.mcp.pace import CONNECTION, PROCESS, Pace, Paces
from infrastructure.mcp.secret_values import SecretValues
from infrastructure.mcp.transports.a2a_agent import IsTrusted
from infrastructure.mcp.transports.a2a_transport import A2aTransport
from infrastructure.mcp.transports.egress_link import start_linked
from infrastructure.mcp.transports.launch import Confined, Launch, launch_in_place
from infrastructure.mcp.transports.legacy_sse import LegacySseTransport
from infrastructure.mcp.transports.message_sink import MessageSink
from infrastructure.mcp.transports.process_limits import DEFAULT_PROCESS_LIMITS, parse_process_limits
from infrastructure.mcp.transports.remote import Credentials, Endpoint, RemoteClient
from infrastructure.mcp.transports.rotated_headers import RotatedHeaders
from infrastructure.mcp.transports.server_contexts import ServerContexts
from infrastructure.mcp.transports.started_server import StartServer
from infrastructure.mcp.transports.stderr_log import CopyingLog, StderrLog
from infrastructure.mcp.transports.stdio import DEFAULT_WRITE_TIMEOUT_S, StdioTransport
from infrastructure.mcp.transports.stdio_pipes import MessageReader, MessageWriter
from infrastructure.mcp.transports.stdio_process import StdioCommand, start_process
from infrastructure.mcp.transports.streamable_http import StreamableHttpTransport

logger = logging.getLogger(__name__)


class ServerTransport(Protocol):
    """One life of a connection, entered and left by its owner task. Entering may raise
    TransportFailedError, OSError, ValueError; leaving is bounded, and completes under cancellation.
    """

    disconnect_cancels: bool

    async def __aenter__(self) -> tuple[MessageReader, MessageSink | MessageWriter]: ...

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

    def describe_end(self) -> str | None:
        """How the connection ended, as a sentence; None before the end, or if unknown."""
        ...

    def describe_noise(self) -> str | None:
        """Output of the server besides MCP, as a sentence, if any."""
        ...

    def stderr(self) -> str:
        """The last lines of the error output, for the operator."""
        ...


class OpenTransport(Protocol):
    """Creates the transport for a new connection; `log` outlives it."""

    def __call__(self, server: McpServer, log: StderrLog) -> "LateTransport":
        """Raises McpFailure NOT_CONNECTED for an unusable configuration, NOT_INSTALLED."""
        ...

    async def close(self) -> None:
        """Release shared resources, after the last transport."""
        ...


class Restored(Protocol):
    """Files of installed servers that this machine lacks."""

    async def ready(self, server: McpServer) -> None:
        """Return once they are here. Raises McpFailure NOT_CONNECTED, NOT_INSTALLED."""
        ...

    async def close(self) -> None: ...


Confine = Callable[[McpServer, Launch], Awaitable[Confined]]
Contain = Callable[[McpServer, Launch, Mapping[str, str], StderrLog], StartServer]
CredentialsFor = Callable[[McpServer], Credentials]


class ServerTransports:
    """Transports by kind of server.

    - `environment` is Dragoman's own; a started server inherits a few names of it.
    - `limits` are its resource limits, `launch` its start command, and `confine` says what it may
      use. `contain` starts servers of kind oci; `egress` guards the hosts of one that has an
      allowlist.
    - `is_trusted_card` checks cards of A2A agents.
    - `restored` has the files of a server that was installed on another machine.
    - A started server that does not read for `write_timeout_s`, or its longer call timeout, is
      stopped.
    """

    def __init__(
        self,
        *,
        remote: RemoteClient,
        secrets: SecretValues,
        credentials: CredentialsFor,
        tls: ServerContexts,
        environment: Mapping[str, str],
        launch: Callable[[McpServer], Launch] = launch_in_place,
        restored: Restored | None = None,
        confine: Confine | None = None,
        contain: Contain | None = None,
        egress: EgressPolicy | None = None,
        working_directory: Path | None = None,
        limits: Mapping[str, int] | None = None,
        write_timeout_s: float = DEFAULT_WRITE_TIMEOUT_S,
        paces: Paces | None = None,
        is_trusted_card: IsTrusted | None = None,
    ) -> None:
        self._write_timeout_s = write_timeout_s
        self._is_trusted_card = is_trusted_card
        self._remote = remote
        self._secrets = secrets
        self._credentials = credentials
        self._tls = tls
        self._environment = environment
        self._launch = launch
        self._restored = restored
        self._confine = confine
        self._contain = contain
        self._egress = egress or EgressPolicy()
        self._paces = paces or Paces()
        self._proxied = SharedBound(connections_together())
        self._lookups = SharedBound(LOOKUPS_TOGETHER)
        self._working_directory = working_directory
        self._limits = parse_process_limits(DEFAULT_PROCESS_LIMITS) if limits is None else limits

    async def close(self) -> None:
        await self._remote.close()
        if self._restored is not None:
            await self._restored.close()

    def __call__(self, server: McpServer, log: StderrLog) -> "LateTransport":
        config = server.config
        pace = self._paces.of(server.organization_id, server.tested_id or server.id)
        if config.kind.is_remote:
            cancels = config.kind is not McpServerKind.SSE
            return LateTransport(lambda: self._reached(server, pace), pace, disconnect_cancels=cancels)
        launch: Launch | None = None
        try:
            launch = self._launch(server)
        except McpFailure as failure:
            is_elsewhere = failure.kind is McpFailureKind.NOT_INSTALLED and server.installation is not None
            if self._restored is None or not is_elsewhere:
                raise
        return LateTransport(
            lambda: self._started(server, launch, log, pace),
            pace,
            disconnect_cancels=StdioServerTransport.disconnect_cancels,
        )

    async def _reached(self, server: McpServer, pace: Pace) -> ServerTransport:
        config = server.config
        await pace.wait_to_work()
        pace.charge_work(CONNECTION)
        assert config.url is not None  # validated by the configuration
        headers = await self._headers(server)
        credentials: Credentials | None = None
        if isinstance(config.auth, OAuthSettings):
            credentials = self._credentials(server)
        elif any(external_reference(name) is not None for name in config.secret_names):
            credentials = RotatedHeaders(
                headers, read=lambda: self._headers(server), forget=lambda: self._secrets.forget(server)
            )
        url = await self._secrets.url(server, config.url)
        tls = await self._tls.of(server)
        endpoint = Endpoint(self._remote, url, headers, config.max_response_bytes, credentials, tls=tls)
        if config.kind is McpServerKind.A2A:
            return A2aTransport(endpoint, url, pace, self._is_trusted_card)
        transport = LegacySseTransport if config.kind is McpServerKind.SSE else StreamableHttpTransport
        return transport(endpoint, pace)

    async def _headers(self, server: McpServer) -> dict[str, str]:
        """The headers of the configuration, and of a token or key."""
        headers = await self._secrets.headers(server, server.config.headers)
        match server.config.auth:
            case BearerAuth(token=token):
                value = await self._secrets.header(server, "auth.token", token)
                headers["authorization"] = f"Bearer {value}"
            case ApiKeyAuth(header=name, value=key):
                headers[name] = await self._secrets.header(server, "auth.value", key)
            case _:
                pass  # OAuth, which has its own credentials
        return headers

    async def _started(self, server: McpServer, launch: Launch | None, log: StderrLog, pace: Pace) -> ServerTransport:
        config = server.config
        await pace.wait_to_work()
        pace.charge_work(PROCESS)
        if launch is None:
            assert self._restored is not None  # else there is a launch
            await self._restored.ready(server)
            launch = self._launch(server)
        env = await self._secrets.values(server, "env", config.env)
        if config.kind is McpServerKind.OCI:
            assert self._contain is not None  # the container of a service has it
            start = self._contain(server, launch, env, log)
        else:
            start = await self._process(server, launch, env, log)

        def redact(text: str) -> str:
            return self._secrets.redact(server, text)

        write_timeout_s = max(self._write_timeout_s, config.timeout_s)  # a server may not read during a call
        return StdioServerTransport(
            start, log, config.max_response_bytes, redact, write_timeout_s=write_timeout_s, pace=pace
        )

    async def _process(self, server: McpServer, launch: Launch, env: Mapping[str, str], log: StderrLog) -> StartServer:
        confined = Confined() if self._confine is None else await self._confine(server, launch)
        env = {**confined.environment, **env}
        if launch.path_entries and "PATH" not in env:
            inherited = self._environment.get("PATH", os.defpath)
            env = {**env, "PATH": os.pathsep.join([*map(str, launch.path_entries), inherited])}
        try:
            command = StdioCommand(
                command=launch.command,
                args=launch.args,
                env=env,
                cwd=launch.cwd or self._working_directory,
                limits=self._limits,
                confinement=confined.options,
            )
        except ValueError as exc:
            raise connect_failure("The server's command, arguments or environment are not valid.") from exc
        if confined.hosts is None:
            return start_process(command, self._environment)
        return start_linked(command, self._environment, self._proxy(server, confined.hosts, log))

    def _proxy(self, server: McpServer, hosts: HostAllowlist, log: StderrLog) -> EgressProxy:
        ids = {"organization_id": server.organization_id, "server_id": server.tested_id or server.id}

        def refused(reason: str) -> None:
            logger.warning("connection of an MCP server refused: %s", reason, extra=ids)
            log.note(f"connection refused: {reason}")

        return EgressProxy(
            permits=hosts.permits,
            egress=self._egress,
            on_refused=refused,
            bound=self._proxied.of(server.organization_id),
            resolver=ProxyResolver(self._lookups.of(server.organization_id)),
        )


class LateTransport:
    """A transport created on entering, once it is the server's turn and its secrets are read."""

    def __init__(self, make: Callable[[], Awaitable[ServerTransport]], pace: Pace, *, disconnect_cancels: bool) -> None:
        self._make = make
        self.pace = pace
        self._made: ServerTransport | None = None
        self.disconnect_cancels = disconnect_cancels

    async def __aenter__(self) -> tuple[MessageReader, MessageSink | MessageWriter]:
        try:
            self._made = await self._make()
        except McpFailure as failure:
            raise TransportFailedError(TransportFault(kind=failure.kind, detail=failure.detail)) from failure
        return await self._made.__aenter__()

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._made is not None:
            await self._made.__aexit__(exc_type, exc, traceback)

    @property
    def turn_in_s(self) -> float:
        """Seconds until the server's turn to be connected; 0 if that is not waited for."""
        if isinstance(self._made, LateTransport):
            return self._made.turn_in_s
        return self.pace.work_delay_s if self._made is None else 0.0

    def describe_end(self) -> str | None:
        return self._made.describe_end() if self._made is not None else None

    def describe_noise(self) -> str | None:
        return self._made.describe_noise() if self._made is not None else None

    def stderr(self) -> str:
        return self._made.stderr() if self._made is not None else ""


class StdioServerTransport:
    """A started server. Its error output goes to its own log, for failures, and to the server's
    log, which outlives it."""

    disconnect_cancels = False

    def __init__(
        self,
        start: StartServer,
        log: StderrLog,
        max_line_bytes: int,
        redact: Callable[[str], str],
        *,
        write_timeout_s: float,
        pace: Pace,
    ) -> None:
        self._log = CopyingLog(log)
        self._redact = redact
        self._transport = StdioTransport(
            start,
            log=self._log,
            max_line_bytes=max_line_bytes,
            write_timeout_s=write_timeout_s,
            pace=pace,
        )

    async def __aenter__(self) -> tuple[MessageReader, MessageWriter]:
        return await self._transport.__aenter__()

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self._transport.__aexit__(exc_type, exc, traceback)
        finally:
            self._log.finish()

    def describe_end(self) -> str | None:
        if self._transport.does_not_read:
            return UNREAD_INPUT
        status, description = self._transport.exit_status, self._transport.describe_exit()
        if status is None or description is None:
            return None
        return exit_detail(status, description, self._log.text())

    def describe_noise(self) -> str | None:
        lines = self._transport.unreadable_lines
        return f"Lines of its standard output that are not MCP messages: {lines}." if lines else None

    def stderr(self) -> str:
        """The last lines of this process, without secrets."""
        return self._redact(stderr_tail(self._log.text()))

"""Ports of the MCP slice: stored servers and catalogs, and live connections to servers."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from application.mcp.caller_relay import CallerRelay
from application.mcp.log_messages import LogTap
from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.ids import GatewaySessionId, McpServerId, OrganizationId, RunId, ThreadId
from domain.json_value import JsonObject, JsonValue
from domain.mcp.catalog import McpCatalog, McpToolDefinition
from domain.mcp.client_request import ClientRequest
from domain.mcp.elicitation import Elicitation
from domain.mcp.installation import Installation
from domain.mcp.server import McpServer
from domain.threads.message import ImageContent


class McpServerStore(Protocol):
    """Registered servers and the newest catalog of each; env and headers are encrypted at rest by the adapter."""

    async def add(self, server: McpServer, audit: AuditEvent) -> None:
        """Store a new server. Raises CONFLICT `mcp_server_slug_taken`."""
        ...

    async def save(self, server: McpServer, *, expected_version: int, audit: AuditEvent) -> None:
        """Store a change. Raises NOT_FOUND, PRECONDITION `version_conflict`, CONFLICT `mcp_server_slug_taken`."""
        ...

    async def get(self, organization_id: OrganizationId, id_or_slug: str) -> McpServer | None:
        """By id (`mcp_…`) or slug."""
        ...

    async def page(self, organization_id: OrganizationId, request: PageRequest) -> Page[McpServer]:
        """Servers, newest first."""
        ...

    async def is_empty(self) -> bool:
        """Whether no organization has a server."""
        ...

    async def delete(self, organization_id: OrganizationId, server_id: McpServerId, audit: AuditEvent) -> bool:
        """Remove the server and its catalog. False if there is none."""
        ...


class McpCatalogStore(Protocol):
    """The last good catalog of each server, with what is approved of it."""

    async def load(self, organization_id: OrganizationId, server_id: McpServerId) -> McpCatalog | None:
        """The stored snapshot, or None if the server was never listed."""
        ...

    async def save(
        self, organization_id: OrganizationId, catalog: McpCatalog, audit: tuple[AuditEvent, ...] = ()
    ) -> bool:
        """Replace the snapshot of revision `catalog.revision` (0: there is none yet) by this one, which becomes the next
        revision. False if another one was stored meanwhile; then nothing is. One of a server that is not (or no longer)
        there is dropped, without its audit entries."""
        ...

    async def approve(
        self,
        organization_id: OrganizationId,
        server_id: McpServerId,
        definition: McpToolDefinition,
        audit: AuditEvent,
    ) -> bool:
        """Take the tool out of quarantine: the definition becomes the approved one. False, and nothing is stored, if the
        tool is not in quarantine with just this definition."""
        ...


class ContentKind(StrEnum):
    """Kinds of content block in a tool result (MCP schema, ContentBlock)."""

    TEXT = "text"
    IMAGE = "image"
    AUDIO = "audio"
    RESOURCE = "resource"
    RESOURCE_LINK = "resource_link"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentBlock:
    """One block of a tool's answer. `text` is the text (of a text block or embedded text resource) or a description
    of what
    cannot be shown (`audio/wav, 12 KiB`; `name (uri)`); `image` is set for image blocks."""

    kind: ContentKind
    text: str
    image: ImageContent | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class McpInputRequired:
    """A server answers a call with questions, or asks only to be called again with `request_state`, which is opaque.
    `requests` is all of what it asks for that a client may be passed, under its own names; `questions` are those of them that
    people answer, and `unsupported` names what else it asks for (sampling, roots). `ended`: it did not wait, and has answered the call without
    the input, so that calling it again is a new call."""

    questions: tuple[Elicitation, ...] = ()
    request_state: str | None = None
    unsupported: tuple[str, ...] = ()
    ended: bool = False
    requests: tuple[ClientRequest, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class McpReply:
    """What a server answered to `tools/call`. `structured` is None when there is no `structuredContent`; `input_required` is
    there when the call is not finished before it is sent again with that. `raw` is the result as it came, for those who pass
    it on."""

    is_error: bool
    content: tuple[ContentBlock, ...]
    structured: JsonValue = None
    input_required: McpInputRequired | None = None
    raw: Mapping[str, object] | None = field(default=None, compare=False, repr=False)


class McpFailureKind(StrEnum):
    """Why a call or a connection did not get an answer."""

    SERVER_ERROR = "server_error"
    """The server answered with a JSON-RPC error: `detail` is its message, `rpc_code` its code."""
    TIMEOUT = "timeout"
    NOT_CONNECTED = "not_connected"
    """The connection cannot be opened; nothing was sent."""
    CONNECTION_LOST = "connection_lost"
    """The connection broke while the call was in flight: it may have taken effect."""
    TOO_LARGE = "too_large"
    """The reply is larger than allowed: `detail` says its size and the limit."""
    INVALID_REPLY = "invalid_reply"
    """The server's answer is not valid MCP."""
    NEEDS_AUTH = "needs_auth"
    """The server wants (other) credentials; nothing was done."""
    BUSY = "busy"
    """Too many calls at one time, or in too short a time: `detail` says which; nothing was sent."""
    DISABLED = "disabled"
    NOT_INSTALLED = "not_installed"
    """The server has to be installed first; nothing was sent."""
    DEFINITION_CHANGED = "definition_changed"
    """The server describes the tool otherwise than the caller knows it; nothing was sent."""


class McpFailure(Exception):
    """A call, a discovery or a connection that failed.

    `detail` is safe to show: the server's own words for SERVER_ERROR (cleaned, capped by the use case), else a fixed
    sentence of ours; where that speaks to the operator, `for_model` is what models are told in its place. `stderr` is the tail of a started server's error output, for the operator only. `retry_after_s` is
    set where it is known that nothing will be sent to the server before. `required` are capabilities, as the protocol has them,
    without which the server does not make the call.
    """

    def __init__(
        self,
        kind: McpFailureKind,
        detail: str,
        *,
        rpc_code: int | None = None,
        stderr: str = "",
        retry_after_s: float | None = None,
        for_model: str | None = None,
        required: JsonObject | None = None,
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.rpc_code = rpc_code
        self.stderr = stderr
        self.retry_after_s = retry_after_s
        self.for_model = for_model
        self.required = required


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionScope:
    """On whose behalf a connection is used: of a run, or of a gateway session. The server's isolation decides which parts
    tell connections apart."""

    organization_id: OrganizationId
    thread_id: ThreadId | None = None
    run_id: RunId | None = None
    gateway_session_id: GatewaySessionId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class McpProgress:
    """A progress notification (MCP utilities/progress). `total` and `message` are the server's, if any."""

    progress: float
    total: float | None = None
    message: str | None = None


ProgressCallback = Callable[[McpProgress], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class McpCall:
    """A tool call to send. `timeout_s` covers waiting for a place, connecting, and the answer.
    `meta` goes into the request's `_meta` (idempotency key, trace context). `definition` is the tool as the caller knows
    it: a server that lists it otherwise on the connection used is not called. `accepts_input` says that somebody can be
    asked; a call that asked before goes again with the answers (`input_responses`) and the `request_state` it gave. With a
    `relay`, that is who is asked: a server of the older generations waits for the answers. `logs` says who wants to hear what
    the server logs about it."""

    tool_name: str
    arguments: JsonObject
    timeout_s: float
    output_schema: JsonObject | None = None
    definition: McpToolDefinition | None = None
    meta: dict[str, str] | None = None
    accepts_input: bool = False
    input_responses: Mapping[str, JsonObject] | None = None
    request_state: str | None = None
    logs: LogTap | None = field(default=None, compare=False, repr=False)
    relay: CallerRelay | None = None


class ServerState(StrEnum):
    """State of a server as this process sees it; values are part of the public contract."""

    NOT_INSTALLED = "not_installed"
    INSTALLING = "installing"
    DISCONNECTED = "disconnected"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    UNHEALTHY = "unhealthy"
    NEEDS_AUTH = "needs_auth"
    DISABLED = "disabled"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallProgress:
    """How far an installation is: what is being done, and how much of the whole is done (0 to 100, never falling)."""

    step: str
    percent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStatus:
    """How a server stands in another process on the same database."""

    name: str
    state: ServerState
    since: datetime
    last_error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """`since` is when the state began; `last_error` is safe to show; `protocol_version` the negotiated one while
    connected; `install` is there while it is being installed; `processes` are the others that have to do with it."""

    state: ServerState
    since: datetime
    last_error: str | None = None
    protocol_version: str | None = None
    tool_count: int | None = None
    installed_version: str | None = None
    installed_at: datetime | None = None
    install: InstallProgress | None = None
    processes: tuple[ProcessStatus, ...] = ()


class McpConnections(Protocol):
    """Live connections to servers: opened at the first call, owned and closed by the adapter."""

    async def call_tool(
        self, server: McpServer, scope: ConnectionScope, call: McpCall, on_progress: ProgressCallback | None = None
    ) -> McpReply:
        """Send one call and wait for its answer. Raises McpFailure. Cancelling the wait cancels the call by
        protocol."""
        ...

    async def discover(self, server: McpServer, scope: ConnectionScope, *, timeout_s: float) -> McpCatalog:
        """Connect if needed and list all tools (all pages). Raises McpFailure."""
        ...

    async def release(self, scope: ConnectionScope) -> None:
        """The run (or thread) of `scope` is over: close the connections that were its own. Never raises."""
        ...

    def status(self, server: McpServer) -> ServerStatus:
        """The state in this process."""
        ...

    def logs(self, server: McpServer) -> str:
        """The bounded tail of the error output of a started server."""
        ...

    def forgive(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        """Somebody asks for the server, or found it to work: what held back calls and attempts to connect to it after
        its failures is over. Never raises."""
        ...

    async def forget(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        """The server was changed or removed: close its connections once their calls are done. Never raises."""
        ...


class McpInstallFailureKind(StrEnum):
    """Why an installation came to nothing."""

    PACKAGE_NOT_FOUND = "package_not_found"
    VERSION_NOT_FOUND = "version_not_found"
    REQUIREMENTS_CONFLICT = "requirements_conflict"
    """Nothing satisfies all that the package and the requirements beside it ask for."""
    REGISTRY_UNREACHABLE = "registry_unreachable"
    REGISTRY_REFUSED = "registry_refused"
    RUNTIME_MISSING = "runtime_missing"
    """There is no Node.js, no npm, or no way to make a Python environment."""
    COMMAND_MISSING = "command_missing"
    """What was installed has no command to start, or several and none is chosen."""
    SOURCE_UNUSABLE = "source_unusable"
    """The file or directory to install from is not there, too large, or may not be copied."""
    DISK_FULL = "disk_full"
    TIMEOUT = "timeout"
    CHANGED = "changed"
    """The server was changed or removed meanwhile."""
    CANCELLED = "cancelled"
    FAILED = "failed"
    """The installer failed in a way of its own: the server's log has its words."""


class McpInstallFailure(Exception):
    """An installation that came to nothing, and left nothing. `detail` is a sentence that is safe to show."""

    def __init__(self, kind: McpInstallFailureKind, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail


InstallProgressCallback = Callable[[InstallProgress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledServer:
    """A complete installation found on this machine, and whose it is."""

    organization_id: OrganizationId
    server_id: McpServerId
    location: str


class McpInstaller(Protocol):
    """Servers installed on this machine: complete or not there at all."""

    async def install(self, server: McpServer, on_progress: InstallProgressCallback) -> Installation:
        """Install what the configuration names. Raises McpInstallFailure. Failing or cancelled, it leaves nothing."""
        ...

    async def uninstall(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        """Remove every installation of the server. Never raises for one that has none."""
        ...

    def has(self, installation: Installation) -> bool:
        """Whether its files are on this machine."""
        ...

    def log(self, server: McpServer) -> str:
        """What the newest installation printed, bounded; empty if there was none."""
        ...

    async def tidy(self) -> tuple[InstalledServer, ...]:
        """What is installed on this machine, after what interrupted installations left was removed. Only before the
        first `install`."""
        ...

    async def remove(self, location: str) -> None:
        """Remove one installation."""
        ...

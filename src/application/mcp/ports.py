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
from domain.ids import GatewaySessionId, McpServerId, OrganizationId, RunId, ThreadId, UserId
from domain.json_value import JsonObject, JsonValue
from domain.mcp.catalog import McpCatalog, McpToolDefinition, Rejection
from domain.mcp.client_request import ClientRequest
from domain.mcp.elicitation import Elicitation
from domain.mcp.server import McpServer
from domain.threads.message import FileContent, ImageContent


class McpServerStore(Protocol):
    """Registered servers and their newest catalogs. Adapters encrypt env and headers at rest."""

    async def add(self, server: McpServer, audit: AuditEvent) -> None:
        """Raises: CONFLICT `mcp_server_slug_taken`, `team_gone` without a group of the name of its
        team."""

    async def save(self, server: McpServer, *, expected_version: int, audit: AuditEvent) -> None:
        """Raises: NOT_FOUND, PRECONDITION `version_conflict`, CONFLICT as `add`, for what
        changes."""

    async def get(self, organization_id: OrganizationId, id_or_slug: str) -> McpServer | None:
        """By id (`mcp_…`) or slug."""

    async def page(self, organization_id: OrganizationId, request: PageRequest) -> Page[McpServer]:
        """Newest first."""

    async def is_empty(self) -> bool:
        """Whether no organization has a server."""

    async def delete(self, organization_id: OrganizationId, server_id: McpServerId, audit: AuditEvent) -> bool:
        """Remove the server and its catalog. False if there is none."""


class McpCatalogStore(Protocol):
    """The last valid catalog of each server, with its approvals."""

    async def load(self, organization_id: OrganizationId, server_id: McpServerId) -> McpCatalog | None:
        """The stored snapshot; None if the server was never listed."""

    async def save(
        self,
        organization_id: OrganizationId,
        catalog: McpCatalog,
        audit: tuple[AuditEvent, ...] = (),
        *,
        has_same_definitions: bool = False,
    ) -> bool:
        """Replace the snapshot of revision `catalog.revision` (0: none) by this one, with the next
        revision. `has_same_definitions`: all tools and their states are those of the snapshot.

        - False, and nothing is stored, if another snapshot was stored meanwhile.
        - A catalog of an unknown server is dropped, without its audit entries.
        """

    async def approve(
        self,
        organization_id: OrganizationId,
        server_id: McpServerId,
        definition: McpToolDefinition,
        audit: AuditEvent,
    ) -> bool:
        """Approve a tool in quarantine, or a rejected one. False, and nothing is stored, if it is
        not there with this definition."""

    async def reject(
        self,
        organization_id: OrganizationId,
        server_id: McpServerId,
        definition: McpToolDefinition,
        rejection: Rejection,
        audit: AuditEvent,
    ) -> bool:
        """Reject a tool in quarantine. False, and nothing is stored, if it does not wait there with
        this definition."""


class ContentKind(StrEnum):
    TEXT = "text"
    IMAGE = "image"
    AUDIO = "audio"
    RESOURCE = "resource"
    RESOURCE_LINK = "resource_link"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentBlock:
    """One block of a reply. `text` is the text of the block, or a description (`audio/wav, 12 KiB`;
    `name (uri)`). `image` and `file` are set for what models may read."""

    kind: ContentKind
    text: str
    image: ImageContent | None = None
    file: FileContent | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class McpInputRequired:
    """A reply with requests for input.

    - `questions`: requests for people; `requests`: all requests that can be passed to a client, by
      the server's keys.
    - `request_state`: opaque; without questions the server only wants to be called again with it.
    - `unsupported`: methods that are not questions (sampling, roots).
    - `ended`: the server did not wait and has answered without the input; calling again is a new
      call.
    """

    questions: tuple[Elicitation, ...] = ()
    request_state: str | None = None
    unsupported: tuple[str, ...] = ()
    ended: bool = False
    requests: tuple[ClientRequest, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class McpReply:
    """The reply to `tools/call`.

    - `structured` is None without `structuredContent`; `raw` is the unchanged result.
    - With `input_required` the call is unfinished, and is sent again with the input.
    """

    is_error: bool
    content: tuple[ContentBlock, ...]
    structured: JsonValue = None
    input_required: McpInputRequired | None = None
    raw: Mapping[str, object] | None = field(default=None, compare=False, repr=False)


class McpFailureKind(StrEnum):
    SERVER_ERROR = "server_error"
    """JSON-RPC error of the server: `detail` is its message, `rpc_code` its code."""
    TIMEOUT = "timeout"
    NOT_CONNECTED = "not_connected"
    """The connection could not be opened; nothing was sent."""
    CONNECTION_LOST = "connection_lost"
    """The connection broke during the call: it may have taken effect."""
    TOO_LARGE = "too_large"
    """The reply exceeds the limit: `detail` has its size and the limit."""
    INVALID_REPLY = "invalid_reply"
    """The reply is not valid MCP."""
    NEEDS_AUTH = "needs_auth"
    """The server requires (other) credentials; nothing was executed."""
    BUSY = "busy"
    """Too many concurrent or too frequent calls, as `detail` says; nothing was sent."""
    DISABLED = "disabled"
    NOT_INSTALLED = "not_installed"
    """The server must be installed first; nothing was sent."""
    DEFINITION_CHANGED = "definition_changed"
    """The server's definition of the tool differs from the caller's; nothing was sent."""


class McpFailure(Exception):
    """A failed call, discovery or connection.

    - `detail` is safe to show: the server's text for SERVER_ERROR (cleaned, capped by the use
      case), else a fixed sentence. `for_model` replaces it for models if it addresses the operator.
    - `stderr`: the tail of a started server's error output, for the operator only.
    - `retry_after_s`: nothing will be sent to the server before.
    - `required`: capabilities (as in the protocol) that the call requires.
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
    """Who uses a connection, and who acts. A server's isolation and credentials decide which ids
    separate connections."""

    organization_id: OrganizationId
    thread_id: ThreadId | None = None
    run_id: RunId | None = None
    gateway_session_id: GatewaySessionId | None = None
    person_id: UserId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class McpProgress:
    """A progress notification (MCP utilities/progress)."""

    progress: float
    total: float | None = None
    message: str | None = None


ProgressCallback = Callable[[McpProgress], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class McpCall:
    """A tool call to send.

    - `timeout_s` includes waiting for a place, connecting, and the reply.
    - `meta` is sent in `_meta` (idempotency key, trace context).
    - `definition`: the caller's definition; a server that lists another one is not called.
    - `accepts_input`: the caller answers questions; the repeated call has `input_responses` and
      `request_state`.
    - `relay`: passes questions to the caller; legacy servers wait for the answers.
    - `logs`: receives the server's log messages about the call.
    - `moves`: whether the interrupted call is continued elsewhere, so that its server must not be
      told to stop.
    """

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
    moves: Callable[[], bool] | None = field(default=None, compare=False, repr=False)


class ServerState(StrEnum):
    """State of a server in this process. Values are part of the public contract."""

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
    """The current step of an installation, and its progress (0 to 100, never decreasing)."""

    step: str
    percent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStatus:
    """State of a server in another process on the same database."""

    name: str
    state: ServerState
    since: datetime
    last_error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """`since` is the beginning of the state; `last_error` is safe to show; `protocol_version` is
    set while connected, `install` during an installation; `processes` are the other processes
    connected to the server."""

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
    """Live connections to servers, opened at the first call, owned and closed by the adapter."""

    async def call_tool(
        self, server: McpServer, scope: ConnectionScope, call: McpCall, on_progress: ProgressCallback | None = None
    ) -> McpReply:
        """Send a call and wait for its reply. Raises McpFailure. Cancelling the wait cancels the
        call by protocol."""
        ...

    async def discover(self, server: McpServer, scope: ConnectionScope, *, timeout_s: float) -> McpCatalog:
        """Connect if needed and list all tools (all pages). Raises McpFailure."""
        ...

    async def release(self, scope: ConnectionScope) -> None:
        """Close the connections of the ended run or thread of `scope`. Never raises."""
        ...

    def status(self, server: McpServer) -> ServerStatus:
        """The state in this process."""
        ...

    def logs(self, server: McpServer) -> str:
        """The bounded tail of a started server's error output."""
        ...

    def forgive(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        """Reset the failures of the server: the next call or connection attempt is made at once.
        Never raises."""
        ...

    async def forget(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        """The server was changed or removed: close its connections once their calls end. Never
        raises."""
        ...


class ConfinementReport(Protocol):
    """What this process knows of the confinement of started servers."""

    async def describe(self) -> str:
        """How started servers are confined here, in words for operators."""
        ...

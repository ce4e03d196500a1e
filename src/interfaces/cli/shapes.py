"""The service's answers as far as commands show them. Fields of newer services are ignored."""

import shlex
from dataclasses import dataclass, field
from typing import TypeVar

from domain.json_value import JsonObject, JsonValue
from interfaces.cli.failures import UnexpectedAnswer

ShapeT = TypeVar("ShapeT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a run, a tool call or a test failed. Operators and admins get `provider_error`, `{status, code, message}`."""

    code: str
    detail: str
    stderr: str = ""
    provider_error: dict[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Elicitation:
    """What a call's server asks: a form (`schema`), or a page to visit."""

    message: str
    schema: dict[str, object] | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a message, of any kind: text, image, tool_use (perhaps with a question, or waiting for an approval) or
    tool_result."""

    type: str
    text: str = ""
    id: str = ""
    name: str = ""
    params: dict[str, object] = field(default_factory=dict)
    malformed: str | None = None
    elicitation: Elicitation | None = None
    approval_id: str | None = None
    expires_at: str = ""
    reason: str = ""
    tool_id: str = ""
    tool_name: str = ""
    result: str = ""
    is_error: bool = False
    media_type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine:
    """Why a thread takes neither messages nor runs."""

    run_id: str
    canary_id: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A thread, without its messages."""

    id: str
    quarantine: Quarantine | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message of a thread."""

    id: str
    role: str
    content: list[Part]
    created_at: str = ""
    run_id: str | None = None

    @property
    def text(self) -> str:
        """Its text parts, joined."""
        return "".join(part.text for part in self.content if part.type == "text")

    @property
    def asks_for_tools(self) -> bool:
        """Whether it is not the last word."""
        return any(part.type == "tool_use" for part in self.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a run consumed."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None
    turns: int = 0
    tool_calls: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run without its messages."""

    id: str
    thread_id: str
    agent_id: str
    status: str
    agent_version: int = 0
    output: str | None = None
    error: Failure | None = None
    incomplete_reason: str | None = None
    pending: list[Part] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    attempt: int = 0
    created_at: str = ""
    started_at: str | None = None
    finished_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitedRun:
    """A run with the messages it wrote."""

    run: Run
    messages: list[Message]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFields:
    """What an event of a run may carry, over all types."""

    seq: int = 0
    at: str = ""
    turn: int = 0
    text: str = ""
    message: Message | None = None
    message_id: str = ""
    reason: str = ""
    model: str = ""
    attempt: int = 0
    tool_call_id: str = ""
    name: str = ""
    params: dict[str, object] = field(default_factory=dict)
    duration_ms: int | None = None
    error: Failure | None = None
    status: str = ""
    progress: float | None = None
    total: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventNumber:
    """An event as far as its place in the run's log."""

    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """A canary token, of which nothing but the id can be read."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """An agent at a version."""

    id: str
    name: str
    model: str
    version: int
    fallback_models: list[str] = field(default_factory=list)
    instructions: str = ""
    tools: list[str] = field(default_factory=list)
    mcp_servers: list[str] = field(default_factory=list)
    tool_allowlist: list[str] | None = None
    tool_policies: dict[str, dict[str, object]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    canary_tokens: list[Canary] = field(default_factory=list)
    limits: dict[str, int | float | None] = field(default_factory=dict)
    enabled: bool = True
    description: str = ""
    agents: list[str] = field(default_factory=list)
    updated_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """A registered MCP server; of `env` and `headers` only the names are known. `version` is its package's."""

    id: str
    slug: str
    kind: str
    package: str | None = None
    version: str | None = None
    path: str | None = None
    command: str | None = None
    args: list[str] = field(default_factory=list)
    env: dict[str, object] = field(default_factory=dict)
    url: str | None = None
    headers: dict[str, object] = field(default_factory=dict)
    trusted: bool = False
    isolation: str = ""
    elicitation: str = ""
    sampling: str = ""
    roots: str = ""
    on_connection_loss: str = ""
    max_concurrency: int | None = None
    rate_limit: dict[str, float] | None = None
    timeout_s: float | None = None
    enabled: bool = True

    @property
    def reached_by(self) -> str:
        """Its URL, or what it is installed from and its command, with the arguments."""
        if self.url is not None:
            return self.url
        source = self.package or self.path
        start = shlex.join(part for part in (self.command, *self.args) if part is not None)
        return " ".join(part for part in (source, self.version, start) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallProgress:
    """How far an installation is."""

    step: str = ""
    percent: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedEntry:
    """What became of an entry of a desktop client's file."""

    name: str
    slug: str
    outcome: str
    kind: str | None = None
    needs_install: bool = False
    remarks: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class McpStatus:
    """Whether a server is installed, and the state of its connections."""

    state: str
    since: str = ""
    last_error: str | None = None
    protocol_version: str | None = None
    tool_count: int | None = None
    installed_version: str | None = None
    installed_at: str | None = None
    install: InstallProgress | None = None
    processes: list[dict[str, str | None]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class McpTool:
    """A tool as its server describes it; `diff` is what approving one in quarantine would change."""

    name: str
    description: str = ""
    model_name: str = ""
    state: str = ""
    digest: str | None = None
    diff: str = ""

    @property
    def is_quarantined(self) -> bool:
        """Whether it waits for approval."""
        return self.state == "quarantined"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedTool:
    """A tool that could not be registered."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class McpTools:
    """What a server offers, as last seen; `taken_at` is None if it was never listed."""

    data: list[McpTool]
    skipped: list[SkippedTool] = field(default_factory=list)
    taken_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """What a server says about itself."""

    name: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpTestOutcome:
    """Whether a server starts, answers and lists its tools."""

    ok: bool
    protocol_version: str | None = None
    server_info: ServerInfo | None = None
    tools: list[McpTool] = field(default_factory=list)
    skipped: list[SkippedTool] = field(default_factory=list)
    latency_ms: float = 0
    error: Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTool:
    """A tool that a key or an agent can see."""

    name: str
    type: str = ""
    description: str = ""
    server: str | None = None
    health: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorization:
    """Where to send a person, until when."""

    authorization_url: str
    expires_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file of a thread."""

    id: str
    name: str
    kind: str = ""
    size: int = 0
    searchable: bool = False
    problem: str | None = None
    created_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """An entry of the audit trail."""

    id: str
    action: str
    actor: str
    resource: str
    at: str
    run_id: str | None = None
    tool: str | None = None
    server_id: str | None = None
    duration_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """What a just created thing is called."""

    id: str


def read_as(shape: type[ShapeT], document: JsonValue) -> ShapeT:
    """The document as a shape. Raises UnexpectedAnswer."""
    import msgspec

    try:
        return msgspec.convert(document, shape)
    except msgspec.ValidationError as exc:
        raise UnexpectedAnswer(str(exc)) from exc


def parsed_as(shape: type[ShapeT], text: str) -> ShapeT:
    """JSON text as a shape. Raises UnexpectedAnswer."""
    import msgspec

    try:
        return msgspec.json.decode(text, type=shape)
    except msgspec.DecodeError as exc:
        raise UnexpectedAnswer(str(exc)) from exc


def entries_of(shape: type[ShapeT], page: JsonObject) -> list[ShapeT]:
    """The entries of a list's page. Raises UnexpectedAnswer."""
    data = page.get("data")
    return [read_as(shape, entry) for entry in data] if isinstance(data, list) else []

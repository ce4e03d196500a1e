"""Builders of domain values with sensible defaults: name what the test is about, leave the rest.
Times are fixed."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from application.runs.new_run import IdempotencyKey, NewRun
from domain.agents.agent import Agent, AgentConfig
from domain.audit.event import AuditAction, AuditEvent
from domain.identity.api_key import ApiKey, hash_token
from domain.identity.organization import Organization
from domain.identity.role import Role as KeyRole
from domain.ids import (
    AgentId,
    ApiKeyId,
    AuditEventId,
    McpServerId,
    MessageId,
    OrganizationId,
    RunId,
    ThreadId,
    ToolCallId,
    WorkerId,
    tool_call_id,
)
from domain.json_value import JsonObject
from domain.mcp.catalog import McpCatalog, McpToolDefinition
from domain.mcp.server import McpServer, McpServerConfig, McpServerKind
from domain.policy.canary import CanaryToken
from domain.runs.ledger import ToolCall, ToolCallState
from domain.runs.limits import LimitSettings
from domain.runs.run import MultitaskStrategy, Run, RunStatus
from domain.threads.message import Content, Message, Role, TextContent, ToolUse, UserContent
from domain.threads.thread import ForkPoint, Thread
from domain.tools.capabilities import ToolType
from domain.tools.result import ToolResult
from domain.tools.tool import McpBinding, Tool

ORG = OrganizationId("org_00000000000000000000000001")
OTHER_ORG = OrganizationId("org_00000000000000000000000002")
AGENT = AgentId("agt_00000000000000000000000001")
THREAD = ThreadId("thr_00000000000000000000000001")
RUN = RunId("run_00000000000000000000000001")
SERVER = McpServerId("mcp_00000000000000000000000001")
KEY = ApiKeyId("key_00000000000000000000000001")
WORKER = WorkerId("worker-1")
OTHER_WORKER = WorkerId("worker-2")

START = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)

ECHO_SCHEMA: JsonObject = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def after(seconds: float) -> datetime:
    """So many seconds after the tests' beginning of time."""
    return START + timedelta(seconds=seconds)


def numbered(prefix: str, number: int) -> str:
    """The id `prefix_…` that sorts at `number`, in the form fresh ids have."""
    return f"{prefix}_{number:026d}"


def a_thread_id(number: int) -> ThreadId:
    return ThreadId(numbered("thr", number))


def a_run_id(number: int) -> RunId:
    return RunId(numbered("run", number))


def an_organization(id: OrganizationId = ORG, *, name: str | None = None) -> Organization:
    return Organization(id=id, name=name or f"organization {id[-4:]}", created_at=START)


def a_key(
    id: ApiKeyId = KEY,
    *,
    organization_id: OrganizationId = ORG,
    token: str | None = None,
    role: KeyRole = KeyRole.ADMIN,
    custom_role: str | None = None,
    platform: bool = False,
    created_at: datetime = START,
    revoked_at: datetime | None = None,
) -> ApiKey:
    return ApiKey(
        id=id,
        organization_id=organization_id,
        name="a key",
        role=role,
        custom_role=custom_role,
        platform=platform,
        token_hash=hash_token(token or f"dgm_token-of-{id}"),
        created_at=created_at,
        revoked_at=revoked_at,
    )


def a_deletion(thread_id: ThreadId = THREAD) -> AuditEvent:
    """What deleting the thread leaves in the trail."""
    return an_audit_event(91, action=AuditAction.THREAD_DELETED, resource=thread_id)


def an_audit_event(
    number: int = 1,
    *,
    organization_id: OrganizationId = ORG,
    action: AuditAction = AuditAction.MCP_SERVER_TESTED,
    actor: str = KEY,
    resource: str = SERVER,
    at: datetime | None = None,
    run_id: RunId | None = None,
    tool: str | None = None,
    server_id: McpServerId | None = None,
    duration_ms: int | None = None,
    arguments_digest: str | None = None,
    details: JsonObject | None = None,
) -> AuditEvent:
    """Entry `number`, at that many seconds unless said otherwise."""
    return AuditEvent(
        id=AuditEventId(numbered("aud", number)),
        organization_id=organization_id,
        action=action,
        actor=actor,
        resource=resource,
        at=after(number) if at is None else at,
        run_id=run_id,
        tool=tool,
        server_id=server_id,
        duration_ms=duration_ms,
        arguments_digest=arguments_digest,
        details=details or {},
    )


def an_agent(
    id: AgentId = AGENT,
    *,
    organization_id: OrganizationId = ORG,
    name: str = "researcher",
    version: int = 1,
    model: str = "scripted:demo.yaml",
    fallback_models: tuple[str, ...] = (),
    instructions: str = "Answer briefly.",
    tools: tuple[ToolType, ...] = (),
    mcp_servers: tuple[str, ...] = (),
    tool_allowlist: tuple[str, ...] | None = None,
    limits: LimitSettings | None = None,
    canary_tokens: tuple[CanaryToken, ...] = (),
    enabled: bool = True,
    reasoning_summary: bool = False,
    created_at: datetime = START,
    updated_at: datetime | None = None,
) -> Agent:
    return Agent(
        id=id,
        organization_id=organization_id,
        version=version,
        config=AgentConfig(
            name=name,
            model=model,
            fallback_models=fallback_models,
            instructions=instructions,
            tools=tools,
            mcp_servers=mcp_servers,
            tool_allowlist=tool_allowlist,
            limits=limits or LimitSettings(),
            canary_tokens=canary_tokens,
            enabled=enabled,
            reasoning_summary=reasoning_summary,
        ),
        created_at=created_at,
        updated_at=updated_at or created_at,
    )


def a_server(
    id: McpServerId = SERVER,
    *,
    organization_id: OrganizationId = ORG,
    slug: str = "files",
    version: int = 1,
    config: McpServerConfig | None = None,
    created_at: datetime = START,
    updated_at: datetime | None = None,
) -> McpServer:
    """A custom (started) server, or one with the given `config`, which then names the slug."""
    return McpServer(
        id=id,
        organization_id=organization_id,
        version=version,
        config=config or McpServerConfig(slug=slug, kind=McpServerKind.CUSTOM, command="files-server"),
        created_at=created_at,
        updated_at=updated_at or created_at,
    )


def a_definition(name: str = "echo", *, description: str = "Says it again.") -> McpToolDefinition:
    return McpToolDefinition(name=name, description=description, input_schema=ECHO_SCHEMA)


def a_catalog(
    server_id: McpServerId = SERVER,
    *,
    server_version: int = 1,
    tools: Iterable[McpToolDefinition] | None = None,
    instructions: str | None = None,
    taken_at: datetime = START,
) -> McpCatalog:
    return McpCatalog(
        server_id=server_id,
        server_version=server_version,
        protocol_version="2025-11-25",
        server_name="files",
        instructions=instructions,
        tools=(a_definition(),) if tools is None else tuple(tools),
        skipped=(),
        taken_at=taken_at,
    )


def a_tool(
    name: str = "mcp__files__echo",
    *,
    type: ToolType = ToolType.MCP_TOOL,
    description: str = "Says it again.",
    parameters: JsonObject | None = None,
    mcp: McpBinding | None = None,
    repeatable: bool = False,
) -> Tool:
    """An MCP tool bound to `a_server()`, or a native one (without a binding) when `type` says
    so."""
    if mcp is None and type is ToolType.MCP_TOOL:
        mcp = McpBinding(server_id=SERVER, server_slug="files", tool_name=name.rpartition("__")[2])
    return Tool(
        name=name,
        type=type,
        description=description,
        parameters=ECHO_SCHEMA if parameters is None else parameters,
        mcp=mcp,
        repeatable=repeatable,
    )


def a_thread(
    id: ThreadId = THREAD,
    *,
    organization_id: OrganizationId = ORG,
    metadata: JsonObject | None = None,
    created_at: datetime = START,
    forked_from: ForkPoint | None = None,
) -> Thread:
    return Thread(
        id=id,
        organization_id=organization_id,
        metadata=metadata or {},
        created_at=created_at,
        forked_from=forked_from,
    )


def a_message(
    number: int = 1,
    text: str = "hello",
    *,
    thread_id: ThreadId = THREAD,
    run_id: RunId | None = None,
    role: Role = Role.USER,
    content: tuple[Content, ...] | None = None,
    created_at: datetime | None = None,
) -> Message:
    """Message `number`, at that many seconds, with `text` unless `content` is given."""
    return Message(
        id=MessageId(numbered("msg", number)),
        thread_id=thread_id,
        run_id=run_id,
        role=role,
        content=(TextContent(text=text),) if content is None else content,
        created_at=after(number) if created_at is None else created_at,
    )


def a_run(
    id: RunId = RUN,
    *,
    organization_id: OrganizationId = ORG,
    thread_id: ThreadId = THREAD,
    agent_id: AgentId = AGENT,
    agent_version: int = 1,
    status: RunStatus = RunStatus.QUEUED,
    input: str | tuple[UserContent, ...] = "What time is it?",
    model: str = "scripted:demo.yaml",
    limits: LimitSettings | None = None,
    tool_allowlist: tuple[str, ...] | None = None,
    metadata: JsonObject | None = None,
    requested_by: ApiKeyId | None = None,
    created_at: datetime = START,
    pending: tuple[ToolUse, ...] = (),
    attempt: int = 0,
    epoch: int = 0,
) -> Run:
    """A run as it is created. Other states are better reached by its transitions than by
    `status`."""
    return Run(
        id=id,
        organization_id=organization_id,
        thread_id=thread_id,
        agent_id=agent_id,
        agent_version=agent_version,
        status=status,
        input=(TextContent(text=input),) if isinstance(input, str) else input,
        model=model,
        limits=limits or LimitSettings(),
        tool_allowlist=tool_allowlist,
        metadata=metadata or {},
        requested_by=requested_by,
        created_at=created_at,
        pending=pending,
        attempt=attempt,
        epoch=epoch,
    )


def a_new_run(
    run: Run | None = None,
    *,
    new_thread: Thread | None = None,
    strategy: MultitaskStrategy = MultitaskStrategy.ENQUEUE,
    idempotency: IdempotencyKey | None = None,
    may_stop_any: bool = True,
) -> NewRun:
    run = run or a_run()
    return NewRun(
        run=run,
        new_thread=new_thread,
        strategy=strategy,
        idempotency=idempotency,
        may_stop_any=may_stop_any,
        webhook_url=None if run.webhook is None else f"https://{run.webhook.receiver}/T0K3N",
    )


def a_tool_call(
    index: int = 0,
    *,
    run_id: RunId = RUN,
    turn: int = 1,
    id: ToolCallId | None = None,
    name: str = "mcp__files__echo",
    type: ToolType | None = ToolType.MCP_TOOL,
    server_id: McpServerId | None = None,
    params: JsonObject | None = None,
    repeatable: bool = False,
    state: ToolCallState = ToolCallState.RECORDED,
    recorded_at: datetime = START,
    result: ToolResult | None = None,
) -> ToolCall:
    """The `index`-th call of a turn; settled when it has a `result`."""
    return ToolCall(
        id=id or tool_call_id(run_id, turn, index),
        run_id=run_id,
        turn=turn,
        index=index,
        name=name,
        type=type,
        server_id=server_id,
        params={"text": "hi"} if params is None else params,
        repeatable=repeatable,
        state=state if result is None else ToolCallState.SETTLED,
        recorded_at=recorded_at,
        result=result,
        duration_ms=None if result is None else 5,
        settled_at=None if result is None else recorded_at,
    )


def a_displayable_call(index: int = 0, *, run_id: RunId = RUN, turn: int = 1) -> ToolCall:
    """A call that the client settles."""
    return a_tool_call(
        index,
        run_id=run_id,
        turn=turn,
        name="send_email",
        type=ToolType.SEND_EMAIL,
        params={"to": "ada@example.org", "subject": "Hi", "body": "Hello."},
        state=ToolCallState.AWAITING_CLIENT,
    )


def a_tool_use(call: ToolCall | None = None) -> ToolUse:
    """What the model said to make that call."""
    call = call or a_tool_call()
    return ToolUse(id=call.id, name=call.name, params=call.params)


def a_settled_call(
    call: ToolCall, result: ToolResult | None = None, *, duration_ms: int = 5, at: datetime = START
) -> ToolCall:
    return call.settled(result or ToolResult.succeeded("done"), at=at, duration_ms=duration_ms)

# The shapes of the HTTP API, written by `make clients` from the OpenAPI document.

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict


class AccountSecretsBody(TypedDict):
    """The caller's secrets for an MCP server. The values are write-only."""

    secrets: dict[str, str]
    """Values by the names in `secrets` of the account. Those that are not given again stay."""
    offer: NotRequired[str | None]
    """`offer` of the account, to be refused (409) if the server has changed meanwhile."""
    address: NotRequired[str | None]
    """`address` of the account, to be refused (409) if it has changed meanwhile."""


class AnswerBody(TypedDict):
    """A person's answer to a node."""

    node_id: str
    """Id of the node."""
    answer: Any
    """Any JSON value that fits the node's schema."""


ApprovalDecision: TypeAlias = Literal['approve', 'deny']
"""The decision on a tool call."""


class ApprovalServerView(TypedDict):
    """The MCP server that an approval is bound to."""

    slug: str
    """Slug of the server."""
    version: int
    """Counts the changes of the server."""
    runs: str
    """What is started, or connected to."""


ApprovalState: TypeAlias = Literal['pending', 'approved', 'denied', 'expired', 'stale', 'cancelled']
"""
The state of an approval; the values are public. `stale`: the agent or the tool's MCP server
has changed, and the call is checked again. `cancelled`: the run ended before a decision.
"""


class ApproveDefinitionBody(TypedDict):
    """The `digest` of the reviewed definition."""

    digest: str
    """Digest of the definition, as the list of tools has it."""


class ApproversBody(TypedDict):
    """Those who may decide: people, and members of groups. At least one."""

    people: NotRequired[list[str]]
    """Ids of users or API keys."""
    groups: NotRequired[list[str]]
    """Names of groups."""


class ApproversView(TypedDict):
    """Those who may decide: people, and members of groups."""

    people: NotRequired[list[str]]
    """Ids of users or API keys."""
    groups: NotRequired[list[str]]
    """Names of groups."""


AuditAction: TypeAlias = Literal['run.started', 'run.completed', 'run.failed', 'run.cancelled', 'run.question_answered', 'session.halted', 'thread.released', 'thread.deleted', 'tool.executed', 'tool.failed', 'tool.blocked', 'tool.approval_given', 'tool.approved', 'tool.denied', 'mcp_server.created', 'mcp_server.updated', 'mcp_server.deleted', 'mcp_server.tested', 'mcp_server.authorized', 'account.connected', 'account.disconnected', 'mcp_server.installed', 'mcp_server.install_failed', 'mcp_server.uninstalled', 'mcp_server.tool_quarantined', 'mcp_server.tool_approved', 'mcp_server.tool_rejected', 'agent.created', 'agent.updated', 'agent.deleted', 'organization.created', 'organization.updated', 'gateway_session.created', 'gateway_session.revoked', 'key.created', 'key.revoked', 'identity_provider.created', 'identity_provider.updated', 'identity_provider.deleted', 'identity_provider.scim_token_created', 'identity_provider.scim_token_revoked', 'group.created', 'group.updated', 'group.deleted', 'role.created', 'role.updated', 'role.deleted', 'user.provisioned', 'user.created', 'user.signed_in', 'user.updated', 'user.removed', 'session.ended', 'impersonation.begun', 'impersonation.ended', 'source.added', 'source.deleted', 'model_provider.created', 'model_provider.updated', 'model_provider.tested', 'model_provider.deleted', 'runs.cancelled', 'runs.requeued', 'webhook_key.created', 'webhook_delivery.retried', 'push_config.created', 'push_config.deleted', 'schedule.created', 'schedule.updated', 'schedule.deleted', 'schedule.fired', 'schedule.not_fired', 'workflow.created', 'workflow.updated', 'workflow.deleted', 'workflow.run_started', 'workflow.run_resumed', 'workflow.run_stopped', 'workflow.run_completed', 'workflow.run_failed', 'workflow.run_cancelled', 'secret.set', 'secret.deleted', 'secret.key_rotated', 'audit.pruned', 'retention.applied']
"""The audited actions. The values are part of the public contract."""


class AuditEventView(TypedDict):
    """`actor` (an API key id or `system`) performed `action` on a resource."""

    id: str
    """Id of the event."""
    action: AuditAction
    """What was done."""
    actor: str
    """Who did it: the id of an API key, `schedule:` and the id of a schedule, or `system`."""
    resource: str
    """Id of the affected object."""
    at: str
    """Time of the action."""
    run_id: str | None
    """Id of the run, if it was part of one."""
    tool: str | None
    """Name of the tool as models see it, for a tool call."""
    server_id: str | None
    """Id of the tool's MCP server, if it has one."""
    duration_ms: int | None
    """Duration of a tool call."""
    arguments_digest: str | None
    """Digest of the arguments of a tool call: `sha256:` and hex."""
    details: dict[str, Any]
    """Further fields of the action."""


class AuthorizationView(TypedDict):
    """The URL that a person opens, and its expiry."""

    authorization_url: str
    """The URL that a person opens."""
    expires_at: str
    """From this time on it is invalid."""


class BeginImpersonationBody(TypedDict):
    """Why and how long the caller acts as a user."""

    reason: str
    """Why. The user reads it, and the audit trail has it."""
    minutes: NotRequired[int]
    """After this time the token is refused."""


class BegunImpersonationView(TypedDict):
    """A new impersonation with its token."""

    id: str
    """Id of the impersonation."""
    actor: str
    """The user or platform key that acts."""
    user_id: str
    """The user as whom the actor acts."""
    acting: str
    """How runs, calls and audit entries name both."""
    reason: str
    """Why."""
    created_at: str
    """Time of the creation."""
    expires_at: str
    """From this time on it is invalid."""
    ended_at: str | None
    """When it was ended before it expired."""
    token: str
    """Bearer token: `dgi_…`. It is shown only once."""


class BrokenLinkView(TypedDict):
    """
    The first place where the chain is broken. `number` is null for an event that was never
    sealed, `event_id` for one that is lost.
    """

    number: int | None
    """Number of the seal; null for an event that was never sealed."""
    event_id: str | None
    """Id of the event; null for one that is lost."""
    problem: Literal['edited', 'deleted', 'reordered', 'inserted', 'head_edited', 'head_deleted', 'unsealed']
    """What is wrong there."""


CacheTtl: TypeAlias = Literal['5m', '1h']
"""How long a provider caches prompts. The values are part of the public contract."""


class CallDecisionBody(TypedDict):
    """A decision about a pending call that requires approval."""

    decision: ApprovalDecision
    """Whether the call may be executed."""
    arguments: NotRequired[dict[str, Any] | None]
    """Arguments that replace the model's."""
    reason: NotRequired[str | None]
    """Reason of the decision; the model sees that of a denial."""
    tool_call_id: str
    """Id of the tool call."""


class CallUsageView(TypedDict):
    """Consumption of one model call."""

    model: str
    """The model, as `PROVIDER:NAME`."""
    input_tokens: int
    """Input tokens, cached ones included."""
    output_tokens: int
    """Output tokens, those of reasoning included."""
    cached_tokens: int
    """Input tokens that the provider had cached."""
    reasoning_tokens: int
    """Output tokens that the model spent on reasoning."""
    cost_usd: float | None
    """Cost in USD; null without a known price."""
    estimated: bool
    """Whether the tokens are estimated: the provider reported none, or the call was interrupted."""


class CanaryTokenBody(TypedDict):
    """A text that the agent must never output. An id alone means the agent's existing token."""

    id: NotRequired[str | None]
    """Generated if absent. `[canary:ID]` replaces the token where it is found."""
    token: NotRequired[str | None]
    """8 to 256 characters. Write-only."""
    per_run: NotRequired[bool]
    """Each run gets its own token in place of `{{canary:ID}}`."""


class CanaryView(TypedDict):
    """A canary token without its text."""

    id: str
    """Id of the token. `[canary:ID]` replaces the token where it is found."""
    per_run: bool
    """Whether each run gets its own token in place of `{{canary:ID}}`."""


class CancelledRunsView(TypedDict):
    """
    Numbers of runs that ended cancelled, and of runs in progress whose cancellation was
    requested.
    """

    cancelled: int
    """Number of runs that ended cancelled."""
    stopping: int
    """Number of runs in progress whose cancellation was requested."""


class CliProviderView(TypedDict):
    """An identity provider where people may sign in to the command line."""

    name: str
    """Name of the identity provider."""
    issuer: str
    """Issuer URL (OpenID Connect)."""
    client_id: str
    """Id of the public client of the command line."""
    scopes: list[str]
    """Scopes that a sign-in requests."""


CloudIdentity: TypeAlias = Literal['key', 'service']
"""
Whose identity calls have: `key`, that of the provider's key; `service`, that of the machine
on which Dragoman runs (instance role, workload identity, metadata server). The values are part
of the public contract.
"""


class CloudView(TypedDict):
    """Region, project and identity of a provider in a cloud."""

    region: str | None
    """Of Vertex AI and Bedrock, such as `europe-west1` or `eu-central-1`."""
    project: str | None
    """The project of Google Cloud, for kind vertex."""
    identity: CloudIdentity
    """`key`: the provider's key. `service`: the identity of the machine that Dragoman runs on, if the operator permits it; only in the default organization."""
    role: str | None
    """ARN of a role of AWS that is assumed."""
    profile: str | None
    """Profile of the machine's configuration of AWS, with the identity `service`."""
    tenant_id: str | None
    """Tenant of Microsoft Entra, for kind azure; the key is then the application's secret."""
    client_id: str | None
    """The application of Microsoft Entra, or the managed identity of the machine."""


Hours: TypeAlias = str
"""Hours of a day, such as `08:00-18:00`; the end is excluded."""


Hours1: TypeAlias = None
"""Hours of a day, such as `08:00-18:00`; the end is excluded."""


TimeZone: TypeAlias = str
"""Zone of hours and days, such as `Europe/Berlin`. Default: UTC."""


TimeZone1: TypeAlias = None
"""Zone of hours and days, such as `Europe/Berlin`. Default: UTC."""


ConnectionLoss: TypeAlias = Literal['unregister', 'mark_unhealthy']
"""What happens to a server's tools while the organization's shared connection is lost."""


class ConsentView(TypedDict):
    """One of several approvals."""

    by: str
    """The user or API key that approved."""
    at: str
    """Time of the approval."""


MaxQueued: TypeAlias = int
"""Most of its runs that may be queued; null: any number."""


MaxQueued1: TypeAlias = None
"""Most of its runs that may be queued; null: any number."""


MaxRunning: TypeAlias = int
"""Most of its runs that may be in progress; null: any number."""


MaxRunning1: TypeAlias = None
"""Most of its runs that may be in progress; null: any number."""


UserDailyBudgetsUsd: TypeAlias = dict[str, str]
"""Other budgets than `user_daily_budget_usd`, by the ids of users. Replaces all of them."""


UserDailyBudgetsUsd1: TypeAlias = None
"""Other budgets than `user_daily_budget_usd`, by the ids of users. Replaces all of them."""


LimitsOfUsers1: TypeAlias = None
"""Other limits than `user_limits`, by the ids of users. Replaces all of them."""


RetentionDays: TypeAlias = int
"""null retains everything."""


RetentionDays1: TypeAlias = None
"""null retains everything."""


McpKinds: TypeAlias = list[str]
"""Kinds of MCP servers that may be registered and started; `archive` is a package from a file of this machine. null permits all. Requires a platform key."""


McpKinds1: TypeAlias = None
"""Kinds of MCP servers that may be registered and started; `archive` is a package from a file of this machine. null permits all. Requires a platform key."""


QueueWeight: TypeAlias = int
"""Its share of the runs that start while runs of several organizations wait, relative to theirs. Requires a platform key."""


QueueWeight1: TypeAlias = None
"""Its share of the runs that start while runs of several organizations wait, relative to theirs. Requires a platform key."""


MaxQueued2: TypeAlias = int
"""Most runs that may be queued; null: any number. Requires a platform key."""


MaxQueued3: TypeAlias = None
"""Most runs that may be queued; null: any number. Requires a platform key."""


MaxRunning2: TypeAlias = int
"""Most runs that may be in progress; null: any number. Requires a platform key."""


MaxRunning3: TypeAlias = None
"""Most runs that may be in progress; null: any number. Requires a platform key."""


class CreateThreadBody(TypedDict):
    """A thread; `metadata` is for the client's use."""

    metadata: NotRequired[dict[str, Any]]
    """Data of the client; Dragoman does not use it."""
    team: NotRequired[str | None]
    """Name of the group that it belongs to, with its runs: others do not see them. Null: it belongs to the organization, until an agent of a group runs on it."""


class CreatedWebhookKeyView(TypedDict):
    """
    A new signing key; `secret` is shown only once. The previous key also signs until
    `former_signs_until`.
    """

    secret: str
    """The signing key: `whsec_…`. It is shown only once."""
    created_at: str
    """Time of the creation."""
    former_signs_until: str | None
    """Until then the previous key also signs; null if there was none."""


Credentials: TypeAlias = Literal['organization', 'person']
"""
Whose account is used at a server: one of the organization, or that of the person for whom a
call is made.
"""


Day: TypeAlias = Literal['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']
"""The days of a week."""


class DecisionBody(TypedDict):
    """
    A decision about a tool call. `arguments` (approvals only) replace the model's, within the
    tool's schema and policy. The model sees the reason of a denial.
    """

    decision: ApprovalDecision
    """Whether the call may be executed."""
    arguments: NotRequired[dict[str, Any] | None]
    """Arguments that replace the model's."""
    reason: NotRequired[str | None]
    """Reason of the decision; the model sees that of a denial."""


DecisionReason: TypeAlias = Literal['allowed', 'approval_required', 'tool_hidden', 'tool_denied', 'parameter_denied', 'arguments_denied', 'max_calls_reached']
"""
The reason of a decision. The values are public (`reason` of `tool.blocked`, audit entries,
explanations).
"""


class DeclaredToolBody(TypedDict):
    """A tool of a server that answers calls only."""

    name: str
    """Name of the tool at its server."""
    description: str
    """Description of the tool, for models."""
    parameters: dict[str, Any]
    """JSON Schema of its arguments, of type object."""
    output_schema: NotRequired[dict[str, Any] | None]
    """JSON Schema of its structured results; null if it has none."""


class DeclaredToolView(TypedDict):
    """A tool of a server that answers calls only, as its administrator declares it."""

    name: str
    """Name of the tool at its server."""
    description: str
    """Description of the tool, for models."""
    parameters: dict[str, Any]
    """JSON Schema of its arguments, of type object."""
    output_schema: dict[str, Any] | None
    """JSON Schema of its structured results; null if it has none."""


DefinitionState: TypeAlias = Literal['approved', 'quarantined', 'rejected']
"""Whether a tool may be used. The values are part of the public contract."""


DeliveryState: TypeAlias = Literal['pending', 'delivering', 'delivered', 'failed']
"""The state of a delivery. The values are part of the public contract."""


EchoReasoning: TypeAlias = Literal['tool_loop', 'always', 'never']
"""
Where chat completions get the model's reasoning back, if the provider shows it: in messages
`always`; after the last message of the user, which is the `tool_loop`; or `never`, which sends
text and calls only. The values are part of the public contract.
"""


class EdgeBody(TypedDict):
    """An edge. The target handle `tools` wires a tool to an agent."""

    source: str
    """Id of the node that it comes from."""
    source_handle: NotRequired[str | None]
    """Output handle of the source; required for nodes with several, empty for the only one."""
    target: str
    """Id of the node that it leads to."""
    target_handle: NotRequired[str | None]
    """Input handle of the target. `tools` wires a tool to an agent; the default is `input`."""


class EdgeView(TypedDict):
    """An edge as written; an empty source handle means the only handle of the source."""

    source: str
    """Id of the node that it comes from."""
    source_handle: str
    """Output handle of the source; required for nodes with several, empty for the only one."""
    target: str
    """Id of the node that it leads to."""
    target_handle: str
    """Input handle of the target. `tools` wires a tool to an agent; the default is `input`."""


Effort: TypeAlias = Literal['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']
"""
How much a model thinks. Models take some of these. The values are part of the public
contract.
"""


ElicitationPolicy: TypeAlias = Literal['decline', 'ask']
"""How a server's request for input in the middle of a call is handled."""


class ElicitationView(TypedDict):
    """Input that an MCP server requests in the middle of a call: a form, or a page to visit."""

    request_id: str
    """Id of the request within the call."""
    message: str
    """The question."""
    schema: NotRequired[dict[str, Any]]
    """JSON Schema of the content of an answer, for a form."""
    url: NotRequired[str]
    """The page to visit, if it is no form."""


Holder: TypeAlias = str
"""Id of a user or an API key. By default the caller."""


Holder1: TypeAlias = None
"""Id of a user or an API key. By default the caller."""


class EndSessionsBody(TypedDict):
    """Whose sessions end."""

    holder: NotRequired[Holder | Holder1]
    """Id of a user or an API key. By default the caller."""


class EndedSessionsView(TypedDict):
    """How many sessions ended."""

    ended: int
    """Number of sessions that ended."""


class ErrorView(TypedDict):
    """An error of a run or of a tool call."""

    code: str
    """Code of the error."""
    detail: str
    """The error as a sentence, or the text that the model gets."""


ExportFormat: TypeAlias = Literal['ndjson', 'csv']
"""Enum where members are also (and must be) strings"""


class Fault(TypedDict):
    """One fault in the input: its path (`limits.max_turns`) and a message."""

    path: str
    """Path of the fault in the input."""
    message: str
    """What is wrong there, after the path as its subject."""


class FaultView(TypedDict):
    """One fault: a stable code, a sentence, the affected nodes, and its path in the body."""

    code: str
    """Code of the fault."""
    message: str
    """The fault as a sentence."""
    node_ids: list[str]
    """Ids of the affected nodes."""
    path: str
    """Path of the fault in the body."""


class FilePart(TypedDict):
    """A file (PDF, audio, text or any other): inline in base64 (`data`) or by `url`."""

    type: Literal['file']
    """Kind of the part."""
    media_type: str
    """Media type, such as `application/pdf`."""
    name: NotRequired[str | None]
    """Name of the file."""
    data: NotRequired[str | None]
    """The file in base64, if it is inline."""
    url: NotRequired[str | None]
    """Where the file is, if it is not inline."""


class FileView(TypedDict):
    """A file: inline or by URL. Events and lists have its size in place of its bytes."""

    type: Literal['file']
    """Kind of the part."""
    media_type: str
    """Media type, such as `application/pdf`."""
    name: NotRequired[str]
    """Name of the file."""
    data: NotRequired[str]
    """The file in base64, if it is inline."""
    url: NotRequired[str]
    """Where the file is, if it is not inline."""
    bytes: NotRequired[int]
    """Size of an inline file that is shown without its bytes."""


FirstUse: TypeAlias = Literal['approve', 'review']
"""
What happens to the first definitions of servers that are not trusted. The values are
public.
"""


class ForkThreadBody(TypedDict):
    """Which messages a fork begins with."""

    before_message_id: NotRequired[str | None]
    """The first message that is not copied, of the role user; null copies all messages."""
    metadata: NotRequired[dict[str, Any] | None]
    """Data of the client; null takes that of the thread."""
    sources: NotRequired[bool]
    """Whether to copy the sources that were there before that message, 256 MiB in sum at most."""


class ForkView(TypedDict):
    """Where a thread was forked from another one, which may have been deleted since."""

    thread_id: str
    """The thread from which messages were copied."""
    before_message_id: str | None
    """The message of that thread which the fork replaces; null if all messages were copied."""


class GetPromptBody(TypedDict):
    """A prompt of the server with its arguments, and the agent under whose policy it is read."""

    agent: str
    """The agent's id or name."""
    name: str
    """Name of the prompt, as the server names it."""
    arguments: NotRequired[dict[str, str]]
    """Its arguments: texts by their names."""


class GroupClaimBody(TypedDict):
    """People with this value in a claim are members."""

    identity_provider: str
    """Id or name of the identity provider with which they sign in."""
    claim: str
    """Name of the claim, or a path with dots to a claim inside others."""
    value: str
    """Value of the claim, or one of its items; `*` matches every value."""


class GroupClaimView(TypedDict):
    """Makes people with this value in a claim members when they sign in."""

    identity_provider: str
    """The identity provider with which they sign in."""
    claim: str
    """Name of the claim, or a path with dots to a claim inside others."""
    value: str
    """Value of the claim, or one of its items; `*` matches every value."""


class GroupView(TypedDict):
    """A group of users."""

    id: str
    """Id of the group."""
    name: str
    """Name of the group. Policies name groups by it."""
    identity_provider_id: str | None
    """The identity provider whose directory manages the group; rules find its name in the claim `scim_groups`. Null: the organization manages it."""
    members: list[str]
    """Ids of the users whom the directory or an admin made members."""
    members_by_claim: list[str]
    """Ids of the users who are members by a claim of their last sign-in."""
    claims: list[GroupClaimView]
    """Claims that make people members."""
    version: int
    """Counts the changes, from 1. `If-Match` takes it."""
    created_at: str
    """Time of the creation."""
    updated_at: str
    """Time of the last change."""


class HealthView(TypedDict):
    """The process is healthy."""

    status: Literal['live', 'ready']
    """`live`: the process responds; `ready`: it can work."""


class IdentityProviderTestView(TypedDict):
    """The outcome of a test."""

    ok: bool
    """Whether people can sign in."""
    detail: str
    """The outcome in a sentence."""
    keys: int
    """Number of keys that the identity provider publishes."""
    signs_out: bool
    """Whether signing out here also signs out there."""
    has_device_flow: bool
    """Whether it has the device authorization grant (RFC 8628)."""


class ImagePart(TypedDict):
    """An image: inline in base64 (`data`) or by `url`."""

    type: Literal['image']
    """Kind of the part."""
    media_type: str
    """Media type, such as `image/png`."""
    data: NotRequired[str | None]
    """The image in base64, if it is inline."""
    url: NotRequired[str | None]
    """Where the image is, if it is not inline."""


class ImageView(TypedDict):
    """An image: inline or by URL. Lists of runs have its size in place of its bytes."""

    type: Literal['image']
    """Kind of the part."""
    media_type: str
    """Media type, such as `image/png`."""
    data: NotRequired[str]
    """The image in base64, if it is inline."""
    url: NotRequired[str]
    """Where the image is, if it is not inline."""
    bytes: NotRequired[int]
    """Size of an inline image that is shown without its bytes."""


class ImpersonationView(TypedDict):
    """Who acts as a user, or did in the last 30 days."""

    id: str
    """Id of the impersonation."""
    actor: str
    """The user or platform key that acts."""
    user_id: str
    """The user as whom the actor acts."""
    acting: str
    """How runs, calls and audit entries name both."""
    reason: str
    """Why."""
    created_at: str
    """Time of the creation."""
    expires_at: str
    """From this time on it is invalid."""
    ended_at: str | None
    """When it was ended before it expired."""


class ImportBody(TypedDict):
    """
    The servers of a desktop client's file, by name: each `{command, args, env}` or `{type,
    url, headers}`.
    """

    mcpServers: dict[str, Any]
    """The servers, by name."""


ImportOutcome: TypeAlias = Literal['created', 'skipped']
"""Whether the entry became a server."""


IncompleteReason: TypeAlias = Literal['max_turns', 'max_tool_calls', 'max_tokens', 'max_cost_usd', 'timeout', 'daily_budget_usd', 'max_output_tokens', 'content_filter', 'refusal', 'context_exceeded']
"""
Why a run ended `incomplete`: the limit that it reached, or the reason why the last reply is
incomplete.
"""


class InstallProgressView(TypedDict):
    """Progress of an installation."""

    step: str
    """The current step."""
    percent: int
    """Progress from 0 to 100; it never decreases."""


Isolation: TypeAlias = Literal['shared', 'thread', 'run']
"""Who shares a connection: the whole organization, the runs of one thread, or one run."""


JoinStrategy: TypeAlias = Literal['all', 'any', 'first']
"""
When a node with several incoming edges starts.

- `all`: when every edge is decided, if at least one was taken and none failed.
- `any`: when the first edge is taken; later edges and failures are ignored.
- `first`: like `any`, and nodes that no other node waits for are cancelled.
"""


Lane: TypeAlias = Literal['interactive', 'normal', 'batch']
"""How a run is preferred to other waiting runs of its organization. The values are public."""


MaxTurns: TypeAlias = int
"""Turns of one run: model calls whose tool calls are executed."""


MaxTurns1: TypeAlias = None
"""Turns of one run: model calls whose tool calls are executed."""


MaxToolCalls: TypeAlias = int
"""Tool calls of one run."""


MaxToolCalls1: TypeAlias = None
"""Tool calls of one run."""


MaxCallsPerTurn: TypeAlias = int
"""Executed tool calls of one reply; the others get a text."""


MaxCallsPerTurn1: TypeAlias = None
"""Executed tool calls of one reply; the others get a text."""


MaxTokens: TypeAlias = int
"""Input and output tokens together."""


MaxTokens1: TypeAlias = None
"""Input and output tokens together."""


ContextTokens: TypeAlias = int
"""Size to which the context is trimmed."""


ContextTokens1: TypeAlias = None
"""Size to which the context is trimmed."""


TimeoutS: TypeAlias = float
"""Active time of one run, in seconds."""


TimeoutS1: TypeAlias = None
"""Active time of one run, in seconds."""


TurnToolTimeoutS: TypeAlias = float
"""Most seconds for all tool calls of one turn."""


TurnToolTimeoutS1: TypeAlias = None
"""Most seconds for all tool calls of one turn."""


ToolTimeoutS: TypeAlias = float
"""Most seconds for one tool call."""


ToolTimeoutS1: TypeAlias = None
"""Most seconds for one tool call."""


ModelAttempts: TypeAlias = int
"""Attempts of one model call."""


ModelAttempts1: TypeAlias = None
"""Attempts of one model call."""


ModelRetryS: TypeAlias = float
"""Seconds that the attempts of one model call may wait in all."""


ModelRetryS1: TypeAlias = None
"""Seconds that the attempts of one model call may wait in all."""


class LimitsBody(TypedDict):
    """Limits of runs. Absent and null leave the default; in a PATCH null removes a limit."""

    max_turns: NotRequired[MaxTurns | MaxTurns1]
    """Turns of one run: model calls whose tool calls are executed."""
    max_tool_calls: NotRequired[MaxToolCalls | MaxToolCalls1]
    """Tool calls of one run."""
    max_calls_per_turn: NotRequired[MaxCallsPerTurn | MaxCallsPerTurn1]
    """Executed tool calls of one reply; the others get a text."""
    max_tokens: NotRequired[MaxTokens | MaxTokens1]
    """Input and output tokens together."""
    max_cost_usd: NotRequired[str | None]
    """Most that one run may cost, in USD. Requires models with a known price."""
    context_tokens: NotRequired[ContextTokens | ContextTokens1]
    """Size to which the context is trimmed."""
    timeout_s: NotRequired[TimeoutS | TimeoutS1]
    """Active time of one run, in seconds."""
    turn_tool_timeout_s: NotRequired[TurnToolTimeoutS | TurnToolTimeoutS1]
    """Most seconds for all tool calls of one turn."""
    tool_timeout_s: NotRequired[ToolTimeoutS | ToolTimeoutS1]
    """Most seconds for one tool call."""
    model_attempts: NotRequired[ModelAttempts | ModelAttempts1]
    """Attempts of one model call."""
    model_retry_s: NotRequired[ModelRetryS | ModelRetryS1]
    """Seconds that the attempts of one model call may wait in all."""


class LimitsView(TypedDict):
    """Limits as configured; null where unset."""

    max_turns: int | None
    """Turns of one run: model calls whose tool calls are executed."""
    max_tool_calls: int | None
    """Tool calls of one run."""
    max_calls_per_turn: int | None
    """Executed tool calls of one reply; the others get a text."""
    max_tokens: int | None
    """Input and output tokens together."""
    max_cost_usd: float | None
    """Most that one run may cost, in USD. Requires models with a known price."""
    context_tokens: int | None
    """Size to which the context is trimmed."""
    timeout_s: float | None
    """Active time of one run, in seconds."""
    turn_tool_timeout_s: float | None
    """Most seconds for all tool calls of one turn."""
    tool_timeout_s: float | None
    """Most seconds for one tool call."""
    model_attempts: int | None
    """Attempts of one model call."""
    model_retry_s: float | None
    """Seconds that the attempts of one model call may wait in all."""


McpFailureKind: TypeAlias = Literal['server_error', 'timeout', 'not_connected', 'connection_lost', 'too_large', 'invalid_reply', 'needs_auth', 'busy', 'disabled', 'not_installed', 'definition_changed']
"""Enum where members are also (and must be) strings"""


class McpRegistryView(TypedDict):
    """A configured registry."""

    name: str
    """Its name in the settings."""


McpServerKind: TypeAlias = Literal['npm', 'python', 'oci', 'custom', 'sse', 'http', 'a2a']
"""How a server is run or reached. The values are part of the public contract."""


class McpToolView(TypedDict):
    """A tool as its server describes it; `model_name` is its name for models."""

    name: str
    """Name of the tool at its server."""
    model_name: str
    """Name of the tool as models see it."""
    description: str
    """Description of the tool."""
    parameters: dict[str, Any]
    """JSON Schema of its arguments."""
    output_schema: dict[str, Any] | None
    """JSON Schema of its structured results; null if it has none."""
    read_only_hint: bool
    """The server says that the tool changes nothing."""
    idempotent_hint: bool
    """The server says that repeating a call changes nothing more."""
    destructive_hint: bool | None
    """The server says whether the tool may delete or overwrite; null if it does not say."""


class MessageDeltaEvent(TypedDict):
    """A piece of the model's text."""

    seq: int
    """Number of the event in its run: from 1, without gaps."""
    run_id: str
    """Id of the run."""
    at: str
    """Time of the event."""
    type: Literal['message.delta']
    """Type of the event."""
    message_id: str
    """Id of the message."""
    text: str
    """The piece."""


class MessageDiscardedEvent(TypedDict):
    """The streamed part of a message is discarded: the message will not be completed."""

    seq: int
    """Number of the event in its run: from 1, without gaps."""
    run_id: str
    """Id of the run."""
    at: str
    """Time of the event."""
    type: Literal['message.discarded']
    """Type of the event."""
    message_id: str
    """Id of the message."""
    reason: str
    """Why it is discarded."""
    usage: NotRequired[CallUsageView]
    """Estimated consumption of the model call."""


MissedFires: TypeAlias = Literal['skip', 'run_once']
"""
How triggers are handled that were due while no process executed runs. The values are part of
the public contract.
"""


class ModelNamesView(TypedDict):
    """Models as the provider lists them, which may be more than the key may use."""

    data: list[str]
    """Names as `PROVIDER:NAME`, at most 2000."""


class ModelRetryingEvent(TypedDict):
    """The model is called again, or the next one is."""

    seq: int
    """Number of the event in its run: from 1, without gaps."""
    run_id: str
    """Id of the run."""
    at: str
    """Time of the event."""
    type: Literal['model.retrying']
    """Type of the event."""
    model: str
    """The model that is called next, as `PROVIDER:NAME`."""
    attempt: int
    """Number of the next attempt."""
    wait_s: float
    """Seconds until then."""


Temperature: TypeAlias = float
"""Sampling temperature."""


Temperature1: TypeAlias = None
"""Sampling temperature."""


TopP: TypeAlias = float
"""Share of the most probable tokens that are sampled from."""


TopP1: TypeAlias = None
"""Share of the most probable tokens that are sampled from."""


MaxOutputTokens: TypeAlias = int
"""Most tokens of one answer, reasoning included."""


MaxOutputTokens1: TypeAlias = None
"""Most tokens of one answer, reasoning included."""


ThinkingBudget: TypeAlias = int
"""In tokens, for models that take one instead of an effort."""


ThinkingBudget1: TypeAlias = None
"""In tokens, for models that take one instead of an effort."""


ServiceTier: TypeAlias = str
"""The provider's class of service."""


ServiceTier1: TypeAlias = None
"""The provider's class of service."""


Seed: TypeAlias = int
"""Seed of the sampling."""


Seed1: TypeAlias = None
"""Seed of the sampling."""


MultitaskStrategy: TypeAlias = Literal['enqueue', 'reject', 'interrupt', 'rollback']
"""How a new run treats unfinished runs of its thread."""


class NodeBody(TypedDict):
    """A node; `config` depends on its kind."""

    id: str
    """Id of the node, unique in the workflow."""
    kind: str
    """entrypoint, agent, http_request, mcp_server, native_tool, transform, condition or human_input."""
    mode: NotRequired[str]
    """normal or tool."""
    config: NotRequired[dict[str, Any]]
    """Configuration; its fields depend on the kind."""


class NodeErrorView(TypedDict):
    """Why a node, or a run, failed."""

    code: str
    """Code of the error."""
    detail: str
    """The error as a sentence."""


class NodeFailedEvent(TypedDict):
    """A node failed."""

    seq: int
    """Number of the event in its workflow run: from 1, without gaps."""
    workflow_run_id: str
    """Id of the workflow run."""
    at: str
    """Time of the event."""
    type: Literal['node.failed']
    """Type of the event."""
    node_id: str
    """Id of the node."""
    error: NodeErrorView
    """Why it failed."""


NodeKind: TypeAlias = Literal['entrypoint', 'agent', 'http_request', 'mcp_server', 'native_tool', 'transform', 'condition', 'human_input']
"""The kinds of nodes. The values are part of the public contract."""


NodeMode: TypeAlias = Literal['normal', 'tool']
"""
`normal`: executed as a step. `tool`: registers itself, when executed, as a tool of the
agents that it is wired to.
"""


class NodeReadyEvent(TypedDict):
    """A tool-mode node is a tool of this run now."""

    seq: int
    """Number of the event in its workflow run: from 1, without gaps."""
    workflow_run_id: str
    """Id of the workflow run."""
    at: str
    """Time of the event."""
    type: Literal['node.ready']
    """Type of the event."""
    node_id: str
    """Id of the node."""


class NodeResumedEvent(TypedDict):
    """A node resumed."""

    seq: int
    """Number of the event in its workflow run: from 1, without gaps."""
    workflow_run_id: str
    """Id of the workflow run."""
    at: str
    """Time of the event."""
    type: Literal['node.resumed']
    """Type of the event."""
    node_id: str
    """Id of the node."""
    attempt: int
    """Number of the attempt, from 1."""


class NodeRetryingEvent(TypedDict):
    """A node failed and will be tried again."""

    seq: int
    """Number of the event in its workflow run: from 1, without gaps."""
    workflow_run_id: str
    """Id of the workflow run."""
    at: str
    """Time of the event."""
    type: Literal['node.retrying']
    """Type of the event."""
    node_id: str
    """Id of the node."""
    attempt: int
    """Number of the attempt, from 1."""
    error: NodeErrorView
    """Why it failed."""


class NodeSkippedEvent(TypedDict):
    """Nothing led to a node."""

    seq: int
    """Number of the event in its workflow run: from 1, without gaps."""
    workflow_run_id: str
    """Id of the workflow run."""
    at: str
    """Time of the event."""
    type: Literal['node.skipped']
    """Type of the event."""
    node_id: str
    """Id of the node."""


class NodeStartedEvent(TypedDict):
    """A node is executed."""

    seq: int
    """Number of the event in its workflow run: from 1, without gaps."""
    workflow_run_id: str
    """Id of the workflow run."""
    at: str
    """Time of the event."""
    type: Literal['node.started']
    """Type of the event."""
    node_id: str
    """Id of the node."""
    attempt: int
    """Number of the attempt, from 1."""


NodeStatus: TypeAlias = Literal['pending', 'running', 'waiting', 'ready', 'succeeded', 'failed', 'skipped', 'cancelled']
"""The status of a node in a workflow run. The values are part of the public contract."""


class NodeSucceededEvent(TypedDict):
    """A node has its output."""

    seq: int
    """Number of the event in its workflow run: from 1, without gaps."""
    workflow_run_id: str
    """Id of the workflow run."""
    at: str
    """Time of the event."""
    type: Literal['node.succeeded']
    """Type of the event."""
    node_id: str
    """Id of the node."""
    handle: NotRequired[str]
    """The branch that a condition took."""


class NodeView(TypedDict):
    """A node as written."""

    id: str
    """Id of the node, unique in the workflow."""
    kind: str
    """entrypoint, agent, http_request, mcp_server, native_tool, transform, condition or human_input."""
    mode: str
    """normal or tool."""
    config: dict[str, Any]
    """Configuration; its fields depend on the kind."""


class NodeWaitingEvent(TypedDict):
    """A node waits for a person, or for the run of its agent."""

    seq: int
    """Number of the event in its workflow run: from 1, without gaps."""
    workflow_run_id: str
    """Id of the workflow run."""
    at: str
    """Time of the event."""
    type: Literal['node.waiting']
    """Type of the event."""
    node_id: str
    """Id of the node."""
    run_id: str | None
    """The run of an agent node; null if the node waits for a person."""
    asked: Any
    """For a person: `{prompt, schema}`, with `url` for an account to connect there. For a run: `{calls}`, as in its `pending`."""


OnBlock: TypeAlias = Literal['inform', 'halt']
"""The effect of a blocked call on its run: the model is informed, or the run ends."""


OnUnknownOutcome: TypeAlias = Literal['inform', 'require_approval']
"""
How a call is handled that may have been sent before a crash and must not be repeated.

The model is informed that the outcome is unknown, or a person decides whether the call is sent
again.
"""


NodeIds: TypeAlias = list[str]
"""With `workflow_run_id`: tool nodes wired to one agent, under its policies; or an agent node, for all tools wired to it. `[]` selects nothing."""


NodeIds1: TypeAlias = None
"""With `workflow_run_id`: tool nodes wired to one agent, under its policies; or an agent node, for all tools wired to it. `[]` selects nothing."""


class OrganizationKeyBody(TypedDict):
    """An additional admin key of an organization."""

    name: str
    """Name of the key."""


OutputValidation: TypeAlias = Literal['off', 'warn', 'enforce']
"""How `structuredContent` that does not match the tool's `outputSchema` is handled."""


PassingPolicy: TypeAlias = Literal['decline', 'pass']
"""
How a server's request for sampling or roots is handled. Only gateway clients can
answer it.
"""


class PendingView(TypedDict):
    """
    A node that waits: for a person, with `{prompt, schema}`, or for its agent's run `run_id`,
    with `{calls}` as in that run's `pending`.
    """

    node_id: str
    """Id of the node."""
    run_id: str | None
    """The run of an agent node; null if the node waits for a person."""
    asked: Any
    """For a person: `{prompt, schema}`, with `url` for an account to connect there. For a run: `{calls}`, as in its `pending`."""


Permission: TypeAlias = Literal['runs.start', 'runs.control', 'approvals.decide', 'threads.release', 'servers.operate', 'gateway.open', 'webhooks.retry', 'agents.manage', 'servers.manage', 'workflows.manage', 'schedules.manage', 'models.manage', 'secrets.manage', 'webhooks.manage', 'organization.manage', 'keys.manage', 'users.manage', 'groups.manage', 'roles.manage']
"""
One kind of act. Every role reads. Identity providers and directories need the role `admin`,
because they decide who gets which role.
"""


class PermissionView(TypedDict):
    """A permission."""

    name: Permission
    """Name of the permission."""
    description: str
    """What it permits."""


class PlannedNodeView(TypedDict):
    """
    A node as executed: after the nodes in `after`. `connected_tool_node_ids` are exactly an
    agent's tools.
    """

    id: str
    """Id of the node."""
    kind: NodeKind
    """Kind of the node."""
    mode: NodeMode
    """Mode of the node."""
    join: JoinStrategy
    """When it starts, with several incoming edges."""
    after: list[str]
    """Ids of the nodes that it comes after."""
    connected_tool_node_ids: list[str]
    """Ids of the tool nodes of an agent node: exactly its tools."""


PolicyLayer: TypeAlias = Literal['built-in', 'organization', 'agent', 'run', 'caller']
"""
The policy layers, in order of evaluation. A run has only an allowlist. `caller` is the agent
that called this one as a tool (`domain/policy/caller.py`).
"""


class Problem(TypedDict):
    """
    Why a request failed. `code` is stable and machine-readable, `detail` a sentence for a
    person.
    """

    type: str
    """`urn:dragoman:problem:` and the code."""
    title: str
    """Name of the HTTP status."""
    status: int
    """HTTP status."""
    detail: str
    """What failed, as a sentence."""
    code: str
    """Code of the failure, for programs."""
    errors: NotRequired[list[Fault]]
    """Faults in the input."""
    reference: NotRequired[str]
    """Where the service's log has the details of an internal error."""


ProviderCheckName: TypeAlias = Literal['credentials', 'model', 'tool_call', 'streaming']
"""What is checked. The values are part of the public contract."""


ProviderCheckOutcome: TypeAlias = Literal['ok', 'failed', 'skipped']
"""The values are part of the public contract."""


class ProviderErrorView(TypedDict):
    """
    The model provider's error: HTTP status, code or type, and message, without secrets, cut
    at 2 KiB.
    """

    status: int | None
    """HTTP status; null if there was none."""
    code: str | None
    """Code or type of the error; null if there was none."""
    message: str
    """Message, without secrets, at most 2 KiB."""


ProviderKind: TypeAlias = Literal['openai', 'alibaba', 'anthropic', 'azure', 'bedrock', 'cerebras', 'cohere', 'crusoe', 'deepseek', 'fireworks', 'github-copilot', 'google', 'groq', 'heroku', 'huggingface', 'meta', 'mistral', 'moonshotai', 'nebius', 'ollama', 'openrouter', 'ovhcloud', 'sambanova', 'snowflake', 'together', 'vercel', 'vertex', 'xai', 'zai']
"""
The vendor of a provider's API. All but `anthropic` and `vertex` are asked as OpenAI is,
unless their wire is `native`. The values are part of the public contract.
"""


ProviderWire: TypeAlias = Literal['auto', 'responses', 'chat', 'native']
"""
The API of a provider. The values are part of the public contract.

- `auto`: `responses` at OpenAI itself, `native` at Vertex AI and at addresses of Bedrock
  without a path, `chat` elsewhere.
- `native`: the vendor's own API: `generateContent` of Gemini, Converse of Bedrock.
"""


class QuarantineView(TypedDict):
    """Why a thread rejects messages and runs until it is released."""

    run_id: str
    """The run that the canary token halted."""
    canary_id: str
    """Id of the canary token."""
    at: str
    """Time of the quarantine."""


class QueueLineView(TypedDict):
    """The runs of an agent in a lane."""

    organization_id: str
    """Id of the organization."""
    agent_id: str
    """Id of the agent."""
    lane: Lane
    """Lane of the runs."""
    queued: int
    """Number of queued runs."""
    running: int
    """Number of runs in progress."""
    oldest_queued_at: str | None
    """When the oldest queued run was created; null without any."""


class QueueView(TypedDict):
    """Queued runs and runs in progress."""

    queued: int
    """Number of queued runs."""
    running: int
    """Number of runs in progress."""
    oldest_queued_at: str | None
    """When the oldest queued run was created; null without any."""
    lines: list[QueueLineView]
    """The entries of the page, in the order of the list."""


class RateLimitBody(TypedDict):
    """A rate: `calls` per `per_s` seconds. After a pause, a burst of `calls` is allowed."""

    calls: int
    """Calls per period; after a pause, a burst of as many is allowed."""
    per_s: float
    """Length of the period in seconds."""


class RateLimitView(TypedDict):
    """`calls` per `per_s` seconds."""

    calls: int
    """Calls per period; after a pause, a burst of as many is allowed."""
    per_s: float
    """Length of the period in seconds."""


class ReadResourceBody(TypedDict):
    """A resource of the server, and the agent under whose policy it is read."""

    agent: str
    """The agent's id or name."""
    uri: str
    """URI of the resource, as the server names it."""


class ReasoningDeltaEvent(TypedDict):
    """
    A piece of the reasoning that the model shows before or beside the text of a message, of
    agents with `reasoning_summary`. It is in no message.
    """

    seq: int
    """Number of the event in its run: from 1, without gaps."""
    run_id: str
    """Id of the run."""
    at: str
    """Time of the event."""
    type: Literal['reasoning.delta']
    """Type of the event."""
    message_id: str
    """Id of the message."""
    text: str
    """The piece."""


class RegistryInputView(TypedDict):
    """A value that is chosen when the server is added."""

    name: str
    """Name of the value, such as env.TOKEN."""
    description: str
    """The publisher's words."""
    is_required: bool
    """Whether the server cannot be added without it, unless it has a default."""
    is_secret: bool
    """Whether the value is a secret."""
    default: str | None
    """The value if none is given."""
    choices: list[str]
    """The only possible values; empty for any."""


class RegistrySettingView(TypedDict):
    """A value that the publisher wrote, with or without inputs in it."""

    name: str
    """Where it goes, such as url.url or env.NODE_OPTIONS."""
    value: str
    """The value, with names of inputs in braces."""


class RegistryVersionView(TypedDict):
    """Whether a registry has a newer version of a server's entry."""

    registry_entry: str | None
    """The server's entry; null for a server from no registry."""
    newer_version: str | None
    """The latest version, if it is another one."""


class RejectDefinitionBody(TypedDict):
    """The `digest` of the reviewed definition, and the `reason`, which people see."""

    digest: NotRequired[str | None]
    """Digest of the definition, as the list of tools has it."""
    reason: NotRequired[str | None]
    """Why; shown to people, not to models."""


class RejectionView(TypedDict):
    """A person's refusal of a tool's definition."""

    by: str
    """Id of the API key or user."""
    at: str
    """When."""
    reason: str | None
    """Why; null if not said."""


class ReplayWorkflowRunBody(TypedDict):
    """
    The node from which a new run executes; nodes before it keep the outputs of the earlier
    run.
    """

    node_id: str
    """Id of the node, a step of the newest version."""
    alone: NotRequired[bool]
    """Whether only this node and its tools are executed."""


class RequeueRunsBody(TypedDict):
    """The runs to take from their workers."""

    idle_s: float
    """Only runs without a new event for so many seconds."""
    agent_id: NotRequired[str | None]
    """Only runs of this agent: its id or name."""


class RequeuedRunsView(TypedDict):
    """Runs that other workers execute now."""

    run_ids: list[str]
    """Ids of the requeued runs."""


class RevokedApiKeyView(TypedDict):
    """A revoked key, and how many of its runs, workflow runs and gateway sessions end with it."""

    id: str
    """Id of the key."""
    cancelled_runs: int
    """Number of its runs that are cancelled."""
    cancelled_workflow_runs: int
    """Number of its workflow runs that are cancelled."""
    revoked_gateway_sessions: int
    """Number of its gateway sessions that are revoked."""


Role: TypeAlias = Literal['viewer', 'runner', 'operator', 'admin']
"""
The roles of one organization. Managing organizations needs a platform key, not a role.

- `viewer` reads.
- `runner` also creates threads, sources and runs, and cancels or resumes its own runs.
- `operator` also does so with any run, decides approvals, releases threads, connects servers
  and opens gateway sessions.
- `admin` also changes the organization's configuration.
"""


class RoleBody(TypedDict):
    """A custom role."""

    name: str
    """Name of the role. Keys, users and rules of identity providers name it as `custom_role`."""
    description: NotRequired[str]
    """What the role is for."""
    permissions: list[Permission]
    """What its holders may do, besides reading."""


class RoleRuleBody(TypedDict):
    """People with this value in a claim get this role."""

    claim: str
    """Name of the claim, or a path with dots. `email` matches only verified addresses."""
    value: str
    """The claim, or an item of it, equals this value; `*` matches any."""
    role: NotRequired[Role]
    """Role of these people. Required, unless there is a `custom_role`."""
    organization_id: NotRequired[str | None]
    """Organization of these people; null: that of the identity provider. Only with `installation`."""
    custom_role: NotRequired[str | None]
    """The custom role in place of `role`, which is `viewer` then; null: none."""


class RoleRuleView(TypedDict):
    """A rule: people with this value in a claim get this role."""

    claim: str
    """Name of the claim, or a path with dots. `email` matches only verified addresses."""
    value: str
    """The claim, or an item of it, equals this value; `*` matches any."""
    role: Role
    """Role of these people."""
    organization_id: str | None
    """Organization of these people; null: that of the identity provider. Only with `installation`."""
    custom_role: str | None
    """The custom role in place of `role`, which is `viewer` then; null: none."""


class RoleView(TypedDict):
    """A custom role."""

    name: str
    """Name of the role. Keys, users and rules of identity providers name it as `custom_role`."""
    description: str
    """What the role is for."""
    permissions: list[Permission]
    """What its holders may do, besides reading."""
    version: int
    """Counts the changes, from 1. `If-Match` takes it."""
    created_at: str
    """Time of the creation."""
    updated_at: str
    """Time of the last change."""


class RotationView(TypedDict):
    """The result of one step; the rotation is complete when nothing remains."""

    reencrypted: int
    """Number of values that this step encrypted with the newest key."""
    remaining: int
    """Number of values that are still to be encrypted with it."""


class RuleSourceView(TypedDict):
    """
    Origin of a rule: `built-in`, `organization`, `agent` or `run`, and the pattern of the
    rule.
    """

    layer: PolicyLayer
    """Layer of the rule."""
    pattern: str | None
    """Pattern of the rule; null if it is no rule's."""


class RunCancelledEvent(TypedDict):
    """Cancelled by a request, or by the next run of the thread."""

    seq: int
    """Number of the event in its run: from 1, without gaps."""
    run_id: str
    """Id of the run."""
    at: str
    """Time of the event."""
    type: Literal['run.cancelled']
    """Type of the event."""


class RunCompletedEvent(TypedDict):
    """Ended with an answer."""

    seq: int
    """Number of the event in its run: from 1, without gaps."""
    run_id: str
    """Id of the run."""
    at: str
    """Time of the event."""
    type: Literal['run.completed']
    """Type of the event."""


class RunCountView(TypedDict):
    """A number of runs, counted up to 1,000."""

    count: int
    """Number of runs, at most 1,000."""
    has_more: bool
    """Whether there are more than 1,000."""


class RunErrorView(TypedDict):
    """
    Why a run failed. `provider_error` is shown to operators and admins, if the model provider
    sent one.
    """

    code: str
    """Code of the error."""
    detail: str
    """The error as a sentence."""
    provider_error: NotRequired[ProviderErrorView]
    """The model provider's error, if it sent one. Shown to operators and admins."""


RunEventType: TypeAlias = Literal['run.queued', 'run.started', 'turn.started', 'message.delta', 'reasoning.delta', 'message.completed', 'message.discarded', 'model.retrying', 'tool.started', 'tool.progress', 'tool.executed', 'tool.failed', 'tool.blocked', 'run.requires_action', 'run.resumed', 'run.halted', 'run.completed', 'run.incomplete', 'run.failed', 'run.cancelled']
"""Kinds of events; the values are public."""


class RunFailedEvent(TypedDict):
    """Ended by an error."""

    seq: int
    """Number of the event in its run: from 1, without gaps."""
    run_id: str
    """Id of the run."""
    at: str
    """Time of the event."""
    type: Literal['run.failed']
    """Type of the event."""
    error: ErrorView
    """Why it failed."""


class RunHaltedEvent(TypedDict):
    """Ended by policy, or by a canary token."""

    seq: int
    """Number of the event in its run: from 1, without gaps."""
    run_id: str
    """Id of the run."""
    at: str
    """Time of the event."""
    type: Literal['run.halted']
    """Type of the event."""
    reason: str
    """Code of the reason."""
    canary_id: NotRequired[str]
    """Id of the canary token."""
    tool_call_id: NotRequired[str]
    """Id of the tool call that ended it."""


class RunIncompleteEvent(TypedDict):
    """
    Ended without a whole answer: at a limit, or because the model's last reply was cut, filtered
    or refused.
    """

    seq: int
    """Number of the event in its run: from 1, without gaps."""
    run_id: str
    """Id of the run."""
    at: str
    """Time of the event."""
    type: Literal['run.incomplete']
    """Type of the event."""
    reason: IncompleteReason
    """The limit, or why the last reply is incomplete."""


RunOrder: TypeAlias = Literal['newest', 'oldest', 'longest', 'costliest', 'most_tokens']
"""
Orders of runs; the values are public. Those by figures begin with the largest, and have the
`SEARCHED` newest runs of the organization (before `until`): no index has them. Equal ones are
ordered by id.
"""


class RunQueuedEvent(TypedDict):
    """The run waits for a worker."""

    seq: int
    """Number of the event in its run: from 1, without gaps."""
    run_id: str
    """Id of the run."""
    at: str
    """Time of the event."""
    type: Literal['run.queued']
    """Type of the event."""
    thread_id: str
    """Id of the thread."""
    agent_id: str
    """Id of the agent."""


class RunResumedEvent(TypedDict):
    """Nothing is pending any more; the run is queued again."""

    seq: int
    """Number of the event in its run: from 1, without gaps."""
    run_id: str
    """Id of the run."""
    at: str
    """Time of the event."""
    type: Literal['run.resumed']
    """Type of the event."""
    client_request: NotRequired[dict[str, Any]]
    """What answers in the protocol of its client repeat of the request."""


class RunStartedEvent(TypedDict):
    """A worker has claimed the run."""

    seq: int
    """Number of the event in its run: from 1, without gaps."""
    run_id: str
    """Id of the run."""
    at: str
    """Time of the event."""
    type: Literal['run.started']
    """Type of the event."""
    attempt: int
    """Counts the claims, from 1."""
    agent_version: int
    """Version of the agent."""


RunStatus: TypeAlias = Literal['queued', 'in_progress', 'requires_action', 'completed', 'incomplete', 'failed', 'cancelled', 'halted']
"""The status of a run; the values are public."""


class RunStreamEnd(TypedDict):
    """
    The last item of a stream: the run has ended or requires action. It is not stored and has no
    id.
    """

    type: Literal['end']
    """Type of the event."""
    status: RunStatus
    """Status of the run."""


class RunUsageView(TypedDict):
    """Consumption of a run."""

    input_tokens: int
    """Input tokens, cached ones included."""
    output_tokens: int
    """Output tokens, those of reasoning included."""
    cached_tokens: int
    """Input tokens that the provider had cached."""
    reasoning_tokens: int
    """Output tokens that the model spent on reasoning."""
    cost_usd: float
    """Cost in USD of the calls with a known price."""
    turns: int
    """Number of model calls."""
    tool_calls: int
    """Number of executed tool calls."""
    estimated: bool
    """Whether a provider reported no tokens, or a call was interrupted."""


class SavedWorkflowView(TypedDict):
    """A saved workflow; `warnings` name valid but unusual parts."""

    id: str
    """Id of the workflow."""
    name: str
    """Unique in the organization."""
    nodes: list[NodeView]
    """Nodes of the graph."""
    edges: list[EdgeView]
    """Edges of the graph."""
    plan: list[PlannedNodeView] | None
    """Its nodes in an executable order; null if this version of Dragoman no longer accepts the workflow."""
    text: str | None
    """The YAML that this version was saved with, with its comments; it has the same name, nodes and edges. Null if there is none, and in lists."""
    team: str | None
    """Name of the group that it belongs to: others neither see nor run it. Null: it belongs to the organization."""
    version: int
    """Counts the changes, from 1. `If-Match` takes it."""
    created_at: str
    """Time of the creation."""
    updated_at: str
    """Time of the last change."""
    warnings: list[FaultView]
    """Valid but unusual parts."""


class ScheduleErrorView(TypedDict):
    """Why the last trigger started no run."""

    code: str
    """Code of the error."""
    detail: str
    """The error as a sentence."""
    at: str
    """Time of the trigger."""


class ScheduleWebhookView(TypedDict):
    """
    The webhook of the runs. `receiver` is the host and port of its URL; the rest is never
    shown.
    """

    receiver: str
    """Host and port of its URL; the rest is never shown."""
    secret: str | None
    """Name of the signing secret; null: the organization's key."""
    events: list[RunEventType]
    """Types of the events that are sent."""


class ScimTokenView(TypedDict):
    """A new SCIM token."""

    token: str
    """The token: `dgs_…`. It is shown only once, and replaces the one before."""
    path: str
    """Path of SCIM, below the service's address."""


class SecretReference(TypedDict):
    """A reference to a named secret, read on use."""

    secret: str
    """The name of a secret."""


class SecretReferenceView(TypedDict):
    """A reference to a named secret."""

    secret: str
    """The name of a secret."""


class SecretView(TypedDict):
    """A secret without its value."""

    name: str
    """Name of the secret; `{'secret': NAME}` refers to it."""
    created_at: str
    """Time of the creation."""
    updated_at: str
    """Time of the last change."""


class ServerContentView(TypedDict):
    """What the server answered."""

    result: dict[str, Any]
    """The result of MCP: `contents` of a resource, `messages` of a prompt. URIs are those that clients of the gateway see."""


class ServerContentsView(TypedDict):
    """What a server lists for an agent, under its own names. The entries are objects of MCP."""

    resources: list[dict[str, Any]]
    """Its resources: `uri`, `name`, `title`, `mimeType` and others."""
    resource_templates: list[dict[str, Any]]
    """Templates of URIs: `uriTemplate`, `name` and others."""
    prompts: list[dict[str, Any]]
    """Its prompts: `name`, `arguments` and others."""


class ServerInfoView(TypedDict):
    """The server's description of itself."""

    name: str
    """Name that the server gives itself."""


class ServerLogsView(TypedDict):
    """Output of the installation, and the end of the server's error output."""

    text: str
    """Output of the installation, and the end of the server's error output."""


ServerNetwork: TypeAlias = Literal['none', 'allowlist', 'full']
"""The network of a started server. The values are part of the public contract."""


ServerState: TypeAlias = Literal['not_installed', 'installing', 'disconnected', 'connecting', 'connected', 'unhealthy', 'needs_auth', 'disabled', 'error']
"""State of a server in this process. Values are part of the public contract."""


SessionKind: TypeAlias = Literal['console', 'client', 'impersonation']
"""Enum where members are also (and must be) strings"""


class SessionView(TypedDict):
    """
    A browser that is signed in to the console, a client that a person admitted at the gateway,
    or an impersonation.
    """

    id: str
    """Id of the session; that of a client is a gateway session's."""
    kind: SessionKind
    """A browser in the console, an OAuth client at the gateway, or a support session that acts as the holder."""
    holder: str
    """The user or API key that signed in, or that admitted the client."""
    client_name: str | None
    """What the client calls itself; null for browsers."""
    actor: str | None
    """The user or key that acts as the holder; null for other kinds."""
    reason: str | None
    """Why it acts as the holder; null for other kinds."""
    address: str | None
    """Address that the sign-in came from; null for clients."""
    user_agent: str | None
    """What the browser said of itself at the sign-in; null for clients."""
    created_at: str
    """Time of the creation."""
    last_seen_at: str | None
    """Last request, up to five minutes late; null for clients."""
    expires_at: str
    """From this time on it is invalid."""


class SetSecretBody(TypedDict):
    """A named secret. The value is write-only."""

    name: str
    """[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}; `{"secret": NAME}` refers to it."""
    value: str
    """Up to 64 KiB of text. Write-only."""


class SignInLinkView(TypedDict):
    """A link that signs a person in to the console, once."""

    path: str
    """Path of the link, below the service's address."""
    expires_at: str
    """From this time on it is invalid."""


class SkippedToolView(TypedDict):
    """A tool that could not be registered."""

    name: str
    """Name of the tool at its server."""
    reason: str
    """Why it could not be registered."""


SourceKind: TypeAlias = Literal['text', 'markdown', 'csv', 'html', 'pdf', 'file']
"""
How a source is read. The values are part of the public contract. `file`: stored as bytes,
not searchable.
"""


class SourcePart(TypedDict):
    """A source of the thread, attached as it is when the run starts."""

    type: Literal['source']
    """Kind of the part."""
    source_id: str
    """Id of a source of the thread."""


class SourceView(TypedDict):
    """
    A file of a thread. `kind`: text, markdown, csv, html, pdf or file. `searchable`: whether
    `source_query` covers it; `problem` says why not, or why only in part. `run_id` names the run
    that created it.
    """

    id: str
    """Id of the source."""
    thread_id: str
    """Id of its thread."""
    name: str
    """Name of the file."""
    kind: SourceKind
    """How it is read."""
    size: int
    """Size in bytes."""
    sha256: str
    """SHA-256 of the file, in hex."""
    searchable: bool
    """Whether `source_query` covers it."""
    problem: str | None
    """Why it is not searchable, or only in part; null if it is."""
    run_id: str | None
    """The run that created it; null for an upload."""
    created_at: str
    """Time of the creation."""


class StartWorkflowRunBody(TypedDict):
    """The input of a workflow run."""

    input: NotRequired[Any]
    """Any JSON value that fits the entrypoint's schema."""


SubjectToken: TypeAlias = Literal['id_token', 'access_token']
"""
The token of a person's sign-in that is exchanged. The values are part of the public
contract.
"""


class TestFailureView(TypedDict):
    """Why a test failed; `stderr` is the end of a started server's error output."""

    code: McpFailureKind
    """Kind of the failure."""
    detail: str
    """The failure as a sentence."""
    stderr: NotRequired[str]
    """End of a started server's error output."""


class TestModelProviderBody(TypedDict):
    """Which model is tested; without one, the first that an agent uses."""

    model: NotRequired[str | None]
    """Its name without the provider."""


class TestResultView(TypedDict):
    """The outcome of a test."""

    ok: bool
    """Whether the server works."""
    declared: bool
    """Whether its tools are declared. Then their definitions were checked, and nothing was sent to the server."""
    protocol_version: str | None
    """Version of the protocol; null if the test failed, or the tools are declared."""
    server_info: ServerInfoView | None
    """The server's description of itself; null if the test failed."""
    tools: list[McpToolView]
    """Tools of the server."""
    skipped: list[SkippedToolView]
    """Tools that could not be registered."""
    latency_ms: int
    """Duration of the test."""
    error: TestFailureView | None
    """Why the test failed; null if it did not."""


class TextPart(TypedDict):
    """Text."""

    type: Literal['text']
    """Kind of the part."""
    text: str
    """The text."""


class TextView(TypedDict):
    """Text."""

    type: Literal['text']
    """Kind of the part."""
    text: str
    """The text."""


class ThreadView(TypedDict):
    """A thread, without its messages."""

    id: str
    """Id of the thread."""
    metadata: dict[str, Any]
    """Data of the client; Dragoman does not use it."""
    created_at: str
    """Time of the creation."""
    quarantine: QuarantineView | None
    """Why it rejects messages and runs until it is released; null if it does not."""
    forked_from: ForkView | None
    """The thread that it was forked from; null if it is no fork."""
    team: str | None
    """Name of the group that it belongs to, with its runs: others do not see them. Null: it belongs to the organization, until an agent of a group runs on it."""


class TlsBody(TypedDict):
    """
    TLS with a remote server: a client certificate with its key, or certificate authorities, or
    both.
    """

    certificate: NotRequired[str | None]
    """Client certificate in PEM, with those between it and its authority; null: none is shown."""
    private_key: NotRequired[str | SecretReference | None]
    """Private key of the certificate, in PEM without a password. Write-only, or the name of a secret."""
    ca: NotRequired[str | None]
    """Certificate authorities in PEM, in place of those of the system; null: those of the system."""


class TlsView(TypedDict):
    """TLS with a remote server."""

    certificate: str | None
    """Client certificate in PEM, with those between it and its authority; null: none is shown."""
    private_key: str | SecretReferenceView | None
    """Private key of the certificate, in PEM without a password. Write-only, or the name of a secret."""
    ca: str | None
    """Certificate authorities in PEM, in place of those of the system; null: those of the system."""
    subject: str | None
    """Subject of the client certificate."""
    expires_at: str | None
    """When the client certificate expires."""


class TokenExchangeAuthBody(TypedDict):
    """
    OAuth token exchange (RFC 8693): the identity provider of each person exchanges their sign-in
    for a token of the server. Needs `credentials` `person`.
    """

    type: Literal['oauth_token_exchange']
    """Kind of the authentication."""
    client_id: NotRequired[str | None]
    """Default: the client that people sign in with."""
    client_secret: NotRequired[str | SecretReference | None]
    """Write-only. This, or `private_key`."""
    private_key: NotRequired[str | SecretReference | None]
    """Write-only: a private key in PEM (P-256, Ed25519 or RSA) that signs assertions (`private_key_jwt`), in place of a secret."""
    key_id: NotRequired[str | None]
    """Id of the key in assertions (`kid`), if the server needs one."""
    scopes: NotRequired[list[str]]
    """Default: what the identity provider gives."""
    issuer: NotRequired[str | None]
    """Another authorization server of the identity provider, at its origin."""
    audience: NotRequired[str | None]
    """Name of the server at the identity provider."""
    resource: NotRequired[str | None]
    """URL of the server at the identity provider. Default: its `url`, without `audience`."""
    subject_token: NotRequired[SubjectToken]
    """The token of the sign-in that is exchanged."""


ToolHealth: TypeAlias = Literal['available', 'quarantined', 'not_installed', 'installing', 'disconnected', 'connecting', 'connected', 'unhealthy', 'needs_auth', 'disabled', 'error']
"""
`available` for native tools, `quarantined` for MCP tools that await approval, else the state
of the tool's server (`ServerState`).
"""


ToolNames: TypeAlias = Literal['namespaced', 'original']
"""
How a session names MCP tools: with the names that models see, or, for a session with exactly
one server, with that server's names.
"""


class ToolProgressEvent(TypedDict):
    """A server reports progress of a tool call."""

    seq: int
    """Number of the event in its run: from 1, without gaps."""
    run_id: str
    """Id of the run."""
    at: str
    """Time of the event."""
    type: Literal['tool.progress']
    """Type of the event."""
    tool_call_id: str
    """Id of the tool call."""
    progress: float
    """Progress so far."""
    total: NotRequired[float]
    """Progress at the end."""
    message: NotRequired[str]
    """What the server is doing."""


class ToolResultBody(TypedDict):
    """
    The result of a client tool: any JSON value. For a call with an `elicitation`: `{action:
    accept | decline | cancel, content}`, where `content` fits the elicitation's schema.
    """

    tool_call_id: str
    """Id of the tool call."""
    result: Any
    """The result, any JSON value."""
    is_error: NotRequired[bool]
    """Whether the call failed."""


class ToolResultView(TypedDict):
    """The result of a tool call."""

    type: Literal['tool_result']
    """Kind of the part."""
    tool_id: str
    """Id of the tool call."""
    tool_name: str
    """Name of the tool as models see it."""
    result: str
    """Text of the result."""
    is_error: bool
    """Whether the call failed."""
    images: NotRequired[list[ImageView]]
    """Images of the result."""
    files: NotRequired[list[FileView]]
    """Files of the result."""


MaxResults: TypeAlias = int
"""Most results that one call may ask for."""


MaxResults1: TypeAlias = None
"""Most results that one call may ask for."""


MaxCalls: TypeAlias = int
"""Most calls per tool and run."""


MaxCalls1: TypeAlias = None
"""Most calls per tool and run."""


MaxResultBytes: TypeAlias = int
"""Bytes of a result that the model gets at most. Default: 65536."""


MaxResultBytes1: TypeAlias = None
"""Bytes of a result that the model gets at most. Default: 65536."""


TimeoutS2: TypeAlias = float
"""Most seconds for one call."""


TimeoutS3: TypeAlias = None
"""Most seconds for one call."""


ApprovalTtlS: TypeAlias = float
"""Seconds that an approval waits for its decision. Default: one day."""


ApprovalTtlS1: TypeAlias = None
"""Seconds that an approval waits for its decision. Default: one day."""


ApprovalsNeeded: TypeAlias = int
"""Number of different people who must approve. Default: 1."""


ApprovalsNeeded1: TypeAlias = None
"""Number of different people who must approve. Default: 1."""


ToolStanding: TypeAlias = Literal['allowed', 'asked_for', 'blocked', 'hidden']
"""
The policy outcome of a tool. Calls of a `hidden` tool are answered as calls of an unknown
tool.
"""


class ToolStartedEvent(TypedDict):
    """A tool call is recorded and about to be executed."""

    seq: int
    """Number of the event in its run: from 1, without gaps."""
    run_id: str
    """Id of the run."""
    at: str
    """Time of the event."""
    type: Literal['tool.started']
    """Type of the event."""
    tool_call_id: str
    """Id of the tool call."""
    name: str
    """Name of the tool as models see it."""
    params: dict[str, Any]
    """Arguments of the call."""


ToolType: TypeAlias = Literal['code_execution', 'website_content', 'send_email', 'create_calendar_event', 'internet_search', 'source_query', 'mcp_tool', 'agent', 'client_tool', 'client_state']
"""The tool kinds. Values are part of the public contract."""


class ToolUseView(TypedDict):
    """A tool call of the model."""

    type: Literal['tool_use']
    """Kind of the part."""
    id: str
    """Id of the tool call."""
    name: str
    """Name of the tool as models see it."""
    params: dict[str, Any]
    """Arguments of the call."""
    malformed: NotRequired[str]
    """Arguments that were not a JSON object, as the model wrote them."""
    elicitation: NotRequired[ElicitationView]
    """What the call's server requests, while it waits for an answer."""
    approval_id: NotRequired[str]
    """Id of the approval that the call waits for."""
    expires_at: NotRequired[str]
    """Time at which that approval expires."""
    reason: NotRequired[str]
    """Why the call requires an approval."""
    outcome_unknown: NotRequired[bool]
    """The call may have been sent before; approving sends it again."""


class ToolView(TypedDict):
    """
    A tool: `name` is its name for models, `server` the slug of its MCP server, `health` that
    server's state, `available` whether a call would be attempted now. Its definition is as of
    `as_of`, `age_s` seconds ago.
    """

    name: str
    """Name of the tool as models see it."""
    type: ToolType
    """Type of a native tool, or `mcp_tool`."""
    description: str
    """Description of the tool."""
    parameters: dict[str, Any]
    """JSON Schema of its arguments."""
    server: str | None
    """Slug of its MCP server; null for a native tool."""
    health: ToolHealth
    """Whether it can be called now, or why not."""
    available: bool
    """Whether a call would be attempted now."""
    as_of: str | None
    """Time of the server's last listing; null for a native tool."""
    age_s: float | None
    """Seconds since then."""


class ToolsView(TypedDict):
    """Tools; `next_cursor` is null on the last page."""

    data: list[ToolView]
    """The entries of the page, in the order of the list."""
    next_cursor: str | None
    """Cursor of the next page; null on the last one."""


class TurnStartedEvent(TypedDict):
    """A turn begins."""

    seq: int
    """Number of the event in its run: from 1, without gaps."""
    run_id: str
    """Id of the run."""
    at: str
    """Time of the event."""
    type: Literal['turn.started']
    """Type of the event."""
    turn: int
    """Counts the turns, from 1."""


class UnknownKeyView(TypedDict):
    """Seals under a key that is not among the current secret keys: they cannot be verified."""

    key_id: str
    """Id of the key, derived from the secret key."""
    links: int
    """Number of events sealed with it."""


Instructions: TypeAlias = str
"""The system prompt."""


Instructions1: TypeAlias = None
"""The system prompt."""


Description: TypeAlias = str
"""Description of this agent for gateway clients that may start it."""


Description1: TypeAlias = None
"""Description of this agent for gateway clients that may start it."""


MaxQueued4: TypeAlias = int
"""Most of its runs that may be queued; null: any number."""


MaxQueued5: TypeAlias = None
"""Most of its runs that may be queued; null: any number."""


MaxRunning4: TypeAlias = int
"""Most of its runs that may be in progress; null: any number."""


MaxRunning5: TypeAlias = None
"""Most of its runs that may be in progress; null: any number."""


class UpdateGroupBody(TypedDict):
    """
    Changes to a group; absent fields stay. `members` and `claims` replace all earlier ones; with
    other claims, members by claim are members again when they next sign in.
    """

    name: NotRequired[str | None]
    """Name of the group. Policies name groups by it."""
    members: NotRequired[list[str] | None]
    """Ids of the users whom the directory or an admin made members."""
    claims: NotRequired[list[GroupClaimBody] | None]
    """Claims that make people members."""
    add_members: NotRequired[list[str]]
    """Ids of users who become members."""
    remove_members: NotRequired[list[str]]
    """Ids of users who are no longer members by hand."""


class UpdateIdentityProviderBody(TypedDict):
    """
    Changes to an identity provider; absent fields stay. `rules` replace all earlier ones;
    `client_secret` null makes the service a public client. `issuer` cannot change.
    """

    name: NotRequired[str | None]
    """Name of the identity provider; the sign-in page shows it."""
    issuer: NotRequired[str | None]
    """Issuer URL (OpenID Connect). Its metadata is below `/.well-known/openid-configuration`."""
    client_id: NotRequired[str | None]
    """Id of the client that is registered for this service."""
    client_secret: NotRequired[str | None]
    """Secret of the client; write-only. Absent or null: a public client."""
    cli_client_id: NotRequired[str | None]
    """Id of the public client with which people sign in to the command line; null: they do not."""
    scopes: NotRequired[list[str] | None]
    """Scopes that a sign-in requests."""
    audiences: NotRequired[list[str] | None]
    """Audiences of bearer tokens that the API accepts, besides `client_id`."""
    rules: NotRequired[list[RoleRuleBody] | None]
    """The first rule that matches decides; a person without one is refused."""
    installation: NotRequired[bool | None]
    """Whether every sign-in page offers it, and rules may name other organizations. Requires a platform key."""


TimeoutS4: TypeAlias = float
"""Timeout of each call, in seconds."""


TimeoutS5: TypeAlias = None
"""Timeout of each call, in seconds."""


IdleTimeoutS: TypeAlias = float
"""Idle seconds after which an unused connection closes."""


IdleTimeoutS1: TypeAlias = None
"""Idle seconds after which an unused connection closes."""


MaxResponseBytes: TypeAlias = int
"""Most bytes of one response."""


MaxResponseBytes1: TypeAlias = None
"""Most bytes of one response."""


MaxConcurrency: TypeAlias = int
"""Most concurrent calls; more wait."""


MaxConcurrency1: TypeAlias = None
"""Most concurrent calls; more wait."""


UserDailyBudgetsUsd2: TypeAlias = dict[str, str]
"""Other budgets than `user_daily_budget_usd`, by the ids of users. Replaces all of them."""


UserDailyBudgetsUsd3: TypeAlias = None
"""Other budgets than `user_daily_budget_usd`, by the ids of users. Replaces all of them."""


RetentionDays2: TypeAlias = int
"""null retains everything."""


RetentionDays3: TypeAlias = None
"""null retains everything."""


McpKinds2: TypeAlias = list[str]
"""Kinds of MCP servers that may be registered and started; `archive` is a package from a file of this machine. null permits all. Requires a platform key."""


McpKinds3: TypeAlias = None
"""Kinds of MCP servers that may be registered and started; `archive` is a package from a file of this machine. null permits all. Requires a platform key."""


QueueWeight2: TypeAlias = int
"""Its share of the runs that start while runs of several organizations wait, relative to theirs. Requires a platform key."""


QueueWeight3: TypeAlias = None
"""Its share of the runs that start while runs of several organizations wait, relative to theirs. Requires a platform key."""


MaxQueued6: TypeAlias = int
"""Most runs that may be queued; null: any number. Requires a platform key."""


MaxQueued7: TypeAlias = None
"""Most runs that may be queued; null: any number. Requires a platform key."""


MaxRunning6: TypeAlias = int
"""Most runs that may be in progress; null: any number. Requires a platform key."""


MaxRunning7: TypeAlias = None
"""Most runs that may be in progress; null: any number. Requires a platform key."""


class UpdateRoleBody(TypedDict):
    """
    Changes to a custom role; absent fields stay. `permissions` replace all earlier ones. The
    name stays.
    """

    description: NotRequired[str | None]
    """What the role is for."""
    permissions: NotRequired[list[Permission] | None]
    """What its holders may do, besides reading."""


class UpdateUserBody(TypedDict):
    """Changes to a user; absent fields stay. A role that is set here stays at later sign-ins."""

    role: NotRequired[Role | None]
    """The new role."""
    custom_role: NotRequired[str | None]
    """The new custom role, in place of `role`."""
    may_impersonate: NotRequired[bool | None]
    """Whether the user may act as other users of the organization, for support."""
    status: NotRequired[Literal['active', 'deactivated'] | None]
    """A deactivated user is refused at once, and what they started ends."""


class UpdateWorkflowBody(TypedDict):
    """
    Changes to a workflow; each creates a new version. Nodes and edges are replaced entirely;
    `text` replaces all parts: without `team`, it gives the workflow to the organization.
    """

    name: NotRequired[str | None]
    """Unique in the organization."""
    nodes: NotRequired[list[NodeBody] | None]
    """Nodes of the graph."""
    edges: NotRequired[list[EdgeBody] | None]
    """Edges of the graph."""
    team: NotRequired[str | None]
    """Name of the group that it belongs to: others neither see nor run it. Null: it belongs to the organization."""
    text: NotRequired[str | None]
    """The YAML that this version was saved with, with its comments; it has the same name, nodes and edges. Null if there is none, and in lists."""


UsageKey: TypeAlias = Literal['day', 'agent', 'model', 'person', 'tool']
"""The keys by which usage can be grouped."""


class UsageView(TypedDict):
    """A sum. By tool it has the figures of tool calls, and those of models are 0."""

    day: str | None
    """The UTC day; null if summed over."""
    agent_id: str | None
    """Id of the agent; null if summed over."""
    model: str | None
    """The model; null if summed over."""
    started_by: str | None
    """Who started the runs: the id of a user or an API key, or `schedule:` and the id of a schedule; null if summed over."""
    tool: str | None
    """The tool by the name that models see; null if summed over, and in sums of models."""
    tool_calls: int | None
    """Number of tool calls of runs and gateway sessions; null unless summed by tool."""
    failed_tool_calls: int | None
    """Number of tool calls that failed; null unless summed by tool."""
    blocked_tool_calls: int | None
    """Number of tool calls that policy blocked; null unless summed by tool."""
    tool_ms: int | None
    """Milliseconds of the tool calls that were sent; null unless summed by tool."""
    model_calls: int
    """Number of model calls."""
    input_tokens: int
    """Input tokens, cached ones included."""
    output_tokens: int
    """Output tokens, those of reasoning included."""
    cached_tokens: int
    """Input tokens that the provider had cached."""
    reasoning_tokens: int
    """Output tokens that the model spent on reasoning."""
    cost_usd: float
    """Cost in USD, without unpriced calls."""
    unpriced_calls: int
    """Number of calls of models without a known price."""
    estimated_calls: int
    """Number of calls whose tokens are estimated: their provider reported none."""


MaxActiveRuns: TypeAlias = int
"""Most runs of the user that may be queued or in progress; null: any number."""


MaxActiveRuns1: TypeAlias = None
"""Most runs of the user that may be queued or in progress; null: any number."""


class UserLimitsBody(TypedDict):
    """
    Limits of one user. What is absent or null sets none, or leaves it to the limits of all
    users.
    """

    rate_limit: NotRequired[RateLimitBody | None]
    """Limit of the user's requests to the API, the gateway and the console together; null: none."""
    max_active_runs: NotRequired[MaxActiveRuns | MaxActiveRuns1]
    """Most runs of the user that may be queued or in progress; null: any number."""


class UserLimitsView(TypedDict):
    """Limits of one user."""

    rate_limit: RateLimitView | None
    """Limit of the user's requests to the API, the gateway and the console together; null: none."""
    max_active_runs: int | None
    """Most runs of the user that may be queued or in progress; null: any number."""


UserStatus: TypeAlias = Literal['active', 'deactivated', 'removed']
"""
Only an active user is admitted. The row of a removed one stays, without name and e-mail, so
that the next sign-in does not create the user again.
"""


class UserView(TypedDict):
    """A person who signed in."""

    id: str
    """Id of the user. Runs, calls, approvals and audit entries name it."""
    issuer: str
    """Issuer of the person's identity."""
    subject: str
    """The person at the issuer."""
    email: str | None
    """E-mail address, as the identity provider says."""
    name: str | None
    """Name, as the identity provider says."""
    role: Role
    """What the user may do; each role includes the roles before it."""
    custom_role: str | None
    """The custom role in place of `role`, which is `viewer` then; null: none."""
    role_fixed: bool
    """Whether an admin set the role. Otherwise rules set it at each sign-in."""
    may_impersonate: bool
    """Whether an admin lets the user act as other users."""
    status: UserStatus
    """Only active users are admitted."""
    identity_provider_id: str
    """The identity provider of the last sign-in."""
    created_at: str
    """Time of the creation."""
    last_sign_in_at: str | None
    """Time of the last sign-in. Who sends tokens: when one was first used here, at most about once an hour; null if never."""


class ValidationView(TypedDict):
    """The result of the checks. `plan` is null exactly if there are errors."""

    valid: bool
    """Whether there are no errors."""
    errors: list[FaultView]
    """Faults that prevent saving."""
    warnings: list[FaultView]
    """Valid but unusual parts."""
    plan: list[PlannedNodeView] | None
    """The nodes in an executable order; null if there are errors."""


Verbosity: TypeAlias = Literal['low', 'medium', 'high']
"""How long answers are. The values are part of the public contract."""


Verdict: TypeAlias = Literal['allow', 'require_approval', 'deny']
"""The verdict about a call, from the mildest to the strictest."""


class WebhookBody(TypedDict):
    """
    A webhook for the results of a run. `secret` names the signing secret that replaces the
    organization's key. `events` are the ends of a run and `run.requires_action`, unless fewer
    are named.
    """

    url: str
    """http or https, without credentials. It is never shown."""
    secret: NotRequired[SecretReference | None]
    """The signing secret. Default: the organization's key."""
    events: NotRequired[list[RunEventType]]
    """Types of the events that are sent."""


WebhookEvent: TypeAlias = Literal['run.completed', 'run.failed', 'run.incomplete', 'run.cancelled', 'run.halted', 'run.requires_action', 'approval.requested', 'workflow_run.question_asked', 'mcp_server.tool_quarantined', 'thread.quarantined', 'run.question_asked', 'run.client_tool_called', 'account.required', 'mcp_server.authorization_required', 'other']
"""
What is delivered: events of runs to the webhook of the run, and what waits for people
(`NOTICES`) to the webhook of the organization's inbox. `other` stands for one that a later
version stored and delivers. The values are part of the public contract.
"""


class WorkflowBody(TypedDict):
    """A workflow."""

    name: str
    """Unique in the organization."""
    nodes: list[NodeBody]
    """Nodes of the graph."""
    edges: NotRequired[list[EdgeBody]]
    """Edges of the graph."""
    team: NotRequired[str | None]
    """Name of the group that it belongs to: others neither see nor run it. Null: it belongs to the organization."""
    text: NotRequired[str | None]
    """The YAML that this version was saved with, with its comments; it has the same name, nodes and edges. Null if there is none, and in lists."""


class WorkflowRunCancelledEvent(TypedDict):
    """Cancelled by a request."""

    seq: int
    """Number of the event in its workflow run: from 1, without gaps."""
    workflow_run_id: str
    """Id of the workflow run."""
    at: str
    """Time of the event."""
    type: Literal['workflow.cancelled']
    """Type of the event."""


class WorkflowRunCompletedEvent(TypedDict):
    """Ended with its output."""

    seq: int
    """Number of the event in its workflow run: from 1, without gaps."""
    workflow_run_id: str
    """Id of the workflow run."""
    at: str
    """Time of the event."""
    type: Literal['workflow.completed']
    """Type of the event."""


class WorkflowRunFailedEvent(TypedDict):
    """Ended by the error of a node."""

    seq: int
    """Number of the event in its workflow run: from 1, without gaps."""
    workflow_run_id: str
    """Id of the workflow run."""
    at: str
    """Time of the event."""
    type: Literal['workflow.failed']
    """Type of the event."""
    error: NodeErrorView | None
    """Why it failed."""
    node_id: str | None
    """Id of the node that failed."""


class WorkflowRunQueuedEvent(TypedDict):
    """The workflow run waits for a worker."""

    seq: int
    """Number of the event in its workflow run: from 1, without gaps."""
    workflow_run_id: str
    """Id of the workflow run."""
    at: str
    """Time of the event."""
    type: Literal['workflow.queued']
    """Type of the event."""


class WorkflowRunRequiresActionEvent(TypedDict):
    """All unfinished nodes wait for people."""

    seq: int
    """Number of the event in its workflow run: from 1, without gaps."""
    workflow_run_id: str
    """Id of the workflow run."""
    at: str
    """Time of the event."""
    type: Literal['workflow.requires_action']
    """Type of the event."""
    pending: list[PendingView]
    """Nodes that wait."""


class WorkflowRunResumedEvent(TypedDict):
    """The workflow run resumed after an answer."""

    seq: int
    """Number of the event in its workflow run: from 1, without gaps."""
    workflow_run_id: str
    """Id of the workflow run."""
    at: str
    """Time of the event."""
    type: Literal['workflow.resumed']
    """Type of the event."""


class WorkflowRunStartedEvent(TypedDict):
    """A worker has claimed the workflow run."""

    seq: int
    """Number of the event in its workflow run: from 1, without gaps."""
    workflow_run_id: str
    """Id of the workflow run."""
    at: str
    """Time of the event."""
    type: Literal['workflow.started']
    """Type of the event."""


WorkflowRunStatus: TypeAlias = Literal['queued', 'in_progress', 'requires_action', 'completed', 'failed', 'cancelled']
"""The status of a workflow run. The values are part of the public contract."""


class WorkflowStreamEnd(TypedDict):
    """
    The last item of a stream: the workflow run has ended or waits. It is not stored and has no
    id.
    """

    type: Literal['end']
    """Type of the event."""
    status: WorkflowRunStatus
    """Status of the workflow run."""


class WorkflowView(TypedDict):
    """
    A workflow at one version. `plan` lists its nodes in an executable order, null if this
    version of Dragoman no longer accepts the workflow.
    """

    id: str
    """Id of the workflow."""
    name: str
    """Unique in the organization."""
    nodes: list[NodeView]
    """Nodes of the graph."""
    edges: list[EdgeView]
    """Edges of the graph."""
    plan: list[PlannedNodeView] | None
    """Its nodes in an executable order; null if this version of Dragoman no longer accepts the workflow."""
    text: str | None
    """The YAML that this version was saved with, with its comments; it has the same name, nodes and edges. Null if there is none, and in lists."""
    team: str | None
    """Name of the group that it belongs to: others neither see nor run it. Null: it belongs to the organization."""
    version: int
    """Counts the changes, from 1. `If-Match` takes it."""
    created_at: str
    """Time of the creation."""
    updated_at: str
    """Time of the last change."""


class AccountView(TypedDict):
    """
    The caller's account at an MCP server that is, or was, used with each person's own one. Of a
    server of a group that the caller left, it has the slug and the id alone: the other fields are
    empty, null or false, and `stored` is true.
    """

    server: str
    """Slug of the MCP server."""
    server_id: str
    """Id of the MCP server."""
    connected: bool
    """Whether runs that the caller starts can use the server."""
    used: bool
    """Whether the caller may use the server with their own account. If false, they can only delete what is stored."""
    stored: bool
    """Whether tokens or secrets of the caller are stored, which can be deleted."""
    sign_in_with: str | None
    """The issuer that the server needs a sign-in with, if the caller signed in with another one; else null."""
    secrets: list[str]
    """Names of the secrets that the caller gives; empty for an authorization server."""
    address: str
    """Where the tokens or secrets are sent; of a started server, the program that gets them."""
    env: dict[str, str | SecretReferenceView]
    """Variables of a started server, which may say where it sends the secrets. Values are write-only, or references."""
    offer: str
    """Names the server as it is now. Secrets that are given with it go to nothing else."""
    issuer: str | None
    """The authorization server, or the identity provider of the sign-in; null until it is connected, and for secrets."""
    scope: str | None
    """What was granted, if the authorization server says so."""
    renewed_at: str | None
    """When the authorization server last issued a token, or when the caller gave the secrets."""
    link: str
    """If `used`, the page where the caller connects the account, or renews it, or gives the secrets, in a browser."""


class AddRegistryServerBody(TypedDict):
    """
    An entry of a registry to register as a server. Values of its `inputs` are texts, or
    references to named secrets (`{"secret": NAME}`).
    """

    version: NotRequired[str]
    """Version of the entry."""
    option: NotRequired[int]
    """Number of one of the entry's options, from 0."""
    slug: NotRequired[str | None]
    """Slug of the server; null for the last part of the name."""
    inputs: NotRequired[dict[str, str | SecretReference]]
    """Values of the entry's inputs, by their names."""


class ApiKeyAuthBody(TypedDict):
    """A key in a custom header, sent unchanged."""

    type: Literal['api_key']
    """Kind of the authentication."""
    header: str
    """Name of the header."""
    value: str | SecretReference
    """Write-only."""


class ApiKeyView(TypedDict):
    """A key without its token."""

    id: str
    """Id of the key."""
    name: str
    """Name of the key."""
    role: Role
    """What the key may do; each role includes the roles before it."""
    custom_role: str | None
    """The custom role in place of `role`, which is `viewer` then; null: none."""
    platform: bool
    """Whether the key also manages organizations."""
    rate_limit: RateLimitView | None
    """Limit of its requests; null where only the service's own limit applies."""
    created_at: str
    """Time of the creation."""
    expires_at: str | None
    """The key is rejected from then on; null: never."""
    last_used_at: str | None
    """Time of its last request, up to a minute late; null if it was never used."""
    revoked_at: str | None
    """Time of its revocation; null while it is valid."""
    person_id: str | None
    """The user who created it, directly or with another key of theirs; null: none."""


class AppendMessageBody(TypedDict):
    """A message outside of a run."""

    role: Literal['user', 'assistant']
    """Author of the message."""
    content: str | list[TextPart | ImagePart | FilePart]
    """Text, or parts of type text, image and file."""


class ApprovalView(TypedDict):
    """An approval of a tool call."""

    id: str
    """Id of the approval."""
    state: ApprovalState
    """State of the approval."""
    run_id: str | None
    """The run that waits; null for a call through the gateway."""
    gateway_session_id: str | None
    """The gateway session of the call; null for a call of a run."""
    tool_call_id: str
    """Id of the tool call."""
    tool: str
    """Name of the tool as models see it."""
    server_id: str | None
    """Id of the tool's MCP server; null for a native tool."""
    server: ApprovalServerView | None
    """The tool's MCP server when the approval was requested; after a change of it the approval is stale."""
    arguments: dict[str, Any]
    """Arguments of the call as the model gave them."""
    edited_arguments: dict[str, Any] | None
    """Arguments that the decider set instead; null if unchanged."""
    digest: str
    """Digest of tool, arguments and agent version that the approval is bound to."""
    agent_id: str
    """Id of the agent."""
    agent_version: int
    """Version of the agent; the approval is valid for it only."""
    requested_by: str | None
    """Who started the run: the id of an API key, or `schedule:` and the id of a schedule."""
    allow_self_approval: bool
    """Whether the person who started the run may approve."""
    approvers: list[ApproversView]
    """Who decides must be in each of these, with the role operator; none: each operator."""
    approvals_needed: int
    """Number of different people who must approve. One who denies is enough."""
    consents: list[ConsentView]
    """Who of several approved so far; empty where one approval is enough."""
    approvable: bool
    """Whether the caller of this request may approve it now."""
    not_approvable: str | None
    """Why the caller may not approve it: `role_insufficient`, `not_an_approver`, `self_approval_forbidden`, `approved_before`, `person_required`."""
    cause: str
    """Why the call requires an approval."""
    created_at: str
    """Time of the creation."""
    expires_at: str
    """Time at which an undecided approval expires; the call is then denied."""
    decided_at: str | None
    """Time of the decision; null while pending."""
    decided_by: str | None
    """The user or API key that decided; null while pending."""
    reason: str | None
    """Reason of the decision; the model sees the reason of a denial."""


class AuditEventPage(TypedDict):
    """A page of audit events; `next_cursor` is null on the last one."""

    data: list[AuditEventView]
    """The entries of the page, in the order of the list."""
    next_cursor: str | None
    """Cursor of the next page; null on the last one."""


class AuthView(TypedDict):
    """
    Authentication of Dragoman at a server: `type`, and the fields of that type without secret
    values.
    """

    type: NotRequired[Literal['bearer', 'api_key', 'oauth_client_credentials', 'oauth_authorization_code', 'oauth_token_exchange', 'oauth_id_jag']]
    """Kind of the authentication; the other fields depend on it."""
    header: NotRequired[str]
    """Name of the header, for `api_key`."""
    token: NotRequired[str | SecretReferenceView]
    """The bearer token: `[hidden]`, or the name of a secret."""
    value: NotRequired[str | SecretReferenceView]
    """The key: `[hidden]`, or the name of a secret."""
    client_id: NotRequired[str | None]
    """Client id at the authorization server; null: Dragoman registers itself."""
    client_secret: NotRequired[str | SecretReferenceView | None]
    """Client secret: `[hidden]`, or the name of a secret; null: none."""
    private_key: NotRequired[str | SecretReferenceView | None]
    """Private key of the client: `[hidden]`, or the name of a secret; null: none."""
    key_id: NotRequired[str | None]
    """Id of the private key in assertions; null: none."""
    scopes: NotRequired[list[str]]
    """Requested scopes."""
    issuer: NotRequired[str | None]
    """The authorization server; null: the one that the MCP server names, or for token exchange the identity provider."""
    audience: NotRequired[str | None]
    """Name of the server at the identity provider, for token exchange."""
    resource: NotRequired[str | None]
    """URL of the server at the identity provider, for token exchange."""
    subject_token: NotRequired[SubjectToken]
    """The token of the sign-in that is exchanged."""


class AuthorizationCodeAuthBody(TypedDict):
    """OAuth authorization code: a person consents once in a browser, see `POST …/authorize`."""

    type: Literal['oauth_authorization_code']
    """Kind of the authentication."""
    client_id: NotRequired[str | None]
    """Of a manually registered client. By default Dragoman registers itself if possible."""
    client_secret: NotRequired[str | SecretReference | None]
    """Write-only."""
    scopes: NotRequired[list[str]]
    """Default: the scopes that the server requires."""
    issuer: NotRequired[str | None]
    """The authorization server. Default: the one that the MCP server names."""


class BearerAuthBody(TypedDict):
    """A bearer token, sent unchanged."""

    type: Literal['bearer']
    """Kind of the authentication."""
    token: str | SecretReference
    """Write-only."""


class BuiltInRoleView(TypedDict):
    """A built-in role, which cannot be changed."""

    name: Role
    """Name of the role."""
    permissions: list[Permission]
    """What its holders may do, besides reading."""


class CallerView(TypedDict):
    """Who sent this request."""

    id: str
    """Id of the user or the API key. Runs, calls, approvals and audit entries name it."""
    kind: Literal['user', 'api_key']
    """Whether a person or an API key sent the request."""
    name: str | None
    """Name of the person or the API key."""
    email: str | None
    """E-mail address of the person; null for API keys."""
    role: Role
    """What the caller may do; each role includes the roles before it."""
    custom_role: str | None
    """The custom role in place of `role`; null: none."""
    permissions: list[Permission]
    """What the caller may do, besides reading."""
    platform: bool
    """Whether the caller may manage organizations."""
    organization_id: str
    """Id of the caller's organization."""
    organization_name: str
    """Name of the caller's organization."""
    issuer: str | None
    """Where the person signed in; null for API keys."""
    expires_at: str | None
    """When the token or the API key expires; null: never."""


class CancelRunsBody(TypedDict):
    """
    The unfinished runs to cancel: exactly one of agent_id, server and all, narrowed by the
    others.
    """

    agent_id: NotRequired[str | None]
    """Id or name of an agent."""
    server: NotRequired[str | None]
    """Id or slug of an MCP server: runs whose agents list it, or that call it now."""
    all: NotRequired[bool | None]
    """Every run of the organization: `true`, or absent."""
    lane: NotRequired[Lane | None]
    """Only runs in this lane."""
    queued: NotRequired[bool]
    """Only runs that are queued."""


class ChainReportView(TypedDict):
    """
    `ok` if every event is unchanged and none has waited for its seal for more than ten
    seconds.
    """

    ok: bool
    """Whether every event is unchanged and none has waited for its seal for more than ten seconds."""
    checked: int
    """Number of verified events."""
    sealed_through: int
    """Number of the last seal."""
    pruned_through: int
    """Number of the last seal that retention removed."""
    unsealed: int
    """Number of events that wait for their seal."""
    sealed_late: int
    """Number of events that waited for their seal too long."""
    first_broken: BrokenLinkView | None
    """The first broken place; null if there is none."""
    unknown_keys: list[UnknownKeyView]
    """Seals that cannot be verified, by key."""


class CliProviderList(TypedDict):
    """Identity providers of the command line."""

    data: list[CliProviderView]
    """The entries of the page, in the order of the list."""


class ClientCredentialsAuthBody(TypedDict):
    """OAuth client credentials: Dragoman authenticates as itself."""

    type: Literal['oauth_client_credentials']
    """Kind of the authentication."""
    client_id: str
    """Client id at the authorization server."""
    client_secret: NotRequired[str | SecretReference | None]
    """Write-only. This, or `private_key`."""
    private_key: NotRequired[str | SecretReference | None]
    """Write-only: a private key in PEM (P-256, Ed25519 or RSA) that signs assertions (`private_key_jwt`), in place of a secret."""
    key_id: NotRequired[str | None]
    """Id of the key in assertions (`kid`), if the server needs one."""
    scopes: NotRequired[list[str]]
    """Default: the scopes that the server requires."""
    issuer: NotRequired[str | None]
    """The authorization server. Default: the one that the MCP server names."""


class CloudBody(TypedDict):
    """Region, project and identity of a provider in a cloud; each kind takes some of these."""

    region: NotRequired[str | None]
    """Of Vertex AI and Bedrock, such as `europe-west1` or `eu-central-1`."""
    project: NotRequired[str | None]
    """The project of Google Cloud, for kind vertex."""
    identity: NotRequired[CloudIdentity]
    """`key`: the provider's key. `service`: the identity of the machine that Dragoman runs on, if the operator permits it; only in the default organization."""
    role: NotRequired[str | None]
    """ARN of a role of AWS that is assumed."""
    profile: NotRequired[str | None]
    """Profile of the machine's configuration of AWS, with the identity `service`."""
    tenant_id: NotRequired[str | None]
    """Tenant of Microsoft Entra, for kind azure; the key is then the application's secret."""
    client_id: NotRequired[str | None]
    """The application of Microsoft Entra, or the managed identity of the machine."""


class ConditionBody(TypedDict):
    """Who acts, and when: people, groups, hours or days; at least one of them."""

    people: NotRequired[list[str]]
    """Ids of users or API keys. With `groups`: one of them suffices."""
    groups: NotRequired[list[str]]
    """Names of groups."""
    hours: NotRequired[Hours | Hours1]
    """Hours of a day, such as `08:00-18:00`; the end is excluded."""
    days: NotRequired[list[Day]]
    """Days of the week."""
    time_zone: NotRequired[TimeZone | TimeZone1]
    """Zone of hours and days, such as `Europe/Berlin`. Default: UTC."""


class ConditionView(TypedDict):
    """Who acts, and when. What is absent is no condition."""

    people: NotRequired[list[str]]
    """Ids of users or API keys. With `groups`: one of them suffices."""
    groups: NotRequired[list[str]]
    """Names of groups."""
    hours: NotRequired[str]
    """Hours of a day, such as `08:00-18:00`; the end is excluded."""
    days: NotRequired[list[Day]]
    """Days of the week."""
    time_zone: NotRequired[str]
    """Zone of hours and days, such as `Europe/Berlin`. Default: UTC."""


ContentView: TypeAlias = TextView | ImageView | FileView | ToolUseView | ToolResultView


class CreateApiKeyBody(TypedDict):
    """
    A key: `viewer` reads, `runner` also starts runs, `operator` also connects servers,
    `admin` changes everything. A `custom_role` is in place of the role.
    """

    name: str
    """Name of the key."""
    role: NotRequired[Role]
    """What the key may do; each role includes the roles before it."""
    custom_role: NotRequired[str | None]
    """The custom role in place of `role`, which is `viewer` then; null: none."""
    expires_at: NotRequired[str | None]
    """RFC 3339; the key is rejected from then on. Absent or null: never."""
    rate_limit: NotRequired[RateLimitBody | None]
    """Further requests are rejected with 429. The service's own limit applies as well."""
    platform: NotRequired[bool]
    """Whether the key also manages organizations. Requires a platform key."""


LimitsOfUsers: TypeAlias = dict[str, UserLimitsBody]
"""Other limits than `user_limits`, by the ids of users. Replaces all of them."""


class CreatedApiKeyView(TypedDict):
    """A new key; `token` is shown only once."""

    id: str
    """Id of the key."""
    name: str
    """Name of the key."""
    role: Role
    """What the key may do; each role includes the roles before it."""
    custom_role: str | None
    """The custom role in place of `role`, which is `viewer` then; null: none."""
    platform: bool
    """Whether the key also manages organizations."""
    rate_limit: RateLimitView | None
    """Limit of its requests; null where only the service's own limit applies."""
    created_at: str
    """Time of the creation."""
    expires_at: str | None
    """The key is rejected from then on; null: never."""
    last_used_at: str | None
    """Time of its last request, up to a minute late; null if it was never used."""
    revoked_at: str | None
    """Time of its revocation; null while it is valid."""
    person_id: str | None
    """The user who created it, directly or with another key of theirs; null: none."""
    token: str
    """The key itself: `dgm_…`. It is shown only once."""


class DeploymentBody(TypedDict):
    """
    One of several places that serve the provider's models. `base_url` and `api_key` are those of
    the provider, unless given.
    """

    name: str
    """`[a-z0-9][a-z0-9_-]{0,63}`, unique in the provider."""
    base_url: NotRequired[str | None]
    """Its address; null: the provider's."""
    api_key: NotRequired[str | SecretReference | None]
    """Its key: `[hidden]`, or the name of a secret; null: the provider's."""
    weight: NotRequired[int]
    """Its share of the threads."""


class DeploymentView(TypedDict):
    """A deployment; null is the provider's own `base_url` or `api_key`."""

    name: str
    """`[a-z0-9][a-z0-9_-]{0,63}`, unique in the provider."""
    base_url: str | None
    """Its address; null: the provider's."""
    api_key: str | SecretReferenceView | None
    """Its key: `[hidden]`, or the name of a secret; null: the provider's."""
    weight: int
    """Its share of the threads."""


class EffectiveView(TypedDict):
    """The effective policy; `sources` gives the origin of each field set by a rule."""

    decision: Verdict
    """Decision on a call."""
    on_block: OnBlock
    """Effect of a blocked call on its run."""
    allowed_params: list[str] | None
    """Names of allowed arguments; null: all."""
    denied_params: list[str]
    """Names of denied arguments."""
    arguments_schemas: list[dict[str, Any]]
    """JSON Schemas that the arguments must all match."""
    max_results: int | None
    """Most results that one call may ask for."""
    max_calls: int | None
    """Most calls per run."""
    max_result_bytes: int | None
    """Bytes of a result that the model gets at most."""
    on_unknown_outcome: OnUnknownOutcome
    """Handling of a call interrupted by a crash that must not be repeated."""
    timeout_s: float | None
    """Most seconds for one call; null: the agent's limit."""
    approval_ttl_s: float
    """Seconds that an approval waits for its decision."""
    allow_self_approval: bool
    """Whether the person who started the run may approve."""
    approvers: list[ApproversView]
    """Who decides approvals must be in each of these; none: each operator."""
    approvals_needed: int
    """Number of different people who must approve."""
    repeatable: bool
    """Whether a call may be sent again after a crash."""
    sources: dict[str, list[RuleSourceView]]
    """Origin of each field that a rule sets."""


class GatewaySessionView(TypedDict):
    """
    A session without its token. `revoked_at` is also set when its run or workflow run has
    ended.
    """

    id: str
    """Id of the session."""
    agent_id: str
    """Id of the agent whose tools it has."""
    run_id: str | None
    """The run whose tools it has; null if it has another origin."""
    workflow_run_id: str | None
    """The workflow run whose tools it has; null if it has another origin."""
    node_ids: list[str] | None
    """Tool nodes of the workflow run; null if it has another origin."""
    thread_id: str
    """Id of the thread that holds the files of its calls."""
    names: ToolNames
    """Names of its tools."""
    created_by: str
    """The API key or user that opened it."""
    client_id: str | None
    """The OAuth client to which the user granted it; null if it has another origin."""
    client_name: str | None
    """What that client calls itself."""
    created_at: str
    """Time of the creation."""
    expires_at: str
    """From this time on it is invalid."""
    revoked_at: str | None
    """Time of its revocation, or of the end of its run; null while it is open."""


class GroupBody(TypedDict):
    """A group that the organization manages."""

    name: str
    """Name of the group. Policies name groups by it."""
    members: NotRequired[list[str]]
    """Ids of the users whom the directory or an admin made members."""
    claims: NotRequired[list[GroupClaimBody]]
    """Claims that make people members."""


class GroupList(TypedDict):
    """All groups of the organization."""

    data: list[GroupView]
    """The entries of the page, in the order of the list."""


class IdJagAuthBody(TypedDict):
    """
    Enterprise-managed authorization: the identity provider of each person gives an assertion
    (ID-JAG) for the server's authorization server, which gives a token for it. Needs `credentials`
    `person`.
    """

    type: Literal['oauth_id_jag']
    """Kind of the authentication."""
    issuer: str
    """The authorization server of the MCP server."""
    client_id: str
    """Client id at this authorization server."""
    client_secret: NotRequired[str | SecretReference | None]
    """Write-only. This, or `private_key`."""
    private_key: NotRequired[str | SecretReference | None]
    """Write-only: a private key in PEM (P-256, Ed25519 or RSA) that signs assertions (`private_key_jwt`), in place of a secret."""
    key_id: NotRequired[str | None]
    """Id of the key in assertions (`kid`), if the server needs one."""
    scopes: NotRequired[list[str]]
    """Default: what the authorization server gives."""


class IdentityProviderBody(TypedDict):
    """
    An OpenID Connect issuer whose people may sign in. `client_secret` is write-only; without it
    the service is a public client.
    """

    name: str
    """Name of the identity provider; the sign-in page shows it."""
    issuer: str
    """Issuer URL (OpenID Connect). Its metadata is below `/.well-known/openid-configuration`."""
    client_id: str
    """Id of the client that is registered for this service."""
    client_secret: NotRequired[str | None]
    """Secret of the client; write-only. Absent or null: a public client."""
    cli_client_id: NotRequired[str | None]
    """Id of the public client with which people sign in to the command line; null: they do not."""
    scopes: NotRequired[list[str]]
    """Scopes that a sign-in requests."""
    audiences: NotRequired[list[str]]
    """Audiences of bearer tokens that the API accepts, besides `client_id`."""
    rules: NotRequired[list[RoleRuleBody]]
    """The first rule that matches decides; a person without one is refused."""
    installation: NotRequired[bool]
    """Whether every sign-in page offers it, and rules may name other organizations. Requires a platform key."""


class IdentityProviderView(TypedDict):
    """An identity provider."""

    id: str
    """Id of the identity provider."""
    name: str
    """Name of the identity provider; the sign-in page shows it."""
    issuer: str
    """Issuer URL (OpenID Connect). Its metadata is below `/.well-known/openid-configuration`."""
    client_id: str
    """Id of the client that is registered for this service."""
    client_secret: str | None
    """`[hidden]`; null: a public client, protected by PKCE."""
    cli_client_id: str | None
    """Id of the public client with which people sign in to the command line; null: they do not."""
    scopes: list[str]
    """Scopes that a sign-in requests."""
    audiences: list[str]
    """Audiences of bearer tokens that the API accepts, besides `client_id`."""
    rules: list[RoleRuleView]
    """The first rule that matches decides; a person without one is refused."""
    installation: bool
    """Whether every sign-in page offers it, and rules may name other organizations. Requires a platform key."""
    version: int
    """Counts the changes, from 1. `If-Match` takes it."""
    created_at: str
    """Time of the creation."""


class ImpersonationList(TypedDict):
    """Impersonations of a user, newest first."""

    data: list[ImpersonationView]
    """The entries of the page, in the order of the list."""


class ImportedEntryView(TypedDict):
    """
    The result of one entry: `outcome` is `created` or `skipped`; `remarks` give reasons or
    required actions.
    """

    name: str
    """Name in the file."""
    slug: str
    """Slug of the server."""
    outcome: ImportOutcome
    """What became of the entry."""
    kind: McpServerKind | None
    """Kind of the server; null if it was skipped."""
    needs_install: bool
    """Whether the server is to be installed before it can be used."""
    remarks: list[str]
    """Reasons, or required actions."""


InputPartView: TypeAlias = TextView | ImageView | FileView


class ListedThreadView(TypedDict):
    """A thread in a list."""

    id: str
    """Id of the thread."""
    metadata: dict[str, Any]
    """Data of the client; Dragoman does not use it."""
    created_at: str
    """Time of the creation."""
    quarantine: QuarantineView | None
    """Why it rejects messages and runs until it is released; null if it does not."""
    forked_from: ForkView | None
    """The thread that it was forked from; null if it is no fork."""
    team: str | None
    """Name of the group that it belongs to, with its runs: others do not see them. Null: it belongs to the organization, until an agent of a group runs on it."""
    opening: str | None
    """Beginning of its first message; null without a text."""


class McpRegistryList(TypedDict):
    """The configured registries."""

    data: list[McpRegistryView]
    """The registries, in the order of the settings."""


class McpServerBody(TypedDict):
    """
    An MCP server. Values of `env` (started servers) and `headers` (remote servers) are
    write-only, or references to named secrets (`{"secret": NAME}`). `args` must not contain
    secrets.
    """

    slug: str
    """Unique in the organization: `[a-z0-9][a-z0-9-]{0,31}`."""
    kind: McpServerKind
    """How the server is run or reached."""
    package: NotRequired[str | None]
    """For kinds npm and python: a name, or the absolute path of a .tgz, wheel or sdist. For kind python, further requirements may follow after spaces: `mcp-server-sqlite mcp<2`. For kind oci: a container image, such as `ghcr.io/owner/name:1.2`."""
    version: NotRequired[str | None]
    """Version of the package. Default: the newest at installation. For kind oci: a tag or digest. Default: `latest`."""
    path: NotRequired[str | None]
    """Executable or directory that installation of a custom server copies."""
    command: NotRequired[str | None]
    """Command of a custom server, run in place, or from the copy if `path` is set. For kinds npm and python: one of the package's commands, if it has several."""
    args: NotRequired[list[str]]
    """Arguments of the command, or of the image. They must not contain secrets."""
    env: NotRequired[dict[str, str | SecretReference]]
    """Environment of a started server. Values are write-only, or references to named secrets."""
    url: NotRequired[str | None]
    """Address of a server of kind http, sse or a2a."""
    headers: NotRequired[dict[str, str | SecretReference]]
    """Headers of requests to a remote server. Values are write-only, or references to named secrets."""
    auth: NotRequired[BearerAuthBody | ApiKeyAuthBody | ClientCredentialsAuthBody | AuthorizationCodeAuthBody | TokenExchangeAuthBody | IdJagAuthBody | None]
    """Authentication at a server of kind http, sse or a2a."""
    tls: NotRequired[TlsBody | None]
    """TLS with a remote server, besides the usual; null: the usual alone."""
    credentials: NotRequired[Credentials]
    """Whose account is used: one of the organization, or that of the person who started the run. `person` needs a secret `person:NAME`, which each person gives, in env, headers, url or auth, or kind http or sse with auth of type oauth_authorization_code, oauth_token_exchange or oauth_id_jag. Kind a2a has none."""
    tools: NotRequired[list[str] | None]
    """Names or globs of the server's tools that are used, as the server names them. Null is all; `[]` is none."""
    declared_tools: NotRequired[list[DeclaredToolBody]]
    """For kinds http and custom: definitions of a server that answers only `tools/call`. It then gets no handshake, and its tools are not listed. Empty: the server lists its tools."""
    network: NotRequired[ServerNetwork]
    """What a started server reaches: nothing, the hosts of `network_hosts` through Dragoman's proxy, or all addresses that the operator permits."""
    network_hosts: NotRequired[list[str]]
    """Hosts of the allowlist: `api.example.com`, or `*.example.com` for all names below it, at ports 80 and 443 or at `:PORT`."""
    trusted: NotRequired[bool]
    """Whether its hints and instructions are trusted."""
    isolation: NotRequired[Isolation | None]
    """Scope of a connection. Default: `shared` for remote servers, `run` for others."""
    on_connection_loss: NotRequired[ConnectionLoss]
    """While the shared connection is lost: keep its tools, or omit them. Omitting needs a shared connection."""
    output_validation: NotRequired[OutputValidation]
    """Handling of structured results that do not match the tool's output schema."""
    elicitation: NotRequired[ElicitationPolicy]
    """When it requests input during a call: decline, or pass the request to the run or the gateway's client."""
    sampling: NotRequired[PassingPolicy]
    """When it requests a model completion during a call: decline, or pass it to the gateway's client."""
    roots: NotRequired[PassingPolicy]
    """When it requests the client's roots: decline, or pass the request to the gateway's client."""
    timeout_s: NotRequired[float]
    """Timeout of each call, in seconds."""
    idle_timeout_s: NotRequired[float]
    """Idle seconds after which an unused connection closes."""
    max_response_bytes: NotRequired[int]
    """Most bytes of one response."""
    max_concurrency: NotRequired[int]
    """Most concurrent calls; more wait."""
    rate_limit: NotRequired[RateLimitBody | None]
    """Limit of its calls. Further calls wait, until their deadline."""
    registry_entry: NotRequired[str | None]
    """Entry of an MCP registry that it was made from: `REGISTRY:NAMESPACE/NAME@VERSION`."""
    enabled: NotRequired[bool]
    """Whether it is used."""
    team: NotRequired[str | None]
    """Name of the group that it belongs to: others neither see nor use it, and only agents of the group have its tools. Null: it belongs to the organization."""


class McpServerView(TypedDict):
    """
    A registered server; `env` and `headers` show no values. `version` is that of its package;
    `revision` counts its changes.
    """

    id: str
    """Id of the server."""
    slug: str
    """Unique in the organization: `[a-z0-9][a-z0-9-]{0,31}`."""
    kind: McpServerKind
    """How the server is run or reached."""
    package: str | None
    """For kinds npm and python: a name, or the absolute path of a .tgz, wheel or sdist. For kind python, further requirements may follow after spaces: `mcp-server-sqlite mcp<2`. For kind oci: a container image, such as `ghcr.io/owner/name:1.2`."""
    version: str | None
    """Version of the package. Default: the newest at installation. For kind oci: a tag or digest. Default: `latest`."""
    registry_entry: str | None
    """Entry of an MCP registry that it was made from: `REGISTRY:NAMESPACE/NAME@VERSION`."""
    path: str | None
    """Executable or directory that installation of a custom server copies."""
    command: str | None
    """Command of a custom server, run in place, or from the copy if `path` is set. For kinds npm and python: one of the package's commands, if it has several."""
    args: list[str]
    """Arguments of the command, or of the image. They must not contain secrets."""
    env: dict[str, str | SecretReferenceView]
    """Environment of a started server. Values are write-only, or references to named secrets."""
    url: str | None
    """Address of a server of kind http, sse or a2a."""
    headers: dict[str, str | SecretReferenceView]
    """Headers of requests to a remote server. Values are write-only, or references to named secrets."""
    auth: AuthView | None
    """Authentication at a server of kind http, sse or a2a."""
    tls: TlsView | None
    """TLS with a remote server, besides the usual; null: the usual alone."""
    credentials: Credentials
    """Whose account is used: one of the organization, or that of the person who started the run. `person` needs a secret `person:NAME`, which each person gives, in env, headers, url or auth, or kind http or sse with auth of type oauth_authorization_code, oauth_token_exchange or oauth_id_jag. Kind a2a has none."""
    tools: list[str] | None
    """Names or globs of the server's tools that are used, as the server names them. Null is all; `[]` is none."""
    declared_tools: list[DeclaredToolView]
    """For kinds http and custom: definitions of a server that answers only `tools/call`. It then gets no handshake, and its tools are not listed. Empty: the server lists its tools."""
    network: ServerNetwork
    """What a started server reaches: nothing, the hosts of `network_hosts` through Dragoman's proxy, or all addresses that the operator permits."""
    network_hosts: list[str]
    """Hosts of the allowlist: `api.example.com`, or `*.example.com` for all names below it, at ports 80 and 443 or at `:PORT`."""
    trusted: bool
    """Whether its hints and instructions are trusted."""
    isolation: Isolation
    """Scope of a connection. Default: `shared` for remote servers, `run` for others."""
    on_connection_loss: ConnectionLoss
    """While the shared connection is lost: keep its tools, or omit them. Omitting needs a shared connection."""
    output_validation: OutputValidation
    """Handling of structured results that do not match the tool's output schema."""
    elicitation: ElicitationPolicy
    """When it requests input during a call: decline, or pass the request to the run or the gateway's client."""
    sampling: PassingPolicy
    """When it requests a model completion during a call: decline, or pass it to the gateway's client."""
    roots: PassingPolicy
    """When it requests the client's roots: decline, or pass the request to the gateway's client."""
    timeout_s: float
    """Timeout of each call, in seconds."""
    idle_timeout_s: float
    """Idle seconds after which an unused connection closes."""
    max_response_bytes: int
    """Most bytes of one response."""
    max_concurrency: int
    """Most concurrent calls; more wait."""
    rate_limit: RateLimitView | None
    """Limit of its calls. Further calls wait, until their deadline."""
    enabled: bool
    """Whether it is used."""
    team: str | None
    """Name of the group that it belongs to: others neither see nor use it, and only agents of the group have its tools. Null: it belongs to the organization."""
    revision: int
    """Counts the changes, from 1. `If-Match` takes it."""
    created_at: str
    """Time of the creation."""
    updated_at: str
    """Time of the last change."""


class MessageView(TypedDict):
    """A message; `content` holds parts of type text, image, file, tool_use and tool_result."""

    id: str
    """Id of the message."""
    role: Literal['system', 'user', 'assistant', 'tool']
    """Author of the message. `tool` carries the tool results of one turn."""
    content: list[ContentView]
    """Parts of the message."""
    created_at: str
    """Time of the creation."""
    run_id: str | None
    """The run that wrote it; null if none did."""


class ModelProviderBody(TypedDict):
    """
    A provider of models. Without `base_url` it is the vendor's own address. `api_key` is
    write-only, or a reference to a named secret; without one no key is sent. With `deployments`,
    calls go to these: each thread to one of them, and to another one while that one refuses.
    """

    name: str
    """`[a-z0-9][a-z0-9_-]{0,63}`; models are then `NAME:model`."""
    kind: ProviderKind
    """The vendor of its API."""
    base_url: NotRequired[str | None]
    """Its address. Default: the vendor's own."""
    wire: NotRequired[ProviderWire]
    """`responses`, `chat`, `native`, or `auto`: `responses` at OpenAI itself, `native` at Vertex AI and at addresses of Bedrock without a path, `chat` elsewhere. Only `auto` for kind anthropic. `native` is the vendor's own API (kinds bedrock, google, vertex) and needs the extra `providers`."""
    echo_reasoning: NotRequired[EchoReasoning]
    """Of chat completions: where a provider that shows the model's reasoning gets it back. `tool_loop`: after the last message of the user, and before it where the model requires it; `always`; `never`."""
    api_key: NotRequired[str | SecretReference | None]
    """Its key: `[hidden]`, or the name of a secret; null: no key is sent. Of kind vertex the JSON of a service account, of kind bedrock an API key or `ID:SECRET` of an access key."""
    cloud: NotRequired[CloudBody | None]
    """Of kinds azure, bedrock and vertex: region, project and identity."""
    deployments: NotRequired[list[DeploymentBody]]
    """Places that serve its models; each thread uses one of them, and another one while that one refuses."""


class ModelProviderView(TypedDict):
    """A provider; `api_key` is `[hidden]`, the name of a secret, or null."""

    name: str
    """`[a-z0-9][a-z0-9_-]{0,63}`; models are then `NAME:model`."""
    kind: ProviderKind
    """The vendor of its API."""
    base_url: str
    """Its address. Default: the vendor's own."""
    wire: ProviderWire
    """`responses`, `chat`, `native`, or `auto`: `responses` at OpenAI itself, `native` at Vertex AI and at addresses of Bedrock without a path, `chat` elsewhere. Only `auto` for kind anthropic. `native` is the vendor's own API (kinds bedrock, google, vertex) and needs the extra `providers`."""
    echo_reasoning: EchoReasoning
    """Of chat completions: where a provider that shows the model's reasoning gets it back. `tool_loop`: after the last message of the user, and before it where the model requires it; `always`; `never`."""
    api_key: str | SecretReferenceView | None
    """Its key: `[hidden]`, or the name of a secret; null: no key is sent. Of kind vertex the JSON of a service account, of kind bedrock an API key or `ID:SECRET` of an access key."""
    cloud: CloudView | None
    """Of kinds azure, bedrock and vertex: region, project and identity."""
    deployments: list[DeploymentView]
    """Places that serve its models; each thread uses one of them, and another one while that one refuses."""
    version: int
    """Counts the changes, from 1. `If-Match` takes it."""
    created_at: str
    """Time of the creation."""
    updated_at: str
    """Time of the last change."""


class ModelSettingsBody(TypedDict):
    """
    Parameters of model calls. What is absent or null is not sent to the model. What a model is
    known to refuse is refused here.
    """

    effort: NotRequired[Effort | None]
    """How much the model thinks."""
    verbosity: NotRequired[Verbosity | None]
    """How long its answers are."""
    temperature: NotRequired[Temperature | Temperature1]
    """Sampling temperature."""
    top_p: NotRequired[TopP | TopP1]
    """Share of the most probable tokens that are sampled from."""
    max_output_tokens: NotRequired[MaxOutputTokens | MaxOutputTokens1]
    """Most tokens of one answer, reasoning included."""
    parallel_tool_calls: NotRequired[bool | None]
    """Whether one answer may have several tool calls."""
    thinking_budget: NotRequired[ThinkingBudget | ThinkingBudget1]
    """In tokens, for models that take one instead of an effort."""
    service_tier: NotRequired[ServiceTier | ServiceTier1]
    """The provider's class of service."""
    stop: NotRequired[list[str] | None]
    """1 to 16 texts that end the answer."""
    seed: NotRequired[Seed | Seed1]
    """Seed of the sampling."""
    cache_ttl: NotRequired[CacheTtl | None]
    """How long the provider caches the prompt."""
    extra_body: NotRequired[dict[str, Any] | None]
    """Added to the body of requests: parameters that are not here."""


class ModelSettingsView(TypedDict):
    """Model settings as configured; null where unset."""

    effort: Effort | None
    """How much the model thinks."""
    verbosity: Verbosity | None
    """How long its answers are."""
    temperature: float | None
    """Sampling temperature."""
    top_p: float | None
    """Share of the most probable tokens that are sampled from."""
    max_output_tokens: int | None
    """Most tokens of one answer, reasoning included."""
    parallel_tool_calls: bool | None
    """Whether one answer may have several tool calls."""
    thinking_budget: int | None
    """In tokens, for models that take one instead of an effort."""
    service_tier: str | None
    """The provider's class of service."""
    stop: list[str] | None
    """1 to 16 texts that end the answer."""
    seed: int | None
    """Seed of the sampling."""
    cache_ttl: CacheTtl | None
    """How long the provider caches the prompt."""
    extra_body: dict[str, Any] | None
    """Added to the body of requests: parameters that are not here."""


class NodeCancelledEvent(TypedDict):
    """A node is not needed any more, or the run was cancelled."""

    seq: int
    """Number of the event in its workflow run: from 1, without gaps."""
    workflow_run_id: str
    """Id of the workflow run."""
    at: str
    """Time of the event."""
    type: Literal['node.cancelled']
    """Type of the event."""
    node_id: str
    """Id of the node."""
    error: NotRequired[NodeErrorView]
    """Why it was cancelled."""


class NodeRunView(TypedDict):
    """
    The state of a started node. `asked` is the question to a person; `run_id` is the agent's
    run.
    """

    node_id: str
    """Id of the node."""
    status: NodeStatus
    """Status of the node."""
    attempt: int
    """Number of the attempt, from 1."""
    output: Any
    """Output of the node; null until it succeeded."""
    handle: str | None
    """The branch that a condition took; null for other nodes."""
    error: NodeErrorView | None
    """Why it failed, or is tried again; null otherwise."""
    run_id: str | None
    """The run of an agent node; null for other nodes."""
    asked: Any
    """What it waits for: `{prompt, schema}` of a person, with `url` for an account to connect there, `{calls}` of its agent's run; null if it does not wait."""
    started_at: str | None
    """Time of its start; null until then."""
    finished_at: str | None
    """Time of its end; null until then."""


class OpenGatewaySessionBody(TypedDict):
    """A session. Exactly one of `agent_id`, `run_id` and `workflow_run_id` selects its tools."""

    agent_id: NotRequired[str | None]
    """Id or name of an agent: all its tools."""
    run_id: NotRequired[str | None]
    """An unfinished run: its tools until it ends."""
    workflow_run_id: NotRequired[str | None]
    """An unfinished workflow run: tools of its nodes until it ends."""
    node_ids: NotRequired[NodeIds | NodeIds1]
    """With `workflow_run_id`: tool nodes wired to one agent, under its policies; or an agent node, for all tools wired to it. `[]` selects nothing."""
    ttl_s: NotRequired[int]
    """Validity of the token in seconds."""
    names: NotRequired[ToolNames]
    """`original`: tools have the names that their server gives them; for agents with exactly one server."""


class OpenedGatewaySessionView(TypedDict):
    """
    A new session; `token` is shown only once. `url` is where clients connect, null if the
    service listens on no port.
    """

    id: str
    """Id of the session."""
    agent_id: str
    """Id of the agent whose tools it has."""
    run_id: str | None
    """The run whose tools it has; null if it has another origin."""
    workflow_run_id: str | None
    """The workflow run whose tools it has; null if it has another origin."""
    node_ids: list[str] | None
    """Tool nodes of the workflow run; null if it has another origin."""
    thread_id: str
    """Id of the thread that holds the files of its calls."""
    names: ToolNames
    """Names of its tools."""
    created_by: str
    """The API key or user that opened it."""
    client_id: str | None
    """The OAuth client to which the user granted it; null if it has another origin."""
    client_name: str | None
    """What that client calls itself."""
    created_at: str
    """Time of the creation."""
    expires_at: str
    """From this time on it is invalid."""
    revoked_at: str | None
    """Time of its revocation, or of the end of its run; null while it is open."""
    token: str
    """Bearer token of the session: `dgs_…`. It is shown only once."""
    url: str | None
    """Where clients connect; null if the service listens on no port."""


class PinnedToolView(TypedDict):
    """
    A tool and its approval: `state` is `approved`, `quarantined` if it is new or changed since
    its approval, or `rejected` by a person. Unless it is approved, `diff` shows the change as a
    unified diff.
    """

    name: str
    """Name of the tool at its server."""
    model_name: str
    """Name of the tool as models see it."""
    description: str
    """Description of the tool."""
    parameters: dict[str, Any]
    """JSON Schema of its arguments."""
    output_schema: dict[str, Any] | None
    """JSON Schema of its structured results; null if it has none."""
    read_only_hint: bool
    """The server says that the tool changes nothing."""
    idempotent_hint: bool
    """The server says that repeating a call changes nothing more."""
    destructive_hint: bool | None
    """The server says whether the tool may delete or overwrite; null if it does not say."""
    state: DefinitionState
    """`quarantined` if it is new or changed since its approval, and waits for a person; `rejected` if a person has refused this definition. Runs get approved tools only."""
    digest: str
    """Digest of the definition; an approval names it."""
    diff: NotRequired[str]
    """The change that an approval would accept, as a unified diff. Not for an approved tool."""
    rejection: NotRequired[RejectionView]
    """Who rejected the definition. Only for a rejected tool."""


class PolicyDecisionView(TypedDict):
    """What policy decided about a tool call."""

    verdict: Verdict
    """The decision."""
    reason: DecisionReason
    """Why it was decided so."""
    layer: PolicyLayer
    """Layer of the rule that decided."""
    pattern: str | None
    """Pattern of that rule; null if no rule decided."""


class ProcessStatusView(TypedDict):
    """
    State of a server in another process on the same database; `name` is its machine and
    number.
    """

    name: str
    """Machine and number of the process."""
    state: ServerState
    """State of the server in that process."""
    since: str
    """Beginning of the state."""
    last_error: str | None
    """Last error, as a sentence; null if there was none."""


class ProviderCheckView(TypedDict):
    """One line of a test."""

    deployment: str | None
    """The deployment that was tested; null: the provider itself."""
    check: ProviderCheckName
    """What was tested."""
    outcome: ProviderCheckOutcome
    """`skipped` after a failure, or without a model."""
    detail: str
    """The outcome in a sentence."""
    latency_ms: int
    """How long the provider took."""
    provider_error: ProviderErrorView | None
    """What the provider said, without its key; null if nothing."""


class ProviderTestView(TypedDict):
    """The outcome of a test."""

    ok: bool
    """Whether every check succeeded."""
    provider: str
    """The provider."""
    model: str | None
    """The model that was tested, as `PROVIDER:NAME`; null: none."""
    checks: list[ProviderCheckView]
    """Credentials, model, tool call and streaming of each deployment."""


class RegistryOptionView(TypedDict):
    """One way to start or reach the server."""

    kind: McpServerKind
    """Kind of the server that it becomes."""
    package: str | None
    """What it is installed from; null for a remote server."""
    version: str | None
    """Version of the package."""
    settings: list[RegistrySettingView]
    """What the entry sets: URL, environment, headers and arguments."""
    inputs: list[RegistryInputView]
    """The values to choose."""
    remarks: list[str]
    """What to know before adding it."""


class ResumeRunBody(TypedDict):
    """
    Results and decisions for pending tool calls. All are accepted or none. The run resumes
    once none is pending.
    """

    tool_results: NotRequired[list[ToolResultBody]]
    """Results of client tools, and answers to requests of MCP servers."""
    approvals: NotRequired[list[CallDecisionBody]]
    """Requires the role operator."""


class ResumeWorkflowRunBody(TypedDict):
    """
    Answers to nodes that wait for a person; or, for one node, the input of its agent's run,
    as at `/runs/{id}/resume`.
    """

    answers: NotRequired[list[AnswerBody]]
    """Answers of people, by node."""
    node_id: NotRequired[str | None]
    """The agent node whose run waits."""
    tool_results: NotRequired[list[ToolResultBody]]
    """Results of client tools."""
    approvals: NotRequired[list[CallDecisionBody]]
    """Requires the role operator."""


class RoleList(TypedDict):
    """All roles of the organization, and all permissions."""

    data: list[RoleView]
    """The entries of the page, in the order of the list."""
    built_in: list[BuiltInRoleView]
    """The built-in roles."""
    permissions: list[PermissionView]
    """All permissions that roles can have."""


class RunBody(TypedDict):
    """
    A run of an agent, named by `agent_id` or `agent`. Limits and allowlist can only narrow
    the agent's.
    """

    agent_id: NotRequired[str | None]
    """The agent's id."""
    agent: NotRequired[str | None]
    """The agent's name."""
    input: str | list[TextPart | ImagePart | FilePart | SourcePart]
    """Text, or parts of type text, image, file and source."""
    thread_id: NotRequired[str | None]
    """The thread of the run. By default it gets a new thread."""
    multitask_strategy: NotRequired[MultitaskStrategy]
    """What happens to an unfinished run of the thread."""
    lane: NotRequired[Lane | None]
    """Place among waiting runs of the organization: `interactive` before `normal` before `batch`, by weight. By default the agent's; one before the agent's requires the role operator."""
    limits: NotRequired[LimitsBody]
    """Limits of the run; they can only narrow the agent's."""
    model_settings: NotRequired[ModelSettingsBody]
    """Replace the agent's one by one. `extra_body` and `service_tier` require the role operator."""
    output_schema: NotRequired[dict[str, Any] | None]
    """JSON Schema of the answer, of type object. Replaces the agent's."""
    model: NotRequired[str | None]
    """The agent's, one of its fallbacks, or one of the organization's."""
    tool_allowlist: NotRequired[list[str] | None]
    """Tool names or globs; they can only narrow the agent's."""
    metadata: NotRequired[dict[str, Any]]
    """Data of the client; Dragoman does not use it."""
    webhook: NotRequired[str | WebhookBody | None]
    """Webhook for the end of the run or a required action: a URL, or `{url, secret, events}`."""


class RunRequiresActionEvent(TypedDict):
    """The run waits for people or clients."""

    seq: int
    """Number of the event in its run: from 1, without gaps."""
    run_id: str
    """Id of the run."""
    at: str
    """Time of the event."""
    type: Literal['run.requires_action']
    """Type of the event."""
    pending: list[ToolUseView]
    """Tool calls that it waits for."""


class RunView(TypedDict):
    """
    A run. `pending` are the tool calls that it waits for in `requires_action`.
    `incomplete_reason` is the limit reached, or why the model's last reply was not a complete
    answer.
    """

    id: str
    """Id of the run."""
    thread_id: str
    """Id of its thread."""
    agent_id: str
    """Id of its agent."""
    agent_version: int
    """Version of its agent."""
    status: RunStatus
    """Status of the run."""
    lane: Lane
    """Its lane among waiting runs."""
    model: str
    """The model, as `PROVIDER:NAME`."""
    input: list[InputPartView]
    """Input of the run."""
    output_schema: dict[str, Any] | None
    """Its own output schema; null for that of its agent."""
    output: str | None
    """Text of the last reply; null if there is none."""
    output_json: dict[str, Any] | None
    """The object in the output that matches the output schema; null without a schema, or if none matches."""
    error: RunErrorView | None
    """Why it failed; null if it did not."""
    incomplete_reason: IncompleteReason | None
    """The limit that it reached, or why the last reply is incomplete; null unless it ended `incomplete`."""
    pending: list[ToolUseView]
    """Tool calls that it waits for in `requires_action`."""
    usage: RunUsageView
    """Consumption of the run."""
    attempt: int
    """Counts the workers that executed it."""
    created_at: str
    """Time of the creation."""
    started_at: str | None
    """Time of its start; null until then."""
    finished_at: str | None
    """Time of its end; null until then."""
    metadata: dict[str, Any]
    """Data of the client; Dragoman does not use it."""
    started_by: str | None
    """Who started it: the id of an API key (of the workflow run or gateway session, where one of these did), or `schedule:` and the id of a schedule."""
    retry_of: str | None
    """The failed run that it continues; null if it is no retry."""


class RunWithMessagesView(TypedDict):
    """A run and the messages it wrote."""

    run: RunView
    """The run."""
    messages: list[MessageView]
    """Messages that it wrote, oldest first."""


class ScheduleBody(TypedDict):
    """
    A schedule: a cron expression and the run that it starts, with an agent named by
    `agent_id` or `agent`.
    """

    name: str
    """Unique in the organization."""
    cron: str
    """Five fields: minute, hour, day of month, month, day of week."""
    timezone: NotRequired[str]
    """The IANA time zone of the expression."""
    agent_id: NotRequired[str | None]
    """Id of the agent."""
    agent: NotRequired[str | None]
    """The agent's name."""
    input: str | list[TextPart | ImagePart | FilePart]
    """Text, or parts of type text, image and file."""
    thread_id: NotRequired[str | None]
    """The thread of every run. By default each run gets a new thread."""
    multitask_strategy: NotRequired[MultitaskStrategy]
    """What happens to an unfinished run of the thread."""
    lane: NotRequired[Lane | None]
    """The lane of its runs; null: the agent's."""
    limits: NotRequired[LimitsBody]
    """Limits of the runs; they can only narrow the agent's."""
    model_settings: NotRequired[ModelSettingsBody]
    """Replace the agent's one by one."""
    output_schema: NotRequired[dict[str, Any] | None]
    """JSON Schema of the answers of its runs, of type object; null: the agent's."""
    model: NotRequired[str | None]
    """The agent's, one of its fallbacks, or one of the organization's; null: the agent's."""
    tool_allowlist: NotRequired[list[str] | None]
    """As for a run: it can only narrow the agent's."""
    metadata: NotRequired[dict[str, Any]]
    """Metadata of every run; `schedule` is added."""
    webhook: NotRequired[str | WebhookBody | None]
    """Webhook for the results of every run."""
    missed: NotRequired[MissedFires]
    """Handling of triggers that were missed while no worker executed runs."""
    enabled: NotRequired[bool]
    """`false` pauses the schedule."""
    own_account: NotRequired[bool]
    """Its runs act as the caller, with their own accounts at MCP servers. For people who signed in."""


class ScheduleView(TypedDict):
    """
    A schedule. `next_fire_at` is null while it is paused. `last_error` is cleared when a
    trigger starts a run.
    """

    id: str
    """Id of the schedule."""
    name: str
    """Unique in the organization."""
    cron: str
    """Five fields: minute, hour, day of month, month, day of week."""
    timezone: str
    """The IANA time zone of the expression."""
    agent_id: str
    """Id of the agent."""
    input: list[InputPartView]
    """Input of every run."""
    thread_id: str | None
    """The thread of every run. By default each run gets a new thread."""
    multitask_strategy: MultitaskStrategy
    """What happens to an unfinished run of the thread."""
    lane: Lane | None
    """The lane of its runs; null: the agent's."""
    limits: LimitsView
    """Limits of the runs; they can only narrow the agent's."""
    model_settings: ModelSettingsView
    """Replace the agent's one by one."""
    output_schema: dict[str, Any] | None
    """JSON Schema of the answers of its runs, of type object; null: the agent's."""
    model: str | None
    """The agent's, one of its fallbacks, or one of the organization's; null: the agent's."""
    tool_allowlist: list[str] | None
    """As for a run: it can only narrow the agent's."""
    metadata: dict[str, Any]
    """Metadata of every run; `schedule` is added."""
    webhook: ScheduleWebhookView | None
    """Webhook for the results of every run."""
    missed: MissedFires
    """Handling of triggers that were missed while no worker executed runs."""
    enabled: bool
    """`false` pauses the schedule."""
    person_id: str | None
    """The person as whom its runs act, with their accounts; null: as no person."""
    next_fire_at: str | None
    """Time of the next run; null while it is paused."""
    last_fired_at: str | None
    """Time of the last trigger; null if there was none."""
    last_run_id: str | None
    """The last run that it started."""
    last_error: ScheduleErrorView | None
    """Why the last trigger started no run; null if it did."""
    version: int
    """Counts the changes, from 1. `If-Match` takes it."""
    created_at: str
    """Time of the creation."""
    updated_at: str
    """Time of the last change."""


class SecretPage(TypedDict):
    """A page of secrets; `next_cursor` is null on the last one."""

    data: list[SecretView]
    """The entries of the page, in the order of the list."""
    next_cursor: str | None
    """Cursor of the next page; null on the last one."""


class ServerStatusView(TypedDict):
    """
    Installation and connections of a server, over all processes on the database. `install` is
    null unless an installation is in progress.
    """

    state: ServerState
    """State of the server."""
    since: str
    """Beginning of the state."""
    last_error: str | None
    """Last error, as a sentence; null if there was none."""
    protocol_version: str | None
    """Version of the protocol; null unless connected, or if the tools are declared."""
    tool_count: int | None
    """Number of its tools; null if never listed."""
    installed_version: str | None
    """Installed version of its package; null if not installed."""
    installed_at: str | None
    """Time of the installation; null if not installed."""
    install: InstallProgressView | None
    """Progress of an installation; null unless one is in progress."""
    processes: list[ProcessStatusView]
    """Other processes on the same database that are connected to it."""


class SessionPage(TypedDict):
    """A page of sessions; `next_cursor` is null on the last one."""

    data: list[SessionView]
    """The entries of the page, in the order of the list."""
    next_cursor: str | None
    """Cursor of the next page; null on the last one."""


class SourcePage(TypedDict):
    """A page of sources; `next_cursor` is null on the last one."""

    data: list[SourceView]
    """The entries of the page, in the order of the list."""
    next_cursor: str | None
    """Cursor of the next page; null on the last one."""


class TestMcpServerBody(TypedDict):
    """A server to test without saving it; the slug is ignored."""

    slug: NotRequired[str]
    """Unique in the organization: `[a-z0-9][a-z0-9-]{0,31}`."""
    kind: McpServerKind
    """How the server is run or reached."""
    package: NotRequired[str | None]
    """For kinds npm and python: a name, or the absolute path of a .tgz, wheel or sdist. For kind python, further requirements may follow after spaces: `mcp-server-sqlite mcp<2`. For kind oci: a container image, such as `ghcr.io/owner/name:1.2`."""
    version: NotRequired[str | None]
    """Version of the package. Default: the newest at installation. For kind oci: a tag or digest. Default: `latest`."""
    path: NotRequired[str | None]
    """Executable or directory that installation of a custom server copies."""
    command: NotRequired[str | None]
    """Command of a custom server, run in place, or from the copy if `path` is set. For kinds npm and python: one of the package's commands, if it has several."""
    args: NotRequired[list[str]]
    """Arguments of the command, or of the image. They must not contain secrets."""
    env: NotRequired[dict[str, str | SecretReference]]
    """Environment of a started server. Values are write-only, or references to named secrets."""
    url: NotRequired[str | None]
    """Address of a server of kind http, sse or a2a."""
    headers: NotRequired[dict[str, str | SecretReference]]
    """Headers of requests to a remote server. Values are write-only, or references to named secrets."""
    auth: NotRequired[BearerAuthBody | ApiKeyAuthBody | ClientCredentialsAuthBody | AuthorizationCodeAuthBody | TokenExchangeAuthBody | IdJagAuthBody | None]
    """Authentication at a server of kind http, sse or a2a."""
    tls: NotRequired[TlsBody | None]
    """TLS with a remote server, besides the usual; null: the usual alone."""
    credentials: NotRequired[Credentials]
    """Whose account is used: one of the organization, or that of the person who started the run. `person` needs a secret `person:NAME`, which each person gives, in env, headers, url or auth, or kind http or sse with auth of type oauth_authorization_code, oauth_token_exchange or oauth_id_jag. Kind a2a has none."""
    tools: NotRequired[list[str] | None]
    """Names or globs of the server's tools that are used, as the server names them. Null is all; `[]` is none."""
    declared_tools: NotRequired[list[DeclaredToolBody]]
    """For kinds http and custom: definitions of a server that answers only `tools/call`. It then gets no handshake, and its tools are not listed. Empty: the server lists its tools."""
    network: NotRequired[ServerNetwork]
    """What a started server reaches: nothing, the hosts of `network_hosts` through Dragoman's proxy, or all addresses that the operator permits."""
    network_hosts: NotRequired[list[str]]
    """Hosts of the allowlist: `api.example.com`, or `*.example.com` for all names below it, at ports 80 and 443 or at `:PORT`."""
    trusted: NotRequired[bool]
    """Whether its hints and instructions are trusted."""
    isolation: NotRequired[Isolation | None]
    """Scope of a connection. Default: `shared` for remote servers, `run` for others."""
    on_connection_loss: NotRequired[ConnectionLoss]
    """While the shared connection is lost: keep its tools, or omit them. Omitting needs a shared connection."""
    output_validation: NotRequired[OutputValidation]
    """Handling of structured results that do not match the tool's output schema."""
    elicitation: NotRequired[ElicitationPolicy]
    """When it requests input during a call: decline, or pass the request to the run or the gateway's client."""
    sampling: NotRequired[PassingPolicy]
    """When it requests a model completion during a call: decline, or pass it to the gateway's client."""
    roots: NotRequired[PassingPolicy]
    """When it requests the client's roots: decline, or pass the request to the gateway's client."""
    timeout_s: NotRequired[float]
    """Timeout of each call, in seconds."""
    idle_timeout_s: NotRequired[float]
    """Idle seconds after which an unused connection closes."""
    max_response_bytes: NotRequired[int]
    """Most bytes of one response."""
    max_concurrency: NotRequired[int]
    """Most concurrent calls; more wait."""
    rate_limit: NotRequired[RateLimitBody | None]
    """Limit of its calls. Further calls wait, until their deadline."""
    registry_entry: NotRequired[str | None]
    """Entry of an MCP registry that it was made from: `REGISTRY:NAMESPACE/NAME@VERSION`."""
    enabled: NotRequired[bool]
    """Whether it is used."""
    team: NotRequired[str | None]
    """Name of the group that it belongs to: others neither see nor use it, and only agents of the group have its tools. Null: it belongs to the organization."""


class ThreadPage(TypedDict):
    """A page of threads; `next_cursor` is null on the last one."""

    data: list[ListedThreadView]
    """The entries of the page, in the order of the list."""
    next_cursor: str | None
    """Cursor of the next page; null on the last one."""


class ToolBlockedEvent(TypedDict):
    """A tool call was not executed."""

    seq: int
    """Number of the event in its run: from 1, without gaps."""
    run_id: str
    """Id of the run."""
    at: str
    """Time of the event."""
    tool_call_id: str
    """Id of the tool call."""
    name: str
    """Name of the tool as models see it."""
    duration_ms: int
    """Duration of the call."""
    server: str | None
    """Slug of the tool's MCP server; null for a native tool."""
    decision: NotRequired[PolicyDecisionView]
    """What policy decided, if it was asked."""
    type: Literal['tool.blocked']
    """Type of the event."""
    reason: str
    """Code of the reason."""


class ToolExecutedEvent(TypedDict):
    """A tool call has its result."""

    seq: int
    """Number of the event in its run: from 1, without gaps."""
    run_id: str
    """Id of the run."""
    at: str
    """Time of the event."""
    tool_call_id: str
    """Id of the tool call."""
    name: str
    """Name of the tool as models see it."""
    duration_ms: int
    """Duration of the call."""
    server: str | None
    """Slug of the tool's MCP server; null for a native tool."""
    decision: NotRequired[PolicyDecisionView]
    """What policy decided, if it was asked."""
    type: Literal['tool.executed']
    """Type of the event."""


class ToolFailedEvent(TypedDict):
    """A tool call failed."""

    seq: int
    """Number of the event in its run: from 1, without gaps."""
    run_id: str
    """Id of the run."""
    at: str
    """Time of the event."""
    tool_call_id: str
    """Id of the tool call."""
    name: str
    """Name of the tool as models see it."""
    duration_ms: int
    """Duration of the call."""
    server: str | None
    """Slug of the tool's MCP server; null for a native tool."""
    decision: NotRequired[PolicyDecisionView]
    """What policy decided, if it was asked."""
    type: Literal['tool.failed']
    """Type of the event."""
    error: ErrorView
    """Why it failed."""


class ToolRuleBody(TypedDict):
    """A rule for tools. Absent or null leaves a field to the other layers."""

    decision: NotRequired[Verdict | None]
    """Decision on a call."""
    on_block: NotRequired[OnBlock | None]
    """Effect of a blocked call on its run."""
    allowed_params: NotRequired[list[str] | None]
    """Names of allowed arguments. Absent: all; `[]`: none."""
    denied_params: NotRequired[list[str] | None]
    """Names of denied arguments. Takes precedence over `allowed_params`."""
    arguments_schema: NotRequired[dict[str, Any] | None]
    """A JSON Schema for the arguments, in addition to the tool's own."""
    max_results: NotRequired[MaxResults | MaxResults1]
    """Most results that one call may ask for."""
    max_calls: NotRequired[MaxCalls | MaxCalls1]
    """Most calls per tool and run."""
    max_result_bytes: NotRequired[MaxResultBytes | MaxResultBytes1]
    """Bytes of a result that the model gets at most. Default: 65536."""
    idempotent: NotRequired[bool | None]
    """Whether a call may be sent again after a crash."""
    on_unknown_outcome: NotRequired[OnUnknownOutcome | None]
    """Handling of a call interrupted by a crash that must not be repeated."""
    timeout_s: NotRequired[TimeoutS2 | TimeoutS3]
    """Most seconds for one call."""
    approval_ttl_s: NotRequired[ApprovalTtlS | ApprovalTtlS1]
    """Seconds that an approval waits for its decision. Default: one day."""
    allow_self_approval: NotRequired[bool | None]
    """Whether the person who started the run may approve; false: four eyes."""
    approvers: NotRequired[ApproversBody | None]
    """Who may decide approvals. Default: each operator."""
    approvals_needed: NotRequired[ApprovalsNeeded | ApprovalsNeeded1]
    """Number of different people who must approve. Default: 1."""
    when: NotRequired[ConditionBody | None]
    """Condition of the rule. While it does not hold, the rule does not exist."""
    overridable: NotRequired[bool]
    """In organizations' rules: agents may override the rule."""


class ToolRuleView(TypedDict):
    """The fields that a rule sets."""

    decision: NotRequired[Verdict]
    """Decision on a call."""
    on_block: NotRequired[OnBlock]
    """Effect of a blocked call on its run."""
    allowed_params: NotRequired[list[str]]
    """Names of allowed arguments. Absent: all; `[]`: none."""
    denied_params: NotRequired[list[str]]
    """Names of denied arguments. Takes precedence over `allowed_params`."""
    arguments_schema: NotRequired[dict[str, Any]]
    """A JSON Schema for the arguments, in addition to the tool's own."""
    max_results: NotRequired[int]
    """Most results that one call may ask for."""
    max_calls: NotRequired[int]
    """Most calls per tool and run."""
    max_result_bytes: NotRequired[int]
    """Bytes of a result that the model gets at most. Default: 65536."""
    idempotent: NotRequired[bool]
    """Whether a call may be sent again after a crash."""
    on_unknown_outcome: NotRequired[OnUnknownOutcome]
    """Handling of a call interrupted by a crash that must not be repeated."""
    timeout_s: NotRequired[float]
    """Most seconds for one call."""
    approval_ttl_s: NotRequired[float]
    """Seconds that an approval waits for its decision. Default: one day."""
    allow_self_approval: NotRequired[bool]
    """Whether the person who started the run may approve; false: four eyes."""
    approvers: NotRequired[ApproversView]
    """Who may decide approvals. Default: each operator."""
    approvals_needed: NotRequired[int]
    """Number of different people who must approve. Default: 1."""
    when: NotRequired[ConditionView]
    """Condition of the rule. While it does not hold, the rule does not exist."""
    overridable: NotRequired[bool]
    """In organizations' rules: agents may override the rule."""


class UpdateAgentBody(TypedDict):
    """
    Changes to an agent; each creates a new version. Absent fields stay; limits are merged one
    by one.
    """

    name: NotRequired[str | None]
    """Unique in the organization."""
    model: NotRequired[str | None]
    """The model, as `PROVIDER:NAME`."""
    fallback_models: NotRequired[list[str] | None]
    """Tried in order when the model fails."""
    instructions: NotRequired[Instructions | Instructions1]
    """The system prompt."""
    tools: NotRequired[list[str] | None]
    """Native tools, by type."""
    mcp_servers: NotRequired[list[str] | None]
    """MCP servers, by slug."""
    tool_allowlist: NotRequired[list[str] | None]
    """null removes the allowlist."""
    tool_policies: NotRequired[dict[str, ToolRuleBody] | None]
    """Replaces all of them."""
    limits: NotRequired[LimitsBody | None]
    """Merged with its limits one by one."""
    model_settings: NotRequired[ModelSettingsBody | None]
    """Replaces all of them."""
    daily_budget_usd: NotRequired[str | None]
    """null removes the budget."""
    canary_tokens: NotRequired[list[str | CanaryTokenBody] | None]
    """Tokens that the agent must never output: strings or objects. Read back as ids only. Replaces all of them."""
    enabled: NotRequired[bool | None]
    """Whether it may start runs."""
    description: NotRequired[Description | Description1]
    """Description of this agent for gateway clients that may start it."""
    agents: NotRequired[list[str] | None]
    """Names of agents that gateway clients with this agent's tools may start, as `agent__NAME`."""
    independent_agents: NotRequired[list[str] | None]
    """Names among `agents` whose runs follow their own policies only. For the runs of all others, this agent's allowlist and policies apply, too."""
    reasoning_summary: NotRequired[bool | None]
    """Whether models are asked for summaries of their reasoning, published as `reasoning.delta`."""
    output_schema: NotRequired[dict[str, Any] | None]
    """null removes it."""
    lane: NotRequired[Lane | None]
    """The lane of its runs, unless a run or schedule states another."""
    max_queued: NotRequired[MaxQueued4 | MaxQueued5]
    """Most of its runs that may be queued; null: any number."""
    max_running: NotRequired[MaxRunning4 | MaxRunning5]
    """Most of its runs that may be in progress; null: any number."""
    team: NotRequired[str | None]
    """Name of the group that it belongs to: others neither see nor use it. Null: it belongs to the organization."""


class UpdateMcpServerBody(TypedDict):
    """
    Changes to an MCP server. Absent fields stay. `env` and `headers` are merged entry by
    entry: null removes one, `[hidden]` leaves it unchanged.
    """

    slug: NotRequired[str | None]
    """Unique in the organization: `[a-z0-9][a-z0-9-]{0,31}`."""
    kind: NotRequired[McpServerKind | None]
    """How the server is run or reached."""
    package: NotRequired[str | None]
    """For kinds npm and python: a name, or the absolute path of a .tgz, wheel or sdist. For kind python, further requirements may follow after spaces: `mcp-server-sqlite mcp<2`. For kind oci: a container image, such as `ghcr.io/owner/name:1.2`."""
    version: NotRequired[str | None]
    """Version of the package. Default: the newest at installation. For kind oci: a tag or digest. Default: `latest`."""
    path: NotRequired[str | None]
    """Executable or directory that installation of a custom server copies."""
    command: NotRequired[str | None]
    """Command of a custom server, run in place, or from the copy if `path` is set. For kinds npm and python: one of the package's commands, if it has several."""
    args: NotRequired[list[str] | None]
    """Arguments of the command, or of the image. They must not contain secrets."""
    env: NotRequired[dict[str, str | SecretReference | None] | None]
    """Environment of a started server. Values are write-only, or references to named secrets."""
    url: NotRequired[str | None]
    """Address of a server of kind http, sse or a2a."""
    headers: NotRequired[dict[str, str | SecretReference | None] | None]
    """Headers of requests to a remote server. Values are write-only, or references to named secrets."""
    auth: NotRequired[BearerAuthBody | ApiKeyAuthBody | ClientCredentialsAuthBody | AuthorizationCodeAuthBody | TokenExchangeAuthBody | IdJagAuthBody | None]
    """Replaced entirely, including its secrets."""
    tls: NotRequired[TlsBody | None]
    """Replaced entirely, including its private key."""
    credentials: NotRequired[Credentials | None]
    """Whose account is used: one of the organization, or that of the person who started the run. `person` needs a secret `person:NAME`, which each person gives, in env, headers, url or auth, or kind http or sse with auth of type oauth_authorization_code, oauth_token_exchange or oauth_id_jag. Kind a2a has none."""
    tools: NotRequired[list[str] | None]
    """Names or globs of the server's tools that are used, as the server names them. Null is all; `[]` is none."""
    declared_tools: NotRequired[list[DeclaredToolBody] | None]
    """For kinds http and custom: definitions of a server that answers only `tools/call`. It then gets no handshake, and its tools are not listed. Empty: the server lists its tools."""
    network: NotRequired[ServerNetwork | None]
    """What a started server reaches: nothing, the hosts of `network_hosts` through Dragoman's proxy, or all addresses that the operator permits."""
    network_hosts: NotRequired[list[str] | None]
    """Hosts of the allowlist: `api.example.com`, or `*.example.com` for all names below it, at ports 80 and 443 or at `:PORT`."""
    trusted: NotRequired[bool | None]
    """Whether its hints and instructions are trusted."""
    isolation: NotRequired[Isolation | None]
    """Scope of a connection. Default: `shared` for remote servers, `run` for others."""
    on_connection_loss: NotRequired[ConnectionLoss | None]
    """While the shared connection is lost: keep its tools, or omit them. Omitting needs a shared connection."""
    output_validation: NotRequired[OutputValidation | None]
    """Handling of structured results that do not match the tool's output schema."""
    elicitation: NotRequired[ElicitationPolicy | None]
    """When it requests input during a call: decline, or pass the request to the run or the gateway's client."""
    sampling: NotRequired[PassingPolicy | None]
    """When it requests a model completion during a call: decline, or pass it to the gateway's client."""
    roots: NotRequired[PassingPolicy | None]
    """When it requests the client's roots: decline, or pass the request to the gateway's client."""
    timeout_s: NotRequired[TimeoutS4 | TimeoutS5]
    """Timeout of each call, in seconds."""
    idle_timeout_s: NotRequired[IdleTimeoutS | IdleTimeoutS1]
    """Idle seconds after which an unused connection closes."""
    max_response_bytes: NotRequired[MaxResponseBytes | MaxResponseBytes1]
    """Most bytes of one response."""
    max_concurrency: NotRequired[MaxConcurrency | MaxConcurrency1]
    """Most concurrent calls; more wait."""
    rate_limit: NotRequired[RateLimitBody | None]
    """Limit of its calls. Further calls wait, until their deadline."""
    registry_entry: NotRequired[str | None]
    """Entry of an MCP registry that it was made from: `REGISTRY:NAMESPACE/NAME@VERSION`."""
    enabled: NotRequired[bool | None]
    """Whether it is used."""
    team: NotRequired[str | None]
    """Name of the group that it belongs to: others neither see nor use it, and only agents of the group have its tools. Null: it belongs to the organization."""


class UpdateModelProviderBody(TypedDict):
    """
    Changes to a provider; absent fields stay; `api_key` null removes its key. `deployments`
    replace all earlier ones, keys included; `cloud` is replaced as a whole.
    """

    kind: NotRequired[ProviderKind | None]
    """The vendor of its API."""
    base_url: NotRequired[str | None]
    """Its address. Default: the vendor's own."""
    wire: NotRequired[ProviderWire | None]
    """`responses`, `chat`, `native`, or `auto`: `responses` at OpenAI itself, `native` at Vertex AI and at addresses of Bedrock without a path, `chat` elsewhere. Only `auto` for kind anthropic. `native` is the vendor's own API (kinds bedrock, google, vertex) and needs the extra `providers`."""
    echo_reasoning: NotRequired[EchoReasoning | None]
    """Of chat completions: where a provider that shows the model's reasoning gets it back. `tool_loop`: after the last message of the user, and before it where the model requires it; `always`; `never`."""
    api_key: NotRequired[str | SecretReference | None]
    """Its key: `[hidden]`, or the name of a secret; null: no key is sent. Of kind vertex the JSON of a service account, of kind bedrock an API key or `ID:SECRET` of an access key."""
    cloud: NotRequired[CloudBody | None]
    """Of kinds azure, bedrock and vertex: region, project and identity."""
    deployments: NotRequired[list[DeploymentBody] | None]
    """Places that serve its models; each thread uses one of them, and another one while that one refuses."""


class UpdateOrganizationBody(TypedDict):
    """
    Changes to the organization. Absent fields stay; limits are merged one by one.
    `mcp_enabled` switches every MCP server on or off, at once. Allowlist, policies and limits
    apply to all agents.
    """

    name: NotRequired[str | None]
    """Name of the organization."""
    mcp_enabled: NotRequired[bool | None]
    """Whether MCP servers are used; `false` switches every one of them off at once."""
    tool_allowlist: NotRequired[list[str] | None]
    """null removes the allowlist."""
    tool_policies: NotRequired[dict[str, ToolRuleBody] | None]
    """Replaces all of them."""
    models: NotRequired[list[str] | None]
    """Models that runs may select besides their agent's."""
    limits: NotRequired[LimitsBody | None]
    """Merged with its limits one by one."""
    daily_budget_usd: NotRequired[str | None]
    """Most that all runs may cost on one UTC day. null removes the budget."""
    user_daily_budget_usd: NotRequired[str | None]
    """Most that the runs of one user may cost on one UTC day. null removes the budget."""
    user_daily_budgets_usd: NotRequired[UserDailyBudgetsUsd2 | UserDailyBudgetsUsd3]
    """Other budgets than `user_daily_budget_usd`, by the ids of users. Replaces all of them."""
    user_limits: NotRequired[UserLimitsBody | None]
    """Limits of each user: requests, and active runs. Replaces both."""
    limits_of_users: NotRequired[LimitsOfUsers | LimitsOfUsers1]
    """Other limits than `user_limits`, by the ids of users. Replaces all of them."""
    keys_count_for_users: NotRequired[bool | None]
    """Whether what is done with an API key counts for the user who made it, within their budget and limits."""
    retention_days: NotRequired[RetentionDays2 | RetentionDays3]
    """null retains everything."""
    first_use: NotRequired[FirstUse | None]
    """What happens to the first tool definitions of MCP servers that are not trusted: `approve` (those that hide text wait for approval) or `review` (all of them wait)."""
    mcp_kinds: NotRequired[McpKinds2 | McpKinds3]
    """Kinds of MCP servers that may be registered and started; `archive` is a package from a file of this machine. null permits all. Requires a platform key."""
    queue_weight: NotRequired[QueueWeight2 | QueueWeight3]
    """Its share of the runs that start while runs of several organizations wait, relative to theirs. Requires a platform key."""
    max_queued: NotRequired[MaxQueued6 | MaxQueued7]
    """Most runs that may be queued; null: any number. Requires a platform key."""
    max_running: NotRequired[MaxRunning6 | MaxRunning7]
    """Most runs that may be in progress; null: any number. Requires a platform key."""
    inbox_webhook_secret: NotRequired[str | None]
    """Name of the secret with the URL to which approvals, questions of workflows, and tools and threads in quarantine are sent; null: nothing is sent."""


class UpdateScheduleBody(TypedDict):
    """
    Changes to a schedule. Absent fields stay; limits are merged one by one. `enabled` pauses
    and resumes it.
    """

    name: NotRequired[str | None]
    """Unique in the organization."""
    cron: NotRequired[str | None]
    """Five fields: minute, hour, day of month, month, day of week."""
    timezone: NotRequired[str | None]
    """The IANA time zone of the expression."""
    agent_id: NotRequired[str | None]
    """Id of the agent."""
    agent: NotRequired[str | None]
    """The agent's name."""
    input: NotRequired[str | list[TextPart | ImagePart | FilePart] | None]
    """Text, or parts of type text, image and file."""
    thread_id: NotRequired[str | None]
    """The thread of every run. By default each run gets a new thread."""
    multitask_strategy: NotRequired[MultitaskStrategy | None]
    """What happens to an unfinished run of the thread."""
    lane: NotRequired[Lane | None]
    """The lane of its runs; null: the agent's."""
    limits: NotRequired[LimitsBody | None]
    """Limits of the runs; they can only narrow the agent's."""
    model_settings: NotRequired[ModelSettingsBody | None]
    """Replaces all of them."""
    output_schema: NotRequired[dict[str, Any] | None]
    """null: the agent's."""
    model: NotRequired[str | None]
    """The agent's, one of its fallbacks, or one of the organization's; null: the agent's."""
    tool_allowlist: NotRequired[list[str] | None]
    """As for a run: it can only narrow the agent's."""
    metadata: NotRequired[dict[str, Any] | None]
    """Replaces it entirely."""
    webhook: NotRequired[str | WebhookBody | None]
    """Webhook for the results of every run."""
    missed: NotRequired[MissedFires | None]
    """Handling of triggers that were missed while no worker executed runs."""
    enabled: NotRequired[bool | None]
    """`false` pauses the schedule."""
    own_account: NotRequired[bool | None]
    """Its runs act as the caller, with their own accounts at MCP servers. For people who signed in. `false`: as no person."""


class UpdatedUserView(TypedDict):
    """
    A changed user, and how many runs, workflow runs and gateway sessions end with their
    access.
    """

    id: str
    """Id of the user. Runs, calls, approvals and audit entries name it."""
    issuer: str
    """Issuer of the person's identity."""
    subject: str
    """The person at the issuer."""
    email: str | None
    """E-mail address, as the identity provider says."""
    name: str | None
    """Name, as the identity provider says."""
    role: Role
    """What the user may do; each role includes the roles before it."""
    custom_role: str | None
    """The custom role in place of `role`, which is `viewer` then; null: none."""
    role_fixed: bool
    """Whether an admin set the role. Otherwise rules set it at each sign-in."""
    may_impersonate: bool
    """Whether an admin lets the user act as other users."""
    status: UserStatus
    """Only active users are admitted."""
    identity_provider_id: str
    """The identity provider of the last sign-in."""
    created_at: str
    """Time of the creation."""
    last_sign_in_at: str | None
    """Time of the last sign-in. Who sends tokens: when one was first used here, at most about once an hour; null if never."""
    cancelled_runs: int
    """Number of their runs that are cancelled."""
    cancelled_workflow_runs: int
    """Number of their workflow runs that are cancelled."""
    revoked_gateway_sessions: int
    """Number of their gateway sessions that are revoked."""


class UsagePage(TypedDict):
    """A page of sums; `next_cursor` is null on the last one."""

    data: list[UsageView]
    """The entries of the page, in the order of the list."""
    next_cursor: str | None
    """Cursor of the next page; null on the last one."""


class UserPage(TypedDict):
    """A page of users; `next_cursor` is null on the last one."""

    data: list[UserView]
    """The entries of the page, in the order of the list."""
    next_cursor: str | None
    """Cursor of the next page; null on the last one."""


class WebhookDeliveryView(TypedDict):
    """
    A delivery in progress. `receiver` is the host and port of the webhook's URL; the rest is
    never shown. `last_status` and `last_error` are from the latest attempt.
    """

    id: str
    """Id of the delivery."""
    run_id: str | None
    """Id of the run; null: of something that waits without a run."""
    event: WebhookEvent
    """Type of the event."""
    receiver: str
    """Host and port of the webhook's URL, or the name of the secret that has the URL; the rest is never shown."""
    state: DeliveryState
    """State of the delivery."""
    attempts: int
    """Number of attempts."""
    last_status: int | None
    """HTTP status of the latest attempt; null if there was no response."""
    last_error: str | None
    """Error of the latest attempt; null if it succeeded."""
    created_at: str
    """Time of the creation."""
    next_attempt_at: str | None
    """Time of the next attempt; null if there is none."""
    delivered_at: str | None
    """Time of the delivery; null until then."""


class WebhookReceiverView(TypedDict):
    """A receiver of webhooks, among the 10,000 newest deliveries of the organization."""

    receiver: str
    """Host and port of the webhook's URL, or the name of the secret that has the URL; the rest is never shown."""
    of_inbox: bool
    """Whether it is the webhook of the inbox."""
    deliveries: int
    """Number of its deliveries."""
    open: int
    """Number of those that are still attempted."""
    failed: int
    """Number of those that failed."""
    last_delivery: WebhookDeliveryView
    """The newest of its deliveries."""


class WebhookReceiversView(TypedDict):
    """Receivers, the last used first."""

    data: list[WebhookReceiverView]
    """Receivers, the last used first: at most 200."""


class WorkflowPage(TypedDict):
    """A page of workflows; `next_cursor` is null on the last one."""

    data: list[WorkflowView]
    """The entries of the page, in the order of the list."""
    next_cursor: str | None
    """Cursor of the next page; null on the last one."""


class WorkflowRunOutlineView(TypedDict):
    """A workflow run in a list."""

    id: str
    """Id of the workflow run."""
    workflow_id: str
    """Id of the workflow."""
    workflow_version: int
    """Version of the workflow."""
    status: WorkflowRunStatus
    """Status of the workflow run."""
    error: NodeErrorView | None
    """Why it failed; null if it did not."""
    failed_node: str | None
    """The node that failed; null if none did."""
    attempt: int
    """Counts the workers that executed it."""
    created_at: str
    """Time of the creation."""
    started_at: str | None
    """Time of its start; null until then."""
    finished_at: str | None
    """Time of its end; null until then."""


class WorkflowRunPage(TypedDict):
    """A page of workflow runs; `next_cursor` is null on the last one."""

    data: list[WorkflowRunOutlineView]
    """The entries of the page, in the order of the list."""
    next_cursor: str | None
    """Cursor of the next page; null on the last one."""


class WorkflowRunView(TypedDict):
    """
    A workflow run. `output` is that of the graph's only sink; with several sinks, an object
    by node id.
    """

    id: str
    """Id of the workflow run."""
    workflow_id: str
    """Id of the workflow."""
    workflow_version: int
    """Version of the workflow."""
    status: WorkflowRunStatus
    """Status of the workflow run."""
    error: NodeErrorView | None
    """Why it failed; null if it did not."""
    failed_node: str | None
    """The node that failed; null if none did."""
    attempt: int
    """Counts the workers that executed it."""
    created_at: str
    """Time of the creation."""
    started_at: str | None
    """Time of its start; null until then."""
    finished_at: str | None
    """Time of its end; null until then."""
    input: Any
    """Input of the workflow run."""
    output: Any
    """Output of the graph's only sink; with several sinks, an object by node id."""
    pending: list[PendingView]
    """Nodes that wait."""
    nodes: list[NodeRunView]
    """Started nodes."""


WorkflowStreamItem: TypeAlias = WorkflowRunQueuedEvent | WorkflowRunStartedEvent | NodeStartedEvent | NodeRetryingEvent | NodeWaitingEvent | NodeResumedEvent | NodeReadyEvent | NodeSucceededEvent | NodeFailedEvent | NodeSkippedEvent | NodeCancelledEvent | WorkflowRunRequiresActionEvent | WorkflowRunResumedEvent | WorkflowRunCompletedEvent | WorkflowRunFailedEvent | WorkflowRunCancelledEvent | WorkflowStreamEnd


class AccountList(TypedDict):
    """All accounts, by the slugs of their servers."""

    data: list[AccountView]
    """The entries of the page, in the order of the list."""


class AgentView(TypedDict):
    """An agent at one version."""

    id: str
    """Id of the agent."""
    name: str
    """Unique in the organization."""
    model: str
    """The model, as `PROVIDER:NAME`."""
    fallback_models: list[str]
    """Tried in order when the model fails."""
    instructions: str
    """The system prompt."""
    tools: list[ToolType]
    """Native tools, by type."""
    mcp_servers: list[str]
    """MCP servers, by slug."""
    tool_allowlist: list[str] | None
    """Tool names or globs. Null uses the organization's allowlist; `[]` allows nothing."""
    tool_policies: dict[str, ToolRuleView]
    """Rules by tool name or glob."""
    limits: LimitsView
    """Limits of its runs."""
    model_settings: ModelSettingsView
    """Parameters of its model calls."""
    daily_budget_usd: float | None
    """Most that all runs of the agent may cost on one UTC day. Requires models with a known price."""
    canary_tokens: list[CanaryView]
    """Tokens that the agent must never output, without their text."""
    enabled: bool
    """Whether it may start runs."""
    description: str
    """Description of this agent for gateway clients that may start it."""
    agents: list[str]
    """Names of agents that gateway clients with this agent's tools may start, as `agent__NAME`."""
    independent_agents: list[str]
    """Names among `agents` whose runs follow their own policies only. For the runs of all others, this agent's allowlist and policies apply, too."""
    reasoning_summary: bool
    """Whether models are asked for summaries of their reasoning, published as `reasoning.delta`."""
    output_schema: dict[str, Any] | None
    """JSON Schema of the answers of its runs, of type object. The matching object is the `output_json` of a run."""
    lane: Lane
    """The lane of its runs, unless a run or schedule states another."""
    max_queued: int | None
    """Most of its runs that may be queued; null: any number."""
    max_running: int | None
    """Most of its runs that may be in progress; null: any number."""
    team: str | None
    """Name of the group that it belongs to: others neither see nor use it. Null: it belongs to the organization."""
    version: int
    """Counts the changes, from 1. `If-Match` takes it."""
    created_at: str
    """Time of the creation."""
    updated_at: str
    """Time of the last change."""


class ApiKeyPage(TypedDict):
    """A page of keys; `next_cursor` is null on the last one."""

    data: list[ApiKeyView]
    """The entries of the page, in the order of the list."""
    next_cursor: str | None
    """Cursor of the next page; null on the last one."""


class ApprovalPage(TypedDict):
    """A page of approvals; `next_cursor` is null on the last one."""

    data: list[ApprovalView]
    """The entries of the page, in the order of the list."""
    next_cursor: str | None
    """Cursor of the next page; null on the last one."""


class CreateAgentBody(TypedDict):
    """
    An agent. `tool_allowlist` holds tool names or globs: absent uses the organization's, `[]`
    allows nothing.
    """

    name: str
    """Unique in the organization."""
    model: str
    """The model, as `PROVIDER:NAME`."""
    fallback_models: NotRequired[list[str]]
    """Tried in order when the model fails."""
    instructions: NotRequired[str]
    """The system prompt."""
    tools: NotRequired[list[str]]
    """Native tools, by type."""
    mcp_servers: NotRequired[list[str]]
    """MCP servers, by slug."""
    tool_allowlist: NotRequired[list[str] | None]
    """Tool names or globs. Null uses the organization's allowlist; `[]` allows nothing."""
    tool_policies: NotRequired[dict[str, ToolRuleBody]]
    """Rules by tool name or glob."""
    limits: NotRequired[LimitsBody]
    """Limits of its runs."""
    model_settings: NotRequired[ModelSettingsBody]
    """Parameters of its model calls."""
    daily_budget_usd: NotRequired[str | None]
    """Most that all runs of the agent may cost on one UTC day. Requires models with a known price."""
    canary_tokens: NotRequired[list[str | CanaryTokenBody]]
    """Tokens that the agent must never output: strings or objects. Read back as ids only."""
    enabled: NotRequired[bool]
    """Whether it may start runs."""
    description: NotRequired[str]
    """Description of this agent for gateway clients that may start it."""
    agents: NotRequired[list[str]]
    """Names of agents that gateway clients with this agent's tools may start, as `agent__NAME`."""
    independent_agents: NotRequired[list[str]]
    """Names among `agents` whose runs follow their own policies only. For the runs of all others, this agent's allowlist and policies apply, too."""
    reasoning_summary: NotRequired[bool]
    """Whether models are asked for summaries of their reasoning, published as `reasoning.delta`."""
    output_schema: NotRequired[dict[str, Any] | None]
    """JSON Schema of the answers of its runs, of type object. The matching object is the `output_json` of a run."""
    lane: NotRequired[Lane]
    """The lane of its runs, unless a run or schedule states another."""
    max_queued: NotRequired[MaxQueued | MaxQueued1]
    """Most of its runs that may be queued; null: any number."""
    max_running: NotRequired[MaxRunning | MaxRunning1]
    """Most of its runs that may be in progress; null: any number."""
    team: NotRequired[str | None]
    """Name of the group that it belongs to: others neither see nor use it. Null: it belongs to the organization."""


class CreateOrganizationBody(TypedDict):
    """An organization; absent settings have their defaults."""

    name: str
    """Name of the organization."""
    mcp_enabled: NotRequired[bool | None]
    """Whether MCP servers are used; `false` switches every one of them off at once."""
    tool_allowlist: NotRequired[list[str] | None]
    """null removes the allowlist."""
    tool_policies: NotRequired[dict[str, ToolRuleBody] | None]
    """Replaces all of them."""
    models: NotRequired[list[str] | None]
    """Models that runs may select besides their agent's."""
    limits: NotRequired[LimitsBody | None]
    """Merged with its limits one by one."""
    daily_budget_usd: NotRequired[str | None]
    """Most that all runs may cost on one UTC day. null removes the budget."""
    user_daily_budget_usd: NotRequired[str | None]
    """Most that the runs of one user may cost on one UTC day. null removes the budget."""
    user_daily_budgets_usd: NotRequired[UserDailyBudgetsUsd | UserDailyBudgetsUsd1]
    """Other budgets than `user_daily_budget_usd`, by the ids of users. Replaces all of them."""
    user_limits: NotRequired[UserLimitsBody | None]
    """Limits of each user: requests, and active runs. Replaces both."""
    limits_of_users: NotRequired[LimitsOfUsers | LimitsOfUsers1]
    """Other limits than `user_limits`, by the ids of users. Replaces all of them."""
    keys_count_for_users: NotRequired[bool | None]
    """Whether what is done with an API key counts for the user who made it, within their budget and limits."""
    retention_days: NotRequired[RetentionDays | RetentionDays1]
    """null retains everything."""
    first_use: NotRequired[FirstUse | None]
    """What happens to the first tool definitions of MCP servers that are not trusted: `approve` (those that hide text wait for approval) or `review` (all of them wait)."""
    mcp_kinds: NotRequired[McpKinds | McpKinds1]
    """Kinds of MCP servers that may be registered and started; `archive` is a package from a file of this machine. null permits all. Requires a platform key."""
    queue_weight: NotRequired[QueueWeight | QueueWeight1]
    """Its share of the runs that start while runs of several organizations wait, relative to theirs. Requires a platform key."""
    max_queued: NotRequired[MaxQueued2 | MaxQueued3]
    """Most runs that may be queued; null: any number. Requires a platform key."""
    max_running: NotRequired[MaxRunning2 | MaxRunning3]
    """Most runs that may be in progress; null: any number. Requires a platform key."""
    inbox_webhook_secret: NotRequired[str | None]
    """Name of the secret with the URL to which approvals, questions of workflows, and tools and threads in quarantine are sent; null: nothing is sent."""


class CreatedOrganizationView(TypedDict):
    """A new organization; the token in `admin_key` is shown only once."""

    id: str
    """Id of the organization."""
    name: str
    """Name of the organization."""
    mcp_enabled: bool
    """Whether MCP servers are used; `false` switches every one of them off at once."""
    tool_allowlist: list[str] | None
    """Tool names or globs for all agents; null: no allowlist."""
    tool_policies: dict[str, ToolRuleView]
    """Rules by tool name or glob, for all agents."""
    models: list[str]
    """Models that runs may select besides their agent's."""
    limits: LimitsView
    """Limits of all runs."""
    daily_budget_usd: float | None
    """Most that all runs may cost on one UTC day; null: no budget."""
    user_daily_budget_usd: float | None
    """Most that the runs of one user may cost on one UTC day; null: no budget."""
    user_daily_budgets_usd: dict[str, float]
    """Other budgets than `user_daily_budget_usd`, by the ids of users."""
    user_limits: UserLimitsView
    """Limits of each user: requests, and active runs."""
    limits_of_users: dict[str, UserLimitsView]
    """Other limits than `user_limits`, by the ids of users. A null of theirs leaves it to `user_limits`."""
    keys_count_for_users: bool
    """Whether what is done with an API key counts for the user who made it, within their budget and limits."""
    retention_days: int | None
    """Days after which ended threads are deleted; null retains everything."""
    first_use: FirstUse
    """What happens to the first tool definitions of MCP servers that are not trusted: `approve` (those that hide text wait for approval) or `review` (all of them wait)."""
    mcp_kinds: list[str] | None
    """Kinds of MCP servers that may be registered and started; `archive` is a package from a file of this machine. null permits all. Requires a platform key."""
    queue_weight: int
    """Its share of the runs that start while runs of several organizations wait, relative to theirs. Requires a platform key."""
    max_queued: int | None
    """Most runs that may be queued; null: any number. Requires a platform key."""
    max_running: int | None
    """Most runs that may be in progress; null: any number. Requires a platform key."""
    inbox_webhook_secret: str | None
    """Name of the secret with the URL to which approvals, questions of workflows, and tools and threads in quarantine are sent; null: nothing is sent."""
    version: int
    """Counts the changes, from 1. `If-Match` takes it."""
    created_at: str
    """Time of the creation."""
    admin_key: CreatedApiKeyView
    """Its first admin key."""


class GatewaySessionPage(TypedDict):
    """A page of sessions; `next_cursor` is null on the last one."""

    data: list[GatewaySessionView]
    """The entries of the page, in the order of the list."""
    next_cursor: str | None
    """Cursor of the next page; null on the last one."""


class IdentityProviderList(TypedDict):
    """All identity providers of the organization."""

    data: list[IdentityProviderView]
    """The entries of the page, in the order of the list."""


class ImportView(TypedDict):
    """The results, in the order of the file."""

    data: list[ImportedEntryView]
    """Results, in the order of the file."""


class LayerView(TypedDict):
    """
    The rules of one layer. `in_allowlist` is null if it has no allowlist; `rules` are those
    that apply, by pattern.
    """

    layer: PolicyLayer
    """The layer."""
    in_allowlist: bool | None
    """Whether its allowlist has the tool; null if it has no allowlist."""
    rules: dict[str, ToolRuleView]
    """Rules that apply to the tool, by pattern."""


class McpServerPage(TypedDict):
    """A page of servers; `next_cursor` is null on the last one."""

    data: list[McpServerView]
    """The entries of the page, in the order of the list."""
    next_cursor: str | None
    """Cursor of the next page; null on the last one."""


class McpServerToolsView(TypedDict):
    """
    Tools of a server as of `taken_at`, null if never listed. `next_cursor` is null on the
    last page. Each page lists what was `skipped`.
    """

    data: list[PinnedToolView]
    """The entries of the page, in the order of the list."""
    next_cursor: str | None
    """Cursor of the next page; null on the last one."""
    skipped: list[SkippedToolView]
    """Tools that could not be registered. Each page lists all of them."""
    taken_at: str | None
    """Time of the listing; null if never listed."""
    protocol_version: str | None
    """Version of the protocol at that time; null if the tools are declared."""


class MessageCompletedEvent(TypedDict):
    """A message is in the thread."""

    seq: int
    """Number of the event in its run: from 1, without gaps."""
    run_id: str
    """Id of the run."""
    at: str
    """Time of the event."""
    type: Literal['message.completed']
    """Type of the event."""
    message: MessageView
    """The message."""
    usage: NotRequired[CallUsageView]
    """Consumption of the model call that wrote it."""


class MessagePage(TypedDict):
    """A page of messages; `next_cursor` is null on the last one."""

    data: list[MessageView]
    """The entries of the page, in the order of the list."""
    next_cursor: str | None
    """Cursor of the next page; null on the last one."""


class ModelProviderPage(TypedDict):
    """A page of providers; `next_cursor` is null on the last one."""

    data: list[ModelProviderView]
    """The entries of the page, in the order of the list."""
    next_cursor: str | None
    """Cursor of the next page; null on the last one."""


class OrganizationView(TypedDict):
    """An organization and its settings."""

    id: str
    """Id of the organization."""
    name: str
    """Name of the organization."""
    mcp_enabled: bool
    """Whether MCP servers are used; `false` switches every one of them off at once."""
    tool_allowlist: list[str] | None
    """Tool names or globs for all agents; null: no allowlist."""
    tool_policies: dict[str, ToolRuleView]
    """Rules by tool name or glob, for all agents."""
    models: list[str]
    """Models that runs may select besides their agent's."""
    limits: LimitsView
    """Limits of all runs."""
    daily_budget_usd: float | None
    """Most that all runs may cost on one UTC day; null: no budget."""
    user_daily_budget_usd: float | None
    """Most that the runs of one user may cost on one UTC day; null: no budget."""
    user_daily_budgets_usd: dict[str, float]
    """Other budgets than `user_daily_budget_usd`, by the ids of users."""
    user_limits: UserLimitsView
    """Limits of each user: requests, and active runs."""
    limits_of_users: dict[str, UserLimitsView]
    """Other limits than `user_limits`, by the ids of users. A null of theirs leaves it to `user_limits`."""
    keys_count_for_users: bool
    """Whether what is done with an API key counts for the user who made it, within their budget and limits."""
    retention_days: int | None
    """Days after which ended threads are deleted; null retains everything."""
    first_use: FirstUse
    """What happens to the first tool definitions of MCP servers that are not trusted: `approve` (those that hide text wait for approval) or `review` (all of them wait)."""
    mcp_kinds: list[str] | None
    """Kinds of MCP servers that may be registered and started; `archive` is a package from a file of this machine. null permits all. Requires a platform key."""
    queue_weight: int
    """Its share of the runs that start while runs of several organizations wait, relative to theirs. Requires a platform key."""
    max_queued: int | None
    """Most runs that may be queued; null: any number. Requires a platform key."""
    max_running: int | None
    """Most runs that may be in progress; null: any number. Requires a platform key."""
    inbox_webhook_secret: str | None
    """Name of the secret with the URL to which approvals, questions of workflows, and tools and threads in quarantine are sent; null: nothing is sent."""
    version: int
    """Counts the changes, from 1. `If-Match` takes it."""
    created_at: str
    """Time of the creation."""


class RegistryEntryView(TypedDict):
    """A version of a server in a registry."""

    name: str
    """Name in the registry, such as com.example/tickets."""
    version: str
    """Version of the entry."""
    title: str
    """Title."""
    description: str
    """The publisher's words."""
    is_deprecated: bool
    """Whether the publisher advises against it."""
    options: list[RegistryOptionView]
    """Ways to start or reach it here."""
    unavailable: list[str]
    """Why other ways cannot be used here."""


RunEventView: TypeAlias = RunQueuedEvent | RunStartedEvent | TurnStartedEvent | MessageDeltaEvent | ReasoningDeltaEvent | MessageCompletedEvent | MessageDiscardedEvent | ModelRetryingEvent | ToolStartedEvent | ToolProgressEvent | ToolExecutedEvent | ToolFailedEvent | ToolBlockedEvent | RunRequiresActionEvent | RunResumedEvent | RunHaltedEvent | RunCompletedEvent | RunIncompleteEvent | RunFailedEvent | RunCancelledEvent


class RunPage(TypedDict):
    """A page of runs; `next_cursor` is null on the last one."""

    data: list[RunView]
    """The entries of the page, in the order of the list."""
    next_cursor: str | None
    """Cursor of the next page; null on the last one."""


RunStreamItem: TypeAlias = RunQueuedEvent | RunStartedEvent | TurnStartedEvent | MessageDeltaEvent | ReasoningDeltaEvent | MessageCompletedEvent | MessageDiscardedEvent | ModelRetryingEvent | ToolStartedEvent | ToolProgressEvent | ToolExecutedEvent | ToolFailedEvent | ToolBlockedEvent | RunRequiresActionEvent | RunResumedEvent | RunHaltedEvent | RunCompletedEvent | RunIncompleteEvent | RunFailedEvent | RunCancelledEvent | RunStreamEnd


class SavedAgentView(TypedDict):
    """A saved agent; `warnings` name its policies that match no tool."""

    id: str
    """Id of the agent."""
    name: str
    """Unique in the organization."""
    model: str
    """The model, as `PROVIDER:NAME`."""
    fallback_models: list[str]
    """Tried in order when the model fails."""
    instructions: str
    """The system prompt."""
    tools: list[ToolType]
    """Native tools, by type."""
    mcp_servers: list[str]
    """MCP servers, by slug."""
    tool_allowlist: list[str] | None
    """Tool names or globs. Null uses the organization's allowlist; `[]` allows nothing."""
    tool_policies: dict[str, ToolRuleView]
    """Rules by tool name or glob."""
    limits: LimitsView
    """Limits of its runs."""
    model_settings: ModelSettingsView
    """Parameters of its model calls."""
    daily_budget_usd: float | None
    """Most that all runs of the agent may cost on one UTC day. Requires models with a known price."""
    canary_tokens: list[CanaryView]
    """Tokens that the agent must never output, without their text."""
    enabled: bool
    """Whether it may start runs."""
    description: str
    """Description of this agent for gateway clients that may start it."""
    agents: list[str]
    """Names of agents that gateway clients with this agent's tools may start, as `agent__NAME`."""
    independent_agents: list[str]
    """Names among `agents` whose runs follow their own policies only. For the runs of all others, this agent's allowlist and policies apply, too."""
    reasoning_summary: bool
    """Whether models are asked for summaries of their reasoning, published as `reasoning.delta`."""
    output_schema: dict[str, Any] | None
    """JSON Schema of the answers of its runs, of type object. The matching object is the `output_json` of a run."""
    lane: Lane
    """The lane of its runs, unless a run or schedule states another."""
    max_queued: int | None
    """Most of its runs that may be queued; null: any number."""
    max_running: int | None
    """Most of its runs that may be in progress; null: any number."""
    team: str | None
    """Name of the group that it belongs to: others neither see nor use it. Null: it belongs to the organization."""
    version: int
    """Counts the changes, from 1. `If-Match` takes it."""
    created_at: str
    """Time of the creation."""
    updated_at: str
    """Time of the last change."""
    warnings: list[str]
    """Policies that match no tool, as sentences."""


class SavedOrganizationView(TypedDict):
    """
    A saved organization; `warnings` name its policies that match no tool, and users with limits
    who do not exist.
    """

    id: str
    """Id of the organization."""
    name: str
    """Name of the organization."""
    mcp_enabled: bool
    """Whether MCP servers are used; `false` switches every one of them off at once."""
    tool_allowlist: list[str] | None
    """Tool names or globs for all agents; null: no allowlist."""
    tool_policies: dict[str, ToolRuleView]
    """Rules by tool name or glob, for all agents."""
    models: list[str]
    """Models that runs may select besides their agent's."""
    limits: LimitsView
    """Limits of all runs."""
    daily_budget_usd: float | None
    """Most that all runs may cost on one UTC day; null: no budget."""
    user_daily_budget_usd: float | None
    """Most that the runs of one user may cost on one UTC day; null: no budget."""
    user_daily_budgets_usd: dict[str, float]
    """Other budgets than `user_daily_budget_usd`, by the ids of users."""
    user_limits: UserLimitsView
    """Limits of each user: requests, and active runs."""
    limits_of_users: dict[str, UserLimitsView]
    """Other limits than `user_limits`, by the ids of users. A null of theirs leaves it to `user_limits`."""
    keys_count_for_users: bool
    """Whether what is done with an API key counts for the user who made it, within their budget and limits."""
    retention_days: int | None
    """Days after which ended threads are deleted; null retains everything."""
    first_use: FirstUse
    """What happens to the first tool definitions of MCP servers that are not trusted: `approve` (those that hide text wait for approval) or `review` (all of them wait)."""
    mcp_kinds: list[str] | None
    """Kinds of MCP servers that may be registered and started; `archive` is a package from a file of this machine. null permits all. Requires a platform key."""
    queue_weight: int
    """Its share of the runs that start while runs of several organizations wait, relative to theirs. Requires a platform key."""
    max_queued: int | None
    """Most runs that may be queued; null: any number. Requires a platform key."""
    max_running: int | None
    """Most runs that may be in progress; null: any number. Requires a platform key."""
    inbox_webhook_secret: str | None
    """Name of the secret with the URL to which approvals, questions of workflows, and tools and threads in quarantine are sent; null: nothing is sent."""
    version: int
    """Counts the changes, from 1. `If-Match` takes it."""
    created_at: str
    """Time of the creation."""
    warnings: list[str]
    """Policies that match no tool, as sentences."""


class SchedulePage(TypedDict):
    """A page of schedules; `next_cursor` is null on the last one."""

    data: list[ScheduleView]
    """The entries of the page, in the order of the list."""
    next_cursor: str | None
    """Cursor of the next page; null on the last one."""


class WebhookDeliveryPage(TypedDict):
    """A page of deliveries; `next_cursor` is null on the last one."""

    data: list[WebhookDeliveryView]
    """The entries of the page, in the order of the list."""
    next_cursor: str | None
    """Cursor of the next page; null on the last one."""


class AgentPage(TypedDict):
    """A page of agents; `next_cursor` is null on the last one."""

    data: list[AgentView]
    """The entries of the page, in the order of the list."""
    next_cursor: str | None
    """Cursor of the next page; null on the last one."""


class EventsView(TypedDict):
    """Events in order."""

    data: list[RunEventView]
    """Events in order."""
    next_cursor: str | None
    """Number of the last event, to continue after; null if there are no further events yet."""


class ExplanationView(TypedDict):
    """`standing` is `allowed`, `asked_for`, `blocked` or `hidden`; `reasons` are sentences."""

    name: str
    """Name of the tool as models see it."""
    type: ToolType
    """Type of a native tool, or `mcp_tool`."""
    server: str | None
    """Slug of its MCP server; null for a native tool."""
    agent_id: str
    """Id of the agent."""
    agent: str
    """Name of the agent."""
    agent_version: int
    """Version of the agent."""
    standing: ToolStanding
    """What policy says about the tool, apart from arguments."""
    decided_by: RuleSourceView
    """The rule that decides."""
    reasons: list[str]
    """The reasons, as sentences."""
    layers: list[LayerView]
    """The rules of each layer, in order of evaluation."""
    effective: EffectiveView
    """The effective policy."""


class OrganizationPage(TypedDict):
    """A page of organizations; `next_cursor` is null on the last one."""

    data: list[OrganizationView]
    """The entries of the page, in the order of the list."""
    next_cursor: str | None
    """Cursor of the next page; null on the last one."""


class RegistryEntryPage(TypedDict):
    """A page of entries; `next_cursor` is the registry's, and null on the last page."""

    data: list[RegistryEntryView]
    """The entries of the page, in the order of the list."""
    next_cursor: str | None
    """Cursor of the next page; null on the last one."""

"""Typed identifiers and the derivation of deterministic ones. The prefixes are part of the public
contract."""

import hashlib
from typing import NewType

OrganizationId = NewType("OrganizationId", str)
ApiKeyId = NewType("ApiKeyId", str)
UserId = NewType("UserId", str)
IdentityProviderId = NewType("IdentityProviderId", str)
GroupId = NewType("GroupId", str)
ConsoleSessionId = NewType("ConsoleSessionId", str)
ImpersonationId = NewType("ImpersonationId", str)
AgentId = NewType("AgentId", str)
ThreadId = NewType("ThreadId", str)
MessageId = NewType("MessageId", str)
SourceId = NewType("SourceId", str)
RunId = NewType("RunId", str)
McpServerId = NewType("McpServerId", str)
ToolCallId = NewType("ToolCallId", str)
AuditEventId = NewType("AuditEventId", str)
ApprovalId = NewType("ApprovalId", str)
GatewaySessionId = NewType("GatewaySessionId", str)
GatewayClientId = NewType("GatewayClientId", str)
GatewayNoteId = NewType("GatewayNoteId", str)
TimerId = NewType("TimerId", str)
ScheduleId = NewType("ScheduleId", str)
WebhookDeliveryId = NewType("WebhookDeliveryId", str)
WorkerId = NewType("WorkerId", str)
WorkflowId = NewType("WorkflowId", str)
WorkflowRunId = NewType("WorkflowRunId", str)

WORKFLOW_RUN_PREFIX = "wfr"

_MOMENT_CHARACTERS = 10
"""Characters of an id after its prefix that encode the millisecond of its creation."""
_NEAR_DIGITS = 22


def derived_id(prefix: str, *parts: str | int) -> str:
    """An id that depends on the parts only, so that a repeated step creates the same ids.

    `prefix_` is followed by 128 bits of SHA-256 in hex. The separator never occurs in ids.
    """
    text = "\x1f".join(map(str, parts))
    return f"{prefix}_{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def id_beside(prefix: str, other: str) -> str:
    """The id of the only object of its kind that belongs to `other`. It shares everything after the
    prefix, so that both ids sort alike."""
    return f"{prefix}_{other.partition('_')[2]}"


def id_near(prefix: str, other: str, *parts: str | int) -> str:
    """A derived id of one of the objects that belong to `other`: it begins with the same timestamp,
    so that rows stored together are close together and databases write fewer pages. 88 bits of
    SHA-256 follow."""
    own = other.partition("_")[2]
    digest = hashlib.sha256("\x1f".join((other, *map(str, parts))).encode()).hexdigest()
    return f"{prefix}_{own[:_MOMENT_CHARACTERS]}{digest[:_NEAR_DIGITS]}"


def is_workflow_run(run_id: RunId) -> bool:
    """Whether an id from the run queue identifies a workflow run. The queue carries both kinds."""
    return run_id.startswith(f"{WORKFLOW_RUN_PREFIX}_")


def tool_call_id(run_id: RunId, turn: int, index: int) -> ToolCallId:
    """The id of the index-th tool call of a turn. Dragoman creates it, not the provider, so that it
    is unique in a thread and accepted by every provider."""
    return ToolCallId(derived_id("call", run_id, turn, index))


def message_id(run_id: RunId, turn: int, part: str, attempt: int = 0) -> MessageId:
    """The id of a message of a run. `attempt` distinguishes replies that were started and
    discarded."""
    return MessageId(derived_id("msg", run_id, turn, part, attempt))

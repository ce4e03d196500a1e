"""Typed identifiers and how deterministic ones are derived. Prefixes are part of the public contract."""

import hashlib
from typing import NewType

OrganizationId = NewType("OrganizationId", str)
ApiKeyId = NewType("ApiKeyId", str)
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
"""Of our ids, behind the prefix: the millisecond they were made in."""
_NEAR_DIGITS = 22


def derived_id(prefix: str, *parts: str | int) -> str:
    """An id that is the same whenever the parts are the same, so that a repeated step names the same things.

    128 bits of SHA-256 in hex after `prefix_`; the separator cannot occur in our ids.
    """
    text = "\x1f".join(map(str, parts))
    return f"{prefix}_{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def id_beside(prefix: str, other: str) -> str:
    """The id of the one thing of its kind that belongs to another: with what follows the prefix in that one's id, so that
    both sort alike."""
    return f"{prefix}_{other.partition('_')[2]}"


def id_near(prefix: str, other: str, *parts: str | int) -> str:
    """A derived id of one of the things that belong to another: it begins with the moment that one's id begins with, so that
    what is stored at the same time stands close together, and databases write fewer pages. 88 bits of SHA-256 follow.
    """
    own = other.partition("_")[2]
    digest = hashlib.sha256("\x1f".join((other, *map(str, parts))).encode()).hexdigest()
    return f"{prefix}_{own[:_MOMENT_CHARACTERS]}{digest[:_NEAR_DIGITS]}"


def is_workflow_run(run_id: RunId) -> bool:
    """Whether an id from the run queue is that of a workflow run; the queue carries both kinds."""
    return run_id.startswith(f"{WORKFLOW_RUN_PREFIX}_")


def tool_call_id(run_id: RunId, turn: int, index: int) -> ToolCallId:
    """The id of the index-th call of a turn: ours, not the provider's, so it is unique in a thread and fits every
    provider."""
    return ToolCallId(derived_id("call", run_id, turn, index))


def message_id(run_id: RunId, turn: int, part: str, attempt: int = 0) -> MessageId:
    """The id of a message of a run; `attempt` tells replies apart that were begun and discarded."""
    return MessageId(derived_id("msg", run_id, turn, part, attempt))

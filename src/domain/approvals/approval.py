"""Approvals: a person's word on one tool call, bound to the tool, its arguments and the agent's version, and used once."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import cast

from domain.ids import AgentId, ApiKeyId, ApprovalId, GatewaySessionId, McpServerId, OrganizationId, RunId, ToolCallId
from domain.json_value import JsonObject, canonical_digest


class ApprovalState(StrEnum):
    """Where an approval stands; values are part of the public contract. `stale`: the agent has changed, and the call is
    decided about anew. `cancelled`: its run ended before anybody decided."""

    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    STALE = "stale"
    CANCELLED = "cancelled"


def approval_digest(tool: str, arguments: JsonObject, agent_version: int) -> str:
    """The canonical digest that an approval is bound to."""
    return canonical_digest([tool, arguments, agent_version])


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """What a tool call needs approval for, kept with the call. `digest` is what was asked for, and once it is approved what
    was approved. `reason` says which rule asks; `ttl_s` counts from the moment the run begins to wait. `outcome_unknown`:
    the call may have been sent before, and approving sends it again."""

    id: ApprovalId
    agent_version: int
    digest: str
    reason: str
    ttl_s: float
    allow_self_approval: bool
    outcome_unknown: bool = False

    def as_json(self) -> JsonObject:
        """For storage."""
        return {
            "id": self.id,
            "agent_version": self.agent_version,
            "digest": self.digest,
            "reason": self.reason,
            "ttl_s": self.ttl_s,
            "allow_self_approval": self.allow_self_approval,
            "outcome_unknown": self.outcome_unknown,
        }

    @classmethod
    def from_json(cls, data: JsonObject) -> "ApprovalRequest":
        """The inverse of `as_json`."""
        return cls(
            id=ApprovalId(cast(str, data["id"])),
            agent_version=cast(int, data["agent_version"]),
            digest=cast(str, data["digest"]),
            reason=cast(str, data["reason"]),
            ttl_s=cast(float, data["ttl_s"]),
            allow_self_approval=cast(bool, data["allow_self_approval"]),
            outcome_unknown=cast(bool, data.get("outcome_unknown", False)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingApproval:
    """How a pending call shows that it waits for an approval; with `outcome_unknown`, for one to be sent again."""

    approval_id: ApprovalId
    expires_at: datetime
    reason: str
    outcome_unknown: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """One approval, of a run's call or of a gateway session's. `tool` is model-facing, `cause` why it was asked for,
    `reason` what the decider said. `edited_arguments` are those the decider put in place of `arguments`. `decided_by` is
    a key's id, or `system`."""

    id: ApprovalId
    organization_id: OrganizationId
    tool_call_id: ToolCallId
    tool: str
    arguments: JsonObject
    digest: str
    agent_id: AgentId
    agent_version: int
    requested_by: ApiKeyId | None
    allow_self_approval: bool
    cause: str
    created_at: datetime
    expires_at: datetime
    run_id: RunId | None = None
    gateway_session_id: GatewaySessionId | None = None
    server_id: McpServerId | None = None
    state: ApprovalState = ApprovalState.PENDING
    decided_at: datetime | None = None
    decided_by: str | None = None
    reason: str | None = None
    edited_arguments: JsonObject | None = None

    def is_requested_by(self, key_id: ApiKeyId) -> bool:
        """Whether this key started the run, or opened the gateway session."""
        return self.requested_by is not None and self.requested_by == key_id

    def is_bound_to(self, agent_version: int) -> bool:
        """Whether it approves the call under this version of the agent. If not, it is stale."""
        return self.digest == approval_digest(self.tool, self.arguments, agent_version)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalOutcome:
    """How a pending approval ended, to be written once."""

    approval_id: ApprovalId
    state: ApprovalState
    at: datetime
    by: str
    reason: str | None = None
    edited_arguments: JsonObject | None = None

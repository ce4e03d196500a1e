"""Approvals: a person's decision on one tool call, bound to the tool, its arguments, and the
versions of the agent and of the tool's MCP server. Used once."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import cast

from domain.ids import AgentId, ApiKeyId, ApprovalId, GatewaySessionId, McpServerId, OrganizationId, RunId, ToolCallId
from domain.json_value import JsonObject, JsonValue, canonical_digest
from domain.mcp.server_pin import ServerPin
from domain.policy.approvers import Approvers


class ApprovalState(StrEnum):
    """The state of an approval; the values are public. `stale`: the agent or the tool's MCP server
    has changed, and the call is checked again. `cancelled`: the run ended before a decision."""

    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    STALE = "stale"
    CANCELLED = "cancelled"


def approval_digest(tool: str, arguments: JsonObject, agent_version: int, server: ServerPin | None = None) -> str:
    """The digest that binds an approval. Approvals of earlier releases are bound to no server."""
    call: list[JsonValue] = [tool, arguments, agent_version]
    return canonical_digest(call if server is None else [*call, server.version])


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """The approval that a tool call requires, stored with the call.

    - `digest` binds the requested call, and after an approval the approved call.
    - `reason` is the rule that requires it. `ttl_s` counts from the suspension of the run.
    - `outcome_unknown`: the call may have been sent before; an approval sends it again.
    - `server` is the MCP server of the tool, as it was then.
    """

    id: ApprovalId
    agent_version: int
    digest: str
    reason: str
    ttl_s: float
    allow_self_approval: bool
    outcome_unknown: bool = False
    server: ServerPin | None = None
    approvers: tuple[Approvers, ...] = ()
    needed: int = 1

    def as_json(self) -> JsonObject:
        """The stored form."""
        return {
            "id": self.id,
            "agent_version": self.agent_version,
            "digest": self.digest,
            "reason": self.reason,
            "ttl_s": self.ttl_s,
            "allow_self_approval": self.allow_self_approval,
            "outcome_unknown": self.outcome_unknown,
            "server": None if self.server is None else self.server.as_json(),
            **({"approvers": [each.as_json() for each in self.approvers]} if self.approvers else {}),
            **({"needed": self.needed} if self.needed > 1 else {}),
        }

    @classmethod
    def from_json(cls, data: JsonObject) -> "ApprovalRequest":
        server = data.get("server")
        return cls(
            id=ApprovalId(cast(str, data["id"])),
            agent_version=cast(int, data["agent_version"]),
            digest=cast(str, data["digest"]),
            reason=cast(str, data["reason"]),
            ttl_s=cast(float, data["ttl_s"]),
            allow_self_approval=cast(bool, data["allow_self_approval"]),
            outcome_unknown=cast(bool, data.get("outcome_unknown", False)),
            server=ServerPin.from_json(server) if isinstance(server, dict) else None,
            approvers=tuple(
                Approvers(people=tuple(each.get("people", ())), groups=tuple(each.get("groups", ())))
                for each in cast("list[dict[str, list[str]]]", data.get("approvers", []))
            ),
            needed=cast(int, data.get("needed", 1)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingApproval:
    """A pending call's approval in the API. `outcome_unknown`: an approval sends the call again."""

    approval_id: ApprovalId
    expires_at: datetime
    reason: str
    outcome_unknown: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """One of several approvals that a call needs: from a user or an API key `by`, for the person
    `person`."""

    by: str
    person: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """An approval of a run's or a gateway session's call.

    - `tool` is the model-facing name, `cause` the rule that requires the approval, `reason` the
      decider's text.
    - `server` is the MCP server of the tool when the approval was requested.
    - `edited_arguments` replace `arguments`. `decided_by` is the id of a key or a user, or
      `system`.
    - Only those in each of `approvers` decide; None is each operator.
    - `approvals_needed` different people must approve; None is one. `consents` are those of them
      who did, if more than one is needed; None is no one. Once they are enough, the call is
      approved.
    """

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
    server: ServerPin | None = None
    approvers: tuple[Approvers, ...] | None = None
    approvals_needed: int | None = None
    consents: tuple[Consent, ...] | None = None

    @property
    def needed(self) -> int:
        return self.approvals_needed or 1

    @property
    def has_enough(self) -> bool:
        return len(self.consents or ()) >= self.needed

    def has_consent_of(self, person: str) -> bool:
        return any(each.person == person for each in self.consents or ())

    def with_consent(self, consent: Consent) -> "Approval":
        """Repeating a consent changes nothing."""
        if self.has_consent_of(consent.person):
            return self
        return replace(self, consents=(*(self.consents or ()), consent))

    def is_bound_to(self, agent_version: int, server_version: int | None) -> bool:
        """Whether it is valid for these versions of the agent and the tool's MCP server (None:
        there is none). Otherwise it is stale."""
        if self.server is not None and self.server.version != server_version:
            return False
        return self.digest == approval_digest(self.tool, self.arguments, agent_version, self.server)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalOutcome:
    """The end of a pending approval. It is stored once."""

    approval_id: ApprovalId
    state: ApprovalState
    at: datetime
    by: str
    reason: str | None = None
    edited_arguments: JsonObject | None = None

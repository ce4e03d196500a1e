"""Approvals as JSON."""

from collections.abc import Mapping
from typing import TypedDict

from domain.approvals.approval import Approval
from domain.threads.message_json import timestamp


class ApprovalServerView(TypedDict):
    """The MCP server that an approval is bound to. `version` counts its changes; `runs` is what is
    started or connected to."""

    slug: str
    version: int
    runs: str


class ApprovalView(TypedDict):
    """An approval. `server` is the tool's MCP server when it was requested; after a change of it the approval
    is stale. `cause` says why it is required, `reason` is the decider's; `digest`
    identifies the approved call."""

    id: str
    state: str
    run_id: str | None
    gateway_session_id: str | None
    tool_call_id: str
    tool: str
    server_id: str | None
    server: ApprovalServerView | None
    arguments: Mapping[str, object]
    edited_arguments: Mapping[str, object] | None
    digest: str
    agent_id: str
    agent_version: int
    requested_by: str | None
    allow_self_approval: bool
    cause: str
    created_at: str
    expires_at: str
    decided_at: str | None
    decided_by: str | None
    reason: str | None


class ApprovalPage(TypedDict):
    """A page of approvals; `next_cursor` is null on the last one."""

    data: list[ApprovalView]
    next_cursor: str | None


def approval_view(approval: Approval) -> ApprovalView:
    server = approval.server
    return {
        "id": approval.id,
        "state": approval.state.value,
        "run_id": approval.run_id,
        "gateway_session_id": approval.gateway_session_id,
        "tool_call_id": approval.tool_call_id,
        "tool": approval.tool,
        "server_id": approval.server_id,
        "server": None if server is None else {"slug": server.slug, "version": server.version, "runs": server.runs},
        "arguments": approval.arguments,
        "edited_arguments": approval.edited_arguments,
        "digest": approval.digest,
        "agent_id": approval.agent_id,
        "agent_version": approval.agent_version,
        "requested_by": approval.requested_by,
        "allow_self_approval": approval.allow_self_approval,
        "cause": approval.cause,
        "created_at": timestamp(approval.created_at),
        "expires_at": timestamp(approval.expires_at),
        "decided_at": None if approval.decided_at is None else timestamp(approval.decided_at),
        "decided_by": approval.decided_by,
        "reason": approval.reason,
    }

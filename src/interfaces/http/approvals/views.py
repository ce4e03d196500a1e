"""Approvals as JSON."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, TypedDict, cast

from domain.approvals.approval import Approval, ApprovalState
from domain.errors import ServiceError
from domain.ids import ApprovalId
from domain.threads.message_json import timestamp
from interfaces.http.tool_policy_views import ApproversView
from interfaces.http.view_fields import CreatedAt, Items, NextCursor, Timestamp


class ApprovalServerView(TypedDict):
    """The MCP server that an approval is bound to."""

    slug: Annotated[str, "Slug of the server."]
    version: Annotated[int, "Counts the changes of the server."]
    runs: Annotated[str, "What is started, or connected to."]


class ConsentView(TypedDict):
    """One of several approvals."""

    by: Annotated[str, "The user or API key that approved."]
    at: Annotated[Timestamp, "Time of the approval."]


class ApprovalView(TypedDict):
    """An approval of a tool call."""

    id: Annotated[str, "Id of the approval."]
    state: Annotated[ApprovalState, "State of the approval."]
    run_id: Annotated[str | None, "The run that waits; null for a call through the gateway."]
    gateway_session_id: Annotated[str | None, "The gateway session of the call; null for a call of a run."]
    tool_call_id: Annotated[str, "Id of the tool call."]
    tool: Annotated[str, "Name of the tool as models see it."]
    server_id: Annotated[str | None, "Id of the tool's MCP server; null for a native tool."]
    server: Annotated[
        ApprovalServerView | None,
        "The tool's MCP server when the approval was requested; after a change of it the approval is stale.",
    ]
    arguments: Annotated[Mapping[str, object], "Arguments of the call as the model gave them."]
    edited_arguments: Annotated[
        Mapping[str, object] | None, "Arguments that the decider set instead; null if unchanged."
    ]
    digest: Annotated[str, "Digest of tool, arguments and agent version that the approval is bound to."]
    agent_id: Annotated[str, "Id of the agent."]
    agent_version: Annotated[int, "Version of the agent; the approval is valid for it only."]
    requested_by: Annotated[
        str | None, "Who started the run: the id of an API key, or `schedule:` and the id of a schedule."
    ]
    allow_self_approval: Annotated[bool, "Whether the person who started the run may approve."]
    approvers: Annotated[
        list[ApproversView], "Who decides must be in each of these, with the role operator; none: each operator."
    ]
    approvals_needed: Annotated[int, "Number of different people who must approve. One who denies is enough."]
    consents: Annotated[list[ConsentView], "Who of several approved so far; empty where one approval is enough."]
    approvable: Annotated[bool, "Whether the caller of this request may approve it now."]
    not_approvable: Annotated[
        str | None,
        "Why the caller may not approve it: `role_insufficient`, `not_an_approver`, `self_approval_forbidden`,"
        " `approved_before`, `person_required`.",
    ]
    cause: Annotated[str, "Why the call requires an approval."]
    created_at: CreatedAt
    expires_at: Annotated[Timestamp, "Time at which an undecided approval expires; the call is then denied."]
    decided_at: Annotated[Timestamp | None, "Time of the decision; null while pending."]
    decided_by: Annotated[str | None, "The user or API key that decided; null while pending."]
    reason: Annotated[str | None, "Reason of the decision; the model sees the reason of a denial."]


class ApprovalPage(TypedDict):
    """A page of approvals; `next_cursor` is null on the last one."""

    data: Items[ApprovalView]
    next_cursor: NextCursor


def approval_view(
    approval: Approval, why_not: Mapping[ApprovalId, ServiceError] = MappingProxyType({})
) -> ApprovalView:
    """`why_not` has the approvals that the caller may not approve."""
    server, refusal = approval.server, why_not.get(approval.id)
    return {
        "id": approval.id,
        "state": approval.state,
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
        "approvers": [cast("ApproversView", each.as_json()) for each in approval.approvers or ()],
        "approvals_needed": approval.needed,
        "consents": [{"by": each.by, "at": timestamp(each.at)} for each in approval.consents or ()],
        "approvable": approval.state is ApprovalState.PENDING and refusal is None,
        "not_approvable": None if refusal is None else refusal.code,
        "cause": approval.cause,
        "created_at": timestamp(approval.created_at),
        "expires_at": timestamp(approval.expires_at),
        "decided_at": None if approval.decided_at is None else timestamp(approval.decided_at),
        "decided_by": approval.decided_by,
        "reason": approval.reason,
    }

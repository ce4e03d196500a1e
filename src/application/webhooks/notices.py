"""What waits for people, for the webhook of an organization's inbox: stored in the transaction in which it began to wait."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from domain.approvals.approval import Approval
from domain.audit.event import AuditAction, AuditEvent
from domain.ids import McpServerId, OrganizationId, RunId, ThreadId, WebhookDeliveryId, WorkflowRunId, derived_id
from domain.json_value import JsonObject, JsonValue
from domain.threads.message_json import timestamp
from domain.threads.thread import Quarantine
from domain.webhooks.delivery import WebhookEvent
from domain.workflows.execution import NodeRun, NodeStatus
from domain.workflows.run import WorkflowRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something that began to wait. `item` is its key in the inbox, `name` says it in a word; texts of people and models are
    left out, as chats hold messages for long. With its run, workflow run or MCP server it is removed, and that of a gateway session
    by `ApplyRetention`."""

    id: WebhookDeliveryId
    organization_id: OrganizationId
    event: WebhookEvent
    at: datetime
    item: str
    name: str
    data: JsonObject = field(default_factory=dict)
    run_id: RunId | None = None
    workflow_run_id: WorkflowRunId | None = None
    server_id: McpServerId | None = None

    @property
    def body(self) -> JsonObject:
        """Without links: the address of the service is added when it is sent."""
        waiting: list[JsonValue] = [{"item": self.item, "name": self.name}]
        return {"type": self.event.value, "timestamp": timestamp(self.at), "data": self.data, "waiting": waiting}


def of_approvals(approvals: Iterable[Approval]) -> tuple[Notice, ...]:
    return tuple(
        Notice(
            id=_id(each.id),
            organization_id=each.organization_id,
            event=WebhookEvent.APPROVAL_REQUESTED,
            at=each.created_at,
            item=f"approval:{each.id}",
            name=each.tool,
            data={
                "approval_id": each.id,
                "tool": each.tool,
                "agent_id": each.agent_id,
                "run_id": each.run_id,
                "gateway_session_id": each.gateway_session_id,
                "expires_at": timestamp(each.expires_at),
            },
            run_id=each.run_id,
        )
        for each in approvals
    )


def of_quarantine(
    organization_id: OrganizationId, thread_id: ThreadId, quarantine: Quarantine, run_id: RunId | None
) -> Notice:
    """A canary token halted a run, or a gateway session without one (`run_id` None)."""
    return Notice(
        id=_id(thread_id, timestamp(quarantine.at)),
        organization_id=organization_id,
        event=WebhookEvent.THREAD_QUARANTINED,
        at=quarantine.at,
        item=f"thread:{thread_id}",
        name=quarantine.canary_id,
        data={"thread_id": thread_id, "run_id": run_id, "canary_id": quarantine.canary_id},
        run_id=run_id,
    )


def of_tools(entries: Iterable[AuditEvent]) -> tuple[Notice, ...]:
    """Tools that a listing put in quarantine, by their audit entries."""
    return tuple(
        Notice(
            id=_id(entry.id),
            organization_id=entry.organization_id,
            event=WebhookEvent.TOOL_QUARANTINED,
            at=entry.at,
            item=f"tool:{entry.details['slug']}:{entry.details['name']}",
            name=entry.tool,
            data={"mcp_server": entry.details["slug"], "tool": entry.tool, "change": entry.details["change"]},
            server_id=entry.server_id,
        )
        for entry in entries
        if entry.action is AuditAction.MCP_SERVER_TOOL_QUARANTINED and entry.tool is not None
    )


def of_questions(before: WorkflowRun, after: WorkflowRun, *, at: datetime) -> tuple[Notice, ...]:
    """Nodes that ask a person since `before`."""
    return tuple(
        Notice(
            id=_id(after.id, node.node_id, str(node.attempt)),
            organization_id=after.organization_id,
            event=WebhookEvent.QUESTION_ASKED,
            at=at,
            item=f"node:{after.id}:{node.node_id}",
            name=node.node_id,
            data={"workflow_run_id": after.id, "workflow_id": after.workflow_id, "node_id": node.node_id},
            workflow_run_id=after.id,
        )
        for node in after.nodes.values()
        if _asks(node) and not _asks(before.nodes.get(node.node_id))
    )


def _asks(node: NodeRun | None) -> bool:
    """Whether it waits for a person itself, and not for the run of its agent."""
    return node is not None and node.status is NodeStatus.WAITING and node.run_id is None


def _id(*parts: str) -> WebhookDeliveryId:
    return WebhookDeliveryId(derived_id("whk", "notice", *parts))

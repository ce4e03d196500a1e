"""What waits for people, for the webhook of an organization's inbox: stored in the transaction in
which it began to wait."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from domain.approvals.approval import Approval
from domain.audit.event import AuditAction, AuditEvent
from domain.identity.api_key import person_of
from domain.ids import McpServerId, OrganizationId, RunId, ThreadId, WebhookDeliveryId, WorkflowRunId, derived_id
from domain.json_value import JsonObject, JsonValue
from domain.mcp.server import McpServer
from domain.runs.run import Run
from domain.threads.message import ToolUse
from domain.threads.message_json import timestamp
from domain.threads.thread import Quarantine
from domain.webhooks.delivery import WebhookEvent
from domain.workflows.execution import NodeRun, NodeStatus
from domain.workflows.run import WorkflowRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something that began to wait. `item` is its key in the inbox, `name` says it in a word; texts
    of people and models are left out, as chats hold messages for long. With its run, workflow run
    or MCP server it is removed, and that of a gateway session by `ApplyRetention`."""

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


def of_pending_calls(run: Run, *, at: datetime) -> tuple[Notice, ...]:
    """Calls that a run waits for otherwise than for approval: questions of MCP servers, accounts
    that people must connect, and calls of client tools. Functions that its own client sent are left
    out, as this client answers them."""
    own = {tool.name for tool in run.client_tools}
    return tuple(_of_call(run, use, at) for use in run.pending if use.approval is None and use.name not in own)


def _of_call(run: Run, use: ToolUse, at: datetime) -> Notice:
    asked = use.elicitation
    data: JsonObject = {
        "run_id": run.id,
        "thread_id": run.thread_id,
        "agent_id": run.agent_id,
        "tool_call_id": use.id,
        "tool": use.name,
    }
    if asked is None:
        event, item = WebhookEvent.CLIENT_TOOL_CALLED, f"call:{run.id}:{use.id}"
    else:
        event, item = WebhookEvent.SERVER_ASKED, f"question:{run.id}:{use.id}:{asked.request_id}"
        if asked.is_for_account:
            event = WebhookEvent.ACCOUNT_REQUIRED
            data["user_id"] = person_of(run.requested_by)
    return Notice(
        id=_id(item),
        organization_id=run.organization_id,
        event=event,
        at=at,
        item=item,
        name=use.name,
        data=data,
        run_id=run.id,
    )


def of_missing_grant(server: McpServer, *, granted_at: datetime | None, at: datetime) -> Notice:
    """A server that a person must authorize: once for each of its versions, and for each grant that
    is of no use any more, which was last renewed at `granted_at`."""
    slug = server.config.slug
    return Notice(
        id=_id(server.id, str(server.version), "" if granted_at is None else timestamp(granted_at)),
        organization_id=server.organization_id,
        event=WebhookEvent.AUTHORIZATION_REQUIRED,
        at=at,
        item=f"authorization:{slug}",
        name=slug,
        data={"mcp_server": slug},
        server_id=server.id,
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
    """Nodes that ask a person since `before`, or need an account of the person who started the
    workflow run."""
    return tuple(
        _of_node(after, node, at)
        for node in after.nodes.values()
        if _asks(node) and not _asks(before.nodes.get(node.node_id))
    )


def _of_node(run: WorkflowRun, node: NodeRun, at: datetime) -> Notice:
    event = WebhookEvent.QUESTION_ASKED
    data: JsonObject = {"workflow_run_id": run.id, "workflow_id": run.workflow_id, "node_id": node.node_id}
    if node.waits_for_account is not None:
        event = WebhookEvent.ACCOUNT_REQUIRED
        data["user_id"] = person_of(run.requested_by)
    return Notice(
        id=_id(run.id, node.node_id, str(node.attempt)),
        organization_id=run.organization_id,
        event=event,
        at=at,
        item=f"node:{run.id}:{node.node_id}",
        name=node.node_id,
        data=data,
        workflow_run_id=run.id,
    )


def _asks(node: NodeRun | None) -> bool:
    """Whether it waits for a person itself, and not for the run of its agent."""
    return node is not None and node.status is NodeStatus.WAITING and node.run_id is None


def _id(*parts: str) -> WebhookDeliveryId:
    return WebhookDeliveryId(derived_id("whk", "notice", *parts))

"""The tables the in-memory stores share, and the writes that more than one of them makes.

Nothing in here waits, so each method of a store is one transaction as long as it checks before it
writes.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal

from application.runs.idempotency import UsedKey
from application.runs.ports import StepOutcome, events_topic, status_topic
from application.system.wakeups import Wakeups
from application.webhooks.announcing import Announcement, announced, pushed
from application.webhooks.ports import WEBHOOKS_TOPIC
from application.workflows.ports import WORKFLOWS_TOPIC, may_let_workflow_go_on
from domain.a2a.push import PushConfig
from domain.agents.agent import Agent
from domain.approvals.approval import Approval, ApprovalState
from domain.audit.chain import ChainHead, Link
from domain.audit.event import AuditEvent
from domain.gateway.client_grant import ClientGrant
from domain.identity.api_key import ApiKey, person_of
from domain.identity.console_session import ConsoleSession
from domain.identity.custom_role import CustomRole
from domain.identity.identity_provider import IdentityProvider
from domain.identity.impersonation import Impersonation, who_acts
from domain.identity.organization import Organization
from domain.identity.organization_group import OrganizationGroup
from domain.identity.provisioning import Group, ProvisionedUser
from domain.identity.user import User
from domain.ids import (
    AgentId,
    ApiKeyId,
    ApprovalId,
    AuditEventId,
    ConsoleSessionId,
    GatewaySessionId,
    GroupId,
    IdentityProviderId,
    ImpersonationId,
    McpServerId,
    OrganizationId,
    RunId,
    ScheduleId,
    SourceId,
    ThreadId,
    ToolCallId,
    UserId,
    WebhookDeliveryId,
    WorkerId,
    WorkflowId,
    WorkflowRunId,
)
from domain.mcp.catalog import McpCatalog
from domain.mcp.server import McpServer
from domain.model_providers.provider import ModelProvider
from domain.runs.events import NewEvent, RunEvent
from domain.runs.lease import Lease
from domain.runs.ledger import ToolCall, ToolCallState
from domain.runs.run import Run, RunStatus
from domain.runs.step import Step
from domain.runs.usage import ModelSpending
from domain.schedules.schedule import Schedule
from domain.secrets.secret import Secret
from domain.threads.message import Message
from domain.threads.thread import Thread, thread_not_yours, thread_quarantined
from domain.webhooks.signing import WebhookKey
from domain.workflows.graph import Workflow
from infrastructure.mcp.oauth.grants import PendingAuthorization
from tests.doubles.stored_gateway_session import StoredGatewaySession
from tests.doubles.stored_source import StoredSource
from tests.doubles.stored_workflow_run import StoredWorkflowRun


@dataclass(slots=True, kw_only=True)
class StoredRun:
    """A run with what belongs to it. `rolled_back`: its messages are superseded once it has
    ended."""

    run: Run
    webhook_url: str | None = None
    push_configs: dict[str, PushConfig] = field(default_factory=dict)
    events: list[RunEvent] = field(default_factory=list)
    calls: dict[ToolCallId, ToolCall] = field(default_factory=dict)
    rolled_back: bool = False
    held_by: WorkerId | None = None
    lease_until: datetime | None = None

    @property
    def queue_key(self) -> tuple[bool, datetime, RunId]:
        """Place among the thread's queued runs: one that was begun goes on before others begin."""
        return (self.run.attempt == 0, self.run.created_at, self.run.id)

    def put_back(self, *, lapsed: bool = False, counts: bool = True) -> None:
        """Free the run for another worker, fencing the present one, who may be lost."""
        self.run = self.run.lease_expired(counts=counts) if lapsed else self.run.handed_back()
        self.held_by = self.lease_until = None


@dataclass(slots=True, kw_only=True)
class StoredThread:
    """A thread with its messages in order."""

    thread: Thread
    messages: list[Message] = field(default_factory=list)
    superseded_runs: set[RunId] = field(default_factory=set)

    def transcript(self) -> tuple[Message, ...]:
        """The messages that count, in order."""
        return tuple(message for message in self.messages if message.run_id not in self.superseded_runs)


class InMemoryState:
    """All tables. Give one and the same to every store of a test."""

    def __init__(self) -> None:
        self.organizations: dict[OrganizationId, Organization] = {}
        self.keys: dict[ApiKeyId, ApiKey] = {}
        self.identity_providers: dict[IdentityProviderId, IdentityProvider] = {}
        self.users: dict[UserId, User] = {}
        self.console_sessions: dict[ConsoleSessionId, ConsoleSession] = {}
        self.impersonations: dict[ImpersonationId, Impersonation] = {}
        self.scim_tokens: dict[IdentityProviderId, str] = {}
        self.provisioned: dict[UserId, ProvisionedUser] = {}
        self.groups: dict[GroupId, Group] = {}
        self.organization_groups: dict[GroupId, OrganizationGroup] = {}
        self.had_teams: set[OrganizationId] = set()
        self.custom_roles: dict[tuple[OrganizationId, str], CustomRole] = {}
        self.threads: dict[ThreadId, StoredThread] = {}
        self.agents: dict[AgentId, list[Agent]] = {}
        self.deleted_agents: set[AgentId] = set()
        self.servers: dict[McpServerId, McpServer] = {}
        self.catalogs: dict[McpServerId, McpCatalog] = {}
        self.model_providers: dict[tuple[OrganizationId, str], ModelProvider] = {}
        self.secrets: dict[tuple[OrganizationId, str], tuple[Secret, str]] = {}
        self.runs: dict[RunId, StoredRun] = {}
        self.used_keys: dict[tuple[OrganizationId, str], UsedKey] = {}
        self.approvals: dict[ApprovalId, Approval] = {}
        self.client_grants: dict[GatewaySessionId, ClientGrant] = {}
        self.gateway_sessions: dict[GatewaySessionId, StoredGatewaySession] = {}
        self.schedules: dict[ScheduleId, Schedule] = {}
        self.sources: dict[SourceId, StoredSource] = {}
        self.authorizations: dict[str, PendingAuthorization] = {}
        self.audit: dict[AuditEventId, AuditEvent] = {}
        self.sealed_entries: list[AuditEvent] = []
        self.audit_links: dict[OrganizationId, list[Link]] = {}
        self.audit_heads: dict[OrganizationId, ChainHead] = {}
        self.audit_sent: dict[OrganizationId, int] = {}
        self.spent: list[tuple[Run, ModelSpending]] = []
        self.reservations: dict[RunId, tuple[AgentId, Decimal]] = {}
        self.deliveries: dict[WebhookDeliveryId, Announcement] = {}
        self.webhook_keys: dict[OrganizationId, list[WebhookKey]] = {}
        self.workflows: dict[WorkflowId, list[Workflow]] = {}
        self.deleted_workflows: dict[WorkflowId, datetime] = {}
        self.workflow_runs: dict[WorkflowRunId, StoredWorkflowRun] = {}

    # --- reading ---

    def thread_of(self, organization_id: OrganizationId, thread_id: ThreadId) -> StoredThread | None:
        """The organization's thread, or None."""
        stored = self.threads.get(thread_id)
        return stored if stored is not None and stored.thread.organization_id == organization_id else None

    def run_of(self, organization_id: OrganizationId, run_id: RunId) -> StoredRun | None:
        """The organization's run, or None."""
        stored = self.runs.get(run_id)
        return stored if stored is not None and stored.run.organization_id == organization_id else None

    def counts_for(self, starter: ApiKeyId | None, user_id: UserId, *, with_keys: bool) -> bool:
        """Whether what this one started counts for the user."""
        key = None if starter is None or not with_keys else self.keys.get(starter)
        of_key = None if key is None else key.person_id
        return starter is not None and (person_of(who_acts(starter)) or of_key) == user_id

    def workflows_in_use(self, organization_id: OrganizationId) -> list[Workflow]:
        """The organization's workflows at their newest version, deleted ones left out."""
        return [
            versions[-1]
            for workflow_id, versions in self.workflows.items()
            if versions[-1].organization_id == organization_id and workflow_id not in self.deleted_workflows
        ]

    def refuse_if_run_by_others(self, thread_id: ThreadId, runner: ApiKeyId | None) -> None:
        """Raise FORBIDDEN if another key than `runner` has run agents on the thread."""
        runs = [stored.run for stored in self.runs.values() if stored.run.thread_id == thread_id]
        if runner is not None and any(run.requested_by != runner for run in runs):
            raise thread_not_yours(thread_id)

    def unfinished(self, thread_id: ThreadId) -> list[StoredRun]:
        """The thread's runs that have not ended: the active one, then queued ones in their
        order."""
        runs = [
            stored
            for stored in self.runs.values()
            if stored.run.thread_id == thread_id and not stored.run.status.is_terminal
        ]
        return sorted(runs, key=lambda stored: (not stored.run.status.is_active, stored.queue_key))

    def next_run(self, thread_id: ThreadId) -> RunId | None:
        """The run that may be claimed on this thread, if any."""
        if self.threads[thread_id].thread.quarantine is not None:
            return None
        waiting = self.unfinished(thread_id)
        return waiting[0].run.id if waiting and waiting[0].run.status is RunStatus.QUEUED else None

    def held(self, lease: Lease) -> StoredRun | None:
        """The run, if the lease still gives the right to write into it."""
        stored = self.runs.get(lease.run_id)
        if stored is None or stored.run.status is not RunStatus.IN_PROGRESS or stored.run.epoch != lease.epoch:
            return None
        return stored

    def open_calls(self, stored: StoredRun) -> tuple[ToolCall, ...]:
        """The run's calls that no message answers, in order."""
        thread = self.threads[stored.run.thread_id]
        answered = {
            result.tool_id
            for message in thread.messages
            if message.run_id == stored.run.id
            for result in message.tool_results
        }
        return tuple(call for call in calls_in_order(stored) if call.id not in answered)

    # --- writing ---

    def record(self, *audit: AuditEvent) -> None:
        """Store audit entries; one with a known id is there already (ids of repeatable steps are
        derived)."""
        for entry in audit:
            self.audit.setdefault(entry.id, entry)

    def apply(self, stored: StoredRun, step: Step) -> StepOutcome:
        """Store a step, after checking that all of it can be. Raises ValueError for a call that
        cannot be settled."""
        calls = _calls_after(stored, step)
        thread = self.threads[stored.run.thread_id]
        stored.calls = calls
        thread.messages.extend(step.messages)
        number_events(stored, step.events)
        # What outside hands write while a worker holds the run is not the worker's to overwrite.
        stored.run = replace(
            step.run,
            last_seq=len(stored.events),
            cancel_requested_by=stored.run.cancel_requested_by,
        )
        self._keep_approvals(step)
        self.record(*step.audit)
        self._spend(step)
        seq = stored.run.last_seq
        configs = [(config.id, config.target.webhook.receiver) for config in stored.push_configs.values()]
        deliveries = announced(step.run, step.events, last_seq=seq)
        deliveries += pushed(step.run, step.events, last_seq=seq, configs=configs)
        for new in deliveries:
            self.deliveries[new.delivery.id] = new
        if step.quarantine is not None:
            thread.thread = replace(thread.thread, quarantine=step.quarantine)
        promoted = None
        if stored.run.status.is_terminal:
            if stored.rolled_back:
                thread.superseded_runs.add(stored.run.id)
            promoted = self.next_run(stored.run.thread_id)
        if stored.run.status is not RunStatus.IN_PROGRESS:
            stored.held_by = stored.lease_until = None
        return StepOutcome(last_seq=seq, promoted=promoted, has_announced=bool(deliveries))

    def _spend(self, step: Step) -> None:
        for spending in step.spent:
            self.spent.append((step.run, spending))
            if spending.still_reserved_usd is not None and step.run.id in self.reservations:
                self.reservations[step.run.id] = (step.run.agent_id, spending.still_reserved_usd)

    def _keep_approvals(self, step: Step) -> None:
        for approval in step.approvals:
            self.approvals.setdefault(approval.id, approval)
        for outcome in step.outcomes:
            pending = self.approvals.get(outcome.approval_id)
            if pending is not None and pending.state is ApprovalState.PENDING:
                self.approvals[pending.id] = replace(
                    pending,
                    state=outcome.state,
                    decided_at=outcome.at,
                    decided_by=outcome.by,
                    reason=outcome.reason,
                    edited_arguments=outcome.edited_arguments,
                )


def without_items(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages as all read them who make no request to a model."""
    return tuple(replace(message, items=None) for message in messages)


def calls_in_order(stored: StoredRun) -> tuple[ToolCall, ...]:
    """The run's ledger by turn and place in the turn."""
    return tuple(sorted(stored.calls.values(), key=lambda call: (call.turn, call.index)))


def number_events(stored: StoredRun, events: tuple[NewEvent, ...]) -> None:
    """Store events under the next numbers."""
    for event in events:
        seq = len(stored.events) + 1
        stored.events.append(
            RunEvent(run_id=stored.run.id, seq=seq, type=event.type, at=event.at, data=event.data),
        )
    stored.run = replace(stored.run, last_seq=len(stored.events))


def wake_followers(wakeups: Wakeups, run: Run) -> None:
    """Tell those who follow the run that there is something new to read."""
    wakeups.wake(events_topic(run.id))
    if run.status.is_terminal or run.status is RunStatus.REQUIRES_ACTION:
        wakeups.wake(status_topic(run.id))
        if run.webhook is not None:
            wakeups.wake(WEBHOOKS_TOPIC)
    if may_let_workflow_go_on(run):
        wakeups.wake(WORKFLOWS_TOPIC)


def settled(call: ToolCall, given: ToolCall) -> ToolCall:
    """The ledger entry with the outcome of the `given` one."""
    return replace(
        call,
        state=ToolCallState.SETTLED,
        result=given.result,
        duration_ms=given.duration_ms,
        settled_at=given.settled_at,
        elicitation=None,
        input=None,
    )


def _calls_after(stored: StoredRun, step: Step) -> dict[ToolCallId, ToolCall]:
    calls = dict(stored.calls)
    for call in step.recorded:
        if call.id in calls:
            raise ValueError(f"call {call.id} is recorded already")
        calls[call.id] = call
    for change in step.changed:
        known = calls.get(change.id)
        if known is None or known.state is ToolCallState.SETTLED:
            raise ValueError(f"call {change.id} is not there to be changed")
        calls[change.id] = replace(
            known,
            params=change.params,
            state=change.state,
            elicitation=change.elicitation,
            input=change.input,
            approval=change.approval,
        )
    for given in step.settled:
        call_or_none = calls.get(given.id)
        if call_or_none is None or call_or_none.state is ToolCallState.SETTLED:
            raise ValueError(f"call {given.id} is not there to be settled")
        calls[given.id] = settled(call_or_none, given)
    return calls


def refuse_if_quarantined(thread: Thread) -> None:
    """Raise CONFLICT `thread_quarantined` until the thread is released."""
    if thread.quarantine is not None:
        raise thread_quarantined(thread.id, thread.quarantine.run_id)

"""All store ports of one backend, and the backends ("legs") that every contract suite runs over."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

import pytest

from application.a2a.ports import PushConfigStore
from application.agents.ports import AgentStore
from application.approvals.ports import ApprovalStore, TimerStore
from application.audit.ports import AuditChain, AuditForwards, AuditLog, AuditSeals
from application.gateway.authorization.ports import ClientGrantStore
from application.gateway.ports import (
    ExpiredNotes,
    GatewayApprovals,
    GatewayClientStore,
    GatewayLedger,
    GatewayNotes,
    GatewaySessionStore,
    LostCalls,
)
from application.groups.ports import OrganizationGroupStore
from application.identity.ports import (
    ClaimedGroups,
    ConsoleSessionStore,
    CustomRoleStore,
    GroupNames,
    IdentityProviderDirectory,
    IdentityProviderStore,
    IdentityStore,
    ImpersonationStore,
    Memberships,
    OrganizationStore,
    RoleGrants,
    UserAccess,
    UserStore,
)
from application.mcp.account_secrets import PersonSecretStore
from application.mcp.describe_mcp_servers import QuarantineCounts
from application.mcp.ports import McpCatalogStore, McpServerStore
from application.metrics.ports import BacklogReader
from application.model_providers.ports import ModelProviderStore
from application.provisioning.ports import GroupStore, ProvisionedAccess, ProvisionedUserStore, ScimTokens
from application.retention.ports import ExpiringTools, RetentionStore
from application.runs.ports import RunJournal, RunLeases, RunReader, RunStore
from application.runs.queue_lines import QueueReader
from application.runs.unfinished_runs import UnfinishedRuns
from application.schedules.ports import DueSchedules, ScheduleStore
from application.secrets.ports import SecretStore
from application.sources.ports import SourceCopies, SourceIntake, SourceSearch, SourceStore
from application.system.wakeups import Wakeups
from application.threads.ports import ThreadStore
from application.usage.ports import Reservations, ToolUsageReports, UsageReports
from application.webhooks.ports import DeliveryReports, WebhookDeliveryStore, WebhookKeyStore
from application.workflows.ports import WorkflowJournal, WorkflowRunStore, WorkflowStore, WorkflowToolStore
from domain.identity.organization import Organization
from infrastructure.events.wakeups import InProcessWakeups
from infrastructure.mcp.oauth.grants import OAuthStore
from tests.doubles.agents import InMemoryAgentStore
from tests.doubles.approvals import InMemoryApprovalStore, InMemoryTimerStore
from tests.doubles.audit import InMemoryAuditLog
from tests.doubles.audit_chain import InMemoryAuditChain, InMemoryAuditForwards
from tests.doubles.backlog import InMemoryBacklogReader
from tests.doubles.client_grants import InMemoryClientGrantStore
from tests.doubles.console_sessions import InMemoryConsoleSessionStore
from tests.doubles.custom_roles import InMemoryCustomRoleStore
from tests.doubles.delivery_reports import InMemoryDeliveryReports
from tests.doubles.gateway import InMemoryGatewayLedger, InMemoryGatewaySessionStore
from tests.doubles.gateway_approvals import InMemoryGatewayApprovals
from tests.doubles.gateway_clients import InMemoryGatewayClientStore
from tests.doubles.gateway_notes import InMemoryGatewayNotes
from tests.doubles.groups import InMemoryGroupStore
from tests.doubles.identity import InMemoryIdentityStore
from tests.doubles.impersonations import InMemoryImpersonationStore
from tests.doubles.journal import InMemoryRunJournal
from tests.doubles.leases import InMemoryRunLeases
from tests.doubles.mcp_servers import InMemoryMcpCatalogStore, InMemoryMcpServerStore, InMemoryQuarantineCounts
from tests.doubles.model_providers import InMemoryModelProviderStore
from tests.doubles.oauth import InMemoryOAuthStore
from tests.doubles.organization_groups import InMemoryOrganizationGroupStore
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.people import InMemoryIdentityProviderStore, InMemoryUserStore
from tests.doubles.person_secrets import InMemoryPersonSecretStore
from tests.doubles.provisioning import InMemoryProvisioningStore
from tests.doubles.push_configs import InMemoryPushConfigStore
from tests.doubles.queue_lines import InMemoryQueueReader
from tests.doubles.retention import InMemoryRetentionStore
from tests.doubles.runs import InMemoryRunStore
from tests.doubles.schedules import InMemoryScheduleStore
from tests.doubles.secrets import InMemorySecretStore
from tests.doubles.sources import (
    InMemorySourceCopies,
    InMemorySourceIntake,
    InMemorySourceSearch,
    InMemorySourceStore,
)
from tests.doubles.state import InMemoryState
from tests.doubles.threads import InMemoryThreadStore
from tests.doubles.tool_usage import InMemoryToolUsage
from tests.doubles.unfinished_runs import InMemoryUnfinishedRuns
from tests.doubles.usage import InMemoryUsageStore
from tests.doubles.webhooks import InMemoryWebhookDeliveryStore, InMemoryWebhookKeyStore
from tests.doubles.workflow_runs import InMemoryWorkflowRunStore
from tests.doubles.workflow_tools import InMemoryWorkflowToolStore
from tests.doubles.workflows import InMemoryWorkflowStore


class IdentityProviders(IdentityProviderStore, IdentityProviderDirectory, Protocol):
    """Identity providers of one organization, and of all."""


class Provisioned(ScimTokens, ProvisionedUserStore, ProvisionedAccess, Protocol):
    """People whom directories manage, and the directories' tokens."""


class OrganizationGroups(OrganizationGroupStore, ClaimedGroups, Memberships, Protocol):
    """Groups that organizations manage."""


class CustomRoles(CustomRoleStore, RoleGrants, Protocol):
    """Custom roles."""


class Groups(GroupStore, GroupNames, Protocol):
    """Groups of directories."""


class Runs(RunStore, RunReader, Protocol):
    """Stored runs, read and changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """One backend's adapters of all store ports, over the same data."""

    threads: ThreadStore
    agents: AgentStore
    servers: McpServerStore
    catalogs: McpCatalogStore
    quarantine_counts: QuarantineCounts
    identity: IdentityStore
    identity_providers: IdentityProviders
    users: UserStore
    user_access: UserAccess
    console_sessions: ConsoleSessionStore
    impersonations: ImpersonationStore
    provisioned: Provisioned
    groups: Groups
    organization_groups: OrganizationGroups
    custom_roles: CustomRoles
    organizations: OrganizationStore
    audit: AuditLog
    audit_seals: AuditSeals
    audit_chain: AuditChain
    audit_forwards: AuditForwards
    secrets: SecretStore
    sources: SourceStore
    source_intake: SourceIntake
    source_copies: SourceCopies
    source_search: SourceSearch
    model_providers: ModelProviderStore
    runs: Runs
    unfinished_runs: UnfinishedRuns
    approvals: ApprovalStore
    timers: TimerStore
    schedules: ScheduleStore
    due_schedules: DueSchedules
    retention: RetentionStore
    oauth: OAuthStore
    person_secrets: PersonSecretStore
    gateway_sessions: GatewaySessionStore
    client_grants: ClientGrantStore
    gateway_clients: GatewayClientStore
    gateway_ledger: GatewayLedger
    gateway_approvals: GatewayApprovals
    lost_calls: LostCalls
    gateway_notes: GatewayNotes
    expired_notes: ExpiredNotes
    leases: RunLeases
    journal: RunJournal
    usage: UsageReports
    tool_usage: ToolUsageReports
    reservations: Reservations
    webhooks: WebhookDeliveryStore
    delivery_reports: DeliveryReports
    webhook_keys: WebhookKeyStore
    push_configs: PushConfigStore
    workflows: WorkflowStore
    workflow_runs: WorkflowRunStore
    workflow_journal: WorkflowJournal
    workflow_tools: WorkflowToolStore
    expiring_tools: ExpiringTools
    backlog: BacklogReader
    queue_lines: QueueReader
    wakeups: Wakeups


class Leg(Protocol):
    """A backend. One is made for each test; `open` may be called several times in a test (property
    tests do)."""

    def open(self, *organizations: Organization) -> AbstractAsyncContextManager[Stores]:
        """A fresh, otherwise empty backend that holds these organizations (without keys)."""
        ...


def in_memory_stores(state: InMemoryState, wakeups: InProcessWakeups) -> Stores:
    """The in-memory adapters over one state."""
    return Stores(
        threads=InMemoryThreadStore(state),
        agents=InMemoryAgentStore(state),
        servers=InMemoryMcpServerStore(state),
        catalogs=InMemoryMcpCatalogStore(state),
        quarantine_counts=InMemoryQuarantineCounts(state),
        identity=InMemoryIdentityStore(state),
        identity_providers=InMemoryIdentityProviderStore(state),
        users=(users := InMemoryUserStore(state)),
        user_access=users,
        console_sessions=InMemoryConsoleSessionStore(state),
        impersonations=InMemoryImpersonationStore(state, wakeups),
        provisioned=InMemoryProvisioningStore(state),
        groups=InMemoryGroupStore(state),
        organization_groups=InMemoryOrganizationGroupStore(state),
        custom_roles=InMemoryCustomRoleStore(state),
        organizations=InMemoryOrganizationStore(state),
        audit=InMemoryAuditLog(state),
        audit_seals=InMemoryAuditChain(state),
        audit_chain=InMemoryAuditChain(state),
        audit_forwards=InMemoryAuditForwards(state),
        secrets=InMemorySecretStore(state),
        sources=InMemorySourceStore(state),
        source_intake=InMemorySourceIntake(state),
        source_copies=InMemorySourceCopies(state),
        source_search=InMemorySourceSearch(state),
        model_providers=InMemoryModelProviderStore(state),
        runs=InMemoryRunStore(state, wakeups),
        unfinished_runs=InMemoryUnfinishedRuns(state),
        approvals=InMemoryApprovalStore(state),
        timers=InMemoryTimerStore(state),
        schedules=(schedules := InMemoryScheduleStore(state, wakeups)),
        due_schedules=schedules,
        retention=InMemoryRetentionStore(state),
        oauth=(oauth := InMemoryOAuthStore(state)),
        person_secrets=InMemoryPersonSecretStore(state, oauth),
        gateway_sessions=InMemoryGatewaySessionStore(state),
        client_grants=InMemoryClientGrantStore(state),
        gateway_clients=InMemoryGatewayClientStore(state),
        gateway_ledger=InMemoryGatewayLedger(state),
        gateway_approvals=(gateway_approvals := InMemoryGatewayApprovals(state)),
        lost_calls=gateway_approvals,
        gateway_notes=(gateway_notes := InMemoryGatewayNotes(state)),
        expired_notes=gateway_notes,
        leases=InMemoryRunLeases(state, wakeups),
        journal=InMemoryRunJournal(state, wakeups),
        usage=(usage := InMemoryUsageStore(state)),
        tool_usage=InMemoryToolUsage(state),
        reservations=usage,
        webhooks=InMemoryWebhookDeliveryStore(state, wakeups),
        delivery_reports=InMemoryDeliveryReports(state),
        webhook_keys=InMemoryWebhookKeyStore(state),
        push_configs=InMemoryPushConfigStore(state, wakeups),
        workflows=InMemoryWorkflowStore(state),
        workflow_runs=(workflow_runs := InMemoryWorkflowRunStore(state, wakeups)),
        workflow_journal=workflow_runs,
        workflow_tools=(workflow_tools := InMemoryWorkflowToolStore(state)),
        expiring_tools=workflow_tools,
        backlog=InMemoryBacklogReader(state),
        queue_lines=InMemoryQueueReader(state),
        wakeups=wakeups,
    )


class InMemoryLeg:
    """The in-memory adapters."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        """Needs no fixture."""

    @asynccontextmanager
    async def open(self, *organizations: Organization) -> AsyncIterator[Stores]:
        """Everything over one state."""
        state = InMemoryState()
        state.organizations = {organization.id: organization for organization in organizations}
        yield in_memory_stores(state, InProcessWakeups())

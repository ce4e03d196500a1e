"""The SQL adapters as legs of the contract suites: over SQLite and over PostgreSQL."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import cast

import pytest
from sqlalchemy import Connection

from domain.identity.organization import Organization
from infrastructure.events.postgres_wakeups import PostgresWakeups
from infrastructure.events.row_notifications import RowNotifications
from infrastructure.events.wakeups import InProcessWakeups
from infrastructure.persistence.a2a.push_configs import SqlPushConfigStore
from infrastructure.persistence.agents.model_provider_store import SqlModelProviderStore
from infrastructure.persistence.agents.store import SqlAgentStore
from infrastructure.persistence.approvals.store import SqlApprovalStore, SqlTimerStore
from infrastructure.persistence.audit.chain import SqlAuditChain
from infrastructure.persistence.audit.forwards import SqlAuditForwards
from infrastructure.persistence.audit.log import SqlAuditLog
from infrastructure.persistence.audit.seals import SqlAuditSeals
from infrastructure.persistence.cached import stores as cached
from infrastructure.persistence.cached.read_through import ReadThrough
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.persistence.engine.sqlite.database import SqliteDatabase, Synchronous
from infrastructure.persistence.gateway.approvals import SqlGatewayApprovals
from infrastructure.persistence.gateway.client_grants import SqlClientGrantStore
from infrastructure.persistence.gateway.clients import SqlGatewayClientStore
from infrastructure.persistence.gateway.ledger import SqlGatewayLedger
from infrastructure.persistence.gateway.notes import SqlGatewayNotes
from infrastructure.persistence.gateway.store import SqlGatewaySessionStore
from infrastructure.persistence.identity.group_store import SqlGroupStore
from infrastructure.persistence.identity.impersonation_store import SqlImpersonationStore
from infrastructure.persistence.identity.organization_group_store import SqlOrganizationGroupStore
from infrastructure.persistence.identity.organization_store import SqlOrganizationStore
from infrastructure.persistence.identity.provider_store import SqlIdentityProviderStore
from infrastructure.persistence.identity.provisioning_store import SqlProvisioningStore
from infrastructure.persistence.identity.role_store import SqlCustomRoleStore
from infrastructure.persistence.identity.session_store import SqlConsoleSessionStore
from infrastructure.persistence.identity.store import SqlIdentityStore, add_organization
from infrastructure.persistence.identity.user_store import SqlUserStore
from infrastructure.persistence.mcp.catalog_store import SqlMcpCatalogStore
from infrastructure.persistence.mcp.oauth_store import SqlOAuthStore
from infrastructure.persistence.mcp.person_secret_store import SqlPersonSecretStore
from infrastructure.persistence.mcp.quarantine_counts import SqlQuarantineCounts
from infrastructure.persistence.mcp.server_store import SqlMcpServerStore
from infrastructure.persistence.retention.store import SqlRetentionStore
from infrastructure.persistence.runs.backlog import SqlBacklogReader
from infrastructure.persistence.runs.journal import SqlRunJournal
from infrastructure.persistence.runs.leases import SqlRunLeases
from infrastructure.persistence.runs.queue_lines import SqlQueueReader
from infrastructure.persistence.runs.store import SqlRunStore
from infrastructure.persistence.runs.unfinished_runs import SqlUnfinishedRuns
from infrastructure.persistence.schedules.store import SqlScheduleStore
from infrastructure.persistence.secrets.store import SqlSecretStore
from infrastructure.persistence.sources.copies import SqlSourceCopies
from infrastructure.persistence.sources.intake import SqlSourceIntake
from infrastructure.persistence.sources.search import SqlSourceSearch
from infrastructure.persistence.sources.store import SqlSourceStore
from infrastructure.persistence.threads.store import SqlThreadStore
from infrastructure.persistence.usage.store import SqlUsageStore
from infrastructure.persistence.usage.tool_store import SqlToolUsage
from infrastructure.persistence.webhooks.keys import SqlWebhookKeyStore
from infrastructure.persistence.webhooks.reports import SqlDeliveryReports
from infrastructure.persistence.webhooks.store import SqlWebhookDeliveryStore
from infrastructure.persistence.workflows.run_store import SqlWorkflowRunStore
from infrastructure.persistence.workflows.store import SqlWorkflowStore
from infrastructure.persistence.workflows.tool_store import SqlWorkflowToolStore
from tests.contract.stores import Stores
from tests.databases import PostgresDatabases, SqliteFiles


class MirrorBox:
    """Makes secrets unreadable at a glance, which is all a test needs."""

    def encrypt(self, plain: bytes) -> bytes:
        return bytes(byte ^ 0x5A for byte in plain)

    def decrypt(self, sealed: bytes) -> bytes:
        return self.encrypt(sealed)

    def derived(self, purpose: bytes) -> tuple[bytes, ...]:
        """Of its one key."""
        return (purpose[:32].ljust(32),)


def sql_stores(database: Database) -> Stores:
    """All adapters over one database."""
    wakeups = InProcessWakeups()
    return Stores(
        threads=SqlThreadStore(database=database),
        agents=SqlAgentStore(database=database, box=MirrorBox()),
        servers=SqlMcpServerStore(database=database, box=MirrorBox()),
        catalogs=SqlMcpCatalogStore(database=database),
        quarantine_counts=SqlQuarantineCounts(database=database),
        identity=SqlIdentityStore(database=database),
        identity_providers=SqlIdentityProviderStore(database=database, box=MirrorBox()),
        users=(users := SqlUserStore(database=database)),
        user_access=users,
        console_sessions=SqlConsoleSessionStore(database=database),
        impersonations=SqlImpersonationStore(database=database, wakeups=wakeups),
        provisioned=SqlProvisioningStore(database=database),
        groups=SqlGroupStore(database=database),
        organization_groups=SqlOrganizationGroupStore(database=database),
        custom_roles=SqlCustomRoleStore(database=database),
        organizations=SqlOrganizationStore(database=database),
        audit=SqlAuditLog(database=database),
        audit_seals=SqlAuditSeals(database=database),
        audit_chain=SqlAuditChain(database=database),
        audit_forwards=SqlAuditForwards(database=database),
        secrets=SqlSecretStore(database=database, box=MirrorBox()),
        sources=SqlSourceStore(database=database),
        source_intake=SqlSourceIntake(database=database),
        source_copies=SqlSourceCopies(database=database),
        source_search=SqlSourceSearch(database=database),
        model_providers=SqlModelProviderStore(database=database, box=MirrorBox()),
        unfinished_runs=SqlUnfinishedRuns(database=database),
        runs=SqlRunStore(database=database, wakeups=wakeups, box=MirrorBox()),
        approvals=SqlApprovalStore(database=database),
        timers=SqlTimerStore(database=database),
        schedules=(schedules := SqlScheduleStore(database=database, wakeups=wakeups, box=MirrorBox())),
        due_schedules=schedules,
        retention=SqlRetentionStore(database=database),
        oauth=SqlOAuthStore(database=database, box=MirrorBox()),
        person_secrets=SqlPersonSecretStore(database=database, box=MirrorBox()),
        gateway_sessions=SqlGatewaySessionStore(database=database),
        client_grants=SqlClientGrantStore(database=database),
        gateway_clients=SqlGatewayClientStore(database=database),
        gateway_ledger=SqlGatewayLedger(database=database),
        gateway_approvals=(gateway_approvals := SqlGatewayApprovals(database=database)),
        lost_calls=gateway_approvals,
        gateway_notes=(gateway_notes := SqlGatewayNotes(database=database)),
        expired_notes=gateway_notes,
        leases=SqlRunLeases(database=database, wakeups=wakeups, box=MirrorBox()),
        journal=SqlRunJournal(database=database, wakeups=wakeups, box=MirrorBox()),
        usage=(usage := SqlUsageStore(database=database)),
        tool_usage=SqlToolUsage(database=database),
        reservations=usage,
        webhooks=SqlWebhookDeliveryStore(database=database, wakeups=wakeups, box=MirrorBox()),
        delivery_reports=SqlDeliveryReports(database=database),
        webhook_keys=SqlWebhookKeyStore(database=database, box=MirrorBox()),
        push_configs=SqlPushConfigStore(database=database, wakeups=wakeups, box=MirrorBox()),
        workflows=SqlWorkflowStore(database=database),
        workflow_runs=(workflow_runs := SqlWorkflowRunStore(database=database, wakeups=wakeups)),
        workflow_journal=workflow_runs,
        workflow_tools=(workflow_tools := SqlWorkflowToolStore(database=database)),
        expiring_tools=workflow_tools,
        backlog=SqlBacklogReader(database=database),
        queue_lines=SqlQueueReader(database=database),
        wakeups=wakeups,
    )


@asynccontextmanager
async def opened(database: Database, *organizations: Organization) -> AsyncIterator[Stores]:
    """The adapters over a started database that holds these organizations."""

    def add(connection: Connection) -> None:
        for organization in organizations:
            add_organization(connection, organization)

    await database.start()
    try:
        await database.write(add, scope=SYSTEM)
        yield sql_stores(database)
    finally:
        await database.stop()


def kept(stores: Stores, feed: RowNotifications) -> Stores:
    """The same with rows kept in memory."""
    return replace(
        stores,
        agents=ReadThrough(stores.agents, cached.AGENTS, notifications=feed).cached,
        servers=ReadThrough(stores.servers, cached.MCP_SERVERS, notifications=feed).cached,
        catalogs=ReadThrough(stores.catalogs, cached.MCP_CATALOGS, notifications=feed).cached,
        organizations=ReadThrough(stores.organizations, cached.ORGANIZATIONS, notifications=feed).cached,
        console_sessions=ReadThrough(stores.console_sessions, cached.CONSOLE_SESSIONS, notifications=feed).cached,
        secrets=ReadThrough(stores.secrets, cached.SECRETS, notifications=feed).cached,
        model_providers=ReadThrough(stores.model_providers, cached.MODEL_PROVIDERS, notifications=feed).cached,
    )


class SqliteLeg:
    """A file for each opening."""

    synchronous: Synchronous = "normal"

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._files = cast(SqliteFiles, request.getfixturevalue("sqlite_files"))

    @asynccontextmanager
    async def open(self, *organizations: Organization) -> AsyncIterator[Stores]:
        async with opened(SqliteDatabase(self._files.fresh(), synchronous=self.synchronous), *organizations) as stores:
            yield stores


class CachedSqliteLeg(SqliteLeg):
    """The same with rows kept in memory, as the embedded service runs it, and everything stored by
    the thread that writes."""

    synchronous = "full"

    @asynccontextmanager
    async def open(self, *organizations: Organization) -> AsyncIterator[Stores]:
        async with super().open(*organizations) as stores:
            yield kept(stores, RowNotifications(shared=False))


class PostgresLeg:
    """A database for each opening, on one server."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._databases = cast(PostgresDatabases, request.getfixturevalue("postgres_databases"))

    @asynccontextmanager
    async def open(self, *organizations: Organization) -> AsyncIterator[Stores]:
        with self._databases.fresh() as url:
            async with opened(PostgresDatabase(url, connections=4), *organizations) as stores:
                yield stores


class CachedPostgresLeg:
    """The same with rows kept in memory, as each of several processes runs it: what it does it
    hears of as well."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._databases = cast(PostgresDatabases, request.getfixturevalue("postgres_databases"))

    @asynccontextmanager
    async def open(self, *organizations: Organization) -> AsyncIterator[Stores]:
        with self._databases.fresh() as url:
            feed = RowNotifications(shared=True)
            wakeups = PostgresWakeups(url, process="prc_1", rows=feed)
            async with opened(PostgresDatabase(url, connections=4), *organizations) as stores:
                await wakeups.start()
                yield kept(stores, feed)
                await wakeups.stop()

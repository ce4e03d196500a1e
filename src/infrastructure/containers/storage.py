"""Stores shared by several slices: one SQLite file in HOME, or PostgreSQL shared with other
processes (ADR 0002, 0012, 0015)."""

from contextlib import AbstractContextManager

from dependency_injector import containers, providers

from application.agents.ports import AgentStore
from application.approvals.ports import ApprovalStore
from application.audit.ports import AuditChain, AuditForwards, AuditLog, AuditSeals, SealKeys
from application.identity.caller_teams import CallerTeams
from application.identity.ports import (
    ConsoleSessionStore,
    IdentityStore,
    ImpersonationStore,
    OrganizationStore,
    UserAccess,
    UserStore,
)
from application.identity.team_checks import TeamChecks
from application.mcp.account_secrets import PersonSecretStore
from application.mcp.describe_mcp_servers import QuarantineCounts
from application.mcp.ports import McpCatalogStore, McpServerStore
from application.model_providers.ports import ModelProviderStore
from application.provisioning.ports import GroupStore
from application.runs.ports import RunJournal, RunLeases
from application.secrets.ports import SecretStore
from application.sources.ports import SourceIntake, SourceStore
from application.system.readiness import ProcessReadiness
from application.system.shared_permits import SharedPermits
from application.threads.ports import ThreadStore
from application.usage.ports import ToolUsageReports
from infrastructure.assembly import limits as limits_assembly
from infrastructure.assembly import secrets as secrets_assembly
from infrastructure.assembly import storage as storage_assembly
from infrastructure.assembly.limits import OpenRates
from infrastructure.assembly.storage import ConsumedRunQueue
from infrastructure.containers.platform import Platform
from infrastructure.containers.wiring import Singletons
from infrastructure.mcp.wrappers.shared_breakers import SharedBreakers
from infrastructure.metrics.metered_leases import MeteredRunLeases
from infrastructure.persistence.agents.model_provider_store import SqlModelProviderStore
from infrastructure.persistence.agents.store import SqlAgentStore
from infrastructure.persistence.approvals.store import SqlApprovalStore
from infrastructure.persistence.audit.chain import SqlAuditChain
from infrastructure.persistence.audit.forwards import SqlAuditForwards
from infrastructure.persistence.audit.keys import SqlSealKeys
from infrastructure.persistence.audit.log import SqlAuditLog
from infrastructure.persistence.audit.seals import SqlAuditSeals
from infrastructure.persistence.cached import stores as cached
from infrastructure.persistence.cached.read_through import ReadThrough
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.engine.retry_deadline import RUN_RETRY_S, retrying_for
from infrastructure.persistence.identity.group_store import SqlGroupStore
from infrastructure.persistence.identity.impersonation_store import SqlImpersonationStore
from infrastructure.persistence.identity.organization_group_store import SqlOrganizationGroupStore
from infrastructure.persistence.identity.organization_store import SqlOrganizationStore
from infrastructure.persistence.identity.provider_store import SqlIdentityProviderStore
from infrastructure.persistence.identity.provisioning_store import SqlProvisioningStore
from infrastructure.persistence.identity.role_store import SqlCustomRoleStore
from infrastructure.persistence.identity.session_store import SqlConsoleSessionStore
from infrastructure.persistence.identity.store import SqlIdentityStore
from infrastructure.persistence.identity.user_store import SqlUserStore
from infrastructure.persistence.mcp.catalog_store import SqlMcpCatalogStore
from infrastructure.persistence.mcp.oauth_store import SqlOAuthStore
from infrastructure.persistence.mcp.person_secret_store import SqlPersonSecretStore
from infrastructure.persistence.mcp.quarantine_counts import SqlQuarantineCounts
from infrastructure.persistence.mcp.server_store import SqlMcpServerStore
from infrastructure.persistence.runs.journal import SqlRunJournal
from infrastructure.persistence.runs.leases import SqlRunLeases
from infrastructure.persistence.runs.store import SqlRunStore
from infrastructure.persistence.schema.inspection import DatabaseInspection
from infrastructure.persistence.schema.readiness import DatabaseReadiness
from infrastructure.persistence.schema.running_code import UpgradePlan
from infrastructure.persistence.secrets.store import SqlSecretStore
from infrastructure.persistence.sources.intake import SqlSourceIntake
from infrastructure.persistence.sources.store import SqlSourceStore
from infrastructure.persistence.threads.store import SqlThreadStore
from infrastructure.persistence.usage.store import SqlUsageStore
from infrastructure.persistence.usage.tool_store import SqlToolUsage
from infrastructure.persistence.workflows.run_store import SqlWorkflowRunStore
from infrastructure.secrets.external_secrets import ExternalSecrets
from infrastructure.secrets.sourced_secrets import SourcedSecrets

singleton = Singletons(Platform)


class Storage(containers.DeclarativeContainer):
    database: providers.Provider[Database] = singleton(storage_assembly.database, Platform.settings, Platform.home)
    upgrade_schema: providers.Provider[bool] = providers.Callable(
        storage_assembly.upgrade_schema, Platform.settings, Platform.home
    )
    upgrade_plan: providers.Provider[UpgradePlan] = providers.Callable(
        storage_assembly.upgrade_plan, Platform.settings, Platform.home
    )
    database_inspection: providers.Provider[DatabaseInspection] = providers.Factory(
        storage_assembly.inspection, Platform.settings, Platform.home
    )
    run_retry_deadline: providers.Provider[AbstractContextManager[None]] = providers.Factory(retrying_for, RUN_RETRY_S)
    database_readiness = singleton(DatabaseReadiness, database=database)
    threads: providers.Provider[ThreadStore] = singleton(SqlThreadStore, database=database)
    # `…_rows` are the stores. `…_reads` have two views of them: cached, and `fresh_…` for use cases
    # that change or show rows.
    agent_rows: providers.Provider[AgentStore] = singleton(SqlAgentStore, database=database, box=Platform.secret_box)
    agent_reads: providers.Provider[ReadThrough[AgentStore]] = singleton(
        ReadThrough, agent_rows, cached.AGENTS, notifications=Platform.row_notifications
    )
    agents: providers.Provider[AgentStore] = agent_reads.provided.cached
    fresh_agents: providers.Provider[AgentStore] = agent_reads.provided.fresh
    server_rows: providers.Provider[McpServerStore] = singleton(
        SqlMcpServerStore, database=database, box=Platform.secret_box
    )
    server_reads: providers.Provider[ReadThrough[McpServerStore]] = singleton(
        ReadThrough, server_rows, cached.MCP_SERVERS, notifications=Platform.row_notifications
    )
    servers: providers.Provider[McpServerStore] = server_reads.provided.cached
    fresh_servers: providers.Provider[McpServerStore] = server_reads.provided.fresh
    secret_rows: providers.Provider[SecretStore] = singleton(SqlSecretStore, database=database, box=Platform.secret_box)
    secret_reads: providers.Provider[ReadThrough[SecretStore]] = singleton(
        ReadThrough, secret_rows, cached.SECRETS, notifications=Platform.row_notifications
    )
    external_secrets: providers.Provider[ExternalSecrets] = singleton(
        secrets_assembly.external_secrets, Platform.settings
    )
    secrets: providers.Provider[SecretStore] = singleton(
        SourcedSecrets, secret_reads.provided.cached, external_secrets=external_secrets
    )
    model_provider_rows: providers.Provider[ModelProviderStore] = singleton(
        SqlModelProviderStore, database=database, box=Platform.secret_box
    )
    model_provider_reads: providers.Provider[ReadThrough[ModelProviderStore]] = singleton(
        ReadThrough, model_provider_rows, cached.MODEL_PROVIDERS, notifications=Platform.row_notifications
    )
    model_provider_store: providers.Provider[ModelProviderStore] = model_provider_reads.provided.cached
    fresh_model_provider_store: providers.Provider[ModelProviderStore] = model_provider_reads.provided.fresh
    oauth_store = singleton(SqlOAuthStore, database=database, box=Platform.secret_box)
    person_secret_rows: providers.Provider[PersonSecretStore] = singleton(
        SqlPersonSecretStore, database=database, box=Platform.secret_box
    )
    person_secret_reads: providers.Provider[ReadThrough[PersonSecretStore]] = singleton(
        ReadThrough, person_secret_rows, cached.PERSON_SECRETS, notifications=Platform.row_notifications
    )
    person_secrets: providers.Provider[PersonSecretStore] = person_secret_reads.provided.cached
    catalog_rows: providers.Provider[McpCatalogStore] = singleton(SqlMcpCatalogStore, database=database)
    quarantine_counts: providers.Provider[QuarantineCounts] = singleton(SqlQuarantineCounts, database=database)
    catalog_reads: providers.Provider[ReadThrough[McpCatalogStore]] = singleton(
        ReadThrough, catalog_rows, cached.MCP_CATALOGS, notifications=Platform.row_notifications
    )
    catalogs: providers.Provider[McpCatalogStore] = catalog_reads.provided.cached
    fresh_catalogs: providers.Provider[McpCatalogStore] = catalog_reads.provided.fresh
    organization_rows: providers.Provider[OrganizationStore] = singleton(SqlOrganizationStore, database=database)
    organization_reads: providers.Provider[ReadThrough[OrganizationStore]] = singleton(
        ReadThrough, organization_rows, cached.ORGANIZATIONS, notifications=Platform.row_notifications
    )
    organizations: providers.Provider[OrganizationStore] = organization_reads.provided.cached
    fresh_organizations: providers.Provider[OrganizationStore] = organization_reads.provided.fresh
    run_queue: providers.Provider[ConsumedRunQueue] = singleton(
        storage_assembly.run_queue, Platform.settings, database, organizations, agents
    )
    rates: providers.Provider[OpenRates] = singleton(limits_assembly.rates, Platform.settings, database=database)
    permits: providers.Provider[SharedPermits | None] = singleton(
        limits_assembly.permits, Platform.settings, database=database, signals=Platform.wakeups
    )
    breakers: providers.Provider[SharedBreakers | None] = singleton(
        limits_assembly.breakers, Platform.settings, database=database, signals=Platform.wakeups
    )
    readiness = singleton(ProcessReadiness, storage=database_readiness, queue=run_queue)
    identities: providers.Provider[IdentityStore] = singleton(SqlIdentityStore, database=database)
    identity_providers: providers.Provider[SqlIdentityProviderStore] = singleton(
        SqlIdentityProviderStore, database=database, box=Platform.secret_box
    )
    session_rows: providers.Provider[ConsoleSessionStore] = singleton(SqlConsoleSessionStore, database=database)
    session_reads: providers.Provider[ReadThrough[ConsoleSessionStore]] = singleton(
        ReadThrough, session_rows, cached.CONSOLE_SESSIONS, notifications=Platform.row_notifications
    )
    impersonations: providers.Provider[ImpersonationStore] = singleton(SqlImpersonationStore, database=database)
    console_sessions: providers.Provider[ConsoleSessionStore] = session_reads.provided.cached
    group_rows: providers.Provider[GroupStore] = singleton(SqlGroupStore, database=database)
    group_reads: providers.Provider[ReadThrough[GroupStore]] = singleton(
        ReadThrough, group_rows, cached.GROUPS_OF_DIRECTORIES, notifications=Platform.row_notifications
    )
    groups: providers.Provider[SqlGroupStore] = group_reads.provided.fresh
    custom_roles: providers.Provider[SqlCustomRoleStore] = singleton(SqlCustomRoleStore, database=database)
    organization_group_rows: providers.Provider[SqlOrganizationGroupStore] = singleton(
        SqlOrganizationGroupStore, database=database
    )
    organization_group_reads: providers.Provider[ReadThrough[SqlOrganizationGroupStore]] = singleton(
        ReadThrough, organization_group_rows, cached.GROUPS, notifications=Platform.row_notifications
    )
    organization_groups: providers.Provider[SqlOrganizationGroupStore] = organization_group_reads.provided.fresh
    provisioned: providers.Provider[SqlProvisioningStore] = singleton(SqlProvisioningStore, database=database)
    users: providers.Provider[UserStore] = singleton(SqlUserStore, database=database)
    user_access: providers.Provider[UserAccess] = singleton(SqlUserStore, database=database)
    caller_teams = singleton(
        CallerTeams,
        memberships=organization_group_reads.provided.cached,
        identities=identities,
        user_access=user_access,
        custom_roles=custom_roles,
    )
    team_checks = singleton(TeamChecks, memberships=organization_groups)
    sources: providers.Provider[SourceStore] = singleton(SqlSourceStore, database=database)
    source_intake: providers.Provider[SourceIntake] = singleton(SqlSourceIntake, database=database)
    audit_log: providers.Provider[AuditLog] = singleton(SqlAuditLog, database=database)
    audit_seals: providers.Provider[AuditSeals] = singleton(SqlAuditSeals, database=database)
    audit_chain: providers.Provider[AuditChain] = singleton(SqlAuditChain, database=database)
    audit_forwards: providers.Provider[AuditForwards] = singleton(SqlAuditForwards, database=database)
    seal_keys: providers.Provider[SealKeys] = singleton(SqlSealKeys, database=database, box=Platform.secret_box)
    usage_store = singleton(SqlUsageStore, database=database)
    tool_usage: providers.Provider[ToolUsageReports] = singleton(SqlToolUsage, database=database)
    approvals: providers.Provider[ApprovalStore] = singleton(SqlApprovalStore, database=database)
    runs: providers.Provider[SqlRunStore] = singleton(
        storage_assembly.run_store, Platform.settings, run_queue, database, Platform.wakeups, Platform.secret_box
    )
    leases: providers.Provider[RunLeases] = singleton(
        MeteredRunLeases, singleton(SqlRunLeases, database=database, box=Platform.secret_box)
    )
    journal: providers.Provider[RunJournal] = singleton(SqlRunJournal, database=database, box=Platform.secret_box)
    workflow_runs = singleton(SqlWorkflowRunStore, database=database)

"""Providers of maintenance: secrets and their key, usage, metrics, retention."""

from dependency_injector import containers, providers

from application.audit.forward_audit import ForwardAudit
from application.audit.ports import AuditMonths
from application.audit.remove_audit_month import RemoveAuditMonth
from application.metrics.ports import BacklogReader
from application.retention.apply_retention import ApplyRetention
from application.retention.maintain_months import MaintainMonths
from application.retention.ports import (
    ExpiringTools,
    FreeSpace,
    MonthlyTables,
    RemovableCalls,
    RetentionStore,
    RunMonths,
    SweepLock,
)
from application.retention.sweep import RetentionSweep
from application.revocation.end_session import EndSession
from application.revocation.end_sessions import EndSessions
from application.revocation.revoke_api_key import RevokeApiKey
from application.revocation.stop_work_of_key import StopWorkOfKey
from application.revocation.update_user import UpdateUser
from application.secrets.delete_secret import DeleteSecret
from application.secrets.ports import SecretVault
from application.secrets.queries import ListSecrets
from application.secrets.rotate_secret_key import RotateSecretKey
from application.secrets.set_secret import SetSecret
from application.usage.queries import GetToolUsage, GetUsage
from infrastructure.assembly import archive as archive_assembly
from infrastructure.assembly import siem as siem_assembly
from infrastructure.assembly import storage as storage_assembly
from infrastructure.assembly import tracing as tracing_assembly
from infrastructure.containers.gateway import Gateway
from infrastructure.containers.identity import Identity
from infrastructure.containers.mcp_servers import McpServers
from infrastructure.containers.platform import Platform
from infrastructure.containers.runs import Runs
from infrastructure.containers.storage import Storage
from infrastructure.containers.wiring import Singletons
from infrastructure.containers.workflows import Workflows
from infrastructure.metrics.metrics_export import MetricsExport
from infrastructure.metrics.page import PrometheusPage
from infrastructure.persistence.audit.months import SqlAuditMonths
from infrastructure.persistence.gateway.removable_calls import SqlRemovableCalls
from infrastructure.persistence.retention.free_space import SqlFreeSpace
from infrastructure.persistence.retention.months import SqlMonthlyTables
from infrastructure.persistence.retention.run_months import SqlRunMonths
from infrastructure.persistence.retention.store import SqlRetentionStore
from infrastructure.persistence.runs.backlog import SqlBacklogReader
from infrastructure.persistence.secrets.vault import SqlSecretVault
from infrastructure.persistence.workflows.tool_store import SqlWorkflowToolStore

singleton = Singletons(Platform, Storage)


class Maintenance(containers.DeclarativeContainer):
    set_secret = singleton(SetSecret, forget_server=McpServers.announced_connections.provided.forget)
    list_secrets = singleton(ListSecrets)
    delete_secret = singleton(DeleteSecret)
    secret_vault: providers.Provider[SecretVault] = singleton(SqlSecretVault, box=Platform.secret_box)
    rotate_secret_key = singleton(
        RotateSecretKey,
        vault=secret_vault,
        key_ring=singleton(storage_assembly.key_ring, Platform.settings, Platform.secret_box),
        seal_keys=Storage.seal_keys,
    )
    end_session = singleton(EndSession, revoke_session=Gateway.revoke_gateway_session)
    end_sessions = singleton(EndSessions, end_session=end_session)
    stop_work_of_key = singleton(
        StopWorkOfKey,
        end_sessions=end_sessions,
        sessions=Gateway.gateway_sessions,
        revoke_session=Gateway.revoke_gateway_session,
        stop_workflow_run=Workflows.stop_workflow_run,
        cancel_runs=Runs.cancel_runs,
    )
    revoke_api_key = singleton(
        RevokeApiKey, assignable=Identity.assignable_roles, cache=Identity.token_cache, work=stop_work_of_key
    )
    update_user = singleton(
        UpdateUser,
        assignable=Identity.assignable_roles,
        memberships=Storage.organization_groups,
        cache=Identity.token_cache,
        work=stop_work_of_key,
    )
    get_usage = singleton(GetUsage, reports=Storage.usage_store)
    get_tool_usage = singleton(GetToolUsage)
    backlog: providers.Provider[BacklogReader] = singleton(SqlBacklogReader)
    metrics_page = singleton(
        PrometheusPage,
        backlog=backlog,
        active_runs=Runs.active_runs,
        unsent_audit=singleton(siem_assembly.unsent_audit, Platform.settings, forwards=Storage.audit_forwards),
    )
    metrics_export: providers.Provider[MetricsExport | None] = singleton(
        tracing_assembly.metrics_export, Platform.settings, page=metrics_page
    )
    forward_audit: providers.Provider[ForwardAudit | None] = singleton(
        siem_assembly.forward_audit, Platform.settings, forwards=Storage.audit_forwards
    )
    retention: providers.Provider[RetentionStore] = singleton(SqlRetentionStore)
    sweep_lock: providers.Provider[SweepLock] = singleton(storage_assembly.sweep_lock, Platform.settings)
    expiring_tools: providers.Provider[ExpiringTools] = singleton(SqlWorkflowToolStore)
    monthly_tables: providers.Provider[MonthlyTables] = singleton(SqlMonthlyTables)
    removable_calls: providers.Provider[RemovableCalls] = singleton(SqlRemovableCalls)
    run_months: providers.Provider[RunMonths] = singleton(SqlRunMonths)
    audit_months: providers.Provider[AuditMonths] = singleton(SqlAuditMonths)
    free_space: providers.Provider[FreeSpace] = singleton(SqlFreeSpace)
    retention_sweep = singleton(
        RetentionSweep,
        retention=retention,
        tools=expiring_tools,
        apply_retention=singleton(
            ApplyRetention,
            retention=retention,
            prune_audit=Identity.prune_audit,
            archive_thread=singleton(
                archive_assembly.archive_thread, Platform.settings, reader=Storage.runs, calls=removable_calls
            ),
            audit_by_months=singleton(storage_assembly.has_months, Platform.settings),
        ),
        maintain_months=singleton(
            MaintainMonths,
            tables=monthly_tables,
            run_months=singleton(archive_assembly.removable_run_months, Platform.settings, run_months=run_months),
            archive_calls=singleton(
                archive_assembly.archive_calls, Platform.settings, calls=removable_calls, tables=monthly_tables
            ),
            audit_months=audit_months,
            remove_audit_month=singleton(
                RemoveAuditMonth, months=audit_months, expired=Identity.expired_chain, keys=Storage.seal_keys
            ),
        ),
        drafts=singleton(archive_assembly.drafts, Platform.settings),
        space=free_space,
        lock=sweep_lock,
    )

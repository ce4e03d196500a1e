"""Providers of maintenance: secrets and their key, usage, metrics, retention."""

from dependency_injector import containers, providers

from application.metrics.ports import BacklogReader
from application.retention.apply_retention import ApplyRetention
from application.retention.ports import RetentionStore, SweepLock
from application.retention.sweep import RetentionSweep
from application.secrets.delete_secret import DeleteSecret
from application.secrets.ports import SecretVault
from application.secrets.queries import ListSecrets
from application.secrets.rotate_secret_key import RotateSecretKey
from application.secrets.set_secret import SetSecret
from application.usage.queries import GetUsage
from infrastructure.assembly import storage as storage_assembly
from infrastructure.containers.identity import Identity
from infrastructure.containers.mcp_servers import McpServers
from infrastructure.containers.platform import Platform
from infrastructure.containers.runs import Runs
from infrastructure.containers.storage import Storage
from infrastructure.metrics.page import PrometheusPage
from infrastructure.persistence.retention.store import SqlRetentionStore
from infrastructure.persistence.runs.backlog import SqlBacklogReader
from infrastructure.persistence.secrets.vault import SqlSecretVault


class Upkeep(containers.DeclarativeContainer):
    set_secret: providers.Provider[SetSecret] = providers.Singleton(
        SetSecret,
        secrets=Storage.secrets,
        forget_server=McpServers.announced_connections.provided.forget,
        clock=Platform.clock,
        ids=Platform.ids,
    )
    list_secrets: providers.Provider[ListSecrets] = providers.Singleton(ListSecrets, secrets=Storage.secrets)
    delete_secret: providers.Provider[DeleteSecret] = providers.Singleton(
        DeleteSecret, secrets=Storage.secrets, clock=Platform.clock, ids=Platform.ids
    )
    secret_vault: providers.Provider[SecretVault] = providers.Singleton(
        SqlSecretVault, database=Storage.database, box=Platform.secret_box
    )
    rotate_secret_key: providers.Provider[RotateSecretKey] = providers.Singleton(
        RotateSecretKey,
        vault=secret_vault,
        key_ring=providers.Singleton(storage_assembly.key_ring, Platform.settings, Platform.secret_box),
        audit_log=Storage.audit_log,
        clock=Platform.clock,
        ids=Platform.ids,
    )
    get_usage: providers.Provider[GetUsage] = providers.Singleton(GetUsage, reports=Storage.usage_store)
    backlog: providers.Provider[BacklogReader] = providers.Singleton(SqlBacklogReader, database=Storage.database)
    metrics_page: providers.Provider[PrometheusPage] = providers.Singleton(
        PrometheusPage,
        instruments=Platform.instruments,
        backlog=backlog,
        active_runs=Runs.active_runs,
        clock=Platform.clock,
    )
    retention: providers.Provider[RetentionStore] = providers.Singleton(SqlRetentionStore, database=Storage.database)
    sweep_lock: providers.Provider[SweepLock] = providers.Singleton(storage_assembly.sweep_lock, Platform.settings)
    retention_sweep: providers.Provider[RetentionSweep] = providers.Singleton(
        RetentionSweep,
        organizations=Storage.organizations,
        retention=retention,
        apply_retention=providers.Singleton(
            ApplyRetention,
            retention=retention,
            prune_audit=Identity.prune_audit,
            audit_log=Storage.audit_log,
            clock=Platform.clock,
            ids=Platform.ids,
        ),
        lock=sweep_lock,
        clock=Platform.clock,
    )

"""Providers that all slices use: settings, process, clock, ids, keys, egress guard, wake-ups and
traces."""

from importlib.metadata import version

from dependency_injector import containers, providers

from application.policy.ports import SchemaValidator
from application.system.ports import Clock, IdSource, LogContext
from application.tracing.ports import TraceAddresses
from domain.ids import WorkerId
from infrastructure.assembly import native_tools as native_tools_assembly
from infrastructure.assembly import storage as storage_assembly
from infrastructure.assembly import tracing as tracing_assembly
from infrastructure.assembly.storage import OpenWakeups
from infrastructure.events.row_notifications import RowNotifications
from infrastructure.http.egress import EgressPolicy
from infrastructure.http.proxies import Proxies
from infrastructure.mcp.known_secrets import KnownSecrets
from infrastructure.metrics.instruments import Instruments
from infrastructure.metrics.metered_tracer import MeteredTracer
from infrastructure.metrics.meters import PrometheusMeters
from infrastructure.metrics.server_states import ServerStates
from infrastructure.runtime.home import Home
from infrastructure.runtime.logs import log_context
from infrastructure.runtime.public_address import ListeningAddress
from infrastructure.runtime.system import RandomIds, SystemClock
from infrastructure.secrets.lazy_box import LazySecretBox
from infrastructure.secrets.redaction import Redactor
from infrastructure.settings import Settings
from infrastructure.tracing.closable import ClosableTracer
from infrastructure.tracing.log_handler import CollectorLogHandler


def _worker_id(ids: IdSource) -> WorkerId:
    return WorkerId(ids.new("wrk"))


def _egress_policy(settings: Settings) -> EgressPolicy:
    return EgressPolicy(settings.egress_allowed)


def _proxies(settings: Settings) -> Proxies:
    return Proxies(http=settings.http_proxy, https=settings.https_proxy, bypass=settings.proxy_exceptions)


class Platform(containers.DeclarativeContainer):
    """Depends on `settings` only."""

    settings: providers.Dependency[Settings] = providers.Dependency(instance_of=Settings)
    app_version: providers.Provider[str] = providers.Callable(version, "dragoman")
    clock: providers.Provider[Clock] = providers.Singleton(SystemClock)
    ids: providers.Provider[IdSource] = providers.Singleton(RandomIds)
    log_context: providers.Provider[LogContext] = providers.Object(log_context)
    worker_id: providers.Provider[WorkerId] = providers.Singleton(_worker_id, ids)
    home: providers.Provider[Home] = providers.Singleton(
        Home, settings.provided.home, database_path=settings.provided.database_path
    )
    redactor: providers.Provider[Redactor] = providers.Singleton(Redactor, settings.provided.secret_values)
    known_secrets: providers.Provider[KnownSecrets] = providers.Singleton(KnownSecrets, redactor)
    secret_box: providers.Provider[LazySecretBox] = providers.Singleton(storage_assembly.secret_box, settings)
    egress_policy: providers.Provider[EgressPolicy] = providers.Singleton(_egress_policy, settings)
    proxies: providers.Provider[Proxies] = providers.Singleton(_proxies, settings)
    public_address: providers.Provider[ListeningAddress] = providers.Singleton(
        ListeningAddress, settings.provided.public_url
    )
    schemas: providers.Provider[SchemaValidator] = providers.Singleton(native_tools_assembly.schemas)
    row_notifications: providers.Provider[RowNotifications] = providers.Singleton(
        storage_assembly.row_notifications, settings
    )
    wakeups: providers.Provider[OpenWakeups] = providers.Singleton(
        storage_assembly.wakeups, settings, ids, row_notifications
    )
    instruments: providers.Provider[Instruments] = providers.Singleton(Instruments, version=app_version)
    meters: providers.Provider[PrometheusMeters] = providers.Singleton(
        PrometheusMeters, instruments=instruments, clock=clock
    )
    server_states: providers.Provider[ServerStates] = providers.Singleton(ServerStates, instruments)
    tracer: providers.Provider[ClosableTracer] = providers.Singleton(
        MeteredTracer, providers.Singleton(tracing_assembly.tracer, settings, redactor), instruments=instruments
    )
    trace_addresses: providers.Provider[TraceAddresses] = providers.Singleton(
        tracing_assembly.trace_addresses, settings
    )
    collector_logs: providers.Provider[CollectorLogHandler | None] = providers.Singleton(
        tracing_assembly.collector_logs, settings, redactor
    )

"""Builds storage and messaging: one SQLite file, or PostgreSQL shared with other processes."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from application.agents.ports import AgentStore
from application.gateway.ports import GatewayClientStore, GatewaySessionStore
from application.gateway.sessions.client_handshakes import ClientHandshakes
from application.gateway.sessions.gateway_access import GatewayAccess
from application.gateway.sessions.open_session import GATEWAY_PATH
from application.gateway.sessions.session_ends import SessionEnds
from application.gateway.subscriptions.subscribers import Subscribers
from application.identity.authenticate import Authenticate
from application.identity.caller_teams import CallerTeams
from application.identity.impersonations import Impersonations
from application.identity.key_limits import KeyLimits
from application.identity.key_validity import KeyValidity, access_topic
from application.identity.ports import ConsoleSessionStore, IdentityStore, OrganizationStore, UserAccess
from application.identity.token_cache import TokenCache
from application.mcp.oauth_client import PublicAddress
from application.retention.ports import SweepLock
from application.runs.ports import RunQueue
from application.secrets.ports import KeyRing
from application.system.ports import Clock, IdSource
from application.system.wakeups import Wakeups
from domain.ids import RunId
from infrastructure.events.row_notifications import RowNotifications
from infrastructure.events.row_version import RowVersion
from infrastructure.events.wakeups import InProcessWakeups
from infrastructure.jobs.embedded import InProcessRunQueue
from infrastructure.jobs.run_flows import SqlRunFlows
from infrastructure.jobs.sweep_lock import InProcessSweepLock
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.engine.postgres.url import library_url, named_url
from infrastructure.persistence.engine.sqlite.database import SqliteDatabase
from infrastructure.persistence.runs.store import SqlRunStore
from infrastructure.persistence.schema.inspection import DatabaseInspection
from infrastructure.persistence.schema.new_database import made_at_once
from infrastructure.persistence.schema.revision import HEAD, is_current
from infrastructure.persistence.schema.running_code import APPLICATION_NAME, UpgradePlan
from infrastructure.runtime.home import Home
from infrastructure.secrets.lazy_box import LazySecretBox, OpenBox
from infrastructure.secrets.secret_keys import GivenKeyRing, HomeKeyRing, load_or_create_secret_keys
from infrastructure.settings import Settings

TOKEN_CACHE_CAPACITY = 1_000


def secret_box(settings: Settings) -> LazySecretBox:
    return LazySecretBox(settings.secret_keys or load_or_create_secret_keys(settings.home), load=_open_box)


def _open_box(keys: Sequence[str]) -> OpenBox:
    from infrastructure.secrets.secret_box import SecretBox

    return SecretBox(keys)


def key_ring(settings: Settings, box: LazySecretBox) -> KeyRing:
    return GivenKeyRing() if settings.secret_keys else HomeKeyRing(home=settings.home, box=box)


def upgrade_schema(settings: Settings, home: Home, *, despite_running: bool = False) -> bool:
    """Update the schema; returns whether it was outdated. Alembic is imported only to apply
    revisions."""
    url = _database_url(settings, home)
    if is_current(url):
        return False
    if settings.postgres_url is None and made_at_once(url):
        return True
    from infrastructure.persistence.schema.upgrade import upgrade

    return upgrade(url, despite_running=despite_running)


def upgrade_plan(settings: Settings, home: Home) -> UpgradePlan:
    """What `upgrade_schema` would do to the database."""
    if settings.postgres_url is None and not home.database_path.exists():
        return UpgradePlan(pending=(HEAD,))
    from infrastructure.persistence.schema.upgrade import plan

    return plan(_database_url(settings, home))


def _database_url(settings: Settings, home: Home) -> str:
    return settings.postgres_url or f"sqlite:///{home.database_path}"


def inspection(settings: Settings, home: Home) -> DatabaseInspection:
    return DatabaseInspection(path=home.database_path, url=settings.postgres_url)


def database(settings: Settings, home: Home) -> Database:
    if settings.postgres_url is None:
        return SqliteDatabase(home.database_path, synchronous=settings.sqlite_synchronous)
    from infrastructure.persistence.engine.postgres.database import PostgresDatabase

    return PostgresDatabase(named_url(settings.postgres_url, APPLICATION_NAME))


class OpenWakeups(Wakeups, Protocol):
    """Wake-ups with start and stop."""

    async def start(self) -> None:
        """Begin to receive from other processes."""
        ...

    async def stop(self) -> None:
        """Send what is pending, in bounded time."""
        ...

    def subscribe_prefix(self, word: str, hear: Callable[[str], None]) -> None:
        """Call `hear` with each topic from another process that begins with `word` and a colon."""
        ...

    def wake_here(self, *topics: str) -> None:
        """Wake the listeners of this process alone."""
        ...


def row_notifications(settings: Settings) -> RowNotifications:
    return RowNotifications(shared=settings.postgres_url is not None)


def gateway_toolset_rows(rows: RowNotifications) -> RowVersion:
    """Version of the rows that toolsets of gateway sessions are built from."""
    return RowVersion("agent", "organization", "mcp_server", "mcp_server_state", notifications=rows)


def wakeups(settings: Settings, ids: IdSource, rows: RowNotifications) -> OpenWakeups:
    if settings.postgres_url is None:
        return InProcessWakeups()
    from infrastructure.events.postgres_wakeups import PostgresWakeups

    return PostgresWakeups(library_url(settings.postgres_url), process=ids.new("prc"), rows=rows)


class ConsumedRunQueue(RunQueue, Protocol):
    """A run queue with its consumer side."""

    @property
    def attended(self) -> bool:
        """Whether a consumer of this process receives submissions."""
        ...

    async def until_attended(self) -> None:
        """Wait until `attended`."""
        ...

    def beside(self, run_id: RunId) -> AbstractAsyncContextManager[None]:
        """While this process executes a run that it was not given, the run counts as one in
        progress."""
        ...

    async def consume(self, handler: Callable[[RunId], Awaitable[None]], *, concurrency: int) -> None: ...

    async def drain(self, timeout_s: float) -> bool:
        """Accept no more runs; returns whether those in progress ended in time."""
        ...


def run_queue(
    settings: Settings, database: Database, organizations: OrganizationStore, agents: AgentStore
) -> ConsumedRunQueue:
    if settings.postgres_url is None:
        return InProcessRunQueue(SqlRunFlows(database=database, organizations=organizations, agents=agents).of)
    from infrastructure.jobs.procrastinate_queue import ProcrastinateRunQueue

    return ProcrastinateRunQueue(library_url(settings.postgres_url), database=database)


def run_store(
    settings: Settings, queue: ConsumedRunQueue, database: Database, wakeups: Wakeups, box: LazySecretBox
) -> SqlRunStore:
    if settings.postgres_url is None:
        if not isinstance(queue, InProcessRunQueue):
            return SqlRunStore(database=database, wakeups=wakeups, box=box)
        return SqlRunStore(database=database, wakeups=wakeups, box=box, signal=queue.signal, withdraw=queue.discard)
    from infrastructure.jobs.procrastinate_queue import submit_runs

    return SqlRunStore(database=database, wakeups=wakeups, box=box, submit=submit_runs)


def sweep_lock(settings: Settings) -> SweepLock:
    if settings.postgres_url is None:
        return InProcessSweepLock()
    from infrastructure.persistence.engine.postgres.sweep_lock import PostgresSweepLock

    return PostgresSweepLock(library_url(settings.postgres_url))


def has_months(settings: Settings) -> bool:
    """Whether large tables are stored by months."""
    return settings.postgres_url is not None


def token_cache(rows: RowNotifications) -> TokenCache:
    cache = TokenCache(TOKEN_CACHE_CAPACITY, fresh=rows.fresh, on_forget=lambda: rows.wrote(("api_key",), None))
    rows.listen(cache.forget_organization, "api_key", "user_account", "custom_role", "group_member")
    # Its users may belong to any organization.
    rows.listen(lambda _: cache.forget_organization(None), "identity_provider")
    return cache


def key_validity(
    rows: RowNotifications,
    *,
    wakeups: OpenWakeups,
    identities: IdentityStore,
    user_access: UserAccess,
    console_sessions: ConsoleSessionStore,
    impersonations: Impersonations,
    cache: TokenCache,
    caller_teams: CallerTeams,
    clock: Clock,
) -> KeyValidity:
    """Each process hears of changes itself, and wakes what it streams to callers whose access they
    may concern."""
    rows.watch(
        lambda organization_id: wakeups.wake_here(access_topic(organization_id)),
        *("api_key", "user_account", "console_session", "custom_role", "group_member"),
    )
    # Its users may belong to any organization.
    rows.watch(lambda _: wakeups.wake_here(access_topic(None)), "identity_provider")
    return KeyValidity(
        identities=identities,
        user_access=user_access,
        console_sessions=console_sessions,
        impersonations=impersonations,
        cache=cache,
        caller_teams=caller_teams,
        clock=clock,
    )


def gateway_access(
    rows: RowNotifications,
    *,
    address: PublicAddress,
    external: str | None,
    sessions: GatewaySessionStore,
    agents: AgentStore,
    authenticate: Authenticate,
    caller_teams: CallerTeams,
    limits: KeyLimits,
    clock: Clock,
    wakeups: Wakeups,
) -> GatewayAccess:
    access = GatewayAccess(
        sessions=sessions,
        agents=agents,
        authenticate=authenticate,
        caller_teams=caller_teams,
        limits=limits,
        clock=clock,
        is_notified=rows.fresh,
        ends=SessionEnds(wakeups=wakeups, clock=clock),
        on_forget=lambda: rows.wrote(("gateway_session",), None),
        audience=lambda: None if external is None else f"{address.url}{GATEWAY_PATH}",
        has_own_grants=external is None,
    )
    rows.listen(access.forget_organization, "gateway_session", "user_account", "custom_role", "group_member")
    # Its users may belong to any organization. This process tells of them as of keys.
    rows.watch(lambda _: access.forget_organization(None), "identity_provider", "api_key")
    return access


def client_handshakes(
    rows: RowNotifications, *, clients: GatewayClientStore, box: LazySecretBox, clock: Clock, ids: IdSource
) -> ClientHandshakes:
    handshakes = ClientHandshakes(
        clients=clients,
        box=box,
        clock=clock,
        ids=ids,
        is_notified=rows.fresh,
        on_change=lambda organization_id: rows.wrote(("gateway_client",), organization_id),
    )
    rows.listen(handshakes.forget_organization, "gateway_client")
    return handshakes


def subscribers(rows: RowNotifications) -> Subscribers:
    """Subscribers are notified of rows written by this process and by others."""
    told = Subscribers()
    rows.watch(told.sessions_changed, "gateway_session", "gateway_client", "api_key", "user_account", "custom_role")
    # Its users may belong to any organization.
    rows.watch(lambda _: told.sessions_changed(None), "identity_provider")
    rows.watch(told.tools_changed, "agent", "organization", "mcp_server", "mcp_server_state")
    return told

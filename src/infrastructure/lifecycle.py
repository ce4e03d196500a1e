"""Opens and closes the system in order, in one task that enters and leaves every context. Above:
the service, the worker and the CLI. Below: every adapter that must be opened."""

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar

from application.audit.verify_audit_archive import ArchiveReport
from application.gateway.calls import settle_lost_calls
from application.gateway.sessions import release_ended_sessions
from application.identity import key_uses
from application.retention import sweep
from application.retention.verify_run_archive import RunArchiveReport
from application.system.ended import cancelled
from application.system.periodic import every
from domain.errors import invalid
from infrastructure.assembly import archive as archive_assembly
from infrastructure.confinement.kernel import PR_SET_DUMPABLE, prctl
from infrastructure.confinement.leftovers import end_leftovers
from infrastructure.container import Container
from infrastructure.mcp.containers.engine import EngineError
from infrastructure.persistence.engine.sqlite.backup import back_up
from infrastructure.persistence.engine.sqlite.vacuum import vacuum
from infrastructure.persistence.engine.waiting_start import once_available
from infrastructure.runtime.logs import configure_logging
from infrastructure.runtime.loop_watchdog import watching_loop
from infrastructure.settings import Settings, forget_secrets

logger = logging.getLogger(__name__)

T = TypeVar("T")

_SWITCH_S = 0.001
_LAST_SEAL_S = 5.0
"""Timeout for sealing the last audit entries when a process stops."""


def switch_threads_soon() -> None:
    """Let the event loop have the interpreter a millisecond after it wants it, though another
    thread computes. Python's default is 5 ms, each time: a call waits ten times and more while a
    thread reads a large catalog."""
    sys.setswitchinterval(_SWITCH_S)


def hide_secrets(settings: Settings) -> None:
    """For a process that serves: no secret stays in its environment, and no other process of its
    user reads its memory or the environment that it was started with."""
    forget_secrets(settings)
    prctl(PR_SET_DUMPABLE, 0)


def configure_logs(container: Container, *, only_trouble: bool = False) -> None:
    """Configure logging from the settings, with redaction; `only_trouble` logs warnings and
    errors only."""
    settings = container.settings()
    level = settings.log_level
    if only_trouble and level in {"debug", "info"}:
        level = "warning"
    configure_logging(level=level, form=settings.log_format, redactor=container.redactor())


def missing_directories(settings: Settings) -> tuple[str, ...]:
    """A warning for each directory of the settings that does not exist. None is made: it may be a
    mount that is missing."""
    named = {"DRAGOMAN_SECRET_FILES": settings.secret_files, "DRAGOMAN_ARCHIVE_DIR": settings.archive_dir}
    return tuple(
        f"{name} names {path}, which is not a directory" for name, path in named.items() if path and not path.is_dir()
    )


@asynccontextmanager
async def open_service(container: Container) -> AsyncIterator[None]:
    """The system of a service, without executing runs (`interfaces.worker.execution`). It owns
    HOME, upgrades the schema and starts maintenance. Raises ServiceError `home_in_use`,
    `storage_unavailable`, …."""
    # From here on, files created in HOME by any library are readable by the owner only.
    os.umask(0o077)
    async with AsyncExitStack() as stack:
        stack.enter_context(container.home().owned())
        await stack.enter_async_context(_logging_to_collector(container))
        await _end_leftovers(container)
        await _open_storage(container, stack)
        await when_storage_available(container, container.bootstrap_identity().execute)
        await stack.enter_async_context(_sealing(container))
        await stack.enter_async_context(_reporting(container))
        _tell_missing_grants(container, stack)
        await stack.enter_async_context(_exporting_metrics(container))
        await stack.enter_async_context(_forwarding(container))
        sweeping = asyncio.create_task(_sweep(container), name="sweep")
        stack.push_async_callback(cancelled, sweeping)
        lost_calls = container.settle_lost_calls()
        if container.settings().postgres_url is None:
            await lost_calls.execute(sole_owner=True)
        settling = _periodic(settle_lost_calls.EVERY_S, lost_calls.execute, task="lost-gateway-calls")
        stack.push_async_callback(cancelled, settling)
        installs = container.server_installs()
        await when_storage_available(container, installs.recover)
        await when_storage_available(container, container.person_files().tidy)
        _close_at_the_end(container, stack)
        stack.push_async_callback(installs.close)
        release = container.release_ended_sessions()
        releasing = _periodic(release_ended_sessions.EVERY_S, release.execute, task="ended-gateway-sessions")
        stack.push_async_callback(cancelled, releasing)
        uses = container.key_uses()
        stack.push_async_callback(uses.settle)
        storing_uses = _periodic(key_uses.STORE_EVERY_S, uses.store, task="key-uses")
        stack.push_async_callback(cancelled, storing_uses)
        warming = asyncio.create_task(_warm(container), name="warm-up")
        stack.push_async_callback(cancelled, warming)
        yield


@asynccontextmanager
async def open_worker(container: Container) -> AsyncIterator[None]:
    """The system of a worker process: only what executing runs requires; HOME is never written.
    Raises INVALID `worker_needs_postgresql`, and the errors of `open_service`."""
    if container.settings().postgres_url is None:
        raise invalid(
            "worker_needs_postgresql",
            "`dragoman worker` needs PostgreSQL: an SQLite database is owned by one process, `dragoman serve`, which executes"
            " its runs itself. Set DRAGOMAN_DATABASE_URL to a postgresql:// URL.",
        )
    os.umask(0o077)
    async with AsyncExitStack() as stack:
        container.home().create()
        await stack.enter_async_context(_logging_to_collector(container))
        await _end_leftovers(container)
        await _open_storage(container, stack)
        await stack.enter_async_context(_sealing(container))
        await stack.enter_async_context(_reporting(container))
        _tell_missing_grants(container, stack)
        await stack.enter_async_context(_exporting_metrics(container))
        _close_at_the_end(container, stack)
        warming = asyncio.create_task(_warm(container), name="warm-up")
        stack.push_async_callback(cancelled, warming)
        yield


async def _end_leftovers(container: Container) -> None:
    """End MCP servers that outlived the process that started them, and prepare the control group
    for new ones."""
    if ended := await asyncio.to_thread(end_leftovers):
        logger.warning("ended %d processes of MCP servers whose service is gone", ended)
    if await asyncio.to_thread(container.given_group().take):
        logger.info("each started MCP server gets a control group")


async def _end_left_containers(container: Container) -> None:
    """End containers of MCP servers that outlived the process that started them, where there is an
    engine."""
    try:
        ended = await container.container_marks().end_leftovers(container.container_engine())
    except EngineError as error:
        logger.debug("no containers of MCP servers were looked for: %s", error)
        return
    if ended:
        logger.warning("ended %d containers of MCP servers whose service is gone", ended)


async def look_at_engine(container: Container) -> tuple[bool, str]:
    """Whether there is a container engine, and what it says of itself or what is wrong."""
    try:
        return True, await container.container_engine().describe()
    except EngineError as error:
        return False, str(error)


def watching(container: Container) -> AbstractContextManager[None]:
    """Log and count what holds the event loop of this process."""
    return watching_loop(held=container.instruments().loop_hold.observe)


async def when_storage_available(container: Container, step: Callable[[], Awaitable[T]]) -> T:
    """The result of a step of the start, which waits for PostgreSQL (`DRAGOMAN_DATABASE_WAIT_S`).
    Raises what the step raises."""
    settings = container.settings()
    if settings.postgres_url is None:  # an SQLite file is there, or will not come
        return await step()
    return await once_available(step, within_s=settings.database_wait_s)


def upgrade_database(container: Container, *, despite_running: bool = False) -> bool:
    """Upgrade the database to this version's schema; False if it was current. Raises
    ServiceError."""
    os.umask(0o077)
    if container.settings().postgres_url is not None:
        return container.upgrade_schema(despite_running=despite_running)
    with container.home().owned():
        return container.upgrade_schema()


def back_up_database(container: Container, target: Path) -> int:
    """Copy the SQLite database to a file, even while a service uses it; returns its size in
    bytes. Raises ServiceError, `backup_needs_sqlite` for PostgreSQL."""
    if container.settings().postgres_url is not None:
        raise invalid(
            "backup_needs_sqlite",
            "`dragoman db backup` copies an SQLite database. Back PostgreSQL up with pg_dump (docs/guides/backup.md).",
        )
    return back_up(container.home().database_path, target)


def vacuum_database(container: Container) -> tuple[int, int]:
    """Rewrite the SQLite database without free space; its size in bytes before and after. No
    service may run. Raises ServiceError, `vacuum_needs_sqlite` for PostgreSQL."""
    if container.settings().postgres_url is not None:
        raise invalid(
            "vacuum_needs_sqlite", "`dragoman db vacuum` is for SQLite. PostgreSQL's autovacuum needs no help."
        )
    with container.home().owned():
        return vacuum(container.home().database_path)


async def verify_audit_archive(container: Container, directory: Path) -> ArchiveReport:
    """Check the audit entries of an archive, without the database."""
    return await archive_assembly.verify_audit_archive(directory, container.secret_box()).execute()


async def verify_run_archive(directory: Path) -> RunArchiveReport:
    """Check the runs and gateway calls of an archive, without the database."""
    return await archive_assembly.verify_run_archive(directory).execute()


async def _open_storage(container: Container, stack: AsyncExitStack) -> None:
    """Upgrade the schema and start notifications between processes. Waits for PostgreSQL."""
    await when_storage_available(container, lambda: asyncio.to_thread(container.upgrade_schema))
    database = container.database()
    await when_storage_available(container, database.start)
    stack.push_async_callback(database.stop)
    wakeups = container.wakeups()
    await wakeups.start()
    stack.push_async_callback(wakeups.stop)
    await stack.enter_async_context(_sharing_limits(container))


def _close_at_the_end(container: Container, stack: AsyncExitStack) -> None:
    """Register what runs open lazily for closing."""
    stack.push_async_callback(container.tracer().close)
    stack.push_async_callback(container.external_secrets().close)
    stack.push_async_callback(container.webhook_sender().close)
    stack.push_async_callback(container.lazy_providers().close)
    stack.push_async_callback(container.oauth().close)
    stack.push_async_callback(container.mcp_registries().close)
    stack.push_async_callback(container.connections().close)
    stack.push_async_callback(container.resource_watches().close)
    stack.push_async_callback(container.announced_connections().close)
    stack.push_async_callback(container.catalog_reader().close)
    stack.push_async_callback(container.code_execution().close)
    stack.push_async_callback(container.text_extractor().close)
    stack.push_async_callback(container.expressions().close)
    stack.push_async_callback(container.workflow_http().close)
    stack.push_async_callback(container.website_content().close)
    stack.push_async_callback(container.internet_search().close)


@asynccontextmanager
async def _sealing(container: Container) -> AsyncIterator[None]:
    """Seal audit entries periodically, and once more at shutdown."""
    seal_audit = container.seal_audit()
    task = asyncio.create_task(seal_audit.keep(), name="audit-seals")
    try:
        yield
    finally:
        await cancelled(task)
        with suppress(TimeoutError):
            await asyncio.wait_for(seal_audit.finish(), _LAST_SEAL_S)


@asynccontextmanager
async def _logging_to_collector(container: Container) -> AsyncIterator[None]:
    """Send log lines to the collector too, if they are asked for."""
    handler = container.collector_logs()
    if handler is None:
        yield
        return
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        await handler.finish()


@asynccontextmanager
async def _exporting_metrics(container: Container) -> AsyncIterator[None]:
    """Send metrics to the collector, if they are asked for."""
    export = container.metrics_export()
    if export is None:
        yield
        return
    task = asyncio.create_task(export.keep(), name="metrics-export")
    try:
        yield
    finally:
        await cancelled(task)
        await export.close()


@asynccontextmanager
async def _forwarding(container: Container) -> AsyncIterator[None]:
    """Send audit entries to the SIEM, if any."""
    forward_audit = container.forward_audit()
    if forward_audit is None:
        yield
        return
    task = asyncio.create_task(forward_audit.keep(), name="audit-forwarding")
    try:
        yield
    finally:
        await cancelled(task)
        await forward_audit.close()


@asynccontextmanager
async def _reporting(container: Container) -> AsyncIterator[None]:
    """Report the state of MCP servers to other processes on the database, if any."""
    reporter = container.state_reporter()
    if reporter is None:
        yield
        return
    task = asyncio.create_task(reporter.keep(), name="mcp-states")
    try:
        yield
    finally:
        await cancelled(task)
        await reporter.withdraw()


def _tell_missing_grants(container: Container, stack: AsyncExitStack) -> None:
    """Tell the webhook of the inbox which MCP servers a person must authorize."""
    telling = asyncio.create_task(container.tell_missing_grants().keep(), name="missing-grants")
    stack.push_async_callback(cancelled, telling)


@asynccontextmanager
async def _sharing_limits(container: Container) -> AsyncIterator[None]:
    """Renew permits of limits that all processes share, and free them at the end."""
    permits = container.permits()
    task = None if permits is None else asyncio.create_task(permits.keep(), name="shared-permits")
    try:
        yield
    finally:
        if task is not None and permits is not None:
            await cancelled(task)
            await permits.close()
        if (breakers := container.breakers()) is not None:
            await breakers.close()
        await container.rates().close()


async def _sweep(container: Container) -> None:
    """Delete expired data periodically; of the audit trail only sealed entries."""
    await container.seal_audit().caught_up()
    await every(
        sweep.SWEEP_EVERY_S,
        container.retention_sweep().execute,
        task="sweep",
        first_after_s=sweep.FIRST_AFTER_S,
        jitter=sweep.JITTER,
    )


def _periodic(seconds: float, step: Callable[[], Awaitable[object]], *, task: str) -> asyncio.Task[None]:
    return asyncio.create_task(every(seconds, step, task=task), name=task)


async def _warm(container: Container) -> None:
    """Load what the first runs need, after the service is ready, and say how servers are
    confined."""
    try:
        held = await asyncio.to_thread(container.sandbox().report)
        log = logger.info if held.profile is not None else logger.warning
        log("confinement of started MCP servers: %s", held.words)
        # The MCP SDK takes tens of megabytes; a service without servers does not need it.
        if not await container.servers().is_empty():
            await _end_left_containers(container)
            await container.connections().warm()
        if any(provider.api_key is not None for provider in container.model_providers()):
            await container.lazy_providers().warm()
            await container.prices().warm()
    except Exception:
        logger.exception("warm-up failed; missing parts are loaded on first use")

"""The running worker: executes runs beside any number of services and other workers, on one
PostgreSQL database."""

import asyncio
import logging
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial

import uvloop

from infrastructure.container import Container
from infrastructure.lifecycle import (
    configure_logs,
    hide_secrets,
    missing_directories,
    open_worker,
    switch_threads_soon,
    watching,
)
from infrastructure.settings import Settings, unknown_variables
from interfaces.draining import drained_by_signal
from interfaces.http.app import create_monitoring_app
from interfaces.http_server import HttpServer, listening
from interfaces.worker.execution import executing, finish_runs

logger = logging.getLogger(__name__)


def work(settings: Settings) -> int:
    """Execute runs until told to stop; returns the exit status. Raises ServiceError when it cannot
    start."""
    hide_secrets(settings)
    switch_threads_soon()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_work(settings))


@asynccontextmanager
async def working(container: Container) -> AsyncIterator[None]:
    """A worker's system, open and executing runs. Raises ServiceError when it cannot start."""
    async with open_worker(container), executing(container):
        yield


async def _work(settings: Settings) -> int:
    container = Container(settings=settings)
    configure_logs(container)
    for warning in (*unknown_variables(), *missing_directories(settings)):
        logger.warning(warning)
    async with working(container), _monitored(container):
        # A signal may follow at once after the ready line: its handler must be installed before.
        with (
            _told_to_stop() as told,
            drained_by_signal(partial(finish_runs, container), then=told.set),
            watching(container),
        ):
            sys.stdout.write(f"Dragoman worker is ready: up to {settings.worker_concurrency} runs at a time\n")
            sys.stdout.flush()
            await told.wait()
        container.readiness().stop()
        logger.info("stopping: runs in progress may finish the step in hand; a second signal stops at once")
    return 0


@asynccontextmanager
async def _monitored(container: Container) -> AsyncIterator[None]:
    """Health and metrics on a separate port, if the settings name one. Raises UNAVAILABLE
    `address_unusable`."""
    settings = container.settings()
    if settings.metrics_port is None:
        yield
        return
    app = create_monitoring_app(container)
    with listening(settings.host, settings.metrics_port, change="Set DRAGOMAN_METRICS_PORT.") as listener:
        server = HttpServer(app)
        serving = asyncio.create_task(server.serve(sockets=[listener]), name="monitoring")
        logger.info("metrics are at /metrics", extra={"port": listener.getsockname()[1]})
        try:
            yield
        finally:
            server.should_exit = True
            await serving


@contextmanager
def _told_to_stop() -> Iterator[asyncio.Event]:
    """Set by the first SIGTERM or SIGINT; one that comes after leaving ends the process at once,
    and other workers recover its runs when their leases expire."""
    loop = asyncio.get_running_loop()
    told = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, told.set)
    try:
        yield told
    finally:
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(name)
            signal.signal(name, signal.SIG_DFL)

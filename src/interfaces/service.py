"""The running service: the HTTP application, embedded in a process or listening on a port."""

import asyncio
import gc
import logging
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import uvloop
from litestar import Litestar

from domain.errors import ErrorKind, ServiceError
from infrastructure.container import Container
from infrastructure.lifecycle import (
    configure_logs,
    hide_secrets,
    missing_directories,
    open_service,
    switch_threads_soon,
    watching,
)
from infrastructure.settings import Settings, unknown_variables
from interfaces.announcement import announce
from interfaces.asgi import create_app
from interfaces.draining import drained_by_signal
from interfaces.http_server import HttpServer, listening
from interfaces.inbound import InboundLimits
from interfaces.worker.execution import executing, finish_runs

logger = logging.getLogger(__name__)

_COLLECT_AFTER = (2_000, 5, 1_000)
"""A collection of the second generation looks at up to 10,000 objects, which takes a
millisecond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedService:
    """The system in this process, reached through `app` (ASGI). `api_key` is the one that was
    given, or the admin key of HOME."""

    app: Litestar
    api_key: str


@asynccontextmanager
async def running(container: Container, *, worker: bool = True) -> AsyncIterator[None]:
    """The running system, which with `worker` also executes runs. Raises ServiceError if it
    cannot start."""
    async with open_service(container):
        if not worker:
            yield
            return
        async with executing(container):
            yield


@asynccontextmanager
async def embedded(
    settings: Settings, *, api_key: str | None = None, worker: bool = True
) -> AsyncIterator[EmbeddedService]:
    """The system without a port, for commands that find no running service. Raises ServiceError,
    such as UNAUTHENTICATED `admin_key_missing` without an `api_key`."""
    container = Container(settings=settings)
    configure_logs(container, only_trouble=True)
    async with running(container, worker=worker):
        key = api_key or container.home().read_admin_key()
        if key is None:
            raise ServiceError(
                "admin_key_missing",
                ErrorKind.UNAUTHENTICATED,
                f"{container.home().admin_key_path} is missing. Set DRAGOMAN_API_KEY to a key of this installation.",
            )
        yield EmbeddedService(app=create_app(container), api_key=key)


def serve(settings: Settings, *, worker: bool = True) -> int:
    """Run the service until a signal; returns the exit status. Raises ServiceError if it cannot
    start."""
    hide_secrets(settings)
    switch_threads_soon()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(settings, worker=worker))


async def _serve(settings: Settings, *, worker: bool) -> int:
    gc.disable()  # until everything is built
    container = Container(settings=settings)
    configure_logs(container)
    for warning in (*unknown_variables(), *missing_directories(settings)):
        logger.warning(warning)
    with listening(
        settings.host, settings.port, change="Choose others with --host and --port, or DRAGOMAN_HOST and DRAGOMAN_PORT."
    ) as listener:
        first_start = not container.home().admin_key_path.exists()
        async with running(container, worker=worker):
            server = HttpServer(
                create_app(container), limits=inbound_limits(settings), on_stop=partial(_stop, container)
            )
            host, port = listener.getsockname()[:2]
            url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
            container.public_address().listening_on(url)
            # A reader of the announcement may send a signal at once: the handler must be installed.
            finish = partial(finish_runs, container) if worker else partial(_refuse_work, container)
            draining = drained_by_signal(finish, then=server.stop)
            with server.stopped_by_signals(), draining, container.home().announced(url), watching(container):
                await announce(container, url, first_start=first_start)
                _settle_memory()
                await server.serve(sockets=[listener])
    return 0


async def _refuse_work(container: Container) -> None:
    container.readiness().stop()


def inbound_limits(settings: Settings) -> InboundLimits:
    """The limits from the settings, with fewer connections if the process may open fewer files."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    connections = min(settings.max_connections, files * 3 // 4) if files > 0 else settings.max_connections
    if connections < settings.max_connections:
        logger.warning(
            "fewer connections than configured; the process may open too few files", extra={"connections": connections}
        )
    return InboundLimits(
        connections=connections,
        per_address=settings.max_connections_per_address,
        shared=settings.networks_of_shared_addresses,
        timeout_s=settings.request_timeout_s,
        body_bytes=settings.work_bytes,
    )


def _stop(container: Container) -> None:
    """Refuse new work and end streams and waits."""
    container.readiness().stop()
    container.subscribers().end()


def _settle_memory() -> None:
    """Exempt objects of the start from garbage collection, and collect less often: reference counts
    free most of what requests allocate. The start itself leaves some 1,500 objects of 200,000 to
    collect, which would take a tenth of it."""
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)
    gc.enable()

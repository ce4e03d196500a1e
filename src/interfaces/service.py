"""The running service: the HTTP application in front of the system, embedded in a process or listening on a port."""

import asyncio
import gc
import logging
import resource
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, cast

import uvicorn
import uvloop
from litestar import Litestar
from litestar.types import ASGIApp

from domain.errors import ErrorKind, ServiceError
from infrastructure.container import Container
from infrastructure.lifecycle import configure_logs, running
from infrastructure.settings import Settings, unknown_variables
from interfaces.asgi import create_app
from interfaces.console.sessions import ConsoleSessions
from interfaces.http.access_log import RequestLog
from interfaces.http.metrics import Monitoring
from interfaces.http.use_cases import UseCases
from interfaces.inbound import IDLE_S, Inbound, InboundLimits

logger = logging.getLogger(__name__)

_COLLECT_AFTER = (10_000, 20, 50)

CLOSE_CONNECTIONS_S = 2
"""How long open connections (streams, waits) are given when the service stops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedService:
    """The system in this process, reached through `app` (ASGI). `api_key` is the admin key of HOME."""

    app: Litestar
    api_key: str


def build_app(container: Container) -> Litestar:
    """The application over the container's use cases; each field of the bundle is a provider of that name."""
    use_cases = UseCases(**{field.name: getattr(container, field.name)() for field in fields(UseCases)})
    return create_app(
        use_cases,
        readiness=container.readiness(),
        request_log=RequestLog(
            meter=container.meters(),
            log_context=container.log_context(),
            slow_ms=container.settings().log_slow_ms,
        ),
        monitoring=monitoring(container),
        sessions=ConsoleSessions(
            authenticate=use_cases.authenticate,
            box=container.secret_box(),
            clock=container.clock(),
            address=container.public_address(),
        ),
        clock=container.clock(),
        version=container.app_version(),
    )


def monitoring(container: Container) -> Monitoring:
    """What answers /metrics in this process."""
    token = container.settings().metrics_token
    return Monitoring(page=container.metrics_page(), token=None if token is None else token.get_secret_value())


@asynccontextmanager
async def embedded(settings: Settings, *, worker: bool = True) -> AsyncIterator[EmbeddedService]:
    """The system without a port, for commands that find no running service. Raises ServiceError."""
    container = Container(settings=settings)
    configure_logs(container, only_trouble=True)
    async with running(container, worker=worker):
        key = container.home().read_admin_key()
        if key is None:
            raise ServiceError(
                "admin_key_missing",
                ErrorKind.UNAUTHENTICATED,
                f"{container.home().admin_key_path} is missing. Set DRAGOMAN_API_KEY to a key of this installation.",
            )
        yield EmbeddedService(app=build_app(container), api_key=key)


def serve(settings: Settings, *, worker: bool = True) -> int:
    """Run the service until it is told to stop; returns the exit status. Raises ServiceError when it cannot start."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(settings, worker=worker))


async def _serve(settings: Settings, *, worker: bool) -> int:
    gc.disable()  # until all is made
    container = Container(settings=settings)
    configure_logs(container)
    for warning in unknown_variables():
        logger.warning(warning)
    with listening(settings.host, settings.port, change="Set DRAGOMAN_HOST and DRAGOMAN_PORT.") as listener:
        first_start = not container.home().admin_key_path.exists()
        async with running(container, worker=worker):
            server = HttpServer(
                build_app(container), limits=inbound_limits(settings), on_stop=partial(_stop, container)
            )
            host, port = listener.getsockname()[:2]
            url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
            container.public_address().listening_on(url)
            # Whoever reads the announcement may send a signal at once: it must find its handler.
            with server.stopped_by_signals(), container.home().announced(url):
                _announce(container, url, first_start=first_start)
                _settle_memory()
                await server.serve(sockets=[listener])
    return 0


def inbound_limits(settings: Settings) -> InboundLimits:
    """The limits that the settings name, with fewer connections where the process may not open as many files."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    connections = min(settings.max_connections, files * 3 // 4) if files > 0 else settings.max_connections
    if connections < settings.max_connections:
        logger.warning(
            "fewer connections than set: the process may open too few files", extra={"connections": connections}
        )
    return InboundLimits(
        connections=connections,
        per_address=settings.max_connections_per_address,
        shared=settings.networks_of_shared_addresses,
        timeout_s=settings.request_timeout_s,
    )


def _stop(container: Container) -> None:
    """Say that no more work is taken, and end what would be waited for."""
    container.readiness().stop()
    container.followers().end()


def _settle_memory() -> None:
    """What the start has made stays: collections need not look at it again and again. They come less often, too, as hardly
    anything here is freed by them: what calls leave is freed by its count."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)
    gc.enable()


@contextmanager
def listening(host: str, port: int, *, change: str) -> Iterator[socket.socket]:
    """A socket to answer on. Raises UNAVAILABLE `address_unusable`, which says what to `change`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as exc:
        raise ServiceError(
            "address_unusable",
            ErrorKind.UNAVAILABLE,
            f"Cannot listen on {host} port {port}: {exc.strerror or 'the address is not usable'}. {change}",
        ) from exc
    with listener:
        yield listener


class HttpServer(uvicorn.Server):
    """uvicorn inside our own lifecycle: our signals, our shutdown order. `on_stop` ends streams that would be waited for."""

    def __init__(
        self, app: Litestar, *, limits: InboundLimits | None = None, on_stop: Callable[[], None] = lambda: None
    ) -> None:
        self._on_stop = on_stop
        inbound = Inbound(cast(ASGIApp, app), limits or InboundLimits())
        super().__init__(
            uvicorn.Config(
                cast(Any, inbound),
                loop="none",
                http=cast("type[asyncio.Protocol]", inbound.protocol),  # a factory is called like the class
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,  # nothing here asks for a client's address
                timeout_graceful_shutdown=CLOSE_CONNECTIONS_S,
                timeout_keep_alive=IDLE_S,
            )
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are handled by `stopped_by_signals`."""
        yield

    @contextmanager
    def stopped_by_signals(self) -> Iterator[None]:
        """While inside, SIGTERM or SIGINT ends `serve`, also one that has not begun; a second one stops without waiting for
        connections."""
        loop = asyncio.get_running_loop()

        def stop() -> None:
            if not self.should_exit:
                logger.info("stopping: runs in progress may finish the step in hand; a second signal stops at once")
            self.force_exit = self.should_exit
            self.should_exit = True
            self._on_stop()

        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, stop)
        try:
            yield
        finally:
            for name in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(name)


def _announce(container: Container, url: str, *, first_start: bool) -> None:
    """Tell whoever started us. The first key is shown once, and only to a terminal."""
    home = container.home()
    lines = [f"Dragoman is ready on {url}", f"API key: {home.admin_key_path}"]
    key = home.read_admin_key()
    if key is None:
        lines[1] = f"API key: {home.admin_key_path} is missing; use a key of this installation"
    elif first_start and sys.stdout.isatty():
        lines[1] = f"API key (also in {home.admin_key_path}): {key}"
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()

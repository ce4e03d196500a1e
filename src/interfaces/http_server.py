"""Runs uvicorn on a port for the service and for workers: socket, signals, order of shutdown."""

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import uvicorn
from litestar import Litestar
from litestar.types import ASGIApp

from domain.errors import ErrorKind, ServiceError
from interfaces.inbound import IDLE_S, Inbound, InboundLimits

logger = logging.getLogger(__name__)

CLOSE_CONNECTIONS_S = 2
"""Grace period of open connections (streams, waits) when the service stops."""


@contextmanager
def listening(host: str, port: int, *, change: str) -> Iterator[socket.socket]:
    """A listening socket. Raises UNAVAILABLE `address_unusable`, whose message names what to
    `change`."""
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
    """uvicorn with our signal handling and shutdown order. `on_stop` ends streams before the
    wait."""

    def __init__(
        self, app: Litestar, *, limits: InboundLimits | None = None, on_stop: Callable[[], None] = lambda: None
    ) -> None:
        self._on_stop = on_stop
        self._inbound = inbound = Inbound(cast(ASGIApp, app), limits or InboundLimits())
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
                proxy_headers=False,  # no code reads a client's address
                timeout_graceful_shutdown=CLOSE_CONNECTIONS_S,
                timeout_keep_alive=IDLE_S,
            )
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Requests that do not end in time are answered by the inbound side."""
        self._inbound.is_stopping = True
        await super().shutdown(sockets)

    def stop(self) -> None:
        """End `serve`. The second time, without waiting for connections."""
        if not self.should_exit:
            logger.info("stopping; runs in progress may finish their current step; a second signal stops at once")
        self.force_exit = self.should_exit
        self.should_exit = True
        self._on_stop()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are handled by `stopped_by_signals`."""
        yield

    @contextmanager
    def stopped_by_signals(self) -> Iterator[None]:
        """Within this context SIGTERM or SIGINT ends `serve`, even before it starts. A second
        signal stops without waiting for connections."""
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, self.stop)
        try:
            yield
        finally:
            for name in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(name)

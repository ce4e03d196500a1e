"""The access log: one record per request with method, path template, status, duration and organization; and their metrics.

Neither bodies nor headers nor raw paths are logged: they may hold secrets.
"""

import logging
import time

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from application.metrics.ports import RequestMeter
from domain.identity.api_key import Principal

logger = logging.getLogger(__name__)


def with_access_log(app: ASGIApp, meter: RequestMeter) -> ASGIApp:
    """`app`, logging and measuring each HTTP request when it is over (a stream: when it has ended)."""

    async def logged(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await app(scope, receive, send)
            return
        started = time.perf_counter()
        status: int | None = None

        async def noting_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await app(scope, receive, noting_status)
        finally:
            seconds = time.perf_counter() - started
            path = scope.get("path_template") or ""
            meter.request(method=scope["method"], path=path, status=status, seconds=seconds)
            if logger.isEnabledFor(logging.INFO):
                principal = scope.get("auth")
                logger.info(
                    "request",
                    extra={
                        "method": scope["method"],
                        "path": path or None,
                        "status": status,
                        "duration_ms": round(seconds * 1000, 2),
                        "organization_id": principal.organization_id if isinstance(principal, Principal) else None,
                    },
                )

    return logged

"""The request log: a bounded number of lines for failed or slow requests; others are logged at
debug. Bodies, headers and raw paths are never logged: they may contain secrets."""

import itertools
import logging
import secrets
import time
from collections.abc import Iterable

from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

from application.metrics.ports import RequestMeter
from application.system.ports import LogContext
from interfaces.http.line_budget import LineBudget
from interfaces.http.problems import STATUS_OF_KIND
from interfaces.request_notes import RequestNotes, put_notes, request_fields

logger = logging.getLogger(__name__)

DEFAULT_SLOW_MS = 1_000
LINES, WINDOW_S = 20, 10.0
"""Most lines per status, and for slow requests, in one window of seconds; more are only counted."""

_SLOW = "slow"
_READINESS = "/health/ready"
_WAIT = "/wait"
_WATCHED = frozenset({401, 403, 429})
_MESSAGES = {
    logging.DEBUG: "request",
    logging.INFO: "request refused",
    logging.WARNING: "request refused",
    logging.ERROR: "request failed",
}


class RequestLog:
    """Rules:
    - 5xx is an error. 401, 403, 429 and a readiness probe's 503 are warnings; other 4xx are info.
    - A response after `slow_ms` or more is info, except for waits and streams.
    - Lines per status and for slow requests are bounded; one line reports how many were suppressed.
    - All other requests are debug. The meter counts every request.
    """

    def __init__(
        self,
        *,
        meter: RequestMeter,
        log_context: LogContext,
        slow_ms: int = DEFAULT_SLOW_MS,
        lines: int = LINES,
        window_s: float = WINDOW_S,
    ) -> None:
        self._meter = meter
        self._log_context = log_context
        self._slow_s = slow_ms / 1000
        self._window_s = window_s
        self._budget = LineBudget(lines=lines, window_s=window_s, report=self._suppressed)
        # Unique among processes; the number identifies the request.
        self._prefix = f"req_{secrets.token_hex(5)}"
        self._numbers = itertools.count(1)

    def around(self, app: ASGIApp) -> ASGIApp:
        """`app`, logged and measured: each request when it ends, a stream when the stream ends."""

        async def logged(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != ScopeType.HTTP:
                await app(scope, receive, send)
                return
            notes = RequestNotes(f"{self._prefix}{next(self._numbers):06x}")
            put_notes(scope, notes)
            head: Message | None = None
            is_broken = False
            started = time.perf_counter()

            async def noting_head(message: Message) -> None:
                nonlocal head
                if message["type"] == "http.response.start":
                    head = message
                await send(message)

            with self._log_context(request_id=notes.request_id):
                try:
                    await app(scope, receive, noting_head)
                except Exception:
                    is_broken = True
                    raise
                finally:
                    self._over(scope, notes, head, time.perf_counter() - started, is_broken=is_broken)

        return logged

    def _over(
        self, scope: HTTPScope, notes: RequestNotes, head: Message | None, seconds: float, *, is_broken: bool
    ) -> None:
        status: int | None = None if head is None or head["type"] != "http.response.start" else head["status"]
        path = scope.get("path_template") or ""
        self._meter.request(method=scope["method"], path=path, status=status, seconds=seconds)
        said = 500 if is_broken else _said(notes, status)
        level, kind = _level(said, path), str(said)
        if level == logging.DEBUG and seconds >= self._slow_s and not _lasts_on_purpose(notes, head, path):
            level, kind = logging.INFO, _SLOW
        if notes.is_logged:
            level = logging.DEBUG
        if not logger.isEnabledFor(level):
            return
        message = "slow request" if kind == _SLOW else _MESSAGES[level]
        if level > logging.DEBUG and not self._budget.admits(kind):
            level = logging.DEBUG
        duration_ms = round(seconds * 1000, 2)
        logger.log(level, message, extra={**request_fields(scope), "status": status, "duration_ms": duration_ms})

    def _suppressed(self, kind: str, count: int) -> None:
        logger.warning(
            "request lines suppressed",
            extra={"kind": kind, "suppressed": count, "window_s": self._window_s},
        )


def _said(notes: RequestNotes, status: int | None) -> int:
    """The status of the response; for a refusal its HTTP status, even if JSON-RPC sent another."""
    return status or 0 if notes.refused_by is None else STATUS_OF_KIND[notes.refused_by]


def _level(status: int, path: str) -> int:
    if status >= 500:
        return logging.WARNING if status == 503 and path == _READINESS else logging.ERROR
    if status >= 400:
        return logging.WARNING if status in _WATCHED else logging.INFO
    return logging.DEBUG


def _lasts_on_purpose(notes: RequestNotes, head: Message | None, path: str) -> bool:
    if notes.lasts_on_purpose or path.endswith(_WAIT):
        return True
    # Without a head the client left before its answer.
    return head is None or head["type"] != "http.response.start" or _is_stream(head["headers"])


def _is_stream(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    return any(name.lower() == b"content-type" and value.startswith(b"text/event-stream") for name, value in headers)

"""Log lines: the standard library's records, formatted by structlog, with the ids of the run and without secrets."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from infrastructure.redaction import Redactor

_NOISY = {
    "aiosqlite": logging.WARNING,
    "alembic": logging.WARNING,
    "asyncio": logging.WARNING,
    "httpcore": logging.WARNING,
    "httpcore2": logging.WARNING,
    "httpx": logging.WARNING,
    "httpx2": logging.WARNING,
    "langfuse": logging.ERROR,
    "mcp": logging.WARNING,
    # The trace exporter says in one line of its own that traces are lost; each failed attempt would be a stack trace.
    "opentelemetry": logging.CRITICAL,
    "procrastinate": logging.WARNING,
    "psycopg.pool": logging.ERROR,
    "sqlalchemy": logging.WARNING,
    "urllib3": logging.ERROR,
    "uvicorn.access": logging.WARNING,
    "uvicorn.error": logging.WARNING,
}


def configure_logging(
    *,
    level: Literal["debug", "info", "warning", "error"],
    form: Literal["console", "json"],
    redactor: Redactor,
    stream: TextIO | None = None,
) -> None:
    """Make the standard library's loggers write such lines to `stream` (standard error), whoever set them up before.

    `extra=` fields and the ids of `log_context` become fields of the line; secrets are replaced in all of it.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_record_processors(),
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                _Redaction(redactor),
                _renderer(form, stream or sys.stderr),
            ],
        )
    )
    root = logging.getLogger()
    for former in root.handlers[:]:
        root.removeHandler(former)
    root.addHandler(handler)
    root.setLevel(level.upper())
    for name, least in _NOISY.items():
        logging.getLogger(name).setLevel(max(least, root.level))


@contextmanager
def log_context(**ids: str) -> Iterator[None]:
    """Every line logged inside (in this task and those it starts) carries these ids: run_id, thread_id, …"""
    with structlog.contextvars.bound_contextvars(**ids):
        yield


class _Redaction:
    """The last processor before the line is rendered: nothing is added after it."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def __call__(self, logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        return {name: self._redactor.redact_value(value, name) for name, value in event.items()}


def _record_processors() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]


def _renderer(form: Literal["console", "json"], stream: TextIO) -> Processor:
    if form == "json":
        return structlog.processors.JSONRenderer(ensure_ascii=False)
    return structlog.dev.ConsoleRenderer(
        colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback, pad_event_to=0
    )

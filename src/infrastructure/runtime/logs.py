"""Log lines: standard records with the ids of their run or request, without secrets.

JSON lines are encoded by msgspec from the record; structlog formats lines for people.
"""

import json
import logging
import sys
from contextlib import AbstractContextManager
from contextvars import ContextVar, Token
from datetime import UTC, datetime
from types import MappingProxyType, TracebackType
from typing import Literal, TextIO

import msgspec
import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from infrastructure.secrets.redaction import Redactor

_NO_IDS: MappingProxyType[str, str] = MappingProxyType({})
_ids: ContextVar[dict[str, str] | MappingProxyType[str, str]] = ContextVar("log_ids", default=_NO_IDS)
_ATTRIBUTES = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"})
"""Attributes of every record; the others are `extra=` fields."""

_NOISY = {
    "aiosqlite": logging.WARNING,
    "alembic": logging.WARNING,
    "asyncio": logging.WARNING,
    # At debug it logs headers with keys.
    "botocore": logging.WARNING,
    "google": logging.WARNING,
    "google_genai": logging.WARNING,
    # The session of the MCP SDK: an invalid notification would log a stack trace, as often as a
    # server likes.
    "client": logging.ERROR,
    "httpcore": logging.WARNING,
    "httpcore2": logging.WARNING,
    "httpx": logging.WARNING,
    "httpx2": logging.WARNING,
    "langfuse": logging.ERROR,
    "mcp": logging.WARNING,
    # The trace exporter logs one line about lost traces; each failed attempt would log a stack
    # trace.
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
    """Let the standard library's loggers write to `stream` (standard error), replacing earlier
    handlers.

    `extra=` fields and the ids of `log_context` become fields of the line. Secrets are replaced in
    all of it.
    """
    output = stream or sys.stderr
    handler = logging.StreamHandler(output)
    handler.setFormatter(JsonLines(redactor) if form == "json" else _console_lines(redactor, output))
    root = logging.getLogger()
    for former in root.handlers[:]:
        root.removeHandler(former)
    root.addHandler(handler)
    root.setLevel(level.upper())
    for name, least in _NOISY.items():
        logging.getLogger(name).setLevel(max(least, root.level))


def claim_loggers(*names: str) -> None:
    """Undo a library's changes to these loggers at import: their lines go only to the root's
    handlers, at the levels set here."""
    for name in names:
        logger = logging.getLogger(name)
        for handler in logger.handlers[:]:
            logger.removeHandler(handler)
        logger.setLevel(max(_NOISY.get(name, logging.NOTSET), logging.getLogger().level))


def log_context(**ids: str) -> AbstractContextManager[None]:
    """Add these ids (run_id, thread_id, …) to every line logged inside, in this task and those it
    starts.

    Only the innermost context applies. Tasks that outlive the context lose its ids.
    """
    return _Context(ids)


class _Context(AbstractContextManager[None]):
    """A class, because a generator would cost several times as much per request."""

    __slots__ = ("_ids", "_token")

    def __init__(self, ids: dict[str, str]) -> None:
        self._ids = ids
        self._token: Token[dict[str, str] | MappingProxyType[str, str]] | None = None

    def __enter__(self) -> None:
        self._token = _ids.set(self._ids)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._token is not None
        _ids.reset(self._token)
        self._ids.clear()


class JsonLines(logging.Formatter):
    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        """The line. Standard names take precedence over equal names of `extra=`, and these over ids
        of the context."""
        redactor = self._redactor
        line: dict[str, object] = {
            "event": redactor.redact(record.getMessage()),
            "level": record.levelname.lower(),
            "logger": record.name,
            "timestamp": datetime.fromtimestamp(record.created, UTC),
        }
        fields = fields_of(record)
        if record.exc_info and record.exc_info[0] is not None:
            fields["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            fields["stack"] = self.formatStack(record.stack_info)
        for name, value in fields.items():
            if name not in line:
                line[name] = redactor.redact_value(value, name)
        return _encoded(line)


def _encoded(line: dict[str, object]) -> str:
    try:
        return msgspec.json.encode(line).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        # Lone surrogates or keys that are not text: rare, but the line must not be lost.
        return json.dumps(line, default=str, skipkeys=True)


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """The ids of `log_context` and the fields of `extra=`, which take precedence."""
    return {**_ids.get(), **_extra(record)}


def _extra(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in _ATTRIBUTES}


def _console_lines(redactor: Redactor, stream: TextIO) -> logging.Formatter:
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=_record_processors(),
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            _Redaction(redactor),
            structlog.dev.ConsoleRenderer(
                colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback, pad_event_to=0
            ),
        ],
    )


class _Redaction:
    """The last processor before rendering: nothing is added after it."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def __call__(self, logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        return {name: self._redactor.redact_value(value, name) for name, value in event.items()}


def _record_processors() -> list[Processor]:
    return [
        _add_ids,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]


def _add_ids(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    return {**_ids.get(), **event}

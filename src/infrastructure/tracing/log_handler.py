"""Log lines for a collector, beside those on standard error: queued, redacted and sent by another thread."""

import logging
from dataclasses import dataclass, field
from functools import partial

from infrastructure.runtime.logs import fields_of
from infrastructure.secrets.redaction import Redactor
from infrastructure.tracing.observation_sender import BackgroundSender

_NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """A line with its fields: ids of the run or request, and those of `extra=`. `at` is in nanoseconds since 1970."""

    at: int
    level: int
    logger: str
    text: str
    fields: dict[str, object] = field(default_factory=dict)


class CollectorLogHandler(logging.Handler):
    """Rules:
    - A line costs its caller an entry in a bounded queue. A collector that does not answer costs nothing else.
    - Secrets are removed as in other log lines.
    """

    def __init__(self, sender: BackgroundSender[LogLine], *, redactor: Redactor) -> None:
        super().__init__()
        self._sender = sender
        self._redactor = redactor
        self._formatter = logging.Formatter()

    def emit(self, record: logging.LogRecord) -> None:
        """The text is made now: its arguments may change."""
        fields = fields_of(record)
        if record.exc_info and record.exc_info[0] is not None:
            fields["exception.type"] = record.exc_info[0].__qualname__
            fields["exception.stacktrace"] = self._formatter.formatException(record.exc_info)
        line = LogLine(
            at=int(record.created * _NANOSECONDS),
            level=record.levelno,
            logger=record.name,
            text=record.getMessage(),
            fields=fields,
        )
        self._sender.submit(partial(self._redacted, line))

    async def finish(self) -> None:
        """Send what is queued, within 2.5 seconds."""
        await self._sender.close()

    def _redacted(self, line: LogLine) -> LogLine:
        fields = {name: self._redactor.redact_value(value, name) for name, value in line.fields.items()}
        return LogLine(
            at=line.at, level=line.level, logger=line.logger, text=self._redactor.redact(line.text), fields=fields
        )

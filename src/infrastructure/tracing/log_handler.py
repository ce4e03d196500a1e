"""Log lines for a collector, beside those on standard error: queued, redacted and sent by another
thread."""

import json
import logging
from dataclasses import dataclass, field
from functools import partial

from infrastructure.runtime.logs import fields_of
from infrastructure.secrets.redaction import Redactor
from infrastructure.tracing.observation_sender import BackgroundSender

MAX_TEXT = 16 * 1024
"""Most characters of a line's text, and of each of its fields."""
_NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """A line with its fields: ids of the run or request, and those of `extra=`. `at` is in
    nanoseconds since 1970."""

    at: int
    level: int
    logger: str
    text: str
    fields: dict[str, object] = field(default_factory=dict)


class CollectorLogHandler(logging.Handler):
    """Rules:
    - A line costs its caller an entry in a bounded queue. A collector that does not answer costs
      nothing else.
    - A text is cut at `MAX_TEXT`. A line that cannot be made is reported as the standard library
      does.
    - Secrets are removed as in other log lines.
    """

    def __init__(self, sender: BackgroundSender[LogLine], *, redactor: Redactor) -> None:
        super().__init__()
        self._sender = sender
        self._redactor = redactor
        self._formatter = logging.Formatter()

    def emit(self, record: logging.LogRecord) -> None:
        """The text is made now: its arguments may change."""
        try:
            self._sender.submit(partial(self._redacted, self._line(record)))
        except Exception:  # noqa: BLE001 - as handlers of the standard library do
            self.handleError(record)

    async def finish(self) -> None:
        """Send what is queued, within 2.5 seconds."""
        await self._sender.close()

    def _line(self, record: logging.LogRecord) -> LogLine:
        fields = fields_of(record)
        if record.exc_info and record.exc_info[0] is not None:
            fields["exception.type"] = record.exc_info[0].__qualname__
            fields["exception.stacktrace"] = self._formatter.formatException(record.exc_info)
        return LogLine(
            at=int(record.created * _NANOSECONDS),
            level=record.levelno,
            logger=record.name,
            text=self._short(record.getMessage()),
            fields={name: self._bounded(value, name) for name, value in fields.items()},
        )

    def _bounded(self, value: object, name: str) -> object:
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, str):
            return self._short(value, name)
        redacted = self._redactor.redact_value(value, name)
        if isinstance(redacted, str):
            return self._short(redacted)
        return self._short(json.dumps(redacted, ensure_ascii=False, skipkeys=True, default=str))

    def _short(self, text: str, name: str = "") -> str:
        """Secrets are removed before the cut, which could leave the beginning of one."""
        if len(text) <= MAX_TEXT:
            return text
        redacted = str(self._redactor.redact_value(text, name))
        left = len(redacted) - MAX_TEXT
        return redacted if left <= 0 else f"{redacted[:MAX_TEXT]}… [{left} characters more]"

    def _redacted(self, line: LogLine) -> LogLine:
        fields = {name: self._redactor.redact_value(value, name) for name, value in line.fields.items()}
        return LogLine(
            at=line.at, level=line.level, logger=line.logger, text=self._redactor.redact(line.text), fields=fields
        )

"""Exports log lines over OTLP. Heavy to import: on the sending thread."""

import logging
from collections.abc import Mapping, Sequence

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.util.types import AttributeValue

from infrastructure.tracing.log_handler import LogLine
from infrastructure.tracing.resource import process_resource
from infrastructure.tracing.spans import as_json, cut, encodable

_SEVERITIES = (
    (logging.CRITICAL, SeverityNumber.FATAL),
    (logging.ERROR, SeverityNumber.ERROR),
    (logging.WARNING, SeverityNumber.WARN),
    (logging.INFO, SeverityNumber.INFO),
)


class OtelLogSink:
    """Sends lines to a collector. A request takes at most `timeout_s`, including retries."""

    def __init__(self, *, endpoint: str, headers: Mapping[str, str], timeout_s: float = 5.0) -> None:
        self._exporter = OTLPLogExporter(
            endpoint=f"{endpoint.rstrip('/')}/v1/logs",
            headers=dict(headers),
            timeout=timeout_s,
            compression=Compression.Gzip,
        )

    def send(self, lines: Sequence[LogLine]) -> bool:
        return self._exporter.export([_record(line) for line in lines]) is LogRecordExportResult.SUCCESS

    def close(self) -> None:
        self._exporter.shutdown()  # type: ignore[no-untyped-call]


def _record(line: LogLine) -> ReadableLogRecord:
    severity = next((number for level, number in _SEVERITIES if line.level >= level), SeverityNumber.DEBUG)
    record = LogRecord(
        timestamp=line.at,
        observed_timestamp=line.at,
        severity_number=severity,
        severity_text=logging.getLevelName(line.level),
        body=encodable(cut(line.text)),
        attributes={name: _attribute(value) for name, value in line.fields.items() if value is not None},
    )
    return ReadableLogRecord(
        log_record=record, resource=process_resource(), instrumentation_scope=InstrumentationScope(line.logger)
    )


def _attribute(value: object) -> AttributeValue:
    if isinstance(value, bool | int | float):
        return value
    return encodable(cut(value if isinstance(value, str) else as_json(value)))

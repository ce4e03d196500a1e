"""The OpenTelemetry adapter of the tracing ports."""

from collections.abc import Mapping
from importlib import import_module
from typing import Protocol, cast

from infrastructure.secrets.redaction import Redactor
from infrastructure.tracing.observation_sender import ObservationSender, ObservationSink
from infrastructure.tracing.sending import OpenSender, SendingTracer

_SINK = "infrastructure.tracing.otel_sink"


class OtelTracer(SendingTracer):
    """Sends traces to a collector over OTLP. `endpoint` is its base URL; `content` as for
    Langfuse."""

    def __init__(
        self,
        *,
        endpoint: str,
        headers: Mapping[str, str],
        content: bool,
        redactor: Redactor,
        timeout_s: float = 5.0,
        sender: OpenSender = ObservationSender,
    ) -> None:
        def connect() -> ObservationSink:
            # Not imported above: loading the SDK takes long, which belongs to the thread, not to
            # the start.
            return cast(_SinkModule, import_module(_SINK)).OtelSink(
                endpoint=endpoint, headers=headers, content=content, redactor=redactor, timeout_s=timeout_s
            )

        super().__init__(connect, sender=sender)


class _OpenSink(Protocol):
    def __call__(
        self, *, endpoint: str, headers: Mapping[str, str], content: bool, redactor: Redactor, timeout_s: float
    ) -> ObservationSink: ...


class _SinkModule(Protocol):
    OtelSink: _OpenSink

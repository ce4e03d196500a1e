"""Builds what sends traces, log lines and metrics to collectors."""

from infrastructure.metrics.instruments import Instruments
from infrastructure.metrics.metrics_export import Families, MetricsExport
from infrastructure.metrics.page import PrometheusPage
from infrastructure.secrets.redaction import Redactor
from infrastructure.settings import Settings
from infrastructure.tracing.addresses import BackendTraceAddresses
from infrastructure.tracing.all_tracers import AllTracers
from infrastructure.tracing.closable import ClosableTracer
from infrastructure.tracing.log_handler import CollectorLogHandler, LogLine
from infrastructure.tracing.null import NullTracer
from infrastructure.tracing.observation_sender import BackgroundSender, ObservationSink, Sink
from infrastructure.tracing.sending import SendingTracer


def tracer(settings: Settings, redactor: Redactor) -> ClosableTracer:
    tracers = [each for each in (_langfuse(settings, redactor), _otel(settings, redactor)) if each is not None]
    return AllTracers(*tracers) if tracers else NullTracer()


def trace_addresses(settings: Settings) -> BackendTraceAddresses:
    langfuse = settings.traces_to_langfuse
    return BackendTraceAddresses(
        enabled=langfuse or settings.traces_endpoint is not None, web=settings.langfuse_url if langfuse else None
    )


def _langfuse(settings: Settings, redactor: Redactor) -> ClosableTracer | None:
    public_key, secret_key = settings.langfuse_public_key, settings.langfuse_secret_key
    if public_key is None or secret_key is None:
        return None

    def connect() -> ObservationSink:  # in the sending thread: loading the SDK takes a second
        from infrastructure.tracing.langfuse_sink import LangfuseSink

        return LangfuseSink(
            public_key=public_key,
            secret_key=secret_key.get_secret_value(),
            base_url=settings.langfuse_url,
            content=settings.trace_content == "on",
            redactor=redactor,
            foreign_headers=tuple(settings.otel_header_values),
        )

    return SendingTracer(connect)


def _otel(settings: Settings, redactor: Redactor) -> ClosableTracer | None:
    endpoint = settings.traces_endpoint
    if endpoint is None:
        return None

    def connect() -> ObservationSink:  # in the sending thread, as above
        from infrastructure.tracing.otel_sink import OtelSink

        return OtelSink(
            endpoint=endpoint,
            headers=settings.otel_header_values,
            content=settings.trace_content == "on",
            redactor=redactor,
        )

    return SendingTracer(connect)


def collector_logs(settings: Settings, redactor: Redactor) -> CollectorLogHandler | None:
    """None if log lines go to standard error only."""
    endpoint = settings.logs_endpoint
    if endpoint is None:
        return None

    def connect() -> Sink[LogLine]:  # in the sending thread, as above
        from infrastructure.tracing.otel_logs import OtelLogSink

        return OtelLogSink(endpoint=endpoint, headers=settings.otel_header_values)

    return CollectorLogHandler(BackgroundSender(connect, what="logs"), redactor=redactor)


def metrics_export(settings: Settings, *, page: PrometheusPage, instruments: Instruments) -> MetricsExport | None:
    """None if metrics are on their page only."""
    endpoint = settings.metrics_endpoint
    if endpoint is None:
        return None

    def connect() -> Sink[Families]:  # in the sending thread, as above
        from infrastructure.metrics.otel_metrics import OtelMetricSink

        return OtelMetricSink(endpoint=endpoint, headers=settings.otel_header_values)

    sender: BackgroundSender[Families] = BackgroundSender(connect, what="metrics", queue_size=2)
    interval_s = settings.otel_metrics_interval_ms / 1000
    return MetricsExport(page=page, instruments=instruments, sender=sender, interval_s=interval_s)

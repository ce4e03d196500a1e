"""Builds the configured tracers."""

from infrastructure.secrets.redaction import Redactor
from infrastructure.settings import Settings
from infrastructure.tracing.addresses import BackendTraceAddresses
from infrastructure.tracing.all_tracers import AllTracers
from infrastructure.tracing.closable import ClosableTracer
from infrastructure.tracing.null import NullTracer
from infrastructure.tracing.observation_sender import ObservationSink
from infrastructure.tracing.sending import SendingTracer


def tracer(settings: Settings, redactor: Redactor) -> ClosableTracer:
    tracers = [each for each in (_langfuse(settings, redactor), _otel(settings, redactor)) if each is not None]
    return AllTracers(*tracers) if tracers else NullTracer()


def trace_addresses(settings: Settings) -> BackendTraceAddresses:
    langfuse = settings.traces_to_langfuse
    return BackendTraceAddresses(
        enabled=langfuse or settings.otel_endpoint is not None, web=settings.langfuse_url if langfuse else None
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
    endpoint = settings.otel_endpoint
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

"""Builds the tracer that the settings ask for."""

from infrastructure.redaction import Redactor
from infrastructure.settings import Settings
from infrastructure.tracing.closable import ClosableTracer
from infrastructure.tracing.null import NullTracer


def tracer(settings: Settings, redactor: Redactor) -> ClosableTracer:
    if settings.langfuse_public_key is None or settings.langfuse_secret_key is None:
        return NullTracer()
    from infrastructure.tracing.langfuse import LangfuseTracer

    return LangfuseTracer(
        public_key=settings.langfuse_public_key,
        secret_key=settings.langfuse_secret_key.get_secret_value(),
        base_url=settings.langfuse_url,
        content=settings.trace_content == "on",
        redactor=redactor,
    )

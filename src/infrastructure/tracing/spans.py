"""Finished OpenTelemetry spans with derived ids, created from observations, with bounded content.

Heavy to import: for sinks, on the sending thread.
"""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, SynchronousMultiSpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)
from opentelemetry.util.types import AttributeValue

from application.models.ports import ModelRequest
from domain.json_value import JsonObject, JsonValue
from infrastructure.secrets.redaction import Redactor
from infrastructure.tracing.observations import Observation, newest_first
from infrastructure.tracing.resource import process_resource

MAX_CONTENT = 256 * 1024
"""Most characters of one attribute."""
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


class SpanMaker:
    """Creates spans with its own tracer provider. `processors` gets what others add to that
    provider."""

    def __init__(
        self,
        scope: str,
        scope_version: str,
        *,
        attributes: Mapping[str, AttributeValue] | None = None,
        processors: SynchronousMultiSpanProcessor | None = None,
    ) -> None:
        self._ids = _DerivedIds()
        self.provider = TracerProvider(
            sampler=ALWAYS_ON,  # ignores settings in the environment for other tracers
            resource=process_resource(),
            active_span_processor=processors,
            id_generator=self._ids,
            shutdown_on_exit=False,
        )
        self._tracer = self.provider.get_tracer(scope, scope_version, attributes=attributes)

    def make(
        self,
        observation: Observation,
        attributes: Mapping[str, AttributeValue],
        *,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> ReadableSpan:
        span = self.start(observation, attributes, kind=kind)
        if observation.error is not None:
            span.set_status(StatusCode.ERROR, observation.error)
        span.end(end_time(observation))
        return finished(span)

    def start(
        self,
        observation: Observation,
        attributes: Mapping[str, AttributeValue],
        *,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> Span:
        """The started span with the ids of the observation; the caller ends it."""
        self._ids.next_trace_id, self._ids.next_span_id = observation.trace_id, observation.span_id
        return self._tracer.start_span(
            observation.name,
            context=_parent(observation),
            kind=kind,
            start_time=_nanoseconds(observation.started_at),
            attributes=attributes,
        )


def finished(span: Span) -> ReadableSpan:
    """The ended span, for an exporter. Raises TypeError if OpenTelemetry is disabled."""
    if not isinstance(span, ReadableSpan):
        raise TypeError("OpenTelemetry is disabled in this process (OTEL_SDK_DISABLED)")
    return span


def end_time(observation: Observation) -> int:
    """Nanoseconds since 1970 at the end of the observation, never before its start."""
    return _nanoseconds(max(observation.started_at, observation.finished_at))


class _DerivedIds(IdGenerator):
    """Returns preset ids; used by one thread, one span at a time."""

    def __init__(self) -> None:
        self.next_trace_id = 0
        self.next_span_id = 0

    def generate_trace_id(self) -> int:
        return self.next_trace_id

    def generate_span_id(self) -> int:
        return self.next_span_id


def newest_messages(
    prompt: ModelRequest, redactor: Redactor, shape: Callable[[JsonObject], JsonValue], *, system: JsonValue = None
) -> str:
    """The messages of a prompt as a JSON array, oldest first, without secrets.

    Messages are taken from the newest back until the limit, so that the work is bounded for long
    threads. Omitted messages are replaced by their number; `system` comes first.
    """
    parts: list[str] = []
    size = 0
    for message in newest_first(prompt):
        part = as_json(shape(redacted(redactor, message)))
        size += len(part)
        if parts and size > MAX_CONTENT:
            parts.append(as_json({"messages_left_out": len(prompt.messages) - len(parts)}))
            break
        parts.append(cut(part))
    if system is not None:
        parts.append(cut(as_json(redactor.redact_value(system))))
    return f"[{', '.join(reversed(parts))}]"


def redacted(redactor: Redactor, value: JsonObject) -> JsonObject:
    clean = redactor.redact_value(value)
    return clean if isinstance(clean, dict) else {}


def as_json(value: object) -> str:
    """JSON with non-ASCII characters unescaped."""
    return json.dumps(value, ensure_ascii=False)


def encodable(text: str) -> str:
    """The text with question marks in place of lone surrogates, which protobuf cannot encode."""
    return text.encode(errors="replace").decode()


def cut(text: str) -> str:
    """The text, or its beginning and the number of missing characters."""
    return text if len(text) <= MAX_CONTENT else f"{text[:MAX_CONTENT]}… [{len(text) - MAX_CONTENT} characters more]"


def _parent(observation: Observation) -> Context:
    if observation.parent_id is None:
        return Context()
    parent = SpanContext(observation.trace_id, observation.parent_id, is_remote=True, trace_flags=_SAMPLED)
    return set_span_in_context(NonRecordingSpan(parent), Context())


def _nanoseconds(moment: datetime) -> int:
    elapsed = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return ((elapsed.days * 86_400 + elapsed.seconds) * 1_000_000 + elapsed.microseconds) * 1_000

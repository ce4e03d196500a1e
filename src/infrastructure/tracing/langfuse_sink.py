"""Observations as Langfuse takes them: its SDK's attributes on OpenTelemetry spans, over OTLP.

The SDK's own client is not used: it makes spans as things happen and flushes when asked, while ours are told after the
fact, with derived ids. Heavy to import (a second of CPU).
"""

import base64
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version

import langfuse
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import NonRecordingSpan, SpanContext, StatusCode, TraceFlags, set_span_in_context

from domain.json_value import JsonValue
from domain.runs.usage import ModelUsage
from domain.threads.message import Role
from infrastructure.redaction import Redactor
from infrastructure.tracing.observations import Observation, newest_first

_MAX_CONTENT = 256 * 1024
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_Attributes = langfuse.LangfuseOtelSpanAttributes


class LangfuseSink:
    """Sends observations to a Langfuse project. `content` False keeps prompts, arguments and results out; secrets are
    kept out always. A request takes at most `timeout_s`, its repetitions included."""

    def __init__(
        self, *, public_key: str, secret_key: str, base_url: str, content: bool, redactor: Redactor, timeout_s: float
    ) -> None:
        self._spans = _LangfuseSpans(public_key=public_key, content=content, redactor=redactor)
        self._exporter = OTLPSpanExporter(
            endpoint=f"{base_url.rstrip('/')}/api/public/otel/v1/traces",
            headers=_headers(public_key, secret_key),
            timeout=timeout_s,
            compression=Compression.Gzip,
        )

    def send(self, observations: Sequence[Observation]) -> bool:
        """Export them in one request; False if it was not accepted."""
        spans = [self._spans.make(observation) for observation in observations]
        return self._exporter.export(spans) is SpanExportResult.SUCCESS

    def close(self) -> None:
        """End the connection, and the wait before a repetition."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]


def _headers(public_key: str, secret_key: str) -> dict[str, str]:
    """What the SDK itself sends: the ingestion version asks for traces by span, not by trace."""
    credentials = base64.b64encode(f"{public_key}:{secret_key}".encode()).decode("ascii")
    return {
        "Authorization": f"Basic {credentials}",
        "x-langfuse-sdk-name": "python",
        "x-langfuse-sdk-version": langfuse.__version__,
        "x-langfuse-public-key": public_key,
        "x-langfuse-ingestion-version": "4",
    }


class _DerivedIds(IdGenerator):
    """Gives the ids it was told to; used by one thread, a span at a time."""

    def __init__(self) -> None:
        self.next_trace_id = 0
        self.next_span_id = 0

    def generate_trace_id(self) -> int:
        return self.next_trace_id

    def generate_span_id(self) -> int:
        return self.next_span_id


class _LangfuseSpans:
    """Makes spans from observations, through a tracer provider of its own that nothing else reports to."""

    def __init__(self, *, public_key: str, content: bool, redactor: Redactor) -> None:
        self._content = content
        self._redactor = redactor
        self._ids = _DerivedIds()
        self._provider = TracerProvider(
            sampler=ALWAYS_ON,  # not what the environment says of other tracers
            resource=Resource({SERVICE_NAME: "dragoman", SERVICE_VERSION: version("dragoman")}),
            id_generator=self._ids,
            shutdown_on_exit=False,
        )
        # The scope that Langfuse knows its own spans by.
        self._tracer = self._provider.get_tracer(
            "langfuse-sdk", langfuse.__version__, attributes={"public_key": public_key}
        )

    def make(self, observation: Observation) -> ReadableSpan:
        """The finished span."""
        self._ids.next_trace_id, self._ids.next_span_id = observation.trace_id, observation.span_id
        span = self._tracer.start_span(
            observation.name,
            context=_parent(observation),
            start_time=_nanoseconds(observation.started_at),
            attributes=self._attributes(observation),
        )
        if observation.error is not None:
            span.set_status(StatusCode.ERROR, observation.error)
        span.end(_nanoseconds(max(observation.started_at, observation.finished_at)))
        if not isinstance(span, ReadableSpan):
            raise TypeError("OpenTelemetry is disabled in this process (OTEL_SDK_DISABLED)")
        return span

    def _attributes(self, observation: Observation) -> dict[str, str]:
        told: dict[str, str | None] = {
            _Attributes.OBSERVATION_TYPE: observation.kind.value,
            _Attributes.OBSERVATION_INPUT: self._input(observation),
            _Attributes.OBSERVATION_OUTPUT: self._shown(observation.output),
            _Attributes.OBSERVATION_LEVEL: None if observation.error is None else "ERROR",
            _Attributes.OBSERVATION_STATUS_MESSAGE: observation.error,
            _Attributes.OBSERVATION_MODEL: observation.model,
            _Attributes.OBSERVATION_USAGE_DETAILS: _usage(observation.usage),
            _Attributes.OBSERVATION_COST_DETAILS: _cost(observation.usage),
            # On every span, not on the root alone: a run's spans are shown before the run has ended.
            _Attributes.TRACE_NAME: observation.trace_name,
            _Attributes.TRACE_SESSION_ID: observation.session_id,
        }
        for prefix, metadata in (
            (_Attributes.OBSERVATION_METADATA, observation.metadata),
            (_Attributes.TRACE_METADATA, observation.trace_metadata),
        ):
            for name, value in metadata.items():
                if value is not None:
                    told[f"{prefix}.{name}"] = _json(self._redactor.redact_value(value, name))
        return {name: _encodable(text) for name, text in told.items() if text is not None}

    def _input(self, observation: Observation) -> str | None:
        if observation.prompt is None or not self._content:
            return self._shown(observation.input)
        # From the newest back to what fits: the work is bounded however long the thread is.
        messages = observation.prompt.messages
        parts: list[str] = []
        size = 0
        for message in newest_first(observation.prompt):
            part = _json(self._redactor.redact_value(message))
            size += len(part)
            if parts and size > _MAX_CONTENT:
                parts.append(_json({"messages_left_out": len(messages) - len(parts)}))
                break
            parts.append(_cut(part))
        if observation.prompt.system:
            system = self._redactor.redact(observation.prompt.system)
            parts.append(_cut(_json({"role": Role.SYSTEM.value, "content": system})))
        return f"[{', '.join(reversed(parts))}]"

    def _shown(self, value: JsonValue) -> str | None:
        if value is None or not self._content:
            return None
        redacted = self._redactor.redact_value(value)
        return _cut(redacted if isinstance(redacted, str) else _json(redacted))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _encodable(text: str) -> str:
    """Lone surrogates, which JSON can hold and protobuf cannot, as question marks."""
    return text.encode(errors="replace").decode()


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_CONTENT else f"{text[:_MAX_CONTENT]}… [{len(text) - _MAX_CONTENT} characters more]"


def _parent(observation: Observation) -> Context:
    if observation.parent_id is None:
        return Context()
    parent = SpanContext(observation.trace_id, observation.parent_id, is_remote=True, trace_flags=_SAMPLED)
    return set_span_in_context(NonRecordingSpan(parent), Context())


def _usage(usage: ModelUsage | None) -> str | None:
    """Langfuse adds up what begins with `input`, so cached tokens are told apart from the others."""
    if usage is None:
        return None
    return _json(
        {
            "input": usage.input_tokens - usage.cached_tokens,
            "input_cached_tokens": usage.cached_tokens,
            "output": usage.output_tokens,
            "total": usage.input_tokens + usage.output_tokens,
        }
    )


def _cost(usage: ModelUsage | None) -> str | None:
    return None if usage is None or usage.cost_usd is None else _json({"total": float(usage.cost_usd)})


def _nanoseconds(moment: datetime) -> int:
    elapsed = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return ((elapsed.days * 86_400 + elapsed.seconds) * 1_000_000 + elapsed.microseconds) * 1_000

"""Observations as Langfuse takes them: its SDK's attributes on OpenTelemetry spans, over OTLP.

The SDK's own client is not used: it makes spans as things happen and flushes when asked, while ours are told after the
fact, with derived ids. Heavy to import (a second of CPU).
"""

import base64
from collections.abc import Sequence

import langfuse
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult

from domain.json_value import JsonValue
from domain.runs.usage import ModelUsage
from domain.threads.message import Role
from infrastructure.redaction import Redactor
from infrastructure.tracing.observations import Observation
from infrastructure.tracing.spans import SpanMaker, as_json, cut, encodable, newest_messages

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


class _LangfuseSpans:
    """Makes spans as Langfuse's own client does."""

    def __init__(self, *, public_key: str, content: bool, redactor: Redactor) -> None:
        self._content = content
        self._redactor = redactor
        # The scope that Langfuse knows its own spans by.
        self._spans = SpanMaker("langfuse-sdk", langfuse.__version__, attributes={"public_key": public_key})

    def make(self, observation: Observation) -> ReadableSpan:
        """The finished span."""
        return self._spans.make(observation, self._attributes(observation))

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
                    told[f"{prefix}.{name}"] = as_json(self._redactor.redact_value(value, name))
        return {name: encodable(text) for name, text in told.items() if text is not None}

    def _input(self, observation: Observation) -> str | None:
        if observation.prompt is None or not self._content:
            return self._shown(observation.input)
        system = observation.prompt.system
        said: JsonValue = {"role": Role.SYSTEM.value, "content": system} if system else None
        return newest_messages(observation.prompt, self._redactor, lambda message: message, system=said)

    def _shown(self, value: JsonValue) -> str | None:
        if value is None or not self._content:
            return None
        redacted = self._redactor.redact_value(value)
        return cut(redacted if isinstance(redacted, str) else as_json(redacted))


def _usage(usage: ModelUsage | None) -> str | None:
    """Langfuse adds up what begins with `input`, so cached tokens are told apart from the others."""
    if usage is None:
        return None
    return as_json(
        {
            "input": usage.input_tokens - usage.cached_tokens,
            "input_cached_tokens": usage.cached_tokens,
            "output": usage.output_tokens,
            "total": usage.input_tokens + usage.output_tokens,
        }
    )


def _cost(usage: ModelUsage | None) -> str | None:
    return None if usage is None or usage.cost_usd is None else as_json({"total": float(usage.cost_usd)})

"""Sends observations with the client of Langfuse's SDK. ADR 0038 says which parts are used.

Heavy to import (a second of CPU): only for the sending thread.
"""

import json
import math
import threading
from collections.abc import Collection, Sequence
from typing import Literal, TypedDict

import langfuse
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, SynchronousMultiSpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import Span

from domain.json_value import JsonObject, JsonValue
from domain.runs.usage import ModelUsage
from domain.threads.message import Role
from infrastructure.runtime.logs import claim_loggers
from infrastructure.secrets.redaction import Redactor
from infrastructure.tracing.embedded_media import messages_without_media, without_media
from infrastructure.tracing.observations import Observation, ObservationKind
from infrastructure.tracing.spans import SpanMaker, as_json, cut, encodable, end_time, finished, newest_messages

_Attributes = langfuse.LangfuseOtelSpanAttributes
_SCOPE = "langfuse-sdk"
"""The scope by which Langfuse recognizes spans of its SDK."""
_NEVER_S = 24 * 3_600.0
"""Interval of the client's threads for spans and scores, which have nothing to send."""
_CLOSING_S = 1.0
_OWN_HEADERS = frozenset({"authorization", "content-type", "user-agent"})
"""Headers of the exporter, besides `x-langfuse-…`."""


class LangfuseSink:
    """Sends observations to a Langfuse project.

    - `content` False omits prompts, arguments and results; secrets are always omitted.
    - A request takes at most `timeout_s`, rounded up to seconds, including retries.
    - `foreign_headers` names the headers of OTEL_EXPORTER_OTLP_HEADERS, which the exporter would
      add. They belong to another backend and are sent empty.
    - The SDK has one client per public key and process, even after it is closed. A second sink with
      the same key raises RuntimeError.
    """

    def __init__(
        self,
        *,
        public_key: str,
        secret_key: str,
        base_url: str,
        content: bool,
        redactor: Redactor,
        timeout_s: float = 5.0,
        foreign_headers: Collection[str] = (),
    ) -> None:
        claim_loggers("httpx", "langfuse")  # the import gave them a handler and levels
        added = _AddedProcessors()
        self._spans = SpanMaker(_SCOPE, langfuse.__version__, attributes={"public_key": public_key}, processors=added)
        self._client = langfuse.Langfuse(
            public_key=public_key,
            secret_key=secret_key,
            base_url=base_url.rstrip("/"),
            timeout=math.ceil(timeout_s),
            flush_interval=_NEVER_S,
            sample_rate=1.0,
            tracer_provider=self._spans.provider,
            otel_compression="gzip",
            additional_headers={name: "" for name in foreign_headers if not _is_own(name.lower())},
        )
        if added.of_client is None:
            raise RuntimeError("no Langfuse client: this process had one of that public key, or tracing is disabled")
        self._processor = added.of_client
        self._content = _Content(shown=content, redactor=redactor)

    def send(self, observations: Sequence[Observation]) -> bool:
        """Export the observations in one request; False if it was rejected."""
        spans = [self._span(observation) for observation in observations]
        return self._processor.span_exporter.export(spans) is SpanExportResult.SUCCESS

    def close(self) -> None:
        """Close the connection, stop retries, and end the client's threads; waits at most a
        second."""
        closing = threading.Thread(target=self._close, name="langfuse-closing", daemon=True)
        closing.start()
        closing.join(_CLOSING_S)

    def _close(self) -> None:
        self._processor.shutdown()  # type: ignore[no-untyped-call]
        self._client.shutdown()

    def _span(self, observation: Observation) -> ReadableSpan:
        span = self._spans.start(observation, self._content.of_trace(observation))
        self._observed(span, observation).end(end_time=end_time(observation))
        return finished(span)

    def _observed(self, span: Span, observation: Observation) -> "_Observed":
        told = self._content.of_observation(observation)
        match observation.kind:
            case ObservationKind.GENERATION:
                return langfuse.LangfuseGeneration(
                    otel_span=span,
                    langfuse_client=self._client,
                    model=observation.model,
                    usage_details=_usage(observation.usage),
                    cost_details=_cost(observation.usage),
                    **told,
                )
            case ObservationKind.AGENT:
                return langfuse.LangfuseAgent(otel_span=span, langfuse_client=self._client, **told)
            case ObservationKind.TOOL:
                return langfuse.LangfuseTool(otel_span=span, langfuse_client=self._client, **told)
            case ObservationKind.CHAIN:
                return langfuse.LangfuseChain(otel_span=span, langfuse_client=self._client, **told)
            case ObservationKind.SPAN:
                return langfuse.LangfuseSpan(otel_span=span, langfuse_client=self._client, **told)


def _is_own(header: str) -> bool:
    return header in _OWN_HEADERS or header.startswith("x-langfuse-")


_Observed = (
    langfuse.LangfuseAgent
    | langfuse.LangfuseChain
    | langfuse.LangfuseGeneration
    | langfuse.LangfuseSpan
    | langfuse.LangfuseTool
)


class _AddedProcessors(SynchronousMultiSpanProcessor):
    """Captures the processor that the client adds to its tracer provider, and passes no spans on.
    Its queue does not report rejected batches; only its exporter is used."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.of_client: BatchSpanProcessor | None = None

    def add_span_processor(self, span_processor: SpanProcessor) -> None:
        if isinstance(span_processor, BatchSpanProcessor):
            self.of_client = span_processor


class _Told(TypedDict):
    input: str | None
    output: str | None
    metadata: JsonObject
    level: Literal["ERROR"] | None
    status_message: str | None


class _Content:
    """The content of an observation: without secrets, and without prompts and results unless
    `shown`."""

    def __init__(self, *, shown: bool, redactor: Redactor) -> None:
        self._shown = shown
        self._redactor = redactor

    def of_trace(self, observation: Observation) -> dict[str, str]:
        """Attributes of the whole trace, on every span, because spans of a run are visible before
        the run ends."""
        told = {_Attributes.TRACE_NAME: observation.trace_name, _Attributes.TRACE_SESSION_ID: observation.session_id}
        for name, value in observation.trace_metadata.items():
            told[f"{_Attributes.TRACE_METADATA}.{name}"] = as_json(self._redactor.redact_value(value, name))
        return {name: encodable(text) for name, text in told.items()}

    def of_observation(self, observation: Observation) -> _Told:
        failed = observation.error is not None
        return {
            "input": self._input(observation),
            "output": self._text(observation.output),
            "metadata": {
                name: json.loads(encodable(as_json(self._redactor.redact_value(value, name))))
                for name, value in observation.metadata.items()
                if value is not None
            },
            "level": "ERROR" if failed else None,
            "status_message": observation.error,
        }

    def _input(self, observation: Observation) -> str | None:
        if observation.prompt is None or not self._shown:
            return self._text(observation.input)
        system = observation.prompt.system
        said = messages_without_media({"role": Role.SYSTEM.value, "content": system}) if system else None
        return encodable(newest_messages(observation.prompt, self._redactor, messages_without_media, system=said))

    def _text(self, value: JsonValue) -> str | None:
        if value is None or not self._shown:
            return None
        shown = self._redactor.redact_value(without_media(value))
        return encodable(cut(shown if isinstance(shown, str) else as_json(shown)))


def _usage(usage: ModelUsage | None) -> dict[str, int] | None:
    """Langfuse sums everything that begins with `input` or `output`, so cached and reasoning tokens
    are reported separately."""
    if usage is None:
        return None
    return {
        "input": usage.input_tokens - usage.cached_tokens,
        "input_cached_tokens": usage.cached_tokens,
        "output": usage.output_tokens - usage.reasoning_tokens,
        **({"output_reasoning_tokens": usage.reasoning_tokens} if usage.reasoning_tokens else {}),
        "total": usage.input_tokens + usage.output_tokens,
    }


def _cost(usage: ModelUsage | None) -> dict[str, float] | None:
    return None if usage is None or usage.cost_usd is None else {"total": float(usage.cost_usd)}

"""Exports observations over OTLP, as spans with OpenTelemetry's attributes for generative AI.

Attribute names: semantic conventions, gen-ai (development). Heavy to import.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.trace import SpanKind
from opentelemetry.util.types import AttributeValue

from domain.json_value import JsonObject, JsonValue
from domain.runs.usage import ModelUsage
from domain.tools.capabilities import ToolType
from infrastructure.secrets.redaction import Redactor
from infrastructure.tracing.observations import Observation, ObservationKind
from infrastructure.tracing.spans import SpanMaker, as_json, cut, encodable, newest_messages

_SCOPE = "dragoman"
_OPERATIONS = {
    ObservationKind.AGENT: "invoke_agent",
    ObservationKind.GENERATION: "chat",
    ObservationKind.TOOL: "execute_tool",
    ObservationKind.CHAIN: "invoke_workflow",
}
_OWN_TOOL_KIND = "function"
_MCP_TOOL_KIND = "extension"
_MCP_CALL = "tools/call"
_MCP_TOOL_ERROR = "mcp_tool_error"


class OtelSink:
    """Sends observations to a collector. A request takes at most `timeout_s`, including retries."""

    def __init__(
        self, *, endpoint: str, headers: Mapping[str, str], content: bool, redactor: Redactor, timeout_s: float = 5.0
    ) -> None:
        self._spans = SpanMaker(_SCOPE, version("dragoman"))
        self._attributes = GenAiAttributes(content=content, redactor=redactor)
        self._exporter = OTLPSpanExporter(
            endpoint=f"{endpoint.rstrip('/')}/v1/traces",
            headers=dict(headers),
            timeout=timeout_s,
            compression=Compression.Gzip,
        )

    def send(self, observations: Sequence[Observation]) -> bool:
        """Export the observations in one request; False if it was rejected."""
        return self._exporter.export([self._span(each) for each in observations]) is SpanExportResult.SUCCESS

    def close(self) -> None:
        """Close the connection and stop retries."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def _span(self, observation: Observation) -> ReadableSpan:
        named = replace(observation, name=span_name(observation))
        return self._spans.make(named, self._attributes.of(observation), kind=_span_kind(observation))


def span_name(observation: Observation) -> str:
    """The operation and what it is about, as the conventions for generative AI and for MCP name
    spans."""
    about: JsonValue = None
    match observation.kind:
        case ObservationKind.GENERATION:
            about = _asked_model(observation)
        case ObservationKind.AGENT:
            about = observation.trace_metadata.get("agent")
        case ObservationKind.TOOL:
            about = observation.metadata.get("tool_name")
            if _is_mcp(observation):
                return f"{_MCP_CALL} {about}"
        case ObservationKind.CHAIN | ObservationKind.SPAN:
            return observation.name
    operation = _OPERATIONS[observation.kind]
    return f"{operation} {about}" if about else operation


def _span_kind(observation: Observation) -> SpanKind:
    """Calls through the gateway are requests of its clients; models and MCP servers are called by
    us."""
    if "gateway_session_id" in observation.trace_metadata:
        return SpanKind.SERVER
    is_remote = observation.kind is ObservationKind.GENERATION or _is_mcp(observation)
    return SpanKind.CLIENT if is_remote else SpanKind.INTERNAL


def _is_mcp(observation: Observation) -> bool:
    return observation.metadata.get("tool_type") == ToolType.MCP_TOOL.value


def _asked_model(observation: Observation) -> str:
    asked = observation.model if observation.prompt is None else observation.prompt.model
    return (asked or "").partition(":")[2]


class GenAiAttributes:
    """The attributes of a span by the conventions. Attributes without a standard name begin with
    `dragoman.`."""

    def __init__(self, *, content: bool, redactor: Redactor) -> None:
        self._content = content
        self._redactor = redactor

    def of(self, observation: Observation) -> dict[str, AttributeValue]:
        told: dict[str, AttributeValue | None] = {
            "gen_ai.operation.name": _OPERATIONS.get(observation.kind),
            "gen_ai.conversation.id": observation.session_id,
            "gen_ai.agent.id": observation.trace_metadata.get("agent_id"),
            "gen_ai.agent.name": observation.trace_metadata.get("agent"),
            "gen_ai.agent.version": observation.trace_metadata.get("agent_version"),
            "error.type": "tool_error" if observation.error == _MCP_TOOL_ERROR else observation.error,
        }
        for name, value in observation.trace_metadata.items():
            if name not in ("agent_id", "agent", "agent_version"):
                told[f"dragoman.{name}"] = value
        match observation.kind:
            case ObservationKind.GENERATION:
                told |= _of_model(observation) | dict(self._said(observation))
            case ObservationKind.TOOL:
                told |= _of_tool(observation) | dict(self._passed(observation))
            case ObservationKind.AGENT:
                told |= _of_run(observation) | dict(_own(observation))
            case ObservationKind.CHAIN | ObservationKind.SPAN:
                told |= dict(_own(observation))
        return {
            name: encodable(value) if isinstance(value, str) else value
            for name, value in told.items()
            if value is not None
        }

    def _said(self, observation: Observation) -> Iterator[tuple[str, AttributeValue]]:
        if not self._content:
            return
        prompt = observation.prompt
        if prompt is not None:
            if prompt.system:
                system = [{"type": "text", "content": self._redactor.redact(prompt.system)}]
                yield "gen_ai.system_instructions", cut(as_json(system))
            yield "gen_ai.input.messages", newest_messages(prompt, self._redactor, message_in_parts)
        reply = self._redactor.redact_value(observation.output)
        if isinstance(reply, dict):
            reason = observation.metadata.get("finish_reason")
            said = {**message_in_parts(reply), "finish_reason": reason}
            yield "gen_ai.output.messages", cut(as_json([said]))
        elif isinstance(reply, str):  # the provider's message, when the call failed
            yield "dragoman.provider_message", cut(reply)

    def _passed(self, observation: Observation) -> Iterator[tuple[str, AttributeValue]]:
        if not self._content:
            return
        for name, value in (("arguments", observation.input), ("result", observation.output)):
            if value is not None:
                clean = self._redactor.redact_value(value)
                yield f"gen_ai.tool.call.{name}", cut(clean if isinstance(clean, str) else as_json(clean))


def _of_model(observation: Observation) -> dict[str, AttributeValue | None]:
    provider, _, model = (observation.model or "").partition(":")
    prompt = observation.prompt
    usage = observation.usage or ModelUsage()
    reason = observation.metadata.get("finish_reason")
    return {
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": _asked_model(observation),
        "gen_ai.request.stream": True,
        "gen_ai.request.max_tokens": None if prompt is None else prompt.max_output_tokens,
        "gen_ai.response.model": model if observation.usage is not None else None,
        "gen_ai.response.finish_reasons": [reason] if isinstance(reason, str) else None,
        "gen_ai.usage.input_tokens": usage.input_tokens if observation.usage is not None else None,
        "gen_ai.usage.output_tokens": usage.output_tokens if observation.usage is not None else None,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens or None,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens or None,
        "gen_ai.usage.cache_write.input_tokens": usage.cache_write_tokens or None,
        "dragoman.cost_usd": None if usage.cost_usd is None else float(usage.cost_usd),
        "dragoman.turn": _number(observation.metadata.get("turn")),
        "dragoman.provider_status": _number(observation.metadata.get("provider_status")),
        "dragoman.provider_code": _text(observation.metadata.get("provider_code")),
    }


def _of_run(observation: Observation) -> dict[str, AttributeValue | None]:
    provider, _, model = (observation.model or "").partition(":")
    usage = observation.usage or ModelUsage()
    return {
        "gen_ai.provider.name": provider or None,
        "gen_ai.request.model": model or None,
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
    }


def _of_tool(observation: Observation) -> dict[str, AttributeValue | None]:
    metadata = observation.metadata
    is_mcp = _is_mcp(observation)
    return {
        "gen_ai.tool.name": _text(metadata.get("tool_name")),
        "gen_ai.tool.call.id": _text(metadata.get("tool_call_id")),
        "gen_ai.tool.type": _MCP_TOOL_KIND if is_mcp else _OWN_TOOL_KIND,
        "mcp.method.name": _MCP_CALL if is_mcp else None,
        "dragoman.tool_type": _text(metadata.get("tool_type")),
        "dragoman.server": _text(metadata.get("server")),
        "dragoman.server_id": _text(metadata.get("server_id")),
        "dragoman.turn": _number(metadata.get("turn")),
    }


def _own(observation: Observation) -> Iterator[tuple[str, AttributeValue]]:
    for name, value in observation.metadata.items():
        if isinstance(value, str | int | float):
            yield f"dragoman.{name}", value


def message_in_parts(message: JsonObject) -> JsonObject:
    """A message `{role, content: […]}` in the form of the conventions: `{role, parts: […]}`."""
    content = message.get("content")
    parts: list[JsonValue] = (
        [_part(part) for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    )
    return {"role": message.get("role"), "parts": parts}


def _part(part: JsonObject) -> JsonObject:
    match part.get("type"):
        case "text":
            return {"type": "text", "content": part.get("text")}
        case "tool_use":
            return {
                "type": "tool_call",
                "id": part.get("id"),
                "name": part.get("name"),
                "arguments": part.get("params"),
            }
        case "tool_result":
            return {"type": "tool_call_response", "id": part.get("tool_id"), "response": part.get("result")}
        case _:
            return part


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: JsonValue) -> int | None:
    return value if isinstance(value, int) else None

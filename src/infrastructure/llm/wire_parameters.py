"""Model settings as the parameters of each API. What is not set has no parameter."""

from collections.abc import Callable
from dataclasses import replace

import msgspec

from application.models.ports import ModelRequest
from domain.json_value import JsonObject, JsonValue
from domain.runs.model_settings import Effort, ModelSettings
from infrastructure.llm.model_families import Thinking
from infrastructure.llm.strict_schema import OPENAI_CONSTRAINTS, strict_schema

_encode = msgspec.json.Encoder().encode
_MIN_BUDGET = 1_024
"""The least thinking that the messages API takes."""


def with_taken_settings(request: ModelRequest, taken_by: Callable[[str], frozenset[str]]) -> ModelRequest:
    """The request without settings that its model does not take: a fallback model may be of another
    family."""
    settings = request.settings
    if settings is None:
        return request
    taken = taken_by(request.model.partition(":")[2])
    return request if taken.issuperset(settings.stated) else replace(request, settings=settings.only(taken))


def chat_parameters(settings: ModelSettings, *, has_tools: bool, schema: JsonObject | None = None) -> JsonObject:
    return _stated(
        response_format=None if schema is None else {"type": "json_schema", "json_schema": _named(schema)},
        reasoning_effort=settings.effort,
        verbosity=settings.verbosity,
        temperature=settings.temperature,
        top_p=settings.top_p,
        parallel_tool_calls=settings.parallel_tool_calls if has_tools else None,
        service_tier=settings.service_tier,
        stop=None if settings.stop is None else [*settings.stop],
        seed=settings.seed,
        extra=settings.extra_body,
    )


def with_reasoning_object(parameters: JsonObject) -> JsonObject:
    """Parameters of chat completions with the effort as Snowflake takes it for Claude, which then
    wants temperature 1."""
    rest = {name: value for name, value in parameters.items() if name != "reasoning_effort"}
    effort = _CORTEX_EFFORTS.get(str(parameters.get("reasoning_effort")))
    return rest if effort is None else {**rest, "reasoning": {"effort": effort}, "temperature": 1}


def responses_parameters(
    settings: ModelSettings, *, has_tools: bool, summary: bool, schema: JsonObject | None = None
) -> JsonObject:
    written = None if schema is None else {"type": "json_schema", **_named(schema)}
    return _stated(
        reasoning=_stated(effort=settings.effort, summary="auto" if summary else None) or None,
        text=_stated(verbosity=settings.verbosity, format=written) or None,
        temperature=settings.temperature,
        top_p=settings.top_p,
        parallel_tool_calls=settings.parallel_tool_calls if has_tools else None,
        service_tier=settings.service_tier,
        extra=settings.extra_body,
    )


def messages_parameters(
    settings: ModelSettings,
    thinking: Thinking,
    *,
    max_tokens: int,
    summary: bool,
    may_think: bool,
    schema: JsonObject | None = None,
) -> JsonObject:
    """`thinking` is how this model is asked to think, `may_think` whether the thread lets it with a
    budget."""
    written: JsonObject | None = None if schema is None else {"type": "json_schema", "schema": schema}
    effort = _CLAUDE_EFFORTS.get(settings.effort) if settings.effort is not None else None
    return _stated(
        thinking=_thinking(settings, thinking, max_tokens=max_tokens, summary=summary, may_think=may_think),
        output_config=_stated(effort=effort, format=written) or None,
        temperature=settings.temperature,
        top_p=settings.top_p,
        stop_sequences=None if settings.stop is None else [*settings.stop],
        service_tier=settings.service_tier,
        extra=settings.extra_body,
    )


def _named(schema: JsonObject) -> JsonObject:
    """`strict` is refused for schemas outside of the subset."""
    is_strict = strict_schema(schema, optional=False, constraints=OPENAI_CONSTRAINTS) == schema
    return {"name": "output", "schema": schema, "strict": is_strict}


def appended(parameters: JsonObject) -> bytes:
    """The parameters as the end of an object that has other fields before them."""
    return b"," + _encode(parameters)[1:-1] if parameters else b""


_CORTEX_EFFORTS: dict[str, JsonValue] = {
    **dict.fromkeys((Effort.MINIMAL.value, Effort.LOW.value), "low"),
    Effort.MEDIUM.value: "medium",
    **dict.fromkeys((Effort.HIGH.value, Effort.XHIGH.value, Effort.MAX.value), "high"),
}
_CLAUDE_EFFORTS: dict[Effort, JsonValue] = {
    effort: (Effort.LOW if effort is Effort.MINIMAL else effort).value for effort in Effort if effort is not Effort.NONE
}


def _thinking(
    settings: ModelSettings, thinking: Thinking, *, max_tokens: int, summary: bool, may_think: bool
) -> JsonObject | None:
    """Without effort, budget and summaries, the model's default decides."""
    budget = settings.thinking_budget
    if settings.effort is Effort.NONE:
        return {"type": "disabled"}
    if thinking is Thinking.ADAPTIVE:
        if budget is None and settings.effort is None and not summary:
            return None
        return {"type": "adaptive", "display": "summarized"} if summary else {"type": "adaptive"}
    if budget is None or not may_think or max_tokens <= max(budget, _MIN_BUDGET):
        return None
    return {"type": "enabled", "budget_tokens": max(budget, _MIN_BUDGET)}


def _stated(*, extra: JsonObject | None = None, **parameters: JsonValue) -> JsonObject:
    return {name: value for name, value in parameters.items() if value is not None} | (extra or {})

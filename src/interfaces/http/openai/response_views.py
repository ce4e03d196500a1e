"""Responses as JSON."""

from domain.json_value import JsonObject, JsonValue
from domain.runs.run import Run
from interfaces.http.openai.replies import Spending
from interfaces.http.openai.response_ids import Place, conversation_id

_ABSENT = (
    "access_programs",
    "image",
    "input_transformations",
    "moderation",
    "prompt",
    "prompt_cache_diagnostics",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "safety_identifier",
    "tool_usage",
    "user",
)
"""Fields of the protocol that Dragoman has nothing for."""
_NO_REASONING = ("summary", "generate_summary", "context", "mode")
_DEFAULT_SAMPLING = 1.0
"""What the protocol shows for a value that is not set: Open Responses requires a number. Nothing is
sent to the model."""
_USED_UP = ("completed", "incomplete", "failed", "cancelled")


def response_view(
    run: Run,
    place: Place,
    *,
    asked: JsonObject,
    status: str,
    output: list[JsonObject],
    spent: Spending,
    created_at: int,
    completed_at: int | None,
    error: JsonObject | None,
    incomplete: JsonObject | None,
) -> JsonObject:
    """A response: what its request said (`asked`), and what has come of it. Times are in whole
    seconds since 1970."""
    settings = run.model_settings
    return {
        **dict.fromkeys(_ABSENT),
        "id": place.id,
        "object": "response",
        "created_at": created_at,
        "completed_at": completed_at if status == "completed" else None,
        "status": status,
        "background": asked.get("background", False),
        "conversation": {"id": conversation_id(run.thread_id)} if asked.get("conversation") else None,
        "error": error,
        "incomplete_details": incomplete,
        "instructions": asked.get("instructions"),
        "max_output_tokens": settings.max_output_tokens,
        "max_tool_calls": run.limits.max_tool_calls,
        "metadata": run.metadata,
        "model": asked.get("model", run.agent_id),
        "output": [*output],
        "parallel_tool_calls": settings.parallel_tool_calls is not False,
        "previous_response_id": _previous(place, asked),
        "reasoning": {"effort": _named(settings.effort), **dict.fromkeys(_NO_REASONING)},
        "service_tier": "default",
        "store": asked.get("store", True),
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "temperature": _DEFAULT_SAMPLING if settings.temperature is None else settings.temperature,
        "text": asked.get("text", {"format": {"type": "text"}}),
        "tool_choice": asked.get("tool_choice", "auto"),
        "tools": asked.get("tools", []),
        "top_logprobs": 0,
        "top_p": _DEFAULT_SAMPLING if settings.top_p is None else settings.top_p,
        "truncation": "disabled",
        "usage": usage_view(spent) if status in _USED_UP else None,
    }


def usage_view(spent: Spending) -> JsonObject:
    return {
        "input_tokens": spent.input_tokens,
        "input_tokens_details": {"cached_tokens": spent.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": spent.output_tokens,
        "output_tokens_details": {"reasoning_tokens": spent.reasoning_tokens},
        "total_tokens": spent.input_tokens + spent.output_tokens,
    }


def _previous(place: Place, asked: JsonObject) -> JsonValue:
    """For a later part of a run, the part before it."""
    if place.part:
        return Place(run_id=place.run_id, part=place.part - 1).id
    return asked.get("previous_response_id")


def _named(value: str | None) -> str | None:
    return None if value is None else str(value)

"""Model settings as JSON."""

from collections.abc import Mapping
from typing import TypedDict

from domain.runs.model_settings import ModelSettings


class ModelSettingsView(TypedDict):
    """Model settings as configured; null where unset."""

    effort: str | None
    verbosity: str | None
    temperature: float | None
    top_p: float | None
    max_output_tokens: int | None
    parallel_tool_calls: bool | None
    thinking_budget: int | None
    service_tier: str | None
    stop: list[str] | None
    seed: int | None
    cache_ttl: str | None
    extra_body: Mapping[str, object] | None


def model_settings_view(settings: ModelSettings) -> ModelSettingsView:
    return {
        "effort": None if settings.effort is None else settings.effort.value,
        "verbosity": None if settings.verbosity is None else settings.verbosity.value,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "max_output_tokens": settings.max_output_tokens,
        "parallel_tool_calls": settings.parallel_tool_calls,
        "thinking_budget": settings.thinking_budget,
        "service_tier": settings.service_tier,
        "stop": None if settings.stop is None else list(settings.stop),
        "seed": settings.seed,
        "cache_ttl": None if settings.cache_ttl is None else settings.cache_ttl.value,
        "extra_body": settings.extra_body,
    }

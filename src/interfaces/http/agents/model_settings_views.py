"""Model settings as JSON."""

from collections.abc import Mapping
from typing import Annotated, TypedDict

from domain.runs.model_settings import MAX_STOPS, CacheTtl, Effort, ModelSettings, Verbosity


class ModelSettingsView(TypedDict):
    """Model settings as configured; null where unset."""

    effort: Annotated[Effort | None, "How much the model thinks."]
    verbosity: Annotated[Verbosity | None, "How long its answers are."]
    temperature: Annotated[float | None, "Sampling temperature."]
    top_p: Annotated[float | None, "Share of the most probable tokens that are sampled from."]
    max_output_tokens: Annotated[int | None, "Most tokens of one answer, reasoning included."]
    parallel_tool_calls: Annotated[bool | None, "Whether one answer may have several tool calls."]
    thinking_budget: Annotated[int | None, "In tokens, for models that take one instead of an effort."]
    service_tier: Annotated[str | None, "The provider's class of service."]
    stop: Annotated[list[str] | None, f"1 to {MAX_STOPS} texts that end the answer."]
    seed: Annotated[int | None, "Seed of the sampling."]
    cache_ttl: Annotated[CacheTtl | None, "How long the provider caches the prompt."]
    extra_body: Annotated[Mapping[str, object] | None, "Added to the body of requests: parameters that are not here."]


def model_settings_view(settings: ModelSettings) -> ModelSettingsView:
    return {
        "effort": settings.effort,
        "verbosity": settings.verbosity,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "max_output_tokens": settings.max_output_tokens,
        "parallel_tool_calls": settings.parallel_tool_calls,
        "thinking_budget": settings.thinking_budget,
        "service_tier": settings.service_tier,
        "stop": None if settings.stop is None else list(settings.stop),
        "seed": settings.seed,
        "cache_ttl": settings.cache_ttl,
        "extra_body": settings.extra_body,
    }

"""Parameters of model calls, of an agent or a run."""

import re
from dataclasses import dataclass, field, fields
from enum import StrEnum

from domain.errors import Violation, invalid
from domain.json_value import JsonObject, size_within

MAX_EXTRA_BODY = 16 * 1024
MAX_STOPS = 16
_SERVICE_TIER = re.compile(r"[a-z0-9_-]{1,64}")
NOT_EXTRA = frozenset(
    {
        "background",
        "connectors",
        "container",
        "conversation",
        "data_sources",
        "enable_search",
        "function_call",
        "functions",
        "include",
        "input",
        "instructions",
        "max_completion_tokens",
        "max_output_tokens",
        "max_tokens",
        "mcp_servers",
        "messages",
        "model",
        "models",
        "n",
        "plugins",
        "previous_response_id",
        "prompt",
        "prompt_cache_key",
        "search_options",
        "search_parameters",
        "store",
        "stream",
        "stream_options",
        "system",
        "tool_choice",
        "tool_config",
        "tools",
        "web_search_options",
    }
)
"""Fields of bodies that `extra_body` must not have: they are the conversation, or tools and
searches of the provider that no policy decides about."""
OPERATORS_ONLY = frozenset({"extra_body", "service_tier"})
"""Settings of a run that may raise its price above that of its model, by which budgets and cost
limits reckon."""


class Effort(StrEnum):
    """How much a model thinks. Models take some of these. The values are part of the public
    contract."""

    NONE = "none"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"
    MAX = "max"


class Verbosity(StrEnum):
    """How long answers are. The values are part of the public contract."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class CacheTtl(StrEnum):
    """How long a provider caches prompts. The values are part of the public contract."""

    FIVE_MINUTES = "5m"
    ONE_HOUR = "1h"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """What is set is sent, and nothing else.

    - `max_output_tokens` includes the tokens of reasoning.
    - `thinking_budget` is in tokens, for models that take one instead of an effort.
    - `extra_body` is added to the body of requests, for parameters that are not here.
    """

    effort: Effort | None = None
    verbosity: Verbosity | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    parallel_tool_calls: bool | None = None
    thinking_budget: int | None = None
    service_tier: str | None = None
    stop: tuple[str, ...] | None = None
    seed: int | None = None
    cache_ttl: CacheTtl | None = None
    extra_body: JsonObject | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        wrong = [
            Violation(path=f"model_settings.{name}", message=message)
            for name, message in (
                ("temperature", _outside(self.temperature, 0, 2) or self._excluded(self.temperature)),
                ("top_p", _outside(self.top_p, 0, 1) or self._excluded(self.top_p)),
                ("max_output_tokens", _outside(self.max_output_tokens, 1, None)),
                ("thinking_budget", _outside(self.thinking_budget, 1, None)),
                ("service_tier", _tier_fault(self.service_tier)),
                ("stop", _stop_fault(self.stop)),
                ("extra_body", _extra_fault(self.extra_body)),
            )
            if message is not None
        ]
        if wrong:
            raise invalid("model_settings_invalid", "The model settings are not valid.", *wrong)

    def _excluded(self, value: float | None) -> str | None:
        return None if value is None or self.thinking_budget is None else "cannot be set with thinking_budget"

    @property
    def stated(self) -> tuple[str, ...]:
        """The names of what is set."""
        return tuple(name for name in _NAMES if getattr(self, name) is not None)

    def changed_by(self, other: "ModelSettings") -> "ModelSettings":
        """These settings, and those of `other` in their place. A thinking budget of `other` removes
        the sampling, and its sampling removes the thinking budget."""
        removed: frozenset[str] = frozenset()
        if other.thinking_budget is not None:
            removed = _SAMPLING
        elif not _SAMPLING.isdisjoint(other.stated):
            removed = frozenset({"thinking_budget"})
        changed = {name: getattr(self, name) for name in self.stated if name not in removed}
        return ModelSettings(**changed | {name: getattr(other, name) for name in other.stated})

    def only(self, names: frozenset[str]) -> "ModelSettings":
        """The settings with these names."""
        return ModelSettings(**{name: getattr(self, name) for name in self.stated if name in names})


_NAMES = tuple(entry.name for entry in fields(ModelSettings))
_SAMPLING = frozenset({"temperature", "top_p"})


def _outside(value: float | None, least: float, most: float | None) -> str | None:
    if value is None or (value >= least and (most is None or value <= most)):
        return None
    return f"must be at least {least}" if most is None else f"must be between {least} and {most}"


def _tier_fault(tier: str | None) -> str | None:
    return None if tier is None or _SERVICE_TIER.fullmatch(tier) else "must match [a-z0-9_-]{1,64}"


def _stop_fault(stop: tuple[str, ...] | None) -> str | None:
    if stop is None or (0 < len(stop) <= MAX_STOPS and all(stop)):
        return None
    return f"must be 1 to {MAX_STOPS} texts that are not empty"


def _extra_fault(extra: JsonObject | None) -> str | None:
    if extra is None:
        return None
    forbidden = sorted(NOT_EXTRA & set(extra))
    if forbidden:
        return f"must not have {', '.join(forbidden)}"
    return None if size_within(extra, MAX_EXTRA_BODY) <= MAX_EXTRA_BODY else f"must be at most {MAX_EXTRA_BODY} bytes"


NO_SETTINGS = ModelSettings()

"""Body of model settings, of agents and runs."""

from typing import Annotated, ClassVar

from pydantic import Field

from domain.json_value import JsonObject
from domain.runs.model_settings import NO_SETTINGS, CacheTtl, Effort, ModelSettings, Verbosity
from interfaces.http.agents.model_settings_views import ModelSettingsView
from interfaces.http.bodies import Body, Strings

Efforts = Annotated[Effort, Field(strict=False)] | None
Verbosities = Annotated[Verbosity, Field(strict=False)] | None
CacheTtls = Annotated[CacheTtl, Field(strict=False)] | None
_MOST_TOKENS = 10**7


class ModelSettingsBody(Body):
    """Parameters of model calls. What is absent or null is not sent to the model. What a model is
    known to refuse is refused here."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"effort": "high", "max_output_tokens": 32_000},)

    shown_as: ClassVar[type] = ModelSettingsView

    effort: Efforts = None
    verbosity: Verbosities = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, ge=0, le=1)
    max_output_tokens: int | None = Field(default=None, gt=0, le=_MOST_TOKENS)
    parallel_tool_calls: bool | None = None
    thinking_budget: int | None = Field(default=None, gt=0, le=_MOST_TOKENS)
    service_tier: str | None = Field(default=None, max_length=64)
    stop: Strings | None = None
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    cache_ttl: CacheTtls = None
    extra_body: dict[str, object] | None = None

    def to_domain(self) -> ModelSettings:
        """Raises INVALID `model_settings_invalid`."""
        return ModelSettings(**self.values()) if self.stated() else NO_SETTINGS

"""Model settings as the library names them. What is not set is not sent."""

from pydantic_ai.settings import ModelSettings as LibrarySettings
from pydantic_ai.settings import ThinkingLevel

from application.models.ports import ModelRequest, ToolChoice
from domain.runs.model_settings import NO_SETTINGS, Effort

_EFFORTS: dict[Effort, ThinkingLevel] = {
    Effort.NONE: False,
    Effort.MINIMAL: "minimal",
    Effort.LOW: "low",
    Effort.MEDIUM: "medium",
    Effort.HIGH: "high",
    Effort.XHIGH: "xhigh",
    Effort.MAX: "max",
}


def common_settings(request: ModelRequest) -> LibrarySettings:
    given = request.settings or NO_SETTINGS
    settings = LibrarySettings()
    if request.max_output_tokens is not None:
        settings["max_tokens"] = request.max_output_tokens
    if request.tools and request.tool_choice is ToolChoice.NONE:
        settings["tool_choice"] = "none"
    if given.effort is not None and given.thinking_budget is None:
        settings["thinking"] = _EFFORTS[given.effort]
    if given.temperature is not None:
        settings["temperature"] = given.temperature
    if given.top_p is not None:
        settings["top_p"] = given.top_p
    if given.stop is not None:
        settings["stop_sequences"] = [*given.stop]
    if given.seed is not None:
        settings["seed"] = given.seed
    return settings

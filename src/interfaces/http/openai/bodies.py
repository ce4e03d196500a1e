"""What the bodies of OpenAI's protocols share: the base, functions of the client, settings of the
model."""

import json
from typing import Annotated, ClassVar, Literal, cast

from pydantic import ConfigDict, Field

from domain.errors import Violation, invalid
from domain.json_value import JsonObject, JsonValue, canonical_digest
from domain.runs.model_settings import NO_SETTINGS, Effort, ModelSettings, Verbosity
from domain.tools.client_tool import ClientTool
from interfaces.http.bodies import Body, Name
from interfaces.http.openai.errors import unsupported

Efforts = Annotated[Effort, Field(strict=False)] | None
Verbosities = Annotated[Verbosity, Field(strict=False)] | None
Metadata = dict[str, str] | None
_NO_ARGUMENTS: JsonObject = {"type": "object", "properties": {}}


class OpenAiBody(Body):
    """A JSON object. Fields that Dragoman does not know are ignored: clients send what their
    version has."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="ignore", strict=True, frozen=True, allow_inf_nan=False, defer_build=True
    )


class Function(OpenAiBody):
    """A function of the client."""

    name: Name
    description: str | None = None
    parameters: dict[str, object] | None = None

    def to_domain(self) -> ClientTool:
        return ClientTool(
            name=self.name,
            description=self.description or "",
            parameters=cast(JsonObject, self.parameters) if self.parameters else _NO_ARGUMENTS,
        )


class SampledBody(OpenAiBody):
    """Parameters of the model that both protocols have under one name."""

    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, ge=0, le=1)
    parallel_tool_calls: bool | None = None
    service_tier: str | None = None
    metadata: Metadata = Field(default=None, max_length=16)
    tool_choice: str | dict[str, object] | None = None
    user: str | None = None
    safety_identifier: str | None = None

    def end_user(self) -> str | None:
        """The digest of the names that the client's program gives the person it speaks for."""
        named: list[JsonValue] = [self.user, self.safety_identifier]
        return canonical_digest(named) if any(named) else None

    def settings(self, **others: object) -> ModelSettings:
        """Raises INVALID `model_settings_invalid`."""
        tier = self.service_tier if self.service_tier not in ("auto", "default") else None
        stated = {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "parallel_tool_calls": self.parallel_tool_calls,
            "service_tier": tier,
            **others,
        }
        given = {name: value for name, value in stated.items() if value is not None}
        return ModelSettings(**given) if given else NO_SETTINGS  # type: ignore[arg-type]

    def offers_functions(self) -> bool:
        """Whether the model may call the client's functions. Raises INVALID
        `unsupported_parameter`."""
        if self.tool_choice in (None, "auto", "none"):
            return self.tool_choice != "none"
        raise unsupported("tool_choice", "The agent decides which tools it calls: tool_choice may be auto or none.")


class SchemaFormat(OpenAiBody):
    """The JSON Schema of the answer."""

    type: Literal["text", "json_object", "json_schema"]


def schema_of(kind: str, schema: object, path: str) -> JsonObject | None:
    """The output schema for a format; None for text. Raises INVALID `body_invalid`."""
    if kind == "text":
        return None
    if kind == "json_object":
        return {"type": "object"}
    if not isinstance(schema, dict):
        raise invalid("body_invalid", "The request body is not valid.", Violation(path=path, message="needs a schema"))
    return cast(JsonObject, schema)


def arguments_of(text: str, path: str) -> JsonObject:
    """The arguments of a call in a client's history. Raises INVALID `body_invalid`."""
    try:
        decoded = json.loads(text or "{}")
    except ValueError:
        decoded = None
    if not isinstance(decoded, dict):
        wrong = Violation(path=path, message="must be a JSON object as text")
        raise invalid("body_invalid", "The request body is not valid.", wrong)
    return cast(JsonObject, decoded)

"""Output schemas: sent as a parameter to models that generate by them, asked for in the prompt
otherwise."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from application.models.ports import ModelError, ModelEvent, ModelReply, ModelRequest, TextDelta
from domain.json_value import JsonObject
from domain.model_providers.provider import ProviderKind, ProviderWire
from domain.runs.finish_reason import FinishReason
from domain.runs.model_settings import Effort, ModelSettings, Verbosity
from domain.runs.provider_error import ProviderError
from infrastructure.llm.anthropic_wire import AnthropicWire
from infrastructure.llm.model_families import native_schema
from infrastructure.llm.openai_wire import ChatDialect, OpenAIWire
from infrastructure.llm.output_schemas import OutputSchemas
from infrastructure.llm.providers import ProviderConfig
from infrastructure.llm.responses_wire import ResponsesWire
from tests.builders import a_tool
from tests.run_builders import some_usage
from tests.unit.llm.model_requests import SEES, a_request, all_events, reply_of
from tests.unit.llm.sdk_types import valid_chat_body, valid_messages_body, valid_responses_body

OPEN: JsonObject = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CLOSED: JsonObject = {**OPEN, "additionalProperties": False}
FREE: JsonObject = {"type": "object", "additionalProperties": {"type": "integer"}}


def with_schema(model: str = "openai:gpt-5.5", schema: JsonObject = OPEN, *, tools: bool = False) -> ModelRequest:
    return replace(a_request(model, tools=(a_tool(),) if tools else ()), output_schema=schema)


class Provider:
    """A LanguageModel that fails with these errors first, after a delta if told so."""

    def __init__(self, *errors: ModelError, after_delta: bool = False) -> None:
        self.requests: list[ModelRequest] = []
        self._errors = list(errors)
        self._after_delta = after_delta

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.requests.append(request)
        if self._errors:
            if self._after_delta:
                yield TextDelta(text="{")
            raise self._errors.pop(0)
        yield TextDelta(text="{}")
        yield ModelReply(model=request.model, text="{}", calls=(), usage=some_usage(), finish_reason=FinishReason.STOP)


def refusal(message: str, code: str = "model_rejected") -> ModelError:
    said = ProviderError(status=400, code=None, message=message)
    return ModelError(code, "Refused.", retryable=False, provider_error=said)


@pytest.mark.requirement("H3")
async def test_a_request_without_a_schema_passes_unchanged() -> None:
    inner, request = Provider(), a_request()
    await reply_of(OutputSchemas(inner, lambda _: CLOSED).stream(request))
    assert inner.requests == [request]


@pytest.mark.requirement("H3")
async def test_a_model_that_generates_by_schemas_is_sent_the_native_form() -> None:
    inner = Provider()
    await reply_of(OutputSchemas(inner, lambda _: CLOSED).stream(with_schema()))
    assert inner.requests == [with_schema(schema=CLOSED)]


@pytest.mark.requirement("H3")
async def test_another_model_is_asked_at_the_end_of_its_instructions() -> None:
    inner = Provider()
    await reply_of(OutputSchemas(inner, lambda _: None).stream(with_schema()))
    (sent,) = inner.requests
    assert sent.output_schema is None
    assert sent.system.startswith("Answer briefly.\n\n")
    assert '{"properties":{"city":{"type":"string"}}' in sent.system


@pytest.mark.requirement("H3")
async def test_a_refused_schema_is_asked_for_and_remembered_for_its_model() -> None:
    inner = Provider(refusal("Invalid schema for response_format 'output'"))
    models = OutputSchemas(inner, lambda _: CLOSED)
    for model in ("openai:gpt-5.5", "openai:gpt-5.5", "openai:gpt-6"):
        await reply_of(models.stream(with_schema(model)))
    assert [request.output_schema for request in inner.requests] == [CLOSED, None, None, CLOSED]


@pytest.mark.requirement("H3")
@pytest.mark.parametrize(
    ("error", "after_delta"),
    [
        (refusal("No credit."), False),
        (refusal("text.format", "model_auth"), False),
        (refusal("text.format"), True),
        (ModelError("model_rejected", "Refused.", retryable=False), False),
    ],
)
async def test_other_errors_and_errors_within_a_reply_are_raised(error: ModelError, after_delta: bool) -> None:
    inner = Provider(error, after_delta=after_delta)
    with pytest.raises(ModelError):
        await all_events(OutputSchemas(inner, lambda _: CLOSED).stream(with_schema()))
    assert len(inner.requests) == 1


def native(request: ModelRequest, *, kind: ProviderKind = ProviderKind.OPENAI, official: bool = False) -> object:
    base_url = "https://api.openai.com/v1" if official else "https://models.example.org/v1"
    if kind is ProviderKind.ANTHROPIC:
        base_url = "https://api.anthropic.com"
    wire = ProviderWire.AUTO
    return native_schema(ProviderConfig(name="p", kind=kind, base_url=base_url, wire=wire, api_key="sk"), request)


@pytest.mark.requirement("H3")
@pytest.mark.parametrize(
    ("model", "tools", "takes"),
    [
        ("openai/gpt-5.5", True, True),
        ("o4-mini", True, True),
        ("gemini-3-pro", True, True),
        ("google/gemini-2.5-flash", True, False),
        ("gemini-2.5-flash", False, True),
        ("deepseek-v4-pro", False, False),
        ("qwen3-max", True, False),
        ("anthropic/claude-opus-4.8", False, False),
    ],
)
def test_over_chat_completions_families_get_it_that_are_known_to_have_it_beside_tools(
    model: str, tools: bool, takes: bool
) -> None:
    assert (native(with_schema(f"p:{model}", tools=tools)) is not None) is takes


@pytest.mark.requirement("H3")
@pytest.mark.parametrize(
    ("model", "schema", "form"),
    [
        ("claude-opus-4-8", OPEN, CLOSED),
        ("claude-sonnet-4-5-20250929", OPEN, CLOSED),
        ("claude-opus-4-8", FREE, None),
        ("claude-sonnet-4", OPEN, None),
        ("claude-3-7-sonnet-latest", OPEN, None),
        ("our-own-model", OPEN, None),
    ],
)
def test_claude_gets_schemas_of_the_subset_since_4_5(model: str, schema: JsonObject, form: JsonObject | None) -> None:
    assert native(with_schema(f"p:{model}", schema), kind=ProviderKind.ANTHROPIC) == form


@pytest.mark.requirement("H3")
def test_openai_gets_every_schema_and_closed_ones_strictly() -> None:
    assert native(with_schema("p:gpt-5.5"), official=True) == CLOSED
    assert native(with_schema("p:gpt-5.5", FREE), official=True) == FREE


def responses(schema: JsonObject, settings: ModelSettings | None = None) -> dict[str, Any]:
    request = replace(with_schema(schema=schema, tools=True), settings=settings)
    return valid_responses_body(ResponsesWire(takes=SEES).body("gpt-5.5", request))


@pytest.mark.requirement("H3")
def test_responses_have_the_schema_beside_the_verbosity() -> None:
    assert responses(CLOSED, ModelSettings(verbosity=Verbosity.LOW))["text"] == {
        "verbosity": "low",
        "format": {"type": "json_schema", "name": "output", "schema": CLOSED, "strict": True},
    }
    assert responses(FREE)["text"]["format"]["strict"] is False


@pytest.mark.requirement("H3")
def test_chat_completions_have_the_schema_as_their_response_format() -> None:
    wire = OpenAIWire(takes=SEES, dialect=ChatDialect())
    body = valid_chat_body(wire.body("gemini-3-pro", with_schema(schema=CLOSED, tools=True)))
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "output", "schema": CLOSED, "strict": True},
    }


@pytest.mark.requirement("H3")
def test_messages_have_the_schema_beside_the_effort() -> None:
    wire = AnthropicWire(takes=SEES, default_max_tokens=1_000)
    request = replace(with_schema(schema=CLOSED), settings=ModelSettings(effort=Effort.LOW))
    assert valid_messages_body(wire.body("claude-opus-4-8", request))["output_config"] == {
        "effort": "low",
        "format": {"type": "json_schema", "schema": CLOSED},
    }

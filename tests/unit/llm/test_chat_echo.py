"""What goes back with the model's messages follows from its family and from what its provider
refuses."""

import pytest

from application.models.ports import ModelError
from domain.model_providers.provider import EchoReasoning
from domain.runs.provider_error import ProviderError
from infrastructure.llm.chat_echo import ChatEcho, chat_echo
from infrastructure.llm.wire_cache import Form

LOOP, ALWAYS, NEVER = EchoReasoning.TOOL_LOOP, EchoReasoning.ALWAYS, EchoReasoning.NEVER
KIMI = "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2"
DEEPSEEK = "The `reasoning_content` in the thinking mode must be passed back to the API."
GEMINI = "Function call is missing a thought_signature in functionCall parts."
GROQ = (
    "'messages.2' : for 'role:assistant' the following must be satisfied: property 'reasoning_content' is unsupported"
)


def refused(message: str, *, code: str = "model_rejected") -> ModelError:
    said = ProviderError(status=400, code=None, message=message)
    return ModelError(code, "Rejected.", retryable=False, provider_error=said)


@pytest.mark.requirement("H1", "H2")
@pytest.mark.parametrize(
    ("model", "echo"),
    [
        ("gpt-oss-120b", ChatEcho(reasoning=LOOP)),
        ("qwen3-next-thinking", ChatEcho(reasoning=LOOP)),
        ("deepseek/deepseek-v4-pro", ChatEcho(reasoning=ALWAYS)),
        ("Pro/moonshotai/Kimi-K2.5", ChatEcho(reasoning=ALWAYS)),
        ("gemini-2.5-flash", ChatEcho(reasoning=LOOP)),
        ("gemini-3.6-flash", ChatEcho(reasoning=LOOP, neutral=Form.WITH_SIGNATURE)),
        ("google/gemini-flash-latest", ChatEcho(reasoning=LOOP, neutral=Form.WITH_SIGNATURE)),
    ],
)
def test_families_that_need_more_get_it_at_once(model: str, echo: ChatEcho) -> None:
    assert chat_echo(LOOP, model) == echo


@pytest.mark.parametrize("wanted", [ALWAYS, NEVER])
def test_a_setting_goes_before_the_family(wanted: EchoReasoning) -> None:
    assert chat_echo(wanted, "kimi-k2.5").reasoning is wanted


@pytest.mark.requirement("H1", "H2")
@pytest.mark.parametrize("message", [KIMI, DEEPSEEK, "Missing `reasoning_content` field in the assistant message"])
def test_reasoning_that_is_missed_gets_a_placeholder_and_then_its_place_everywhere(message: str) -> None:
    first = ChatEcho(reasoning=LOOP).after(refused(message))
    assert first == ChatEcho(reasoning=LOOP, neutral=Form.WITH_PLACEHOLDER)
    second = first.after(refused(message))
    assert second == ChatEcho(reasoning=ALWAYS, neutral=Form.WITH_PLACEHOLDER)
    assert second.after(refused(message)) is None


def test_a_signature_that_is_missed_gets_a_placeholder() -> None:
    echo = ChatEcho(reasoning=LOOP).after(refused(GEMINI))
    assert echo == ChatEcho(reasoning=LOOP, neutral=Form.WITH_SIGNATURE)
    assert echo.after(refused(GEMINI)) is None


def test_reasoning_that_is_refused_is_sent_in_fewer_places_and_then_not_at_all() -> None:
    first = ChatEcho(reasoning=ALWAYS).after(refused(GROQ))
    assert first == ChatEcho(reasoning=LOOP)
    second = first.after(refused(GROQ))
    assert second == ChatEcho(reasoning=NEVER)
    assert second.after(refused(GROQ)) is None


@pytest.mark.parametrize(
    "error",
    [
        refused("Unsupported parameter: 'temperature' is not supported with this model."),
        refused("Function tools with reasoning_effort are not supported for gpt-5.5. Please use /v1/responses."),
        refused("The model does not exist."),
        refused(KIMI, code="model_unavailable"),
        ModelError("model_rejected", "Rejected.", retryable=False),
    ],
)
def test_other_refusals_change_nothing(error: ModelError) -> None:
    assert ChatEcho(reasoning=LOOP).after(error) is None


def test_a_provider_that_is_never_to_get_reasoning_gets_no_placeholder_either() -> None:
    assert ChatEcho(reasoning=NEVER).after(refused(KIMI)) is None

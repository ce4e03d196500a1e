"""Model settings in the bodies of all wires: what is set and taken, and nothing else."""

import json
from dataclasses import replace
from typing import Any

import pytest

from application.models.ports import ModelRequest, ToolChoice
from domain.model_providers.provider import ProviderKind, ProviderWire
from domain.runs.model_settings import CacheTtl, Effort, ModelSettings, Verbosity
from domain.threads.provider_items import ProviderItems
from infrastructure.llm.anthropic_wire import AnthropicWire
from infrastructure.llm.model_families import (
    Thinking,
    settings_taken,
    taken_by_chat,
    taken_by_messages,
    taken_by_responses,
    thinking_of,
)
from infrastructure.llm.openai_wire import ChatDialect, OpenAIWire
from infrastructure.llm.providers import ProviderConfig
from infrastructure.llm.responses_wire import ResponsesWire
from infrastructure.llm.wire_parameters import with_reasoning_object, with_taken_settings
from tests.builders import a_tool
from tests.unit.llm.model_requests import (
    SEES,
    a_request,
    a_result,
    a_tool_message,
    a_use,
    a_user_message,
    an_assistant_message,
)
from tests.unit.llm.sdk_types import valid_chat_body, valid_messages_body, valid_responses_body

ADAPTIVE, BUDGETED = "claude-opus-4-8", "claude-sonnet-4-5"


def requested(settings: ModelSettings | None, *, tools: bool = True, **more: Any) -> ModelRequest:
    return replace(a_request(tools=(a_tool(),) if tools else ()), settings=settings, **more)


def chat(settings: ModelSettings | None, **more: Any) -> dict[str, Any]:
    wire = OpenAIWire(takes=SEES, dialect=ChatDialect(token_limit_field="max_completion_tokens"))
    return valid_chat_body(wire.body("gpt-5.5", requested(settings, **more)))


def responses(settings: ModelSettings | None, **more: Any) -> dict[str, Any]:
    wire = ResponsesWire(takes=SEES)
    return valid_responses_body(wire.body("gpt-5.5", requested(settings, **more)))


def messages(settings: ModelSettings | None, *, model: str = ADAPTIVE, **more: Any) -> dict[str, Any]:
    wire = AnthropicWire(takes=SEES, default_max_tokens=1000)
    return valid_messages_body(wire.body(model, requested(settings, **more)))


def added(body: dict[str, Any], plain: dict[str, Any]) -> dict[str, Any]:
    """What the body has that the one without settings has not."""
    assert plain.keys() <= body.keys()
    return {name: value for name, value in body.items() if plain.get(name) != value}


@pytest.mark.requirement("H3")
def test_chat_completions_have_what_is_set() -> None:
    settings = ModelSettings(
        effort=Effort.HIGH,
        verbosity=Verbosity.LOW,
        temperature=0.0,
        top_p=0.5,
        parallel_tool_calls=False,
        service_tier="flex",
        stop=("END",),
        seed=0,
        extra_body={"logit_bias": {"1": 2}},
    )
    assert added(chat(settings), chat(None)) == {
        "reasoning_effort": "high",
        "verbosity": "low",
        "temperature": 0.0,
        "top_p": 0.5,
        "parallel_tool_calls": False,
        "service_tier": "flex",
        "stop": ["END"],
        "seed": 0,
        "logit_bias": {"1": 2},
    }


@pytest.mark.requirement("H3")
def test_responses_have_what_is_set() -> None:
    settings = ModelSettings(effort=Effort.LOW, verbosity=Verbosity.HIGH, parallel_tool_calls=True, service_tier="flex")
    assert added(responses(settings, reasoning_summary=True), responses(None)) == {
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"verbosity": "high"},
        "parallel_tool_calls": True,
        "service_tier": "flex",
    }
    assert added(responses(None, reasoning_summary=True), responses(None)) == {"reasoning": {"summary": "auto"}}


@pytest.mark.requirement("H3")
def test_messages_have_what_is_set() -> None:
    settings = ModelSettings(
        effort=Effort.MINIMAL,
        stop=("END",),
        parallel_tool_calls=False,
        service_tier="auto",
        extra_body={"inference_geo": "eu"},
    )
    assert added(messages(settings), messages(None)) == {
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "low"},
        "stop_sequences": ["END"],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        "service_tier": "auto",
        "inference_geo": "eu",
    }


def test_without_tools_nothing_is_said_about_their_calls() -> None:
    settings = ModelSettings(parallel_tool_calls=False)
    for body in (chat, responses, messages):
        assert added(body(settings, tools=False), body(None, tools=False)) == {}
    closing = messages(settings, tool_choice=ToolChoice.NONE)
    assert closing["tool_choice"] == {"type": "none"}


@pytest.mark.requirement("H3")
@pytest.mark.parametrize(
    ("settings", "summary", "thinking"),
    [
        (ModelSettings(effort=Effort.HIGH), False, {"type": "adaptive"}),
        (ModelSettings(effort=Effort.HIGH), True, {"type": "adaptive", "display": "summarized"}),
        (None, True, {"type": "adaptive", "display": "summarized"}),
        (ModelSettings(effort=Effort.NONE), True, {"type": "disabled"}),
        (ModelSettings(stop=("END",)), False, None),
    ],
)
def test_a_model_with_adaptive_thinking_is_asked_by_effort_and_for_summaries(
    settings: ModelSettings | None, summary: bool, thinking: object
) -> None:
    assert messages(settings, reasoning_summary=summary).get("thinking") == thinking


@pytest.mark.requirement("H3")
def test_an_older_model_thinks_with_a_budget_beside_its_answer() -> None:
    body = messages(ModelSettings(thinking_budget=2_048), model=BUDGETED)
    assert (body["thinking"], body["max_tokens"]) == ({"type": "enabled", "budget_tokens": 2_048}, 3_048)
    assert "output_config" not in body


@pytest.mark.requirement("H3")
def test_it_does_not_think_where_the_answer_has_no_room_or_a_turn_of_another_model_is_in_the_loop() -> None:
    settings = ModelSettings(thinking_budget=2_048)
    assert "thinking" not in messages(settings, model=BUDGETED, max_output_tokens=2_048)
    use = a_use()
    foreign = (a_user_message(), an_assistant_message(use), a_tool_message(a_result(use)))
    assert "thinking" not in messages(settings, model=BUDGETED, messages=foreign)
    later = (*foreign, an_assistant_message(text="Done.", number=4), a_user_message("And?", number=5))
    assert "thinking" in messages(settings, model=BUDGETED, messages=later)


@pytest.mark.requirement("H1", "H3")
def test_it_does_not_think_in_a_loop_with_a_turn_whose_own_items_cannot_go_back() -> None:
    use = a_use()
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}

    def sent(call: dict[str, object]) -> dict[str, Any]:
        items = ProviderItems(origin="", data=json.dumps([thinking, {"type": "tool_use", **call}]).encode())
        said = replace(an_assistant_message(use), items=items)
        loop = (a_user_message(), said, a_tool_message(a_result(use)))
        return messages(ModelSettings(thinking_budget=2_048), model=BUDGETED, messages=loop)

    whole: dict[str, object] = {"id": "toolu_1", "name": use.name, "input": {}}
    assert "thinking" in sent(whole)
    assert "thinking" not in sent({**whole, "id": None})


@pytest.mark.requirement("H3")
def test_the_lifetime_of_the_prompt_cache_is_at_each_of_its_marks() -> None:
    body = messages(ModelSettings(cache_ttl=CacheTtl.ONE_HOUR))
    mark = {"type": "ephemeral", "ttl": "1h"}
    assert body["tools"][-1]["cache_control"] == body["system"][0]["cache_control"] == mark
    assert body["messages"][-1]["content"][-1]["cache_control"] == mark


@pytest.mark.requirement("H3")
@pytest.mark.parametrize(
    ("model", "missing"),
    [
        ("gpt-5.5", {"temperature", "top_p", "stop"}),
        ("o3-mini", {"temperature", "top_p", "stop"}),
        ("gpt-4.1", {"effort", "verbosity"}),
        ("gpt-5-chat-latest", {"effort", "verbosity"}),
        ("deepseek-v4-pro", set()),
    ],
)
def test_models_of_openai_take_either_an_effort_or_sampling(model: str, missing: set[str]) -> None:
    everything = taken_by_chat("unknown")
    assert everything - taken_by_chat(model) == missing
    assert taken_by_responses("unknown") - taken_by_responses(model) == missing - {"stop"}


@pytest.mark.requirement("H3")
@pytest.mark.parametrize(
    ("model", "missing", "thinking"),
    [
        ("claude-fable-5", {"temperature", "top_p", "thinking_budget"}, Thinking.ADAPTIVE),
        ("claude-opus-4-7", {"temperature", "top_p", "thinking_budget"}, Thinking.ADAPTIVE),
        ("claude-opus-4-6", set(), Thinking.ADAPTIVE),
        ("claude-haiku-4-5-20251001", set(), Thinking.BUDGET),
        ("claude-sonnet-4-20250514", {"effort"}, Thinking.BUDGET),
        ("claude-3-7-sonnet-latest", {"effort"}, Thinking.BUDGET),
        ("some-other-model", set(), Thinking.ADAPTIVE),
    ],
)
def test_what_claude_takes_depends_on_its_version(model: str, missing: set[str], thinking: Thinking) -> None:
    assert taken_by_messages("unknown") - taken_by_messages(model) == missing
    assert thinking_of(model) is thinking


@pytest.mark.parametrize(
    ("kind", "wire", "taken"),
    [
        (ProviderKind.OPENAI, ProviderWire.RESPONSES, taken_by_responses),
        (ProviderKind.OPENAI, ProviderWire.CHAT, taken_by_chat),
        (ProviderKind.ANTHROPIC, ProviderWire.AUTO, taken_by_messages),
    ],
)
def test_the_wire_of_the_provider_decides(kind: ProviderKind, wire: ProviderWire, taken: Any) -> None:
    provider = ProviderConfig(name="acme", kind=kind, wire=wire, base_url="https://models.test")
    assert settings_taken(provider, "gpt-4.1") == taken("gpt-4.1")


@pytest.mark.requirement("H3")
def test_a_fallback_model_is_sent_what_it_takes() -> None:
    request = replace(requested(ModelSettings(temperature=0.5, seed=1)), model="openai:gpt-5.5")
    assert with_taken_settings(request, taken_by_chat).settings == ModelSettings(seed=1)
    plain = replace(request, model="openai:gpt-4.1")
    assert with_taken_settings(plain, taken_by_chat) is plain


@pytest.mark.parametrize(("effort", "expected"), [("high", 1), ("none", 0.2), (None, 0.2)])
def test_an_effort_at_snowflake_wins_over_another_temperature(effort: str | None, expected: float) -> None:
    parameters = with_reasoning_object({"temperature": 0.2, **({} if effort is None else {"reasoning_effort": effort})})
    assert parameters["temperature"] == expected
    assert "reasoning_effort" not in parameters

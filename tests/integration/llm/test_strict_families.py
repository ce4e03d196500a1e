"""Tool loops of every family of models against providers that refuse what the vendors refuse.
`docs/models.md` has the same table."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from pathlib import Path

import pytest

from application.models.ports import LanguageModel, ModelError, TextDelta
from domain.json_value import JsonObject
from domain.runs.model_settings import Effort, ModelSettings
from infrastructure.http.egress import EgressPolicy
from infrastructure.llm.library.opening import native_models
from infrastructure.llm.provider_http import AiohttpProviders
from infrastructure.llm.provider_models import ProviderModels
from infrastructure.llm.routing import RoutedModels
from infrastructure.llm.scripted import ScriptedModels
from tests.integration.llm.strict.chat import StrictChat, bad_request
from tests.integration.llm.strict.families import FAMILIES, ModelFamily
from tests.integration.llm.strict.provider import Json, Said, StrictProvider
from tests.unit.llm.conversations import Conversation
from tests.unit.llm.model_requests import SomeProviders
from tests.unit.llm.sdk_types import NEEDS_SDK_TYPES

pytestmark = NEEDS_SDK_TYPES

ECHO, CLOCK = "mcp__files__echo", "mcp__clock__now"


class Vendors:
    """All families, each at its provider."""

    def __init__(self, http: AiohttpProviders) -> None:
        self._http = http
        self.at: dict[str, StrictProvider] = {}

    async def serve(self, stack: AsyncExitStack) -> None:
        for family in FAMILIES:
            there = StrictProvider(family.make(), prefix=family.prefix)
            self.at[family.name] = await stack.enter_async_context(there.serving())

    def models(self, *, streams: bool = True) -> LanguageModel:
        """Models of all providers, as a process that begins opens them. From now on they answer in
        streams, or whole."""
        for family in FAMILIES:
            self.at[family.name].streams = streams or family.only_streams
        opening = ProviderModels(
            http=self._http,
            guarded_http=self._http,
            outbound=EgressPolicy(),
            native=lambda: native_models,
        )
        providers = SomeProviders(*(family.provider(self.at[family.name]) for family in FAMILIES))
        return RoutedModels(providers=providers, open_provider=opening.open, scripted=ScriptedModels(()))


@pytest.fixture
async def vendors(http: AiohttpProviders) -> AsyncIterator[Vendors]:
    async with AsyncExitStack() as stack:
        vendors = Vendors(http)
        await vendors.serve(stack)
        yield vendors


OPAQUE = frozenset(
    {"encrypted_content", "signature", "data", "thought_signature", "thoughtSignature", "reasoning_content"}
)


def opaque_in(value: object) -> set[str]:
    """What only its provider understands."""
    if isinstance(value, list):
        return set().union(*map(opaque_in, value))
    if not isinstance(value, dict):
        return set()
    here = {part for name, part in value.items() if name in OPAQUE and isinstance(part, str)}
    return here.union(*map(opaque_in, value.values()))


async def a_tool_loop_of_three_turns(vendors: Vendors, family: ModelFamily, streams: bool) -> None:
    there, thread, model = (
        vendors.at[family.name],
        Conversation(settings=family.settings),
        vendors.models(streams=streams),
    )
    there.say(
        Said(text="Let me look.", calls=((CLOCK, {}),)), Said(calls=((ECHO, {"text": "hi"}),)), Said(text="It is noon.")
    )
    await thread.ask(model, family.model)
    thread.answer("11:59")
    reply = await thread.ask(model, family.model)
    assert [(call.name, call.arguments) for call in reply.calls] == [(ECHO, {"text": "hi"})]
    thread.answer("hi")
    assert (await thread.ask(model, family.model)).text == "It is noon."
    assert there.refused == []
    said = set().union(*map(opaque_in, there.answers[:2]))
    assert said
    assert opaque_in(there.bodies[-1]) == said


async def parallel_calls(vendors: Vendors, family: ModelFamily, streams: bool) -> None:
    there, thread, model = (
        vendors.at[family.name],
        Conversation(settings=family.settings),
        vendors.models(streams=streams),
    )
    there.say(Said(calls=((ECHO, {"text": "hi"}), (CLOCK, {}), (ECHO, {}))), Said(text="It is noon."))
    reply = await thread.ask(model, family.model)
    assert [(call.name, call.arguments) for call in reply.calls] == [(ECHO, {"text": "hi"}), (CLOCK, {}), (ECHO, {})]
    thread.answer("hi", "12:00", "")
    assert (await thread.ask(model, family.model)).text == "It is noon."
    assert there.refused == []


async def a_second_question_after_a_tool_loop(vendors: Vendors, family: ModelFamily, streams: bool) -> None:
    there, thread, model = (
        vendors.at[family.name],
        Conversation(settings=family.settings),
        vendors.models(streams=streams),
    )
    for answer in ("It is noon.", "It is late."):
        there.say(Said(calls=((CLOCK, {}),)), Said(text=answer))
        await thread.ask(model, family.model)
        thread.answer("12:00")
        assert (await thread.ask(model, family.model)).text == answer
        thread.say("And now?")
    assert there.refused == []


async def fallback_to_another_family_and_back(vendors: Vendors, family: ModelFamily, streams: bool) -> None:
    """Within one tool loop. The first request after the change may be refused once, by which the
    wire learns what the provider needs."""
    other = FAMILIES[(FAMILIES.index(family) + 1) % len(FAMILIES)]
    thread, model = Conversation(settings=family.settings), vendors.models(streams=streams)
    there = vendors.at[family.name]
    there.say(Said(calls=((CLOCK, {}),)), Said(calls=((CLOCK, {}),)), Said(text="It is noon."))
    vendors.at[other.name].say(Said(calls=((ECHO, {"text": "hi"}), (CLOCK, {}))))
    await thread.ask(model, family.model)
    thread.answer("11:58")
    await thread.ask(model, other.model)
    thread.answer("hi", "11:59")
    await thread.ask(model, family.model)
    thread.answer("12:00")
    refusals = len(there.refused)
    assert (await thread.ask(model, family.model)).text == "It is noon."
    assert refusals <= 1
    assert len(there.refused) == refusals


async def adapters_opened_anew_between_call_and_result(vendors: Vendors, family: ModelFamily, streams: bool) -> None:
    there, thread = vendors.at[family.name], Conversation(settings=family.settings)
    there.say(Said(calls=((CLOCK, {}),)), Said(text="It is noon."))
    await thread.ask(vendors.models(streams=streams), family.model)
    thread.answer("12:00")
    assert (await thread.ask(vendors.models(streams=not streams), family.model)).text == "It is noon."
    assert there.refused == []


async def cached_input_from_the_third_turn(vendors: Vendors, family: ModelFamily, streams: bool) -> None:
    there, thread, model = (
        vendors.at[family.name],
        Conversation(settings=family.settings),
        vendors.models(streams=streams),
    )
    there.say(Said(calls=((CLOCK, {}),)), Said(calls=((CLOCK, {}),)), Said(text="It is noon."))
    for result in ("11:58", "11:59"):
        await thread.ask(model, family.model)
        thread.answer(result)
    usage = (await thread.ask(model, family.model)).usage
    assert 0 < usage.cached_tokens < usage.input_tokens
    assert not usage.estimated


async def settings_that_another_family_takes(vendors: Vendors, family: ModelFamily, streams: bool) -> None:
    """What this one refuses is not sent to it."""
    everything = ModelSettings(
        effort=Effort.HIGH, temperature=0.5, top_p=0.9, stop=("END",), seed=1, parallel_tool_calls=True
    )
    there, thread = vendors.at[family.name], Conversation(settings=everything)
    there.say(Said(text="It is noon."))
    assert (await thread.ask(vendors.models(streams=streams), family.model)).text == "It is noon."
    assert there.refused == []


CITY: JsonObject = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "population": {"type": "integer", "minimum": 1}},
    "required": ["city", "population"],
}


async def structured_output(vendors: Vendors, family: ModelFamily, streams: bool) -> None:
    """Beside tools. The schema is a parameter, or the model is asked for it; neither is refused."""
    there, model = vendors.at[family.name], vendors.models(streams=streams)
    thread = Conversation(settings=family.settings, output_schema=CITY)
    answer = '{"city": "Lisbon", "population": 575739}'
    there.say(Said(calls=((CLOCK, {}),)), Said(text=answer))
    await thread.ask(model, family.model)
    thread.answer("12:00")
    assert (await thread.ask(model, family.model)).text == answer
    assert there.refused == []
    for body in there.bodies:
        assert schema_in(body) or '"population"' in instructions_of(body)


def schema_in(body: Json) -> object:
    """The schema that a request has as a parameter."""
    written = body.get("text", {}).get("format") or body.get("output_config", {}).get("format")
    written = written or body.get("response_format", {}).get("json_schema") or {}
    return written.get("schema") or body.get("generationConfig", {}).get("responseJsonSchema")


def instructions_of(body: Json) -> str:
    return str(body.get("systemInstruction") or body.get("system") or body["messages"][0]["content"])


async def cancel_in_mid_stream(vendors: Vendors, family: ModelFamily, streams: bool) -> None:
    there = vendors.at[family.name]
    there.say(Said(text="It is noon, as it often is at this time of the day, which is noon.", hangs_after=16))
    events = vendors.models().stream(Conversation(settings=family.settings).request(family.model))
    async with aclosing(events):  # type: ignore[type-var]
        while not isinstance(await anext(events), TextDelta):
            pass
    await asyncio.wait_for(there.cut_off.wait(), 60)


Case = Callable[[Vendors, ModelFamily, bool], Awaitable[None]]

CASES: dict[str, Case] = {
    "three-turn tool loop": a_tool_loop_of_three_turns,
    "parallel calls": parallel_calls,
    "second question after a loop": a_second_question_after_a_tool_loop,
    "another process between call and result": adapters_opened_anew_between_call_and_result,
    "fallback to another family and back": fallback_to_another_family_and_back,
    "cached input from turn 3": cached_input_from_the_third_turn,
    "settings of another family": settings_that_another_family_takes,
    "structured output": structured_output,
    "cancel in mid-stream": cancel_in_mid_stream,
}


ELSEWHERE = ("`kill -9` between call and result",)
"""Shown by `tests/e2e/test_model_families.py`."""
PAGE = Path(__file__).parents[3] / "docs" / "models.md"
BEGINNING = "<!-- written by tests/integration/llm/test_strict_families.py -->\n"
END = "<!-- end -->\n"


def page() -> str:
    """The page with the table of families and cases, all of which tests run."""
    cases = (*CASES, *ELSEWHERE)
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGINNING)
    after = rest.split(END)[1]
    rows = [
        f"| family | {' | '.join(cases)} |",
        "|---" * (len(cases) + 1) + "|",
        *(f"| {family.title} | {' | '.join('yes' for _ in cases)} |" for family in FAMILIES),
    ]
    return before + BEGINNING + "\n".join([*rows, ""]) + END + after


WAYS = [
    pytest.param(family, case, streams, id=f"{family.name}, {name}, {'streamed' if streams else 'whole'}")
    for family in FAMILIES
    for name, case in CASES.items()
    for streams in (True, False)
    if streams or (case is not cancel_in_mid_stream and not family.only_streams)
]


@pytest.mark.requirement("H1", "H2", "H3")
@pytest.mark.parametrize(("family", "case", "streams"), WAYS)
async def test_every_family_holds_every_case(vendors: Vendors, family: ModelFamily, case: Case, streams: bool) -> None:
    await case(vendors, family, streams)


@pytest.mark.requirement("H1")
async def test_thinking_of_another_account_is_left_out(vendors: Vendors, http: AiohttpProviders) -> None:
    family = next(family for family in FAMILIES if family.name == "anthropic")
    there, thread = vendors.at[family.name], Conversation()
    there.say(Said(calls=((CLOCK, {}),)), Said(text="It is noon."))
    await thread.ask(vendors.models(), family.model)
    thread.answer("12:00")
    opening = ProviderModels(http=http, guarded_http=http, outbound=EgressPolicy())
    reply = await thread.ask(opening.open(family.provider(there, key="sk-other")), family.model)
    assert reply.text == "It is noon."
    assert len(there.refused) == 1


@pytest.mark.requirement("H1", "H2")
@pytest.mark.parametrize("name", ["kimi", "deepseek"])
async def test_what_a_refusal_taught_holds_for_later_requests_to_the_model(vendors: Vendors, name: str) -> None:
    family = next(family for family in FAMILIES if family.name == name)
    there, model = vendors.at[name], vendors.models()
    for _ in range(2):
        thread = Conversation()
        vendors.at["glm"].say(Said(calls=((CLOCK, {}),)))
        there.say(Said(text="It is noon."))
        await thread.ask(model, "glm:glm-5")
        thread.answer("12:00")
        assert (await thread.ask(model, family.model)).text == "It is noon."
    assert len(there.refused) == 1


@pytest.mark.requirement("H1", "H2")
async def test_a_provider_that_refuses_all_fields_of_its_own_gets_text_and_calls(vendors: Vendors) -> None:
    there, thread, model = vendors.at["qwen"], Conversation(), vendors.models()
    there.say(Said(calls=((CLOCK, {}),)), Said(text="It is noon."))
    await thread.ask(model, "qwen:qwen3-max")
    thread.answer("12:00")
    there.family = StrictChat()
    there.refuse(bad_request("messages.2: property 'reasoning_content' is unsupported"))
    assert (await thread.ask(model, "qwen:qwen3-max")).text == "It is noon."
    assert "reasoning_content" not in str(there.bodies[-1])


async def test_a_refusal_that_nothing_helps_is_told_and_forgotten(vendors: Vendors) -> None:
    there, thread, model = vendors.at["qwen"], Conversation(), vendors.models()
    there.say(Said(calls=((CLOCK, {}),)), Said(text="It is noon."))
    await thread.ask(model, "qwen:qwen3-max")
    thread.answer("12:00")
    there.refuse(*(bad_request("reasoning_content is not supported") for _ in range(2)))
    with pytest.raises(ModelError) as raised:
        await thread.ask(model, "qwen:qwen3-max")
    assert raised.value.code == "model_rejected"
    assert (await thread.ask(model, "qwen:qwen3-max")).text == "It is noon."
    assert "reasoning_content" in str(there.bodies[-1])


@pytest.mark.requirement("H3")
@pytest.mark.parametrize("name", ["openai", "anthropic", "claude", "google"])
async def test_models_that_generate_by_a_schema_get_it_as_a_parameter(vendors: Vendors, name: str) -> None:
    family = next(family for family in FAMILIES if family.name == name)
    there = vendors.at[name]
    there.say(Said(text="{}"))
    await Conversation(settings=family.settings, output_schema=CITY).ask(vendors.models(), family.model)
    assert schema_in(there.bodies[-1]) is not None
    assert "JSON Schema" not in str(there.bodies[-1])


@pytest.mark.requirement("H3")
@pytest.mark.parametrize("name", ["openai", "anthropic", "google"])
async def test_a_schema_that_the_provider_refuses_is_asked_for_from_its_first_refusal_on(
    vendors: Vendors, name: str
) -> None:
    family = next(family for family in FAMILIES if family.name == name)
    there, model = vendors.at[name], vendors.models()
    there.refuse(bad_request("Invalid schema for response_format 'output': it nests too deeply."))
    there.say(*[Said(text="{}")] * 3)
    for _ in range(2):
        await Conversation(output_schema=CITY).ask(model, family.model)
    assert len(there.refused) == 1
    assert [schema_in(body) is None for body in there.bodies] == [False, True, True]
    assert all("JSON Schema" in str(body) for body in there.bodies[1:])
    await Conversation(output_schema={**CITY, "title": "City"}).ask(model, family.model)
    assert schema_in(there.bodies[-1]) is not None


@pytest.mark.requirement("H3")
async def test_another_refusal_is_told_though_a_schema_was_sent(vendors: Vendors) -> None:
    vendors.at["openai"].refuse(bad_request("You exceeded your budget."))
    with pytest.raises(ModelError):
        await Conversation(output_schema=CITY).ask(vendors.models(), "openai:gpt-5.5")
    assert len(vendors.at["openai"].bodies) == 1


def test_the_documentation_has_the_same_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
